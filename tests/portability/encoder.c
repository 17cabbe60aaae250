/* encoder [TARGET]: small.attn with the weights in it, one call: the target, then the bits of the result. 77: the
 * machine has none of the targets, or not the wanted one. */
#include "small.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    static unsigned char workspace[SMALL_WORKSPACE_BYTES(1)] __attribute__((aligned(64)));
    static float hidden[13 * SMALL_HIDDEN_WIDTH];
    int32_t lengths[1] = {13}, tokens[13];
    for (int i = 0; i < 13; i++) tokens[i] = (i * 7 + 3) % 61;
    small_options options = {.size = sizeof options, .target = argc > 1 ? argv[1] : NULL};
    small_input input = {.size = sizeof input, .batch = 1, .lengths = lengths, .tokens = tokens};
    small_output output = {.size = sizeof output, .hidden = hidden};
    small_ctx model;
    int status = small_init(&model, small_embedded(), SMALL_WEIGHTS_BYTES, &options);
    if (!status) status = small_forward(&model, &input, &output, workspace, sizeof workspace);
    if (status) return puts(small_status_text(status)), status == SMALL_NO_TARGET ? 77 : 1;
    puts(small_target(&model));
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
        unsigned bits;
        memcpy(&bits, &hidden[i], sizeof bits);
        printf("%08x\n", bits);
    }
    return 0;
}
