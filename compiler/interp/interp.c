/* interp.c: the reference against which compiled code is checked. It runs a graph as the rewrites left it, before the
 * planner, for one sequence, in double and with plain loops. It shares tables of the language with the emitter, but no
 * code. rounding.c moves its results as f32 arithmetic might round them. */
#include "experts.h"
#include "fixed.h"
#include "quantize.h"

#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- rows and columns */

/* ids [n], table [v][d] -> out [n][d] */
static void run_embed(const int64_t *ids, Numbers table, int64_t n, int64_t d, double *out) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < d; c++) out[i * d + c] = at(table, ids[i] * d + c);
}

/* pixels [channels][height][width] -> out [n][channels*p*p] */
static void run_patches(Numbers pixels, const Tensor *of, const OpAttributes *a, double *out) {
    const int64_t channels = of->dims[0].n, height = of->dims[1].n, width = of->dims[2].n, p = a->patch;
    for (int64_t top = 0; top + p <= height; top += a->stride)
        for (int64_t left = 0; left + p <= width; left += a->stride)
            for (int64_t c = 0; c < channels; c++)
                for (int64_t y = 0; y < p; y++)
                    for (int64_t x = 0; x < p; x++) *out++ = at(pixels, (c * height + top + y) * width + left + x);
}

/* x [frames][c], or [c][frames] by column -> out [n][c*kernel] */
static void run_windows(Numbers x, const OpAttributes *a, int64_t frames, int64_t c, int64_t n, double *out) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t column = 0; column < c; column++)
            for (int64_t tap = 0; tap < a->kernel; tap++) {
                const int64_t row = i * a->stride + tap - (a->kernel - 1) / 2;
                const bool inside = row >= 0 && row < frames;
                *out++ = inside ? at(x, a->by_column ? column * frames + row : row * c + column) : 0;
            }
}

/* The number of outlier j of a row that C has rounded, which is x but for what `by` allows. */
static double given_outlier(QuantizeReport *report, const uint8_t *row, int64_t j, double x, double by) {
    float number;
    memcpy(&number, row + sizeof(RowHead) + (size_t)j * sizeof number, sizeof number);
    if (report) report->wrong += isfinite(x) && !(fabs((double)number - x) <= by);
    return (double)number;
}

/* How far the numbers that C rounds may be from those of the op's input x, of which there are `count`. */
static double allowed_of(const Interp *in, const Op *op, Numbers x, int64_t count) {
    double largest = 0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(at(x, i))) largest = fmax(largest, fabs(at(x, i)));
    return fmax(2e-5 * (1 + largest), in->spreads ? 8 * in->spreads[op->inputs[0]] : 0);
}

/* x [n][k], of which a row may be one of several parts of a row of the tensor, smooth [k] or none -> out [n][k]: the
 * numbers that rounded rows stand for. Columns where smooth is 0 stay as they are; their numbers stand in front of the
 * codes of a row. */
static void run_quantize(Interp *in, const Op *op, Numbers x, const Numbers *smooth, int64_t n, int64_t k,
                         double *out) {
    const QuantizedRows *given = in->given ? &in->given[op->result] : NULL;
    QuantizeReport *report = in->report;
    double *row = arena_array(in->arena, (size_t)k, sizeof *row);
    double *by = arena_array(in->arena, (size_t)k, sizeof *by); /* how far C's numbers may be from those of `row` */
    const double allowed = allowed_of(in, op, x, n * k);
    for (int64_t c = 0; c < k; c++) by[c] = allowed * (smooth ? at(*smooth, c) : 1);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t c = 0; c < k; c++) row[c] = at(x, i * k + c) * (smooth ? at(*smooth, c) : 1);
        const RowScale own = quantize_scale(row, k);
        RowHead head = own.head;
        const uint8_t *codes = NULL;
        if (given && given->data) {
            memcpy(&head, given->data + i * given->stride, sizeof head);
            codes = given->data + i * given->stride + ROW_HEAD;
            if (report) quantize_compare(row, k, by, &head, codes, report);
        }
        for (int64_t c = 0, outliers = 0; c < k; c++) {
            uint8_t code = codes ? codes[c] : quantized_code(row[c], own.inverse, own.head.zero);
            out[i * k + c] = quantized_value(&head, code);
            if (!smooth || at(*smooth, c) != 0) continue;
            out[i * k + c] = codes ? given_outlier(report, given->data + i * given->stride, outliers++,
                                                   at(x, i * k + c), allowed)
                                   : at(x, i * k + c);
        }
    }
}

