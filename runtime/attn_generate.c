/* See attn_generate.h. */
#include "attn_generate.h"

#include <float.h>
#include <limits.h>
#include <math.h> /* INFINITY alone: no function of it is called */
#include <stdbool.h>

/* The same bits on every machine need each operation rounded by itself, to double: no product fused with a sum, no
 * reordering, no wider registers. */
#ifdef __FAST_MATH__
#error "attn_generate.c needs IEEE arithmetic: compile it without -ffast-math"
#endif
#if FLT_EVAL_METHOD < 0 || FLT_EVAL_METHOD == 2
#error "attn_generate.c needs double arithmetic without excess precision: on x86, -msse2 -mfpmath=sse"
#endif
#if defined(__clang__) || !defined(__GNUC__)
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off") /* gcc does not know the standard's pragma */
#endif

enum { ALIGNMENT = 64, MAX_LENGTH_PENALTY = 16 };

/* ln 2 in two parts; the first has 32 bits, so that its product with an exponent is exact. */
static const double LN2_HIGH = 0x1.62e42feep-1, LN2_LOW = 0x1.a39ef35793c76p-33;

/* e^x with a relative error below 2e-16. Below -708 it is 0: there the result would be a denormal. */
static double exp_double(double x) {
    /* 1/n!, from n = 13 down: at |r| <= ln2 / 2 the first term left out is below 2^-57 */
    static const double TERMS[] = {0x1.6124613a86d09p-33, 0x1.1eed8eff8d898p-29, 0x1.ae64567f544e4p-26,
                                   0x1.27e4fb7789f5cp-22, 0x1.71de3a556c734p-19, 0x1.a01a01a01a01ap-16,
                                   0x1.a01a01a01a01ap-13, 0x1.6c16c16c16c17p-10, 0x1.1111111111111p-7,
                                   0x1.5555555555555p-5,  0x1.5555555555555p-3,  0.5};
    if (x < -708) {
        return 0;
    }
    if (x > 709) {
        return INFINITY;
    }
    int exponent = (int)(x * 0x1.71547652b82fep+0 + (x < 0 ? -0.5 : 0.5));
    double r = (x - exponent * LN2_HIGH) - exponent * LN2_LOW;
    double square = r * r, odd = TERMS[0], even = TERMS[1]; /* two chains, half as long */
    for (size_t i = 2; i < sizeof TERMS / sizeof *TERMS; i += 2) {
        odd = odd * square + TERMS[i];
        even = even * square + TERMS[i + 1];
    }
    double result = 1 + (r + square * (odd * r + even));
    uint64_t bits;
    memcpy(&bits, &result, sizeof bits);
    bits += (uint64_t)(int64_t)exponent << 52;
    memcpy(&result, &bits, sizeof result);
    return result;
}

/* ln x with a relative error below 4e-16, for finite x >= 1; log_double(1) is 0 and no result is negative. */
static double log_double(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> 52) - 1023;
    bits = (bits & 0xfffffffffffff) | (uint64_t)1023 << 52;
    memcpy(&x, &bits, sizeof x);
    if (x > 0x1.6a09e667f3bcdp+0) {
        x /= 2;
        exponent++;
    }
    /* ln x = 2 atanh(s) = 2 (s + s^3/3 + s^5/5 + ...), |s| < 0.172: s^23/23 is below 2^-62 s */
    double f = x - 1, s = f / (2 + f), square = s * s, sum = 0;
    for (int n = 21; n >= 3; n -= 2) {
        sum = (sum + 1.0 / n) * square;
    }
    return exponent * LN2_HIGH + (2 * s + (2 * s * sum + exponent * LN2_LOW));
}

/* A continuation of live beam `beam` by `token`; log_p is that of the whole text then. */
typedef struct Candidate {
    double log_p;
    int beam;
    int32_t token;
} Candidate;

/* The last token of a live beam, and which of the live beams of one token less it continues. */
typedef struct Node {
    int32_t token;
    int parent;
} Node;

