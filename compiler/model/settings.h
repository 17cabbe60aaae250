/* settings.h: declarations shared by the files of model/: the fields of settings.def and the scopes that hold them. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include "../attnc.h"

enum { MOST_EXPERTS = 1024 }; /* the C chooses among them in arrays on the stack */

typedef enum Block {
    BLOCK_MODEL, BLOCK_ENCODER, BLOCK_DECODER, BLOCK_CONVOLUTION, BLOCK_LAYERS, BLOCK_LAYER, BLOCK_ATTENTION, BLOCK_FFN,
    BLOCK_PROBE, BLOCK_DENSE, BLOCK_WEIGHTS, BLOCK_GENERATION, BLOCK_TEXT, BLOCK_COUNT
} Block;

enum {
    IN_FILE = 1 << BLOCK_COUNT,
    IN_MODEL = 1 << BLOCK_MODEL,
    IN_ENCODER = 1 << BLOCK_ENCODER,
    IN_DECODER = 1 << BLOCK_DECODER,
    IN_CONVOLUTION = 1 << BLOCK_CONVOLUTION,
    IN_LAYERS = 1 << BLOCK_LAYERS,
    IN_LAYER = 1 << BLOCK_LAYER,
    IN_ATTENTION = 1 << BLOCK_ATTENTION,
    IN_FFN = 1 << BLOCK_FFN,
    IN_PROBE = 1 << BLOCK_PROBE,
    IN_DENSE = 1 << BLOCK_DENSE,
};

typedef enum Field {
#define FIELD(name, type, default_value, reset) F_##name,
#include "settings.def"
    FIELD_COUNT
} Field;

typedef struct FieldValue {
    int64_t integer;
    double real; /* the value of an integer field, too */
    const double *list;
    int64_t n; /* of the list */
    bool exact; /* a length stated by `=`, not by `<=` */
    bool stated;
    bool doubted; /* a diagnostic refused the value or reported it missing, so no later check may use it */
    Location location;  /* where it was stated */
    const Expr *expr;   /* a condition, and the scope in which its names have their values */
    const struct Scope *scope;
} FieldValue;

typedef struct Binding {
    const char *name;
    Location location;
    bool is_real, known; /* known: the expression was evaluated */
    int64_t integer;
    double real;
    int input; /* 1 + the number of an input of rows, which has no value of its own; 0: a `let` */
    const PairRule *leaf; /* what an operation reads, in definitions.attn alone */
    const PairTable *table; /* of `let NAME = table [N] EXPR` and `learned NAME [N]`, which have no value either */
    struct Binding *next;
} Binding;

/* The fields inside of a block: those of the outer block, overwritten by the block's own settings. */
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
    FieldValue width;    /* d_model of the last stack */
    int lets;            /* number of `let` lines so far */
    int listed;          /* bits of the blocks whose possible items a diagnostic has listed */
    bool layers_doubted; /* the number of layers of the current stack was refused */
    const Expr *refused; /* a condition that a diagnostic refused */
    bool position_said;  /* the current stack or one of its attentions states a position, possibly `none` */
} Resolver;

Scope *scope_outermost(Resolver *r);
/* Evaluates the lets and settings of a block, and leaves inner blocks to the caller. A comma that is missing between
 * two items of a line is reported, and the item is split. */
Scope *scope_enter(Resolver *r, const Scope *outer, Block block, Item *items);
bool scope_let(Resolver *r, Scope *scope, const Item *item);
/* --- model/row_inputs.c */
bool item_is_row_input(const Item *item);
/* Adds the input of an item `input rows NAME`, `input number NAME` or `input pairs NAME`; returns false if the item is
 * another one. */
bool scope_input(Resolver *r, Scope *scope, const Item *item);
/* Decides whose rows the inputs are that a model has so far, and refuses inputs that it has not or that may be of
 * several sequences, and inputs of pairs where there is a decoder. `crosses`: there is `attention cross` alone. */
void place_model_inputs(Resolver *r, bool encoder, bool decoder, bool crosses);
/* Sets the inputs of rows that `at` names, of a stack with so many rows. An input without a range gets that of the
 * rows. */
void position_at_inputs(Resolver *r, const Scope *scope, int64_t bound, Position *position);
/* The input of this name that is stated before the location, or NULL. */
const RowInput *row_input_named(const Resolver *r, const Scope *scope, const char *name, Location location);
/* Why an attention does not read an input for its queries, or for its keys; NULL if it does. */
const char *row_input_unread(Resolver *r, const Attention *a, const RowInput *input, bool of_query);
/* Notes that an input is read as numbers, or as bits; false after a diagnostic, since no input is read as both. */
bool row_input_is_number(Resolver *r, const RowInput *input, Location location);
bool row_input_is_bits(Resolver *r, const RowInput *input, Location location);
void refuse_relation(Resolver *r, const Item *item); /* refuses `=` or `<=` after an item that takes neither */
void refuse_values(Resolver *r, const Item *item);   /* refuses a value after the name of a block that takes none */
/* Refuses an id beyond a vocabulary, which is 0 where it is not known. */
void check_token(Resolver *r, Location location, int64_t token, int64_t vocab);
bool block_named(const char *name, Block *block);
const char *block_name(Block block);
int with_ancestors(int blocks); /* adds the bits of all enclosing blocks */

