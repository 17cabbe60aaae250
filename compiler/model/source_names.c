/* source_names.c: the `weights` block: how canonical tensors are found in a file with other names.
 *
 *     weights {
 *         prefix "bert." "model."
 *         "encoder.layers.{layer}.attention.query.*" from "encoder.layer.{layer}.attention.self.query.*"
 *         "encoder.layers.{layer}.ffn.up.*" from "h.{layer}.mlp.gate_up.*" rows 96..192
 *         ignore "pooler.*"
 *     } */
#include "settings.h"

#include <string.h>

/* A name may hold {layer} once and end in .* ; nothing else in braces, no control characters. */
static bool pattern_is_good(const char *pattern) {
    const char *brace = strchr(pattern, '{');
    if (brace && (strncmp(brace, "{layer}", 7) != 0 || strchr(brace + 7, '{'))) return false;
    const char *star = strchr(pattern, '*');
    return pattern[0] && (!star || (star[1] == '\0' && star > pattern && star[-1] == '.'));
}

static bool has(const char *pattern, const char *part) { return strstr(pattern, part) != NULL; }

static const char *const source_words[] = {"from",  "transpose", "rows",     "interleaved",
                                           "parts", "take",      "optional", NULL};

/* The integer or range behind a word of a line. */
static const Value *take_range(Resolver *r, const Scope *scope, const Value *word, const char *what, int64_t least,
                               int64_t *begin, int64_t *end) {
    const Value *value = word->next;
    if (!value || value->kind == VALUE_STRING) {
        diagnose(r->diagnostics, word->place, "%s wants a number", what);
        return value;
    }
    *begin = evaluate_integer(r, scope, value->expr, what, least, MOST_INTEGER).integer;
    if (value->kind == VALUE_RANGE && !end) {
        diagnose(r->diagnostics, value->place, "%s wants one number", what);
    } else if (end) {
        *end = value->kind == VALUE_RANGE ? evaluate_integer(r, scope, value->until, what, least, MOST_INTEGER).integer
                                          : *begin + 1;
        if (*end <= *begin) diagnose(r->diagnostics, value->place, "the range of %s is empty", what);
    }
    return value->next;
}

static void source_line(Resolver *r, const Scope *scope, const Item *item, SourceName *out) {
    *out = (SourceName){.place = item->place, .canonical = item->name};
    Place from_place = item->place;
    for (const Value *v = item->values; v;) {
        const char *word = v->kind == VALUE_EXPR && v->expr->kind == EXPR_NAME ? v->expr->text : "";
        if (strcmp(word, "from") == 0 && v->next && v->next->kind == VALUE_STRING) {
            out->from = v->next->string;
            from_place = v->next->place;
            v = v->next->next;
        } else if (strcmp(word, "transpose") == 0) {
            out->transpose = true;
            v = v->next;
        } else if (strcmp(word, "optional") == 0) {
            out->optional = true;
            v = v->next;
        } else if (strcmp(word, "rows") == 0) {
            out->has_rows = true;
            v = take_range(r, scope, v, "`rows`", 0, &out->row_begin, &out->row_end);
        } else if (strcmp(word, "interleaved") == 0) {
            v = take_range(r, scope, v, "`interleaved`", 1, &out->groups, NULL);
        } else if (strcmp(word, "parts") == 0) {
            v = take_range(r, scope, v, "`parts`", 1, &out->parts, NULL);
        } else if (strcmp(word, "take") == 0) {
            v = take_range(r, scope, v, "`take`", 0, &out->take, &out->take_end);
        } else {
            const char *near = nearest_word(word, source_words);
            diagnose(r->diagnostics, v->place,
                     "expected `from \"NAME\"`, `transpose`, `rows A..B`, `interleaved G parts P take I` or "
                     "`optional`%s%s%s",
                     near ? "; did you mean `" : "", near ? near : "", near ? "`?" : "");
            return;
        }
    }
    if (!out->from) diagnose(r->diagnostics, item->place, "this line wants `from \"NAME\"`");
    bool canonical_good = pattern_is_good(out->canonical), from_good = !out->from || pattern_is_good(out->from);
    if (!canonical_good || !from_good)
        diagnose(r->diagnostics, canonical_good ? from_place : item->place,
                 "a tensor's name may hold `{layer}` once and end in `.*`");
    else if (out->from && (has(out->canonical, "{layer}") < has(out->from, "{layer}") ||
                           has(out->canonical, "*") != has(out->from, "*")))
        diagnose(r->diagnostics, item->place, "`{layer}` and `*` must stand on both sides");
    if ((out->groups || out->parts || out->take_end) && (!out->groups || !out->parts || !out->take_end))
        diagnose(r->diagnostics, item->place, "`interleaved G parts P take I` belong together");
    else if (out->take_end > out->parts)
        diagnose(r->diagnostics, item->place, "`take` goes beyond `parts %lld`", (long long)out->parts);
}

