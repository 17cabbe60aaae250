/* search.c: the cheapest choice of each unit within the bound.
 *
 * The error of the output is taken for a sum over the units, each of which adds what its choice adds: for the cheapest
 * choice this is measured, a unit at a time, and for the others it is in proportion to the errors of the unit's
 * products. From the cheapest model on, the choice that takes away the most error for its cost is taken, until the sum
 * is within the bound. Then the model itself is interpreted. Where its error is another one, the sum is corrected, and
 * the way goes on; at the end, units are given back what the bound allows. */
#include "quantize.h"

#include <math.h>
#include <string.h>

enum { MEASURED = 8,   /* sequences on which the units are measured */
       MOST_BACK = 16 }; /* models with a cheaper choice for one unit that are tried at the end */

static double cost_of(const Quantization *q, int unit, int choice) {
    return q->cost[unit * q->task->n_choices + choice];
}
static double error_of(const Quantization *q, int unit, int choice) {
    return q->error[unit * q->task->n_choices + choice];
}

double total_cost(const Quantization *q, const int *chosen) {
    double sum = 0;
    for (int u = 0; u < q->n_units; u++)
        if (chosen[u] >= 0) sum += cost_of(q, u, chosen[u]);
    return sum;
}

static void add_costs(Quantization *q) {
    for (int i = 0; i < q->n_matrices; i++) {
        const Matrix *m = &q->matrices[i];
        WeightSpec spec = q->f32->module->weights.specs[m->weight];
        const double elements = (double)weight_rows(&spec) * (double)weight_columns(&spec);
        for (int c = 0; c < q->task->n_choices; c++) {
            const Precision *p = &q->task->choices[c].precision;
            spec.type = p->weights;
            const double bytes = (double)weight_bytes(&spec);
            double *cost = &q->cost[m->unit * q->task->n_choices + c];
            *cost += m->looked * read_cost(bytes / (double)weight_rows(&spec));
            if (m->set == NO_ROWS) continue;
            *cost += m->share * read_cost(bytes);
            *cost += product_cost(p->weights, rows_dtype(p, p->weights.dtype), m->rows * elements);
            if (!vector_in(q, m, c)) continue;
            const double outliers = p->outliers * (double)weight_rows(&spec);
            *cost += m->share * read_cost(outliers * sizeof(float));
            *cost += product_cost((WeightType){.dtype = DTYPE_F32}, DTYPE_F32, m->rows * outliers);
        }
    }
}

/* Sets the choices with the least cost, or with the least error; the other decides between equal ones. */
static void choose_least(const Quantization *q, bool by_cost, int *chosen) {
    for (int u = 0; u < q->n_units; u++)
        for (int c = 0; c < q->task->n_choices && chosen[u] >= 0; c++) {
            const double cost = cost_of(q, u, c) - cost_of(q, u, chosen[u]);
            const double error = error_of(q, u, c) - error_of(q, u, chosen[u]);
            const double first = by_cost ? cost : error, second = by_cost ? error : cost;
            if (first < 0 || (first == 0 && second < 0)) chosen[u] = c;
        }
}

/* As a sum over units: 1 - cosine and KL are of the second order in what is added to a row, a relative error of the
 * first. */
static double summed(const Quantization *q, double error) {
    return q->task->kind == ERROR_REL ? error * error : error;
}

typedef struct Search {
    Quantization *q;
    int *cheapest, *finest, *now; /* [n_units] */
    double floor;                 /* the error of the finest model */
    double *added;                /* [n_units]: the measured error of the cheapest choice, beyond it */
    double factor;                /* of the model's error over the sum */
    int evaluations;
} Search;

static double evaluated(Search *s, const int *chosen, int64_t stride, double limit) {
    progress_begin("interpreting the %s model", s->evaluations++ ? "next" : "cheapest");
    const double error = model_error(s->q, chosen, stride, limit);
    progress_end();
    return error;
}

static void measure_units(Search *s) {
    Quantization *q = s->q;
    const int64_t stride = ceil_div(q->batch->count, MEASURED);
    int *chosen = arena_array(q->arena, (size_t)q->n_units, sizeof *chosen);
    s->floor = summed(q, evaluated(s, s->finest, stride, INFINITY));
    for (int u = 0; u < q->n_units; u++) {
        if (s->cheapest[u] == s->finest[u]) continue;
        memcpy(chosen, s->finest, (size_t)q->n_units * sizeof *chosen);
        chosen[u] = s->cheapest[u];
        s->added[u] = fmax(0, summed(q, evaluated(s, chosen, stride, INFINITY)) - s->floor);
    }
}

static double added_by(const Search *s, int unit, int choice) {
    const Quantization *q = s->q;
    if (s->now[unit] < 0) return 0;
    const double of_finest = error_of(q, unit, s->finest[unit]);
    const double whole = error_of(q, unit, s->cheapest[unit]) - of_finest;
    return whole > 0 ? s->added[unit] * (error_of(q, unit, choice) - of_finest) / whole : 0;
}

