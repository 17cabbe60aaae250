/* options.c: reading a subcommand's options. */
#include "commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void finish_output(void) {
    if (fflush(stdout)) fail_system(errno, "the output cannot be written");
    if (ferror(stdout)) fail("the output cannot be written"); /* earlier, and nobody kept the reason */
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

/* `usage` with the names of all targets where it says @TARGETS@. */
static const char *with_targets(Arena *arena, const char *usage) {
    static const char mark[] = "@TARGETS@";
    const char *at = strstr(usage, mark);
    if (!at) return usage;
    return arena_printf(arena, "%.*s%s%s", (int)(at - usage), usage, target_names(arena, ", "), at + sizeof mark - 1);
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
    if (choice && !color_choose(choice))
        usage_error(usage, "`--color` is auto, always or never, not `%s`", choice);
    if (found < operands) usage_error(usage, "%s is missing", found == 0 ? "the first argument" : "an argument");
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
