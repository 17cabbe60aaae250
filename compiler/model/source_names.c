/* source_names.c: the `weights` block, which maps canonical tensors to the names that a file has for them.
 *
 *     weights {
 *         prefix "bert." "model."
 *         "encoder.layers.{layer}.attention.query.*" from "encoder.layer.{layer}.attention.self.query.*"
 *         "encoder.layers.{layer}.ffn.up.*" from "h.{layer}.mlp.gate_up.*" rows 96..192
 *         ignore "pooler.*"
 *     } */
#include "settings.h"

#include <string.h>

/* The number of times that the part occurs in the pattern. */
static int count_of(const char *pattern, const char *part) {
    int n = 0;
    for (const char *at = pattern; (at = strstr(at, part)); at++) n++;
    return n;
}

/* Whether a name is well formed: {layer}, and {expert} in a name of a file, at most once, `.*` only at the end, no
 * other braces, no control characters. */
static bool pattern_is_good(const char *pattern, bool of_file) {
    for (const char *c = pattern; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f) return false;
    const int layers = count_of(pattern, "{layer}"), experts = of_file ? count_of(pattern, "{expert}") : 0;
    if (layers > 1 || experts > 1 || layers + experts != count_of(pattern, "{")) return false;
    const char *star = strchr(pattern, '*');
    return pattern[0] && (!star || (star[1] == '\0' && star > pattern && star[-1] == '.'));
}

static bool has(const char *pattern, const char *part) { return strstr(pattern, part) != NULL; }

static const char *const source_words[] = {"from",  "transpose", "rows",     "interleaved",
                                           "parts", "take",      "optional", NULL};

/* Reads the integer or range behind a word of a line. */
static const Value *take_range(Resolver *r, const Scope *scope, const Value *word, const char *what, int64_t least,
                               int64_t *begin, int64_t *end) {
    const Value *value = word->next;
    if (!value || value->kind == VALUE_STRING) {
        diagnose(r->diagnostics, word->location, "%s wants a number", what);
        return value;
    }
    *begin = evaluate_integer(r, scope, value->expr, what, least, MOST_INTEGER).integer;
    if (value->kind == VALUE_RANGE && !end) {
        diagnose(r->diagnostics, value->location, "%s wants one number", what);
    } else if (end) {
        *end = value->kind == VALUE_RANGE ? evaluate_integer(r, scope, value->until, what, least, MOST_INTEGER).integer
                                          : *begin + 1;
        if (*end <= *begin) diagnose(r->diagnostics, value->location, "the range of %s is empty", what);
    }
    return value->next;
}

static bool is_source_word(const Value *value) {
    if (value->kind != VALUE_EXPR || value->expr->kind != EXPR_NAME) return false;
    for (const char *const *word = source_words; *word; word++)
        if (strcmp(*word, value->expr->text) == 0) return true;
    return false;
}

/* Reads the ranges of rows behind the word `rows`. */
static const Value *take_rows(Resolver *r, const Scope *scope, const Value *word, SourceName *out) {
    int64_t most = 1;
    for (const Value *v = word->next; v; v = v->next) most++;
    out->rows = arena_array(r->arena, (size_t)most, sizeof *out->rows);
    out->n_rows = 0;
    const Value *last = word, *next;
    do {
        RowRange *range = &out->rows[out->n_rows++];
        *range = (RowRange){0, 1};
        next = take_range(r, scope, last, "`rows`", 0, &range->begin, &range->end);
        last = last->next;
    } while (next && next == last->next && next->kind != VALUE_STRING && !is_source_word(next));
    return next;
}

