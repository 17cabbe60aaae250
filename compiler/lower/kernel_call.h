/* kernel_call.h: puts together the constants and arguments of a kernel. Included by lower/ alone. */
#ifndef KERNEL_CALL_H
#define KERNEL_CALL_H

#include "lower.h"

enum { CALL_LISTS = 64, MOST_SPARES = 8 };

/* An array of constants that a later call may fill again. */
typedef struct SpareConstants {
    Constant *constants;
    int room;
} SpareConstants;

/* The calls of a target so far. */
typedef struct CallTable {
    KernelCall *firsts[CALL_LISTS]; /* by the hash of their constants */
    SpareConstants spares[MOST_SPARES];
    int n_spares;
} CallTable;

/* The plan that is being lowered. */
typedef struct Lowering {
    Arena *arena;
    CallTable *calls;
    const Plan *plan;
    const Isa *isa;
    bool unrolled;
} Lowering;

enum { WHOLE = 1 << 20 }; /* unrolls a loop completely */

/* The program's results have the same bits on every target. */
static inline bool is_reproducible(const Lowering *l) { return l->plan->program->arithmetic != ARITHMETIC_FREE; }

/* --- lower/reproducible.c: a located failure, EXIT_CANNOT, where the target or a step of the program has no code with
 * the same bits on all targets. */
void need_reproducible(Arena *arena, const Program *program, const Isa *isa);

/* --- lower/kernel_call.c */
KernelCall *call_new(const Lowering *l, KernelKind kernel, const Isa *v, const Isa *u);
/* Finds the first call with the constants of a finished one, and of the calls that it calls, and keeps them once. */
void call_share(const Lowering *l, KernelCall *call);
void constant_integer(const Lowering *l, KernelCall *call, const char *name, int64_t value);
void constant_word(const Lowering *l, KernelCall *call, const char *name, const char *value);
void constant_real(const Lowering *l, KernelCall *call, const char *name, double value);
/* Sets the variables of emit/pairs.c. */
void constant_rules(const Lowering *l, KernelCall *call, const AttentionStep *step);
void constant_callee(const Lowering *l, KernelCall *call, const char *name, KernelCall *callee);
/* Notes that the kernel calls a function of math.c.tmpl, which is printed only if a kernel calls it. */
void call_helper(KernelCall *call, const char *name);
/* Set the argument for the parameter of that name, but none for NO_BUFFER and NO_PACKED. */
void give_operand(KernelCall *call, const char *parameter, Operand operand);
void give_packed(KernelCall *call, const char *parameter, int packed);
void give_named(KernelCall *call, const char *parameter, int packed, const char *name); /* by this name in the C */
void give_cache(KernelCall *call, const char *parameter, int cache);
/* Gives the offset of a cache, or rows if there is no cache. */
void give_keys(KernelCall *call, const char *parameter, int cache, Operand rows);
void give(KernelCall *call, const char *parameter);
/* Another area of a thread's scratch, behind the ones before it; sets the constants NAME_at and `scratch`, the floats
 * of all areas, so that the template addresses what is stated here. */
void call_area(const Lowering *l, KernelCall *call, const char *name, int64_t floats);
const Buffer *buffer_of(const Lowering *l, Operand operand);
int64_t stride_of(const Lowering *l, Operand operand); /* 0 without a buffer */
int64_t sequence_bound(const Lowering *l, RowsKind rows); /* most rows of a sequence */
/* Makes the number of rows a constant of an unrolled kernel. */
void fix_rows(const Lowering *l, KernelCall *call, RowsKind rows);
/* For kernels that need the begin of a sequence, and the number of rows before its first row. */
void sequence_rows(const Lowering *l, KernelCall *call, RowsKind rows);
Dtype weights_dtype(const Lowering *l, int packed);
/* The operation of a target's table that loads a vector of numbers of that dtype: "load", "load_bf16". */
const char *load_operation(Arena *arena, Dtype dtype);
/* The constants `dtype` and `c_type` of a kernel that reads these weights. */
/* GROUPED numbers of a row share a scale, of which a row has GROUPS; 0 and 1 of other weights. */
void constants_of_groups(const Lowering *l, KernelCall *call, int packed, int scales, int offsets);
void constants_of_dtype(const Lowering *l, KernelCall *call, int packed);
/* 0 where the weights of a plan fit in a second-level cache, 1 where they fit in a third-level cache, and 2 where they
 * come from memory. They are prefetched unless it is 0. */
int weights_stream(const Lowering *l);

/* --- lower/lower_rows.c, lower_gemm.c, lower_experts.c, lower_attention.c: a kernel's constants and arguments for a
 * step. */
KernelCall *lower_tally(const Lowering *l, const Step *step);
KernelCall *lower_embed(const Lowering *l, const Step *step);
KernelCall *lower_windows(const Lowering *l, const Step *step);
KernelCall *lower_patches(const Lowering *l, const Step *step);
KernelCall *lower_norm(const Lowering *l, const Step *step);
KernelCall *lower_rope(const Lowering *l, const Step *step);
KernelCall *lower_map(const Lowering *l, const Step *step);
KernelCall *lower_quantize(const Lowering *l, const Step *s);
KernelCall *lower_learned(const Lowering *l, const Step *step);
KernelCall *lower_pool(const Lowering *l, const Step *step);
KernelCall *lower_round(const Lowering *l, const Step *step);
KernelCall *lower_store(const Lowering *l, const Step *step);
KernelCall *lower_store_integers(const Lowering *l, const Step *step);
bool stores_integers(const Lowering *l, const Step *step);
int weights_after(const Plan *plan, const Step *gemm); /* the packed matrix of the product behind it, or of the first */
/* Gives a product its matrix and what belongs to it; `sums` are those of the columns, for rows of codes. */
void give_weights(const Lowering *l, KernelCall *call, const Step *gemm, bool sums);
KernelCall *lower_gemm(const Lowering *l, const Step *step);
KernelCall *lower_gemm_small(const Lowering *l, const Step *step);
bool multiplies_small(const Lowering *l, const Step *step);
KernelCall *lower_gemm_tiles(const Lowering *l, const Step *step);
bool multiplies_in_tiles(const Lowering *l, const Step *step);
KernelCall *lower_gemm_tiles_grouped(const Lowering *l, const Step *step);
bool multiplies_groups_in_tiles(const Lowering *l, const Step *step);
/* "0, 16, 32": where the columns of each rank begin, and where those of the last rank end. */
const char *sharding_bounds(Arena *arena, const Sharding *sharding);
KernelCall *lower_exchange(const Lowering *l, const Step *step);
KernelCall *lower_assemble(const Lowering *l, const Step *step);
KernelCall *lower_heads(const Lowering *l, const Step *step);
KernelCall *lower_join(const Lowering *l, const Step *step);
KernelCall *lower_experts(const Lowering *l, const Step *step);
KernelCall *lower_choose(const Lowering *l, const Step *step);
KernelCall *lower_sort(const Lowering *l, const Step *step);
KernelCall *lower_gather(const Lowering *l, const Step *step);
KernelCall *lower_combine(const Lowering *l, const Step *step);
KernelCall *lower_attention(const Lowering *l, const Step *step);
KernelCall *lower_attention_tiles(const Lowering *l, const Step *step);
bool attends_in_tiles(const Lowering *l, const Step *step);
KernelCall *lower_attention_full(const Lowering *l, const Step *step);
KernelCall *lower_attention_register_resident(const Lowering *l, const Step *step);

#endif
