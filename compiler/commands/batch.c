/* batch.c: from .npy files to sequences, and from sequences to .npy files. */
#include "batch.h"

#include <math.h>
#include <string.h>

const char *split_assignment(Arena *arena, const char *usage, const char *option, const char *text, char **name) {
    const char *equal = strchr(text, '=');
    if (!equal || equal == text || !equal[1]) usage_error(usage, "`%s` wants NAME=FILE, found `%s`", option, text);
    *name = arena_copy(arena, text, (size_t)(equal - text));
    return equal + 1;
}

int64_t sequence_extent(const Sequence *s, Dim dim) { return dim.symbol ? s->symbols[dim.symbol - 1] : dim.n; }

int64_t sequence_items(const Sequence *s, const Tensor *t) {
    int64_t count = 1;
    for (int d = 0; d < t->rank; d++) count *= sequence_extent(s, t->dims[d]);
    return count;
}

/* ---------------------------------------------------------------- reading */

typedef struct Given {
    const GraphInput *input;
    const Tensor *tensor;
    NpyArray array;
    const uint8_t *converted; /* the whole array in the tensor's dtype */
} Given;

typedef struct Reader {
    Arena *arena;
    const Graph *graph;
    Given given[MAX_GRAPH_INPUTS];
    int n_given;
    bool has_mask;
    NpyArray mask;
    Batch *batch;
} Reader;

static _Noreturn void unknown_input(Reader *r, const char *name) {
    const char *names[MAX_GRAPH_INPUTS + 2];
    int n = 0;
    Text all = text_new(r->arena);
    for (int i = 0; i < r->graph->n_inputs; i++) names[n++] = r->graph->inputs[i].name;
    names[n++] = "attention_mask";
    names[n] = NULL;
    for (int i = 0; i < n; i++) text_printf(&all, "%s%s", i ? ", " : "", names[i]);
    fail("this model has no input `%s`; it has: %s", name, all.data);
}

/* The greatest id that an input may hold: of tokens and segments the last row of their table. */
static int64_t most_id(const Graph *graph, const GraphInput *input) {
    int64_t most = input->most;
    for (int o = 0; o < graph->n_ops; o++) {
        const Op *op = &graph->ops[o];
        if (op->kind == OP_embed && op->inputs[0] == input->tensor) most = graph->tensors[op->inputs[1]].dims[0].n - 1;
    }
    return most;
}

/* Ids of a type that cannot hold each of them have wrapped before they came here; truth values are no ids. */
static void refuse_narrow(const Reader *r, const Given *g) {
    Dtype dtype = g->array.dtype;
    int64_t most = most_id(r->graph, g->input);
    int64_t holds = dtype == DTYPE_I8 ? INT8_MAX : dtype == DTYPE_U8 ? UINT8_MAX : dtype == DTYPE_I16 ? INT16_MAX : most;
    if (dtype == DTYPE_BOOL)
        fail("%s: input %s wants integers, found BOOL; save array.astype('int64')", g->array.path, g->input->name);
    if (holds < most)
        fail("%s: input %s has numbers up to %lld, which %s does not hold; save them as int32 or int64", g->array.path,
             g->input->name, (long long)most, dtype_name(dtype));
}

/* A row's number as f32: a double is rounded, and refused where that makes it infinite. */
static float narrowed(const Given *g, int64_t index) {
    double wide = npy_real(&g->array, index);
    float value = (float)wide;
    if (isfinite(wide) && !isfinite(value))
        fail("%s: input %s holds %g, which is beyond float32", g->array.path, g->input->name, wide);
    return value;
}

