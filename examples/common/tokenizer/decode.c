/* decode.c: ids to text: the names of the tokens, through the decoders of tokenizer.json, each of which rewrites the
 * list of them. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* The pieces of `from` go to `to`, one by one or joined. */
typedef int Rewrite(const Decoder *d, const Pieces *from, Pieces *to);

static const char *text_of(const Pieces *pieces, size_t i) {
    return pieces->list[i].size ? pieces->text.data + pieces->list[i].begin : "";
}

static void end_piece(Pieces *to, size_t begin) { put_piece(to, (Piece){begin, to->text.size - begin, false}); }

static void put_byte(Buffer *to, int byte) {
    char c = (char)byte;
    put_bytes(to, &c, 1);
}

/* Back to bytes; a token with another character is text as it is. */
static int decode_bytes(const Decoder *d, const Pieces *from, Pieces *to) {
    (void)d;
    Buffer bytes = {0};
    for (size_t i = 0; i < from->count; i++) {
        const char *text = text_of(from, i);
        size_t size = from->list[i].size, start = bytes.size;
        bool all = true;
        for (size_t at = 0, step; at < size && all; at += step) {
            int byte = byte_of_char(char_at(text + at, size - at, &step));
            all = byte >= 0;
            if (all) put_byte(&bytes, byte);
        }
        if (all || bytes.failed) continue;
        bytes.size = start;
        put_bytes(&bytes, text, size);
    }
    if (bytes.failed) to->text.failed = true;
    put_valid(&to->text, bytes.data, bytes.size);
    end_piece(to, 0);
    buffer_free(&bytes);
    return 0;
}

