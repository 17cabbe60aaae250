/* decode.c: appends the rows of a text to states and compares the results with the interpreter's pass over the whole
 * text. The bits must not depend on how the text is cut into calls, on other states in a call, forks or rewinds. */
#include "steps.h"

#include <math.h>
#include <string.h>

enum { SLOTS = 5, MOST_SPLITS = 16 };

/* A text: its inputs, and the interpreter's outputs for the whole of it. */
struct DecodeCheck {
    Arena *arena;
    const Module *reference;
    const Weights *weights;
    const Graph *decode;
    bool quantizes;                 /* hidden and logits are then of the target that runs, by interpret_text */
    int64_t n, first, width, vocab; /* rows; the least rows of a first call; columns of hidden and logits */
    int64_t source_rows;
    Sequence whole, source;         /* the inputs of forward and of encode */
    const void *given[MOST_INPUTS]; /* the inputs of decode, as the C takes them */
    size_t row_bytes[MOST_INPUTS];  /* of a row of each; 0 of a number of the sequence, of which there are SLOTS */
    const void *others[MOST_INPUTS]; /* the tokens of a fork and its numbers of rows; NULL: as the text */
    int64_t prefix;
    bool *cuts; /* [n + 1]: no row before that one sees it or a later row, so that a call may begin there; NULL: all */
    const double *hidden, *logits;  /* [n][width]; [vocab] of the last row, or NULL */
    const OutputArray *outputs;     /* of forward */
    double hidden_spread, logits_spread, spread; /* of check_spread; the largest share */
};

/* ---------------------------------------------------------------- the text and what it should give */

DecoderRows check_decode_rows(const DecodeCheck *d, bool fork, int64_t from, const int *slot, const int32_t *length) {
    DecoderRows rows = {.count = 1, .slots = slot, .lengths = length};
    for (int role = 0; role < MOST_INPUTS; role++) {
        const void *first = fork && d->others[role] ? d->others[role] : d->given[role];
        const bool kept = from && !d->row_bytes[role] && first == d->given[role]; /* a number of the state */
        if (first && !kept) rows.inputs[role] = (const uint8_t *)first + (size_t)from * d->row_bytes[role];
    }
    return rows;
}

/* SLOTS times the same number, as the C takes it. */
static const void *number_of_each(Arena *arena, Dtype dtype, const void *number) {
    int64_t integers[SLOTS];
    float *reals = arena_array(arena, SLOTS, sizeof *reals);
    for (int s = 0; s < SLOTS && dtype == DTYPE_F32; s++) reals[s] = *(const float *)number;
    for (int s = 0; s < SLOTS && dtype == DTYPE_I64; s++) integers[s] = *(const int64_t *)number;
    return dtype == DTYPE_F32 ? (const void *)reals : ids_narrow(arena, integers, SLOTS);
}

/* The numbers in the form that decode takes. */
static const void *as_given(Arena *arena, const GraphInput *input, const void *numbers, int64_t count) {
    const Dtype dtype = input->kind->dtype;
    if (input_is_own_number(input->kind)) return number_of_each(arena, dtype, numbers);
    return dtype == DTYPE_I64 ? ids_packed(arena, input->kind, numbers, count) : numbers;
}

/* Draws an input of forward. Inputs of the decoder are also kept in the form that decode takes. */
static void fill_input(DecodeCheck *d, const Graph *forward, int index, int64_t seed) {
    const GraphInput *input = &forward->inputs[index];
    const InputKind *kind = input->kind;
    const Tensor *t = &forward->tensors[input->tensor];
    const int64_t rows = sequence_extent(&d->whole, t->dims[0]), count = sequence_items(&d->whole, t);
    InputArray array = {kind->role, t->dtype, rows, &d->prefix};
    const bool own = !graph_input(d->reference->entries[ENTRY_ENCODE], kind->role);
    if (kind->role != IN_prefix_length) array.data = draw_text(d->arena, forward, input, count, seed);
    if (own && role_is_of_rows(kind->role))
        d->others[kind->role] =
            as_given(d->arena, input, draw_text(d->arena, forward, input, count, seed + 1), count);
    if (own && (kind->rows == PER_ROW || input_is_own_number(kind))) {
        const InputRole role = kind->role == IN_target ? IN_tokens : kind->role; /* in decode */
        d->given[role] = as_given(d->arena, input, array.data, count);
        d->row_bytes[role] = kind->rows == PER_ROW ? (size_t)(count / rows) * input_element_bytes(kind) : 0;
    }
    d->whole.inputs[d->whole.n_inputs++] = array;
    if (!own) d->source.inputs[d->source.n_inputs++] = array;
}

