/* package.c: attnc python and attnc rust write a model as a package for another language. */
#include "../engine/cc.h"
#include "../package/package.h"
#include "../project/project.h"
#include "text_input.h"

#include <stdlib.h>
#include <string.h>

static const char python_usage[] =
    "attnc python SPEC|FOLDER|FILE.gguf -o DIR [--weights F[,F…]|random:SEED] [--tokenizer F]\n"
    "                 [--target T[,T…]] [--precision P] [--reproducible] [--name NAME] [--wheel]\n" HELP_WEIGHTS ";\n"
    "                       the package contains them\n" HELP_TOKENIZER
    "  --target T[,T…]      instruction sets, as of attnc compile (default: @DEFAULT_TARGETS@)\n" HELP_PRECISION
    HELP_REPRODUCIBLE
    "  --name NAME          name of the model that is imported, as of attnc get, from a folder of Hugging Face\n"
    "                       transformers or a GGUF file; its weights and tokenizer are taken from there\n"
    "  --wheel              also builds DIR/NAME-….whl, which `pip install` takes on machines of the same kind, with\n"
    "                       the setuptools of $PYTHON or python3, which need no network\n"
    "  -o DIR               folder for the package, which `pip install DIR` builds; it is created if it does not\n"
    "                       exist";

static const char rust_usage[] =
    "attnc rust SPEC [--weights F[,F…]|random:SEED] [--tokenizer F] -o DIR [--target T[,T…]]\n"
    "                 [--precision P] [--reproducible]\n"
    "  -o DIR               folder for the crate, in which `cargo build` works; it is created if it does not exist\n"
    HELP_WEIGHTS ";\n"
    "                       the crate contains them\n" HELP_TOKENIZER HELP_PRECISION HELP_REPRODUCIBLE
    "  --target T[,T…]      instruction sets, as of attnc compile (default: @DEFAULT_TARGETS@)";

/* The C, what is beside it, and all texts of the package, which appear together. */
static void write_package(Compilation *c, const PackageKind *kind, const char *folder, CompileOptions *with,
                          const TokenizerFile *tokenizer) {
    Arena *arena = c->arena;
    spec_plan(c, with->targets, with->n_targets);
    const Package package = {arena, c, with->weights != NULL, tokenizer->name};
    const PackageFile *files = kind->files(&package);
    const char *to = arena_printf(arena, "%s/%s", folder, kind->c_folder ? kind->c_folder : c->model->name);
    with->parents = true;
    compile_write(c, to, with);
    write_embedded(arena, to, runtime_files(arena, reads_sound(c->model) ? RUNTIME_SOUND : RUNTIME_SEARCH));
    if (tokenizer->path) {
        const char *sources = arena_printf(arena, "%s/tokenizer", to);
        tokenizer_write(arena, tokenizer, to);
        output_folder(arena, sources);
        write_embedded(arena, sources, tokenizer_files);
    }
    for (; files->path; files++) {
        const char *path = arena_printf(arena, "%s/%s", folder, files->path);
        make_folders(arena, arena_copy(arena, path, (size_t)(strrchr(path, '/') - path)));
        write_text(arena, path, files->text);
    }
    outputs_release();
    progress_end();
}

/* The model of a folder of transformers or of a GGUF file, with its weights and, where it reads tokens, its tokenizer.
 */
static Compilation imported(Arena *arena, const char *path, const char *folder, const ImportOptions *import,
                            const Precision *precision, CompileOptions *with, const char **tokenizer) {
    Imported found;
    if (with->weights)
        usage_error(with->usage, "`--weights`: an imported model has the weights of its folder or its GGUF file");
    Compilation c = import_model(arena, path, folder, import, precision, &found);
    const bool reads = !c.model->alone && project_text_stack(c.model)->vocab;
    if (found.precision_note) report_note("%s", found.precision_note);
    with->weights = found.weights;
    if (reads && !*tokenizer) *tokenizer = found.folder ? found.folder : path;
    return c;
}

/* Builds the wheel of a package by the Python that the environment names, into the package's folder. What setuptools
 * writes on the way goes into a folder that is removed. */
static void build_wheel(Arena *arena, const char *folder) {
    const char *given = getenv("PYTHON"), *python = given && *given ? given : "python3";
    if (!cc_exists(arena, python))
        fail("%s: the package is written, but `--wheel` needs Python, and `%s` is not there", folder, python);
    const char *const arguments[] = {"-c", embedded_file("python_wheel.py.tmpl"), folder, NULL};
    progress_begin("building a wheel of %s", folder);
    if (run_program(folder_new(arena), cc_words(arena, python, arguments)) != 0)
        fail("%s: the package is written, but its wheel could not be built", folder);
    progress_end();
}

static void package_command(Arena *arena, int argc, char **argv, const char *usage, const PackageKind *kind) {
    const char *path, *folder = NULL, *precision = NULL, *tokenizer = NULL, *name = NULL;
    bool reproducible = false, wheel = false;
    CompileOptions with = {.usage = usage};
    const Option options[] = {{"-o", .text = &folder}, {"--target", .text = &with.target},
                              {"--weights", .text = &with.weights}, {"--tokenizer", .text = &tokenizer},
                              {"--precision", .text = &precision}, {"--reproducible", .flag = &reproducible},
                              {"--name", .text = &name}, {"--wheel", .flag = &wheel}};
    enum { OF_PYTHON = 2 }; /* the last options are of packages for Python alone */
    const bool imports = kind == &package_python;
    const size_t count = sizeof options / sizeof *options - (imports ? 0 : OF_PYTHON);
    options_read(arena, argc, argv, usage, options, count, &path, 1);
    if (!folder || !*folder) usage_error(usage, "`-o DIR` is missing");
    if (with.target) with.targets = option_targets(arena, usage, with.target, &with.n_targets);
    const Precision wanted = option_precision(arena, usage, "--precision", precision);
    const ImportOptions import = {.name = name_option(arena, usage, name),
                                  .numbers = precision ? NUMBERS_CHOSEN : NUMBERS_SMALL};
    const bool whole = imports && (folder_exists(path) || (file_exists(path) && gguf_is(arena, path)));
    if (name && !whole) usage_error(usage, "`--name`: a spec has its own name");
    Compilation c = whole ? imported(arena, path, folder, &import, precision ? &wanted : NULL, &with, &tokenizer)
                          : spec_load(arena, path, wanted, STAGE_MODEL);
    check_model_name(&c, "package");
    if (c.model->alone && c.model->alone->attention.exports_lse)
        fail_status(EXIT_CANNOT, "%s: a package has no output `lse` yet", path);
    c.reproducible = reproducible;
    with.words = precision && !whole ? arena_printf(arena, " --precision %s", precision) : "";
    TokenizerFile file = {0};
    if (tokenizer) file = tokenizer_find(arena, tokenizer, c.model);
    write_package(&c, kind, folder, &with, &file);
    if (wheel) build_wheel(arena, folder);
}

void command_python(Arena *arena, int argc, char **argv) {
    package_command(arena, argc, argv, python_usage, &package_python);
}

void command_rust(Arena *arena, int argc, char **argv) {
    package_command(arena, argc, argv, rust_usage, &package_rust);
}
