/* normalize.c: the normalizers of tokenizer.json, each of which rewrites the whole text. */
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "attn_tokenizer_internal.h"

static int result_of(const Buffer *text) { return text->failed ? ATTN_TOKENIZER_NO_MEMORY : 0; }

/* ------------------------------------------------------------------------------------- Unicode's normal forms */

/* `tokenizers` uses Unicode 12.0 here, which does not normalize these characters. */
static bool is_too_young(int32_t c) {
    return c == 0x32ff || (c >= 0xa7f2 && c <= 0xa7f4) || c == 0xab69 || (c >= 0x10781 && c <= 0x107ba) ||
           (c >= 0x11930 && c <= 0x11938) || c == 0x1f16c || (c >= 0x1fbf0 && c <= 0x1fbf9);
}

static int put_form(Buffer *to, const char *text, size_t size, utf8proc_option_t options) {
    if (size == 0) return 0;
    utf8proc_uint8_t *mapped = NULL;
    utf8proc_ssize_t bytes = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)size, &mapped, options);
    if (bytes < 0) return ATTN_TOKENIZER_NO_MEMORY; /* the text is valid UTF-8 */
    attn_put_bytes(to, (const char *)mapped, (size_t)bytes);
    free(mapped);
    return result_of(to);
}

static bool is_ascii(const Buffer *text) {
    for (size_t i = 0; i < text->size; i++)
        if (text->data[i] & 0x80) return false;
    return true;
}

static int normal_form(const Buffer *from, Buffer *to, utf8proc_option_t options) {
    if (is_ascii(from)) {
        attn_put_bytes(to, from->data, from->size);
        return result_of(to);
    }
    options |= UTF8PROC_STABLE;
    size_t begin = 0;
    for (size_t at = 0, step; at < from->size; at += step) {
        if (!is_too_young(attn_char_at(from->data + at, from->size - at, &step))) continue;
        int status = put_form(to, from->data + begin, at - begin, options);
        if (status) return status;
        attn_put_bytes(to, from->data + at, step);
        begin = at + step;
    }
    return put_form(to, from->data + begin, from->size - begin, options);
}

/* ------------------------------------------------------------------------------------- character by character */

typedef void PutChar(Buffer *to, int32_t c);

static int each_char(const Buffer *from, Buffer *to, PutChar *put) {
    for (size_t at = 0, step; at < from->size; at += step)
        put(to, attn_char_at(from->data + at, from->size - at, &step));
    return result_of(to);
}

static void put_not_mark(Buffer *to, int32_t c) {
    if (!attn_is_mark(c)) attn_put_char(to, c);
}

static void put_not_nonspacing(Buffer *to, int32_t c) {
    if (!attn_is_nonspacing_mark(c)) attn_put_char(to, c);
}

static void put_clean(Buffer *to, int32_t c) {
    if (!attn_is_bert_removed(c)) attn_put_char(to, attn_is_space(c) ? ' ' : c);
}

static void put_cjk_apart(Buffer *to, int32_t c) {
    bool apart = attn_is_cjk(c);
    if (apart) attn_put_char(to, ' ');
    attn_put_char(to, c);
    if (apart) attn_put_char(to, ' ');
}

/* The nmt rules of sentencepiece remove some characters and replace others by a space. */
static void put_nmt(Buffer *to, int32_t c) {
    bool removed = (c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f || c == 0x9f;
    bool space = c == '\t' || c == '\n' || c == '\f' || c == '\r' || c == 0x1680 || (c >= 0x200b && c <= 0x200f) ||
                 c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xfeff || c == 0xfffd;
    if (!removed) attn_put_char(to, space ? ' ' : c);
}

static int to_bytes(const Buffer *from, Buffer *to) {
    for (size_t i = 0; i < from->size; i++) {
        const char *c = attn_byte_chars[(unsigned char)from->data[i]];
        attn_put_bytes(to, c, strlen(c));
    }
    return result_of(to);
}

/* ------------------------------------------------------------------------------------- BERT */

typedef int Rewrite(const Buffer *from, Buffer *to);
static int decompose(const Buffer *from, Buffer *to) { return normal_form(from, to, UTF8PROC_DECOMPOSE); }
static int lower(const Buffer *from, Buffer *to) { return each_char(from, to, attn_put_lower); }
static int clean(const Buffer *from, Buffer *to) { return each_char(from, to, put_clean); }
static int cjk_apart(const Buffer *from, Buffer *to) { return each_char(from, to, put_cjk_apart); }
static int strip_nonspacing(const Buffer *from, Buffer *to) { return each_char(from, to, put_not_nonspacing); }

static void swap(Buffer *a, Buffer *b) {
    Buffer c = *a;
    *a = *b;
    *b = c;
}

/* BasicTokenizer of tokenization.py (Devlin et al. 2018), up to its splits. */
static int bert(const Normalizer *n, Buffer *text, Buffer *scratch) {
    Rewrite *const steps[] = {n->clean ? clean : NULL, n->chinese ? cjk_apart : NULL,
                              n->strip_accents ? decompose : NULL, n->strip_accents ? strip_nonspacing : NULL,
                              n->lower ? lower : NULL};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (!steps[i]) continue;
        scratch->size = 0;
        int status = steps[i](text, scratch);
        if (status) return status;
        swap(text, scratch);
    }
    return 0;
}

