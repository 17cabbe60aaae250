/* ways.c: rows appended, taken back and forked in many ways, against states that got the same rows in one call. */
#include "tests.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A text: `shared` tokens of the one kind, then of the other. */
static int32_t token_at(const Setup *s, int shared, int row) { return row < shared ? s->tokens[row] : s->others[row]; }

/* Rows of a text to a state in one call, and the logits after them against `wanted`. */
static int give(const Setup *s, void *state, int shared, int from, int rows, float *logits) {
    int32_t ids[MOST_SEQ];
    for (int i = 0; i < rows; i++) ids[i] = token_at(s, shared, from + i);
    return append(s, state, ids, rows, NULL, logits);
}

/* The state holds `shared` rows of the tokens; with `more` of the others it must be what a new state becomes. */
static void goes_on(const Setup *s, void *state, int shared, int more, const char *what) {
    const Model *m = s->model;
    float got[MOST_VOCAB], wanted[MOST_VOCAB];
    void *fresh = new_state(s);
    CHECK(m->rows(state) == shared, "%s: %s: %d rows, not %d", m->name, what, m->rows(state), shared);
    int status = give(s, fresh, shared, 0, shared + more, wanted);
    CHECK(status == OK, "%s: %s: a new state: %s", m->name, what, m->text(status));
    int first = more > 3 ? more - 3 : more; /* some rows at once, then some alone */
    status = give(s, state, shared, shared, first, got);
    for (int i = first; i < more && status == OK; i++) status = give(s, state, shared, shared + i, 1, got);
    CHECK(status == OK, "%s: %s: %s", m->name, what, m->text(status));
    CHECK(memcmp(got, wanted, (size_t)m->vocab * sizeof *got) == 0, "%s: %s: other bits", m->name, what);
    free(fresh);
}

/* ---------------------------------------------------------------- the way back */

static void expect_rewind(const Setup *s, void *state, int rows, int wanted) {
    const Model *m = s->model;
    void *before = block_like(state, m->state_bytes);
    int held = m->rows(state), status = m->rewind_to(state, rows);
    CHECK(status == wanted, "%s: from %d back to %d rows: `%s`, not `%s`", m->name, held, rows, m->text(status),
          m->text(wanted));
    CHECK(status == OK || memcmp(state, before, m->state_bytes) == 0, "%s: a refused rewind changed the state",
          m->name);
    CHECK(m->rows(state) == (status == OK ? rows : held), "%s: %d rows after a rewind", m->name, m->rows(state));
    free(before);
}

static void rewinds(const Setup *s) {
    const Model *m = s->model;
    const int held = m->seq - 10, backs[] = {held - 1, held - 15, held - 16, held - 17, held / 2, 1, 0};
    for (size_t i = 0; i < sizeof backs / sizeof *backs; i++) {
        if (backs[i] && held - backs[i] > m->rewind) continue;
        void *state = new_state(s);
        CHECK(give(s, state, held, 0, held, NULL) == OK, "%s: rows", m->name);
        expect_rewind(s, state, held, OK);
        expect_rewind(s, state, backs[i], OK);
        goes_on(s, state, backs[i], m->seq - backs[i] < 40 ? m->seq - backs[i] : 40, "after a rewind");
        free(state);
    }
}

/* A window's ring forgets; what it promises to hold, it holds. */
static void rings(const Setup *s) {
    const Model *m = s->model;
    const int helds[] = {m->rewind + 1, 160, 288, 289, 399, 400};
    for (size_t i = 0; i < sizeof helds / sizeof *helds; i++) {
        const int held = helds[i], back = held - m->rewind;
        void *state = new_state(s), *fork;
        CHECK(give(s, state, held, 0, held, NULL) == OK, "%d rows", held);
        if (held > 200) expect_rewind(s, state, back - 1, TOO_FAR);
        if (held > 200) expect_rewind(s, state, 1, TOO_FAR);
        fork = block(m->state_bytes);
        expect_rewind(s, state, back, OK);
        CHECK(m->copy(fork, state) == OK, "a copy");
        goes_on(s, state, back, 50 < m->seq - back ? 50 : m->seq - back, "as far back as a ring goes");
        /* rows written later do not bring back older ones */
        if (held > 200) expect_rewind(s, state, back - 1, TOO_FAR);
        expect_rewind(s, state, back, OK);
        goes_on(s, fork, back, m->seq - back, "a copy of a ring that went back");
        if (held > 200) expect_rewind(s, fork, back - 1, TOO_FAR);
        expect_rewind(s, fork, 0, OK);
        goes_on(s, fork, 0, 200, "a ring that was emptied");
        expect_rewind(s, fork, 200 - m->rewind, OK);
        expect_rewind(s, fork, 0, OK);
        CHECK(give(s, fork, 0, 0, 30, NULL) == OK, "30 rows");
        expect_rewind(s, fork, 2, OK);
        goes_on(s, fork, 2, 40, "rows before it was emptied are forgotten");
        free(state), free(fork);
    }
}

