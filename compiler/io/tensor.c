/* tensor.c: element types, shapes, lookup by name, and conversion to f32. */
#include "../attnc.h"

#include <inttypes.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensor files are little-endian and are read without a swap");

static const struct {
    const char *name;
    size_t bytes;
} DTYPES[DTYPE_COUNT] = {
    [DTYPE_F32] = {"F32", 4}, [DTYPE_F16] = {"F16", 2}, [DTYPE_BF16] = {"BF16", 2}, [DTYPE_F64] = {"F64", 8},
    [DTYPE_I64] = {"I64", 8}, [DTYPE_I32] = {"I32", 4}, [DTYPE_I16] = {"I16", 2},   [DTYPE_I8] = {"I8", 1},
    [DTYPE_U8] = {"U8", 1},   [DTYPE_BOOL] = {"BOOL", 1},
};

static void check_dtype(Dtype dtype) {
    if ((unsigned)dtype >= DTYPE_COUNT) bug("there is no dtype %d", (int)dtype);
}

const char *dtype_name(Dtype dtype) {
    check_dtype(dtype);
    return DTYPES[dtype].name;
}

size_t dtype_bytes(Dtype dtype) {
    check_dtype(dtype);
    return DTYPES[dtype].bytes;
}

bool dtype_is_float(Dtype dtype) {
    return dtype == DTYPE_F32 || dtype == DTYPE_F16 || dtype == DTYPE_BF16 || dtype == DTYPE_F64;
}

const char *shape_text(Arena *arena, Shape shape) {
    Text text = text_new(arena);
    text_add(&text, "[", 1);
    for (int i = 0; i < shape.rank; i++) text_printf(&text, "%s%" PRId64, i ? ", " : "", shape.dims[i]);
    text_add(&text, "]", 1);
    return text.data;
}

/* The dims other than 0 must fit by themselves, so that no partial product overflows in any order. */
bool shape_elements(Shape shape, int64_t *elements) {
    int64_t product = 1;
    bool empty = false;
    for (int i = 0; i < shape.rank; i++) {
        if (shape.dims[i] < 0) return false;
        if (shape.dims[i] == 0) empty = true;
        else if (!mul_fits(product, shape.dims[i], &product)) return false;
    }
    *elements = empty ? 0 : product;
    return true;
}

bool shape_equal(Shape a, Shape b) {
    if (a.rank != b.rank) return false;
    for (int i = 0; i < a.rank; i++)
        if (a.dims[i] != b.dims[i]) return false;
    return true;
}

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

/* Reads items of Type, which may be unaligned, and stores `value`, an expression in `item`. */
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
    case DTYPE_COUNT: break;
    }
    bug("dtype %d is not converted", (int)tensor->dtype);
}
