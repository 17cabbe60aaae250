/* batch_read.c: from .npy files to sequences. */
#include "batch.h"

#include <math.h>
#include <string.h>

typedef struct Given {
    const GraphInput *input;
    const Tensor *tensor;
    NpyArray array;
    const uint8_t *converted; /* the whole array in the tensor's dtype */
    int64_t whole;            /* rows of the file where these are of a whole text, else 0 */
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
    for (int i = 0; i < r->graph->n_inputs; i++) names[n++] = r->graph->inputs[i].kind->name;
    names[n++] = "attention_mask";
    names[n] = NULL;
    for (int i = 0; i < n; i++) text_printf(&all, "%s%s", i ? ", " : "", names[i]);
    fail("this model has no input `%s`; it has: %s", name, all.data);
}

/* A dtype too narrow for the largest id may have wrapped ids when the file was saved; booleans are not ids. */
static void refuse_narrow(const Reader *r, const Given *g) {
    Dtype dtype = g->array.dtype;
    int64_t least = 0, most = 0;
    graph_input_range(r->graph, g->input, &least, &most);
    int64_t holds = dtype == DTYPE_I8    ? INT8_MAX
                    : dtype == DTYPE_U8  ? UINT8_MAX
                    : dtype == DTYPE_I16 ? INT16_MAX
                                         : most;
    if (dtype == DTYPE_BOOL)
        fail("%s: input %s wants integers, found BOOL; save array.astype('int64')", g->array.path,
             g->input->kind->name);
    if (holds < most)
        fail("%s: input %s has numbers up to %lld, which %s does not hold; save them as int32 or int64", g->array.path,
             g->input->kind->name, (long long)most, dtype_name(dtype));
}

/* A number as f32. A double is rounded, and refused when rounding makes it infinite. */
static float narrowed(const Given *g, int64_t index) {
    double wide = npy_real(&g->array, index);
    float value = (float)wide;
    if (isfinite(wide) && !isfinite(value))
        fail("%s: input %s holds %g, which is beyond float32", g->array.path, g->input->kind->name, wide);
    return value;
}

/* Converts an array to the dtype of the graph's input: int64 ids, f32 rows, u8 masks. */
static void convert(Reader *r, Given *g) {
    const NpyArray *a = &g->array;
    int64_t count = 0;
    shape_elements(a->shape, &count);
    bool integers = !dtype_is_float(a->dtype);
    if (g->tensor->dtype == DTYPE_F32) {
        if (integers)
            fail("%s: input %s wants floating-point numbers, found %s; save array.astype('float32')", a->path,
                 g->input->kind->name, dtype_name(a->dtype));
        float *out = arena_array(r->arena, (size_t)count, sizeof *out);
        for (int64_t i = 0; i < count; i++) out[i] = narrowed(g, i);
        g->converted = (const uint8_t *)out;
        return;
    }
    if (!integers)
        fail("%s: input %s wants integers, found %s; save array.astype('int64')", a->path, g->input->kind->name,
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
            fail("%s: input %s has %lld where the model wants %lld", g->array.path, g->input->kind->name, (long long)n,
                 (long long)dim.n);
        return;
    }
    int64_t *padded = &r->batch->padded[dim.symbol - 1];
    if (n < 1 || n > dim.n)
        fail("%s: input %s has the length %lld; the spec allows 1 to %lld", g->array.path, g->input->kind->name,
             (long long)n, (long long)dim.n);
    if (*padded && *padded != n)
        fail("%s: input %s has the length %lld, and another input %lld", g->array.path, g->input->kind->name,
             (long long)n, (long long)*padded);
    *padded = n;
}

