/* attn_tokenizer_internal.h: the declarations that the files of this folder share. A text passes through them in this
 * order: added.c finds the special tokens in it, normalize.c rewrites the text between them, split.c cuts that into
 * words, models.c, and bpe.c and pieces.c with heap.c, encode each word, and encode.c joins the ids. decode.c goes the
 * other way.
 * files.c, gguf.c with gguf_words.c, json.c, json_model.c and json_pieces.c read files into the parts that build.c
 * makes. */
#ifndef ATTN_TOKENIZER_INTERNAL_H
#define ATTN_TOKENIZER_INTERNAL_H

#include <oniguruma.h>

#include "attn_tokenizer.h"

/* ------------------------------------------------------------------------------------- memory: buffer.c */

/* A growing buffer of bytes, initialized by {0}. When an allocation fails, `failed` is set and stays set, and further
 * appends do nothing, so a step needs one check at its end. */
typedef struct {
    char *data;
    size_t size, capacity;
    bool failed;
} Buffer;

void attn_put_bytes(Buffer *buffer, const char *bytes, size_t size);
void attn_put_char(Buffer *buffer, int32_t c); /* appends UTF-8 */
void attn_buffer_free(Buffer *buffer);

/* A part of a buffer. */
typedef struct {
    size_t begin, size;
    size_t first; /* number of its bytes that come from the first character of the whole text */
} Piece;

/* A text that is split into pieces, which are in order in its buffer. */
typedef struct {
    Buffer text;
    Piece *list;
    size_t count, capacity;
} Pieces;

void attn_put_piece(Pieces *pieces, Piece piece); /* sets text.failed when an allocation fails */
void attn_pieces_clear(Pieces *pieces);           /* keeps the memory */
void attn_pieces_free(Pieces *pieces);
void attn_pieces_swap(Pieces *a, Pieces *b);

typedef struct {
    char *data;
    size_t size;
} String;

bool attn_string_copy(String *to, const char *from, size_t size); /* adds a NUL; false: out of memory */

/* A list of ids with a limit; further ids are dropped or, with `last`, take the place of the first ones, so that the
 * list begins at `begin` and goes round. `result` becomes negative on failure. */
typedef struct {
    int32_t *ids;
    int count, limit, begin;
    bool last;
    int result;
} Ids;

void attn_put_id(Ids *to, int32_t id);
bool attn_ids_full(const Ids *ids); /* whether further ids are dropped */
void attn_ids_straighten(Ids *ids); /* moves the first id to the beginning */

/* ------------------------------------------------------------------------------------- characters: unicode.c */

/* The character at text[0 .. size), size > 0, which is valid UTF-8; *bytes is its length. */
int32_t attn_char_at(const char *text, size_t size, size_t *bytes);
bool attn_is_utf8(const char *text, size_t size);
/* Appends the text, with U+FFFD in place of bytes that are not UTF-8. */
void attn_put_valid(Buffer *to, const char *text, size_t size);
/* Returns how many bytes the whole characters of a text have, which is less than `size` if the text ends inside a
 * character. */
size_t attn_whole_chars(const char *text, size_t size);

bool attn_is_space(int32_t c);          /* White_Space */
bool attn_is_numeric(int32_t c);        /* N* */
bool attn_is_punctuation(int32_t c);    /* ASCII's, and P* */
bool attn_is_word(int32_t c);           /* Alphabetic, M*, Nd, Pc, and the joiners */
bool attn_is_cjk(int32_t c);            /* characters that BERT splits */
bool attn_is_bert_removed(int32_t c);   /* characters that BERT's clean_text removes */
bool attn_is_nonspacing_mark(int32_t c);
bool attn_is_mark(int32_t c);           /* Mn, Mc, Me */
void attn_put_lower(Buffer *to, int32_t c);
extern char attn_byte_chars[256][3]; /* GPT-2's visible character for each byte, with a NUL */
int attn_byte_of_char(int32_t c);          /* the byte that a character represents, or -1 */
void attn_unicode_initialize(void);        /* fills attn_byte_chars; any number of times, from any thread */

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
    Token *sorted; /* by bytes, prefixes first; in the order of insertion until attn_vocabulary_sort */
    size_t count, capacity;
    int32_t *by_id; /* [size]: index in sorted, or -1 */
    int32_t size;   /* one more than the largest id */
} Vocabulary;

enum { MOST_ID = 1 << 24 };

