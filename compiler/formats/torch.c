/* torch.c: finds the tensors in the pickle of a checkpoint, and their numbers in the storages beside it.
 * An archive of PyTorch 1.6 and later has the members NAME/data.pkl and NAME/data/KEY. An older file is a sequence: the
 * pickles of a magic number, a version, a dictionary about the machine, the object, and the list of the storages' keys,
 * and then each storage in that order behind its count of elements in 8 bytes.
 * The format is that of pytorch/pytorch, torch/serialization.py and torch/_utils.py. */
#include "torch.h"

#include "bytes.h"
#include "pickle.h"
#include "tensor_file.h"
#include "zip.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 16, LONGEST_NAME = 4096 };

/* The pickle of the magic number 0x1950a86a20f9469cfc6c. */
static const uint8_t OLD_MAGIC[] = {0x80, 2, 0x8a, 10, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, '.'};

static const char TENSOR[] = "torch._utils._rebuild_tensor_v2", OLD_TENSOR[] = "torch._utils._rebuild_tensor",
                  PARAMETER[] = "torch._utils._rebuild_parameter", OLD_PARAMETER[] = "torch.nn.parameter.Parameter",
                  SIZE[] = "torch.Size";

static const struct {
    const char *class_name;
    Dtype dtype;
} storages[] = {
    {"torch.FloatStorage", DTYPE_F32}, {"torch.HalfStorage", DTYPE_F16}, {"torch.BFloat16Storage", DTYPE_BF16},
    {"torch.DoubleStorage", DTYPE_F64}, {"torch.LongStorage", DTYPE_I64}, {"torch.IntStorage", DTYPE_I32},
    {"torch.ShortStorage", DTYPE_I16}, {"torch.CharStorage", DTYPE_I8}, {"torch.ByteStorage", DTYPE_U8},
    {"torch.BoolStorage", DTYPE_BOOL},
};
enum { STORAGES = sizeof storages / sizeof *storages };

/* What the pickle of a checkpoint may name. */
static bool knows(const char *global) {
    static const char *const functions[] = {"collections.OrderedDict", TENSOR, OLD_TENSOR, PARAMETER, OLD_PARAMETER,
                                            SIZE};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(functions[i], global) == 0) return true;
    for (int i = 0; i < STORAGES; i++)
        if (strcmp(storages[i].class_name, global) == 0) return true;
    return false;
}

/* The numbers that tensors are views of. */
typedef struct Storage {
    const char *key;
    Dtype dtype;
    const uint8_t *data;
    int64_t count; /* of numbers */
} Storage;

typedef struct Reading {
    Arena *arena;
    const char *path;
    ZipFile archive;         /* of a new file, with the beginning of its members' names */
    const char *prefix;
    const Storage *sequence; /* [sequence_count] of an old file, sorted by key; NULL for a new one */
    size_t sequence_count;
    TensorFile file;
    int room;
    int64_t visited, most_visited; /* entries of dictionaries */
    size_t gathered, most_gathered; /* bytes of tensors that do not lie by rows */
} Reading;

/* ---------------------------------------------------------------- storages */

/* Fails for the storage of the tensor NAME, or for one of no tensor in particular where NAME is NULL. */
static _Noreturn void storage_fail(const Reading *reading, const char *name, const char *reason) {
    if (name) tensor_fail(reading->arena, reading->path, name, "%s", reason);
    fail("%s: of one storage, %s", reading->path, reason);
}

static bool is_text(const PickleValue *value, const char *text) {
    return value->kind == PICKLE_TEXT && strcmp(value->text, text) == 0;
}

