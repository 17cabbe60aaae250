/* decode.c: rows appended to states give the same bits however they are cut into calls, whatever other states stand in
 * a call, and in however many threads. */
#include "program.h"

#ifndef HAS_DECODE

void hash_decoded(const M(ctx) *ctx, uint64_t *sum) { (void)ctx, (void)sum; }
void try_decode(void) {}

#else

enum { TEXTS = 5, WIDTH = U(HIDDEN_WIDTH), VOCAB = U(VOCAB) };

typedef struct Text {
    int rows;
    int32_t tokens[MOST_ROWS];
    void *source, *state;
    float hidden[MOST_ROWS * WIDTH], logits[MOST_ROWS * VOCAB]; /* of a row at a time, in one thread */
    int held;
} Text;

static Text texts[TEXTS];

static void check(int status, const char *what) {
    if (status) failed("%s: %s", what, M(status_text)(status));
}

#ifdef SOURCE_LENGTHS

static void make_source(const M(ctx) *ctx, Text *t) {
    static int32_t ids[MOST_SOURCE];
    int32_t length = 1 + (int32_t)random_below(MOST_SOURCE);
    M(source) input = {0};
    M(encoded) output = {0};
    for (int i = 0; i < length; i++) ids[i] = (int32_t)random_below(SOURCE_IDS);
    input.size = sizeof input;
    input.batch = 1;
    input.lengths = &length;
    input.source = ids;
    output.size = sizeof output;
    t->source = block(U(SOURCE_BYTES));
    void *workspace = block(U(ENCODE_WORKSPACE_BYTES)(1));
    check(M(encode)(ctx, &input, &output, &t->source, workspace, U(ENCODE_WORKSPACE_BYTES)(1)), "encode");
    free(workspace);
}

static void begin(Text *t) { check(M(state_init)(t->state, U(STATE_BYTES), t->source), "state_init"); }

#else

static void make_source(const M(ctx) *ctx, Text *t) { (void)ctx, (void)t; }
static void begin(Text *t) { check(M(state_init)(t->state, U(STATE_BYTES)), "state_init"); }

#endif

/* One row a call. */
static void decode_plainly(const M(ctx) *ctx, Text *t) {
    void *workspace = block(U(DECODE_WORKSPACE_BYTES)(1));
    begin(t);
    for (int i = 0; i < t->rows; i++) {
        M(decoded) output = {0};
        output.size = sizeof output;
        output.hidden = t->hidden + i * WIDTH;
        output.logits = t->logits + i * VOCAB;
        check(M(step)(ctx, &t->state, t->tokens + i, 1, &output, workspace, U(DECODE_WORKSPACE_BYTES)(1)), "step");
    }
    free(workspace);
}

void hash_decoded(const M(ctx) *ctx, uint64_t *sum) {
    for (int i = 0; i < TEXTS; i++) {
        Text *t = &texts[i];
        if (!t->state) {
            t->state = block(U(STATE_BYTES));
            t->rows = i ? 2 + (int)random_below(MOST_ROWS - 1) : MOST_ROWS;
            for (int r = 0; r < t->rows; r++) t->tokens[r] = (int32_t)random_below(VOCAB);
            make_source(ctx, t);
        }
        decode_plainly(ctx, t);
        add_hash(sum, t->hidden, (size_t)(t->rows * WIDTH));
        add_hash(sum, t->logits, (size_t)(t->rows * VOCAB));
    }
}

/* Some more rows of some of the texts that are not at their end. */
static int choose(Text **chosen, int32_t *lengths) {
    int count = 0, most = (int)random_below(3);
    for (int i = 0, first = (int)random_below(TEXTS); i < TEXTS; i++) {
        Text *t = &texts[(first + i) % TEXTS];
        int left = t->rows - t->held;
        if (!left || random_below(3) == 0) continue;
        chosen[count] = t;
        lengths[count++] = most ? 1 + (int32_t)random_below((uint64_t)left) : 1;
    }
    return count;
}

static void compare(const Text *t, int length, const float *hidden, const float *logits) {
    int last = t->held + length - 1;
    if (memcmp(hidden, t->hidden + t->held * WIDTH, (size_t)(length * WIDTH) * sizeof *hidden) != 0 ||
        memcmp(logits, t->logits + last * VOCAB, VOCAB * sizeof *logits) != 0)
        failed("rows %d to %d of a text of %d: other bits than row by row", t->held, last, t->rows);
}

static void append(const M(ctx) *ctx, int threads, Text **chosen, const int32_t *lengths, int count) {
    static int32_t tokens[TEXTS * MOST_ROWS];
    static float hidden[TEXTS * MOST_ROWS * WIDTH], logits[TEXTS * VOCAB];
    void *states[TEXTS], *workspace = block(U(DECODE_WORKSPACE_BYTES)(threads));
    M(rows) input = {0};
    M(decoded) output = {0};
    int rows = 0;
    for (int i = 0; i < count; i++) {
        states[i] = chosen[i]->state;
        memcpy(tokens + rows, chosen[i]->tokens + chosen[i]->held, (size_t)lengths[i] * sizeof *tokens);
        rows += lengths[i];
    }
    input.size = sizeof input;
    input.batch = count;
    input.states = states;
    input.lengths = lengths;
    input.tokens = tokens;
    output.size = sizeof output;
    output.hidden = hidden;
    output.logits = logits;
    size_t bytes = U(DECODE_WORKSPACE_BYTES)(threads);
    if (count == 1 && random_below(2))
        check(M(prefill)(ctx, states[0], tokens, lengths[0], &output, workspace, bytes), "prefill");
    else check(M(decode)(ctx, &input, &output, workspace, bytes), "decode");
    free(workspace);
    rows = 0;
    for (int i = 0; i < count; i++) {
        compare(chosen[i], lengths[i], hidden + rows * WIDTH, logits + i * VOCAB);
        chosen[i]->held += lengths[i];
        rows += lengths[i];
    }
}

/* All texts to their ends, in calls of any kind, now and then in another number of threads. */
void try_decode(void) {
    M(ctx) ctx;
    int threads = 1, left = 1;
    for (int i = 0; i < TEXTS; i++) {
        begin(&texts[i]);
        texts[i].held = 0;
    }
    make_ctx(&ctx, 1, 0);
    while (left) {
        Text *chosen[TEXTS];
        int32_t lengths[TEXTS];
        if (random_below(4) == 0) {
            threads = 1 + (int)random_below(MOST_THREADS);
            make_ctx(&ctx, threads, (int)random_below(MOST_POOLS + 1));
        }
        int count = choose(chosen, lengths);
        if (count) append(&ctx, threads, chosen, lengths, count);
        left = 0;
        for (int i = 0; i < TEXTS; i++) left += texts[i].rows - texts[i].held;
    }
}

#endif
