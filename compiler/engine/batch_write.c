/* batch_write.c: from the outputs of sequences to .npy files. */
#include "batch.h"

#include <string.h>

static int64_t padded_size(const Batch *batch, Dim dim) { return dim.symbol ? batch->padded[dim.symbol - 1] : dim.n; }

static bool is_named(const GraphOutput *output, const NamedFile *file) {
    return strcmp(output->name, file->name) == 0 && (file->layer < 0 || output->layer == file->layer);
}

/* Writes the outputs that the file names, from `first` on: rows [n][d], or the exported heads of attention maps
 * [layers][heads][n][m], or the heads of `lse` [heads][n]. Files leave out the 1 of pooled [1][d] and of a classifier's
 * logits [1][N]. */
static void write_outputs(Arena *arena, const Graph *g, const Batch *batch, const GraphOutput *first,
                          const NamedFile *file) {
    const bool is_map = first->layer >= 0;
    const int64_t heads = is_map ? first->n_heads : 1;
    const Dim *dims = &g->tensors[first->tensor].dims[is_map];
    const int64_t n = padded_size(batch, dims[0]), m = padded_size(batch, dims[1]);
    int64_t layers = 0;
    for (int o = 0; o < g->n_outputs; o++) {
        if (!is_named(&g->outputs[o], file)) continue;
        if (is_map && g->outputs[o].n_heads != heads)
            fail("the layers export different numbers of heads: use %s.LAYER", file->name);
        layers++;
    }
    Shape shape = {0, {0}};
    if (batch->batched) shape.dims[shape.rank++] = batch->count;
    if (is_map && file->layer < 0) shape.dims[shape.rank++] = layers;
    if (is_map) shape.dims[shape.rank++] = heads;
    if (!first->of_sequence) shape.dims[shape.rank++] = is_map ? n : layers * n;
    shape.dims[shape.rank++] = m;
    float *out = arena_array(arena, (size_t)(batch->count * layers * heads * n * m), sizeof *out), *to = out;
    const Pieces pieces = batch_pieces(arena, g, batch);
    for (int64_t i = 0; i < pieces.count; i++) {
        const Piece *p = &pieces.list[i];
        if (!is_named(&g->outputs[p->output], file)) continue;
        for (int64_t k = 0; k < p->rows * p->columns; k++)
            to[k / p->columns * m + k % p->columns] = (float)p->want[k];
        to += n * m;
    }
    npy_write(arena, file->path, DTYPE_F32, shape, out);
}

const char *output_names(Arena *arena, const Module *module) {
    const Graph *g = module->entries[ENTRY_FORWARD];
    Text all = text_new(arena);
    for (int o = 0; o < g->n_outputs; o++)
        if (g->outputs[o].layer < 0 && graph_output_of(g, g->outputs[o].role) == &g->outputs[o])
            text_printf(&all, "%s%s", all.size ? ", " : "", g->outputs[o].name);
    for (int role = 0; role < OUT_COUNT; role++)
        if (model_has_maps(module->model, (OutputRole)role))
            text_printf(&all, "%s%s%s", all.size ? ", " : "", output_name((OutputRole)role),
                        module->model->alone ? "" : "[.LAYER]");
    return all.data;
}

/* The first output of the graph that the file names. */
static const GraphOutput *wanted_output(Arena *arena, const Module *module, const NamedFile *file) {
    const Graph *g = module->entries[ENTRY_FORWARD];
    for (int o = 0; o < g->n_outputs; o++)
        if (is_named(&g->outputs[o], file)) return &g->outputs[o];
    const char *layer = file->layer < 0 ? "" : arena_printf(arena, ".%d", file->layer);
    fail("this model has no output `%s%s`; it has: %s", file->name, layer, output_names(arena, module));
}

void batch_check_outputs(Arena *arena, const Module *module, const NamedFile *files) {
    for (const NamedFile *file = files; file; file = file->next) wanted_output(arena, module, file);
}

void batch_write(Arena *arena, const Module *module, const Batch *batch, const NamedFile *files) {
    outputs_hold();
    for (const NamedFile *file = files; file; file = file->next)
        write_outputs(arena, module->entries[ENTRY_FORWARD], batch, wanted_output(arena, module, file), file);
    outputs_release();
}
