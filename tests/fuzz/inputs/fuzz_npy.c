/* fuzz_npy.c: an .npy file, and its numbers. */
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_input(Arena *arena, const uint8_t *data, size_t size) {
    const NpyArray array = npy_read(arena, memory_file(arena, "array.npy", data, size));
    int64_t count;
    if (!shape_elements(array.shape, &count)) broken("the size of an array overflows");
    for (int64_t i = 0; i < count; i++) npy_real(&array, i);
    for (int64_t i = 0; i < count; i++) npy_integer(&array, i); /* no integers: a failure */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return run_target(read_input, data, size); }
