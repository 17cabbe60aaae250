/* search.h: the search of attnc generate, from the spec's block `generation` and the command line. */
#ifndef SEARCH_H
#define SEARCH_H

#include "commands.h"

#include "../../runtime/attn_generate.h"

/* The texts of the options about the search; NULL where an option is not given. */
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

/* Refuses wrong options, by the words alone, before a spec is read: wrong usage. */
void search_check(const SearchWords *words);
/* The search of the spec, with what the words say in its place. */
Search search_read(Arena *arena, const SearchWords *words, const Model *model);
/* New tokens at most of a prompt; a failure where the prompt is as long as a text may be. */
int64_t search_max_new(const Search *search, int64_t prompt);
/* The options for a prompt of so many tokens. */
attn_generate_options search_for(const Search *search, int64_t prompt);

#endif
