/* quantize.c: attnc quantize chooses the precision of each matrix within a bound on the model's error. */
#include "../quantize/quantize.h"

#include "commands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_ALLOW "int8+weights=int8+int4+weights=int4:32:offset+bf16+f32"

static const char usage[] =
    "attnc quantize SPEC --weights F[,F…]|random:SEED --in NAME=F.npy … --bound B -o SPEC2\n"
    "                 [--measure cos|kl|rel] [--allow P[+P…]] [--output NAME] [-v]\n"
    HELP_WEIGHTS "\n"
    "  --in NAME=F.npy      an input for calibration, as attnc run takes it: a batch too, and attention_mask for\n"
    "                       padded sequences\n"
    "  --bound B            the largest error that a row of the output may have on these inputs\n"
    "  --measure M          cos, which is 1 - cosine with the row in f32; kl, the divergence of its logits from those\n"
    "                       of f32; rel, the length of the difference over that of the row in f32 (default: kl for\n"
    "                       logits, else cos)\n"
    "  --allow P[+P…]       the precisions that a matrix may have, as --precision takes them (default:\n"
    "                       " DEFAULT_ALLOW ");\n"
    "                       activations=int8 allows activations=int8:smooth, and :smooth:4, which leaves the 4\n"
    "                       largest columns in f32, too\n"
    "  --output NAME        the output whose rows are compared (default: that of the head, else the hidden rows)\n"
    "  -o SPEC2             the spec with the precisions that are chosen; vectors that smooth rows are written to\n"
    "                       SPEC2.vectors.safetensors, and belong into --weights F,SPEC2.vectors.safetensors\n"
    HELP_VERBOSE;

/* ---------------------------------------------------------------- options */

static void add_choice(Choice *choices, int *n, Choice choice) {
    for (int i = 0; i < *n; i++)
        if (precision_equal(&choices[i].precision, &choice.precision)) return;
    choices[(*n)++] = choice;
}

/* The precisions of --allow, each with rows in int8 followed by the same with smoothed rows, with outliers and without
 * them. */
static const Choice *read_allow(Arena *arena, const char *text, int *n) {
    enum { OUTLIERS = 4 };
    Choice *choices = arena_array(arena, strlen(text) + 2, 3 * sizeof *choices);
    *n = 0;
    for (const char *at = text;; at++) {
        const size_t length = strcspn(at, "+");
        const char *name = arena_copy(arena, at, length);
        Precision precision = option_precision(arena, usage, "--allow", name);
        add_choice(choices, n, (Choice){name, precision});
        if (rows_dtype(&precision, precision.weights.dtype) == DTYPE_I8) {
            precision.smooth = true;
            precision.outliers = 0;
            add_choice(choices, n, (Choice){arena_printf(arena, "%s smooth", name), precision});
            precision.outliers = OUTLIERS;
            add_choice(choices, n, (Choice){arena_printf(arena, "%s smooth outliers %d", name, OUTLIERS), precision});
        }
        at += length;
        if (!*at) return choices;
    }
}

static double read_bound(const char *text) {
    if (!text) usage_error(usage, "`--bound B` is missing: the largest error of a row");
    char *end;
    const double bound = strtod(text, &end);
    if (*end || end == text || !(bound >= 0) || !isfinite(bound))
        usage_error(usage, "`--bound` wants a number from 0 on, found `%s`", text);
    return bound;
}

/* The output of that name, or of the head. */
static OutputRole read_output(Arena *arena, const Module *module, const char *name) {
    const Graph *g = module->entries[ENTRY_FORWARD];
    OutputRole own = OUT_COUNT;
    Text names = text_new(arena);
    for (int o = 0; o < g->n_outputs; o++) {
        const GraphOutput *output = &g->outputs[o];
        if (output->layer >= 0) continue;
        if (name && strcmp(output->name, name) == 0) return output->role;
        text_printf(&names, "%s%s", names.size ? ", " : "", output->name);
        if (output->role != OUT_encoder_hidden) own = output->role; /* those of a head come last */
    }
    if (name) fail("--output %s: %s has no such output; it has: %s", name, module->model->name, names.data);
    return own;
}

