/* arena.c: the memory of a stage, growing text, and checked arithmetic. */
#include "../attnc.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

/* An arena that has taken MANY_BYTES takes blocks of a huge page: the kernel's work on pages of 4 KB, one by one, was a
 * fifth of the processor time of `attnc compile`. */
enum { BLOCK_BYTES = 1 << 16, BLOCK_ALIGN = 64, MANY_BYTES = 1 << 19, HUGE_PAGE = 1 << 21 };

typedef struct Block {
    struct Block *next;
    size_t first; /* bytes from here to the ones that can be taken, the first at a multiple of BLOCK_ALIGN */
    size_t used, room;
} Block;

typedef struct Cleanup {
    struct Cleanup *next;
    void (*run)(void *);
    void *with;
} Cleanup;

struct Arena {
    Block *blocks;
    Block *spare; /* blocks of BLOCK_BYTES that arena_clear has emptied */
    Cleanup *cleanups;
    size_t bytes; /* of its blocks of BLOCK_BYTES */
};

static bool fails(void) {
    static long calls, fail_at = -1;
    if (fail_at < 0) {
        const char *wish = getenv("ATTNC_FAIL_ALLOC");
        fail_at = wish ? strtol(wish, NULL, 10) : 0;
    }
    return fail_at > 0 && ++calls == fail_at;
}

void *checked_malloc(size_t bytes) { return fails() ? NULL : malloc(bytes ? bytes : 1); }

static void *huge_page(void) {
    void *page = fails() ? NULL : aligned_alloc(HUGE_PAGE, HUGE_PAGE);
#ifdef MADV_HUGEPAGE
    if (page) madvise(page, HUGE_PAGE, MADV_HUGEPAGE);
#endif
    return page;
}

Arena *arena_new(void) {
    Arena *arena = checked_malloc(sizeof *arena);
    if (!arena) out_of_memory();
    *arena = (Arena){0};
    return arena;
}

/* Runs the cleanups and empties the arena. Blocks of BLOCK_BYTES are kept and filled again, so that work in small
 * portions stays in memory that is in the processor's caches. */
void arena_clear(Arena *arena) {
    for (Cleanup *c = arena->cleanups; c; c = c->next) c->run(c->with);
    for (Block *b = arena->blocks, *next; b; b = next) {
        next = b->next;
        if (b->room == BLOCK_BYTES) {
            b->next = arena->spare;
            arena->spare = b;
        } else {
            free(b);
        }
    }
    arena->blocks = NULL;
    arena->cleanups = NULL;
}

void arena_free(Arena *arena) {
    if (!arena) return;
    arena_clear(arena);
    for (Block *b = arena->spare, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(arena);
}

static size_t align_up(size_t n, size_t align) { return (n + align - 1) & ~(align - 1); }

static char *block_start(Block *block) { return (char *)block + block->first; }

static Block *new_block(Arena *arena, size_t room) {
    Block *block = room == BLOCK_BYTES ? arena->spare : NULL;
    if (block) {
        arena->spare = block->next;
    } else if (room == BLOCK_BYTES && arena->bytes >= MANY_BYTES) {
        block = huge_page();
        if (!block) out_of_memory();
        room = HUGE_PAGE - sizeof(Block) - BLOCK_ALIGN;
    } else {
        if (room == BLOCK_BYTES) arena->bytes += room;
        if (room > SIZE_MAX - sizeof(Block) - BLOCK_ALIGN) out_of_memory();
        block = checked_malloc(sizeof(Block) + BLOCK_ALIGN + room);
        if (!block) out_of_memory();
    }
    const uintptr_t after = (uintptr_t)(block + 1);
    *block = (Block){.first = sizeof *block + (align_up(after, BLOCK_ALIGN) - after), .room = room};
    return block;
}

/* A large block goes second, so that the open block stays in use. */
static __attribute__((noinline)) Block *add_block(Arena *arena, size_t bytes) {
    size_t room = bytes > BLOCK_BYTES / 4 ? bytes : BLOCK_BYTES;
    Block *open = arena->blocks, *fresh = new_block(arena, room);
    if (open && room != BLOCK_BYTES) {
        fresh->next = open->next;
        open->next = fresh;
    } else {
        fresh->next = open;
        arena->blocks = fresh;
    }
    return fresh;
}

/* As arena_alloc, but the bytes are not zeroed, for callers that write them at once. */
static void *take(Arena *arena, size_t bytes) {
    size_t align = bytes >= BLOCK_ALIGN ? BLOCK_ALIGN : 16;
    Block *block = arena->blocks;
    size_t at = block ? align_up(block->used, align) : 0;
    if (!block || at > block->room || bytes > block->room - at) {
        block = add_block(arena, bytes);
        at = 0;
    }
    block->used = at + bytes;
    return block_start(block) + at;
}

void *arena_alloc(Arena *arena, size_t bytes) { return memset(take(arena, bytes), 0, bytes); }

void *arena_array(Arena *arena, size_t count, size_t size) {
    if (size && count > SIZE_MAX / size) out_of_memory();
    return arena_alloc(arena, count * size);
}

void *arena_grow(Arena *arena, void *items, int count, int *room, size_t size) {
    if (count < *room) return items;
    *room = *room ? *room * 2 : 16;
    if ((size_t)*room > SIZE_MAX / size) out_of_memory();
    void *grown = take(arena, (size_t)*room * size);
    if (count) memcpy(grown, items, (size_t)count * size);
    return grown;
}

char *arena_copy(Arena *arena, const char *text, size_t size) {
    if (size == SIZE_MAX) out_of_memory();
    char *copy = take(arena, size + 1);
    if (size) memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}

void arena_on_free(Arena *arena, void (*run)(void *), void *with) {
    Cleanup *cleanup = arena_alloc(arena, sizeof *cleanup);
    *cleanup = (Cleanup){arena->cleanups, run, with};
    arena->cleanups = cleanup;
}

/* ---------------------------------------------------------------------------------- text */

enum { DIGITS = 20 }; /* of the longest int64_t with its sign */

/* Writes the digits of `value` so that they end at `end`, and returns where they begin. */
static char *digits_before(char *end, int64_t value) {
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do *--end = (char)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0) *--end = '-';
    return end;
}