/* x [n][heads*d] -> out [n][heads*d]: the numbers of a narrower type. */
static void run_round(Interp *in, const Op *op, Numbers x, int64_t n, int64_t columns, double *out) {
    const QuantizedRows *given = in->given ? &in->given[op->result] : NULL;
    const int64_t d = columns / op->a.heads;
    const double allowed = allowed_of(in, op, x, n * columns);
    double *row = arena_array(in->arena, (size_t)d, sizeof *row);
    for (int64_t i = 0; i < n * op->a.heads; i++) {
        for (int64_t c = 0; c < d; c++) row[c] = at(x, i * d + c);
        round_row(op->a.dtype, row, d, out + i * d);
        if (!given || !given->data) continue;
        const uint8_t *from = given->data + i / op->a.heads * given->stride;
        const float *numbers = (const float *)(const void *)from + i % op->a.heads * d;
        if (in->report) round_compare(op->a.dtype, row, d, allowed, numbers, in->report);
        for (int64_t c = 0; c < d; c++) out[i * d + c] = (double)numbers[c];
    }
}

static double activate(const OpAttributes *a, double x) {
    if (a->formula) return pair_value(a->formula, &(PairAt){.score = x});
    switch (a->activation) {
#define ACTIVATION(name, formula, imported, help) case ACTIVATION_##name: return formula;
#include "../model/activations.def"
    case ACTIVATION_COUNT: case MOST_ACTIVATIONS: break;
    }
    return x;
}

static double map_value(OpKind kind, const OpAttributes *a, double x) {
    switch (kind) {
#define OP(name, least, most, result, inputs, help)
#define MAP(name, value, fixed, formula, help) case OP_##name: return value;
#include "../ir/ops.def"
    default: bug("%s is no map", op_name(kind));
    }
}

static double run_gate(const OpAttributes *a, double gate, double up) {
    if (a->cap > 0) {
        gate = gate > a->cap ? a->cap : gate;
        up = clip(up, a->cap);
    }
    return activate(a, gate) * (up + (a->plus_one ? 1 : 0));
}

/* x [n][groups*d], weight [d] or [groups][d], bias the same or none -> out [n][groups*d]. Each group of d columns is
 * normalized on its own. A mean whose sum overflows f32 is NaN, and a sum of squares that overflows is infinite. */
static void run_norm(const Interp *in, const Op *op, Numbers x, Numbers weight, const Numbers *bias, double *out) {
    const OpAttributes *a = &op->a;
    const Rounding *how = &in->rounding;
    const bool centered = op->kind == OP_layernorm, per_group = in->graph->tensors[op->inputs[1]].rank == 2;
    const int64_t rows = extent(in, op->result, 0) * a->groups, d = extent(in, op->result, 1) / a->groups;
    for (int64_t row = 0; row < rows; row++) {
        int64_t base = row * d, first = per_group ? row % a->groups * d : 0;
        double mean = 0, size = 0, variance = 0;
        for (int64_t c = 0; c < d && centered; c++) mean += at(x, base + c), size += fabs(at(x, base + c));
        mean = sum_overflows(how, size) ? NAN : mean / (double)d;
        for (int64_t c = 0; c < d; c++) variance += (at(x, base + c) - mean) * (at(x, base + c) - mean);
        if (sum_overflows(how, variance)) variance = INFINITY;
        double root = 1 / sqrt(variance / (double)d + a->eps);
        for (int64_t c = 0; c < d; c++) {
            double gain = at(weight, first + c) + (a->plus_one ? 1 : 0);
            out[base + c] = (at(x, base + c) - mean) * root * gain + (bias ? at(*bias, first + c) : 0);
        }
    }
}

/* x [n][heads*head_dim], cosine and sine [rows][width/2] -> out [n][heads*head_dim]. Pairs of the first `width` columns
 * of a head are rotated. */
