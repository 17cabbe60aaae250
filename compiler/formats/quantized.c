/* quantized.c: groups the tensors of a quantized checkpoint by matrix. It checks that the tensors of a matrix fit each
 * other, and that they fit the `quantization_config` of config.json. */
#include "bytes.h"
#include "coded.h"
#include "json.h"
#include "tensor_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CONFIG = 16 << 20 };

typedef struct Reading {
    Arena *arena;
    TensorFile *file;
    const cJSON *config;     /* the quantization_config */
    const char *config_path;
    bool *used;              /* [file->count]: tensors that are parts of matrices, or of no interest */
    TensorFile made;
    size_t gathered; /* bytes of copies by rows */
} Reading;

/* A method adds the matrix that `tensor` begins, whose other parts have names that begin with `stem`. */
typedef struct Method {
    const char *name, *ending; /* as `quant_method` says; of the tensor's name */
    void (*add)(Reading *reading, const FileTensor *tensor, const char *stem);
} Method;

/* ---------------------------------------------------------------- settings of quantization_config */

static const cJSON *setting(const Reading *reading, const char *key) { return json_member(reading->config, key); }

static _Noreturn void refuse_setting(const Reading *reading, const char *key, const cJSON *item, const char *known) {
    if (!item) fail("%s: `%s` of `quantization_config` is missing; %s", reading->config_path, key, known);
    char *shown = cJSON_PrintUnformatted(item);
    if (!shown) out_of_memory();
    const char *copy = arena_printf(reading->arena, "%.*s", CUT(60, shown));
    free(shown);
    fail("%s: `%s` of `quantization_config` is %s; %s", reading->config_path, key, copy, known);
}

/* The text of a setting, or `otherwise` where it is not there. */
static const char *text_of(const Reading *reading, const char *key, const char *otherwise) {
    const cJSON *item = setting(reading, key);
    if (item && !cJSON_IsString(item)) refuse_setting(reading, key, item, "a string is understood");
    return item ? item->valuestring : otherwise;
}

/* A whole number, or `otherwise`. */
static int64_t number_of(const Reading *reading, const cJSON *object, const char *key, int64_t otherwise) {
    const cJSON *item = json_member(object, key);
    if (!item) return otherwise;
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= -1 && item->valuedouble <= 1e6) ||
        item->valuedouble != (double)(int64_t)item->valuedouble)
        refuse_setting(reading, key, item, "a whole number is understood");
    return (int64_t)item->valuedouble;
}

/* Fails if the config has this setting with a value other than null, false or an empty object. */
static void must_lack(const Reading *reading, const char *key, const char *why) {
    const cJSON *item = setting(reading, key);
    if (!item || cJSON_IsFalse(item) || (cJSON_IsObject(item) && !item->child)) return;
    refuse_setting(reading, key, item, why);
}

/* ---------------------------------------------------------------- parts */

/* Fails where the numbers cannot be read, and copies the numbers of a view with strides, so that codes are found by
 * rows. */
static void lie_by_rows(Reading *reading, const FileTensor *tensor) {
    FileTensor *kept = &reading->file->tensors[tensor - reading->file->tensors];
    if (tensor->unread) tensor_fail(tensor->path, tensor->name, "%s", tensor->unread);
    if (!tensor->strides) return;
    if (tensor->bytes > reading->file->size - reading->gathered)
        tensor_fail(tensor->path, tensor->name, "it does not lie by rows, and the quantized tensors that do not are "
                    "larger than their file");
    reading->gathered += tensor->bytes;
    const size_t size = dtype_bytes(tensor->dtype);
    uint8_t *rows = arena_array(reading->arena, tensor->bytes / size, size);
    tensor_gather(tensor, 0, (int64_t)(tensor->bytes / size), rows);
    kept->data = rows;
    kept->strides = NULL;
}

/* The tensor STEM.SUFFIX, which is then used; NULL where it is not there. */
static const FileTensor *optional_part(Reading *reading, const char *stem, const char *suffix) {
    const FileTensor *found = tensor_find(reading->file, arena_printf(reading->arena, "%s%s", stem, suffix));
    if (!found) return NULL;
    reading->used[found - reading->file->tensors] = true;
    lie_by_rows(reading, found);
    return found;
}

