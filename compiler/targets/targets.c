/* targets.c: lists all targets, and those for the processor that attnc is built for. */
#include "targets.h"

#include <pthread.h>
#include <string.h>

#if defined(__x86_64__)
static const char here[] = "x86_64";
#elif defined(__aarch64__)
static const char here[] = "aarch64";
#elif defined(__riscv) && __riscv_xlen == 64
static const char here[] = "riscv64";
#else
static const char here[] = "another";
#endif

static pthread_once_t tables_once = PTHREAD_ONCE_INIT;
static Arena *tables_arena; /* Holds the tables until the process ends. */
static const Isa *const *tables;

/* Reads the tables, which takes a tenth of a compilation, once for the whole process. */
static void read_tables(void) {
    tables_arena = arena_new();
    const Isa **all = arena_array(tables_arena, MOST_TARGETS + 1, sizeof *all);
    int n = 0;
    const char *name;
    for (int i = 0; (name = embedded_name(i)) != NULL; i++) {
        size_t length = strlen(name);
        if (length < 4 || strcmp(name + length - 4, ".isa") != 0) continue;
        const Isa *isa = isa_load(tables_arena, arena_copy(tables_arena, name, length - 4));
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
    tables = all;
}

const Isa *const *targets_all(void) {
    pthread_once(&tables_once, read_tables);
    return tables;
}

/* Returns the target of that name, or NULL. */
static const Isa *target_named(const char *name) {
    const Isa *const *isa = targets_all();
    while (*isa && strcmp((*isa)->name, name) != 0) isa++;
    return *isa;
}

static bool is_for(const Isa *isa, const char *processor) {
    return strcmp(isa->processor, "any") == 0 || strcmp(isa->processor, processor) == 0;
}

bool isa_is_here(const Isa *isa) { return is_for(isa, here); }

/* Whether the target has instructions of its own for products of such rows. A target with those for bf16 multiplies
 * bytes as the target does that it is based on. */
static bool multiplies(const Isa *isa, RowTypes rows) {
    const bool bf16 = isa_has(isa, "dot_of_bf16");
    if (isa->by_name) return false;
    return (rows.narrowest == DTYPE_I8 && isa_has(isa, "dot_of_bytes") && !bf16) ||
           (rows.narrowest == DTYPE_BF16 && (bf16 || isa_has(isa, "tiles"))) || (rows.long_bf16 && bf16);
}

static const char *const *targets_of(Arena *arena, const char *processor, RowTypes rows, int *n) {
    const Isa *const *all = targets_all();
    const char **names = arena_array(arena, MOST_TARGETS, sizeof *names);
    int last = 0;
    while (all[last]) last++;
    *n = 0;
    for (int t = last - 1; t >= 0; t--)
        if (is_for(all[t], processor) && (!all[t]->on_request || multiplies(all[t], rows)))
            names[(*n)++] = all[t]->name;
    return names;
}

const char *const *targets_here(Arena *arena, RowTypes rows, int *n) { return targets_of(arena, here, rows, n); }

const char *const *targets_of_arithmetic(Arena *arena, Arithmetic arithmetic, const char *const *targets, int *n) {
    if (arithmetic != ARITHMETIC_FUSED) return targets;
    const char **fused = arena_array(arena, (size_t)*n + 1, sizeof *fused);
    int kept = 0;
    for (int t = 0; t < *n; t++)
        if (target_named(targets[t])->fused) fused[kept++] = targets[t];
    *n = kept;
    return fused;
}

const char *default_targets(Arena *arena, RowTypes rows, Arithmetic arithmetic) {
    int n;
    const char *const *targets = targets_of(arena, "x86_64", rows, &n);
    targets = targets_of_arithmetic(arena, arithmetic, targets, &n);
    Text names = text_new(arena);
    for (int t = 0; t < n; t++) text_printf(&names, "%s%s", t ? "," : "", targets[t]);
    return names.data;
}

bool machine_has(const char *target, bool emulated) {
    const Isa *isa = target_named(target);
    bool has = isa && isa_is_here(isa);
    for (const char **cpu = isa ? isa->cpu : NULL; has && *cpu; cpu++) {
        const Feature *feature = feature_find(*cpu);
        has = (emulated && feature->state == XCR0_TILES) || machine_has_feature(feature);
    }
    return has;
}

bool targets_are_small(const char *const *targets, int n) {
    for (int t = 0; t < n; t++)
        if (target_named(targets[t]) && isa_has(target_named(targets[t]), "small")) return true;
    return false;
}

const char *const *target_list(Arena *arena, int *n) {
    const Isa *const *all = targets_all();
    *n = 0;
    while (all[*n]) ++*n;
    const char **names = arena_array(arena, (size_t)*n, sizeof *names);
    for (int t = 0; t < *n; t++) names[t] = all[*n - 1 - t]->name;
    return names;
}

const char *target_names(Arena *arena, const char *last) {
    int n;
    const char *const *list = target_list(arena, &n);
    Text names = text_new(arena);
    for (int t = 0; t < n; t++) text_printf(&names, "%s%s", t == 0 ? "" : t < n - 1 ? ", " : last, list[t]);
    return names.data;
}

void target_require(Arena *arena, const char *name) {
    if (target_named(name)) return;
    fail_status(EXIT_CANNOT, "the target `%s` cannot be emitted; %s can", name, target_names(arena, " and "));
}
