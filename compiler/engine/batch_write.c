/* batch_write.c: from the outputs of sequences to .npy files. */
#include "batch.h"

#include <string.h>

/* Copies a sequence's output into an array with the padded sizes `full`. */
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

static void write_rows(Arena *arena, const Module *module, const Batch *batch, int index, const char *path) {
    const Graph *g = module->entries[ENTRY_FORWARD];
    const GraphOutput *o = &g->outputs[index];
    const Tensor *t = &g->tensors[o->tensor];
    int64_t full[3] = {1, 1, 1}, items = 1;
    Shape shape = {0, {0}};
    if (batch->batched) shape.dims[shape.rank++] = batch->count;
    for (int d = 0; d < t->rank; d++) { /* files leave out the 1 of pooled [1][d] and of a classifier's logits [1][N] */
        full[d] = padded_size(batch, t->dims[d]);
        items *= full[d];
        if (d > 0 || !o->of_sequence) shape.dims[shape.rank++] = full[d];
    }
    float *out = arena_array(arena, (size_t)(batch->count * items), sizeof *out);
    for (int64_t b = 0; b < batch->count; b++) place_output(&batch->sequences[b].outputs[index], full, out + b * items);
    npy_write(arena, path, DTYPE_F32, shape, out);
}

/* Writes attention [layers][heads][n][m]: the exported heads of the graph's maps of that name. */
static void write_maps(Arena *arena, const Module *module, const Batch *batch, const char *name, int layer,
                       const char *path) {
    const Graph *g = module->entries[ENTRY_FORWARD];
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
                OutputArray one = {.role = all->role,
                                   .shape = {2, {all->shape.dims[1], all->shape.dims[2]}},
                                   .data = all->data + output->heads[h] * all->shape.dims[1] * all->shape.dims[2]};
                int64_t full[2] = {n, m};
                place_output(&one, full, to);
            }
        }
    npy_write(arena, path, DTYPE_F32, shape, out);
}

const char *output_names(Arena *arena, const Module *module) {
    const Graph *g = module->entries[ENTRY_FORWARD];
    Text all = text_new(arena);
    for (int o = 0; o < g->n_outputs; o++)
        if (g->outputs[o].layer < 0) text_printf(&all, "%s%s", all.size ? ", " : "", g->outputs[o].name);
    for (int role = 0; role < OUT_COUNT; role++)
        if (model_has_maps(module->model, (OutputRole)role))
            text_printf(&all, "%s%s%s", all.size ? ", " : "", output_name((OutputRole)role),
                        module->model->alone ? "" : "[.LAYER]");
    return all.data;
}

/* The first output of the graph that the file names. */
static int wanted_output(Arena *arena, const Module *module, const NamedFile *file) {
    const Graph *g = module->entries[ENTRY_FORWARD];
    for (int o = 0; o < g->n_outputs; o++)
        if (strcmp(g->outputs[o].name, file->name) == 0 && (file->layer < 0 || g->outputs[o].layer == file->layer))
            return o;
    const char *layer = file->layer < 0 ? "" : arena_printf(arena, ".%d", file->layer);
    fail("this model has no output `%s%s`; it has: %s", file->name, layer, output_names(arena, module));
}

void batch_check_outputs(Arena *arena, const Module *module, const NamedFile *files) {
    for (const NamedFile *file = files; file; file = file->next) wanted_output(arena, module, file);
}

void batch_write(Arena *arena, const Module *module, const Batch *batch, const NamedFile *files) {
    outputs_hold();
    for (const NamedFile *file = files; file; file = file->next) {
        int output = wanted_output(arena, module, file);
        const bool is_map = module->entries[ENTRY_FORWARD]->outputs[output].layer >= 0;
        if (!is_map) write_rows(arena, module, batch, output, file->path);
        else write_maps(arena, module, batch, file->name, file->layer, file->path);
    }
    outputs_release();
}
