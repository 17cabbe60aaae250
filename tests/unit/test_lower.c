/* test_lower.c: which kernel, tile and vectors a step gets on a target, from plans of small specs and from the targets'
 * tables; and that calls which break their kernel's row are told. */
#include "../../compiler/lower/lower.h"
#include "fixture.h"

static Schedule *schedule_of(const char *text, const char *target, bool loops) {
    return lower(arena, program_of(text), isa_load(arena, target), loops);
}

static const KernelCall *call_of(const PlanSchedule *plan, const char *step) {
    for (int i = 0; i < plan->plan->n_steps; i++)
        if (strcmp(plan->steps[i].step->name, step) == 0) return plan->steps[i].call;
    fail_msg("no step %s", step);
    return NULL;
}

/* The value that a template sees: of two constants of one name the later one. */
static int64_t constant(const KernelCall *call, const char *name) {
    for (int i = call->n_constants - 1; i >= 0; i--)
        if (strcmp(call->constants[i].name, name) == 0) return call->constants[i].integer;
    fail_msg("no constant %s", name);
    return -1;
}

static const Argument *argument(const KernelCall *call, const char *name) {
    const KernelRow *row = &kernel_rows[call->kernel];
    for (int i = 0; i < row->n_parameters; i++)
        if (row->parameters[i].name && strcmp(row->parameters[i].name, name) == 0) return &call->arguments[i];
    fail_msg("no parameter %s", name);
    return NULL;
}

#define ENCODER(seq, d, heads) \
    "model m { d_model " d ", vocab 40, encoder { seq " seq ", position none, layers 2 { " \
    "attention self { heads " heads " }, ffn { d_ff 64 } } } }"

