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
enum { MOST_REPEATED = 1 << 26 }; /* numbers of a tensor that has more of them than its storage */

/* The pickle of the magic number 0x1950a86a20f9469cfc6c. */
static const uint8_t OLD_MAGIC[] = {0x80, 2, 0x8a, 10, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, '.'};

/* The third version has a storage of bytes, and names the type of its numbers. Every other function with the beginning
 * MAKER makes a tensor that is not read, such as a sparse one. */
static const char TENSOR[] = "torch._utils._rebuild_tensor_v2", OLD_TENSOR[] = "torch._utils._rebuild_tensor",
                  TYPED_TENSOR[] = "torch._utils._rebuild_tensor_v3", MAKER[] = "torch._utils._rebuild_",
                  SUBCLASS[] = "torch._tensor._rebuild_from_type_v2",
                  PARAMETER[] = "torch._utils._rebuild_parameter", OLD_PARAMETER[] = "torch.nn.parameter.Parameter",
                  STATE_PARAMETER[] = "torch._utils._rebuild_parameter_with_state", SIZE[] = "torch.Size";

/* Types of numbers by the class of a storage or by their own name; DTYPE_COUNT where they are not read. */
static const struct {
    const char *name;
    Dtype dtype;
    int bytes;
} types[] = {
    {"torch.FloatStorage", DTYPE_F32, 4}, {"torch.HalfStorage", DTYPE_F16, 2},
    {"torch.BFloat16Storage", DTYPE_BF16, 2}, {"torch.DoubleStorage", DTYPE_F64, 8},
    {"torch.LongStorage", DTYPE_I64, 8}, {"torch.IntStorage", DTYPE_I32, 4}, {"torch.ShortStorage", DTYPE_I16, 2},
    {"torch.CharStorage", DTYPE_I8, 1}, {"torch.ByteStorage", DTYPE_U8, 1}, {"torch.BoolStorage", DTYPE_BOOL, 1},
    {"torch.ComplexFloatStorage", DTYPE_COUNT, 8}, {"torch.ComplexDoubleStorage", DTYPE_COUNT, 16},
    {"torch.QInt8Storage", DTYPE_COUNT, 1}, {"torch.QUInt8Storage", DTYPE_COUNT, 1},
    {"torch.QInt32Storage", DTYPE_COUNT, 4}, {"torch.QUInt4x2Storage", DTYPE_COUNT, 1},
    {"torch.QUInt2x4Storage", DTYPE_COUNT, 1}, {"torch.storage.UntypedStorage", DTYPE_COUNT, 1},
    {"torch.UntypedStorage", DTYPE_COUNT, 1},
    {"torch.float8_e4m3fn", DTYPE_F8_E4M3, 1}, {"torch.float8_e5m2", DTYPE_F8_E5M2, 1},
};
enum { TYPES = sizeof types / sizeof *types };

