/* main.c: calls of `forward` that must be refused before the first write, and their neighbours that are fine. */
#include "both.h"
#include "fixed.h"
#include "ids.h"
#include "whole.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLOATS = 1024 };
static float written[FLOATS];
static int failed;

static void untouched(void) { memset(written, 0x55, sizeof written); }

static int is_untouched(void) {
    for (size_t i = 0; i < sizeof written; i++)
        if (((unsigned char *)written)[i] != 0x55) return 0;
    return 1;
}

static void verdict(const char *model, const char *what, int status, int wanted) {
    int fine = status == wanted && is_untouched() == (wanted != 0);
    printf("%s calls/%s: %s\n", fine ? "ok" : "not ok", model, what);
    const char *outputs = is_untouched() ? "untouched" : "written";
    if (!fine) printf("# status %d, expected %d; outputs %s\n", status, wanted, outputs);
    failed |= !fine;
}

static void *block(size_t bytes) {
    void *memory = NULL;
    if (posix_memalign(&memory, 64, bytes) != 0) abort();
    return memory;
}

/* One call of a model: `good` is fine, and `change` makes of its parts what is tried. */
#define CALL(name, NAME, field, what, wanted, change)                               \
    do {                                                                            \
        name##_input in = good_##name;                                              \
        name##_output out = {.size = sizeof out, .field = written};                 \
        size_t bytes = NAME##_WORKSPACE_BYTES(1);                                   \
        unsigned char *memory = block(bytes + 64), *workspace = memory;             \
        const name##_ctx *ctx = &name##_made;                                       \
        const name##_input *input = &in;                                            \
        name##_output *output = &out;                                               \
        change;                                                                     \
        untouched();                                                                \
        verdict(#name, what, name##_forward(ctx, input, output, workspace, bytes),  \
                NAME##_##wanted);                                                   \
        free(memory);                                                               \
    } while (0)

/* What every model refuses. */
#define COMMON(name, NAME, field)                                                              \
    CALL(name, NAME, field, "as it should be", OK, (void)0);                                   \
    CALL(name, NAME, field, "no ctx", BAD_ARGUMENT, ctx = NULL);                               \
    CALL(name, NAME, field, "no input", BAD_ARGUMENT, input = NULL);                           \
    CALL(name, NAME, field, "no output", BAD_ARGUMENT, output = NULL);                         \
    CALL(name, NAME, field, "no workspace", BAD_ARGUMENT, workspace = NULL);                   \
    CALL(name, NAME, field, "an input of another size", BAD_ARGUMENT, in.size++);              \
    CALL(name, NAME, field, "an output of another size", BAD_ARGUMENT, out.size--);            \
    CALL(name, NAME, field, "no sequence", BAD_ARGUMENT, in.batch = 0);                        \
    CALL(name, NAME, field, "fewer than none", BAD_ARGUMENT, in.batch = -1);                   \
    CALL(name, NAME, field, "a short workspace", SHORT_WORKSPACE, bytes--);                    \
    CALL(name, NAME, field, "a workspace that is not aligned", SHORT_WORKSPACE, workspace += 4); \
    CALL(name, NAME, field, "a longer workspace", OK, bytes += 63)

#define MAKE(name)                                                                              \
    static name##_ctx name##_made;                                                              \
    static void make_##name(void) {                                                             \
        int status = name##_init(&name##_made, name##_embedded(), name##_embedded_bytes, NULL); \
        if (status) exit(3);                                                                    \
    }

enum { ids_embedded_bytes = IDS_WEIGHTS_BYTES, both_embedded_bytes = BOTH_WEIGHTS_BYTES };
enum { fixed_embedded_bytes = FIXED_WEIGHTS_BYTES, whole_embedded_bytes = WHOLE_WEIGHTS_BYTES };
MAKE(ids)
MAKE(both)
MAKE(fixed)
MAKE(whole)

static int32_t lengths[2], source_lengths[2], tokens[12], segments[12], prefixes[2];
static unsigned char mask[60];
static float features[96];

static void start(void) {
    for (int i = 0; i < 2; i++) lengths[i] = 5, source_lengths[i] = 6, prefixes[i] = 2;
    for (int i = 0; i < 12; i++) tokens[i] = 16 - i, segments[i] = i % 3;
    for (int i = 0; i < 60; i++) mask[i] = 1;
    for (int i = 0; i < 96; i++) features[i] = (float)i / 96;
}

/* A number of an array is another for one call. */
#define WITH(array, at, value) (start(), (array)[at] = (value))