static ErrorKind read_measure(const char *text, OutputRole output) {
    if (!text) return output == OUT_logits ? ERROR_KL : ERROR_COS;
    if (strcmp(text, "cos") == 0) return ERROR_COS;
    if (strcmp(text, "rel") == 0) return ERROR_REL;
    if (strcmp(text, "kl") != 0) usage_error(usage, "`--measure` is cos, kl or rel, not `%s`", text);
    if (output != OUT_logits) fail("--measure kl: the output `%s` holds no logits", output_name(output));
    return ERROR_KL;
}

/* ---------------------------------------------------------------- results */

static const char *measure_name(ErrorKind kind) {
    static const char *const names[] = {[ERROR_COS] = "1 - cos", [ERROR_KL] = "KL", [ERROR_REL] = "relative error"};
    return names[kind];
}

static void print_chosen(const Quantization *q) {
    const QuantizeTask *task = q->task;
    int width = 0;
    for (int u = 0; u < q->n_units; u++)
        if (q->chosen[u] >= 0 && (int)strlen(q->units[u].name) > width) width = (int)strlen(q->units[u].name);
    say(stdout, "%-*s  %10s  %9s  %s\n", width, "matrices", "cost", "error", "precision");
    for (int u = 0; u < q->n_units; u++) {
        if (q->chosen[u] < 0) continue;
        const int at = u * task->n_choices + q->chosen[u];
        say(stdout, "%-*s  %10s  %9.2e  %s\n", width, q->units[u].name,
            duration_text(q->arena, q->cost[at] * 1e-12), sqrt(q->error[at]), task->choices[q->chosen[u]].name);
    }
    say(stdout, "%-*s  %10s\n", width, "sum", duration_text(q->arena, total_cost(q, q->chosen) * 1e-12));
    say(stdout, "\n%s of `%s` is at most %.3g on %s, and the bound is %.3g\n", measure_name(task->kind),
        output_name(task->output), q->reached, counted(q->arena, q->batch->count, "sequence"), task->bound);
}

static void write_results(Quantization *q, const char *path) {
    size_t n;
    const NamedTensor *vectors = quantize_vectors(q, &n);
    const char *text = quantized_text(q), *beside = arena_printf(q->arena, "%s.vectors.safetensors", path);
    outputs_hold();
    if (n) safetensors_write(q->arena, beside, vectors, n);
    write_text(q->arena, path, text);
    outputs_release();
    say(stdout, n ? "%s and %s with %s\n" : "%s\n", path, beside, counted(q->arena, (int64_t)n, "vector"));
}

void command_quantize(Arena *arena, int argc, char **argv) {
    const char *path, *weights_path = NULL, *bound = NULL, *measure = NULL, *allow = NULL, *output = NULL, *to = NULL;
    bool verbose = false;
    ValueNode *in = NULL;
    const Option options[] = {{"--weights", .text = &weights_path}, {"--in", .list = &in},
                              {"--bound", .text = &bound},          {"--measure", .text = &measure},
                              {"--allow", .text = &allow},          {"--output", .text = &output},
                              {"-o", .text = &to},                  {"-v", .flag = &verbose}};
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, &path, 1);
    if (!weights_path) usage_error(usage, "`--weights` is missing");
    if (!to) usage_error(usage, "`-o SPEC2` is missing");
    QuantizeTask task = {.bound = read_bound(bound)};
    task.choices = read_allow(arena, allow ? allow : DEFAULT_ALLOW, &task.n_choices);
    const NamedFile *inputs = input_files(arena, usage, in);

    Source *source = source_read(arena, path);
    Compilation f32 = compilation_new(arena, source);
    spec_compile(&f32, STAGE_REWRITE);
    refuse_stated(&f32);
    task.output = read_output(arena, f32.module, output);
    task.kind = read_measure(measure, task.output);
    for (int i = 0; i < task.n_choices; i++) { /* refuses what the C cannot have before anything runs */
        Compilation c = compilation_quiet(arena, source);
        c.precision = task.choices[i].precision;
        compile_until(&c, STAGE_PLAN);
    }
    Batch *batch = batch_read(arena, f32.module->entries[ENTRY_FORWARD], inputs);
    Weights *weights = load_weights(&f32, weights_path, verbose, true);
    Quantization *q = quantize(arena, source, &f32, weights, batch, &task);
    if (!q->kept)
        fail("no precision that is allowed keeps the bound: %s of `%s` is %.3g with the most accurate ones, and %.3g "
             "is allowed", measure_name(task.kind), output_name(task.output), q->reached, task.bound);
    print_chosen(q);
    write_results(q, to);
}
