/* options.c: reads the options of a subcommand. */
#include "commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void finish_output(void) {
    if (fflush(stdout)) fail_system(errno, "the output cannot be written");
    if (ferror(stdout)) fail("the output cannot be written"); /* an earlier write failed, whose errno is lost */
}

_Noreturn void usage_error(const char *usage, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("attnc: ", stderr);
    vsay(stderr, format, args);
    const char *options = strstr(usage, "\n  -");
    fprintf(stderr, "\nusage: %.*s\n", (int)(options ? (size_t)(options - usage) : strlen(usage)), usage);
    va_end(args);
    exit(EXIT_USAGE);
}

static const Option *option_find(const Option *options, size_t count, const char *name, size_t length) {
    for (size_t i = 0; i < count; i++)
        if (strlen(options[i].name) == length && strncmp(options[i].name, name, length) == 0) return &options[i];
    return NULL;
}

static _Noreturn void unknown_option(Arena *arena, const char *usage, const Option *options, size_t count,
                                     const char *name) {
    const char **names = arena_array(arena, count + 3, sizeof *names);
    for (size_t i = 0; i < count; i++) names[i] = options[i].name;
    names[count] = "--color";
    names[count + 1] = "--help";
    const char *near = nearest_word(name, names);
    usage_error(usage, "unknown option `%s`%s%s%s", name, near ? "; did you mean `" : "", near ? near : "",
                near ? "`?" : "");
}

static void take(Arena *arena, const char *usage, const Option *option, const char *value) {
    if (option->text) {
        if (*option->text) usage_error(usage, "`%s` stands twice", option->name);
        *option->text = value;
        return;
    }
    ValueNode *node = arena_alloc(arena, sizeof *node);
    node->text = value;
    ValueNode **tail = option->list;
    while (*tail) tail = &(*tail)->next;
    *tail = node;
}

static const char *with_targets(Arena *arena, const char *usage) {
    enum { NAMES_A_LINE = 6 };
    int n;
    const char *const *targets = target_list(arena, &n);
    Text names = text_new(arena);
    for (int t = 0; t < n; t++) {
        const char *between = t == 0 ? "" : t % NAMES_A_LINE ? ", " : ",\n" HELP_INDENT;
        text_printf(&names, "%s%s", between, targets[t]);
    }
    const char *const words[] = {"@TARGETS@", names.data, "@DEFAULT_TARGETS@",
                                 default_targets(arena, (RowTypes){DTYPE_F32, false}, ARITHMETIC_FREE), NULL};
    return text_filled(arena, usage, words);
}

static const char common[] =
    "  --color=auto|always|never\n"
    "                       colour on a terminal (auto, the default), everywhere, or nowhere\n";

void options_read(Arena *arena, int argc, char **argv, const char *usage, const Option *options, size_t count,
                  const char **operand, int operands) {
    int found = 0;
    bool only_operands = false;
    const char *choice = NULL;
    const Option color = {"--color", .text = &choice};
    for (int i = 0; i < argc; i++) {
        const char *arg = argv[i];
        if (only_operands || arg[0] != '-' || !arg[1]) {
            if (found == operands) usage_error(usage, "`%s` is one argument too many", arg);
            operand[found++] = arg;
            continue;
        }
        if (strcmp(arg, "--") == 0) {
            only_operands = true;
            continue;
        }
        if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
            printf("usage: %s\n%s", with_targets(arena, usage), common);
            finish_output();
            exit(EXIT_FINE);
        }
        const char *equal = strncmp(arg, "--", 2) == 0 ? strchr(arg, '=') : NULL;
        size_t length = equal ? (size_t)(equal - arg) : strlen(arg);
        const Option *option = option_find(options, count, arg, length);
        if (!option) option = option_find(&color, 1, arg, length);
        if (!option) unknown_option(arena, usage, options, count, arena_copy(arena, arg, length));
        if (option->flag) {
            if (equal) usage_error(usage, "`%s` takes no value", option->name);
            *option->flag = true;
        } else if (equal) {
            take(arena, usage, option, equal + 1);
        } else if (i + 1 < argc) {
            take(arena, usage, option, argv[++i]);
        } else {
            usage_error(usage, "`%s` wants a value", option->name);
        }
    }
    if (choice) color_choose((Color)option_word(usage, "--color", choice, color_words, COLOR_AUTO));
    if (found < operands) usage_error(usage, "%s is missing", found == 0 ? "the first argument" : "an argument");
}

