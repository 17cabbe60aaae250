/* together.c: several threads and two models in one program, each with states of its own; a thread pool; attn_generate
 * over generated code. */
#include "tests.h"

#include "pair.h"
#include "ring.h"

#include "attn_generate.h"
#include "attn_runtime.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

ATTN_MODEL_OF(ring);
ATTN_MODEL_OF(pair);

/* ---------------------------------------------------------------- threads */

enum { THREADS = 4, TEXTS = 3 };

typedef struct Worker {
    const Setup *s;
    float logits[TEXTS][MOST_VOCAB];
    int bad;
} Worker;

/* Some texts, each with a prefill, a fork and steps; it shares no memory that is written to. */
static void *work(void *argument) {
    Worker *w = argument;
    const Setup *s = w->s;
    const Model *m = s->model;
    Setup own = *s;
    int steps = m->seq / 4;
    own.workspace = block(m->workspace(1));
    for (int text = 0; text < TEXTS; text++) {
        void *state = block(m->state_bytes), *fork = block(m->state_bytes), *both[] = {fork, state};
        float logits[2 * MOST_VOCAB];
        w->bad += m->state_init(state, m->state_bytes, s->sources[text & 1]) != OK;
        w->bad += append(&own, state, s->tokens + text, m->seq - steps - 2, NULL, NULL) != OK;
        w->bad += m->copy(fork, state) != OK;
        for (int i = 0; i < steps; i++) {
            const int32_t ids[] = {s->others[i], s->tokens[i]};
            w->bad += m->step(s->ctx, both, ids, 2, logits, own.workspace, m->workspace(1)) != OK;
        }
        w->bad += m->rewind_to(fork, m->seq - steps - 2) != OK;
        w->bad += append(&own, fork, s->tokens, 2, NULL, logits) != OK;
        memcpy(w->logits[text], logits, (size_t)m->vocab * sizeof *logits);
        for (int i = 0; i < m->vocab; i++) w->logits[text][i] += logits[m->vocab + i];
        free(state), free(fork);
    }
    free(own.workspace);
    return NULL;
}

