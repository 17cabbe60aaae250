/* target.c: a failure trap, files in memory, and the promises that hold for every input. */
#include "target.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The harness keeps its descriptors above those that the code under test gets. */
enum { FIRST_OWN = 100 };

static int report;

/* The fuzzer closes stderr, where some of what is tested writes. */
__attribute__((constructor)) static void keep_stderr(void) {
    report = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, FIRST_OWN);
}

void broken(const char *promise) {
    dprintf(report, "BROKEN: %s\n", promise);
    abort();
}

/* ---------------------------------------------------------------- files in memory */

enum { MOST_FILES = 16 };

typedef struct MemoryFile {
    const char *name;
    int descriptor;
    bool there;
    char path[128]; /* a link to the descriptor */
} MemoryFile;

static char folder[96], inner[2][100]; /* and its folders `1` and `2`, once a file is in there */
static MemoryFile files[MOST_FILES];
static int n_files;

static void drop_folder(void) {
    for (int i = 0; i < n_files; i++) unlink(files[i].path);
    for (int i = 0; i < 2; i++)
        if (*inner[i]) rmdir(inner[i]);
    rmdir(folder);
}

static void make_folder(void) {
    const char *parent = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.64s/attnc-fuzz-XXXXXX", parent ? parent : "/tmp");
    if (!mkdtemp(folder)) broken("the harness has no folder");
    atexit(drop_folder);
}

static MemoryFile *file_known(const char *name) {
    for (int i = 0; i < n_files; i++)
        if (strcmp(files[i].name, name) == 0) return &files[i];
    return NULL;
}

static void link_file(MemoryFile *file) {
    char target[40];
    snprintf(target, sizeof target, "/proc/self/fd/%d", file->descriptor);
    if (symlink(target, file->path)) broken("the harness has no file in memory");
    file->there = true;
}

static MemoryFile *file_of(const char *name) {
    if (file_known(name)) return file_known(name);
    if (!*folder) make_folder();
    int place = name[1] == '/' ? name[0] - '1' : -1;
    if (place >= 0 && !*inner[place]) {
        snprintf(inner[place], sizeof inner[place], "%s/%d", folder, place + 1);
        if (mkdir(inner[place], 0700)) broken("the harness has no folder");
    }
    if (n_files == MOST_FILES) broken("the harness has too many files");
    MemoryFile *file = &files[n_files++];
    file->name = name;
    int descriptor = memfd_create(name, MFD_CLOEXEC);
    file->descriptor = fcntl(descriptor, F_DUPFD_CLOEXEC, FIRST_OWN);
    close(descriptor);
    if (file->descriptor < 0) broken("the harness has no file in memory");
    snprintf(file->path, sizeof file->path, "%s/%s", folder, name);
    return file;
}

const char *memory_file(Arena *arena, const char *name, const void *data, size_t size) {
    MemoryFile *file = file_of(name);
    if (ftruncate(file->descriptor, 0) || pwrite(file->descriptor, data, size, 0) != (ssize_t)size)
        broken("the harness cannot write a file");
    if (!file->there) link_file(file);
    return arena_copy(arena, file->path, strlen(file->path));
}

void memory_file_absent(const char *name) {
    MemoryFile *file = file_known(name);
    if (!file || !file->there) return;
    if (unlink(file->path)) broken("the harness cannot take a file away");
    file->there = false;
}

/* ---------------------------------------------------------------- one input */

static int next_descriptor(void) {
    int descriptor = dup(STDIN_FILENO);
    if (descriptor >= 0) close(descriptor);
    return descriptor;
}

/* Lets the compiler read its definitions, which it keeps. */
static void read_definitions(void) {
    static bool done;
    if (done) return;
    Arena *arena = arena_new();
    rule_causal(arena);
    arena_free(arena);
    arenas_keep();
    done = true;
}

int run_target(ReadInput *read, const uint8_t *data, size_t size) {
    volatile int status = EXIT_FINE; /* set behind setjmp */
    budget_begin();
    read_definitions();
    const int descriptor = next_descriptor();
    FailureTrap trap;
    budget_begin();
    Arena *const arena = arena_new();
    if (failure_trap(&trap) == 0) {
        read(arena, data, size);
        failure_release(&trap);
        arena_free(arena);
        if (arenas_free()) broken("an arena is not freed");
    } else {
        status = trap.status;
        arenas_free();
    }
    if (status == EXIT_BUG) broken(trap.message);
    if (status != EXIT_FINE && status != EXIT_USER && status != EXIT_CANNOT && status != EXIT_MEMORY)
        broken("a failure with a status that no file can cause");
    if (status != EXIT_FINE && !trap.message[0]) broken("a failure without a message");
    if (next_descriptor() != descriptor) broken("a file stays open");
    return 0;
}
