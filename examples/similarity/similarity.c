/* Embeds the lines of a file and ranks them by what they mean, with the C that `attnc compile specs/minilm.attn`
 * writes. --help says how it is used. Exit status: 0, or 1 after an error. */
#define _POSIX_C_SOURCE 200809L /* strndup, isatty, fdopen */
#define _FILE_OFFSET_BITS 64

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "embedder.h"
#include "progress.h"

typedef struct Options {
    const char *weights, *vocab, *file, *target, *query, *output;
    int threads, top;
    bool time, print_tokens, print_embeddings;
} Options;

/* Seconds, and what was done in them. */
typedef struct Times {
    double reading, tokenizing, embedding, taking;
    size_t texts, tokens;
} Times;

/* Texts that were not taken whole. */
typedef struct Cuts {
    size_t count, first_line; /* line 0: of no file */
} Cuts;

/* ---------------------------------------------------------------- the command line */

static void print_help(void) {
    puts("usage: similarity --weights minilm.attnw --vocab vocab.txt [OPTIONS] [QUERY]\n"
         "\n"
         "Embeds the texts of a file, one a line, and shows those closest in meaning to QUERY, or to each line of\n"
         "standard input up to an empty one. With -o it writes the embeddings instead.\n"
         "\n"
         "  --weights F          weights as attnc packs them\n"
         "  --vocab F            the vocabulary, a token a line\n"
         "  --file F             the texts, one a line; - is standard input\n"
         "                       (default examples/similarity/sentences.txt)\n"
         "  --top N              texts shown for a query (default 10)\n"
         "  -o F                 write the embeddings to F, 384 32-bit floats a line, in the order of the file: a\n"
         "                       NumPy array if F ends in .npy, else the bare numbers; - is standard output\n"
         "  --time               print texts, tokens, times and texts/s to standard error, without the time that\n"
         "                       loading the model takes\n"
         "  --threads N          threads (default: the CPUs of this machine)\n"
         "  --target T           scalar, avx2 or avx512 (default: the best one of this machine)\n"
         "  --print-tokens       print the token ids of the texts, a line each, and end\n"
         "  --print-embeddings   print the embeddings of the texts, a line each, and end\n"
         "\n"
         "A text of more than 512 tokens or 1 MiB is cut there, which is told. Bytes that are not UTF-8 are skipped.\n"
         "Blank lines are no texts, but -o writes a row for them too, so that row N is that of line N.\n"
         "With QUERY or -o a file may be of any size: memory does not grow with it.");
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
        {"-o", &options->output, NULL, 0},
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

static void check_options(const Options *options) {
    if (!options->vocab) die("--vocab is missing; --help shows the options");
    if (!options->weights && !options->print_tokens) die("--weights is missing; --help shows the options");
    if (options->query && !*options->query) die("the query is empty");
    int instead = (options->output != NULL) + options->print_tokens + options->print_embeddings;
    if (instead > 1) die("one of -o, --print-tokens and --print-embeddings at a time");
    if (instead && options->query) die("a query goes with none of -o, --print-tokens and --print-embeddings");
    if (!instead && !options->query && strcmp(options->file, "-") == 0)
        die("standard input holds the texts: the query belongs on the command line");
    if (options->output && strcmp(options->output, "-") == 0 && isatty(STDOUT_FILENO))
        die("-o -: bare numbers are not for a terminal");
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
            } else if (strcmp(word, "--time") == 0) options.time = true;
            else if (strcmp(word, "--print-tokens") == 0) options.print_tokens = true;
            else if (strcmp(word, "--print-embeddings") == 0) options.print_embeddings = true;
            else if (parse_valued(&options, word, argv[i + 1])) i++;
            else die("unknown option '%s'; --help shows them all", word);
        } else if (options.query) {
            die("one query at a time: put it in quotes");
        } else {
            options.query = word;
        }
    }
    check_options(&options);
    if (!options.threads) {
        int cpus = attn_cpu_count();
        options.threads = cpus < ATTN_MAX_THREADS ? cpus : ATTN_MAX_THREADS;
    }
    return options;
}

/* ---------------------------------------------------------------- from a file to embeddings */

static void count_cuts(const Texts *texts, Cuts *cuts) {
    for (size_t i = 0; i < texts->count; i++) {
        if (!texts->list[i].cut) continue;
        if (cuts->count++ == 0) cuts->first_line = texts->list[i].line;
    }
}

