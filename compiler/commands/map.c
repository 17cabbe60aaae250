/* map.c: attnc map writes a page that shows the attention of one sequence in every layer and head. */
#include "map.h"
#include "text_input.h"

#include <math.h>
#include <string.h>

static const char usage[] =
    "attnc map SPEC --weights F[,F…]|random:SEED [--in NAME=F.npy …] [--labels [NAME=]F …] [--show NAME=F …]\n"
    "                 [--tokenizer F [--text T [--target-text T]]] -o F.html\n"
    "                 [--engine compiled|interp] [--target T] [--cc CC] [--threads N] [-v]\n" HELP_WEIGHTS
    "\n"
    "  --in NAME=F.npy      an input of one sequence\n"
    "  --labels [NAME=]F    file with a line for each row of the input NAME, its symbol; without labels, the names of\n"
    "                       tokens in the tokenizer's file are shown, or ids, or numbers of rows\n"
    "  --show NAME=F        text that is shown above the maps under that name, for instance the input or the answer\n"
    "  -o F.html            the page\n" HELP_TEXTS HELP_TARGET_TEXT HELP_TOKENIZER HELP_ENGINE HELP_TARGET
    HELP_CC HELP_THREADS HELP_VERBOSE;

enum { MOST_LABELS = 64 << 20, MOST_TEXT = 1 << 20 };

/* The labels of an axis: the symbols of an input, or numbers. */
typedef struct Axis {
    const char *name; /* tokens, source, target, query, … */
    const char **labels;
    int64_t count;
} Axis;

typedef struct Maps {
    Arena *arena;
    const Words *words; /* NULL: ids have no names */
    const Graph *graph;
    const Sequence *sequence;
    Axis *axes;
    int n_axes, room_axes;
} Maps;

/* ---------------------------------------------------------------- symbols */

/* Reads the lines of a file, which must be as many as the input has rows. */
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
        fail("%s has %s, but `%s` has %s: a symbol a line", path, counted(m->arena, lines, "line"), input,
             counted(m->arena, rows, "row"));
    return labels;
}

/* Labels of ids, their names where a tokenizer has some, or of row numbers when the input has no ids. */
static const char **numbers(Maps *m, const InputArray *input, int64_t rows) {
    const char **labels = arena_array(m->arena, (size_t)rows, sizeof *labels);
    const int64_t *ids = input && input->dtype == DTYPE_I64 && input->rows == rows ? input->data : NULL;
    const bool named = ids && m->words && (input->role == IN_tokens || input->role == IN_source ||
                                           input->role == IN_target);
    for (int64_t i = 0; i < rows; i++) {
        labels[i] = named ? words_name(m->words, ids[i]) : NULL;
        if (!labels[i]) labels[i] = arena_printf(m->arena, "%lld", (long long)(ids ? ids[i] : i));
    }
    return labels;
}

static const char *name_of(const Maps *m, const InputArray *input) {
    return graph_input(m->graph, input->role)->kind->name;
}

static const InputArray *input_named(const Maps *m, const char *name) {
    const GraphInput *input = graph_input_named(m->graph, name);
    return input ? sequence_input(m->sequence, input->kind->role) : NULL;
}

/* The input whose rows are the rows of a map, of the source or of the target. */
static const InputArray *input_of(const Maps *m, bool of_source) {
    for (int i = 0; i < m->graph->n_inputs; i++) {
        const GraphInput *input = &m->graph->inputs[i];
        const InputArray *given = sequence_input(m->sequence, input->kind->role);
        if (given && input->of_source == of_source && given->dtype != DTYPE_U8) return given;
    }
    return NULL;
}

static int add_axis(Maps *m, const char *name, const char **labels, int64_t count) {
    m->axes = arena_grow(m->arena, m->axes, m->n_axes, &m->room_axes, sizeof *m->axes);
    m->axes[m->n_axes] = (Axis){name, labels, count};
    return m->n_axes++;
}

