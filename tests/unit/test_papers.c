/* test_papers.c: attention from a state, row for row against formulas of the papers, written here once more: every
 * query stands at its place in the conversation, whatever the call that brings it. */
#include "fixture.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>

enum { WIDE = 8, BOUND = 12, SOURCE = 4 };

static Module *module;
static Weights *weights;
static const char *now; /* the case, for messages */
static float *fed;      /* [BOUND][WIDE] */

static int begin_features(void **state) {
    begin(state);
    fed = arena_array(arena, BOUND * WIDE, sizeof *fed);
    random_normal(3, "features", 0, 1, BOUND * WIDE, fed);
    return 0;
}

static void load(const char *name, const char *text) {
    now = name;
    Compilation c = compiled_source(source_from_text(arena, name, text, strlen(text)), STAGE_REWRITE);
    module = c.module;
    weights = weights_load(arena, c.model, &module->weights, "random:5", false);
}

static const double *output_of(const Interpretation *result, OutputRole role) {
    for (int o = 0; o < result->n_outputs; o++)
        if (result->outputs[o].role == role) return result->outputs[o].data;
    fail_msg("%s: no output %s", now, output_name(role));
    return NULL;
}

/* `hidden` of `rows` more rows. */
static const double *decode(Session *session, int64_t rows) {
    static const int64_t prefix = 3;
    InputArray in[] = {{IN_features, DTYPE_F32, rows, fed + session_rows(session) * WIDE},
                       {IN_prefix_length, DTYPE_I64, 1, &prefix}};
    return output_of(session_decode(arena, session, in, 2, rows), OUT_hidden);
}

static const double *encode(Session *session) {
    static const int64_t ids[SOURCE] = {3, 1, 8, 3};
    InputArray in = {IN_source, DTYPE_I64, SOURCE, ids};
    return output_of(session_encode(arena, session, &in, 1, SOURCE), OUT_encoder_hidden);
}

static void near(double found, double wanted, int64_t row) {
    if (!(fabs(found - wanted) <= 1e-12 * (1 + fabs(wanted))))
        fail_msg("`%s`, row %lld: %.17g is not %.17g", now, (long long)row, found, wanted);
}

/* ------------------------------------------------------------------ self attention
 * One decoder layer that is nothing but attention over the rows that are fed, so that `hidden` is the heads side by
 * side. */

typedef struct Formula {
    const char *settings;
    int heads, groups, dim, value;
    double scale, cap;                    /* cap 0: none */
    bool (*sees)(int i, int j);           /* NULL: j <= i */
    double (*bias)(int head, int back);   /* added to the scaled score; back: i - j */
    int turned;                           /* columns of a head; 0: none */
    bool neighbours;                      /* pairs are (2p, 2p + 1), else (p, p + turned / 2) */
    double amplitude;                     /* of the turn */
    double (*angle)(int pair, int total); /* a row, with `total` rows in all */
    bool sinks;
    double norm_eps;                      /* RMS norm of queries and keys; 0: none */
    bool norm_late;                       /* of what is turned */
    double (*place)(int row, int column); /* added to what is fed */
} Formula;

static const float *named(const char *name) {
    const WeightSpec *spec = weight_spec_find(&module->weights, name);
    if (!spec) fail_msg("%s: no weight %s", now, name);
    return weights->data[spec - module->weights.specs];
}

static const float *own(const char *what) {
    return named(arena_printf(arena, "decoder.layers.0.attention.%s.weight", what));
}

/* out [n] = w [n][WIDE] x */
static void product(const float *w, const double *x, int n, double *out) {
    for (int i = 0; i < n; i++) {
        out[i] = 0;
        for (int c = 0; c < WIDE; c++) out[i] += (double)w[i * WIDE + c] * x[c];
    }
}

static void normalize(const Formula *f, const char *which, double *out) {
    const float *gain = own(which[0] == 'q' ? "query_norm" : "key_norm");
    double squares = 0;
    for (int c = 0; c < f->dim; c++) squares += out[c] * out[c];
    for (int c = 0; c < f->dim; c++) out[c] *= (double)gain[c] / sqrt(squares / f->dim + f->norm_eps);
}

/* Head `head` of w x, normalized and turned by its place. */
static void head_of(const Formula *f, const char *which, int head, const double *x, int place, int total, double *out) {
    double all[64];
    product(own(which), x, (head + 1) * f->dim, all);
    memcpy(out, all + head * f->dim, (size_t)f->dim * sizeof *out);
    if (f->norm_eps > 0 && !f->norm_late) normalize(f, which, out);
    for (int p = 0; p < f->turned / 2; p++) {
        int re = f->neighbours ? 2 * p : p, im = f->neighbours ? 2 * p + 1 : p + f->turned / 2;
        double complex z = (out[re] + I * out[im]) * f->amplitude * cexp(I * (place * f->angle(p, total)));
        out[re] = creal(z), out[im] = cimag(z);
    }
    if (f->norm_late) normalize(f, which, out);
}

