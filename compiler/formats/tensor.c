/* tensor.c: finds tensors of a file by name, and converts their elements to f32; messages and order of tensors. */
#include "tensor_file.h"

#include "blocks.h"
#include "coded.h"
#include "half.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensor files are little-endian and are read without a swap");

bool tensor_types_equal(const FileTensor *a, const FileTensor *b) {
    const bool odd = a->coded || b->coded || a->strides || b->strides || a->unread || b->unread;
    return !odd && a->blocks == b->blocks && a->dtype == b->dtype;
}

/* Reads elements of Type, which may be unaligned, and stores `value`, an expression in `item`, for each. */
#define CONVERT(Type, value)                                                 \
    for (int64_t i = 0; i < count; i++) {                                    \
        Type item;                                                           \
        memcpy(&item, from + (size_t)i * sizeof item, sizeof item);          \
        out[i] = (value);                                                    \
    }                                                                        \
    return

/* Converts numbers that follow each other without gaps. */
static void plain_to_f32(Dtype dtype, const uint8_t *from, int64_t count, float *out) {
    switch (dtype) {
    case DTYPE_F32: memcpy(out, from, (size_t)count * sizeof *out); return;
    case DTYPE_F16: CONVERT(uint16_t, float_of_half(item));
    case DTYPE_BF16: CONVERT(uint16_t, float_of_bits((uint32_t)item << 16));
    case DTYPE_F64: CONVERT(double, (float)item);
    case DTYPE_I64: CONVERT(int64_t, (float)item);
    case DTYPE_I32: CONVERT(int32_t, (float)item);
    case DTYPE_I16: CONVERT(int16_t, item);
    case DTYPE_I8: CONVERT(int8_t, item);
    case DTYPE_U8: CONVERT(uint8_t, item);
    case DTYPE_BOOL: CONVERT(uint8_t, item ? 1.0f : 0.0f);
    case DTYPE_F8_E4M3: case DTYPE_F8_E5M2: CONVERT(uint8_t, float_of_f8(dtype, item));
    case DTYPE_I4: case DTYPE_COUNT: break; /* no file has I4 */
    }
    bug("dtype %d is not converted", (int)dtype);
}

void tensor_gather(const FileTensor *tensor, int64_t first, int64_t count, void *out) {
    const size_t size = dtype_bytes(tensor->dtype);
    const Shape *shape = &tensor->shape;
    int64_t index[MAX_RANK] = {0}, place = 0, rest = first;
    for (int d = shape->rank - 1; d >= 0; rest /= shape->dims[d--]) {
        index[d] = rest % shape->dims[d];
        place += index[d] * tensor->strides[d];
    }
    for (int64_t i = 0; i < count; i++) {
        memcpy((uint8_t *)out + (size_t)i * size, tensor->data + (size_t)place * size, size);
        for (int d = shape->rank - 1; d >= 0; d--) {
            place += tensor->strides[d];
            if (++index[d] < shape->dims[d]) break;
            place -= shape->dims[d] * tensor->strides[d];
            index[d] = 0;
        }
    }
}

/* As tensor_to_f32, of a view with strides: gathers some numbers at a time by rows, and converts them. */
static void view_to_f32(const FileTensor *tensor, int64_t first, int64_t count, float *out) {
    enum { STRETCH = 1024, MOST_BYTES = 8 };
    uint8_t gathered[STRETCH * MOST_BYTES];
    for (int64_t at = 0; at < count; at += STRETCH) {
        const int64_t n = count - at < STRETCH ? count - at : STRETCH;
        tensor_gather(tensor, first + at, n, gathered);
        plain_to_f32(tensor->dtype, gathered, n, out + at);
    }
}

void tensor_to_f32(const FileTensor *tensor, int64_t first, int64_t count, float *out) {
    if (tensor->unread) fail("%s: tensor `%s`: %s", tensor->path, tensor->name, tensor->unread);
    const BlockFormat *blocks = tensor->blocks;
    size_t size = blocks ? (size_t)blocks->bytes : dtype_bytes(tensor->dtype);
    int64_t elements = (int64_t)(tensor->bytes / size) * (blocks ? blocks->elements : 1);
    if (tensor->coded) elements = tensor->coded->rows * tensor->coded->columns;
    if (first < 0 || count < 0 || first > elements || count > elements - first)
        bug("elements %" PRId64 " and %" PRId64 " more are not in tensor `%s` of %" PRId64, first, count, tensor->name,
            elements);
    if (count == 0) return;
    if (tensor->coded) coded_numbers(tensor->coded, first, count, out);
    else if (blocks) block_numbers(blocks, tensor->data, first, count, out);
    else if (tensor->strides) view_to_f32(tensor, first, count, out);
    else plain_to_f32(tensor->dtype, tensor->data + (size_t)first * size, count, out);
}

