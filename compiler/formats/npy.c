/* npy.c: NumPy's .npy files, read from versions 1 to 3 and written as version 1.
 * A file is "\x93NUMPY", major, minor, the header's size (u16 in version 1, else u32), a Python dict
 * {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } padded with spaces, then the data. */
#include "../attnc.h"

#include <inttypes.h>
#include <string.h>

enum { MAGIC_BYTES = 6 };

static const char MAGIC[] = "\x93NUMPY";

static const struct {
    const char *descr;
    Dtype dtype;
} DESCRS[] = {
    {"<f4", DTYPE_F32}, {"<f2", DTYPE_F16}, {"<f8", DTYPE_F64}, {"<i8", DTYPE_I64}, {"<i4", DTYPE_I32},
    {"<i2", DTYPE_I16}, {"|i1", DTYPE_I8},  {"|u1", DTYPE_U8},  {"|b1", DTYPE_BOOL},
};
enum { DESCR_COUNT = sizeof DESCRS / sizeof *DESCRS };

typedef struct Cursor {
    const char *path, *at, *end;
} Cursor;

typedef struct Header {
    char descr[16];
    bool fortran;
    Shape shape;
} Header;

static void skip_spaces(Cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\r' || *c->at == '\n')) c->at++;
}

static bool accept(Cursor *c, char wanted) {
    skip_spaces(c);
    if (c->at == c->end || *c->at != wanted) return false;
    c->at++;
    return true;
}

static void expect(Cursor *c, char wanted, const char *where) {
    if (!accept(c, wanted)) fail("%s: its npy header is malformed: `%c` is missing %s", c->path, wanted, where);
}

static bool accept_word(Cursor *c, const char *word) {
    size_t size = strlen(word);
    if ((size_t)(c->end - c->at) < size || memcmp(c->at, word, size) != 0) return false;
    c->at += size;
    return true;
}

/* A string in single or double quotes. Escapes are refused, since no known key or dtype needs any. */
static void parse_string(Cursor *c, char *out, size_t room, const char *what) {
    skip_spaces(c);
    char quote = c->at < c->end ? *c->at : '\0';
    if (quote != '\'' && quote != '"') fail("%s: its npy header is malformed: %s is not a string", c->path, what);
    c->at++;
    size_t size = 0;
    for (; c->at < c->end && *c->at != quote; c->at++) {
        bool plain = *c->at >= ' ' && *c->at < 0x7f && *c->at != '\\';
        if (!plain || size + 1 == room) fail("%s: its npy header is malformed: %s is not a known word", c->path, what);
        out[size++] = *c->at;
    }
    if (c->at == c->end) fail("%s: its npy header is malformed: %s has no end", c->path, what);
    c->at++;
    out[size] = '\0';
}

static int64_t parse_dim(Cursor *c) {
    skip_spaces(c);
    if (c->at < c->end && *c->at == '-') fail("%s: its shape has a negative dim", c->path);
    const char *begin = c->at;
    int64_t dim = 0;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
        if (!mul_fits(dim, 10, &dim) || !add_fits(dim, *c->at - '0', &dim)) fail("%s: its shape overflows", c->path);
    if (c->at == begin) fail("%s: its npy header is malformed: a dim of the shape is not a number", c->path);
    return dim;
}

/* Parses (), (3,) or (3, 4). Python writes a tuple of one element with a comma. */
static Shape parse_shape(Cursor *c) {
    Shape shape = {0};
    bool comma = true;
    expect(c, '(', "before the shape");
    while (!accept(c, ')')) {
        if (!comma) fail("%s: its npy header is malformed: the shape's dims are not parted by commas", c->path);
        if (shape.rank == MAX_RANK) fail("%s: its shape has more than %d dims", c->path, MAX_RANK);
        shape.dims[shape.rank++] = parse_dim(c);
        comma = accept(c, ',');
    }
    if (shape.rank == 1 && !comma) fail("%s: its npy header is malformed: the shape is not a tuple", c->path);
    return shape;
}

