/* packed.c: reads and writes .attnw files, which hold a model's weights in the layout that the C reads.
 *
 *     0  magic "ATTNW\r\n\x1a"       8  u32 version, 1          12  u32 layout version, 1
 *    16  u64 hash of the model      24  u32 Dtype               28  u32 packed tensors
 *    32  u64 offset of the data     40  u64 bytes of the data   48  u64 hash of the data
 *    56  u64 hash of the layout     64  u32 rank               68  u32 ranks, or 0 where one process has all
 *    72  u64 hash of all ranks      80  zeros                  120  u64 hash of bytes 0 to 119
 *   128  the data: each tensor in its layout at a 64-byte boundary, with zeros between and after them
 *
 * The Dtype is that of the first weight that is not f32, or f32. The hash of all ranks is made of the hashes of their
 * data, one after the other; it is 0 where one process has all. All numbers are little-endian. Hashes are those of
 * hash_bytes with seed 0. */
#include "../attnc.h"
#include "../formats/bytes.h"

#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "floats are written and mapped as this machine has them, which must be little-endian"
#endif

enum { HEADER = PACKED_HEADER, VERSION = 1, LAYOUT_VERSION = 1 };
enum {
    AT_VERSION = 8, AT_LAYOUT_VERSION = 12, AT_MODEL = 16, AT_DTYPE = 24, AT_COUNT = 28, AT_OFFSET = 32, AT_BYTES = 40,
    AT_DATA_HASH = 48, AT_LAYOUT = 56, AT_RANK = 64, AT_RANKS = 68, AT_ALL_HASH = 72, AT_ZEROS = 80,
    AT_HEADER_HASH = 120
};
static const char MAGIC[8] = {'A', 'T', 'T', 'N', 'W', '\r', '\n', '\x1a'};

static void put_number(uint8_t *at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) at[i] = (uint8_t)(value >> (8 * i));
}

/* ---------------------------------------------------------------- from weights to packed floats */

int64_t packed_file_bytes(const Program *program) { return HEADER + program->weight_bytes; }

static int64_t room_of(const Packed *packed) { return layout_elements(&packed->slot.layout, packed->slot.bytes); }

static void fill_derived(const Program *program, const Packed *packed, const Weights *weights, float *out) {
    const Derived *derived = &program->module->derived[packed->derived];
    int64_t count = 0;
    if (packed->slot.layout.panel || !shape_elements(derived->shape, &count) || count > room_of(packed))
        bug("the derived tensor `%s` does not fit its place", derived->name);
    Arena *arena = arena_new();
    double *wide = arena_array(arena, (size_t)count, sizeof *wide);
    weights_derive(weights, derived, wide);
    for (int64_t i = 0; i < count; i++) out[i] = (float)wide[i];
    arena_free(arena);
}

static void fill_sums(const Packed *packed, const Weights *weights, float *out) {
    const WeightSpec *spec = &weights->table->specs[packed->weight];
    const int64_t N = weight_rows(spec), K = weight_columns(spec);
    Arena *arena = arena_new();
    int8_t *row = arena_alloc(arena, (size_t)K);
    for (int64_t n = 0; n < N; n++) {
        weight_codes(spec, &weights->scaling[packed->weight], weights->data[packed->weight], n, row);
        out[layout_place(&packed->slot.layout, packed->shape, n)] =
            weight_sum(spec, &weights->scaling[packed->weight], n, row);
    }
    arena_free(arena);
}

/* Writes the numbers of the columns where a vector is 0. If there are fewer than the most, the rest stays 0, which
 * means column 0; the weights of these outliers are 0. */
static void fill_columns(const Packed *packed, const Weights *weights, float *out) {
    int64_t columns[MOST_OUTLIERS];
    const int n = outlier_columns(weights->data[packed->weight],
                                  weights->table->specs[packed->weight].shape.dims[0], columns);
    for (int j = 0; j < n; j++) out[j] = (float)columns[j];
}

