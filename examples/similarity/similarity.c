/* Ranks sentences by what they mean, with the C that `attnc compile specs/minilm.attn` writes.
 *
 *     similarity --weights minilm.attnw --vocab vocab.txt [--file F] [--threads N] [--target T] [--top N] [QUERY]
 *
 * The sentences of the file are embedded in one call. A query comes from the command line or, line by line, from
 * standard input; an empty line or the end of the input ends the program. Exit status: 0, or 1 after an error. */
#define _POSIX_C_SOURCE 200809L /* getline, clock_gettime, isatty */

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../runtime/attn_runtime.h"
#include "../common/wordpiece.h"
#include "minilm.h"

enum { WIDTH = 384 }; /* numbers of an embedding */

typedef struct Options {
    const char *weights, *vocab, *file, *target, *query;
    int threads, top;
    bool print_tokens, print_embeddings;
} Options;

typedef struct Text {
    char *utf8;
    size_t bytes;
} Text;

typedef struct Texts {
    Text *list;
    size_t count, capacity;
} Texts;

/* Token ids of several texts, one text after another. */
typedef struct Tokens {
    int32_t *ids, *lengths; /* [rows], [count] */
    size_t rows, count;
} Tokens;

typedef struct Embedder {
    wordpiece *vocab;
    attn_file weights;
    attn_pool *pool;
    minilm_ctx model;
    void *workspace;
    size_t workspace_bytes;
    bool told_truncation;
} Embedder;

typedef struct Ranked {
    float score;
    size_t text;
} Ranked;

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    fputs("similarity: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

static void *must_have(void *memory) {
    if (!memory) die("out of memory");
    return memory;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---------------------------------------------------------------- the command line */

static void print_help(void) {
    puts("usage: similarity --weights minilm.attnw --vocab vocab.txt [OPTIONS] [QUERY]\n"
         "\n"
         "Ranks the sentences of a file by how close they are in meaning to QUERY, or to each line of standard input.\n"
         "\n"
         "  --weights F          weights as attnc packs them\n"
         "  --vocab F            the vocabulary, a token a line\n"
         "  --file F             the sentences, one a line (default examples/similarity/sentences.txt)\n"
         "  --threads N          threads (default: the CPUs of this machine)\n"
         "  --target T           scalar, avx2 or avx512 (default: the best one of this machine)\n"
         "  --top N              sentences shown for a query (default 10)\n"
         "  --print-tokens       print the token ids of the sentences, a line each, and end\n"
         "  --print-embeddings   print the embeddings of the sentences, a line each, and end");
}

static int parse_count(const char *option, const char *text, int most) {
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < 1 || value > most)
        die("%s takes a number from 1 to %d, not '%s'", option, most, text);
    return (int)value;
}

/* Takes the value of one option that has one; false if `name` is no such option. */
static bool parse_valued(Options *options, const char *name, const char *value) {
    struct {
        const char *name, **text;
        int *count, most;
    } known[] = {
        {"--weights", &options->weights, NULL, 0},
        {"--vocab", &options->vocab, NULL, 0},
        {"--file", &options->file, NULL, 0},
        {"--target", &options->target, NULL, 0},
        {"--threads", NULL, &options->threads, ATTN_MAX_THREADS},
        {"--top", NULL, &options->top, INT_MAX},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(name, known[i].name) != 0) continue;
        if (!value) die("%s needs a value", name);
        if (known[i].text) *known[i].text = value;
        else *known[i].count = parse_count(name, value, known[i].most);
        return true;
    }
    return false;
}

static Options parse_options(int argc, char **argv) {
    Options options = {.file = "examples/similarity/sentences.txt", .top = 10};
    bool only_words = false;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (!only_words && word[0] == '-' && word[1] != '\0') {
            if (strcmp(word, "--") == 0) only_words = true;
            else if (strcmp(word, "--help") == 0) {
                print_help();
                exit(0);
            } else if (strcmp(word, "--print-tokens") == 0) options.print_tokens = true;
            else if (strcmp(word, "--print-embeddings") == 0) options.print_embeddings = true;
            else if (parse_valued(&options, word, argv[i + 1])) i++;
            else die("unknown option '%s'; --help shows them all", word);
        } else if (options.query) {
            die("one query at a time: put it in quotes");
        } else {
            options.query = word;
        }
    }
    if (!options.vocab) die("--vocab is missing; --help shows the options");
    if (!options.weights && !options.print_tokens) die("--weights is missing; --help shows the options");
    if (options.query && !*options.query) die("the query is empty");
    if (!options.threads) {
        int cpus = attn_cpu_count();
        options.threads = cpus < ATTN_MAX_THREADS ? cpus : ATTN_MAX_THREADS;
    }
    return options;
}

/* ---------------------------------------------------------------- texts */

