/* layers.c: keys with a value for each layer. They become variables that are set while that layer's body is filled. */
#include "import.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_LAYERS = 4096 };

/* The pattern of older configs without a list. `A B` repeats; `every K A B` is B in each K-th layer, else A;
 * `first K A B` is B in layers whose number is a multiple of K, else A; `second K A B` is B in the layers behind those,
 * and in all where K is 1, else A; `from K A B` is A before layer K, then B. K is a variable. */
static const char *patterned(const Import *import, const char *pattern, int64_t layer) {
    const char *words[8];
    size_t sizes[8], size;
    int64_t n = 0;
    for (const char *w; n < 8 && (w = next_word(&pattern, &size)); n++) words[n] = w, sizes[n] = size;
    enum { EVERY, FIRST, SECOND, FROM, PATTERNS };
    const char *names[PATTERNS] = {"every", "first", "second", "from"};
    if (!n) bug("a pattern of layers holds no word");
    int64_t pick = layer % n, first = 0;
    for (int i = 0; i < PATTERNS; i++) {
        if (n != 4 || sizes[0] != strlen(names[i]) || memcmp(words[0], names[i], sizes[0]) != 0) continue;
        const char *text = variable_get(import, words[1], sizes[1]);
        int64_t k = text ? strtoll(text, NULL, 10) : 0;
        first = 2;
        const int64_t rest = k > 0 ? layer % k : 0;
        pick = i == FROM ? layer >= k : k > 0 && rest == (i == EVERY ? k - 1 : i == FIRST || k == 1 ? 0 : 1);
    }
    return arena_copy(import->arena, words[first + pick], sizes[first + pick]);
}

static const LayerList *list_of(const Import *import, const char *variable) {
    for (const LayerList *list = import->layer_lists; list; list = list->next)
        if (strcmp(list->variable, variable) == 0) return list;
    return NULL;
}

/* An element of the list: a word of `values`, a number, or 0 or 1, which become `no` and `yes`. */
static const char *element(const Import *import, const ConfigKey *key, const cJSON *list, const cJSON *item) {
    if (key->kind == KEY_LAYER_INTEGERS) {
        const double value = cJSON_IsNumber(item) ? item->valuedouble : 0;
        if (!(value >= 1 && value <= 0x1p53) || value != (double)(int64_t)value)
            fail("%s: `%s` holds %s; whole numbers from 1 to 2^53 are understood", import->config_path, list->string,
                config_value(import->arena, item));
        return number_text(import->arena, value);
    }
    if (key->kind == KEY_LAYER_FLAGS) {
        if (!cJSON_IsNumber(item) || (item->valuedouble != 0 && item->valuedouble != 1))
            fail("%s: `%s` holds %s; 0 and 1 are understood", import->config_path, list->string,
                config_value(import->arena, item));
        return item->valuedouble != 0 ? "yes" : "no";
    }
    const char *found = cJSON_IsString(item) ? word_find(import->arena, key->values, item->valuestring) : NULL;
    if (!found) fail("%s: `%s` holds %s; one of %s is understood", import->config_path, list->string,
        config_value(import->arena, item), key->values);
    return found;
}

/* Reads a word for each layer. The list has `layers` entries; a list of flags or of numbers may have more. */
static void read_list(const Import *import, const ConfigKey *key, const cJSON *item, const char **texts,
                      int64_t layers) {
    int64_t count = 0;
    for (const cJSON *each = item->child; each; each = each->next, count++)
        if (count < layers) texts[count] = element(import, key, item, each);
    const bool longer = key->kind == KEY_LAYER_FLAGS || key->kind == KEY_LAYER_INTEGERS;
    if (count != layers && (count < layers || !longer))
        fail("%s: `%s` has %lld entries for %lld layers", import->config_path, item->string, (long long)count,
            (long long)layers);
}

/* Reads [[["global", "local"], 12], …], runs of words with the number of their repetitions. Returns the number of
 * entries, at most one more than there are layers. */
