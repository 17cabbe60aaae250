/* test_isa.c: each row of each target's table against its meaning, lane by lane. Two C files are made for
 * a table, one with the rows' C text and one with their meanings; they are compiled with $CC (default
 * clang), the first also under flags that invite the compiler to change results, and run where the CPU
 * has the features. The tables are those named in the command line, or all that are for the processor of
 * this program; with $EMULATOR, a command in front of what is run, $CC may compile for another. */
#include "probe.h" /* first: cmocka makes `fail` a macro */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { SKIPPED = 77 };

enum { MOST_TABLES = 2 * MOST_TARGETS }; /* each target may have a half */

/* ---------------------------------------------------------------------------------- the two files */

static bool are_integers(IsaKind kind) { return kind == ISA_INTEGERS || kind == ISA_PAIRS; }

/* The stores of vectors of integers of types without a size, which only intrinsics read and write. */
static const struct {
    const char *integers, *store;
} sizeless[] = {
    {"svint32_t", "svst1_s32(test_%s_lanes(), (int32_t *)(void *)out, result)"},
    {"vint32m1_t", "__riscv_vse32_v_i32m1((int32_t *)(void *)out, result, test_%s_N)"},
};

/* The store, or NULL where memcpy moves vectors. */
static const char *sizeless_store(Arena *arena, const Isa *isa) {
    for (size_t i = 0; i < sizeof sizeless / sizeof *sizeless; i++)
        if (strcmp(isa->integers, sizeless[i].integers) == 0) return arena_printf(arena, sizeless[i].store, isa->name);
    return NULL;
}

static const char *spell(Arena *arena, const Isa *isa, const char *op, const char *a, const char *b) {
    return isa_spell(arena, isa_find(isa, op), (const char *[]){a, b}, "test");
}

static void declare_vector(Arena *arena, Text *c, const Isa *isa, const char *name, int k, bool integers) {
    const char *type = integers ? isa->integers : isa->type;
    if (!sizeless_store(arena, isa)) {
        text_printf(c, "    %s %s;\n    memcpy(&%s, in[%d], sizeof %s);\n", type, name, name, k, name);
        return;
    }
    const char *from = arena_printf(arena, integers ? "(const int8_t *)(const void *)in[%d]" : "in[%d]", k);
    text_printf(c, "    %s %s = %s;\n", type, name, spell(arena, isa, integers ? "load_4i8" : "load", from, NULL));
}

/* The vectors that an operation sets, or 1. */
static int results(const IsaOp *op) {
    int count = 0;
    for (int k = 0; k < op->param_count; k++) count += op->kinds[k] == ISA_SET;
    return count ? count : 1;
}

/* Vectors that an operation sets are stored one behind the other. */
static void store_set(Arena *arena, Text *c, const Isa *isa, const IsaOp *op) {
    int lanes = 0;
    for (int k = 0; k < op->param_count; k++) {
        if (op->kinds[k] != ISA_SET) continue;
        const char *to = arena_printf(arena, "out + %d", lanes);
        text_printf(c, "    %s;\n", spell(arena, isa, "store", to, op->params[k]));
        lanes += (int)isa->width;
    }
}

static void store_result(Arena *arena, Text *c, const Isa *isa, bool integers) {
    const char *store = sizeless_store(arena, isa);
    if (store && !integers) store = spell(arena, isa, "store", "out", "result");
    text_printf(c, "    %s;\n", store ? store : "memcpy(out, &result, sizeof result)");
}

/* Declares the parameters of an op as a function sees them: `in` has a pointer for each. */
static void declare_params(Arena *arena, Text *c, const Isa *isa, const IsaOp *op, bool vectors) {
    for (int k = 0; k < op->param_count; k++) {
        const char *name = op->params[k];
        switch (op->kinds[k]) {
        case ISA_FLOAT: text_printf(c, "    float %s = in[%d][0];\n", name, k); break;
        case ISA_COUNT: text_printf(c, "    size_t %s = count;\n", name); break;
        case ISA_READ: text_printf(c, "    const float *%s = in[%d];\n", name, k); break;
        case ISA_READ2X16:
        case ISA_READ16: text_printf(c, "    const bits16 *%s = (const void *)in[%d];\n", name, k); break;
        case ISA_READ4X8:
        case ISA_READ8: text_printf(c, "    const signed char *%s = (const void *)in[%d];\n", name, k); break;
        case ISA_BYTE:
            text_printf(c, "    const int %s = *(const unsigned char *)(const void *)in[0] & 3;\n", name);
            break;
        case ISA_NIBBLE:
            text_printf(c, "    const int %s = *(const unsigned char *)(const void *)in[0] & 7;\n", name);
            break;
        case ISA_BITS:
            text_printf(c, "    const unsigned %s = *(const unsigned *)(const void *)in[%d];\n", name, k);
            break;
        case ISA_SET:
            if (vectors) text_printf(c, "    %s %s;\n", isa->type, name);
            continue;
        case ISA_WRITE: text_printf(c, "    float *%s = out;\n", name); break;
        case ISA_WRITE8: text_printf(c, "    unsigned char *%s = (unsigned char *)out;\n", name); break;
        case ISA_PAIRS:
        case ISA_INTEGERS:
            if (!vectors) {
                text_printf(c, "    const bits32 *%s = (const void *)in[%d];\n", name, k);
                break;
            }
            declare_vector(arena, c, isa, name, k, true);
            break;
        default:
            if (vectors) declare_vector(arena, c, isa, name, k, false);
            else text_printf(c, "    const float *%s = in[%d];\n", name, k);
        }
        text_printf(c, "    (void)%s;\n", name);
    }
    text_printf(c, "    (void)in, (void)count, (void)out;\n");
}

