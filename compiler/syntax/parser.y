/* parser.y: the grammar of a spec. It is tiny; all meaning is in model/resolve.c and model/settings.def.
 *
 *     item: NAME [= | <=] value* [block]
 *
 * A value begins with a word, a number, a string or sqrt; a sign or a bare parenthesis cannot begin one,
 * so that `eps 1e-6` is two values and `d_ff 4*d_model` one. A sign behind the item's name is read all the same, as
 * EXPR_NEGATE, which stands nowhere else outside of parentheses: resolve refuses it and says the range. */
%define api.pure full
%define api.prefix {spec_}
%define api.location.type {Place}
%define parse.error custom
%locations
%param {void *scanner}
%parse-param {Parse *parse}

%code requires {
#include "syntax.h"
}

%union {
    const char *text;
    Expr *number;
    Item *item;
    Value *value;
    ItemList items;
    ValueList values;
    Relation relation;
    struct { bool open; Place end; Item *items; } block;
}

%code {
#define YYLLOC_DEFAULT(Current, Rhs, N) \
    ((Current) = (N) ? place_join(YYRHSLOC(Rhs, 1), YYRHSLOC(Rhs, N)) : YYRHSLOC(Rhs, 0))

static int next_token(SPEC_STYPE *value, Place *place, void *scanner);
#define spec_lex next_token
static void spec_error(Place *place, void *scanner, Parse *parse, const char *message);
static Item *item_new(Parse *parse, Place place, const char *name);
static Value *value_new(Parse *parse, ValueKind kind, Place place);
static Expr *name_new(Parse *parse, Place place, const char *name);
}

%token SEP "end of item" NAME "name" STRING "string" NUMBER "number" AT_MOST "`<=`" DOTDOT "`..`" LET "`let`" SQRT "`sqrt`"
%token STRAY "stray character" '{' "`{`" '}' "`}`" '(' "`(`" ')' "`)`" '=' "`=`" '+' "`+`" '-' "`-`" '*' "`*`" '/' "`/`"

%type <text> NAME STRING
%type <number> NUMBER sum product first primary term inner signed
%type <item> item
%type <items> items
%type <value> value
%type <values> values
%type <relation> relation
%type <block> block

%%

spec: items                             { parse->ast->items = $items.first; }

items:
    %empty                              { $$.first = NULL; $$.tail = NULL; }
  | items[before] item SEP              {
                                            $$ = $before;
                                            if ($$.first) *$$.tail = $item; else $$.first = $item;
                                            $$.tail = &$item->next;
                                        }
  | items[before] error SEP             { $$ = $before; yyerrok; }
  | items[before] error '{' items '}' SEP { $$ = $before; yyerrok; }

item:
    NAME relation values block          {
                                            $$ = item_new(parse, @NAME, $NAME);
                                            $$->relation = $relation;
                                            $$->values = $values.first;
                                            $$->has_block = $block.open;
                                            $$->block_end = $block.end;
                                            $$->items = $block.items;
                                        }
  | STRING values                       {
                                            $$ = item_new(parse, @STRING, $STRING);
                                            $$->quoted = true;
                                            $$->values = $values.first;
                                        }
  | LET NAME '=' sum                    {
                                            $$ = item_new(parse, @NAME, $NAME);
                                            $$->is_let = true;
                                            $$->values = value_new(parse, VALUE_EXPR, @sum);
                                            $$->values->expr = $sum;
                                        }
  | LET NAME '=' signed                 {
                                            $$ = item_new(parse, @NAME, $NAME);
                                            $$->is_let = true;
                                            $$->values = value_new(parse, VALUE_EXPR, @signed);
                                            $$->values->expr = $signed;
                                        }

relation: %empty { $$ = RELATION_NONE; } | '=' { $$ = RELATION_EQUAL; } | AT_MOST { $$ = RELATION_AT_MOST; }

block:
    %empty                              { $$.open = false; $$.items = NULL; $$.end = (Place){0}; }
  | '{' items '}'                       { $$.open = true; $$.items = $items.first; $$.end = @3; }

