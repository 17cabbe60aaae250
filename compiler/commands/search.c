/* search.c: options of attnc generate about the search, and what the spec states in their place. */
#include "search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static double option_real(const SearchWords *w, const char *name, const char *text, double otherwise) {
    if (!text) return otherwise;
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end) usage_error(w->usage, "`%s` wants a number, found `%s`", name, text);
    return value;
}

static uint64_t option_natural(const SearchWords *w, const char *name, const char *text) {
    if (!text) return 0;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text < '0' || *text > '9')
        usage_error(w->usage, "`%s` wants an integer from 0 to 2^64 - 1, found `%s`", name, text);
    return value;
}

/* ---------------------------------------------------------------- what the words alone tell */

static void check_ranges(const SearchWords *w, const attn_generate_options *o) {
    if (!(o->temperature >= 0) || o->temperature > 1e6) usage_error(w->usage, "`--temperature` is 0 or more");
    if (!(o->top_p > 0) || o->top_p > 1) usage_error(w->usage, "`--top-p` is greater than 0 and at most 1");
    if (!(o->min_p >= 0 && o->min_p <= 1)) usage_error(w->usage, "`--min-p` is 0 to 1");
    if (!(o->repetition_penalty >= 1e-3 && o->repetition_penalty <= 1e3))
        usage_error(w->usage, "`--repeat-penalty` is 0.001 to 1000");
    if (o->beams > 1 && o->temperature > 0)
        usage_error(w->usage, "beam search and `--temperature` exclude each other");
    if (o->beams > 1 && w->sample) usage_error(w->usage, "beam search and `--sample` exclude each other");
    if (w->sample && w->temperature && !(o->temperature > 0))
        usage_error(w->usage, "`--sample` and `--temperature 0` exclude each other");
    if (o->max_new && o->min_new > o->max_new) usage_error(w->usage, "`--min-new` is more than `--max-new`");
    if (!(o->length_penalty >= -16 && o->length_penalty <= 16))
        usage_error(w->usage, "`--length-penalty` is -16 to 16");
}

static attn_generate_options read_words(const SearchWords *w) {
    const int most = INT32_MAX / 2;
    return (attn_generate_options){
        .size = sizeof(attn_generate_options),
        .max_new = (int)option_integer(w->usage, "--max-new", w->max_new, 0, 1, most),
        .min_new = (int)option_integer(w->usage, "--min-new", w->min_new, 0, 0, most),
        .temperature = option_real(w, "--temperature", w->temperature, 0),
        .top_k = (int)option_integer(w->usage, "--top-k", w->top_k, 0, 0, INT32_MAX),
        .top_p = option_real(w, "--top-p", w->top_p, 1),
        .min_p = option_real(w, "--min-p", w->min_p, 0),
        .seed = option_natural(w, "--seed", w->seed),
        .sequence = option_natural(w, "--sequence", w->sequence),
        .beams = (int)option_integer(w->usage, "--beam", w->beam, 0, 1, 1024),
        .length_penalty = option_real(w, "--length-penalty", w->penalty, DEFAULT_LENGTH_PENALTY),
        .length_form = option_word(w->usage, "--length-form", w->form, length_forms, LENGTH_GNMT),
        .early_stopping = option_word(w->usage, "--early-stopping", w->stopping, early_stoppings, STOPPING_EXACT),
        .repetition_penalty = option_real(w, "--repeat-penalty", w->repetition, 1),
        .no_repeat_ngram = (int)option_integer(w->usage, "--no-repeat-ngram", w->ngram, 0, 0, most),
        .ignore_end = w->ignore_end};
}

void search_check(const SearchWords *w) {
    const attn_generate_options given = read_words(w);
    check_ranges(w, &given);
}

/* ---------------------------------------------------------------- with the spec */

