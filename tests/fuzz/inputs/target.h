/* target.h: what the fuzz targets share.
 *
 * A target reads one input as attnc reads a user's file. It may be refused with one of the exit statuses that are the
 * input's fault (1, 3) or for want of memory (5). All else is a finding: a sanitizer's report, exit status 4, a leak, a
 * file that stays open. */
#ifndef TESTS_FUZZ_TARGET_H
#define TESTS_FUZZ_TARGET_H

#include "../../../compiler/attnc.h"
#include "../../../compiler/plan/plan.h"

/* Runs `read` on the input, within a failure trap and an arena that is freed behind it. */
typedef void ReadInput(Arena *arena, const uint8_t *data, size_t size);
int run_target(ReadInput *read, const uint8_t *data, size_t size);

/* The path of a file of these bytes in memory. A name stands for one file, which the next call with it overwrites; all
 * are in one folder. Read-only for the target: nothing is to be written beside it. */
const char *memory_file(Arena *arena, const char *name, const void *data, size_t size);
void memory_file_absent(const char *name); /* until it is written again */

/* A promise that the code under test has broken: ends the run as a crash of which the report says why. */
_Noreturn void broken(const char *promise);

/* --- tensors.c: reads the last numbers of each tensor; a broken promise of formats/ is a finding. */
void tensors_read(const TensorFile *file);

/* --- changed.c: the .attnw file of a spec, as an input changes it. The input of a target that reads one: a byte of
 * flags, then a little-endian i16 by which the file becomes longer or shorter, then changes of four bytes: a u16 place
 * and two bytes. With AS_FILE the file is what stands behind the flags. */
enum {
    AS_FILE = 1, /* the input has a file of its own */
    MEND = 2,    /* the header's checksum is made right again */
    VERIFY = 4   /* the checksum of the data is checked, too */
};
Program *program_of(Arena *arena, const char *spec);
uint8_t *changed_weights(Arena *arena, const Program *program, uint8_t flags, const uint8_t *data, size_t size,
                         size_t *bytes);

/* --- arena.c: the same functions as compiler/support/arena.c has, but each piece of memory is an allocation of its
 * own, so that AddressSanitizer knows where it ends, and all of an input have a budget. */
void budget_begin(void);
bool arenas_free(void); /* all there are, as a failure ends them with the program; whether there was one */
void arenas_keep(void); /* those there are now stay: what is made once a process, before the first input */

#endif