/* Draws the numbers of the text's rows in order, so that equal integers stand together: upwards, or downwards. */
static void sort_numbers(DecodeCheck *d, bool down) {
    for (int i = 0; i < d->decode->n_inputs; i++) {
        const GraphInput *input = &d->decode->inputs[i];
        const InputRole role = input->kind->role;
        if (!role_is_of_rows(role) || input->kind->rows != PER_ROW) continue;
        const void *numbers = draw_sorted_text(d->arena, d->decode, input, d->n, down);
        for (int k = 0; k < d->whole.n_inputs; k++)
            if (d->whole.inputs[k].role == role) d->whole.inputs[k].data = numbers;
        d->given[role] = as_given(d->arena, input, numbers, d->n);
    }
}

/* Decides where calls may begin; returns how many such rows there are between the first and the last one. */
static int64_t find_cuts(DecodeCheck *d) {
    PairInput numbers[MOST_INPUTS] = {{0}};
    int64_t count = 0;
    for (int i = 0; i < d->whole.n_inputs; i++) {
        const InputArray *given = &d->whole.inputs[i];
        if (!role_is_of_rows(given->role)) continue;
        if (given->dtype == DTYPE_I64) numbers[given->role].rows = given->data;
        else numbers[given->role].single = given->data;
    }
    if (!d->cuts) d->cuts = arena_array(d->arena, (size_t)d->n + 1, sizeof *d->cuts);
    graph_cuts(d->decode, numbers, d->n, d->cuts);
    for (int64_t row = 1; row < d->n; row++) count += d->cuts[row];
    return count;
}

/* Rows that look ahead come with the rows that they see: draws a text that can be divided, if there is one. A fork has
 * the numbers of the text. */
static void divide_text(DecodeCheck *d) {
    enum { FEW = 3 };
    if (!graph_looks_ahead(d->decode)) return;
    for (int role = IN_COUNT; role < MOST_INPUTS; role++) d->others[role] = NULL;
    for (int attempt = 0; find_cuts(d) < FEW && attempt < 2; attempt++) sort_numbers(d, attempt > 0);
}

/* The row itself if a call may begin there, or the next such row; n is one. */
static int64_t next_cut(const DecodeCheck *d, int64_t row) {
    while (d->cuts && row < d->n && !d->cuts[row]) row++;
    return row;
}

static void keep_outputs(DecodeCheck *d, const Interpretation *result) {
    d->outputs = outputs_copy(d->arena, result);
    for (int o = 0; o < result->n_outputs; o++) {
        const OutputArray *out = &d->outputs[o];
        d->spread = fmax(d->spread, check_spread_share(out));
        if (out->role == OUT_hidden) d->hidden = out->data, d->hidden_spread = out->spread;
        if (out->role != OUT_logits || !d->reference->model->head.logits) continue;
        d->logits = out->data + (d->n - 1) * d->vocab;
        d->logits_spread = out->spread;
    }
}

double check_decode_spread(const DecodeCheck *d) { return d->spread; }

