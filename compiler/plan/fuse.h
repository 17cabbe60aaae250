/* fuse.h: declarations that the files of the pass share: the places of the graph's tensors so far, and the plan under
 * construction. */
#ifndef FUSE_H
#define FUSE_H

#include "../attnc.h"

typedef struct Fuse {
    Arena *arena;
    const Module *module;
    const Graph *graph;
    Program *program;
    Plan *plan;
    Operand *at;    /* the rows of each tensor; buffer NO_BUFFER: they do not exist yet */
    RowsKind *rows; /* of each tensor */
    int64_t *times; /* of each tensor, as of a Buffer */
    Operand *order; /* of the rows of each tensor, as of a Step */
    int *gathered;  /* the buffer with copies of each tensor's rows by experts, or NO_BUFFER */
    int *uses;      /* of each tensor: the number of ops, outputs and states that read it */
    int *reader;    /* of each tensor: the last op that reads it, or -1 */
    int *cache;     /* the cache that holds a tensor, or NO_CACHE */
    int *state;     /* the state whose `out` is the tensor, or -1 */
    bool *done;     /* of each op: whether a step covers it */
} Fuse;

static const Operand NOWHERE = {NO_BUFFER, 0};

/* --- plan/fuse_parts.c: queries on the graph, and the buffers and packed tensors of a plan. */
_Noreturn void refuse_to_emit(Location location, const char *what); /* a located failure, EXIT_CANNOT */
const Tensor *tensor_in(const Fuse *f, int t);
int64_t columns_of(const Fuse *f, int t); /* of a row, or of a part where the parts of a tensor are rows */
void share_rows(Fuse *f, int from, int to); /* states that `to` has the rows of `from`, in their order */
/* The op `log_sum` of these scores, or NULL; and the only other op that reads them. */
const Op *log_sum_of(const Fuse *f, int scores);
const Op *score_reader(const Fuse *f, int t);
const Op *only_reader(const Fuse *f, int t); /* the only op that reads t; NULL if several do, or if t is an output */
const Op *writer_of(const Fuse *f, int t);   /* NULL for weights, inputs and states */
int input_index(const Fuse *f, int tensor);  /* among the graph's inputs, or NO_INPUT */
int op_index(const Fuse *f, const Op *op);
void cover(Fuse *f, const Op *op);           /* marks the op as part of a step */
bool available(const Fuse *f, int t);        /* its rows are in a buffer already */
/* "layer3_attention_query", with the stack's name in front where there are two */
const char *site_name(Fuse *f, const Site *site);
Step step_new(Fuse *f, StepKind kind, Location location, int result); /* its union is zeros */
void step_add(Fuse *f, Step step);
int workspace_buffer(Fuse *f, int tensor, int64_t columns);
int output_buffer(Fuse *f, int tensor, int output);
int sole_output(const Fuse *f, int t);       /* the graph output that is the only reader of t, or -1 */
Operand place_result(Fuse *f, int t);
Operand place_over(Fuse *f, int from, int result); /* reuses the rows of `from` if nothing else reads them */
int quantized_buffer(Fuse *f, int tensor); /* for the rows of an OP_quantize */
/* With a derived tensor, the weights that it is made of are packed, too, which no step may read. */
int pack_tensor(Fuse *f, int t, bool panels, bool plus_one);
int pack_scales(Fuse *f, int weight);  /* of a weight of integers; NO_PACKED for other weights */
int pack_offsets(Fuse *f, int weight); /* of a weight whose type has them, else NO_PACKED */
WeightType weight_type(const Fuse *f, int weight);
Layout scaling_layout(const Fuse *f, int weight, Shape *shape); /* of the scales and of the offsets */
Layout matrix_layout(const Fuse *f, int weight, bool quantized); /* of the factor of a product */
int pack_sums(Fuse *f, int weight);   /* of each row of a weight of integers, see weight_sum */
int outliers_of(const Fuse *f, int x); /* how many columns of the rows x may stay f32 */
int pack_outliers(Fuse *f, int weight, int n); /* of n columns that stay f32; NO_PACKED for 0 */
int pack_columns(Fuse *f, int vector); /* where a vector that smooths is 0; NO_PACKED for one that may not be */
bool is_quantized(const Fuse *f, int t);
bool is_rounded(const Fuse *f, int tensor, Dtype dtype); /* by an OP_round to that type */
int pack_expert_bias(Fuse *f, int bias);
int pack_zeros(Fuse *f, int weight, int64_t n); /* replaces the bias of `weight`; shared with the weight */

/* --- plan/fuse_rows.c: the rows that the layers begin with. */
void fuse_tally(Fuse *f, const Op *op);
void fuse_embed(Fuse *f, const Op *op);
void fuse_add_positions(Fuse *f, const Op *op); /* for rows that no lookup made, such as features */
void fuse_patches(Fuse *f, const Op *op);
void fuse_windows(Fuse *f, const Op *op);
void fuse_prepend(Fuse *f, const Op *op);

/* --- plan/fuse_gemm.c */
/* The product of the rows x, whose columns and weights are those of the op's inputs. */
void fuse_product(Fuse *f, const Op *op, Operand x);
void fuse_linear(Fuse *f, const Op *op);

/* --- plan/fuse_experts.c: rows that choose among experts, in the order of these. */
void fuse_choose(Fuse *f, const Op *op);
void fuse_expert_linear(Fuse *f, const Op *op); /* with the products by head */
void fuse_join(Fuse *f, const Op *op);
void fuse_expert_sum(Fuse *f, const Op *op);

/* --- plan/fuse_ranks.c */
void fuse_all_gather(Fuse *f, const Op *op); /* owner_rows, too */

/* --- plan/fuse_attention.c: attention, and the caches of its keys and values. */
/* Heads and width are known when attention reads it. */
int cache_of_state(Fuse *f, const GraphState *state, bool of_source);
void fuse_append(Fuse *f, const Op *op);
void fuse_attention(Fuse *f, const Op *scores);
void store_source(Fuse *f); /* stores the results of encode in the caller's source at the end */

#endif