/* Returns the index of an axis. Axes with the same name may differ in their count. */
static int axis_of(Maps *m, bool of_source, int64_t count) {
    const InputArray *input = input_of(m, of_source);
    const char *name = input && input->rows == count ? name_of(m, input) : of_source ? "source rows" : "rows";
    for (int i = 0; i < m->n_axes; i++)
        if (strcmp(m->axes[i].name, name) == 0 && m->axes[i].count == count) return i;
    return add_axis(m, name, numbers(m, input, count), count);
}

static void take_labels(Maps *m, const ValueNode *node) {
    const char *equal = strchr(node->text, '='), *path = equal ? equal + 1 : node->text;
    const InputArray *input = equal ? NULL : input_of(m, false);
    if (equal) input = input_named(m, arena_copy(m->arena, node->text, (size_t)(equal - node->text)));
    if (!input) fail("`--labels %s` names no input of this call", node->text);
    if (!equal && input_of(m, true))
        fail("there are two inputs with rows: say `--labels %s=%s`", name_of(m, input), path);
    for (int i = 0; i < m->n_axes; i++)
        if (strcmp(m->axes[i].name, name_of(m, input)) == 0)
            fail("`--labels %s`: the symbols of `%s` are given already", node->text, name_of(m, input));
    add_axis(m, name_of(m, input), read_labels(m, path, name_of(m, input), input->rows), input->rows);
}

/* ---------------------------------------------------------------- the page's data, as JSON */

/* The sums of the rows of one layer's exported heads. */
typedef struct Sums {
    double least, most; /* of rows to which a key is visible */
    int64_t seeing, blind, not_numbers;
} Sums;

static Sums sums_of(const GraphOutput *output, const OutputArray *map) {
    Sums sums = {.least = INFINITY};
    int64_t rows = map->shape.dims[1], columns = map->shape.dims[2];
    for (int64_t h = 0; h < output->n_heads; h++)
        for (int64_t i = 0; i < rows; i++) {
            const double *row = map->data + (output->heads[h] * rows + i) * columns;
            double sum = 0;
            bool sees = false;
            for (int64_t j = 0; j < columns; j++) sum += row[j], sees |= row[j] != 0;
            if (!isfinite(sum)) sums.not_numbers++;
            else if (!sees) sums.blind++;
            else sums.seeing++, sums.least = fmin(sums.least, sum), sums.most = fmax(sums.most, sum);
        }
    return sums;
}

static bool has_sink(const Graph *graph, const GraphOutput *output) {
    const Op *op = &graph->ops[graph->tensors[output->tensor].op];
    return op->kind == OP_softmax && op->a.has_sink;
}

static bool is_weighed(const Graph *graph, const GraphOutput *output, Weighing weighing) {
    return graph->ops[graph->tensors[output->tensor].op].a.weighing == weighing;
}

/* A note about the sums of one layer's rows; "" when all are 1. */
static const char *group_note(Maps *m, const GraphOutput *output, const Sums *sums) {
    Text out = text_new(m->arena);
    if (is_weighed(m->graph, output, WEIGHING_SIGMOID) && sums->seeing)
        text_printf(&out, "No sum divides these weights: the weights of a row sum to between %.4g and %.4g, rounded. ",
                    sums->least, sums->most);
    if (has_sink(m->graph, output) && sums->seeing)
        text_printf(&out, "A learned sink takes a part of each row: the weights of a row sum to less than 1, here to "
                    "between %.4g and %.4g, rounded. ", sums->least, sums->most);
    if (sums->blind)
        text_printf(&out, "%lld %s no weight other than 0. ", (long long)sums->blind,
                    sums->blind == 1 ? "row has" : "rows have");
    if (sums->not_numbers)
        text_printf(&out, "%lld %s weights that are no numbers (NaN) and are shown as 0. ",
                    (long long)sums->not_numbers, sums->not_numbers == 1 ? "row has" : "rows have");
    if (out.size) out.data[out.size - 1] = 0;
    return out.data;
}