static void tell_cuts(const char *name, const Cuts *cuts) {
    if (cuts->count == 0) return;
    fprintf(stderr, "similarity: %s", name);
    if (cuts->first_line) fprintf(stderr, ":%zu", cuts->first_line);
    fprintf(stderr, ": texts of more than %d tokens or %d MiB are cut there", MINILM_SEQ, MAX_TEXT_BYTES >> 20);
    if (cuts->count > 1) fprintf(stderr, "; %zu lines in all", cuts->count);
    fputc('\n', stderr);
}

static void tell_times(const Times *times) {
    double all = times->reading + times->tokenizing + times->embedding + times->taking;
    fprintf(stderr, "%zu text%s, %zu tokens: tokenizing %.3f ms, embedding %.3f ms, %.0f texts/s\n", times->texts,
            times->texts == 1 ? "" : "s", times->tokens, 1e3 * times->tokenizing, 1e3 * times->embedding,
            times->texts ? (double)times->texts / all : 0);
}

/* A text that is cut may go on with more than blanks. */
static bool is_blank(const Texts *texts, const Text *text) {
    if (text->cut) return false;
    for (size_t i = 0; i < text->bytes; i++)
        if (!memchr(" \t\r\v\f", texts->utf8[text->begin + i], 5)) return false;
    return true;
}

/* The next texts of the file; false when there are none. */
static bool read_batch(Reader *reader, bool keep_blank, Texts *texts) {
    texts_clear(texts);
    while (texts->count < BATCH_TEXTS && texts->bytes < BATCH_BYTES && reader_next(reader, texts)) {
        const Text *last = &texts->list[texts->count - 1];
        if (keep_blank || !is_blank(texts, last)) continue;
        texts->bytes = last->begin;
        texts->count--;
    }
    return texts->count > 0;
}

/* Calls take(with, batch) for all texts of the file, in its order. */
static void embed_file(Embedder *embedder, const Options *options, void (*take)(void *, const Batch *), void *with) {
    static Reader reader;
    Batch batch = {0};
    Times times = {0};
    Cuts cuts = {0};
    reader_open(&reader, options->file);
    progress_begin();
    double from = reader_fraction(&reader), began = seconds();
    while (read_batch(&reader, options->output != NULL, &batch.texts)) {
        double read = seconds(), to = reader_fraction(&reader);
        tokenize(embedder, &batch);
        double tokenized = seconds();
        if (!options->print_tokens) embed(embedder, &batch, times.texts, from, to);
        double embedded = seconds();
        count_cuts(&batch.texts, &cuts);
        take(with, &batch);
        times.reading += read - began;
        times.tokenizing += tokenized - read;
        times.embedding += embedded - tokenized;
        began = seconds();
        times.taking += began - embedded;
        times.texts += batch.texts.count;
        times.tokens += batch.rows;
        from = to;
    }
    progress_end();
    tell_cuts(reader.name, &cuts);
    if (times.texts == 0 && !options->output) die("%s: no texts", reader.name);
    if (options->time) tell_times(&times);
    batch_free(&batch);
    reader_close(&reader);
}

/* Leaves the embedding of the query, one text, in the batch. */
static void embed_query(Embedder *embedder, const Options *options, const char *name, Batch *query) {
    double began = seconds();
    tokenize(embedder, query);
    double tokenized = seconds();
    embed(embedder, query, 0, -1, -1);
    Times times = {0, tokenized - began, seconds() - tokenized, 0, 1, query->rows};
    Cuts cuts = {0};
    count_cuts(&query->texts, &cuts);
    tell_cuts(name, &cuts);
    if (options->time) tell_times(&times);
}

/* ---------------------------------------------------------------- ranking */

enum { SHOWN_BYTES = 200 }; /* of a text */

typedef struct Ranked {
    float score;
    size_t text; /* counted over the whole file */
    char *shown;
} Ranked;

/* The best `top` of the texts offered so far are in the list, and others that were better than some when they came.
 * Once it was trimmed the first `top` of it stand in order. */
typedef struct Best {
    const float *query;
    Ranked *list;
    size_t top, count, capacity, offered;
    bool trimmed;
} Best;

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

/* Bytes of a text to print, with no half of a character. */
static size_t shown_bytes(const char *utf8, size_t bytes) {
    if (bytes <= SHOWN_BYTES) return bytes;
    bytes = SHOWN_BYTES;
    while (bytes > 0 && ((unsigned char)utf8[bytes] & 0xC0) == 0x80) bytes--;
    return bytes;
}

