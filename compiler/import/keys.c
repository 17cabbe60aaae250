/* keys.c: turns a config's keys into variables by the family's table. */
#include "../formats/coded.h"
#include "../formats/json.h"
#include "import.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_HEADS = 1024 };

/* Keys that transformers has written for every family and that do not change a forward pass; where `is_decoder` or
 * `tie_word_embeddings` does, the table of the family has it. `auto_map` names code next to the weights, which
 * transformers leaves alone for the types of its own, as all of these are. */
static const char irrelevant[] =
    "model_type architectures transformers_version torch_dtype dtype use_cache initializer_range _name_or_path "
        "name_or_path "
    "output_attentions output_hidden_states return_dict torchscript id2label label2id num_labels _num_labels "
        "problem_type "
    "finetuning_task task_specific_params tokenizer_class prefix bos_token_id eos_token_id pad_token_id sep_token_id "
    "cls_token_id mask_token_id unk_token_id decoder_start_token_id forced_bos_token_id forced_eos_token_id max_length "
    "min_length max_new_tokens do_sample early_stopping num_beams num_beam_groups diversity_penalty temperature top_k "
        "top_p "
    "typical_p repetition_penalty length_penalty no_repeat_ngram_size encoder_no_repeat_ngram_size bad_words_ids "
    "num_return_sequences output_scores return_dict_in_generate remove_invalid_values exponential_decay_length_penalty "
    "suppress_tokens begin_suppress_tokens chunk_size_feed_forward tf_legacy_loss use_bfloat16 gradient_checkpointing "
    "_attn_implementation _attn_implementation_autoset attn_implementation classifier_dropout attention_dropout "
    "hidden_dropout hidden_dropout_prob attention_probs_dropout_prob dropout pretraining_tp is_encoder_decoder "
    "tie_last_hidden_states unsloth_version unsloth_fixed auto_map is_decoder tie_word_embeddings output_past "
    "xla_device is_composition tie_encoder_decoder cross_attention_hidden_size";

/* Keys of any config whose value must be one that has no effect. */
static const ConfigKey everywhere[] = {
    MUST("pruned_heads", "{} null"), {"quantization_config", NULL, KEY_QUANTIZED, "", "", NULL},
    MUST("per_layer_config", "null {}"), MUST("add_cross_attention", "false"),
};

/* The value of "a * b + c", from left to right, or "" where a variable is unset. */
static const char *computed(const Import *import, const char *expression) {
    double value = 0;
    char operator = '+';
    size_t size;
    for (const char *word; (word = next_word(&expression, &size));) {
        if (size == 1 && strchr("+-*/", *word)) {
            operator = *word;
            continue;
        }
        const char *text = word[0] >= '0' && word[0] <= '9' ? arena_copy(import->arena, word, size)
            : variable_get(import, word, size);
        if (!text) return "";
        double operand = strtod(text, NULL);
        if (operator == '+') value += operand;
        else if (operator == '-') value -= operand;
        else if (operator == '*') value *= operand;
        else value = operand != 0 ? floor(value / operand) : 0;
    }
    return number_text(import->arena, value);
}

/* For "A B", the ranges of rows that exchange the halves of each of A heads of B rows. */
static const char *halves(const Import *import, const char *names) {
    Text out = text_new(import->arena);
    const char *space = strchr(names, ' ');
    const char *heads = variable_get(import, names, (size_t)(space - names));
    const char *head = variable_get(import, space + 1, strlen(space + 1));
    if (!heads || !head) return "";
    const double n = strtod(heads, NULL);
    const long long rows = strtoll(head, NULL, 10);
    if (n > MOST_HEADS || rows % 2) fail("%s: `%s` is %s and `%s` is %s; at most %d heads of an even number of columns "
        "are understood", import->config_path, arena_copy(import->arena, names, (size_t)(space - names)), heads,
        space + 1, head, MOST_HEADS);
    for (long long at = 0; at < (long long)n * rows; at += rows)
        text_printf(&out, "%s%lld..%lld %lld..%lld", at ? " " : "", at + rows / 2, at + rows, at, at + rows / 2);
    return out.data;
}

