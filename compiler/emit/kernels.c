/* kernels.c: a schedule as C: the kernels of one target, its steps, and the functions that run them. A kernel is a
 * template with its constants; calls whose constants are the same share one. */
#include "names.h"

#include <string.h>

/* A kernel that the file already has: a template, expanded with some constants. */
typedef struct Kernel {
    struct Kernel *next;
    const KernelCall *first; /* the first of the calls that share its constants */
    const char *name;
    const char *own_name; /* another one where the kernel is that of a target that this one is based on */
} Kernel;

enum { KERNEL_LISTS = 64 };

typedef struct TargetEmitter {
    Arena *kept;  /* lives until the file is done */
    Arena *arena; /* holds the texts of a step; emptied before each step */
    Writer *writer;
    const Schedule *schedule;
    const Names *names;
    const PlanSchedule *plan; /* the plan being written */
    EntryKind entry;          /* the plan's entry */
    bool first;               /* of the file; its steps, whose names the others' have too, have comments */
    const Isa *isa;
    const char *model;        /* the prefix of everything */
    const char *prefix;       /* "model_target", the prefix of all names of this target */
    const char *stem;         /* the prefix of the plan's steps, with the plan's name unless that is forward */
    HelperUse uses[3];        /* the helpers that kernels call: the target's, then those of half vectors if needed */
    size_t places[2];         /* where these helpers belong, and to which parts */
    int parts[2];
    Kernel *kernels[KERNEL_LISTS]; /* hashed by their constants */
    SharedCode *shared;
} TargetEmitter;

/* ---------------------------------------------------------------- kernels */

static const char *kernel(TargetEmitter *e, const KernelCall *call);

/* The C type of a packed tensor's numbers. */
static const char *packed_type(const TargetEmitter *e, int packed) {
    return dtype_c_type(e->schedule->program->packed[packed].slot.layout.dtype);
}

/* The C type of an operand's numbers. */
static const char *operand_type(const TargetEmitter *e, Operand o) {
    return o.buffer == NO_BUFFER ? "float" : dtype_c_type(e->plan->plan->buffers[o.buffer].slot.layout.dtype);
}

/* The name of a parameter in the C. */
static const char *name_in_c(const Parameter *parameter, const Argument *a) {
    return a->name ? a->name : parameter->name;
}

static const char *parameter_text(const TargetEmitter *e, const Parameter *parameter, const Argument *a) {
    Arena *arena = e->arena;
    switch (parameter->kind) {
    case PARAMETER_RUN: return arena_printf(arena, "const %s_run *run", e->model);
    case PARAMETER_WRITE: return arena_printf(arena, "%s *%s", operand_type(e, a->operand), parameter->name);
    case PARAMETER_SCRATCH: return arena_printf(arena, "float *%s", parameter->name);
    case PARAMETER_CACHE: return arena_printf(arena, "size_t %s", parameter->name);
    case PARAMETER_MAPS: return arena_printf(arena, "const int *%s", parameter->name);
    case PARAMETER_ROWS: return "size_t rows";
    case PARAMETER_SHARE: return "int thread, int threads";
    case PARAMETER_KEYS:
        if (a->cache != NO_CACHE) return arena_printf(arena, "size_t %s", parameter->name);
        break;
    case PARAMETER_NEXT: return arena_printf(arena, "const void *%s", parameter->name);
    case PARAMETER_WEIGHT:
        return arena_printf(arena, "const %s *%s", packed_type(e, a->packed), name_in_c(parameter, a));
    case PARAMETER_READ: break;
    }
    return arena_printf(arena, "const %s *%s", operand_type(e, a->operand), parameter->name);
}

/* As a kernel passes its own parameter on to another kernel. */
static const char *parameter_name(const Parameter *parameter, const Argument *a) {
    switch (parameter->kind) {
    case PARAMETER_RUN: return "run";
    case PARAMETER_ROWS: return "rows";
    case PARAMETER_SHARE: return "thread, threads";
    default: return name_in_c(parameter, a);
    }
}

