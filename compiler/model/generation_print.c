/* generation_print.c: the rows of generation.def, and the block `generation` as text. */
#include "generation.h"

const GenerationRow generation_rows[GENERATION_ROWS] = {
#define GENERATION(name, kind, least, most, help) {#name, KIND_##kind, offsetof(Generation, name), least, most},
#include "generation.def"
};

const char *const length_forms[] = {"gnmt", "power", NULL};
const char *const early_stoppings[] = {"exact", "full", "heuristic", "never", NULL};

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
    for (int i = 0; i < GENERATION_ROWS; i++) {
        const void *field = generation_field(&g, i);
        const char *name = generation_rows[i].name, *value = NULL;
        switch (generation_rows[i].kind) {
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
