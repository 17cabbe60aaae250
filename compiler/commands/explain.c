/* explain.c: attnc explain counts the cost of a forward pass from the plan, and measures the peak of this machine. */
#include "explain.h"

#include "footprint.h"
#include "peak.h"

#include "../lower/lower.h"

#include <string.h>

static const char usage[] =
    "attnc explain SPEC [--seq N] [--draw NAME=LIST …] [--target T] [--precision P] [--html F.html]\n"
    "  --seq N              rows of the sequence, and of its source or keys (default: the spec's bound)\n"
    "  --draw NAME=LIST     the integers of an input for which masks are drawn: 0,0,1 or 2*0,1, which repeat until\n"
    "                       the sequence ends, or the pairs, row by row (default: runs of the integers of its\n"
    "                       range; one integer for all pairs; for a number of the sequence, as prefix_length,\n"
    "                       a quarter of the rows)\n"
    "  --target T           only one instruction set: " HELP_TARGETS "\n"
    "                       (default: all for this machine's processor)\n"
    HELP_PRECISION
    "  --html F.html        also writes a page: roofline and time of the steps, masks, use of the workspace over\n"
    "                       time, and code by kernel";

/* ---------------------------------------------------------------- counting */

static void count_steps(Explain *x) {
    add_cost(x->plan, &x->rows, 1, &x->flops, &x->bytes);
    for (size_t i = 0; i < x->module->weights.count; i++) {
        int64_t elements = 0;
        shape_elements(x->module->weights.specs[i].shape, &elements);
        x->parameters += (double)elements;
    }
}

static Emitted code_of(Compilation planned, const char *const *targets, int n_targets) {
    planned.options = (EmitOptions){.command = "explain", .targets = targets, .n_targets = n_targets};
    compile_until(&planned, STAGE_C);
    return planned.emitted;
}

/* Measures the C of each target alone, then of all targets together. */
static void size_code(Explain *x, const Compilation *planned) {
    for (int t = 0; t < x->n_targets; t++) x->code_bytes[t] = code_of(*planned, &x->targets[t], 1).c_bytes;
    x->code = code_of(*planned, x->targets, x->n_targets);
}

static void measure_roofs(Explain *x) {
    for (int t = x->n_targets - 1; t >= 0 && x->peak == 0; t--) {
        x->peak_target = x->targets[t];
        if (machine_has(x->peak_target, false)) x->peak = peak_flops(isa_load(x->arena, x->peak_target));
    }
    if (x->peak > 0) x->read = read_bandwidth();
    progress_end();
}

/* ---------------------------------------------------------------- printing */

static void row(const char *name, const char *text) { printf("%-16s %s\n", name, text); }

static void print_sizes(const Explain *x) {
    Arena *a = x->arena;
    const Plan *plan = x->plan;
    const Emitted *emitted = &x->code;
    const EntrySizes *sizes = &emitted->entries[ENTRY_FORWARD];
    Text code = text_new(a);
    for (int t = 0; t < x->n_targets; t++)
        text_printf(&code, "%s %s; ", x->targets[t], amount_text(a, (double)x->code_bytes[t], "B"));
    row("code", arena_printf(a, "C of %sall %s", code.data, amount_text(a, (double)emitted->c_bytes, "B")));
    row("weights", arena_printf(a, "%s in the layout of the code (.attnw)",
                                amount_text(a, (double)packed_file_bytes(plan->program), "B")));
    row("workspace", arena_printf(a, "%lld bytes, for chunks of %s", (long long)sizes->workspace_bytes,
                                  counted(a, plan->rows, "row")));
    row("scratch", arena_printf(a, "%lld bytes per thread, after the workspace", (long long)sizes->scratch_bytes));
    const Isa *isa = isa_load(a, x->targets[0]);
    if (x->n_targets == 1 && isa->operator_bytes) {
        const Footprint f = footprint(a, plan->program, emitted, isa);
        row("flash", footprint_flash_text(a, &f));
        row("RAM", footprint_ram_text(a, &f));
    } else {
        row("stack", "at most 16384 bytes per function");
    }
    const Model *model = x->module->model;
    if (!model->decoder)
        row("KV cache", arena_printf(a, "none: %s keeps nothing from call to call",
                                     model->encoder ? "an encoder" : "attention alone"));
    else if (x->module->no_decode) row("KV cache", arena_printf(a, "none: %s", x->module->no_decode));
    else
        row("KV cache", arena_printf(a, "a state of up to %s takes %s%s", counted(a, model->decoder->seq.n, "row"),
                                     amount_text(a, (double)emitted->state_bytes, "B"),
                                     model->encoder ? arena_printf(a, ", and the encoded source takes %s",
                                                                   amount_text(a, (double)emitted->source_bytes, "B"))
                                                    : ""));
}

