#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "../../runtime/attn_runtime.c"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_COUNT = 64 };

/* What one run did. Plain fields: a missing or doubled index, or a run that returns early, is also a data race that the
 * thread sanitizer reports. */
typedef struct Trace {
    int calls[MAX_COUNT];
    pthread_t threads[MAX_COUNT];
} Trace;

static void trace_task(void *with, int index) {
    Trace *trace = with;
    trace->calls[index]++;
    trace->threads[index] = pthread_self();
}

static bool each_called_once(const Trace *trace, int count) {
    for (int i = 0; i < MAX_COUNT; i++) {
        if (trace->calls[i] != (i < count)) {
            return false;
        }
    }
    return true;
}

static bool all_on_this_thread(const Trace *trace, int count) {
    for (int i = 0; i < count; i++) {
        if (!pthread_equal(trace->threads[i], pthread_self())) {
            return false;
        }
    }
    return true;
}

static attn_pool *make_pool(int threads) {
    attn_pool *pool = attn_pool_new(threads);
    assert_non_null(pool);
    return pool;
}

static void test_every_index_once(void **state) {
    (void)state;
    const int sizes[] = {1, 2, 3, 8};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int threads = sizes[s];
        attn_pool *pool = make_pool(threads);
        assert_int_equal(attn_pool_threads(pool), threads);
        for (int count = -1; count <= MAX_COUNT; count++) {
            Trace trace;
            memset(&trace, 0, sizeof trace);
            attn_pool_run(pool, count, trace_task, &trace);
            assert_true(each_called_once(&trace, count));
            for (int i = 0; i < count; i++) {
                bool caller = pthread_equal(trace.threads[i], pthread_self()) != 0;
                for (int j = 0; j < i; j++) {
                    bool same = pthread_equal(trace.threads[i], trace.threads[j]) != 0;
                    assert_true(i % threads == j % threads ? same : !same || caller);
                }
                assert_true(i % threads != 0 || caller);
            }
        }
        attn_pool_free(pool);
    }
}

/* A run in which every thread has begun before the caller ends: nothing is taken over. */
typedef struct Meeting {
    Trace trace;
    atomic_int begun;
    int parts;
} Meeting;

static void meet_task(void *with, int index) {
    Meeting *meeting = with;
    trace_task(&meeting->trace, index);
    if (index < meeting->parts) {
        atomic_fetch_add(&meeting->begun, 1);
    }
    while (index == 0 && atomic_load(&meeting->begun) < meeting->parts) {
        usleep(10);
    }
}

static Meeting meet(attn_pool *pool, int count) {
    Meeting meeting;
    memset(&meeting, 0, sizeof meeting);
    meeting.parts = count < attn_pool_threads(pool) ? count : attn_pool_threads(pool);
    attn_pool_run(pool, count, meet_task, &meeting);
    return meeting;
}

/* Placement must also hold between runs. */
static void test_threads_stay(void **state) {
    (void)state;
    attn_pool *pool = make_pool(3);
    Meeting first = meet(pool, 9);
    for (int run = 0; run < 100; run++) {
        int count = run % 9 + 1;
        Meeting next = meet(pool, count);
        assert_true(each_called_once(&next.trace, count));
        for (int i = 0; i < count; i++) {
            assert_true(pthread_equal(next.trace.threads[i], first.trace.threads[i]));
            assert_int_equal(pthread_equal(next.trace.threads[i], pthread_self()) != 0, i % 3 == 0);
        }
    }
    attn_pool_free(pool);
}

/* The caller does not wait until a sleeping thread comes. */
static void test_late_share_is_taken_over(void **state) {
    (void)state;
    attn_pool *pool = make_pool(3);
    int taken = 0;
    for (int run = 0; run < 300; run++) {
        Trace trace;
        memset(&trace, 0, sizeof trace);
        usleep(200);
        attn_pool_run(pool, 6, trace_task, &trace);
        assert_true(each_called_once(&trace, 6));
        for (int i = 1; i < 3; i++) {
            assert_true(pthread_equal(trace.threads[i], trace.threads[i + 3]));
            taken += pthread_equal(trace.threads[i], pthread_self()) != 0;
        }
    }
    assert_true(taken > 0);
    attn_pool_free(pool);
}

