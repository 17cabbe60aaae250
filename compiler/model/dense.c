/* dense.c: the projections that the pooled row goes through. */
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
    dense.activation = stated(scope, F_activation) ? (Activation)get(scope, F_activation) : ACTIVATION_identity;
    const Location gated = scope->fields[F_gated].location;
    const bool inside = location_before(item->location, gated) && location_before(gated, item->block_end);
    if (stated(scope, F_gated) && inside)
        diagnose(r->diagnostics, gated, "`dense` has one projection, and `gated` is for an `ffn`, which has two");
    return dense;
}

void resolve_dense(Resolver *r, const Scope *scope, const Item *items) {
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
