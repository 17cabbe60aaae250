/* test_small.c: model_small over every spec of the tree, and what it must keep. Run at the root of the repository. */
#include "fixture.h"

#include <glob.h>
#include <math.h>
#include <stdlib.h>

static Model *model_load(const char *path) { return compiled_source(source_read(arena, path), STAGE_MODEL).model; }

/* ------------------------------------------------------------------ running one */

static InputArray input_for(const Graph *graph, const GraphInput *input, const int64_t *symbols) {
    const Tensor *t = &graph->tensors[input->tensor];
    int64_t count = 1, rows = 0;
    for (int d = 0; d < t->rank; d++) {
        int64_t n = t->dims[d].symbol ? symbols[t->dims[d].symbol - 1] : t->dims[d].n;
        if (d == 0) rows = n;
        count *= n;
    }
    InputArray array = {input->kind->role, t->dtype, rows, NULL};
    if (t->dtype == DTYPE_I64) {
        int64_t *ids = arena_array(arena, (size_t)count, sizeof *ids), limit = graph_table_rows(graph, input);
        if (input->kind->role == IN_prefix_length) limit = 2;
        for (int64_t i = 0; i < count; i++) ids[i] = (i * 7 + 1) % limit;
        array.data = ids;
    } else if (t->dtype == DTYPE_U8) {
        uint8_t *mask = arena_array(arena, (size_t)count, 1);
        for (int64_t i = 0; i < count; i++) mask[i] = i % 3 != 0;
        array.data = mask;
    } else {
        float *numbers = arena_array(arena, (size_t)count, sizeof *numbers);
        random_normal(9, input->kind->name, 0, 1, count, numbers);
        array.data = numbers;
    }
    return array;
}

static void interpret_finite(const Module *module, const Weights *weights, int64_t length) {
    const Graph *graph = module->entries[ENTRY_FORWARD];
    int64_t symbols[4] = {0};
    for (int s = 0; s < graph->n_symbols; s++)
        symbols[s] = length < graph->symbols[s].bound ? length : graph->symbols[s].bound;
    InputArray inputs[MAX_GRAPH_INPUTS];
    for (int i = 0; i < graph->n_inputs; i++)
        inputs[i] = input_for(graph, &graph->inputs[i], symbols);
    Interpretation *result = interpret(arena, module, graph, weights, inputs, graph->n_inputs, symbols);
    assert_true(result->n_outputs > 0);
    for (int o = 0; o < result->n_outputs; o++) {
        int64_t count = 0;
        assert_true(shape_elements(result->outputs[o].shape, &count));
        double most = 0;
        for (int64_t i = 0; i < count; i++) {
            double x = result->outputs[o].data[i];
            if (!isfinite(x))
                fail_msg("%s: %s[%lld] is %g at length %lld", module->model->name, output_name(result->outputs[o].role),
                         (long long)i, x, (long long)length);
            most = fmax(most, fabs(x));
        }
        assert_true(most > 0);
    }
}

/* What resolve() promises of widths. */
static void check_promises(const Model *small, const Stack *stack) {
    int64_t width = stack->d_model;
    for (int64_t l = 0; l < stack->n_layers; l++) {
        assert_true(stack->layers[l].weights_of <= l);
        for (int i = 0; i < stack->layers[l].count; i++) {
            const Sublayer *s = &stack->layers[l].sublayers[i];
            assert_int_equal(width, stack->d_model);
            if (s->kind != SUBLAYER_ATTENTION) continue;
            const Attention *a = &s->attention;
            width = a->output_width;
            assert_int_equal(a->query_width, stack->d_model);
            assert_int_equal(a->key_width, a->cross ? small->encoder->hidden_width : stack->d_model);
            assert_int_equal(a->heads % a->kv_heads, 0);
            if (a->position.kind == POSITION_ROPE) {
                assert_true(a->position.rope_width >= 2 && a->position.rope_width <= a->head_dim);
                assert_int_equal(a->position.rope_width % 2, 0);
            }
            if (a->position.kind == POSITION_RELATIVE)
                assert_true(a->position.distance > a->position.buckets / (a->position.bidirectional ? 4 : 2));
            for (int64_t h = 0; a->exported && h < a->n_exported_heads; h++)
                assert_true(a->exported_heads[h] < a->heads);
        }
    }
    assert_int_equal(width, stack->hidden_width);
    assert_true(stack->vocab <= 97 && stack->seq.n <= 48);
    if (stack->position.kind == POSITION_SINUSOIDAL) assert_int_equal(stack->embedding_width % 2, 0);
}

