/* generate.c: attnc generate continues prompts by greedy choice, sampling or beam search, in the interpreter or in
 * compiled code. */
#include "commands.h"

#include "../engine/decoder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "attnc generate SPEC --weights F[,F…]|random:SEED [--in tokens=F.npy] [--in source=F.npy …] --max-new N\n"
    "                 [--out tokens=F.npy] [--stream] [--min-new N] [--ignore-eos] [--beam B] [--length-penalty A]\n"
    "                 [--length-form gnmt|power] [--temperature T] [--top-k K] [--top-p P] [--seed N] [--sequence N]\n"
    "                 [--engine compiled|interp] [--target T] [--cc CC] [--threads N]\n"
    "                 [--precision P] [--reproducible] [-v]\n" HELP_WEIGHTS "\n" HELP_PRECISION
    HELP_REPRODUCIBLE
    "  --in NAME=F.npy      an input: tokens is the prompt (default: the spec's `start`); source and other inputs\n"
    "                       are for the encoder; attention_mask, ones followed by zeros, gives the lengths of padded\n"
    "                       sequences\n"
    "  --max-new N          largest number of new tokens\n"
    "  --out tokens=F.npy   writes the prompt and the new tokens as an array; without it, the new ids are printed, a\n"
    "                       line for each prompt\n"
    "  --stream             prints each new id as soon as it is final\n"
    "  --min-new N          chooses no end token before that many new tokens (default: 0)\n"
    "  --ignore-eos         treats end tokens like any other token\n"
    "  --beam B             beam search with B beams, 1 to 1024 (default: 1, the most probable token at each step)\n"
    "  --length-penalty A   beam search: exponent A of the length, -16 to 16; 0 means no penalty (default: 0.6)\n"
    "  --length-form F      beam search: the log probability of n new tokens is divided by ((5 + n) / 6)^A with gnmt\n"
    "                       (default), or by n^A with power, as in Hugging Face transformers\n"
    "  --temperature T      samples at that temperature; 0 means no sampling (default: 0)\n"
    "  --top-k K            sampling: keeps the K most probable tokens; 0 means all (default: 0)\n"
    "  --top-p P            sampling: keeps the smallest set of most probable tokens with a total probability of\n"
    "                       at least P, greater than 0 and at most 1 (default: 1)\n"
    "  --seed N             sampling: seed of the random numbers (default: 0)\n"
    "  --sequence N         sampling: number of the random stream of the first prompt (default: 0); each following\n"
    "                       prompt of a batch uses the next stream\n"
    HELP_ENGINE HELP_TARGET HELP_CC HELP_THREADS HELP_VERBOSE;

typedef struct Generate {
    Arena *arena;
    const Module *module;
    Decoder *decoder;
    attn_generate_options options;
    Batch *prompts, *sources; /* sources is NULL without an encoder */
    bool stream;
    int64_t done, most; /* new tokens of all prompts so far, and at most */
} Generate;

static const char new_tokens[] = "new tokens at most";

static double option_real(const char *name, const char *text, double otherwise) {
    if (!text) return otherwise;
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end) usage_error(usage, "`%s` wants a number, found `%s`", name, text);
    return value;
}

static uint64_t option_natural(const char *name, const char *text) {
    if (!text) return 0;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text < '0' || *text > '9')
        usage_error(usage, "`%s` wants an integer from 0 to 2^64 - 1, found `%s`", name, text);
    return value;
}

/* The inputs that a graph takes. attention_mask belongs to the source when there is a source. */
static NamedFile *inputs_of(const Generate *g, const Graph *graph, const NamedFile *all) {
    NamedFile *list = NULL, **last = &list;
    bool takes_mask = g->module->encode ? graph == g->module->encode : true;
    for (const NamedFile *file = all; file; file = file->next) {
        bool mask = strcmp(file->name, "attention_mask") == 0;
        if (mask ? !takes_mask : !graph_input_named(graph, file->name)) continue;
        *last = arena_alloc(g->arena, sizeof **last);
        **last = (NamedFile){file->name, file->path, -1, NULL};
        last = &(*last)->next;
    }
    return list;
}

static void refuse_unknown(const Generate *g, const NamedFile *inputs) {
    for (const NamedFile *file = inputs; file; file = file->next) {
        const char *name = file->name;
        if (graph_input_named(g->module->encode, name) || graph_input_named(g->module->decode, name) ||
            strcmp(name, "attention_mask") == 0)
            continue;
        fail("`%s` is no input of %s's generation; it takes tokens%s", name, g->module->model->name,
             g->module->encode ? " and those of the encoder: source, attention_mask …" : ", attention_mask …");
    }
}

