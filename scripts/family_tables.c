/* family_tables.c: prints docs/models.md with its table of families updated from the tables of compiler/import/.
 *
 *     family_tables PAGE FIXTURES      prints the page
 *
 * The table stands between the lines `<!-- families -->` and `<!-- end -->`. FIXTURES is the folder of the models that
 * tests/parity compares with transformers; a row names those of its type. A page without the two lines and a type
 * without a fixture are errors: the program says which, and exits with status 1. */
#include "../compiler/import/import.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

static Arena *arena;
static const char *fixtures;

/* Prints text as a part of a cell, where a bar would end the cell. */
static void put(const char *text, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '|') putchar('\\');
        putchar(text[i]);
    }
}

/* Prints the words of `list`, behind `before`, each in backquotes. */
static void put_words(const char *list, const char *before) {
    size_t size;
    for (const char *word; (word = next_word(&list, &size)); before = ", ") {
        printf("%s`", before);
        put(word, size);
        putchar('`');
    }
}

/* What a config cannot have: keys that must have one value, conditions that are refused, classes without their head. */
static void put_limits(const Family *family) {
    const char *before = "";
    for (size_t i = 0; i < family->n_keys; i++) {
        const ConfigKey *key = &family->keys[i];
        if (strcmp(key->names, "is_encoder_decoder") == 0) continue; /* of every decoder, and no limit of the family */
        if (key->kind == KEY_REFUSED) {
            printf("%s", before);
            put(key->otherwise, strlen(key->otherwise));
        } else if (key->kind == KEY_MUST) {
            printf("%s`%.*s` other than", before, (int)strcspn(key->names, " "), key->names);
            put_words(key->values, " ");
        } else {
            continue;
        }
        before = "; ";
    }
    const char *classes = family->classes ? family->classes : "", *of = *before ? "; the head of " : "the head of ";
    size_t size;
    for (const char *word; (word = next_word(&classes, &size));) {
        if (size < 6 || memcmp(word + size - 5, "=rest", 5) != 0) continue;
        printf("%s`%.*s`", of, (int)size - 5, word);
        of = ", ";
    }
}

/* Prints the names of the fixtures whose config has this type. */
static void put_fixtures(const char *type) {
    glob_t found;
    const char *before = "";
    if (glob(arena_printf(arena, "%s/*/config.json", fixtures), 0, NULL, &found)) fail("%s: no fixtures", fixtures);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char *path = found.gl_pathv[i];
        const cJSON *of = cJSON_GetObjectItemCaseSensitive(config_read(arena, path), "model_type");
        if (!cJSON_IsString(of) || strcmp(of->valuestring, type) != 0) continue;
        char *folder = arena_copy(arena, path, (size_t)(strrchr(path, '/') - path));
        printf("%s`%s`", before, strrchr(folder, '/') + 1);
        before = ", ";
    }
    globfree(&found);
    if (!*before) fail("no fixture has the type `%s`", type);
}

static void put_rows(void) {
    puts("| `model_type` | model | not understood | checked by |\n|---|---|---|---|");
    for (int f = 0; families[f]; f++) {
        const Family *family = families[f];
        const char *types = family->types;
        size_t size;
        for (const char *word; (word = next_word(&types, &size));) {
            const char *type = arena_copy(arena, word, strcspn(word, "="));
            printf("| `%s` | ", type);
            put(family->title, strlen(family->title));
            printf(" | ");
            put_limits(family);
            printf(" | ");
            put_fixtures(type);
            puts(" |");
        }
    }
    puts("\n| `general.architecture` | model | not understood |\n|---|---|---|");
    for (int f = 0; gguf_families[f]; f++) {
        printf("| `%s` | ", gguf_families[f]->types);
        put(gguf_families[f]->title, strlen(gguf_families[f]->title));
        printf(" | ");
        put_limits(gguf_families[f]);
        puts(" |");
    }
}

int main(int count, char **words) {
    if (count != 3) return fprintf(stderr, "usage: family_tables PAGE FIXTURES\n"), 2;
    arena = arena_new();
    fixtures = words[2];
    FILE *page = fopen(words[1], "r");
    if (!page) fail("%s: it cannot be read", words[1]);
    static char line[1 << 14];
    bool inside = false, seen = false;
    while (fgets(line, sizeof line, page)) {
        inside = inside && strcmp(line, "<!-- end -->\n") != 0;
        if (!inside) fputs(line, stdout);
        if (strcmp(line, "<!-- families -->\n") != 0) continue;
        if (seen) fail("%s: the table stands twice", words[1]);
        inside = seen = true;
        put_rows();
    }
    if (!seen || inside) fail("%s: it has no table between `<!-- families -->` and `<!-- end -->`", words[1]);
    if (ferror(page) || fclose(page) || fflush(stdout) || ferror(stdout)) fail("%s: the page cannot be written",
        words[1]);
    arena_free(arena);
    return 0;
}
