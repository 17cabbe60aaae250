/* builder.h: declarations that the files of the builder share. The name of a value or weight consists of a stem and a
 * word: the stem "encoder.layers.3.attention." and the word "query". */
#ifndef BUILDER_H
#define BUILDER_H

#include "../attnc.h"


/* The beginning of the names of one part of the model. */
typedef struct Stem {
    const char *text;  /* "encoder.layers.3.attention.", or "" */
    const char *stack; /* "encoder", or NULL */
    int layer;         /* 3, or -1 outside of layers */
    const char *part;  /* "attention.", or "" */
} Stem;

extern const Stem BUILD_NO_STEM;

/* One graph while it is built. `location`, `precision`, `where` and `stem` belong to the part of the model at hand. */
typedef struct Build {
    EntryKind entry;
    Dim past, total, source; /* ENTRY_DECODE: rows of the state before and after the call, and of the source */
    Arena *arena;
    const Model *model;
    Module *module;
    Graph *graph;
    Location location;
    const Precision *precision, *last; /* of the last matrix of the sublayer at hand */
    const char *where; /* "encoder layer 3 attention" */
    Stem stem;         /* of the names of values */
    bool of_source;    /* the stack at hand reads the source of a decoder */
    bool probes;       /* the queries at hand are the row of a probe */
} Build;

/* The weights of x weight^T + bias, as numbers in the table. */
typedef struct LinearWeights {
    const char *what; /* names the result */
    int weight, bias; /* bias may be NO_WEIGHT */
    const Experts *experts; /* there is a matrix for each; NULL: there is one */
} LinearWeights;

/* --- ir/build_parts.c. A function that returns an int returns a tensor's number in the graph. */
Stem build_stem(Build *b, const Stack *stack, const char *part);
/* `layer` is the layer's own index in names of values, and in names of weights the layer whose weights these are. */
Stem build_sublayer_stem(Build *b, const Stack *stack, int64_t layer, const Sublayer *s);
const char *build_name(Build *b, const Stem *stem, const char *what);
Site build_site(Build *b, const Stem *stem, const char *what, Role role);

Dim build_constant(int64_t n);
Dim build_symbol(Build *b, const char *name, int64_t least, int64_t bound); /* a new symbol of the graph */
Dim build_length(Build *b, const char *name, Length length); /* a constant when exact, otherwise a new symbol */

const Tensor *build_tensor(const Build *b, int t);
Dim build_rows(const Build *b, int t);
int64_t build_columns(const Build *b, int t);
Tensor build_value2(Build *b, const char *what, Dim rows, int64_t columns);        /* f32 [rows][columns] */
Tensor build_value3(Build *b, const char *what, int64_t heads, Dim n, Dim m);      /* f32 [heads][n][m] */
Tensor build_value_like(Build *b, const char *what, int x);                        /* of the shape of x */
/* The tensor of a weight, given by its number in the table; NO_TENSOR for NO_WEIGHT. */
int build_weight(Build *b, int weight);
int build_derived(Build *b, Derived wanted); /* the derived tensor of that name, which is made if there is none */

int build_input(Build *b, InputRole role, int rank, const Dim *dims, bool optional);
/* States that the last input belongs to the source of an encoder with a decoder, or to the keys of attention alone. */
void build_mark_source(Build *b);

/* The last inputs may be NO_TENSOR, which the operation then lacks. */
int build_op(Build *b, OpKind kind, OpAttributes a, Tensor result, int n, const int *inputs);
#define EMIT(kind, result, attributes, ...) \
    build_op(b, OP_##kind, (OpAttributes)attributes, result, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), \
             (int[]){__VA_ARGS__})
#define ATTRIBUTES(...) {__VA_ARGS__}

/* --- ir/build_weights.c. A declaration adds a weight to the module's table and returns its number there. Layers may
 * share weights, and all graphs of a module do: a second declaration finds the weight of that name. The order of first
 * declarations is that of the table, which users see, so a part of the model that reads its weights in another order
 * declares them all before it reads one. */
static inline Shape build_vector(int64_t n) { return (Shape){1, {n}}; }
static inline Shape build_matrix(int64_t out, int64_t in) { return (Shape){2, {out, in}}; }

/* `spec` has the shape, the type and the random values; name, site and location are those of the part of the model at
 * hand. */
int build_declare(Build *b, const Stem *stem, const char *what, WeightSpec spec);
int build_declare_bias(Build *b, const Stem *stem, const char *what, Shape shape);
/* Random values make a result of the scale of x, times `scale`. */
LinearWeights build_declare_linear(Build *b, const Stem *stem, const char *what, int64_t out, int64_t in, bool bias,
                                   double scale);
/* The deviation of random numbers whose products with the factor have a deviation of 1; for factors that would make
 * numbers beyond f32, the nearest that does not. 1 for the factor 0. */
double build_inverse(double factor);
int build_declare_tokens(Build *b, const Stack *stack);   /* one table for both stacks where the embedding is tied */
int build_declare_relative(Build *b, const Stack *stack); /* the table that the attentions of a stack share */
int build_declare_gain(Build *b, const Stem *stem, const char *what, Norm n, Shape shape); /* the weight of a norm */
/* Counts the elements of a tensor of that name and shape; a failure where there are too many. */
void build_count_elements(Build *b, const char *name, Shape shape);
/* The same for each of several experts, with random values of that deviation. */
LinearWeights build_declare_experts(Build *b, const Stem *stem, const char *what, const Experts *experts, int64_t out,
                                    int64_t in, bool bias, double deviation);