/* The next line without its line end; false at the end of the file. The caller frees text->utf8. */
static bool read_line(FILE *file, const char *name, Text *text) {
    char *line = NULL;
    size_t capacity = 0;
    errno = 0;
    ssize_t length = getline(&line, &capacity, file);
    if (length < 0) {
        int error = errno;
        free(line);
        if (ferror(file) || error == ENOMEM) die("%s: %s", name, strerror(error));
        return false;
    }
    size_t bytes = (size_t)length;
    while (bytes > 0 && (line[bytes - 1] == '\n' || line[bytes - 1] == '\r')) bytes--;
    *text = (Text){line, bytes};
    return true;
}

/* The lines of the file that are not empty, at least one. */
static Texts read_texts(const char *path) {
    FILE *file = fopen(path, "r");
    if (!file) die("%s: %s", path, strerror(errno));
    Texts texts = {0};
    Text text;
    while (read_line(file, path, &text)) {
        if (text.bytes == 0) {
            free(text.utf8);
            continue;
        }
        if (texts.count == texts.capacity) {
            texts.capacity = texts.capacity ? 2 * texts.capacity : 64;
            texts.list = must_have(realloc(texts.list, texts.capacity * sizeof *texts.list));
        }
        texts.list[texts.count++] = text;
    }
    fclose(file);
    if (texts.count == 0) die("%s: no sentences", path);
    if (texts.count > INT_MAX) die("%s: too many sentences", path);
    return texts;
}

static void free_texts(Texts *texts) {
    for (size_t i = 0; i < texts->count; i++) free(texts->list[i].utf8);
    free(texts->list);
}

/* ---------------------------------------------------------------- from text to numbers */

static void open_vocab(Embedder *embedder, const Options *options) {
    char error[256];
    embedder->vocab = wordpiece_open(options->vocab, error, sizeof error);
    if (!embedder->vocab) die("the vocabulary: %s", error);
}

static void open_model(Embedder *embedder, const Options *options) {
    int error = attn_map_file(options->weights, &embedder->weights);
    if (error) die("%s: %s", options->weights, strerror(error));
    embedder->pool = attn_pool_new(options->threads);
    if (!embedder->pool) die("cannot start %d threads: %s", options->threads, strerror(errno));

    minilm_options how = {
        .size = sizeof how,
        .target = options->target,
        .threads = options->threads,
        .parallel_for = attn_pool_run,
        .pool = embedder->pool,
    };
    int status = minilm_init(&embedder->model, embedder->weights.data, embedder->weights.size, &how);
    if (status == MINILM_NO_TARGET && options->target)
        die("target '%s': %s", options->target, minilm_status_text(status));
    if (status) die("%s: %s", options->weights, minilm_status_text(status));

    embedder->workspace_bytes = MINILM_WORKSPACE_BYTES(options->threads);
    embedder->workspace = must_have(attn_alloc(embedder->workspace_bytes));
}

static void close_embedder(Embedder *embedder) {
    attn_free(embedder->workspace);
    attn_pool_free(embedder->pool);
    attn_unmap_file(&embedder->weights);
    wordpiece_free(embedder->vocab);
}

static Tokens tokenize(Embedder *embedder, const Text *texts, size_t count) {
    enum { TOO_LONG = MINILM_SEQ + 1 };
    Tokens tokens = {.lengths = must_have(malloc(count * sizeof *tokens.lengths)), .count = count};
    size_t capacity = 0;
    for (size_t i = 0; i < count; i++) {
        if (capacity - tokens.rows < TOO_LONG) {
            capacity = 2 * capacity + TOO_LONG;
            tokens.ids = must_have(realloc(tokens.ids, capacity * sizeof *tokens.ids));
        }
        int32_t *ids = tokens.ids + tokens.rows;
        int length = wordpiece_encode(embedder->vocab, texts[i].utf8, texts[i].bytes, ids, TOO_LONG);
        if (length == TOO_LONG) {
            length = wordpiece_encode(embedder->vocab, texts[i].utf8, texts[i].bytes, ids, MINILM_SEQ);
            if (!embedder->told_truncation)
                fprintf(stderr, "similarity: texts of more than %d tokens are cut there\n", MINILM_SEQ);
            embedder->told_truncation = true;
        }
        tokens.lengths[i] = (int32_t)length;
        tokens.rows += (size_t)length;
    }
    return tokens;
}

static void free_tokens(Tokens *tokens) {
    free(tokens->ids);
    free(tokens->lengths);
}

/* One call for all texts; gives [count][WIDTH], rows of length one. The caller frees it. */
static float *embed(Embedder *embedder, const Tokens *tokens) {
    float *embeddings = must_have(malloc(tokens->count * WIDTH * sizeof *embeddings));
    minilm_input input = {
        .size = sizeof input,
        .batch = (int)tokens->count,
        .lengths = tokens->lengths,
        .tokens = tokens->ids,
    };
    minilm_output output = {.size = sizeof output, .pooled = embeddings};
    int status = minilm_forward(&embedder->model, &input, &output, embedder->workspace, embedder->workspace_bytes);
    if (status == MINILM_BAD_TOKEN) die("the vocabulary does not belong to this model: it has more tokens");
    if (status) die("%s", minilm_status_text(status));
    return embeddings;
}