/* Makes a prompt of the start token for every source. */
static Batch *start_prompts(const Generate *g) {
    const Model *m = g->module->model;
    if (m->start < 0) fail("%s has no `start`: give a prompt with --in tokens=F.npy", m->name);
    Batch *batch = arena_alloc(g->arena, sizeof *batch);
    batch->batched = g->sources && g->sources->batched;
    batch->count = g->sources ? g->sources->count : 1;
    batch->sequences = arena_array(g->arena, (size_t)batch->count, sizeof *batch->sequences);
    for (int64_t b = 0; b < batch->count; b++) {
        Sequence *s = &batch->sequences[b];
        s->symbols[0] = 1;
        s->inputs[s->n_inputs++] = (InputArray){IN_tokens, DTYPE_I64, 1, &m->start};
    }
    return batch;
}

/* Refuses wrong prompts before weights are read and C is compiled; batch_read has checked the ids. */
static void check_prompt(const Generate *g, const Sequence *s) {
    const InputArray *tokens = sequence_input(s, IN_tokens);
    int64_t n = tokens->rows, bound = g->module->model->decoder->seq.n;
    const InputArray *prefix = sequence_input(s, IN_prefix_length);
    int64_t rows = prefix ? ((const int64_t *)prefix->data)[0] : 0;
    if (rows < 0 || rows > n)
        fail("input prefix_length holds %lld; with a prompt of %lld it may be 0 to %lld", (long long)rows, (long long)n,
             (long long)n);
    int64_t most = bound - n + 1; /* each new token but the last takes a row */
    if (g->options.max_new > most)
        fail("a prompt of %lld and %d new tokens are more than the %lld rows of the spec hold: with this prompt "
             "`--max-new` may be %s%lld", (long long)n, g->options.max_new, (long long)bound, most > 1 ? "1 to " : "",
             (long long)most);
}

static void read_prompts(Generate *g, const NamedFile *inputs) {
    refuse_unknown(g, inputs);
    if (!graph_input(g->module->decode, IN_tokens)) fail("%s takes no tokens", g->module->model->name);
    if (g->module->encode)
        g->sources = batch_read(g->arena, g->module->encode, inputs_of(g, g->module->encode, inputs));
    NamedFile *own = inputs_of(g, g->module->decode, inputs);
    g->prompts = own ? batch_read(g->arena, g->module->decode, own) : start_prompts(g);
    if (g->sources && (g->sources->count != g->prompts->count || g->sources->batched != g->prompts->batched))
        fail("the inputs have %s and %s", counted(g->arena, g->sources->count, "source"),
             counted(g->arena, g->prompts->count, "prompt"));
    for (int64_t b = 0; b < g->prompts->count; b++) check_prompt(g, &g->prompts->sequences[b]);
}

static int print_token(void *with, int32_t token) {
    (void)with;
    printf("%d ", (int)token);
    return fflush(stdout) != 0;
}

static _Noreturn void refuse(const Generate *g, int status, const attn_generated *result) {
    if (status == ATTN_GENERATE_MODEL)
        fail("the compiled model says: %s", decoder_text(g->decoder, result->model_status));
    if (status == ATTN_GENERATE_STOPPED) finish_output(); /* print_token stops only when stdout fails */
    fail("%s", attn_generate_status_text(status));
}

/* Returns the prompt and the new tokens of one sequence; *count is their number. */
static int32_t *continue_prompt(Generate *g, int64_t b, int64_t *count) {
    const Sequence *s = &g->prompts->sequences[b];
    const InputArray *tokens = sequence_input(s, IN_tokens), *prefix = sequence_input(s, IN_prefix_length);
    int64_t n = tokens->rows;
    int32_t *out = arena_array(g->arena, (size_t)(n + g->options.max_new), sizeof *out);
    for (int64_t i = 0; i < n; i++) out[i] = (int32_t)((const int64_t *)tokens->data)[i];
    attn_model model = decoder_model(g->decoder);
    attn_generate_options options = g->options;
    options.sequence += (uint64_t)b;
    attn_generated result = {.size = sizeof result, .tokens = out + n};
    size_t bytes = attn_generate_bytes(&model, &options);
    void *memory = arena_alloc(g->arena, bytes ? bytes : 1);
    decoder_begin(g->decoder, g->sources ? &g->sources->sequences[b] : NULL,
                  prefix ? ((const int64_t *)prefix->data)[0] : 0);
    int status = attn_generate(&model, &options, out, (int)n, &result, memory, bytes);
    if (status) refuse(g, status, &result);
    if (g->stream) printf("\n");
    g->done += result.count;
    g->most -= g->options.max_new - result.count;
    progress_at(g->done, g->most, new_tokens);
    *count = n + result.count;
    return out;
}