static const FileTensor *part(Reading *reading, const FileTensor *of, const char *stem, const char *suffix) {
    const FileTensor *found = optional_part(reading, stem, suffix);
    if (!found)
        tensor_fail(of->path, of->name, "it is quantized, and the file lacks `%s%s`",
                    tensor_shown(reading->arena, stem), suffix);
    return found;
}

/* Fails unless the tensor has this type and these dims; a negative dim is any. */
static void expect(const Reading *reading, const FileTensor *tensor, Dtype dtype, int rank, int64_t rows,
                   int64_t columns) {
    const Shape *shape = &tensor->shape;
    const bool fits = shape->rank == rank && (rank < 1 || rows < 0 || shape->dims[0] == rows) &&
                      (rank < 2 || columns < 0 || shape->dims[1] == columns);
    const char *first = rows < 0 ? "any" : arena_printf(reading->arena, "%" PRId64, rows),
               *second = rank < 2 ? "" : columns < 0 ? ", any" : arena_printf(reading->arena, ", %" PRId64, columns);
    if (tensor->dtype != dtype || tensor->blocks || !fits)
        tensor_fail(tensor->path, tensor->name, "it is %s %s; beside the other tensors of its matrix, %s [%s%s] is "
                    "understood", dtype_name(tensor->dtype), shape_text(reading->arena, *shape), dtype_name(dtype),
                    first, second);
}

static void expect_scales(const FileTensor *tensor) {
    const bool known = tensor->dtype == DTYPE_F32 || tensor->dtype == DTYPE_F16 || tensor->dtype == DTYPE_BF16;
    if (!known || tensor->blocks)
        tensor_fail(tensor->path, tensor->name, "it is %s; scales of F32, F16 or BF16 are understood",
                    dtype_name(tensor->dtype));
}

static int64_t words_of(int64_t count, int bits) { return (count * bits + 31) / 32; }

/* Adds a tensor of this name and shape that decodes to the matrix. */
static void add_shaped(Reading *reading, const FileTensor *codes, const char *name, Shape shape,
                       const CodedMatrix *matrix) {
    CodedMatrix *kept = arena_alloc(reading->arena, sizeof *kept);
    *kept = *matrix;
    reading->used[codes - reading->file->tensors] = true;
    reading->made.tensors[reading->made.count++] =
        (FileTensor){.name = name, .path = codes->path, .coded = kept, .dtype = DTYPE_F32, .shape = shape,
                     .data = codes->data, .bytes = codes->bytes};
}

/* Adds a tensor `STEM.weight` that decodes to this matrix. */
static void add_matrix(Reading *reading, const FileTensor *codes, const char *stem, const CodedMatrix *matrix) {
    add_shaped(reading, codes, arena_printf(reading->arena, "%s.weight", stem),
               (Shape){2, {matrix->rows, matrix->columns}}, matrix);
}

/* Checks the group of each column, and sets how many columns share one where there is no list of them. */
static void set_groups(Reading *reading, const FileTensor *codes, const FileTensor *order, int64_t groups,
                       int64_t group_size, CodedMatrix *matrix) {
    matrix->block_columns = group_size > 0 ? group_size : matrix->columns;
    if (order) {
        expect(reading, order, DTYPE_I32, 1, matrix->columns, 0);
        bool usual = true;
        for (int64_t c = 0; c < matrix->columns; c++) {
            const uint64_t group = number_at(order->data + 4 * c, 4);
            if (group >= (uint64_t)groups)
                tensor_fail(order->path, order->name, "number %" PRId64 " is no group; there are %" PRId64, c, groups);
            usual = usual && (int64_t)group == c / matrix->block_columns;
        }
        if (!usual) matrix->order = order->data;
    }
    const int64_t needed = (matrix->columns + matrix->block_columns - 1) / matrix->block_columns;
    if (groups != needed)
        tensor_fail(codes->path, codes->name, "its %" PRId64 " columns in groups of %" PRId64 " have %" PRId64
                    " scales, and the file has %" PRId64, matrix->columns, matrix->block_columns, needed, groups);
}

/* ---------------------------------------------------------------- GPTQ and AWQ */

