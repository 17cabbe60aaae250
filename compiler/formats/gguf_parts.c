/* gguf_parts.c: a GGUF file that llama-gguf-split has cut into parts, NAME-00001-of-00003.gguf and so on. Each part is
 * a GGUF file with some of the tensors, and the first one has the keys of the model as well. */
#include "gguf.h"

#include "tensor_file.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_PARTS = 99999 };

/* The number under the key, or -1 where the file lacks it. */
static int64_t number_of(const GgufFile *file, const char *key, int64_t most) {
    const GgufEntry *entry = gguf_find(file, key);
    if (!entry) return -1;
    const uint8_t *at = entry->data;
    const double value = entry->array || entry->type == GGUF_STRING ? -1 : gguf_next_number(entry, &at);
    if (!(value >= 0 && value <= (double)most) || value != (double)(int64_t)value)
        fail("%s: `%s` is no whole number from 0 to %" PRId64, file->tensors.path, key, most);
    return (int64_t)value;
}

static const char *part_path(Arena *arena, const char *stem, int64_t part, int64_t parts) {
    return arena_printf(arena, "%s-%05" PRId64 "-of-%05" PRId64 ".gguf", stem, part + 1, parts);
}

/* The path in front of the first part's number. */
static const char *stem_of(Arena *arena, const char *path, int64_t parts) {
    const char *ending = part_path(arena, "", 0, parts);
    if (!text_ends(path, ending))
        fail("%s: it is the first of %" PRId64 " parts of a model, and its name does not end in `%s`, from which the "
             "names of the others follow", path, parts, ending);
    return arena_copy(arena, path, strlen(path) - strlen(ending));
}

static GgufFile read_part(Arena *arena, const char *path, const char *first, int64_t part, int64_t parts) {
    if (!file_exists(path) || folder_exists(path))
        fail("%s: there is no such file, which is part %" PRId64 " of %" PRId64 " of the model of %s", path, part + 1,
             parts, first);
    MappedFile mapped = file_map(arena, path);
    if (!gguf_begins(mapped)) fail("%s: it is no GGUF file, and a part of the model of %s", path, first);
    GgufFile file = gguf_read(arena, mapped);
    const int64_t own = number_of(&file, "split.no", MOST_PARTS), count = number_of(&file, "split.count", MOST_PARTS);
    if (own != part || count != parts)
        fail("%s: it says that it is part %" PRId64 " of %" PRId64 ", and its name says part %" PRId64 " of %" PRId64
             " (`split.no` and `split.count`)", path, own + 1, count, part + 1, parts);
    return file;
}

static void check_count(const GgufFile *file, int64_t tensors) {
    const int64_t told = number_of(file, "split.tensors.count", INT64_C(1) << 53);
    if (told >= 0 && told != tensors)
        fail("%s: `split.tensors.count` is %" PRId64 ", and the parts have %" PRId64 " tensors", file->tensors.path,
             told, tensors);
}

GgufFile gguf_open(Arena *arena, const char *path) {
    GgufFile first = gguf_read(arena, file_map(arena, path));
    const int64_t parts = number_of(&first, "split.count", MOST_PARTS), no = number_of(&first, "split.no", MOST_PARTS);
    if (parts <= 1) return first;
    if (no != 0) fail("%s: it is part %" PRId64 " of %" PRId64 " of a model (`split.no`); give the first one, "
        "and the others are read with it", path, no + 1, parts);
    const char *stem = stem_of(arena, path, parts);
    GgufFile *files = arena_array(arena, (size_t)parts, sizeof *files);
    TensorFile *tensors = arena_array(arena, (size_t)parts, sizeof *tensors);
    int64_t total = 0;
    for (int64_t i = 0; i < parts; i++) {
        files[i] = i ? read_part(arena, part_path(arena, stem, i, parts), path, i, parts) : first;
        tensors[i] = files[i].tensors;
        total += (int64_t)tensors[i].count; /* each is in a mapped file, so that the sum cannot overflow */
    }
    for (int64_t i = 0; i < parts; i++) check_count(&files[i], total);
    first.tensors = tensors_joined(arena, path, tensors, (size_t)parts);
    return first;
}