static void test_null_pool(void **state) {
    (void)state;
    Trace trace;
    memset(&trace, 0, sizeof trace);
    attn_pool_run(NULL, 5, trace_task, &trace);
    assert_true(each_called_once(&trace, 5));
    assert_true(all_on_this_thread(&trace, 5));
    assert_int_equal(attn_pool_threads(NULL), 1);
    attn_pool_free(NULL);
}

typedef struct Slot {
    long value;
    char padding[120];
} Slot;

static void add_one(void *with, int index) {
    Slot *slots = with;
    slots[index].value++;
}

static void many_runs(int threads, int runs) {
    attn_pool *pool = make_pool(threads);
    Slot slots[8];
    memset(slots, 0, sizeof slots);
    for (int run = 1; run <= runs; run++) {
        attn_pool_run(pool, threads, add_one, slots);
        for (int i = 0; i < threads; i++) {
            if (slots[i].value != run) {
                fail_msg("index %d of %d ran %ld times in %d runs", i, threads, slots[i].value, run);
            }
        }
    }
    attn_pool_free(pool);
}

static void test_many_tiny_runs(void **state) {
    (void)state;
    many_runs(1, 100000);
    many_runs(2, 100000);
    many_runs(3, 2000);
    many_runs(8, 2000);
}

/* The gaps go from well below to well above the spinning time, in the caller and in one worker. In two runs of three
 * the caller goes on only when that worker has begun; in the others it may take over its share. */
typedef struct Late {
    Slot slots[8];
    long run;
    atomic_long begun;
} Late;

static void late_worker(void *with, int index) {
    Late *late = with;
    if (index == 0) {
        while (late->run % 3 && atomic_load(&late->begun) != late->run) {
            sched_yield();
        }
        return;
    }
    if (index == 1) {
        atomic_store(&late->begun, late->run);
        usleep((useconds_t)(late->run % 12) * 15);
    }
    late->slots[index].value++;
}

static void test_sleep_and_wake(void **state) {
    (void)state;
    for (int threads = 2; threads <= 4; threads++) {
        attn_pool *pool = make_pool(threads);
        static Late late;
        memset(&late, 0, sizeof late);
        for (int run = 1; run <= 240; run++) {
            late.run = run;
            attn_pool_run(pool, threads, late_worker, &late);
            for (int i = 1; i < threads; i++) {
                assert_int_equal(late.slots[i].value, run);
            }
            usleep((useconds_t)(run % 10) * 15);
        }
        attn_pool_free(pool);
    }
}

typedef struct Client {
    attn_pool *pool;
    int runs;
    bool good;
} Client;

static void *client_main(void *argument) {
    Client *client = argument;
    client->good = true;
    for (int run = 0; run < client->runs; run++) {
        int count = run % 7 + 1;
        Trace trace;
        memset(&trace, 0, sizeof trace);
        attn_pool_run(client->pool, count, trace_task, &trace);
        client->good = client->good && each_called_once(&trace, count);
    }
    return NULL;
}

static void two_clients(attn_pool *first, attn_pool *second) {
    Client clients[2] = {{first, 2000, false}, {second, 2000, false}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, client_main, &clients[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(clients[i].good);
    }
}

static void test_two_pools_two_threads(void **state) {
    (void)state;
    attn_pool *first = make_pool(2);
    attn_pool *second = make_pool(3);
    two_clients(first, second);
    attn_pool_free(first);
    attn_pool_free(second);
}

static void test_one_pool_two_threads(void **state) {
    (void)state;
    attn_pool *pool = make_pool(2);
    two_clients(pool, pool);
    attn_pool_free(pool);
}

typedef struct Gate {
    attn_pool *pool;
    atomic_bool entered;
    atomic_bool open;
} Gate;

static void gate_task(void *with, int index) {
    Gate *gate = with;
    if (index == 1) {
        atomic_store(&gate->entered, true);
        while (!atomic_load(&gate->open)) {
            usleep(50);
        }
    }
}

static void *gate_main(void *argument) {
    Gate *gate = argument;
    attn_pool_run(gate->pool, 2, gate_task, gate);
    return NULL;
}

static void test_busy_pool_runs_in_caller(void **state) {
    (void)state;
    Gate gate;
    gate.pool = make_pool(2);
    atomic_init(&gate.entered, false);
    atomic_init(&gate.open, false);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, gate_main, &gate), 0);
    while (!atomic_load(&gate.entered)) {
        usleep(50);
    }
    Trace trace;
    memset(&trace, 0, sizeof trace);
    attn_pool_run(gate.pool, 10, trace_task, &trace);
    atomic_store(&gate.open, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(each_called_once(&trace, 10));
    for (int i = 0; i < 10; i++) {
        assert_true(pthread_equal(trace.threads[i], pthread_self()));
    }
    attn_pool_free(gate.pool);
}

