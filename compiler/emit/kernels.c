/* kernels.c: the steps of a plan for one target. A kernel is a template with its constants; steps whose
 * constants are the same share one. */
#include "emit.h"

#include <stdlib.h>
#include <float.h>
#include <math.h>
#include <string.h>

/* A name of a template's and its value. */
typedef struct Constant {
    enum { INTEGER, WORD, REAL } kind;
    const char *name;
    union {
        int64_t integer;
        const char *word;
        float real;
    };
} Constant;

/* An instance of a template that stands in the file already. */
typedef struct Kernel {
    struct Kernel *next;
    const char *template_name, *name;
    uint64_t hash; /* of the constants */
    const Constant *constants;
    int n_constants;
} Kernel;

/* One being asked for. Most are there already: names become variables only when the template is expanded. */
typedef struct Wanted {
    TargetEmitter *e;
    const Isa *v, *u; /* what the template calls so */
    const char *template_name, *comment;
    uint64_t hash;
    Constant *constants;
    int n_constants, room;
} Wanted;

const char *hex_float(Arena *arena, double value) { return arena_printf(arena, "%af", (double)(float)value); }

enum { WHOLE = 1 << 20 }; /* an unrolling that leaves no loop */

static void add_constant(Wanted *w, Constant constant, uint64_t bits) {
    w->constants = arena_grow(w->e->arena, w->constants, w->n_constants, &w->room, sizeof *w->constants);
    w->constants[w->n_constants++] = constant;
    w->hash = (w->hash ^ bits) * UINT64_C(0x9e3779b97f4a7c15);
    w->hash ^= w->hash >> 32;
}

static void number(Wanted *w, const char *name, int64_t value) {
    add_constant(w, (Constant){INTEGER, name, {.integer = value}}, (uint64_t)value);
}

static void word(Wanted *w, const char *name, const char *value) {
    add_constant(w, (Constant){WORD, name, {.word = value}}, hash_bytes(0, value, strlen(value)));
}

static void real(Wanted *w, const char *name, double value) {
    float rounded = (float)value;
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    add_constant(w, (Constant){REAL, name, {.real = rounded}}, bits);
}

/* `v`, `u`: the target's table, or its half for short rows. */
static Wanted want_with(TargetEmitter *e, const char *template_name, const Isa *v, const Isa *u) {
    Wanted w = {.e = e, .template_name = template_name, .v = v, .u = u};
    bool full = e->written_out;
    number(&w, "v_width", v->width);
    number(&w, "u_width", u->width);
    number(&w, "full", full);
    number(&w, "rows", 0);
    number(&w, "UNROLL", full ? WHOLE : 1);
    number(&w, "STATEMENTS", STATEMENTS);
    return w;
}

static Wanted want(TargetEmitter *e, const char *template_name) {
    return want_with(e, template_name, e->isa, e->isa);
}

static bool same_constant(const Constant *a, const Constant *b) {
    if (a->kind != b->kind || strcmp(a->name, b->name) != 0) return false;
    if (a->kind == WORD) return strcmp(a->word, b->word) == 0;
    /* by its bits: -0 prints as another text than 0 */
    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison,cert-exp42-c,cert-flp37-c) */
    return a->kind == REAL ? memcmp(&a->real, &b->real, sizeof a->real) == 0 : a->integer == b->integer;
}

static bool is_wanted(const Kernel *k, const Wanted *w) {
    if (k->hash != w->hash || k->n_constants != w->n_constants || strcmp(k->template_name, w->template_name) != 0)
        return false;
    for (int i = 0; i < k->n_constants; i++)
        if (!same_constant(&k->constants[i], &w->constants[i])) return false;
    return true;
}

/* The constants as variables; of two that have one name the later one holds. */
static TemplateVars *variables(const Wanted *w, const char *name) {
    const TargetEmitter *e = w->e;
    TemplateVars *vars = vars_new(e->arena, NULL);
    vars_text(vars, "p", arena_printf(e->arena, "%s_%s", e->model, w->v->name));
    vars_text(vars, "prefix", e->model);
    vars_text(vars, "p_model", e->model);
    for (const Constant *c = w->constants; c < w->constants + w->n_constants; c++) {
        if (c->kind == INTEGER) vars_int(vars, c->name, c->integer);
        else vars_text(vars, c->name, c->kind == WORD ? c->word : hex_float(e->arena, (double)c->real));
    }
    if (w->comment) vars_text(vars, "comment", w->comment);
    vars_text(vars, "name", name);
    return vars;
}

