/* numbers.c: numbers as text, in the form that a spec has, counts with their nouns, and medians. */
#include "../attnc.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
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
    char *e = isfinite(value) ? strchr(text, 'e') : NULL; /* printf has 1e-05 where a spec has 1e-5 */
    if (!e) return text;
    const char *sign = e[1] == '-' ? "-" : "", *rest = e + 2 + strspn(e + 2, "0");
    return arena_printf(arena, "%.*se%s%s", (int)(e - text), text, sign, rest);
}

const char *counted(Arena *arena, int64_t n, const char *noun) {
    size_t size = strlen(noun);
    if (n == 1) return arena_printf(arena, "1 %s", noun);
    if (size > 1 && noun[size - 1] == 'y' && !strchr("aeou", noun[size - 2]))
        return arena_printf(arena, "%lld %.*sies", (long long)n, (int)size - 1, noun);
    return arena_printf(arena, "%lld %ss", (long long)n, noun);
}

bool f32_holds(double value) {
    const double rounded = fabs((double)(float)value);
    return value == 0 || (rounded >= (double)FLT_MIN && rounded <= (double)FLT_MAX); /* false for NaN */
}

/* 0.000001 was written, not 9.99999997e-07. */
double f32_written(float value) {
    char text[32];
    for (int digits = 6; digits < 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value) return strtod(text, NULL);
    }
    return (double)value;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double sort_median(double *values, int n) {
    qsort(values, (size_t)n, sizeof *values, by_size);
    return values[n / 2];
}