static void print_run(Arena *arena, Text *c, const Isa *isa, const IsaOp *op) {
    const char *spelled = isa_spell(arena, op, op->params, "test");
    text_printf(c, "static %s\nvoid run_%s(const float *const *in, size_t count, float *out) {\n",
                isa_with_prefix(arena, isa->attribute, "test"), op->name);
    declare_params(arena, c, isa, op, true);
    if (op->result == ISA_VOID) text_printf(c, "    %s;\n", spelled);
    store_set(arena, c, isa, op);
    if (op->result == ISA_FLOAT) text_printf(c, "    out[0] = %s;\n", spelled);
    if (op->result == ISA_VECTOR || are_integers(op->result)) {
        const bool integers = op->result != ISA_VECTOR;
        text_printf(c, "    %s result = %s;\n", integers ? isa->integers : isa->type, spelled);
        store_result(arena, c, isa, integers);
    }
    text_printf(c, "}\n\n");
}

static const char *make_ops(Arena *arena, const Isa *isa) {
    Writer *writer = writer_new(arena, 1 << 20, "helpers");
    TemplateVars *vars = vars_new(arena, NULL);
    vars_text(vars, "prefix", "test");
    template_expand_helpers(arena, writer, vars, &(HelperUse){isa, UINT32_MAX, true});
    Text c = text_new(arena);
    text_printf(&c, "#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n"
                    "typedef uint16_t bits16 __attribute__((may_alias));\n");
    if (*isa->include) text_printf(&c, "#include %s\n", isa->include);
    text_printf(&c, "typedef void Run(const float *const *in, size_t count, float *out);\n");
    text_printf(&c, "extern Run *const runs[];\n\n");
    text_printf(&c, "%s\n", writer_text(writer, NULL));
    for (size_t i = 0; i < isa->op_count; i++) print_run(arena, &c, isa, &isa->ops[i]);
    text_printf(&c, "Run *const runs[] = {\n");
    for (size_t i = 0; i < isa->op_count; i++) text_printf(&c, "    run_%s,\n", isa->ops[i].name);
    text_printf(&c, "};\n");
    return c.data;
}

static void print_want(Arena *arena, Text *c, const Isa *isa, const IsaOp *op) {
    text_printf(c, "static void want_%s(const float *const *in, size_t count, float *out) {\n", op->name);
    if (strcmp(op->meaning, "nothing") == 0) {
        text_printf(c, "    (void)in, (void)count, (void)out;\n}\n\n");
        return;
    }
    declare_params(arena, c, isa, op, false);
    if (op->result == ISA_FLOAT) text_printf(c, "    out[0] = (float)(%s);\n", op->meaning);
    else if (op->param_count && op->kinds[0] == ISA_WRITE8)
        text_printf(c, "    for (size_t i = 0; i < W; i++) %s[i] = (unsigned char)(%s);\n", op->params[0], op->meaning);
    else if (are_integers(op->result))
        text_printf(c, "    for (size_t i = 0; i < W; i++) out[i] = float_of(%s);\n", op->meaning);
    else text_printf(c, "    for (size_t i = 0; i < %d * W; i++) out[i] = (float)(%s);\n", results(op), op->meaning);
    text_printf(c, "}\n\n");
}

