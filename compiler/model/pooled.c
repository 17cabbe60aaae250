/* pooled.c: the blocks of the pooled row: the sublayers that make it of a learned row, and the projections that it goes
 * through. */
#include "settings.h"

/* The number behind `dense`. */
static int64_t dense_width(Resolver *r, const Scope *scope, const Item *item) {
    const Value *v = item->values;
    if (!v || v->kind != VALUE_EXPR) {
        diagnose(r->diagnostics, item->location, "`dense` wants its width: `dense N { … }`");
        return 1;
    }
    if (v->next) diagnose(r->diagnostics, v->next->location, "nothing may follow `dense N` but its block");
    return evaluate_integer(r, scope, v->expr, "`dense`", 1, MOST_INTEGER).integer;
}

static Dense resolve_one(Resolver *r, const Scope *outer, const Item *item) {
    Dense dense = {.location = item->location, .width = dense_width(r, outer, item)};
    const Scope *scope = scope_enter(r, outer, BLOCK_DENSE, item->items);
    dense.bias = all_biased(scope);
    dense.activation = resolve_activation(r, scope, ACTIVATION_identity);
    const Location gated = scope->fields[F_gated].location;
    if (stated(scope, F_gated) && stands_in(gated, item))
        diagnose(r->diagnostics, gated, "`dense` has one projection, and `gated` is for an `ffn`, which has two");
    return dense;
}

static void resolve_dense(Resolver *r, const Scope *scope, const Item *items) {
    Head *head = &r->model->head;
    int64_t count = 0;
    for (const Item *i = items; i; i = i->next) count += item_is_block(i, "dense");
    head->dense = arena_array(r->arena, (size_t)(count ? count : 1), sizeof *head->dense);
    for (const Item *i = items; i; i = i->next) {
        if (!item_is_block(i, "dense")) continue;
        if (head->n_dense == MOST_DENSE) {
            diagnose(r->diagnostics, i->location, "a model has at most %d blocks `dense`", MOST_DENSE);
            return;
        }
        if (!head->n_dense && !head->pool && !head->pooler && r->diagnostics->errors == 0)
            diagnose(r->diagnostics, i->location, "`dense` needs `head pool` or `head pooler`, whose row it projects");
        head->dense[head->n_dense++] = resolve_one(r, scope, i);
    }
}

/* A probe is one row, so that it attends to the rows of the stack alone, all of which it sees. */
static void check_probe(Resolver *r, const Item *item, const Layer *probe) {
    const Diagnostics *d = r->diagnostics;
    bool attends = false;
    for (int i = 0; i < probe->count && d->errors == 0; i++) {
        const Sublayer *s = &probe->sublayers[i];
        const Attention *a = &s->attention;
        if (s->kind == SUBLAYER_FFN) continue;
        attends = true;
        if (!a->cross)
            diagnose(r->diagnostics, s->location, "`probe` is one row, which attends to those of the stack: state "
                     "`attention cross`");
        else if (a->mask_given)
            diagnose(r->diagnostics, s->location, "all rows are visible to `probe`: `mask given` has no meaning");
        else if (a->output_width != r->model->d_model)
            diagnose(r->diagnostics, s->location, "the sublayers of `probe` keep the width of its row: %lld and %lld",
                     (long long)a->output_width, (long long)r->model->d_model);
    }
    if (!attends && d->errors == 0)
        diagnose(r->diagnostics, item->location, "`probe` needs `attention cross { … }`, by which it reads the rows");
}

static void resolve_probe(Resolver *r, const Scope *outer, const Item *item) {
    Head *head = &r->model->head;
    Stack *stack = r->model->decoder ? r->model->decoder : r->model->encoder;
    refuse_values(r, item);
    if (!stack) return;
    Scope around = *outer; /* the row of a probe is as wide as those of its stack */
    around.fields[F_d_model] = r->width;
    const Scope *scope = scope_enter(r, &around, BLOCK_PROBE, item->items);
    head->probe = arena_alloc(r->arena, sizeof *head->probe);
    stack->probed = true;
    *head->probe = resolve_layer(r, scope, item, stack);
    stack->probed = false;
    check_probe(r, item, head->probe);
    if (head->pool != POOL_PROBE && r->diagnostics->errors == 0)
        diagnose(r->diagnostics, item->location, "`probe` belongs to `head pool probe`");
}

void resolve_pooled(Resolver *r, const Scope *scope, const Item *items) {
    const Head *head = &r->model->head;
    for (const Item *i = items; i; i = i->next) {
        if (!item_is_block(i, "probe")) continue;
        if (head->probe) diagnose(r->diagnostics, i->location, "a model has one `probe`");
        else resolve_probe(r, scope, i);
    }
    if (head->pool == POOL_PROBE && !head->probe && r->diagnostics->errors == 0)
        diagnose(r->diagnostics, head->location, "`pool probe` needs the block `probe { … }`");
    resolve_dense(r, scope, items);
}