/* Two maps of a kind in one layer are told apart by the names of the attention's tensors: attention2 is a second
 * sublayer, attention_second the second softmax of `differential`. */
static const char *group_title(Maps *m, const GraphOutput *output, const char *kind) {
    int alike = 0;
    for (int o = 0; o < m->graph->n_outputs; o++)
        alike += m->graph->outputs[o].layer == output->layer && m->graph->outputs[o].role == output->role;
    if (alike < 2) return arena_printf(m->arena, "%s, layer %d", kind, output->layer);
    const char *part = m->graph->tensors[output->tensor].site.part, *last = strrchr(part, '_');
    return arena_printf(m->arena, "%s (%.*s), layer %d", kind, (int)(last - part), part, output->layer);
}

/* Adds the heads of one layer. */
static void add_group(Maps *m, Text *out, const GraphOutput *output, const OutputArray *map, const Sums *sums) {
    bool of_encoder = output->role == OUT_encoder_attention;
    bool cross = output->role == OUT_cross_attention;
    int64_t rows = map->shape.dims[1], columns = map->shape.dims[2];
    bool keys_apart = cross || (!of_encoder && sequence_input(m->sequence, IN_key));
    int row = axis_of(m, of_encoder, rows), column = axis_of(m, of_encoder || keys_apart, columns);
    const char *kind = cross ? "cross attention" : of_encoder ? "attention in the encoder" : "self-attention";
    page_member(out, "{", "title", group_title(m, output, kind));
    text_printf(out, ",\"layer\":%d", output->layer);
    page_member(out, ",", "note", group_note(m, output, sums));
    Arena *scratch = arena_new();
    const uint8_t *hidden = map_hidden(scratch, m->graph, m->sequence, output, map->shape);
    page_member(out, ",", "hidden", hidden ? map_pack_bits(scratch, hidden, rows * columns) : NULL);
    arena_clear(scratch);
    text_printf(out, ",\"maps\":[");
    for (int64_t h = 0; h < output->n_heads; h++) {
        MapWeights packed = map_pack(scratch, map->data + output->heads[h] * rows * columns, rows, columns);
        text_printf(out, "%s{\"head\":%lld,\"rows\":%lld,\"columns\":%lld,", h ? ",\n" : "\n",
                    (long long)output->heads[h], (long long)rows, (long long)columns);
        text_printf(out, "\"rowAxis\":%d,\"columnAxis\":%d,\"greatest\":%.17g,\"weights\":\"", row, column,
                    packed.greatest);
        text_add(out, packed.packed, strlen(packed.packed));
        text_printf(out, "\"}");
        arena_clear(scratch);
    }
    arena_free(scratch);
    text_printf(out, "]}");
}

/* The text about all layers: the sum of a row, and the precision of the weights. */
static const char *about(Maps *m, int with_sink, int without, bool sigmoid) {
    const char *sums = sigmoid      ? "a row's weights sum to 1, but where a note says otherwise"
                       : !with_sink ? "a row's weights sum to 1"
                       : !without ? "a row's weights sum to less than 1, because a learned sink takes the rest"
                                  : "a row's weights sum to 1, in layers with a learned sink to less";
    return arena_printf(m->arena, "Each row is a symbol that looks, each column one that is looked at; %s. A stronger "
                        "colour is a greater weight. Weights are kept in 8 bits: a step is 1/255 of the greatest "
                        "weight of a map, and smaller in rows whose own greatest would be less than %d steps. A weight "
                        "is off by half a step at most.", sums, ROW_LEVELS);
}

static void add_axes(Maps *m, Text *out) {
    for (int i = 0; i < m->n_axes; i++) {
        page_member(out, i ? ",\n{" : "\n{", "name", m->axes[i].name);
        text_printf(out, ",\"labels\":[");
        for (int64_t k = 0; k < m->axes[i].count; k++) {
            if (k) text_printf(out, ",");
            page_string(out, m->axes[i].labels[k]);
        }
        text_printf(out, "]}");
    }
}

