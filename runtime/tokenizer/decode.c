/* decode.c: turns ids into text. The names of the tokens pass through the decoders of tokenizer.json, each of which
 * rewrites a list of pieces, at first one for each token. A decoder is a stage that gets the pieces bit by bit, and
 * hands on at once what no later token can change; so a text can be had while its tokens are still being chosen. */
#include <stdlib.h>
#include <string.h>

#include "attn_tokenizer_internal.h"

enum { BYTE_TOKEN = 6 }; /* bytes of "<0x41>" */

/* Every text that a stage gets or hands on is of whole characters. */
typedef struct {
    const Decoder *decoder;
    Buffer held;        /* of the piece that is not yet handed on */
    Buffer waiting;     /* bytes of a run, or the piece before that which is held */
    Buffer made;        /* room */
    size_t pieces;      /* that ended */
    size_t given;       /* bytes */
    size_t first, last; /* strip: characters that were removed, and that may be at the end */
    bool begun;         /* strip, byte fallback: whether some of the piece was handed on */
    bool waits;         /* suffix: whether there is a piece in `waiting` */
} Stage;

struct attn_tokenizer_stream {
    const attn_tokenizer *t;
    Stage *stages;
    Buffer text;  /* what is new */
    size_t named; /* bytes of the names so far */
    size_t names; /* their number, of a file without decoders */
    Limits limits;
    int result; /* 0, or a negative result */
};
typedef attn_tokenizer_stream Stream;

static void put_text(Stream *s, size_t to, const char *text, size_t size);
static void end_piece(Stream *s, size_t to);

static void put_held(Stream *s, size_t at) {
    put_text(s, at + 1, s->stages[at].held.data, s->stages[at].held.size);
    s->stages[at].held.size = 0;
}

/* 0x41 for "<0x41>"; -1 for a text of another form. */
static int byte_token(const char *text, size_t size) {
    static const char DIGITS[] = "0123456789ABCDEFabcdef";
    if (size != BYTE_TOKEN || memcmp(text, "<0x", 3) != 0 || text[5] != '>') return -1;
    int value = 0;
    for (int i = 3; i < 5; i++) {
        const char *digit = text[i] ? strchr(DIGITS, text[i]) : NULL;
        if (!digit) return -1;
        long place = digit - DIGITS;
        value = value * 16 + (int)(place < 16 ? place : place - 6);
    }
    return value;
}

/* ------------------------------------------------------------------------------------- bytes */

static void put_byte(Buffer *to, int byte) {
    char c = (char)byte;
    attn_put_bytes(to, &c, 1);
}

/* Hands on the first bytes of those that wait, with U+FFFD in place of what is no character. */
static void put_waiting(Stream *s, size_t at, size_t size) {
    Stage *stage = &s->stages[at];
    if (size == 0) return;
    stage->made.size = 0;
    attn_put_valid(&stage->made, stage->waiting.data, size);
    put_text(s, at + 1, stage->made.data, stage->made.size);
    stage->waiting.size -= size;
    memmove(stage->waiting.data, stage->waiting.data + size, stage->waiting.size);
}

/* Turns GPT-2's characters back into bytes. A token with any other character is copied as it is. */
static void end_bytes(Stream *s, size_t at) {
    Stage *stage = &s->stages[at];
    const char *text = stage->held.data;
    const size_t size = stage->held.size, start = stage->waiting.size;
    bool all = true;
    for (size_t i = 0, step; i < size && all; i += step) {
        int byte = attn_byte_of_char(attn_char_at(text + i, size - i, &step));
        all = byte >= 0;
        if (all) put_byte(&stage->waiting, byte);
    }
    if (!all) {
        stage->waiting.size = start;
        attn_put_bytes(&stage->waiting, text, size);
    }
    stage->held.size = 0;
    put_waiting(s, at, attn_whole_chars(stage->waiting.data, stage->waiting.size));
}

/* Hands on each character of a run, and U+FFFD for each byte that belongs to none, as sentencepiece does. */
static void put_chars(Stream *s, size_t at) {
    Stage *stage = &s->stages[at];
    for (size_t i = 0, size; i < stage->waiting.size; i += size) {
        const char *text = stage->waiting.data + i;
        const size_t left = stage->waiting.size - i;
        for (size = 1; size < 4 && size < left && !attn_is_utf8(text, size);) size++;
        const bool whole = attn_is_utf8(text, size);
        if (!whole) size = 1;
        put_text(s, at + 1, whole ? text : "\xef\xbf\xbd", whole ? size : 3);
    }
    end_piece(s, at + 1);
    stage->waiting.size = 0;
}