/* ---------------------------------------------------------------- forks */

static void forks(const Setup *s, int held, int more) {
    const Model *m = s->model;
    void *trunk = new_state(s), *fork = block(m->state_bytes), *used = new_state(s);
    float got[MOST_VOCAB], wanted[MOST_VOCAB];
    CHECK(held == 0 || give(s, trunk, held, 0, held, NULL) == OK, "%s: rows", m->name);
    CHECK(give(s, used, 0, 0, m->seq, NULL) == OK, "%s: all rows", m->name);
    void *before = block_like(trunk, m->state_bytes);
    CHECK(m->copy(fork, trunk) == OK, "%s: a copy onto 0xff", m->name);
    CHECK(m->copy(used, trunk) == OK, "%s: a copy onto a longer state", m->name);
    goes_on(s, fork, held, more, "a fork");
    CHECK(memcmp(before, trunk, m->state_bytes) == 0, "%s: a fork changed the trunk", m->name);
    memset(trunk, 0, m->state_bytes); /* a copy does not need what it was copied from */
    goes_on(s, used, held, more, "a fork onto a longer state");
    memcpy(trunk, before, m->state_bytes);
    void *fresh = new_state(s);
    CHECK(give(s, fresh, m->seq, 0, held + more, wanted) == OK, "%s: rows", m->name);
    CHECK(give(s, trunk, m->seq, held, more, got) == OK, "%s: the trunk goes on", m->name);
    CHECK(memcmp(got, wanted, (size_t)m->vocab * sizeof *got) == 0, "%s: other bits in the trunk", m->name);
    free(trunk), free(fork), free(used), free(before), free(fresh);
}

/* ---------------------------------------------------------------- prefixes */

static int give_prefixed(const Setup *s, void *state, const int32_t *tokens, int rows, int prefix, float *logits) {
    const int32_t length = rows, prefix_length = prefix;
    Call call = new_call(s, &state, 1, tokens);
    call.lengths = &length;
    call.prefix_lengths = &prefix_length;
    call.logits = logits;
    return s->model->decode(&call);
}

static void prefix_bits(const Setup *s, void *state, int prefix, int rows, const char *what) {
    const Model *m = s->model;
    float got[MOST_VOCAB], wanted[MOST_VOCAB], plain[MOST_VOCAB];
    void *fresh = new_state(s), *causal = new_state(s);
    CHECK(give_prefixed(s, fresh, s->tokens, rows + 4, prefix, wanted) == OK, "all at once");
    CHECK(append(s, causal, s->tokens, rows + 4, NULL, plain) == OK, "without a prefix");
    CHECK(append(s, state, s->tokens + rows, 4, NULL, got) == OK, "%s: rows behind the prefix", what);
    CHECK(memcmp(got, wanted, (size_t)m->vocab * sizeof *got) == 0, "%s: other bits", what);
    CHECK((memcmp(plain, wanted, (size_t)m->vocab * sizeof *got) == 0) == (prefix < 2), "%s: the prefix does nothing",
          what);
    free(fresh), free(causal);
}

static void prefixes(const Setup *s) {
    const Model *m = s->model;
    void *state = new_state(s), *before = block_like(state, m->state_bytes);
    static const int bad[][2] = {{5, 6}, {5, -1}, {1, 2}, {20, 200}, {20, 1 << 30}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int status = give_prefixed(s, state, s->tokens, bad[i][0], bad[i][1], NULL);
        CHECK(status == BAD_LENGTH, "a prefix of %d in %d rows: %s", bad[i][1], bad[i][0], m->text(status));
        CHECK(memcmp(before, state, m->state_bytes) == 0, "a refused prefix changed the state");
    }
    static const int lengths[][2] = {{20, 20}, {150, 140}, {33, 0}, {33, 1}, {40, 17}};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const int rows = lengths[i][0], prefix = lengths[i][1];
        expect_rewind(s, state, 0, OK);
        CHECK(give_prefixed(s, state, s->tokens, rows, prefix, NULL) == OK, "a prefix of %d", prefix);
        prefix_bits(s, state, prefix, rows, "behind a prefix");
        if (prefix > 1) expect_rewind(s, state, prefix - 1, TOO_FAR);
        if (prefix > 1) expect_rewind(s, state, 1, TOO_FAR);
        void *fork = block(m->state_bytes);
        CHECK(m->copy(fork, state) == OK, "a copy");
        int back = prefix ? prefix : 1;
        expect_rewind(s, fork, back, OK);
        prefix_bits(s, fork, prefix, back, "back to the prefix");
        if (prefix > 1) expect_rewind(s, fork, prefix - 1, TOO_FAR);
        free(fork);
    }
    expect_rewind(s, state, 0, OK);
    CHECK(append(s, state, s->tokens, 7, NULL, NULL) == OK, "rows without a prefix");
    expect_rewind(s, state, 3, OK);
    goes_on(s, state, 3, 9, "the prefix of before is forgotten");
    free(state), free(before);
}