/* Refuses options of a kind of search that neither the words nor the spec ask for. */
static void refuse_idle(const SearchWords *w, const attn_generate_options *o) {
    const struct {
        const char *name, *text;
        bool of_beams;
    } words[] = {{"--top-k", w->top_k, false}, {"--top-p", w->top_p, false}, {"--min-p", w->min_p, false},
                 {"--seed", w->seed, false}, {"--sequence", w->sequence, false}, {"--length-penalty", w->penalty, true},
                 {"--length-form", w->form, true}, {"--early-stopping", w->stopping, true}};
    const bool samples = o->temperature > 0 || w->temperature, beams = o->beams > 1 || w->beam;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!words[i].text || (words[i].of_beams ? beams : samples)) continue;
        if (words[i].of_beams)
            usage_error(w->usage, "`%s` has no effect without beam search: add `--beam B`", words[i].name);
        if (beams) usage_error(w->usage, "`%s` has no effect on beam search: leave it out", words[i].name);
        usage_error(w->usage, "`%s` has no effect without sampling: add `--temperature T`", words[i].name);
    }
}

static const int32_t *narrowed(Arena *arena, const int64_t *ids, int64_t count, int *n) {
    int32_t *list = arena_array(arena, (size_t)count + 1, sizeof *list);
    for (int64_t i = 0; i < count; i++) list[i] = (int32_t)ids[i];
    *n = (int)count;
    return list;
}

static void set_lists(Arena *arena, const Model *m, attn_generate_options *o) {
    const Generation *g = &m->generation;
    o->end = narrowed(arena, m->end, m->n_end, &o->end_count);
    o->suppressed = narrowed(arena, g->suppress.ids, g->suppress.count, &o->suppressed_count);
    o->suppressed_first = narrowed(arena, g->suppress_first.ids, g->suppress_first.count, &o->suppressed_first_count);
    o->bad_words = narrowed(arena, g->bad_word.ids, g->bad_word.count, &o->bad_words_count);
    o->forced_first = narrowed(arena, g->force_first.ids, g->force_first.count, &o->forced_first_count);
    o->forced_last = narrowed(arena, g->force_last.ids, g->force_last.count, &o->forced_last_count);
}

/* A request for beams or for sampling takes the place of what the spec states of the other. */
static void set_kind(const SearchWords *w, const Generation *g, attn_generate_options *o) {
    const bool greedy = w->temperature && o->temperature == 0;
    const bool samples = w->sample || o->temperature > 0 || (g->sample && !greedy && o->beams < 2);
    if (samples && !w->temperature) o->temperature = generation_temperature(g);
    if (!w->beam) o->beams = samples ? 1 : (int)g->beams;
    if (o->beams < 1) o->beams = 1;
    if (samples && !w->top_k) o->top_k = (int)g->top_k;
    if (samples && !w->top_p && g->top_p != 0) o->top_p = g->top_p;
    if (samples && !w->min_p) o->min_p = g->min_p;
}

Search search_read(Arena *arena, const SearchWords *w, const Model *m) {
    const Generation *g = &m->generation;
    attn_generate_options o = read_words(w);
    set_kind(w, g, &o);
    set_lists(arena, m, &o);
    refuse_idle(w, &o);
    if (!w->penalty && g->has_length_penalty) o.length_penalty = g->length_penalty;
    if (!w->form) o.length_form = (int)g->length_form;
    if (!w->stopping) o.early_stopping = (int)g->early_stopping;
    if (!w->repetition && g->repetition_penalty != 0) o.repetition_penalty = g->repetition_penalty;
    if (!w->ngram) o.no_repeat_ngram = (int)g->no_repeat_ngram;
    if (!w->min_new) {
        o.min_new = (int)g->min_new;
        o.min_length = (int)g->min_length;
    }
    if (!w->max_new) o.max_new = (int)g->max_new;
    if (!o.max_new && !g->max_length) usage_error(w->usage, "`--max-new` is missing");
    return (Search){o, o.max_new ? 0 : g->max_length};
}

int64_t search_max_new(const Search *s, int64_t prompt) {
    if (s->options.max_new) return s->options.max_new;
    if (prompt >= s->max_length)
        fail("the prompt has %lld tokens, and `max_length` of the spec allows %lld with the new ones: state "
             "`--max-new N`", (long long)prompt, (long long)s->max_length);
    return s->max_length - prompt;
}

attn_generate_options search_for(const Search *s, int64_t prompt) {
    attn_generate_options options = s->options;
    options.max_new = (int)search_max_new(s, prompt);
    if (options.min_new > options.max_new) options.min_new = options.max_new;
    return options;
}
