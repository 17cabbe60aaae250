/* fuzz.h: the differential fuzzer of specs. Specs are drawn over the whole language, each by a seed and a number; the
 * interpreter is compared with the C of each on the targets of this machine; what is off is made small and kept.
 *
 *   dice -> say (a setting) -> draw (a spec) -> trial (weights, C, comparison) -> shrink (what failed) -> main
 *                                   \-> words (which options a spec says) -> pairs (the table) */
#ifndef FUZZ_H
#define FUZZ_H

#include "../../../compiler/check/check.h"
#include "../../../compiler/model/settings.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* ---------------------------------------------------------------- dice.c: the same numbers on every machine */
typedef struct Dice {
    uint64_t state;
} Dice;

Dice dice_new(uint64_t seed, uint64_t number, const char *what);
uint64_t dice_bits(Dice *dice);
int64_t dice_below(Dice *dice, int64_t n);
int64_t dice_between(Dice *dice, int64_t least, int64_t most);
bool dice_chance(Dice *dice, int percent);
const char *dice_word(Dice *dice, const char *const *words, int n);
#define DICE_WORD(dice, ...) \
    dice_word(dice, (const char *const[]){__VA_ARGS__}, COUNT(((const char *const[]){__VA_ARGS__})))
#define DICE_NUMBER(dice, ...) \
    ((const int64_t[]){__VA_ARGS__}[dice_below(dice, COUNT(((const int64_t[]){__VA_ARGS__})))])

/* ---------------------------------------------------------------- the settings, as settings.def has them */
typedef enum SettingId {
#define SETTING(name, blocks, form, help) S_##name,
#include "../../../compiler/model/settings.def"
    SETTING_COUNT
} SettingId;

typedef struct SettingRow {
    const char *name;
    int blocks; /* the innermost ones that it speaks of */
} SettingRow;

typedef struct OptionRow {
    SettingId setting;
    const char *word;  /* "": a bare value */
    const char *takes; /* flag, integer, … */
} OptionRow;

extern const SettingRow setting_rows[SETTING_COUNT];
extern const OptionRow option_rows[];
extern const int option_count;

/* ---------------------------------------------------------------- draw.c */
/* A block of a drawn spec. */
typedef struct Section {
    Block block;
    const char *head;                  /* how it begins: "layers 2 shared" */
    const char *lines[SETTING_COUNT];  /* what stands behind a setting's name; NULL: not said here */
    int64_t numbers[SETTING_COUNT];    /* the value of a setting of one integer; 0: not said here */
    const char *rows;                  /* the name of an input of rows of a stack, or NULL */
    const char *bits;                  /* its integers of rows whose bits conditions read, or NULL */
    const char *source_rows;           /* the same of the source's rows */
    bool pairs, real;                  /* an encoder has the input of pairs `far`, and the real ones that draw.c adds */
    const char *number, *tilt;         /* inputs of the sequence, integers and reals, with their ranges, or NULL */
    const char *load;                  /* a real input of the rows of a decoder, with its range, or NULL */
    const char *places;                /* the name of an input of positions of a stack, or NULL */
    struct Section *outer, *first, *last, *next;
    bool cross;
} Section;

typedef struct Draw {
    Arena *arena;
    Dice dice;
    int density; /* percent of the usual number of settings that need not be said */
    bool has_encoder, has_decoder;
    bool wants_source_tokens;    /* input and segments: only one of two stacks may have some kinds */
    const char *given;           /* the one kind of attention that may have `mask given` */
    bool patches;                /* the stack reads an image */
    int64_t vocab;               /* of the stack whose head it is; 0: no tokens */
    /* of the sublayer at hand */
    bool in_decoder, cross, alone, last, bare;
    int64_t heads, head_dim, query_width, key_width;
} Draw;

/* Messages of resolve and of the passes about what was drawn. */
typedef struct Refusals {
    Arena *arena;
    struct Refusal {
        const char *message; /* without numbers and names */
        int64_t count;
    } *list;
    int n, room;
    int64_t drawn; /* specs, with those that were refused */
} Refusals;

void refusals_add(Refusals *refusals, const char *message, int64_t count);

/* The text of spec `number`, of a model sNUMBER. Each number says one or two pairs of options together where that can
 * be had. What is refused is drawn again; `refusals` may be NULL. */
const char *draw_spec(Arena *arena, uint64_t seed, uint64_t number, Refusals *refusals);
const char *draw_expressions(Arena *arena, uint64_t seed, uint64_t number, Refusals *refusals); /* expressions.c */
const char *said(const Section *section, SettingId setting);        /* here or further out, or NULL */
int64_t said_number(const Section *section, SettingId setting);     /* the same of its integer, or 0 */
void state(Draw *d, Section *section, SettingId setting, const char *text);
void state_number(Draw *d, Section *section, SettingId setting, int64_t number);
Section *add_section(Draw *d, Section *outer, Block block, const char *head);
char *section_text(Arena *arena, const Section *model);
/* Sections of these blocks, in `list` from `n` on; how many there are then. */
int sections_of(Section *section, int blocks, Section **list, int n);
/* Where a setting may be said so that `near` has it: innermost, or outermost. */
Section *place_of(Section *near, SettingId setting, bool outermost);
bool says_pair(Arena *arena, const char *text, int one, int other);

/* ---------------------------------------------------------------- settings.c: what may stand behind a name */
void say_something(Draw *d, Section *section, SettingId setting);

/* ---------------------------------------------------------------- words.c: options, and which of them a spec says */
/* How a spec is built, besides its options. */
typedef enum Form {
    FORM_ENCODER, FORM_DECODER, FORM_BOTH, FORM_ALONE, FORM_SELF, FORM_CROSS, FORM_FFN, FORM_EXACT, FORM_SHARED,
    FORM_PATTERN, FORM_COUNT
} Form;

