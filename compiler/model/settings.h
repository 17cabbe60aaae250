/* settings.h: what the files of model/ share: the fields of settings.def, and the scopes that hold them. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include "../attnc.h"

typedef enum Block {
    BLOCK_MODEL, BLOCK_ENCODER, BLOCK_DECODER, BLOCK_LAYERS, BLOCK_LAYER, BLOCK_ATTENTION, BLOCK_FFN, BLOCK_WEIGHTS,
    BLOCK_COUNT
} Block;

enum {
    IN_FILE = 1 << BLOCK_COUNT,
    IN_MODEL = 1 << BLOCK_MODEL,
    IN_ENCODER = 1 << BLOCK_ENCODER,
    IN_DECODER = 1 << BLOCK_DECODER,
    IN_LAYERS = 1 << BLOCK_LAYERS,
    IN_LAYER = 1 << BLOCK_LAYER,
    IN_ATTENTION = 1 << BLOCK_ATTENTION,
    IN_FFN = 1 << BLOCK_FFN,
};

typedef enum Field {
#define FIELD(name, type, default_value, reset) F_##name,
#include "settings.def"
    FIELD_COUNT
} Field;

typedef struct FieldValue {
    int64_t integer;
    double real; /* holds the number of an integer field as well */
    const double *list;
    int64_t n; /* of the list */
    bool stated;
    bool doubted; /* what was said of it is refused, or it is missing and that is said: no check may use it */
    Place place;  /* where it was stated */
} FieldValue;

typedef struct Binding {
    const char *name;
    Place place;
    bool is_real, known; /* known: its expression could be evaluated */
    int64_t integer;
    double real;
    struct Binding *next;
} Binding;

/* What holds inside one block: a copy of the outer block's fields with its own settings over them. */
typedef struct Scope {
    Block block;
    FieldValue fields[FIELD_COUNT];
    Binding *lets;
    bool lost; /* a block among its items was refused */
} Scope;

typedef struct Resolver {
    Arena *arena;
    Diagnostics *diagnostics;
    Model *model;
    int lets;            /* so far */
    int listed;          /* blocks (bits) of which it was said what may stand in them */
    bool layers_doubted; /* the number of layers of the stack at hand was refused */
    bool position_said;  /* of the stack at hand or of one of its attentions, `none` too */
    const Stack *unordered[2]; /* whose rows are a bag, and the spec does not say that this is meant */
    int n_unordered;
} Resolver;

Scope *scope_outermost(Resolver *r);
/* The scope of a block: evaluates its lets and settings; leaves the items that are blocks to the caller. Where a
 * comma is missing between two items of one line, it says so and makes two of the one. */
Scope *scope_enter(Resolver *r, const Scope *outer, Block block, Item *items);
bool scope_let(Resolver *r, Scope *scope, const Item *item);
bool place_before(Place a, Place b);
void refuse_relation(Resolver *r, const Item *item); /* `=` or `<=` where none belongs */
bool block_named(const char *name, Block *block);
const char *block_name(Block block);
int with_ancestors(int blocks); /* a setting may stand in the blocks that it speaks of and in all around them */

typedef struct Number {
    bool ok, is_real;
    int64_t integer;
    double real; /* set for integers too */
} Number;
Number evaluate(Resolver *r, const Scope *scope, const Expr *expr);
/* An integer in [least, most], or a diagnostic, `least` and not ok. `what` names it in the message. */
Number evaluate_integer(Resolver *r, const Scope *scope, const Expr *expr, const char *what, int64_t least,
                        int64_t most);

static inline int64_t get(const Scope *scope, Field field) { return scope->fields[field].integer; }
static inline double get_real(const Scope *scope, Field field) { return scope->fields[field].real; }
static inline bool stated(const Scope *scope, Field field) { return scope->fields[field].stated; }
static inline bool known(const Scope *scope, Field field) { return !scope->fields[field].doubted; }
static inline void doubt(Scope *scope, Field field) { scope->fields[field].doubted = true; }
/* Where a field was stated, or `otherwise`. */
Place stated_at(const Scope *scope, Field field, Place otherwise);

enum { MOST_ROWS = 1 << 24, MOST_LAYERS = 4096, MOST_SUBLAYERS = 16, MOST_HEADS = 1 << 16,
       MOST_PATCH = 1 << 14, MOST_LETS = 4096 };
#define MOST_INTEGER INT64_C(0x7fffffff)

/* model/source_names.c */
void resolve_source_names(Resolver *r, const Scope *scope, const Item *block);
void check_source_names(Resolver *r, const WeightTable *table); /* each line speaks of a tensor of the model */
/* model/attention.c */
void resolve_attention(Resolver *r, Scope *scope, const Item *item, const Stack *stack, Sublayer *sublayer);

/* --- model/words.c */
/* What a spec says for a word that another program has for it, or NULL; `in` as in synonyms.def. */
const char *synonym_of(const char *in, const char *word);
/* What to say of a word that a spec has nothing for, or NULL. */
const char *advice_of(const char *in, const char *word);
const char *lower_case(Arena *arena, const char *word);
/* nearest_word, whatever the case of the letters. */
const char *near_word(Arena *arena, const char *word, const char *const *words);
const char *did_you_mean(Arena *arena, const char *word, const char *near); /* "; did you mean `NEAR`?", "" for NULL */
/* Adds `before` and, behind a space, a word of a list; a line that passes 100 columns goes on indented. */
void message_word(Text *message, const char *before, const char *word);
const char *text_at(Arena *arena, Place place); /* what a spec says there */

/* --- model/inputs.c: an encoder and a decoder that would both have an input of one name are refused. */
void check_inputs(Resolver *r);

#endif