typedef struct Nest {
    attn_pool *pool;
    Trace inner[MAX_COUNT];
    bool serial[MAX_COUNT];
} Nest;

static void nest_task(void *with, int index) {
    Nest *nest = with;
    attn_pool_run(nest->pool, 11, trace_task, &nest->inner[index]);
    nest->serial[index] = all_on_this_thread(&nest->inner[index], 11);
}

static void test_nested(void **state) {
    (void)state;
    static Nest nest;
    for (int threads = 2; threads <= 4; threads++) {
        memset(&nest, 0, sizeof nest);
        nest.pool = make_pool(threads);
        attn_pool_run(nest.pool, 12, nest_task, &nest);
        for (int i = 0; i < 12; i++) {
            assert_true(each_called_once(&nest.inner[i], 11));
            assert_true(nest.serial[i]);
        }
        attn_pool_free(nest.pool);
    }
}

static void test_create_and_destroy(void **state) {
    (void)state;
    for (int i = 0; i < 500; i++) {
        int threads = i % 4 + 1;
        attn_pool *pool = make_pool(threads);
        if (i % 3 != 0) {
            Slot slots[4];
            memset(slots, 0, sizeof slots);
            attn_pool_run(pool, threads, add_one, slots);
            for (int t = 0; t < threads; t++) {
                assert_int_equal(slots[t].value, 1);
            }
        }
        attn_pool_free(pool);
    }
}

static void test_bad_thread_counts(void **state) {
    (void)state;
    const int bad[] = {0, -1, ATTN_MAX_THREADS + 1};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        errno = 0;
        assert_null(attn_pool_new(bad[i]));
        assert_int_equal(errno, EINVAL);
    }
    attn_pool *pool = make_pool(ATTN_MAX_THREADS);
    Slot *slots = calloc(ATTN_MAX_THREADS, sizeof *slots);
    assert_non_null(slots);
    attn_pool_run(pool, ATTN_MAX_THREADS, add_one, slots);
    for (int i = 0; i < ATTN_MAX_THREADS; i++) {
        assert_int_equal(slots[i].value, 1);
    }
    free(slots);
    attn_pool_free(pool);
}

static void mask_task(void *with, int index) {
    atomic_int *blocked = with;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    int faults = sigismember(&mask, SIGSEGV) + sigismember(&mask, SIGBUS) + sigismember(&mask, SIGFPE) +
                 sigismember(&mask, SIGILL) + sigismember(&mask, SIGTRAP) + sigismember(&mask, SIGSYS);
    atomic_store(&blocked[index], sigismember(&mask, SIGINT) + sigismember(&mask, SIGUSR1) + 10 * faults);
    while (index == 0 && atomic_load(&blocked[1]) < 0) { /* the other thread is to do the other index */
        usleep(10);
    }
}

static void test_signals_blocked(void **state) {
    (void)state;
    attn_pool *pool = make_pool(2);
    atomic_int blocked[2] = {-1, -1};
    attn_pool_run(pool, 2, mask_task, blocked);
    assert_int_equal(atomic_load(&blocked[0]), 0);
    assert_int_equal(atomic_load(&blocked[1]), 2);
    attn_pool_free(pool);
}

static void test_cpu_count(void **state) {
    (void)state;
    assert_true(attn_cpu_count() >= 1);
    assert_true(attn_cpu_count() <= sysconf(_SC_NPROCESSORS_CONF));
}

static void refuses(int (*get)(const char *path, attn_file *out), const char *path, int error) {
    attn_file file = {path, 1, 1};
    assert_int_equal(get(path, &file), error);
    assert_null(file.data);
    assert_int_equal(file.size, 0);
    assert_int_equal(file.loaded, 0);
}

