/* test_storage.c: bytes and element places of layouts, those of low precision among them. */
#include "../../compiler/attnc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static int64_t bytes_of(Layout layout, Shape shape) {
    int64_t bytes = -1;
    assert_true(layout_bytes(&layout, shape, &bytes));
    return bytes;
}

static void rows(void **state) {
    (void)state;
    assert_int_equal(bytes_of(LAYOUT_ROWS, (Shape){2, {33, 21}}), 2816); /* 2772 rounded up to 64 */
    assert_int_equal(bytes_of(LAYOUT_ROWS, (Shape){1, {16}}), 64);
    assert_int_equal(bytes_of(LAYOUT_ROWS, (Shape){0, {0}}), 64);
    assert_int_equal(bytes_of(LAYOUT_ROWS, (Shape){2, {0, 5}}), 0);
    assert_int_equal(bytes_of((Layout){.dtype = DTYPE_I8, .k_group = 1}, (Shape){2, {3, 65}}), 256);
}

static void panels(void **state) {
    (void)state;
    assert_int_equal(bytes_of(LAYOUT_PANELS, (Shape){2, {37, 21}}), 4 * 48 * 21);
    assert_int_equal(bytes_of(LAYOUT_PANELS, (Shape){3, {2, 32, 5}}), 4 * 64 * 5);
    Layout bf16 = {.dtype = DTYPE_BF16, .panel = 16, .k_group = 2};
    assert_int_equal(bytes_of(bf16, (Shape){2, {17, 5}}), 2 * 32 * 6);
    Layout int8 = {.dtype = DTYPE_I8, .panel = 16, .k_group = 4};
    assert_int_equal(bytes_of(int8, (Shape){2, {17, 33}}), 32 * 36);
}

static void overflows(void **state) {
    (void)state;
    int64_t bytes;
    Layout int8 = {.dtype = DTYPE_I8, .panel = 16, .k_group = 4};
    assert_false(layout_bytes(&LAYOUT_ROWS, (Shape){2, {INT64_MAX / 4, 2}}, &bytes));
    assert_false(layout_bytes(&LAYOUT_ROWS, (Shape){1, {INT64_MAX / 4}}, &bytes)); /* only by the padding */
    assert_false(layout_bytes(&LAYOUT_PANELS, (Shape){2, {INT64_MAX - 7, 1}}, &bytes));
    assert_false(layout_bytes(&int8, (Shape){2, {16, INT64_MAX - 1}}, &bytes));
    assert_false(layout_bytes(&LAYOUT_ROWS, (Shape){2, {-1, 2}}, &bytes));
}

/* Every element has a place of its own, inside of the matrix. */
static void places_are_distinct(Layout layout, int64_t N, int64_t K, int64_t room) {
    bool taken[4096] = {0};
    for (int64_t n = 0; n < N; n++)
        for (int64_t k = 0; k < K; k++) {
            int64_t at = layout_index(&layout, n, k, K);
            assert_in_range(at, 0, room - 1);
            assert_false(taken[at]);
            taken[at] = true;
        }
}

static void indices(void **state) {
    (void)state;
    assert_int_equal(layout_index(&LAYOUT_ROWS, 3, 4, 21), 67);
    const Layout halves = {.dtype = DTYPE_BF16, .panel = 16, .k_group = 1};
    assert_true(layout_is_dense(&LAYOUT_PANELS, (Shape){2, {35, 21}}));
    assert_true(layout_is_dense(&halves, (Shape){2, {35, 22}}));
    assert_false(layout_is_dense(&halves, (Shape){2, {35, 21}})); /* 3 * 21 half lines */
    assert_int_equal(layout_index(&LAYOUT_PANELS, 17, 2, 21), (21 + 2) * 16 + 1);
    Layout int8 = {.dtype = DTYPE_I8, .panel = 16, .k_group = 4};
    assert_int_equal(layout_index(&int8, 17, 6, 21), ((6 + 1) * 16 + 1) * 4 + 2); /* six groups of four k a panel */
    places_are_distinct(LAYOUT_ROWS, 33, 21, 33 * 21);
    places_are_distinct(LAYOUT_PANELS, 33, 21, 48 * 21);
    places_are_distinct(int8, 33, 21, 48 * 24);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows), cmocka_unit_test(panels), cmocka_unit_test(overflows),
                                       cmocka_unit_test(indices)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