static Kernel *keep_kernel(const Wanted *w, const char *name) {
    TargetEmitter *e = w->e;
    Constant *constants = arena_array(e->kept, (size_t)w->n_constants, sizeof *constants);
    for (int i = 0; i < w->n_constants; i++) {
        constants[i] = w->constants[i];
        const char *value = constants[i].word;
        if (constants[i].kind == WORD) constants[i].word = arena_copy(e->kept, value, strlen(value));
    }
    Kernel *kept = arena_alloc(e->kept, sizeof *kept);
    *kept = (Kernel){e->kernels, w->template_name, arena_copy(e->kept, name, strlen(name)), w->hash, constants,
                     w->n_constants};
    e->kernels = kept;
    return kept;
}

/* What kernels of a table call. */
static void emit_helpers(TargetEmitter *e, const Isa *isa) {
    TemplateVars *vars = vars_new(e->arena, NULL);
    vars_text(vars, "p", arena_printf(e->arena, "%s_%s", e->model, isa->name));
    vars_text(vars, "prefix", e->model);
    template_expand_helpers(e->arena, e->writer, vars, isa);
    writer_blank(e->writer);
    template_expand(e->arena, e->writer, "math.c.tmpl", vars, isa);
    writer_blank(e->writer);
    writer_part(e->writer, e->isa->name, "helpers", "helpers");
}

/* The kernel's function; expands the template when it is the first of its kind. `stem` names it. */
static const char *kernel(Wanted *w, const char *stem) {
    TargetEmitter *e = w->e;
    for (const Kernel *k = e->kernels; k; k = k->next)
        if (is_wanted(k, w)) return k->name;
    int same = 0;
    const char *single = e->written_out && !e->plan->program->unroll_full ? "single_" : "";
    const char *name = arena_printf(e->arena, "%s_%s%s", e->prefix, single, stem);
    size_t size = strlen(name);
    for (const Kernel *k = e->kernels; k; k = k->next)
        same += strncmp(k->name, name, size) == 0 && (k->name[size] == '\0' || k->name[size] == '_');
    if (same) name = arena_printf(e->arena, "%s_%d", name, same + 1);
    const Kernel *kept = keep_kernel(w, name);
    bool needs_half = w->v != e->isa || w->u != e->isa;
    if (needs_half && !e->half_helpers) emit_helpers(e, e->isa->half);
    e->half_helpers |= needs_half;
    template_expand_with(e->arena, e->writer, w->template_name, variables(w, name), w->v, w->u);
    writer_blank(e->writer);
    const int stem_size = (int)strcspn(w->template_name, ".");
    writer_part(e->writer, e->isa->name, arena_printf(e->arena, "%.*s", stem_size, w->template_name),
                kept->name + strlen(e->prefix) + 1);
    return kept->name;
}

/* ---------------------------------------------------------------- places */

static const Buffer *buffer_of(const TargetEmitter *e, Operand o) { return &e->plan->buffers[o.buffer]; }

static int64_t stride_of(const TargetEmitter *e, Operand o) {
    return o.buffer == NO_BUFFER ? 0 : buffer_of(e, o)->stride;
}

static const char *address(TargetEmitter *e, Operand o) {
    if (o.buffer == NO_BUFFER) return "NULL";
    const Buffer *b = buffer_of(e, o);
    if (b->kind == BUFFER_WORKSPACE)
        return arena_printf(e->arena, "run->workspace + %lld", (long long)(b->offset + o.column));
    const char *base = b->kind == BUFFER_INPUT ? arena_printf(e->arena, "run->%s", b->name)
                                               : arena_printf(e->arena, "run->out_%s", b->name);
    return o.column ? arena_printf(e->arena, "%s + %lld", base, (long long)o.column) : base;
}

static const char *weight_at(TargetEmitter *e, int packed) {
    return arena_printf(e->arena, "run->weights + %lld", (long long)e->plan->program->packed[packed].offset);
}

/* `unroll full`: the number of rows is a constant of the kernel. */
static void fix_rows(Wanted *w, RowsKind rows) {
    const Plan *plan = w->e->plan;
    if (!w->e->written_out) return;
    const int64_t counts[] = {[ROWS_CHUNK] = plan->seq.n,
                              [ROWS_SOURCE] = plan->source_seq.n,
                              [ROWS_SEQUENCES] = 1,
                              [ROWS_PATCHES] = plan->patch_rows};
    number(w, "rows", counts[rows]);
}

static const char *rows_text(TargetEmitter *e, RowsKind rows) {
    switch (rows) {
    case ROWS_CHUNK: return "run->rows";
    case ROWS_SOURCE: return "run->source_rows";
    case ROWS_SEQUENCES: return "run->ended";
    case ROWS_PATCHES: return arena_printf(e->arena, "run->sequences * %lld", (long long)e->plan->patch_rows);
    }
    return "0";
}

