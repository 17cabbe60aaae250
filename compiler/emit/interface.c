/* interface.c: what the functions that users call have in common: the fields of their structs, how those reach the
 * kernels, and how they move from chunk to chunk. One set of names an entry, for the templates. */
#include "emit.h"

#include <string.h>

/* An input as the generated structs have it. */
typedef struct Field {
    const char *type, *name;
    const char *step;    /* elements a chunk uses: a C expression */
    const char *comment;
    int64_t table;       /* ids are below it; 0: no ids */
    bool optional, of_source;
} Field;

static const char *items(Arena *arena, const char *rows, int64_t each) {
    return each == 1 ? rows : arena_printf(arena, "%s * %lld", rows, (long long)each);
}

/* Queries and keys of the attentions that read the given mask. */
static const char *pairs_of_mask(const Plan *plan) {
    for (int i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].kind == STEP_ATTENTION && plan->steps[i].a.has_mask) return pairs_of(plan, &plan->steps[i]);
    bug("no attention reads the mask of `%s`", plan->program->module->model->name);
}

static Field field_of(Arena *arena, const Plan *plan, const GraphInput *input) {
    const Model *m = plan->program->module->model;
    const Graph *g = plan->graph;
    const Tensor *t = &g->tensors[input->tensor];
    const char *rows = input->of_source ? "source_rows" : "rows", *name = input->name;
    Field f = {.type = "float", .name = name, .optional = input->optional, .of_source = input->of_source};
    const Stack *stack = !m->decoder || input->of_source || strcmp(g->name, "encode") == 0 ? m->encoder : m->decoder;
    if (t->dtype == DTYPE_I64 && strcmp(name, "prefix_length") != 0) {
        bool segments = strcmp(name, "segments") == 0;
        f.type = "int32_t";
        f.step = rows;
        f.table = segments ? stack->segments : stack->vocab;
        f.comment = arena_printf(arena, "[%s] ids, 0 to %lld%s", rows, (long long)f.table - 1,
                                 input->optional ? "; NULL: all 0" : "");
    } else if (t->dtype == DTYPE_I64) {
        f = (Field){"int32_t", "prefix_lengths", "sequences", "[batch] rows that every row sees; NULL: none", 0, true,
                    false};
    } else if (t->dtype == DTYPE_U8) {
        f.type = "unsigned char";
        const char *pairs = pairs_of_mask(plan);
        f.step = arena_printf(arena, "%.*s_total", (int)strcspn(pairs, "_"), pairs);
        f.comment = "for each sequence of n queries and m keys [n][m]: 1 visible, 0 hidden";
    } else if (strcmp(name, "pixels") == 0) {
        int64_t h = t->dims[1].n, w = t->dims[2].n;
        f.step = items(arena, "sequences", 3 * h * w);
        f.comment = arena_printf(arena, "[batch][3][%lld][%lld]", (long long)h, (long long)w);
    } else {
        f.step = items(arena, rows, t->dims[1].n);
        f.comment = arena_printf(arena, "[%s][%lld]%s", rows, (long long)t->dims[1].n,
                                 input->optional ? "; NULL: the keys" : "");
    }
    return f;
}

static void add_line(Text *text, const char *line) { text_printf(text, "%s%s", text->size ? "\n" : "", line); }

static const char *id_check(Arena *arena, const Model *m, const Field *f, int64_t full_rows) {
    const char *bad = arena_printf(arena, "%s_BAD_TOKEN", upper_case(arena, m->name));
    const char *given = f->optional ? arena_printf(arena, "input->%s && ", f->name) : "";
    if (!full_rows)
        return arena_printf(
            arena, "for (size_t i = 0; %si < %s; i++)\nif (input->%s[i] < 0 || input->%s[i] >= %lld) return %s;", given,
            f->of_source ? "source_rows" : "rows", f->name, f->name, (long long)f->table, bad);
    Text text = text_new(arena);
    for (int64_t i = 0; i < full_rows; i++)
        add_line(&text, arena_printf(arena, "if (%s(input->%s[%lld] < 0 || input->%s[%lld] >= %lld)) return %s;", given,
                                     f->name, (long long)i, f->name, (long long)i, (long long)f->table, bad));
    return text.data;
}