static const char *default_text(const Import *import, const char *otherwise) {
    const char *held = otherwise[0] == '$' ? variable_get(import, otherwise + 1, strlen(otherwise + 1)) : NULL;
    if (otherwise[0] == '$') return held ? held : "";
    if (otherwise[0] == '~') return halves(import, otherwise + 1);
    return otherwise[0] == '=' ? computed(import, otherwise + 1) : otherwise;
}

static const char *number(const Import *import, const ConfigKey *key, const cJSON *item, double least) {
    const char *wanted = least > 0 ? "a whole number from 1 to 2^53" : "a whole number from 0 to 2^53";
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= least && item->valuedouble <= 0x1p53) ||
        item->valuedouble != floor(item->valuedouble))
        key_refuse(import, key, item, wanted);
    return number_text(import->arena, item->valuedouble);
}

static const char *real_number(const Import *import, const ConfigKey *key, const cJSON *item, bool positive) {
    const char *wanted = positive ? "a number from 1.1754944e-38 to 8.5070592e37, which f32 holds with its reciprocal,"
        : "0 or a number from 1.1754944e-38 to 3.4028235e38, which f32 holds,";
    const double value = cJSON_IsNumber(item) ? item->valuedouble : NAN;
    if (!(value >= 0) || !f32_holds(value) || (positive && (value == 0 || !f32_holds(1 / value))))
        key_refuse(import, key, item, wanted);
    return number_text(import->arena, value);
}

static const char *share(const Import *import, const ConfigKey *key, const cJSON *item) {
    if (!cJSON_IsNumber(item)) key_refuse(import, key, item, "a number");
    return item->valuedouble <= 0 ? "none" : item->valuedouble < 1 ? "part" : "whole";
}

const char activation_words[] =
#define ACTIVATION(name, formula, imported, help) imported " "
#include "../model/activations.def"
    "";

/* Joins the words of a list by `|`, as older configs write them. The result is NULL for other values. */
static const char *joined_words(Arena *arena, const cJSON *list) {
    Text out = text_new(arena);
    if (!cJSON_IsArray(list) || !list->child) return NULL;
    for (const cJSON *word = list->child; word; word = word->next) {
        if (!cJSON_IsString(word) || strchr(word->valuestring, '|')) return NULL;
        text_printf(&out, "%s%s", word == list->child ? "" : "|", word->valuestring);
    }
    return out.data;
}

static const char *word(Import *import, const ConfigKey *key, const cJSON *item) {
    static const char gated[] = "gated-";
    const char *said = cJSON_IsString(item) ? item->valuestring : NULL;
    if (key->kind == KEY_WORDS && !said) said = joined_words(import->arena, item);
    if (said && key->kind == KEY_GATED_WORD) {
        bool behind = strncmp(said, gated, sizeof gated - 1) == 0;
        variable_set(import, "gated", behind ? "gated" : "");
        if (behind) said += sizeof gated - 1;
    }
    const char *found = said ? word_find(import->arena, key->values, said) : NULL;
    if (found) return found;
    Text wanted = text_new(import->arena);
    text_printf(&wanted, "one of");
    const char *words = key->values;
    size_t size;
    for (const char *w; (w = next_word(&words, &size));) text_printf(&wanted, " %.*s",
        (int)(strcspn(w, "= ") < size ? strcspn(w, "= ") : size), w);
    if (key->kind == KEY_GATED_WORD) text_printf(&wanted, ", alone or behind `%s`,", gated);
    key_refuse(import, key, item, wanted.data);
}

/* An id beyond the vocabulary cannot occur and is omitted: transformers writes such defaults into configs of small
 * models. */
static const char *tokens(Import *import, const ConfigKey *key, const cJSON *item) {
    const char *vocab = variable_get(import, "vocab", 5);
    Text out = text_new(import->arena);
    const cJSON *id = cJSON_IsArray(item) ? item->child : item;
    if (cJSON_IsArray(item) && key->kind == KEY_TOKEN && id && id->next) key_refuse(import, key, item, "one token id");
    for (; id; id = cJSON_IsArray(item) ? id->next : NULL) {
        if (cJSON_IsNumber(id) && id->valuedouble == -1) continue; /* an older form of no id */
        const char *text = number(import, key, id, 0);
        if (vocab && strtod(text, NULL) >= strtod(vocab, NULL))
            import_note(import, "%s %s is outside the vocabulary and left out.", item->string, text);
        else
            text_printf(&out, "%s%s", out.size ? " " : "", text);
    }
    return out.data;
}

