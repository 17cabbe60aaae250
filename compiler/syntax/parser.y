/* parser.y: the grammar of a spec. It is tiny, and model/ gives it its meaning.
 *
 *     item: NAME [= | <=] value* [block]
 *
 * A value begins with a word, a number, a string or sqrt. No sign or bare parenthesis begins a value, so that
 * `eps 1e-6` is two values and `d_ff 4*d_model` is a single value. A sign behind the item's name is nevertheless
 * parsed, as the only EXPR_NEGATE outside parentheses, so that resolve can refuse it and state the range. */
%define api.pure full
%define api.prefix {spec_}
%define api.location.type {Location}
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
    struct { bool open; Location end; Item *items; } block;
}

%code {
#include <string.h>

#define YYLLOC_DEFAULT(Current, Rhs, N) \
    ((Current) = (N) ? place_join(YYRHSLOC(Rhs, 1), YYRHSLOC(Rhs, N)) : YYRHSLOC(Rhs, 0))

static int next_token(SPEC_STYPE *value, Location *location, void *scanner);
#define spec_lex next_token
static void spec_error(Location *location, void *scanner, Parse *parse, const char *message);
static Item *item_new(Parse *parse, Location location, const char *name);
static Value *value_new(Parse *parse, ValueKind kind, Location location);
static Item *learned(Parse *parse, Location location, const char *name, Expr *count, Expr *heads);
static Expr *name_new(Parse *parse, Location location, const char *name);
static Expr *called(Parse *parse, ExprKind kind, Location location, const char *name, const Expr *arguments);
}

%token SEP "end of item" NAME "name" STRING "string" NUMBER "number" AT_MOST "`<=`" DOTDOT "`..`" LET "`let`"
%token SQRT "`sqrt`"
%token SCORED "expression" TABLE "`table`" LEARNED "`learned`"
%token WHERE "`where`" LESS "`<`" GREATER "`>`" AT_LEAST "`>=`" EQUAL "`==`" DIFFERS "`!=`" MOD "`mod`" NOT "`not`"
%token AND "`and`" OR "`or`" IF "`if`" THEN "`then`" ELSE "`else`" '[' "`[`" ']' "`]`" '^' "`^`" ',' "`,`"
%token STRAY "stray character" '{' "`{`" '}' "`}`" '(' "`(`" ')' "`)`" '=' "`=`" '+' "`+`" '-' "`-`" '*' "`*`" '/' "`/`"

/* Operators of rules, where the last ones bind tightest. */
%precedence ELSE
%left OR
%left AND
%precedence NOT
%nonassoc LESS AT_MOST GREATER AT_LEAST EQUAL DIFFERS
%left '+' '-'
%left '*' '/' MOD
%precedence SIGN
%right '^'

