/* experts.c: the experts that a row chooses, their gates, and the products with their matrices. */
#include "experts.h"
#include "fixed.h"
#include "quantize.h"

#include <math.h>

/* ---------------------------------------------------------------- scores */

/* One row while experts are chosen for it. */
typedef struct Choosing {
    const Experts *e;
    Arithmetic way;      /* FREE: in double; else all numbers are f32 */
    const double *logits, *correction; /* correction may be NULL */
    double *scores;      /* of each expert; without sums where they are not read, see weigh */
    double *values;      /* by which experts are chosen */
    double *own;         /* the same, of experts in kept groups alone */
    double *groups;      /* by which groups are */
    bool *taken, *kept;  /* experts, groups */
} Choosing;

static double in_f32(double x) { return (double)(float)x; }
static double as(const Choosing *c, double x) { return c->way == ARITHMETIC_FREE ? x : in_f32(x); }

/* e^(x - most) */
static double power(const Choosing *c, double x, double most) {
    if (c->way == ARITHMETIC_FREE) return exp(x - most);
    return (double)fixed_exp2(c->way, ((float)x - (float)most) * 0x1.715476p+0f);
}

static double sigmoid(const Choosing *c, double x) {
    if (c->way == ARITHMETIC_FREE) return 1 / (1 + exp(-x));
    return (double)fixed_activation(c->way, ACTIVATION_sigmoid, (float)fmax(x, -80));
}

/* Sets the scores, which for a softmax are powers of e that are not divided by their sum yet. */
static void score(Choosing *c) {
    double most = c->logits[0];
    for (int64_t e = 1; e < c->e->count; e++)
        if (c->logits[e] > most) most = c->logits[e];
    for (int64_t e = 0; e < c->e->count; e++) {
        const double x = c->logits[e], score = c->e->router == ROUTER_SIGMOID ? sigmoid(c, x) : power(c, x, most);
        c->scores[e] = score < 0x1p-90 ? 0 : score; /* as in the emitted C, so that no gate is denormal */
    }
    if (c->e->router == ROUTER_SIGMOID || (c->e->renormalized && !c->correction)) return;
    double sum = 0;
    for (int64_t e = 0; e < c->e->count; e++) sum = as(c, sum + c->scores[e]);
    for (int64_t e = 0; e < c->e->count; e++) c->scores[e] = as(c, c->scores[e] / sum);
}

/* Logits are compared in place of their scores, which have the same order: rounding can make two scores equal.
 * Corrected scores are compared as numbers of f32 whatever the arithmetic, since C makes them equal where f32 does. */
static void set_values(Choosing *c) {
    for (int64_t e = 0; e < c->e->count; e++)
        c->values[e] = in_f32(c->correction ? in_f32(c->scores[e]) + c->correction[e] : c->logits[e]);
}

/* ---------------------------------------------------------------- the choice */

/* The first of n with the largest value that is not taken. */
static int64_t best_of(const double *values, const bool *taken, int64_t n) {
    int64_t best = -1;
    for (int64_t i = 0; i < n; i++)
        if (!taken[i] && (best < 0 || values[i] > values[best])) best = i;
    return best;
}

/* The largest value of group g of experts, or with sigmoid the sum of the two largest scores. */
static double group_value(const Choosing *c, int64_t g) {
    const bool sums = c->e->router == ROUTER_SIGMOID;
    const int64_t size = c->e->count / c->e->groups;
    const double *values = (sums && !c->correction ? c->scores : c->values) + g * size;
    double first = -INFINITY, second = -INFINITY;
    for (int64_t i = 0; i < size; i++) {
        const double x = in_f32(values[i]);
        if (x > first) second = first, first = x;
        else if (x > second) second = x;
    }
    return sums ? in_f32(first + second) : first;
}

/* Sets the values of the experts in groups that are not kept to -inf, so that no such expert is chosen. */
static void exclude(const Choosing *c, const double *values, double *out) {
    const int64_t size = c->e->count / c->e->groups;
    for (int64_t e = 0; e < c->e->count; e++) out[e] = c->kept[e / size] ? values[e] : -INFINITY;
}

static void choose_groups(Choosing *c) {
    const int64_t n = c->e->groups;
    for (int64_t g = 0; g < n; g++) {
        c->groups[g] = group_value(c, g);
        c->kept[g] = false;
    }
    for (int64_t t = 0; t < c->e->top_groups; t++) c->kept[best_of(c->groups, c->kept, n)] = true;
}

static void choose_experts(Choosing *c, const double *values, double *out) {
    for (int64_t e = 0; e < c->e->count; e++) c->taken[e] = false;
    for (int64_t s = 0; s < c->e->top; s++) {
        const int64_t best = best_of(values, c->taken, c->e->count);
        c->taken[best] = true;
        out[s] = (double)best;
    }
}

