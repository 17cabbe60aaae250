/* speech.c: reads the control tokens of a speech model, such as those of languages and times, from its config. The keys
 * are those of Whisper in transformers. */
#include "project.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int64_t token_of(const Project *p, const char *key) {
    const cJSON *value = project_setting(p, key);
    return value ? project_token(p, key, value) : -1;
}

static TokenList tokens_of(const Project *p, const char *key) {
    const cJSON *list = project_setting(p, key), *item;
    TokenList tokens = {0};
    if (!list) return tokens;
    if (!cJSON_IsArray(list)) fail("%s: `%s` is no list of tokens", p->source, key);
    tokens.ids = arena_array(p->arena, (size_t)cJSON_GetArraySize(list), sizeof *tokens.ids);
    cJSON_ArrayForEach(item, list) tokens.ids[tokens.count++] = project_token(p, key, item);
    return tokens;
}

/* The code in `<|code|>`. */
static const char *code_of(const Project *p, const char *name) {
    const size_t size = strlen(name);
    if (size < 5 || strncmp(name, "<|", 2) != 0 || strcmp(name + size - 2, "|>") != 0 ||
        !project_is_code(name + 2, size - 4))
        fail("%s: `lang_to_id` has the name `%.*s`, which is not of the form <|code|>", p->source, CUT(60, name));
    return arena_copy(p->arena, name + 2, size - 4);
}

static void read_languages(Project *p) {
    Speech *s = &p->speech;
    const cJSON *all = project_setting(p, "lang_to_id"), *item;
    const cJSON *chosen = project_setting(p, "language");
    if (!all) return;
    if (!cJSON_IsObject(all)) fail("%s: `lang_to_id` is no object", p->source);
    s->languages.ids = arena_array(p->arena, (size_t)cJSON_GetArraySize(all), sizeof *s->languages.ids);
    s->codes = arena_array(p->arena, (size_t)cJSON_GetArraySize(all), sizeof *s->codes);
    cJSON_ArrayForEach(item, all) {
        const char *code = code_of(p, item->string);
        s->codes[s->languages.count] = code;
        s->languages.ids[s->languages.count] = project_token(p, "lang_to_id", item);
        if (cJSON_IsString(chosen) && (strcmp(chosen->valuestring, code) == 0 ||
                                       strcmp(chosen->valuestring, item->string) == 0))
            s->language = s->languages.ids[s->languages.count];
        s->languages.count++;
    }
    if (cJSON_IsString(chosen) && s->language < 0)
        report_note("`language` is `%.*s`, which is no code of `lang_to_id`: the program finds the language of each "
                    "sound, or takes --language", CUT(60, chosen->valuestring));
}

static void read_tasks(Project *p) {
    const cJSON *tasks = project_setting(p, "task_to_id"), *chosen = project_setting(p, "task");
    const cJSON *transcribe = cJSON_GetObjectItemCaseSensitive(tasks, "transcribe");
    const cJSON *translate = cJSON_GetObjectItemCaseSensitive(tasks, "translate");
    Speech *s = &p->speech;
    if (transcribe) s->transcribe = project_token(p, "task_to_id", transcribe);
    if (translate) s->translate = project_token(p, "task_to_id", translate);
    if (cJSON_IsString(chosen) && strcmp(chosen->valuestring, "translate") == 0) s->transcribe = s->translate;
}

/* Older configs have [index, token] of what follows the start: a language and a task, or null where it is found. */
static void read_forced(Project *p) {
    const cJSON *pairs = project_setting(p, "forced_decoder_ids"), *pair;
    Speech *s = &p->speech;
    cJSON_ArrayForEach(pair, pairs) {
        const cJSON *index = cJSON_GetArrayItem(pair, 0), *token = cJSON_GetArrayItem(pair, 1);
        if (!cJSON_IsNumber(index) || !cJSON_IsNumber(token)) continue;
        const int64_t id = project_token(p, "forced_decoder_ids", token);
        if (id == s->no_times) continue;
        if (index->valuedouble == 1 && s->language < 0) s->language = id;
        if (index->valuedouble == 2 && s->transcribe < 0) s->transcribe = id;
    }
}

/* A threshold as C has it, or NULL. */
static const char *threshold_of(const Project *p, const char *key) {
    const cJSON *value = project_setting(p, key);
    if (!value) return NULL;
    if (!cJSON_IsNumber(value) || !isfinite(value->valuedouble)) fail("%s: `%s` is no number", p->source, key);
    const char *text = arena_printf(p->arena, "%.15g", value->valuedouble);
    const bool exact = !(strtod(text, NULL) < value->valuedouble || strtod(text, NULL) > value->valuedouble);
    return exact ? text : arena_printf(p->arena, "%.17g", value->valuedouble);
}

void project_speech(Project *p) {
    Speech *s = &p->speech;
    const cJSON *latest = project_setting(p, "max_initial_timestamp_index");
    const double steps = cJSON_IsNumber(latest) ? latest->valuedouble : -1;
    if (p->model->n_end < 1) fail("%s: no token ends the decoder's text", p->source);
    *s = (Speech){.end = p->model->end[0], .language = -1, .transcribe = -1, .translate = -1};
    s->no_times = token_of(p, "no_timestamps_token_id");
    s->latest_first = steps >= 0 && steps < (double)p->model->decoder->vocab ? (int64_t)steps : -1;
    s->least_log_probability = threshold_of(p, "logprob_threshold");
    s->most_compression = threshold_of(p, "compression_ratio_threshold");
    s->most_no_speech = threshold_of(p, "no_speech_threshold");
    s->never = tokens_of(p, "suppress_tokens");
    s->never_first = tokens_of(p, "begin_suppress_tokens");
    read_languages(p);
    read_tasks(p);
    read_forced(p);
}

static void put(uint8_t *at, uint32_t value, int bytes) {
    for (int i = 0; i < bytes; i++) at[i] = (uint8_t)(value >> 8 * i);
}

/* Of a part of the file, in four bytes. */
static void put_name(uint8_t *at, const char *name) {
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)name[i];
}

void project_tone_write(Arena *arena, const char *path) {
    enum { HEAD = 44, RATE = 16000, BYTES = 2 * RATE, HERTZ = 440, LOUD = 8000 };
    uint8_t *file = arena_alloc(arena, HEAD + BYTES);
    put_name(file, "RIFF");
    put_name(file + 8, "WAVE");
    put_name(file + 12, "fmt ");
    put_name(file + 36, "data");
    put(file + 4, HEAD - 8 + BYTES, 4);
    put(file + 16, 16, 4);       /* bytes of the format */
    put(file + 20, 1, 2);        /* integers */
    put(file + 22, 1, 2);        /* channel */
    put(file + 24, RATE, 4);
    put(file + 28, 2 * RATE, 4); /* bytes a second */
    put(file + 32, 2, 2);        /* bytes of a sample of all channels */
    put(file + 34, 16, 2);       /* bits of a sample */
    put(file + 40, BYTES, 4);
    for (int i = 0; i < RATE; i++)
        put(file + HEAD + 2 * i, (uint32_t)(int)lround(LOUD * sin(2 * 3.14159265358979323846 * HERTZ * i / RATE)), 2);
    OutputFile *output = output_open(arena, path);
    output_write(output, file, HEAD + BYTES);
    output_commit(output);
}