typedef struct Run {
    const attn_model *model;
    const attn_generate_options *options;
    attn_generated *result;
    bool ends; /* end tokens end */

    float *logits; /* [beams or 1][vocab] */

    /* sampling */
    uint64_t random;
    int32_t *ids;     /* [vocab] a heap, the best first; behind its end the ones taken from it, the best last */
    int heap, usable; /* ids in the heap, and in all */
    double *weights;  /* [vocab] */

    /* beam search; the live beams are ordered, the best first */
    int live;
    double *log_p;          /* [beams] of the live ones */
    int *slots, *new_slots; /* [beams] where their states are */
    int32_t *tokens;        /* [beams] their last tokens */
    unsigned char *taken;   /* [beams] slots that hold the state of a new live beam */
    Node *nodes;            /* [max_new][beams] by number of tokens - 1 */
    double *penalty;        /* [max_new + 1] lp by number of tokens */
    Candidate *candidates;  /* [room] a heap, the worst first */
    size_t count, room;
    Candidate finished; /* the best finished text: log_p is its score */
    int length;         /* tokens of it; 0: none */
} Run;

static int beams_of(const attn_generate_options *options) { return options->beams > 1 ? options->beams : 1; }

/* Sums and products of sizes stop at SIZE_MAX, which no memory satisfies. */
static size_t add_sizes(size_t a, size_t b) { return a > SIZE_MAX - b ? SIZE_MAX : a + b; }

static size_t multiply_sizes(size_t a, size_t b) { return b != 0 && a > SIZE_MAX / b ? SIZE_MAX : a * b; }

/* The next `count` objects of `size` bytes of the memory; with `base` NULL it only counts. */
static void *carve(char *base, size_t *used, size_t count, size_t size) {
    void *part = base == NULL ? NULL : base + *used;
    size_t bytes = add_sizes(multiply_sizes(count, size), ALIGNMENT - 1);
    *used = add_sizes(*used, bytes == SIZE_MAX ? bytes : bytes / ALIGNMENT * ALIGNMENT);
    return part;
}

/* Lays the arrays of `run` out from `base`, which is aligned or NULL. Returns their bytes. */
static size_t lay_out(Run *run, char *base) {
    const attn_generate_options *options = run->options;
    size_t used = 0, vocab = (size_t)run->model->vocab, beams = (size_t)beams_of(options);
    run->logits = carve(base, &used, multiply_sizes(beams, vocab), sizeof *run->logits);
    if (beams == 1) {
        if (options->temperature > 0) {
            run->ids = carve(base, &used, vocab, sizeof *run->ids);
            run->weights = carve(base, &used, vocab, sizeof *run->weights);
        }
        return used;
    }
    size_t max_new = (size_t)options->max_new;
    /* As many as `beams` beams can end in, and `beams` more, so that ends cannot starve what goes on. */
    run->room = multiply_sizes(beams, (size_t)options->end_count + 1);
    run->log_p = carve(base, &used, beams, sizeof *run->log_p);
    run->slots = carve(base, &used, beams, sizeof *run->slots);
    run->new_slots = carve(base, &used, beams, sizeof *run->new_slots);
    run->tokens = carve(base, &used, beams, sizeof *run->tokens);
    run->taken = carve(base, &used, beams, sizeof *run->taken);
    run->nodes = carve(base, &used, multiply_sizes(max_new, beams), sizeof *run->nodes);
    run->penalty = carve(base, &used, max_new + 1, sizeof *run->penalty);
    run->candidates = carve(base, &used, run->room, sizeof *run->candidates);
    return used;
}

