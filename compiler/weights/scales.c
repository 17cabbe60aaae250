/* scales.c: chooses the scale, and perhaps the offset, with which integers come nearest to weights, by least squares.
 *
 * A scale of a row has 16 significant bits and one of a group 8, so that an f32 holds each of its products exactly. */
#include "../attnc.h"

#include <math.h>

enum { ROW_BITS = 16, GROUP_BITS = 8 };

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

static double to_offset(double x) {
    return fabs(x) < LEAST_SCALE ? 0 : fabs(x) >= MOST_SCALE * 8 ? copysign(MOST_SCALE * 8, x) : rounded(x, GROUP_BITS);
}

static double to_integer(const Grid *grid, double x) {
    double q = nearbyint((x - grid->offset) / grid->scale);
    return q > grid->most ? grid->most : q < grid->least ? grid->least : q;
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

/* A scale below those of to_scale would make all of a group 0: its square must not vanish either. */
static double squared_error(const Grid *grid, const float *numbers, int64_t K) {
    double sum = 0;
    for (int64_t k = 0; k < K; k++) {
        double x = (double)numbers[k], error = x - (grid->scale * to_integer(grid, x) + grid->offset);
        sum += error * error;
    }
    return sum;
}

/* For the integers that `grid` gives, the scale of least squared error is sum(q (x - offset)) / sum(q q). */
static Grid with_better_scale(Grid grid, const float *numbers, int64_t K, int bits) {
    double products = 0, squares = 0;
    for (int64_t k = 0; k < K; k++) {
        double q = to_integer(&grid, (double)numbers[k]);
        products += q * ((double)numbers[k] - grid.offset);
        squares += q * q;
    }
    if (squares > 0) grid.scale = to_scale(products / squares, bits);
    return grid;
}

/* For the integers that `grid` gives, the line of least squared error through the points (integer, number). The offset
 * belongs to the rounded scale. */
static Grid with_better_line(Grid grid, const float *numbers, int64_t K) {
    double q_sum = 0, x_sum = 0, products = 0, squares = 0, n = (double)K;
    for (int64_t k = 0; k < K; k++) {
        double x = (double)numbers[k], q = to_integer(&grid, x);
        q_sum += q, x_sum += x;
        products += q * x, squares += q * q;
    }
    double spread = n * squares - q_sum * q_sum;
    if (spread > 0) grid.scale = to_scale((n * products - q_sum * x_sum) / spread, GROUP_BITS);
    grid.offset = to_offset((x_sum - grid.scale * q_sum) / n);
    return grid;
}

typedef struct Search {
    const float *numbers;
    int64_t K;
    Grid best;
    double error;
} Search;

static void consider(Search *s, Grid grid) {
    double error = squared_error(&grid, s->numbers, s->K);
    if (error < s->error) s->error = error, s->best = grid;
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
    Search search = {numbers, K, grid, INFINITY};
    for (size_t i = 0; i < sizeof largest_becomes / sizeof *largest_becomes; i++) {
        grid.scale = to_scale(most / largest_becomes[i], ROW_BITS);
        consider(&search, with_better_scale(grid, numbers, K, ROW_BITS));
    }
    return search.best.scale;
}

/* The number of largest magnitude becomes the integer of largest magnitude, which the sign of the scale decides, or
 * lies beyond it or below it. */
static Grid symmetric_grid(Grid grid, const float *numbers, int64_t K) {
    enum { STRETCHES = 12 }; /* of the integer that the largest number becomes, from 0.78 on */
    const double most = largest_of(numbers, K);
    grid.scale = 0;
    if (most == 0) return grid;
    for (int q = grid.most; q >= grid.least; q--) {
        if (q == 0) continue;
        grid.scale = to_scale(most / q, GROUP_BITS);
        if (is_exact(&grid, numbers, K)) return grid;
    }
    const int ends[] = {grid.least, grid.most};
    Search search = {numbers, K, grid, INFINITY};
    for (int e = 0; e < (grid.least == -grid.most ? 1 : 2); e++)
        for (int i = 0; i < STRETCHES; i++) {
            grid.scale = to_scale(most / (ends[e] * (0.78 + 0.045 * i)), GROUP_BITS);
            consider(&search, grid);
            consider(&search, with_better_scale(grid, numbers, K, GROUP_BITS));
        }
    return search.best;
}

/* ---------------------------------------------------------------- with an offset */

/* The grid that numbers came from, if one represents all of them: the extremes are some two of its integers. */
static bool find_exact(Grid *grid, double low, double high, const float *numbers, int64_t K) {
    for (int steps = grid->most - grid->least; steps > 0; steps--) {
        grid->scale = to_scale((high - low) / steps, GROUP_BITS);
        for (int q = grid->least; q + steps <= grid->most; q++) {
            grid->offset = to_offset(low - q * grid->scale);
            if (is_exact(grid, numbers, K)) return true;
            grid->offset = to_offset(high - (q + steps) * grid->scale);
            if (is_exact(grid, numbers, K)) return true;
        }
    }
    return false;
}

static Grid offset_grid(Grid grid, const float *numbers, int64_t K) {
    enum { SHARES = 12 }; /* of the range that integers cover, from 0.68 on */
    double low = (double)numbers[0], high = low;
    for (int64_t k = 1; k < K; k++) {
        low = fmin(low, (double)numbers[k]);
        high = fmax(high, (double)numbers[k]);
    }
    if (find_exact(&grid, low, high, numbers, K)) return grid;
    Search search = {numbers, K, grid, INFINITY};
    for (int i = 0; i < SHARES; i++) {
        grid.scale = to_scale((high - low) * (0.68 + 0.035 * i) / (grid.most - grid.least), GROUP_BITS);
        grid.offset = to_offset((low + high) / 2 - grid.scale * (grid.most + grid.least) / 2);
        for (int turn = 0; turn < 3; turn++) {
            consider(&search, grid);
            grid = with_better_line(grid, numbers, K);
        }
        consider(&search, grid);
    }
    return search.best;
}

Grid group_grid(WeightType type, const float *numbers, int64_t K) {
    const bool nibbles = type.dtype == DTYPE_I4;
    const Grid grid = {.least = nibbles ? -8 : -127, .most = nibbles ? 7 : 127};
    return type.offset ? offset_grid(grid, numbers, K) : symmetric_grid(grid, numbers, K);
}
