/* file.c: the header and the C of a plan: what all targets share, then a part a target. */
#include "emit.h"

#include <string.h>

enum { BUDGET = 64 << 20, UNROLLED_BUDGET = 4 << 20 };

/* The default of NAME_options.least_work: docs/performance.md says how it was chosen. */
enum { LEAST_WORK = 1 << 16 };

typedef struct File {
    Arena *arena;
    const Program *program;
    Schedule *const *schedules; /* best target first, ended by NULL */
    const EmitOptions *options;
    const Isa *isas[MOST_TARGETS + 1]; /* the schedules' */
    const Names *names;
    TemplateVars *vars;             /* of the whole file */
    TemplateVars *entries[ENTRY_COUNT]; /* of each entry, or NULL if the model does not have that entry */
} File;

/* Sets the list `targets`, best first. Of targets with the same `include`, only the first record has it. */
static void set_targets(File *f) {
    TemplateList *targets = vars_list(f->vars, "targets");
    const char *include = "";
    bool others = false;
    for (int t = 0; f->isas[t]; t++) {
        const Isa *isa = f->isas[t];
        TemplateVars *target = list_record(targets);
        vars_int(target, "index", t);
        vars_text(target, "name", isa->name);
        vars_text(target, "guard", isa->guard);
        vars_int(target, "probed", *isa->cpu != NULL);
        vars_int(target, "may_be_slow", may_be_slow(f->isas, isa));
        vars_int(target, "tiles", isa_has(isa, "tiles"));
        if (*isa->include && strcmp(isa->include, include) != 0) vars_text(target, "include", include = isa->include);
        if (isa->compiler) {
            vars_text(target, "compiler", isa->compiler);
            vars_text(target, "refusal", isa->refusal);
        }
        others |= strcmp(isa->processor, f->isas[0]->processor) != 0;
    }
    set_probes(f->arena, f->isas, f->vars);
    vars_int(f->vars, "has_others", others); /* the file is for machines of several kinds */
}

static const char *stack_summary(const File *f, const Stack *s) {
    return arena_printf(f->arena, "%s of %s over %s %s", s->name, counted(f->arena, s->n_layers, "layer"),
                        s->seq.exact ? "exactly" : "at most", counted(f->arena, s->seq.n, "row"));
}

static const char *summary(const File *f) {
    const Model *m = f->program->module->model;
    const char *what = m->alone ? "attention alone" : stack_summary(f, m->encoder ? m->encoder : m->decoder);
    if (m->encoder && m->decoder) what = arena_printf(f->arena, "%s, %s", what, stack_summary(f, m->decoder));
    const char *width = arena_printf(f->arena, "d_model %lld", (long long)m->d_model);
    if (m->encoder && m->encoder->d_model != m->d_model)
        width = arena_printf(f->arena, "d_model %lld and %lld", (long long)m->encoder->d_model, (long long)m->d_model);
    return arena_printf(f->arena, "%s, %s; model hash %016llx", what, width, (unsigned long long)m->hash);
}

static void set_numbers(File *f) {
    const Program *program = f->program;
    const Model *m = program->module->model;
    vars_int(f->vars, "full", program->unroll_full);
    vars_int(f->vars, "ranks", program->module->ranks);
    vars_int(f->vars, "PANEL", PANEL);
    vars_int(f->vars, "reproducible", program->arithmetic != ARITHMETIC_FREE);
    vars_int(f->vars, "least_work", LEAST_WORK);
    vars_int(f->vars, "embedded", f->options->embedded || f->options->incbin);
    vars_int(f->vars, "incbin", f->options->incbin);
    vars_int(f->vars, "weights_bytes", packed_file_bytes(program));
    vars_int(f->vars, "data_bytes", program->weight_bytes);
    vars_int(f->vars, "packed_count", program->n_packed);
    const Dtype dtype = weight_table_dtype(&program->module->weights);
    vars_int(f->vars, "weights_dtype", dtype);
    vars_text(f->vars, "weights_dtype_name", dtype_name(dtype));
    vars_int(f->vars, "alone", m->alone != NULL);
    vars_int(f->vars, "has_integers", m->n_row_inputs > 0);
    vars_text(f->vars, "p", m->name);
    vars_text(f->vars, "prefix", m->name);
    vars_text(f->vars, "P", upper_case(f->arena, m->name));
    vars_text(f->vars, "version", ATTNC_VERSION);
    vars_text(f->vars, "command", f->options->command);
    vars_text(f->vars, "summary", summary(f));
    vars_text(f->vars, "model_hash", arena_printf(f->arena, "0x%016llx", (unsigned long long)m->hash));
    vars_text(f->vars, "layout_hash", arena_printf(f->arena, "0x%016llx", (unsigned long long)f->options->layout_hash));
    set_run(program, f->vars);
}

