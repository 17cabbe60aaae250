/* Turns dates as people write them into ISO 8601, character by character, with the C that `attnc compile dates.attn`
 * writes. --help says how it is used. Exit status: 0, or 1 after an error. */
#include "dates.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Ids of characters, 0 being any other; train.py has the same. The start and the end of a text come behind them. */
static const char symbols[] = " 0123456789abcdefghijklmnopqrstuvwxyz',-./";
enum { START = sizeof symbols, END, ISO_LENGTH = 10 };
static const double SURE = 0.9; /* what is less probable is no date */

/* Everything that a translation needs: nothing is allocated. */
typedef struct Translator {
    dates_ctx ctx;
    _Alignas(DATES_ALIGNMENT) unsigned char source[DATES_SOURCE_BYTES], state[DATES_STATE_BYTES];
    _Alignas(DATES_ALIGNMENT) unsigned char encode_workspace[DATES_ENCODE_WORKSPACE_BYTES(1)];
    _Alignas(DATES_ALIGNMENT) unsigned char decode_workspace[DATES_DECODE_WORKSPACE_BYTES(1)];
} Translator;

typedef struct Translation {
    int32_t source[DATES_SOURCE_SEQ], target[ISO_LENGTH + 2]; /* ids: of the text; START and what came out */
    int32_t length, steps;
    char iso[ISO_LENGTH + 1];
    double probability; /* of all its characters; 0: it is no date */
    double encoding, decoding; /* seconds */
} Translation;