/* The array's numbers as the graph wants them: int64 ids, f32 rows, u8 masks. */
static void convert(Reader *r, Given *g) {
    const NpyArray *a = &g->array;
    int64_t count = 0;
    shape_elements(a->shape, &count);
    bool integers = !dtype_is_float(a->dtype);
    if (g->tensor->dtype == DTYPE_F32) {
        if (integers)
            fail("%s: input %s wants floating-point numbers, found %s; save array.astype('float32')", a->path,
                 g->input->name, dtype_name(a->dtype));
        float *out = arena_array(r->arena, (size_t)count, sizeof *out);
        for (int64_t i = 0; i < count; i++) out[i] = narrowed(g, i);
        g->converted = (const uint8_t *)out;
        return;
    }
    if (!integers)
        fail("%s: input %s wants integers, found %s; save array.astype('int64')", a->path, g->input->name,
             dtype_name(a->dtype));
    if (g->tensor->dtype == DTYPE_U8) {
        uint8_t *out = arena_array(r->arena, (size_t)count, 1);
        for (int64_t i = 0; i < count; i++) out[i] = npy_integer(a, i) != 0;
        g->converted = out;
        return;
    }
    refuse_narrow(r, g);
    int64_t *out = arena_array(r->arena, (size_t)count, sizeof *out);
    for (int64_t i = 0; i < count; i++) out[i] = npy_integer(a, i);
    g->converted = (const uint8_t *)out;
}

static void set_length(Reader *r, const Given *g, Dim dim, int64_t n) {
    if (!dim.symbol) {
        if (n != dim.n)
            fail("%s: input %s has %lld where the model wants %lld", g->array.path, g->input->name, (long long)n,
                 (long long)dim.n);
        return;
    }
    int64_t *padded = &r->batch->padded[dim.symbol - 1];
    if (n < 1 || n > dim.n)
        fail("%s: input %s has the length %lld; the spec allows 1 to %lld", g->array.path, g->input->name, (long long)n,
             (long long)dim.n);
    if (*padded && *padded != n)
        fail("%s: input %s has the length %lld, and another input %lld", g->array.path, g->input->name, (long long)n,
             (long long)*padded);
    *padded = n;
}

static void check_shape(Reader *r, Given *g, bool *batched, int64_t *count) {
    const Tensor *t = g->tensor;
    const Shape *s = &g->array.shape;
    int extra = s->rank - t->rank;
    if (extra != 0 && extra != 1)
        fail("%s: input %s has the shape %s; it wants %d dimensions, or one more for a batch", g->array.path,
             g->input->name, shape_text(r->arena, *s), t->rank);
    bool this_batched = extra == 1;
    if (*count >= 0 && *batched != this_batched)
        fail("%s: input %s %s a batch dimension, unlike the others", g->array.path, g->input->name,
             this_batched ? "has" : "lacks");
    int64_t n = this_batched ? s->dims[0] : 1;
    if (*count >= 0 && n != *count)
        fail("%s: input %s has %lld sequences, and another input %lld", g->array.path, g->input->name, (long long)n,
             (long long)*count);
    if (n < 1) fail("%s: input %s holds no sequence", g->array.path, g->input->name);
    *batched = this_batched;
    *count = n;
    for (int d = 0; d < t->rank; d++) set_length(r, g, t->dims[d], s->dims[d + extra]);
    convert(r, g);
}

static bool is_prefix(const GraphInput *input) { return strcmp(input->name, "prefix_length") == 0; }

/* A number a sequence, or one for all of them. */
static void read_prefix(Reader *r, Given *g, int64_t count) {
    const NpyArray *a = &g->array;
    int64_t items = 0, bound = g->input->most;
    shape_elements(a->shape, &items);
    if (a->shape.rank > 2 || (items != count && items != 1) || (a->shape.rank == 2 && a->shape.dims[1] != 1))
        fail("%s: input %s has the shape %s; it wants one number, or one for each of %lld sequences", a->path,
             g->input->name, shape_text(r->arena, a->shape), (long long)count);
    convert(r, g);
    int64_t *each = arena_array(r->arena, (size_t)count, sizeof *each);
    for (int64_t b = 0; b < count; b++) {
        each[b] = ((const int64_t *)(const void *)g->converted)[items == 1 ? 0 : b];
        if (each[b] < 0 || each[b] > bound)
            fail("%s: input %s holds %lld; it may be 0 to %lld", a->path, g->input->name, (long long)each[b],
                 (long long)bound);
    }
    g->converted = (const uint8_t *)each;
}

