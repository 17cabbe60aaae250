/* settings.c: from items to fields: which settings may stand where, their values, expressions and lets. */
#include "settings.h"

#include <math.h>
#include <string.h>

typedef enum Takes { TAKES_flag, TAKES_integer, TAKES_real, TAKES_integers, TAKES_reals } Takes;
typedef enum Range { RANGE_any, RANGE_positive, RANGE_natural, RANGE_unit } Range;
typedef enum Form { FORM_plain, FORM_length } Form;
typedef enum FieldType { TYPE_integer, TYPE_real, TYPE_list } FieldType;
typedef enum SettingId {
#define SETTING(name, blocks, form, help) S_##name,
#include "settings.def"
    SETTING_COUNT
} SettingId;

/* What `reset` says: RESET_whole, RESET_kept, or RESET_BY + field. */
enum { RESET_whole = -2, RESET_kept = -1 };
#define RESET_norm F_norm

typedef struct FieldRow {
    FieldType type;
    double initial;
    int reset;
} FieldRow;

typedef struct SettingRow {
    const char *name;
    int blocks;
    Form form;
} SettingRow;

typedef struct OptionRow {
    SettingId setting;
    const char *word;
    Takes takes;
    Field field;
    int value; /* of a flag; otherwise its Range */
} OptionRow;

static const FieldRow field_rows[FIELD_COUNT] = {
#define FIELD(name, type, default_value, reset) [F_##name] = {TYPE_##type, default_value, RESET_##reset},
#include "settings.def"
};

static const SettingRow setting_rows[SETTING_COUNT] = {
#define SETTING(name, blocks, form, help) [S_##name] = {#name, blocks, FORM_##form},
#include "settings.def"
};

