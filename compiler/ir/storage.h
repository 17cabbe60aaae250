/* storage.h: how numbers are stored, and where. Included by attnc.h alone. A Layout describes how a matrix is stored as
 * bytes; a Slot is the range of bytes in a memory that holds it. Sizes and offsets are in bytes everywhere, and
 * layout_bytes is the only place that multiplies. */
#ifndef STORAGE_H
#define STORAGE_H

enum {
    PANEL = 16,    /* columns of a product that are stored side by side: one cache line of f32 */
    ALIGNMENT = 64, /* bytes: a cache line, and the widest vector; every slot begins at a multiple */
    ROW_HEAD = 64,  /* bytes in front of the integers of a quantized row, for a RowHead and then its outliers, in f32 */
    MOST_OUTLIERS = 14
};

/* A matrix [N][K] as rows, or with `panel` > 0 as panels [N/panel][K/k_group][panel][k_group], N and K rounded up. A
 * tensor of another rank has N = the product of all dimensions but the last, and K = the last; each matrix of several,
 * as those of experts, is rounded up by itself. */
typedef struct Layout {
    Dtype dtype;
    int panel;       /* 0: rows */
    int k_group;     /* number of neighbouring k of a column that are adjacent, as dot-product instructions read them */
} Layout;

typedef enum Space {
    SPACE_WEIGHTS,   /* the data of .attnw */
    SPACE_WORKSPACE, /* behind the arrays that control a call */
    SPACE_STATE,     /* behind the header of a state */
    SPACE_SOURCE,    /* behind the header of an encoded source */
    SPACE_INPUT,     /* the caller's memory */
    SPACE_OUTPUT
} Space;

typedef struct Slot {
    Space space;
    Layout layout;
    int64_t offset, bytes; /* from the start of the space; `bytes` includes padding */
    const char *name;
} Slot;

extern const Layout LAYOUT_ROWS, LAYOUT_PANELS; /* f32 */

/* --- ir/storage.c */
/* The k_group of a matrix in panels: 8 of I4, 2 of BF16, 4 of bytes that rows of bytes multiply, else 1. */
int k_group_of(Dtype dtype, bool quantized_rows);
/* Sets *bytes to the size of a tensor in that layout, rounded up to ALIGNMENT; false on overflow. */
bool layout_bytes(const Layout *layout, Shape shape, int64_t *bytes);
/* Whether a tensor in that layout fills its bytes: then panels of the next one follow as if they were its own. */
bool layout_is_dense(const Layout *layout, Shape shape);
/* The offset in elements of number i of a tensor in row-major order. */
int64_t layout_place(const Layout *layout, Shape shape, int64_t i);
/* The offset in elements of element [n][k] of an [N][K] matrix; K is rounded up to k_group. */
int64_t layout_index(const Layout *layout, int64_t n, int64_t k, int64_t K);
int64_t layout_elements(const Layout *layout, int64_t bytes); /* that `bytes` hold */
int64_t slot_element(const Slot *slot); /* the offset as C adds it to a pointer to the dtype's C type */

#endif