static void threads(void) {
    static Worker alone[2], workers[THREADS];
    pthread_t ids[THREADS];
    for (int i = 0; i < 2; i++) {
        alone[i] = (Worker){.s = &setups[i]};
        work(&alone[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (Worker){.s = &setups[i % 2]};
        if (pthread_create(&ids[i], NULL, work, &workers[i]) != 0) abort();
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(ids[i], NULL);
        const Model *m = workers[i].s->model;
        CHECK(!workers[i].bad && !alone[i % 2].bad, "%s: a call in a thread failed", m->name);
        for (int text = 0; text < TEXTS; text++)
            CHECK(memcmp(workers[i].logits[text], alone[i % 2].logits[text], (size_t)m->vocab * sizeof(float)) == 0,
                  "%s: other bits in a thread", m->name);
    }
}

/* ---------------------------------------------------------------- a pool inside of a call */

enum { STATES = 5, STEPS = 8 };

/* Counts the steps that the threads share. */
typedef struct Counted {
    attn_pool *pool;
    int shared;
} Counted;

static void count_run(void *with, int count, void (*task)(void *with, int index), void *argument) {
    Counted *counted = (Counted *)with;
    CHECK(count > 1, "a step that is not shared came to the pool");
    counted->shared++;
    attn_pool_run(counted->pool, count, task, argument);
}

/* The logits of a ragged call and some steps of one row behind it; [0] counts for that call, [1] for the steps. */
static void ragged(const Setup *s, int threads, Counted *now, Counted counts[2], float *logits) {
    const Model *m = s->model;
    int rows = m == &models[LONGROPE] ? 200 : m->seq / 7; /* beyond what longrope turns otherwise */
    void *states[STATES];
    int32_t lengths[STATES];
    for (int i = 0; i < STATES; i++) {
        states[i] = new_state(s);
        lengths[i] = rows - i > 1 ? rows - i : 1;
    }
    Call call = new_call(s, states, STATES, s->tokens);
    call.bytes = m->workspace(threads);
    call.lengths = lengths;
    call.logits = logits;
    for (int i = 0; i < 2; i++) {
        now->shared = 0;
        for (int step = 0; step < (i ? STEPS : 1); step++)
            CHECK(m->decode(&call) == OK, "%s: %s", m->name, i ? "a step" : "a ragged call");
        call.lengths = NULL;
        counts[i] = *now;
    }
    if (threads > 1) { /* what is enough for fewer threads is short */
        call.bytes--;
        CHECK(m->decode(&call) == SHORT_WORKSPACE, "%s: a workspace for fewer threads", m->name);
    }
    for (int i = 0; i < STATES; i++) free(states[i]);
}

/* The same bits whichever steps the threads share: all, those that are worth it, none. */
static void pools(const Setup *s) {
    static const size_t least_work[] = {1, 0, SIZE_MAX};
    const Model *m = s->model;
    float wanted[STATES * MOST_VOCAB], logits[STATES * MOST_VOCAB];
    Counted now = {.pool = attn_pool_new(3)}, counts[3][2];
    Setup many = *s;
    many.ctx = block(m->ctx_bytes);
    many.workspace = block(m->workspace(3));
    ragged(s, 1, &now, counts[0], wanted);
    for (int i = 0; i < 3; i++) {
        int status = m->init(many.ctx, s->weights, m->weights_bytes, target, 3, count_run, &now, least_work[i], 0, 0);
        CHECK(status == OK, "%s: init with a pool: %s", m->name, m->text(status));
        ragged(&many, 3, &now, counts[i], logits);
        CHECK(memcmp(logits, wanted, (size_t)(STATES * m->vocab) * sizeof(float)) == 0,
              "%s: other bits with a pool, least_work %zu", m->name, least_work[i]);
    }
    const Counted *every = counts[0], *most = counts[1], *none = counts[2];
    for (int i = 0; i < 2; i++) {
        CHECK(every[i].shared > 0, "%s: no step is shared", m->name);
        CHECK(none[i].shared == 0, "%s: %d steps are shared", m->name, none[i].shared);
        CHECK(most[i].shared < every[i].shared / (i ? 4 : 1), "%s: %d of %d steps are shared", m->name, most[i].shared,
              every[i].shared);
    }
    if (m == &models[RING]) CHECK(most[0].shared > 0, "%s: no step of a large call is shared", m->name);
    attn_pool_free(now.pool);
    free(many.ctx), free(many.workspace);
}

/* ---------------------------------------------------------------- search */

static int likeliest(const float *logits, int count) {
    int best = 0;
    for (int i = 1; i < count; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

static int generate(const attn_model *model, int beams, int rows, const int32_t *prompt, int count, attn_generated *out,
                    int max_new) {
    attn_generate_options options = {0};
    options.size = sizeof options;
    options.max_new = max_new;
    options.rows = rows;
    options.beams = beams;
    options.length_penalty = 0.6;
    size_t bytes = attn_generate_bytes(model, &options);
    void *memory = block(bytes ? bytes : 1);
    int status = attn_generate(model, &options, prompt, count, out, memory, bytes);
    free(memory);
    return status;
}

/* Greedy search is argmax after argmax; beams copy states; a conversation goes on; too long is found before any row. */
static void searches(const Setup *s, const attn_model *model, void *const *states) {
    enum { NEW = 12, PROMPT = 9 };
    const Model *m = s->model;
    float logits[MOST_VOCAB];
    int32_t tokens[MOST_SEQ], more[MOST_SEQ], beams[MOST_SEQ];
    attn_generated greedy = {sizeof greedy, tokens, 0, 0, 0, 0, 0}, again = {sizeof again, more, 0, 0, 0, 0, 0},
                   beam = {sizeof beam, beams, 0, 0, 0, 0, 0};
    void *plain = new_state(s);
    CHECK(generate(model, 0, 0, s->tokens, PROMPT, &greedy, m->seq) == ATTN_GENERATE_TOO_LONG, "%s: too long", m->name);
    CHECK(m->rows(states[0]) == 0, "%s: a refused search fed rows", m->name);
    CHECK(generate(model, 0, 0, s->tokens, PROMPT, &greedy, NEW) == ATTN_GENERATE_OK, "%s: greedy", m->name);
    CHECK(greedy.count == NEW && greedy.rows == m->rows(states[0]) && greedy.rows == PROMPT + NEW - 1, "%s: %d rows",
          m->name, greedy.rows);
    CHECK(append(s, plain, s->tokens, PROMPT, NULL, logits) == OK, "%s: the prompt", m->name);
    for (int i = 0; i < 2 * NEW; i++) {
        int32_t next = likeliest(logits, m->vocab);
        if (i == NEW) /* a second question begins with the token that was not fed */
            CHECK(generate(model, 0, greedy.rows, tokens + NEW - 1, 1, &again, NEW) == ATTN_GENERATE_OK, "%s: on",
                  m->name);
        CHECK(next == (i < NEW ? tokens[i] : more[i - NEW]), "%s: token %d", m->name, i);
        CHECK(append(s, plain, &next, 1, NULL, logits) == OK, "%s: a step", m->name);
    }
    CHECK(m->rewind_to(states[0], 0) == OK, "%s: back", m->name);
    CHECK(generate(model, 3, 0, s->tokens, PROMPT, &beam, NEW) == ATTN_GENERATE_OK && beam.count == NEW, "%s: beams",
          m->name);
    CHECK(m->rewind_to(states[0], beam.rows) == OK && beam.rows == PROMPT, "%s: %d rows after beams", m->name,
          beam.rows);
    free(plain);
}

static void generators(void) {
    const Setup *ring = &setups[RING], *pair = &setups[PAIR];
    void *ring_states[] = {new_state(ring), new_state(ring), new_state(ring)};
    void *pair_states[] = {new_state(pair), new_state(pair), new_state(pair)};
    ring_generator of_ring = {(const ring_ctx *)ring->ctx, ring_states, ring->workspace, ring->model->workspace(1), 0};
    pair_generator of_pair = {(const pair_ctx *)pair->ctx, pair_states, pair->workspace, pair->model->workspace(1), 0};
    attn_model first = ring_generator_model(&of_ring, ring->model->vocab, RING_SEQ),
               second = pair_generator_model(&of_pair, pair->model->vocab, PAIR_SEQ);
    searches(ring, &first, ring_states);
    searches(pair, &second, pair_states);
    int32_t tokens[4];
    attn_generated out = {sizeof out, tokens, 0, 0, 0, 0, 0};
    of_ring.bytes--;
    for (int i = 0; i < 3; i++) CHECK(ring->model->rewind_to(ring_states[i], 0) == OK, "back");
    int status = generate(&first, 0, 0, ring->tokens, 4, &out, 4);
    CHECK(status == ATTN_GENERATE_MODEL && out.model_status == RING_SHORT_WORKSPACE, "a status of the model: %d",
          status);
    for (int i = 0; i < 3; i++) free(ring_states[i]), free(pair_states[i]);
}

void test_together(void) {
    threads();
    verdict("two models in four threads");
    for (int i = 0; i < MODELS; i++) pools(&setups[i]);
    verdict("a pool of three threads");
    generators();
    verdict("attn_generate over generated code");
}