#define RANGE_OR_VALUE_flag(value) value
#define RANGE_OR_VALUE_integer(value) RANGE_##value
#define RANGE_OR_VALUE_real(value) RANGE_##value
#define RANGE_OR_VALUE_integers(value) RANGE_##value
#define RANGE_OR_VALUE_reals(value) RANGE_##value
static const OptionRow option_rows[] = {
#define OPTION(setting, word, takes, field, value, help) \
    {S_##setting, word, TAKES_##takes, F_##field, RANGE_OR_VALUE_##takes(value)},
#include "settings.def"
};
enum { OPTION_COUNT = sizeof option_rows / sizeof option_rows[0] };

static const struct {
    const char *name;
    int parents;
} block_rows[BLOCK_COUNT] = {
#define BLOCK(name, parents, help) {#name, parents},
#include "settings.def"
};

const char *block_name(Block block) { return block_rows[block].name; }

bool block_named(const char *name, Block *block) {
    for (int b = 0; b < BLOCK_COUNT; b++)
        if (strcmp(block_rows[b].name, name) == 0) {
            *block = (Block)b;
            return true;
        }
    return false;
}

int with_ancestors(int blocks) {
    for (int before = 0; before != blocks;) {
        before = blocks;
        for (int b = 0; b < BLOCK_COUNT; b++)
            if (blocks & (1 << b)) blocks |= block_rows[b].parents;
    }
    return blocks & ~IN_FILE;
}

Place stated_at(const Scope *scope, Field field, Place otherwise) {
    return scope->fields[field].stated ? scope->fields[field].place : otherwise;
}

/* ---------------------------------------------------------------- expressions */

static const SettingRow *setting_named(const char *name) {
    for (int s = 0; s < SETTING_COUNT; s++)
        if (strcmp(setting_rows[s].name, name) == 0) return &setting_rows[s];
    return NULL;
}

/* The field behind a setting's bare number, or FIELD_COUNT. */
static Field bare_field(SettingId setting) {
    for (int o = 0; o < OPTION_COUNT; o++)
        if (option_rows[o].setting == setting && !option_rows[o].word[0] && option_rows[o].takes <= TAKES_real)
            return option_rows[o].field;
    return FIELD_COUNT;
}

bool place_before(Place a, Place b) { return a.line < b.line || (a.line == b.line && a.column < b.column); }

static Number no_number(void) { return (Number){0}; }

static Number evaluate_name(Resolver *r, const Scope *scope, const Expr *expr) {
    for (const Binding *b = scope->lets; b; b = b->next)
        if (strcmp(b->name, expr->text) == 0 && place_before(b->place, expr->place))
            return (Number){b->known, b->is_real, b->integer, b->real};
    const SettingRow *row = setting_named(expr->text);
    Field field = row ? bare_field((SettingId)(row - setting_rows)) : FIELD_COUNT;
    if (field != FIELD_COUNT) {
        const FieldValue *value = &scope->fields[field];
        if (value->doubted && (!value->stated || place_before(value->place, expr->place))) return no_number();
        if (value->stated && place_before(value->place, expr->place))
            return (Number){true, field_rows[field].type == TYPE_real, value->integer, value->real};
        diagnose(r->diagnostics, expr->place, "`%s` is not given before this place, at this or an outer level",
                 expr->text);
        return no_number();
    }
    const char *names[SETTING_COUNT + 65];
    int n = 0;
    for (const Binding *b = scope->lets; b && n < 64; b = b->next) {
        if (strcmp(b->name, expr->text) == 0) {
            diagnose(r->diagnostics, expr->place, "`%s` is given only behind this place", expr->text);
            diagnose_note(r->diagnostics, b->place, "given here");
            return no_number();
        }
        names[n++] = b->name;
    }
    for (int s = 0; s < SETTING_COUNT; s++)
        if (bare_field((SettingId)s) != FIELD_COUNT) names[n++] = setting_rows[s].name;
    names[n] = NULL;
    const char *near = near_word(r->arena, expr->text, names);
    diagnose(r->diagnostics, expr->place, "`%s` is neither a `let` nor a numeric setting%s", expr->text,
             did_you_mean(r->arena, expr->text, near));
    return no_number();
}

static Number real_number(Resolver *r, Place place, double value) {
    if (!isfinite(value)) {
        diagnose(r->diagnostics, place, "the result is not a finite number");
        return no_number();
    }
    return (Number){true, true, 0, value};
}

static Number evaluate_binary(Resolver *r, const Expr *expr, Number a, Number b) {
    if (expr->kind == EXPR_DIV && b.real == 0) {
        diagnose(r->diagnostics, expr->right->place, "division by zero");
        return no_number();
    }
    if (!a.is_real && !b.is_real) {
        int64_t result = 0;
        bool fits = true;
        switch (expr->kind) {
        case EXPR_ADD: fits = !__builtin_add_overflow(a.integer, b.integer, &result); break;
        case EXPR_SUB: fits = !__builtin_sub_overflow(a.integer, b.integer, &result); break;
        case EXPR_MUL: fits = !__builtin_mul_overflow(a.integer, b.integer, &result); break;
        default:
            if (a.integer == INT64_MIN && b.integer == -1) fits = false;
            else if (a.integer % b.integer != 0) return real_number(r, expr->place, a.real / b.real);
            else result = a.integer / b.integer;
        }
        if (!fits) {
            diagnose(r->diagnostics, expr->place, "the result does not fit 63 bits");
            return no_number();
        }
        return (Number){true, false, result, (double)result};
    }
    switch (expr->kind) {
    case EXPR_ADD: return real_number(r, expr->place, a.real + b.real);
    case EXPR_SUB: return real_number(r, expr->place, a.real - b.real);
    case EXPR_MUL: return real_number(r, expr->place, a.real * b.real);
    default: return real_number(r, expr->place, a.real / b.real);
    }
}

Number evaluate(Resolver *r, const Scope *scope, const Expr *expr) {
    switch (expr->kind) {
    case EXPR_INTEGER: return (Number){true, false, expr->integer, (double)expr->integer};
    case EXPR_REAL: return (Number){true, true, 0, expr->real};
    case EXPR_NAME: return evaluate_name(r, scope, expr);
    case EXPR_SQRT: {
        Number a = evaluate(r, scope, expr->left);
        if (!a.ok) return a;
        if (a.real < 0) {
            diagnose(r->diagnostics, expr->place, "the root of a negative number");
            return no_number();
        }
        return real_number(r, expr->place, sqrt(a.real));
    }
    case EXPR_NEGATE: {
        Number a = evaluate(r, scope, expr->left);
        if (a.ok && a.integer == INT64_MIN) {
            diagnose(r->diagnostics, expr->place, "the result does not fit 63 bits");
            return no_number();
        }
        if (a.ok) a = (Number){true, a.is_real, -a.integer, -a.real};
        return a;
    }
    default: {
        Number a = evaluate(r, scope, expr->left), b = evaluate(r, scope, expr->right);
        return a.ok && b.ok ? evaluate_binary(r, expr, a, b) : no_number();
    }
    }
}

/* Only a value that begins with a sign has this kind outside of parentheses. `range`: what it must be, or NULL. */
static bool refuse_sign(Resolver *r, const Expr *expr, const char *what, const char *range) {
    if (expr->kind != EXPR_NEGATE) return false;
    ExprKind kind = expr->left->kind;
    bool sum = kind == EXPR_ADD || kind == EXPR_SUB || kind == EXPR_NEGATE; /* it stands in parentheses */
    diagnose(r->diagnostics, expr->place, "a value cannot begin with a sign; a negative number is `0 - %s%s%s`%s%s%s%s",
             sum ? "(" : "", text_at(r->arena, expr->left->place), sum ? ")" : "",
             range ? ", and " : "", range ? what : "", range ? " must be " : "",
             range ? range : "");
    return true;
}

/* A whole one with its point, so that it does not look like an integer. */
static const char *real_text(Arena *arena, double value) {
    const char *text = number_text(arena, value);
    return strpbrk(text, ".e") ? text : arena_printf(arena, "%s.0", text);
}

/* Says which integers are near. */
static void refuse_real(Resolver *r, const Expr *expr, const char *what, double value) {
    Text message = text_new(r->arena);
    text_printf(&message, "%s wants an integer, ", what);
    if (expr->kind == EXPR_DIV && value != floor(value))
        text_printf(&message, "and this quotient is not whole: %s", number_text(r->arena, value));
    else
        text_printf(&message, "found the real number %s",
                    expr->kind == EXPR_REAL ? expr->text : real_text(r->arena, value));
    if (fabs(value) <= (double)MOST_INTEGER) {
        text_printf(&message, "; write `%lld`", (long long)floor(value));
        if (value != floor(value)) text_printf(&message, " or `%lld`", (long long)ceil(value));
    }
    diagnose(r->diagnostics, expr->place, "%s", message.data);
}

Number evaluate_integer(Resolver *r, const Scope *scope, const Expr *expr, const char *what, int64_t least,
                        int64_t most) {
    const Number refused = {.integer = least, .real = (double)least};
    const char *range = least >= 0 ? arena_printf(r->arena, "at least %lld", (long long)least) : NULL;
    if (refuse_sign(r, expr, what, range)) return refused;
    Number n = evaluate(r, scope, expr);
    if (!n.ok) return refused;
    if (n.is_real) {
        refuse_real(r, expr, what, n.real);
        return refused;
    }
    if (n.integer < least || n.integer > most) {
        diagnose(r->diagnostics, expr->place, "%s must be at %s %lld, found %lld", what,
                 n.integer < least ? "least" : "most", (long long)(n.integer < least ? least : most),
                 (long long)n.integer);
        return refused;
    }
    return n;
}

static Number evaluate_real(Resolver *r, const Scope *scope, const Expr *expr, const char *what, Range range) {
    const Number refused = {.real = 1};
    static const char *const wanted[] = {[RANGE_any] = NULL,
                                         [RANGE_positive] = "greater than 0",
                                         [RANGE_natural] = "0 or greater",
                                         [RANGE_unit] = "greater than 0 and at most 1"};
    if (refuse_sign(r, expr, what, wanted[range])) return refused;
    Number n = evaluate(r, scope, expr);
    if (!n.ok) return refused;
    bool good = range == RANGE_any || (range == RANGE_natural && n.real >= 0) ||
                (range == RANGE_positive && n.real > 0) || (range == RANGE_unit && n.real > 0 && n.real <= 1);
    if (!good)
        diagnose(r->diagnostics, expr->place, "%s must be %s, found %s", what, wanted[range],
                 number_text(r->arena, n.real));
    return good ? n : refused;
}

/* ---------------------------------------------------------------- one setting */

static const OptionRow *option_named(SettingId setting, const char *word) {
    for (int o = 0; o < OPTION_COUNT; o++)
        if (option_rows[o].setting == setting && strcmp(option_rows[o].word, word) == 0) return &option_rows[o];
    return NULL;
}

/* The option that a value names, or NULL: a word alone that is one of the setting's. */
static const OptionRow *option_of(SettingId setting, const Value *value) {
    if (value->kind != VALUE_EXPR || value->expr->kind != EXPR_NAME) return NULL;
    return option_named(setting, value->expr->text);
}

static bool option_word(const Value *value) { return value->kind == VALUE_EXPR && value->expr->kind == EXPR_NAME; }

static void reset_fields(Scope *scope, Field field) {
    const FieldRow *row = &field_rows[field];
    scope->fields[field] = (FieldValue){.integer = (int64_t)row->initial, .real = row->initial};
}

static void store(Scope *scope, Field field, Place place, int64_t integer, double real) {
    FieldValue *value = &scope->fields[field];
    *value = (FieldValue){.integer = integer, .real = real, .stated = true, .place = place};
}

/* Takes the number, or the numbers, behind an option's word; returns the next value. */
static const Value *take_numbers(Resolver *r, Scope *scope, const OptionRow *option, const char *what,
                                 const Value *value, Place place) {
    Range range = (Range)option->value;
    bool integer = option->takes == TAKES_integer || option->takes == TAKES_integers;
    bool list = option->takes == TAKES_integers || option->takes == TAKES_reals;
    if (!value || value->kind != VALUE_EXPR || option_of(option->setting, value)) {
        diagnose(r->diagnostics, value ? value->place : place, "%s wants %s", what,
                 integer ? "an integer" : "a number");
        doubt(scope, option->field);
        return value && value->kind != VALUE_EXPR ? value->next : value;
    }
    int64_t least = range == RANGE_natural ? 0 : range == RANGE_positive ? 1 : INT32_MIN, n = 0;
    const Value *stop = value;
    for (; stop && stop->kind == VALUE_EXPR && !option_of(option->setting, stop) && (list || n == 0); stop = stop->next)
        n++;
    double *numbers = arena_array(r->arena, (size_t)n, sizeof *numbers);
    Number last = {0};
    bool good = true;
    for (int64_t i = 0; i < n; i++, value = value->next) {
        last = integer ? evaluate_integer(r, scope, value->expr, what, least, MOST_INTEGER)
                       : evaluate_real(r, scope, value->expr, what, range);
        numbers[i] = last.real;
        good = good && last.ok;
    }
    store(scope, option->field, place, integer ? last.integer : 0, last.real);
    if (!good) doubt(scope, option->field);
    if (list) {
        scope->fields[option->field].list = numbers;
        scope->fields[option->field].n = n;
    }
    return stop;
}

static void unknown_option(Resolver *r, SettingId setting, const Value *value) {
    const char *words[OPTION_COUNT + 1];
    int n = 0;
    for (int o = 0; o < OPTION_COUNT; o++)
        if (option_rows[o].setting == setting && option_rows[o].word[0]) words[n++] = option_rows[o].word;
    words[n] = NULL;
    const char *name = setting_rows[setting].name,
               *text = value->expr && value->expr->kind == EXPR_NAME ? value->expr->text : NULL;
    const char *near = text ? synonym_of(name, text) : NULL, *advice = text ? advice_of(name, text) : NULL;
    if (text && !near) near = near_word(r->arena, text, words);
    Text message = text_new(r->arena);
    if (value->kind != VALUE_EXPR) {
        text_printf(&message, "`%s` takes no %s", name, value->kind == VALUE_STRING ? "string" : "range");
    } else if (advice) {
        text_printf(&message, "`%s` is not an option of `%s`: %s", text, name, advice);
    } else if (near) {
        text_printf(&message, "`%s` is not an option of `%s`%s", text, name, did_you_mean(r->arena, text, near));
    } else {
        if (text) text_printf(&message, "`%s` is not an option of `%s`", text, name);
        else text_printf(&message, "`%s` takes no number here", name);
        for (int i = 0; i < n; i++)
            message_word(&message, i ? "," : text ? "; it has:" : "; its options:", words[i]);
    }
    diagnose(r->diagnostics, value->place, "%s", message.data);
}

static void doubt_setting(Scope *scope, SettingId setting) {
    for (int o = 0; o < OPTION_COUNT; o++)
        if (option_rows[o].setting == setting) doubt(scope, option_rows[o].field);
}

/* The fields that stating this setting anew puts back to their defaults. */
static void reset_setting(Scope *scope, SettingId setting) {
    for (int o = 0; o < OPTION_COUNT; o++)
        if (option_rows[o].setting == setting && field_rows[option_rows[o].field].reset == RESET_whole)
            reset_fields(scope, option_rows[o].field);
}

static void reset_dependents(Scope *scope, Field stated_field) {
    for (int f = 0; f < FIELD_COUNT; f++)
        if (field_rows[f].reset == (int)stated_field) reset_fields(scope, (Field)f);
}

/* Options that mean nothing unless another field of their setting has one of `values` (bits). */
static const struct {
    Field option, on;
    int values;
    const char *wanted;
} needs[] = {
    {F_sinusoid, F_position, 1 << POSITION_SINUSOIDAL, "sinusoidal"},
    {F_position_offset, F_position, 1 << POSITION_SINUSOIDAL | 1 << POSITION_LEARNED, "sinusoidal` or `learned"},
    {F_rope_interleaved, F_position, 1 << POSITION_ROPE, "rope"},
    {F_rope_partial, F_position, 1 << POSITION_ROPE, "rope"},
    {F_rope_theta, F_position, 1 << POSITION_ROPE, "rope"},
    {F_rope_scaling, F_position, 1 << POSITION_ROPE, "rope"},
    {F_rope_scaled, F_rope_scaling, ~(1 << ROPE_PLAIN), "linear`, `llama3`, `yarn` or `longrope"},
    {F_rope_factor, F_rope_scaling, ~(1 << ROPE_PLAIN), "linear`, `llama3`, `yarn` or `longrope"},
    {F_rope_original, F_rope_scaling, ~(1 << ROPE_PLAIN), "linear`, `llama3`, `yarn` or `longrope"},
    {F_rope_low, F_rope_scaling, 1 << ROPE_LLAMA3, "llama3"},
    {F_rope_high, F_rope_scaling, 1 << ROPE_LLAMA3, "llama3"},
    {F_rope_beta_fast, F_rope_scaling, 1 << ROPE_YARN, "yarn"},
    {F_rope_beta_slow, F_rope_scaling, 1 << ROPE_YARN, "yarn"},
    {F_rope_untruncated, F_rope_scaling, 1 << ROPE_YARN, "yarn"},
    {F_rope_attention_factor, F_rope_scaling, 1 << ROPE_YARN | 1 << ROPE_LONGROPE, "yarn` or `longrope"},
    {F_rope_short, F_rope_scaling, 1 << ROPE_LONGROPE, "longrope"},
    {F_rope_long, F_rope_scaling, 1 << ROPE_LONGROPE, "longrope"},
    {F_alibi_max, F_position, 1 << POSITION_ALIBI, "alibi"},
    {F_alibi_scaled, F_position, 1 << POSITION_ALIBI, "alibi"},
    {F_relative_buckets, F_position, 1 << POSITION_RELATIVE, "relative"},
    {F_relative_distance, F_position, 1 << POSITION_RELATIVE, "relative"},
    {F_relative_per_layer, F_position, 1 << POSITION_RELATIVE, "relative"},
    {F_image_width, F_input, 1 << INPUT_PATCHES, "patches"},
    {F_class_token, F_input, 1 << INPUT_PATCHES, "patches"},
    {F_distillation_token, F_input, 1 << INPUT_PATCHES, "patches"},
    {F_norm_no_bias, F_norm, 1 << NORM_LAYERNORM, "layernorm"},
    {F_qk_norm_all_heads, F_qk_norm, ~(1 << NORM_NONE), "layernorm` or `rmsnorm"},
    {F_qk_norm_weight_per_head, F_qk_norm, ~(1 << NORM_NONE), "layernorm` or `rmsnorm"},
    {F_qk_norm_eps, F_qk_norm, ~(1 << NORM_NONE), "layernorm` or `rmsnorm"},
    {F_qk_norm_plus_one, F_qk_norm, ~(1 << NORM_NONE), "layernorm` or `rmsnorm"},
    {F_qk_norm_no_bias, F_qk_norm, 1 << NORM_LAYERNORM, "layernorm"},
    {F_export_layers, F_export_attention, 1 << 1, "attention"},
    {F_export_heads, F_export_attention, 1 << 1, "attention"},
};

/* What one item says must fit together: options have what they need, and `none` or `all` stand alone. */
static void check_together(Resolver *r, const Scope *scope, SettingId setting, const OptionRow *const *set_by) {
    const char *name = setting_rows[setting].name;
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++) {
        const OptionRow *option = set_by[needs[i].option];
        if (option && known(scope, needs[i].on) && !(needs[i].values & 1 << get(scope, needs[i].on)))
            diagnose(r->diagnostics, scope->fields[needs[i].option].place, "`%s %s` needs `%s`", name, option->word,
                     needs[i].wanted);
    }
    static const Field sole[] = {F_mask_given, F_bias_given};
    for (size_t i = 0; i < sizeof sole / sizeof sole[0]; i++)
        for (int f = 0; f < FIELD_COUNT && set_by[sole[i]]; f++)
            if (f != (int)sole[i] && set_by[f])
                diagnose(r->diagnostics, scope->fields[f].place, "`%s` and `%s` exclude each other",
                         set_by[sole[i]]->word, set_by[f]->word);
}

