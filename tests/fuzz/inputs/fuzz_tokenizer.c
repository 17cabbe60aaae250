/* fuzz_tokenizer.c: a tokenizer's file, of any of the three kinds, then a text to encode and decode.
 *
 * The input: the file, the text, and a little-endian u16, the bytes of the text. */
#include "target.h"
#include "../../../runtime/tokenizer/attn_tokenizer.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_IDS = 512 };

static void check_decoded(const attn_tokenizer *t, const int32_t *ids, int count) {
    size_t bytes = 0;
    char *text = attn_tokenizer_decode(t, ids, count, &bytes);
    if (!text) fail_status(EXIT_MEMORY, "out of memory");
    volatile char seen = 0;
    for (size_t i = 0; i < bytes; i++) seen = (char)(seen ^ text[i]);
    free(text);
}

static void encode(const attn_tokenizer *t, const char *text, size_t size, bool special) {
    int32_t ids[MOST_IDS];
    int count = attn_tokenizer_encode(t, text, size, special, ids, MOST_IDS);
    if (count > MOST_IDS || count < ATTN_TOKENIZER_LONG) broken("encode returns what it never should");
    if (count < 0 && !*attn_tokenizer_error_text(count)) broken("encode fails without a reason");
    for (int i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= attn_tokenizer_size(t)) broken("encode gives an id that there is not");
    if (count >= 0) check_decoded(t, ids, count);
}

/* Both halves of the text, with a little and with more room, whose end is watched. */
static void encode_pair(const attn_tokenizer *t, const char *text, size_t size, int room) {
    int32_t *ids = malloc((size_t)room * sizeof *ids), *segments = malloc((size_t)room * sizeof *segments);
    if (ids && segments) {
        const size_t half = size / 2;
        int count = attn_tokenizer_encode_pair(t, text, half, text + half, size - half, ids, segments, room);
        if (count > room || count < ATTN_TOKENIZER_LONG) broken("encode_pair returns what it never should");
        for (int i = 0; i < count; i++)
            if (ids[i] < 0 || segments[i] < 0) broken("encode_pair gives an id or a segment that there is not");
    }
    free(ids);
    free(segments);
}

static void read_input(Arena *arena, const uint8_t *data, size_t size) {
    uint16_t given = 0;
    if (size >= 2) memcpy(&given, data + (size -= 2), 2);
    size_t n_text = given < size ? given : size, n_file = size - n_text;
    char error[256] = "";
    attn_tokenizer *t = attn_tokenizer_open(memory_file(arena, "tokenizer", data, n_file), error, sizeof error);
    if (!t && (!*error || strchr(error, '\n'))) broken("a file is refused without a reason of one line");
    if (!t) fail("%s", error);
    char *text = malloc(n_text ? n_text : 1); /* its end is watched */
    int32_t *ids = malloc(n_text ? n_text : 1);
    if (text && ids) {
        memcpy(text, data + n_file, n_text);
        memcpy(ids, data + n_file, n_text);
        encode(t, text, n_text, true);
        encode(t, text, n_text, false);
        encode_pair(t, text, n_text, 9);
        encode_pair(t, text, n_text, MOST_IDS);
        check_decoded(t, ids, (int)(n_text / sizeof *ids)); /* any numbers at all */
    }
    free(text);
    free(ids);
    attn_tokenizer_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return run_target(read_input, data, size); }
