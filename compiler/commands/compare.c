/* compare.c: attnc compare measures what precisions cost and give: errors against f32, bytes and times. */
#include "compare.h"

#include "text_input.h"

#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "attnc compare SPEC --weights F[,F…]|random:SEED [--in NAME=F.npy …] --precision P [--precision P …]\n"
    "                 [--tokenizer F --text T … [--target-text T …]] [--json] [--html F]\n"
    "                 [--engine compiled|interp] [--target T] [--cc CC] [--threads N] [-v]\n"
    HELP_WEIGHTS "; a packed file\n" HELP_INDENT "holds weights in f32\n"
    "  --in NAME=F.npy      an input, as attnc run takes it: a batch too, and attention_mask for padded sequences\n"
    "  --precision P        is compared with the model in which all is f32, also what the spec states otherwise; P is\n"
    "                       the precision of the blocks that state none, as the other commands take it: f32,\n"
    "                       bf16, int8, int4 or PART=TYPE,…; several may be given\n"
    "  --json               prints one object: \"precisions\" with bytes, times and the errors of outputs and steps\n"
    "  --html F             also writes a page that shows the errors by step, the bytes and the times\n"
    HELP_TEXTS HELP_TARGET_TEXT HELP_TOKENIZER HELP_ENGINE HELP_TARGET HELP_CC HELP_THREADS HELP_VERBOSE;

/* ---------------------------------------------------------------- the models */

/* The spec with that outermost precision, at STAGE_MODEL or STAGE_REWRITE. Reports its errors, and with `noted` also
 * the notes on it. */
static Compilation precise_spec(Arena *arena, Source *source, Precision precision, Stage last, bool noted) {
    Compilation c = noted ? compilation_new(arena, source) : compilation_quiet(arena, source);
    c.precision = precision;
    if (noted) spec_compile(&c, last);
    else if (!compile_until(&c, last)) return precise_spec(arena, source, precision, last, true);
    return c;
}

static Compilation f32_spec(Arena *arena, Source *source, Precision first) {
    Compilation c = precise_spec(arena, source, first, STAGE_MODEL, true);
    c.precision = (Precision){.weights = {.dtype = DTYPE_F32}};
    model_set_precision(arena, c.model, c.precision);
    spec_compile(&c, STAGE_REWRITE);
    return c;
}

/* Adds the vectors that smooth rows in another precision of the model, so that they are read with its weights. */
static void add_vectors(Arena *arena, WeightTable *table, const WeightTable *of) {
    for (size_t i = 0; i < of->count; i++)
        if (of->specs[i].smooths && !weight_spec_find(table, of->specs[i].name))
            weight_table_add(arena, table, of->specs[i]);
}

/* "avx512", or "avx512 and avx512vnni" where some models have targets of their own. */
static const char *targets_of(const Compare *x) {
    Text out = text_new(x->arena);
    text_printf(&out, "%s", x->f32->target);
    for (int i = 0; i < x->n; i++) {
        bool told = strcmp(x->list[i]->target, x->f32->target) == 0;
        for (int k = 0; k < i; k++) told |= strcmp(x->list[i]->target, x->list[k]->target) == 0;
        if (!told) text_printf(&out, " and %s", x->list[i]->target);
    }
    return out.data;
}

static const char *describe(const Compare *x, const Reference *r) {
    Arena *arena = x->arena;
    const Batch *batch = r->batch;
    const Graph *g = x->module->entries[ENTRY_FORWARD];
    int64_t least = INT64_MAX, most = 0, all = 0;
    for (int64_t b = 0; b < batch->count; b++) {
        int64_t rows = 0;
        for (int i = 0; i < g->n_inputs; i++) {
            const GraphInput *input = &g->inputs[i];
            const InputArray *array = sequence_input(&batch->sequences[b], input->kind->role);
            if (array && input->kind->rows == PER_ROW && array->rows > rows) rows = array->rows;
        }
        all += rows;
        if (rows < least) least = rows;
        if (rows > most) most = rows;
    }
    const char *of = !most           ? ""
                     : least == most ? arena_printf(arena, " of %s", counted(arena, most, "row"))
                                     : arena_printf(arena, " of %lld to %lld rows, %lld in all", (long long)least,
                                                    (long long)most, (long long)all);
    const char *engine = "interpreted";
    if (x->f32->target)
        engine = arena_printf(arena, "%s, %s", counted(arena, r->options.threads, "thread"), targets_of(x));
    return arena_printf(arena, "%s%s, %s", counted(arena, batch->count, "sequence"), of, engine);
}