DecodeCheck *check_decode_new(Arena *arena, const Module *reference, const Weights *weights, int64_t n, int64_t seed,
                              Rounded rounded) {
    DecodeCheck *d = arena_alloc(arena, sizeof *d);
    const Model *m = reference->model;
    const Graph *forward = reference->entries[ENTRY_FORWARD];
    *d = (DecodeCheck){.arena = arena,
                       .reference = reference,
                       .weights = weights,
                       .decode = reference->entries[ENTRY_DECODE],
                       .quantizes = graph_jumps(reference->entries[ENTRY_DECODE]) ||
                                    graph_jumps(reference->entries[ENTRY_ENCODE]),
                       .n = n,
                       .first = 1};
    d->source_rows = !m->encoder ? 0 : m->encoder->seq.exact ? m->encoder->seq.n : (m->encoder->seq.n + 1) / 2;
    for (int s = 0; s < forward->n_symbols; s++)
        d->whole.symbols[s] = strcmp(forward->symbols[s].name, "src") == 0 ? d->source_rows : n;
    d->source.symbols[0] = d->source_rows;
    d->prefix = n / 3;
    if (graph_input(reference->entries[ENTRY_ENCODE], IN_prefix_length) && d->prefix > d->source_rows)
        d->prefix = d->source_rows;
    for (int i = 0; i < forward->n_inputs; i++) fill_input(d, forward, i, seed);
    if (graph_input(forward, IN_prefix_length)) d->first = d->prefix ? d->prefix : 1;
    int64_t crossing = graph_crossing(d->decode, 1, n);
    if (crossing >= d->first) d->first = crossing + 1; /* fewer rows would have other rope angles */
    divide_text(d);
    d->first = next_cut(d, d->first);
    if (d->given[IN_tokens])
        d->others[IN_tokens] = ids_narrow(arena, draw_ids(arena, "others", n, m->decoder->vocab), n);
    d->width = m->decoder->hidden_width;
    d->vocab = m->head.logits ? m->decoder->vocab : 0;
    if (d->quantizes) return d;
    Arena *own = arena_new();
    progress_begin("interpreting a text of %lld rows", (long long)n);
    const Interpretation *result = sequence_interpret(own, reference, weights, &d->whole, &(InterpretHow){0});
    check_spread(reference, weights, &d->whole, NULL, rounded, result, result->outputs, NULL);
    keep_outputs(d, result);
    arena_free(own);
    return d;
}

/* ---------------------------------------------------------------- calls */

/* The results of compiled code for the rows of the text, over several calls. */
typedef struct Run {
    const DecodeCheck *d;
    Arena *arena;
    Decoder *decoder;
    Guard *given[MOST_INPUTS], *lengths, *taken_logits, *taken_hidden; /* around the arrays of each call */
    GuardSide side;
    float *hidden, *logits; /* [n][width] for the rows so far; [vocab] for the last row */
    const char *trouble;    /* describes the first failure; or NULL */
} Run;

/* The bytes of an input of a call with so many states and rows. */
static size_t bytes_given(const DecodeCheck *d, const InputKind *kind, int states, int64_t rows) {
    const size_t of_row = d->row_bytes[kind->role];
    return of_row ? (size_t)rows * of_row : (size_t)states * input_element_bytes(kind);
}

static Run run_new(const DecodeCheck *d, Arena *arena, Decoder *decoder, GuardSide side) {
    const size_t rows = SLOTS * (size_t)d->n;
    Run r = {.d = d,
             .arena = arena,
             .decoder = decoder,
             .side = side,
             .lengths = guard_new(arena, "the lengths", SLOTS * sizeof(int32_t)),
             .taken_logits = guard_new(arena, "the logits", SLOTS * (size_t)d->vocab * sizeof(float)),
             .taken_hidden = guard_new(arena, "the hidden rows", rows * (size_t)d->width * sizeof(float)),
             .hidden = arena_array(arena, (size_t)(d->n * d->width), sizeof(float)),
             .logits = arena_array(arena, (size_t)d->vocab + 1, sizeof(float))};
    for (int i = 0; i < d->reference->n_inputs; i++) {
        const InputKind *kind = d->reference->inputs[i];
        if (d->given[kind->role])
            r.given[kind->role] = guard_new(arena, arena_printf(arena, "the %s", kind->name),
                                            bytes_given(d, kind, SLOTS, (int64_t)rows));
    }
    return r;
}

static float *taken(Guard *guard, int64_t count, GuardSide side) {
    return guard_place(guard, (size_t)count * sizeof(float), sizeof(float), side);
}

