/* Self-attention as one does it with pencil and paper, step by step, and beside it what the C says that attnc
 * writes for specs/by_hand.attn: four features of six numbers, one head of three. The weights stand in that C.
 *
 *     by_hand [scalar|avx2|avx512]
 *
 * Exit status: 0 if both agree, 1 if not or if the machine lacks the target, 2 for wrong usage. */
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

/* attention = the softmax of each row of `scaled`, by way of the two tables before it */
static void softmax(const float scaled[ROWS][ROWS], float attention[ROWS][ROWS]) {
    float power[ROWS][ROWS], sum[ROWS] = {0};
    for (int i = 0; i < ROWS; i++) {
        float most = scaled[i][0];
        for (int j = 1; j < ROWS; j++) most = fmaxf(most, scaled[i][j]);
        for (int j = 0; j < ROWS; j++) sum[i] += power[i][j] = expf(scaled[i][j] - most);
        for (int j = 0; j < ROWS; j++) attention[i][j] = power[i][j] / sum[i];
    }
    print_table("powers [4][4]: e to the scaled score less the largest of its row", &power[0][0], ROWS, ROWS);
    print_table("sums [4][1] of the powers of a row", sum, ROWS, 1);
    print_table("attention [4][4]: powers / sums, the softmax of each row", &attention[0][0], ROWS, ROWS);
}

static void attend_by_hand(float attended[ROWS][HEAD]) {
    float query[ROWS][HEAD], key[ROWS][HEAD], value[ROWS][HEAD];
    float score[ROWS][ROWS], scaled[ROWS][ROWS], attention[ROWS][ROWS];
    print_table("features [4][6]", &FEATURES[0][0], ROWS, FEATURE);
    print_table("query weight [3][6]", &QUERY_WEIGHT[0][0], HEAD, FEATURE);
    print_table("key weight [3][6]", &KEY_WEIGHT[0][0], HEAD, FEATURE);
    print_table("value weight [3][6]", &VALUE_WEIGHT[0][0], HEAD, FEATURE);
    project(query, QUERY_WEIGHT);
    project(key, KEY_WEIGHT);
    project(value, VALUE_WEIGHT);
    print_table("queries [4][3]: each feature times each row of the query weight", &query[0][0], ROWS, HEAD);
    print_table("keys [4][3]", &key[0][0], ROWS, HEAD);
    print_table("values [4][3]", &value[0][0], ROWS, HEAD);

    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < ROWS; j++) {
            score[i][j] = 0;
            for (int k = 0; k < HEAD; k++) score[i][j] += query[i][k] * key[j][k];
            scaled[i][j] = score[i][j] / sqrtf(HEAD);
        }
    print_table("scores [4][4]: each query times each key", &score[0][0], ROWS, ROWS);
    print_table("scaled [4][4]: scores / sqrt(3)", &scaled[0][0], ROWS, ROWS);
    softmax(scaled, attention);

    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < HEAD; k++) {
            attended[i][k] = 0;
            for (int j = 0; j < ROWS; j++) attended[i][k] += attention[i][j] * value[j][k];
        }
    print_table("by hand: attention times values [4][3]", &attended[0][0], ROWS, HEAD);
}

int main(int argc, char **argv) {
    if (argc > 2) return fprintf(stderr, "usage: by_hand [scalar|avx2|avx512]\n"), 2;
    static _Alignas(BY_HAND_ALIGNMENT) unsigned char workspace[BY_HAND_WORKSPACE_BYTES(1)];
    by_hand_options options = {.size = sizeof options, .target = argc > 1 ? argv[1] : NULL};
    by_hand_ctx model;
    int status = by_hand_init(&model, by_hand_embedded(), BY_HAND_WEIGHTS_BYTES, &options);

    float attended[ROWS][HEAD], hidden[ROWS][HEAD];
    by_hand_input input = {.size = sizeof input, .batch = 1, .features = &FEATURES[0][0]};
    by_hand_output output = {.size = sizeof output, .hidden = &hidden[0][0]};
    if (!status) status = by_hand_forward(&model, &input, &output, workspace, sizeof workspace);
    if (status) {
        fprintf(stderr, "by_hand: %s\n", by_hand_status_text(status));
        return 1;
    }

    attend_by_hand(attended);
    print_table("generated C [4][3]", &hidden[0][0], ROWS, HEAD);
    float worst = 0;
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < HEAD; k++) {
            float difference = fabsf(hidden[i][k] - attended[i][k]);
            if (!(difference <= worst)) worst = difference; /* NaN too */
        }
    printf("target %s, largest difference %.2g\n", by_hand_target(&model), (double)worst);
    return worst <= 1e-5f ? 0 : 1;
}