static double expected(const Search *s) {
    double sum = s->floor;
    for (int u = 0; u < s->q->n_units; u++) sum += added_by(s, u, s->now[u]);
    return sum;
}

/* Takes the choice that takes away the most error for its cost; false where none takes any away. */
static bool refine(Search *s) {
    const Quantization *q = s->q;
    double best = 0;
    int unit = -1, choice = -1;
    for (int u = 0; u < q->n_units; u++)
        for (int c = 0; c < q->task->n_choices && s->now[u] >= 0; c++) {
            const double less = error_of(q, u, s->now[u]) - error_of(q, u, c);
            if (less <= 0) continue;
            const double gain = added_by(s, u, s->now[u]) - added_by(s, u, c);
            const double cost = cost_of(q, u, c) - cost_of(q, u, s->now[u]);
            const double rate = (gain > 0 ? gain : less * 1e-300) / (cost > 0 ? cost : 1e-9);
            if (rate > best) best = rate, unit = u, choice = c;
        }
    if (unit < 0) return false;
    s->now[unit] = choice;
    return true;
}

/* Goes on until the model is within the bound; false where there is no way on. */
static bool descend(Search *s, double error) {
    Quantization *q = s->q;
    const double bound = summed(q, q->task->bound);
    while (error > q->task->bound) {
        const double sum = expected(s);
        if (sum > 0 && isfinite(error)) s->factor = summed(q, error) / sum;
        if (!refine(s)) return false;
        while (s->factor * expected(s) > bound && refine(s)) {}
        error = evaluated(s, s->now, 1, INFINITY);
    }
    q->reached = error;
    return true;
}

/* Finds the untried change to a cheaper choice that saves the most, and of those the one with the least error; but none
 * with which the sum would pass twice the bound. False where there is none. */
static bool cheaper(const Search *s, const bool *tried, int *unit, int *choice) {
    Quantization *q = s->q;
    const double sum = expected(s), room = 2 * summed(q, q->task->bound);
    double most = 0;
    for (int u = 0; u < q->n_units; u++)
        for (int c = 0; c < q->task->n_choices && s->now[u] >= 0; c++) {
            const double saved = cost_of(q, u, s->now[u]) - cost_of(q, u, c);
            if (saved <= 0 || saved < most || tried[u * q->task->n_choices + c]) continue;
            if (saved == most && error_of(q, u, c) >= error_of(q, *unit, *choice)) continue;
            if (s->factor * (sum - added_by(s, u, s->now[u]) + added_by(s, u, c)) > room) continue;
            most = saved, *unit = u, *choice = c;
        }
    return most > 0;
}

/* Gives back what the bound allows. */
static void give_back(Search *s) {
    Quantization *q = s->q;
    bool *tried = arena_array(q->arena, (size_t)(q->n_units * q->task->n_choices), sizeof *tried);
    for (int n = 0, unit = 0, choice = 0; n < MOST_BACK && cheaper(s, tried, &unit, &choice); n++) {
        tried[unit * q->task->n_choices + choice] = true;
        const int before = s->now[unit];
        s->now[unit] = choice;
        const double error = evaluated(s, s->now, 1, q->task->bound);
        if (error <= q->task->bound) q->reached = error;
        else s->now[unit] = before;
    }
}

void tidy_choices(Quantization *q) {
    const int most = units_most(q, q->chosen);
    for (int u = 0; u < q->n_units; u++)
        if (q->chosen[u] >= 0 && same_model(q, u, q->chosen[u], most)) q->chosen[u] = most;
}

bool search_choices(Quantization *q) {
    const size_t units = (size_t)q->n_units;
    Search s = {.q = q, .factor = 1};
    s.cheapest = arena_array(q->arena, units, sizeof *s.cheapest);
    s.finest = arena_array(q->arena, units, sizeof *s.finest);
    s.added = arena_array(q->arena, units, sizeof *s.added);
    s.now = q->chosen;
    add_costs(q);
    memcpy(s.cheapest, q->chosen, units * sizeof *s.cheapest);
    memcpy(s.finest, q->chosen, units * sizeof *s.finest);
    choose_least(q, true, s.cheapest);
    choose_least(q, false, s.finest);
    memcpy(s.now, s.cheapest, units * sizeof *s.now);
    const double error = q->reached = evaluated(&s, s.now, 1, INFINITY);
    if (error <= q->task->bound) return true;
    memcpy(s.now, s.finest, units * sizeof *s.now);
    const double finest = q->reached = evaluated(&s, s.finest, 1, INFINITY);
    if (finest > q->task->bound) return false;
    measure_units(&s);
    memcpy(s.now, s.cheapest, units * sizeof *s.now);
    if (!descend(&s, error)) {
        memcpy(s.now, s.finest, units * sizeof *s.now);
        q->reached = finest;
    }
    give_back(&s);
    return true;
}