static int check_options(const attn_generate_options *options) {
    double temperature = options->temperature, top_p = options->top_p, alpha = options->length_penalty;
    /* Written so that NaN fails. */
    bool good = options->rows >= 0 && options->max_new >= 1 && options->min_new >= 0 &&
                options->min_new <= options->max_new && temperature >= 0 && temperature < INFINITY &&
                options->top_k >= 0 && top_p >= 0 && top_p <= 1 && options->beams >= 0 &&
                alpha >= -MAX_LENGTH_PENALTY && alpha <= MAX_LENGTH_PENALTY;
    if (!good || (options->beams > 1 && temperature > 0)) {
        return ATTN_GENERATE_BAD_OPTION;
    }
    return ATTN_GENERATE_OK;
}

static int check_tokens(const attn_model *model, const int32_t *tokens, int count) {
    for (int i = 0; i < count; i++) {
        if (tokens[i] < 0 || tokens[i] >= model->vocab) {
            return ATTN_GENERATE_BAD_TOKEN;
        }
    }
    return ATTN_GENERATE_OK;
}

/* What can be said of model and options without a prompt. */
static int check_setup(const attn_model *model, const attn_generate_options *options) {
    if (model == NULL || options == NULL || model->size != sizeof *model || options->size != sizeof *options ||
        model->vocab < 1 || model->bound < 1 || model->prefill == NULL || model->step == NULL ||
        (options->beams > 1 && model->copy == NULL) || options->end_count < 0 ||
        (options->end_count > 0 && options->end == NULL)) {
        return ATTN_GENERATE_BAD_ARGUMENT;
    }
    int status = check_options(options);
    if (status == ATTN_GENERATE_OK && (int64_t)options->rows + options->max_new > model->bound) {
        status = ATTN_GENERATE_TOO_LONG;
    }
    return status == ATTN_GENERATE_OK ? check_tokens(model, options->end, options->end_count) : status;
}

size_t attn_generate_bytes(const attn_model *model, const attn_generate_options *options) {
    if (check_setup(model, options) != ATTN_GENERATE_OK) {
        return 0;
    }
    Run run = {.model = model, .options = options};
    return add_sizes(lay_out(&run, NULL), ALIGNMENT - 1);
}

static int check(const attn_model *model, const attn_generate_options *options, const int32_t *prompt,
                 int prompt_count, attn_generated *result, const void *memory, size_t bytes) {
    if (result == NULL || result->size != sizeof *result || result->tokens == NULL || prompt == NULL ||
        prompt_count < 1 || memory == NULL) {
        return ATTN_GENERATE_BAD_ARGUMENT;
    }
    int status = check_setup(model, options);
    if (status == ATTN_GENERATE_BAD_ARGUMENT) {
        return status;
    }
    result->count = result->ended = result->model_status = 0;
    result->rows = options->rows;
    result->score = 0;
    if (status != ATTN_GENERATE_OK) {
        return status;
    }
    if ((int64_t)options->rows + prompt_count + options->max_new - 1 > model->bound) {
        return ATTN_GENERATE_TOO_LONG;
    }
    status = check_tokens(model, prompt, prompt_count);
    if (status == ATTN_GENERATE_OK && bytes < attn_generate_bytes(model, options)) {
        status = ATTN_GENERATE_SHORT_MEMORY;
    }
    return status;
}

/* Notes what a callback of the model gave back. */
static int model_gave(Run *run, int status) {
    run->result->model_status = status;
    return status == 0 ? ATTN_GENERATE_OK : ATTN_GENERATE_MODEL;
}

static bool is_end(const Run *run, int32_t token) {
    for (int i = 0; run->ends && i < run->options->end_count; i++) {
        if (run->options->end[i] == token) {
            return true;
        }
    }
    return false;
}

/* Takes the end tokens out of a row of logits where a text of `count` tokens may not end yet. */
static void forbid_ends(const Run *run, int count, float *logits) {
    if (run->ends && count < run->options->min_new) {
        for (int i = 0; i < run->options->end_count; i++) {
            logits[run->options->end[i]] = -INFINITY;
        }
    }
}

