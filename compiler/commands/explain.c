/* explain.c: attnc explain: what a forward of a spec costs, counted from its plan, and what this machine could do. */
#include "../emit/emit.h"
#include "engine.h"
#include "peak.h"

#include <string.h>

static const char usage[] = "attnc explain SPEC [--seq N]";

static const char *const kinds[STEP_COUNT] = {"embed", "patches",   "prepend", "gemm", "norm", "rope",
                                              "store", "attention", "map",     "pool", "copy"};

typedef struct Explain {
    Arena *arena;
    const Module *module;
    const Plan *plan;
    CallRows rows; /* of the sequence that is counted */
    double flops, bytes;
    const char *const *targets; /* least first */
    int n_targets;
} Explain;

/* "12.3 MB" */
static const char *amount(Arena *arena, double value, const char *unit) {
    static const char *const prefixes[] = {"", "k", "M", "G", "T"};
    int p = 0;
    while (value >= 1000 && p < 4) value /= 1000, p++;
    return arena_printf(arena, p ? "%.2f %s%s" : "%.0f %s%s", value, prefixes[p], unit);
}

static void row(const char *name, const char *text) { printf("%-16s %s\n", name, text); }

static double parameters(const Module *module) {
    double count = 0;
    for (size_t i = 0; i < module->weights.count; i++) {
        int64_t elements = 0;
        shape_elements(module->weights.specs[i].shape, &elements);
        count += (double)elements;
    }
    return count;
}

static void print_sizes(const Explain *x) {
    Arena *a = x->arena;
    const Plan *plan = x->plan;
    Text code = text_new(a);
    Emitted emitted = {0};
    for (int t = 0; t <= x->n_targets; t++) { /* each alone, then all */
        bool all = t == x->n_targets;
        EmitOptions options = {.targets = all ? x->targets : &x->targets[t],
                               .n_targets = all ? x->n_targets : 1,
                               .command = "explain",
                               .layout_hash = packed_layout_hash(plan->program)};
        emitted = emit(a, plan->program, &options);
        text_printf(&code, "%s%s %s", t ? "; " : "", all ? "all" : x->targets[t],
                    amount(a, (double)emitted.c_bytes, "B"));
    }
    row("code", arena_printf(a, "C of %s", code.data));
    row("weights", arena_printf(a, "%s in the layout of the code (.attnw)",
                                amount(a, 128 + 4 * (double)plan->program->weight_floats, "B")));
    row("workspace", arena_printf(a, "%lld bytes, for chunks of %lld rows", (long long)emitted.forward.workspace_bytes,
                                  (long long)plan->rows));
    row("scratch",
        arena_printf(a, "%lld bytes a thread, behind the workspace", (long long)emitted.forward.scratch_bytes));
    row("stack", "at most 16384 bytes a function");
    const Model *model = x->module->model;
    if (!model->decoder)
        row("KV cache", arena_printf(a, "none: %s keeps nothing from call to call",
                                     model->encoder ? "an encoder" : "attention alone"));
    else if (x->module->no_decode) row("KV cache", arena_printf(a, "none: %s", x->module->no_decode));
    else
        row("KV cache", arena_printf(a, "a state of up to %lld rows takes %s%s", (long long)model->decoder->seq.n,
                                     amount(a, (double)emitted.state_bytes, "B"),
                                     model->encoder ? arena_printf(a, ", what encode leaves of a source %s",
                                                                   amount(a, (double)emitted.source_bytes, "B"))
                                                    : ""));
}

/* What `unroll auto` does, and why. */
static void print_single(const Explain *x) {
    Arena *a = x->arena;
    for (int t = 0; t < x->n_targets; t++) {
        Unrolling u = unroll(x->plan, isa_load(a, x->targets[t]));
        const char *size = u.code_bytes > 0
                               ? arena_printf(a, " (about %s of code; loops take %.1f %% of about %.0f cycles)",
                                              amount(a, u.code_bytes, "B"), 100 * u.saved / u.cycles, u.cycles)
                               : "";
        row(t ? "" : "one sequence", u.pays ? arena_printf(a, "%s: written out without loops%s", x->targets[t], size)
                                            : arena_printf(a, "%s: loops, since %s%s", x->targets[t], u.why_not, size));
    }
}