static void run_rope(const Interp *in, const Op *op, Numbers x, Numbers cosine, Numbers sine, int64_t n, double *out) {
    const OpAttributes *a = &op->a;
    int64_t pairs = a->width / 2, columns = a->heads * a->head_dim;
    for (int64_t i = 0; i < n * columns; i++) out[i] = at(x, i);
    for (int64_t i = 0; i < n; i++)
        for (int64_t h = 0; h < a->heads; h++)
            for (int64_t p = 0; p < pairs; p++) {
                int64_t first = i * columns + h * a->head_dim + (a->interleaved ? 2 * p : p);
                int64_t second = first + (a->interleaved ? 1 : pairs);
                int64_t angle = rope_angle(in, op, n, i, p);
                double c = at(cosine, angle), s = at(sine, angle), u = at(x, first), v = at(x, second);
                out[first] = u * c - v * s;
                out[second] = v * c + u * s;
            }
}

/* ---------------------------------------------------------------- heads */

/* x [n][d] -> out [d]; a mean whose sum overflows f32 is NaN */
static void run_pool(const Rounding *how, PoolKind kind, Numbers x, RowRange rows, int64_t d, double *out) {
    const int64_t begin = rows.begin, n = rows.end;
    for (int64_t c = 0; c < d; c++) {
        double first = at(x, begin * d + c), most = first, sum = 0, size = 0;
        for (int64_t i = begin; i < n; i++) {
            double v = at(x, i * d + c), weight = kind == POOL_WEIGHTED_MEAN ? (double)(i - begin + 1) : 1;
            sum += weight * v, size += weight * fabs(v);
            if (v > most || v != v) most = v;
        }
        switch (kind) {
        case POOL_MEAN: case POOL_MEAN_SQRT: case POOL_WEIGHTED_MEAN:
            out[c] = sum_overflows(how, size) ? NAN : sum / pool_divisor(kind, n - begin);
            break;
        case POOL_NONE: case POOL_PROBE: case POOL_CLS_MEAN: case POOL_CLS_DISTILLATION: case POOL_CLS:
            out[c] = first; break;
        case POOL_MAX: out[c] = most; break;
        case POOL_LAST: case POOL_LAST_SKIP: case POOL_LAST_TOKEN: out[c] = at(x, (n - 1) * d + c); break;
        }
    }
}

/* x [d] -> out [d], of length 1; a sum of squares that overflows f32 is infinite */
static void run_l2(const Rounding *how, Numbers x, int64_t d, double *out) {
    double sum = 0;
    for (int64_t c = 0; c < d; c++) sum += at(x, c) * at(x, c);
    if (sum_overflows(how, sum)) sum = INFINITY;
    double length = sqrt(sum) > 1e-12 || sum != sum ? sqrt(sum) : 1e-12;
    for (int64_t c = 0; c < d; c++) out[c] = at(x, c) / length;
}

/* ---------------------------------------------------------------- the graph */

/* state [past][d], x [rows][d] -> out [total][d]: the state's rows, then those of x */
static void run_append(Interp *in, const Op *op, int64_t total, int64_t d, double *out) {
    int64_t past = extent(in, op->inputs[0], 0), rows = extent(in, op->inputs[1], 0);
    if (past + rows != total)
        bug("%lld rows behind %lld are not %lld", (long long)rows, (long long)past, (long long)total);
    for (int64_t i = 0; i < past * d; i++) out[i] = at(in->numbers[op->inputs[0]], i);
    for (int64_t i = 0; i < rows * d; i++) out[past * d + i] = at(in->numbers[op->inputs[1]], i);
}

/* state [past], integers [rows] -> [total] */
static void append_integers(Interp *in, const Op *op, int64_t total) {
    const int64_t past = extent(in, op->inputs[0], 0);
    int64_t *ids = arena_array(in->arena, (size_t)total, sizeof *ids);
    for (int64_t i = 0; i < total; i++)
        ids[i] = i < past ? in->numbers[op->inputs[0]].ids[i] : in->numbers[op->inputs[1]].ids[i - past];
    in->numbers[op->result].ids = ids;
}

/* rows [d] each, x [n][d] -> out [total][d]: the single rows, then those of x */
static void run_prepend(Interp *in, const Op *op, int64_t total, int64_t d, double *out) {
    for (int i = 0; i < op->n_inputs; i++) {
        const bool last = i == op->n_inputs - 1;
        const int64_t rows = in->graph->tensors[op->inputs[i]].rank == 2 ? extent(in, op->inputs[i], 0) : 1;
        for (int64_t c = 0; c < (last ? total : rows) * d; c++) *out++ = at(in->numbers[op->inputs[i]], c);
        total -= rows;
    }
}

