/* mark.c: a checksum in the files of a program that people change, by which attnc get knows those that nobody has. */
#include "project.h"

#include <string.h>

enum { DIGITS = 16 };
static const char words[] = PROJECT_MARK_WORDS;

/* The digits after the first mark of a text; NULL without one. */
static char *digits_of(char *text) {
    char *at = strstr(text, words);
    return at && strspn(at + strlen(words), "0123456789abcdef") >= DIGITS ? at + strlen(words) : NULL;
}

/* The checksum of a text, whose own digits count as zeros, in *digits. */
static void checksum(Arena *arena, char *digits, const char *text, size_t size) {
    memset(digits, '0', DIGITS);
    const uint64_t hash = hash_bytes(0, text, size);
    memcpy(digits, arena_printf(arena, "%016llx", (unsigned long long)hash), DIGITS);
}

const char *project_marked(Arena *arena, const char *text) {
    char *marked = arena_copy(arena, text, strlen(text));
    char *digits = digits_of(marked);
    if (!digits) bug("a file of a program has no mark");
    checksum(arena, digits, marked, strlen(marked));
    return marked;
}

bool project_mark_holds(Arena *arena, const char *text, size_t size) {
    char *copy = arena_copy(arena, text, size);
    char *digits = digits_of(copy);
    if (!digits) return false;
    const char *before = arena_copy(arena, digits, DIGITS);
    checksum(arena, digits, copy, size);
    return memcmp(before, digits, DIGITS) == 0;
}