values:
    %empty                              { $$.first = NULL; $$.tail = NULL; }
  | signed                              {
                                            $$.first = value_new(parse, VALUE_EXPR, @$);
                                            $$.first->expr = $signed;
                                            $$.tail = &$$.first->next;
                                        }
  | values[before] value                {
                                            $$ = $before;
                                            if ($$.first) *$$.tail = $value; else $$.first = $value;
                                            $$.tail = &$value->next;
                                        }

value:
    STRING                              { $$ = value_new(parse, VALUE_STRING, @$); $$->string = $STRING; }
  | sum                                 { $$ = value_new(parse, VALUE_EXPR, @$); $$->expr = $sum; }
  | sum[from] DOTDOT sum[to]            { $$ = value_new(parse, VALUE_RANGE, @$); $$->expr = $from; $$->until = $to; }

sum:
    product
  | sum[a] '+' term[b]                  { $$ = expr_new(parse, EXPR_ADD, @$, $a, $b); }
  | sum[a] '-' term[b]                  { $$ = expr_new(parse, EXPR_SUB, @$, $a, $b); }

signed: '-' term                        { $$ = expr_new(parse, EXPR_NEGATE, @$, $term, NULL); }

product:
    first
  | product[a] '*' primary[b]           { $$ = expr_new(parse, EXPR_MUL, @$, $a, $b); }
  | product[a] '/' primary[b]           { $$ = expr_new(parse, EXPR_DIV, @$, $a, $b); }

first:
    NUMBER
  | NAME                                { $$ = name_new(parse, @$, $NAME); }
  | SQRT '(' inner ')'                  { $$ = expr_new(parse, EXPR_SQRT, @$, $inner, NULL); }

primary:
    first
  | '(' inner ')'                       { $$ = $inner; }

/* Behind a sign and inside parentheses a parenthesis may begin; inside them a sign as well. */
term:
    primary
  | term[a] '*' primary[b]              { $$ = expr_new(parse, EXPR_MUL, @$, $a, $b); }
  | term[a] '/' primary[b]              { $$ = expr_new(parse, EXPR_DIV, @$, $a, $b); }

inner:
    term
  | '-' term                            { $$ = expr_new(parse, EXPR_NEGATE, @$, $term, NULL); }
  | inner[a] '+' term[b]                { $$ = expr_new(parse, EXPR_ADD, @$, $a, $b); }
  | inner[a] '-' term[b]                { $$ = expr_new(parse, EXPR_SUB, @$, $a, $b); }

%%

static Item *item_new(Parse *parse, Place place, const char *name) {
    Item *item = arena_alloc(parse->arena, sizeof *item);
    item->place = place;
    item->name = name;
    return item;
}

static Value *value_new(Parse *parse, ValueKind kind, Place place) {
    Value *value = arena_alloc(parse->arena, sizeof *value);
    value->kind = kind;
    value->place = place;
    return value;
}

static Expr *name_new(Parse *parse, Place place, const char *name) {
    Expr *expr = expr_new(parse, EXPR_NAME, place, NULL, NULL);
    expr->text = name;
    return expr;
}

static void spec_error(Place *place, void *scanner, Parse *parse, const char *message) {
    (void)scanner;
    if (parse->precise) {
        parse->precise = false;
        return;
    }
    diagnose(parse->diagnostics, *place, "%s", message);
}

int lex_lex(SPEC_STYPE *value, Place *place, void *scanner);
Parse *lex_get_extra(void *scanner);

static void no_separator(Parse *parse, const char *what) {
    diagnose(parse->diagnostics, parse->word_place,
             "`%s` is a%s %s of its own: a comma or a new line belongs before it", parse->word,
             what[0] == 'i' ? "n" : "", what);
}

/* The lexer's tokens. A word right behind a block's end lacks the separator before it: it is supplied. */
static int next_token(SPEC_STYPE *value, Place *place, void *scanner) {
    Parse *parse = lex_get_extra(scanner);
    if (parse->held) {
        parse->held = false;
        parse->before = SEP;
        parse->last = NAME;
        *place = parse->word_place;
        value->text = parse->word;
        return NAME;
    }
    int token = lex_lex(value, place, scanner);
    if (token == NAME) {
        parse->word = value->text;
        parse->word_place = *place;
        parse->word_behind = parse->last;
    }
    if (token == NAME && parse->last == '}' && parse->depth) {
        no_separator(parse, "item");
        parse->held = true;
        token = SEP;
    }
    parse->before = parse->last;
    parse->last = token;
    return token;
}