%type <text> NAME STRING WHERE
%type <number> NUMBER sum product first primary term inner signed bound rule arguments
%type <item> item
%type <items> items
%type <value> value
%type <values> item_values values
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
    NAME relation item_values[values] block {
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
  | LET NAME '=' bound                  {
                                            $$ = item_new(parse, @NAME, $NAME);
                                            $$->is_let = true;
                                            $$->values = value_new(parse, VALUE_EXPR, @bound);
                                            $$->values->expr = $bound;
                                        }
  | LET NAME '=' TABLE '[' rule[count] ']' rule[of] {
                                            $$ = item_new(parse, @NAME, $NAME);
                                            $$->is_let = true;
                                            $$->values = value_new(parse, VALUE_TABLE, place_join(@TABLE, @of));
                                            $$->values->expr = $of;
                                            $$->values->until = $count;
                                        }
  | LEARNED NAME '[' rule[count] ']'    { $$ = learned(parse, @NAME, $NAME, $count, NULL); }
  | LEARNED NAME '[' rule[heads] ']' '[' rule[count] ']' { $$ = learned(parse, @NAME, $NAME, $count, $heads); }

bound: sum | signed

relation: %empty { $$ = RELATION_NONE; } | '=' { $$ = RELATION_EQUAL; } | AT_MOST { $$ = RELATION_AT_MOST; }

block:
    %empty                              { $$.open = false; $$.items = NULL; $$.end = (Location){0}; }
  | '{' items '}'                       { $$.open = true; $$.items = $items.first; $$.end = @3; }

item_values:
    values
  | SCORED rule                         {
                                            $$.first = value_new(parse, VALUE_RULE, @rule);
                                            $$.first->expr = $rule;
                                            $$.first->string = "";
                                            $$.tail = &$$.first->next;
                                        }
  | values[before] WHERE rule           {
                                            Value *value = value_new(parse, VALUE_RULE, place_join(@WHERE, @rule));
                                            value->expr = $rule;
                                            value->string = $WHERE;
                                            $$ = $before;
                                            if ($$.first) *$$.tail = value; else $$.first = value;
                                            $$.tail = &value->next;
                                        }

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
  | sum[from] DOTDOT signed[to]         { $$ = value_new(parse, VALUE_RANGE, @$); $$->expr = $from; $$->until = $to; }

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

/* A term may begin with a parenthesis after an operator or inside parentheses, and with a sign inside parentheses. */
term:
    primary
  | term[a] '*' primary[b]              { $$ = expr_new(parse, EXPR_MUL, @$, $a, $b); }
  | term[a] '/' primary[b]              { $$ = expr_new(parse, EXPR_DIV, @$, $a, $b); }

inner:
    term
  | '-' term                            { $$ = expr_new(parse, EXPR_NEGATE, @$, $term, NULL); }
  | inner[a] '+' term[b]                { $$ = expr_new(parse, EXPR_ADD, @$, $a, $b); }
  | inner[a] '-' term[b]                { $$ = expr_new(parse, EXPR_SUB, @$, $a, $b); }

rule:
    NUMBER
  | NAME                                { $$ = name_new(parse, @$, $NAME); }
  | NAME '(' arguments ')'              { $$ = called(parse, EXPR_CALL, @$, $NAME, $arguments); }
  | NAME '[' arguments ']'              { $$ = called(parse, EXPR_INDEX, @$, $NAME, $arguments); }
  | '(' rule[a] ')'                     { $$ = $a; }
  | '-' rule[a] %prec SIGN              { $$ = expr_new(parse, EXPR_NEGATE, @$, $a, NULL); }
  | NOT rule[a]                         { $$ = expr_new(parse, EXPR_NOT, @$, $a, NULL); }
  | IF rule[a] THEN rule[b] ELSE rule[c] { $$ = expr_of_three(parse, EXPR_IF, @$, $a, $b, $c); }
  | rule[a] '^' rule[b]                 { $$ = expr_new(parse, EXPR_POWER, @$, $a, $b); }
  | rule[a] '*' rule[b]                 { $$ = expr_new(parse, EXPR_MUL, @$, $a, $b); }
  | rule[a] '/' rule[b]                 { $$ = expr_new(parse, EXPR_DIV, @$, $a, $b); }
  | rule[a] MOD rule[b]                 { $$ = expr_new(parse, EXPR_MOD, @$, $a, $b); }
  | rule[a] '+' rule[b]                 { $$ = expr_new(parse, EXPR_ADD, @$, $a, $b); }
  | rule[a] '-' rule[b]                 { $$ = expr_new(parse, EXPR_SUB, @$, $a, $b); }
  | rule[a] LESS rule[b]                { $$ = expr_new(parse, EXPR_LESS, @$, $a, $b); }
  | rule[a] AT_MOST rule[b]             { $$ = expr_new(parse, EXPR_AT_MOST, @$, $a, $b); }
  | rule[a] GREATER rule[b]             { $$ = expr_new(parse, EXPR_GREATER, @$, $a, $b); }
  | rule[a] AT_LEAST rule[b]            { $$ = expr_new(parse, EXPR_AT_LEAST, @$, $a, $b); }
  | rule[a] EQUAL rule[b]               { $$ = expr_new(parse, EXPR_EQUAL, @$, $a, $b); }
  | rule[a] DIFFERS rule[b]             { $$ = expr_new(parse, EXPR_DIFFERS, @$, $a, $b); }
  | rule[a] AND rule[b]                 { $$ = expr_new(parse, EXPR_AND, @$, $a, $b); }
  | rule[a] OR rule[b]                  { $$ = expr_new(parse, EXPR_OR, @$, $a, $b); }

/* At most three, in the order of the parts of an expression. */
arguments:
    rule[a]                             { $$ = expr_new(parse, EXPR_CALL, @$, $a, NULL); }
  | rule[a] ',' rule[b]                 { $$ = expr_new(parse, EXPR_CALL, @$, $a, $b); }
  | rule[a] ',' rule[b] ',' rule[c]     { $$ = expr_of_three(parse, EXPR_CALL, @$, $a, $b, $c); }

%%

static Item *item_new(Parse *parse, Location location, const char *name) {
    Item *item = arena_alloc(parse->arena, sizeof *item);
    item->location = location;
    item->name = name;
    return item;
}

static Value *value_new(Parse *parse, ValueKind kind, Location location) {
    Value *value = arena_alloc(parse->arena, sizeof *value);
    value->kind = kind;
    value->location = location;
    return value;
}

/* A table of so many numbers, perhaps for each of so many heads. */
static Item *learned(Parse *parse, Location location, const char *name, Expr *count, Expr *heads) {
    Item *item = item_new(parse, location, name);
    item->is_let = true;
    item->values = value_new(parse, VALUE_LEARNED, location);
    item->values->expr = count;
    item->values->until = heads;
    return item;
}

static Expr *name_new(Parse *parse, Location location, const char *name) {
    Expr *expr = expr_new(parse, EXPR_NAME, location, NULL, NULL);
    expr->text = name;
    return expr;
}

/* `arguments` has been made for its parts alone. */
static Expr *called(Parse *parse, ExprKind kind, Location location, const char *name, const Expr *arguments) {
    Expr *expr = expr_of_three(parse, kind, location, arguments->left, arguments->right, arguments->third);
    if (expr->kind == kind) expr->text = name;
    return expr;
}

static void spec_error(Location *location, void *scanner, Parse *parse, const char *message) {
    (void)scanner;
    if (parse->precise) {
        parse->precise = false;
        return;
    }
    diagnose(parse->diagnostics, *location, "%s", message);
}

int lex_lex(SPEC_STYPE *value, Location *location, void *scanner);
Parse *lex_get_extra(void *scanner);

static void no_separator(Parse *parse, const char *what) {
    diagnose(parse->diagnostics, parse->word_place,
             "`%s` is a%s %s of its own: a comma or a new line belongs before it", parse->word,
             what[0] == 'i' ? "n" : "", what);
}

/* Reports a word and `=` or `<=` within an item. Only these settings take one, and so begin an item there. */
static void relation_within(Parse *parse) {
    static const char *const settings[] = {"seq", "queries", "keys", "activation"};
    const bool in_head = strcmp(parse->item, "head") == 0, activation = strcmp(parse->word, "activation") == 0;
    if (in_head && (activation || strcmp(parse->word, "pooler") == 0 || strcmp(parse->word, "transform") == 0)) {
        diagnose(parse->diagnostics, parse->word_place, "an activation in `head` is a word, as in `head %s gelu`, and "
                 "no expression", activation ? "pooler" : parse->word);
        return;
    }
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (strcmp(settings[i], parse->word) == 0) {
            no_separator(parse, "setting");
            return;
        }
    diagnose(parse->diagnostics, parse->word_place, "`%s` takes its value without `%s`", parse->word,
             parse->last == '=' ? "=" : "<=");
}

/* Returns the lexer's tokens, and supplies the separator that is missing before a word right after a block. */
static int next_token(SPEC_STYPE *value, Location *location, void *scanner) {
    Parse *parse = lex_get_extra(scanner);
    if (parse->held) {
        parse->held = false;
        parse->before = SEP;
        parse->last = NAME;
        *location = parse->word_place;
        value->text = parse->word;
        return NAME;
    }
    parse->was_in_rule = parse->in_rule;
    int token = lex_lex(value, location, scanner);
    if (token == NAME) {
        parse->word = value->text;
        parse->word_place = *location;
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

/* Whether the last word follows a complete value, so that it could begin an item. */
static bool begins_anew(const Parse *parse) {
    int behind = parse->word_behind;
    return behind == NAME || behind == NUMBER || behind == STRING || behind == ')' || behind == '}';
}

/* Reports a parenthesis that would begin a value, or that follows a word as in a call of a function. */
static bool parenthesis(Parse *parse, Location location) {
    if (parse->last != '(' || parse->was_in_rule) return false;
    Location word = parse->word_place;
    bool called = parse->before == NAME && word.line == location.line && word.column + word.length == location.column;
    if (called && parse->word_behind != SEP && parse->word_behind != '{') {
        diagnose(parse->diagnostics, word, "`%s` is no function; the only one is `sqrt(…)`", parse->word);
        return true;
    }
    static const int ends[] = {NAME, NUMBER, STRING, ')', '=', AT_MOST};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (parse->before == ends[i]) {
            diagnose(parse->diagnostics, location, "a value cannot begin with a parenthesis: write a factor before it, "
                     "as `1*(…)`");
            return true;
        }
    return false;
}

static bool is_comparison(int token) {
    return token == LESS || token == AT_MOST || token == GREATER || token == AT_LEAST || token == EQUAL ||
           token == DIFFERS;
}

/* Points at the block whose `}` is missing: the one that an outer `}` closed, or else the innermost open one. */
static void note_open_block(const Parse *parse) {
    if (parse->unclosed.line)
        diagnose_note(parse->diagnostics, parse->unclosed,
                      "this block was opened here, and the `}` of line %d stands where the `}` of an outer block does",
                      parse->early.line);
    else
        diagnose_note(parse->diagnostics, parse->open[parse->depth - 1], "this block was opened here");
}

/* Omits the generic message where the lexer has just reported a precise error. */
static int yyreport_syntax_error(const yypcontext_t *context, void *scanner, Parse *parse) {
    (void)scanner;
    if (parse->precise) {
        parse->precise = false;
        return 0;
    }
    yysymbol_kind_t expected[6], found = yypcontext_token(context);
    bool relation = parse->last == '=' || parse->last == AT_MOST;
    if (!parse->was_in_rule && begins_anew(parse) && (parse->last == NAME || (relation && parse->before == NAME))) {
        if (relation) relation_within(parse);
        else no_separator(parse, "item");
        return 0;
    }
    if (parenthesis(parse, *yypcontext_location(context))) return 0;
    if (parse->was_in_rule && is_comparison(parse->last)) {
        diagnose(parse->diagnostics, *yypcontext_location(context),
                 "comparisons are not chained: write `a < b and b < c`");
        return 0;
    }
    if (parse->was_in_rule && parse->last == NUMBER && parse->before == NAME && strcmp(parse->word, "window") == 0) {
        diagnose(parse->diagnostics, *yypcontext_location(context),
                 "`window N` is no condition: it stands before `where`, or is written `abs(q - k) < N`");
        return 0;
    }
    if (parse->was_in_rule && parse->last == '[' && parse->before == ']') {
        diagnose(parse->diagnostics, *yypcontext_location(context), "%s",
                 strcmp(parse->item, "learned") == 0
                     ? "a learned table is `[heads]`, `[N]` or `[heads][N]`"
                     : "the indexes of a table stand in one pair of brackets: write `NAME[h, EXPR]`");
        return 0;
    }
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
    if (parse->was_in_rule && !count) text_printf(&text, ", expected an operator or the end of the expression");
    diagnose(parse->diagnostics, *yypcontext_location(context), "%s", text.data);
    if (found == YYSYMBOL_YYEOF && parse->depth > 0) note_open_block(parse);
    return 0;
}

int lex_lex_init_extra(Parse *parse, void **scanner);
int lex_lex_destroy(void *scanner);
void *lex__scan_bytes(const char *bytes, int size, void *scanner);

static void scanner_free(void *with) {
    void **scanner = with;
    if (*scanner) lex_lex_destroy(*scanner);
}

Ast *parse(Arena *arena, Source *source, Diagnostics *diagnostics) {
    Ast *ast = arena_alloc(arena, sizeof *ast);
    ast->source = source;
    Parse state = {.arena = arena, .source = source, .diagnostics = diagnostics, .ast = ast,
                   .comment_tail = &ast->comments, .line = 1, .column = 1, .item = ""};
    void **scanner = arena_alloc(arena, sizeof *scanner);
    arena_on_free(arena, scanner_free, scanner);
    if (lex_lex_init_extra(&state, scanner)) out_of_memory();
    if (!lex__scan_bytes(source->text, (int)source->size, *scanner)) out_of_memory();
    int status = spec_parse(*scanner, &state);
    if (status == 2) out_of_memory();
    if (status == 1 && diagnostics->errors == 0)
        diagnose(diagnostics, (Location){source, state.line, state.column, 0}, "the spec cannot be read");
    if (diagnostics->errors == 0 && !ast->items)
        diagnose(diagnostics, (Location){source, 1, 1, 0}, "the file has no model: it must hold `model NAME { … }`");
    lex_lex_destroy(*scanner);
    *scanner = NULL;
    return ast;
}
