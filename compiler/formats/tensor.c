/* tensor.c: finds tensors of a file by name, and converts their elements to f32; messages and order of tensors. */
#include "tensor_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensor files are little-endian and are read without a swap");

const FileTensor *tensor_find(const TensorFile *file, const char *name) {
    size_t low = 0, high = file->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, file->tensors[middle].name);
        if (order == 0) return &file->tensors[middle];
        if (order < 0) high = middle;
        else low = middle + 1;
    }
    return NULL;
}

static float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float float_of_half(uint16_t half) {
    uint32_t sign = (half & 0x8000u) << 16, exponent = (half >> 10) & 31u, fraction = half & 0x3ffu;
    if (exponent == 31) return float_of_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent) return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
    float magnitude = (float)fraction * 0x1p-24f;
    return sign ? -magnitude : magnitude;
}

/* Reads elements of Type, which may be unaligned, and stores `value`, an expression in `item`, for each. */
#define CONVERT(Type, value)                                                 \
    for (int64_t i = 0; i < count; i++) {                                    \
        Type item;                                                           \
        memcpy(&item, from + (size_t)i * sizeof item, sizeof item);          \
        out[i] = (value);                                                    \
    }                                                                        \
    return

void tensor_to_f32(const FileTensor *tensor, int64_t first, int64_t count, float *out) {
    size_t size = dtype_bytes(tensor->dtype);
    int64_t elements = (int64_t)(tensor->bytes / size);
    if (first < 0 || count < 0 || first > elements || count > elements - first)
        bug("elements %" PRId64 " and %" PRId64 " more are not in tensor `%s` of %" PRId64, first, count, tensor->name,
            elements);
    if (count == 0) return;
    const uint8_t *from = tensor->data + (size_t)first * size;
    switch (tensor->dtype) {
    case DTYPE_F32: memcpy(out, from, (size_t)count * size); return;
    case DTYPE_F16: CONVERT(uint16_t, float_of_half(item));
    case DTYPE_BF16: CONVERT(uint16_t, float_of_bits((uint32_t)item << 16));
    case DTYPE_F64: CONVERT(double, (float)item);
    case DTYPE_I64: CONVERT(int64_t, (float)item);
    case DTYPE_I32: CONVERT(int32_t, (float)item);
    case DTYPE_I16: CONVERT(int16_t, item);
    case DTYPE_I8: CONVERT(int8_t, item);
    case DTYPE_U8: CONVERT(uint8_t, item);
    case DTYPE_BOOL: CONVERT(uint8_t, item ? 1.0f : 0.0f);
    case DTYPE_I4: case DTYPE_COUNT: break; /* no file has I4 */
    }
    bug("dtype %d is not converted", (int)tensor->dtype);
}

/* To nearest even; numbers above the largest become infinite. NaN stays NaN: it is made quiet, so that no NaN whose
 * payload is in the lower bits alone becomes infinite. */
static uint16_t bf16_of_float(float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    if (number != number) return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* To nearest even; numbers from 65520 on become infinite. NaN stays NaN, and is made quiet. */
static uint16_t half_of_float(float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu, normal = 0x38800000u; /* 2^-14 */
    if (size > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (size >> 13 & 0x1ffu));
    if (size >= 0x47800000u) return (uint16_t)(sign | 0x7c00u); /* 2^16 */
    if (size >= normal) return (uint16_t)(sign | ((size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13));
    /* Below 2^-14 a half is a multiple of 2^-24, which is half the last bit of the sum: the sum rounds to it. */
    float sum = float_of_bits(size) + 0.5f;
    memcpy(&bits, &sum, sizeof bits);
    return (uint16_t)(sign | (bits - 0x3f000000u));
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

const char *tensor_shown(Arena *arena, const char *name) {
    enum { MOST = 160 };
    size_t size = strlen(name);
    char *text = arena_copy(arena, name, size < MOST ? size : MOST);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
    return size <= MOST ? text : arena_printf(arena, "%s...", text);
}

_Noreturn void tensor_fail(Arena *arena, const char *path, const char *name, const char *format, ...) {
    char reason[640];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    fail("%s: tensor `%s`: %s", path, tensor_shown(arena, name), reason);
}

void tensor_name_check(Arena *arena, const char *path, const char *name) {
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            tensor_fail(arena, path, name, "its name holds a control character");
}

/* ------------------------------------------------------------------ names */

static int by_name(const void *a, const void *b) {
    return strcmp(((const FileTensor *)a)->name, ((const FileTensor *)b)->name);
}

void tensors_sort(Arena *arena, TensorFile *file) {
    FileTensor *tensors = file->tensors;
    if (file->count) qsort(tensors, file->count, sizeof *tensors, by_name);
    for (size_t i = 1; i < file->count; i++) {
        const char *other = tensors[i - 1].path;
        if (strcmp(tensors[i - 1].name, tensors[i].name) != 0) continue;
        if (strcmp(other, tensors[i].path) == 0) tensor_fail(arena, file->path, tensors[i].name, "it is there twice");
        tensor_fail(arena, tensors[i].path, tensors[i].name, "it is also in %s", other);
    }
}
