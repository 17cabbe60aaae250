/* row_inputs.c: the inputs that conditions and scores read: `input rows NAME`, numbers of the rows of a stack, `input
 * pairs NAME`, numbers of its pairs of rows, and `input number NAME`, a number of each sequence. */
#include "tables.h"

#include <math.h>
#include <string.h>

static const char *const kinds[] = {[PER_ROW] = "rows", [PER_SEQUENCE] = "number", [PER_PAIR] = "pairs"};

/* What an item states. */
typedef struct Stated {
    InputRows rows;
    bool real;
    const char *name;
    Location location; /* of the name */
    const Expr *low, *high;
    bool negative; /* the least is -low */
    bool of_source;
} Stated;

/* A range from -A parses as a range from the difference of the word before it and A. */
static bool is_word_and_range(const Value *v) {
    return v && v->kind == VALUE_RANGE && v->expr->kind == EXPR_SUB && v->expr->left->kind == EXPR_NAME;
}

/* Takes the range of `word -A..B`, where `word` is NAME or `real`. */
static const Value *take_negative(const Value *v, Stated *out) {
    out->low = v->expr->right;
    out->high = v->until;
    out->negative = true;
    return v->next;
}

/* Takes `real`, `A..B`, `real A..B`, or nothing. */
static const Value *take_range(const Value *v, Stated *out) {
    if (is_word_and_range(v) && is_word(v->expr->left, "real")) {
        out->real = true;
        return take_negative(v, out);
    }
    out->real = v && v->kind == VALUE_EXPR && is_word(v->expr, "real");
    if (out->real) v = v->next;
    if (!v || v->kind != VALUE_RANGE) return v;
    out->low = v->expr;
    out->high = v->until;
    return v->next;
}

/* Reads `NAME`, `NAME A..B`, `NAME real`, `NAME real A..B`, and `of source` after these. False after a diagnostic. */
static bool read_values(Resolver *r, const Item *item, const Value *v, Stated *out) {
    const char *kind = kinds[out->rows];
    const Expr *name = is_word_and_range(v) ? v->expr->left : v && v->kind == VALUE_EXPR ? v->expr : NULL;
    if (!name || name->kind != EXPR_NAME) {
        diagnose(r->diagnostics, v ? v->location : item->location,
                 "an input of %s is `input %s NAME` or `input %s NAME A..B`", kind, kind, kind);
        return false;
    }
    *out = (Stated){.rows = out->rows, .name = name->text, .location = name->location};
    v = v->kind == VALUE_RANGE ? take_negative(v, out) : take_range(v->next, out);
    if (out->rows == PER_ROW && v && v->next && v->kind == VALUE_EXPR && is_word(v->expr, "of") &&
        v->next->kind == VALUE_EXPR && is_word(v->next->expr, "source")) {
        out->of_source = true;
        v = v->next->next;
    }
    if (v)
        diagnose(r->diagnostics, v->location, "only `real`%s a range A..B%s may follow `input %s %s`",
                 out->rows == PER_ROW ? "," : " and", out->rows == PER_ROW ? " and `of source`" : "", kind, out->name);
    return !v;
}

/* Refuses a name that has a meaning in a condition or among the inputs of a model. */
static bool good_name(Resolver *r, const Scope *scope, const Stated *s) {
    bool taken = setting_named(s->name) != NULL || is_letter(s->name);
    for (int i = 0; i < IN_COUNT; i++) taken |= strcmp(s->name, input_kinds[i].name) == 0;
    if (taken || output_named(s->name) != OUT_COUNT || strcmp(s->name, "attention_mask") == 0) {
        diagnose(r->diagnostics, s->location, "`%s` has another meaning; an input of %s needs a name of its own",
                 s->name, kinds[s->rows]);
        return false;
    }
    if (refuse_bound(r, scope, s->name, s->location)) return false;
    for (int i = 0; i < r->model->n_row_inputs; i++)
        if (strcmp(r->model->row_inputs[i].kind.name, s->name) == 0) {
            diagnose(r->diagnostics, s->location, "another part of the model has an input `%s`: give this one a name "
                     "of its own", s->name);
            diagnose_note(r->diagnostics, r->model->row_inputs[i].location, "the other input");
            return false;
        }
    return true;
}

static int64_t bound_of(Resolver *r, const Scope *scope, const Expr *expr, const char *what, bool negative) {
    if (expr->kind == EXPR_NEGATE) return bound_of(r, scope, expr->left, what, true);
    const Number n = evaluate_integer(r, scope, expr, what, 0, MOST_INTEGER);
    return negative ? -n.integer : n.integer;
}

