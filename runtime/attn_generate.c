/* See attn_generate.h. */
#include "attn_generate.h"

#include <limits.h>

#include "attn_rules.h"
#include "attn_sample.h"

enum { MAX_LENGTH_PENALTY = 16 };

/* The last token of a live beam, and the index of the beam that it continues among the live beams one token shorter. */
typedef struct Node {
    int32_t token;
    int parent;
} Node;

/* A finished text: its score, its last token, the beam that this token continues, and its number of tokens. */
typedef struct Finished {
    double score;
    int beam, length;
    int32_t token;
} Finished;

typedef struct Run {
    const attn_model *model;
    const attn_generate_options *options;
    attn_generated *result;

    float *logits; /* [beams or 1][vocab] */
    LogitRow row;  /* the row of the last sweep */
    Rules rules;

    /* for beam search; the live beams are ordered, the best first */
    int live;
    double *log_p;          /* [beams] log probability of each live beam */
    int *slots, *new_slots; /* [beams] the slot of each live beam, before and after a step */
    int32_t *tokens;        /* [beams] the last token of each live beam */
    unsigned char *taken;   /* [beams] whether a slot holds the state of a new live beam */
    Node *nodes;            /* [max_new][beams] nodes[n - 1] belongs to the texts of n tokens */
    int32_t *text;          /* [max_new] the new tokens of a beam, if the rules read them; else NULL */
    double *penalty;        /* [max_new + 1] the length penalty lp, by number of tokens */
    Candidate *candidates;  /* [choices] the best continuations of the beams so far, the best first */
    Candidate *merged;      /* [choices] the result of a merge, before it becomes `candidates` */
    size_t count, choices;
    Finished *finished; /* [kept_texts()] the best finished texts, the best first */
    int finished_count;
} Run;

static int beams_of(const attn_generate_options *options) { return options->beams > 1 ? options->beams : 1; }

/* How many finished texts a beam search keeps. An exact one needs only the best, since a worse one can never become the
 * result. */
static int kept_texts(const attn_generate_options *options) {
    return options->early_stopping == ATTN_GENERATE_EXACT ? 1 : options->beams;
}

/* A row before its first sweep, set up by the options. It keeps one token, as greedy search needs. */
static LogitRow row_of(const attn_model *model, const attn_generate_options *options) {
    bool sampled = options->temperature > 0;
    LogitRow row = {.vocab = model->vocab, .room = 1, .per = 1};
    row.random = attn_random_start(options->seed, options->sequence);
    row.top_k = options->top_k < model->vocab ? options->top_k : 0;
    row.top_p = options->top_p < 1 ? options->top_p : 0;
    /* The bound keeps 1 / min_p finite. Weights below it are 0 anyway. */
    row.min_p = options->min_p > 0 && options->min_p < 1e-300 ? 1e-300 : options->min_p;
    row.weighed = beams_of(options) > 1 || (sampled && row.top_k == 0 && (row.top_p > 0 || row.min_p == 0));
    /* The bound keeps 1 / temperature finite. At 1e-300 the weights of any two unequal floats already differ by more
     * than e^708. */
    if (sampled) row.per = 1 / (options->temperature > 1e-300 ? options->temperature : 1e-300);
    return row;
}

/* Lays out the arrays of `run` from `base`, which is aligned or NULL. Returns their size in bytes. */
static size_t lay_out(Run *run, char *base) {
    const attn_generate_options *options = run->options;
    size_t used = 0, vocab = (size_t)run->model->vocab, beams = (size_t)beams_of(options);
    size_t longest = (size_t)run->model->bound - (size_t)options->rows + (size_t)options->history_count;
    run->logits = attn_carve(base, &used, attn_multiply_sizes(beams, vocab), sizeof *run->logits);
    run->row = row_of(run->model, options);
    attn_rules_lay_out(&run->rules, longest, base, &used);
    if (beams == 1) {
        if (options->temperature > 0) attn_row_lay_out(&run->row, base, &used);
        run->row.top = attn_carve(base, &used, run->row.room, sizeof *run->row.top);
        return used;
    }
    size_t max_new = (size_t)options->max_new;
    /* All live beams together can end in beams * end_count ways; `beams` more leave room for those that go on. */
    run->choices = attn_multiply_sizes(beams, (size_t)options->end_count + 1);
    run->row.room = run->choices < vocab ? run->choices : vocab;
    run->row.top = attn_carve(base, &used, run->row.room, sizeof *run->row.top);
    run->log_p = attn_carve(base, &used, beams, sizeof *run->log_p);
    run->slots = attn_carve(base, &used, beams, sizeof *run->slots);
    run->new_slots = attn_carve(base, &used, beams, sizeof *run->new_slots);
    run->tokens = attn_carve(base, &used, beams, sizeof *run->tokens);
    run->taken = attn_carve(base, &used, beams, sizeof *run->taken);
    run->nodes = attn_carve(base, &used, attn_multiply_sizes(max_new, beams), sizeof *run->nodes);
    run->penalty = attn_carve(base, &used, max_new + 1, sizeof *run->penalty);
    run->finished = attn_carve(base, &used, (size_t)kept_texts(options), sizeof *run->finished);
    if (attn_rules_read_text(options)) run->text = attn_carve(base, &used, max_new, sizeof *run->text);
    run->candidates = attn_carve(base, &used, run->choices, sizeof *run->candidates);
    run->merged = attn_carve(base, &used, run->choices, sizeof *run->merged);
    return used;
}

