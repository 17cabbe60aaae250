/* fuzz_attnw.c: the .attnw file of a small model, changed.
 *
 * The input: a byte of flags (1: as a file of its own, 2: the header's checksum is made right again, 4: with the
 * checksum of the data, 8: the other model), then a little-endian i16 by which the file becomes longer or shorter, then
 * changes of four bytes: a u16 place and two bytes. With flag 1 the file is what stands behind the flags. */
#include "target.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEADER = 128, AT_HEADER_HASH = 120, AS_FILE = 1, MEND = 2, VERIFY = 4, OTHER = 8 };

static const char tied[] =
    "model m { d_model 6, vocab 5, head logits tied bias\n"
    "  encoder { seq <= 4, position learned offset 3, segments 2\n"
    "    layers 2 { attention self { heads 3, bias q, position relative buckets 4 distance 6 }, ffn { d_ff 5 } } } }\n";
static const char rotated[] =
    "model m { d_model 4, vocab 3, norm rmsnorm plus_one, bias none, head pool mean\n"
    "  encoder { seq <= 3, layers 1 { attention self { heads 2, kv_heads 1, head_dim 2, position rope }\n"
    "                                 ffn { d_ff 3 } } } }\n";

static Program *program_of(Arena *arena, const char *spec) {
    Diagnostics diagnostics = diagnostics_new(arena, NULL);
    Ast *ast = parse(arena, source_from_text(arena, "spec", spec, strlen(spec)), &diagnostics);
    Model *model = diagnostics.errors ? NULL : resolve(arena, ast, &diagnostics);
    if (!model) broken("the harness has no model");
    return plan_model(arena, build(arena, model));
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

static void read_input(Arena *arena, const uint8_t *data, size_t size) {
    uint8_t flags = size ? data[0] : 0;
    const uint8_t *rest = data + (size > 0);
    size_t n_rest = size - (size > 0), bytes = n_rest;
    Program *program = program_of(arena, flags & OTHER ? rotated : tied);
    uint8_t *file;
    if (flags & AS_FILE) {
        file = arena_alloc(arena, n_rest);
        if (n_rest) memcpy(file, rest, n_rest);
    } else {
        file = changed(arena, program, rest, n_rest, &bytes);
    }
    if (flags & MEND && bytes >= HEADER) {
        uint64_t hash = hash_bytes(0, file, AT_HEADER_HASH);
        memcpy(file + AT_HEADER_HASH, &hash, sizeof hash);
    }
    const char *path = memory_file(arena, "m.attnw", file, bytes);
    const Weights *weights = packed_read(arena, program, path, flags & VERIFY);
    if (!packed_is(path)) broken("what is read does not begin as such a file");
    size_t again_bytes;
    packed_bytes(arena, program, weights, &again_bytes);
    if (again_bytes != bytes) broken("the weights that were read make a file of another size");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return run_target(read_input, data, size); }