static void print_unrolling(const Explain *x) {
    const Plan *plan = x->plan;
    if (plan->program->unroll_full) row("unrolled", "everything: no loop is left");
    else {
        row("unrolled", "layers and steps are straight-line code with constant widths and offsets, register tiles are "
                        "written out; loops run over tiles of rows and columns, over k, and over keys");
        print_single(x);
    }
    int count[STEP_COUNT] = {0};
    Text text = text_new(x->arena);
    for (int i = 0; i < plan->n_steps; i++) count[plan->steps[i].kind]++;
    for (int k = 0, n = 0; k < STEP_COUNT; k++)
        if (count[k]) text_printf(&text, "%s%d %s", n++ ? ", " : "", count[k], kinds[k]);
    row("steps", arena_printf(x->arena, "%d: %s", plan->n_steps, text.data));
}

static void print_roofline(const Explain *x) {
    const char *target = NULL;
    double peak = 0;
    for (int t = x->n_targets - 1; t >= 0 && peak == 0; t--) {
        target = x->targets[t];
        peak = peak_flops(target);
    }
    if (peak == 0) {
        row("roofline", "not measured: the rate of this machine's multiply-adds is unknown here");
        return;
    }
    double read = read_bandwidth(), compute = x->flops / peak, memory = x->bytes / read;
    row("roofline",
        arena_printf(x->arena, "%.3f ms in one thread: %.3f ms of multiply-adds at %s (%s), %.3f ms of bytes at %s",
                     1e3 * (compute > memory ? compute : memory), 1e3 * compute, amount(x->arena, peak, "FLOP/s"),
                     target, 1e3 * memory, amount(x->arena, read, "B/s")));
}

static void print_steps(const Explain *x) {
    printf("\n%-10s %-44s %-36s %6s %12s %7s %12s\n", "kind", "step", "shape", "rows", "flops", "share", "bytes");
    for (int i = 0; i < x->plan->n_steps; i++) {
        const Step *s = &x->plan->steps[i];
        double flops = step_flops(x->plan, s, &x->rows), bytes = step_bytes(x->plan, s, &x->rows);
        const char *count = flops > 0 ? amount(x->arena, flops, "") : "-",
                   *share = flops > 0 ? arena_printf(x->arena, "%.2f %%", 100 * flops / x->flops) : "-";
        printf("%-10s %-44s %-36s %6lld %12s %7s %12s\n", kinds[s->kind], s->name, s->shape,
               (long long)step_rows(x->plan, s, &x->rows), count, share, amount(x->arena, bytes, "B"));
    }
}

int command_explain(int argc, char **argv) {
    Arena *arena = arena_new();
    const char *path, *seq = NULL;
    const Option options[] = {{"--seq", .text = &seq}};
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, &path, 1);
    Module *module = build(arena, model_load(arena, path));
    Explain x = {.arena = arena, .module = module, .plan = plan_model(arena, module)->forward};
    x.targets = targets_here(arena, &x.n_targets);
    Length bound = call_bound(x.plan);
    int64_t n = option_integer(usage, "--seq", seq, bound.n, 1, bound.n);
    if (bound.exact && n != bound.n) fail("%s: the spec says `seq = %lld`", path, (long long)bound.n);
    x.rows = call_rows(x.plan, n);
    for (int i = 0; i < x.plan->n_steps; i++) {
        x.flops += step_flops(x.plan, &x.plan->steps[i], &x.rows);
        x.bytes += step_bytes(x.plan, &x.plan->steps[i], &x.rows);
    }
    const char *over = module->model->alone ? "keys" : "rows of the source";
    printf("%s: one sequence of %lld rows%s%s\n\n", module->model->name, (long long)x.rows.rows,
           x.rows.source ? arena_printf(arena, " over %lld %s", (long long)x.rows.source, over) : "",
           bound.exact      ? ", as every one"
           : n == bound.n ? ", the bound"
                            : "");
    row("parameters", amount(arena, parameters(module), ""));
    row("flops", arena_printf(arena, "%s: 2 x multiply-adds of matrix products and visible scores",
                              amount(arena, x.flops, "FLOP")));
    row("bytes moved", arena_printf(arena, "%s: weights, keys and values read, rows read and written, step by step",
                                    amount(arena, x.bytes, "B")));
    print_sizes(&x);
    print_unrolling(&x);
    print_roofline(&x);
    print_steps(&x);
    arena_free(arena);
    return EXIT_FINE;
}
