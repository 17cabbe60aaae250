/* derived.c: sinusoids, rotations, bucketed biases and tables of scores, which follow from the spec and, for
 * relative positions and learned tables, from a weight. The interpreter and `pack` both call this code. It computes in
 * double, with support/elementary.c instead of libm, so that every machine gets the same bits; in tables of scores,
 * exp, tanh, sigmoid and erf come from libm. */
#include "../attnc.h"
#include "../formats/half.h"

#include <math.h>

static const double TURN = 6.283185307179586476925286766559;

/* The wavelength of pair i of `width` columns, in rows for each radian. */
static double sinusoid_wavelength(const Position *p, int64_t i, int64_t width) {
    const int64_t last = width / 2 - 1;
    const bool fairseq = p->sinusoid == SINUSOID_FAIRSEQ;
    return portable_pow(10000, fairseq ? (double)i / (double)last : 2 * (double)i / (double)width);
}

/* The sinusoids of the column of a patch fill the first half of its row, and those of its line the second half (He et
 * al. 2021, arXiv:2111.06377, whose code has them in this order). The rows before the patches are zeros. */
static void sinusoid_grid(const Derived *d, double *out) {
    const Position *p = d->position;
    const int64_t width = d->shape.dims[1] / 2, half = width / 2, rows = d->shape.dims[0];
    const bool interleaved = p->sinusoid == SINUSOID_INTERLEAVED;
    for (int64_t c = 0; c < rows * d->shape.dims[1]; c++) out[c] = 0;
    for (int64_t i = 0; i < half; i++) {
        const double wavelength = sinusoid_wavelength(p, i, width);
        for (int64_t row = p->grid_before; row < rows; row++) {
            const int64_t patch = row - p->grid_before;
            for (int64_t of_line = 0; of_line < 2; of_line++) {
                const int64_t index = of_line ? patch / p->grid_columns : patch % p->grid_columns;
                double *part = out + (2 * row + of_line) * width;
                part[interleaved ? 2 * i : i] = portable_sin((double)index / wavelength);
                part[interleaved ? 2 * i + 1 : half + i] = portable_cos((double)index / wavelength);
            }
        }
    }
}

/* "Attention Is All You Need" 3.5: PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) the cosine. */
static void sinusoids(const Derived *d, double *out) {
    int64_t width = d->shape.dims[1], half = width / 2;
    const int64_t first = d->position->skips; /* a row of zeros for tokens that have no position */
    for (int64_t c = 0; c < width * first; c++) out[c] = 0;
    bool interleaved = d->position->sinusoid == SINUSOID_INTERLEAVED;
    for (int64_t i = 0; i < half; i++) {
        double wavelength = sinusoid_wavelength(d->position, i, width);
        for (int64_t row = first; row < d->shape.dims[0]; row++) {
            double angle = (double)(row - first + d->position->offset) / wavelength;
            out[row * width + (interleaved ? 2 * i : i)] = portable_sin(angle);
            out[row * width + (interleaved ? 2 * i + 1 : half + i)] = portable_cos(angle);
        }
    }
}

/* LLaMA 3.1 stretches wavelengths above original/low by `factor`, keeps those below original/high, and interpolates
 * between the two in the range from one to the other. */
static double llama3_frequency(const Position *p, double frequency) {
    double wavelength = TURN / frequency, original = (double)p->original;
    if (wavelength < original / p->high) return frequency;
    if (wavelength > original / p->low) return frequency / p->factor;
    double smooth = (original / wavelength - p->low) / (p->high - p->low);
    return (1 - smooth) * frequency / p->factor + smooth * frequency;
}

/* YaRN (Peng et al. 2023): the dimension whose pair makes `rotations` turns within the original bound. */
static double yarn_dimension(const Position *p, double rotations) {
    double turns = portable_log((double)p->original / (rotations * TURN));
    return (double)p->rope_width * turns / (2 * portable_log(p->theta));
}

static double yarn_frequency(const Position *p, int64_t i, double frequency) {
    double low = yarn_dimension(p, p->beta_fast), high = yarn_dimension(p, p->beta_slow);
    if (!p->untruncated) low = floor(low), high = ceil(high);
    if (low < 0) low = 0;
    if (high > (double)p->rope_width - 1) high = (double)p->rope_width - 1;
    if (high == low) high += 0.001;
    double ramp = ((double)i - low) / (high - low);
    ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
    return frequency / p->factor * ramp + frequency * (1 - ramp);
}