/* Vaswani et al. 2017, 3.2.1 and 3.2.2: head by head the softmax of the scores that are seen, times the values.
 * x [total][WIDE]; out [heads * value] for the row at place i. */
static void attend(const Formula *f, const double *x, int i, int total, double *out) {
    for (int h = 0; h < f->heads; h++) {
        int group = h / (f->heads / f->groups);
        double q[16], k[16], v[64], e[BOUND], sum = f->sinks ? exp((double)own("sink")[h]) : 0;
        head_of(f, "query", h, x + i * WIDE, i, total, q);
        for (int j = 0; j < total; j++) {
            head_of(f, "key", group, x + j * WIDE, j, total, k);
            double score = 0;
            for (int c = 0; c < f->dim; c++) score += q[c] * k[c];
            score = f->scale * score + (f->bias ? f->bias(h, i - j) : 0);
            if (f->cap > 0) score = f->cap * tanh(score / f->cap);
            e[j] = (f->sees ? f->sees(i, j) : j <= i) ? exp(score) : 0;
            sum += e[j];
        }
        for (int c = 0; c < f->value; c++) out[h * f->value + c] = 0;
        for (int j = 0; j < total; j++) {
            product(own("value"), x + j * WIDE, (group + 1) * f->value, v);
            for (int c = 0; c < f->value; c++) out[h * f->value + c] += e[j] / sum * v[group * f->value + c];
        }
    }
}

/* StreamingLLM (Xiao et al. 2024): a window, and the first keys for ever. */
static bool sees_window(int i, int j) { return j <= i && (i - j < 3 || j < 2); }
static bool sees_prefix(int i, int j) { return j <= i || j < 3; }
static bool sees_both(int i, int j) { return sees_prefix(i, j) && abs(i - j) < 2; }

/* Press et al. 2022: of 4 heads the slopes are 2^-2, 2^-4, 2^-6, 2^-8. */
static double by_slope(int head, int back) { return -back * exp2(-2 * (head + 1)); }
static double by_slope_scaled(int head, int back) { return 0.3 * by_slope(head, back); }

/* Raffel et al. 2020, looking back only, 6 buckets, the last from distance 9 on: 3 + floor(3 ln(n / 3) / ln 3). */
static double by_bucket(int head, int back) {
    static const int bucket[BOUND] = {0, 1, 2, 3, 3, 4, 4, 5, 5, 5, 5, 5};
    return (double)own("relative")[bucket[back < 0 ? 0 : back] * 4 + head];
}

/* RoFormer (Su et al. 2021), eq. 15 and 34: 10000^(-2p/d). */
static double turn_of(int pair, int width) { return exp(-log(10000) * 2 * pair / width); }
static double plain_angle(int pair, int total) { return (void)total, turn_of(pair, 8); }
static double partial_angle(int pair, int total) { return (void)total, turn_of(pair, 4); }
/* Chen et al. 2023: places are divided. */
static double linear_angle(int pair, int total) { return (void)total, turn_of(pair, 8) / 5; }

/* Llama 3.1, factor 8 over 100 rows: wavelengths under 25 are kept, those over 100 stretched; that of pair 1, 20 pi, is
 * mixed. */
static double llama3_angle(int pair, int total) {
    static const double kept[] = {1, -1, 0, 0};
    double share = pair == 1 ? (100 / (20 * acos(-1)) - 1) / (4 - 1) : kept[pair];
    (void)total;
    return turn_of(pair, 8) * (share + (1 - share) / 8);
}

/* YaRN (Peng et al. 2023), factor 4 over 100 rows, as released: the ramp runs over pairs, from the one that turns 8
 * times in 100 rows to the one that turns once, both rounded outwards: 0 to 2. */
static double yarn_angle(int pair, int total) {
    static const double kept[] = {1, 0.5, 0, 0};
    (void)total;
    return turn_of(pair, 8) * (kept[pair] + (1 - kept[pair]) / 4);
}
static double yarn_real_angle(int pair, int total) {
    double from = 4 * log(100 / (8 * 2 * acos(-1))) / log(10000), to = 4 * log(100 / (2 * acos(-1))) / log(10000);
    double kept = 1 - fmin(1, fmax(0, (pair - from) / (to - from)));
    (void)total;
    return turn_of(pair, 8) * (kept + (1 - kept) / 4);
}

