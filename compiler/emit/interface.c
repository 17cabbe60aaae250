/* interface.c: what the templates of the functions that users call are told: the arrays of their structs, the sizes of
 * memory and states. One set of names an entry. */
#include "emit.h"

#include <math.h>
#include <string.h>

/* Whether a step reads the input for its mask or its scores. */
static bool reads_input(const Step *s, const InputKind *kind) {
    if (s->kind != STEP_ATTENTION) return false;
    bool found = mask_reads(&s->attention, kind);
    for (int i = 0; i < s->attention.n_score_rows; i++) found |= s->attention.score_rows[i] == kind;
    return found;
}

/* Queries and keys of the attentions that read an input of pairs. Where bounds decide all that is read of it, no step
 * does; it is then of the rows of an encoder. */
static const char *pairs_of_input(const Plan *plan, const GraphInput *input) {
    for (int i = 0; i < plan->n_steps; i++)
        if (reads_input(&plan->steps[i], input->kind)) return pairs_of(plan, &plan->steps[i]);
    return input->of_source ? "source_pairs" : "self_pairs";
}

/* The kinds of pairs, and the variables of whole.c.tmpl that count the queries and keys of a sequence. */
static const struct { const char *name, *pairs, *queries, *keys;
} kinds_of_pairs[] = {{"self", "self_pairs", "length", "length"},
                      {"source", "source_pairs", "source_length", "source_length"},
                      {"cross", "cross_pairs", "length", "source_length"}};
enum { KINDS_OF_PAIRS = sizeof kinds_of_pairs / sizeof *kinds_of_pairs };

/* The variable that counts the pairs of all sequences of a chunk: "self_total" for "self_pairs". */
static const char *total_of(Arena *arena, const char *pairs) {
    return arena_printf(arena, "%.*s_total", (int)strcspn(pairs, "_"), pairs);
}

static const char *rows_of_input(Arena *arena, const Plan *plan, const GraphInput *input) {
    switch (input->kind->rows) {
    case PER_ROW: return input->of_source ? "source_rows" : "rows";
    case PER_SEQUENCE: return "sequences";
    case PER_PAIR: return total_of(arena, pairs_of_input(plan, input));
    }
    return "0";
}

/* Sets what integers an input holds that are no ids: `least` to `most`, which are `bounded` where 32 bits hold others,
 * too; `usual` is one of them. */
static void set_integers(const GraphInput *input, bool has_table, TemplateVars *record) {
    const int64_t least = input->least, most = input->most;
    vars_int(record, "of_integers", !has_table && input->kind->rows != PER_SEQUENCE && input->kind->dtype == DTYPE_I64);
    vars_int(record, "least", least);
    vars_int(record, "most", most);
    vars_int(record, "wide", input->kind->wide);
    vars_int(record, "bounded", input->kind->dtype == DTYPE_I64 && (least > INT32_MIN || most < INT32_MAX));
    vars_int(record, "usual", least > 0 ? least : most < 0 ? most : 0);
}

/* Sets what an input that the spec states is: an `own_number` of the sequence, or one that a call `of_rows` takes next
 * to the tokens, and, where its real numbers are `ranged`, their `low` and `high`, between which `usual_real` is. */
static void set_own(Arena *arena, const GraphInput *input, TemplateVars *record) {
    const bool own = role_is_of_rows(input->kind->role), real = input->kind->dtype == DTYPE_F32;
    vars_int(record, "own_number", input_is_own_number(input->kind));
    vars_int(record, "of_rows", own && input->kind->rows != PER_PAIR);
    vars_int(record, "ranged", graph_input_is_ranged(input));
    vars_text(record, "low", own && real ? hex_float(arena, input->range.low) : "");
    vars_text(record, "high", own && real ? hex_float(arena, input->range.high) : "");
    if (!own || !real) return;
    const float low = (float)input->range.low, high = (float)input->range.high;
    vars_text(record, "usual_real", number_text(arena, f32_written(fminf(fmaxf(0.5f, low), high))));
    vars_text(record, "range", arena_printf(arena, "%s to %s", number_text(arena, f32_written(low)),
                                            number_text(arena, f32_written(high))));
}

