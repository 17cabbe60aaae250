/* learned.c: `learned NAME [heads]`, `learned NAME [N]` and `learned NAME [heads][N]`, tensors that scores read. */
#include "settings.h"

/* The block whose name the tensor's name begins with; false where no score can read it. */
static bool block_of(const Scope *scope, LearnedBlock *block) {
    switch (scope->block) {
    case BLOCK_ATTENTION: *block = LEARNED_ATTENTION; return true;
    case BLOCK_MODEL: *block = LEARNED_MODEL; return true;
    case BLOCK_ENCODER: case BLOCK_DECODER: case BLOCK_LAYERS: case BLOCK_LAYER: *block = LEARNED_STACK; return true;
    default: return false;
    }
}

const PairTable *resolve_learned(Resolver *r, const Scope *scope, const Item *item) {
    const Expr *count = item->values->expr, *heads = item->values->until;
    LearnedBlock block;
    if (!block_of(scope, &block)) {
        diagnose(r->diagnostics, item->location, "`learned` stands in an `attention`, or in a block around one");
        return NULL;
    }
    if (is_letter(item->name)) {
        diagnose(r->diagnostics, item->location, "`%s` has a meaning of its own in scores; a table needs another name",
                 item->name);
        return NULL;
    }
    if (heads && !is_word(heads, "heads")) {
        diagnose(r->diagnostics, heads->location, "a learned table is `[heads]`, `[N]` or `[heads][N]`");
        return NULL;
    }
    const Number n = evaluate_integer(r, scope, count, "the length of a table", 1, MOST_ROWS);
    const Number rows = heads ? evaluate_integer(r, scope, heads, "`heads`", 1, MOST_HEADS) : (Number){.ok = true};
    if (!n.ok || !rows.ok) return NULL;
    PairTable *table = arena_alloc(r->arena, sizeof *table);
    *table = (PairTable){.name = item->name, .count = n.integer, .of_heads = is_word(count, "heads"),
                         .heads = rows.integer, .block = block, .location = item->location};
    return table;
}
