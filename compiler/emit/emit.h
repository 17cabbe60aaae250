/* emit.h: what prints C, and nothing else does: one writer, one template engine, one table a target.
 *
 * Templates and tables are files of templates/ and isa/; `embed` packs them into the program, so that a
 * compiler in use reads none of them from disk. */
#ifndef ATTNC_EMIT_H
#define ATTNC_EMIT_H

#include "../attnc.h"

/* ======================================================================= emit/writer.c
 * Owns output text. A line is given without its indentation; the writer computes it from the braces
 * seen so far (4 spaces a brace but that of `extern "C" {`, 4 more inside open parentheses, preprocessor lines at
 * column 0). */
typedef struct Writer Writer;

/* Beyond `budget` bytes the program ends with EXIT_CANNOT and the message
 * "OVER_BUDGET: it is over BUDGET bytes of C". */
Writer *writer_new(Arena *arena, size_t budget, const char *over_budget);
void writer_line(Writer *writer, const char *format, ...) __attribute__((format(printf, 2, 3)));
void writer_raw_line(Writer *writer, const char *line, size_t size); /* the same for text that is no format */
void writer_blank(Writer *writer); /* never two in a row, nor at the start, after a `{` or before a `}` */
const char *writer_fresh(Writer *writer, const char *stem);          /* "stem_12": another number at each call */
const char *writer_text(const Writer *writer, size_t *size);         /* what was written so far; size may be NULL */
size_t writer_room(const Writer *writer);                            /* bytes left of the budget */
/* What was written since the last part ended is a part, or belongs to the last one where that has the same names. */
void writer_part(Writer *writer, const char *target, const char *kind, const char *name);
const CodePart *writer_parts(const Writer *writer, int *n);
_Noreturn void writer_over_budget(const Writer *writer);

/* ======================================================================= emit/isa.c
 * A target's instruction table; the format is described above the parser. */
typedef enum IsaKind {
    ISA_VECTOR,   /* all lanes */
    ISA_INTEGRAL, /* a vector whose lanes are whole numbers from -252 to 252 */
    ISA_FLOAT,    /* one float */
    ISA_COUNT,    /* size_t, 1 to width */
    ISA_READ,     /* const float * */
    ISA_TABLE,    /* const float *: 16 numbers */
    ISA_WRITE,    /* float * */
    ISA_VOID      /* as a result only: the operation is a statement */
} IsaKind;

enum { ISA_MAX_PARAMS = 6 };

typedef struct IsaPiece {
    const char *text; /* with param < 0 */
    int param;        /* the parameter that stands here, or ISA_TEXT, or ISA_PREFIX */
} IsaPiece;

enum { ISA_TEXT = -1, ISA_PREFIX = -2 };

typedef struct IsaOp {
    const char *name;
    IsaKind result;
    int param_count;
    IsaKind kinds[ISA_MAX_PARAMS];
    const char *params[ISA_MAX_PARAMS];
    IsaPiece *pieces; /* the C text */
    size_t piece_count;
    bool needs_prefix;   /* the C text names a helper */
    const char *meaning; /* a C expression for lane i; see isa.c */
    int cost;
} IsaOp;

typedef struct Isa {
    const char *name, *type; /* "avx512", "__m512" */
    int64_t rank;            /* among the targets that a machine has the highest is taken; 0: half of a target */
    const char *processor;   /* "x86_64", "any" */
    int64_t width, registers;
    bool on_request;         /* only for those who name it */
    bool fused;              /* fma rounds once */
    const char *guard;       /* preprocessor condition under which the target may be compiled */
    const char *attribute;   /* of each function that uses it; may hold ${prefix} */
    const char *include;     /* "<immintrin.h>", or "" */
    const char **cpu;        /* features to probe; ended by NULL */
    const struct Isa *half;  /* vectors of half the lanes on the same processor; or NULL */
    const char *helpers;     /* a template text, to stand in front of the kernels; needs ${prefix} */
    IsaOp *ops;
    size_t op_count;
    const char **op_names;   /* ended by NULL */
} Isa;

