/* isa.c: reads a target's table, NAME.isa.
 *
 *   # a comment
 *   name avx2                        each field stands once; the rest of the line is its value
 *   based on sse2                    optional, behind the name: this table starts as a copy of that one, but for rank,
 *                                    on_request and slow_with; its own fields, helpers and rows replace copied ones
 *   rank 20                          init takes the highest rank that the machine runs; a table without a rank is the
 *                                    half of a target
 *   processor x86_64                 the processor that runs the target, or `any`
 *   on_request yes                   commands take the target only where it is named, or if it multiplies the rows of a
 *                                    model by instructions of its own; `always` if it is named; optional
 *   slow_with amx_tile               a feature of features.def: on machines that have it, init takes a table that this
 *                                    one is based on in its place unless it is named; optional
 *   width 8                          lanes of a vector
 *   registers 16
 *   type __m256
 *   integers __m256i                 the type of a vector of integers of 32 bits
 *   fused yes                        whether fma rounds once
 *   guard defined(__x86_64__)        preprocessor condition; 1 for everywhere
 *   attribute __attribute__((...))   of each function that uses the table; optional
 *   include <immintrin.h>            optional
 *   compiler defined(__clang__) | WHY   preprocessor condition; where the guard holds without it, the C is an #error
 *                                    with this text; optional
 *   cpu avx2 fma                     features of features.def that the machine must have; optional
 *   has order_of_bits                capabilities, for which templates ask by v.has(NAME); optional
 *   half avx2_half                   the table of vectors of half the lanes on the same processor; optional
 *   operator_bytes 170               of a microcontroller: hundredths of a byte of code for each operator of the C, its
 *   function_bytes 69                inline functions at their calls, and bytes for each function: as many as gcc -O2
 *                                    makes, or more
 *
 *   helper                           C in front of the kernels, a template text (see template.c)
 *   ...
 *   end
 *   helper TYPE NAME(PARAMETERS)     the function ${table}_NAME, which is printed only if it is called; its comment and
 *   ...                              its body. Names begin with ${table}_, so that several models link together
 *   end
 *   helper ... before OTHER          the same, placed before the helper OTHER of the other table, which may call it
 *   helper NAME                      the same where the text has the whole function
 *   ...
 *   end
 *
 *   op fma(acc, a, b) | _mm256_fmadd_ps($a, $b, $acc) | fmaf(a[i], b[i], acc[i])
 *   op add | _mm256_add_ps($a, $b)   the same of an operation of operations.def, which has its prototype and meaning; a
 *                                    third column is a meaning in place of that one
 *
 * An op row is prototype, C text and meaning; an indented line continues the row before it. A parameter is a vector
 * unless one of these words stands in front of its name: `integers` (a vector of integers), `float`, `count` (size_t, 1
 * to W), `bits` (uint32_t, of which the lowest W bits are one for each lane), `read` (const float *), `read16` (const
 * uint16_t *), `read8` (const int8_t *), `read2x16` and `read4x8` (the same, two and four for each lane), `byte` (an
 * int, 0 to 3), `nibble` (an int, 0 to 7), `write` (float *), `write8` (uint8_t *), `integral` (a vector of whole
 * numbers from -252 to 252), `codes` (a vector of whole numbers from 0 to 255), `pairs` (a vector of integers, each of
 * which is two numbers of bf16), `set` (a variable of the vector type, to which the operation assigns). The result is a
 * vector unless `integers`, `pairs`, `float` or `void` stands in front of the operation. In the C text, $NAME stands
 * for the argument, at most once if the argument may be a long expression.
 *
 * ${prefix} is the model's name, and ${table} is ${prefix}_NAME, where NAME is the table's name. A table that is based
 * on another one has that table's text under its own name.
 *
 * The capabilities are
 *   dot_of_bytes     `dot_4u8_4i8` is one instruction
 *   dot_of_bf16      there are `load_2bf16`, `broadcast_pair`, `join_2bf16` and `broadcast_2bf16`, of a pair, of the
 *                    lanes of two vectors and of two floats; and `dot_2bf16`, an instruction that adds the products
 *                    of two numbers of bf16
 *   dot_of_nibbles   there are `load_4n_low`, `load_4n_high`, `dot_4u8_4n` and `add_2i16`, by which products of bytes
 *                    with integers of -8 to 7 are summed in 16 bits. A lane holds the sums of eight `dot_4u8_4n`;
 *                    `add_2i16` adds both sums of a lane to a sum of 32 bits
 *   dot_of_row_pairs `dot_8u8_8i8` multiplies two rows of eight codes, of `load_8u8_of2`, with two columns of eight
 *                    weights in one instruction; `zip_words_low`, `zip_words_high`, `join_low`, `join_high` and
 *                    `ones_8i8` order what it takes and gives. There are four lanes
 *   spaced_prefetch  `prefetch_spaced` is `prefetch_near`, followed by eight instructions that do nothing
 *   signed_codes     `broadcast_4u8` gives codes less 128, as bytes with a sign, and `dot_4u8_4i8` takes such
 *   tiles            the processor multiplies matrices in tiles, as the macros of tiles.c.tmpl do
 *   groups_of_f16    there are `load2_f16` and `load4_f16`, which load two and four vectors and take about as many
 *                    instructions as `load_f16` takes for one vector
 *   costly_spills    to keep a register in memory takes several instructions, since only the machine knows its length
 *   order_of_bits    there are `larger_i32` and `larger_u32`, which compare floats as integers
 *   hide_by_bits     there is `hide`, by which lanes whose bit is 0 become -inf
 *   small            a microcontroller: plans have the least memory, and code is short
 *   dot_of_columns   the processor sums the products of two vectors of bytes, as gemm_small.c.tmpl writes them
 *
 * A row NAME_8 stands in for NAME where the count is the number 8; its prototype is without the count.
 *
 * The meaning is a C expression for lane i of W: vectors and memory are a[i], p[0]; for a store it is
 * what memory holds at p[i] afterwards; for a prefetch it is `nothing`. An operation with n `set` parameters has one
 * meaning for the n vectors in order, and i counts their n * W lanes. It may use C's math library and
 *   tree_sum(a)  lanes added in a fixed order: a[i] + a[i + W / 2] for the first half, and so on to one
 *   tree_max(a)  the same with x > y ? x : y
 *   tree_sum_of(a, n), tree_max_of(a, n)  the same of the first n lanes
 *   from_bf16(x)  the float whose first 16 bits these are, and the others 0
 *   from_f16(x)  the float of this IEEE half
 *   pair(p)      the two floats at p, which bf16 holds, as an integer
 *   dot2(x, a, b)  x + the two products of numbers of bf16 where floats hold x plus each and both of them, and no
 *                promise otherwise or if x is subnormal or the sum is zero
 *   any_nan(a)   whether a lane is NaN
 *   bits_of(x), float_of(n)  the bits of a float as an integer, and the float of these
 *   nibble(p, n)  the integer of -8 to 7 that bits 4 n to 4 n + 3 behind p are, the lowest bits first
 *   halves(p, high)  the integer of 32 bits whose four bytes are 16 times such integers: of the lower or the higher
 *                halves of the bytes at p
 *   nibbles(p, high)  the same of these integers themselves
 *   shorts(n, a, b)  the two 16-bit halves of n; to each, two products of bytes are added. The bytes of a are unsigned,
 *                those of b signed
 *   both(n, a)   the integer n + the two signed 16-bit halves of a
 *   word(p)      the four bytes at p as an integer of 32 bits
 *   dot4(n, a, b)  the integer n + the sum of the products of four bytes, of a without and of b with a sign
 *   less(n, z, s)  n - z * s, where z and s are floats of whole numbers
 *   anything     no promise */
