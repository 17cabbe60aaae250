/* pack.c: attnc pack: weights into the layout of the generated C, and the check of such a file. */
#include "commands.h"

static const char usage[] =
    "attnc pack SPEC --weights F[,F…]|random:SEED -o F.attnw [-v], or attnc pack SPEC --weights F.attnw --verify\n"
    HELP_WEIGHTS "\n"
    "  -o F.attnw           the packed file\n"
    "  --verify             checks the packed file that --weights names, whole: its sizes, its model, its checksums\n"
    HELP_VERBOSE;

/* The weight that a packed tensor holds, if only as a table made from it; -1: the spec alone says what it holds. */
static int weight_of(const Program *program, const Packed *packed) {
    if (packed->weight >= 0 || packed->derived < 0) return packed->weight;
    const Derived *derived = &program->module->derived[packed->derived];
    return derived->kind == DERIVED_RELATIVE ? derived->source : -1;
}

/* "29 tensors and 2 tables made from the spec" */
static const char *contents(Arena *arena, const Program *program) {
    int tensors = 0, made = 0;
    for (int i = 0; i < program->n_packed; i++) {
        int weight = weight_of(program, &program->packed[i]);
        bool seen = false; /* a table of tokens may be packed once more, as the matrix of the logits */
        for (int k = 0; k < i; k++) seen |= weight >= 0 && weight_of(program, &program->packed[k]) == weight;
        tensors += weight >= 0 && !seen;
        made += weight < 0;
    }
    Text text = text_new(arena);
    text_printf(&text, "%d tensor%s", tensors, tensors == 1 ? "" : "s");
    if (made) text_printf(&text, " and %d table%s made from the spec", made, made == 1 ? "" : "s");
    return text.data;
}

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
    say(stdout, "%s: %s, %lld bytes\n", to ? to : from, contents(arena, program),
        (long long)program->weight_floats * 4);
    arena_free(arena);
    return EXIT_FINE;
}