static const char *pair(Import *import, const ConfigKey *key, const cJSON *item) {
    const cJSON *first = item, *second = item;
    if (cJSON_IsArray(item)) {
        first = item->child;
        second = first ? first->next : NULL;
        if (!second || second->next) key_refuse(import, key, item, "a number or [height, width]");
    }
    const char *height = number(import, key, first, 1), *width = number(import, key, second, 1);
    variable_set(import, arena_printf(import->arena, "%s_width", key->variable), strcmp(height, width) ? width : "");
    return height;
}

/* Whether the config has one of the values that a KEY_MUST lists. */
static bool is_one_of(const Import *import, const ConfigKey *key, const cJSON *item) {
    const char *value = cJSON_IsString(item) ? item->valuestring : config_value(import->arena, item);
    return word_find(import->arena, key->values, value)
        || (cJSON_IsNull(item) && word_find(import->arena, key->values, "false")); /* as in Python */
}

static void must(const Import *import, const ConfigKey *key, const cJSON *item) {
    if (!is_one_of(import, key, item))
        key_refuse(import, key, item, arena_printf(import->arena, "only %s", key->values));
}

/* The file's matrices are decoded as this object says. */
static void quantized(Import *import, const ConfigKey *key, const cJSON *item) {
    size_t i = 0;
    while (i < import->file->count && !import->file->tensors[i].coded) i++;
    const cJSON *method = json_member(item, "quant_method");
    if (i == import->file->count && cJSON_IsString(method) && strcmp(method->valuestring, "bitnet") == 0)
        fail("%s: `quantization_config` says bitnet, for which transformers rounds the file's floats to three values "
            "and the rows to int8 at each product; attnc does not, and takes the floats where the key is absent",
            import->config_path);
    if (i == import->file->count) key_refuse(import, key, item, "null, since no tensor of the file is quantized");
    import_note(import, "The matrices are those of a quantized checkpoint; activations are not quantized.");
}

/* The value under the first of the key's names that the config has. */
static const cJSON *key_item(const Import *import, const ConfigKey *key) {
    const cJSON *found = NULL;
    const char *names = key->names, *first = NULL;
    size_t size, first_size = 0;
    for (const char *name; (name = next_word(&names, &size));) {
        const cJSON *item = config_find(import, name, size);
        if (!item || (found && cJSON_IsNull(item))) continue;
        if (found && !cJSON_IsNull(found) && !cJSON_Compare(found, item, true))
            fail("%s: it has both `%.*s` and `%.*s`, and they differ", import->config_path, (int)first_size, first,
                (int)size, name);
        found = item;
        first = name;
        first_size = size;
    }
    return found;
}