static void write_tokens(const Generate *g, const char *path, int32_t *const *tokens, const int64_t *counts) {
    const Model *m = g->module->model;
    int64_t most = 0, batch = g->prompts->count;
    for (int64_t b = 0; b < batch; b++) most = counts[b] > most ? counts[b] : most;
    int32_t pad = (int32_t)(m->pad >= 0 ? m->pad : m->n_end ? m->end[0] : 0);
    int32_t *all = arena_array(g->arena, (size_t)(batch * most), sizeof *all);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t i = 0; i < most; i++) all[b * most + i] = i < counts[b] ? tokens[b][i] : pad;
    Shape shape = g->prompts->batched ? (Shape){2, {batch, most}} : (Shape){1, {most}};
    npy_write(g->arena, path, DTYPE_I32, shape, all);
}

static void print_tokens(const Generate *g, int32_t *const *tokens, const int64_t *counts) {
    for (int64_t b = 0; b < g->prompts->count; b++) {
        int64_t first = sequence_input(&g->prompts->sequences[b], IN_tokens)->rows;
        for (int64_t i = first; i < counts[b]; i++) printf("%s%d", i > first ? " " : "", (int)tokens[b][i]);
        printf("\n");
    }
}

/* The texts of the options about the search; NULL when an option is not given. */
typedef struct SearchWords {
    const char *max_new, *min_new, *beam, *penalty, *form, *temperature, *top_k, *top_p, *seed, *sequence;
    bool ignore_end;
} SearchWords;

static int option_form(const char *text) {
    if (!text || strcmp(text, "gnmt") == 0) return ATTN_GENERATE_GNMT;
    if (strcmp(text, "power") == 0) return ATTN_GENERATE_POWER;
    usage_error(usage, "`--length-form` is gnmt or power, not `%s`", text);
}

static attn_generate_options read_search(const SearchWords *w) {
    if (!w->max_new) usage_error(usage, "`--max-new` is missing");
    return (attn_generate_options){.size = sizeof(attn_generate_options),
                                   .length_form = option_form(w->form),
                                   .max_new = (int)option_integer(usage, "--max-new", w->max_new, 1, 1, INT32_MAX / 2),
                                   .min_new = (int)option_integer(usage, "--min-new", w->min_new, 0, 0, INT32_MAX / 2),
                                   .temperature = option_real("--temperature", w->temperature, 0),
                                   .top_k = (int)option_integer(usage, "--top-k", w->top_k, 0, 0, INT32_MAX),
                                   .top_p = option_real("--top-p", w->top_p, 1),
                                   .seed = option_natural("--seed", w->seed),
                                   .sequence = option_natural("--sequence", w->sequence),
                                   .beams = (int)option_integer(usage, "--beam", w->beam, 1, 1, 1024),
                                   .length_penalty = option_real("--length-penalty", w->penalty, 0.6),
                                   .ignore_end = w->ignore_end};
}

/* Refuses options of a kind of search that was not requested. */
static void refuse_idle(const SearchWords *w, bool beams) {
    const struct {
        const char *name, *text;
    } of_sampling[] = {{"--top-k", w->top_k}, {"--top-p", w->top_p}, {"--seed", w->seed}, {"--sequence", w->sequence}};
    for (size_t i = 0; i < sizeof of_sampling / sizeof *of_sampling; i++) {
        if (!of_sampling[i].text || w->temperature) continue;
        if (beams) usage_error(usage, "`%s` has no effect on beam search: leave it out", of_sampling[i].name);
        usage_error(usage, "`%s` has no effect without sampling: add `--temperature T`", of_sampling[i].name);
    }
    if ((w->penalty || w->form) && !w->beam)
        usage_error(usage, "`%s` has no effect without beam search: add `--beam B`",
                    w->penalty ? "--length-penalty" : "--length-form");
}

/* Refuses wrong options before weights are read and C is compiled. */
static void check_options(const attn_generate_options *o) {
    if (o->beams < 1) usage_error(usage, "`--beam` is at least 1");
    if (!(o->temperature >= 0) || o->temperature > 1e6) usage_error(usage, "`--temperature` is 0 or more");
    if (!(o->top_p > 0) || o->top_p > 1) usage_error(usage, "`--top-p` is greater than 0 and at most 1");
    if (o->beams > 1 && o->temperature > 0) usage_error(usage, "beam search and `--temperature` exclude each other");
    if (o->min_new > o->max_new) usage_error(usage, "`--min-new` is more than `--max-new`");
    if (!(o->length_penalty >= -16 && o->length_penalty <= 16)) usage_error(usage, "`--length-penalty` is -16 to 16");
}