static int check_options(const attn_generate_options *options) {
    double temperature = options->temperature, top_p = options->top_p, alpha = options->length_penalty;
    /* Each comparison fails for NaN. */
    bool good = options->rows >= 0 && options->max_new >= 1 && options->min_new >= 0 &&
                options->min_new <= options->max_new && temperature >= 0 && temperature < INFINITY &&
                options->top_k >= 0 && top_p >= 0 && top_p <= 1 && options->beams >= 0 &&
                alpha >= -MAX_LENGTH_PENALTY && alpha <= MAX_LENGTH_PENALTY &&
                (options->length_form == ATTN_GENERATE_GNMT || options->length_form == ATTN_GENERATE_POWER) &&
                options->min_p >= 0 && options->min_p <= 1 && options->early_stopping >= ATTN_GENERATE_EXACT &&
                options->early_stopping <= ATTN_GENERATE_NEVER && attn_rules_options_good(options);
    if (!good || (options->beams > 1 && temperature > 0)) return ATTN_GENERATE_BAD_OPTION;
    return ATTN_GENERATE_OK;
}

/* Copies the options. Fields that an older version of the struct lacks become 0. False if no version has that size. */
static bool take_options(const attn_generate_options *given, attn_generate_options *options) {
    const size_t first_version = offsetof(attn_generate_options, sequence),
                 second_version = offsetof(attn_generate_options, repetition_penalty);
    if (given == NULL ||
        (given->size != sizeof *given && given->size != first_version && given->size != second_version)) {
        return false;
    }
    memset(options, 0, sizeof *options);
    memcpy(options, given, given->size);
    return true;
}

/* Checks model and options, without prompt and result. */
static int check_setup(const attn_model *model, const attn_generate_options *options) {
    if (model == NULL || model->size != sizeof *model || model->vocab < 1 || model->bound < 1 ||
        model->prefill == NULL || model->step == NULL || (options->beams > 1 && model->copy == NULL) ||
        options->end_count < 0 || (options->end_count > 0 && options->end == NULL)) {
        return ATTN_GENERATE_BAD_ARGUMENT;
    }
    int status = check_options(options);
    if (status == ATTN_GENERATE_OK && (int64_t)options->rows + options->max_new > model->bound)
        status = ATTN_GENERATE_TOO_LONG;
    if (status == ATTN_GENERATE_OK && (!attn_tokens_good(options->end, options->end_count, model->vocab) ||
                                       !attn_rules_tokens_good(options, model->vocab))) {
        status = ATTN_GENERATE_BAD_TOKEN;
    }
    return status;
}

static size_t bytes_of(const attn_model *model, const attn_generate_options *options) {
    Run run = {.model = model, .options = options, .rules = {.options = options, .vocab = model->vocab}};
    return attn_add_sizes(lay_out(&run, NULL), CARVED_ALIGNMENT - 1);
}

size_t attn_generate_bytes(const attn_model *model, const attn_generate_options *given) {
    attn_generate_options options;
    if (!take_options(given, &options) || check_setup(model, &options) != ATTN_GENERATE_OK) return 0;
    return bytes_of(model, &options);
}

static int check(const attn_model *model, const attn_generate_options *options, const int32_t *prompt,
                 int prompt_count, attn_generated *result, const void *memory, size_t bytes) {
    if (result == NULL || result->size != sizeof *result || result->tokens == NULL || prompt == NULL ||
        prompt_count < 1 || memory == NULL) {
        return ATTN_GENERATE_BAD_ARGUMENT;
    }
    int status = check_setup(model, options);
    if (status == ATTN_GENERATE_BAD_ARGUMENT) return status;
    result->count = result->ended = result->model_status = 0;
    result->rows = options->rows;
    result->score = 0;
    if (status != ATTN_GENERATE_OK) return status;
    if ((int64_t)options->rows + prompt_count + options->max_new - 1 > model->bound) return ATTN_GENERATE_TOO_LONG;
    if (!attn_tokens_good(prompt, prompt_count, model->vocab)) return ATTN_GENERATE_BAD_TOKEN;
    return bytes < bytes_of(model, options) ? ATTN_GENERATE_SHORT_MEMORY : ATTN_GENERATE_OK;
}

