/* expressions.c: small models with one attention, whose mask and score are expressions drawn at random from all types,
 * operators and functions, to a depth of 12, over positions, heads, inputs, tables and learned numbers. */
#include "fuzz.h"

#include <string.h>

enum { DEEPEST = 12, FLAT = 2 }; /* of one operand of an operation, and of all others */

typedef enum Place { SELF_ALONE, CROSS_ALONE, ENCODER, DECODER } Place;

/* What the expressions of a model read, so that it is declared. */
typedef enum Reading {
    READ_PART, READ_IMAGE, READ_LOAD, READ_MARKS, READ_REACH, READ_TILT, READ_FAR, READ_SLANT, READ_TABLE, READ_SLOPE,
    READ_LEARNED, READ_LEARNED_OF_HEAD, READ_COUNT
} Reading;

typedef struct Writer {
    Arena *arena;
    Dice dice;
    Place place;
    unsigned allowed; /* a bit for each input that the expressions may read */
    bool reads[READ_COUNT];
    bool adds; /* to a score, where a difference that is 0 but for rounding has no root: its derivative blows up */
} Writer;

static const char *whole(Writer *w, int depth);
static const char *single(Writer *w, int depth);
static const char *truth(Writer *w, int depth);

#define WORD(...) DICE_WORD(&w->dice, __VA_ARGS__)
#define PRINT(...) arena_printf(w->arena, __VA_ARGS__)
#define SOME(from, to) ((int)dice_between(&w->dice, from, to))

/* How deep an operand is: the first one goes on, and the others are flat. */
static int next(int depth) { return depth - 1; }
static int flat(int depth) { return depth - 1 < FLAT ? depth - 1 : FLAT; }

static const char *reading(Writer *w, Reading what, const char *text) { return w->reads[what] = true, text; }

static bool may_read(const Writer *w, Reading what) { return w->allowed >> what & 1; }

/* Whether all pairs of a sequence may have numbers: where rows attend to each other, and no state keeps them. */
static bool has_pairs(const Writer *w) { return w->place == SELF_ALONE || w->place == ENCODER; }

/* ---------------------------------------------------------------- whole numbers */

static const char *row_number(Writer *w) {
    const bool of_rows = may_read(w, READ_PART), of_source = w->place == CROSS_ALONE && may_read(w, READ_IMAGE);
    if (of_source && (!of_rows || dice_chance(&w->dice, 50))) return reading(w, READ_IMAGE, "image[k]");
    if (of_rows) return reading(w, READ_PART, w->place == CROSS_ALONE ? "part[q]" : WORD("part[q]", "part[k]"));
    return WORD("q", "k");
}

static const char *whole_leaf(Writer *w) {
    switch (dice_below(&w->dice, 9)) {
    case 0: case 1: return "q";
    case 2: case 3: return "k";
    case 4: return "h";
    case 5: return row_number(w);
    case 6: return may_read(w, READ_REACH) ? reading(w, READ_REACH, "reach") : row_number(w);
    case 7: if (has_pairs(w) && may_read(w, READ_FAR)) return reading(w, READ_FAR, "far[q, k]"); /* fall through */
    default: return PRINT("%d", SOME(0, 9));
    }
}

/* An operation on two numbers of one type. Factors are bounded, so that products stay small. */
static const char *of_two(Writer *w, int depth, const char *(*number)(Writer *, int)) {
    const char *a = number(w, next(depth)), *b = number(w, flat(depth));
    switch (dice_below(&w->dice, 6)) {
    case 0: return PRINT("(%s + %s)", a, b);
    case 1: return PRINT("(%s - %s)", b, a);
    case 2: return PRINT("min(%s, %s)", a, b);
    case 3: return PRINT("max(%s, %s)", b, a);
    case 4:
        return number == whole ? PRINT("clamp(%s, -9, 9)*clamp(%s, -5, 9)", a, b)
                               : PRINT("min(9, abs(%s))*max(-2, min(2, %s))", a, b);
    default: return PRINT("(if %s then %s else %s)", truth(w, flat(depth)), a, b);
    }
}

