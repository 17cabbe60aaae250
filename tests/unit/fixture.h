/* fixture.h: an arena a test, specs compiled up to a stage, and calls that must fail. */
#ifndef FIXTURE_H
#define FIXTURE_H

#include "../../compiler/attnc.h" /* first: cmocka makes `fail` a macro */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static Arena *arena;
static FailureTrap trap;

static inline int begin(void **state) {
    (void)state;
    arena = arena_new();
    return 0;
}

static inline int end(void **state) {
    (void)state;
    arena_free(arena);
    return 0;
}

/* A test with an arena of its own; TEST_WITH sets up more than that, in a function that calls `begin`. */
#define TEST_WITH(setup, f) cmocka_unit_test_setup_teardown(f, setup, end)
#define TEST(f) TEST_WITH(begin, f)

/* ------------------------------------------------------------------ specs */

static inline Source *source_of(const char *text) { return source_from_text(arena, "spec", text, strlen(text)); }

/* A spec that must be valid, compiled up to that stage. */
static inline Compilation compiled_source(Source *source, Stage last) {
    Compilation c = compilation_new(arena, source);
    if (!compile_until(&c, last)) fail_msg("%s is refused", source->path);
    return c;
}

static inline Compilation compiled(const char *text, Stage last) { return compiled_source(source_of(text), last); }
static inline Model *model_of(const char *text) { return compiled(text, STAGE_MODEL).model; }
static inline Module *module_of(const char *text) { return compiled(text, STAGE_REWRITE).module; }
static inline Program *program_of(const char *text) { return compiled(text, STAGE_PLAN).program; }

/* ------------------------------------------------------------------ failures */

/* Whether `call` ends in a failure, which `trap` then holds. */
#define FAILS(call) (failure_trap(&trap) == 0 ? ((void)(call), failure_release(&trap), false) : true)

static inline void expect_part(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("`%s` is not in: %s", part, text);
}

/* The failure in `trap` has that status and a message with that part. */
static inline void message_holds(int status, const char *part) {
    expect_part(trap.message, part);
    assert_int_equal(trap.status, status);
}

/* `call` must fail so. */
#define REFUSED(call, status, part) \
    do { \
        if (!FAILS(call)) fail_msg("`%s` passed, though: %s", #call, part); \
        message_holds(status, part); \
    } while (0)

/* The message of a bug that `call` finds, or "none". */
#define FAULT(call) (FAILS(call) ? (assert_int_equal(trap.status, EXIT_BUG), trap.message) : "none")

#endif
