/* explain.h: the counts of attnc explain, which its text and its page show. */
#ifndef EXPLAIN_H
#define EXPLAIN_H

#include "commands.h"
#include "mask_view.h"

enum { MOST_CELLS = 32 };
/* What a character says of the pairs that it stands for: none is visible, some are, or all. */
enum { CELL_HIDDEN = '.', CELL_MIXED = '+', CELL_SEEN = '#' };

/* The mask of one or more attentions of a model. */
typedef struct Pattern {
    const Step *step;  /* the first of these attentions */
    const char *place; /* "encoder, layers 0 to 5" */
    const char *rule, *given; /* the condition, and the inputs that it is drawn for, or NULL */
    const char *stack; /* "encoder" and "decoder" in a model of both, else NULL */
    int *layers;       /* the numbers of the layers, ascending */
    int n_layers, room_layers;
    int64_t rows, keys, all_rows; /* the drawn ones; all_rows is more than rows if not all of them are drawn */
    int64_t visible, multiplied;  /* pairs of one head */
    const char *target;           /* whose C multiplies so many */
    int64_t tile;                 /* rows of queries that it multiplies at once */
    int64_t cell;                 /* a character stands for cell x cell pairs */
    int lines;
    char cells[MOST_CELLS][MOST_CELLS + 1]; /* a line for each row of cells, ended by NUL */
} Pattern;

typedef struct Explain {
    Arena *arena;
    const char *usage;
    const Module *module;
    const Plan *plan;
    CallRows rows;    /* the rows of the counted sequence */
    const char *call; /* describes them */
    double parameters, flops, bytes;
    const char *const *targets; /* from the least to the widest */
    int n_targets;
    size_t code_bytes[MOST_TARGETS]; /* the C of each target alone */
    Emitted code;                    /* the C of all targets together */
    const char *peak_target;
    double peak, read; /* flops and bytes per second of one core (peak.h); 0: not measured */
    const ValueNode *draw; /* the options --draw */
    Pattern *patterns;
    int n_patterns;
} Explain;

/* explain_page.c: writes the counts as a page; after a failure there is no file. */
void explain_page(const Explain *x, const char *path);
/* explain_pattern.c: finds, counts and draws the masks of the plan, each once, for x->rows and the widest target. */
void explain_patterns(Explain *x);
/* explain_inputs.c: sets the inputs of a pattern's rule to the integers of --draw or to drawn ones, and adds them to
 * `given` as --draw takes them. */
void pattern_inputs(const Explain *x, const Pattern *p, MaskView *view, Text *given);
bool draws_pairs(const Explain *x, const Step *s); /* whether --draw has a list of pairs that the step's mask reads */
void check_drawn(const Explain *x); /* fails if --draw names no input of a drawn mask */

#endif
