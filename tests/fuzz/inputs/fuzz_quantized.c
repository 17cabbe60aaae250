/* fuzz_quantized.c: config.json, a NUL, and the safetensors file beside it, whose tensors are quantized. */
#include "target.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_input(Arena *arena, const uint8_t *data, size_t size) {
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    if (!end) return;
    memory_file(arena, "config.json", data, (size_t)(end - data));
    const size_t rest = size - (size_t)(end - data) - 1;
    tensors_read(tensor_file_open(arena, memory_file(arena, "model.safetensors", end + 1, rest)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return run_target(read_input, data, size); }