/* Each entry's names, with those of the file behind them. */
static void set_entries(File *f, Emitted *emitted) {
    const Program *program = f->program;
    set_states(f->arena, program, f->vars, &emitted->state_bytes, &emitted->source_bytes);
    for (int i = 0; i < ENTRY_COUNT; i++) {
        if (!program->entries[i]) continue;
        f->entries[i] = vars_new(f->arena, f->vars);
        emitted->entries[i] =
            set_entry(f->arena, program->entries[i], entry_scratch_bytes(f->schedules, i), f->entries[i]);
    }
    vars_int(f->vars, "workspace_bytes", emitted->entries[ENTRY_FORWARD].workspace_bytes);
    vars_int(f->vars, "scratch_bytes", emitted->entries[ENTRY_FORWARD].scratch_bytes);
    const int64_t bytes[] = {packed_file_bytes(program), emitted->state_bytes, emitted->source_bytes};
    int64_t most = 0, scratch = 0;
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
        if (bytes[i] > most) most = bytes[i];
    for (int i = 0; i < ENTRY_COUNT; i++) { /* zeros where there is no entry */
        if (emitted->entries[i].workspace_bytes > most) most = emitted->entries[i].workspace_bytes;
        if (emitted->entries[i].scratch_bytes > scratch) scratch = emitted->entries[i].scratch_bytes;
    }
    vars_int(f->vars, "most_bytes", most); /* the largest piece of memory that a caller needs */
    vars_int(f->vars, "most_scratch", scratch);
    const Plan *encode = program->entries[ENTRY_ENCODE];
    if (f->entries[ENTRY_DECODE] && encode) vars_int(f->entries[ENTRY_DECODE], "source_seq", encode->seq.n);
}

/* The constants that name offsets: those of weights and states, then of each entry's workspace. */
static void emit_offsets(File *f, Writer *writer) {
    set_offsets(f->arena, f->names, f->vars);
    template_expand(f->arena, writer, "offsets.c.tmpl", f->vars, NULL);
    for (int i = 0; i < ENTRY_COUNT; i++) {
        if (!f->entries[i]) continue;
        set_workspace(f->arena, f->names, (EntryKind)i, f->entries[i]);
        template_expand(f->arena, writer, "workspace.c.tmpl", f->entries[i], NULL);
    }
}

static void emit_targets(File *f, Writer *writer) {
    const char *model = f->program->module->model->name;
    for (int i = 0; i < ENTRY_COUNT; i++) { /* every target has the same steps */
        const PlanSchedule *plan = f->schedules[0]->entries[i];
        if (plan && !plan->unrolled) emit_order(f->arena, writer, model, plan);
    }
    writer_part(writer, NULL, "shared", "shared");
    SharedCode *shared = shared_code_new(f->arena, model, f->isas);
    int n = 0;
    while (f->isas[n]) n++;
    for (int t = n - 1; t >= 0; t--) { /* a target's rank is above the ranks of those that it is based on */
        template_expand(f->arena, writer, "target_begin.c.tmpl", f->vars, f->isas[t]);
        emit_target(f->arena, writer, model, f->schedules[t], f->names, shared, t == n - 1);
        template_expand(f->arena, writer, "target_end.c.tmpl", f->vars, f->isas[t]);
    }
}

