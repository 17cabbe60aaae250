/* fuzz_arena.c: compiler/support/arena.c itself, where the other targets have arena.c of this folder in its place. Each
 * piece and text that it gives out has a copy of its own beside it and is compared when all is done: no two share a
 * byte, and none loses one.
 *
 * The input: actions of three bytes: which, on which text, and how much. */
#include "target.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXTS = 4, MOST_PIECES = 256, MOST_BYTES = 1 << 20, LONG = 97 };

typedef struct Copy {
    const void *given;
    void *copy;
    size_t size;
} Copy;

typedef struct Shadow {
    Text text;
    char *copy; /* [text.size + 1] */
    size_t size;
} Shadow;

typedef struct World {
    Arena *arena;
    Copy pieces[MOST_PIECES];
    int n_pieces;
    size_t bytes;
    Shadow texts[TEXTS];
    int cleanups, wanted_cleanups;
} World;

static void wrong(const char *what) {
    fprintf(stderr, "BROKEN: %s\n", what);
    abort();
}

static void *sure(void *memory) {
    if (!memory) wrong("the harness has no memory");
    return memory;
}

static void keep(World *w, const void *given, size_t size) {
    Copy *c = &w->pieces[w->n_pieces++];
    *c = (Copy){given, sure(malloc(size + 1)), size};
    if (size) memcpy(c->copy, given, size);
    w->bytes += size;
}

/* Zeros, aligned, and then full of a pattern that nobody else has. */
static void take_piece(World *w, size_t size) {
    uint8_t *piece = arena_alloc(w->arena, size);
    if ((uintptr_t)piece % (size >= 64 ? 64 : 16)) wrong("a piece is not aligned");
    for (size_t i = 0; i < size; i++) {
        if (piece[i]) wrong("a piece is not zero");
        piece[i] = (uint8_t)((size_t)w->n_pieces * 31 + i);
    }
    keep(w, piece, size);
}

static void grow(Shadow *s, const char *more, size_t size) {
    s->copy = sure(realloc(s->copy, s->size + size + 1));
    memcpy(s->copy + s->size, more, size);
    s->size += size;
    s->copy[s->size] = '\0';
}

static void add_formatted(World *w, Shadow *s, const char *word, int number) {
    char wanted[1024];
    int64_t large = (int64_t)number * INT32_MAX * 4;
    const char *formats[] = {"%s=%d;%lld%%", "%s %d %lld", "%.3s%5d%llx", "%s%d\n%lld"};
    const char *format = formats[number & 3];
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wformat-nonliteral"
    int size = snprintf(wanted, sizeof wanted, format, word, number, (long long)large);
    text_printf(&s->text, format, word, number, (long long)large);
    const char *alone = arena_printf(w->arena, format, word, number, (long long)large);
#pragma clang diagnostic pop
    if (strcmp(alone, wanted) != 0) wrong("arena_printf writes something else");
    keep(w, alone, (size_t)size + 1);
    grow(s, wanted, (size_t)size);
}

static void check(World *w) {
    for (int i = 0; i < w->n_pieces; i++)
        if (w->pieces[i].size && memcmp(w->pieces[i].given, w->pieces[i].copy, w->pieces[i].size) != 0)
            wrong("a piece has changed");
    for (int t = 0; t < TEXTS; t++) {
        const Shadow *s = &w->texts[t];
        if (s->text.size != s->size || memcmp(s->text.data, s->copy, s->size + 1) != 0) wrong("a text has changed");
        bool untouched = !s->text.room && !s->text.size; /* takes no memory */
        if (!untouched && s->text.room <= s->text.size) wrong("a text has no room for its end");
    }
}

static void begin(World *w) {
    for (int t = 0; t < TEXTS; t++) {
        w->texts[t] = (Shadow){.text = text_new(w->arena)};
        grow(&w->texts[t], "", 0);
    }
}

static void end(World *w) {
    check(w);
    for (int i = 0; i < w->n_pieces; i++) free(w->pieces[i].copy);
    for (int t = 0; t < TEXTS; t++) free(w->texts[t].copy);
    w->n_pieces = 0;
    w->bytes = 0;
}

static void count_cleanup(void *with) { ++*(int *)with; }

static void add_items(World *w, size_t count) {
    int64_t *items = NULL;
    int room = 0;
    for (int i = 0; i < (int)count; i++) {
        items = arena_grow(w->arena, items, i, &room, sizeof *items);
        items[i] = i * 7;
    }
    for (int i = 0; i < (int)count; i++)
        if (items[i] != i * 7) wrong("a list has changed as it grew");
    if (count) keep(w, items, count * sizeof *items);
}

static void act(World *w, const uint8_t *action) {
    static const char letters[] = "Of the words that stand here each piece is a copy, longer or shorter, as it comes. ";
    Shadow *s = &w->texts[action[1] % TEXTS];
    size_t much = action[2] % LONG, large = (size_t)action[2] << action[1] % 12;
    switch (action[0] % 10) {
    case 0: take_piece(w, action[2]); break;
    case 1: take_piece(w, large); break;
    case 2: keep(w, arena_copy(w->arena, letters, much % sizeof letters), much % sizeof letters + 1); break;
    case 3: add_formatted(w, s, letters + much % sizeof letters, (int)action[2] - 128); break;
    case 4:
        text_add(&s->text, letters, much % sizeof letters);
        grow(s, letters, much % sizeof letters);
        break;
    case 5: text_reserve(&s->text, large); break;
    case 6: {
        char number[32];
        int64_t value = (int64_t)((uint64_t)action[2] << 56 | action[1]);
        text_add_int(&s->text, value);
        grow(s, number, (size_t)snprintf(number, sizeof number, "%lld", (long long)value));
        break;
    }
    case 7: add_items(w, action[2]); break;
    case 8:
        arena_on_free(w->arena, count_cleanup, &w->cleanups);
        w->wanted_cleanups++;
        break;
    default:
        end(w);
        arena_clear(w->arena);
        if (w->cleanups != w->wanted_cleanups) wrong("a cleanup is run twice, or not at all");
        begin(w);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    World w = {.arena = arena_new()};
    begin(&w);
    for (size_t i = 0; i + 3 <= size && w.n_pieces + 2 < MOST_PIECES && w.bytes < MOST_BYTES; i += 3) act(&w, data + i);
    end(&w);
    arena_free(w.arena);
    if (w.cleanups != w.wanted_cleanups) wrong("a cleanup is run twice, or not at all");
    return 0;
}
