/* See attn_sample.h. */
#include "attn_sample.h"

/* Compilers vectorize the loops over blocks at -O2. On x86-64 the loops are compiled a second time for AVX2. Both
 * versions compute the same bits, since they do the same operations and add in one fixed order. */
#ifdef __GNUC__
#define INLINED static inline __attribute__((always_inline))
#else
#define INLINED static inline
#endif
#if defined(__GNUC__) && defined(__x86_64__) && !defined(__AVX2__)
#define WIDER __attribute__((target("avx2")))
#endif

enum {
    BLOCK = 256,        /* logits of one block: 1 KB, and 2 KB of exponentials */
    NUCLEUS = 256,      /* with top_p and without top_k, a sweep keeps at most so many of the best tokens, */
    LEAST_NUCLEUS = 32, /* at least so many, */
    NUCLEUS_PART = 16,  /* and between the two bounds one 16th of the vocabulary */
    MAX_HEAP = 1024,    /* for a larger top_k the whole row is sorted */
};

/* ln 2 as a sum. The first term has 32 significant bits, so its product with an exponent is exact. */
static const double LN2_HIGH = 0x1.62e42feep-1, LN2_LOW = 0x1.a39ef35793c76p-33;

/* Numbers as their bits. With memcpy in place of unions, gcc -fanalyzer sees reads of uninitialized memory. */
union Double {
    double value;
    uint64_t bits;
};
union Float {
    float value;
    uint32_t bits;
};

/* e^x for -708 <= x <= 709, with a relative error below 3e-16 when rounding is to nearest. It has no branch, table or
 * conversion to an integer, so that compilers vectorize loops that call it. */
INLINED double exp_inside(double x) {
    /* adding it leaves the integer nearest to x / ln 2 in the low bits */
    const double shift = 0x1.8p52;
    double shifted = x * 0x1.71547652b82fep+0 + shift, exponent = shifted - shift;
    double r = (x - exponent * LN2_HIGH) - exponent * LN2_LOW, square = r * r;
    /* The polynomial 1 + r + ... of degree 11 with the least relative error for |r| <= ln2 / 2, 1.2e-17, found by
     * the Remez exchange. Even and odd powers are two independent chains. */
    double odd = 0x1.ad7f7af334b32p-26, even = 0x1.28ad68b76411ap-22;
    odd = odd * square + 0x1.71df253a4315cp-19;
    even = even * square + 0x1.a0199a16ccef8p-16;
    odd = odd * square + 0x1.a01a012a69a31p-13;
    even = even * square + 0x1.6c16c18426742p-10;
    odd = odd * square + 0x1.1111111127b9cp-7;
    even = even * square + 0x1.555555555088cp-5;
    odd = odd * square + 0x1.55555555554fap-3;
    even = even * square + 0x1.000000000000ap-1;
    union Double result = {1 + (r + square * (odd * r + even))}, power = {shifted};
    result.bits += power.bits << 52;
    return result.value;
}

double attn_exp(double x) { return x < -708 ? 0 : x > 709 ? INFINITY : exp_inside(x); }

double attn_log(double x) {
    union Double scaled = {x};
    int exponent = (int)(scaled.bits >> 52) - 1023;
    scaled.bits = (scaled.bits & 0xfffffffffffff) | (uint64_t)1023 << 52;
    x = scaled.value;
    if (x > 0x1.6a09e667f3bcdp+0) {
        x /= 2;
        exponent++;
    }
    /* ln x = 2 atanh(s) = 2 (s + s^3/3 + s^5/5 + ...), |s| < 0.172: s^23/23 is below 2^-62 s */
    double f = x - 1, s = f / (2 + f), square = s * s, sum = 0;
    for (int n = 21; n >= 3; n -= 2) sum = (sum + 1.0 / n) * square;
    return exponent * LN2_HIGH + (2 * s + (2 * s * sum + exponent * LN2_LOW));
}

size_t attn_add_sizes(size_t a, size_t b) { return a > SIZE_MAX - b ? SIZE_MAX : a + b; }

size_t attn_multiply_sizes(size_t a, size_t b) { return b != 0 && a > SIZE_MAX / b ? SIZE_MAX : a * b; }

