/* Continues a text with a small llama, word by word as it comes, with the C that `attnc compile` writes for a spec that
 * `attnc import --name story` made. --help says how it is used. Exit status: 0, or 1 after an error. */
#include "../../runtime/attn_generate.h"
#include "../../runtime/attn_runtime.h"
#include "../../runtime/tokenizer/attn_tokenizer.h"
#include "story.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

ATTN_MODEL_OF(story);

enum { MOST_LINE = 1 << 16, MOST_ENDS = 64 }; /* bytes of a beginning; end tokens */

typedef struct Teller {
    attn_tokenizer *tokens;
    attn_file weights;
    attn_pool *pool;
    story_ctx ctx;
    void *state, *workspace, *memory;
    size_t workspace_bytes, memory_bytes;
    attn_model model;
    story_generator generator;
    void *states[1];
    attn_generate_options how;
    bool times;
} Teller;

/* What is being told. */
typedef struct Telling {
    attn_tokenizer_stream *text;
    double showing; /* seconds, which are not the model's */
} Telling;

/* How a story begins. */
typedef struct Beginning {
    int32_t ids[STORY_SEQ];
    int count;
} Beginning;

static _Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
static _Noreturn void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("story: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs("\n", stderr);
    exit(1);
}

static void *must_have(void *memory) {
    if (!memory) die("out of memory");
    return memory;
}

static double now(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---------------------------------------------------------------- opening */

static void open_model(Teller *t, const char *weights, const char *tokens, int threads) {
    char why[256];
    t->tokens = attn_tokenizer_open(tokens, why, sizeof why);
    if (!t->tokens) die("the tokenizer: %s", why);
    if (attn_tokenizer_size(t->tokens) > STORY_VOCAB)
        die("%s does not belong to this model: it has ids up to %d, and the model %d tokens", tokens,
            (int)attn_tokenizer_size(t->tokens) - 1, STORY_VOCAB);
    int error = attn_load_file(weights, &t->weights);
    if (error) die("%s: %s", weights, strerror(error));
    t->pool = attn_pool_new(threads);
    if (!t->pool) die("cannot start %d threads: %s", threads, strerror(errno));
    story_options options = {.size = sizeof options, .threads = threads};
    options.parallel_for = attn_pool_run, options.pool = t->pool;
    int status = story_init(&t->ctx, t->weights.data, t->weights.size, &options);
    if (status) die("%s: %s", weights, story_status_text(status));
    t->workspace_bytes = STORY_DECODE_WORKSPACE_BYTES(threads);
    t->workspace = must_have(attn_alloc(t->workspace_bytes));
    t->states[0] = t->state = must_have(attn_alloc(STORY_STATE_BYTES));
    t->generator = (story_generator){&t->ctx, t->states, t->workspace, t->workspace_bytes, 0};
    t->model = story_generator_model(&t->generator, STORY_VOCAB, STORY_SEQ);
    t->memory_bytes = attn_generate_bytes(&t->model, &t->how);
    if (!t->memory_bytes) die("%s", attn_generate_status_text(ATTN_GENERATE_BAD_OPTION));
    t->memory = must_have(malloc(t->memory_bytes));
}

static void close_model(Teller *t) {
    free(t->memory);
    attn_free(t->state);
    attn_free(t->workspace);
    attn_pool_free(t->pool);
    attn_close_file(&t->weights);
    attn_tokenizer_free(t->tokens);
}

/* ---------------------------------------------------------------- telling */

/* A model may write anything; a terminal takes some of it for commands. */
static void put_text(const char *text, size_t size) {
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        bool command = (c < ' ' && c != '\n' && c != '\t') || c == 0x7f;
        putchar(command ? '?' : c);
    }
    fflush(stdout);
}

static void show(attn_tokenizer_stream *stream, int32_t id) {
    const char *text;
    const int size = attn_tokenizer_stream_feed(stream, id, &text);
    if (size < 0) die("%s", attn_tokenizer_error_text(size));
    put_text(text, (size_t)size);
}

