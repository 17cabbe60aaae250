/* generation.c: the block `generation`, which says how texts are searched for where a call does not say otherwise.
 *
 *     generation {
 *         beams 4, length_penalty 0.8, length_form power, early_stopping full
 *         no_repeat_ngram 3
 *         bad_word 17 4
 *     } */
#include "settings.h"

#include <stddef.h>
#include <string.h>

typedef enum Kind { KIND_flag, KIND_integer, KIND_real, KIND_tokens, KIND_word, KIND_form, KIND_stopping } Kind;

static const struct {
    const char *name;
    Kind kind;
    size_t offset; /* of the field in Generation */
    double least, most;
} rows[] = {
#define GENERATION(name, kind, least, most, help) {#name, KIND_##kind, offsetof(Generation, name), least, most},
#include "generation.def"
};
enum { ROWS = sizeof rows / sizeof rows[0] };

const char *const length_forms[] = {"gnmt", "power", NULL};
const char *const early_stoppings[] = {"exact", "full", "heuristic", "never", NULL};

static void *field_of(Generation *g, int row) { return (char *)g + rows[row].offset; }

static void unknown(Resolver *r, const Item *item) {
    const char *words[ROWS + 1];
    Text message = text_new(r->arena);
    for (int i = 0; i < ROWS; i++) words[i] = rows[i].name;
    words[ROWS] = NULL;
    const char *near = item->quoted ? NULL : near_word(r->arena, item->name, words);
    text_printf(&message, "`%s` is not an item of `generation`%s", item->name,
                did_you_mean(r->arena, item->name, near));
    for (int i = 0; i < ROWS && !near; i++) message_word(&message, i ? "," : "; it holds:", words[i]);
    diagnose(r->diagnostics, item->location, "%s", message.data);
}

/* Appends the ids of an item to a list, and -1 after those of a word. */
static void take_tokens(Resolver *r, const Scope *scope, const Item *item, bool word, TokenList *list) {
    const Stack *stack = r->model->decoder;
    const char *what = arena_printf(r->arena, "`%s`", item->name);
    int64_t more = 1;
    for (const Value *v = item->values; v; v = v->next) more++;
    int64_t *grown = arena_array(r->arena, (size_t)(list->count + more), sizeof *grown);
    if (list->count) memcpy(grown, list->ids, (size_t)list->count * sizeof *grown);
    list->ids = grown;
    for (const Value *v = item->values; v; v = v->next) {
        if (v->kind != VALUE_EXPR) {
            diagnose(r->diagnostics, v->location, "%s wants ids of tokens", what);
            return;
        }
        const Number id = evaluate_integer(r, scope, v->expr, what, 0, MOST_INTEGER);
        if (id.ok && stack && stack->vocab && id.integer >= stack->vocab)
            diagnose(r->diagnostics, v->location, "token %lld is outside the vocabulary of %lld",
                     (long long)id.integer, (long long)stack->vocab);
        list->ids[list->count++] = id.integer;
    }
    if (word) list->ids[list->count++] = -1;
}

static void take_number(Resolver *r, const Scope *scope, const Item *item, int row, Generation *g) {
    const Value *v = item->values;
    const char *what = arena_printf(r->arena, "`%s`", item->name);
    if (v->kind != VALUE_EXPR || v->next) {
        diagnose(r->diagnostics, v->kind != VALUE_EXPR ? v->location : v->next->location, "%s wants one number", what);
        return;
    }
    if (rows[row].kind == KIND_integer) {
        *(int64_t *)field_of(g, row) = evaluate_integer(r, scope, v->expr, what, (int64_t)rows[row].least,
                                                        (int64_t)rows[row].most).integer;
        return;
    }
    const Number number = evaluate_real(r, scope, v->expr, what, RANGE_any);
    if (number.ok && !(number.real >= rows[row].least && number.real <= rows[row].most))
        diagnose(r->diagnostics, v->location, "%s must be %s to %s, found %s", what,
                 number_text(r->arena, rows[row].least), number_text(r->arena, rows[row].most),
                 number_text(r->arena, number.real));
    *(double *)field_of(g, row) = number.real;
}

/* The place in `words` of the word behind the item, or 0 after a diagnostic. */
static int take_word(Resolver *r, const Item *item, const char *const *words) {
    const Value *v = item->values;
    const char *word = !v->next && v->kind == VALUE_EXPR && v->expr->kind == EXPR_NAME ? v->expr->text : "";
    Text known = text_new(r->arena);
    for (int i = 0; words[i]; i++) {
        if (strcmp(word, words[i]) == 0) return i;
        text_printf(&known, "%s`%s`", i ? words[i + 1] ? ", " : " or " : "", words[i]);
    }
    diagnose(r->diagnostics, v->location, "`%s` wants %s", item->name, known.data);
    return 0;
}

