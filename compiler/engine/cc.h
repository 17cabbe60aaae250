/* cc.h: the C compiler of this machine. */
#ifndef CC_H
#define CC_H

#include "../attnc.h"

/* Returns the command of the C compiler, which is `named`, or else $CC, or else the first of clang, gcc and cc on the
 * path. The command may have options, as in `clang -O1`. The function fails on a machine without a C compiler; with
 * `or_interp` its message says that --engine interp needs no compiler. */
const char *cc_find(Arena *arena, const char *named, bool or_interp);

/* Whether a command can be run, whose program is the path of a file, or a name on the path. */
bool cc_exists(Arena *arena, const char *command);

/* The words of a command, then the words of `arguments`; both lists end with NULL. Spaces divide a command, unless the
 * whole command is the path of a program. */
const char *const *cc_words(Arena *arena, const char *command, const char *const *arguments);

/* A failure unless the command makes a program, or a shared library, of C that includes some headers alone. */
void cc_try(Arena *arena, const char *command, bool shared);

/* The command as the value of CC in a Makefile. */
const char *cc_for_make(Arena *arena, const char *command);

/* Runs a program and waits; its stderr passes through. Its TMPDIR is `scratch`, or attnc's own for NULL, so that files
 * that it leaves there when a signal ends it are removed with that folder. Returns the exit status. A program that
 * cannot be started, or that a signal ends, is a failure. */
int run_program(const Folder *scratch, const char *const *argv);

#endif
