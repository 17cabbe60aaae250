/* story WEIGHTS TOKEN...: continues a text of token ids by 12 more, which are drawn by their probabilities. The
 * weights are mapped from their file, and a thread pool shares the work. */
#include "story.h"

#include <attn_generate.h>
#include <attn_runtime.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NEW_TOKENS = 12, MOST_THREADS = 4 };

ATTN_MODEL_OF(story);

static int show(void *with, int32_t token) {
    (void)with;
    return printf(" %d", (int)token) < 0;
}

/* The ids in `words` [count] as numbers; 0 where a word is none. Whether the model has such an id is its own affair. */
static int read_tokens(int count, char **words, int32_t *tokens) {
    for (int i = 0; i < count; i++) {
        char *end;
        errno = 0;
        long id = strtol(words[i], &end, 10);
        if (errno || end == words[i] || *end || id < 0 || id > INT32_MAX) {
            fprintf(stderr, "story: `%s` is not a token id\n", words[i]);
            return 0;
        }
        tokens[i] = (int32_t)id;
    }
    return 1;
}

/* Prints the continuation, each token once it is chosen; 0, or 1 after a message. */
static int continue_text(const story_ctx *ctx, int threads, void *state, void *workspace, size_t bytes,
                         const int32_t *prompt, int count) {
    static unsigned char memory[1 << 14]; /* attn_generate_bytes says how much it takes */
    void *states[] = {state};
    story_generator generator = {ctx, states, workspace, bytes, 0};
    attn_model model = story_generator_model(&generator, STORY_VOCAB, STORY_SEQ);
    int32_t tokens[NEW_TOKENS];
    attn_generate_options options = {.size = sizeof options, .max_new = NEW_TOKENS, .temperature = 0.8, .seed = 1};
    options.on_token = show;
    attn_generated result = {.size = sizeof result, .tokens = tokens};
    printf("%s, threads: %d, tokens:", story_target(ctx), threads);
    int status = attn_generate(&model, &options, prompt, count, &result, memory, sizeof memory);
    putchar('\n');
    if (status) fprintf(stderr, "story: %s\n", attn_generate_status_text(status));
    return status != 0;
}

int main(int argc, char **argv) {
    int32_t prompt[STORY_SEQ];
    int count = argc - 2;
    if (count < 1 || count > STORY_SEQ) {
        fprintf(stderr, "usage: story WEIGHTS TOKEN..., up to %d tokens\n", STORY_SEQ);
        return 2;
    }
    if (!read_tokens(count, argv + 2, prompt)) return 1;

    attn_file weights;
    int error = attn_map_file(argv[1], &weights);
    if (error) return fprintf(stderr, "story: %s: %s\n", argv[1], strerror(error)), 1;
    attn_pool *pool = attn_pool_new(attn_cpu_count() < MOST_THREADS ? attn_cpu_count() : MOST_THREADS);
    story_options options = {.size = sizeof options, .threads = attn_pool_threads(pool)};
    options.parallel_for = attn_pool_run, options.pool = pool;
    story_ctx ctx;
    size_t bytes = STORY_DECODE_WORKSPACE_BYTES(options.threads);
    void *state = attn_alloc(STORY_STATE_BYTES), *workspace = attn_alloc(bytes);
    int status = story_init(&ctx, weights.data, weights.size, &options);
    if (!status) status = story_state_init(state, STORY_STATE_BYTES);
    if (status) fprintf(stderr, "story: %s: %s\n", argv[1], story_status_text(status));
    else status = continue_text(&ctx, options.threads, state, workspace, bytes, prompt, count);

    attn_free(workspace);
    attn_free(state);
    attn_pool_free(pool);
    attn_close_file(&weights);
    return status != 0;
}
