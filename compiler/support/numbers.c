/* numbers.c: numbers as a spec writes them. */
#include "../attnc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *number_text(Arena *arena, double value) {
    if (value > -1e15 && value < 1e15 && value == (double)(int64_t)value)
        return arena_printf(arena, "%lld", (long long)value);
    char *text = NULL;
    for (int digits = 1; digits <= 17; digits++) {
        text = arena_printf(arena, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    char *e = isfinite(value) ? strchr(text, 'e') : NULL; /* 1e-05 is written 1e-5 */
    if (!e) return text;
    const char *sign = e[1] == '-' ? "-" : "", *rest = e + 2 + strspn(e + 2, "0");
    return arena_printf(arena, "%.*se%s%s", (int)(e - text), text, sign, rest);
}
