/* See attn_transcribe.h. */
#include "attn_transcribe.h"

#include <math.h>
#include <stdbool.h>

#include "attn_sample.h"

enum { MOST_PROMPT = 4, FRAMES_A_SECOND = 100 };

/* One call of attn_transcribe. */
typedef struct Work {
    const attn_speech *speech;
    const attn_transcribe_options *options;
    attn_transcribed *result;
    bool timed; /* times are wanted */
    int32_t first_time; /* the token of the time 0; the size of the vocabulary for a model without times */

    float *window;      /* [bins][frames] */
    float *logits;      /* [vocab] after `start` alone */
    int32_t *tokens;    /* [bound] what the decoder writes for the window */
    int32_t *words;     /* [bound] those of a segment that are no times */
    int32_t *chosen;    /* [bound] the tokens behind the prompt so far, as the rules see them */
    int chosen_count;
    const float *row;   /* [vocab] the logits of the next token, by the rules */
    double log_sum;     /* of the logarithms of the chosen tokens' probabilities */
    attn_heard heard;   /* of the window, with options->fallback */
    uint64_t sampled;   /* searches that sampled so far */
    void *search;       /* the memory of attn_generate */
    size_t search_bytes;
} Work;

const char *attn_transcribe_status_text(int status) {
    static const char *const texts[] = {
        "no error", "an argument is missing or out of its bounds", "a token is outside of the vocabulary",
        "the decoder has no room behind the prompt", "the memory is too small", "the model failed",
        "no token can be chosen", "the caller stopped the work"};
    return status >= 0 && status <= ATTN_TRANSCRIBE_STOPPED ? texts[status] : "unknown status";
}

/* ---------------------------------------------------------------- which tokens may be chosen */

static bool is_time(const Work *w, int32_t token) { return token >= w->first_time; }

static void forbid(float *logits, int32_t from, int32_t end) {
    for (int32_t token = from; token < end; token++) logits[token] = -INFINITY;
}

/* Whether the probabilities of all times have a larger sum than the largest other probability. */
static bool times_prevail(const Work *w, const float *logits) {
    float most = -INFINITY;
    double sum = 0;
    for (int32_t token = 0; token < w->first_time; token++)
        if (logits[token] > most) most = logits[token];
    if (most == -INFINITY) return false; /* there is nothing to forbid */
    for (int32_t token = w->first_time; token < w->speech->decoder.vocab; token++)
        sum += exp((double)logits[token] - (double)most);
    return sum > 1;
}

static void apply_rules_of_times(const Work *w, float *logits) {
    const attn_speech_tokens *tokens = w->speech->tokens;
    const int32_t vocab = w->speech->decoder.vocab;
    const int n = w->chosen_count;
    const bool last = n >= 1 && is_time(w, w->chosen[n - 1]), before = n < 2 || is_time(w, w->chosen[n - 2]);
    int latest = n - 1;
    logits[tokens->no_times] = -INFINITY;
    if (last && before) forbid(logits, w->first_time, vocab); /* a pair is complete */
    if (last && !before) forbid(logits, 0, tokens->end);      /* a pair or the text is to be ended */
    while (latest >= 0 && !is_time(w, w->chosen[latest])) latest--;
    if (latest >= 0) forbid(logits, w->first_time, w->chosen[latest] + !(last && !before));
    if (n == 0) {
        forbid(logits, 0, w->first_time);
        if (tokens->latest_first >= 0 && tokens->latest_first < vocab - w->first_time)
            forbid(logits, w->first_time + tokens->latest_first + 1, vocab);
    }
    if (times_prevail(w, logits)) forbid(logits, 0, w->first_time);
}

static void apply_rules(const Work *w, float *logits) {
    const attn_speech_tokens *tokens = w->speech->tokens;
    for (int i = 0; i < tokens->never_count; i++) logits[tokens->never[i]] = -INFINITY;
    for (int i = 0; w->chosen_count == 0 && i < tokens->never_first_count; i++)
        logits[tokens->never_first[i]] = -INFINITY;
    if (w->timed) apply_rules_of_times(w, logits);
}