/* ------------------------------------------------------------------------------------- strip, replace, prepend */

static int strip(const Normalizer *n, const Buffer *from, Buffer *to) {
    size_t begin = 0, end = from->size, kept = 0;
    bool seen = false;
    for (size_t at = 0, step; at < from->size; at += step) {
        if (attn_is_space(attn_char_at(from->data + at, from->size - at, &step))) continue;
        if (!seen) begin = at;
        seen = true;
        kept = at + step;
    }
    if (!n->left) begin = 0;
    if (n->right) end = seen ? kept : begin;
    if (!seen && n->left) end = begin;
    attn_put_bytes(to, from->data + begin, end - begin);
    return result_of(to);
}

static int replace(const Normalizer *n, const Buffer *from, Buffer *to, Limits *limits) {
    Matches matches = {.text = from->data, .size = from->size};
    size_t at = 0;
    int found;
    while ((found = attn_next_match(&n->pattern, &matches, limits)) > 0) {
        if (to->size > limits->most) return ATTN_TOKENIZER_LONG;
        attn_put_bytes(to, from->data + at, matches.begin - at);
        attn_put_bytes(to, n->content.data, n->content.size);
        at = matches.end;
    }
    if (found < 0) return found;
    attn_put_bytes(to, from->data + at, from->size - at);
    return result_of(to);
}

/* ------------------------------------------------------------------------------------- sentencepiece's tables */

/* A unit of a double array (Aoe 1989), as the library Darts packs it. */
static bool unit_has_leaf(uint32_t unit) { return unit >> 8 & 1; }
static uint32_t unit_label(uint32_t unit) { return unit & (UINT32_C(1) << 31 | 0xff); }
static uint32_t unit_offset(uint32_t unit) { return unit >> 10 << ((unit & UINT32_C(1) << 9) >> 6); }

/* The replacement of the text's first *used bytes, or NULL. These bytes are the longest key that is a prefix of the
 * text if n->longest, as in sentencepiece, and the shortest one otherwise, as in `tokenizers`. */
static const char *precompiled_find(const Normalizer *n, const char *text, size_t size, size_t *used) {
    const char *found = NULL;
    if (n->trie_size == 0) return NULL;
    size_t node = unit_offset(n->trie[0]);
    for (size_t i = 0; i < size && text[i] && (n->longest || !found); i++) {
        node ^= (unsigned char)text[i];
        if (node >= n->trie_size || unit_label(n->trie[node]) != (unsigned char)text[i]) return found;
        uint32_t unit = n->trie[node];
        node ^= unit_offset(unit);
        if (node >= n->trie_size) return found;
        if (!unit_has_leaf(unit)) continue;
        uint32_t value = n->trie[node] & ~(UINT32_C(1) << 31);
        if (value >= n->replacements.size) return found;
        found = n->replacements.data + value;
        *used = i + 1;
    }
    return found;
}

static bool put_precompiled(const Normalizer *n, Buffer *to, const char *text, size_t size) {
    size_t used;
    const char *found = precompiled_find(n, text, size, &used);
    if (found) attn_put_bytes(to, found, strlen(found));
    return found != NULL;
}

/* Looks up what begins at each character, as sentencepiece does. */
static int precompiled_longest(const Normalizer *n, const Buffer *from, Buffer *to) {
    for (size_t at = 0, step = 0; at < from->size; at += step) {
        const char *found = precompiled_find(n, from->data + at, from->size - at, &step);
        if (!found) attn_char_at(from->data + at, from->size - at, &step);
        attn_put_bytes(to, found ? found : from->data + at, found ? strlen(found) : step);
    }
    return result_of(to);
}

