/* fuzz_spec.c: a spec, through parse, fmt, resolve, build and plan. */
#include "target.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What fmt gives of a spec without errors has none either, and fmt leaves it as it is. */
static void check_format(Arena *arena, const Ast *ast) {
    Diagnostics diagnostics = diagnostics_quiet(arena);
    const char *once = ast_format(arena, ast);
    Ast *again = parse(arena, source_from_text(arena, "formatted", once, strlen(once)), &diagnostics);
    if (diagnostics.errors) broken("fmt makes a spec that cannot be parsed");
    if (strcmp(once, ast_format(arena, again)) != 0) broken("fmt of what fmt has made changes it");
}

static void read_input(Arena *arena, const uint8_t *data, size_t size) {
    Compilation c = compilation_quiet(arena, source_from_text(arena, "spec", (const char *)data, size));
    if (!compile_until(&c, STAGE_AST)) return;
    check_format(arena, c.ast);
    bool fine = compile_until(&c, STAGE_MODEL);
    if (!c.model == fine) broken("a model with errors, or none without an error");
    if (!fine) return;
    if (!compile_until(&c, STAGE_PLAN)) return; /* the model has no such tensor as its weights block names */
    Text text = text_new(arena);
    module_print(&text, c.module);
    program_print(&text, c.program);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return run_target(read_input, data, size); }