/* What ('storage', CLASS, KEY, DEVICE, COUNT) says; an older file adds None, or a view of another storage. */
static Storage storage_named(const Reading *reading, const char *name, const PickleValue *outer) {
    const PickleValue *tuple = outer->count ? outer->items[0] : outer;
    if (tuple->kind != PICKLE_TUPLE || tuple->count < 5 || !is_text(tuple->items[0], "storage") ||
        tuple->items[1]->kind != PICKLE_GLOBAL || tuple->items[2]->kind != PICKLE_TEXT ||
        tuple->items[4]->kind != PICKLE_INTEGER || tuple->items[4]->integer < 0)
        storage_fail(reading, name, "the description is not that of PyTorch");
    if (tuple->count > 5 && tuple->items[5]->kind != PICKLE_PLAIN)
        storage_fail(reading, name, "the numbers are a part of another storage, which is not read");
    Storage storage = {.key = tuple->items[2]->text, .count = tuple->items[4]->integer};
    for (int i = 0; i < STORAGES; i++) {
        if (strcmp(storages[i].class_name, tuple->items[1]->text) != 0) continue;
        storage.dtype = storages[i].dtype;
        return storage;
    }
    storage_fail(reading, name, arena_printf(reading->arena, "the class is `%s`", tuple->items[1]->text));
}

static int by_key(const void *a, const void *b) {
    return strcmp(((const Storage *)a)->key, ((const Storage *)b)->key);
}

static int64_t bytes_of(const Reading *reading, const char *name, const Storage *storage) {
    int64_t bytes = 0;
    if (!mul_fits(storage->count, (int64_t)dtype_bytes(storage->dtype), &bytes))
        storage_fail(reading, name, "the size overflows");
    return bytes;
}

static const uint8_t *data_of_member(const Reading *reading, const char *name, const Storage *storage) {
    const ZipMember *member = zip_find(&reading->archive, arena_printf(reading->arena, "%sdata/%s", reading->prefix,
                                                                       storage->key));
    const char *shown = tensor_shown(reading->arena, storage->key);
    const int64_t bytes = bytes_of(reading, name, storage);
    if (!member) tensor_fail(reading->arena, reading->path, name, "the file lacks its storage `%s`", shown);
    if (member->size != (size_t)bytes)
        tensor_fail(reading->arena, reading->path, name, "its storage `%s` has %zu bytes, and %" PRId64 " numbers of %s"
                    " need %" PRId64, shown, member->size, storage->count, dtype_name(storage->dtype), bytes);
    return member->data;
}

static const uint8_t *data_of(const Reading *reading, const char *name, const Storage *storage) {
    if (!reading->sequence) return data_of_member(reading, name, storage);
    const Storage *found = bsearch(storage, reading->sequence, reading->sequence_count, sizeof *found, by_key);
    if (!found || found->dtype != storage->dtype || found->count != storage->count)
        tensor_fail(reading->arena, reading->path, name, "the file lacks its storage `%s`, or describes it in two ways",
                    tensor_shown(reading->arena, storage->key));
    return found->data;
}

/* ---------------------------------------------------------------- one tensor */

/* The tuple of sizes or strides. */
static Shape whole_numbers(const Reading *reading, const char *name, const PickleValue *tuple, const char *what) {
    Shape shape = {0};
    if (tuple->kind == PICKLE_CALL && strcmp(tuple->text, SIZE) == 0 && tuple->count == 1) tuple = tuple->items[0];
    if (tuple->kind != PICKLE_TUPLE) tensor_fail(reading->arena, reading->path, name, "its %s are no tuple", what);
    if (tuple->count > MAX_RANK)
        tensor_fail(reading->arena, reading->path, name, "it has %d dims; at most %d are read", tuple->count, MAX_RANK);
    for (; shape.rank < tuple->count; shape.rank++) {
        const PickleValue *item = tuple->items[shape.rank];
        if (item->kind != PICKLE_INTEGER || item->integer < 0)
            tensor_fail(reading->arena, reading->path, name, "one of its %s is not a whole number", what);
        shape.dims[shape.rank] = item->integer;
    }
    return shape;
}

/* Whether the numbers follow each other as those of a tensor by rows do; strides of dims of 1 do not matter. */
static bool by_rows(Shape shape, Shape strides) {
    int64_t expected = 1;
    for (int d = shape.rank - 1; d >= 0; expected *= shape.dims[d--])
        if (shape.dims[d] != 1 && strides.dims[d] != expected) return false;
    return true;
}

