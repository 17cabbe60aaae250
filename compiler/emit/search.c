/* search.c: what search.h.tmpl is told of the block `generation`. */
#include "emit.h"

/* A record {name, lines}, where each text of `lines` has ids that an array is initialized with. */
static void add_list(TemplateList *lists, Arena *arena, const char *name, const int64_t *ids, int64_t count) {
    enum { LINE = 90 };
    if (!count) return;
    TemplateVars *record = list_record(lists);
    TemplateList *lines = vars_list(record, "lines");
    Text line = text_new(arena);
    vars_text(record, "name", name);
    for (int64_t i = 0; i < count; i++) {
        text_printf(&line, "%s%lld%s", line.size ? " " : "", (long long)ids[i], i + 1 < count ? "," : "");
        if (line.size < LINE && i + 1 < count) continue;
        vars_text(list_record(lines), "text", line.data);
        line = text_new(arena);
    }
}

static void add_stated(TemplateList *fields, Arena *arena, const char *name, double value) {
    TemplateVars *record = list_record(fields);
    vars_text(record, "name", name);
    vars_text(record, "value", number_text(arena, value));
}

static void add_real(TemplateList *fields, Arena *arena, const char *name, double value) {
    if (value != 0) add_stated(fields, arena, name, value);
}

static void add_int(TemplateList *fields, Arena *arena, const char *name, int64_t value) {
    add_real(fields, arena, name, (double)value);
}

void set_search(Arena *arena, const Model *m, TemplateVars *vars) {
    const Generation *g = &m->generation;
    TemplateList *lists = vars_list(vars, "search_lists"), *fields = vars_list(vars, "search_fields");
    vars_int(vars, "has_search", m->decoder && m->head.logits);
    vars_text(vars, "temperature", number_text(arena, g->temperature != 0 ? g->temperature : 1));
    vars_int(vars, "max_new", g->max_new);
    vars_int(vars, "max_length", g->max_length);
    add_list(lists, arena, "end", m->end, m->n_end);
    add_list(lists, arena, "suppressed", g->suppress.ids, g->suppress.count);
    add_list(lists, arena, "suppressed_first", g->suppress_first.ids, g->suppress_first.count);
    add_list(lists, arena, "bad_words", g->bad_word.ids, g->bad_word.count);
    add_list(lists, arena, "forced_first", g->force_first.ids, g->force_first.count);
    add_list(lists, arena, "forced_last", g->force_last.ids, g->force_last.count);
    if (g->sample) add_real(fields, arena, "temperature", generation_temperature(g));
    add_int(fields, arena, "top_k", g->top_k);
    add_real(fields, arena, "top_p", g->top_p);
    add_real(fields, arena, "min_p", g->min_p);
    add_int(fields, arena, "beams", g->beams);
    if (g->has_length_penalty) add_stated(fields, arena, "length_penalty", g->length_penalty);
    else if (g->beams) add_real(fields, arena, "length_penalty", DEFAULT_LENGTH_PENALTY);
    add_int(fields, arena, "length_form", g->length_form);
    add_int(fields, arena, "early_stopping", g->early_stopping);
    add_real(fields, arena, "repetition_penalty", g->repetition_penalty);
    add_int(fields, arena, "no_repeat_ngram", g->no_repeat_ngram);
    add_int(fields, arena, "min_length", g->min_length);
    add_int(fields, arena, "min_new", g->min_new);
}
