/* fuzz_gguf.c: a GGUF file: its tensors, its keys, and the import of its model. */
#include "target.h"

#include "../../../compiler/formats/gguf.h"
#include "../../../compiler/import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_ITEMS = 1000 };

static volatile double read_last; /* so that every item is read */

static void read_entries(const GgufFile *file) {
    for (size_t i = 0; i < file->count; i++) {
        const GgufEntry *entry = &file->entries[i];
        const uint8_t *at = entry->data;
        for (uint64_t item = 0; item < entry->count && item < MOST_ITEMS; item++) {
            size_t length = 0;
            if (entry->type != GGUF_STRING) read_last = gguf_next_number(entry, &at);
            else if (gguf_next_string(&at, &length) && length) read_last = at[-1];
        }
    }
}

static void read_input(Arena *arena, const uint8_t *data, size_t size) {
    const char *path = memory_file(arena, "model.gguf", data, size);
    if (!gguf_is(arena, path)) return;
    const GgufFile file = gguf_read(arena, file_map(arena, path));
    tensors_read(&file.tensors);
    read_entries(&file);
    import_spec(arena, path, "spec", &(ImportOptions){0});
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return run_target(read_input, data, size); }
