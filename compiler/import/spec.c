/* spec.c: makes the spec of an imported model from its family, its config and the names of its tensors. */
#include "import.h"

#include <stdlib.h>
#include <string.h>

/* The default name of the model: its type, turned into an identifier of C. */
static const char *model_name(Arena *arena, const char *type) {
    char *name = arena_copy(arena, type, strlen(type));
    for (char *c = name; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", *c)) *c = '_';
    bool good = strcmp(name, "model") != 0 && !model_name_fault(arena, name);
    return good ? name : arena_printf(arena, "model_%s", name);
}

/* The tensors of the spec without its weights block. Empty for an invalid spec, which is reported later. */
static WeightTable tensors_of(Import *import, const char *text) {
    Compilation c = compilation_quiet(import->arena, source_from_text(import->arena, "spec", text, strlen(text)));
    return compile_until(&c, STAGE_REWRITE) ? c.module->weights : (WeightTable){0};
}

/* The family's tables filled in from the config: the model's settings, the blocks `generation` and `text`, each of
 * which may be "", and the lines of the weights block. */
typedef struct Filled {
    const char *head, *body, *generation, *text, *weights;
} Filled;

static Filled fill(Import *import, const char *generation) {
    Arena *arena = import->arena;
    Text body = text_new(arena), weights = text_new(arena);
    const char *task = variable_get(import, "task", 4);
    spec_body(import, &body);
    score_check(import, body.data);
    if (strcmp(task ? task : "", "rest") == 0)
        import_note(import, "The output `logits` is left out: the head of %s cannot be expressed in a spec, and the "
            "outputs end at `hidden`.", import->class_name);
    const char *part = import->options->part, *type = part ? arena_printf(arena, "%s_%s", import->type, part)
                                                           : import->type;
    const char *name = import->options->name ? import->options->name : model_name(arena, type);
    const char *head = arena_printf(arena, "model %s {\n", name);
    WeightTable table = tensors_of(import, arena_printf(arena, "%s%s\n}\n", head, body.data));
    sentence_tensors(import, &weights);
    fill_tensors(import, &table, &weights);
    const bool reads = strstr(body.data, "vocab ") != NULL; /* tokens, and no image alone */
    return (Filled){head, body.data, generation, reads ? text_rules(import) : "", weights.data};
}

static _Noreturn void refuse_config(const Import *import) {
    fail("%s: this config makes no valid spec, for the reasons above", import->config_path);
}

/* The formatted spec, with the notes so far as comments in front. */
static const char *spec_text(const Import *import, const Filled *filled) {
    Text out = text_new(import->arena);
    text_printf(&out, "# %s\n# Imported from %s.\n", import->family->title, import->origin);
    for (const char *note = import->notes.data; *note; note += strcspn(note, "\n") + 1) text_printf(&out, "# %.*s\n",
        (int)strcspn(note, "\n"), note);
    if (import->precision_note) text_printf(&out, "# %s\n", import->precision_note);
    text_printf(&out, "%s%s\n%s%sweights {\n%s}\n}\n", filled->head, filled->body, filled->generation, filled->text,
                filled->weights);
    Source *source = source_from_text(import->arena, "spec", out.data, out.size);
    Compilation c = compilation_new(import->arena, source);
    if (!compile_until(&c, STAGE_AST)) refuse_config(import);
    return ast_format(import->arena, c.ast);
}

/* Whether the tensor equals another tensor that the spec reads, as older files hold tied tensors twice. */
static bool is_duplicate(const TensorFile *file, const bool *claimed, const FileTensor *tensor) {
    for (size_t t = 0; t < file->count; t++) {
        const FileTensor *other = &file->tensors[t];
        if (claimed[t] && tensor_types_equal(other, tensor) && shape_equal(other->shape, tensor->shape)
            && memcmp(other->data, tensor->data, tensor->bytes) == 0) return true;
    }
    return false;
}

/* Names the tensors of the file that the spec does not read, without buffers and duplicates; NULL if there are none. */
static const char *unread(Import *import, const Model *model, const WeightTable *table) {
    const TensorFile *file = import->file;
    size_t absent = 0, count = 0;
    const bool *claimed = weights_claimed(import->arena, model, table, file, &absent);
    const char **names = arena_array(import->arena, file->count + 1, sizeof *names);
    for (size_t t = 0; t < file->count; t++)
        if (!claimed[t] && !is_buffer(import, file->tensors[t].name)
            && !is_duplicate(file, claimed, &file->tensors[t])) names[count++] = file->tensors[t].name;
    return count ? arena_printf(import->arena, "%s that the spec does not use: %s",
        counted(import->arena, (int64_t)count, "tensor"), tensor_names_summary(import->arena, names, count)) : NULL;
}

/* Every tensor of a GGUF file counts: no head of another task is among them. */
static void check_tensors(Import *import, const Compilation *c, bool all) {
    const WeightTable *table = &c->module->weights;
    if (all) weights_fit(import->arena, c->model, table, import->file);
    else weights_check(c->model, table, import->file);
    const char *rest = unread(import, c->model, table);
    if (rest && all) fail("%s: it holds %s", import->config_path, rest);
    if (rest) import_note(import, "The file holds %s.", rest);
}

static Compilation spec_graph(Import *import, const char *path, const char *text) {
    Compilation c = compilation_new(import->arena, source_from_text(import->arena, path, text, strlen(text)));
    if (!compile_until(&c, STAGE_REWRITE)) refuse_config(import);
    return c;
}

/* Returns the text of the spec with all notes as comments, and with the precisions of the file's matrices. */
static const char *with_precision(Import *import, const Compilation *c, const Filled *filled, bool from_gguf) {
    const WeightType *types = precision_find(import, c, from_gguf);
    const char *text = spec_text(import, filled);
    if (!types) return text;
    Compilation again = spec_graph(import, "spec", text);
    return precision_stated(import, &again, types);
}

Imported import_spec(Arena *arena, const char *source, const char *spec_path, const ImportOptions *options) {
    Import import = {.arena = arena, .options = options, .notes = text_new(arena), .buffers = text_new(arena),
                     .score = options->score};
    const bool from_gguf = gguf_is(arena, source);
    if (from_gguf && options->part)
        fail("%s: `--part` is for a model of several parts, and a GGUF file has one", source);
    if (from_gguf && options->score.n) fail("%s: `--score` is for a folder, and this is a GGUF file", source);
    if (from_gguf) gguf_source(&import, source);
    else hf_source(&import, source);
    keys_read_all(&import);
    ignored_finish(&import);
    bound_find(&import);
    const char *generation = generation_read(&import);
    const Filled filled = fill(&import, generation);
    const char *text = spec_text(&import, &filled);
    Compilation c = spec_graph(&import, spec_path, text);
    check_tensors(&import, &c, from_gguf);
    bound_note(&import);
    text = with_precision(&import, &c, &filled, from_gguf);
    return (Imported){.spec = text,
                      .notes = import.notes.data,
                      .precision_note = import.precision_note,
                      .rounded = import.rounded,
                      .file_bytes = import.file_bytes,
                      .weights = import.weights_path,
                      .folder = import.folder,
                      .class_name = import.class_name,
                      .config = import.config,
                      .activation = sentence_activation(&import),
                      .scores = import.score.n > 0};
}
