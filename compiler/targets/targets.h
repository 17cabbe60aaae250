/* targets.h: the tables of instruction sets, and the features of the machine that attnc runs on. */
#ifndef TARGETS_H
#define TARGETS_H

#include "../attnc.h"

/* ======================================================================= targets/features.c
 * The features of x86-64, aarch64 and RISC-V processors. Each has a row in features.def. */
typedef enum CpuidRegister {
    CPUID_EAX,
    CPUID_EBX,
    CPUID_ECX,
    CPUID_EDX,
    NO_CPUID,  /* an aarch64 feature: the entry `leaf` of the auxiliary vector has the bit */
    SVE_LENGTH, /* registers of SVE have `bit` bytes or more */
    RISCV_AUXV, /* a RISC-V feature, as NO_CPUID */
    RISCV_LENGTH /* registers of RISC-V's vectors have `bit` bytes or more */
} CpuidRegister;

typedef struct Feature {
    const char *name; /* in a table's `cpu` line */
    uint32_t leaf, subleaf;
    CpuidRegister reg;
    uint32_t bit;   /* a mask */
    uint32_t state; /* bits of XCR0 */
    const char *macro; /* which a compiler defines if every machine that it compiles for has the feature; or NULL */
} Feature;

/* The features of x86-64 use registers whose state XGETBV reports. A processor that has them also sets these bits of
 * leaf 1's ECX. */
enum { OSXSAVE_AND_AVX = 3 << 27 };
enum { XCR0_YMM = 0x6, XCR0_ZMM = 0xe6, XCR0_TILES = 0x60000 };

extern const char *const feature_names[];         /* ended by NULL */
const Feature *feature_find(const char *name);    /* or NULL */
/* Whether the processor has it, and the system saves its state and, of tiles, permits this process to use them. */
bool machine_has_feature(const Feature *feature);

/* ======================================================================= targets/isa.c
 * A target's instruction table; the format is described above the parser. */
typedef enum IsaKind {
    ISA_VECTOR,   /* all lanes */
    ISA_INTEGERS, /* a vector of integers of 32 bits */
    ISA_PAIRS,    /* the same, of which each is two numbers of bf16, the first one in the low half */
    ISA_INTEGRAL, /* a vector whose lanes are whole numbers from -252 to 252 */
    ISA_CODES,    /* a vector whose lanes are whole numbers from 0 to 255 */
    ISA_FLOAT,    /* one float */
    ISA_COUNT,    /* size_t, 1 to width */
    ISA_READ,     /* const float * */
    ISA_READ16,   /* const uint16_t *: numbers of 16 bits */
    ISA_READ8,    /* const int8_t * */
    ISA_READ2X16, /* const uint16_t *: two for each lane */
    ISA_READ4X8,  /* const int8_t *: four for each lane */
    ISA_BYTE,     /* int, 0 to 3: one of four neighbouring bytes */
    ISA_NIBBLE,   /* int, 0 to 7: one of eight neighbouring halves of bytes, the lowest bits first */
    ISA_WRITE,    /* float * */
    ISA_WRITE8,   /* uint8_t * */
    ISA_BITS,     /* uint32_t: a bit for each lane, the lowest bit for the first one */
    ISA_SET,      /* a vector to which the operation assigns */
    ISA_VOID      /* as a result only: the operation is a statement */
} IsaKind;

enum { ISA_MAX_PARAMS = 6 };

typedef struct IsaPiece {
    const char *text; /* with param < 0 */
    size_t size;      /* its */
    int param;        /* the parameter that stands here, or ISA_TEXT, or ISA_PREFIX */
} IsaPiece;

enum { ISA_TEXT = -1, ISA_PREFIX = -2 };

typedef struct IsaOp {
    const char *name;
    IsaKind result;
    int param_count;
    IsaKind kinds[ISA_MAX_PARAMS];
    const char *params[ISA_MAX_PARAMS];
    IsaPiece *pieces; /* the C text */
    size_t piece_count;
    bool needs_prefix;   /* the C text has ${prefix} */
    bool inherited;      /* of the table that this one is based on: a row of its own may replace it */
    uint32_t helpers;    /* a bit for each of the table's helpers that the C text calls */
    const char *meaning; /* a C expression for lane i; see isa.c */
} IsaOp;

/* C in front of the kernels, a template text that needs ${prefix}. */
typedef struct IsaHelper {
    const char *name; /* the function ${table}_NAME, which is printed if it is called; NULL: printed always */
    const char *text;
    const char *file; /* the table that holds the text */
    int line;         /* the text's first line there */
    bool inherited;   /* of the table that this one is based on: a helper of its own may replace it */
    bool replaces;    /* has taken the place of one of a table that this one is based on */
    uint32_t helpers; /* a bit for each helper of the table that the function calls, itself or through others */
} IsaHelper;