/* A copy by rows of a tensor that lies otherwise, as a transposed one does. */
static const uint8_t *gathered(Reading *reading, const uint8_t *from, size_t size, Shape shape, Shape strides,
                               int64_t elements) {
    reading->gathered += (size_t)elements * size;
    if (reading->gathered > reading->most_gathered)
        fail("%s: its tensors overlap, and those that do not lie by rows are larger than the file", reading->path);
    uint8_t *out = arena_array(reading->arena, (size_t)elements, size);
    int64_t index[MAX_RANK] = {0}, place = 0;
    for (int64_t i = 0; i < elements; i++) {
        memcpy(out + (size_t)i * size, from + (size_t)place * size, size);
        for (int d = shape.rank - 1; d >= 0; d--) {
            place += strides.dims[d];
            if (++index[d] < shape.dims[d]) break;
            place -= shape.dims[d] * strides.dims[d];
            index[d] = 0;
        }
    }
    return out;
}

/* The last number that the tensor reaches, counted from its first; false on overflow. Needs elements. */
static bool reach(Shape shape, Shape strides, int64_t *last) {
    *last = 0;
    for (int d = 0; d < shape.rank; d++) {
        int64_t step;
        if (!mul_fits(shape.dims[d] - 1, strides.dims[d], &step) || !add_fits(*last, step, last)) return false;
    }
    return true;
}

/* Adds the tensor of _rebuild_tensor_v2(storage, offset, size, stride, …). */
static void add_tensor(Reading *reading, const char *name, const PickleValue *call) {
    Arena *arena = reading->arena;
    const char *path = reading->path;
    if (call->count < 4 || call->items[0]->kind != PICKLE_OUTER || call->items[1]->kind != PICKLE_INTEGER)
        tensor_fail(arena, path, name, "it is not described as PyTorch describes one");
    Storage storage = storage_named(reading, name, call->items[0]);
    const Shape shape = whole_numbers(reading, name, call->items[2], "sizes"),
                strides = whole_numbers(reading, name, call->items[3], "strides");
    const int64_t offset = call->items[1]->integer;
    int64_t elements, last = 0;
    if (shape.rank != strides.rank) tensor_fail(arena, path, name, "it has %d sizes and %d strides", shape.rank,
                                                strides.rank);
    if (!shape_elements(shape, &elements))
        tensor_fail(arena, path, name, "the size of shape %s overflows", shape_text(arena, shape));
    storage.data = data_of(reading, name, &storage);
    if (elements && (!reach(shape, strides, &last) || offset < 0 || offset >= storage.count ||
                     last >= storage.count - offset || elements > storage.count))
        tensor_fail(arena, path, name, "shape %s from number %" PRId64 " on is more than the %" PRId64
                    " numbers of its storage", shape_text(arena, shape), offset, storage.count);
    const size_t size = dtype_bytes(storage.dtype);
    const uint8_t *data = elements ? storage.data + (size_t)offset * size : storage.data;
    if (elements && !by_rows(shape, strides)) data = gathered(reading, data, size, shape, strides, elements);
    TensorFile *file = &reading->file;
    file->tensors = arena_grow(arena, file->tensors, (int)file->count, &reading->room, sizeof *file->tensors);
    file->tensors[file->count++] = (FileTensor){.name = name, .path = path, .dtype = storage.dtype, .shape = shape,
                                                .data = data, .bytes = (size_t)elements * size};
}

/* ---------------------------------------------------------------- dictionaries */

static void add_dict(Reading *reading, const char *stem, const PickleValue *dict, int depth);

