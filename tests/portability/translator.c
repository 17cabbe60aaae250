/* translator [TARGET]: seq2seq.attn with the weights in it: a source, a prefill, a fork, steps of both. Prints and ends
 * as encoder.c does. */
#include "seq2seq.h"

#include <stdio.h>
#include <string.h>

enum { ROWS = 19, PREFILL = 5, STEPS = 6 };

static _Alignas(64) unsigned char source[SEQ2SEQ_SOURCE_BYTES], states[2][SEQ2SEQ_STATE_BYTES];
static _Alignas(64) unsigned char workspace[SEQ2SEQ_ENCODE_WORKSPACE_BYTES(1) + SEQ2SEQ_DECODE_WORKSPACE_BYTES(1)];

static int translate(const char *target) {
    int32_t ids[ROWS], length = ROWS;
    for (int i = 0; i < ROWS; i++) ids[i] = (i * 11 + 5) % 41;
    void *sources[] = {source}, *both[] = {states[1], states[0]};
    float logits[2][SEQ2SEQ_LOGITS_WIDTH];
    seq2seq_options options = {.size = sizeof options, .target = target};
    seq2seq_source input = {.size = sizeof input, .batch = 1, .lengths = &length, .source = ids};
    seq2seq_encoded encoded = {.size = sizeof encoded};
    seq2seq_decoded decoded = {.size = sizeof decoded, .logits = logits[0]};
    seq2seq_ctx model;
    int status = seq2seq_init(&model, seq2seq_embedded(), SEQ2SEQ_WEIGHTS_BYTES, &options);
    if (!status) status = seq2seq_encode(&model, &input, &encoded, sources, workspace, sizeof workspace);
    if (!status) status = seq2seq_state_init(states[0], sizeof states[0], source);
    if (!status) status = seq2seq_prefill(&model, states[0], ids, PREFILL, &decoded, workspace, sizeof workspace);
    if (!status) status = seq2seq_state_copy(states[1], states[0]);
    if (status) return status;
    puts(seq2seq_target(&model));
    for (int step = 0; step < STEPS && !status; step++) {
        const int32_t tokens[] = {7 + step, 30 - step};
        status = seq2seq_step(&model, both, tokens, 2, &decoded, workspace, sizeof workspace);
        for (int i = 0; i < 2 * SEQ2SEQ_LOGITS_WIDTH; i++) {
            unsigned bits;
            memcpy(&bits, &logits[0][i], sizeof bits);
            printf("%08x\n", bits);
        }
    }
    return status;
}

int main(int argc, char **argv) {
    int status = translate(argc > 1 ? argv[1] : NULL);
    if (status) puts(seq2seq_status_text(status));
    return status == SEQ2SEQ_NO_TARGET ? 77 : status != 0;
}
