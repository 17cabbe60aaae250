/* split.c: the pre-tokenizers of tokenizer.json, each of which splits every piece into smaller ones, or rewrites it. */
#include <string.h>

#include "attn_tokenizer_internal.h"

/* Splits one piece into the matches of a pattern and the parts between them. */
typedef struct {
    const Splitter *how;
    const char *text; /* the text of the piece */
    size_t size;
    Piece from;
    Pieces *to;
    Limits *limits;
    size_t begin;  /* begin of the part that may still grow */
    size_t end;    /* end of the text that was processed */
    bool open;     /* whether there is a part that may grow */
    bool previous; /* whether the last part was a match */
} Cut;

static void put_part(Cut *cut, size_t begin, size_t end) {
    if (begin == end) return;
    size_t first = cut->from.first > begin ? cut->from.first - begin : 0;
    attn_put_piece(cut->to, (Piece){cut->to->text.size, end - begin, first});
    attn_put_bytes(&cut->to->text, cut->text + begin, end - begin);
}

static void close_part(Cut *cut) {
    if (cut->open) put_part(cut, cut->begin, cut->end);
    cut->open = false;
}

/* Adds the next part of the text. A part that may join its neighbour stays open until the neighbour is known. */
static void part(Cut *cut, size_t begin, size_t end, bool match) {
    match ^= cut->how->invert;
    bool joins = false;
    switch (cut->how->behavior) {
    case REMOVED: /* removed parts produce no piece */
        if (!match) put_part(cut, begin, end);
        return;
    case ISOLATED: put_part(cut, begin, end); return;
    case CONTIGUOUS: joins = match == cut->previous; break;
    case MERGED_WITH_PREVIOUS: joins = match && !cut->previous; break;
    case MERGED_WITH_NEXT: joins = !match && cut->previous; break; /* a match joins only the part directly behind it */
    }
    if (!(joins && cut->open)) {
        close_part(cut);
        cut->begin = begin;
    }
    cut->open = true;
    cut->end = end;
    cut->previous = match;
}

static int cut_by_pattern(Cut *cut, const Pattern *pattern) {
    Matches matches = {.text = cut->text, .size = cut->size};
    size_t at = 0;
    int found;
    while ((found = attn_next_match(pattern, &matches, cut->limits)) > 0) {
        if (matches.begin > at) part(cut, at, matches.begin, false);
        part(cut, matches.begin, matches.end, true); /* also where it is empty: what may join depends on it */
        at = matches.end;
    }
    if (found < 0) return found;
    if (at < cut->size) part(cut, at, cut->size, false);
    return 0;
}

static bool splits_at(const Splitter *how, int32_t c) {
    switch (how->kind) {
    case SPLIT_SPACE: return attn_is_space(c);
    case SPLIT_PUNCTUATION: return attn_is_punctuation(c);
    case SPLIT_DIGITS: return attn_is_numeric(c);
    default: return c == how->character;
    }
}

/* Every character that splits is a separate match. */
static void cut_by_chars(Cut *cut) {
    size_t begin = 0;
    for (size_t at = 0, step; at < cut->size; at += step) {
        if (!splits_at(cut->how, attn_char_at(cut->text + at, cut->size - at, &step))) continue;
        if (at > begin) part(cut, begin, at, false);
        part(cut, at, at + step, true);
        begin = at + step;
    }
    if (begin < cut->size) part(cut, begin, cut->size, false);
}

/* Runs of one class are pieces; class 0, white space, is removed. */
static int word_class(int32_t c) { return attn_is_space(c) ? 0 : attn_is_word(c) ? 1 : 2; }

static void cut_words(Cut *cut) {
    size_t begin = 0;
    int previous = 0;
    for (size_t at = 0, step; at < cut->size; at += step) {
        int now = word_class(attn_char_at(cut->text + at, cut->size - at, &step));
        if (now == previous) continue;
        if (previous) put_part(cut, begin, at);
        begin = at;
        previous = now;
    }
    if (previous) put_part(cut, begin, cut->size);
}

/* ------------------------------------------------------------------------------------- rewriting pieces */

typedef struct {
    Pieces words;
    Buffer rewritten;
} Scratch;