static bool may_stand(const Scope *scope, const char *word) {
    Block block;
    const SettingRow *row = setting_named(word);
    if (row) return with_ancestors(row->blocks) & 1 << scope->block;
    return block_named(word, &block) && block_rows[block].parents & 1 << scope->block;
}

/* Where `value` of an item is a word that begins another, without a comma before it: says so, and cuts the item. */
static bool cut_item(Resolver *r, const Scope *scope, Item *item, const Value *value) {
    if (value->kind != VALUE_EXPR || value->expr->kind != EXPR_NAME || !may_stand(scope, value->expr->text))
        return false;
    const char *name = value->expr->text;
    diagnose(r->diagnostics, value->place, "`%s` is a %s of its own: a comma or a new line belongs before it", name,
             setting_named(name) ? "setting" : "block");
    Item *rest = arena_alloc(r->arena, sizeof *rest);
    *rest = (Item){.place = value->place, .name = name, .values = value->next, .has_block = item->has_block,
                   .block_end = item->block_end, .items = item->items, .next = item->next};
    Value **cut = &item->values;
    while (*cut && *cut != value) cut = &(*cut)->next;
    *cut = NULL;
    item->has_block = false;
    item->items = NULL;
    item->next = rest;
    return true;
}

/* The word of `eps -1e-6`, which reads as a difference, where it is an option that takes a number; else NULL. */
static const OptionRow *option_with_sign(SettingId setting, const Value *value) {
    if (value->kind != VALUE_EXPR || value->expr->kind != EXPR_SUB || value->expr->left->kind != EXPR_NAME)
        return NULL;
    const OptionRow *option = option_named(setting, value->expr->left->text);
    return option && option->takes != TAKES_flag ? option : NULL;
}

