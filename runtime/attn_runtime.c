/* See attn_runtime.h. Needs POSIX threads and mmap, or Windows 7 and later; uses affinity masks and huge pages where
 * the system has them. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif
#ifndef _DARWIN_C_SOURCE
#define _DARWIN_C_SOURCE
#endif

#include "attn_runtime.h"

#include <errno.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <malloc.h>
#include <process.h>
#include <windows.h>
#else
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#endif
#if defined(__linux__) && defined(__x86_64__)
#include <cpuid.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#endif

/* Two lines of 64 bytes: x86 prefetches lines in pairs, and some arm cores have lines of 128 bytes. */
#define CACHE_LINE 128

#define SPIN_NS 50000
#define PAUSES_PER_CLOCK_READ 32
#define CROWDED_YIELDS 4

#define VECTOR_ALIGNMENT ((size_t)64)
#define HUGE_PAGE ((size_t)2 << 20)
#define HUGE_THRESHOLD ((size_t)4 << 20)

/* ---------------------------------------------------------------- locks, threads and time of the system */

#ifdef _WIN32

typedef SRWLOCK Mutex;
typedef CONDITION_VARIABLE Condition;
typedef HANDLE Thread;
#define THREAD_RESULT unsigned __stdcall
#define THREAD_END 0

static void mutex_lock(Mutex *mutex) { AcquireSRWLockExclusive(mutex); }
static void mutex_unlock(Mutex *mutex) { ReleaseSRWLockExclusive(mutex); }
static void condition_wait(Condition *c, Mutex *mutex) { SleepConditionVariableSRW(c, mutex, INFINITE, 0); }
static void condition_signal(Condition *c) { WakeConditionVariable(c); }
static void condition_broadcast(Condition *c) { WakeAllConditionVariable(c); }
static void yield_thread(void) { SwitchToThread(); }

static int locks_begin(Mutex *mutex, Condition *a, Condition *b) {
    InitializeSRWLock(mutex);
    InitializeConditionVariable(a);
    InitializeConditionVariable(b);
    return 0;
}

static void locks_end(Mutex *mutex, Condition *a, Condition *b) { (void)mutex, (void)a, (void)b; }

static int thread_begin(Thread *thread, unsigned(__stdcall *run)(void *), void *with) {
    *thread = (HANDLE)_beginthreadex(NULL, 0, run, with, 0, NULL);
    return *thread == NULL ? EAGAIN : 0;
}

static void thread_join(Thread thread) {
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
}

static int64_t monotonic_ns(void) {
    LARGE_INTEGER count, rate;
    QueryPerformanceCounter(&count);
    QueryPerformanceFrequency(&rate);
    return (int64_t)((double)count.QuadPart * 1e9 / (double)rate.QuadPart);
}

/* Returns 0 or an errno value. */
static int memory_aligned(void **memory, size_t alignment, size_t bytes) {
    *memory = _aligned_malloc(bytes, alignment);
    return *memory == NULL ? ENOMEM : 0;
}

static void memory_free(void *memory) { _aligned_free(memory); }

#else

typedef pthread_mutex_t Mutex;
typedef pthread_cond_t Condition;
typedef pthread_t Thread;
#define THREAD_RESULT void *
#define THREAD_END NULL

static void mutex_lock(Mutex *mutex) { pthread_mutex_lock(mutex); }
static void mutex_unlock(Mutex *mutex) { pthread_mutex_unlock(mutex); }
static void condition_wait(Condition *c, Mutex *mutex) { pthread_cond_wait(c, mutex); }
static void condition_signal(Condition *c) { pthread_cond_signal(c); }
static void condition_broadcast(Condition *c) { pthread_cond_broadcast(c); }
static void yield_thread(void) { sched_yield(); }

/* Returns 0, or an errno value after destroying what it had initialized. */
static int locks_begin(Mutex *mutex, Condition *a, Condition *b) {
    int error = pthread_mutex_init(mutex, NULL);
    if (error != 0) {
        return error;
    }
    error = pthread_cond_init(a, NULL);
    if (error == 0) {
        error = pthread_cond_init(b, NULL);
        if (error == 0) {
            return 0;
        }
        pthread_cond_destroy(a);
    }
    pthread_mutex_destroy(mutex);
    return error;
}