static void expect_matrix(const Reading *reading, const FileTensor *tensor) {
    expect(reading, tensor, tensor->dtype, 2, -1, -1);
    if (!tensor->shape.dims[0] || !tensor->shape.dims[1] || tensor->shape.dims[0] > INT32_MAX ||
        tensor->shape.dims[1] > INT32_MAX)
        tensor_fail(tensor->path, tensor->name, "it has the shape %s", shape_text(reading->arena, tensor->shape));
}

/* What GPTQ and AWQ have in common: codes, and a scale [groups][rows] and a zero for each group and row. */
static CodedMatrix grouped_matrix(Reading *reading, const FileTensor *codes, const char *stem,
                                  const FileTensor **scales, const FileTensor **zeros) {
    *scales = part(reading, codes, stem, ".scales");
    *zeros = part(reading, codes, stem, ".qzeros");
    expect_matrix(reading, codes);
    expect_matrix(reading, *scales);
    expect_scales(*scales);
    const int64_t rows = (*scales)->shape.dims[1];
    return (CodedMatrix){.rows = rows, .codes = codes->data, .scales = (*scales)->data, .zeros = (*zeros)->data,
                         .scale_type = (*scales)->dtype, .scale_width = rows};
}

static void add_gptq(Reading *reading, const FileTensor *codes, const char *stem) {
    static const char *const formats[] = {"gptq", "gptq_v2", NULL};
    const char *key = setting(reading, "checkpoint_format") ? "checkpoint_format" : "format";
    const char *format = text_of(reading, key, "gptq");
    const int64_t bits = number_of(reading, reading->config, "bits", 4);
    if (!text_is_one_of(format, formats)) refuse_setting(reading, key, setting(reading, key), "gptq and gptq_v2 are "
                                                    "understood");
    must_lack(reading, "is_marlin_format", "other layouts than Marlin's are understood");
    must_lack(reading, "dynamic", "one width for all matrices is understood");
    if (bits != 2 && bits != 4 && bits != 8) refuse_setting(reading, "bits", setting(reading, "bits"), "2, 4 and 8 are "
                                                            "understood");
    const FileTensor *scales, *zeros, *order = optional_part(reading, stem, ".g_idx");
    CodedMatrix matrix = grouped_matrix(reading, codes, stem, &scales, &zeros);
    const int64_t groups = scales->shape.dims[0];
    expect(reading, codes, DTYPE_I32, 2, -1, matrix.rows);
    expect(reading, zeros, DTYPE_I32, 2, groups, words_of(matrix.rows, (int)bits));
    matrix.number = gptq_number;
    matrix.columns = codes->shape.dims[0] * 32 / bits;
    matrix.bits = (int)bits;
    matrix.least_zero = strcmp(format, "gptq") == 0;
    matrix.code_width = matrix.rows;
    matrix.zero_width = zeros->shape.dims[1];
    set_groups(reading, codes, order, groups, number_of(reading, reading->config, "group_size", 128), &matrix);
    add_matrix(reading, codes, stem, &matrix);
}

static void add_awq(Reading *reading, const FileTensor *codes, const char *stem) {
    const char *key = setting(reading, "version") ? "version" : "format";
    const char *format = text_of(reading, key, "gemm");
    if (strcmp(format, "gemm") != 0 && strcmp(format, "GEMM") != 0)
        refuse_setting(reading, key, setting(reading, key), "gemm is understood");
    if (number_of(reading, reading->config, "bits", 4) != 4)
        refuse_setting(reading, "bits", setting(reading, "bits"), "4 is understood");
    const FileTensor *scales, *zeros;
    CodedMatrix matrix = grouped_matrix(reading, codes, stem, &scales, &zeros);
    const int64_t groups = scales->shape.dims[0];
    if (matrix.rows % 8) tensor_fail(scales->path, scales->name, "it has %" PRId64 " columns, and 8 share a word",
                                     matrix.rows);
    matrix.number = awq_number;
    matrix.columns = codes->shape.dims[0];
    matrix.bits = 4;
    matrix.code_width = matrix.zero_width = matrix.rows / 8;
    expect(reading, codes, DTYPE_I32, 2, -1, matrix.code_width);
    expect(reading, zeros, DTYPE_I32, 2, groups, matrix.zero_width);
    set_groups(reading, codes, NULL, groups, number_of(reading, reading->config, "group_size", 128), &matrix);
    add_matrix(reading, codes, stem, &matrix);
}