static double now(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int32_t id_of(char c) {
    if (c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
    const char *at = c ? strchr(symbols, c) : NULL;
    return at ? (int32_t)(at - symbols) + 1 : 0;
}

/* The likeliest id of a row of logits; *probability is multiplied by its softmax. */
static int32_t likeliest(const float *logits, double *probability) {
    int32_t best = 0;
    for (int32_t i = 1; i < DATES_VOCAB; i++)
        if (logits[i] > logits[best]) best = i;
    double sum = 0;
    for (int i = 0; i < DATES_VOCAB; i++) sum += exp((double)logits[i] - (double)logits[best]);
    *probability /= sum;
    return best;
}

/* Four digits, two, two; and the calendar has that day. */
static bool is_date(const char *iso) {
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year, month, day, length = 0;
    if (sscanf(iso, "%4d-%2d-%2d%n", &year, &month, &day, &length) != 3 || length != ISO_LENGTH) return false;
    if (strspn(iso, "0123456789-") != ISO_LENGTH || month < 1 || month > 12 || day < 1) return false;
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return day <= days[month - 1] + (month == 2 && leap);
}

/* ---------------------------------------------------------------- what `attnc map` reads */

/* FOLDER/NAME.npy, a NumPy array of ids, and FOLDER/NAME.txt, what stands for each on the page, a line each. */
static bool save_ids(const char *folder, const char *name, const int32_t *ids, const int32_t *shown, int32_t count) {
    char path[512], header[119];
    snprintf(path, sizeof path, "%s/%s.npy", folder, name);
    FILE *array = fopen(path, "wb");
    snprintf(path, sizeof path, "%s/%s.txt", folder, name);
    FILE *labels = fopen(path, "wb");
    bool fine = array && labels;
    if (fine) {
        snprintf(header, sizeof header, "{'descr': '<i4', 'fortran_order': False, 'shape': (%d,), }", (int)count);
        fprintf(array, "\x93NUMPY%c%c%c%c%-117s\n", 1, 0, 118, 0, header);
        for (int32_t i = 0; i < count; i++) {
            for (int byte = 0; byte < 4; byte++) putc(ids[i] >> 8 * byte & 255, array);
            if (shown[i] == END) fputs("end\n", labels);
            else fprintf(labels, "%c\n", shown[i] > 0 && shown[i] < START ? symbols[shown[i] - 1] : '?');
        }
    }
    if (array) fine &= fclose(array) == 0;
    if (labels) fine &= fclose(labels) == 0;
    return fine;
}

/* FOLDER/NAME.txt, a text that stands above the maps. */
static bool save_text(const char *folder, const char *name, const char *text, size_t length) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s.txt", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file) return false;
    bool fine = fwrite(text, 1, length, file) == length;
    return fclose(file) == 0 && fine;
}

/* ---------------------------------------------------------------- translation */

/* Translates 1 to DATES_SOURCE_SEQ characters: the encoder once, then the decoder step by step. */
static int translate(Translator *t, const char *text, int32_t length, Translation *result) {
    int32_t token = START;
    *result = (Translation){.probability = 1, .length = length};
    for (int32_t i = 0; i < length; i++) result->source[i] = id_of(text[i]);
    void *sources[] = {t->source}, *states[] = {t->state};
    float logits[DATES_VOCAB];
    dates_source input = {.size = sizeof input, .batch = 1, .lengths = &length, .source = result->source};
    dates_encoded nothing = {.size = sizeof nothing};
    dates_decoded output = {.size = sizeof output, .logits = logits};
    double begin = now();
    int status = dates_encode(&t->ctx, &input, &nothing, sources, t->encode_workspace, sizeof t->encode_workspace);
    if (!status) status = dates_state_init(t->state, sizeof t->state, t->source);
    double encoded = now();
    for (int count = 0; !status && count <= ISO_LENGTH; count++) {
        result->target[count] = token;
        status = dates_step(&t->ctx, states, &token, 1, &output, t->decode_workspace, sizeof t->decode_workspace);
        if (status) break;
        result->target[count + 1] = token = likeliest(logits, &result->probability);
        result->steps = count + 1;
        if (token == END) break;
        if (count < ISO_LENGTH) result->iso[count] = token > 0 && token < START ? symbols[token - 1] : '?';
    }
    result->encoding = encoded - begin, result->decoding = now() - encoded;
    if (token != END || !is_date(result->iso)) result->probability = 0;
    return status;
}

/* ---------------------------------------------------------------- lines */

typedef struct Show {
    bool echo, times;
    const char *prompt, *map; /* "" and NULL: none; the folder that takes what `attnc map` reads of the last date */
} Show;

/* `line` is only there as far as the model reads. */
static int answer(Translator *t, const char *line, size_t length, const Show *show) {
    if (length > DATES_SOURCE_SEQ) {
        printf("(%zu characters: a date takes at most %d)\n", length, DATES_SOURCE_SEQ);
        return 0;
    }
    if (strspn(line, " \t") >= length) {
        puts("(an empty line: write a date, as you would on paper)");
        return 0;
    }
    Translation result;
    int status = translate(t, line, (int32_t)length, &result);
    if (status) {
        fprintf(stderr, "dates: %s\n", dates_status_text(status));
        return 1;
    }
    bool found = result.probability >= SURE;
    printf("%s", found ? result.iso : "(no date that I can read)");
    if (show->times && found) printf("   %.1f %% sure", 100 * result.probability);
    if (show->times) printf("   encoder %.0f us, decoder %.0f us", 1e6 * result.encoding, 1e6 * result.decoding);
    puts("");
    if (!show->map || !found) return 0;
    /* a row of the decoder stands for the character that it gives */
    if (save_ids(show->map, "source", result.source, result.source, result.length) &&
        save_ids(show->map, "target", result.target, result.target + 1, result.steps) &&
        save_text(show->map, "text", line, length) && save_text(show->map, "answer", result.iso, strlen(result.iso)))
        return 0;
    fprintf(stderr, "dates: %s: cannot be written\n", show->map);
    return 1;
}

/* The beginning of a line in a column, with ? for what a terminal might take for a command. */
static void echo(const char *line, size_t length) {
    char shown[DATES_SOURCE_SEQ + 1] = "";
    for (size_t i = 0; i < length && i < DATES_SOURCE_SEQ; i++)
        shown[i] = line[i] >= ' ' && line[i] <= '~' ? line[i] : '?';
    printf("%-34s ", shown);
}

/* Answers each line of a file. A line may be of any length: what is too long for a date is read and only counted. */
static int answer_lines(Translator *t, FILE *file, const Show *show) {
    for (int c = 0; c != EOF;) {
        if (*show->prompt) fputs(show->prompt, stdout), fflush(stdout);
        char line[DATES_SOURCE_SEQ + 1] = "";
        size_t length = 0;
        while ((c = getc(file)) != EOF && c != '\n')
            if (c != '\r') {
                if (length < DATES_SOURCE_SEQ) line[length] = (char)c;
                length++;
            }
        if (c == EOF && length == 0) break;
        if (show->echo) echo(line, length);
        if (answer(t, line, length, show)) return 1;
        fflush(stdout);
    }
    if (*show->prompt) puts("");
    if (!ferror(file)) return 0;
    fprintf(stderr, "dates: the input cannot be read\n");
    return 1;
}

static void print_help(void) {
    puts("usage: dates [--time] [--map DIR] [--ask | --file F | DATE...]\n"
         "\n"
         "Prints the ISO form of each DATE, or of each line of standard input.\n"
         "\n"
         "  --file F   the lines of F, each with its answer\n"
         "  --ask      asks for one date after the other\n"
         "  --map DIR  writes the last date, its answer, ids and symbols to DIR, for `attnc map` to show attention\n"
         "  --time     prints how sure the model is, and the times of the encoder and of the decoder\n"
         "\n"
         "A date has at most 48 characters. Of 5/3/97 the month is the first, of 5.3.97 and 5-3-97 the second, but a\n"
         "number above 12 is a day wherever it stands. Years of two digits are 1940 to 2039. The weekday is not\n"
         "checked.");
}

int main(int argc, char **argv) {
    static Translator translator;
    Show show = {.prompt = ""};
    const char *file = NULL;
    int first = 1;
    for (; first < argc && strncmp(argv[first], "--", 2) == 0; first++) {
        if (strcmp(argv[first], "--help") == 0) return print_help(), 0;
        if (strcmp(argv[first], "--time") == 0) show.times = true;
        else if (strcmp(argv[first], "--ask") == 0) show.prompt = "date> ";
        else if (strcmp(argv[first], "--file") == 0 && first + 1 < argc) file = argv[++first];
        else if (strcmp(argv[first], "--map") == 0 && first + 1 < argc) show.map = argv[++first];
        else return fprintf(stderr, "dates: what is '%s'? --help shows the options\n", argv[first]), 2;
    }
    int status = dates_init(&translator.ctx, dates_embedded(), DATES_WEIGHTS_BYTES, NULL);
    if (status) return fprintf(stderr, "dates: %s\n", dates_status_text(status)), 1;
    for (int i = first; i < argc; i++)
        if (answer(&translator, argv[i], strlen(argv[i]), &show)) return 1;
    if (first < argc) return 0;
    FILE *input = file ? fopen(file, "r") : stdin;
    if (!input) return perror(file), 1;
    show.echo = file != NULL;
    status = answer_lines(&translator, input, &show);
    if (file) fclose(input);
    return status;
}
