/* file.c: the header and the C of a plan: what all targets share, then a part a target. */
#include "emit.h"

#include <ctype.h>
#include <string.h>

enum { BUDGET = 64 << 20, UNROLLED_BUDGET = 4 << 20 };

/* Best first: init takes the first one that the machine has. `bit` is that of NAME_cpu(); -1: every machine. */
static const struct {
    const char *name;
    int bit;
} target_order[] = {{"avx512", 1}, {"avx2", 0}, {"scalar", -1}};
enum { TARGETS = sizeof target_order / sizeof *target_order };

bool target_known(const char *name) {
    for (int i = 0; i < TARGETS; i++)
        if (strcmp(target_order[i].name, name) == 0) return true;
    return false;
}

typedef struct File {
    Arena *arena;
    const Program *program;
    const Plan *plan; /* the forward one */
    const EmitOptions *options;
    TemplateVars *vars;
} File;

static const char *upper(Arena *arena, const char *text) {
    char *out = arena_copy(arena, text, strlen(text));
    for (char *c = out; *c; c++) *c = (char)toupper((unsigned char)*c);
    return out;
}

static bool has_input(const Plan *plan, const char *name) {
    for (int i = 0; i < plan->graph->n_inputs; i++)
        if (strcmp(plan->graph->inputs[i].name, name) == 0) return true;
    return false;
}

static bool wants(const File *f, const char *target) {
    for (int i = 0; i < f->options->n_targets; i++)
        if (strcmp(f->options->targets[i], target) == 0) return true;
    return false;
}

/* Lines that repeat over outputs: fields of the struct, of the run, and how they move from chunk to chunk. */
static void set_outputs(File *f, int64_t maps) {
    const Graph *g = f->plan->graph;
    Text fields = text_new(f->arena), run = text_new(f->arena), set = text_new(f->arena), advance = text_new(f->arena),
         driver = text_new(f->arena);
    for (int o = 0; o < g->n_outputs; o++) {
        const GraphOutput *out = &g->outputs[o];
        if (out->layer >= 0) continue;
        const char *rows = "rows";
        int64_t columns = g->tensors[out->tensor].dims[1].n;
        for (int b = 0; b < f->plan->n_buffers; b++)
            if (f->plan->buffers[b].kind == BUFFER_OUTPUT && f->plan->buffers[b].io == o &&
                f->plan->buffers[b].rows == ROWS_SEQUENCES)
                rows = "sequences";
        text_printf(&fields, "%sfloat *%s; /* [%s][%lld] */", fields.size ? "\n" : "", out->name,
                    strcmp(rows, "rows") == 0 ? "rows" : "batch", (long long)columns);
        text_printf(&run, "%sfloat *out_%s;", run.size ? "\n" : "", out->name);
        text_printf(&driver, "%soutput.%s = call->%s;", driver.size ? "\n" : "", out->name, out->name);
        text_printf(&set, "%srun.out_%s = output->%s;", set.size ? "\n" : "", out->name, out->name);
        text_printf(&advance, "%sif (run.out_%s) run.out_%s += %s * %lld;", advance.size ? "\n" : "", out->name,
                    out->name, rows, (long long)columns);
    }
    if (maps) {
        text_printf(&fields,
                    "\nfloat *attention; /* for each sequence of n rows [%lld][n][n]: the exported layers' heads, "
                    "layer by layer */",
                    (long long)maps);
        text_printf(&run, "\nfloat *out_attention;");
        text_printf(&set, "\nrun.out_attention = output->attention;");
        text_printf(&driver, "\noutput.attention = call->attention;");
    }
    vars_text(f->vars, "output_fields", fields.data);
    vars_text(f->vars, "driver_outputs", driver.data);
    vars_text(f->vars, "run_outputs", run.data);
    vars_text(f->vars, "set_outputs", set.data);
    vars_text(f->vars, "advance_outputs", advance.data);
    vars_int(f->vars, "has_maps", maps > 0);
    vars_int(f->vars, "map_count", maps);
}

