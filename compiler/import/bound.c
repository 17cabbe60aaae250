/* bound.c: chooses the bound of a sequence, and estimates the cost of the longer bound that the config allows. */
#include "import.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BOUND = 2048 };

/* The most rows that both the config and its tokenizer allow; 0 where neither has a limit. The variable `positions`
 * holds the config's limit. */
static int64_t rows_allowed(Import *import) {
    const char *text = variable_get(import, "positions", 9);
    int64_t positions = text ? strtoll(text, NULL, 10) : 0, rows = sentence_rows(import);
    if (text && positions < 1) fail("%s: its positions leave no row for a token", import->config_path);
    return !positions || (rows && rows < positions) ? rows : positions;
}

static bool has_bound(const Import *import) { return strstr(import->family->spec, "${bound}") != NULL; }

static void bound_set(Import *import, int64_t bound) {
    variable_set(import, "bound", arena_printf(import->arena, "%lld", (long long)bound));
}

/* Where the variable `learned` is set, --seq cannot exceed the rows of the table of positions, and where `capacity` is,
 * the rows that an expert takes. */
void bound_find(Import *import) {
    int64_t allowed = rows_allowed(import), seq = import->options->seq;
    const char *positions = variable_get(import, "positions", 9);
    if (!has_bound(import) && seq) fail("%s: the image sets the number of rows of `%s`; --seq cannot",
        import->config_path, import->type);
    if (positions && variable_get(import, "learned", 7) && seq > strtoll(positions, NULL, 10))
        fail("%s: --seq %lld is beyond the %s rows of its table of positions", import->config_path, (long long)seq,
            positions);
    if (positions && variable_get(import, "capacity", 8) && seq > strtoll(positions, NULL, 10))
        fail("%s: --seq %lld is beyond the %s rows of a text that an expert takes (`expert_capacity`)",
            import->config_path, (long long)seq, positions);
    bound_set(import, seq ? seq : allowed && allowed < MOST_BOUND ? allowed : MOST_BOUND);
}

typedef struct Cost {
    int64_t state, workspace; /* bytes; 0 for a model without a state */
} Cost;

/* Plans the spec at the current bound, as `attnc explain` does. A spec that cannot be planned is a failure. */
static Cost cost_of(Arena *arena, Import *import) {
    Text body = text_new(arena);
    spec_body(import, &body);
    const char *text = arena_printf(arena, "model m {\n%s}\n", body.data);
    Compilation c = compilation_quiet(arena, source_from_text(arena, "spec", text, strlen(text)));
    if (!compile_until(&c, STAGE_PLAN)) fail("no valid spec");
    const Program *program = c.program;
    Cost cost = {.workspace = program->entries[ENTRY_FORWARD]->workspace_bytes};
    if (program->entries[ENTRY_DECODE]) cost.state = program->state_bytes;
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
