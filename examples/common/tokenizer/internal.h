/* internal.h: what the files of this folder share. A text goes through them in this order: added.c finds the special
 * tokens in it, normalize.c rewrites what is between them, split.c cuts that into words, bpe.c, unigram.c and
 * wordpiece.c make ids of each word, encode.c puts it together; decode.c goes back. files.c and json.c read files. */
#ifndef EXAMPLES_TOKENIZER_INTERNAL_H
#define EXAMPLES_TOKENIZER_INTERNAL_H

#include <oniguruma.h>

#include "tokenizer.h"

/* ------------------------------------------------------------------------------------- memory: buffer.c */

/* Bytes that grow. When memory runs out `failed` is set and stays, and what is appended is dropped: one look at the end
 * of a step is enough. Start from {0}. */
typedef struct {
    char *data;
    size_t size, capacity;
    bool failed;
} Buffer;

void put_bytes(Buffer *buffer, const char *bytes, size_t size);
void put_char(Buffer *buffer, int32_t c); /* as UTF-8 */
void buffer_free(Buffer *buffer);

/* A part of a buffer. */
typedef struct {
    size_t begin, size;
    size_t first; /* how many of its bytes come from the first character of the whole text */
} Piece;

/* A text cut into pieces that lie in order in its buffer. */
typedef struct {
    Buffer text;
    Piece *list;
    size_t count, capacity;
} Pieces;

void put_piece(Pieces *pieces, Piece piece); /* sets text.failed when memory runs out */
void pieces_clear(Pieces *pieces);           /* keeps the memory */
void pieces_free(Pieces *pieces);
void pieces_swap(Pieces *a, Pieces *b);

typedef struct {
    char *data;
    size_t size;
} String;

bool string_copy(String *to, const char *from, size_t size); /* with a NUL behind; false: out of memory */

/* ------------------------------------------------------------------------------------- characters: unicode.c */

/* The character at text[0 .. size), size > 0, which is valid UTF-8; *bytes is how long it is. */
int32_t char_at(const char *text, size_t size, size_t *bytes);
bool is_utf8(const char *text, size_t size);
/* Appends the text with U+FFFD for what is not UTF-8. */
void put_valid(Buffer *to, const char *text, size_t size);

bool is_space(int32_t c);          /* White_Space */
bool is_numeric(int32_t c);        /* N* */
bool is_punctuation(int32_t c);    /* ASCII's, and P* */
bool is_word(int32_t c);           /* Alphabetic, M*, Nd, Pc, and the joiners */
bool is_cjk(int32_t c);            /* what BERT takes apart */
bool is_bert_removed(int32_t c);   /* what BERT's clean_text removes */
bool is_nonspacing_mark(int32_t c);
bool is_mark(int32_t c);           /* Mn, Mc, Me */
void put_lower(Buffer *to, int32_t c);
extern char BYTE_CHARS[256][3]; /* GPT-2's visible character for each byte, with a NUL */
int byte_of_char(int32_t c);          /* the byte that it stands for, or -1 */
void unicode_initialize(void);        /* fills BYTE_CHARS; any number of times, from any thread */

/* ------------------------------------------------------------------------------------- vocabulary.c */

/* The text of a token is vocabulary->text[offset .. offset + size). */
typedef struct {
    uint32_t offset, size;
    int32_t id;
} Token;

/* The sorted tokens [low, high) that share their first `depth` bytes. */
typedef struct {
    size_t low, high;
    uint32_t depth;
} TokenRange;

typedef struct {
    Buffer text;
    Token *sorted; /* by bytes, a prefix before what it begins; in the order of adding until vocabulary_sort */
    size_t count, capacity;
    int32_t *by_id; /* [size]: index in sorted, or -1 */
    int32_t size;   /* one more than the largest id */
} Vocabulary;

enum { MOST_ID = 1 << 24 };

bool vocabulary_add(Vocabulary *v, const char *token, size_t size, int32_t id); /* false: out of memory */
/* Sorts and indexes. Of a text that stands there twice the largest id holds, if that is allowed. False when memory runs
 * out, or when it is not: then *twice is the text's second index in sorted. */