/* Sets the gates of the chosen experts. */
static void weigh(const Choosing *c, double *out) {
    const int64_t top = c->e->top;
    double sum = 0;
    for (int64_t s = 0; s < top; s++) sum = as(c, sum + c->scores[(int64_t)out[s]]);
    if (c->e->router == ROUTER_SIGMOID) sum = as(c, sum + as(c, 1e-20)); /* all scores may be 0 */
    for (int64_t s = 0; s < top; s++) {
        double gate = c->scores[(int64_t)out[s]];
        if (c->e->renormalized) gate = as(c, gate / sum);
        out[top + s] = c->e->scale == 1 ? gate : as(c, gate * as(c, c->e->scale));
    }
}

/* ---------------------------------------------------------------- a choice that C has made */

static bool is_choice(const Experts *e, const float *given) {
    for (int64_t s = 0; s < e->top; s++) {
        if (!(given[s] >= 0 && given[s] < (float)e->count) || given[s] != floorf(given[s])) return false;
        for (int64_t other = 0; other < s; other++)
            if (given[other] == given[s]) return false;
    }
    return true;
}

/* Whether values that are wrong by at most `by` may make these experts the best, in this order. */
static bool may_be_best(const Choosing *c, const double *values, const float *given, double by) {
    for (int64_t e = 0; e < c->e->count; e++) c->taken[e] = false;
    for (int64_t s = 0; s < c->e->top; s++) {
        c->taken[(int64_t)given[s]] = true;
        if (s && values[(int64_t)given[s]] > values[(int64_t)given[s - 1]] + by) return false;
    }
    const double least = values[(int64_t)given[c->e->top - 1]];
    for (int64_t e = 0; e < c->e->count; e++)
        if (!c->taken[e] && values[e] > least + by) return false;
    return true;
}

/* Whether values that are wrong by at most `by` may lead to the choice of C, perhaps with one group in place of another
 * whose value is as near. */
static bool may_be_chosen(Choosing *c, const float *given, double by) {
    const int64_t n = c->e->groups;
    double *own = c->own;
    if (!is_choice(c->e, given)) return false;
    exclude(c, c->values, own);
    if (may_be_best(c, own, given, by)) return true;
    for (int64_t a = 0; a < n; a++)
        for (int64_t b = 0; b < n; b++) {
            if (!c->kept[a] || c->kept[b] || c->groups[a] > c->groups[b] + 2 * by) continue;
            c->kept[a] = false, c->kept[b] = true;
            exclude(c, c->values, own);
            c->kept[a] = true, c->kept[b] = false;
            if (may_be_best(c, own, given, by)) return true;
        }
    return false;
}

/* Whether the best `top` of n values, and the next one, are farther apart than roundings of f32 may move them. Each
 * value is a sum of a score, or of numbers up to 1 where `scores` is NULL. */
static bool are_apart(Choosing *c, const double *values, const double *scores, int64_t n, int64_t top) {
    int64_t last = -1;
    for (int64_t i = 0; i < n; i++) c->taken[i] = false;
    for (int64_t s = 0; s <= top && s < n; s++) {
        const int64_t next = best_of(values, c->taken, n);
        if (values[next] == -INFINITY) break; /* in a group that is not kept */
        const double size = last < 0 ? 0 : fabs(values[last]) + (scores ? scores[last] + scores[next] : 2);
        if (last >= 0 && !(values[last] - values[next] > 0x1p-22 * size)) return false;
        c->taken[last = next] = true;
    }
    return true;
}

/* Whether roundings of scores cannot change the choice. Logits are not rounded for it. */
static bool is_resolved(Choosing *c) {
    const Experts *e = c->e;
    const bool by_scores = e->top_groups < e->groups && (c->correction || e->router == ROUTER_SIGMOID);
    if (by_scores && !are_apart(c, c->groups, NULL, e->groups, e->top_groups)) return false;
    exclude(c, c->values, c->own);
    return !c->correction || are_apart(c, c->own, c->scores, e->count, e->top);
}

/* Takes the choice of C in place of its own, with gates that are its own. */
static void adopt(Choosing *c, const float *given, QuantizeReport *report, double *out) {
    const int64_t top = c->e->top;
    double largest = 0;
    for (int64_t e = 0; e < c->e->count; e++)
        if (isfinite(c->logits[e])) largest = fmax(largest, fabs(c->logits[e]));
    const bool odd = !isfinite(out[top]), fits = odd || may_be_chosen(c, given, 2e-5 * (1 + largest));
    if (report) {
        const bool counts = is_resolved(c);
        report->numbers += top;
        if (counts) report->most_ties += (double)top * SHARE_OF_TIES;
        report->wrong += !fits;
        for (int64_t s = 0; s < top && counts && !odd; s++)
            if (out[s] != (double)given[s]) count_tie(report, c->logits[(int64_t)out[s]], (double)given[s]);
    }
    if (!fits || odd) return;
    for (int64_t s = 0; s < top; s++) out[s] = (double)given[s];
    weigh(c, out);
}

