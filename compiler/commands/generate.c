/* generate.c: attnc generate continues prompts by greedy choice, sampling or beam search, in the interpreter or in
 * compiled code. */
#include "../engine/decoder.h"
#include "search.h"
#include "text_input.h"

#include <string.h>

static const char usage[] =
    "attnc generate SPEC --weights F[,F…]|random:SEED [--in tokens=F.npy] [--in source=F.npy …] --max-new N\n"
    "                 [--tokenizer F --text T …] [--rows NAME=F.npy …]\n"
    "                 [--out tokens=F.npy] [--stream] [--min-new N] [--ignore-eos] [--beam B] [--length-penalty A]\n"
    "                 [--length-form gnmt|power] [--early-stopping E] [--sample] [--temperature T] [--top-k K]\n"
    "                 [--top-p P] [--min-p P] [--seed N] [--sequence N] [--repeat-penalty R] [--no-repeat-ngram N]\n"
    "                 [--engine compiled|interp] [--target T] [--cc CC] [--threads N]\n"
    "                 [--precision P] [--reproducible] [-v]\n" HELP_WEIGHTS "\n" HELP_PRECISION
    HELP_REPRODUCIBLE
    "  --in NAME=F.npy      an input: tokens is the prompt (default: the spec's `start`); integers of its rows, of\n"
    "                       which generated rows repeat the last; source and other inputs are for the encoder;\n"
    "                       attention_mask, ones followed by zeros, gives the lengths of padded sequences\n"
    "  --rows NAME=F.npy    an input of the rows of the whole text: of the prompt and of the new tokens but the last\n"
    "  --max-new N          largest number of new tokens (default: as in the spec's block `generation`, which also\n"
    "                       states the search where the options below do not)\n"
    "  --out tokens=F.npy   writes the prompt and the new tokens as an array; without it, the new ids are printed, a\n"
    "                       line for each prompt, or with a tokenizer the text of them\n"
    "  --stream             prints each new id, or what it adds to the text, as soon as it is final\n"
    HELP_TEXTS HELP_TOKENIZER
    "  --min-new N          chooses no end token before that many new tokens (default: 0)\n"
    "  --ignore-eos         treats end tokens like any other token\n"
    "  --beam B             beam search with B beams, 1 to 1024; 1 means none\n"
    "  --length-penalty A   beam search: exponent A of the length, -16 to 16; 0 means no penalty (default: 0.6)\n"
    "  --length-form F      beam search: the log probability of n new tokens is divided by ((5 + n) / 6)^A with gnmt\n"
    "                       (default), or by n^A with power, as in Hugging Face transformers\n"
    "  --early-stopping E   beam search ends with exact (default) when no beam can win any more, with full, heuristic\n"
    "                       or never as transformers does with `early_stopping` true, false or \"never\"\n"
    "  --sample             samples, at temperature 1 if nothing states another\n"
    "  --temperature T      samples at that temperature; 0 means no sampling\n"
    "  --top-k K            sampling: keeps the K most probable tokens; 0 means all (default: 0)\n"
    "  --top-p P            sampling: keeps the smallest set of most probable tokens with a total probability of\n"
    "                       at least P, greater than 0 and at most 1 (default: 1)\n"
    "  --min-p P            sampling: keeps tokens of at least P times the largest probability, 0 to 1 (default: 0)\n"
    "  --seed N             sampling: seed of the random numbers (default: 0)\n"
    "  --sequence N         sampling: number of the random stream of the first prompt (default: 0); each following\n"
    "                       prompt of a batch uses the next stream\n"
    "  --repeat-penalty R   divides positive logits of tokens that the text has by R, and multiplies negative ones\n"
    "                       (default: 1)\n"
    "  --no-repeat-ngram N  no N tokens in a row stand twice in a text; 0 means no rule (default: 0)\n"
    HELP_ENGINE HELP_TARGET HELP_CC HELP_THREADS HELP_VERBOSE;

