/* interp.c: the judge. It runs a graph as built, before any pass, one sequence at a time, in double, with
 * plain loops. Nothing here is shared with the emitter but ops.def. */
#include "../attnc.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* A tensor's numbers: weights stay as the file has them, everything else is double. */
typedef struct Numbers {
    const float *single;
    const double *real;
    const int64_t *ids;
    const uint8_t *flags;
} Numbers;

/* How results are rounded. */
typedef struct Rounding {
    uint64_t state; /* what directions are drawn from; 0: results stay as they are */
    double steps;   /* how many times as far as to the f32 number they go */
} Rounding;

typedef struct Interp {
    Arena *arena;
    const Module *module;
    const Graph *graph;
    const int64_t *symbols;
    Numbers *numbers; /* one a tensor */
    Rounding rounding;
} Interp;

static int64_t size_of(const Interp *in, Dim dim) {
    return dim.symbol ? in->symbols[dim.symbol - 1] : dim.n;
}
static int64_t extent(const Interp *in, int tensor, int d) {
    const Tensor *t = &in->graph->tensors[tensor];
    return d < t->rank ? size_of(in, t->dims[d]) : 1;
}
static double at(Numbers n, int64_t i) { return n.single ? (double)n.single[i] : n.real[i]; }

/* ---------------------------------------------------------------- rounding */

/* x goes to one of the two numbers around it, or `steps` times as far. */
static double moved(Rounding *how, double x, double below, double above) {
    how->state = how->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return x + how->steps * ((how->state >> 63 ? above : below) - x);
}

static double rounded(Rounding *how, double x) {
    float nearest = (float)x;
    if (!(fabs(x) <= (double)FLT_MAX) || (double)nearest == x) return (double)nearest;
    bool low = (double)nearest < x;
    float other = nextafterf(nearest, low ? INFINITY : -INFINITY);
    return moved(how, x, (double)(low ? nearest : other), (double)(low ? other : nearest));
}

/* Whether a sum passed what f32 holds on its way, where results are rounded; `size`: its terms without their signs.
 * Terms that are infinite or NaN speak for themselves. */
static bool beyond(const Rounding *how, double size) {
    return how->state && isfinite(size) && size > (double)FLT_MAX;
}

/* `sum`, the product of a[i..i+d-1] and b[j..j+d-1], as f32 may have it where results are rounded: on the way it is as
 * large as its terms together, so NaN where finite ones pass FLT_MAX, else rounded as a number of that size is. Its own
 * size may be far smaller, and that its factors are rounded does not tell, where they are inputs and weights. */
static double summed(Rounding *how, double sum, Numbers a, int64_t i, Numbers b, int64_t j, int64_t d) {
    if (!how->state) return sum;
    double size = 0;
    for (int64_t c = 0; c < d; c++) size += fabs(at(a, i + c) * at(b, j + c));
    if (!isfinite(size)) return sum;
    if (beyond(how, size)) return NAN;
    int exponent;
    frexp(size, &exponent);
    if (exponent < FLT_MIN_EXP) exponent = FLT_MIN_EXP;
    double unit = ldexp(1, exponent - FLT_MANT_DIG), below = unit * floor(sum / unit);
    return below == sum ? sum : moved(how, sum, below, below + unit);
}

/* ---------------------------------------------------------------- rows and columns */

/* ids [n], table [v][d] -> out [n][d] */
static void run_embed(const int64_t *ids, Numbers table, int64_t n, int64_t d, double *out) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < d; c++) out[i * d + c] = at(table, ids[i] * d + c);
}

/* pixels [3][height][width] -> out [n][3*p*p] */
static void run_patches(Numbers pixels, int64_t height, int64_t width, int64_t p, double *out) {
    for (int64_t top = 0; top < height; top += p)
        for (int64_t left = 0; left < width; left += p)
            for (int64_t c = 0; c < 3; c++)
                for (int64_t y = 0; y < p; y++)
                    for (int64_t x = 0; x < p; x++) *out++ = at(pixels, (c * height + top + y) * width + left + x);
}

enum { COLUMN_BLOCK = 64 };