static void read_inputs(Reader *r, const char *usage, const ValueNode *inputs) {
    bool batched = false;
    int64_t count = -1;
    for (const ValueNode *node = inputs; node; node = node->next) {
        char *name;
        const char *path = split_assignment(r->arena, usage, "--in", node->text, &name);
        if (strcmp(name, "attention_mask") == 0) {
            r->mask = npy_read(r->arena, path);
            r->has_mask = true;
            continue;
        }
        Given *g = NULL;
        for (int i = 0; i < r->graph->n_inputs; i++)
            if (strcmp(r->graph->inputs[i].name, name) == 0) {
                for (int k = 0; k < r->n_given; k++)
                    if (r->given[k].input == &r->graph->inputs[i]) fail("input %s is given twice", name);
                g = &r->given[r->n_given++];
                g->input = &r->graph->inputs[i];
            }
        if (!g) unknown_input(r, name);
        g->tensor = &r->graph->tensors[g->input->tensor];
        g->array = npy_read(r->arena, path);
        if (!is_prefix(g->input)) check_shape(r, g, &batched, &count);
    }
    for (int i = 0; i < r->graph->n_inputs; i++) {
        bool found = r->graph->inputs[i].optional;
        for (int k = 0; k < r->n_given; k++) found |= r->given[k].input == &r->graph->inputs[i];
        if (!found) fail("input %s is missing: --in %s=FILE.npy", r->graph->inputs[i].name, r->graph->inputs[i].name);
    }
    if (count < 0) fail("this model needs an input");
    for (int k = 0; k < r->n_given; k++)
        if (is_prefix(r->given[k].input)) read_prefix(r, &r->given[k], count);
    r->batch->batched = batched;
    r->batch->count = count;
}

/* The dimension that attention_mask speaks of: rows of tokens, or of source where there is one. */
static Dim masked_dim(const Graph *graph) {
    bool has_source = false;
    for (int i = 0; i < graph->n_inputs; i++) has_source |= graph->inputs[i].of_source;
    for (int i = 0; i < graph->n_inputs; i++) {
        const char *name = graph->inputs[i].name;
        if (graph->inputs[i].of_source == has_source &&
            (strcmp(name, "tokens") == 0 || strcmp(name, "source") == 0 || strcmp(name, "features") == 0))
            return graph->tensors[graph->inputs[i].tensor].dims[0];
    }
    return (Dim){0};
}

/* Ones, then zeros; returns how many ones. */
static int64_t masked_length(const NpyArray *mask, int64_t row, int64_t n) {
    int64_t length = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t v = npy_integer(mask, row * n + i);
        if (v != 0 && v != 1) fail("%s: attention_mask holds %lld; it may hold 0 and 1", mask->path, (long long)v);
        if (v && length < i) fail("%s: attention_mask: row %lld is not ones, then zeros", mask->path, (long long)row);
        length += v;
    }
    if (length == 0)
        fail("%s: attention_mask: row %lld has no one: a sequence of length 0", mask->path, (long long)row);
    return length;
}

static void read_mask(Reader *r) {
    Batch *batch = r->batch;
    Dim dim = masked_dim(r->graph);
    int64_t n = dim.symbol ? batch->padded[dim.symbol - 1] : dim.n;
    if (!r->has_mask) return;
    if (!dim.n) fail("%s: this model takes no attention_mask", r->mask.path);
    const Shape *s = &r->mask.shape;
    bool fits =
        s->rank == 1 + batch->batched && s->dims[s->rank - 1] == n && (!batch->batched || s->dims[0] == batch->count);
    if (!fits) fail("%s: attention_mask has the shape %s, unlike the rows", r->mask.path, shape_text(r->arena, *s));
    for (int64_t b = 0; b < batch->count; b++) {
        int64_t length = masked_length(&r->mask, b, n);
        if (dim.symbol) batch->sequences[b].symbols[dim.symbol - 1] = length;
        else if (length != n)
            fail("%s: attention_mask: row %lld has %lld ones, and the spec says `seq = %lld`", r->mask.path,
                 (long long)b, (long long)length, (long long)n);
    }
}