/* Accumulators, the weights of a row of panels and a broadcast fill the registers. */
static void tiles_of_products(void **state) {
    (void)state;
    const struct { const char *target; int64_t height, panels;
    } cases[] = {{"avx512", 8, 3}, {"avx2", 6, 1}, {"neon", 6, 1}, {"sve256", 6, 2}, {"rvv512", 8, 3}, {"sse2", 2, 1},
                 {"scalar", 1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Schedule *s = schedule_of(ENCODER("<= 64", "48", "3"), cases[i].target, true);
        const KernelCall *call = call_of(s->entries[ENTRY_FORWARD], "layer1_ffn_up");
        assert_int_equal(call->kernel, KERNEL_gemm);
        assert_int_equal(constant(call, "H_MOST"), cases[i].height);
        assert_int_equal(constant(call, "P_MOST"), cases[i].panels);
        assert_int_equal(constant(call, "K"), 48);
        assert_int_equal(constant(call, "N"), 64);
    }
}

/* Few rows of one vector have a sum of even and one of odd k. */
static void two_sums_of_few_rows(void **state) {
    (void)state;
    const struct { const char *text, *target; int64_t chains;
    } cases[] = {{ENCODER("= 5", "8", "2"), "avx512", 2},  {ENCODER("= 5", "8", "2"), "avx2", 2},
                 {ENCODER("= 5", "8", "2"), "sse2", 1},    {ENCODER("= 5", "8", "2"), "scalar", 1},
                 {ENCODER("= 9", "8", "2"), "avx512", 1},  {ENCODER("<= 5", "8", "2"), "avx512", 1},
                 {ENCODER("= 5", "24", "2"), "avx512", 1}, {ENCODER("= 5", "6", "2"), "avx512", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Schedule *s = schedule_of(cases[i].text, cases[i].target, true);
        const KernelCall *call = call_of(s->entries[ENTRY_FORWARD], "layer1_attention_output");
        assert_int_equal(constant(call, "CHAINS"), cases[i].chains);
    }
}

/* Eight rows of codes share a panel of groups where one instruction adds products of bytes. */
static void tiles_of_groups(void **state) {
    (void)state;
    const struct { const char *target; int64_t height, panels;
    } cases[] = {{"avx512vnni", 8, 1}, {"avx512", 6, 2}, {"avxvnni", 3, 1}, {"avx2", 6, 1}, {"neondot", 3, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Schedule *s = schedule_of("model m { d_model 64, vocab 40, precision weights int4 32 activations int8, "
                                  "encoder { seq <= 8, position none, layers 1 { attention self { heads 2 }, "
                                  "ffn { d_ff 64 } } } }",
                                  cases[i].target, true);
        const KernelCall *call = call_of(s->entries[ENTRY_FORWARD], "layer0_ffn_up");
        assert_int_equal(constant(call, "H_MOST"), cases[i].height);
        assert_int_equal(constant(call, "P_MOST"), cases[i].panels);
    }
}

/* Products with few columns, and norms of short rows, use vectors of half the lanes. */
static void half_vectors(void **state) {
    (void)state;
    Schedule *s = schedule_of(ENCODER("<= 8", "8", "2"), "avx512", true);
    assert_string_equal(call_of(s->entries[ENTRY_FORWARD], "layer0_attention_norm_in")->v->name, "avx512_half");
    assert_string_equal(call_of(s->entries[ENTRY_FORWARD], "layer0_attention_output")->v->name, "avx512_half");
    assert_string_equal(call_of(s->entries[ENTRY_FORWARD], "layer0_ffn_up")->v->name, "avx512");
    Schedule *wide = schedule_of(ENCODER("<= 8", "16", "2"), "avx512", true);
    assert_string_equal(call_of(wide->entries[ENTRY_FORWARD], "layer0_attention_norm_in")->v->name, "avx512");
}

/* The first row of kernels.def that applies. */
static void kernels_of_attention(void **state) {
    (void)state;
    const char *step = "layer0_attention_attended", *exact = ENCODER("= 8", "16", "2");
    Schedule *loops = schedule_of(exact, "avx512", true);
    assert_int_equal(call_of(loops->entries[ENTRY_FORWARD], step)->kernel, KERNEL_attention);
    assert_null(loops->entries[ENTRY_FORWARD]->single);
    Schedule *automatic = schedule_of(exact, "avx512", false);
    assert_int_equal(call_of(automatic->entries[ENTRY_FORWARD], step)->kernel, KERNEL_attention);
    assert_non_null(automatic->entries[ENTRY_FORWARD]->single);
    assert_true(automatic->entries[ENTRY_FORWARD]->single->unrolled);
    const KernelCall *call = call_of(automatic->entries[ENTRY_FORWARD]->single, step);
    assert_int_equal(call->kernel, KERNEL_attention_register_resident);
    Schedule *full = schedule_of("model m { d_model 16, vocab 40, unroll full, encoder { seq = 40, layers 1 { "
                                 "attention self { heads 2, mask causal } } } }", "avx2", false);
    assert_int_equal(call_of(full->entries[ENTRY_FORWARD], step)->kernel, KERNEL_attention_full);
    assert_true(full->entries[ENTRY_FORWARD]->unrolled);
    assert_false(argument(call_of(full->entries[ENTRY_FORWARD], "layer0_attention_output"), "next")->given);
    assert_false(argument(call_of(full->entries[ENTRY_FORWARD], "layer0_attention_output"), "sums")->given);
}

/* Weights beyond a second-level cache are prefetched: each product names the next, the last one the first. */
static void weights_are_prefetched(void **state) {
    (void)state;
    Schedule *s = schedule_of("model m { d_model 512, vocab 40, encoder { seq <= 8, position none, layers 1 { "
                              "attention self { heads 8 }, ffn { d_ff 2048 } } } }", "avx2", true);
    const KernelCall *up = call_of(s->entries[ENTRY_FORWARD], "layer0_ffn_up"),
                     *down = call_of(s->entries[ENTRY_FORWARD], "layer0_ffn_down"),
                     *first = call_of(s->entries[ENTRY_FORWARD], "layer0_attention_query_key_value");
    assert_int_equal(constant(up, "stream"), 1);
    assert_int_equal(argument(up, "next")->packed, argument(down, "w")->packed);
    assert_int_equal(argument(down, "next")->packed, argument(first, "w")->packed);
    Schedule *large = schedule_of("model m { d_model 1024, vocab 40, encoder { seq <= 8, position none, layers 1 { "
                                  "attention self { heads 8 }, ffn { d_ff 4096 } } } }", "avx2", true);
    assert_int_equal(constant(call_of(large->entries[ENTRY_FORWARD], "layer0_ffn_up"), "stream"), 2);
    Schedule *small = schedule_of(ENCODER("<= 64", "48", "3"), "avx2", true);
    assert_int_equal(constant(call_of(small->entries[ENTRY_FORWARD], "layer0_ffn_up"), "stream"), 0);
    assert_false(argument(call_of(small->entries[ENTRY_FORWARD], "layer0_ffn_up"), "next")->given);
}

/* A scale in front of a sum becomes that of the sum where nothing stands between them. */
static void scales_are_folded(void **state) {
    (void)state;
    Program *program = program_of(ENCODER("<= 8", "16", "2"));
    Step *output = NULL;
    for (int i = 0; i < program->entries[ENTRY_FORWARD]->n_steps && !output; i++)
        if (strcmp(program->entries[ENTRY_FORWARD]->steps[i].name, "layer0_attention_output") == 0)
            output = &program->entries[ENTRY_FORWARD]->steps[i];
    assert_non_null(output);
    output->gemm.scale = 0.5;
    output->gemm.residual_scale = 4;
    Schedule *s = lower(arena, program, isa_load(arena, "scalar"), true);
    assert_int_equal(constant(call_of(s->entries[ENTRY_FORWARD], output->name), "has_scale"), 0);
    const KernelCall *call = call_of(s->entries[ENTRY_FORWARD], output->name);
    float residual_scale = 0;
    for (int i = 0; i < call->n_constants; i++)
        if (strcmp(call->constants[i].name, "residual_scale") == 0) residual_scale = call->constants[i].real;
    assert_true(residual_scale == 2);
    output->gemm.cap = 30;
    s = lower(arena, program, isa_load(arena, "scalar"), true);
    assert_int_equal(constant(call_of(s->entries[ENTRY_FORWARD], output->name), "has_scale"), 1);
}

static void decode_reads_caches(void **state) {
    (void)state;
    Schedule *s = schedule_of("model m { d_model 32, vocab 40, decoder { seq <= 64, layers 1 { "
                              "attention self { heads 4, kv_heads 2 } } } }", "avx512", true);
    assert_non_null(s->entries[ENTRY_DECODE]);
    const KernelCall *call = call_of(s->entries[ENTRY_DECODE], "layer0_attention_attended");
    assert_int_equal(call->kernel, KERNEL_attention);
    assert_true(argument(call, "k")->cache != NO_CACHE);
    assert_int_equal(constant(call, "ACROSS"), 4);
    assert_int_equal(call_of(s->entries[ENTRY_FORWARD], "layer0_attention_attended")->arguments[2].cache, NO_CACHE);
    assert_int_equal(call_of(s->entries[ENTRY_DECODE], "layer0_attention_keys")->kernel, KERNEL_store);
}

/* Targets are sorted by rank, whatever the order of the names. */
static void targets_best_first(void **state) {
    (void)state;
    const char *const names[] = {"scalar", "avx512", "avx2"};
    Schedule **s = lower_targets(arena, program_of(ENCODER("<= 8", "16", "2")), names, 3, false);
    assert_string_equal(s[0]->isa->name, "avx512");
    assert_string_equal(s[1]->isa->name, "avx2");
    assert_string_equal(s[2]->isa->name, "scalar");
    assert_null(s[3]);
}

/* ------------------------------------------------------------------ scratch */

static int64_t area(const KernelCall *call, const char *name) {
    for (int i = 0; i < call->n_areas; i++)
        if (strcmp(call->areas[i].name, name) == 0) return call->areas[i].floats;
    return 0;
}

static const KernelCall *callee(const KernelCall *call, const char *name) {
    for (int i = 0; i < call->n_constants; i++)
        if (strcmp(call->constants[i].name, name) == 0) return call->constants[i].callee;
    fail_msg("no callee %s", name);
    return NULL;
}

/* Keys and values of the caller are copied, those of a state are not; sums are kept where keys come in blocks. */
static void scratch_of_attention(void **state) {
    (void)state;
    const char *step = "layer0_attention_attended";
    Schedule *s = schedule_of("model m { d_model 40, vocab 40, decoder { seq <= 600, layers 1 { attention self { "
                              "heads 4 } } } }", "avx2", true);
    const KernelCall *call = call_of(s->entries[ENTRY_FORWARD], step), *rows = callee(call, "rows_name");
    assert_int_equal(area(call, "keys"), 608 * 10);
    assert_int_equal(area(call, "values"), 608 * 16);
    assert_int_equal(area(rows, "scores"), 4 * (512 + 16)); /* rows do not contend for the same lines of the cache */
    assert_int_equal(area(rows, "weighted"), 4 * 16);
    assert_int_equal(rows->scratch_bytes, 4 * (4 * 528 + 4 * 16));
    assert_int_equal(call->scratch_bytes, 4 * (608 * 10 + 608 * 16) + rows->scratch_bytes);
    assert_int_equal(constant(call, "scratch") * 4, call->scratch_bytes);
    assert_int_equal(constant(call, "values_at"), 608 * 10);
    assert_int_equal(s->entries[ENTRY_FORWARD]->scratch_bytes, call->scratch_bytes);
    call = call_of(s->entries[ENTRY_DECODE], step);
    assert_int_equal(call->n_areas, 1);
    assert_int_equal(call->scratch_bytes, callee(call, "rows_name")->scratch_bytes);
    assert_int_equal(s->entries[ENTRY_DECODE]->scratch_bytes, call->scratch_bytes);
    Schedule *short_rows = schedule_of(ENCODER("<= 64", "40", "4"), "avx2", true);
    call = call_of(short_rows->entries[ENTRY_FORWARD], step);
    assert_int_equal(area(call, "values"), 0); /* too few queries for a copy */
    assert_int_equal(area(callee(call, "rows_name"), "weighted"), 0);
}

/* An unrolled tile of more k than a function has room for leaves its sums in scratch. */
static void scratch_of_products(void **state) {
    (void)state;
    Schedule *full = schedule_of("model m { d_model 96, vocab 40, unroll full, encoder { seq = 8, position none, "
                                 "layers 1 { attention self { heads 2 } } } }", "avx512", false);
    const KernelCall *call = call_of(full->entries[ENTRY_FORWARD], "layer0_attention_output");
    assert_true(argument(call, "sums")->given);
    assert_int_equal(constant(call, "K_STEP"), (STATEMENTS - 4 * 24 - 3) / (3 + 8 + 24));
    assert_int_equal(area(call, "sums"), 8 * 3 * 16);
    Schedule *loops = schedule_of(ENCODER("<= 8", "96", "2"), "avx512", true);
    call = call_of(loops->entries[ENTRY_FORWARD], "layer0_attention_output");
    assert_int_equal(call->n_areas, 0);
    assert_int_equal(constant(call, "K_STEP"), 96);
}

/* The file states the most that any of its targets needs. */
static void scratch_of_targets(void **state) {
    (void)state;
    const char *const names[] = {"scalar", "avx512", "avx2"};
    Schedule **s = lower_targets(arena, program_of(ENCODER("<= 64", "48", "3")), names, 3, false);
    int64_t most = 0;
    for (int t = 0; t < 3; t++) {
        int64_t own = s[t]->entries[ENTRY_FORWARD]->scratch_bytes;
        assert_true(own > 0);
        if (own > most) most = own;
    }
    assert_true(most > s[2]->entries[ENTRY_FORWARD]->scratch_bytes);
    assert_int_equal(entry_scratch_bytes(s, ENTRY_FORWARD), most);
    assert_int_equal(entry_scratch_bytes(s, ENTRY_DECODE), 0);
}

/* ------------------------------------------------------------------ verifying */

static void expect_fault(const Schedule *schedule, const char *text) {
    expect_part(FAULT(schedule_verify(schedule)), text);
}

static void broken_calls_are_bugs(void **state) {
    (void)state;
    Schedule *s = schedule_of(ENCODER("<= 8", "16", "2"), "scalar", true);
    KernelCall *call = s->entries[ENTRY_FORWARD]->steps[2].call;
    assert_int_equal(call->kernel, KERNEL_gemm);
    const Argument good[] = {call->arguments[0], call->arguments[1]};
    expect_fault(s, "none");
    call->arguments[0].given = false;
    expect_fault(s, "`x` of the kernel gemm is missing");
    call->arguments[0] = good[0];
    call->arguments[0].operand.buffer = s->entries[ENTRY_FORWARD]->plan->n_buffers;
    expect_fault(s, "`x` of the kernel gemm reads no buffer");
    call->arguments[0] = good[0];
    call->arguments[1].packed = s->program->n_packed;
    expect_fault(s, "`w` of the kernel gemm is no packed tensor");
    call->arguments[1] = good[1];
    expect_fault(s, "none");
}

static void wrong_scratch_is_a_bug(void **state) {
    (void)state;
    Schedule *s = schedule_of(ENCODER("= 300", "16", "2"), "avx2", true);
    PlanSchedule *plan = s->entries[ENTRY_FORWARD];
    KernelCall *call = NULL;
    for (int i = 0; i < plan->plan->n_steps && !call; i++)
        if (plan->steps[i].call->kernel == KERNEL_attention) call = plan->steps[i].call;
    assert_non_null(call);
    assert_int_equal(call->n_areas, 3);
    const KernelCall good = *call;
    expect_fault(s, "none");
    call->areas[1].at += 1;
    expect_fault(s, "an area of the kernel attention is not aligned");
    *call = good;
    call->areas[1].at -= 16;
    expect_fault(s, "an area of the kernel attention lies over the one before it");
    *call = good;
    call->scratch_bytes -= 64;
    expect_fault(s, "an area of the kernel attention passes the end of its scratch");
    *call = good;
    call->scratch_bytes += 4;
    expect_fault(s, "an area of the kernel attention is followed by one of another thread that is not aligned");
    *call = good;
    call->areas[2].floats -= 16;
    expect_fault(s, "the kernel attention has too little scratch for rows_name");
    *call = good;
    plan->scratch_bytes -= 64;
    expect_fault(s, "its kernel attention needs more scratch than there is");
    plan->scratch_bytes += 64;
    expect_fault(s, "none");
}

/* A table without an operation that loads a type cannot multiply by weights of it. */
static void types_of_weights(void **state) {
    (void)state;
    const Program *bf16 = program_of("model m {\n  d_model 16, vocab 40, precision weights bf16\n"
                                     "  encoder { seq <= 8, position none, layers 1 {\n"
                                     "    attention self { heads 2 }, ffn { d_ff 64 } } } }");
    Isa isa = *isa_load(arena, "scalar");
    const Schedule *s = lower(arena, bf16, &isa, true);
    assert_int_equal(s->entries[ENTRY_FORWARD]->steps[2].call->kernel, KERNEL_gemm);
    ((IsaOp *)(uintptr_t)isa_find(&isa, "load_bf16"))->name = "load_other";
    lower(arena, program_of(ENCODER("<= 8", "16", "2")), &isa, true);
    REFUSED(lower(arena, bf16, &isa, true), EXIT_CANNOT,
            ":4:5: the target scalar has no kernel for `layer0_attention_query_key_value`, whose weights are BF16");
}

/* Layers that are alike call one kernel, whose constants are kept once; what a call reads is its own. */
static void equal_calls_share_constants(void **state) {
    (void)state;
    Schedule *s = schedule_of("model m { d_model 48, vocab 40, encoder { seq <= 64, position none, layers 2 { "
                              "attention self { heads 3 }, ffn { d_ff 48 } } } }", "avx2", true);
    const PlanSchedule *plan = s->entries[ENTRY_FORWARD];
    const KernelCall *first = call_of(plan, "layer0_ffn_up"), *second = call_of(plan, "layer1_ffn_up");
    assert_ptr_equal(first->first, first);
    assert_ptr_equal(second->first, first);
    assert_ptr_equal(second->constants, first->constants);
    assert_int_not_equal(argument(second, "w")->packed, argument(first, "w")->packed);
    const KernelCall *down = call_of(plan, "layer0_ffn_down"); /* another activation alone */
    assert_ptr_not_equal(down->first, first);
    assert_ptr_not_equal(down->constants, first->constants);
    const char *attended[] = {"layer0_attention_attended", "layer1_attention_attended"};
    const KernelCall *rows[] = {callee(call_of(plan, attended[0]), "rows_name"),
                                callee(call_of(plan, attended[1]), "rows_name")};
    assert_ptr_equal(call_of(plan, attended[1])->first, call_of(plan, attended[0]));
    assert_ptr_equal(rows[1]->first, rows[0]);
}

static void columns_in_loops(void **state) {
    (void)state;
    const struct { int64_t columns, looped; } cases[] = {{16, 0}, {47, 0}, {48, 6}, {52, 6}, {64, 8}, {100, 12}};
    const Isa *avx2 = isa_load(arena, "avx2");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const Step s = {.attention = {.value_dim = cases[i].columns, .vector = NO_PACKED}};
        assert_int_equal(columns_looped(avx2, &s, rows_tile(avx2, &s)), cases[i].looped);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(tiles_of_products), TEST(tiles_of_groups), TEST(half_vectors), TEST(kernels_of_attention),
        TEST(weights_are_prefetched), TEST(two_sums_of_few_rows),
        TEST(scales_are_folded), TEST(decode_reads_caches), TEST(targets_best_first), TEST(broken_calls_are_bugs),
        TEST(scratch_of_attention), TEST(scratch_of_products), TEST(scratch_of_targets), TEST(wrong_scratch_is_a_bug),
        TEST(types_of_weights), TEST(equal_calls_share_constants), TEST(columns_in_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
