/* decoder.c: appends rows to states, in the interpreter or in compiled code. */
#include "decoder.h"

#include "denormals.h"

#include "../../runtime/attn_runtime.h"

#include <string.h>

struct Decoder {
    Arena *arena;
    const Module *module;
    int slots;
    int64_t vocab, width; /* columns of logits and of hidden */
    int64_t prefix;
    Session **sessions;   /* the interpreter's states */
    Engine *engine;       /* NULL: the interpreter */
    int32_t **history;    /* the tokens of each state, kept when a state may have to be rebuilt; else NULL */
    int64_t *held;
    GuardSide side;       /* where the memory below stands; GUARD_NONE: no guards */
    const char *damage;   /* describes the first one */
    struct Room *rooms;   /* [ROOM_STATES + slots] */
    void **states, *source, *workspace;
    void **appended;   /* [slots] the states of a call */
    int32_t *prefixes; /* [slots] the prefix lengths of a call */
    int64_t *rows;     /* [slots] rows in each state */
    int64_t source_rows;
    size_t workspace_bytes;
    const void *numbers[MOST_INPUTS]; /* of decoder_numbers, [n_numbers]; NULL: none */
    int64_t n_numbers[MOST_INPUTS];
    void *filled[MOST_INPUTS]; /* [room] int32_t, int64_t of wide inputs, or float: the numbers of a call that gives
                                * none */
    int64_t room;
};

enum { ROOM_WORKSPACE, ROOM_SOURCE, ROOM_STATES };

static void free_session(void *session) { session_free(session); }

/* Memory for the compiled code: between guard pages, or plain when `guard` is NULL. */
typedef struct Room {
    Guard *guard;
    void *plain;
    size_t bytes;
} Room;

static Room room_new(const Decoder *d, const char *what, size_t bytes) {
    if (d->side) return (Room){.guard = guard_new(d->arena, what, bytes), .bytes = bytes};
    return (Room){NULL, engine_memory(d->arena, bytes), bytes};
}

static void *room_place(const Decoder *d, const Room *room, GuardSide side) {
    if (!room->guard) return room->plain;
    void *placed = guard_place(room->guard, room->bytes, GUARD_ALIGNMENT, side);
    if (d->engine->watches) guard_fill(room->guard, DENORMAL_BITS);
    return placed;
}

/* A cache is NaN, but defined for sanitizers: vectors with the last key also read what follows it, and drop that. */
static void *cache_place(const Decoder *d, const Room *room, GuardSide side) {
    void *cache = room_place(d, room, side);
    return room->guard && !d->engine->watches ? memset(cache, 0xff, room->bytes) : cache;
}

/* Places all memory on a side of its pages. Its contents are lost. */
static void place_all(Decoder *d, GuardSide side) {
    d->side = side;
    d->workspace = room_place(d, &d->rooms[ROOM_WORKSPACE], side);
    if (d->module->entries[ENTRY_ENCODE]) d->source = cache_place(d, &d->rooms[ROOM_SOURCE], side);
    for (int i = 0; i < d->slots; i++) {
        d->states[i] = cache_place(d, &d->rooms[ROOM_STATES + i], side);
        if (side) side = guard_other(side);
    }
}

static void bind_engine(Decoder *d, Engine *engine) {
    const Emitted *emitted = &engine->emitted;
    d->engine = engine;
    const size_t decode = engine_workspace(engine, ENTRY_DECODE, engine->call.threads),
                 encode = engine_workspace(engine, ENTRY_ENCODE, engine->call.threads);
    d->workspace_bytes = encode > decode ? encode : decode;
    d->rooms = arena_array(d->arena, (size_t)(ROOM_STATES + d->slots), sizeof *d->rooms);
    d->rooms[ROOM_WORKSPACE] = room_new(d, "the workspace", d->workspace_bytes);
    if (d->module->entries[ENTRY_ENCODE])
        d->rooms[ROOM_SOURCE] = room_new(d, "the source's keys and values", (size_t)emitted->source_bytes);
    for (int i = 0; i < d->slots; i++)
        d->rooms[ROOM_STATES + i] = room_new(d, "a state", (size_t)emitted->state_bytes);
    d->states = arena_array(d->arena, (size_t)d->slots, sizeof *d->states);
    d->appended = arena_array(d->arena, (size_t)d->slots, sizeof *d->appended);
    d->prefixes = arena_array(d->arena, (size_t)d->slots, sizeof *d->prefixes);
    d->rows = arena_array(d->arena, (size_t)d->slots, sizeof *d->rows);
    place_all(d, d->side);
}

