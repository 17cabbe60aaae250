/* Self-attention as one does it with pencil and paper, step by step, and beside it what the C says that attnc
 * writes for specs/by_hand.attn: four features of six numbers, one head of three. The weights stand in that C.
 *
 *     by_hand [scalar|avx2|avx512]
 *
 * Exit status: 0 if both agree, else 1. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "by_hand.h"
#include "numbers.h"

enum { ROWS = 4, FEATURE = 6, HEAD = 3 };

static void print_table(const char *title, const float *numbers, int rows, int columns) {
    printf("%s\n", title);
    for (int row = 0; row < rows; row++)
        for (int column = 0; column < columns; column++)
            printf("%10.6g%s", (double)numbers[row * columns + column], column + 1 == columns ? "\n" : " ");
}

/* projected[ROWS][HEAD] = FEATURES times the transposed weight */
static void project(float projected[ROWS][HEAD], const float weight[HEAD][FEATURE]) {
    for (int row = 0; row < ROWS; row++)
        for (int i = 0; i < HEAD; i++) {
            projected[row][i] = 0;
            for (int k = 0; k < FEATURE; k++) projected[row][i] += FEATURES[row][k] * weight[i][k];
        }
}

static void softmax(float row[ROWS]) {
    float most = row[0], sum = 0;
    for (int i = 1; i < ROWS; i++) most = fmaxf(most, row[i]);
    for (int i = 0; i < ROWS; i++) sum += row[i] = expf(row[i] - most);
    for (int i = 0; i < ROWS; i++) row[i] /= sum;
}

static void attend_by_hand(float mixed[ROWS][HEAD]) {
    float query[ROWS][HEAD], key[ROWS][HEAD], value[ROWS][HEAD], score[ROWS][ROWS];
    project(query, QUERY_WEIGHT);
    project(key, KEY_WEIGHT);
    project(value, VALUE_WEIGHT);
    print_table("features [4][6]", &FEATURES[0][0], ROWS, FEATURE);
    print_table("queries [4][3]", &query[0][0], ROWS, HEAD);
    print_table("keys [4][3]", &key[0][0], ROWS, HEAD);
    print_table("values [4][3]", &value[0][0], ROWS, HEAD);

    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < ROWS; j++) {
            score[i][j] = 0;
            for (int k = 0; k < HEAD; k++) score[i][j] += query[i][k] * key[j][k];
            score[i][j] /= sqrtf(HEAD);
        }
    print_table("scores: queries times keys / sqrt(3) [4][4]", &score[0][0], ROWS, ROWS);
    for (int i = 0; i < ROWS; i++) softmax(score[i]);
    print_table("attention: softmax of each row [4][4]", &score[0][0], ROWS, ROWS);

    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < HEAD; k++) {
            mixed[i][k] = 0;
            for (int j = 0; j < ROWS; j++) mixed[i][k] += score[i][j] * value[j][k];
        }
    print_table("by hand: attention times values [4][3]", &mixed[0][0], ROWS, HEAD);
}

int main(int argc, char **argv) {
    static _Alignas(BY_HAND_ALIGNMENT) unsigned char workspace[BY_HAND_WORKSPACE_BYTES(1)];
    by_hand_options options = {.size = sizeof options, .target = argc > 1 ? argv[1] : NULL};
    by_hand_ctx model;
    int status = by_hand_init(&model, by_hand_embedded(), BY_HAND_WEIGHTS_BYTES, &options);

    float mixed[ROWS][HEAD], hidden[ROWS][HEAD];
    by_hand_input input = {.size = sizeof input, .batch = 1, .features = &FEATURES[0][0]};
    by_hand_output output = {.size = sizeof output, .hidden = &hidden[0][0]};
    if (!status) status = by_hand_forward(&model, &input, &output, workspace, sizeof workspace);
    if (status) {
        fprintf(stderr, "by_hand: %s\n", by_hand_status_text(status));
        return 1;
    }

    attend_by_hand(mixed);
    print_table("generated C [4][3]", &hidden[0][0], ROWS, HEAD);
    float worst = 0;
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < HEAD; k++) {
            float difference = fabsf(hidden[i][k] - mixed[i][k]);
            if (!(difference <= worst)) worst = difference; /* NaN too */
        }
    printf("target %s, largest difference %.2g\n", by_hand_target(&model), (double)worst);
    return worst <= 1e-5f ? 0 : 1;
}