/* LongRoPE (Ding et al. 2024) as in Phi-3: one divisor a pair up to 3 rows, another beyond. */
static double longrope_angle(int pair, int total) {
    static const double within[] = {1, 1.25, 1.5, 2}, beyond[] = {1.5, 2, 4, 8};
    return turn_of(pair, 8) / (total > 3 ? beyond[pair] : within[pair]);
}

/* Vaswani et al. 2017, 3.5, from place 3 on. */
static double sinusoid(int row, int column) {
    double angle = (row + 3) * exp(-log(10000) * (column - column % 2) / WIDE);
    return column % 2 ? cos(angle) : sin(angle);
}
static double learned(int row, int column) {
    return (double)named("decoder.embedding.positions.weight")[(row + 2) * WIDE + column];
}

#define ROOT8 0.35355339059327376
#define HEADS(h, g, d, v) .heads = h, .groups = g, .dim = d, .value = v
#define TURN(columns, of, by) HEADS(4, 2, 8, 3), .scale = ROOT8, .turned = columns, .angle = of, .amplitude = by
static const Formula formulas[] = {
    {"", HEADS(4, 4, 4, 4), .scale = 0.5},
    {"score dot", HEADS(4, 1, 3, 5), .scale = 1},
    {"window 3, sink 2", HEADS(4, 2, 8, 3), .scale = ROOT8, .sees = sees_window},
    {"sink learned", HEADS(4, 2, 4, 2), .scale = 0.5, .sinks = true},
    {"softcap 0.4, scale 2", HEADS(4, 2, 4, 2), .scale = 2, .cap = 0.4},
    {"mask prefix", HEADS(4, 2, 4, 2), .scale = 0.5, .sees = sees_prefix},
    {"mask prefix, window 2", HEADS(4, 2, 4, 2), .scale = 0.5, .sees = sees_both},
    {"position alibi", HEADS(4, 4, 4, 2), .scale = 0.5, .bias = by_slope},
    {"position alibi, sink learned", HEADS(4, 4, 4, 2), .scale = 0.5, .bias = by_slope, .sinks = true},
    {"position alibi scaled, scale 0.3", HEADS(4, 4, 4, 2), .scale = 0.3, .bias = by_slope_scaled},
    {"score dot, position relative buckets 6 distance 9 per_layer", HEADS(4, 4, 4, 2), .scale = 1, .bias = by_bucket},
    {"position rope", TURN(8, plain_angle, 1)},
    {"position rope interleaved", TURN(8, plain_angle, 1), .neighbours = true},
    {"position rope partial 0.5, window 3, sink 2", TURN(4, partial_angle, 1), .sees = sees_window},
    {"position rope linear factor 5", TURN(8, linear_angle, 1)},
    {"position rope llama3 factor 8 original 100", TURN(8, llama3_angle, 1)},
    {"position rope yarn factor 4 original 100 beta_fast 8", TURN(8, yarn_angle, 1.1386294361119891)},
    {"position rope yarn factor 4 original 100 beta_fast 8 untruncated attention_factor 0.9",
     TURN(8, yarn_real_angle, 0.9)},
    {"position rope longrope factor 2 original 3 short 1 1.25 1.5 2 long 1.5 2 4 8",
     TURN(8, longrope_angle, 1.2770786011720099)}, /* sqrt(1 + ln 2 / ln 3) */
    {"qk_norm rmsnorm eps 0.01, position rope", TURN(8, plain_angle, 1), .norm_eps = 0.01},
    {"qk_norm rmsnorm eps 0.01 after_rotation, position rope partial 0.5", TURN(4, partial_angle, 1),
     .norm_eps = 0.01, .norm_late = true},
    {"position sinusoidal offset 3", HEADS(4, 4, 4, 2), .scale = 0.5, .place = sinusoid},
    {"position learned offset 2", HEADS(4, 4, 4, 2), .scale = 0.5, .place = learned},
};

