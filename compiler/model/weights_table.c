/* weights_table.c: the canonical tensors of a model, in the order in which the code reads them. */
#include "../attnc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Builder {
    Arena *arena;
    const Model *model;
    WeightTable table;
    size_t room;
    int64_t bytes;
} Builder;

/* How random weights are drawn: matrices keep the scale of what they multiply, gains stand around their
 * neutral value, biases are small. */
static const double GAIN_DEVIATION = 0.2, BIAS_DEVIATION = 0.1;

#define MOST_BYTES (INT64_C(1) << 52)

static void add(Builder *b, Place place, const char *name, Shape shape, double mean, double deviation) {
    int64_t elements, bytes;
    bool fits = shape_elements(shape, &elements) && mul_fits(elements, 8, &bytes) && add_fits(b->bytes, bytes,
                               &b->bytes);
    if (!fits || b->bytes > MOST_BYTES) {
        Diagnostics diagnostics = diagnostics_new(b->arena, stderr);
        diagnose(&diagnostics, place, "the tensor `%s` is too large, alone or with those before it", name);
        fail("%s: 1 error", b->model->source->path);
    }
    if (b->table.count == b->room) {
        b->room = b->room ? b->room * 2 : 64;
        WeightSpec *grown = arena_array(b->arena, b->room, sizeof *grown);
        if (b->table.count) memcpy(grown, b->table.specs, b->table.count * sizeof *grown);
        b->table.specs = grown;
    }
    b->table.specs[b->table.count++] =
        (WeightSpec){.name = name, .shape = shape, .mean = mean, .deviation = deviation, .place = place};
}

static Shape vector(int64_t n) { return (Shape){1, {n}}; }
static Shape matrix(int64_t out, int64_t in) { return (Shape){2, {out, in}}; }

static void add_linear(Builder *b, Place place, const char *stem, int64_t out, int64_t in, bool bias, double factor) {
    add(b, place, arena_printf(b->arena, "%s.weight", stem), matrix(out, in), 0, factor / sqrt((double)in));
    if (bias) add(b, place, arena_printf(b->arena, "%s.bias", stem), vector(out), 0, BIAS_DEVIATION);
}

static void add_norm(Builder *b, Place place, const char *stem, Norm norm, Shape shape) {
    if (norm.kind == NORM_NONE) return;
    add(b, place, arena_printf(b->arena, "%s.weight", stem), shape, norm.plus_one ? 0 : 1, GAIN_DEVIATION);
    if (norm.bias) add(b, place, arena_printf(b->arena, "%s.bias", stem), shape, 0, BIAS_DEVIATION);
}

char *layer_weight_name(Arena *arena, const Stack *stack, const Layer *layer, const Sublayer *sublayer,
                        const char *what) {
    return arena_printf(arena, "%s.layers.%lld.%s.%s", stack->name, (long long)layer->weights_of, sublayer->name, what);
}

const char *token_table_name(Arena *arena, const Model *model, const Stack *stack) {
    if (model->embedding_tied && model->encoder && model->decoder) return "embedding.tokens.weight";
    return arena_printf(arena, "%s.embedding.tokens.weight", stack->name);
}

static bool has_weight(const Builder *b, const char *name) {
    for (size_t i = 0; i < b->table.count; i++)
        if (strcmp(b->table.specs[i].name, name) == 0) return true;
    return false;
}

static void add_qk_norm(Builder *b, Place place, const char *stem, const Attention *a, int64_t heads) {
    Shape shape = a->qk_norm_all_heads         ? vector(heads * a->head_dim)
                  : a->qk_norm_weight_per_head ? matrix(heads, a->head_dim)
                                               : vector(a->head_dim);
    add_norm(b, place, stem, a->qk_norm, shape);
}

