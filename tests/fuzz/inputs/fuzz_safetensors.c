/* fuzz_safetensors.c: a .safetensors file, or, where a `{` comes first, an index beside one shard `a`. */
#include "target.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_READ = 64 };

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
    const TensorFile *file = tensor_file_open(arena, path);
    for (size_t i = 0; i < file->count; i++) {
        const FileTensor *tensor = &file->tensors[i];
        int64_t count;
        float values[MOST_READ];
        if (tensor_find(file, tensor->name) != tensor) broken("a tensor is not found by its name");
        if (!shape_elements(tensor->shape, &count)) broken("the size of a tensor overflows");
        if ((size_t)count * dtype_bytes(tensor->dtype) != tensor->bytes) broken("a tensor's size is not its shape's");
        int64_t first = count > MOST_READ ? count - MOST_READ : 0;
        if (count) tensor_to_f32(tensor, first, count - first, values);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return run_target(read_input, data, size); }
