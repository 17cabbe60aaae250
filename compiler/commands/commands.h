/* commands.h: a function for each subcommand, and the reading of their options. */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "../engine/engine.h"
#include "terminal.h"

/* A value of an option that may be given several times, in the order of the command line. */
typedef struct ValueNode {
    const char *text;
    struct ValueNode *next;
} ValueNode;

/* An option `--name VALUE` (text, list) or `--name` (flag); exactly one pointer is set. */
typedef struct Option {
    const char *name; /* "--target", "-o" */
    const char **text;
    bool *flag;
    ValueNode **list;
} Option;

/* A usage text shows how the command is called and then, for each option, a line "  --option VALUE   what it does". The
 * lines that several commands share are here; a command adds the end of the sentence, or a default, to HELP_WEIGHTS. */
#define HELP_WEIGHTS \
    "  --weights F[,F…]     safetensors files, checkpoints of PyTorch, an index.json of such files, a folder with\n" \
    "                       model.safetensors, pytorch_model.bin or an index of one, a GGUF file, or a packed\n" \
    "                       .attnw; random:SEED draws weights of unit scale from that seed. NAME=F puts `NAME.`\n" \
    "                       in front of the names of that file's tensors"
#define HELP_INDENT "                       "
#define HELP_RANKS \
    "  --ranks N            divides the model among N processes, each of which has its own columns of the matrices;\n" \
    "                       the results have the bits of one process\n"
#define HELP_PRECISION \
    "  --precision P        types of numbers in blocks of the spec that state none: f32 (default), bf16, int8, or\n" \
    "                       weights=f32, bf16, f16, int8, int8:G, int4:G or int4:G:offset with G = 32, 64 or 128,\n" \
    "                       the last three with scales of f16 as int8:G:halves, int4:G:halves, …;\n" \
    "                       activations=int8, int8:smooth or int8:smooth:N beside weights of integers, with N\n" \
    "                       outlier columns, 1 to 14; attention=bf16 or int8; cache=bf16, f16 or int8 for the\n" \
    "                       keys and values of a decoder; bf16 and int8 are such weights and activations with\n" \
    "                       attention=bf16, int4 is weights=int4:32\n"
#define HELP_REPRODUCIBLE \
    "  --reproducible       the same bits on every target, for any number of threads and batches; models\n" \
    "                       whose weights or rows are f32 run on targets with a fused multiply-add: avx2,\n" \
    "                       avx512, neon, cm55, sve, rvv, and those based on them\n"
#define HELP_TARGETS "@TARGETS@ or native, the best of this machine" /* options.c puts in the names */
#define HELP_TARGET "  --target T           instruction set: " HELP_TARGETS "\n" HELP_INDENT "(default)\n"
#define HELP_ENGINE \
    "  --engine E           compiled (default; needs a C compiler), or interp: slow, in double, without a compiler\n"
#define HELP_CC \
    "  --cc CC              C compiler, with or without options of it (default: $CC, or the first of clang, gcc\n" \
    HELP_INDENT "and cc that exists)\n"
#define HELP_THREADS "  --threads N          threads of the compiled engine, 1 to 256 (default: 1)\n"
#define HELP_VERBOSE "  -v                   lists the unused tensors of the weights' files"

/* Reads the arguments after the subcommand, including --color and --help, which all subcommands have. All of
 * operand[0..operands-1] are required. On a mistake it prints the reason and the first part of the usage text, and
 * exits with status 2. */
void options_read(Arena *arena, int argc, char **argv, const char *usage, const Option *options, size_t count,
                  const char **operand, int operands);
_Noreturn void usage_error(const char *usage, const char *format, ...) __attribute__((format(printf, 2, 3)));
void finish_output(void); /* fails when stdout could not be written */
int64_t option_integer(const char *usage, const char *name, const char *text, int64_t otherwise, int64_t least,
                       int64_t most);

/* The index of the text in `words`, which NULL ends, or `otherwise` where there is no text. */
int option_word(const char *usage, const char *name, const char *text, const char *const *words, int otherwise);

/* The value of an option; NULL is f32. What attnc does not support yet is a failure, EXIT_CANNOT. */
/* The number of processes that share a model; 0 without text. */
int option_ranks(const char *usage, const char *text);
Precision option_precision(Arena *arena, const char *usage, const char *name, const char *text);
/* The parts of "scalar,avx2", with `native` replaced by the name of that target; refuses an unknown or repeated one. */
const char *const *option_targets(Arena *arena, const char *usage, const char *list, int *n);

/* Splits NAME=FILE and returns FILE; a missing `=` is a usage error. */
const char *split_assignment(Arena *arena, const char *usage, const char *option, const char *text, char **name);
/* The files of --in NAME=F.npy. */
NamedFile *input_files(Arena *arena, const char *usage, const ValueNode *nodes);
/* The files of --rows NAME=F.npy, which have the rows of whole texts, followed by the inputs. */
NamedFile *row_files(Arena *arena, const char *usage, const ValueNode *nodes, NamedFile *inputs);
/* The files of --out NAME=F.npy or NAME.LAYER=F.npy. */
NamedFile *output_files(Arena *arena, const char *usage, const ValueNode *nodes);

/* --- run.c: the options of the commands that run a batch; NULL when an option is not given. */
typedef struct RunOptions {
    const char *weights, *precision, *engine, *target, *cc, *threads;
    bool verbose, reproducible;
    bool interpreted; /* set by run_check */
    int thread_count; /* set by run_check */
} RunOptions;

