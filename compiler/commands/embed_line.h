/* embed_line.h: how far a run of attnc embed is, on stderr. */
#ifndef EMBED_LINE_H
#define EMBED_LINE_H

#include "../embed/embed.h"

typedef struct EmbedLine {
    const char *name; /* of the model */
    bool bar;         /* a line that is drawn over itself; otherwise a note from time to time */
    double begin, next;
} EmbedLine;

/* `forced`: a bar is drawn also where stderr is no terminal. */
EmbedLine embed_line_begin(const char *name, bool forced);
void embed_line(EmbedLine *line, const EmbedProgress *progress);
void embed_line_end(EmbedLine *line);

#endif
