/* test_packed.c: weights in the layout of the code, and .attnw files, good and bad. */
#include "scratch_folder.h"

#include <math.h>

/* Odd sizes, every kind of tensor: tied table, shared relative buckets, learned positions, rotations, plus_one. */
static const char odd_spec[] =
    "model odd { d_model 21, vocab 19, head logits tied bias\n"
    "  encoder { seq <= %d, position learned offset 3, segments 3, embedding normalized\n"
    "    layers 2 { attention self { heads 3, head_dim 7, bias q, position relative buckets 8 distance 20 }\n"
    "               ffn { d_ff 37, activation silu gated } } } }\n";
static const char rotated_spec[] =
    "model rotated { d_model 20, vocab 23, norm rmsnorm plus_one, bias none, head pool mean\n"
    "  encoder { seq <= %d\n"
    "    layers 3 { attention self { heads 5, kv_heads 1, head_dim 6, value_dim 9, position rope }\n"
    "               ffn { d_ff 33 } } } }\n";

typedef struct Case {
    Module *module;
    Program *program;
    Weights *weights;
} Case;

static Case case_of(const char *text, const char *seed) {
    Compilation c = compiled(text, STAGE_PLAN);
    return (Case){c.module, c.program, weights_load(arena, c.model, &c.module->weights, seed, false)};
}

static Case odd_case(void) { return case_of(arena_printf(arena, odd_spec, 30), "random:5"); }
static Case rotated_case(void) { return case_of(arena_printf(arena, rotated_spec, 11), "random:6"); }

static const Packed *packed_named(const Program *program, const char *name) {
    for (int i = 0; i < program->n_packed; i++)
        if (strcmp(program->packed[i].slot.name, name) == 0) return &program->packed[i];
    fail_msg("nothing packed is called %s", name);
    return NULL;
}

static float *filled(const Case *c, const Packed *packed) {
    float *out = arena_alloc(arena, (size_t)packed->slot.bytes);
    memset(out, 0x7f, (size_t)packed->slot.bytes);
    packed_fill(c->program, packed, c->weights, out);
    return out;
}

static const float *weight_of(const Case *c, const char *name) {
    const WeightSpec *spec = weight_spec_find(&c->module->weights, name);
    assert_non_null(spec);
    return c->weights->data[spec - c->module->weights.specs];
}

/* ------------------------------------------------------------------ places */

static void panels_of_odd_sizes(void **state) {
    (void)state;
    Case c = odd_case();
    const char *name = "encoder.layers.1.ffn.up.weight"; /* [37][21] */
    const Packed *p = packed_named(c.program, name);
    const float *out = filled(&c, p), *data = weight_of(&c, name);
    assert_int_equal(p->slot.layout.panel, 16);
    assert_int_equal(p->slot.bytes, 4 * 48 * 21);
    for (int panel = 0; panel < 3; panel++)
        for (int k = 0; k < 21; k++)
            for (int lane = 0; lane < 16; lane++) {
                int row = panel * 16 + lane;
                float expected = row < 37 ? data[row * 21 + k] : 0;
                assert_true(out[(panel * 21 + k) * 16 + lane] == expected);
            }
}

static void rows_as_they_are(void **state) {
    (void)state;
    Case c = odd_case();
    const char *name = "encoder.embedding.positions.weight"; /* [33][21] */
    const Packed *p = packed_named(c.program, name);
    const float *out = filled(&c, p);
    assert_int_equal(p->slot.layout.panel, 0);
    assert_int_equal(p->slot.bytes, 4 * 704);
    assert_memory_equal(out, weight_of(&c, name), 693 * sizeof *out);
    for (int i = 693; i < 704; i++) assert_true(out[i] == 0);
}

static void one_is_added(void **state) {
    (void)state;
    Case c = rotated_case();
    const char *name = "encoder.layers.0.attention.norm_in.weight";
    const Packed *p = packed_named(c.program, name);
    assert_true(p->plus_one);
    const float *out = filled(&c, p), *data = weight_of(&c, name);
    for (int i = 0; i < 20; i++) assert_true(out[i] == data[i] + 1);
    for (int i = 20; i < 32; i++) assert_true(out[i] == 0);
}