/* The constants, and the signature as the list `parameters` of records with a `text` and a `name`. */
static TemplateVars *variables(TargetEmitter *e, const KernelCall *call, const char *name) {
    TemplateVars *vars = vars_new(e->arena, NULL);
    vars_text(vars, "p", arena_printf(e->arena, "%s_%s", e->model, call->v->name));
    vars_text(vars, "prefix", e->model);
    vars_text(vars, "p_model", e->model);
    vars_int(vars, "reproducible", e->schedule->program->arithmetic != ARITHMETIC_FREE);
    for (const Constant *c = call->constants; c < call->constants + call->n_constants; c++) {
        switch (c->kind) {
        case CONSTANT_INTEGER: vars_int(vars, c->name, c->integer); break;
        case CONSTANT_WORD: vars_text(vars, c->name, c->word); break;
        case CONSTANT_REAL: vars_text(vars, c->name, hex_float(e->arena, (double)c->real)); break;
        case CONSTANT_CALLEE: vars_text(vars, c->name, kernel(e, c->callee)); break;
        case CONSTANT_RULES:
            pair_variables(e->arena, vars, c->attention, e->schedule->program, e->names->caches);
            break;
        }
    }
    if (call->comment) vars_text(vars, "comment", call->comment);
    vars_text(vars, "name", name);
    const KernelRow *row = &kernel_rows[call->kernel];
    TemplateList *parameters = vars_list(vars, "parameters");
    for (int i = 0; i < row->n_parameters; i++) {
        if (!call->arguments[i].given) continue;
        TemplateVars *parameter = list_record(parameters);
        vars_text(parameter, "text", parameter_text(e, &row->parameters[i], &call->arguments[i]));
        vars_text(parameter, "name", parameter_name(&row->parameters[i], &call->arguments[i]));
    }
    return vars;
}

static void set_uses(Arena *arena, TemplateVars *vars, const char *helper, bool used) {
    vars_int(vars, arena_printf(arena, "uses_%s", helper), used);
}

/* Sets `uses_NAME` of the helpers that the printed kernels of a table call. */
static void mark_kernels(TargetEmitter *e, TemplateVars *vars, const Isa *isa) {
    for (int i = 0; i < KERNEL_LISTS; i++)
        for (const Kernel *k = e->kernels[i]; k; k = k->next)
            for (int h = 0; h < k->first->n_helpers && k->first->v == isa && k->name == k->own_name; h++)
                set_uses(e->arena, vars, k->first->helpers[h], true);
}

static TemplateVars *helper_vars(TargetEmitter *e, const Isa *isa) {
    TemplateVars *vars = vars_new(e->arena, NULL);
    vars_text(vars, "p", arena_printf(e->arena, "%s_%s", e->model, isa->name));
    vars_text(vars, "prefix", e->model);
    vars_int(vars, "reproducible", e->schedule->program->arithmetic != ARITHMETIC_FREE);
    return vars;
}

/* Sets `uses_NAME` of each helper of math.c.tmpl: nothing calls it yet. */
static void unused_helpers(Arena *arena, TemplateVars *vars) {
    static const char *const others[] = {"exp",    "exp2", "exp2_bf16", "whole_exp", "fma1",
                                         "rotate", "log1", "bit",       "product", "floor", "wholes"};
    for (int kind = 0; kind < ACTIVATION_COUNT; kind++) set_uses(arena, vars, activation_name((Activation)kind), false);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) set_uses(arena, vars, others[i], false);
}

/* Whether a printed kernel of a table calls the helper. */
static bool is_called(const TargetEmitter *e, const Isa *isa, const char *helper) {
    for (int i = 0; i < KERNEL_LISTS; i++)
        for (const Kernel *k = e->kernels[i]; k; k = k->next)
            for (int h = 0; h < k->first->n_helpers && k->first->v == isa && k->name == k->own_name; h++)
                if (strcmp(k->first->helpers[h], helper) == 0) return true;
    return false;
}

/* Sets the model's formulas that are used, and what their functions call. */
static void mark_formulas(TargetEmitter *e, TemplateVars *vars, const Isa *isa) {
    const Model *model = e->schedule->program->module->model;
    TemplateList *formulas = vars_list(vars, "formulas");
    for (int i = 0; i < model->n_formulas; i++) {
        const char *name = activation_name((Activation)(ACTIVATION_COUNT + i));
        if (is_called(e, isa, name))
            formula_variables(e->arena, list_record(formulas), vars, name, model->formulas[i]);
    }
}