/* The columns of a matrix that stay f32, [N][outliers] in panels. */
static void fill_outliers(const Packed *packed, const Weights *weights, float *out) {
    const WeightSpec *spec = &weights->table->specs[packed->weight];
    const int64_t N = weight_rows(spec), K = weight_columns(spec);
    const int64_t width = packed->shape.dims[packed->shape.rank - 1];
    int64_t columns[MOST_OUTLIERS];
    const int found = outlier_columns(weights->scaling[packed->weight].vector, K, columns);
    for (int64_t n = 0; n < N; n++)
        for (int j = 0; j < found; j++)
            out[layout_place(&packed->slot.layout, packed->shape, n * width + j)] =
                weights->data[packed->weight][n * K + columns[j]];
}

/* Elements that have no number stay as they are. */
static void fill_floats(const Program *program, const Packed *packed, const Weights *weights, float *out) {
    if (packed->derived >= 0) {
        fill_derived(program, packed, weights, out);
        return;
    }
    if (packed->weight < 0) return;
    switch (packed->of) {
    case OF_SUMS: fill_sums(packed, weights, out); return;
    case OF_OUTLIERS: fill_outliers(packed, weights, out); return;
    case OF_COLUMNS: fill_columns(packed, weights, out); return;
    case OF_NUMBERS: case OF_SCALES: case OF_OFFSETS: break;
    }
    const Scaling *scaling = &weights->scaling[packed->weight];
    const float *data = packed->of == OF_SCALES    ? scaling->scales
                        : packed->of == OF_OFFSETS ? scaling->offsets
                                                   : weights->data[packed->weight];
    int64_t count = 0;
    if (!shape_elements(packed->shape, &count) || count > room_of(packed))
        bug("`%s` does not fit its slot", packed->slot.name);
    for (int64_t i = 0; i < count; i++) {
        const int64_t to = layout_place(&packed->slot.layout, packed->shape, i);
        out[to] = packed->plus_one ? data[i] + 1 : data[i];
    }
}

/* The matrix [N][K] as integers, of which two of 4 bits share a byte. */
static void fill_codes(const Packed *packed, const Weights *weights, uint8_t *out) {
    const WeightSpec *spec = &weights->table->specs[packed->weight];
    const int64_t N = weight_rows(spec), K = weight_columns(spec);
    Arena *arena = arena_new();
    int8_t *row = arena_alloc(arena, (size_t)K);
    for (int64_t n = 0; n < N; n++) {
        weight_codes(spec, &weights->scaling[packed->weight], weights->data[packed->weight], n, row);
        for (int64_t k = 0; k < K; k++) {
            const int64_t at = layout_place(&packed->slot.layout, packed->shape, n * K + k);
            const uint8_t code = (uint8_t)row[k];
            if (spec->type.dtype == DTYPE_I8) out[at] = code;
            else out[at / 2] |= (uint8_t)(at % 2 ? code << 4 : code & 15);
        }
    }
    arena_free(arena);
}

void packed_fill(const Program *program, const Packed *packed, const Weights *weights, void *out) {
    memset(out, 0, (size_t)packed->slot.bytes);
    if (packed->slot.layout.dtype == DTYPE_F32) {
        fill_floats(program, packed, weights, out);
        return;
    }
    if (dtype_has_scales(packed->slot.layout.dtype)) {
        fill_codes(packed, weights, out);
        return;
    }
    Arena *arena = arena_new();
    float *floats = arena_array(arena, (size_t)room_of(packed), sizeof *floats);
    fill_floats(program, packed, weights, floats);
    tensor_from_f32(packed->slot.layout.dtype, floats, room_of(packed), out);
    arena_free(arena);
}

/* The hash covers shapes and kinds, since the size alone does not distinguish 33 rows of 8 from 34. */
uint64_t packed_layout_hash(const Program *program) {
    uint64_t hash = 0;
    for (int i = 0; i < program->n_packed; i++) {
        const Packed *p = &program->packed[i];
        const Layout *layout = &p->slot.layout;
        uint8_t numbers[8 * (MAX_RANK + 4)] = {0};
        const uint64_t k_group = layout->k_group > 1 ? (uint64_t)layout->k_group : 0;
        put_number(numbers, (uint64_t)slot_element(&p->slot), 8);
        put_number(numbers + 8, (uint64_t)room_of(p), 8);
        put_number(numbers + 16, (uint64_t)(layout->panel > 0) | (uint64_t)p->plus_one << 1 |
                                     (uint64_t)layout->dtype << 2 | k_group << 8, 8);
        put_number(numbers + 24, (uint64_t)p->shape.rank, 8);
        for (int d = 0; d < p->shape.rank; d++) put_number(numbers + 8 * (4 + d), (uint64_t)p->shape.dims[d], 8);
        hash = hash_bytes(hash, p->slot.name, strlen(p->slot.name) + 1);
        hash = hash_bytes(hash, numbers, sizeof numbers);
    }
    return hash;
}