/* Such a value as the two that were meant: the word, and a number with its sign. */
static const Value *split_sign(Resolver *r, const Value *value) {
    const Expr *difference = value->expr;
    Value *word = arena_alloc(r->arena, sizeof *word), *number = arena_alloc(r->arena, sizeof *number);
    Expr *negated = arena_alloc(r->arena, sizeof *negated);
    *negated = (Expr){.kind = EXPR_NEGATE, .place = difference->right->place, .depth = difference->depth,
                      .left = difference->right};
    *number = (Value){.kind = VALUE_EXPR, .place = negated->place, .expr = negated, .next = value->next};
    *word = (Value){.kind = VALUE_EXPR, .place = difference->left->place, .expr = difference->left, .next = number};
    return word;
}

/* Values of one item, read twice for settings whose fields depend on a kind: the kind is applied first,
 * so that `norm eps 1e-6 rmsnorm` and `norm rmsnorm eps 1e-6` mean the same. */
static void apply_values(Resolver *r, Scope *scope, SettingId setting, Item *item) {
    const char *name = setting_rows[setting].name;
    bool good = true;
    const OptionRow *set_by[FIELD_COUNT] = {0};
    for (const Value *v = item->values; v; v = v->next) {
        const OptionRow *option = option_of(setting, v);
        if (option && option->takes == TAKES_flag) reset_dependents(scope, option->field);
    }
    for (const Value *v = item->values; v;) {
        if (option_with_sign(setting, v)) v = split_sign(r, v);
        const OptionRow *option = option_of(setting, v), *bare = option_named(setting, "");
        if (!option && bare && v->kind == VALUE_EXPR && !set_by[bare->field]) {
            v = take_numbers(r, scope, bare, arena_printf(r->arena, "`%s`", name), v, item->place);
            set_by[bare->field] = bare;
            continue;
        }
        if (!option) {
            if (v != item->values && cut_item(r, scope, item, v)) break;
            unknown_option(r, setting, v);
            good = false;
            bool word = option_word(v);
            v = v->next;
            while (word && v && v->kind == VALUE_EXPR && !option_word(v)) v = v->next; /* the unknown word's numbers */
            continue;
        }
        if (set_by[option->field]) {
            const char *other = set_by[option->field]->word;
            if (strcmp(other, option->word) == 0)
                diagnose(r->diagnostics, v->place, "`%s` stands twice", option->word);
            else
                diagnose(r->diagnostics, v->place, "`%s` and `%s` exclude each other", other[0] ? other : "the number",
                         option->word);
        }
        set_by[option->field] = option;
        if (option->takes == TAKES_flag) {
            store(scope, option->field, v->place, option->value, option->value);
            v = v->next;
        } else {
            v = take_numbers(r, scope, option, arena_printf(r->arena, "`%s %s`", name, option->word), v->next,
                             v->place);
        }
    }
    if (!good) doubt_setting(scope, setting);
    check_together(r, scope, setting, set_by);
}