/* Cuts sequence b's part out of a padded array: the first rows (and, of a mask, columns). */
static InputArray slice(Reader *r, const Given *g, int64_t b, const int64_t *symbols) {
    const Tensor *t = g->tensor;
    size_t item = t->dtype == DTYPE_I64 ? 8 : t->dtype == DTYPE_F32 ? 4 : 1;
    int64_t padded[3] = {1, 1, 1}, real[3] = {1, 1, 1};
    for (int d = 0; d < t->rank; d++) {
        int symbol = t->dims[d].symbol;
        padded[d] = symbol ? r->batch->padded[symbol - 1] : t->dims[d].n;
        real[d] = symbol ? symbols[symbol - 1] : t->dims[d].n;
    }
    const uint8_t *from = g->converted + (size_t)(b * padded[0] * padded[1] * padded[2]) * item;
    InputArray array = {g->input->name, t->dtype, real[0], from};
    if (real[1] == padded[1] && real[2] == padded[2]) return array;
    uint8_t *to = arena_array(r->arena, (size_t)(real[0] * real[1]), item);
    for (int64_t i = 0; i < real[0]; i++)
        memcpy(to + (size_t)(i * real[1]) * item, from + (size_t)(i * padded[1]) * item, (size_t)real[1] * item);
    array.data = to;
    return array;
}

/* The ids of the sequence's last input against the table that they are looked up in; what is padding may be any. */
static void check_ids(const Reader *r, const Given *g, int64_t b) {
    const Sequence *s = &r->batch->sequences[b];
    const InputArray *array = &s->inputs[s->n_inputs - 1];
    const int64_t *ids = array->data;
    for (int o = 0; o < r->graph->n_ops; o++) {
        const Op *op = &r->graph->ops[o];
        if (op->kind != OP_embed || op->inputs[0] != g->input->tensor) continue;
        int64_t rows = r->graph->tensors[op->inputs[1]].dims[0].n;
        for (int64_t i = 0; i < array->rows; i++)
            if (ids[i] < 0 || ids[i] >= rows)
                fail("%s: input %s: id %lld at %s%lld is outside 0 to %lld", g->array.path, array->name,
                     (long long)ids[i], r->batch->batched ? arena_printf(r->arena, "%lld, ", (long long)b) : "",
                     (long long)i, (long long)rows - 1);
    }
}

Batch *batch_read(Arena *arena, const char *usage, const Graph *graph, const ValueNode *inputs) {
    Batch *batch = arena_alloc(arena, sizeof *batch);
    Reader r = {.arena = arena, .graph = graph, .batch = batch};
    read_inputs(&r, usage, inputs);
    batch->sequences = arena_array(arena, (size_t)batch->count, sizeof *batch->sequences);
    for (int64_t b = 0; b < batch->count; b++) memcpy(batch->sequences[b].symbols, batch->padded, sizeof batch->padded);
    read_mask(&r);
    for (int64_t b = 0; b < batch->count; b++) {
        Sequence *s = &batch->sequences[b];
        for (int k = 0; k < r.n_given; k++) {
            s->inputs[s->n_inputs++] = slice(&r, &r.given[k], b, s->symbols);
            check_ids(&r, &r.given[k], b);
        }
    }
    return batch;
}

/* ---------------------------------------------------------------- writing */

/* Copies a sequence's output into its padded place; `full` are the padded sizes. */
static void place_output(const OutputArray *o, const int64_t *full, float *out) {
    int64_t d[3] = {1, 1, 1}, f[3] = {1, 1, 1};
    for (int i = 0; i < o->shape.rank && i < 3; i++) {
        d[i] = o->shape.dims[i];
        f[i] = full[i];
    }
    for (int64_t i = 0; i < d[0]; i++)
        for (int64_t j = 0; j < d[1]; j++)
            for (int64_t k = 0; k < d[2]; k++)
                out[(i * f[1] + j) * f[2] + k] = (float)o->data[(i * d[1] + j) * d[2] + k];
}

static int64_t padded_size(const Batch *batch, Dim dim) { return dim.symbol ? batch->padded[dim.symbol - 1] : dim.n; }

/* pooled [1][d] and a classifier's logits [1][N] are one row a sequence: written without that dimension. */
static bool is_single_row(const Graph *g, const GraphOutput *o) {
    return strcmp(o->name, "pooled") == 0 || strcmp(g->tensors[o->tensor].name, "classifier") == 0;
}

static void write_rows(Arena *arena, const Module *module, const Batch *batch, int index, const char *path) {
    const Graph *g = module->forward;
    const GraphOutput *o = &g->outputs[index];
    const Tensor *t = &g->tensors[o->tensor];
    int64_t full[3] = {1, 1, 1}, items = 1;
    Shape shape = {0, {0}};
    if (batch->batched) shape.dims[shape.rank++] = batch->count;
    for (int d = 0; d < t->rank; d++) {
        full[d] = padded_size(batch, t->dims[d]);
        items *= full[d];
        if (!(d == 0 && is_single_row(g, o))) shape.dims[shape.rank++] = full[d];
    }
    float *out = arena_array(arena, (size_t)(batch->count * items), sizeof *out);
    for (int64_t b = 0; b < batch->count; b++) place_output(&batch->sequences[b].outputs[index], full, out + b * items);
    npy_write(arena, path, DTYPE_F32, shape, out);
}

