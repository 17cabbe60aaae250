/* fuzz_planted.c: faults on purpose, one a letter, by which tests/fuzz/run.py sees that each kind is reported. */
#include "target.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void *volatile kept;

static void read_input(Arena *arena, const uint8_t *data, size_t size) {
    switch (size ? data[0] : '\0') {
    case 'b': bug("planted");
    case 's': fail_status(EXIT_USAGE, "planted");
    case 'm': arena_alloc(arena, (size_t)1 << 40); break; /* no fault: out of memory */
    case 'o': {
        char *text = arena_copy(arena, "planted", 7);
        memset(text, 'x', size + 8);
        break;
    }
    case 'u': {
        volatile int most = INT32_MAX;
        most += (int)size;
        if (most) fail("no wrap");
        break;
    }
    case 'f':
        if (open("/dev/null", O_RDONLY) < 0) fail("no file");
        break;
    case 'l':
        kept = malloc(9);
        kept = NULL;
        break;
    case 'r': kept = arena_new(); kept = NULL; break; /* an arena that is not freed */
    case 'h':
        for (volatile bool on = true; on;) {}
        break;
    default: fail("no fault");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return run_target(read_input, data, size); }