static Header parse_header(Cursor *c) {
    static const char *const KEYS[] = {"descr", "fortran_order", "shape"};
    Header header = {0};
    bool seen[3] = {false};
    bool comma = true;
    expect(c, '{', "at the begin");
    while (!accept(c, '}')) {
        if (!comma) fail("%s: its npy header is malformed: the items are not parted by commas", c->path);
        char key[24];
        parse_string(c, key, sizeof key, "a key");
        int which = 0;
        while (which < 3 && strcmp(key, KEYS[which]) != 0) which++;
        if (which == 3) fail("%s: its npy header has an unknown key `%s`", c->path, key);
        if (seen[which]) fail("%s: its npy header has `%s` twice", c->path, key);
        seen[which] = true;
        expect(c, ':', "after a key");
        skip_spaces(c);
        if (which == 2) {
            header.shape = parse_shape(c);
        } else if (which == 1) {
            header.fortran = accept_word(c, "True");
            if (!header.fortran && !accept_word(c, "False"))
                fail("%s: its npy header is malformed: `fortran_order` is neither True nor False", c->path);
        } else {
            if (c->at < c->end && *c->at == '[') fail("%s: structured dtypes are not read", c->path);
            parse_string(c, header.descr, sizeof header.descr, "`descr`");
        }
        comma = accept(c, ',');
    }
    for (int i = 0; i < 3; i++)
        if (!seen[i]) fail("%s: its npy header lacks `%s`", c->path, KEYS[i]);
    skip_spaces(c);
    if (c->at != c->end) fail("%s: its npy header is malformed: something follows its end", c->path);
    return header;
}

static Dtype descr_dtype(Arena *arena, const char *path, const char *descr) {
    Text known = text_new(arena);
    for (int i = 0; i < DESCR_COUNT; i++) {
        if (strcmp(descr, DESCRS[i].descr) == 0) return DESCRS[i].dtype;
        text_printf(&known, "%s%s", i ? ", " : "", DESCRS[i].descr);
    }
    if (descr[0] == '>')
        fail("%s: its dtype `%s` is big-endian, and only little-endian is read: save array.astype('<%s')", path, descr,
             descr + 1);
    if (descr[0] && descr[1] == 'O') fail("%s: its dtype `%s` holds Python objects, which are not read", path, descr);
    if (strcmp(descr, "<u2") == 0 || strcmp(descr, "<u4") == 0 || strcmp(descr, "<u8") == 0)
        fail("%s: its dtype `%s` is unsigned and not read; save it as int64", path, descr);
    fail("%s: unknown dtype `%s`; known are %s", path, descr, known.data);
}

/* Checks the magic, the version and the header's size. The cursor spans the dict, and the data begin at its end. */
static Cursor open_header(Arena *arena, MappedFile file) {
    if (file.size < MAGIC_BYTES || memcmp(file.data, MAGIC, MAGIC_BYTES) != 0) {
        const char *kind = foreign_kind(arena, file, true);
        fail("%s: is not an .npy file%s%s", file.path, kind ? "; it looks like " : "", kind ? kind : "");
    }
    unsigned major = file.size > MAGIC_BYTES ? file.data[MAGIC_BYTES] : 0;
    if (file.size > MAGIC_BYTES && (major < 1 || major > 3))
        fail("%s: its npy version %u is unknown; 1 to 3 are read", file.path, major);
    size_t start = MAGIC_BYTES + 2 + (major == 1 ? 2 : 4), size = 0;
    if (file.size >= start) {
        for (size_t i = start; i-- > MAGIC_BYTES + 2;) size = size << 8 | file.data[i];
    }
    if (file.size < start || size > file.size - start) fail("%s: is truncated within its npy header", file.path);
    const char *at = (const char *)file.data + start;
    return (Cursor){file.path, at, at + size};
}