/* ---------------------------------------------------------------- scales of rows, groups and blocks */

/* Sets how scales of any shape belong to the numbers: one of the matrix, one a row, or one a block of rows and columns,
 * whose size the config states where the matrix is no multiple of it. */
static void set_scales(Reading *reading, const FileTensor *scales, const int64_t block[2], CodedMatrix *matrix) {
    int64_t count, lines = 1, width = 1;
    expect_scales(scales);
    if (!shape_elements(scales->shape, &count) || scales->shape.rank > 2)
        tensor_fail(scales->path, scales->name, "its shape %s is not understood",
                    shape_text(reading->arena, scales->shape));
    if (scales->shape.rank > 0) lines = scales->shape.dims[0];
    if (scales->shape.rank > 1) width = scales->shape.dims[1];
    matrix->scales = scales->data;
    matrix->scale_type = scales->dtype;
    matrix->scale_width = matrix->zero_width = width;
    matrix->block_rows = lines == matrix->rows ? 1 : block[0] > 0 ? block[0] : matrix->rows;
    matrix->block_columns = width == 1 ? matrix->columns : block[1] > 0 ? block[1] : 1;
    if (lines == 1) matrix->block_rows = matrix->rows;
    if (lines != (matrix->rows + matrix->block_rows - 1) / matrix->block_rows ||
        width != (matrix->columns + matrix->block_columns - 1) / matrix->block_columns)
        tensor_fail(scales->path, scales->name, "its shape %s does not fit a matrix of %" PRId64 " rows and %" PRId64
                    " columns in blocks of %" PRId64 " and %" PRId64, shape_text(reading->arena, scales->shape),
                    matrix->rows, matrix->columns, matrix->block_rows, matrix->block_columns);
}

/* The matrix STEM.weight of numbers of 8 bits with these scales. */
static void add_scaled(Reading *reading, const FileTensor *scales, const char *stem, const int64_t block[2],
                       Dtype rounded) {
    const FileTensor *codes = part(reading, scales, stem, ".weight"),
                     *zeros = optional_part(reading, stem, ".weight_zero_point");
    reading->used[scales - reading->file->tensors] = true;
    const bool known = codes->dtype == DTYPE_I8 || codes->dtype == DTYPE_F8_E4M3 || codes->dtype == DTYPE_F8_E5M2;
    if (!known || codes->blocks)
        tensor_fail(codes->path, codes->name, "it is %s beside `%s`; I8, F8_E4M3 and F8_E5M2 are understood",
                    dtype_name(codes->dtype), tensor_shown(reading->arena, scales->name));
    expect_matrix(reading, codes);
    CodedMatrix matrix = {.number = scaled_number, .rows = codes->shape.dims[0], .columns = codes->shape.dims[1],
                          .codes = codes->data, .code_type = codes->dtype, .rounded = rounded};
    set_scales(reading, scales, block, &matrix);
    if (zeros) {
        if (zeros->dtype != DTYPE_I8 || !shape_equal(zeros->shape, scales->shape))
            tensor_fail(zeros->path, zeros->name, "it is %s %s; I8 in the shape of `%s` is understood",
                        dtype_name(zeros->dtype), shape_text(reading->arena, zeros->shape),
                        tensor_shown(reading->arena, scales->name));
        matrix.zeros = zeros->data;
    }
    add_matrix(reading, codes, stem, &matrix);
}

/* The pair of whole numbers under this key, or {0, 0}. */
static void pair_of(const Reading *reading, const cJSON *object, const char *key, int64_t pair[2]) {
    const cJSON *item = json_member(object, key), *first = item ? item->child : NULL;
    pair[0] = pair[1] = 0;
    if (!item) return;
    if (!cJSON_IsArray(item) || !first || !first->next || first->next->next || !json_whole(first, &pair[0]) ||
        !json_whole(first->next, &pair[1]))
        refuse_setting(reading, key, item, "a list of two whole numbers is understood");
}

static void add_fp8(Reading *reading, const FileTensor *scales, const char *stem) {
    int64_t block[2];
    pair_of(reading, reading->config, "weight_block_size", block);
    add_scaled(reading, scales, stem, block, DTYPE_F32);
}

/* ---------------------------------------------------------------- compressed-tensors */

