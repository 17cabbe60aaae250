/* settings.c: reads the items of a block into fields, and checks its settings and their values. */
#include "tables.h"

#include <string.h>

Location stated_at(const Scope *scope, Field field, Location otherwise) {
    return scope->fields[field].stated ? scope->fields[field].location : otherwise;
}

/* ---------------------------------------------------------------- one setting */

static const OptionRow *option_named(SettingId setting, const char *word) {
    for (int o = 0; o < OPTION_COUNT; o++)
        if (model_options[o].setting == setting && strcmp(model_options[o].word, word) == 0) return &model_options[o];
    return NULL;
}

/* The option of the setting that a value names by a single word, or NULL. */
static const OptionRow *option_of(SettingId setting, const Value *value) {
    if (value->kind != VALUE_EXPR || value->expr->kind != EXPR_NAME) return NULL;
    return option_named(setting, value->expr->text);
}

static bool option_word(const Value *value) { return value->kind == VALUE_EXPR && value->expr->kind == EXPR_NAME; }

static void reset_fields(Scope *scope, Field field) {
    const FieldRow *row = &model_fields[field];
    scope->fields[field] = (FieldValue){.integer = (int64_t)row->initial, .real = row->initial};
}

static void store(Scope *scope, Field field, Location location, int64_t integer, double real) {
    FieldValue *value = &scope->fields[field];
    *value = (FieldValue){.integer = integer, .real = real, .stated = true, .location = location};
}

/* Reads the number or numbers behind an option's word, and returns the value after them. */
static const Value *take_numbers(Resolver *r, Scope *scope, const OptionRow *option, const char *what,
                                 const Value *value, Location location) {
    Range range = (Range)option->value;
    bool integer = option->takes == TAKES_integer || option->takes == TAKES_integers;
    bool list = option->takes == TAKES_integers || option->takes == TAKES_reals;
    if (!value || value->kind != VALUE_EXPR || option_of(option->setting, value)) {
        diagnose(r->diagnostics, value ? value->location : location, "%s wants %s", what,
                 integer ? "an integer" : "a number");
        doubt(scope, option->field);
        return value && value->kind != VALUE_EXPR ? value->next : value;
    }
    int64_t least = range == RANGE_natural ? 0 : range == RANGE_any ? INT32_MIN : 1, n = 0;
    const int64_t most = range == RANGE_outliers ? MOST_OUTLIERS : MOST_INTEGER;
    const Value *stop = value;
    for (; stop && stop->kind == VALUE_EXPR && !option_of(option->setting, stop) && (list || n == 0); stop = stop->next)
        n++;
    double *numbers = arena_array(r->arena, (size_t)n, sizeof *numbers);
    Number last = {0};
    bool good = true;
    for (int64_t i = 0; i < n; i++, value = value->next) {
        last = integer ? evaluate_integer(r, scope, value->expr, what, least, most)
                       : evaluate_real(r, scope, value->expr, what, range);
        numbers[i] = last.real;
        good = good && last.ok;
    }
    store(scope, option->field, location, integer ? last.integer : 0, last.real);
    if (!good) doubt(scope, option->field);
    if (list) {
        scope->fields[option->field].list = numbers;
        scope->fields[option->field].n = n;
    }
    return stop;
}

/* "f32 or bf16": the words that an option of the field takes. */
static const char *choices_text(Resolver *r, Field field) {
    Text text = text_new(r->arena);
    for (int c = 0; c < CHOICE_COUNT; c++) {
        if (model_choices[c].field != field) continue;
        bool last = c + 1 == CHOICE_COUNT || model_choices[c + 1].field != field;
        text_printf(&text, "%s`%s`", !text.size ? "" : last ? " or " : ", ", model_choices[c].word);
    }
    return text.data;
}

static bool may_stand(const Scope *scope, const char *word) {
    Block block;
    const SettingRow *row = setting_named(word);
    if (row) return with_ancestors(row->blocks) & 1 << scope->block;
    return block_named(word, &block) && model_blocks[block].parents & 1 << scope->block;
}

