/* test_npy.c: .npy files, good and bad. */
#include "scratch_files.h"

static void npy_round_trips(void **state) {
    (void)state;
    static const uint8_t RAW[8 * 6] = {1, 0, 0, 0, 0, 0, 0, 0x40, 9, 8, 7, 6};
    static const Dtype DTYPES[] = {DTYPE_F32, DTYPE_F16, DTYPE_F64, DTYPE_I64, DTYPE_I32,
                                   DTYPE_I16, DTYPE_I8,  DTYPE_U8,  DTYPE_BOOL};
    static const Shape SHAPES[] = {{0}, {1, {6}}, {2, {2, 3}}, {3, {1, 2, 3}}, {2, {0, 3}},
                                   {8, {1, 1, 1, 1, 1, 1, 1, 6}}};
    for (size_t i = 0; i < sizeof DTYPES / sizeof *DTYPES; i++) {
        for (size_t j = 0; j < sizeof SHAPES / sizeof *SHAPES; j++) {
            const char *path = in_folder("round.npy");
            npy_write(arena, path, DTYPES[i], SHAPES[j], RAW);
            const NpyArray *array = loaded(path);
            int64_t elements;
            assert_true(shape_elements(SHAPES[j], &elements));
            assert_true(array->dtype == DTYPES[i] && shape_equal(array->shape, SHAPES[j]));
            assert_string_equal(array->path, path);
            assert_memory_equal(array->data, RAW, (size_t)elements * dtype_bytes(DTYPES[i]));
            MappedFile file = file_map(arena, path);
            assert_int_equal((array->data - file.data) % 64, 0);
            assert_int_equal(array->data[-1], '\n');
        }
    }
}

static void npy_bytes(void **state) {
    (void)state;
    static const int64_t ITEMS[2] = {5, -6};
    const char *path = in_folder("bytes.npy");
    npy_write(arena, path, DTYPE_I64, (Shape){1, {2}}, ITEMS);
    size_t size;
    const char *text = file_read(arena, path, 1000, &size);
    assert_int_equal(size, 128 + sizeof ITEMS);
    static const char EXPECTED[] = "\x93NUMPY\1\0v\0{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }  ";
    assert_memory_equal(text, EXPECTED, sizeof EXPECTED - 1);
}

static void npy_tolerance(void **state) {
    (void)state;
    static const float ITEMS[2] = {1.5f, -2};
    static const char *const HEADERS[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n",
        "{'descr':'<f4','fortran_order':False,'shape':(2,)}",
        "  { \"shape\" : ( 2 , ) , \"fortran_order\" : True , 'descr' : \"<f4\" }  \n",
        "{'shape': (1, 2), 'descr': '<f4', 'fortran_order': False}\n",
        "{'shape': (1, 2,), 'descr': '<f4', 'fortran_order': False}\n",
    };
    for (size_t i = 0; i < sizeof HEADERS / sizeof *HEADERS; i++) {
        for (int version = 1; version <= 3; version++) {
            const NpyArray *array = loaded(put_npy("t.npy", version, HEADERS[i], ITEMS, sizeof ITEMS));
            assert_true(npy_real(array, 0) == 1.5 && npy_real(array, 1) == -2);
        }
    }
}

static NpyArray one_item(Dtype dtype, const void *item) {
    return (NpyArray){"p.npy", dtype, {1, {1}}, item};
}

static void refuse_index_of_item(const NpyArray *array, int64_t index) {
    REFUSED(npy_real(array, index), EXIT_BUG, "no element");
}

static void npy_items(void **state) {
    (void)state;
    NpyArray array = one_item(DTYPE_I64, &(int64_t){INT64_MIN});
    assert_true(npy_integer(&array, 0) == INT64_MIN && npy_real(&array, 0) == -0x1p63);
    array = one_item(DTYPE_I32, &(int32_t){INT32_MAX});
    assert_true(npy_integer(&array, 0) == INT32_MAX && npy_real(&array, 0) == 2147483647.0);
    array = one_item(DTYPE_I16, &(int16_t){-2});
    assert_true(npy_integer(&array, 0) == -2 && npy_real(&array, 0) == -2);
    array = one_item(DTYPE_I8, &(int8_t){-3});
    assert_true(npy_integer(&array, 0) == -3 && npy_real(&array, 0) == -3);
    array = one_item(DTYPE_U8, &(uint8_t){255});
    assert_true(npy_integer(&array, 0) == 255 && npy_real(&array, 0) == 255);
    array = one_item(DTYPE_BOOL, &(uint8_t){1});
    assert_true(npy_integer(&array, 0) == 1 && npy_real(&array, 0) == 1);
    array = one_item(DTYPE_F16, &(uint16_t){0x0001});
    assert_true(npy_real(&array, 0) == 0x1p-24);
    array = one_item(DTYPE_BF16, &(uint16_t){0x3f80});
    assert_true(npy_real(&array, 0) == 1);
    array = one_item(DTYPE_F64, &(double){0.1});
    assert_true(npy_real(&array, 0) == 0.1);
    REFUSED(npy_integer(&array, 0), EXIT_USER, "p.npy: holds F64, but integers are needed");
    refuse_index_of_item(&array, -1);
    refuse_index_of_item(&array, 1);
}

static void npy_write_bf16(void **state) {
    (void)state;
    REFUSED(npy_write(arena, in_folder("bf16.npy"), DTYPE_BF16, (Shape){0}, "\0"), EXIT_BUG, "BF16 has no npy name");
}

