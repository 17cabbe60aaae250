/* One line on a terminal. It uses no escape codes but the return to the line's begin, which every terminal knows. */
#define _DEFAULT_SOURCE /* struct winsize */

#include "progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { BAR = 24, NARROW = 80 };
static const double FIRST_SHOWN = 2, BETWEEN = 0.2; /* seconds */

static struct {
    bool wanted;
    double begin, next; /* when the work began, and when the line may be drawn again */
    int width;          /* columns on the screen */
} progress;

double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void progress_begin(void) {
    progress.wanted = isatty(STDERR_FILENO);
    progress.begin = seconds();
    progress.next = progress.begin + FIRST_SHOWN;
    progress.width = 0;
}

static int columns(void) {
    struct winsize window;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0) return NARROW;
    return window.ws_col;
}

/* Draws over what is there, and blanks what is left of it. */
static void draw(const char *line) {
    int width = (int)strlen(line), most = columns() - 1; /* the last column would begin a new line on some */
    if (width > most) width = most > 0 ? most : 0;
    int blanks = progress.width > width ? progress.width - width : 0;
    fprintf(stderr, "\r%.*s%*s%s", width, line, blanks, "", width ? "" : "\r");
    fflush(stderr);
    progress.width = width;
}

void progress_show(size_t texts, double fraction) {
    if (!progress.wanted) return;
    double now = seconds();
    if (now < progress.next) return;
    progress.next = now + BETWEEN;
    double spent = now - progress.begin;
    char line[160], bar[BAR + 1] = {0};
    if (fraction > 0) {
        for (int i = 0; i < BAR; i++) bar[i] = (i + 0.5) / BAR < fraction ? '#' : '-';
        double left = spent * (1 - fraction) / fraction;
        if (left > 359999) left = 359999; /* 99 hours: more is no news */
        long whole = (long)(left + 0.5);
        snprintf(line, sizeof line, "[%s] %3.0f %%  %zu texts, %.0f texts/s, %ld:%02ld:%02ld left", bar,
                 100 * fraction, texts, (double)texts / spent, whole / 3600, whole / 60 % 60, whole % 60);
    } else {
        snprintf(line, sizeof line, "%zu texts, %.0f texts/s, %.0f s", texts, (double)texts / spent, spent);
    }
    draw(line);
}

void progress_end(void) {
    if (progress.width > 0) draw("");
    progress.wanted = false;
}
