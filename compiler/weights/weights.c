/* weights.c: finds a model's weights in a file by their canonical or source names, or draws them from a seed. */
#include "../attnc.h"
#include "../formats/coded.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int64_t elements_of(const WeightSpec *spec) {
    int64_t count = 0;
    if (!shape_elements(spec->shape, &count)) bug("`%s` is too large", spec->name);
    return count;
}

/* ---------------------------------------------------------------- names */

static char *filled(Arena *arena, const char *pattern, const char *layer, int64_t expert, const char *suffix) {
    Text out = text_new(arena);
    while (*pattern) {
        if (strncmp(pattern, "{layer}", 7) == 0) {
            text_printf(&out, "%s", layer ? layer : "");
            pattern += 7;
        } else if (strncmp(pattern, "{expert}", 8) == 0) {
            text_printf(&out, "%lld", (long long)expert);
            pattern += 8;
        } else if (*pattern == '*') {
            text_printf(&out, "%s", suffix ? suffix : "");
            pattern++;
        } else {
            text_add(&out, pattern++, 1);
        }
    }
    return out.data;
}

typedef struct Found {
    const FileTensor *tensor;
    const SourceName *source; /* the line that names it; NULL for the canonical name */
    const char *name;         /* the name that was searched for */
} Found;

static const FileTensor *find_with_prefixes(Arena *arena, const Model *model, const TensorFile *file,
                                            const char *name) {
    const FileTensor *tensor = tensor_find(file, name);
    for (int64_t p = 0; p < model->n_prefixes && !tensor; p++)
        tensor = tensor_find(file, arena_printf(arena, "%s%s", model->prefixes[p], name));
    return tensor;
}

/* Tries the lines of the spec that match, in their order, and then the canonical name itself. */
static Found find_expert(Arena *arena, const Model *model, const TensorFile *file, const char *canonical,
                         int64_t expert) {
    Found found = {.name = canonical};
    for (int64_t i = 0; i < model->n_source_names; i++) {
        const SourceName *source = &model->source_names[i];
        const char *layer = NULL, *suffix = NULL;
        if (!source_name_matches(arena, source->canonical, canonical, &layer, &suffix)) continue;
        const char *name = filled(arena, source->from, layer, expert, suffix);
        if (!found.source) {
            found.name = name;
            found.source = source;
        }
        found.tensor = find_with_prefixes(arena, model, file, name);
        if (found.tensor) {
            found.source = source;
            return found;
        }
    }
    if (!found.tensor) found.tensor = tensor_find(file, canonical);
    if (found.tensor) found.source = NULL;
    return found;
}

static Found find(Arena *arena, const Model *model, const TensorFile *file, const char *canonical) {
    return find_expert(arena, model, file, canonical, 0);
}

/* The number of tensors of the file that hold the weight: 1, or one for each expert. */
static int64_t tensors_of(const WeightSpec *spec, const Found *found) {
    return found->source && strstr(found->source->from, "{expert}") ? spec->shape.dims[0] : 1;
}

/* Finds the tensor of expert number `expert` of a weight that has one for each. */
static Found find_next(Arena *arena, const Model *model, const TensorFile *file, const WeightSpec *spec,
                       const Found *first, int64_t expert) {
    Found found = find_expert(arena, model, file, spec->name, expert);
    if (!found.tensor || found.source != first->source)
        fail("%s: no tensor `%s`, of expert %lld of `%s`", file->path, found.name, (long long)expert, spec->name);
    return found;
}

/* Marks the tensors of the file that hold the weight. */
static void claim(Arena *arena, const Model *model, const TensorFile *file, const WeightSpec *spec, const Found *found,
                  bool *claimed) {
    claimed[found->tensor - file->tensors] = true;
    for (int64_t e = 1, n = tensors_of(spec, found); e < n; e++) {
        const Found next = find_expert(arena, model, file, spec->name, e);
        if (next.tensor) claimed[next.tensor - file->tensors] = true;
    }
}

/* ---------------------------------------------------------------- cuts */

typedef struct Matrix {
    const float *data;
    int64_t rows, columns; /* of axis 0, and of all other axes together */
    int rank;
} Matrix;