static void check_one(const Model *model) {
    Model *small = model_small(arena, model);
    if (small->encoder) check_promises(small, small->encoder);
    if (small->decoder) check_promises(small, small->decoder);
    Module *module = build(arena, small);
    Weights *weights = weights_load(arena, small, &module->weights, "random:1", false);
    const int64_t lengths[] = {1, 17, 48};
    double start = seconds_now();
    for (int i = 0; i < 3; i++) interpret_finite(module, weights, lengths[i]);
    double took = seconds_now() - start;
    if (took > 2 && !getenv("ATTNC_SLOW")) print_message("# %s took %.2f s\n", model->name, took);
}

static void every_spec(const char *pattern) {
    glob_t found;
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        check_one(model_load(found.gl_pathv[i]));
        end(NULL);
        begin(NULL);
    }
    globfree(&found);
}

static void published_specs(void **state) {
    (void)state;
    every_spec("specs/*.attn");
}

static void family_specs(void **state) {
    (void)state;
    every_spec("tests/families/*.attn");
}

/* ------------------------------------------------------------------ what it keeps */

static void sizes(void **state) {
    (void)state;
    Model *small = model_small(arena, model_load("specs/vaswani_base.attn"));
    assert_int_equal(small->encoder->n_layers, 4);
    assert_int_equal(small->encoder->seq.n, 48);
    assert_int_equal(small->d_model, 64); /* 8 heads of 8 */
    assert_int_equal(small->encoder->layers[0].sublayers[0].attention.head_dim, 8);
    assert_true(small->encoder->layers[0].sublayers[0].attention.scale == 1 / sqrt(8.0));
    assert_int_equal(small->encoder->layers[0].sublayers[1].ffn.d_ff, 256);
    assert_true(small->encoder->embedding_scale == 8);
    assert_int_equal(small->encoder->vocab, 94);
    assert_int_equal(small->n_source_names, 0);
}

static void each_stack_its_width(void **state) {
    (void)state;
    const Model *model = model_load("tests/differential/two_widths.attn");
    check_one(model);
    Model *small = model_small(arena, model);
    assert_int_equal(small->encoder->d_model, 20);
    assert_int_equal(small->encoder->embedding_width, 20);
    assert_int_equal(small->decoder->d_model, 24);
    assert_int_equal(small->d_model, 24);
}

static void odd_stays_odd(void **state) {
    (void)state;
    Model *small = model_small(
        arena,
        model_of("model m { d_model 231, vocab 30523, start 30000, end 30001 30002, pad 30003, encoder { seq <= 301\n"
                 "layers 9 { attention self { heads 3, head_dim 77, value_dim 33 }, ffn { d_ff 1001 } } } }"));
    const Attention *a = &small->encoder->layers[0].sublayers[0].attention;
    assert_int_equal(a->head_dim, 15);
    assert_int_equal(a->value_dim % 2, 1);
    assert_true(a->value_dim < a->head_dim);
    assert_int_equal(small->d_model, 45);
    assert_int_equal(small->encoder->seq.n, 37);
    assert_int_equal(small->encoder->vocab, 97);
    assert_int_equal(small->encoder->layers[0].sublayers[1].ffn.d_ff % 2, 1);
    assert_int_equal(small->start, 96);
    assert_int_equal(small->pad, 95);
    assert_int_equal(small->end[0], 94);
    assert_int_equal(small->end[1], 93);
    check_one(small);
}

/* A small model is left as it is, but for the names of another file. */
static void small_stays(void **state) {
    (void)state;
    Model *model = model_of("model m { d_model 12, vocab 50, encoder { seq <= 24, layers 3 { attention self { heads 3, "
                            "position rope partial 0.5 }\n"
                            "ffn { d_ff 31 } } }, weights { \"encoder.final_norm.*\" from \"x.*\" } }");
    Model *small = model_small(arena, model);
    assert_int_equal(small->hash, model->hash);
    assert_ptr_not_equal(small->encoder, model->encoder);
    assert_int_equal(small->n_source_names, 0);
}

