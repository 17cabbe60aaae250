/* statuses.c: every bad input gives its status, changes no byte of any state, source or output, and the next good call
 * gives the bits of an undisturbed run. */
#include "tests.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Everything that a refused call could reach. */
enum { HELD, ONE, EMPTY, FULL, ZEROS, ONES, NOISE, FOREIGN, SOURCE, MEMORIES };

typedef struct World {
    const Setup *s;
    unsigned char *now[MEMORIES], *before[MEMORIES];
    size_t bytes[MEMORIES];
    float *outputs[4], *ones;      /* full of 0xff */
    size_t output_bytes;
    int32_t *tokens;
    int held;                      /* rows of HELD */
    int fresh_rows;                /* what EMPTY may be given at least */
} World;

static World world_new(const Setup *s, int held) {
    const Setup *other = &setups[(s - setups + 1) % MODELS];
    const Model *m = s->model;
    World w = {.s = s, .held = held, .fresh_rows = m->seq * 3 / 4};
    for (int i = 0; i < MEMORIES; i++) {
        w.bytes[i] = i == FOREIGN ? other->model->state_bytes : i == SOURCE ? m->source_bytes : m->state_bytes;
        if (i == FOREIGN) w.now[i] = new_state(other);
        else if (i == SOURCE) w.now[i] = m->source_bytes ? s->sources[0] : NULL;
        else w.now[i] = i < ZEROS ? new_state(s) : block(w.bytes[i]);
    }
    CHECK(append(s, w.now[HELD], s->tokens, held, NULL, NULL) == OK, "%s: %d rows", m->name, held);
    CHECK(append(s, w.now[ONE], s->tokens, 1, NULL, NULL) == OK, "%s: a row", m->name);
    CHECK(append(s, w.now[FULL], s->tokens, m->seq, NULL, NULL) == OK, "%s: all rows", m->name);
    memset(w.now[ZEROS], 0, w.bytes[ZEROS]);
    for (size_t i = 0; i < w.bytes[NOISE]; i++) w.now[NOISE][i] = (unsigned char)(i * 167 + i / 251);
    for (int i = 0; i < MEMORIES; i++) w.before[i] = w.now[i] ? block_like(w.now[i], w.bytes[i]) : NULL;
    w.output_bytes = (size_t)m->seq * (size_t)(m->seq + m->width + m->vocab) * 2 * sizeof(float);
    for (int i = 0; i < 4; i++) w.outputs[i] = block(w.output_bytes);
    w.ones = block(w.output_bytes);
    w.tokens = block(4 * MOST_SEQ * sizeof *w.tokens);
    for (int i = 0; i < 4 * MOST_SEQ; i++) w.tokens[i] = s->tokens[i % MOST_SEQ];
    return w;
}

static void world_free(World *w) {
    for (int i = 0; i < MEMORIES; i++) {
        if (i != SOURCE) free(w->now[i]);
        free(w->before[i]);
    }
    for (int i = 0; i < 4; i++) free(w->outputs[i]);
    free(w->ones), free(w->tokens);
}

static void unchanged(const World *w, const char *what) {
    static const char *const names[] = {"a state", "a state of one row", "an empty state", "a full state", "zeros",
                                        "ones", "noise", "another model's state", "the source"};
    for (int i = 0; i < MEMORIES; i++)
        CHECK(!w->now[i] || memcmp(w->now[i], w->before[i], w->bytes[i]) == 0, "%s: %s: %s changed", w->s->model->name,
              what, names[i]);
    for (int i = 0; i < 4; i++)
        CHECK(memcmp(w->outputs[i], w->ones, w->output_bytes) == 0, "%s: %s: output %d changed", w->s->model->name,
              what, i);
}

static void expect(const World *w, int status, int wanted, const char *what) {
    CHECK(status == wanted, "%s: %s: `%s`, not `%s`", w->s->model->name, what, w->s->model->text(status),
          w->s->model->text(wanted));
    unchanged(w, what);
}

/* A call that must be refused, with every output wanted. */
static void refuse(const World *w, Call call, int wanted, const char *what) {
    call.hidden = w->outputs[0];
    call.logits = w->outputs[1];
    call.attention = w->outputs[2];
    call.cross_attention = w->outputs[3];
    expect(w, w->s->model->decode(&call), wanted, what);
}

