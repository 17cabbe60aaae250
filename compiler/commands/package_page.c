/* package_page.c: attnc page writes a model as a page for browsers. */
#include "../package/page.h"
#include "commands.h"

#include <string.h>

static const char usage[] =
    "attnc page SPEC --weights F[,F…]|random:SEED [--tokenizer F] [--labels F] -o DIR [--precision P] [--cc CC]\n"
    "  -o DIR               folder for the page, which any server of files can serve: index.html, its scripts and\n"
    "                       style, NAME_simd.wasm, NAME_scalar.wasm, the weights NAME.attnw and the tokenizer's file.\n"
    "                       It is created if it does not exist\n" HELP_WEIGHTS "\n"
    "  --tokenizer F        tokenizer.json, a vocab.txt, a tokenizer.bin of llama2.c, a file of SentencePiece of a\n"
    "                       class that transformers reads by tokenizers, or a folder with one; without it, the page\n"
    "                       reads and writes ids of tokens\n"
    "  --labels F           names of the classes of a classifier, a line each (default: their numbers)\n" HELP_PRECISION
    "  --cc CC              clang that compiles to WebAssembly (default: clang)";

enum { MOST_BYTES = 1 << 28, MOST_LABELS_BYTES = 1 << 20 };

static const char *const *labels_read(Arena *arena, const char *path, const Model *model) {
    size_t size;
    char *text = file_read(arena, path, MOST_LABELS_BYTES, &size);
    const int64_t wanted = model->head.classifier;
    if (!wanted) fail("%s: the model has no classes to name", path);
    const char **labels = arena_array(arena, (size_t)wanted, sizeof *labels);
    int64_t count = 0;
    for (char *line = text; line && *line; count++) {
        char *end = strchr(line, '\n');
        if (end) *end = '\0';
        if (count < wanted) labels[count] = line;
        line = end ? end + 1 : NULL;
    }
    if (count != wanted)
        fail("%s: it names %lld classes, and the model has %lld", path, (long long)count, (long long)wanted);
    return labels;
}

/* All files of the page, which appear together. `cc` may be NULL. */
static void write_page(Compilation *c, const Page *page, const char *folder, const char *cc, const char *weights) {
    Arena *arena = c->arena;
    const char *stem = arena_printf(arena, "%s/%s", folder, c->model->name);
    const PackageFile *files = page_files(page);
    cc = page_cc(arena, cc);
    Weights *opened = load_weights(c, weights, false, false);
    const PageModules modules = page_build(c, page, cc);
    make_folders(arena, folder);
    outputs_hold();
    packed_write(arena, arena_printf(arena, "%s.attnw", stem), c->program, opened);
    output_copy(arena, modules.simd, arena_printf(arena, "%s_simd.wasm", stem), MOST_BYTES);
    output_copy(arena, modules.scalar, arena_printf(arena, "%s_scalar.wasm", stem), MOST_BYTES);
    if (page->tokenizer->path) tokenizer_write(arena, page->tokenizer, folder);
    for (; files->path; files++) write_text(arena, arena_printf(arena, "%s/%s", folder, files->path), files->text);
    outputs_release();
    progress_end();
}

void command_page(Arena *arena, int argc, char **argv) {
    const char *path, *folder = NULL, *weights = NULL, *precision = NULL, *tokenizer = NULL, *labels = NULL, *cc = NULL;
    const Option options[] = {{"-o", .text = &folder}, {"--weights", .text = &weights},
                              {"--tokenizer", .text = &tokenizer}, {"--labels", .text = &labels},
                              {"--precision", .text = &precision}, {"--cc", .text = &cc}};
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, &path, 1);
    if (!folder || !*folder) usage_error(usage, "`-o DIR` is missing");
    if (!weights) usage_error(usage, "`--weights F` is missing");
    Compilation c = spec_load(arena, path, option_precision(arena, usage, "--precision", precision), STAGE_MODEL);
    check_model_name(&c, "page");
    if (c.model->encoder && c.model->decoder) model_export(c.model, OUT_cross_attention, -1);
    spec_compile(&c, STAGE_REWRITE);
    TokenizerFile file = {0};
    Page page = {.arena = arena, .model = c.model, .forward = c.module->entries[ENTRY_FORWARD],
                 .encode = c.module->entries[ENTRY_ENCODE], .task = page_task(&c), .tokenizer = &file};
    if (labels) page.labels = labels_read(arena, labels, c.model);
    if (tokenizer) file = tokenizer_find(arena, tokenizer, c.model);
    spec_compile(&c, STAGE_PLAN);
    page.weights_bytes = packed_file_bytes(c.program);
    write_page(&c, &page, folder, cc, weights);
}
