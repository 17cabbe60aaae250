/* python.h: what the files of a package for Python share. */
#ifndef PYTHON_H
#define PYTHON_H

#include "../emit/template.h"
#include "package.h"

/* --- python_words.c */
/* Lines that name each input and each result of forward with its shape. */
const char *python_shapes(const Package *package);
/* Sets the list `results` {name}, which has the keys of the dict that forward returns. */
void python_set_results(const Package *package, TemplateVars *vars);
/* The inputs of an entry as arguments, "tokens, segments=None". */
const char *python_signature(const Package *package, EntryKind entry);
/* Sets the list `arguments` {name, optional}, which has the same without the mask. */
void python_set_arguments(const Package *package, EntryKind entry, TemplateVars *vars);
/* The numbers of the sequence that states without rows need as arguments, ", span=None"; "" for no entry. */
const char *python_numbers(const Package *package, EntryKind entry);
/* The axis of an entry that attention_mask is for, "ROWS" or "SOURCE_ROWS"; "" where it takes none. */
const char *python_masked(const Package *package, EntryKind entry);
/* Whether all exported maps of a role have equally many heads. */
bool python_maps_alike(const Graph *graph, OutputRole role);

#endif