#include "targets.h"

#include <stdlib.h>
#include <string.h>

typedef struct Table {
    Arena *arena;
    const char *file;
    int line;
    Isa *isa;
    unsigned seen, inherited; /* a bit for each field: of this file, and of the table that it is based on */
    int depth;                /* of the tables that are based on this one; they keep their name */
    int op_room, helper_room;
} Table;

static const char *const fields[] = {"name",  "processor", "width",      "registers", "type",    "integers", "fused",
                                     "guard", "rank",      "on_request", "slow_with", "attribute", "include",
                                     "cpu",   "has",       "half",       "based",     "operator_bytes",
                                     "function_bytes", "compiler", "helper", "op", NULL};
enum { NAME, PROCESSOR, WIDTH, REGISTERS, TYPE, INTEGERS, FUSED, GUARD,
       RANK, ON_REQUEST, SLOW_WITH, ATTRIBUTE, INCLUDE, CPU, HAS, HALF, BASED, OPERATOR_BYTES, FUNCTION_BYTES,
       COMPILER, HELPER, OP, REQUIRED = GUARD + 1 };

/* What most targets have the same of each row. */
typedef struct Operation {
    const char *name, *prototype, *meaning;
} Operation;

static const Operation operations[] = {
#define OPERATION(result, name, parameters, meaning) {#name, result " " #name "(" parameters ")", meaning},
#include "operations.def"
#undef OPERATION
};

