/* compile.c: attnc compile: the pipeline, from a spec to NAME.c, NAME.h and NAME.attnw. */
#include "../emit/emit.h"
#include "engine.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define DEFAULT_TARGETS "scalar,avx2,avx512"

static const char usage[] =
    "attnc compile SPEC -o DIR [--target T[,T…]] [--unroll auto|full|loops]\n"
    "                 [--weights F[,F…]|random:SEED] [--embed-weights] [--runtime] [-v]\n"
    "  -o DIR               the folder for NAME.c and NAME.h, made where there is none\n"
    "  --target T[,T…]      instruction sets; with several, the C takes the best that its machine has. They are\n"
    "                       " HELP_TARGETS " (" DEFAULT_TARGETS ")\n"
    "  --unroll HOW         auto (the default, if the spec says nothing): one sequence alone gets code of its own\n"
    "                       without loops where that pays, see `attnc explain`; full: no loop at all, one sequence a\n"
    "                       call; loops: nothing but loops, the least code\n" HELP_WEIGHTS ";\n"
    "                       they become NAME.attnw, in the layout that the C reads\n"
    "  --embed-weights      puts the weights into the C; those above 1 MB through NAME_weights.S, which takes in\n"
    "                       NAME.attnw when it is assembled; how all is linked is then printed\n"
    "  --runtime            writes attn_runtime.[ch] (threads, files) and attn_generate.[ch] (search) beside NAME.c\n"
    HELP_VERBOSE;

enum {
    MOST_TEXT_BYTES = 1 << 20
}; /* larger weights are embedded by .incbin: as text they would take minutes to compile */

/* "scalar,avx2" -> its parts; an unknown one is refused. */
static const char *const *split_targets(Arena *arena, const char *list, int *n) {
    int n_here;
    const char *const *here = targets_here(arena, &n_here);
    const char **targets = arena_array(arena, strlen(list) + 1, sizeof *targets);
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");
        const char *name = arena_copy(arena, at, length);
        if (strcmp(name, "native") == 0) name = here[n_here - 1]; /* with others below it, init picks what is there */
        target_require(arena, name);
        for (int i = 0; i < *n; i++)
            if (strcmp(targets[i], name) == 0) usage_error(usage, "the target `%s` stands twice", name);
        targets[(*n)++] = name;
        at += length;
        if (!*at) return targets;
    }
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void write_file(Arena *arena, const char *path, const char *text, size_t size) {
    OutputFile *output = output_open(arena, path);
    output_write(output, text, size);
    output_commit(output);
}

static void write_runtime(Arena *arena, const char *folder) {
    static const char *const names[] = {"attn_runtime.h", "attn_runtime.c", "attn_generate.h", "attn_generate.c"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = embedded_text(names[i]);
        if (!text) bug("%s is not in this program", names[i]);
        write_file(arena, arena_printf(arena, "%s/%s", folder, names[i]), text, strlen(text));
    }
}

/* A file's name as a shell takes it. */
static const char *quoted(Arena *arena, const char *name) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+:@%-";
    if (strspn(name, plain) == strlen(name)) return name;
    Text out = text_new(arena);
    text_add(&out, "'", 1);
    for (; *name; name++) {
        if (*name == '\'') text_add(&out, "'\\'", 3);
        text_add(&out, name, 1);
    }
    text_add(&out, "'", 1);
    return out.data;
}