/* Without numbers, data stays NULL. */
static Matrix read_matrix(Arena *arena, const FileTensor *tensor, bool numbers) {
    int64_t count = 0;
    if (!shape_elements(tensor->shape, &count)) bug("a tensor of a file overflows");
    int first = 0; /* leading dims of 1 are dropped, so that [1, 1, d] is [d] */
    while (first < tensor->shape.rank - 1 && tensor->shape.dims[first] == 1) first++;
    Matrix m = {.rows = tensor->shape.rank ? tensor->shape.dims[first] : 1, .rank = tensor->shape.rank - first};
    m.columns = m.rows ? count / m.rows : 0;
    if (!numbers) return m;
    const bool plain = !tensor->blocks && !tensor->coded && tensor->dtype == DTYPE_F32;
    if (plain && !tensor->strides && (uintptr_t)tensor->data % sizeof(float) == 0) {
        m.data = (const float *)(const void *)tensor->data;
    } else {
        float *copy = arena_array(arena, (size_t)count, sizeof *copy);
        tensor_to_f32(tensor, 0, count, copy);
        m.data = copy;
    }
    return m;
}

static Matrix transposed(Arena *arena, Matrix m) {
    if (m.rank < 2) return m;
    if (!m.data) return (Matrix){NULL, m.columns, m.rows, m.rank};
    float *out = arena_array(arena, (size_t)(m.rows * m.columns), sizeof *out);
    for (int64_t r = 0; r < m.rows; r++)
        for (int64_t c = 0; c < m.columns; c++) out[c * m.rows + r] = m.data[r * m.columns + c];
    return (Matrix){out, m.columns, m.rows, m.rank};
}

/* Keeps the parts take..take_end-1 of every group, where the rows are [groups][parts][rest]. */
static Matrix taken(Arena *arena, const FileTensor *tensor, const SourceName *s, Matrix m) {
    int64_t whole = 0;
    if (!mul_fits(s->groups, s->parts, &whole) || m.rows % whole != 0)
        fail("%s: tensor `%s`: its %lld rows are not %lld groups of %lld parts", tensor->path, tensor->name,
             (long long)m.rows, (long long)s->groups, (long long)s->parts);
    int64_t rest = m.rows / whole, parts = s->take_end - s->take, run = parts * rest * m.columns;
    if (!m.data) return (Matrix){NULL, s->groups * parts * rest, m.columns, m.rank};
    float *out = arena_array(arena, (size_t)(s->groups * run), sizeof *out);
    for (int64_t g = 0; g < s->groups; g++)
        memcpy(out + g * run, m.data + (g * s->parts + s->take) * rest * m.columns, (size_t)run * sizeof *out);
    return (Matrix){out, s->groups * parts * rest, m.columns, m.rank};
}

/* Keeps the ranges of rows, one behind the other. */
static Matrix rows_of(Arena *arena, const WeightSpec *spec, const FileTensor *tensor, const SourceName *s, Matrix m) {
    int64_t rows = 0;
    for (int64_t i = 0; i < s->n_rows; i++) {
        const RowRange range = s->rows[i];
        if (range.end > m.rows)
            fail("%s: tensor `%s` has %lld rows, and rows %lld..%lld are wanted for `%s`", tensor->path, tensor->name,
                 (long long)m.rows, (long long)range.begin, (long long)range.end, spec->name);
        if (!add_fits(rows, range.end - range.begin, &rows))
            fail("%s: tensor `%s`: its rows for `%s` are too many", tensor->path, tensor->name, spec->name);
    }
    if (!m.data) return (Matrix){NULL, rows, m.columns, m.rank};
    if (s->n_rows == 1) return (Matrix){m.data + s->rows[0].begin * m.columns, rows, m.columns, m.rank};
    int64_t count = 0, at = 0;
    if (!mul_fits(rows, m.columns, &count))
        fail("%s: tensor `%s`: its rows for `%s` are too many", tensor->path, tensor->name, spec->name);
    float *out = arena_array(arena, (size_t)count, sizeof *out);
    for (int64_t i = 0; i < s->n_rows; i++) {
        const int64_t n = (s->rows[i].end - s->rows[i].begin) * m.columns;
        memcpy(out + at, m.data + s->rows[i].begin * m.columns, (size_t)n * sizeof *out);
        at += n;
    }
    return (Matrix){out, rows, m.columns, m.rank};
}