/* ---------------------------------------------------------------- writing */

/* What a file holds of the weights: those of a rank, or all of them. */
typedef struct PackedFile {
    int rank, ranks; /* ranks 0: all */
    uint64_t data_hash, all_hash;
    OutputFile *output;
} PackedFile;

static void make_header(const Program *program, const PackedFile *file, uint8_t *header) {
    memset(header, 0, HEADER);
    memcpy(header, MAGIC, sizeof MAGIC);
    put_number(header + AT_VERSION, VERSION, 4);
    put_number(header + AT_LAYOUT_VERSION, LAYOUT_VERSION, 4);
    put_number(header + AT_MODEL, program->module->model->hash, 8);
    put_number(header + AT_DTYPE, (uint64_t)weight_table_dtype(&program->module->weights), 4);
    put_number(header + AT_COUNT, (uint64_t)program->n_packed, 4);
    put_number(header + AT_OFFSET, HEADER, 8);
    put_number(header + AT_BYTES, (uint64_t)program->weight_bytes, 8);
    put_number(header + AT_DATA_HASH, file->data_hash, 8);
    put_number(header + AT_LAYOUT, packed_layout_hash(program), 8);
    put_number(header + AT_RANK, (uint64_t)file->rank, 4);
    put_number(header + AT_RANKS, (uint64_t)file->ranks, 4);
    put_number(header + AT_ALL_HASH, file->all_hash, 8);
    put_number(header + AT_HEADER_HASH, hash_bytes(0, header, AT_HEADER_HASH), 8);
}

/* Sets `out` to the weights that a packed tensor is made of; returns how many. */
static int weights_of(const Program *program, const Packed *packed, int *out) {
    int n = 0;
    if (packed->weight >= 0) out[n++] = packed->weight;
    if (packed->derived < 0) return n;
    const Derived *derived = &program->module->derived[packed->derived];
    if (derived_has_source(derived)) out[n++] = derived->source;
    for (int s = 0; derived_has_sources(derived) && s < DERIVED_SOURCES; s++)
        if (derived->sources[s]) out[n++] = derived->sources[s] - 1;
    return n;
}

/* The last packed tensor that each weight is part of. */
static const int *last_uses(Arena *arena, const Program *program) {
    int *last = arena_array(arena, program->module->weights.count, sizeof *last), of[1 + DERIVED_SOURCES];
    for (int i = 0; i < program->n_packed; i++)
        for (int w = weights_of(program, &program->packed[i], of); w-- > 0;) last[of[w]] = i;
    return last;
}

/* Fills packed tensor i of a rank, or of all, from weights that have been read. */
static void fill_of_rank(const Program *program, int i, const Weights *weights, int rank, void *out) {
    int of[1 + DERIVED_SOURCES];
    if (program->module->ranks < 2) {
        packed_fill(program, &program->packed[i], weights, out);
        return;
    }
    Arena *own = arena_new();
    const int n = weights_of(program, &program->packed[i], of);
    const WeightTable *table = &program->module->weights;
    packed_fill(program, &program->packed[i], rank_weights(own, table, weights, of, n, rank), out);
    arena_free(own);
}

static void need_weights(const Program *program, int i, const Weights *weights) {
    int of[1 + DERIVED_SOURCES];
    for (int w = weights_of(program, &program->packed[i], of); w-- > 0;) weight_need(weights, of[w]);
}

/* Releases the weights of packed tensor i that no later one needs. */
static void release_weights(const Program *program, int i, const Weights *weights, const int *last) {
    int of[1 + DERIVED_SOURCES];
    for (int w = weights_of(program, &program->packed[i], of); w-- > 0;)
        if (last[of[w]] == i) weight_release(weights, of[w]);
}

