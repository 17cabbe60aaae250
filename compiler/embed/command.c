/* command.c: what the bytes of an output depend on, in words that are compared line by line. */
#include "embed.h"

#include <string.h>

const char *const command_names[ITEM_COUNT] = {
    [ITEM_VERSION] = "the version of attnc", [ITEM_SPEC] = "the spec",       [ITEM_WEIGHTS] = "the weights",
    [ITEM_TOKENIZER] = "the tokenizer",      [ITEM_TARGET] = "the target",   [ITEM_PRECISION] = "the precision",
    [ITEM_TRUNCATE] = "`--truncate`",        [ITEM_FIELD] = "`--field`",     [ITEM_INPUTS] = "the input files",
};

const char *inputs_text(Arena *arena, const Inputs *inputs) {
    Text text = text_new(arena);
    for (int64_t i = 0; i < inputs->count; i++) {
        const InputFile *file = &inputs->files[i];
        if (i) text_add(&text, "\n", 1);
        text_quote(&text, file->path, "");
        text_printf(&text, " of %lld bytes, changed at %lld.%09lld", (long long)file->bytes, (long long)file->seconds,
                    (long long)file->nanoseconds);
    }
    return text.data;
}

/* The line of this index, or the end of the text. */
static const char *line_at(const char *text, int64_t index) {
    for (; index > 0 && *text; index--) {
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return text;
}

Command command_repaired(Arena *arena, const Command *earlier, const Command *now, int64_t file) {
    Command repaired = *earlier;
    const char *all = earlier->items[ITEM_INPUTS], *then = line_at(all, file);
    const char *line = line_at(now->items[ITEM_INPUTS], file), *end = strstr(then, "\" of ");
    if (!end || strncmp(then, line, (size_t)(end + 1 - then)) != 0) return repaired;
    repaired.items[ITEM_INPUTS] = arena_printf(arena, "%.*s%.*s%s", (int)(then - all), all, (int)strcspn(line, "\n"),
                                               line, then + strcspn(then, "\n"));
    return repaired;
}

uint64_t command_hash(const Command *command, CommandItem item) {
    return hash_bytes(0, command->items[item], strlen(command->items[item]));
}

static const char *line_of(Arena *arena, const char *text) {
    const size_t size = strcspn(text, "\n");
    return size ? arena_copy(arena, text, size) : "nothing";
}

const char *command_difference(Arena *arena, const Command *earlier, const Command *now) {
    for (int i = 0; i < ITEM_COUNT; i++) {
        const char *a = earlier->items[i], *b = now->items[i];
        if (strcmp(a, b) == 0) continue;
        while (*a && *b) { /* to the line that differs */
            const size_t size = strcspn(a, "\n");
            if (size != strcspn(b, "\n") || memcmp(a, b, size) != 0) break;
            a += size + (a[size] != '\0');
            b += size + (b[size] != '\0');
        }
        return arena_printf(arena, "%s: %s then, %s now", command_names[i], line_of(arena, a), line_of(arena, b));
    }
    return NULL;
}
