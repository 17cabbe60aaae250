/* attnc.h: the map of the compiler, with the types that its stages hand to each other.
 *
 * It has the types that cross the border of a room, and the prototypes under the file that owns them, in the order in
 * which data flows:
 *
 *   support -> syntax -> formats -> rules -> model -> ir -> rewrite -> plan -> weights -> interp -> targets -> lower
 *   -> emit -> pipeline -> restate -> import -> engine -> check -> quantize -> project -> package -> embed -> commands
 *
 * A file uses its own room and earlier rooms, never a later one, and no files use each other in a circle. A room with
 * many declarations has them in a header that is included below in its place; headers that only the files of one room
 * share are not included. pipeline.c is the compiler in one function. The rooms after it use it and have headers of
 * their own: restate/restate.h (a spec with other precisions), import/import.h, engine/engine.h (models that run),
 * check/check.h (compiled C against the interpreter), quantize/quantize.h (a precision for each matrix within a bound),
 * project/project.h (programs around models), package/package.h (packages of models), embed/embed.h (vectors of the
 * texts of files) and commands/commands.h. */
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
 * Each stage allocates from an arena, which is freed as a whole. Memory is zeroed. No function returns NULL, with the
 * exception of checked_malloc, since out_of_memory() ends the program. */
typedef struct Arena Arena;

Arena *arena_new(void);
void arena_free(Arena *arena);
void arena_clear(Arena *arena);                /* frees everything in the arena, which may be filled again */
void *arena_alloc(Arena *arena, size_t bytes); /* aligned to 64 bytes when bytes >= 64, else to 16 */
void *arena_array(Arena *arena, size_t count, size_t size); /* out_of_memory() where count * size overflows */
/* Returns `items` with room for at least one element more than `count`. If *room is used up, the array is copied and
 * *room doubled; the new room is not zeroed. */