static bool is_cut(const SourceName *s) { return s && (s->transpose || s->rows || s->groups); }

/* The tensor's numbers in the shape that is wanted; without `numbers` NULL, after the same checks of the shapes. */
static const float *cut(Arena *arena, const WeightSpec *spec, Shape wanted, const Found *found,
                        const FileTensor *tensor, bool numbers) {
    const SourceName *s = found->source;
    Matrix m = read_matrix(arena, tensor, numbers);
    if (s && s->transpose) m = transposed(arena, m);
    if (s && s->rows) m = rows_of(arena, spec, tensor, s, m);
    if (s && s->groups) m = taken(arena, tensor, s, m);
    int64_t count = 0;
    const int64_t rows = wanted.dims[0];
    if (!shape_elements(wanted, &count) || rows < 1) bug("`%s` is empty or too large", spec->name);
    const int64_t columns = count / rows;
    bool same = m.columns == columns && (m.rows == rows || (spec->longer && m.rows > rows));
    if (!same && m.rows * m.columns == count && (m.rank == 1 || wanted.rank == 1))
        same = true; /* a vector [h*d] serves for [h][d] */
    if (!same)
        fail("%s: tensor `%s` has the shape %s%s, and `%s` wants %s", tensor->path, tensor->name,
             shape_text(arena, tensor->shape),
             is_cut(s)
                 ? arena_printf(arena, " (cut: [%lld, %lld])", (long long)m.rows, (long long)m.columns)
                 : "",
             spec->name, shape_text(arena, wanted));
    return m.data;
}

/* Fails at a type that is not read. Integers are codes of a quantization or not weights at all, so their values must
 * not be used as weights. */
static void refuse_type(const WeightSpec *spec, const FileTensor *tensor) {
    if (tensor->unread)
        fail("%s: tensor `%s`, wanted as `%s`: %s", tensor->path, tensor->name, spec->name, tensor->unread);
    if (dtype_is_float(tensor->dtype)) return;
    fail("%s: tensor `%s`, wanted as `%s`, holds %s, which is no type of weights by itself; " NOT_QUANTIZED,
         tensor->path, tensor->name, spec->name, dtype_name(tensor->dtype));
}

/* The part of a tensor that belongs to one of n experts; codes are decoded where numbers are wanted. */
static FileTensor part_of(Arena *arena, const FileTensor *tensor, int64_t expert, int64_t n, bool numbers) {
    FileTensor part = *tensor;
    int64_t count;
    part.shape.rank--;
    for (int d = 0; d < part.shape.rank; d++) part.shape.dims[d] = tensor->shape.dims[d + 1];
    part.bytes = tensor->bytes / (size_t)n;
    if (tensor->strides) {
        part.data += (size_t)(tensor->strides[0] * expert) * dtype_bytes(tensor->dtype);
        part.strides++;
    } else {
        part.data += part.bytes * (size_t)expert;
    }
    if (!tensor->coded || !numbers) return part;
    if (!shape_elements(part.shape, &count)) bug("a part of a tensor overflows");
    float *decoded = arena_array(arena, (size_t)count, sizeof *decoded);
    coded_numbers(tensor->coded, expert * count, count, decoded);
    part.coded = NULL;
    part.data = (const uint8_t *)decoded;
    part.bytes = (size_t)count * sizeof *decoded;
    return part;
}

/* The matrices of a weight that a file holds one above the other. The file's matrix is cut first, and then each of them
 * is transposed by itself. */
