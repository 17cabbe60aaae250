/* decode.c: turns ids into text. The names of the tokens pass through the decoders of tokenizer.json, each of which
 * rewrites the list of names. */
#include <stdlib.h>
#include <string.h>

#include "attn_tokenizer_internal.h"

/* Appends the pieces of `from` to `to`, one by one or joined. */
typedef int Rewrite(const Decoder *d, const Pieces *from, Pieces *to);

static const char *text_of(const Pieces *pieces, size_t i) {
    return pieces->list[i].size ? pieces->text.data + pieces->list[i].begin : "";
}

static void end_piece(Pieces *to, size_t begin) { attn_put_piece(to, (Piece){begin, to->text.size - begin, false}); }

static void put_byte(Buffer *to, int byte) {
    char c = (char)byte;
    attn_put_bytes(to, &c, 1);
}

/* Turns GPT-2's characters back into bytes. A token with any other character is copied as it is. */
static int decode_bytes(const Decoder *d, const Pieces *from, Pieces *to) {
    (void)d;
    Buffer bytes = {0};
    for (size_t i = 0; i < from->count; i++) {
        const char *text = text_of(from, i);
        size_t size = from->list[i].size, start = bytes.size;
        bool all = true;
        for (size_t at = 0, step; at < size && all; at += step) {
            int byte = attn_byte_of_char(attn_char_at(text + at, size - at, &step));
            all = byte >= 0;
            if (all) put_byte(&bytes, byte);
        }
        if (all || bytes.failed) continue;
        bytes.size = start;
        attn_put_bytes(&bytes, text, size);
    }
    if (bytes.failed) to->text.failed = true;
    attn_put_valid(&to->text, bytes.data, bytes.size);
    end_piece(to, 0);
    attn_buffer_free(&bytes);
    return 0;
}

/* 0x41 for "<0x41>"; -1 for a text of another form. */
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

/* Appends a run of bytes as text if the whole run is UTF-8, otherwise one U+FFFD for each byte. */
static void end_bytes(Buffer *bytes, Pieces *to) {
    if (bytes->size == 0) return;
    size_t begin = to->text.size;
    bool valid = attn_is_utf8(bytes->data, bytes->size);
    if (valid) attn_put_bytes(&to->text, bytes->data, bytes->size);
    else
        for (size_t i = 0; i < bytes->size; i++) attn_put_char(&to->text, 0xfffd);
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
        attn_put_bytes(&to->text, text_of(from, i), from->list[i].size);
        end_piece(to, begin);
    }
    end_bytes(&bytes, to);
    if (bytes.failed) to->text.failed = true;
    attn_buffer_free(&bytes);
    return 0;
}

static int decode_fuse(const Decoder *d, const Pieces *from, Pieces *to) {
    (void)d;
    for (size_t i = 0; i < from->count; i++) attn_put_bytes(&to->text, text_of(from, i), from->list[i].size);
    end_piece(to, 0);
    return 0;
}

/* Appends the text with each `from` replaced by `by`. */
static void put_replaced(Buffer *to, const char *text, size_t size, const char *from, const char *by) {
    size_t length = strlen(from);
    for (size_t at = 0; at < size;) {
        if (size - at >= length && memcmp(text + at, from, length) == 0) {
            attn_put_bytes(to, by, strlen(by));
            at += length;
        } else attn_put_bytes(to, text + at++, 1);
    }
}

