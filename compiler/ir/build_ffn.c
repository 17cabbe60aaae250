/* build_ffn.c: the feed-forward sublayer, alone or as a mixture of experts. */
#include "builder.h"

#include <math.h>

/* One feed-forward of a sublayer: the only one, the shared one beside experts, or those of all experts. */
typedef struct Branch {
    const char *stem; /* of its weights' names: "", "shared." or "experts." */
    int64_t d_ff;
    const Experts *experts; /* NULL but for those of the experts */
    int choice;             /* of each row, with experts */
} Branch;

static LinearWeights declare(Build *b, const Stem *stem, const Branch *branch, const char *word, int64_t out,
                             int64_t in, bool bias) {
    const char *what = arena_printf(b->arena, "%s%s", branch->stem, word);
    if (branch->experts)
        return build_declare_experts(b, stem, what, branch->experts, out, in, bias, 1 / sqrt((double)in));
    return build_declare_linear(b, stem, what, out, in, bias, 1);
}

static int linear(Build *b, const Branch *branch, const LinearWeights *weights, int x) {
    if (branch->experts) return build_expert_linear(b, weights, branch->choice, x);
    return build_linear(b, weights, ROLE_NONE, x);
}

/* The name of a value of the branch. */
static const char *value_name(Build *b, const Branch *branch, const char *word) {
    return arena_printf(b->arena, "%s%s", branch->stem, word);
}

/* f(up), or f(gate) times up; `gate` is NO_TENSOR without one. */
static int activate(Build *b, const Branch *branch, const Ffn *f, int gate, int up) {
    const Tensor result = build_value_like(b, value_name(b, branch, "gated"), up);
    const PairRule *formula = activation_formula(b->model, f->activation);
    if (gate != NO_TENSOR && (f->limit > 0 || f->plus_one))
        return EMIT(gate, result,
                    ATTRIBUTES(.activation = f->activation, .formula = formula, .cap = f->limit,
                               .plus_one = f->plus_one), gate, up);
    const int x = gate == NO_TENSOR ? up : gate;
    const int activated = EMIT(activation, build_value_like(b, value_name(b, branch, "activated"), x),
                               ATTRIBUTES(.activation = f->activation, .formula = formula), x);
    return gate == NO_TENSOR ? activated : EMIT(mul, result, ATTRIBUTES(.scale = 1), activated, up);
}

static int feed_forward(Build *b, const Stem *stem, const Sublayer *s, const Branch *branch, int x) {
    const Ffn *f = &s->ffn;
    const int64_t d_model = build_columns(b, x);
    LinearWeights gate_weights = {0}; /* stand in front of those of `up`, which are read first */
    b->precision = &s->precision;
    if (f->gated) gate_weights = declare(b, stem, branch, "gate", branch->d_ff, d_model, f->bias_gate);
    const LinearWeights up_weights = declare(b, stem, branch, "up", branch->d_ff, d_model, f->bias_up);
    int up = linear(b, branch, &up_weights, x);
    up = activate(b, branch, f, f->gated ? linear(b, branch, &gate_weights, x) : NO_TENSOR, up);
    up = build_row_norm(b, stem, value_name(b, branch, "inner_norm"), up, f->inner_norm);
    b->precision = &s->last;
    const LinearWeights down_weights = declare(b, stem, branch, "down", d_model, branch->d_ff, f->bias_down);
    return linear(b, branch, &down_weights, up);
}

/* A projection to numbers that decide, which is always f32. */
static int decide(Build *b, const Stem *stem, const char *what, int x, int64_t out, bool bias) {
    const int64_t in = build_columns(b, x);
    LinearWeights w = {.what = what, .bias = NO_WEIGHT};
    const WeightSpec spec = {.shape = build_matrix(out, in), .deviation = 1 / sqrt((double)in)};
    w.weight = build_declare(b, stem, arena_printf(b->arena, "%s.weight", what), spec);
    if (bias) w.bias = build_declare_bias(b, stem, what, build_vector(out));
    return build_linear(b, &w, ROLE_NONE, x);
}

static int choose(Build *b, const Stem *stem, const Experts *e, int x) {
    const int logits = decide(b, stem, "router", x, e->count, e->bias);
    const Tensor choice = build_value2(b, "choice", build_rows(b, x), 2 * e->top);
    const WeightSpec spec = {.shape = build_vector(e->count), .deviation = 0.1};
    const int correction = e->corrected ? build_declare(b, stem, "router.correction", spec) : NO_WEIGHT;
    return EMIT(choose, choice, ATTRIBUTES(.experts = e), logits, build_weight(b, correction));
}

static int shared_expert(Build *b, const Stem *stem, const Sublayer *s, int x) {
    const Experts *e = &s->ffn.experts;
    const Branch branch = {.stem = "shared.", .d_ff = e->shared};
    const int y = feed_forward(b, stem, s, &branch, x);
    if (!e->shared_gated) return y;
    const int logit = decide(b, stem, "shared.router", x, 1, false);
    const int gate = EMIT(activation, build_value_like(b, "shared.share", logit),
                          ATTRIBUTES(.activation = ACTIVATION_sigmoid), logit);
    return EMIT(mul, build_value_like(b, "shared.scaled", y), ATTRIBUTES(.scale = 1), y, gate);
}

int build_ffn(Build *b, const Stem *stem, const Sublayer *s, int x) {
    const Experts *e = &s->ffn.experts;
    if (!e->count) return feed_forward(b, stem, s, &(Branch){.stem = "", .d_ff = s->ffn.d_ff}, x);
    const Branch branch = {.stem = "experts.", .d_ff = s->ffn.d_ff, .experts = e, .choice = choose(b, stem, e, x)};
    const int parts = feed_forward(b, stem, s, &branch, x);
    const Tensor result = build_value2(b, "experts", build_rows(b, x), build_columns(b, x));
    const int sum = EMIT(expert_sum, result, ATTRIBUTES(.experts = e), parts, branch.choice);
    if (!e->shared) return sum;
    const int shared = shared_expert(b, stem, s, x);
    return EMIT(add, build_value_like(b, "with_shared", sum), ATTRIBUTES(.scale = 1), sum, shared);
}