static void try_ids(void) {
    const ids_input good_ids = {.size = sizeof good_ids, .batch = 2, .lengths = lengths, .tokens = tokens,
                                .segments = segments, .prefix_lengths = prefixes};
#define IDS(what, wanted, change) CALL(ids, IDS, hidden, what, wanted, change)
    COMMON(ids, IDS, hidden);
    IDS("no lengths", BAD_ARGUMENT, in.lengths = NULL);
    IDS("no tokens", BAD_ARGUMENT, in.tokens = NULL);
    IDS("no segments", OK, in.segments = NULL);
    IDS("no prefixes", OK, in.prefix_lengths = NULL);
    IDS("the longest", OK, WITH(lengths, 1, 6));
    IDS("a row too many", BAD_LENGTH, WITH(lengths, 1, 7));
    IDS("a row too many in front", BAD_LENGTH, WITH(lengths, 0, 7));
    IDS("one row", OK, WITH(lengths, 0, 1));
    IDS("no row", BAD_LENGTH, WITH(lengths, 1, 0));
    IDS("fewer than no row", BAD_LENGTH, WITH(lengths, 0, -1));
    IDS("the first token", OK, WITH(tokens, 3, 0));
    IDS("a token before the first", BAD_TOKEN, WITH(tokens, 3, -1));
    IDS("the last token", OK, WITH(tokens, 9, 16));
    IDS("a token behind the last", BAD_TOKEN, WITH(tokens, 9, 17));
    IDS("a bad token first", BAD_TOKEN, WITH(tokens, 0, 17));
    IDS("a bad token behind the last row", OK, WITH(tokens, 10, 17));
    IDS("a segment behind the last", BAD_TOKEN, WITH(segments, 9, 3));
    IDS("a segment before the first", BAD_TOKEN, WITH(segments, 0, -1));
    IDS("no prefix", OK, WITH(prefixes, 1, 0));
    IDS("a prefix of the bound", OK, WITH(prefixes, 1, 6));
    IDS("a prefix beyond the bound", BAD_LENGTH, WITH(prefixes, 1, 7));
    IDS("less than no prefix", BAD_LENGTH, WITH(prefixes, 0, -1));
}

static void try_both(void) {
    const both_input good_both = {.size = sizeof good_both, .batch = 2, .lengths = lengths,
                                  .source_lengths = source_lengths, .source = tokens, .target = tokens, .mask = mask};
#define BOTH(what, wanted, change) CALL(both, BOTH, encoder_hidden, what, wanted, change)
    COMMON(both, BOTH, logits);
    BOTH("no lengths", BAD_ARGUMENT, in.lengths = NULL);
    BOTH("no lengths of sources", BAD_ARGUMENT, in.source_lengths = NULL);
    BOTH("no source", BAD_ARGUMENT, in.source = NULL);
    BOTH("no target", BAD_ARGUMENT, in.target = NULL);
    BOTH("no mask", BAD_ARGUMENT, in.mask = NULL);
    BOTH("a row too many", BAD_LENGTH, WITH(lengths, 1, 6));
    BOTH("no row", BAD_LENGTH, WITH(lengths, 0, 0));
    BOTH("one row of a source", OK, WITH(source_lengths, 0, 1));
    BOTH("a row of a source too many", BAD_LENGTH, WITH(source_lengths, 1, 7));
    BOTH("no row of a source", BAD_LENGTH, WITH(source_lengths, 0, 0));
    BOTH("a token behind the last", BAD_TOKEN, WITH(tokens, 9, 17));
    BOTH("the last token of a source", BAD_TOKEN, WITH(tokens, 11, 17));
}

static void try_fixed(void) {
    const fixed_input good_fixed = {.size = sizeof good_fixed, .batch = 2, .features = features,
                                    .prefix_lengths = prefixes};
#define FIXED(what, wanted, change) CALL(fixed, FIXED, hidden, what, wanted, change)
    COMMON(fixed, FIXED, hidden);
    FIXED("no features", BAD_ARGUMENT, in.features = NULL);
    FIXED("its length", OK, (WITH(lengths, 0, 4), lengths[1] = 4, in.lengths = lengths));
    FIXED("a longer sequence", BAD_LENGTH, (WITH(lengths, 0, 4), in.lengths = lengths));
    FIXED("a shorter one", BAD_LENGTH, (WITH(lengths, 0, 3), lengths[1] = 4, in.lengths = lengths));
    FIXED("a prefix of the bound", OK, WITH(prefixes, 1, 4));
    FIXED("a prefix beyond the bound", BAD_LENGTH, WITH(prefixes, 1, 5));
    FIXED("less than no prefix", BAD_LENGTH, WITH(prefixes, 1, -1));
}

static void try_whole(void) {
    const whole_input good_whole = {.size = sizeof good_whole, .batch = 1, .tokens = tokens,
                                    .prefix_lengths = prefixes};
#define WHOLE(what, wanted, change) CALL(whole, WHOLE, hidden, what, wanted, change)
    COMMON(whole, WHOLE, hidden);
    WHOLE("two sequences", BAD_ARGUMENT, in.batch = 2);
    WHOLE("no tokens", BAD_ARGUMENT, in.tokens = NULL);
    WHOLE("its length", OK, (WITH(lengths, 0, 4), in.lengths = lengths));
    WHOLE("a longer sequence", BAD_LENGTH, (WITH(lengths, 0, 5), in.lengths = lengths));
    WHOLE("a shorter one", BAD_LENGTH, (WITH(lengths, 0, 3), in.lengths = lengths));
    WHOLE("the last token", OK, WITH(tokens, 3, 16));
    WHOLE("a token behind the last", BAD_TOKEN, WITH(tokens, 3, 17));
    WHOLE("a token before the first", BAD_TOKEN, WITH(tokens, 0, -1));
    WHOLE("a bad token behind the last row", OK, WITH(tokens, 4, 17));
    WHOLE("a prefix of the bound", OK, WITH(prefixes, 0, 4));
    WHOLE("a prefix beyond the bound", BAD_LENGTH, WITH(prefixes, 0, 5));
    WHOLE("less than no prefix", BAD_LENGTH, WITH(prefixes, 0, -1));
}

int main(void) {
    make_ids(), make_both(), make_fixed(), make_whole();
    start(), try_ids();
    start(), try_both();
    start(), try_fixed();
    start(), try_whole();
    return failed;
}