/* Appends `rows` rows in all, and changes the side of the memory. Returns false and sets `trouble` when that fails. */
static bool append(Run *r, const DecoderRows *in, int64_t rows, float *logits, float *hidden) {
    const DecodeCheck *d = r->d;
    progress_tick();
    r->side = guard_other(r->side);
    DecoderRows own = {.count = in->count, .slots = in->slots};
    own.lengths = guard_input(r->lengths, in->lengths, (size_t)in->count * sizeof(int32_t), sizeof(int32_t), r->side);
    for (int i = 0; i < d->reference->n_inputs; i++) {
        const InputKind *kind = d->reference->inputs[i];
        own.inputs[kind->role] = guard_input(r->given[kind->role], in->inputs[kind->role],
                                             bytes_given(d, kind, in->count, rows), input_element_bytes(kind),
                                             r->side);
    }
    DecoderOutputs out = {.hidden = taken(r->taken_hidden, rows * d->width, r->side)};
    if (d->vocab) out.logits = taken(r->taken_logits, in->count * d->vocab, r->side);
    int status = decoder_append(r->decoder, &own, &out);
    if (status == GUARD_CRASHED) r->trouble = decoder_damage(r->decoder);
    else if (status) r->trouble = arena_printf(d->arena, "the status `%s`", decoder_text(r->decoder, status));
    if (!r->trouble) r->trouble = guard_damage(d->arena, r->taken_logits);
    if (!r->trouble) r->trouble = guard_damage(d->arena, r->taken_hidden);
    memcpy(hidden, out.hidden, (size_t)(rows * d->width) * sizeof *hidden);
    if (d->vocab) memcpy(logits, out.logits, (size_t)(in->count * d->vocab) * sizeof *logits);
    return !r->trouble;
}

/* Appends rows from..from+rows-1 of the text, or of the fork, to the state of a slot. */
static void give(Run *r, int slot, int64_t from, int64_t rows, bool fork) {
    const DecodeCheck *d = r->d;
    if (r->trouble || rows < 1) return;
    const int32_t length = (int32_t)rows;
    const DecoderRows in = check_decode_rows(d, fork, from, &slot, &length);
    if (append(r, &in, rows, r->logits, r->hidden + from * d->width)) return;
    r->trouble = arena_printf(d->arena, "rows %lld to %lld: %s", (long long)from, (long long)(from + rows - 1),
                              r->trouble);
}

/* Rows that look ahead come with the rows that they see. */
static void give_one_by_one(Run *r, int slot, int64_t from, int64_t until) {
    for (int64_t i = from, end; i < until; i = end) {
        end = next_cut(r->d, i + 1);
        give(r, slot, i, end - i, false);
    }
}

static void begin(Run *r) { decoder_begin(r->decoder, r->d->source_rows ? &r->d->source : NULL, r->d->prefix); }

static void same_bits(Run *r, const Run *wanted, const char *how) {
    const DecodeCheck *d = r->d;
    if (r->trouble) {
        r->trouble = arena_printf(d->arena, "%s: %s", how, r->trouble);
        return;
    }
    for (int64_t i = 0; i < d->n; i++)
        if (!check_same_bits(r->hidden + i * d->width, wanted->hidden + i * d->width, d->width)) {
            r->trouble = arena_printf(d->arena, "%s: other bits in row %lld of hidden", how, (long long)i);
            return;
        }
    if (d->vocab && !check_same_bits(r->logits, wanted->logits, d->vocab))
        r->trouble = arena_printf(d->arena, "%s: other bits in logits", how);
}

/* ---------------------------------------------------------------- what must hold */

/* The window of an operation's rule of pairs; 0 without one. */
static int64_t window_of(Arena *arena, const Op *op) {
    if (op->kind != OP_softmax) return 0;
    const KeyBounds bounds = key_bounds(arena, op->a.rule);
    return key_bounds_window(&bounds);
}

