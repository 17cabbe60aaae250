/* models.c: the table of tests.h, from the headers that attnc wrote. */
#include "tests.h"

#include "longrope.h"
#include "pair.h"
#include "prefixed.h"
#include "ring.h"

#define SAME_STATUSES(NAME)                                                                                            \
    _Static_assert((int)NAME##_OK == (int)OK && (int)NAME##_BAD_ARGUMENT == (int)BAD_ARGUMENT &&                       \
                       (int)NAME##_BAD_WEIGHTS == (int)BAD_WEIGHTS && (int)NAME##_NO_TARGET == (int)NO_TARGET &&       \
                       (int)NAME##_SHORT_WORKSPACE == (int)SHORT_WORKSPACE &&                                          \
                       (int)NAME##_BAD_LENGTH == (int)BAD_LENGTH && (int)NAME##_BAD_TOKEN == (int)BAD_TOKEN &&         \
                       (int)NAME##_BAD_STATE == (int)BAD_STATE && (int)NAME##_TOO_FAR == (int)TOO_FAR,                 \
                   "statuses")

/* What a model has of its own stands in the last two arguments: statements about `in` and `out`. */
#define MODEL(name, NAME, INPUTS, OUTPUTS)                                                                             \
    SAME_STATUSES(NAME);                                                                                               \
    static size_t name##_workspace(int threads) { return NAME##_DECODE_WORKSPACE_BYTES(threads); }                     \
    static int name##_make(void *ctx, const void *weights, size_t bytes, const char *wanted, int threads,              \
                           ParallelFor *parallel_for, void *pool, size_t least_work, int options_size, int verify) {   \
        name##_options options = {0};                                                                                  \
        options.size = sizeof options + (size_t)options_size;                                                          \
        options.target = wanted;                                                                                       \
        options.threads = threads;                                                                                     \
        options.parallel_for = parallel_for;                                                                           \
        options.pool = pool;                                                                                           \
        options.least_work = least_work;                                                                               \
        options.verify = verify;                                                                                       \
        return name##_init((name##_ctx *)ctx, weights, bytes, &options);                                               \
    }                                                                                                                  \
    static int name##_call(const Call *call) {                                                                         \
        name##_rows in = {0};                                                                                          \
        name##_decoded out = {0};                                                                                      \
        in.size = sizeof in + (size_t)call->input_size;                                                                \
        in.batch = call->batch;                                                                                        \
        in.states = call->without == THE_STATES ? NULL : call->states;                                                 \
        in.lengths = call->lengths;                                                                                    \
        in.tokens = call->without == THE_TOKENS ? NULL : call->tokens;                                                 \
        out.size = sizeof out + (size_t)call->output_size;                                                             \
        out.hidden = call->hidden;                                                                                     \
        out.logits = call->logits;                                                                                     \
        INPUTS;                                                                                                        \
        OUTPUTS;                                                                                                       \
        return name##_decode(call->without == THE_CTX ? NULL : (const name##_ctx *)call->ctx,                          \
                             call->without == THE_INPUT ? NULL : &in, call->without == THE_OUTPUT ? NULL : &out,       \
                             call->without == THE_WORKSPACE ? NULL : call->workspace, call->bytes);                    \
    }                                                                                                                  \
    static int name##_give(const void *ctx, void *state, const int32_t *tokens, int count, float *logits,              \
                           void *workspace, size_t bytes) {                                                            \
        name##_decoded out = {0};                                                                                      \
        out.size = sizeof out;                                                                                         \
        out.logits = logits;                                                                                           \
        return name##_prefill((const name##_ctx *)ctx, state, tokens, count, &out, workspace, bytes);                  \
    }                                                                                                                  \
    static int name##_go(const void *ctx, void *const *states, const int32_t *tokens, int count, float *logits,        \
                         void *workspace, size_t bytes) {                                                              \
        name##_decoded out = {0};                                                                                      \
        out.size = sizeof out;                                                                                         \
        out.logits = logits;                                                                                           \
        return name##_step((const name##_ctx *)ctx, states, tokens, count, &out, workspace, bytes);                    \
    }

#define ALONE(name)                                                                                                    \
    static int name##_fresh(void *state, size_t bytes, const void *source) {                                           \
        (void)source;                                                                                                  \
        return name##_state_init(state, bytes);                                                                        \
    }

#define COMMON(name_, NAME)                                                                                            \
    .name = #name_, .ctx_bytes = sizeof(name_##_ctx), .weights_bytes = NAME##_WEIGHTS_BYTES,                           \
    .state_bytes = NAME##_STATE_BYTES, .seq = NAME##_SEQ, .rewind = NAME##_REWIND, .workspace = name_##_workspace,     \
    .init = name_##_make, .copy = name_##_state_copy, .rewind_to = name_##_state_rewind, .rows = name_##_state_rows,   \
    .decode = name_##_call, .prefill = name_##_give, .step = name_##_go, .text = name_##_status_text

MODEL(ring, RING, (void)0, (out.attention = call->attention))
MODEL(pair, PAIR, (void)0, (out.attention = call->attention, out.cross_attention = call->cross_attention))
MODEL(prefixed, PREFIXED, (in.prefix_lengths = call->prefix_lengths), (out.attention = call->attention))
MODEL(longrope, LONGROPE, (void)0, (void)0)
_Static_assert((int)LONGROPE_START_AGAIN == (int)START_AGAIN, "statuses");
ALONE(ring)
ALONE(prefixed)
ALONE(longrope)

static size_t pair_encode_workspace(int threads) { return PAIR_ENCODE_WORKSPACE_BYTES(threads); }

static int pair_sources(const Call *call) {
    pair_source in = {0};
    pair_encoded out = {0};
    in.size = sizeof in + (size_t)call->input_size;
    in.batch = call->batch;
    in.lengths = call->without == THE_LENGTHS ? NULL : call->lengths;
    in.source = call->without == THE_TOKENS ? NULL : call->tokens;
    out.size = sizeof out + (size_t)call->output_size;
    out.encoder_hidden = call->hidden;
    return pair_encode(call->without == THE_CTX ? NULL : (const pair_ctx *)call->ctx,
                       call->without == THE_INPUT ? NULL : &in, call->without == THE_OUTPUT ? NULL : &out,
                       call->without == THE_STATES ? NULL : call->states,
                       call->without == THE_WORKSPACE ? NULL : call->workspace, call->bytes);
}

const Model models[MODELS] = {
    {COMMON(ring, RING), .state_init = ring_fresh, .vocab = 61, .width = 16, .self_maps = 2},
    {COMMON(pair, PAIR), .state_init = pair_state_init, .vocab = 45, .width = 24, .source_bytes = PAIR_SOURCE_BYTES,
     .source_seq = PAIR_SOURCE_SEQ, .encode = pair_sources, .encode_workspace = pair_encode_workspace, .self_maps = 2,
     .cross_maps = 2},
    {COMMON(prefixed, PREFIXED), .state_init = prefixed_fresh, .vocab = 37, .width = 20, .has_prefix = 1,
     .self_maps = 2},
    {COMMON(longrope, LONGROPE), .state_init = longrope_fresh, .vocab = 50, .width = 32},
};
