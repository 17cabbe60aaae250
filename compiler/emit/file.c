/* file.c: the header and the C of a plan: what all targets share, then a part a target. */
#include "emit.h"

#include <ctype.h>
#include <string.h>

enum { BUDGET = 64 << 20, UNROLLED_BUDGET = 4 << 20 };

/* The default of NAME_options.least_work: docs/performance.md says how it was chosen. */
enum { LEAST_WORK = 1 << 16 };

enum { FORWARD, ENCODE, DECODE, ENTRIES };

typedef struct File {
    Arena *arena;
    const Program *program;
    const EmitOptions *options;
    const Isa *isas[MOST_TARGETS + 1]; /* best first, ended by NULL */
    TemplateVars *vars;             /* of the whole file */
    TemplateVars *entries[ENTRIES]; /* of one way into the model; NULL: it has none such */
} File;

const char *upper_case(Arena *arena, const char *text) {
    char *out = arena_copy(arena, text, strlen(text));
    for (char *c = out; *c; c++) *c = (char)toupper((unsigned char)*c);
    return out;
}

static void load_tables(File *f) {
    int n = 0;
    for (const Isa *const *isa = targets_all(f->arena); *isa; isa++)
        for (int i = 0; i < f->options->n_targets; i++)
            if (strcmp(f->options->targets[i], (*isa)->name) == 0) f->isas[n++] = *isa;
}

static bool is_guarded(const Isa *isa) { return strcmp(isa->guard, "1") != 0; }

/* An entry's switch over targets. */
static void set_calls(File *f, const char *entry, TemplateVars *vars) {
    Text call = text_new(f->arena);
    const char *model = f->program->module->model->name;
    for (int t = 0; f->isas[t]; t++) {
        const Isa *isa = f->isas[t];
        if (is_guarded(isa)) text_printf(&call, "#if %s\n", isa->guard);
        text_printf(&call, "case %d: %s_%s_%s_chunk(&run); break;\n", t, model, isa->name, entry);
        if (is_guarded(isa)) text_printf(&call, "#endif\n");
    }
    if (call.size) call.data[call.size - 1] = '\0';
    vars_text(vars, "call_targets", call.data);
}

/* How NAME_pick() comes to a target. Where nothing is probed, the guard stands inside, so that `wanted` is used on
 * every machine. */
static void print_pick(const File *f, Text *pick, const Isa *isa, int t) {
    const char *model = f->program->module->model->name;
    const char *fits = arena_printf(f->arena, "!wanted || %s_same(wanted, \"%s\")", model, isa->name);
    if (!is_guarded(isa)) text_printf(pick, "if (%s) return %d;\n", fits, t);
    else if (!*isa->cpu) text_printf(pick, "if (%s) {\n#if %s\nreturn %d;\n#endif\n}\n", fits, isa->guard, t);
    else text_printf(pick, "#if %s\nif ((cpu >> %d & 1) && (%s)) return %d;\n#endif\n", isa->guard, t, fits, t);
}

/* Lines that repeat over targets: names and choice; each under its preprocessor guard. */
static void set_targets(File *f) {
    Text names = text_new(f->arena), pick = text_new(f->arena);
    bool others = false;
    for (int t = 0; f->isas[t]; t++) {
        text_printf(&names, "%s\"%s\"", t ? ", " : "", f->isas[t]->name);
        print_pick(f, &pick, f->isas[t], t);
        others |= strcmp(f->isas[t]->processor, "x86_64") != 0;
    }
    if (pick.size) pick.data[pick.size - 1] = '\0';
    const char *probes = target_probes(f->arena, f->isas);
    vars_text(f->vars, "target_names", names.data);
    vars_text(f->vars, "pick_targets", pick.data);
    vars_text(f->vars, "probe_targets", probes);
    vars_int(f->vars, "has_probes", *probes != '\0');
    vars_int(f->vars, "has_others", others); /* the file is also for machines without CPUID */
}

static const char *stack_summary(const File *f, const Stack *s) {
    return arena_printf(f->arena, "%s of %lld layers over %s %lld rows", s->name, (long long)s->n_layers,
                        s->seq.exact ? "exactly" : "at most", (long long)s->seq.n);
}

static const char *summary(const File *f) {
    const Model *m = f->program->module->model;
    const char *what = m->alone ? "attention alone" : stack_summary(f, m->encoder ? m->encoder : m->decoder);
    if (m->encoder && m->decoder) what = arena_printf(f->arena, "%s, %s", what, stack_summary(f, m->decoder));
    return arena_printf(f->arena, "%s, d_model %lld; model hash %016llx", what, (long long)m->d_model,
                        (unsigned long long)m->hash);
}