static int splits_of(const DecodeCheck *d, int64_t *splits) {
    int n = 0;
    int64_t wanted[MOST_SPLITS] = {1, 2, 15, 16, 17, d->n / 2, d->n - 1};
    int count = 7;
    for (int o = 0; o < d->decode->n_ops && count + 3 <= MOST_SPLITS; o++) {
        const int64_t window = window_of(d->arena, &d->decode->ops[o]);
        bool known = !window;
        for (int k = 7; k < count; k++) known |= wanted[k] == window;
        if (known) continue;
        wanted[count++] = window;
        wanted[count++] = window - 1;
        wanted[count++] = window + 1;
    }
    for (int i = 0; i < count; i++) {
        if (wanted[i] >= 0) wanted[i] = next_cut(d, wanted[i]);
        bool twice = wanted[i] < d->first || wanted[i] >= d->n;
        for (int k = 0; k < n; k++) twice |= splits[k] == wanted[i];
        if (!twice) splits[n++] = wanted[i];
    }
    return n;
}

/* Prefills k rows and appends the others one by one, for several k. */
static const char *check_splits(Run *r, const Run *all) {
    int64_t splits[MOST_SPLITS] = {0};
    int count = splits_of(r->d, splits);
    for (int i = 0; i < count && !r->trouble; i++) {
        begin(r);
        give(r, 0, 0, splits[i], false);
        give_one_by_one(r, 0, splits[i], r->d->n);
        same_bits(r, all, arena_printf(r->d->arena, "a prefill of %lld, then steps", (long long)splits[i]));
    }
    begin(r); /* three prefills */
    const int64_t more = r->d->n - r->d->first, a = next_cut(r->d, r->d->first + more / 3),
                  b = next_cut(r->d, r->d->first + 2 * more / 3);
    give(r, 0, 0, a, false);
    give(r, 0, a, b - a, false);
    give(r, 0, b, r->d->n - b, false);
    if (!r->trouble) same_bits(r, all, "three prefills");
    return r->trouble;
}

/* A fork that continues with other tokens must not change its origin, and a rewound state must have forgotten rows. */
static const char *check_forks(Run *r, const Run *all) {
    const DecodeCheck *d = r->d;
    int64_t half = next_cut(d, d->first + (d->n - d->first) / 2), more = d->n - half < 3 ? d->n - half : 3;
    begin(r);
    give(r, 0, 0, half, false);
    int status = decoder_copy(r->decoder, 1, 0);
    give(r, 1, half, more, true);
    give_one_by_one(r, 0, half, d->n);
    same_bits(r, all, "beside a fork");
    status = status ? status : decoder_rewind(r->decoder, 1, half);
    give_one_by_one(r, 1, half, d->n);
    same_bits(r, all, "a fork that went back");
    status = status ? status : decoder_copy(r->decoder, 2, 1);
    status = status ? status : decoder_rewind(r->decoder, 2, 0);
    give(r, 2, 0, d->n, false);
    same_bits(r, all, "a state rewound to nothing");
    if (status && !r->trouble) r->trouble = arena_printf(d->arena, "forks: %s", decoder_text(r->decoder, status));
    return r->trouble;
}