static void check_shape(Reader *r, Given *g, bool *batched, int64_t *count) {
    const Tensor *t = g->tensor;
    const Shape *s = &g->array.shape;
    int extra = s->rank - t->rank;
    if (extra != 0 && extra != 1)
        fail("%s: input %s has the shape %s; it wants %d dimensions, or one more for a batch", g->array.path,
             g->input->kind->name, shape_text(r->arena, *s), t->rank);
    bool this_batched = extra == 1;
    if (*count >= 0 && *batched != this_batched)
        fail("%s: input %s %s a batch dimension, unlike the others", g->array.path, g->input->kind->name,
             this_batched ? "has" : "lacks");
    int64_t n = this_batched ? s->dims[0] : 1;
    if (*count >= 0 && n != *count)
        fail("%s: input %s has %s, and another input %lld", g->array.path, g->input->kind->name,
             counted(r->arena, n, "sequence"), (long long)*count);
    if (n < 1) fail("%s: input %s holds no sequence", g->array.path, g->input->kind->name);
    *batched = this_batched;
    *count = n;
    for (int d = 0; d < t->rank && !g->whole; d++) set_length(r, g, t->dims[d], s->dims[d + extra]);
    if (g->whole) g->whole = s->dims[extra];
    convert(r, g);
}

/* Whether the input may not have this number. */
static bool is_outside(const Reader *r, const Given *g, double number) {
    int64_t least, most;
    if (g->tensor->dtype == DTYPE_F32) return graph_input_excludes(g->input, number);
    return graph_input_range(r->graph, g->input, &least, &most) &&
           (number < (double)least || number > (double)most);
}

/* The range of the input's numbers, "0 to 4". */
static const char *range_of(const Reader *r, const Given *g) {
    int64_t least, most;
    if (g->tensor->dtype == DTYPE_F32)
        return arena_printf(r->arena, "%g to %g", g->input->range.low, g->input->range.high);
    graph_input_range(r->graph, g->input, &least, &most);
    return arena_printf(r->arena, "%lld to %lld", (long long)least, (long long)most);
}

/* Reads one number for each sequence, or one number for all sequences. */
static void read_number(Reader *r, Given *g, int64_t count) {
    const NpyArray *a = &g->array;
    const size_t item = g->tensor->dtype == DTYPE_F32 ? sizeof(float) : sizeof(int64_t);
    int64_t items = 0;
    shape_elements(a->shape, &items);
    if (a->shape.rank > 2 || (items != count && items != 1) || (a->shape.rank == 2 && a->shape.dims[1] != 1))
        fail("%s: input %s has the shape %s; it wants one number, or one for each of %lld sequences", a->path,
             g->input->kind->name, shape_text(r->arena, a->shape), (long long)count);
    convert(r, g);
    uint8_t *each = arena_array(r->arena, (size_t)count, item);
    for (int64_t b = 0; b < count; b++) {
        const uint8_t *from = g->converted + (items == 1 ? 0 : (size_t)b * item);
        const double number = item == sizeof(float) ? (double)*(const float *)(const void *)from
                                                    : (double)*(const int64_t *)(const void *)from;
        memcpy(each + (size_t)b * item, from, item);
        if (is_outside(r, g, number))
            fail("%s: input %s holds %s; it may be %s", a->path, g->input->kind->name,
                 arena_printf(r->arena, item == sizeof(float) ? "%g" : "%.0f", number), range_of(r, g));
    }
    g->converted = each;
}

static void read_inputs(Reader *r, const NamedFile *files) {
    bool batched = false;
    int64_t count = -1;
    for (const NamedFile *file = files; file; file = file->next) {
        const char *name = file->name;
        if (strcmp(name, "attention_mask") == 0) {
            r->mask = npy_read(r->arena, file->path);
            r->has_mask = true;
            continue;
        }
        const GraphInput *input = graph_input_named(r->graph, name);
        if (!input) unknown_input(r, name);
        for (int k = 0; k < r->n_given; k++)
            if (r->given[k].input == input) fail("input %s is given twice", name);
        Given *g = &r->given[r->n_given++];
        g->input = input;
        g->tensor = &r->graph->tensors[g->input->tensor];
        g->array = npy_read(r->arena, file->path);
        g->whole = file->whole;
        if (!input_is_number(g->input->kind)) check_shape(r, g, &batched, &count);
    }
    for (int i = 0; i < r->graph->n_inputs; i++) {
        bool found = r->graph->inputs[i].optional;
        for (int k = 0; k < r->n_given; k++) found |= r->given[k].input == &r->graph->inputs[i];
        const char *name = r->graph->inputs[i].kind->name;
        if (!found) fail("input %s is missing: --in %s=FILE.npy", name, name);
    }
    if (count < 0) fail("this model needs an input");
    for (int k = 0; k < r->n_given; k++)
        if (input_is_number(r->given[k].input->kind)) read_number(r, &r->given[k], count);
    r->batch->batched = batched;
    r->batch->count = count;
}

