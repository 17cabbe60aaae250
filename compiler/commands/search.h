/* search.h: the search of attnc generate, from the spec's block `generation` and the command line. */
#ifndef SEARCH_H
#define SEARCH_H

#include "commands.h"

#include "../../runtime/attn_generate.h"

/* What the options of the search say; the text of an option that is not given is NULL. */
typedef struct SearchWords {
    const char *usage;
    const char *max_new, *min_new, *beam, *penalty, *form, *stopping, *temperature, *top_k, *top_p, *min_p, *seed,
        *sequence, *repetition, *ngram;
    bool ignore_end, sample;
} SearchWords;

typedef struct Search {
    attn_generate_options options; /* max_new is 0 where the length of the text bounds it */
    int64_t max_length;            /* of the prompt and the new tokens; 0 where max_new is stated */
} Search;

/* Ends the command with wrong usage where the options are wrong in themselves, so that no spec has to be read first. */
void search_check(const SearchWords *words);
/* The search that the spec states, in which the words replace what they name. */
Search search_read(Arena *arena, const SearchWords *words, const Model *model);
/* New tokens at most of a prompt; a failure where the prompt is as long as a text may be. */
int64_t search_max_new(const Search *search, int64_t prompt);
/* The options for a prompt of so many tokens. */
attn_generate_options search_for(const Search *search, int64_t prompt);

#endif
