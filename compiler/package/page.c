/* page.c: a model as a page for browsers: what it is for, and the texts of the page. */
#include "../emit/emit.h"
#include "../emit/template.h"
#include "page.h"

enum { MOST_BYTES = 1 << 18 };

/* The word for each task in templates and in model.js, and the texts of its page. */
static const struct {
    const char *word, *input, *lead, *run, *output;
} tasks[] = {
    [PAGE_SIMILARITY] = {"similarity", "Texts, one on each line",
                         "Compares texts by meaning. The first line is compared with all others.", "Compare",
                         "Similarity"},
    [PAGE_CLASSIFY] = {"classify", "Texts, one on each line",
                       "Sorts texts into classes. A tab within a line separates the two texts of a pair.", "Classify",
                       "Classes"},
    [PAGE_TAG] = {"tag", "Text", "Finds a class for each token of a text.", "Classify", "Classes"},
    [PAGE_GENERATE] = {"generate", "Beginning", "Continues a text, token by token.", "Continue", "Text"},
    [PAGE_TRANSLATE] = {"translate", "Text", "Reads a text and writes what it makes of it.", "Translate", "Answer"}};

/* ---------------------------------------------------------------- what a page is for */

static _Noreturn void refuse(const Compilation *c, const char *why) {
    fail_status(EXIT_CANNOT, "%s: there is no page for this model: %s", c->source->path, why);
}

/* Whether the page has a field for the numbers of an input. */
static bool is_asked(const InputKind *kind) { return role_is_of_rows(kind->role) || input_is_number(kind); }

static void check_inputs(const Compilation *c) {
    enum { MOST_PAIRED = 4096 };
    const Graph *forward = c->module->entries[ENTRY_FORWARD];
    for (int i = 0; i < forward->n_inputs; i++) {
        const GraphInput *input = &forward->inputs[i];
        const InputRole role = input->kind->role;
        if (role == IN_tokens || role == IN_source || role == IN_target) continue;
        if (role == IN_segments) continue; /* zeros, or the segments of a pair */
        if (!is_asked(input->kind))
            refuse(c, arena_printf(c->arena, "its input `%s` is no text", input->kind->name));
        if (input->kind->rows == PER_PAIR && forward->tensors[input->tensor].dims[0].n > MOST_PAIRED)
            refuse(c, arena_printf(c->arena, "its input `%s` is of pairs of more than %d rows", input->kind->name,
                                   MOST_PAIRED));
    }
}

PageTask page_task(const Compilation *c) {
    const Model *m = c->model;
    const Head *head = &m->head;
    check_inputs(c);
    if (m->decoder && head->logits) {
        if (!c->module->entries[ENTRY_DECODE]) refuse(c, "its decoder has no state to write a text with");
        if (m->encoder && m->start < 0) refuse(c, "the spec has no `start`, the token that begins its decoder's text");
        return m->encoder ? PAGE_TRANSLATE : PAGE_GENERATE;
    }
    if (m->encoder && m->decoder) refuse(c, "it has a decoder, and no logits to write with");
    if (head->logits) refuse(c, "its head gives the token of each row");
    if (head->classifier) return head->classifier_rows ? PAGE_TAG : PAGE_CLASSIFY;
    if (head->pool == POOL_NONE && !head->pooler)
        refuse(c, "its head gives rows, and a page shows a vector of each text, as with `head pool mean l2`");
    return PAGE_SIMILARITY;
}

/* ---------------------------------------------------------------- inputs of numbers */

static const char *const counts[] = {[PER_ROW] = "rows", [PER_SEQUENCE] = "number", [PER_PAIR] = "pairs"};

/* Whether the numbers of an input are of the source that an encoder reads for a decoder. */
static bool is_of_source(const Page *page, const GraphInput *input) {
    return graph_input(page->encode, input->kind->role) != NULL;
}

/* The least and the greatest number of an input in C and in JavaScript; false where all numbers of its type will do. */
static bool range_of(const Page *page, const GraphInput *input, const char **least, const char **most) {
    const bool real = input->kind->dtype == DTYPE_F32;
    const bool ranged = real ? graph_input_is_ranged(input) : input->least != 0 || input->most != 0;
    if (!ranged || input->kind->wide) return false;
    *least = real ? number_text(page->arena, input->range.low)
                  : arena_printf(page->arena, "%lld", (long long)input->least);
    *most = real ? number_text(page->arena, input->range.high)
                 : arena_printf(page->arena, "%lld", (long long)input->most);
    return true;
}

