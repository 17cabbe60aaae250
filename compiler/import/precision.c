/* precision.c: states the precisions of an imported spec. They hold the numbers of the file's matrices exactly or, with
 * --nearest, come nearest to those that only f32 holds. Each unit of the model has one. */
#include "../formats/blocks.h"
#include "../formats/coded.h"
#include "../formats/tensor_file.h"
#include "../restate/restate.h"
#include "import.h"

#include <stdlib.h>
#include <string.h>

static bool rounds(const Import *import) { return import->options->numbers != NUMBERS_EXACT; }

/* The words of --precision weights=… that hold all numbers of a tensor; NULL where only f32 does. */
static const char *exact_words(const FileTensor *tensor) {
    if (tensor->blocks) return tensor->blocks->exact;
    if (tensor->coded) return coded_exact(tensor->coded);
    return tensor->dtype == DTYPE_F16 ? "f16" : tensor->dtype == DTYPE_BF16 ? "bf16" : "f32";
}

/* The words for the numbers of a tensor. The blocks of a transposed tensor lie across the groups of a precision. */
static const char *words_of(const Import *import, const FileTensor *tensor, bool transposed) {
    const char *exact = exact_words(tensor);
    const bool quantized = tensor->blocks || tensor->coded;
    if (exact && !(quantized && transposed)) return exact;
    if (!rounds(import)) return "f32";
    return tensor->blocks ? tensor->blocks->nearest : coded_nearest(tensor->coded);
}

static WeightType type_of(Arena *arena, const char *words) {
    Precision precision = {.weights = {.dtype = DTYPE_F32}};
    const char *why = NULL;
    if (precision_read(arena, arena_printf(arena, "weights=%s", words), &precision, &why) != PRECISION_FINE)
        bug("the precision `%s` is %s", words, why);
    return precision.weights;
}

static int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

/* The type of a unit that has matrices of both types: one that holds the numbers of both, or with --nearest one that is
 * as fine as both. */
static WeightType type_of_both(const Import *import, WeightType a, WeightType b) {
    const WeightType f32 = {.dtype = DTYPE_F32};
    const bool integers = dtype_has_scales(a.dtype) && dtype_has_scales(b.dtype);
    if (weight_type_equal(a, b)) return a;
    if (!integers) {
        if (!rounds(import) || a.dtype == DTYPE_F32 || b.dtype == DTYPE_F32) return f32;
        return !dtype_has_scales(a.dtype) && !dtype_has_scales(b.dtype) ? f32 : dtype_has_scales(a.dtype) ? b : a;
    }
    const bool exact = a.group == b.group && a.halves == b.halves && !a.offset && !b.offset;
    if (!exact && !rounds(import)) return f32;
    const bool nibbles = a.dtype == DTYPE_I4 && b.dtype == DTYPE_I4;
    return (WeightType){.dtype = nibbles ? DTYPE_I4 : DTYPE_I8,
                        .group = a.group && b.group ? (int)lesser(a.group, b.group) : a.group + b.group,
                        .offset = nibbles && (a.offset || b.offset),
                        .halves = a.halves || b.halves};
}

/* Adds a format that only f32 holds to the list of the note, if it is not there. */
static void tell(const Import *import, Text *names, const FileTensor *tensor, const char *words) {
    const char *name = tensor->blocks ? tensor->blocks->name : "the quantized matrices";
    if (exact_words(tensor) || strstr(names->data, name)) return;
    const bool nearest = rounds(import);
    text_printf(names, "%s%s%s%s", names->size ? ", " : "", name, nearest ? " by weights=" : "", nearest ? words : "");
}

/* Returns the number of the unit that has this precision in its places; -1 for NULL. */
static int unit_at(const Unit *units, int count, const Precision *precision) {
    for (int u = 0; u < count && precision; u++)
        for (int p = 0; p < units[u].n_places; p++)
            if (units[u].places[p] == precision) return u;
    return -1;
}

/* Sets the type of each unit. A unit without a matrix, such as the output of `output none`, gets the type of the unit
 * in front of it. Returns whether any type is not f32. */
