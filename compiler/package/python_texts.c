/* python_texts.c: the texts in the Python files of a package. */
#include "python.h"

#include <string.h>

PythonUse python_use(const Package *package) {
    const Program *program = package->c->program;
    const Model *model = package->c->model;
    const Plan *decode = program->entries[ENTRY_DECODE], *forward = program->entries[ENTRY_FORWARD];
    const Graph *g = forward->graph;
    PythonUse use = {.states = decode, .tokenizes = package->tokenizer};
    for (int o = 0; o < g->n_outputs; o++)
        if (g->outputs[o].role == OUT_pooled) use.width = g->tensors[g->outputs[o].tensor].dims[1].n;
    use.writes = decode && model->head.logits && graph_input(decode->graph, IN_tokens);
    use.embeds = package->tokenizer && use.width && !forward->seq.exact && python_reads_tokens(model, g);
    use.hears = reads_sound(model);
    use.transcribes = use.writes && transcribes(model);
    return use;
}

static const char *quoted_or_none(const Package *package, const char *text) {
    return text ? arena_printf(package->arena, "\"%s\"", text) : "None";
}

const char *python_filled(const Package *package, const char *name) {
    const char *model = package->c->model->name;
    const PythonUse use = python_use(package);
    const char *const words[] = {
        "@NAME@", model,
        "@VERSION@", ATTNC_VERSION,
        "@STATE@", use.states ? ", State" : "",
        "@STATE_NAME@", use.states ? "\"State\", " : "",
        "@WEIGHTS@", quoted_or_none(package, package->weights ? arena_printf(package->arena, "%s.attnw", model) : NULL),
        "@TOKENIZER@", quoted_or_none(package, package->tokenizer),
        "@LIBRARIES@", package->tokenizer ? "[\"onig\", \"cjson\", \"utf8proc\"]" : "[]", NULL};
    return text_filled(package->arena, embedded_file(name), words);
}

/* Puts `indent` before each line, and drops the end of the last line. */
static const char *indented(const Package *package, const char *indent, const char *text) {
    Text out = text_new(package->arena);
    for (size_t size; *text; text += size + (text[size] == '\n')) {
        size = strcspn(text, "\n");
        text_printf(&out, "%s%s%.*s", out.size ? "\n" : "", indent, (int)size, text);
    }
    return out.data;
}

/* The name of the distribution, which ends with a letter or a digit. */
static const char *distribution(const Package *package) {
    const char *name = package->c->model->name;
    size_t size = strlen(name);
    while (size > 1 && name[size - 1] == '_') size--;
    return arena_copy(package->arena, name, size);
}

void python_set_stub(const Package *package, const PythonUse *use, TemplateVars *vars) {
    vars_int(vars, "embeds", use->embeds);
    vars_int(vars, "hears", use->hears);
    vars_int(vars, "transcribes", use->transcribes);
    vars_int(vars, "weights", package->weights);
    vars_int(vars, "width", use->width);
    vars_text(vars, "shapes", indented(package, "        ", python_shapes(package)));
    vars_text(vars, "distribution", distribution(package));
    python_set_results(package, vars);
}
