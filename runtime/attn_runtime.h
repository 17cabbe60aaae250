/* Runtime for generated code: a thread pool, read-only file maps and aligned memory. C11 and C++17, POSIX threads. */
#ifndef ATTN_RUNTIME_H
#define ATTN_RUNTIME_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ATTN_MAX_THREADS = 256 };

typedef struct attn_pool attn_pool;

/* A file in memory: `size` bytes at `data`, at least 64-byte aligned, not to be written. */
typedef struct attn_file {
    const void *data;
    size_t size;
    int loaded; /* not 0: a copy of this process's own; 0: a map */
} attn_file;

/* A pool of `threads` threads, 1 to ATTN_MAX_THREADS, counting the one that calls attn_pool_run: threads - 1 are
 * created, all with every signal blocked. NULL with errno set on failure: EINVAL for a bad count, ENOMEM, or EAGAIN
 * when the system refuses a thread. Callable from any thread; a process may have several pools. A pool does not
 * survive fork() in the child. */
attn_pool *attn_pool_new(int threads);

/* Ends and joins the pool's threads and frees it. NULL is allowed. No attn_pool_run of this pool may be under way, so
 * never from inside one of its tasks. */
void attn_pool_free(attn_pool *pool);

/* Threads of the pool, counting the caller; 1 for NULL. Callable from any thread. */
int attn_pool_threads(const attn_pool *pool);

/* Calls task(with, i) exactly once for every i in 0..count-1 and returns when all are done; nothing for count <= 0.
 * Thread t has the indices t, t + threads and so on, in rising order; thread 0 is the caller, which takes over those of
 * a thread that has not begun when its own are done. What the caller wrote before is visible to the tasks, and what the
 * tasks wrote is visible to the caller after.
 *
 * `pool` is an attn_pool *; NULL runs all indices in the caller. So does a call that finds the pool busy, whether from
 * a second thread or from inside one of the pool's own tasks: it never waits for the other run and cannot deadlock.
 * Tasks must therefore not wait for each other. They must return: no longjmp, C++ exception or thread exit out of a
 * task. No errors of its own.
 *
 * Waiting threads spin for about 50 microseconds and then sleep. A pool that had more threads than attn_cpu_count()
 * when it was made spins hardly at all and yields instead. */
void attn_pool_run(void *pool, int count, void (*task)(void *with, int index), void *with);

/* CPUs this thread may run on: its affinity mask where the system has one, else the CPUs online. At least 1, and
 * possibly more than ATTN_MAX_THREADS. Callable from any thread. */
int attn_cpu_count(void);

/* Maps the regular file at `path` privately and read-only into *out. 0, or an errno value with *out zeroed: EISDIR for
 * a directory, EINVAL for an empty or other non-regular file, EFBIG when it exceeds the address space, or what open,
 * fstat or mmap gave. The file must not shrink while mapped: reading past its new end raises SIGBUS. Callable from any
 * thread; the map may be read by all. */
int attn_map_file(const char *path, attn_file *out);

/* Reads the regular file at `path` into memory of attn_alloc. A map costs no copy and is shared by all processes that
 * have it; a copy is had in huge pages where the system gives them, which read faster: for weights that do not fit a
 * cache, such as those of a decoder, whose every token reads them all. Errors as of attn_map_file, ENOMEM, what read
 * gave, and EIO for a file that is cut meanwhile. */
int attn_load_file(const char *path, attn_file *out);

/* Gives back what either function made and zeroes *file. NULL and an already zeroed file are allowed. No thread may
 * still be reading it. */
void attn_close_file(attn_file *file);

/* At least `bytes` bytes of uninitialized memory, 64-byte aligned. From 4 MiB up it is 2 MiB aligned, rounded up to
 * whole 2 MiB pages, and huge pages are asked for where the system has them. NULL with errno ENOMEM on failure; 0 bytes
 * give a valid pointer. Callable from any thread. */
void *attn_alloc(size_t bytes);

/* Frees what attn_alloc returned, from any thread. NULL is allowed. */
void attn_free(void *memory);

#ifdef __cplusplus
}
#endif

#endif
