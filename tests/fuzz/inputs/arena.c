/* arena.c: in place of compiler/support/arena.c; see target.h. */
#include "target.h"

#include <stdlib.h>
#include <string.h>

enum { BUDGET = 1 << 29 }; /* bytes an input; above it memory is out */

static size_t spent;

typedef struct Piece {
    void *memory;
    struct Piece *next;
} Piece;

typedef struct Cleanup {
    void (*run)(void *);
    void *with;
    struct Cleanup *next;
} Cleanup;

struct Arena {
    Piece *pieces;
    Cleanup *cleanups;
    Arena *next;
};

static Arena *arenas; /* all there are, newest first */

void budget_begin(void) { spent = 0; }

static void *allocate(size_t align, size_t bytes) {
    void *memory = NULL;
    if (bytes > BUDGET - spent) return NULL;
    spent += bytes;
    return posix_memalign(&memory, align, bytes ? bytes : 1) ? NULL : memory;
}

void *checked_malloc(size_t bytes) { return allocate(16, bytes); }

static void *required(size_t align, size_t bytes) {
    void *memory = allocate(align, bytes);
    if (!memory) out_of_memory();
    return memory;
}

Arena *arena_new(void) {
    Arena *arena = required(16, sizeof *arena);
    *arena = (Arena){.next = arenas};
    return arenas = arena;
}

void arena_clear(Arena *arena) {
    for (Cleanup *c = arena->cleanups, *next; c; c = next) {
        next = c->next;
        c->run(c->with);
        free(c);
    }
    for (Piece *p = arena->pieces, *next; p; p = next) {
        next = p->next;
        free(p->memory);
        free(p);
    }
    arena->pieces = NULL;
    arena->cleanups = NULL;
}

void arena_free(Arena *arena) {
    if (!arena) return;
    arena_clear(arena);
    Arena **link = &arenas;
    while (*link != arena) link = &(*link)->next;
    *link = arena->next;
    free(arena);
}

bool arenas_free(void) {
    bool any = arenas;
    while (arenas) arena_free(arenas);
    return any;
}

void arenas_keep(void) { arenas = NULL; }

void *arena_alloc(Arena *arena, size_t bytes) {
    Piece *piece = required(16, sizeof *piece);
    *piece = (Piece){NULL, arena->pieces};
    arena->pieces = piece;
    piece->memory = required(bytes >= 64 ? 64 : 16, bytes);
    return memset(piece->memory, 0, bytes);
}

void *arena_array(Arena *arena, size_t count, size_t size) {
    if (size && count > SIZE_MAX / size) out_of_memory();
    return arena_alloc(arena, count * size);
}

void *arena_grow(Arena *arena, void *items, int count, int *room, size_t size) {
    if (count < *room) return items;
    *room = *room ? *room * 2 : 64;
    void *grown = arena_array(arena, (size_t)*room, size);
    if (count) memcpy(grown, items, (size_t)count * size);
    return grown;
}

char *arena_copy(Arena *arena, const char *text, size_t size) {
    if (size == SIZE_MAX) out_of_memory();
    char *copy = arena_alloc(arena, size + 1);
    if (size) memcpy(copy, text, size);
    return copy;
}

char *arena_printf(Arena *arena, const char *format, ...) {
    Text text = text_new(arena);
    va_list args;
    va_start(args, format);
    text_vprintf(&text, format, args);
    va_end(args);
    return text.data;
}

void arena_on_free(Arena *arena, void (*run)(void *), void *with) {
    Cleanup *cleanup = required(16, sizeof *cleanup);
    *cleanup = (Cleanup){run, with, arena->cleanups};
    arena->cleanups = cleanup;
}

/* ---------------------------------------------------------------- text */

Text text_new(Arena *arena) { return (Text){.arena = arena, .data = arena_copy(arena, "", 0), .room = 1}; }

void text_reserve(Text *text, size_t size) {
    if (size >= SIZE_MAX / 4 || text->size >= SIZE_MAX / 4) out_of_memory();
    size_t least = text->size + size + 1;
    if (least <= text->room) return;
    char *grown = arena_alloc(text->arena, 2 * least);
    memcpy(grown, text->data, text->size + 1);
    text->data = grown;
    text->room = 2 * least;
}

void text_add(Text *text, const char *bytes, size_t size) {
    text_reserve(text, size);
    if (size) memcpy(text->data + text->size, bytes, size);
    text->size += size;
    text->data[text->size] = '\0';
}

void text_add_int(Text *text, int64_t value) { text_printf(text, "%lld", (long long)value); }

void text_vprintf(Text *text, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int size = vsnprintf(NULL, 0, format, args);
    if (size < 0) out_of_memory();
    text_reserve(text, (size_t)size);
    vsnprintf(text->data + text->size, (size_t)size + 1, format, again);
    text->size += (size_t)size;
    va_end(again);
}

void text_printf(Text *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    text_vprintf(text, format, args);
    va_end(args);
}

bool mul_fits(int64_t a, int64_t b, int64_t *out) { return !__builtin_mul_overflow(a, b, out); }
bool add_fits(int64_t a, int64_t b, int64_t *out) { return !__builtin_add_overflow(a, b, out); }