/* x [n][k], weight [d][k], bias [d] or none -> out [n][d]; sums as `summed` has them. Columns are innermost, in blocks
 * whose weights are turned first, so that the inner loop runs over neighbours. */
static void run_linear(Arena *arena, Rounding *how, Numbers x, Numbers weight, const Numbers *bias, int64_t n,
                       int64_t k, int64_t d, double *out) {
    double *turned = arena_array(arena, (size_t)(k * COLUMN_BLOCK), sizeof *turned);
    for (int64_t c0 = 0; c0 < d; c0 += COLUMN_BLOCK) {
        int64_t columns = d - c0 < COLUMN_BLOCK ? d - c0 : COLUMN_BLOCK;
        progress_tick();
        for (int64_t c = 0; c < columns; c++)
            for (int64_t j = 0; j < k; j++) turned[j * COLUMN_BLOCK + c] = at(weight, (c0 + c) * k + j);
        for (int64_t i = 0; i < n; i++) {
            double sum[COLUMN_BLOCK] = {0};
            for (int64_t j = 0; j < k; j++) {
                double factor = at(x, i * k + j);
                for (int64_t c = 0; c < COLUMN_BLOCK; c++) sum[c] += factor * turned[j * COLUMN_BLOCK + c];
            }
            for (int64_t c = 0; c < columns; c++)
                out[i * d + c0 + c] = summed(how, sum[c], x, i * k, weight, (c0 + c) * k, k) +
                                      (bias ? at(*bias, c0 + c) : 0);
        }
    }
}

/* No 1 + erf or 1 + tanh: far below 0 they leave nothing of small results, which f32 has. */
static double activate(Activation kind, double x) {
    switch (kind) {
    case ACTIVATION_RELU: return x < 0 ? 0 : x; /* keeps NaN */
    case ACTIVATION_GELU: return x * 0.5 * erfc(-x * sqrt(0.5));
    case ACTIVATION_GELU_TANH:
        return x / (1 + exp(-2 * sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
    case ACTIVATION_SILU: return x / (1 + exp(-x));
    case ACTIVATION_RELU2: return x < 0 ? 0 : x * x;
    case ACTIVATION_QUICK_GELU: return x / (1 + exp(-1.702 * x));
    case ACTIVATION_TANH: return tanh(x);
    }
    return x;
}

/* x [n][groups*d], weight [d] or [groups][d] -> out; each group of d columns is normalized alone. Squares beyond f32
 * are infinite, and of a sum beyond f32 the mean is NaN. */
static void run_norm(const Rounding *how, bool centered, Numbers x, Numbers weight, bool weight_per_group,
                     const Numbers *bias, int64_t n, int64_t groups, int64_t d, const OpAttributes *a, double *out) {
    for (int64_t row = 0; row < n * groups; row++) {
        int64_t base = row * d, first = weight_per_group ? row % groups * d : 0;
        double mean = 0, size = 0, variance = 0;
        for (int64_t c = 0; c < d && centered; c++) mean += at(x, base + c), size += fabs(at(x, base + c));
        mean = beyond(how, size) ? NAN : mean / (double)d;
        for (int64_t c = 0; c < d; c++) variance += (at(x, base + c) - mean) * (at(x, base + c) - mean);
        if (beyond(how, variance)) variance = INFINITY;
        double root = 1 / sqrt(variance / (double)d + a->eps);
        for (int64_t c = 0; c < d; c++) {
            double gain = at(weight, first + c) + (a->plus_one ? 1 : 0);
            out[base + c] = (at(x, base + c) - mean) * root * gain + (bias ? at(*bias, first + c) : 0);
        }
    }
}

/* x [n][heads*head_dim], cosine and sine [rows][width/2]: pairs of the first `width` columns are rotated, those of
 * row i by the angles of row past + i. Of more than `offset` rows in all, row 0 has its angles at row `offset`. */
static void run_rope(Numbers x, Numbers cosine, Numbers sine, int64_t n, int64_t past, const OpAttributes *a,
                     double *out) {
    int64_t pairs = a->width / 2, columns = a->heads * a->head_dim;
    int64_t begin = past + (past + n > a->offset ? a->offset : 0);
    for (int64_t i = 0; i < n * columns; i++) out[i] = at(x, i);
    for (int64_t i = 0; i < n; i++)
        for (int64_t h = 0; h < a->heads; h++)
            for (int64_t p = 0; p < pairs; p++) {
                int64_t first = i * columns + h * a->head_dim + (a->interleaved ? 2 * p : p);
                int64_t second = first + (a->interleaved ? 1 : pairs);
                double c = at(cosine, (begin + i) * pairs + p), s = at(sine, (begin + i) * pairs + p), u = at(x, first),
                       v = at(x, second);
                out[first] = u * c - v * s;
                out[second] = v * c + u * s;
            }
}

/* ---------------------------------------------------------------- attention */

/* query [n][heads*d], key [m][kv_heads*d] -> out [heads][n][m]; sums as `summed` has them */
static void run_scores(Rounding *how, Numbers query, Numbers key, int64_t n, int64_t m, const OpAttributes *a,
                       double *out) {
    int64_t d = a->head_dim, group = a->heads / a->kv_heads;
    for (int64_t h = 0; h < a->heads; h++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < m; j++) {
                int64_t q = (i * a->heads + h) * d, k = (j * a->kv_heads + h / group) * d;
                double sum = 0;
                for (int64_t c = 0; c < d; c++) sum += at(query, q + c) * at(key, k + c);
                out[(h * n + i) * m + j] = a->scale * summed(how, sum, query, q, key, k, d);
            }
}

static void run_additive_scores(Numbers query, Numbers key, Numbers vector, int64_t n, int64_t m, int64_t d,
                                double scale, double *out) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++) {
            double sum = 0;
            for (int64_t c = 0; c < d; c++) sum += at(vector, c) * tanh(at(query, i * d + c) + at(key, j * d + c));
            out[i * m + j] = scale * sum;
        }
}