static void set_inputs(Arena *arena, const Plan *plan, TemplateVars *vars) {
    const Model *m = plan->program->module->model;
    const Graph *g = plan->graph;
    Text fields = text_new(arena), null = text_new(arena), check = text_new(arena), set = text_new(arena),
         advance = text_new(arena), driver = text_new(arena);
    for (int i = 0; i < g->n_inputs; i++) {
        Field f = field_of(arena, plan, &g->inputs[i]);
        const char *name = f.name;
        bool keys = strcmp(name, "value") == 0 && f.optional;
        add_line(&fields, arena_printf(arena, "const %s *%s; /* %s */", f.type, name, f.comment));
        if (!f.optional) text_printf(&null, " || !input->%s", name);
        if (f.table)
            add_line(&check, id_check(arena, m, &f,
                                      !plan->program->unroll_full ? 0
                                      : f.of_source               ? plan->source_seq.n
                                                                  : plan->seq.n));
        add_line(&set, arena_printf(arena, keys ? "run.value = input->value ? input->value : input->key;"
                                                : "run.%s = input->%s;", name, name));
        add_line(&advance, arena_printf(arena, "%srun.%s += %s;",
                                        f.optional && !keys ? arena_printf(arena, "if (run.%s) ", name) : "", name,
                                        f.step));
        bool ids = strcmp(name, "target") == 0; /* beside the name of the target in the driver's struct */
        add_line(&driver, arena_printf(arena, "input.%s = call->%s;", name, ids ? "target_ids" : name));
    }
    vars_text(vars, "input_fields", fields.data);
    vars_text(vars, "null_checks", null.data);
    vars_text(vars, "check_ids", check.data);
    vars_text(vars, "set_inputs", set.data);
    vars_text(vars, "advance_inputs", advance.data);
    vars_text(vars, "driver_inputs", driver.data);
}

static RowsKind rows_of_output(const Plan *plan, int output) {
    for (int b = 0; b < plan->n_buffers; b++)
        if (plan->buffers[b].kind == BUFFER_OUTPUT && plan->buffers[b].io == output) return plan->buffers[b].rows;
    return ROWS_CHUNK;
}

/* Maps of one name are one array; its first layer speaks for it. */
static bool first_of_name(const Graph *g, int output) {
    for (int o = 0; o < output; o++)
        if (strcmp(g->outputs[o].name, g->outputs[output].name) == 0) return false;
    return true;
}

static const char *pairs_of_output(const Plan *plan, int output) {
    for (int i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].kind == STEP_ATTENTION && plan->steps[i].first_export == output)
            return pairs_of(plan, &plan->steps[i]);
    bug("no step makes the map `%s`", plan->graph->outputs[output].name);
}

static const char *map_comment(Arena *arena, const char *name, const char *pairs, int64_t count) {
    const char *n = strcmp(pairs, "self_pairs") == 0    ? "n rows (and the m before and with them) [%lld][n][m]"
                    : strcmp(pairs, "cross_pairs") == 0 ? "n rows over m of the source, or keys [%lld][n][m]"
                                                        : "n rows of the source [%lld][n][n]";
    const char *shape = arena_printf(arena, "%.*s%lld%s", (int)(strstr(n, "%lld") - n), n, (long long)count,
                                     strstr(n, "%lld") + 4);
    return arena_printf(arena, "float *%s; /* for each sequence of %s: the exported layers' heads, layer by layer */",
                        name, shape);
}