/* The dimension that attention_mask is for: the rows of the source, or of the tokens when there is no source. */
static Dim masked_dim(const Graph *graph) {
    bool has_source = false;
    for (int i = 0; i < graph->n_inputs; i++) has_source |= graph->inputs[i].of_source;
    for (int i = 0; i < graph->n_inputs; i++) {
        const GraphInput *input = &graph->inputs[i];
        const InputRole role = input->kind->role;
        if (role_is_masked(role) && input->of_source == has_source) return graph->tensors[input->tensor].dims[0];
    }
    return (Dim){0};
}

/* Returns the number of ones, which come before all zeros. */
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

/* Cuts sequence b out of a padded array: its first rows, and for a mask its first columns. */
static InputArray slice(Reader *r, const Given *g, int64_t b, const int64_t *symbols) {
    const Tensor *t = g->tensor;
    size_t item = t->dtype == DTYPE_I64 ? 8 : t->dtype == DTYPE_F32 ? 4 : 1;
    int64_t padded[3] = {1, 1, 1}, real[3] = {1, 1, 1};
    for (int d = 0; d < t->rank; d++) {
        int symbol = t->dims[d].symbol;
        padded[d] = g->whole ? g->whole : symbol ? r->batch->padded[symbol - 1] : t->dims[d].n;
        real[d] = g->whole ? g->whole : symbol ? symbols[symbol - 1] : t->dims[d].n;
    }
    const uint8_t *from = g->converted + (size_t)(b * padded[0] * padded[1] * padded[2]) * item;
    InputArray array = {g->input->kind->role, t->dtype, real[0], from};
    if (real[1] == padded[1] && real[2] == padded[2]) return array;
    uint8_t *to = arena_array(r->arena, (size_t)(real[0] * real[1]), item);
    for (int64_t i = 0; i < real[0]; i++)
        memcpy(to + (size_t)(i * real[1]) * item, from + (size_t)(i * padded[1]) * item, (size_t)real[1] * item);
    array.data = to;
    return array;
}

/* Checks the numbers of the sequence's last input; padding may hold any number. */
static void check_numbers(const Reader *r, const Given *g, int64_t b) {
    const Sequence *s = &r->batch->sequences[b];
    const InputArray *array = &s->inputs[s->n_inputs - 1];
    const bool real = array->dtype == DTYPE_F32;
    if (array->dtype != DTYPE_I64 && !(real && role_is_of_rows(array->role))) return;
    const int64_t count = real && !g->whole ? sequence_items(s, g->tensor) : array->rows;
    for (int64_t i = 0; i < count; i++) {
        const double number = real ? (double)((const float *)array->data)[i]
                                   : (double)((const int64_t *)array->data)[i];
        if (is_outside(r, g, number))
            fail("%s: input %s: %s %s at %s%lld is outside %s", g->array.path, g->input->kind->name,
                 graph_table_rows(r->graph, g->input) ? "id" : real ? "the number" : "the integer",
                 arena_printf(r->arena, real ? "%g" : "%.0f", number),
                 r->batch->batched ? arena_printf(r->arena, "%lld, ", (long long)b) : "", (long long)i,
                 range_of(r, g));
    }
}

Batch *batch_read(Arena *arena, const Graph *graph, const NamedFile *files) {
    Batch *batch = arena_alloc(arena, sizeof *batch);
    Reader r = {.arena = arena, .graph = graph, .batch = batch};
    read_inputs(&r, files);
    batch->sequences = arena_array(arena, (size_t)batch->count, sizeof *batch->sequences);
    for (int64_t b = 0; b < batch->count; b++) memcpy(batch->sequences[b].symbols, batch->padded, sizeof batch->padded);
    read_mask(&r);
    for (int64_t b = 0; b < batch->count; b++) {
        Sequence *s = &batch->sequences[b];
        for (int k = 0; k < r.n_given; k++) {
            s->inputs[s->n_inputs++] = slice(&r, &r.given[k], b, s->symbols);
            check_numbers(&r, &r.given[k], b);
        }
    }
    return batch;
}
