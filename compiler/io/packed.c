/* packed.c: .attnw, a model's weights as the code reads them.
 *
 *     0  magic "ATTNW\r\n\x1a"       8  u32 version, 1          12  u32 layout version, 1
 *    16  u64 hash of the model      24  u32 dtype, 0: f32       28  u32 packed tensors
 *    32  u64 offset of the data     40  u64 bytes of the data   48  u64 hash of the data
 *    56  u64 hash of the layout     64  zeros                  120  u64 hash of bytes 0 to 119
 *   128  the data: floats; each tensor at a 64-byte boundary, zeros between and behind them
 *
 * All little-endian. Hashes are hash_bytes with seed 0. */
#include "../attnc.h"

#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "floats are written and mapped as this machine has them, which must be little-endian"
#endif

enum { HEADER = 128, VERSION = 1, LAYOUT_VERSION = 1, PANEL = 16 };
enum {
    AT_VERSION = 8, AT_LAYOUT_VERSION = 12, AT_MODEL = 16, AT_DTYPE = 24, AT_COUNT = 28, AT_OFFSET = 32, AT_BYTES = 40,
    AT_DATA_HASH = 48, AT_LAYOUT = 56, AT_ZEROS = 64, AT_HEADER_HASH = 120
};
static const char MAGIC[8] = {'A', 'T', 'T', 'N', 'W', '\r', '\n', '\x1a'};

static void put_number(uint8_t *at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) at[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t number_at(const uint8_t *at, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) value |= (uint64_t)at[i] << (8 * i);
    return value;
}

/* ---------------------------------------------------------------- from weights to packed floats */

static void fill_derived(const Program *program, const Packed *packed, const Weights *weights, float *out) {
    const Derived *derived = &program->module->derived[packed->derived];
    int64_t count = 0;
    if (packed->panels || !shape_elements(derived->shape, &count) || count > packed->room)
        bug("the derived tensor `%s` does not fit its place", derived->name);
    Arena *arena = arena_new();
    double *wide = arena_array(arena, (size_t)count, sizeof *wide);
    derived_fill(derived, derived->kind == DERIVED_RELATIVE ? weights->data[derived->source] : NULL, wide);
    for (int64_t i = 0; i < count; i++) out[i] = (float)wide[i];
    arena_free(arena);
}

/* Where element [n][k] of an [N][K] matrix stands among its panels [N/16][K][16]. */
static int64_t panel_index(int64_t n, int64_t k, int64_t K) { return (n / PANEL * K + k) * PANEL + n % PANEL; }

void packed_fill(const Program *program, const Packed *packed, const Weights *weights, float *out) {
    memset(out, 0, (size_t)packed->room * sizeof *out);
    if (packed->derived >= 0) {
        fill_derived(program, packed, weights, out);
        return;
    }
    if (packed->weight < 0) return;
    const float *data = weights->data[packed->weight];
    int64_t count = 0, K = packed->panels ? packed->shape.dims[1] : 1;
    if (!shape_elements(packed->shape, &count) || count > packed->room)
        bug("`%s` does not fit its place", packed->name);
    for (int64_t i = 0; i < count; i++) {
        int64_t to = packed->panels ? panel_index(i / K, i % K, K) : i;
        out[to] = packed->plus_one ? data[i] + 1 : data[i];
    }
}

/* Shapes and kinds are a part of it: the room alone does not tell 33 rows of 8 from 34. */
uint64_t packed_layout_hash(const Program *program) {
    uint64_t hash = 0;
    for (int i = 0; i < program->n_packed; i++) {
        const Packed *p = &program->packed[i];
        uint8_t numbers[8 * (MAX_RANK + 4)] = {0};
        put_number(numbers, (uint64_t)p->offset, 8);
        put_number(numbers + 8, (uint64_t)p->room, 8);
        put_number(numbers + 16, (uint64_t)p->panels | (uint64_t)p->plus_one << 1, 8);
        put_number(numbers + 24, (uint64_t)p->shape.rank, 8);
        for (int d = 0; d < p->shape.rank; d++) put_number(numbers + 8 * (4 + d), (uint64_t)p->shape.dims[d], 8);
        hash = hash_bytes(hash, p->name, strlen(p->name) + 1);
        hash = hash_bytes(hash, numbers, sizeof numbers);
    }
    return hash;
}

/* ---------------------------------------------------------------- writing */

static void make_header(const Program *program, uint64_t data_hash, uint8_t *header) {
    memset(header, 0, HEADER);
    memcpy(header, MAGIC, sizeof MAGIC);
    put_number(header + AT_VERSION, VERSION, 4);
    put_number(header + AT_LAYOUT_VERSION, LAYOUT_VERSION, 4);
    put_number(header + AT_MODEL, program->module->model->hash, 8);
    put_number(header + AT_COUNT, (uint64_t)program->n_packed, 4);
    put_number(header + AT_OFFSET, HEADER, 8);
    put_number(header + AT_BYTES, (uint64_t)program->weight_floats * sizeof(float), 8);
    put_number(header + AT_DATA_HASH, data_hash, 8);
    put_number(header + AT_LAYOUT, packed_layout_hash(program), 8);
    put_number(header + AT_HEADER_HASH, hash_bytes(0, header, AT_HEADER_HASH), 8);
}

uint8_t *packed_bytes(Arena *arena, const Program *program, const Weights *weights, size_t *size) {
    *size = HEADER + (size_t)program->weight_floats * sizeof(float);
    uint8_t *bytes = arena_alloc(arena, *size);
    float *data = (float *)(void *)(bytes + HEADER);
    for (int i = 0; i < program->n_packed; i++)
        packed_fill(program, &program->packed[i], weights, data + program->packed[i].offset);
    make_header(program, hash_bytes(0, data, (size_t)program->weight_floats * sizeof *data), bytes);
    return bytes;
}