void *attn_carve(char *base, size_t *used, size_t count, size_t size) {
    void *part = base == NULL ? NULL : base + *used;
    size_t bytes = attn_add_sizes(attn_multiply_sizes(count, size), CARVED_ALIGNMENT - 1);
    *used = attn_add_sizes(*used, bytes == SIZE_MAX ? bytes : bytes / CARVED_ALIGNMENT * CARVED_ALIGNMENT);
    return part;
}

void attn_row_lay_out(LogitRow *row, char *base, size_t *used) {
    size_t vocab = (size_t)row->vocab, top_k = (size_t)row->top_k, ranks = 0;
    if (top_k > 0) {
        row->room = top_k <= MAX_HEAP ? top_k : 0;
        ranks = top_k <= MAX_HEAP ? top_k : vocab;
    } else if (row->top_p > 0) {
        size_t room = vocab / NUCLEUS_PART; /* for a small vocabulary a second pass is cheaper than a large heap */
        room = room < LEAST_NUCLEUS ? LEAST_NUCLEUS : room > NUCLEUS ? NUCLEUS : room;
        row->room = room < vocab ? room : vocab;
        ranks = vocab;
    } else if (row->min_p > 0) {
        row->room = 0;
        ranks = vocab;
    } else {
        size_t blocks = (vocab - 1) / BLOCK + 1;
        row->room = 0;
        row->mosts = attn_carve(base, used, blocks, sizeof *row->mosts);
        row->sums = attn_carve(base, used, blocks, sizeof *row->sums);
    }
    row->order = attn_carve(base, used, ranks, sizeof *row->order);
    row->weights = attn_carve(base, used, ranks, sizeof *row->weights);
}

static double weight_of(const LogitRow *row, float logit) {
    return attn_exp(attn_log_ratio(logit, row->most) * row->per);
}

/* The pass over a row, block by block. */

INLINED void halve_largest(float *parts, int half) {
    for (int i = 0; i < half; i++) parts[i] = parts[half + i] > parts[i] ? parts[half + i] : parts[i];
}

INLINED void halve_sums(double *parts, int half) {
    for (int i = 0; i < half; i++) parts[i] += parts[half + i];
}

/* The largest logit of a block; minus infinity if none can be chosen. A NaN fails every comparison, so it is never
 * the largest. */
INLINED float largest_inside(const float *block) {
    float parts[BLOCK / 2];
    for (int i = 0; i < BLOCK / 2; i++) {
        float first = block[i] > -INFINITY ? block[i] : -INFINITY, second = block[BLOCK / 2 + i];
        parts[i] = second > first ? second : first;
    }
    halve_largest(parts, 64); /* constants: gcc vectorizes only loops of known length at -O2 */
    halve_largest(parts, 32);
    halve_largest(parts, 16);
    halve_largest(parts, 8);
    halve_largest(parts, 4);
    halve_largest(parts, 2);
    return parts[1] > parts[0] ? parts[1] : parts[0];
}

/* The sum of the weights of a block, for a finite `most`; a logit that cannot be chosen weighs 0. Instead of branching,
 * the loop clamps exponents to -708 and subtracts e^-708 from every weight: that changes no weight large enough to
 * matter, and leaves exactly 0 of the others. The clamp is a loop of its own, since gcc turns it into a branch inside
 * the second loop. */
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

/* Adds the weights of a block to the sum, and rescales the sum first if the block has a larger logit. Returns the sum
 * of the block alone. */
static double add_block(LogitRow *row, const float *block, float largest) {
    if (largest > row->most) {
        row->sum *= attn_exp(attn_log_ratio(row->most, largest) * row->per);
        row->most = largest;
    }
    double part = 0;
    if (row->most == INFINITY) {
        for (int i = 0; i < BLOCK; i++) part += block[i] == INFINITY;
    } else if (largest > -INFINITY) {
        part = weigh(block, row->most, row->per);
    }
    row->sum += part;
    return part;
}

static bool better(Candidate a, Candidate b) {
    return a.log_p > b.log_p || (a.log_p == b.log_p && a.token < b.token);
}

/* Replaces heap[at] by `new`, in a heap of `count` with the worst first. */
static void sift_down(Candidate *heap, size_t count, size_t at, Candidate new) {
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && better(heap[child], heap[child + 1])) child++;
        if (!better(new, heap[child])) break;
        heap[at] = heap[child];
    }
    heap[at] = new;
}