const Isa *isa_load(Arena *arena, const char *name);                         /* from the embedded NAME.isa */
const Isa *isa_parse(Arena *arena, const char *file_name, const char *text); /* the same for a text at hand */
const Isa *isa_for(const Isa *isa, int64_t columns);                         /* its half where that holds a row */
const IsaOp *isa_find(const Isa *isa, const char *name);                     /* or NULL */
/* The C text of an operation; an argument is put in parentheses where it needs them (in expression.c). */
const char *isa_spell(Arena *arena, const IsaOp *op, const char *const *args, const char *prefix);
/* `text` with each ${prefix} replaced. */
const char *isa_with_prefix(Arena *arena, const char *text, const char *prefix);

/* ======================================================================= emit/targets.c
 * All tables that are targets. */
/* Best first, ended by NULL. */
const Isa *const *targets_all(Arena *arena);
/* The C of the lines that set a bit of `features` for each target of `isas` that probes: bit t for isas[t]. "" where
 * none does. */
const char *target_probes(Arena *arena, const Isa *const *isas);

/* ======================================================================= emit/template.c
 * The language is described above the engine. */
typedef struct TemplateVars TemplateVars;

TemplateVars *vars_new(Arena *arena, TemplateVars *parent); /* sees the parent's names; parent may be NULL */
void vars_int(TemplateVars *vars, const char *name, int64_t value); /* sets or replaces */
void vars_text(TemplateVars *vars, const char *name, const char *value);

/* Expands an embedded template into the writer. `isa` may be NULL for a template that uses no `v.`. */
void template_expand(Arena *arena, Writer *writer, const char *template_name, TemplateVars *vars, const Isa *isa);
/* The same with a table for `u.` of its own. */
void template_expand_with(Arena *arena, Writer *writer, const char *template_name, TemplateVars *vars, const Isa *v,
                          const Isa *u);
void template_expand_text(Arena *arena, Writer *writer, const char *name, const char *text, TemplateVars *vars,
                          const Isa *isa);
/* Prints the table's helpers; `vars` holds "prefix". */
void template_expand_helpers(Arena *arena, Writer *writer, TemplateVars *vars, const Isa *isa);

/* ======================================================================= generated by emit/embed.c */
const char *embedded_text(const char *name); /* by base name; NULL when there is no such file */
const char *embedded_name(int i);            /* NULL behind the last */

/* ======================================================================= emit/expression.c
 * Inside the engine: expressions, and text with insertions. */
typedef struct TemplateValue {
    bool is_text;
    bool wrapped; /* a text in parentheses of the engine's own, which may go where others stand around it */
    int64_t integer;
    const char *text;
} TemplateValue;

/* Where the expansion is: one a template, macro or include that is open. */
typedef struct Frame {
    const char *file;
    int line;
    const char *macro; /* NULL: a file */
    struct Frame *outer;
} Frame;

typedef struct Expansion {
    Arena *arena; /* of what stays for the expansion, or while a line is put together of that line's parts */
    Writer *writer;
    const Isa *v, *u;
    TemplateVars *scope;
    TemplateVars *globals; /* what a macro sees */
    Frame *frame;
    struct Capture *capture;
    struct OpenLoop *loops;
    struct Macro *macros;
    int depth;
    int64_t steps;
} Expansion;

/* Reading one line (or text) of a template. */
typedef struct Scan {
    Arena *arena;
    const char *file;
    int line, depth;
    const char *at, *end;
} Scan;

typedef struct TemplateExpr TemplateExpr;
typedef struct Pieces Pieces;