bool attn_vocabulary_add(Vocabulary *v, const char *token, size_t size, int32_t id); /* false: out of memory */
/* Sorts and indexes. A text that occurs twice keeps its largest id with `last_holds`, and is an error without. Returns
 * false for that error, with *twice the text's second index in sorted, and when memory runs out. */
bool attn_vocabulary_sort(Vocabulary *v, bool last_holds, size_t *twice);
void attn_vocabulary_free(Vocabulary *v);
int32_t attn_vocabulary_find(const Vocabulary *v, const char *token, size_t size); /* its id, or -1 */
/* The text of an id, or NULL. */
const char *attn_vocabulary_text(const Vocabulary *v, int32_t id, size_t *size);
TokenRange attn_whole_range(const Vocabulary *v);
TokenRange attn_narrowed(const Vocabulary *v, TokenRange range, char next);
/* The id of the token that equals the range's prefix, or -1. */
int32_t attn_token_ending(const Vocabulary *v, TokenRange range);
/* The longest token that consists of the range's prefix and the first *used bytes of the text: its id, or -1. */
int32_t attn_longest_token(const Vocabulary *v, TokenRange range, const char *text, size_t size, size_t *used);

/* ------------------------------------------------------------------------------------- patterns: pattern.c */

/* What the steps of a file may need for one text, since a file may ask for any amount of either. */
typedef struct {
    size_t most;    /* bytes that a step may make of the text */
    double seconds; /* of this thread's time, for all searches */
    double begun;   /* when the first of them began; 0: none did */
    double used;    /* of the thread's time, until then */
} Limits;

Limits attn_limits_of(size_t bytes); /* for a text of that size */

typedef struct {
    String literal; /* the pattern, if regex is NULL */
    regex_t *regex;
} Pattern;

/* Returns NULL, or what is wrong with the regular expression. */
const char *attn_pattern_compile(Pattern *pattern, const char *regex, size_t size, char *error, size_t error_size);
void attn_pattern_free(Pattern *pattern);
/* Finds the first match in text[from .. size): 1 and its range, 0 for none, or a negative result of
 * attn_tokenizer_encode. */
int attn_pattern_find(const Pattern *pattern, const char *text, size_t size, size_t from, size_t *begin, size_t *end,
                      Limits *limits);

/* The matches of a pattern in a text, from {.text, .size} on. An empty match directly after another match does not
 * count, as in `tokenizers`. */
typedef struct {
    const char *text;
    size_t size, look;
    size_t begin, end; /* of the last match */
    bool any;
} Matches;

int attn_next_match(const Pattern *pattern, Matches *matches, Limits *limits); /* as attn_pattern_find */

/* ------------------------------------------------------------------------------------- the steps */

typedef enum {
    NORMALIZE_NFC, NORMALIZE_NFD, NORMALIZE_NFKC, NORMALIZE_NFKD, NORMALIZE_LOWERCASE, NORMALIZE_STRIP_ACCENTS,
    NORMALIZE_STRIP, NORMALIZE_REPLACE, NORMALIZE_PREPEND, NORMALIZE_BERT, NORMALIZE_PRECOMPILED, NORMALIZE_BYTES,
    NORMALIZE_NMT, NORMALIZE_PIECES,
} NormalizerKind;

typedef struct {
    NormalizerKind kind;
    Pattern pattern;                             /* replace */
    String content;                              /* replace, prepend */
    bool left, right;                            /* strip */
    bool clean, chinese, strip_accents, lower;   /* bert */
    uint32_t *trie;                              /* precompiled: a double array of [trie_size] units */
    size_t trie_size;
    bool longest;                                /* precompiled: looks up the longest text, as sentencepiece */
    String replacements;                         /* precompiled: each ends in a NUL; offsets are the trie's values */
    bool prefix, tidy, escape;                   /* pieces: a space before the text; one space for several; U+2581 */
    const Vocabulary *kept;                      /* pieces: texts that stay as they are */
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
    Pattern pattern;          /* pattern; bytes, if it splits */
    int32_t character;        /* char; metaspace: the character that replaces a space */
    PrependScheme prepend;    /* metaspace */
    bool add_space, splits;   /* bytes: a space in front; metaspace and bytes: whether they split */
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
    size_t start, stop;    /* strip: largest number of characters */
    bool cleanup;          /* wordpiece */
    bool each;             /* byte fallback: a run of bytes may have characters beside what is none */
    PrependScheme prepend; /* metaspace */
} Decoder;

