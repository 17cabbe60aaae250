/* fuzz_spec.c: a spec, through parse, fmt, resolve, build and plan. */
#include "target.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What fmt gives of a spec without errors has none either, and fmt leaves it as it is. */
static void check_format(Arena *arena, const Ast *ast) {
    Diagnostics diagnostics = diagnostics_new(arena, NULL);
    const char *once = ast_format(arena, ast);
    Ast *again = parse(arena, source_from_text(arena, "formatted", once, strlen(once)), &diagnostics);
    if (diagnostics.errors) broken("fmt makes a spec that cannot be parsed");
    if (strcmp(once, ast_format(arena, again)) != 0) broken("fmt of what fmt has made changes it");
}

static void read_input(Arena *arena, const uint8_t *data, size_t size) {
    Diagnostics diagnostics = diagnostics_new(arena, NULL);
    Source *source = source_from_text(arena, "spec", (const char *)data, size);
    Ast *ast = parse(arena, source, &diagnostics);
    if (diagnostics.errors) return;
    check_format(arena, ast);
    Model *model = resolve(arena, ast, &diagnostics);
    if (!model != (diagnostics.errors > 0)) broken("a model with errors, or none without an error");
    if (!model) return;
    Text text = text_new(arena);
    Module *module = build(arena, model);
    const Graph *graphs[] = {module->forward, module->encode, module->decode};
    for (int i = 0; i < 3; i++)
        if (graphs[i]) graph_print(&text, module, graphs[i]);
    program_print(&text, plan_model(arena, module));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return run_target(read_input, data, size); }