/* Hands a token that is certain to the caller. OK: go on. */
static int deliver(Run *run, int32_t token) {
    attn_generated *result = run->result;
    const attn_generate_options *options = run->options;
    result->tokens[result->count++] = token;
    result->ended = is_end(run, token);
    if (options->on_token != NULL && options->on_token(options->on_token_with, token) != 0) {
        return ATTN_GENERATE_STOPPED;
    }
    return ATTN_GENERATE_OK;
}

/* The token of the largest logit, -1 if none can be chosen. NaN fails every comparison. */
static int32_t argmax(const float *logits, int vocab) {
    int32_t best = -1;
    float most = -INFINITY;
    for (int32_t token = 0; token < vocab; token++) {
        if (logits[token] > most) {
            most = logits[token];
            best = token;
        }
    }
    return best;
}

/* ln of a token's probability as a part of the largest one's: at most 0, also where both are plus infinity. */
static double log_ratio(float logit, float most) { return logit == most ? 0 : (double)logit - (double)most; }

/* Sampling. */

static bool larger(const float *logits, int32_t a, int32_t b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
}

static void sift_id(Run *run, int at) {
    int32_t id = run->ids[at];
    for (int child; (child = 2 * at + 1) < run->heap; at = child) {
        if (child + 1 < run->heap && larger(run->logits, run->ids[child + 1], run->ids[child])) {
            child++;
        }
        if (!larger(run->logits, run->ids[child], id)) {
            break;
        }
        run->ids[at] = run->ids[child];
    }
    run->ids[at] = id;
}

/* The token of rank `rank`, 0 the best, of the usable ones. Only as much is sorted as was asked for. */
static int32_t ranked(Run *run, int rank) {
    while (run->usable - run->heap <= rank) {
        int32_t best = run->ids[0];
        run->ids[0] = run->ids[--run->heap];
        run->ids[run->heap] = best;
        sift_id(run, 0);
    }
    return run->ids[run->usable - 1 - rank];
}

/* Weighs the tokens that top_k and top_p leave, by rank, and gives their number. */
static int cut(Run *run, float most) {
    const attn_generate_options *options = run->options;
    for (int i = run->heap / 2 - 1; i >= 0; i--) {
        sift_id(run, i);
    }
    int kept = options->top_k > 0 && options->top_k < run->usable ? options->top_k : run->usable;
    double total = 0;
    for (int i = 0; i < kept; i++) {
        int32_t token = kept < run->usable ? ranked(run, i) : run->ids[i];
        run->weights[i] = exp_double(log_ratio(run->logits[token], most) / options->temperature);
        total += run->weights[i];
    }
    if (options->top_p == 0 || options->top_p == 1) {
        return kept;
    }
    double sum = 0;
    for (int i = 0; i < kept; i++) {
        run->weights[i] = exp_double(log_ratio(run->logits[ranked(run, i)], most) / options->temperature);
        sum += run->weights[i];
        if (sum >= options->top_p * total) {
            return i + 1;
        }
    }
    return kept;
}

/* splitmix64 */
static double next_fraction(Run *run) {
    run->random += 0x9e3779b97f4a7c15;
    uint64_t z = run->random;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1p-53;
}

/* A token drawn from the logits, -1 if none can be chosen. */
static int32_t sample(Run *run) {
    const attn_generate_options *options = run->options;
    int vocab = run->model->vocab;
    int32_t best = argmax(run->logits, vocab);
    if (best < 0) {
        return -1;
    }
    run->usable = 0;
    for (int32_t token = 0; token < vocab; token++) {
        if (run->logits[token] > -INFINITY) {
            run->ids[run->usable++] = token;
        }
    }
    run->heap = run->usable;
    float most = run->logits[best];
    int kept = run->usable;
    bool by_rank = (options->top_k > 0 && options->top_k < run->usable) || (options->top_p > 0 && options->top_p < 1);
    if (by_rank) {
        kept = cut(run, most);
    } else {
        for (int i = 0; i < kept; i++) {
            run->weights[i] = exp_double(log_ratio(run->logits[run->ids[i]], most) / options->temperature);
        }
    }
    double total = 0, sum = 0;
    for (int i = 0; i < kept; i++) {
        total += run->weights[i];
    }
    double target = next_fraction(run) * total;
    int drawn = 0;
    for (int i = 0; i < kept && sum <= target; i++) { /* a weight of 0 cannot carry the sum past the target */
        sum += run->weights[i];
        drawn = i;
    }
    return by_rank ? ranked(run, drawn) : run->ids[drawn];
}

