/* restate.h: the parts of a model that have one precision each, and the text of a spec with other precisions. */
#ifndef RESTATE_H
#define RESTATE_H

#include "../attnc.h"

/* A unit is the smallest part of a model to which the language gives a precision of its own. */
typedef struct Unit {
    const char *name;   /* "encoder layer 3 ffn.down" */
    Precision **places; /* of the model that hold it: of each layer that shares the weights */
    int n_places;
    bool attends;       /* its precision is also that of an attention and its cache */
    bool is_last;       /* the last matrix of the sublayer whose other matrices are the unit in front of it */
} Unit;

/* --- restate/units.c: the units of a model, whose places are those of that model. Two models of a spec have the same
 * units. */
Unit *units_of(Arena *arena, Model *model, int *count);

/* --- restate/restate.c */
/* Returns the text of the spec with `precision` lines for the precisions that its model now has. The spec is at
 * STAGE_MODEL or later, and its text states no precision. */
const char *restated(Arena *arena, const Compilation *spec);
/* What a line `precision` states for this precision where another is inherited, with a space in front; or "". */
const char *precision_parts(Arena *arena, const Precision *own, const Precision *inherited);
bool states_precision(const Item *item); /* whether it is a setting of a precision */

#endif