const char *const isa_capabilities[] = {
    "dot_of_bytes",  "dot_of_bf16", "dot_of_nibbles", "dot_of_row_pairs", "signed_codes", "spaced_prefetch", "tiles",
    "order_of_bits", "hide_by_bits", "costly_spills", "small", "dot_of_columns", "groups_of_f16", NULL};

#define table_error(table, ...) bug_at("table", (table)->file, (table)->line, __VA_ARGS__)

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }
static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static char *trim(char *text) {
    while (is_space(*text)) text++;
    size_t size = strlen(text);
    while (size && is_space(text[size - 1])) text[--size] = '\0';
    return text;
}

/* Cuts the word off the front of *text; an empty word when none stands there. */
static const char *take_word(Arena *arena, char **text) {
    char *start = *text = trim(*text), *end = start;
    while (is_word(*end)) end++;
    *text = end;
    return arena_copy(arena, start, (size_t)(end - start));
}

static int64_t positive(const Table *table, const char *text) {
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end || value < 1 || value > 1000) table_error(table, "'%s' is no number from 1 to 1000", text);
    return value;
}

/* ---------------------------------------------------------------------------------- op rows */

static void add_param(const Table *table, IsaOp *op, char *text) {
    static const char *const words[] = {"integers", "pairs",    "integral", "codes",  "float",
                                        "count",    "read",     "read16",   "read8",  "read2x16",
                                        "read4x8",  "byte",     "nibble",   "write",  "write8",
                                        "set",      "bits",     NULL};
    static const IsaKind kinds[] = {ISA_INTEGERS, ISA_PAIRS,  ISA_INTEGRAL, ISA_CODES, ISA_FLOAT,    ISA_COUNT,
                                    ISA_READ,     ISA_READ16, ISA_READ8,    ISA_READ2X16, ISA_READ4X8, ISA_BYTE,
                                    ISA_NIBBLE,   ISA_WRITE,    ISA_WRITE8, ISA_SET,     ISA_BITS};
    if (op->param_count == ISA_MAX_PARAMS) table_error(table, "%s has too many parameters", op->name);
    const char *name = take_word(table->arena, &text);
    IsaKind kind = ISA_VECTOR;
    if (*trim(text)) {
        int which = 0;
        while (words[which] && strcmp(words[which], name) != 0) which++;
        if (!words[which]) table_error(table, "'%s' is no kind of parameter", name);
        kind = kinds[which];
        name = take_word(table->arena, &text);
    }
    if (!*name || *trim(text)) table_error(table, "%s: a parameter cannot be read", op->name);
    for (int i = 0; i < op->param_count; i++)
        if (strcmp(op->params[i], name) == 0) table_error(table, "%s has two parameters '%s'", op->name, name);
    op->kinds[op->param_count] = kind;
    op->params[op->param_count++] = name;
}

