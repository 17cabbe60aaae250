/* fixed_functions.c: functions of one number by a fixed sequence of f32 operations. Each comparison takes the second
 * operand where the first is not less or greater, so that NaN stays NaN. */
#include "fixed.h"

#include <math.h>
#include <string.h>

typedef Arithmetic Way;

static float larger(float a, float b) { return a > b ? a : b; }
static float smaller(float a, float b) { return a < b ? a : b; }
static float times_power(float y, float n) { return isnan(n) ? n : (float)ldexp((double)y, (int)n); }

float fixed_exp2(Way way, float x) {
    static const float terms[] = {0x1.3ceba8p-7f, 0x1.c6b7bep-5f, 0x1.ebf9bap-3f, 0x1.62e428p-1f, 1.0f};
    const float t = larger(-126.0f, x), n = nearbyintf(t), r = t - n;
    float y = 0x1.5bba12p-10f;
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) y = fixed_add(way, terms[i], y, r);
    return x < -126.0f ? 0.0f : times_power(y, n);
}

/* e^x, which underflows to 0 and overflows to infinity */
static float whole_exp(Way way, float x) {
    static const float terms[] = {0x1.126fbap-7f, 0x1.55541cp-5f, 0x1.555404p-3f, 0.5f, 1.0f, 1.0f};
    const float t = smaller(100.0f, larger(-110.0f, x)), n = nearbyintf(t * 0x1.715476p+0f);
    const float r = fixed_sub(way, fixed_sub(way, t, n, 0x1.62e4p-1f), n, 0x1.7f7d1cp-20f);
    float y = 0x1.6dd992p-10f;
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) y = fixed_add(way, terms[i], y, r);
    return times_power(y, n);
}

float fixed_tanh(Way way, float x) {
    static const float terms[] = {0x1.518fe0p-6f, -0x1.b81dfap-5f, 0x1.1105cep-3f, -0x1.555526p-2f, 1.0f};
    const float size = fabsf(x), u = x * x;
    float y = -0x1.73bf82p-8f;
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) y = fixed_add(way, terms[i], y, u);
    const float large = 1.0f - 2.0f / (fixed_exp2(way, smaller(160.0f, size * 0x1.715476p+1f)) + 1.0f);
    return size < 0.625f ? x * y : copysignf(large, x);
}

/* Of the tail of the normal distribution, by parts of the distance from 0, each 13/31 wide, the first one half of that;
 * a row a power, the fifth first. */
static const float gelu_parts[6][16] = {
    {-0x1.04bbb2p-13f, -0x1.3bba04p-14f, 0x1.78a682p-16f, 0x1.4525acp-14f, 0x1.0685bep-14f, 0x1.461dcp-16f,
     -0x1.2ef9b6p-17f, -0x1.ecfc42p-17f, -0x1.430dbap-17f, -0x1.1aa87cp-18f, -0x1.5f8a9ap-20f, -0x1.5de41ap-22f,
     -0x1.140b6ep-24f, -0x1.5df21ap-27f, -0x1.6790a6p-30f, -0x1.2d4f7cp-33f},
    {-0x1.2923f8p-18f, -0x1.21a17ep-11f, -0x1.6a4f3cp-11f, -0x1.b249d6p-12f, -0x1.5cbd6p-15f, 0x1.5922a8p-13f,
     0x1.7b3396p-13f, 0x1.ded83ap-14f, 0x1.b0f7f8p-15f, 0x1.2bb98p-16f, 0x1.47135p-18f, 0x1.1eaff4p-20f,
     0x1.979312p-23f, 0x1.d931dp-26f, 0x1.c2dc1p-29f, 0x1.61d2dp-32f},
    {0x1.4174c6p-8f, 0x1.e50124p-9f, 0x1.0c1c58p-10f, -0x1.537ceap-10f, -0x1.1d7c2cp-9f, -0x1.e49a92p-10f,
     -0x1.212548p-10f, -0x1.07747ep-11f, -0x1.7b668ap-13f, -0x1.b7998cp-15f, -0x1.9ed1e4p-17f, -0x1.40605p-19f,
     -0x1.974df6p-22f, -0x1.abae88p-25f, -0x1.73e1cap-28f, -0x1.0c51eap-31f},
    {-0x1.032ap-22f, 0x1.b971bp-7f, 0x1.531734p-6f, 0x1.47b3ap-6f, 0x1.d838bep-7f, 0x1.0b887ep-7f, 0x1.e827b8p-9f,
     0x1.6b26a8p-10f, 0x1.bbe982p-12f, 0x1.bffcc8p-14f, 0x1.76825ap-16f, 0x1.03f0cep-18f, 0x1.2c1ffep-21f,
     0x1.2098a4p-24f, 0x1.ceb8p-28f, 0x1.3582e4p-31f},
    {-0x1.56a088p-3f, -0x1.39c96p-3f, -0x1.e20fdep-4f, -0x1.36934ap-4f, -0x1.4fa666p-5f, -0x1.30404p-6f,
     -0x1.cea102p-8f, -0x1.27014p-9f, -0x1.3b8f3cp-11f, -0x1.1b1cd2p-13f, -0x1.aa104cp-16f, -0x1.0ce59p-18f,
     -0x1.1cab5ap-21f, -0x1.f9844cp-25f, -0x1.787292p-28f, -0x1.d6382cp-32f},
    {0.5f, 0x1.5993fp-2f, 0x1.9b457ap-3f, 0x1.aabd0cp-4f, 0x1.7ed068p-5f, 0x1.2705e2p-6f, 0x1.84cc36p-8f,
     0x1.b4818cp-10f, 0x1.a05808p-12f, 0x1.50a60cp-14f, 0x1.ccbee6p-17f, 0x1.0a7b1ap-19f, 0x1.043ee4p-22f,
     0x1.acc79ap-26f, 0x1.29bf06p-29f, 0x1.c61c72p-34f},
};