/* ---------------------------------------------------------------- longrope */

static void crossings(const Setup *s) {
    enum { ORIGINAL = 30 };
    const Model *m = s->model;
    float got[MOST_VOCAB], wanted[MOST_VOCAB];
    void *state = new_state(s), *other = new_state(s), *fresh = new_state(s);
    CHECK(give(s, state, m->seq, 0, ORIGINAL - 1, NULL) == OK, "rows");
    CHECK(give(s, other, m->seq, 0, 50, NULL) == OK, "rows beyond in one call");
    CHECK(give(s, state, m->seq, ORIGINAL - 1, 1, NULL) == OK, "up to original");
    void *before = block_like(state, m->state_bytes), *others_before = block_like(other, m->state_bytes);
    void *both[] = {other, state};
    Call call = new_call(s, both, 2, s->tokens);
    call.logits = got;
    for (int i = 0; i < 3; i++) {
        static const int32_t longer[] = {2, 100};
        call.batch = i == 2 ? 1 : 2;
        call.states = i == 2 ? both + 1 : both;
        call.lengths = i == 1 ? longer : NULL;
        int status = m->decode(&call);
        CHECK(status == START_AGAIN, "across original: %s", m->text(status));
        CHECK(memcmp(before, state, m->state_bytes) == 0 && memcmp(others_before, other, m->state_bytes) == 0,
              "START_AGAIN changed a state");
    }
    expect_rewind(s, state, ORIGINAL - 4, OK);
    goes_on(s, state, ORIGINAL - 4, 4, "up to original again");
    expect_rewind(s, state, 0, OK);
    CHECK(give(s, state, m->seq, 0, ORIGINAL + 1, got) == OK, "all of them in one call");
    CHECK(give(s, fresh, m->seq, 0, ORIGINAL + 1, wanted) == OK, "a new state");
    CHECK(memcmp(got, wanted, (size_t)m->vocab * sizeof *got) == 0, "started again: other bits");
    goes_on(s, state, ORIGINAL + 1, 500, "beyond original");
    expect_rewind(s, state, ORIGINAL, TOO_FAR);
    expect_rewind(s, state, 1, TOO_FAR);
    expect_rewind(s, state, ORIGINAL + 1, OK);
    goes_on(s, state, ORIGINAL + 1, 20, "back beyond original");
    expect_rewind(s, state, 0, OK);
    goes_on(s, state, 0, ORIGINAL, "the short angles again");
    free(state), free(other), free(fresh), free(before), free(others_before);
}

/* ---------------------------------------------------------------- maps */

/* The maps of one call are rows of the maps of another; each row sums to 1. */
static void map_rows(const float *all, int all_rows, const float *part, int first, int rows, int keys, int all_keys,
                     int maps) {
    for (int h = 0; h < maps; h++)
        for (int i = 0; i < rows; i++) {
            const float *got = part + ((size_t)h * (size_t)rows + (size_t)i) * (size_t)keys,
                        *wanted = all + ((size_t)h * (size_t)all_rows + (size_t)(first + i)) * (size_t)all_keys;
            double sum = 0;
            for (int k = 0; k < keys; k++) sum += (double)got[k];
            CHECK(fabs(sum - 1) < 1e-5, "map %d, row %d: the sum is %g", h, first + i, sum);
            CHECK(memcmp(got, wanted, (size_t)keys * sizeof *got) == 0, "map %d, row %d: other bits", h, first + i);
            for (int k = keys; k < all_keys; k++)
                CHECK(wanted[k] == 0, "map %d, row %d sees what comes later", h, first + i);
        }
}

