/* test_elementary.c: sine, cosine, logarithm, exponential and power against libm in long double, and the bits of all
 * functions but the exponential, which every compiler and machine must give. */
#include "../../compiler/attnc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <string.h>

static uint64_t random_state;

static uint64_t random_bits(void) { /* splitmix64 */
    uint64_t z = (random_state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static double fraction(void) { return (double)(random_bits() >> 11) * 0x1p-53; }

/* Angles of tables, small ones, huge ones, and those that stand near a multiple of pi / 2. */
static double angle(int i) {
    double x = fraction();
    int exponent = (int)(random_bits() % 1024); /* a statement of its own: C leaves the order of arguments open */
    switch (i % 5) {
    case 0: return x * 8;
    case 1: return x * 131072;
    case 2: return ldexp(x + 0.5, exponent);
    case 3: return ldexp(x - 0.5, -exponent / 16);
    default: return (double)(98 * exponent) * 1.5707963267948966;
    }
}

static double random_base(void) {
    double x = fraction();
    return ldexp(x + 0.5, (int)(random_bits() % 60) - 20);
}

/* In units of wanted's last place. */
static double places(double got, long double wanted) {
    double size = fabs((double)wanted), place = nextafter(size, INFINITY) - size;
    return (double)fabsl(got - wanted) / place;
}

static void near(const char *function, double x, double got, long double wanted, double most) {
    if (!(places(got, wanted) <= most)) fail_msg("%s of %a is %a, and should be %a", function, x, got, (double)wanted);
}

static bool long_double_is_longer(void) { return sizeof(long double) > sizeof(double) && LDBL_MANT_DIG > 53; }

static void against_libm(void **state) {
    (void)state;
    const double more = long_double_is_longer() ? 0 : 1; /* its own error */
    for (int i = 0; i < 40000; i++) {
        double x = angle(i), base = random_base(), power = 4 * fraction() - 2;
        near("sine", x, portable_sin(x), sinl(x), 0.8 + more);
        near("cosine", x, portable_cos(x), cosl(x), 0.8 + more);
        near("logarithm", base, portable_log(base), logl(base), 0.501 + more);
        near("exponential", 100 * power, portable_exp(100 * power), expl(100 * power), 0.501 + more);
        near("power", base, portable_pow(base, power), powl(base, power), 0.501 + more);
    }
}

static void edges(void **state) {
    (void)state;
    assert_true(portable_sin(0) == 0 && portable_cos(0) == 1 && portable_log(1) == 0);
    assert_true(portable_sin(-2.5) == -portable_sin(2.5) && portable_cos(-2.5) == portable_cos(2.5));
    assert_true(isnan(portable_sin(INFINITY)) && isnan(portable_cos(-INFINITY)) && isnan(portable_sin(NAN)));
    assert_true(portable_log(0) == -INFINITY && portable_log(INFINITY) == INFINITY && isnan(portable_log(-1)));
    for (int k = -1070; k <= 1023; k++) assert_true(portable_pow(2, k) == ldexp(1, k));
    assert_true(portable_pow(10, -300) > 0 && portable_pow(10, 300) < INFINITY && portable_pow(10, 2) == 100);
    assert_true(portable_pow(2, 1e300) == INFINITY && portable_pow(2, -1e300) == 0 && portable_pow(1, 1e300) == 1);
    assert_true(portable_exp(0) == 1 && portable_exp(1e300) == INFINITY && portable_exp(-1e300) == 0);
    assert_true(portable_exp(INFINITY) == INFINITY && portable_exp(-INFINITY) == 0 && isnan(portable_exp(NAN)));
    assert_true(portable_exp(1) == 0x1.5bf0a8b145769p+1 && portable_exp(-0.5) == 0x1.368b2fc6f960ap-1);
    assert_true(portable_pow(7, 0) == 1 && isnan(portable_pow(-1, 2)) && isnan(portable_pow(2, NAN)));
    assert_true(portable_log(0x1p-1074) == -0x1.74385446d71c3p+9 && portable_log(0x1p+1023) == 0x1.628b76e3a7b61p+9);
}

static uint64_t add_bits(uint64_t hash, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return hash_bytes(hash, &bits, sizeof bits);
}

static void the_same_bits_everywhere(void **state) {
    (void)state;
    random_state = 1;
    uint64_t hash = 0;
    for (int i = 0; i < 20000; i++) {
        double x = angle(i), base = random_base(), power = 4 * fraction() - 2;
        hash = add_bits(add_bits(hash, portable_sin(x)), portable_cos(x));
        hash = add_bits(add_bits(hash, portable_log(base)), portable_pow(base, power));
    }
    if (hash != UINT64_C(0x6052fec96c7d356f)) fail_msg("the hash of all results is %016llx", (unsigned long long)hash);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_libm),
        cmocka_unit_test(edges),
        cmocka_unit_test(the_same_bits_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