/* The `weights` of a group of the config, or NULL. */
static const cJSON *group_weights(const cJSON *group) {
    return cJSON_IsObject(group) ? cJSON_GetObjectItemCaseSensitive(group, "weights") : NULL;
}

static void check_compressed(const Reading *reading) {
    static const char *const formats[] = {"pack-quantized", "int-quantized", "float-quantized", "naive-quantized",
                                          "mixed-precision", NULL};
    const char *format = text_of(reading, "format", "");
    if (!text_is_one_of(format, formats))
        refuse_setting(reading, "format", setting(reading, "format"), "pack-quantized, int-quantized, float-quantized, "
                       "naive-quantized and mixed-precision are understood");
    must_lack(reading, "transform_config", "matrices that are not rotated are understood");
    const cJSON *sparse = setting(reading, "sparsity_config");
    const cJSON *kind = sparse ? cJSON_GetObjectItemCaseSensitive(sparse, "format") : NULL;
    if (sparse && sparse->child && (!cJSON_IsString(kind) || strcmp(kind->valuestring, "dense") != 0))
        refuse_setting(reading, "sparsity_config", sparse, "dense matrices are understood");
}

/* The group of the config whose codes of `bits` bits, and whose groups of columns, fit the shapes; the config may have
 * several groups that differ. */
static const cJSON *fitting_group(const Reading *reading, const FileTensor *packed, int64_t columns, int64_t groups) {
    const cJSON *all = setting(reading, "config_groups"), *found = NULL;
    for (const cJSON *item = all ? all->child : NULL; item; item = item->next) {
        const cJSON *weights = group_weights(item);
        const int64_t bits = number_of(reading, weights, "num_bits", 8),
                      size = number_of(reading, weights, "group_size", -1);
        if (!weights || bits < 1 || bits > 8 || words_of(columns, (int)bits) != packed->shape.dims[1]) continue;
        if (groups > 1 && (size < 1 || (columns + size - 1) / size != groups)) continue;
        const cJSON *width = found ? cJSON_GetObjectItemCaseSensitive(found, "num_bits") : NULL;
        if (found && (!cJSON_IsNumber(width) || (int64_t)width->valuedouble != bits))
            tensor_fail(packed->path, packed->name, "two groups of `config_groups` fit its shape");
        found = weights;
    }
    if (!found)
        tensor_fail(packed->path, packed->name, "no group of `config_groups` fits its shape %s with %" PRId64
                    " columns and %" PRId64 " scales a row", shape_text(reading->arena, packed->shape), columns,
                    groups);
    return found;
}

static void add_packed(Reading *reading, const FileTensor *codes, const char *stem) {
    const FileTensor *scales = part(reading, codes, stem, ".weight_scale"),
                     *sizes = part(reading, codes, stem, ".weight_shape"),
                     *zeros = optional_part(reading, stem, ".weight_zero_point"),
                     *order = optional_part(reading, stem, ".weight_g_idx");
    check_compressed(reading);
    expect_matrix(reading, codes);
    expect(reading, sizes, sizes->dtype == DTYPE_I32 ? DTYPE_I32 : DTYPE_I64, 1, 2, 0);
    const int each = (int)dtype_bytes(sizes->dtype);
    const int64_t rows = (int64_t)number_at(sizes->data, each), columns = (int64_t)number_at(sizes->data + each, each);
    if (columns < 1 || columns > INT32_MAX || rows != codes->shape.dims[0])
        tensor_fail(sizes->path, sizes->name, "it says %" PRId64 " rows and %" PRId64 " columns beside codes of the "
                    "shape %s", rows, columns, shape_text(reading->arena, codes->shape));
    const int64_t groups = scales->shape.rank == 2 ? scales->shape.dims[1] : 1;
    const cJSON *weights = fitting_group(reading, codes, columns, groups);
    const int bits = (int)number_of(reading, weights, "num_bits", 8);
    CodedMatrix matrix = {.number = packed_number, .rows = rows, .columns = columns, .codes = codes->data,
                          .rounded = scales->dtype, .bits = bits};
    expect(reading, codes, DTYPE_I32, 2, rows, words_of(columns, bits));
    matrix.code_width = codes->shape.dims[1];
    set_scales(reading, scales, (const int64_t[]){0, number_of(reading, weights, "group_size", -1)}, &matrix);
    if (order) set_groups(reading, codes, order, groups, matrix.block_columns, &matrix);
    if (order && matrix.block_rows != 1)
        tensor_fail(order->path, order->name, "it orders columns whose rows share scales");
    if (zeros) {
        expect(reading, zeros, DTYPE_I32, 2, words_of(rows, bits), groups);
        matrix.zeros = zeros->data;
    }
    add_matrix(reading, codes, stem, &matrix);
}