/* Greedy and sampling: one text, in slot 0. Its prompt has been fed. */
static int search_one(Run *run) {
    const attn_model *model = run->model;
    const attn_generate_options *options = run->options;
    for (;;) {
        forbid_ends(run, run->result->count, run->logits);
        int32_t token = options->temperature > 0 ? sample(run) : argmax(run->logits, model->vocab);
        if (token < 0) {
            return ATTN_GENERATE_NO_TOKEN;
        }
        int status = deliver(run, token);
        if (status != ATTN_GENERATE_OK || run->result->ended || run->result->count == options->max_new) {
            return status;
        }
        const int slot = 0;
        status = model_gave(run, model->step(model->with, 1, &slot, &token, run->logits));
        if (status != ATTN_GENERATE_OK) {
            return status;
        }
        run->result->rows++;
    }
}

/* Beam search. */

static bool better(Candidate a, Candidate b) {
    if (a.log_p != b.log_p) {
        return a.log_p > b.log_p;
    }
    return a.beam != b.beam ? a.beam < b.beam : a.token < b.token;
}

/* Puts `new` where heap[at] was, in a heap of `count` with the worst first. */
static void sift_candidate(Candidate *heap, size_t count, size_t at, Candidate new) {
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && better(heap[child], heap[child + 1])) {
            child++;
        }
        if (!better(new, heap[child])) {
            break;
        }
        heap[at] = heap[child];
    }
    heap[at] = new;
}

/* Keeps the best `room` candidates. */
static void offer(Run *run, Candidate new) {
    Candidate *heap = run->candidates;
    if (run->count == run->room) {
        if (better(new, heap[0])) {
            sift_candidate(heap, run->count, 0, new);
        }
        return;
    }
    size_t at = run->count++;
    for (; at > 0 && better(heap[(at - 1) / 2], new); at = (at - 1) / 2) {
        heap[at] = heap[(at - 1) / 2];
    }
    heap[at] = new;
}

/* The best `room` continuations of the live beams, which have `length` tokens; the best first. */
static void rank_continuations(Run *run, int length) {
    int vocab = run->model->vocab;
    run->count = 0;
    for (int beam = 0; beam < run->live; beam++) {
        float *logits = run->logits + (size_t)beam * (size_t)vocab;
        int32_t best = argmax(logits, vocab);
        if (best < 0) {
            continue;
        }
        float most = logits[best];
        double sum = 0;
        for (int32_t token = 0; token < vocab; token++) {
            if (logits[token] > -INFINITY) {
                sum += exp_double(log_ratio(logits[token], most));
            }
        }
        double log_sum = log_double(sum);
        forbid_ends(run, length, logits);
        for (int32_t token = 0; token < vocab; token++) {
            double log_p = run->log_p[beam] + (log_ratio(logits[token], most) - log_sum);
            if (logits[token] > -INFINITY && log_p > -INFINITY) {
                offer(run, (Candidate){log_p, beam, token});
            }
        }
    }
    for (size_t left = run->count; left > 1; left--) { /* as in heapsort: the worst go to the end */
        Candidate worst = run->candidates[0], last = run->candidates[left - 1];
        sift_candidate(run->candidates, left - 1, 0, last);
        run->candidates[left - 1] = worst;
    }
}

/* Chooses from the ranked candidates, as texts of `length` tokens, the new live beams and perhaps a new best finished
 * text. Only the best one is kept: no other can be the result, whatever follows. */
