/* session.c: the interpreter's side of a conversation: a source, and rows that are appended to a state. */
#include "../attnc.h"

#include <string.h>

struct Session {
    const Module *module;
    const Weights *weights;
    int64_t rows, source_rows; /* source_rows 0: none yet */
    Arena *kept, *source;      /* own the arrays of `states`, those of the source apart */
    const double **states;     /* one a state of the decode graph; NULL: nothing yet */
};

Session *session_new(Arena *arena, const Module *module, const Weights *weights) {
    Session *session = arena_alloc(arena, sizeof *session);
    session->module = module;
    session->weights = weights;
    session->states = arena_array(arena, (size_t)module->decode->n_states, sizeof *session->states);
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

static int64_t state_columns(const Graph *graph, const GraphState *state) {
    return graph->tensors[state->in != NO_TENSOR ? state->in : state->out].dims[1].n;
}

Interpretation *session_encode(Arena *arena, Session *session, const InputArray *inputs, int n_inputs, int64_t rows) {
    const Graph *encode = session->module->encode, *decode = session->module->decode;
    const int64_t symbols[] = {rows, 0, 0, 0};
    Interpretation *result = interpret(arena, session->module, encode, session->weights, inputs, n_inputs, symbols);
    Arena *fresh = arena_new();
    for (int i = 0; i < encode->n_states; i++)
        for (int k = 0; k < decode->n_states; k++)
            if (strcmp(encode->states[i].name, decode->states[k].name) == 0)
                session->states[k] = keep(fresh, result->tensors[encode->states[i].out],
                                          rows * state_columns(decode, &decode->states[k]));
    arena_free(session->source);
    session->source = fresh;
    session->source_rows = rows;
    session_rewind(session, 0);
    return result;
}

/* The symbols of a decode graph, in the order in which build makes them. */
static void decode_symbols(const Session *session, int64_t rows, int64_t *symbols) {
    const Graph *graph = session->module->decode;
    for (int s = 0; s < graph->n_symbols; s++) {
        const char *name = graph->symbols[s].name;
        symbols[s] = strcmp(name, "rows") == 0    ? rows
                     : strcmp(name, "past") == 0  ? session->rows
                     : strcmp(name, "total") == 0 ? session->rows + rows
                                                  : session->source_rows;
    }
}

Interpretation *session_decode(Arena *arena, Session *session, const InputArray *inputs, int n_inputs, int64_t rows) {
    const Graph *graph = session->module->decode;
    int64_t symbols[4] = {0};
    if (session->module->encode && !session->source_rows) fail("a step needs a source: none was encoded");
    decode_symbols(session, rows, symbols);
    Interpretation *result = interpret_from(arena, session->module, graph, session->weights, inputs, n_inputs, symbols,
                                            session->states);
    Arena *fresh = arena_new();
    for (int i = 0; i < graph->n_states; i++) {
        const GraphState *state = &graph->states[i];
        if (state->out == NO_TENSOR) continue;
        session->states[i] =
            keep(fresh, result->tensors[state->out], (session->rows + rows) * state_columns(graph, state));
    }
    arena_free(session->kept);
    session->kept = fresh;
    session->rows += rows;
    return result;
}

void session_copy(Session *to, const Session *from) {
    const Graph *graph = from->module->decode;
    Arena *kept = arena_new(), *source = arena_new();
    for (int i = 0; i < graph->n_states; i++) {
        bool of_source = graph->states[i].of_source;
        int64_t rows = of_source ? from->source_rows : from->rows;
        to->states[i] = keep(of_source ? source : kept, from->states[i], rows * state_columns(graph, &graph->states[i]));
    }
    arena_free(to->kept);
    arena_free(to->source);
    to->kept = kept;
    to->source = source;
    to->rows = from->rows;
    to->source_rows = from->source_rows;
}

void session_rewind(Session *session, int64_t rows) {
    if (rows < 0 || rows > session->rows)
        fail("a state of %lld rows cannot go back to %lld", (long long)session->rows, (long long)rows);
    session->rows = rows;
}
