/* See attn_generate.h. */
#include "attn_generate.h"

#include <limits.h>

#include "attn_sample.h"

enum { MAX_LENGTH_PENALTY = 16 };

/* The last token of a live beam, and the index of the beam that it continues among the live beams one token shorter. */
typedef struct Node {
    int32_t token;
    int parent;
} Node;

typedef struct Run {
    const attn_model *model;
    const attn_generate_options *options;
    attn_generated *result;
    bool ends; /* whether end tokens end a text */

    float *logits; /* [beams or 1][vocab] */
    LogitRow row;  /* the row of the last sweep */

    /* for beam search; the live beams are ordered, the best first */
    int live;
    double *log_p;          /* [beams] log probability of each live beam */
    int *slots, *new_slots; /* [beams] the slot of each live beam, before and after a step */
    int32_t *tokens;        /* [beams] the last token of each live beam */
    unsigned char *taken;   /* [beams] whether a slot holds the state of a new live beam */
    Node *nodes;            /* [max_new][beams] nodes[n - 1] belongs to the texts of n tokens */
    double *penalty;        /* [max_new + 1] the length penalty lp, by number of tokens */
    Candidate *candidates;  /* [choices] the best continuations of the beams so far, the best first */
    Candidate *merged;      /* [choices] the result of a merge, before it becomes `candidates` */
    size_t count, choices;
    Candidate finished; /* the last token of the best finished text; log_p holds the score */
    int length;         /* number of tokens of that text; 0: none is finished */
} Run;

static int beams_of(const attn_generate_options *options) { return options->beams > 1 ? options->beams : 1; }

/* A row before its first sweep, set up by the options. It keeps one token, as greedy search needs. */
static LogitRow row_of(const attn_model *model, const attn_generate_options *options) {
    bool sampled = options->temperature > 0;
    LogitRow row = {.vocab = model->vocab, .room = 1, .per = 1};
    row.random = attn_random_start(options->seed, options->sequence);
    row.top_k = options->top_k < model->vocab ? options->top_k : 0;
    row.top_p = options->top_p < 1 ? options->top_p : 0;
    row.weighed = beams_of(options) > 1 || (sampled && row.top_k == 0);
    /* The bound keeps 1 / temperature finite. At 1e-300 the weights of any two unequal floats already differ by more
     * than e^708. */
    if (sampled) row.per = 1 / (options->temperature > 1e-300 ? options->temperature : 1e-300);
    return row;
}

/* Lays out the arrays of `run` from `base`, which is aligned or NULL. Returns their size in bytes. */
static size_t lay_out(Run *run, char *base) {
    const attn_generate_options *options = run->options;
    size_t used = 0, vocab = (size_t)run->model->vocab, beams = (size_t)beams_of(options);
    run->logits = attn_carve(base, &used, attn_multiply_sizes(beams, vocab), sizeof *run->logits);
    run->row = row_of(run->model, options);
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
                (options->length_form == ATTN_GENERATE_GNMT || options->length_form == ATTN_GENERATE_POWER);
    if (!good || (options->beams > 1 && temperature > 0)) return ATTN_GENERATE_BAD_OPTION;
    return ATTN_GENERATE_OK;
}

static int check_tokens(const attn_model *model, const int32_t *tokens, int count) {
    for (int i = 0; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= model->vocab) return ATTN_GENERATE_BAD_TOKEN;
    return ATTN_GENERATE_OK;
}

/* Copies the options. Fields that the first version of the struct lacks become 0. False if no version has that size. */
static bool take_options(const attn_generate_options *given, attn_generate_options *options) {
    const size_t first_version = offsetof(attn_generate_options, sequence);
    if (given == NULL || (given->size != sizeof *given && given->size != first_version)) return false;
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
    return status == ATTN_GENERATE_OK ? check_tokens(model, options->end, options->end_count) : status;
}

static size_t bytes_of(const attn_model *model, const attn_generate_options *options) {
    Run run = {.model = model, .options = options};
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
    status = check_tokens(model, prompt, prompt_count);
    return status == ATTN_GENERATE_OK && bytes < bytes_of(model, options) ? ATTN_GENERATE_SHORT_MEMORY : status;
}

