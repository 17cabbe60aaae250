/* test_plan.c: plans that break what a pass promises are told, with the step and the operand. */
#include "fixture.h"

static Program *program;
static Plan *plan;

/* A decoder: it has every kind of slot. */
static int begin_program(void **state) {
    static const char text[] = "model m { d_model 32, vocab 40, decoder { seq <= 64, position none, layers 2 { "
                               "attention self { heads 4, kv_heads 2, position rope }, ffn { d_ff 48 } } } }";
    begin(state);
    program = program_of(text);
    plan = program->entries[ENTRY_DECODE];
    return 0;
}

static void expect_fault(const char *text) { expect_part(FAULT(program_verify(program)), text); }

static Step *step_of(StepKind kind) {
    for (int i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].kind == kind) return &plan->steps[i];
    fail_msg("no step of kind %s", step_kind_name(kind));
    return NULL;
}

static Buffer *buffer_named(const char *name) {
    for (int i = 0; i < plan->n_buffers; i++)
        if (strcmp(plan->buffers[i].slot.name, name) == 0) return &plan->buffers[i];
    fail_msg("no buffer %s", name);
    return NULL;
}

/* `place` holds `wrong` while the plan is verified. */
#define EXPECT(place, wrong, text) \
    do { \
        __typeof__(place) good = place; \
        place = wrong; \
        expect_fault(text); \
        place = good; \
    } while (0)

static void good_plans(void **state) {
    (void)state;
    expect_fault("none");
}

static void operands(void **state) {
    (void)state;
    Step *gemm = step_of(STEP_GEMM);
    Step *last = &plan->steps[plan->n_steps - 1];
    EXPECT(gemm->gemm.x.buffer, plan->n_buffers, "`layer0_attention_query_key_value` of decode: `x` is no buffer");
    EXPECT(gemm->gemm.x.column, 16, "`x` passes the end of its row");
    EXPECT(gemm->gemm.x, last->out, "`x` is used outside of its life");
    EXPECT(gemm->out.column, 16, "`out` passes the end of its row");
    EXPECT(step_of(STEP_EMBED)->out.buffer, NO_BUFFER, "`out` is no buffer");
    EXPECT(plan->buffers[gemm->out.buffer].slot.layout.dtype, DTYPE_BF16, "`out` is not rows of f32");
    EXPECT(plan->buffers[gemm->out.buffer].slot.layout.panel, 16, "is not rows of f32");
    EXPECT(plan->buffers[step_of(STEP_EMBED)->out.buffer].slot.space, SPACE_INPUT, "`out` is an input");
    EXPECT(plan->buffers[gemm->gemm.x.buffer].slot.space, SPACE_OUTPUT, "`x` is an output");
}

static void reads_before_writes(void **state) {
    (void)state;
    Step first = plan->steps[0];
    plan->steps[0] = plan->steps[1];
    plan->steps[1] = first;
    plan->buffers[plan->steps[0].out.buffer].first = 0;
    expect_fault("is read before it is written");
    plan->steps[1] = plan->steps[0];
    plan->steps[0] = first;
    plan->buffers[plan->steps[1].out.buffer].first = 1;
    expect_fault("none");
}

static void weights_and_caches(void **state) {
    (void)state;
    Step *gemm = step_of(STEP_GEMM), *attention = step_of(STEP_ATTENTION);
    EXPECT(gemm->gemm.weight, program->n_packed, "`weight` is no packed tensor");
    EXPECT(gemm->gemm.weight, program->n_packed - gemm->gemm.parts + 1, "`weight` is no packed tensor");
    EXPECT(gemm->gemm.bias, program->n_packed, "`bias` is no packed tensor");
    EXPECT(gemm->gemm.k, 31, "`weight` has other columns than x");
    EXPECT(gemm->n, gemm->n - 16, "`out` has other columns than the weights have rows");
    EXPECT(program->packed[gemm->gemm.weight].slot.layout, LAYOUT_ROWS, "`weight` is not in panels");
    EXPECT(attention->attention.key_cache, program->n_caches, "`key` is no cache");
    EXPECT(attention->attention.value_cache, NO_CACHE, "`value` is neither rows nor a cache");
    EXPECT(attention->attention.kv_heads, 3, "`kv_heads` does not divide the heads");
    EXPECT(attention->attention.rounds, true, "`rounds` needs rows of bf16, or queries and keys of bytes");
    EXPECT(step_of(STEP_STORE)->store.cache, NO_CACHE, "`cache` is no cache");
    EXPECT(step_of(STEP_ROPE)->rope.sin, NO_PACKED, "`sin` is no packed tensor");
    EXPECT(step_of(STEP_EMBED)->embed.table, NO_PACKED, "`table` is no packed tensor");
    EXPECT(step_of(STEP_NORM)->norm.weight, NO_PACKED, "`weight` is no packed tensor");
}

/* A step that stores keys reads its rows in f32 and writes them in the type of the cache. */
static void bytes_of_a_store(void **state) {
    (void)state;
    Step *store = step_of(STEP_STORE);
    const CallRows rows = call_rows(plan, 3);
    const double numbers = 3 * (double)store->n;
    Dtype *kept = &program->caches[store->store.cache].slot.layout.dtype, good = *kept;
    assert_true(step_bytes(plan, store, &rows) == numbers * 8);
    *kept = DTYPE_F16;
    assert_true(step_bytes(plan, store, &rows) == numbers * 6);
    *kept = good;
}

static void slots(void **state) {
    (void)state;
    Buffer *b = buffer_named("layer0_attention_query_key_value"), *x = NULL;
    Slot *weight = &program->packed[1].slot, *cache = &program->caches[1].slot;
    for (int i = 0; i < plan->n_buffers && !x; i++)
        if (&plan->buffers[i] != b && plan->buffers[i].first <= b->first && plan->buffers[i].last >= b->first &&
            plan->buffers[i].slot.space == SPACE_WORKSPACE)
            x = &plan->buffers[i];
    assert_non_null(x);
    EXPECT(b->slot.offset, b->slot.offset + 4, "`layer0_attention_query_key_value` is not aligned");
    EXPECT(b->slot.offset, x->slot.offset, "while both are in use");
    EXPECT(b->slot.bytes, 64, "has too few bytes");
    EXPECT(plan->workspace_bytes, plan->workspace_bytes - 64, "passes the end of its memory");
    EXPECT(weight->offset, 0, "lies over the tensor in front of it");
    EXPECT(program->weight_bytes, weight->offset, "passes the end of its memory");
    EXPECT(cache->offset, 0, "lies over the cache in front of it");
    EXPECT(program->state_bytes, cache->offset, "passes the end of its memory");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(good_plans), cmocka_unit_test(operands),
                                       cmocka_unit_test(reads_before_writes), cmocka_unit_test(weights_and_caches),
                                       cmocka_unit_test(slots), cmocka_unit_test(bytes_of_a_store)};
    return cmocka_run_group_tests(tests, begin_program, end);
}
