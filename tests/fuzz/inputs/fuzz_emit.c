/* fuzz_emit.c: a spec of a small model, all the way to its C.
 *
 * The input: a byte (the target, by its rest modulo 8; 8: `--unroll loops`; 16: with weights in the text; 32: emitted
 * twice, to the same bytes), then the spec. */
#include "target.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_OPS = 60, MOST_TEXT_BYTES = 1 << 14, MOST_UNROLLED = 1 << 15, LOOPS = 8, EMBED = 16, TWICE = 32 };

static const char *const targets[] = {"scalar", "avx2", "avx512", "sse2", "neon", "sve256", "rvv"};

static Compilation spec_of(Arena *arena, const char *text, size_t size) {
    return compilation_quiet(arena, source_from_text(arena, "spec", text, size));
}

static Emitted code_of(Compilation planned) {
    compile_until(&planned, STAGE_C);
    return planned.emitted;
}

static void check_emitted(Compilation *c, uint8_t flags) {
    compile_until(c, STAGE_PLAN);
    if (c->model->unroll_full && c->program->weight_bytes > MOST_UNROLLED) return; /* its text takes seconds */
    c->options = (EmitOptions){.targets = &targets[flags % 8 % 7], .n_targets = 1, .command = "attnc compile spec",
                               .loops = flags & LOOPS};
    if (flags & EMBED && c->program->weight_bytes <= MOST_TEXT_BYTES) {
        const Weights *weights = weights_load(c->arena, c->model, &c->module->weights, "random:1", false);
        c->options.embedded = packed_bytes(c->arena, c->program, weights, &c->options.embedded_bytes);
    }
    const Emitted once = code_of(*c);
    if (strlen(once.c) != once.c_bytes || strlen(once.h) != once.h_bytes) broken("a text of another length");
    if (!(flags & TWICE)) return;
    const Emitted again = code_of(*c);
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
    Compilation c = spec_of(arena, spec, sizeof spec - 1);
    check_emitted(&c, 0);
    arena_free(arena);
    arenas_keep();
}

static void read_input(Arena *arena, const uint8_t *data, size_t size) {
    if (!size) return;
    Compilation c = spec_of(arena, (const char *)data + 1, size - 1);
    if (!compile_until(&c, STAGE_REWRITE)) return;
    if (c.module->entries[ENTRY_FORWARD]->n_ops <= MOST_OPS) check_emitted(&c, data[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    keep_templates();
    return run_target(read_input, data, size);
}
