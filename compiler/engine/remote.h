/* remote.h: generated C as a program of its own, which a command such as an emulator runs. Calls and results go over
 * its standard input and output; driver_serve.c.tmpl is the other end. A program that ends early, answers with too few
 * bytes or writes outside its memory is a failure. */
#ifndef REMOTE_H
#define REMOTE_H

#include "../attnc.h"

/* One call of the generated code, as its driver takes it. Arrays stand at their InputRole and OutputRole. */
enum { ATTNC_INPUTS = MOST_INPUTS, ATTNC_OUTPUTS = OUT_COUNT };
#include "../emit/templates/driver_call.h.tmpl"

typedef struct Remote Remote;

/* Starts `command`, words as cc_words divides them, with `program` as its last argument. */
Remote *remote_new(Arena *arena, const char *command, const char *program);

/* Later calls report each step to call->on_step, which can read the results of earlier steps by remote_see. */
int remote_init(Remote *remote, DriverCall *call, bool with_weights); /* sets `picked` */
/* input_bytes and output_bytes are the sizes of the arrays in the order of their roles; output_bytes may be NULL if
 * the call has no output. The call has `batch` states or sources, and the entry has n_steps steps. */
int remote_call(Remote *remote, EntryKind entry, const DriverCall *call, const size_t *input_bytes,
                const size_t *output_bytes, int n_steps);
/* Copies what the program has in the workspace, or in an output, of the running call to the same place here. */
void remote_see(Remote *remote, void *at, size_t bytes);
/* `how` is 's' (set up, with a source or NULL), 'c' (copy from a state) or 'r' (rewind to a number of rows). */
int remote_state(Remote *remote, char how, const void *state, uint64_t with);
const char *remote_text(Remote *remote, int status);

#endif
