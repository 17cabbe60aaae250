/* import.c: attnc import: a spec from a folder of Hugging Face transformers. */
#include "../import/import.h"
#include "commands.h"

#include <string.h>

static const char usage[] =
    "attnc import DIR -o SPEC [--name NAME] [--seq N], or attnc import --list\n"
    "  -o SPEC              the spec to write\n"
    "  --name NAME          what the model is called, and its C; without it, its family's name\n"
    "  --seq N              the most rows of a sequence (those of the config)\n"
    "  --list               the model types that are known, and their families";

static void print_families(Arena *arena) {
    for (int f = 0; families[f]; f++) {
        const char *types = families[f]->types;
        size_t size;
        for (const char *word; (word = next_word(&types, &size));) printf("%-14s %s\n",
            arena_copy(arena, word, strcspn(word, "=")), families[f]->title);
    }
}

int command_import(int argc, char **argv) {
    Arena *arena = arena_new();
    const char *directory = NULL, *to = NULL, *name = NULL, *seq = NULL, *notes = "";
    bool list = false;
    const Option options[] = {{"-o", .text = &to}, {"--name", .text = &name}, {"--seq", .text = &seq},
                              {"--list", .flag = &list}};
    for (int i = 0; i < argc; i++) list |= strcmp(argv[i], "--list") == 0;
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, &directory, list ? 0 : 1);
    if (list && (to || seq || name)) usage_error(usage, "`--list` stands alone");
    if (list) {
        print_families(arena);
        arena_free(arena);
        return EXIT_FINE;
    }
    if (!to) usage_error(usage, "`-o` is missing");
    const char *fault = name ? model_name_fault(arena, name) : NULL;
    if (fault) usage_error(usage, "`--name`: %s", fault);
    int64_t bound = option_integer(usage, "--seq", seq, 0, 1, INT32_MAX);
    const char *text = import_spec(arena, directory, to, name, bound, &notes);
    OutputFile *output = output_open(arena, to);
    output_write(output, text, strlen(text));
    output_commit(output);
    for (const char *note = notes; *note; note += strcspn(note, "\n") + 1) {
        say_head(stderr, PAINT_NOTE, "note");
        say(stderr, "%.*s\n", (int)strcspn(note, "\n"), note);
    }
    arena_free(arena);
    return EXIT_FINE;
}
