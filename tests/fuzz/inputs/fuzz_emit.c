/* fuzz_emit.c: a spec of a small model, all the way to its C.
 *
 * The input: a byte (the target, by its rest modulo 8; 8: `--unroll loops`; 16: with weights in the text; 32: emitted
 * twice, to the same bytes), then the spec. */
#include "target.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_OPS = 60, MOST_TEXT_FLOATS = 1 << 12, MOST_UNROLLED = 1 << 13, LOOPS = 8, EMBED = 16, TWICE = 32 };

static const char *const targets[] = {"scalar", "avx2", "avx512", "sse2", "neon"};

static Module *module_of(Arena *arena, const char *text, size_t size) {
    Diagnostics diagnostics = diagnostics_new(arena, NULL);
    Ast *ast = parse(arena, source_from_text(arena, "spec", text, size), &diagnostics);
    Model *model = diagnostics.errors ? NULL : resolve(arena, ast, &diagnostics);
    return model ? build(arena, model) : NULL;
}

static void check_emitted(Arena *arena, Module *module, uint8_t flags) {
    const Program *program = plan_model(arena, module);
    if (module->model->unroll_full && program->weight_floats > MOST_UNROLLED) return; /* its text takes seconds */
    EmitOptions options = {.targets = &targets[flags % 8 % 5], .n_targets = 1, .command = "attnc compile spec",
                           .layout_hash = packed_layout_hash(program), .loops = flags & LOOPS};
    if (flags & EMBED && program->weight_floats <= MOST_TEXT_FLOATS) {
        const Weights *weights = weights_load(arena, module->model, &module->weights, "random:1", false);
        options.embedded = packed_bytes(arena, program, weights, &options.embedded_bytes);
    }
    const Emitted once = emit(arena, program, &options);
    if (strlen(once.c) != once.c_bytes || strlen(once.h) != once.h_bytes) broken("a text of another length");
    if (!(flags & TWICE)) return;
    const Emitted again = emit(arena, program, &options);
    if (strcmp(once.c, again.c) != 0 || strcmp(once.h, again.h) != 0) broken("the same spec gives other bytes");
}

/* Templates are parsed once a process. */
static void keep_templates(void) {
    static const char spec[] =
        "model m { d_model 4, vocab 3, encoder { seq <= 4, layers 1 { attention self { heads 1 } } } }";
    static bool done;
    if (done) return;
    done = true;
    budget_begin();
    Arena *arena = arena_new();
    check_emitted(arena, module_of(arena, spec, sizeof spec - 1), 0);
    arena_free(arena);
    arenas_keep();
}

static void read_input(Arena *arena, const uint8_t *data, size_t size) {
    Module *module = size ? module_of(arena, (const char *)data + 1, size - 1) : NULL;
    if (module && module->forward->n_ops <= MOST_OPS) check_emitted(arena, module, data[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    keep_templates();
    return run_target(read_input, data, size);
}