static void set_numbers(File *f) {
    const Program *program = f->program;
    const Model *m = program->module->model;
    vars_int(f->vars, "full", program->unroll_full);
    vars_int(f->vars, "least_work", LEAST_WORK);
    vars_int(f->vars, "embedded", f->options->embedded || f->options->incbin);
    vars_int(f->vars, "weights_bytes", 128 + 4 * program->weight_floats);
    vars_int(f->vars, "data_bytes", 4 * program->weight_floats);
    vars_int(f->vars, "packed_count", program->n_packed);
    vars_int(f->vars, "alone", m->alone != NULL);
    vars_text(f->vars, "p", m->name);
    vars_text(f->vars, "prefix", m->name);
    vars_text(f->vars, "P", upper_case(f->arena, m->name));
    vars_text(f->vars, "version", ATTNC_VERSION);
    vars_text(f->vars, "command", f->options->command);
    vars_text(f->vars, "summary", summary(f));
    vars_text(f->vars, "model_hash", arena_printf(f->arena, "0x%016llx", (unsigned long long)m->hash));
    vars_text(f->vars, "layout_hash", arena_printf(f->arena, "0x%016llx", (unsigned long long)f->options->layout_hash));
    set_run(f->arena, program, f->vars);
}

/* Each entry's names, with those of the file behind them. */
static void set_entries(File *f, Emitted *emitted) {
    const Program *program = f->program;
    set_states(f->arena, program, f->vars, &emitted->state_bytes, &emitted->source_bytes);
    const Plan *const plans[] = {program->forward, program->encode, program->decode};
    EntrySizes *const sizes[] = {&emitted->forward, &emitted->encode, &emitted->decode};
    for (int i = 0; i < ENTRIES; i++) {
        if (!plans[i]) continue;
        f->entries[i] = vars_new(f->arena, f->vars);
        *sizes[i] = set_entry(f->arena, plans[i], f->entries[i]);
        set_calls(f, plans[i]->graph->name, f->entries[i]);
    }
    vars_int(f->vars, "workspace_bytes", emitted->forward.workspace_bytes);
    vars_int(f->vars, "scratch_bytes", emitted->forward.scratch_bytes);
    int64_t bytes[] = {128 + 4 * program->weight_floats, emitted->state_bytes, emitted->source_bytes}, scratch = 0;
    int64_t most = 0;
    for (int i = 0; i < 3; i++) {
        if (bytes[i] > most) most = bytes[i];
        if (plans[i] && sizes[i]->workspace_bytes > most) most = sizes[i]->workspace_bytes;
        if (plans[i] && sizes[i]->scratch_bytes > scratch) scratch = sizes[i]->scratch_bytes;
    }
    vars_int(f->vars, "most_bytes", most); /* of what has to be in memory in one piece */
    vars_int(f->vars, "most_scratch", scratch);
    if (f->entries[DECODE] && program->encode) vars_int(f->entries[DECODE], "source_seq", program->encode->seq.n);
}

