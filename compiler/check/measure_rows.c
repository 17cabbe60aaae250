/* measure_rows.c: the rows of outputs, and the distributions that logits stand for, against those of f32. */
#include "measure.h"

#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- rows */

RowError measure_row(const float *a, const float *b, int64_t n) {
    double apart = 0, aa = 0, bb = 0, ab = 0;
    for (int64_t i = 0; i < n; i++) {
        const double x = a[i], y = b[i];
        apart += (x - y) * (x - y);
        aa += x * x;
        bb += y * y;
        ab += x * y;
    }
    return (RowError){.rel = apart == 0 ? 0 : bb > 0 ? sqrt(apart / bb) : 1,
                      .cos = apart == 0 ? 0 : aa > 0 && bb > 0 ? fmax(0, 1 - ab / (sqrt(aa) * sqrt(bb))) : 1};
}

static void add_row(RowErrors *e, const float *a, const float *b, int64_t n) {
    const RowError row = measure_row(a, b, n);
    e->rows++;
    e->rel_mean += row.rel;
    e->cos_mean += row.cos;
    e->rel_max = fmax(e->rel_max, row.rel);
    e->cos_max = fmax(e->cos_max, row.cos);
}

void measure_outputs(const Reference *r, const MeasuredModel *m, Measurement *out) {
    Arena *own = arena_new();
    Pieces pieces = batch_pieces(own, r->model.engine->plan->graph, r->batch);
    for (int64_t i = 0; i < pieces.count; i++) {
        const Piece *p = &pieces.list[i];
        for (int64_t row = 0; row < p->rows; row++) {
            const int64_t at = p->offset + row * p->columns;
            add_row(&out->outputs[p->role], m->outputs[p->role] + at, r->model.outputs[p->role] + at, p->columns);
        }
    }
    for (int a = 0; a < OUT_COUNT; a++) {
        RowErrors *e = &out->outputs[a];
        if (!e->rows) continue;
        e->rel_mean /= (double)e->rows;
        e->cos_mean /= (double)e->rows;
    }
    arena_free(own);
}

OutputRole measure_not_finite(const MeasuredModel *m, const Batch *batch) {
    Arena *own = arena_new();
    Pieces pieces = batch_pieces(own, m->engine->plan->graph, batch);
    OutputRole found = OUT_COUNT;
    for (int64_t i = 0; i < pieces.count && found == OUT_COUNT; i++) {
        const Piece *p = &pieces.list[i];
        for (int64_t k = 0; k < p->rows * p->columns; k++)
            if (!isfinite(m->outputs[p->role][p->offset + k])) found = p->role;
    }
    arena_free(own);
    return found;
}

/* ---------------------------------------------------------------- constants */

bool measure_constant(const MeasuredModel *m, const Batch *batch, OutputRole role) {
    Arena *own = arena_new();
    Pieces pieces = batch_pieces(own, m->engine->plan->graph, batch);
    const float *first = NULL;
    int64_t rows = 0, equal = 0;
    for (int64_t i = 0; i < pieces.count; i++) {
        const Piece *p = &pieces.list[i];
        if (p->role != role || p->head >= 0) continue; /* rows of maps are weights of keys */
        for (int64_t row = 0; row < p->rows; row++, rows++) {
            const float *at = m->outputs[role] + p->offset + row * p->columns;
            if (!first) first = at;
            equal += memcmp(first, at, (size_t)p->columns * sizeof *at) == 0;
        }
    }
    arena_free(own);
    return rows > 1 && equal == rows;
}

/* ---------------------------------------------------------------- logits */

typedef struct Distribution {
    const float *logits;
    double log_sum;  /* log of the sum of exp(logits) */
    int64_t largest; /* the first of the largest */
} Distribution;

static Distribution distribution_of(const float *logits, int64_t n) {
    Distribution d = {.logits = logits};
    for (int64_t i = 1; i < n; i++)
        if (logits[i] > logits[d.largest]) d.largest = i;
    const double most = logits[d.largest];
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += exp((double)logits[i] - most);
    d.log_sum = most + log(sum);
    return d;
}

static double divergence(const Distribution *p, const Distribution *q, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double log_p = (double)p->logits[i] - p->log_sum, log_q = (double)q->logits[i] - q->log_sum;
        sum += exp(log_p) * (log_p - log_q);
    }
    return fmax(0, sum);
}

double measure_divergence(const float *a, const float *b, int64_t n) {
    const Distribution p = distribution_of(b, n), q = distribution_of(a, n);
    return divergence(&p, &q, n);
}

/* The ids that the rows of a decoder's logits are fed, or NULL where rows do not predict the next id. */
static const InputArray *ids_of(const Model *model, const GraphOutput *out, const Sequence *s) {
    if (!model->decoder || !model->head.logits || out->of_sequence) return NULL;
    const InputArray *ids = sequence_input(s, model->encoder ? IN_target : IN_tokens);
    return ids && ids->dtype == DTYPE_I64 ? ids : NULL;
}

/* Rows in front of the last one of a prefix see the next id already. */
static int64_t first_blind(const Sequence *s) {
    const InputArray *prefix = sequence_input(s, IN_prefix_length);
    const int64_t n = prefix ? *(const int64_t *)prefix->data : 0;
    return n > 0 ? n - 1 : 0;
}

void measure_logits(const Reference *r, const MeasuredModel *m, LogitsErrors *out) {
    Arena *own = arena_new();
    const Graph *g = r->model.engine->plan->graph;
    Pieces pieces = batch_pieces(own, r->model.engine->plan->graph, r->batch);
    double loss = 0, loss_f32 = 0;
    for (int64_t i = 0; i < pieces.count; i++) {
        const Piece *p = &pieces.list[i];
        if (p->role != OUT_logits) continue;
        const Sequence *s = &r->batch->sequences[p->sequence];
        const InputArray *ids = ids_of(r->model.module->model, &g->outputs[p->output], s);
        const int64_t blind = first_blind(s);
        for (int64_t row = 0; row < p->rows; row++) {
            const int64_t at = p->offset + row * p->columns;
            const Distribution f32 = distribution_of(r->model.outputs[OUT_logits] + at, p->columns),
                               own_one = distribution_of(m->outputs[OUT_logits] + at, p->columns);
            const double kl = divergence(&f32, &own_one, p->columns);
            out->rows++;
            out->kl_mean += kl;
            out->kl_max = fmax(out->kl_max, kl);
            out->top1 += f32.largest == own_one.largest;
            if (!ids || row < blind || row + 1 >= ids->rows) continue;
            const int64_t next = ((const int64_t *)ids->data)[row + 1];
            loss += own_one.log_sum - (double)own_one.logits[next];
            loss_f32 += f32.log_sum - (double)f32.logits[next];
            out->tokens++;
        }
    }
    if (out->rows) out->kl_mean /= (double)out->rows, out->top1 /= (double)out->rows;
    if (out->tokens) {
        out->perplexity = exp(loss / (double)out->tokens);
        out->perplexity_f32 = exp(loss_f32 / (double)out->tokens);
    }
    arena_free(own);
}
