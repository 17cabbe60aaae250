/* layout.c: where each packed tensor stands in the weights. Needs the packed tensors in the order in which
 * the code reads them; gives every one an offset at a 64-byte boundary. A table that is read both by rows
 * and as panels (a tied head) is stored once, as panels. Zeros behind the last one let a kernel load a whole
 * vector from any table's last row. */
#include "../attnc.h"

enum { SLACK = 16 };

void layout(Program *program) {
    int64_t at = 0;
    for (int i = 0; i < program->n_packed; i++) {
        Packed *p = &program->packed[i];
        int64_t elements = 0;
        if (p->panels) elements = round_up(p->shape.dims[0], 16) * p->shape.dims[1];
        else if (!shape_elements(p->shape, &elements)) bug("the packed tensor `%s` is too large", p->name);
        p->offset = at;
        p->room = round_up(elements, 16);
        at += p->room;
    }
    program->weight_floats = at + SLACK;
}