/* A state that may not be extended past graph_crossing is rebuilt from its tokens, which are kept for that. */
static void keep_history(Decoder *d) {
    int64_t bound = d->module->model->decoder->seq.n;
    if (!graph_crossing(d->module->entries[ENTRY_DECODE], 1, bound)) return;
    d->history = arena_array(d->arena, (size_t)d->slots, sizeof *d->history);
    d->held = arena_array(d->arena, (size_t)d->slots, sizeof *d->held);
    for (int i = 0; i < d->slots; i++) d->history[i] = arena_array(d->arena, (size_t)bound, sizeof(int32_t));
}

Decoder *decoder_new(Arena *arena, const Module *module, const Weights *weights, Engine *engine, int slots,
                     GuardSide side) {
    Decoder *d = arena_alloc(arena, sizeof *d);
    *d = (Decoder){.arena = arena, .module = module, .slots = slots, .side = side};
    if (!module->entries[ENTRY_DECODE])
        fail("%s generates nothing: %s", module->model->name,
             module->no_decode ? module->no_decode : "it has no decoder");
    for (int o = 0; o < module->entries[ENTRY_DECODE]->n_outputs; o++) {
        const GraphOutput *out = &module->entries[ENTRY_DECODE]->outputs[o];
        if (out->role == OUT_logits) d->vocab = module->entries[ENTRY_DECODE]->tensors[out->tensor].dims[1].n;
        if (out->role == OUT_hidden) d->width = module->entries[ENTRY_DECODE]->tensors[out->tensor].dims[1].n;
    }
    keep_history(d);
    if (engine) {
        bind_engine(d, engine);
        return d;
    }
    d->sessions = arena_array(arena, (size_t)slots, sizeof *d->sessions);
    for (int i = 0; i < slots; i++) {
        d->sessions[i] = session_new(arena, module, weights);
        arena_on_free(arena, free_session, d->sessions[i]);
    }
    return d;
}

void decoder_arithmetic(Decoder *d, Arithmetic arithmetic) {
    for (int i = 0; i < d->slots; i++) session_arithmetic(d->sessions[i], arithmetic);
}

/* ---------------------------------------------------------------- the source */

static int64_t source_rows(const Decoder *d, const Sequence *source) {
    const Length length = d->module->model->encoder->seq;
    return length.exact ? length.n : source->symbols[0];
}

/* ---------------------------------------------------------------- calls that may crash */

/* The arguments of a call of any entry. */
typedef struct DecoderCall {
    Decoder *d;
    char entry; /* 'e'ncode, 'd'ecode; for a state: 's'et up, 'c'opy from `from`, 'r'ewind to `rows` */
    DriverCall call;
    const size_t *bytes; /* the size of each output of decode */
    void *state;
    const void *from;
    int rows;
} DecoderCall;

static int call_now(void *with) {
    const DecoderCall *c = with;
    Engine *engine = c->d->engine;
    switch (c->entry) {
    case 'e': return engine_entry(engine, ENTRY_ENCODE, &c->call, NULL);
    case 'd': return engine_entry(engine, ENTRY_DECODE, &c->call, c->bytes);
    default: return engine_state(engine, c->entry, c->state, c->from, c->rows);
    }
}