static bool begins_with(const char *text, const char *beginning) {
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* A type of numbers, a way of quantizing or a layout, as in torch.uint16; also torch.device. */
static bool is_type(const char *global) {
    if (!begins_with(global, "torch.") || !global[6]) return false;
    return global[6 + strspn(global + 6, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
}

/* What the pickle of a checkpoint may name. */
static bool knows(const char *global) {
    static const char *const functions[] = {"collections.OrderedDict", SUBCLASS, OLD_PARAMETER, SIZE,
                                            "torch.serialization._get_layout", NULL};
    return text_is_one_of(global, functions) || is_type(global) || begins_with(global, MAKER) ||
           (begins_with(global, "torch.") && text_ends(global, "Storage"));
}

/* The numbers that tensors are views of. */
typedef struct Storage {
    const char *key, *type;
    Dtype dtype;    /* DTYPE_COUNT of a type that is not read */
    int64_t number; /* bytes of a number; 0 of an unknown type */
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
} Reading;

/* ---------------------------------------------------------------- storages */

/* Fails for the storage of the tensor NAME, or for one of no tensor in particular where NAME is NULL. */
static _Noreturn void storage_fail(const Reading *reading, const char *name, const char *reason) {
    if (name) tensor_fail(reading->path, name, "%s", reason);
    fail("%s: of one storage, %s", reading->path, reason);
}

static bool is_text(const PickleValue *value, const char *text) {
    return value->kind == PICKLE_TEXT && strcmp(value->text, text) == 0;
}

static void set_type(Storage *storage, const char *type) {
    storage->type = type;
    storage->dtype = DTYPE_COUNT;
    storage->number = 0;
    for (int i = 0; i < TYPES; i++) {
        if (strcmp(types[i].name, type) != 0) continue;
        storage->dtype = types[i].dtype;
        storage->number = types[i].bytes;
    }
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
    set_type(&storage, tuple->items[1]->text);
    return storage;
}

static int by_key(const void *a, const void *b) {
    return strcmp(((const Storage *)a)->key, ((const Storage *)b)->key);
}

static int64_t bytes_of(const Reading *reading, const char *name, const Storage *storage) {
    int64_t bytes = 0;
    if (!storage->number)
        storage_fail(reading, name, arena_printf(reading->arena, "the class is `%s`, and storages of an unknown size "
                                                 "are not read", tensor_shown(reading->arena, storage->type)));
    if (!mul_fits(storage->count, storage->number, &bytes))
        storage_fail(reading, name, "the size overflows");
    return bytes;
}

static const uint8_t *data_of_member(const Reading *reading, const char *name, const Storage *storage) {
    const ZipMember *member = zip_find(&reading->archive, arena_printf(reading->arena, "%sdata/%s", reading->prefix,
                                                                       storage->key));
    const char *shown = tensor_shown(reading->arena, storage->key);
    const int64_t bytes = bytes_of(reading, name, storage);
    if (!member) tensor_fail(reading->path, name, "the file lacks its storage `%s`", shown);
    if (member->size != (size_t)bytes)
        tensor_fail(reading->path, name, "its storage `%s` has %zu bytes, and %" PRId64 " numbers of %s need %" PRId64,
                    shown, member->size, storage->count, tensor_shown(reading->arena, storage->type), bytes);
    return member->data;
}

static const uint8_t *data_of(const Reading *reading, const char *name, const Storage *storage) {
    if (!reading->sequence) return data_of_member(reading, name, storage);
    const Storage *found = bsearch(storage, reading->sequence, reading->sequence_count, sizeof *found, by_key);
    if (!found || strcmp(found->type, storage->type) != 0 || found->count != storage->count)
        tensor_fail(reading->path, name, "the file lacks its storage `%s`, or describes it in two ways",
                    tensor_shown(reading->arena, storage->key));
    return found->data;
}

/* ---------------------------------------------------------------- one tensor */

/* The tuple of sizes or strides. */
static Shape whole_numbers(const Reading *reading, const char *name, const PickleValue *tuple, const char *what) {
    Shape shape = {0};
    if (tuple->kind == PICKLE_CALL && strcmp(tuple->text, SIZE) == 0 && tuple->count == 1) tuple = tuple->items[0];
    if (tuple->kind != PICKLE_TUPLE) tensor_fail(reading->path, name, "its %s are no tuple", what);
    if (tuple->count > MAX_RANK)
        tensor_fail(reading->path, name, "it has %d dims; at most %d are read", tuple->count, MAX_RANK);
    for (; shape.rank < tuple->count; shape.rank++) {
        const PickleValue *item = tuple->items[shape.rank];
        if (item->kind != PICKLE_INTEGER || item->integer < 0)
            tensor_fail(reading->path, name, "one of its %s is not a whole number", what);
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

/* The last number that the tensor reaches, counted from its first; false on overflow. Needs elements. */
static bool reach(Shape shape, Shape strides, int64_t *last) {
    *last = 0;
    for (int d = 0; d < shape.rank; d++) {
        int64_t step;
        if (!mul_fits(shape.dims[d] - 1, strides.dims[d], &step) || !add_fits(*last, step, last)) return false;
    }
    return true;
}

static void add(Reading *reading, FileTensor tensor) {
    TensorFile *file = &reading->file;
    file->tensors = arena_grow(reading->arena, file->tensors, (int)file->count, &reading->room, sizeof *file->tensors);
    file->tensors[file->count++] = tensor;
}

/* Adds a tensor that is not read, for this reason. */
static void add_unread(Reading *reading, const char *name, Shape shape, const char *format, const char *word) {
    const char *why = arena_printf(reading->arena, format, tensor_shown(reading->arena, word));
    add(reading, (FileTensor){.name = name, .path = reading->path, .unread = why, .dtype = DTYPE_COUNT, .shape = shape,
                              .data = (const uint8_t *)""});
}

/* Returns the storage that a call names. In the third version of the format a storage holds bytes, and the call names
 * the type of the numbers in it. */
static Storage storage_of(const Reading *reading, const char *name, const PickleValue *call) {
    Storage storage = storage_named(reading, name, call->items[0]);
    storage.data = storage.dtype == DTYPE_COUNT ? NULL : data_of(reading, name, &storage);
    if (strcmp(call->text, TYPED_TENSOR) != 0) return storage;
    if (call->count < 7 || call->items[6]->kind != PICKLE_GLOBAL || storage.number != 1)
        tensor_fail(reading->path, name, "it is not described as PyTorch describes one");
    Storage bytes = storage;
    set_type(&storage, call->items[6]->text);
    if (storage.dtype == DTYPE_COUNT) return storage;
    storage.data = data_of(reading, name, &bytes);
    storage.count /= storage.number;
    return storage;
}

/* Adds the tensor of _rebuild_tensor_v2(storage, offset, size, stride, …). */
static void add_tensor(Reading *reading, const char *name, const PickleValue *call) {
    Arena *arena = reading->arena;
    const char *path = reading->path;
    if (call->count < 4 || call->items[0]->kind != PICKLE_OUTER || call->items[1]->kind != PICKLE_INTEGER)
        tensor_fail(path, name, "it is not described as PyTorch describes one");
    if (call->items[2]->kind == PICKLE_TUPLE && call->items[2]->count > MAX_RANK) {
        add_unread(reading, name, (Shape){0}, "it has more than %s dims", number_text(arena, MAX_RANK));
        return;
    }
    const Storage storage = storage_of(reading, name, call);
    const Shape shape = whole_numbers(reading, name, call->items[2], "sizes"),
                strides = whole_numbers(reading, name, call->items[3], "strides");
    const int64_t offset = call->items[1]->integer;
    int64_t elements, bytes, last = 0;
    if (shape.rank != strides.rank) tensor_fail(path, name, "it has %d sizes and %d strides", shape.rank, strides.rank);
    if (storage.dtype == DTYPE_COUNT) {
        add_unread(reading, name, shape, "its numbers are of `%s`, which is not read", storage.type);
        return;
    }
    if (!shape_elements(shape, &elements) || !mul_fits(elements, storage.number, &bytes))
        tensor_fail(path, name, "the size of shape %s overflows", shape_text(arena, shape));
    if (elements && (!reach(shape, strides, &last) || offset < 0 || offset >= storage.count ||
                     last >= storage.count - offset))
        tensor_fail(path, name, "shape %s from number %" PRId64 " on is more than the %" PRId64 " numbers of its "
                    "storage", shape_text(arena, shape), offset, storage.count);
    FileTensor tensor = {.name = name, .path = path, .dtype = storage.dtype, .shape = shape,
                         .data = storage.data + (elements ? (size_t)(offset * storage.number) : 0),
                         .bytes = (size_t)bytes};
    if (elements > storage.count && elements > MOST_REPEATED)
        tensor.unread = arena_printf(arena, "it repeats the %" PRId64 " numbers of its storage up to %" PRId64
                                     "; at most %d are read", storage.count, elements, MOST_REPEATED);
    if (elements && !by_rows(shape, strides)) {
        int64_t *kept = arena_array(arena, MAX_RANK, sizeof *kept);
        memcpy(kept, strides.dims, sizeof strides.dims);
        tensor.strides = kept;
    }
    add(reading, tensor);
}

/* ---------------------------------------------------------------- dictionaries */

static void add_dict(Reading *reading, const char *stem, const PickleValue *dict, int depth);

static bool calls_one_of(const PickleValue *value, const char *const *functions) {
    return value->kind == PICKLE_CALL && text_is_one_of(value->text, functions);
}

static void add_value(Reading *reading, const char *name, const PickleValue *value, int depth) {
    if (value->kind == PICKLE_DICT) {
        add_dict(reading, arena_printf(reading->arena, "%s.", name), value, depth + 1);
        return;
    }
    static const char *const parameters[] = {PARAMETER, OLD_PARAMETER, STATE_PARAMETER, NULL},
                      *const tensors[] = {TENSOR, OLD_TENSOR, TYPED_TENSOR, NULL};
    if (calls_one_of(value, parameters) && value->count > 0) value = value->items[0];
    if (calls_one_of(value, tensors)) add_tensor(reading, name, value);
    else if (value->kind == PICKLE_CALL && (begins_with(value->text, MAKER) || strcmp(value->text, SUBCLASS) == 0))
        add_unread(reading, name, (Shape){0}, "it is made by `%s`, and plain tensors are read", value->text);
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
            tensor_fail(reading->path, name, "its name has more than %d bytes", LONGEST_NAME);
        tensor_name_check(reading->path, name);
        add_value(reading, name, dict->items[i + 1], depth);
    }
}

static void add_all(Reading *reading, const Pickle *pickle) {
    if (pickle->whole->kind != PICKLE_DICT)
        fail("%s: it holds no dictionary of tensors, as `state_dict()` gives one", reading->path);
    reading->most_visited = (int64_t)pickle->bytes;
    add_dict(reading, "", pickle->whole, 0);
    tensors_sort(&reading->file);
}

/* ---------------------------------------------------------------- an archive */

/* What stands in front of `data.pkl` in the name of a member; NULL where there is no such member. */
static const char *prefix_of(Arena *arena, const ZipFile *archive) {
    for (size_t i = 0; i < archive->count; i++) {
        const char *name = archive->members[i].name, *last = path_name(name);
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
    Reading reading = {.arena = arena, .path = mapped.path, .file = {.path = mapped.path, .size = mapped.size}};
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