/* Begins the list of helpers of a table that are used, which belong at this place. */
static void begin_helpers(TargetEmitter *e, const Isa *isa) {
    int at = e->uses[0].isa != NULL;
    e->uses[at] = (HelperUse){.isa = isa, .needed = at == 0}; /* steps have the target's attribute */
    writer_text(e->writer, &e->places[at]);
    e->parts[at] = writer_part(e->writer, e->isa->name, "helpers", "helpers");
}

/* Inserts the helpers that kernels turned out to use, and the functions of math.c.tmpl behind them. */
static void insert_helpers(TargetEmitter *e) {
    for (int at = e->uses[1].isa != NULL; at >= 0; at--) {
        enum { MOST_BYTES = 1 << 18 };
        const Isa *isa = e->uses[at].isa;
        Writer *helpers = writer_new(e->arena, MOST_BYTES, "the helpers of a target"),
               *functions = writer_new(e->arena, MOST_BYTES, "the functions of a target");
        writer_fold_constants(functions);
        TemplateVars *vars = helper_vars(e, isa);
        unused_helpers(e->arena, vars);
        mark_kernels(e, vars, isa);
        mark_formulas(e, vars, isa);
        template_expand_with(e->arena, functions, "math.c.tmpl", vars, isa, isa, e->uses);
        template_expand_helpers(e->arena, helpers, helper_vars(e, isa), &e->uses[at]);
        writer_insert(e->writer, e->places[at], e->parts[at], functions);
        writer_insert(e->writer, e->places[at], e->parts[at], helpers);
    }
}

/* A new kernel name. It ends in a number if kernels of the same kind have other constants. */
static const char *fresh_name(TargetEmitter *e, const char *stem) {
    const char *single = e->plan->unrolled && !e->schedule->program->unroll_full ? "single_" : "";
    const char *name = arena_printf(e->kept, "%s_%s%s", e->prefix, single, stem);
    size_t size = strlen(name);
    int same = 0;
    for (int i = 0; i < KERNEL_LISTS; i++)
        for (const Kernel *k = e->kernels[i]; k; k = k->next)
            same += strncmp(k->own_name, name, size) == 0 && (k->own_name[size] == '\0' || k->own_name[size] == '_');
    return same ? arena_printf(e->kept, "%s_%d", name, same + 1) : name;
}

/* Whether a target that this one is based on has the function whose text begins at `place`. The text is then taken
 * back, and *name becomes that function's. */
static bool is_shared(TargetEmitter *e, bool kernel, const char **name, size_t place) {
    size_t size;
    const char *text = writer_text(e->writer, &size), *own = *name;
    *name = shared_function(e->shared, e->isa, kernel, own, text + place, size - place);
    if (*name == own) return false;
    writer_take_back(e->writer, place);
    return true;
}

/* Returns the name of the call's kernel, whose template is expanded for the first call with these constants. */
static const char *kernel(TargetEmitter *e, const KernelCall *call) {
    Kernel **list = &e->kernels[call->hash % KERNEL_LISTS];
    for (const Kernel *k = *list; k; k = k->next)
        if (k->first == call->first) return k->name;
    for (int i = 0; i < call->n_constants; i++) /* a kernel's callees stand in front of it */
        if (call->constants[i].kind == CONSTANT_CALLEE) kernel(e, call->constants[i].callee);
    const KernelRow *row = &kernel_rows[call->kernel];
    Kernel *kept = arena_alloc(e->kept, sizeof *kept);
    const char *name = fresh_name(e, call->stem);
    *kept = (Kernel){*list, call->first, name, name};
    *list = kept;
    bool needs_half = call->v != e->isa || call->u != e->isa;
    if (needs_half && !e->uses[1].isa) begin_helpers(e, e->isa->half);
    HelperUse uses[2] = {e->uses[0], e->uses[1]};
    TemplateVars *vars = variables(e, call, kept->name);
    writer_blank(e->writer);
    size_t place = writer_begin(e->writer);
    template_expand_with(e->arena, e->writer, row->template_name, vars, call->v, call->u, e->uses);
    writer_blank(e->writer);
    if (is_shared(e, true, &kept->name, place)) {
        memcpy(e->uses, uses, sizeof uses);
        return kept->name;
    }
    const char *kind = arena_printf(e->arena, "%.*s", (int)strcspn(row->template_name, "."), row->template_name);
    writer_part(e->writer, e->isa->name, kind, kept->name + strlen(e->prefix) + 1);
    return kept->name;
}

