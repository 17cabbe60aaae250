/* report.c: passes failures, diagnostics, notes and progress to the installed Reporter. */
#include "../attnc.h"

#include <string.h>

/* ---------------------------------------------------------------- without a reporter */

static void plain_failure(const char *what, const char *why, const char *format, va_list args) {
    fprintf(stderr, "attnc: %s: ", what);
    vfprintf(stderr, format, args);
    fprintf(stderr, "%s%s\n", why ? ": " : "", why ? why : "");
}

static void plain_note(const char *format, va_list args) { plain_failure("note", NULL, format, args); }
static void plain_diagnosis(const Diagnosis *diagnosis) { fwrite(diagnosis->text, 1, diagnosis->size, stderr); }

static const Reporter plain = {.failure = plain_failure, .note = plain_note, .diagnosis = plain_diagnosis};

/* ---------------------------------------------------------------- reports */

static const Reporter *reporter = &plain;
static Progress progress;

void report_to(const Reporter *installed) { reporter = installed ? installed : &plain; }

void report_failure(const char *what, const char *why, const char *format, va_list args) {
    if (reporter->failure) reporter->failure(what, why, format, args);
}

void report_note(const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (reporter->note) reporter->note(format, args);
    va_end(args);
}

void report_lines(const char *notes) {
    for (const char *note = notes; *note; note += strcspn(note, "\n") + 1)
        report_note("%.*s", (int)strcspn(note, "\n"), note);
}

void report_diagnosis(const Diagnosis *diagnosis) {
    if (reporter->diagnosis) reporter->diagnosis(diagnosis);
}

/* ---------------------------------------------------------------- progress */

void progress_begin(const char *format, ...) {
    progress = (Progress){.running = true};
    va_list args;
    va_start(args, format);
    char whole[sizeof progress.what + 4];
    vsnprintf(whole, sizeof whole, format, args);
    va_end(args);
    memcpy(progress.what, whole, utf8_cut(whole, sizeof progress.what - 1)); /* the rest is zero */
    if (reporter->progress_begun) reporter->progress_begun(&progress);
}

void progress_tick(void) {
    if (progress.running && reporter->progress_moved) reporter->progress_moved(&progress);
}

void progress_at(int64_t done, int64_t total, const char *unit) {
    progress.done = done;
    progress.total = total;
    progress.unit = unit;
    progress.step = progress.steps = 0;
    progress_tick();
}

void progress_more(int64_t done) { progress_at(progress.done + done, progress.total, progress.unit); }

void progress_step(int64_t step, int64_t steps) {
    progress.step = step;
    progress.steps = steps;
    progress_tick();
}

bool progress_is_wanted(void) {
    return progress.running && reporter->progress_is_wanted && reporter->progress_is_wanted();
}

void progress_hide(void) {
    if (reporter->progress_hide) reporter->progress_hide();
}

void progress_end(void) {
    progress_hide();
    progress.running = false;
}
