/* source_patterns.c: the patterns of a spec's `weights` block, against the names of tensors. */
#include "../attnc.h"

#include <string.h>

bool source_name_matches(Arena *arena, const char *pattern, const char *name, const char **layer, const char **suffix) {
    while (*pattern) {
        if (strncmp(pattern, "{layer}", 7) == 0) {
            size_t digits = strspn(name, "0123456789");
            if (!digits) return false;
            *layer = arena_copy(arena, name, digits);
            pattern += 7;
            name += digits;
        } else if (*pattern == '*') {
            if (strcmp(name, "weight") != 0 && strcmp(name, "bias") != 0) return false;
            *suffix = name;
            return true;
        } else if (*pattern++ != *name++) {
            return false;
        }
    }
    return *name == '\0';
}

/* Turns a canonical name into a pattern: "…layers.12.…" becomes "…layers.{layer}.…". */
static const char *name_of_any_layer(Arena *arena, const char *name) {
    const char *layers = strstr(name, ".layers.");
    if (!layers) return name;
    const char *number = layers + 8, *rest = number + strspn(number, "0123456789");
    return arena_printf(arena, "%.*s{layer}%s", (int)(number - name), name, rest);
}

/* Whether all tensors that the line speaks of belong to experts. */
static bool speaks_of_experts(Arena *arena, const char *pattern, const WeightTable *table) {
    for (size_t i = 0; i < table->count; i++) {
        const char *layer, *suffix;
        if (source_name_matches(arena, pattern, table->specs[i].name, &layer, &suffix) && !table->specs[i].of_experts)
            return false;
    }
    return true;
}

bool source_name_speaks(Arena *arena, const char *pattern, const WeightTable *table) {
    for (size_t i = 0; i < table->count; i++) {
        const char *layer, *suffix;
        if (source_name_matches(arena, pattern, table->specs[i].name, &layer, &suffix)) return true;
    }
    return false;
}

void check_source_names(const Module *module, Diagnostics *diagnostics) {
    const Model *model = module->model;
    const WeightTable *table = &module->weights;
    Arena *arena = diagnostics->arena;
    const char **names = NULL;
    for (int64_t i = 0; i < model->n_source_names; i++) {
        const SourceName *line = &model->source_names[i];
        if (strstr(line->from, "{expert}") && !speaks_of_experts(arena, line->canonical, table))
            diagnose(diagnostics, line->location, "`{expert}` is for tensors of experts, and `%s` is none",
                     line->canonical);
        if (source_name_speaks(arena, line->canonical, table)) continue;
        if (!names) {
            names = arena_array(arena, table->count + 1, sizeof *names);
            for (size_t n = 0; n < table->count; n++) names[n] = name_of_any_layer(arena, table->specs[n].name);
        }
        const char *near = nearest_word(line->canonical, names);
        diagnose(diagnostics, line->location, "this model has no tensor `%s`%s%s%s", line->canonical,
                 near ? "; did you mean `" : "", near ? near : "", near ? "`?" : "");
    }
}

bool source_pattern_covers(const char *pattern, const char *name) {
    while (*pattern && *pattern != '*') {
        if (strncmp(pattern, "{layer}", 7) == 0) {
            size_t digits = strspn(name, "0123456789");
            if (!digits) return false;
            pattern += 7;
            name += digits;
        } else if (*pattern++ != *name++) {
            return false;
        }
    }
    return *pattern == '*' || !*name;
}
