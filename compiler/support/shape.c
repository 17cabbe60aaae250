/* shape.c: element types, and shapes of tensors. */
#include "../attnc.h"

#include <inttypes.h>

typedef struct DtypeRow {
    const char *name;
    size_t bits;
    const char *c_type;
} DtypeRow;

static const DtypeRow DTYPES[DTYPE_COUNT] = {
    [DTYPE_F32] = {"F32", 32, "float"},     [DTYPE_F16] = {"F16", 16, "uint16_t"},
    [DTYPE_BF16] = {"BF16", 16, "uint16_t"}, [DTYPE_F64] = {"F64", 64, "double"},
    [DTYPE_I64] = {"I64", 64, "int64_t"},   [DTYPE_I32] = {"I32", 32, "int32_t"},
    [DTYPE_I16] = {"I16", 16, "int16_t"},   [DTYPE_I8] = {"I8", 8, "int8_t"},
    [DTYPE_U8] = {"U8", 8, "uint8_t"},     [DTYPE_BOOL] = {"BOOL", 8, "uint8_t"},
    [DTYPE_F8_E4M3] = {"F8_E4M3", 8, "uint8_t"}, [DTYPE_F8_E5M2] = {"F8_E5M2", 8, "uint8_t"},
    [DTYPE_I4] = {"I4", 4, "int8_t"}, /* two numbers */
};

static const DtypeRow *row_of(Dtype dtype) {
    if ((unsigned)dtype >= DTYPE_COUNT) bug("there is no dtype %d", (int)dtype);
    return &DTYPES[dtype];
}

const char *dtype_name(Dtype dtype) { return row_of(dtype)->name; }
size_t dtype_bits(Dtype dtype) { return row_of(dtype)->bits; }
const char *dtype_c_type(Dtype dtype) { return row_of(dtype)->c_type; }

size_t dtype_bytes(Dtype dtype) {
    const size_t bits = dtype_bits(dtype);
    if (bits % 8) bug("a number of dtype %s has no whole bytes", dtype_name(dtype));
    return bits / 8;
}

bool dtype_has_scales(Dtype dtype) { return dtype == DTYPE_I8 || dtype == DTYPE_I4; }

bool dtype_of_weights(Dtype dtype) { return dtype_is_float(dtype) || dtype_has_scales(dtype); }

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

/* The product without the dims that are 0 must fit too, so that no partial product overflows in any order. */
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

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
int64_t ceil_div(int64_t n, int64_t by) { return (n + by - 1) / by; }
