/* safetensors.c: reads one file; writes one file.
 * A file is a little-endian u64 with the header's size, a JSON header
 * {name: {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}}, then the data. */
#include "../attnc.h"
#include "json.h"
#include "tensor_file.h"

#include <inttypes.h>
#include <string.h>

enum { PREFIX_BYTES = 8 };

/* ------------------------------------------------------------------ one tensor's entry */

typedef struct Reading { /* a file whose header is being read */
    Arena *arena;
    const char *path;
    const uint8_t *data; /* the bytes after the header */
    int64_t size;
} Reading;

/* The field `key`, which must occur exactly once. */
static const cJSON *entry_field(const Reading *reading, const cJSON *entry, const char *key) {
    const cJSON *found = NULL;
    for (const cJSON *item = entry->child; item; item = item->next) {
        if (strcmp(item->string, key) != 0) continue;
        if (found) tensor_fail(reading->path, entry->string, "`%s` is there twice", key);
        found = item;
    }
    if (!found) tensor_fail(reading->path, entry->string, "`%s` is missing", key);
    return found;
}

/* The bits of a number of the types that are not read, so that their sizes are checked; 0 of an unknown type. */
static int64_t other_bits(const char *name) {
    static const struct {
        const char *name;
        int bits;
    } others[] = {{"C64", 64}, {"U64", 64}, {"U32", 32}, {"U16", 16}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
                  {"F8_E5M2FNUZ", 8}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i].name, name) == 0) return others[i].bits;
    return 0;
}

/* The type, or DTYPE_COUNT of one that is not read; then *unread says so. */
static Dtype entry_dtype(const Reading *reading, const cJSON *entry, int64_t *bits, const char **unread) {
    const cJSON *field = entry_field(reading, entry, "dtype");
    if (!cJSON_IsString(field)) tensor_fail(reading->path, entry->string, "`dtype` is not a string");
    Text known = text_new(reading->arena);
    for (int i = 0; i < DTYPE_COUNT; i++) {
        const char *name = dtype_name((Dtype)i);
        if (i == DTYPE_I4) continue; /* its places differ from file to file */
        *bits = 8 * (int64_t)dtype_bytes((Dtype)i);
        if (strcmp(field->valuestring, name) == 0) return (Dtype)i;
        text_printf(&known, "%s%s", i ? ", " : "", name);
    }
    bool narrow = strncmp(field->valuestring, "F8", 2) == 0 || strncmp(field->valuestring, "F6", 2) == 0 ||
                  strncmp(field->valuestring, "F4", 2) == 0;
    *bits = other_bits(field->valuestring);
    *unread = arena_printf(reading->arena, "its type `%s` is not read; %s are%s",
                           tensor_shown(reading->arena, field->valuestring), known.data,
                           narrow ? "; " NOT_QUANTIZED : "");
    return DTYPE_COUNT;
}

static Shape entry_shape(const Reading *reading, const cJSON *entry, const char **unread) {
    const cJSON *field = entry_field(reading, entry, "shape");
    if (!cJSON_IsArray(field)) tensor_fail(reading->path, entry->string, "`shape` is not an array");
    Shape shape = {0};
    int rank = 0;
    for (const cJSON *item = field->child; item; item = item->next, rank++) {
        int64_t dim;
        if (!json_whole(item, &dim))
            tensor_fail(reading->path, entry->string, "dim %d of `shape` is not a whole number from 0 to 2^53", rank);
        if (rank < MAX_RANK) shape.dims[shape.rank++] = dim;
    }
    if (rank > MAX_RANK)
        *unread = arena_printf(reading->arena, "it has %d dims; at most %d are read", rank, MAX_RANK);
    return shape;
}

static void entry_offsets(const Reading *reading, const cJSON *entry, int64_t *begin, int64_t *end) {
    const cJSON *field = entry_field(reading, entry, "data_offsets");
    const cJSON *first = cJSON_IsArray(field) ? field->child : NULL;
    if (!first || !first->next || first->next->next || !json_whole(first, begin) || !json_whole(first->next, end))
        tensor_fail(reading->path, entry->string, "`data_offsets` is not an array of two whole numbers from 0 to 2^53");
    if (*begin > *end)
        tensor_fail(reading->path, entry->string, "it begins at %" PRId64 " after its end at %" PRId64, *begin, *end);
    if (*end > reading->size)
        tensor_fail(reading->path, entry->string, "it ends at %" PRId64 ", beyond the file's %" PRId64
                    " data bytes (is the file truncated?)", *end, reading->size);
}

