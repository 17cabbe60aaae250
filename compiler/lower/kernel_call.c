/* kernel_call.c: puts together the constants and arguments of a kernel. */
#include "kernel_call.h"

#include <string.h>

static void add_constant(const Lowering *l, KernelCall *call, Constant constant) {
    call->constants = arena_grow(l->arena, call->constants, call->n_constants, &call->room, sizeof constant);
    call->constants[call->n_constants++] = constant;
}

void constant_integer(const Lowering *l, KernelCall *call, const char *name, int64_t value) {
    add_constant(l, call, (Constant){CONSTANT_INTEGER, name, {.integer = value}});
}

void constant_word(const Lowering *l, KernelCall *call, const char *name, const char *value) {
    add_constant(l, call, (Constant){CONSTANT_WORD, name, {.word = value}});
}

void constant_real(const Lowering *l, KernelCall *call, const char *name, double value) {
    add_constant(l, call, (Constant){CONSTANT_REAL, name, {.real = (float)value}});
}

void constant_rules(const Lowering *l, KernelCall *call, const AttentionStep *step) {
    add_constant(l, call, (Constant){CONSTANT_RULES, "rules", {.attention = step}});
}

void constant_callee(const Lowering *l, KernelCall *call, const char *name, KernelCall *callee) {
    add_constant(l, call, (Constant){CONSTANT_CALLEE, name, {.callee = callee}});
}

void call_helper(KernelCall *call, const char *name) {
    for (int i = 0; i < call->n_helpers; i++)
        if (strcmp(call->helpers[i], name) == 0) return;
    if (call->n_helpers == MOST_HELPERS) bug("the kernel %s calls too many helpers", kernel_rows[call->kernel].name);
    call->helpers[call->n_helpers++] = name;
}

void call_area(const Lowering *l, KernelCall *call, const char *name, int64_t floats) {
    const int64_t at = layout_elements(&LAYOUT_ROWS, call->scratch_bytes);
    const int64_t end = at + round_up(floats, layout_elements(&LAYOUT_ROWS, ALIGNMENT));
    if (call->n_areas == MOST_AREAS) bug("the kernel %s has too many areas", kernel_rows[call->kernel].name);
    call->areas[call->n_areas++] = (Area){name, at, floats};
    call->scratch_bytes = end * (int64_t)sizeof(float);
    constant_integer(l, call, arena_printf(l->arena, "%s_at", name), at);
    for (int i = 0; i < call->n_constants; i++)
        if (strcmp(call->constants[i].name, "scratch") == 0) call->constants[i].integer = end;
}

KernelCall *call_new(const Lowering *l, KernelKind kernel, const Isa *v, const Isa *u) {
    KernelCall *call = arena_alloc(l->arena, sizeof *call);
    call->kernel = kernel;
    call->v = v;
    call->u = u;
    call->stem = kernel_rows[kernel].name;
    if (l->calls->n_spares) {
        const SpareConstants spare = l->calls->spares[--l->calls->n_spares];
        call->constants = spare.constants;
        call->room = spare.room;
    }
    constant_integer(l, call, "PANEL", PANEL);
    constant_integer(l, call, "v_width", v->width);
    constant_integer(l, call, "u_width", u->width);
    constant_integer(l, call, "full", l->unrolled);
    constant_integer(l, call, "rows", 0);
    constant_integer(l, call, "UNROLL", l->unrolled ? WHOLE : 1);
    constant_integer(l, call, "STATEMENTS", STATEMENTS);
    constant_integer(l, call, "scratch", 0);
    const KernelRow *row = &kernel_rows[kernel];
    if (row->n_parameters > MOST_PARAMETERS) bug("the kernel %s has too many parameters", row->name);
    for (int i = 0; i < row->n_parameters; i++) {
        ParameterKind kind = row->parameters[i].kind;
        call->arguments[i] = (Argument){.operand = {NO_BUFFER, 0}, .packed = NO_PACKED, .cache = NO_CACHE};
        call->arguments[i].given =
            kind == PARAMETER_RUN || (!l->unrolled && (kind == PARAMETER_ROWS || kind == PARAMETER_SHARE));
    }
    return call;
}