/* `stem` is the sublayer's name with its final dot. */
static void add_attention(Builder *b, const char *stem, const Sublayer *s) {
    const Attention *a = &s->attention;
    Arena *arena = b->arena;
    double fan = sqrt((double)a->head_dim), neutral = a->scale != 0 ? fabs(1 / (a->scale * fan)) : 1;
    if (a->qk_norm.kind || a->score > SCORE_DOT) neutral = 1;
    if (a->projected) {
        add_linear(b, s->place, arena_printf(arena, "%squery", stem), a->heads * a->head_dim, a->query_width, a->bias_q,
                   neutral);
        add_linear(b, s->place, arena_printf(arena, "%skey", stem), a->kv_heads * a->head_dim, a->key_width, a->bias_k,
                   1);
        add_linear(b, s->place, arena_printf(arena, "%svalue", stem), a->kv_heads * a->value_dim, a->value_width,
                   a->bias_v, 1);
    }
    add_qk_norm(b, s->place, arena_printf(arena, "%squery_norm", stem), a, a->heads);
    add_qk_norm(b, s->place, arena_printf(arena, "%skey_norm", stem), a, a->kv_heads);
    if (a->position.kind == POSITION_RELATIVE && a->position.per_layer)
        add(b, s->place, arena_printf(arena, "%srelative.weight", stem), matrix(a->position.buckets, a->heads), 0, 1);
    if (a->sink_learned) add(b, s->place, arena_printf(arena, "%ssink.weight", stem), vector(a->heads), 0, 1);
    if (a->score == SCORE_GENERAL)
        add(b, s->place, arena_printf(arena, "%sscore.weight", stem), matrix(a->query_width, a->key_width), 0,
            1 / sqrt((double)a->query_width * (double)a->key_width));
    if (a->score == SCORE_ADDITIVE) {
        add_linear(b, s->place, arena_printf(arena, "%sscore.query", stem), a->d_score, a->query_width, false, 1);
        add_linear(b, s->place, arena_printf(arena, "%sscore.key", stem), a->d_score, a->key_width, false, 1);
        add(b, s->place, arena_printf(arena, "%sscore.vector.weight", stem), vector(a->d_score), 0,
            1 / sqrt((double)a->d_score));
    }
    if (a->has_output)
        add_linear(b, s->place, arena_printf(arena, "%soutput", stem), a->output_width, a->heads * a->value_dim,
                   a->bias_o, 1);
}

static void add_sublayer(Builder *b, const Stack *stack, const Layer *layer, int index) {
    const Sublayer *s = &layer->sublayers[index];
    const char *stem = layer_weight_name(b->arena, stack, layer, s, "");
    int64_t d = b->model->d_model, out = s->kind == SUBLAYER_ATTENTION ? s->attention.output_width : d;
    if (!(layer->shared_norm && index > 0))
        add_norm(b, s->place, arena_printf(b->arena, "%snorm_in", stem), s->norm_in, vector(d));
    if (s->kind == SUBLAYER_ATTENTION) {
        add_attention(b, stem, s);
    } else {
        const Ffn *f = &s->ffn;
        if (f->gated) add_linear(b, s->place, arena_printf(b->arena, "%sgate", stem), f->d_ff, d, f->bias_gate, 1);
        add_linear(b, s->place, arena_printf(b->arena, "%sup", stem), f->d_ff, d, f->bias_up, 1);
        add_linear(b, s->place, arena_printf(b->arena, "%sdown", stem), d, f->d_ff, f->bias_down, 1);
    }
    add_norm(b, s->place, arena_printf(b->arena, "%snorm_out", stem), s->norm_out, vector(out));
}