uint8_t *packed_bytes(Arena *arena, const Program *program, const Weights *weights, size_t *size) {
    if (program->module->ranks > 1) bug("the weights of several ranks are in several files");
    *size = (size_t)packed_file_bytes(program);
    uint8_t *bytes = arena_alloc(arena, *size);
    uint8_t *data = bytes + HEADER;
    const int *last = last_uses(arena, program);
    for (int i = 0; i < program->n_packed; i++) {
        need_weights(program, i, weights);
        packed_fill(program, &program->packed[i], weights, data + program->packed[i].slot.offset);
        release_weights(program, i, weights, last);
    }
    const PackedFile file = {.data_hash = hash_bytes(0, data, (size_t)program->weight_bytes)};
    make_header(program, &file, bytes);
    return bytes;
}

static void write_hashed(PackedFile *file, const void *data, int64_t bytes) {
    output_write(file->output, data, (size_t)bytes);
    file->data_hash = hash_bytes(file->data_hash, data, (size_t)bytes);
}

/* The bytes of the largest packed tensor, or of the zeros after the last one, which *slack is set to. */
static int64_t largest_bytes(const Program *program, int64_t *slack) {
    int64_t most = 0, end = 0;
    for (int i = 0; i < program->n_packed; i++) {
        const Slot *slot = &program->packed[i].slot;
        if (slot->offset != end) bug("the packed tensor `%s` does not follow the one before it", slot->name);
        if (slot->bytes > most) most = slot->bytes;
        end = slot->offset + slot->bytes;
    }
    *slack = program->weight_bytes - end;
    return *slack > most ? *slack : most;
}

static void begin_files(Arena *arena, const char *const *paths, PackedFile *files, int n) {
    const uint8_t nothing[HEADER] = {0};
    for (int r = 0; r < n; r++) {
        files[r].rank = r;
        files[r].ranks = n > 1 ? n : 0;
        files[r].output = output_open(arena, paths[r]);
        output_seek(files[r].output, 0); /* fails before anything is written where it would fail at the end */
        output_write(files[r].output, nothing, sizeof nothing);
    }
}

static void end_files(const Program *program, PackedFile *files, int n) {
    uint64_t all_hash = 0;
    for (int r = 0; n > 1 && r < n; r++) {
        uint8_t own[8];
        put_number(own, files[r].data_hash, 8);
        all_hash = hash_bytes(all_hash, own, sizeof own);
    }
    for (int r = 0; r < n; r++) {
        uint8_t header[HEADER];
        files[r].all_hash = all_hash;
        make_header(program, &files[r], header);
        output_seek(files[r].output, 0);
        output_write(files[r].output, header, sizeof header);
    }
    for (int r = 0; r < n; r++) output_commit(files[r].output);
}

/* One packed tensor is in memory at a time, with the weights that it and later ones need. */
void packed_write_ranks(Arena *arena, const char *const *paths, const Program *program, const Weights *weights) {
    const int n = program->module->ranks > 1 ? program->module->ranks : 1;
    int64_t slack;
    float *data = arena_alloc(arena, (size_t)largest_bytes(program, &slack));
    const int *last_use = last_uses(arena, program);
    PackedFile *files = arena_array(arena, (size_t)n, sizeof *files);
    progress_begin("packing weights");
    begin_files(arena, paths, files, n);
    for (int i = 0; i < program->n_packed; i++) {
        const Packed *p = &program->packed[i];
        progress_at(p->slot.offset / 1000000, program->weight_bytes / 1000000, "MB");
        need_weights(program, i, weights);
        for (int r = 0; r < n; r++) {
            fill_of_rank(program, i, weights, r, data);
            write_hashed(&files[r], data, p->slot.bytes);
        }
        release_weights(program, i, weights, last_use);
    }
    memset(data, 0, (size_t)slack);
    for (int r = 0; r < n; r++) write_hashed(&files[r], data, slack);
    end_files(program, files, n);
}

void packed_write(Arena *arena, const char *path, const Program *program, const Weights *weights) {
    if (program->module->ranks > 1) bug("the weights of several ranks are in several files");
    packed_write_ranks(arena, &path, program, weights);
}

/* ---------------------------------------------------------------- reading */

