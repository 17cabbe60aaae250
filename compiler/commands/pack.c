/* pack.c: attnc pack: weights into the layout of the generated C, and the check of such a file. */
#include "commands.h"

static const char usage[] =
    "attnc pack SPEC --weights F|random:SEED -o F.attnw [-v], or attnc pack SPEC --weights F.attnw --verify";

int command_pack(int argc, char **argv) {
    Arena *arena = arena_new();
    const char *path, *from = NULL, *to = NULL;
    bool verify = false, verbose = false;
    const Option options[] = {
        {"--weights", .text = &from}, {"-o", .text = &to}, {"--verify", .flag = &verify}, {"-v", .flag = &verbose}};
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, &path, 1);
    if (!from) usage_error(usage, "`--weights` is missing");
    if (!to && !verify) usage_error(usage, "`-o` is missing");
    Module *module = build(arena, model_load(arena, path));
    Program *program = plan_model(arena, module);
    if (verify) packed_read(arena, program, from, true);
    if (to) packed_write(arena, to, program, load_weights(arena, module, from, verbose));
    progress_end();
    say(stdout, "%s: %d tensors, %lld bytes\n", to ? to : from, program->n_packed,
        (long long)program->weight_floats * 4);
    arena_free(arena);
    return EXIT_FINE;
}