/* The range of a real input, whose ends are rounded to f32 as the numbers are. */
static PairRange real_range(Resolver *r, const Scope *scope, const Stated *s, const char *what) {
    PairRange range = {-INFINITY, INFINITY};
    if (!s->low) return range;
    const Number low = evaluate(r, scope, s->low);
    const bool negated = s->high->kind == EXPR_NEGATE;
    const Number high = evaluate(r, scope, negated ? s->high->left : s->high);
    if (!low.ok || !high.ok) return range;
    range = (PairRange){(double)(float)(s->negative ? -low.real : low.real),
                        (double)(float)(negated ? -high.real : high.real)};
    if (!isfinite(range.low) || !isfinite(range.high))
        diagnose(r->diagnostics, s->high->location, "f32 does not hold %s", what);
    else if (range.high < range.low) diagnose(r->diagnostics, s->high->location, "%s ends before it begins", what);
    return range;
}

static void add(Resolver *r, Scope *scope, const Stated *s) {
    Model *model = r->model;
    const char *what = arena_printf(r->arena, "the range of `%s`", s->name);
    RowInput *input = &model->row_inputs[model->n_row_inputs];
    *input = (RowInput){.kind = {.role = (InputRole)(IN_COUNT + model->n_row_inputs),
                                 .name = s->name,
                                 .array = arena_printf(r->arena, "in_%s", s->name),
                                 .dtype = s->real ? DTYPE_F32 : DTYPE_I64,
                                 .rows = s->rows,
                                 .absent = ABSENT_NOTHING},
                        .least = s->real ? 0 : INT32_MIN,
                        .most = s->real ? 0 : INT32_MAX,
                        .location = s->location,
                        .of_source = s->of_source || (scope->block == BLOCK_ENCODER && s->rows != PER_SEQUENCE)};
    if (s->real) input->range = real_range(r, scope, s, what);
    if (s->low && !s->real) {
        input->least = bound_of(r, scope, s->low, what, s->negative);
        input->most = bound_of(r, scope, s->high, what, false);
        if (input->most < input->least)
            diagnose(r->diagnostics, s->high->location, "%s ends before it begins", what);
    }
    scope_bind(r, scope, (Binding){.name = s->name, .location = s->location, .input = ++model->n_row_inputs});
}

static const char no_source[] = "`of source` is of the rows of an encoder, or of the keys of `attention cross` alone";
static const char pairs_of_decoder[] =
    "`input pairs` is of all pairs of a sequence, of which a decoder's state has only the first rows";

static const char *const of_one_stack[] = {
    [PER_ROW] = "whose rows it is of: state it in that stack, or as `of source`",
    [PER_SEQUENCE] = "that reads it: state one in each stack, with a name of its own",
    [PER_PAIR] = "whose rows it is of: state it in the encoder"};

void place_model_inputs(Resolver *r, bool encoder, bool decoder, bool crosses) {
    for (int i = 0; i < r->model->n_row_inputs; i++) {
        RowInput *input = &r->model->row_inputs[i];
        if (input->of_source && !encoder && !crosses)
            diagnose(r->diagnostics, input->location, "%s", no_source);
        else if (!input->of_source && encoder && decoder)
            diagnose(r->diagnostics, input->location, "`input %s` in a `model` needs one stack, or attention alone, %s",
                     kinds[input->kind.rows], of_one_stack[input->kind.rows]);
        else if (input->kind.rows == PER_PAIR && decoder)
            diagnose(r->diagnostics, input->location, "%s", pairs_of_decoder);
        input->of_source |= encoder && input->kind.rows != PER_SEQUENCE;
    }
}

/* Sets `rows` to what an item `input KIND …` has a number for, and returns whether the item is one. */
static bool kind_of(const Item *item, InputRows *rows) {
    const Value *v = item->values;
    if (item->is_let || item->quoted || strcmp(item->name, "input") != 0 || !v || v->kind != VALUE_EXPR) return false;
    for (*rows = PER_ROW; *rows <= PER_PAIR; ++*rows)
        if (is_word(v->expr, kinds[*rows])) return true;
    return false;
}

bool item_is_row_input(const Item *item) { return kind_of(item, &(InputRows){0}); }

bool scope_input(Resolver *r, Scope *scope, const Item *item) {
    Stated s = {0};
    if (!kind_of(item, &s.rows)) return false;
    if (s.rows == PER_PAIR && scope->block == BLOCK_DECODER)
        diagnose(r->diagnostics, item->location, "%s", pairs_of_decoder);
    else if (scope->block != BLOCK_MODEL && scope->block != BLOCK_ENCODER && scope->block != BLOCK_DECODER)
        diagnose(r->diagnostics, item->location,
                 s.rows == PER_PAIR ? "`input pairs` stands in the `encoder` whose rows it is of, or in a `model` of "
                                      "one"
                 : s.rows == PER_ROW ? "`input rows` stands in the `encoder` or `decoder` whose rows it is of, or in a "
                                       "`model` of one"
                                     : "`input number` stands in the `encoder` or `decoder` that reads it, or in a "
                                       "`model` of one");
    else if (r->model->n_row_inputs == MOST_ROW_INPUTS)
        diagnose(r->diagnostics, item->location, "a model has at most %d inputs of rows, of pairs and of sequences",
                 MOST_ROW_INPUTS);
    else if (!read_values(r, item, item->values->next, &s))
        return true;
    else if (s.of_source && scope->block == BLOCK_DECODER && !r->model->encoder)
        diagnose(r->diagnostics, s.location, "%s", no_source);
    else if (good_name(r, scope, &s)) add(r, scope, &s);
    return true;
}

