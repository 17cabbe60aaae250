/* storage.c: sizes and offsets of stored numbers. */
#include "../attnc.h"

const Layout LAYOUT_ROWS = {.dtype = DTYPE_F32, .k_group = 1};
const Layout LAYOUT_PANELS = {.dtype = DTYPE_F32, .panel = PANEL, .k_group = 1};

int k_group_of(Dtype dtype, bool quantized_rows) {
    return dtype == DTYPE_I4 ? 8 : dtype == DTYPE_BF16 ? 2 : quantized_rows ? 4 : 1;
}

/* `n` rounded up to a multiple of `to`; false on overflow. */
static bool round_up_fits(int64_t n, int64_t to, int64_t *rounded) {
    if (!add_fits(n, to - 1, rounded)) return false;
    *rounded -= *rounded % to;
    return true;
}

/* The stored sizes N and K of a tensor, which are rounded up in panels. */
static bool stored_sizes(const Layout *layout, Shape shape, int64_t *N, int64_t *K) {
    Shape rows = shape;
    *K = shape.rank ? shape.dims[shape.rank - 1] : 1;
    rows.rank = shape.rank ? shape.rank - 1 : 0;
    if (layout->panel && rows.rank &&
        !round_up_fits(rows.dims[rows.rank - 1], layout->panel, &rows.dims[rows.rank - 1]))
        return false;
    return shape_elements(rows, N) && (!layout->panel || round_up_fits(*K, layout->k_group, K));
}

bool layout_bytes(const Layout *layout, Shape shape, int64_t *bytes) {
    int64_t N, K, numbers;
    return stored_sizes(layout, shape, &N, &K) && mul_fits(N, K, &numbers) &&
           mul_fits(numbers, (int64_t)dtype_bits(layout->dtype), &numbers) &&
           round_up_fits(numbers / 8 + (numbers % 8 > 0), ALIGNMENT, bytes);
}

bool layout_is_dense(const Layout *layout, Shape shape) {
    int64_t N, K, bytes;
    if (!stored_sizes(layout, shape, &N, &K) || !layout_bytes(layout, shape, &bytes)) return false;
    return layout_elements(layout, bytes) == N * K;
}

int64_t layout_place(const Layout *layout, Shape shape, int64_t i) {
    if (!layout->panel) return i;
    const int64_t K = shape.dims[shape.rank - 1], each = shape.rank > 2 ? shape.dims[shape.rank - 2] : 0;
    int64_t n = i / K;
    if (each) n = n / each * ((each - 1) / layout->panel + 1) * layout->panel + n % each;
    return layout_index(layout, n, i % K, K);
}

int64_t layout_index(const Layout *layout, int64_t n, int64_t k, int64_t K) {
    if (!layout->panel) return n * K + k;
    int64_t group = layout->k_group, panel = layout->panel, groups = (K - 1) / group + 1;
    int64_t within = k % group;
    /* The four bytes of a column hold k, k + 1, k + 2, k + 3 in their low halves, and the four behind in the others. */
    if (layout->dtype == DTYPE_I4) within = within % 4 * 2 + within / 4;
    return ((n / panel * groups + k / group) * panel + n % panel) * group + within;
}

int64_t layout_elements(const Layout *layout, int64_t bytes) { return bytes * 8 / (int64_t)dtype_bits(layout->dtype); }

int64_t slot_element(const Slot *slot) {
    return slot->layout.dtype == DTYPE_I4 ? slot->offset : layout_elements(&slot->layout, slot->offset);
}