/* Joins punctuation and contractions to the words before them, as the cleanup of `tokenizers` does for English. */
static void put_cleaned(Buffer *to, const char *text, size_t size) {
    static const char *const RULES[][2] = {{" .", "."},   {" ?", "?"},     {" !", "!"},   {" ,", ","},
                                           {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"}, {" do not", " don't"},
                                           {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    Buffer now = {0}, next = {0};
    attn_put_bytes(&now, text, size);
    for (size_t i = 0; i < sizeof RULES / sizeof *RULES && now.size; i++) {
        next.size = 0;
        put_replaced(&next, now.data, now.size, RULES[i][0], RULES[i][1]);
        Buffer other = now;
        now = next;
        next = other;
    }
    attn_put_bytes(to, now.data, now.size);
    if (now.failed || next.failed) to->failed = true;
    attn_buffer_free(&now);
    attn_buffer_free(&next);
}

static int decode_wordpiece(const Decoder *d, const Pieces *from, Pieces *to) {
    Buffer word = {0};
    for (size_t i = 0; i < from->count; i++) {
        const char *text = text_of(from, i);
        size_t size = from->list[i].size, begin = to->text.size;
        bool goes_on = i > 0 && size >= d->text.size && memcmp(text, d->text.data, d->text.size) == 0;
        word.size = 0;
        if (i > 0 && !goes_on) attn_put_bytes(&word, " ", 1);
        attn_put_bytes(&word, text + (goes_on ? d->text.size : 0), size - (goes_on ? d->text.size : 0));
        if (d->cleanup) put_cleaned(&to->text, word.data, word.size);
        else attn_put_bytes(&to->text, word.data, word.size);
        end_piece(to, begin);
    }
    if (word.failed) to->text.failed = true;
    attn_buffer_free(&word);
    return 0;
}

static int decode_metaspace(const Decoder *d, const Pieces *from, Pieces *to) {
    for (size_t i = 0; i < from->count; i++) {
        const char *text = text_of(from, i);
        size_t begin = to->text.size;
        for (size_t at = 0, step; at < from->list[i].size; at += step) {
            int32_t c = attn_char_at(text + at, from->list[i].size - at, &step);
            if (c != d->character) attn_put_bytes(&to->text, text + at, step);
            else if (i > 0 || d->prepend == PREPEND_NEVER) attn_put_bytes(&to->text, " ", 1);
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
        attn_put_char(&c, d->character);
        const char *text = text_of(from, i);
        size_t begin = 0, end = from->list[i].size, start = to->text.size;
        for (size_t n = 0; n < d->start && stands_at(text, begin, end, &c); n++) begin += c.size;
        for (size_t n = 0; n < d->stop && end - begin >= c.size && stands_at(text, end - c.size, end, &c); n++)
            end -= c.size;
        attn_put_bytes(&to->text, text + begin, end - begin);
        end_piece(to, start);
        if (c.failed) to->text.failed = true;
        attn_buffer_free(&c);
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
        attn_put_bytes(&word, text_of(from, i), from->list[i].size);
        if (word.size) status = attn_normalize(&n, 1, &word, &scratch);
        attn_put_bytes(&to->text, word.data, word.size);
        end_piece(to, begin);
    }
    if (word.failed) to->text.failed = true;
    attn_buffer_free(&word);
    attn_buffer_free(&scratch);
    return status;
}

/* Replaces the suffix that marks the end of a word by a space, and removes it at the end of the text. */
static int decode_suffix(const Decoder *d, const Pieces *from, Pieces *to) {
    for (size_t i = 0; i < from->count; i++) {
        const char *by = i + 1 == from->count ? "" : " ";
        size_t begin = to->text.size;
        if (d->text.size) put_replaced(&to->text, text_of(from, i), from->list[i].size, d->text.data, by);
        else attn_put_bytes(&to->text, text_of(from, i), from->list[i].size);
        end_piece(to, begin);
    }
    return 0;
}

static Rewrite *const REWRITES[] = {
    [DECODE_BYTES] = decode_bytes, [DECODE_WORDPIECE] = decode_wordpiece, [DECODE_METASPACE] = decode_metaspace,
    [DECODE_BYTE_FALLBACK] = decode_byte_fallback, [DECODE_FUSE] = decode_fuse, [DECODE_STRIP] = decode_strip,
    [DECODE_REPLACE] = decode_replace, [DECODE_SUFFIX] = decode_suffix,
};

/* What an id is decoded to before the decoders, or NULL. */
static const char *name_of(const attn_tokenizer *t, int32_t id, size_t *size) {
    const int32_t index = id >= 0 && id <= t->most_added_id ? t->added_of_id[id] : -1;
    if (index < 0) return attn_vocabulary_text(&t->model.vocabulary, id, size);
    *size = t->added[index].shown_size;
    return *size ? t->shown.data + t->added[index].shown : "";
}

/* Appends the names of the ids that are not special. */
static void put_names(const attn_tokenizer *t, const int32_t *ids, int count, Pieces *to) {
    for (int i = 0; i < count; i++) {
        size_t size = 0, begin = to->text.size;
        const char *name = name_of(t, ids[i], &size);
        /* by name, not by id, as `tokenizers` does */
        if (!name || attn_vocabulary_find(&t->special_names, name, size) >= 0) continue;
        attn_put_bytes(&to->text, name, size);
        end_piece(to, begin);
    }
}

char *attn_tokenizer_decode(const attn_tokenizer *t, const int32_t *ids, int count, size_t *bytes) {
    if (!t || (!ids && count > 0) || !bytes) return NULL;
    Pieces pieces = {0}, other = {0};
    put_names(t, ids, count, &pieces);
    bool failed = false;
    for (size_t i = 0; i < t->n_decoders && !failed && !pieces.text.failed; i++) {
        attn_pieces_clear(&other);
        failed = REWRITES[t->decoders[i].kind](&t->decoders[i], &pieces, &other) != 0;
        attn_pieces_swap(&pieces, &other);
    }
    Buffer text = {0};
    for (size_t i = 0; i < pieces.count && !pieces.text.failed; i++) {
        /* without a decoder, names are separated by spaces */
        if (i > 0 && t->n_decoders == 0) attn_put_bytes(&text, " ", 1);
        attn_put_bytes(&text, text_of(&pieces, i), pieces.list[i].size);
    }
    attn_put_bytes(&text, "", 1); /* gives an empty text a buffer too */
    failed |= pieces.text.failed || text.failed;
    attn_pieces_free(&pieces);
    attn_pieces_free(&other);
    if (failed) {
        attn_buffer_free(&text);
        return NULL;
    }
    *bytes = text.size - 1;
    return text.data;
}