static const char prelude[] =
    "#define _GNU_SOURCE\n"
    "#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n"
    "#include <string.h>\n#if defined(__unix__)\n#include <sys/mman.h>\n#endif\n"
    "typedef void Run(const float *const *in, size_t count, float *out);\n"
    "extern Run *const runs[];\n"
    "static float anything;\n"
    "typedef uint16_t bits16 __attribute__((may_alias));\n"
    "typedef int32_t bits32 __attribute__((may_alias));\n"
    "static inline int32_t bits_of(float x) { int32_t b; memcpy(&b, &x, 4); return b; }\n"
    "static inline float float_of(int32_t b) { float x; memcpy(&x, &b, 4); return x; }\n"
    "static inline __attribute__((unused)) float from_bf16(uint32_t half) {\n"
    "    float x;\n"
    "    half <<= 16;\n"
    "    memcpy(&x, &half, 4);\n"
    "    return x;\n"
    "}\n"
    "static inline __attribute__((unused)) float to_bf16(float x) {\n"
    "    const int exponent = isfinite(x) && x ? ilogbf(x) : 0;\n"
    "    const double unit = ldexp(1, (exponent < -126 ? -126 : exponent) - 7);\n"
    "    return isfinite(x) ? copysignf((float)(nearbyint(x / unit) * unit), x) : x;\n"
    "}\n"
    "static inline __attribute__((unused)) float from_f16(uint32_t half) {\n"
    "    const int exponent = half >> 10 & 31;\n"
    "    const float fraction = half & 1023, sign = half >> 15 ? -1 : 1;\n"
    "    if (exponent == 31) return half & 1023 ? NAN : sign * INFINITY;\n"
    "    return sign * ldexpf(exponent ? 1024 + fraction : fraction, (exponent ? exponent : 1) - 25);\n"
    "}\n"
    "static inline __attribute__((unused)) int nibble(const signed char *p, int n) {\n"
    "    const int code = (unsigned char)p[n / 2] >> n % 2 * 4 & 15;\n"
    "    return code < 8 ? code : code - 16;\n"
    "}\n"
    "static inline __attribute__((unused)) int32_t word(const signed char *p) {\n"
    "    int32_t x;\n"
    "    memcpy(&x, p, 4);\n"
    "    return x;\n"
    "}\n"
    "static inline __attribute__((unused)) int32_t halves(const signed char *p, int high) {\n"
    "    signed char four[4];\n"
    "    for (int k = 0; k < 4; k++) four[k] = (signed char)(16 * nibble(p, 2 * k + high));\n"
    "    return word(four);\n"
    "}\n"
    "static inline __attribute__((unused)) int32_t nibbles(const signed char *p, int high) {\n"
    "    signed char four[4];\n"
    "    for (int k = 0; k < 4; k++) four[k] = (signed char)nibble(p, 2 * k + high);\n"
    "    return word(four);\n"
    "}\n"
    "static inline __attribute__((unused)) int32_t shorts(int32_t n, int32_t a, int32_t b) {\n"
    "    uint16_t sums[2];\n"
    "    unsigned char x[4];\n"
    "    signed char y[4];\n"
    "    memcpy(sums, &n, 4), memcpy(x, &a, 4), memcpy(y, &b, 4);\n"
    "    for (int k = 0; k < 2; k++) {\n"
    "        int two = x[2 * k] * y[2 * k] + x[2 * k + 1] * y[2 * k + 1];\n"
    "        two = two > 32767 ? 32767 : two < -32768 ? -32768 : two;\n"
    "        sums[k] = (uint16_t)(sums[k] + two);\n"
    "    }\n"
    "    return word((signed char *)sums);\n"
    "}\n"
    "static inline __attribute__((unused)) int32_t both(int32_t n, int32_t a) {\n"
    "    int16_t x[2];\n"
    "    memcpy(x, &a, 4);\n"
    "    return (int32_t)((uint32_t)n + (uint32_t)(x[0] + x[1]));\n"
    "}\n"
    "static inline __attribute__((unused)) int32_t dot4(int32_t n, int32_t a, int32_t b) {\n"
    "    uint32_t sum = (uint32_t)n;\n"
    "    unsigned char x[4];\n"
    "    signed char y[4];\n"
    "    memcpy(x, &a, 4), memcpy(y, &b, 4);\n"
    "    for (int k = 0; k < 4; k++) sum += (uint32_t)(x[k] * y[k]);\n"
    "    return (int32_t)sum;\n"
    "}\n"
    "static inline __attribute__((unused)) int32_t pair(const float *p) {\n"
    "    return (int32_t)((uint32_t)bits_of(p[0]) >> 16 | ((uint32_t)bits_of(p[1]) & 0xffff0000u));\n"
    "}\n"
    "static inline __attribute__((unused)) float dot2(float x, int32_t a, int32_t b) {\n"
    "    double sum = x;\n"
    "    int exact = fabsf(x) >= 0x1p-126f || x == 0;\n"
    "    for (int k = 0; k < 32; k += 16) {\n"
    "        const double first = from_bf16((uint32_t)a >> k & 0xffffu);\n"
    "        const double product = first * from_bf16((uint32_t)b >> k & 0xffffu);\n"
    "        sum += product;\n"
    "        exact &= (float)(x + product) == x + product && (float)sum == sum;\n"
    "    }\n"
    "    return isnan(sum) || (sum != 0 && exact) ? (float)sum : anything;\n"
    "}\n"
    "static inline __attribute__((unused)) int32_t less(int32_t n, float zero, float sum) {\n"
    "    return (int32_t)((uint32_t)n - (uint32_t)((int)zero * (int)sum));\n"
    "}\n"
    "static inline int any_nan(const float *a) {\n"
    "    for (size_t i = 0; i < W; i++) if (isnan(a[i])) return 1;\n"
    "    return 0;\n"
    "}\n"
    "static inline float tree(const float *a, size_t n, int max) {\n"
    "    float t[W];\n"
    "    memcpy(t, a, sizeof t);\n"
    "    for (size_t half = n / 2; half; half /= 2)\n"
    "        for (size_t i = 0; i < half; i++)\n"
    "            t[i] = !max ? t[i] + t[i + half] : t[i] > t[i + half] ? t[i] : t[i + half];\n"
    "    return t[0];\n"
    "}\n"
    "#define tree_sum_of(a, n) tree(a, n, 0)\n"
    "#define tree_max_of(a, n) tree(a, n, 1)\n"
    "#define tree_sum(a) tree(a, W, 0)\n"
    "#define tree_max(a) tree(a, W, 1)\n\n";

/* Arrays end where a page without access begins, so that an access past them is seen. Memory of WebAssembly has no such
 * pages but behind its end: the array that was asked for last is there. Microcontrollers have none. */