/* What the field of an input asks for: "whole numbers from 0 to 3, one for each token". */
static const char *asked_for(const Page *page, const GraphInput *input) {
    static const char *const each[] = {[PER_ROW] = ", one for each token", [PER_SEQUENCE] = "",
                                       [PER_PAIR] = ", row by row for each pair of tokens"};
    const bool one = input->kind->rows == PER_SEQUENCE, real = input->kind->dtype == DTYPE_F32;
    const char *least, *most, *of = each[input->kind->rows];
    const char *number = arena_printf(page->arena, "%s%snumber%s", one ? "a " : "", real ? "" : "whole ",
                                      one ? "" : "s");
    if (!range_of(page, input, &least, &most)) return arena_printf(page->arena, "%s%s", number, of);
    return arena_printf(page->arena, "%s from %s to %s%s", number, least, most, of);
}

/* The list `given` of templates: {name, array, type, rows, of_source, asked}. */
static void set_given(const Page *page, TemplateVars *vars) {
    TemplateList *list = vars_list(vars, "given");
    bool of_text = false;
    for (int i = 0; i < page->forward->n_inputs; i++) {
        const GraphInput *input = &page->forward->inputs[i];
        if (!is_asked(input->kind)) continue;
        TemplateVars *one = list_record(list);
        vars_text(one, "name", input->kind->name);
        vars_text(one, "array", input->kind->array);
        vars_text(one, "type", input_c_type(input->kind));
        vars_text(one, "rows", counts[input->kind->rows]);
        vars_int(one, "of_source", is_of_source(page, input));
        vars_text(one, "asked", asked_for(page, input));
        of_text |= !is_of_source(page, input);
    }
    vars_int(vars, "given_of_text", of_text);
}

/* Describes the inputs in model.js. `optional`: an empty field stands for 0. `counts`: after the last number that a
 * text states, the numbers go on by one a row, since positions read them. */
static void describe_given(const Page *page, Text *out) {
    bool any = false;
    text_printf(out, ",\n  \"inputs\": [");
    for (int i = 0; i < page->forward->n_inputs; i++) {
        const GraphInput *input = &page->forward->inputs[i];
        const RowInput *own = model_row_input(page->model, input->kind->role);
        const char *least, *most;
        if (!is_asked(input->kind)) continue;
        text_printf(out, "%s\n    {\"name\": \"%s\", \"of\": \"%s\", \"type\": \"%s\"", any ? "," : "",
                    input->kind->name, counts[input->kind->rows],
                    input->kind->dtype == DTYPE_F32 ? "real" : input->kind->wide ? "wide" : "whole");
        if (range_of(page, input, &least, &most)) text_printf(out, ", \"least\": %s, \"most\": %s", least, most);
        text_printf(out, ", \"optional\": %s, \"source\": %s, \"counts\": %s}",
                    input->kind->absent == ABSENT_ZEROS ? "true" : "false",
                    is_of_source(page, input) ? "true" : "false", own && own->counts ? "true" : "false");
        any = true;
    }
    text_printf(out, "]");
}

/* ---------------------------------------------------------------- the C of a module */

bool page_writes(const Page *page) { return page->task == PAGE_GENERATE || page->task == PAGE_TRANSLATE; }

const char *page_module(const Compilation *c, const Page *page) {
    const Model *m = page->model;
    const bool pooled = page->task == PAGE_SIMILARITY;
    TemplateVars *vars = vars_new(page->arena, NULL);
    vars_text(vars, "p", m->name);
    vars_text(vars, "P", upper_case(page->arena, m->name));
    vars_text(vars, "version", ATTNC_VERSION);
    vars_text(vars, "output", pooled ? "pooled" : "logits");
    vars_text(vars, "OUTPUT", pooled ? "POOLED" : "LOGITS");
    vars_int(vars, "rows", page->task == PAGE_TAG);
    vars_int(vars, "writes", page_writes(page));
    vars_int(vars, "translates", page->task == PAGE_TRANSLATE);
    vars_int(vars, "segments", project_text_stack(m)->segments > 1);
    vars_int(vars, "heads", page->task == PAGE_TRANSLATE
                                ? graph_output_heads(c->module->entries[ENTRY_DECODE], OUT_cross_attention)
                                : 0);
    set_search(page->arena, m, vars);
    set_given(page, vars);
    return template_expanded(page->arena, "page_module.c.tmpl", MOST_BYTES, "the C of a page", vars);
}

/* ---------------------------------------------------------------- texts */

