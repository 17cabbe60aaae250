/* session.c: runs a decoder step by step in the interpreter, over a source and a state to which rows are appended. A
 * call that fails leaves the state as it was, since the new arrays are complete before the old ones are freed. */
#include "../attnc.h"

#include <string.h>

/* An input that has one number for the sequence. */
typedef struct KeptNumber {
    bool given;
    int64_t integer;
    float real;
} KeptNumber;

struct Session {
    const Module *module;
    const Weights *weights;
    int64_t rows, source_rows; /* source_rows is 0 before a source is encoded */
    int64_t prefix;            /* with `mask prefix`, the number of rows of the prefix; 0 without rows */
    KeptNumber numbers[MOST_INPUTS]; /* by role: the numbers of the sequence that came with the first rows */
    Arena *kept, *source;      /* own the arrays of `states`; those of the source are in `source` */
    const QuantizedRows *encode_rows, *decode_rows; /* of session_adopt, or NULL */
    QuantizeReport *report;
    Arithmetic arithmetic;
    const double **states;     /* an array for each state of the decode graph, or NULL before the first call */
};

Session *session_new(Arena *arena, const Module *module, const Weights *weights) {
    if (!module->entries[ENTRY_DECODE])
        fail_status(EXIT_CANNOT, "no rows can be appended: %s",
                    module->no_decode ? module->no_decode : "the model has no decoder");
    Session *session = arena_alloc(arena, sizeof *session);
    session->module = module;
    session->weights = weights;
    session->states = arena_array(arena, (size_t)module->entries[ENTRY_DECODE]->n_states, sizeof *session->states);
    session->kept = arena_new();
    session->source = arena_new();
    return session;
}

void session_free(Session *session) {
    arena_free(session->kept);
    arena_free(session->source);
}

int64_t session_rows(const Session *session) { return session->rows; }

static const double *keep(Arena *arena, const double *from, int64_t count) {
    double *to = arena_array(arena, (size_t)count, sizeof *to);
    if (count) memcpy(to, from, (size_t)count * sizeof *to);
    return to;
}

static const double **states_copy(Arena *arena, const Session *session) {
    size_t count = (size_t)session->module->entries[ENTRY_DECODE]->n_states;
    const double **states = arena_array(arena, count, sizeof *states);
    memcpy(states, session->states, count * sizeof *states);
    return states;
}

static int64_t state_columns(const Graph *graph, const GraphState *state) {
    const Tensor *rows = &graph->tensors[state->in != NO_TENSOR ? state->in : state->out];
    return rows->rank == 1 ? 1 : rows->dims[1].n;
}

Interpretation *session_encode(Arena *arena, Session *session, const InputArray *inputs, int n_inputs, int64_t rows) {
    const Graph *encode = session->module->entries[ENTRY_ENCODE], *decode = session->module->entries[ENTRY_DECODE];
    if (!encode) fail("a decoder alone has no source");
    Length seq = session->module->model->encoder->seq; /* an exact length is not a symbol, which interpret checks */
    if (seq.exact && rows != seq.n) fail("the length src is %lld; it must be %lld", (long long)rows, (long long)seq.n);
    const int64_t symbols[] = {rows, 0, 0, 0};
    const InterpretHow how = {
        .rows = session->encode_rows, .report = session->report, .arithmetic = session->arithmetic};
    Interpretation *result =
        interpret_as(arena, session->module, encode, session->weights, inputs, n_inputs, symbols, &how);
    Arena *fresh = arena_new();
    const double **states = states_copy(fresh, session);
    for (int i = 0; i < encode->n_states; i++)
        for (int k = 0; k < decode->n_states; k++)
            if (strcmp(encode->states[i].name, decode->states[k].name) == 0)
                states[k] = keep(fresh, result->tensors[encode->states[i].out],
                                 rows * state_columns(decode, &decode->states[k]));
    memcpy(session->states, states, (size_t)decode->n_states * sizeof *states);
    arena_free(session->source);
    session->source = fresh;
    session->source_rows = rows;
    session_rewind(session, 0);
    return result;
}

/* Sets the symbols of the decode graph by their names. */
static void decode_symbols(const Session *session, int64_t rows, int64_t *symbols) {
    const Graph *graph = session->module->entries[ENTRY_DECODE];
    for (int s = 0; s < graph->n_symbols; s++) {
        const char *name = graph->symbols[s].name;
        symbols[s] = strcmp(name, "rows") == 0    ? rows
                     : strcmp(name, "past") == 0  ? session->rows
                     : strcmp(name, "total") == 0 ? session->rows + rows
                                                  : session->source_rows;
    }
}

