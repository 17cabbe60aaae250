/* text.c: the block `text`, which says what a program does to a text before the tokenizer reads it, and which end of a
 * text that is too long it leaves out.
 *
 *     text {
 *         prompt query "query: "
 *         prompt passage "passage: "
 *         default query
 *         lower_case
 *         truncate left
 *     } */
#include "settings.h"

#include <string.h>

static const char *const words[] = {"prompt", "default", "lower_case", "truncate", NULL};

/* The line `default` of a block, and the name that it gives; both NULL without such a line. */
typedef struct {
    const Item *item;
    const char *name;
} Default;

/* The word or the string that a value is, or NULL. */
static const char *name_in(const Value *value) {
    if (value && value->kind == VALUE_STRING) return value->string;
    return value && value->kind == VALUE_EXPR && value->expr->kind == EXPR_NAME ? value->expr->text : NULL;
}

static const Prompt *prompt_named(const TextRules *rules, const char *name) {
    for (int64_t i = 0; i < rules->n_prompts; i++)
        if (strcmp(rules->prompts[i].name, name) == 0) return &rules->prompts[i];
    return NULL;
}

/* A line `prompt "TEXT"` or `prompt NAME "TEXT"`. */
static void read_prompt(Resolver *r, const Item *item, TextRules *rules) {
    const Value *first = item->values, *second = first ? first->next : NULL, *last = second ? second : first;
    const char *name = second ? name_in(first) : "";
    if (!first || !name || (second && (!*name || second->next)) || last->kind != VALUE_STRING) {
        diagnose(r->diagnostics, first ? first->location : item->location,
                 "`prompt` wants a string, or a name and a string: `prompt query \"query: \"`");
        return;
    }
    const Prompt *earlier = prompt_named(rules, name);
    if (earlier) {
        diagnose(r->diagnostics, item->location, *name ? "the prompt `%s` stands twice"
                                                       : "a prompt without a name stands twice%s", name);
        diagnose_note(r->diagnostics, earlier->location, "the first one");
        return;
    }
    rules->prompts[rules->n_prompts++] = (Prompt){item->location, name, last->string};
}

/* A line that has one value: a name. NULL after a diagnostic. */
static const char *read_name(Resolver *r, const Item *item, const char *wanted) {
    const char *name = name_in(item->values);
    if (name && !item->values->next) return name;
    const Value *wrong = name ? item->values->next : item->values;
    diagnose(r->diagnostics, wrong ? wrong->location : item->location, "`%s` wants %s", item->name, wanted);
    return NULL;
}

static void read_side(Resolver *r, const Item *item, TextRules *rules) {
    static const char *const sides[] = {"left", "right", NULL};
    const char *side = read_name(r, item, "`left` or `right`");
    if (!side) return;
    rules->truncate_left = strcmp(side, sides[0]) == 0;
    if (!rules->truncate_left && strcmp(side, sides[1]) != 0)
        diagnose(r->diagnostics, item->values->location, "`truncate` wants `left` or `right`%s",
                 did_you_mean(r->arena, side, near_word(r->arena, side, sides)));
}

static void read_item(Resolver *r, const Item *item, TextRules *rules, Default *chosen) {
    if (strcmp(item->name, "prompt") == 0) {
        read_prompt(r, item, rules);
    } else if (strcmp(item->name, "default") == 0) {
        const char *name = read_name(r, item, "the name of a prompt");
        if (name) *chosen = (Default){item, name};
    } else if (strcmp(item->name, "truncate") == 0) {
        read_side(r, item, rules);
    } else if (strcmp(item->name, "lower_case") == 0) {
        rules->lower_case = true;
        if (item->values) diagnose(r->diagnostics, item->values->location, "`lower_case` takes no value");
    } else {
        diagnose(r->diagnostics, item->location,
                 "`%s` is no line of `text`, which holds `prompt`, `default`, `lower_case` and `truncate`%s",
                 item->name, did_you_mean(r->arena, item->name, near_word(r->arena, item->name, words)));
    }
}

/* Sets the default prompt, which is the prompt without a name or the prompt that the line `default` names. */
static void choose(Resolver *r, Default chosen, TextRules *rules) {
    const Prompt *plain = prompt_named(rules, "");
    const Prompt *prompt = chosen.name ? prompt_named(rules, chosen.name) : plain;
    if (chosen.name && !prompt) {
        const char **names = arena_array(r->arena, (size_t)rules->n_prompts + 1, sizeof *names);
        for (int64_t i = 0; i < rules->n_prompts; i++) names[i] = rules->prompts[i].name;
        diagnose(r->diagnostics, chosen.item->values->location, "no prompt of this block is named `%.*s`%s",
                 CUT(60, chosen.name),
                 did_you_mean(r->arena, chosen.name, near_word(r->arena, chosen.name, names)));
    } else if (chosen.name && plain) {
        diagnose(r->diagnostics, chosen.item->location, "`default` and a prompt without a name exclude each other");
        diagnose_note(r->diagnostics, plain->location, "the prompt without a name");
    }
    rules->chosen = prompt ? prompt - rules->prompts : -1;
}

void resolve_text(Resolver *r, const Item *block) {
    const Model *model = r->model;
    TextRules *rules = &r->model->text;
    Default chosen = {NULL, NULL};
    int64_t count = 0;
    for (const Item *item = block->items; item; item = item->next) count++;
    rules->prompts = arena_array(r->arena, (size_t)count + 1, sizeof *rules->prompts);
    refuse_values(r, block);
    if (r->diagnostics->errors == 0 && !(model->encoder && model->encoder->vocab) &&
        !(model->decoder && model->decoder->vocab))
        diagnose(r->diagnostics, block->location, "`text` is for a model that reads tokens, and this one reads none");
    for (const Item *item = block->items; item; item = item->next) {
        if (item->quoted || item->is_let) {
            diagnose(r->diagnostics, item->location,
                     "a `text` block holds the lines `prompt`, `default`, `lower_case` and `truncate`");
            continue;
        }
        refuse_relation(r, item);
        if (item->has_block) diagnose(r->diagnostics, item->location, "`%s` takes no block", item->name);
        for (const Item *earlier = block->items; earlier != item; earlier = earlier->next)
            if (strcmp(item->name, "prompt") != 0 && !earlier->quoted && strcmp(earlier->name, item->name) == 0) {
                diagnose(r->diagnostics, item->location, "`%s` stands twice in this block", item->name);
                diagnose_note(r->diagnostics, earlier->location, "the first one");
                break;
            }
        read_item(r, item, rules, &chosen);
    }
    choose(r, chosen, rules);
}

const char *text_prompt(const TextRules *rules) {
    return rules->n_prompts && rules->chosen >= 0 ? rules->prompts[rules->chosen].text : "";
}

int text_rules_number(const TextRules *rules) { return rules->lower_case + 2 * rules->truncate_left; }