void *arena_grow(Arena *arena, void *items, int count, int *room, size_t size);
char *arena_copy(Arena *arena, const char *text, size_t size); /* a copy that ends in NUL */
char *arena_printf(Arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Calls run(with) when the arena is cleared or freed. */
void arena_on_free(Arena *arena, void (*run)(void *), void *with);

/* The compiler allocates from the system only through this function. It returns NULL when memory is exhausted and, for
 * tests, at the n-th call if the environment variable ATTNC_FAIL_ALLOC is n. */
void *checked_malloc(size_t bytes);

/* A growing text or array of bytes in an arena; `data` always ends in NUL. */
typedef struct Text {
    Arena *arena;
    char *data;
    size_t size, room;
} Text;

Text text_new(Arena *arena);
void text_reserve(Text *text, size_t size); /* makes room for at least `size` more bytes */
void text_add(Text *text, const char *bytes, size_t size);
void text_add_int(Text *text, int64_t value);
void text_vprintf(Text *text, const char *format, va_list args);
void text_printf(Text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Returns `text` with values in place of its words. `words` has each word, such as @NAME@, and its value after it; NULL
 * ends them. */
const char *text_filled(Arena *arena, const char *text, const char *const *words);

/* Arithmetic on sizes that may come from a file. On overflow they return false, and *out is unspecified. */
bool mul_fits(int64_t a, int64_t b, int64_t *out);
bool add_fits(int64_t a, int64_t b, int64_t *out);

/* ======================================================================= support/elementary.c
 * Functions for numbers that are written to files: bit-identical on every machine. log and pow require x > 0. */
double portable_log(double x);
double portable_exp(double x);
double portable_pow(double x, double y);
double portable_sin(double x);
double portable_cos(double x);

/* ======================================================================= support/numbers.c
 * The shortest decimal that reads back as the same double, in the form that a spec has: 16, 0.1, 1e-5. */
const char *number_text(Arena *arena, double value);
const char *counted(Arena *arena, int64_t n, const char *noun); /* "1 query", "2 queries" */
/* Whether a number is 0 in f32, or finite and normal. */
double f32_written(float value); /* the double with the fewest digits that rounds to this float */
bool f32_holds(double value);
double sort_median(double *values, int n); /* sorts n > 0 values, the least first; the one in the middle */

/* ======================================================================= support/shape.c
 * Element types and shapes of tensors. */
typedef enum Dtype {
    DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_F64, DTYPE_I64, DTYPE_I32, DTYPE_I16, DTYPE_I8, DTYPE_U8, DTYPE_BOOL,
    DTYPE_I4, /* of packed weights alone, two in a byte */
    DTYPE_F8_E4M3, DTYPE_F8_E5M2, /* of files alone; at the end, since the hash of a layout has these numbers */
    DTYPE_COUNT
} Dtype;

const char *dtype_name(Dtype dtype); /* "F32", as safetensors spells it */
size_t dtype_bytes(Dtype dtype); /* of a number; no DTYPE_I4 */
size_t dtype_bits(Dtype dtype);
const char *dtype_c_type(Dtype dtype); /* "float"; of types that C lacks the integer with their bits */
bool dtype_is_float(Dtype dtype);
bool dtype_has_scales(Dtype dtype); /* integers that stand for weights: I8 and I4 */
bool dtype_of_weights(Dtype dtype); /* in which weights can be stored: a float, or integers with scales */

enum { MAX_RANK = 8 };

typedef struct Shape {
    int rank;
    int64_t dims[MAX_RANK];
} Shape;

const char *shape_text(Arena *arena, Shape shape);  /* "[384, 1536]" */
bool shape_elements(Shape shape, int64_t *elements); /* false on overflow */
bool shape_equal(Shape a, Shape b);
int64_t round_up(int64_t n, int64_t to); /* the next multiple of `to` */
int64_t ceil_div(int64_t n, int64_t by);

/* ======================================================================= support/utf8.c
 * The length in bytes of the UTF-8 character at `at`, where `left` >= 1 bytes remain; 0 where no character begins. */
size_t utf8_bytes(const unsigned char *at, size_t left);
bool utf8_is_valid(const char *text, size_t size); /* whether all of it is characters of UTF-8 */
/* The length in bytes of the control character at `text`, where `left` >= 1 bytes remain; 0 where another character or
 * none begins. Control characters are C0, DEL and C1 (ECMA-48). C1 exists as a single byte, which a terminal without
 * UTF-8 obeys, and as U+0080 to U+009F. */
size_t utf8_control(const char *text, size_t left);
bool text_has_control(const char *text);
/* Replaces each byte of a control character, except newline and tab, by `?`. */
void text_disarm(char *text, size_t size);
void text_disarm_line(char *text, size_t size); /* newlines and tabs, too */
/* The length in bytes of the beginning of a text that has at most `most` bytes and no part of a character. */
size_t utf8_cut(const char *text, size_t most);
/* The two arguments of `%.*s` for this beginning. */
#define CUT(most, text) (int)utf8_cut(text, most), text
bool text_ends(const char *text, const char *ending); /* whether the text ends with this ending */

/* ======================================================================= support/report.c
 * Failures, diagnostics, notes and progress, which stages report to the program. */
#include "support/report.h"

/* ======================================================================= support/failure.c
 * The three ways to end early, and the exit codes. A message is one line without its newline. A failure jumps to the
 * innermost trap, which tests and fuzzers set. Without a trap it is reported as "attnc: error: MESSAGE", and the
 * program exits. In both cases, output files that are not committed are removed. */
enum { EXIT_FINE = 0, EXIT_USER = 1, EXIT_USAGE = 2, EXIT_CANNOT = 3, EXIT_BUG = 4, EXIT_MEMORY = 5 };

_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2))); /* the user's fault: exit 1 */
_Noreturn void fail_status(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The message ends with the text of the errno value `error`; exit 5 for ENOMEM, else 1. */
_Noreturn void fail_system(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void bug(const char *format, ...) __attribute__((format(printf, 1, 2))); /* a fault of attnc: exit 4 */
/* A fault of what attnc carries in itself: the `kind` is "template" or "table". */
_Noreturn void bug_at(const char *kind, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
_Noreturn void out_of_memory(void); /* exit 5 */

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
void failure_cleanup(void (*run)(void)); /* `run` is called first at every failure; replaces the previous function */

/* ======================================================================= support/files.c, support/mapping.c
 * Reading and mapping files. Every failure names the file and the system's reason. A pipe, a socket, a device or a
 * folder in place of a file is a failure at once. */
typedef struct MappedFile {
    const char *path;
    const uint8_t *data; /* NULL only when size is 0 */
    size_t size;
} MappedFile;

/* Unmapped with the arena. If another program cuts the file before, the program ends with a message at the first read
 * of what is no longer there. */
MappedFile file_map(Arena *arena, const char *path);
/* For a handler of SIGBUS: ends the program where the address lies in a mapped file. */
void mapping_lost(const void *address);
int file_open(const char *path, size_t *size);                               /* the descriptor of a regular file */
bool file_begins(const char *path, const void *bytes, size_t size);          /* false of what is no file, too */
char *file_read(Arena *arena, const char *path, size_t limit, size_t *size); /* at most `limit` bytes, else a failure */
/* Reads a pipe or a terminal to its end; `name` is for messages. */
char *stream_read(Arena *arena, int fd, const char *name, size_t limit, size_t *size);
const char *path_name(const char *path); /* what follows its last slash */
bool file_exists(const char *path); /* a failure where the system cannot say */
bool folder_exists(const char *path); /* likewise; false for a file */

uint64_t hash_bytes(uint64_t seed, const void *bytes, size_t size); /* 64-bit FNV-1a; seed 0 begins a hash */
double seconds_now(void);                                           /* of a monotonic clock */

/* The word of the NULL-ended list `words` that `word` is probably a slip of, or NULL. nearest_within allows at most
 * `edits` letters inserted, deleted, replaced or swapped with a neighbour. */
const char *nearest_word(const char *word, const char *const *words);
const char *nearest_within(const char *word, const char *const *words, int edits);

/* ======================================================================= generated by scripts/embed.c
 * Templates, target tables, pages and the runtime's files, which are part of the program. */
const char *embedded_text(const char *name); /* by base name; NULL when there is no such file */
const char *embedded_name(int i);            /* NULL after the last */
/* --- support/files.c: as embedded_text; a name without a file is a bug. */
const char *embedded_file(const char *name);
/* Adds a string of JSON and JavaScript, in quotes. The ASCII characters of `numbered` stand there by their numbers. */
void text_quote(Text *out, const char *text, const char *numbered);
void text_quote_bytes(Text *out, const char *text, size_t size, const char *numbered); /* of text [size] */
void text_base64(Text *out, const void *bytes, size_t size); /* adds their digits (RFC 4648, section 4) */

/* ======================================================================= support/outputs.c
 * Files that are written, temporary folders, and the removal of both when the program ends early. */
#include "support/outputs.h"

/* ======================================================================= syntax/
 * The text of a spec, and locations in it. Lines and columns count from 1; a column is a byte. */
typedef struct Source {
    const char *path;
    const char *text; /* without a byte order mark; ends in NUL */
    size_t size;
} Source;

/* A source location. */
typedef struct Location {
    const Source *source; /* NULL: not from a file, as for a default */
    int line, column;
    int length; /* bytes to underline; 0 and 1 show one caret */
} Location;

/* --- syntax/diagnostic.c: errors with location, source line and caret; several in one run. */
bool location_before(Location a, Location b);
const char *line_begin(Location at); /* the beginning of its line, or the end of a text with fewer lines */
typedef struct Diagnostics {
    Arena *arena;
    bool reported; /* false: diagnostics are only counted and logged */
    int errors;
    Text log; /* the text of all diagnostics */
} Diagnostics;

enum { MAX_DIAGNOSTICS = 20 };

Diagnostics diagnostics_new(Arena *arena);   /* reports each error and note as it comes */
Diagnostics diagnostics_quiet(Arena *arena); /* reports nothing */
void diagnose(Diagnostics *to, Location at, const char *format, ...) __attribute__((format(printf, 3, 4)));
void diagnose_note(Diagnostics *to, Location at, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* --- syntax/ast.c: the syntax tree, in which names are not resolved. */
typedef enum ExprKind {
#define EXPR(name, level, spelling) EXPR_##name,
#include "syntax/expr.def"
} ExprKind;

typedef struct Expr {
    ExprKind kind;
    Location location;
    int depth; /* of this subtree; at most MAX_EXPR_DEPTH, so functions may recurse over it */
    int64_t integer;
    double real;
    const char *text; /* a number as it is written; the name of an EXPR_NAME, of a function or of what is indexed */
    struct Expr *left, *right, *third; /* of `if A then B else C`, of a call and of an index in their order */
} Expr;

/* A word is a VALUE_EXPR of an EXPR_NAME until resolve knows its setting. */
typedef enum ValueKind { VALUE_EXPR, VALUE_STRING, VALUE_RANGE, VALUE_RULE, VALUE_TABLE, VALUE_LEARNED } ValueKind;

typedef struct Value {
    ValueKind kind;
    Location location;
    Expr *expr, *until; /* a VALUE_RANGE is expr .. until, and a VALUE_TABLE `table` [until] expr; a VALUE_LEARNED is
                         * [expr] or, where `until` is not NULL, [until][expr] */
    const char *string; /* of a VALUE_RULE: the word before the expression, or "" */
    struct Value *next;
} Value;

typedef enum Relation { RELATION_NONE, RELATION_EQUAL, RELATION_AT_MOST } Relation;

typedef struct Item {
    Location location;      /* of the name */
    const char *name;
    bool quoted;      /* the name is a string, as in a line of `weights` */
    bool is_let;      /* let NAME = EXPR, where the expression is the only value */
    Relation relation;
    Value *values;
    bool has_block;
    Location block_end;  /* of the closing brace */
    struct Item *items; /* those in the block */
    struct Item *next;
} Item;

static inline bool item_is_learned(const Item *item) { /* learned NAME [N], which is a `let` otherwise */
    return item->is_let && item->values->kind == VALUE_LEARNED;
}

typedef struct Comment {
    Location location;
    const char *text; /* from '#' to the end of the line, without trailing spaces */
    struct Comment *next;
} Comment;

typedef struct Ast {
    Source *source;
    Item *items;
    Comment *comments; /* in the order of the source; ast_format puts them back */
} Ast;

enum { MAX_NESTING = 64, MAX_EXPR_DEPTH = 100, MAX_SPEC_BYTES = 1 << 20 };

Source *source_read(Arena *arena, const char *path);
Source *source_from_input(Arena *arena); /* from standard input */
Source *source_from_text(Arena *arena, const char *path, const char *text, size_t size);
Ast *parse(Arena *arena, Source *source, Diagnostics *diagnostics); /* parser.y; errors are in the diagnostics */
void ast_print(Text *out, const Ast *ast);                          /* --dump=ast */
void spec_quote(Text *out, const char *text); /* appends the text as a string of a spec, with its quotes and escapes */
char *ast_format(Arena *arena, const Ast *ast);                     /* attnc fmt; idempotent, keeps comments */

/* ======================================================================= formats/
 * Tensors in files. No file is trusted: sizes, offsets, names and types are checked before use, with checked 64-bit
 * arithmetic, and a failure names the file, the tensor and the reason. */
typedef struct FileTensor {
    const char *name;
    const char *path; /* of the file that holds it */
    const struct BlockFormat *blocks; /* blocks.h; NULL where each number is of `dtype`. Blocks decode to f32 */
    const struct CodedMatrix *coded;  /* coded.h; likewise */
    /* Why the numbers cannot be read, such as "its type `C64` is not read"; NULL where they can. Such a tensor is an
     * error only where it is needed; its dtype may be DTYPE_COUNT, and its bytes 0. */
    const char *unread;
    const int64_t *strides; /* [rank] in numbers, of a view that does not lie by rows; NULL where it does */
    Dtype dtype;
    Shape shape;
    const uint8_t *data; /* row-major, little-endian, of the length that shape and type give; may be unaligned */
    size_t bytes;        /* of all numbers; a view with strides may share them, and then lies in fewer */
} FileTensor;

typedef struct TensorFile {
    FileTensor *tensors; /* sorted by name; no name occurs twice */
    size_t count;
    const char *path;    /* as the user wrote it */
    size_t size;         /* in bytes, of a checkpoint of PyTorch or of all its shards; 0 of others */
} TensorFile;

/* --- formats/foreign.c: recognizes files that are neither safetensors nor .npy by their first bytes. The result says
 * what the file seems to be and what to do instead for weights or, with `array`, for an input, as in "an HDF5 file;
 * save the model …"; it is NULL for an unknown file. */
const char *foreign_kind(Arena *arena, MappedFile file, bool array);
#define NOT_QUANTIZED "this way of quantizing is not understood: save it as float32, float16 or bfloat16"

/* --- formats/tensor_file.c: PATH is a .safetensors or a GGUF file, a checkpoint of PyTorch, an .index.json that lists
 * shards in its own folder, a folder with model.safetensors, pytorch_model.bin or an index of one, or several of these
 * joined by commas. A folder of sentence-transformers stands for its model and for its dense modules, whose tensors get
 * the prefixes dense.0, dense.1 and so on. */
TensorFile *tensor_file_open(Arena *arena, const char *path);
/* --- formats/modules.c */
/* The file or the index of a folder that transformers saved, or NULL; safetensors before a checkpoint of PyTorch. */
const char *folder_weights(Arena *arena, const char *folder);

/* --- formats/safetensors.c */
typedef struct NamedTensor {
    const char *name;
    Shape shape;
    const float *data;
} NamedTensor;
/* Writes f32 tensors as one .safetensors file, in their order. */
void safetensors_write(Arena *arena, const char *path, const NamedTensor *tensors, size_t count);

/* --- formats/tensor.c */
const FileTensor *tensor_find(const TensorFile *file, const char *name); /* or NULL */
bool tensor_types_equal(const FileTensor *a, const FileTensor *b); /* the same bytes are then the same numbers */
/* Converts `count` elements from element `first` on, of any type, to f32; a failure where they cannot be read. */
void tensor_to_f32(const FileTensor *tensor, int64_t first, int64_t count, float *out);
/* Rounds `count` numbers to the dtype, which is one that weights are stored in, and writes them to `out`. */
void tensor_from_f32(Dtype dtype, const float *numbers, int64_t count, void *out);

/* --- formats/npy.c: .npy versions 1 to 3, in C order and little-endian. */
typedef struct NpyArray {
    const char *path;
    Dtype dtype;
    Shape shape;
    const uint8_t *data;
} NpyArray;
NpyArray npy_read(Arena *arena, const char *path);
double npy_real(const NpyArray *array, int64_t index);     /* of any dtype */
int64_t npy_integer(const NpyArray *array, int64_t index); /* a failure unless the dtype is an integer */
void npy_write(Arena *arena, const char *path, Dtype dtype, Shape shape, const void *data);

/* ======================================================================= rules/
 * Rules of pairs: which keys a query sees, and with which scores. */
#include "rules/pairs.h"

/* ======================================================================= model/
 * A Model is a spec in which every default is filled in, every number checked and every weight named. */
#define UNSET (-1) /* a field that no level of the spec sets and whose default depends on other fields */

enum { INPUT_TOKENS, INPUT_FEATURES, INPUT_PATCHES, INPUT_MEL };
typedef enum PositionKind {
    POSITION_NONE,
    POSITION_SINUSOIDAL,
    POSITION_LEARNED,
    POSITION_ROPE,
    POSITION_ALIBI,
    POSITION_RELATIVE,
    POSITION_CONTENT
} PositionKind;
typedef enum Sinusoid { SINUSOID_INTERLEAVED, SINUSOID_HALVES, SINUSOID_FAIRSEQ } Sinusoid;
typedef enum Alibi { ALIBI_EXACT, ALIBI_BF16 } Alibi; /* ALIBI_BF16 rounds positions and biases to bf16 */
typedef enum RopeScaling { ROPE_PLAIN, ROPE_LINEAR, ROPE_LLAMA3, ROPE_YARN, ROPE_LONGROPE } RopeScaling;
typedef enum NormKind {
    NORM_NONE,
#define NORM(name, has_bias, help) NORM_##name,
#include "model/norms.def"
} NormKind;
typedef enum NormPlace { PLACE_PRE, PLACE_POST, PLACE_AFTER, PLACE_BOTH, PLACE_NONE } NormPlace;
enum { BIAS_UNSAID, BIAS_ALL, BIAS_NONE };
typedef enum ScoreKind {
#define SCORE(name, bare, scale, help) SCORE_##name,
#include "model/scores.def"
} ScoreKind;
/* What makes weights of the scores of visible keys: their softmax, the sigmoid of each score, or the scores alone. */
typedef enum Weighing { WEIGHING_SOFTMAX, WEIGHING_SIGMOID, WEIGHING_NONE } Weighing;
typedef enum Activation {
#define ACTIVATION(name, formula, imported, help) ACTIVATION_##name,
#include "model/activations.def"
    ACTIVATION_COUNT, /* from here on it is a formula of the model: the first one, the second one, ... */
    MOST_ACTIVATIONS = ACTIVATION_COUNT + 16
} Activation;
enum { MOST_FORMULAS = MOST_ACTIVATIONS - ACTIVATION_COUNT };
/* IN_tokens, ... and OUT_hidden, ...; model/io.c has what is known of each. An input that io.def does not name has a
 * role from IN_COUNT on, below MOST_INPUTS. */
typedef enum InputRole {
#define INPUT(name, array, dtype, rows, absent, help) IN_##name,
#define OUTPUT(name, help)
#include "model/io.def"
    IN_COUNT
} InputRole;
enum { MOST_INPUTS = IN_COUNT + 8 };
/* Whether the input has the rows of the only stack or of the encoder, which an attention_mask is for. */
static inline bool role_is_masked(InputRole role) {
    return role == IN_tokens || role == IN_source || role == IN_features || role == IN_source_features;
}
/* Whether the input is one that `input rows`, `input number` or `input pairs` states. */
static inline bool role_is_of_rows(InputRole role) { return (int)role >= IN_COUNT; }
typedef enum OutputRole {
#define INPUT(name, array, dtype, rows, absent, help)
#define OUTPUT(name, help) OUT_##name,
#include "model/io.def"
    OUT_COUNT
} OutputRole;
typedef enum PoolKind { POOL_NONE, POOL_MEAN, POOL_CLS, POOL_MAX, POOL_LAST, POOL_CLS_MEAN,
    POOL_CLS_DISTILLATION, POOL_PROBE, POOL_LAST_SKIP, POOL_LAST_TOKEN, POOL_MEAN_SQRT, POOL_WEIGHTED_MEAN } PoolKind;

/* Whether the row of a pool is chosen by the ids of its tokens. */
static inline bool pool_reads_ids(PoolKind kind) { return kind == POOL_LAST_SKIP || kind == POOL_LAST_TOKEN; }

/* A number of rows: exactly n, or 1 to n as given by each call. n is 0 if the model has no such rows. */
typedef struct Length {
    int64_t n;
    bool exact;
} Length;

typedef struct Norm {
    NormKind kind; /* NORM_NONE: there is no norm */
    double eps;
    bool plus_one, bias;
} Norm;

enum { MOST_ROW_INPUTS = 4 };

typedef struct Position {
    PositionKind kind;
    /* The inputs of rows whose integers, below at_rows, are the positions of rows; none: rows count from 0. Where there
     * are several, sections[i] pairs of columns are rotated by input i. */
    InputRole at[MOST_ROW_INPUTS];
    int n_at;
    int64_t at_rows, sections[MOST_ROW_INPUTS];
    Sinusoid sinusoid;
    int64_t offset;
    bool skips;      /* rows of the token `skipped` are not counted */
    int64_t skipped;
    int64_t rope_width; /* how many columns of a head are rotated; even */
    bool rope_interleaved;
    bool grid; /* by the line and the column of a patch; the rows before the patches are not rotated, or have zeros */
    int64_t grid_before, grid_lines, grid_columns;
    double theta;
    RopeScaling scaling;
    double factor, low, high, beta_fast, beta_slow, attention_factor;
    bool untruncated;
    int64_t original;
    const double *short_factors, *long_factors; /* [rope_width / 2] */
    double alibi_max;
    bool alibi_scaled;
    Alibi alibi;
    int64_t buckets, distance;
    bool per_layer, bidirectional;
    bool by_query, by_key; /* of POSITION_CONTENT: whose products with a table's rows are added to scores */
    bool projected, own;   /* the stack has one table, which the layers project by these matrices or by own ones */
    int64_t rows, logarithmic; /* rows of the table; distance up to which its outer half goes, or 0 */
    Norm norm;                 /* of the rows of a projected table */
} Position;

enum { DEFAULT_GROUP = 32 }; /* numbers of a row that share a scale in I4 */

/* How a matrix [N][K] stores its numbers: as floats, or as integers with a scale, and perhaps an offset, for each row
 * or for each `group` neighbours of a row, of which the last ones may be fewer. */
typedef struct WeightType {
    Dtype dtype;
    int group;   /* 0: a row has one scale, or none */
    bool offset; /* a number is scale * integer + offset */
    bool halves; /* scales and offsets of groups are F16 instead of BF16 */
} WeightType;

static inline bool weight_type_equal(WeightType a, WeightType b) {
    return a.dtype == b.dtype && a.group == b.group && a.offset == b.offset && a.halves == b.halves;
}

/* The types in which a part of the model stores its numbers. Position tables, norms and biases are always f32. */
typedef struct Precision {
    WeightType weights; /* of the matrices of products and of token tables */
    Dtype activations;  /* of the rows that products read: I8 beside weights of integers, BF16 beside BF16, or F32 */
    bool smooth;        /* beside activations of I8: a vector of the weights multiplies the rows before */
    int outliers;       /* the numbers of this vector that may be 0; the columns there stay f32 */
    Dtype attention;    /* of the queries, keys and values that are multiplied: F32 or BF16 */
    Dtype cache;        /* of the keys and values that a decoder's attention reads: F32, BF16, F16 or I8 */
} Precision;

/* Whether rows that products read are rounded in the same way. */
static inline bool precision_rows_equal(const Precision *a, const Precision *b) {
    return a->activations == b->activations && a->smooth == b->smooth && a->outliers == b->outliers;
}

static inline bool precision_equal(const Precision *a, const Precision *b) {
    return weight_type_equal(a->weights, b->weights) && precision_rows_equal(a, b) && a->attention == b->attention &&
           a->cache == b->cache;
}

typedef enum RouterKind { ROUTER_SOFTMAX, ROUTER_SIGMOID } RouterKind;

/* A mixture of experts (Shazeer et al. 2017, arXiv:1701.06538): `top` of `count` feed-forwards are chosen for a row. */
typedef struct Experts {
    int64_t count; /* 0: there is one feed-forward */
    int64_t top;
    RouterKind router;
    bool renormalized, bias, corrected;
    double scale;
    int64_t groups, top_groups; /* equal where a row chooses among all experts */
    int64_t shared;             /* the inner width of a feed-forward of all rows, or 0 */
    bool shared_gated;
} Experts;

/* Whose rows queries or keys are. SOURCE: the rows of an encoder, or the keys of attention that crosses alone; OWN: a
 * decoder's, or the rows of attention alone; NONE: of `probe`. */
typedef enum RowsOf { ROWS_OF_NONE, ROWS_OF_OWN, ROWS_OF_SOURCE } RowsOf;

/* query_width, key_width and value_width are the widths of the input rows, and output_width is that of the result. The
 * heads side by side have heads * value_dim columns. */
typedef struct Attention {
    bool cross;
    RowsOf query_rows, key_rows;
    int64_t heads, kv_heads, head_dim, value_dim;
    int64_t query_width, key_width, value_width, output_width;
    bool projected, has_output;
    bool bias_q, bias_k, bias_v, bias_o;
    int64_t latent, latent_rope, latent_query; /* 0: there is none */
    double latent_eps;
    Experts by_head; /* one matrix for each head, with latent */
    Norm qk_norm;
    bool qk_norm_all_heads, qk_norm_weight_per_head, qk_norm_after_rotation;
    Norm inner_norm; /* of the heads side by side, before `output` */
    double clip; /* 0: none */
    ScoreKind score;
    int64_t d_score;
    double scale, softcap; /* softcap 0: none */
    Weighing weighing;
    bool differential;        /* each head subtracts a second softmax, of other queries and keys */
    double differential_init; /* the constant of lambda; UNSET: it depends on the layer */
    double differential_eps;  /* of the norm over each head */
    bool sink_learned;
    int64_t sink;
    bool mask_causal, mask_padding, mask_prefix, mask_given;
    int64_t window; /* 0: none */
    const PairRule *where; /* the condition of `mask where`, or NULL */
    /* Which keys a query sees, by all of these; NULL: all keys. The rule reads the inputs of the model with these
     * roles. */
    const PairRule *visible;
    InputRole visible_roles[MOST_PAIR_INPUTS]; /* first the inputs of `where` */
    int n_visible_roles, n_where_roles;
    const PairRule *rescore; /* the new score of `score EXPR`, or NULL; it reads the inputs with these roles */
    InputRole score_roles[MOST_PAIR_INPUTS];
    int n_score_roles;
    int64_t most_queries, most_keys; /* of `rescore`: positions are below these */
    Position position;
    bool exports_lse; /* of attention alone: the logarithms of the softmax's sums are an output */
    bool exported; /* the attention weights are an output */
    const int64_t *exported_heads;
    int64_t n_exported_heads;
} Attention;

typedef struct Ffn {
    int64_t d_ff;
    Activation activation;
    bool gated, bias_up, bias_gate, bias_down;
    double limit;  /* of gated: the bound of both factors, before the activation; 0: none */
    bool plus_one; /* of gated: 1 is added to the other factor */
    Norm inner_norm; /* of the rows that `down` multiplies */
    Experts experts;
} Ffn;

typedef enum SublayerKind { SUBLAYER_ATTENTION, SUBLAYER_FFN } SublayerKind;

typedef struct Sublayer {
    SublayerKind kind;
    Location location;
    const char *name;       /* as in tensor names: attention, cross_attention, ffn, ffn2 … */
    Norm norm_in, norm_out; /* of the input and of the result */
    bool norm_out_on_sum;   /* norm_out is over x + f(x) (`norm post`), not over f(x) */
    bool residual, residual_learned; /* learned: f(x) is multiplied by a number for each column */
    double residual_scale;
    Precision precision;
    Precision last; /* the same for its last matrix, attention's `output` or ffn's `down` */
    Attention attention;
    Ffn ffn;
} Sublayer;

typedef struct Layer {
    Location location;
    Sublayer *sublayers;
    int count;
    bool parallel, shared_norm;
    int64_t weights_of; /* the layer that owns the weights: this one, or the first of the layers that share them */
} Layer;

/* A convolution over the rows of a sequence, with (kernel - 1) / 2 rows of zeros at both ends. */
typedef struct Convolution {
    Location location;
    int64_t channels, kernel, stride, groups;
    Experts by_group; /* one matrix for each group, where there are several */
    int64_t rows; /* of its result */
    bool bias;
    Activation activation;
} Convolution;

/* How many of these rows, of which there is at least one, have a result. */
static inline int64_t convolution_rows(int64_t rows, int64_t stride) { return (rows - 1) / stride + 1; }

typedef struct Stack {
    const char *name; /* encoder, decoder */
    Location location;
    bool is_decoder;
    int64_t d_model;
    Length seq;
    int input;
    int64_t vocab;
    int64_t image_height, image_width, image_channels;
    int64_t patch, patch_step; /* the side of a square, and the lines and columns from one to the next */
    int64_t registers;
    bool class_token, distillation_token, patch_bias;
    int64_t mel_bins, mel_frames;
    Convolution *convolutions; /* those of `input mel` */
    int n_convolutions;
    Convolution *beside; /* of the rows that the first layer reads, added to its result; or NULL */
    Norm beside_norm;    /* of that sum */
    double embedding_scale;
    int64_t embedding_mask; /* the token with rows of zeros; all others are divided by their share; -1: none */
    int64_t segments, embedding_width; /* where embedding_width is not d_model, a projection follows */
    bool embedding_projected, embedding_projection_bias;
    Norm embedding_norm;
    bool embedding_norm_first; /* before the positions are added */
    Precision precision;    /* of the embedding and of a projection behind it */
    Position position;      /* of the positions that are added to the embedding */
    Position relative;      /* of the table of relative positions that the layers share, or POSITION_NONE */
    int64_t relative_heads; /* of that table */
    Position content;       /* of the table of distances that the layers project, or POSITION_NONE */
    Layer *layers;
    int64_t n_layers;
    int64_t hidden_width; /* columns of the result: d_model, or heads * value_dim after `output none` */
    int64_t pattern; /* the number of layers behind which there are no others; --small keeps at least as many */
    Norm final_norm;
    bool probed;    /* what is resolved is the head's probe, which reads the rows of this stack */
    bool unordered; /* the stack ignores the order of its rows, and the spec does not state `position none` */
} Stack;

/* How many whole squares a side of an image has, and those of `input patches` from top to bottom and left to right. */
static inline int64_t squares_along(int64_t side, int64_t patch, int64_t step) { return (side - patch) / step + 1; }
static inline int64_t patch_lines(const Stack *s) { return squares_along(s->image_height, s->patch, s->patch_step); }
static inline int64_t patch_columns(const Stack *s) { return squares_along(s->image_width, s->patch, s->patch_step); }

/* A projection of the pooled row, f(W x + b). */
typedef struct Dense {
    Location location;
    int64_t width;
    bool bias;
    Activation activation;
} Dense;

typedef struct Head {
    Location location;
    bool logits, tied, bias;
    double softcap, scale;
    PoolKind pool;
    int64_t pool_token;    /* of POOL_LAST_SKIP and POOL_LAST_TOKEN; else -1 */
    bool l2, pooler;
    bool normed;           /* a norm of the pooled row, behind all else that is done to it */
    Activation activation; /* of pooler or of transform */
    bool transform, transform_bias;
    Norm norm;             /* of transform, or of the pooled row */
    Layer *probe;          /* the sublayers of POOL_PROBE, or NULL */
    Dense *dense;          /* behind the pool and the pooler, in their order */
    int64_t n_dense;
    int64_t classifier;
    bool classifier_bias, classifier_rows; /* rows: a projection of every row */
} Head;

/* Rows begin..end-1 of a tensor. */
typedef struct RowRange {
    int64_t begin, end;
} RowRange;

/* A line of a `weights` block, which maps a canonical tensor to its name in a file. */
typedef struct SourceName {
    Location location;
    const char *canonical, *from; /* patterns that may contain {layer} and end in .*; `from` may contain {expert} */
    bool transpose, optional;
    RowRange *rows; /* of the file's tensor, one behind the other; NULL: all */
    int64_t n_rows; /* ranges */
    /* Where groups > 0, the rows are [groups][parts][rest], and parts take..take_end-1 of each group are used. */
    int64_t groups, parts, take, take_end;
} SourceName;

/* A list of token ids. */
typedef struct TokenList {
    int64_t *ids;
    int64_t count;
} TokenList;

/* The words after `length_form` and `early_stopping`, in the order of the constants of attn_generate.h. */
typedef enum LengthForm { LENGTH_GNMT, LENGTH_POWER } LengthForm;
typedef enum EarlyStopping { STOPPING_EXACT, STOPPING_FULL, STOPPING_HEURISTIC, STOPPING_NEVER } EarlyStopping;

#define DEFAULT_LENGTH_PENALTY 0.6 /* of beam search, where neither a spec nor a call states one */

/* The block `generation`: how texts are searched for where a call does not say otherwise. model/generation.def explains
 * the items. A number that is not stated is 0, and a list is empty. */
typedef struct Generation {
    bool stated;
    Location location;
    bool sample;
    double temperature, top_p, min_p, length_penalty, repetition_penalty;
    bool has_length_penalty; /* it may be stated as 0 */
    int64_t top_k, beams, no_repeat_ngram, min_length, max_length, min_new, max_new;
    LengthForm length_form;
    EarlyStopping early_stopping;
    TokenList suppress, suppress_first, force_first, force_last;
    TokenList bad_word; /* all words, each followed by -1 */
} Generation;

/* The temperature of a search that samples. */
static inline double generation_temperature(const Generation *g) { return g->temperature != 0 ? g->temperature : 1; }
/* Whether the block states how long a text may become. */
static inline bool generation_bounds(const Generation *g) { return g->max_new || g->max_length; }

/* A text that a program puts before the texts of its user. */
typedef struct Prompt {
    Location location;
    const char *name, *text; /* name: "" where it has none */
} Prompt;

/* The block `text`: what a program does to a text around the tokenizer. */
typedef struct TextRules {
    Prompt *prompts;
    int64_t n_prompts, chosen; /* chosen: the index of the default prompt, or -1 */
    bool lower_case;           /* before the tokenizer's own normalizers */
    bool truncate_left;        /* a text that is too long loses its beginning */
} TextRules;

typedef struct Model {
    const char *name;
    Location location;
    Source *source;
    int64_t d_model;          /* that of the last stack; 0 only where attention alone does not state it */
    Stack *encoder, *decoder; /* NULL where the model has none */
    Sublayer *alone;          /* of attention alone, which has no stack; else NULL */
    Length queries, keys;
    bool embedding_tied;
    Head head;
    int64_t start, pad; /* -1: none */
    const int64_t *end;
    int64_t n_end;
    Generation generation;
    bool unroll_full;
    Precision precision; /* of the head, unless it is tied */
    SourceName *source_names;
    int64_t n_source_names;
    const char **prefixes, **ignored;
    int64_t n_prefixes, n_ignored;
    TextRules text;
    struct RowInput *row_inputs; /* of the items `input`; the roles of the inputs count on from IN_COUNT */
    int n_row_inputs;
    const PairRule *formulas[MOST_FORMULAS]; /* of `activation = EXPR`, whose PAIR_score is x; each of them once */
    int n_formulas;
    uint64_t hash; /* of the text that model_print gives without bounds */
} Model;

/* --- model/definitions.c: what the words of the language stand for, by definitions.attn. Inputs are numbered as the
 * operation has them. */
const PairRule *rule_causal(Arena *arena);
const PairRule *rule_prefix(Arena *arena, int input);             /* causal, but for the first `prefix_length` keys */
bool rule_reads_prefix(const PairRule *rule);                     /* false for NULL */
const PairRule *rule_window(Arena *arena, int64_t n, int64_t sinks);
const PairRule *rule_given(Arena *arena, int input);              /* the byte is not 0 */
/* score - slope * distance, slopes [heads]. The positions are the integers, below `rows`, of input 1, which is `at`; or
 * where that is NULL, those of the query and the key. */
const PairRule *rule_slopes(Arena *arena, const char *at, int64_t rows);
/* The slope of the head that is the index, which goes down to 2^-most times the factor. */
const PairRule *table_slopes(Arena *arena, int64_t heads, double most, double factor);
const PairRule *rule_by_distance(Arena *arena, int64_t origin);   /* score + table[key - query + origin] */
const PairRule *rule_by_position(Arena *arena, double scale);     /* score - scale * (table[query] - table[key]) */
const PairRule *rule_softcap(Arena *arena, double cap);           /* cap * tanh(score / cap) */

/* --- model/attention.c */
/* Sets what a position with `grid` knows of the stack's patches. */
void position_on_grid(Position *position, const Stack *stack);
/* Whether this score uses queries and keys without projections. */
bool score_is_bare(ScoreKind score);
/* --- model/resolve.c: from the syntax tree to the model; NULL when the diagnostics hold errors. */
Model *resolve(Arena *arena, const Ast *ast, const Precision *outermost, Diagnostics *diagnostics);

/* --- model/precision.c: a precision as a command line states it: `f32`, or PART=TYPE,… Of what is not fine, *why is a
 * sentence. */
typedef enum PrecisionRead { PRECISION_FINE, PRECISION_WRONG, PRECISION_LATER } PrecisionRead; /* LATER: not yet */
/* The type in which rows are multiplied by weights of that type: rows in few bits are for weights in as few. */
Dtype rows_dtype(const Precision *precision, Dtype weights);
bool is_group_size(int64_t n); /* 32, 64 or 128 numbers of a row share a scale */
PrecisionRead precision_read(Arena *arena, const char *text, Precision *out, const char **why);
/* Gives every part of the model this precision, also those that state another. Before the graphs are built. */
void model_set_precision(Arena *arena, Model *model, Precision precision);

/* --- model/stack.c: adds a note for each stack that ignores the order of its rows. */
void note_unordered(const Model *model, Diagnostics *diagnostics);

/* --- model/text.c */
const char *text_prompt(const TextRules *rules); /* the default prompt, or "" */
/* The sum of the rules of attn_tokenizer_open_with that the block states, as attn_tokenizer.h numbers them. */
int text_rules_number(const TextRules *rules);

/* --- model/names.c: the reason why a model cannot have this name, or NULL. */
const char *model_name_fault(Arena *arena, const char *name);
/* The header of C, such as "math", that a compiler would not find where a folder has NAME.h; NULL for most names. */
const char *header_hidden_by(const char *name);

/* --- model/model_print.c: prints every resolved number in a canonical form. --dump=model shows the text with bounds.
 * The hash is computed from the text without bounds, which omits lengths, unrolling and exports and has numbers of 17
 * digits. */
void model_print(Text *out, const Model *model, bool with_bounds);
uint64_t model_hash(Arena *arena, const Model *model);
/* Prints the parts of a precision that differ from those of `outer`, as " weights int8 activations int8 smooth"; types
 * have the names that `name_of` gives. */
void print_precision(Text *out, const Precision *own, const Precision *outer, const char *(*name_of)(Dtype));
const char *activation_name(Activation activation); /* `formula1` of the model's first formula */
const PairRule *activation_formula(const Model *model, Activation activation); /* NULL: it is no formula */
const char *pool_name(PoolKind kind);

/* --- model/generation_print.c */
/* Prints the lines of the block for a spec, each indented by `indent` spaces; nothing where nothing is stated. */
void generation_print(Text *out, const Generation *generation, int indent);
/* The constants of length_form and early_stopping by their words, and the words by the constants. */
extern const char *const length_forms[], *const early_stoppings[]; /* ended by NULL */

/* --- model/small.c: a similar model with at most 4 layers, narrower and shorter, for attnc check --small. */
Model *model_small(Arena *arena, const Model *model);

/* --- model/io.c: the inputs and outputs that a model can have; io.def explains the columns. */
typedef enum InputRows { PER_ROW, PER_SEQUENCE, PER_PAIR } InputRows;
typedef enum InputAbsent { ABSENT_NOTHING, ABSENT_ZEROS, ABSENT_THE_KEYS } InputAbsent;

typedef struct InputKind {
    InputRole role;
    const char *name, *array;
    Dtype dtype;
    InputRows rows;
    InputAbsent absent;
    bool wide; /* its integers have 64 bits in the C, too: `bit` reads them, and nothing else does */
} InputKind;

/* An input that has one number for each row of a stack, for each sequence, or for each pair of a query and a key. */
typedef struct RowInput {
    InputKind kind;
    Location location;
    int64_t least, most; /* of integers */
    PairRange range;     /* of reals: numbers of f32, or infinite where the spec states no range */
    bool of_source; /* the rows are those of an encoder, or the keys of attention alone */
    bool counts;    /* the positions of rows, which go on by 1 in new rows of a text */
    bool is_read;   /* other than by `bit` */
} RowInput;

/* The input of that role that an item `input` states, or NULL. */
static inline const RowInput *model_row_input(const Model *model, InputRole role) {
    return role_is_of_rows(role) ? &model->row_inputs[(int)role - IN_COUNT] : NULL;
}

extern const InputKind input_kinds[IN_COUNT];
size_t input_element_bytes(const InputKind *kind); /* in the C, where integers have 32 bits unless they are wide */
bool input_is_number(const InputKind *kind);       /* a number for each sequence */
bool input_is_own_number(const InputKind *kind);   /* such a number that `input number` states */
const char *output_name(OutputRole role);
OutputRole output_named(const char *name); /* or OUT_COUNT */
/* The output that the maps of an attention belong to; `stack` is NULL for attention alone. */
OutputRole map_role(const Model *model, const Stack *stack, const Attention *attention);

/* --- model/exports.c: makes attention maps outputs of the model, before the graphs are built. */
bool model_has_maps(const Model *model, OutputRole role); /* exported or not */
/* Exports the maps of one layer, or with layer -1 those of all layers, unless the model exports some already. Outputs
 * that are not maps have none. */
void model_export(Model *model, OutputRole role, int64_t layer);
void model_export_all(Model *model);

/* ======================================================================= ir/
 * A Module is the weights of a model and the Graphs over them. Tensors are in SSA form, so that one op writes each, and
 * stands before all ops that read it. */
typedef enum OpKind {
#define OP(name, least, most, result, inputs, help) OP_##name,
#include "ir/ops.def"
    OP_COUNT
} OpKind;

enum { NO_TENSOR = -1, NO_WEIGHT = -1 };

/* A number of rows, which is a constant or a symbol of the graph with a bound. A symbol equals only itself. */
typedef struct Dim {
    int symbol; /* 0: constant */
    int64_t n;  /* the constant, or the bound */
} Dim;

typedef struct Symbol {
    const char *name; /* rows, src, tgt, queries, keys; past and total are a state's rows before and after a call */
    int64_t least, bound;
} Symbol;

/* The formula of a derived tensor, which is computed in double (ir/derived.c). */
typedef enum DerivedKind {
    DERIVED_NONE,
    DERIVED_SINUSOIDS,
    DERIVED_ROPE_COS,
    DERIVED_ROPE_SIN,
    DERIVED_KEY_BIAS,
    DERIVED_RELATIVE,
    DERIVED_SPREAD,
    DERIVED_DISTANCES,
    DERIVED_RULE,
    DERIVED_LEARNED,
    DERIVED_LAMBDA
} DerivedKind;

typedef enum TensorKind { TENSOR_INPUT, TENSOR_STATE, TENSOR_WEIGHT, TENSOR_DERIVED, TENSOR_VALUE } TensorKind;

/* The role of a tensor in attention. The builder states it, so that no pass has to read it out of a name. */
typedef enum Role { ROLE_NONE, ROLE_QUERY, ROLE_KEY, ROLE_VALUE } Role;

/* The part of the model that a tensor belongs to: "encoder.layers.3.attention.query" is the part "attention_query" of
 * layer 3 of the stack "encoder", "encoder.embedding.positions" the part "embedding_positions" of no layer. */
typedef struct Site {
    const char *stack; /* NULL: attention alone, or the head */
    int layer;         /* from 0; -1: no layer */
    const char *part;  /* a C identifier */
    Role role;
} Site;

typedef struct Tensor {
    TensorKind kind;
    const char *name;
    Site site;
    Dtype dtype;
    int rank;
    Dim dims[3];
    Location location;
    int op;     /* of a TENSOR_VALUE: the op that writes it */
    int weight; /* of a TENSOR_WEIGHT: index in the weight table; of a TENSOR_DERIVED: index in Module.derived */
} Tensor;

/* The weights of DERIVED_DISTANCES, [heads or 1][head_dim][distances]: a table [rows][columns], perhaps the weights of
 * a norm of its rows, and a matrix with a bias that projects them. */
enum { SOURCE_TABLE, SOURCE_GAIN, SOURCE_SHIFT, SOURCE_MATRIX, SOURCE_BIAS, DERIVED_SOURCES };
/* The weights of DERIVED_LAMBDA, [head_dim]: the vectors of the first and of the second query and key. */
enum { SOURCE_QUERY, SOURCE_KEY, SOURCE_QUERY2, SOURCE_KEY2, LAMBDA_SOURCES };

typedef struct Derived {
    DerivedKind kind;
    const char *name;
    Shape shape;
    const Position *position;
    int64_t rows;       /* the bound on the rows that use the table */
    int64_t heads;
    int source;         /* the weight that it is gathered from: of DERIVED_RELATIVE [buckets][heads], of DERIVED_SPREAD
                         * a table of positions, of which `gap` rows of zeros stand after the first `rows`, of
                         * DERIVED_LEARNED a learned table [columns] or [heads][columns] */
    int64_t gap;
    int64_t columns;    /* of DERIVED_DISTANCES: of a row of the table; of DERIVED_LEARNED: of a head's row, or 0 where
                         * heads share the numbers */
    int sources[DERIVED_SOURCES]; /* of DERIVED_DISTANCES and DERIVED_LAMBDA: 1 + each weight that it is made of, or
                                   * 0 */
    double init;        /* of DERIVED_LAMBDA, which has one number for each column: the constant of lambda */
    /* Of DERIVED_RULE: a rule of what `tabled` says, or of the index for TABLED_NOT. Of DERIVED_LEARNED: the column of
     * the weight, which is the index itself for TABLED_NOT. Zeros stand after `rows` numbers, or after those of each
     * head. */
    const PairRule *rule;
    PairTabled tabled;
    int64_t origin; /* the index of the distance 0 */
} Derived;

static inline bool derived_has_source(const Derived *d) {
    return d->kind == DERIVED_RELATIVE || d->kind == DERIVED_SPREAD || d->kind == DERIVED_LEARNED;
}

/* Whether it is made of several weights, by `sources`. */
static inline bool derived_has_sources(const Derived *d) {
    return d->kind == DERIVED_DISTANCES || d->kind == DERIVED_LAMBDA;
}

/* The columns of the rows of a tensor, as they are divided among ranks: rank r has `count[r]` columns from `begin[r]`
 * on. Each rank has room for `part` columns, the most that one has; what is not used is zeros. */
typedef struct Sharding {
    int ranks;
    int64_t columns, part;
    const int64_t *begin, *count; /* [ranks] */
} Sharding;
enum { MOST_RANKS = 1024 };

typedef struct OpAttributes {
    int64_t heads, kv_heads, head_dim, offset, width, groups, patch, kernel, stride;
    int past; /* symbol of the number of rows before row 0; 0: there are no such rows */
    Dtype dtype; /* of round; of softmax and weighted_sum: to which the weights are rounded, BF16 or F32 */
    double scale, cap, eps;
    bool plus_one, interleaved, has_sink, by_column;
    Weighing weighing; /* of softmax and weighted_sum */
    const int64_t *sections; /* of rope: the pairs of columns that each input of positions rotates */
    const PairRule *rule; /* of softmax and weighted_sum: which keys a query sees, NULL: all; of rescore: the score */
    bool by_head; /* of expert_linear: part s of each row belongs to matrix s, and no row chooses */
    bool by_key; /* of distance_scores: keys, not queries, are multiplied */
    bool cached; /* of scores and additive_scores: keys and values are those of a decoder, which states keep */
    Activation activation;
    const PairRule *formula; /* of an activation that is an expression, whose PAIR_score is x; else NULL */
    PoolKind pool;
    int64_t token;          /* of pool: the id that POOL_LAST_SKIP and POOL_LAST_TOKEN name; of tally and pick_rows */
    bool shifted;           /* of POOL_LAST_SKIP: row i has id i - 1 */
    const Experts *experts; /* of choose, expert_linear and expert_sum */
    const Sharding *sharding; /* of all_gather; of embed and owner_rows, of the rows of the table, or NULL */
} OpAttributes;

typedef struct Op {
    OpKind kind;
    const int *inputs; /* [n_inputs] */
    int n_inputs;
    int result;
    OpAttributes a;
    Location location;
    const char *where; /* "encoder layer 3 attention", for comments and messages */
    const Precision *precision; /* in the model, of the part that the op belongs to */
} Op;

typedef struct GraphInput {
    const InputKind *kind; /* one of the module's */
    int tensor;
    bool optional;  /* the kind says what an absent input means */
    bool of_source; /* has a row for each row of the source, or for each key of attention alone */
    int64_t least, most; /* the range of integers that are no ids of a table; 0 for other inputs */
    PairRange range;     /* of the numbers of a real input that the spec states; else 0 */
} GraphInput;

/* Keys or values that outlive a call, which reads the tensor `in` and leaves the tensor `out`. `in` is NO_TENSOR in a
 * graph that only makes them, as encode makes those of the source, and `out` is NO_TENSOR in a graph that only reads
 * them. States of the same name in two graphs are the same state. */
typedef struct GraphState {
    const char *name; /* decoder.layers.0.attention.keys */
    Site site;
    int in, out;
    bool of_source;
    Dtype dtype; /* that its numbers are rounded to: F32, BF16, F16, or I8 with a scale for each row and head; I32 of
                  * the integers of rows, or I64 where `bit` reads them */
} GraphState;

static inline bool state_is_integers(const GraphState *state) {
    return state->dtype == DTYPE_I32 || state->dtype == DTYPE_I64;
}

typedef struct GraphOutput {
    OutputRole role;
    const char *name; /* of the role, which graph_output sets: hidden, pooled, logits, encoder_hidden, attention … */
    int tensor;
    bool of_sequence;     /* has one row for the whole sequence, or for the rows of one call */
    int layer;            /* of an attention map; -1 for other outputs */
    const int64_t *heads; /* the heads that an attention map exports */
    int64_t n_heads;      /* of an attention map, or of `lse`, which has all heads; else 0 */
} GraphOutput;

enum { MAX_GRAPH_INPUTS = 8 };

typedef struct Graph {
    const char *name; /* forward, encode, decode */
    Tensor *tensors;
    int n_tensors, room_tensors;
    Op *ops;
    int n_ops, room_ops;
    Symbol symbols[4]; /* Dim.symbol s is symbols[s - 1] */
    int n_symbols;
    GraphInput inputs[MAX_GRAPH_INPUTS];
    int n_inputs;
    GraphOutput *outputs;
    int n_outputs, room_outputs;
    GraphState *states;
    int n_states, room_states;
    int *of_weight; /* [room_of_weight]: 1 + the tensor of each weight of the table, or 0 */
    int room_of_weight;
} Graph;

typedef struct WeightSpec {
    const char *name;
    Site site;
    Shape shape;            /* matrices are [out][in], as in y = W x */
    WeightType type;        /* to which numbers are rounded */
    const Precision *precision; /* in the model, which states the type; NULL: it is always f32 */
    int smoothing;          /* of a matrix: 1 + the vector [K] of the table that smooths its columns first; or 0 */
    bool smooths;           /* a smoothing vector: its numbers are finite and above 0, but for: */
    int outliers;           /* of such a vector: the most numbers that may be 0 */
    int gain, shift;        /* of a matrix that multiplies rows of a norm: 1 + the norm's weight, and bias, [K]; or 0 */
    bool gain_plus_one;     /* the norm multiplies by its weight and 1 */
    double mean, deviation; /* of random weights (--weights random:SEED) */
    bool of_groups;         /* [groups][rows][columns], which a file may have as [groups * rows][columns] */
    bool of_experts;        /* the first dimension counts experts, which may have a tensor each in a file */
    bool longer;            /* a position table: a file may have more rows, of which the first ones are used */
    const Sharding *sharding; /* how the rows, of each expert, are divided; the shape is that of one rank. Or NULL */
    Location location;
    Location learned;       /* of `learned NAME`, which alone may declare it again; line 0: it is no such table */
} WeightSpec;

/* The canonical tensors of a model, in the order in which the builder declares them for `forward`. */
typedef struct WeightTable {
    WeightSpec *specs;
    size_t count;
    int room;
    int64_t elements; /* the sum over all specs and over tables made of them */
    int *slots; /* a hash table by name: 1 + an index in specs, or 0 */
    size_t n_slots; /* a power of two */
} WeightTable;

/* The order and the rounding of operations in f32. FREE: those that are fast on a target. The others are fixed for all
 * targets (--reproducible): FUSED adds a product to a sum in one rounding, APART in two. */
typedef enum Arithmetic { ARITHMETIC_FREE, ARITHMETIC_FUSED, ARITHMETIC_APART } Arithmetic;

/* The entries of a model. */
typedef enum EntryKind {
#define ENTRY(name, upper, help) ENTRY_##upper,
#include "ir/entries.def"
    ENTRY_COUNT
} EntryKind;

typedef struct Module {
    const Model *model;
    WeightTable weights;
    Derived *derived;
    int n_derived;
    Graph *entries[ENTRY_COUNT]; /* NULL where the model has no such entry */
    const InputKind *inputs[MOST_INPUTS]; /* [n_inputs] what the entries read, each input once */
    int n_inputs;
    const char *no_decode; /* why a model with a decoder has no `decode`; else NULL */
    int ranks;             /* processes that share the model; 0: one has all of it */
    struct Module *whole;  /* the module that is divided among ranks; NULL: this one is whole */
} Module;

/* --- ir/build.c, and build_attention.c, build_weights.c and build_parts.c behind builder.h. Weights that are too large
 * are a failure. */
Module *build(Arena *arena, const Model *model);
/* --- ir/weight_table.c */
int weight_table_add(Arena *arena, WeightTable *table, WeightSpec spec); /* returns its index; the name is a new one */
WeightTable weight_table_copy(Arena *arena, const WeightTable *table); /* weights may be added to the copy alone */
const WeightSpec *weight_spec_find(const WeightTable *table, const char *name); /* NULL: there is none */
/* Of a matrix [out][in], or of all matrices of [experts][out][in]: the rows, and the columns of a row. */
int64_t weight_rows(const WeightSpec *spec);
int64_t weight_columns(const WeightSpec *spec);
int64_t weight_groups(const WeightSpec *spec); /* scales of a row: 0 of floats, 1, or one for each group */
int64_t weight_bytes(const WeightSpec *spec);  /* of the numbers, scales and offsets, without padding */
Dtype weight_table_dtype(const WeightTable *table); /* of the first weight that is not f32; f32 where all are */
/* --- ir/module.c: functions that add to a graph, and queries on it. */
int graph_tensor(Arena *arena, Graph *graph, Tensor tensor);
int graph_op(Arena *arena, Graph *graph, Op op, Tensor result); /* copies the inputs; returns the result's index */
/* The tensor of that weight of the table, which is made if there is none. */
int graph_weight(Arena *arena, Graph *graph, const WeightTable *table, int weight);
void graph_output(Arena *arena, Graph *graph, GraphOutput output);
void graph_state(Arena *arena, Graph *graph, GraphState state);
bool dim_equal(Dim a, Dim b);
/* The input of the graph with that role or name. NULL where there is none, or no graph. */
const GraphInput *graph_input(const Graph *graph, InputRole role);
void module_input(Module *module, const InputKind *kind); /* adds a kind, unless it is there */
const GraphInput *graph_input_named(const Graph *graph, const char *name);
/* Whether ids of tokens are all that a caller must give. The graph may be NULL. */
bool graph_needs_tokens_alone(const Graph *graph);
bool graph_reads_integers(const Graph *graph); /* of `input rows`; false for NULL */
bool graph_takes_rows(const Graph *graph); /* the same, but for numbers of the sequence */
/* --- ir/look_ahead.c: of the graph of decode, which may be NULL where it has no operation to look at. */
bool graph_dim_is_total(const Graph *graph, Dim rows); /* whether a state has so many rows after the call */
bool op_looks_ahead(const Graph *decode, const Op *op); /* a softmax whose mask is not known to look back */
bool graph_looks_ahead(const Graph *decode);
/* The state that keeps the numbers of an input of rows, or -1. */
int graph_kept_state(const Graph *decode, const GraphInput *input);
/* The first row before `split` that sees a row from `split` on, of `total`, or -1. `numbers` are those of the rows by
 * the roles of the inputs, [MOST_INPUTS]. */
int64_t graph_looks_across(const Graph *decode, const PairInput *numbers, int64_t split, int64_t total);
/* Sets cuts[i], [total + 1], to whether no row before i sees a row from i on. */
void graph_cuts(const Graph *decode, const PairInput *numbers, int64_t total, bool *cuts);
/* The first output of the graph with that role. NULL where there is none, or no graph. */
const GraphOutput *graph_output_of(const Graph *graph, OutputRole role);
/* The number of rows of the table in which the ids of an input are looked up; 0 for an input without ids. */
int64_t graph_table_rows(const Graph *graph, const GraphInput *input);
/* Sets the range of an input's integers, and returns whether there is one: of ids it is that of their table. */
bool graph_input_range(const Graph *graph, const GraphInput *input, int64_t *least, int64_t *most);
bool graph_input_is_ranged(const GraphInput *input); /* whether the spec states a range of its real numbers */
/* Whether a real number is outside of the range that the spec states, as NaN is outside of each range. */
bool graph_input_excludes(const GraphInput *input, double number);
/* The id that an op of the graph names among the ids of an input; -1 where no op names one. */
int64_t graph_named_token(const Graph *graph, const GraphInput *input);
/* The heads of all outputs of a role: of maps, or of `lse`. */
int64_t graph_output_heads(const Graph *graph, OutputRole role);
/* longrope has other angles for sequences of more rows than a limit, so that a state cannot grow across it. Returns the
 * limit where it is at least `from` and below `to`, else 0. */
int64_t graph_crossing(const Graph *graph, int64_t from, int64_t to);
/* What the products of a graph read, by which targets are chosen. */
typedef struct RowTypes {
    Dtype narrowest; /* of rows: I8 after an OP_quantize, BF16 after an OP_round, or F32 */
    bool long_bf16;  /* scores of bf16 rows over many keys take much of the time */
} RowTypes;
RowTypes graph_row_types(const Graph *graph);
/* Whether a small change of its input can change an op's result by a step: it rounds, or chooses experts. */
bool op_jumps(const Op *op);
bool graph_jumps(const Graph *graph); /* whether it has such an op; false for NULL */
bool op_is_by_head(const Op *op); /* an expert_linear without a choice: part s of each row belongs to matrix s */
int op_bias(const Op *op);        /* the bias of a product, or NO_TENSOR */
int op_rule_input(const Op *op);  /* of an op with a rule of pairs: which of its inputs is the rule's first */
bool op_is_product(OpKind kind); /* of rows, input 0, with a matrix of the weights or those of experts, input 1 */
/* The first product of rows with weights that f32 rounds, which those of integers and of two bf16 numbers are not; or
 * NULL. */
const Op *module_rounded_product(const Module *module);
Arithmetic reproducible_arithmetic(const Module *module); /* FUSED with such a product, else APART */
const char *op_name(OpKind kind);
const char *op_formula(OpKind kind); /* the C template of an elementwise operation; "" for the others */
const char *entry_name(EntryKind entry);
/* --- ir/verify.c: calls `bug` if the graph breaks a rule of shape, dtype or order. The pipeline verifies the graphs of
 * the builder and those of each Graph -> Graph pass; `after` names the maker of the graph in the message. */
void verify(const Module *module, const Graph *graph, const char *after);
void verify_module(const Module *module, const char *after);
/* --- ir/print.c: --dump=graph */
void module_print(Text *out, const Module *module);
/* --- ir/derived.c: computes a derived tensor into out[derived->shape]; `source` is the weight that it is gathered
 * from, or NULL. */
void derived_fill(const Derived *derived, const float *source, double *out);
/* The column of the weight that becomes number i of each head's row of a DERIVED_LEARNED. */
int64_t derived_column(const Derived *d, int64_t i);
/* --- ir/distances.c: the same for DERIVED_DISTANCES. Weights that it lacks are NULL; `smooth` is the vector that
 * smooths the columns of the matrix. */
typedef struct DistanceSources {
    const float *table, *gain, *shift, *matrix, *bias, *smooth;
} DistanceSources;
void distances_fill(const Derived *derived, const DistanceSources *sources, double *out);
/* --- ir/lambda.c: the same for DERIVED_LAMBDA, whose weights have n = derived->columns numbers. False where f32 does
 * not hold the result. */
bool lambda_fill(const Derived *derived, const float *const weights[LAMBDA_SOURCES], double *out);

/* --- ir/sharding.c */
/* Divides the panels of columns evenly among ranks. */
const Sharding *sharding_even(Arena *arena, int64_t columns, int ranks);
bool sharding_same(const Sharding *a, const Sharding *b); /* either may be NULL */

/* ======================================================================= rewrite/passes.c
 * The passes from graph to graph: the module with the graphs that they leave, and with the weights that those read.
 * Each pass is verified. With more than one rank, the last pass divides the module among them. */
Module *rewrite(Arena *arena, const Module *module, int ranks);

/* ======================================================================= plan/
 * A Program is a Plan for each graph of a module, over one set of packed weights and caches. A Plan is a straight list
 * of steps over buffers, in which all strides and offsets are constants. plan/plan.h has the types. */
#include "ir/storage.h"
#include "plan/plan.h"

/* --- plan/fuse.c: turns a graph into a plan; a graph that cannot be emitted yet is a located failure,
 * EXIT_CANNOT. */
Plan *fuse(Arena *arena, Program *program, const Graph *graph);
/* --- plan/layout.c: sets the offsets of the packed weights, and the offsets of the caches in a state and a source. */
void layout(Program *program);
/* --- plan/memory.c: sets the offsets of the buffers, so that buffers in use at the same time do not overlap. */
void plan_memory(Arena *arena, Plan *plan);
int64_t plan_rows(const Plan *plan, RowsKind kind); /* the largest number of rows in a buffer of that kind */
int64_t buffer_rows(const Plan *plan, const Buffer *buffer);
/* --- plan/plan_verify.c: calls `bug`, with the name of the pass, if a plan breaks a promise of that pass. */
/* After fuse: operands are written before they are read, widths fit, types are f32, packed tensors and caches exist. */
void plan_verify(const Plan *plan, const char *pass);
/* After layout: the same, and slots are aligned, large enough, within their memory, and apart while they are in use. */
void program_verify(const Program *program);
/* --- plan/plan.c: additions to a program and a plan, and --dump=plan. */
int program_packed(Arena *arena, Program *program, Packed packed);
int program_cache(Arena *arena, Program *program, Cache cache); /* the cache of that name, or a new one */
int plan_buffer(Arena *arena, Plan *plan, Buffer buffer);
void plan_step(Arena *arena, Plan *plan, Step step);
int step_reads(const Step *step, Read reads[MOST_READS]); /* returns the number of reads */
const char *step_kind_name(StepKind kind); /* "gemm" */
void program_print(Text *out, const Program *program);
/* --- plan/cost.c: the cost of a step for one sequence. Flops are 2 x the multiply-adds of matrix products and of
 * visible scores. Bytes are those of the weights, keys, values and rows that a step reads and of the rows it writes. */
typedef struct CallRows {
    int64_t rows, source, past; /* rows of the sequence, of its source or keys, and in the state before the call */
} CallRows;

/* A call with n rows and n rows of the source or keys; a bound that is smaller than n replaces it. */
CallRows call_rows(const Plan *plan, int64_t n);
Length call_bound(const Plan *plan); /* the values of n for which call_rows differs */
int64_t step_rows(const Plan *plan, const Step *step, const CallRows *call);
int64_t step_keys(const Plan *plan, const Step *attention, const CallRows *call); /* of each row */
double step_flops(const Plan *plan, const Step *step, const CallRows *call);
double step_bytes(const Plan *plan, const Step *step, const CallRows *call);
/* Adds the flops and the bytes of all steps of a call, divided by `calls`. */
void add_cost(const Plan *plan, const CallRows *call, double calls, double *flops, double *bytes);
/* Roughly the multiply-adds of a step for each of its rows, or of attention for each row and key. */
int64_t step_work(const Step *step);
/* --- plan/rates.c: picoseconds by the committed rates of rates.def, which are the same on every machine. */
double product_cost(WeightType weights, Dtype rows, double multiply_adds);
double read_cost(double bytes); /* of weights, from memory */
/* --- plan/plan_model.c: runs fuse, memory and layout, in this order. */
Program *plan_model(Arena *arena, const Module *module, bool small);

/* ======================================================================= weights/weights.c
 * A model's weights in memory, as f32 numbers that the dtypes of the table hold exactly, read from a file by their
 * canonical or source names, or drawn from a seed. */
/* What the integers of a matrix are multiplied by, and what is then added: [N][weight_groups], or NULL; and the vector
 * [K] that smooths its columns, or NULL. Where that is 0, the matrix has f32 numbers in place of integers. */
typedef struct Scaling {
    const float *scales, *offsets, *vector;
} Scaling;

typedef struct WeightReader WeightReader;
typedef struct Weights {
    const WeightTable *table;
    const float **data; /* an array for each tensor of the table, of its shape */
    Scaling *scaling;   /* of each tensor */
    WeightReader *reader; /* reads the arrays that are NULL; NULL itself where there are none */
} Weights;

/* The notes on unused tensors of a file: none, a line that counts them, or a line for each tensor. */
typedef enum UnusedReport { UNUSED_UNSAID, UNUSED_SUMMED_UP, UNUSED_LISTED } UnusedReport;

/* SOURCE is a path for tensor_file_open, or "random:SEED". A tensor of integers that the model uses is a failure. */
Weights *weights_load(Arena *arena, const Model *model, const WeightTable *table, const char *source,
                      UnusedReport unused);
/* Opens weights whose tensors are read one at a time: an array is NULL except between weight_need and weight_release.
 * Vectors that decide how matrices are rounded are read at once and stay. A missing tensor and a wrong shape are
 * failures of this function; a number that is not finite is a failure of weight_need. */
Weights *weights_open(Arena *arena, const Model *model, const WeightTable *table, const char *source,
                      UnusedReport unused);
/* Reads and rounds tensor i of the table, if its array is NULL. */
void weight_need(const Weights *weights, int i);
/* Frees what weight_need has read. */
void weight_release(const Weights *weights, int i);
/* Fails where weights_load of the file would fail, and holds one tensor at a time in memory. */
void weights_check(const Model *model, const WeightTable *table, const TensorFile *file);
/* Fails where a tensor is missing or has another shape; reads no numbers. */
void weights_fit(Arena *arena, const Model *model, const WeightTable *table, const TensorFile *file);
/* Returns the tensor of the file that holds tensor `index` of the table, or the first of them where each expert has
 * one; NULL where the file has none. *transposed is set to whether the spec transposes that tensor. */
const FileTensor *weight_tensor(Arena *arena, const Model *model, const WeightTable *table, const TensorFile *file,
                                size_t index, bool *transposed);
/* For each tensor of the file, whether `table` uses it. *absent is increased by the number of tensors that the table
 * requires and the file lacks. */
const bool *weights_claimed(Arena *arena, const Model *model, const WeightTable *table, const TensorFile *file,
                            size_t *absent);
/* Names for a message, in which those that differ only in numbers are joined: "`layers.{layer}.bias` (12), `odd`". */
const char *tensor_names_summary(Arena *arena, const char *const *names, size_t count);
Weights *weights_new(Arena *arena, const WeightTable *table); /* without arrays */
/* Fails where the numbers are none of a smoothing vector; `name` is that of the tensor in the file. */
void weight_vector_check(Arena *arena, const WeightSpec *spec, const char *path, const char *name, const float *data);
/* --- weights/rank_weights.c */
/* The `n` weights whose numbers `of` lists, as `table` has them: of a divided matrix, the rows of a rank. */
Weights *rank_weights(Arena *arena, const WeightTable *table, const Weights *whole, const int *of, int n, int rank);
/* --- weights/draw.c: random weights. */
/* The array of a weight for `random:SEED`; a smoothing vector is above 0 but in its outliers. */
const float *weight_drawn(Arena *arena, const WeightSpec *spec, uint64_t seed);
/* Draws `count` weights from a normal distribution. The same seed and name give the same weights on every machine. */
void random_normal(uint64_t seed, const char *name, double mean, double deviation, int64_t count, float *out);

/* --- weights/derive.c: computes a derived tensor, of these weights where it is made of some. */
void weights_derive(const Weights *weights, const Derived *derived, double *out);
/* --- weights/rounding.c: numbers as a weight's type represents them. */
/* The numbers, of the weight's shape, rounded to those that its type represents; integers want finite ones. *scaling is
 * set to the scales and offsets, which are bf16 numbers where they belong to groups, and else have at most 16
 * significant bits, and to the vector. Where that is not NULL, each column of the matrix is divided by its number of
 * the vector first, in double, and rounded to f32; a number that f32 does not hold is a failure. Columns where the
 * vector is 0 stay as they are. So do, without a vector, numbers that are the result of this function. The scales of
 * groups minimize squared errors that `squares`, the result of weight_squares or NULL, multiply column by column. */
const float *weight_rounded(Arena *arena, const WeightSpec *spec, const float *numbers, const float *vector,
                            const float *squares, Scaling *scaling);
/* Returns a weight for the squared error of each of the K columns of a matrix. The weight is gain^2 + bias^2 of the
 * norm in front of the matrix, divided by the mean of gain^2 + bias^2 over the columns; weights below 0.01 are raised
 * to 0.01. If normalized rows have mean square 1, a column that the matrix multiplies has mean square gain^2 + bias^2.
 * Returns NULL if no norm is in front of the matrix, if its weights are in no groups, or if the mean is 0 or not
 * finite. */
const float *weight_squares(Arena *arena, const Weights *weights, const WeightSpec *spec);
/* Smooths and rounds a weight, whose numbers are those of a file or drawn ones, and sets its scaling. */
void weight_round(Arena *arena, const Weights *weights, size_t i);
void weights_round(Arena *arena, const Weights *weights); /* all of them */
/* The columns where a smoothing vector is 0, in ascending order; returns their number, of which there are at most
 * MOST_OUTLIERS. */
int outlier_columns(const float *vector, int64_t K, int64_t *out);
/* The integers of row n of a rounded matrix, which are 0 in columns that stay f32. */
void weight_codes(const WeightSpec *spec, const Scaling *scaling, const float *numbers, int64_t n, int8_t *out);
/* The sum of row n, whose integers are `codes`: of these integers where the row has one scale, and in groups of the
 * numbers that they stand for. A product of a row of codes with zero point z is that of the codes less z times this. */
float weight_sum(const WeightSpec *spec, const Scaling *scaling, int64_t n, const int8_t *codes);

/* --- weights/scales.c: scales and offsets of least squared error. */
/* Integers of `least` to `most` times a scale, plus an offset. */
typedef struct Grid {
    int least, most;
    double scale, offset;
    bool halves; /* scale and offset are numbers of F16 */
} Grid;
/* The scale for K finite numbers as integers of -127 to 127; 0 where all are 0. */
double int8_scale(const float *numbers, int64_t K);
/* The same for K neighbours of a row in `type`, whose scale and offset are bf16 numbers; each squared error is
 * multiplied by its number of `squares`, which are above 0, or NULL. */
Grid group_grid(WeightType type, const float *numbers, const float *squares, int64_t K);
/* The integers nearest to (number - offset) / scale; ties go to even. Scale 0 gives 0. */
void grid_round(const Grid *grid, const float *numbers, int64_t K, int8_t *out);

/* --- weights/source_patterns.c: the patterns of a spec's `weights` block. */
/* Whether the pattern of a line matches the canonical name. *layer is set to the text that matches {layer}, and *suffix
 * to the text that matches `*`. */
bool source_name_matches(Arena *arena, const char *pattern, const char *name, const char **layer, const char **suffix);
bool source_name_speaks(Arena *arena, const char *pattern, const WeightTable *table); /* matches any of its tensors */
void check_source_names(const Module *module, Diagnostics *diagnostics); /* refuses lines that match no tensor */
/* Whether a pattern of `ignore` matches NAME. {layer} stands for a number, and a final `*` for any rest. */
bool source_pattern_covers(const char *pattern, const char *name);

/* ======================================================================= weights/packed.c
 * NAME.attnw: a header with the hash of the model, followed by the weights in the layout of a Program. */
enum { PACKED_HEADER = 128 }; /* bytes of an .attnw before the data */
int64_t packed_file_bytes(const Program *program); /* bytes of the whole .attnw */
/* Writes packed->slot.bytes bytes to `out`, in the layout of the slot. */
void packed_fill(const Program *program, const Packed *packed, const Weights *weights, void *out);
uint64_t packed_layout_hash(const Program *program); /* of the name, offset, dtype and shape of every packed tensor */
void packed_write(Arena *arena, const char *path, const Program *program, const Weights *weights);
/* Writes a file for each rank of a divided module; `weights` are whole. */
void packed_write_ranks(Arena *arena, const char *const *paths, const Program *program, const Weights *weights);
/* The whole .attnw in memory. */
uint8_t *packed_bytes(Arena *arena, const Program *program, const Weights *weights, size_t *size);
bool packed_is(const char *path); /* whether the file begins with the magic of .attnw */
/* Reads an .attnw back into canonical weights. Fails for a file of another model or with other bounds. With `verify`,
 * it also fails if the checksum of the data is wrong. */
Weights *packed_read(Arena *arena, const Program *program, const char *path, bool verify);

/* ======================================================================= interp/interp.c
 * The interpreter, which is the reference: it runs a graph as the rewrites left it, before the planner, in double. */
#include "interp/interp.h"

/* ======================================================================= targets/
 * The instruction table of each target, and the targets that this machine runs. */
#include "targets/targets.h"

/* ======================================================================= emit/file.c
 * The C of a program, for several targets in one file. */
typedef struct EmitOptions {
    const char *const *targets; /* names of ISA tables; the C selects the widest that its machine runs */
    int n_targets;
    const char *command;        /* the command line for the head comment, with paths as base names */
    uint64_t layout_hash;       /* of packed_layout_hash */
    const uint8_t *embedded;    /* the bytes of an .attnw that the C contains, or NULL */
    size_t embedded_bytes;
    bool loops;                 /* nothing is unrolled fully, even if a gain is expected */
    bool serves;                /* the driver is a program that answers calls, for another machine */
    bool incbin;                /* NAME_weights.S contains the weights, not the C */
} EmitOptions;

typedef struct EntrySizes {
    int64_t workspace_bytes, scratch_bytes; /* a call needs workspace_bytes + threads * scratch_bytes */
    int64_t control_bytes;                  /* of the workspace, before the plan's buffers */
} EntrySizes;

/* A named part of the generated C: the functions of one kernel, or the code between two kernels. */
typedef struct CodePart {
    const char *target; /* NULL: the part serves all targets */
    const char *kind;   /* the template of a kernel, or "helpers", "steps" or "shared" */
    const char *name;   /* the kernel's name without the prefix of model and target; for steps, the graph's name */
    size_t bytes;
} CodePart;

typedef struct Emitted {
    const char *c, *h;
    const char *assembly; /* NAME_weights.S with `incbin`, else NULL */
    const char *driver; /* C through which attnc calls the code, with the same entry for every model */
    const char *unit;   /* C that includes NAME.c and NAME_driver.c; the units of several models may be one source */
    size_t c_bytes, h_bytes;
    const CodePart *parts; /* joined in their order, they are the C without embedded weights */
    int n_parts;
    EntrySizes entries[ENTRY_COUNT];
    int64_t state_bytes, source_bytes;
} Emitted;

struct Schedule;
/* `schedules` holds one schedule for each target, the best target first, ended by NULL. */
Emitted emit(Arena *arena, const Program *program, struct Schedule *const *schedules, const EmitOptions *options);

/* ======================================================================= pipeline.c
 * A spec on its way through the compiler. A command runs the stages that it needs, may change their results (a model's
 * exports, the options of the C), and continues. A copy of the struct continues independently from the same stage, in
 * another arena if `arena` is replaced. */
typedef enum Stage {
    STAGE_SOURCE, STAGE_AST, STAGE_MODEL, STAGE_GRAPH, STAGE_REWRITE, STAGE_PLAN, STAGE_SCHEDULE, STAGE_C
} Stage;

typedef struct Compilation {
    Arena *arena;
    Stage stage; /* the last one that was reached; fields of later stages are unset */
    Source *source;
    Diagnostics diagnostics;
    Precision precision; /* of the blocks of the spec that state none; zeros are f32 */
    bool reproducible;   /* every target gives the same bits; before STAGE_PLAN */
    int ranks;           /* processes that share the model; 0 and 1: one has all of it; before STAGE_REWRITE */
    Ast *ast;
    Model *model;
    Module *built, *module; /* as STAGE_GRAPH builds it; and then as STAGE_REWRITE leaves it */
    Program *program;
    EmitOptions options; /* for STAGE_SCHEDULE and STAGE_C, which sets layout_hash. STAGE_PLAN reads the targets alone:
                          * a plan for microcontrollers takes the least memory */
    struct Schedule **schedules; /* one for each target, ended by NULL */
    Emitted emitted;
    void (*after)(const struct Compilation *c, void *with); /* called after each stage, for --dump; or NULL */
    void *with;
} Compilation;

Compilation compilation_new(Arena *arena, Source *source);
Compilation compilation_quiet(Arena *arena, Source *source); /* diagnostics are kept and not reported */
/* Runs all stages up to `last` that have not run. False when the spec has errors, which the diagnostics hold; the
 * stages after STAGE_REWRITE refuse a spec by fail_status(EXIT_CANNOT). */
bool compile_until(Compilation *c, Stage last);

#endif
