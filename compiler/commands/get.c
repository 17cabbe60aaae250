/* get.c: attnc get imports a model, compiles it, and writes and builds a program for what its config names. */
#include "../engine/cc.h"
#include "../project/project.h"
#include "commands.h"

#include <string.h>

static const char usage[] =
    "attnc get FOLDER|FILE.gguf -o DIR [--precision P] [--nearest] [--target T[,T…]]\n"
    "                 [--name NAME] [--part PART] [--seq N] [--ignore-key K] [--cc CC] [--no-build] [--force]\n"
    "  -o DIR               folder for the program: the spec NAME.attn, NAME.c, NAME.h, the weights NAME.attnw,\n"
    "                       the tokenizer's file, main.c, the runtime and a Makefile that builds DIR/NAME. It is\n"
    "                       created if it does not exist. The program takes texts as arguments or as lines of\n"
    "                       standard input, and prints for each what the config names: a vector as a JSON array;\n"
    "                       LABEL, a tab and its probability; the score of a pair `query<tab>text`; a text with its\n"
    "                       continuation; or what a decoder writes for it. That of a Whisper takes files of sound,\n"
    "                       and prints their words\n" HELP_PRECISION
    "  --nearest            quantized numbers that only f32 holds become the nearest integers, as of attnc import;\n"
    "                       without --precision this is so anyway, and a note says it with the sizes of both files.\n"
    "                       --precision f32 keeps all numbers\n"
    "  --target T[,T…]      instruction sets, as of attnc compile (default: @DEFAULT_TARGETS@)\n"
    "  --name NAME          name of the model and of the program (default: the name of the folder or file)\n"
    "  --part PART          the part of a model of several parts, such as `text` of CLIP\n"
    "  --seq N              largest number of rows of a sequence, as of attnc import\n"
    "  --ignore-key K[,K…]  ignores keys of the config, as attnc import does\n" HELP_CC
    "  --no-build           writes the files alone; otherwise the program is built, and run on an example\n"
    "  --force              overwrites also a main.c or a Makefile that was changed";

static void check_name(const char *name) {
    if (project_name_taken(name)) usage_error(usage, "`--name`: %s is a name of other files of the program", name);
}

/* Refuses to write over a file that people change, unless it is as attnc wrote it. */
static void check_unchanged(Arena *arena, const char *folder, const char *name) {
    enum { MOST = 1 << 24 };
    size_t size;
    const char *path = arena_printf(arena, "%s/%s", folder, name);
    if (!file_exists(path)) return;
    const char *text = file_read(arena, path, MOST, &size);
    if (!project_mark_holds(arena, text, size))
        fail("%s: it is not as attnc get wrote it, and is overwritten only with `--force`", path);
}

static Compilation resolved(Arena *arena, const char *path, const char *text) {
    Compilation c = compilation_new(arena, source_from_text(arena, path, text, strlen(text)));
    spec_compile(&c, STAGE_MODEL);
    return c;
}

Compilation import_model(Arena *arena, const char *source, const char *folder, const ImportOptions *with,
                         const Precision *precision, Imported *imported) {
    *imported = import_spec(arena, source, folder, with);
    const char *text = imported->spec;
    report_lines(imported->notes);
    if (precision) text = project_precision(arena, text, precision);
    Compilation c = resolved(arena, folder, text);
    if (project_needs_pool(imported, c.model)) {
        const char *head = c.model->encoder ? "head pool mean l2" : "head pool last l2";
        report_note("The folder does not say how rows become a vector: the program's spec has `%s`.", head);
        c = resolved(arena, folder, project_head(arena, text, head));
    }
    c.source->path = arena_printf(arena, "%s.attn", c.model->name);
    return c;
}

/* Writes all files of the program together. */
static void write_project(const Project *p, Compilation *c, const char *folder, const CompileOptions *with,
                          const char *cc) {
    Arena *arena = p->arena;
    const char *tokenizer = arena_printf(arena, "%s/tokenizer", folder);
    const char *program = project_main(p), *makefile = project_makefile(p, cc_for_make(arena, cc));
    compile_write(c, folder, with);
    output_folder(arena, tokenizer);
    write_embedded(arena, tokenizer, project_sources(p, true));
    write_embedded(arena, folder, project_sources(p, false));
    tokenizer_write(arena, &p->tokenizer, folder);
    write_text(arena, arena_printf(arena, "%s/%s.attn", folder, c->model->name), c->source->text);
    write_text(arena, arena_printf(arena, "%s/main.c", folder), program);
    write_text(arena, arena_printf(arena, "%s/Makefile", folder), makefile);
    if (p->task == TASK_TRANSCRIBE) project_tone_write(arena, arena_printf(arena, "%s/" EXAMPLE_SOUND, folder));
    outputs_release();
    progress_end();
}