static void add_compressed(Reading *reading, const FileTensor *scales, const char *stem) {
    if (tensor_find(reading->file, arena_printf(reading->arena, "%s.weight_packed", stem))) return; /* add_packed */
    check_compressed(reading);
    int64_t block[2] = {0, 0};
    const cJSON *all = setting(reading, "config_groups");
    for (const cJSON *item = all ? all->child : NULL; item; item = item->next) {
        const cJSON *weights = group_weights(item);
        if (!weights) continue;
        pair_of(reading, weights, "block_structure", block);
        const int64_t size = number_of(reading, weights, "group_size", -1);
        if (size > 0) block[1] = size;
    }
    add_scaled(reading, scales, stem, block, scales->dtype);
}

/* ---------------------------------------------------------------- bitsandbytes */

/* The JSON in the bytes of a tensor. */
static const cJSON *json_of(const Reading *reading, const FileTensor *tensor) {
    if (tensor->dtype != DTYPE_U8 || tensor->bytes > 4096)
        tensor_fail(tensor->path, tensor->name, "it is no JSON of up to 4096 bytes");
    const char *text = arena_copy(reading->arena, (const char *)tensor->data, tensor->bytes);
    const char *place = arena_printf(reading->arena, "%s: tensor `%s`", tensor->path,
                                     tensor_shown(reading->arena, tensor->name));
    return json_object(reading->arena, place, text, tensor->bytes, " \n")->root;
}

static Dtype dtype_of(const FileTensor *tensor, const cJSON *state) {
    static const struct {
        const char *name;
        Dtype dtype;
    } known[] = {{"float32", DTYPE_F32}, {"float16", DTYPE_F16}, {"bfloat16", DTYPE_BF16}};
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(state, "dtype");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (cJSON_IsString(item) && strcmp(item->valuestring, known[i].name) == 0) return known[i].dtype;
    tensor_fail(tensor->path, tensor->name, "its `dtype` is none of float32, float16 and bfloat16");
}

static void expect_count(const Reading *reading, const FileTensor *tensor, Dtype dtype, int64_t count) {
    int64_t elements;
    if (tensor->dtype != dtype || !shape_elements(tensor->shape, &elements) || elements != count)
        tensor_fail(tensor->path, tensor->name, "it is %s %s; %" PRId64 " numbers of %s are understood",
                    dtype_name(tensor->dtype), shape_text(reading->arena, tensor->shape), count, dtype_name(dtype));
}

/* `stem` ends before ".weight.quant_state". */
static void add_four_bits(Reading *reading, const FileTensor *about, const char *stem) {
    const FileTensor *codes = part(reading, about, stem, ".weight"), *scales = part(reading, about, stem,
                                                                                     ".weight.absmax"),
                     *levels = part(reading, about, stem, ".weight.quant_map"),
                     *nested = optional_part(reading, stem, ".weight.nested_absmax");
    const cJSON *state = json_of(reading, about);
    int64_t shape[2];
    pair_of(reading, state, "shape", shape);
    CodedMatrix matrix = {.number = four_bit_number, .rows = shape[0], .columns = shape[1], .codes = codes->data,
                          .scales = scales->data, .levels = levels->data, .rounded = dtype_of(about, state),
                          .block = number_of(reading, state, "blocksize", 0)};
    reading->used[about - reading->file->tensors] = true;
    if (shape[0] < 1 || shape[1] < 1 || shape[0] > INT32_MAX || shape[1] > INT32_MAX || matrix.block < 1)
        tensor_fail(about->path, about->name, "its `shape` or its `blocksize` is not understood");
    const int64_t count = shape[0] * shape[1], blocks = (count + matrix.block - 1) / matrix.block;
    expect_count(reading, codes, DTYPE_U8, (count + 1) / 2);
    expect_count(reading, levels, DTYPE_F32, 16);
    expect_count(reading, scales, nested ? DTYPE_U8 : DTYPE_F32, blocks);
    if (nested) {
        const FileTensor *nested_levels = part(reading, about, stem, ".weight.nested_quant_map");
        const cJSON *offset = cJSON_GetObjectItemCaseSensitive(state, "nested_offset");
        matrix.nested_block = number_of(reading, state, "nested_blocksize", 0);
        if (matrix.nested_block < 1 || !cJSON_IsNumber(offset))
            tensor_fail(about->path, about->name, "its `nested_blocksize` or its `nested_offset` is not understood");
        expect_count(reading, nested, DTYPE_F32, (blocks + matrix.nested_block - 1) / matrix.nested_block);
        expect_count(reading, nested_levels, DTYPE_F32, 256);
        matrix.nested = nested->data;
        matrix.nested_levels = nested_levels->data;
        matrix.offset = (float)offset->valuedouble;
    }
    add_matrix(reading, codes, stem, &matrix);
}

