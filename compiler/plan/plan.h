/* plan.h: the plans of a module's graphs. Included by attnc.h alone.
 *
 * A Program is a Plan for each graph of a module, over one set of packed weights and of caches. A Plan is a straight
 * list of steps over buffers with constant strides and offsets. fuse makes the steps, layout sets the offsets of the
 * weights and caches, and memory those of the buffers. */
#ifndef PLAN_H
#define PLAN_H

/* How many rows a buffer has in one chunk of a batch. */
typedef enum RowsKind {
    ROWS_CHUNK,     /* all rows of the chunk's sequences, one after another */
    ROWS_SOURCE,    /* all rows of the sequences' sources, or all keys of attention alone */
    ROWS_SEQUENCES, /* one row for each sequence */
    ROWS_FIXED      /* and the kinds behind it: a constant number for each sequence, of which a plan has a list */
} RowsKind;
enum { MOST_FIXED_ROWS = 16 };

/* Rows of the workspace, of an input or of an output. `times` is 1, or the number of experts that a row chooses where
 * there is a row for each of them; these stand in the order of the experts, and a STEP_SORT tells which is which. Those
 * of a STEP_QUANTIZE are in U8: `columns` codes, ROW_HEAD
 * bytes behind the begin of a row, where its scale, its zero point and its outliers are floats; the codes behind the
 * last are 0. */
typedef struct Buffer {
    Slot slot;
    Site site;          /* of the tensor that it was made for */
    RowsKind rows;
    int64_t times;
    int64_t extra;      /* bytes behind the rows */
    int64_t stride;     /* elements from row to row; in the workspace a whole number of panels */
    int64_t columns;
    int io;             /* index of the graph's input or output */
    int first, last;    /* steps that write and read it */
} Buffer;

typedef struct Operand {
    int buffer; /* NO_BUFFER: none */
    int64_t column;
} Operand;
enum { NO_BUFFER = -1, NO_PACKED = -1, NO_CACHE = -1, NO_INPUT = -1 };

/* Keys or values of one attention in the caller's state or source, one head after the other: a matrix [slots][width]
 * for each head, in panels where a kernel reads the keys directly, else in rows. Row r of a ring is in slot r modulo
 * `slots`. A cache may also keep the numbers of an input of rows, [slots] for all attentions of the decoder: integers
 * as I32, or as I64 where bits are read, and real numbers as F32. */
typedef struct Cache {
    Slot slot; /* named after the graphs' state */
    Site site;
    bool ring;
    int64_t heads, width, slots;
    int64_t scales; /* bytes from the slot's begin to the scales of I8, f32 [heads][slots]; 0 of other types */
    bool ranged;    /* F32 of an input of rows whose keys a mask reads */
    int64_t ranges; /* the same of I32, or `ranged`: to the least and the greatest of each panel, [slots/PANEL][2] */
    int64_t window; /* 0: no window, or one that the first keys ignore */
} Cache;

/* What is packed of the rows of a weight: their numbers, or, of integers, the scales, the offsets or the sum of each,
 * or the columns that stay f32; scales and offsets of groups, and these columns, are a matrix [rows][] in panels.
 * OF_COLUMNS are the numbers of these columns, of a vector that smooths. */
typedef enum PackedOf { OF_NUMBERS, OF_SCALES, OF_OFFSETS, OF_SUMS, OF_OUTLIERS, OF_COLUMNS } PackedOf;

/* A tensor as the code reads it. Matrices with adjacent panels are read as a single matrix. */
typedef struct Packed {
    Slot slot;
    Site site;
    int weight, derived; /* one of them >= 0; both -1: zeros */
    PackedOf of;
    bool plus_one;
    Shape shape;
} Packed;

