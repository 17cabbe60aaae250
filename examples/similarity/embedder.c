/* Embeds batches of texts on all threads of a pool.
 *
 * A batch is tokenized by all threads and then cut into groups of whole texts, which the threads take in turn; each
 * group is one call of the model on one thread. So no thread waits for another within the model's layers, as they would
 * if they shared each call, and one that the system holds up leaves its groups to the others. A batch too small for
 * that, such as a single query, is one call that all threads share. */
#include "embedder.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "progress.h"

enum {
    SLOT = MINILM_SEQ + 1, /* one id more than a text may have tells that it is cut */
    TEXTS_AT_A_TIME = 32,  /* tokenized by a thread before it asks for more */
    SMALL_GROUP = 128,     /* rows; with fewer the model's weights are read for too few of them */
    SHARED_ROWS = 64,      /* for a thread; with fewer, the threads share one call */
};

/* ---------------------------------------------------------------- opening */

static void open_weights(Embedder *embedder, const char *path, const char *target) {
    int error = attn_load_file(path, &embedder->weights);
    if (error) die("%s: %s", path, strerror(error));
    minilm_options how = {.size = sizeof how, .target = target};
#ifdef MINILM_HAS_TILES /* in bf16 and int8 */
    how.tiles = attn_allow_tiles();
#endif
    minilm_options shared = how;
    shared.threads = embedder->threads;
    shared.parallel_for = attn_pool_run;
    shared.pool = embedder->pool;
    int status = minilm_init(&embedder->together, embedder->weights.data, embedder->weights.size, &shared);
    if (!status) status = minilm_init(&embedder->alone, embedder->weights.data, embedder->weights.size, &how);
    if (status == MINILM_NO_TARGET && target) die("target '%s': %s", target, minilm_status_text(status));
    if (status) die("%s: %s", path, minilm_status_text(status));
}

void embedder_open(Embedder *embedder, const char *vocab, const char *weights, const char *target, int threads) {
    *embedder = (Embedder){.threads = threads};
    char error[256];
    embedder->vocab = attn_tokenizer_open(vocab, error, sizeof error);
    if (!embedder->vocab) die("the vocabulary: %s", error);
    embedder->pool = attn_pool_new(threads);
    if (!embedder->pool) die("cannot start %d threads: %s", threads, strerror(errno));
    embedder->workspaces = must_have(calloc((size_t)threads, sizeof *embedder->workspaces));
    if (weights) open_weights(embedder, weights, target);
}

void embedder_close(Embedder *embedder) {
    for (int i = 0; i < embedder->threads; i++) attn_free(embedder->workspaces[i]);
    free(embedder->workspaces);
    attn_free(embedder->workspace);
    attn_pool_free(embedder->pool);
    attn_close_file(&embedder->weights);
    attn_tokenizer_free(embedder->vocab);
}

void embedder_warm(Embedder *embedder) {
    enum { PAGE = 4096 }; /* no machine has smaller ones */
    const volatile unsigned char *data = embedder->weights.data;
    for (size_t i = 0; i < embedder->weights.size; i += PAGE) (void)data[i];
}

void batch_free(Batch *batch) {
    texts_free(&batch->texts);
    free(batch->ids);
    free(batch->lengths);
    free(batch->embeddings);
    *batch = (Batch){0};
}

/* ---------------------------------------------------------------- tokens */

typedef struct TokenizeJob {
    const attn_tokenizer *vocab;
    Batch *batch;
    atomic_size_t next;
    atomic_int status; /* of a text that failed */
} TokenizeJob;

/* Each text into its own slot: where the one before it ends is not known yet. */
static void tokenize_some(void *with, int thread) {
    (void)thread;
    TokenizeJob *job = with;
    Texts *texts = &job->batch->texts;
    size_t begin;
    while ((begin = atomic_fetch_add(&job->next, TEXTS_AT_A_TIME)) < texts->count) {
        for (size_t i = begin; i < texts->count && i < begin + TEXTS_AT_A_TIME; i++) {
            Text *text = &texts->list[i];
            const char *utf8 = texts->utf8 ? texts->utf8 + text->begin : NULL; /* all texts may be empty */
            int32_t *ids = job->batch->ids + i * SLOT;
            int length = attn_tokenizer_encode(job->vocab, utf8, text->bytes, true, ids, SLOT);
            if (length < 0) {
                atomic_store(&job->status, length);
                length = 0;
            }
            if (length == SLOT) {
                ids[MINILM_SEQ - 1] = ids[MINILM_SEQ]; /* [SEP] ends what is kept */
                length = MINILM_SEQ;
                text->cut = true;
            }
            job->batch->lengths[i] = (int32_t)length;
        }
    }
}