_Noreturn void template_scan_error(const Scan *scan, const char *format, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void expand_error(const Expansion *x, const char *format, ...) __attribute__((format(printf, 2, 3)));
void template_scan_spaces(Scan *scan);
bool template_scan_symbol(Scan *scan, const char *symbol); /* passes spaces, then the symbol if it stands there */
const char *template_scan_name(Scan *scan);                /* or NULL */
TemplateExpr *template_scan_expression(Scan *scan);
Pieces *template_scan_pieces(Scan *scan);                  /* to the end */
TemplateValue template_evaluate(Expansion *x, TemplateExpr *expr);
int64_t template_evaluate_int(Expansion *x, TemplateExpr *expr, const char *what);
const char *template_evaluate_pieces(Expansion *x, const Pieces *pieces);
TemplateValue template_sum(Expansion *x, TemplateValue a, TemplateValue b);

/* ======================================================================= emit/scope.c
 * Inside the engine too: names, values, scopes. A `name` here is one that name_of gave. */
const char *name_of(const char *start, size_t size); /* the one copy of it: equal names are equal pointers */
TemplateValue template_int(int64_t integer);
TemplateValue template_text(const char *text);
const char *template_print(Arena *arena, TemplateValue value);
void vars_set(TemplateVars *vars, const char *name, TemplateValue value);
bool vars_has_own(TemplateVars *vars, const char *name);               /* in this scope itself */
bool vars_assign(Expansion *x, const char *name, TemplateValue value); /* an existing one of the template's */
const TemplateValue *vars_find(TemplateVars *vars, const char *name);  /* or NULL */
_Noreturn void unknown_name(const Expansion *x, const char *name);

/* ======================================================================= emit/interface.c
 * Names for the templates of the functions that users call. */
EntrySizes set_entry(Arena *arena, const Plan *plan, TemplateVars *vars);
void set_run(Arena *arena, const Program *program, TemplateVars *vars);
void set_states(Arena *arena, const Program *program, TemplateVars *vars, int64_t *state_bytes, int64_t *source_bytes);
const char *upper_case(Arena *arena, const char *text);

/* ======================================================================= emit/tiles.c
 * What a kernel takes at a time. */
/* A function that is written out has at most that many statements. */
enum { STATEMENTS = 1900 };

typedef struct GemmTile {
    int64_t height, panels; /* rows; 16 columns each */
} GemmTile;

typedef struct RowsTile {
    int64_t rows, panels, columns; /* of queries; of 16 keys each; vectors of values */
} RowsTile;

/* Columns of a panel that are not padding: 16 but where the parts of the product are narrower. */
int64_t panel_columns(const Plan *plan, const Step *gemm);
GemmTile gemm_tile(const Isa *isa, int64_t used); /* of a panel's columns */
RowsTile rows_tile(const Isa *isa, const Step *attention);
const Cache *cache_of(const Plan *plan, int cache); /* NULL for NO_CACHE */
/* Keys so few that the scores of some rows stay in half of the registers. */
bool scores_held(const Plan *plan, const Isa *isa, const Step *attention);
/* All keys are seen, scores held, and the functions of rows short enough to be written out. */
bool rows_written_out(const Plan *plan, const Isa *isa, const Step *attention);
/* One row has one chain of multiply-adds for each vector of a head's values: so many heads go together, or 0. Not those
 * that have something of their own besides keys and values. */
int64_t heads_across(const Plan *plan, const Isa *isa, const Step *attention);
/* Rows written out that are fewer than a tile: so many heads go together, at least 1. */
int64_t heads_together(const Plan *plan, const Isa *isa, const Step *attention);

/* ======================================================================= emit/unroll.c
 * Whether `unroll auto` writes out a call of one sequence. */
typedef struct Unrolling {
    bool pays;
    double cycles, saved; /* of such a call with loops; less of them without */
    double code_bytes;
    const char *why_not; /* NULL when it pays */
} Unrolling;

Unrolling unroll(const Plan *plan, const Isa *isa);

/* ======================================================================= emit/kernels.c
 * One target's part of the file: its kernels, its steps, and the function that runs them on a chunk. */
typedef struct TargetEmitter {
    Arena *kept;  /* of what stays until the file is done */
    Arena *arena; /* emit_target's own, emptied before each step */
    Writer *writer;
    const Plan *plan;   /* the one being written */
    const Isa *isa;
    const char *model;  /* the prefix of everything */
    const char *prefix; /* model_target: of everything of this target */
    const char *stem;   /* the same with the plan's name, except for forward: of the plan's steps */
    bool loops;         /* nothing is written out */
    bool half_helpers;  /* what kernels of the target's half call is there */
    bool written_out;   /* without loops, for exactly one sequence of the plan's rows */
    struct Kernel *kernels;
} TargetEmitter;

void emit_target(TargetEmitter *emitter, const Program *program);
int64_t map_count(const Graph *graph, const char *name);     /* heads of all exported maps of that name */
const char *pairs_of(const Plan *plan,
                     const Step *attention);       /* which queries and keys: self_, source_ or cross_pairs */
const char *hex_float(Arena *arena, double value); /* "0x1.8p+1f" */

#endif
