/* targets.c: which targets there are, what their machines are, and how a program finds out which one it is on. */
#include "emit.h"

#include <string.h>

#if defined(__x86_64__)
static const char here[] = "x86_64";
#elif defined(__aarch64__)
static const char here[] = "aarch64";
#else
static const char here[] = "another";
#endif

const Isa *const *targets_all(Arena *arena) {
    const Isa **all = arena_array(arena, MOST_TARGETS + 1, sizeof *all);
    int n = 0;
    const char *name;
    for (int i = 0; (name = embedded_name(i)) != NULL; i++) {
        size_t length = strlen(name);
        if (length < 4 || strcmp(name + length - 4, ".isa") != 0) continue;
        const Isa *isa = isa_load(arena, arena_copy(arena, name, length - 4));
        if (!isa->rank) continue;
        if (n == MOST_TARGETS) bug("there are more than %d targets", MOST_TARGETS);
        int at = n++;
        for (; at > 0 && all[at - 1]->rank <= isa->rank; at--) {
            bool same = all[at - 1]->rank == isa->rank && strcmp(all[at - 1]->processor, isa->processor) == 0;
            if (same) bug("the targets %s and %s have one rank", all[at - 1]->name, isa->name);
            all[at] = all[at - 1];
        }
        all[at] = isa;
    }
    return all;
}

static bool is_here(const Isa *isa) {
    return strcmp(isa->processor, "any") == 0 || strcmp(isa->processor, here) == 0;
}

const char *const *targets_here(Arena *arena, int *n) {
    const Isa *const *all = targets_all(arena);
    const char **names = arena_array(arena, MOST_TARGETS, sizeof *names);
    int last = 0;
    while (all[last]) last++;
    *n = 0;
    for (int t = last - 1; t >= 0; t--)
        if (is_here(all[t]) && !all[t]->on_request) names[(*n)++] = all[t]->name;
    return names;
}

/* NULL where there is none of that name. */
static const Isa *target_named(Arena *arena, const char *name) {
    if (!embedded_text(arena_printf(arena, "%s.isa", name))) return NULL;
    const Isa *isa = isa_load(arena, name);
    return isa->rank ? isa : NULL;
}

bool target_is_base(const char *name) {
    Arena *arena = arena_new();
    const Isa *isa = target_named(arena, name);
    bool base = isa && is_here(isa) && !*isa->cpu;
    arena_free(arena);
    return base;
}

const char *target_names(Arena *arena, const char *last) {
    const Isa *const *all = targets_all(arena);
    Text names = text_new(arena);
    int n = 0;
    while (all[n]) n++;
    for (int t = n - 1; t >= 0; t--) text_printf(&names, "%s%s", t == n - 1 ? "" : t ? ", " : last, all[t]->name);
    return names.data;
}

void target_require(Arena *arena, const char *name) {
    if (target_named(arena, name)) return;
    fail_status(EXIT_CANNOT, "the target `%s` cannot be emitted; %s can", name, target_names(arena, " and "));
}

/* ---------------------------------------------------------------- x86-64: CPUID and XGETBV */

enum { OSXSAVE_AND_AVX = 3 << 27, YMM = 0x6, ZMM = 0xe6 }; /* bits of leaf 1's ECX; of XCR0 */

/* Features by the names of __builtin_cpu_supports: bits of leaf 1's ECX, of leaf 7's EBX, and of XCR0. */
static const struct {
    const char *name;
    uint32_t leaf1, leaf7, kept;
} features[] = {{"fma", 1u << 12, 0, YMM},         {"avx2", 0, 1u << 5, YMM},        {"avx512f", 0, 1u << 16, ZMM},
                {"avx512dq", 0, 1u << 17, ZMM},    {"avx512bw", 0, 1u << 30, ZMM},   {"avx512vl", 0, 1u << 31, ZMM}};

const char *target_probes(Arena *arena, const Isa *const *isas) {
    Text text = text_new(arena);
    for (int t = 0; isas[t]; t++) {
        if (!*isas[t]->cpu) continue;
        uint32_t leaf1 = OSXSAVE_AND_AVX, leaf7 = 0, kept = 0;
        for (const char **cpu = isas[t]->cpu; *cpu; cpu++) {
            size_t f = 0;
            while (f < sizeof features / sizeof *features && strcmp(features[f].name, *cpu) != 0) f++;
            if (f == sizeof features / sizeof *features) bug("%s.isa: nobody probes for `%s`", isas[t]->name, *cpu);
            leaf1 |= features[f].leaf1;
            leaf7 |= features[f].leaf7;
            kept |= features[f].kept;
        }
        text_printf(&text, "%sif ((leaf1 & 0x%xu) == 0x%xu && (b & 0x%xu) == 0x%xu && (kept & 0x%xu) == 0x%xu) "
                           "features |= 1u << %d; /* %s */", text.size ? "\n" : "", leaf1, leaf1, leaf7, leaf7, kept,
                    kept, t, isas[t]->name);
    }
    return text.size ? text.data : "";
}