/* The decoder as attn_generate sees it: with the rules applied to its logits. */
static int ruled_prefill(void *with, int slot, const int32_t *tokens, int count, float *logits) {
    Work *w = (Work *)with;
    const attn_model *decoder = &w->speech->decoder;
    const int status = decoder->prefill(decoder->with, slot, tokens, count, logits);
    w->chosen_count = 0;
    w->row = logits;
    if (status == 0) apply_rules(w, logits);
    return status;
}

static int ruled_step(void *with, int count, const int *slots, const int32_t *tokens, float *logits) {
    Work *w = (Work *)with;
    const attn_model *decoder = &w->speech->decoder;
    const int status = decoder->step(decoder->with, count, slots, tokens, logits);
    w->chosen[w->chosen_count++] = tokens[0];
    w->row = logits;
    if (status == 0) apply_rules(w, logits);
    return status;
}

/* The logarithm of a token's probability by a row of logits. */
static double log_probability(const Work *w, const float *row, int32_t token) {
    float most = -INFINITY;
    double sum = 0;
    for (int32_t i = 0; i < w->speech->decoder.vocab; i++)
        if (row[i] > most) most = row[i];
    for (int32_t i = 0; i < w->speech->decoder.vocab; i++) sum += exp(attn_log_ratio(row[i], most));
    return attn_log_ratio(row[token], most) - log(sum);
}

/* Between the choice of a token and the next step, attn_generate keeps the row of its logits. */
static int measure(void *with, int32_t token) {
    Work *w = (Work *)with;
    w->log_sum += log_probability(w, w->row, token);
    return 0;
}

static attn_model ruled(Work *w) {
    attn_model model = w->speech->decoder;
    model.with = w;
    model.prefill = ruled_prefill;
    model.step = ruled_step;
    model.copy = NULL;
    return model;
}

/* ---------------------------------------------------------------- arguments and memory */

static bool in_vocabulary(const attn_speech *speech, const int32_t *tokens, int count) {
    for (int i = 0; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= speech->decoder.vocab) return false;
    return true;
}

static bool is_list(const int32_t *tokens, int count) { return count == 0 || (count > 0 && tokens); }

static bool is_speech(const attn_speech *speech) {
    if (!speech || speech->size != sizeof *speech || speech->bins < 1 || speech->frames < 1 || speech->step < 1)
        return false;
    const attn_model *decoder = &speech->decoder;
    const attn_speech_tokens *t = speech->tokens;
    return decoder->size == sizeof *decoder && decoder->prefill && decoder->step && decoder->vocab >= 1 &&
           decoder->bound >= 1 && speech->open && speech->rewind && t && is_list(t->languages, t->language_count) &&
           is_list(t->never, t->never_count) && is_list(t->never_first, t->never_first_count);
}

static bool has_its_tokens(const attn_speech *speech) {
    const attn_speech_tokens *t = speech->tokens;
    return in_vocabulary(speech, &t->start, 1) && in_vocabulary(speech, &t->end, 1) &&
           (t->no_times < 0 || in_vocabulary(speech, &t->no_times, 1)) &&
           in_vocabulary(speech, t->languages, t->language_count) &&
           in_vocabulary(speech, t->never, t->never_count) &&
           in_vocabulary(speech, t->never_first, t->never_first_count);
}

static bool is_fallback(const attn_fallback *f) {
    if (!f->temperatures || f->temperature_count < 1) return false;
    for (int i = 0; i < f->temperature_count; i++)
        if (!(f->temperatures[i] >= 0 && f->temperatures[i] < INFINITY)) return false;
    return !isnan(f->least_log_probability) && !isnan(f->most_compression) && !isnan(f->most_no_speech);
}

/* Copies the options. Fields that an older version of the struct lacks become 0. False if no version has that size, or
 * an option is outside of its range. */
static bool take_options(const attn_transcribe_options *given, attn_transcribe_options *options) {
    if (!given || (given->size != sizeof *given && given->size != offsetof(attn_transcribe_options, fallback)))
        return false;
    memset(options, 0, sizeof *options);
    memcpy(options, given, given->size);
    return !options->fallback || is_fallback(options->fallback);
}

static attn_generate_options search_of(const attn_speech *speech, int prompt) {
    attn_generate_options options;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.max_new = speech->decoder.bound - prompt;
    options.end = &speech->tokens->end;
    options.end_count = 1;
    return options;
}