static void parse_prototype(const Table *table, IsaOp *op, char *text) {
    op->name = take_word(table->arena, &text);
    if (is_space(*text)) {
        static const char *const words[] = {"integers", "pairs", "float", "void"};
        static const IsaKind kinds[] = {ISA_INTEGERS, ISA_PAIRS, ISA_FLOAT, ISA_VOID};
        enum { WORDS = sizeof words / sizeof *words };
        int which = 0;
        while (which < WORDS && strcmp(op->name, words[which]) != 0) which++;
        if (which == WORDS) table_error(table, "'%s' is no kind of result", op->name);
        op->result = kinds[which];
        op->name = take_word(table->arena, &text);
    }
    text = trim(text);
    size_t size = strlen(text);
    if (!*op->name || *text != '(' || text[size - 1] != ')') table_error(table, "a prototype is NAME(PARAMETERS)");
    text[size - 1] = '\0';
    text = trim(text + 1);
    while (*text) {
        char *comma = strchr(text, ',');
        if (comma) *comma = '\0';
        add_param(table, op, trim(text));
        if (!comma) return;
        text = trim(comma + 1);
        if (!*text) table_error(table, "%s: a parameter is missing after a comma", op->name);
    }
}

static void add_piece(const Table *table, IsaOp *op, int *room, const char *text, size_t size, int param) {
    op->pieces = arena_grow(table->arena, op->pieces, (int)op->piece_count, room, sizeof *op->pieces);
    op->pieces[op->piece_count++] = (IsaPiece){text ? arena_copy(table->arena, text, size) : NULL, size, param};
}

static void parse_c_text(const Table *table, IsaOp *op, const char *text) {
    static const char prefix[] = "${prefix}";
    int room = 0;
    if (!*text) table_error(table, "%s has no C text", op->name);
    while (*text) {
        const char *dollar = strchr(text, '$');
        size_t plain = dollar ? (size_t)(dollar - text) : strlen(text);
        if (plain) add_piece(table, op, &room, text, plain, ISA_TEXT);
        if (!dollar) return;
        if (strncmp(dollar, prefix, sizeof prefix - 1) == 0) {
            op->needs_prefix = true;
            add_piece(table, op, &room, NULL, 0, ISA_PREFIX);
            text = dollar + sizeof prefix - 1;
            continue;
        }
        char *after = (char *)(uintptr_t)(dollar + 1);
        const char *name = is_word(*after) ? take_word(table->arena, &after) : "";
        int param = 0;
        while (param < op->param_count && strcmp(op->params[param], name) != 0) param++;
        if (param == op->param_count) table_error(table, "%s: there is no parameter '$%s'", op->name, name);
        add_piece(table, op, &room, NULL, 0, param);
        text = after;
    }
}

/* Returns the next column of a row, which ends at a bar that is not part of `||`. *text moves behind the bar, to NULL
 * behind the last column. */
static char *take_column(const Table *table, char **text, const char *what) {
    char *start = *text, *at = start;
    if (!start) table_error(table, "a row is PROTOTYPE | C TEXT | MEANING; it has no %s", what);
    while (*at && !(*at == '|' && at[1] != '|' && (at == start || at[-1] != '|'))) at++;
    *text = *at ? at + 1 : NULL;
    *at = '\0';
    return trim(start);
}

static const Operation *operation_named(const char *name) {
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) /* as isa_find */
        if (operations[i].name[0] == name[0] && strcmp(operations[i].name, name) == 0) return &operations[i];
    return NULL;
}