enum { MOST_WORDS = 320 };
/* Words are the options, in the order of settings.def, then the forms. */
int word_count(void);
const char *word_name(Arena *arena, int word);

typedef struct WordSet {
    uint64_t bits[MOST_WORDS / 64];
} WordSet;

static inline bool word_in(const WordSet *set, int word) { return set->bits[word / 64] >> word % 64 & 1; }

/* Calls `found` with each pair of words that hold in one sublayer; one word of attention and one of ffn alone: in one
 * layer. */
void words_of(const Ast *ast, void (*found)(void *with, int one, int other), void *with);

/* What to write so that an option is said: its setting's text, in `which` of several ways, and the text of a setting
 * without which it means nothing. */
typedef struct Statement {
    const char *text;
    SettingId also;
    const char *also_text; /* or NULL */
} Statement;

int statement_ways(int option);
Statement statement_of(Arena *arena, int option, int which);
/* Words of both texts, each once. */
const char *merged(Arena *arena, const char *one, const char *other);

/* NULL, or why this text is no model that can be emitted. */
const char *refusal(Arena *arena, const char *text);

/* ---------------------------------------------------------------- pairs.c: the table */
typedef struct Pairs {
    int64_t specs;
    int64_t counts[MOST_WORDS][MOST_WORDS];       /* [one][other], one < other; [one][one]: of a word alone */
    const char *excluded[MOST_WORDS][MOST_WORDS]; /* why no spec has both, where pairs_probe found that out; or NULL */
} Pairs;

void pairs_add(Pairs *pairs, const char *text);
/* A spec that says both, or NULL: then `why` has what resolve and the passes say of most. */
const char *pair_spec(Arena *arena, int one, int other, const char **why);
/* A spec for each pair that was not drawn, [n], where there is one; of the others `excluded` is set. */
const char **pairs_probe(Arena *arena, Pairs *pairs, int *n);
/* The table to `to`, where that is not NULL, and what it comes to. */
void pairs_print(FILE *to, FILE *summary, const Pairs *pairs, bool probed);

/* ---------------------------------------------------------------- weights.c: of unit scale, and others */
typedef enum Stress {
    STRESS_UNIT,    /* as random:SEED has them */
    STRESS_SCALED,  /* some tensors, or the inputs, by 1e-20 to 1e+18 */
    STRESS_ZEROS,   /* some tensors are 0 */
    STRESS_TINY,    /* some tensors are denormal */
    STRESS_SCORES,  /* scores of 1e4 and beyond, or all the same */
    STRESS_SPECIAL, /* an inf or a NaN in a weight or an input */
    STRESS_COUNT
} Stress;

const char *stress_name(Stress stress);
bool stress_named(const char *name, Stress *stress);
/* Weights by a seed; `inputs` gets what is to be done to inputs. Both live in `arena`. */
Weights *stressed_weights(Arena *arena, const Module *module, Stress stress, uint64_t seed, RandomInputs *inputs);

/* ---------------------------------------------------------------- trial.c: a spec, what runs it, what came of it */
typedef enum Outcome {
    OUTCOME_FINE,
    OUTCOME_REFUSED, /* by the passes or the emitter */
    OUTCOME_WRONG,   /* not the interpreter's numbers, other bits, a write outside, a status */
    OUTCOME_BUG,     /* the compiler, or the C compiler on what it wrote, gave up */
    OUTCOME_CRASH,   /* the process ended, or did not */
    OUTCOME_COUNT
} Outcome;

const char *outcome_name(Outcome outcome);

enum { MESSAGE = 1600 };

typedef struct Trial {
    const char *text;
    const char *targets[MOST_TARGETS];
    int n_targets, threads;
    Stress stress;
    uint64_t seed;    /* of the weights */
    bool embedded;    /* they stand in the C */
    bool reproducible; /* the C must give the interpreter's own bits (--reproducible) */
    bool brief;       /* as Cases has it; a replay never is */
    const char *only; /* a case; NULL: all of them */
    Outcome outcome;
    int redrawn;      /* weights of which no comparison can say anything: 1e-2 passed */
    bool delicate;    /* off by the first bound, within that of many rounded interpretations */
    int64_t compared; /* numbers */
    char message[MESSAGE];
} Trial;

typedef struct Workshop {
    const char *cc, *level; /* NULL: the first compiler there is; -O1 */
    const char *plant;      /* FROM=>TO in the emitted C, for seeing that a fault is found; NULL: none */
    int seconds;            /* for one trial, before it counts as hanging */
} Workshop;

/* A spec's text begins with a line that says how it is tried, "# fuzz targets avx2 threads 2 weights unit:17". */
const char *trial_text(Arena *arena, const Trial *trial);
Trial trial_of_text(Arena *arena, const char *text);
/* Tries them in a process of its own, compiled together; what makes it end is found by trying each alone. */
void try_all(const Workshop *workshop, Trial *const *trials, int n);
/* The same without waiting: `begin` returns a handle, of which `end` gives the outcomes. */
typedef struct Job Job;
Job *job_begin(Arena *arena, const Workshop *workshop, Trial *const *trials, int n);
int job_process(const Job *job);
void job_end(const Workshop *workshop, Job *job, int status);

/* ---------------------------------------------------------------- shrink.c */
/* The smallest spec found that fails in the same way within so many tries; *trial is then of that. */
void shrink(Arena *arena, const Workshop *workshop, Trial *trial, int tries);

#endif
