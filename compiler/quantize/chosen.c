/* chosen.c: gives the units of a model the precisions that were chosen for them, and refuses a spec that states one. */
#include "quantize.h"

#include <string.h>

int units_most(const Quantization *q, const int *chosen) {
    int most = 0, best = 0;
    for (int c = 0; c < q->task->n_choices; c++) {
        int n = 0;
        for (int u = 0; u < q->n_units; u++) n += chosen[u] == c;
        if (n > best) best = n, most = c;
    }
    return most;
}

/* A sublayer without a last matrix, as attention with `output none`, has the precision of its others there. */
void units_set(const Quantization *q, const Unit *units, const int *chosen) {
    const int most = units_most(q, chosen);
    const Choice *choices = q->task->choices;
    for (int u = 0; u < q->n_units; u++)
        for (int p = 0; p < units[u].n_places; p++) {
            int choice = chosen[u] >= 0 ? chosen[u] : most;
            if (chosen[u] < 0 && u > 0 && units[u].is_last) choice = chosen[u - 1] >= 0 ? chosen[u - 1] : most;
            Precision precision = choices[choice].precision;
            if (!units[u].attends) {
                precision.attention = choices[most].precision.attention;
                precision.cache = choices[most].precision.cache;
            }
            *units[u].places[p] = precision;
        }
}

static void refuse_in(Diagnostics *diagnostics, const Item *items) {
    for (const Item *i = items; i; i = i->next) {
        if (states_precision(i))
            diagnose(diagnostics, i->location, "attnc quantize chooses each precision: the spec may state none");
        if (i->quoted || strcmp(i->name, "weights") != 0) refuse_in(diagnostics, i->items);
    }
}

void refuse_stated(const Compilation *spec) {
    Diagnostics diagnostics = diagnostics_new(spec->arena);
    refuse_in(&diagnostics, spec->ast->items);
    if (diagnostics.errors)
        fail("%s: %s", spec->source->path, counted(spec->arena, diagnostics.errors, "error"));
}
