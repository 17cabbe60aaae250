/* generation.c: how a model's own files say that its texts are searched for, which becomes the block `generation` of
 * the spec and its `start`, `end` and `pad`. transformers reads generation_config.json where a folder has one, and then
 * nothing of this kind from config.json; else it reads config.json, and where that lacks a key, the object of the
 * decoder in it. */
#include "import.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct Reader {
    Import *import;
    const char *path;
    const cJSON *keys, *inner; /* `inner` is the object of the decoder in config.json, or NULL */
    int64_t vocab;
    Generation *out;
} Reader;

/* The value of a key; NULL where it is absent or null. */
static const cJSON *value_of(const Reader *r, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(r->keys, key);
    if (!item || cJSON_IsNull(item)) item = cJSON_GetObjectItemCaseSensitive(r->inner, key);
    return item && !cJSON_IsNull(item) ? item : NULL;
}

static _Noreturn void refuse(const Reader *r, const char *key, const cJSON *item, const char *understood) {
    fail("%s: `%s` is %s; %s is understood", r->path, key, config_value(r->import->arena, item), understood);
}

/* ---------------------------------------------------------------- tokens */

static int64_t token_of(const Reader *r, const char *key, const cJSON *item) {
    const double id = cJSON_IsNumber(item) ? item->valuedouble : -1;
    if (!(id >= 0 && id <= INT32_MAX) || id != (double)(int64_t)id) refuse(r, key, item, "the id of a token");
    if (r->vocab && id >= (double)r->vocab)
        fail("%s: `%s` has the token %.0f, which is outside the vocabulary of %lld", r->path, key, id,
             (long long)r->vocab);
    return (int64_t)id;
}

/* A token or a list of tokens. */
static TokenList tokens_of(const Reader *r, const char *key, const cJSON *item) {
    TokenList list = {arena_array(r->import->arena, (size_t)cJSON_GetArraySize(item) + 1, sizeof *list.ids), 0};
    const cJSON *id;
    if (!cJSON_IsArray(item)) {
        list.ids[list.count++] = token_of(r, key, item);
        return list;
    }
    cJSON_ArrayForEach(id, item) list.ids[list.count++] = token_of(r, key, id);
    return list;
}

/* Sets the variable that the spec of a family has for the tokens of a key. */
static void set_tokens(const Reader *r, const char *variable, const char *key, const cJSON *item) {
    Text text = text_new(r->import->arena);
    const TokenList list = item ? tokens_of(r, key, item) : (TokenList){0};
    for (int64_t i = 0; i < list.count; i++) text_printf(&text, "%s%lld", i ? " " : "", (long long)list.ids[i]);
    variable_set(r->import, variable, text.data);
}

/* A list of one token counts as this token. */
static void set_token(const Reader *r, const char *variable, const char *key, const cJSON *item) {
    if (cJSON_IsArray(item) && cJSON_GetArraySize(item) > 1) refuse(r, key, item, "one token");
    set_tokens(r, variable, key, cJSON_IsArray(item) && !item->child ? NULL : item);
}

/* What generation_config.json says of the tokens that begin, end and fill texts holds in place of config.json, also
 * where it says nothing. */
static void replace_tokens(const Reader *r) {
    Import *import = r->import;
    const char *before = variable_get(import, "end", 3);
    const cJSON *begin = value_of(r, "bos_token_id"), *start = value_of(r, "decoder_start_token_id");
    const cJSON *end = value_of(r, "eos_token_id"), *pad = value_of(r, "pad_token_id");
    const bool both = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(import->config, "is_encoder_decoder"));
    if (end || before) set_tokens(r, "end", "eos_token_id", end);
    if (!end && before)
        import_note(import, "%s has no `eos_token_id`, so that no token ends a text, although config.json has one "
            "(%s): transformers does not read it then.", r->path, before);
    if (start && both) set_token(r, "start", "decoder_start_token_id", start);
    else if (begin) set_token(r, "start", "bos_token_id", begin);
    if (pad) set_token(r, "pad", "pad_token_id", pad);
}