static bool all_floats(const Program *program) {
    for (int i = 0; i < program->n_packed; i++)
        if (program->packed[i].slot.layout.dtype != DTYPE_F32) return false;
    return true;
}

/* The words of a .attnw's header, and its data as hex floats, which every compiler reads to the same bits; as words
 * where some of it is no floats. */
static void set_weights(File *f, TemplateVars *vars) {
    enum { FLOATS_PER_LINE = 6 };
    const bool words_alone = !all_floats(f->program);
    const uint8_t *bytes = f->options->embedded;
    TemplateList *words = vars_list(vars, "header_words");
    for (size_t i = 0; i < PACKED_HEADER / sizeof(uint32_t); i++) {
        uint32_t word;
        memcpy(&word, bytes + sizeof word * i, sizeof word);
        vars_text(list_record(words), "text", arena_printf(f->arena, "0x%xu", word));
    }
    size_t floats = (f->options->embedded_bytes - PACKED_HEADER) / sizeof(float);
    Text data = text_new(f->arena);
    for (size_t i = 0; i < floats; i++) {
        float value;
        uint32_t word;
        memcpy(&value, bytes + PACKED_HEADER + sizeof value * i, sizeof value);
        memcpy(&word, bytes + PACKED_HEADER + sizeof word * i, sizeof word);
        const char *separator = i % FLOATS_PER_LINE == FLOATS_PER_LINE - 1 ? ",\n" : ", ";
        if (words_alone) {
            text_printf(&data, word < 10 ? "%u%s" : "0x%xu%s", word, separator);
            continue;
        }
        if (value != value || value - value != 0)
            fail("weights that are not finite cannot be embedded as numbers: keep them in a file");
        if (value == 0 && !__builtin_signbit(value)) text_printf(&data, "0%s", separator);
        else text_printf(&data, "%af%s", (double)value, separator);
    }
    vars_int(vars, "floats", (int64_t)floats);
    vars_text(vars, "number", words_alone ? "uint32_t" : "float");
    vars_text(vars, "data", data.data);
}

/* NAME_embedded() at the end of the C, with the weights or with an assembly file that takes them in. */
static void embed_weights(File *f, Emitted *emitted) {
    TemplateVars *vars = vars_new(f->arena, f->vars);
    Writer *writer = writer_new(f->arena, BUDGET, "the weights do not fit in the C");
    if (f->options->incbin) {
        Writer *assembly = writer_new(f->arena, BUDGET, "the assembly of the weights is too large");
        writer_assembly(assembly);
        template_expand(f->arena, assembly, "weights.S.tmpl", vars, NULL);
        emitted->assembly = writer_text(assembly, NULL);
    } else {
        set_weights(f, vars);
    }
    template_expand(f->arena, writer, "weights.c.tmpl", vars, NULL);
    size_t size;
    const char *text = writer_text(writer, &size);
    Text whole = text_new(f->arena);
    text_reserve(&whole, emitted->c_bytes + size + 1);
    text_printf(&whole, "%s\n", emitted->c);
    text_add(&whole, text, size);
    emitted->c = whole.data;
    emitted->c_bytes = whole.size;
}

/* The message for C that passes its budget. With several targets, it adds that a single target may fit. */
static const char *over_budget(const File *f) {
    const Model *m = f->program->module->model;
    const char *what =
        f->program->unroll_full ? "`unroll full` makes this model too large" : "the C of this model is too large";
    const char *hint = f->options->n_targets > 1 ? " for all its targets together; a single --target may fit"
                       : f->program->unroll_full  ? "; `unroll auto` has a far larger bound"
                                                  : "";
    return arena_printf(f->arena, "%s:%d:%d: %s%s", m->location.source ? m->location.source->path : m->name,
                        m->location.line,
                        m->location.column, what, hint);
}

