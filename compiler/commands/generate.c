/* generate.c: attnc generate: a prompt continued by either engine, greedy, sampled or by beam search. */
#include "decoder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "attnc generate SPEC --weights F[,F…]|random:SEED [--in tokens=F.npy] [--in source=F.npy …] --max-new N\n"
    "                 [--out tokens=F.npy] [--stream] [--min-new N] [--ignore-eos] [--beam B] [--length-penalty A]\n"
    "                 [--length-form gnmt|power] [--temperature T] [--top-k K] [--top-p P] [--seed N] [--sequence N]\n"
    "                 [--engine compiled|interp] [--target T] [--cc CC] [--threads N] [-v]\n" HELP_WEIGHTS "\n"
    "  --in NAME=F.npy      tokens: the prompt (the spec's `start`); source and the encoder's other inputs;\n"
    "                       attention_mask, ones then zeros, says how long padded sequences are\n"
    "  --max-new N          new tokens at most\n"
    "  --out tokens=F.npy   prompt and new tokens, as an array; without it the new ids are printed, a line a prompt\n"
    "  --stream             prints each new id as soon as it is certain\n"
    "  --min-new N          no end token before that many new tokens (0)\n"
    "  --ignore-eos         end tokens are like any other\n"
    "  --beam B             beam search of that width, 1 to 1024 (1: the likeliest token each time)\n"
    "  --length-penalty A   of beam search: what the length divides by, -16 to 16; 0 is nothing (0.6)\n"
    "  --length-form F      of beam search: the log probability of n new tokens is divided by ((5 + n) / 6)^A with\n"
    "                       gnmt (the default), and by n^A with power, as by Hugging Face transformers\n"
    "  --temperature T      sampling at that temperature; 0 is none (0)\n"
    "  --top-k K            of sampling: among the K likeliest tokens; 0 is all (0)\n"
    "  --top-p P            of sampling: among the likeliest that together have that share, above 0 to 1 (1)\n"
    "  --seed N             of sampling: what is drawn from (0)\n"
    "  --sequence N         of sampling: the stream of the seed's that the first prompt draws from (0); the next\n"
    "                       prompt of a batch draws from the next one\n"
    HELP_ENGINE HELP_TARGET HELP_CC HELP_THREADS HELP_VERBOSE;

typedef struct Generate {
    Arena *arena;
    const Module *module;
    Decoder *decoder;
    attn_generate_options options;
    Batch *prompts, *sources; /* sources NULL: no encoder */
    bool stream;
    int64_t done, most; /* new tokens of all prompts: how many there are, and may be */
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

static bool graph_has(const Graph *graph, const char *name) {
    for (int i = 0; graph && i < graph->n_inputs; i++)
        if (strcmp(graph->inputs[i].name, name) == 0) return true;
    return false;
}

/* The inputs that a graph takes; a mask goes with the source where there is one. */
static ValueNode *inputs_of(const Generate *g, const Graph *graph, const ValueNode *all) {
    ValueNode *list = NULL, **last = &list;
    bool takes_mask = g->module->encode ? graph == g->module->encode : true;
    for (const ValueNode *node = all; node; node = node->next) {
        char *name;
        split_assignment(g->arena, usage, "--in", node->text, &name);
        bool mask = strcmp(name, "attention_mask") == 0;
        if (mask ? !takes_mask : !graph_has(graph, name)) continue;
        *last = arena_alloc(g->arena, sizeof **last);
        (*last)->text = node->text;
        last = &(*last)->next;
    }
    return list;
}

static void refuse_unknown(const Generate *g, const ValueNode *inputs) {
    for (const ValueNode *node = inputs; node; node = node->next) {
        char *name;
        split_assignment(g->arena, usage, "--in", node->text, &name);
        if (graph_has(g->module->encode, name) || graph_has(g->module->decode, name) ||
            strcmp(name, "attention_mask") == 0)
            continue;
        fail("`%s` is no input of %s's generation; it takes tokens%s", name, g->module->model->name,
             g->module->encode ? " and those of the encoder: source, attention_mask …" : ", attention_mask …");
    }
}

/* A prompt of the start token for every source. */
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
        s->inputs[s->n_inputs++] = (InputArray){"tokens", DTYPE_I64, 1, &m->start};
    }
    return batch;
}

static const InputArray *input_named(const Sequence *s, const char *name) {
    for (int i = 0; i < s->n_inputs; i++)
        if (strcmp(s->inputs[i].name, name) == 0) return &s->inputs[i];
    return NULL;
}

