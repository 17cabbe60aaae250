/* fuzz_attnw.c: attnc reads the .attnw file of a small model, changed as target.h says; flag 8: the other model. */
#include "target.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OTHER = 8 };

static const char tied[] =
    "model m { d_model 6, vocab 5, head logits tied bias\n"
    "  encoder { seq <= 4, position learned offset 3, segments 2\n"
    "    layers 2 { attention self { heads 3, bias q, position relative buckets 4 distance 6 }, ffn { d_ff 5 } } } }\n";
static const char rotated[] =
    "model m { d_model 4, vocab 3, norm rmsnorm plus_one, bias none, head pool mean\n"
    "  encoder { seq <= 3, layers 1 { attention self { heads 2, kv_heads 1, head_dim 2, position rope }\n"
    "                                 ffn { d_ff 3 } } } }\n";

static void read_input(Arena *arena, const uint8_t *data, size_t size) {
    uint8_t flags = size ? data[0] : 0;
    size_t bytes;
    Program *program = program_of(arena, flags & OTHER ? rotated : tied);
    const uint8_t *file = changed_weights(arena, program, flags, data + (size > 0), size - (size > 0), &bytes);
    const char *path = memory_file(arena, "m.attnw", file, bytes);
    const Weights *weights = packed_read(arena, program, path, flags & VERIFY);
    if (!packed_is(path)) broken("what is read does not begin as such a file");
    size_t again_bytes;
    packed_bytes(arena, program, weights, &again_bytes);
    if (again_bytes != bytes) broken("the weights that were read make a file of another size");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return run_target(read_input, data, size); }
