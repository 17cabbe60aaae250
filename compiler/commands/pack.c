/* pack.c: attnc pack writes weights in the layout of the generated C, and verifies such files. */
#include "commands.h"

static const char usage[] =
    "attnc pack SPEC --weights F[,F…]|random:SEED -o F.attnw [--precision P] [--reproducible]\n"
    "                 [--ranks N] [-v], or\n"
    "       attnc pack SPEC --weights F.attnw --verify [--precision P]\n" HELP_WEIGHTS "\n"
    "  -o F.attnw           the packed file\n"
    "  --verify             checks the whole packed file that --weights names: its sizes, its model and its checksums\n"
    "  --ranks N            writes F.0.attnw, F.1.attnw, …: the weights of each of N processes that share the model\n"
    HELP_PRECISION
    "  --reproducible       changes nothing: reproducible code reads the same file\n" HELP_VERBOSE;

/* The weight that a packed tensor holds or is derived from; -1 when the spec alone determines its numbers. */
static int weight_of(const Program *program, const Packed *packed) {
    if (packed->weight >= 0 || packed->derived < 0) return packed->weight;
    const Derived *derived = &program->module->derived[packed->derived];
    if (derived_has_sources(derived)) return derived->sources[0] - 1;
    return derived_has_source(derived) ? derived->source : -1;
}

/* Describes a file: "29 tensors and 2 tables made from the spec". */
static const char *contents(Arena *arena, const Program *program) {
    int tensors = 0, made = 0;
    for (int i = 0; i < program->n_packed; i++) {
        int weight = weight_of(program, &program->packed[i]);
        bool seen = false; /* a tied token table is packed twice, the second time for the logits */
        for (int k = 0; k < i; k++) seen |= weight >= 0 && weight_of(program, &program->packed[k]) == weight;
        tensors += weight >= 0 && !seen;
        made += weight < 0;
    }
    Text text = text_new(arena);
    text_printf(&text, "%s", counted(arena, tensors, "tensor"));
    if (made) text_printf(&text, " and %s made from the spec", counted(arena, made, "table"));
    return text.data;
}

void command_pack(Arena *arena, int argc, char **argv) {
    const char *path, *from = NULL, *to = NULL, *precision = NULL, *ranks = NULL;
    bool verify = false, verbose = false, reproducible = false;
    const Option options[] = {
        {"--weights", .text = &from},    {"-o", .text = &to},      {"--precision", .text = &precision},
        {"--verify", .flag = &verify}, {"-v", .flag = &verbose},
        {"--ranks", .text = &ranks},     {"--reproducible", .flag = &reproducible}};
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, &path, 1);
    if (!from) usage_error(usage, "`--weights` is missing");
    if (!to && !verify) usage_error(usage, "`-o` is missing");
    Compilation c = spec_load(arena, path, option_precision(arena, usage, "--precision", precision), STAGE_GRAPH);
    c.ranks = option_ranks(usage, ranks);
    if (c.ranks > 1 && verify) usage_error(usage, "`--verify` reads the file of one process");
    spec_compile(&c, STAGE_PLAN);
    if (verify) packed_read(arena, c.program, from, true);
    if (to && c.ranks > 1)
        packed_write_ranks(arena, rank_paths(arena, to, c.ranks), c.program, load_weights(&c, from, verbose, false));
    else if (to) packed_write(arena, to, c.program, load_weights(&c, from, verbose, false));
    progress_end();
    /* what is said must not become a part of the file */
    say(to && output_is_stdout(to) ? stderr : stdout, "%s: %s, %lld bytes\n", to ? to : from,
        contents(arena, c.program), (long long)c.program->weight_bytes);
}
