/* refuse.c: weights that are damaged in any way are refused by init; what only --verify finds is found by it. */
#include "program.h"

enum { HEADER = 128, AT_HEADER_HASH = 120, AT_DATA_HASH = 48, HASH_BYTES = 8 };

static unsigned char *damaged; /* U(WEIGHTS_BYTES) + 64 */

static int init(size_t bytes, bool verify) {
    M(ctx) ctx;
    M(options) options = {0};
    options.size = sizeof options;
    options.target = target;
    options.verify = verify;
    return M(init)(&ctx, damaged, bytes, &options);
}

static void expect(int wanted, size_t bytes, bool verify, const char *what, size_t where) {
    int status = init(bytes, verify);
    if (status != wanted)
        failed("%s %zu%s: `%s`, not `%s`", what, where, verify ? ", verified" : "", M(status_text)(status),
               M(status_text)(wanted));
}

static void mend_header(void) { /* FNV-1a */
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (int i = 0; i < AT_HEADER_HASH; i++) hash = (hash ^ damaged[i]) * UINT64_C(0x100000001b3);
    for (int i = 0; i < HASH_BYTES; i++) damaged[AT_HEADER_HASH + i] = (unsigned char)(hash >> 8 * i);
}

/* Of the header; of the data every `stride`th. */
static void every_bit(size_t stride) {
    for (size_t bit = 0; bit < 8 * (size_t)U(WEIGHTS_BYTES); bit += bit < 8 * HEADER ? 1 : stride) {
        damaged[bit / 8] ^= (unsigned char)(1 << bit % 8);
        bool header = bit < 8 * HEADER;
        if (header) expect(U(BAD_WEIGHTS), U(WEIGHTS_BYTES), false, "the header's bit", bit);
        else if (bit % 4096 == 0) expect(U(OK), U(WEIGHTS_BYTES), false, "the data's bit", bit);
        expect(U(BAD_WEIGHTS), U(WEIGHTS_BYTES), true, header ? "the header's bit" : "the data's bit", bit);
        damaged[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
}

/* Another version, layout, model, dtype, count or size, in a header whose checksum is right. */
static void every_field(void) {
    for (size_t at = 0; at < AT_HEADER_HASH; at++)
        for (int bit = 0; bit < 8; bit++) {
            damaged[at] ^= (unsigned char)(1 << bit);
            mend_header();
            bool of_data = at >= AT_DATA_HASH && at < AT_DATA_HASH + HASH_BYTES;
            expect(of_data ? U(OK) : U(BAD_WEIGHTS), U(WEIGHTS_BYTES), false, "the forged header's byte", at);
            expect(U(BAD_WEIGHTS), U(WEIGHTS_BYTES), true, "the forged header's byte", at);
            damaged[at] ^= (unsigned char)(1 << bit);
        }
    mend_header();
}

int refuse_damaged(bool all) {
    enum { SOME = 2000 }; /* bits, of a file of more than a few kB */
    size_t bytes = U(WEIGHTS_BYTES), stride = all || bytes < SOME * 4 ? 1 : 8 * bytes / SOME | 1;
    damaged = block(U(WEIGHTS_BYTES) + 64);
    memcpy(damaged, weights, U(WEIGHTS_BYTES));
    every_bit(stride);
    every_field();
    for (size_t n = 0; n < bytes + 64; n++) expect(n == bytes ? U(OK) : U(BAD_WEIGHTS), n, false, "a length of", n);
    expect(U(OK), U(WEIGHTS_BYTES), true, "as it was:", 0);
    if (memcmp(damaged, weights, U(WEIGHTS_BYTES)) != 0) failed("the weights have changed");
    free(damaged);
    return 0;
}