static void add_value(Reading *reading, const char *name, const PickleValue *value, int depth) {
    if (value->kind == PICKLE_DICT) {
        add_dict(reading, arena_printf(reading->arena, "%s.", name), value, depth + 1);
        return;
    }
    const bool parameter = value->kind == PICKLE_CALL && value->count > 0 &&
                           (strcmp(value->text, PARAMETER) == 0 || strcmp(value->text, OLD_PARAMETER) == 0);
    if (parameter) value = value->items[0];
    const bool tensor = value->kind == PICKLE_CALL &&
                        (strcmp(value->text, TENSOR) == 0 || strcmp(value->text, OLD_TENSOR) == 0);
    if (tensor) add_tensor(reading, name, value);
}

/* A dictionary can be inside of itself, or of many others, so that depth and entries have a limit. */
static void add_dict(Reading *reading, const char *stem, const PickleValue *dict, int depth) {
    if (depth > MOST_DEPTH) fail("%s: its dictionaries are nested deeper than %d", reading->path, MOST_DEPTH);
    for (int i = 0; i + 1 < dict->count; i += 2) {
        const PickleValue *key = dict->items[i];
        if (reading->visited++ == reading->most_visited)
            fail("%s: its dictionaries are inside of each other more often than its size allows", reading->path);
        if (key->kind != PICKLE_TEXT && key->kind != PICKLE_INTEGER) continue;
        const char *name = key->kind == PICKLE_TEXT
            ? arena_printf(reading->arena, "%s%s", stem, key->text)
            : arena_printf(reading->arena, "%s%" PRId64, stem, key->integer);
        if (strlen(name) > LONGEST_NAME)
            tensor_fail(reading->arena, reading->path, name, "its name has more than %d bytes", LONGEST_NAME);
        tensor_name_check(reading->arena, reading->path, name);
        add_value(reading, name, dict->items[i + 1], depth);
    }
}

static void add_all(Reading *reading, const Pickle *pickle) {
    if (pickle->whole->kind != PICKLE_DICT)
        fail("%s: it holds no dictionary of tensors, as `state_dict()` gives one", reading->path);
    reading->most_visited = (int64_t)pickle->bytes;
    add_dict(reading, "", pickle->whole, 0);
    tensors_sort(reading->arena, &reading->file);
}

/* ---------------------------------------------------------------- an archive */

/* What stands in front of `data.pkl` in the name of a member; NULL where there is no such member. */
static const char *prefix_of(Arena *arena, const ZipFile *archive) {
    for (size_t i = 0; i < archive->count; i++) {
        const char *name = archive->members[i].name, *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
        if (strcmp(last, "data.pkl") == 0) return arena_copy(arena, name, (size_t)(last - name));
    }
    return NULL;
}

static void read_archive(Reading *reading) {
    const ZipMember *order = zip_find(&reading->archive, arena_printf(reading->arena, "%sbyteorder", reading->prefix)),
                    *member = zip_find(&reading->archive, arena_printf(reading->arena, "%sdata.pkl", reading->prefix));
    if (order && (order->size != 6 || memcmp(order->data, "little", 6) != 0))
        fail("%s: its numbers are not little-endian, as `byteorder` in it says; little-endian ones are read",
             reading->path);
    const Pickle pickle = pickle_read(reading->arena, reading->path, member->data, member->size, knows);
    add_all(reading, &pickle);
}

/* ---------------------------------------------------------------- files from before PyTorch 1.6 */

/* Types and counts of the storages that the pickle names, sorted by key. */
static Storage *storages_of(const Reading *reading, const Pickle *pickle, size_t *count) {
    Storage *all = arena_array(reading->arena, (size_t)pickle->outer_count + 1, sizeof *all);
    *count = 0;
    for (int i = 0; i < pickle->outer_count; i++) all[i] = storage_named(reading, NULL, pickle->outer[i]);
    if (pickle->outer_count) qsort(all, (size_t)pickle->outer_count, sizeof *all, by_key);
    for (int i = 0; i < pickle->outer_count; i++)
        if (!*count || strcmp(all[*count - 1].key, all[i].key) != 0) all[(*count)++] = all[i];
    return all;
}