/* Turns the status of a callback of the model into one of attn_generate. */
static int model_gave(Run *run, int status) {
    run->result->model_status = status;
    return status == 0 ? ATTN_GENERATE_OK : ATTN_GENERATE_MODEL;
}

static bool is_end(const Run *run, int32_t token) { return attn_rules_is_end(&run->rules, token); }

/* Writes a final token to the result and passes it to on_token. ATTN_GENERATE_STOPPED ends the search. */
static int deliver(Run *run, int32_t token) {
    attn_generated *result = run->result;
    const attn_generate_options *options = run->options;
    result->tokens[result->count++] = token;
    result->ended = is_end(run, token);
    if (options->on_token != NULL && options->on_token(options->on_token_with, token) != 0)
        return ATTN_GENERATE_STOPPED;
    return ATTN_GENERATE_OK;
}

/* The token with the largest logit; -1 if none can be chosen. */
static int32_t largest(Run *run) {
    attn_row_sweep(&run->row, run->logits);
    return run->row.kept > 0 ? run->row.top[0].token : -1;
}

/* Greedy search and sampling: one text, in slot 0, whose prompt has been fed. */
static int search_one(Run *run) {
    const attn_model *model = run->model;
    const attn_generate_options *options = run->options;
    for (;;) {
        const int count = run->result->count;
        if (attn_rules_change(&run->rules, count) != ROW_KEPT)
            attn_rules_apply(&run->rules, run->result->tokens, count, run->logits);
        int32_t token = options->temperature > 0 ? attn_row_draw(&run->row, run->logits) : largest(run);
        if (token < 0) return ATTN_GENERATE_NO_TOKEN;
        int status = deliver(run, token);
        if (status != ATTN_GENERATE_OK || run->result->ended || run->result->count == options->max_new) return status;
        const int slot = 0;
        status = model_gave(run, model->step(model->with, 1, &slot, &token, run->logits));
        if (status != ATTN_GENERATE_OK) return status;
        run->result->rows++;
    }
}

/* Beam search. */

/* Merges the first `count` of row.top into the candidates. Both are sorted. Of equal candidates, those of earlier beams
 * come first. */
static void merge(Run *run, size_t count) {
    size_t old = 0, new = 0, merged = 0;
    while (merged < run->choices && (old < run->count || new < count)) {
        bool from_old = new == count || (old < run->count && run->candidates[old].log_p >= run->row.top[new].log_p);
        run->merged[merged++] = from_old ? run->candidates[old++] : run->row.top[new++];
    }
    Candidate *swapped = run->candidates;
    run->candidates = run->merged;
    run->merged = swapped;
    run->count = merged;
}

/* The tokens of live beam `beam`, which has `length` of them, into tokens [length]. */
static void trace(const Run *run, int length, int beam, int32_t *tokens) {
    for (int n = length; n >= 1; n--) {
        const Node node = run->nodes[(size_t)(n - 1) * (size_t)run->options->beams + (size_t)beam];
        tokens[n - 1] = node.token;
        beam = node.parent;
    }
}

/* The logarithm of the probability of a token of the swept row is the logarithm of its ratio to `most`, minus
 * log_sum. */
typedef struct Scale {
    float most;
    double log_sum;
} Scale;

static Scale scale_of(const LogitRow *row) { return (Scale){row->most, row->sum > 0 ? attn_log(row->sum) : 0}; }

/* Applies the rules to the logits of a beam and finds the best tokens that are left. The sum includes forbidden tokens.
 * Where a rule computes with scores, the row becomes log probabilities in f32 first, as in transformers. */
static Scale sweep_by_rules(Run *run, int beam, int length, RowChange change, float *logits) {
    LogitRow *row = &run->row;
    const size_t room = row->room, vocab = (size_t)row->vocab;
    row->room = 0; /* the first sweep only sums */
    attn_row_sweep(row, logits);
    Scale scale = scale_of(row);
    if (change == ROW_RESCORED && scale.most > -INFINITY) {
        for (size_t i = 0; i < vocab; i++)
            logits[i] = (float)(attn_log_ratio(logits[i], scale.most) - scale.log_sum);
        scale = (Scale){0, 0};
    }
    if (run->text != NULL) trace(run, length, beam, run->text);
    attn_rules_apply(&run->rules, run->text, length, logits);
    row->room = room;
    row->weighed = false;
    attn_row_sweep(row, logits);
    row->weighed = true;
    return scale;
}

