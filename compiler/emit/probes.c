/* probes.c: the test, in the emitted C, of the targets that a machine runs. */
#include "emit.h"

#include <string.h>

/* The registers that probe.c.tmpl reads, under its names for them. */
static const struct {
    const char *name;
    uint32_t leaf, subleaf;
    CpuidRegister reg;
} words[] = {{"leaf1", 1, 0, CPUID_ECX}, {"b", 7, 0, CPUID_EBX}, {"c", 7, 0, CPUID_ECX}, {"d", 7, 0, CPUID_EDX},
             {"leaf7_1", 7, 1, CPUID_EAX}};
enum { WORDS = sizeof words / sizeof *words, LEAF7_1 = WORDS - 1 };

static void add_word(Arena *arena, TemplateList *list, const char *name, uint32_t mask) {
    if (!mask) return;
    TemplateVars *word = list_record(list);
    vars_text(word, "name", name);
    vars_text(word, "mask", arena_printf(arena, "0x%xu", mask));
}

/* Returns whether the target asks for leaf7_1. *tiles is set to the bits of leaf 7's EDX that its tiles need. */
static bool set_words(Arena *arena, const Isa *isa, TemplateList *list, uint32_t *tiles) {
    uint32_t masks[WORDS] = {OSXSAVE_AND_AVX}, state = 0;
    *tiles = 0;
    for (const char **cpu = isa->cpu; *cpu; cpu++) {
        const Feature *feature = feature_find(*cpu);
        int w = 0;
        while (w < WORDS && (words[w].leaf != feature->leaf || words[w].subleaf != feature->subleaf ||
                             words[w].reg != feature->reg))
            w++;
        if (feature->state == XCR0_TILES) { /* emulated tiles need none of these */
            *tiles |= feature->bit;
            continue;
        }
        if (w == WORDS) bug("%s.isa: probe.c.tmpl does not read the register of `%s`", isa->name, *cpu);
        masks[w] |= feature->bit;
        state |= feature->state;
    }
    for (int w = 0; w < WORDS; w++) add_word(arena, list, words[w].name, masks[w]);
    add_word(arena, list, "kept", state);
    return masks[LEAF7_1];
}

void set_probes(Arena *arena, const Isa *const *isas, TemplateVars *vars) {
    TemplateList *probes = vars_list(vars, "probes");
    bool leaf7_1 = false;
    uint32_t tiles = 0; /* bits of the same register for all targets */
    for (int t = 0; isas[t]; t++) {
        if (!*isas[t]->cpu) continue;
        TemplateVars *probe = list_record(probes);
        vars_int(probe, "bit", t);
        vars_text(probe, "name", isas[t]->name);
        uint32_t mask;
        leaf7_1 |= set_words(arena, isas[t], vars_list(probe, "words"), &mask);
        vars_int(probe, "tiles", mask != 0);
        tiles |= mask;
    }
    vars_int(vars, "has_tiles", tiles != 0);
    vars_text(vars, "tile_mask", arena_printf(arena, "0x%xu", tiles));
    vars_text(vars, "tile_state", arena_printf(arena, "0x%xu", (unsigned)XCR0_TILES));
    vars_int(vars, "reads_leaf7_1", leaf7_1);
}
