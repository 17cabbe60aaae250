/* dump.c: attnc --dump=STAGE[,STAGE…] SPEC prints what the stages make of a spec. */
#include "commands.h"

#include "../lower/lower.h"

#include <string.h>

static const char usage[] =
    "attnc --dump=STAGE[,STAGE…] SPEC [--target T[,T…]] [--ranks N]\n"
    "  STAGE                ast, model, graph, rewrite (the graphs after the passes), plan or schedule\n"
    "  --target T[,T…]      targets of the schedule: " HELP_TARGETS "\n"
    "                       (default: @DEFAULT_TARGETS@)\n"
    "  --ranks N            the model as N processes share it";

static const char *const names[] = {
    [STAGE_AST] = "ast", [STAGE_MODEL] = "model", [STAGE_GRAPH] = "graph",
    [STAGE_REWRITE] = "rewrite", [STAGE_PLAN] = "plan", [STAGE_SCHEDULE] = "schedule"};

enum { STAGES = sizeof names / sizeof *names };

typedef struct Dump {
    bool shown[STAGES];
    Stage last; /* the last stage to run: at least the graph, so that all errors of the spec are printed */
} Dump;

static Dump read_stages(const char *list) {
    Dump dump = {.last = STAGE_GRAPH};
    for (const char *at = list; *at;) {
        size_t length = strcspn(at, ",");
        int stage = STAGE_AST;
        while (stage < STAGES && (strlen(names[stage]) != length || strncmp(names[stage], at, length) != 0)) stage++;
        if (stage == STAGES)
            fail_status(EXIT_USAGE, "--dump knows ast, model, graph, rewrite, plan and schedule, not `%.*s`",
                        (int)length, at);
        dump.shown[stage] = true;
        if (stage > (int)dump.last) dump.last = (Stage)stage;
        at += length + (at[length] == ',');
    }
    return dump;
}

static void print_stage(const Compilation *c, void *with) {
    const Dump *dump = with;
    if (!dump->shown[c->stage]) return;
    Text text = text_new(c->arena);
    if (c->stage == STAGE_AST) {
        ast_print(&text, c->ast);
        say(stdout, "%s", text.data); /* a spec may hold any character */
        return;
    }
    if (c->stage == STAGE_MODEL && c->model) {
        model_print(&text, c->model, true);
        text_printf(&text, "hash %016llx\n", (unsigned long long)c->model->hash);
    }
    if ((c->stage == STAGE_GRAPH || c->stage == STAGE_REWRITE) && c->module) module_print(&text, c->module);
    if (c->stage == STAGE_PLAN) program_print(&text, c->program);
    for (int t = 0; c->stage == STAGE_SCHEDULE && c->schedules[t]; t++) schedule_print(&text, c->schedules[t]);
    fputs(text.data, stdout);
}

void command_dump(Arena *arena, int argc, char **argv) {
    int n_targets = 0;
    const char *list = NULL, *path, *target = NULL, *ranks = NULL;
    const Option options[] = {{"--dump", .text = &list}, {"--target", .text = &target}, {"--ranks", .text = &ranks}};
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, &path, 1);
    Dump dump = read_stages(list);
    const char *const *targets = target ? option_targets(arena, usage, target, &n_targets) : NULL;
    Compilation c = compilation_new(arena, source_read(arena, path));
    c.ranks = option_ranks(usage, ranks);
    c.after = print_stage;
    c.with = &dump;
    spec_compile(&c, dump.last < STAGE_REWRITE ? dump.last : STAGE_REWRITE);
    if (!target) {
        target = default_targets(arena, graph_row_types(c.module->entries[ENTRY_FORWARD]), ARITHMETIC_FREE);
        targets = option_targets(arena, usage, target, &n_targets);
    }
    c.options.targets = targets;
    c.options.n_targets = n_targets;
    spec_compile(&c, dump.last);
}
