/* scales.c: chooses the scale, and perhaps the offset, with which integers come nearest to weights, by least squares.
 *
 * A scale of a row has 16 significant bits, and one of a group 8, or 11 where it is an f16, so that an f32 holds each
 * of its products exactly. */
#include "../attnc.h"
#include "../formats/half.h"

#include <math.h>

enum { ROW_BITS = 16, GROUP_BITS = 8 };

/* The smallest and the largest number of f16. */
#define LEAST_HALF 0x1p-24
#define MOST_HALF 65504.0

/* The products of a smaller scale may be subnormal, and those of a larger one infinite. */
#define LEAST_SCALE 0x1p-122 /* a sixteenth of it is normal */
#define MOST_SCALE 0x1p+120

static double rounded(double x, int bits) {
    int exponent;
    double fraction = frexp(x, &exponent);
    return ldexp(nearbyint(ldexp(fraction, bits)), exponent - bits);
}

/* The nearest scale, with the sign of x. */
static double to_scale(double x, int bits) {
    double size = fabs(x);
    if (!(size > LEAST_SCALE)) size = LEAST_SCALE;
    else if (size >= MOST_SCALE) size = MOST_SCALE;
    return copysign(rounded(size, bits), x);
}

static double to_half(double x) {
    const double size = fmin(fmax(fabs(x), LEAST_HALF), MOST_HALF);
    return copysign((double)float_of_half(half_of_float((float)size)), x);
}

/* The nearest scale of a group. */
static double group_scale(const Grid *grid, double x) { return grid->halves ? to_half(x) : to_scale(x, GROUP_BITS); }

static double to_offset(const Grid *grid, double x) {
    if (grid->halves) return fabs(x) < LEAST_HALF ? 0 : to_half(x);
    return fabs(x) < LEAST_SCALE ? 0 : fabs(x) >= MOST_SCALE * 8 ? copysign(MOST_SCALE * 8, x) : rounded(x, GROUP_BITS);
}

/* Rounds to the nearest integer, ties to even, for |x| < 2^51: a double as large as the sum has no bits for fractions.
 * The function replaces nearbyint, which baseline x86-64 calls in the C library and which would dominate packing. */
static inline double nearest(double x) {
    const double no_fractions = 0x1.8p52;
    return x + no_fractions - no_fractions;
}

static inline double to_integer(const Grid *grid, double x) {
    double q = (x - grid->offset) / grid->scale;
    q = q > grid->most ? grid->most : q;
    return nearest(q < grid->least ? grid->least : q);
}

static float number_of(const Grid *grid, double integer) { return (float)(grid->scale * integer + grid->offset); }

void grid_round(const Grid *grid, const float *numbers, int64_t K, int8_t *out) {
    for (int64_t k = 0; k < K; k++)
        out[k] = (int8_t)(grid->scale != 0 ? to_integer(grid, (double)numbers[k]) : 0);
}

static bool is_exact(const Grid *grid, const float *numbers, int64_t K) {
    int64_t k = 0;
    while (k < K && numbers[k] == number_of(grid, to_integer(grid, (double)numbers[k]))) k++;
    return k == K;
}

/* Weighted sums over the numbers of a group, each of which has the weight of its column: n is the sum of the weights,
 * error that of the squared errors; the others are sums of the integer q, x = number - offset, q^2 and q x. */
typedef struct Fit {
    double n, error, q, x, qq, qx;
} Fit;

/* Two numbers that compilers keep in a vector. */
typedef double Pair __attribute__((vector_size(2 * sizeof(double))));
typedef int64_t PairMask __attribute__((vector_size(2 * sizeof(int64_t))));

static inline Pair pair_of(double x) { return (Pair){x, x}; }

static inline Pair chosen_of(PairMask mask, Pair a, Pair b) {
    return (Pair)((mask & (PairMask)a) | (~mask & (PairMask)b));
}

/* Does for two numbers what to_integer does for one. */
static inline Pair to_integers(const Grid *grid, Pair x) {
    const Pair most = pair_of(grid->most), least = pair_of(grid->least), no_fractions = pair_of(0x1.8p52);
    Pair q = (x - pair_of(grid->offset)) / pair_of(grid->scale);
    q = chosen_of(q > most, most, q);
    q = chosen_of(q < least, least, q);
    return q + no_fractions - no_fractions;
}

typedef struct PairFit {
    Pair n, error, q, x, qq, qx;
} PairFit;

static inline void add_to_fit(PairFit *fit, const Grid *grid, Pair number, Pair weight) {
    const Pair q = to_integers(grid, number), x = number - pair_of(grid->offset);
    const Pair error = x - pair_of(grid->scale) * q, weighed = weight * q;
    fit->n += weight;
    fit->error += weight * (error * error);
    fit->q += weighed, fit->x += weight * x;
    fit->qq += weighed * q, fit->qx += weighed * x;
}