static const float *cut_stacked(Arena *arena, const WeightSpec *spec, Shape each, const Found *found,
                                const FileTensor *tensor, bool numbers) {
    const SourceName *s = found->source;
    const int64_t n = spec->shape.dims[0], size = each.dims[0] * each.dims[1];
    Matrix m = read_matrix(arena, tensor, numbers);
    if (s && s->groups) m = taken(arena, tensor, s, m);
    Matrix one = {.rows = m.rows / n, .columns = m.columns, .rank = 2};
    const bool turned = s && s->transpose;
    if ((s && s->rows) || m.rows != n * one.rows || (turned ? one.columns : one.rows) != each.dims[0] ||
        (turned ? one.rows : one.columns) != each.dims[1])
        fail("%s: tensor `%s` has the shape %s%s, and `%s` wants %lld matrices %s one above the other", tensor->path,
             tensor->name, shape_text(arena, tensor->shape),
             is_cut(s) ? arena_printf(arena, " (cut: [%lld, %lld])", (long long)m.rows, (long long)m.columns) : "",
             spec->name, (long long)n, shape_text(arena, turned ? (Shape){2, {each.dims[1], each.dims[0]}} : each));
    if (!turned || !numbers) return m.data;
    float *out = arena_array(arena, (size_t)(n * size), sizeof *out);
    for (int64_t i = 0; i < n; i++) {
        Arena *own = arena_new();
        one.data = m.data + i * size;
        memcpy(out + i * size, transposed(own, one).data, (size_t)size * sizeof *out);
        arena_free(own);
    }
    return out;
}

/* The numbers of a weight of experts, which the file holds in one tensor or in one for each. */
static const float *cut_experts(Arena *arena, const Model *model, const TensorFile *file, const WeightSpec *spec,
                                const Found *first, bool numbers) {
    const int64_t n = spec->shape.dims[0], tensors = tensors_of(spec, first);
    const FileTensor *whole = first->tensor;
    Shape each = {spec->shape.rank - 1, {0}};
    int64_t size = 0;
    for (int d = 0; d < each.rank; d++) each.dims[d] = spec->shape.dims[d + 1];
    if (!shape_elements(each, &size)) bug("`%s` is too large", spec->name);
    if (tensors == 1 && whole->shape.rank == 2 && each.rank == 2)
        return cut_stacked(arena, spec, each, first, whole, numbers);
    if (tensors == 1 && (whole->shape.rank < 2 || whole->shape.dims[0] != n))
        fail("%s: tensor `%s` has the shape %s, and `%s` wants a matrix for each of %lld experts", whole->path,
             whole->name, shape_text(arena, whole->shape), spec->name, (long long)n);
    if (tensors == 1 && n > 1 && !is_cut(first->source)) return cut(arena, spec, spec->shape, first, whole, numbers);
    float *out = numbers ? arena_array(arena, (size_t)(n * size), sizeof *out) : NULL;
    for (int64_t e = 0; e < n; e++) {
        Arena *own = arena_new();
        const Found found = e && tensors > 1 ? find_next(arena, model, file, spec, first, e) : *first;
        const FileTensor part = tensors > 1 ? *found.tensor : part_of(own, whole, e, n, numbers);
        if (e && tensors > 1) refuse_type(spec, &part);
        const float *from = cut(own, spec, each, &found, &part, numbers);
        if (numbers) memcpy(out + e * size, from, (size_t)size * sizeof *out);
        arena_free(own);
    }
    return out;
}

static const float *cut_weight(Arena *arena, const Model *model, const TensorFile *file, const WeightSpec *spec,
                               const Found *found, bool numbers) {
    if (spec->of_experts) return cut_experts(arena, model, file, spec, found, numbers);
    Shape wanted = spec->shape;
    if (spec->of_groups && !shape_equal(wanted, found->tensor->shape))
        wanted = (Shape){2, {wanted.dims[0] * wanted.dims[1], wanted.dims[2]}};
    return cut(arena, spec, wanted, found, found->tensor, numbers);
}

const bool *weights_claimed(Arena *arena, const Model *model, const WeightTable *table, const TensorFile *file,
                            size_t *absent) {
    bool *claimed = arena_array(arena, file->count, sizeof *claimed);
    for (size_t i = 0; i < table->count; i++) {
        Found found = find(arena, model, file, table->specs[i].name);
        if (found.tensor) claim(arena, model, file, &table->specs[i], &found, claimed);
        else *absent += !found.source || !found.source->optional;
    }
    return claimed;
}

