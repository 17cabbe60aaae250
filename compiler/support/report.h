/* report.h: reports of the stages to people. Included by attnc.h alone.
 *
 * A stage reports, and the program decides how reports are shown; attnc shows them on its terminal
 * (commands/reporter.c). In a program without a Reporter, failures, diagnostics and notes are plain lines on stderr,
 * and progress is not shown. */
#ifndef REPORT_H
#define REPORT_H

/* One diagnostic as printable text with its final newline. The offsets mark its parts, for colour:
 * text[0..place-1] is the source location, text[place..word-1] says `error:` or `note:`, and the carets begin at
 * `caret`, which is `size` where no source line is shown. */
typedef struct Diagnosis {
    const char *text;
    size_t size, place, word, caret;
    bool is_error; /* else a note */
} Diagnosis;

/* Work that may take long: `what` is being done, `done` of `total` units are finished (total 0: unknown), and `step` of
 * `steps` of the next unit (steps 0: unknown). */
typedef struct Progress {
    bool running;
    char what[200];
    const char *unit;
    int64_t done, total, step, steps;
} Progress;

/* The functions that show reports; each may be NULL. A signal handler may call progress_hide. */
typedef struct Reporter {
    /* The program ends with the message of `format`, and with the system's reason `why` unless that is NULL. `what` is
     * "error" or names an internal error. */
    void (*failure)(const char *what, const char *why, const char *format, va_list args);
    void (*note)(const char *format, va_list args); /* one line, without its newline */
    void (*diagnosis)(const Diagnosis *diagnosis);
    void (*progress_begun)(const Progress *progress);
    void (*progress_moved)(const Progress *progress);
    bool (*progress_is_wanted)(void);
    void (*progress_hide)(void);
} Reporter;

void report_to(const Reporter *reporter); /* kept, not copied; NULL: plain lines on stderr */

void report_failure(const char *what, const char *why, const char *format, va_list args); /* for failure.c */
void report_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void report_lines(const char *notes); /* each line of the text as a note */
void report_diagnosis(const Diagnosis *diagnosis);

/* Begins work such as "packing minilm.attnw", and ends the work that was running. */
void progress_begin(const char *what, ...) __attribute__((format(printf, 1, 2)));
void progress_at(int64_t done, int64_t total, const char *unit); /* keeps the pointer `unit` */
void progress_more(int64_t done);                                /* `done` units more than at the last call */
void progress_step(int64_t step, int64_t steps);
void progress_tick(void);      /* shows the time that has passed */
bool progress_is_wanted(void); /* whether ticks are of use */
void progress_hide(void);      /* before other output; a signal handler may call it */
void progress_end(void);

#endif