bool packed_is(const char *path) { return file_begins(path, MAGIC, sizeof MAGIC); }

static void check_header(const Program *program, const MappedFile *file) {
    const uint8_t *header = file->data;
    const char *path = file->path, *name = program->module->model->name;
    if (file->size < sizeof MAGIC || memcmp(header, MAGIC, sizeof MAGIC) != 0) fail("%s: not an .attnw file", path);
    if (file->size < HEADER) fail("%s: truncated: %zu bytes, and the header alone has %d", path, file->size, HEADER);
    unsigned version = (unsigned)number_at(header + AT_VERSION, 4);
    unsigned layout = (unsigned)number_at(header + AT_LAYOUT_VERSION, 4);
    if (version != VERSION)
        fail("%s: has version %u of the format, and this attnc reads version %d", path, version, VERSION);
    if (number_at(header + AT_HEADER_HASH, 8) != hash_bytes(0, header, AT_HEADER_HASH))
        fail("%s: the header is damaged: its checksum does not match", path);
    if (layout != LAYOUT_VERSION)
        fail("%s: has version %u of the layout, and this attnc reads version %d", path, layout, LAYOUT_VERSION);
    Dtype dtype = weight_table_dtype(&program->module->weights);
    if (number_at(header + AT_DTYPE, 4) != (uint64_t)dtype) fail("%s: its weights are not %s", path, dtype_name(dtype));
    if (number_at(header + AT_MODEL, 8) != program->module->model->hash)
        fail("%s: holds the weights of another model than `%s`, or of an older form of it", path, name);
    if (number_at(header + AT_LAYOUT, 8) != packed_layout_hash(program) ||
        number_at(header + AT_COUNT, 4) != (uint64_t)program->n_packed)
        fail("%s: was packed for other bounds of `%s` or by another version of attnc; pack it again", path, name);
    uint64_t bytes = number_at(header + AT_BYTES, 8);
    if (number_at(header + AT_OFFSET, 8) != HEADER || bytes != (uint64_t)program->weight_bytes)
        fail("%s: has %llu bytes of weights where `%s` has %llu", path, (unsigned long long)bytes, name,
             (unsigned long long)program->weight_bytes);
    if (number_at(header + AT_RANKS, 4) || number_at(header + AT_RANK, 4) || number_at(header + AT_ALL_HASH, 8))
        fail("%s: holds the weights of rank %u of %u alone; this needs all of `%s`", path,
             (unsigned)number_at(header + AT_RANK, 4), (unsigned)number_at(header + AT_RANKS, 4), name);
    for (int i = AT_ZEROS; i < AT_HEADER_HASH; i++)
        if (header[i]) fail("%s: byte %d of the header is not 0", path, i);
    if (file->size - HEADER != bytes)
        fail("%s: %s: %zu bytes where the header says %llu", path,
             file->size - HEADER < bytes ? "truncated" : "oversized", file->size, (unsigned long long)bytes + HEADER);
}

/* Recovers the bucket table [buckets][heads] from the derived tensor [heads][distances], which repeats the row of a
 * bucket for each of its distances. Deriving from a table of row numbers tells the bucket of each distance; buckets
 * without distances are 0. */
static const float *buckets_back(Arena *arena, const Derived *derived, const WeightSpec *spec,
                                 const float *by_distance) {
    int64_t buckets = spec->shape.dims[0], heads = spec->shape.dims[1], width = derived->shape.dims[1];
    float *numbers = arena_array(arena, (size_t)(buckets * heads), sizeof *numbers);
    float *out = arena_array(arena, (size_t)(buckets * heads), sizeof *out);
    double *bucket = arena_array(arena, (size_t)(heads * width), sizeof *bucket);
    for (int64_t b = 0; b < buckets; b++)
        for (int64_t h = 0; h < heads; h++) numbers[b * heads + h] = (float)b;
    derived_fill(derived, numbers, bucket);
    for (int64_t h = 0; h < heads; h++)
        for (int64_t i = 0; i < width; i++)
            out[(int64_t)bucket[h * width + i] * heads + h] = by_distance[h * width + i];
    return out;
}