/* Returns a status or GUARD_CRASHED. */
static int decoder_call(DecoderCall *c) {
    Decoder *d = c->d;
    if (!d->side) return call_now(c);
    int status = guard_call(call_now, c, d->engine->call.parallel_for == attn_pool_run || d->engine->team);
    if (status == GUARD_CRASHED && !d->damage) d->damage = arena_printf(d->arena, "%s", guard_crash());
    return status;
}

/* A call in which only the fields that all calls share are set. */
static DriverCall new_call(const Decoder *d) {
    return (DriverCall){.batch = 1, .workspace = d->workspace, .workspace_bytes = d->workspace_bytes};
}

static const void *guarded_ids(const Decoder *d, Arena *arena, const Sequence *source, const InputArray *in) {
    const Graph *encode = d->module->entries[ENTRY_ENCODE];
    const GraphInput *input = graph_input(encode, in->role);
    const int64_t count = sequence_items(source, &encode->tensors[input->tensor]);
    const void *ids = ids_packed(arena, input->kind, in->data, count);
    if (!d->side) return ids;
    const size_t item = input_element_bytes(input->kind), bytes = (size_t)count * item;
    return guard_input(guard_new(arena, "the ids of the source", bytes), ids, bytes, item, d->side);
}

static void encode(Decoder *d, const Sequence *source) {
    Arena *own = arena_new();
    DriverCall call = new_call(d);
    int32_t length = (int32_t)source_rows(d, source);
    void *sources[] = {d->source};
    d->source_rows = length;
    call.source_lengths = &length;
    call.sources = sources;
    for (int i = 0; i < source->n_inputs; i++) {
        const InputArray *in = &source->inputs[i];
        call.inputs[in->role] = in->dtype == DTYPE_I64 ? guarded_ids(d, own, source, in) : in->data;
    }
    int status = decoder_call(&(DecoderCall){.d = d, .entry = 'e', .call = call});
    if (status > 0) fail("the compiled model says: %s", decoder_text(d, status));
    arena_free(own);
}

void decoder_begin(Decoder *d, const Sequence *source, int64_t prefix) {
    d->prefix = prefix;
    for (int i = 0; i < d->slots && d->history; i++) d->held[i] = 0;
    if (d->engine) {
        d->damage = decoder_damage(d);
        bool moves = d->side && !d->engine->remote; /* a remote program knows states by their addresses */
        if (moves) place_all(d, guard_other(d->side));
        if (source) encode(d, source);
        for (int i = 0; i < d->slots; i++) {
            int status = decoder_call(&(DecoderCall){.d = d, .entry = 's', .state = d->states[i], .from = d->source});
            if (status > 0) bug("a state cannot be made: %s", decoder_text(d, status));
            d->rows[i] = 0;
        }
        return;
    }
    Arena *own = arena_new();
    for (int i = 0; i < d->slots; i++) {
        if (i > 0) session_copy(d->sessions[i], d->sessions[0]);
        else if (source)
            session_encode(own, d->sessions[0], source->inputs, source->n_inputs, source_rows(d, source));
        else session_rewind(d->sessions[0], 0);
    }
    arena_free(own);
}

/* ---------------------------------------------------------------- rows */

static void take_output(const Interpretation *result, OutputRole role, float *out) {
    for (int o = 0; o < result->n_outputs && out; o++) {
        if (result->outputs[o].role != role) continue;
        const int64_t count = output_items(&result->outputs[o]);
        for (int64_t i = 0; i < count; i++) out[i] = (float)result->outputs[o].data[i];
    }
}

/* The numbers of an input of a call from number `from` on, as the interpreter takes them. */
static InputArray interpreted(const Decoder *d, Arena *arena, const DecoderRows *all, InputRole role, int64_t from,
                              int64_t rows) {
    const RowInput *own = model_row_input(d->module->model, role);
    if (own && own->kind.dtype == DTYPE_F32)
        return (InputArray){role, DTYPE_F32, rows, (const float *)all->inputs[role] + from};
    int64_t *ids = arena_array(arena, (size_t)rows, sizeof *ids);
    for (int64_t i = from; i < from + rows; i++)
        ids[i - from] = own && own->kind.wide ? ((const int64_t *)all->inputs[role])[i]
                                              : ((const int32_t *)all->inputs[role])[i];
    return (InputArray){role, DTYPE_I64, rows, ids};
}

