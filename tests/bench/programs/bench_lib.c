/* bench_lib.c: bench.h over the generated C of one spec. build.py defines BENCH_NAME and BENCH_CAPS, the spec's name in
 * small and in capital letters, BENCH_HEADER, BENCH_HAS_STEP and BENCH_HAS_ENCODE where there are such functions,
 * BENCH_HAS_TILES where the options have a field for them, and BENCH_INPUTS and BENCH_OUTPUTS: GIVE(field) and
 * WANT(field) for what its structs share with bench_call. */
#include "bench.h"

#include "timer.h"

#include BENCH_HEADER
#include "attn_generate.h"
#include "attn_runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)
#define M(x) JOIN(BENCH_NAME, _##x)
#define C(x) JOIN(BENCH_CAPS, _##x)
#define EXPORT __attribute__((visibility("default")))

#if BENCH_HAS_STEP
#define MODEL_OF(name) ATTN_MODEL_OF(name)
MODEL_OF(BENCH_NAME);
#endif

enum { MOST_BEAMS = 8 };

struct bench_model {
    attn_file weights;
    attn_pool *pool;
    M(ctx) ctx;
    void *workspace;
    size_t workspace_bytes;
#if BENCH_HAS_STEP
    void *states[MOST_BEAMS], *source, *memory, *decode_workspace;
    size_t memory_bytes, decode_workspace_bytes;
    float *logits;
#endif
};

static char error_text[256];

EXPORT int bench_abi(void) { return BENCH_ABI; }
EXPORT const char *bench_name(void) { return TEXT(BENCH_NAME); }
EXPORT const char *bench_error(void) { return error_text; }
EXPORT const char *bench_target(const bench_model *model) { return M(target)(&model->ctx); }

EXPORT const char *bench_status_text(int status) {
    switch (status) {
    case BENCH_UNSUPPORTED: return "the spec has no such call";
    case BENCH_BAD_CALL: return "a wrong argument";
    case BENCH_NO_MEMORY: return "out of memory";
    default: return M(status_text)(status);
    }
}

EXPORT void bench_close(bench_model *model) {
    if (!model) return;
    attn_pool_free(model->pool);
    attn_close_file(&model->weights);
    attn_free(model->workspace);
#if BENCH_HAS_STEP
    for (int i = 0; i < MOST_BEAMS; i++) attn_free(model->states[i]);
    attn_free(model->source);
    attn_free(model->decode_workspace);
    free(model->memory);
    free(model->logits);
#endif
    free(model);
}

#if BENCH_HAS_STEP
static int open_decoder(bench_model *m, int threads) {
    m->decode_workspace_bytes = C(DECODE_WORKSPACE_BYTES)(threads);
#if BENCH_HAS_ENCODE
    if (C(ENCODE_WORKSPACE_BYTES)(threads) > m->decode_workspace_bytes)
        m->decode_workspace_bytes = C(ENCODE_WORKSPACE_BYTES)(threads);
    m->source = attn_alloc(C(SOURCE_BYTES));
    if (!m->source) return 0;
#endif
    m->decode_workspace = attn_alloc(m->decode_workspace_bytes);
    m->logits = malloc(sizeof(float) * C(VOCAB) * MOST_BEAMS);
    for (int i = 0; i < MOST_BEAMS; i++)
        if (!(m->states[i] = attn_alloc(C(STATE_BYTES)))) return 0;
    return m->decode_workspace && m->logits;
}
#else
static int open_decoder(bench_model *m, int threads) {
    (void)m, (void)threads;
    return 1;
}
#endif

EXPORT bench_model *bench_open(const char *weights, int threads, const char *target) {
    bench_model *m = calloc(1, sizeof *m);
    int status = m && weights && threads >= 1 ? attn_load_file(weights, &m->weights) : -1;
    if (status) {
        snprintf(error_text, sizeof error_text, "%s: %s", weights ? weights : "no weights",
                 status > 0 ? strerror(status) : "a wrong argument");
        free(m);
        return NULL;
    }
    M(options) options = {.size = sizeof options, .target = target, .threads = threads};
#if BENCH_HAS_TILES
    options.tiles = attn_allow_tiles();
#endif
    if (threads > 1) {
        options.parallel_for = attn_pool_run;
        options.pool = m->pool = attn_pool_new(threads);
    }
    m->workspace_bytes = C(WORKSPACE_BYTES)(threads);
    m->workspace = attn_alloc(m->workspace_bytes);
    status = M(init)(&m->ctx, m->weights.data, m->weights.size, &options);
    int made = m->workspace && (threads == 1 || m->pool) && open_decoder(m, threads);
    if (!status && made) return m;
    snprintf(error_text, sizeof error_text, "%s: %s", weights, status ? M(status_text)(status) : "out of memory");
    bench_close(m);
    return NULL;
}

static int forward(bench_model *m, const bench_call *call) {
    M(input) input = {.size = sizeof input, .batch = call->batch, .lengths = call->lengths};
    M(output) output = {.size = sizeof output};
#define GIVE(field) input.field = call->field;
#define WANT(field) output.field = call->field;
    BENCH_INPUTS
    BENCH_OUTPUTS
    return M(forward)(&m->ctx, &input, &output, m->workspace, m->workspace_bytes);
}