/* Places the storages in the order of their keys, each behind its count, from `at` on. */
static void place_storages(const Reading *reading, const PickleValue *keys, Storage *all, size_t count,
                           const uint8_t *at, const uint8_t *end) {
    for (int i = 0; i < keys->count; i++) {
        const Storage wanted = {.key = keys->items[i]->kind == PICKLE_TEXT ? keys->items[i]->text : ""};
        Storage *storage = bsearch(&wanted, all, count, sizeof *all, by_key);
        if (!storage) fail("%s: its list names a storage that no tensor has", reading->path);
        const int64_t bytes = bytes_of(reading, NULL, storage);
        if (end - at < 8 || bytes > end - at - 8)
            fail("%s: the file ends within its storage `%s`; is it truncated?", reading->path,
                 tensor_shown(reading->arena, storage->key));
        if (number_at(at, 8) != (uint64_t)storage->count)
            fail("%s: its storage `%s` has two different counts", reading->path,
                 tensor_shown(reading->arena, storage->key));
        storage->data = at + 8;
        at += 8 + bytes;
    }
    for (size_t i = 0; i < count; i++)
        if (!all[i].data) fail("%s: it lacks the storage `%s`", reading->path,
                               tensor_shown(reading->arena, all[i].key));
}

static Pickle next_pickle(const Reading *reading, const uint8_t **at, const uint8_t *end) {
    const Pickle pickle = pickle_read(reading->arena, reading->path, *at, (size_t)(end - *at), knows);
    *at += pickle.bytes;
    return pickle;
}

/* Whether the dictionary about the machine says that it was little-endian. */
static bool little_endian(const PickleValue *machine) {
    for (int i = 0; machine->kind == PICKLE_DICT && i + 1 < machine->count; i += 2)
        if (is_text(machine->items[i], "little_endian"))
            return machine->items[i + 1]->kind == PICKLE_INTEGER && machine->items[i + 1]->integer == 1;
    return false;
}

static void read_sequence(Reading *reading, MappedFile mapped) {
    const uint8_t *at = mapped.data + sizeof OLD_MAGIC, *end = mapped.data + mapped.size;
    const Pickle version = next_pickle(reading, &at, end);
    if (version.whole->kind != PICKLE_INTEGER || version.whole->integer != 1001)
        fail("%s: it is not of version 1001 of PyTorch's older files", reading->path);
    const Pickle machine = next_pickle(reading, &at, end);
    if (!little_endian(machine.whole))
        fail("%s: its numbers are not little-endian; little-endian ones are read", reading->path);
    const Pickle object = next_pickle(reading, &at, end), keys = next_pickle(reading, &at, end);
    if (keys.whole->kind != PICKLE_TUPLE) fail("%s: the list of its storages is missing", reading->path);
    Storage *all = storages_of(reading, &object, &reading->sequence_count);
    place_storages(reading, keys.whole, all, reading->sequence_count, at, end);
    reading->sequence = all;
    add_all(reading, &object);
}

/* ---------------------------------------------------------------- the file */

static bool is_sequence(MappedFile file) {
    return file.size >= sizeof OLD_MAGIC && memcmp(file.data, OLD_MAGIC, sizeof OLD_MAGIC) == 0;
}

bool torch_begins(MappedFile file) { return is_sequence(file) || zip_begins(file); }

TensorFile torch_read(Arena *arena, MappedFile mapped) {
    Reading reading = {.arena = arena, .path = mapped.path, .file = {.path = mapped.path},
                       .most_gathered = mapped.size};
    if (is_sequence(mapped)) {
        read_sequence(&reading, mapped);
        return reading.file;
    }
    reading.archive = zip_read(arena, mapped);
    reading.prefix = prefix_of(arena, &reading.archive);
    const char *kind = reading.prefix ? NULL : foreign_kind(arena, mapped, false);
    if (!reading.prefix) fail("%s: it is no checkpoint of PyTorch; it looks like %s", mapped.path, kind);
    read_archive(&reading);
    return reading.file;
}