static void set_outputs(Arena *arena, const Plan *plan, TemplateVars *vars) {
    const Graph *g = plan->graph;
    Text fields = text_new(arena), set = text_new(arena), advance = text_new(arena), driver = text_new(arena),
         widths = text_new(arena);
    const char *P = upper_case(arena, plan->program->module->model->name);
    for (int o = 0; o < g->n_outputs; o++) {
        const GraphOutput *out = &g->outputs[o];
        const char *name = out->name;
        if (!first_of_name(g, o)) continue;
        if (out->layer >= 0) {
            const char *pairs = pairs_of_output(plan, o);
            int64_t count = map_count(g, name);
            add_line(&fields, map_comment(arena, name, pairs, count));
            if (!plan->cached) /* decode counts from the call's first row */
                add_line(&advance, arena_printf(arena, "if (run.out_%s) run.out_%s += %.*s_total * %lld;", name, name,
                                                (int)strcspn(pairs, "_"), pairs, (long long)count));
        } else {
            RowsKind kind = rows_of_output(plan, o);
            const char *rows = kind == ROWS_SEQUENCES ? (plan->cached ? "ended" : "sequences")
                               : kind == ROWS_SOURCE  ? "source_rows"
                                                      : "rows";
            long long columns = g->tensors[out->tensor].dims[1].n;
            add_line(&fields, arena_printf(arena, "float *%s; /* [%s][%lld]%s */", name,
                                           kind == ROWS_SEQUENCES ? "batch" : rows, columns,
                                           plan->cached && kind == ROWS_SEQUENCES ? " of each one's last row" : ""));
            add_line(&advance,
                     arena_printf(arena, "if (run.out_%s) run.out_%s += %s * %lld;", name, name, rows, columns));
            add_line(&widths, arena_printf(arena, "%s_%s_WIDTH = %lld,", P, upper_case(arena, name), columns));
        }
        add_line(&set, arena_printf(arena, "run.out_%s = output->%s;", name, name));
        add_line(&driver, arena_printf(arena, "output.%s = call->%s;", name, name));
    }
    vars_text(vars, "output_fields", fields.data);
    vars_text(vars, "output_widths", widths.data ? widths.data : "");
    vars_text(vars, "set_outputs", set.data);
    vars_text(vars, "advance_outputs", advance.data);
    vars_text(vars, "driver_outputs", driver.data);
}

static bool has_pairs(const Plan *plan, const char *pairs) {
    for (int i = 0; plan && i < plan->n_steps; i++) {
        const Step *s = &plan->steps[i];
        if (s->kind == STEP_ATTENTION && (s->first_export >= 0 || s->a.has_mask) &&
            strcmp(pairs_of(plan, s), pairs) == 0)
            return true;
    }
    return false;
}

static bool has_input(const Plan *plan, const char *name) {
    for (int i = 0; plan && i < plan->graph->n_inputs; i++)
        if (strcmp(plan->graph->inputs[i].name, name) == 0) return true;
    return false;
}

/* Arrays of a call in front of its buffers: where they stand in the workspace, in bytes. */
static int64_t set_control(const Plan *plan, TemplateVars *vars) {
    int64_t at = round_up(4 * (plan->rows + 1), 64);
    const struct { const char *name; bool wanted; int64_t bytes;
    } arrays[] = {{"source_starts_at", plan->source_seq.n > 0, 4 * (plan->source_rows + 1)},
                  {"self_pairs_at", has_pairs(plan, "self_pairs"), 8 * plan->rows},
                  {"source_pairs_at", has_pairs(plan, "source_pairs"), 8 * plan->rows},
                  {"cross_pairs_at", has_pairs(plan, "cross_pairs"), 8 * plan->rows},
                  {"map_rows_at", plan->cached, 4 * plan->rows},
                  {"map_first_at", plan->cached, 4 * plan->rows}};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        vars_int(vars, arrays[i].name, at);
        if (arrays[i].wanted) at += round_up(arrays[i].bytes, 64);
    }
    vars_int(vars, "control_bytes", at);
    return at;
}