typedef enum StepKind {
    STEP_TALLY,
    STEP_EMBED,
    STEP_PATCHES,
    STEP_WINDOWS,
    STEP_PREPEND,
    STEP_GEMM,
    STEP_CHOOSE,
    STEP_SORT,
    STEP_GATHER,
    STEP_COMBINE,
    STEP_NORM,
    STEP_ROPE,
    STEP_STORE,
    STEP_ATTENTION,
    STEP_MAP,
    STEP_QUANTIZE,
    STEP_JOIN,
    STEP_ROUND,
    STEP_LEARNED,
    STEP_POOL,
    STEP_COPY,
    STEP_EXCHANGE,
    STEP_ASSEMBLE,
    STEP_COUNT
} StepKind;

/* A step that makes the rows that the layers begin with: they are looked up in a table by ids, or given (features), or
 * given and preceded by one or two learned rows (STEP_PREPEND); then they are scaled, and segments and positions
 * added. */
typedef struct EmbedStep {
    Operand given;           /* NO_BUFFER: looked up */
    int ids, segment_ids;    /* graph inputs, or NO_INPUT */
    int table, segments, positions; /* packed, or NO_PACKED */
    int scales, offsets;     /* packed: of a table of integers, or NO_PACKED */
    int front[2];            /* packed rows in front of each sequence, or NO_PACKED */
    bool table_in_panels;    /* a tied table */
    int64_t first_position;  /* row of the position table for position 0 */
    int at;                  /* graph input whose integers are the positions, or NO_INPUT */
    Operand counts;          /* of a STEP_TALLY, whose numbers are the positions; NO_BUFFER: the rows' numbers are */
    int counted;             /* graph input: the ids that it counts */
    int64_t skipped;         /* the id whose rows have position 0 then */
    const Sharding *sharding; /* how the table is divided; NULL: it is whole */
    double scale;            /* of rows that are looked up */
    int64_t mask;            /* the id with rows of zeros; all others are divided by their share; -1: none */
} EmbedStep;

/* How many ids other than `token` there are up to each row, [rows][1]. */
typedef struct TallyStep {
    int ids;       /* graph input */
    int cache;     /* with the counts of the rows before the call, or NO_CACHE */
    int64_t token;
} TallyStep;

typedef struct PatchesStep {
    int64_t channels, height, width, patch, step; /* `step`: pixels from square to square */
} PatchesStep;

/* Rows of kernel * channels columns: those of x, or of the input mel, around every stride-th of them. */
typedef struct WindowsStep {
    Operand x; /* NO_BUFFER: the input [channels][frames] */
    int64_t channels, frames, kernel, stride;
    int64_t results; /* rows of a sequence; 0: as many as x has, which the call states */
} WindowsStep;

/* out = residual + residual_scale * (activation(cap(scale * (x weight^T * scales + bias + the products of outliers))) *
 * factor) */
typedef struct GemmStep {
    Operand x, factor, residual; /* x is rows of f32, or quantized rows */
    int64_t k;           /* columns of x */
    int weight, bias;    /* packed: the first of `parts` that follow each other; bias may be NO_PACKED */
    int scales, offsets; /* packed, the same: of weights of integers, or NO_PACKED */
    int sums;            /* packed, the same: of each row (weight_sum), where x is quantized; or NO_PACKED */
    int outliers;        /* packed, the same: the columns that stay f32, where x has outliers; or NO_PACKED */
    int parts;
    double scale, residual_scale;
    double cap;          /* 0: none */
    bool bf16;           /* x and the weights are numbers of bf16, x in f32 */
    bool rounds;         /* the result, or that of each part, is rounded to bf16 at last */
    bool has_activation;
    Activation activation;
    const Experts *experts; /* each row is multiplied by the matrix of its expert; NULL: there is one matrix */
    int64_t heads; /* 0, or part h of each row is multiplied by matrix h: k and the step's n are those of a part */
} GemmStep;

/* The experts that each row chooses, and their gates, [rows][2*top]. */
typedef struct ChooseStep {
    Operand x;      /* logits */
    int correction; /* packed, or NO_PACKED */
    const Experts *experts;
} ChooseStep;