typedef enum { MODEL_WORDPIECE, MODEL_BPE, MODEL_UNIGRAM, MODEL_WORDLEVEL, MODEL_PIECES } ModelKind;

/* A model of SentencePiece, whose pieces may have other ids than their places, and other names may have ids. */
typedef struct {
    Vocabulary found;  /* the pieces that are found in a text; the id is the place */
    Vocabulary own;    /* those of the user, which are never cut, joined or normalized */
    int32_t *ids;      /* [found.size] of the vocabulary: the unknown one for a piece that it lacks */
    float *scores;     /* [found.size] */
    bool *users;       /* [found.size]: whether the piece is the user's */
    float least, most; /* scores of the other ones */
    bool pairs;        /* neighbours are joined, in place of the best segmentation */
    bool named;        /* the text of unknown characters may be a name of the vocabulary */
} PieceModel;

/* Two neighbouring symbols of a text that may become one token. */
typedef struct {
    double cost;      /* the least one is first, and of equal ones the leftmost pair */
    int32_t left;     /* index of the left symbol */
    int32_t token;    /* what the pair becomes */
    uint64_t made_of; /* tells whether the symbols have changed since the pair was added */
} Candidate;

/* All zero, it is empty. The caller frees the list. */
typedef struct {
    Candidate *list;
    size_t count, capacity;
    bool failed; /* memory ran out */
} Heap;

/* The token that two neighbouring tokens become. */
typedef struct {
    uint64_t pair; /* left << 32 | right */
    uint32_t rank; /* the least rank is merged first */
    int32_t id;
} Merge;

typedef struct {
    ModelKind kind;
    Vocabulary vocabulary;
    int32_t unknown;              /* id, or -1 */
    String prefix, suffix;        /* of pieces inside a word, and of a word's last piece */
    size_t most_chars;            /* wordpiece: longer words are unknown */
    TokenRange continuations;     /* wordpiece: tokens that begin with the prefix */
    Merge *merges;                /* bpe: [n_merges], by pair */
    size_t n_merges;
    bool fuse_unknown, byte_fallback, ignore_merges;
    int32_t byte_ids[256];        /* ids of "<0x00>" to "<0xFF>", or -1 */
    double *scores;               /* unigram: [vocabulary.size] */
    double least_score;
    PieceModel pieces;
} Model;

typedef struct {
    bool special, normalized, single_word, left, right;
    bool unseen;              /* never found in a text */
    bool shown_normal;        /* decoded to its normalized name */
    int32_t id;
    size_t shown, shown_size; /* the part of attn_tokenizer.shown that it is decoded to */
} AddedToken;

/* A set of added tokens: those that are found before normalization, or those that are found after it. */
typedef struct {
    Vocabulary texts; /* the id is the index in added */
    bool begins[256]; /* whether a token begins with this byte */
} AddedSet;

/* How far a text was searched for added tokens. A token of white space may begin within the white space that the token
 * before it strips, as in `tokenizers`; so `done`, the end of the last token and of what it strips, may go back. */
typedef struct {
    const char *text;
    size_t size;
    size_t look, done;
    size_t spaces, spaces_end; /* text[spaces .. spaces_end) is white space, up to its end */
} AddedSearch;

/* Where the error of a file is written. */
typedef struct {
    const char *path;
    char *text;
    size_t text_size;
} Report;

/* A part of what a pair of texts becomes: a special token, or all ids of one of the texts. */
enum { PAIR_FIRST = -1, PAIR_SECOND = -2 };
typedef struct {
    int32_t id; /* or one of these */
    int32_t segment;
} PairPart;

struct attn_tokenizer {
    bool truncate_left;
    bool codes; /* a text may begin with >>code<<, which is a token, or the unknown one */
    Model model;
    Normalizer *normalizers;
    Splitter *splitters;
    Decoder *decoders;
    size_t n_normalizers, n_splitters, n_decoders;
    AddedToken *added;
    size_t n_added, added_capacity;
    Vocabulary added_names;   /* as the file has them; the id is the index in added */
    Vocabulary special_names; /* names of special tokens, which no id is decoded to */
    Buffer shown;
    int32_t *added_of_id;     /* [most_added_id + 1]: index in added, or -1 */
    int32_t most_added_id;    /* -1 without added tokens */
    AddedSet raw, normalized;
    int32_t *before, *after;        /* ids around a text */
    size_t n_before, n_after;
    PairPart *pair;                 /* the template of a pair of texts; without one, what stands around a text */
    size_t n_pair;
};

