/* syntax.h: declarations shared by lexer.l, parser.y and ast.c. */
#ifndef SYNTAX_H
#define SYNTAX_H

#include "../attnc.h"

typedef struct ItemList {
    Item *first, **tail;
} ItemList;

typedef struct ValueList {
    Value *first, **tail;
} ValueList;

/* The state of the lexer and the parser. Each run has its own, so that both are reentrant. */
typedef struct Parse {
    Arena *arena;
    Source *source;
    Diagnostics *diagnostics;
    Ast *ast;
    Comment **comment_tail;
    int line, column;      /* location of the next byte */
    int depth;             /* open braces */
    Location open[MAX_NESTING]; /* [depth] of these braces */
    int indents[MAX_NESTING];   /* [depth] where the lines of these braces begin */
    int indent_line, indent;    /* the last line with a token, and the column of its first one */
    Location unclosed, early;   /* the first `{` whose `}` is indented as an outer one, and this `}`; line 0: none */
    int parentheses;       /* number of open parentheses; a newline inside them is white space */
    bool item_open;        /* an item has begun since the last separator */
    bool pending_brace;    /* a `}` is returned after the supplied separator */
    Location brace_place;
    int deep_line;         /* the line on which an expression was last found too deep */
    bool stopped;          /* a limit was exceeded, and the rest is not read */
    bool precise;          /* the lexer has reported the last error precisely */
    int before, last;      /* the last two tokens that the parser read, the earlier one first */
    const char *word;      /* the last NAME */
    Location word_place;
    int word_behind;       /* the token before that NAME */
    bool held;             /* that NAME is returned only after the supplied separator */
    const char *item;      /* the word that the item at hand begins with */
    bool in_rule;          /* the lexer reads an expression after `where` or `=`, to the end of the item */
    bool was_in_rule;      /* the same before the last token */
} Parse;

Expr *expr_new(Parse *parse, ExprKind kind, Location location, Expr *left, Expr *right);
Expr *expr_of_three(Parse *parse, ExprKind kind, Location location, Expr *left, Expr *right, Expr *third);
Location place_join(Location first, Location last);

#endif
