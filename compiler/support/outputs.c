/* outputs.c: files that are written, temporary folders, and the removal of both when the program ends early. */
#define _POSIX_C_SOURCE 200809L
#include "../attnc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---------------------------------------------------------------- files */

struct OutputFile {
    OutputFile *next; /* uncommitted outputs, newest first, which a failure removes */
    const char *path, *to, *aside; /* as given; the file; NULL for what is written in place */
    FILE *stream;
    off_t begin; /* of the output in the stream */
};

typedef struct MadeFolder {
    struct MadeFolder *next;
    const char *path;
} MadeFolder;

static MadeFolder *made_folders; /* newest first, as long as the command has not kept them */

static OutputFile *open_outputs;
static bool held;
static int held_files;

/* The number of the descriptor of this program that the path names; -1 of other paths. Such a path may lead to a file
 * that another program has open, which must not be replaced. */
static int own_descriptor(const char *path) {
    static const char *const beginnings[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "/dev/stdout") == 0) return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0) return STDERR_FILENO;
    for (int i = 0; i < 2; i++) {
        const size_t size = strlen(beginnings[i]);
        if (strncmp(path, beginnings[i], size) != 0) continue;
        const char *number = path + size;
        if (*number && strlen(number) < 6 && number[strspn(number, "0123456789")] == '\0')
            return (int)strtol(number, NULL, 10);
    }
    return -1;
}

bool output_is_stdout(const char *path) {
    struct stat file, standard;
    return stat(path, &file) == 0 && fstat(STDOUT_FILENO, &standard) == 0 && file.st_dev == standard.st_dev &&
           file.st_ino == standard.st_ino && !S_ISCHR(file.st_mode);
}

/* The file that a symbolic link names, if it is a regular one, so that the link stays. */
static const char *target_of(Arena *arena, const char *path) {
    struct stat info;
    if (lstat(path, &info) || !S_ISLNK(info.st_mode) || stat(path, &info) || !S_ISREG(info.st_mode)) return path;
    char *whole = realpath(path, NULL);
    if (!whole) fail_system(errno, "%s: cannot be written", path);
    const char *target = arena_copy(arena, whole, strlen(whole));
    free(whole);
    return target;
}

/* A pipe that no program reads would be waited for without end, and a reader may begin a moment later. */
static int open_special(const char *path) {
    const struct timespec pause = {.tv_nsec = 20000000};
    int fd = -1;
    for (int trial = 0; fd < 0 && trial < 50; trial++) {
        if (trial) nanosleep(&pause, NULL);
        fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0 && errno != ENXIO) return -1;
    }
    if (fd < 0) fail("%s: cannot be written: no program reads it", path);
    return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) == 0 ? fd : -1;
}

static void open_in_place(OutputFile *output, int own) {
    const int fd = own < 0 ? open_special(output->path) : dup(own);
    output->stream = fd < 0 ? NULL : fdopen(fd, "wb");
    if (!output->stream) fail_system(errno, "%s: cannot be written", output->path);
    const off_t begin = ftello(output->stream);
    output->begin = begin < 0 ? 0 : begin;
}

static _Noreturn void same_name(const char *path, const char *other) {
    fail("%s: its name and the name of `%s` are %s; give the model another name, or write it into another folder", path,
         other, strcmp(path_name(path), other) == 0 ? "the same" : "the same but for capitals");
}

/* Compares a file with the others of the command, and with those that its folder has. */
static void check_name(Arena *arena, const char *path) {
    for (const OutputFile *other = open_outputs; other; other = other->next)
        if (strcasecmp(other->path, path) == 0) same_name(path, path_name(other->path));
    const char *name = path_name(path);
    const char *folder = name == path ? "." : arena_copy(arena, path, (size_t)(name - path));
    const char *found = NULL;
    DIR *listing = opendir(folder);
    for (const struct dirent *entry; listing && !found && (entry = readdir(listing));)
        if (strcasecmp(entry->d_name, name) == 0 && strcmp(entry->d_name, name) != 0)
            found = arena_copy(arena, entry->d_name, strlen(entry->d_name));
    if (listing) closedir(listing);
    if (found) same_name(path, found);
}

