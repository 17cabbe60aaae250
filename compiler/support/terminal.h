/* terminal.h: what goes to people rather than into files. Included by attnc.h alone. */
#ifndef TERMINAL_H
#define TERMINAL_H

/* --- support/terminal.c: what people read: in colour on a terminal alone, and without control characters. */
bool terminal_is(FILE *to);
bool terminal_is_plain(void); /* TERM says that it can do nothing, or nothing */
/* auto, always or never; false: none of them. auto is colour on a terminal that is not plain, without NO_COLOR. */
bool color_choose(const char *choice);

typedef enum Paint { PAINT_NONE, PAINT_PLACE, PAINT_ERROR, PAINT_NOTE, PAINT_GOOD } Paint;
const char *paint(FILE *to, Paint with); /* the code that begins it, to be ended by PAINT_NONE's; "" without colour */

/* Bytes of the character of UTF-8 at `at`, of which `left` >= 1 bytes are there; 0 where none begins. */
size_t utf8_bytes(const unsigned char *at, size_t left);
/* Each byte of a control character but newline and tab becomes `?`. */
void text_disarm(char *text, size_t size);
void say_head(FILE *to, Paint with, const char *word); /* "attnc: WORD: " */
/* Prints a text that quotes files and command lines, disarmed; into a pipe or file on stdout it goes as it is. */
void say(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
void vsay(FILE *to, const char *format, va_list args);

/* --- support/progress.c: one line on stderr about work that takes more than two seconds, drawn anew at most five times
 * a second and gone at its end; nothing where stderr is no terminal. */
void progress_begin(const char *what, ...) __attribute__((format(printf, 1, 2))); /* "packing minilm.attnw" */
void progress_at(int64_t done, int64_t total, const char *unit); /* of the work, total 0: unknown; `unit` is kept */
void progress_more(int64_t done);                                /* so many more than at the last call */
void progress_step(int64_t step, int64_t steps);                 /* of what comes after those done; steps 0: unknown */
void progress_tick(void);         /* nothing new but the time */
bool progress_is_wanted(void);    /* whether ticks are of use */
void progress_hide(void);         /* before something else is printed; a handler of a signal may call it */
void progress_end(void);

#endif