typedef struct Generate {
    Arena *arena;
    const Module *module;
    Decoder *decoder;
    Search search;
    Batch *prompts, *sources; /* sources is NULL without an encoder */
    bool whole[MOST_INPUTS];  /* by role: inputs of the rows of whole texts, as `--rows` gives them */
    bool stream;
    Words *words; /* NULL: ids are printed */
    int64_t done, most; /* new tokens of all prompts so far, and at most */
} Generate;

static const char new_tokens[] = "new tokens at most";

/* The inputs that a graph takes. attention_mask belongs to the source when there is a source. */
static NamedFile *inputs_of(const Generate *g, const Graph *graph, const NamedFile *all) {
    NamedFile *list = NULL, **last = &list;
    bool takes_mask = g->module->entries[ENTRY_ENCODE] ? graph == g->module->entries[ENTRY_ENCODE] : true;
    for (const NamedFile *file = all; file; file = file->next) {
        bool mask = strcmp(file->name, "attention_mask") == 0;
        if (mask ? !takes_mask : !graph_input_named(graph, file->name)) continue;
        *last = arena_alloc(g->arena, sizeof **last);
        **last = *file;
        (*last)->next = NULL;
        last = &(*last)->next;
    }
    return list;
}

/* Notes which inputs are of the rows of whole texts, and refuses `--rows` of others. */
static void note_whole(Generate *g, const NamedFile *inputs) {
    for (const NamedFile *file = inputs; file; file = file->next) {
        const GraphInput *input = graph_input_named(g->module->entries[ENTRY_DECODE], file->name);
        if (!file->whole) continue;
        if (!input || !role_is_of_rows(input->kind->role) || input->kind->rows != PER_ROW)
            fail("`--rows` gives `input rows` of the %s, and `%s` is not one", g->module->model->decoder->name,
                 file->name);
        g->whole[input->kind->role] = true;
    }
}

/* The names of an entry's inputs, each before a comma. */
static const char *names_of(const Generate *g, EntryKind entry) {
    const Graph *graph = g->module->entries[entry];
    Text names = text_new(g->arena);
    for (int i = 0; graph && i < graph->n_inputs; i++) text_printf(&names, "%s, ", graph->inputs[i].kind->name);
    return names.data;
}

static void refuse_unknown(const Generate *g, const NamedFile *inputs) {
    for (const NamedFile *file = inputs; file; file = file->next) {
        const char *name = file->name;
        if (graph_input_named(g->module->entries[ENTRY_ENCODE], name) ||
            graph_input_named(g->module->entries[ENTRY_DECODE], name) || strcmp(name, "attention_mask") == 0)
            continue;
        fail("`%s` is no input of %s's generation; it takes %s%sattention_mask", name, g->module->model->name,
             names_of(g, ENTRY_ENCODE), names_of(g, ENTRY_DECODE));
    }
}

