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

/* Loops over blocks are plain C that compilers vectorize at -O2; on x86-64 they are compiled a second time for wider
 * vectors. The bits are the same: each operation is, and sums are added in one fixed order. */
#ifdef __GNUC__
#define INLINED static inline __attribute__((always_inline))
#else
#define INLINED static inline
#endif
#if defined(__GNUC__) && defined(__x86_64__) && !defined(__AVX2__)
#define WIDER __attribute__((target("avx2")))
#endif

enum {
    ALIGNMENT = 64,
    MAX_LENGTH_PENALTY = 16,
    BLOCK = 256,        /* logits that are looked at together: 1 KB, and 2 KB of their exponentials */
    NUCLEUS = 256,      /* where top_p alone cuts, at most so many of the most probable tokens are kept, */
    LEAST_NUCLEUS = 32, /* at least so many, */
    NUCLEUS_PART = 16,  /* and in between a 16th of the vocabulary */
    MAX_HEAP = 1024,    /* a larger top_k is cut from a sorted row */
};

/* ln 2 in two parts; the first has 32 bits, so that its product with an exponent is exact. */
static const double LN2_HIGH = 0x1.62e42feep-1, LN2_LOW = 0x1.a39ef35793c76p-33;

/* e^x for -708 <= x <= 709 with a relative error below 3e-16; rounding must be to nearest. No branch, no table, no
 * conversion to an integer, so that a loop of it is vectorized. */
INLINED double exp_inside(double x) {
    /* added, it leaves the integer nearest to x / ln 2 in the low bits */
    const double shift = 0x1.8p52;
    double shifted = x * 0x1.71547652b82fep+0 + shift, exponent = shifted - shift;
    double r = (x - exponent * LN2_HIGH) - exponent * LN2_LOW, square = r * r;
    /* The polynomial 1 + r + ... of degree 11 with the least relative error at |r| <= ln2 / 2, 1.2e-17, found by
     * Remez's exchange; two chains, half as long. */
    double odd = 0x1.ad7f7af334b32p-26, even = 0x1.28ad68b76411ap-22;
    odd = odd * square + 0x1.71df253a4315cp-19;
    even = even * square + 0x1.a0199a16ccef8p-16;
    odd = odd * square + 0x1.a01a012a69a31p-13;
    even = even * square + 0x1.6c16c18426742p-10;
    odd = odd * square + 0x1.1111111127b9cp-7;
    even = even * square + 0x1.555555555088cp-5;
    odd = odd * square + 0x1.55555555554fap-3;
    even = even * square + 0x1.000000000000ap-1;
    double result = 1 + (r + square * (odd * r + even));
    uint64_t bits, power;
    memcpy(&bits, &result, sizeof bits);
    memcpy(&power, &shifted, sizeof power);
    bits += power << 52;
    memcpy(&result, &bits, sizeof result);
    return result;
}

/* e^x. Below -708 it is 0: there the result would soon be a denormal. */
static double exp_double(double x) { return x < -708 ? 0 : x > 709 ? INFINITY : exp_inside(x); }

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
    for (int n = 21; n >= 3; n -= 2) sum = (sum + 1.0 / n) * square;
    return exponent * LN2_HIGH + (2 * s + (2 * s * sum + exponent * LN2_LOW));
}

/* A continuation of live beam `beam` by `token`; log_p is that of the whole text then. In a sweep it is the logit. */
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

    /* the sweep over a row of logits, up to some block */
    bool weighed;   /* the sum is wanted */
    double per;     /* 1 / temperature; 1 without sampling */
    float most;     /* the largest logit, minus infinity if none can be chosen */
    double sum;     /* of weights, e^((logit - most) * per) */
    Candidate *top; /* [room] the best of the row: a heap, the worst first; sorted by sort_top */
    size_t kept, room;

    /* sampling */
    uint64_t random;
    float *mosts;    /* [blocks] as `most` after each block, where nothing cuts */
    double *sums;    /* [blocks] the block's own sum at that most */
    uint64_t *order; /* [ranks] tokens by rank: the key of the logit in the high half, which ascends, then the id */
    double *weights; /* [ranks] by rank; before that the other half of the sort */

    /* beam search; the live beams are ordered, the best first */
    int live;
    double *log_p;          /* [beams] of the live ones */
    int *slots, *new_slots; /* [beams] where their states are */
    int32_t *tokens;        /* [beams] their last tokens */
    unsigned char *taken;   /* [beams] slots that hold the state of a new live beam */
    Node *nodes;            /* [max_new][beams] by number of tokens - 1 */
    double *penalty;        /* [max_new + 1] lp by number of tokens */
    Candidate *candidates;  /* [choices] the best of the rows so far, the best first */
    Candidate *merged;      /* [choices] */
    size_t count, choices;
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

