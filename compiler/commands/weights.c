/* weights.c: attnc weights lists the tensors of a model, or writes them as a safetensors file. */
#include "commands.h"

#include <string.h>

static const char usage[] =
    "attnc weights SPEC [--weights F[,F…]|random:SEED -o OUT.safetensors] [--precision P]\n" HELP_WEIGHTS "\n"
    HELP_PRECISION
    "  -o OUT.safetensors   writes the tensors under their canonical names; without both options, the names are listed";

static int64_t elements_of(const WeightSpec *spec) {
    int64_t elements = 0;
    if (!shape_elements(spec->shape, &elements)) bug("the size of `%s` overflows", spec->name);
    return elements;
}

static void list(Arena *arena, const Module *module) {
    const WeightTable *table = &module->weights;
    int width = 0;
    for (size_t i = 0; i < table->count; i++)
        if ((int)strlen(table->specs[i].name) > width) width = (int)strlen(table->specs[i].name);
    int64_t total = 0, total_bytes = 0;
    for (size_t i = 0; i < table->count; i++) {
        const WeightSpec *spec = &table->specs[i];
        int64_t elements = elements_of(spec);
        int64_t bytes = weight_bytes(spec);
        printf("%-*s  %-16s %12lld%s%s\n", width, spec->name, shape_text(arena, spec->shape), (long long)bytes,
               spec->type.dtype == DTYPE_F32 ? "" : " ",
               spec->type.dtype == DTYPE_F32 ? "" : dtype_name(spec->type.dtype));
        total += elements;
        total_bytes += bytes;
    }
    printf("%s, %s, %lld bytes%s\n", counted(arena, (int64_t)table->count, "tensor"),
           counted(arena, total, "parameter"), (long long)total_bytes,
           weight_table_dtype(table) == DTYPE_F32 ? " as f32" : "");
}

static void write_tensors(Compilation *c, const char *from, const char *to) {
    const WeightTable *table = &c->module->weights;
    const Weights *weights = load_weights(c, from, false, true);
    NamedTensor *tensors = arena_array(c->arena, table->count, sizeof *tensors);
    int64_t total = 0;
    for (size_t i = 0; i < table->count; i++) {
        tensors[i] = (NamedTensor){table->specs[i].name, table->specs[i].shape, weights->data[i]};
        total += elements_of(&table->specs[i]);
    }
    safetensors_write(c->arena, to, tensors, table->count);
    progress_end();
    /* what is said must not become a part of the file */
    say(output_is_stdout(to) ? stderr : stdout, "%s: %s, %lld bytes\n", to,
        counted(c->arena, (int64_t)table->count, "tensor"), (long long)total * 4);
}

void command_weights(Arena *arena, int argc, char **argv) {
    const char *path, *from = NULL, *to = NULL, *precision = NULL;
    const Option options[] = {{"--weights", .text = &from}, {"-o", .text = &to}, {"--precision", .text = &precision}};
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, &path, 1);
    if (to && !from) usage_error(usage, "`-o` wants `--weights`, whose tensors it writes");
    if (from && !to) usage_error(usage, "`--weights` wants `-o`, the file to write");
    Compilation c = spec_load(arena, path, option_precision(arena, usage, "--precision", precision), STAGE_REWRITE);
    if (to) write_tensors(&c, from, to);
    else list(arena, c.module);
}