static void locks_end(Mutex *mutex, Condition *a, Condition *b) {
    pthread_cond_destroy(b);
    pthread_cond_destroy(a);
    pthread_mutex_destroy(mutex);
}

/* Signals that a thread causes itself: were they blocked, the system would end the process without calling the
 * application's handler. */
static const int FAULTS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

/* Starts a thread with all other signals blocked. */
static int thread_begin(Thread *thread, void *(*run)(void *), void *with) {
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof FAULTS / sizeof *FAULTS; i++) {
        sigdelset(&blocked, FAULTS[i]);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    int error = pthread_create(thread, NULL, run, with);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static void thread_join(Thread thread) { pthread_join(thread, NULL); }

static int64_t monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int memory_aligned(void **memory, size_t alignment, size_t bytes) {
    return posix_memalign(memory, alignment, bytes);
}

static void memory_free(void *memory) { free(memory); }

#endif

/* ---------------------------------------------------------------- the pool */

/* A ticket identifies a run by its number; its low bits are the number of threads that take part, including the caller.
 * A worker reads both in one load, so a worker that takes no part never reads the fields of a run that may be over. */
#define TICKET_BITS 9
#define TICKET_STOP 0 /* a number of threads that ends the workers */

typedef struct Worker {
    alignas(CACHE_LINE) _Atomic uint64_t done; /* ticket of the last run whose share has finished */
    _Atomic uint64_t begun;                    /* ticket of the last run whose share has begun, in whichever thread */
    attn_pool *pool;
    int index;
    Thread thread;
} Worker;

struct attn_pool {
    /* The current run. The thread that holds `busy` writes it, the ticket last. */
    alignas(CACHE_LINE) _Atomic uint64_t ticket;
    void (*task)(void *with, int index);
    void *with;
    int count;

    alignas(CACHE_LINE) atomic_bool busy;

    /* Only threads that go to sleep write these, so the fast path reads them from its cache. */
    alignas(CACHE_LINE) atomic_int sleepers; /* workers that wait for `posted` or are about to */
    atomic_int awaited;                      /* the worker for which the caller sleeps; 0 while the caller is awake */
    int threads;
    bool crowded;

    alignas(CACHE_LINE) Mutex mutex;
    Condition posted;
    Condition finished;

    Worker workers[]; /* threads - 1; thread t is workers[t - 1] */
};

static void cpu_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __asm__ volatile("pause" ::: "memory");
#elif defined(__aarch64__) || (defined(__ARM_ARCH) && __ARM_ARCH >= 7)
    __asm__ volatile("yield" ::: "memory");
#endif
}

/* Spins until *word equals `value` (with `equal`) or differs from it (without). Returns false when the caller should
 * sleep. When it returns true, writes before the store of *word are visible. */
static bool spin(const attn_pool *pool, _Atomic uint64_t *word, uint64_t value, bool equal) {
    int64_t start = 0;
    for (int round = 0;; round++) {
        for (int i = 0; i < PAUSES_PER_CLOCK_READ; i++) {
            if ((atomic_load_explicit(word, memory_order_acquire) == value) == equal) {
                return true;
            }
            cpu_relax();
        }
        if (pool->crowded) {
            if (round == CROWDED_YIELDS) {
                return false;
            }
            yield_thread();
        } else if (round == 0) {
            start = monotonic_ns();
        } else if (monotonic_ns() - start >= SPIN_NS) {
            return false;
        }
    }
}

/* Workers and caller sleep by the same protocol: the sleeper announces itself and then reads the word, and the waker
 * stores the word and then looks for sleepers; all four accesses are sequentially consistent. Therefore the sleeper
 * sees the new word or the waker sees the sleeper. The mutex keeps the wake-up from coming between the sleeper's check
 * and its wait. */

static uint64_t await_ticket(attn_pool *pool, uint64_t seen) {
    if (!spin(pool, &pool->ticket, seen, false)) {
        mutex_lock(&pool->mutex);
        atomic_fetch_add(&pool->sleepers, 1);
        while (atomic_load(&pool->ticket) == seen) {
            condition_wait(&pool->posted, &pool->mutex);
        }
        atomic_fetch_sub(&pool->sleepers, 1);
        mutex_unlock(&pool->mutex);
    }
    return atomic_load_explicit(&pool->ticket, memory_order_acquire);
}