static void show_rest(attn_tokenizer_stream *stream) {
    const char *text;
    const int size = attn_tokenizer_stream_finish(stream, &text);
    if (size < 0) die("%s", attn_tokenizer_error_text(size));
    put_text(text, (size_t)size);
}

static int on_token(void *with, int32_t token) {
    Telling *telling = with;
    double from = now();
    show(telling->text, token);
    telling->showing += now() - from;
    return ferror(stdout) != 0; /* nobody reads any more */
}

/* Sets the ids of a beginning, or says why it has none. The tokenizer puts the token before it that the model wants;
 * only a text without any token begins with the model's start token. */
static bool begin(const Teller *t, const char *text, size_t bytes, Beginning *beginning) {
    int32_t ids[STORY_SEQ + 1];
    int count = attn_tokenizer_encode(t->tokens, text, bytes, true, ids, STORY_SEQ + 1);
    if (count < 0) return fprintf(stderr, "story: %s\n", attn_tokenizer_error_text(count)), false;
    if (count >= STORY_SEQ) {
        fprintf(stderr, "story: the beginning is too long: the model holds %d tokens, with those that it adds\n",
                STORY_SEQ);
        return false;
    }
#ifdef STORY_START_TOKEN
    if (count == 0) ids[count++] = STORY_START_TOKEN;
#endif
    for (int i = 0; i < count; i++) beginning->ids[beginning->count++] = ids[i];
    if (beginning->count > 0) return true;
    fputs("story: an empty line: write how the story begins\n", stderr);
    return false;
}

/* Tells one story; false where it cannot begin like that. */
static bool tell(Teller *t, const char *text, size_t bytes) {
    Beginning prompt = {.count = 0};
    if (!begin(t, text, bytes, &prompt)) return false;
    int32_t made[STORY_SEQ];
    const int fed = prompt.count, room = STORY_SEQ - fed + 1;
    int status = story_state_init(t->state, STORY_STATE_BYTES);
    if (status) die("%s", story_status_text(status));
    attn_generate_options how = t->how;
    if (how.max_new > room) how.max_new = room;
    Telling telling = {.text = must_have(attn_tokenizer_stream_begin(t->tokens))};
    how.on_token = on_token;
    how.on_token_with = &telling;
    attn_generated result = {.size = sizeof result, .tokens = made};
    for (int i = 0; i < fed; i++) show(telling.text, prompt.ids[i]);
    double from = now();
    status = attn_generate(&t->model, &how, prompt.ids, fed, &result, t->memory, t->memory_bytes);
    double seconds = now() - from - telling.showing;
    show_rest(telling.text);
    attn_tokenizer_stream_free(telling.text);
    puts("");
    fflush(stdout); /* before the times, which go to standard error */
    if (status == ATTN_GENERATE_MODEL) die("%s", story_status_text(result.model_status));
    if (status && status != ATTN_GENERATE_STOPPED) die("%s", attn_generate_status_text(status));
    if (t->times)
        fprintf(stderr, "(%d tokens after %d, %.0f tokens/s, %.0f us each)\n", result.count, fed,
                (double)(fed + result.count - 1) / seconds, 1e6 * seconds / (double)(fed + result.count - 1));
    t->how.seed++; /* the same beginning goes on otherwise next time */
    return true;
}

/* Each line of standard input is a beginning. Of a line that is longer than any the rest is read and left out. */
static bool tell_lines(Teller *t, const char *prompt) {
    static char line[MOST_LINE];
    bool fine = true;
    for (int c = 0; c != EOF;) {
        if (*prompt) fputs(prompt, stdout), fflush(stdout);
        size_t size = 0;
        while ((c = getchar()) != EOF && c != '\n')
            if (c != '\r' && size < MOST_LINE) line[size++] = (char)c;
        if (c == EOF && size == 0) break;
        fine &= tell(t, line, size);
    }
    if (*prompt) puts("");
    return fine;
}