/* ---------------------------------------------------------------- calls */

static const char *operand_text(TargetEmitter *e, Operand o) {
    const Slot *slot = &e->plan->plan->buffers[o.buffer].slot;
    const char *base =
        slot->space == SPACE_WORKSPACE
            ? arena_printf(e->arena, "run->workspace + %s", e->names->buffers[e->entry][o.buffer])
            : arena_printf(e->arena, slot->space == SPACE_INPUT ? "run->%s" : "run->out_%s", slot->name);
    if (slot->layout.dtype != DTYPE_F32) /* of the workspace, and without a column */
        return arena_printf(e->arena, "(%s *)(void *)(%s)", dtype_c_type(slot->layout.dtype), base);
    return o.column ? arena_printf(e->arena, "%s + %lld", base, (long long)o.column) : base;
}

static const char *rows_of_kind(Arena *arena, const Plan *plan, RowsKind rows) {
    const int64_t fixed = rows_fixed(plan, rows);
    if (fixed) return arena_printf(arena, "run->sequences * %lld", (long long)fixed);
    switch (rows) {
    case ROWS_CHUNK: return "run->rows";
    case ROWS_SOURCE: return "run->source_rows";
    case ROWS_SEQUENCES: return "run->ended";
    case ROWS_FIXED: break;
    }
    return "0";
}

static const char *rows_text(Arena *arena, const Plan *plan, const Step *s) {
    const char *rows = rows_of_kind(arena, plan, s->rows);
    return s->times == 1 ? rows : arena_printf(arena, "%s * %lld", rows, (long long)s->times);
}

static const char *maps_name(TargetEmitter *e, const Step *s) {
    return arena_printf(e->arena, "%s_%s_maps", e->stem, s->name);
}

static const char *weight_text(TargetEmitter *e, int packed) {
    Dtype dtype = e->schedule->program->packed[packed].slot.layout.dtype;
    const char *cast =
        dtype == DTYPE_F32 ? "" : arena_printf(e->arena, "(const %s *)(const void *)", dtype_c_type(dtype));
    return arena_printf(e->arena, "%srun->weights + %s", cast, e->names->packed[packed]);
}

static const char *next_text(TargetEmitter *e, int packed) {
    const Slot *slot = &e->schedule->program->packed[packed].slot;
    return arena_printf(e->arena, "%s_next(run, %s * sizeof(%s), %lld, thread)", e->model, e->names->packed[packed],
                        packed_type(e, packed), (long long)slot->bytes);
}

static const char *argument_text(TargetEmitter *e, const Step *s, const Parameter *parameter, const Argument *a) {
    switch (parameter->kind) {
    case PARAMETER_RUN: return "run";
    case PARAMETER_READ: case PARAMETER_WRITE: break;
    case PARAMETER_WEIGHT: return weight_text(e, a->packed);
    case PARAMETER_NEXT: return next_text(e, a->packed);
    case PARAMETER_KEYS: case PARAMETER_CACHE:
        if (a->cache == NO_CACHE) break;
        return e->names->caches[a->cache];
    case PARAMETER_MAPS: return maps_name(e, s);
    case PARAMETER_SCRATCH: return "run->scratch";
    case PARAMETER_ROWS: return rows_text(e->arena, e->plan->plan, s);
    case PARAMETER_SHARE: return "thread, run->threads";
    }
    return operand_text(e, a->operand);
}

/* ---------------------------------------------------------------- steps */