/* What stands for the beginning of text[at ..], of so many bytes in *size; *used is the length of that beginning. */
static const char *next_part(const Normalizer *n, const Buffer *from, size_t at, size_t *size, size_t *used) {
    const char *text = from->data + at, *found = NULL;
    const size_t left = from->size - at;
    const bool kept = attn_longest_token(n->kept, attn_whole_range(n->kept), text, left, used) >= 0;
    if (!kept) found = precompiled_find(n, text, left, used);
    if (!kept && !found) attn_char_at(text, left, used);
    *size = found ? strlen(found) : *used;
    return found ? found : text;
}

/* sentencepiece's own normalizer (google/sentencepiece, src/normalizer.cc). */
static int to_pieces(const Normalizer *n, const Buffer *from, Buffer *to, const Limits *limits) {
    const char *space = n->escape ? "\xe2\x96\x81" : " ";
    const size_t width = strlen(space);
    size_t at = 0, size, used;
    for (; n->tidy && at < from->size; at += used) {
        const char *part = next_part(n, from, at, &size, &used);
        if (size != 1 || *part != ' ') break;
    }
    if (at == from->size) return 0;
    if (n->prefix) attn_put_bytes(to, space, width);
    bool spaced = n->tidy;
    for (; at < from->size; at += used) {
        const char *part = next_part(n, from, at, &size, &used);
        for (; spaced && size && *part == ' '; part++) size--;
        for (size_t i = 0; i < size; i++) {
            if (part[i] == ' ') attn_put_bytes(to, space, width);
            else attn_put_bytes(to, part + i, 1);
        }
        if (size) spaced = n->tidy && part[size - 1] == ' ';
        if (to->size > limits->most) return ATTN_TOKENIZER_LONG;
    }
    while (n->tidy && to->size >= width && memcmp(to->data + to->size - width, space, width) == 0) to->size -= width;
    return result_of(to);
}

/* Looks up grapheme clusters of less than 6 bytes as a whole, and others character by character. */
static int precompiled(const Normalizer *n, const Buffer *from, Buffer *to) {
    utf8proc_int32_t state = 0;
    for (size_t begin = 0, end; begin < from->size; begin = end) {
        size_t step;
        int32_t c = attn_char_at(from->data + begin, from->size - begin, &step);
        for (end = begin + step; end < from->size; end += step) {
            int32_t next = attn_char_at(from->data + end, from->size - end, &step);
            if (utf8proc_grapheme_break_stateful(c, next, &state)) break;
            c = next;
        }
        if (end - begin < 6 && put_precompiled(n, to, from->data + begin, end - begin)) continue;
        for (size_t at = begin; at < end; at += step) {
            attn_char_at(from->data + at, end - at, &step);
            if (!put_precompiled(n, to, from->data + at, step)) attn_put_bytes(to, from->data + at, step);
        }
    }
    return result_of(to);
}

/* ------------------------------------------------------------------------------------- all normalizers */

static int rewrite(const Normalizer *n, const Buffer *from, Buffer *to, Limits *limits) {
    switch (n->kind) {
    case NORMALIZE_NFC: return normal_form(from, to, UTF8PROC_COMPOSE);
    case NORMALIZE_NFD: return decompose(from, to);
    case NORMALIZE_NFKC: return normal_form(from, to, UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
    case NORMALIZE_NFKD: return normal_form(from, to, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
    case NORMALIZE_LOWERCASE: return lower(from, to);
    case NORMALIZE_STRIP_ACCENTS: return each_char(from, to, put_not_mark);
    case NORMALIZE_NMT: return each_char(from, to, put_nmt);
    case NORMALIZE_STRIP: return strip(n, from, to);
    case NORMALIZE_REPLACE: return replace(n, from, to, limits);
    case NORMALIZE_PREPEND:
        if (from->size) attn_put_bytes(to, n->content.data, n->content.size);
        attn_put_bytes(to, from->data, from->size);
        return result_of(to);
    case NORMALIZE_PRECOMPILED: return n->longest ? precompiled_longest(n, from, to) : precompiled(n, from, to);
    case NORMALIZE_PIECES: return to_pieces(n, from, to, limits);
    case NORMALIZE_BYTES: return to_bytes(from, to);
    case NORMALIZE_BERT: break; /* bert does it */
    }
    return ATTN_TOKENIZER_BAD_CALL;
}

int attn_normalize(const Normalizer *list, size_t count, Buffer *text, Buffer *scratch, Limits *limits) {
    for (size_t i = 0; i < count; i++) {
        scratch->size = 0;
        int status = list[i].kind == NORMALIZE_BERT ? bert(&list[i], text, scratch)
                                                    : rewrite(&list[i], text, scratch, limits);
        if (status) return status;
        if (list[i].kind != NORMALIZE_BERT) swap(text, scratch);
        if (text->size > limits->most) return ATTN_TOKENIZER_LONG;
    }
    return result_of(text);
}