/* The order of rows by experts, as int32: how many of them stand in front of those of each expert, and of all; from
 * SORT_STARTS(experts) on, for number p of [rows][top], the row that stands at p and the place of part p. */
typedef struct SortStep {
    Operand x; /* of a STEP_CHOOSE */
    const Experts *experts;
} SortStep;
#define SORT_STARTS(experts) (((experts) + 1 + PANEL - 1) / PANEL * PANEL)

/* Copies of rows in that order, [rows*top][columns]. */
typedef struct GatherStep {
    Operand x;
    const Experts *experts;
} GatherStep;

/* out = residual + residual_scale * the sum of a row's parts times their gates */
typedef struct CombineStep {
    Operand x, choice, residual; /* x is in the order of a STEP_SORT: */
    Operand order;
    const Experts *experts;
    double residual_scale;
} CombineStep;

typedef struct NormStep {
    Operand x;
    int weight, bias;
    bool centered;       /* layernorm; else rmsnorm */
    bool weight_per_group;
    int64_t groups;      /* that a row's columns are cut into */
    double eps;
} NormStep;

typedef struct RopeStep {
    Operand x;
    int cos, sin;         /* packed tables, a row a position */
    int64_t heads, head_dim, width; /* width: columns of a head that are rotated */
    int at[MOST_ROW_INPUTS]; /* graph inputs whose integers are the positions of rows */
    int n_at;                /* 0: rows count from the first row of their sequence */
    const int64_t *sections; /* with several: the pairs that each of them rotates */
    int64_t second_table; /* rows up to which the first table holds (longrope); 0: there is one table */
    bool interleaved;
} RopeStep;

typedef struct StoreStep {
    Operand x;
    int input; /* graph input: the integers that are stored in place of x, or NO_INPUT */
    int cache;
} StoreStep;

enum { MOST_SCORE_RULES = 4, MOST_SCORE_INPUTS = 6 };

/* A rule whose value is the new score, and which of the step's inputs each of its inputs is, but for inputs of the
 * model. */
typedef struct ScoreRule {
    const PairRule *rule;
    int inputs[MOST_PAIR_INPUTS];
} ScoreRule;

/* A tensor that a rule of scores reads. It has a number, or a row of numbers, for each head. */
typedef struct ScoreInput {
    const char *name; /* unique among the inputs of the step */
    int packed;
    bool of_head;     /* a number for each head */
    bool shared;      /* one row for all heads */
    int64_t width;    /* the length of a row */
} ScoreInput;

/* Keys and values are operands, or caches. */
typedef struct AttentionStep {
    Operand query, key, value;
    int key_cache, value_cache;
    RowsKind key_rows;
    int64_t heads, kv_heads, head_dim, value_dim;
    int64_t key_bound;            /* the largest number of keys */
    double scale;
    ScoreRule rescores[MOST_SCORE_RULES]; /* applied to the scaled score, one after the other */
    ScoreInput inputs[MOST_SCORE_INPUTS];
    int n_rescores, n_inputs;
    const InputKind *score_rows[MOST_PAIR_INPUTS]; /* the inputs of rows and pairs that the scores read */
    int score_caches[MOST_PAIR_INPUTS];            /* where a state keeps them, or NO_CACHE */
    bool score_of_keys[MOST_PAIR_INPUTS];          /* read for keys, perhaps also for queries */
    int n_score_rows;
    const PairRule *visible;      /* which keys a query attends to; NULL: all of them */
    KeyBounds bounds;             /* of this rule */
    bool looks_ahead; /* rows of a state may see rows that are appended later, other than those of a prefix */
    const InputKind *visible_inputs[MOST_PAIR_INPUTS]; /* the inputs of the model that it reads */
    int visible_caches[MOST_PAIR_INPUTS];  /* where a state keeps them, or NO_CACHE */
    bool past;                    /* rows of a state precede the queries */
    Weighing weighing;
    int vector;                   /* packed: of additive scores, or NO_PACKED */
    int sink;                     /* packed, or NO_PACKED */
    int by_query, by_key;         /* packed: vectors of distances that queries and keys multiply; or NO_PACKED */
    int64_t origin;               /* column of these for distance 0 */
    bool bf16;                    /* queries, keys and values are numbers of bf16 */
    bool bytes;                   /* queries and keys are integers of 8 bits times scales by row and head */
    bool rounds;                  /* weights are rounded to bf16; rows are then `bf16` or `bytes` */
    int first_export;             /* graph output of its map, or -1 */
    bool exports_lse;             /* the logarithms of the sums are the graph output `lse` */
    int64_t lse_place;            /* in which this is the place of the first head */
} AttentionStep;