typedef struct Number {
    bool ok, is_real;
    int64_t integer;
    double real; /* the value of an integer, too */
} Number;
/* --- model/expressions.c */
/* unit: above 0, at most 1; divisor: above 0, with a reciprocal that f32 holds, and natural_divisor also 0; outliers: 1
 * to MOST_OUTLIERS */
typedef enum Range {
    RANGE_any, RANGE_positive, RANGE_natural, RANGE_unit, RANGE_divisor, RANGE_natural_divisor, RANGE_outliers
} Range;

const Binding *binding_named(const Scope *scope, const char *name); /* or NULL */
/* Reports a name that is bound already, and returns whether it is. */
bool refuse_bound(Resolver *r, const Scope *scope, const char *name, Location location);
/* Refuses the name of an input that cannot be read here; false if there is no such input. */
bool refuse_other_part(Resolver *r, const char *name, Location location);
void scope_bind(Resolver *r, Scope *scope, Binding binding); /* adds a copy of the binding */
Number evaluate(Resolver *r, const Scope *scope, const Expr *expr);
/* The number of a name; a message suggests what synonyms.def has for one that is found `in` such an expression, or NULL
 * where letters have no meaning. */
Number evaluate_name(Resolver *r, const Scope *scope, const Expr *expr, const char *in);
/* The sum, difference, product or quotient of two known numbers. */
Number evaluate_of_two(Resolver *r, const Expr *expr, Number a, Number b);
/* A number in the range, for which f32_holds; otherwise a diagnostic that calls it `what`, and 1 with ok false. */
Number evaluate_real(Resolver *r, const Scope *scope, const Expr *expr, const char *what, Range range);
/* Reports a value that begins with a sign, which is allowed only inside parentheses. `range` describes the values that
 * are allowed, or is NULL. */
bool refuse_sign(Resolver *r, const Expr *expr, const char *what, const char *range);
/* An integer in [least, most]; otherwise a diagnostic that calls it `what`, and `least` with ok false. */
Number evaluate_integer(Resolver *r, const Scope *scope, const Expr *expr, const char *what, int64_t least,
                        int64_t most);

static inline int64_t get(const Scope *scope, Field field) { return scope->fields[field].integer; }
static inline double get_real(const Scope *scope, Field field) { return scope->fields[field].real; }
static inline bool stated(const Scope *scope, Field field) { return scope->fields[field].stated; }
static inline bool known(const Scope *scope, Field field) { return !scope->fields[field].doubted; }
static inline void doubt(Scope *scope, Field field) { scope->fields[field].doubted = true; }
static inline Length get_length(const Scope *scope, Field field) {
    return (Length){scope->fields[field].integer, scope->fields[field].exact};
}
static inline bool norm_has_bias(NormKind kind) {
    static const bool rows[] = {
        [NORM_NONE] = false,
#define NORM(name, has_bias, help) [NORM_##name] = has_bias,
#include "norms.def"
    };
    return rows[kind];
}
/* The source location where a field was stated, or `otherwise`. */
Location stated_at(const Scope *scope, Field field, Location otherwise);

enum { MOST_ROWS = 1 << 24, MOST_LAYERS = 4096, MOST_SUBLAYERS = 16, MOST_HEADS = 1 << 16,
       MOST_PATCH = 1 << 14, MOST_CHANNELS = 1 << 12, MOST_KERNEL = 255, MOST_CONVOLUTIONS = 8, MOST_DENSE = 16,
       MOST_LETS = 4096 };
#define MOST_INTEGER INT64_C(0x7fffffff)

/* --- model/pooled.c: the blocks `probe` and `dense` of a model, whose head is known. */
void resolve_pooled(Resolver *r, const Scope *scope, const Item *items);
/* --- model/text.c */
void resolve_text(Resolver *r, const Item *block);
/* model/source_names.c */
void resolve_source_names(Resolver *r, const Scope *scope, const Item *block);
/* --- model/generation.c: the block `generation` of a model, whose stacks and head are known. */
void resolve_generation(Resolver *r, const Scope *scope, const Item *block);
/* --- model/conditions.c: the rule of a condition for positions in these ranges, or NULL after a diagnostic. Adds the
 * inputs that the rule reads to those of the attention. */
const PairRule *resolve_condition(Resolver *r, const Scope *scope, const Expr *expr, PairRange query, PairRange key,
                                  Attention *a);