/* The field of the number that may stand behind the type of weights in `dtype`, or FIELD_COUNT for another field. */
static Field group_field(Field dtype) {
    switch ((int)dtype) {
    case F_weights_dtype: return F_weights_group;
    case F_output_weights_dtype: return F_output_weights_group;
    case F_down_weights_dtype: return F_down_weights_group;
    default: return FIELD_COUNT;
    }
}

/* Reads the number of weights that share a scale, which may stand behind `int8` or `int4` at `word`, and returns the
 * value after it. */
static const Value *take_group(Resolver *r, Scope *scope, SettingId setting, const ChoiceRow *choice,
                               const Value *word) {
    const Field group = group_field(choice->field);
    const Value *value = word->next;
    if (!value || value->kind != VALUE_EXPR || option_of(setting, value)) return value;
    if (option_word(value) && may_stand(scope, value->expr->text)) return value;
    const char *what = arena_printf(r->arena, "`%s weights %s`", model_settings[setting].name, choice->word);
    Number size = evaluate_integer(r, scope, value->expr, what, 1, MOST_INTEGER);
    bool good = size.ok && dtype_has_scales((Dtype)choice->value) && is_group_size(size.integer);
    if (size.ok && !dtype_has_scales((Dtype)choice->value))
        diagnose(r->diagnostics, value->location, "%s takes no number", what);
    else if (size.ok && !good)
        diagnose(r->diagnostics, value->location, "%s has a scale for each 32, 64 or 128 numbers of a row, found %lld",
                 what, (long long)size.integer);
    store(scope, group, value->location, good ? size.integer : 0, 0);
    if (!good) doubt(scope, group);
    return value->next;
}

/* Reads the names of inputs of rows behind an option's word, and returns the value after them. The list of the field
 * has the numbers of the inputs. */
static const Value *take_names(Resolver *r, Scope *scope, const OptionRow *option, const char *what,
                               const Value *value, Location location) {
    double *numbers = arena_array(r->arena, MOST_ROW_INPUTS, sizeof *numbers);
    const Value *first = value;
    int64_t n = 0;
    for (; value && option_word(value) && n < MOST_ROW_INPUTS; value = value->next) {
        const RowInput *input = row_input_named(r, scope, value->expr->text, value->location);
        if (!input) break;
        if (n && option_named(option->setting, input->kind.name)) {
            diagnose(r->diagnostics, value->location, "`%s` is an option here, too: an input that %s names needs "
                                                      "another name", input->kind.name, what);
            doubt(scope, option->field);
            return value;
        }
        numbers[n++] = (double)(input - r->model->row_inputs);
    }
    store(scope, option->field, first ? first->location : location, 0, 0);
    scope->fields[option->field].list = numbers;
    scope->fields[option->field].n = n;
    if (n) return value;
    diagnose(r->diagnostics, value ? value->location : location,
             "%s wants the name of an `input rows` that stands before it", what);
    doubt(scope, option->field);
    return value && !may_stand(scope, text_at(r->arena, value->location)) ? value->next : value;
}

/* Reads the word behind an option's word, and returns the value after it. */
static const Value *take_word(Resolver *r, Scope *scope, const OptionRow *option, const char *what,
                              const Value *value, Location location) {
    bool word = value && option_word(value);
    for (int c = 0; c < CHOICE_COUNT && word; c++) {
        const ChoiceRow *choice = &model_choices[c];
        if (choice->field != option->field || strcmp(choice->word, value->expr->text) != 0) continue;
        store(scope, option->field, value->location, choice->value, choice->value);
        return group_field(option->field) != FIELD_COUNT ? take_group(r, scope, option->setting, choice, value)
                                                         : value->next;
    }
    diagnose(r->diagnostics, value ? value->location : location, "%s wants %s%s", what,
             choices_text(r, option->field),
             value ? arena_printf(r->arena, ", found `%s`", text_at(r->arena, value->location)) : "");
    doubt(scope, option->field);
    return value ? value->next : value;
}