static double sum_of(Pair a, Pair b) { return a[0] + a[1] + b[0] + b[1]; }

/* Numbers beyond K have the weight 0. A scale below those of to_scale would make all of a group 0: the square of an
 * error must not vanish either. */
static Fit fit_of(const Grid *grid, const float *numbers, const float *squares, int64_t K) {
    static const float ones[] = {1, 1, 1, 1};
    const Grid own = *grid;
    PairFit a = {.n = {0}}, b = a;
    int64_t k = 0;
    for (; k + 4 <= K; k += 4) {
        const float *x = numbers + k, *w = squares ? squares + k : ones;
        add_to_fit(&a, &own, (Pair){(double)x[0], (double)x[1]}, (Pair){(double)w[0], (double)w[1]});
        add_to_fit(&b, &own, (Pair){(double)x[2], (double)x[3]}, (Pair){(double)w[2], (double)w[3]});
    }
    if (k < K) {
        double x[4] = {0}, weights[4] = {0};
        for (int l = 0; l < 4 && l < K - k; l++) {
            x[l] = (double)numbers[k + l];
            weights[l] = squares ? (double)squares[k + l] : 1;
        }
        add_to_fit(&a, &own, (Pair){x[0], x[1]}, (Pair){weights[0], weights[1]});
        add_to_fit(&b, &own, (Pair){x[2], x[3]}, (Pair){weights[2], weights[3]});
    }
    return (Fit){sum_of(a.n, b.n), sum_of(a.error, b.error), sum_of(a.q, b.q),
                 sum_of(a.x, b.x), sum_of(a.qq, b.qq),       sum_of(a.qx, b.qx)};
}

typedef struct Search {
    const float *numbers, *squares;
    int64_t K;
    Grid best;
    double error;
} Search;

static Fit consider(Search *s, Grid grid) {
    const Fit fit = fit_of(&grid, s->numbers, s->squares, s->K);
    if (fit.error < s->error) s->error = fit.error, s->best = grid;
    return fit;
}

/* Considers a grid without an offset, and one with the scale of least squared error for the integers of the first. */
static void consider_scale(Search *s, Grid grid, double scale, bool of_group) {
    grid.scale = of_group ? group_scale(&grid, scale) : to_scale(scale, ROW_BITS);
    const Fit fit = consider(s, grid);
    if (fit.qq == 0) return;
    const double best = fit.qx / fit.qq;
    grid.scale = of_group ? group_scale(&grid, best) : to_scale(best, ROW_BITS);
    consider(s, grid);
}

/* Fits a line to the points (integer, number) of `grid` by least squares; `fit` has their sums. Returns the grid whose
 * scale is the slope and whose offset is the intercept. The offset is computed after the scale is rounded. */
static Grid with_better_line(Grid grid, Fit fit) {
    const double spread = fit.n * fit.qq - fit.q * fit.q;
    if (spread > 0) grid.scale = group_scale(&grid, (fit.n * fit.qx - fit.q * fit.x) / spread);
    grid.offset = to_offset(&grid, grid.offset + (fit.x - grid.scale * fit.q) / fit.n);
    return grid;
}

/* ---------------------------------------------------------------- without an offset */

static double largest_of(const float *numbers, int64_t K) {
    double most = 0;
    for (int64_t k = 0; k < K; k++)
        if (fabs((double)numbers[k]) > fabs(most)) most = (double)numbers[k];
    return most;
}

double int8_scale(const float *numbers, int64_t K) {
    /* The largest number becomes 127, or lies up to a fifth beyond and is cut, for which the others are finer. */
    static const double largest_becomes[] = {127, 129, 132, 136, 141, 147, 153};
    const double most = fabs(largest_of(numbers, K));
    Grid grid = {.least = -127, .most = 127};
    if (most == 0) return 0;
    /* Numbers that int8 has rounded before are kept. */
    for (int q = 127; q > 0; q--) {
        grid.scale = to_scale(most / q, ROW_BITS);
        if (is_exact(&grid, numbers, K)) return grid.scale;
    }
    Search search = {numbers, NULL, K, grid, INFINITY};
    for (size_t i = 0; i < sizeof largest_becomes / sizeof *largest_becomes; i++)
        consider_scale(&search, grid, most / largest_becomes[i], false);
    return search.best.scale;
}

/* The number of largest magnitude becomes the integer of largest magnitude, which the sign of the scale decides, or
 * lies beyond it or below it. */
static Grid symmetric_grid(Grid grid, const float *numbers, const float *squares, int64_t K) {
    enum { STRETCHES = 12 }; /* of the integer that the largest number becomes, from 0.78 on */
    const double most = largest_of(numbers, K);
    grid.scale = 0;
    if (most == 0) return grid;
    for (int q = grid.most; q >= grid.least; q--) {
        if (q == 0) continue;
        grid.scale = group_scale(&grid, most / q);
        if (is_exact(&grid, numbers, K)) return grid;
    }
    const int ends[] = {grid.least, grid.most};
    Search search = {numbers, squares, K, grid, INFINITY};
    for (int e = 0; e < (grid.least == -grid.most ? 1 : 2); e++)
        for (int i = 0; i < STRETCHES; i++)
            consider_scale(&search, grid, most / (ends[e] * (0.78 + 0.045 * i)), true);
    return search.best;
}

