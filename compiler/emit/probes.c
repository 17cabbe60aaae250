/* probes.c: the test, in the emitted C, of the targets that a machine runs. */
#include "emit.h"

#include <string.h>

/* What the emitted C reads, with the names of the variables that hold it: registers in probe.c.tmpl, and entries of the
 * auxiliary vector and the lengths of registers in probe_auxv.c.tmpl and probe_riscv.c.tmpl. */
enum { LEAF1, LEAF7_B, LEAF7_C, LEAF7_D, LEAF7_1, HWCAP, HWCAP2, SVE_BYTES, RISCV_HWCAP, VLENB, WORDS };
static const struct {
    const char *name;
    uint32_t leaf, subleaf;
    CpuidRegister reg;
} words[WORDS] = {
    [LEAF1] = {"leaf1", 1, 0, CPUID_ECX},       [LEAF7_B] = {"b", 7, 0, CPUID_EBX},
    [LEAF7_C] = {"c", 7, 0, CPUID_ECX},         [LEAF7_D] = {"d", 7, 0, CPUID_EDX},
    [LEAF7_1] = {"leaf7_1", 7, 1, CPUID_EAX},   [HWCAP] = {"hwcap", 16, 0, NO_CPUID},
    [HWCAP2] = {"hwcap2", 26, 0, NO_CPUID},     [SVE_BYTES] = {"sve_bytes", 0, 0, SVE_LENGTH},
    [RISCV_HWCAP] = {"hwcap", 16, 0, RISCV_AUXV}, [VLENB] = {"vlenb", 0, 0, RISCV_LENGTH},
};

/* The emitted C finds a processor's features by CPUID on x86-64 and in the auxiliary vector on aarch64 and RISC-V. */
static const struct {
    const char *list, *macro;
} kinds[] = {{"probes", "defined(__x86_64__)"}, {"auxv_probes", "defined(__aarch64__)"},
             {"riscv_probes", "defined(__riscv)"}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static int kind_of(const Isa *isa) {
    const CpuidRegister reg = feature_find(isa->cpu[0])->reg;
    return reg >= RISCV_AUXV ? 2 : reg >= NO_CPUID ? 1 : 0;
}

/* The register or entry that has the feature's bit. */
static int word_of(const Feature *feature) {
    for (int w = 0; w < WORDS; w++)
        if (words[w].leaf == feature->leaf && words[w].subleaf == feature->subleaf && words[w].reg == feature->reg)
            return w;
    bug("no probe reads the register of `%s`", feature->name);
}

static void add_word(Arena *arena, TemplateList *list, const char *name, uint32_t mask) {
    if (!mask) return;
    TemplateVars *word = list_record(list);
    vars_text(word, "name", name);
    vars_text(word, "mask", arena_printf(arena, "0x%xu", mask));
}

/* *tiles is set to the bits of leaf 7's EDX that the target's tiles need; reads[w] is set if it asks for a word. */
static void set_words(Arena *arena, const Isa *isa, TemplateList *list, uint32_t *tiles, bool *reads) {
    uint32_t masks[WORDS] = {0}, state = 0;
    *tiles = 0;
    if (kind_of(isa) == 0) masks[LEAF1] = OSXSAVE_AND_AVX;
    for (const char **cpu = isa->cpu; *cpu; cpu++) {
        const Feature *feature = feature_find(*cpu);
        if (feature->state == XCR0_TILES) { /* emulated tiles need none of these */
            *tiles |= feature->bit;
            continue;
        }
        masks[word_of(feature)] |= feature->bit;
        state |= feature->state;
    }
    for (int w = 0; w < WORDS; w++) {
        add_word(arena, list, words[w].name, masks[w]);
        reads[w] |= masks[w] != 0;
    }
    add_word(arena, list, "kept", state);
}

bool may_be_slow(const Isa *const *isas, const Isa *isa) {
    bool has_base = false;
    for (int t = 0; isas[t]; t++) has_base |= isa_is_based_on(isa, isas[t]);
    return isa->slow_with && has_base;
}

/* Sets the bit by which a machine shows that the target is slow there. Returns whether the target may be slow. */
static bool set_slow(Arena *arena, const Isa *const *isas, const Isa *isa, TemplateVars *probe) {
    const Feature *feature = may_be_slow(isas, isa) ? feature_find(isa->slow_with) : NULL;
    vars_int(probe, "may_be_slow", feature != NULL);
    vars_text(probe, "slow_word", feature ? words[word_of(feature)].name : "");
    vars_text(probe, "slow_mask", feature ? arena_printf(arena, "0x%xu", feature->bit) : "");
    return feature;
}

static bool asks_for(const Isa *const *isas, const char *feature) {
    for (; *isas; isas++)
        for (const char **cpu = (*isas)->cpu; *cpu; cpu++)
            if (strcmp(*cpu, feature) == 0) return true;
    return false;
}

/* Sets the list of the compiler's macros that stand for features of these targets. */
static void set_macros(Arena *arena, const Isa *const *isas, TemplateVars *vars) {
    TemplateList *macros = vars_list(vars, "probe_macros");
    for (const char *const *name = feature_names; *name; name++) {
        const Feature *feature = feature_find(*name);
        if (!feature->macro || !asks_for(isas, *name)) continue;
        TemplateVars *macro = list_record(macros);
        vars_text(macro, "name", feature->macro);
        vars_text(macro, "word", words[word_of(feature)].name);
        vars_text(macro, "mask", arena_printf(arena, "0x%xu", feature->bit));
    }
}

void set_probes(Arena *arena, const Isa *const *isas, TemplateVars *vars) {
    const char *guard = "";
    bool reads[WORDS] = {false}, slow = false, left_out = false;
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
            set_words(arena, isas[t], vars_list(probe, "words"), &mask, reads);
            vars_int(probe, "tiles", mask != 0);
            slow |= set_slow(arena, isas, isas[t], probe);
            tiles |= mask;
            left_out |= strcmp(isas[t]->guard, kinds[k].macro) != 0;
            any = true;
        }
        if (any) guard = arena_printf(arena, "%s%s%s", guard, *guard ? " || " : "", kinds[k].macro);
    }
    set_macros(arena, isas, vars);
    vars_int(vars, "slow_targets", slow);
    vars_int(vars, "left_out", left_out); /* some compilers leave out targets that are probed */
    vars_text(vars, "probe_guard", guard);
    vars_int(vars, "has_tiles", tiles != 0);
    vars_text(vars, "tile_mask", arena_printf(arena, "0x%xu", tiles));
    vars_text(vars, "tile_state", arena_printf(arena, "0x%xu", (unsigned)XCR0_TILES));
    vars_int(vars, "reads_leaf7_1", reads[LEAF7_1]);
    vars_int(vars, "reads_sve_bytes", reads[SVE_BYTES]);
    vars_int(vars, "reads_vlenb", reads[VLENB]);
}