static void apply_length(Resolver *r, Scope *scope, SettingId setting, const Item *item) {
    const char *name = setting_rows[setting].name;
    if (item->relation == RELATION_NONE)
        diagnose(r->diagnostics, item->place, "`%s` wants `= N` (always N) or `<= N` (1 to N, given at the call)",
                 name);
    Field field = bare_field(setting);
    if (item->relation == RELATION_NONE) doubt(scope, field);
    if (get(scope, field) > MOST_ROWS) {
        doubt(scope, field);
        diagnose(r->diagnostics, item->place, "`%s` must be at most %d, found %lld", name, MOST_ROWS,
                 (long long)get(scope, field));
        scope->fields[field].integer = 1;
    }
    scope->fields[field + 1].integer =
        item->relation == RELATION_EQUAL; /* NAME_exact stands behind NAME in settings.def */
}

static void apply_setting(Resolver *r, Scope *scope, const SettingRow *row, Item *item) {
    SettingId setting = (SettingId)(row - setting_rows);
    int allowed = with_ancestors(row->blocks);
    if (!(allowed & (1 << scope->block))) {
        Text where = text_new(r->arena);
        for (int b = 0; b < BLOCK_COUNT; b++)
            if (allowed & (1 << b)) text_printf(&where, "%s`%s`", where.size ? ", " : "", block_rows[b].name);
        diagnose(r->diagnostics, item->place, "`%s` has no meaning in `%s`; it may stand in %s", row->name,
                 block_name(scope->block), where.data);
        return;
    }
    if (!item->values) {
        diagnose(r->diagnostics, item->place, "`%s` %s", row->name,
                 item->has_block ? "takes no block" : "wants a value");
        doubt_setting(scope, setting);
        return;
    }
    if (item->relation && row->form != FORM_length)
        diagnose(r->diagnostics, item->place, "`%s` takes its value without `%s`: write `%s %.40s`", row->name,
                 item->relation == RELATION_EQUAL ? "=" : "<=", row->name, text_at(r->arena, item->values->place));
    reset_setting(scope, setting);
    apply_values(r, scope, setting, item);
    if (row->form == FORM_length) apply_length(r, scope, setting, item);
    if (item->has_block) diagnose(r->diagnostics, item->place, "`%s` takes no block", row->name);
}

