/* rope.c: translates rope_parameters, or rope_scaling and rope_theta of older configs, into the words of a spec. */
#include "../formats/json.h"
#include "import.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Members of the object that a kind of scaling may have, besides those common to all kinds. */
static const struct {
    const char *type, *members;
} kinds[] = {
    {"default", ""},
    {"linear", "factor"},
    {"dynamic", "factor original_max_position_embeddings"},
    {"llama3", "factor low_freq_factor high_freq_factor original_max_position_embeddings"},
    {"yarn", "factor original_max_position_embeddings attention_factor beta_fast beta_slow mscale mscale_all_dim "
    "truncate"},
    {"longrope", "factor original_max_position_embeddings attention_factor short_factor long_factor"},
};
static const char of_all_kinds[] = "rope_type type rope_theta partial_rotary_factor";

typedef struct Rope {
    Import *import;
    const cJSON *object;
    const char *type;
} Rope;

/* Whether a member is a positive number that f32 holds. */
static bool is_positive(const cJSON *item) {
    return cJSON_IsNumber(item) && item->valuedouble > 0 && f32_holds(item->valuedouble);
}

/* A positive number, or NAN for an absent member. */
static double real(const Rope *rope, const char *name) {
    const cJSON *item = json_member(rope->object, name);
    if (!item || !rope->object) return NAN;
    if (!is_positive(item))
        fail("%s: `%s.%s` is %s; a positive number that f32 holds is understood", rope->import->config_path,
            rope->object->string, name, config_value(rope->import->arena, item));
    return item->valuedouble;
}

static double required(const Rope *rope, const char *name) {
    double value = real(rope, name);
    if (isnan(value)) fail("%s: `%s.%s` is missing, which rope_type `%s` needs", rope->import->config_path,
        rope->object->string, name, rope->type);
    return value;
}

static void add_real(const Rope *rope, Text *out, const char *word, double value) {
    if (!isnan(value)) text_printf(out, " %s %s", word, number_text(rope->import->arena, value));
}

static void add_list(const Rope *rope, Text *out, const char *word, const char *name) {
    const cJSON *list = json_member(rope->object, name);
    if (!cJSON_IsArray(list) || !list->child) fail("%s: `%s.%s` is not a list of numbers", rope->import->config_path,
        rope->object->string, name);
    text_printf(out, " %s", word);
    for (const cJSON *item = list->child; item; item = item->next) {
        if (!is_positive(item)) fail("%s: `%s.%s` holds %s; a list of positive numbers that f32 holds is understood",
            rope->import->config_path, rope->object->string, name, config_value(rope->import->arena, item));
        text_printf(out, " %s", number_text(rope->import->arena, item->valuedouble));
    }
}

static double variable_real(const Rope *rope, const char *name) {
    const char *text = variable_get(rope->import, name, strlen(name));
    return text ? strtod(text, NULL) : NAN;
}

static double original(const Rope *rope) {
    double value = variable_real(rope, "original"); /* Phi-3 has it outside of the object */
    if (isnan(value)) value = real(rope, "original_max_position_embeddings");
    if (isnan(value)) value = variable_real(rope, "positions");
    return value;
}

static double stretched(double scale, double mscale) {
    return scale <= 1 ? 1 : 0.1 * mscale * portable_log(scale) + 1;
}

static void add_yarn(const Rope *rope, Text *out) {
    double factor = required(rope, "factor"), attention = real(rope, "attention_factor");
    double mscale = real(rope, "mscale"), all = real(rope, "mscale_all_dim");
    if (isnan(attention) && !isnan(mscale) && !isnan(all)) attention = stretched(factor, mscale) / stretched(factor,
        all);
    /* DeepSeek's attention multiplies its scores by the square of this factor. */
    if (!isnan(all)) variable_set(rope->import, "mscale",
        number_text(rope->import->arena, stretched(factor, all) * stretched(factor, all)));
    text_printf(out, " scaling yarn");
    add_real(rope, out, "factor", factor);
    add_real(rope, out, "original", original(rope));
    add_real(rope, out, "attention_factor", attention);
    add_real(rope, out, "beta_fast", real(rope, "beta_fast"));
    add_real(rope, out, "beta_slow", real(rope, "beta_slow"));
    const cJSON *truncate = json_member(rope->object, "truncate");
    if (truncate && !cJSON_IsBool(truncate)) fail("%s: `%s.truncate` is not true or false", rope->import->config_path,
        rope->object->string);
    if (truncate && cJSON_IsFalse(truncate)) text_printf(out, " untruncated");
}