/* Returns NULL when the ids are to be printed. */
static const char *out_path(Arena *arena, const ValueNode *out) {
    char *name;
    if (!out) return NULL;
    if (out->next) usage_error(usage, "`--out tokens=F.npy` is wanted once");
    const char *path = split_assignment(arena, usage, "--out", out->text, &name);
    if (strcmp(name, "tokens") != 0) usage_error(usage, "generate has the output tokens, not `%s`", name);
    return path;
}

static void set_ends(Generate *g) {
    const Model *m = g->module->model;
    int32_t *end = arena_array(g->arena, (size_t)m->n_end + 1, sizeof *end);
    for (int64_t i = 0; i < m->n_end; i++) end[i] = (int32_t)m->end[i];
    g->options.end = end;
    g->options.end_count = (int)m->n_end;
    g->options.on_token = g->stream ? print_token : NULL;
}

int command_generate(int argc, char **argv) {
    Arena *arena = arena_new();
    const char *path;
    RunOptions run = {0};
    SearchWords search = {0};
    ValueNode *in = NULL, *out = NULL;
    bool stream = false;
    const Option options[] = {
        {"--weights", .text = &run.weights},
        {"--in", .list = &in},
        {"--out", .list = &out},
        {"--stream", .flag = &stream},
        {"--max-new", .text = &search.max_new},
        {"--min-new", .text = &search.min_new},
        {"--ignore-eos", .flag = &search.ignore_end},
        {"--beam", .text = &search.beam},
        {"--length-penalty", .text = &search.penalty},
        {"--length-form", .text = &search.form},
        {"--temperature", .text = &search.temperature},
        {"--top-k", .text = &search.top_k},
        {"--top-p", .text = &search.top_p},
        {"--seed", .text = &search.seed},
        {"--sequence", .text = &search.sequence},
        {"--engine", .text = &run.engine},
        {"--target", .text = &run.target},
        {"--threads", .text = &run.threads},
        {"--cc", .text = &run.cc},
        {"--precision", .text = &run.precision}, {"--reproducible", .flag = &run.reproducible},
        {"-v", .flag = &run.verbose}};
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, &path, 1);
    run_check(&run, usage);
    Generate g = {.arena = arena, .stream = stream, .options = read_search(&search)};
    check_options(&g.options);
    refuse_idle(&search, g.options.beams > 1);
    const char *to = out_path(arena, out);
    const NamedFile *inputs = input_files(arena, usage, in);
    Compilation c = spec_load(arena, path, option_precision(arena, usage, run.precision), STAGE_GRAPH);
    c.reproducible = run.reproducible;
    g.module = c.module;
    if (!g.module->decode)
        fail("%s: nothing can be generated: %s", path, g.module->no_decode ? g.module->no_decode : "it has no decoder");
    set_ends(&g);
    read_prompts(&g, inputs);
    Weights *weights = (run.interpreted ? load_weights : open_weights)(&c, run.weights, run.verbose);
    Engine *engine = NULL;
    if (!run.interpreted) {
        EngineOptions engine_options = {
            .target = run.target, .cc = run.cc, .threads = run.thread_count, .or_interp = true};
        engine = engine_new(arena, &c, weights, &engine_options);
    }
    g.decoder = decoder_new(arena, g.module, weights, engine, g.options.beams, GUARD_NONE);
    if (!engine) decoder_arithmetic(g.decoder, arithmetic_of(&c));
    int64_t batch = g.prompts->count, *counts = arena_array(arena, (size_t)batch, sizeof *counts);
    int32_t **tokens = arena_array(arena, (size_t)batch, sizeof *tokens);
    g.most = batch * g.options.max_new;
    if (stream && terminal_is(stdout)) progress_end(); /* the streamed tokens show the progress */
    else progress_begin("generating");
    progress_at(0, g.most, new_tokens);
    for (int64_t b = 0; b < batch; b++) tokens[b] = continue_prompt(&g, b, &counts[b]);
    if (to) write_tokens(&g, to, tokens, counts);
    progress_end();
    if (!to && !stream) print_tokens(&g, tokens, counts);
    arena_free(arena);
    return EXIT_FINE;
}