static bool find_types(Import *import, const Compilation *c, const Unit *units, int count, WeightType *types,
                       Text *names) {
    const WeightTable *table = &c->module->weights;
    bool *found = arena_array(import->arena, (size_t)count, sizeof *found), any = false;
    for (size_t i = 0; i < table->count; i++) {
        bool transposed = false;
        const int u = unit_at(units, count, table->specs[i].precision);
        const FileTensor *tensor =
            u < 0 ? NULL : weight_tensor(import->arena, c->model, table, import->file, i, &transposed);
        if (!tensor) continue;
        const char *words = words_of(import, tensor, transposed);
        const WeightType type = type_of(import->arena, words);
        tell(import, names, tensor, words);
        types[u] = found[u] ? type_of_both(import, types[u], type) : type;
        found[u] = true;
    }
    for (int u = 0; u < count; u++) {
        if (!found[u]) types[u] = u ? types[u - 1] : (WeightType){.dtype = DTYPE_F32};
        any |= types[u].dtype != DTYPE_F32;
    }
    return any;
}

static bool has_codes(const TensorFile *file) {
    for (size_t i = 0; i < file->count; i++)
        if (file->tensors[i].blocks || file->tensors[i].coded) return true;
    return false;
}

/* The bytes of all files that hold tensors. */
static int64_t file_bytes(Arena *arena, const TensorFile *file) {
    const char **paths = arena_array(arena, file->count, sizeof *paths);
    int64_t bytes = 0;
    for (size_t i = 0; i < file->count; i++) paths[i] = file->tensors[i].path;
    qsort(paths, file->count, sizeof *paths, by_text);
    for (size_t i = 0; i < file->count; i++)
        if (!i || strcmp(paths[i], paths[i - 1]) != 0) bytes += (int64_t)file_map(arena, paths[i]).size;
    return bytes;
}

/* The bytes of all weights, if each unit has its type of `types`. */
static int64_t bytes_of(const Compilation *c, const Unit *units, int count, const WeightType *types) {
    const WeightTable *table = &c->module->weights;
    int64_t bytes = 0;
    for (size_t i = 0; i < table->count; i++) {
        WeightSpec spec = table->specs[i];
        const int u = unit_at(units, count, spec.precision);
        if (u >= 0) spec.type = types[u];
        bytes += weight_bytes(&spec);
    }
    return bytes;
}

/* Notes that numbers stay f32, with the bytes of that and of the nearest integers. */
static void note_f32(Import *import, const Compilation *c, const Unit *units, int count, const WeightType *types,
                     const char *names) {
    ImportOptions options = *import->options;
    Import nearest = *import;
    options.numbers = NUMBERS_NEAREST;
    nearest.options = &options;
    WeightType *smaller = arena_array(import->arena, (size_t)count, sizeof *smaller);
    Text ignored = text_new(import->arena);
    find_types(&nearest, c, units, count, smaller, &ignored);
    import->precision_note = arena_printf(
        import->arena,
        "Only f32 holds the numbers of %s: the weights take %lld bytes, of a file of %lld bytes; import --nearest "
        "states the nearest integers, which take %lld bytes, and attnc compare shows what that changes.",
        names, (long long)bytes_of(c, units, count, types), (long long)import->file_bytes,
        (long long)bytes_of(c, units, count, smaller));
}

const WeightType *precision_find(Import *import, const Compilation *c, bool of_floats) {
    int count = 0;
    const Unit *units = units_of(import->arena, c->model, &count);
    WeightType *types = arena_array(import->arena, (size_t)count, sizeof *types);
    Text names = text_new(import->arena);
    const bool codes = has_codes(import->file);
    if (import->options->numbers == NUMBERS_NEAREST && !codes)
        fail("%s: `--nearest` is for quantized matrices, and this model has none", import->config_path);
    if (import->options->numbers == NUMBERS_CHOSEN || (!codes && !of_floats)) return NULL;
    const bool any = find_types(import, c, units, count, types, &names);
    import->file_bytes = file_bytes(import->arena, import->file);
    if (names.size && !rounds(import)) note_f32(import, c, units, count, types, names.data);
    if (names.size && rounds(import)) {
        import->rounded = names.data;
        import->precision_note = arena_printf(
            import->arena, "Numbers that only f32 holds are rounded, %s; attnc compare shows what that changes.",
            names.data);
    }
    return any ? types : NULL;
}

const char *precision_stated(const Import *import, Compilation *c, const WeightType *types) {
    int count = 0;
    const Unit *units = units_of(import->arena, c->model, &count);
    for (int u = 0; u < count; u++)
        for (int p = 0; p < units[u].n_places; p++) units[u].places[p]->weights = types[u];
    return restated(import->arena, c);
}