static Call call_of(const World *w, void *const *states, const int32_t *lengths, int batch) {
    Call call = new_call(w->s, states, batch, w->tokens);
    call.lengths = lengths;
    return call;
}

/* ---------------------------------------------------------------- decode */

static void bad_lengths(const World *w) {
    const Setup *s = w->s;
    const int seq = s->model->seq, rest = seq - w->held;
    void *held = w->now[HELD], *ragged[] = {w->now[EMPTY], w->now[ONE], held};
    const int bad[] = {rest + 1, seq, seq + 1, 0, -1, INT_MAX, INT_MIN};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const int32_t one[] = {bad[i]}, lengths[] = {w->fresh_rows, 1, bad[i]};
        refuse(w, call_of(w, &held, one, 1), BAD_LENGTH, "a length");
        refuse(w, call_of(w, ragged, lengths, 3), BAD_LENGTH, "the last length");
        int status = s->model->prefill(s->ctx, held, w->tokens, bad[i], w->outputs[0], s->workspace,
                                       s->model->workspace(1));
        expect(w, status, BAD_LENGTH, "a prefill");
    }
    const int32_t too_long[] = {seq + 1};
    void *empty = w->now[EMPTY], *full[] = {held, w->now[FULL]};
    refuse(w, call_of(w, &empty, too_long, 1), BAD_LENGTH, "a prompt longer than the bound");
    refuse(w, call_of(w, full, NULL, 2), BAD_LENGTH, "a step past the bound");
    int status = s->model->step(s->ctx, full, w->tokens, 2, w->outputs[0], s->workspace, s->model->workspace(1));
    expect(w, status, BAD_LENGTH, "a step past the bound");
}

static void bad_states(const World *w) {
    const struct {
        int memory, status;
        const char *what;
    } bad[] = {{ZEROS, BAD_STATE, "zeros as a state"},        {ONES, BAD_STATE, "ones as a state"},
               {NOISE, BAD_STATE, "noise as a state"},        {FOREIGN, BAD_STATE, "a state of another model"},
               {HELD, BAD_STATE, "the same state twice"},     {MEMORIES, BAD_ARGUMENT, "no state"},
               {SOURCE, BAD_STATE, "a source as a state"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (bad[i].memory == SOURCE && !w->now[SOURCE]) continue;
        void *memory = bad[i].memory == MEMORIES ? NULL : w->now[bad[i].memory];
        void *last[] = {w->now[HELD], w->now[ONE], memory}, *first[] = {memory, w->now[ONE], w->now[HELD]};
        const int32_t lengths[] = {2, 1, 3};
        refuse(w, call_of(w, last, NULL, 3), bad[i].status, bad[i].what);
        refuse(w, call_of(w, first, lengths, 3), bad[i].status, bad[i].what);
        if (bad[i].memory == HELD) continue;
        refuse(w, call_of(w, &memory, lengths, 1), bad[i].status, bad[i].what);
    }
    void *unaligned = w->now[HELD] + 4;
    refuse(w, call_of(w, &unaligned, NULL, 1), BAD_STATE, "a state that is not aligned");
}

static void bad_tokens(World *w) {
    const int vocab = w->s->model->vocab, bad[] = {vocab, -1, INT_MAX, INT_MIN};
    void *states[] = {w->now[EMPTY], w->now[ONE], w->now[HELD]};
    const int32_t lengths[] = {w->fresh_rows, 3, 2};
    const int at[] = {0, w->fresh_rows + 2, w->fresh_rows + 4};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
            int32_t good = w->tokens[at[k]];
            w->tokens[at[k]] = bad[i];
            refuse(w, call_of(w, states, lengths, 3), BAD_TOKEN, "a token");
            w->tokens[at[k]] = good;
        }
    const int32_t ids[] = {0, 1, vocab};
    Call call = call_of(w, states, NULL, 3);
    call.tokens = ids;
    refuse(w, call, BAD_TOKEN, "the last token of a step");
}

