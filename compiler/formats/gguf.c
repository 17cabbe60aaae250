/* gguf.c: reads the keys and the tensors of a GGUF file, which stays mapped. */
#include "gguf.h"

#include "blocks.h"
#include "bytes.h"
#include "half.h"
#include "tensor_file.h"

#include <inttypes.h>
#include <string.h>

static const char MAGIC[4] = {'G', 'G', 'U', 'F'};
enum { LEAST_VERSION = 2, MOST_VERSION = 3, USUAL_ALIGNMENT = 32, MOST_ALIGNMENT = 1 << 20, MOST_KEY = 65535 };
enum { STRING_PREFIX = 8, LEAST_ENTRY = STRING_PREFIX + 4 + 1, LEAST_INFO = STRING_PREFIX + 4 + 8 + 4 + 8 };

static const uint8_t type_bytes[GGUF_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

typedef struct Reading { /* a header that is being read */
    Arena *arena;
    const char *path;
    const uint8_t *begin, *at, *end;
} Reading;

/* ---------------------------------------------------------------- numbers and strings */

static const uint8_t *take_bytes(Reading *reading, uint64_t bytes, const char *what) {
    if (bytes > (uint64_t)(reading->end - reading->at))
        fail("%s: the file ends within its header, at %s; is it truncated?", reading->path, what);
    reading->at += bytes;
    return reading->at - bytes;
}

static uint64_t take(Reading *reading, int bytes, const char *what) {
    return number_at(take_bytes(reading, (uint64_t)bytes, what), bytes);
}

/* A key or a name: text without control characters. */
static const char *take_name(Reading *reading, const char *what) {
    uint64_t size = take(reading, STRING_PREFIX, what);
    if (size > MOST_KEY) fail("%s: %s has %" PRIu64 " bytes; at most %d are read", reading->path, what, size, MOST_KEY);
    const char *text = arena_copy(reading->arena, (const char *)take_bytes(reading, size, what), (size_t)size);
    if (strlen(text) != size) fail("%s: %s `%s` holds a NUL character", reading->path, what,
                                   tensor_shown(reading->arena, text));
    return text;
}

/* ---------------------------------------------------------------- keys and values */

static GgufType take_type(Reading *reading, const char *key) {
    uint64_t type = take(reading, 4, key);
    if (type >= GGUF_TYPES)
        fail("%s: the value of `%s` has the unknown type %" PRIu64, reading->path, tensor_shown(reading->arena, key),
             type);
    return (GgufType)type;
}

static GgufEntry take_entry(Reading *reading) {
    GgufEntry entry = {.key = take_name(reading, "a key"), .count = 1};
    const char *shown = tensor_shown(reading->arena, entry.key);
    if (text_has_control(entry.key))
        fail("%s: the key `%s` holds a control character", reading->path, shown);
    entry.type = take_type(reading, entry.key);
    entry.array = entry.type == GGUF_ARRAY;
    if (entry.array) {
        entry.type = take_type(reading, entry.key);
        if (entry.type == GGUF_ARRAY) fail("%s: `%s` is an array of arrays, which is not read", reading->path, shown);
        entry.count = take(reading, 8, shown);
    }
    const uint64_t least = entry.type == GGUF_STRING ? STRING_PREFIX : type_bytes[entry.type];
    const uint64_t rest = (uint64_t)(reading->end - reading->at);
    if (entry.count > rest / least)
        fail("%s: `%s` has %" PRIu64 " items, more than the rest of the file can hold; is it truncated?",
             reading->path, shown, entry.count);
    entry.data = reading->at;
    if (entry.type != GGUF_STRING) take_bytes(reading, entry.count * least, shown);
    else
        for (uint64_t i = 0; i < entry.count; i++) take_bytes(reading, take(reading, STRING_PREFIX, shown), shown);
    return entry;
}

double gguf_next_number(const GgufEntry *entry, const uint8_t **at) {
    const int bytes = type_bytes[entry->type];
    const uint64_t bits = number_at(*at, bytes);
    *at += bytes;
    switch (entry->type) {
    case GGUF_I8: return (int8_t)bits;
    case GGUF_I16: return (int16_t)bits;
    case GGUF_I32: return (int32_t)bits;
    case GGUF_I64: return (double)(int64_t)bits;
    case GGUF_BOOL: return bits != 0;
    case GGUF_F32: return (double)float_of_bits((uint32_t)bits);
    case GGUF_F64: {
        double value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    case GGUF_U8: case GGUF_U16: case GGUF_U32: case GGUF_U64: return (double)bits;
    case GGUF_STRING: case GGUF_ARRAY: case GGUF_TYPES: break;
    }
    bug("the type %d of a GGUF file is no number", (int)entry->type);
}

const char *gguf_next_string(const uint8_t **at, size_t *size) {
    *size = (size_t)number_at(*at, STRING_PREFIX);
    const char *text = (const char *)*at + STRING_PREFIX;
    *at += STRING_PREFIX + *size;
    return text;
}

const uint8_t *gguf_end(const GgufEntry *entry) {
    const uint8_t *at = entry->data;
    size_t size;
    if (entry->type != GGUF_STRING) return at + entry->count * (uint64_t)type_bytes[entry->type];
    for (uint64_t i = 0; i < entry->count; i++) gguf_next_string(&at, &size);
    return at;
}

const GgufEntry *gguf_find(const GgufFile *file, const char *key) {
    for (size_t i = 0; i < file->count; i++)
        if (strcmp(file->entries[i].key, key) == 0) return &file->entries[i];
    return NULL;
}

static void take_entries(Reading *reading, GgufFile *file, uint64_t count) {
    if (count > (uint64_t)(reading->end - reading->at) / LEAST_ENTRY)
        fail("%s: its header counts %" PRIu64 " keys, more than the file can hold", reading->path, count);
    file->entries = arena_array(reading->arena, (size_t)count, sizeof *file->entries);
    const char **keys = arena_array(reading->arena, (size_t)count + 1, sizeof *keys);
    for (; file->count < count; file->count++) {
        file->entries[file->count] = take_entry(reading);
        keys[file->count] = file->entries[file->count].key;
    }
    const char *twice = name_twice(keys, (size_t)count);
    if (twice) fail("%s: the key `%s` is there twice", reading->path, tensor_shown(reading->arena, twice));
}

/* ---------------------------------------------------------------- tensors */

typedef struct Info {
    const char *name;
    Shape shape;
    uint32_t type;
    uint64_t offset; /* from the first byte of the data */
} Info;

static Info take_info(Reading *reading) {
    Info info = {.name = take_name(reading, "the name of a tensor")};
    tensor_name_check(reading->path, info.name);
    uint64_t rank = take(reading, 4, info.name);
    if (rank > MAX_RANK)
        tensor_fail(reading->path, info.name, "it has %" PRIu64 " dims; at most %d are read", rank, MAX_RANK);
    info.shape.rank = (int)rank;
    for (int d = info.shape.rank - 1; d >= 0; d--) { /* the file has the columns first */
        uint64_t size = take(reading, 8, info.name);
        if (size > INT64_MAX / 2) tensor_fail(reading->path, info.name, "one of its dims is %" PRIu64, size);
        info.shape.dims[d] = (int64_t)size;
    }
    info.type = (uint32_t)take(reading, 4, info.name);
    info.offset = take(reading, 8, info.name);
    return info;
}

static const struct {
    uint32_t id;
    Dtype dtype;
} plain_types[] = {{0, DTYPE_F32}, {1, DTYPE_F16},  {24, DTYPE_I8},  {25, DTYPE_I16},
                   {26, DTYPE_I32}, {27, DTYPE_I64}, {28, DTYPE_F64}, {30, DTYPE_BF16}};

/* Types of ggml that are not read, for the message. */
static const struct {
    uint32_t id;
    const char *name;
} other_types[] = {{9, "Q8_1"}, {10, "Q2_K"}, {11, "Q3_K"}, {15, "Q8_K"}, {16, "IQ2_XXS"}, {17, "IQ2_XS"},
                   {18, "IQ3_XXS"}, {19, "IQ1_S"}, {21, "IQ3_S"}, {22, "IQ2_S"}, {23, "IQ4_XS"}, {29, "IQ1_M"},
                   {34, "TQ1_0"}, {35, "TQ2_0"}};

static const char *unread_type(const Reading *reading, const Info *info) {
    const char *name = "unknown to attnc";
    for (size_t i = 0; i < sizeof other_types / sizeof *other_types; i++)
        if (other_types[i].id == info->type) name = other_types[i].name;
    return arena_printf(reading->arena, "its type %" PRIu32 " (%s) is not read; F32, F16, BF16, Q8_0, Q4_0, Q4_1, "
                        "Q5_0, Q5_1, Q4_K, Q5_K, Q6_K, IQ4_NL and MXFP4 are", info->type, name);
}

/* The tensor without its place in the file. */
static FileTensor tensor_of_info(const Reading *reading, const Info *info) {
    FileTensor tensor = {.name = info->name, .path = reading->path, .shape = info->shape,
                         .blocks = block_format(info->type)};
    bool known = tensor.blocks;
    for (size_t i = 0; i < sizeof plain_types / sizeof *plain_types; i++)
        if (plain_types[i].id == info->type) tensor.dtype = plain_types[i].dtype, known = true;
    if (!known) {
        tensor.unread = unread_type(reading, info);
        tensor.dtype = DTYPE_COUNT;
        return tensor;
    }
    int64_t count = 0, bytes = 0;
    const int64_t row = info->shape.rank ? info->shape.dims[info->shape.rank - 1] : 1;
    const int64_t elements = tensor.blocks ? tensor.blocks->elements : 1;
    const int64_t size = tensor.blocks ? tensor.blocks->bytes : (int64_t)dtype_bytes(tensor.dtype);
    if (row % elements)
        tensor_fail(reading->path, info->name, "its rows of %" PRId64 " numbers are not blocks of %" PRId64
                    ", which its type %s has", row, elements, tensor.blocks->name);
    if (!shape_elements(info->shape, &count) || !mul_fits(count / elements, size, &bytes))
        tensor_fail(reading->path, info->name, "the size of shape %s overflows",
                    shape_text(reading->arena, info->shape));
    tensor.bytes = (size_t)bytes;
    return tensor;
}

static void check_overlaps(const Reading *reading, const TensorFile *file) {
    size_t count = 0;
    const FileTensor *const *places = tensors_placed(reading->arena, file, &count);
    for (size_t i = 1; i < count; i++)
        if (places[i - 1]->data + places[i - 1]->bytes > places[i]->data)
            tensor_fail(reading->path, places[i]->name, "it overlaps tensor `%s`",
                        tensor_shown(reading->arena, places[i - 1]->name));
}

static uint64_t alignment_of(const Reading *reading, const GgufFile *file) {
    const GgufEntry *entry = gguf_find(file, "general.alignment");
    if (!entry) return USUAL_ALIGNMENT;
    const uint8_t *at = entry->data;
    double value = entry->array || entry->type == GGUF_STRING ? 0 : gguf_next_number(entry, &at);
    uint64_t alignment = value >= 1 && value <= MOST_ALIGNMENT ? (uint64_t)value : 0;
    if (!alignment || alignment & (alignment - 1) || (double)alignment != value)
        fail("%s: `general.alignment` is not a power of two up to %d", reading->path, MOST_ALIGNMENT);
    return alignment;
}

static void take_tensors(Reading *reading, GgufFile *file, uint64_t count) {
    if (count > (uint64_t)(reading->end - reading->at) / LEAST_INFO)
        fail("%s: its header counts %" PRIu64 " tensors, more than the file can hold", reading->path, count);
    Info *infos = arena_array(reading->arena, (size_t)count + 1, sizeof *infos);
    for (uint64_t i = 0; i < count; i++) infos[i] = take_info(reading);
    const uint64_t alignment = alignment_of(reading, file);
    const uint64_t head = (uint64_t)(reading->at - reading->begin), data = (head + alignment - 1) & -alignment;
    const uint64_t size = (uint64_t)(reading->end - reading->begin);
    TensorFile *tensors = &file->tensors;
    tensors->tensors = arena_array(reading->arena, (size_t)count + 1, sizeof *tensors->tensors);
    for (; tensors->count < count; tensors->count++) {
        const Info *info = &infos[tensors->count];
        FileTensor tensor = tensor_of_info(reading, info);
        const uint64_t room = data < size ? size - data : 0;
        if (info->offset % alignment)
            tensor_fail(reading->path, info->name, "its offset %" PRIu64 " is no multiple of the alignment %" PRIu64,
                        info->offset, alignment);
        if (info->offset > room || tensor.bytes > room - info->offset)
            tensor_fail(reading->path, info->name, "its %zu bytes from %" PRIu64 " on reach beyond the file's %" PRIu64
                        " data bytes (is the file truncated?)", tensor.bytes, info->offset, room);
        tensor.data = reading->begin + (tensor.bytes ? data + info->offset : 0);
        tensors->tensors[tensors->count] = tensor;
    }
    check_overlaps(reading, tensors);
    tensors_sort(tensors);
}

/* ---------------------------------------------------------------- the file */

bool gguf_begins(MappedFile file) { return file.size >= sizeof MAGIC && memcmp(file.data, MAGIC, sizeof MAGIC) == 0; }

GgufFile gguf_read(Arena *arena, MappedFile mapped) {
    Reading reading = {arena, mapped.path, mapped.data, mapped.data + sizeof MAGIC, mapped.data + mapped.size};
    uint64_t version = take(&reading, 4, "its version");
    if (version && version % 65536 == 0)
        fail("%s: its version reads %" PRIu64 ": it is a big-endian GGUF file, and little-endian ones are read",
             mapped.path, version);
    if (version < LEAST_VERSION || version > MOST_VERSION)
        fail("%s: it is a GGUF file of version %" PRIu64 "; versions %d and %d are read", mapped.path, version,
             LEAST_VERSION, MOST_VERSION);
    uint64_t tensors = take(&reading, 8, "its counts"), entries = take(&reading, 8, "its counts");
    GgufFile file = {.tensors = {.path = mapped.path}};
    take_entries(&reading, &file, entries);
    take_tensors(&reading, &file, tensors);
    return file;
}