/* Replaces spaces by a visible character, puts one in front of the text, and begins a piece at each. */
static int metaspace(const Splitter *how, const char *text, Piece piece, Pieces *to, Buffer *rewritten) {
    rewritten->size = 0;
    size_t step;
    bool begins = text[0] == ' ' || attn_char_at(text, piece.size, &step) == how->character;
    if (!begins && (how->prepend == PREPEND_ALWAYS || (how->prepend == PREPEND_FIRST && piece.first)))
        attn_put_char(rewritten, how->character);
    for (size_t i = 0; i < piece.size; i++) {
        if (text[i] == ' ') attn_put_char(rewritten, how->character);
        else attn_put_bytes(rewritten, text + i, 1);
    }
    if (rewritten->failed) return ATTN_TOKENIZER_NO_MEMORY;
    Cut cut = {.how = how, .text = rewritten->data, .size = rewritten->size, .from = piece, .to = to};
    if (how->splits) cut_by_chars(&cut);
    else put_part(&cut, 0, rewritten->size);
    close_part(&cut);
    return 0;
}

static void put_byte_chars(Buffer *to, const char *text, size_t size) {
    for (size_t i = 0; i < size; i++) {
        const char *c = attn_byte_chars[(unsigned char)text[i]];
        attn_put_bytes(to, c, strlen(c));
    }
}

/* Splits as GPT-2 does, into words with the space before them, and replaces bytes by visible characters. */
static int bytes(const Splitter *how, const char *text, Piece piece, Pieces *to, Scratch *scratch, Limits *limits) {
    Cut cut = {.how = how, .text = text, .size = piece.size, .from = piece, .to = &scratch->words, .limits = limits};
    if (how->add_space && text[0] != ' ') {
        scratch->rewritten.size = 0;
        attn_put_char(&scratch->rewritten, ' ');
        attn_put_bytes(&scratch->rewritten, text, piece.size);
        if (scratch->rewritten.failed) return ATTN_TOKENIZER_NO_MEMORY;
        cut.text = scratch->rewritten.data;
        cut.size = scratch->rewritten.size;
    }
    attn_pieces_clear(&scratch->words);
    int status = 0;
    if (how->splits) status = cut_by_pattern(&cut, &how->pattern);
    else put_part(&cut, 0, cut.size);
    if (scratch->words.text.failed) return ATTN_TOKENIZER_NO_MEMORY;
    for (size_t w = 0; w < scratch->words.count && !status; w++) {
        Piece word = scratch->words.list[w];
        size_t begin = to->text.size;
        put_byte_chars(&to->text, scratch->words.text.data + word.begin, word.size);
        attn_put_piece(to, (Piece){begin, to->text.size - begin, word.first});
    }
    return status;
}

static int split_one(const Splitter *how, const char *text, Piece piece, Pieces *to, Scratch *scratch,
                     Limits *limits) {
    if (piece.size == 0) return 0;
    if (how->kind == SPLIT_BYTES) return bytes(how, text, piece, to, scratch, limits);
    if (how->kind == SPLIT_METASPACE) return metaspace(how, text, piece, to, &scratch->rewritten);
    Cut cut = {.how = how, .text = text, .size = piece.size, .from = piece, .to = to, .limits = limits};
    int status = 0;
    if (how->kind == SPLIT_PATTERN) status = cut_by_pattern(&cut, &how->pattern);
    else if (how->kind == SPLIT_WORDS) cut_words(&cut);
    else cut_by_chars(&cut);
    close_part(&cut);
    return status;
}

int attn_split(const Splitter *list, size_t count, Pieces *pieces, Pieces *other, Limits *limits) {
    Scratch scratch = {0};
    int status = 0;
    for (size_t i = 0; i < count && !status; i++) {
        attn_pieces_clear(other);
        for (size_t p = 0; p < pieces->count && !status; p++) {
            Piece piece = pieces->list[p];
            status = split_one(&list[i], pieces->text.data + piece.begin, piece, other, &scratch, limits);
            if (!status && other->text.size > limits->most) status = ATTN_TOKENIZER_LONG;
        }
        if (!status && other->text.failed) status = ATTN_TOKENIZER_NO_MEMORY;
        attn_pieces_swap(pieces, other);
    }
    attn_pieces_free(&scratch.words);
    attn_buffer_free(&scratch.rewritten);
    return status;
}