EntrySizes set_entry(Arena *arena, const Plan *plan, TemplateVars *vars) {
    bool encode = plan == plan->program->encode;
    EntrySizes sizes = {.control_bytes = set_control(plan, vars), .scratch_bytes = 4 * plan->scratch_floats};
    sizes.workspace_bytes = sizes.control_bytes + 4 * round_up(plan->workspace_floats, 16);
    set_inputs(arena, plan, vars);
    set_outputs(arena, plan, vars);
    const struct { const char *name; int64_t value;
    } numbers[] = {{"seq", plan->seq.n},
                   {"seq_exact", plan->seq.exact},
                   {"rows", plan->rows},
                   {"has_source_rows", plan->source_seq.n > 0},
                   {"source_seq", plan->source_seq.n},
                   {"source_exact", plan->source_seq.exact},
                   {"source_rows", plan->source_rows},
                   {"is_encode", encode},
                   {"full", plan->program->unroll_full},
                   {"workspace_bytes", sizes.workspace_bytes},
                   {"scratch_bytes", sizes.scratch_bytes},
                   {"workspace_floats", round_up(plan->workspace_floats, 16)},
                   {"has_tokens", has_input(plan, "tokens")},
                   {"has_prefix", has_input(plan, "prefix_length")},
                   {"has_self_pairs", has_pairs(plan, "self_pairs")},
                   {"has_source_pairs", has_pairs(plan, "source_pairs")},
                   {"has_cross_pairs", has_pairs(plan, "cross_pairs")}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) vars_int(vars, numbers[i].name, numbers[i].value);
    vars_text(vars, "entry", plan->graph->name);
    vars_text(vars, "in_type", encode ? "source" : "input");
    vars_text(vars, "out_type", encode ? "encoded" : "output");
    vars_text(vars, "WORKSPACE", encode ? "ENCODE_WORKSPACE" : "WORKSPACE");
    vars_text(vars, "source_lengths", plan->program->module->model->alone ? "key_lengths" : "source_lengths");
    return sizes;
}

static void add_fields(Arena *arena, const Plan *plan, Text *in, Text *out) {
    for (int i = 0; i < plan->graph->n_inputs; i++) {
        Field f = field_of(arena, plan, &plan->graph->inputs[i]);
        const char *line = arena_printf(arena, "const %s *%s;", f.type, f.name);
        if (!strstr(in->data, line)) add_line(in, line);
    }
    for (int o = 0; o < plan->graph->n_outputs; o++) {
        const char *line = arena_printf(arena, "float *out_%s;", plan->graph->outputs[o].name);
        if (!strstr(out->data, line)) add_line(out, line);
    }
}

/* One struct carries the inputs and outputs of every entry to the kernels. */
void set_run(Arena *arena, const Program *program, TemplateVars *vars) {
    const Plan *const plans[] = {program->forward, program->encode, program->decode};
    Text in = text_new(arena), out = text_new(arena);
    for (int p = 0; p < 3; p++)
        if (p == 0 || plans[p]) add_fields(arena, plans[p], &in, &out);
    vars_text(vars, "run_inputs", in.data);
    vars_text(vars, "run_outputs", out.data);
    static const char *const kinds[] = {"self_pairs", "source_pairs", "cross_pairs"};
    for (int k = 0; k < 3; k++)
        vars_int(vars, arena_printf(arena, "has_%s", kinds[k]),
                 has_pairs(plans[0], kinds[k]) || has_pairs(plans[1], kinds[k]) || has_pairs(plans[2], kinds[k]));
    vars_int(vars, "has_source_rows", program->forward->source_seq.n > 0);
    vars_int(vars, "has_decode_maps",
             has_pairs(program->decode, "self_pairs") || has_pairs(program->decode, "cross_pairs"));
}

