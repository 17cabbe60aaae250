/* syntax.h: what lexer.l, parser.y and ast.c share among themselves. */
#ifndef SYNTAX_H
#define SYNTAX_H

#include "../attnc.h"

typedef struct ItemList {
    Item *first, **tail;
} ItemList;

typedef struct ValueList {
    Value *first, **tail;
} ValueList;

/* The lexer's and the parser's common state; one a run, so that both are reentrant. */
typedef struct Parse {
    Arena *arena;
    Source *source;
    Diagnostics *diagnostics;
    Ast *ast;
    Comment **comment_tail;
    int line, column;      /* of the next byte */
    int depth;             /* open braces */
    int parentheses;       /* open parentheses; a newline inside them is space */
    bool item_open;        /* something stands before the next separator */
    bool pending_brace;    /* a `}` waits behind a supplied separator */
    Place brace_place;
    int deep_line;         /* where an expression was last found too deep */
    bool stopped;          /* a limit was passed: the rest is not read */
    bool precise;          /* the last error was reported by the lexer, precisely */
    int before, last;      /* the last two tokens that the parser got */
    const char *word;      /* the last NAME */
    Place word_place;
    int word_behind;       /* the token before it */
    bool held;             /* that NAME waits behind a supplied separator */
} Parse;

Expr *expr_new(Parse *parse, ExprKind kind, Place place, Expr *left, Expr *right);
Place place_join(Place first, Place last);

#endif