/* A prefill's maps against those of the same rows in two states that stand in one call, some at once, then alone. */
static void maps(const Setup *s, int rows, int prefix) {
    const Model *m = s->model;
    int cross_keys[] = {17, m->source_seq}, cut = prefix ? prefix : rows / 3;
    size_t room = 2 * 2 * (size_t)m->seq * (size_t)m->seq * sizeof(float);
    float *all[2][2], *self = block(room), *cross = block(room);
    void *states[] = {new_state(s), new_state(s)};
    const int32_t prefixes_[] = {prefix, prefix};
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 2; k++) all[i][k] = block(room);
        if (i && m->encode) CHECK(m->state_init(states[i], m->state_bytes, s->sources[1]) == OK, "init");
        const int32_t length = rows;
        Call call = new_call(s, &states[i], 1, s->tokens);
        call.lengths = &length;
        call.prefix_lengths = prefixes_;
        call.attention = all[i][0];
        call.cross_attention = all[i][1];
        CHECK(m->decode(&call) == OK, "%s: maps", m->name);
        CHECK(m->rewind_to(states[i], 0) == OK, "back");
    }
    int32_t ids[2 * MOST_SEQ];
    for (int at = 0, part; at < rows; at += part) {
        part = at == 0 ? cut : 1;
        const int32_t lengths[] = {part, part};
        for (int i = 0; i < 2 * part; i++) ids[i] = s->tokens[at + i % part];
        Call call = new_call(s, states, 2, ids);
        call.lengths = lengths;
        call.prefix_lengths = prefixes_;
        call.attention = self;
        call.cross_attention = cross;
        CHECK(m->decode(&call) == OK, "%s: maps of %d rows", m->name, part);
        size_t self_one = (size_t)m->self_maps * (size_t)part * (size_t)(at + part),
               cross_one = (size_t)m->cross_maps * (size_t)part * 17;
        for (int i = 0; i < 2; i++) {
            map_rows(all[i][0], rows, self + (i ? self_one : 0), at, part, at + part, rows, m->self_maps);
            map_rows(all[i][1], rows, cross + (i ? cross_one : 0), at, part, cross_keys[i], cross_keys[i],
                     m->cross_maps);
        }
    }
    for (int i = 0; i < 2; i++) free(states[i]), free(all[i][0]), free(all[i][1]);
    free(self), free(cross);
}

/* ---------------------------------------------------------------- sources */

/* Each source alone gives the same bits as with others, and any number of states may share one. */
static void shared_sources(const Setup *s) {
    const Model *m = s->model;
    const int32_t lengths[] = {17, m->source_seq};
    float got[4 * MOST_VOCAB], wanted[4 * MOST_VOCAB];
    void *states[4], *before = block_like(s->sources[0], m->source_bytes), *workspace = block(m->encode_workspace(1));
    for (int i = 0; i < 4; i++) {
        states[i] = block(m->state_bytes);
        CHECK(m->state_init(states[i], m->state_bytes, s->sources[i & 1]) == OK, "init");
    }
    Call call = new_call(s, states, 4, s->tokens);
    call.logits = got;
    CHECK(m->decode(&call) == OK, "four states over two sources");
    for (int i = 0; i < 4; i++) {
        void *source = block(m->source_bytes);
        Call alone = new_call(s, &source, 1, s->others + (i & 1 ? 17 : 0));
        alone.lengths = lengths + (i & 1);
        alone.workspace = workspace;
        alone.bytes = m->encode_workspace(1);
        CHECK(m->encode(&alone) == OK, "a source alone");
        CHECK(m->state_init(states[i], m->state_bytes, source) == OK, "init");
        CHECK(append(s, states[i], s->tokens + i, 1, NULL, wanted + i * m->vocab) == OK, "a row");
        free(source);
    }
    CHECK(memcmp(got, wanted, 4 * (size_t)m->vocab * sizeof *got) == 0, "other bits over shared sources");
    CHECK(memcmp(before, s->sources[0], m->source_bytes) == 0, "a source changed");
    for (int i = 0; i < 4; i++) free(states[i]);
    free(before), free(workspace);
}

void test_ways(void) {
    for (int i = 0; i < MODELS; i++)
        if (i != LONGROPE) rewinds(&setups[i]);
    verdict("rewinds");
    rings(&setups[RING]);
    verdict("rings");
    forks(&setups[RING], 0, 7), forks(&setups[RING], 3, 20), forks(&setups[RING], 170, 20),
        forks(&setups[RING], 350, 50);
    forks(&setups[PAIR], 0, 9), forks(&setups[PAIR], 31, 17);
    forks(&setups[PREFIXED], 1, 40), forks(&setups[PREFIXED], 100, 100);
    forks(&setups[LONGROPE], 10, 20), forks(&setups[LONGROPE], 520, 60);
    verdict("forks");
    prefixes(&setups[PREFIXED]);
    verdict("prefixes");
    crossings(&setups[LONGROPE]);
    verdict("longrope");
    maps(&setups[PAIR], 48, 0), maps(&setups[RING], 300, 0), maps(&setups[PREFIXED], 60, 0),
        maps(&setups[PREFIXED], 60, 25);
    verdict("maps of steps");
    shared_sources(&setups[PAIR]);
    verdict("shared sources");
}
