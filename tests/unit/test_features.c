/* test_features.c: the features of this machine, and what the emitted C asks machines for. */
#include "probe.h" /* first: cmocka makes `fail` a macro */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#define HEAD "name x\nprocessor any\nwidth 1\nregisters 1\ntype float\nintegers int\nfused no\nguard 1\n"

/* What x86-64 is asked for each target, beside OSXSAVE and AVX, bits 27 and 28 of leaf 1's ECX. */
static void test_probes(void **state) {
    (void)state;
    Arena *arena = arena_new();
    const Isa *const isas[] = {isa_load(arena, "avx512"), isa_load(arena, "avx2"), isa_load(arena, "sse2"), NULL};
    assert_non_null(strstr(
        make_probe(arena, isas),
        "    /* avx512 */\n"
        "    if ((leaf1 & 0x38001000u) == 0x38001000u && (b & 0xc0030020u) == 0xc0030020u && (kept & 0xe6u) == 0xe6u)\n"
        "        features |= 1u << 0;\n"
        "    /* avx2 */\n"
        "    if ((leaf1 & 0x38001000u) == 0x38001000u && (b & 0x20u) == 0x20u && (kept & 0x6u) == 0x6u) "
        "features |= 1u << 1;\n"
        "    return features;\n"));
    assert_null(strstr(make_probe(arena, isas), "leaf7_1"));
    assert_null(strstr(make_probe(arena, isas + 2), "features |="));
    const Isa *const newer[] = {isa_parse(arena, "x.isa", HEAD "cpu avx512vnni avx512bf16\n"), isas[1],
                                isa_parse(arena, "y.isa", HEAD "cpu amx_tile\n"), NULL};
    const char *probe = make_probe(arena, newer), *subleaf = strstr(probe, "\"a\"(7), \"c\"(1));\n");
    assert_non_null(subleaf);
    assert_non_null(strstr(subleaf, "const unsigned leaf7_1 = a;\n"));
    assert_non_null(strstr(subleaf, "\"a\"(7), \"c\"(0));\n"));
    assert_non_null(strstr(
        probe,
        "    /* x */\n"
        "    if ((leaf1 & 0x18000000u) == 0x18000000u && (c & 0x800u) == 0x800u && (leaf7_1 & 0x20u) == 0x20u &&\n"
        "        (kept & 0xe6u) == 0xe6u)\n"
        "        features |= 1u << 0;\n"
        "    /* avx2 */\n"
        "    if ((leaf1 & 0x38001000u) == 0x38001000u && (b & 0x20u) == 0x20u && (kept & 0x6u) == 0x6u) "
        "features |= 1u << 1;\n"
        "    if (tiles && (leaf1 & 0x18000000u) == 0x18000000u) features |= 1u << 2; /* x */\n"));
    assert_non_null(strstr(
        probe,
        "#ifdef ATTN_TILES\n"
        "    const unsigned tiles = 1;\n"
        "#else\n"
        "    const unsigned tiles = (d & 0x1000000u) == 0x1000000u && (kept & 0x60000u) == 0x60000u;\n"
        "#endif\n"));
    assert_null(strstr(make_probe(arena, isas), "tiles"));
    const Isa *const slow[] = {isa_load(arena, "avx512bf16"), isa_load(arena, "avx512"), NULL};
    assert_non_null(strstr(make_probe(arena, slow),
                           "    if (d & 0x1000000u) features |= 1u << 16; /* where it is slow */\n"
                           "    /* avx512 */\n"));
    assert_null(strstr(make_probe(arena, isas), "slow"));
    assert_null(strstr(make_probe(arena, (const Isa *const[]){slow[0], isas[1], NULL}), "slow"));
    const Isa *const arm[] = {isa_load(arena, "neoni8mm"), isa_load(arena, "neondot"), isa_load(arena, "neon"), NULL};
    assert_non_null(strstr(make_probe(arena, arm),
                           "#if defined(__ARM_FEATURE_DOTPROD)\n"
                           "    hwcap |= 0x100000u;\n"
                           "#endif\n"
                           "#if defined(__ARM_FEATURE_MATMUL_INT8)\n"
                           "    hwcap2 |= 0x2000u;\n"
                           "#endif\n"
                           "    if ((hwcap & 0x100000u) == 0x100000u && (hwcap2 & 0x2000u) == 0x2000u) "
                           "features |= 1u << 0; /* neoni8mm */\n"
                           "    if ((hwcap & 0x100000u) == 0x100000u) features |= 1u << 1; /* neondot */\n"));
    assert_null(strstr(make_probe(arena, arm), "sve_bytes"));
    const Isa *const sve[] = {isa_load(arena, "sve512"), isa_load(arena, "sve256"), isa_load(arena, "sve"), NULL};
    assert_non_null(strstr(make_probe(arena, sve),
                           "        sve_bytes = bytes >= 64 ? 0x60u : bytes >= 32 ? 0x20u : 0;\n"
                           "    }\n"
                           "#endif\n"
                           "    if ((hwcap & 0x400000u) == 0x400000u && (sve_bytes & 0x40u) == 0x40u) "
                           "features |= 1u << 0; /* sve512 */\n"
                           "    if ((hwcap & 0x400000u) == 0x400000u && (sve_bytes & 0x20u) == 0x20u) "
                           "features |= 1u << 1; /* sve256 */\n"
                           "    if ((hwcap & 0x400000u) == 0x400000u) features |= 1u << 2; /* sve */\n"));
    arena_free(arena);
}