static int64_t read_runs(const Import *import, const ConfigKey *key, const cJSON *item, const char **texts,
                      int64_t layers) {
    int64_t count = 0;
    for (const cJSON *run = item->child; run; run = run->next) {
        const cJSON *words = cJSON_IsArray(run) ? run->child : NULL, *times = words ? words->next : NULL;
        if (!times || times->next || !cJSON_IsArray(words) || !words->child || !cJSON_IsNumber(times)
            || !(times->valuedouble >= 0 && times->valuedouble <= MOST_LAYERS)
            || times->valuedouble != (double)(int64_t)times->valuedouble)
            fail("%s: `%s` holds %s; [[words], times] with up to %d times is understood", import->config_path,
                item->string, config_value(import->arena, run), MOST_LAYERS);
        for (int64_t i = 0; i < (int64_t)times->valuedouble && count <= layers; i++)
            for (const cJSON *word = words->child; word && count <= layers; word = word->next, count++) {
                const char *text = element(import, key, item, word);
                if (count < layers) texts[count] = text;
            }
    }
    return count;
}

/* Whether an earlier list takes precedence, as in transformers; adds a note where the runs differ from it. */
static bool outdone(Import *import, const ConfigKey *key, const cJSON *item, const char **texts, int64_t count,
                    int64_t layers) {
    const LayerList *list = list_of(import, key->variable);
    if (!list) return false;
    bool same = count == layers;
    for (int64_t i = 0; i < layers && same; i++) same = strcmp(texts[i], list->texts[i]) == 0;
    if (!same) text_printf(&import->notes, "`%s` differs from the list beside it, which is taken, as transformers "
        "does.\n", item->string);
    return true;
}

static void keep(Import *import, const char *variable, const char **texts, int64_t layers) {
    LayerList *list = arena_alloc(import->arena, sizeof *list);
    *list = (LayerList){variable, texts, layers, import->layer_lists};
    import->layer_lists = list;
    for (int64_t i = 0; i < layers; i++) {
        const char *any = arena_printf(import->arena, "any_%s", texts[i]);
        if (!variable_get(import, any, strlen(any))) variable_set(import, any, "yes");
    }
}

/* Reads the numbers of layers, which get another word than the list has for them. */
static void mark_layers(Import *import, const ConfigKey *key, const cJSON *item, int64_t layers) {
    const LayerList *list = list_of(import, key->variable);
    if (!list || !item) bug("`%s` marks the layers of no list", key->names);
    if (!cJSON_IsArray(item)) key_refuse(import, key, item, "a list of layers");
    for (const cJSON *each = item->child; each; each = each->next) {
        const double layer = each->valuedouble;
        if (!cJSON_IsNumber(each) || !(layer >= 0 && layer < (double)layers) || layer != (double)(int64_t)layer)
            fail("%s: `%s` holds %s; layers 0 to %lld are there", import->config_path, item->string,
                config_value(import->arena, each), (long long)layers - 1);
        list->texts[(int64_t)layer] = key->values;
    }
}

void layer_list_read(Import *import, const ConfigKey *key, const cJSON *item) {
    const bool decoder = strncmp(key->variable, "decoder_", 8) == 0;
    const char *number_of = decoder ? variable_get(import, "decoder_layers", 14) : variable_get(import, "layers", 6);
    if (!number_of) bug("the layers are not counted yet");
    int64_t layers = strtoll(number_of, NULL, 10);
    if (layers > MOST_LAYERS) fail("%s: %lld layers are too many; at most %d are understood", import->config_path,
        (long long)layers, MOST_LAYERS);
    if (!item && !*key->otherwise) return;
    if (key->kind == KEY_LAYER_MARKS) {
        mark_layers(import, key, item, layers);
        return;
    }
    const char **texts = arena_array(import->arena, (size_t)layers, sizeof *texts);
    if (!item) {
        for (int64_t i = 0; i < layers; i++) texts[i] = patterned(import, key->otherwise, i);
    } else {
        if (!cJSON_IsArray(item)) key_refuse(import, key, item, "a list with an entry for each layer");
        if (key->kind == KEY_LAYER_RUNS) {
            int64_t count = read_runs(import, key, item, texts, layers);
            if (outdone(import, key, item, texts, count, layers)) return;
            if (count != layers) fail("%s: `%s` describes %s than the %lld layers", import->config_path, item->string,
                count < layers ? "fewer" : "more", (long long)layers);
        } else {
            read_list(import, key, item, texts, layers);
        }
    }
    keep(import, key->variable, texts, layers);
}

void layer_variables_set(Import *import, int64_t layer) {
    variable_set(import, "layer", arena_printf(import->arena, "%lld", (long long)layer));
    for (const LayerList *list = import->layer_lists; list; list = list->next)
        if (layer < list->layers) variable_set(import, list->variable, list->texts[layer]);
}