/* For kernels that ask where a sequence begins, and how many rows stand before its first. */
static void sequence_rows(Wanted *w, RowsKind rows) {
    bool source = rows == ROWS_SOURCE;
    word(w, "row_count", source ? "source_rows" : "rows");
    word(w, "starts", source ? "source_starts" : "starts");
    number(w, "cached", w->e->plan->cached);
}

/* The end of a call: rows and the share of a thread, or nothing where all of that is constant. */
static const char *share(TargetEmitter *e) {
    return e->written_out ? ");" : ", (size_t)thread, (size_t)run->threads);";
}
static const char *rows_and_share(TargetEmitter *e, RowsKind rows) {
    return e->written_out
               ? ");"
               : arena_printf(e->arena, ", %s, (size_t)thread, (size_t)run->threads);", rows_text(e, rows));
}

/* Steps into the caller's memory run only where the caller wants that output. */
static bool is_optional(const TargetEmitter *e, const Step *s) {
    return s->out.buffer != NO_BUFFER && buffer_of(e, s->out)->kind == BUFFER_OUTPUT;
}

/* ---------------------------------------------------------------- steps: each gives the call of its kernel */

/* Matrices that add up to more than a second-level cache holds are read from farther away: these floats. */
enum { STREAM_FLOATS = 1 << 20 };

static bool weights_stream(const TargetEmitter *e) {
    return e->plan->matrix_floats > STREAM_FLOATS && !e->written_out;
}

/* The matrix that is read after that of `s`; after the last one the next call begins with the first. */
static const char *weights_after(TargetEmitter *e, const Step *s) {
    const Plan *plan = e->plan;
    const Step *next = s;
    do {
        next = next + 1 < plan->steps + plan->n_steps ? next + 1 : plan->steps;
    } while (next->kind != STEP_GEMM);
    const Packed *matrix = &plan->program->packed[next->weight];
    return arena_printf(e->arena, "run->weights + %lld + (size_t)thread * %lld / (size_t)run->threads",
                        (long long)matrix->offset, (long long)matrix->room);
}

static const char *call_gemm(TargetEmitter *e, const Step *s) {
    const int64_t used = panel_columns(e->plan, s);
    const Isa *isa = isa_for(e->isa, used);
    Wanted w = want_with(e, "gemm.c.tmpl", isa, isa);
    GemmTile tile = gemm_tile(isa, used);
    const Buffer *out = buffer_of(e, s->out);
    bool scaled = s->scale != 1, stream = weights_stream(e);
    double residual_scale = s->residual_scale;
    if (scaled && s->has_residual && !s->has_activation && !s->has_factor &&
        s->cap == 0) { /* one factor: no product feeds the sum */
        residual_scale *= s->scale;
        scaled = false;
    }
    number(&w, "K", s->k);
    number(&w, "N", s->n);
    number(&w, "USED", used);
    number(&w, "H_MOST", tile.height);
    number(&w, "P_MOST", tile.panels);
    number(&w, "K_UNROLL", e->written_out ? WHOLE : 1);
    fix_rows(&w, s->rows);
    number(&w, "x_stride", stride_of(e, s->in));
    number(&w, "out_stride", out->stride);
    number(&w, "exact_out",
           out->kind == BUFFER_OUTPUT || (s->has_residual && buffer_of(e, s->other)->kind != BUFFER_WORKSPACE));
    number(&w, "factor_stride", stride_of(e, s->factor));
    number(&w, "other_stride", stride_of(e, s->other));
    number(&w, "has_bias", s->bias != NO_PACKED);
    number(&w, "has_scale", scaled);
    number(&w, "has_cap", s->cap > 0);
    number(&w, "has_activation", s->has_activation);
    number(&w, "has_factor", s->has_factor);
    number(&w, "has_residual", s->has_residual);
    number(&w, "stream", stream);
    real(&w, "scale", s->scale);
    real(&w, "cap", s->cap);
    real(&w, "inverse_cap", s->cap > 0 ? 1 / s->cap : 0);
    real(&w, "residual_scale", residual_scale);
    word(&w, "activation", s->has_activation ? activation_name(s->a.activation) : "none");
    const char *comment =
        arena_printf(e->arena, "out [rows][%lld] = x [rows][%lld] times weight%s%s%s%s", (long long)s->n,
                     (long long)s->k, s->bias != NO_PACKED ? ", + bias" : "",
                     s->has_activation ? arena_printf(e->arena, ", %s", activation_name(s->a.activation)) : "",
                     s->has_factor ? ", times factor" : "", s->has_residual ? ", + other" : "");
    w.comment = comment;
    const char *name = kernel(&w, arena_printf(e->arena, "gemm_%lldx%lld", (long long)s->k, (long long)s->n));
    Text call = text_new(e->arena);
    text_printf(&call, "%s(%s, %s", name, address(e, s->in), weight_at(e, s->weight));
    if (stream) text_printf(&call, ", %s", weights_after(e, s));
    if (s->bias != NO_PACKED) text_printf(&call, ", %s", weight_at(e, s->bias));
    if (s->has_factor) text_printf(&call, ", %s", address(e, s->factor));
    if (s->has_residual) text_printf(&call, ", %s", address(e, s->other));
    text_printf(&call, ", %s%s", address(e, s->out),
                e->written_out ? ", run->scratch);" : rows_and_share(e, s->rows));
    return call.data;
}