/* Appends a part to the template of a pair. */
bool attn_put_pair(attn_tokenizer *t, int32_t id, int32_t segment, const Report *report);

/* Each returns 0 or a negative result of attn_tokenizer_encode. */
int attn_normalize(const Normalizer *list, size_t count, Buffer *text, Buffer *scratch, Limits *limits);
int attn_split(const Splitter *list, size_t count, Pieces *pieces, Pieces *other, Limits *limits);
void attn_heap_push(Heap *heap, Candidate candidate);
Candidate attn_heap_pop(Heap *heap); /* of a heap that is not empty */
void attn_model_encode(const Model *model, const char *word, size_t size, Ids *to);
void attn_bpe_encode(const Model *model, const char *word, size_t size, Ids *to);
void attn_unigram_encode(const Model *model, const char *word, size_t size, Ids *to);
void attn_wordpiece_encode(const Model *model, const char *word, size_t size, Ids *to);
void attn_pieces_encode(const Model *model, const char *text, size_t size, Ids *to);
void attn_pieces_model_free(PieceModel *pieces);

/* Finds the next added token: its index, and where it begins with what it strips before it, at or after the `done` of
 * the search so far; afterwards that is where it ends. Returns NULL when there is none. */
const AddedToken *attn_added_next(const attn_tokenizer *t, const AddedSet *set, AddedSearch *search, size_t *begin);

/* ------------------------------------------------------------------------- reading: build.c, files.c, json.c */

/* Each returns false after writing one line about the file. */
bool attn_refuse(const Report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool attn_refuse_memory(const Report *report);
bool attn_finish_vocabulary(Vocabulary *v, bool last_holds, const Report *report);
bool attn_check_ids(const Vocabulary *v, const Report *report); /* whether no id has two names */
void attn_finish_merges(Model *model); /* the last of equal pairs is kept */
void attn_find_byte_tokens(Model *model);
bool attn_add_token(attn_tokenizer *t, const char *name, size_t size, AddedToken token, const Report *report);
bool attn_finish_added(attn_tokenizer *t, const Report *report); /* after the vocabulary and the normalizers */
bool attn_read_json(attn_tokenizer *t, const char *text, size_t size, const Report *report);
bool attn_read_gguf(attn_tokenizer *t, const char *data, size_t size, const Report *report);
bool attn_begins_gguf(const char *data, size_t size);
bool attn_holds_gguf_keys(const char *data, size_t size); /* false, too, for other files */

/* Adds the steps, the special tokens and the template of a BERT to its vocabulary, which `t` has already. */
bool attn_finish_bert(attn_tokenizer *t, bool lower, bool strip_accents, const Report *report);
/* Reads sentencepiece's table of replacements: a little-endian count of bytes, the double array of that size, then the
 * texts. An empty one changes nothing. */
bool attn_read_charsmap(Normalizer *n, const char *table, size_t size, const Report *report);

/* How byte-level pairs cut a text: each regular expression isolates its matches in what the one before it left. */
enum { MOST_WORDS = 6 };
typedef struct {
    const char *names, *words[MOST_WORDS]; /* names of 'tokenizer.ggml.pre' with spaces between them */
    bool nfc, whole, bos; /* NFC first; a word that is a token stays whole; a token in front unless the file says no */
} ByteWords;
const ByteWords *attn_find_byte_words(const char *name, size_t size); /* or NULL */

typedef struct {
    float score;
    int32_t id;
} Scored;
/* The merges of pieces [count] with scores, for byte-pair encoding that joins the pair with the best score first. */
bool attn_merges_of_scores(Model *model, Scored *scored, size_t count, const Report *report);

/* Adds the merge of two tokens, whose joint text is a token, too; `joint` is room. Refused as merge `rank`. */
bool attn_put_merge(Model *model, const char *left, size_t left_size, const char *right, size_t right_size, size_t rank,
                    Buffer *joint, const Report *report);
extern const char attn_gpt2_words[]; /* the regular expression of GPT-2's encoder.py (Radford et al. 2019) */

/* Appends a zeroed step; NULL when memory runs out. */
Normalizer *attn_new_normalizer(attn_tokenizer *t, NormalizerKind kind);
Splitter *attn_new_splitter(attn_tokenizer *t, SplitKind kind);
Decoder *attn_new_decoder(attn_tokenizer *t, DecoderKind kind);

#endif
