/* template_parts.h: the types and functions that the files of the template engine share. No other file includes it.
 *
 *   template.c -> template_run.c -> template_parse.c -> template_scan.c
 *                                -> template_value.c
 *   and all of them -> template_scope.c -> template_error.c */
#ifndef ATTNC_TEMPLATE_PARTS_H
#define ATTNC_TEMPLATE_PARTS_H

#include "emit.h"

/* ======================================================================= values */
typedef enum TemplateKind { TEMPLATE_INT, TEMPLATE_TEXT, TEMPLATE_LIST, TEMPLATE_RECORD } TemplateKind;

typedef struct TemplateValue {
    TemplateKind kind;
    bool wrapped; /* a text in parentheses that the engine added, which may go where others stand around it */
    union {
        int64_t integer;
        const char *text;
        const TemplateList *list;
        TemplateVars *record;
    };
} TemplateValue;

typedef struct Var {
    struct Var *next;
    const char *name;
    TemplateValue value;
} Var;

/* A scope. That of a block lives as long as the block runs. */
struct TemplateVars {
    Arena *arena;
    TemplateVars *parent;
    Var *vars;
    uint64_t bits[4]; /* of its names, so that a search passes most scopes without a look at their lists */
};

/* ======================================================================= what a template is parsed to */
enum { MAX_ARGS = 8, MAX_PARAMS = 16 };

typedef enum TermKind {
    TERM_INT,
    TERM_STRING,
    TERM_TEXT, /* text with insertions */
    TERM_NAME,
    TERM_NOT,
    TERM_NEGATE,
    TERM_BINARY,
    TERM_CHOICE,
    TERM_FUNCTION,
    TERM_DEFINED,
    TERM_FIELD, /* RECORD.NAME */
    TERM_COUNT,
    TERM_EXPAND, /* of a text that holds insertions */
    TERM_JOIN,
    TERM_CALL, /* of a function that the template defines */
    TERM_PROPERTY, /* v.NAME, u.NAME */
    TERM_HAS, /* v.has(text) */
    TERM_OPERATION /* v.NAME(text, text) */
} TermKind;

typedef struct Pieces Pieces;

typedef struct TemplateExpr {
    TermKind kind;
    int64_t integer;
    const char *text;    /* a string, or the name of what is used; of a join, its record's */
    const char *symbol;  /* of a binary operator */
    const char *counter; /* the name of a join's second variable, or NULL */
    char vectors;        /* 'v' or 'u': the table of a property or an operation */
    char operator;       /* the symbol's first byte, where a comparison is '=' */
    int property;        /* which of template_properties */
    struct TemplateExpr *a, *b, *c;
    union {
        Pieces *args[MAX_ARGS];
        struct TemplateExpr *values[MAX_ARGS]; /* of a call */
    };
    int arg_count;
    size_t op_index; /* where a table held the operation; the table of another target mostly holds it there too */
} TemplateExpr;

typedef struct Piece {
    struct Piece *next;
    const char *text; /* when expr is NULL */
    size_t size;
    TemplateExpr *expr;
} Piece;

struct Pieces {
    Piece *first;
    const char *plain; /* the whole text when nothing is inserted, else NULL */
};

typedef enum StatementKind {
    STATEMENT_LINE,
    STATEMENT_BLANK,
    STATEMENT_LET,
    STATEMENT_SET,
    STATEMENT_IF,
    STATEMENT_FOR,
    STATEMENT_LOOP,
    STATEMENT_MACRO,
    STATEMENT_DEFINE,
    STATEMENT_USE,
    STATEMENT_INCLUDE,
    STATEMENT_VERBATIM,
    STATEMENT_ERROR
} StatementKind;

typedef struct Statement {
    struct Statement *next, *body, *otherwise;
    StatementKind kind;
    int line;
    const char *name;
    const char *counter;               /* the second name of a $for, or NULL */
    Pieces *pieces;
    TemplateExpr *value;               /* of $let, $set, $define, the condition, or U; NULL in a $loop: full */
    TemplateExpr *first, *last, *step; /* last is NULL in a $for over the list `first`; step may be NULL */
    union {
        const char *params[MAX_PARAMS]; /* of $macro and $define */
        TemplateExpr *args[MAX_PARAMS]; /* of $use */
    };
    int count;
} Statement;

typedef struct Template {
    struct Template *next;
    const char *name;
    Statement *body;
} Template;

/* ======================================================================= an expansion */
/* Where the expansion is: a frame for each template, include, macro or function that is open. */
typedef struct Frame {
    const char *file;
    int line;
    const char *kind, *name; /* "macro" or "function", and its name; NULL: a file */
    struct Frame *outer;
    int depth;
} Frame;

/* What $macro or $define made. */
typedef struct Macro {
    struct Macro *next;
    const Statement *statement;
    const char *file;
} Macro;

/* A running macro or function: its scope, and the state to return to. */
typedef struct Call {
    Frame frame;
    TemplateVars own, *outer;
} Call;