/* ---------------------------------------------------------------- the table */

/* The output with the largest mean error of its rows. */
static OutputRole worst_output(const Measurement *m) {
    int worst = OUT_COUNT;
    for (int a = 0; a < OUT_COUNT; a++)
        if (m->outputs[a].rows && (worst == OUT_COUNT || m->outputs[a].rel_mean > m->outputs[worst].rel_mean))
            worst = a;
    return (OutputRole)worst;
}

static double worst_error(const Measurement *m) { return m->outputs[worst_output(m)].rel_mean; }

static int widest_name(const Compare *x) {
    size_t most = strlen("precision");
    for (int i = 0; i < x->n; i++)
        if (strlen(x->list[i]->precision) > most) most = strlen(x->list[i]->precision);
    return (int)most;
}

static void print_row(const Compare *x, const Measurement *m, int width) {
    Arena *arena = x->arena;
    printf("%-*s %12s %12s %10s", width, m->precision, amount_text(arena, (double)m->weights_bytes, "B"),
           amount_text(arena, (double)m->workspace_bytes, "B"), duration_text(arena, m->median_s));
    if (m->target) printf(" %7.2f x", x->f32->median_s / m->median_s);
    else printf(" %9s", "-");
    if (m != x->f32) {
        const OutputRole role = worst_output(m);
        const RowErrors *e = &m->outputs[role];
        printf("  %-16s %9.2e %9.2e %9.2e %9.2e", output_name(role), e->rel_mean, e->rel_max, e->cos_mean, e->cos_max);
    }
    printf("\n");
}

static void print_logits(const Compare *x, int width) {
    if (!x->list[0]->logits.rows) return;
    printf("\n%-*s %12s %12s %10s %10s %18s\n", width, "logits", "perplexity", "of f32", "KL", "largest",
           "same first choice");
    for (int i = 0; i < x->n; i++) {
        const LogitsErrors *l = &x->list[i]->logits;
        if (l->tokens) printf("%-*s %12.6g %12.6g", width, x->list[i]->precision, l->perplexity, l->perplexity_f32);
        else printf("%-*s %12s %12s", width, x->list[i]->precision, "-", "-");
        printf(" %10.2e %10.2e %16.2f %%\n", l->kl_mean, l->kl_max, 100 * l->top1);
    }
}

typedef struct Growth {
    int step;
    double by;
} Growth;

static int by_growth(const void *a, const void *b) {
    const Growth *x = a, *y = b;
    if (x->by != y->by) return x->by < y->by ? 1 : -1;
    return x->step - y->step;
}

/* The steps whose result has an error that is larger than those of all rows that they read by the most. */
static void print_growth(const Compare *x) {
    enum { SHOWN = 8 };
    const Measurement *m = x->list[0];
    for (int i = 1; i < x->n; i++)
        if (worst_error(x->list[i]) > worst_error(m)) m = x->list[i];
    if (worst_error(m) == 0) return;
    Growth *growth = arena_array(x->arena, (size_t)m->n_steps + 1, sizeof *growth);
    for (int i = 0; i < m->n_steps; i++)
        growth[i] = (Growth){i, m->steps[i].rel - m->steps[i].before};
    qsort(growth, (size_t)m->n_steps, sizeof *growth, by_growth);
    say(stdout, "\nwhere the error of %s grows most, of %s:\n", m->precision, counted(x->arena, m->n_steps, "step"));
    printf("%-44s %10s %10s\n", "step", "reads", "makes");
    for (int i = 0; i < m->n_steps && i < SHOWN && growth[i].by > 0; i++) {
        const int s = growth[i].step;
        printf("%-44s %10.2e %10.2e\n", m->steps[s].name, m->steps[s].before, m->steps[s].rel);
    }
}