static void derived_tables(void **state) {
    (void)state;
    Case c = rotated_case();
    int found = 0;
    for (int i = 0; i < c.program->n_packed; i++) {
        const Packed *p = &c.program->packed[i];
        if (p->derived < 0) continue;
        const Derived *d = &c.module->derived[p->derived];
        double wide[33];
        assert_int_equal(d->shape.dims[0] * d->shape.dims[1], 33);
        derived_fill(d, NULL, wide);
        const float *out = filled(&c, p);
        for (int k = 0; k < 33; k++) assert_true(out[k] == (float)wide[k]);
        for (int k = 33; k < p->slot.bytes / 4; k++) assert_true(out[k] == 0);
        found++;
    }
    assert_int_equal(found, 2);
}

static void zeros_for_missing_biases(void **state) {
    (void)state;
    Case c = odd_case();
    int found = 0;
    for (int i = 0; i < c.program->n_packed; i++) {
        const Packed *p = &c.program->packed[i];
        if (p->derived >= 0 || p->weight >= 0) continue;
        const float *out = filled(&c, p);
        for (int k = 0; k < p->slot.bytes / 4; k++) assert_true(out[k] == 0);
        found++;
    }
    assert_int_equal(found, 4); /* keys and values of two layers */
}

static void offsets_and_slack(void **state) {
    (void)state;
    Case c = odd_case();
    int64_t at = 0;
    for (int i = 0; i < c.program->n_packed; i++) {
        assert_int_equal(c.program->packed[i].slot.offset, at);
        assert_int_equal(at % 64, 0);
        at += c.program->packed[i].slot.bytes;
    }
    assert_true(c.program->weight_bytes >= at + 64);
}

/* ------------------------------------------------------------------ files */

static void write_and_compare(Case c, const char *name) {
    const char *path = in_folder(name);
    packed_write(arena, path, c.program, c.weights);
    assert_true(packed_is(path));
    Weights *back = packed_read(arena, c.program, path, true);
    assert_ptr_equal(back->table, &c.module->weights);
    for (size_t i = 0; i < c.module->weights.count; i++) {
        const WeightSpec *spec = &c.module->weights.specs[i];
        int64_t count = 0;
        assert_true(shape_elements(spec->shape, &count));
        bool plus_one = strstr(spec->name, "norm") && c.module->model->encoder->final_norm.plus_one;
        for (int64_t k = 0; k < count; k++) {
            float a = c.weights->data[i][k], b = back->data[i][k];
            if (strstr(spec->name, "relative") && k / 3 == 4)
                a = 0; /* a key ahead is at least 1 away: nothing reaches this bucket */
            if (plus_one ? b + 1 != a + 1 : memcmp(&a, &b, sizeof a) != 0)
                fail_msg("%s: %lld: %a is not %a", spec->name, (long long)k, (double)b, (double)a);
        }
    }
}

static void round_trip(void **state) {
    (void)state;
    write_and_compare(odd_case(), "odd.attnw");
    write_and_compare(rotated_case(), "rotated.attnw");
    write_and_compare(case_of("model plain { d_model 16, vocab 5, encoder { seq <= 4, position sinusoidal, layers 1 { "
                              "attention self { heads 1 } } } }",
                              "random:1"),
                      "plain.attnw");
}

/* With few rows some buckets are never read: they come back as zeros, the others as they were. */
static void unreached_buckets(void **state) {
    (void)state;
    Case c = case_of(arena_printf(arena, odd_spec, 2), "random:5");
    const char *path = in_folder("short.attnw");
    packed_write(arena, path, c.program, c.weights);
    Weights *back = packed_read(arena, c.program, path, true);
    const WeightSpec *spec = weight_spec_find(&c.module->weights, "encoder.relative.weight");
    size_t index = (size_t)(spec - c.module->weights.specs);
    for (int b = 0; b < 8; b++)
        for (int h = 0; h < 3; h++) {
            bool reached = b == 0 || b == 1 || b == 5; /* distances 0, -1, 1 */
            assert_true(back->data[index][b * 3 + h] == (reached ? c.weights->data[index][b * 3 + h] : 0));
        }
}

static void same_bytes_again(void **state) {
    (void)state;
    Case c = odd_case();
    const char *first = in_folder("first.attnw"), *second = in_folder("second.attnw");
    packed_write(arena, first, c.program, c.weights);
    packed_write(arena, second, c.program, packed_read(arena, c.program, first, true));
    size_t a, b;
    char *one = file_read(arena, first, 1 << 24, &a), *two = file_read(arena, second, 1 << 24, &b);
    assert_int_equal(a, b);
    assert_memory_equal(one, two, a);
    assert_int_equal(a, 128 + c.program->weight_bytes);
}

