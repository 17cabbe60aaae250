#ifndef SIMILARITY_EMBEDDER_H
#define SIMILARITY_EMBEDDER_H

#include <stdbool.h>
#include <stdint.h>

#include "../../runtime/attn_runtime.h"
#include "../../runtime/tokenizer/attn_tokenizer.h"
#include "minilm.h"
#include "texts.h"

enum {
    WIDTH = 384,             /* numbers of an embedding */
    BATCH_TEXTS = 4096,      /* most texts of a batch */
    BATCH_BYTES = 4 << 20,   /* a batch takes no further text from that many bytes on */
};

/* Texts and what is made of them. Token ids lie one text after another. Start from {0}. */
typedef struct Batch {
    Texts texts;
    int32_t *ids, *lengths; /* [rows], [texts] */
    size_t rows;
    float *embeddings; /* [texts][WIDTH], of length one */
    size_t capacity;   /* texts that ids, lengths and embeddings have room for */
} Batch;

void batch_free(Batch *batch);

typedef struct Embedder {
    attn_tokenizer *vocab;
    attn_file weights;
    attn_pool *pool;
    int threads;
    minilm_ctx together, alone; /* the pool's threads share a call, or each makes its own */
    void *workspace;            /* of a call that they share */
    void **workspaces;          /* [threads], made when first needed */
} Embedder;

/* Ends the program with a message where a file does not do. Weights may be NULL: then there are only tokens. */
void embedder_open(Embedder *embedder, const char *vocab, const char *weights, const char *target, int threads);
void embedder_close(Embedder *embedder);

/* Reads all of the weights, so that no later call waits for the disk. */
void embedder_warm(Embedder *embedder);

/* Fills ids, lengths and rows, and marks the texts that are cut. */
void tokenize(Embedder *embedder, Batch *batch);

/* Fills the embeddings of a tokenized batch. A text's numbers are the same in any batch and for any number of threads.
 * While it runs, progress_show is told: `done` texts were embedded before, and the batch leads from the first fraction
 * of the work to the second. */
void embed(Embedder *embedder, Batch *batch, size_t done, double from, double to);

#endif
