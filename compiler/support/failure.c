/* failure.c: how the program ends early. */
#include "../attnc.h"

#include <stdlib.h>
#include <string.h>

static FailureTrap *innermost;

void failure_push(FailureTrap *trap) {
    trap->outer = innermost;
    innermost = trap;
}

void failure_release(FailureTrap *trap) {
    if (innermost != trap) bug("failure traps are released out of order");
    innermost = trap->outer;
}

static _Noreturn void end(int status, const char *what, const char *format, va_list args) {
    outputs_discard();
    progress_end();
    FailureTrap *trap = innermost;
    if (trap) {
        innermost = trap->outer;
        trap->status = status;
        vsnprintf(trap->message, sizeof trap->message, format, args);
        longjmp(trap->jump, 1);
    }
    fflush(stdout);
    say_head(stderr, PAINT_ERROR, what);
    vsay(stderr, format, args);
    fputc('\n', stderr);
    exit(status);
}

void fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    end(EXIT_USER, "error", format, args);
}

void fail_status(int status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    end(status, "error", format, args);
}

void bug(const char *format, ...) {
    va_list args;
    va_start(args, format);
    end(EXIT_BUG, "internal error, please report it", format, args);
}

static _Noreturn void end_plain(int status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    end(status, "error", format, args);
}

void out_of_memory(void) { end_plain(EXIT_MEMORY, "out of memory"); }