static void header_as_documented(void **state) {
    (void)state;
    Case c = odd_case();
    const char *path = in_folder("header.attnw");
    packed_write(arena, path, c.program, c.weights);
    size_t size;
    const char *bytes = file_read(arena, path, 1 << 24, &size);
    assert_memory_equal(bytes, "ATTNW\r\n\x1a\1\0\0\0\1\0\0\0", 16);
    uint64_t words[16];
    memcpy(words, bytes, sizeof words);
    assert_int_equal(words[2], c.module->model->hash);
    assert_int_equal(words[3], (uint64_t)c.program->n_packed << 32);
    assert_int_equal(words[4], 128);
    assert_int_equal(words[5], size - 128);
    assert_int_equal(words[6], hash_bytes(0, bytes + 128, size - 128));
    assert_int_equal(words[7], packed_layout_hash(c.program));
    for (int i = 8; i < 15; i++) assert_int_equal(words[i], 0);
    assert_int_equal(words[15], hash_bytes(0, bytes, 120));
}

/* ------------------------------------------------------------------ refusals */

static void refuse(const Program *program, const char *path, bool verify, const char *reason) {
    Arena *volatile short_lived = arena_new();
    bool fails = FAILS(packed_read(short_lived, program, path, verify));
    arena_free(short_lived);
    if (!fails) fail_msg("taken, though: %s", reason);
    message_holds(EXIT_USER, reason);
}

typedef struct Image {
    char *bytes;
    size_t size;
} Image;

static Image image_of(Case c) {
    Image image;
    const char *path = in_folder("image.attnw");
    packed_write(arena, path, c.program, c.weights);
    image.bytes = file_read(arena, path, 1 << 24, &image.size);
    return image;
}

static const char *put_changed(const void *bytes, size_t size) { return put("changed.attnw", bytes, size); }

/* In place, since a file that is written anew may wait for the disk. */
static void put_byte(const char *path, size_t at, int byte) {
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, (long)at, SEEK_SET), 0);
    fputc(byte, file);
    assert_int_equal(fclose(file), 0);
}

/* The image with one field changed and the header's checksum made right again. */
static const char *forged(Image image, int at, uint64_t value, int bytes) {
    char *copy = arena_copy(arena, image.bytes, image.size);
    memcpy(copy + at, &value, (size_t)bytes);
    uint64_t hash = hash_bytes(0, copy, 120);
    memcpy(copy + 120, &hash, 8);
    return put_changed(copy, image.size);
}

static void every_bit_of_the_header(void **state) {
    (void)state;
    Case c = rotated_case();
    Image image = image_of(c);
    const char *path = put_changed(image.bytes, image.size);
    for (int bit = 0; bit < 128 * 8; bit++) {
        put_byte(path, (size_t)bit / 8, image.bytes[bit / 8] ^ 1 << bit % 8);
        refuse(c.program, path, false,
               bit < 64   ? "not an .attnw file"
               : bit < 96 ? "version"
                          : "the header is damaged");
        put_byte(path, (size_t)bit / 8, image.bytes[bit / 8]);
    }
    packed_read(arena, c.program, path, true);
}

static void forged_headers(void **state) {
    (void)state;
    Case c = rotated_case();
    Image image = image_of(c);
    refuse(c.program, forged(image, 8, 2, 4), false, "has version 2 of the format");
    refuse(c.program, forged(image, 12, 7, 4), false, "has version 7 of the layout");
    refuse(c.program, forged(image, 16, 1, 8), false, "the weights of another model than `rotated`");
    refuse(c.program, forged(image, 24, 1, 4), false, "not F32");
    refuse(c.program, forged(image, 28, 3, 4), false, "other bounds of `rotated`");
    refuse(c.program, forged(image, 32, 192, 8), false, "bytes of weights");
    refuse(c.program, forged(image, 40, 1 << 20, 8), false, "has 1048576 bytes of weights");
    refuse(c.program, forged(image, 40, UINT64_MAX - 100, 8), false, "bytes of weights");
    refuse(c.program, forged(image, 56, 1, 8), false, "other bounds");
    refuse(c.program, forged(image, 68, 2, 4), false, "holds the weights of rank 0 of 2 alone");
    refuse(c.program, forged(image, 80, 1, 1), false, "byte 80 of the header is not 0");
    refuse(c.program, forged(image, 119, 1, 1), false, "byte 119 of the header is not 0");
    packed_read(arena, c.program, forged(image, 48, 1, 8), false);
    refuse(c.program, forged(image, 48, 1, 8), true, "the weights are damaged");
}