/* Sets whether an input is `of_pairs`, and then the variables `queries` and `keys` that count those of a sequence. */
static void set_pairs_of(const Plan *plan, const GraphInput *input, TemplateVars *record) {
    vars_int(record, "of_pairs", input->kind->rows == PER_PAIR);
    if (input->kind->rows != PER_PAIR) return;
    int k = 0;
    while (strcmp(kinds_of_pairs[k].pairs, pairs_of_input(plan, input)) != 0) k++;
    vars_text(record, "queries", kinds_of_pairs[k].queries);
    vars_text(record, "keys", kinds_of_pairs[k].keys);
}

/* A record of `inputs`: {role, ROLE, name, type, rows, columns, sizes, optional, of_source, of_two_widths, table,
 * default}. A chunk has `rows`, which is an expression of C, times `columns` elements. `sizes` {n} are those dimensions
 * whose product is `columns`, which has a name where it is one `of_two_widths`. Ids are below `table`, which is 0 where
 * there are none. NULL stands for the array `default`, if it is not "". */
static void add_input(Arena *arena, const Plan *plan, const GraphInput *input, TemplateVars *record) {
    static const int first[] = {[PER_ROW] = 1, [PER_SEQUENCE] = 0, [PER_PAIR] = 2}; /* dimension of an item */
    const InputKind *kind = input->kind;
    const Tensor *t = &plan->graph->tensors[input->tensor];
    int64_t columns = 1;
    TemplateList *sizes = vars_list(record, "sizes");
    for (int d = first[kind->rows]; d < t->rank; d++) {
        vars_int(list_record(sizes), "n", t->dims[d].n);
        columns *= t->dims[d].n;
    }
    bool keys_instead = input->optional && kind->absent == ABSENT_THE_KEYS;
    vars_text(record, "role", kind->name);
    vars_text(record, "ROLE", upper_case(arena, kind->name));
    vars_text(record, "name", kind->array);
    vars_text(record, "type", input_c_type(kind));
    vars_text(record, "rows", rows_of_input(arena, plan, input));
    vars_int(record, "columns", columns);
    const bool kept = plan->cached && input_is_own_number(kind);
    vars_int(record, "optional", kind->absent == ABSENT_ZEROS || keys_instead || kept);
    vars_int(record, "of_source", input->of_source);
    vars_int(record, "of_two_widths", kind->role == IN_source_features || kind->role == IN_target_features);
    vars_int(record, "is_number", input_is_number(kind));
    set_integers(input, graph_table_rows(plan->graph, input) > 0, record);
    set_own(arena, input, record);
    set_pairs_of(plan, input, record);
    vars_int(record, "table", graph_table_rows(plan->graph, input));
    vars_text(record, "default", keys_instead ? input_kinds[IN_key].array : "");
}

static RowsKind rows_of_output(const Plan *plan, int output) {
    for (int b = 0; b < plan->n_buffers; b++)
        if (plan->buffers[b].slot.space == SPACE_OUTPUT && plan->buffers[b].io == output) return plan->buffers[b].rows;
    return ROWS_CHUNK;
}

static const char *pairs_of_output(const Plan *plan, int output) {
    for (int i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].kind == STEP_ATTENTION && plan->steps[i].attention.first_export == output)
            return pairs_of(plan, &plan->steps[i]);
    bug("no step makes the map `%s`", plan->graph->outputs[output].name);
}

/* A record of `outputs`: {name, NAME, is_map, is_lse, rows, columns}, `rows` and `columns` as those of an input. The
 * logarithms of sums have {of_two}, which says that each head has two softmaxes. A map has {pairs}, and others have
 * {for_sequences, of_last_rows}: a row a sequence, and that it is of the last row of each. */