static void add_embedding(Builder *b, const Stack *stack) {
    Arena *arena = b->arena;
    int64_t e = stack->embedding_width;
    const char *n = stack->name;
    Place p = stack->place;
    if (stack->input == INPUT_TOKENS) {
        const char *tokens = token_table_name(arena, b->model, stack);
        /* rows that a scale multiplies are drawn so that they come out of it at unit size */
        double deviation = stack->embedding_scale != 0 ? fabs(1 / stack->embedding_scale) : 1;
        if (!has_weight(b, tokens)) add(b, p, tokens, matrix(stack->vocab, e), 0, deviation);
    }
    if (stack->input == INPUT_PATCHES) {
        add_linear(b, p, arena_printf(arena, "%s.embedding.patches", n), b->model->d_model,
                   3 * stack->patch * stack->patch, true, 1);
        if (stack->class_token) add(b, p, arena_printf(arena, "%s.embedding.class_token", n), vector(e), 0, 1);
        if (stack->distillation_token)
            add(b, p, arena_printf(arena, "%s.embedding.distillation_token", n), vector(e), 0, 1);
    }
    if (stack->position.kind == POSITION_LEARNED) {
        add(b, p, arena_printf(arena, "%s.embedding.positions.weight", n),
            matrix(stack->seq.n + stack->position.offset, e), 0, 0.5);
        b->table.specs[b->table.count - 1].longer = true;
    }
    if (stack->segments)
        add(b, p, arena_printf(arena, "%s.embedding.segments.weight", n), matrix(stack->segments, e), 0, 0.5);
    add_norm(b, p, arena_printf(arena, "%s.embedding.norm", n), stack->embedding_norm, vector(e));
    if (stack->embedding_projected)
        add_linear(b, p, arena_printf(arena, "%s.embedding.projection", n), b->model->d_model, e,
                   stack->embedding_projection_bias, 1);
    if (stack->relative.kind == POSITION_RELATIVE)
        add(b, p, arena_printf(arena, "%s.relative.weight", n), matrix(stack->relative.buckets, stack->relative_heads),
            0, 1);
}

static void add_stack(Builder *b, const Stack *stack) {
    add_embedding(b, stack);
    for (int64_t l = 0; l < stack->n_layers; l++)
        if (stack->layers[l].weights_of == l)
            for (int s = 0; s < stack->layers[l].count; s++) add_sublayer(b, stack, &stack->layers[l], s);
    add_norm(b, stack->place, arena_printf(b->arena, "%s.final_norm", stack->name), stack->final_norm,
             vector(stack->hidden_width));
}

static void add_head(Builder *b) {
    const Model *model = b->model;
    const Head *head = &model->head;
    const Stack *stack = model->decoder ? model->decoder : model->encoder;
    if (!stack) return; /* attention alone has no head */
    if (head->logits && !head->tied)
        add(b, head->place, "head.weight", matrix(stack->vocab, stack->hidden_width), 0,
            1 / sqrt((double)stack->hidden_width));
    if (head->logits && head->bias) add(b, head->place, "head.bias", vector(stack->vocab), 0, BIAS_DEVIATION);
    if (head->pooler) add_linear(b, head->place, "pooler", stack->hidden_width, stack->hidden_width, true, 1);
    if (head->classifier) add_linear(b, head->place, "classifier", head->classifier, stack->hidden_width,
        head->classifier_bias, 1);
}

static int compare_specs(const void *left, const void *right) {
    const WeightSpec *a = *(const WeightSpec *const *)left, *b = *(const WeightSpec *const *)right;
    int order = strcmp(a->name, b->name);
    return order ? order : (a > b) - (a < b);
}

WeightTable weights_table(Arena *arena, const Model *model) {
    Builder b = {.arena = arena, .model = model};
    if (model->encoder) add_stack(&b, model->encoder);
    if (model->decoder) add_stack(&b, model->decoder);
    if (model->alone) add_attention(&b, "attention.", model->alone);
    if (!model->alone) add_head(&b);
    size_t count = b.table.count;
    b.table.by_name = arena_array(arena, count, sizeof *b.table.by_name);
    for (size_t i = 0; i < count; i++) b.table.by_name[i] = &b.table.specs[i];
    if (count) qsort(b.table.by_name, count, sizeof *b.table.by_name, compare_specs);
    return b.table;
}

const WeightSpec *weight_spec_find(const WeightTable *table, const char *name) {
    if (!table->by_name) {
        for (size_t i = 0; i < table->count; i++)
            if (strcmp(table->specs[i].name, name) == 0) return &table->specs[i];
        return NULL;
    }
    size_t low = 0;
    for (size_t rest = table->count; rest; rest /= 2) { /* the first that is not before it */
        size_t middle = low + rest / 2;
        if (strcmp(table->by_name[middle]->name, name) >= 0) continue;
        low = middle + 1;
        rest--;
    }
    return low < table->count && strcmp(table->by_name[low]->name, name) == 0 ? table->by_name[low] : NULL;
}