static const char epilogue[] =
    "static uint32_t seed = 12345;\n"
    "static uint32_t next(void) {\n"
    "    seed ^= seed << 13, seed ^= seed >> 17, seed ^= seed << 5;\n"
    "    return seed * 2654435761u;\n"
    "}\n"
    "static float draw(int kind) {\n"
    "    static const uint32_t edges[] = {0, 1, 2, 0x400000, 0x7fffff, 0x800000, 0x800001, 0x1000000, 0x3effffff,\n"
    "        0x3f000000, 0x3f000001, 0x3f7fffff, 0x3f800000, 0x3f800001, 0x3fc00000, 0x40200000, 0x4a800001,\n"
    "        0x4affffff, 0x4b000000, 0x4b000001, 0x4b7fffff, 0x4effffff, 0x4f000000, 0x5f000000, 0x7e800000,\n"
    "        0x7f000000, 0x7f7fffff, 0x7f800000, 0x7fc00000, 0x7fc12345};\n"
    "    uint32_t r = next() >> 8;\n"
    "    if (kind == ISA_PAIRS) { /* whole numbers that bf16 holds */\n"
    "        const int32_t low = bits_of((float)((int)(r >> 4 & 127) - 64)), high = bits_of((float)(r >> 12 & 15));\n"
    "        return float_of((int32_t)((uint32_t)low >> 16 | (uint32_t)high));\n"
    "    }\n"
    "    if (kind == ISA_INTEGERS && r % 4 == 0) /* bytes at their ends */\n"
    "        return float_of((int32_t)((r & 16 ? 0x7f7f7f7f : 0x80808080) | (r & 32 ? 0x80ff80ff : 0)));\n"
    "    if (kind == ISA_INTEGERS) return float_of((int32_t)next());\n"
    "    if (kind == ISA_CODES) return (float)(r % 8 ? r >> 8 & 255 : r & 8 ? 255 : 0);\n"
    "    if (kind == ISA_INTEGRAL && r % 16 == 0) return r & 16 ? 252.0f : -252.0f;\n"
    "    if (kind == ISA_INTEGRAL) return (float)((int)(next() >> 8) % 505 - 252);\n"
    "    if (r % 4 == 0) return float_of((int32_t)(edges[(r >> 3) % (sizeof edges / 4)] | (r & 4) << 29));\n"
    "    if (r % 4 == 1) return float_of((int32_t)next());\n"
    "    return ((float)(next() >> 8) / 8388608.0f - 1.0f) * (r & 4 ? 100.0f : 1.0f);\n"
    "}\n"
    "static float *guarded(void) { /* the end of an array */\n"
    "#if defined(__wasm__)\n"
    "    return (float *)((__builtin_wasm_memory_grow(0, 1) + 1) * 65536);\n"
    "#elif !defined(__unix__)\n"
    "    static float arrays[8][256], (*given)[256] = arrays; return *given++ + 256;\n"
    "#else\n"
    "    char *page = mmap(NULL, 131072, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);\n"
    "    if (page == MAP_FAILED || mprotect(page + 65536, 65536, PROT_NONE)) return NULL;\n"
    "    return (float *)(void *)(page + 65536);\n"
    "#endif\n"
    "}\n"
    "static float flushed(float x) { return FLUSHES && fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }\n"
    "static int differs(float got, float want, int integers) {\n"
    "    if (bits_of(want) == bits_of(anything) || bits_of(got) == bits_of(want)) return 0;\n"
    "    if (FLUSHES && !integers && fabsf(got - want) <= 0x1p-124f) return 0;\n"
    "    return integers || !(isnan(got) && isnan(want));\n"
    "}\n"
    "static int try_op(size_t k, float *const *ends, float *end) {\n"
    "    const float *in[8];\n"
    "    const size_t lanes_stored = ops[k].results * W; /* and halves that are read */\n"
    "    float want[MOST_PARAMS * W], got[MOST_PARAMS * W];\n"
    "    size_t count = ops[k].fixed ? ops[k].fixed : 1 + (next() >> 8) % W;\n"
    "    size_t written = ops[k].reduced ? 1 : ops[k].counted ? count : W;\n"
    "    for (size_t j = 0; j < ops[k].params; j++) {\n"
    "        int counted = ops[k].kinds[j] == ISA_READ && ops[k].counted;\n"
    "        int halves = ops[k].kinds[j] == ISA_READ16, bytes = ops[k].kinds[j] == ISA_READ8;\n"
    "        size_t size = counted ? count : W;\n"
    "        if (halves || bytes) size = halves ? (lanes_stored + 1) / 2 : (W + 3) / 4;\n"
    "        float *lanes = ends[j] - size;\n"
    "        for (size_t i = 0; i < size; i++) lanes[i] = flushed(draw(ops[k].kinds[j]));\n"
    "        in[j] = lanes;\n"
    "    }\n"
    "    for (size_t i = 0; i < lanes_stored; i++) want[i] = got[i] = (float)(100 + i);\n"
    "    ops[k].want(in, count, want);\n"
    "    runs[k](in, count, got);\n"
    "    for (size_t i = 0; i < lanes_stored; i++)\n"
    "        if (differs(got[i], want[i], ops[k].integers || ops[k].bytes)) {\n"
    "            printf(\"%s, lane %d: got %a, want %a\\n\", ops[k].name, (int)i, (double)got[i], (double)want[i]);\n"
    "            return 1;\n"
    "        }\n"
    "    if (!ops[k].stores) return 0;\n"
    "    const size_t bytes = ops[k].bytes ? W : written * sizeof(float);\n"
    "    char *at = (char *)end - bytes, before[] = \"before\";\n"
    "    memcpy(at - sizeof before, before, sizeof before);\n"
    "    runs[k](in, count, (void *)at);\n"
    "    if (!memcmp(at, want, bytes) && !memcmp(at - sizeof before, before, sizeof before)) return 0;\n"
    "    printf(\"%s stores something else before the end of memory\\n\", ops[k].name);\n"
    "    return 1;\n"
    "}\n"
    "int main(void) {\n"
    "    float *ends[8];\n"
    "    for (int j = 7; j >= 0; j--) if (!(ends[j] = guarded())) return 1;\n"
    "    float *end = ends[0]; /* a store's first parameter is what it writes */\n"
    "    if (!CPU) return SKIPPED;\n"
    "    anything = float_of((int32_t)0x7fedcba9);\n"
    "    int bad = 0;\n"
    "    for (size_t k = 0; k < sizeof ops / sizeof ops[0]; k++) {\n"
    "        int rounds = 4000 + 60000 / W;\n"
    "        while (rounds > 0 && !try_op(k, ends, end)) rounds--;\n"
    "        bad += rounds != 0;\n"
    "    }\n"
    "    return bad != 0;\n"
    "}\n";

/* The 8 of NAME_8, which a table may have beside NAME; 0 for other names. */
static int count_in_name(const char *name) {
    const char *last = strrchr(name, '_');
    return last && last[1] && strspn(last + 1, "0123456789") == strlen(last + 1) ? atoi(last + 1) : 0;
}