int build_linear(Build *b, const LinearWeights *weights, Role role, int x);
/* Each part of a row times the matrix of its head, of which there are as many as of experts. */
int build_head_linear(Build *b, const LinearWeights *weights, Role role, int x);
/* The same for the matrices of `groups`, which a file may hold as one of all of their rows, and a bias [channels]. */
int build_group_linear(Build *b, const Stem *stem, const char *what, const Experts *groups, int x, int64_t channels,
                       bool bias);
/* Each row times the matrices of the experts that it has chosen; x has one part for all of them, or one for each. */
int build_expert_linear(Build *b, const LinearWeights *weights, int choice, int x);
int build_new_linear(Build *b, const Stem *stem, const char *what, Role role, int x, int64_t out, bool bias);
/* `shape` is that of the norm's weights. Each part of the columns as wide as their rows is normalized by itself.
 * Without a norm, x itself. */
int build_norm(Build *b, const Stem *stem, const char *what, Role role, int x, Norm n, Shape shape);
int build_row_norm(Build *b, const Stem *stem, const char *what, int x, Norm n); /* of all columns together */

/* --- ir/build_ffn.c: the sublayer without norm and residual. */
int build_ffn(Build *b, const Stem *stem, const Sublayer *s, int x);

/* --- ir/build_rope.c */
/* x rotated by position; a head has head_dim columns. `past` is the symbol of the number of rows before row 0 of x. */
int build_rope(Build *b, const char *what, Role role, int x, const Attention *a, int64_t heads, int64_t head_dim,
               int64_t bound, int past);

/* --- ir/build_attention.c. The tensors that scores and the weighted sum read; NO_TENSOR if this graph does not make
 * them. */
typedef struct Heads {
    int query, key, value;
} Heads;

/* --- ir/build_content.c: `position content`. */
/* The weights of the terms by query and by key, as Derived.sources has them. */
typedef struct ContentWeights {
    int sources[2][DERIVED_SOURCES];
} ContentWeights;

void build_declare_content(Build *b, const Stack *stack); /* the table that the attentions of a stack project */
/* `stem` is that of a table of the attention's own, `rows` that of the queries and keys. */
ContentWeights build_declare_terms(Build *b, const Stem *stem, const Stem *rows, const Stack *stack,
                                   const Attention *a);
/* The scaled scores of unscaled ones. */
int build_content(Build *b, const Attention *a, const ContentWeights *weights, int scores, Heads heads,
                  int64_t bound);

/* build_state gives the rows that earlier calls have left in a state; build_append adds the rows of x after them. */
int build_state(Build *b, const char *what, Role role, Dim rows, int64_t columns);
int build_append(Build *b, const char *what, Role role, int in, int x);
/* Whether this graph reads the keys and values that `encode` left. */
static inline bool build_keeps_source(const Build *b, const Attention *a) {
    return b->entry == ENTRY_DECODE && a->cross;
}
Heads build_project(Build *b, const Stem *stem, const Attention *a, Heads rows); /* projections and qk_norm */
/* The second queries and keys of `differential`, of the same rows; without it no tensors. */
Heads build_second(Build *b, const Stem *stem, const Attention *a, Heads rows);
/* --- ir/build_latent.c: queries, keys and values of `latent`; query and key are rotated already. */
Heads build_latent(Build *b, const Stem *stem, const Attention *a, int x, int64_t bound);
/* The values of the heads from what attention has summed of the latent rows: [n][heads*latent] ->
 * [n][heads*value_dim]. */
int build_latent_values(Build *b, const Stem *stem, const Attention *a, int x);
Heads build_score_rows(Build *b, const Stem *stem, const Attention *a, Heads h); /* the matrices of a score */
/* --- ir/build_differential.c: what `differential` adds to an attention. */
/* The stem of the names of the second queries and keys, which is in `stem`. */
Stem build_second_stem(Build *b, const Stem *stem);
/* The heads of the difference of two weighted sums [n][heads*value_dim], normalized; `layer` counts from 0. */
int build_difference(Build *b, const Stem *stem, const Attention *a, int first, int second, int layer);
/* --- ir/build_rules.c */
/* The input of rows with that role, of this call's rows; it is made where it is missing. */
int build_row_input(Build *b, InputRole role, Dim rows);
/* The input of that role in the graph, which is made where it is missing, with what a state keeps of it. `rows` are the
 * rows of the queries, and `keys` the rows of the keys. */
int build_rule_input(Build *b, InputRole role, Dim rows, Dim keys);
/* Leaves the numbers of the source's rows that a cross attention reads. */
void build_leave_numbers(Build *b, const Attention *a, Dim source);
/* Declares the learned tables that a rule of scores reads. `stack` is NULL for attention alone. */
void build_declare_learned(Build *b, const Stem *stem, const Stack *stack, const PairRule *rule);
/* The scores of `score EXPR`, or `scores` where there is none. */
int build_rescore(Build *b, const Stem *stem, const Stack *stack, const Attention *a, int scores);
/* The sublayer without norm and residual. `stem` is that of the weights; `stack` is NULL for attention alone; `bound`
 * is the most rows of a sequence; `layer` names an exported map. */
int build_attention(Build *b, const Stem *stem, const Stack *stack, const Attention *a, Heads rows, int64_t bound,
                    int layer);

#endif