/* Prints the decision of `unroll auto` for each target, and its reason. */
static void print_single(const Explain *x) {
    Arena *a = x->arena;
    for (int t = 0; t < x->n_targets; t++) {
        Unrolling u = unroll(x->plan, isa_load(a, x->targets[t]));
        const char *size = u.code_bytes > 0
                               ? arena_printf(a, " (about %s of code; loops take %.1f %% of about %.0f cycles)",
                                              amount_text(a, u.code_bytes, "B"), 100 * u.saved / u.cycles, u.cycles)
                               : "";
        row(t ? "" : "one sequence", u.pays ? arena_printf(a, "%s: unrolled without loops%s", x->targets[t], size)
                                            : arena_printf(a, "%s: loops, since %s%s", x->targets[t], u.why_not, size));
    }
}

static void print_unrolling(const Explain *x) {
    const Plan *plan = x->plan;
    if (plan->program->unroll_full) row("unrolled", "everything: there is no loop");
    else {
        row("unrolled", "layers and steps are straight-line code with constant widths and offsets, register tiles are "
                        "unrolled; loops run over tiles of rows and columns, over k, and over keys");
        print_single(x);
    }
    int count[STEP_COUNT] = {0};
    Text text = text_new(x->arena);
    for (int i = 0; i < plan->n_steps; i++) count[plan->steps[i].kind]++;
    for (int k = 0, n = 0; k < STEP_COUNT; k++)
        if (count[k]) text_printf(&text, "%s%d %s", n++ ? ", " : "", count[k], step_kind_name((StepKind)k));
    row("steps", arena_printf(x->arena, "%d: %s", plan->n_steps, text.data));
}

static void print_roofline(const Explain *x) {
    if (x->peak == 0) {
        row("roofline", machine_has(x->peak_target, false)
                            ? "not measured: the rate of this machine's multiply-adds is unknown here"
                            : arena_printf(x->arena, "not measured: this machine has no %s", x->peak_target));
        return;
    }
    double compute = x->flops / x->peak, memory = x->bytes / x->read;
    row("roofline",
        arena_printf(x->arena, "%s in one thread: %s of multiply-adds at %s (%s), %s of bytes at %s",
                     duration_text(x->arena, compute > memory ? compute : memory), duration_text(x->arena, compute),
                     amount_text(x->arena, x->peak, "FLOP/s"), x->peak_target, duration_text(x->arena, memory),
                     amount_text(x->arena, x->read, "B/s")));
}

static void print_steps(const Explain *x) {
    printf("\n%-10s %-44s %-36s %6s %12s %7s %12s\n", "kind", "step", "shape", "rows", "flops", "share", "bytes");
    for (int i = 0; i < x->plan->n_steps; i++) {
        const Step *s = &x->plan->steps[i];
        double flops = step_flops(x->plan, s, &x->rows), bytes = step_bytes(x->plan, s, &x->rows);
        const char *count = flops > 0 ? amount_text(x->arena, flops, "") : "-",
                   *share = flops > 0 ? arena_printf(x->arena, "%.2f %%", 100 * flops / x->flops) : "-";
        printf("%-10s %-44s %-36s %6lld %12s %7s %12s\n", step_kind_name(s->kind), s->name, s->shape,
               (long long)step_rows(x->plan, s, &x->rows), count, share, amount_text(x->arena, bytes, "B"));
    }
}

