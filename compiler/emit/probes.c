/* probes.c: the test, in the emitted C, of the targets that a machine runs. */
#include "emit.h"

#include <string.h>

/* The registers and entries that probe.c.tmpl and probe_auxv.c.tmpl read, under their names for them. */
static const struct {
    const char *name;
    uint32_t leaf, subleaf;
    CpuidRegister reg;
} words[] = {{"leaf1", 1, 0, CPUID_ECX}, {"b", 7, 0, CPUID_EBX}, {"c", 7, 0, CPUID_ECX}, {"d", 7, 0, CPUID_EDX},
             {"leaf7_1", 7, 1, CPUID_EAX}, {"hwcap", 16, 0, NO_CPUID}, {"hwcap2", 26, 0, NO_CPUID}};
enum { WORDS = sizeof words / sizeof *words, LEAF7_1 = 4 };

/* The two ways in which a file finds the features of a processor. */
static const struct {
    const char *list, *macro;
} kinds[] = {{"probes", "defined(__x86_64__)"}, {"auxv_probes", "defined(__aarch64__)"}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static int kind_of(const Isa *isa) { return feature_find(isa->cpu[0])->reg == NO_CPUID; }

/* The number of the register or entry that has the feature's bit, or WORDS. */
static int word_of(const Feature *feature) {
    int w = 0;
    while (w < WORDS && (words[w].leaf != feature->leaf || words[w].subleaf != feature->subleaf ||
                         words[w].reg != feature->reg))
        w++;
    return w;
}

static void add_word(Arena *arena, TemplateList *list, const char *name, uint32_t mask) {
    if (!mask) return;
    TemplateVars *word = list_record(list);
    vars_text(word, "name", name);
    vars_text(word, "mask", arena_printf(arena, "0x%xu", mask));
}

/* Returns whether the target asks for leaf7_1. *tiles is set to the bits of leaf 7's EDX that its tiles need. */
static bool set_words(Arena *arena, const Isa *isa, TemplateList *list, uint32_t *tiles) {
    uint32_t masks[WORDS] = {0}, state = 0;
    *tiles = 0;
    if (kind_of(isa) == 0) masks[0] = OSXSAVE_AND_AVX;
    for (const char **cpu = isa->cpu; *cpu; cpu++) {
        const Feature *feature = feature_find(*cpu);
        const int w = word_of(feature);
        if (feature->state == XCR0_TILES) { /* emulated tiles need none of these */
            *tiles |= feature->bit;
            continue;
        }
        if (w == WORDS) bug("%s.isa: no probe reads the register of `%s`", isa->name, *cpu);
        masks[w] |= feature->bit;
        state |= feature->state;
    }
    for (int w = 0; w < WORDS; w++) add_word(arena, list, words[w].name, masks[w]);
    add_word(arena, list, "kept", state);
    return masks[LEAF7_1];
}

bool may_be_slow(const Isa *const *isas, const Isa *isa) {
    bool has_base = false;
    for (int b = 0; b < isa->n_bases; b++)
        for (int t = 0; isas[t]; t++) has_base |= strcmp(isas[t]->name, isa->bases[b]) == 0;
    return isa->slow_with && has_base;
}

/* What a machine has where the target is slow, if anything. */
static void set_slow(Arena *arena, const Isa *const *isas, const Isa *isa, TemplateVars *probe) {
    const Feature *feature = may_be_slow(isas, isa) ? feature_find(isa->slow_with) : NULL;
    vars_int(probe, "may_be_slow", feature != NULL);
    vars_text(probe, "slow_word", feature ? words[word_of(feature)].name : "");
    vars_text(probe, "slow_mask", feature ? arena_printf(arena, "0x%xu", feature->bit) : "");
}

/* Sets the list of the macros that stand for a bit of an entry, for the features of these targets. */
static void set_macros(Arena *arena, const Isa *const *isas, TemplateVars *vars) {
    TemplateList *macros = vars_list(vars, "probe_macros");
    const Feature *seen[MOST_TARGETS];
    int n = 0;
    for (int t = 0; isas[t]; t++)
        for (const char **cpu = isas[t]->cpu; *cpu; cpu++) {
            const Feature *feature = feature_find(*cpu);
            int same = 0;
            while (same < n && seen[same] != feature) same++;
            if (same < n || !feature->macro || n == MOST_TARGETS) continue;
            seen[n++] = feature;
            TemplateVars *macro = list_record(macros);
            vars_text(macro, "name", feature->macro);
            vars_text(macro, "word", feature->leaf == words[WORDS - 1].leaf ? "hwcap2" : "hwcap");
            vars_text(macro, "mask", arena_printf(arena, "0x%xu", feature->bit));
        }
}

void set_probes(Arena *arena, const Isa *const *isas, TemplateVars *vars) {
    const char *guard = "";
    bool leaf7_1 = false, slow = false;
    uint32_t tiles = 0; /* bits of the same register for all targets */
    for (int k = 0; k < KINDS; k++) {
        TemplateList *probes = vars_list(vars, kinds[k].list);
        bool any = false;
        for (int t = 0; isas[t]; t++) {
            if (!*isas[t]->cpu || kind_of(isas[t]) != k) continue;
            TemplateVars *probe = list_record(probes);
            vars_int(probe, "bit", t);
            vars_text(probe, "name", isas[t]->name);
            uint32_t mask;
            leaf7_1 |= set_words(arena, isas[t], vars_list(probe, "words"), &mask);
            vars_int(probe, "tiles", mask != 0);
            set_slow(arena, isas, isas[t], probe);
            slow |= may_be_slow(isas, isas[t]);
            tiles |= mask;
            any = true;
        }
        if (any) guard = arena_printf(arena, "%s%s%s", guard, *guard ? " || " : "", kinds[k].macro);
    }
    set_macros(arena, isas, vars);
    vars_int(vars, "slow_targets", slow);
    vars_text(vars, "probe_guard", guard);
    vars_int(vars, "has_tiles", tiles != 0);
    vars_text(vars, "tile_mask", arena_printf(arena, "0x%xu", tiles));
    vars_text(vars, "tile_state", arena_printf(arena, "0x%xu", (unsigned)XCR0_TILES));
    vars_int(vars, "reads_leaf7_1", leaf7_1);
}
