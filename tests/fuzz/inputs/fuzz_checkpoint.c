/* fuzz_checkpoint.c: a checkpoint of PyTorch, an archive or an older file. */
#include "target.h"

#include "../../../compiler/formats/torch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_input(Arena *arena, const uint8_t *data, size_t size) {
    const MappedFile file = file_map(arena, memory_file(arena, "model.bin", data, size));
    if (!torch_begins(file)) return;
    const TensorFile tensors = torch_read(arena, file);
    tensors_read(&tensors);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return run_target(read_input, data, size); }
