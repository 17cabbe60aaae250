/* precision.c: reads the precision that a command line states for all blocks that state none, for instance `int8` or
 * `weights=int8,activations=f32`. The words for a part are those of the setting `precision` in a spec. */
#include "settings.h"
#include "tables.h"

#include <string.h>

/* The name of a part of a precision, its field in a spec, and the types that are planned for it but not supported. */
typedef struct Part {
    const char *name;
    Field field;
    const char *later[3];
} Part;

static const Part parts[] = {{"weights", F_weights_dtype, {NULL}},
                             {"activations", F_activations_dtype, {"f16", "int4", NULL}},
                             {"attention", F_attention_dtype, {"f16", NULL}},
                             {"cache", F_cache_dtype, {NULL}}};

/* A word that stands for a whole precision. */
typedef struct Preset {
    const char *word;
    Precision precision;
} Preset;

static const Preset presets[] = {
    {"f32", {.weights = {.dtype = DTYPE_F32}}},
    {"bf16", {.weights = {.dtype = DTYPE_BF16}, .activations = DTYPE_BF16, .attention = DTYPE_BF16}},
    {"int8", {.weights = {.dtype = DTYPE_I8}, .activations = DTYPE_I8, .attention = DTYPE_BF16}},
    {"int4", {.weights = {.dtype = DTYPE_I4, .group = DEFAULT_GROUP}}}};

static bool is_among(const char *const *words, const char *word) {
    while (*words && strcmp(*words, word) != 0) words++;
    return *words != NULL;
}

/* The type that a word states, or -1. */
static int64_t choice_of(Field field, const char *word) {
    for (int c = 0; c < CHOICE_COUNT; c++)
        if (model_choices[c].field == field && strcmp(model_choices[c].word, word) == 0) return model_choices[c].value;
    return -1;
}

Dtype rows_dtype(const Precision *precision, Dtype weights) {
    const Dtype rows = precision->activations;
    if (rows == DTYPE_I8) return dtype_has_scales(weights) ? DTYPE_I8 : DTYPE_F32;
    return rows == DTYPE_BF16 && weights == DTYPE_BF16 ? DTYPE_BF16 : DTYPE_F32;
}

bool is_group_size(int64_t n) { return n == 32 || n == 64 || n == 128; }

/* Reads int8, int4, int8:G, int4:G or int4:G:offset with G = 32, 64 or 128, the last three also with `:halves` behind
 * them; false for another word. */
static bool read_integers(Arena *arena, const char *word, WeightType *type) {
    static const char *const sizes[] = {"32", "64", "128", NULL};
    static const int numbers[] = {32, 64, 128};
    const char *behind = strchr(word, ':');
    int64_t dtype = choice_of(F_weights_dtype, behind ? arena_copy(arena, word, (size_t)(behind - word)) : word);
    if (dtype < 0 || !dtype_has_scales((Dtype)dtype)) return false;
    *type = (WeightType){.dtype = (Dtype)dtype, .group = dtype == DTYPE_I4 ? DEFAULT_GROUP : 0};
    if (!behind) return true;
    const size_t length = strcspn(++behind, ":");
    const char *size = arena_copy(arena, behind, length), *rest = behind + length;
    int s = 0;
    while (sizes[s] && strcmp(sizes[s], size) != 0) s++;
    if (!sizes[s]) return false;
    type->group = numbers[s];
    static const char OFFSET[] = ":offset", HALVES[] = ":halves";
    type->offset = dtype == DTYPE_I4 && strncmp(rest, OFFSET, sizeof OFFSET - 1) == 0;
    if (type->offset) rest += sizeof OFFSET - 1;
    type->halves = strcmp(rest, HALVES) == 0;
    return !*rest || type->halves;
}