static void add_output(Arena *arena, const Plan *plan, int output, TemplateVars *record) {
    const Graph *g = plan->graph;
    const GraphOutput *out = &g->outputs[output];
    bool is_map = out->layer >= 0, is_lse = out->role == OUT_lse;
    vars_text(record, "name", out->name);
    vars_text(record, "NAME", upper_case(arena, out->name));
    vars_int(record, "is_map", is_map);
    vars_int(record, "is_lse", is_lse);
    vars_int(record, "of_two", is_lse && graph_output_heads(g, out->role) > out->n_heads);
    const Dim *dims = g->tensors[out->tensor].dims;
    vars_int(record, "columns", is_map || is_lse ? graph_output_heads(g, out->role) : dims[1].n);
    if (is_map) {
        const char *pairs = pairs_of_output(plan, output);
        vars_text(record, "pairs", pairs);
        vars_text(record, "rows", total_of(arena, pairs));
        return;
    }
    RowsKind kind = rows_of_output(plan, output);
    bool for_sequences = kind == ROWS_SEQUENCES, of_last_rows = for_sequences && plan->cached;
    vars_int(record, "for_sequences", for_sequences);
    vars_int(record, "of_last_rows", of_last_rows);
    vars_text(record, "rows", of_last_rows           ? "ended"
                              : for_sequences        ? "sequences"
                              : kind == ROWS_SOURCE  ? "source_rows"
                                                     : "rows");
}

static void set_arrays(Arena *arena, const Plan *plan, TemplateVars *vars) {
    const Graph *g = plan->graph;
    TemplateList *inputs = vars_list(vars, "inputs"), *outputs = vars_list(vars, "outputs");
    for (int i = 0; i < g->n_inputs; i++) add_input(arena, plan, &g->inputs[i], list_record(inputs));
    for (int o = 0; o < g->n_outputs; o++) { /* the map of the first layer stands for all that share its array */
        const bool first = graph_output_of(g, g->outputs[o].role) == &g->outputs[o];
        if (first) add_output(arena, plan, o, list_record(outputs));
    }
}

static bool has_pairs(const Plan *plan, const char *pairs) {
    for (int i = 0; plan && i < plan->graph->n_inputs; i++) {
        const GraphInput *input = &plan->graph->inputs[i];
        if (input->kind->rows == PER_PAIR && strcmp(pairs_of_input(plan, input), pairs) == 0) return true;
    }
    for (int i = 0; plan && i < plan->n_steps; i++) {
        const Step *s = &plan->steps[i];
        if (s->kind != STEP_ATTENTION || strcmp(pairs_of(plan, s), pairs) != 0) continue;
        if (s->attention.first_export >= 0) return true;
    }
    return false;
}

/* Sets `pair_kinds` {name, queries, keys} to the kinds of pairs of queries and keys that a call of the plan counts, or
 * that a call of any plan counts if it is NULL. A sequence has as many of them as the product of two variables of
 * whole.c.tmpl, which `queries` and `keys` name. */
static void set_pairs(const Program *program, const Plan *plan, TemplateVars *vars) {
    TemplateList *list = vars_list(vars, "pair_kinds");
    for (int k = 0; k < KINDS_OF_PAIRS; k++) {
        bool counted = false;
        const char *pairs = kinds_of_pairs[k].pairs;
        for (int p = 0; p < ENTRY_COUNT; p++)
            counted |= (!plan || plan == program->entries[p]) && has_pairs(program->entries[p], pairs);
        if (!counted) continue;
        TemplateVars *record = list_record(list);
        vars_text(record, "name", kinds_of_pairs[k].name);
        vars_text(record, "queries", kinds_of_pairs[k].queries);
        vars_text(record, "keys", kinds_of_pairs[k].keys);
    }
}

/* Whether calls of decode fill maps of attention, or read a mask by the same counts. */
static bool has_decode_maps(const Plan *plan) {
    return plan && plan->cached && (has_pairs(plan, "self_pairs") || has_pairs(plan, "cross_pairs"));
}