/* Half of the bytes, numbers that read back to the bit, and no confusion with the same model in f32. */
static void brain_floats(void **state) {
    (void)state;
    static const char spec[] = "model odd { d_model 21, vocab 19, %s head logits tied bias\n"
                               "  encoder { seq <= 33, position learned, segments 3\n"
                               "    layers 1 { attention self { heads 3 }, ffn { d_ff 37 } } } }\n";
    Case single = case_of(arena_printf(arena, spec, ""), "random:5"),
         c = case_of(arena_printf(arena, spec, "precision weights bf16,"), "random:5");
    const char *names[] = {"encoder.embedding.tokens.weight", "encoder.layers.0.ffn.up.weight"};
    for (int i = 0; i < 2; i++) {
        const Packed *p = packed_named(c.program, names[i]);
        assert_int_equal(p->slot.layout.dtype, DTYPE_BF16);
        const uint16_t *out = (const void *)filled(&c, p);
        const float *data = weight_of(&c, names[i]), *exact = weight_of(&single, names[i]);
        for (int64_t n = 0; n < p->shape.dims[0]; n++)
            for (int64_t k = 0; k < 21; k++) {
                uint16_t rounded;
                tensor_from_f32(DTYPE_BF16, &exact[n * 21 + k], 1, &rounded);
                assert_int_equal(out[layout_index(&p->slot.layout, n, k, 21)], rounded);
                assert_true(fabsf(data[n * 21 + k] - exact[n * 21 + k]) <= 0x1p-8f * fabsf(exact[n * 21 + k]));
            }
    }
    assert_int_equal(packed_named(c.program, names[1])->slot.bytes, 2112); /* 2 * 48 * 22, in pairs of k */
    const char *singles[] = {"encoder.embedding.positions.weight", "encoder.embedding.segments.weight",
                             "encoder.layers.0.ffn.up.bias", "encoder.layers.0.ffn.norm_in.weight"};
    for (int i = 0; i < 4; i++) assert_int_equal(packed_named(c.program, singles[i])->slot.layout.dtype, DTYPE_F32);
    const char *path = in_folder("bf16.attnw"), *other = in_folder("f32.attnw");
    packed_write(arena, path, c.program, c.weights);
    packed_write(arena, other, single.program, single.weights);
    const Weights *back = packed_read(arena, c.program, path, true);
    for (size_t i = 0; i < back->table->count; i++) {
        int64_t count;
        assert_true(shape_elements(back->table->specs[i].shape, &count));
        assert_memory_equal(back->data[i], c.weights->data[i], (size_t)count * sizeof(float));
    }
    refuse(c.program, other, false, "not BF16");
    refuse(single.program, path, false, "not F32");
    assert_true(c.program->module->model->hash != single.program->module->model->hash);
    assert_true(packed_layout_hash(c.program) != packed_layout_hash(single.program));
}