/* A whole number, the magnitude of which stays far below 2^31. */
static const char *whole(Writer *w, int depth) {
    if (depth <= 0) return whole_leaf(w);
    switch (dice_below(&w->dice, 12)) {
    case 0: return PRINT("floor(%s/%d)", whole(w, next(depth)), SOME(1, 9));
    case 1: return PRINT("(%s) mod %d", whole(w, next(depth)), SOME(1, 9));
    case 2: return PRINT("abs(%s)", whole(w, next(depth)));
    case 3: return PRINT("clamp(%s, %d, %d)", whole(w, next(depth)), SOME(-9, 3), SOME(4, 30));
    case 4: return PRINT("floor(clamp(%s, -30, 30))", single(w, next(depth)));
    case 5: return PRINT("sign(%s)", dice_chance(&w->dice, 50) ? single(w, next(depth)) : whole(w, next(depth)));
    case 6: return PRINT("clamp(%s, -3, 4)^%d", whole(w, next(depth)), SOME(1, 4));
    case 7: return PRINT("-%s", whole(w, next(depth)));
    default: return of_two(w, depth, whole);
    }
}

/* ---------------------------------------------------------------- real numbers that decide */

static const char *single_leaf(Writer *w) {
    switch (dice_below(&w->dice, 7)) {
    case 0: case 1: return WORD("0.3", "1.5", "0.7", "2.25");
    case 2:
        if (!may_read(w, READ_LOAD)) return "0.35*k";
        return reading(w, READ_LOAD, w->place == CROSS_ALONE ? "load[q]" : WORD("load[q]", "load[k]"));
    case 3: return reading(w, READ_SLOPE, "slope[h]");
    case 4:
        if (has_pairs(w) && may_read(w, READ_SLANT)) return reading(w, READ_SLANT, "slant[q, k]"); /* fall through */
    default: return PRINT("%s*%s", WORD("0.3", "0.25", "1.1"), whole_leaf(w));
    }
}

/* A real number that both engines round to f32 after each operation. */
static const char *single(Writer *w, int depth) {
    if (depth <= 0) return single_leaf(w);
    switch (dice_below(&w->dice, 10)) {
    case 0: return PRINT("%s/%s", single(w, next(depth)), WORD("2", "3", "0.7", "9"));
    case 1: return PRINT(w->adds ? "sqrt(1 + abs(%s))" : "sqrt(abs(%s))", single(w, next(depth)));
    case 2: return PRINT("abs(%s)", single(w, next(depth)));
    case 3: return PRINT("%s/%d", whole(w, next(depth)), SOME(2, 9));
    case 4: return reading(w, READ_TABLE, PRINT("wave[(%s) mod 8]", whole(w, next(depth))));
    case 5: return reading(w, READ_TABLE, PRINT("wave[clamp(%s, 0, 7)]", whole(w, next(depth))));
    default: return of_two(w, depth, single);
    }
}

/* ---------------------------------------------------------------- conditions */

static const char *comparison(Writer *w, int depth) {
    const char *relation = WORD("<", "<=", ">", ">=", "==", "!=");
    if (dice_chance(&w->dice, 65)) return PRINT("%s %s %s", whole(w, next(depth)), relation, whole(w, flat(depth)));
    relation = WORD("<", "<=", ">", ">="); /* equal real numbers are rare */
    return PRINT("%s %s %s", single(w, next(depth)), relation, single(w, flat(depth)));
}