static void emit_header(File *f, Writer *h) {
    template_expand(f->arena, h, "model.h.tmpl", f->vars, NULL);
    writer_blank(h);
    template_expand(f->arena, h, "forward.h.tmpl", f->entries[ENTRY_FORWARD], NULL);
    if (f->entries[ENTRY_DECODE]) {
        writer_blank(h);
        if (f->entries[ENTRY_ENCODE]) template_expand(f->arena, h, "encode.h.tmpl", f->entries[ENTRY_ENCODE], NULL);
        template_expand(f->arena, h, "decode.h.tmpl", f->entries[ENTRY_DECODE], NULL);
    }
    size_t size;
    const char *text = writer_text(h, &size), *declared = strstr(text, "*/"); /* how it was made does not count */
    uint64_t hash = hash_bytes(0, declared, size - (size_t)(declared - text));
    vars_text(f->vars, "header_hash", arena_printf(f->arena, "0x%08xu", (unsigned)(hash ^ hash >> 32)));
    writer_blank(h);
    template_expand(f->arena, h, "end.h.tmpl", f->vars, NULL);
}

static void emit_driver(File *f, Writer *driver, bool serves) {
    TemplateVars *encode = f->entries[ENTRY_ENCODE], *decode = f->entries[ENTRY_DECODE];
    template_expand(f->arena, driver, "driver.c.tmpl", f->entries[ENTRY_FORWARD], NULL);
    if (encode) template_expand(f->arena, driver, "driver_encode.c.tmpl", encode, NULL);
    if (decode) template_expand(f->arena, driver, "driver_decode.c.tmpl", decode, NULL);
    if (serves) template_expand(f->arena, driver, "driver_serve.c.tmpl", f->vars, NULL);
}

Emitted emit(Arena *arena, const Program *program, struct Schedule *const *schedules, const EmitOptions *options) {
    Emitted emitted = {0};
    File f = {.arena = arena,
              .program = program,
              .schedules = schedules,
              .options = options,
              .vars = vars_new(arena, NULL)};
    for (int t = 0; schedules[t]; t++) f.isas[t] = schedules[t]->isa;
    set_numbers(&f);
    set_targets(&f);
    set_entries(&f, &emitted);
    const char *over = over_budget(&f);
    size_t budget = program->unroll_full ? UNROLLED_BUDGET : BUDGET;
    Writer *h = writer_new(arena, budget, over), *c = writer_new(arena, budget, over);
    writer_fold_constants(c);
    emit_header(&f, h);
    template_expand(arena, c, "head.c.tmpl", f.vars, NULL);
    template_expand(arena, c, "entry.c.tmpl", f.vars, NULL);
    writer_part(c, NULL, "shared", "shared");
    f.names = names_new(arena, program, schedules);
    emit_offsets(&f, c);
    writer_part(c, NULL, "shared", "shared");
    emit_targets(&f, c);
    template_expand(arena, c, "api.c.tmpl", f.vars, NULL);
    if (f.entries[ENTRY_DECODE]) {
        emit_look_pairs(arena, c, program->module->model->name, program->entries[ENTRY_DECODE], f.vars);
        template_expand(arena, c, "decode.c.tmpl", f.entries[ENTRY_DECODE], NULL);
    }
    template_expand(arena, c, "whole.c.tmpl", f.entries[ENTRY_FORWARD], NULL);
    if (f.entries[ENTRY_ENCODE]) template_expand(arena, c, "whole.c.tmpl", f.entries[ENTRY_ENCODE], NULL);
    if (program->arithmetic != ARITHMETIC_FREE) template_expand(arena, c, "foot.c.tmpl", f.vars, NULL);
    writer_part(c, NULL, "shared", "shared");
    emitted.parts = writer_parts(c, &emitted.n_parts);
    Writer *driver = writer_new(arena, BUDGET, over);
    emit_driver(&f, driver, options->serves);
    emitted.driver = writer_text(driver, NULL);
    Writer *unit = writer_new(arena, BUDGET, over);
    template_expand(arena, unit, "unit.c.tmpl", f.vars, NULL);
    emitted.unit = writer_text(unit, NULL);
    emitted.h = writer_text(h, &emitted.h_bytes);
    emitted.c = writer_text(c, &emitted.c_bytes);
    if (options->embedded || options->incbin) embed_weights(&f, &emitted);
    return emitted;
}
