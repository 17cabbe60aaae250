/* test_split.c: a pass that splits every linear of every entry into two by its columns and joins the results, in every
 * precision. The interpreter and the C give the bits of the whole, and the C is right, with states too. */
#include "rewritten.h"

/* ------------------------------------------------------------------ the pass */

/* Of each weight of the old table: the first of the two weights that hold the halves of its rows, or 0. */
typedef struct Split {
    int *halves;
} Split;

static int first_half(int64_t n) { return (int)((n + 1) / 2); }

static bool is_split(const Graph *g, const Op *op) {
    const Tensor *matrix = &g->tensors[op->kind == OP_linear ? op->inputs[1] : op->result];
    return op->kind == OP_linear && matrix->kind == TENSOR_WEIGHT && matrix->dims[0].n > 1;
}

/* Adds the halves of a weight, unless an op before has. */
static void split_weight(Rewrite *r, int weight) {
    Split *split = r->with;
    if (split->halves[weight]) return;
    for (int half = 0; half < 2; half++) {
        WeightSpec spec = r->module->weights.specs[weight];
        const int64_t rows = spec.shape.dims[0], first = first_half(rows);
        spec.name = arena_printf(r->arena, "%s.%d", spec.name, half);
        spec.site.part = arena_printf(r->arena, "%s_%d", spec.site.part, half);
        spec.shape.dims[0] = half ? rows - first : first;
        const int index = weight_table_add(r->arena, &r->module->weights, spec);
        if (!half) split->halves[weight] = index;
    }
}

static void split_weights(Rewrite *r) {
    Split *split = arena_alloc(r->arena, sizeof *split);
    split->halves = arena_array(r->arena, r->module->weights.count, sizeof *split->halves);
    r->with = split;
    for (int e = 0; e < ENTRY_COUNT; e++) {
        const Graph *g = r->old->entries[e];
        for (int o = 0; g && o < g->n_ops; o++)
            for (int n = 1; is_split(g, &g->ops[o]) && n < g->ops[o].n_inputs; n++)
                split_weight(r, g->tensors[g->ops[o].inputs[n]].weight);
    }
}

static int split_op(Rewrite *r, const Op *op) {
    if (!is_split(r->from, op)) return rewrite_copy(r, op);
    const Split *split = r->with;
    const Tensor whole = r->from->tensors[op->result];
    int parts[2], *inputs = rewrite_inputs(r, op);
    for (int half = 0; half < 2; half++) {
        Tensor result = whole;
        result.name = arena_printf(r->arena, "%s.%d", whole.name, half);
        result.site.part = arena_printf(r->arena, "%s_%d", whole.site.part, half);
        for (int n = 1; n < op->n_inputs; n++) {
            const int weight = split->halves[r->from->tensors[op->inputs[n]].weight] + half;
            inputs[n] = graph_weight(r->arena, r->to, &r->module->weights, weight);
        }
        result.dims[1].n = r->to->tensors[inputs[1]].dims[0].n;
        parts[half] = rewrite_add(r, op, OP_linear, op->a, result, op->n_inputs, inputs);
    }
    return rewrite_add(r, op, OP_join, (OpAttributes){.heads = 1}, whole, 2, parts);
}

static const RewritePass split_pass = {.name = "split", .weights = split_weights, .op = split_op};

/* The weights of the split module: the weights of the whole one, and the halves of their rows. */
static Weights *split_of(const Module *whole, const Module *split, const Weights *weights) {
    Weights *out = weights_new(arena, &split->weights);
    for (size_t i = 0; i < split->weights.count; i++) {
        const WeightSpec *spec = &split->weights.specs[i];
        size_t from = i;
        int64_t row = 0;
        if (i >= whole->weights.count) {
            const size_t length = strlen(spec->name) - 2;
            from = 0;
            while (strncmp(whole->weights.specs[from].name, spec->name, length) != 0 ||
                   whole->weights.specs[from].name[length]) from++;
            if (spec->name[length + 1] == '1') row = first_half(whole->weights.specs[from].shape.dims[0]);
        }
        const Scaling *scaling = &weights->scaling[from];
        const int64_t columns = spec->shape.rank > 1 ? spec->shape.dims[1] : 1, groups = weight_groups(spec);
        out->data[i] = weights->data[from] + row * columns;
        out->scaling[i].scales = scaling->scales ? scaling->scales + row * groups : NULL;
        out->scaling[i].offsets = scaling->offsets ? scaling->offsets + row * groups : NULL;
        out->scaling[i].vector = scaling->vector;
    }
    return out;
}