Precision option_precision(Arena *arena, const char *usage, const char *name, const char *text) {
    Precision precision = {.weights = {.dtype = DTYPE_F32}};
    const char *why;
    switch (text ? precision_read(arena, text, &precision, &why) : PRECISION_FINE) {
    case PRECISION_FINE: break;
    case PRECISION_WRONG: usage_error(usage, "`%s %s`: %s", name, text, why);
    case PRECISION_LATER: fail_status(EXIT_CANNOT, "`%s %s`: %s", name, text, why);
    }
    return precision;
}

int option_ranks(const char *usage, const char *text) {
    return (int)option_integer(usage, "--ranks", text, 0, 1, MOST_RANKS);
}

int64_t option_integer(const char *usage, const char *name, const char *text, int64_t otherwise, int64_t least,
                       int64_t most) {
    if (!text) return otherwise;
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || *end || end == text || value < least || value > most)
        usage_error(usage, "`%s` wants an integer from %lld to %lld, found `%s`", name, (long long)least,
                    (long long)most, text);
    return value;
}

int option_word(const char *usage, const char *name, const char *text, const char *const *words, int otherwise) {
    if (!text) return otherwise;
    for (int i = 0; words[i]; i++)
        if (strcmp(text, words[i]) == 0) return i;
    Text known = text_new(arena_new());
    for (int i = 0; words[i]; i++) text_printf(&known, "%s%s", i ? words[i + 1] ? ", " : " or " : "", words[i]);
    usage_error(usage, "`%s` is %s, not `%s`", name, known.data, text);
}

/* ---------------------------------------------------------------- files by name */

const char *split_assignment(Arena *arena, const char *usage, const char *option, const char *text, char **name) {
    const char *equal = strchr(text, '=');
    if (!equal || equal == text || !equal[1]) usage_error(usage, "`%s` wants NAME=FILE, found `%s`", option, text);
    *name = arena_copy(arena, text, (size_t)(equal - text));
    return equal + 1;
}

static NamedFile *named_files(Arena *arena, const char *usage, const char *option, const ValueNode *nodes) {
    NamedFile *files = NULL, **last = &files;
    for (const ValueNode *node = nodes; node; node = node->next, last = &(*last)->next) {
        char *name;
        const char *path = split_assignment(arena, usage, option, node->text, &name);
        *last = arena_alloc(arena, sizeof **last);
        **last = (NamedFile){.name = name, .path = path, .layer = -1};
    }
    return files;
}

NamedFile *row_files(Arena *arena, const char *usage, const ValueNode *nodes, NamedFile *inputs) {
    NamedFile *files = named_files(arena, usage, "--rows", nodes), **last = &files;
    for (; *last; last = &(*last)->next) (*last)->whole = true;
    *last = inputs;
    return files;
}

NamedFile *input_files(Arena *arena, const char *usage, const ValueNode *nodes) {
    return named_files(arena, usage, "--in", nodes);
}

NamedFile *output_files(Arena *arena, const char *usage, const ValueNode *nodes) {
    NamedFile *files = named_files(arena, usage, "--out", nodes);
    for (NamedFile *file = files; file; file = file->next) {
        const char *dot = strchr(file->name, '.');
        if (!dot) continue;
        file->layer = (int)option_integer(usage, "--out NAME.LAYER", dot + 1, 0, 0, 100000);
        file->name = arena_copy(arena, file->name, (size_t)(dot - file->name));
    }
    return files;
}

const char *const *option_targets(Arena *arena, const char *usage, const char *list, int *n) {
    int n_here;
    *n = 0;
    const char *const *here = targets_here(arena, (RowTypes){DTYPE_F32, false}, &n_here);
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