static float gelu(Way way, float x) {
    float t = smaller(6.5f, fabsf(x));
    const float part = fixed_add(way, 0x1.8p+23f, t, 0x1.313b12p+1f); /* its last bits are the number of the part */
    uint32_t bits;
    memcpy(&bits, &part, sizeof bits);
    t = fixed_add(way, 0x1.8p+23f - part, t, 0x1.313b12p+1f);
    float y = gelu_parts[0][bits & 15];
    for (int power = 1; power < 6; power++) y = fixed_add(way, gelu_parts[power][bits & 15], y, t);
    y = larger(0.0f, y);
    return x * (x < 0.0f ? y : 1.0f - y);
}

/* x / (1 + 2^power) */
static float over_power(Way way, float x, float power) {
    return x / (1.0f + fixed_exp2(way, smaller(160.0f, power)));
}

static float mish(Way way, float x) {
    const float power = whole_exp(way, smaller(40.0f, x)), n = power * (power + 2.0f);
    return x * (n / (n + 2.0f));
}

static float softplus(Way way, float x) {
    static const float terms[] = {0x1.1eb62cp-3f, 0x1.99d27ap-3f, 0x1.5555p-2f, 1.0f};
    const float u = whole_exp(way, 0.0f - fabsf(x)), t = (u + u) / (u + 2.0f), square = t * t * 0.25f;
    float y = 0x1.1ef7e6p-3f;
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) y = fixed_add(way, terms[i], y, square);
    return fixed_add(way, larger(0.0f, x), t, y);
}

float fixed_activation(Way way, Activation kind, float x) {
    switch (kind) {
    case ACTIVATION_relu: return larger(0.0f, x);
    case ACTIVATION_relu2: return larger(0.0f, x) * larger(0.0f, x);
    case ACTIVATION_gelu: return gelu(way, x);
    case ACTIVATION_gelu_tanh:
        return over_power(way, x, x * fixed_add(way, -0x1.26aec2p+1f, x * x, -0x1.a5a7dp-4f));
    case ACTIVATION_silu: return over_power(way, x, x * -0x1.715476p+0f);
    case ACTIVATION_sigmoid: return over_power(way, 1.0f, x * -0x1.715476p+0f);
    case ACTIVATION_quick_gelu: return over_power(way, x, x * -0x1.3a4cbep+1f);
    case ACTIVATION_tanh: return fixed_tanh(way, x);
    case ACTIVATION_mish: return mish(way, x);
    case ACTIVATION_softplus: return softplus(way, x);
    case ACTIVATION_identity: return x;
    case ACTIVATION_COUNT: break;
    }
    bug("the activation %d has no fixed formula", (int)kind);
}