/* Hands on a run of bytes as one piece if the whole run is UTF-8, otherwise a piece of U+FFFD for each byte. */
static void end_run(Stream *s, size_t at) {
    Stage *stage = &s->stages[at];
    const size_t count = stage->waiting.size;
    if (count == 0) return;
    if (stage->decoder->each) {
        put_chars(s, at);
        return;
    }
    const bool valid = attn_is_utf8(stage->waiting.data, count);
    for (size_t i = 0; i < (valid ? 1 : count); i++) {
        put_text(s, at + 1, valid ? stage->waiting.data : "\xef\xbf\xbd", valid ? count : 3);
        end_piece(s, at + 1);
    }
    stage->waiting.size = 0;
}

static void text_byte_fallback(Stream *s, size_t at) {
    Stage *stage = &s->stages[at];
    if (!stage->begun && stage->held.size <= BYTE_TOKEN) return;
    if (!stage->begun) end_run(s, at);
    stage->begun = true;
    put_held(s, at);
}

static void end_byte_fallback(Stream *s, size_t at) {
    Stage *stage = &s->stages[at];
    const int byte = stage->begun ? -1 : byte_token(stage->held.data, stage->held.size);
    if (byte >= 0) {
        put_byte(&stage->waiting, byte);
        stage->held.size = 0;
        return;
    }
    if (!stage->begun) end_run(s, at);
    stage->begun = false;
    put_held(s, at);
    end_piece(s, at + 1);
}

/* ------------------------------------------------------------------------------------- words */

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

static bool begins(const char *text, size_t size, const String *with) {
    return size >= with->size && (with->size == 0 || memcmp(text, with->data, with->size) == 0);
}

static void end_wordpiece(Stream *s, size_t at) {
    Stage *stage = &s->stages[at];
    const String *prefix = &stage->decoder->text;
    const char *text = stage->held.data;
    const size_t size = stage->held.size;
    const bool inside = stage->pieces > 0, goes_on = inside && begins(text, size, prefix);
    const size_t skipped = goes_on ? prefix->size : 0;
    stage->waiting.size = stage->made.size = 0;
    if (inside && !goes_on) attn_put_bytes(&stage->waiting, " ", 1);
    attn_put_bytes(&stage->waiting, text + skipped, size - skipped);
    if (stage->decoder->cleanup) put_cleaned(&stage->made, stage->waiting.data, stage->waiting.size);
    else attn_put_bytes(&stage->made, stage->waiting.data, stage->waiting.size);
    stage->held.size = 0;
    put_text(s, at + 1, stage->made.data, stage->made.size);
    end_piece(s, at + 1);
}

static void text_metaspace(Stream *s, size_t at) {
    Stage *stage = &s->stages[at];
    const Decoder *d = stage->decoder;
    stage->made.size = 0;
    for (size_t i = 0, step; i < stage->held.size; i += step) {
        int32_t c = attn_char_at(stage->held.data + i, stage->held.size - i, &step);
        if (c != d->character) attn_put_bytes(&stage->made, stage->held.data + i, step);
        else if (stage->pieces > 0 || d->prepend == PREPEND_NEVER) attn_put_bytes(&stage->made, " ", 1);
    }
    stage->held.size = 0;
    put_text(s, at + 1, stage->made.data, stage->made.size);
}

/* Replaces the suffix that marks the end of a word by a space, and removes it at the end of the text. */
static void put_suffixed(Stream *s, size_t at, const char *by) {
    Stage *stage = &s->stages[at];
    const String *suffix = &stage->decoder->text;
    if (!stage->waits) return;
    stage->made.size = 0;
    if (suffix->size) put_replaced(&stage->made, stage->waiting.data, stage->waiting.size, suffix->data, by);
    else attn_put_bytes(&stage->made, stage->waiting.data, stage->waiting.size);
    put_text(s, at + 1, stage->made.data, stage->made.size);
    end_piece(s, at + 1);
}

static void end_suffix(Stream *s, size_t at) {
    Stage *stage = &s->stages[at];
    put_suffixed(s, at, " ");
    stage->waits = true;
    Buffer other = stage->waiting;
    stage->waiting = stage->held;
    stage->held = other;
    stage->held.size = 0;
}

/* ------------------------------------------------------------------------------------- strip, replace */

static void put_last(Stream *s, size_t at, size_t most) {
    Stage *stage = &s->stages[at];
    for (; stage->last > most; stage->last--) put_text(s, at + 1, stage->waiting.data, stage->waiting.size);
}

