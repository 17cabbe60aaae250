/* features.c: the features of features.def, and the test whether this machine has one. */
#include "targets.h"

#include "../../runtime/attn_runtime.h"

#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#elif (defined(__aarch64__) || defined(__riscv)) && defined(__linux__)
#include <sys/auxv.h>
#endif

static const Feature features[] = {
#define FEATURE(name, leaf, subleaf, reg, bit, state)                                                                  \
    {#name, leaf, subleaf, CPUID_##reg, 1u << (bit), XCR0_##state, NULL},
#define HWCAP(name, type, bit, macro) {#name, type, 0, NO_CPUID, 1u << (bit), 0, #macro},
#define SVE_BYTES(name, bytes) {#name, 0, 0, SVE_LENGTH, bytes, 0, NULL},
#define RISCV(name, letter) {#name, 16, 0, RISCV_AUXV, 1u << ((letter) - 'a'), 0, NULL},
#define RISCV_BYTES(name, bytes) {#name, 0, 0, RISCV_LENGTH, bytes, 0, NULL},
#include "features.def"
#undef FEATURE
#undef HWCAP
#undef SVE_BYTES
#undef RISCV
#undef RISCV_BYTES
};
enum { FEATURES = sizeof features / sizeof *features };

const char *const feature_names[] = {
#define FEATURE(name, leaf, subleaf, reg, bit, state) #name,
#define HWCAP(name, type, bit, macro) #name,
#define SVE_BYTES(name, bytes) #name,
#define RISCV(name, letter) #name,
#define RISCV_BYTES(name, bytes) #name,
#include "features.def"
#undef FEATURE
#undef HWCAP
#undef SVE_BYTES
#undef RISCV
#undef RISCV_BYTES
    NULL};

const Feature *feature_find(const char *name) {
    for (int f = 0; f < FEATURES; f++)
        if (strcmp(features[f].name, name) == 0) return &features[f];
    return NULL;
}

#if defined(__aarch64__) && defined(__linux__)
/* The bytes of a register of SVE; 0 if there are none. */
static unsigned long sve_bytes(void) {
    enum { HAS_SVE = 1 << 22 };
    register unsigned long bytes __asm__("x0") = 0;
    if (!(getauxval(AT_HWCAP) & HAS_SVE)) return 0;
    __asm__(".inst 0x04bf5020" : "=r"(bytes)); /* rdvl x0, #1 */
    return bytes;
}
#endif

#if defined(__riscv) && defined(__linux__)
/* The bytes of a register of vectors; 0 if there are none. */
static unsigned long riscv_bytes(void) {
    unsigned long bytes;
    if (!(getauxval(AT_HWCAP) & 1ul << ('v' - 'a'))) return 0;
    __asm__("csrr %0, 0xc22" : "=r"(bytes)); /* vlenb */
    return bytes;
}
#endif

bool machine_has_feature(const Feature *feature) {
#if defined(__x86_64__)
    uint32_t registers[4], state, high;
    if (feature->reg >= NO_CPUID) return false;
    if (!__get_cpuid(1, &registers[0], &registers[1], &registers[2], &registers[3])) return false;
    if ((registers[CPUID_ECX] & OSXSAVE_AND_AVX) != OSXSAVE_AND_AVX) return false;
    __asm__ volatile("xgetbv" : "=a"(state), "=d"(high) : "c"(0));
    if ((state & feature->state) != feature->state) return false;
    if (feature->state == XCR0_TILES && !attn_allow_tiles()) return false;
    if (!__get_cpuid_count(feature->leaf, feature->subleaf, &registers[0], &registers[1], &registers[2], &registers[3]))
        return false;
    return registers[feature->reg] & feature->bit;
#elif defined(__aarch64__) && defined(__linux__)
    if (feature->reg == SVE_LENGTH) return sve_bytes() >= feature->bit;
    return feature->reg == NO_CPUID && (getauxval(feature->leaf) & feature->bit);
#elif defined(__riscv) && defined(__linux__)
    if (feature->reg == RISCV_LENGTH) return riscv_bytes() >= feature->bit;
    return feature->reg == RISCV_AUXV && (getauxval(feature->leaf) & feature->bit);
#else
    (void)feature;
    return false;
#endif
}