void tokenize(Embedder *embedder, Batch *batch) {
    size_t count = batch->texts.count;
    if (count > batch->capacity) {
        free(batch->ids);
        free(batch->lengths);
        free(batch->embeddings);
        batch->ids = must_have(malloc(count * SLOT * sizeof *batch->ids));
        batch->lengths = must_have(malloc(count * sizeof *batch->lengths));
        batch->embeddings = must_have(malloc(count * WIDTH * sizeof *batch->embeddings));
        batch->capacity = count;
    }
    TokenizeJob job = {.vocab = embedder->vocab, .batch = batch};
    atomic_init(&job.next, 0);
    atomic_init(&job.status, 0);
    attn_pool_run(embedder->pool, count < TEXTS_AT_A_TIME ? 1 : embedder->threads, tokenize_some, &job);
    int status = atomic_load(&job.status);
    if (status) die("the vocabulary: %s", attn_tokenizer_error_text(status));

    batch->rows = 0;
    for (size_t i = 0; i < count; i++) {
        size_t length = (size_t)batch->lengths[i];
        memmove(batch->ids + batch->rows, batch->ids + i * SLOT, length * sizeof *batch->ids);
        batch->rows += length;
    }
}

/* ---------------------------------------------------------------- embeddings */

/* The texts from `text` up to the next group's, whose tokens begin at `row`. */
typedef struct Group {
    size_t text, row;
} Group;

typedef struct EmbedJob {
    Embedder *embedder;
    Batch *batch;
    Group *groups; /* one more than there are: the end */
    size_t count;
    atomic_size_t next, texts, rows; /* the group to take, and what is finished */
    atomic_int status;               /* of a call that failed */
    size_t done;                     /* as for embed() */
    double from, to;
} EmbedJob;

static int forward(const minilm_ctx *model, Batch *batch, Group begin, Group end, void *workspace, size_t bytes) {
    minilm_input input = {
        .size = sizeof input,
        .batch = (int)(end.text - begin.text),
        .lengths = batch->lengths + begin.text,
        .tokens = batch->ids + begin.row,
    };
    minilm_output output = {.size = sizeof output, .pooled = batch->embeddings + begin.text * WIDTH};
    return minilm_forward(model, &input, &output, workspace, bytes);
}

static void embed_groups(void *with, int thread) {
    EmbedJob *job = with;
    void *workspace = job->embedder->workspaces[thread];
    size_t taken;
    while ((taken = atomic_fetch_add(&job->next, 1)) < job->count && !atomic_load(&job->status)) {
        Group begin = job->groups[taken], end = job->groups[taken + 1];
        int status = forward(&job->embedder->alone, job->batch, begin, end, workspace, MINILM_WORKSPACE_BYTES(1));
        if (status) atomic_store(&job->status, status);
        size_t texts = atomic_fetch_add(&job->texts, end.text - begin.text) + end.text - begin.text;
        size_t rows = atomic_fetch_add(&job->rows, end.row - begin.row) + end.row - begin.row;
        double part = (double)rows / (double)job->batch->rows;
        if (thread == 0) progress_show(job->done + texts, job->from + part * (job->to - job->from));
    }
}

/* Cuts the batch into groups of up to MINILM_ROWS rows, smaller ones at the end, so that the threads are finished at
 * about the same time. */
static size_t cut_into_groups(const Batch *batch, int threads, Group *groups) {
    size_t count = 0, row = 0, begin = 0, most = 0;
    for (size_t i = 0; i < batch->texts.count; i++) {
        size_t length = (size_t)batch->lengths[i];
        if (i == 0 || row - begin + length > most) {
            groups[count++] = (Group){i, row};
            begin = row;
            most = (batch->rows - row) / (2 * (size_t)threads);
            if (most > MINILM_ROWS) most = MINILM_ROWS;
            if (most < SMALL_GROUP) most = SMALL_GROUP;
        }
        row += length;
    }
    groups[count] = (Group){batch->texts.count, batch->rows};
    return count;
}

static int embed_apart(Embedder *embedder, Batch *batch, size_t done, double from, double to) {
    EmbedJob job = {.embedder = embedder, .batch = batch, .done = done, .from = from, .to = to};
    job.groups = must_have(malloc((batch->texts.count + 1) * sizeof *job.groups));
    job.count = cut_into_groups(batch, embedder->threads, job.groups);
    atomic_init(&job.next, 0);
    atomic_init(&job.texts, 0);
    atomic_init(&job.rows, 0);
    atomic_init(&job.status, 0);
    int threads = job.count < (size_t)embedder->threads ? (int)job.count : embedder->threads;
    for (int i = 0; i < threads; i++)
        if (!embedder->workspaces[i]) embedder->workspaces[i] = must_have(attn_alloc(MINILM_WORKSPACE_BYTES(1)));
    attn_pool_run(embedder->pool, threads, embed_groups, &job);
    free(job.groups);
    return atomic_load(&job.status);
}

static int embed_together(Embedder *embedder, Batch *batch) {
    size_t bytes = MINILM_WORKSPACE_BYTES(embedder->threads);
    if (!embedder->workspace) embedder->workspace = must_have(attn_alloc(bytes));
    Group end = {batch->texts.count, batch->rows};
    return forward(&embedder->together, batch, (Group){0}, end, embedder->workspace, bytes);
}

void embed(Embedder *embedder, Batch *batch, size_t done, double from, double to) {
    bool small = batch->rows < SHARED_ROWS * (size_t)embedder->threads;
    int status = small ? embed_together(embedder, batch) : embed_apart(embedder, batch, done, from, to);
    if (status == MINILM_BAD_TOKEN) die("the vocabulary does not belong to this model: it has more tokens");
    if (status) die("%s", minilm_status_text(status));
}
