/* plan.h: what the passes make of a module's graphs, and the emitter prints. Included by attnc.h alone.
 *
 * A Program is a Plan for each graph of a module, over one set of packed weights and of caches. A Plan is a straight
 * list of steps over buffers, everything with constant strides and offsets. fuse makes the steps, layout places the
 * weights and caches, memory the buffers. */
#ifndef PLAN_H
#define PLAN_H

/* How many rows a buffer has in one chunk of a batch. */
typedef enum RowsKind {
    ROWS_CHUNK,     /* all rows of the chunk's sequences, one after another */
    ROWS_SOURCE,    /* all rows of their sources: what an encoder reads beside a decoder, keys of attention alone */
    ROWS_SEQUENCES, /* one a sequence */
    ROWS_PATCHES    /* a constant number a sequence */
} RowsKind;

typedef enum BufferKind { BUFFER_WORKSPACE, BUFFER_INPUT, BUFFER_OUTPUT } BufferKind;

typedef struct Buffer {
    BufferKind kind;
    const char *name;
    RowsKind rows;
    int64_t stride;     /* floats from row to row; in the workspace a multiple of 16 */
    int64_t columns;
    int io;             /* index of the graph's input or output */
    int64_t offset;     /* floats from the workspace's start */
    int64_t room;       /* floats */
    int first, last;    /* steps that write and read it */
} Buffer;

typedef struct Operand {
    int buffer; /* NO_BUFFER: none */
    int64_t column;
} Operand;
enum { NO_BUFFER = -1, NO_PACKED = -1, NO_CACHE = -1 };

/* Keys or values of one attention in the caller's state (or source), a head after the other: keys that are read as they
 * stand lie as panels [slots/16][width][16], all others as rows [slots][width]. A row of a window's cache goes to the
 * slot of its number modulo `slots`. */
typedef struct Cache {
    const char *name; /* of the graphs' state */
    bool of_source, panels, ring;
    int64_t heads, width, slots;
    int64_t window;         /* 0: none, or first keys that ignore it */
    int64_t offset, room;   /* floats, from the end of the state's header */
} Cache;

/* A tensor as the code reads it. Several packed in a row make one matrix of neighbouring panels. */
typedef struct Packed {
    const char *name;
    int weight, derived; /* one of them >= 0; both -1: zeros */
    bool panels;         /* [N/16][K][16] of an [N][K] matrix; otherwise rows as they are */
    bool plus_one;
    Shape shape;
    int64_t offset;      /* floats from the data's start; a multiple of 16 */
    int64_t room;        /* floats, padding included */
} Packed;

typedef enum StepKind {
    STEP_EMBED,
    STEP_PATCHES,
    STEP_PREPEND,
    STEP_GEMM,
    STEP_NORM,
    STEP_ROPE,
    STEP_STORE,
    STEP_ATTENTION,
    STEP_MAP,
    STEP_POOL,
    STEP_COPY,
    STEP_COUNT
} StepKind;

typedef struct Step {
    StepKind kind;
    const char *name;  /* layer3_query_key_value: of its function */
    const char *layer; /* layer3, encoder_layer3 beside a decoder: what its name begins with; NULL outside of layers */
    const char *shape; /* for its comment */
    Place place;
    RowsKind rows;
    Operand in, other, third, out; /* other: residual, factor, keys; third: values */
    int64_t k, n;                  /* columns read, columns written */
    int weight, bias, table3;      /* packed tensors */
    OpKind op;                     /* STEP_MAP: which; STEP_NORM: layernorm or rmsnorm */
    OpAttributes a;
    /* STEP_GEMM: out = other + residual_scale * (activation(cap(scale * (in weight^T + bias))) * factor) */
    double scale, residual_scale, cap;
    bool has_activation, has_factor, has_residual;
    Operand factor;
    /* STEP_EMBED, STEP_PREPEND */
    int ids, segment_ids; /* graph inputs, or -1 */
    bool table_in_panels; /* a tied table */
    int cache;                    /* STEP_STORE: that `in` goes to */
    /* STEP_ATTENTION: keys and values are the operands `other` and `third`, or caches */
    int keys, values;             /* caches, or NO_CACHE */
    RowsKind key_rows;
    int64_t key_bound, key_block; /* most keys; how many are taken at a time */
    int vector;                   /* packed: of additive scores */
    int64_t value_dim;
    int relative, slopes, sink; /* packed, or NO_PACKED */
    double softcap;
    int first_export;           /* STEP_ATTENTION: graph output of its map, or -1 */
    int tensor;                 /* the graph tensor that `out` holds afterwards */
} Step;

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
    bool cached;             /* its rows stand behind those of a state */
    int64_t patch_rows;      /* ROWS_PATCHES: a sequence has that many */
    int64_t rows;            /* most rows of a chunk */
    int64_t source_rows;     /* most of their sources */
    int64_t workspace_floats, scratch_floats; /* without scratch; a thread's scratch */
    int64_t matrix_floats;   /* of the weights that its products read */
} Plan;

struct Program {
    const Module *module;
    Plan *forward, *encode, *decode; /* NULL where the module has no such graph */
    Packed *packed;
    int n_packed, room_packed;
    int *of_weight, *of_derived;     /* the packed one of each weight and derived tensor of the module, or NO_PACKED */
    int *zeros_of;                   /* that stands in place of a weight's bias, or NO_PACKED */
    int64_t weight_floats;           /* the data of .attnw */
    Cache *caches;
    int n_caches, room_caches;
    int64_t state_floats, source_floats; /* behind their headers */
    int64_t rewind;                      /* rows that a state can always go back by */
    bool unroll_full;                /* no loop is left in the C: one sequence of exactly seq.n rows */
};

#endif
