/* test_io.c: dtypes, shapes and safetensors files, good and bad. */
#include "scratch_files.h"

#include <inttypes.h>
#include <math.h>

/* ------------------------------------------------------------------ tensor.c */

static void dtypes(void **state) {
    (void)state;
    assert_string_equal(dtype_name(DTYPE_F32), "F32");
    assert_string_equal(dtype_name(DTYPE_BF16), "BF16");
    assert_string_equal(dtype_name(DTYPE_BOOL), "BOOL");
    static const size_t BYTES[] = {4, 2, 2, 8, 8, 4, 2, 1, 1, 1};
    for (int i = 0; i < DTYPE_I4; i++) assert_int_equal(dtype_bytes((Dtype)i), BYTES[i]);
    REFUSED(dtype_bytes(DTYPE_I4), EXIT_BUG, "no whole bytes");
    assert_int_equal(dtype_bits(DTYPE_I4), 4);
    REFUSED(dtype_bytes(DTYPE_COUNT), EXIT_BUG, "no dtype");
}

static void shapes(void **state) {
    (void)state;
    int64_t n = -1, big = INT64_C(1) << 40;
    assert_string_equal(shape_text(arena, (Shape){0}), "[]");
    assert_string_equal(shape_text(arena, (Shape){2, {384, 1536}}), "[384, 1536]");
    assert_true(shape_elements((Shape){0}, &n) && n == 1);
    assert_true(shape_elements((Shape){3, {2, 3, 4}}, &n) && n == 24);
    assert_true(shape_elements((Shape){3, {big, 0, 4}}, &n) && n == 0);
    assert_false(shape_elements((Shape){2, {big, big}}, &n));
    assert_false(shape_elements((Shape){3, {0, big, big}}, &n));
    assert_false(shape_elements((Shape){1, {-1}}, &n));
    assert_true(shape_equal((Shape){2, {3, 4}}, (Shape){2, {3, 4}}));
    assert_true(shape_equal((Shape){1, {3, 7}}, (Shape){1, {3, 8}}));
    assert_false(shape_equal((Shape){2, {3, 4}}, (Shape){2, {4, 3}}));
    assert_false(shape_equal((Shape){1, {3}}, (Shape){2, {3, 1}}));
}

/* One item of `size` bytes at an odd address, as f32. */
static float convert(Dtype dtype, const void *item, size_t size) {
    uint8_t *room = arena_alloc(arena, size + 1);
    memcpy(room + 1, item, size);
    FileTensor tensor = {.name = "x", .path = "p", .dtype = dtype, .shape = {1, {1}}, .data = room + 1, .bytes = size};
    float out = -1.0f;
    tensor_to_f32(&tensor, 0, 1, &out);
    return out;
}

static float from_half(uint16_t bits) { return convert(DTYPE_F16, &bits, sizeof bits); }
static float from_bf16(uint16_t bits) { return convert(DTYPE_BF16, &bits, sizeof bits); }

static void halves(void **state) {
    (void)state;
    same_bits(from_half(0x0000), 0x00000000u);
    same_bits(from_half(0x8000), 0x80000000u);
    same_bits(from_half(0x3c00), 0x3f800000u);
    same_bits(from_half(0xc100), 0xc0200000u); /* -2.5 */
    same_bits(from_half(0x7bff), 0x477fe000u); /* 65504, the largest */
    same_bits(from_half(0x0400), 0x38800000u); /* 2^-14, the least normal one */
    same_bits(from_half(0x0001), 0x33800000u); /* 2^-24, the least subnormal one */
    same_bits(from_half(0x83ff), 0xb87fc000u); /* the largest subnormal one, negative */
    same_bits(from_half(0x7c00), 0x7f800000u);
    same_bits(from_half(0xfc00), 0xff800000u);
    assert_true(isnan(from_half(0x7e00)));
    assert_true(isnan(from_half(0xfc01)));
    for (unsigned bits = 0; bits < 0x7c00; bits++) { /* by the definition */
        unsigned exponent = bits >> 10, fraction = bits & 0x3ff;
        double value = exponent ? ldexp(1024 + fraction, (int)exponent - 25) : ldexp(fraction, -24);
        assert_true((double)from_half((uint16_t)bits) == value);
        assert_true((double)from_half((uint16_t)(bits | 0x8000)) == -value);
    }
}