static void patterns_stay_whole(void **state) {
    (void)state;
#define LAYER(window) "layer { attention self { heads 2, window " window " }, ffn { d_ff 8 } }\n"
#define MODEL(layers) "model m { d_model 8, vocab 5, encoder { seq <= 512\n layers " layers " } }"
    assert_int_equal(model_small(arena, model_of(MODEL("26 {" LAYER("9") LAYER("none") "}")))->encoder->n_layers, 4);
    assert_int_equal(
        model_small(arena, model_of(MODEL("26 {" LAYER("9") LAYER("9") LAYER("none") "}")))->encoder->n_layers, 3);
    assert_int_equal(model_small(arena, model_of(MODEL("26 {" LAYER("9") LAYER("9") LAYER("9") LAYER("9") LAYER("9")
                                                           LAYER("none") "}")))
                         ->encoder->n_layers,
                     6);
    assert_int_equal(model_small(arena, model_of(MODEL("3 {" LAYER("9") LAYER("none") "}")))->encoder->n_layers, 3);
    Model *shared = model_small(arena, model_of(MODEL("12 shared {" LAYER("300") LAYER("4096") "}")));
    assert_int_equal(shared->encoder->n_layers, 4);
    assert_int_equal(shared->encoder->layers[3].weights_of, 1);
    assert_int_equal(shared->encoder->layers[0].sublayers[0].attention.window, 28);
    assert_int_equal(shared->encoder->layers[1].sublayers[0].attention.window, 4096);
}

static void exports_stay(void **state) {
    (void)state;
    Model *model =
        model_of("model m { d_model 256, vocab 5, encoder { seq <= 512, export attention layers 9 heads 1 3\n"
                 "layers 12 { attention self { heads 4 }, ffn { d_ff 8 } } } }");
    const Model *small = model_small(arena, model);
    const Attention *last = &small->encoder->layers[3].sublayers[0].attention;
    assert_false(small->encoder->layers[0].sublayers[0].attention.exported);
    assert_true(last->exported);
    assert_int_equal(last->n_exported_heads, 2);
    assert_int_equal(last->exported_heads[1], 3);
}

static void positions_shrink(void **state) {
    (void)state;
    Model *small = model_small(arena, model_of("model m { d_model 64, vocab 5, encoder { seq <= 512, layers 1 { "
                                               "attention self { heads 1, position relative } } } }"));
    assert_int_equal(small->encoder->relative.distance, 17);
    assert_int_equal(small->encoder->layers[0].sublayers[0].attention.position.distance, 17);
    small = model_small(
        arena,
        model_of(
            "model m { d_model 96, vocab 5, decoder { seq <= 4096, layers 1 { attention self { heads 1, mask causal\n"
            "position rope partial 0.125 longrope factor 2 original 2048 short 1 2 3 4 5 6 long 2 3 4 5 6 7 } } } }"));
    const Position *p = &small->decoder->layers[0].sublayers[0].attention.position;
    assert_int_equal(p->rope_width, 2);
    assert_int_equal(p->original, 24);
    assert_true(p->long_factors[0] == 2);
    check_one(small);
}

static void images_and_alone(void **state) {
    (void)state;
    Model *small = model_small(arena, model_load("specs/vit_base.attn"));
    assert_int_equal(small->encoder->seq.n, 37);
    assert_int_equal(small->encoder->image_height, 24);
    small = model_small(arena, model_of("model m { d_model 20, encoder { input patches image 70 width 28 patch 7 class "
                                        "distillation, layers 1 { attention self { heads 1 } } } }"));
    assert_int_equal(small->encoder->patch, 3);
    assert_int_equal(small->encoder->image_width, 12);
    assert_int_equal(small->encoder->seq.n, 6 * 4 + 2);
    check_one(small);
    small = model_small(arena, model_load("specs/bahdanau.attn"));
    const Attention *a = &small->alone->attention;
    assert_true(a->query_width != a->key_width && a->head_dim == a->query_width && a->value_dim == a->value_width);
    check_one(model_of("model m { attention self { heads 3, head_dim 100, value_dim 101, d_query 2001, queries <= 200, "
                       "bias all, mask causal } }"));
    check_one(model_of("model m { attention cross { score dot, project none, d_query 77, d_key 77, d_value 900, "
                       "queries <= 200, keys = 100, mask given } }"));
    check_one(model_of("model m { d_model 999, decoder { seq = 5, input features, layers 7 { ffn { d_ff 5000 } } } }"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(published_specs), TEST(family_specs),     TEST(sizes),           TEST(each_stack_its_width),
        TEST(odd_stays_odd),   TEST(small_stays),      TEST(patterns_stay_whole),
        TEST(exports_stay),    TEST(positions_shrink), TEST(images_and_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