/* What a query may see: `past` rows stand before query 0, `mask` is [n][m] or NULL. */
typedef struct Sight {
    const uint8_t *mask;
    int64_t prefix, past;
} Sight;

static bool visible(const OpAttributes *a, const Sight *sight, int64_t m, int64_t row, int64_t j) {
    int64_t i = sight->past + row;
    if (a->has_prefix) {
        if (j > i && j >= sight->prefix) return false;
    } else if (a->causal && j > i) {
        return false;
    }
    if (a->window && j >= a->sink && (i > j ? i - j : j - i) >= a->window) return false;
    return !sight->mask || sight->mask[row * m + j];
}

/* scores [heads][n][m] -> out [heads][n][m]. A row that sees nothing is 0; a learned sink joins the sum. */
static void run_softmax(Numbers scores, const Sight *sight, const Numbers *sink, int64_t heads, int64_t n, int64_t m,
                        const OpAttributes *a, double *out) {
    for (int64_t h = 0; h < heads; h++)
        for (int64_t i = 0; i < n; i++) {
            int64_t row = (h * n + i) * m;
            double most = sink ? at(*sink, h) : -INFINITY, sum = 0;
            for (int64_t j = 0; j < m; j++)
                if (visible(a, sight, m, i, j) && !(at(scores, row + j) <= most)) most = at(scores, row + j);
            bool sees = false;
            for (int64_t j = 0; j < m; j++) {
                bool seen = visible(a, sight, m, i, j);
                out[row + j] = seen ? exp(at(scores, row + j) - most) : 0;
                sum += out[row + j];
                sees |= seen;
            }
            if (sink) sum += exp(at(*sink, h) - most);
            for (int64_t j = 0; j < m && sees; j++)
                if (visible(a, sight, m, i, j)) out[row + j] /= sum;
        }
}

/* Of x[i..i+d-1] without their signs; NaN counts as nothing. */
static double largest(Numbers x, int64_t i, int64_t d) {
    double most = 0;
    for (int64_t c = 0; c < d; c++) most = fmax(most, fabs(at(x, i + c)));
    return most;
}

/* weights [heads][n][m], value [m][kv_heads*d] -> out [n][heads*d]. `hiding` are the softmax's attributes: the value of
 * a hidden key is not touched, since 0 * inf is NaN, as it is where a key is seen and its weight is 0. Who adds up
 * before dividing by the softmax's sum may have any weight up to 1 on the way: values beyond f32 together have no mean
 * there. */
