/* generation.c: the block `generation`, which says how texts are searched for where a call does not say otherwise.
 *
 *     generation {
 *         beams 4, length_penalty 0.8, length_form power, early_stopping full
 *         no_repeat_ngram 3
 *         bad_word 17 4
 *     } */
#include "generation.h"
#include "settings.h"

#include <string.h>

static void unknown(Resolver *r, const Item *item) {
    const char *words[GENERATION_ROWS + 1];
    Text message = text_new(r->arena);
    for (int i = 0; i < GENERATION_ROWS; i++) words[i] = generation_rows[i].name;
    words[GENERATION_ROWS] = NULL;
    const char *near = item->quoted ? NULL : near_word(r->arena, item->name, words);
    text_printf(&message, "`%s` is not an item of `generation`%s", item->name,
                did_you_mean(r->arena, item->name, near));
    for (int i = 0; i < GENERATION_ROWS && !near; i++) message_word(&message, i ? "," : "; it holds:", words[i]);
    diagnose(r->diagnostics, item->location, "%s", message.data);
}

/* Appends the token ids of an item to a list. With `word`, -1 follows them. */
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
        if (id.ok && stack) check_token(r, v->location, id.integer, stack->vocab);
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
    const GenerationRow *of = &generation_rows[row];
    if (of->kind == KIND_integer) {
        const Number whole = evaluate_integer(r, scope, v->expr, what, (int64_t)of->least, (int64_t)of->most);
        *(int64_t *)generation_field(g, row) = whole.integer;
        return;
    }
    const Number number = evaluate_real(r, scope, v->expr, what, RANGE_any);
    if (number.ok && !(number.real >= of->least && number.real <= of->most))
        diagnose(r->diagnostics, v->location, "%s must be %s to %s, found %s", what,
                 number_text(r->arena, of->least), number_text(r->arena, of->most),
                 number_text(r->arena, number.real));
    *(double *)generation_field(g, row) = number.real;
}

/* The place in `words` of the word after the item, or 0 after a diagnostic. */
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
    const GenerationKind kind = generation_rows[row].kind;
    if (!item->values != (kind == KIND_flag)) {
        diagnose(r->diagnostics, item->location, "`%s` %s", item->name,
                 kind == KIND_flag ? "takes no value" : "wants a value");
        return;
    }
    switch (kind) {
    case KIND_flag: *(bool *)generation_field(g, row) = true; break;
    case KIND_integer:
    case KIND_real: take_number(r, scope, item, row, g); break;
    case KIND_tokens:
    case KIND_word: take_tokens(r, scope, item, kind == KIND_word, generation_field(g, row)); break;
    case KIND_form: g->length_form = (LengthForm)take_word(r, item, length_forms); break;
    case KIND_stopping: g->early_stopping = (EarlyStopping)take_word(r, item, early_stoppings); break;
    }
    g->has_length_penalty |= generation_field(g, row) == &g->length_penalty;
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
    const Item *seen[GENERATION_ROWS] = {0};
    *g = (Generation){.stated = true, .location = block->location};
    refuse_values(r, block);
    if (r->diagnostics->errors == 0 && (!model->decoder || !model->head.logits))
        diagnose(r->diagnostics, block->location, "`generation` belongs to a decoder with `head logits`");
    for (const Item *item = block->items; item; item = item->next) {
        int row = 0;
        const bool named = !item->is_let && !item->quoted;
        while (row < GENERATION_ROWS && !(named && strcmp(item->name, generation_rows[row].name) == 0)) row++;
        if (row == GENERATION_ROWS) {
            unknown(r, item);
            continue;
        }
        refuse_relation(r, item);
        if (item->has_block) diagnose(r->diagnostics, item->location, "`%s` takes no block", item->name);
        if (seen[row] && generation_rows[row].kind != KIND_word) {
            diagnose(r->diagnostics, item->location, "`%s` stands twice in this block", item->name);
            diagnose_note(r->diagnostics, seen[row]->location, "the first one");
        } else {
            take_item(r, scope, item, row, g);
        }
        seen[row] = item;
    }
    check_relations(r, g);
}
