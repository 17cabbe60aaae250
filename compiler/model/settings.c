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

/* A setting may stand in the blocks that it speaks of and in all around them. */
static int with_ancestors(int blocks) {
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
    const char *near = nearest_word(expr->text, names);
    diagnose(r->diagnostics, expr->place, "`%s` is neither a `let` nor a numeric setting%s%s%s", expr->text,
             near ? "; did you mean `" : "", near ? near : "", near ? "`?" : "");
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

int64_t evaluate_integer(Resolver *r, const Scope *scope, const Expr *expr, const char *what, int64_t least,
                         int64_t most) {
    Number n = evaluate(r, scope, expr);
    if (!n.ok) return least;
    if (n.is_real) {
        diagnose(r->diagnostics, expr->place, "%s wants an integer, found the real number %g", what, n.real);
        return least;
    }
    if (n.integer < least || n.integer > most) {
        if (n.integer < least)
            diagnose(r->diagnostics, expr->place, "%s must be at least %lld, found %lld", what, (long long)least,
                     (long long)n.integer);
        else
            diagnose(r->diagnostics, expr->place, "%s must be at most %lld, found %lld", what, (long long)most,
                     (long long)n.integer);
        return least;
    }
    return n.integer;
}

static double evaluate_real(Resolver *r, const Scope *scope, const Expr *expr, const char *what, Range range) {
    Number n = evaluate(r, scope, expr);
    if (!n.ok) return 1;
    bool good = range == RANGE_any || (range == RANGE_natural && n.real >= 0) ||
                (range == RANGE_positive && n.real > 0) || (range == RANGE_unit && n.real > 0 && n.real <= 1);
    static const char *const wanted[] = {[RANGE_positive] = "greater than 0",
                                         [RANGE_natural] = "0 or greater",
                                         [RANGE_unit] = "greater than 0 and at most 1"};
    if (!good) diagnose(r->diagnostics, expr->place, "%s must be %s, found %g", what, wanted[range], n.real);
    return good ? n.real : 1;
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
        return value && value->kind != VALUE_EXPR ? value->next : value;
    }
    int64_t least = range == RANGE_natural ? 0 : range == RANGE_positive ? 1 : INT32_MIN, n = 0;
    const Value *stop = value;
    for (; stop && stop->kind == VALUE_EXPR && !option_of(option->setting, stop) && (list || n == 0); stop = stop->next)
        n++;
    double *numbers = arena_array(r->arena, (size_t)n, sizeof *numbers);
    int64_t last = 0;
    for (int64_t i = 0; i < n; i++, value = value->next) {
        if (integer) last = evaluate_integer(r, scope, value->expr, what, least, MOST_INTEGER);
        numbers[i] = integer ? (double)last : evaluate_real(r, scope, value->expr, what, range);
    }
    store(scope, option->field, place, last, numbers[n - 1]);
    if (list) {
        scope->fields[option->field].list = numbers;
        scope->fields[option->field].n = n;
    }
    return stop;
}

