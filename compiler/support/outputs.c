/* outputs.c: files that are written, temporary folders, and the removal of both when the program ends early. */
#define _POSIX_C_SOURCE 200809L
#include "../attnc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---------------------------------------------------------------- files */

struct OutputFile {
    OutputFile *next; /* uncommitted outputs, newest first, which a failure removes */
    const char *path, *aside; /* aside is NULL for a device or a pipe, which is written in place */
    FILE *stream;
};

static OutputFile *open_outputs;
static bool held;
static int held_files;

OutputFile *output_open(Arena *arena, const char *path) {
    OutputFile *output = arena_alloc(arena, sizeof *output);
    output->path = arena_copy(arena, path, strlen(path));
    struct stat info;
    bool in_place = stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
    if (!in_place) output->aside = arena_printf(arena, "%s.part-%ld", path, (long)getpid());
    /* held outputs may have the same path, so their temporary names are numbered */
    if (!in_place && held) output->aside = arena_printf(arena, "%s-%d", output->aside, ++held_files);
    failure_cleanup(outputs_discard);
    output->next = open_outputs;
    open_outputs = output; /* before the file exists, so that a signal always finds it listed */
    output->stream = fopen(in_place ? path : output->aside, "wb");
    if (!output->stream) fail_system(errno, "%s: cannot be written", path);
    return output;
}

static _Noreturn void fail_output(const OutputFile *output) {
    fail_system(errno, "%s: cannot be written", output->path);
}

void output_write(OutputFile *output, const void *bytes, size_t size) {
    if (size && fwrite(bytes, 1, size, output->stream) != size) fail_output(output);
}

void output_seek(OutputFile *output, uint64_t offset) {
    if (fseeko(output->stream, (off_t)offset, SEEK_SET)) fail_output(output);
}

static void output_rename(OutputFile *output) {
    if (output->aside && rename(output->aside, output->path)) fail_output(output);
    OutputFile **link = &open_outputs;
    while (*link && *link != output) link = &(*link)->next;
    if (*link) *link = output->next;
}

void output_commit(OutputFile *output) {
    if (fflush(output->stream) || ferror(output->stream)) fail_output(output);
    /* A pipe or a special file cannot be synced; any other refusal is an error of the disk. */
    if (fsync(fileno(output->stream)) && errno != EINVAL && errno != EROFS) fail_output(output);
    FILE *stream = output->stream;
    output->stream = NULL;
    if (fclose(stream)) fail_output(output);
    if (!held) output_rename(output);
}

void output_copy(Arena *arena, const char *from, const char *to, size_t most) {
    size_t size;
    const char *bytes = file_read(arena, from, most, &size);
    OutputFile *output = output_open(arena, to);
    output_write(output, bytes, size);
    output_commit(output);
}

void outputs_discard(void) {
    for (OutputFile *output = open_outputs; output; output = output->next) {
        if (output->stream) fclose(output->stream);
        if (output->aside) unlink(output->aside);
    }
    open_outputs = NULL;
    held = false;
}

void outputs_hold(void) { held = true; }

void outputs_release(void) {
    held = false;
    while (open_outputs) {
        OutputFile *oldest = open_outputs;
        while (oldest->next) oldest = oldest->next;
        if (oldest->stream) bug("%s: renamed before it is whole", oldest->path);
        output_rename(oldest);
    }
}

/* ---------------------------------------------------------------- folders */

struct Folder {
    Arena *arena;
    char *path;
    const char **files;
    int n, room;
    Folder *next;
};

static Folder *folders; /* those not yet removed; after a failure exit() removes them */

static void folder_empty(const Folder *folder) {
    for (int i = 0; i < folder->n; i++) unlink(folder->files[i]);
    rmdir(folder->path);
}

static void folder_remove(void *with) {
    Folder *folder = with;
    folder_empty(folder);
    for (Folder **at = &folders; *at; at = &(*at)->next)
        if (*at == folder) {
            *at = folder->next;
            break;
        }
}

void folders_remove(void) {
    for (const Folder *folder = folders; folder; folder = folder->next) folder_empty(folder);
    folders = NULL;
}

Folder *folder_new(Arena *arena) {
    static bool registered;
    if (!registered) atexit(folders_remove);
    registered = true;
    const char *base = getenv("TMPDIR");
    Folder *folder = arena_alloc(arena, sizeof *folder);
    folder->arena = arena;
    folder->path = arena_printf(arena, "%s/attnc-XXXXXX", base && *base ? base : "/tmp");
    sigset_t before;
    interruptions_block(&before); /* a signal between mkdtemp and the list would leave the folder behind */
    int error = mkdtemp(folder->path) ? 0 : errno;
    folder->next = folders;
    if (!error) folders = folder;
    interruptions_restore(&before);
    if (error) fail_system(error, "%s: a folder for compiling cannot be made", folder->path);
    arena_on_free(arena, folder_remove, folder);
    return folder;
}

const char *folder_file(Folder *folder, const char *name) {
    folder->files = arena_grow(folder->arena, folder->files, folder->n, &folder->room, sizeof *folder->files);
    folder->files[folder->n] = arena_printf(folder->arena, "%s/%s", folder->path, name);
    return folder->files[folder->n++];
}

/* ---------------------------------------------------------------- signals */

static const int ending[] = {SIGHUP, SIGINT, SIGPIPE, SIGTERM};
enum { ENDING = sizeof ending / sizeof *ending };

static volatile sig_atomic_t watching, running; /* process ids of this program and of its child */

/* Calls only functions that POSIX allows in a handler. SA_RESETHAND has restored the default action, so that the
 * signal raised at the end ends the program. */
static void on_ending(int number) {
    if (getpid() != watching) { /* a child between fork and exec */
        raise(number);
        return;
    }
    if (running > 0 && kill((pid_t)running, SIGTERM) == 0)
        while (waitpid((pid_t)running, NULL, 0) < 0 && errno == EINTR) continue;
    for (const OutputFile *output = open_outputs; output; output = output->next)
        if (output->aside) unlink(output->aside);
    folders_remove();
    progress_hide();
    raise(number);
}

void interruptions_watch(void) {
    watching = getpid();
    struct sigaction watch = {.sa_handler = on_ending, .sa_flags = (int)SA_RESETHAND}, old;
    for (int i = 0; i < ENDING; i++) sigaddset(&watch.sa_mask, ending[i]);
    for (int i = 0; i < ENDING; i++)
        if (sigaction(ending[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL) sigaction(ending[i], &watch, NULL);
}

void interruptions_child(pid_t child) { running = child; }

void interruptions_block(sigset_t *before) {
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < ENDING; i++) sigaddset(&set, ending[i]);
    sigprocmask(SIG_BLOCK, &set, before);
}

void interruptions_restore(const sigset_t *before) { sigprocmask(SIG_SETMASK, before, NULL); }