static TemplateVars *step_variables(const TargetEmitter *e) {
    TemplateVars *vars = vars_new(e->arena, NULL);
    vars_text(vars, "prefix", e->model);
    vars_int(vars, "unrolled", e->plan->unrolled);
    return vars;
}

/* Prints a step, behind its kernel, and returns its name. */
static const char *emit_step(TargetEmitter *e, const ScheduledStep *scheduled) {
    const Step *s = scheduled->step;
    const KernelCall *call = scheduled->call;
    const KernelRow *row = &kernel_rows[call->kernel];
    TemplateVars *vars = step_variables(e);
    vars_text(vars, "kernel", kernel(e, call));
    const char *name = arena_printf(e->kept, "%s_step_%s", e->stem, s->name);
    vars_text(vars, "step", name);
    vars_text(vars, "comment", e->names->comments[e->entry][s - e->plan->plan->steps]);
    vars_int(vars, "has_comment", e->first);
    TemplateList *arguments = vars_list(vars, "arguments"), *maps = vars_list(vars, "maps");
    for (int i = 0; i < row->n_parameters; i++)
        if (call->arguments[i].given)
            vars_text(list_record(arguments), "text", argument_text(e, s, &row->parameters[i], &call->arguments[i]));
    vars_int(vars, "has_maps", scheduled->maps != NULL);
    if (scheduled->maps) vars_text(vars, "maps_name", maps_name(e, s));
    for (int64_t h = 0; scheduled->maps && h < s->attention.heads; h++)
        vars_int(list_record(maps), "at", scheduled->maps[h]);
    writer_blank(e->writer);
    size_t place = writer_begin(e->writer);
    template_expand(e->arena, e->writer, "step.c.tmpl", vars, e->isa);
    if (!is_shared(e, false, &name, place)) writer_part(e->writer, e->isa->name, "steps", e->plan->plan->graph->name);
    return name;
}

/* Prints a function for each step, and `chunk`, a function that runs all of them on a chunk. `single` names the
 * function that does the same for one sequence and one thread, or is NULL. */
static void emit_plan(TargetEmitter *e, const PlanSchedule *plan, const char *chunk, const char *single) {
    e->plan = plan;
    const char **names = arena_array(e->kept, (size_t)plan->plan->n_steps, sizeof *names);
    for (int i = 0; i < plan->plan->n_steps; i++) {
        arena_clear(e->arena);
        names[i] = emit_step(e, &plan->steps[i]);
    }
    TemplateVars *vars = step_variables(e);
    vars_text(vars, "chunk", chunk);
    vars_text(vars, "tasks", arena_printf(e->arena, "%s_tasks", e->stem));
    vars_text(vars, "entry", plan->plan->graph->name);
    vars_int(vars, "has_single", single != NULL);
    if (single) vars_text(vars, "single", single);
    TemplateList *steps = vars_list(vars, "steps");
    for (int i = 0; i < plan->plan->n_steps; i++) {
        TemplateVars *step = list_record(steps);
        vars_text(step, "step", names[i]);
        vars_int(step, "index", i);
        if (plan->steps[i].optional) vars_text(step, "output", plan->steps[i].optional);
    }
    template_expand(e->arena, e->writer, "chunk.c.tmpl", vars, e->isa);
    writer_part(e->writer, e->isa->name, "steps", plan->plan->graph->name);
}

/* The C text by which a step's work is multiplied. */
static const char *work_of(Arena *arena, const Plan *plan, const Step *s) {
    if (s->kind != STEP_ATTENTION) return rows_text(arena, plan, s);
    const char *pairs = pairs_of(plan, s);
    return arena_printf(arena, "run->%.*s_scores", (int)strcspn(pairs, "_"), pairs);
}

void emit_order(Arena *arena, Writer *writer, const char *model, const PlanSchedule *plan) {
    TemplateVars *vars = vars_new(arena, NULL);
    vars_text(vars, "prefix", model);
    vars_text(vars, "entry", plan->plan->graph->name);
    TemplateList *steps = vars_list(vars, "steps");
    for (int i = 0; i < plan->plan->n_steps; i++) {
        const Step *s = plan->steps[i].step;
        TemplateVars *step = list_record(steps);
        vars_int(step, "index", i);
        if (plan->steps[i].optional) vars_text(step, "output", plan->steps[i].optional);
        vars_text(step, "of", work_of(arena, plan->plan, s));
        vars_int(step, "work", step_work(s));
    }
    writer_blank(writer);
    template_expand(arena, writer, "order.c.tmpl", vars, NULL);
    writer_blank(writer);
}

