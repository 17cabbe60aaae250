/* variables.c: word lists of the tables, variables, notes, and the refusal of a key. */
#include "import.h"

#include <stdarg.h>
#include <string.h>

const char *next_word(const char **at, size_t *size) {
    const char *word = *at + strspn(*at, " ");
    *size = strcspn(word, " ");
    *at = word + *size;
    return *size ? word : NULL;
}

const char *word_find(Arena *arena, const char *words, const char *word) {
    size_t size, wanted = strlen(word);
    for (const char *w; (w = next_word(&words, &size));) {
        const char *equal = memchr(w, '=', size);
        size_t length = equal ? (size_t)(equal - w) : size;
        if (length != wanted || memcmp(w, word, length) != 0) continue;
        return equal ? arena_copy(arena, equal + 1, size - length - 1) : arena_copy(arena, w, length);
    }
    return NULL;
}

const char *variable_get(const Import *import, const char *name, size_t size) {
    for (const Variable *v = import->variables; v; v = v->next)
        if (strlen(v->name) == size && memcmp(v->name, name, size) == 0) return *v->text ? v->text : NULL;
    return NULL;
}

void variable_set(Import *import, const char *name, const char *text) {
    Variable *variable = arena_alloc(import->arena, sizeof *variable);
    *variable = (Variable){name, text, import->variables};
    import->variables = variable;
}

void import_note(Import *import, const char *format, ...) {
    Text note = text_new(import->arena);
    va_list args;
    va_start(args, format);
    text_vprintf(&note, format, args);
    va_end(args);
    for (size_t at = 0, bytes; at < note.size; at += bytes ? bytes : 1) {
        bytes = utf8_bytes((const unsigned char *)note.data + at, note.size - at);
        if (!bytes || note.data[at] == '\n' || note.data[at] == '\t') note.data[at] = '?';
    }
    text_disarm(note.data, note.size);
    text_printf(&import->notes, "%s\n", note.data);
}

_Noreturn void key_refuse(const Import *import, const ConfigKey *key, const cJSON *item, const char *wanted) {
    const char *first = arena_copy(import->arena, key->names, strcspn(key->names, " "));
    const char *name = item->string && !strchr(first, '.') ? item->string : first;
    fail("%s: `%s` is %s; %s is understood", import->config_path, name, config_value(import->arena, item), wanted);
}