/* ------------------------------------------------------------------ the same bits */

#define ENCODER(precision)                                                                                          \
    "model m { d_model 24, vocab 19, head logits, precision " precision ", norm layernorm post\n"                    \
    "encoder { seq <= 20, position learned, layers 1 {\n"                                                             \
    "attention self { heads 3, bias all }, ffn { d_ff 37, activation gelu } } } }"
#define DECODER(precision)                                                                                          \
    "model m { d_model 32, vocab 19, head logits, precision " precision ", norm rmsnorm pre\n"                       \
    "decoder { seq <= 20, position rope, final_norm yes, layers 1 {\n"                                                \
    "attention self { heads 4, kv_heads 2 }, ffn { d_ff 48, activation silu gated } } } }"

static const char *const specs[] = {
    ENCODER("weights f32"), ENCODER("weights int8 activations int8"), ENCODER("weights bf16"),
    DECODER("weights f32"), DECODER("weights int8 activations int8 smooth"), DECODER("weights int4"),
    DECODER("weights bf16 activations bf16 attention bf16"),
    "model m { d_model 24, vocab 19, head logits, norm layernorm pre\n"
    "encoder { seq <= 20, position learned, layers 1 { attention self { heads 3, bias all }, ffn { d_ff 37 } } }\n"
    "decoder { seq <= 20, position learned, layers 1 {\n"
    "attention self { heads 3 }, attention cross { heads 3, bias all }, ffn { d_ff 30, activation gelu } } } }",
};

/* The bits of the interpreter's outputs. */
static uint64_t interpreted_bits(const Module *module, const Weights *weights, const Sequence *of_inputs) {
    Sequence one = *of_inputs;
    Batch batch = {.sequences = &one, .count = 1};
    uint64_t bits = 0;
    batch_interpret(arena, module, weights, ARITHMETIC_FREE, &batch);
    for (int o = 0; o < module->entries[ENTRY_FORWARD]->n_outputs; o++) {
        int64_t count = 0;
        assert_true(shape_elements(one.outputs[o].shape, &count));
        bits = hash_bytes(bits, one.outputs[o].data, (size_t)count * sizeof *one.outputs[o].data);
    }
    return bits;
}

static void splits_have_the_same_bits(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        Compilation whole = compiled(specs[i], STAGE_REWRITE), split = whole;
        split.module = graph_rewrite(arena, whole.module, &split_pass, NULL);
        for (int e = 0; e < ENTRY_COUNT; e++) {
            const Graph *g = whole.module->entries[e];
            assert_true(!g || split.module->entries[e]->n_ops > g->n_ops);
        }
        const Weights *weights = weights_load(arena, whole.model, &whole.module->weights, "random:7", UNUSED_UNSAID);
        const Weights *halves = split_of(whole.module, split.module, weights);
        Sequence one = {0};
        sequence_lengths(whole.module->entries[ENTRY_FORWARD], &one, 17, 9);
        sequence_fill(arena, whole.module->entries[ENTRY_FORWARD], &one, &(RandomInputs){.seed = 5, .key = "split"});
        assert_true(interpreted_bits(whole.module, weights, &one) == interpreted_bits(split.module, halves, &one));
        uint64_t bits[MOST_TARGETS] = {0}, bits_of_halves[MOST_TARGETS] = {0};
        check_rewritten(&whole, weights, arena_printf(arena, "the whole of %s", specs[i]), bits);
        check_rewritten(&split, halves, arena_printf(arena, "the halves of %s", specs[i]), bits_of_halves);
        assert_true(bits[0] != 0);
        for (int t = 0; t < MOST_TARGETS; t++)
            if (bits[t] != bits_of_halves[t]) fail_msg("target %d gives other bits: %s", t, specs[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(splits_have_the_same_bits)};
    return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
