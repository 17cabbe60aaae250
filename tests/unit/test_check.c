/* test_check.c: by how much numbers may differ from the interpreter's, which bits are the same, and what guards see. */
#include "../../compiler/check/check.h"
#include "fixture.h"

#include <math.h>

/* ------------------------------------------------------------------ numbers */

/* `got` beside one number `want` in a row whose largest number is `largest`. */
static Difference compared(float got, double want, double largest, double spread) {
    const float row[] = {(float)largest, got};
    const double wanted[] = {largest, want};
    Difference d = {0};
    check_compare(&d, row, 2, wanted, 1, 2, spread);
    assert_int_equal(d.elements, 2);
    assert_true(d.bad == 0 || (d.bad == 1 && d.row == 0 && d.column == 1));
    return d;
}

static void the_bound(void **state) {
    (void)state;
    assert_int_equal(compared(0, 5.9e-5, 2, 0).bad, 0); /* 2e-5 * (1 + 2) */
    assert_int_equal(compared(0, 6.1e-5, 2, 0).bad, 1);
    assert_int_equal(compared(0, -6.1e-5, -2, 0).bad, 1);
    assert_int_equal(compared(0, 0.079, 2, 0.01).bad, 0); /* 8 times the spread */
    assert_int_equal(compared(0, 0.081, 2, 0.01).bad, 1);
    assert_int_equal(compared(0, 5.9e-5, 2, 1e-9).bad, 0); /* less than the bound: the bound holds */
    Difference d = compared(1, 0.5, 2, 0);
    assert_true(d.most == 0.5 && fabs(d.allowed - 6e-5) < 1e-18 && d.got == 1 && d.want == 0.5);
    assert_int_equal(compared(1, 1 + 0x1p-22, 2, 0).ulps, 2);
    assert_int_equal(compared(-0x1p-149f, 0x1p-149, 2, 0).ulps, 2); /* across both zeros */
}

static void what_is_not_finite(void **state) {
    (void)state;
    assert_int_equal(compared(NAN, NAN, 2, 0).bad, 0);
    assert_int_equal(compared(1, NAN, 2, 0).bad, 1);
    assert_int_equal(compared(NAN, 1, 2, 0).bad, 1);
    assert_int_equal(compared(NAN, 1, 2, 1e30).bad, 1);
    assert_int_equal(compared(INFINITY, INFINITY, 2, 0).bad, 0);
    assert_int_equal(compared(INFINITY, 1e39, 2, 0).bad, 0); /* infinite as f32 */
    assert_int_equal(compared(-INFINITY, INFINITY, 2, 0).bad, 1);
    assert_int_equal(compared(3e38f, INFINITY, 2, 0).bad, 1);
    assert_int_equal(compared(INFINITY, 3e38, 2, 0).bad, 1);
}

/* [2][2] within [2][3]: the third column is another's, and the worst of several calls stays. */
static void strides_and_sums(void **state) {
    (void)state;
    const float got[] = {1, 2, 77, 3, 4, 77};
    const double same[] = {1, 2, 3, 4}, off[] = {1, 2, 3.5, 4};
    Difference d = {0};
    check_compare(&d, got, 3, off, 2, 2, 0);
    check_compare(&d, got, 3, same, 2, 2, 0);
    assert_int_equal(d.elements, 8);
    assert_true(d.bad == 1 && d.row == 1 && d.column == 0 && d.most == 0.5);
}

static void bits(void **state) {
    (void)state;
    const uint32_t quiet = 0x7fc00001, other = 0xffc00002;
    float a[3] = {1, 0, 2}, b[3] = {1, 0, 2};
    memcpy(&a[1], &quiet, sizeof quiet);
    memcpy(&b[1], &other, sizeof other);
    assert_true(check_same_bits(a, b, 3)); /* any NaN is any other */
    b[1] = 1;
    assert_false(check_same_bits(a, b, 3));
    assert_true(check_same_bits(a, b, 1));
    a[1] = 0.0f, b[1] = -0.0f;
    assert_false(check_same_bits(a, b, 3));
    b[1] = 0.0f, b[2] = nextafterf(2, 3);
    assert_false(check_same_bits(a, b, 3));
    assert_true(check_same_bits(a, b, 2));
}

static void spread_as_a_share(void **state) {
    (void)state;
    const double data[] = {-3, 1, INFINITY};
    const OutputArray output = {.shape = {1, {3}}, .data = data, .spread = 0.02};
    assert_true(fabs(check_spread_share(&output) - 0.005) < 1e-12); /* of 1 + 3: what is not finite does not count */
}