OutputFile *output_open(Arena *arena, const char *path) {
    OutputFile *output = arena_alloc(arena, sizeof *output);
    output->path = arena_copy(arena, path, strlen(path));
    failure_cleanup(outputs_discard);
    const int own = own_descriptor(path);
    struct stat info;
    const bool in_place = own >= 0 || (stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode));
    if (held) check_name(arena, path);
    if (!in_place) {
        output->to = target_of(arena, output->path);
        output->aside = arena_printf(arena, "%s.part-%ld", output->to, (long)getpid());
        /* held outputs may lead to the same file, so their temporary names are numbered */
        if (held) output->aside = arena_printf(arena, "%s-%d", output->aside, ++held_files);
    }
    output->next = open_outputs;
    open_outputs = output; /* before the file exists, so that a signal always finds it listed */
    if (in_place) {
        open_in_place(output, own);
        return output;
    }
    output->stream = fopen(output->aside, "wb");
    if (!output->stream) fail_system(errno, "%s: cannot be written", path);
    return output;
}

static _Noreturn void fail_output(const OutputFile *output) {
    fail_system(errno, "%s: cannot be written", output->path);
}

/* Reads a byte of each page: where a mapped file was cut, a read ends the program with the name of that file, which a
 * failing write does not know. */
static void touch(const void *bytes, size_t size) {
    enum { PAGE = 4096 };
    const volatile uint8_t *at = bytes;
    for (size_t i = 0; i < size; i += PAGE) (void)at[i];
    if (size) (void)at[size - 1];
}

void output_write(OutputFile *output, const void *bytes, size_t size) {
    touch(bytes, size);
    if (size && fwrite(bytes, 1, size, output->stream) != size) fail_output(output);
}

void output_seek(OutputFile *output, uint64_t offset) {
    const bool appends = !output->aside && fcntl(fileno(output->stream), F_GETFL) & O_APPEND;
    if (!appends && fseeko(output->stream, output->begin + (off_t)offset, SEEK_SET) == 0) return;
    if (!appends && errno != ESPIPE) fail_output(output);
    fail("%s: cannot be written: the first bytes of this file are written last, which %s does not allow", output->path,
         appends ? "`>>`" : "a pipe or a terminal");
}