static void text_strip(Stream *s, size_t at) {
    Stage *stage = &s->stages[at];
    const Decoder *d = stage->decoder;
    stage->waiting.size = 0;
    attn_put_char(&stage->waiting, d->character);
    for (size_t i = 0, step; i < stage->held.size; i += step) {
        const bool one = attn_char_at(stage->held.data + i, stage->held.size - i, &step) == d->character;
        if (one && !stage->begun && stage->first < d->start) {
            stage->first++;
            continue;
        }
        stage->begun = true;
        if (one) stage->last++;
        put_last(s, at, one ? d->stop : 0);
        if (!one) put_text(s, at + 1, stage->held.data + i, step);
    }
    stage->held.size = 0;
}

static void end_strip(Stream *s, size_t at) {
    Stage *stage = &s->stages[at];
    stage->first = stage->last = 0;
    stage->begun = false;
    end_piece(s, at + 1);
}

/* Keeps what may be the beginning of the literal text that is replaced. */
static void put_literals(Stream *s, size_t at, bool ends) {
    Stage *stage = &s->stages[at];
    const Decoder *d = stage->decoder;
    const size_t literal = d->pattern.literal.size;
    size_t done = 0, begin, end;
    if (stage->held.size == 0) return;
    while (attn_pattern_find(&d->pattern, stage->held.data, stage->held.size, done, &begin, &end, &s->limits) > 0 &&
           !s->result) {
        put_text(s, at + 1, stage->held.data + done, begin - done);
        put_text(s, at + 1, d->text.data, d->text.size);
        done = end;
    }
    size_t keep = ends || !literal ? 0 : literal - 1;
    if (keep > stage->held.size - done) keep = stage->held.size - done;
    while (keep && keep < stage->held.size - done && (stage->held.data[stage->held.size - keep] & 0xc0) == 0x80) keep++;
    put_text(s, at + 1, stage->held.data + done, stage->held.size - keep - done);
    if (keep) memmove(stage->held.data, stage->held.data + stage->held.size - keep, keep);
    stage->held.size = keep;
}

static void text_replace(Stream *s, size_t at) {
    if (!s->stages[at].decoder->pattern.regex) put_literals(s, at, false);
}

static void end_replace(Stream *s, size_t at) {
    Stage *stage = &s->stages[at];
    const Decoder *d = stage->decoder;
    const Normalizer n = {.kind = NORMALIZE_REPLACE, .pattern = d->pattern, .content = d->text};
    if (!d->pattern.regex) put_literals(s, at, true);
    else if (stage->held.size) {
        const int status = attn_normalize(&n, 1, &stage->held, &stage->made, &s->limits);
        if (status && !s->result) s->result = status;
        put_held(s, at);
    }
    end_piece(s, at + 1);
}

/* ------------------------------------------------------------------------------------- stages */

static void text_fuse(Stream *s, size_t at) { put_held(s, at); }
static void end_alone(Stream *s, size_t at) { end_piece(s, at + 1); }
static void end_nothing(Stream *s, size_t at) { (void)s, (void)at; }
static void finish_bytes(Stream *s, size_t at) {
    put_waiting(s, at, s->stages[at].waiting.size);
    end_piece(s, at + 1);
}
static void finish_suffix(Stream *s, size_t at) { put_suffixed(s, at, ""); }

/* `text` is called after more of a piece is held, `end` where the piece ends, and `finish` after the last piece. */
typedef void Act(Stream *s, size_t at);
static const struct {
    Act *text, *end, *finish;
} ACTS[] = {
    [DECODE_BYTES] = {NULL, end_bytes, finish_bytes},
    [DECODE_WORDPIECE] = {NULL, end_wordpiece, NULL},
    [DECODE_METASPACE] = {text_metaspace, end_alone, NULL},
    [DECODE_BYTE_FALLBACK] = {text_byte_fallback, end_byte_fallback, end_run},
    [DECODE_FUSE] = {text_fuse, end_nothing, end_alone},
    [DECODE_STRIP] = {text_strip, end_strip, NULL},
    [DECODE_REPLACE] = {text_replace, end_replace, NULL},
    [DECODE_SUFFIX] = {NULL, end_suffix, finish_suffix},
};

/* Hands a part of a piece to a stage or, after the last stage, to the text. */
static void put_text(Stream *s, size_t to, const char *text, size_t size) {
    if (s->result || size == 0) return;
    s->stages[to].given += size;
    if (s->stages[to].given > s->limits.most) {
        s->result = ATTN_TOKENIZER_LONG;
        return;
    }
    if (to == s->t->n_decoders) {
        attn_put_bytes(&s->text, text, size);
        if (s->text.failed) s->result = ATTN_TOKENIZER_NO_MEMORY;
        return;
    }
    Stage *stage = &s->stages[to];
    attn_put_bytes(&stage->held, text, size);
    Act *act = ACTS[stage->decoder->kind].text;
    if (act) act(s, to);
}