static void run_mix(const Rounding *how, Numbers weights, Numbers value, const OpAttributes *hiding,
                    const Sight *sight, int64_t n, int64_t m, const OpAttributes *a, double *out) {
    int64_t d = a->head_dim, group = a->heads / a->kv_heads;
    for (int64_t h = 0; h < a->heads; h++)
        for (int64_t i = 0; i < n; i++) {
            double *row = out + (i * a->heads + h) * d, size = 0;
            for (int64_t j = 0; j < m; j++) {
                if (!visible(hiding, sight, m, i, j)) continue;
                double p = at(weights, (h * n + i) * m + j);
                for (int64_t c = 0; c < d; c++) row[c] += p * at(value, (j * a->kv_heads + h / group) * d + c);
                if (how->state) size += largest(value, (j * a->kv_heads + h / group) * d, d);
            }
            for (int64_t c = 0; c < d && beyond(how, size); c++) row[c] = NAN;
        }
}

/* ---------------------------------------------------------------- heads */

/* x [n][d] -> out [d]; a sum beyond f32 has no mean */
static void run_pool(const Rounding *how, PoolKind kind, Numbers x, int64_t n, int64_t d, double *out) {
    for (int64_t c = 0; c < d; c++) {
        double first = at(x, c), most = first, sum = 0, size = 0;
        for (int64_t i = 0; i < n; i++) {
            double v = at(x, i * d + c);
            sum += v, size += fabs(v);
            if (v > most || v != v) most = v;
        }
        switch (kind) {
        case POOL_MEAN: out[c] = beyond(how, size) ? NAN : sum / (double)n; break;
        case POOL_NONE: case POOL_CLS: out[c] = first; break;
        case POOL_MAX: out[c] = most; break;
        case POOL_LAST: out[c] = at(x, (n - 1) * d + c); break;
        }
    }
}

/* x [d] -> out [d], of length 1; squares beyond f32 are infinite */
static void run_l2(const Rounding *how, Numbers x, int64_t d, double *out) {
    double sum = 0;
    for (int64_t c = 0; c < d; c++) sum += at(x, c) * at(x, c);
    if (beyond(how, sum)) sum = INFINITY;
    double length = sqrt(sum) > 1e-12 || sum != sum ? sqrt(sum) : 1e-12;
    for (int64_t c = 0; c < d; c++) out[c] = at(x, c) / length;
}

/* ---------------------------------------------------------------- the graph */

static int64_t past_of(const Interp *in, const OpAttributes *a) { return a->past ? in->symbols[a->past - 1] : 0; }

/* Of a softmax, whose inputs from `next` on are then others. */
static Sight sight_of(const Interp *in, const Op *softmax, int *next) {
    const OpAttributes *a = &softmax->a;
    Sight sight = {.past = past_of(in, a)};
    *next = 1;
    if (a->has_mask) sight.mask = in->numbers[softmax->inputs[(*next)++]].flags;
    if (a->has_prefix) sight.prefix = in->numbers[softmax->inputs[(*next)++]].ids[0];
    return sight;
}

static void run_softmax_op(Interp *in, const Op *op, double *out) {
    int next;
    Sight sight = sight_of(in, op, &next);
    const Numbers *sink = op->a.has_sink ? &in->numbers[op->inputs[next]] : NULL;
    run_softmax(in->numbers[op->inputs[0]], &sight, sink, extent(in, op->result, 0), extent(in, op->result, 1),
                extent(in, op->result, 2), &op->a, out);
}

/* Weights that no softmax made hide nothing. */
static void run_mix_op(Interp *in, const Op *op, double *out) {
    static const OpAttributes nothing;
    const OpAttributes *hiding = &nothing;
    Sight sight = {0};
    for (const Op *by = in->graph->ops; by < op; by++) {
        if (by->kind != OP_softmax || by->result != op->inputs[0]) continue;
        int next;
        hiding = &by->a;
        sight = sight_of(in, by, &next);
    }
    run_mix(&in->rounding, in->numbers[op->inputs[0]], in->numbers[op->inputs[1]], hiding, &sight,
            extent(in, op->result, 0), extent(in, op->inputs[0], 2), &op->a, out);
}

