/* weights.c: attnc weights: name, shape and bytes of every tensor of a model. */
#include "commands.h"

#include <string.h>

static const char usage[] = "attnc weights SPEC";

int command_weights(int argc, char **argv) {
    Arena *arena = arena_new();
    const char *path;
    options_read(arena, argc, argv, usage, NULL, 0, &path, 1);
    Model *model = model_load(arena, path);
    WeightTable table = weights_table(arena, model);
    int width = 0;
    for (size_t i = 0; i < table.count; i++)
        if ((int)strlen(table.specs[i].name) > width) width = (int)strlen(table.specs[i].name);
    int64_t total = 0;
    for (size_t i = 0; i < table.count; i++) {
        int64_t elements = 0;
        if (!shape_elements(table.specs[i].shape, &elements)) bug("a tensor's size overflows");
        printf("%-*s  %-16s %12lld\n", width, table.specs[i].name, shape_text(arena, table.specs[i].shape),
               (long long)elements * 4);
        total += elements;
    }
    printf("%zu tensors, %lld parameters, %lld bytes as f32\n", table.count, (long long)total, (long long)total * 4);
    arena_free(arena);
    return EXIT_FINE;
}
