/* load.c: the weights that --weights names, whatever kind of file it is. */
#include "commands.h"

#include <string.h>

Weights *load_weights(Arena *arena, const Module *module, const char *source, bool verbose) {
    size_t length = strlen(source);
    bool named = length > 6 && strcmp(source + length - 6, ".attnw") == 0;
    if (named || packed_is(source)) return packed_read(arena, plan_model(arena, module), source, false);
    return weights_load(arena, module->model, &module->weights, source,
        verbose ? UNUSED_LISTED : UNUSED_SUMMED_UP);
}
