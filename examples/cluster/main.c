/* Continues a text with a model that several processes share, started by mpirun or srun:
 *
 *     mpirun -n N cluster WEIGHTS TOKENIZER TEXT [MOST]
 *
 * Rank r reads WEIGHTS.r.attnw, which `attnc pack --ranks N` wrote. All ranks choose the same tokens; rank 0 writes the
 * text. Exit status: 0, or 1 on all ranks after an error. */
#include "attn_generate.h"
#include "attn_mpi.h"
#include "attn_runtime.h"
#include "attn_tokenizer.h"
#include "shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ATTN_MODEL_OF(shared);

static const double MOST_SECONDS = 60; /* that a rank may come later than the others */

static attn_mpi mpi;

/* Ends all ranks. */
static _Noreturn void die(const char *what, const char *why) {
    fprintf(stderr, "rank %d: %s: %s\n", mpi.rank, what, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static void *must_have(void *memory) {
    if (!memory) die("the model", "out of memory");
    return memory;
}

/* Opens the weights of this rank; the file must outlive the context. */
static void open_model(shared_ctx *ctx, attn_file *file, const char *weights) {
    char path[4096];
    snprintf(path, sizeof path, "%s.%d.attnw", weights, mpi.rank);
    const int error = attn_load_file(path, file);
    if (error) die(path, strerror(error));
    shared_options options = {.size = sizeof options, .rank = mpi.rank};
    options.all_gather = attn_mpi_all_gather, options.group = &mpi;
    const int status = shared_init(ctx, file->data, file->size, &options);
    if (status == SHARED_RANKS_DIFFER && mpi.rank == 0)
        fprintf(stderr, "rank %d differs from rank 0\n", shared_odd_rank(ctx));
    if (status) die(path, shared_status_text(status));
}

/* The tokens of a text; the model holds at most SHARED_SEQ. */
static int tokens_of(const attn_tokenizer *tokens, const char *text, int32_t *ids) {
    const int count = attn_tokenizer_encode(tokens, text, strlen(text), true, ids, SHARED_SEQ);
    if (count < 0) die("the text", attn_tokenizer_error_text(count));
    if (count == 0 || count >= SHARED_SEQ) die("the text", "it has no token, or more than the model holds");
    return count;
}

static void write_text(attn_tokenizer *tokens, const int32_t *ids, int count) {
    attn_tokenizer_stream *stream = must_have(attn_tokenizer_stream_begin(tokens));
    const char *text;
    for (int i = 0; i < count; i++) {
        const int size = attn_tokenizer_stream_feed(stream, ids[i], &text);
        if (size > 0) fwrite(text, 1, (size_t)size, stdout);
    }
    const int rest = attn_tokenizer_stream_finish(stream, &text);
    if (rest > 0) fwrite(text, 1, (size_t)rest, stdout);
    puts("");
    attn_tokenizer_stream_free(stream);
}

/* Continues the ids, of which there are `count`; returns how many there are then. */
static int go_on(shared_ctx *ctx, int32_t *ids, int count, int most) {
    const size_t bytes = SHARED_DECODE_WORKSPACE_BYTES(1);
    void *state = must_have(attn_alloc(SHARED_STATE_BYTES)), *workspace = must_have(attn_alloc(bytes));
    void *states[1] = {state};
    shared_generator generator = {ctx, states, workspace, bytes, 0};
    const attn_model model = shared_generator_model(&generator, SHARED_VOCAB, SHARED_SEQ);
    attn_generate_options how = {.size = sizeof how, .max_new = most};
    SHARED_SET_SEARCH(&how);
    if (how.max_new > SHARED_SEQ - count) how.max_new = SHARED_SEQ - count;
    const size_t memory_bytes = attn_generate_bytes(&model, &how);
    void *memory = must_have(memory_bytes ? malloc(memory_bytes) : NULL);
    attn_generated result = {.size = sizeof result, .tokens = ids + count};
    int status = shared_state_init(state, SHARED_STATE_BYTES);
    if (!status) status = attn_generate(&model, &how, ids, count, &result, memory, memory_bytes);
    if (status == ATTN_GENERATE_MODEL) die("the model", shared_status_text(result.model_status));
    if (status) die("the search", attn_generate_status_text(status));
    free(memory);
    attn_free(workspace);
    attn_free(state);
    return count + result.count;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (attn_mpi_begin(&mpi, MPI_COMM_WORLD, SHARED_RANKS, MOST_SECONDS)) MPI_Abort(MPI_COMM_WORLD, 1);
    if (argc < 4 || argc > 5) die("usage", "cluster WEIGHTS TOKENIZER TEXT [MOST]");
    const int most = argc > 4 ? atoi(argv[4]) : 100;
    if (most < 1) die(argv[4], "a number of tokens, at least 1");
    shared_ctx ctx;
    attn_file file;
    char why[256];
    open_model(&ctx, &file, argv[1]);
    attn_tokenizer *tokens = attn_tokenizer_open(argv[2], why, sizeof why);
    if (!tokens) die(argv[2], why);
    static int32_t ids[SHARED_SEQ];
    int count = tokens_of(tokens, argv[3], ids);
    count = go_on(&ctx, ids, count, most);
    if (mpi.rank == 0) write_text(tokens, ids, count);
    attn_tokenizer_free(tokens);
    attn_close_file(&file);
    attn_mpi_end(&mpi);
    MPI_Finalize();
    return 0;
}
