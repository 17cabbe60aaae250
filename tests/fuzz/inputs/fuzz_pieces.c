/* fuzz_pieces.c: a file of SentencePiece, of which a tokenizer.json is written, which the runtime opens; then a text to
 * encode and decode.
 *
 * The input: the file, the text, and a little-endian u16, the bytes of the text. */
#include "target.h"
#include "../../../compiler/project/project.h"
#include "../../../runtime/tokenizer/attn_tokenizer.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_IDS = 512 };

static void encode(const attn_tokenizer *t, const char *text, size_t size) {
    int32_t ids[MOST_IDS];
    const int count = attn_tokenizer_encode(t, text, size, true, ids, MOST_IDS);
    if (count > MOST_IDS || count < ATTN_TOKENIZER_LONG) broken("encode returns what it never should");
    for (int i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= attn_tokenizer_size(t)) broken("encode gives an id that there is not");
    size_t bytes = 0;
    if (count >= 0) free(attn_tokenizer_decode(t, ids, count, &bytes));
}

static void read_input(Arena *arena, const uint8_t *data, size_t size) {
    uint16_t given = 0;
    if (size >= 2) memcpy(&given, data + (size -= 2), 2);
    const size_t n_text = given < size ? given : size, n_file = size - n_text;
    size_t n_json = 0;
    const char *json = pieces_tokenizer(arena, memory_file(arena, "pieces.model", data, n_file), &n_json);
    char error[256] = "", *text = malloc(n_text ? n_text : 1); /* its end is watched */
    attn_tokenizer *t = attn_tokenizer_read(json, n_json, error, sizeof error);
    /* the table of replacements alone is left for the runtime to check */
    if (!t && !strstr(error, "precompiled_charsmap")) broken("the runtime refuses a tokenizer.json that attnc wrote");
    if (t && text) {
        memcpy(text, data + n_file, n_text);
        encode(t, text, n_text);
    }
    free(text);
    attn_tokenizer_free(t);
    if (!t) fail("%s", error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return run_target(read_input, data, size); }