bool vocabulary_sort(Vocabulary *v, bool last_holds, size_t *twice);
void vocabulary_free(Vocabulary *v);
int32_t vocabulary_find(const Vocabulary *v, const char *token, size_t size); /* its id, or -1 */
/* The text of an id, or NULL. */
const char *vocabulary_text(const Vocabulary *v, int32_t id, size_t *size);
TokenRange whole_range(const Vocabulary *v);
TokenRange narrowed(const Vocabulary *v, TokenRange range, char next);
/* The id of the token that is all of the range's prefix, or -1. */
int32_t token_ending(const Vocabulary *v, TokenRange range);
/* The longest token that is the range's prefix and then a beginning of the text: its id and, in *used, the bytes of the
 * text; or -1. */
int32_t longest_token(const Vocabulary *v, TokenRange range, const char *text, size_t size, size_t *used);

/* ------------------------------------------------------------------------------------- patterns: pattern.c */

typedef struct {
    String literal; /* where regex is NULL */
    regex_t *regex;
} Pattern;

/* NULL, or what is wrong with the regular expression. */
const char *pattern_compile(Pattern *pattern, const char *regex, size_t size, char *error, size_t error_size);
void pattern_free(Pattern *pattern);
/* The first match in text[from .. size): 1 and its place, 0 for none, or a negative result of tokenizer_encode. */
int pattern_find(const Pattern *pattern, const char *text, size_t size, size_t from, size_t *begin, size_t *end);

/* ------------------------------------------------------------------------------------- the steps */

typedef enum {
    NORMALIZE_NFC, NORMALIZE_NFD, NORMALIZE_NFKC, NORMALIZE_NFKD, NORMALIZE_LOWERCASE, NORMALIZE_STRIP_ACCENTS,
    NORMALIZE_STRIP, NORMALIZE_REPLACE, NORMALIZE_PREPEND, NORMALIZE_BERT, NORMALIZE_PRECOMPILED, NORMALIZE_BYTES,
    NORMALIZE_NMT,
} NormalizerKind;

typedef struct {
    NormalizerKind kind;
    Pattern pattern;                             /* replace */
    String content;                              /* replace, prepend */
    bool left, right;                            /* strip */
    bool clean, chinese, strip_accents, lower;   /* bert */
    uint32_t *trie;                              /* precompiled: a double array of [trie_size] units */
    size_t trie_size;
    String replacements;                         /* precompiled: each ends in a NUL; offsets are the trie's values */
} Normalizer;

typedef enum {
    SPLIT_PATTERN, SPLIT_WORDS, SPLIT_SPACE, SPLIT_PUNCTUATION, SPLIT_DIGITS, SPLIT_CHAR, SPLIT_METASPACE, SPLIT_BYTES,
} SplitKind;

typedef enum { REMOVED, ISOLATED, MERGED_WITH_PREVIOUS, MERGED_WITH_NEXT, CONTIGUOUS } Behavior;
typedef enum { PREPEND_ALWAYS, PREPEND_FIRST, PREPEND_NEVER } PrependScheme;

typedef struct {
    SplitKind kind;
    Behavior behavior;
    bool invert;
    Pattern pattern;          /* pattern, bytes: compiled for bytes when it splits */
    int32_t character;        /* char; metaspace: what stands for a space */
    PrependScheme prepend;    /* metaspace */
    bool add_space, splits;   /* bytes: a space in front; metaspace and bytes: whether they cut */
} Splitter;

typedef enum {
    DECODE_BYTES, DECODE_WORDPIECE, DECODE_METASPACE, DECODE_BYTE_FALLBACK, DECODE_FUSE, DECODE_STRIP, DECODE_REPLACE,
    DECODE_SUFFIX,
} DecoderKind;

