/* progress_line.c: one line about work that takes long. */
#include "commands.h"

#include <string.h>
#include <unistd.h>

enum { WIDEST = 200 };
static const double FIRST_SHOWN = 2, BETWEEN = 0.2; /* seconds */

static struct {
    bool asked, wanted;        /* asked: it is known whether stderr is a terminal */
    double first, begin, next; /* when any work began, when this one did, and when the line may be drawn again */
} timing;

/* No line is drawn in the background, where it would overwrite the line of another program. */
bool progress_line_is_wanted(void) {
    if (!timing.asked) timing.wanted = terminal_is(stderr) && !terminal_is_plain();
    timing.asked = true;
    if (!timing.wanted) return false;
    pid_t front = tcgetpgrp(STDERR_FILENO);
    return front < 0 || front == getpgrp();
}

static void show(const Progress *progress, double now) {
    char line[2 * WIDEST];
    int n = snprintf(line, sizeof line, "%s", progress->what);
    text_disarm(line, (size_t)n);
    if (progress->total > 0)
        n += snprintf(line + n, sizeof line - (size_t)n, ": %lld of %lld %s", (long long)progress->done,
                      (long long)progress->total, progress->unit);
    if (progress->steps > 0)
        n += snprintf(line + n, sizeof line - (size_t)n, ", step %lld of %lld", (long long)progress->step,
                      (long long)progress->steps);
    if (now - timing.begin >= 1)
        n += snprintf(line + n, sizeof line - (size_t)n, ", %lld s", (long long)(now - timing.begin));
    int most = terminal_columns() - 1; /* the last column would begin a new line on some terminals */
    if (most > WIDEST) most = WIDEST;
    if (n > most) n = most > 0 ? most : 0;
    while (n > 0 && ((unsigned char)line[n] & 0xc0) == 0x80) n--; /* a character is not cut */
    terminal_line(line, (size_t)n);
    timing.next = now + BETWEEN;
}

void progress_line_begin(const Progress *progress) {
    double now = seconds_now();
    if (timing.first == 0) {
        timing.first = now;
        timing.next = now + FIRST_SHOWN;
    }
    timing.begin = now;
    /* the work may report nothing more */
    if (now >= timing.first + FIRST_SHOWN && progress_line_is_wanted()) show(progress, now);
}

void progress_line_move(const Progress *progress) {
    double now = seconds_now();
    if (now >= timing.next && progress_line_is_wanted()) show(progress, now);
}