static void parse_op(Table *table, char *text) {
    IsaOp op = {0};
    char *prototype = take_column(table, &text, "prototype"), *c_text = take_column(table, &text, "C text");
    const Operation *known = operation_named(prototype);
    if (known) prototype = arena_copy(table->arena, known->prototype, strlen(known->prototype));
    op.meaning = known && !text ? known->meaning : take_column(table, &text, "meaning");
    if (text) table_error(table, "a row is PROTOTYPE | C TEXT | MEANING; there is a '|' behind the meaning");
    parse_prototype(table, &op, prototype);
    parse_c_text(table, &op, c_text);
    if (!*op.meaning) table_error(table, "%s has no meaning", op.name);
    Isa *isa = table->isa;
    const IsaOp *same = isa_find(isa, op.name);
    if (same) {
        if (!same->inherited) table_error(table, "%s has two rows", op.name);
        isa->ops[same - isa->ops] = op;
        return;
    }
    isa->ops = arena_grow(table->arena, isa->ops, (int)isa->op_count, &table->op_room, sizeof *isa->ops);
    isa->ops[isa->op_count++] = op;
}

/* ---------------------------------------------------------------------------------- the table */

static const char *feature_named(const Table *table, const char *word) {
    if (feature_find(word)) return word;
    const char *near = nearest_word(word, feature_names);
    table_error(table, "features.def has no '%s'%s%s", word, near ? "; nearest is " : "", near ? near : "");
}

static const char *capability_named(const Table *table, const char *word) {
    for (int i = 0; isa_capabilities[i]; i++)
        if (strcmp(isa_capabilities[i], word) == 0) return word;
    table_error(table, "there is no capability '%s'", word);
}

/* The words of `text`, which `named` lets pass as a feature or a capability; ended by NULL. */
static const char **parse_words(const Table *table, char *text, const char *(*named)(const Table *, const char *),
                                const char *what) {
    size_t count = 0, room = strlen(text) / 2 + 2;
    const char **words = arena_array(table->arena, room, sizeof *words);
    for (const char *word; *(word = take_word(table->arena, &text));) words[count++] = named(table, word);
    if (*text) table_error(table, "'%s' is no %s", text, what);
    return words;
}

static bool is_yes(const Table *table, int which, const char *text) {
    bool yes = strcmp(text, "yes") == 0;
    if (!yes && strcmp(text, "no") != 0) table_error(table, "'%s' is yes or no", fields[which]);
    return yes;
}

static void parse_lines(Table *table, const char *text);

/* Reads another table into this one, which keeps its name. */
static void parse_base(Table *table, char *text) {
    if (table->depth == ISA_MAX_BASES) table_error(table, "a table stands on at most %d others", ISA_MAX_BASES);
    if (table->seen != (1u << NAME | 1u << BASED)) table_error(table, "'based' has to follow the name");
    const char *on = take_word(table->arena, &text), *name = take_word(table->arena, &text);
    if (strcmp(on, "on") != 0 || !*name || *text) table_error(table, "'based on NAME' is meant");
    const char *file = arena_printf(table->arena, "%s.isa", name), *base_text = embedded_text(file);
    if (!base_text) table_error(table, "there is no table %s", file);
    table->isa->bases[table->isa->n_bases++] = arena_copy(table->arena, name, strlen(name));
    Table base = {.arena = table->arena, .file = file, .isa = table->isa, .depth = table->depth + 1};
    parse_lines(&base, base_text);
    table->isa->rank = 0;
    table->isa->on_request = table->isa->by_name = false;
    table->isa->slow_with = NULL;
    table->op_room = base.op_room;
    table->helper_room = base.helper_room;
    for (int i = 0; i < table->isa->n_helpers; i++) table->isa->helpers[i].inherited = true;
    for (size_t i = 0; i < table->isa->op_count; i++) table->isa->ops[i].inherited = true;
    table->inherited = base.seen | base.inherited;
}