/* Recovers a table of positions from the derived one, which has rows of zeros in between. */
static const float *spread_back(Arena *arena, const Derived *derived, const WeightSpec *spec, const float *rows) {
    const int64_t n = spec->shape.dims[0], width = spec->shape.dims[1];
    float *out = arena_array(arena, (size_t)(n * width), sizeof *out);
    for (int64_t row = 0; row < n; row++)
        memcpy(out + row * width, rows + (row < derived->rows ? row : row + derived->gap) * width,
               (size_t)width * sizeof *out);
    return out;
}

/* Recovers what a table of scores holds of a learned one, into what other tables hold of it. */
static const float *learned_back(Arena *arena, const Derived *d, const WeightSpec *spec, const float *before,
                                 const float *numbers) {
    int64_t count = 0;
    if (!shape_elements(spec->shape, &count)) bug("`%s` is too large", spec->name);
    float *out = arena_array(arena, (size_t)count, sizeof *out);
    if (before) memcpy(out, before, (size_t)count * sizeof *out);
    const int64_t width = d->shape.dims[d->shape.rank - 1], heads = d->shape.rank > 1 ? d->shape.dims[0] : 1;
    for (int64_t i = 0; i < d->rows; i++)
        for (int64_t h = 0; h < heads; h++)
            out[(d->tabled == TABLED_HEAD ? i : h) * d->columns + derived_column(d, i)] = numbers[h * width + i];
    return out;
}

/* The tensor in the row-major form of a file, without panels and without the 1 that plus_one adds. */
static const float *numbers_back(Arena *arena, const Packed *packed, const float *data) {
    if (!packed->slot.layout.panel && !packed->plus_one) return data;
    int64_t count = 0;
    if (!shape_elements(packed->shape, &count)) bug("`%s` is too large", packed->slot.name);
    float *out = arena_array(arena, (size_t)count, sizeof *out);
    for (int64_t i = 0; i < count; i++) {
        const float x = data[layout_place(&packed->slot.layout, packed->shape, i)];
        out[i] = packed->plus_one ? x - 1 : x;
    }
    return out;
}

/* The packed floats of an .attnw as f32, in their layout. */
static const float *packed_floats(Arena *arena, const Packed *packed, const uint8_t *data) {
    Dtype dtype = packed->slot.layout.dtype;
    if (dtype == DTYPE_F32) return (const float *)(const void *)data;
    const FileTensor stored = {
        .name = packed->slot.name, .dtype = dtype, .data = data, .bytes = (size_t)packed->slot.bytes};
    float *floats = arena_array(arena, (size_t)room_of(packed), sizeof *floats);
    tensor_to_f32(&stored, 0, room_of(packed), floats);
    return floats;
}

static int8_t code_at(const uint8_t *data, Dtype dtype, int64_t at) {
    if (dtype == DTYPE_I8) return (int8_t)data[at];
    const int code = at % 2 ? data[at / 2] >> 4 : data[at / 2] & 15;
    return (int8_t)(code < 8 ? code : code - 16);
}

/* The numbers that integers stand for, in the row-major form of a file. */
static float *integers_back(Arena *arena, const Packed *packed, const WeightSpec *spec, const uint8_t *data,
                            const Scaling *scaling) {
    const int64_t N = weight_rows(spec), K = weight_columns(spec), groups = weight_groups(spec);
    float *out = arena_array(arena, (size_t)(N * K), sizeof *out);
    for (int64_t n = 0; n < N; n++)
        for (int64_t k = 0; k < K; k++) {
            const int64_t at = n * groups + (spec->type.group ? k / spec->type.group : 0);
            const int64_t place = layout_place(&packed->slot.layout, packed->shape, n * K + k);
            const int8_t code = code_at(data, spec->type.dtype, place);
            const double offset = scaling->offsets ? (double)scaling->offsets[at] : 0;
            out[n * K + k] = (float)((double)scaling->scales[at] * code + offset);
        }
    return out;
}

/* Puts the columns that stay f32 into the matrix, whose integers are 0 there. */
static void outliers_back(const Packed *packed, const WeightSpec *spec, const float *vector, const float *data,
                          float *matrix) {
    const int64_t N = weight_rows(spec), K = weight_columns(spec);
    const int64_t width = packed->shape.dims[packed->shape.rank - 1];
    int64_t columns[MOST_OUTLIERS];
    const int found = outlier_columns(vector, K, columns);
    for (int64_t n = 0; n < N; n++)
        for (int j = 0; j < found && j < width; j++)
            matrix[n * K + columns[j]] = data[layout_place(&packed->slot.layout, packed->shape, n * width + j)];
}

