/* map.c: attnc map: the attention of one sequence as a page to look at, every layer and head. */
#include "batch.h"

#include <math.h>
#include <string.h>

static const char usage[] =
    "attnc map SPEC --weights F[,F…]|random:SEED --in NAME=F.npy … [--labels [NAME=]F …] -o F.html\n"
    "                 [--engine compiled|interp] [--target T] [--cc CC] [--threads N] [-v]\n" HELP_WEIGHTS "\n"
    "  --in NAME=F.npy      an input, of one sequence\n"
    "  --labels [NAME=]F    a symbol a line, one for each row of the input NAME; without it ids and row numbers are\n"
    "                       shown\n"
    "  -o F.html            the page\n" HELP_ENGINE HELP_TARGET HELP_CC HELP_THREADS HELP_VERBOSE;

enum { MOST_LABELS = 64 << 20, LEVELS = 4095 };

/* The symbols of one axis: those of an input, or numbers. */
typedef struct Axis {
    const char *name; /* tokens, source, target, query, … */
    const char **labels;
    int64_t count;
} Axis;

typedef struct Maps {
    Arena *arena;
    const Graph *graph;
    const Sequence *sequence;
    Axis axes[2 * MAX_GRAPH_INPUTS];
    int n_axes;
} Maps;

/* ---------------------------------------------------------------- symbols */

/* The lines of a file, as many as the input has rows. */
static const char **read_labels(Maps *m, const char *path, const char *input, int64_t rows) {
    size_t size = 0;
    char *text = file_read(m->arena, path, MOST_LABELS, &size), *end = text + size;
    const char **labels = arena_array(m->arena, (size_t)rows, sizeof *labels);
    int64_t lines = 0;
    while (text < end) {
        char *newline = memchr(text, '\n', (size_t)(end - text)), *stop = newline ? newline : end;
        size_t length = (size_t)(stop - text);
        if (length && text[length - 1] == '\r') length--;
        if (lines < rows) labels[lines] = arena_copy(m->arena, text, length);
        lines++;
        text = stop + 1;
    }
    if (lines != rows)
        fail("%s has %lld lines, but `%s` has %lld rows: a symbol a line", path, (long long)lines, input,
             (long long)rows);
    return labels;
}

/* Ids, or row numbers where an input has none. */
static const char **numbers(Maps *m, const InputArray *input, int64_t rows) {
    const char **labels = arena_array(m->arena, (size_t)rows, sizeof *labels);
    const int64_t *ids = input && input->dtype == DTYPE_I64 && input->rows == rows ? input->data : NULL;
    for (int64_t i = 0; i < rows; i++) labels[i] = arena_printf(m->arena, "%lld", (long long)(ids ? ids[i] : i));
    return labels;
}

static const InputArray *input_named(const Maps *m, const char *name) {
    for (int i = 0; i < m->sequence->n_inputs; i++)
        if (strcmp(m->sequence->inputs[i].name, name) == 0) return &m->sequence->inputs[i];
    return NULL;
}

/* The input whose rows those of a map are: of the source's side, or of the other. */
static const InputArray *input_of(const Maps *m, bool of_source) {
    for (int i = 0; i < m->graph->n_inputs; i++) {
        const GraphInput *input = &m->graph->inputs[i];
        const InputArray *given = input_named(m, input->name);
        if (given && input->of_source == of_source && given->dtype != DTYPE_U8) return given;
    }
    return NULL;
}

static const Axis *axis_of(Maps *m, bool of_source, int64_t count) {
    const InputArray *input = input_of(m, of_source);
    const char *name = input && input->rows == count ? input->name : of_source ? "source rows" : "rows";
    for (int i = 0; i < m->n_axes; i++)
        if (strcmp(m->axes[i].name, name) == 0 && m->axes[i].count == count) return &m->axes[i];
    Axis *axis = &m->axes[m->n_axes++];
    *axis = (Axis){name, numbers(m, input, count), count};
    return axis;
}

static void take_labels(Maps *m, const ValueNode *node) {
    const char *equal = strchr(node->text, '='), *path = equal ? equal + 1 : node->text;
    const InputArray *input = equal ? NULL : input_of(m, false);
    if (equal) input = input_named(m, arena_copy(m->arena, node->text, (size_t)(equal - node->text)));
    if (!input) fail("`--labels %s` names no input of this call", node->text);
    if (!equal && input_of(m, true)) fail("there are two inputs with rows: say `--labels %s=%s`", input->name, path);
    m->axes[m->n_axes++] = (Axis){input->name, read_labels(m, path, input->name, input->rows), input->rows};
}

