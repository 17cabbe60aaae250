/* python_words.c: what a package for Python says of the model's inputs and results, in its docstrings and types. */
#include "python.h"

#include <string.h>

/* Whether NULL stands for the input in the C, or the command line takes it as absent. */
static bool is_optional(const GraphInput *input) {
    return input->optional || input->kind->absent == ABSENT_ZEROS;
}

static void add_dims(Text *out, const Graph *graph, int tensor, int first, const char *rows) {
    const Tensor *t = &graph->tensors[tensor];
    text_printf(out, "[%s", rows);
    for (int d = first; d < t->rank; d++)
        text_printf(out, "%s%lld", d > first || *rows ? ", " : "", (long long)t->dims[d].n);
    text_printf(out, "]");
}

/* Whether an input of pairs has the same rows as queries and as keys. */
static bool is_square(const Graph *graph, const GraphInput *input) {
    const Dim *dims = graph->tensors[input->tensor].dims;
    return dims[0].symbol == dims[1].symbol && (dims[0].symbol || dims[0].n == dims[1].n);
}

/* "tokens: ids [n], 0 to 99" */
static void add_input(Text *out, const Graph *graph, const GraphInput *input) {
    const InputKind *kind = input->kind;
    int64_t least, most;
    text_printf(out, "    %s: ", kind->name);
    switch (kind->rows) {
    case PER_ROW:
        text_printf(out, "%s ", kind->wide ? "integers of 64 bits" : kind->dtype == DTYPE_I64 ? "integers" : "float32");
        add_dims(out, graph, input->tensor, 1, input->of_source ? "m" : "n");
        break;
    case PER_SEQUENCE:
        if (input->kind->role == IN_prefix_length) {
            text_printf(out, "how many first rows are seen by all rows, a number or one a sequence");
            break;
        }
        if (input_is_number(kind)) {
            text_printf(out, "%s, or one a sequence", kind->dtype == DTYPE_I64 ? "an integer" : "a float");
            break;
        }
        text_printf(out, "float32 ");
        add_dims(out, graph, input->tensor, 0, "");
        break;
    case PER_PAIR:
        if (kind->dtype != DTYPE_U8) {
            text_printf(out, "%s [%s]", kind->dtype == DTYPE_I64 ? "integers" : "float32",
                        input->of_source ? "m, m" : is_square(graph, input) ? "n, n" : "n, m");
            break;
        }
        text_printf(out, "booleans [n, %s], true where the row sees the key", is_square(graph, input) ? "n" : "m");
        break;
    }
    if (graph_input_is_ranged(input))
        text_printf(out, ", %g to %g", input->range.low, input->range.high);
    else if (kind->dtype == DTYPE_I64 && kind->role != IN_prefix_length && !kind->wide &&
             graph_input_range(graph, input, &least, &most))
        text_printf(out, ", %lld to %lld", (long long)least, (long long)most);
    if (input_is_own_number(kind) && strcmp(graph->name, "decode") == 0)
        text_printf(out, "; of states without rows");
    if (is_optional(input)) text_printf(out, "; default: %s", kind->absent == ABSENT_THE_KEYS ? "the keys" : "zeros");
    text_printf(out, "\n");
}

static const char *rows_of_map(const Graph *graph, const GraphOutput *output) {
    const Tensor *t = &graph->tensors[output->tensor];
    const bool of_source = output->role == OUT_encoder_attention;
    if (of_source) return "m, m";
    return t->dims[1].symbol == t->dims[2].symbol && t->dims[1].n == t->dims[2].n ? "n, n" : "n, m";
}

bool python_maps_alike(const Graph *graph, OutputRole role) {
    int64_t heads = 0;
    for (int o = 0; o < graph->n_outputs; o++) {
        const GraphOutput *out = &graph->outputs[o];
        if (out->layer < 0 || out->role != role) continue;
        if (heads && heads != out->n_heads) return false;
        heads = out->n_heads;
    }
    return true;
}

static void add_map(Text *out, const Graph *graph, const GraphOutput *map) {
    int layers = 0;
    for (int o = 0; o < graph->n_outputs; o++) {
        const GraphOutput *other = &graph->outputs[o];
        if (other->role != map->role) continue;
        layers++;
        if (!python_maps_alike(graph, map->role))
            text_printf(out, "    %s.%d: float32 [%lld, %s], of layer %d\n", map->name, other->layer,
                        (long long)other->n_heads, rows_of_map(graph, map), other->layer);
    }
    if (python_maps_alike(graph, map->role))
        text_printf(out, "    %s: float32 [%d, %lld, %s], by layer and head\n", map->name, layers,
                    (long long)map->n_heads, rows_of_map(graph, map));
}

