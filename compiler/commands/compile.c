/* compile.c: attnc compile: from a spec to NAME.c, NAME.h and NAME.attnw. */
#include "commands.h"
#include "footprint.h"

#include "../emit/emit.h"
#include "../project/project.h"

#include <string.h>

static const char usage[] =
    "attnc compile SPEC -o DIR [--target T[,T…]] [--unroll auto|full|loops]\n"
    "                 [--weights F[,F…]|random:SEED] [--embed-weights] [--precision P] [--reproducible]\n"
    "                 [--budget flash=N,ram=N] [--ranks N] [--runtime] [-v]\n"
    "  -o DIR               folder for NAME.c and NAME.h; it is created if it does not exist\n"
    "  --target T[,T…]      instruction sets; with several, the C picks the best that its machine runs. They are\n"
    HELP_INDENT HELP_TARGETS "\n" HELP_INDENT "(default: @DEFAULT_TARGETS@)\n"
    "  --unroll HOW         auto (default, unless the spec states `unroll`): a single sequence gets additional code\n"
    "                       without loops where a gain is expected, see `attnc explain`; full: no loops at all, one\n"
    "                       sequence per call; loops: only code with loops, the least code\n" HELP_WEIGHTS ";\n"
    "                       the weights are written as NAME.attnw, in the layout that the C reads\n"
    "  --embed-weights      puts the weights into the C, or above 1 MB into NAME_weights.S, which includes NAME.attnw\n"
    "                       when it is assembled; the command that links the program is then printed\n"
    HELP_PRECISION HELP_REPRODUCIBLE
    "  --budget flash=N,ram=N   of a microcontroller, in bytes or as 256k or 1M: if the model needs more, nothing is\n"
    "                       written, and the status is 3; either may be left out. What is needed is printed\n"
    HELP_RANKS
    "  --runtime            also writes attn_runtime.[ch] (threads, files), and attn_generate.[ch] with\n"
    "                       attn_rules.[ch] and attn_sample.[ch] (search), beside NAME.c; attn_mel.[ch] and\n"
    "                       attn_transcribe.[ch] too (the spectrogram of a sound, and its words) for a model with\n"
    "                       `input mel`\n"
    HELP_VERBOSE;

enum {
    MOST_TEXT_BYTES = 1 << 20
}; /* larger weights are embedded by .incbin, since text would take minutes to compile */

void write_embedded(Arena *arena, const char *folder, const char *const *names) {
    for (; *names; names++)
        write_text(arena, arena_printf(arena, "%s/%s", folder, *names), embedded_file(*names));
}

void check_model_name(const Compilation *c, const char *what) {
    if (runtime_namesake(c->model->name))
        fail("%s: the model `%s` has the name of other files of the %s; give it another name", c->source->path,
             c->model->name, what);
}

static void check_header(const Compilation *c) {
    const char *header = header_hidden_by(c->model->name);
    if (header)
        fail("%s: `%s.h` would hide the header <%s.h> of C; give the model another name", c->source->path,
             c->model->name, header);
}

void make_folders(Arena *arena, const char *folder) {
    for (const char *slash = folder + 1; *folder && (slash = strchr(slash, '/')); slash++)
        output_folder(arena, arena_copy(arena, folder, (size_t)(slash - folder)));
    output_folder(arena, folder);
}

/* Quotes a file's name for a shell. */
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

/* Prints the command that links a program when the weights are in an assembly file. */
static void tell_assembly(Arena *arena, const char *folder, const Model *model, const char *const *runtime) {
    const char *name = model->name;
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/') length--;
    folder = arena_copy(arena, folder, length);
    bool here = strcmp(folder, ".") == 0, root = strcmp(folder, "/") == 0;
    const char *stem = arena_printf(arena, "%s%s%s", here ? "" : folder, here || root ? "" : "/", name);
    const char *ends[] = {".c", "_weights.S"};
    Text line = text_new(arena);
    text_printf(&line, "cc -std=c11 -O2 main.c");
    for (int i = 0; i < 2; i++) text_printf(&line, " %s", quoted(arena, arena_printf(arena, "%s%s", stem, ends[i])));
    for (const char *const *file = runtime; file && *file; file++)
        if (text_ends(*file, ".c"))
            text_printf(&line, " %s", quoted(arena, arena_printf(arena, "%.*s%s", (int)(strlen(stem) - strlen(name)),
                                                                 stem, *file)));
    if (!here) text_printf(&line, " -I%s", quoted(arena, folder)); /* for the headers and the file of .incbin */
    say(stdout, "%s_weights.S takes %s.attnw into the program and is linked with the C:\n    %s -o %s%s\n", stem, stem,
        line.data, name, !runtime ? "" : reads_sound(model) ? " -lpthread -lm" : " -lpthread");
}

/* What --runtime writes beside the C. */
static const char *const *runtime_of(const Compilation *c) {
    return runtime_files(c->arena, reads_sound(c->model) ? RUNTIME_SOUND : RUNTIME_SEARCH);
}

