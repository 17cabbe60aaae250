/* test_split.c: a pass that splits every linear into two by its columns and joins the results, in every precision: the
 * same bits from the interpreter and from the C, of the best and the last target of this machine and with ATTNC_LONG=1
 * of all. */
#include "tested_targets.h"

#include "../../compiler/rewrite/rewrite.h"

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
};

static void same_outputs(const Sequence *a, const Sequence *b, int n_outputs, const char *how) {
    for (int o = 0; o < n_outputs; o++) {
        int64_t count;
        assert_true(shape_equal(a->outputs[o].shape, b->outputs[o].shape));
        assert_true(shape_elements(a->outputs[o].shape, &count));
        for (int64_t i = 0; i < count; i++)
            if (a->outputs[o].data[i] != b->outputs[o].data[i]) fail_msg("%s: output %d differs at %d", how, o, (int)i);
    }
}

static void splits_have_the_same_bits(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        Compilation whole = compiled(specs[i], STAGE_REWRITE), split = whole;
        split.module = graph_rewrite(arena, whole.module, &split_pass);
        const Graph *forward = whole.module->entries[ENTRY_FORWARD];
        assert_true(split.module->entries[ENTRY_FORWARD]->n_ops > forward->n_ops + 8);
        const Weights *weights = weights_load(arena, whole.model, &whole.module->weights, "random:7", UNUSED_UNSAID);
        const Weights *halves = split_of(whole.module, split.module, weights);
        Sequence one = {0}, two;
        sequence_lengths(forward, &one, 17, 0);
        sequence_fill(arena, forward, &one, &(RandomInputs){.seed = 5, .key = "split"});
        two = one;
        Batch of_one = {.sequences = &one, .count = 1}, of_two = {.sequences = &two, .count = 1};
        batch_interpret(arena, whole.module, weights, ARITHMETIC_FREE, &of_one);
        batch_interpret(arena, split.module, halves, ARITHMETIC_FREE, &of_two);
        same_outputs(&one, &two, forward->n_outputs, specs[i]);
        int n = 0;
        const char *const *targets = targets_to_test(whole.module, ARITHMETIC_FREE, &n);
        const EngineOptions options = {.targets = targets, .n_targets = n, .threads = 1, .level = "-O0"};
        Engine *engine = engine_new(arena, &whole, weights, &options);
        Engine *other = engine_new(arena, &split, halves, &options);
        for (int t = 0; t < n; t++) {
            engine->call.target = other->call.target = targets[t];
            engine_init(engine);
            engine_init(other);
            engine_run(arena, engine, &of_one);
            engine_run(arena, other, &of_two);
            same_outputs(&one, &two, forward->n_outputs, arena_printf(arena, "%s: %s", targets[t], specs[i]));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(splits_have_the_same_bits)};
    return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