/* What is wrong with a prompt, beside its ids, is said before weights are read and C is compiled. */
static void check_prompt(const Generate *g, const Sequence *s) {
    const InputArray *tokens = input_named(s, "tokens");
    int64_t n = tokens->rows, bound = g->module->model->decoder->seq.n;
    const InputArray *prefix = input_named(s, "prefix_length");
    int64_t rows = prefix ? ((const int64_t *)prefix->data)[0] : 0;
    if (rows < 0 || rows > n)
        fail("input prefix_length holds %lld; with a prompt of %lld it may be 0 to %lld", (long long)rows, (long long)n,
             (long long)n);
    int64_t most = bound - n + 1; /* all but the last new token are fed, a row each */
    if (g->options.max_new > most)
        fail("a prompt of %lld and %d new tokens are more than the %lld rows of the spec hold: with this prompt "
             "`--max-new` may be %s%lld", (long long)n, g->options.max_new, (long long)bound, most > 1 ? "1 to " : "",
             (long long)most);
}

static void read_prompts(Generate *g, const ValueNode *inputs) {
    refuse_unknown(g, inputs);
    if (!graph_has(g->module->decode, "tokens")) fail("%s takes no tokens", g->module->model->name);
    if (g->module->encode)
        g->sources = batch_read(g->arena, usage, g->module->encode, inputs_of(g, g->module->encode, inputs));
    ValueNode *own = inputs_of(g, g->module->decode, inputs);
    g->prompts = own ? batch_read(g->arena, usage, g->module->decode, own) : start_prompts(g);
    if (g->sources && (g->sources->count != g->prompts->count || g->sources->batched != g->prompts->batched))
        fail("there are %lld sources and %lld prompts", (long long)g->sources->count, (long long)g->prompts->count);
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
    if (status == ATTN_GENERATE_STOPPED) finish_output(); /* by print_token, which knows no other reason */
    fail("%s", attn_generate_status_text(status));
}

/* The prompt and the new tokens of one sequence; *count is their number. */
static int32_t *continue_prompt(Generate *g, int64_t b, int64_t *count) {
    const Sequence *s = &g->prompts->sequences[b];
    const InputArray *tokens = input_named(s, "tokens"), *prefix = input_named(s, "prefix_length");
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
        int64_t first = input_named(&g->prompts->sequences[b], "tokens")->rows;
        for (int64_t i = first; i < counts[b]; i++) printf("%s%d", i > first ? " " : "", (int)tokens[b][i]);
        printf("\n");
    }
}

/* How to search, as it stands on the command line; NULL: not given. */
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

/* Options that would change nothing, since the search that they are of was not asked for. */
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

/* Everything about the options is said before weights are read and C is compiled. */
static void check_options(const attn_generate_options *o) {
    if (o->beams < 1) usage_error(usage, "`--beam` is at least 1");
    if (!(o->temperature >= 0) || o->temperature > 1e6) usage_error(usage, "`--temperature` is 0 or more");
    if (!(o->top_p > 0) || o->top_p > 1) usage_error(usage, "`--top-p` is greater than 0 and at most 1");
    if (o->beams > 1 && o->temperature > 0) usage_error(usage, "beam search and `--temperature` exclude each other");
    if (o->min_new > o->max_new) usage_error(usage, "`--min-new` is more than `--max-new`");
    if (!(o->length_penalty >= -16 && o->length_penalty <= 16)) usage_error(usage, "`--length-penalty` is -16 to 16");
}

/* NULL: the ids are printed. */
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
        {"-v", .flag = &run.verbose}};
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, &path, 1);
    run_check(&run, usage);
    Generate g = {.arena = arena, .stream = stream, .options = read_search(&search)};
    check_options(&g.options);
    refuse_idle(&search, g.options.beams > 1);
    const char *to = out_path(arena, out);
    g.module = build(arena, model_load(arena, path));
    if (!g.module->decode)
        fail("%s: nothing can be generated: %s", path, g.module->no_decode ? g.module->no_decode : "it has no decoder");
    set_ends(&g);
    read_prompts(&g, in);
    Weights *weights = load_weights(arena, g.module, run.weights, run.verbose);
    Engine *engine = NULL;
    if (!run.interpreted) {
        EngineOptions engine_options = {
            .target = run.target, .cc = run.cc, .threads = run.thread_count, .or_interp = true};
        engine = engine_new(arena, g.module, weights, &engine_options);
    }
    g.decoder = decoder_new(arena, g.module, weights, engine, g.options.beams, GUARD_NONE);
    int64_t batch = g.prompts->count, *counts = arena_array(arena, (size_t)batch, sizeof *counts);
    int32_t **tokens = arena_array(arena, (size_t)batch, sizeof *tokens);
    g.most = batch * g.options.max_new;
    if (stream && terminal_is(stdout)) progress_end(); /* tokens show by themselves how it goes */
    else progress_begin("generating");
    progress_at(0, g.most, new_tokens);
    for (int64_t b = 0; b < batch; b++) tokens[b] = continue_prompt(&g, b, &counts[b]);
    if (to) write_tokens(&g, to, tokens, counts);
    progress_end();
    if (!to && !stream) print_tokens(&g, tokens, counts);
    arena_free(arena);
    return EXIT_FINE;
}
