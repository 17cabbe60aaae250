/* dump.c: attnc --dump=STAGE[,STAGE…] SPEC: what a stage made of the spec. */
#include "commands.h"

#include <string.h>

static const char usage[] = "attnc --dump=STAGE[,STAGE…] SPEC";

static void dump_stages(Arena *arena, const char *list, const char *path) {
    static const char *const stages[] = {"ast", "model", "graph", "plan", NULL};
    for (const char *at = list; *at;) {
        size_t length = strcspn(at, ",");
        bool known = false;
        for (int i = 0; stages[i]; i++) known |= strlen(stages[i]) == length && strncmp(stages[i], at, length) == 0;
        if (!known) fail_status(EXIT_USAGE, "--dump knows ast, model, graph and plan, not `%.*s`", (int)length, at);
        at += length + (at[length] == ',');
    }
    Diagnostics diagnostics = diagnostics_new(arena, stderr);
    Ast *ast = parse(arena, source_read(arena, path), &diagnostics);
    if (strstr(list, "ast")) ast_print(stdout, ast);
    Model *model = diagnostics.errors ? NULL : resolve(arena, ast, &diagnostics);
    if (!model) fail("%s: %d error%s", path, diagnostics.errors, diagnostics.errors == 1 ? "" : "s");
    if (strstr(list, "model")) {
        Text text = text_new(arena);
        model_print(&text, model, true);
        printf("%shash %016llx\n", text.data, (unsigned long long)model->hash);
    }
    if (!strstr(list, "graph") && !strstr(list, "plan")) return;
    Module *module = build(arena, model);
    Text text = text_new(arena);
    if (strstr(list, "graph")) {
        graph_print(&text, module, module->forward);
        if (module->encode) graph_print(&text, module, module->encode);
        if (module->decode) graph_print(&text, module, module->decode);
    }
    if (strstr(list, "plan")) program_print(&text, plan_model(arena, module));
    fputs(text.data, stdout);
}

int command_dump(int argc, char **argv) {
    Arena *arena = arena_new();
    const char *list = NULL, *path;
    const Option options[] = {{"--dump", .text = &list}};
    options_read(arena, argc, argv, usage, options, 1, &path, 1);
    dump_stages(arena, list, path);
    arena_free(arena);
    return EXIT_FINE;
}