static float *embed_and_tell(Embedder *embedder, const Text *texts, size_t count) {
    double begin = seconds();
    Tokens tokens = tokenize(embedder, texts, count);
    double tokenized = seconds();
    float *embeddings = embed(embedder, &tokens);
    double end = seconds();
    printf("%zu text%s, %zu tokens: tokenizing %.3f ms, embedding %.3f ms, %.0f texts/s\n", count,
           count == 1 ? "" : "s", tokens.rows, 1e3 * (tokenized - begin), 1e3 * (end - tokenized),
           (double)count / (end - begin));
    free_tokens(&tokens);
    return embeddings;
}

/* ---------------------------------------------------------------- ranking */

/* Best score first, NaN last, the order of the file among equals. */
static int compare_ranked(const void *left, const void *right) {
    const Ranked *a = left, *b = right;
    bool a_nan = isnan(a->score), b_nan = isnan(b->score);
    if (a_nan != b_nan) return a_nan ? 1 : -1;
    if (a->score > b->score) return -1;
    if (a->score < b->score) return 1;
    return a->text < b->text ? -1 : 1;
}

/* The embeddings have length one, so that their dot product is the cosine of the angle between them. */
static float cosine(const float *a, const float *b) {
    double sum = 0;
    for (int i = 0; i < WIDTH; i++) sum += (double)a[i] * (double)b[i];
    return (float)sum;
}

/* Bytes of a text to print: at most 200, and no half of a character. */
static int shown_bytes(const Text *text) {
    if (text->bytes <= 200) return (int)text->bytes;
    int bytes = 200;
    while (bytes > 0 && ((unsigned char)text->utf8[bytes] & 0xC0) == 0x80) bytes--;
    return bytes;
}

static void answer(Embedder *embedder, const Options *options, const Texts *texts, const float *embeddings,
                   Text query) {
    float *wanted = embed_and_tell(embedder, &query, 1);
    Ranked *ranked = must_have(malloc(texts->count * sizeof *ranked));
    for (size_t i = 0; i < texts->count; i++) ranked[i] = (Ranked){cosine(wanted, embeddings + i * WIDTH), i};
    qsort(ranked, texts->count, sizeof *ranked, compare_ranked);
    for (size_t i = 0; i < texts->count && i < (size_t)options->top; i++) {
        const Text *text = &texts->list[ranked[i].text];
        printf("%8.4f  %.*s\n", (double)ranked[i].score, shown_bytes(text), text->utf8);
    }
    fflush(stdout);
    free(ranked);
    free(wanted);
}

static void answer_lines(Embedder *embedder, const Options *options, const Texts *texts, const float *embeddings) {
    bool terminal = isatty(STDIN_FILENO);
    bool more = true;
    while (more) {
        if (terminal) {
            fputs("\nquery (an empty line ends): ", stdout);
            fflush(stdout);
        }
        Text query;
        if (!read_line(stdin, "standard input", &query)) break;
        more = query.bytes > 0;
        if (more && !terminal) printf("\n> %.*s\n", shown_bytes(&query), query.utf8);
        if (more) answer(embedder, options, texts, embeddings, query);
        free(query.utf8);
    }
}

/* ---------------------------------------------------------------- what tests compare */

static void print_tokens(Embedder *embedder, const Texts *texts) {
    Tokens tokens = tokenize(embedder, texts->list, texts->count);
    const int32_t *id = tokens.ids;
    for (size_t i = 0; i < tokens.count; i++)
        for (int32_t left = tokens.lengths[i]; left > 0; left--) printf("%d%c", *id++, left == 1 ? '\n' : ' ');
    free_tokens(&tokens);
}

static void print_embeddings(Embedder *embedder, const Texts *texts) {
    Tokens tokens = tokenize(embedder, texts->list, texts->count);
    float *embeddings = embed(embedder, &tokens);
    for (size_t i = 0; i < texts->count * WIDTH; i++)
        printf("%.9g%c", (double)embeddings[i], i % WIDTH == WIDTH - 1 ? '\n' : ' ');
    free(embeddings);
    free_tokens(&tokens);
}

int main(int argc, char **argv) {
    Options options = parse_options(argc, argv);
    Embedder embedder = {0};
    open_vocab(&embedder, &options);
    if (!options.print_tokens) open_model(&embedder, &options);
    Texts texts = read_texts(options.file);

    if (options.print_tokens) {
        print_tokens(&embedder, &texts);
    } else if (options.print_embeddings) {
        print_embeddings(&embedder, &texts);
    } else {
        printf("%s, %d thread%s\n", minilm_target(&embedder.model), options.threads, options.threads == 1 ? "" : "s");
        float *embeddings = embed_and_tell(&embedder, texts.list, texts.count);
        if (options.query) {
            char *utf8 = must_have(strdup(options.query));
            answer(&embedder, &options, &texts, embeddings, (Text){utf8, strlen(utf8)});
            free(utf8);
        } else {
            answer_lines(&embedder, &options, &texts, embeddings);
        }
        free(embeddings);
    }

    free_texts(&texts);
    close_embedder(&embedder);
    if (ferror(stdout) || fflush(stdout)) die("cannot write: %s", strerror(errno));
    return 0;
}
