/* conditions.c: evaluates the conditions of a family's tables over the variables and the file's tensors. */
#include "import.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const FileTensor *tensor_of(const Import *import, const char *name) {
    const FileTensor *tensor = tensor_find(import->file, name);
    const char *prefixes = import->family->prefixes;
    size_t size;
    for (const char *prefix; !tensor && (prefix = next_word(&prefixes, &size));)
        tensor = tensor_find(import->file, arena_printf(import->arena, "%.*s%s", (int)size, prefix, name));
    return tensor;
}

/* Whether the file has both tensors and they differ in shape or, as floats, in a number. */
static bool tensors_differ(const Import *import, const char *left, const char *right) {
    enum { STRETCH = 4096 };
    const FileTensor *a = tensor_of(import, left), *b = tensor_of(import, right);
    int64_t count = 0;
    if (!a || !b) return false;
    if (!shape_equal(a->shape, b->shape) || !shape_elements(a->shape, &count)) return true;
    if (tensor_types_equal(a, b)) return memcmp(a->data, b->data, a->bytes) != 0;
    float these[STRETCH], those[STRETCH];
    for (int64_t at = 0; at < count; at += STRETCH) {
        int64_t n = count - at < STRETCH ? count - at : STRETCH;
        tensor_to_f32(a, at, n, these);
        tensor_to_f32(b, at, n, those);
        if (memcmp(these, those, (size_t)n * sizeof *these) != 0) return true;
    }
    return false;
}

/* Whether the file has the tensor, and it differs from the table of sines (first half of the columns) and cosines. */
static bool differs_from_sinusoids(const Import *import, const char *name) {
    const FileTensor *tensor = tensor_of(import, name);
    int64_t count = 0;
    if (!tensor) return false;
    if (tensor->shape.rank != 2 || tensor->shape.dims[1] % 2 || !shape_elements(tensor->shape, &count)) return true;
    Arena *arena = arena_new();
    const Position position = {.kind = POSITION_SINUSOIDAL, .sinusoid = SINUSOID_HALVES};
    const Derived derived = {DERIVED_SINUSOIDS, "sinusoids", tensor->shape, &position, tensor->shape.dims[0], 0, 0, 0,
                             0, {0}};
    double *wanted = arena_array(arena, (size_t)count, sizeof *wanted);
    float *held = arena_array(arena, (size_t)count, sizeof *held);
    bool differs = false;
    derived_fill(&derived, NULL, wanted);
    tensor_to_f32(tensor, 0, count, held);
    for (int64_t i = 0; i < count && !differs; i++) differs = !(fabs(held[i] - wanted[i]) <= 1e-6);
    arena_free(arena);
    return differs;
}

static bool atom_holds(const Import *import, const char *atom, size_t size) {
    Arena *arena = import->arena;
    if (*atom == '#') {
        const char *name = arena_copy(arena, atom + 1, size - 1), *other = strstr(name, "<>");
        if (!other) return tensor_of(import, name) != NULL;
        if (strcmp(other, "<>sinusoids") == 0)
            return differs_from_sinusoids(import, arena_copy(arena, name, (size_t)(other - name)));
        return tensors_differ(import, arena_copy(arena, name, (size_t)(other - name)), other + 2);
    }
    const char *equal = memchr(atom, '=', size);
    if (equal) {
        bool negated = equal > atom && equal[-1] == '!';
        const char *left = variable_get(import, atom, (size_t)(equal - atom) - negated);
        const char *right = equal + 1;
        size_t length = size - (size_t)(right - atom);
        if (*right == '$') right = variable_get(import, right + 1, length - 1);
        else right = arena_copy(arena, right, length);
        return (strcmp(left ? left : "", right ? right : "") == 0) != negated;
    }
    if (*atom == '!') return !atom_holds(import, atom + 1, size - 1);
    return variable_get(import, atom, size) != NULL;
}

bool condition_holds(const Import *import, const char *text, size_t size) {
    const char *end = text + size;
    while (text < end) {
        const char *and = memchr(text, '&', (size_t)(end - text));
        if (!and) and = end;
        if (!atom_holds(import, text, (size_t)(and - text))) return false;
        text = and + 1;
    }
    return true;
}