/* Lays out the arrays of a call from `base`, which is aligned or NULL. Returns their size in bytes. */
static size_t lay_out(Work *w, char *base) {
    const attn_speech *speech = w->speech;
    attn_generate_options options = search_of(speech, speech->decoder.bound > 1 ? 1 : 0);
    const size_t bound = (size_t)speech->decoder.bound;
    size_t used = 0;
    w->window = attn_carve(base, &used, attn_multiply_sizes((size_t)speech->bins, (size_t)speech->frames),
                           sizeof *w->window);
    w->logits = attn_carve(base, &used, (size_t)speech->decoder.vocab, sizeof *w->logits);
    w->tokens = attn_carve(base, &used, bound, sizeof *w->tokens);
    w->words = attn_carve(base, &used, bound, sizeof *w->words);
    w->chosen = attn_carve(base, &used, bound, sizeof *w->chosen);
    w->search_bytes = attn_generate_bytes(&speech->decoder, &options);
    options.temperature = 1;
    const size_t sampling = attn_generate_bytes(&speech->decoder, &options);
    if (sampling > w->search_bytes) w->search_bytes = sampling;
    w->search = attn_carve(base, &used, w->search_bytes, 1);
    return used;
}

size_t attn_transcribe_bytes(const attn_speech *speech) {
    if (!is_speech(speech)) return 0;
    Work work = {.speech = speech};
    return attn_add_sizes(lay_out(&work, NULL), CARVED_ALIGNMENT - 1);
}

/* ---------------------------------------------------------------- the segments of a window */

static int model_failed(Work *w, int status) {
    w->result->model_status = status;
    return ATTN_TRANSCRIBE_MODEL;
}

/* Tells a segment of tokens [count], which begins and ends so many frames behind the beginning of the sound. */
static int tell(Work *w, int64_t begin, int64_t end, const int32_t *tokens, int count) {
    attn_segment segment = {(double)begin / FRAMES_A_SECOND, (double)end / FRAMES_A_SECOND, w->words, 0};
    for (int i = 0; i < count; i++)
        if (!is_time(w, tokens[i])) w->words[segment.count++] = tokens[i];
    if (segment.count == 0) return ATTN_TRANSCRIBE_OK;
    w->result->segments++;
    if (!w->options->on_segment || w->options->on_segment(w->options->on_segment_with, &segment) == 0)
        return ATTN_TRANSCRIBE_OK;
    return ATTN_TRANSCRIBE_STOPPED;
}

/* The frames from the beginning of a window to a time. */
static int64_t frames_to(const Work *w, int32_t time) { return ((int64_t)time - w->first_time) * w->speech->step; }

/* Tells the one segment of a window without a pair of times. Its last time, if it is not 0, is its end. */
static int tell_whole(Work *w, int64_t seek, int count, int64_t frames) {
    int last = count - 1;
    while (last >= 0 && !is_time(w, w->tokens[last])) last--;
    int64_t end = frames / w->speech->step * w->speech->step;
    if (last >= 0 && w->tokens[last] != w->first_time) end = frames_to(w, w->tokens[last]);
    return tell(w, seek, seek + end, w->tokens, count);
}

/* Tells the segments in tokens [count] of a window that begins at the frame `seek` and has *frames frames of sound.
 * *frames becomes the distance to the next window. */
static int tell_window(Work *w, int64_t seek, int count, int64_t *frames) {
    const int32_t *tokens = w->tokens;
    const bool single = count >= 2 && is_time(w, tokens[count - 1]) && !is_time(w, tokens[count - 2]);
    int begin = 0, status = ATTN_TRANSCRIBE_OK;
    for (int i = 1; status == ATTN_TRANSCRIBE_OK && i < count; i++) {
        if (!is_time(w, tokens[i - 1]) || !is_time(w, tokens[i])) continue;
        const int64_t from = is_time(w, tokens[begin]) ? frames_to(w, tokens[begin]) : 0;
        status = tell(w, seek + from, seek + frames_to(w, tokens[i - 1]), tokens + begin, i - begin);
        begin = i;
    }
    if (status != ATTN_TRANSCRIBE_OK) return status;
    if (begin == 0) return tell_whole(w, seek, count, *frames);
    if (single)
        return tell(w, seek + frames_to(w, tokens[begin]), seek + frames_to(w, tokens[count - 1]), tokens + begin,
                    count - begin);
    const int64_t next = frames_to(w, tokens[begin - 1]); /* what follows the last pair is cut off and written anew */
    if (next > 0) *frames = next;
    return ATTN_TRANSCRIBE_OK;
}

