/* lower_ranks.c: a rank's own rows for the others, and rows of the parts of all ranks. */
#include "kernel_call.h"

KernelCall *lower_exchange(const Lowering *l, const Step *s) {
    KernelCall *call = call_new(l, KERNEL_exchange, l->isa, l->isa);
    constant_integer(l, call, "PART", s->n);
    constant_integer(l, call, "x_stride", stride_of(l, s->exchange.x));
    call->comment = arena_printf(l->arena, "%lld columns of each rank to all ranks", (long long)s->n);
    call->stem = arena_printf(l->arena, "exchange_%lld", (long long)s->n);
    give_operand(call, "x", s->exchange.x);
    give_operand(call, "out", s->out);
    return call;
}

const char *sharding_bounds(Arena *arena, const Sharding *sharding) {
    Text text = text_new(arena);
    for (int r = 0; r < sharding->ranks; r++) text_printf(&text, "%lld, ", (long long)sharding->begin[r]);
    text_printf(&text, "%lld", (long long)sharding->columns);
    return text.data;
}

KernelCall *lower_assemble(const Lowering *l, const Step *s) {
    const Sharding *sharding = s->exchange.sharding;
    KernelCall *call = call_new(l, KERNEL_assemble, l->isa, l->isa);
    constant_integer(l, call, "N", s->n);
    constant_integer(l, call, "PART", s->exchange.part);
    constant_integer(l, call, "RANKS", sharding->ranks);
    constant_integer(l, call, "out_stride", stride_of(l, s->out));
    constant_word(l, call, "BOUNDS", sharding_bounds(l->arena, sharding));
    const int ids = s->exchange.ids;
    constant_integer(l, call, "of_owners", ids != NO_INPUT);
    constant_word(l, call, "ids", ids == NO_INPUT ? "none" : l->plan->graph->inputs[ids].kind->array);
    call->comment = arena_printf(l->arena, "rows of %lld columns from what %d ranks have", (long long)s->n,
                                 sharding->ranks);
    call->stem = arena_printf(l->arena, "assemble_%lld", (long long)s->n);
    give_operand(call, "x", s->exchange.x);
    give_operand(call, "out", s->out);
    return call;
}
