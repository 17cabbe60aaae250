/* fmt.c: attnc fmt: a spec in its canonical layout. */
#include "commands.h"

#include <string.h>

static const char usage[] = "attnc fmt SPEC [-o FILE], or attnc fmt - [-o FILE]: the spec comes from standard input\n"
                            "  -o FILE              where it goes, the spec itself too; without it to stdout";

int command_fmt(int argc, char **argv) {
    Arena *arena = arena_new();
    const char *path, *to = NULL;
    const Option options[] = {{"-o", .text = &to}};
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, &path, 1);
    Diagnostics diagnostics = diagnostics_new(arena, stderr);
    Source *source = strcmp(path, "-") == 0 ? source_from_input(arena) : source_read(arena, path);
    Ast *ast = parse(arena, source, &diagnostics);
    if (diagnostics.errors) fail("%s: %d error%s", source->path, diagnostics.errors, diagnostics.errors == 1 ? "" : "s");
    const char *text = ast_format(arena, ast);
    if (to) {
        OutputFile *output = output_open(arena, to);
        output_write(output, text, strlen(text));
        output_commit(output);
    } else {
        say(stdout, "%s", text);
    }
    arena_free(arena);
    return EXIT_FINE;
}