static bool same_rules(const AttentionStep *a, const AttentionStep *b) {
    if (a->n_rescores != b->n_rescores || a->n_inputs != b->n_inputs) return false;
    if (!pair_same(a->visible, b->visible)) return false;
    for (int i = 0; i < a->n_rescores; i++)
        if (!pair_same(a->rescores[i].rule, b->rescores[i].rule)) return false;
    for (int i = 0; i < a->n_inputs; i++)
        if (a->inputs[i].width != b->inputs[i].width || strcmp(a->inputs[i].name, b->inputs[i].name) != 0) return false;
    return true;
}

static bool same_constant(const Constant *a, const Constant *b) {
    if (a->kind != b->kind || (a->name != b->name && strcmp(a->name, b->name) != 0)) return false;
    switch (a->kind) {
    case CONSTANT_INTEGER: return a->integer == b->integer;
    case CONSTANT_WORD: return a->word == b->word || strcmp(a->word, b->word) == 0;
    case CONSTANT_CALLEE: return a->callee->first == b->callee->first;
    case CONSTANT_RULES: return same_rules(a->attention, b->attention);
    case CONSTANT_REAL: break;
    }
    /* by its bits: -0 prints as another text than 0 */
    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison,cert-exp42-c,cert-flp37-c) */
    return memcmp(&a->real, &b->real, sizeof a->real) == 0;
}

static bool same_call(const KernelCall *a, const KernelCall *b) {
    if (a->hash != b->hash || a->kernel != b->kernel || a->n_constants != b->n_constants) return false;
    for (int i = 0; i < a->n_constants; i++)
        if (!same_constant(&a->constants[i], &b->constants[i])) return false;
    return true;
}