static void emit_targets(File *f, Writer *writer) {
    const char *model = f->program->module->model->name;
    for (int t = 0; f->isas[t]; t++) {
        TargetEmitter e = {.kept = f->arena, .writer = writer, .isa = f->isas[t], .model = model,
                           .loops = f->options->loops};
        e.prefix = arena_printf(f->arena, "%s_%s", model, e.isa->name);
        writer_line(writer, "/* ------------------------------------------------------------------ target %s */",
                    e.isa->name);
        if (is_guarded(e.isa)) writer_line(writer, "#if %s", e.isa->guard);
        emit_target(&e, f->program);
        if (is_guarded(e.isa)) writer_line(writer, "#endif");
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
    emitted->assembly = arena_printf(
        f->arena,
        "/* %s.attnw as read-only data: assemble it with -I and the folder that holds the file */\n"
        "#if defined(__wasm__)\n    .type %s_embedded_data,@object\n    .size %s_embedded_data, %lld\n"
        "    .section .rodata.%s_embedded_data,\"\",@\n#else\n    .section .rodata\n#endif\n"
        "    .p2align 6\n    .globl %s_embedded_data\n%s_embedded_data:\n    .incbin \"%s.attnw\"\n"
        "#if defined(__linux__) && defined(__ELF__)\n    .section .note.GNU-stack,\"\",%%progbits\n#endif\n",
        model, model, model, 128 + 4 * (long long)f->program->weight_floats, model, model, model, model);
}

/* What is said when the C passes its budget: with several targets, that one alone may fit. */
static const char *over_budget(const File *f) {
    const Model *m = f->program->module->model;
    const char *what =
        f->program->unroll_full ? "`unroll full` makes this model too large" : "the C of this model is too large";
    const char *hint = f->options->n_targets > 1 ? " for all its targets together; a single --target may fit"
                       : f->program->unroll_full  ? "; `unroll auto` has a far larger bound"
                                                  : "";
    return arena_printf(f->arena, "%s:%d:%d: %s%s", m->place.source ? m->place.source->path : m->name, m->place.line,
                        m->place.column, what, hint);
}

static void emit_header(File *f, Writer *h) {
    template_expand(f->arena, h, "model.h.tmpl", f->vars, NULL);
    writer_blank(h);
    template_expand(f->arena, h, "forward.h.tmpl", f->entries[FORWARD], NULL);
    if (f->entries[DECODE]) {
        writer_blank(h);
        if (f->entries[ENCODE]) template_expand(f->arena, h, "encode.h.tmpl", f->entries[ENCODE], NULL);
        template_expand(f->arena, h, "decode.h.tmpl", f->entries[DECODE], NULL);
    }
    size_t size;
    const char *text = writer_text(h, &size), *declared = strstr(text, "*/"); /* how it was made does not count */
    uint64_t hash = hash_bytes(0, declared, size - (size_t)(declared - text));
    vars_text(f->vars, "header_hash", arena_printf(f->arena, "0x%08xu", (unsigned)(hash ^ hash >> 32)));
    writer_blank(h);
    template_expand(f->arena, h, "end.h.tmpl", f->vars, NULL);
}

static void emit_driver(File *f, Writer *driver, bool serves) {
    template_expand(f->arena, driver, "driver.c.tmpl", f->entries[FORWARD], NULL);
    if (f->entries[ENCODE]) template_expand(f->arena, driver, "driver_encode.c.tmpl", f->entries[ENCODE], NULL);
    if (f->entries[DECODE]) template_expand(f->arena, driver, "driver_decode.c.tmpl", f->entries[DECODE], NULL);
    if (serves) template_expand(f->arena, driver, "driver_serve.c.tmpl", f->vars, NULL);
}

/* Each target's header of intrinsics under its guard, once. */
static void print_includes(const File *f, Writer *c) {
    const char *before = "";
    for (int t = 0; f->isas[t]; t++) {
        const Isa *isa = f->isas[t];
        if (!*isa->include || strcmp(isa->include, before) == 0) continue;
        before = isa->include;
        writer_line(c, "#if %s", isa->guard);
        writer_line(c, "#include %s", isa->include);
        writer_line(c, "#endif");
        writer_blank(c);
    }
}

Emitted emit(Arena *arena, const Program *program, const EmitOptions *options) {
    Emitted emitted = {0};
    File f = {.arena = arena, .program = program, .options = options, .vars = vars_new(arena, NULL)};
    load_tables(&f);
    set_numbers(&f);
    set_targets(&f);
    set_entries(&f, &emitted);
    const char *over = over_budget(&f);
    size_t budget = program->unroll_full ? UNROLLED_BUDGET : BUDGET;
    Writer *h = writer_new(arena, budget, over), *c = writer_new(arena, budget, over);
    emit_header(&f, h);
    template_expand(arena, c, "head.c.tmpl", f.vars, NULL);
    print_includes(&f, c);
    template_expand(arena, c, "entry.c.tmpl", f.vars, NULL);
    writer_part(c, NULL, "shared", "shared");
    emit_targets(&f, c);
    template_expand(arena, c, "api.c.tmpl", f.vars, NULL);
    if (f.entries[DECODE]) template_expand(arena, c, "decode.c.tmpl", f.entries[DECODE], NULL);
    template_expand(arena, c, "whole.c.tmpl", f.entries[FORWARD], NULL);
    if (f.entries[ENCODE]) template_expand(arena, c, "whole.c.tmpl", f.entries[ENCODE], NULL);
    writer_part(c, NULL, "shared", "shared");
    emitted.parts = writer_parts(c, &emitted.n_parts);
    Writer *driver = writer_new(arena, BUDGET, over);
    emit_driver(&f, driver, options->serves);
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
