/* name.c: what a program is called. */
#define _XOPEN_SOURCE 700
#include "project.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool project_name_taken(const char *name) {
    static const char *const own[] = {"main", "tokenizer", "Makefile", "GNUmakefile", "clean", NULL};
    bool is_taken = runtime_namesake(name) != NULL;
    for (const char *const *taken = own; *taken; taken++) is_taken |= strcasecmp(name, *taken) == 0;
    return is_taken;
}

/* The last name of a path, where `.` and `..` stand for what they lead to. */
static const char *last_name(Arena *arena, const char *path) {
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/') size--;
    const char *name = path_name(arena_copy(arena, path, size));
    if (*name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0) return name;
    char *whole = realpath(path, NULL);
    if (!whole) return "";
    name = path_name(arena_copy(arena, whole, strlen(whole)));
    free(whole);
    return name;
}

const char *project_name(Arena *arena, const char *source, const char *part) {
    const char *last = last_name(arena, source);
    const size_t size = strlen(last) - (text_ends(last, ".gguf") ? strlen(".gguf") : 0);
    char *name = arena_printf(arena, "%.*s%s%s", (int)size, last, part ? "_" : "", part ? part : "");
    for (char *c = name; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", *c)) *c = '_';
    const bool good = strcmp(name, "model") != 0 && !model_name_fault(arena, name) && !header_hidden_by(name) &&
                      !project_name_taken(name);
    return good ? name : NULL;
}

bool project_is_code(const char *text, size_t size) {
    static const char signs[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    return size > 0 && strspn(text, signs) >= size;
}