/* Says that numbers were rounded, with the sizes of the files that hold them before and after. */
static void tell_rounded(const Compilation *c, const Imported *imported, const char *source, const char *folder) {
    if (!imported->rounded) return;
    report_note("Numbers that only f32 holds are rounded to the nearest ones, %s: %s has %lld bytes, and %s/%s.attnw "
                "%lld; --precision f32 keeps them, and attnc compare shows what the rounding changes.",
                imported->rounded, source, (long long)imported->file_bytes, folder, c->model->name,
                (long long)packed_file_bytes(c->program));
}

/* Runs a program that prints a vector, and shows its first numbers and how many there are. */
static bool show_vector(Arena *arena, const char *program, const char *example) {
    enum { SHOWN = 4, MOST = 1 << 26 };
    static const char script[] = "exec \"$0\" \"$1\" >\"$2\"";
    const char *out = folder_file(folder_new(arena), "vector");
    if (run_program(NULL, (const char *const[]){"sh", "-c", script, program, example, out, NULL}) != 0) return false;
    size_t size;
    const char *text = file_read(arena, out, MOST, &size), *at = text;
    int count = 1;
    for (const char *comma = text; (comma = strchr(comma, ',')); comma++, count++)
        if (count <= SHOWN) at = comma;
    if (count <= 2 * SHOWN) say(stdout, "%s", text);
    else say(stdout, "%.*s, … %d numbers]\n", (int)(at - text), text, count);
    return true;
}

static void build_and_show(const Project *p, const char *folder) {
    const char *name = p->model->name, *example = project_example(p, folder);
    const char *program = arena_printf(p->arena, "%s/%s", folder, name);
    const char *const make[] = {"make", "-s", "-C", folder, name, NULL};
    progress_begin("building %s", program);
    if (run_program(folder_new(p->arena), make) != 0)
        fail("%s: the files are written, but `make -C %s` failed; it needs make, a C compiler, and the libraries that "
             "the Makefile names", folder, folder);
    progress_end();
    say(stdout, "%s '%s'\n", program, example);
    const char *path = strchr(program, '/') ? program : arena_printf(p->arena, "./%s", program);
    if (p->task == TASK_EMBED ? !show_vector(p->arena, path, example)
                              : run_program(NULL, (const char *const[]){path, example, NULL}) != 0)
        fail("%s: the program is built, but its example failed", program);
}

void command_get(Arena *arena, int argc, char **argv) {
    const char *source = NULL, *folder = NULL, *name = NULL, *part = NULL, *seq = NULL, *precision = NULL, *cc = NULL;
    bool no_build = false, nearest = false, force = false;
    ValueNode *ignored = NULL;
    CompileOptions with = {.usage = usage, .words = ""};
    const Option options[] = {{"-o", .text = &folder}, {"--name", .text = &name}, {"--part", .text = &part},
                              {"--seq", .text = &seq}, {"--ignore-key", .list = &ignored},
                              {"--precision", .text = &precision}, {"--target", .text = &with.target},
                              {"--cc", .text = &cc}, {"--no-build", .flag = &no_build},
                              {"--nearest", .flag = &nearest}, {"--force", .flag = &force}};
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, &source, 1);
    if (!folder || !*folder) usage_error(usage, "`-o DIR` is missing");
    if (nearest && precision) usage_error(usage, "`--nearest` and `--precision` each choose the precision");
    if (name_option(arena, usage, name)) check_name(name);
    for (int i = 0; i < 2 && !force; i++) check_unchanged(arena, folder, i ? "Makefile" : "main.c");
    if (!name) name = project_name(arena, source, part);
    const ImportOptions import = {name, part, option_integer(usage, "--seq", seq, 0, 1, INT32_MAX),
                                  ignored_keys(arena, usage, ignored), {0},
                                  nearest ? NUMBERS_NEAREST : precision ? NUMBERS_CHOSEN : NUMBERS_SMALL};
    const Precision wanted = option_precision(arena, usage, "--precision", precision);
    if (with.target) with.targets = option_targets(arena, usage, with.target, &with.n_targets);
    cc = cc_find(arena, cc, false);
    Project p = {.arena = arena, .source = source};
    Compilation c = import_model(arena, source, folder, &import, precision ? &wanted : NULL, &p.imported);
    p.model = c.model;
    project_task(&p);
    p.tokenizer = tokenizer_find(arena, p.imported.folder ? p.imported.folder : source, p.model);
    project_languages(&p);
    with.weights = p.imported.weights;
    write_project(&p, &c, folder, &with, cc);
    tell_rounded(&c, &p.imported, source, folder);
    if (!no_build) build_and_show(&p, folder);
}