/* Reads int8:smooth or int8:smooth:N; false for another word. */
static bool read_smoothed(const char *word, Precision *out) {
    static const char SMOOTH[] = "int8:smooth";
    const size_t length = strlen(SMOOTH);
    if (strncmp(word, SMOOTH, length) != 0) return false;
    const char *behind = word + length;
    int outliers = 0;
    if (*behind == ':') {
        for (behind++; *behind >= '0' && *behind <= '9' && outliers <= MOST_OUTLIERS; behind++)
            outliers = outliers * 10 + *behind - '0';
        if (outliers < 1 || outliers > MOST_OUTLIERS) return false;
    }
    if (*behind) return false;
    out->activations = DTYPE_I8;
    out->smooth = true;
    out->outliers = outliers;
    return true;
}

static PrecisionRead read_part(Arena *arena, const char *name, const char *value, Precision *out, const char **why) {
    const Part *part = NULL;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcmp(parts[i].name, name) == 0) part = &parts[i];
    if (!part) {
        *why = arena_printf(
            arena, "`%s` is no part of a model; the parts are weights, activations, attention and cache", name);
        return PRECISION_WRONG;
    }
    if (part->field == F_weights_dtype && read_integers(arena, value, &out->weights)) return PRECISION_FINE;
    if (part->field == F_activations_dtype && read_smoothed(value, out)) return PRECISION_FINE;
    const int64_t choice = choice_of(part->field, value);
    if (choice < 0) {
        const bool later = is_among(part->later, value);
        *why = later ? arena_printf(arena, "`%s=%s` is not supported yet", name, value)
                     : arena_printf(arena, "`%s` is no type of %s", value, name);
        return later ? PRECISION_LATER : PRECISION_WRONG;
    }
    switch ((int)part->field) {
    case F_weights_dtype: out->weights = (WeightType){.dtype = (Dtype)choice}; break;
    case F_activations_dtype: out->activations = (Dtype)choice; break;
    case F_attention_dtype: out->attention = (Dtype)choice; break;
    default: out->cache = (Dtype)choice; break;
    }
    return PRECISION_FINE;
}

static PrecisionRead read_preset(Arena *arena, const char *word, Precision *out, const char **why) {
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
        if (strcmp(presets[i].word, word) == 0) {
            *out = presets[i].precision;
            return PRECISION_FINE;
        }
    *why = arena_printf(arena, "`%s` is not f32, bf16, int8, int4 or PART=TYPE", word);
    return PRECISION_WRONG;
}

PrecisionRead precision_read(Arena *arena, const char *text, Precision *out, const char **why) {
    const char *given[8] = {NULL};
    *out = (Precision){.weights = {.dtype = DTYPE_F32}};
    if (!strchr(text, '=')) return read_preset(arena, text, out, why);
    for (int n = 0;; text++) {
        size_t length = strcspn(text, ",");
        const char *item = arena_copy(arena, text, length), *equal = strchr(item, '=');
        const char *part = arena_copy(arena, item, equal ? (size_t)(equal - item) : length);
        if (!equal || n == 7 || is_among(given, part)) {
            *why = arena_printf(arena, equal ? "`%s` states a part twice" : "`%s` is not PART=TYPE", item);
            return PRECISION_WRONG;
        }
        given[n++] = part;
        PrecisionRead read = read_part(arena, part, equal + 1, out, why);
        if (read != PRECISION_FINE) return read;
        text += length;
        if (!*text) return PRECISION_FINE;
    }
}

static void set_layer(Layer *layer, Precision precision) {
    for (int i = 0; i < layer->count; i++) layer->sublayers[i].precision = layer->sublayers[i].last = precision;
}

static void set_layers(Stack *stack, Precision precision) {
    if (!stack) return;
    stack->precision = precision;
    for (int64_t l = 0; l < stack->n_layers; l++) set_layer(&stack->layers[l], precision);
}

void model_set_precision(Arena *arena, Model *model, Precision precision) {
    model->precision = precision;
    set_layers(model->encoder, precision);
    set_layers(model->decoder, precision);
    if (model->head.probe) set_layer(model->head.probe, precision);
    if (model->alone) model->alone->precision = model->alone->last = precision;
    model->hash = model_hash(arena, model);
}