/* ------------------------------------------------------------------ guards */

enum { BYTES = 100 };

static int touch(void *with) {
    *(volatile uint8_t *)with = 1;
    return 7;
}

static void guards_see_writes(void **state) {
    (void)state;
    static const GuardSide sides[] = {GUARD_BEHIND, GUARD_IN_FRONT, GUARD_SHIFTED};
    for (int i = 0; i < 3; i++) {
        Guard *guard = guard_new(arena, "the room", BYTES);
        uint8_t *data = guard_place(guard, BYTES, 4, sides[i]);
        assert_null(guard_damage(arena, guard));
        assert_int_equal(guard_call(touch, data + BYTES - 1, false), 7);
        assert_null(guard_damage(arena, guard));
        /* One side of memory of 25 times 4 bytes has a page right at it, and the other a canary. */
        uint8_t *beside = sides[i] == GUARD_IN_FRONT ? data + BYTES : data - 1;
        assert_int_equal(guard_call(touch, beside, false), 7);
        const char *side = sides[i] == GUARD_IN_FRONT ? "behind" : "in front of";
        assert_string_equal(guard_damage(arena, guard), arena_printf(arena, "a write %s the room", side));
    }
}

static void guards_see_crashes(void **state) {
    (void)state;
    Guard *guard = guard_new(arena, "the room", BYTES);
    uint8_t *data = guard_place(guard, BYTES, 4, GUARD_BEHIND);
    assert_int_equal(guard_call(touch, data + BYTES, false), GUARD_CRASHED);
    assert_non_null(strstr(guard_crash(), " behind the room"));
    data = guard_place(guard, BYTES, 4, GUARD_IN_FRONT);
    assert_int_equal(guard_call(touch, data - 1, false), GUARD_CRASHED);
    assert_non_null(strstr(guard_crash(), " in front of the room"));
    const uint8_t *fixed = guard_input(guard, "abc", 4, 1, GUARD_BEHIND);
    assert_string_equal((const char *)fixed, "abc");
    assert_int_equal(guard_call(touch, (void *)(uintptr_t)fixed, false), GUARD_CRASHED);
    assert_non_null(strstr(guard_crash(), " to the room"));
    assert_null(guard_input(guard, NULL, 4, 1, GUARD_BEHIND));
    assert_int_equal(guard_call(touch, guard_place(guard, BYTES, 4, GUARD_BEHIND), false), 7); /* writable again */
}

/* ------------------------------------------------------------------ rows of a text */

/* Each row of a text, and of a fork, begins after the rows before it, whatever the width of its numbers is. */
static void rows_of_a_text(void **state) {
    (void)state;
    enum { N = 5 };
    Compilation c = compiled("model m { d_model 8, vocab 9, head logits\n"
                             "decoder { seq <= 8, input rows bits, input rows near 0..7, input number far 0..9\n"
                             "layers 1 { attention self { heads 2\n"
                             "mask causal where bit(bits[q], k) or near[q] == near[k] or q - k < far } } } }",
                             STAGE_REWRITE);
    const Weights *weights = weights_load(arena, c.model, &c.module->weights, "random:1", false);
    const DecodeCheck *check = check_decode_new(arena, c.module, weights, N, 1, (Rounded){0});
    const int slot = 0;
    const int32_t length = 1;
    for (int fork = 0; fork < 2; fork++) {
        const DecoderRows first = check_decode_rows(check, fork, 0, &slot, &length);
        for (int64_t from = 0; from < N; from++) {
            const DecoderRows rows = check_decode_rows(check, fork, from, &slot, &length);
            for (int i = 0; i < c.module->n_inputs; i++) {
                const InputKind *kind = c.module->inputs[i];
                const uint8_t *begins = first.inputs[kind->role], *at = rows.inputs[kind->role];
                if (!begins) continue; /* target is decode's tokens */
                if (kind->rows == PER_SEQUENCE) assert_true(at == (from && !fork ? NULL : begins));
                else assert_int_equal(at - begins, from * (kind->wide ? 8 : 4));
            }
        }
        assert_non_null(first.inputs[IN_tokens]);
        assert_non_null(first.inputs[IN_COUNT + 2]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(the_bound), TEST(what_is_not_finite), TEST(strides_and_sums),
                                       TEST(bits), TEST(spread_as_a_share), TEST(guards_see_writes),
                                       TEST(guards_see_crashes), TEST(rows_of_a_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