/* Lines that repeat over targets: names, choice, call; each under its preprocessor guard. */
static void set_targets(File *f) {
    Text names = text_new(f->arena), pick = text_new(f->arena), call = text_new(f->arena);
    const char *model = f->program->module->model->name;
    int index = 0;
    bool x86 = false;
    for (int t = 0; t < TARGETS; t++) {
        if (!wants(f, target_order[t].name)) continue;
        const Isa *isa = isa_load(f->arena, target_order[t].name);
        bool guarded = strcmp(isa->guard, "1") != 0;
        text_printf(&names, "%s\"%s\"", index ? ", " : "", isa->name);
        if (guarded) text_printf(&pick, "#if %s\n", isa->guard), text_printf(&call, "#if %s\n", isa->guard);
        if (target_order[t].bit >= 0)
            text_printf(&pick, "if ((cpu >> %d & 1) && (!wanted || %s_same(wanted, \"%s\"))) return %d;\n",
                        target_order[t].bit, model, isa->name, index);
        else text_printf(&pick, "if (!wanted || %s_same(wanted, \"%s\")) return %d;\n", model, isa->name, index);
        text_printf(&call, "case %d: %s_%s_chunk(&run); break;\n", index, model, isa->name);
        if (guarded) text_printf(&pick, "#endif\n"), text_printf(&call, "#endif\n");
        x86 |= target_order[t].bit >= 0;
        index++;
    }
    if (pick.size) pick.data[pick.size - 1] = '\0';
    if (call.size) call.data[call.size - 1] = '\0';
    vars_text(f->vars, "target_names", names.data);
    vars_text(f->vars, "pick_targets", pick.data);
    vars_text(f->vars, "call_targets", call.data);
    vars_int(f->vars, "has_x86", x86);
}

static const char *summary(const File *f) {
    const Model *m = f->program->module->model;
    const Stack *s = m->encoder ? m->encoder : m->decoder;
    return arena_printf(f->arena, "%lld layers, d_model %lld, %s of %s %lld rows; model hash %016llx",
                        (long long)s->n_layers, (long long)m->d_model, s->is_decoder ? "decoder" : "encoder",
                        s->seq.exact ? "exactly" : "at most", (long long)s->seq.n, (unsigned long long)m->hash);
}

static void set_numbers(File *f, Emitted *emitted) {
    const Program *program = f->program;
    const Plan *plan = f->plan;
    const Model *m = program->module->model;
    const Stack *stack = m->encoder ? m->encoder : m->decoder;
    int64_t starts = round_up(4 * (plan->rows + 1), 64), control = starts + round_up(8 * plan->rows, 64);
    emitted->control_bytes = control;
    emitted->workspace_bytes = control + 4 * round_up(plan->workspace_floats, 16);
    emitted->scratch_bytes = 4 * plan->scratch_floats;
    const struct { const char *name; int64_t value;
    } numbers[] = {{"seq", plan->seq.n},
                   {"full", program->unroll_full},
                   {"embedded", f->options->embedded || f->options->incbin},
                   {"seq_exact", plan->seq.exact},
                   {"rows", plan->rows},
                   {"weights_bytes", 128 + 4 * program->weight_floats},
                   {"data_bytes", 4 * program->weight_floats},
                   {"workspace_bytes", emitted->workspace_bytes},
                   {"scratch_bytes", emitted->scratch_bytes},
                   {"starts_bytes", starts},
                   {"control_bytes", control},
                   {"workspace_floats", round_up(plan->workspace_floats, 16)},
                   {"vocab", stack->vocab},
                   {"segments", stack->segments},
                   {"d_model", m->d_model},
                   {"image_height", stack->image_height},
                   {"image_width", stack->image_width},
                   {"has_tokens", has_input(plan, "tokens")},
                   {"has_segments", has_input(plan, "segments")},
                   {"has_features", has_input(plan, "features")},
                   {"has_pixels", has_input(plan, "pixels")}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) vars_int(f->vars, numbers[i].name, numbers[i].value);
    vars_text(f->vars, "p", m->name);
    vars_text(f->vars, "prefix", m->name);
    vars_text(f->vars, "P", upper(f->arena, m->name));
    vars_text(f->vars, "version", ATTNC_VERSION);
    vars_text(f->vars, "command", f->options->command);
    vars_text(f->vars, "summary", summary(f));
    vars_text(f->vars, "model_hash", arena_printf(f->arena, "0x%016llx", (unsigned long long)m->hash));
    vars_text(f->vars, "layout_hash", arena_printf(f->arena, "0x%016llx", (unsigned long long)f->options->layout_hash));
    int64_t maps = 0;
    for (int o = 0; o < plan->graph->n_outputs; o++)
        if (plan->graph->outputs[o].layer >= 0) maps += plan->graph->outputs[o].n_heads;
    set_outputs(f, maps);
    set_targets(f);
}

static void emit_targets(File *f, Writer *writer) {
    const char *model = f->program->module->model->name;
    for (int t = 0; t < TARGETS; t++) {
        if (!wants(f, target_order[t].name)) continue;
        TargetEmitter e = {.arena = f->arena,
                           .writer = writer,
                           .plan = f->plan,
                           .isa = isa_load(f->arena, target_order[t].name),
                           .model = model};
        e.prefix = arena_printf(f->arena, "%s_%s", model, e.isa->name);
        bool guarded = strcmp(e.isa->guard, "1") != 0;
        writer_line(writer, "/* ------------------------------------------------------------------ target %s */",
                    e.isa->name);
        if (guarded) writer_line(writer, "#if %s", e.isa->guard);
        emit_target(&e);
        if (guarded) writer_line(writer, "#endif");
        writer_blank(writer);
    }
}