/* ---------------------------------------------------------------- scopes */

Scope *scope_outermost(Resolver *r) {
    Scope *scope = arena_alloc(r->arena, sizeof *scope);
    for (int f = 0; f < FIELD_COUNT; f++) reset_fields(scope, (Field)f);
    return scope;
}

bool scope_let(Resolver *r, Scope *scope, const Item *item) {
    if (!item->is_let) return false;
    if (++r->lets > MOST_LETS) {
        if (r->lets == MOST_LETS + 1)
            diagnose(r->diagnostics, item->place, "a spec holds at most %d `let` lines", MOST_LETS);
        return true;
    }
    if (setting_named(item->name))
        diagnose(r->diagnostics, item->place, "`%s` is a setting; a `let` needs another name", item->name);
    for (const Binding *b = scope->lets; b; b = b->next)
        if (strcmp(b->name, item->name) == 0) {
            diagnose(r->diagnostics, item->place, "`%s` has a value already", item->name);
            diagnose_note(r->diagnostics, b->place, "given here");
            break;
        }
    Number n = {0};
    if (!refuse_sign(r, item->values->expr, NULL, NULL)) n = evaluate(r, scope, item->values->expr);
    Binding *binding = arena_alloc(r->arena, sizeof *binding);
    *binding = (Binding){item->name, item->place, n.is_real, n.ok, n.integer, n.real, scope->lets};
    scope->lets = binding;
    return true;
}