static const char *call_norm(TargetEmitter *e, const Step *s) {
    int64_t d = s->n / s->a.groups;
    const Isa *isa = isa_for(e->isa, d);
    Wanted w = want_with(e, "norm.c.tmpl", isa, isa);
    number(&w, "D", d);
    number(&w, "GROUPS", s->a.groups);
    number(&w, "UNROLL", e->written_out ? WHOLE : 2);
    number(&w, "G_UNROLL", e->written_out ? WHOLE : 1);
    fix_rows(&w, s->rows);
    number(&w, "centered", s->op == OP_layernorm);
    number(&w, "has_bias", s->bias != NO_PACKED);
    number(&w, "weight_per_group", s->k);
    number(&w, "x_stride", stride_of(e, s->in));
    number(&w, "out_stride", stride_of(e, s->out));
    real(&w, "eps", s->a.eps);
    real(&w, "inverse_d", 1 / (double)d);
    w.comment = arena_printf(e->arena, "%s over %lld columns, eps %g", op_name(s->op), (long long)d, s->a.eps);
    const char *name = kernel(&w, arena_printf(e->arena, "%s_%lld", op_name(s->op), (long long)d));
    return arena_printf(e->arena, "%s(%s, %s%s%s, %s%s", name, address(e, s->in), weight_at(e, s->weight),
                        s->bias != NO_PACKED ? ", " : "", s->bias != NO_PACKED ? weight_at(e, s->bias) : "",
                        address(e, s->out), rows_and_share(e, s->rows));
}

static const char *call_embed(TargetEmitter *e, const Step *s) {
    Wanted w = want(e, "embed.c.tmpl");
    bool prepend = s->kind == STEP_PREPEND, lookup = !prepend && s->ids >= 0;
    int tokens_in_front = prepend ? (s->table3 != NO_PACKED ? 2 : 1) : 0;
    bool segments = s->segment_ids >= 0, positions = s->bias != NO_PACKED;
    number(&w, "N", s->n);
    fix_rows(&w, s->rows);
    sequence_rows(&w, s->rows);
    word(&w, "source", prepend ? "prepend" : lookup ? "lookup" : "rows");
    word(&w, "ids", lookup ? e->plan->graph->inputs[s->ids].name : "none");
    number(&w, "in_panels", s->table_in_panels);
    number(&w, "has_scale", lookup && s->scale != 1);
    number(&w, "has_segments", segments);
    number(&w, "has_positions", positions);
    number(&w, "tokens_in_front", tokens_in_front);
    number(&w, "offset", s->a.offset);
    number(&w, "x_stride", stride_of(e, s->in));
    number(&w, "out_stride", stride_of(e, s->out));
    real(&w, "scale", s->scale);
    w.comment = arena_printf(e->arena, "rows of %lld columns%s%s%s", (long long)s->n, lookup ? ", looked up" : "",
                           segments ? ", + segments" : "", positions ? ", + positions" : "");
    const char *name = kernel(&w, "rows");
    Text call = text_new(e->arena);
    text_printf(&call, "%s(run", name);
    if (lookup) text_printf(&call, ", %s", weight_at(e, s->weight));
    else text_printf(&call, ", %s", address(e, s->in));
    if (segments) text_printf(&call, ", %s", weight_at(e, s->table3));
    if (positions) text_printf(&call, ", %s", weight_at(e, s->bias));
    if (tokens_in_front > 0) text_printf(&call, ", %s", weight_at(e, s->weight));
    if (tokens_in_front > 1) text_printf(&call, ", %s", weight_at(e, s->table3));
    text_printf(&call, ", %s%s", address(e, s->out), share(e));
    return call.data;
}

static const char *call_patches(TargetEmitter *e, const Step *s) {
    Wanted w = want(e, "patches.c.tmpl");
    number(&w, "cached", 0);
    const Stack *stack = e->plan->program->module->model->encoder;
    number(&w, "patch_rows", e->plan->patch_rows);
    number(&w, "height", stack->image_height);
    number(&w, "width", stack->image_width);
    number(&w, "patch", stack->patch);
    number(&w, "out_stride", stride_of(e, s->out));
    w.comment = arena_printf(e->arena, "squares of %lld x %lld pixels as rows", (long long)stack->patch,
                           (long long)stack->patch);
    return arena_printf(e->arena, "%s(run, %s%s", kernel(&w, "patches"), address(e, s->out), share(e));
}