static void npy_bad_files(void **state) {
    (void)state;
    refuse_npy(in_folder("absent.npy"), "cannot be opened");
    refuse_npy(put("bad.npy", "", 0), "is not an .npy file");
    refuse_npy(put_text("bad.npy", "PK and so on"), "is not an .npy file");
    refuse_npy(put("bad.npy", "PK\003\004", 4), "looks like a zip archive; unzip it first");
    refuse_npy(put("bad.npy", "\2\0\0\0\0\0\0\0{}", 10), "looks like a safetensors file; it is for --weights");
    refuse_npy(put_text("bad.npy", "version https://git-lfs.github.com/spec/v1\n"), "git lfs pull");
    refuse_npy(put("bad.npy", "\x93NUMPY", 6), "truncated");
    refuse_npy(put("bad.npy", "\x93NUMPY\1\0", 8), "truncated");
    refuse_npy(put("bad.npy", "\x93NUMPY\1\0\x05\0{", 11), "truncated");
    refuse_npy(put("bad.npy", "\x93NUMPY\2\0\xff\xff\xff\xff{", 13), "truncated");
    refuse_npy(put("bad.npy", "\x93NUMPY\2\0\xff\xff", 10), "truncated");
    refuse_npy(put("bad.npy", "\x93NUMPY\4\0\1\0\0\0{", 13), "version 4");
    refuse_npy(put("bad.npy", "\x93NUMPY\0\0\1\0\0\0{", 13), "version 0");
}

static void refuse_npy_as(const char *descr, const char *order, const char *shape, size_t size, const char *part) {
    refuse_npy_header(arena_printf(arena, "{'descr': %s, 'fortran_order': %s, 'shape': %s, }\n", descr, order, shape),
                      size, part);
}

static void npy_bad_headers(void **state) {
    (void)state;
    refuse_npy_header("", 0, "`{` is missing");
    refuse_npy_header("{", 0, "malformed");
    refuse_npy_header("{}", 0, "lacks `descr`");
    refuse_npy_header("{'descr': '<f4', 'shape': ()}", 4, "lacks `fortran_order`");
    refuse_npy_header("{'descr': '<f4', 'fortran_order': False}", 4, "lacks `shape`");
    refuse_npy_header("{'descr': '<f4', 'descr': '<f4'}", 4, "`descr` twice");
    refuse_npy_header("{'other': '<f4'}", 4, "unknown key `other`");
    refuse_npy_header("{'a key of more than two dozen letters': '<f4'}", 4, "not a known word");
    refuse_npy_header("{'descr", 4, "has no end");
    refuse_npy_header("{'descr' '<f4'}", 4, "`:` is missing");
    refuse_npy_header("{'descr': '<f4' 'shape': ()}", 4, "not parted by commas");
    refuse_npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", 4, "something follows its end");
    refuse_npy_as("'<f4'", "false", "()", 4, "neither True nor False");
    refuse_npy_as("'<f4'", "True", "(2, 2)", 16, "Fortran order");
    refuse_npy_as("7", "False", "()", 4, "`descr` is not a string");
    refuse_npy_as("[('x', '<f4')]", "False", "()", 4, "structured");
    refuse_npy_as("'>f4'", "False", "()", 4, "big-endian, and only little-endian is read: save array.astype('<f4')");
    refuse_npy_as("'|O'", "False", "()", 8, "Python objects");
    refuse_npy_as("'<u2'", "False", "()", 2, "`<u2` is unsigned");
    refuse_npy_as("'<u4'", "False", "()", 4, "`<u4` is unsigned");
    refuse_npy_as("'<u8'", "False", "()", 8, "`<u8` is unsigned");
    refuse_npy_as("'<c8'", "False", "()", 8, "unknown dtype `<c8`; known are <f4");
    refuse_npy_as("''", "False", "()", 8, "unknown dtype ``");
}

static void npy_bad_shapes(void **state) {
    (void)state;
    refuse_npy_as("'<f4'", "False", "2", 8, "`(` is missing");
    refuse_npy_as("'<f4'", "False", "(2)", 8, "not a tuple");
    refuse_npy_as("'<f4'", "False", "(2 2)", 16, "not parted by commas");
    refuse_npy_as("'<f4'", "False", "(,)", 4, "not a number");
    refuse_npy_as("'<f4'", "False", "(2.0,)", 8, "malformed");
    refuse_npy_as("'<f4'", "False", "(-2,)", 8, "negative dim");
    refuse_npy_as("'<f4'", "False", "(9223372036854775808,)", 8, "overflows");
    refuse_npy_as("'<f4'", "False", "(9223372036854775807,)", 8, "overflows");
    refuse_npy_as("'<f4'", "False", "(4294967296, 4294967296)", 8, "overflows");
    refuse_npy_as("'<f4'", "False", "(1,1,1,1,1,1,1,1,1)", 4, "more than 8 dims");
    refuse_npy_as("'<f4'", "False", "(2,)", 7, "truncated: shape [2] of `<f4` needs 8 data bytes, there are 7");
    refuse_npy_as("'<f4'", "False", "(2,)", 9, "oversized");
    refuse_npy_as("'<f4'", "False", "(0,)", 1, "oversized");
    refuse_npy_as("'<f8'", "False", "()", 0, "truncated");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(npy_round_trips), TEST(npy_bytes), TEST(npy_tolerance), TEST(npy_items), TEST(npy_write_bf16),
        TEST(npy_bad_files), TEST(npy_bad_headers), TEST(npy_bad_shapes),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