static uint64_t hash_of(const KernelCall *call) {
    uint64_t hash = call->kernel;
    for (int i = 0; i < call->n_constants; i++) {
        const Constant *c = &call->constants[i];
        uint64_t bits = 0;
        if (c->kind == CONSTANT_INTEGER) bits = (uint64_t)c->integer;
        else if (c->kind == CONSTANT_WORD) bits = hash_bytes(0, c->word, strlen(c->word));
        else if (c->kind == CONSTANT_REAL) memcpy(&bits, &c->real, sizeof c->real);
        hash = (hash ^ bits) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return hash;
}

/* Gives the call `kept`, or a copy of its own constants without room for more, and keeps their array for calls to
 * come. */
static void keep_constants(const Lowering *l, KernelCall *call, Constant *kept) {
    const SpareConstants spare = {call->constants, call->room};
    if (!kept) {
        kept = arena_array(l->arena, (size_t)call->n_constants, sizeof *kept);
        memcpy(kept, call->constants, (size_t)call->n_constants * sizeof *kept);
    }
    call->constants = kept;
    call->room = call->n_constants;
    if (l->calls->n_spares < MOST_SPARES) l->calls->spares[l->calls->n_spares++] = spare;
}

void call_share(const Lowering *l, KernelCall *call) {
    bool calls_others = false;
    if (call->first) return; /* a callee of two constants */
    for (int i = 0; i < call->n_constants; i++) {
        if (call->constants[i].kind != CONSTANT_CALLEE) continue;
        call_share(l, call->constants[i].callee);
        calls_others = true;
    }
    call->hash = hash_of(call);
    KernelCall **list = &l->calls->firsts[call->hash % CALL_LISTS], *first = *list;
    while (first && !same_call(first, call)) first = first->next_first;
    call->first = first ? first : call;
    if (!first) {
        call->next_first = *list;
        *list = call;
    }
    keep_constants(l, call, first && !calls_others ? first->constants : NULL); /* callees differ in their arguments */
}

static Argument *argument(KernelCall *call, const char *parameter) {
    const KernelRow *row = &kernel_rows[call->kernel];
    for (int i = 0; i < row->n_parameters; i++)
        if (row->parameters[i].name && strcmp(row->parameters[i].name, parameter) == 0) return &call->arguments[i];
    bug("the kernel %s has no parameter `%s`", row->name, parameter);
}

void give(KernelCall *call, const char *parameter) { argument(call, parameter)->given = true; }

void give_operand(KernelCall *call, const char *parameter, Operand operand) {
    Argument *a = argument(call, parameter);
    a->given = operand.buffer != NO_BUFFER;
    a->operand = operand;
}

void give_packed(KernelCall *call, const char *parameter, int packed) {
    Argument *a = argument(call, parameter);
    a->given = packed != NO_PACKED;
    a->packed = packed;
}

void give_named(KernelCall *call, const char *parameter, int packed, const char *name) {
    give_packed(call, parameter, packed);
    argument(call, parameter)->name = name;
}

void give_cache(KernelCall *call, const char *parameter, int cache) {
    Argument *a = argument(call, parameter);
    a->given = true;
    a->cache = cache;
}

void give_keys(KernelCall *call, const char *parameter, int cache, Operand rows) {
    if (cache != NO_CACHE) give_cache(call, parameter, cache);
    else give_operand(call, parameter, rows);
}

const Buffer *buffer_of(const Lowering *l, Operand operand) { return &l->plan->buffers[operand.buffer]; }

int64_t stride_of(const Lowering *l, Operand operand) {
    return operand.buffer == NO_BUFFER ? 0 : buffer_of(l, operand)->stride;
}

int64_t sequence_bound(const Lowering *l, RowsKind rows) {
    const int64_t counts[] = {[ROWS_CHUNK] = l->plan->seq.n,
                              [ROWS_SOURCE] = l->plan->source_seq.n,
                              [ROWS_SEQUENCES] = 1};
    return rows < ROWS_FIXED ? counts[rows] : rows_fixed(l->plan, rows);
}

void fix_rows(const Lowering *l, KernelCall *call, RowsKind rows) {
    if (l->unrolled) constant_integer(l, call, "rows", sequence_bound(l, rows));
}

void sequence_rows(const Lowering *l, KernelCall *call, RowsKind rows) {
    bool source = rows == ROWS_SOURCE;
    constant_word(l, call, "row_count", source ? "source_rows" : "rows");
    constant_word(l, call, "starts", source ? "source_starts" : "starts");
    constant_integer(l, call, "cached", l->plan->cached);
}

Dtype weights_dtype(const Lowering *l, int packed) {
    return packed == NO_PACKED ? DTYPE_F32 : l->plan->program->packed[packed].slot.layout.dtype;
}

void constants_of_groups(const Lowering *l, KernelCall *call, int packed, int scales, int offsets) {
    const Program *program = l->plan->program;
    const int weight = packed == NO_PACKED ? -1 : program->packed[packed].weight;
    const bool in_groups = scales != NO_PACKED && program->module->weights.specs[weight].type.group;
    constant_integer(l, call, "GROUPED", in_groups ? program->module->weights.specs[weight].type.group : 0);
    constant_integer(l, call, "GROUPS", in_groups ? packed_columns(&program->packed[scales]) : 1);
    constant_integer(l, call, "has_offsets", offsets != NO_PACKED);
    constant_integer(l, call, "HALF_SCALES", scales != NO_PACKED && weights_dtype(l, scales) == DTYPE_F16);
}

const char *load_operation(Arena *arena, Dtype dtype) {
    if (dtype == DTYPE_F32) return "load";
    if (dtype == DTYPE_I4) return "load_i4_of8";
    char *name = arena_printf(arena, "load_%s", dtype_name(dtype));
    for (char *c = name; *c; c++)
        if (*c >= 'A' && *c <= 'Z') *c = (char)(*c + 'a' - 'A');
    return name;
}

void constants_of_dtype(const Lowering *l, KernelCall *call, int packed) {
    constant_word(l, call, "dtype", dtype_name(weights_dtype(l, packed)));
    constant_word(l, call, "c_type", dtype_c_type(weights_dtype(l, packed)));
}

int weights_stream(const Lowering *l) {
    enum { SECOND_LEVEL_BYTES = 4 << 20, THIRD_LEVEL_BYTES = 32 << 20 }; /* more than a core of these targets has */
    if (l->unrolled) return 0;
    return (l->plan->matrix_bytes > SECOND_LEVEL_BYTES) + (l->plan->matrix_bytes > THIRD_LEVEL_BYTES);
}
