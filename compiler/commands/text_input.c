/* text_input.c: texts of the command line as inputs of a model. They become arrays in files, which are read like the
 * files of --in. */
#include "text_input.h"

#include <string.h>

/* What becomes of a text: its ids with what the tokenizer puts around them, without what it puts after them, or those
 * of a text that a decoder has written. */
typedef enum Form { WHOLE, BEGUN, WRITTEN } Form;

typedef struct Texts {
    const Compilation *c;
    const char *usage;
    const Words *words;
    Folder *folder;
    const NamedFile *inputs;
} Texts;

Words *text_words(const Compilation *c, const char *usage, const TextOptions *options, const char *cc) {
    if (!options->tokenizer && (options->texts || options->targets))
        usage_error(usage, "`%s` needs `--tokenizer F`, which has the ids of a text",
                    options->texts ? "--text" : "--target-text");
    if (!options->tokenizer) return NULL;
    if (c->model->alone) usage_error(usage, "`--tokenizer`: %s reads no text", c->model->name);
    const TokenizerFile file = tokenizer_find(c->arena, options->tokenizer, c->model);
    return words_open(c->arena, &file, &c->model->text, cc);
}

static void add_file(Texts *t, const char *option, const char *name, Shape shape, const int32_t *numbers) {
    for (const NamedFile *file = t->inputs; file; file = file->next)
        if (strcmp(file->name, name) == 0) usage_error(t->usage, "`%s` gives the input `%s` already", option, name);
    NamedFile *file = arena_alloc(t->c->arena, sizeof *file);
    *file = (NamedFile){.name = name, .layer = -1, .next = (NamedFile *)(uintptr_t)t->inputs};
    file->path = folder_file(t->folder, arena_printf(t->c->arena, "%s.npy", name));
    npy_write(t->c->arena, file->path, DTYPE_I32, shape, numbers);
    t->inputs = file;
}

/* The ids of a text that a decoder has written: its start, unless the tokenizer puts it before a text, and the text. */
static const int32_t *written_ids(const Texts *t, const char *text, int64_t *count) {
    const int64_t start = t->c->model->start;
    const int32_t *ids = words_begin(t->words, text, count);
    if (start < 0 || (*count && ids[0] == start)) return ids;
    int32_t *all = arena_array(t->c->arena, (size_t)*count + 1, sizeof *all);
    all[0] = (int32_t)start;
    memcpy(all + 1, ids, (size_t)*count * sizeof *ids);
    ++*count;
    return all;
}

/* Makes the input `name` of all texts, [n] of one, [texts][most] of several. `stack` reads it. */
static void add_texts(Texts *t, const char *option, const ValueNode *nodes, const char *name, const Stack *stack,
                      Form form) {
    Arena *arena = t->c->arena;
    const char *prompt = text_prompt(&t->c->model->text);
    const int32_t **ids = NULL;
    int64_t *counts = NULL, most = 0, batch = 0, at = 0;
    bool alike = true;
    for (const ValueNode *node = nodes; node; node = node->next) batch++;
    ids = arena_array(arena, (size_t)batch, sizeof *ids);
    counts = arena_array(arena, (size_t)batch, sizeof *counts);
    for (const ValueNode *node = nodes; node; node = node->next, at++) {
        const char *text = form == WRITTEN ? node->text : arena_printf(arena, "%s%s", prompt, node->text);
        ids[at] = form == WHOLE   ? words_encode(t->words, text, &counts[at])
                  : form == BEGUN ? words_begin(t->words, text, &counts[at])
                                  : written_ids(t, text, &counts[at]);
        if (!counts[at]) fail("`%s %s`: the text has no tokens", option, node->text);
        if (counts[at] > stack->seq.n)
            fail("`%s`: text %lld has %s, and the %s reads at most %lld", option, (long long)at + 1,
                 counted(arena, counts[at], "token"), stack->name, (long long)stack->seq.n);
        alike &= counts[at] == counts[0];
        most = counts[at] > most ? counts[at] : most;
    }
    int32_t *all = arena_array(arena, (size_t)(batch * most), sizeof *all);
    int32_t *mask = arena_array(arena, (size_t)(batch * most), sizeof *mask);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t i = 0; i < counts[b]; i++) all[b * most + i] = ids[b][i], mask[b * most + i] = 1;
    const Shape shape = batch > 1 ? (Shape){2, {batch, most}} : (Shape){1, {most}};
    if (!alike && form == WRITTEN)
        fail("`%s`: the texts have different numbers of tokens, and only sources may; give one of them a call", option);
    if (!alike) add_file(t, option, "attention_mask", shape, mask);
    add_file(t, option, name, shape, all);
}

const NamedFile *text_inputs(const Compilation *c, const char *usage, const TextOptions *options, const Words *words,
                             const NamedFile *inputs, bool prompts) {
    const Model *m = c->model;
    if (!options->texts && !options->targets) return inputs;
    const bool reads = m->encoder && m->encoder->vocab, both = m->encoder && m->decoder;
    Texts t = {c, usage, words, folder_new(c->arena), inputs};
    if (options->targets && !both) usage_error(usage, "`--target-text`: %s has no target; give `--text`", m->name);
    if (options->targets) add_texts(&t, "--target-text", options->targets, "target", m->decoder, WRITTEN);
    if (!options->texts) return t.inputs;
    if (both && !reads) usage_error(usage, "`--text`: %s reads no text; its own words are a `--target-text`", m->name);
    if (both) add_texts(&t, "--text", options->texts, "source", m->encoder, WHOLE);
    else add_texts(&t, "--text", options->texts, "tokens", reads ? m->encoder : m->decoder, prompts ? BEGUN : WHOLE);
    return t.inputs;
}
