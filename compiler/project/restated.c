/* restated.c: changes the text of an imported spec. The text is formatted, so that a line of the model itself begins
 * with four spaces. */
#include "../restate/restate.h"
#include "project.h"

#include <string.h>

static bool is_head(const Item *item) { return !item->quoted && strcmp(item->name, "head") == 0; }

/* Removes the items for which `are` holds, in every block. */
static void leave_out(Item **items, bool (*are)(const Item *)) {
    while (*items) {
        if (are(*items)) {
            *items = (*items)->next;
        } else {
            leave_out(&(*items)->items, are);
            items = &(*items)->next;
        }
    }
}

/* The text without the items for which `are` holds. `line` stands in front of the model's first item named `before`. */
static const char *changed(Arena *arena, const char *spec, bool (*are)(const Item *), const char *line,
                           const char *before) {
    Compilation c = compilation_quiet(arena, source_from_text(arena, "spec", spec, strlen(spec)));
    if (!compile_until(&c, STAGE_AST)) bug("the imported spec cannot be parsed:\n%s", c.diagnostics.log.data);
    leave_out(&c.ast->items, are);
    const char *text = ast_format(arena, c.ast), *at = strstr(text, arena_printf(arena, "\n    %s", before));
    if (!at) bug("the imported spec has no `%s`:\n%s", before, text);
    return arena_printf(arena, "%.*s\n    %s%s", (int)(at - text), text, line, at);
}

const char *project_precision(Arena *arena, const char *spec, const Precision *precision) {
    const char *parts = precision_parts(arena, precision, &(Precision){.weights = {.dtype = DTYPE_F32}});
    return changed(arena, spec, states_precision, *parts ? arena_printf(arena, "precision%s", parts) : "", "d_model ");
}

const char *project_head(Arena *arena, const char *spec, const char *line) {
    return changed(arena, spec, is_head, line, "weights {");
}