static void read_key(Import *import, const ConfigKey *key) {
    if (key->kind == KEY_DERIVED || key->kind == KEY_REFUSED || key->kind == KEY_NOTED) {
        if (key->values && !condition_holds(import, key->values, strlen(key->values))) return;
        if (key->kind == KEY_REFUSED) fail("%s: %s", import->config_path, key->otherwise);
        if (key->kind == KEY_NOTED) import_note(import, "%s", key->otherwise);
        else variable_set(import, key->variable, default_text(import, key->otherwise));
        return;
    }
    const cJSON *item = key_item(import, key);
    if (key->kind == KEY_MUST) {
        if (item) must(import, key, item);
        return;
    }
    if (key->kind == KEY_QUANTIZED) {
        if (item && !cJSON_IsNull(item)) quantized(import, key, item);
        return;
    }
    if (key->kind == KEY_BOUND && item && cJSON_IsNumber(item) && item->valuedouble < 1) item = NULL;
    if (item && cJSON_IsNull(item) && !key->null) key_refuse(import, key, item, "a value other than null");
    if (!item && !key->otherwise) fail("%s: the key `%.*s` is missing", import->config_path,
        (int)strcspn(key->names, " "), key->names);
    bool given = item && !cJSON_IsNull(item);
    if (key->kind == KEY_LAYER_TYPES || key->kind == KEY_LAYER_FLAGS ||
        (key->kind == KEY_LAYER_INTEGERS && cJSON_IsArray(item)) ||
        key->kind == KEY_LAYER_MARKS || key->kind == KEY_LAYER_RUNS) {
        layer_list_read(import, key, given ? item : NULL);
        return;
    }
    if (key->kind == KEY_ROPE) {
        variable_set(import, key->variable, rope_text(import, key, given ? item : NULL));
        return;
    }
    const char *text = given ? NULL : default_text(import, item ? key->null : key->otherwise);
    if (given) {
        switch (key->kind) {
        case KEY_INTEGER: case KEY_BOUND: case KEY_LAYER_INTEGERS: text = number(import, key, item, 1); break;
        case KEY_NATURAL: text = number(import, key, item, 0); break;
        case KEY_REAL: text = real_number(import, key, item, false); break;
        case KEY_SHARE: text = share(import, key, item); break;
        case KEY_POSITIVE: text = real_number(import, key, item, true); break;
        case KEY_WORD: case KEY_WORDS: case KEY_GATED_WORD: text = word(import, key, item); break;
        case KEY_TEXT:
            if (!cJSON_IsString(item)) key_refuse(import, key, item, "a string");
            text = arena_copy(import->arena, item->valuestring, strlen(item->valuestring));
            break;
        case KEY_TOKEN: case KEY_TOKENS: text = tokens(import, key, item); break;
        case KEY_PAIR: text = pair(import, key, item); break;
        case KEY_FLAG:
            if (!cJSON_IsBool(item)) key_refuse(import, key, item, "true or false");
            text = cJSON_IsTrue(item) ? "true" : "";
            break;
        case KEY_MUST: case KEY_QUANTIZED: case KEY_ROPE: case KEY_LAYER_TYPES: case KEY_LAYER_FLAGS:
        case KEY_LAYER_MARKS: case KEY_LAYER_RUNS: case KEY_DERIVED: case KEY_REFUSED: case KEY_NOTED: break;
        }
    } else if (key->kind == KEY_FLAG && strcmp(text, "false") == 0) {
        text = "";
    }
    const char *vocab = variable_get(import, "vocab", 5);
    bool token = key->kind == KEY_TOKEN || key->kind == KEY_TOKENS;
    if (!given && token && vocab
        && strtod(text, NULL) >= strtod(vocab, NULL)) text = ""; /* the default belongs to the published sizes */
    variable_set(import, key->variable, text);
}

/* Whether PATH is a name of a key of the table or, where `end` is a dot, an object that holds such a key. */
static bool names_hold(const ConfigKey *keys, size_t n_keys, const char *path, char end) {
    for (size_t k = 0; k < n_keys; k++) {
        const char *names = keys[k].names;
        size_t size, length = strlen(path);
        for (const char *name; (name = next_word(&names, &size));)
            if ((end ? size > length && name[length] == end : size == length) && memcmp(name, path, length) == 0)
                return true;
    }
    return false;
}

/* Whether a key inside an object is one that any config may have, with a value that has no effect. */
static bool is_usual(const Import *import, const cJSON *item) {
    for (size_t k = 0; k < sizeof everywhere / sizeof *everywhere; k++)
        if (everywhere[k].kind == KEY_MUST && strcmp(everywhere[k].names, item->string) == 0)
            return is_one_of(import, &everywhere[k], item);
    return false;
}

KeyUse key_use(const Import *import, const cJSON *item, const char *path) {
    const Family *family = import->family;
    if (word_find(import->arena, irrelevant, item->string)
        || word_find(import->arena, family->irrelevant, path)) return KEY_IRRELEVANT;
    if (names_hold(everywhere, sizeof everywhere / sizeof *everywhere, path, '\0')
        || names_hold(family->keys, family->n_keys, path, '\0')
        || (family->inside && strcmp(path, family->inside) == 0) /* these two are read as a config by itself */
        || (family->instead && strcmp(path, family->instead) == 0)) return KEY_OBEYED;
    if (strcmp(path, item->string) != 0 && is_usual(import, item)) return KEY_IRRELEVANT;
    return cJSON_IsObject(item) && names_hold(family->keys, family->n_keys, path, '.') ? KEY_LEADS : KEY_UNKNOWN;
}

void keys_read(Import *import) {
    for (size_t k = 0; k < sizeof everywhere / sizeof *everywhere; k++) read_key(import, &everywhere[k]);
    for (size_t k = 0; k < import->family->n_keys; k++) read_key(import, &import->family->keys[k]);
}
