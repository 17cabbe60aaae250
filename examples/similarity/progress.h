#ifndef SIMILARITY_PROGRESS_H
#define SIMILARITY_PROGRESS_H

#include <stddef.h>

/* Seconds of a clock that never goes back. */
double seconds(void);

/* A line on standard error that says how far the work is, redrawn in place. It is shown only on a terminal, and only
 * for work of more than two seconds. There is one for the program; only the main thread may draw it. */
void progress_begin(void);

/* `texts` are done, and `fraction` of the work; a negative fraction is not known. Cheap enough for every few texts. */
void progress_show(size_t texts, double fraction);

/* Takes the line away. Without a line it does nothing. */
void progress_end(void);

#endif