/* The prefix of the state with these inputs. The rows of a prefix are visible to each other, so all of them must be in
 * the first call, and later calls must give the same length. */
static int64_t prefix_of(const Session *session, const InputArray *inputs, int n_inputs, int64_t rows) {
    const Graph *graph = session->module->entries[ENTRY_DECODE];
    const bool wanted = graph_input(graph, IN_prefix_length) != NULL;
    for (int i = 0; i < n_inputs && wanted; i++) {
        if (inputs[i].role != IN_prefix_length || inputs[i].dtype != DTYPE_I64) continue;
        int64_t prefix = *(const int64_t *)inputs[i].data;
        if (session->rows && prefix != session->prefix)
            fail("prefix_length is %lld, and the state began with %lld", (long long)prefix, (long long)session->prefix);
        if (!session->rows && (prefix < 0 || prefix > rows))
            fail("prefix_length is %lld; with %lld first rows it must be 0 to %lld", (long long)prefix, (long long)rows,
                 (long long)rows);
        return prefix;
    }
    return 0;
}

/* Sets `numbers` to the numbers of the sequence, which the first rows of a state come with, and `all` to the inputs of
 * a call with these numbers; returns how many inputs there are. */
static int with_numbers(const Session *session, const InputArray *inputs, int n_inputs, KeptNumber *numbers,
                        InputArray *all) {
    const Graph *graph = session->module->entries[ENTRY_DECODE];
    int n = 0;
    for (int i = 0; i < graph->n_inputs; i++) {
        const InputRole role = graph->inputs[i].kind->role;
        const Dtype dtype = graph->inputs[i].kind->dtype;
        KeptNumber *kept = &numbers[role];
        const InputArray *given = NULL;
        for (int k = 0; k < n_inputs; k++)
            if (inputs[k].role == role) given = &inputs[k];
        const bool is_number = input_is_own_number(graph->inputs[i].kind);
        if (!is_number && given) all[n++] = *given;
        if (!is_number) continue;
        if (session->rows) *kept = session->numbers[role];
        else if (given && dtype == DTYPE_I64) *kept = (KeptNumber){true, *(const int64_t *)given->data, 0};
        else if (given) *kept = (KeptNumber){true, 0, *(const float *)given->data};
        const void *data = dtype == DTYPE_I64 ? (const void *)&kept->integer : &kept->real;
        if (kept->given) all[n++] = (InputArray){role, dtype, 1, data};
    }
    return n;
}

/* The numbers of an input for the rows of the state, which state `state` keeps, and for those of the call up to
 * `total`. */
static PairInput numbers_of_rows(const Session *session, Arena *arena, int state, const InputArray *given,
                                 int64_t total) {
    const bool whole = state_is_integers(&session->module->entries[ENTRY_DECODE]->states[state]);
    int64_t *integers = whole ? arena_array(arena, (size_t)total, sizeof *integers) : NULL;
    double *reals = whole ? NULL : arena_array(arena, (size_t)total, sizeof *reals);
    const size_t kept = (size_t)session->rows * sizeof(int64_t);
    if (kept) memcpy(whole ? (void *)integers : (void *)reals, session->states[state], kept);
    for (int64_t i = 0; given && i < given->rows; i++)
        if (whole) integers[session->rows + i] = ((const int64_t *)given->data)[i];
        else reals[session->rows + i] = (double)((const float *)given->data)[i];
    return (PairInput){.rows = integers, .real = reals};
}

/* Fails if one of the first `split` rows sees one of the rows from `split` to `total` - 1. The inputs give the numbers
 * of the rows that the state does not have yet. */
static void refuse_across(const Session *session, const InputArray *inputs, int n_inputs, int64_t split, int64_t total,
                          const char *why) {
    const Graph *graph = session->module->entries[ENTRY_DECODE];
    PairInput numbers[MOST_INPUTS] = {{0}};
    if (!graph_looks_ahead(graph) || split == 0) return;
    Arena *arena = arena_new();
    for (int i = 0; i < graph->n_inputs; i++) {
        const InputRole role = graph->inputs[i].kind->role;
        const int state = graph_kept_state(graph, &graph->inputs[i]);
        const KeptNumber *kept = &session->numbers[role];
        if (input_is_own_number(graph->inputs[i].kind)) {
            if (graph->inputs[i].kind->dtype == DTYPE_I64) numbers[role].rows = &kept->integer;
            else numbers[role].single = &kept->real;
        }
        if (state < 0) continue;
        const InputArray *given = NULL;
        for (int k = 0; k < n_inputs; k++)
            if (inputs[k].role == role && inputs[k].rows == total - session->rows) given = &inputs[k];
        numbers[role] = numbers_of_rows(session, arena, state, given, total);
    }
    const int64_t row = graph_looks_across(graph, numbers, split, total);
    arena_free(arena);
    if (row >= 0) fail(why, (long long)row, (long long)split);
}

