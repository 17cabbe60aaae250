/* commands.h: one function a subcommand, and how their options are read. */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "../attnc.h"

/* An option `--name VALUE` (text, list) or `--name` (flag); exactly one pointer is set. */
typedef struct ValueNode {
    const char *text;
    struct ValueNode *next;
} ValueNode;

typedef struct Option {
    const char *name; /* "--target", "-o" */
    const char **text;
    bool *flag;
    ValueNode **list; /* given several times, in order */
} Option;

/* A usage is how the command is called, then a line "  --option VALUE   what it does" for each option. Those of several
 * commands are here. */
#define HELP_WEIGHTS \
    "  --weights F[,F…]     safetensors files, an index.json of such files, a folder with model.safetensors or its\n" \
    "                       index, or a packed .attnw; or random:SEED: drawn from that number with unit scale, for\n" \
    "                       trying" /* its end, or a default, follows */
#define HELP_TARGETS "@TARGETS@ or native, the best of this machine" /* options.c knows them */
#define HELP_TARGET "  --target T           instruction set: " HELP_TARGETS "\n                       (the default)\n"
#define HELP_ENGINE \
    "  --engine E           compiled (the default; needs a C compiler), or interp: no compiler, slow, in double\n"
#define HELP_CC "  --cc CC              the C compiler; without it $CC, else the first there of clang, gcc, cc\n"
#define HELP_THREADS "  --threads N          of the compiled engine, 1 to 256 (1)\n"
#define HELP_VERBOSE "  -v                   names the tensors of the weights' files that are not used"

/* Reads argv after the subcommand, and --color and --help, which every one has; operands go to operand[0..operands-1],
 * all of them required. A mistake prints the reason and how the command is called, and exits 2. */
void options_read(Arena *arena, int argc, char **argv, const char *usage, const Option *options, size_t count,
                  const char **operand, int operands);
_Noreturn void usage_error(const char *usage, const char *format, ...) __attribute__((format(printf, 2, 3)));
void finish_output(void); /* a failure when not all of it could be written to stdout */
int64_t option_integer(const char *usage, const char *name, const char *text, int64_t otherwise, int64_t least,
                       int64_t most);

/* --- amount.c */
const char *amount_text(Arena *arena, double value, const char *unit); /* "12.34 MB" */
const char *duration_text(Arena *arena, double seconds);               /* "1.234 ms": four digits, from ns to s */

/* Every command returns the exit code. */
int command_fmt(int argc, char **argv);
int command_weights(int argc, char **argv);
int command_run(int argc, char **argv);
int command_map(int argc, char **argv);
int command_generate(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_check(int argc, char **argv);
int command_explain(int argc, char **argv);
int command_compile(int argc, char **argv);
int command_import(int argc, char **argv);
int command_pack(int argc, char **argv);

/* What --weights names: .attnw, or whatever weights_load takes. */
Weights *load_weights(Arena *arena, const Module *module, const char *source, bool verbose);

/* Writes the embedded page `name` to `path`, with its @TITLE@, which stands as it is, and its @DATA@, JSON. */
void page_write(Arena *arena, const char *path, const char *name, const char *title, const char *data);
/* A string of that JSON: in quotes; what could end the script or the text is spelled as a number, what is no UTF-8 is
 * U+FFFD. */
void page_string(Text *out, const char *text);

/* --dump=ast,model SPEC: prints the stages that the list names; argv begins at --dump=. */
int command_dump(int argc, char **argv);

#endif