static void trim(Best *best) {
    if (best->count > 1) qsort(best->list, best->count, sizeof *best->list, compare_ranked);
    while (best->count > best->top) free(best->list[--best->count].shown);
    best->trimmed = best->count == best->top;
}

static void offer(Best *best, float score, const char *utf8, size_t bytes) {
    Ranked candidate = {score, best->offered++, NULL};
    if (best->trimmed && compare_ranked(&candidate, &best->list[best->top - 1]) > 0) return;
    if (best->count == best->capacity) {
        best->capacity = best->capacity ? 2 * best->capacity : 64;
        best->list = must_have(realloc(best->list, best->capacity * sizeof *best->list));
    }
    candidate.shown = must_have(strndup(utf8, shown_bytes(utf8, bytes)));
    best->list[best->count++] = candidate;
    if (best->count == 2 * best->top) trim(best); /* rare enough for a sort */
}

static void offer_all(Best *best, const Texts *texts, const float *embeddings) {
    for (size_t i = 0; i < texts->count; i++) {
        const Text *text = &texts->list[i];
        offer(best, cosine(best->query, embeddings + i * WIDTH), texts->utf8 + text->begin, text->bytes);
    }
}

static void take_best(void *with, const Batch *batch) {
    offer_all(with, &batch->texts, batch->embeddings);
}

/* Control characters of a stranger's text could give a terminal orders. */
static void print_text(const char *text) {
    bool terminal = isatty(STDOUT_FILENO);
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        putchar(terminal && (byte < ' ' || byte == 0x7F) ? '?' : byte);
    }
    putchar('\n');
}

static void print_best(Best *best) {
    trim(best);
    for (size_t i = 0; i < best->count; i++) {
        printf("%8.4f  ", (double)best->list[i].score);
        print_text(best->list[i].shown);
        free(best->list[i].shown);
    }
    fflush(stdout);
    free(best->list);
}

static void answer_one(Embedder *embedder, const Options *options) {
    Batch query = {0};
    texts_add(&query.texts, options->query, strlen(options->query), 0);
    embed_query(embedder, options, "the query", &query);
    Best best = {.query = query.embeddings, .top = (size_t)options->top};
    embed_file(embedder, options, take_best, &best);
    print_best(&best);
    batch_free(&query);
}

/* All texts of the file: queries to come need them. */
typedef struct Store {
    Texts texts;
    float *embeddings;
    size_t capacity;
} Store;

static void take_stored(void *with, const Batch *batch) {
    Store *store = with;
    const Texts *from = &batch->texts;
    size_t count = store->texts.count + from->count;
    if (count > store->capacity) {
        store->capacity = 2 * store->capacity > count ? 2 * store->capacity : count;
        store->embeddings = must_have(realloc(store->embeddings, store->capacity * WIDTH * sizeof *store->embeddings));
    }
    memcpy(store->embeddings + store->texts.count * WIDTH, batch->embeddings,
           from->count * WIDTH * sizeof *batch->embeddings);
    for (size_t i = 0; i < from->count; i++) {
        const char *utf8 = from->utf8 + from->list[i].begin;
        texts_add(&store->texts, utf8, shown_bytes(utf8, from->list[i].bytes), from->list[i].line);
    }
}

static void answer_lines(Embedder *embedder, const Options *options) {
    static Reader lines;
    Store store = {0};
    embed_file(embedder, options, take_stored, &store);
    reader_open(&lines, "-");
    bool terminal = isatty(STDIN_FILENO);
    Batch query = {0};
    for (;;) {
        if (terminal) fputs("\nquery (an empty line ends): ", stdout);
        fflush(stdout);
        texts_clear(&query.texts);
        if (!reader_next(&lines, &query.texts) || is_blank(&query.texts, query.texts.list)) break;
        const Text *text = query.texts.list;
        if (!terminal) printf("\n> %.*s\n", (int)shown_bytes(query.texts.utf8, text->bytes), query.texts.utf8);
        embed_query(embedder, options, lines.name, &query);
        Best best = {.query = query.embeddings, .top = (size_t)options->top};
        offer_all(&best, &store.texts, store.embeddings);
        print_best(&best);
    }
    batch_free(&query);
    texts_free(&store.texts);
    free(store.embeddings);
}

/* ---------------------------------------------------------------- writing */

enum { NPY_HEADER = 128 }; /* the format wants a multiple of 64 */

typedef struct Output {
    const char *path;
    FILE *file;
    bool npy;
    size_t rows;
} Output;

static bool same_file(const char *path, const struct stat *other) {
    struct stat status;
    return stat(path, &status) == 0 && status.st_dev == other->st_dev && status.st_ino == other->st_ino;
}