/* Weights in the C itself: the header's words, then hex floats, which every compiler reads to the same bits. */
static void embed_weights(File *f, Text *out) {
    const char *model = f->program->module->model->name;
    const uint8_t *bytes = f->options->embedded;
    size_t floats = (f->options->embedded_bytes - 128) / sizeof(float);
    text_printf(out,
                "\n/* the weights: the bytes of a .attnw */\nstatic const struct {\n    uint32_t header[32];\n    "
                "float data[%zu];\n} %s_embedded_data __attribute__((aligned(64))) = {{",
                floats, model);
    for (size_t i = 0; i < 32; i++) {
        uint32_t word;
        memcpy(&word, bytes + 4 * i, sizeof word);
        text_printf(out, "%s0x%xu", i ? ", " : "", word);
    }
    text_printf(out, "}, {");
    for (size_t i = 0; i < floats; i++) {
        float value;
        memcpy(&value, bytes + 128 + 4 * i, sizeof value);
        if (i % 8 == 0) text_printf(out, "\n    ");
        if (value != value || value - value != 0)
            fail("weights that are not finite cannot be embedded as numbers: keep them in a file");
        const char *separator = i % 8 == 7 ? "," : ", ";
        if (value == 0 && !__builtin_signbit(value)) text_printf(out, "0%s", separator);
        else text_printf(out, "%af%s", (double)value, separator);
    }
    text_printf(out, "\n}};\n\nconst void *%s_embedded(void) {\n    return &%s_embedded_data;\n}\n", model, model);
}

static void embed_by_assembly(File *f, Text *out, Emitted *emitted) {
    const char *model = f->program->module->model->name;
    text_printf(out,
                "\n/* the bytes of %s.attnw, from %s_weights.S */\nextern const unsigned char "
                "%s_embedded_data[];\n\nconst void *%s_embedded(void) {\n    return %s_embedded_data;\n}\n",
                model, model, model, model, model);
    emitted->assembly = arena_printf(f->arena,
                                     "/* %s.attnw as read-only data: assemble it with -I and the folder that holds the "
                                     "file */\n    .section .rodata\n    .balign 64\n    .globl %s_embedded_data\n"
                                     "%s_embedded_data:\n    .incbin \"%s.attnw\"\n#if defined(__linux__) && "
                                     "defined(__ELF__)\n    .section .note.GNU-stack,\"\",%%progbits\n#endif\n",
                                     model, model, model, model);
}

/* What is said when the C passes its budget: with several targets, that one alone may fit. */
static const char *over_budget(const File *f) {
    const Model *m = f->program->module->model;
    const char *what =
        f->program->unroll_full ? "`unroll full` makes this model too large" : "the C of this model is too large";
    const char *hint = f->options->n_targets > 1 ? " for all its targets together; a single --target may fit"
                                                 : "; `unroll auto` has no such bound";
    return arena_printf(f->arena, "%s:%d:%d: %s%s", m->place.source ? m->place.source->path : m->name, m->place.line,
                        m->place.column, what, hint);
}

Emitted emit(Arena *arena, const Program *program, const EmitOptions *options) {
    Emitted emitted = {0};
    File f = {arena, program, program->forward, options, vars_new(arena, NULL)};
    set_numbers(&f, &emitted);
    const char *over = over_budget(&f);
    size_t budget = program->unroll_full ? UNROLLED_BUDGET : BUDGET;
    Writer *h = writer_new(arena, budget, over), *c = writer_new(arena, budget, over);
    template_expand(arena, h, "model.h.tmpl", f.vars, NULL);
    template_expand(arena, c, "head.c.tmpl", f.vars, NULL);
    bool included = false;
    for (int t = 0; t < TARGETS; t++)
        included |= wants(&f, target_order[t].name) && isa_load(arena, target_order[t].name)->include[0];
    if (included) {
        writer_line(c, "#if defined(__x86_64__)");
        writer_line(c, "#include <immintrin.h>");
        writer_line(c, "#endif");
        writer_blank(c);
    }
    template_expand(arena, c, "entry.c.tmpl", f.vars, NULL);
    emit_targets(&f, c);
    template_expand(arena, c, "api.c.tmpl", f.vars, NULL);
    Writer *driver = writer_new(arena, BUDGET, over);
    template_expand(arena, driver, "driver.c.tmpl", f.vars, NULL);
    emitted.driver = writer_text(driver, NULL);
    emitted.h = writer_text(h, &emitted.h_bytes);
    emitted.c = writer_text(c, &emitted.c_bytes);
    if (options->embedded || options->incbin) {
        Text whole = text_new(arena);
        text_add(&whole, emitted.c, emitted.c_bytes);
        if (options->incbin) embed_by_assembly(&f, &whole, &emitted);
        else embed_weights(&f, &whole);
        emitted.c = whole.data;
        emitted.c_bytes = whole.size;
    }
    return emitted;
}