static const char **string_list(Resolver *r, const Item *item, const char **list, int64_t *n) {
    int64_t more = 0;
    for (const Value *v = item->values; v; v = v->next) more++;
    const char **grown = arena_array(r->arena, (size_t)(*n + more + 1), sizeof *grown);
    if (*n) memcpy(grown, list, (size_t)*n * sizeof *grown);
    for (const Value *v = item->values; v; v = v->next) {
        if (v->kind != VALUE_STRING) diagnose(r->diagnostics, v->place, "`%s` wants strings", item->name);
        else grown[(*n)++] = v->string;
    }
    if (!item->values) diagnose(r->diagnostics, item->place, "`%s` wants a string", item->name);
    return grown;
}

void resolve_source_names(Resolver *r, const Scope *scope, const Item *block) {
    Model *model = r->model;
    int64_t count = 0;
    for (const Item *item = block->items; item; item = item->next) count += item->quoted;
    model->source_names = arena_array(r->arena, (size_t)count, sizeof *model->source_names);
    if (block->values)
        diagnose(r->diagnostics, block->values->place, "`weights` is followed by its block, not by a value");
    for (const Item *item = block->items; item; item = item->next) {
        if (!item->is_let) refuse_relation(r, item);
        if (item->has_block) diagnose(r->diagnostics, item->place, "`%s` takes no block", item->name);
        if (item->quoted) {
            source_line(r, scope, item, &model->source_names[model->n_source_names++]);
        } else if (!item->is_let && strcmp(item->name, "prefix") == 0) {
            model->prefixes = string_list(r, item, model->prefixes, &model->n_prefixes);
        } else if (!item->is_let && strcmp(item->name, "ignore") == 0) {
            model->ignored = string_list(r, item, model->ignored, &model->n_ignored);
        } else {
            diagnose(r->diagnostics, item->place,
                     "a `weights` block holds lines `\"CANONICAL\" from \"NAME\" …`, `prefix` and `ignore`");
        }
    }
}

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

/* A canonical name as a pattern has it: "…layers.12.…" -> "…layers.{layer}.…". */
static const char *name_of_any_layer(Arena *arena, const char *name) {
    const char *layers = strstr(name, ".layers.");
    if (!layers) return name;
    const char *number = layers + 8, *rest = number + strspn(number, "0123456789");
    return arena_printf(arena, "%.*s{layer}%s", (int)(number - name), name, rest);
}

bool source_name_speaks(Arena *arena, const char *pattern, const WeightTable *table) {
    for (size_t i = 0; i < table->count; i++) {
        const char *layer, *suffix;
        if (source_name_matches(arena, pattern, table->specs[i].name, &layer, &suffix)) return true;
    }
    return false;
}

void check_source_names(Resolver *r, const WeightTable *table) {
    const Model *model = r->model;
    const char **names = NULL;
    for (int64_t i = 0; i < model->n_source_names; i++) {
        const SourceName *line = &model->source_names[i];
        if (source_name_speaks(r->arena, line->canonical, table)) continue;
        if (!names) {
            names = arena_array(r->arena, table->count + 1, sizeof *names);
            for (size_t n = 0; n < table->count; n++) names[n] = name_of_any_layer(r->arena, table->specs[n].name);
        }
        const char *near = nearest_word(line->canonical, names);
        diagnose(r->diagnostics, line->place, "this model has no tensor `%s`%s%s%s", line->canonical,
                 near ? "; did you mean `" : "", near ? near : "", near ? "`?" : "");
    }
}