/* "<0x41>": 0x41, otherwise -1. */
static int byte_token(const char *text, size_t size) {
    static const char DIGITS[] = "0123456789ABCDEFabcdef";
    if (size != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>') return -1;
    int value = 0;
    for (int i = 3; i < 5; i++) {
        const char *digit = text[i] ? strchr(DIGITS, text[i]) : NULL;
        if (!digit) return -1;
        long place = digit - DIGITS;
        value = value * 16 + (int)(place < 16 ? place : place - 6);
    }
    return value;
}

/* A run of bytes is text if all of it is UTF-8, and one U+FFFD a byte if not. */
static void end_bytes(Buffer *bytes, Pieces *to) {
    if (bytes->size == 0) return;
    size_t begin = to->text.size;
    bool valid = is_utf8(bytes->data, bytes->size);
    if (valid) put_bytes(&to->text, bytes->data, bytes->size);
    else
        for (size_t i = 0; i < bytes->size; i++) put_char(&to->text, 0xfffd);
    end_piece(to, begin);
    bytes->size = 0;
}

static int decode_byte_fallback(const Decoder *d, const Pieces *from, Pieces *to) {
    (void)d;
    Buffer bytes = {0};
    for (size_t i = 0; i < from->count; i++) {
        int byte = byte_token(text_of(from, i), from->list[i].size);
        if (byte >= 0) {
            put_byte(&bytes, byte);
            continue;
        }
        end_bytes(&bytes, to);
        size_t begin = to->text.size;
        put_bytes(&to->text, text_of(from, i), from->list[i].size);
        end_piece(to, begin);
    }
    end_bytes(&bytes, to);
    if (bytes.failed) to->text.failed = true;
    buffer_free(&bytes);
    return 0;
}

static int decode_fuse(const Decoder *d, const Pieces *from, Pieces *to) {
    (void)d;
    for (size_t i = 0; i < from->count; i++) put_bytes(&to->text, text_of(from, i), from->list[i].size);
    end_piece(to, 0);
    return 0;
}

/* Appends text with each `from` replaced by `by`. */
static void put_replaced(Buffer *to, const char *text, size_t size, const char *from, const char *by) {
    size_t length = strlen(from);
    for (size_t at = 0; at < size;) {
        if (size - at >= length && memcmp(text + at, from, length) == 0) {
            put_bytes(to, by, strlen(by));
            at += length;
        } else put_bytes(to, text + at++, 1);
    }
}

/* English as people write it, from words that stand apart. */
static void put_cleaned(Buffer *to, const char *text, size_t size) {
    static const char *const RULES[][2] = {{" .", "."},   {" ?", "?"},     {" !", "!"},   {" ,", ","},
                                           {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"}, {" do not", " don't"},
                                           {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    Buffer now = {0}, next = {0};
    put_bytes(&now, text, size);
    for (size_t i = 0; i < sizeof RULES / sizeof *RULES && now.size; i++) {
        next.size = 0;
        put_replaced(&next, now.data, now.size, RULES[i][0], RULES[i][1]);
        Buffer other = now;
        now = next;
        next = other;
    }
    put_bytes(to, now.data, now.size);
    if (now.failed || next.failed) to->failed = true;
    buffer_free(&now);
    buffer_free(&next);
}

static int decode_wordpiece(const Decoder *d, const Pieces *from, Pieces *to) {
    Buffer word = {0};
    for (size_t i = 0; i < from->count; i++) {
        const char *text = text_of(from, i);
        size_t size = from->list[i].size, begin = to->text.size;
        bool goes_on = i > 0 && size >= d->text.size && memcmp(text, d->text.data, d->text.size) == 0;
        word.size = 0;
        if (i > 0 && !goes_on) put_bytes(&word, " ", 1);
        put_bytes(&word, text + (goes_on ? d->text.size : 0), size - (goes_on ? d->text.size : 0));
        if (d->cleanup) put_cleaned(&to->text, word.data, word.size);
        else put_bytes(&to->text, word.data, word.size);
        end_piece(to, begin);
    }
    if (word.failed) to->text.failed = true;
    buffer_free(&word);
    return 0;
}

static int decode_metaspace(const Decoder *d, const Pieces *from, Pieces *to) {
    for (size_t i = 0; i < from->count; i++) {
        const char *text = text_of(from, i);
        size_t begin = to->text.size;
        for (size_t at = 0, step; at < from->list[i].size; at += step) {
            int32_t c = char_at(text + at, from->list[i].size - at, &step);
            if (c != d->character) put_bytes(&to->text, text + at, step);
            else if (i > 0 || d->prepend == PREPEND_NEVER) put_bytes(&to->text, " ", 1);
        }
        end_piece(to, begin);
    }
    return 0;
}

static bool stands_at(const char *text, size_t begin, size_t end, const Buffer *c) {
    return begin <= end && end - begin >= c->size && memcmp(text + begin, c->data, c->size) == 0;
}

static int decode_strip(const Decoder *d, const Pieces *from, Pieces *to) {
    for (size_t i = 0; i < from->count; i++) {
        Buffer c = {0};
        put_char(&c, d->character);
        const char *text = text_of(from, i);
        size_t begin = 0, end = from->list[i].size, start = to->text.size;
        for (size_t n = 0; n < d->start && stands_at(text, begin, end, &c); n++) begin += c.size;
        for (size_t n = 0; n < d->stop && end >= c.size && stands_at(text, end - c.size, end, &c); n++) end -= c.size;
        put_bytes(&to->text, text + begin, end - begin);
        end_piece(to, start);
        if (c.failed) to->text.failed = true;
        buffer_free(&c);
    }
    return 0;
}

static int decode_replace(const Decoder *d, const Pieces *from, Pieces *to) {
    Normalizer n = {.kind = NORMALIZE_REPLACE, .pattern = d->pattern, .content = d->text};
    Buffer word = {0}, scratch = {0};
    int status = 0;
    for (size_t i = 0; i < from->count && !status; i++) {
        size_t begin = to->text.size;
        word.size = 0;
        put_bytes(&word, text_of(from, i), from->list[i].size);
        if (word.size) status = normalize(&n, 1, &word, &scratch);
        put_bytes(&to->text, word.data, word.size);
        end_piece(to, begin);
    }
    if (word.failed) to->text.failed = true;
    buffer_free(&word);
    buffer_free(&scratch);
    return status;
}

/* The mark at a word's end becomes a space, at the text's end nothing. */
static int decode_suffix(const Decoder *d, const Pieces *from, Pieces *to) {
    for (size_t i = 0; i < from->count; i++) {
        const char *by = i + 1 == from->count ? "" : " ";
        size_t begin = to->text.size;
        if (d->text.size) put_replaced(&to->text, text_of(from, i), from->list[i].size, d->text.data, by);
        else put_bytes(&to->text, text_of(from, i), from->list[i].size);
        end_piece(to, begin);
    }
    return 0;
}

static Rewrite *const REWRITES[] = {
    [DECODE_BYTES] = decode_bytes, [DECODE_WORDPIECE] = decode_wordpiece, [DECODE_METASPACE] = decode_metaspace,
    [DECODE_BYTE_FALLBACK] = decode_byte_fallback, [DECODE_FUSE] = decode_fuse, [DECODE_STRIP] = decode_strip,
    [DECODE_REPLACE] = decode_replace, [DECODE_SUFFIX] = decode_suffix,
};

/* The names of the ids that are not special. */
static void put_names(const tokenizer *t, const int32_t *ids, int count, Pieces *to) {
    for (int i = 0; i < count; i++) {
        size_t size = 0, begin = to->text.size;
        const char *name = vocabulary_text(&t->added_names, ids[i], &size);
        if (!name) name = vocabulary_text(&t->model.vocabulary, ids[i], &size);
        if (!name || vocabulary_find(&t->special_names, name, size) >= 0) continue; /* by name, as in `tokenizers` */
        put_bytes(&to->text, name, size);
        end_piece(to, begin);
    }
}

char *tokenizer_decode(const tokenizer *t, const int32_t *ids, int count, size_t *bytes) {
    if (!t || (!ids && count > 0) || !bytes) return NULL;
    Pieces pieces = {0}, other = {0};
    put_names(t, ids, count, &pieces);
    bool failed = false;
    for (size_t i = 0; i < t->n_decoders && !failed && !pieces.text.failed; i++) {
        pieces_clear(&other);
        failed = REWRITES[t->decoders[i].kind](&t->decoders[i], &pieces, &other) != 0;
        pieces_swap(&pieces, &other);
    }
    Buffer text = {0};
    for (size_t i = 0; i < pieces.count && !pieces.text.failed; i++) {
        if (i > 0 && t->n_decoders == 0) put_bytes(&text, " ", 1); /* without a decoder: the names, apart */
        put_bytes(&text, text_of(&pieces, i), pieces.list[i].size);
    }
    put_bytes(&text, "", 1); /* so that an empty text has a buffer */
    failed |= pieces.text.failed || text.failed;
    pieces_free(&pieces);
    pieces_free(&other);
    if (failed) {
        buffer_free(&text);
        return NULL;
    }
    *bytes = text.size - 1;
    return text.data;
}
