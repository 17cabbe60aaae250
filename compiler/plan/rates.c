/* rates.c: what a product costs by the committed rates of rates.def. */
#include "../attnc.h"

typedef struct Rate {
    Dtype weights;
    bool group;
    Dtype rows;
    double picoseconds; /* of a multiply-add */
} Rate;

static const Rate rates[] = {
#define RATE(name, weights, group, rows, picoseconds, help) {weights, group, rows, picoseconds},
#include "rates.def"
};

static const double byte_picoseconds =
#define BYTE(picoseconds) picoseconds
#include "rates.def"
    ;

double product_cost(WeightType weights, Dtype rows, double multiply_adds) {
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        if (rates[i].weights == weights.dtype && rates[i].group == (weights.group > 0) && rates[i].rows == rows)
            return rates[i].picoseconds * multiply_adds;
    bug("no rate for %s weights and rows of %s", dtype_name(weights.dtype), dtype_name(rows));
}

double read_cost(double bytes) { return byte_picoseconds * bytes; }