/* attention [layers][heads][n][m]: the graph's maps of that name, exported heads of each. */
static void write_maps(Arena *arena, const Module *module, const Batch *batch, const char *name, int layer,
                       const char *path) {
    const Graph *g = module->forward;
    int64_t layers = 0, heads = 0, n = 0, m = 0;
    for (int o = 0; o < g->n_outputs; o++) {
        const GraphOutput *out = &g->outputs[o];
        if (strcmp(out->name, name) != 0 || (layer >= 0 && out->layer != layer)) continue;
        if (heads && heads != out->n_heads) fail("the layers export different numbers of heads: use %s.LAYER", name);
        heads = out->n_heads;
        n = padded_size(batch, g->tensors[out->tensor].dims[1]);
        m = padded_size(batch, g->tensors[out->tensor].dims[2]);
        layers++;
    }
    Shape shape = {0, {0}};
    if (batch->batched) shape.dims[shape.rank++] = batch->count;
    if (layer < 0) shape.dims[shape.rank++] = layers;
    shape.dims[shape.rank++] = heads;
    shape.dims[shape.rank++] = n;
    shape.dims[shape.rank++] = m;
    float *out = arena_array(arena, (size_t)(batch->count * layers * heads * n * m), sizeof *out), *to = out;
    for (int64_t b = 0; b < batch->count; b++)
        for (int o = 0; o < g->n_outputs; o++) {
            const GraphOutput *output = &g->outputs[o];
            if (strcmp(output->name, name) != 0 || (layer >= 0 && output->layer != layer)) continue;
            OutputArray *all = &batch->sequences[b].outputs[o];
            for (int64_t h = 0; h < heads; h++, to += n * m) {
                OutputArray one = {.name = all->name,
                                   .shape = {2, {all->shape.dims[1], all->shape.dims[2]}},
                                   .data = all->data + output->heads[h] * all->shape.dims[1] * all->shape.dims[2]};
                int64_t full[2] = {n, m};
                place_output(&one, full, to);
            }
        }
    npy_write(arena, path, DTYPE_F32, shape, out);
}

typedef struct Wanted {
    const char *path, *name;
    int index, layer; /* of the first output of that name; layer -1: none is named */
} Wanted;

static Wanted wanted_output(Arena *arena, const char *usage, const Module *module, const char *text) {
    const Graph *g = module->forward;
    char *name;
    Wanted w = {.path = split_assignment(arena, usage, "--out", text, &name), .index = -1, .layer = -1};
    w.name = name;
    char *dot = strchr(name, '.');
    if (dot) {
        w.layer = (int)option_integer(usage, "--out NAME.LAYER", dot + 1, 0, 0, 100000);
        *dot = '\0';
    }
    for (int o = 0; o < g->n_outputs; o++)
        if (strcmp(g->outputs[o].name, name) == 0 && (w.layer < 0 || g->outputs[o].layer == w.layer)) w.index = o;
    if (w.index < 0)
        fail("this model has no output `%.*s`; it has: %s", (int)strcspn(text, "="), text,
             output_names(arena, module));
    return w;
}

void batch_check_outputs(Arena *arena, const char *usage, const Module *module, const ValueNode *outputs) {
    for (const ValueNode *node = outputs; node; node = node->next) wanted_output(arena, usage, module, node->text);
}

void batch_write(Arena *arena, const char *usage, const Module *module, const Batch *batch,
                 const ValueNode *outputs) {
    outputs_hold();
    for (const ValueNode *node = outputs; node; node = node->next) {
        Wanted w = wanted_output(arena, usage, module, node->text);
        if (module->forward->outputs[w.index].layer >= 0) write_maps(arena, module, batch, w.name, w.layer, w.path);
        else write_rows(arena, module, batch, w.index, w.path);
    }
    outputs_release();
}

/* ---------------------------------------------------------------- maps that the spec does not export */

