/* memory.c: loaded before a program with LD_PRELOAD, it lets the FAULTS_AT-th allocation behind the begin of main fail,
 * and with FAULTS_ON=1 every one from there on, whoever asks: the program, libcjson, zlib or the C library.
 *
 * At the end of the program FAULTS_REPORT gets `allocations N`, how many there were, `live N`, those that were not
 * freed, and `descriptors N`, open above 2. Children are left alone. Threads' own are counted too. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What glibc gives to those who stand in front of it. */
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static atomic_long count, live;
static atomic_int begun;
static long fail_at;
static int from_there_on;
static const char *report_path;
static int (*real_main)(int, char **, char **);

static int is_denied(void) {
    if (!atomic_load(&begun)) return 0;
    long this = atomic_fetch_add(&count, 1) + 1;
    int denied = fail_at > 0 && (this == fail_at || (from_there_on && this > fail_at));
    if (denied) errno = ENOMEM;
    return denied;
}

static void *given(void *memory) {
    if (memory && atomic_load(&begun)) atomic_fetch_add(&live, 1);
    return memory;
}

void *malloc(size_t bytes) { return is_denied() ? NULL : given(__libc_malloc(bytes)); }
void *calloc(size_t n, size_t size) { return is_denied() ? NULL : given(__libc_calloc(n, size)); }
void *memalign(size_t align, size_t bytes) { return is_denied() ? NULL : given(__libc_memalign(align, bytes)); }
void *aligned_alloc(size_t align, size_t bytes) { return memalign(align, bytes); }

int posix_memalign(void **out, size_t align, size_t bytes) {
    int before = errno;
    void *memory = memalign(align, bytes);
    errno = before;
    if (!memory) return ENOMEM;
    *out = memory;
    return 0;
}

void *realloc(void *old, size_t bytes) {
    if (is_denied()) return NULL;
    return old ? __libc_realloc(old, bytes) : given(__libc_malloc(bytes));
}

void free(void *memory) {
    if (memory && atomic_load(&begun)) atomic_fetch_sub(&live, 1);
    __libc_free(memory);
}

static void report(void) {
    atomic_store(&begun, 0);
    FILE *to = fopen(report_path, "w");
    if (!to) return;
    DIR *list = opendir("/proc/self/fd");
    int open = 0, own = list ? dirfd(list) : -1;
    for (struct dirent *entry; list && (entry = readdir(list));) {
        int fd = atoi(entry->d_name);
        open += fd > 2 && fd != own && fd != fileno(to);
    }
    if (list) closedir(list);
    fprintf(to, "allocations %ld\nlive %ld\ndescriptors %d\n", atomic_load(&count), atomic_load(&live), open);
    fclose(to);
}

static int watched_main(int argc, char **argv, char **environment) {
    const char *at = getenv("FAULTS_AT"), *on = getenv("FAULTS_ON");
    report_path = getenv("FAULTS_REPORT");
    fail_at = at ? strtol(at, NULL, 10) : 0;
    from_there_on = on && strcmp(on, "1") == 0;
    unsetenv("LD_PRELOAD");
    if (report_path) atexit(report); /* the first, so the last to run */
    atomic_store(&begun, 1);
    return real_main(argc, argv, environment);
}

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end) {
    int (*next)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
    *(void **)&next = dlsym(RTLD_NEXT, "__libc_start_main");
    real_main = main;
    return next(watched_main, argc, argv, init, fini, rtld_fini, stack_end);
}