static const char *share_text(Arena *arena, int64_t pairs, const Pattern *p) {
    return arena_printf(arena, "%lld (%.2f %%)", (long long)pairs,
                        100 * (double)pairs / ((double)p->rows * (double)p->keys));
}

static void print_pattern(const Explain *x, const Pattern *p) {
    Arena *a = x->arena;
    const char *first = p->all_rows > p->rows ? "the first " : "";
    printf("\nmask of %s: %s\n", p->place, p->rule);
    if (p->given) printf("drawn for %s\n", p->given);
    printf("%s%lld x %lld pairs of query and key: %s visible, %s multiplied by %s, %s and %d keys at a time\n", first,
           (long long)p->rows, (long long)p->keys, share_text(a, p->visible, p), share_text(a, p->multiplied, p),
           p->target, counted(a, p->tile, "query"), PANEL);
    if (p->cell > 1)
        printf("a character is %lld x %lld pairs: %c all of them are visible, %c some, %c none\n", (long long)p->cell,
               (long long)p->cell, CELL_SEEN, CELL_MIXED, CELL_HIDDEN);
    for (int i = 0; i < p->lines; i++) printf("  %s\n", p->cells[i]);
}

static void print_text(const Explain *x) {
    Arena *a = x->arena;
    printf("%s: %s\n\n", x->module->model->name, x->call);
    row("parameters", amount_text(a, x->parameters, ""));
    row("flops", arena_printf(a, "%s: 2 x multiply-adds of matrix products and visible scores",
                              amount_text(a, x->flops, "FLOP")));
    row("bytes moved", arena_printf(a, "%s: weights, keys and values read, rows read and written, step by step",
                                    amount_text(a, x->bytes, "B")));
    print_sizes(x);
    print_unrolling(x);
    print_roofline(x);
    print_steps(x);
    for (int i = 0; i < x->n_patterns; i++) print_pattern(x, &x->patterns[i]);
}

/* Sets the target of --target, or all targets of this processor. */
static void choose_targets(Explain *x, const char *target) {
    x->targets = targets_here(x->arena, graph_row_types(x->module->entries[ENTRY_FORWARD]), &x->n_targets);
    if (!target) return;
    if (strcmp(target, "native") == 0)
        for (int t = 0; t < x->n_targets; t++)
            if (machine_has(x->targets[t], false)) target = x->targets[t];
    target_require(x->arena, target);
    const char **one = arena_array(x->arena, 1, sizeof *one);
    *one = target;
    x->targets = one;
    x->n_targets = 1;
}

void command_explain(Arena *arena, int argc, char **argv) {
    const char *path, *seq = NULL, *html = NULL, *target = NULL, *precision = NULL;
    ValueNode *draw = NULL;
    const Option options[] = {{"--seq", .text = &seq}, {"--target", .text = &target}, {"--html", .text = &html},
                              {"--precision", .text = &precision}, {"--draw", .list = &draw}};
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, &path, 1);
    Compilation c = spec_load(arena, path, option_precision(arena, usage, "--precision", precision), STAGE_REWRITE);
    spec_plan(&c, &target, target != NULL);
    Explain x = {.arena = arena, .usage = usage, .module = c.module, .plan = c.program->entries[ENTRY_FORWARD],
                 .draw = draw};
    choose_targets(&x, target);
    Length bound = call_bound(x.plan);
    int64_t n = option_integer(usage, "--seq", seq, bound.n, 1, bound.n);
    if (bound.exact && n != bound.n) fail("%s: the spec says `seq = %lld`", path, (long long)bound.n);
    x.rows = call_rows(x.plan, n);
    const char *keys = arena_printf(arena, " over %s%s", counted(arena, x.rows.source, c.model->alone ? "key" : "row"),
                                    c.model->alone ? "" : " of the source");
    x.call = arena_printf(arena, "one sequence of %s%s%s", counted(arena, x.rows.rows, "row"),
                          x.rows.source ? keys : "",
                          bound.exact ? ", the only length" : n == bound.n ? ", the bound" : "");
    count_steps(&x);
    explain_patterns(&x);
    size_code(&x, &c);
    measure_roofs(&x);
    if (html) explain_page(&x, html);
    print_text(&x);
}