/* ---------------------------------------------------------------- the page's data, as JSON */

/* Two digits of 64 a weight. */
static void add_weights(Text *out, const double *weights, int64_t count) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for (int64_t i = 0; i < count; i++) {
        double weight = weights[i] > 0 ? weights[i] : 0; /* NaN is 0 as well */
        int level = weight < 1 ? (int)lround(weight * LEVELS) : LEVELS;
        const char pair[] = {digits[level / 64], digits[level % 64]};
        text_add(out, pair, 2);
    }
}

/* The heads of one layer. */
static void add_group(Maps *m, Text *out, const GraphOutput *output, const OutputArray *map) {
    bool of_encoder = strcmp(output->name, "encoder_attention") == 0;
    bool cross = strcmp(output->name, "cross_attention") == 0;
    int64_t rows = map->shape.dims[1], columns = map->shape.dims[2];
    bool keys_apart = cross || (!of_encoder && input_named(m, "key"));
    const Axis *row = axis_of(m, of_encoder, rows), *column = axis_of(m, of_encoder || keys_apart, columns);
    const char *kind = cross ? "cross attention" : of_encoder ? "attention in the encoder" : "self-attention";
    text_printf(out, "{\"title\":");
    page_string(out, arena_printf(m->arena, "%s, layer %d", kind, output->layer));
    text_printf(out, ",\"maps\":[");
    for (int64_t h = 0; h < output->n_heads; h++) {
        text_printf(out, "%s{\"head\":%lld,\"rows\":%lld,\"columns\":%lld,\"rowLabels\":", h ? ",\n" : "\n",
                    (long long)output->heads[h], (long long)rows, (long long)columns);
        page_string(out, row->name);
        text_printf(out, ",\"columnLabels\":");
        page_string(out, column->name);
        text_printf(out, ",\"weights\":\"");
        add_weights(out, map->data + output->heads[h] * rows * columns, rows * columns);
        text_printf(out, "\"}");
    }
    text_printf(out, "]}");
}

static const char *page_data(Maps *m) {
    Text out = text_new(m->arena);
    int groups = 0;
    text_printf(&out, "{\"groups\":[");
    static const char *const order[] = {"cross_attention", "attention", "encoder_attention"};
    for (int kind = 0; kind < 3; kind++)
        for (int o = 0; o < m->graph->n_outputs; o++) {
            const GraphOutput *output = &m->graph->outputs[o];
            if (output->layer < 0 || strcmp(output->name, order[kind]) != 0) continue;
            text_printf(&out, "%s", groups++ ? ",\n" : "\n");
            add_group(m, &out, output, &m->sequence->outputs[o]);
        }
    if (!groups) fail("this model has no attention to show");
    text_printf(&out, "],\n\"labels\":{");
    for (int i = 0; i < m->n_axes; i++) {
        text_printf(&out, "%s", i ? ",\n" : "\n");
        page_string(&out, m->axes[i].name);
        text_printf(&out, ":[");
        for (int64_t k = 0; k < m->axes[i].count; k++) {
            if (k) text_printf(&out, ",");
            page_string(&out, m->axes[i].labels[k]);
        }
        text_printf(&out, "]");
    }
    text_printf(&out, "}}");
    return out.data;
}

int command_map(int argc, char **argv) {
    Arena *arena = arena_new();
    const char *path, *out = NULL;
    RunOptions run = {0};
    ValueNode *in = NULL, *labels = NULL;
    const Option options[] = {{"--weights", .text = &run.weights}, {"--in", .list = &in},
                              {"--labels", .list = &labels},       {"-o", .text = &out},
                              {"--engine", .text = &run.engine},   {"--target", .text = &run.target},
                              {"--cc", .text = &run.cc},           {"--threads", .text = &run.threads},
                              {"-v", .flag = &run.verbose}};
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, &path, 1);
    run_check(&run, usage);
    if (!out) usage_error(usage, "`-o` is missing");
    Model *model = model_load(arena, path);
    model_turn_on_all(model);
    Module *module = build(arena, model);
    Batch *batch = batch_read(arena, usage, module->forward, in);
    if (batch->count != 1) fail("a page is of one sequence, but the inputs have %lld", (long long)batch->count);
    Maps maps = {.arena = arena, .graph = module->forward, .sequence = batch->sequences};
    for (const ValueNode *node = labels; node; node = node->next) take_labels(&maps, node);
    run_batch(arena, module, &run, batch);
    page_write(arena, out, "map.html", model->name, page_data(&maps));
    arena_free(arena);
    return EXIT_FINE;
}