static void bad_arguments(const World *w) {
    const Model *m = w->s->model;
    void *states[] = {w->now[HELD], w->now[ONE]};
    const Call good = call_of(w, states, NULL, 2);
    for (int without = THE_CTX; without <= THE_TOKENS; without++) {
        Call call = good;
        call.without = without;
        refuse(w, call, BAD_ARGUMENT, "a null pointer");
    }
    static const int sizes[] = {-1, 1, 8, -8};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        Call call = good;
        call.input_size = sizes[i];
        refuse(w, call, BAD_ARGUMENT, "rows of another size");
        call.input_size = 0;
        call.output_size = sizes[i];
        refuse(w, call, BAD_ARGUMENT, "outputs of another size");
    }
    static const int batches[] = {0, -1, INT_MIN};
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        Call call = good;
        call.batch = batches[i];
        refuse(w, call, BAD_ARGUMENT, "a batch");
    }
    size_t bytes = m->workspace(1);
    unsigned char *shorter = block(bytes - 1), *longer = block(bytes + 64);
    Call call = good;
    call.workspace = shorter;
    call.bytes = bytes - 1;
    refuse(w, call, SHORT_WORKSPACE, "a short workspace");
    call.bytes = 0;
    refuse(w, call, SHORT_WORKSPACE, "no workspace");
    call.workspace = longer + 4;
    call.bytes = bytes + 60;
    refuse(w, call, SHORT_WORKSPACE, "a workspace that is not aligned");
    free(shorter), free(longer);
}

/* ---------------------------------------------------------------- what works on one state */

static void bad_inits(const World *w) {
    const Setup *s = w->s;
    const Model *m = s->model;
    unsigned char *memory = w->now[ONES];
    expect(w, m->state_init(NULL, m->state_bytes, s->sources[0]), BAD_ARGUMENT, "init of nothing");
    expect(w, m->state_init(memory, m->state_bytes - 1, s->sources[0]), SHORT_WORKSPACE, "init of a short state");
    expect(w, m->state_init(memory, 0, s->sources[0]), SHORT_WORKSPACE, "init of no bytes");
    expect(w, m->state_init(memory + 4, m->state_bytes, s->sources[0]), SHORT_WORKSPACE, "init, not aligned");
    if (!m->encode) return;
    expect(w, m->state_init(memory, m->state_bytes, NULL), BAD_ARGUMENT, "init without a source");
    expect(w, m->state_init(memory, m->state_bytes, w->now[ZEROS]), BAD_STATE, "zeros as a source");
    expect(w, m->state_init(memory, m->state_bytes, w->now[NOISE]), BAD_STATE, "noise as a source");
    expect(w, m->state_init(memory, m->state_bytes, w->now[HELD]), BAD_STATE, "a state as a source");
    expect(w, m->state_init(memory, m->state_bytes, w->now[FOREIGN]), BAD_STATE, "another model's state as a source");
    expect(w, m->state_init(memory, m->state_bytes, w->now[SOURCE] + 4), BAD_STATE, "a source that is not aligned");
}

static void bad_changes(const World *w) {
    const Model *m = w->s->model;
    unsigned char *held = w->now[HELD];
    expect(w, m->rewind_to(NULL, 0), BAD_ARGUMENT, "rewinding nothing");
    expect(w, m->rewind_to(held, w->held + 1), BAD_LENGTH, "rewinding forward");
    expect(w, m->rewind_to(held, INT_MAX), BAD_LENGTH, "rewinding far forward");
    expect(w, m->rewind_to(held, -1), BAD_LENGTH, "rewinding below nothing");
    expect(w, m->rewind_to(held + 4, 0), BAD_STATE, "rewinding a state that is not aligned");
    expect(w, m->copy(NULL, held), BAD_ARGUMENT, "a copy to nothing");
    expect(w, m->copy(w->now[ONES], NULL), BAD_ARGUMENT, "a copy of nothing");
    expect(w, m->copy(w->now[ONES] + 4, held), BAD_STATE, "a copy to what is not aligned");
    expect(w, m->copy(w->now[ONES], held + 4), BAD_STATE, "a copy of what is not aligned");
    expect(w, m->copy(held, held), OK, "a copy onto itself");
    for (int i = ZEROS; i <= SOURCE; i++) {
        if (!w->now[i]) continue;
        expect(w, m->rewind_to(w->now[i], 0), BAD_STATE, "rewinding no state");
        expect(w, m->copy(w->now[ONE], w->now[i]), BAD_STATE, "a copy of no state");
        CHECK(m->rows(w->now[i]) == -1, "%s: rows of no state", m->name);
    }
    CHECK(m->rows(NULL) == -1 && m->rows(held + 4) == -1, "%s: rows of nothing", m->name);
    CHECK(m->rows(held) == w->held && m->rows(w->now[EMPTY]) == 0, "%s: rows of a state", m->name);
    unchanged(w, "asking for rows");
}