static void read_bad_words(const Reader *r, const cJSON *words) {
    TokenList *list = &r->out->bad_word;
    const cJSON *word, *id;
    const char *key = "bad_words_ids", *understood = "a list of lists of tokens";
    const TokenList ends = value_of(r, "eos_token_id") ? tokens_of(r, "eos_token_id", value_of(r, "eos_token_id"))
                                                       : (TokenList){0};
    size_t count = 0;
    if (!cJSON_IsArray(words)) refuse(r, key, words, understood);
    cJSON_ArrayForEach(word, words) count += (size_t)cJSON_GetArraySize(word) + 1;
    list->ids = arena_array(r->import->arena, count + 1, sizeof *list->ids);
    cJSON_ArrayForEach(word, words) {
        const int64_t first = list->count;
        bool is_end = false;
        if (!cJSON_IsArray(word) || !word->child) refuse(r, key, word, understood);
        cJSON_ArrayForEach(id, word) list->ids[list->count++] = token_of(r, key, id);
        for (int64_t i = 0; i < ends.count; i++) is_end |= list->count == first + 1 && list->ids[first] == ends.ids[i];
        list->ids[list->count++] = -1;
        if (is_end) list->count = first; /* transformers leaves these out */
    }
}

/* Tokens that are forced and all forbidden leave no token to choose; transformers refuses such a file, too. */
static void check_forced(const Reader *r, const char *key, const TokenList *forced) {
    const TokenList *suppressed = &r->out->suppress;
    int64_t both = 0;
    for (int64_t i = 0; i < forced->count; i++)
        for (int64_t j = 0, met = 0; j < suppressed->count && !met; j++)
            both += met = forced->ids[i] == suppressed->ids[j];
    if (both && both == forced->count)
        fail("%s: `%s` and `suppress_tokens` both have the token %lld", r->path, key, (long long)forced->ids[0]);
}

static void read_tokens(const Reader *r) {
    const struct {
        const char *key;
        TokenList *list;
    } lists[] = {{"suppress_tokens", &r->out->suppress},
                 {"begin_suppress_tokens", &r->out->suppress_first},
                 {"forced_bos_token_id", &r->out->force_first},
                 {"forced_eos_token_id", &r->out->force_last}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const cJSON *item = value_of(r, lists[i].key);
        if (item) *lists[i].list = tokens_of(r, lists[i].key, item);
    }
    check_forced(r, "forced_bos_token_id", &r->out->force_first);
    check_forced(r, "forced_eos_token_id", &r->out->force_last);
    const cJSON *words = value_of(r, "bad_words_ids");
    if (words) read_bad_words(r, words);
}

/* ---------------------------------------------------------------- numbers */

/* A number of these bounds; `neutral`, and a number that an item of the block cannot have, is as good as absent. */
static double number_of(const Reader *r, const char *key, double least, double most, double neutral) {
    const cJSON *item = value_of(r, key);
    if (!item) return 0;
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= least && item->valuedouble <= most))
        refuse(r, key, item, arena_printf(r->import->arena, "a number from %s to %s",
                                          number_text(r->import->arena, least), number_text(r->import->arena, most)));
    return item->valuedouble == neutral ? 0 : item->valuedouble;
}

static int64_t count_of(const Reader *r, const char *key) {
    const double number = number_of(r, key, 0, INT32_MAX, 0);
    if (number != (double)(int64_t)number) refuse(r, key, value_of(r, key), "an integer");
    return (int64_t)number;
}

static bool flag_of(const Reader *r, const char *key) {
    const cJSON *item = value_of(r, key);
    if (item && !cJSON_IsBool(item)) refuse(r, key, item, "true or false");
    return cJSON_IsTrue(item);
}

static void check_order(const Reader *r, const char *least_key, int64_t least, const char *most_key, int64_t most) {
    if (most && least > most)
        fail("%s: `%s` is %lld, more than `%s`, which is %lld", r->path, least_key, (long long)least, most_key,
             (long long)most);
}

static void read_lengths(const Reader *r) {
    Generation *g = r->out;
    const struct {
        const char *key;
        int64_t *number;
    } counts[] = {{"min_length", &g->min_length}, {"max_length", &g->max_length}, {"min_new_tokens", &g->min_new},
                  {"max_new_tokens", &g->max_new}, {"no_repeat_ngram_size", &g->no_repeat_ngram}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) *counts[i].number = count_of(r, counts[i].key);
    if (g->min_new) g->min_length = 0; /* as in transformers, the number of new tokens takes precedence */
    if (g->max_new) g->max_length = 0;
    check_order(r, "min_new_tokens", g->min_new, "max_new_tokens", g->max_new);
    check_order(r, "min_length", g->min_length, "max_length", g->max_length);
    g->repetition_penalty = number_of(r, "repetition_penalty", 1e-3, 1e3, 1);
}