static void add_longrope(const Rope *rope, Text *out) {
    double from = original(rope), factor = real(rope, "factor");
    if (isnan(factor)) factor = variable_real(rope, "positions") / from;
    text_printf(out, " scaling longrope");
    add_real(rope, out, "factor", factor);
    add_real(rope, out, "original", from);
    add_real(rope, out, "attention_factor", real(rope, "attention_factor"));
    add_list(rope, out, "short", "short_factor");
    add_list(rope, out, "long", "long_factor");
}

static void add_scaling(const Rope *rope, Text *out) {
    if (strcmp(rope->type, "linear") == 0) {
        text_printf(out, " scaling linear");
        add_real(rope, out, "factor", required(rope, "factor"));
    } else if (strcmp(rope->type, "llama3") == 0) {
        text_printf(out, " scaling llama3");
        add_real(rope, out, "factor", required(rope, "factor"));
        add_real(rope, out, "low", required(rope, "low_freq_factor"));
        add_real(rope, out, "high", required(rope, "high_freq_factor"));
        add_real(rope, out, "original", original(rope));
    } else if (strcmp(rope->type, "yarn") == 0) {
        add_yarn(rope, out);
    } else if (strcmp(rope->type, "longrope") == 0) {
        add_longrope(rope, out);
    } else if (strcmp(rope->type, "dynamic") == 0) { /* has no effect up to the model's own bound */
        double bound = variable_real(rope, "positions");
        if (isnan(bound) || (double)rope->import->options->seq > bound)
            fail("%s: `%s` is dynamic, which is understood up to max_position_embeddings only",
                rope->import->config_path, rope->object->string);
    }
}

/* Whether the family has a row for this member, or calls it irrelevant. */
static bool of_family(const Rope *rope, const cJSON *item) {
    Arena *arena = rope->import->arena;
    const Family *family = rope->import->family;
    const char *path = arena_printf(arena, "%s.%s", rope->object->string, item->string);
    for (size_t i = 0; i < family->n_keys; i++)
        if (word_find(arena, family->keys[i].names, path)) return true;
    return word_find(arena, family->irrelevant, path) != NULL;
}

static void check_members(const Rope *rope) {
    const char *members = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].type, rope->type) == 0) members = kinds[i].members;
    const char *path = rope->import->config_path, *name = rope->object->string;
    if (!members) fail("%s: `%s.rope_type` is \"%.*s\"; one of default linear dynamic llama3 yarn longrope is "
        "understood", path, name, CUT(60, rope->type));
    for (const cJSON *item = rope->object->child; item; item = item->next)
        if (!word_find(rope->import->arena, of_all_kinds, item->string)
            && !word_find(rope->import->arena, members, item->string) && !cJSON_IsNull(item)
            && !of_family(rope, item)
            && !key_ignored(rope->import, arena_printf(rope->import->arena, "%s.%s", name, item->string)))
            fail("%s: `%s.%.*s` is %s, and is unknown for rope_type `%s`", path, name, CUT(60, item->string),
                config_value(rope->import->arena, item), rope->type);
}

