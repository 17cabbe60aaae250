/* changed.c: see target.h. */
#include "target.h"

#include <string.h>

enum { HEADER = 128, AT_HEADER_HASH = 120 };

Program *program_of(Arena *arena, const char *spec) {
    Compilation c = compilation_quiet(arena, source_from_text(arena, "spec", spec, strlen(spec)));
    if (!compile_until(&c, STAGE_PLAN)) broken("the harness has no model");
    return c.program;
}

/* The right file with the changes made to it. */
static uint8_t *changed(Arena *arena, const Program *program, const uint8_t *data, size_t size, size_t *bytes) {
    const Module *module = program->module;
    const Weights *weights = weights_load(arena, module->model, &module->weights, "random:1", false);
    size_t right;
    const uint8_t *file = packed_bytes(arena, program, weights, &right);
    int16_t longer = 0;
    if (size >= 2) memcpy(&longer, data, 2);
    *bytes = longer < 0 && (size_t)-longer > right ? 0 : right + (size_t)longer;
    uint8_t *out = arena_alloc(arena, *bytes);
    memcpy(out, file, *bytes < right ? *bytes : right);
    for (size_t i = 2; i + 4 <= size; i += 4) {
        size_t at = data[i] | (size_t)data[i + 1] << 8;
        for (size_t k = 0; k < 2; k++)
            if (at + k < *bytes) out[at + k] = data[i + 2 + k];
    }
    return out;
}

uint8_t *changed_weights(Arena *arena, const Program *program, uint8_t flags, const uint8_t *data, size_t size,
                         size_t *bytes) {
    uint8_t *file;
    if (flags & AS_FILE) {
        *bytes = size;
        file = arena_alloc(arena, size);
        if (size) memcpy(file, data, size);
    } else {
        file = changed(arena, program, data, size, bytes);
    }
    if (flags & MEND && *bytes >= HEADER) {
        uint64_t hash = hash_bytes(0, file, AT_HEADER_HASH);
        memcpy(file + AT_HEADER_HASH, &hash, sizeof hash);
    }
    return file;
}
