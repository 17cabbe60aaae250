/* embed_line.c: a bar with the rate and the time that is left, or a note from time to time. */
#include "embed_line.h"

#include "commands.h"

#include <string.h>

enum { CELLS = 20, SECONDS_BETWEEN_NOTES = 30 };
static const double BETWEEN = 0.2; /* seconds between two drawings */

EmbedLine embed_line_begin(const char *name, bool forced) {
    const double now = seconds_now();
    const bool bar = forced || progress_line_is_wanted();
    return (EmbedLine){.name = name, .bar = bar, .begin = now, .next = now + (bar ? 0 : SECONDS_BETWEEN_NOTES)};
}

/* "4 s", "12 min", "3 h 5 min" */
static void time_text(char *out, size_t room, double seconds) {
    const long long s = (long long)(seconds + 0.5), minutes = (s + 30) / 60;
    if (s < 100) snprintf(out, room, "%lld s", s);
    else if (minutes < 100) snprintf(out, room, "%lld min", minutes);
    else snprintf(out, room, "%lld h %lld min", minutes / 60, minutes % 60);
}

void embed_line(EmbedLine *line, const EmbedProgress *p) {
    const double now = seconds_now(), taken = now - line->begin;
    if (now < line->next) return;
    line->next = now + (line->bar ? BETWEEN : SECONDS_BETWEEN_NOTES);
    char text[400], left[40] = "", bar[CELLS + 1];
    const double rate = taken > 0 ? (double)p->rows_now / taken : 0;
    if (p->part_now > 0) time_text(left, sizeof left, taken * (1 - p->part) / p->part_now);
    const int cells = (int)(p->part * CELLS);
    for (int i = 0; i < CELLS; i++) bar[i] = i < cells ? '#' : '.';
    bar[CELLS] = '\0';
    int n = line->bar ? snprintf(text, sizeof text, "%.100s [%s] ", line->name, bar)
                      : snprintf(text, sizeof text, "%.100s: ", line->name);
    n += snprintf(text + n, sizeof text - (size_t)n, "%.0f %%, %lld texts, %.*f a second%s%s", 100 * p->part,
                  (long long)p->rows, rate < 10, rate, *left ? ", time left " : "", left);
    if (!line->bar) {
        report_note("%s", text);
        return;
    }
    const int most = terminal_columns() - 1;
    if (n > most) n = most > 0 ? most : 0;
    terminal_line(text, (size_t)n);
}

void embed_line_end(EmbedLine *line) {
    if (line->bar) terminal_line_hide();
}
