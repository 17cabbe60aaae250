/* weights.c: attnc weights: the canonical tensors of a model, listed, or written as one safetensors file. */
#include "commands.h"

#include <string.h>

static const char usage[] =
    "attnc weights SPEC [--weights F[,F…]|random:SEED -o OUT.safetensors]\n" HELP_WEIGHTS "\n"
    "  -o OUT.safetensors   writes the tensors by the names of the list; without both the list is printed";

static int64_t elements_of(const WeightSpec *spec) {
    int64_t elements = 0;
    if (!shape_elements(spec->shape, &elements)) bug("the size of `%s` overflows", spec->name);
    return elements;
}

static void list(Arena *arena, const WeightTable *table) {
    int width = 0;
    for (size_t i = 0; i < table->count; i++)
        if ((int)strlen(table->specs[i].name) > width) width = (int)strlen(table->specs[i].name);
    int64_t total = 0;
    for (size_t i = 0; i < table->count; i++) {
        const WeightSpec *spec = &table->specs[i];
        int64_t elements = elements_of(spec);
        printf("%-*s  %-16s %12lld\n", width, spec->name, shape_text(arena, spec->shape), (long long)elements * 4);
        total += elements;
    }
    printf("%zu tensors, %lld parameters, %lld bytes as f32\n", table->count, (long long)total, (long long)total * 4);
}

static void write_tensors(Arena *arena, const Module *module, const char *from, const char *to) {
    const WeightTable *table = &module->weights;
    const Weights *weights = load_weights(arena, module, from, false);
    NamedTensor *tensors = arena_array(arena, table->count, sizeof *tensors);
    int64_t total = 0;
    for (size_t i = 0; i < table->count; i++) {
        tensors[i] = (NamedTensor){table->specs[i].name, table->specs[i].shape, weights->data[i]};
        total += elements_of(&table->specs[i]);
    }
    safetensors_write(arena, to, tensors, table->count);
    progress_end();
    say(stdout, "%s: %zu tensors, %lld bytes\n", to, table->count, (long long)total * 4);
}

int command_weights(int argc, char **argv) {
    Arena *arena = arena_new();
    const char *path, *from = NULL, *to = NULL;
    const Option options[] = {{"--weights", .text = &from}, {"-o", .text = &to}};
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, &path, 1);
    if (to && !from) usage_error(usage, "`-o` wants `--weights`, whose tensors it writes");
    if (from && !to) usage_error(usage, "`--weights` wants `-o`, the file to write");
    Model *model = model_load(arena, path);
    if (to) {
        write_tensors(arena, build(arena, model), from, to);
    } else {
        WeightTable table = weights_table(arena, model);
        list(arena, &table);
    }
    arena_free(arena);
    return EXIT_FINE;
}