/* ---------------------------------------------------------------- windows */

/* The window takes the frames seek to seek + count of mel [bins][frames], and zeros behind them. */
static void cut(Work *w, const float *mel, size_t frames, size_t seek, size_t count) {
    const size_t width = (size_t)w->speech->frames;
    for (size_t bin = 0; bin < (size_t)w->speech->bins; bin++) {
        float *row = w->window + bin * width;
        memcpy(row, mel + bin * frames + seek, count * sizeof *row);
        memset(row + count, 0, (width - count) * sizeof *row);
    }
}

/* Sets w->logits to the row after `start` alone. */
static int read_first_row(Work *w) {
    const attn_speech *speech = w->speech;
    int status = speech->decoder.prefill(speech->decoder.with, 0, &speech->tokens->start, 1, w->logits);
    if (status == 0) status = speech->rewind(speech->with);
    return status == 0 ? ATTN_TRANSCRIBE_OK : model_failed(w, status);
}

/* The most probable language by w->logits. */
static int32_t language_of(const Work *w) {
    const attn_speech_tokens *t = w->speech->tokens;
    int32_t best = t->languages[0];
    for (int i = 1; i < t->language_count; i++) {
        const float logit = w->logits[t->languages[i]];
        if (logit > w->logits[best] || (logit == w->logits[best] && t->languages[i] < best)) best = t->languages[i];
    }
    return best;
}

/* What a window's text begins with, in prompt [MOST_PROMPT]; returns the number of tokens. */
static int prompt_of(const Work *w, int32_t *prompt) {
    const attn_speech_tokens *t = w->speech->tokens;
    int n = 0;
    prompt[n++] = t->start;
    if (w->result->language >= 0) prompt[n++] = w->result->language;
    if (w->options->task >= 0) prompt[n++] = w->options->task;
    if (!w->timed && t->no_times >= 0) prompt[n++] = t->no_times;
    return n;
}

/* Searches once for the open window's text, whose tokens and end go to w->tokens, and their number to *count. *ended
 * becomes nonzero if the last one is the end. */
static int search_once(Work *w, double temperature, int *count, int *ended) {
    int32_t prompt[MOST_PROMPT];
    const int n = prompt_of(w, prompt);
    if (w->speech->decoder.bound <= n) return ATTN_TRANSCRIBE_TOO_LONG;
    attn_generate_options options = search_of(w->speech, n);
    if (temperature > 0) {
        options.temperature = temperature;
        options.seed = w->options->fallback->seed;
        options.sequence = w->sampled++;
    }
    w->log_sum = 0;
    if (w->options->fallback) {
        options.on_token = measure;
        options.on_token_with = w;
    }
    const attn_model model = ruled(w);
    attn_generated generated;
    memset(&generated, 0, sizeof generated);
    generated.size = sizeof generated;
    generated.tokens = w->tokens;
    const int status = attn_generate(&model, &options, prompt, n, &generated, w->search, w->search_bytes);
    if (status == ATTN_GENERATE_MODEL) return model_failed(w, generated.model_status);
    if (status == ATTN_GENERATE_NO_TOKEN) return ATTN_TRANSCRIBE_NO_TOKEN;
    if (status != ATTN_GENERATE_OK) return ATTN_TRANSCRIBE_BAD_ARGUMENT;
    *count = generated.count;
    *ended = generated.ended;
    return ATTN_TRANSCRIBE_OK;
}

/* Measures the text of the last search, w->tokens [count]. Returns whether no other search follows. */
static bool is_accepted(Work *w, int count) {
    const attn_fallback *f = w->options->fallback;
    attn_heard *h = &w->heard;
    h->log_probability = w->log_sum / count;
    h->compression = f->compression ? f->compression(f->with, w->tokens, count) : 0;
    const bool improbable = h->log_probability < f->least_log_probability;
    h->silent = h->no_speech > f->most_no_speech && (improbable || f->least_log_probability == -INFINITY);
    return h->silent || (!improbable && !(h->compression > f->most_compression));
}

