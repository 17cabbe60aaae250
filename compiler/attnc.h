/* attnc.h: the map of the compiler.
 *
 * Every type that crosses a file's border is here, then the prototypes under the file that owns
 * them, in the order in which data flows:
 *
 *   support -> syntax -> io (tensor files) -> model -> io (weights) -> ir -> interp -> passes -> io (packed weights)
 *   -> emit -> import (import/import.h) -> commands
 *
 * An arrow never goes back up this list. */
#ifndef ATTNC_H
#define ATTNC_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define ATTNC_VERSION "0.1.0"

/* ======================================================================= support/arena.c
 * One arena a stage; nothing inside it is freed alone. Memory comes zeroed. No function here
 * returns NULL: out of memory ends the program through out_of_memory(). */
typedef struct Arena Arena;

Arena *arena_new(void);
void arena_free(Arena *arena);
void arena_clear(Arena *arena);                                    /* empties it, to be used again */
void *arena_alloc(Arena *arena, size_t bytes);                     /* aligned to 64 bytes when bytes >= 64, else 16 */
void *arena_array(Arena *arena, size_t count, size_t size);        /* checked count * size */
/* `items` with room for one more behind the first `count`, moved and doubled where *room is used up. */
void *arena_grow(Arena *arena, void *items, int count, int *room, size_t size);
char *arena_copy(Arena *arena, const char *text, size_t size);     /* a copy ended by NUL */
char *arena_printf(Arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
void arena_on_free(Arena *arena, void (*run)(void *), void *with); /* run(with) when the arena goes: mmaps, files */

/* The only door to the system's allocator; returns NULL when there is no more, or when a test says so
 * (environment ATTNC_FAIL_ALLOC=n: the n-th call fails). */
void *checked_malloc(size_t bytes);

/* A growing text or array of bytes inside an arena; `data` is always ended by NUL. */
typedef struct Text {
    Arena *arena;
    char *data;
    size_t size, room;
} Text;

Text text_new(Arena *arena);
void text_reserve(Text *text, size_t size); /* room for `size` bytes more, at least */
void text_add(Text *text, const char *bytes, size_t size);
void text_add_int(Text *text, int64_t value);
void text_vprintf(Text *text, const char *format, va_list args);
void text_printf(Text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Arithmetic on sizes that may come from a file: false (and *out unset) on overflow. */
bool mul_fits(int64_t a, int64_t b, int64_t *out);
bool add_fits(int64_t a, int64_t b, int64_t *out);

/* ======================================================================= support/elementary.c
 *
 * For whatever ends in a file: the same bits on every machine. Of more than 0 is the x of log and pow. */
double portable_log(double x);
double portable_pow(double x, double y);
double portable_sin(double x);
double portable_cos(double x);

/* ======================================================================= support/numbers.c
 * The shortest decimal that reads back as the same number, as a spec has it: 16, 0.1, 1e-5. */
const char *number_text(Arena *arena, double value);

/* ======================================================================= support/terminal.c, support/progress.c
 * What a terminal shows: colour, text that cannot command it, and how far work is. */
#include "support/terminal.h"

/* ======================================================================= support/failure.c
 * The three ways to end early, and the exit codes of the contract. A message is one line without a
 * final newline. With a trap set (tests, fuzzers) a failure jumps there; otherwise it prints
 * "attnc: error: MESSAGE" on stderr and exits. Unfinished output files are removed either way. */
enum { EXIT_FINE = 0, EXIT_USER = 1, EXIT_USAGE = 2, EXIT_CANNOT = 3, EXIT_BUG = 4, EXIT_MEMORY = 5 };

_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));         /* the user's: exit 1 */
_Noreturn void fail_status(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Ended by what errno says: exit 1, or 5 where that is memory. */
_Noreturn void fail_system(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void bug(const char *format, ...) __attribute__((format(printf, 1, 2)));          /* ours: exit 4 */
_Noreturn void out_of_memory(void);                                                         /* exit 5 */

typedef struct FailureTrap {
    jmp_buf jump;
    int status;
    char message[1024];
    struct FailureTrap *outer;
} FailureTrap;

/* if (failure_trap(&trap) == 0) { ...; failure_release(&trap); } else { trap.status, trap.message } */
#define failure_trap(trap) (failure_push(trap), setjmp((trap)->jump))
void failure_push(FailureTrap *trap);
void failure_release(FailureTrap *trap);

/* ======================================================================= support/files.c
 * Files are read whole or mapped. Every failure names the file and the system's reason. */
typedef struct MappedFile {
    const char *path;
    const uint8_t *data; /* NULL only when size is 0 */
    size_t size;
} MappedFile;

MappedFile file_map(Arena *arena, const char *path);                        /* unmapped with the arena */
char *file_read(Arena *arena, const char *path, size_t limit, size_t *size); /* fails above `limit` bytes */
/* All that comes from a pipe or terminal until its end; `name` is for messages. */
char *stream_read(Arena *arena, int fd, const char *name, size_t limit, size_t *size);
bool file_exists(const char *path); /* a failure where the system cannot tell */
bool folder_exists(const char *path); /* likewise; false for what is no folder */

uint64_t hash_bytes(uint64_t seed, const void *bytes, size_t size); /* FNV-1a, 64 bit; seed 0 begins */
double seconds_now(void);                                           /* monotonic clock */

/* The word of `words` (ended by NULL) nearest to `word`, or NULL when none is near enough to be meant. */
const char *nearest_word(const char *word, const char *const *words);
const char *nearest_within(const char *word, const char *const *words, int edits); /* letters put in, out or changed */

/* ======================================================================= support/outputs.c
 * Files that are written, folders for a while, and what is left of both when the program ends early. */
#include "support/outputs.h"

/* ======================================================================= syntax/
 * A spec's text and places in it. Lines and columns count from 1; columns count bytes. */
typedef struct Source {
    const char *path;
    const char *text; /* without a byte order mark, ended by NUL */
    size_t size;
} Source;

typedef struct Place {
    const Source *source; /* NULL: nowhere in a file (a default) */
    int line, column;
    int length; /* bytes to underline; 0 and 1 show one caret */
} Place;

/* --- syntax/diagnostic.c: errors with place, source line and caret; several in one run. */
typedef struct Diagnostics {
    Arena *arena;
    FILE *to; /* NULL: nothing is printed, only counted and kept */
    int errors;
    Text log; /* what was printed, whole */
} Diagnostics;

enum { MAX_DIAGNOSTICS = 20 };

Diagnostics diagnostics_new(Arena *arena, FILE *to);
void diagnose(Diagnostics *to, Place at, const char *format, ...) __attribute__((format(printf, 3, 4)));
void diagnose_note(Diagnostics *to, Place at, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* --- syntax/ast.c: the tree as written; no meaning yet. */
typedef enum ExprKind {
    EXPR_INTEGER,
    EXPR_REAL,
    EXPR_NAME,
    EXPR_SQRT,
    EXPR_NEGATE,
    EXPR_ADD,
    EXPR_SUB,
    EXPR_MUL,
    EXPR_DIV
} ExprKind;

typedef struct Expr {
    ExprKind kind;
    Place place;
    int depth; /* of this tree, limited, so that walks may recurse */
    int64_t integer;
    double real;
    const char *text; /* EXPR_NAME: the name; numbers: as written */
    struct Expr *left, *right;
} Expr;

typedef enum ValueKind { VALUE_EXPR, VALUE_STRING, VALUE_RANGE } ValueKind; /* a word is an EXPR_NAME until resolve */

typedef struct Value {
    ValueKind kind;
    Place place;
    Expr *expr, *until; /* VALUE_RANGE: expr .. until */
    const char *string;
    struct Value *next;
} Value;

typedef enum Relation { RELATION_NONE, RELATION_EQUAL, RELATION_AT_MOST } Relation;

typedef struct Item {
    Place place;      /* of its name */
    const char *name;
    bool quoted;      /* the name is a string: a line of `weights` */
    bool is_let;      /* let NAME = EXPR; the expression is the only value */
    Relation relation;
    Value *values;
    bool has_block;
    Place block_end;  /* of the closing brace */
    struct Item *items; /* in the block */
    struct Item *next;
} Item;

typedef struct Comment {
    Place place;
    const char *text; /* from '#' to the end of the line, trailing space cut */
    struct Comment *next;
} Comment;

typedef struct Ast {
    Source *source;
    Item *items;
    Comment *comments; /* in the order of the source; fmt puts them back */
} Ast;

enum { MAX_NESTING = 64, MAX_EXPR_DEPTH = 100, MAX_SPEC_BYTES = 1 << 20 };

Source *source_read(Arena *arena, const char *path);
Source *source_from_input(Arena *arena); /* standard input */
Source *source_from_text(Arena *arena, const char *path, const char *text, size_t size);
Ast *parse(Arena *arena, Source *source, Diagnostics *diagnostics); /* parser.y; look at diagnostics->errors */
void ast_print(FILE *to, const Ast *ast);                           /* --dump=ast */
char *ast_format(Arena *arena, const Ast *ast);                     /* attnc fmt: idempotent, keeps comments */


/* ======================================================================= io/
 * Tensors as files have them. Everything read here is distrusted: sizes, offsets, names and types
 * are checked before use, with 64-bit checked arithmetic; a failure names file, tensor and reason. */
typedef enum Dtype {
    DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_F64, DTYPE_I64, DTYPE_I32, DTYPE_I16, DTYPE_I8, DTYPE_U8, DTYPE_BOOL,
    DTYPE_COUNT
} Dtype;

const char *dtype_name(Dtype dtype); /* "F32", as safetensors spells it */
size_t dtype_bytes(Dtype dtype);
bool dtype_is_float(Dtype dtype);

enum { MAX_RANK = 8 };

typedef struct Shape {
    int rank;
    int64_t dims[MAX_RANK];
} Shape;

const char *shape_text(Arena *arena, Shape shape);  /* "[384, 1536]" */
bool shape_elements(Shape shape, int64_t *elements); /* false on overflow */
bool shape_equal(Shape a, Shape b);

typedef struct FileTensor {
    const char *name;
    const char *path; /* the file it stands in */
    Dtype dtype;
    Shape shape;
    const uint8_t *data; /* little-endian, row-major, as long as shape and dtype say; no alignment is promised */
    size_t bytes;
} FileTensor;

typedef struct TensorFile {
    FileTensor *tensors; /* sorted by name, names unique */
    size_t count;
    const char **names;  /* the same names, ended by NULL, for nearest_word */
    const char *path;    /* as the user gave it */
} TensorFile;

/* --- io/foreign.c: what a file that is neither safetensors nor .npy seems to be, and what to do for weights or, with
 * `array`, for an input: "a GGUF file; save …". NULL where its first bytes do not tell. */
const char *foreign_kind(Arena *arena, MappedFile file, bool array);
#define NOT_QUANTIZED "a quantized file is not read: save it as float32, float16 or bfloat16"

/* --- io/safetensors.c: PATH is a .safetensors file, a .index.json that lists shards (resolved beside it,
 * no folder may be left), a folder with model.safetensors or its index, or several of these joined by commas. */
TensorFile *safetensors_open(Arena *arena, const char *path);
const FileTensor *tensor_find(const TensorFile *file, const char *name); /* or NULL */
void tensor_to_f32(const FileTensor *tensor, int64_t first, int64_t count, float *out); /* any float or integer dtype */
/* Writes f32 tensors as one .safetensors file, in the order given. */
typedef struct NamedTensor {
    const char *name;
    Shape shape;
    const float *data;
} NamedTensor;
void safetensors_write(Arena *arena, const char *path, const NamedTensor *tensors, size_t count);

/* --- io/npy.c: .npy versions 1 to 3, C order, little-endian (or one byte an item). */
typedef struct NpyArray {
    const char *path;
    Dtype dtype;
    Shape shape;
    const uint8_t *data;
} NpyArray;
NpyArray npy_read(Arena *arena, const char *path);
double npy_real(const NpyArray *array, int64_t index);     /* any dtype */
int64_t npy_integer(const NpyArray *array, int64_t index); /* integer dtypes only, else a failure */
void npy_write(Arena *arena, const char *path, Dtype dtype, Shape shape, const void *data);

/* ======================================================================= model/
 * A Model is a spec with every default filled in, every number checked and every weight named. */
#define UNSET (-1) /* a field that no level states and whose default depends on others */

enum { INPUT_TOKENS, INPUT_FEATURES, INPUT_PATCHES };
typedef enum PositionKind {
    POSITION_NONE,
    POSITION_SINUSOIDAL,
    POSITION_LEARNED,
    POSITION_ROPE,
    POSITION_ALIBI,
    POSITION_RELATIVE
} PositionKind;
typedef enum Sinusoid { SINUSOID_INTERLEAVED, SINUSOID_HALVES, SINUSOID_FAIRSEQ } Sinusoid;
typedef enum RopeScaling { ROPE_PLAIN, ROPE_LINEAR, ROPE_LLAMA3, ROPE_YARN, ROPE_LONGROPE } RopeScaling;
typedef enum NormKind { NORM_NONE, NORM_LAYERNORM, NORM_RMSNORM } NormKind;
typedef enum NormPlace { PLACE_PRE, PLACE_POST, PLACE_AFTER, PLACE_BOTH, PLACE_NONE } NormPlace;
enum { BIAS_UNSAID, BIAS_ALL, BIAS_NONE };
typedef enum ScoreKind { SCORE_SCALED_DOT, SCORE_DOT, SCORE_GENERAL, SCORE_ADDITIVE } ScoreKind;
typedef enum Activation {
    ACTIVATION_RELU,
    ACTIVATION_GELU,
    ACTIVATION_GELU_TANH,
    ACTIVATION_SILU,
    ACTIVATION_RELU2,
    ACTIVATION_QUICK_GELU,
    ACTIVATION_TANH,
} Activation;
typedef enum PoolKind { POOL_NONE, POOL_MEAN, POOL_CLS, POOL_MAX, POOL_LAST } PoolKind;

/* A number of rows: exactly n, or given at the call and 1 to n. n is 0 where there is none. */
typedef struct Length {
    int64_t n;
    bool exact;
} Length;

typedef struct Norm {
    NormKind kind; /* NORM_NONE: no norm here */
    double eps;
    bool plus_one, bias;
} Norm;

typedef struct Position {
    PositionKind kind;
    Sinusoid sinusoid;
    int64_t offset;
    int64_t rope_width; /* columns of a head that are rotated; even */
    bool rope_interleaved;
    double theta;
    RopeScaling scaling;
    double factor, low, high, beta_fast, beta_slow, attention_factor;
    bool untruncated;
    int64_t original;
    const double *short_factors, *long_factors; /* rope_width / 2 each */
    double alibi_max;
    bool alibi_scaled;
    int64_t buckets, distance;
    bool per_layer, bidirectional;
} Position;

/* Widths are of the rows that come in; heads side by side give heads * value_dim columns. */
typedef struct Attention {
    bool cross;
    int64_t heads, kv_heads, head_dim, value_dim;
    int64_t query_width, key_width, value_width, output_width; /* output_width: of what this sublayer gives */
    bool projected, has_output;
    bool bias_q, bias_k, bias_v, bias_o;
    Norm qk_norm;
    bool qk_norm_all_heads, qk_norm_weight_per_head;
    ScoreKind score;
    int64_t d_score;
    double scale, softcap; /* softcap 0: off */
    bool sink_learned;
    int64_t sink;
    bool mask_causal, mask_padding, mask_prefix, mask_given;
    int64_t window; /* 0: none */
    Position position;
    bool exported; /* its weights are an output */
    const int64_t *exported_heads;
    int64_t n_exported_heads;
} Attention;

typedef struct Ffn {
    int64_t d_ff;
    Activation activation;
    bool gated, bias_up, bias_gate, bias_down;
} Ffn;

typedef enum SublayerKind { SUBLAYER_ATTENTION, SUBLAYER_FFN } SublayerKind;

typedef struct Sublayer {
    SublayerKind kind;
    Place place;
    const char *name;       /* in tensor names: attention, cross_attention, ffn, ffn2 … */
    Norm norm_in, norm_out; /* on what comes in; on what goes out */
    bool norm_out_on_sum;   /* post: the norm is over x + f(x), not over f(x) */
    bool residual;
    double residual_scale;
    Attention attention;
    Ffn ffn;
} Sublayer;

typedef struct Layer {
    Place place;
    Sublayer *sublayers;
    int count;
    bool parallel, shared_norm;
    int64_t weights_of; /* the layer whose weights these are: its own index, or the first of a shared run */
} Layer;

typedef struct Stack {
    const char *name; /* encoder, decoder */
    Place place;
    bool is_decoder;
    Length seq;
    int input;
    int64_t vocab;
    int64_t image_height, image_width, patch;
    bool class_token, distillation_token;
    double embedding_scale;
    int64_t segments, embedding_width; /* embedding_width != d_model: a projection follows */
    bool embedding_projected, embedding_projection_bias;
    Norm embedding_norm;
    Position position;      /* what is added to the embedding */
    Position relative;      /* the table of relative positions that layers share; POSITION_NONE without one */
    int64_t relative_heads; /* its heads */
    Layer *layers;
    int64_t n_layers;
    int64_t hidden_width; /* of what comes out: d_model, or heads * value_dim behind `output none` */
    int64_t pattern; /* layers after which the sequence of layers repeats: what --small keeps whole */
    Norm final_norm;
} Stack;

typedef struct Head {
    Place place;
    bool logits, tied, bias;
    double softcap, scale;
    PoolKind pool;
    bool l2, pooler;
    int64_t classifier;
    bool classifier_bias;
} Head;

/* A line of a `weights` block: how a canonical tensor is found. */
typedef struct SourceName {
    Place place;
    const char *canonical, *from; /* may hold {layer} and end in .* */
    bool transpose, optional;
    bool has_rows;
    int64_t row_begin, row_end;      /* axis 0 of the file's tensor */
    int64_t groups, parts, take,
        take_end; /* axis 0 seen as [groups][parts][rest], parts take..take_end-1 taken; groups 0: not */
} SourceName;

typedef struct Model {
    const char *name;
    Place place;
    Source *source;
    int64_t d_model; /* 0 only in attention alone without it */
    Stack *encoder, *decoder; /* NULL where there is none */
    Sublayer *alone;          /* attention alone; then there is no stack */
    Length queries, keys;
    bool embedding_tied;
    Head head;
    int64_t start, pad; /* -1: none */
    const int64_t *end;
    int64_t n_end;
    bool unroll_full;
    Dtype dtype;
    SourceName *source_names;
    int64_t n_source_names;
    const char **prefixes, **ignored;
    int64_t n_prefixes, n_ignored;
    uint64_t hash; /* of model_print's text without bounds */
} Model;

/* --- model/resolve.c: NULL when diagnostics holds errors. */
Model *resolve(Arena *arena, const Ast *ast, Diagnostics *diagnostics);
Model *model_load(Arena *arena, const char *path); /* read, parse, resolve; prints diagnostics and exits 1 on errors */

/* --- model/source_names.c: matches the name of a tensor against a line's pattern; *layer gets what stood for {layer},
 * *suffix what stood for `*`. */
bool source_name_matches(Arena *arena, const char *pattern, const char *name, const char **layer, const char **suffix);

/* --- model/names.c: why this cannot be a model's name, or NULL. */
const char *model_name_fault(Arena *arena, const char *name);

/* --- model/model_print.c: every resolved number, canonically: whole for --dump=model, and without lengths, unroll and
 * exports, and with numbers of 17 digits, for the hash. */
void model_print(Text *out, const Model *model, bool with_bounds);
const char *norm_kind_name(NormKind kind);
const char *activation_name(Activation activation);
const char *position_kind_name(PositionKind kind);
const char *pool_name(PoolKind kind);

/* --- model/small.c: the same model with at most 4 layers, narrower and shorter; for attnc check --small. */
Model *model_small(Arena *arena, const Model *model);

/* --- model/weights_table.c: the canonical tensors of a model, in the order in which the code reads them. */
typedef struct WeightSpec {
    const char *name;
    Shape shape;             /* matrices are [out][in], as y = W x wants them */
    double mean, deviation;  /* of random weights (--weights random:SEED) */
    bool longer;             /* a position table: a file may have more rows, the first ones are taken */
    Place place;
} WeightSpec;

typedef struct WeightTable {
    WeightSpec *specs;
    size_t count;
    const WeightSpec **by_name; /* the same, sorted; NULL in a table that weights_table did not make */
} WeightTable;

WeightTable weights_table(Arena *arena, const Model *model);
/* --- model/source_names.c: whether a line's pattern matches a tensor of the table. */
bool source_name_speaks(Arena *arena, const char *pattern, const WeightTable *table);
const WeightSpec *weight_spec_find(const WeightTable *table, const char *name);
/* The name of a layer's tensor, its own or that of the layer it shares with: "encoder.layers.3.ffn.up.weight". */
char *layer_weight_name(Arena *arena, const Stack *stack, const Layer *layer, const Sublayer *sublayer,
                        const char *what);
/* The token table of a stack: one name for both stacks when the embedding is tied. */
const char *token_table_name(Arena *arena, const Model *model, const Stack *stack);

/* ======================================================================= io/weights.c
 * A model's weights in memory: found in a file by canonical or source names, or drawn from a seed. */
typedef struct Weights {
    const WeightTable *table;
    const float **data; /* one array a spec of the table; a learned position table is cut to the spec's rows */
} Weights;

/* What stderr is told of tensors of the file that nothing asks for: nothing, how many and which, a line each. */
typedef enum UnusedReport { UNUSED_UNSAID, UNUSED_SUMMED_UP, UNUSED_LISTED } UnusedReport;

/* SOURCE is what safetensors_open takes, or "random:SEED". What the model reads must be floating-point numbers. */
Weights *weights_load(Arena *arena, const Model *model, const WeightTable *table, const char *source,
                      UnusedReport unused);
/* Which tensors of the file `table` asks for, by their index; *absent grows by those that the file lacks. */
const bool *weights_claimed(Arena *arena, const Model *model, const WeightTable *table, const TensorFile *file,
                            size_t *absent);
/* Whether a pattern of `ignore` speaks of NAME: {layer} stands for a number, a final `*` for whatever follows. */
bool source_pattern_covers(const char *pattern, const char *name);
/* "`layers.{layer}.bias` (12), `odd`": the names, those that differ in numbers alone as one. */
const char *tensor_names_summary(Arena *arena, const char *const *names, size_t count);
/* The normal numbers behind random weights: the same on every machine for the same seed and name. */
void random_normal(uint64_t seed, const char *name, double mean, double deviation, int64_t count, float *out);

/* ======================================================================= ir/
 * A Module is the weights of a model and the Graphs over them. Tensors are SSA: written once, by the
 * op before all that read them. */
typedef enum OpKind {
#define OP(name, least, most, help) OP_##name,
#include "ir/ops.def"
    OP_COUNT
} OpKind;

enum { MAX_OP_INPUTS = 4, NO_TENSOR = -1 };

/* A number of rows: constant, or a symbol of the graph with a bound. A symbol equals only itself. */
typedef struct Dim {
    int symbol; /* 0: constant */
    int64_t n;  /* the constant, or the bound */
} Dim;

typedef struct Symbol {
    const char *name; /* rows, src, tgt, queries, keys; past, total: rows that a state holds before and after a call */
    int64_t least, bound;
} Symbol;

/* How a derived tensor is computed, in double (ir/derived.c). */
typedef enum DerivedKind {
    DERIVED_NONE,
    DERIVED_SINUSOIDS,
    DERIVED_ROPE_COS,
    DERIVED_ROPE_SIN,
    DERIVED_SLOPES,
    DERIVED_RELATIVE
} DerivedKind;

typedef enum TensorKind { TENSOR_INPUT, TENSOR_STATE, TENSOR_WEIGHT, TENSOR_DERIVED, TENSOR_VALUE } TensorKind;

typedef struct Tensor {
    TensorKind kind;
    const char *name;
    Dtype dtype;
    int rank;
    Dim dims[3];
    Place place;
    int op;     /* TENSOR_VALUE: the op that writes it */
    int weight; /* TENSOR_WEIGHT: index in the weight table; TENSOR_DERIVED: index in Module.derived */
} Tensor;

typedef struct Derived {
    DerivedKind kind;
    const char *name;
    Shape shape;
    const Position *position;
    int64_t rows;       /* the bound that the table serves */
    int64_t heads;
    int source;         /* DERIVED_RELATIVE: the weight (bucket table) it is gathered from */
    double alibi_scale; /* DERIVED_SLOPES */
} Derived;

typedef struct OpAttributes {
    int64_t heads, kv_heads, head_dim, offset, width, window, sink, groups, patch;
    int past; /* symbol of the rows before row 0; 0: there are none */
    double scale, cap, eps;
    bool plus_one, interleaved, causal, has_mask, has_prefix, has_sink;
    Activation activation;
    PoolKind pool;
} OpAttributes;

typedef struct Op {
    OpKind kind;
    int inputs[MAX_OP_INPUTS];
    int n_inputs;
    int result;
    OpAttributes a;
    Place place;
    const char *where; /* "encoder layer 3 attention", for comments and messages */
} Op;

typedef struct GraphInput {
    const char *name; /* tokens, segments, features … as the command line has it */
    int tensor;
    bool optional;  /* absent: zeros */
    bool of_source; /* its rows are those of the source, or of the keys of attention alone */
    int64_t most;   /* prefix_length: the greatest that it may be, the bound of the rows that it counts; others: 0 */
} GraphInput;

/* Keys or values that outlive a call: read from `in`, and afterwards `out`. One of them is NO_TENSOR where a graph
 * only makes them (the source's, by encode) or only reads them. The same name in two graphs is the same state. */
typedef struct GraphState {
    const char *name; /* decoder.layers.0.attention.keys */
    int in, out;
    bool of_source;
} GraphState;

typedef struct GraphOutput {
    const char *name; /* hidden, pooled, logits, encoder_hidden, attention … */
    int tensor;
    int layer;            /* of an attention map; else -1 */
    const int64_t *heads; /* of an attention map: the exported ones */
    int64_t n_heads;
} GraphOutput;

enum { MAX_GRAPH_INPUTS = 8 };

typedef struct Graph {
    const char *name; /* forward, encode, decode */
    Tensor *tensors;
    int n_tensors, room_tensors;
    Op *ops;
    int n_ops, room_ops;
    Symbol symbols[4]; /* index symbol - 1 */
    int n_symbols;
    GraphInput inputs[MAX_GRAPH_INPUTS];
    int n_inputs;
    GraphOutput *outputs;
    int n_outputs, room_outputs;
    GraphState *states;
    int n_states, room_states;
} Graph;

typedef struct Module {
    const Model *model;
    WeightTable weights;
    Derived *derived;
    int n_derived;
    Graph *forward; /* whole sequences at once; with an encoder and a decoder: source and target */
    Graph *encode;  /* a source to its hidden rows and to the keys and values of cross attention; NULL: none of both */
    Graph *decode;  /* appends rows to a state: any number of them (a prefill), or one (a step); NULL: no decoder */
    const char *no_decode; /* why a model with a decoder has no `decode` */
} Module;

/* --- ir/build.c */
Module *build(Arena *arena, const Model *model);
/* --- ir/module.c: growing a graph, and finding things in it. */
int graph_tensor(Arena *arena, Graph *graph, Tensor tensor);
int graph_op(Arena *arena, Graph *graph, Op op, Tensor result); /* returns the result's tensor */
void graph_output(Arena *arena, Graph *graph, GraphOutput output);
void graph_state(Arena *arena, Graph *graph, GraphState state);
bool dim_equal(Dim a, Dim b);
/* A number of rows, at least `from` and below `to`, beyond which all angles are others (longrope); 0: none. A state may
 * not be carried across it. */
int64_t graph_crossing(const Graph *graph, int64_t from, int64_t to);
const char *op_name(OpKind kind);
/* --- ir/verify.c: a `bug` when the graph breaks a rule. Run on what the builder made, which no pass changes: they read
 * graphs and make plans. `after` names in the message who made the graph. */
void verify(const Module *module, const Graph *graph, const char *after);
/* --- ir/print.c: --dump=graph */
void graph_print(Text *out, const Module *module, const Graph *graph);
/* --- ir/derived.c: fills a derived tensor; `source` is the table that DERIVED_RELATIVE gathers from. */
void derived_fill(const Derived *derived, const float *source, double *out);

/* ======================================================================= interp/interp.c
 * Runs a graph as built, before any pass: plain loops in double over one sequence. */
#include "interp/interp.h"

/* ======================================================================= passes/
 * plan.h has the types: a Program is a Plan for each graph of a module, over one set of packed weights and caches; a
 * Plan is a straight list of steps over buffers, everything with constant strides and offsets. */
#include "passes/plan.h"

/* --- passes/fuse.c: Graph -> Plan; refuses (exit 3, with the place) what cannot be emitted yet. */
Plan *fuse(Arena *arena, Program *program, const Graph *graph);
/* --- passes/layout.c: offsets of the packed weights, and of the caches in a state and a source. */
void layout(Program *program);
/* --- passes/memory.c: offsets of the buffers, by liveness. */
void plan_memory(Arena *arena, Plan *plan);
/* --- passes/plan.c: what every pass asks; --dump=plan. */
int program_packed(Arena *arena, Program *program, Packed packed);
int program_cache(Arena *arena, Program *program, Cache cache); /* the one of that name, or a new one */
int plan_buffer(Arena *arena, Plan *plan, Buffer buffer);
void plan_step(Arena *arena, Plan *plan, Step step);
const char *step_kind_name(StepKind kind); /* "gemm" */
int64_t round_up(int64_t n, int64_t to);
int64_t ceil_div(int64_t n, int64_t by);
void program_print(Text *out, const Program *program);
/* --- passes/cost.c: for one sequence: 2 x multiply-adds of matrix products and visible scores; bytes of weights, keys
 * and values that a step reads and of rows that it reads and writes. */
typedef struct CallRows {
    int64_t rows, source, past; /* of the sequence; of its source or keys; in the state before the call */
} CallRows;

/* n rows, and a source or keys of as many, within the bounds. */
CallRows call_rows(const Plan *plan, int64_t n);
Length call_bound(const Plan *plan); /* which n make a difference: all up to that, or that one */
int64_t step_rows(const Plan *plan, const Step *step, const CallRows *call);
double step_flops(const Plan *plan, const Step *step, const CallRows *call);
double step_bytes(const Plan *plan, const Step *step, const CallRows *call);
/* What a step costs in multiply-adds of a product, about: for each of its rows; attention for each row and key. */
int64_t step_work(const Step *step);
/* --- passes/passes.c: fuse, memory, layout, in this order. */
Program *plan_model(Arena *arena, const Module *module);

/* ======================================================================= io/packed.c
 * NAME.attnw: the weights in the layout of a Program, with a header that says of which model. */
/* `out`: packed->room floats. */
void packed_fill(const Program *program, const Packed *packed, const Weights *weights, float *out);
uint64_t packed_layout_hash(const Program *program); /* of every packed tensor's name, place and shape */
void packed_write(Arena *arena, const char *path, const Program *program, const Weights *weights);
uint8_t *packed_bytes(Arena *arena, const Program *program, const Weights *weights, size_t *size); /* in memory */
bool packed_is(const char *path); /* whether a file begins as .attnw does */
/* The canonical weights back; a file of another model or for other bounds is a failure. `verify`: its checksum too. */
Weights *packed_read(Arena *arena, const Program *program, const char *path, bool verify);

/* ======================================================================= emit/file.c
 * The C of a program, for several targets in one file. */
typedef struct EmitOptions {
    const char *const *targets; /* names of isa tables; the file prefers the widest */
    int n_targets;
    const char *command;        /* the command line, paths by base name; for the head comment */
    uint64_t layout_hash;       /* packed_layout_hash */
    const uint8_t *embedded;    /* the bytes of the .attnw, to stand in the C; or NULL */
    size_t embedded_bytes;
    bool loops;                 /* no sequence gets code without loops, even where that pays */
    bool serves;                /* the driver is a program that answers calls, for another machine */
    bool incbin;                /* the weights come from NAME_weights.S instead */
} EmitOptions;

typedef struct EntrySizes {
    int64_t workspace_bytes, scratch_bytes; /* a call needs workspace_bytes + threads * scratch_bytes */
    int64_t control_bytes;                  /* of the workspace, in front of the plan's buffers */
} EntrySizes;

/* A stretch of the C that has a name of its own: a kernel's functions, or what stands between two kernels. */
typedef struct CodePart {
    const char *target; /* NULL: of all targets */
    const char *kind;   /* of a kernel: its template; else helpers, steps or shared */
    const char *name;   /* of a kernel without the model's and the target's; steps: of the graph */
    size_t bytes;
} CodePart;

typedef struct Emitted {
    const char *c, *h;
    const char *assembly; /* NAME_weights.S with `incbin`, else NULL */
    const char *driver; /* through which attnc itself calls the code: the same entry for every model */
    size_t c_bytes, h_bytes;
    const CodePart *parts; /* one after another they are all of the C but embedded weights */
    int n_parts;
    EntrySizes forward, encode, decode;
    int64_t state_bytes, source_bytes;
} Emitted;

Emitted emit(Arena *arena, const Program *program, const EmitOptions *options);

/* ======================================================================= emit/targets.c */
enum { MOST_TARGETS = 16 };
/* The targets of the processor that attnc itself is built for, least first, whether or not this machine has them; not
 * those that are there on request alone. */
const char *const *targets_here(Arena *arena, int *n);
bool target_is_base(const char *name); /* every machine of that processor has it, so that nothing is to be probed */
void target_require(Arena *arena, const char *name); /* a failure, EXIT_CANNOT, when there is no such target */
const char *target_names(Arena *arena, const char *last); /* "scalar, avx2 and neon", where `last` is " and " */

#endif