static bool is_of_sequence(const Decoder *d, InputRole role) {
    const RowInput *own = model_row_input(d->module->model, role);
    return own && input_is_own_number(&own->kind);
}

/* Interprets `rows` rows of the call, from number `from` on, for its state number `index`. */
static void interpret_rows(const Decoder *d, const DecoderRows *all, int index, int64_t from, int64_t rows,
                           float *logits, float *hidden) {
    Arena *own = arena_new();
    InputArray inputs[MOST_INPUTS] = {{IN_prefix_length, DTYPE_I64, 1, &d->prefix}};
    int n = 1;
    for (int role = 0; role < MOST_INPUTS; role++) {
        if (!all->inputs[role] || (role != IN_tokens && !role_is_of_rows((InputRole)role))) continue;
        const bool number = is_of_sequence(d, (InputRole)role);
        inputs[n++] = interpreted(d, own, all, (InputRole)role, number ? index : from, number ? 1 : rows);
    }
    const Interpretation *result = session_decode(own, d->sessions[all->slots[index]], inputs, n, rows);
    take_output(result, OUT_logits, logits);
    take_output(result, OUT_hidden, hidden);
    arena_free(own);
}

static int32_t rows_of(const DecoderRows *rows, int i) { return rows->lengths ? rows->lengths[i] : 1; }

/* Counts the bytes of each output of a call. */
static void count_outputs(const Decoder *d, const DecoderRows *rows, size_t *bytes) {
    const Graph *g = d->module->entries[ENTRY_DECODE];
    int64_t total = 0, self = 0, cross = 0;
    for (int i = 0; i < rows->count; i++) {
        int64_t n = rows_of(rows, i);
        total += n;
        self += n * (d->rows[rows->slots[i]] + n);
        cross += n * d->source_rows;
    }
    for (int o = 0; o < g->n_outputs; o++) {
        const GraphOutput *out = &g->outputs[o];
        int64_t pairs = out->role == OUT_cross_attention ? cross : self;
        int64_t items = out->layer >= 0           ? out->n_heads * pairs
                        : out->role == OUT_logits ? rows->count * d->vocab
                                                  : total * d->width;
        bytes[out->role] += (size_t)items * sizeof(float);
    }
}

static int append_by_engine(Decoder *d, const DecoderRows *rows, const DecoderOutputs *out) {
    DriverCall call = new_call(d);
    for (int i = 0; i < rows->count; i++) {
        d->appended[i] = d->states[rows->slots[i]];
        d->prefixes[i] = (int32_t)d->prefix;
    }
    call.batch = rows->count;
    call.states = d->appended;
    call.lengths = rows->lengths;
    memcpy(call.inputs, rows->inputs, sizeof call.inputs);
    call.inputs[IN_prefix_length] = d->prefixes;
    call.outputs[OUT_logits] = out->logits;
    call.outputs[OUT_hidden] = out->hidden;
    call.outputs[OUT_attention] = out->attention;
    call.outputs[OUT_cross_attention] = out->cross_attention;
    size_t bytes[OUT_COUNT] = {0};
    count_outputs(d, rows, bytes);
    int status = decoder_call(&(DecoderCall){.d = d, .entry = 'd', .call = call, .bytes = bytes});
    for (int i = 0; i < rows->count && !status; i++) d->rows[rows->slots[i]] += rows_of(rows, i);
    return status;
}

void decoder_numbers(Decoder *d, InputRole role, const void *numbers, int64_t n) {
    d->numbers[role] = numbers;
    d->n_numbers[role] = n;
}

static int64_t rows_in(const Decoder *d, int slot) {
    return d->engine ? d->rows[slot] : session_rows(d->sessions[slot]);
}