typedef struct {
    DecoderKind kind;
    Pattern pattern;       /* replace */
    String text;           /* wordpiece: prefix; replace: content; suffix */
    int32_t character;     /* metaspace, strip */
    size_t start, stop;    /* strip: how many at most */
    bool cleanup;          /* wordpiece */
    PrependScheme prepend; /* metaspace */
} Decoder;

typedef enum { MODEL_WORDPIECE, MODEL_BPE, MODEL_UNIGRAM, MODEL_WORDLEVEL } ModelKind;

/* What two neighbouring tokens become. */
typedef struct {
    uint64_t pair; /* left << 32 | right */
    uint32_t rank; /* least first */
    int32_t id;
} Merge;

typedef struct {
    ModelKind kind;
    Vocabulary vocabulary;
    int32_t unknown;              /* id, or -1 */
    String prefix, suffix;        /* of pieces inside a word, and of a word's last */
    size_t most_chars;            /* wordpiece: a longer word is unknown */
    TokenRange continuations;     /* wordpiece: tokens that begin with the prefix */
    Merge *merges;                /* bpe: [n_merges], by pair */
    size_t n_merges;
    bool fuse_unknown, byte_fallback, ignore_merges;
    int32_t byte_ids[256];        /* of "<0x00>" and so on, or -1 */
    double *scores;               /* unigram: [vocabulary.size] */
    double least_score;
} Model;

typedef struct {
    bool special, normalized, single_word, left, right;
    int32_t id;
} AddedToken;

/* One of the two sets of added tokens: those found in the text as it came, and those found after normalizing. */
typedef struct {
    Vocabulary texts; /* the id is the index in added */
    bool begins[256]; /* with this byte one of them begins */
} AddedSet;

struct tokenizer {
    Model model;
    Normalizer *normalizers;
    Splitter *splitters;
    Decoder *decoders;
    size_t n_normalizers, n_splitters, n_decoders;
    AddedToken *added;
    Vocabulary added_names, special_names; /* of all added tokens, and of the special ones, with their ids */
    AddedSet raw, normalized;
    size_t n_added;
    int32_t *before, *after;        /* ids put around a text */
    size_t n_before, n_after;
};

/* Ids that grow up to a limit; further ones are dropped. `result` becomes negative on failure. */
typedef struct {
    int32_t *ids;
    int count, limit;
    int result;
} Ids;

void put_id(Ids *to, int32_t id);

/* Each returns 0 or a negative result of tokenizer_encode. */
int normalize(const Normalizer *list, size_t count, Buffer *text, Buffer *scratch);
int split(const Splitter *list, size_t count, Pieces *pieces, Pieces *other);
void model_encode(const Model *model, const char *word, size_t size, Ids *to);
void bpe_encode(const Model *model, const char *word, size_t size, Ids *to);
void unigram_encode(const Model *model, const char *word, size_t size, Ids *to);
void wordpiece_encode(const Model *model, const char *word, size_t size, Ids *to);

/* The next added token of text[from .. size): 1 with its index and place, or 0. */
int added_find(const tokenizer *t, const AddedSet *set, const char *text, size_t size, size_t from, size_t *index,
               size_t *begin, size_t *end);

/* ------------------------------------------------------------------------------------- reading: files.c, json.c */

typedef struct {
    const char *path;
    char *text;
    size_t text_size;
} Report;

/* Each returns false when it has written one line about the file. */
bool refuse(const Report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool refuse_memory(const Report *report);
bool finish_vocabulary(Vocabulary *v, bool last_holds, const Report *report);
void finish_merges(Model *model); /* of equal pairs the last one holds */
void find_byte_tokens(Model *model);
bool add_token(tokenizer *t, const char *name, size_t size, AddedToken token, const Report *report);
bool finish_added(tokenizer *t, const Report *report);
bool read_json(tokenizer *t, const char *text, size_t size, const Report *report);

/* A further step of its kind, zeroed, or NULL when memory runs out. */
Normalizer *new_normalizer(tokenizer *t, NormalizerKind kind);
Splitter *new_splitter(tokenizer *t, SplitKind kind);
Decoder *new_decoder(tokenizer *t, DecoderKind kind);

#endif