static void check_formula(const Formula *f) {
    bool placed = f->place != NULL; /* a setting of the decoder */
    load(f->settings,
         arena_printf(arena,
                      "model m { d_model 8, norm none, decoder { seq <= 12, input features\n%s\n"
                      "layers 1 { attention self { heads %d, kv_heads %d, head_dim %d, value_dim %d\n"
                      "bias none, output none, residual no\n%s } } } }",
                      placed ? f->settings : "", f->heads, f->groups, f->dim, f->value, placed ? "" : f->settings));
    static const int64_t chunks[] = {4, 1, 1, 3, 1, 2};
    double x[BOUND * WIDE], wanted[64];
    for (int i = 0; i < BOUND * WIDE; i++) x[i] = (double)fed[i] + (f->place ? f->place(i / WIDE, i % WIDE) : 0);
    Session *session = session_new(arena, module, weights);
    for (int64_t c = 0, past = 0; c < 6; past += chunks[c++]) {
        const double *hidden = decode(session, chunks[c]);
        for (int64_t i = 0; i < chunks[c]; i++) {
            attend(f, x, (int)(past + i), (int)(past + chunks[c]), wanted);
            for (int k = 0; k < f->heads * f->value; k++)
                near(hidden[i * f->heads * f->value + k], wanted[k], past + i);
        }
    }
    session_free(session);
}

static void decoders_by_formulas(void **state) {
    for (size_t i = 0; i < sizeof formulas / sizeof *formulas; i++)
        end(state), begin_features(state), check_formula(&formulas[i]);
}

/* ------------------------------------------------------------------ cross attention */

static const float *cross(const char *what) {
    return named(arena_printf(arena, "decoder.layers.0.cross_attention.%s.weight", what));
}

static double inner(const double *a, const double *b, int n) {
    double sum = 0;
    for (int c = 0; c < n; c++) sum += a[c] * b[c];
    return sum;
}

/* Luong et al. 2015, 3.1, dot and general; Bahdanau et al. 2015, A.1.2. */
static double dot_score(const double *h, const double *s) { return inner(h, s, WIDE); }
static double general_score(const double *h, const double *s) {
    double turned[WIDE];
    product(cross("score"), s, WIDE, turned);
    return inner(h, turned, WIDE);
}
static double additive_score(const double *h, const double *s) {
    double from_query[5], from_key[5], sum = 0;
    product(cross("score.query"), h, 5, from_query);
    product(cross("score.key"), s, 5, from_key);
    for (int c = 0; c < 5; c++) sum += (double)cross("score.vector")[c] * tanh(from_query[c] + from_key[c]);
    return sum;
}
static double scaled_score(const double *h, const double *s) {
    double q[3], k[3];
    product(cross("query"), h, 3, q);
    product(cross("key"), s, 3, k);
    return inner(q, k, 3) / sqrt(3);
}

static const struct {
    const char *settings;
    double (*score)(const double *h, const double *s);
    bool projected;
} over_source[] = {
    {"score dot, project none", dot_score, false},
    {"score general", general_score, false},
    {"score additive, d_score 5", additive_score, false},
    {"heads 1, head_dim 3, value_dim 8, output none", scaled_score, true},
};

static void check_over_source(size_t f) {
    static const Formula self = {"", HEADS(2, 2, 4, 4), .scale = 0.5};
    load(over_source[f].settings, arena_printf(arena,
                                               "model m { d_model 8, vocab 9, norm none\n"
                                               "encoder { seq <= 5, layers 1 { attention self { heads 2 } } }\n"
                                               "decoder { seq <= 12, input features, layers 1 {\n"
                                               "attention self { heads 2, bias none, output none, residual no }\n"
                                               "attention cross { bias none, residual no, %s } } } }",
                                               over_source[f].settings));
    Session *session = session_new(arena, module, weights);
    const double *source = encode(session);
    double x[BOUND * WIDE], h[WIDE], v[WIDE];
    for (int i = 0; i < BOUND * WIDE; i++) x[i] = (double)fed[i];
    for (int64_t past = 0, n = 3; past < 6; past += n, n = 1) {
        const double *hidden = decode(session, n);
        for (int64_t i = 0; i < n; i++) {
            double e[SOURCE], sum = 0, wanted[WIDE] = {0};
            attend(&self, x, (int)(past + i), (int)(past + n), h);
            for (int j = 0; j < SOURCE; j++) sum += e[j] = exp(over_source[f].score(h, source + j * WIDE));
            for (int j = 0; j < SOURCE; j++) {
                memcpy(v, source + j * WIDE, sizeof v);
                if (over_source[f].projected) product(cross("value"), source + j * WIDE, WIDE, v);
                for (int c = 0; c < WIDE; c++) wanted[c] += e[j] / sum * v[c];
            }
            for (int c = 0; c < WIDE; c++) near(hidden[i * WIDE + c], wanted[c], past + i);
        }
    }
    session_free(session);
}

static void sources_by_formulas(void **state) {
    for (size_t f = 0; f < sizeof over_source / sizeof *over_source; f++)
        end(state), begin_features(state), check_over_source(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST_WITH(begin_features, decoders_by_formulas),
        TEST_WITH(begin_features, sources_by_formulas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