/* Sets number `at` of a call to number `index` of the input, or where there are fewer to the last one, plus the rows
 * beyond it where the numbers are the positions of rows. */
static void fill_number(const Decoder *d, const RowInput *input, int64_t index, int64_t at) {
    const InputRole role = input->kind.role;
    const int64_t last = d->n_numbers[role] - 1, from = index < last ? index : last;
    const int64_t beyond = input->counts && index > last ? index - last : 0;
    if (input->kind.dtype == DTYPE_F32) {
        ((float *)d->filled[role])[at] = ((const float *)d->numbers[role])[from];
        return;
    }
    const int64_t integer = ((const int64_t *)d->numbers[role])[from] + beyond;
    if (input->kind.wide) ((int64_t *)d->filled[role])[at] = integer;
    else ((int32_t *)d->filled[role])[at] = (int32_t)integer;
}

/* The numbers of a call's rows, by the indices of the rows in their texts, or of its sequences. */
static const void *fill_numbers(Decoder *d, const DecoderRows *rows, InputRole role) {
    const RowInput *input = model_row_input(d->module->model, role);
    int64_t at = 0;
    for (int i = 0; i < rows->count; i++) {
        const int64_t past = rows_in(d, rows->slots[i]);
        const int64_t count = input_is_own_number(&input->kind) ? 1 : rows_of(rows, i);
        for (int64_t row = past; row < past + count; row++) fill_number(d, input, row, at++);
    }
    return d->filled[role];
}

/* Adds the numbers that a call does not give. */
static DecoderRows with_numbers(Decoder *d, const DecoderRows *rows) {
    DecoderRows all = *rows;
    int64_t total = 0;
    for (int i = 0; i < rows->count; i++) total += rows_of(rows, i);
    for (int role = IN_COUNT; role < MOST_INPUTS; role++) {
        if (all.inputs[role] || !d->numbers[role]) continue;
        if (total > d->room || !d->filled[role]) {
            d->room = total > d->room ? total : d->room;
            for (int r = IN_COUNT; r < MOST_INPUTS; r++)
                if (d->numbers[r]) d->filled[r] = arena_array(d->arena, (size_t)d->room, sizeof(int64_t));
        }
        all.inputs[role] = fill_numbers(d, rows, (InputRole)role);
    }
    return all;
}

static int append_rows(Decoder *d, const DecoderRows *given, const DecoderOutputs *out) {
    const DecoderRows rows = with_numbers(d, given);
    if (d->engine) return append_by_engine(d, &rows, out);
    float *logits = out->logits, *hidden = out->hidden;
    int64_t from = 0;
    for (int i = 0; i < rows.count; i++) {
        const int64_t n = rows_of(&rows, i);
        interpret_rows(d, &rows, i, from, n, logits, hidden);
        from += n;
        if (logits) logits += d->vocab;
        if (hidden) hidden += n * d->width;
    }
    return 0;
}

static bool crosses(const Decoder *d, int slot, int32_t rows) {
    return d->held[slot] && graph_crossing(d->module->entries[ENTRY_DECODE], d->held[slot], d->held[slot] + rows);
}

/* Appends to one state after another; a state that would pass graph_crossing is rebuilt from its history. */
static int append_one_by_one(Decoder *d, const DecoderRows *all, const DecoderOutputs *out) {
    const int32_t *tokens = all->inputs[IN_tokens];
    DecoderOutputs one = *out;
    for (int i = 0; i < all->count; i++) {
        int slot = all->slots[i];
        int32_t rows = rows_of(all, i), total = (int32_t)d->held[slot] + rows;
        bool again = crosses(d, slot, rows);
        DecoderRows part = {.count = 1, .slots = &slot, .lengths = &rows, .inputs = {[IN_tokens] = tokens}};
        if (again) part.lengths = &total, part.inputs[IN_tokens] = d->history[slot];
        int status = again ? decoder_rewind(d, slot, 0) : 0;
        if (status == 0) status = append_rows(d, &part, &one);
        if (status) return status;
        tokens += rows;
        if (one.logits) one.logits += d->vocab;
    }
    return 0;
}