/* Appends to states of different lengths in one call: a ragged prefill, then a step for every unfinished state. */
static const char *check_together(Run *r, const Run *all) {
    const DecodeCheck *d = r->d;
    int32_t lengths[SLOTS];
    int64_t held[SLOTS], total = 0;
    int slots[SLOTS];
    for (int s = 0; s < SLOTS; s++) {
        held[s] = next_cut(d, d->first + (d->n - d->first) * s / SLOTS);
        lengths[s] = (int32_t)held[s];
        total += held[s];
        slots[s] = SLOTS - 1 - s;
    }
    if (d->cuts) total = SLOTS * d->n; /* a later call may append more rows than the first one */
    uint8_t *given[MOST_INPUTS] = {NULL};
    for (int role = 0; role < MOST_INPUTS; role++)
        if (d->row_bytes[role]) given[role] = arena_array(r->arena, (size_t)total, d->row_bytes[role]);
    float *hidden = arena_array(r->arena, (size_t)(total * d->width), sizeof *hidden),
          *logits = arena_array(r->arena, (size_t)(SLOTS * d->vocab) + 1, sizeof *logits);
    begin(r);
    for (int64_t row = 0; !r->trouble; row++) { /* row 0: the prefill */
        int count = 0;
        int64_t at = 0;
        for (int s = 0; s < SLOTS; s++) {
            if (row && held[s] == d->n) continue;
            int64_t from = row ? held[s] : 0;
            slots[count] = SLOTS - 1 - s;
            lengths[count++] = (int32_t)(row ? next_cut(d, held[s] + 1) - held[s] : held[s]);
            const DecoderRows own = check_decode_rows(d, false, from, NULL, NULL);
            const size_t rows = (size_t)lengths[count - 1];
            for (int role = 0; role < MOST_INPUTS; role++)
                if (given[role])
                    memcpy(given[role] + (size_t)at * d->row_bytes[role], own.inputs[role], rows * d->row_bytes[role]);
            at += lengths[count - 1];
        }
        if (!count) break;
        DecoderRows in = {.count = count, .slots = slots, .lengths = row && !d->cuts ? NULL : lengths};
        for (int role = 0; role < MOST_INPUTS; role++)
            in.inputs[role] = d->row_bytes[role] ? given[role] : row ? NULL : d->given[role];
        if (!append(r, &in, at, logits, hidden)) return arena_printf(d->arena, "states together: %s", r->trouble);
        at = 0;
        for (int k = 0; k < count; k++) {
            int s = SLOTS - 1 - slots[k];
            int64_t from = row ? held[s] : 0;
            for (int64_t i = 0; i < lengths[k]; i++, at++)
                if (!check_same_bits(hidden + at * d->width, all->hidden + (from + i) * d->width, d->width))
                    return arena_printf(d->arena, "%d states together: other bits in row %lld of hidden", count,
                                        (long long)(from + i));
            if (row) held[s] += lengths[k];
            if (held[s] == d->n && d->vocab &&
                !check_same_bits(logits + k * d->vocab, all->logits, d->vocab))
                return arena_printf(d->arena, "%d states together: other bits in logits", count);
        }
    }
    return r->trouble;
}

/* The inputs of decode, as the interpreter takes them. */
static int decode_inputs(const DecodeCheck *d, InputArray *inputs) {
    int n = 0;
    for (int i = 0; i < d->whole.n_inputs; i++) {
        InputArray input = d->whole.inputs[i];
        if (input.role == IN_target) input.role = IN_tokens;
        else if (!graph_input(d->decode, input.role)) continue; /* of the source */
        inputs[n++] = input;
    }
    return n;
}

static void take_outputs(DecodeCheck *d, const Interpretation *result) {
    for (int o = 0; o < result->n_outputs; o++) {
        if (result->outputs[o].role == OUT_hidden) d->hidden = result->outputs[o].data;
        if (result->outputs[o].role == OUT_logits) d->logits = result->outputs[o].data;
    }
}

/* Decodes the whole text in a new state of the session, and frees the state. */
static const Interpretation *decode_text(const DecodeCheck *d, Arena *arena, Session *session) {
    InputArray inputs[MAX_GRAPH_INPUTS];
    const int n_inputs = decode_inputs(d, inputs);
    if (d->source_rows) session_encode(arena, session, d->source.inputs, d->source.n_inputs, d->source_rows);
    const Interpretation *result = session_decode(arena, session, inputs, n_inputs, d->n);
    session_free(session);
    return result;
}