/* The same of the expression of a new score. */
const PairRule *resolve_rescore(Resolver *r, const Scope *scope, const Expr *expr, PairRange query, PairRange key,
                                Attention *a);
/* The same of an activation, an expression of `x`. */
const PairRule *resolve_formula(Resolver *r, const Scope *scope, const Expr *expr);
/* --- model/activations.c: the activation that is stated, a word or a formula of the model, or else `without`. */
Activation resolve_activation(Resolver *r, const Scope *scope, Activation without);
/* The table `table [count] of`, or NULL after a diagnostic. */
const PairTable *resolve_table(Resolver *r, const Scope *scope, const char *name, const Expr *count, const Expr *of);
/* --- model/learned.c: the table of an item `learned NAME [N]`, or NULL after a diagnostic. */
const PairTable *resolve_learned(Resolver *r, const Scope *scope, const Item *item);
/* --- model/definitions.c: whether a word of definitions.attn stands for the rule with some numbers above 0. Then
 * numbers['N'] becomes the N of its expression. */
enum { WORD_NUMBERS = 128 };
bool rule_is_of_word(Arena *arena, const PairRule *rule, const char *word, double *numbers);
/* --- model/masks.c: sets the settings of the mask and the rule of the keys that a query sees. */
void resolve_masks(Resolver *r, Scope *scope, Attention *a, const Stack *stack, PairRange query, PairRange key);
/* Sets the rule of `score EXPR`. */
void resolve_score_rule(Resolver *r, Scope *scope, Attention *a, PairRange query, PairRange key);
/* Sets the rule by the other settings of the mask. */
void attention_visible(Arena *arena, Attention *a);
/* model/attention.c */
/* Whether an attention block is `cross`. Reports a word that is neither `cross` nor `self`, and cross attention without
 * an encoder to read. */
bool attention_crosses(Resolver *r, const Item *item, bool cross_allowed);
void resolve_attention(Resolver *r, Scope *scope, const Item *item, const Stack *stack, bool cross,
                       Sublayer *sublayer);
/* Whether every projection has a bias, by `bias all` or by default. */
bool all_biased(const Scope *scope);
/* --- model/layers.c */
Norm resolve_norm(const Scope *scope);
Norm resolve_inner_norm(const Scope *scope); /* none where the sublayer has none */
Precision resolve_precision(const Scope *scope);
Precision resolve_last_precision(const Scope *scope, SublayerKind kind);
/* The sublayers of a layer, or of `probe`, whose scope it is. */
Layer resolve_layer(Resolver *r, const Scope *scope, const Item *item, Stack *stack);
/* Appends the layers of one `layers` block. */
void resolve_layers(Resolver *r, const Scope *outer, const Item *item, Stack *stack);
/* Reports numbers that occur twice in a list of `export`, or that no model has; the list is then empty. */
void check_export_list(Resolver *r, FieldValue *list, const char *what);
void export_heads(Resolver *r, const Scope *scope, Attention *a);
/* --- model/front.c: what an encoder of `input patches` reads, or of `input mel` with the convolutions behind it. */
void resolve_patches(Resolver *r, const Scope *scope, const Item *item, Stack *stack);
/* Resolves the block `convolution` of an encoder that reads no spectrogram. */
void resolve_beside(Resolver *r, Scope *scope, const Item *item, Stack *stack);
void resolve_mel(Resolver *r, Scope *scope, const Item *item, Stack *stack);
/* --- model/stack.c */
Stack *resolve_stack(Resolver *r, const Scope *outer, const Item *item, bool is_decoder);

/* --- model/words.c */
bool is_word(const Expr *expr, const char *word); /* whether it is this name alone; false for NULL */
bool is_letter(const char *name); /* `q`, `k`, `h`, `s` or `i`, which an expression of pairs or of a table reads */
const char *block_word(const Item *item); /* the word behind a block's name (`attention self`, `model NAME`), or NULL */
bool item_is_block(const Item *item, const char *name);
bool stands_in(Location location, const Item *item); /* whether it lies after the item's name, up to its block's end */
/* The word of a spec for a word of another program, or NULL. synonyms.def explains `in`. */
const char *synonym_of(const char *in, const char *word);
/* Advice on a word that has no counterpart in a spec, or NULL. */
const char *advice_of(const char *in, const char *word);
const char *lower_case(Arena *arena, const char *word);
/* nearest_word without regard to case. */
const char *near_word(Arena *arena, const char *word, const char *const *words);
/* "; did you mean `NEAR`?", or "" where `near` is NULL. */
const char *did_you_mean(Arena *arena, const char *word, const char *near);
/* Appends `before`, a space and a word of a list. A line longer than 100 columns continues indented. */
void message_word(Text *message, const char *before, const char *word);
const char *text_at(Arena *arena, Location location); /* the text of the spec at that source location */

/* --- model/inputs.c: refuses an encoder and a decoder that would both have an input of the same name. */
void check_inputs(Resolver *r);

#endif