/* ---------------------------------------------------------------- all of it, then good calls */

static void go_on(World *w, const float *wanted, const float *wanted_alone) {
    const Setup *s = w->s;
    const Model *m = s->model;
    size_t row = (size_t)m->vocab;
    void *states[] = {w->now[ONE], w->now[HELD], w->now[EMPTY]};
    const int32_t ids[] = {s->tokens[1], s->tokens[w->held], s->tokens[0]};
    Call call = new_call(s, states, 3, ids);
    call.logits = w->outputs[1];
    int status = m->decode(&call);
    CHECK(status == OK, "%s: after all that: %s", m->name, m->text(status));
    CHECK(memcmp(w->outputs[1] + row, wanted, row * sizeof(float)) == 0, "%s: other bits after refused calls", m->name);
    CHECK(memcmp(w->outputs[1], wanted_alone, row * sizeof(float)) == 0, "%s: other bits in a state of two rows",
          m->name);
    CHECK(!w->now[SOURCE] || memcmp(w->now[SOURCE], w->before[SOURCE], w->bytes[SOURCE]) == 0,
          "%s: decode wrote to a source", m->name);
}

static void disturb(const Setup *s, int held, int fresh_rows) {
    float wanted[MOST_VOCAB], alone[MOST_VOCAB];
    void *state = new_state(s), *short_one = new_state(s);
    CHECK(append(s, state, s->tokens, held, NULL, NULL) == OK, "%s: rows", s->model->name);
    CHECK(append(s, state, s->tokens + held, 1, NULL, wanted) == OK, "%s: a step", s->model->name);
    CHECK(append(s, short_one, s->tokens, 2, NULL, alone) == OK, "%s: two rows", s->model->name);
    World w = world_new(s, held);
    w.fresh_rows = fresh_rows;
    bad_lengths(&w);
    bad_states(&w);
    bad_tokens(&w);
    bad_arguments(&w);
    bad_inits(&w);
    bad_changes(&w);
    go_on(&w, wanted, alone);
    world_free(&w);
    free(state), free(short_one);
}

/* ---------------------------------------------------------------- encode and init */

static void refuse_source(const Setup *s, Call call, int wanted, const char *what) {
    const Model *m = s->model;
    size_t hidden_bytes = 3 * (size_t)m->source_seq * (size_t)m->width * sizeof(float);
    void *before[] = {block_like(s->sources[0], m->source_bytes), block_like(s->sources[1], m->source_bytes)};
    unsigned char *hidden = block(hidden_bytes);
    call.hidden = (float *)(void *)hidden;
    int status = m->encode(&call);
    CHECK(status == wanted, "%s: encode: %s: `%s`", m->name, what, m->text(status));
    for (int i = 0; i < 2; i++) {
        CHECK(memcmp(before[i], s->sources[i], m->source_bytes) == 0, "%s: %s: a source changed", m->name, what);
        free(before[i]);
    }
    for (size_t i = 0; i < hidden_bytes; i++) CHECK(hidden[i] == 0xff, "%s: encoder_hidden changed", what);
    free(hidden);
}