static void test_file(int (*get)(const char *path, attn_file *out)) {
    char path[] = "/tmp/attn_runtime_XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    refuses(get, path, EINVAL);
    assert_int_equal(write(descriptor, "weights", 7), 7);
    close(descriptor);
    attn_file file;
    assert_int_equal(get(path, &file), 0);
    assert_int_equal(file.loaded, get == attn_load_file);
    unlink(path);
    assert_int_equal(file.size, 7);
    assert_int_equal((uintptr_t)file.data % 64, 0);
    assert_memory_equal(file.data, "weights", 7);
    attn_close_file(&file);
    assert_null(file.data);
    assert_int_equal(file.size, 0);
    attn_close_file(&file);
    attn_close_file(NULL);
    refuses(get, path, ENOENT);
    refuses(get, "/tmp", EISDIR);
    refuses(get, "/dev/null", EINVAL);
    assert_int_equal(mkfifo(path, 0600), 0);
    refuses(get, path, EINVAL);
    unlink(path);
}

static void test_map_file(void **state) {
    (void)state;
    test_file(attn_map_file);
}

static void test_load_file(void **state) {
    (void)state;
    test_file(attn_load_file);
}

/* More than one read gives, and than one huge page holds. */
static void test_load_long_file(void **state) {
    (void)state;
    enum { BYTES = 9 << 20 };
    char path[] = "/tmp/attn_runtime_XXXXXX";
    int descriptor = mkstemp(path);
    unsigned char *bytes = malloc(BYTES);
    assert_non_null(bytes);
    for (size_t i = 0; i < BYTES; i++) bytes[i] = (unsigned char)(i * 2654435761u >> 13);
    assert_int_equal(write(descriptor, bytes, BYTES), BYTES);
    close(descriptor);
    attn_file file;
    assert_int_equal(attn_load_file(path, &file), 0);
    unlink(path);
    assert_int_equal(file.size, BYTES);
    assert_memory_equal(file.data, bytes, BYTES);
    attn_close_file(&file);
    free(bytes);
}

static void test_alloc(void **state) {
    (void)state;
    const size_t sizes[] = {0, 1, 63, 64, 65, 100000, ((size_t)4 << 20) - 1, (size_t)4 << 20, ((size_t)5 << 20) + 3};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *memory = attn_alloc(sizes[i]);
        assert_non_null(memory);
        uintptr_t alignment = sizes[i] >= (size_t)4 << 20 ? (uintptr_t)2 << 20 : 64;
        assert_int_equal((uintptr_t)memory % alignment, 0);
        memset(memory, 1, sizes[i]);
        attn_free(memory);
    }
    attn_free(NULL);
    errno = 0;
    assert_null(attn_alloc(SIZE_MAX));
    assert_int_equal(errno, ENOMEM);
}

#if defined(__linux__) && defined(__x86_64__)
static void release_tiles(void) { __asm__ volatile("tilerelease" : : : "memory"); }
static void zero_tile(void) { __asm__ volatile("tilezero %%tmm0" : : : "memory"); }

/* The probe reports losses that are planted while the thread sleeps. */
static void test_tiles(void **state) {
    (void)state;
    if (!attn_allow_tiles()) {
        assert_int_equal(attn_probe_tiles(), ATTN_TILES_INCONCLUSIVE);
        skip();
    }
    assert_true(attn_allow_tiles());
    assert_int_equal(probe_tiles(release_tiles), ATTN_TILES_LOST);
    assert_int_equal(probe_tiles(zero_tile), ATTN_TILES_LOST);
    const int kept = attn_probe_tiles();
    assert_true(kept == ATTN_TILES_KEPT || kept == ATTN_TILES_INCONCLUSIVE);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
#if defined(__linux__) && defined(__x86_64__)
        cmocka_unit_test(test_tiles),
#endif
        cmocka_unit_test(test_every_index_once),
        cmocka_unit_test(test_threads_stay),
        cmocka_unit_test(test_late_share_is_taken_over),
        cmocka_unit_test(test_null_pool),
        cmocka_unit_test(test_many_tiny_runs),
        cmocka_unit_test(test_sleep_and_wake),
        cmocka_unit_test(test_two_pools_two_threads),
        cmocka_unit_test(test_one_pool_two_threads),
        cmocka_unit_test(test_busy_pool_runs_in_caller),
        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_create_and_destroy),
        cmocka_unit_test(test_bad_thread_counts),
        cmocka_unit_test(test_signals_blocked),
        cmocka_unit_test(test_cpu_count),
        cmocka_unit_test(test_map_file),
        cmocka_unit_test(test_load_file),
        cmocka_unit_test(test_load_long_file),
        cmocka_unit_test(test_alloc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