/* Adds the texts of --show without their final newlines. */
static void add_texts(Maps *m, Text *out, const ValueNode *show) {
    for (const ValueNode *node = show; node; node = node->next) {
        char *name;
        const char *path = split_assignment(m->arena, usage, "--show", node->text, &name);
        size_t size = 0;
        char *text = file_read(m->arena, path, MOST_TEXT, &size);
        while (size && (text[size - 1] == '\n' || text[size - 1] == '\r')) size--;
        page_member(out, node == show ? "\n{" : ",\n{", "name", name);
        page_member(out, ",", "text", arena_copy(m->arena, text, size));
        text_printf(out, "}");
    }
}

static const char *page_data(Maps *m, const char *texts) {
    Text out = text_new(m->arena);
    int groups = 0, with_sink = 0;
    bool sigmoid = false;
    text_printf(&out, "{\"texts\":[%s],\n\"groups\":[", texts);
    static const OutputRole order[] = {OUT_cross_attention, OUT_attention, OUT_encoder_attention};
    for (int kind = 0; kind < 3; kind++)
        for (int o = 0; o < m->graph->n_outputs; o++) {
            const GraphOutput *output = &m->graph->outputs[o];
            if (output->layer < 0 || output->role != order[kind]) continue;
            text_printf(&out, "%s", groups++ ? ",\n" : "\n");
            with_sink += has_sink(m->graph, output);
            sigmoid |= is_weighed(m->graph, output, WEIGHING_SIGMOID);
            if (is_weighed(m->graph, output, WEIGHING_NONE))
                fail_status(EXIT_CANNOT, "`softmax none` has weights below 0, which a map does not show");
            Sums sums = sums_of(output, &m->sequence->outputs[o]);
            add_group(m, &out, output, &m->sequence->outputs[o], &sums);
        }
    if (!groups) fail("this model has no attention to show");
    page_member(&out, "],\n", "about", about(m, with_sink, groups - with_sink, sigmoid));
    text_printf(&out, ",\n\"axes\":[");
    add_axes(m, &out);
    text_printf(&out, "]}");
    return out.data;
}

void command_map(Arena *arena, int argc, char **argv) {
    const char *path, *out = NULL;
    RunOptions run = {0};
    ValueNode *in = NULL, *labels = NULL, *show = NULL;
    TextOptions text = {0};
    const Option options[] = {{"--weights", .text = &run.weights}, {"--in", .list = &in},
                              {"--labels", .list = &labels},       {"--show", .list = &show},
                              {"-o", .text = &out},
                              {"--engine", .text = &run.engine},   {"--target", .text = &run.target},
                              {"--cc", .text = &run.cc},           {"--threads", .text = &run.threads},
                              {"-v", .flag = &run.verbose},        TEXT_OPTIONS(text)};
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, &path, 1);
    run_check(&run, usage);
    if (!out) usage_error(usage, "`-o` is missing");
    Compilation c = spec_load(arena, path, (Precision){.weights = {.dtype = DTYPE_F32}}, STAGE_MODEL);
    model_export_all(c.model);
    spec_compile(&c, STAGE_REWRITE);
    const Words *words = text_words(&c, usage, &text, run.cc);
    const NamedFile *inputs = text_inputs(&c, usage, &text, words, input_files(arena, usage, in), false);
    Batch *batch = batch_read(arena, c.module->entries[ENTRY_FORWARD], inputs);
    if (batch->count != 1) fail("a page is of one sequence, but the inputs have %lld", (long long)batch->count);
    Maps maps = {.arena = arena, .words = words, .graph = c.module->entries[ENTRY_FORWARD],
                 .sequence = batch->sequences};
    for (const ValueNode *node = labels; node; node = node->next) take_labels(&maps, node);
    Text texts = text_new(arena); /* read before the model runs, so that a missing file is found early */
    add_texts(&maps, &texts, show);
    run_batch(&c, &run, batch);
    page_write(arena, out, "map.html", c.model->name, page_data(&maps, texts.data));
}
