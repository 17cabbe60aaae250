/* terminal.c: colour for a terminal alone, and text that cannot command one. */
#include "../attnc.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum Color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER } Color;

static Color wanted;

bool color_choose(const char *choice) {
    static const char *const choices[] = {"auto", "always", "never"};
    for (int i = 0; i < 3; i++)
        if (strcmp(choice, choices[i]) == 0) {
            wanted = (Color)i;
            return true;
        }
    return false;
}

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

size_t utf8_bytes(const unsigned char *at, size_t left) {
    size_t size = *at < 0x80 ? 1 : *at < 0xc2 ? 0 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : *at < 0xf5 ? 4 : 0;
    if (size > left) return 0;
    for (size_t i = 1; i < size; i++)
        if ((at[i] & 0xc0) != 0x80) return 0;
    bool overlong = (*at == 0xe0 && at[1] < 0xa0) || (*at == 0xf0 && at[1] < 0x90);
    bool no_scalar = (*at == 0xed && at[1] > 0x9f) || (*at == 0xf4 && at[1] > 0x8f); /* a surrogate, or too large */
    return size > 2 && (overlong || no_scalar) ? 0 : size;
}

/* C0, DEL and C1 (ECMA-48): C1 as one byte, which a terminal without UTF-8 obeys, and as U+0080 to U+009F. */
void text_disarm(char *text, size_t size) {
    for (size_t i = 0; i < size;) {
        const unsigned char *at = (const unsigned char *)text + i;
        size_t bytes = utf8_bytes(at, size - i);
        bool control = (*at < ' ' && *at != '\n' && *at != '\t') || *at == 0x7f;
        control |= bytes == 0 && *at >= 0x80 && *at < 0xa0;
        control |= bytes == 2 && *at == 0xc2 && at[1] < 0xa0;
        if (bytes == 0) bytes = 1;
        if (control) memset(text + i, '?', bytes);
        i += bytes;
    }
}

void say_head(FILE *to, Paint with, const char *word) {
    progress_hide();
    fprintf(to, "%sattnc:%s %s%s:%s ", paint(to, PAINT_PLACE), paint(to, PAINT_NONE), paint(to, with), word,
            paint(to, PAINT_NONE));
}

void vsay(FILE *to, const char *format, va_list args) {
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
    if (to != stdout || terminal_is(to)) text_disarm(text, size);
    progress_hide();
    fwrite(text, 1, size, to);
    free(many);
}

void say(FILE *to, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsay(to, format, args);
    va_end(args);
}