static void choose(Run *run, int length) {
    int beams = run->options->beams;
    Node *nodes = run->nodes + (size_t)(length - 1) * (size_t)beams;
    run->live = 0;
    for (size_t i = 0; i < run->count; i++) {
        Candidate candidate = run->candidates[i];
        bool ends = is_end(run, candidate.token);
        if (!ends) {
            if (run->live == beams) {
                continue;
            }
            /* The old log_p are all in the candidates, so their places are free. */
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

/* Whether no text that continues a live beam of `length` tokens can beat the best finished one. Exact: log_p, its sum
 * rounded, only falls, live beam 0 has the most of it, and lp only rises or only falls with the length. */
static bool is_decided(const Run *run, int length) {
    int friendliest = run->options->length_penalty >= 0 ? run->options->max_new : length + 1;
    return run->length > 0 && run->log_p[0] / run->penalty[friendliest] <= run->finished.log_p;
}

/* Gives each new live beam a slot with its parent's state: the first child of a parent stays where the parent was, and
 * each other child gets a copy in a slot that no first child holds. There are enough: of `beams` slots the first
 * children hold one each, and all children together are at most `beams`. No copy is read after its slot was
 * overwritten, since all are read from slots of first children and none is written there. */
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
            while (run->taken[free_slot]) {
                free_slot++;
            }
            int status = model_gave(run, model->copy(model->with, free_slot, run->slots[nodes[i].parent]));
            if (status != ATTN_GENERATE_OK) {
                return status;
            }
            run->new_slots[i] = free_slot++;
        }
    }
    int *old = run->slots;
    run->slots = run->new_slots;
    run->new_slots = old;
    return ATTN_GENERATE_OK;
}

/* lp of every length. Held to its direction where neighbours are closer than the error of exp and log. */
static void fill_penalty(Run *run) {
    double alpha = run->options->length_penalty;
    run->penalty[0] = exp_double(-alpha * log_double(6.0 / 5));
    for (int n = 1; n <= run->options->max_new; n++) {
        double lp = exp_double(alpha * log_double((5.0 + n) / 6)), before = run->penalty[n - 1];
        run->penalty[n] = (alpha >= 0 ? lp < before : lp > before) ? before : lp;
    }
}

static int deliver_finished(Run *run) {
    if (run->length == 0) {
        return ATTN_GENERATE_NO_TOKEN;
    }
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
    for (int i = 0; i < run->length && status == ATTN_GENERATE_OK; i++) {
        status = deliver(run, tokens[i]);
    }
    return status;
}

/* The prompt has been fed to slot 0. */
static int search_beams(Run *run) {
    const attn_model *model = run->model;
    fill_penalty(run);
    run->live = 1;
    run->log_p[0] = 0;
    run->slots[0] = 0;
    for (int length = 1;; length++) {
        rank_continuations(run, length - 1);
        choose(run, length);
        if (run->live == 0 || length == run->options->max_new || is_decided(run, length)) {
            return deliver_finished(run);
        }
        int status = place_states(run, length);
        if (status == ATTN_GENERATE_OK) {
            status = model_gave(run, model->step(model->with, run->live, run->slots, run->tokens, run->logits));
        }
        if (status != ATTN_GENERATE_OK) {
            return status;
        }
    }
}

int attn_generate(const attn_model *model, const attn_generate_options *options, const int32_t *prompt,
                  int prompt_count, attn_generated *result, void *memory, size_t bytes) {
    int status = check(model, options, prompt, prompt_count, result, memory, bytes);
    if (status != ATTN_GENERATE_OK) {
        return status;
    }
    Run run = {.model = model, .options = options, .result = result, .random = options->seed};
    run.ends = options->end_count > 0 && !options->ignore_end;
    char *base = memory;
    lay_out(&run, base + (ALIGNMENT - (uintptr_t)base % ALIGNMENT) % ALIGNMENT);
    status = model_gave(&run, model->prefill(model->with, 0, prompt, prompt_count, run.logits));
    if (status != ATTN_GENERATE_OK) {
        return status;
    }
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
