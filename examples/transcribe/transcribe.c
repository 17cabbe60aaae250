/* Writes subtitles (WebVTT) of a sound with a Whisper, each as soon as it is known, with the C that `attnc compile`
 * writes for a spec that `attnc import --name whisper` made. README.md says how it is built. Exit status: 0, or 1 after
 * an error. */
#include "../../runtime/attn_mel.h"
#include "../../runtime/attn_runtime.h"
#include "../../runtime/attn_transcribe.h"
#include "../../runtime/tokenizer/attn_tokenizer.h"
#include "whisper.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <limits.h>
#include <sndfile.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ATTN_MODEL_OF(whisper);
ATTN_SPEECH_OF(whisper);

static const char usage[] =
    "usage: transcribe [--language CODE] [--translate] [--threads N] WEIGHTS FOLDER SOUND\n"
    "  WEIGHTS          whisper.attnw\n"
    "  FOLDER           of the model: its generation_config.json and tokenizer.json are read\n"
    "  SOUND            a file of 16000 samples a second, of any format that libsndfile reads\n"
    "  --language CODE  such as en; otherwise the language of the first 30 seconds is found\n"
    "  --translate      writes English for any language\n";

static _Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
static _Noreturn void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("transcribe: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs("\n", stderr);
    exit(1);
}

static void *must_have(void *memory) {
    if (!memory) die("out of memory");
    return memory;
}

/* ---------------------------------------------------------------- the tokens of generation_config.json */

static cJSON *read_config(const char *folder) {
    char path[PATH_MAX];
    attn_file file;
    snprintf(path, sizeof path, "%s/generation_config.json", folder);
    const int error = attn_load_file(path, &file);
    if (error) die("%s: %s", path, strerror(error));
    cJSON *config = cJSON_ParseWithLength(file.data, file.size);
    if (!cJSON_IsObject(config)) die("%s is no object of JSON", path);
    attn_close_file(&file);
    return config;
}

/* A token, or -1 where the config has none of that name. */
static int32_t token(const cJSON *config, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(config, name);
    if (!item || cJSON_IsNull(item)) return -1;
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble < WHISPER_VOCAB))
        die("`%s` of generation_config.json is no token of the model", name);
    return (int32_t)item->valuedouble;
}

/* The tokens in a list, or in an object; their number goes to *count. */
static const int32_t *token_list(const cJSON *config, const char *name, int *count) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(config, name), *item;
    int32_t *tokens = must_have(calloc((size_t)cJSON_GetArraySize(list) + 1, sizeof *tokens));
    *count = 0;
    cJSON_ArrayForEach(item, list) {
        if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble < WHISPER_VOCAB))
            die("`%s` of generation_config.json has a value that is no token of the model", name);
        tokens[(*count)++] = (int32_t)item->valuedouble;
    }
    return tokens;
}

static attn_speech_tokens read_tokens(const cJSON *config) {
    static const int32_t end[] = WHISPER_END_TOKENS;
    const cJSON *latest = cJSON_GetObjectItemCaseSensitive(config, "max_initial_timestamp_index");
    attn_speech_tokens tokens = {.start = WHISPER_START_TOKEN, .end = end[0]};
    tokens.no_times = token(config, "no_timestamps_token_id");
    tokens.latest_first = cJSON_IsNumber(latest) ? latest->valueint : -1;
    tokens.languages = token_list(config, "lang_to_id", &tokens.language_count);
    tokens.never = token_list(config, "suppress_tokens", &tokens.never_count);
    tokens.never_first = token_list(config, "begin_suppress_tokens", &tokens.never_first_count);
    if (tokens.no_times < 0) die("generation_config.json has no `no_timestamps_token_id`: the model has no times");
    return tokens;
}

/* ---------------------------------------------------------------- sound */

/* The log-mel spectrogram of a file, of which *frames become known. */
static float *read_sound(const char *path, int *frames) {
    SF_INFO info = {0};
    SNDFILE *file = sf_open(path, SFM_READ, &info);
    if (!file) die("%s: %s", path, sf_strerror(NULL));
    if (info.samplerate != ATTN_MEL_RATE)
        die("%s has %d samples a second, and the model hears 16000: `ffmpeg -i %s -ar 16000 new.wav` changes that",
            path, info.samplerate, path);
    if (info.frames < 1 || info.frames / ATTN_MEL_HOP > INT_MAX) die("%s is empty or too long", path);
    float *samples = must_have(calloc((size_t)info.frames, sizeof *samples));
    float *of_channels = must_have(calloc((size_t)info.channels, sizeof *of_channels));
    size_t count = 0;
    for (; count < (size_t)info.frames && sf_readf_float(file, of_channels, 1) == 1; count++)
        for (int channel = 0; channel < info.channels; channel++)
            samples[count] += of_channels[channel] / (float)info.channels;
    sf_close(file);
    *frames = (int)(count / ATTN_MEL_HOP);
    if (*frames < WHISPER_MEL_FRAMES) *frames = WHISPER_MEL_FRAMES; /* silence follows a short sound */
    const size_t bytes = attn_mel_bytes(WHISPER_MEL_BINS);
    void *memory = must_have(malloc(bytes));
    float *mel = must_have(malloc(sizeof *mel * WHISPER_MEL_BINS * (size_t)*frames));
    const int status = attn_mel(samples, count, WHISPER_MEL_BINS, *frames, mel, memory, bytes);
    if (status) die("%s: %s", path, attn_mel_status_text(status));
    free(memory);
    free(of_channels);
    free(samples);
    return mel;
}