static void parse_field(Table *table, int which, char *text) {
    Isa *isa = table->isa;
    if (which != OP && (table->seen & (1u << which))) table_error(table, "'%s' is there twice", fields[which]);
    table->seen |= 1u << which;
    if (!*text) table_error(table, "'%s' has no value", fields[which]);
    switch (which) {
    case NAME: isa->name = table->depth ? isa->name : text; break;
    case PROCESSOR: isa->processor = text; break;
    case RANK: isa->rank = positive(table, text); break;
    case ON_REQUEST:
        isa->by_name = strcmp(text, "always") == 0;
        isa->on_request = isa->by_name || is_yes(table, which, text);
        break;
    case SLOW_WITH: isa->slow_with = feature_named(table, text); break;
    case WIDTH: isa->width = positive(table, text); break;
    case REGISTERS: isa->registers = positive(table, text); break;
    case TYPE: isa->type = text; break;
    case INTEGERS: isa->integers = text; break;
    case FUSED: isa->fused = is_yes(table, which, text); break;
    case GUARD: isa->guard = text; break;
    case ATTRIBUTE: isa->attribute = text; break;
    case INCLUDE: isa->include = text; break;
    case CPU: isa->cpu = parse_words(table, text, feature_named, "feature"); break;
    case HAS: isa->has = parse_words(table, text, capability_named, "capability"); break;
    case HALF: isa->half = isa_load(table->arena, text); break;
    case BASED: parse_base(table, text); break;
    case OPERATOR_BYTES: isa->operator_bytes = positive(table, text); break;
    case FUNCTION_BYTES: isa->function_bytes = positive(table, text); break;
    case COMPILER:
        isa->compiler = take_column(table, &text, "condition");
        isa->refusal = take_column(table, &text, "message");
        break;
    default: parse_op(table, text); break;
    }
}

/* `text` with `with` in place of each `mark`. */
static char *replaced(Arena *arena, const char *text, const char *mark, const char *with) {
    Text result = text_new(arena);
    for (const char *at; (at = strstr(text, mark)) != NULL; text = at + strlen(mark)) {
        text_add(&result, text, (size_t)(at - text));
        text_add(&result, with, strlen(with));
    }
    text_add(&result, text, strlen(text));
    return result.data;
}

/* `line` with ${prefix}_NAME for each ${table}. */
static char *with_table(const Table *table, char *line) {
    static const char mark[] = "${table}";
    if (!strstr(line, mark)) return line;
    if (!table->isa->name) table_error(table, "the name has to stand in front of %s", mark);
    return replaced(table->arena, line, mark, arena_printf(table->arena, "${prefix}_%s", table->isa->name));
}

/* The next line, or NULL; *at moves to its end. */
static char *take_line(Table *table, const char **at) {
    if (!**at) return NULL;
    table->line++;
    size_t size = strcspn(*at, "\n");
    char *line = arena_copy(table->arena, *at, size);
    *at += size + ((*at)[size] == '\n');
    return with_table(table, line);
}

/* The index of the helper of that name, or of the first without one for NULL; n_helpers if there is none. */
static int helper_index(const Isa *isa, const char *name) {
    for (int i = 0; i < isa->n_helpers; i++) {
        const char *other = isa->helpers[i].name;
        if (name && other ? strcmp(name, other) == 0 : name == other) return i;
    }
    return isa->n_helpers;
}

/* Returns the index of a new helper, which is placed before that one, if it is given. A helper without a name is placed
 * before those with names, which may use the macros that it defines. */
static int room_for_helper(Isa *isa, const char *name, const char *before) {
    const int first = before ? helper_index(isa, before) : name ? isa->n_helpers : 0;
    int which = isa->n_helpers++;
    for (; which > first && isa->helpers[which - 1].name; which--) isa->helpers[which] = isa->helpers[which - 1];
    return which;
}

/* The function of this prototype, whose name stands at `name`; the lines are its comment, if there is one, and its
 * body. */
static char *function_text(const Table *table, const char *prototype, const char *name, const char *lines) {
    const char *comment_end = strncmp(lines, "/*", 2) == 0 ? strstr(lines, "*/\n") : NULL;
    const char *body = comment_end ? comment_end + 3 : lines;
    return with_table(table, arena_printf(table->arena, "%.*sstatic inline __attribute__((unused)) ${v.attribute}\n"
                                                        "%.*s${table}_%s {\n%s}\n",
                                          (int)(body - lines), lines, (int)(name - prototype), prototype, name, body));
}

