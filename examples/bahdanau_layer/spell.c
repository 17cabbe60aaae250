/* Writes numbers as English or German words with a small recurrent decoder, and shows where it looked: the recurrent
 * units are gru.c, the alignment model between them is the C that `attnc compile align.attn` writes. --help says how it
 * is used. Exit status: 0, 1 after an error or a number that was refused, 2 for wrong usage. */
#include "align.h"
#include "gru.h"
#include "words.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MOST_STEPS = 24 }; /* the longest text that there is has 17 words and its end */

_Static_assert((int)WORDS == (int)GRU_WORDS && (int)GERMAN < (int)GRU_SYMBOLS, "words.h is of another gru.h");
_Static_assert((int)ALIGN_KEYS == MOST_DIGITS + 1 && (int)ALIGN_QUERIES == 1, "align.attn is of another words.h");

/* All the memory there is. */
typedef struct Speller {
    Gru gru;
    align_ctx align;
    _Alignas(ALIGN_ALIGNMENT) unsigned char workspace[ALIGN_WORKSPACE_BYTES(1)];
} Speller;

/* What the decoder did, step by step; the last word is END, but for a decoder that finds none. */
typedef struct Spelling {
    int source[ALIGN_KEYS], length; /* the language and the digits */
    int words[MOST_STEPS], steps;
    float attention[MOST_STEPS][ALIGN_KEYS], logits[MOST_STEPS][WORDS];
} Spelling;