/* Prints the unrolled code of one sequence, and returns the function that runs it; NULL if there is no such code. */
static const char *emit_single(TargetEmitter *e, const PlanSchedule *single) {
    if (!single) return NULL;
    const char *stem = e->stem;
    e->stem = arena_printf(e->kept, "%s_single", stem);
    const char *chunk = arena_printf(e->kept, "%s_chunk", e->stem);
    emit_plan(e, single, chunk, NULL);
    e->stem = stem;
    return chunk;
}

void emit_target(Arena *arena, Writer *writer, const char *model, const Schedule *schedule, const Names *names,
                 SharedCode *shared, bool first) {
    TargetEmitter e = {.kept = arena,
                       .arena = arena_new(),
                       .writer = writer,
                       .schedule = schedule,
                       .names = names,
                       .shared = shared,
                       .first = first,
                       .isa = schedule->isa,
                       .model = model,
                       .prefix = arena_printf(arena, "%s_%s", model, schedule->isa->name)};
    begin_helpers(&e, e.isa);
    for (int i = 0; i < ENTRY_COUNT; i++) {
        if (!schedule->entries[i]) continue;
        const char *name = schedule->entries[i]->plan->graph->name;
        e.entry = (EntryKind)i;
        e.stem = i == 0 ? e.prefix : arena_printf(arena, "%s_%s", e.prefix, name);
        const char *single = emit_single(&e, schedule->entries[i]->single);
        emit_plan(&e, schedule->entries[i], arena_printf(arena, "%s_%s_chunk", e.prefix, name), single);
    }
    insert_helpers(&e);
    arena_free(e.arena);
}

/* Sets `uses_NAME` of the helpers that masks call by which a row of a state may see later rows. Returns whether one of
 * these masks compares real numbers. */
static bool look_helpers(Arena *arena, TemplateVars *vars, const Plan *decode) {
    bool reals = false;
    unused_helpers(arena, vars);
    for (int i = 0; i < decode->n_steps; i++) {
        const AttentionStep *a = &decode->steps[i].attention;
        if (decode->steps[i].kind != STEP_ATTENTION || !a->looks_ahead) continue;
        reals |= pair_has_singles(a->visible);
        if (pair_reads_bits(a->visible)) set_uses(arena, vars, "bit", true);
        if (pair_applies_to_singles(a->visible, PAIR_mul)) set_uses(arena, vars, "product", true);
        if (pair_applies_to_singles(a->visible, PAIR_floor)) set_uses(arena, vars, "floor", true);
        if (pair_has_repeats(a->visible)) set_uses(arena, vars, "wholes", true);
    }
    return reals;
}

void emit_look_pairs(Arena *arena, Writer *writer, const char *model, const Plan *decode, TemplateVars *file) {
    enum { MOST_BYTES = 1 << 20 };
    const char *prefix = arena_printf(arena, "%s_look", model);
    TemplateVars *vars = vars_new(arena, file);
    if (!look_helpers(arena, vars, decode)) return;
    vars_list(vars, "formulas"); /* none: tests of rows compute no activation */
    const Isa *isa = isa_load(arena, "scalar");
    HelperUse uses[2] = {{.isa = isa, .needed = true}};
    vars_text(vars, "prefix", prefix);
    vars_text(vars, "p", arena_printf(arena, "%s_%s", prefix, isa->name));
    Writer *tests = writer_new(arena, MOST_BYTES, "the tests of a state's rows"); /* tells which helpers they call */
    template_expand_with(arena, tests, "look_pairs.c.tmpl", vars, isa, isa, uses);
    template_expand_helpers(arena, writer, vars, uses);
    template_expand(arena, writer, "math.c.tmpl", vars, isa);
    template_expand(arena, writer, "look_pairs.c.tmpl", vars, isa);
    writer_blank(writer);
}