static const char *make_meanings(Arena *arena, const Isa *isa) {
    Text c = text_new(arena);
    text_printf(&c,
                "enum { W = %d, FLUSHES = %d, SKIPPED = %d, ISA_INTEGERS = %d, ISA_INTEGRAL = %d, ISA_CODES = %d,\n"
                "       ISA_READ = %d, ISA_PAIRS = %d, ISA_READ16 = %d, ISA_READ8 = %d,\n"
                "       MOST_PARAMS = %d };\n",
                (int)isa->width, strcmp(isa->processor, "cortex_m") == 0, SKIPPED, /* MVE has no subnormal floats */
                ISA_INTEGERS, ISA_INTEGRAL, ISA_CODES, ISA_READ, ISA_PAIRS, ISA_READ16,
                ISA_READ8, ISA_MAX_PARAMS);
    text_printf(&c, "%s", prelude);
    for (size_t i = 0; i < isa->op_count; i++) print_want(arena, &c, isa, &isa->ops[i]);
    text_printf(&c, "static const struct {\n    const char *name;\n    Run *want;\n"
                    "    int counted, stores, bytes, reduced, integers;\n    size_t fixed, results, params;\n"
                    "    int kinds[8];\n} ops[] = {\n");
    for (size_t i = 0; i < isa->op_count; i++) {
        const IsaOp *op = &isa->ops[i];
        int fixed = count_in_name(op->name), counted = fixed != 0, stores = 0, bytes = 0;
        for (int k = 0; k < op->param_count; k++) {
            counted |= op->kinds[k] == ISA_COUNT;
            bytes |= op->kinds[k] == ISA_WRITE8;
            stores |= op->kinds[k] == ISA_WRITE || bytes;
        }
        text_printf(&c, "    {\"%s\", want_%s, %d, %d, %d, %d, %d, %d, %d, %d, {0", op->name, op->name, counted, stores,
                    bytes, op->result == ISA_FLOAT, are_integers(op->result), fixed, results(op),
                    op->param_count);
        for (int k = 0; k < op->param_count; k++) text_printf(&c, "%s%d", k ? ", " : " + ", (int)op->kinds[k]);
        text_printf(&c, "}},\n");
    }
    text_printf(&c, "};\n\n");
    if (*isa->cpu) text_printf(&c, "%s\n", make_probe(arena, (const Isa *const[]){isa, NULL}));
    text_printf(&c, "#define CPU %s\n%s", *isa->cpu ? "test_cpu()" : "1", epilogue);
    return c.data;
}

/* ---------------------------------------------------------------------------------- compiling and running */

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int run_command(const char *command) {
    fflush(stdout);
    int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
}

static void check_table(const char *name) {
    Arena *arena = arena_new();
    const Isa *isa = isa_load(arena, name);
    const char *cc = getenv("CC"), *emulator = getenv("EMULATOR");
    if (!cc || !*cc) cc = "clang";
    bool emulated = emulator && *emulator;
    mkdir("build", 0777);
    mkdir("build/tmp", 0777);
    const char *stem = arena_printf(arena, "build/tmp/isa_%s%s", name, emulated ? "_emulated" : "");
    const char *program = emulated ? arena_printf(arena, "%s %s", emulator, stem) : stem;
    const char *ops = make_ops(arena, isa), *meanings = make_meanings(arena, isa);
    const char *guard = arena_printf(arena, "#if %s\nint yes;\n#else\n#error no\n#endif\n", isa->guard);
    write_file(arena_printf(arena, "%s_guard.c", stem), guard);
    if (run_command(arena_printf(arena, "%s -fsyntax-only %s_guard.c 2>/dev/null", cc, stem)) != 0) {
        print_message("%s: skipped, the compiler's target is not '%s'\n", name, isa->guard);
        arena_free(arena);
        skip();
    }
    write_file(arena_printf(arena, "%s_ops.c", stem), ops);
    write_file(arena_printf(arena, "%s_meanings.c", stem), meanings);
    bool is_native = !emulated;
#if !defined(__x86_64__)
    is_native = false; /* not every compiler has -march=native there */
#endif
    const char *const flags[] = {
        "-std=c11 -O2",
        "-std=gnu11 -O1 -ffp-contract=fast",
        is_native ? "-std=gnu11 -O3 -march=native -ffp-contract=fast" : "-std=gnu11 -O3 -ffp-contract=fast",
    };
    int status = 0;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0] && status == 0; i++) {
        const char *warnings = "-Wall -Wextra -Werror -pedantic";
        const char *build = arena_printf(
            arena, "%s -c %s %s %s_ops.c -o %s_ops.o && "
                   "%s -std=c11 -O1 -ffp-contract=off %s %s_ops.o %s_meanings.c -o %s -lm",
            cc, flags[i], warnings, stem, stem, cc, warnings, stem, stem, stem);
        assert_int_equal(run_command(build), 0);
        status = run_command(program);
        if (status && status != SKIPPED) print_error("%s: compiled with %s %s\n", name, cc, flags[i]);
    }
    arena_free(arena);
    if (status == SKIPPED) {
        print_message("%s: skipped, this CPU lacks a feature\n", name);
        skip();
    }
    assert_int_equal(status, 0);
}

static void test_table(void **state) { check_table(*(const char **)*state); }

/* ---------------------------------------------------------------------------------- the reader of tables */

static size_t general_ops(const Isa *isa) {
    size_t count = 0;
    for (size_t i = 0; i < isa->op_count; i++)
        count += count_in_name(isa->ops[i].name) == 0;
    return count;
}

/* Whether the table has the operations of that one, also those that only a capability of the other one needs. */
static bool stands_on(const Isa *isa, const char *name) {
    for (int i = 0; i < isa->n_bases; i++)
        if (strcmp(isa->bases[i], name) == 0) return true;
    return false;
}

/* A template may use any operation with any target, but those that round a product before its sum, which only targets
 * with a fused multiply-add need. */
static void test_tables_agree(void **state) {
    (void)state;
    Arena *arena = arena_new();
    const Isa *first = isa_load(arena, "scalar"), *tables[MOST_TABLES + 1] = {NULL};
    int n = 0;
    for (const Isa *const *isa = targets_all(); *isa; isa++) {
        tables[n++] = *isa;
        if ((*isa)->half) tables[n++] = (*isa)->half;
    }
    assert_true(n >= 7);
    for (int t = 0; t < n; t++) {
        const Isa *isa = tables[t];
        assert_int_equal(general_ops(isa), general_ops(first) + (isa->fused ? 2 : 0) +
                                                   (isa_has(isa, "dot_of_bf16") ? 5 : 0) +
                                                   (isa_has(isa, "dot_of_nibbles") || stands_on(isa, "avx2") ? 4 : 0) +
                                                   (isa_has(isa, "dot_of_row_pairs") ? 7 : 0) +
                                                   isa_has(isa, "spaced_prefetch") + isa_has(isa, "hide_by_bits") +
                                                   (isa_has(isa, "groups_of_f16") ? 2 : 0) +
                                                   (isa_has(isa, "order_of_bits") ? 2 : 0));
        if (isa->fused) assert_true(isa_find(isa, "mul_add") && isa_find(isa, "mul_sub"));
        for (size_t i = 0; i < first->op_count; i++) {
            if (count_in_name(first->ops[i].name)) continue;
            const IsaOp *a = &first->ops[i], *b = isa_find(isa, a->name);
            assert_non_null(b);
            assert_int_equal(a->result, b->result);
            assert_int_equal(a->param_count, b->param_count);
            for (int k = 0; k < a->param_count; k++) {
                assert_int_equal(a->kinds[k], b->kinds[k]);
                assert_string_equal(a->params[k], b->params[k]);
            }
        }
    }
    arena_free(arena);
}

