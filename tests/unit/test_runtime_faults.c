/* What runtime/attn_runtime.c does when the system refuses: each call fails in turn, and what was taken is given back.
 * The linker puts __wrap_NAME in the place of NAME; its files have 64-bit offsets, hence open64. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "../../runtime/attn_runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail_at, calls;             /* the call that fails, and those there were */
static int error_given;                /* what that one says */
static atomic_int memory, maps, files; /* taken and not given back */
static int threads, mutexes, conditions;
static const char *failed;             /* its name */

static bool refused(const char *name, int error) {
    if (++calls != fail_at) return false;
    failed = name;
    error_given = error;
    return true;
}

int __real_posix_memalign(void **out, size_t align, size_t bytes);
int __wrap_posix_memalign(void **out, size_t align, size_t bytes);
int __wrap_posix_memalign(void **out, size_t align, size_t bytes) {
    if (refused("posix_memalign", ENOMEM)) return ENOMEM;
    int error = __real_posix_memalign(out, align, bytes);
    memory += error == 0;
    return error;
}

void __real_free(void *taken);
void __wrap_free(void *taken);
void __wrap_free(void *taken) {
    memory -= taken != NULL;
    __real_free(taken);
}

void *__real_mmap64(void *at, size_t size, int protection, int flags, int descriptor, off_t offset);
void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int descriptor, off_t offset);
void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int descriptor, off_t offset) {
    if (refused("mmap", errno = ENODEV)) return MAP_FAILED;
    maps++;
    return __real_mmap64(at, size, protection, flags, descriptor, offset);
}

int __real_munmap(void *at, size_t size);
int __wrap_munmap(void *at, size_t size);
int __wrap_munmap(void *at, size_t size) {
    maps--;
    return __real_munmap(at, size);
}

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...) {
    if (refused("open", errno = EMFILE)) return -1;
    int descriptor = __real_open64(path, flags);
    files += descriptor >= 0;
    return descriptor;
}

int __real_close(int descriptor);
int __wrap_close(int descriptor);
int __wrap_close(int descriptor) {
    files--;
    return __real_close(descriptor);
}

int __real_fstat64(int descriptor, struct stat *status);
int __wrap_fstat64(int descriptor, struct stat *status);
int __wrap_fstat64(int descriptor, struct stat *status) {
    if (refused("fstat", errno = EOVERFLOW)) return -1;
    return __real_fstat64(descriptor, status);
}

/* One byte at a time at first, and a signal now and then. */
ssize_t __real_read(int descriptor, void *to, size_t size);
ssize_t __wrap_read(int descriptor, void *to, size_t size);
ssize_t __wrap_read(int descriptor, void *to, size_t size) {
    if (refused("read", errno = EIO)) return -1;
    if (calls % 3 == 0) {
        errno = EINTR;
        return -1;
    }
    return __real_read(descriptor, to, size && calls < 9 ? 1 : size);
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *with);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *with);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *with) {
    if (refused("pthread_create", EAGAIN)) return EAGAIN;
    threads++;
    return __real_pthread_create(thread, how, run, with);
}

int __real_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result) {
    threads--;
    return __real_pthread_join(thread, result);
}

int __real_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *how);
int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *how);
int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *how) {
    if (refused("pthread_mutex_init", ENOMEM)) return ENOMEM;
    mutexes++;
    return __real_pthread_mutex_init(mutex, how);
}

int __real_pthread_mutex_destroy(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_destroy(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_destroy(pthread_mutex_t *mutex) {
    mutexes--;
    return __real_pthread_mutex_destroy(mutex);
}

int __real_pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *how);
int __wrap_pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *how);
int __wrap_pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *how) {
    if (refused("pthread_cond_init", EAGAIN)) return EAGAIN;
    conditions++;
    return __real_pthread_cond_init(condition, how);
}

int __real_pthread_cond_destroy(pthread_cond_t *condition);
int __wrap_pthread_cond_destroy(pthread_cond_t *condition);
int __wrap_pthread_cond_destroy(pthread_cond_t *condition) {
    conditions--;
    return __real_pthread_cond_destroy(condition);
}

/* ------------------------------------------------------------------ the tests */

static void nothing_is_held(void) {
    assert_int_equal(memory, 0);
    assert_int_equal(maps, 0);
    assert_int_equal(files, 0);
    assert_int_equal(threads, 0);
    assert_int_equal(mutexes, 0);
    assert_int_equal(conditions, 0);
}

static void begin(int at) {
    fail_at = at;
    calls = 0;
    failed = NULL;
}

/* Every call in turn, until there is one more than was made; the number of those that failed. */
static int each_fails(bool (*run)(void)) {
    for (int at = 1;; at++) {
        begin(at);
        bool fine = run();
        if (fine != !failed) print_message("call %d, %s: %s\n", at, failed ? failed : "-", fine ? "fine" : "failed");
        assert_true(fine == !failed);
        nothing_is_held();
        if (!failed) return at - 1;
    }
}

static void add_one(void *with, int index) { ((int *)with)[index]++; }

static bool make_pool(void) {
    errno = 0;
    attn_pool *pool = attn_pool_new(4);
    if (!pool) {
        assert_int_equal(errno, error_given);
        return false;
    }
    int counts[9] = {0};
    attn_pool_run(pool, 9, add_one, counts);
    for (int i = 0; i < 9; i++) assert_int_equal(counts[i], 1);
    attn_pool_free(pool);
    return true;
}

static bool allocate(void) {
    errno = 0;
    static const size_t sizes[] = {0, 100, (size_t)5 << 20};
    for (int i = 0; i < 3; i++) {
        void *taken = attn_alloc(sizes[i]);
        if (!taken) {
            assert_int_equal(errno, ENOMEM);
            return false;
        }
        attn_free(taken);
    }
    return true;
}

static char path[] = "/tmp/attn_runtime_faults_XXXXXX";
static const char text[] = "thirty-one bytes and no more ..";

static bool read_file(int (*get)(const char *, attn_file *)) {
    attn_file file = {text, 7, 9};
    int error = get(path, &file);
    if (error) {
        assert_int_equal(error, error_given);
        assert_null(file.data);
        assert_int_equal(file.size, 0);
        attn_close_file(&file); /* nothing to be done, and said to be allowed */
        return false;
    }
    assert_int_equal(file.size, sizeof text);
    assert_memory_equal(file.data, text, sizeof text);
    attn_close_file(&file);
    return true;
}

static bool map_file(void) { return read_file(attn_map_file); }
static bool load_file(void) { return read_file(attn_load_file); }

static void test_pool(void **state) {
    (void)state;
    assert_int_equal(each_fails(make_pool), 1 + 3 + 3); /* memory, mutex and conditions, threads */
}

static void test_memory(void **state) {
    (void)state;
    assert_int_equal(each_fails(allocate), 3);
}

static void test_files(void **state) {
    (void)state;
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0 && write(descriptor, text, sizeof text) == (ssize_t)sizeof text);
    __real_close(descriptor);
    assert_int_equal(each_fails(map_file), 3);        /* open, fstat, mmap */
    assert_true(each_fails(load_file) > 3);           /* open, fstat, memory, and each read */
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pool), cmocka_unit_test(test_memory),
                                       cmocka_unit_test(test_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