/* Fails with the missing tensor, the name that it may have in the file, and a tensor of the file that is not used. */
static _Noreturn void missing(Arena *arena, const Model *model, const WeightTable *table, const TensorFile *file,
                              const WeightSpec *spec) {
    size_t absent = 0, free_names = 0;
    const bool *claimed = weights_claimed(arena, model, table, file, &absent);
    const char **names = arena_array(arena, file->count + 1, sizeof *names);
    for (size_t t = 0; t < file->count; t++)
        if (!claimed[t]) names[free_names++] = file->tensors[t].name;
    const char *wanted = find(arena, model, file, spec->name).name, *near = nearest_word(wanted, names);
    Text text = text_new(arena);
    text_printf(&text, "no tensor `%s`", wanted);
    if (strcmp(wanted, spec->name) != 0) text_printf(&text, " (for `%s`)", spec->name);
    if (near) text_printf(&text, "; the nearest is `%s`", near);
    if (absent > 1) text_printf(&text, "; %zu others are missing", absent - 1);
    if (free_names > 0 && !near)
        text_printf(&text, "; nothing speaks of `%s`%s: a `weights` block in the spec maps names", names[0],
                    free_names > 1 ? arena_printf(arena, " and %zu more", free_names - 1) : "");
    fail("%s: %s", file->path, text.data);
}

static bool is_ignored(const Model *model, const char *name) {
    for (int64_t i = 0; i < model->n_ignored; i++) {
        if (source_pattern_covers(model->ignored[i], name)) return true;
        for (int64_t p = 0; p < model->n_prefixes; p++) {
            size_t length = strlen(model->prefixes[p]);
            bool begins = strncmp(name, model->prefixes[p], length) == 0;
            if (begins && source_pattern_covers(model->ignored[i], name + length)) return true;
        }
    }
    return false;
}

/* "layers.7.bias" becomes "layers.{layer}.bias". */
static const char *without_numbers(Arena *arena, const char *name) {
    Text out = text_new(arena);
    for (const char *part = name; *part; part += strcspn(part, ".") + (part[strcspn(part, ".")] == '.')) {
        size_t size = strcspn(part, "."), digits = strspn(part, "0123456789");
        if (size && digits == size) text_printf(&out, "{layer}");
        else text_add(&out, part, size);
        if (part[size]) text_printf(&out, ".");
    }
    return out.data;
}

const char *tensor_names_summary(Arena *arena, const char *const *names, size_t count) {
    enum { MOST_GROUPS = 8 };
    const char *groups[MOST_GROUPS];
    size_t sizes[MOST_GROUPS], n = 0, rest = 0;
    for (size_t i = 0; i < count; i++) {
        const char *group = without_numbers(arena, names[i]);
        size_t g = 0;
        while (g < n && strcmp(groups[g], group) != 0) g++;
        if (g < n) {
            sizes[g]++;
        } else if (n < MOST_GROUPS) {
            groups[n] = group;
            sizes[n++] = 1;
        } else {
            rest++;
        }
    }
    Text out = text_new(arena);
    for (size_t g = 0; g < n; g++) {
        text_printf(&out, "%s`%s`", g ? ", " : "", groups[g]);
        if (sizes[g] > 1) text_printf(&out, " (%zu)", sizes[g]);
    }
    if (rest) text_printf(&out, " and %zu more", rest);
    return out.data;
}

/* Notes the tensors that the model does not use, in one line or with their shapes in a line each. */
static void report_unused(Arena *arena, const Model *model, const TensorFile *file, const bool *used,
                          UnusedReport report) {
    const char **names = arena_array(arena, file->count + 1, sizeof *names);
    size_t count = 0;
    for (size_t t = 0; t < file->count; t++) {
        const char *name = file->tensors[t].name;
        if (used[t] || is_ignored(model, name)) continue;
        names[count++] = name;
        if (report != UNUSED_LISTED) continue;
        report_note("tensor `%s` %s is not used", name, shape_text(arena, file->tensors[t].shape));
    }
    if (!count || report != UNUSED_SUMMED_UP) return;
    report_note("%s: %s %s not used: %s", file->path, counted(arena, (int64_t)count, "tensor"),
                count > 1 ? "are" : "is", tensor_names_summary(arena, names, count));
}

/* After a failed training, or in a damaged file, weights may be NaN or infinite, so that all outputs are NaN. Such
 * weights are used, and a note names them. */