static void bad_sources(const Setup *s) {
    const Model *m = s->model;
    size_t bytes = m->encode_workspace(1);
    unsigned char *workspace = block(bytes + 64);
    int32_t lengths[] = {9, m->source_seq}, *ids = block(2 * MOST_SEQ * sizeof *ids);
    memcpy(ids, s->tokens, sizeof s->tokens);
    memcpy(ids + MOST_SEQ, s->others, sizeof s->others);
    Call good = new_call(s, s->sources, 2, ids), call = good;
    good.lengths = lengths;
    good.workspace = workspace;
    good.bytes = bytes;
    for (int without = THE_CTX; without <= THE_LENGTHS; without++) {
        call = good;
        call.without = without;
        refuse_source(s, call, BAD_ARGUMENT, "a null pointer");
    }
    const struct { int at, bad; } bad[] = {{0, 0}, {1, 0}, {1, m->source_seq + 1}, {0, -3}, {1, INT_MIN}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int32_t right = lengths[bad[i].at];
        lengths[bad[i].at] = bad[i].bad;
        refuse_source(s, good, BAD_LENGTH, "a length");
        lengths[bad[i].at] = right;
    }
    ids[lengths[0] + lengths[1] - 1] = m->vocab;
    refuse_source(s, good, BAD_TOKEN, "the last token");
    ids[lengths[0] + lengths[1] - 1] = 0;
    void *twice[] = {s->sources[0], s->sources[0]}, *none[] = {s->sources[0], NULL},
         *askew[] = {s->sources[0], (unsigned char *)s->sources[1] + 4};
    call = good, call.states = twice;
    refuse_source(s, call, BAD_STATE, "a source twice");
    call.states = none;
    refuse_source(s, call, BAD_ARGUMENT, "no memory for a source");
    call.states = askew;
    refuse_source(s, call, BAD_STATE, "a source that is not aligned");
    call = good, call.batch = 0;
    refuse_source(s, call, BAD_ARGUMENT, "a batch of 0");
    call = good, call.input_size = 8;
    refuse_source(s, call, BAD_ARGUMENT, "sources of another size");
    call = good, call.output_size = -8;
    refuse_source(s, call, BAD_ARGUMENT, "outputs of another size");
    call = good, call.bytes = bytes - 1;
    refuse_source(s, call, SHORT_WORKSPACE, "a short workspace");
    call = good, call.workspace = workspace + 4;
    refuse_source(s, call, SHORT_WORKSPACE, "a workspace that is not aligned");
    free(workspace), free(ids);
}

/* A state whose source was overwritten since. */
static void lost_source(const Setup *s) {
    const Model *m = s->model;
    void *source = block_like(s->sources[0], m->source_bytes), *state = block(m->state_bytes);
    float logits[MOST_VOCAB];
    CHECK(m->state_init(state, m->state_bytes, source) == OK, "init");
    CHECK(append(s, state, s->tokens, 3, NULL, logits) == OK, "rows");
    memset(source, 0, m->source_bytes);
    void *before = block_like(state, m->state_bytes);
    CHECK(append(s, state, s->tokens + 3, 1, NULL, logits) == BAD_STATE, "a source that is no more");
    CHECK(m->rows(state) == -1, "rows of a state without source");
    CHECK(memcmp(before, state, m->state_bytes) == 0, "a state without source changed");
    memcpy(source, s->sources[0], m->source_bytes);
    CHECK(append(s, state, s->tokens + 3, 1, NULL, logits) == OK, "the source is there again");
    free(source), free(state), free(before);
}

static void bad_weights(const Setup *s) {
    const Model *m = s->model;
    const Setup *other = &setups[(s - setups + 1) % MODELS];
    void *ctx = block(m->ctx_bytes);
    const struct {
        const void *weights;
        size_t bytes;
        const char *target;
        int threads, size, status;
    } bad[] = {{NULL, m->weights_bytes, target, 1, 0, BAD_ARGUMENT},
               {s->weights, m->weights_bytes, target, -1, 0, BAD_ARGUMENT},
               {s->weights, m->weights_bytes, target, 1, 4, BAD_ARGUMENT},
               {s->weights, m->weights_bytes - 1, target, 1, 0, BAD_WEIGHTS},
               {s->weights, m->weights_bytes + 1, target, 1, 0, BAD_WEIGHTS},
               {other->weights, other->model->weights_bytes, target, 1, 0, BAD_WEIGHTS},
               {s->weights, m->weights_bytes, "z80", 1, 0, NO_TARGET}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int status =
            m->init(ctx, bad[i].weights, bad[i].bytes, bad[i].target, bad[i].threads, NULL, NULL, 0, bad[i].size, 0);
        CHECK(status == bad[i].status, "%s: init %zu: %s", m->name, i, m->text(status));
    }
    free(ctx);
}