void refuse_relation(Resolver *r, const Item *item) {
    if (item->relation)
        diagnose(r->diagnostics, item->place, "`%s` stands without `%s`", item->name,
                 item->relation == RELATION_EQUAL ? "=" : "<=");
}

/* The settings and blocks that may stand in a block: blocks first. */
static int words_of(Block block, const char **words) {
    int n = 0;
    for (int b = 0; b < BLOCK_COUNT; b++)
        if (block_rows[b].parents & (1 << block)) words[n++] = block_rows[b].name;
    for (int s = 0; s < SETTING_COUNT; s++)
        if (with_ancestors(setting_rows[s].blocks) & (1 << block)) words[n++] = setting_rows[s].name;
    words[n] = NULL;
    return n;
}

static void unknown_item(Resolver *r, Scope *scope, const Item *item) {
    const char *words[SETTING_COUNT + BLOCK_COUNT + 1];
    int n = words_of(scope->block, words);
    Block inner;
    if (item->quoted) {
        diagnose(r->diagnostics, item->place, "a line that begins with a string belongs in `weights { … }`");
        return;
    }
    Text message = text_new(r->arena);
    text_printf(&message, "`%s` is not a setting or block of `%s`", item->name, block_name(scope->block));
    const char *near = synonym_of("", item->name), *advice = advice_of("", item->name);
    if (!near) near = synonym_of("", lower_case(r->arena, item->name));
    if (!near) near = near_word(r->arena, item->name, words);
    if (advice) near = NULL;
    text_printf(&message, "%s%s", advice ? ": " : did_you_mean(r->arena, item->name, near), advice ? advice : "");
    for (int i = 0; i < n && !near && !advice && !(r->listed & 1 << scope->block); i++)
        message_word(&message, i ? "," : "; it holds:", words[i]);
    if (!near && !advice) r->listed |= 1 << scope->block;
    diagnose(r->diagnostics, item->place, "%s", message.data);
    const char *first = near ? arena_copy(r->arena, near, strcspn(near, " ")) : "";
    const SettingRow *meant = setting_named(first);
    if (meant) doubt_setting(scope, (SettingId)(meant - setting_rows));
    if (item->has_block || block_named(first, &inner)) scope->lost = true;
}