/* Whether the mask reads an input of the model. */
static inline bool mask_reads(const AttentionStep *a, const InputKind *kind) {
    for (int i = 0; i < pair_inputs(a->visible); i++)
        if (a->visible_inputs[i] == kind && pair_reader(a->visible, i)) return true;
    return false;
}

/* The numbers of the least and the greatest integer of each panel of keys, for one input of rows. */
static inline int64_t panel_range_numbers(const AttentionStep *a) { return (a->key_bound + PANEL - 1) / PANEL * 2; }

/* An elementwise op; STEP_COPY has x alone. */
typedef struct MapStep {
    Operand x, other;
    OpKind op;
    int factor;       /* packed: of a sum, what multiplies the columns of `other`, or NO_PACKED */
    bool same_column; /* of a product: `other` has one column for all of x */
    double scale, cap;
    bool plus_one;
    Activation activation;
} MapStep;

typedef struct QuantizeStep {
    Operand x;
    int smooth;  /* packed: what multiplies the columns of x, or NO_PACKED */
    int columns; /* packed: the numbers of those that stay f32, or NO_PACKED */
} QuantizeStep;

/* Each head of x, and behind it that of `other`. */
typedef struct JoinStep {
    Operand x, other;
    int64_t heads, first, second; /* columns of a head of x, and of the other */
} JoinStep;

typedef struct RoundStep {
    Operand x;
    Dtype dtype;   /* of OP_round; the rows stay in f32 */
    int64_t heads; /* of which each has a scale of its own where the type is I8 */
} RoundStep;

/* A learned row, copied for each sequence. */
typedef struct LearnedStep {
    int row; /* packed */
} LearnedStep;

typedef struct PoolStep {
    Operand x;
    PoolKind pool;
    int64_t begin;    /* the first row that counts */
    int ids;          /* graph input whose numbers choose the row; NO_INPUT for other kinds */
    int64_t token;    /* these ids are compared with it */
    bool shifted;     /* row i has id i - 1 */
    bool single;      /* x has one row for each sequence, and may be `out` */
    bool unit_length; /* the pooled row is divided by its length */
} PoolStep;

/* What all ranks have. An exchange copies x to where the rows of this rank stand among the rows of all ranks,
 * [ranks][rows][part], and calls the collective of the program. An assembly, whose x are these rows, joins their parts,
 * or takes each row from the rank that has its id in a table. */
typedef struct ExchangeStep {
    Operand x;
    const Sharding *sharding;
    int64_t part; /* columns of a rank */
    int ids;      /* graph input, or NO_INPUT: parts are joined */
} ExchangeStep;