static void add_eight_bits(Reading *reading, const FileTensor *scales, const char *stem) {
    const FileTensor *codes = part(reading, scales, stem, ".weight");
    const FileTensor *format = optional_part(reading, stem, ".weight_format");
    expect_matrix(reading, codes);
    expect(reading, codes, DTYPE_I8, 2, -1, -1);
    expect_count(reading, scales, DTYPE_F32, codes->shape.dims[0]);
    if (format && (format->dtype != DTYPE_U8 || format->bytes != 1 || *format->data))
        tensor_fail(format->path, format->name, "rows in their order, which is format 0, are understood");
    reading->used[scales - reading->file->tensors] = true;
    const CodedMatrix matrix = {.number = eight_bit_number, .rows = codes->shape.dims[0],
                                .columns = codes->shape.dims[1], .codes = codes->data, .scales = scales->data};
    add_matrix(reading, codes, stem, &matrix);
}

/* ---------------------------------------------------------------- MXFP4 */

/* The matrices of all experts, [experts][rows][columns], as codes STEM_blocks [experts][rows][columns / 32][16] and
 * scales STEM_scales [experts][rows][columns / 32]. The tensor keeps the name of the codes. */
static void add_mxfp4(Reading *reading, const FileTensor *codes, const char *stem) {
    const char *own = strrchr(codes->name, '.'), *ending = strrchr(codes->name, '_');
    const char *suffix = arena_printf(reading->arena, "%.*s_scales", (int)(ending - own), own);
    const FileTensor *scales = part(reading, codes, stem, suffix);
    const Shape *c = &codes->shape, *s = &scales->shape;
    bool fits = codes->dtype == DTYPE_U8 && scales->dtype == DTYPE_U8 && c->rank == 4 && s->rank == 3 &&
                c->dims[3] == 16;
    for (int d = 0; d < 3 && fits; d++)
        fits = c->dims[d] == s->dims[d] && c->dims[d] >= 1 && c->dims[d] <= INT32_MAX / 32;
    if (!fits)
        tensor_fail(codes->path, codes->name, "it is %s %s beside scales %s %s; U8 [experts, rows, n, 16] beside U8 "
                    "[experts, rows, n] is understood", dtype_name(codes->dtype), shape_text(reading->arena, *c),
                    dtype_name(scales->dtype), shape_text(reading->arena, *s));
    const CodedMatrix matrix = {.number = mxfp4_number, .rows = c->dims[0] * c->dims[1], .columns = c->dims[2] * 32,
                                .codes = codes->data, .scales = scales->data, .block_columns = 32};
    add_shaped(reading, codes, codes->name, (Shape){3, {c->dims[0], c->dims[1], matrix.columns}}, &matrix);
}

/* ---------------------------------------------------------------- the file */