void run_check(RunOptions *run, const char *usage); /* a missing or wrong option is a usage error */
/* Loads the weights, and compiles the model unless it is interpreted; *engine is NULL then. */
Weights *run_load(Compilation *c, const RunOptions *run, Engine **engine);
/* Loads the weights, runs the batch in the interpreter or compiled, and sets the outputs of each sequence. */
void run_batch(Compilation *c, const RunOptions *run, Batch *batch);

/* --- amount.c */
const char *amount_text(Arena *arena, double value, const char *unit); /* "12.34 MB" */
const char *duration_text(Arena *arena, double seconds);               /* "1.234 ms": four digits, in ns to s */

/* A command that does not succeed ends the program, and what a command takes from the arena lives until that end. */
void command_fmt(Arena *arena, int argc, char **argv);
void command_weights(Arena *arena, int argc, char **argv);
void command_run(Arena *arena, int argc, char **argv);
void command_map(Arena *arena, int argc, char **argv);
void command_generate(Arena *arena, int argc, char **argv);
void command_bench(Arena *arena, int argc, char **argv);
void command_check(Arena *arena, int argc, char **argv);
void command_compare(Arena *arena, int argc, char **argv);
void command_quantize(Arena *arena, int argc, char **argv);
void command_explain(Arena *arena, int argc, char **argv);
void command_compile(Arena *arena, int argc, char **argv);
void command_import(Arena *arena, int argc, char **argv);
void command_get(Arena *arena, int argc, char **argv);
void command_pack(Arena *arena, int argc, char **argv);
void command_python(Arena *arena, int argc, char **argv);
void command_rust(Arena *arena, int argc, char **argv);
void command_page(Arena *arena, int argc, char **argv);
void command_embed(Arena *arena, int argc, char **argv);

/* --- get.c */
struct ImportOptions;
struct Imported;
/* Imports the model of a folder or a GGUF file, with a pool where nothing else makes a vector of its rows. `folder` is
 * where the spec will be; `precision` may be NULL. */
Compilation import_model(Arena *arena, const char *source, const char *folder, const struct ImportOptions *with,
                         const Precision *precision, struct Imported *imported);

/* --- compile.c */
typedef struct CompileOptions {
    const char *usage;           /* of the command, for errors */
    const char *target, *weights; /* as the options name them; NULL without */
    const struct Budget *budget; /* of footprint.h; NULL without */
    const char *const *targets;  /* [n_targets] of `target` */
    int n_targets;
    const char *words;           /* further words of the command, for the head of the C */
    bool loops, embed, runtime, verbose;
    bool parents;                /* the folders above that of the files are made too */
} CompileOptions;

/* Writes NAME.c, NAME.h and what the options ask for into the folder. The files are held: outputs_release renames them,
 * and others that are written meanwhile. The spec is at STAGE_MODEL or later. */
void compile_write(Compilation *c, const char *folder, const CompileOptions *with);
/* Fails where the model has the name of files of the runtime, which are written to the same folder. */
void check_model_name(const Compilation *c, const char *what);
void write_embedded(Arena *arena, const char *folder, const char *const *names); /* files of the runtime, up to NULL */
void make_folders(Arena *arena, const char *folder); /* as output_folder, with all folders above it */

/* --- import.c: the keys of all --ignore-key options, ended by NULL; an empty name is a usage error. */
const char *const *ignored_keys(Arena *arena, const char *usage, const ValueNode *nodes);
/* The word of --name; NULL without it, and a usage error where it names no model. */
const char *name_option(Arena *arena, const char *usage, const char *name);

/* --- load.c */
/* Takes a spec to a stage; errors of the spec are printed and end the program. */
Compilation spec_load(Arena *arena, const char *path, Precision precision, Stage last);
void spec_compile(Compilation *c, Stage last);
/* Takes a spec to STAGE_PLAN for the n targets that the command names. Without targets, the plan is not one for a
 * microcontroller. */
void spec_plan(Compilation *c, const char *const *targets, int n);
/* Loads the weights that --weights names, from a .attnw file or from anything that weights_load accepts. The spec must
 * be at STAGE_REWRITE or later, and its stage does not change. `whole` is false for what only packs the weights, which
 * are then read one at a time, as weights_open says. */
/* F.0.attnw, F.1.attnw, …, for the path F.attnw: [ranks]. */
const char *const *rank_paths(Arena *arena, const char *path, int ranks);
Weights *load_weights(Compilation *c, const char *source, bool verbose, bool whole);

Arithmetic arithmetic_of(const Compilation *c); /* of the interpreter; the spec must be at STAGE_REWRITE */

/* --- page.c: writes the embedded page `name` to `path`, with `title` for @TITLE@, verbatim, JSON for @DATA@, and the
 * files that pages share for @HEAD@, @STYLE@, @ELEMENTS@ and @DRAWING@. */
void page_write(Arena *arena, const char *path, const char *name, const char *title, const char *data);
/* Adds a quoted string to that JSON. Characters that could end the script or the string become \u escapes, and bytes
 * that are not UTF-8 become U+FFFD. */
void page_string(Text *out, const char *text);
/* Adds `before`, which is a bracket or a comma, and "key":"text"; a text that is NULL becomes null. */
void page_member(Text *out, const char *before, const char *key, const char *text);

/* attnc --targets prints a line `NAME runs|no` for each target; argv begins after --targets. */
void command_targets(Arena *arena, int argc, char **argv);

/* attnc --dump=ast,model SPEC prints the stages of the list; argv begins at --dump=. */
void command_dump(Arena *arena, int argc, char **argv);

#endif