static void brain_floats(void **state) {
    (void)state;
    same_bits(from_bf16(0x3f80), 0x3f800000u);
    same_bits(from_bf16(0xc020), 0xc0200000u);
    same_bits(from_bf16(0x8000), 0x80000000u);
    same_bits(from_bf16(0x0001), 0x00010000u); /* subnormal */
    same_bits(from_bf16(0x7f80), 0x7f800000u);
    same_bits(from_bf16(0xff80), 0xff800000u);
    assert_true(isnan(from_bf16(0x7fc0)));
}

static uint16_t to_bf16(uint32_t bits) {
    float number;
    uint16_t out;
    memcpy(&number, &bits, sizeof number);
    tensor_from_f32(DTYPE_BF16, &number, 1, &out);
    return out;
}

static void brain_floats_are_rounded(void **state) {
    (void)state;
    static const struct {
        uint32_t bits;
        uint16_t rounded;
    } rows[] = {
        {0x3f800000, 0x3f80}, {0x3f807fff, 0x3f80}, {0x3f808001, 0x3f81},
        {0x3f808000, 0x3f80}, {0x3f818000, 0x3f82}, {0xbf818000, 0xbf82}, /* ties go to even */
        {0x3fffffff, 0x4000}, {0x00000000, 0x0000}, {0x80000000, 0x8000},
        {0x00000001, 0x0000}, {0x00008000, 0x0000}, {0x00008001, 0x0001}, {0x00018000, 0x0002}, /* subnormals */
        {0x007fffff, 0x0080}, /* up to the least normal number */
        {0x7f7f7fff, 0x7f7f}, {0x7f7f8000, 0x7f80}, {0x7f7fffff, 0x7f80}, {0xff7fffff, 0xff80}, /* infinite from here */
        {0x7f800000, 0x7f80}, {0xff800000, 0xff80},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) assert_int_equal(to_bf16(rows[i].bits), rows[i].rounded);
    static const uint32_t nans[] = {0x7fc00000, 0x7f800001, 0xff800001, 0x7fffffff, 0xffffffff, 0x7f80ffff};
    for (size_t i = 0; i < sizeof nans / sizeof *nans; i++) {
        assert_true(isnan(from_bf16(to_bf16(nans[i]))));
        assert_int_equal(to_bf16(nans[i]) >> 15, nans[i] >> 31);
    }
    for (uint32_t bits = 0; bits < 0x10000; bits++) /* what bf16 has stays */
        if (!isnan(from_bf16((uint16_t)bits))) assert_int_equal(to_bf16(bits << 16), bits);
    REFUSED(tensor_from_f32(DTYPE_I8, (float[]){1}, 1, (char[8]){0}), EXIT_BUG, "stored as I8");
}

static uint16_t to_half(float number) {
    uint16_t out;
    tensor_from_f32(DTYPE_F16, &number, 1, &out);
    return out;
}

/* Between neighbours, the nearer one is taken, and halfway the even one. 65536 would follow the largest half. */
static void halves_are_rounded(void **state) {
    (void)state;
    for (uint16_t half = 0; half < 0x7c00; half++) {
        float low = from_half(half), high = half == 0x7bff ? 65536 : from_half((uint16_t)(half + 1));
        float middle = (low + high) / 2;
        uint16_t even = (uint16_t)(half + (half & 1));
        for (int negative = 0; negative < 2; negative++) {
            uint16_t sign = (uint16_t)(negative << 15);
            float factor = negative ? -1 : 1;
            assert_int_equal(to_half(factor * low), half | sign);
            assert_int_equal(to_half(factor * middle), even | sign);
            assert_int_equal(to_half(factor * nextafterf(middle, 0)), half | sign);
            assert_int_equal(to_half(factor * nextafterf(middle, INFINITY)), (half + 1) | sign);
        }
    }
    assert_int_equal(to_half(1e-30f), 0);
    assert_int_equal(to_half(-0.0f), 0x8000);
    assert_int_equal(to_half(0x1p-149f), 0);
    assert_int_equal(to_half(3e38f), 0x7c00);
    assert_int_equal(to_half(-INFINITY), 0xfc00);
    static const uint32_t nans[] = {0x7fc00000, 0x7f800001, 0xff800001, 0x7fffffff, 0xffffffff, 0x7f80ffff};
    for (size_t i = 0; i < sizeof nans / sizeof *nans; i++) {
        float nan;
        memcpy(&nan, &nans[i], sizeof nan);
        assert_true(isnan(from_half(to_half(nan))));
        assert_int_equal(to_half(nan) >> 15, nans[i] >> 31);
    }
}