static void report_not_finite(const TensorFile *file, const char *name, const float *data, int64_t count) {
    int64_t odd = 0;
    for (int64_t i = 0; i < count; i++) odd += !isfinite(data[i]);
    if (!odd) return;
    report_note("%s: %lld of %lld numbers of `%s` are infinite or NaN", file->path, (long long)odd, (long long)count,
                name);
}

static void refuse_not_finite(const char *path, const char *name, const float *data, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(data[i]))
            fail("%s: number %lld of `%s` is %s, and integers have no such number; state `precision weights f32` for "
                 "its part of the model, or mend the file",
                 path, (long long)i, name, isnan(data[i]) ? "NaN" : "infinite");
}

void weight_vector_check(Arena *arena, const WeightSpec *spec, const char *path, const char *name, const float *data) {
    const int64_t count = elements_of(spec);
    const int outliers = spec->outliers;
    int zeros = 0;
    for (int64_t i = 0; i < count; i++) {
        zeros += data[i] == 0;
        if (!isfinite(data[i]) || data[i] < 0 || (data[i] == 0 && !outliers))
            fail("%s: number %lld of `%s` is %s, and a vector that smooths holds finite numbers above 0", path,
                 (long long)i, name, isnan(data[i]) ? "NaN" : number_text(arena, (double)data[i]));
        if (zeros > outliers)
            fail("%s: number %lld of `%s` is the zero of outlier %d, and the spec states `outliers %d`", path,
                 (long long)i, name, zeros, outliers);
    }
}

/* Finds the tensor of a weight, which holds floating-point numbers; NULL where an optional one is absent. */
static Found find_one(Arena *arena, const Model *model, const WeightTable *table, const TensorFile *file,
                      size_t index) {
    const WeightSpec *spec = &table->specs[index];
    Found found = find(arena, model, file, spec->name);
    if (found.tensor) refuse_type(spec, found.tensor);
    else if (spec->smooths || !found.source || !found.source->optional) missing(arena, model, table, file, spec);
    return found;
}

const FileTensor *weight_tensor(Arena *arena, const Model *model, const WeightTable *table, const TensorFile *file,
                                size_t index, bool *transposed) {
    const Found found = find(arena, model, file, table->specs[index].name);
    *transposed = found.source && found.source->transpose;
    return found.tensor;
}

/* The numbers of a tensor before they are rounded. *name is set to the name in the file, or to NULL where an optional
 * tensor is absent and its numbers are zeros. */
static const float *read_one(Arena *arena, const Model *model, const WeightTable *table, const TensorFile *file,
                             size_t index, const char **name) {
    const WeightSpec *spec = &table->specs[index];
    const int64_t count = elements_of(spec);
    const Found found = find_one(arena, model, table, file, index);
    *name = NULL;
    if (!found.tensor) return arena_array(arena, (size_t)count, sizeof(float));
    *name = found.name;
    const float *numbers = cut_weight(arena, model, file, spec, &found, true);
    if (spec->smooths) weight_vector_check(arena, spec, file->path, found.name, numbers);
    if (dtype_has_scales(spec->type.dtype)) refuse_not_finite(file->path, found.name, numbers, count);
    return numbers;
}

Weights *weights_new(Arena *arena, const WeightTable *table) {
    Weights *weights = arena_alloc(arena, sizeof *weights);
    weights->table = table;
    weights->data = arena_array(arena, table->count, sizeof *weights->data);
    weights->scaling = arena_array(arena, table->count, sizeof *weights->scaling);
    return weights;
}

/* The source of weights that are read one at a time. */
struct WeightReader {
    const Model *model;
    const TensorFile *file; /* NULL where weights are drawn */
    uint64_t seed;
    Arena **arenas; /* of each weight that is there for a time; NULL for those that stay */
};

/* Reads the numbers of a weight, or draws them. */
static const float *numbers_of(Arena *arena, const Weights *weights, size_t i, const char **name) {
    const WeightReader *reader = weights->reader;
    *name = NULL;
    if (!reader->file) return weight_drawn(arena, &weights->table->specs[i], reader->seed);
    return read_one(arena, reader->model, weights->table, reader->file, i, name);
}

static void read_and_round(Arena *arena, const Weights *weights, size_t i) {
    const WeightSpec *spec = &weights->table->specs[i];
    const char *name;
    weights->data[i] = numbers_of(arena, weights, i, &name);
    weight_round(arena, weights, i);
    if (name) report_not_finite(weights->reader->file, name, weights->data[i], elements_of(spec));
}

