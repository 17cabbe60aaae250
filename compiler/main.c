/* main.c: the command line, as a table of subcommands. */
#include "commands/commands.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    void (*run)(Arena *arena, int argc, char **argv);
    const char *help;
} commands[] = {
    {"compile", command_compile, "write the C of a spec: DIR/NAME.c, NAME.h, and NAME.attnw with --weights"},
    {"run", command_run, "run a model with given weights and inputs"},
    {"map", command_map, "show the attention of a sequence, for every layer and head, as a page"},
    {"generate", command_generate, "continue a prompt by greedy search, sampling or beam search"},
    {"embed", command_embed, "write the vectors of the texts of files, as many as there are, to one .npy file"},
    {"check", command_check, "compare the compiled C of a spec with the interpreter"},
    {"compare", command_compare, "measure precisions on given inputs: their errors against f32, bytes and times"},
    {"quantize", command_quantize, "choose the precision of each matrix within a bound on given inputs"},
    {"explain", command_explain, "count flops, bytes, memory and code of a spec, step by step"},
    {"bench", command_bench, "time the C of a spec on this machine and compare it with the measured peak"},
    {"pack", command_pack, "write weights in the layout that the C reads"},
    {"weights", command_weights, "list the tensors of a spec, or write them as a safetensors file"},
    {"import", command_import, "write the spec of a folder of Hugging Face transformers or a GGUF file"},
    {"get", command_get, "make a program of a model's folder or of a GGUF file, in one step"},
    {"python", command_python, "write a model as a package for Python"},
    {"rust", command_rust, "write a model as a crate for Rust"},
    {"page", command_page, "write a model as a page for browsers, with its tokenizer"},
    {"fmt", command_fmt, "print a spec in its canonical layout"},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static const char help_usage[] = "attnc help [COMMAND]", version_usage[] = "attnc --version";

static void print_help(FILE *to) {
    fprintf(to, "attnc %s: from the spec of a transformer to SIMD C\n\nusage: attnc COMMAND …\n\n", ATTNC_VERSION);
    for (int i = 0; i < COMMANDS; i++) fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].help);
    fprintf(to,
            "\nattnc help COMMAND shows the options of a command.\n"
            "attnc --dump=STAGE SPEC prints what a stage makes of a spec.\n"
            "attnc --targets lists the instruction sets and whether this machine runs them.\n"
            "All commands take --color=auto|always|never: colour on a terminal, everywhere, or nowhere.\n");
}

static bool is_one_of(const char *word, const char *a, const char *b, const char *c) {
    return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

static void run_command(Arena *arena, const char *name, int argc, char **argv) {
    const char *names[COMMANDS + 5] = {0};
    for (int i = 0; i < COMMANDS; i++) {
        names[i] = commands[i].name;
        if (strcmp(name, names[i]) != 0) continue;
        commands[i].run(arena, argc, argv);
        return;
    }
    names[COMMANDS] = "help";
    names[COMMANDS + 1] = "--help";
    names[COMMANDS + 2] = "--version";
    names[COMMANDS + 3] = "--targets";
    const char *near = nearest_word(name, names);
    bool spec = !near && strlen(name) > 5 && text_ends(name, ".attn");
    say(stderr, "attnc: unknown command `%s`%s%s%s%s; attnc help lists them\n", name, near ? "; did you mean `" : "",
        near ? near : "", near ? "`?" : "", spec ? ": the command comes before the spec" : "");
    exit(EXIT_USAGE);
}

/* `argv` holds the words behind `help`. */
static void show_help(Arena *arena, int argc, char **argv) {
    char option[] = "--help", *asks_help[] = {option};
    if (argc == 0 || strncmp(argv[0], "--color", 7) == 0) {
        options_read(arena, argc, argv, help_usage, NULL, 0, NULL, 0);
        print_help(stdout);
        return;
    }
    if (argc > 1) usage_error(help_usage, "`%s` is one argument too many", argv[1]);
    if (is_one_of(argv[0], "help", "--help", "-h")) printf("usage: %s\n", help_usage);
    else run_command(arena, argv[0], 1, asks_help);
}

static void show_version(Arena *arena, int argc, char **argv) {
    options_read(arena, argc, argv, version_usage, NULL, 0, NULL, 0);
    printf("attnc %s\n", ATTNC_VERSION);
}

/* `argv` holds the words behind the program's name, at least one. */
static void run(Arena *arena, int argc, char **argv) {
    const char *first = argv[0];
    if (is_one_of(first, "help", "--help", "-h")) show_help(arena, argc - 1, argv + 1);
    else if (strncmp(first, "--dump", 6) == 0 && (!first[6] || first[6] == '=')) command_dump(arena, argc, argv);
    else if (strcmp(first, "--targets") == 0) command_targets(arena, argc - 1, argv + 1);
    else if (is_one_of(first, "--version", "-V", "version")) show_version(arena, argc - 1, argv + 1);
    else run_command(arena, first, argc - 1, argv + 1);
}

int main(int argc, char **argv) {
    signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit of file sizes fails, and its error names the file */
    terminal_report();
    interruptions_watch();
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    Arena *arena = arena_new();
    run(arena, argc - 1, argv + 1);
    arena_free(arena);
    progress_end();
    finish_output();
    return EXIT_FINE;
}