/* The object for all layers, or that of a layer type. */
static const cJSON *object_of(const Import *import, const ConfigKey *key, const cJSON *object) {
    if (object && !cJSON_IsObject(object)) fail("%s: `%s` is %s; an object is understood", import->config_path,
        object->string, config_value(import->arena, object));
    if (!object || !key->values) return object;
    bool nested = object->child != NULL;
    const cJSON *found = NULL;
    for (const cJSON *item = object->child; item; item = item->next) {
        if (!cJSON_IsObject(item) && !cJSON_IsNull(item)) nested = false;
        if (strcmp(item->string, key->values) == 0 && cJSON_IsObject(item)) found = item;
        else if (nested && strcmp(item->string, "full_attention") != 0
            && strcmp(item->string, "sliding_attention") != 0)
            fail("%s: `%s.%.*s` is unknown", import->config_path, object->string, CUT(60, item->string));
    }
    if (nested) return found;
    if (strcmp(object->string, "rope_parameters") == 0)
        fail("%s: `rope_parameters` is understood with an object for each layer type, `full_attention` and "
            "`sliding_attention`", import->config_path);
    /* Older configs scale only the layers of full attention. */
    return strcmp(key->values, "full_attention") == 0 ? object : NULL;
}

/* The base of the frequencies and the share of columns that is rotated. Where the share is an odd number of columns,
 * some families rotate one column more by the frequencies theta^(-2*i / odd), which another theta gives as well. */
static void add_width(const Rope *rope, Text *out, double theta, double partial) {
    const double head_dim = variable_real(rope, "head_dim"), width = floor(head_dim * partial);
    const bool even = !(fmod(width, 2) == 1 && width < head_dim && variable_get(rope->import, "even_rope", 9)
                        && strcmp(rope->type, "yarn") != 0);
    if (!even) {
        theta = portable_pow(theta, (width + 1) / width);
        import_note(rope->import, "The rotated share of a head is %g columns, an odd number: %g are rotated, with the "
            "frequencies of %g, as in transformers 5.", width, width + 1, width);
    }
    text_printf(out, "theta %s", number_text(rope->import->arena, theta));
    if (!even) text_printf(out, " partial %g/%g", width + 1, head_dim);
    else if (partial != 1) add_real(rope, out, "partial", partial);
}

/* The base of HunYuan's type dynamic with the variable `alpha`: theta * alpha^(d / (d - 2)), for any length. */
static double stretched_base(const Rope *rope, double theta) {
    const double head_dim = variable_real(rope, "head_dim");
    if (!(head_dim > 2)) fail("%s: `%s.alpha` is understood for heads of more than 2 columns, and there are %g",
        rope->import->config_path, rope->object->string, head_dim);
    return theta * portable_pow(variable_real(rope, "alpha"), head_dim / (head_dim - 2));
}

const char *rope_text(Import *import, const ConfigKey *key, const cJSON *object) {
    Rope rope = {import, object_of(import, key, object), "default"};
    if (rope.object) {
        const cJSON *type = json_member(rope.object, "rope_type");
        /* A family with an object for each layer type sets rope_type itself, before it reads the older name. */
        if (!type && !key->values) type = json_member(rope.object, "type");
        if (type && !cJSON_IsString(type)) fail("%s: `%s.rope_type` is not a string", import->config_path,
            rope.object->string);
        if (type) rope.type = type->valuestring;
        if (strcmp(rope.type, "su") == 0) rope.type = "longrope"; /* its first name, in Phi-3 */
        check_members(&rope);
    }
    Text out = text_new(import->arena);
    double theta = real(&rope, "rope_theta"), partial = real(&rope, "partial_rotary_factor");
    if (isnan(theta)) theta = variable_real(&rope, key->otherwise);
    if (isnan(partial)) partial = variable_real(&rope, "partial");
    const bool fixed = strcmp(rope.type, "dynamic") == 0 && !isnan(variable_real(&rope, "alpha"));
    const bool plain = fixed || strcmp(rope.type, "default") == 0;
    /* transformers cannot run such a family with scaling */
    if (plain && !isnan(partial) && partial != 1 && variable_get(import, "whole_rope", 10)) {
        import_note(import, "`partial_rotary_factor` is not obeyed, as in transformers 5, whose `%s` rotates whole "
            "heads.", import->type);
        partial = 1;
    }
    if (fixed) theta = stretched_base(&rope, theta);
    add_width(&rope, &out, theta, partial);
    if (!rope.object) text_printf(&out, "%s", key->null);
    else if (!fixed) add_scaling(&rope, &out);
    return out.data;
}