#if BENCH_HAS_STEP
EXPORT int bench_reset(bench_model *m, const int32_t *source, int source_length) {
#if BENCH_HAS_ENCODE
    int32_t length = source_length;
    void *sources[] = {m->source};
    M(source) input = {.size = sizeof input, .batch = 1, .lengths = &length};
    input.source = source;
    M(encoded) encoded = {.size = sizeof encoded};
    int status = M(encode)(&m->ctx, &input, &encoded, sources, m->decode_workspace, m->decode_workspace_bytes);
    return status ? status : M(state_init)(m->states[0], C(STATE_BYTES), m->source);
#else
    (void)source, (void)source_length;
    return M(state_init)(m->states[0], C(STATE_BYTES));
#endif
}

EXPORT int bench_prefill(bench_model *m, const int32_t *tokens, int count, float *logits) {
    M(decoded) output = {.size = sizeof output, .logits = logits ? logits : m->logits};
    return M(prefill)(&m->ctx, m->states[0], tokens, count, &output, m->decode_workspace, m->decode_workspace_bytes);
}

EXPORT int bench_step(bench_model *m, int32_t token, float *logits) {
    M(decoded) output = {.size = sizeof output, .logits = logits ? logits : m->logits};
    return M(step)(&m->ctx, m->states, &token, 1, &output, m->decode_workspace, m->decode_workspace_bytes);
}

/* Texts beside each other, a token of each in a step. */
static int decode_together(bench_model *m, const bench_call *call) {
#if BENCH_HAS_ENCODE
    (void)m, (void)call;
    return BENCH_UNSUPPORTED;
#else
    if (call->batch > MOST_BEAMS) return BENCH_BAD_CALL;
    int status = 0;
    for (int b = 0; b < call->batch && !status; b++) status = M(state_init)(m->states[b], C(STATE_BYTES));
    M(decoded) output = {.size = sizeof output, .logits = call->logits ? call->logits : m->logits};
    for (int i = 0; i < call->count && !status; i++)
        status = M(step)(&m->ctx, m->states, call->tokens + i * call->batch, call->batch, &output, m->decode_workspace,
                         m->decode_workspace_bytes);
    return status;
#endif
}

static int generate(bench_model *m, const bench_call *call) {
    int beams = call->beams > 1 ? call->beams : 1;
    if (beams > MOST_BEAMS || !call->generated) return BENCH_BAD_CALL;
    M(generator) generator = {&m->ctx, m->states, m->decode_workspace, m->decode_workspace_bytes, 0};
    attn_model model = M(generator_model)(&generator, C(VOCAB), C(SEQ));
    attn_generate_options options = {.size = sizeof options, .max_new = call->max_new, .min_new = call->max_new,
                                     .beams = call->beams, .end = &call->end, .end_count = 1};
    size_t bytes = attn_generate_bytes(&model, &options);
    if (bytes == 0) return BENCH_BAD_CALL;
    if (bytes > m->memory_bytes) {
        free(m->memory);
        m->memory = malloc(bytes);
        m->memory_bytes = m->memory ? bytes : 0;
        if (!m->memory) return BENCH_NO_MEMORY;
    }
    attn_generated result = {.size = sizeof result, .tokens = call->generated};
    int status = attn_generate(&model, &options, call->tokens, call->count, &result, m->memory, m->memory_bytes);
    return status == ATTN_GENERATE_MODEL ? result.model_status : status ? BENCH_BAD_CALL : BENCH_OK;
}

static int decode(bench_model *m, const bench_call *call) {
    if (call->count < 1 || !call->tokens) return BENCH_BAD_CALL;
    if (call->batch > 1) return call->kind == BENCH_DECODE ? decode_together(m, call) : BENCH_BAD_CALL;
    int status = bench_reset(m, call->source, call->source_lengths ? call->source_lengths[0] : 0);
    if (status) return status;
    if (call->kind == BENCH_GENERATE) return generate(m, call);
    if (call->kind == BENCH_PREFILL) return bench_prefill(m, call->tokens, call->count, call->logits);
    for (int i = 0; i < call->count && !status; i++) status = bench_step(m, call->tokens[i], call->logits);
    return status;
}
#else
EXPORT int bench_reset(bench_model *m, const int32_t *source, int source_length) {
    (void)m, (void)source, (void)source_length;
    return BENCH_UNSUPPORTED;
}

EXPORT int bench_prefill(bench_model *m, const int32_t *tokens, int count, float *logits) {
    (void)m, (void)tokens, (void)count, (void)logits;
    return BENCH_UNSUPPORTED;
}

EXPORT int bench_step(bench_model *m, int32_t token, float *logits) {
    (void)m, (void)token, (void)logits;
    return BENCH_UNSUPPORTED;
}

static int decode(bench_model *m, const bench_call *call) {
    (void)m, (void)call;
    return BENCH_UNSUPPORTED;
}
#endif

EXPORT int bench_run(bench_model *model, const bench_call *call) {
    if (!model || !call || call->size != sizeof *call) return BENCH_BAD_CALL;
    return call->kind == BENCH_FORWARD ? forward(model, call) : decode(model, call);
}

struct timed {
    bench_model *model;
    const bench_call *call;
};

static int run_timed(void *with) {
    const struct timed *timed = with;
    return bench_run(timed->model, timed->call);
}

EXPORT int bench_time(bench_model *model, const bench_call *call, double seconds, double sample, double *median,
                      long *calls) {
    struct timed timed = {model, call};
    return median && calls ? timer_median(run_timed, &timed, seconds, sample, median, calls) : BENCH_BAD_CALL;
}
