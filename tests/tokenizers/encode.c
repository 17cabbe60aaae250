/* encode TOKENIZER: reads texts from standard input, each behind its length in bytes (uint32, little-endian), and
 * prints for each a line: its ids, a tab, and the text that they decode to, in hexadecimal.
 * encode TOKENIZER ids: reads lists of ids (int32, little-endian), each after its length in bytes, and prints for each
 * the text in hexadecimal and, after a tab, the parts in which a stream gives it.
 * encode TOKENIZER around: prints the ids before a text, a tab, and the ids after it.
 * encode TOKENIZER CAPACITY [RULES]: reads pairs of texts, and prints at most CAPACITY ids of each, a tab, and their
 * segments. RULES is the number of rules for texts.
 * encode TOKENIZER CAPACITY RULES alone: reads texts, and prints at most CAPACITY ids of each. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../runtime/tokenizer/attn_tokenizer.h"

enum { MOST_BYTES = 1 << 24 };

static void put_hex(const char *text, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) printf("%02x", (unsigned)(unsigned char)text[i]);
}

/* The text of ids, which is also what a stream gives; with `parts`, those, too. */
static void show_text(const attn_tokenizer *t, const int32_t *ids, int count, bool parts) {
    size_t bytes = 0, at = 0;
    char *decoded = attn_tokenizer_decode(t, ids, count, &bytes);
    attn_tokenizer_stream *stream = attn_tokenizer_stream_begin(t);
    if (!stream) exit(1);
    printf(parts ? "" : "\t");
    if (decoded) put_hex(decoded, bytes);
    if (parts) printf(decoded ? "\t" : "none\t");
    for (int i = 0; i <= count; i++) {
        const char *text;
        const int n = i < count ? attn_tokenizer_stream_feed(stream, ids[i], &text)
                                : attn_tokenizer_stream_finish(stream, &text);
        if (n < 0 && decoded) exit(3);
        if (n < 0) break;
        if (decoded && (at + (size_t)n > bytes || memcmp(decoded + at, text, (size_t)n) != 0)) exit(3);
        at += (size_t)n;
        if (parts) put_hex(text, (size_t)n), printf(",");
    }
    if (decoded && at != bytes) exit(3);
    printf("\n");
    attn_tokenizer_stream_free(stream);
    free(decoded);
}

static void show_around(const attn_tokenizer *t) {
    int n = 0, m = 0;
    const int32_t *before = attn_tokenizer_before(t, &n), *after = attn_tokenizer_after(t, &m);
    for (int i = 0; i < n; i++) printf(i ? " %d" : "%d", (int)before[i]);
    printf("\t");
    for (int i = 0; i < m; i++) printf(i ? " %d" : "%d", (int)after[i]);
    printf("\n");
}

static void show(const attn_tokenizer *t, const char *text, size_t size, int32_t *ids, int room) {
    int count = attn_tokenizer_encode(t, text, size, true, ids, room);
    if (count < 0) {
        printf("%s\t\n", attn_tokenizer_error_text(count));
        return;
    }
    for (int i = 0; i < count; i++) printf(i ? " %d" : "%d", (int)ids[i]);
    show_text(t, ids, count, false);
}

static char *read_text(size_t *bytes) {
    uint32_t size;
    if (fread(&size, 1, sizeof size, stdin) != sizeof size || size > MOST_BYTES) return NULL;
    char *text = malloc((size_t)size + !size);
    if (!text || fread(text, 1, size, stdin) != size) exit(1);
    *bytes = size;
    return text;
}

static void show_lists(const attn_tokenizer *t) {
    size_t bytes = 0;
    for (char *list; (list = read_text(&bytes)); free(list)) {
        int32_t *ids = malloc(bytes + 1);
        if (!ids) exit(1);
        memcpy(ids, list, bytes);
        show_text(t, ids, (int)(bytes / sizeof *ids), true);
        free(ids);
    }
}

static void show_alone(const attn_tokenizer *t, int capacity) {
    size_t size = 0;
    for (char *text; (text = read_text(&size));) {
        int32_t *ids = malloc((size_t)capacity * sizeof *ids);
        if (!ids) exit(1);
        int count = attn_tokenizer_encode(t, text, size, true, ids, capacity);
        if (count < 0) printf("%s", attn_tokenizer_error_text(count));
        for (int i = 0; i < count; i++) printf(i ? " %d" : "%d", (int)ids[i]);
        printf("\n");
        free(text);
        free(ids);
    }
}

static void show_pairs(const attn_tokenizer *t, int capacity) {
    size_t n = 0, m = 0;
    for (char *first; (first = read_text(&n));) {
        char *second = read_text(&m);
        int32_t *ids = malloc(2 * (size_t)capacity * sizeof *ids), *segments = ids + capacity;
        if (!second || !ids) exit(1);
        int count = attn_tokenizer_encode_pair(t, first, n, second, m, ids, segments, capacity);
        if (count < 0) printf("%s", attn_tokenizer_error_text(count));
        for (int i = 0; i < count; i++) printf(i ? " %d" : "%d", (int)ids[i]);
        printf("\t");
        for (int i = 0; i < count; i++) printf(i ? " %d" : "%d", (int)segments[i]);
        printf("\n");
        free(first);
        free(second);
        free(ids);
    }
}

int main(int argc, char **argv) {
    char why[256];
    const bool alone = argc == 5 && strcmp(argv[4], "alone") == 0, fine = alone || (argc >= 2 && argc <= 4);
    const unsigned rules = argc > 3 ? (unsigned)atoi(argv[3]) : 0;
    attn_tokenizer *t = fine ? attn_tokenizer_open_with(argv[1], rules, why, sizeof why) : NULL;
    if (!t)
        return fprintf(stderr, "encode: %s\n", fine ? why : "usage: encode TOKENIZER [ids | around | CAPACITY [RULES "
                                                            "[alone]]]"), 1;
    if (argc == 3 && strcmp(argv[2], "ids") == 0) show_lists(t);
    else if (argc == 3 && strcmp(argv[2], "around") == 0) show_around(t);
    else if (alone) show_alone(t, atoi(argv[2]));
    else if (argc > 2) show_pairs(t, atoi(argv[2]));
    uint32_t size;
    while (fread(&size, 1, sizeof size, stdin) == sizeof size) {
        if (size > MOST_BYTES) return fprintf(stderr, "encode: a text of %lu bytes\n", (unsigned long)size), 1;
        int room = 4 * (int)size + 64;
        char *text = malloc((size_t)size + 1); /* of just that size where it is not empty, for sanitizers */
        int32_t *ids = malloc((size_t)room * sizeof *ids);
        if (!text || !ids || fread(text, 1, size, stdin) != size) return fputs("encode: short input\n", stderr), 1;
        show(t, text, size, ids, room);
        free(text);
        free(ids);
    }
    attn_tokenizer_free(t);
    return 0;
}