typedef struct MapName {
    const char *text;
    size_t length;
    int64_t layer; /* -1: every one */
} MapName;

static bool is_map(const Model *model, const Stack *stack, const Attention *a, MapName name) {
    bool of_encoder = model->decoder && stack && !stack->is_decoder;
    const char *own = a->cross && stack ? "cross_attention" : of_encoder ? "encoder_attention" : "attention";
    return strlen(own) == name.length && strncmp(own, name.text, name.length) == 0;
}

static void export_heads(Attention *a) {
    enum { MOST_EXPORTED = 1 << 16 };
    static int64_t every[MOST_EXPORTED];
    if (a->exported) return;
    if (a->heads > MOST_EXPORTED) fail("attention of more than %d heads cannot be exported", MOST_EXPORTED);
    for (int64_t h = 0; h < a->heads; h++) every[h] = h;
    a->exported = true;
    a->exported_heads = every;
    a->n_exported_heads = a->heads;
}

typedef struct MapCount {
    int64_t there, exported; /* attentions that give maps of a name, and those that the spec exports */
} MapCount;

/* With `turn_on`, all of them are exported. */
static MapCount visit_maps(const Model *model, MapName name, bool turn_on) {
    Stack *const stacks[] = {model->encoder, model->decoder};
    MapCount count = {0};
    if (model->alone && is_map(model, NULL, &model->alone->attention, name) && name.layer <= 0) {
        count.there++;
        count.exported += model->alone->attention.exported;
        if (turn_on) export_heads(&model->alone->attention);
    }
    for (int k = 0; k < 2; k++)
        for (int64_t l = 0; stacks[k] && l < stacks[k]->n_layers; l++)
            for (int s = 0; s < stacks[k]->layers[l].count; s++) {
                Sublayer *sub = &stacks[k]->layers[l].sublayers[s];
                if (sub->kind != SUBLAYER_ATTENTION || !is_map(model, stacks[k], &sub->attention, name)) continue;
                if (name.layer >= 0 && name.layer != l) continue;
                count.there++;
                count.exported += sub->attention.exported;
                if (turn_on) export_heads(&sub->attention);
            }
    return count;
}

/* A name alone is what the spec exports; all layers where it exports none. */
void model_turn_on(Model *model, const ValueNode *outputs) {
    for (int dotted = 0; dotted < 2; dotted++)
        for (const ValueNode *node = outputs; node; node = node->next) {
            MapName name = {node->text, strcspn(node->text, "=."), -1};
            const char *dot = node->text + name.length;
            if (dotted != (*dot == '.')) continue;
            for (const char *at = dot + 1; dotted && *at >= '0' && *at <= '9' && name.layer < INT32_MAX; at++)
                name.layer = (name.layer < 0 ? 0 : 10 * name.layer) + (*at - '0');
            if (dotted || visit_maps(model, name, false).exported == 0) visit_maps(model, name, true);
        }
}

static const char *const map_names[] = {"attention", "encoder_attention", "cross_attention"};

void model_turn_on_all(Model *model) {
    for (int i = 0; i < 3; i++) visit_maps(model, (MapName){map_names[i], strlen(map_names[i]), -1}, true);
}

const char *output_names(Arena *arena, const Module *module) {
    const Graph *g = module->forward;
    Text all = text_new(arena);
    for (int o = 0; o < g->n_outputs; o++)
        if (g->outputs[o].layer < 0) text_printf(&all, "%s%s", all.size ? ", " : "", g->outputs[o].name);
    for (int i = 0; i < 3; i++)
        if (visit_maps(module->model, (MapName){map_names[i], strlen(map_names[i]), -1}, false).there > 0)
            text_printf(&all, "%s%s%s", all.size ? ", " : "", map_names[i], module->model->alone ? "" : "[.LAYER]");
    return all.data;
}

void batch_interpret(Arena *arena, const Module *module, const Weights *weights, Batch *batch) {
    progress_begin("interpreting %s", module->model->name);
    for (int64_t b = 0; b < batch->count; b++) {
        Sequence *s = &batch->sequences[b];
        progress_at(b, batch->count, "sequences");
        s->outputs = interpret(arena, module, module->forward, weights, s->inputs, s->n_inputs, s->symbols)->outputs;
    }
    progress_end();
}
