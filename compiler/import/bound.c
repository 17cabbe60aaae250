/* bound.c: the most rows of a sequence, and what the rows that were cut off would cost. */
#include "import.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BOUND = 2048 };

/* The rows that the config allows and its tokenizer gives; 0: neither says. The variable `positions` is what the
 * config allows. */
static int64_t rows_allowed(const Import *import) {
    const char *text = variable_get(import, "positions", 9);
    int64_t positions = text ? strtoll(text, NULL, 10) : 0, rows = sentence_rows(import);
    if (text && positions < 1) fail("%s: its positions leave no row for a token", import->config_path);
    return !positions || (rows && rows < positions) ? rows : positions;
}

static bool has_bound(const Import *import) { return strstr(import->family->spec, "${bound}") != NULL; }

static void bound_set(Import *import, int64_t bound) {
    variable_set(import, "bound", arena_printf(import->arena, "%lld", (long long)bound));
}

/* The variable `learned` is set where there is a table of positions, which --seq cannot lengthen. */
void bound_find(Import *import) {
    int64_t allowed = rows_allowed(import), seq = import->options->seq;
    const char *positions = variable_get(import, "positions", 9);
    if (!has_bound(import) && seq) fail("%s: the image sets the number of rows of `%s`; --seq cannot",
        import->config_path, import->type);
    if (positions && variable_get(import, "learned", 7) && seq > strtoll(positions, NULL, 10))
        fail("%s: --seq %lld is beyond the %s rows of its table of positions", import->config_path, (long long)seq,
            positions);
    bound_set(import, seq ? seq : allowed && allowed < MOST_BOUND ? allowed : MOST_BOUND);
}

typedef struct Cost {
    int64_t state, workspace; /* bytes; state 0: none is kept */
} Cost;

/* Plans the spec at the bound that is set now, as `attnc explain` does; a spec without a plan is a failure. */
static Cost cost_of(Arena *arena, Import *import) {
    Text body = text_new(arena);
    spec_body(import, &body);
    const char *text = arena_printf(arena, "model m {\n%s}\n", body.data);
    Diagnostics quiet = diagnostics_new(arena, NULL);
    Ast *ast = parse(arena, source_from_text(arena, "spec", text, strlen(text)), &quiet);
    Model *model = quiet.errors ? NULL : resolve(arena, ast, &quiet);
    if (!model) fail("no valid spec");
    const Program *program = plan_model(arena, build(arena, model));
    Cost cost = {.workspace = 4 * program->forward->workspace_floats};
    if (program->decode) cost.state = 4 * program->state_floats;
    return cost;
}

static const char *bytes_text(Arena *arena, int64_t bytes) {
    double mega = 1e-6 * (double)bytes;
    return mega < 1000 ? arena_printf(arena, "%.1f MB", mega) : arena_printf(arena, "%.1f GB", 1e-3 * mega);
}

void bound_note(Import *import) {
    int64_t allowed = rows_allowed(import);
    if (import->options->seq || allowed <= MOST_BOUND || !has_bound(import)) return;
    Arena *arena = arena_new();
    FailureTrap trap;
    bound_set(import, allowed);
    if (failure_trap(&trap) == 0) {
        Cost c = cost_of(arena, import);
        failure_release(&trap);
        const char *state = c.state ? arena_printf(arena, "%s of state and ", bytes_text(arena, c.state)) : "";
        import_note(import, "The config and its tokenizer allow %lld rows, and the bound is %d: --seq %lld takes %s%s "
            "of workspace.", (long long)allowed, MOST_BOUND, (long long)allowed, state,
            bytes_text(arena, c.workspace));
    } else {
        import_note(import, "The config and its tokenizer allow %lld rows, and the bound is %d; attnc has no plan for "
            "--seq %lld.", (long long)allowed, MOST_BOUND, (long long)allowed);
    }
    bound_set(import, MOST_BOUND);
    arena_free(arena);
}