static const char *truth(Writer *w, int depth) {
    if (depth <= 1) return comparison(w, 1);
    switch (dice_below(&w->dice, 10)) {
    case 0: return PRINT("not (%s)", truth(w, next(depth)));
    case 1: case 2: return PRINT("(%s and %s)", truth(w, next(depth)), truth(w, flat(depth)));
    case 3: case 4: return PRINT("(%s or %s)", truth(w, flat(depth)), truth(w, next(depth)));
    case 5:
        return PRINT("(if %s then %s else %s)", truth(w, flat(depth)), truth(w, next(depth)), truth(w, flat(depth)));
    case 6: {
        const char *row = w->place == CROSS_ALONE ? "q" : WORD("q", "k");
        if (!may_read(w, READ_MARKS)) return comparison(w, depth);
        return reading(w, READ_MARKS, PRINT("bit(marks[%s], %s)", row, whole(w, next(depth))));
    }
    default: return comparison(w, depth);
    }
}

/* ---------------------------------------------------------------- scores */

static const char *number_leaf(Writer *w) {
    switch (dice_below(&w->dice, 8)) {
    case 0: case 1: case 2: return "s";
    case 3: return may_read(w, READ_TILT) ? reading(w, READ_TILT, "tilt") : single_leaf(w);
    case 4: return WORD("cos(q - k)", "log(1 + q)", "erf(0.1*(k - q))", "sin(k)", "(q + 1)^0.25");
    case 5: return reading(w, READ_LEARNED, PRINT("w[(%s) mod 7]", whole(w, FLAT)));
    case 6: return reading(w, READ_LEARNED_OF_HEAD, PRINT("u[h, clamp(%s, 0, 4)]", whole(w, FLAT)));
    default: return single_leaf(w);
    }
}

/* A real number that is a part of a score. */
static const char *added(Writer *w, int depth) {
    w->adds = true;
    const char *text = single(w, depth);
    w->adds = false;
    return text;
}

/* A number whose derivative by `s` stays near 1, so that rounding is not blown up. */
static const char *number(Writer *w, int depth) {
    if (depth <= 0) return number_leaf(w);
    const char *a = number(w, next(depth));
    switch (dice_below(&w->dice, 14)) {
    case 0: return PRINT("tanh(%s)", a);
    case 1: return PRINT("exp(-abs(%s))", a);
    case 2: return PRINT("sigmoid(%s)", a);
    case 3: return PRINT("sqrt(1 + abs(%s))", a);
    case 4: return PRINT("abs(%s)", a);
    case 5: return PRINT("%s/(1 + abs(%s))", a, number(w, flat(depth)));
    case 6: return PRINT("tanh(%s)*%s", number(w, flat(depth)), a);
    case 7: return PRINT("tanh(%s)^2", a);
    case 8: return PRINT("(if %s then %s else %s)", truth(w, next(depth)), a, number(w, flat(depth)));
    case 9: return PRINT("min(%s, %s)", a, number(w, flat(depth)));
    case 10: return PRINT("max(%s, %s)", number(w, flat(depth)), a);
    case 11: return PRINT("(%s - %s)*0.5", number(w, flat(depth)), a);
    case 12: return PRINT("clamp(%s, -4, %d)", added(w, next(depth)), SOME(0, 9));
    default: return PRINT("(%s + %s)*%s", a, number(w, flat(depth)), WORD("0.5", "0.7", "-0.6"));
    }
}

/* ---------------------------------------------------------------- the model */

static void declare_inputs(const Writer *w, Text *text) {
    static const char *const rows[READ_COUNT] = {
        [READ_PART] = "input rows part -2..3", [READ_IMAGE] = "input rows image -2..3 of source",
        [READ_LOAD] = "input rows load real -1..2", [READ_MARKS] = "input rows marks",
        [READ_REACH] = "input number reach -1..9", [READ_TILT] = "input number tilt real -1..1.5",
        [READ_FAR] = "input pairs far 0..6", [READ_SLANT] = "input pairs slant real 0..2"};
    for (int r = 0; r < READ_COUNT; r++)
        if (w->reads[r] && rows[r]) text_printf(text, "    %s\n", rows[r]);
}