/* The angle of pair i, in radians per row. */
static double rope_frequency(const Position *p, int64_t i, bool longer) {
    double frequency = portable_pow(p->theta, -2 * (double)i / (double)p->rope_width);
    switch (p->scaling) {
    case ROPE_PLAIN: break;
    case ROPE_LINEAR: return frequency / p->factor;
    case ROPE_LLAMA3: return llama3_frequency(p, frequency);
    case ROPE_YARN: return yarn_frequency(p, i, frequency);
    case ROPE_LONGROPE: return frequency / (longer ? p->long_factors[i] : p->short_factors[i]);
    }
    return frequency;
}

/* The factor on sines and cosines. */
static double rope_amplitude(const Position *p) {
    if (p->attention_factor > 0) return p->attention_factor;
    if (p->scaling == ROPE_YARN) return p->factor > 1 ? 0.1 * portable_log(p->factor) + 1 : 1;
    if (p->scaling != ROPE_LONGROPE || p->factor <= 1) return 1;
    return sqrt(1 + portable_log(p->factor) / portable_log((double)p->original));
}

/* Fills [rows][pairs]. A shape with more rows begins with the table for sequences up to `original`. */
static void rope_table(const Derived *d, double *out) {
    int64_t pairs = d->shape.dims[1], before = d->shape.dims[0] - d->rows;
    double amplitude = rope_amplitude(d->position);
    for (int64_t i = 0; i < pairs; i++) {
        double within = rope_frequency(d->position, i, false),
               whole = rope_frequency(d->position, i, d->rows > d->position->original);
        for (int64_t row = 0; row < d->shape.dims[0]; row++) {
            double angle = row < before ? (double)row * within : (double)(row - before) * whole;
            double turned = d->kind == DERIVED_ROPE_COS ? portable_cos(angle) : portable_sin(angle);
            out[row * pairs + i] = amplitude * turned;
        }
    }
}

/* The same for patches, as in DINOv3 (Simeoni et al. 2025, arXiv:2508.10104): a patch stands at its center, with lines
 * and columns that go from -1 to 1. The first half of the pairs turns by the line and the second half by the column, by
 * a whole turn for each 1 at the highest frequency. The rows in front of the patches are not turned. */
static void rope_grid(const Derived *d, double *out) {
    const Position *p = d->position;
    const int64_t pairs = d->shape.dims[1], half = pairs / 2;
    for (int64_t i = 0; i < pairs; i++) {
        const bool of_line = i < half;
        const double frequency = TURN * portable_pow(p->theta, -(double)(i % half) / (double)half);
        for (int64_t row = 0; row < d->shape.dims[0]; row++) {
            const int64_t patch = row - p->grid_before;
            const int64_t index = of_line ? patch / p->grid_columns : patch % p->grid_columns;
            const double center = (double)(2 * index + 1) / (double)(of_line ? p->grid_lines : p->grid_columns) - 1;
            const double angle = patch < 0 ? 0 : center * frequency;
            out[row * pairs + i] = d->kind == DERIVED_ROPE_COS ? portable_cos(angle) : portable_sin(angle);
        }
    }
}

static double to_bf16(double x) { return (double)float_of_bits((uint32_t)bf16_of_float((float)x) << 16); }

/* ALiBi (Press et al. 2021), whose slopes are powers of a base in f32, rounded to bf16, times positions rounded
 * likewise; and rounded again. */
static void key_bias(const Derived *d, double *out) {
    const int64_t width = d->shape.dims[1];
    int64_t power = 1;
    while (power * 2 <= d->heads) power *= 2;
    for (int64_t h = 0; h < d->heads; h++) {
        const int64_t members = h < power ? power : 2 * power, member = h < power ? h + 1 : 2 * (h - power) + 1;
        const float base = (float)portable_pow(2, -d->position->alibi_max / (double)members);
        const double slope = to_bf16(portable_pow((double)base, (double)member));
        for (int64_t row = 0; row < width; row++) out[h * width + row] = to_bf16(slope * to_bf16((double)row));
    }
}

/* T5 (Raffel et al. 2020): near distances have a bucket each, far distances share logarithmic buckets. The logarithm is
 * in single precision, as in the training of the published models, because its rounding decides where a bucket ends. */