typedef struct Step {
    StepKind kind;
    const char *name;  /* layer3_query_key_value: of its function */
    Site site;         /* of what it computes */
    const char *layer; /* layer3, encoder_layer3 beside a decoder: what its name begins with; NULL outside of layers */
    const char *shape; /* for its comment */
    Location location;
    RowsKind rows;
    int64_t times;     /* as of the buffer `out` */
    Operand order;     /* the STEP_SORT in whose order the rows of `out` stand; NO_BUFFER: in their own */
    Operand out;       /* NO_BUFFER: STEP_STORE */
    int64_t n;         /* columns of out, or of what is stored */
    int tensor;        /* the graph tensor that `out` holds afterwards */
    union {
        TallyStep tally;
        EmbedStep embed; /* STEP_PREPEND too */
        PatchesStep patches;
        WindowsStep windows;
        GemmStep gemm;
        ChooseStep choose;
        SortStep sort;
        GatherStep gather;
        CombineStep combine;
        NormStep norm;
        RopeStep rope;
        StoreStep store;
        AttentionStep attention;
        MapStep map;     /* STEP_COPY too */
        QuantizeStep quantize;
        JoinStep join;
        RoundStep round;
        LearnedStep learned;
        PoolStep pool;
        ExchangeStep exchange; /* STEP_ASSEMBLE too */
    };
} Step;

/* Rows that a step reads; NO_BUFFER operands are left out. */
typedef struct Read {
    const char *name; /* as the step's struct has it */
    Operand operand;
} Read;
enum { MOST_READS = 5 };

static inline bool gemm_has_factor(const GemmStep *g) { return g->factor.buffer != NO_BUFFER; }
/* The rows of a packed matrix, or of that of one expert. */
static inline int64_t packed_rows(const Packed *p) { return p->shape.dims[p->shape.rank > 2 ? 1 : 0]; }
static inline int64_t packed_columns(const Packed *p) { return p->shape.dims[p->shape.rank - 1]; }
/* The columns that a product writes. */
static inline int64_t gemm_columns(const Step *s) { return s->n * (s->gemm.heads ? s->gemm.heads : 1); }
static inline bool gemm_has_residual(const GemmStep *g) { return g->residual.buffer != NO_BUFFER; }

typedef struct Program Program;

typedef struct Plan {
    Program *program;
    const Graph *graph;
    Step *steps;
    int n_steps, room_steps;
    Buffer *buffers;
    int n_buffers, room_buffers;
    Length seq;              /* rows of a sequence */
    Length source_seq;       /* ROWS_SOURCE */
    bool cached;             /* its rows follow those of a state */
    int64_t fixed_rows[MOST_FIXED_ROWS]; /* of the kinds from ROWS_FIXED on: a sequence has that many */
    int n_fixed_rows;
    int64_t rows;            /* most rows of a chunk */
    int64_t source_rows;     /* most of their sources */
    int64_t workspace_bytes; /* of the buffers */
    int64_t matrix_bytes;    /* of the weights that its products read */
} Plan;

/* The rows that a sequence has of a kind from ROWS_FIXED on; 0 of other kinds. */
static inline int64_t rows_fixed(const Plan *plan, RowsKind kind) {
    return kind >= ROWS_FIXED ? plan->fixed_rows[kind - ROWS_FIXED] : 0;
}

struct Program {
    const Module *module;
    Plan *entries[ENTRY_COUNT];      /* NULL where the module has no such graph */
    Packed *packed;
    int n_packed, room_packed;
    int *of_weight, *of_derived;     /* the packed one of each weight and derived tensor of the module, or NO_PACKED */
    int *scales_of, *offsets_of, *sums_of, *outliers_of; /* those of a weight of integers, or NO_PACKED */
    int *columns_of;                 /* the outliers of a vector that smooths, or NO_PACKED */
    int *zeros_of;                 /* the packed zeros that replace a weight's bias, or NO_PACKED */
    int64_t weight_bytes;            /* the data of .attnw */
    Cache *caches;
    int n_caches, room_caches;
    int64_t state_bytes, source_bytes; /* without their headers */
    int64_t rewind;                    /* the number of rows by which a state can always be rewound */
    Arithmetic arithmetic;           /* of the kernels; plan_model sets FREE */
    bool unroll_full;                /* no loop is left in the C: one sequence of exactly seq.n rows */
    bool small;                      /* a chunk has one sequence, or some rows of a state */
};

#endif