/* Finds the best `choices` continuations of the live beams, which have `length` tokens. The tokens of one beam are
 * ranked by logit, since different logits can round to equal sums with the log_p of the beam. */
static void rank_continuations(Run *run, int length) {
    const RowChange change = attn_rules_change(&run->rules, length);
    run->count = 0;
    for (int beam = 0; beam < run->live; beam++) {
        float *logits = run->logits + (size_t)beam * (size_t)run->model->vocab;
        Scale scale;
        if (change == ROW_KEPT) {
            attn_row_sweep(&run->row, logits);
            scale = scale_of(&run->row);
        } else {
            scale = sweep_by_rules(run, beam, length, change, logits);
        }
        size_t count = 0;
        attn_row_sort(&run->row);
        for (size_t i = 0; i < run->row.kept; i++) {
            double ratio = attn_log_ratio((float)run->row.top[i].log_p, scale.most);
            double log_p = run->log_p[beam] + (ratio - scale.log_sum);
            if (log_p > -INFINITY) run->row.top[count++] = (Candidate){log_p, beam, run->row.top[i].token};
        }
        merge(run, count);
    }
}

/* Keeps a finished text if it is good enough. Of equal ones the earlier one is better. */
static void finish(Run *run, Finished text) {
    const int most = kept_texts(run->options);
    int at = run->finished_count;
    while (at > 0 && text.score > run->finished[at - 1].score) at--;
    if (at == most) return;
    if (run->finished_count < most) run->finished_count++;
    for (int i = run->finished_count - 1; i > at; i--) run->finished[i] = run->finished[i - 1];
    run->finished[at] = text;
}

/* Chooses the new live beams and new finished texts from the ranked candidates, which are texts of `length` tokens. */
static void choose(Run *run, int length) {
    const int beams = run->options->beams;
    const bool exact = run->options->early_stopping == ATTN_GENERATE_EXACT;
    Node *nodes = run->nodes + (size_t)(length - 1) * (size_t)beams;
    run->live = 0;
    for (size_t i = 0; i < run->count; i++) {
        Candidate candidate = run->candidates[i];
        bool ends = is_end(run, candidate.token);
        if (!ends) {
            if (run->live == beams) continue;
            /* The candidates include the log_p of the old beams, so log_p can be overwritten. */
            run->log_p[run->live] = candidate.log_p;
            run->tokens[run->live] = candidate.token;
            nodes[run->live++] = (Node){candidate.token, candidate.beam};
        }
        if ((ends || length == run->options->max_new) && (exact || i < (size_t)beams)) {
            const double score = candidate.log_p / run->penalty[length];
            finish(run, (Finished){score, candidate.beam, length, candidate.token});
        }
    }
}

/* Whether the search ends although there are live beams of `length` tokens. With ATTN_GENERATE_EXACT no continuation
 * of such a beam can beat the best finished text, since log_p never rises, not even by rounding or by a rule, live beam
 * 0 has the largest, and lp is monotonic in the length. */
static bool is_decided(const Run *run, int length) {
    const attn_generate_options *options = run->options;
    if (run->finished_count < kept_texts(options)) return false;
    int compared = length; /* the length at which the best live beam is compared to the worst kept text */
    switch (options->early_stopping) {
    case ATTN_GENERATE_EXACT: compared = options->length_penalty >= 0 ? options->max_new : length + 1; break;
    case ATTN_GENERATE_NEVER: compared = options->length_penalty > 0 ? options->max_new : length; break;
    case ATTN_GENERATE_AT_FULL: return true;
    default: break;
    }
    return run->log_p[0] / run->penalty[compared] <= run->finished[run->finished_count - 1].score;
}

/* Gives each new live beam a slot with its parent's state. The first child of a parent stays in the parent's slot, and
 * every other child receives a copy in a slot that no first child holds. There are enough slots, since at most `beams`
 * children exist. No copy reads an overwritten slot, since copies read the slots of first children and write others. */