/* The state's rows, then those of x. */
static void run_append(Interp *in, const Op *op, int64_t total, int64_t d, double *out) {
    int64_t past = extent(in, op->inputs[0], 0), rows = extent(in, op->inputs[1], 0);
    if (past + rows != total)
        bug("%lld rows behind %lld are not %lld", (long long)rows, (long long)past, (long long)total);
    for (int64_t i = 0; i < past * d; i++) out[i] = at(in->numbers[op->inputs[0]], i);
    for (int64_t i = 0; i < rows * d; i++) out[past * d + i] = at(in->numbers[op->inputs[1]], i);
}

static void run_prepend(Interp *in, const Op *op, int64_t total, int64_t d, double *out) {
    int heads = op->n_inputs - 1;
    for (int64_t i = 0; i < total * d; i++) {
        int64_t row = i / d;
        out[i] =
            row < heads ? at(in->numbers[op->inputs[row]], i % d) : at(in->numbers[op->inputs[heads]], i - heads * d);
    }
}

static void run_op(Interp *in, const Op *op) {
    const OpAttributes *a = &op->a;
    Numbers x = in->numbers[op->inputs[0]], y = x, z = x; /* y and z are read where the op has them */
    if (op->n_inputs > 1) y = in->numbers[op->inputs[1]];
    if (op->n_inputs > 2) z = in->numbers[op->inputs[2]];
    int64_t n = extent(in, op->result, 0), d = extent(in, op->result, 1), count = n * d * extent(in, op->result, 2);
    double *out = arena_array(in->arena, (size_t)count, sizeof *out);
    switch (op->kind) {
    case OP_embed: run_embed(x.ids, y, n, d, out); break;
    case OP_take_rows: for (int64_t i = 0; i < count; i++) out[i] = at(x, (a->offset + past_of(in, a)) * d + i); break;
    case OP_append: run_append(in, op, n, d, out); break;
    case OP_patches: run_patches(x, extent(in, op->inputs[0], 1), extent(in, op->inputs[0], 2), a->patch, out); break;
    case OP_prepend: run_prepend(in, op, n, d, out); break;
    case OP_add: {
        bool same_row = in->graph->tensors[op->inputs[1]].rank == 1;
        for (int64_t i = 0; i < count; i++) out[i] = at(x, i) + a->scale * at(y, same_row ? i % d : i);
        break;
    }
    case OP_mul: for (int64_t i = 0; i < count; i++) out[i] = at(x, i) * at(y, i); break;
    case OP_scale: for (int64_t i = 0; i < count; i++) out[i] = a->scale * at(x, i); break;
    case OP_linear:
        run_linear(in->arena, &in->rounding, x, y, op->n_inputs > 2 ? &z : NULL, n, extent(in, op->inputs[0], 1), d,
                   out);
        break;
    case OP_activation: for (int64_t i = 0; i < count; i++) out[i] = activate(a->activation, at(x, i)); break;
    case OP_softcap: for (int64_t i = 0; i < count; i++) out[i] = a->cap * tanh(at(x, i) / a->cap); break;
    case OP_layernorm: case OP_rmsnorm:
        run_norm(&in->rounding, op->kind == OP_layernorm, x, y, in->graph->tensors[op->inputs[1]].rank == 2,
                 op->n_inputs > 2 ? &z : NULL, n, a->groups, d / a->groups, a, out);
        break;
    case OP_rope: run_rope(x, y, z, n, past_of(in, a), a, out); break;
    case OP_scores: run_scores(&in->rounding, x, y, d, extent(in, op->result, 2), a, out); break;
    case OP_additive_scores:
        run_additive_scores(x, y, z, d, extent(in, op->result, 2), extent(in, op->inputs[0], 1), a->scale, out);
        break;
    case OP_relative_bias: case OP_alibi: {
        int64_t m = extent(in, op->result, 2), width = extent(in, op->inputs[1], 1);
        for (int64_t i = 0; i < count; i++) {
            int64_t h = i / (d * m), distance = i % m - i / m % d - past_of(in, a);
            out[i] = at(x, i) + (op->kind == OP_alibi ? -at(y, h) * fabs((double)distance)
                                                      : at(y, h * width + distance + a->offset));
        }
        break;
    }
    case OP_softmax: run_softmax_op(in, op, out); break;
    case OP_mix: run_mix_op(in, op, out); break;
    case OP_pool: run_pool(&in->rounding, a->pool, x, extent(in, op->inputs[0], 0), d, out); break;
    case OP_l2: run_l2(&in->rounding, x, d, out); break;
    case OP_COUNT: break;
    }
    for (int64_t i = 0; i < count && in->rounding.state; i++) out[i] = rounded(&in->rounding, out[i]);
    in->numbers[op->result].real = out;
}