/* What ends a story: the model's own end tokens, and its start token, with which llama2.c's models begin another. */
static int fill_ends(int32_t *ends) {
    int count = 0;
#ifdef STORY_END_TOKENS
    static const int32_t own[] = STORY_END_TOKENS;
    for (size_t i = 0; i < sizeof own / sizeof *own && count < MOST_ENDS - 1; i++) ends[count++] = own[i];
#endif
#ifdef STORY_START_TOKEN
    bool known = false;
    for (int i = 0; i < count; i++) known |= ends[i] == STORY_START_TOKEN;
    if (!known) ends[count++] = STORY_START_TOKEN;
#endif
    return count;
}

/* ---------------------------------------------------------------- the command line */

static void print_help(void) {
    puts("usage: story --weights F.attnw --tokenizer F [options] [BEGINNING...]\n"
         "\n"
         "Continues each BEGINNING, or each line of standard input.\n"
         "\n"
         "  --tokenizer F    a tokenizer.json, a tokenizer.bin of llama2.c, or a GGUF file\n"
         "  --tokens N       at most N tokens (256)\n"
         "  --temperature T  how freely to choose: 0 takes the likeliest token (0.8)\n"
         "  --top-p P        chooses among the likeliest tokens of probability P together (0.9)\n"
         "  --seed N         of the choices (1); each story has the next one\n"
         "  --threads N      (1)\n"
         "  --ask            asks for one beginning after the other\n"
         "  --time           tells how many tokens a second there were");
}

static double number(const char *option, const char *text, double least, double most, bool whole_number) {
    char *end;
    double value = text ? strtod(text, &end) : NAN;
    if (!text || end == text || *end || !(value >= least && value <= most) || (whole_number && value != floor(value)))
        die("%s takes a %snumber from %g to %g", option, whole_number ? "whole " : "", least, most);
    return value;
}

int main(int argc, char **argv) {
    static Teller teller;
    static int32_t ends[MOST_ENDS];
    attn_generate_options *how = &teller.how;
    how->size = sizeof *how;
    how->end = ends, how->end_count = fill_ends(ends);
    how->max_new = 256 < STORY_SEQ ? 256 : STORY_SEQ;
    how->temperature = 0.8, how->top_p = 0.9, how->seed = 1;
    const char *weights = NULL, *tokens = NULL, *prompt = "";
    int threads = 1, first = 1;
    for (; first < argc && strncmp(argv[first], "--", 2) == 0; first++) {
        const char *option = argv[first], *value = first + 1 < argc ? argv[first + 1] : NULL;
        if (strcmp(option, "--help") == 0) return print_help(), 0;
        if (strcmp(option, "--ask") == 0) prompt = "beginning> ";
        else if (strcmp(option, "--time") == 0) teller.times = true;
        else {
            if (strcmp(option, "--weights") == 0) weights = value;
            else if (strcmp(option, "--tokenizer") == 0) tokens = value;
            else if (strcmp(option, "--tokens") == 0) how->max_new = (int)number(option, value, 1, STORY_SEQ, true);
            else if (strcmp(option, "--temperature") == 0) how->temperature = number(option, value, 0, 100, false);
            else if (strcmp(option, "--top-p") == 0) how->top_p = number(option, value, 0.001, 1, false);
            else if (strcmp(option, "--seed") == 0) how->seed = (uint64_t)number(option, value, 0, 1e15, true);
            else if (strcmp(option, "--threads") == 0) threads = (int)number(option, value, 1, 64, true);
            else die("what is '%s'? --help shows the options", option);
            first++;
        }
    }
    if (!weights || !tokens) die("%s is missing; --help shows the options", weights ? "--tokenizer" : "--weights");
    open_model(&teller, weights, tokens, threads);
    bool fine = true;
    for (int i = first; i < argc; i++) fine &= tell(&teller, argv[i], strlen(argv[i]));
    if (first == argc) fine = tell_lines(&teller, prompt) || *prompt;
    close_model(&teller);
    return fine && !ferror(stdout) ? 0 : 1;
}