static void take_item(Resolver *r, const Scope *scope, const Item *item, int row, Generation *g) {
    const Kind kind = rows[row].kind;
    if (!item->values != (kind == KIND_flag)) {
        diagnose(r->diagnostics, item->location, "`%s` %s", item->name,
                 kind == KIND_flag ? "takes no value" : "wants a value");
        return;
    }
    switch (kind) {
    case KIND_flag: *(bool *)field_of(g, row) = true; break;
    case KIND_integer:
    case KIND_real: take_number(r, scope, item, row, g); break;
    case KIND_tokens:
    case KIND_word: take_tokens(r, scope, item, kind == KIND_word, field_of(g, row)); break;
    case KIND_form: g->length_form = (LengthForm)take_word(r, item, length_forms); break;
    case KIND_stopping: g->early_stopping = (EarlyStopping)take_word(r, item, early_stoppings); break;
    }
    g->has_length_penalty |= field_of(g, row) == &g->length_penalty;
}

static void check_relations(Resolver *r, const Generation *g) {
    if (g->sample && g->beams)
        diagnose(r->diagnostics, g->location, "`sample` and `beams` exclude each other");
    if (g->max_new && g->min_new > g->max_new)
        diagnose(r->diagnostics, g->location, "`min_new` is more than `max_new`");
    if (g->max_length && g->min_length > g->max_length)
        diagnose(r->diagnostics, g->location, "`min_length` is more than `max_length`");
}

void resolve_generation(Resolver *r, const Scope *scope, const Item *block) {
    const Model *model = r->model;
    Generation *g = &r->model->generation;
    const Item *seen[ROWS] = {0};
    *g = (Generation){.stated = true, .location = block->location};
    if (block->values)
        diagnose(r->diagnostics, block->values->location, "`generation` is followed by its block, not by a value");
    if (r->diagnostics->errors == 0 && (!model->decoder || !model->head.logits))
        diagnose(r->diagnostics, block->location, "`generation` belongs to a decoder with `head logits`");
    for (const Item *item = block->items; item; item = item->next) {
        int row = 0;
        while (row < ROWS && (item->is_let || item->quoted || strcmp(item->name, rows[row].name) != 0)) row++;
        if (row == ROWS) {
            unknown(r, item);
            continue;
        }
        refuse_relation(r, item);
        if (item->has_block) diagnose(r->diagnostics, item->location, "`%s` takes no block", item->name);
        if (seen[row] && rows[row].kind != KIND_word) {
            diagnose(r->diagnostics, item->location, "`%s` stands twice in this block", item->name);
            diagnose_note(r->diagnostics, seen[row]->location, "the first one");
        } else {
            take_item(r, scope, item, row, g);
        }
        seen[row] = item;
    }
    check_relations(r, g);
}

static void print_words(Text *out, const TokenList *words, const char *name, int indent) {
    for (int64_t i = 0; i < words->count; i++) {
        if (i == 0 || words->ids[i - 1] < 0) text_printf(out, "%*s%s", indent, "", name);
        if (words->ids[i] < 0) text_printf(out, "\n");
        else text_printf(out, " %lld", (long long)words->ids[i]);
    }
}

static void print_tokens(Text *out, const TokenList *tokens, const char *name, int indent) {
    if (!tokens->count) return;
    text_printf(out, "%*s%s", indent, "", name);
    for (int64_t i = 0; i < tokens->count; i++) text_printf(out, " %lld", (long long)tokens->ids[i]);
    text_printf(out, "\n");
}

/* A value of a spec begins with no sign. */
static const char *signed_text(Arena *arena, double number) {
    return number < 0 ? arena_printf(arena, "0 - %s", number_text(arena, -number)) : number_text(arena, number);
}

void generation_print(Text *out, const Generation *generation, int indent) {
    Generation g = *generation;
    for (int i = 0; i < ROWS; i++) {
        const void *field = field_of(&g, i);
        const char *name = rows[i].name, *value = NULL;
        switch (rows[i].kind) {
        case KIND_flag: value = g.sample ? "" : NULL; break;
        case KIND_integer:
            if (*(const int64_t *)field) value = number_text(out->arena, (double)*(const int64_t *)field);
            break;
        case KIND_real:
            if (*(const double *)field != 0 || (field == &g.length_penalty && g.has_length_penalty))
                value = signed_text(out->arena, *(const double *)field);
            break;
        case KIND_tokens: print_tokens(out, field, name, indent); break;
        case KIND_word: print_words(out, field, name, indent); break;
        case KIND_form: value = g.length_form ? length_forms[g.length_form] : NULL; break;
        case KIND_stopping: value = g.early_stopping ? early_stoppings[g.early_stopping] : NULL; break;
        }
        if (value) text_printf(out, "%*s%s%s%s\n", indent, "", name, *value ? " " : "", value);
    }
}