static const Method methods[] = {
    {"gptq", ".qweight", add_gptq},
    {"awq", ".qweight", add_awq},
    {"compressed-tensors", ".weight_packed", add_packed},
    {"compressed-tensors", ".weight_scale", add_compressed},
    {"fp8", ".weight_scale_inv", add_fp8},
    {"fp8", ".weight_scale", add_fp8},
    {"fbgemm_fp8", ".weight_scale", add_fp8},
    {"bitsandbytes", ".weight.quant_state.bitsandbytes__nf4", add_four_bits},
    {"bitsandbytes", ".weight.quant_state.bitsandbytes__fp4", add_four_bits},
    {"bitsandbytes", ".SCB", add_eight_bits},
    {"mxfp4", ".gate_up_proj_blocks", add_mxfp4},
    {"mxfp4", ".down_proj_blocks", add_mxfp4},
};
enum { METHODS = sizeof methods / sizeof *methods };

/* Tensors beside the weights that concern activations and caches, which are not quantized here. */
static const char *const of_activations[] = {".input_scale", ".input_zero_point", ".output_scale", ".input_scale_ub",
                                             ".output_zero_point", ".k_scale", ".v_scale", ".q_scale", NULL};

/* Whether the name is this ending behind a stem. */
static bool has_ending(const FileTensor *tensor, const char *ending) {
    return text_ends(tensor->name, ending) && strlen(tensor->name) > strlen(ending);
}

static bool begins_matrix(const FileTensor *tensor) {
    for (int m = 0; m < METHODS; m++)
        if (has_ending(tensor, methods[m].ending)) return true;
    return false;
}

bool quantized_is(const TensorFile *file) {
    for (size_t i = 0; i < file->count; i++)
        if (begins_matrix(&file->tensors[i])) return true;
    return false;
}

static void read_config(Reading *reading, const char *folder) {
    reading->config_path = arena_printf(reading->arena, "%s/config.json", folder);
    const char *name = reading->file->tensors->path;
    if (!file_exists(reading->config_path))
        fail("%s: its weights are quantized, and %s, whose `quantization_config` says how, does not exist", name,
             reading->config_path);
    size_t size;
    const char *text = file_read(reading->arena, reading->config_path, MOST_CONFIG, &size);
    const cJSON *root = json_object(reading->arena, reading->config_path, text, size, " \t\r\n")->root;
    reading->config = cJSON_GetObjectItemCaseSensitive(root, "quantization_config");
    if (!cJSON_IsObject(reading->config))
        fail("%s: it has no object `quantization_config`, and the weights in %s are quantized", reading->config_path,
             name);
}

/* Adds the matrices of the method; fails where the config names a method that is not known, or tensors of another. */
static void add_matrices(Reading *reading) {
    const char *method = text_of(reading, "quant_method", "");
    bool known = false;
    for (int m = 0; m < METHODS; m++) known = known || strcmp(methods[m].name, method) == 0;
    if (!known)
        fail("%s: `quant_method` of `quantization_config` is \"%.*s\"; gptq, awq, compressed-tensors, fp8, "
             "fbgemm_fp8, bitsandbytes and mxfp4 are understood", reading->config_path, CUT(40, method));
    for (size_t i = 0; i < reading->file->count; i++) {
        const FileTensor *tensor = &reading->file->tensors[i];
        bool added = false;
        for (int m = 0; m < METHODS; m++) {
            if (added || strcmp(methods[m].name, method) != 0 || !has_ending(tensor, methods[m].ending)) continue;
            const size_t stem = strlen(tensor->name) - strlen(methods[m].ending);
            lie_by_rows(reading, tensor);
            methods[m].add(reading, tensor, arena_copy(reading->arena, tensor->name, stem));
            added = true;
        }
        if (!added && begins_matrix(tensor))
            tensor_fail(tensor->path, tensor->name, "it is not of the method \"%s\" that %s names", method,
                        reading->config_path);
        for (int a = 0; of_activations[a]; a++)
            if (has_ending(tensor, of_activations[a])) reading->used[i] = true;
    }
}

void quantized_decode(Arena *arena, TensorFile *file, const char *folder) {
    Reading reading = {.arena = arena, .file = file, .used = arena_array(arena, file->count, sizeof(bool))};
    reading.made.tensors = arena_array(arena, 2 * file->count, sizeof *reading.made.tensors);
    read_config(&reading, folder);
    add_matrices(&reading);
    for (size_t i = 0; i < file->count; i++)
        if (!reading.used[i]) reading.made.tensors[reading.made.count++] = file->tensors[i];
    file->tensors = reading.made.tensors;
    file->count = reading.made.count;
    tensors_sort(file);
}