static FileTensor read_entry(const Reading *reading, const cJSON *entry) {
    Arena *arena = reading->arena;
    const char *name = entry->string;
    tensor_name_check(reading->path, name);
    if (!cJSON_IsObject(entry)) tensor_fail(reading->path, name, "its entry is not an object");
    const char *unread = NULL, *crowded = NULL;
    int64_t number_bits = 0, begin, end, count, bits;
    const Dtype dtype = entry_dtype(reading, entry, &number_bits, &unread);
    const Shape shape = entry_shape(reading, entry, &crowded);
    entry_offsets(reading, entry, &begin, &end);
    if (!shape_elements(shape, &count) || !mul_fits(count, 64, &bits))
        tensor_fail(reading->path, name, "the size of shape %s overflows", shape_text(arena, shape));
    bits = count * number_bits;
    if (number_bits && !crowded && (bits % 8 || end - begin != bits / 8))
        tensor_fail(reading->path, name, "shape %s of %s needs %" PRId64 " bytes, but `data_offsets` give %" PRId64,
                    shape_text(arena, shape),
                    unread ? entry_field(reading, entry, "dtype")->valuestring : dtype_name(dtype),
                    bits / 8 + (bits % 8 != 0), end - begin);
    return (FileTensor){.name = arena_copy(arena, name, strlen(name)), .path = reading->path,
                        .unread = unread ? unread : crowded, .dtype = dtype,
                        .shape = shape, .data = reading->data + begin, .bytes = (size_t)(end - begin)};
}

/* ------------------------------------------------------------------ one file */

/* The tensors must cover the data without gaps and overlaps; a tensor without bytes may be anywhere. */
static void check_places(const Reading *reading, const TensorFile *file) {
    size_t count = 0;
    const FileTensor *const *places = tensors_placed(reading->arena, file, &count);
    const uint8_t *end = reading->data;
    for (size_t i = 0; i < count; i++) {
        const FileTensor *tensor = places[i];
        if (tensor->data < end)
            tensor_fail(reading->path, tensor->name, "it overlaps tensor `%s`",
                        tensor_shown(reading->arena, places[i - 1]->name));
        if (tensor->data > end)
            tensor_fail(reading->path, tensor->name, "%td bytes before it belong to no tensor", tensor->data - end);
        end = tensor->data + tensor->bytes;
    }
    int64_t rest = reading->size - (int64_t)(end - reading->data);
    if (rest) fail("%s: %" PRId64 " bytes follow its last tensor: truncated or oversized", reading->path, rest);
}

static size_t header_size(Arena *arena, MappedFile file) {
    uint64_t length = 0;
    if (file.size >= PREFIX_BYTES) memcpy(&length, file.data, sizeof length);
    bool fits = file.size >= PREFIX_BYTES && length <= file.size - PREFIX_BYTES;
    if (fits && length >= 2 && length <= JSON_LIMIT && file.data[PREFIX_BYTES] == '{') return (size_t)length;

    /* Files of other kinds have an impossible length or other bytes after it. A truncated file may look like one. */
    bool foreign = length > JSON_LIMIT || file.size < PREFIX_BYTES ||
                   (file.size > PREFIX_BYTES && file.data[PREFIX_BYTES] != '{');
    const char *kind = foreign ? foreign_kind(arena, file, false) : NULL;
    if (kind) fail("%s: is not a safetensors file; it looks like %s", file.path, kind);
    if (file.size < PREFIX_BYTES)
        fail("%s: is not a safetensors file: it has only %zu bytes", file.path, file.size);
    if (!fits)
        fail("%s: its header of %" PRIu64 " bytes reaches beyond the file's %zu bytes: truncated, or not safetensors",
             file.path, length, file.size);
    if (length > JSON_LIMIT)
        fail("%s: its header has %" PRIu64 " bytes; at most %d are read", file.path, length, JSON_LIMIT);
    fail("%s: its header is not a JSON object", file.path);
}

