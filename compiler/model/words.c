/* words.c: lists of words in messages, and the words that other programs have for ours. */
#include "settings.h"

#include <string.h>

const char *synonym_of(const char *in, const char *word) {
    static const struct {
        const char *in, *word, *wanted;
    } rows[] = {
#define SYNONYM(in, word, wanted) {in, word, wanted},
#include "synonyms.def"
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].in, in) == 0 && strcmp(rows[i].word, word) == 0) return rows[i].wanted;
    return NULL;
}

void message_word(Text *message, const char *before, const char *word) {
    enum { WIDTH = 100 };
    const char *newline = strrchr(message->data, '\n');
    size_t column = message->size - (newline ? (size_t)(newline + 1 - message->data) : 0);
    text_printf(message, "%s", before);
    if (column + strlen(before) + strlen(" ,") + strlen(word) > WIDTH) text_printf(message, "\n       ");
    text_printf(message, " %s", word);
}

const char *text_at(Arena *arena, Place place) {
    const char *text = place.source->text, *end = text + place.source->size;
    for (int line = 1; line < place.line; line++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        if (!newline) return "";
        text = newline + 1;
    }
    size_t left = (size_t)(end - text), column = (size_t)(place.column - 1), length = (size_t)place.length;
    if (column > left) return "";
    return arena_copy(arena, text + column, length < left - column ? length : left - column);
}