static void other_dtypes(void **state) {
    (void)state;
    assert_true(convert(DTYPE_F32, &(float){0.1f}, 4) == 0.1f);
    assert_true(convert(DTYPE_F64, &(double){-0.5}, 8) == -0.5f);
    assert_true(isinf(convert(DTYPE_F64, &(double){INFINITY}, 8)));
    assert_true(convert(DTYPE_I64, &(int64_t){-(INT64_C(1) << 40)}, 8) == -0x1p40f);
    assert_true(convert(DTYPE_I32, &(int32_t){-70000}, 4) == -70000.0f);
    assert_true(convert(DTYPE_I16, &(int16_t){-300}, 2) == -300.0f);
    assert_true(convert(DTYPE_I8, &(int8_t){-128}, 1) == -128.0f);
    assert_true(convert(DTYPE_U8, &(uint8_t){200}, 1) == 200.0f);
    assert_true(convert(DTYPE_BOOL, &(uint8_t){1}, 1) == 1.0f);
    assert_true(convert(DTYPE_BOOL, &(uint8_t){0}, 1) == 0.0f);
}

static void refuse_range(const FileTensor *tensor, int64_t first, int64_t count) {
    float out[2];
    REFUSED(tensor_to_f32(tensor, first, count, out), EXIT_BUG, "tensor `x`");
}

static void convert_range(void **state) {
    (void)state;
    static const int16_t ITEMS[] = {1, 2, 3, 4};
    FileTensor tensor = {.name = "x", .path = "p", .dtype = DTYPE_I16, .shape = {1, {4}},
                         .data = (const uint8_t *)ITEMS, .bytes = sizeof ITEMS};
    float out[2] = {0};
    tensor_to_f32(&tensor, 1, 2, out);
    assert_true(out[0] == 2.0f && out[1] == 3.0f);
    tensor_to_f32(&tensor, 4, 0, NULL);
    refuse_range(&tensor, 3, 2);
    refuse_range(&tensor, -1, 1);
    refuse_range(&tensor, 5, 0);
    refuse_range(&tensor, 0, -1);
    refuse_range(&tensor, 1, INT64_MAX);
}

/* ------------------------------------------------------------------ safetensors.c */

static void round_trip(void **state) {
    (void)state;
    static const float A[6] = {1, 2, 3, 4, 5, 6}, B[1] = {-0.25f};
    const NamedTensor tensors[] = {
        {"z \"quoted\" \\u0000 \xc3\xa9", {2, {2, 3}}, A}, {"scalar", {0}, B}, {"empty", {2, {0, 5}}, NULL}};
    const char *path = in_folder("round.safetensors");
    safetensors_write(arena, path, tensors, 3);
    const TensorFile *file = opened(path);
    assert_string_equal(file->path, path);
    assert_int_equal(file->count, 3);
    assert_string_equal(file->tensors[0].name, "empty");
    assert_string_equal(file->tensors[1].name, "scalar");
    for (size_t i = 0; i < 3; i++) {
        const FileTensor *tensor = tensor_find(file, tensors[i].name);
        assert_non_null(tensor);
        assert_string_equal(tensor->path, path);
        assert_true(tensor->dtype == DTYPE_F32 && shape_equal(tensor->shape, tensors[i].shape));
        if (tensor->bytes) assert_memory_equal(tensor->data, tensors[i].data, tensor->bytes);
    }
    assert_int_equal((tensor_find(file, "scalar")->data - tensor_find(file, tensors[0].name)->data), sizeof A);
    assert_null(tensor_find(file, "nothing"));
    assert_null(tensor_find(file, ""));
}

static void round_trip_of_nothing(void **state) {
    (void)state;
    const char *path = in_folder("nothing.safetensors");
    safetensors_write(arena, path, NULL, 0);
    const TensorFile *file = opened(path);
    assert_int_equal(file->count, 0);
    assert_int_equal(file->count, 0);
    assert_null(tensor_find(file, "a"));
}

static void good_header(void **state) {
    (void)state;
    static const uint8_t DATA[9] = {1, 2, 0x80, 0x3f, 5, 6, 7, 8, 9};
    const TensorFile *file = opened(put_tensors("good.safetensors",
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"b\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[4,9],\"extra\":1},"
        "\"e\":{\"shape\":[0],\"dtype\":\"I64\",\"data_offsets\":[2,2]},"
        "\"a\":{\"dtype\":\"BF16\",\"shape\":[2,1],\"data_offsets\":[0,4]}}     ", DATA, sizeof DATA));
    assert_int_equal(file->count, 3);
    assert_string_equal(file->tensors[0].name, "a");
    assert_int_equal(tensor_find(file, "b")->bytes, 5);
    assert_int_equal(tensor_find(file, "b")->data[0], 5);
    assert_int_equal(tensor_find(file, "e")->bytes, 0);
    float out[2];
    tensor_to_f32(tensor_find(file, "a"), 0, 2, out);
    assert_true(out[1] == 1.0f);
}