/* Arrays of a call in front of its buffers: where they stand in the workspace, in bytes, as constants of the C. */
static int64_t set_control(Arena *arena, const Plan *plan, TemplateVars *vars) {
    int64_t at = round_up(4 * (plan->rows + 1), 64);
    const char *model = plan->program->module->model->name, *entry = plan->graph->name;
    const struct { const char *name; bool wanted; int64_t count, bytes;
    } arrays[] = {{"source_starts_at", plan->source_seq.n > 0, plan->source_rows + 1, 4},
                  {"self_pairs_at", has_pairs(plan, "self_pairs"), plan->rows, 8},
                  {"source_pairs_at", has_pairs(plan, "source_pairs"), plan->rows, 8},
                  {"cross_pairs_at", has_pairs(plan, "cross_pairs"), plan->rows, 8},
                  {"map_rows_at", has_decode_maps(plan), plan->rows, 4},
                  {"map_first_at", has_decode_maps(plan), plan->rows, 4}};
    TemplateList *controls = vars_list(vars, "controls");
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        if (!arrays[i].wanted) continue;
        TemplateVars *record = list_record(controls);
        const char *name = arena_printf(arena, "%s_%s_%s", model, entry, arrays[i].name);
        vars_text(vars, arrays[i].name, name);
        vars_text(record, "name", name);
        vars_int(record, "at", at);
        vars_int(record, "count", arrays[i].count);
        at += round_up(arrays[i].bytes * arrays[i].count, 64);
    }
    vars_int(vars, "control_bytes", at);
    return at;
}

/* The names of the steps as C has them, in lines of a macro. */
static const char *step_names(Arena *arena, const Plan *plan) {
    enum { MOST_COLUMNS = C_COLUMNS - 2 }; /* a backslash follows */
    Text text = text_new(arena);
    size_t column = C_COLUMNS;
    for (int i = 0; i < plan->n_steps; i++) {
        const char *name = arena_printf(arena, "\"%s\"%s", plan->steps[i].name, i + 1 < plan->n_steps ? "," : "");
        column += 1 + strlen(name);
        const bool fits = column <= MOST_COLUMNS;
        if (!fits) column = 4 + strlen(name);
        text_printf(&text, "%s%s", fits ? " " : " \\\n    ", name);
    }
    return text.data;
}

EntrySizes set_entry(Arena *arena, const Plan *plan, int64_t scratch_bytes, TemplateVars *vars) {
    bool encode = plan == plan->program->entries[ENTRY_ENCODE];
    const Stack *encoder = plan->program->module->model->encoder;
    EntrySizes sizes = {.control_bytes = set_control(arena, plan, vars), .scratch_bytes = scratch_bytes};
    sizes.workspace_bytes = sizes.control_bytes + round_up(plan->workspace_bytes, ALIGNMENT);
    set_arrays(arena, plan, vars);
    const struct { const char *name; int64_t value;
    } numbers[] = {{"seq", plan->seq.n},
                   {"seq_exact", plan->seq.exact},
                   {"rows", plan->rows},
                   {"has_source_rows", plan->source_seq.n > 0},
                   {"source_seq", plan->source_seq.n},
                   {"source_exact", plan->source_seq.exact},
                   {"source_rows", plan->source_rows},
                   {"mel_bins", encoder ? encoder->mel_bins : 0},
                   {"mel_frames", encoder ? encoder->mel_frames : 0},
                   {"is_encode", encode},
                   {"full", plan->program->unroll_full},
                   {"workspace_bytes", sizes.workspace_bytes},
                   {"scratch_bytes", sizes.scratch_bytes},
                   {"workspace_floats", layout_elements(&LAYOUT_ROWS, round_up(plan->workspace_bytes, ALIGNMENT))},
                   {"has_tokens", graph_input(plan->graph, IN_tokens) != NULL},
                   {"has_prefix", graph_input(plan->graph, IN_prefix_length) != NULL}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) vars_int(vars, numbers[i].name, numbers[i].value);
    set_pairs(plan->program, plan, vars);
    vars_text(vars, "entry", plan->graph->name);
    bool forward = plan == plan->program->entries[ENTRY_FORWARD];
    vars_text(vars, "STEP", forward ? "STEP" : encode ? "ENCODE_STEP" : "DECODE_STEP");
    vars_int(vars, "n_steps", plan->n_steps);
    vars_text(vars, "step_names", step_names(arena, plan));
    vars_text(vars, "in_type", forward ? "input" : encode ? "source" : "rows");
    vars_text(vars, "out_type", forward ? "output" : encode ? "encoded" : "decoded");
    vars_text(vars, "WORKSPACE", forward ? "WORKSPACE" : encode ? "ENCODE_WORKSPACE" : "DECODE_WORKSPACE");
    vars_text(vars, "target", graph_input(plan->graph, IN_target_features) ? "target_features" : "target");
    const char *p = plan->program->module->model->name;
    const Plan *decode = plan->program->entries[ENTRY_DECODE];
    const bool tokens = !decode || !graph_input(decode->graph, IN_target_features); /* prefill and step take tokens */
    vars_text(vars, "appends",
              tokens ? arena_printf(arena, "%s_prefill and %s_step", p, p) : arena_printf(arena, "%s_decode", p));
    vars_text(vars, "source_lengths", plan->program->module->model->alone ? "key_lengths" : "source_lengths");
    return sizes;
}