static uint64_t state_hash(Arena *arena, const Program *program) {
    Text text = text_new(arena);
    for (int i = 0; i < program->n_caches; i++) {
        const Cache *c = &program->caches[i];
        text_printf(&text, "%s %d %d %lld %lld %lld %lld\n", c->name, c->panels, c->ring, (long long)c->heads,
                    (long long)c->width, (long long)c->slots, (long long)c->offset);
    }
    return hash_bytes(0, text.data, text.size);
}

/* Rows beyond which all angles are others (longrope): a state may not be carried across. */
static void set_switches(Arena *arena, const Program *program, TemplateVars *vars) {
    Text go = text_new(arena), back = text_new(arena);
    const char *P = upper_case(arena, program->module->model->name);
    for (int i = 0; program->decode && i < program->decode->n_steps; i++) {
        const Step *s = &program->decode->steps[i];
        if (s->kind != STEP_ROPE || !s->a.offset) continue;
        long long at = s->a.offset;
        const char *line = arena_printf(
            arena, "if (state->rows > 0 && state->rows <= %lld && state->rows + length > %lld) return %s_START_AGAIN;",
            at, at, P);
        if (strstr(go.data, line)) continue;
        add_line(&go, line);
        add_line(&back, arena_printf(arena, "if (rows > 0 && rows <= %lld && held->rows > %lld) return %s_TOO_FAR;", at,
                                     at, P));
    }
    vars_int(vars, "has_switch", go.size > 0);
    vars_text(vars, "switch_checks", go.data);
    vars_text(vars, "rewind_checks", back.data);
}

/* Sizes of states, and the table by which one is copied. */
void set_states(Arena *arena, const Program *program, TemplateVars *vars, int64_t *state_bytes, int64_t *source_bytes) {
    enum { STATE_HEADER = 64 };
    const Model *m = program->module->model;
    Text table = text_new(arena);
    int64_t ring_slots = 0;
    for (int i = 0; i < program->n_caches; i++) {
        const Cache *c = &program->caches[i];
        if (c->of_source) continue;
        text_printf(&table, "%s{%lld, %lld, %lld, %lld, %d}", table.size ? ", " : "", (long long)c->offset,
                    (long long)c->heads, (long long)c->width, (long long)c->slots, c->panels);
        if (c->ring && (!ring_slots || c->slots < ring_slots)) ring_slots = c->slots;
    }
    *state_bytes = program->decode ? STATE_HEADER + 4 * program->state_floats : 0;
    *source_bytes = program->encode ? STATE_HEADER + 4 * program->source_floats : 0;
    vars_int(vars, "has_decode", program->decode != NULL);
    vars_int(vars, "has_encode", program->encode != NULL);
    vars_int(vars, "has_rings", ring_slots > 0);
    vars_int(vars, "ring_slots", ring_slots);
    vars_int(vars, "rewind", program->rewind);
    vars_int(vars, "state_bytes", *state_bytes);
    vars_int(vars, "source_bytes", *source_bytes);
    vars_int(vars, "encoder_seq", m->encoder ? m->encoder->seq.n : 0);
    vars_int(vars, "decoder_vocab", m->decoder ? m->decoder->vocab : 0);
    Text end = text_new(arena);
    for (int64_t i = 0; i < m->n_end; i++) text_printf(&end, "%s%lld", i ? ", " : "", (long long)m->end[i]);
    vars_int(vars, "start_token", m->start);
    vars_int(vars, "pad_token", m->pad);
    vars_int(vars, "end_tokens", m->n_end);
    vars_text(vars, "end_token_list", end.data ? end.data : "");
    vars_int(vars, "decode_rows", program->decode ? program->decode->rows : 0);
    set_switches(arena, program, vars);
    vars_int(vars, "has_caches", table.size > 0);
    vars_text(vars, "cache_table", table.data ? table.data : "");
    vars_text(vars, "state_hash", arena_printf(arena, "0x%016llx", (unsigned long long)state_hash(arena, program)));
}