static int append_with_history(Decoder *d, const DecoderRows *all, const DecoderOutputs *out) {
    const int32_t *tokens = all->inputs[IN_tokens];
    bool any = false;
    for (int i = 0; i < all->count; i++) {
        int slot = all->slots[i];
        int32_t rows = rows_of(all, i);
        int64_t total = d->held[slot] + rows;
        if (total > d->module->model->decoder->seq.n)
            fail("%lld rows are more than the bound of the spec", (long long)total);
        memcpy(d->history[slot] + d->held[slot], tokens, (size_t)rows * sizeof *tokens);
        any = any || crosses(d, slot, rows);
        tokens += rows;
    }
    int status = any ? append_one_by_one(d, all, out) : append_rows(d, all, out);
    for (int i = 0; i < all->count && status == 0; i++) d->held[all->slots[i]] += rows_of(all, i);
    return status;
}

int decoder_append(Decoder *d, const DecoderRows *rows, const DecoderOutputs *outputs) {
    bool plain = outputs->hidden || outputs->attention || outputs->cross_attention; /* outputs for these rows only */
    return d->history && !plain ? append_with_history(d, rows, outputs) : append_rows(d, rows, outputs);
}

int decoder_copy(Decoder *d, int to, int from) {
    if (d->history) {
        memcpy(d->history[to], d->history[from], (size_t)d->held[from] * sizeof(int32_t));
        d->held[to] = d->held[from];
    }
    if (d->engine) {
        d->rows[to] = d->rows[from];
        return decoder_call(&(DecoderCall){.d = d, .entry = 'c', .state = d->states[to], .from = d->states[from]});
    }
    session_copy(d->sessions[to], d->sessions[from]);
    return 0;
}

int decoder_rewind(Decoder *d, int slot, int64_t rows) {
    if (d->engine) {
        int status = decoder_call(&(DecoderCall){.d = d, .entry = 'r', .state = d->states[slot], .rows = (int)rows});
        if (!status) d->rows[slot] = rows;
        return status;
    }
    session_rewind(d->sessions[slot], rows);
    return 0;
}

const char *decoder_damage(const Decoder *d) {
    const char *damage = d->damage;
    for (int r = 0; d->side && r < ROOM_STATES + d->slots && !damage; r++)
        if (d->rooms[r].guard) damage = guard_damage(d->arena, d->rooms[r].guard);
    return damage;
}

const void *decoder_workspace(const Decoder *d) { return d->workspace; }

const char *decoder_text(const Decoder *d, int status) {
    if (status == GUARD_CRASHED) return guard_crash();
    return d->engine ? engine_text(d->engine, status) : "";
}

/* ---------------------------------------------------------------- as attn_generate sees it */

static int model_prefill(void *with, int slot, const int32_t *tokens, int count, float *logits) {
    const int32_t length = count;
    const DecoderRows rows = {.count = 1, .slots = &slot, .lengths = &length, .inputs = {[IN_tokens] = tokens}};
    return decoder_append(with, &rows, &(DecoderOutputs){.logits = logits});
}

static int model_step(void *with, int count, const int *slots, const int32_t *tokens, float *logits) {
    progress_more(1);
    const DecoderRows rows = {.count = count, .slots = slots, .inputs = {[IN_tokens] = tokens}};
    return decoder_append(with, &rows, &(DecoderOutputs){.logits = logits});
}

static int model_copy(void *with, int to, int from) { return decoder_copy(with, to, from); }

attn_model decoder_model(Decoder *d) {
    if (!d->vocab) fail("%s has no logits: nothing can be generated", d->module->model->name);
    return (attn_model){.size = sizeof(attn_model),
                        .vocab = (int)d->vocab,
                        .bound = (int)d->module->model->decoder->seq.n,
                        .with = d,
                        .prefill = model_prefill,
                        .step = model_step,
                        .copy = model_copy};
}