static void source_line(Resolver *r, const Scope *scope, const Item *item, SourceName *out) {
    *out = (SourceName){.location = item->location, .canonical = item->name};
    Location from_location = item->location;
    for (const Value *v = item->values; v;) {
        const char *word = v->kind == VALUE_EXPR && v->expr->kind == EXPR_NAME ? v->expr->text : "";
        if (strcmp(word, "from") == 0 && v->next && v->next->kind == VALUE_STRING) {
            out->from = v->next->string;
            from_location = v->next->location;
            v = v->next->next;
        } else if (strcmp(word, "transpose") == 0) {
            out->transpose = true;
            v = v->next;
        } else if (strcmp(word, "optional") == 0) {
            out->optional = true;
            v = v->next;
        } else if (strcmp(word, "rows") == 0) {
            v = take_rows(r, scope, v, out);
        } else if (strcmp(word, "interleaved") == 0) {
            v = take_range(r, scope, v, "`interleaved`", 1, &out->groups, NULL);
        } else if (strcmp(word, "parts") == 0) {
            v = take_range(r, scope, v, "`parts`", 1, &out->parts, NULL);
        } else if (strcmp(word, "take") == 0) {
            v = take_range(r, scope, v, "`take`", 0, &out->take, &out->take_end);
        } else {
            const char *near = nearest_word(word, source_words);
            diagnose(r->diagnostics, v->location,
                     "expected `from \"NAME\"`, `transpose`, `rows A..B`, `interleaved G parts P take I` or "
                     "`optional`%s%s%s",
                     near ? "; did you mean `" : "", near ? near : "", near ? "`?" : "");
            return;
        }
    }
    if (!out->from) diagnose(r->diagnostics, item->location, "this line wants `from \"NAME\"`");
    bool canonical_good = pattern_is_good(out->canonical, false);
    const bool from_good = !out->from || pattern_is_good(out->from, true);
    if (!canonical_good || !from_good)
        diagnose(r->diagnostics, canonical_good ? from_location : item->location,
                 "a tensor's name may hold `{layer}` once, in the file `{expert}` once, and end in `.*`");
    else if (out->from && (has(out->canonical, "{layer}") < has(out->from, "{layer}") ||
                           has(out->canonical, "*") != has(out->from, "*")))
        diagnose(r->diagnostics, item->location, "`{layer}` and `*` must stand on both sides");
    if ((out->groups || out->parts || out->take_end) && (!out->groups || !out->parts || !out->take_end))
        diagnose(r->diagnostics, item->location, "`interleaved G parts P take I` belong together");
    else if (out->take_end > out->parts)
        diagnose(r->diagnostics, item->location, "`take` goes beyond `parts %lld`", (long long)out->parts);
}

static const char **string_list(Resolver *r, const Item *item, const char **list, int64_t *n) {
    int64_t more = 0;
    for (const Value *v = item->values; v; v = v->next) more++;
    const char **grown = arena_array(r->arena, (size_t)(*n + more + 1), sizeof *grown);
    if (*n) memcpy(grown, list, (size_t)*n * sizeof *grown);
    for (const Value *v = item->values; v; v = v->next) {
        if (v->kind != VALUE_STRING) diagnose(r->diagnostics, v->location, "`%s` wants strings", item->name);
        else grown[(*n)++] = v->string;
    }
    if (!item->values) diagnose(r->diagnostics, item->location, "`%s` wants a string", item->name);
    return grown;
}

void resolve_source_names(Resolver *r, const Scope *scope, const Item *block) {
    Model *model = r->model;
    int64_t count = 0;
    for (const Item *item = block->items; item; item = item->next) count += item->quoted;
    model->source_names = arena_array(r->arena, (size_t)count, sizeof *model->source_names);
    refuse_values(r, block);
    for (const Item *item = block->items; item; item = item->next) {
        if (!item->is_let) refuse_relation(r, item);
        if (item->has_block) diagnose(r->diagnostics, item->location, "`%s` takes no block", item->name);
        if (item->quoted) {
            source_line(r, scope, item, &model->source_names[model->n_source_names++]);
        } else if (!item->is_let && strcmp(item->name, "prefix") == 0) {
            model->prefixes = string_list(r, item, model->prefixes, &model->n_prefixes);
        } else if (!item->is_let && strcmp(item->name, "ignore") == 0) {
            model->ignored = string_list(r, item, model->ignored, &model->n_ignored);
        } else {
            diagnose(r->diagnostics, item->location,
                     "a `weights` block holds lines `\"CANONICAL\" from \"NAME\" …`, `prefix` and `ignore`");
        }
    }
}