/* ---------------------------------------------------------------- inputs and outputs */

static void check_ids(const Interp *in, const GraphInput *input, const int64_t *ids, int64_t n) {
    for (int o = 0; o < in->graph->n_ops; o++) {
        const Op *op = &in->graph->ops[o];
        if (op->kind != OP_embed || op->inputs[0] != input->tensor) continue;
        int64_t rows = in->graph->tensors[op->inputs[1]].dims[0].n;
        for (int64_t i = 0; i < n; i++)
            if (ids[i] < 0 || ids[i] >= rows)
                fail("input %s: id %lld at %lld is outside 0 to %lld", input->name, (long long)ids[i], (long long)i,
                     (long long)rows - 1);
    }
}

static void check_prefix(const GraphInput *input, int64_t prefix) {
    if (prefix < 0 || prefix > input->most)
        fail("input prefix_length is %lld; it must be 0 to %lld", (long long)prefix, (long long)input->most);
}

static void bind_input(Interp *in, const GraphInput *input, const InputArray *arrays, int n_arrays) {
    const Tensor *t = &in->graph->tensors[input->tensor];
    int64_t count = 1;
    for (int d = 0; d < t->rank; d++) count *= size_of(in, t->dims[d]);
    const InputArray *array = NULL;
    for (int i = 0; i < n_arrays; i++)
        if (strcmp(arrays[i].name, input->name) == 0) array = &arrays[i];
    Numbers *numbers = &in->numbers[input->tensor];
    if (!array && !input->optional) fail("input %s is missing", input->name);
    if (!array && strcmp(input->name, "value") == 0) { /* attention alone: the keys are the values */
        for (int i = 0; i < in->graph->n_inputs; i++)
            if (strcmp(in->graph->inputs[i].name, "key") == 0) *numbers = in->numbers[in->graph->inputs[i].tensor];
        return;
    }
    if (!array) {
        numbers->ids = arena_array(in->arena, (size_t)count, sizeof(int64_t));
        return;
    }
    if (array->dtype != t->dtype)
        bug("input %s comes as %s, not %s", input->name, dtype_name(array->dtype), dtype_name(t->dtype));
    if (array->rows != size_of(in, t->dims[0]))
        fail("input %s has %lld rows; it must have %lld", input->name, (long long)array->rows,
             (long long)size_of(in, t->dims[0]));
    if (t->dtype == DTYPE_F32) numbers->single = array->data;
    else if (t->dtype == DTYPE_U8) numbers->flags = array->data;
    else numbers->ids = array->data;
    if (strcmp(input->name, "prefix_length") == 0) check_prefix(input, numbers->ids[0]);
    else if (t->dtype == DTYPE_I64) check_ids(in, input, numbers->ids, count);
}

static void bind_constants(Interp *in, const Weights *weights) {
    const Module *module = in->module;
    for (int t = 0; t < in->graph->n_tensors; t++) {
        const Tensor *tensor = &in->graph->tensors[t];
        if (tensor->kind == TENSOR_WEIGHT) in->numbers[t].single = weights->data[tensor->weight];
        if (tensor->kind != TENSOR_DERIVED) continue;
        const Derived *d = &module->derived[tensor->weight];
        int64_t count = 0;
        if (!shape_elements(d->shape, &count)) bug("the derived tensor `%s` is too large", d->name);
        double *out = arena_array(in->arena, (size_t)count, sizeof *out);
        derived_fill(d, d->kind == DERIVED_RELATIVE ? weights->data[d->source] : NULL, out);
        in->numbers[t].real = out;
    }
}

