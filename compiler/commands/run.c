/* run.c: attnc run: inputs from .npy files through one engine, outputs to .npy files. */
#include "engine.h"

#include <string.h>

static const char usage[] = "attnc run SPEC --weights F|random:SEED --in NAME=F.npy … --out NAME=F.npy … [--engine "
                            "interp|compiled] [--target T] [--threads N] [-v]";

int command_run(int argc, char **argv) {
    Arena *arena = arena_new();
    const char *path, *weights_path = NULL, *engine = NULL, *target = NULL, *threads = NULL;
    ValueNode *in = NULL, *out = NULL;
    bool verbose = false;
    const Option options[] = {{"--weights", .text = &weights_path},
                              {"--in", .list = &in},
                              {"--out", .list = &out},
                              {"--engine", .text = &engine},
                              {"--target", .text = &target},
                              {"--threads", .text = &threads},
                              {"-v", .flag = &verbose}};
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, &path, 1);
    if (!weights_path) usage_error(usage, "`--weights` is missing");
    if (!out) usage_error(usage, "`--out` is missing");
    if (engine && strcmp(engine, "interp") != 0 && strcmp(engine, "compiled") != 0)
        usage_error(usage, "`--engine` is interp or compiled, not `%s`", engine);
    Model *model = model_load(arena, path);
    model_turn_on(model, out);
    Module *module = build(arena, model);
    Batch *batch = batch_read(arena, module->forward, in);
    Weights *weights = load_weights(arena, module, weights_path, verbose);
    if (engine && strcmp(engine, "interp") == 0) {
        batch_interpret(arena, module, weights, batch);
    } else {
        EngineOptions engine_options = {.target = target,
                                        .threads = (int)option_integer(usage, "--threads", threads, 1, 1, 256)};
        engine_run(arena, engine_new(arena, module, weights, &engine_options), batch);
    }
    batch_write(arena, module, batch, out);
    arena_free(arena);
    return EXIT_FINE;
}
