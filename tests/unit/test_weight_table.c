/* test_weight_table.c: the weights that the builder declares, with their order, shapes and random values, and the table
 * that finds them by their names. */
#include "fixture.h"

/* A line a weight: its name, its shape, and the mean and deviation of its random values. */
static const char *listed(const WeightTable *table) {
    Text text = text_new(arena);
    for (size_t i = 0; i < table->count; i++) {
        const WeightSpec *spec = &table->specs[i];
        text_printf(&text, "%s %s %g %.4g%s\n", spec->name, shape_text(arena, spec->shape), spec->mean, spec->deviation,
                    spec->longer ? " longer" : "");
    }
    return text.data;
}

/* ------------------------------------------------------------------ what models declare */

/* Layers that share weights declare them once, and so do both stacks and the head with a tied embedding. */
static void both_stacks(void **state) {
    (void)state;
    const Module *m = module_of(
        "model m { d_model 8, vocab 11, norm rmsnorm pre, bias none, embedding tied normalized scale 2\n"
        "encoder { seq <= 5, position learned offset 2, segments 3, layers 2 shared {\n"
        "attention self { heads 2, position relative, sink learned, scale 0.25 }\n"
        "ffn { d_ff 9, activation silu gated, bias down } } }\n"
        "decoder { seq <= 4, final_norm yes, position none, layers 1 {\n"
        "attention self { heads 4, kv_heads 2, qk_norm layernorm, norm rmsnorm plus_one,\n"
        "position relative buckets 6 distance 9 per_layer }\n"
        "attention cross { heads 1, score additive, d_score 3, sink learned, bias all }\n"
        "attention cross { heads 2, head_dim 6, qk_norm rmsnorm weight_per_head, bias q } } }\n"
        "head logits bias }");
    assert_string_equal(listed(&m->weights),
                        "embedding.tokens.weight [11, 8] 0 0.5\n"
                        "encoder.embedding.positions.weight [7, 8] 0 0.5 longer\n"
                        "encoder.embedding.segments.weight [3, 8] 0 0.5\n"
                        "encoder.embedding.norm.weight [8] 1 0.2\n"
                        "encoder.relative.weight [32, 2] 0 1\n"
                        "encoder.layers.0.attention.norm_in.weight [8] 1 0.2\n"
                        "encoder.layers.0.attention.query.weight [8, 8] 0 0.7071\n" /* 1 / (0.25 sqrt(4) sqrt(8)) */
                        "encoder.layers.0.attention.key.weight [8, 8] 0 0.3536\n"
                        "encoder.layers.0.attention.value.weight [8, 8] 0 0.3536\n"
                        "encoder.layers.0.attention.sink.weight [2] 0 1\n"
                        "encoder.layers.0.attention.output.weight [8, 8] 0 0.3536\n"
                        "encoder.layers.0.ffn.norm_in.weight [8] 1 0.2\n"
                        "encoder.layers.0.ffn.gate.weight [9, 8] 0 0.3536\n"
                        "encoder.layers.0.ffn.up.weight [9, 8] 0 0.3536\n"
                        "encoder.layers.0.ffn.down.weight [8, 9] 0 0.3333\n"
                        "encoder.layers.0.ffn.down.bias [8] 0 0.1\n"
                        "encoder.final_norm.weight [8] 1 0.2\n"
                        "decoder.embedding.norm.weight [8] 1 0.2\n"
                        "decoder.layers.0.attention.norm_in.weight [8] 0 0.2\n"
                        "decoder.layers.0.attention.query.weight [8, 8] 0 0.3536\n"
                        "decoder.layers.0.attention.key.weight [4, 8] 0 0.3536\n"
                        "decoder.layers.0.attention.value.weight [4, 8] 0 0.3536\n"
                        "decoder.layers.0.attention.query_norm.weight [2] 1 0.2\n"
                        "decoder.layers.0.attention.query_norm.bias [2] 0 0.1\n"
                        "decoder.layers.0.attention.key_norm.weight [2] 1 0.2\n"
                        "decoder.layers.0.attention.key_norm.bias [2] 0 0.1\n"
                        "decoder.layers.0.attention.relative.weight [6, 4] 0 1\n"
                        "decoder.layers.0.attention.output.weight [8, 8] 0 0.3536\n"
                        "decoder.layers.0.cross_attention.norm_in.weight [8] 1 0.2\n"
                        "decoder.layers.0.cross_attention.sink.weight [1] 0 1\n"
                        "decoder.layers.0.cross_attention.score.query.weight [3, 8] 0 0.3536\n"
                        "decoder.layers.0.cross_attention.score.key.weight [3, 8] 0 0.3536\n"
                        "decoder.layers.0.cross_attention.score.vector.weight [3] 0 0.5774\n"
                        "decoder.layers.0.cross_attention2.norm_in.weight [8] 1 0.2\n"
                        "decoder.layers.0.cross_attention2.query.weight [12, 8] 0 0.3536\n"
                        "decoder.layers.0.cross_attention2.query.bias [12] 0 0.1\n"
                        "decoder.layers.0.cross_attention2.key.weight [12, 8] 0 0.3536\n"
                        "decoder.layers.0.cross_attention2.value.weight [12, 8] 0 0.3536\n"
                        "decoder.layers.0.cross_attention2.query_norm.weight [2, 6] 1 0.2\n"
                        "decoder.layers.0.cross_attention2.key_norm.weight [2, 6] 1 0.2\n"
                        "decoder.layers.0.cross_attention2.output.weight [8, 12] 0 0.2887\n"
                        "decoder.final_norm.weight [8] 1 0.2\n"
                        "head.bias [11] 0 0.1\n");
    int64_t sum = 0;
    for (size_t i = 0; i < m->weights.count; i++) {
        int64_t elements = 0;
        assert_true(shape_elements(m->weights.specs[i].shape, &elements));
        sum += elements;
    }
    assert_true(m->weights.elements == sum);
}

