/* llamacpp.c: the loop of llama2c.c around libllama: logits of each token decoded; the file says the type of
 * weights. */
#include "llama.h"

#include "timer.h"

#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { MOST_TOKENS = 1024 };

struct llama {
    struct llama_model *model;
    struct llama_context *context;
};

struct text {
    struct llama *llama;
    llama_token *tokens;
    int count, together;
};

static void silent(enum ggml_log_level level, const char *text, void *with) { (void)level, (void)text, (void)with; }

static int run(void *with) {
    const struct text *text = with;
    int part = text->together ? text->count : 1, status = 0;
    llama_memory_clear(llama_get_memory(text->llama->context), false);
    for (int i = 0; i < text->count && !status; i += part)
        status = llama_decode(text->llama->context, llama_batch_get_one(text->tokens + i, part));
    return status;
}

/* `flash`: 0 without, 1 with its fused attention. `half`: keys and values in f16, its default, else in f32. */
EXPORT void *llama_open(const char *path, int threads, int flash, int half) {
    llama_log_set(silent, NULL);
    llama_backend_init();
    struct llama *llama = calloc(1, sizeof *llama);
    if (!llama) return NULL;
    struct llama_model_params of_model = llama_model_default_params();
    llama->model = llama_model_load_from_file(path, of_model);
    if (!llama->model) return NULL;
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = params.n_batch = params.n_ubatch = MOST_TOKENS < llama_model_n_ctx_train(llama->model)
                                                          ? MOST_TOKENS
                                                          : (uint32_t)llama_model_n_ctx_train(llama->model);
    params.n_threads = params.n_threads_batch = threads;
    params.type_k = params.type_v = half ? GGML_TYPE_F16 : GGML_TYPE_F32;
    params.flash_attn_type = flash ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    llama->context = llama_init_from_model(llama->model, params);
    return llama->context ? llama : NULL;
}

EXPORT int llama_run(struct llama *llama, llama_token *tokens, int count, int together, float *logits) {
    struct text text = {llama, tokens, count, together};
    int status = run(&text);
    int vocab = llama_vocab_n_tokens(llama_model_get_vocab(llama->model));
    const float *last = llama_get_logits_ith(llama->context, -1);
    if (!last) return -1;
    memcpy(logits, last, sizeof(float) * (size_t)vocab);
    return status;
}

/* Of each token, one by one from an empty state: [count][vocab]. */
EXPORT int llama_logits(struct llama *llama, llama_token *tokens, int count, float *logits) {
    size_t vocab = (size_t)llama_vocab_n_tokens(llama_model_get_vocab(llama->model));
    llama_memory_clear(llama_get_memory(llama->context), false);
    for (int i = 0; i < count; i++) {
        int status = llama_decode(llama->context, llama_batch_get_one(tokens + i, 1));
        const float *last = status ? NULL : llama_get_logits_ith(llama->context, -1);
        if (!last) return status ? status : -1;
        memcpy(logits + (size_t)i * vocab, last, sizeof(float) * vocab);
    }
    return 0;
}

EXPORT int llama_time(struct llama *llama, llama_token *tokens, int count, int together, double seconds, double sample,
                      double *median, long *calls) {
    struct text text = {llama, tokens, count, together};
    return timer_median(run, &text, seconds, sample, median, calls);
}