static int64_t bucket(const Position *p, int64_t distance) {
    int64_t buckets = p->buckets, base = 0;
    if (p->bidirectional) {
        buckets /= 2;
        if (distance > 0) base = buckets;
        if (distance < 0) distance = -distance;
    } else {
        distance = distance < 0 ? -distance : 0;
    }
    int64_t exact = buckets / 2;
    if (distance < exact) return base + distance;
    float part = (float)portable_log((double)((float)distance / (float)exact));
    part /= (float)portable_log((double)p->distance / (double)exact);
    int64_t large = exact + (int64_t)(part * (float)(buckets - exact));
    return base + (large < buckets ? large : buckets - 1);
}

static void relative(const Derived *d, const float *source, double *out) {
    int64_t width = d->shape.dims[1], origin = d->rows - 1;
    for (int64_t i = 0; i < width; i++) {
        const float *row = source + bucket(d->position, i - origin) * d->heads;
        for (int64_t h = 0; h < d->heads; h++) out[h * width + i] = row[h];
    }
}

/* Copies the first `rows` rows of a table, writes `gap` rows of zeros, and copies the other rows. */
static void spread(const Derived *d, const float *source, double *out) {
    const int64_t width = d->shape.dims[1];
    for (int64_t row = 0; row < d->shape.dims[0]; row++)
        for (int64_t c = 0; c < width; c++) {
            const bool before = row < d->rows, within = !before && row < d->rows + d->gap;
            out[row * width + c] = within ? 0 : (double)source[(before ? row : row - d->gap) * width + c];
        }
}

/* The numbers of a rule of scores. */
static void of_rule(const Derived *d, double *out) {
    for (int64_t i = 0; i < d->shape.dims[0]; i++) {
        const PairAt index = {.index = (double)i};
        if (i >= d->rows) out[i] = 0;
        else out[i] = d->tabled == TABLED_NOT ? pair_value(d->rule, &index)
                                              : pair_tabled_value(d->rule, d->tabled, i, d->origin);
    }
}

int64_t derived_column(const Derived *d, int64_t i) {
    return d->tabled == TABLED_NOT ? i : (int64_t)pair_tabled_value(d->rule, d->tabled, i, d->origin);
}

/* Of the heads as indexes, each number is from the head's own row. */
static void learned(const Derived *d, const float *source, double *out) {
    const bool by_head = d->tabled == TABLED_HEAD;
    const int64_t width = d->shape.dims[d->shape.rank - 1], heads = d->shape.rank > 1 ? d->shape.dims[0] : 1;
    for (int64_t i = 0; i < d->rows; i++) {
        const int64_t column = derived_column(d, i);
        for (int64_t h = 0; h < heads; h++) out[h * width + i] = source[(by_head ? i : h) * d->columns + column];
    }
    for (int64_t h = 0; h < heads; h++)
        for (int64_t i = d->rows; i < width; i++) out[h * width + i] = 0;
}

/* A rotation by less than f32 holds turns nothing, and such a slope changes no score. */
static void without_denormals(const Derived *d, double *out) {
    int64_t count = 0;
    if (!shape_elements(d->shape, &count)) bug("the size of `%s` overflows", d->name);
    for (int64_t i = 0; i < count; i++)
        if (!f32_holds(out[i])) out[i] = 0;
}

void derived_fill(const Derived *derived, const float *source, double *out) {
    switch (derived->kind) {
    case DERIVED_NONE: bug("a derived tensor without a kind");
    case DERIVED_SINUSOIDS:
        if (derived->position->grid) sinusoid_grid(derived, out);
        else sinusoids(derived, out);
        break;
    case DERIVED_ROPE_COS: case DERIVED_ROPE_SIN:
        if (derived->position->grid) rope_grid(derived, out);
        else rope_table(derived, out);
        break;
    case DERIVED_KEY_BIAS: key_bias(derived, out); break;
    case DERIVED_RELATIVE: relative(derived, source, out); break;
    case DERIVED_SPREAD: spread(derived, source, out); break;
    case DERIVED_RULE: of_rule(derived, out); break;
    case DERIVED_LEARNED: learned(derived, source, out); break;
    case DERIVED_DISTANCES: case DERIVED_LAMBDA: bug("`%s` is made of several weights", derived->name);
    }
    if (!source) without_denormals(derived, out);
}