/* Lines that wait until it is known whether they need braces. */
typedef struct Capture {
    Text text;
    struct Capture *outer;
} Capture;

typedef struct Expansion {
    Arena *arena; /* lives as long as the expansion; while a line is put together, only as long as that line */
    Writer *writer;
    const Isa *v, *u;
    HelperUse *uses; /* or NULL */
    TemplateVars *scope;
    TemplateVars *globals; /* what a macro sees */
    Frame *frame;
    Capture *capture;
    struct OpenLoop *loops;
    Macro *macros, *functions;
    int64_t steps;
} Expansion;

/* Reading one line (or text) of a template. */
typedef struct Scan {
    Arena *arena;
    const char *file;
    int line, depth;
    const char *at, *end;
} Scan;

#define template_scan_error(scan, ...) bug_at("template", (scan)->file, (scan)->line, __VA_ARGS__)

/* ======================================================================= emit/template_error.c */
_Noreturn void expand_error(const Expansion *x, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ======================================================================= emit/template_scope.c
 * A `name` here is one that name_of gave. */
const char *name_of(const char *start, size_t size); /* one copy a name: equal pointers */
static inline TemplateValue template_int(int64_t integer) { return (TemplateValue){.integer = integer}; }
static inline TemplateValue template_text(const char *text) {
    return (TemplateValue){.kind = TEMPLATE_TEXT, .text = text};
}
const char *template_print(Arena *arena, TemplateValue value);         /* of an integer or a text */
const char *template_describe(Arena *arena, TemplateValue value);      /* "the number 3", "a list" */
void vars_set(TemplateVars *vars, const char *name, TemplateValue value);
bool vars_has_own(TemplateVars *vars, const char *name);               /* in this scope itself */
bool vars_assign(Expansion *x, const char *name, TemplateValue value); /* an existing one that the template let */
const TemplateValue *vars_find(TemplateVars *vars, const char *name);  /* or NULL */
TemplateVars *template_record(const TemplateList *list, int64_t i);    /* NULL behind the last */
int64_t template_count(const TemplateList *list);
_Noreturn void unknown_name(const Expansion *x, const char *name);
_Noreturn void unknown_field(const Expansion *x, const char *of, const TemplateVars *record, const char *name);

/* ======================================================================= emit/template_scan.c */
void template_scan_spaces(Scan *scan);
bool template_scan_symbol(Scan *scan, const char *symbol); /* passes spaces, then the symbol if it stands there */
bool template_scan_word(Scan *scan, const char *word);     /* the same for a whole name */
const char *template_scan_name(Scan *scan);                /* or NULL */
TemplateExpr *template_scan_expression(Scan *scan);
TemplateExpr *template_scan_text(Scan *scan);              /* to the end, as a value */
Pieces *template_scan_pieces(Scan *scan);                  /* to the end */
extern const char *const template_functions[];             /* ended by NULL */
extern const char *const template_properties[];            /* of a target, in the order of TemplateProperty */
typedef enum TemplateProperty {
    PROPERTY_WIDTH,
    PROPERTY_REGISTERS,
    PROPERTY_FUSED,
    PROPERTY_APART,
    PROPERTY_TYPE,
    PROPERTY_INTEGERS,
    PROPERTY_NAME,
    PROPERTY_ATTRIBUTE,
    PROPERTY_GUARD,
    PROPERTY_COUNT
} TemplateProperty;
void template_check_record_name(const Scan *scan, const char *name); /* refuses v and u */

/* ======================================================================= emit/template_parse.c */
Template *template_parse(Arena *arena, const char *name, int line, const char *text); /* begins at that line */
const Template *template_embedded(const char *name); /* parsed once a process; NULL when there is no such file */

/* ======================================================================= emit/template_value.c */
TemplateValue template_evaluate(Expansion *x, TemplateExpr *expr);
TemplateValue template_evaluate_plain(Expansion *x, TemplateExpr *expr); /* an integer or a text */
int64_t template_evaluate_int(Expansion *x, TemplateExpr *expr, const char *what);
const TemplateList *template_evaluate_list(Expansion *x, TemplateExpr *expr);
const char *template_evaluate_pieces(Expansion *x, const Pieces *pieces);
void template_count_step(Expansion *x); /* ends the program if the expansion takes too many steps */
void template_enter(Expansion *x, Frame *frame, const char *file, const char *kind, const char *name);
/* Enters a macro or function of `list` with its arguments, and returns its statement. `kind`: what errors call it. */
const Statement *template_open_call(Expansion *x, Call *call, Macro **list, const char *kind, const char *name,
                                    TemplateExpr *const *args, int n);
void template_close_call(Expansion *x, const Call *call);
TemplateValue template_sum(Expansion *x, TemplateValue a, TemplateValue b);

/* ======================================================================= emit/template_run.c */
void template_run(Expansion *x, const Template *template);

#endif