static void print_table(const Compare *x) {
    const int width = widest_name(x);
    printf("%s, %s\n\n", x->module->model->name, x->call);
    printf("%-*s %12s %12s %10s %9s  %-16s %9s %9s %9s %9s\n", width, "precision", "weights", "workspace", "median",
           "speed", "worst output", "error", "largest", "1 - cos", "largest");
    print_row(x, x->f32, width);
    for (int i = 0; i < x->n; i++) print_row(x, x->list[i], width);
    print_logits(x, width);
    print_growth(x);
}

/* ---------------------------------------------------------------- the command */

static int count_precisions(const ValueNode *nodes) {
    int n = 0;
    if (!nodes) usage_error(usage, "`--precision P` is missing: what is compared with f32");
    for (const ValueNode *node = nodes; node; node = node->next, n++)
        for (const ValueNode *other = nodes; other != node; other = other->next)
            if (strcmp(node->text, other->text) == 0)
                usage_error(usage, "`--precision %s` stands twice", node->text);
    return n;
}

void command_compare(Arena *arena, int argc, char **argv) {
    const char *path, *html = NULL;
    RunOptions run = {0};
    bool json = false;
    ValueNode *in = NULL, *given = NULL;
    TextOptions text = {0};
    const Option options[] = {{"--weights", .text = &run.weights}, {"--in", .list = &in},
                              {"--precision", .list = &given},     {"--json", .flag = &json},
                              {"--html", .text = &html},           {"--engine", .text = &run.engine},
                              {"--target", .text = &run.target},   {"--cc", .text = &run.cc},
                              {"--threads", .text = &run.threads}, {"-v", .flag = &run.verbose},
                              TEXT_OPTIONS(text)};
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, &path, 1);
    const int n = count_precisions(given);
    run_check(&run, usage);
    const NamedFile *inputs = input_files(arena, usage, in);
    Precision *precisions = arena_array(arena, (size_t)n, sizeof *precisions);
    const ValueNode *node = given;
    for (int i = 0; i < n; i++, node = node->next)
        precisions[i] = option_precision(arena, usage, "--precision", node->text);

    Source *source = source_read(arena, path);
    Compilation f32 = f32_spec(arena, source, precisions[0]);
    for (int i = 0; i < n; i++) { /* refuses all before anything runs */
        Compilation c = precise_spec(arena, source, precisions[i], STAGE_REWRITE, false);
        compile_until(&c, STAGE_PLAN);
        add_vectors(arena, &f32.module->weights, &c.module->weights);
    }
    inputs = text_inputs(&f32, usage, &text, text_words(&f32, usage, &text, run.cc), inputs, false);
    Batch *batch = batch_read(arena, f32.module->entries[ENTRY_FORWARD], inputs);
    Weights *weights = load_weights(&f32, run.weights, run.verbose, true);
    const MeasureOptions how = {
        .interpreted = run.interpreted, .target = run.target, .cc = run.cc, .threads = run.thread_count};
    Reference *reference = measure_reference(arena, &f32, weights, batch, &how);
    Compare x = {.arena = arena, .module = f32.module, .n = n};
    x.list = arena_array(arena, (size_t)n, sizeof *x.list);
    node = given;
    for (int i = 0; i < n; i++, node = node->next) {
        Arena *own = arena_new();
        Compilation c = precise_spec(own, source, precisions[i], STAGE_REWRITE, false);
        x.list[i] = measure(arena, reference, &c, node->text, (MeasureHow){.times = true, .steps = true});
        arena_free(own);
    }
    x.f32 = measure_f32(arena, reference);
    x.call = describe(&x, reference);
    progress_end();
    if (html) compare_page(&x, html);
    if (json) {
        Text out = text_new(arena);
        compare_json(&out, &x);
        printf("{\"precisions\":%s}\n", out.data);
    } else {
        print_table(&x);
    }
}
