/* embed.c: attnc embed writes the vectors of the texts of files to one .npy file. */
#include "../embed/embed.h"
#include "embed_line.h"
#include "text_input.h"

#include <string.h>

static const char usage[] =
    "attnc embed SPEC --weights F[,F…]|random:SEED --tokenizer F --in TEXTS.jsonl [--in F …] --out VECTORS.npy\n"
    "                 [--field NAME] [--truncate] [--strict] [--force] [--progress]\n"
    "                 [--target T] [--cc CC] [--threads N] [--precision P] [--reproducible] [-v]\n"
    HELP_WEIGHTS "\n"
    HELP_TOKENIZER
    "  --in F               a file of texts, a line each: a JSON object with the field, or a JSON string; of a .txt\n"
    "                       file the line itself. The file may be compressed by gzip or zstd. Several are read in\n"
    "                       their order\n"
    "  --out VECTORS.npy    rows of f32, one for each line. What an unfinished run has done is kept next to it, and\n"
    "                       the same command goes on from there\n"
    "  --field NAME         the field with the text (default: text)\n"
    "  --truncate           cuts texts with more tokens than the model reads\n"
    "  --strict             ends at the first line without a vector; otherwise its row is NaN, the exit status 1\n"
    "  --force              starts anew, and replaces an output of another command\n"
    "  --progress           shows a bar of the progress also where the standard error is no terminal\n"
    HELP_TARGET HELP_CC
    "  --threads N          threads, 1 to 256 (default: 1); vectors are the same for any number\n"
    HELP_PRECISION HELP_REPRODUCIBLE HELP_VERBOSE;

enum { LINES_SHOWN = 20 };

typedef struct Embed {
    RunOptions run;
    ValueNode *in;
    const char *out, *tokenizer, *field;
    bool truncate, strict, force, bar;
    int64_t bad; /* lines without a vector that this process has seen */
    EmbedLine line;
} Embed;

static void check_options(Embed *e) {
    run_check(&e->run, usage);
    if (!e->tokenizer) usage_error(usage, "`--tokenizer` is missing");
    if (!e->in) usage_error(usage, "`--in` is missing");
    if (!e->out) usage_error(usage, "`--out` is missing");
    if (!e->field) e->field = "text";
}

static Inputs find_inputs(Arena *arena, const ValueNode *in) {
    int64_t count = 0, at = 0;
    for (const ValueNode *node = in; node; node = node->next) count++;
    const char **paths = arena_array(arena, (size_t)count, sizeof *paths);
    for (const ValueNode *node = in; node; node = node->next) paths[at++] = node->text;
    return inputs_find(arena, paths, count);
}

static void tell_line(void *with, const char *path, int64_t line, const char *reason) {
    Embed *e = with;
    if (e->bad++ < LINES_SHOWN) say(stderr, "%s:%lld: %s\n", path, (long long)line, reason);
    if (e->bad == LINES_SHOWN) say(stderr, "further lines without a vector are only counted\n");
}

static void tell_progress(void *with, const EmbedProgress *progress) {
    Embed *e = with;
    embed_line(&e->line, progress);
}

/* What the bits of the vectors depend on. With --reproducible, they are the same on every target. */
static Command command_of(Arena *arena, const Compilation *c, const Engine *engine, const Words *words,
                          const Embed *e, const Inputs *inputs) {
    const DriverCall *call = &engine->call;
    const char *precision = e->run.precision ? e->run.precision : "f32";
    return (Command){.items = {
        [ITEM_VERSION] = ATTNC_VERSION,
        [ITEM_SPEC] = arena_printf(arena, "%s with the hash %016llx", c->model->name,
                                   (unsigned long long)hash_bytes(0, c->source->text, c->source->size)),
        [ITEM_WEIGHTS] = arena_printf(arena, "the hash %016llx",
                                      (unsigned long long)hash_bytes(0, call->weights, call->weights_bytes)),
        [ITEM_TOKENIZER] = arena_printf(arena, "the hash %016llx", (unsigned long long)words_hash(words)),
        [ITEM_PRECISION] = arena_printf(arena, "%s%s", precision, c->reproducible ? ", reproducible" : ""),
        [ITEM_TARGET] = c->reproducible ? "any" : call->picked,
        [ITEM_FIELD] = e->field,
        [ITEM_TRUNCATE] = e->truncate ? "texts are cut" : "texts are not cut",
        [ITEM_INPUTS] = inputs_text(arena, inputs),
    }};
}

static Embed read_options(Arena *arena, int argc, char **argv, const char **path) {
    Embed e = {0};
    const Option options[] = {{"--weights", .text = &e.run.weights},     {"--tokenizer", .text = &e.tokenizer},
                              {"--in", .list = &e.in},                   {"--out", .text = &e.out},
                              {"--field", .text = &e.field},             {"--truncate", .flag = &e.truncate},
                              {"--strict", .flag = &e.strict},           {"--force", .flag = &e.force},
                              {"--progress", .flag = &e.bar},            {"--target", .text = &e.run.target},
                              {"--cc", .text = &e.run.cc},               {"--threads", .text = &e.run.threads},
                              {"--precision", .text = &e.run.precision}, {"-v", .flag = &e.run.verbose},
                              {"--reproducible", .flag = &e.run.reproducible}};
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, path, 1);
    check_options(&e);
    return e;
}

void command_embed(Arena *arena, int argc, char **argv) {
    const char *path;
    Embed e = read_options(arena, argc, argv, &path);
    const Precision precision = option_precision(arena, usage, "--precision", e.run.precision);
    EmbedOptions options = {.files = side_files(arena, e.out), .inputs = find_inputs(arena, e.in), .field = e.field,
                            .strict = e.strict, .force = e.force, .bad_line = tell_line, .progress = tell_progress,
                            .with = &e};
    Compilation c = spec_load(arena, path, precision, STAGE_MODEL);
    if (!lock_take(options.files.lock)) fail("%s: another process is writing it", e.out);
    c.reproducible = e.run.reproducible;
    spec_compile(&c, STAGE_REWRITE);
    const TextOptions text = {.tokenizer = e.tokenizer};
    const Words *words = text_words(&c, usage, &text, e.run.cc);
    const EngineOptions engine_options = {.target = e.run.target, .cc = e.run.cc, .threads = 1};
    const Weights *weights = load_weights(&c, e.run.weights, e.run.verbose, false);
    Engine *engine = engine_new(arena, &c, weights, &engine_options);
    Embedder *embedder = embedder_new(arena, engine, words, e.truncate, e.run.thread_count);
    progress_end();
    options.prompt = text_prompt(&c.model->text);
    options.command = command_of(arena, &c, engine, words, &e, &options.inputs);
    e.line = embed_line_begin(c.model->name, e.bar);
    bool was_finished;
    const Place end = embed_run(arena, embedder, &options, &was_finished);
    embed_line_end(&e.line);
    if (was_finished) {
        const char *bad = arena_printf(arena, "; rows that are NaN: %lld of %lld", (long long)end.bad,
                                       (long long)end.rows);
        report_note("%s: is finished already, and is not changed%s", e.out, end.bad ? bad : "");
        return;
    }
    if (end.bad)
        fail("%s: lines without a vector: %lld of %lld; their rows are NaN", e.out, (long long)end.bad,
             (long long)end.rows);
}
