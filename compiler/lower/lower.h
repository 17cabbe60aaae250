/* lower.h: turns a Plan, which knows no target, into a Schedule, which has the kernel of each step on a target with its
 * tile, unrolling, vectors and scratch. All decisions are made here; emit only prints them.
 *
 * Everything is a pure function of the plan and the target's table. */
#ifndef LOWER_H
#define LOWER_H

#include "../targets/targets.h"

/* ======================================================================= lower/kernels.def */
typedef enum KernelKind {
#define KERNEL(name, steps, template, applies, lower, ...) KERNEL_##name,
#include "kernels.def"
#undef KERNEL
    KERNEL_COUNT
} KernelKind;

typedef enum ParameterKind {
    PARAMETER_RUN,
    PARAMETER_READ,
    PARAMETER_WRITE,
    PARAMETER_WEIGHT,
    PARAMETER_NEXT,
    PARAMETER_KEYS,
    PARAMETER_CACHE,
    PARAMETER_MAPS,
    PARAMETER_SCRATCH,
    PARAMETER_ROWS,
    PARAMETER_SHARE
} ParameterKind;

typedef struct Parameter {
    ParameterKind kind;
    const char *name;
    bool optional;
} Parameter;

enum { MOST_PARAMETERS = 18, MOST_HELPERS = 20, MOST_AREAS = 9 };

typedef struct KernelRow {
    const char *name, *template_name;
    const Parameter *parameters;
    int n_parameters;
} KernelRow;

/* ======================================================================= the schedule */
struct KernelCall;

/* A constant of a template. A callee stands for the name of the kernel's functions. CONSTANT_RULES
 * stands for the rules of an attention's scores and of its mask, and for the inputs of these rules. */
typedef struct Constant {
    enum { CONSTANT_INTEGER, CONSTANT_WORD, CONSTANT_REAL, CONSTANT_CALLEE, CONSTANT_RULES } kind;
    const char *name;
    union {
        int64_t integer;
        const char *word;
        float real;
        struct KernelCall *callee;
        const AttentionStep *attention;
    };
} Constant;

/* The value of a parameter in a call. */
typedef struct Argument {
    bool given;
    const char *name; /* in the C; NULL: the parameter's */
    Operand operand; /* READ, WRITE; KEYS without a cache */
    int packed;      /* WEIGHT, NEXT */
    int cache;       /* CACHE, KEYS; NO_CACHE: the operand */
} Argument;

/* A part of a thread's scratch, in floats. The constant NAME_at tells the template where it begins, behind the parts
 * before it. */
typedef struct Area {
    const char *name;
    int64_t at, floats;
} Area;

/* A kernel with its constants. Calls of a kernel with equal constants share one function of the C. */
typedef struct KernelCall {
    KernelKind kernel;
    const Isa *v, *u;       /* tables that the template calls `v` and `u`: the target's, or its half for short rows */
    const char *stem;       /* the end of the function's name */
    const char *comment;
    Constant *constants;    /* of two constants with the same name, the later one holds */
    int n_constants, room;
    Argument arguments[MOST_PARAMETERS]; /* by the row's parameters */
    const char *helpers[MOST_HELPERS];   /* functions of math.c.tmpl that it calls, by their names there */
    int n_helpers;
    Area areas[MOST_AREAS];
    int n_areas;
    int64_t scratch_bytes;               /* of a thread: the sum of the areas */
    const struct KernelCall *first;      /* the target's first call with these constants: this call or an earlier one */
    struct KernelCall *next_first;       /* the next of the target's first calls */
    uint64_t hash;                       /* of the constants */
} KernelCall;

typedef struct ScheduledStep {
    const Step *step;
    KernelCall *call;
    const int64_t *maps;    /* by head: the index of its map in a sequence, or -1; NULL if no map is exported */
    const char *optional;   /* the step runs only if the caller wants this output; NULL: it always runs */
} ScheduledStep;

/* The steps of one graph. */
typedef struct PlanSchedule {
    const Plan *plan;
    bool unrolled;                     /* without loops, for exactly one sequence of the plan's rows */
    ScheduledStep *steps;              /* plan->n_steps */
    int64_t scratch_bytes;             /* of a thread: the largest of these steps and of `single` */
    const struct PlanSchedule *single; /* unrolled, for one sequence; NULL if no gain is expected */
} PlanSchedule;

typedef struct Schedule {
    const Program *program;
    const Isa *isa;
    PlanSchedule *entries[ENTRY_COUNT]; /* NULL if the program has no such plan */
} Schedule;

/* ======================================================================= lower/lower.c */
/* With `loops`, no sequence gets unrolled code. A step without a kernel is a failure, EXIT_CANNOT. */
Schedule *lower(Arena *arena, const Program *program, const Isa *isa, bool loops);
/* A schedule for each of the named targets, the best target first, ended by NULL. */
Schedule **lower_targets(Arena *arena, const Program *program, const char *const *targets, int n_targets, bool loops);

/* ======================================================================= lower/reproducible.c
 * Whether reproducible code can have the program's attention maps as outputs. */
bool maps_are_reproducible(const Program *program);

