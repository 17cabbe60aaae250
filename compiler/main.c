/* main.c: the command line: one subcommand a row. */
#include "commands/commands.h"

#include <signal.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    {"compile", command_compile, "write a spec's C: DIR/NAME.c, NAME.h, and NAME.attnw with --weights"},
    {"run", command_run, "run a spec with given weights and inputs"},
    {"map", command_map, "show the attention of a sequence as a page, every layer and head"},
    {"generate", command_generate, "continue a prompt: greedy, sampled, or by beam search"},
    {"check", command_check, "the interpreter against a spec's compiled C"},
    {"explain", command_explain, "what a spec costs: flops, bytes, memory, code, step by step"},
    {"bench", command_bench, "time a spec's C on this machine, beside the measured peak"},
    {"pack", command_pack, "write weights in the layout that the C reads"},
    {"weights", command_weights, "list the tensors of a spec, or write them as a safetensors file"},
    {"import", command_import, "write the spec of a folder of Hugging Face transformers"},
    {"fmt", command_fmt, "print a spec in its canonical layout"},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void print_help(FILE *to) {
    fprintf(to, "attnc %s: from the spec of a transformer to SIMD C\n\nusage: attnc COMMAND …\n\n", ATTNC_VERSION);
    for (int i = 0; i < COMMANDS; i++) fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].help);
    fprintf(to,
            "\nattnc help COMMAND shows its options; attnc --dump=STAGE SPEC shows what a stage makes of a spec.\n");
}

int main(int argc, char **argv) {
    signal(SIGXFSZ, SIG_IGN); /* a file too large is an error of the write, with its name, not the end of the program */
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("attnc %s\n", ATTNC_VERSION);
        return EXIT_FINE;
    }
    bool help = strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0;
    if (help && argc == 2) {
        print_help(stdout);
        return EXIT_FINE;
    }
    if (strncmp(argv[1], "--dump=", 7) == 0 && argc == 3) {
        Arena *arena = arena_new();
        dump_stages(arena, argv[1] + 7, argv[2]);
        arena_free(arena);
        return EXIT_FINE;
    }
    char help_option[] = "--help", *asks_help[] = {help_option};
    const char *wanted = help ? argv[2] : argv[1], *names[COMMANDS + 1] = {0};
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(wanted, commands[i].name) == 0) {
            int status = help ? commands[i].run(1, asks_help) : commands[i].run(argc - 2, argv + 2);
            if (status == EXIT_FINE && (fflush(stdout) || ferror(stdout))) fail("the output cannot be written");
            return status;
        }
        names[i] = commands[i].name;
    }
    const char *near = nearest_word(wanted, names);
    fprintf(stderr, "attnc: unknown command `%s`%s%s%s; attnc help lists them\n", wanted,
            near ? "; did you mean `" : "", near ? near : "", near ? "`?" : "");
    return EXIT_USAGE;
}
