/* attn_tiles.h: the instructions of AMX as C functions, with which generated code is tested on machines without them.
 * The code takes this file in where the macro ATTN_TILES names it. Formulas are those of Intel's Software Developer's
 * Manual, volume 2; what raises an exception there calls abort(). */
#ifndef ATTN_TILES_H
#define ATTN_TILES_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ATTN_TILE_COUNT = 8, ATTN_TILE_ROWS = 16, ATTN_TILE_ROW = 64 };

/* Of a thread; a palette of 0 stands for released tiles. */
static _Thread_local struct {
    int palette;
    int rows[ATTN_TILE_COUNT], bytes[ATTN_TILE_COUNT]; /* the shape of a tile */
    unsigned char data[ATTN_TILE_COUNT][ATTN_TILE_ROWS][ATTN_TILE_ROW];
} attn_tiles;

/* `at` has 64 bytes: a palette, 15 bytes that are 0, the bytes of a row of each tile in 16 bits, and its rows. */
static __attribute__((unused)) void attn_tile_shapes(const void *at) {
    const unsigned char *shapes = (const unsigned char *)at;
    if (shapes[0] != 1) abort();
    for (int i = 1; i < 16; i++)
        if (shapes[i]) abort();
    for (int t = 0; t < ATTN_TILE_ROWS; t++) {
        const int bytes = shapes[16 + 2 * t] | shapes[17 + 2 * t] << 8, rows = shapes[48 + t];
        if (bytes > ATTN_TILE_ROW || rows > ATTN_TILE_ROWS || (bytes == 0) != (rows == 0)) abort();
        if (t >= ATTN_TILE_COUNT && rows) abort();
        if (t >= ATTN_TILE_COUNT) continue;
        attn_tiles.rows[t] = rows;
        attn_tiles.bytes[t] = bytes;
    }
    attn_tiles.palette = 1;
    memset(attn_tiles.data, 0, sizeof attn_tiles.data);
}

static __attribute__((unused)) void attn_tile_release(void) {
    memset(&attn_tiles, 0, sizeof attn_tiles);
}

static __attribute__((unused)) void attn_tile_needed(int t) {
    if (!attn_tiles.palette || !attn_tiles.rows[t]) abort();
}

static __attribute__((unused)) void attn_tile_zero(int t) {
    attn_tile_needed(t);
    memset(attn_tiles.data[t], 0, sizeof attn_tiles.data[t]);
}

static __attribute__((unused)) void attn_tile_load(int t, const void *at, size_t stride) {
    attn_tile_zero(t);
    for (int r = 0; r < attn_tiles.rows[t]; r++)
        memcpy(attn_tiles.data[t][r], (const unsigned char *)at + (size_t)r * stride, (size_t)attn_tiles.bytes[t]);
}

static __attribute__((unused)) void attn_tile_store(int t, void *at, size_t stride) {
    attn_tile_needed(t);
    for (int r = 0; r < attn_tiles.rows[t]; r++)
        memcpy((unsigned char *)at + (size_t)r * stride, attn_tiles.data[t][r], (size_t)attn_tiles.bytes[t]);
}

/* c [rows of a][n] + a [rows of a][k] times b [k][n] wants these shapes. */
static __attribute__((unused)) void attn_tile_product(int c, int a, int b) {
    attn_tile_needed(a);
    attn_tile_needed(b);
    attn_tile_needed(c);
    if (c == a || c == b || a == b) abort();
    if (attn_tiles.rows[c] != attn_tiles.rows[a] || attn_tiles.bytes[c] != attn_tiles.bytes[b]) abort();
    if (attn_tiles.bytes[a] != attn_tiles.rows[b] * 4 || attn_tiles.bytes[b] % 4) abort();
}

/* TDPBUSD: sums of four products of a byte without and a byte with a sign */
static __attribute__((unused)) void attn_tile_dot_u8_i8(int c, int a, int b) {
    attn_tile_product(c, a, b);
    for (int m = 0; m < attn_tiles.rows[c]; m++)
        for (int k = 0; k < attn_tiles.rows[b]; k++)
            for (int n = 0; n < attn_tiles.bytes[c] / 4; n++) {
                int32_t sum;
                memcpy(&sum, &attn_tiles.data[c][m][4 * n], sizeof sum);
                for (int j = 0; j < 4; j++)
                    sum = (int32_t)((uint32_t)sum + (uint32_t)(attn_tiles.data[a][m][4 * k + j] *
                                                               (int8_t)attn_tiles.data[b][k][4 * n + j]));
                memcpy(&attn_tiles.data[c][m][4 * n], &sum, sizeof sum);
            }
}

/* A number below 2^-126 is 0, as an operand and as a result. */
static __attribute__((unused)) float attn_tile_flushed(float x) {
    return fabsf(x) < 0x1p-126f ? copysignf(0.0f, x) : x;
}

static __attribute__((unused)) float attn_tile_bf16(const unsigned char *at) {
    const uint32_t bits = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 24;
    float x;
    memcpy(&x, &bits, sizeof x);
    return attn_tile_flushed(x);
}

/* TDPBF16PS: the sums of even and of odd k begin at 0 and are then added to each other and to c. */
static __attribute__((unused)) void attn_tile_dot_bf16(int c, int a, int b) {
    attn_tile_product(c, a, b);
    for (int m = 0; m < attn_tiles.rows[c]; m++)
        for (int n = 0; n < attn_tiles.bytes[c] / 4; n++) {
            float sums[2] = {0, 0}, sum;
            for (int k = 0; k < attn_tiles.rows[b]; k++)
                for (int j = 0; j < 2; j++) {
                    const float x = attn_tile_bf16(&attn_tiles.data[a][m][4 * k + 2 * j]);
                    const float y = attn_tile_bf16(&attn_tiles.data[b][k][4 * n + 2 * j]);
                    sums[j] = attn_tile_flushed(fmaf(x, y, sums[j]));
                }
            memcpy(&sum, &attn_tiles.data[c][m][4 * n], sizeof sum);
            sum = attn_tile_flushed(attn_tile_flushed(sum) + attn_tile_flushed(sums[0] + sums[1]));
            memcpy(&attn_tiles.data[c][m][4 * n], &sum, sizeof sum);
        }
}

#endif
