/* outputs.h: files and folders that the program makes. Included by attnc.h alone.
 *
 * A file is written as PATH.part-PID and renamed when it is whole and on the disk, so that a reader sees the old file
 * or the new one, never a part. Where PATH is a symbolic link, this holds for the file that the link names. A device, a
 * pipe and the program's own descriptors, such as /dev/stdout, are written in place. A failure removes unfinished
 * files, temporary folders and folders that were made for files, and so do the signals that a user, a terminal or a
 * pipe sends; SIGKILL and a loss of power leave them. */
#ifndef OUTPUTS_H
#define OUTPUTS_H

#include <signal.h>
#include <sys/types.h>

typedef struct OutputFile OutputFile;
OutputFile *output_open(Arena *arena, const char *path);
void output_write(OutputFile *output, const void *bytes, size_t size);
void output_seek(OutputFile *output, uint64_t offset); /* for a header that is written last; fails in a pipe */
void output_commit(OutputFile *output);                /* flushes, checks, syncs and renames the file */
void write_text(Arena *arena, const char *path, const char *text); /* a whole file */
void output_copy(Arena *arena, const char *from, const char *to, size_t most); /* of a file of at most so many bytes */
void outputs_discard(void);                            /* removes all files that are not committed */
bool output_is_stdout(const char *path);               /* whether the path names the file of standard output */
/* Makes the folder where it does not exist. It is removed again, if it is empty, by a failure or a signal before
 * outputs_release. */
void output_folder(Arena *arena, const char *path);

/* Files that are committed between these two calls are renamed by the second one, together and in their order, so that
 * those of a command are all old or all new unless the machine stops between two renames. A failure if two of them, or
 * one of them and another file of its folder, have names that differ in capitals alone: some systems hold them for the
 * same file. */
void outputs_hold(void);
void outputs_release(void);

/* Makes a folder under TMPDIR. The folder and its files are removed with the arena, or when the program ends. */
typedef struct Folder Folder;
Folder *folder_new(Arena *arena);
const char *folder_path(const Folder *folder); /* absolute */
const char *folder_file(Folder *folder, const char *name); /* the path of a file in the folder */
void folders_remove(void); /* removes all of them; a signal handler may call it */

/* Calls waitpid again where a signal interrupts it; a signal handler may call it. */
pid_t child_wait(pid_t child, int *status, int options);

/* Ends the child, and removes unfinished files and all folders; a signal handler may call it before the program ends.
 * The program must not continue. */
void outputs_abandon(void);

/* Handles the signals named above, except those that are ignored already. The handler first ends the child, which may
 * still write into a folder. */
void interruptions_watch(void);
void interruptions_child(pid_t child); /* 0: no child runs */
void interruptions_block(sigset_t *before);
void interruptions_restore(const sigset_t *before);

#endif
