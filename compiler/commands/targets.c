/* targets.c: attnc --targets lists the targets for programs to read, the lowest rank first. */
#include "commands.h"

static const char usage[] = "attnc --targets";

void command_targets(Arena *arena, int argc, char **argv) {
    options_read(arena, argc, argv, usage, NULL, 0, NULL, 0);
    int n;
    const char *const *targets = target_list(arena, &n);
    for (int t = 0; t < n; t++) printf("%s %s\n", targets[t], machine_has(targets[t], false) ? "runs" : "no");
}
