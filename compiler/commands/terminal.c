/* terminal.c: colour on a terminal alone, text without control characters, and a line that can be erased. */
#include "commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

const char *const color_words[] = {"auto", "always", "never", NULL};

static Color wanted;

void color_choose(Color choice) { wanted = choice; }

bool terminal_is(FILE *to) { return isatty(fileno(to)); }

bool terminal_is_plain(void) {
    const char *term = getenv("TERM");
    return !term || !*term || strcmp(term, "dumb") == 0;
}

static bool colored(FILE *to) {
    if (wanted != COLOR_AUTO) return wanted == COLOR_ALWAYS;
    const char *no_color = getenv("NO_COLOR"); /* https://no-color.org: set and not empty */
    return !(no_color && *no_color) && !terminal_is_plain() && terminal_is(to);
}

/* SGR of ECMA-48: 1 bold, 31 red, 32 green, 35 magenta; 0 ends them. */
const char *paint(FILE *to, Paint with) {
    static const char *const codes[] = {"\x1b[0m", "\x1b[1m", "\x1b[1;31m", "\x1b[1;35m", "\x1b[32m"};
    return colored(to) ? codes[with] : "";
}

/* ---------------------------------------------------------------- a line that comes and goes */

enum { WIDEST = 200, NARROW = 80 };

static struct {
    int shown; /* bytes on the screen; 0: none */
    char bytes[WIDEST];
} drawn;

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

int terminal_columns(void) {
    struct winsize window;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0) return NARROW;
    return window.ws_col;
}

/* Blanks are drawn over the rest of a longer line before it. */
void terminal_line(const char *line, size_t size) {
    char out[2 * WIDEST + 2];
    if (size > WIDEST) size = WIDEST;
    size_t before = (size_t)drawn.shown, blanks = before > size ? before - size : 0, n = 0;
    if (size == before && memcmp(line, drawn.bytes, size) == 0) return;
    memcpy(drawn.bytes, line, size);
    out[n++] = '\r';
    memcpy(out + n, line, size);
    n += size;
    memset(out + n, ' ', blanks);
    n += blanks;
    if (size == 0) out[n++] = '\r';
    drawn.shown = (int)size;
    put(out, n);
}

void terminal_line_hide(void) {
    if (drawn.shown) terminal_line("", 0);
}

/* ---------------------------------------------------------------- text */

void say_head(FILE *to, Paint with, const char *word) {
    terminal_line_hide();
    fprintf(to, "%sattnc:%s %s%s:%s ", paint(to, PAINT_PLACE), paint(to, PAINT_NONE), paint(to, with), word,
            paint(to, PAINT_NONE));
}

static void say_text(FILE *to, void (*clean)(char *text, size_t size), const char *format, va_list args) {
    char few[1024];
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(few, sizeof few, format, args);
    bool fits = length < (int)sizeof few;
    char *text = few, *many = fits ? NULL : checked_malloc((size_t)length + 1);
    if (!many && !fits) out_of_memory();
    if (many) vsnprintf(text = many, (size_t)length + 1, format, again);
    va_end(again);
    size_t size = strlen(text);
    if (to != stdout || terminal_is(to)) clean(text, size);
    terminal_line_hide();
    fwrite(text, 1, size, to);
    free(many);
}

void vsay(FILE *to, const char *format, va_list args) { say_text(to, text_disarm, format, args); }
void vsay_line(FILE *to, const char *format, va_list args) { say_text(to, text_disarm_line, format, args); }

void say(FILE *to, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsay(to, format, args);
    va_end(args);
}