/* Writes the open window's text to w->tokens and its length to *count, which is 0 for silence. */
static int write_window(Work *w, int *count) {
    const attn_fallback *f = w->options->fallback;
    const int attempts = f ? f->temperature_count : 1;
    int status = ATTN_TRANSCRIBE_OK, ended = 0;
    for (int i = 0; i < attempts; i++) {
        const int again = i == 0 ? 0 : w->speech->rewind(w->speech->with);
        if (again != 0) return model_failed(w, again);
        status = search_once(w, f ? f->temperatures[i] : 0, count, &ended);
        if (status != ATTN_TRANSCRIBE_OK || !f) break;
        w->heard.temperature = f->temperatures[i];
        w->heard.attempts = i + 1;
        if (is_accepted(w, *count)) break;
    }
    *count -= ended != 0;
    if (f && w->heard.silent) *count = 0;
    if (f && f->on_window && status == ATTN_TRANSCRIBE_OK) f->on_window(f->with, &w->heard);
    return status;
}

/* Opens the window of `part` frames at `seek`, and reads what its first row says. */
static int open_window(Work *w, const float *mel, int frames, int64_t seek, int64_t part) {
    const attn_speech *speech = w->speech;
    const bool finds = seek == 0 && w->options->language < 0 && speech->tokens->language_count > 0;
    cut(w, mel, (size_t)frames, (size_t)seek, (size_t)part);
    const int opened = speech->open(speech->with, w->window);
    if (opened != 0) return model_failed(w, opened);
    if (!finds && !w->options->fallback) return ATTN_TRANSCRIBE_OK;
    const int status = read_first_row(w);
    if (status != ATTN_TRANSCRIBE_OK) return status;
    if (finds) w->result->language = language_of(w);
    const int32_t silence = speech->tokens->no_times - 1;
    w->heard = (attn_heard){.begin = (double)seek / FRAMES_A_SECOND, .end = (double)(seek + part) / FRAMES_A_SECOND};
    if (silence >= 0) w->heard.no_speech = exp(log_probability(w, w->logits, silence));
    return ATTN_TRANSCRIBE_OK;
}

static int transcribe_windows(Work *w, const float *mel, int frames) {
    const attn_speech *speech = w->speech;
    int status = ATTN_TRANSCRIBE_OK;
    int count = 0;
    for (int64_t seek = 0, part; status == ATTN_TRANSCRIBE_OK && seek < frames; seek += part) {
        part = frames - seek < speech->frames ? frames - seek : speech->frames;
        status = open_window(w, mel, frames, seek, part);
        if (status == ATTN_TRANSCRIBE_OK) status = write_window(w, &count);
        if (status == ATTN_TRANSCRIBE_OK) status = tell_window(w, seek, count, &part);
    }
    return status;
}

int attn_transcribe(const attn_speech *speech, const attn_transcribe_options *given, const float *mel, int frames,
                    attn_transcribed *result, void *memory, size_t bytes) {
    attn_transcribe_options taken;
    const attn_transcribe_options *options = &taken;
    if (!is_speech(speech) || !take_options(given, &taken) || !mel || frames < 1 || !result ||
        result->size != sizeof *result || !memory)
        return ATTN_TRANSCRIBE_BAD_ARGUMENT;
    const attn_speech_tokens *t = speech->tokens;
    *result = (attn_transcribed){.size = sizeof *result, .language = options->language < 0 ? -1 : options->language};
    if (!has_its_tokens(speech) || options->language >= speech->decoder.vocab ||
        options->task >= speech->decoder.vocab)
        return ATTN_TRANSCRIBE_BAD_TOKEN;
    if (bytes < attn_transcribe_bytes(speech)) return ATTN_TRANSCRIBE_SHORT_MEMORY;
    Work work = {.speech = speech, .options = options, .result = result};
    work.timed = t->no_times >= 0 && (options->times || frames > speech->frames);
    work.first_time = t->no_times >= 0 ? t->no_times + 1 : speech->decoder.vocab;
    lay_out(&work, (char *)memory + (CARVED_ALIGNMENT - (uintptr_t)memory % CARVED_ALIGNMENT) % CARVED_ALIGNMENT);
    return transcribe_windows(&work, mel, frames);
}