/* a [n][heads*p], b [n][heads*q] -> out [n][heads*(p+q)] */
static void run_join(const Interp *in, const Op *op, Numbers a, Numbers b, double *out) {
    const int64_t rows = extent(in, op->result, 0) * op->a.heads;
    const int64_t p = extent(in, op->inputs[0], 1) / op->a.heads, q = extent(in, op->inputs[1], 1) / op->a.heads;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t c = 0; c < p; c++) *out++ = at(a, i * p + c);
        for (int64_t c = 0; c < q; c++) *out++ = at(b, i * q + c);
    }
}

/* a [n][d], b [n][d] or [d], factor [d] or none -> out [n][d] */
static void run_add(Numbers a, Numbers b, bool same_row, const Numbers *factor, int64_t count, int64_t d, double scale,
                    double *out) {
    for (int64_t i = 0; i < count; i++)
        out[i] = at(a, i) + (factor ? scale * at(*factor, i % d) : scale) * at(b, same_row ? i % d : i);
}

static void run_op(Interp *in, const Op *op) {
    const OpAttributes *a = &op->a;
    Numbers x = in->numbers[op->inputs[0]], y = x, z = x; /* y and z are used by ops that have them */
    if (op->n_inputs > 1) y = in->numbers[op->inputs[1]];
    if (op->n_inputs > 2) z = in->numbers[op->inputs[2]];
    int64_t n = extent(in, op->result, 0), d = extent(in, op->result, 1), count = n * d * extent(in, op->result, 2);
    double *out = arena_array(in->arena, (size_t)count, sizeof *out);
    in->numbers[op->result].real = out;
    if (in->graph->tensors[op->result].dtype == DTYPE_I64) {
        append_integers(in, op, n);
        return;
    }
    if (in->arithmetic != ARITHMETIC_FREE && fixed_op(in, op, out)) return;
    const int64_t parts = a->groups > 1 ? a->groups : 1; /* of a row, each of which is a row of its own */
    switch (op->kind) {
    case OP_embed: run_embed(x.ids, y, n, d, out); break;
    case OP_take_rows:
        for (int64_t i = 0; i < count; i++) {
            const int64_t row = op->n_inputs > 1 ? y.ids[i / d] : past_of(in, a) + i / d;
            out[i] = at(x, (a->offset + row) * d + i % d);
        }
        break;
    case OP_tally: run_tally(x.ids, op->n_inputs > 1 ? &y : NULL, past_of(in, a), n, a->token, out); break;
    case OP_keep: run_keep(in->arithmetic, x.ids, a, n, out); break;
    case OP_pick_rows: run_pick_rows(x, y.ids, z, a, n, d, out); break;
    case OP_append: run_append(in, op, n, d, out); break;
    case OP_patches: run_patches(x, &in->graph->tensors[op->inputs[0]], a, out); break;
    case OP_windows:
        run_windows(x, a, extent(in, op->inputs[0], a->by_column), d / a->kernel, n, out);
        break;
    case OP_prepend: run_prepend(in, op, n, d, out); break;
    case OP_add:
        run_add(x, y, in->graph->tensors[op->inputs[1]].rank == 1, op->n_inputs > 2 ? &z : NULL, count, d, a->scale,
                out);
        break;
    case OP_mul: {
        const bool same_column = extent(in, op->inputs[1], 1) != d;
        for (int64_t i = 0; i < count; i++) out[i] = at(x, i) * at(y, same_column ? i / d : i);
        break;
    }
    case OP_linear:
        run_linear(in->arena, &in->rounding, x, y, op->n_inputs > 2 ? &z : NULL, n, extent(in, op->inputs[0], 1), d,
                   out);
        break;
    case OP_choose: run_choose(in, op, out); break;
    case OP_expert_linear: run_expert_linear(in, op, out); break;
    case OP_expert_sum: run_expert_sum(x, y, n, d, a->experts->top, out); break;
    case OP_quantize: run_quantize(in, op, x, op->n_inputs > 1 ? &y : NULL, n * parts, d / parts, out); break;
    case OP_join: run_join(in, op, x, y, out); break;
    case OP_round: run_round(in, op, x, n * parts, d / parts, out); break;
    case OP_gate: for (int64_t i = 0; i < count; i++) out[i] = run_gate(a, at(x, i), at(y, i)); break;
#define OP(name, least, most, result, inputs, help)
#define MAP(name, value, fixed, formula, help) case OP_##name:
#include "../ir/ops.def"
        for (int64_t i = 0; i < count; i++) out[i] = map_value(op->kind, a, at(x, i));
        break;
    case OP_layernorm: case OP_rmsnorm: run_norm(in, op, x, y, op->n_inputs > 2 ? &z : NULL, out); break;
    case OP_rope: run_rope(in, op, x, y, z, n, out); break;
    case OP_scores: case OP_additive_scores: run_scores(in, op, x, y, z, out); break;
    case OP_rescore: run_rescore(in, op, out); break;
    case OP_distance_scores: run_distance_scores(in, op, x, y, z, out); break;
    case OP_softmax: run_softmax(in, op, x, a->has_sink ? &y : NULL, out); break;
    case OP_log_sum: run_log_sum(in, op, x, a->has_sink ? &y : NULL, out); break;
    case OP_weighted_sum:
        run_weighted_sum(in, op, x, y, out);
        adopt_weighted_sum(in, op, x, y, out);
        break;
    case OP_pool: run_pool(&in->rounding, a->pool, x, pool_range(in, op), d, out); break;
    case OP_learned: for (int64_t i = 0; i < count; i++) out[i] = at(x, i); break;
    case OP_l2: run_l2(&in->rounding, x, d, out); break;
    case OP_all_gather: case OP_owner_rows: bug("one rank cannot interpret what several compute");
    case OP_COUNT: break;
    }
    if (in->report && in->report->wrong && !in->report->tensor)
        in->report->tensor = in->graph->tensors[op->result].name;
    /* The results of OP_round and OP_tally are exact, and run_choose moves the gates of OP_choose by itself. */
    const bool moves = in->rounding.state && op->kind != OP_round && op->kind != OP_tally && op->kind != OP_choose;
    for (int64_t i = 0; i < count && moves; i++) out[i] = round_result(&in->rounding, out[i]);
    for (int64_t i = 0; i < count && in->arithmetic != ARITHMETIC_FREE; i++) out[i] = (double)(float)out[i];
}