static int place_states(Run *run, int length) {
    const attn_model *model = run->model;
    int beams = run->options->beams, free_slot = 0;
    const Node *nodes = run->nodes + (size_t)(length - 1) * (size_t)beams;
    memset(run->taken, 0, (size_t)beams);
    for (int i = 0; i < run->live; i++) {
        int slot = run->slots[nodes[i].parent];
        run->new_slots[i] = run->taken[slot] ? -1 : slot;
        run->taken[slot] = 1;
    }
    for (int i = 0; i < run->live; i++) {
        if (run->new_slots[i] < 0) {
            while (run->taken[free_slot]) free_slot++;
            int status = model_gave(run, model->copy(model->with, free_slot, run->slots[nodes[i].parent]));
            if (status != ATTN_GENERATE_OK) return status;
            run->new_slots[i] = free_slot++;
        }
    }
    int *old = run->slots;
    run->slots = run->new_slots;
    run->new_slots = old;
    return ATTN_GENERATE_OK;
}

/* Computes lp for every length. It stays monotonic where neighbours differ by less than the error of exp and log. */
static void fill_penalty(Run *run) {
    double alpha = run->options->length_penalty;
    bool power = run->options->length_form == ATTN_GENERATE_POWER;
    run->penalty[0] = 1; /* equals the value for one token in both forms */
    for (int n = 1; n <= run->options->max_new; n++) {
        double lp = attn_exp(alpha * attn_log(power ? n : (5.0 + n) / 6)), before = run->penalty[n - 1];
        run->penalty[n] = (alpha >= 0 ? lp < before : lp > before) ? before : lp;
    }
}

static int deliver_finished(Run *run) {
    if (run->finished_count == 0) return ATTN_GENERATE_NO_TOKEN;
    const Finished best = run->finished[0];
    int32_t *tokens = run->result->tokens;
    tokens[best.length - 1] = best.token;
    trace(run, best.length - 1, best.beam, tokens);
    run->result->score = best.score;
    int status = ATTN_GENERATE_OK;
    for (int i = 0; i < best.length && status == ATTN_GENERATE_OK; i++) status = deliver(run, tokens[i]);
    return status;
}

/* Beam search; the prompt has been fed to slot 0. */
static int search_beams(Run *run) {
    const attn_model *model = run->model;
    fill_penalty(run);
    run->live = 1;
    run->log_p[0] = 0;
    run->slots[0] = 0;
    for (int length = 1;; length++) {
        rank_continuations(run, length - 1);
        choose(run, length);
        if (run->live == 0 || length == run->options->max_new || is_decided(run, length)) return deliver_finished(run);
        int status = place_states(run, length);
        if (status == ATTN_GENERATE_OK) {
            status = model_gave(run, model->step(model->with, run->live, run->slots, run->tokens, run->logits));
        }
        if (status != ATTN_GENERATE_OK) return status;
    }
}

int attn_generate(const attn_model *model, const attn_generate_options *given, const int32_t *prompt,
                  int prompt_count, attn_generated *result, void *memory, size_t bytes) {
    attn_generate_options taken;
    const attn_generate_options *options = &taken;
    if (!take_options(given, &taken)) return ATTN_GENERATE_BAD_ARGUMENT;
    int status = check(model, options, prompt, prompt_count, result, memory, bytes);
    if (status != ATTN_GENERATE_OK) return status;
    Run run = {.model = model, .options = options, .result = result};
    run.rules = (Rules){.options = options, .vocab = model->vocab, .prompt = prompt,
                        .prompt_count = (size_t)prompt_count, .ends = options->end_count > 0 && !options->ignore_end};
    char *base = memory;
    lay_out(&run, base + (CARVED_ALIGNMENT - (uintptr_t)base % CARVED_ALIGNMENT) % CARVED_ALIGNMENT);
    attn_rules_begin(&run.rules);
    status = model_gave(&run, model->prefill(model->with, 0, prompt, prompt_count, run.logits));
    if (status != ATTN_GENERATE_OK) return status;
    result->rows += prompt_count;
    return beams_of(options) > 1 ? search_beams(&run) : search_one(&run);
}

const char *attn_generate_status_text(int status) {
    switch (status) {
    case ATTN_GENERATE_OK: return "fine";
    case ATTN_GENERATE_BAD_ARGUMENT: return "a null pointer, a struct of another size, or a count that is too small";
    case ATTN_GENERATE_BAD_OPTION: return "an option is outside its range, or two options exclude each other";
    case ATTN_GENERATE_TOO_LONG: return "the prompt and the new tokens are more rows than a state can hold";
    case ATTN_GENERATE_BAD_TOKEN: return "a token is outside the vocabulary";
    case ATTN_GENERATE_SHORT_MEMORY: return "the memory is too small";
    case ATTN_GENERATE_MODEL: return "the model failed";
    case ATTN_GENERATE_NO_TOKEN: return "no token can be chosen: each is forbidden, or its logit NaN or minus infinity";
    case ATTN_GENERATE_STOPPED: return "stopped by on_token";
    default: return "unknown status";
    }
}
