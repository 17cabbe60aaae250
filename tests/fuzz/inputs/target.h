/* target.h: what the fuzz targets share.
 *
 * A target reads one input as attnc reads a user's file. It may be refused with one of the exit statuses that are the
 * input's fault (1, 3) or for want of memory (5). All else is a finding: a sanitizer's report, exit status 4, a leak, a
 * file that stays open. */
#ifndef TESTS_FUZZ_TARGET_H
#define TESTS_FUZZ_TARGET_H

#include "../../../compiler/attnc.h"

/* Runs `read` on the input, within a failure trap and an arena that is freed behind it. */
typedef void Read(Arena *arena, const uint8_t *data, size_t size);
int run_target(Read *read, const uint8_t *data, size_t size);

/* The path of a file of these bytes in memory. A name stands for one file, which the next call with it overwrites; all
 * are in one folder. Read-only for the target: nothing is to be written beside it. */
const char *memory_file(Arena *arena, const char *name, const void *data, size_t size);

/* A promise that the code under test has broken: ends the run as a crash of which the report says why. */
_Noreturn void broken(const char *promise);

/* --- arena.c: the same functions as compiler/support/arena.c has, but each piece of memory is an allocation of its
 * own, so that AddressSanitizer knows where it ends, and all of an input have a budget. */
void budget_begin(void);
bool arenas_free(void); /* all there are, as a failure ends them with the program; whether there was one */

#endif
