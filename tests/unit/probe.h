/* probe.h: the test, in emitted C, of the targets that a machine runs. */
#ifndef PROBE_H
#define PROBE_H

#include "../../compiler/emit/emit.h"

/* The emitted function test_cpu(), whose bit t says that the machine has isas[t]. */
static inline const char *make_probe(Arena *arena, const Isa *const *isas) {
    Writer *writer = writer_new(arena, 1 << 20, "the probe");
    TemplateVars *vars = vars_new(arena, NULL);
    vars_text(vars, "p", "test");
    set_probes(arena, isas, vars);
    const CpuidRegister reg = *isas && *isas[0]->cpu ? feature_find(*isas[0]->cpu)->reg : CPUID_EAX;
    const char *file = reg >= RISCV_AUXV ? "probe_riscv.c.tmpl"
                       : reg >= NO_CPUID ? "probe_auxv.c.tmpl"
                                         : "probe.c.tmpl";
    template_expand(arena, writer, file, vars, NULL);
    return writer_text(writer, NULL);
}

#endif
