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
    Place place; /* where it was stated */
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
} Scope;

typedef struct Resolver {
    Arena *arena;
    Diagnostics *diagnostics;
    Model *model;
    int lets; /* so far */
} Resolver;

Scope *scope_outermost(Resolver *r);
/* The scope of a block: evaluates its lets and settings; leaves the items that are blocks to the caller. */
Scope *scope_enter(Resolver *r, const Scope *outer, Block block, const Item *items);
bool scope_let(Resolver *r, Scope *scope, const Item *item);
bool place_before(Place a, Place b);
void refuse_relation(Resolver *r, const Item *item); /* `=` or `<=` where none belongs */
bool block_named(const char *name, Block *block);
const char *block_name(Block block);

typedef struct Number {
    bool ok, is_real;
    int64_t integer;
    double real; /* set for integers too */
} Number;
Number evaluate(Resolver *r, const Scope *scope, const Expr *expr);
/* An integer in [least, most], or a diagnostic and `least`. `what` names it in the message. */
int64_t evaluate_integer(Resolver *r, const Scope *scope, const Expr *expr, const char *what, int64_t least,
                         int64_t most);

static inline int64_t get(const Scope *scope, Field field) { return scope->fields[field].integer; }
static inline double get_real(const Scope *scope, Field field) { return scope->fields[field].real; }
static inline bool stated(const Scope *scope, Field field) { return scope->fields[field].stated; }
/* Where a field was stated, or `otherwise`. */
Place stated_at(const Scope *scope, Field field, Place otherwise);

enum { MOST_ROWS = 1 << 24, MOST_LAYERS = 4096, MOST_SUBLAYERS = 16, MOST_HEADS = 1 << 16,
       MOST_PATCH = 1 << 14, MOST_LETS = 4096 };
#define MOST_INTEGER INT64_C(0x7fffffff)

/* model/source_names.c */
void resolve_source_names(Resolver *r, const Scope *scope, const Item *block);
void check_source_names(Resolver *r, const WeightTable *table); /* each line speaks of a tensor of the model */
/* model/attention.c */
void resolve_attention(Resolver *r, const Scope *scope, const Item *item, const Stack *stack, Sublayer *sublayer);

/* --- model/inputs.c: an encoder and a decoder that would both have an input of one name are refused. */
void check_inputs(Resolver *r);

#endif