/* How sampling cuts. */
static bool has_top_k(const Run *run) { return run->options->top_k > 0 && run->options->top_k < run->model->vocab; }

static bool has_top_p(const Run *run) { return run->options->top_p > 0 && run->options->top_p < 1; }

static void lay_out_sampling(Run *run, char *base, size_t *used) {
    size_t vocab = (size_t)run->model->vocab, top_k = (size_t)run->options->top_k, ranks = 0;
    if (has_top_k(run)) {
        run->room = top_k <= MAX_HEAP ? top_k : 0;
        ranks = top_k <= MAX_HEAP ? top_k : vocab;
    } else if (has_top_p(run)) {
        size_t room = vocab / NUCLEUS_PART; /* few of few: keeping many takes longer than the second pass they save */
        room = room < LEAST_NUCLEUS ? LEAST_NUCLEUS : room > NUCLEUS ? NUCLEUS : room;
        run->room = room < vocab ? room : vocab;
        ranks = vocab;
    } else {
        size_t blocks = (vocab - 1) / BLOCK + 1;
        run->room = 0;
        run->mosts = carve(base, used, blocks, sizeof *run->mosts);
        run->sums = carve(base, used, blocks, sizeof *run->sums);
    }
    run->order = carve(base, used, ranks, sizeof *run->order);
    run->weights = carve(base, used, ranks, sizeof *run->weights);
}

/* Lays the arrays of `run` out from `base`, which is aligned or NULL. Returns their bytes. */
static size_t lay_out(Run *run, char *base) {
    const attn_generate_options *options = run->options;
    size_t used = 0, vocab = (size_t)run->model->vocab, beams = (size_t)beams_of(options);
    run->logits = carve(base, &used, multiply_sizes(beams, vocab), sizeof *run->logits);
    run->room = 1;
    if (beams == 1) {
        if (options->temperature > 0) lay_out_sampling(run, base, &used);
        run->top = carve(base, &used, run->room, sizeof *run->top);
        return used;
    }
    size_t max_new = (size_t)options->max_new;
    /* As many as `beams` beams can end in, and `beams` more, so that ends cannot starve what goes on. */
    run->choices = multiply_sizes(beams, (size_t)options->end_count + 1);
    run->room = run->choices < vocab ? run->choices : vocab;
    run->top = carve(base, &used, run->room, sizeof *run->top);
    run->log_p = carve(base, &used, beams, sizeof *run->log_p);
    run->slots = carve(base, &used, beams, sizeof *run->slots);
    run->new_slots = carve(base, &used, beams, sizeof *run->new_slots);
    run->tokens = carve(base, &used, beams, sizeof *run->tokens);
    run->taken = carve(base, &used, beams, sizeof *run->taken);
    run->nodes = carve(base, &used, multiply_sizes(max_new, beams), sizeof *run->nodes);
    run->penalty = carve(base, &used, max_new + 1, sizeof *run->penalty);
    run->candidates = carve(base, &used, run->choices, sizeof *run->candidates);
    run->merged = carve(base, &used, run->choices, sizeof *run->merged);
    return used;
}

