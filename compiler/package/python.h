/* python.h: what the files of a package for Python share. */
#ifndef PYTHON_H
#define PYTHON_H

#include "package.h"

/* --- python_words.c */
/* Whether ids of tokens are all that forward needs. */
bool python_reads_tokens(const Model *model, const Graph *forward);
/* Lines that name each input and each result of forward with its shape. */
const char *python_shapes(const Package *package);
/* The keys of the dict that forward returns, as entries of a TypedDict. */
const char *python_result_types(const Package *package);
/* The inputs of an entry as arguments, "tokens, segments=None". */
const char *python_signature(const Package *package, EntryKind entry);
/* The same for a stub, with `self` in front and a line for each. The first `positional` need no name. */
const char *python_arguments(const Package *package, EntryKind entry, int positional, bool all_optional);
/* The axis of an entry that attention_mask is for, "ROWS" or "SOURCE_ROWS"; "" where it takes none. */
const char *python_masked(const Package *package, EntryKind entry);
/* Whether all exported maps of a role have equally many heads. */
bool python_maps_alike(const Graph *graph, OutputRole role);

/* --- python_texts.c: the texts of the files in Python. */
typedef struct PythonUse {
    bool writes; /* generate, and step of states */
    bool states;
    bool embeds, tokenizes;
    bool hears, transcribes; /* reads spectrograms; writes words of them */
} PythonUse;
PythonUse python_use(const Package *package);
const char *python_init(const Package *package);
const char *python_stub(const Package *package);
const char *python_setup(const Package *package);
const char *python_project(const Package *package);

#endif