static uint64_t seed_of(const char *source) {
    char *end;
    const uint64_t seed = strtoull(source + 7, &end, 10);
    if (*end || end == source + 7) fail("--weights random:SEED wants a number, found `%s`", source);
    return seed;
}

/* Marks in `used`, which may be NULL, the tensors of the file that hold the weights. Fails where one is missing or has
 * another shape. */
static void fit_all(Arena *arena, const Model *model, const WeightTable *table, const TensorFile *file, bool *used) {
    for (size_t i = 0; i < table->count; i++) {
        const Found found = find_one(arena, model, table, file, i);
        if (!found.tensor) continue;
        if (used) claim(arena, model, file, &table->specs[i], &found, used);
        cut_weight(arena, model, file, &table->specs[i], &found, false);
    }
}

static const TensorFile *file_fitted(Arena *arena, const Model *model, const WeightTable *table, const char *path,
                                     UnusedReport unused) {
    const TensorFile *file = tensor_file_open(arena, path);
    bool *used = arena_array(arena, file->count, sizeof *used);
    fit_all(arena, model, table, file, used);
    if (unused != UNUSED_UNSAID) report_unused(arena, model, file, used, unused);
    return file;
}

Weights *weights_open(Arena *arena, const Model *model, const WeightTable *table, const char *source,
                      UnusedReport unused) {
    Weights *weights = weights_new(arena, table);
    const bool random = strncmp(source, "random:", 7) == 0;
    weights->reader = arena_alloc(arena, sizeof *weights->reader);
    *weights->reader = (WeightReader){.model = model,
                                      .file = random ? NULL : file_fitted(arena, model, table, source, unused),
                                      .seed = random ? seed_of(source) : 0,
                                      .arenas = arena_array(arena, table->count, sizeof *weights->reader->arenas)};
    for (size_t i = 0; i < table->count; i++) {
        const WeightSpec *spec = &table->specs[i];
        const int rounding[] = {spec->smoothing, spec->gain, spec->shift}; /* what weight_round of a matrix reads */
        for (int r = 0; r < 3; r++)
            if (rounding[r] && !weights->data[rounding[r] - 1])
                read_and_round(arena, weights, (size_t)rounding[r] - 1);
    }
    return weights;
}

void weight_need(const Weights *weights, int i) {
    if (weights->data[i]) return;
    Arena *arena = arena_new();
    weights->reader->arenas[i] = arena;
    read_and_round(arena, weights, (size_t)i);
}

void weight_release(const Weights *weights, int i) {
    if (!weights->reader || !weights->reader->arenas[i]) return;
    arena_free(weights->reader->arenas[i]);
    weights->reader->arenas[i] = NULL;
    weights->data[i] = NULL;
    weights->scaling[i] = (Scaling){0};
}

Weights *weights_load(Arena *arena, const Model *model, const WeightTable *table, const char *source,
                      UnusedReport unused) {
    Weights *weights = weights_open(arena, model, table, source, unused);
    progress_begin(weights->reader->file ? "reading %s" : "drawing weights", source);
    for (size_t i = 0; i < table->count; i++) {
        progress_at((int64_t)i, (int64_t)table->count, "tensors");
        if (!weights->data[i]) read_and_round(arena, weights, i);
    }
    return weights;
}

void weights_check(const Model *model, const WeightTable *table, const TensorFile *file) {
    progress_begin("reading %s", file->path);
    for (size_t i = 0; i < table->count; i++) {
        Arena *arena = arena_new();
        progress_at((int64_t)i, (int64_t)table->count, "tensors");
        const WeightSpec *spec = &table->specs[i];
        const char *name;
        Scaling scaling;
        const float *numbers = read_one(arena, model, table, file, i, &name);
        if (name) {
            const float *made = weight_rounded(arena, spec, numbers, NULL, NULL, &scaling);
            report_not_finite(file, name, made, elements_of(spec));
        }
        arena_free(arena);
    }
}

void weights_fit(Arena *arena, const Model *model, const WeightTable *table, const TensorFile *file) {
    fit_all(arena, model, table, file, NULL);
}
