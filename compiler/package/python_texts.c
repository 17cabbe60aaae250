/* python_texts.c: the texts in the Python files of a package. */
#include "python.h"

#include <ctype.h>
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

/* A text with the values of its words @LIKE_THIS@, which `words` has in pairs, ended by NULL. */
static const char *filled(const Package *package, const char *name, const char *const *words) {
    const char *at = embedded_file(name);
    Text out = text_new(package->arena);
    for (const char *mark; (mark = strchr(at, '@')); ) {
        const char *end = mark + 1;
        while (isupper((unsigned char)*end) || *end == '_') end++;
        const char *const *word = words;
        while (*word && (strlen(*word) != (size_t)(end - mark - 1) || strncmp(*word, mark + 1, strlen(*word)) != 0))
            word += 2;
        const bool known = *end == '@' && *word;
        text_add(&out, at, (size_t)((known ? mark : mark + 1) - at));
        if (known) text_printf(&out, "%s", word[1]);
        at = known ? end + 1 : mark + 1;
    }
    text_printf(&out, "%s", at);
    return out.data;
}

static const char *quoted_or_none(const Package *package, const char *text) {
    return text ? arena_printf(package->arena, "\"%s\"", text) : "None";
}

const char *python_init(const Package *package) {
    const char *name = package->c->model->name;
    const PythonUse use = python_use(package);
    const char *const words[] = {
        "NAME", name,
        "VERSION", ATTNC_VERSION,
        "STATE", use.states ? ", State" : "",
        "STATE_NAME", use.states ? "\"State\", " : "",
        "WEIGHTS", quoted_or_none(package, package->weights ? arena_printf(package->arena, "%s.attnw", name) : NULL),
        "TOKENIZER", quoted_or_none(package, package->tokenizer), NULL};
    return filled(package, "python_init.py.tmpl", words);
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

const char *python_setup(const Package *package) {
    const char *const words[] = {"NAME", package->c->model->name,
                                 "LIBRARIES", package->tokenizer ? "[\"onig\", \"cjson\", \"utf8proc\"]" : "[]", NULL};
    return filled(package, "python_setup.py.tmpl", words);
}