static void pooler_and_classifier(void **state) {
    (void)state;
    const Module *m = module_of(
        "model m { d_model 8, vocab 11, bias none, embedding factor 6, head pool mean pooler classifier 3\n"
        "encoder { seq <= 5, position learned, final_norm no, layers 1 {\n"
        "attention self { heads 2, qk_norm rmsnorm all_heads, norm none }, ffn { d_ff 9, norm layernorm post } } } }");
    assert_string_equal(listed(&m->weights), "encoder.embedding.tokens.weight [11, 6] 0 1\n"
                                             "encoder.embedding.positions.weight [5, 6] 0 0.5 longer\n"
                                             "encoder.embedding.projection.weight [8, 6] 0 0.4082\n"
                                             "encoder.embedding.projection.bias [8] 0 0.1\n"
                                             "encoder.layers.0.attention.query.weight [8, 8] 0 0.3536\n"
                                             "encoder.layers.0.attention.key.weight [8, 8] 0 0.3536\n"
                                             "encoder.layers.0.attention.value.weight [8, 8] 0 0.3536\n"
                                             "encoder.layers.0.attention.query_norm.weight [8] 1 0.2\n"
                                             "encoder.layers.0.attention.key_norm.weight [8] 1 0.2\n"
                                             "encoder.layers.0.attention.output.weight [8, 8] 0 0.3536\n"
                                             "encoder.layers.0.ffn.up.weight [9, 8] 0 0.3536\n"
                                             "encoder.layers.0.ffn.down.weight [8, 9] 0 0.3333\n"
                                             "encoder.layers.0.ffn.norm_out.weight [8] 1 0.2\n"
                                             "encoder.layers.0.ffn.norm_out.bias [8] 0 0.1\n"
                                             "pooler.weight [8, 8] 0 0.3536\n"
                                             "pooler.bias [8] 0 0.1\n"
                                             "classifier.weight [3, 8] 0 0.3536\n"
                                             "classifier.bias [3] 0 0.1\n");
}

static void image(void **state) {
    (void)state;
    const Module *m = module_of("model m { d_model 8, bias none, norm none, head classifier 3 no_bias\n"
                                "encoder { input patches image 4 patch 2 class distillation, layers 1 {\n"
                                "ffn { d_ff 9 } } } }");
    assert_string_equal(listed(&m->weights), "encoder.embedding.patches.weight [8, 12] 0 0.2887\n"
                                             "encoder.embedding.patches.bias [8] 0 0.1\n"
                                             "encoder.embedding.class_token [8] 0 1\n"
                                             "encoder.embedding.distillation_token [8] 0 1\n"
                                             "encoder.layers.0.ffn.up.weight [9, 8] 0 0.3536\n"
                                             "encoder.layers.0.ffn.down.weight [8, 9] 0 0.3333\n"
                                             "classifier.weight [3, 8] 0 0.3536\n");
}