/* A byte of the weights is another. That of the data only `verify` sees; that of the header, whose checksum is made
 * good again, every call must see by itself. */
static void damaged_weights(const Setup *s) {
    enum { HEADER = 128, HASHED = 120, AT_DATA_HASH = 48 };
    const Model *m = s->model;
    void *ctx = block(m->ctx_bytes);
    unsigned char *bytes = block_like(s->weights, m->weights_bytes);
    const size_t in_data[] = {HEADER, HEADER + (m->weights_bytes - HEADER) / 2, m->weights_bytes - 1};
    for (size_t i = 0; i < sizeof in_data / sizeof *in_data; i++)
        for (int verify = 0; verify < 2; verify++) {
            int wanted = verify ? BAD_WEIGHTS : OK;
            bytes[in_data[i]] ^= 1;
            int status = m->init(ctx, bytes, m->weights_bytes, target, 1, NULL, NULL, 0, 0, verify);
            CHECK(status == wanted, "%s: byte %zu, verify %d: %s", m->name, in_data[i], verify, m->text(status));
            bytes[in_data[i]] ^= 1;
            status = m->init(ctx, bytes, m->weights_bytes, target, 1, NULL, NULL, 0, 0, verify);
            CHECK(status == OK, "%s: whole, verify %d: %s", m->name, verify, m->text(status));
        }
    for (size_t at = 0; at < HEADER; at++) {
        if (at / 8 == AT_DATA_HASH / 8) continue; /* the data's checksum: only `verify` reads it */
        bytes[at] ^= 1;
        if (at < HASHED) {
            uint64_t hash = UINT64_C(0xcbf29ce484222325);
            for (size_t i = 0; i < HASHED; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
            for (int i = 0; i < 8; i++) bytes[HASHED + i] = (unsigned char)(hash >> 8 * i);
        }
        int status = m->init(ctx, bytes, m->weights_bytes, target, 1, NULL, NULL, 0, 0, 0);
        CHECK(status == BAD_WEIGHTS, "%s: byte %zu of the header: %s", m->name, at, m->text(status));
        memcpy(bytes, s->weights, HEADER);
    }
    free(bytes), free(ctx);
    unsigned char *elsewhere = block(m->weights_bytes + 64);
    memcpy(elsewhere + 4, s->weights, m->weights_bytes);
    ctx = block(m->ctx_bytes);
    int status = m->init(ctx, elsewhere + 4, m->weights_bytes, target, 1, NULL, NULL, 0, 0, 0);
    CHECK(status == BAD_WEIGHTS, "%s: weights that are not aligned: %s", m->name, m->text(status));
    free(elsewhere), free(ctx);
}

void test_statuses(void) {
    /* rows before the bad calls, early and late (a ring is full by then), and rows that an empty state can be given */
    static const struct { int model, held, fresh; const char *name; } cases[] = {
        {RING, 20, 300, "ring"},         {RING, 300, 300, "ring, late"},          {PAIR, 5, 36, "pair"},
        {PAIR, 42, 36, "pair, late"},    {PREFIXED, 20, 150, "prefixed"},
        {PREFIXED, 150, 150, "prefixed, late"}, {LONGROPE, 8, 26, "longrope"},   {LONGROPE, 90, 26, "longrope, late"}};
    char name[80] = "refused: ";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        disturb(&setups[cases[i].model], cases[i].held, cases[i].fresh);
        strcpy(name + 9, cases[i].name);
        verdict(name);
    }
    for (int i = 0; i < MODELS; i++) bad_weights(&setups[i]);
    verdict("refused: init");
    for (int i = 0; i < MODELS; i++) damaged_weights(&setups[i]);
    verdict("refused: damaged weights");
    bad_sources(&setups[PAIR]);
    lost_source(&setups[PAIR]);
    verdict("refused: sources");
}