static const char *call_rope(TargetEmitter *e, const Step *s) {
    Wanted w = want(e, "rope.c.tmpl");
    fix_rows(&w, s->rows);
    sequence_rows(&w, s->rows);
    number(&w, "second_table", s->a.offset);
    number(&w, "HEADS", s->a.heads);
    number(&w, "D", s->a.head_dim);
    number(&w, "WIDTH", s->a.width);
    number(&w, "interleaved", s->a.interleaved);
    number(&w, "x_stride", stride_of(e, s->in));
    number(&w, "out_stride", stride_of(e, s->out));
    number(&w, "copy", s->in.buffer != s->out.buffer);
    w.comment = arena_printf(e->arena, "%lld columns of %lld heads rotated by position", (long long)s->a.width,
                           (long long)s->a.heads);
    return arena_printf(e->arena, "%s(run, %s, %s, %s, %s%s", kernel(&w, "rope"), address(e, s->in),
                        weight_at(e, s->weight), weight_at(e, s->bias), address(e, s->out), share(e));
}

static const char *call_map(TargetEmitter *e, const Step *s) {
    Wanted w = want(e, "map.c.tmpl");
    bool copy = s->kind == STEP_COPY;
    number(&w, "N", s->n);
    fix_rows(&w, s->rows);
    word(&w, "op", copy ? "copy" : op_name(s->op));
    number(&w, "has_other", s->other.buffer != NO_BUFFER);
    number(&w, "x_stride", stride_of(e, s->in));
    number(&w, "other_stride", stride_of(e, s->other));
    number(&w, "out_stride", stride_of(e, s->out));
    real(&w, "scale", s->a.scale);
    real(&w, "cap", s->a.cap);
    real(&w, "inverse_cap", s->a.cap > 0 ? 1 / s->a.cap : 0);
    word(&w, "activation", activation_name(s->a.activation));
    w.comment = arena_printf(e->arena, "%s over %lld columns", copy ? "copy" : op_name(s->op), (long long)s->n);
    const char *name = kernel(&w, arena_printf(e->arena, "%s_%lld", copy ? "copy" : op_name(s->op), (long long)s->n));
    return arena_printf(e->arena, "%s(%s%s%s, %s%s", name, address(e, s->in), s->other.buffer != NO_BUFFER ? ", " : "",
                        s->other.buffer != NO_BUFFER ? address(e, s->other) : "", address(e, s->out),
                        rows_and_share(e, s->rows));
}

static const char *call_pool(TargetEmitter *e, const Step *s) {
    Wanted w = want(e, "pool.c.tmpl");
    number(&w, "N", s->n);
    fix_rows(&w, ROWS_CHUNK);
    word(&w, "kind", pool_name(s->a.pool));
    number(&w, "l2", s->has_activation);
    number(&w, "x_stride", stride_of(e, s->in));
    number(&w, "out_stride", stride_of(e, s->out));
    w.comment = arena_printf(e->arena, "%s of the rows of a sequence%s", pool_name(s->a.pool),
                           s->has_activation ? ", scaled to length 1" : "");
    return arena_printf(e->arena, "%s(run, %s, %s%s", kernel(&w, "pool"), address(e, s->in), address(e, s->out),
                        share(e));
}

/* ---------------------------------------------------------------- attention */

/* Maps of a sequence stand layer by layer, head by head; a head that is not exported has none (-1). */
static void emit_map_table(TargetEmitter *e, const Step *s, const char *name) {
    const Graph *g = e->plan->graph;
    int64_t first = 0;
    for (int o = 0; o < s->first_export; o++)
        if (strcmp(g->outputs[o].name, g->outputs[s->first_export].name) == 0) first += g->outputs[o].n_heads;
    Text list = text_new(e->arena);
    for (int64_t h = 0; h < s->a.heads; h++) {
        int64_t at = -1;
        for (int64_t i = 0; i < g->outputs[s->first_export].n_heads; i++)
            if (g->outputs[s->first_export].heads[i] == h) at = first + i;
        text_printf(&list, "%s%lld", h ? ", " : "", (long long)at);
    }
    writer_line(e->writer, "/* where the map of each head stands among a sequence's, or -1 */");
    writer_line(e->writer, "static const int %s[] = {%s};", name, list.data);
    writer_blank(e->writer);
}

int64_t map_count(const Graph *g, const char *name) {
    int64_t count = 0;
    for (int o = 0; o < g->n_outputs; o++)
        if (g->outputs[o].layer >= 0 && strcmp(g->outputs[o].name, name) == 0) count += g->outputs[o].n_heads;
    return count;
}