/* A quarter of the bytes and a scale for each row, in panels and in rows, which read back to the bit. */
static void integers(void **state) {
    (void)state;
    Case c = case_of("model odd { d_model 21, vocab 19, precision weights int8, head logits\n"
                     "  decoder { seq <= 33, position learned,\n"
                     "    layers 1 { attention self { heads 3 }, ffn { d_ff 37 } } } }\n",
                     "random:5");
    const char *names[] = {"decoder.embedding.tokens.weight", "decoder.layers.0.ffn.up.weight"};
    for (int i = 0; i < 2; i++) {
        const Packed *p = packed_named(c.program, names[i]);
        const Packed *unit = packed_named(c.program, arena_printf(arena, "%s.scales", names[i]));
        const int8_t *out = (const void *)filled(&c, p);
        const float *data = weight_of(&c, names[i]), *scales = filled(&c, unit);
        assert_int_equal(p->slot.layout.panel, i ? PANEL : 0);
        assert_int_equal(p->slot.bytes, i ? 1024 : 448); /* 48 * 21 and 19 * 21, to whole lines */
        for (int64_t n = 0; n < p->shape.dims[0]; n++)
            for (int64_t k = 0; k < 21; k++)
                assert_true(data[n * 21 + k] == scales[n] * out[layout_index(&p->slot.layout, n, k, 21)]);
        for (int64_t n = unit->shape.dims[0]; n < unit->slot.bytes / 4; n++) assert_true(scales[n] == 0);
    }
    const char *path = in_folder("int8.attnw");
    packed_write(arena, path, c.program, c.weights);
    const Weights *back = packed_read(arena, c.program, path, true);
    for (size_t i = 0; i < back->table->count; i++) {
        const WeightSpec *spec = &back->table->specs[i];
        int64_t count;
        assert_true(shape_elements(spec->shape, &count));
        assert_memory_equal(back->data[i], c.weights->data[i], (size_t)count * sizeof(float));
        assert_true((back->scaling[i].scales != NULL) == dtype_has_scales(spec->type.dtype));
        for (int64_t n = 0; n < weight_groups(spec) * (weight_groups(spec) ? spec->shape.dims[0] : 0); n++)
            assert_true(back->scaling[i].scales[n] == c.weights->scaling[i].scales[n]);
    }
}

static void truncated_files(void **state) {
    (void)state;
    Case c = rotated_case();
    Image image = image_of(c);
    refuse(c.program, put_changed(image.bytes, 0), false, "not an .attnw file");
    assert_false(packed_is(in_folder("changed.attnw")));
    refuse(c.program, put_changed(image.bytes, 7), false, "not an .attnw file");
    refuse(c.program, put_changed(image.bytes, 8), false, "truncated: 8 bytes");
    refuse(c.program, put_changed(image.bytes, 127), false, "truncated: 127 bytes");
    refuse(c.program, put_changed(image.bytes, 128), false, "truncated: 128 bytes where");
    const char *path = put_changed(image.bytes, image.size);
    for (size_t size = image.size; size-- > 8;) {
        assert_int_equal(truncate(path, (off_t)size), 0);
        refuse(c.program, path, false, "truncated");
    }
    refuse(c.program, put_changed(arena_copy(arena, image.bytes, image.size), image.size + 1), false, "oversized");
    refuse(c.program, in_folder("nowhere.attnw"), false, "nowhere.attnw");
    assert_false(packed_is(in_folder("nowhere.attnw")));
    assert_false(packed_is(folder));
}

static void damaged_data(void **state) {
    (void)state;
    Case c = rotated_case();
    Image image = image_of(c);
    const char *path = put_changed(image.bytes, image.size);
    for (size_t bit = 128 * 8; bit < image.size * 8; bit += 61) { /* of the slack behind the last tensor, too */
        put_byte(path, bit / 8, image.bytes[bit / 8] ^ 1 << bit % 8);
        if (bit % 5 == 0) packed_read(arena, c.program, path, false);
        refuse(c.program, path, true, "the weights are damaged");
        put_byte(path, bit / 8, image.bytes[bit / 8]);
    }
    packed_read(arena, c.program, path, true);
}

/* Bounds are no part of the model's hash; the layout's tells them apart, even where all rooms are equal. */
static void other_models_and_bounds(void **state) {
    (void)state;
    Case c = rotated_case();
    Image image = image_of(c);
    const char *path = put_changed(image.bytes, image.size);
    Case longer = case_of(arena_printf(arena, rotated_spec, 12), "random:6");
    assert_int_equal(longer.module->model->hash, c.module->model->hash);
    assert_int_equal(longer.program->weight_bytes, c.program->weight_bytes);
    refuse(longer.program, path, false, "was packed for other bounds of `rotated`");
    refuse(odd_case().program, path, false, "the weights of another model than `odd`");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(panels_of_odd_sizes),
        TEST(rows_as_they_are),
        TEST(one_is_added),
        TEST(derived_tables),
        TEST(zeros_for_missing_biases),
        TEST(offsets_and_slack),
        TEST(round_trip),
        TEST(unreached_buckets),
        TEST(same_bytes_again),
        TEST(header_as_documented),
        TEST(every_bit_of_the_header),
        TEST(forged_headers), TEST(brain_floats), TEST(integers),
        TEST(truncated_files),
        TEST(damaged_data),
        TEST(other_models_and_bounds),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