/* Sets hidden and logits to the interpreter's, which goes on from the rows that this target quantizes. */
static const char *interpret_text(DecodeCheck *d, Arena *arena, Engine *engine, GuardSide side,
                                  QuantizeReport *report) {
    DecodeSteps steps = {.arena = arena, .engine = engine};
    const DriverCall before = steps_watch(engine, engine->call.target, decode_steps_at, &steps);
    Decoder *decoder = decoder_new(arena, engine->module, NULL, engine, 1, side);
    Run all = run_new(d, arena, decoder, side);
    steps.decoder = decoder;
    if (d->source_rows) decode_steps_enter(&steps, ENTRY_ENCODE, d->source_rows);
    begin(&all);
    decode_steps_enter(&steps, ENTRY_DECODE, d->n);
    give(&all, 0, 0, d->n, false);
    steps_unwatch(engine, before.target, &before);
    if (all.trouble) return all.trouble;
    const Module *own = engine->module, *reference = d->reference;
    Session *session = session_new(arena, reference, d->weights);
    const QuantizedRows *rows[ENTRY_COUNT] = {NULL};
    for (EntryKind e = ENTRY_ENCODE; e <= ENTRY_DECODE; e++)
        if (own->entries[e]) rows[e] = quantized_of(arena, reference->entries[e], steps.kept[e], own->entries[e]);
    session_adopt(session, rows[ENTRY_ENCODE], rows[ENTRY_DECODE], report);
    take_outputs(d, decode_text(d, arena, session));
    return report->wrong ? arena_printf(d->arena, "%lld rounded numbers of `%s` are not near those of the interpreter",
                                        (long long)report->wrong, report->tensor)
                         : NULL;
}

/* The interpreter's decode of the text in the fixed order of f32 operations. */
static const Interpretation *interpret_exactly(const DecodeCheck *d, Arena *arena, const Engine *engine) {
    Session *session = session_new(arena, engine->module, d->weights);
    session_arithmetic(session, engine->program->arithmetic);
    progress_begin("interpreting a text of %lld rows in f32", (long long)d->n);
    return decode_text(d, arena, session);
}

/* Describes the first number whose bits are not the interpreter's, or returns NULL. */
static const char *compare_exactly(const DecodeCheck *d, const Interpretation *exact, const Run *all) {
    for (int o = 0; o < exact->n_outputs; o++) {
        const OutputArray *out = &exact->outputs[o];
        const bool hidden = out->role == OUT_hidden;
        if (!hidden && out->role != OUT_logits) continue;
        const int64_t rows = hidden ? d->n : 1, columns = hidden ? d->width : d->vocab;
        if (columns < 1) continue;
        const int64_t at = exact_difference(hidden ? all->hidden : all->logits, columns, out->data, rows, columns);
        if (at >= 0)
            return arena_printf(d->arena, "%s at [%lld][%lld] has other bits than the interpreter's in f32",
                                output_name(out->role), (long long)(at / columns), (long long)(at % columns));
    }
    return NULL;
}

/* Damage is reported first, since other failures follow from it. */
static const char *first_trouble(const Decoder *decoder, const char *trouble) {
    const char *damage = decoder_damage(decoder);
    return damage ? damage : trouble;
}

uint64_t check_decode_bits(const DecodeCheck *d, uint64_t seed, const DecodeBits *bits) {
    if (bits->hidden) seed = check_bits(seed, bits->hidden, d->n * d->width);
    return bits->logits ? check_bits(seed, bits->logits, d->vocab) : seed;
}

const char *check_decode(DecodeCheck *d, Arena *arena, Engine *engine, GuardSide side, DecodeBits *bits,
                         Difference *hidden, Difference *logits) {
    QuantizeReport report = {0};
    const bool first = !bits->hidden, fixed = engine->program->arithmetic != ARITHMETIC_FREE;
    const Interpretation *exact = first && fixed ? interpret_exactly(d, arena, engine) : NULL;
    if (d->quantizes && first) {
        const char *trouble = interpret_text(d, arena, engine, side, &report);
        if (trouble) return trouble;
    }
    Decoder *decoder = decoder_new(arena, engine->module, NULL, engine, SLOTS, side);
    Run all = run_new(d, arena, decoder, side), other = run_new(d, arena, decoder, side);
    begin(&all);
    give(&all, 0, 0, d->n, false);
    if (all.trouble || decoder_damage(decoder)) return first_trouble(decoder, all.trouble);
    check_compare(hidden, all.hidden, d->width, d->hidden, d->n, d->width, d->hidden_spread);
    if (d->vocab) check_compare(logits, all.logits, d->vocab, d->logits, 1, d->vocab, d->logits_spread);
    const char *other_bits = exact ? compare_exactly(d, exact, &all) : NULL;
    if (other_bits) return other_bits;
    if (!bits->hidden) {
        bits->hidden = all.hidden;
        bits->logits = all.logits;
    } else if (!check_same_bits(bits->hidden, all.hidden, d->n * d->width) ||
               !check_same_bits(bits->logits, all.logits, d->vocab)) {
        return "other bits than with one thread";
    }
    if (d->first >= d->n) return decoder_damage(decoder);
    const char *trouble = check_splits(&other, &all);
    if (!trouble) trouble = check_forks(&other, &all);
    if (!trouble) trouble = check_together(&other, &all);
    return first_trouble(decoder, trouble);
}

