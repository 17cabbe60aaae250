/* diagnostic.c: errors with a source location, the source line and a caret. */
#include "../attnc.h"

#include <string.h>

Diagnostics diagnostics_new(Arena *arena) {
    return (Diagnostics){.arena = arena, .reported = true, .log = text_new(arena)};
}

Diagnostics diagnostics_quiet(Arena *arena) {
    return (Diagnostics){.arena = arena, .log = text_new(arena)};
}

bool location_before(Location a, Location b) { return a.line < b.line || (a.line == b.line && a.column < b.column); }

const char *line_begin(Location at) {
    const char *text = at.source->text, *end = text + at.source->size;
    for (int line = 1; line < at.line && text < end; line++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        text = newline ? newline + 1 : end;
    }
    return text;
}

enum { SHOWN_BEFORE = 60, SHOWN_WIDTH = 110 };

/* Appends the source line of `at` and a caret below it; a long line is cut around the caret. Returns the offset of the
 * caret's line in the text. */
static size_t show_line(Text *out, Location at) {
    const char *text = line_begin(at), *end = at.source->text + at.source->size;
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

/* Adds `LOCATION: error: MESSAGE` or the same with `note`, then the source line and its carets. */
static void add(Diagnostics *to, Location at, bool is_error, const char *format, va_list args) {
    Text *log = &to->log;
    size_t begin = log->size;
    char message[1200];
    vsnprintf(message, sizeof message, format, args);
    if (at.source)
        text_printf(log, "%s:%d:%d: ", at.source->path, at.line, at.column);
    else
        text_printf(log, "attnc: ");
    size_t place = log->size;
    text_printf(log, "%s:", is_error ? "error" : "note");
    size_t word = log->size;
    text_printf(log, " %s\n", message);
    size_t caret = at.source ? show_line(log, at) : log->size;
    text_disarm(log->data + begin, log->size - begin);
    if (!to->reported) return;
    report_diagnosis(&(Diagnosis){.text = log->data + begin, .size = log->size - begin, .place = place - begin,
                                  .word = word - begin, .caret = caret - begin, .is_error = is_error});
}

/* The line after MAX_DIAGNOSTICS errors. */
static void add_end(Diagnostics *to) {
    static const char more[] = "too many errors; the rest is not shown\n";
    enum { SIZE = sizeof more - 1 };
    text_add(&to->log, more, SIZE);
    if (to->reported) report_diagnosis(&(Diagnosis){.text = more, .size = SIZE, .caret = SIZE, .is_error = true});
}

void diagnose(Diagnostics *to, Location at, const char *format, ...) {
    to->errors++;
    if (to->errors > MAX_DIAGNOSTICS) {
        if (to->errors == MAX_DIAGNOSTICS + 1) add_end(to);
        return;
    }
    va_list args;
    va_start(args, format);
    add(to, at, true, format, args);
    va_end(args);
}

void diagnose_note(Diagnostics *to, Location at, const char *format, ...) {
    if (to->errors > MAX_DIAGNOSTICS) return;
    va_list args;
    va_start(args, format);
    add(to, at, false, format, args);
    va_end(args);
}