/* Makes a prompt of the start token for every source. */
static Batch *start_prompts(const Generate *g) {
    const Model *m = g->module->model;
    if (m->start < 0) fail("%s has no `start`: give a prompt with --in tokens=F.npy", m->name);
    const Graph *decode = g->module->entries[ENTRY_DECODE];
    for (int i = 0; i < decode->n_inputs; i++)
        if (role_is_of_rows(decode->inputs[i].kind->role))
            fail("input %s is missing: give it with a prompt, as --in tokens=F.npy --in %s=F.npy",
                 decode->inputs[i].kind->name, decode->inputs[i].kind->name);
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

/* Refuses a prompt whose positions, counted on for `wanted` new tokens, leave their range. */
static void check_positions(const RowInput *input, const InputArray *positions, int64_t wanted) {
    const int64_t last = ((const int64_t *)positions->data)[positions->rows - 1], most = input->most - last + 1;
    if (wanted > most)
        fail("input %s ends with %lld, and positions are at most %lld: with this prompt `--max-new` may be %s%lld",
             input->kind.name, (long long)last, (long long)input->most, most > 1 ? "1 to " : "", (long long)most);
}

/* Refuses an input of whole texts of which a prompt of n tokens and `wanted` new ones have more rows. */
static void check_whole(const RowInput *input, const InputArray *array, int64_t n, int64_t wanted) {
    if (array->rows < n + wanted - 1)
        fail("input %s has %lld numbers, and a prompt of %lld with `--max-new` %lld needs %lld: the last token has no "
             "row", input->kind.name, (long long)array->rows, (long long)n, (long long)wanted,
             (long long)(n + wanted - 1));
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
    const int64_t wanted = search_max_new(&g->search, n);
    if (wanted > most)
        fail("a prompt of %lld and %lld new tokens are more than the %lld rows of the spec hold: with this prompt "
             "`--max-new` may be %s%lld", (long long)n, (long long)wanted, (long long)bound, most > 1 ? "1 to " : "",
             (long long)most);
    for (int i = 0; i < s->n_inputs; i++) {
        const RowInput *input = model_row_input(g->module->model, s->inputs[i].role);
        if (g->whole[s->inputs[i].role]) check_whole(input, &s->inputs[i], n, wanted);
        else if (input && input->counts) check_positions(input, &s->inputs[i], wanted);
    }
}

static void read_prompts(Generate *g, const NamedFile *inputs) {
    note_whole(g, inputs);
    refuse_unknown(g, inputs);
    if (!graph_input(g->module->entries[ENTRY_DECODE], IN_tokens))
        fail("%s takes no tokens: its decoder has `input features`, whose next row the program computes",
             g->module->model->name);
    const Graph *encode = g->module->entries[ENTRY_ENCODE];
    if (encode) g->sources = batch_read(g->arena, encode, inputs_of(g, encode, inputs));
    NamedFile *own = inputs_of(g, g->module->entries[ENTRY_DECODE], inputs);
    g->prompts = own ? batch_read(g->arena, g->module->entries[ENTRY_DECODE], own) : start_prompts(g);
    if (g->sources && (g->sources->count != g->prompts->count || g->sources->batched != g->prompts->batched))
        fail("the inputs have %s and %s", counted(g->arena, g->sources->count, "source"),
             counted(g->arena, g->prompts->count, "prompt"));
    for (int64_t b = 0; b < g->prompts->count; b++) check_prompt(g, &g->prompts->sequences[b]);
}

static int print_token(void *with, int32_t token) {
    const Generate *g = with;
    size_t bytes = 0;
    const char *text = g->words ? words_next(g->words, token, &bytes) : NULL;
    if (text) fwrite(text, 1, bytes, stdout);
    else printf("%d ", (int)token);
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
    attn_generate_options options = search_for(&g->search, n);
    int32_t *out = arena_array(g->arena, (size_t)(n + options.max_new), sizeof *out);
    for (int64_t i = 0; i < n; i++) out[i] = (int32_t)((const int64_t *)tokens->data)[i];
    attn_model model = decoder_model(g->decoder);
    options.sequence += (uint64_t)b;
    options.on_token = g->stream ? print_token : NULL;
    options.on_token_with = g;
    for (int i = 0; i < s->n_inputs; i++)
        if (role_is_of_rows(s->inputs[i].role))
            decoder_numbers(g->decoder, s->inputs[i].role, s->inputs[i].data, s->inputs[i].rows);
    attn_generated result = {.size = sizeof result, .tokens = out + n};
    size_t bytes = attn_generate_bytes(&model, &options);
    void *memory = arena_alloc(g->arena, bytes ? bytes : 1);
    decoder_begin(g->decoder, g->sources ? &g->sources->sequences[b] : NULL,
                  prefix ? ((const int64_t *)prefix->data)[0] : 0);
    int status = attn_generate(&model, &options, out, (int)n, &result, memory, bytes);
    if (status) refuse(g, status, &result);
    if (g->stream && g->words) {
        size_t rest;
        const char *text = words_end(g->words, &rest);
        fwrite(text, 1, rest, stdout);
    }
    if (g->stream) printf("\n");
    g->done += result.count;
    g->most -= options.max_new - result.count;
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
        if (g->words) {
            size_t bytes;
            const char *text = words_text(g->words, tokens[b] + first, counts[b] - first, &bytes);
            fwrite(text, 1, bytes, stdout);
        }
        for (int64_t i = first; !g->words && i < counts[b]; i++)
            printf("%s%d", i > first ? " " : "", (int)tokens[b][i]);
        printf("\n");
    }
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

void command_generate(Arena *arena, int argc, char **argv) {
    const char *path;
    RunOptions run = {0};
    SearchWords words = {.usage = usage};
    ValueNode *in = NULL, *rows = NULL, *out = NULL;
    bool stream = false;
    TextOptions text = {0};
    const Option options[] = {
        {"--weights", .text = &run.weights},
        {"--in", .list = &in},
        {"--rows", .list = &rows},
        {"--out", .list = &out},
        {"--stream", .flag = &stream},
        {"--max-new", .text = &words.max_new},
        {"--min-new", .text = &words.min_new},
        {"--ignore-eos", .flag = &words.ignore_end},
        {"--beam", .text = &words.beam},
        {"--length-penalty", .text = &words.penalty},
        {"--length-form", .text = &words.form},
        {"--early-stopping", .text = &words.stopping},
        {"--sample", .flag = &words.sample},
        {"--temperature", .text = &words.temperature},
        {"--top-k", .text = &words.top_k},
        {"--top-p", .text = &words.top_p},
        {"--min-p", .text = &words.min_p},
        {"--seed", .text = &words.seed},
        {"--sequence", .text = &words.sequence},
        {"--repeat-penalty", .text = &words.repetition},
        {"--no-repeat-ngram", .text = &words.ngram},
        {"--engine", .text = &run.engine},
        {"--target", .text = &run.target},
        {"--threads", .text = &run.threads},
        {"--cc", .text = &run.cc},
        {"--precision", .text = &run.precision}, {"--reproducible", .flag = &run.reproducible},
        {"-v", .flag = &run.verbose},
        {"--tokenizer", .text = &text.tokenizer},
        {"--text", .list = &text.texts}};
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, &path, 1);
    run_check(&run, usage);
    Generate g = {.arena = arena, .stream = stream};
    search_check(&words);
    const char *to = out_path(arena, out);
    const NamedFile *inputs = row_files(arena, usage, rows, input_files(arena, usage, in));
    Compilation c = spec_load(arena, path, option_precision(arena, usage, "--precision", run.precision), STAGE_REWRITE);
    c.reproducible = run.reproducible;
    g.module = c.module;
    if (!g.module->entries[ENTRY_DECODE])
        fail("%s: nothing can be generated: %s", path, g.module->no_decode ? g.module->no_decode : "it has no decoder");
    g.search = search_read(arena, &words, c.model);
    g.words = text_words(&c, usage, &text, run.cc);
    read_prompts(&g, text_inputs(&c, usage, &text, g.words, inputs, true));
    Engine *engine;
    Weights *weights = run_load(&c, &run, &engine);
    g.decoder = decoder_new(arena, g.module, weights, engine, g.search.options.beams, GUARD_NONE);
    if (!engine) decoder_arithmetic(g.decoder, arithmetic_of(&c));
    int64_t batch = g.prompts->count, *counts = arena_array(arena, (size_t)batch, sizeof *counts);
    int32_t **tokens = arena_array(arena, (size_t)batch, sizeof *tokens);
    for (int64_t b = 0; b < batch; b++)
        g.most += search_for(&g.search, sequence_input(&g.prompts->sequences[b], IN_tokens)->rows).max_new;
    if (stream && terminal_is(stdout)) progress_end(); /* the streamed tokens show the progress */
    else progress_begin("generating");
    progress_at(0, g.most, new_tokens);
    for (int64_t b = 0; b < batch; b++) tokens[b] = continue_prompt(&g, b, &counts[b]);
    if (to) write_tokens(&g, to, tokens, counts);
    progress_end();
    if (!to && !stream) print_tokens(&g, tokens, counts);
}
