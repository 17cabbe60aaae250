/* diagnostic.c: errors with a place, the source line and a caret. */
#include "../attnc.h"

#include <string.h>

Diagnostics diagnostics_new(Arena *arena, FILE *to) {
    return (Diagnostics){.arena = arena, .to = to, .log = text_new(arena)};
}

enum { SHOWN_BEFORE = 60, SHOWN_WIDTH = 110 };

/* Adds the line of `at` and a caret below it; a long line is shown around the place. Where the caret's line begins. */
static size_t show_line(Text *out, Place at) {
    const char *text = at.source->text, *end = text + at.source->size;
    for (int line = 1; line < at.line && text < end; line++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        text = newline ? newline + 1 : end;
    }
    const char *stop = memchr(text, '\n', (size_t)(end - text));
    if (!stop) stop = end;
    size_t length = (size_t)(stop - text), column = (size_t)(at.column - 1);
    if (length && text[length - 1] == '\r') length--;
    if (column > length) column = length;
    size_t from = column > SHOWN_BEFORE ? column - SHOWN_BEFORE : 0;
    size_t shown = length - from < SHOWN_WIDTH ? length - from : SHOWN_WIDTH;
    text_add(out, "    ", 4);
    text_add(out, text + from, shown);
    text_add(out, "\n", 1);
    size_t carets = out->size;
    text_add(out, "    ", 4);
    for (size_t i = from; i < column; i++) text_add(out, text[i] == '\t' ? "\t" : " ", 1);
    text_add(out, "^", 1);
    for (int i = 1; i < at.length && column + (size_t)i < from + shown; i++) text_add(out, "~", 1);
    text_add(out, "\n", 1);
    return carets;
}

static void print_part(FILE *to, Paint with, const Text *log, size_t from, size_t until) {
    fprintf(to, "%s%.*s%s", paint(to, with), (int)(until - from), log->data + from, paint(to, PAINT_NONE));
}

/* PLACE: WHAT: MESSAGE, and below it the line and its caret: the place bold, WHAT and the caret in `with`. */
static void add(Diagnostics *to, Place at, Paint with, const char *what, const char *format, va_list args) {
    Text *log = &to->log;
    size_t begin = log->size;
    char message[1200];
    vsnprintf(message, sizeof message, format, args);
    if (at.source)
        text_printf(log, "%s:%d:%d: ", at.source->path, at.line, at.column);
    else
        text_printf(log, "attnc: ");
    size_t place = log->size;
    text_printf(log, "%s:", what);
    size_t word = log->size;
    text_printf(log, " %s\n", message);
    size_t caret = at.source ? show_line(log, at) : log->size;
    text_disarm(log->data + begin, log->size - begin);
    if (!to->to) return;
    progress_hide();
    print_part(to->to, PAINT_PLACE, log, begin, place);
    print_part(to->to, with, log, place, word);
    fwrite(log->data + word, 1, caret - word, to->to);
    if (!at.source) return;
    print_part(to->to, with, log, caret, log->size - 1);
    fputc('\n', to->to);
}

void diagnose(Diagnostics *to, Place at, const char *format, ...) {
    to->errors++;
    if (to->errors > MAX_DIAGNOSTICS) {
        if (to->errors == MAX_DIAGNOSTICS + 1) {
            static const char more[] = "too many errors; the rest is not shown\n";
            text_add(&to->log, more, sizeof more - 1);
            if (to->to) fputs(more, to->to);
        }
        return;
    }
    va_list args;
    va_start(args, format);
    add(to, at, PAINT_ERROR, "error", format, args);
    va_end(args);
}

void diagnose_note(Diagnostics *to, Place at, const char *format, ...) {
    if (to->errors > MAX_DIAGNOSTICS) return;
    va_list args;
    va_start(args, format);
    add(to, at, PAINT_NOTE, "note", format, args);
    va_end(args);
}