/* ---------------------------------------------------------------- inputs and outputs */

static void bind_input(Interp *in, const GraphInput *input, const InputArray *arrays, int n_arrays) {
    const Tensor *t = &in->graph->tensors[input->tensor];
    int64_t count = 1;
    for (int d = 0; d < t->rank; d++) count *= size_of(in, t->dims[d]);
    const InputArray *array = NULL;
    for (int i = 0; i < n_arrays; i++)
        if (arrays[i].role == input->kind->role) array = &arrays[i];
    Numbers *numbers = &in->numbers[input->tensor];
    if (!array && !input->optional) fail("input %s is missing", input->kind->name);
    if (!array && input->kind->absent == ABSENT_THE_KEYS) {
        *numbers = in->numbers[graph_input(in->graph, IN_key)->tensor];
        return;
    }
    if (!array) {
        numbers->ids = arena_array(in->arena, (size_t)count, sizeof(int64_t));
        return;
    }
    if (array->dtype != t->dtype)
        bug("input %s comes as %s, not %s", input->kind->name, dtype_name(array->dtype), dtype_name(t->dtype));
    if (array->rows != size_of(in, t->dims[0]))
        fail("input %s has %lld rows; it must have %lld", input->kind->name, (long long)array->rows,
             (long long)size_of(in, t->dims[0]));
    if (t->dtype == DTYPE_F32) numbers->single = array->data;
    else if (t->dtype == DTYPE_U8) numbers->flags = array->data;
    else numbers->ids = array->data;
    check_input(in->graph, input, array->data, count);
}

static void bind_constants(Interp *in) {
    const Module *module = in->module;
    const Weights *weights = in->weights;
    for (int t = 0; t < in->graph->n_tensors; t++) {
        const Tensor *tensor = &in->graph->tensors[t];
        if (tensor->kind == TENSOR_WEIGHT) {
            in->numbers[t].single = weights->data[tensor->weight];
            if (weight_groups(&module->weights.specs[tensor->weight]) == 1)
                in->numbers[t].scales = weights->scaling[tensor->weight].scales;
        }
        if (tensor->kind != TENSOR_DERIVED) continue;
        const Derived *d = &module->derived[tensor->weight];
        int64_t count = 0;
        if (!shape_elements(d->shape, &count)) bug("the derived tensor `%s` is too large", d->name);
        double *out = arena_array(in->arena, (size_t)count, sizeof *out);
        weights_derive(weights, d, out);
        in->numbers[t].real = out;
    }
}