static void output_rename(OutputFile *output) {
    if (output->aside && rename(output->aside, output->to)) fail_output(output);
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

void write_text(Arena *arena, const char *path, const char *text) {
    OutputFile *output = output_open(arena, path);
    output_write(output, text, strlen(text));
    output_commit(output);
}

void output_copy(Arena *arena, const char *from, const char *to, size_t most) {
    size_t size;
    const char *bytes = file_read(arena, from, most, &size);
    OutputFile *output = output_open(arena, to);
    output_write(output, bytes, size);
    output_commit(output);
}

/* Removes those that are still empty. */
static void made_folders_remove(void) {
    for (const MadeFolder *made = made_folders; made; made = made->next) rmdir(made->path);
}

void outputs_discard(void) {
    for (OutputFile *output = open_outputs; output; output = output->next) {
        if (output->stream) fclose(output->stream);
        if (output->aside) unlink(output->aside);
    }
    open_outputs = NULL;
    made_folders_remove();
    made_folders = NULL;
    held = false;
}

void output_folder(Arena *arena, const char *path) {
    MadeFolder *made = arena_alloc(arena, sizeof *made);
    made->path = arena_copy(arena, path, strlen(path));
    failure_cleanup(outputs_discard);
    sigset_t before;
    interruptions_block(&before);
    const int error = mkdir(path, 0777) ? errno : 0;
    if (!error) {
        made->next = made_folders;
        made_folders = made;
    }
    interruptions_restore(&before);
    if (error && error != EEXIST) fail_system(error, "%s: the folder cannot be made", path);
}

void outputs_hold(void) { held = true; }

void outputs_release(void) {
    sigset_t before;
    held = false;
    interruptions_block(&before);
    while (open_outputs) {
        OutputFile *oldest = open_outputs;
        while (oldest->next) oldest = oldest->next;
        if (oldest->stream) bug("%s: renamed before it is whole", oldest->path);
        output_rename(oldest);
    }
    made_folders = NULL;
    interruptions_restore(&before);
}

/* ---------------------------------------------------------------- folders */

pid_t child_wait(pid_t child, int *status, int options) {
    pid_t ended;
    while ((ended = waitpid(child, status, options)) < 0 && errno == EINTR) {}
    return ended;
}

struct Folder {
    Arena *arena;
    char *path; /* absolute */
    const char *gone; /* its name while it is removed with files that are not listed */
    const char **files;
    int n, room;
    Folder *next;
};

static Folder *folders; /* those not yet removed; after a failure exit() removes them */

/* Removes a folder with what programs wrote into it. It gets another name first, so that a program of a program, which
 * may run on, makes no more files there. */
static void remove_whole(const Folder *folder) {
    const char *path = rename(folder->path, folder->gone) == 0 ? folder->gone : folder->path;
    const pid_t child = fork();
    if (child == 0) {
        execl("/bin/rm", "rm", "-rf", "--", path, (char *)NULL);
        _exit(1);
    }
    if (child > 0) child_wait(child, NULL, 0);
}

static void folder_empty(const Folder *folder) {
    for (int i = 0; i < folder->n; i++) unlink(folder->files[i]);
    if (rmdir(folder->path) && (errno == ENOTEMPTY || errno == EEXIST)) remove_whole(folder);
}

static void folder_remove(void *with) {
    Folder *folder = with;
    folder_empty(folder);
    Folder **link = &folders;
    while (*link && *link != folder) link = &(*link)->next;
    if (*link) *link = folder->next;
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
    char *whole = base && *base && *base != '/' ? realpath(base, NULL) : NULL;
    Folder *folder = arena_alloc(arena, sizeof *folder);
    folder->arena = arena;
    folder->path = arena_printf(arena, "%s/attnc-XXXXXX", whole ? whole : base && *base ? base : "/tmp");
    char *gone = arena_printf(arena, "%s.gone", folder->path);
    folder->gone = gone;
    free(whole);
    sigset_t before;
    interruptions_block(&before); /* a signal between mkdtemp and the list would leave the folder behind */
    int error = mkdtemp(folder->path) ? 0 : errno;
    memcpy(gone, folder->path, strlen(folder->path));
    folder->next = folders;
    if (!error) folders = folder;
    interruptions_restore(&before);
    if (error) fail_system(error, "%s: a folder for compiling cannot be made", folder->path);
    arena_on_free(arena, folder_remove, folder);
    return folder;
}

const char *folder_path(const Folder *folder) { return folder->path; }

const char *folder_file(Folder *folder, const char *name) {
    folder->files = arena_grow(folder->arena, folder->files, folder->n, &folder->room, sizeof *folder->files);
    folder->files[folder->n] = arena_printf(folder->arena, "%s/%s", folder->path, name);
    return folder->files[folder->n++];
}

/* ---------------------------------------------------------------- signals */

static const int ending[] = {SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGXCPU};
enum { ENDING = sizeof ending / sizeof *ending };

static volatile sig_atomic_t watching, running; /* process ids of this program and of its child */

void outputs_abandon(void) {
    if (running > 0 && kill((pid_t)running, SIGTERM) == 0) child_wait((pid_t)running, NULL, 0);
    for (const OutputFile *output = open_outputs; output; output = output->next)
        if (output->aside) unlink(output->aside);
    made_folders_remove();
    folders_remove();
    progress_hide();
}

/* Calls only functions that POSIX allows in a handler. SA_RESETHAND has restored the default action, so that the
 * signal raised at the end ends the program. */
static void on_ending(int number) {
    if (getpid() == watching) outputs_abandon(); /* else a child between fork and exec */
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
