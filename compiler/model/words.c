/* words.c: lists of words in messages, words behind a block's name, and synonyms from other programs. */
#include "settings.h"

#include <string.h>

/* What a row of synonyms.def has for a word of the setting `in`. */
typedef struct Synonym {
    const char *in, *word, *text;
} Synonym;

static const char *text_for(const Synonym *rows, size_t n, const char *in, const char *word) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(rows[i].in, in) == 0 && strcmp(rows[i].word, word) == 0) return rows[i].text;
    return NULL;
}

const char *synonym_of(const char *in, const char *word) {
    static const Synonym rows[] = {
#define SYNONYM(in, word, wanted) {in, word, wanted},
#include "synonyms.def"
    };
    return text_for(rows, sizeof rows / sizeof *rows, in, word);
}

const char *advice_of(const char *in, const char *word) {
    static const Synonym rows[] = {
#define ADVICE(in, word, advice) {in, word, advice},
#include "synonyms.def"
    };
    return text_for(rows, sizeof rows / sizeof *rows, in, word);
}

const char *lower_case(Arena *arena, const char *word) {
    char *lower = arena_copy(arena, word, strlen(word));
    for (char *c = lower; *c; c++)
        if (*c >= 'A' && *c <= 'Z') *c = (char)(*c + 'a' - 'A');
    return lower;
}

const char *near_word(Arena *arena, const char *word, const char *const *words) {
    const char *lower = lower_case(arena, word);
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], lower) == 0) return words[i];
    const char *near = nearest_word(word, words);
    return near ? near : nearest_word(lower, words);
}

const char *did_you_mean(Arena *arena, const char *word, const char *near) {
    if (!near) return "";
    bool same = strcmp(lower_case(arena, word), near) == 0; /* they differ in case alone */
    return arena_printf(arena, "; did you mean `%s`?%s", near, same ? " Names are in lower case" : "");
}

void message_word(Text *message, const char *before, const char *word) {
    enum { WIDTH = 100 };
    const char *newline = strrchr(message->data, '\n');
    size_t column = message->size - (newline ? (size_t)(newline + 1 - message->data) : 0);
    text_printf(message, "%s", before);
    if (column + strlen(before) + strlen(" ,") + strlen(word) > WIDTH) text_printf(message, "\n       ");
    text_printf(message, " %s", word);
}

const char *text_at(Arena *arena, Location location) {
    const char *text = line_begin(location), *end = location.source->text + location.source->size;
    size_t left = (size_t)(end - text), column = (size_t)(location.column - 1), length = (size_t)location.length;
    if (column > left) return "";
    return arena_copy(arena, text + column, length < left - column ? length : left - column);
}

bool is_word(const Expr *expr, const char *word) {
    return expr && expr->kind == EXPR_NAME && strcmp(expr->text, word) == 0;
}

bool is_letter(const char *name) { return strlen(name) == 1 && strchr("qkhsi", *name); }

const char *block_word(const Item *item) {
    const Value *v = item->values;
    return v && v->kind == VALUE_EXPR && v->expr->kind == EXPR_NAME && !v->next ? v->expr->text : NULL;
}

bool item_is_block(const Item *item, const char *name) {
    return !item->is_let && !item->quoted && item->has_block && strcmp(item->name, name) == 0;
}

bool stands_in(Location location, const Item *item) {
    return location_before(item->location, location) && location_before(location, item->block_end);
}
