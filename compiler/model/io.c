/* io.c: the rows of io.def. */
#include "../attnc.h"

#include <string.h>

const InputKind input_kinds[IN_COUNT] = {
#define INPUT(name, array, dtype, rows, absent, help) \
    {IN_##name, #name, #array, DTYPE_##dtype, PER_##rows, ABSENT_##absent, false},
#define OUTPUT(name, help)
#include "io.def"
};

static const char *const outputs[OUT_COUNT] = {
#define INPUT(name, array, dtype, rows, absent, help)
#define OUTPUT(name, help) #name,
#include "io.def"
};

size_t input_element_bytes(const InputKind *kind) {
    return dtype_bytes(kind->dtype == DTYPE_I64 && !kind->wide ? DTYPE_I32 : kind->dtype);
}

bool input_is_number(const InputKind *kind) {
    return input_is_own_number(kind) || (kind->rows == PER_SEQUENCE && kind->dtype == DTYPE_I64);
}

bool input_is_own_number(const InputKind *kind) { return role_is_of_rows(kind->role) && kind->rows == PER_SEQUENCE; }

const char *output_name(OutputRole role) { return outputs[role]; }

OutputRole output_named(const char *name) {
    int role = 0;
    while (role < OUT_COUNT && strcmp(outputs[role], name) != 0) role++;
    return (OutputRole)role;
}

OutputRole map_role(const Model *model, const Stack *stack, const Attention *a) {
    if (a->cross && stack) return OUT_cross_attention;
    return model->decoder && stack && !stack->is_decoder ? OUT_encoder_attention : OUT_attention;
}