/* What RISC-V is asked for. Without Linux, the options of the compiler tell. */
static void test_riscv_probe(void **state) {
    (void)state;
    Arena *arena = arena_new();
    const Isa *const isas[] = {isa_load(arena, "rvv512"), isa_load(arena, "rvv"), NULL};
    const char *probe = make_probe(arena, isas);
    assert_non_null(strstr(probe, "    if (getauxval) hwcap = getauxval(16);\n"
                                  "#elif defined(__riscv_vector)\n"
                                  "    hwcap = 0x200000u;\n"
                                  "#endif\n"));
    assert_non_null(strstr(probe, "    if ((hwcap & 0x200000u) == 0x200000u && (vlenb & 0x40u) == 0x40u) "
                                  "features |= 1u << 0; /* rvv512 */\n"
                                  "    if ((hwcap & 0x200000u) == 0x200000u) features |= 1u << 1; /* rvv */\n"));
    assert_null(strstr(make_probe(arena, isas + 1), "vlenb"));
    arena_free(arena);
}

/* Linux lists the features whose state it saves, with other underscores. */
static void test_features(void **state) {
    (void)state;
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[8192] = "";
    while (file && strncmp(line, "flags", 5) != 0 && fgets(line, sizeof line, file)) {}
    if (file) fclose(file);
    if (strncmp(line, "flags", 5) != 0) skip(); /* another processor or system */
    char *to = line;
    for (const char *from = line; *from; from++)
        if (*from != '_') *to++ = *from == '\n' ? ' ' : *from;
    *to = '\0';
    for (const char *const *name = feature_names; *name; name++) {
        char word[64] = " ";
        size_t n = 1;
        for (const char *from = *name; *from; from++)
            if (*from != '_') word[n++] = *from;
        word[n] = ' ';
        if (machine_has_feature(feature_find(*name)) != (strstr(line, word) != NULL))
            fail_msg("%s is %s in /proc/cpuinfo", *name, strstr(line, word) ? "there" : "not");
    }
}

static void test_machine(void **state) {
    (void)state;
    Arena *arena = arena_new();
    assert_true(machine_has("scalar", false));
    assert_false(machine_has("nothing", false));
    assert_false(machine_has("avx512_half", false));
    assert_false(machine_has("wasm", false));
#if defined(__x86_64__)
    assert_true(machine_has("sse2", false));
    assert_false(machine_has("neon", false));
#endif
    assert_string_equal(default_targets(arena, (RowTypes){DTYPE_F32, false}, ARITHMETIC_FREE), "scalar,avx2,avx512");
    assert_string_equal(default_targets(arena, (RowTypes){DTYPE_BF16, false}, ARITHMETIC_FREE),
                        "scalar,avx2,avx512,avx512bf16,amx");
    assert_string_equal(default_targets(arena, (RowTypes){DTYPE_I8, false}, ARITHMETIC_FREE),
                        "scalar,avx2,avxvnni,avx512,avx512vnni,amx");
    assert_string_equal(default_targets(arena, (RowTypes){DTYPE_I8, true}, ARITHMETIC_FREE),
                        "scalar,avx2,avxvnni,avx512,avx512vnni,avx512bf16,amx");
    assert_string_equal(default_targets(arena, (RowTypes){DTYPE_F32, false}, ARITHMETIC_FUSED), "avx2,avx512");
    assert_string_equal(default_targets(arena, (RowTypes){DTYPE_BF16, false}, ARITHMETIC_APART),
                        "scalar,avx2,avx512,avx512bf16,amx");
    assert_null(feature_find("avx"));
    arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_probes),
        cmocka_unit_test(test_riscv_probe),
        cmocka_unit_test(test_features),
        cmocka_unit_test(test_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
