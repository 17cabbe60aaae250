/* Runtime for generated code: a thread pool, read-only file maps and aligned memory. C11 and C++17, POSIX threads or
 * those of Windows. */
#ifndef ATTN_RUNTIME_H
#define ATTN_RUNTIME_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ATTN_MAX_THREADS = 256 };

typedef struct attn_pool attn_pool;

/* A file in memory: `size` bytes at `data`, aligned to at least 64 bytes. They must not be written. */
typedef struct attn_file {
    const void *data;
    size_t size;
    int loaded; /* nonzero: a copy that belongs to this process; 0: a map */
} attn_file;

/* Creates a pool of `threads` threads, 1 to ATTN_MAX_THREADS, including the thread that calls attn_pool_run: it starts
 * threads - 1 threads, with every signal blocked but those that a thread causes itself (SIGSEGV and so on). Returns
 * NULL with errno set on failure: EINVAL for a bad count, ENOMEM, or EAGAIN when the system refuses a thread. Callable
 * from any thread; a process may have several pools. After fork() the child must not use the pool. */
attn_pool *attn_pool_new(int threads);

/* Ends and joins the pool's threads and frees the pool. NULL is allowed. No attn_pool_run of this pool may be running,
 * so a task of the pool must not call this. */
void attn_pool_free(attn_pool *pool);

/* The number of threads of the pool, including the caller; 1 for NULL. Callable from any thread. */
int attn_pool_threads(const attn_pool *pool);

/* Calls task(with, i) exactly once for every i in 0..count-1 and returns when all calls have returned; count <= 0 does
 * nothing. Thread t runs the indices t, t + threads and so on, in rising order. Thread 0 is the caller; after its own
 * indices it also runs those of every thread that has not started yet. Writes of the caller before the call are visible
 * to the tasks, and writes of the tasks are visible to the caller afterwards.
 *
 * `pool` is an attn_pool *; with NULL all indices run in the caller. The same happens when the pool is busy, whether a
 * second thread calls or one of the pool's own tasks: the call never waits for the other run, so it cannot deadlock.
 * Tasks must therefore not wait for each other. A task must return: no longjmp, C++ exception or thread exit may leave
 * it. The function cannot fail.
 *
 * Waiting threads spin for about 50 microseconds and then sleep. If the pool had more threads than attn_cpu_count()
 * when it was created, they yield a few times instead of spinning. */
void attn_pool_run(void *pool, int count, void (*task)(void *with, int index), void *with);

/* The number of CPUs that this thread may run on, from its affinity mask where the system has one, otherwise the CPUs
 * online. At least 1; it can exceed ATTN_MAX_THREADS. Callable from any thread. */
int attn_cpu_count(void);

/* Asks the system to let this process use the tiles of AMX, matrices in registers of x86-64 processors. Returns 1 if it
 * may, and 0 where the processor or the system has none. The permission is for all threads, and it stays. NAME_options
 * has a field `tiles` for the result. Callable from any thread, more than once. */
int attn_allow_tiles(void);

/* Whether a thread finds its tiles unchanged after the system has run other threads on its processor. Some virtual
 * machines are reported to lose them. */
enum {
    ATTN_TILES_KEPT = 1,
    ATTN_TILES_LOST = 2,
    ATTN_TILES_INCONCLUSIVE = 3 /* the thread was never switched, or attn_allow_tiles gives 0 */
};

/* Returns one of these. The call takes about 20 ms, in which the thread sleeps many times. */
int attn_probe_tiles(void);

/* Maps the regular file at `path` privately and read-only into *out. Returns 0, or an errno value with *out zeroed:
 * EISDIR for a directory, EINVAL for an empty file or another kind of file, EFBIG when the file exceeds the address
 * space, or the error of open, fstat or mmap; on Windows, where `path` is UTF-8, the nearest to that of the system. The
 * file must not shrink while it is mapped: reading past its new end
 * raises SIGBUS. Callable from any thread, and all threads may read the map. */
int attn_map_file(const char *path, attn_file *out);

/* Reads the regular file at `path` into memory of attn_alloc. A map needs no copy, and all processes that map the file
 * share it. A copy can be in huge pages, which are read faster: that pays for weights larger than the caches, such as
 * those of a decoder, which reads all of them for every token. The errors are those of attn_map_file, ENOMEM, the error
 * of read, and EIO for a file that is truncated meanwhile. */
int attn_load_file(const char *path, attn_file *out);

/* Unmaps or frees the file and zeroes *file. NULL and an already zeroed file are allowed. No thread may still read the
 * file. */
void attn_close_file(attn_file *file);

/* Allocates at least `bytes` bytes of uninitialized memory, aligned to 64 bytes. From 4 MiB on the memory is aligned to
 * 2 MiB, rounded up to whole pages of 2 MiB, and advised to be huge pages where the system has them. Returns NULL with
 * errno ENOMEM on failure; 0 bytes give a valid pointer. Callable from any thread. */
void *attn_alloc(size_t bytes);

/* Frees what attn_alloc returned, from any thread. NULL is allowed. */
void attn_free(void *memory);

#ifdef __cplusplus
}
#endif

#endif
