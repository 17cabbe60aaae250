/* fmt.c: attnc fmt prints a spec in its canonical layout. */
#include "commands.h"

#include <string.h>

static const char usage[] =
    "attnc fmt SPEC [-o FILE], or attnc fmt - [-o FILE], which reads the spec from standard input\n"
    "  -o FILE              output file, which may be the spec itself (default: standard output)";

void command_fmt(Arena *arena, int argc, char **argv) {
    const char *path, *to = NULL;
    const Option options[] = {{"-o", .text = &to}};
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, &path, 1);
    Source *source = strcmp(path, "-") == 0 ? source_from_input(arena) : source_read(arena, path);
    Compilation c = compilation_new(arena, source);
    spec_compile(&c, STAGE_AST);
    const char *text = ast_format(arena, c.ast);
    if (to) write_text(arena, to, text);
    else say(stdout, "%s", text);
}