static int likeliest(const float logits[WORDS]) {
    int best = 0;
    for (int i = 1; i < WORDS; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

/* Spells source[length] of *s, greedily; the status of the compiled layer. */
static int spell(Speller *speller, Spelling *s) {
    float annotations[ALIGN_KEYS][GRU_ANNOTATION], state[GRU_STATE], context[GRU_ANNOTATION];
    const int32_t length = s->length;
    gru_encode(&speller->gru, s->source, s->length, annotations, state);
    int word = END;
    for (s->steps = 0; s->steps < MOST_STEPS;) {
        int step = s->steps;
        /* c_i of s_(i-1) and the annotations */
        align_input input = {.size = sizeof input, .batch = 1, .key_lengths = &length};
        align_output output = {.size = sizeof output, .context = context, .attention = s->attention[step]};
        input.query = state, input.key = annotations[0];
        int status = align_forward(&speller->align, &input, &output, speller->workspace, sizeof speller->workspace);
        if (status) return status;

        int before = word;
        gru_score(&speller->gru, state, before, context, s->logits[step]);
        s->words[s->steps++] = word = likeliest(s->logits[step]);
        if (word == END) break;
        gru_advance(&speller->gru, state, before, context);
    }
    return ALIGN_OK;
}

/* ---------------------------------------------------------------- what is shown */

typedef enum Show { SHOW_MAP, SHOW_WORDS, SHOW_TRACE } Show;

static char symbol(int source) {
    return source == ENGLISH ? 'E' : source == GERMAN ? 'G' : (char)('0' + source);
}

/* A row each word, a column each symbol of the source; the darker, the more of the context came from there. */
static void print_map(const Spelling *s) {
    static const char shades[] = " .:-=+*#%@"; /* a tenth each */
    printf("\n%12s", "");
    for (int j = 0; j < s->length; j++) printf(" %c", symbol(s->source[j]));
    for (int i = 0; i < s->steps; i++) {
        printf("\n%-12s", WORD[s->words[i]]);
        for (int j = 0; j < s->length; j++) {
            float weight = s->attention[i][j];
            printf(" %c", weight >= 0 && weight < 1 ? shades[(int)(10 * weight)] : '@');
        }
    }
    printf("\n\n");
}

/* A line each word: its id, the attention to each symbol, the logit of each word */
static void print_trace(const Spelling *s) {
    for (int i = 0; i < s->steps; i++) {
        printf("%d", s->words[i]);
        for (int j = 0; j < s->length; j++) printf(" %.9g", (double)s->attention[i][j]);
        for (int k = 0; k < WORDS; k++) printf(" %.9g", (double)s->logits[i][k]);
        puts("");
    }
}

/* Why `text` is no number to be spelled, in `why`; or its digits behind the language in *s. */
static bool read_number(const char *text, size_t length, Spelling *s, char why[80]) {
    *why = '\0';
    if (length == 0) snprintf(why, 80, "nothing there: write a number of up to %d digits", MOST_DIGITS);
    else if (length > MOST_DIGITS) snprintf(why, 80, "%zu characters: a number has at most %d", length, MOST_DIGITS);
    for (size_t i = 0; i < length && !*why; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= '0' && c <= '9') s->source[s->length++] = c - '0';
        else if (c > ' ' && c <= '~') snprintf(why, 80, "'%c' is no digit", c);
        else snprintf(why, 80, "byte 0x%02X is no digit", c);
    }
    if (!*why && length > 1 && *text == '0') snprintf(why, 80, "a number does not begin with 0");
    return !*why;
}

/* One number, of which `place` says where it stood; the exit status. */
static int answer(Speller *speller, const char *text, size_t length, int language, Show show, const char *place) {
    char why[80];
    Spelling s = {.source = {language}, .length = 1};
    if (!read_number(text, length, &s, why)) {
        fflush(stdout);
        fprintf(stderr, "spell: %s: %s\n", place, why);
        return 1;
    }
    int status = spell(speller, &s);
    if (status) {
        fprintf(stderr, "spell: %s\n", align_status_text(status));
        return 1;
    }
    if (show == SHOW_TRACE) return print_trace(&s), 0;
    if (show == SHOW_MAP) printf("%s: ", text);
    for (int i = 0; i < s.steps && s.words[i] != END; i++) printf("%s%s", i ? " " : "", WORD[s.words[i]]);
    puts("");
    if (show == SHOW_MAP) print_map(&s);
    return 0;
}

/* Each line of standard input; a line may be of any length, only its beginning is kept. */
static int answer_lines(Speller *speller, int language, Show show) {
    int status = 0, c = 0;
    for (long number = 1; c != EOF; number++) {
        char line[MOST_DIGITS + 1] = "", place[40];
        size_t length = 0;
        while ((c = getc(stdin)) != EOF && c != '\n')
            if (c != '\r' && length++ < MOST_DIGITS) line[length - 1] = (char)c;
        if (c == EOF && length == 0) break;
        snprintf(place, sizeof place, "line %ld", number);
        status |= answer(speller, line, length, language, show, place);
    }
    if (!ferror(stdin)) return status;
    fprintf(stderr, "spell: the input cannot be read\n");
    return 1;
}

static void print_help(FILE *file) {
    fputs("usage: spell WEIGHTS [--german] [--words | --trace] [NUMBER...]\n"
          "\n"
          "Writes each NUMBER, or each line of standard input, as words and shows where the decoder looked.\n"
          "WEIGHTS is gru.bin, which train.py writes.\n"
          "\n"
          "  --german  in German, which says the ones before the tens\n"
          "  --words   the words alone\n"
          "  --trace   for each word a line of numbers: its id, its attention, the logits of all words\n",
          file);
}

int main(int argc, char **argv) {
    static Speller speller;
    int language = ENGLISH, first = 2;
    Show show = SHOW_MAP;
    if (argc > 1 && strcmp(argv[1], "--help") == 0) return print_help(stdout), 0;
    if (argc < 2 || strncmp(argv[1], "--", 2) == 0) return print_help(stderr), 2;
    for (; first < argc && strncmp(argv[first], "--", 2) == 0; first++) {
        if (strcmp(argv[first], "--german") == 0) language = GERMAN;
        else if (strcmp(argv[first], "--words") == 0) show = SHOW_WORDS;
        else if (strcmp(argv[first], "--trace") == 0) show = SHOW_TRACE;
        else return fprintf(stderr, "spell: what is '%s'? --help shows the options\n", argv[first]), 2;
    }
    const char *why = gru_read(&speller.gru, argv[1]);
    if (why) return fprintf(stderr, "spell: %s: %s\n", argv[1], why), 1;
    int status = align_init(&speller.align, align_embedded(), ALIGN_WEIGHTS_BYTES, NULL);
    if (status) return fprintf(stderr, "spell: %s\n", align_status_text(status)), 1;
    if (first == argc) return answer_lines(&speller, language, show);
    for (int i = first; i < argc; i++) {
        char place[40];
        snprintf(place, sizeof place, "number %d", i - first + 1);
        status |= answer(&speller, argv[i], strlen(argv[i]), language, show, place);
    }
    return status;
}
