/* step_comment.c: the comment in front of a step's function, which says what the step computes. */
#include "names.h"

#include <string.h>

/* The rows of a matrix, as its first dimension. */
static const char *rows_word(RowsKind rows) {
    static const char *const words[] = {[ROWS_CHUNK] = "rows",
                                        [ROWS_SOURCE] = "source rows",
                                        [ROWS_SEQUENCES] = "sequences",
                                        [ROWS_FIXED] = "patches"};
    return words[rows < ROWS_FIXED ? rows : ROWS_FIXED];
}

/* ---------------------------------------------------------------- which part of the model */

static bool begins_with(const char *text, const char *word) { return strncmp(text, word, strlen(word)) == 0; }

static void add_words(Text *text, const char *part) {
    for (; *part; part++) text_add(text, *part == '_' ? " " : part, 1);
}

/* Writes "cross attention 2, " of the part cross_attention2_output, and returns what is behind it: "output". */
static const char *add_sublayer(Text *text, const Step *s) {
    static const struct { const char *begins, *words; } sublayers[] = {
        {"attention", "attention"}, {"cross_attention", "cross attention"}, {"ffn", "ffn"}};
    const char *part = s->site.part;
    if (begins_with(part, "probe_")) {
        text_printf(text, "probe ");
        part += strlen("probe_");
    }
    for (size_t i = 0; i < sizeof sublayers / sizeof *sublayers; i++) {
        if (!begins_with(part, sublayers[i].begins)) continue;
        const char *number = part + strlen(sublayers[i].begins), *end = number + strspn(number, "0123456789");
        if (*end != '_') continue;
        bool is_self = i == 0 && s->site.layer >= 0;
        text_printf(text, "%s%s%s%.*s, ", is_self ? "self " : "", sublayers[i].words, end > number ? " " : "",
                    (int)(end - number), number);
        return end + 1;
    }
    return part;
}

/* "query, key and value" of query_key_value */
static void add_list(Text *text, const char *words) {
    for (const char *word = words; word;) {
        const char *behind = strchr(word, '_');
        size_t size = behind ? (size_t)(behind - word) : strlen(word);
        text_printf(text, "%s%.*s", word == words ? "" : behind ? ", " : " and ", (int)size, word);
        word = behind ? behind + 1 : NULL;
    }
}

/* "output rmsnorm" of norm_out, "query layernorm" of query_norm */
static void add_norm(Text *text, const Step *s, const char *part) {
    const char *kind = s->norm.centered ? "layernorm" : "rmsnorm", *end = strstr(part, "_norm");
    if (strcmp(part, "norm_in") == 0) text_printf(text, "input ");
    else if (strcmp(part, "norm_out") == 0) text_printf(text, "output ");
    else if (end) text_printf(text, "%.*s ", (int)(end - part), part);
    text_printf(text, "%s", kind);
}

/* "query, key and value projection", of the part that add_sublayer left */
static void add_part(Text *text, const Step *s, const char *part) {
    switch (s->kind) {
    case STEP_NORM: add_norm(text, s, part); return;
    case STEP_GEMM:
        if (s->gemm.parts > 1) add_list(text, part);
        else add_words(text, part);
        if (part != s->site.part) text_printf(text, " projection");
        return;
    case STEP_ROPE: {
        const bool second = begins_with(part, "second_"); /* of `differential` */
        if (second) part += strlen("second_");
        text_printf(text, "rotary embedding of the %s%.*s", second ? "second " : "", (int)strcspn(part, "_"), part);
        return;
    }
    case STEP_ATTENTION: text->size -= strlen(", "); return;
    case STEP_COPY: text_printf(text, "output %s", begins_with(part, "copy_") ? part + strlen("copy_") : part); return;
    case STEP_PATCHES: text_printf(text, "pixels of each patch"); return;
    case STEP_WINDOWS: text_printf(text, "rows of each convolution's window"); return;
    case STEP_PREPEND: text_printf(text, "embedding"); return;
    case STEP_TALLY:
    case STEP_EMBED: case STEP_STORE: case STEP_MAP: case STEP_QUANTIZE: case STEP_JOIN: case STEP_ROUND:
    case STEP_LEARNED: case STEP_EXCHANGE: case STEP_ASSEMBLE:
    case STEP_POOL: case STEP_CHOOSE: case STEP_SORT: case STEP_GATHER: case STEP_COMBINE: case STEP_COUNT:
        add_words(text, part);
        return;
    }
}

/* ---------------------------------------------------------------- what it computes */

static void add_gemm(Text *text, const Step *s) {
    const GemmStep *g = &s->gemm;
    text_printf(text, "[%s][%lld] x [%lld][%lld]", rows_word(s->rows), (long long)g->k, (long long)g->k,
                (long long)s->n);
    if (g->heads) text_printf(text, " of each of %lld heads", (long long)g->heads);
    else if (g->experts) text_printf(text, " of their experts");
    if (g->bias != NO_PACKED) text_printf(text, " + bias");
    if (g->scale != 1) text_printf(text, ", scaled by %g", g->scale);
    if (g->cap != 0) text_printf(text, ", capped at %g", g->cap);
    if (g->has_activation) text_printf(text, ", %s", activation_name(g->activation));
    if (gemm_has_factor(g)) text_printf(text, ", times the other product");
    if (g->residual_scale != 1) text_printf(text, ", scaled by %g", g->residual_scale);
    if (gemm_has_residual(g)) text_printf(text, ", + residual");
    if (g->rounds) text_printf(text, ", to BF16");
}