static void await_worker(attn_pool *pool, Worker *worker, uint64_t ticket) {
    if (!spin(pool, &worker->done, ticket, true)) {
        mutex_lock(&pool->mutex);
        atomic_store(&pool->awaited, worker->index);
        while (atomic_load(&worker->done) != ticket) {
            condition_wait(&pool->finished, &pool->mutex);
        }
        atomic_store(&pool->awaited, 0);
        mutex_unlock(&pool->mutex);
    }
}

/* Starts a run of `parts` threads, or ends the workers with TICKET_STOP. Returns the ticket of the run. */
static uint64_t post_ticket(attn_pool *pool, int parts) {
    uint64_t number = (atomic_load_explicit(&pool->ticket, memory_order_relaxed) >> TICKET_BITS) + 1;
    uint64_t ticket = number << TICKET_BITS | (uint64_t)parts;
    atomic_store(&pool->ticket, ticket);
    if (atomic_load(&pool->sleepers) != 0) {
        mutex_lock(&pool->mutex);
        condition_broadcast(&pool->posted);
        mutex_unlock(&pool->mutex);
    }
    return ticket;
}

static void post_done(attn_pool *pool, Worker *worker, uint64_t ticket) {
    atomic_store(&worker->done, ticket);
    if (atomic_load(&pool->awaited) == worker->index) {
        mutex_lock(&pool->mutex);
        condition_signal(&pool->finished);
        mutex_unlock(&pool->mutex);
    }
}

/* Runs the indices below `count` that belong to thread `first` of `step`. */
static void run_share(int first, int step, int count, void (*task)(void *with, int index), void *with) {
    for (int64_t i = first; i < count; i += step) {
        task(with, (int)i);
    }
}

/* Claims a worker's share of a run; only one claim succeeds, that of the worker or of the caller. Tickets only rise, so
 * a worker that slept through a run finds its share already begun. */