/* What is to be linked where the weights are a file of assembly of their own. */
static void tell_assembly(Arena *arena, const char *folder, const char *name, bool runtime) {
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/') length--;
    folder = arena_copy(arena, folder, length);
    bool here = strcmp(folder, ".") == 0, root = strcmp(folder, "/") == 0;
    const char *stem = arena_printf(arena, "%s%s%s", here ? "" : folder, here || root ? "" : "/", name);
    const char *ends[] = {".c", "_weights.S"}, *more[] = {"attn_runtime.c", "attn_generate.c"};
    Text line = text_new(arena);
    text_printf(&line, "cc -std=c11 -O2 main.c");
    for (int i = 0; i < 2; i++) text_printf(&line, " %s", quoted(arena, arena_printf(arena, "%s%s", stem, ends[i])));
    for (int i = 0; runtime && i < 2; i++)
        text_printf(&line, " %s", quoted(arena, arena_printf(arena, "%.*s%s", (int)(strlen(stem) - strlen(name)), stem,
                                                             more[i])));
    if (!here) text_printf(&line, " -I%s", quoted(arena, folder)); /* for the headers, and what .incbin names */
    say(stdout, "%s_weights.S takes %s.attnw into the program and is linked with the C:\n    %s -o %s%s\n", stem, stem,
        line.data, name, runtime ? " -lpthread" : "");
}

int command_compile(int argc, char **argv) {
    Arena *arena = arena_new();
    const char *path, *folder = NULL, *target = NULL, *unroll = NULL, *weights_path = NULL;
    bool embed = false, runtime = false, verbose = false;
    const Option options[] = {{"-o", .text = &folder},
                              {"--target", .text = &target},
                              {"--unroll", .text = &unroll},
                              {"--weights", .text = &weights_path},
                              {"--embed-weights", .flag = &embed},
                              {"--runtime", .flag = &runtime},
                              {"-v", .flag = &verbose}};
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, &path, 1);
    if (!folder) usage_error(usage, "`-o DIR` is missing");
    if (unroll && strcmp(unroll, "auto") != 0 && strcmp(unroll, "full") != 0 && strcmp(unroll, "loops") != 0)
        usage_error(usage, "`--unroll` is auto, full or loops, not `%s`", unroll);
    if (!target) target = DEFAULT_TARGETS;
    int n_targets = 0;
    const char *const *targets = split_targets(arena, target, &n_targets);

    Model *model = model_load(arena, path);
    if (unroll) model->unroll_full = strcmp(unroll, "full") == 0;
    if (embed && !weights_path) usage_error(usage, "`--embed-weights` needs `--weights F`");
    Module *module = build(arena, model);
    Program *program = plan_model(arena, module);
    EmitOptions emit_options = {.targets = targets, .n_targets = n_targets, .layout_hash = packed_layout_hash(program)};
    emit_options.command = arena_printf(arena, "attnc compile %s --target %s%s%s", base_name(path), target,
                                        unroll ? " --unroll " : "", unroll ? unroll : "");
    emit_options.loops = unroll && strcmp(unroll, "loops") == 0;
    Weights *weights = weights_path ? load_weights(arena, module, weights_path, verbose) : NULL;
    bool in_text = embed && 128 + 4 * program->weight_floats <= MOST_TEXT_BYTES;
    if (in_text) emit_options.embedded = packed_bytes(arena, program, weights, &emit_options.embedded_bytes);
    emit_options.incbin = embed && !in_text;
    progress_begin("writing the C of %s", model->name);
    Emitted emitted = emit(arena, program, &emit_options);

    if (mkdir(folder, 0777) && errno != EEXIST) fail_system(errno, "%s: the folder cannot be made", folder);
    outputs_hold();
    if (emitted.assembly)
        write_file(arena, arena_printf(arena, "%s/%s_weights.S", folder, model->name), emitted.assembly,
                   strlen(emitted.assembly));
    if (weights && !in_text)
        packed_write(arena, arena_printf(arena, "%s/%s.attnw", folder, model->name), program, weights);
    if (runtime) write_runtime(arena, folder);
    write_file(arena, arena_printf(arena, "%s/%s.h", folder, model->name), emitted.h, emitted.h_bytes);
    write_file(arena, arena_printf(arena, "%s/%s.c", folder, model->name), emitted.c, emitted.c_bytes);
    outputs_release();
    if (emitted.assembly) tell_assembly(arena, folder, model->name, runtime);
    arena_free(arena);
    return EXIT_FINE;
}