enum { ISA_MAX_HELPERS = 32, ISA_MAX_BASES = 3 };

typedef struct Isa {
    const char *name, *type; /* "avx512", "__m512" */
    const char *integers;    /* "__m512i" */
    int64_t rank; /* the target with the highest rank that a machine runs is selected; 0: only the half of a target */
    const char *processor;   /* "x86_64", "any" */
    int64_t width, registers;
    bool on_request; /* commands use the target only if it is named, or multiplies the rows of a model */
    bool by_name;    /* on_request, and commands use the target only if it is named */
    const char *slow_with;   /* a feature of machines where the tables that it is based on are faster; or NULL */
    int64_t operator_bytes, function_bytes; /* by which code is estimated; 0: unknown */
    bool fused;              /* fma rounds once */
    bool apart;              /* made by isa_apart */
    const char *guard;       /* preprocessor condition under which the target may be compiled */
    const char *attribute;   /* of each function that uses it; may hold ${prefix} */
    const char *include;     /* "<immintrin.h>", or "" */
    const char *compiler, *refusal; /* a preprocessor condition, and the #error without it; or NULL */
    const char **cpu;        /* features to probe; ended by NULL */
    const char **has;        /* capabilities; ended by NULL */
    const struct Isa *half; /* the table with vectors of half the lanes on the same processor; or NULL */
    IsaHelper *helpers;
    int n_helpers;
    const char *bases[ISA_MAX_BASES]; /* the tables below this one, the nearest first */
    int n_bases;
    IsaOp *ops;
    size_t op_count;
    const char **op_names;   /* ended by NULL */
} Isa;

const Isa *isa_load(Arena *arena, const char *name);                         /* from the embedded NAME.isa */
const Isa *isa_parse(Arena *arena, const char *file_name, const char *text); /* the same for a given text */
const Isa *isa_for(const Isa *isa, int64_t columns);                         /* its half, if that holds a row */
const IsaOp *isa_find(const Isa *isa, const char *name);                     /* or NULL */
bool isa_is_based_on(const Isa *isa, const Isa *base);                       /* itself or through another table */
bool isa_has(const Isa *isa, const char *capability); /* which is one of: */
extern const char *const isa_capabilities[];          /* ended by NULL */
/* `text` with each ${prefix} replaced. */
const char *isa_with_prefix(Arena *arena, const char *text, const char *prefix);

/* ======================================================================= targets/apart.c
 * The table with a `fma` and `fnma` that round product and sum apart; the fused ones are its fma_once and fnma_once. A
 * table whose fma is not fused is returned as it is. */
const Isa *isa_apart(Arena *arena, const Isa *isa);

/* ======================================================================= targets/targets.c */
enum { MOST_TARGETS = 24 }; /* probes have bits for so many; only those of x86-64 have two, and are fewer than 16 */
const Isa *const *targets_all(void); /* every table that is a target, best first, ended by NULL; never freed */
/* The targets of the processor that attnc is built for, without those on request, the lowest rank first; this machine
 * may lack some of them. Rows of I8 add the targets on request with `dot_of_bytes` but without `dot_of_bf16`, which
 * long rows of bf16 in attentions add, too; rows of BF16 add the targets with `dot_of_bf16` or `tiles`. */
const char *const *targets_here(Arena *arena, RowTypes rows, int *n);
/* Of these targets, those that the arithmetic takes: for FUSED, those with a fused multiply-add. */
const char *const *targets_of_arithmetic(Arena *arena, Arithmetic arithmetic, const char *const *targets, int *n);
/* "scalar,avx2,avx512": the targets of x86-64 that compile writes by default on every machine, chosen in the same
 * way. */
const char *default_targets(Arena *arena, RowTypes rows, Arithmetic arithmetic);
const char *const *target_list(Arena *arena, int *n); /* every target of the tables, in order of rank */
bool isa_is_here(const Isa *isa);                     /* for the processor that attnc is built for */
/* Whether this machine runs it; with `emulated`, tiles that it lacks count as there. */
bool machine_has(const char *target, bool emulated);
bool targets_are_small(const char *const *targets, int n); /* one of them has the capability `small` */
void target_require(Arena *arena, const char *name); /* fails with EXIT_CANNOT if there is no such target */
const char *target_names(Arena *arena, const char *last); /* "scalar, avx2 and neon", where `last` is " and " */

#endif
