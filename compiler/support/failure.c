/* failure.c: the early ends of the program. */
#include "../attnc.h"

#include <errno.h>
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

static void (*cleanup)(void);

void failure_cleanup(void (*run)(void)) { cleanup = run; }

/* `why` is the system's reason, or NULL. */
static _Noreturn void end(int status, const char *what, const char *why, const char *format, va_list args) {
    if (cleanup) cleanup();
    progress_end();
    FailureTrap *trap = innermost;
    if (trap) {
        innermost = trap->outer;
        trap->status = status;
        size_t room = sizeof trap->message;
        int size = vsnprintf(trap->message, room, format, args);
        if (why && size >= 0 && (size_t)size < room) snprintf(trap->message + size, room - (size_t)size, ": %s", why);
        longjmp(trap->jump, 1);
    }
    report_failure(what, why, format, args);
    exit(status);
}

void fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    end(EXIT_USER, "error", NULL, format, args);
}

void fail_system(int error, const char *format, ...) {
    va_list args;
    va_start(args, format);
    end(error == ENOMEM ? EXIT_MEMORY : EXIT_USER, "error", strerror(error), format, args);
}

void fail_status(int status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    end(status, "error", NULL, format, args);
}

void bug(const char *format, ...) {
    va_list args;
    va_start(args, format);
    end(EXIT_BUG, "internal error, please report it", NULL, format, args);
}

void bug_at(const char *kind, const char *file, int line, const char *format, ...) {
    char reason[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    bug("%s %s:%d: %s", kind, file, line, reason);
}

void out_of_memory(void) { fail_status(EXIT_MEMORY, "out of memory"); }