/* ---------------------------------------------------------------- subtitles */

static void print_time(double seconds, const char *behind) {
    const long long ms = (long long)(seconds * 1000 + 0.5);
    printf("%02lld:%02lld:%02lld.%03lld%s", ms / 3600000, ms / 60000 % 60, ms / 1000 % 60, ms % 1000, behind);
}

static int show(void *with, const attn_segment *segment) {
    size_t bytes;
    char *text = must_have(attn_tokenizer_decode(with, segment->tokens, segment->count, &bytes));
    print_time(segment->begin, " --> ");
    print_time(segment->end, "\n");
    const size_t blank = bytes > 0 && text[0] == ' '; /* in front of the first word */
    fwrite(text + blank, 1, bytes - blank, stdout);
    fputs("\n\n", stdout);
    free(text);
    return fflush(stdout) != 0;
}

/* ---------------------------------------------------------------- the model */

static void transcribe(const whisper_ctx *ctx, int threads, const attn_speech_tokens *tokens,
                       const attn_transcribe_options *options, const float *mel, int frames) {
    const size_t decode_bytes = WHISPER_DECODE_WORKSPACE_BYTES(threads);
    const size_t encode_bytes = WHISPER_ENCODE_WORKSPACE_BYTES(threads);
    void *workspace = must_have(attn_alloc(decode_bytes)), *encode_workspace = must_have(attn_alloc(encode_bytes));
    void *state = must_have(attn_alloc(WHISPER_STATE_BYTES)), *source = must_have(attn_alloc(WHISPER_SOURCE_BYTES));
    whisper_listener listener = {{ctx, &state, workspace, decode_bytes, 0}, WHISPER_STATE_BYTES, &source,
                                 encode_workspace, encode_bytes};
    attn_speech speech = whisper_listener_speech(&listener, tokens, WHISPER_MEL_BINS, WHISPER_MEL_FRAMES,
                                                 WHISPER_SOURCE_SEQ, WHISPER_VOCAB, WHISPER_SEQ);
    attn_transcribed result = {.size = sizeof result};
    const size_t bytes = attn_transcribe_bytes(&speech);
    void *memory = must_have(attn_alloc(bytes));
    const int status = attn_transcribe(&speech, options, mel, frames, &result, memory, bytes);
    if (status == ATTN_TRANSCRIBE_MODEL) die("%s", whisper_status_text(result.model_status));
    if (status) die("%s", attn_transcribe_status_text(status));
    attn_free(memory);
    attn_free(source);
    attn_free(state);
    attn_free(encode_workspace);
    attn_free(workspace);
}

int main(int argc, char **argv) {
    const char *language = NULL, *task = "transcribe";
    int threads = attn_cpu_count(), at = 1;
    for (; at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "--translate") == 0) task = "translate";
        else if (strcmp(argv[at], "--language") == 0 && at + 1 < argc) language = argv[++at];
        else if (strcmp(argv[at], "--threads") == 0 && at + 1 < argc) threads = atoi(argv[++at]);
        else die("no option `%s`\n%s", argv[at], usage);
    }
    if (argc - at != 3 || threads < 1) die("three files are needed\n%s", usage);
    if (threads > ATTN_MAX_THREADS) threads = ATTN_MAX_THREADS;
    const char *folder = argv[at + 1];
    char why[256], path[PATH_MAX];
    cJSON *config = read_config(folder);
    const attn_speech_tokens tokens = read_tokens(config);
    attn_transcribe_options options = {.size = sizeof options, .language = -1, .times = 1, .on_segment = show};
    options.task = token(cJSON_GetObjectItemCaseSensitive(config, "task_to_id"), task);
    if (options.task < 0 && strcmp(task, "translate") == 0) die("the model does not translate");
    if (language) {
        snprintf(why, sizeof why, "<|%s|>", language);
        options.language = token(cJSON_GetObjectItemCaseSensitive(config, "lang_to_id"), why);
        if (options.language < 0) die("the model has no language `%s`", language);
    }
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    attn_tokenizer *words = attn_tokenizer_open(path, why, sizeof why);
    if (!words) die("%s: %s", path, why);
    options.on_segment_with = words;

    attn_file weights;
    const int error = attn_load_file(argv[at], &weights);
    if (error) die("%s: %s", argv[at], strerror(error));
    attn_pool *pool = attn_pool_new(threads);
    if (!pool) die("cannot start %d threads: %s", threads, strerror(errno));
    whisper_options run = {.size = sizeof run, .threads = threads, .parallel_for = attn_pool_run, .pool = pool};
    whisper_ctx ctx;
    const int status = whisper_init(&ctx, weights.data, weights.size, &run);
    if (status) die("%s: %s", argv[at], whisper_status_text(status));
    int frames;
    float *mel = read_sound(argv[at + 2], &frames);
    puts("WEBVTT\n");
    transcribe(&ctx, threads, &tokens, &options, mel, frames);

    free(mel);
    attn_pool_free(pool);
    attn_close_file(&weights);
    attn_tokenizer_free(words);
    free((void *)(size_t)tokens.languages);
    free((void *)(size_t)tokens.never);
    free((void *)(size_t)tokens.never_first);
    cJSON_Delete(config);
}