static void add_output(Text *out, const Graph *graph, const GraphOutput *output) {
    if (output->layer >= 0) {
        if (graph_output_of(graph, output->role) == output) add_map(out, graph, output);
        return;
    }
    text_printf(out, "    %s: float32 ", output->name);
    const char *rows = output->of_sequence ? "" : output->role == OUT_encoder_hidden ? "m" : "n";
    add_dims(out, graph, output->tensor, 1, rows);
    text_printf(out, "\n");
}

static void add_lengths(Text *out, const Program *program) {
    const Plan *plan = program->entries[ENTRY_FORWARD];
    text_printf(out, "n is %s%lld", plan->seq.exact ? "" : "1 to ", (long long)plan->seq.n);
    if (plan->source_seq.n)
        text_printf(out, ", m, the %s, %s%lld", program->module->model->alone ? "keys" : "rows of the source",
                    plan->source_seq.exact ? "" : "1 to ", (long long)plan->source_seq.n);
    text_printf(out, ".\n");
}

const char *python_shapes(const Package *package) {
    const Graph *g = package->c->module->entries[ENTRY_FORWARD];
    Text out = text_new(package->arena);
    text_printf(&out, "Inputs of one sequence:\n");
    for (int i = 0; i < g->n_inputs; i++) add_input(&out, g, &g->inputs[i]);
    if (*python_masked(package, ENTRY_FORWARD))
        text_printf(&out, "    attention_mask: ones, then zeros; zeros are padding of %s\n",
                    strcmp(python_masked(package, ENTRY_FORWARD), "ROWS") == 0 ? "the sequence" : "the source");
    text_printf(&out, "Results:\n");
    for (int o = 0; o < g->n_outputs; o++) add_output(&out, g, &g->outputs[o]);
    add_lengths(&out, package->c->program);
    return out.data;
}

void python_set_results(const Package *package, TemplateVars *vars) {
    const Graph *g = package->c->module->entries[ENTRY_FORWARD];
    TemplateList *results = vars_list(vars, "results");
    for (int o = 0; o < g->n_outputs; o++) {
        const GraphOutput *output = &g->outputs[o];
        const bool apart = output->layer >= 0 && !python_maps_alike(g, output->role);
        if (!apart && graph_output_of(g, output->role) != output) continue;
        const char *name = apart ? arena_printf(package->arena, "%s.%d", output->name, output->layer) : output->name;
        vars_text(list_record(results), "name", name);
    }
}

void python_set_arguments(const Package *package, EntryKind entry, TemplateVars *vars) {
    const Graph *g = package->c->program->entries[entry]->graph;
    TemplateList *arguments = vars_list(vars, "arguments");
    for (int optional = 0; optional < 2; optional++)
        for (int i = 0; i < g->n_inputs; i++) {
            if (is_optional(&g->inputs[i]) != (optional == 1)) continue;
            TemplateVars *record = list_record(arguments);
            vars_text(record, "name", g->inputs[i].kind->name);
            vars_int(record, "optional", optional);
            vars_int(record, "own_number", input_is_own_number(g->inputs[i].kind));
        }
}

const char *python_signature(const Package *package, EntryKind entry) {
    const Graph *g = package->c->program->entries[entry]->graph;
    Text out = text_new(package->arena);
    for (int optional = 0; optional < 2; optional++)
        for (int i = 0; i < g->n_inputs; i++)
            if (is_optional(&g->inputs[i]) == (optional == 1))
                text_printf(&out, "%s%s%s", out.size ? ", " : "", g->inputs[i].kind->name, optional ? "=None" : "");
    if (*python_masked(package, entry)) text_printf(&out, ", attention_mask=None");
    return out.data;
}

const char *python_numbers(const Package *package, EntryKind entry) {
    Text out = text_new(package->arena);
    const Graph *g = entry == ENTRY_COUNT ? NULL : package->c->program->entries[entry]->graph;
    for (int i = 0; g && i < g->n_inputs; i++)
        if (input_is_own_number(g->inputs[i].kind)) text_printf(&out, ", %s=None", g->inputs[i].kind->name);
    return out.size ? out.data : "";
}

const char *python_masked(const Package *package, EntryKind entry) {
    const Graph *g = package->c->program->entries[entry]->graph;
    bool has_source = false;
    for (int i = 0; i < g->n_inputs; i++) has_source |= g->inputs[i].of_source;
    for (int i = 0; i < g->n_inputs && entry != ENTRY_DECODE; i++) {
        const GraphInput *input = &g->inputs[i];
        const InputRole role = input->kind->role;
        if (role_is_masked(role) && input->of_source == has_source) return has_source ? "SOURCE_ROWS" : "ROWS";
    }
    return "";
}
