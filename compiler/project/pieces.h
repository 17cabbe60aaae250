/* pieces.h: declarations shared by the files that write a tokenizer.json of a SentencePiece file and of the other files
 * of its folder. */
#ifndef PIECES_H
#define PIECES_H

#include "../formats/json.h"
#include "../formats/spm.h"
#include "../import/import.h"
#include "project.h"

enum { MOST_ID = 1 << 24, MOST_BYTES = 1 << 28 };

/* A name of the vocabulary. */
typedef struct PieceName {
    const char *text;
    size_t size;
    float score;
    int64_t id;
} PieceName;

typedef struct PieceNames {
    PieceName *list; /* in the order of their ids, unless the file of the vocabulary has another */
    int64_t count, room;
} PieceNames;

/* A hash table of texts, each with a number. All zero, it is empty. */
typedef struct TextTable {
    struct TextSlot *slots; /* [room], a power of 2 */
    size_t count, room;
} TextTable;

/* A token that is found in a text before all else. */
typedef struct Added {
    const char *text;
    bool special, left, right, single, normalized, unseen;
    int64_t id; /* by add_token */
} Added;

typedef struct Pieces {
    Arena *arena;
    const char *folder;
    SpmModel spm;
    const cJSON *config; /* tokenizer_config.json, NULL where there is none */
    const cJSON *map;    /* special_tokens_map.json, NULL where there is none and where it is not obeyed */
    const cJSON *more;   /* added_tokens.json, NULL where there is none and where it is not obeyed */
    PieceNames names;
    TextTable name_ids;    /* the id of each name */
    TextTable added_index; /* the index of each added token */
    uint8_t *taken;        /* [MOST_ID], in_vocab alone: whether a name has the id */
    Added *added;
    int64_t n_added, added_room, unnamed; /* unnamed: how many of them are no names */
    bool in_vocab;   /* the ids stand in vocab.json, and new ones in the files that name the tokens */
    Text out; /* the tokenizer.json */
} Pieces;

/* --- pieces_json.c: writes parts of a tokenizer.json. A member follows others, and begins with a comma. */
void check_size(const Pieces *p); /* fails where the tokenizer.json is too large; for loops that write many parts */
void put_json(Text *out, const char *text, size_t size); /* as a string */
/* The templates of a text and of a pair: words with spaces between them, of which $A and $B are the texts, in the
 * segment that follows `:`, such as "<s> $A </s>" and "<s> $A </s> $B:1 </s>:1". */
void put_templates(Pieces *p, const char *single, const char *pair);
void put_charsmap(Pieces *p); /* `"precompiled_charsmap"` */
void put_added(Pieces *p);
void put_vocabulary(Pieces *p); /* {"name": id, ...} */
/* What sentencepiece itself does: the normalizer and the model. With `named`, the text of unknown characters may be a
 * name of the vocabulary. */
void put_sentencepiece(Pieces *p, const char *unknown, bool named);
void put_unigram(Pieces *p, int64_t unknown);  /* a model of `tokenizers` */
/* A model of pairs, with the merges that transformers makes of the pieces' order. */
void put_pairs(Pieces *p, const char *unknown, bool byte_fallback);

/* --- pieces_tokens.c: names and special tokens. */
void add_name(Pieces *p, const char *text, size_t size, float score, int64_t id);
/* The same, where the id may not be another name's; `file` gives it. */
void add_new_name(Pieces *p, const char *file, const char *text, int64_t id);
int64_t token_id(const Pieces *p, const char *text); /* of a name or of an added token, or -1 */
/* Adds a token unless it is there already. One that is no name gets the next id, as in `tokenizers`: all names must be
 * there before. */
void add_token(Pieces *p, Added token);
/* Adds the tokens that the files of the folder name, and the tokens of the class: `defaults` has the name of a key, a
 * space, its token, a space, and so on. An id that a file gives must be the token's. */
void add_tokens(Pieces *p, const char *defaults);
/* Whether a list of special tokens takes the place of the list of the class. */
bool has_extra_list(const Pieces *p);
/* The token such as `pad_token` that the files of the folder name, or else `otherwise`, which may be NULL. */
Added named_token(const Pieces *p, const char *key, const char *otherwise);
bool setting(const Pieces *p, const char *key, bool otherwise); /* of tokenizer_config.json */
const char *text_setting(const Pieces *p, const char *key, const char *otherwise);
const char *in_folder(const Pieces *p, const char *name); /* the path of a file of the folder */
_Noreturn void refuse_setting(const Pieces *p, const char *key, const char *why);

/* --- pieces_classes.c: the tokenizers of transformers that are read by `tokenizers`. */
bool write_class(Pieces *p, const char *name); /* false of a class that is not known here */

/* --- pieces_languages.c: the codes of languages, in their order, with spaces between them; NULL for another name. */
const char *language_codes(const char *of);

#endif