static void test_fields(void **state) {
    (void)state;
    Arena *arena = arena_new();
    const Isa *isa = isa_load(arena, "avx512");
    assert_string_equal(isa->type, "__m512");
    assert_string_equal(isa->integers, "__m512i");
    assert_int_equal(isa->width, 16);
    assert_int_equal(isa->registers, 32);
    assert_true(isa->fused);
    assert_string_equal(isa->guard, "defined(__x86_64__)");
    assert_string_equal(isa->include, "<immintrin.h>");
    assert_int_equal(isa->rank, 30);
    assert_string_equal(isa->processor, "x86_64");
    assert_false(isa->on_request);
    assert_true(isa_load(arena, "sse2")->on_request);
    assert_string_equal(isa->cpu[0], "avx2");
    assert_string_equal(isa->cpu[4], "avx512vl");
    assert_string_equal(isa->cpu[5], "f16c");
    assert_string_equal(isa->cpu[6], "fma");
    assert_null(isa->cpu[7]);
    assert_true(isa_has(isa, "order_of_bits"));
    assert_false(isa_has(isa_load(arena, "avx2"), "spaced_prefetch"));
    assert_true(isa_has(isa_load(arena, "avx512vnni"), "dot_of_bytes"));
    assert_false(isa_has(isa, "dot_of_bytes"));
    const IsaOp *dot = isa_find(isa_load(arena, "avx512vnni"), "dot_4u8_4i8");
    assert_int_equal(dot->result, ISA_INTEGERS);
    assert_int_equal(dot->kinds[2], ISA_INTEGERS);
    assert_string_equal(isa->half->name, "avx512_half");
    assert_int_equal(isa->half->width, 8);
    assert_null(isa->half->half);
    assert_ptr_equal(isa_for(isa, 8), isa->half);
    assert_ptr_equal(isa_for(isa, 9), isa);
    const IsaOp *op = isa_find(isa, "load_part");
    assert_non_null(op);
    assert_int_equal(op->kinds[0], ISA_READ);
    assert_int_equal(op->kinds[1], ISA_COUNT);
    assert_int_equal(op->result, ISA_VECTOR);
    assert_true(op->needs_prefix);
    assert_string_equal(isa_spell(arena, op, (const char *[]){"p + 1", "n - 1"}, "m"),
                        "_mm512_maskz_loadu_ps(m_avx512_first(n - 1), p + 1)");
    const IsaOp *load = isa_find(isa_load(arena, "scalar"), "load");
    const char *const loads[][2] = {{"p", "*p"},
                                    {"p + 4", "p[4]"},
                                    {"p + (k + 1)", "p[k + 1]"},
                                    {"p + k + 1", "*(p + k + 1)"},
                                    {"p + (k + 1) * 4", "*(p + (k + 1) * 4)"}};
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++)
        assert_string_equal(isa_spell(arena, load, loads[i], "m"), loads[i][1]);
    assert_null(isa_find(isa, "shuffle"));
    assert_false(isa_load(arena, "scalar")->fused);
    arena_free(arena);
}

#define HEAD "name x\nprocessor any\nwidth 1\nregisters 1\ntype float\nintegers int\nfused no\nguard 1\n"

static void refuses(const char *text, const char *message) {
    Arena *arena = arena_new();
    FailureTrap trap;
    if (failure_trap(&trap) == 0) {
        isa_parse(arena, "x.isa", text);
        failure_release(&trap);
        print_error("accepted, without \"%s\":\n%s\n", message, text);
        fail_msg("no error");
    }
    assert_string_equal(trap.message, message);
    assert_int_equal(trap.status, EXIT_BUG);
    arena_free(arena);
}

/* A row of an operation of operations.def has its prototype and meaning there, or a meaning of its own. */
static void test_named(void **state) {
    (void)state;
    Arena *arena = arena_new();
    const Isa *isa = isa_parse(arena, "x.isa", HEAD "op sum_part | $a + $n\nop fma | $acc + $a * $b\n"
                                               "    | acc[i] + a[i] * b[i]\n");
    const IsaOp *part = isa_find(isa, "sum_part"), *fma = isa_find(isa, "fma");
    assert_int_equal(part->result, ISA_FLOAT);
    assert_int_equal(part->param_count, 2);
    assert_int_equal(part->kinds[1], ISA_COUNT);
    assert_string_equal(part->meaning, "tree_sum(a)");
    assert_string_equal(fma->params[0], "acc");
    assert_string_equal(fma->meaning, "acc[i] + a[i] * b[i]");
    arena_free(arena);
}