const char *pairs_of(const Plan *plan, const Step *s) {
    const Cache *keys = cache_of(plan, s->keys);
    bool source_keys = keys ? keys->of_source : s->key_rows == ROWS_SOURCE;
    if (s->rows == ROWS_SOURCE) return "source_pairs";
    return source_keys ? "cross_pairs" : "self_pairs";
}

/* Where the keys and values of a head come from. */
static void attention_sources(Wanted *w, const Step *s) {
    TargetEmitter *e = w->e;
    const Plan *plan = e->plan;
    const Cache *keys = cache_of(plan, s->keys);
    const Cache *values = cache_of(plan, s->values);
    number(w, "from_cache", keys != NULL);
    number(w, "of_source", keys ? keys->of_source : s->key_rows == ROWS_SOURCE && s->rows != ROWS_SOURCE);
    number(w, "in_panels", keys && keys->panels);
    number(w, "slots", keys ? keys->slots : 0);
    number(w, "k_stride", keys ? s->a.head_dim : stride_of(e, s->other));
    number(w, "v_stride", values ? s->value_dim : stride_of(e, s->third));
    number(w, "own_keys", keys ? keys->of_source : s->rows != s->key_rows); /* not one key a query */
    sequence_rows(w, s->rows);
    word(w, "key_starts", s->key_rows == ROWS_SOURCE ? "source_starts" : "starts");
    word(w, "pairs", pairs_of(plan, s));
}

/* What a row of queries does with its keys. */
static void attention_shape(Wanted *w, const Step *s) {
    const Plan *plan = w->e->plan;
    number(w, "D", s->a.head_dim);
    number(w, "VD", s->value_dim);
    number(w, "q_stride", stride_of(w->e, s->in));
    number(w, "out_stride", stride_of(w->e, s->out));
    number(w, "causal", s->a.causal && !s->a.has_prefix);
    number(w, "prefixed", s->a.has_prefix);
    number(w, "masked", s->a.has_mask);
    number(w, "window", s->a.window);
    number(w, "sink_keys", s->a.sink);
    number(w, "additive", s->vector != NO_PACKED);
    number(w, "has_relative", s->relative != NO_PACKED);
    number(w, "has_slopes", s->slopes != NO_PACKED);
    number(w, "has_sink", s->sink != NO_PACKED);
    number(w, "has_softcap", s->softcap > 0);
    number(w, "origin", s->a.offset);
    number(w, "relative_width", s->relative != NO_PACKED ? plan->program->packed[s->relative].shape.dims[1] : 0);
    number(w, "exported", s->first_export >= 0);
    /* weights are powers of two: a plain scale moves into the exponent's factor */
    const double log2_e = 1.4426950408889634;
    bool scale_later = s->relative == NO_PACKED && s->slopes == NO_PACKED && s->softcap == 0 && s->a.scale > 0;
    number(w, "scale_later", scale_later);
    double unit = scale_later ? s->a.scale * log2_e : log2_e;
    real(w, "unit", unit);
    real(w, "inverse_unit", fmin(1 / unit, FLT_MAX));
    real(w, "log2_e", log2_e);
    real(w, "scale", s->a.scale);
    real(w, "cap", s->softcap);
    real(w, "inverse_cap", s->softcap > 0 ? 1 / s->softcap : 0);
    RowsTile tile = rows_tile(w->e->isa, s);
    number(w, "R_MOST", tile.rows);
    number(w, "P_MOST", tile.panels);
    number(w, "C_MOST", tile.columns);
    number(w, "HELD", scores_held(w->e->plan, w->e->isa, s));
}

/* The functions for rows of queries: forward and decode, and attentions alike, share them. `across`: heads of one row,
 * or 0; `together`: heads of all rows, or 1. */
static const char *attention_rows(TargetEmitter *e, const Step *s, int64_t across, int64_t together) {
    const Isa *of_keys = e->written_out ? isa_for(e->isa, s->key_bound) : e->isa;
    Wanted w = want_with(e, "attention_rows.c.tmpl", of_keys, isa_for(e->isa, s->value_dim));
    const Cache *keys = cache_of(e->plan, s->keys);
    bool own_keys = keys ? keys->of_source : s->rows != s->key_rows;
    attention_shape(&w, s);
    number(&w, "D_UNROLL", e->written_out ? WHOLE : 1);
    number(&w, "N", e->written_out ? s->key_bound : 0);
    number(&w, "KEY_BLOCK", s->key_block);
    number(&w, "MULTI", s->key_bound > s->key_block);
    number(&w, "clamped", own_keys && (s->a.causal || s->a.has_prefix || s->a.window));
    number(&w, "ring", keys && keys->ring ? keys->slots : 0);
    number(&w, "ACROSS", across);
    number(&w, "TOGETHER", together);
    number(&w, "GROUP", s->a.heads / s->a.kv_heads);
    number(&w, "slots", across && keys ? keys->slots : 0);
    number(&w, "stream", across && weights_stream(e));
    return kernel(&w, across ? "attention_across" : "attention_of");
}