static void add_attention(Text *text, const Step *s) {
    const AttentionStep *a = &s->attention;
    text_printf(text, "softmax(%s", a->vector != NO_PACKED ? "vector tanh(query + key)" : "query x key");
    if (a->scale != 1) text_printf(text, " * %g", a->scale);
    if (a->by_query != NO_PACKED) text_printf(text, " + products of queries and distances");
    if (a->by_key != NO_PACKED) text_printf(text, " + products of keys and distances");
    text_printf(text, ") x value, %lld heads of %lld", (long long)a->heads, (long long)a->head_dim);
    if (a->kv_heads != a->heads) text_printf(text, " over %lld of keys", (long long)a->kv_heads);
    for (int i = 0; i < a->n_rescores; i++) {
        text_printf(text, i ? ", then " : ", a score s becomes ");
        pair_print(text, a->rescores[i].rule);
    }
    if (a->visible) {
        text_printf(text, ", where ");
        pair_print(text, a->visible);
    }
}

static void add_embed(Text *text, const Plan *plan, const Step *s) {
    const EmbedStep *e = &s->embed;
    text_printf(text, "[%s][%lld]", rows_word(s->rows), (long long)s->n);
    if (e->table != NO_PACKED)
        text_printf(text, " of a table [%lld][%lld]", (long long)plan->program->packed[e->table].shape.dims[0],
                    (long long)s->n);
    if (s->kind == STEP_PREPEND) text_printf(text, " behind the learned ones");
    if (e->scale != 1) text_printf(text, ", scaled by %g", e->scale);
    if (e->segments != NO_PACKED) text_printf(text, " + segments");
    if (e->positions != NO_PACKED) text_printf(text, " + positions");
}

static void add_chosen(Text *text, const Experts *e, const char *rows) {
    text_printf(text, "[%s][%lld] of %lld experts, and their gates", rows, (long long)e->top, (long long)e->count);
}

static void add_combined(Text *text, const Step *s) {
    text_printf(text, "the sum of %lld parts times their gates", (long long)s->combine.experts->top);
    if (s->combine.residual_scale != 1) text_printf(text, ", scaled by %g", s->combine.residual_scale);
    if (s->combine.residual.buffer != NO_BUFFER) text_printf(text, ", + residual");
}

static void add_computed(Text *text, const Plan *plan, const Step *s) {
    const char *rows = rows_word(s->rows);
    switch (s->kind) {
    case STEP_GEMM: add_gemm(text, s); return;
    case STEP_ATTENTION: add_attention(text, s); return;
    case STEP_EMBED: case STEP_PREPEND: add_embed(text, plan, s); return;
    case STEP_STORE: {
        bool of_source = plan->program->caches[s->store.cache].slot.space == SPACE_SOURCE;
        text_printf(text, "[%s][%lld] to the %s", rows, (long long)s->n, of_source ? "source" : "state");
        return;
    }
    case STEP_ROPE:
        text_printf(text, "[%s][%lld], %lld heads of %lld", rows, (long long)s->n, (long long)s->rope.heads,
                    (long long)s->rope.head_dim);
        return;
    case STEP_MAP: text_printf(text, "[%s][%lld], %s", rows, (long long)s->n, op_name(s->map.op)); return;
    case STEP_POOL:
        text_printf(text, "[rows][%lld] to [sequences][%lld], %s", (long long)s->n, (long long)s->n,
                    pool_name(s->pool.pool));
        if (s->pool.ids != NO_INPUT) text_printf(text, " %lld", (long long)s->pool.token);
        if (s->pool.unit_length) text_printf(text, ", divided by their length");
        return;
    case STEP_TALLY:
        text_printf(text, "how many tokens other than %lld there are up to each row", (long long)s->tally.token);
        return;
    case STEP_QUANTIZE: text_printf(text, "[%s][%lld] as codes of 0 to 255", rows, (long long)s->n); return;
    case STEP_ROUND:
        text_printf(text, "[%s][%lld] to %s", rows, (long long)s->n, dtype_name(s->round.dtype));
        return;
    case STEP_JOIN:
        text_printf(text, "[%s][%lld], %lld heads of %lld and %lld", rows, (long long)s->n, (long long)s->join.heads,
                    (long long)s->join.first, (long long)s->join.second);
        return;
    case STEP_CHOOSE: add_chosen(text, s->choose.experts, rows); return;
    case STEP_SORT:
        text_printf(text, "the order of the %s by their experts", rows);
        return;
    case STEP_GATHER: text_printf(text, "[%s][%lld] in that order", rows, (long long)s->n); return;
    case STEP_COMBINE: add_combined(text, s); return;
    case STEP_EXCHANGE: case STEP_ASSEMBLE:
        text_printf(text, "[%s][%lld] of %d ranks", rows, (long long)s->n, s->exchange.sharding->ranks);
        return;
    case STEP_NORM: case STEP_PATCHES: case STEP_WINDOWS: case STEP_LEARNED: case STEP_COPY: case STEP_COUNT: break;
    }
    text_printf(text, "[%s][%lld]", rows, (long long)s->n);
}

const char *step_comment(Arena *arena, const Plan *plan, const Step *s) {
    const Model *m = plan->program->module->model;
    Text text = text_new(arena);
    bool has_layer = s->site.layer >= 0;
    if (m->encoder && m->decoder && s->site.stack) text_printf(&text, "%s%s", s->site.stack, has_layer ? " " : ", ");
    if (has_layer) text_printf(&text, "layer %d, ", s->site.layer);
    add_part(&text, s, add_sublayer(&text, s));
    text_printf(&text, ": ");
    add_computed(&text, plan, s);
    return text.data;
}