static void many_tensors(void **state) {
    (void)state;
    enum { MANY = 500 };
    NamedTensor *tensors = arena_array(arena, MANY, sizeof *tensors);
    float *values = arena_array(arena, MANY, sizeof *values);
    for (int i = 0; i < MANY; i++) {
        values[i] = (float)i;
        tensors[i] = (NamedTensor){arena_printf(arena, "t%d", i * 7 % MANY), {1, {1}}, &values[i]};
    }
    const char *path = in_folder("many.safetensors");
    safetensors_write(arena, path, tensors, MANY);
    const TensorFile *file = opened(path);
    for (int i = 0; i < MANY; i++) {
        float value = -1;
        tensor_to_f32(tensor_find(file, tensors[i].name), 0, 1, &value);
        assert_true(value == (float)i);
    }
    for (size_t i = 1; i < file->count; i++) assert_true(strcmp(file->tensors[i - 1].name, file->tensors[i].name) < 0);
}

static void bad_files(void **state) {
    (void)state;
    refuse(in_folder("absent.safetensors"), "cannot be opened");
    refuse(folder, "it is a folder without model.safetensors, pytorch_model.bin or an index of one");
    refuse(put("short", "", 0), "only 0 bytes");
    refuse(put("short", "1234567", 7), "only 7 bytes");
    refuse(put("zero", "\0\0\0\0\0\0\0\0", 8), "not a JSON object");
    refuse(put("beyond", "\x10\0\0\0\0\0\0\0{}", 10), "reaches beyond");
    refuse(put("huge", "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10), "reaches beyond");
    refuse(put("beyond", "{\0\0\0\0\0\0\0{}", 10), "truncated");
    const char *large = put("large", "\x01\xe1\xf5\x05\0\0\0\0{}", 10); /* 10^8 + 1, in a file with a hole */
    assert_int_equal(truncate(large, 100 * 1000 * 1000 + 64), 0);
    refuse(large, "at most 100000000");
    assert_int_equal(unlink(large), 0);
}

static void foreign_files(void **state) {
    (void)state;
    refuse(put("m.bin", "\x80\x02\x8a\nl\xfc\x9c" "F\xf9 j", 11), "pickle");
    refuse(put_text("m.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n"), "git lfs pull");
    refuse(put_text("m.safetensors", "\n<!DOCTYPE html><html>Not found</html>"), "HTML");
    refuse(put_text("m.safetensors", "<html>"), "HTML");
    refuse(put_text("m.safetensors", "{\"weight_map\": {}}"), "*.index.json");
    refuse(put("m.gguf", "GGUF\3\0\0\0\0\0\0\0", 12), "ends within its header");
    refuse(put("m.npy", "\x93NUMPY\1\0v\0{", 11), ".npy");
    static const char onnx[] = "\x08\x0a\x12\x07pytorch\x1a\x05" "2.0.0";
    refuse(put("m.onnx", onnx, sizeof onnx - 1), "looks like an ONNX model");
    refuse(put("m.onnx", onnx, 8), "looks like an ONNX model");
    /* an archive with one empty member, whose name is of 8 bytes in both places */
    char zip[] = "PK\3\4\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x08\0\0\0numb.npy"
                 "PK\1\2\x14\0\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x08\0"
                 "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0numb.npy"
                 "PK\5\6\0\0\0\0\1\0\1\0\x36\0\0\0\x26\0\0\0\0\0";
    refuse(put("m.npz", zip, sizeof zip - 1), "an .npz archive");
    memcpy(zip + 30, "text.txt", 8);
    refuse(put("m.zip", zip, sizeof zip - 1), "a zip archive; unzip it first");
    memcpy(zip + 30, "/version", 8);
    refuse(put("m.bin", zip, sizeof zip - 1), "its data.pkl is missing");
    refuse(put("m.bin", zip, sizeof zip - 2), "whose end is damaged");
    refuse(put("m.gz", "\x1f\x8b\x08\0\0\0\0\0\2\3", 10), "a gzip archive; unpack it");
    refuse(put("m.h5", "\x89HDF\r\n\x1a\n", 8), "an HDF5 file");
    refuse(put("m.tflite", "\x1c\0\0\0TFL3\x14\0", 10), "a TensorFlow Lite model");
    refuse(put_text("m.safetensors", "Entry not found"), "text that begins with `Entry not found`; the download may");
    refuse(put_text("m.safetensors", "Entry\033not found"), "reaches beyond");
    refuse(put_text("m.pkl", "(dp0\nVa\np1\nI1\ns."), "a Python pickle");
}

/* tests/checkpoints has two files that PyTorch wrote, and the same tensors as safetensors. */
static void checkpoints(void **state) {
    (void)state;
    const TensorFile *wanted = opened("tests/checkpoints/both.safetensors");
    static const char *const paths[] = {"tests/checkpoints/new.bin", "tests/checkpoints/old.bin"};
    for (int p = 0; p < 2; p++) {
        const TensorFile *file = opened(paths[p]);
        assert_int_equal(file->count, wanted->count);
        for (size_t i = 0; i < file->count; i++) {
            const FileTensor *tensor = &file->tensors[i], *other = &wanted->tensors[i];
            assert_string_equal(tensor->name, other->name);
            assert_true(tensor->dtype == other->dtype && shape_equal(tensor->shape, other->shape));
            assert_int_equal(tensor->bytes, other->bytes);
            const int64_t count = (int64_t)(tensor->bytes / dtype_bytes(tensor->dtype));
            float *ours = arena_array(arena, (size_t)count, sizeof *ours),
                  *theirs = arena_array(arena, (size_t)count, sizeof *theirs);
            tensor_to_f32(tensor, 0, count, ours);
            tensor_to_f32(other, 0, count, theirs);
            assert_memory_equal(ours, theirs, (size_t)count * sizeof *ours);
        }
    }
}

/* A folder stands for the file of weights that it holds, the whole one before an index of shards. */
static void folders(void **state) {
    (void)state;
    const char *home = in_folder("saved");
    assert_int_equal(mkdir(home, 0777), 0);
    const char *whole = in_folder("saved/model.safetensors"), *index = in_folder("saved/model.safetensors.index.json"),
               *shard = in_folder("saved/part.safetensors"), *torch = in_folder("saved/pytorch_model.bin");
    refuse(home, "separated by commas");
    put("saved/pytorch_model.bin", "PK", 2);
    refuse(home, "pytorch_model.bin");
    const float one = 1, two = 2;
    const NamedTensor tensor = {"a", {1, {1}}, &one}, other = {"b", {1, {1}}, &two};
    safetensors_write(arena, shard, &other, 1);
    put_text("saved/model.safetensors.index.json", "{\"weight_map\": {\"b\": \"part.safetensors\"}}");
    assert_non_null(tensor_find(opened(home), "b"));
    assert_non_null(tensor_find(opened(arena_printf(arena, "%s/", home)), "b"));
    safetensors_write(arena, whole, &tensor, 1);
    assert_non_null(tensor_find(opened(home), "a"));
    assert_null(tensor_find(opened(home), "b"));
    const char *const all[] = {whole, index, shard, torch};
    for (int i = 0; i < 4; i++) assert_int_equal(unlink(all[i]), 0);
    assert_int_equal(rmdir(home), 0);
}

static void bad_json(void **state) {
    (void)state;
    refuse_header("{\"a\":}", 0, "cannot be parsed at byte");
    refuse_header("{\"a\":1,", 0, "cannot be parsed");
    refuse_header("{\"a", 0, "cannot be parsed");
    refuse_header("{\"a\\", 0, "cannot be parsed");
    refuse_header("[1, 2]", 0, "not a JSON object");
    refuse_header(" {}", 0, "not a JSON object");
    refuse_header("{} x", 0, "not a space");
    refuse_header("{}\n", 0, "not a space");
    refuse_header("{\"a\\u0000b\":1}", 0, "NUL character");
    refuse_header("{\"a\\\\\\u0000b\":1}", 0, "NUL character");
    refuse(put("raw", "\6\0\0\0\0\0\0\0{\"\0\":1}", 14), "NUL character");
    refuse_header("{\"a\\nb\":1}", 0, "tensor `a?b`: its name holds a control character");
    refuse_header("{\"__metadata__\":{},\"__metadata__\":{}}", 0, "`__metadata__` is there twice");
    Text deep = text_new(arena);
    text_printf(&deep, "{\"a\":");
    for (int i = 0; i < 100000; i++) text_add(&deep, "[", 1);
    refuse_header(deep.data, 0, "cannot be parsed");
}

/* A full page of header: a byte read past it would be past the mapping. */
static void header_to_the_page_end(void **state) {
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *header = arena_alloc(arena, page);
    memset(header, ' ', page - 8);
    memcpy(header, "{\"a\":1", 6);
    header[page - 9] = ',';
    refuse_header(header, 0, "cannot be parsed");
    memset(header, ' ', page - 8);
    memcpy(header, "{}", 2);
    assert_int_equal(opened(put_tensors("page.safetensors", header, "", 0))->count, 0);
}

static void bad_fields(void **state) {
    (void)state;
    refuse_header("{\"a\":1}", 0, "tensor `a`: its entry is not an object");
    refuse_header("{\"a\":{\"shape\":[],\"data_offsets\":[0,4]}}", 4, "tensor `a`: `dtype` is missing");
    refuse_header("{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "tensor `a`: `shape` is missing");
    refuse_header("{\"a\":{\"dtype\":\"F32\",\"shape\":[]}}", 4, "tensor `a`: `data_offsets` is missing");
    refuse_header("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", 1,
                  "`dtype` is there twice");
    refuse_header("{\"a\":{\"dtype\":4,\"shape\":[],\"data_offsets\":[0,4]}}", 4, "`dtype` is not a string");
    refuse_header("{\"a\":{\"dtype\":\"C64\",\"shape\":[3],\"data_offsets\":[0,4]}}", 4,
                  "shape [3] of C64 needs 24 bytes");
    refuse_header("{\"a\":{\"dtype\":\"F4\",\"shape\":[7],\"data_offsets\":[0,4]}}", 4,
                  "shape [7] of F4 needs 4 bytes, but");
    refuse_header("{\"a\":{\"dtype\":\"F128\",\"shape\":[1],\"data_offsets\":[0,5]}}", 4, "ends at 5, beyond");
}

/* A tensor of a type that is not read is an error only where its numbers are wanted. */
static void unread(void **state) {
    (void)state;
    static const char *const types[] = {"C64", "U64", "F8_E8M0", "F6_E2M3", "F4", "F128", "f32"};
    static const int sizes[] = {64, 64, 8, 6, 4, 128, 32};
    float number;
    for (int i = 0; i < 7; i++) {
        const char *header = arena_printf(arena, "{\"a\":{\"dtype\":\"%s\",\"shape\":[8],\"data_offsets\":[0,%d]}}",
                                          types[i], sizes[i]);
        static const char zeros[128];
        const FileTensor *tensor = tensor_find(opened(put_tensors("m", header, zeros, (size_t)sizes[i])), "a");
        assert_non_null(tensor);
        REFUSED(tensor_to_f32(tensor, 0, 1, &number), EXIT_USER,
                arena_printf(arena, "its type `%s` is not read; F32, F16, BF16", types[i]));
        assert_false(tensor_types_equal(tensor, tensor));
    }
    const char *nine = "{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}";
    const FileTensor *tensor = tensor_find(opened(put_tensors("m", nine, "abcd", 4)), "a");
    REFUSED(tensor_to_f32(tensor, 0, 1, &number), EXIT_USER, "it has 9 dims; at most 8 are read");
}

static void refuse_shape(const char *shape, const char *part) {
    refuse_header(arena_printf(arena,
                  "{\"a\":{\"dtype\":\"F32\",\"shape\":%s,\"data_offsets\":[0,4]}}", shape), 4, part);
}

static void bad_shapes(void **state) {
    (void)state;
    refuse_shape("1", "`shape` is not an array");
    refuse_shape("{\"x\":1}", "`shape` is not an array");
    refuse_shape("[\"1\"]", "dim 0 of `shape`");
    refuse_shape("[1,-1]", "dim 1 of `shape`");
    refuse_shape("[1.5]", "dim 0 of `shape`");
    refuse_shape("[1e300]", "dim 0 of `shape`");
    refuse_shape("[1e999]", "dim 0 of `shape`");
    refuse_shape("[9007199254740994]", "dim 0 of `shape`");
    refuse_shape("[4294967296,4294967296]", "[4294967296, 4294967296] overflows");
    refuse_shape("[0,4294967296,4294967296]", "overflows");
    refuse_shape("[4294967296,1073741824]", "overflows"); /* 2^62 elements fit, their bytes do not */
    refuse_shape("[4294967297]", "needs 17179869188 bytes"); /* 1 if it were cut to 32 bits */
    refuse_shape("[2]", "shape [2] of F32 needs 8 bytes, but `data_offsets` give 4");
}

static void refuse_offsets(const char *offsets, const char *part) {
    refuse_header(arena_printf(arena,
                  "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":%s}}", offsets), 4, part);
}

static void bad_offsets(void **state) {
    (void)state;
    static const char PART[] = "tensor `a`: `data_offsets` is not an array of two";
    refuse_offsets("4", PART);
    refuse_offsets("[]", PART);
    refuse_offsets("[0]", PART);
    refuse_offsets("[0,4,4]", PART);
    refuse_offsets("[-4,0]", PART);
    refuse_offsets("[0,4.5]", PART);
    refuse_offsets("[0,\"4\"]", PART);
    refuse_offsets("[4,0]", "begins at 4 after its end at 0");
    refuse_offsets("[1,5]", "ends at 5, beyond the file's 4 data bytes");
    refuse_offsets("[9007199254740988,9007199254740992]", "beyond the file's 4 data bytes");
    refuse_offsets("[0,3]", "needs 4 bytes");
}

static void bad_places(void **state) {
    (void)state;
    refuse_header("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
                  "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[3,7]}}", 7,
                  "tensor `b`: it overlaps tensor `a`");
    refuse_header("{\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
                  "\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4, "overlaps");
    refuse_header("{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[4,6]},"
                  "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 6,
                  "tensor `a`: 3 bytes before it belong to no tensor");
    refuse_header("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2,3]}}", 3, "2 bytes before it");
    refuse_header("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 4,
                  "3 bytes follow its last tensor: truncated or oversized");
    refuse_header("{}", 4, "4 bytes follow");
    refuse_header("{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[9,9]}}", 4, "beyond");
    refuse_header("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                  "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}", 2, "tensor `a`: it is there twice");
}

static void refuse_write(NamedTensor second, const char *part) {
    static const float VALUE[1] = {1};
    const NamedTensor tensors[] = {{"a", {0}, VALUE}, second};
    const char *path = in_folder("unwritten.safetensors");
    REFUSED(safetensors_write(arena, path, tensors, 2), EXIT_USER, part);
    assert_false(file_exists(in_folder("unwritten.safetensors")));
}

static void write_refusals(void **state) {
    (void)state;
    refuse_write((NamedTensor){"a", {0}, NULL}, "tensor `a`: it would be there twice");
    refuse_write((NamedTensor){"__metadata__", {0}, NULL}, "reserved");
    refuse_write((NamedTensor){"b\tc", {0}, NULL}, "control character");
    refuse_write((NamedTensor){"b", {2, {INT64_MAX, 2}}, NULL}, "tensor `b`: its size overflows");
    refuse_write((NamedTensor){"b", {1, {INT64_MAX / 4}}, NULL}, "tensor `b`: its end overflows");
}

/* ------------------------------------------------------------------ indexes and lists */

static void put_shards(void) {
    static const float VALUES[] = {1, 2, 3, 4};
    const NamedTensor first[] = {{"b", {1, {1}}, &VALUES[0]}, {"d", {1, {1}}, &VALUES[1]}};
    const NamedTensor second[] = {{"a", {1, {1}}, &VALUES[2]}, {"c", {1, {1}}, &VALUES[3]}};
    safetensors_write(arena, in_folder("one.safetensors"), first, 2);
    safetensors_write(arena, in_folder("two.safetensors"), second, 2);
}

static float first_value(const TensorFile *file, const char *name) {
    const FileTensor *tensor = tensor_find(file, name);
    assert_non_null(tensor);
    float value;
    tensor_to_f32(tensor, 0, 1, &value);
    return value;
}

static void sharded_index(void **state) {
    (void)state;
    put_shards();
    const char *path = put_text("model.safetensors.index.json",
        "{\"metadata\": {\"total_size\": 16}, \"weight_map\": {\"d\": \"one.safetensors\", \"c\": \"two.safetensors\","
        " \"b\": \"one.safetensors\"}}\n");
    const TensorFile *file = opened(path);
    assert_int_equal(file->count, 3);
    assert_string_equal(file->path, path);
    assert_true(first_value(file, "b") == 1 && first_value(file, "d") == 2 && first_value(file, "c") == 4);
    assert_null(tensor_find(file, "a")); /* the index does not list it */
    assert_string_equal(tensor_find(file, "c")->path, in_folder("two.safetensors"));
}

/* Without a folder in its path an index finds its shards in the folder where we are. */
static void index_without_folder(void **state) {
    (void)state;
    put_shards();
    put_text("m.index.json", "{\"weight_map\": {\"a\": \"two.safetensors\"}}");
    char before[4096];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder), 0);
    const TensorFile *file = try_open("m.index.json");
    assert_int_equal(chdir(before), 0);
    assert_non_null(file);
    assert_true(first_value(file, "a") == 3);
}

static void refuse_index(const char *text, const char *part) { refuse(put_text("bad.index.json", text), part); }

static void bad_indexes(void **state) {
    (void)state;
    put_shards();
    static const char PLAIN[] = "is not a plain file name";
    refuse(in_folder("absent.index.json"), "cannot be opened");
    refuse_index("", "cannot be parsed");
    refuse_index("[]", "not an object");
    refuse_index("{} {}", "after the end of its JSON");
    refuse_index("{}", "`weight_map` is missing");
    refuse_index("{\"weight_map\":{},\"weight_map\":{}}", "`weight_map` is there twice");
    refuse_index("{\"weight_map\":[]}", "`weight_map` is not an object");
    refuse_index("{\"weight_map\":{\"a\":1}}", "tensor `a`: its file is not a string");
    refuse_index("{\"weight_map\":{\"a\":\"..\"}}", PLAIN);
    refuse_index("{\"weight_map\":{\"a\":\".\"}}", PLAIN);
    refuse_index("{\"weight_map\":{\"a\":\"\"}}", PLAIN);
    refuse_index("{\"weight_map\":{\"a\":\"../two.safetensors\"}}", PLAIN);
    refuse_index("{\"weight_map\":{\"a\":\"/etc/passwd\"}}", PLAIN);
    refuse_index("{\"weight_map\":{\"a\":\"x\\ny\"}}", "file `x?y` is not");
    refuse_index("{\"weight_map\":{\"a\":\"two.safetensors\\u0000\"}}", "NUL");
    refuse_index("{\"weight_map\":{\"a\\tb\":\"two.safetensors\"}}", "control character");
    refuse_index("{\"weight_map\":{\"a\":\"three.safetensors\"}}", "three.safetensors: cannot be opened");
    refuse_index("{\"weight_map\":{\"a\":\"bad.index.json\"}}", "is not a safetensors file");
    refuse_index("{\"weight_map\":{\"a\":\"one.safetensors\"}}", "tensor `a`: it is not in its file `one.safetensors`");
    refuse_index("{\"weight_map\":{\"a\":\"two.safetensors\",\"a\":\"two.safetensors\"}}",
                 "tensor `a`: it is there twice");
    refuse_index("{\"weight_map\":{\"b\":\"one.safetensors\",\"b\":\"one.safetensors\"}}",
                 "tensor `b`: it is there twice");
}

static void comma_lists(void **state) {
    (void)state;
    put_shards();
    put_text("list.index.json", "{\"weight_map\":{\"a\":\"two.safetensors\"}}");
    const TensorFile *file = opened(arena_printf(arena, "%s/one.safetensors,%s/two.safetensors", folder, folder));
    assert_int_equal(file->count, 4);
    assert_true(first_value(file, "a") == 3 && first_value(file, "d") == 2);
    static const char *const names[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < 4; i++) assert_string_equal(file->tensors[i].name, names[i]);
    file = opened(arena_printf(arena, "%s/list.index.json,%s/one.safetensors", folder, folder));
    assert_int_equal(file->count, 3);

    refuse(arena_printf(arena, "%s/one.safetensors,%s/one.safetensors", folder, folder), "tensor `b`: it is also in");
    refuse(arena_printf(arena, "%s/two.safetensors,%s/list.index.json", folder, folder), "tensor `a`: it is also in");
    refuse(arena_printf(arena, "%s/one.safetensors,", folder), "between the commas is empty");
    refuse(arena_printf(arena, ",%s/one.safetensors", folder), "between the commas is empty");
    refuse(arena_printf(arena, "%s/one.safetensors,%s/nine", folder, folder), "nine: cannot be opened");

    static const float VALUE[1] = {7};
    const char *path = in_folder("with,comma.safetensors");
    safetensors_write(arena, path, &(NamedTensor){"x", {0}, VALUE}, 1);
    assert_true(first_value(opened(path), "x") == 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(dtypes), TEST(shapes), TEST(halves), TEST(brain_floats), TEST(other_dtypes), TEST(convert_range),
        TEST(brain_floats_are_rounded), TEST(halves_are_rounded),
        TEST(round_trip), TEST(round_trip_of_nothing), TEST(good_header), TEST(many_tensors), TEST(bad_files),
        TEST(foreign_files), TEST(checkpoints), TEST(folders), TEST(bad_json), TEST(header_to_the_page_end),
        TEST(bad_fields),
        TEST(unread),
        TEST(bad_shapes), TEST(bad_offsets), TEST(bad_places), TEST(write_refusals), TEST(sharded_index),
        TEST(index_without_folder), TEST(bad_indexes), TEST(comma_lists),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