/* The address of a cache behind the header of a state. */
static const char *cache_at(TargetEmitter *e, int cache, Operand rows) {
    return cache == NO_CACHE ? address(e, rows)
                             : arena_printf(e->arena, "%lld", (long long)e->plan->program->caches[cache].offset);
}

static const char *call_attention(TargetEmitter *e, const Step *s) {
    const Plan *plan = e->plan;
    bool full = e->written_out, held = full && rows_written_out(plan, e->isa, s);
    const Isa *isa = held ? isa_for(e->isa, s->key_bound) : e->isa;
    Wanted w = want_with(e, held ? "attention_held.c.tmpl" : full ? "attention_full.c.tmpl" : "attention.c.tmpl", isa,
                         isa);
    if (full) number(&w, "N", s->rows == ROWS_SOURCE ? plan->source_seq.n : plan->seq.n);
    if (full) number(&w, "M", s->key_bound);
    int64_t together = held ? heads_together(plan, e->isa, s) : 1;
    number(&w, "TOGETHER", together);
    if (!full || held) word(&w, "rows_name", attention_rows(e, s, 0, together));
    int64_t across = full ? 0 : heads_across(plan, e->isa, s);
    number(&w, "ACROSS", across);
    number(&w, "GROUP", s->a.heads / s->a.kv_heads);
    if (across) word(&w, "heads_name", attention_rows(e, s, across, 1));
    Length length = s->rows == ROWS_SOURCE ? plan->source_seq : plan->seq;
    number(&w, "exact", length.exact && !plan->cached ? length.n : 0);
    number(&w, "HEADS", s->a.heads);
    number(&w, "KV_HEADS", s->a.kv_heads);
    number(&w, "KEYS_BOUND", round_up(s->key_bound, 16));
    number(&w, "KEYS_ROOM", round_up(s->key_bound, 16) * s->a.head_dim);
    number(&w, "scratch", plan->scratch_floats);
    attention_shape(&w, s);
    attention_sources(&w, s);
    const char *map = s->first_export >= 0 ? plan->graph->outputs[s->first_export].name : "";
    word(&w, "map_name", map);
    number(&w, "map_count", map_count(plan->graph, map));
    w.comment = arena_printf(e->arena, "attention of %lld heads of %lld over the keys of the same sequence",
                           (long long)s->a.heads, (long long)s->a.head_dim);
    const char *name = kernel(&w, "attention"), *maps = NULL;
    if (s->first_export >= 0) {
        maps = arena_printf(e->arena, "%s_%s_maps", e->stem, s->name);
        emit_map_table(e, s, maps);
    }
    Text call = text_new(e->arena);
    text_printf(&call, "%s(run, %s, %s, %s, %s", name, address(e, s->in), cache_at(e, s->keys, s->other),
                cache_at(e, s->values, s->third), address(e, s->out));
    if (s->relative != NO_PACKED) text_printf(&call, ", %s", weight_at(e, s->relative));
    if (s->slopes != NO_PACKED) text_printf(&call, ", %s", weight_at(e, s->slopes));
    if (s->sink != NO_PACKED) text_printf(&call, ", %s", weight_at(e, s->sink));
    if (s->vector != NO_PACKED) text_printf(&call, ", %s", weight_at(e, s->vector));
    if (maps) text_printf(&call, ", %s", maps);
    text_printf(&call, "%s", share(e));
    return call.data;
}

static const char *call_store(TargetEmitter *e, const Step *s) {
    Wanted w = want(e, "store.c.tmpl");
    const Cache *cache = &e->plan->program->caches[s->cache];
    number(&w, "HEADS", cache->heads);
    number(&w, "D", cache->width);
    number(&w, "slots", cache->slots);
    number(&w, "ring", cache->ring);
    number(&w, "in_panels", cache->panels);
    number(&w, "of_source", cache->of_source);
    number(&w, "x_stride", stride_of(e, s->in));
    sequence_rows(&w, s->rows);
    w.comment = arena_printf(e->arena, "rows of %lld heads of %lld to their slots%s", (long long)cache->heads,
                           (long long)cache->width, cache->panels ? " in panels" : "");
    return arena_printf(e->arena, "%s(run, %s, %lld%s", kernel(&w, "store"), address(e, s->in),
                        (long long)cache->offset, share(e));
}

/* ---------------------------------------------------------------- all of it */