/* The settings of sampling hold for calls that ask for it, also where `do_sample` is false. */
static void read_sampling(const Reader *r) {
    Generation *g = r->out;
    const cJSON *least = value_of(r, "top_p");
    g->sample = flag_of(r, "do_sample");
    g->temperature = number_of(r, "temperature", 0, 1e6, 1);
    g->top_k = count_of(r, "top_k");
    g->top_p = number_of(r, "top_p", 0, 1, 1);
    g->min_p = number_of(r, "min_p", 0, 1, 0);
    if (cJSON_IsNumber(least) && least->valuedouble == 0) g->top_p = 1e-9; /* the most probable token alone */
    if (g->sample && !value_of(r, "top_k")) g->top_k = 50; /* the default of transformers */
    if (g->temperature != 0 && g->temperature < 1e-6) g->temperature = 1e-6;
    const cJSON *temperature = value_of(r, "temperature");
    if (g->sample && cJSON_IsNumber(temperature) && temperature->valuedouble == 0) {
        g->sample = false;
        import_note(r->import, "%s: `temperature` is 0, which takes the most probable token: the search is greedy.",
            r->path);
    }
}

static void read_beams(const Reader *r) {
    Generation *g = r->out;
    const cJSON *early = value_of(r, "early_stopping"), *penalty = value_of(r, "length_penalty");
    g->beams = count_of(r, "num_beams");
    if (g->beams > 1024) refuse(r, "num_beams", value_of(r, "num_beams"), "a number up to 1024");
    if (g->beams == 1) g->beams = 0;
    const bool plain = (!early || cJSON_IsFalse(early)) && (!penalty || penalty->valuedouble == 1);
    if (!g->beams && plain) return; /* old configs state all defaults */
    g->length_form = LENGTH_POWER;
    g->has_length_penalty = true;
    g->length_penalty = penalty ? number_of(r, "length_penalty", -16, 16, -17) : 1;
    if (cJSON_IsString(early) && strcmp(early->valuestring, "never") == 0) g->early_stopping = STOPPING_NEVER;
    else if (early && !cJSON_IsBool(early)) refuse(r, "early_stopping", early, "true, false or \"never\"");
    else g->early_stopping = cJSON_IsTrue(early) ? STOPPING_FULL : STOPPING_HEURISTIC;
    if (!g->sample || !g->beams) return;
    g->sample = false;
    import_note(r->import, "%s: `do_sample` with `num_beams` draws the beams at random, which is not obeyed: the beams "
        "are the most probable ones.", r->path);
}

/* ---------------------------------------------------------------- what is not obeyed */

/* Keys that change no token, or that other readers of the file obey. */
static const char silent[] =
    "_from_model_config transformers_version use_cache cache_implementation cache_config max_cache_len "
    "return_dict_in_generate output_attentions output_hidden_states output_scores output_logits bos_token_id "
    "eos_token_id pad_token_id decoder_start_token_id do_sample temperature top_k top_p min_p num_beams "
    "length_penalty early_stopping repetition_penalty no_repeat_ngram_size min_length max_length min_new_tokens "
    "max_new_tokens suppress_tokens begin_suppress_tokens bad_words_ids forced_bos_token_id forced_eos_token_id "
    "is_assistant num_assistant_tokens num_assistant_tokens_schedule assistant_confidence_threshold "
    "prompt_lookup_num_tokens max_matching_ngram_size assistant_early_exit assistant_lookbehind target_lookbehind "
    "compile_config disable_compile use_mtp low_memory trust_remote_code remove_invalid_values";
/* Keys of Whisper, which attn_transcribe and the program of `attnc get` read. */
static const char spoken[] =
    "alignment_heads lang_to_id task_to_id is_multilingual no_timestamps_token_id max_initial_timestamp_index "
    "prev_sot_token_id return_timestamps language task median_filter_width forced_decoder_ids logprob_threshold "
    "compression_ratio_threshold no_speech_threshold";
/* Keys that only a value other than this one makes transformers obey; false, null and an empty list do so for all. */
static const struct {
    const char *key;
    double neutral;
} unobeyed[] = {
    {"num_beam_groups", 1}, {"diversity_penalty", 0}, {"num_return_sequences", 1}, {"typical_p", 1},
    {"epsilon_cutoff", 0}, {"eta_cutoff", 0}, {"top_h", -1}, {"encoder_repetition_penalty", 1},
    {"encoder_no_repeat_ngram_size", 0}, {"penalty_alpha", 0}, {"guidance_scale", 1}, {"max_time", -1},
    {"renormalize_logits", -1}, {"exponential_decay_length_penalty", -1}, {"sequence_bias", -1},
    {"stop_strings", -1}, {"token_healing", -1}, {"watermarking_config", -1}, {"constraints", -1},
    {"force_words_ids", -1}, {"forced_decoder_ids", -1}, {"dola_layers", -1}, {"assistant_ensemble_weight", -1},
    {"speculation_type", -1},
};