/* A table takes over all of another one, whose helpers have its name there. */
static void test_based(void **state) {
    (void)state;
    Arena *arena = arena_new();
    const Isa *base = isa_load(arena, "avx512");
    const Isa *isa = isa_parse(arena, "z.isa", "name z\nbased on avx512\nrank 35\ncpu fma\nregisters 16\n"
                                               "op wiggle(a) | ${table}_copysign($a, $a) | a[i]\n"
                                               "op zero() | nil | 0.0f\n");
    assert_string_equal(isa->name, "z");
    assert_string_equal(isa->type, "__m512");
    assert_string_equal(isa->integers, "__m512i");
    assert_string_equal(isa_spell(arena, isa_find(isa, "zero"), NULL, "m"), "nil");
    assert_string_equal(isa->processor, "x86_64");
    assert_int_equal(isa->width, 16);
    assert_int_equal(isa->registers, 16);
    assert_int_equal(isa->rank, 35);
    assert_string_equal(isa->cpu[0], "fma");
    assert_null(isa->cpu[1]);
    assert_true(isa_has(isa, "order_of_bits"));
    assert_string_equal(isa->half->name, "avx512_half");
    assert_int_equal(isa->op_count, base->op_count + 1);
    assert_string_equal(isa_spell(arena, isa_find(isa, "load_part"), (const char *[]){"p", "n"}, "m"),
                        "_mm512_maskz_loadu_ps(m_z_first(n), p)");
    assert_string_equal(isa_spell(arena, isa_find(isa, "wiggle"), (const char *[]){"a"}, "m"), "m_z_copysign(a, a)");
    assert_string_equal(isa->helpers[1].file, "avx512.isa");
    assert_non_null(strstr(isa->helpers[1].text, "__mmask16 ${prefix}_z_first(size_t n)"));
    for (int i = 0; i < isa->n_helpers; i++) assert_null(strstr(isa->helpers[i].text, "${prefix}_avx512"));
    const Isa *half = isa_parse(arena, "y.isa", "name y\nbased on sse2\nhelper\n#define Y\nend\n"
                                                "helper set1\n__m128 ${table}_set1(float x);\nend\n"
                                                "helper mine\n__m128 ${table}_mine(float x);\nend\n"
                                                "helper int first(int a) before load_part\nend\n"
                                                "op set1(float x) | ${table}_mine($x) | x\n");
    const Isa *sse2 = isa_load(arena, "sse2");
    assert_string_equal(half->helpers[0].text, "#define Y\n");
    assert_string_equal(half->helpers[0].file, "y.isa");
    assert_string_equal(half->helpers[1].text, "__m128 ${prefix}_y_set1(float x);\n");
    assert_string_equal(half->helpers[2].name, "first");
    assert_string_equal(half->helpers[3].name, "load_part");
    assert_string_equal(half->helpers[3].file, "sse2.isa");
    assert_int_equal(half->n_helpers, sse2->n_helpers + 2);
    assert_int_equal(isa_find(half, "set1")->helpers, 1u << (sse2->n_helpers + 1));
    assert_int_equal(half->rank, 0);
    assert_false(half->on_request);
    arena_free(arena);
}

/* A table knows which helpers an operation calls, itself or through others. */
static void test_helpers(void **state) {
    (void)state;
    Arena *arena = arena_new();
    const Isa *isa = isa_parse(arena, "x.isa", HEAD "helper\n#define ${prefix}_X ${table}_last\nend\n"
                                               "helper one\nfloat ${table}_one(float a);\nend\n"
                                               "helper ones\nfloat ${table}_ones(float a) { ${table}_one(a); }\nend\n"
                                               "helper last\nfloat ${table}_last(float a) { ${table}_one(a); }\nend\n"
                                               "op plain(a) | -$a | -a[i]\n"
                                               "op single(a) | ${table}_one($a) | a[i]\n"
                                               "op both(a) | ${table}_ones($a) | a[i]\n");
    assert_int_equal(isa->n_helpers, 4);
    assert_null(isa->helpers[0].name);
    assert_string_equal(isa->helpers[2].name, "ones");
    assert_int_equal(isa->helpers[0].helpers, 1 << 1 | 1 << 3);
    assert_int_equal(isa_find(isa, "plain")->helpers, 0);
    assert_int_equal(isa_find(isa, "single")->helpers, 1 << 1);
    assert_int_equal(isa_find(isa, "both")->helpers, 1 << 1 | 1 << 2);

    const Isa *wrong = isa_parse(arena, "x.isa", HEAD "helper\nint x;\nend\nhelper f\nint y;\n${nothing};\nend\n");
    assert_int_equal(wrong->helpers[0].line, 10);
    Writer *writer = writer_new(arena, 1000, "too much");
    FailureTrap trap;
    if (failure_trap(&trap) == 0) {
        template_expand_helpers(arena, writer, vars_new(arena, NULL), &(HelperUse){wrong, 1 << 1, true});
        failure_release(&trap);
    }
    assert_string_equal(trap.message, "template x.isa:14: there is no name 'nothing'");

    const Isa *function = isa_parse(arena, "x.isa", HEAD "helper unsigned char f(const ${table}_t *p)\n/* a\n * b */\n"
                                                    "    return *p;\n${nothing};\nend\n");
    assert_string_equal(function->helpers[0].name, "f");
    assert_string_equal(function->helpers[0].text,
                        "/* a\n * b */\nstatic inline __attribute__((unused)) ${v.attribute}\n"
                        "unsigned char ${prefix}_x_f(const ${prefix}_x_t *p) {\n    return *p;\n${nothing};\n}\n");
    TemplateVars *vars = vars_new(arena, NULL);
    vars_text(vars, "prefix", "m");
    if (failure_trap(&trap) == 0) {
        template_expand_helpers(arena, writer, vars, &(HelperUse){function, 1, true});
        failure_release(&trap);
    }
    assert_string_equal(trap.message, "template x.isa:13: there is no name 'nothing'");
    arena_free(arena);
}