/* One struct carries the inputs {name, type} and outputs {name} of every entry to the kernels. */
static void set_run_arrays(const Program *program, TemplateVars *vars) {
    TemplateList *inputs = vars_list(vars, "run_inputs"), *outputs = vars_list(vars, "run_outputs");
    bool writes[OUT_COUNT] = {false};
    for (int i = 0; i < program->module->n_inputs; i++) {
        const InputKind *kind = program->module->inputs[i];
        TemplateVars *record = list_record(inputs);
        vars_text(record, "name", kind->array);
        vars_text(record, "type", input_c_type(kind));
    }
    for (int p = 0; p < ENTRY_COUNT; p++) {
        const Graph *g = program->entries[p] ? program->entries[p]->graph : NULL;
        for (int o = 0; g && o < g->n_outputs; o++) {
            OutputRole role = g->outputs[o].role;
            if (!writes[role]) vars_text(list_record(outputs), "name", output_name(role));
            writes[role] = true;
        }
    }
}

/* `input_roles` {name, role} of the module and `output_roles` {name} of all that there are, for the driver. */
static void set_roles(const Module *module, TemplateVars *vars) {
    TemplateList *inputs = vars_list(vars, "input_roles"), *outputs = vars_list(vars, "output_roles");
    for (int i = 0; i < module->n_inputs; i++) {
        TemplateVars *record = list_record(inputs);
        vars_text(record, "name", module->inputs[i]->name);
        vars_int(record, "role", module->inputs[i]->role);
    }
    vars_int(vars, "MOST_INPUTS", MOST_INPUTS);
    for (int role = 0; role < OUT_COUNT; role++) vars_text(list_record(outputs), "name", output_name((OutputRole)role));
}

void set_run(const Program *program, TemplateVars *vars) {
    set_run_arrays(program, vars);
    set_roles(program->module, vars);
    set_pairs(program, NULL, vars);
    vars_int(vars, "has_source_rows", program->entries[ENTRY_FORWARD]->source_seq.n > 0);
    vars_int(vars, "has_decode_maps", has_decode_maps(program->entries[ENTRY_DECODE]));
}

static uint64_t state_hash(Arena *arena, const Program *program) {
    Text text = text_new(arena);
    for (int i = 0; i < program->n_caches; i++) {
        const Cache *c = &program->caches[i];
        const char *dtype = c->slot.layout.dtype == DTYPE_F32 ? "" : dtype_name(c->slot.layout.dtype);
        text_printf(&text, "%s %d %d %lld %lld %lld %lld%s\n", c->slot.name, c->slot.layout.panel > 0, c->ring,
                    (long long)c->heads, (long long)c->width, (long long)c->slots, (long long)slot_element(&c->slot),
                    dtype);
    }
    return hash_bytes(0, text.data, text.size);
}

static bool has_switch(const Plan *decode, int step) {
    return decode->steps[step].kind == STEP_ROPE && decode->steps[step].rope.second_table > 0;
}

/* `switches`: {at}, the rows beyond which all angles are others (longrope): a state may not be carried across. */
static void set_switches(const Plan *decode, TemplateVars *vars) {
    TemplateList *switches = vars_list(vars, "switches");
    for (int i = 0; decode && i < decode->n_steps; i++) {
        if (!has_switch(decode, i)) continue;
        bool known = false;
        for (int k = 0; k < i; k++)
            known |= has_switch(decode, k) && decode->steps[k].rope.second_table == decode->steps[i].rope.second_table;
        if (!known) vars_int(list_record(switches), "at", decode->steps[i].rope.second_table);
    }
}

