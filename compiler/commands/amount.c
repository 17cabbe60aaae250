/* amount.c: formats sizes, rates and times for the commands. */
#include "commands.h"

const char *amount_text(Arena *arena, double value, const char *unit) {
    static const char *const prefixes[] = {"", "k", "M", "G", "T"};
    int p = 0;
    while (value >= 1000 && p < 4) value /= 1000, p++;
    return arena_printf(arena, p ? "%.2f %s%s" : "%.0f %s%s", value, prefixes[p], unit);
}

const char *duration_text(Arena *arena, double seconds) {
    static const char *const units[] = {"s", "ms", "us", "ns"};
    int u = 0;
    while (seconds < 1 && u < 3) seconds *= 1000, u++;
    return arena_printf(arena, "%.*f %s", seconds < 10 ? 3 : seconds < 100 ? 2 : 1, seconds, units[u]);
}