/* The weight that a table is gathered from. */
static const float *source_back(Arena *arena, const Derived *derived, const Weights *weights, const float *floats) {
    const WeightSpec *spec = &weights->table->specs[derived->source];
    if (derived->kind == DERIVED_LEARNED)
        return learned_back(arena, derived, spec, weights->data[derived->source], floats);
    return (derived->kind == DERIVED_SPREAD ? spread_back : buckets_back)(arena, derived, spec, floats);
}

/* A tensor of floats of the file, which begins at `data`. */
static void read_floats(Arena *arena, const Program *program, const Packed *p, const uint8_t *data, Weights *weights) {
    const Derived *derived = p->derived >= 0 ? &program->module->derived[p->derived] : NULL;
    if (p->of == OF_SUMS || p->of == OF_OUTLIERS || p->of == OF_COLUMNS) return; /* other tensors tell them */
    const float *floats = packed_floats(arena, p, data);
    if (p->of == OF_SCALES) weights->scaling[p->weight].scales = numbers_back(arena, p, floats);
    else if (p->of == OF_OFFSETS) weights->scaling[p->weight].offsets = numbers_back(arena, p, floats);
    else if (p->weight >= 0) weights->data[p->weight] = numbers_back(arena, p, floats);
    else if (derived && derived_has_source(derived))
        weights->data[derived->source] = source_back(arena, derived, weights, floats);
}

/* A matrix of integers, behind all floats; `data` are those of the file. */
static const float *read_integers(Arena *arena, const Program *program, const Packed *p, const uint8_t *data,
                                  const Weights *weights) {
    const WeightSpec *spec = &weights->table->specs[p->weight];
    const Scaling *scaling = &weights->scaling[p->weight];
    float *matrix = integers_back(arena, p, spec, data + p->slot.offset, scaling);
    const int outliers = program->outliers_of[p->weight];
    if (outliers == NO_PACKED || !scaling->vector) return matrix;
    const Packed *columns = &program->packed[outliers];
    outliers_back(columns, spec, scaling->vector, (const float *)(const void *)(data + columns->slot.offset), matrix);
    return matrix;
}

Weights *packed_read(Arena *arena, const Program *program, const char *path, bool verify) {
    MappedFile file = file_map(arena, path);
    check_header(program, &file);
    uint64_t expected = number_at(file.data + AT_DATA_HASH, 8);
    progress_begin("reading %s", path);
    const uint8_t *data = file.data + HEADER;
    if (verify && hash_bytes(0, data, file.size - HEADER) != expected)
        fail("%s: the weights are damaged: their checksum does not match", path);
    const WeightTable *table = &program->module->weights;
    Weights *weights = weights_new(arena, table);
    for (int i = 0; i < program->n_packed; i++) {
        const Packed *p = &program->packed[i];
        progress_at(i, program->n_packed, "tensors");
        if (!dtype_has_scales(p->slot.layout.dtype))
            read_floats(arena, program, p, data + p->slot.offset, weights);
    }
    for (size_t i = 0; i < table->count; i++) {
        const WeightSpec *spec = &table->specs[i];
        if (spec->smooths && weights->data[i]) weight_vector_check(arena, spec, path, spec->name, weights->data[i]);
        if (spec->smoothing) weights->scaling[i].vector = weights->data[spec->smoothing - 1];
    }
    for (int i = 0; i < program->n_packed; i++) {
        const Packed *p = &program->packed[i];
        if (!dtype_has_scales(p->slot.layout.dtype)) continue;
        progress_at(i, program->n_packed, "tensors");
        weights->data[p->weight] = read_integers(arena, program, p, data, weights);
    }
    for (size_t i = 0; i < table->count; i++) {
        if (weights->data[i]) continue;
        if (table->specs[i].smooths) fail("%s: holds no vector `%s`, which smooths rows", path, table->specs[i].name);
        bug("the weight `%s` is not packed", table->specs[i].name);
    }
    return weights;
}