/* The last word stands where a value has ended, so that an item could begin with it. */
static bool begins_anew(const Parse *parse) {
    int behind = parse->word_behind;
    return behind == NAME || behind == NUMBER || behind == STRING || behind == ')' || behind == '}';
}

/* A parenthesis where a value would begin, or behind a word as if that was a function. */
static bool parenthesis(Parse *parse, Place place) {
    if (parse->last != '(') return false;
    Place word = parse->word_place;
    bool called = parse->before == NAME && word.line == place.line && word.column + word.length == place.column;
    if (called && parse->word_behind != SEP && parse->word_behind != '{') {
        diagnose(parse->diagnostics, word, "`%s` is no function; the only one is `sqrt(…)`", parse->word);
        return true;
    }
    static const int ends[] = {NAME, NUMBER, STRING, ')', '=', AT_MOST};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (parse->before == ends[i]) {
            diagnose(parse->diagnostics, place, "a value cannot begin with a parenthesis: write a factor before it, "
                     "as `1*(…)`");
            return true;
        }
    return false;
}

/* A lexer that has already said precisely what is wrong silences the generic message. */
static int yyreport_syntax_error(const yypcontext_t *context, void *scanner, Parse *parse) {
    (void)scanner;
    if (parse->precise) {
        parse->precise = false;
        return 0;
    }
    yysymbol_kind_t expected[6], found = yypcontext_token(context);
    bool relation = parse->last == '=' || parse->last == AT_MOST;
    if (begins_anew(parse) && (parse->last == NAME || (relation && parse->before == NAME))) {
        no_separator(parse, relation ? "setting" : "item");
        return 0;
    }
    if (parenthesis(parse, *yypcontext_location(context))) return 0;
    int count = yypcontext_expected_tokens(context, expected, 6);
    Text text = text_new(parse->arena);
    if (found == YYSYMBOL_YYEOF && parse->depth > 0)
        text_printf(&text, "the file ends inside a block: %d `}` missing", parse->depth);
    else if (found == YYSYMBOL_YYEOF)
        text_printf(&text, "the file ends too early");
    else
        text_printf(&text, "found %s", yysymbol_name(found));
    for (int i = 0; i < count && found != YYSYMBOL_YYEOF; i++)
        text_printf(&text, "%s %s", i == 0 ? ", expected" : i == count - 1 ? " or" : ",", yysymbol_name(expected[i]));
    diagnose(parse->diagnostics, *yypcontext_location(context), "%s", text.data);
    return 0;
}

int lex_lex_init_extra(Parse *parse, void **scanner);
int lex_lex_destroy(void *scanner);
void *lex__scan_bytes(const char *bytes, int size, void *scanner);

typedef struct Scanner {
    void *scanner;
} Scanner;

static void scanner_free(void *with) {
    Scanner *held = with;
    if (held->scanner) lex_lex_destroy(held->scanner);
}

Ast *parse(Arena *arena, Source *source, Diagnostics *diagnostics) {
    Ast *ast = arena_alloc(arena, sizeof *ast);
    ast->source = source;
    Parse state = {.arena = arena, .source = source, .diagnostics = diagnostics, .ast = ast,
                   .comment_tail = &ast->comments, .line = 1, .column = 1};
    Scanner *held = arena_alloc(arena, sizeof *held);
    arena_on_free(arena, scanner_free, held);
    if (lex_lex_init_extra(&state, &held->scanner)) out_of_memory();
    if (!lex__scan_bytes(source->text, (int)source->size, held->scanner)) out_of_memory();
    int status = spec_parse(held->scanner, &state);
    if (status == 2) out_of_memory();
    if (status == 1 && diagnostics->errors == 0)
        diagnose(diagnostics, (Place){source, state.line, state.column, 0}, "the spec cannot be read");
    if (diagnostics->errors == 0 && !ast->items)
        diagnose(diagnostics, (Place){source, 1, 1, 0}, "the file has no model: it must hold `model NAME { … }`");
    lex_lex_destroy(held->scanner);
    held->scanner = NULL;
    return ast;
}
