/* cc.h: the C compiler of this machine. */
#ifndef CC_H
#define CC_H

#include "../attnc.h"

/* The command of the C compiler: `named`, else $CC, else the first on the path of clang, gcc and cc. A failure where
 * there is none; with `or_interp` the message says that --engine interp needs none. */
const char *cc_find(Arena *arena, const char *named, bool or_interp);

/* Whether a program can be run: the path of a file, or a name on the path. */
bool cc_exists(Arena *arena, const char *program);

/* Runs a program and waits; its stderr passes through. Returns the exit status. A program that cannot be started or
 * that a signal ends is a failure. */
int run_program(const char *const *argv);

#endif