/* ---------------------------------------------------------------- with an offset */

/* Returns whether each number is `low` plus a multiple of (high - low) / steps, up to its rounding to f32. */
static bool are_steps(const float *numbers, int64_t K, double low, double high, int steps) {
    const double step = (high - low) / steps, bound = fmax(fabs(low), fabs(high)) * 0x1p-22;
    int64_t k = 0;
    while (k < K && fabs((double)numbers[k] - (low + nearest(((double)numbers[k] - low) / step) * step)) <= bound) k++;
    return k == K;
}

/* The grid that numbers came from, if one represents all of them: the extremes are some two of its integers. */
static bool find_exact(Grid *grid, double low, double high, const float *numbers, int64_t K) {
    for (int steps = grid->most - grid->least; steps > 0; steps--) {
        if (high > low && !are_steps(numbers, K, low, high, steps)) continue;
        grid->scale = group_scale(grid, (high - low) / steps);
        for (int q = grid->least; q + steps <= grid->most; q++) {
            grid->offset = to_offset(grid, low - q * grid->scale);
            if (is_exact(grid, numbers, K)) return true;
            grid->offset = to_offset(grid, high - (q + steps) * grid->scale);
            if (is_exact(grid, numbers, K)) return true;
        }
    }
    return false;
}

/* Recognizes numbers at equal steps whose scale and offset have more bits than those of a group, as in blocks of Q4_K.
 * Considers the grids of these steps with a rounded scale and offset, and returns whether there are any. Of several
 * numbers of steps, the least is that of the numbers' source. */
static bool find_steps(Search *s, Grid grid, double low, double high) {
    const int most = grid.most - grid.least;
    int steps = 1;
    while (steps <= most && !are_steps(s->numbers, s->K, low, high, steps)) steps++;
    for (int q = grid.least; q + steps <= grid.most; q++) {
        grid.scale = group_scale(&grid, (high - low) / steps);
        grid.offset = to_offset(&grid, (low + high) / 2 - grid.scale * (q + steps * 0.5));
        consider(s, with_better_line(grid, consider(s, grid)));
    }
    return steps <= most;
}

enum { SHARES = 24, TURNS = 6 }; /* shares of the range that integers cover, from 0.68 on */

/* Grids that were considered, each with the number of its turn. */
typedef struct Seen {
    int n, turns[SHARES * (TURNS + 1)];
    double scales[SHARES * (TURNS + 1)], offsets[SHARES * (TURNS + 1)];
} Seen;

/* Returns whether the grid was considered at this turn or an earlier one; the search has then also considered the grids
 * that it leads to. Otherwise the grid is added to those that were seen. */
static bool was_seen(Seen *seen, const Grid *grid, int turn) {
    for (int i = 0; i < seen->n; i++)
        if (seen->scales[i] == grid->scale && seen->offsets[i] == grid->offset && seen->turns[i] <= turn) return true;
    seen->scales[seen->n] = grid->scale;
    seen->offsets[seen->n] = grid->offset;
    seen->turns[seen->n++] = turn;
    return false;
}

static Grid offset_grid(Grid grid, const float *numbers, const float *squares, int64_t K) {
    double low = (double)numbers[0], high = low;
    for (int64_t k = 1; k < K; k++) {
        low = fmin(low, (double)numbers[k]);
        high = fmax(high, (double)numbers[k]);
    }
    if (find_exact(&grid, low, high, numbers, K)) return grid;
    Search search = {numbers, squares, K, grid, INFINITY};
    if (find_steps(&search, grid, low, high)) return search.best;
    Seen seen;
    seen.n = 0;
    for (int i = 0; i < SHARES; i++) {
        grid.scale = group_scale(&grid, (high - low) * (0.68 + 0.0175 * i) / (grid.most - grid.least));
        grid.offset = to_offset(&grid, (low + high) / 2 - grid.scale * (grid.most + grid.least) / 2);
        for (int turn = 0; turn <= TURNS && !was_seen(&seen, &grid, turn); turn++)
            grid = with_better_line(grid, consider(&search, grid));
    }
    return search.best;
}

Grid group_grid(WeightType type, const float *numbers, const float *squares, int64_t K) {
    const bool nibbles = type.dtype == DTYPE_I4;
    const Grid grid = {.least = nibbles ? -8 : -127, .most = nibbles ? 7 : 127, .halves = type.halves};
    return type.offset ? offset_grid(grid, numbers, squares, K) : symmetric_grid(grid, numbers, squares, K);
}