/* Adds a candidate to the heap; when the heap is full, the worst one leaves. */
static void offer(LogitRow *row, Candidate new) {
    Candidate *heap = row->top;
    if (row->kept == row->room) {
        sift_down(heap, row->kept, 0, new);
        return;
    }
    size_t at = row->kept++;
    for (; at > 0 && better(heap[(at - 1) / 2], new); at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = new;
}

/* The bound that a logit must exceed to enter the heap. Of equal logits the first has the lowest id and stays. */
static float bar_of(const LogitRow *row) {
    return row->room == 0 ? INFINITY : row->kept < row->room ? -INFINITY : (float)row->top[0].log_p;
}

/* Most blocks hold no logit above the bar; their maximum shows it, and their tokens are not visited. */
void attn_row_sweep(LogitRow *row, const float *logits) {
    float padded[BLOCK];
    size_t vocab = (size_t)row->vocab;
    row->logits = logits;
    row->most = -INFINITY;
    row->sum = 0;
    row->kept = 0;
    for (size_t first = 0; first < vocab; first += BLOCK) {
        const float *block = logits + first;
        if (vocab - first < BLOCK) {
            for (size_t i = 0; i < BLOCK; i++) padded[i] = i < vocab - first ? block[i] : -INFINITY;
            block = padded;
        }
        float largest = largest_of(block), bar = bar_of(row);
        if (row->weighed) {
            double part = add_block(row, block, largest);
            if (row->sums != NULL) {
                row->sums[first / BLOCK] = part;
                row->mosts[first / BLOCK] = row->most;
            }
        } else if (largest > row->most) {
            row->most = largest;
        }
        for (int i = 0; largest > bar && i < BLOCK; i++) {
            if (block[i] > bar) {
                offer(row, (Candidate){(double)block[i], 0, (int32_t)(first + (size_t)i)});
                bar = bar_of(row);
            }
        }
    }
}

void attn_row_sort(LogitRow *row) {
    for (size_t left = row->kept; left > 1; left--) { /* heapsort: the worst token moves to the end */
        Candidate worst = row->top[0], last = row->top[left - 1];
        sift_down(row->top, left - 1, 0, last);
        row->top[left - 1] = worst;
    }
}

/* Sampling. */

/* The output function of splitmix64, a bijection. */
static uint64_t scrambled(uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

uint64_t attn_random_start(uint64_t seed, uint64_t sequence) {
    return seed + scrambled(sequence); /* scrambled(0) is 0, so sequence 0 starts from the seed */
}

static double next_fraction(LogitRow *row) {
    row->random += 0x9e3779b97f4a7c15;
    return (double)(scrambled(row->random) >> 11) * 0x1p-53;
}

static int32_t token_at(const LogitRow *row, size_t rank) { return (int32_t)(row->order[rank] & INT32_MAX); }

/* Sorts all tokens whose weight is at least e^least into row->order and returns their number: a radix sort by the bytes
 * of the keys. */
static size_t rank_all(LogitRow *row, double least) {
    size_t count = 0, starts[4][256] = {{0}};
    for (int32_t token = 0; token < row->vocab; token++) {
        float logit = row->logits[token] + 0.0f; /* turns -0 into +0, so that the zeros are equal */
        if (logit > -INFINITY && attn_log_ratio(logit, row->most) * row->per >= least) {
            union Float number = {logit};
            uint32_t key = number.bits;
            key ^= key >> 31 != 0 ? 0 : 0x7fffffff; /* the key rises as the logit falls */
            row->order[count++] = (uint64_t)key << 32 | (uint32_t)token;
            for (int byte = 0; byte < 4; byte++) starts[byte][key >> 8 * byte & 255]++;
        }
    }
    uint64_t *from = row->order, *to = (uint64_t *)(void *)row->weights;
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
    return count; /* after four passes the result is in `order` again */
}

/* Computes weights by rank until their sum reaches `enough`. Returns how many; `count` if rounding keeps the sum below
 * `enough`. */
static size_t weigh_ranks(LogitRow *row, size_t count, double enough, double *sum) {
    *sum = 0;
    for (size_t i = 0; i < count; i++) {
        row->weights[i] = weight_of(row, row->logits[token_at(row, i)]);
        *sum += row->weights[i];
        if (*sum >= enough) return i + 1;
    }
    return count;
}

/* Sorts the tokens that the sweep kept into row->order and returns their number. */
static size_t rank_top(LogitRow *row) {
    attn_row_sort(row);
    for (size_t i = 0; i < row->kept; i++) row->order[i] = (uint64_t)row->top[i].token;
    return row->kept;
}

/* Applies top_k and then top_p. Returns the number of tokens left; their weights are in row->weights by rank. */
static size_t cut_top_k(LogitRow *row, double *sum) {
    size_t top_k = (size_t)row->top_k, count = row->room > 0 ? rank_top(row) : rank_all(row, -INFINITY);
    count = count < top_k ? count : top_k;
    size_t left = weigh_ranks(row, count, INFINITY, sum);
    return row->top_p > 0 ? weigh_ranks(row, left, row->top_p * *sum, sum) : left;
}

/* Applies top_p without top_k. Returns the size of the nucleus; its weights are in row->weights by rank. If the sweep
 * kept fewer tokens than the nucleus has, a second pass over the row collects every token that can belong to it by
 * comparing logits. The tokens that this pass leaves out each weigh less than (1 - top_p) * total / vocab, so together
 * they weigh less than the part that the nucleus may omit. */
static size_t cut_top_p(LogitRow *row, double *sum) {
    double total = row->sum, top_p = row->top_p;
    size_t count = rank_top(row), left = weigh_ranks(row, count, top_p * total, sum);
    if (*sum >= top_p * total || count < row->room || count == (size_t)row->vocab) return left;
    const double slack = 1e-6; /* exceeds the rounding error of the total and the logarithm */
    double share = (double)row->vocab / ((1 - top_p) * total);
    count = rank_all(row, -attn_log(share > 1 ? share : 1) - slack);
    return weigh_ranks(row, count, top_p * total, sum);
}

/* Applies min_p after the other cuts to the first `count` ranks, whose weights are known; the first one weighs 1. */
static size_t cut_min_p(const LogitRow *row, size_t count, double *sum) {
    size_t left = count;
    while (left > 1 && row->weights[left - 1] < row->min_p) left--;
    if (left == count) return count;
    *sum = 0;
    for (size_t i = 0; i < left; i++) *sum += row->weights[i];
    return left;
}

/* Collects the tokens that min_p alone can leave, and some that are close to its bound. */
static size_t rank_min_p(LogitRow *row, double *sum) {
    const double slack = 1e-6; /* exceeds the rounding error of the logarithm */
    return weigh_ranks(row, rank_all(row, -attn_log(1 / row->min_p) - slack), INFINITY, sum);
}

/* Draws from all tokens: the sums of the blocks select a block, then the weights within that block select a token. */
static int32_t draw_from_all(LogitRow *row) {
    size_t vocab = (size_t)row->vocab, blocks = (vocab - 1) / BLOCK + 1;
    double total = 0, sum = 0;
    for (size_t b = 0; b < blocks; b++) {
        row->sums[b] *= attn_exp(attn_log_ratio(row->mosts[b], row->most) * row->per);
        total += row->sums[b];
    }
    double target = next_fraction(row) * total;
    int32_t drawn = -1;
    for (size_t b = 0; b < blocks && drawn < 0; b++) {
        double within = sum;
        sum += row->sums[b];
        if (sum <= target) continue;
        size_t first = b * BLOCK, end = vocab - first < BLOCK ? vocab : first + BLOCK;
        for (size_t i = first; i < end && within <= target; i++) {
            double weight = row->logits[i] > -INFINITY ? weight_of(row, row->logits[i]) : 0;
            drawn = weight > 0 ? (int32_t)i : drawn; /* the last token, if rounding keeps the sum below the target */
            within += weight;
        }
    }
    return drawn;
}

int32_t attn_row_draw(LogitRow *row, const float *logits) {
    attn_row_sweep(row, logits);
    if (row->most == -INFINITY) return -1;
    if (row->sums != NULL) return draw_from_all(row);
    double total, sum = 0;
    size_t drawn = 0, count = row->top_k > 0   ? cut_top_k(row, &total)
                              : row->top_p > 0 ? cut_top_p(row, &total)
                                               : rank_min_p(row, &total);
    if (row->min_p > 0) count = cut_min_p(row, count, &total);
    double target = next_fraction(row) * total;
    for (size_t i = 0; i < count && sum <= target; i++) { /* a weight of 0 is never the one that passes the target */
        sum += row->weights[i];
        drawn = i;
    }
    return token_at(row, drawn);
}