static bool begin_share(Worker *worker, uint64_t ticket) {
    uint64_t begun = atomic_load_explicit(&worker->begun, memory_order_relaxed);
    while (begun < ticket) {
        if (atomic_compare_exchange_weak_explicit(&worker->begun, &begun, ticket, memory_order_acq_rel,
                                                  memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

static THREAD_RESULT worker_main(void *argument) {
    Worker *worker = argument;
    attn_pool *pool = worker->pool;
    uint64_t ticket = 0;
    for (;;) {
        ticket = await_ticket(pool, ticket);
        int parts = (int)(ticket & ((1u << TICKET_BITS) - 1));
        if (parts == TICKET_STOP) {
            return THREAD_END;
        }
        if (worker->index < parts && begin_share(worker, ticket)) {
            run_share(worker->index, pool->threads, pool->count, pool->task, pool->with);
            post_done(pool, worker, ticket);
        }
    }
}

/* Returns a pool whose workers are not started yet, or NULL with errno set. */
static attn_pool *pool_alloc(int threads) {
    void *memory;
    size_t bytes = sizeof(attn_pool) + (size_t)(threads - 1) * sizeof(Worker);
    int error = memory_aligned(&memory, CACHE_LINE, bytes);
    if (error != 0) {
        errno = error;
        return NULL;
    }
    attn_pool *pool = memory;
    atomic_init(&pool->ticket, 0);
    pool->task = NULL;
    pool->with = NULL;
    pool->count = 0;
    atomic_init(&pool->busy, false);
    atomic_init(&pool->sleepers, 0);
    atomic_init(&pool->awaited, 0);
    pool->threads = threads;
    pool->crowded = threads > attn_cpu_count();
    for (int t = 1; t < threads; t++) {
        Worker *worker = &pool->workers[t - 1];
        atomic_init(&worker->done, 0);
        atomic_init(&worker->begun, 0);
        worker->pool = pool;
        worker->index = t;
    }
    if ((error = locks_begin(&pool->mutex, &pool->posted, &pool->finished)) != 0) {
        memory_free(pool);
        errno = error;
        return NULL;
    }
    return pool;
}

/* Ends the first `started` workers and frees the pool. */
static void pool_destroy(attn_pool *pool, int started) {
    post_ticket(pool, TICKET_STOP);
    for (int i = 0; i < started; i++) {
        thread_join(pool->workers[i].thread);
    }
    locks_end(&pool->mutex, &pool->posted, &pool->finished);
    memory_free(pool);
}

attn_pool *attn_pool_new(int threads) {
    if (threads < 1 || threads > ATTN_MAX_THREADS) {
        errno = EINVAL;
        return NULL;
    }
    attn_pool *pool = pool_alloc(threads);
    if (pool == NULL) {
        return NULL;
    }
    int started = 0;
    int error = 0;
    while (started < threads - 1 && error == 0) {
        Worker *worker = &pool->workers[started];
        error = thread_begin(&worker->thread, worker_main, worker);
        started += error == 0;
    }
    if (error != 0) {
        pool_destroy(pool, started);
        errno = error;
        return NULL;
    }
    return pool;
}

void attn_pool_free(attn_pool *pool) {
    if (pool != NULL) {
        pool_destroy(pool, pool->threads - 1);
    }
}

int attn_pool_threads(const attn_pool *pool) {
    return pool == NULL ? 1 : pool->threads;
}

void attn_pool_run(void *pool_pointer, int count, void (*task)(void *with, int index), void *with) {
    attn_pool *pool = pool_pointer;
    if (pool == NULL || pool->threads == 1 || count <= 1 ||
        atomic_exchange_explicit(&pool->busy, true, memory_order_acquire)) {
        run_share(0, 1, count, task, with);
        return;
    }
    int parts = count < pool->threads ? count : pool->threads;
    pool->task = task;
    pool->with = with;
    pool->count = count;
    uint64_t ticket = post_ticket(pool, parts);
    run_share(0, pool->threads, count, task, with);
    for (int t = 1; t < parts; t++) {
        Worker *worker = &pool->workers[t - 1];
        if (begin_share(worker, ticket)) { /* the worker sleeps or waits for a CPU */
            run_share(t, pool->threads, count, task, with);
            atomic_store_explicit(&worker->done, ticket, memory_order_relaxed);
        }
    }
    for (int t = 1; t < parts; t++) {
        await_worker(pool, &pool->workers[t - 1], ticket);
    }
    atomic_store_explicit(&pool->busy, false, memory_order_release);
}

int attn_cpu_count(void) {
#if defined(__linux__) && defined(CPU_ALLOC)
    /* The call fails with EINVAL as long as the set is smaller than the kernel's. */
    for (size_t cpus = 1024; cpus <= 65536; cpus *= 4) {
        cpu_set_t *set = CPU_ALLOC(cpus);
        if (set == NULL) {
            break;
        }
        size_t bytes = CPU_ALLOC_SIZE(cpus);
        int usable = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (usable > 0) {
            return usable;
        }
    }
#endif
#ifdef _WIN32
    DWORD_PTR usable, all;
    if (GetProcessAffinityMask(GetCurrentProcess(), &usable, &all) && usable != 0) {
        return __builtin_popcountll((unsigned long long)usable);
    }
    const DWORD online = GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
#else
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
#endif
    return online < 1 ? 1 : (int)online;
}

void *attn_alloc(size_t bytes) {
    size_t alignment = bytes >= HUGE_THRESHOLD ? HUGE_PAGE : VECTOR_ALIGNMENT;
    if (bytes > SIZE_MAX - alignment) {
        errno = ENOMEM;
        return NULL;
    }
    size_t rounded = bytes == 0 ? alignment : (bytes + alignment - 1) / alignment * alignment;
    void *memory;
    int error = memory_aligned(&memory, alignment, rounded);
    if (error != 0) {
        errno = error;
        return NULL;
    }
#ifdef MADV_HUGEPAGE
    if (alignment == HUGE_PAGE) {
        int before = errno;
        madvise(memory, rounded, MADV_HUGEPAGE); /* only advice; a kernel without huge pages rejects it */
        errno = before;
    }
#endif
    return memory;
}

void attn_free(void *memory) {
    memory_free(memory);
}

/* ---------------------------------------------------------------- files */

#ifdef _WIN32

/* The errno value of the last error. */
static int last_error(void) {
    switch (GetLastError()) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_NAME: return ENOENT;
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION: return EACCES;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY: return ENOMEM;
    default: return EIO;
    }
}

static int map_bytes(HANDLE file, size_t size, attn_file *out) {
    HANDLE mapping = CreateFileMappingW(file, NULL, PAGE_READONLY, 0, 0, NULL);
    if (mapping == NULL) {
        return last_error();
    }
    const void *data = MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, size);
    const int error = data == NULL ? last_error() : 0;
    CloseHandle(mapping); /* the view keeps it */
    if (error == 0) {
        *out = (attn_file){data, size, 0};
    }
    return error;
}

static int load_bytes(HANDLE file, size_t size, attn_file *out) {
    unsigned char *data = attn_alloc(size);
    if (data == NULL) {
        return ENOMEM;
    }
    for (size_t have = 0; have < size;) {
        const DWORD most = size - have > 1u << 30 ? 1u << 30 : (DWORD)(size - have);
        DWORD got = 0;
        if (!ReadFile(file, data + have, most, &got, NULL) || got == 0) {
            const int error = got == 0 ? EIO : last_error();
            attn_free(data);
            return error;
        }
        have += got;
    }
    *out = (attn_file){data, size, 1};
    return 0;
}

/* Opens a file, whose path is in UTF-8. */
static int open_path(const char *path, HANDLE *file) {
    const int length = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, NULL, 0);
    wchar_t *wide = length > 0 ? malloc((size_t)length * sizeof *wide) : NULL;
    if (wide == NULL) {
        return length > 0 ? ENOMEM : ENOENT;
    }
    MultiByteToWideChar(CP_UTF8, 0, path, -1, wide, length);
    const DWORD kind = GetFileAttributesW(wide);
    int error = kind == INVALID_FILE_ATTRIBUTES ? last_error() : kind & FILE_ATTRIBUTE_DIRECTORY ? EISDIR : 0;
    if (error == 0) {
        *file = CreateFileW(wide, GENERIC_READ, FILE_SHARE_READ, NULL, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
        error = *file == INVALID_HANDLE_VALUE ? last_error() : 0;
    }
    free(wide);
    return error;
}

static int open_file(const char *path, int (*get)(HANDLE file, size_t size, attn_file *out), attn_file *out) {
    *out = (attn_file){NULL, 0, 0};
    HANDLE file;
    LARGE_INTEGER size;
    int error = open_path(path, &file);
    if (error != 0) {
        return error;
    }
    if (GetFileType(file) != FILE_TYPE_DISK || !GetFileSizeEx(file, &size) || size.QuadPart <= 0) {
        error = EINVAL;
    } else {
        error = (uint64_t)size.QuadPart > SIZE_MAX ? EFBIG : get(file, (size_t)size.QuadPart, out);
    }
    CloseHandle(file);
    return error;
}

static void unmap(void *data, size_t size) {
    (void)size;
    UnmapViewOfFile(data);
}

#else

/* Returns 0 or an errno value. Writes *size only on success. */
static int regular_size(int descriptor, size_t *size) {
    struct stat status;
    if (fstat(descriptor, &status) != 0) {
        return errno;
    }
    if (S_ISDIR(status.st_mode)) {
        return EISDIR;
    }
    if (!S_ISREG(status.st_mode) || status.st_size <= 0) {
        return EINVAL;
    }
    if ((off_t)(size_t)status.st_size != status.st_size) {
        return EFBIG;
    }
    *size = (size_t)status.st_size;
    return 0;
}

static int map_bytes(int descriptor, size_t size, attn_file *out) {
    void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (data == MAP_FAILED) {
        return errno;
    }
    *out = (attn_file){data, size, 0};
    return 0;
}

static int load_bytes(int descriptor, size_t size, attn_file *out) {
    unsigned char *data = attn_alloc(size);
    if (data == NULL) {
        return ENOMEM;
    }
    for (size_t have = 0; have < size;) {
        ssize_t got = read(descriptor, data + have, size - have);
        if (got > 0) {
            have += (size_t)got;
        } else if (got == 0 || errno != EINTR) {
            int error = got == 0 ? EIO : errno; /* the file was truncated while being read */
            attn_free(data);
            return error;
        }
    }
    *out = (attn_file){data, size, 1};
    return 0;
}

static int open_file(const char *path, int (*get)(int descriptor, size_t size, attn_file *out), attn_file *out) {
    *out = (attn_file){NULL, 0, 0};
    int descriptor;
    do {
        /* With O_NONBLOCK a fifo without a writer opens and is refused below; otherwise open would wait. */
        descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    } while (descriptor < 0 && errno == EINTR);
    if (descriptor < 0) {
        return errno;
    }
    size_t size = 0;
    int error = regular_size(descriptor, &size);
    if (error == 0) {
        error = get(descriptor, size, out);
    }
    close(descriptor);
    return error;
}

static void unmap(void *data, size_t size) {
    munmap(data, size);
}

#endif

int attn_map_file(const char *path, attn_file *out) {
    return open_file(path, map_bytes, out);
}

int attn_load_file(const char *path, attn_file *out) {
    return open_file(path, load_bytes, out);
}

void attn_close_file(attn_file *file) {
    if (file == NULL || file->data == NULL) {
        return;
    }
    void *data = (void *)(uintptr_t)file->data;
    if (file->loaded) {
        attn_free(data);
    } else {
        unmap(data, file->size);
    }
    *file = (attn_file){NULL, 0, 0};
}

/* ---------------------------------------------------------------- tiles */

#if defined(__linux__) && defined(__x86_64__)

enum { ASK_PERMISSION = 0x1023, TILE_DATA = 18 };    /* of arch_prctl */
enum { TILES = 1 << 24, TILE_STATES = 3 << 17 };     /* bits of EDX of CPUID's leaf 7, and of XCR0 */
enum { TILE_ROWS = 16, TILE_ROW = 64, PROBES = 200 };

int attn_allow_tiles(void) {
    unsigned a, b, c, d, states, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) { /* XGETBV */
        return 0;
    }
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & TILES)) {
        return 0;
    }
    __asm__ volatile("xgetbv" : "=a"(states), "=d"(high) : "c"(0));
    if ((states & TILE_STATES) != TILE_STATES) {
        return 0;
    }
    return syscall(SYS_arch_prctl, ASK_PERMISSION, TILE_DATA) == 0;
}