static const double *widened(Arena *arena, Numbers numbers, int64_t count) {
    if (numbers.real || !numbers.single) return numbers.real;
    double *wide = arena_array(arena, (size_t)count, sizeof *wide);
    for (int64_t i = 0; i < count; i++) wide[i] = numbers.single[i];
    return wide;
}

static Interpretation *run_graph(Interp *in, const Weights *weights, const InputArray *inputs, int n_inputs,
                                 const double *const *states) {
    const Graph *graph = in->graph;
    const int64_t *symbols = in->symbols;
    for (int s = 0; s < graph->n_symbols; s++)
        if (symbols[s] < graph->symbols[s].least || symbols[s] > graph->symbols[s].bound)
            fail("the length %s is %lld; it must be %lld to %lld", graph->symbols[s].name, (long long)symbols[s],
                 (long long)graph->symbols[s].least, (long long)graph->symbols[s].bound);
    for (int i = 0; i < graph->n_inputs; i++) bind_input(in, &graph->inputs[i], inputs, n_inputs);
    for (int i = 0; i < graph->n_states; i++) {
        if (graph->states[i].in == NO_TENSOR) continue;
        if (!states) bug("the states of %s are not given", graph->name);
        in->numbers[graph->states[i].in].real = states[i];
    }
    bind_constants(in, weights);
    for (int o = 0; o < graph->n_ops; o++) {
        progress_step(o, graph->n_ops);
        run_op(in, &graph->ops[o]);
    }
    Interpretation *result = arena_alloc(in->arena, sizeof *result);
    result->outputs = arena_array(in->arena, (size_t)graph->n_outputs, sizeof *result->outputs);
    result->tensors = arena_array(in->arena, (size_t)graph->n_tensors, sizeof *result->tensors);
    for (int t = 0; t < graph->n_tensors; t++) result->tensors[t] = in->numbers[t].real;
    for (int s = 0; s < graph->n_symbols; s++) result->symbols[s] = symbols[s];
    for (int o = 0; o < graph->n_outputs; o++) {
        const GraphOutput *output = &graph->outputs[o];
        OutputArray *array = &result->outputs[result->n_outputs++];
        *array = (OutputArray){
            .name = output->name, .layer = output->layer, .shape = {graph->tensors[output->tensor].rank, {0}}};
        int64_t count = 1;
        for (int d = 0; d < array->shape.rank; d++) count *= array->shape.dims[d] = extent(in, output->tensor, d);
        array->data = widened(in->arena, in->numbers[output->tensor], count);
    }
    return result;
}

static Interp begin(Arena *arena, const Module *module, const Graph *graph, const int64_t *symbols) {
    Numbers *numbers = arena_array(arena, (size_t)graph->n_tensors, sizeof *numbers);
    return (Interp){arena, module, graph, symbols, numbers, {0, 1}};
}

Interpretation *interpret(Arena *arena, const Module *module, const Graph *graph, const Weights *weights,
                          const InputArray *inputs, int n_inputs, const int64_t *symbols) {
    return interpret_from(arena, module, graph, weights, inputs, n_inputs, symbols, NULL);
}

Interpretation *interpret_from(Arena *arena, const Module *module, const Graph *graph, const Weights *weights,
                               const InputArray *inputs, int n_inputs, const int64_t *symbols,
                               const double *const *states) {
    Interp in = begin(arena, module, graph, symbols);
    return run_graph(&in, weights, inputs, n_inputs, states);
}

Interpretation *interpret_rounded(Arena *arena, const Module *module, const Graph *graph, const Weights *weights,
                                  const InputArray *inputs, int n_inputs, const int64_t *symbols, uint64_t seed,
                                  double steps) {
    Interp in = begin(arena, module, graph, symbols);
    in.rounding = (Rounding){hash_bytes(0, &seed, sizeof seed) | 1, steps};
    return run_graph(&in, weights, inputs, n_inputs, NULL);
}
