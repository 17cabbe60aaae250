/* Runs a model with a pool of threads on a machine that is emulated, and prints what it computes and what the functions
 * for files say. Arguments: the .attnw, the target, and a path that is no file. */
#include "embedder.h"

#include "attn_runtime.h"

#include <stdio.h>

enum { THREADS = 3, CALLS = 50, SEQUENCES = 4, ROWS = 31 };

static void show_files(const char *weights, const char *missing) {
    attn_file file, loaded;
    printf("missing %d", attn_map_file(missing, &file) != 0 && file.data == NULL);
    printf(" folder %d", attn_load_file(".", &file) != 0);
    printf(" mapped %d", attn_map_file(weights, &file) == 0);
    const int same = attn_load_file(weights, &loaded) == 0 && loaded.size == file.size &&
                     ((const char *)loaded.data)[loaded.size - 1] == ((const char *)file.data)[file.size - 1];
    printf(" loaded %d processors %d\n", same, attn_cpu_count() > 0);
    attn_close_file(&loaded);
    attn_close_file(&file);
}

static int show_model(const attn_file *weights, const char *target) {
    attn_pool *pool = attn_pool_new(THREADS);
    embedder_options options = {.size = sizeof options, .target = target, .threads = attn_pool_threads(pool),
                                .parallel_for = attn_pool_run, .pool = pool, .least_work = 1, .verify = 1};
    embedder_ctx model;
    int status = embedder_init(&model, weights->data, weights->size, &options);
    printf("init: %s\n", embedder_status_text(status));
    if (status == EMBEDDER_OK) {
        const int32_t lengths[SEQUENCES] = {16, 5, 9, 1};
        int32_t tokens[ROWS];
        float pooled[SEQUENCES][EMBEDDER_POOLED_WIDTH];
        for (int i = 0; i < ROWS; i++) tokens[i] = i * 7 % 50;
        const embedder_input input = {.size = sizeof input, .batch = SEQUENCES, .lengths = lengths, .tokens = tokens};
        embedder_output output = {.size = sizeof output, .pooled = &pooled[0][0]};
        const size_t bytes = EMBEDDER_WORKSPACE_BYTES(THREADS);
        void *workspace = attn_alloc(bytes);
        for (int i = 0; i < CALLS && status == EMBEDDER_OK; i++)
            status = embedder_forward(&model, &input, &output, workspace, bytes);
        printf("%s %s:", embedder_target(&model), embedder_status_text(status));
        for (int i = 0; i < SEQUENCES; i++) printf(" %.5f %.5f", (double)pooled[i][0], (double)pooled[i][31]);
        printf("\n");
        attn_free(workspace);
    }
    attn_pool_free(pool);
    return status;
}

int main(int argc, char **argv) {
    attn_file weights;
    if (argc != 4 || attn_map_file(argv[1], &weights) != 0) return 2;
    show_files(argv[1], argv[3]);
    const int status = show_model(&weights, argv[2]);
    attn_close_file(&weights);
    return status;
}