void tensor_from_f32(Dtype dtype, const float *numbers, int64_t count, void *out) {
    switch (dtype) {
    case DTYPE_F32: memcpy(out, numbers, (size_t)count * sizeof *numbers); return;
    case DTYPE_BF16:
        for (int64_t i = 0; i < count; i++) ((uint16_t *)out)[i] = bf16_of_float(numbers[i]);
        return;
    case DTYPE_F16:
        for (int64_t i = 0; i < count; i++) ((uint16_t *)out)[i] = half_of_float(numbers[i]);
        return;
    default: bug("no weights are stored as %s", dtype_name(dtype));
    }
}

/* ------------------------------------------------------------------ messages */

enum { MOST_SHOWN = 160 };

bool text_is_one_of(const char *text, const char *const *words) {
    for (; *words; words++)
        if (strcmp(text, *words) == 0) return true;
    return false;
}

/* Puts the beginning of a name into `shown`, and says whether there is more. */
static bool cut_name(const char *name, char shown[MOST_SHOWN + 1]) {
    const size_t size = utf8_cut(name, MOST_SHOWN);
    memcpy(shown, name, size);
    shown[size] = '\0';
    text_disarm_line(shown, size);
    return name[size] != '\0';
}

const char *tensor_shown(Arena *arena, const char *name) {
    char shown[MOST_SHOWN + 1];
    const bool more = cut_name(name, shown);
    return arena_printf(arena, "%s%s", shown, more ? "..." : "");
}

_Noreturn void tensor_fail(const char *path, const char *name, const char *format, ...) {
    enum { MOST = 640 };
    char reason[MOST + 4];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    char shown[MOST_SHOWN + 1]; /* not in an arena, which nothing would free after a failure */
    const bool more = cut_name(name, shown);
    fail("%s: tensor `%s%s`: %.*s", path, shown, more ? "..." : "", CUT(MOST, reason));
}

void tensor_name_check(const char *path, const char *name) {
    if (text_has_control(name)) tensor_fail(path, name, "its name holds a control character");
}

/* ------------------------------------------------------------------ names */

static int by_name(const void *a, const void *b) {
    return strcmp(((const FileTensor *)a)->name, ((const FileTensor *)b)->name);
}

void tensors_sort(TensorFile *file) {
    FileTensor *tensors = file->tensors;
    if (file->count) qsort(tensors, file->count, sizeof *tensors, by_name);
    for (size_t i = 1; i < file->count; i++) {
        const char *other = tensors[i - 1].path; /* of the same opened file where the pointers are equal */
        if (strcmp(tensors[i - 1].name, tensors[i].name) != 0) continue;
        if (other == tensors[i].path) tensor_fail(file->path, tensors[i].name, "it is there twice");
        tensor_fail(tensors[i].path, tensors[i].name, "it is also in %s", other);
    }
}

TensorFile tensors_joined(Arena *arena, const char *path, const TensorFile *files, size_t count) {
    TensorFile all = {.path = path};
    size_t total = 0;
    for (size_t i = 0; i < count; i++) total += files[i].count;
    all.tensors = arena_array(arena, total, sizeof *all.tensors);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < files[i].count; j++) all.tensors[all.count++] = files[i].tensors[j];
    tensors_sort(&all);
    return all;
}

const FileTensor *tensor_find(const TensorFile *file, const char *name) {
    const FileTensor wanted = {.name = name};
    return file->count ? bsearch(&wanted, file->tensors, file->count, sizeof wanted, by_name) : NULL;
}

int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

const char *name_twice(const char **names, size_t count) {
    if (count) qsort(names, count, sizeof *names, by_text);
    for (size_t i = 1; i < count; i++)
        if (strcmp(names[i - 1], names[i]) == 0) return names[i];
    return NULL;
}

static int by_place(const void *a, const void *b) {
    const FileTensor *x = *(const FileTensor *const *)a, *y = *(const FileTensor *const *)b;
    if (x->data != y->data) return x->data < y->data ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

const FileTensor *const *tensors_placed(Arena *arena, const TensorFile *file, size_t *count) {
    const FileTensor **places = arena_array(arena, file->count + 1, sizeof *places);
    *count = 0;
    for (size_t i = 0; i < file->count; i++)
        if (file->tensors[i].bytes) places[(*count)++] = &file->tensors[i];
    if (*count) qsort(places, *count, sizeof *places, by_place);
    return places;
}