/* Turns the status of a callback of the model into one of attn_generate. */
static int model_gave(Run *run, int status) {
    run->result->model_status = status;
    return status == 0 ? ATTN_GENERATE_OK : ATTN_GENERATE_MODEL;
}

static bool is_end(const Run *run, int32_t token) {
    for (int i = 0; run->ends && i < run->options->end_count; i++)
        if (run->options->end[i] == token) return true;
    return false;
}

/* Removes the end tokens from a row of logits while a text of `count` tokens may not end yet. */
static void forbid_ends(const Run *run, int count, float *logits) {
    if (run->ends && count < run->options->min_new) {
        for (int i = 0; i < run->options->end_count; i++) logits[run->options->end[i]] = -INFINITY;
    }
}

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
        forbid_ends(run, run->result->count, run->logits);
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

/* Finds the best `choices` continuations of the live beams, which have `length` tokens. The tokens of one beam are
 * ranked by logit, since different logits can round to equal sums with the log_p of the beam. Forbidden end tokens keep
 * their share of the probability. They may take the place of other tokens in row.top, but never of the best `beams`
 * tokens that are allowed. */
static void rank_continuations(Run *run, int length) {
    bool forbidden = run->ends && length < run->options->min_new;
    run->count = 0;
    for (int beam = 0; beam < run->live; beam++) {
        attn_row_sweep(&run->row, run->logits + (size_t)beam * (size_t)run->model->vocab);
        if (run->row.kept == 0) continue;
        double log_sum = attn_log(run->row.sum);
        size_t count = 0;
        attn_row_sort(&run->row);
        for (size_t i = 0; i < run->row.kept; i++) {
            int32_t token = run->row.top[i].token;
            double ratio = attn_log_ratio((float)run->row.top[i].log_p, run->row.most);
            double log_p = run->log_p[beam] + (ratio - log_sum);
            if (log_p > -INFINITY && !(forbidden && is_end(run, token))) {
                run->row.top[count++] = (Candidate){log_p, beam, token};
            }
        }
        merge(run, count);
    }
}

/* Chooses the new live beams, and perhaps a new best finished text, from the ranked candidates, which are texts of
 * `length` tokens. One finished text is enough: a worse one can never become the result. */
static void choose(Run *run, int length) {
    int beams = run->options->beams;
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
        double score = candidate.log_p / run->penalty[length];
        if ((ends || length == run->options->max_new) && (run->length == 0 || score > run->finished.log_p)) {
            run->finished = (Candidate){score, candidate.beam, candidate.token};
            run->length = length;
        }
    }
}

/* Whether no continuation of a live beam of `length` tokens can beat the best finished text. The test is exact: log_p
 * never rises, not even by rounding, live beam 0 has the largest, and lp is monotonic in the length. */
static bool is_decided(const Run *run, int length) {
    int friendliest = run->options->length_penalty >= 0 ? run->options->max_new : length + 1;
    return run->length > 0 && run->log_p[0] / run->penalty[friendliest] <= run->finished.log_p;
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
    if (run->length == 0) return ATTN_GENERATE_NO_TOKEN;
    int32_t *tokens = run->result->tokens;
    tokens[run->length - 1] = run->finished.token;
    int beam = run->finished.beam;
    for (int n = run->length - 1; n >= 1; n--) {
        Node node = run->nodes[(size_t)(n - 1) * (size_t)run->options->beams + (size_t)beam];
        tokens[n - 1] = node.token;
        beam = node.parent;
    }
    run->result->score = run->finished.log_p;
    int status = ATTN_GENERATE_OK;
    for (int i = 0; i < run->length && status == ATTN_GENERATE_OK; i++) status = deliver(run, tokens[i]);
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
    run.ends = options->end_count > 0 && !options->ignore_end;
    char *base = memory;
    lay_out(&run, base + (CARVED_ALIGNMENT - (uintptr_t)base % CARVED_ALIGNMENT) % CARVED_ALIGNMENT);
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
    case ATTN_GENERATE_NO_TOKEN: return "no token can be chosen: every logit is NaN or minus infinity, or may not end";
    case ATTN_GENERATE_STOPPED: return "stopped by on_token";
    default: return "unknown status";
    }
}