static void unknown_option(Resolver *r, SettingId setting, const Value *value) {
    const char *words[OPTION_COUNT + 1];
    int n = 0;
    Text all = text_new(r->arena);
    for (int o = 0; o < OPTION_COUNT; o++)
        if (option_rows[o].setting == setting && option_rows[o].word[0]) {
            words[n++] = option_rows[o].word;
            text_printf(&all, "%s%s", n > 1 ? ", " : "", option_rows[o].word);
        }
    words[n] = NULL;
    const char *name = setting_rows[setting].name,
               *text = value->expr && value->expr->kind == EXPR_NAME ? value->expr->text : NULL;
    const char *near = text ? nearest_word(text, words) : NULL;
    if (value->kind == VALUE_STRING)
        diagnose(r->diagnostics, value->place, "`%s` takes no string", name);
    else if (value->kind == VALUE_RANGE)
        diagnose(r->diagnostics, value->place, "`%s` takes no range", name);
    else if (near)
        diagnose(r->diagnostics, value->place, "`%s` is not an option of `%s`; did you mean `%s`?", text, name, near);
    else if (text)
        diagnose(r->diagnostics, value->place, "`%s` is not an option of `%s`%s%s", text, name, n ? "; it has: " : "",
                 all.data);
    else
        diagnose(r->diagnostics, value->place, "`%s` takes no number here%s%s", name, n ? "; its options: " : "",
                 all.data);
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
        if (option && !(needs[i].values & 1 << get(scope, needs[i].on)))
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

/* Values of one item, read twice for settings whose fields depend on a kind: the kind is applied first,
 * so that `norm eps 1e-6 rmsnorm` and `norm rmsnorm eps 1e-6` mean the same. */
static void apply_values(Resolver *r, Scope *scope, SettingId setting, const Item *item) {
    const char *name = setting_rows[setting].name;
    const OptionRow *set_by[FIELD_COUNT] = {0};
    for (const Value *v = item->values; v; v = v->next) {
        const OptionRow *option = option_of(setting, v);
        if (option && option->takes == TAKES_flag) reset_dependents(scope, option->field);
    }
    for (const Value *v = item->values; v;) {
        const OptionRow *option = option_of(setting, v), *bare = option_named(setting, "");
        if (!option && bare && v->kind == VALUE_EXPR && !set_by[bare->field]) {
            v = take_numbers(r, scope, bare, arena_printf(r->arena, "`%s`", name), v, item->place);
            set_by[bare->field] = bare;
            continue;
        }
        if (!option) {
            unknown_option(r, setting, v);
            v = v->next;
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
    check_together(r, scope, setting, set_by);
}

static void apply_length(Resolver *r, Scope *scope, SettingId setting, const Item *item) {
    const char *name = setting_rows[setting].name;
    if (item->relation == RELATION_NONE)
        diagnose(r->diagnostics, item->place, "`%s` wants `= N` (always N) or `<= N` (1 to N, given at the call)",
                 name);
    Field field = bare_field(setting);
    if (get(scope, field) > MOST_ROWS) {
        diagnose(r->diagnostics, item->place, "`%s` must be at most %d, found %lld", name, MOST_ROWS,
                 (long long)get(scope, field));
        scope->fields[field].integer = 1;
    }
    scope->fields[field + 1].integer =
        item->relation == RELATION_EQUAL; /* NAME_exact stands behind NAME in settings.def */
}

static void apply_setting(Resolver *r, Scope *scope, const SettingRow *row, const Item *item) {
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
    if (item->has_block) diagnose(r->diagnostics, item->place, "`%s` takes no block", row->name);
    if (!item->values) {
        diagnose(r->diagnostics, item->place, "`%s` wants a value", row->name);
        return;
    }
    if (item->relation && row->form != FORM_length)
        diagnose(r->diagnostics, item->place, "`%s` takes its value without `%s`", row->name,
                 item->relation == RELATION_EQUAL ? "=" : "<=");
    reset_setting(scope, setting);
    apply_values(r, scope, setting, item);
    if (row->form == FORM_length) apply_length(r, scope, setting, item);
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
    Number n = evaluate(r, scope, item->values->expr);
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

static void unknown_item(Resolver *r, Block block, const Item *item) {
    const char *names[SETTING_COUNT + BLOCK_COUNT + 1];
    int n = 0;
    for (int s = 0; s < SETTING_COUNT; s++)
        if (with_ancestors(setting_rows[s].blocks) & (1 << block)) names[n++] = setting_rows[s].name;
    for (int b = 0; b < BLOCK_COUNT; b++)
        if (block_rows[b].parents & (1 << block)) names[n++] = block_rows[b].name;
    names[n] = NULL;
    const char *near = item->quoted ? NULL : nearest_word(item->name, names);
    if (item->quoted)
        diagnose(r->diagnostics, item->place, "a line that begins with a string belongs in `weights { … }`");
    else diagnose(r->diagnostics, item->place, "`%s` is not a setting or block of `%s`%s%s%s", item->name,
                  block_name(block),
             near ? "; did you mean `" : "", near ? near : "", near ? "`?" : "");
}

Scope *scope_enter(Resolver *r, const Scope *outer, Block block, const Item *items) {
    Scope *scope = arena_alloc(r->arena, sizeof *scope);
    *scope = *outer;
    scope->block = block;
    for (const Item *item = items; item; item = item->next) {
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
            unknown_item(r, block, item);
        } else if (!(block_rows[inner].parents & (1 << block))) {
            diagnose(r->diagnostics, item->place, "a block `%s` cannot stand in `%s`", item->name, block_name(block));
        } else if (!item->has_block) {
            diagnose(r->diagnostics, item->place, "`%s` wants a block: `%s … { … }`", item->name, item->name);
        } else {
            refuse_relation(r, item);
        }
    }
    return scope;
}