/* ---------------------------------------------------------------- maps */

/* Compares all maps of one role from a call that appended rows from..from+rows-1. */
static void compare_maps(const DecodeCheck *d, const Graph *decode, OutputRole role, const float *got, int64_t from,
                         int64_t rows, Difference *diff) {
    bool cross = role == OUT_cross_attention;
    int64_t m = cross ? d->source_rows : d->n, keys = cross ? m : from + rows;
    double *want = arena_array(d->arena, (size_t)(rows * keys), sizeof *want);
    for (int o = 0; o < decode->n_outputs; o++) {
        const GraphOutput *out = &decode->outputs[o];
        if (out->layer < 0 || out->role != role) continue;
        const double *whole = d->outputs[check_same_output(d->reference->entries[ENTRY_FORWARD], decode, o)].data;
        for (int64_t h = 0; h < out->n_heads; h++, got += rows * keys) {
            for (int64_t i = 0; i < rows; i++)
                for (int64_t j = 0; j < keys; j++)
                    want[i * keys + j] = whole[(out->heads[h] * d->n + from + i) * m + j];
            check_compare(diff, got, keys, want, rows, keys, 0);
        }
    }
}

const char *check_decode_maps(DecodeCheck *d, Arena *arena, Engine *engine, GuardSide side, Difference *self,
                              Difference *cross) {
    const Graph *decode = engine->module->entries[ENTRY_DECODE];
    Decoder *decoder = decoder_new(arena, engine->module, NULL, engine, 1, side);
    *self = *cross = (Difference){0};
    if (d->quantizes) return decoder_damage(decoder); /* forward's maps are of other rounded rows than decode's */
    int64_t n_self = graph_output_heads(decode, OUT_attention),
            n_cross = graph_output_heads(decode, OUT_cross_attention),
            first = next_cut(d, d->first + (d->n - d->first) / 2);
    const int slot = 0;
    const int64_t begins[] = {0, first, d->n};
    Guard *own_map = guard_new(arena, "the output attention", (size_t)(n_self * d->n * d->n) * sizeof(float)),
          *cross_map = guard_new(arena, "the output cross_attention",
                                 (size_t)(n_cross * d->n * d->source_rows) * sizeof(float));
    decoder_begin(decoder, d->source_rows ? &d->source : NULL, d->prefix);
    for (int part = 0; part < 2; part++, side = guard_other(side)) {
        int64_t from = begins[part], rows = begins[part + 1] - from;
        if (rows < 1) break;
        const int32_t length = (int32_t)rows;
        const DecoderRows in = check_decode_rows(d, false, from, &slot, &length);
        DecoderOutputs out = {0};
        if (n_self) out.attention = taken(own_map, n_self * rows * (from + rows), side);
        if (n_cross) out.cross_attention = taken(cross_map, n_cross * rows * d->source_rows, side);
        int status = decoder_append(decoder, &in, &out);
        if (status) return decoder_text(decoder, status);
        const char *damage = guard_damage(arena, own_map);
        if (!damage) damage = guard_damage(arena, cross_map);
        if (damage) return damage;
        if (n_self) compare_maps(d, decode, OUT_attention, out.attention, from, rows, self);
        if (n_cross) compare_maps(d, decode, OUT_cross_attention, out.cross_attention, from, rows, cross);
    }
    return decoder_damage(decoder);
}