static const double *widened(Arena *arena, Numbers numbers, int64_t count) {
    if (numbers.real || !numbers.single) return numbers.real;
    double *wide = arena_array(arena, (size_t)count, sizeof *wide);
    for (int64_t i = 0; i < count; i++) wide[i] = numbers.single[i];
    return wide;
}

/* Takes the integers of a state, whose 64 bits lie in its numbers. */
static void whole_state(Interp *in, int t) {
    const int64_t count = extent(in, t, 0);
    int64_t *ids = arena_array(in->arena, (size_t)count, sizeof *ids);
    if (count) memcpy(ids, in->numbers[t].real, (size_t)count * sizeof *ids);
    in->numbers[t].ids = ids;
}

/* Puts the 64 bits of integers where a state has its numbers. */
static void real_integers(Interp *in, int t) {
    const int64_t count = extent(in, t, 0);
    double *real = arena_array(in->arena, (size_t)count, sizeof *real);
    if (count) memcpy(real, in->numbers[t].ids, (size_t)count * sizeof *real);
    in->numbers[t].real = real;
}

/* Converts the numbers of an input to double, in which a state holds them. */
static void widen_input(Interp *in, int t) {
    const Numbers *from = &in->numbers[t];
    const int64_t count = extent(in, t, 0);
    double *real = arena_array(in->arena, (size_t)count, sizeof *real);
    for (int64_t i = 0; i < count; i++) real[i] = (double)from->single[i];
    in->numbers[t].real = real;
}

static Interpretation *run_graph(Interp *in, const InputArray *inputs, int n_inputs,
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
        if (state_is_integers(&graph->states[i])) whole_state(in, graph->states[i].in);
    }
    bind_constants(in);
    for (int o = 0; o < graph->n_ops; o++) {
        progress_step(o, graph->n_ops);
        run_op(in, &graph->ops[o]);
    }
    Interpretation *result = arena_alloc(in->arena, sizeof *result);
    result->outputs = arena_array(in->arena, (size_t)graph->n_outputs, sizeof *result->outputs);
    result->tensors = arena_array(in->arena, (size_t)graph->n_tensors, sizeof *result->tensors);
    for (int i = 0; i < graph->n_states; i++) {
        const GraphState *state = &graph->states[i];
        if (state->out == NO_TENSOR) continue;
        if (state_is_integers(state)) real_integers(in, state->out);
        else if (state->in == NO_TENSOR && graph->tensors[state->out].kind == TENSOR_INPUT) widen_input(in, state->out);
    }
    for (int t = 0; t < graph->n_tensors; t++) result->tensors[t] = in->numbers[t].real;
    for (int o = 0; o < graph->n_outputs; o++) {
        const GraphOutput *output = &graph->outputs[o];
        OutputArray *array = &result->outputs[result->n_outputs++];
        *array = (OutputArray){
            .role = output->role, .layer = output->layer, .shape = {graph->tensors[output->tensor].rank, {0}}};
        int64_t count = 1;
        for (int d = 0; d < array->shape.rank; d++) count *= array->shape.dims[d] = extent(in, output->tensor, d);
        array->data = widened(in->arena, in->numbers[output->tensor], count);
    }
    return result;
}

Interpretation *interpret_as(Arena *arena, const Module *module, const Graph *graph, const Weights *weights,
                             const InputArray *inputs, int n_inputs, const int64_t *symbols, const InterpretHow *how) {
    Interp in = {.arena = arena,
                 .module = module,
                 .graph = graph,
                 .weights = weights,
                 .symbols = symbols,
                 .numbers = arena_array(arena, (size_t)graph->n_tensors, sizeof *in.numbers),
                 .arithmetic = how->arithmetic,
                 .given = how->rows,
                 .report = how->report,
                 .spreads = how->spreads};
    if (how->steps > 0) in.rounding = rounding_new(how->seed, how->steps);
    return run_graph(&in, inputs, n_inputs, how->states);
}

Interpretation *interpret(Arena *arena, const Module *module, const Graph *graph, const Weights *weights,
                          const InputArray *inputs, int n_inputs, const int64_t *symbols) {
    return interpret_as(arena, module, graph, weights, inputs, n_inputs, symbols, &(InterpretHow){0});
}