void compile_write(Compilation *c, const char *folder, const CompileOptions *with) {
    Arena *arena = c->arena;
    check_header(c);
    const char *target = with->target, *const *targets = with->targets;
    int n_targets = with->n_targets;
    spec_plan(c, targets, n_targets);
    if (!target) {
        target = default_targets(arena, graph_row_types(c->module->entries[ENTRY_FORWARD]), c->program->arithmetic);
        targets = option_targets(arena, with->usage, target, &n_targets);
    }
    Weights *weights = with->weights ? load_weights(c, with->weights, with->verbose, false) : NULL;
    bool in_text = with->embed && packed_file_bytes(c->program) <= MOST_TEXT_BYTES;
    c->options = (EmitOptions){.targets = targets,
                               .n_targets = n_targets,
                               .command = arena_printf(arena, "attnc compile %s --target %s%s%s",
                                                       path_name(c->source->path), target, with->words,
                                                       c->reproducible ? " --reproducible" : ""),
                               .loops = with->loops,
                               .incbin = with->embed && !in_text};
    if (in_text) c->options.embedded = packed_bytes(arena, c->program, weights, &c->options.embedded_bytes);
    progress_begin("writing the C of %s", c->model->name);
    compile_until(c, STAGE_C);
    if (with->budget && targets)
        budget_keep(arena, with->budget, c->program, &c->emitted, isa_load(arena, targets[0]));

    const Emitted *emitted = &c->emitted;
    const char *stem = arena_printf(arena, "%s/%s", folder, c->model->name);
    if (with->parents) make_folders(arena, folder);
    else output_folder(arena, folder);
    outputs_hold();
    if (emitted->assembly)
        write_text(arena, arena_printf(arena, "%s_weights.S", stem), emitted->assembly);
    const char *packed = arena_printf(arena, "%s.attnw", stem);
    if (weights && c->ranks > 1)
        packed_write_ranks(arena, rank_paths(arena, packed, c->ranks), c->program, weights);
    else if (weights && !in_text) packed_write(arena, packed, c->program, weights);
    if (with->runtime) write_embedded(arena, folder, runtime_of(c));
    write_text(arena, arena_printf(arena, "%s.h", stem), emitted->h);
    write_text(arena, arena_printf(arena, "%s.c", stem), emitted->c);
}

void command_compile(Arena *arena, int argc, char **argv) {
    const char *path, *folder = NULL, *unroll = NULL, *precision = NULL, *budget = NULL, *ranks = NULL;
    bool reproducible = false;
    CompileOptions with = {.usage = usage};
    const Option options[] = {{"-o", .text = &folder},
                              {"--target", .text = &with.target},
                              {"--unroll", .text = &unroll},
                              {"--weights", .text = &with.weights},
                              {"--precision", .text = &precision},
                              {"--reproducible", .flag = &reproducible},
                              {"--budget", .text = &budget},
                              {"--ranks", .text = &ranks},
                              {"--embed-weights", .flag = &with.embed},
                              {"--runtime", .flag = &with.runtime},
                              {"-v", .flag = &with.verbose}};
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, &path, 1);
    if (!folder) usage_error(usage, "`-o DIR` is missing");
    if (unroll && strcmp(unroll, "auto") != 0 && strcmp(unroll, "full") != 0 && strcmp(unroll, "loops") != 0)
        usage_error(usage, "`--unroll` is auto, full or loops, not `%s`", unroll);
    if (with.embed && !with.weights) usage_error(usage, "`--embed-weights` needs `--weights F`");
    if (with.target) with.targets = option_targets(arena, usage, with.target, &with.n_targets);
    const Budget bounds = budget_read(usage, budget);
    if (budget) with.budget = &bounds;
    if (budget && (with.n_targets != 1 || !isa_load(arena, with.targets[0])->operator_bytes))
        usage_error(usage, "`--budget` needs `--target` with one microcontroller: cm3, cm4, cm55 or rv32");

    Compilation c = spec_load(arena, path, option_precision(arena, usage, "--precision", precision), STAGE_MODEL);
    c.reproducible = reproducible;
    c.ranks = option_ranks(usage, ranks);
    if (c.ranks > 1 && with.embed) usage_error(usage, "`--embed-weights` is of one process; `--ranks` of several");
    if (with.runtime) check_model_name(&c, "runtime");
    if (unroll) c.model->unroll_full = strcmp(unroll, "full") == 0;
    with.loops = unroll && strcmp(unroll, "loops") == 0;
    with.words = arena_printf(arena, "%s%s%s%s%s%s", unroll ? " --unroll " : "", unroll ? unroll : "",
                              precision ? " --precision " : "", precision ? precision : "",
                              c.ranks > 1 ? " --ranks " : "", c.ranks > 1 ? ranks : "");
    compile_write(&c, folder, &with);
    outputs_release();
    if (budget) budget_tell(arena, &bounds, c.program, &c.emitted, isa_load(arena, with.targets[0]));
    if (c.emitted.assembly) tell_assembly(arena, folder, c.model, with.runtime ? runtime_of(&c) : NULL);
}