static const char *call_step(TargetEmitter *e, const Step *s) {
    switch (s->kind) {
    case STEP_EMBED: case STEP_PREPEND: return call_embed(e, s);
    case STEP_PATCHES: return call_patches(e, s);
    case STEP_GEMM: return call_gemm(e, s);
    case STEP_NORM: return call_norm(e, s);
    case STEP_ROPE: return call_rope(e, s);
    case STEP_STORE: return call_store(e, s);
    case STEP_ATTENTION: return call_attention(e, s);
    case STEP_MAP: case STEP_COPY: return call_map(e, s);
    case STEP_POOL: return call_pool(e, s);
    case STEP_COUNT: break;
    }
    bug("a step without a kind");
}

/* What a chunk does for a step: what is written out has no threads to share it. */
static const char *step_call(TargetEmitter *e, const Step *s) {
    if (e->written_out) return arena_printf(e->arena, "%s_step_%s(run, 0);", e->stem, s->name);
    const char *of = rows_text(e, s->rows), *pairs = pairs_of(e->plan, s);
    if (s->kind == STEP_ATTENTION) of = arena_printf(e->arena, "run->%.*s_scores", (int)strcspn(pairs, "_"), pairs);
    return arena_printf(e->arena, "%s_run_step(run, %s_step_%s, %s * UINT64_C(%lld));", e->model, e->stem, s->name, of,
                        (long long)step_work(s));
}

/* A function a step, and `chunk`, which runs them on a chunk. `single`: the same for one sequence and one thread, or
 * NULL. */
static void emit_plan(TargetEmitter *e, const char *attribute, const char *chunk, const char *single) {
    const Plan *plan = e->plan;
    for (int i = 0; i < plan->n_steps; i++) {
        const Step *s = &plan->steps[i];
        arena_clear(e->arena);
        const char *call = call_step(e, s);
        writer_line(e->writer, "/* %s: %s */", s->name, s->shape);
        writer_line(e->writer, "static %s", attribute);
        writer_line(e->writer, "void %s_step_%s(void *with, int thread) {", e->stem, s->name);
        writer_line(e->writer, "%s_run *run = (%s_run *)with;", e->model, e->model);
        if (e->written_out) writer_line(e->writer, "(void)thread;");
        writer_line(e->writer, "%s", call);
        writer_line(e->writer, "}");
        writer_blank(e->writer);
        writer_part(e->writer, e->isa->name, "steps", plan->graph->name);
    }
    /* not inlined: a caller with more instructions than the target would contract products and sums */
    writer_line(e->writer, "static __attribute__((noinline)) %s", attribute);
    writer_line(e->writer, "void %s(%s_run *run) {", chunk, e->model);
    if (single) {
        writer_line(e->writer, "if (run->sequences == 1 && run->threads <= 1) {");
        writer_line(e->writer, "%s(run);", single);
        writer_line(e->writer, "return;");
        writer_line(e->writer, "}");
    }
    for (int i = 0; i < plan->n_steps; i++) {
        const Step *s = &plan->steps[i];
        const char *wanted =
            is_optional(e, s) ? arena_printf(e->arena, "if (run->out_%s) ", buffer_of(e, s->out)->name) : "";
        writer_line(e->writer, "%s%s", wanted, step_call(e, s));
    }
    writer_line(e->writer, "}");
    writer_blank(e->writer);
    writer_part(e->writer, e->isa->name, "steps", plan->graph->name);
}

/* `unroll auto`: where it pays, one sequence has code of its own. Returns the function that runs it, or NULL. */
static const char *emit_single(TargetEmitter *e, const char *attribute) {
    if (e->loops || e->written_out || !unroll(e->plan, e->isa).pays) return NULL;
    const char *stem = e->stem;
    e->stem = arena_printf(e->kept, "%s_single", stem);
    const char *chunk = arena_printf(e->kept, "%s_chunk", e->stem);
    e->written_out = true;
    emit_plan(e, attribute, chunk, NULL);
    e->written_out = false;
    e->stem = stem;
    return chunk;
}

void emit_target(TargetEmitter *e, const Program *program) {
    e->arena = arena_new();
    emit_helpers(e, e->isa);
    const char *attribute = isa_with_prefix(e->kept, e->isa->attribute, e->model);
    const Plan *const plans[] = {program->forward, program->encode, program->decode};
    for (int i = 0; i < 3; i++) {
        if (!plans[i]) continue;
        e->plan = plans[i];
        e->stem = i == 0 ? e->prefix : arena_printf(e->kept, "%s_%s", e->prefix, plans[i]->graph->name);
        e->written_out = program->unroll_full;
        const char *single = emit_single(e, attribute);
        emit_plan(e, attribute, arena_printf(e->kept, "%s_%s_chunk", e->prefix, plans[i]->graph->name), single);
    }
    arena_free(e->arena);
}
