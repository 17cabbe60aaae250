/* arena.c: memory by stage, growing text, and checked arithmetic. */
#include "../attnc.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 1 << 16, BLOCK_ALIGN = 64 };

typedef struct Block {
    struct Block *next;
    size_t used, room;
} Block;

typedef struct Cleanup {
    struct Cleanup *next;
    void (*run)(void *);
    void *with;
} Cleanup;

struct Arena {
    Block *blocks;
    Cleanup *cleanups;
};

void *checked_malloc(size_t bytes) {
    static long calls, fail_at = -1;
    if (fail_at < 0) {
        const char *wish = getenv("ATTNC_FAIL_ALLOC");
        fail_at = wish ? strtol(wish, NULL, 10) : 0;
    }
    if (fail_at > 0 && ++calls == fail_at) return NULL;
    return malloc(bytes ? bytes : 1);
}

Arena *arena_new(void) {
    Arena *arena = checked_malloc(sizeof *arena);
    if (!arena) out_of_memory();
    *arena = (Arena){0};
    return arena;
}

void arena_free(Arena *arena) {
    if (!arena) return;
    for (Cleanup *c = arena->cleanups; c; c = c->next) c->run(c->with);
    for (Block *b = arena->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(arena);
}

static size_t align_up(size_t n, size_t align) { return (n + align - 1) & ~(align - 1); }

/* A block's first usable address, aligned to BLOCK_ALIGN. */
static char *block_start(Block *block) {
    uintptr_t after = (uintptr_t)(block + 1);
    return (char *)block + sizeof *block + (align_up(after, BLOCK_ALIGN) - after);
}

void *arena_alloc(Arena *arena, size_t bytes) {
    size_t align = bytes >= BLOCK_ALIGN ? BLOCK_ALIGN : 16;
    Block *block = arena->blocks;
    size_t at = block ? align_up(block->used, align) : 0;
    if (!block || at > block->room || bytes > block->room - at) {
        size_t room = bytes > BLOCK_BYTES / 4 ? bytes : BLOCK_BYTES;
        if (room > SIZE_MAX - sizeof(Block) - BLOCK_ALIGN) out_of_memory();
        Block *fresh = checked_malloc(sizeof(Block) + BLOCK_ALIGN + room);
        if (!fresh) out_of_memory();
        *fresh = (Block){.room = room};
        if (block && room != BLOCK_BYTES) { /* a large one goes behind, so that the open block stays in use */
            fresh->next = block->next;
            block->next = fresh;
        } else {
            fresh->next = block;
            arena->blocks = fresh;
        }
        block = fresh;
        at = 0;
    }
    block->used = at + bytes;
    return memset(block_start(block) + at, 0, bytes);
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

void arena_on_free(Arena *arena, void (*run)(void *), void *with) {
    Cleanup *cleanup = arena_alloc(arena, sizeof *cleanup);
    *cleanup = (Cleanup){arena->cleanups, run, with};
    arena->cleanups = cleanup;
}

char *arena_printf(Arena *arena, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int size = vsnprintf(NULL, 0, format, args);
    if (size < 0) bug("a format of arena_printf is wrong");
    char *text = arena_alloc(arena, (size_t)size + 1);
    vsnprintf(text, (size_t)size + 1, format, again);
    va_end(again);
    va_end(args);
    return text;
}

Text text_new(Arena *arena) { return (Text){.arena = arena, .data = arena_copy(arena, "", 0), .room = 1}; }

void text_add(Text *text, const char *bytes, size_t size) {
    if (size >= SIZE_MAX / 4 || text->size >= SIZE_MAX / 4) out_of_memory();
    if (text->size + size + 1 > text->room) {
        size_t room = (text->size + size + 1) * 2;
        char *grown = arena_alloc(text->arena, room);
        if (text->size) memcpy(grown, text->data, text->size);
        text->data = grown;
        text->room = room;
    }
    if (size) memcpy(text->data + text->size, bytes, size);
    text->size += size;
    text->data[text->size] = '\0';
}

void text_printf(Text *text, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    char small[512];
    int size = vsnprintf(small, sizeof small, format, args);
    if (size < 0) bug("a format of text_printf is wrong");
    if ((size_t)size < sizeof small) {
        text_add(text, small, (size_t)size);
    } else {
        char *large = arena_alloc(text->arena, (size_t)size + 1);
        vsnprintf(large, (size_t)size + 1, format, again);
        text_add(text, large, (size_t)size);
    }
    va_end(again);
    va_end(args);
}

bool mul_fits(int64_t a, int64_t b, int64_t *out) { return !__builtin_mul_overflow(a, b, out); }
bool add_fits(int64_t a, int64_t b, int64_t *out) { return !__builtin_add_overflow(a, b, out); }