const RowInput *row_input_named(const Resolver *r, const Scope *scope, const char *name, Location location) {
    const Binding *b = binding_named(scope, name);
    return b && b->input && location_before(b->location, location) ? &r->model->row_inputs[b->input - 1] : NULL;
}

/* Refuses an input of bits that something else reads, too; false after that diagnostic. */
static bool bits_alone(Resolver *r, const RowInput *input, Location location) {
    if (!input->kind.wide || !input->is_read) return true;
    diagnose(r->diagnostics, location, "`%s` has 64 bits where `bit` reads it, and nothing else may read it then",
             input->kind.name);
    return false;
}

bool row_input_is_number(Resolver *r, const RowInput *input, Location location) {
    RowInput *own = &r->model->row_inputs[(int)input->kind.role - IN_COUNT];
    own->is_read = true;
    return bits_alone(r, own, location);
}

bool row_input_is_bits(Resolver *r, const RowInput *input, Location location) {
    RowInput *own = &r->model->row_inputs[(int)input->kind.role - IN_COUNT];
    if (own->kind.dtype == DTYPE_F32 || (!own->kind.wide && (own->least > INT32_MIN || own->most < INT32_MAX))) {
        diagnose(r->diagnostics, location, "`bit` reads 64 bits, so `%s` may be neither real nor have a range",
                 own->kind.name);
        return false;
    }
    own->kind.wide = true;
    own->least = INT64_MIN;
    own->most = INT64_MAX;
    return bits_alone(r, own, location);
}

const char *row_input_unread(Resolver *r, const Attention *a, const RowInput *input, bool of_query) {
    const RowsOf rows = of_query ? a->query_rows : a->key_rows;
    const char *name = input->kind.name;
    if (input->kind.rows == PER_SEQUENCE) return NULL;
    if (rows == ROWS_OF_NONE || (a->query_rows == ROWS_OF_NONE && input->kind.rows == PER_PAIR))
        return "the row of a probe is none of the stack's rows, whose inputs it reads as `NAME[k]`";
    if (input->kind.rows == PER_PAIR) return NULL; /* of a model that has these pairs */
    if (input->of_source == (rows == ROWS_OF_SOURCE)) return NULL;
    if (a->cross)
        return arena_printf(r->arena, "`%s` is of the rows of the %s here: write `%s[%s]`", name,
                            of_query ? "keys" : "queries", name, of_query ? "k" : "q");
    return arena_printf(r->arena, "`%s` is of the source's rows, which the decoder reads in cross attention alone",
                        name);
}

void position_at_inputs(Resolver *r, const Scope *scope, int64_t bound, Position *p) {
    const FieldValue *at = &scope->fields[F_position_at], *sections = &scope->fields[F_rope_sections];
    for (p->n_at = 0; p->n_at < at->n; p->n_at++) {
        RowInput *input = &r->model->row_inputs[(int)at->list[p->n_at]];
        if (!row_input_is_number(r, input, at->location)) continue;
        for (int i = 0; i < p->n_at; i++)
            if (p->at[i] == input->kind.role)
                diagnose_note(r->diagnostics, at->location,
                              "`%s` is named twice: pairs of columns of both `sections` are rotated by it",
                              input->kind.name);
        const bool open = input->least == INT32_MIN && input->most == INT32_MAX;
        if (open) input->least = 0, input->most = bound - 1;
        input->counts = true;
        p->at[p->n_at] = input->kind.role;
        if (p->n_at < sections->n) p->sections[p->n_at] = (int64_t)sections->list[p->n_at];
        if (input->most >= p->at_rows) p->at_rows = input->most + 1;
        if (input->kind.dtype == DTYPE_F32 || input->kind.rows != PER_ROW || (input->of_source && r->model->encoder))
            diagnose(r->diagnostics, at->location, "positions are integers of the stack's rows, and `%s` is not",
                     input->kind.name);
        else if (input->least < 0 || input->most >= MOST_ROWS)
            diagnose(r->diagnostics, at->location, "a position is 0 to %d, and `%s` may be from %lld to %lld",
                     MOST_ROWS - 1, input->kind.name, (long long)input->least, (long long)input->most);
        else continue;
        p->at_rows = 1;
    }
    if (p->n_at > 1 && p->kind != POSITION_ROPE)
        diagnose(r->diagnostics, at->location, "only `rope` has more than one input of positions");
}