void run_choose(Interp *in, const Op *op, double *out) {
    const Experts *e = op->a.experts;
    const int64_t n = extent(in, op->result, 0), count = e->count;
    const QuantizedRows *given = in->given ? &in->given[op->result] : NULL;
    double *room = arena_array(in->arena, (size_t)(6 * count), sizeof *room), *correction = room + 5 * count;
    Choosing c = {.e = e,
                  .way = in->arithmetic,
                  .scores = room + count,
                  .values = room + 2 * count,
                  .groups = room + 3 * count,
                  .own = room + 4 * count,
                  .taken = arena_array(in->arena, (size_t)count, sizeof(bool)),
                  .kept = arena_array(in->arena, (size_t)count, sizeof(bool))};
    for (int64_t j = 0; j < count && op->n_inputs > 1; j++) correction[j] = at(in->numbers[op->inputs[1]], j);
    if (op->n_inputs > 1) c.correction = correction;
    for (int64_t i = 0; i < n; i++) {
        double *row = out + i * 2 * e->top;
        for (int64_t j = 0; j < count; j++) room[j] = at(in->numbers[op->inputs[0]], i * count + j);
        c.logits = room;
        score(&c);
        set_values(&c);
        choose_groups(&c);
        exclude(&c, c.values, c.own);
        choose_experts(&c, c.own, row);
        weigh(&c, row);
        if (given && given->data)
            adopt(&c, (const float *)(const void *)(given->data + i * given->stride), in->report, row);
        for (int64_t s = e->top; s < 2 * e->top && in->rounding.state; s++)
            row[s] = round_result(&in->rounding, row[s]);
    }
}

/* ---------------------------------------------------------------- products */

static ExpertRows *rows_by_choice(const Interp *in, const Op *op, int choice, int64_t n) {
    const Experts *e = op->a.experts;
    ExpertRows *rows = arena_array(in->arena, (size_t)e->count, sizeof *rows);
    for (int64_t i = 0; i < e->count; i++)
        rows[i].parts = arena_array(in->arena, (size_t)n, sizeof *rows[i].parts); /* a row chooses an expert once */
    for (int64_t i = 0; i < n; i++)
        for (int64_t s = 0; s < e->top; s++) {
            ExpertRows *own = &rows[(int64_t)at(in->numbers[choice], i * 2 * e->top + s)];
            own->parts[own->n++] = i * e->top + s;
        }
    return rows;
}

ExpertRows *rows_by_matrix(const Interp *in, const Op *op, int64_t n) {
    if (!op_is_by_head(op)) return rows_by_choice(in, op, op->inputs[2], n);
    const int64_t heads = op->a.experts->count;
    ExpertRows *rows = arena_array(in->arena, (size_t)heads, sizeof *rows);
    for (int64_t h = 0; h < heads; h++) {
        rows[h] = (ExpertRows){arena_array(in->arena, (size_t)n, sizeof *rows[h].parts), n};
        for (int64_t i = 0; i < n; i++) rows[h].parts[i] = i * heads + h;
    }
    return rows;
}

int64_t expert_input(const Interp *in, const Op *op, int64_t part) {
    const bool apart = op_is_by_head(op) || extent(in, op->inputs[0], 1) != extent(in, op->inputs[1], 2);
    return apart ? part : part / op->a.experts->top;
}

/* The matrix, or the bias, of one expert. */
static Numbers numbers_from(Numbers all, int64_t first, int64_t first_row) {
    if (all.single) all.single += first;
    if (all.real) all.real += first;
    if (all.scales) all.scales += first_row;
    return all;
}

void run_expert_linear(Interp *in, const Op *op, double *out) {
    const Numbers x = in->numbers[op->inputs[0]], weight = in->numbers[op->inputs[1]];
    const int64_t n = extent(in, op->result, 0), d = extent(in, op->inputs[1], 1), k = extent(in, op->inputs[1], 2);
    const ExpertRows *rows = rows_by_matrix(in, op, n);
    const int bias_tensor = op_bias(op);
    double *from = arena_array(in->arena, (size_t)(n * k), sizeof *from);
    double *to = arena_array(in->arena, (size_t)(n * d), sizeof *to);
    for (int64_t e = 0; e < op->a.experts->count; e++) {
        if (!rows[e].n) continue;
        for (int64_t r = 0; r < rows[e].n; r++)
            for (int64_t j = 0; j < k; j++) from[r * k + j] = at(x, expert_input(in, op, rows[e].parts[r]) * k + j);
        Numbers bias = {0};
        if (bias_tensor != NO_TENSOR) bias = numbers_from(in->numbers[bias_tensor], e * d, 0);
        run_linear(in->arena, &in->rounding, (Numbers){.real = from}, numbers_from(weight, e * d * k, e * d),
                   bias_tensor != NO_TENSOR ? &bias : NULL, rows[e].n, k, d, to);
        for (int64_t r = 0; r < rows[e].n; r++)
            for (int64_t c = 0; c < d; c++) out[rows[e].parts[r] * d + c] = to[r * d + c];
    }
}

void run_expert_sum(Numbers y, Numbers choice, int64_t n, int64_t d, int64_t top, double *out) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t s = 0; s < top; s++)
            for (int64_t c = 0; c < d; c++)
                out[i * d + c] += at(choice, i * 2 * top + top + s) * at(y, (i * top + s) * d + c);
}