/* Reads the lines up to `end`. `head` is what follows the word helper. */
static void parse_helper(Table *table, char *head, const char **at) {
    Isa *isa = table->isa;
    int begun = table->line;
    char *mark = strstr(head, ") before ");
    const char *before = mark ? trim(mark + strlen(") before ")) : NULL;
    if (mark) mark[1] = '\0';
    if (before && helper_index(isa, before) == isa->n_helpers) table_error(table, "there is no helper '%s'", before);
    const char *name = *head ? head : NULL, *open = strchr(head, '('), *in_head = open;
    if (open) {
        while (in_head > head && is_word(in_head[-1])) in_head--;
        if (in_head == head || in_head == open || head[strlen(head) - 1] != ')')
            table_error(table, "a function is TYPE NAME(PARAMETERS)");
        name = arena_copy(table->arena, in_head, (size_t)(open - in_head));
    }
    const int found = helper_index(isa, name);
    const bool is_there = found < isa->n_helpers, replaces = is_there && isa->helpers[found].inherited;
    if (is_there && name && !replaces) table_error(table, "the helper '%s' is there twice", name);
    if (!replaces && isa->n_helpers == ISA_MAX_HELPERS)
        table_error(table, "there are more than %d helpers", ISA_MAX_HELPERS);
    Text text = text_new(table->arena);
    for (char *line; (line = take_line(table, at)) != NULL;) {
        if (strcmp(trim(line), "end") == 0) {
            isa->helpers =
                arena_grow(table->arena, isa->helpers, isa->n_helpers, &table->helper_room, sizeof *isa->helpers);
            const int which = replaces ? found : room_for_helper(isa, name, before);
            isa->helpers[which] = (IsaHelper){
                .name = name, .text = open ? function_text(table, head, in_head, text.data) : text.data,
                .file = table->file, .line = open ? begun - 1 : begun + 1, .replaces = replaces};
            return;
        }
        text_add(&text, line, strlen(line));
        text_add(&text, "\n", 1);
    }
    table_error(table, "the helper of line %d has no end", begun);
}

static void parse_lines(Table *table, const char *text) {
    for (char *line; (line = take_line(table, &text)) != NULL;) {
        char *rest = line = trim(line);
        if (!*line || *line == '#') continue;
        const char *word = take_word(table->arena, &rest);
        int which = OP; /* most rows */
        while (which >= 0 && strcmp(fields[which], word) != 0) which--;
        if (which < 0) {
            const char *near = nearest_word(word, fields);
            table_error(table, "there is no field '%s'%s%s", word, near ? "; nearest is " : "", near ? near : "");
        }
        if (which == HELPER) {
            parse_helper(table, trim(rest), &text);
            continue;
        }
        int begun = table->line;
        Text whole = text_new(table->arena);
        text_add(&whole, rest, strlen(rest));
        for (char *more; is_space(*text) && (more = take_line(table, &text)) != NULL;)
            text_printf(&whole, " %s", trim(more));
        int last = table->line;
        table->line = begun;
        parse_field(table, which, trim(whole.data));
        table->line = last;
    }
}

/* The bit of the helper whose name follows the ${prefix} in front of `text`, or 0. */
static uint32_t helper_at(const Isa *isa, const char *text, size_t size) {
    size_t table = strlen(isa->name);
    if (size < table + 2 || *text != '_' || memcmp(text + 1, isa->name, table) != 0 || text[table + 1] != '_') return 0;
    const char *name = text + table + 2, *end = name;
    while (end < text + size && is_word(*end)) end++;
    for (int i = 0; i < isa->n_helpers; i++) {
        const char *helper = isa->helpers[i].name;
        if (helper && strlen(helper) == (size_t)(end - name) && memcmp(helper, name, (size_t)(end - name)) == 0)
            return UINT32_C(1) << i;
    }
    return 0;
}