static uint64_t write_floats(OutputFile *output, uint64_t hash, const float *floats, int64_t count) {
    output_write(output, floats, (size_t)count * sizeof *floats);
    return hash_bytes(hash, floats, (size_t)count * sizeof *floats);
}

/* One tensor at a time is in memory beside the weights. */
void packed_write(Arena *arena, const char *path, const Program *program, const Weights *weights) {
    int64_t most = 0, at = 0;
    for (int i = 0; i < program->n_packed; i++)
        if (program->packed[i].room > most) most = program->packed[i].room;
    int64_t last = program->n_packed
                       ? program->packed[program->n_packed - 1].offset + program->packed[program->n_packed - 1].room
                       : 0;
    int64_t slack = program->weight_floats - last;
    if (slack > most) most = slack;
    float *floats = arena_array(arena, (size_t)most, sizeof *floats);
    progress_begin("packing weights");
    OutputFile *output = output_open(arena, path);
    uint8_t nothing[HEADER] = {0};
    output_write(output, nothing, sizeof nothing);
    uint64_t hash = 0;
    for (int i = 0; i < program->n_packed; i++) {
        const Packed *p = &program->packed[i];
        if (p->offset != at) bug("the packed tensor `%s` does not follow the one before it", p->name);
        progress_at(at * 4 / 1000000, program->weight_floats * 4 / 1000000, "MB");
        packed_fill(program, p, weights, floats);
        hash = write_floats(output, hash, floats, p->room);
        at += p->room;
    }
    memset(floats, 0, (size_t)slack * sizeof *floats);
    hash = write_floats(output, hash, floats, slack);
    uint8_t header[HEADER];
    make_header(program, hash, header);
    output_seek(output, 0);
    output_write(output, header, sizeof header);
    output_commit(output);
}

/* ---------------------------------------------------------------- reading */

bool packed_is(const char *path) {
    char begin[sizeof MAGIC];
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    bool same = fread(begin, 1, sizeof begin, file) == sizeof begin && memcmp(begin, MAGIC, sizeof begin) == 0;
    fclose(file);
    return same;
}

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
    if (number_at(header + AT_DTYPE, 4) != 0) fail("%s: its weights are not f32", path);
    if (number_at(header + AT_MODEL, 8) != program->module->model->hash)
        fail("%s: holds the weights of another model than `%s`, or of an older form of it", path, name);
    if (number_at(header + AT_LAYOUT, 8) != packed_layout_hash(program) ||
        number_at(header + AT_COUNT, 4) != (uint64_t)program->n_packed)
        fail("%s: was packed for other bounds of `%s` or by another version of attnc; pack it again", path, name);
    uint64_t bytes = number_at(header + AT_BYTES, 8);
    if (number_at(header + AT_OFFSET, 8) != HEADER || bytes != (uint64_t)program->weight_floats * sizeof(float))
        fail("%s: has %llu bytes of weights where `%s` has %llu", path, (unsigned long long)bytes, name,
             (unsigned long long)program->weight_floats * sizeof(float));
    for (int i = AT_ZEROS; i < AT_HEADER_HASH; i++)
        if (header[i]) fail("%s: byte %d of the header is not 0", path, i);
    if (file->size - HEADER != bytes)
        fail("%s: %s: %zu bytes where the header says %llu", path,
             file->size - HEADER < bytes ? "truncated" : "oversized", file->size, (unsigned long long)bytes + HEADER);
}

/* A bucket's row stands wherever a distance falls into it; buckets that no distance reaches stay 0. Which bucket
 * that is comes from the derivation itself, over a table that holds its own row numbers. */
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

/* A weight as its own file would have it: panels opened, the added one taken off again. */
static const float *weight_back(Arena *arena, const Packed *packed, const float *data) {
    if (!packed->panels && !packed->plus_one) return data;
    int64_t count = 0;
    if (!shape_elements(packed->shape, &count)) bug("`%s` is too large", packed->name);
    float *out = arena_array(arena, (size_t)count, sizeof *out);
    int64_t K = packed->panels ? packed->shape.dims[1] : 1;
    for (int64_t i = 0; i < count; i++) {
        float x = data[packed->panels ? panel_index(i / K, i % K, K) : i];
        out[i] = packed->plus_one ? x - 1 : x;
    }
    return out;
}

Weights *packed_read(Arena *arena, const Program *program, const char *path, bool verify) {
    MappedFile file = file_map(arena, path);
    check_header(program, &file);
    uint64_t expected = number_at(file.data + AT_DATA_HASH, 8);
    progress_begin("reading %s", path);
    if (verify && hash_bytes(0, file.data + HEADER, file.size - HEADER) != expected)
        fail("%s: the weights are damaged: their checksum does not match", path);
    const WeightTable *table = &program->module->weights;
    Weights *weights = arena_alloc(arena, sizeof *weights);
    weights->table = table;
    weights->data = arena_array(arena, table->count, sizeof *weights->data);
    const float *data = (const float *)(const void *)(file.data + HEADER);
    for (int i = 0; i < program->n_packed; i++) {
        const Packed *p = &program->packed[i];
        const Derived *derived = p->derived >= 0 ? &program->module->derived[p->derived] : NULL;
        progress_at(i, program->n_packed, "tensors");
        if (p->weight >= 0) weights->data[p->weight] = weight_back(arena, p, data + p->offset);
        else if (derived && derived->kind == DERIVED_RELATIVE)
            weights->data[derived->source] = buckets_back(arena, derived, &table->specs[derived->source],
                                                          data + p->offset);
    }
    for (size_t i = 0; i < table->count; i++)
        if (!weights->data[i]) bug("the weight `%s` is not packed", table->specs[i].name);
    return weights;
}
