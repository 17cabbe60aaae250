/* remote.h: generated C as a program of its own, run by an emulator or whatever else takes it to its machine, and asked
 * over its standard input and output: driver_serve.c.tmpl answers. A program that ends, writes beside what it was given
 * or answers with less is a failure. */
#ifndef REMOTE_H
#define REMOTE_H

#include "engine.h"

/* `command`: words, behind which `program` is put. */
Remote *remote_new(Arena *arena, const char *command, const char *program);

int remote_init(Remote *remote, DriverCall *call, bool with_weights); /* sets `picked` */
/* Bytes of inputs and outputs in the order of call_inputs and call_outputs; states and sources count `batch`. */
int remote_call(Remote *remote, char entry, const DriverCall *call, const size_t *input_bytes,
                const size_t *output_bytes);
/* 's', 'c' and 'r': init with a source or NULL, copy from, rewind to rows. */
int remote_state(Remote *remote, char how, const void *state, uint64_t with);
const char *remote_text(Remote *remote, int status);

#endif