/* ======================================================================= lower/schedule.c */
extern const KernelRow kernel_rows[KERNEL_COUNT];
/* Whether attention uses only queries, keys, values and positions. */
bool attention_is_plain(const Step *attention);
/* The kind of pairs of queries and keys of an attention: self_pairs, source_pairs or cross_pairs. */
const char *pairs_of(const Plan *plan, const Step *attention);
const Cache *cache_of(const Plan *plan, int cache); /* NULL for NO_CACHE */
Dtype cache_dtype(const Plan *plan, int cache);     /* of its numbers; F32 for NO_CACHE */
/* The scratch of a thread of an entry, enough for each of the targets. */
int64_t entry_scratch_bytes(Schedule *const *schedules, int entry);
/* Checks the arguments of each call against its kernel's row: required ones, kinds, bounds; and that the areas of
 * scratch are aligned, apart and within the bytes that the call and the plan state. A difference is a bug. */
void schedule_verify(const Schedule *schedule);
void schedule_print(Text *out, const Schedule *schedule);

/* ======================================================================= lower/tiles.c
 * How large the tiles of each kernel are. */
/* An unrolled function has at most this many statements. */
enum { STATEMENTS = 1900 };

/* A product of fewer rows is not computed in tiles of the processor. */
enum { TILE_ROWS_LEAST = 2 };

typedef struct GemmTile {
    int64_t height, panels; /* in rows; in panels of PANEL columns */
} GemmTile;

typedef struct RowsTile {
    int64_t rows, panels, columns; /* rows of queries; panels of PANEL keys; vectors of values */
} RowsTile;

/* Columns of a panel that are not padding: PANEL unless the parts of the product are narrower. */
int64_t panel_columns(const Plan *plan, const Step *gemm);
int64_t panel_columns_of_ranks(const Plan *plan, const Step *gemm); /* the same of a divided product as it is whole */
GemmTile gemm_tile(const Isa *isa, int64_t used); /* `used`: columns of a panel that are not padding */
GemmTile gemm_dots_tile(const Isa *isa, int64_t used); /* of products of integers, whose rows share widened weights */
/* The same for weights in groups, whose scales, and offsets if they have any, stand in registers too; `dots` are
 * products of integers, whose sums of a group stand beside those of all groups. */
GemmTile gemm_group_tile(const Isa *isa, int64_t used, bool dots, bool offset);
/* The largest tile of `rows` rows, where rows and panels are cut evenly. */
GemmTile gemm_largest_tile(const Plan *plan, const Isa *isa, const Step *gemm, int64_t rows);
/* The number of k in each function of an unrolled product: all, or as many as STATEMENTS allow in the largest tile. */
int64_t gemm_k_step(const Isa *isa, const Step *gemm, GemmTile largest, int64_t used);
/* The number of sums of an element, 1 or 2. Products with at most 8 rows and one vector of columns have separate sums
 * of even and odd k, because the latency of multiply-adds limits them: an encoder of 8 columns takes 7 % less time (Zen
 * 5). Calls of one sequence and of many have the same sums. Reproducible code has one. */
int gemm_chains(const Plan *plan, const Isa *isa, const Step *gemm, GemmTile tile, int64_t rows);
/* The number of keys in a block of scores: all keys if they are few or if a map is exported. */
enum { MOST_KEYS = 512 };
int64_t key_block(const Step *attention);
/* Whether the C decides from bounds which panels of keys some rows see, where scores do not stay in registers. */
bool mask_has_ranges(const AttentionStep *a);
RowsTile rows_tile(const Isa *isa, const Step *attention);
/* The number of vectors of a row's values that a loop over blocks of tile.columns vectors sums; the rest is unrolled.
 * More than two blocks become a loop, since the code of a block is long and its work far exceeds the loop's. */
int64_t columns_looped(const Isa *isa, const Step *attention, RowsTile tile);
/* Whether there are so few keys that the scores of some rows fit in half of the registers. */
bool scores_in_registers(const Plan *plan, const Isa *isa, const Step *attention);
/* Whether all keys are visible to every query, scores stay in registers, and the functions of rows are short enough to
 * be unrolled. */
bool rows_unrolled(const Plan *plan, const Isa *isa, const Step *attention);
/* The number of heads that are computed at once for a single row, which has only one chain of multiply-adds for each
 * vector of a head's values; or 0. Heads that read more than queries, keys and values are computed one by one. */
int64_t heads_across(const Plan *plan, const Isa *isa, const Step *attention);
/* The number of heads, at least 1, that are computed at once for unrolled rows that do not fill a tile. */
int64_t heads_together(const Plan *plan, const Isa *isa, const Step *attention);

/* The number of weights of a product's row that share a scale; 0 where a row has one, or none. */
int64_t scale_group(const Plan *plan, const Step *gemm);

/* ======================================================================= lower/unroll.c
 * Whether `unroll auto` gives a call of one sequence unrolled code. */
typedef struct Unrolling {
    bool pays;
    double cycles, saved; /* cycles of such a call with loops, and the cycles that unrolling saves */
    double code_bytes;
    const char *why_not;  /* NULL if unrolled code is worth it */
} Unrolling;

Unrolling unroll(const Plan *plan, const Isa *isa);

#endif
