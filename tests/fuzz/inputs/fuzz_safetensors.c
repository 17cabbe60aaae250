/* fuzz_safetensors.c: a .safetensors file, or, where a `{` comes first, an index beside one shard `a`. */
#include "target.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char shard_header[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";

static const char *shard(Arena *arena) {
    enum { JSON = sizeof shard_header - 1 };
    uint8_t bytes[8 + JSON + 8] = {JSON};
    memcpy(bytes + 8, shard_header, JSON);
    return memory_file(arena, "a", bytes, sizeof bytes);
}

static void read_input(Arena *arena, const uint8_t *data, size_t size) {
    bool index = size && data[0] == '{';
    const char *path = memory_file(arena, index ? "model.index.json" : "model.safetensors", data, size);
    if (index) shard(arena);
    tensors_read(tensor_file_open(arena, path));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return run_target(read_input, data, size); }
