/* terminal.h: output for people. Included by commands.h alone. Only commands/ and main.c write to a terminal. */
#ifndef TERMINAL_H
#define TERMINAL_H

#include "../attnc.h"

/* --- commands/terminal.c: text for people, in colour on a terminal alone, and without control characters. */
bool terminal_is(FILE *to);
bool terminal_is_plain(void); /* TERM is unset, empty or "dumb" */
/* COLOR_AUTO means colour on a terminal that is not plain, unless NO_COLOR is set. */
typedef enum Color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER } Color;
extern const char *const color_words[]; /* of each Color, up to NULL */
void color_choose(Color choice);

typedef enum Paint { PAINT_NONE, PAINT_PLACE, PAINT_ERROR, PAINT_NOTE, PAINT_GOOD } Paint;
/* The code that begins a colour, which the code of PAINT_NONE ends; "" without colour. */
const char *paint(FILE *to, Paint with);

void say_head(FILE *to, Paint with, const char *word); /* "attnc: WORD: " */
/* Prints a text that may quote files and arguments. Control characters are replaced, except on a stdout that is a pipe
 * or a file. */
void say(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
void vsay(FILE *to, const char *format, va_list args);
void vsay_line(FILE *to, const char *format, va_list args); /* newlines and tabs are replaced, too */

/* Draw a line on stderr over the previous one, and erase it. Both functions bypass stdio and use no control character
 * except the carriage return, which every terminal knows, so a signal handler may call terminal_line_hide. */
void terminal_line(const char *line, size_t size);
void terminal_line_hide(void);
int terminal_columns(void); /* of stderr */

/* --- commands/progress_line.c: a line about work that takes more than two seconds, drawn at most five times a second,
 * and only where stderr is a terminal. */
void progress_line_begin(const Progress *progress);
void progress_line_move(const Progress *progress);
bool progress_line_is_wanted(void);

/* --- commands/reporter.c: shows the reports of all stages from now on (support/report.h). */
void terminal_report(void);

#endif