static bool is_neutral(const cJSON *item, double neutral) {
    if (cJSON_IsNumber(item)) return item->valuedouble == neutral;
    return cJSON_IsNull(item) || cJSON_IsFalse(item) || ((cJSON_IsArray(item) || cJSON_IsObject(item)) && !item->child);
}

/* Names each key that has an effect in transformers and none here. Of config.json, the keys that are no setting of a
 * search have been read before. */
static void note_unobeyed(const Reader *r, bool own_file) {
    const bool speaks = strcmp(r->import->type, "whisper") == 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, r->keys) {
        size_t row = 0;
        while (row < sizeof unobeyed / sizeof *unobeyed && strcmp(unobeyed[row].key, item->string) != 0) row++;
        const bool known = row < sizeof unobeyed / sizeof *unobeyed;
        if (word_find(r->import->arena, silent, item->string) || (!known && !own_file)) continue;
        if (speaks && word_find(r->import->arena, spoken, item->string)) continue;
        if (!is_neutral(item, known ? unobeyed[row].neutral : -1))
            import_note(r->import, "%s: `%.*s` is %s, which is not obeyed.", r->path, CUT(60, item->string),
                config_value(r->import->arena, item));
    }
}

/* ---------------------------------------------------------------- generation_config.json as a whole */

/* Whether the model writes texts, as far as the config tells. */
static bool generates(const Import *import) {
    const char *task = variable_get(import, "task", 4);
    if (!task) return false;
    return strcmp(task, "logits") == 0 || (strcmp(task, "masked") == 0 && variable_get(import, "decoder", 7));
}

static int64_t vocabulary(const Import *import) {
    const char *text = variable_get(import, "decoder_vocab", 13);
    if (!text) text = variable_get(import, "vocab", 5);
    return text ? strtoll(text, NULL, 10) : 0;
}

static const cJSON *decoder_object(const cJSON *config) {
    static const char *const names[] = {"decoder", "generator", "text_config"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const cJSON *object = cJSON_GetObjectItemCaseSensitive(config, names[i]);
        if (cJSON_IsObject(object)) return object;
    }
    return NULL;
}

/* A GGUF file ends a text with its end token, the end of a turn, by its key or by the chat template, and the end of a
 * message. */
static void join_ends(Import *import) {
    static const char *const keys[] = {"eos_token_id", "eot_token_id", "eom_token_id"};
    const Reader r = {.import = import, .path = import->config_path, .vocab = vocabulary(import),
                      .keys = config_find(import, "tokenizer.ggml", 14)};
    const char *turns = variable_get(import, "turn_ends", 9);
    int64_t ids[64];
    int count = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const cJSON *item = value_of(&r, keys[i]);
        if (item) ids[count++] = token_of(&r, arena_printf(import->arena, "tokenizer.ggml.%s", keys[i]), item);
    }
    for (char *end; turns && *turns && count < 64; turns = end) ids[count++] = strtoll(turns, &end, 10);
    Text text = text_new(import->arena);
    for (int i = 0; i < count; i++) {
        bool seen = false;
        for (int j = 0; j < i; j++) seen |= ids[j] == ids[i];
        if (!seen) text_printf(&text, "%s%lld", i ? " " : "", (long long)ids[i]);
    }
    variable_set(import, "end", text.data);
}

const char *generation_read(Import *import) {
    Generation found = {0};
    if (!generates(import)) return "";
    if (!import->folder) return join_ends(import), "";
    const char *path = arena_printf(import->arena, "%s/generation_config.json", import->folder);
    const bool own_file = file_exists(path);
    Reader r = {.import = import, .path = own_file ? path : import->config_path, .out = &found,
                .vocab = vocabulary(import)};
    r.keys = own_file ? config_read(import->arena, path) : import->config;
    r.inner = own_file ? NULL : decoder_object(import->config);
    if (own_file) replace_tokens(&r);
    read_lengths(&r);
    read_sampling(&r);
    read_beams(&r);
    read_tokens(&r);
    note_unobeyed(&r, own_file);
    Text text = text_new(import->arena);
    generation_print(&text, &found, 4);
    return text.size ? arena_printf(import->arena, "generation {\n%s}\n", text.data) : "";
}
