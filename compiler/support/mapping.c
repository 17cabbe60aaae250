/* mapping.c: files that are mapped, and the end of the program where one of them is cut meanwhile. */
#define _POSIX_C_SOURCE 200809L
#include "../attnc.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct Mapping {
    struct Mapping *next;
    void *data;
    size_t size;
    const char *lost; /* the message if the file is cut */
} Mapping;

static Mapping *mappings; /* of this program, newest first */
static struct sigaction before;

static void unmap(void *with) {
    Mapping *mapping = with;
    Mapping **link = &mappings;
    while (*link && *link != mapping) link = &(*link)->next;
    if (*link) *link = mapping->next;
    munmap(mapping->data, mapping->size);
}

void mapping_lost(const void *address) {
    const Mapping *mapping = mappings;
    const uintptr_t at = (uintptr_t)address;
    while (mapping && (at < (uintptr_t)mapping->data || at - (uintptr_t)mapping->data >= mapping->size))
        mapping = mapping->next;
    if (!mapping) return;
    outputs_abandon();
    if (write(STDERR_FILENO, mapping->lost, strlen(mapping->lost)) < 0) _exit(EXIT_BUG);
    _exit(EXIT_USER);
}

/* The system sends SIGBUS where a page of a mapping lies beyond the end of its file. After a return from the handler
 * the same access is made again, and meets the action that stood there before. */
static void on_bus(int number, siginfo_t *info, void *context) {
    (void)context;
    mapping_lost(info->si_addr);
    sigaction(number, &before, NULL);
}

static void watch(void) {
    static bool watched;
    struct sigaction action = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
    if (!watched) sigaction(SIGBUS, &action, &before);
    watched = true;
}

MappedFile file_map(Arena *arena, const char *path) {
    MappedFile file = {.path = arena_copy(arena, path, strlen(path))};
    Mapping *mapping = arena_alloc(arena, sizeof *mapping);
    char *lost = arena_printf(arena, "attnc: error: %s: it was cut while it was read\n", path);
    text_disarm_line(lost, strlen(lost) - 1);
    int fd = file_open(path, &file.size);
    void *data = file.size ? mmap(NULL, file.size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    int error = errno;
    close(fd);
    if (data == MAP_FAILED) fail_system(error, "%s: cannot be mapped", path);
    if (!data) return file;
    watch();
    *mapping = (Mapping){mappings, data, file.size, lost};
    mappings = mapping;
    arena_on_free(arena, unmap, mapping);
    file.data = data;
    return file;
}
