/* progress.c: one line about work that takes long. It uses no code but the return to the line's begin, which every
 * terminal knows, and goes around stdio, so that a handler of a signal may hide it. */
#include "../attnc.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { WIDEST = 200, NARROW = 80 };
static const double FIRST_SHOWN = 2, BETWEEN = 0.2; /* seconds */

static struct {
    bool running, asked, wanted; /* asked: whether stderr is a terminal is known */
    double first, begin, next;   /* when any work began, when this one did, and when the line may be drawn again */
    char what[WIDEST];
    const char *unit;
    int64_t done, total, step, steps;
    int shown; /* bytes of the line that is on the screen; 0: none */
    char line[WIDEST];
} progress;

/* Not in the background, where it would stand in the line of another program. */
static bool is_wanted(void) {
    if (!progress.asked) progress.wanted = terminal_is(stderr) && !terminal_is_plain();
    progress.asked = true;
    if (!progress.wanted) return false;
    pid_t front = tcgetpgrp(STDERR_FILENO);
    return front < 0 || front == getpgrp();
}

static void put(const char *bytes, size_t size) {
    int error = errno;
    while (size) {
        ssize_t got = write(STDERR_FILENO, bytes, size);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        bytes += got;
        size -= (size_t)got;
    }
    errno = error;
}

static int columns(void) {
    struct winsize window;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0) return NARROW;
    return window.ws_col;
}

/* Over the line that is there; what is left of that one is blanked. */
static void draw(const char *line, size_t size) {
    char out[2 * WIDEST + 2];
    size_t before = (size_t)progress.shown, blanks = before > size ? before - size : 0, n = 0;
    if (size == before && memcmp(line, progress.line, size) == 0) return;
    memcpy(progress.line, line, size);
    out[n++] = '\r';
    memcpy(out + n, line, size);
    n += size;
    memset(out + n, ' ', blanks);
    n += blanks;
    if (size == 0) out[n++] = '\r';
    progress.shown = (int)size;
    put(out, n);
}

static void show(double now) {
    char line[2 * WIDEST];
    int n = snprintf(line, sizeof line, "%s", progress.what);
    if (progress.total > 0)
        n += snprintf(line + n, sizeof line - (size_t)n, ": %lld of %lld %s", (long long)progress.done,
                      (long long)progress.total, progress.unit);
    if (progress.steps > 0)
        n += snprintf(line + n, sizeof line - (size_t)n, ", step %lld of %lld", (long long)progress.step,
                      (long long)progress.steps);
    if (now - progress.begin >= 1)
        n += snprintf(line + n, sizeof line - (size_t)n, ", %lld s", (long long)(now - progress.begin));
    int most = columns() - 1; /* the last column would begin a new line on some */
    if (most > WIDEST) most = WIDEST;
    if (n > most) n = most > 0 ? most : 0;
    while (n > 0 && ((unsigned char)line[n] & 0xc0) == 0x80) n--; /* no half of a character */
    draw(line, (size_t)n);
    progress.next = now + BETWEEN;
}

void progress_begin(const char *format, ...) {
    double now = seconds_now();
    if (progress.first == 0) {
        progress.first = now;
        progress.next = now + FIRST_SHOWN;
    }
    progress.running = true;
    progress.begin = now;
    progress.done = progress.total = progress.step = progress.steps = 0;
    va_list args;
    va_start(args, format);
    vsnprintf(progress.what, sizeof progress.what, format, args);
    va_end(args);
    text_disarm(progress.what, strlen(progress.what));
    if (now >= progress.first + FIRST_SHOWN && is_wanted()) show(now); /* the work may say nothing more */
}

void progress_tick(void) {
    if (!progress.running) return;
    double now = seconds_now();
    if (now >= progress.next && is_wanted()) show(now);
}

void progress_at(int64_t done, int64_t total, const char *unit) {
    progress.done = done;
    progress.total = total;
    progress.unit = unit;
    progress.step = progress.steps = 0;
    progress_tick();
}

void progress_more(int64_t done) {
    progress_at(progress.done + done, progress.total, progress.unit);
}

void progress_step(int64_t step, int64_t steps) {
    progress.step = step;
    progress.steps = steps;
    progress_tick();
}

bool progress_is_wanted(void) { return progress.running && is_wanted(); }

void progress_hide(void) {
    if (progress.shown == 0) return;
    draw("", 0);
}

void progress_end(void) {
    progress_hide();
    progress.running = false;
}