static long thread_switches(void) {
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw + usage.ru_nivcsw : 0;
}

/* Fills a tile, falls asleep, calls `between` if it is not NULL, and compares the tile; several times. */
static int probe_tiles(void (*between)(void)) {
    const struct timespec nap = {0, 50000};
    alignas(64) unsigned char shapes[64] = {1}, kept[64], filled[TILE_ROWS * TILE_ROW], found[TILE_ROWS * TILE_ROW];
    shapes[16] = TILE_ROW;
    shapes[48] = TILE_ROWS;
    const long before = thread_switches();
    int lost = 0;
    for (int probe = 0; probe < PROBES && !lost; probe++) {
        for (int i = 0; i < TILE_ROWS * TILE_ROW; i++) {
            filled[i] = (unsigned char)(i * 7 + probe + 1);
            found[i] = 0;
        }
        __asm__ volatile("ldtilecfg (%0)\n\ttileloadd (%1,%2,1), %%tmm0"
                         :
                         : "r"(shapes), "r"(filled), "r"((size_t)TILE_ROW)
                         : "memory");
        nanosleep(&nap, NULL);
        if (between != NULL) {
            between();
        }
        __asm__ volatile("sttilecfg (%0)" : : "r"(kept) : "memory"); /* a lost shape is that of released tiles */
        if (memcmp(kept, shapes, sizeof kept) == 0) {
            __asm__ volatile("tilestored %%tmm0, (%0,%1,1)" : : "r"(found), "r"((size_t)TILE_ROW) : "memory");
        }
        lost = memcmp(found, filled, sizeof found) != 0;
    }
    __asm__ volatile("tilerelease" : : : "memory");
    if (lost) {
        return ATTN_TILES_LOST;
    }
    return thread_switches() > before ? ATTN_TILES_KEPT : ATTN_TILES_INCONCLUSIVE;
}

int attn_probe_tiles(void) {
    return attn_allow_tiles() ? probe_tiles(NULL) : ATTN_TILES_INCONCLUSIVE;
}

#else

int attn_allow_tiles(void) {
    return 0;
}

int attn_probe_tiles(void) {
    return ATTN_TILES_INCONCLUSIVE;
}

#endif