/* As vsnprintf, but faster for plain %s, %.*s, %c, %d and %lld, of which most of the output is made. A format with any
 * other conversion is left to vsnprintf. */
static int format_text(char *out, size_t room, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    size_t size = 0;
    for (const char *at = format; *at;) {
        char digits[DIGITS], *end = digits + DIGITS;
        const char *part = at;
        size_t part_size = (size_t)(strchrnul(at, '%') - at);
        if (part_size) {
            at += part_size;
        } else if (at[1] == 's') {
            part = va_arg(args, const char *);
            part_size = strlen(part);
            at += 2;
        } else if (strncmp(at, "%.*s", 4) == 0) {
            int most = va_arg(args, int);
            part = va_arg(args, const char *);
            part_size = most < 0 ? strlen(part) : strnlen(part, (size_t)most);
            at += 4;
        } else if (at[1] == 'c') {
            *--end = (char)va_arg(args, int);
            part = end;
            part_size = 1;
            at += 2;
        } else if (at[1] == 'd' || strncmp(at, "%lld", 4) == 0) {
            part = digits_before(end, at[1] == 'd' ? va_arg(args, int) : va_arg(args, long long));
            part_size = (size_t)(end - part);
            at += at[1] == 'd' ? 2 : 4;
        } else {
            int all = vsnprintf(out, room, format, again);
            va_end(again);
            if (all < 0) bug("the format '%s' is wrong", format);
            return all;
        }
        if (size < room) memcpy(out + size, part, part_size < room - size ? part_size : room - size);
        size += part_size;
    }
    va_end(again);
    if (size > INT_MAX) out_of_memory();
    if (room) out[size < room ? size : room - 1] = '\0';
    return (int)size;
}

char *arena_printf(Arena *arena, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    char small[512];
    size_t size = (size_t)format_text(small, sizeof small, format, args);
    char *text = take(arena, size + 1);
    if (size < sizeof small) memcpy(text, small, size + 1);
    else format_text(text, size + 1, format, again);
    va_end(again);
    va_end(args);
    return text;
}

/* Takes no memory: many texts stay empty, and others are extended at once. */
Text text_new(Arena *arena) {
    static char nothing[1]; /* never written, since there is no room in it */
    return (Text){.arena = arena, .data = nothing};
}

/* Extends the text in place, which succeeds when it is the last allocation of the arena's open block. */
static bool extend(Text *text, size_t more) {
    Block *block = text->arena->blocks;
    if (!block || text->data + text->room != block_start(block) + block->used) return false;
    if (more > block->room - block->used) return false;
    block->used += more;
    text->room += more;
    return true;
}

void text_reserve(Text *text, size_t size) {
    if (size >= SIZE_MAX / 4 || text->size >= SIZE_MAX / 4) out_of_memory();
    size_t least = text->size + size + 1;
    if (least <= text->room || extend(text, 2 * least - text->room)) return;
    char *grown = take(text->arena, 2 * least);
    memcpy(grown, text->data, text->size + 1);
    text->data = grown;
    text->room = 2 * least;
}

void text_add(Text *text, const char *bytes, size_t size) {
    if (size >= text->room - text->size) text_reserve(text, size);
    if (size) memcpy(text->data + text->size, bytes, size);
    text->size += size;
    text->data[text->size] = '\0';
}

void text_add_int(Text *text, int64_t value) {
    char digits[DIGITS];
    const char *first = digits_before(digits + DIGITS, value);
    text_add(text, first, (size_t)(digits + DIGITS - first));
}

void text_vprintf(Text *text, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    size_t room = text->room - text->size;
    size_t size = (size_t)format_text(text->data + text->size, room, format, args);
    if (size >= room) {
        text_reserve(text, size);
        format_text(text->data + text->size, size + 1, format, again);
    }
    text->size += size;
    va_end(again);
}

void text_printf(Text *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    text_vprintf(text, format, args);
    va_end(args);
}

const char *text_filled(Arena *arena, const char *text, const char *const *words) {
    Text out = text_new(arena);
    for (const char *mark; (mark = strchr(text, '@')) != NULL;) {
        const char *const *word = words;
        while (*word && strncmp(mark, *word, strlen(*word)) != 0) word += 2;
        text_add(&out, text, (size_t)(mark - text));
        text_printf(&out, "%s", *word ? word[1] : "@");
        text = mark + (*word ? strlen(*word) : 1);
    }
    text_printf(&out, "%s", text);
    return out.data;
}

bool mul_fits(int64_t a, int64_t b, int64_t *out) { return !__builtin_mul_overflow(a, b, out); }
bool add_fits(int64_t a, int64_t b, int64_t *out) { return !__builtin_add_overflow(a, b, out); }