static void misplaced_block(Resolver *r, Block block, Block inner, const Item *item) {
    static const char *const forms[BLOCK_COUNT] = {
        [BLOCK_MODEL] = "`model NAME { … }`",   [BLOCK_ENCODER] = "`encoder { … }`",
        [BLOCK_DECODER] = "`decoder { … }`",    [BLOCK_LAYERS] = "`layers N { … }`",
        [BLOCK_LAYER] = "`layer { … }`",        [BLOCK_ATTENTION] = "`attention self { … }`",
        [BLOCK_FFN] = "`ffn { … }`",            [BLOCK_WEIGHTS] = "`weights { … }`",
    };
    Text where = text_new(r->arena);
    for (int b = 0; b < BLOCK_COUNT; b++)
        if (block_rows[inner].parents & (1 << b)) text_printf(&where, "%s%s", where.size ? " or " : "", forms[b]);
    diagnose(r->diagnostics, item->place, "a block `%s` cannot stand in `%s`; it stands %s%s", item->name,
             block_name(block), where.size ? "in " : "in a file once, around all", where.data);
}

Scope *scope_enter(Resolver *r, const Scope *outer, Block block, Item *items) {
    Scope *scope = arena_alloc(r->arena, sizeof *scope);
    *scope = *outer;
    scope->block = block;
    scope->lost = false;
    for (Item *item = items; item; item = item->next) {
        Block inner;
        if (scope_let(r, scope, item)) continue;
        const SettingRow *row = item->quoted ? NULL : setting_named(item->name);
        if (row) {
            for (const Item *earlier = items; earlier != item; earlier = earlier->next)
                if (!earlier->is_let && !earlier->quoted && strcmp(earlier->name, item->name) == 0) {
                    diagnose(r->diagnostics, item->place, "`%s` stands twice in this block", item->name);
                    diagnose_note(r->diagnostics, earlier->place, "the first one");
                    break;
                }
            apply_setting(r, scope, row, item);
        } else if (item->quoted || !block_named(item->name, &inner)) {
            unknown_item(r, scope, item);
        } else if (!(block_rows[inner].parents & (1 << block))) {
            misplaced_block(r, block, inner, item);
            scope->lost = true;
        } else if (!item->has_block) {
            diagnose(r->diagnostics, item->place, "`%s` wants a block: `%s … { … }`", item->name, item->name);
            scope->lost = true;
        } else {
            refuse_relation(r, item);
        }
    }
    return scope;
}
