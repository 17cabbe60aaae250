/* apart.c: a table whose `fma` rounds the product before the sum, as on targets without a fused multiply-add. */
#include "targets.h"

#include <string.h>

static IsaOp *find(Isa *isa, const char *name) {
    for (size_t i = 0; i < isa->op_count; i++)
        if (strcmp(isa->ops[i].name, name) == 0) return &isa->ops[i];
    bug("the table %s has no operation %s", isa->name, name);
}

/* Puts the operation `from` in the place of `name`; what stood there is called `kept` from now on. */
static void replace(Isa *isa, const char *name, const char *from, const char *kept) {
    IsaOp *op = find(isa, name), *other = find(isa, from);
    const IsaOp fused = *op;
    *op = *other;
    op->name = name;
    *other = fused;
    other->name = kept;
}

const Isa *isa_apart(Arena *arena, const Isa *isa) {
    if (!isa->fused) return isa;
    Isa *apart = arena_alloc(arena, sizeof *apart);
    *apart = *isa;
    apart->fused = false;
    apart->apart = true;
    apart->ops = arena_array(arena, isa->op_count, sizeof *apart->ops);
    memcpy(apart->ops, isa->ops, isa->op_count * sizeof *apart->ops);
    replace(apart, "fma", "mul_add", "fma_once");
    replace(apart, "fnma", "mul_sub", "fnma_once");
    apart->op_names = arena_array(arena, isa->op_count + 1, sizeof *apart->op_names);
    for (size_t i = 0; i < isa->op_count; i++) apart->op_names[i] = apart->ops[i].name;
    if (isa->half) apart->half = isa_apart(arena, isa->half);
    return apart;
}
