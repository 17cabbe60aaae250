/* fixed_functions.c: functions of one number by a fixed sequence of f32 operations. Each comparison takes the second
 * operand where the first is not less or greater, so that NaN stays NaN. */
#include "fixed.h"

#include <math.h>

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

float fixed_exp2_bf16(Way way, float x) {
    static const float terms[] = {0x1.276656p-7f, 0x1.c91b9ep-5f, 0x1.ebdbf8p-3f, 0x1.62e4b2p-1f, 98305.0f};
    const float t = larger(-126.0f, x), n = nearbyintf(t - 0.5f), r = t - n;
    float y = 0x1.e9ef8ap-10f;
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) y = fixed_add(way, terms[i], y, r);
    return x < -126.0f ? 0.0f : times_power(y - 98304.0f, n);
}

/* y, n and r with e^x = 2^n (1 + r y) for x from `least` on */
typedef struct Split {
    float y, n, r;
} Split;

static Split split_exp(Way way, float least, float x) {
    static const float terms[] = {0x1.126fbap-7f, 0x1.55541cp-5f, 0x1.555404p-3f, 0.5f, 1.0f};
    const float t = smaller(100.0f, larger(least, x)), n = nearbyintf(t * 0x1.715476p+0f);
    const float r = fixed_sub(way, fixed_sub(way, t, n, 0x1.62e4p-1f), n, 0x1.7f7d1cp-20f);
    float y = 0x1.6dd992p-10f;
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) y = fixed_add(way, terms[i], y, r);
    return (Split){y, n, r};
}

float fixed_exp(Way way, float x) {
    const Split e = split_exp(way, -110.0f, x);
    return times_power(fixed_add(way, 1.0f, e.y, e.r), e.n);
}

static float elu(Way way, float x) {
    const Split e = split_exp(way, -30.0f, x);
    const float power = times_power(1.0f, e.n);
    return x < 0.0f ? fixed_add(way, power - 1.0f, power, e.y * e.r) : x;
}

static float hard_sigmoid(float x) { return smaller(6.0f, larger(0.0f, x + 3.0f)) * 0x1.555556p-3f; }

float fixed_tanh(Way way, float x) {
    static const float terms[] = {0x1.518fe0p-6f, -0x1.b81dfap-5f, 0x1.1105cep-3f, -0x1.555526p-2f, 1.0f};
    const float size = fabsf(x), u = x * x;
    float y = -0x1.73bf82p-8f;
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) y = fixed_add(way, terms[i], y, u);
    const float large = 1.0f - 2.0f / (fixed_exp2(way, smaller(160.0f, size * 0x1.715476p+1f)) + 1.0f);
    return size < 0.625f ? x * y : copysignf(large, x);
}

static float gelu(Way way, float x) {
    static const float terms[] = {-0x1.7259ep-3f, 0x1.759206p-3f, 0x1.a29892p-6f,
                                  0x1.1ee51cp-3f, 0x1.223658p-3f, 0x1.26558ep-3f};
    const float u = 1.0f / fixed_add(way, 1.0f, fabsf(x), 0x1.70a3d8p-2f);
    float y = 0x1.840ee6p-5f;
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) y = fixed_add(way, terms[i], y, u);
    y = y * u * fixed_exp2(way, x * x * -0x1.715476p-1f);
    return x * (x < 0.0f ? y : 1.0f - y);
}

/* x / (1 + 2^power) */
static float over_power(Way way, float x, float power) {
    return x / (1.0f + fixed_exp2(way, smaller(160.0f, power)));
}

static float mish(Way way, float x) {
    const float power = fixed_exp(way, smaller(40.0f, x)), n = power * (power + 2.0f);
    return x * (n / (n + 2.0f));
}

static float softplus(Way way, float x) {
    static const float terms[] = {0x1.1eb62cp-3f, 0x1.99d27ap-3f, 0x1.5555p-2f, 1.0f};
    const float u = fixed_exp(way, 0.0f - fabsf(x)), t = (u + u) / (u + 2.0f), square = t * t * 0.25f;
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
    case ACTIVATION_leaky_relu: return larger(x * 0x1.47ae14p-7f, x);
    case ACTIVATION_elu: return elu(way, x);
    case ACTIVATION_hard_swish: return x * hard_sigmoid(x);
    case ACTIVATION_hard_sigmoid: return hard_sigmoid(x);
    case ACTIVATION_identity: return x;
    case ACTIVATION_COUNT: case MOST_ACTIVATIONS: break;
    }
    bug("the activation %d has no fixed formula", (int)kind);
}