static void unknown_option(Resolver *r, SettingId setting, const Value *value) {
    const char *words[OPTION_COUNT + 1];
    int n = 0;
    for (int o = 0; o < OPTION_COUNT; o++)
        if (model_options[o].setting == setting && model_options[o].word[0]) words[n++] = model_options[o].word;
    words[n] = NULL;
    const char *name = model_settings[setting].name,
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
    diagnose(r->diagnostics, value->location, "%s", message.data);
}

static void doubt_setting(Scope *scope, SettingId setting) {
    for (int o = 0; o < OPTION_COUNT; o++)
        if (model_options[o].setting == setting) doubt(scope, model_options[o].field);
}

/* Resets the fields that a new statement of the setting puts back to their defaults. */
static void reset_setting(Scope *scope, SettingId setting) {
    for (int o = 0; o < OPTION_COUNT; o++)
        if (model_options[o].setting == setting && model_fields[model_options[o].field].reset == RESET_whole)
            reset_fields(scope, model_options[o].field);
}

static void reset_dependents(Scope *scope, Field stated_field) {
    for (int f = 0; f < FIELD_COUNT; f++)
        if (model_fields[f].reset == (int)stated_field) reset_fields(scope, (Field)f);
}

enum { MOST_NEEDY = 8 };

/* These options have a meaning only if the field `on` of their setting has one of `values`, which are bits. */
static const struct {
    Field on;
    int values;
    const char *wanted;
    Field options[MOST_NEEDY]; /* F_d_model, which is no such option, ends the list */
} needs[] = {
    {F_position, 1 << POSITION_SINUSOIDAL, "sinusoidal", {F_sinusoid}},
    {F_position, 1 << POSITION_SINUSOIDAL | 1 << POSITION_LEARNED, "sinusoidal` or `learned",
     {F_position_offset, F_position_skip}},
    {F_position, 1 << POSITION_SINUSOIDAL | 1 << POSITION_ROPE, "sinusoidal` or `rope", {F_position_grid}},
    {F_position, 1 << POSITION_SINUSOIDAL | 1 << POSITION_LEARNED | 1 << POSITION_ROPE | 1 << POSITION_ALIBI,
     "sinusoidal`, `learned`, `rope` or `alibi", {F_position_at}},
    {F_position, 1 << POSITION_ROPE, "rope",
     {F_rope_interleaved, F_rope_sections, F_rope_partial, F_rope_theta, F_rope_scaling}},
    {F_rope_scaling, ~(1 << ROPE_PLAIN), "linear`, `llama3`, `yarn` or `longrope",
     {F_rope_scaled, F_rope_factor, F_rope_original}},
    {F_rope_scaling, 1 << ROPE_LLAMA3, "llama3", {F_rope_low, F_rope_high}},
    {F_rope_scaling, 1 << ROPE_YARN, "yarn", {F_rope_beta_fast, F_rope_beta_slow, F_rope_untruncated}},
    {F_rope_scaling, 1 << ROPE_YARN | 1 << ROPE_LONGROPE, "yarn` or `longrope", {F_rope_attention_factor}},
    {F_rope_scaling, 1 << ROPE_LONGROPE, "longrope", {F_rope_short, F_rope_long}},
    {F_position, 1 << POSITION_ALIBI, "alibi", {F_alibi_max, F_alibi_scaled, F_alibi}},
    {F_position, 1 << POSITION_RELATIVE, "relative",
     {F_relative_buckets, F_relative_distance, F_relative_per_layer}},
    {F_position, 1 << POSITION_CONTENT, "content",
     {F_content_by_query, F_content_by_key, F_content_rows, F_content_logarithmic, F_content_projected}},
    {F_content_projected, 1 << 1, "projected", {F_content_own, F_content_normalized}},
    {F_head_pool, 1 << POOL_LAST, "pool last", {F_head_pool_skip, F_head_pool_token}},
    {F_input, 1 << INPUT_PATCHES, "patches",
     {F_image_width, F_image_channels, F_patch_step, F_class_token, F_distillation_token, F_registers,
      F_patch_no_bias}},
    {F_input, 1 << INPUT_MEL, "mel", {F_mel_bins, F_mel_frames}},
    {F_norm, 1 << NORM_layernorm, "layernorm", {F_norm_no_bias}},
    {F_qk_norm, ~(1 << NORM_NONE), "layernorm` or `rmsnorm",
     {F_qk_norm_all_heads, F_qk_norm_weight_per_head, F_qk_norm_eps, F_qk_norm_plus_one, F_qk_norm_after_rotation}},
    {F_qk_norm, 1 << NORM_layernorm, "layernorm", {F_qk_norm_no_bias}},
    {F_inner_norm, ~(1 << NORM_NONE), "layernorm` or `rmsnorm", {F_inner_norm_eps, F_inner_norm_plus_one}},
    {F_inner_norm, 1 << NORM_layernorm, "layernorm", {F_inner_norm_no_bias}},
    {F_gated, 1 << 1, "gated", {F_activation_limit, F_activation_plus_one}},
    {F_export_attention, 1 << 1, "attention", {F_export_layers, F_export_heads}},
#define PRECISION_NEEDS(prefix) \
    {F_##prefix##weights_dtype, 1 << DTYPE_I4, "weights int4", {F_##prefix##weights_offset}}, \
    {F_##prefix##weights_dtype, 1 << DTYPE_I4 | 1 << DTYPE_I8, "weights int4` or `weights int8", \
     {F_##prefix##weights_halves}}, \
    {F_##prefix##activations_dtype, 1 << DTYPE_I8, "activations int8", {F_##prefix##smooth}}, \
    {F_##prefix##smooth, 1 << 1, "smooth", {F_##prefix##outliers}}
    PRECISION_NEEDS(), PRECISION_NEEDS(output_), PRECISION_NEEDS(down_)
};

/* Refuses options of one item whose needs are not met, and anything beside `mask none`, `bias all` or `bias none`. */
static void check_together(Resolver *r, const Scope *scope, SettingId setting, const OptionRow *const *set_by) {
    const char *name = model_settings[setting].name;
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++)
        for (const Field *f = needs[i].options; *f != F_d_model; f++)
            if (set_by[*f] && known(scope, needs[i].on) && !(needs[i].values & 1 << get(scope, needs[i].on)))
                diagnose(r->diagnostics, scope->fields[*f].location, "`%s %s` needs `%s`", name, set_by[*f]->word,
                         needs[i].wanted);
    if (set_by[F_activation] && set_by[F_formula])
        diagnose(r->diagnostics, scope->fields[F_formula].location, "`%s` and `=` exclude each other",
                 set_by[F_activation]->word);
    static const Field sole[] = {F_mask_none, F_bias};
    for (size_t i = 0; i < sizeof sole / sizeof sole[0]; i++)
        for (int f = 0; f < FIELD_COUNT && set_by[sole[i]]; f++)
            if (f != (int)sole[i] && set_by[f])
                diagnose(r->diagnostics, scope->fields[f].location, "`%s` and `%s` exclude each other",
                         set_by[sole[i]]->word, set_by[f]->word);
}

/* Reports a missing comma where `value` is a word that begins another item, and splits the item in front of it. */
static bool cut_item(Resolver *r, const Scope *scope, Item *item, const Value *value) {
    if (value->kind != VALUE_EXPR || value->expr->kind != EXPR_NAME || !may_stand(scope, value->expr->text))
        return false;
    const char *name = value->expr->text;
    if (advice_of(item->name, name)) return false;
    diagnose(r->diagnostics, value->location, "`%s` is a %s of its own: a comma or a new line belongs before it", name,
             setting_named(name) ? "setting" : "block");
    Item *rest = arena_alloc(r->arena, sizeof *rest);
    *rest = (Item){.location = value->location, .name = name, .values = value->next, .has_block = item->has_block,
                   .block_end = item->block_end, .items = item->items, .next = item->next};
    Value **cut = &item->values;
    while (*cut && *cut != value) cut = &(*cut)->next;
    *cut = NULL;
    item->has_block = false;
    item->items = NULL;
    item->next = rest;
    return true;
}

/* The option `eps` of a value such as `eps -1e-6`, which parses as a difference; NULL for any other value. */
static const OptionRow *option_with_sign(SettingId setting, const Value *value) {
    if (value->kind != VALUE_EXPR || value->expr->kind != EXPR_SUB || value->expr->left->kind != EXPR_NAME)
        return NULL;
    const OptionRow *option = option_named(setting, value->expr->left->text);
    return option && option->takes != TAKES_flag ? option : NULL;
}

/* Splits the difference of `eps -1e-6` into the two values that were meant, a word and a negated number. */
static const Value *split_sign(Resolver *r, const Value *value) {
    const Expr *difference = value->expr;
    Value *word = arena_alloc(r->arena, sizeof *word), *number = arena_alloc(r->arena, sizeof *number);
    Expr *negated = arena_alloc(r->arena, sizeof *negated);
    *negated = (Expr){.kind = EXPR_NEGATE, .location = difference->right->location, .depth = difference->depth,
                      .left = difference->right};
    *number = (Value){.kind = VALUE_EXPR, .location = negated->location, .expr = negated, .next = value->next};
    *word = (Value){.kind = VALUE_EXPR, .location = difference->left->location, .expr = difference->left,
                    .next = number};
    return word;
}

static void take_condition(Scope *scope, const OptionRow *option, const Value *value, const OptionRow **set_by) {
    if (!option) bug("a setting without an option for an expression has one");
    store(scope, option->field, value->location, 1, 1);
    scope->fields[option->field].expr = value->expr;
    scope->fields[option->field].scope = scope;
    set_by[option->field] = option;
}

/* Reads the values of one item twice. The first pass applies flags on which other fields depend, so that
 * `norm eps 1e-6 rmsnorm` and `norm rmsnorm eps 1e-6` mean the same. */
static void apply_values(Resolver *r, Scope *scope, SettingId setting, Item *item) {
    const char *name = model_settings[setting].name;
    bool good = true;
    const OptionRow *set_by[FIELD_COUNT] = {0};
    for (const Value *v = item->values; v; v = v->next) {
        const OptionRow *option = option_of(setting, v);
        if (option && (option->takes == TAKES_flag || option->takes == TAKES_word))
            reset_dependents(scope, option->field);
    }
    for (const Value *v = item->values; v;) {
        if (option_with_sign(setting, v)) v = split_sign(r, v);
        const OptionRow *option = option_of(setting, v), *bare = option_named(setting, "");
        if (v->kind == VALUE_RULE) { /* the last value */
            take_condition(scope, option_named(setting, v->string), v, set_by);
            break;
        }
        if (!option && bare && bare->takes != TAKES_expression && v->kind == VALUE_EXPR && !set_by[bare->field]) {
            v = take_numbers(r, scope, bare, arena_printf(r->arena, "`%s`", name), v, item->location);
            set_by[bare->field] = bare;
            continue;
        }
        if (!option) {
            if (v != item->values && cut_item(r, scope, item, v)) break;
            unknown_option(r, setting, v);
            good = false;
            bool word = option_word(v);
            v = v->next;
            while (word && v && v->kind == VALUE_EXPR && !option_word(v)) v = v->next; /* its numbers */
            continue;
        }
        if (set_by[option->field]) {
            const char *other = set_by[option->field]->word;
            if (strcmp(other, option->word) == 0)
                diagnose(r->diagnostics, v->location, "`%s` stands twice", option->word);
            else
                diagnose(r->diagnostics, v->location, "`%s` and `%s` exclude each other",
                         other[0] ? other : "the number",
                         option->word);
        }
        set_by[option->field] = option;
        if (option->takes == TAKES_flag) {
            store(scope, option->field, v->location, option->value, option->value);
            v = v->next;
        } else {
            const char *what = arena_printf(r->arena, "`%s %s`", name, option->word);
            const Value *(*take)(Resolver *, Scope *, const OptionRow *, const char *, const Value *, Location) =
                option->takes == TAKES_word    ? take_word
                : option->takes == TAKES_names ? take_names
                                               : take_numbers;
            v = take(r, scope, option, what, v->next, v->location);
        }
    }
    if (!good) doubt_setting(scope, setting);
    check_together(r, scope, setting, set_by);
}

static void apply_length(Resolver *r, Scope *scope, SettingId setting, const Item *item) {
    const char *name = model_settings[setting].name;
    if (item->relation == RELATION_NONE)
        diagnose(r->diagnostics, item->location, "`%s` wants `= N` (always N) or `<= N` (1 to N, given at the call)",
                 name);
    Field field = bare_field(setting);
    if (item->relation == RELATION_NONE) doubt(scope, field);
    if (get(scope, field) > MOST_ROWS) {
        doubt(scope, field);
        diagnose(r->diagnostics, item->location, "`%s` must be at most %d, found %lld", name, MOST_ROWS,
                 (long long)get(scope, field));
        scope->fields[field].integer = 1;
    }
    scope->fields[field].exact = item->relation == RELATION_EQUAL;
}

/* An item `score EXPR`, which stands next to the `score` that names a product. */
static bool is_expression(const Item *item) {
    return item->values && item->values->kind == VALUE_RULE && !*item->values->string;
}

static void apply_setting(Resolver *r, Scope *scope, const SettingRow *row, Item *item) {
    SettingId setting = (SettingId)(row - model_settings);
    int allowed = with_ancestors(row->blocks);
    if (!(allowed & (1 << scope->block))) {
        const char *advice = advice_of(block_name(scope->block), row->name);
        Text where = text_new(r->arena);
        for (int b = 0; b < BLOCK_COUNT && !advice; b++)
            if (allowed & (1 << b)) text_printf(&where, "%s`%s`", where.size ? ", " : "", model_blocks[b].name);
        diagnose(r->diagnostics, item->location, "`%s` has no meaning in `%s`%s%s", row->name,
                 block_name(scope->block), advice ? ": " : "; it may stand in ", advice ? advice : where.data);
        return;
    }
    if (!item->values) {
        diagnose(r->diagnostics, item->location, "`%s` %s", row->name,
                 item->has_block ? "takes no block" : "wants a value");
        doubt_setting(scope, setting);
        return;
    }
    if (item->relation && row->form != FORM_length)
        diagnose(r->diagnostics, item->location, "`%s` takes its value without `%s`: write `%s %.*s`", row->name,
                 item->relation == RELATION_EQUAL ? "=" : "<=", row->name,
                 CUT(40, text_at(r->arena, item->values->location)));
    if (!is_expression(item)) reset_setting(scope, setting);
    apply_values(r, scope, setting, item);
    if (row->form == FORM_length) apply_length(r, scope, setting, item);
    if (item->has_block) diagnose(r->diagnostics, item->location, "`%s` takes no block", row->name);
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
            diagnose(r->diagnostics, item->location, "a spec holds at most %d `let` lines", MOST_LETS);
        return true;
    }
    if (setting_named(item->name))
        diagnose(r->diagnostics, item->location, "`%s` is a setting; a `%s` needs another name", item->name,
                 item_is_learned(item) ? "learned" : "let");
    refuse_bound(r, scope, item->name, item->location);
    const Value *value = item->values;
    if (value->kind == VALUE_TABLE || value->kind == VALUE_LEARNED) {
        const PairTable *table = item_is_learned(item)
                                     ? resolve_learned(r, scope, item)
                                     : resolve_table(r, scope, item->name, value->until, value->expr);
        scope_bind(r, scope, (Binding){.name = item->name, .location = item->location, .table = table});
        return true;
    }
    Number n = {0};
    if (!refuse_sign(r, item->values->expr, NULL, NULL)) n = evaluate(r, scope, item->values->expr);
    scope_bind(r, scope, (Binding){.name = item->name, .location = item->location, .is_real = n.is_real, .known = n.ok,
                                   .integer = n.integer, .real = n.real});
    return true;
}

void refuse_relation(Resolver *r, const Item *item) {
    if (item->relation)
        diagnose(r->diagnostics, item->location, "`%s` takes no `%s`", item->name,
                 item->relation == RELATION_EQUAL ? "=" : "<=");
}

void refuse_values(Resolver *r, const Item *item) {
    if (item->values)
        diagnose(r->diagnostics, item->values->location, "`%s` is followed by its block, not by a value", item->name);
}

void check_token(Resolver *r, Location location, int64_t token, int64_t vocab) {
    if (vocab && token >= vocab)
        diagnose(r->diagnostics, location, "token %lld is outside the vocabulary of %lld", (long long)token,
                 (long long)vocab);
}

/* Fills in the names of the blocks, then of the settings, that a block may hold; returns their number. */
static int words_of(Block block, const char **words) {
    int n = 0;
    for (int b = 0; b < BLOCK_COUNT; b++)
        if (model_blocks[b].parents & (1 << block)) words[n++] = model_blocks[b].name;
    for (int s = 0; s < SETTING_COUNT; s++)
        if (with_ancestors(model_settings[s].blocks) & (1 << block)) words[n++] = model_settings[s].name;
    words[n] = NULL;
    return n;
}

static void unknown_item(Resolver *r, Scope *scope, const Item *item) {
    const char *words[SETTING_COUNT + BLOCK_COUNT + 1];
    int n = words_of(scope->block, words);
    Block inner;
    if (item->quoted) {
        diagnose(r->diagnostics, item->location, "a line that begins with a string belongs in `weights { … }`");
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
    diagnose(r->diagnostics, item->location, "%s", message.data);
    const char *first = near ? arena_copy(r->arena, near, strcspn(near, " ")) : "";
    const SettingRow *meant = setting_named(first);
    if (meant) doubt_setting(scope, (SettingId)(meant - model_settings));
    if (item->has_block || block_named(first, &inner)) scope->lost = true;
}

static void misplaced_block(Resolver *r, Block block, Block inner, const Item *item) {
    static const char *const forms[BLOCK_COUNT] = {
        [BLOCK_MODEL] = "`model NAME { … }`",   [BLOCK_ENCODER] = "`encoder { … }`",
        [BLOCK_DECODER] = "`decoder { … }`",    [BLOCK_LAYERS] = "`layers N { … }`",
        [BLOCK_LAYER] = "`layer { … }`",        [BLOCK_ATTENTION] = "`attention self { … }`",
        [BLOCK_FFN] = "`ffn { … }`",            [BLOCK_DENSE] = "`dense N { … }`",
        [BLOCK_PROBE] = "`probe { … }`",        [BLOCK_WEIGHTS] = "`weights { … }`",
        [BLOCK_CONVOLUTION] = "`convolution { … }`", [BLOCK_GENERATION] = "`generation { … }`",
        [BLOCK_TEXT] = "`text { … }`",
    };
    Text where = text_new(r->arena);
    for (int b = 0; b < BLOCK_COUNT; b++)
        if (model_blocks[inner].parents & (1 << b)) text_printf(&where, "%s%s", where.size ? " or " : "", forms[b]);
    diagnose(r->diagnostics, item->location, "a block `%s` cannot stand in `%s`; it stands %s%s", item->name,
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
        if (scope_input(r, scope, item)) {
            refuse_relation(r, item);
            if (item->has_block) diagnose(r->diagnostics, item->location, "`input %s` takes no block",
                                          item->values->expr->text);
            continue;
        }
        const SettingRow *row = item->quoted ? NULL : setting_named(item->name);
        if (row) {
            for (const Item *earlier = items; earlier != item; earlier = earlier->next)
                if (!earlier->is_let && !earlier->quoted && strcmp(earlier->name, item->name) == 0 &&
                    !item_is_row_input(earlier) && is_expression(earlier) == is_expression(item)) {
                    diagnose(r->diagnostics, item->location, "`%s` stands twice in this block", item->name);
                    diagnose_note(r->diagnostics, earlier->location, "the first one");
                    break;
                }
            apply_setting(r, scope, row, item);
        } else if (item->quoted || !block_named(item->name, &inner)) {
            unknown_item(r, scope, item);
        } else if (!(model_blocks[inner].parents & (1 << block))) {
            misplaced_block(r, block, inner, item);
            scope->lost = true;
        } else if (!item->has_block) {
            diagnose(r->diagnostics, item->location, "`%s` wants a block: `%s … { … }`", item->name, item->name);
            scope->lost = true;
        } else {
            refuse_relation(r, item);
        }
    }
    return scope;
}
