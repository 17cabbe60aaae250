/* diagnostic.c: errors with a place, the source line and a caret. */
#include "../attnc.h"

#include <string.h>

Diagnostics diagnostics_new(Arena *arena, FILE *to) {
    return (Diagnostics){.arena = arena, .to = to, .log = text_new(arena)};
}

enum { SHOWN_BEFORE = 60, SHOWN_WIDTH = 110 };

/* Adds the line of `at` and a caret below it; a long line is shown around the place. */
static void show_line(Text *out, Place at) {
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
    for (size_t i = from; i < from + shown; i++) {
        char byte = text[i];
        if (byte != '\t' && (unsigned char)byte < ' ') byte = '?';
        text_add(out, &byte, 1);
    }
    text_add(out, "\n    ", 5);
    for (size_t i = from; i < column; i++) text_add(out, text[i] == '\t' ? "\t" : " ", 1);
    text_add(out, "^", 1);
    for (int i = 1; i < at.length && column + (size_t)i < from + shown; i++) text_add(out, "~", 1);
    text_add(out, "\n", 1);
}

static void add(Diagnostics *to, Place at, const char *what, const char *format, va_list args) {
    size_t begin = to->log.size;
    char message[600];
    vsnprintf(message, sizeof message, format, args);
    if (at.source)
        text_printf(&to->log, "%s:%d:%d: %s: %s\n", at.source->path, at.line, at.column, what, message);
    else
        text_printf(&to->log, "attnc: %s: %s\n", what, message);
    if (at.source) show_line(&to->log, at);
    if (to->to) fwrite(to->log.data + begin, 1, to->log.size - begin, to->to);
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
    add(to, at, "error", format, args);
    va_end(args);
}

void diagnose_note(Diagnostics *to, Place at, const char *format, ...) {
    if (to->errors > MAX_DIAGNOSTICS) return;
    va_list args;
    va_start(args, format);
    add(to, at, "note", format, args);
    va_end(args);
}