/* What the settings of a search are at first: {name, value}, ended by NULL. */
static const char *const *settings_of(const Page *page) {
    const Generation *g = &page->model->generation;
    const double heat = g->sample ? generation_temperature(g) : 0;
    const struct {
        const char *name;
        double value;
    } all[] = {{"temperature", heat}, {"top_k", (double)g->top_k}, {"top_p", g->top_p}, {"min_p", g->min_p},
               {"beams", (double)g->beams}, {"max_new", (double)g->max_new}, {"max_length", (double)g->max_length}};
    enum { COUNT = sizeof all / sizeof *all };
    const char **settings = arena_array(page->arena, 2 * COUNT + 1, sizeof *settings);
    for (int i = 0; i < COUNT; i++) {
        settings[2 * i] = all[i].name;
        settings[2 * i + 1] = number_text(page->arena, all[i].value);
    }
    return settings;
}

/* What the page is told of its model, as a module of JavaScript. */
static const char *described(const Page *page) {
    const Model *m = page->model;
    Text out = text_new(page->arena);
    text_printf(&out, "// model.js: what the page knows of its model. Made by attnc %s.\nexport const model = {\n",
                ATTNC_VERSION);
    text_printf(&out, "  \"name\": \"%s\",\n  \"task\": \"%s\",\n", m->name, tasks[page->task].word);
    text_printf(&out, "  \"weights\": \"%s.attnw\",\n  \"bytes\": %lld,\n", m->name, (long long)page->weights_bytes);
    text_printf(&out, "  \"simd\": \"%s_simd.wasm\",\n  \"scalar\": \"%s_scalar.wasm\",\n", m->name, m->name);
    text_printf(&out, "  \"vocab\": %lld,\n  \"start\": %lld,\n  \"end\": [",
                (long long)project_text_stack(m)->vocab, (long long)m->start);
    for (int64_t i = 0; i < m->n_end; i++) text_printf(&out, "%s%lld", i ? ", " : "", (long long)m->end[i]);
    text_printf(&out, "],\n  \"search\": {");
    for (const char *const *s = settings_of(page); *s; s += 2)
        text_printf(&out, "\"%s\": %s%s", s[0], s[1], s[2] ? ", " : "");
    text_printf(&out, "},\n  \"labels\": [");
    for (int64_t i = 0; page->labels && i < m->head.classifier; i++) {
        text_printf(&out, "%s", i ? ", " : "");
        text_quote(&out, page->labels[i], "");
    }
    text_printf(&out, "]");
    describe_given(page, &out);
    text_printf(&out, ",\n  \"prompt\": ");
    text_quote(&out, text_prompt(&m->text), "");
    text_printf(&out, ",\n  \"rules\": {\"lower_case\": %s, \"truncate_left\": %s",
                m->text.lower_case ? "true" : "false", m->text.truncate_left ? "true" : "false");
    text_printf(&out, "},\n  \"tokenizer\": %s%s%s,\n  \"patterns\": %s\n};\n", page->tokenizer->path ? "\"" : "",
                page->tokenizer->path ? page->tokenizer->name : "null", page->tokenizer->path ? "\"" : "",
                page->tokenizer->path ? page_patterns(page->arena, page->tokenizer) : "{}");
    return out.data;
}

static const char *index_of(const Page *page) {
    TemplateVars *vars = vars_new(page->arena, NULL);
    vars_text(vars, "name", page->model->name);
    vars_text(vars, "task", tasks[page->task].word);
    vars_text(vars, "input", tasks[page->task].input);
    vars_text(vars, "lead", tasks[page->task].lead);
    vars_text(vars, "run", tasks[page->task].run);
    vars_text(vars, "output", tasks[page->task].output);
    vars_text(vars, "version", ATTNC_VERSION);
    vars_int(vars, "numbers", page->tokenizer->path == NULL);
    set_given(page, vars);
    for (const char *const *s = settings_of(page); *s; s += 2) vars_text(vars, s[0], s[1]);
    const Generation *g = &page->model->generation;
    vars_int(vars, "max_new", g->max_new); /* in place of texts, for conditions */
    vars_int(vars, "max_length", g->max_new ? 0 : g->max_length);
    return template_expanded(page->arena, "page_index.html.tmpl", MOST_BYTES, "the page", vars);
}

const PackageFile *page_files(const Page *page) {
    static const char *const whole[] = {"page.css", "page.js", "show.js", "worker.js", "tokenizer.js", "models.js",
                                        "steps.js", "unicode.js"};
    enum { COUNT = sizeof whole / sizeof *whole };
    PackageFile *files = arena_array(page->arena, COUNT + 3, sizeof *files);
    for (int i = 0; i < COUNT; i++) {
        const char *name = arena_printf(page->arena, "page_%s.tmpl", whole[i]);
        files[i] = (PackageFile){whole[i], embedded_file(name)};
    }
    files[COUNT] = (PackageFile){"model.js", described(page)};
    files[COUNT + 1] = (PackageFile){"index.html", index_of(page)};
    return files;
}