Interpretation *session_decode(Arena *arena, Session *session, const InputArray *inputs, int n_inputs, int64_t rows) {
    const Graph *graph = session->module->entries[ENTRY_DECODE];
    int64_t symbols[4] = {0}, bound = session->module->model->decoder->seq.n;
    if (session->module->entries[ENTRY_ENCODE] && !session->source_rows)
        fail("a step needs a source: none was encoded");
    if (rows > bound - session->rows)
        fail("%lld more rows do not fit: the state holds %lld of %lld", (long long)rows, (long long)session->rows,
             (long long)bound);
    int64_t prefix = prefix_of(session, inputs, n_inputs, rows),
            crossed = graph_crossing(graph, session->rows, session->rows + rows);
    if (session->rows && crossed)
        fail("rows beyond %lld are turned by other angles: rewind to 0 and give all of them in one call",
             (long long)crossed);
    refuse_across(session, inputs, n_inputs, session->rows, session->rows + rows,
                  "row %lld sees a row from %lld on, which this call appends: give both in one call");
    decode_symbols(session, rows, symbols);
    KeptNumber numbers[MOST_INPUTS] = {{0}};
    InputArray all[MAX_GRAPH_INPUTS];
    const int n_all = with_numbers(session, inputs, n_inputs, numbers, all);
    const InterpretHow how = {.states = session->states,
                              .rows = session->decode_rows,
                              .report = session->report,
                              .arithmetic = session->arithmetic};
    Interpretation *result =
        interpret_as(arena, session->module, graph, session->weights, all, n_all, symbols, &how);
    Arena *fresh = arena_new();
    const double **states = states_copy(fresh, session);
    for (int i = 0; i < graph->n_states; i++) {
        const GraphState *state = &graph->states[i];
        if (state->in != NO_TENSOR) result->tensors[state->in] = NULL; /* freed below with the session's old arrays */
        if (state->out == NO_TENSOR) continue;
        states[i] = keep(fresh, result->tensors[state->out], (session->rows + rows) * state_columns(graph, state));
    }
    memcpy(session->states, states, (size_t)graph->n_states * sizeof *states);
    arena_free(session->kept);
    session->kept = fresh;
    session->rows += rows;
    session->prefix = prefix;
    memcpy(session->numbers, numbers, sizeof numbers);
    return result;
}

void session_adopt(Session *session, const QuantizedRows *encode, const QuantizedRows *decode, QuantizeReport *report) {
    session->encode_rows = encode;
    session->decode_rows = decode;
    session->report = report;
}

void session_arithmetic(Session *session, Arithmetic arithmetic) { session->arithmetic = arithmetic; }

void session_copy(Session *to, const Session *from) {
    const Graph *graph = from->module->entries[ENTRY_DECODE];
    if (to->module != from->module) bug("a state is copied to that of another model");
    Arena *kept = arena_new(), *source = arena_new();
    const double **states = states_copy(kept, from);
    for (int i = 0; i < graph->n_states; i++) {
        bool of_source = graph->states[i].of_source;
        int64_t rows = of_source ? from->source_rows : from->rows;
        states[i] = keep(of_source ? source : kept, from->states[i], rows * state_columns(graph, &graph->states[i]));
    }
    memcpy(to->states, states, (size_t)graph->n_states * sizeof *states);
    arena_free(to->kept);
    arena_free(to->source);
    to->kept = kept;
    to->source = source;
    to->rows = from->rows;
    to->source_rows = from->source_rows;
    to->prefix = from->prefix;
    memcpy(to->numbers, from->numbers, sizeof to->numbers);
}

void session_rewind(Session *session, int64_t rows) {
    if (rows < 0 || rows > session->rows)
        fail("a state of %lld rows cannot go back to %lld", (long long)session->rows, (long long)rows);
    if (rows > 0 && rows < session->prefix)
        fail("a state whose prefix is %lld rows cannot go back to %lld: each of them has seen all",
             (long long)session->prefix, (long long)rows);
    int64_t crossed = graph_crossing(session->module->entries[ENTRY_DECODE], rows, session->rows);
    if (rows > 0 && crossed)
        fail("a state of more than %lld rows, turned by other angles, cannot go back to %lld", (long long)crossed,
             (long long)rows);
    if (rows > 0 && rows < session->rows)
        refuse_across(session, NULL, 0, rows, session->rows,
                      "row %lld has seen a row from %lld on: a state cannot go back between them");
    session->rows = rows;
}
