/* outputs.h: what the program puts into the file system. Included by attnc.h alone.
 *
 * A file is written aside, as PATH.part-PID, and renamed when it is whole and on the disk, so that a reader sees the
 * old file or the new one, never a half. What ends the program early takes away what lies aside, and its folders: a
 * failure, and the signals that a user, a terminal or a pipe sends. Only SIGKILL and a loss of power leave them. */
#ifndef OUTPUTS_H
#define OUTPUTS_H

#include <signal.h>
#include <sys/types.h>

typedef struct OutputFile OutputFile;
OutputFile *output_open(Arena *arena, const char *path);
FILE *output_stream(OutputFile *output);
void output_write(OutputFile *output, const void *bytes, size_t size);
void output_seek(OutputFile *output, uint64_t offset); /* to patch a header */
void output_commit(OutputFile *output);                /* flush, check, fsync, rename */
void outputs_discard(void);                            /* removes what was not committed */

/* Between these two, files that are committed stay aside; then they are renamed together, in their order. So those of
 * one command are all old or all new, but for what ends the program between two renames. */
void outputs_hold(void);
void outputs_release(void);

/* A new folder under TMPDIR; it and the files that were named in it go with the arena, or with the program. */
typedef struct Folder Folder;
Folder *folder_new(Arena *arena);
const char *folder_file(Folder *folder, const char *name); /* its path */
void folders_remove(void); /* as a handler of a signal may call it */

/* The signals above, unless one is ignored already. A child that is set is ended first, as it may write there. */
void interruptions_watch(void);
void interruptions_child(pid_t child); /* 0: none */
void interruptions_block(sigset_t *before);
void interruptions_restore(const sigset_t *before);

#endif