static void attention_alone(void **state) {
    (void)state;
    const Module *m = module_of("model m { queries <= 4, keys <= 5, d_model 6, attention cross { score general,\n"
                                "project none, d_query 4, d_key 5, sink learned, output none } }");
    assert_string_equal(listed(&m->weights), "attention.sink.weight [1] 0 1\n"
                                             "attention.score.weight [4, 5] 0 0.2236\n");
}

/* The head has its own matrix, and every layer its own weights. */
static void own_head(void **state) {
    (void)state;
    const Module *m = module_of("model m { d_model 8, vocab 11, bias none, norm none, head logits bias\n"
                                "decoder { seq <= 5, position none, layers 2 { ffn { d_ff 9 }, ffn { d_ff 10 } } } }");
    assert_string_equal(listed(&m->weights), "decoder.embedding.tokens.weight [11, 8] 0 1\n"
                                             "decoder.layers.0.ffn.up.weight [9, 8] 0 0.3536\n"
                                             "decoder.layers.0.ffn.down.weight [8, 9] 0 0.3333\n"
                                             "decoder.layers.0.ffn2.up.weight [10, 8] 0 0.3536\n"
                                             "decoder.layers.0.ffn2.down.weight [8, 10] 0 0.3162\n"
                                             "decoder.layers.1.ffn.up.weight [9, 8] 0 0.3536\n"
                                             "decoder.layers.1.ffn.down.weight [8, 9] 0 0.3333\n"
                                             "decoder.layers.1.ffn2.up.weight [10, 8] 0 0.3536\n"
                                             "decoder.layers.1.ffn2.down.weight [8, 10] 0 0.3162\n"
                                             "head.weight [11, 8] 0 0.3536\n"
                                             "head.bias [11] 0 0.1\n");
}

/* The entries read one table, and maps as outputs add nothing to it. */
static void graphs_share_a_table(void **state) {
    (void)state;
    static const char text[] =
        "model m { d_model 8, vocab 11, encoder { seq <= 6, layers 2 { attention self { heads 2, position relative },\n"
        "ffn { d_ff 12 } } }, decoder { seq <= 5, position learned, layers 2 { attention self { heads 2 },\n"
        "attention cross { heads 2 } } } }";
    const Module *m = module_of(text);
    Graph *const *graphs = m->entries;
    for (int i = 0; i < ENTRY_COUNT; i++)
        for (int t = 0; t < graphs[i]->n_tensors; t++) {
            const Tensor *tensor = &graphs[i]->tensors[t];
            if (tensor->kind != TENSOR_WEIGHT) continue;
            assert_string_equal(tensor->name, m->weights.specs[tensor->weight].name);
        }
    Model *model = model_of(text);
    model_export_all(model);
    assert_string_equal(listed(&build(arena, model)->weights), listed(&m->weights));
}

/* ------------------------------------------------------------------ finding them */

static void found_by_name(void **state) {
    (void)state;
    enum { COUNT = 10000 };
    WeightTable table = {0};
    assert_null(weight_spec_find(&table, "weight 0"));
    for (int i = 0; i < COUNT; i++) {
        const WeightSpec spec = {.name = arena_printf(arena, "weight %d", i), .shape = {1, {i + 1}}};
        assert_int_equal(weight_table_add(arena, &table, spec), i);
    }
    assert_int_equal(table.count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        const WeightSpec *found = weight_spec_find(&table, arena_printf(arena, "weight %d", i));
        assert_ptr_equal(found, &table.specs[i]);
        assert_int_equal(found->shape.dims[0], i + 1);
    }
    assert_null(weight_spec_find(&table, "weight"));
    assert_null(weight_spec_find(&table, arena_printf(arena, "weight %d", COUNT)));
    REFUSED(weight_table_add(arena, &table, (WeightSpec){.name = "weight 7"}), EXIT_BUG, "`weight 7`");
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(both_stacks), TEST(pooler_and_classifier), TEST(image),
                                       TEST(attention_alone), TEST(own_head), TEST(graphs_share_a_table),
                                       TEST(found_by_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