static void declare_tables(const Writer *w, Text *text) {
    if (w->reads[READ_TABLE]) text_printf(text, "    let wave = table [8] sin(i)/4 + i/8\n");
    if (w->reads[READ_SLOPE]) text_printf(text, "    let slope = table [heads] 0.4*(h + 1)\n");
    if (w->reads[READ_LEARNED]) text_printf(text, "    learned w [7]\n");
    if (w->reads[READ_LEARNED_OF_HEAD]) text_printf(text, "    learned u [heads][5]\n");
}

static int64_t most_rows(Writer *w) {
    if (w->place == SELF_ALONE && dice_chance(&w->dice, 3)) return 600; /* more than a block of keys */
    return DICE_NUMBER(&w->dice, 5, 17, 33, 40, 47, 70);
}

static const char *model_text(Writer *w, uint64_t index) {
    static const char *const heads[] = {"attention self", "attention cross", "encoder", "decoder"};
    const int64_t rows = most_rows(w);
    const bool stack = w->place == ENCODER || w->place == DECODER;
    const char *mask = dice_chance(&w->dice, 80) ? truth(w, SOME(1, DEEPEST)) : NULL;
    const char *score = !mask || dice_chance(&w->dice, 60) ? number(w, SOME(1, DEEPEST)) : NULL;
    const char *causal = w->place == DECODER && (!mask || dice_chance(&w->dice, 60)) ? "causal" : "";
    Text text = text_new(w->arena);
    text_printf(&text, "model s%llu {\n", (unsigned long long)index);
    if (stack) {
        text_printf(&text, "    d_model 8, vocab 11\n    %s {\n    seq <= %lld, position none\n", heads[w->place],
                    (long long)rows);
        declare_inputs(w, &text);
        text_printf(&text, "    layers 1 {\n    attention self {\n");
    } else {
        declare_inputs(w, &text);
        text_printf(&text, "    %s {\n    d_query 8, queries <= %lld\n", heads[w->place], (long long)rows);
        if (w->place == CROSS_ALONE)
            text_printf(&text, "    d_key 8, keys <= %lld\n", (long long)DICE_NUMBER(&w->dice, 7, 32, 41));
        text_printf(&text, "    %s\n", WORD("project none", "head_dim 4"));
    }
    text_printf(&text, "    heads %s\n", WORD("1", "2", "2", "4"));
    declare_tables(w, &text);
    if (mask) text_printf(&text, "    mask %s where %s\n", causal, mask);
    else if (*causal) text_printf(&text, "    mask %s\n", causal);
    if (score) text_printf(&text, "    score %s\n", score);
    text_printf(&text, stack ? "    }\n    ffn { d_ff 8 }\n    }\n    }\n}\n" : "    }\n}\n");
    return text.data;
}

const char *draw_expressions(Arena *arena, uint64_t seed, uint64_t number, Refusals *refusals) {
    enum { ANY = 100 };
    Arena *own = arena_new();
    Dice dice = dice_new(seed, number, "expressions");
    for (int attempt = 0; attempt < ANY; attempt++) {
        Writer w = {.arena = own, .dice = dice};
        for (int input = 0; input < 3; input++) w.allowed |= 1u << dice_below(&w.dice, READ_TABLE);
        w.place = (Place)(int[]){SELF_ALONE, SELF_ALONE, CROSS_ALONE, ENCODER, DECODER}[dice_below(&w.dice, 5)];
        const char *text = model_text(&w, number), *why = refusal(own, text);
        dice = w.dice;
        if (refusals) refusals->drawn++;
        if (refusals && why) refusals_add(refusals, why, 1);
        if (why && strncmp(why, "BUG", 3) == 0) printf("%s\n%s", why, text);
        if (why) continue;
        const char *drawn = arena_copy(arena, text, strlen(text));
        arena_free(own);
        return drawn;
    }
    fail("the expressions of spec %llu of seed %llu are refused however they are drawn", (unsigned long long)number,
         (unsigned long long)seed);
}