NpyArray npy_read(Arena *arena, const char *path) {
    MappedFile file = file_map(arena, path);
    Cursor cursor = open_header(arena, file);
    const uint8_t *data = (const uint8_t *)cursor.end;
    Header header = parse_header(&cursor);
    Dtype dtype = descr_dtype(arena, file.path, header.descr);
    if (header.fortran && header.shape.rank > 1)
        fail("%s: is in Fortran order; save it with numpy.ascontiguousarray", path);
    int64_t bytes, have = (int64_t)(file.size - (size_t)(data - file.data));
    if (!shape_elements(header.shape, &bytes) || !mul_fits(bytes, (int64_t)dtype_bytes(dtype), &bytes))
        fail("%s: its shape %s overflows", path, shape_text(arena, header.shape));
    if (bytes != have)
        fail("%s: is %s: shape %s of `%s` needs %" PRId64 " data bytes, there are %" PRId64, path,
             have < bytes ? "truncated" : "oversized", shape_text(arena, header.shape), header.descr, bytes, have);
    return (NpyArray){file.path, dtype, header.shape, data};
}

static const uint8_t *npy_item(const NpyArray *array, int64_t index) {
    int64_t elements;
    if (!shape_elements(array->shape, &elements) || index < 0 || index >= elements)
        bug("%s: there is no element %" PRId64, array->path, index);
    return array->data + (size_t)index * dtype_bytes(array->dtype);
}

int64_t npy_integer(const NpyArray *array, int64_t index) {
    const uint8_t *item = npy_item(array, index);
    int64_t i64;
    int32_t i32;
    int16_t i16;
    switch (array->dtype) {
    case DTYPE_I64: memcpy(&i64, item, sizeof i64); return i64;
    case DTYPE_I32: memcpy(&i32, item, sizeof i32); return i32;
    case DTYPE_I16: memcpy(&i16, item, sizeof i16); return i16;
    case DTYPE_I8: return (int8_t)*item;
    case DTYPE_U8: return *item;
    case DTYPE_BOOL: return *item != 0;
    default: fail("%s: holds %s, but integers are needed", array->path, dtype_name(array->dtype));
    }
}

double npy_real(const NpyArray *array, int64_t index) {
    const uint8_t *item = npy_item(array, index);
    if (array->dtype == DTYPE_F64) {
        double value;
        memcpy(&value, item, sizeof value);
        return value;
    }
    if (array->dtype != DTYPE_F32 && array->dtype != DTYPE_F16 && array->dtype != DTYPE_BF16)
        return (double)npy_integer(array, index);
    FileTensor one = {.name = "item", .path = array->path, .dtype = array->dtype, .shape = {1, {1}}, .data = item,
                      .bytes = dtype_bytes(array->dtype)};
    float value;
    tensor_to_f32(&one, 0, 1, &value);
    return (double)value;
}

void npy_write(Arena *arena, const char *path, Dtype dtype, Shape shape, const void *data) {
    enum { PREFIX = MAGIC_BYTES + 4, ALIGN = 64 };
    const char *descr = NULL;
    for (int i = 0; i < DESCR_COUNT; i++)
        if (DESCRS[i].dtype == dtype) descr = DESCRS[i].descr;
    if (!descr) bug("%s: dtype %s has no npy name", path, dtype_name(dtype));
    int64_t bytes;
    if (!shape_elements(shape, &bytes) || !mul_fits(bytes, (int64_t)dtype_bytes(dtype), &bytes))
        bug("%s: the size of shape %s overflows", path, shape_text(arena, shape));

    Text header = text_new(arena);
    text_printf(&header, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < shape.rank; i++)
        text_printf(&header, "%s%" PRId64 "%s", i ? " " : "", shape.dims[i], i + 1 < shape.rank || !i ? "," : "");
    text_printf(&header, "), }");
    while ((PREFIX + header.size + 1) % ALIGN) text_add(&header, " ", 1);
    text_add(&header, "\n", 1);

    /* At most eight dims keep the header far below the 65535 bytes of version 1. */
    uint8_t prefix[PREFIX] = {0};
    memcpy(prefix, MAGIC, MAGIC_BYTES);
    prefix[MAGIC_BYTES] = 1;
    prefix[MAGIC_BYTES + 2] = (uint8_t)(header.size & 255);
    prefix[MAGIC_BYTES + 3] = (uint8_t)(header.size >> 8);
    OutputFile *output = output_open(arena, path);
    output_write(output, prefix, sizeof prefix);
    output_write(output, header.data, header.size);
    output_write(output, data, (size_t)bytes);
    output_commit(output);
}