static void test_table_errors(void **state) {
    (void)state;
    refuses("name x\n", "table x.isa:1: 'processor' is missing");
    refuses("name x\nprocessor any\n", "table x.isa:2: 'width' is missing");
    refuses("on_request often\n", "table x.isa:1: 'on_request' is yes or no");
    refuses("rank high\n", "table x.isa:1: 'high' is no number from 1 to 1000");
    refuses("nmae x\n", "table x.isa:1: there is no field 'nmae'; nearest is name");
    refuses("name x\nname y\n", "table x.isa:2: 'name' is there twice");
    refuses("\n# a\nwidth many\n", "table x.isa:3: 'many' is no number from 1 to 1000");
    refuses("fused perhaps\n", "table x.isa:1: 'fused' is yes or no");
    refuses("type\n", "table x.isa:1: 'type' has no value");
    refuses("cpu fma axv2\n", "table x.isa:1: features.def has no 'axv2'; nearest is avx2");
    refuses("name x\nbased on nothing\n", "table x.isa:2: there is no table nothing.isa");
    refuses("name x\nbased on avx512bf16_half\n", "table avx512_half.isa:4: a table stands on at most 3 others");
    refuses("name x\nbased upon avx2\n", "table x.isa:2: 'based on NAME' is meant");
    refuses("name x\nbased on avx2 sse2\n", "table x.isa:2: 'based on NAME' is meant");
    refuses("based on avx2\n", "table x.isa:1: 'based' has to follow the name");
    refuses("name x\nwidth 8\nbased on avx2\n", "table x.isa:3: 'based' has to follow the name");
    refuses("name x\nbased on avx2\nbased on sse2\n", "table x.isa:3: 'based' is there twice");
    refuses("name x\nbased on avx2\nop zero() | 0 | 0\nop zero() | 0 | 0\n", "table x.isa:4: zero has two rows");
    refuses("name x\nbased on avx2\nhelper f\nend\nhelper f\nend\n",
            "table x.isa:5: the helper 'f' is there twice");
    refuses("type ${table}_t\nname x\n", "table x.isa:1: the name has to stand in front of ${table}");
    refuses("compiler 1\n", "table x.isa:1: a row is PROTOTYPE | C TEXT | MEANING; it has no message");
    refuses("has wings\n", "table x.isa:1: there is no capability 'wings'");
    refuses("has order_of_bits+\n", "table x.isa:1: '+' is no capability");
    refuses("cpu fma, avx2\n", "table x.isa:1: ', avx2' is no feature");
    refuses(HEAD "helper\nint x;\n", "table x.isa:10: the helper of line 9 has no end");
    refuses(HEAD "helper f\nend\nhelper f\nend\n", "table x.isa:11: the helper 'f' is there twice");
    refuses("name x\nbased on avx2\nhelper int f(int a) before g\nend\n", "table x.isa:3: there is no helper 'g'");
    refuses(HEAD "helper f(int a)\n", "table x.isa:9: a function is TYPE NAME(PARAMETERS)");
    refuses(HEAD "helper int (int a)\n", "table x.isa:9: a function is TYPE NAME(PARAMETERS)");
    refuses(HEAD "helper int f(int a\n", "table x.isa:9: a function is TYPE NAME(PARAMETERS)");
    refuses(HEAD "helper int f(int a)\nend\nhelper f\nend\n", "table x.isa:11: the helper 'f' is there twice");
    refuses(HEAD "op f(a) | $a\n", "table x.isa:9: a row is PROTOTYPE | C TEXT | MEANING; it has no meaning");
    refuses(HEAD "op f | a | a\n", "table x.isa:9: a prototype is NAME(PARAMETERS)");
    refuses(HEAD "op add | $x\n", "table x.isa:9: add: there is no parameter '$x'");
    refuses(HEAD "op add | $a |\n", "table x.isa:9: add has no meaning");
    refuses(HEAD "op add | $a\nop add(a, b) | $a | a\n", "table x.isa:10: add has two rows");
    refuses(HEAD "op f(a)\n",
            "table x.isa:9: a row is PROTOTYPE | C TEXT | MEANING; it has no C text");
    refuses(HEAD "op f(a) | $a | a || a | 1\n",
            "table x.isa:9: a row is PROTOTYPE | C TEXT | MEANING; there is a '|' behind the meaning");
    refuses(HEAD "op f(a) | $b | a\n", "table x.isa:9: f: there is no parameter '$b'");
    refuses(HEAD "op f(a) | | a\n", "table x.isa:9: f has no C text");
    refuses(HEAD "op f(a) | $a |\n", "table x.isa:9: f has no meaning");
    refuses(HEAD "op f a | $a | a\n", "table x.isa:9: 'f' is no kind of result");
    refuses(HEAD "op f(int a) | $a | a\n", "table x.isa:9: 'int' is no kind of parameter");
    refuses(HEAD "op f(a, a) | $a | a\n", "table x.isa:9: f has two parameters 'a'");
    refuses(HEAD "op f(a,) | $a | a\n", "table x.isa:9: f: a parameter is missing after a comma");
    refuses(HEAD "op f(a, b, c, d, e, g, h) | $a | a\n", "table x.isa:9: f has too many parameters");
    refuses(HEAD "op f(a)\n  | $a | a\nop f(a) | $a | a\n", "table x.isa:11: f has two rows");
    Arena *arena = arena_new();
    FailureTrap trap;
    if (failure_trap(&trap) == 0) isa_load(arena, "nothing");
    assert_string_equal(trap.message, "table nothing.isa: there is no such file");
    arena_free(arena);
}

/* Any C may be emitted here; what runs is of this processor, or what the command line names. */
static int tested_tables(int argc, char **argv, const char **names) {
    int n = 0;
    for (const Isa *const *isa = targets_all(); *isa; isa++) {
        bool wanted = argc == 1 && isa_is_here(*isa);
        for (int a = 1; a < argc; a++) wanted |= strcmp(argv[a], (*isa)->name) == 0;
        if (wanted) names[n++] = (*isa)->name;
        if (wanted && (*isa)->half) names[n++] = (*isa)->half->name;
    }
    return n;
}

int main(int argc, char **argv) {
    Arena *arena = arena_new();
    int n = 6;
    struct CMUnitTest tests[6 + MOST_TABLES] = {
        cmocka_unit_test(test_tables_agree),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_named),
        cmocka_unit_test(test_based), cmocka_unit_test(test_helpers),
        cmocka_unit_test(test_table_errors),
    };
    const char *tested[MOST_TABLES];
    int n_tested = tested_tables(argc, argv, tested);
    for (int t = 0; t < n_tested; t++)
        tests[n++] = (struct CMUnitTest)cmocka_unit_test_prestate(test_table, (void *)(uintptr_t)&tested[t]);
    int failed = _cmocka_run_group_tests("tests", tests, (size_t)n, NULL, NULL);
    arena_free(arena);
    return failed;
}