static void end_piece(Stream *s, size_t to) {
    if (s->result || to == s->t->n_decoders) return;
    Stage *stage = &s->stages[to];
    ACTS[stage->decoder->kind].end(s, to);
    stage->pieces++;
    if (stage->held.failed || stage->waiting.failed || stage->made.failed) s->result = ATTN_TOKENIZER_NO_MEMORY;
}

/* What an id is decoded to before the decoders, or NULL. */
static const char *name_of(const attn_tokenizer *t, int32_t id, size_t *size) {
    const int32_t index = id >= 0 && id <= t->most_added_id ? t->added_of_id[id] : -1;
    if (index < 0) return attn_vocabulary_text(&t->model.vocabulary, id, size);
    *size = t->added[index].shown_size;
    return *size ? t->shown.data + t->added[index].shown : "";
}

static void feed(Stream *s, int32_t id) {
    size_t size = 0;
    const char *name = name_of(s->t, id, &size);
    /* by name, not by id, as `tokenizers` does */
    if (!name || attn_vocabulary_find(&s->t->special_names, name, size) >= 0) return;
    s->named += size + 1;
    s->limits = attn_limits_of(s->named); /* the time is the call's alone */
    if (s->t->n_decoders == 0 && s->names++) put_text(s, 0, " ", 1); /* without a decoder, spaces separate names */
    put_text(s, 0, name, size);
    end_piece(s, 0);
}

static void finish(Stream *s) {
    for (size_t i = 0; i < s->t->n_decoders && !s->result; i++) {
        Act *act = ACTS[s->t->decoders[i].kind].finish;
        if (act) act(s, i);
    }
}

static bool begin(Stream *s, const attn_tokenizer *t) {
    *s = (Stream){.t = t, .limits = attn_limits_of(0), .stages = calloc(t->n_decoders + 1, sizeof *s->stages)};
    for (size_t i = 0; s->stages && i < t->n_decoders; i++) s->stages[i].decoder = &t->decoders[i];
    return s->stages != NULL;
}

static void end(Stream *s) {
    for (size_t i = 0; s->stages && i < s->t->n_decoders; i++) {
        attn_buffer_free(&s->stages[i].held);
        attn_buffer_free(&s->stages[i].waiting);
        attn_buffer_free(&s->stages[i].made);
    }
    free(s->stages);
    attn_buffer_free(&s->text);
}

char *attn_tokenizer_decode(const attn_tokenizer *t, const int32_t *ids, int count, size_t *bytes) {
    Stream stream;
    if (!t || (!ids && count > 0) || !bytes) return NULL;
    if (!begin(&stream, t)) return NULL;
    for (int i = 0; i < count && !stream.result; i++) feed(&stream, ids[i]);
    finish(&stream);
    char *text = NULL;
    *bytes = stream.text.size;
    attn_put_bytes(&stream.text, "", 1); /* gives an empty text a buffer, too */
    if (!stream.result && !stream.text.failed) {
        text = stream.text.data;
        stream.text.data = NULL;
    }
    end(&stream);
    return text;
}

attn_tokenizer_stream *attn_tokenizer_stream_begin(const attn_tokenizer *t) {
    Stream *s = t ? malloc(sizeof *s) : NULL;
    if (!s || begin(s, t)) return s;
    free(s);
    return NULL;
}

static int told(Stream *s, const char **text) {
    if (s->text.size > INT32_MAX && !s->result) s->result = ATTN_TOKENIZER_NO_MEMORY;
    *text = s->text.size ? s->text.data : "";
    return s->result ? s->result : (int)s->text.size;
}

int attn_tokenizer_stream_feed(attn_tokenizer_stream *s, int32_t id, const char **text) {
    if (!s || !text) return ATTN_TOKENIZER_BAD_CALL;
    s->text.size = 0;
    feed(s, id);
    return told(s, text);
}

/* Keeps the memory. */
static void begin_again(Stream *s) {
    for (size_t i = 0; i <= s->t->n_decoders; i++) {
        Stage *stage = &s->stages[i];
        stage->held.size = stage->waiting.size = 0;
        stage->held.failed = stage->waiting.failed = stage->made.failed = false;
        const Stage kept = *stage;
        *stage = (Stage){.decoder = kept.decoder, .held = kept.held, .waiting = kept.waiting, .made = kept.made};
    }
    s->named = s->names = 0;
    s->limits = attn_limits_of(0);
    s->result = 0;
    s->text.failed = false;
}

int attn_tokenizer_stream_finish(attn_tokenizer_stream *s, const char **text) {
    if (!s || !text) return ATTN_TOKENIZER_BAD_CALL;
    s->text.size = 0;
    finish(s);
    const int result = told(s, text);
    begin_again(s);
    return result;
}

void attn_tokenizer_stream_free(attn_tokenizer_stream *s) {
    if (s) end(s);
    free(s);
}
