/* run.c: attnc run: inputs from .npy files through one engine, outputs to .npy files. */
#include "engine.h"

#include <string.h>

static const char usage[] =
    "attnc run SPEC --weights F[,F…]|random:SEED --in NAME=F.npy … --out NAME=F.npy …\n"
    "                 [--engine compiled|interp] [--target T] [--cc CC] [--threads N] [-v]\n" HELP_WEIGHTS "\n"
    "  --in NAME=F.npy      an input: ids of int32 or int64, or of a narrower type that holds all of them, rows of\n"
    "                       floats; attention_mask, ones then zeros, says how long padded sequences are\n"
    "  --out NAME=F.npy     where an output goes; NAME.LAYER: one layer of attention; with no --out, they are named\n"
    HELP_ENGINE HELP_TARGET HELP_CC HELP_THREADS HELP_VERBOSE;

void run_check(RunOptions *run, const char *usage_text) {
    if (!run->weights) usage_error(usage_text, "`--weights` is missing");
    if (run->engine && strcmp(run->engine, "interp") != 0 && strcmp(run->engine, "compiled") != 0)
        usage_error(usage_text, "`--engine` is interp or compiled, not `%s`", run->engine);
    run->interpreted = run->engine && strcmp(run->engine, "interp") == 0;
    run->thread_count = (int)option_integer(usage_text, "--threads", run->threads, 1, 1, 256);
}

void run_batch(Arena *arena, const Module *module, const RunOptions *run, Batch *batch) {
    Weights *weights = load_weights(arena, module, run->weights, run->verbose);
    if (run->interpreted) {
        batch_interpret(arena, module, weights, batch);
        return;
    }
    EngineOptions options = {
        .target = run->target, .cc = run->cc, .threads = run->thread_count, .or_interp = true};
    Engine *engine = engine_new(arena, module, weights, &options);
    progress_begin("running %s", module->model->name);
    engine_run(arena, engine, batch);
    progress_end();
}

int command_run(int argc, char **argv) {
    Arena *arena = arena_new();
    const char *path;
    RunOptions run = {0};
    ValueNode *in = NULL, *out = NULL;
    const Option options[] = {{"--weights", .text = &run.weights}, {"--in", .list = &in},
                              {"--out", .list = &out},             {"--engine", .text = &run.engine},
                              {"--target", .text = &run.target},   {"--cc", .text = &run.cc},
                              {"--threads", .text = &run.threads}, {"-v", .flag = &run.verbose}};
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, &path, 1);
    run_check(&run, usage);
    Model *model = model_load(arena, path);
    model_turn_on(model, out);
    Module *module = build(arena, model);
    if (!out) fail_status(EXIT_USAGE, "`--out NAME=F.npy` is missing; %s has: %s", path, output_names(arena, module));
    batch_check_outputs(arena, usage, module, out);
    Batch *batch = batch_read(arena, usage, module->forward, in);
    run_batch(arena, module, &run, batch);
    batch_write(arena, usage, module, batch, out);
    arena_free(arena);
    return EXIT_FINE;
}