static void add_cache(TemplateList *caches, const Cache *c, int64_t offset, int64_t row, int64_t slots, bool panels) {
    TemplateVars *record = list_record(caches);
    vars_int(record, "offset", offset);
    vars_int(record, "heads", c->heads);
    vars_int(record, "row", row);
    vars_int(record, "slots", slots);
    vars_int(record, "panels", panels);
}

/* `caches`: {offset, heads, row, slots, panels} of the numbers of each cache of a state, and of their scales or ranges,
 * offsets and rows in bytes, by which a state is copied. Returns how many slots the smallest ring has, or 0. */
static int64_t set_caches(const Program *program, TemplateVars *vars) {
    TemplateList *caches = vars_list(vars, "caches");
    int64_t ring_slots = 0;
    for (int i = 0; i < program->n_caches; i++) {
        const Cache *c = &program->caches[i];
        if (c->slot.space == SPACE_SOURCE) continue;
        add_cache(caches, c, c->slot.offset, c->width * (int64_t)dtype_bytes(c->slot.layout.dtype), c->slots,
                  c->slot.layout.panel > 0);
        if (c->scales) add_cache(caches, c, c->slot.offset + c->scales, sizeof(float), c->slots, false);
        if (c->ranges) add_cache(caches, c, c->slot.offset + c->ranges, 2 * sizeof(int32_t), c->slots / PANEL, false);
        if (c->ring && (!ring_slots || c->slots < ring_slots)) ring_slots = c->slots;
    }
    return ring_slots;
}

/* `kept_numbers` {name, type, role}: the numbers of a sequence that a state keeps. */
static void set_kept_numbers(Arena *arena, const Plan *decode, TemplateVars *vars) {
    TemplateList *numbers = vars_list(vars, "kept_numbers");
    for (int i = 0; decode && i < decode->graph->n_inputs; i++) {
        const InputKind *kind = decode->graph->inputs[i].kind;
        if (!input_is_own_number(kind)) continue;
        TemplateVars *record = list_record(numbers);
        vars_text(record, "name", arena_printf(arena, "in_%s", kind->name));
        vars_text(record, "type", input_c_type(kind));
        vars_text(record, "role", kind->name);
    }
}

void set_states(Arena *arena, const Program *program, TemplateVars *vars, int64_t *state_bytes, int64_t *source_bytes) {
    enum { STATE_HEADER = 64 };
    const Model *m = program->module->model;
    const Plan *decode = program->entries[ENTRY_DECODE];
    int64_t ring_slots = set_caches(program, vars);
    *state_bytes = decode ? STATE_HEADER + program->state_bytes : 0;
    *source_bytes = program->entries[ENTRY_ENCODE] ? STATE_HEADER + program->source_bytes : 0;
    vars_int(vars, "has_decode", decode != NULL);
    vars_int(vars, "has_encode", program->entries[ENTRY_ENCODE] != NULL);
    bool narrow = false;
    for (int i = 0; i < program->n_caches; i++) narrow |= program->caches[i].slot.layout.dtype != DTYPE_F32;
    vars_int(vars, "kept_narrow", narrow);
    vars_int(vars, "has_rings", ring_slots > 0);
    vars_int(vars, "ring_slots", ring_slots);
    vars_int(vars, "rewind", program->rewind);
    vars_int(vars, "state_bytes", *state_bytes);
    vars_int(vars, "source_bytes", *source_bytes);
    vars_int(vars, "decoder_vocab", m->decoder ? m->decoder->vocab : 0);
    vars_int(vars, "start_token", m->start);
    vars_int(vars, "pad_token", m->pad);
    TemplateList *end_tokens = vars_list(vars, "end_tokens");
    for (int64_t i = 0; i < m->n_end; i++) vars_int(list_record(end_tokens), "id", m->end[i]);
    set_search(arena, m, vars);
    set_kept_numbers(arena, decode, vars);
    set_switches(decode, vars);
    set_look_ahead(arena, vars, program);
    vars_text(vars, "state_hash", arena_printf(arena, "0x%016llx", (unsigned long long)state_hash(arena, program)));
}