/* Opening the file empties it, so it may not be one that is still to be read. */
static void refuse_inputs(const Options *options) {
    struct stat status;
    if (stat(options->output, &status) != 0 || !S_ISREG(status.st_mode)) return;
    const char *inputs[] = {options->weights, options->vocab, options->file};
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++)
        if (same_file(inputs[i], &status)) die("-o %s would write over what is read", options->output);
    struct stat standard;
    if (strcmp(options->file, "-") == 0 && fstat(STDIN_FILENO, &standard) == 0 && standard.st_dev == status.st_dev &&
        standard.st_ino == status.st_ino)
        die("-o %s would write over what is read", options->output);
}

static void take_rows(void *with, const Batch *batch) {
    Output *output = with;
    size_t numbers = batch->texts.count * WIDTH;
    if (fwrite(batch->embeddings, sizeof *batch->embeddings, numbers, output->file) != numbers)
        die("%s: %s", output->path, strerror(errno));
    output->rows += batch->texts.count;
}

/* Zeros stand for the header until the number of rows is known: a file left unfinished is no .npy. */
static void begin_npy(const Output *output) {
    char zeros[NPY_HEADER] = {0};
    if (fseeko(output->file, 0, SEEK_SET) != 0)
        die("%s: a .npy begins with its number of rows, which this output cannot go back to", output->path);
    if (fwrite(zeros, 1, NPY_HEADER, output->file) != NPY_HEADER) die("%s: %s", output->path, strerror(errno));
}

static void end_npy(const Output *output) {
    char header[NPY_HEADER + 1];
    enum { PRELUDE = 10, REST = NPY_HEADER - PRELUDE };
    char text[REST];
    snprintf(text, sizeof text, "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %d), }", output->rows, WIDTH);
    snprintf(header + PRELUDE, REST + 1, "%-*s\n", REST - 1, text);
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = REST;
    header[9] = 0;
    if (fseeko(output->file, 0, SEEK_SET) != 0 || fwrite(header, 1, NPY_HEADER, output->file) != NPY_HEADER)
        die("%s: %s", output->path, strerror(errno));
}

static void write_embeddings(Embedder *embedder, const Options *options) {
    size_t length = strlen(options->output);
    bool standard = strcmp(options->output, "-") == 0;
    Output output = {.path = standard ? "standard output" : options->output};
    output.npy = length >= 4 && strcmp(options->output + length - 4, ".npy") == 0;
    if (!standard) refuse_inputs(options);
    output.file = standard ? stdout : fopen(options->output, "wb");
    if (!output.file) die("%s: %s", output.path, strerror(errno));
    if (output.npy) begin_npy(&output);
    embed_file(embedder, options, take_rows, &output);
    if (output.npy) end_npy(&output);
    int closed = standard ? fflush(stdout) : fclose(output.file);
    if (closed != 0) die("%s: %s", output.path, strerror(errno));
}

static void print_tokens(void *with, const Batch *batch) {
    (void)with;
    const int32_t *id = batch->ids;
    for (size_t i = 0; i < batch->texts.count; i++)
        for (int32_t left = batch->lengths[i]; left > 0; left--) printf("%d%c", *id++, left == 1 ? '\n' : ' ');
}

static void print_embeddings(void *with, const Batch *batch) {
    (void)with;
    for (size_t i = 0; i < batch->texts.count * WIDTH; i++)
        printf("%.9g%c", (double)batch->embeddings[i], i % WIDTH == WIDTH - 1 ? '\n' : ' ');
}

int main(int argc, char **argv) {
    Options options = parse_options(argc, argv);
    Embedder embedder;
    embedder_open(&embedder, options.vocab, options.print_tokens ? NULL : options.weights, options.target,
                  options.threads);
    if (options.time && !options.print_tokens) {
        embedder_warm(&embedder);
        fprintf(stderr, "%s, %d thread%s\n", minilm_target(&embedder.together), options.threads,
                options.threads == 1 ? "" : "s");
    }

    if (options.print_tokens) embed_file(&embedder, &options, print_tokens, NULL);
    else if (options.print_embeddings) embed_file(&embedder, &options, print_embeddings, NULL);
    else if (options.output) write_embeddings(&embedder, &options);
    else if (options.query) answer_one(&embedder, &options);
    else answer_lines(&embedder, &options);

    embedder_close(&embedder);
    if (ferror(stdout) || fflush(stdout)) die("cannot write: %s", strerror(errno));
    return 0;
}
