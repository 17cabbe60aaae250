/* python.h: what the files of a package for Python share. */
#ifndef PYTHON_H
#define PYTHON_H

#include "../emit/template.h"
#include "package.h"

/* --- python_words.c */
/* Whether ids of tokens are all that forward needs. */
bool python_reads_tokens(const Model *model, const Graph *forward);
/* Lines that name each input and each result of forward with its shape. */
const char *python_shapes(const Package *package);
/* Sets the list `results` {name}, which has the keys of the dict that forward returns. */
void python_set_results(const Package *package, TemplateVars *vars);
/* The inputs of an entry as arguments, "tokens, segments=None". */
const char *python_signature(const Package *package, EntryKind entry);
/* Sets the list `arguments` {name, optional}, which has the same without the mask. */
void python_set_arguments(const Package *package, EntryKind entry, TemplateVars *vars);
/* The axis of an entry that attention_mask is for, "ROWS" or "SOURCE_ROWS"; "" where it takes none. */
const char *python_masked(const Package *package, EntryKind entry);
/* Whether all exported maps of a role have equally many heads. */
bool python_maps_alike(const Graph *graph, OutputRole role);
/* Whether an output before this one is part of the same array. */
bool python_told(const Graph *graph, int output);

/* --- python_texts.c: the texts of the files in Python. */
typedef struct PythonUse {
    bool writes; /* generate, and step of states */
    bool states;
    bool embeds, tokenizes;
    int64_t width; /* of the vector of a text; 0: there is none */
    bool hears, transcribes; /* reads spectrograms; writes words of them */
} PythonUse;
PythonUse python_use(const Package *package);
/* An embedded file of Python with the values of its words, such as @NAME@. */
const char *python_filled(const Package *package, const char *name);
/* Sets the variables of the templates of the types and of the project that _core.c does not need. */
void python_set_stub(const Package *package, const PythonUse *use, TemplateVars *vars);

#endif