/* These helpers, and those that they call. */
static uint32_t with_callees(const Isa *isa, uint32_t helpers) {
    for (int i = 0; i < isa->n_helpers; i++)
        if (helpers >> i & 1) helpers |= isa->helpers[i].helpers;
    return helpers;
}

/* Finds which helpers each helper and each operation calls, itself or through others. */
static void find_calls(Isa *isa) {
    static const char prefix[] = "${prefix}";
    for (int i = 0; i < isa->n_helpers; i++)
        for (const char *at = isa->helpers[i].text; (at = strstr(at, prefix)) != NULL;) {
            at += sizeof prefix - 1;
            isa->helpers[i].helpers |= helper_at(isa, at, strlen(at));
        }
    for (int n = 0; n < isa->n_helpers; n++) /* the longest chain of calls has as many helpers */
        for (int i = 0; i < isa->n_helpers; i++)
            isa->helpers[i].helpers = with_callees(isa, isa->helpers[i].helpers);
    for (size_t o = 0; o < isa->op_count; o++) {
        IsaOp *op = &isa->ops[o];
        for (size_t p = 0; p + 1 < op->piece_count; p++)
            if (op->pieces[p].param == ISA_PREFIX && op->pieces[p + 1].param == ISA_TEXT)
                op->helpers |= helper_at(isa, op->pieces[p + 1].text, op->pieces[p + 1].size);
        op->helpers = with_callees(isa, op->helpers);
    }
}

static void finish(Table *table) {
    Isa *isa = table->isa;
    for (int i = 0; i < REQUIRED; i++)
        if (!((table->seen | table->inherited) & (1u << i))) table_error(table, "'%s' is missing", fields[i]);
    if (!isa->attribute) isa->attribute = "";
    if (!isa->include) isa->include = "";
    if (!isa->cpu) isa->cpu = arena_array(table->arena, 1, sizeof *isa->cpu);
    if (!isa->has) isa->has = arena_array(table->arena, 1, sizeof *isa->has);
    isa->op_names = arena_array(table->arena, isa->op_count + 1, sizeof *isa->op_names);
    for (size_t i = 0; i < isa->op_count; i++) isa->op_names[i] = isa->ops[i].name;
    find_calls(isa);
}

const Isa *isa_parse(Arena *arena, const char *file_name, const char *text) {
    Table table = {.arena = arena, .file = file_name, .isa = arena_alloc(arena, sizeof(Isa))};
    parse_lines(&table, text);
    finish(&table);
    return table.isa;
}

const Isa *isa_load(Arena *arena, const char *name) {
    const char *file = arena_printf(arena, "%s.isa", name), *text = embedded_text(file);
    if (!text) bug("table %s: there is no such file", file);
    const Isa *isa = isa_parse(arena, file, text);
    if (strcmp(isa->name, name) != 0) bug("table %s: its name is '%s'", file, isa->name);
    return isa;
}

const Isa *isa_for(const Isa *isa, int64_t columns) {
    return isa->half && columns <= isa->half->width ? isa->half : isa;
}

const IsaOp *isa_find(const Isa *isa, const char *name) {
    for (size_t i = 0; i < isa->op_count; i++) /* most names differ in the first letter */
        if (isa->ops[i].name[0] == name[0] && strcmp(isa->ops[i].name, name) == 0) return &isa->ops[i];
    return NULL;
}

bool isa_is_based_on(const Isa *isa, const Isa *base) {
    for (int i = 0; i < isa->n_bases; i++)
        if (strcmp(isa->bases[i], base->name) == 0) return true;
    return false;
}

bool isa_has(const Isa *isa, const char *capability) {
    const char **has = isa->has;
    while (*has && strcmp(*has, capability) != 0) has++;
    return *has;
}

const char *isa_with_prefix(Arena *arena, const char *text, const char *prefix) {
    return replaced(arena, text, "${prefix}", prefix);
}