TensorFile safetensors_read(Arena *arena, MappedFile mapped) {
    const char *path = mapped.path;
    size_t length = header_size(arena, mapped);
    const char *header = arena_copy(arena, (const char *)mapped.data + PREFIX_BYTES, length);
    Reading reading = {arena, mapped.path, mapped.data + PREFIX_BYTES + length,
                     (int64_t)(mapped.size - PREFIX_BYTES - length)};
    JsonTree *tree = json_object(arena, path, header, length, " ");

    TensorFile file = {.path = mapped.path};
    file.tensors = arena_array(arena, json_count(tree->root), sizeof *file.tensors);
    bool metadata = false;
    for (const cJSON *entry = tree->root->child; entry; entry = entry->next) {
        if (strcmp(entry->string, "__metadata__") == 0) {
            if (metadata) fail("%s: `__metadata__` is there twice", path);
            metadata = true;
        } else {
            file.tensors[file.count++] = read_entry(&reading, entry);
        }
    }
    json_release(tree);
    tensors_sort(&file);
    check_places(&reading, &file);
    return file;
}

/* ------------------------------------------------------------------ writing */

/* tensor_file_open must be able to read the names that are written. */
static void check_names(Arena *arena, const char *path, const NamedTensor *tensors, size_t count) {
    const char **names = arena_array(arena, count, sizeof *names);
    for (size_t i = 0; i < count; i++) {
        names[i] = tensors[i].name;
        tensor_name_check(path, names[i]);
        if (strcmp(names[i], "__metadata__") == 0)
            tensor_fail(path, names[i], "the name is reserved in safetensors files");
    }
    const char *twice = name_twice(names, count);
    if (twice) tensor_fail(path, twice, "it would be there twice");
}

static void add_json_string(Text *text, const char *name) {
    text_add(text, "\"", 1);
    for (; *name; name++) {
        if (*name == '"' || *name == '\\') text_add(text, "\\", 1);
        text_add(text, name, 1);
    }
    text_add(text, "\"", 1);
}

static size_t f32_bytes(const char *path, const NamedTensor *tensor) {
    int64_t bytes;
    if (tensor->shape.rank < 0 || tensor->shape.rank > MAX_RANK || !shape_elements(tensor->shape, &bytes) ||
        !mul_fits(bytes, (int64_t)sizeof(float), &bytes))
        tensor_fail(path, tensor->name, "its size overflows");
    return (size_t)bytes;
}

void safetensors_write(Arena *arena, const char *path, const NamedTensor *tensors, size_t count) {
    check_names(arena, path, tensors, count);
    Text header = text_new(arena);
    int64_t offset = 0;
    text_add(&header, "{", 1);
    for (size_t i = 0; i < count; i++) {
        int64_t end;
        if (!add_fits(offset, (int64_t)f32_bytes(path, &tensors[i]), &end))
            tensor_fail(path, tensors[i].name, "its end overflows");
        if (i) text_add(&header, ",", 1);
        add_json_string(&header, tensors[i].name);
        text_printf(&header, ":{\"dtype\":\"F32\",\"shape\":%s,\"data_offsets\":[%" PRId64 ",%" PRId64 "]}",
                    shape_text(arena, tensors[i].shape), offset, end);
        offset = end;
    }
    text_add(&header, "}", 1);
    while (header.size % 8) text_add(&header, " ", 1); /* other writers align the data, too */
    if (header.size > JSON_LIMIT) fail("%s: its header would have %zu bytes, too many to read", path, header.size);

    OutputFile *output = output_open(arena, path);
    uint64_t length = header.size;
    output_write(output, &length, sizeof length);
    output_write(output, header.data, header.size);
    progress_begin("writing %s", path);
    for (size_t i = 0; i < count; i++) {
        progress_at((int64_t)i, (int64_t)count, "tensors");
        output_write(output, tensors[i].data, f32_bytes(path, &tensors[i]));
    }
    output_commit(output);
}
