/* run.c: attnc run reads inputs from .npy files, runs the model and writes its outputs to .npy files. */
#include "text_input.h"

#include <string.h>

static const char usage[] =
    "attnc run SPEC --weights F[,F…]|random:SEED [--in NAME=F.npy …] --out NAME=F.npy …\n"
    "                 [--tokenizer F --text T … [--target-text T …]]\n"
    "                 [--engine compiled|interp] [--target T] [--cc CC] [--threads N]\n"
    "                 [--precision P] [--reproducible] [-v]\n" HELP_WEIGHTS "\n" HELP_PRECISION
    HELP_REPRODUCIBLE
    "  --in NAME=F.npy      an input: ids as int32 or int64, or as a narrower type that can represent all of them, or\n"
    "                       rows of floats; attention_mask, ones followed by zeros, gives the lengths of padded\n"
    "                       sequences\n"
    "  --out NAME=F.npy     file for an output; NAME.LAYER is one layer of attention; without --out, the error lists\n"
    "                       the outputs\n"
    HELP_TEXTS HELP_TARGET_TEXT HELP_TOKENIZER HELP_ENGINE HELP_TARGET HELP_CC HELP_THREADS HELP_VERBOSE;

void run_check(RunOptions *run, const char *usage_text) {
    if (!run->weights) usage_error(usage_text, "`--weights` is missing");
    static const char *const engines[] = {"interp", "compiled", NULL};
    run->interpreted = option_word(usage_text, "--engine", run->engine, engines, 1) == 0;
    run->thread_count = (int)option_integer(usage_text, "--threads", run->threads, 1, 1, 256);
}

Weights *run_load(Compilation *c, const RunOptions *run, Engine **engine) {
    const EngineOptions options = {
        .target = run->target, .cc = run->cc, .threads = run->thread_count, .or_interp = true};
    Weights *weights = load_weights(c, run->weights, run->verbose, run->interpreted);
    *engine = run->interpreted ? NULL : engine_new(c->arena, c, weights, &options);
    return weights;
}

void run_batch(Compilation *c, const RunOptions *run, Batch *batch) {
    Engine *engine;
    const Weights *weights = run_load(c, run, &engine);
    if (!engine) {
        batch_interpret(c->arena, c->module, weights, arithmetic_of(c), batch);
        return;
    }
    progress_begin("running %s", c->model->name);
    engine_run(c->arena, engine, batch);
    progress_end();
}

/* Names without a layer come first: a name alone means all layers only where the spec itself exports none. */
static void export_maps(Model *model, const NamedFile *outputs) {
    for (const NamedFile *file = outputs; file; file = file->next)
        if (file->layer < 0) model_export(model, output_named(file->name), -1);
    for (const NamedFile *file = outputs; file; file = file->next)
        if (file->layer >= 0) model_export(model, output_named(file->name), file->layer);
}

void command_run(Arena *arena, int argc, char **argv) {
    const char *path;
    RunOptions run = {0};
    ValueNode *in = NULL, *out = NULL;
    TextOptions text = {0};
    const Option options[] = {{"--weights", .text = &run.weights}, {"--in", .list = &in},
                              {"--out", .list = &out},             {"--engine", .text = &run.engine},
                              {"--target", .text = &run.target},   {"--cc", .text = &run.cc},
                              {"--threads", .text = &run.threads}, {"-v", .flag = &run.verbose},
                              {"--precision", .text = &run.precision}, TEXT_OPTIONS(text),
                              {"--reproducible", .flag = &run.reproducible}};
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, &path, 1);
    run_check(&run, usage);
    const NamedFile *inputs = input_files(arena, usage, in), *outputs = output_files(arena, usage, out);
    Compilation c = spec_load(arena, path, option_precision(arena, usage, "--precision", run.precision), STAGE_MODEL);
    c.reproducible = run.reproducible;
    export_maps(c.model, outputs);
    spec_compile(&c, STAGE_REWRITE);
    if (!out) fail_status(EXIT_USAGE, "`--out NAME=F.npy` is missing; %s has: %s", path, output_names(arena, c.module));
    batch_check_outputs(arena, c.module, outputs);
    inputs = text_inputs(&c, usage, &text, text_words(&c, usage, &text, run.cc), inputs, false);
    Batch *batch = batch_read(arena, c.module->entries[ENTRY_FORWARD], inputs);
    run_batch(&c, &run, batch);
    batch_write(arena, c.module, batch, outputs);
}
