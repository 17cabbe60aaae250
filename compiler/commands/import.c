/* import.c: attnc import writes the spec of a folder saved by Hugging Face transformers, or of a GGUF file. */
#include "../import/import.h"
#include "commands.h"

#include <string.h>

static const char usage[] =
    "attnc import DIR|FILE.gguf -o SPEC [--name NAME] [--part PART] [--seq N] [--score T[,T]] [--ignore-key K]\n"
    "                    [--nearest],\n"
    "or attnc import --list\n"
    "  -o SPEC              the spec to write\n"
    "  --name NAME          name of the model and of its C (default: the name of its family)\n"
    "  --part PART          the part of a model of several parts, such as `text` and `vision` of CLIP\n"
    "  --seq N              largest number of rows of a sequence (default: the limit of the config and of its\n"
    "                       tokenizer, but at most 2048)\n"
    "  --score T[,T]        a decoder judges texts by the logit of token T in the last row, or by that of one token\n"
    "                       less that of another, such as `yes` and `no`: its head computes these alone\n"
    "  --nearest            quantized numbers that only f32 holds, such as those of Q4_K, become the nearest integers\n"
    "                       of a precision that the spec states, layer by layer\n"
    "  --ignore-key K[,K…]  ignores keys of the config that attnc does not know; OBJECT.K is a key in an object, and\n"
    "                       of a GGUF file the key ARCHITECTURE.OBJECT.K\n"
    "  --list               lists the known model types and their families, behind `gguf` those of GGUF files";

/* A line for each type, with `before` in front of it. */
static void print_families(Arena *arena, const Family *const *list, const char *before) {
    for (; *list; list++) {
        const char *types = (*list)->types;
        size_t size;
        for (const char *word; (word = next_word(&types, &size));) printf("%-15s %s\n",
            arena_printf(arena, "%s%.*s", before, (int)strcspn(word, "= "), word), (*list)->title);
    }
}

const char *const *ignored_keys(Arena *arena, const char *usage_text, const ValueNode *nodes) {
    const char **keys = NULL;
    int count = 0, room = 0;
    for (const ValueNode *node = nodes; node; node = node->next)
        if (!*node->text) usage_error(usage_text, "`--ignore-key`: a name is empty");
    for (; nodes; nodes = nodes->next)
        for (const char *at = nodes->text; *at;) {
            size_t size = strcspn(at, ",");
            keys = arena_grow(arena, keys, count, &room, sizeof *keys);
            keys[count++] = arena_copy(arena, at, size);
            if (!size || (at[size] && !at[size + 1])) usage_error(usage_text, "`--ignore-key`: a name is empty");
            at += size + (at[size] == ',');
        }
    keys = arena_grow(arena, keys, count, &room, sizeof *keys);
    keys[count] = NULL;
    return keys;
}

const char *name_option(Arena *arena, const char *usage_text, const char *name) {
    const char *fault = name ? model_name_fault(arena, name) : NULL;
    if (fault) usage_error(usage_text, "`--name`: %s", fault);
    return name;
}

/* The tokens of --score. */
static Score score_option(Arena *arena, const char *text) {
    Score score = {.origin = "--score"};
    for (const char *at = text; at && score.n < 2; score.n++) {
        const size_t size = strcspn(at, ",");
        score.tokens[score.n] = score_token(arena_copy(arena, at, size));
        if (score.tokens[score.n] < 0 || (score.n && at[size]))
            usage_error(usage, "`--score` wants the number of a token, or of two with a comma between them");
        at = at[size] ? at + size + 1 : NULL;
    }
    return score;
}

void command_import(Arena *arena, int argc, char **argv) {
    const char *directory = NULL, *to = NULL, *name = NULL, *part = NULL, *seq = NULL, *score = NULL;
    bool list = false, nearest = false;
    ValueNode *ignored = NULL;
    const Option options[] = {{"-o", .text = &to}, {"--name", .text = &name}, {"--part", .text = &part},
                              {"--seq", .text = &seq}, {"--score", .text = &score},
                              {"--nearest", .flag = &nearest},
                              {"--ignore-key", .list = &ignored}, {"--list", .flag = &list}};
    for (int i = 0; i < argc; i++) list |= strcmp(argv[i], "--list") == 0;
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, &directory, list ? 0 : 1);
    if (list && (to || nearest || seq || name || part || score || ignored)) usage_error(usage, "`--list` stands alone");
    if (list) {
        print_families(arena, families, "");
        print_families(arena, gguf_families, "gguf ");
        return;
    }
    if (!to) usage_error(usage, "`-o` is missing");
    const ImportOptions with = {name_option(arena, usage, name), part,
                                option_integer(usage, "--seq", seq, 0, 1, INT32_MAX),
                                ignored_keys(arena, usage, ignored), score_option(arena, score),
                                nearest ? NUMBERS_NEAREST : NUMBERS_EXACT};
    const Imported made = import_spec(arena, directory, to, &with);
    write_text(arena, to, made.spec);
    report_lines(made.notes);
    if (made.precision_note) report_note("%s", made.precision_note);
}
