/* reporter.c: the reports of all stages, as a terminal shows them. */
#include "commands.h"

static void show_failure(const char *what, const char *why, const char *format, va_list args) {
    fflush(stdout);
    say_head(stderr, PAINT_ERROR, what);
    vsay_line(stderr, format, args);
    if (why) fprintf(stderr, ": %s", why);
    fputc('\n', stderr);
}

static void show_note(const char *format, va_list args) {
    say_head(stderr, PAINT_NOTE, "note");
    vsay_line(stderr, format, args);
    fputc('\n', stderr);
}

static void show_part(Paint with, const char *text, size_t size) {
    if (size) fprintf(stderr, "%s%.*s%s", paint(stderr, with), (int)size, text, paint(stderr, PAINT_NONE));
}

/* The source location is bold; `error:` or `note:` and the carets have the colour of their kind. */
static void show_diagnosis(const Diagnosis *d) {
    Paint with = d->is_error ? PAINT_ERROR : PAINT_NOTE;
    terminal_line_hide();
    show_part(PAINT_PLACE, d->text, d->place);
    show_part(with, d->text + d->place, d->word - d->place);
    fwrite(d->text + d->word, 1, d->caret - d->word, stderr);
    if (d->caret == d->size) return;
    show_part(with, d->text + d->caret, d->size - 1 - d->caret);
    fputc('\n', stderr);
}

void terminal_report(void) {
    static const Reporter shown = {
        .failure = show_failure,
        .note = show_note,
        .diagnosis = show_diagnosis,
        .progress_begun = progress_line_begin,
        .progress_moved = progress_line_move,
        .progress_is_wanted = progress_line_is_wanted,
        .progress_hide = terminal_line_hide,
    };
    report_to(&shown);
}