static int check_options(const attn_generate_options *options) {
    double temperature = options->temperature, top_p = options->top_p, alpha = options->length_penalty;
    /* Written so that NaN fails. */
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

/* Copies the options; fields that the first version of the struct lacks are 0. False: no version has that size. */
static bool take_options(const attn_generate_options *given, attn_generate_options *options) {
    const size_t first_version = offsetof(attn_generate_options, sequence);
    if (given == NULL || (given->size != sizeof *given && given->size != first_version)) return false;
    memset(options, 0, sizeof *options);
    memcpy(options, given, given->size);
    return true;
}

/* What can be said of model and options without a prompt. */
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
    return add_sizes(lay_out(&run, NULL), ALIGNMENT - 1);
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

/* Notes what a callback of the model gave back. */
static int model_gave(Run *run, int status) {
    run->result->model_status = status;
    return status == 0 ? ATTN_GENERATE_OK : ATTN_GENERATE_MODEL;
}

static bool is_end(const Run *run, int32_t token) {
    for (int i = 0; run->ends && i < run->options->end_count; i++)
        if (run->options->end[i] == token) return true;
    return false;
}

/* Takes the end tokens out of a row of logits where a text of `count` tokens may not end yet. */
static void forbid_ends(const Run *run, int count, float *logits) {
    if (run->ends && count < run->options->min_new) {
        for (int i = 0; i < run->options->end_count; i++) logits[run->options->end[i]] = -INFINITY;
    }
}

/* Hands a token that is certain to the caller. OK: go on. */
static int deliver(Run *run, int32_t token) {
    attn_generated *result = run->result;
    const attn_generate_options *options = run->options;
    result->tokens[result->count++] = token;
    result->ended = is_end(run, token);
    if (options->on_token != NULL && options->on_token(options->on_token_with, token) != 0)
        return ATTN_GENERATE_STOPPED;
    return ATTN_GENERATE_OK;
}

/* ln of a token's probability as a part of the largest one's: at most 0, also where both are plus infinity. */
static double log_ratio(float logit, float most) { return logit == most ? 0 : (double)logit - (double)most; }

static double weight_of(const Run *run, float logit) { return exp_double(log_ratio(logit, run->most) * run->per); }

/* A row of logits by blocks. */

INLINED void halve_largest(float *parts, int half) {
    for (int i = 0; i < half; i++) parts[i] = parts[half + i] > parts[i] ? parts[half + i] : parts[i];
}

INLINED void halve_sums(double *parts, int half) {
    for (int i = 0; i < half; i++) parts[i] += parts[half + i];
}

/* The largest logit of a block; minus infinity if none can be chosen. NaN fails every comparison. */
INLINED float largest_inside(const float *block) {
    float parts[BLOCK / 2];
    for (int i = 0; i < BLOCK / 2; i++) {
        float first = block[i] > -INFINITY ? block[i] : -INFINITY, second = block[BLOCK / 2 + i];
        parts[i] = second > first ? second : first;
    }
    halve_largest(parts, 64); /* constants, since only loops of a known length are vectorized at gcc's -O2 */
    halve_largest(parts, 32);
    halve_largest(parts, 16);
    halve_largest(parts, 8);
    halve_largest(parts, 4);
    halve_largest(parts, 2);
    return parts[1] > parts[0] ? parts[1] : parts[0];
}

/* The sum of the weights of a block, for a finite `most`; 0 each for what cannot be chosen. Instead of a branch e^-708
 * is taken from each: of one that counts that changes nothing, and it leaves 0 of the others. Two loops, since gcc
 * makes a branch of a bound inside of the second. */
INLINED double weigh_inside(const float *block, double most, double per) {
    double parts[BLOCK];
    const double least = exp_inside(-708);
    for (int i = 0; i < BLOCK; i++) {
        double x = ((double)block[i] - most) * per;
        parts[i] = x > -708 ? x : -708;
    }
    for (int i = 0; i < BLOCK; i++) parts[i] = exp_inside(parts[i]) - least;
    halve_sums(parts, 128);
    halve_sums(parts, 64);
    halve_sums(parts, 32);
    halve_sums(parts, 16);
    halve_sums(parts, 8);
    halve_sums(parts, 4);
    return (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

#ifdef WIDER
WIDER static float largest_wider(const float *block) { return largest_inside(block); }

WIDER static double weigh_wider(const float *block, double most, double per) { return weigh_inside(block, most, per); }
#endif

static float largest_of(const float *block) {
#ifdef WIDER
    if (__builtin_cpu_supports("avx2")) return largest_wider(block);
#endif
    return largest_inside(block);
}

static double weigh(const float *block, double most, double per) {
#ifdef WIDER
    if (__builtin_cpu_supports("avx2")) return weigh_wider(block, most, per);
#endif
    return weigh_inside(block, most, per);
}

/* Adds a block to the sum, which is rescaled where the block has a larger logit. Returns the block's own part. */
static double add_block(Run *run, const float *block, float largest) {
    if (largest > run->most) {
        run->sum *= exp_double(log_ratio(run->most, largest) * run->per);
        run->most = largest;
    }
    double part = 0;
    if (run->most == INFINITY) {
        for (int i = 0; i < BLOCK; i++) part += block[i] == INFINITY;
    } else if (largest > -INFINITY) {
        part = weigh(block, run->most, run->per);
    }
    run->sum += part;
    return part;
}

static bool better(Candidate a, Candidate b) {
    return a.log_p > b.log_p || (a.log_p == b.log_p && a.token < b.token);
}

/* Puts `new` where heap[at] was, in a heap of `count` with the worst first. */
static void sift_down(Candidate *heap, size_t count, size_t at, Candidate new) {
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && better(heap[child], heap[child + 1])) child++;
        if (!better(new, heap[child])) break;
        heap[at] = heap[child];
    }
    heap[at] = new;
}

/* Keeps the best `room` of the row. */
static void offer(Run *run, Candidate new) {
    Candidate *heap = run->top;
    if (run->kept == run->room) {
        sift_down(heap, run->kept, 0, new);
        return;
    }
    size_t at = run->kept++;
    for (; at > 0 && better(heap[(at - 1) / 2], new); at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = new;
}

/* What a logit must exceed to be kept; of equal ones the earlier have the lower ids and stay. */
static float bar_of(const Run *run) {
    return run->room == 0 ? INFINITY : run->kept < run->room ? -INFINITY : (float)run->top[0].log_p;
}

/* The one pass over a row, [vocab]: its largest logit, the best `room`, and the sum where it is weighed. Most blocks
 * have nothing above the bar, and are not looked at token by token. */
static void sweep(Run *run, const float *logits) {
    float padded[BLOCK];
    size_t vocab = (size_t)run->model->vocab;
    run->most = -INFINITY;
    run->sum = 0;
    run->kept = 0;
    for (size_t first = 0; first < vocab; first += BLOCK) {
        const float *block = logits + first;
        if (vocab - first < BLOCK) {
            for (size_t i = 0; i < BLOCK; i++) padded[i] = i < vocab - first ? block[i] : -INFINITY;
            block = padded;
        }
        float largest = largest_of(block), bar = bar_of(run);
        if (run->weighed) {
            double part = add_block(run, block, largest);
            if (run->sums != NULL) {
                run->sums[first / BLOCK] = part;
                run->mosts[first / BLOCK] = run->most;
            }
        } else if (largest > run->most) {
            run->most = largest;
        }
        for (int i = 0; largest > bar && i < BLOCK; i++) {
            if (block[i] > bar) {
                offer(run, (Candidate){(double)block[i], 0, (int32_t)(first + (size_t)i)});
                bar = bar_of(run);
            }
        }
    }
}

/* Sorts what a sweep kept, the best first. */
static void sort_top(Run *run) {
    for (size_t left = run->kept; left > 1; left--) { /* as in heapsort: the worst go to the end */
        Candidate worst = run->top[0], last = run->top[left - 1];
        sift_down(run->top, left - 1, 0, last);
        run->top[left - 1] = worst;
    }
}

/* The token of the largest logit, -1 if none can be chosen. */
static int32_t largest(Run *run) {
    sweep(run, run->logits);
    return run->kept > 0 ? run->top[0].token : -1;
}

/* Sampling. */

/* splitmix64's output function, a bijection. */
static uint64_t scrambled(uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static double next_fraction(Run *run) {
    run->random += 0x9e3779b97f4a7c15;
    return (double)(scrambled(run->random) >> 11) * 0x1p-53;
}

static int32_t token_at(const Run *run, size_t rank) { return (int32_t)(run->order[rank] & INT32_MAX); }

/* Ranks all tokens whose weight is e^least or more: their number. A radix sort, by bytes of the keys. */
static size_t rank_all(Run *run, double least) {
    size_t count = 0, starts[4][256] = {{0}};
    for (int32_t token = 0; token < run->model->vocab; token++) {
        float logit = run->logits[token] + 0.0f; /* the zeros are equal */
        if (logit > -INFINITY && log_ratio(logit, run->most) * run->per >= least) {
            uint32_t key;
            memcpy(&key, &logit, sizeof key);
            key ^= key >> 31 != 0 ? 0 : 0x7fffffff; /* ascends where the logit falls */
            run->order[count++] = (uint64_t)key << 32 | (uint32_t)token;
            for (int byte = 0; byte < 4; byte++) starts[byte][key >> 8 * byte & 255]++;
        }
    }
    uint64_t *from = run->order, *to = (uint64_t *)(void *)run->weights;
    for (int byte = 0; byte < 4; byte++) {
        size_t start = 0;
        for (int digit = 0; digit < 256; digit++) {
            size_t here = starts[byte][digit];
            starts[byte][digit] = start;
            start += here;
        }
        for (size_t i = 0; i < count; i++) to[starts[byte][from[i] >> (32 + 8 * byte) & 255]++] = from[i];
        uint64_t *swapped = from;
        from = to;
        to = swapped;
    }
    return count; /* after four turns they are in `order` */
}

/* Weighs by rank until the sum is `enough`. Gives the number of tokens; all `count` where rounding keeps it below. */
static size_t weigh_ranks(Run *run, size_t count, double enough, double *sum) {
    *sum = 0;
    for (size_t i = 0; i < count; i++) {
        run->weights[i] = weight_of(run, run->logits[token_at(run, i)]);
        *sum += run->weights[i];
        if (*sum >= enough) return i + 1;
    }
    return count;
}

/* The ranks of what a sweep kept. */
static size_t rank_top(Run *run) {
    sort_top(run);
    for (size_t i = 0; i < run->kept; i++) run->order[i] = (uint64_t)run->top[i].token;
    return run->kept;
}

/* The tokens that top_k leaves and then those that top_p does, weighed by rank: their number. */
static size_t cut_top_k(Run *run, double *sum) {
    size_t top_k = (size_t)run->options->top_k, count = run->room > 0 ? rank_top(run) : rank_all(run, -INFINITY);
    count = count < top_k ? count : top_k;
    size_t left = weigh_ranks(run, count, INFINITY, sum);
    return has_top_p(run) ? weigh_ranks(run, left, run->options->top_p * *sum, sum) : left;
}

/* The nucleus where top_p alone cuts, weighed by rank: its number. If it is larger than what the sweep kept, a second
 * pass over the row takes the tokens of which it can consist, comparing alone: those that it leaves out, each with less
 * than a vocab-th part of the weight beyond top_p, do not have that weight together. */
static size_t cut_top_p(Run *run, double *sum) {
    double total = run->sum, top_p = run->options->top_p;
    size_t count = rank_top(run), left = weigh_ranks(run, count, top_p * total, sum);
    if (*sum >= top_p * total || count < run->room || count == (size_t)run->model->vocab) return left;
    const double slack = 1e-6; /* more than the error of total and logarithm */
    double share = (double)run->model->vocab / ((1 - top_p) * total);
    count = rank_all(run, -log_double(share > 1 ? share : 1) - slack);
    return weigh_ranks(run, count, top_p * total, sum);
}

/* A token drawn where nothing cuts: first the block by the sums of the sweep, then the token, weighing that block. */
static int32_t draw_from_all(Run *run) {
    size_t vocab = (size_t)run->model->vocab, blocks = (vocab - 1) / BLOCK + 1;
    double total = 0, sum = 0;
    for (size_t b = 0; b < blocks; b++) {
        run->sums[b] *= exp_double(log_ratio(run->mosts[b], run->most) * run->per);
        total += run->sums[b];
    }
    double target = next_fraction(run) * total;
    int32_t drawn = -1;
    for (size_t b = 0; b < blocks && drawn < 0; b++) {
        double within = sum;
        sum += run->sums[b];
        if (sum <= target) continue;
        size_t first = b * BLOCK, end = vocab - first < BLOCK ? vocab : first + BLOCK;
        for (size_t i = first; i < end && within <= target; i++) {
            double weight = run->logits[i] > -INFINITY ? weight_of(run, run->logits[i]) : 0;
            drawn = weight > 0 ? (int32_t)i : drawn; /* the last one, should rounding keep the sum below the target */
            within += weight;
        }
    }
    return drawn;
}

/* A token drawn from the logits, -1 if none can be chosen. */
static int32_t sample(Run *run) {
    sweep(run, run->logits);
    if (run->most == -INFINITY) return -1;
    if (run->sums != NULL) return draw_from_all(run);
    double total, sum = 0;
    size_t count = has_top_k(run) ? cut_top_k(run, &total) : cut_top_p(run, &total), drawn = 0;
    double target = next_fraction(run) * total;
    for (size_t i = 0; i < count && sum <= target; i++) { /* a weight of 0 cannot carry the sum past the target */
        sum += run->weights[i];
        drawn = i;
    }
    return token_at(run, drawn);
}

/* Greedy and sampling: one text, in slot 0. Its prompt has been fed. */
static int search_one(Run *run) {
    const attn_model *model = run->model;
    const attn_generate_options *options = run->options;
    for (;;) {
        forbid_ends(run, run->result->count, run->logits);
        int32_t token = options->temperature > 0 ? sample(run) : largest(run);
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

/* Merges the first `count` of `top` into the best candidates; both are sorted, and of equals those of earlier beams go
 * first. */
static void merge(Run *run, size_t count) {
    size_t old = 0, new = 0, merged = 0;
    while (merged < run->choices && (old < run->count || new < count)) {
        bool from_old = new == count || (old < run->count && run->candidates[old].log_p >= run->top[new].log_p);
        run->merged[merged++] = from_old ? run->candidates[old++] : run->top[new++];
    }
    Candidate *swapped = run->candidates;
    run->candidates = run->merged;
    run->merged = swapped;
    run->count = merged;
}

/* The best `choices` continuations of the live beams, which have `length` tokens; the best first. Tokens of one beam
 * are ranked by their logits, which can tell apart what is equal once it is added to the log_p of the beam. End tokens
 * that are forbidden have their part of the probability and may crowd others out of `top`, but not the best `beams`. */
static void rank_continuations(Run *run, int length) {
    bool forbidden = run->ends && length < run->options->min_new;
    run->count = 0;
    for (int beam = 0; beam < run->live; beam++) {
        sweep(run, run->logits + (size_t)beam * (size_t)run->model->vocab);
        if (run->kept == 0) continue;
        double log_sum = log_double(run->sum);
        size_t count = 0;
        sort_top(run);
        for (size_t i = 0; i < run->kept; i++) {
            int32_t token = run->top[i].token;
            double ratio = log_ratio((float)run->top[i].log_p, run->most);
            double log_p = run->log_p[beam] + (ratio - log_sum);
            if (log_p > -INFINITY && !(forbidden && is_end(run, token))) {
                run->top[count++] = (Candidate){log_p, beam, token};
            }
        }
        merge(run, count);
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
            if (run->live == beams) continue;
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

/* lp of every length. Held to its direction where neighbours are closer than the error of exp and log. */
static void fill_penalty(Run *run) {
    double alpha = run->options->length_penalty;
    bool power = run->options->length_form == ATTN_GENERATE_POWER;
    run->penalty[0] = 1; /* as that of one token in either form */
    for (int n = 1; n <= run->options->max_new; n++) {
        double lp = exp_double(alpha * log_double(power ? n : (5.0 + n) / 6)), before = run->penalty[n - 1];
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
    run.random = options->seed + scrambled(options->sequence); /* of 0 that is 0: the seed alone */
    run.ends = options->end_count > 0 && !options->ignore_end;
    run.weighed = beams_of(options) > 1 || (options->temperature > 0 && !has_top_k(&run));
    /* So that it is finite: the nearest unequal floats still differ in their weights by more than e^708 then. */
    run.per = options->temperature > 0 ? 1 / (options->temperature > 1e-300 ? options->temperature : 1e-300) : 1;
    char *base = memory;
    lay_out(&run, base + (ALIGNMENT - (uintptr_t)base % ALIGNMENT) % ALIGNMENT);
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
