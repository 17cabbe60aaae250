/* Runs an encoder once on the target that is named, for count.c. Exit status 77: this processor lacks the target. */
#include "products.h"

#include <stdio.h>

enum { ROWS = 32, VOCAB = 61 };

int main(int argc, char **argv) {
    static unsigned char workspace[PRODUCTS_WORKSPACE_BYTES(1)] __attribute__((aligned(64)));
    static float hidden[ROWS][PRODUCTS_HIDDEN_WIDTH];
    const int32_t lengths[] = {ROWS};
    int32_t tokens[ROWS];
    for (int i = 0; i < ROWS; i++) tokens[i] = i * 7 % VOCAB;
    const products_options options = {.size = sizeof options, .target = argc > 1 ? argv[1] : NULL};
    const products_input input = {.size = sizeof input, .batch = 1, .lengths = lengths, .tokens = tokens};
    products_output output = {.size = sizeof output, .hidden = &hidden[0][0]};
    products_ctx model;
    int status = products_init(&model, products_embedded(), PRODUCTS_WEIGHTS_BYTES, &options);
    if (status == PRODUCTS_NO_TARGET) return 77;
    if (!status) status = products_forward(&model, &input, &output, workspace, sizeof workspace);
    return status;
}
