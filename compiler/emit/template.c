/* template.c: expands templates of C.
 *
 * A template looks like the C it prints. A line that begins with `$` and a letter steers; the others are
 * printed, with ${EXPR} replaced by the expression's value and $$ by one $. Indentation is the writer's:
 * a template indents steering with the C that it steers. A line that has text but expands to none prints
 * nothing. A line that ends with `\` goes on in the next one, whose indentation does not count; ${"\\"}
 * prints a `\` at the end of a line.
 *
 *   $# TEXT                          a comment of the template, not printed
 *   $let NAME = EXPR                 a new name, until the block around it ends
 *   $let NAME: TEXT                  the same for the rest of the line, a text that may hold ${}
 *   $set NAME = EXPR                 another value for a name that the template let; or $set NAME: TEXT
 *   $define NAME(p, q) = EXPR        a function; or $define NAME(p, q): TEXT. It sees what a macro sees
 *   $if EXPR  $elif EXPR  $else  $end
 *   $for NAME in A..B [step S]  $end            always unrolled, for A, A + S, ... below B
 *   $for NAME [, I] in LIST  $end               for each record of the list; I counts them from 0
 *   $loop NAME in A..B [step S] unroll U  $end  see below
 *   $macro NAME(p, q)  $end          sees its parameters and the names let outside all blocks
 *   $use NAME(EXPR, EXPR)            expands a macro
 *   $include "file"                  an embedded file, as if its lines stood here
 *   $verbatim                        on its first line: the text is no C, and its lines keep their own indentation
 *   $error TEXT                      ends the program
 *
 * $loop is the one way to write a loop in the output. With `unroll full`, or when bounds are numbers and
 * there are less than 2 U trips, it becomes straight-line code in which NAME is a number. With U <= 1 it
 * becomes `for (size_t NAME = A; NAME < B; NAME += S)`, in which NAME is text. Otherwise it becomes a C
 * loop of U copies, in which NAME is "NAME", "(NAME + S)", ..., and the rest follows: straight-line for
 * bounds that are numbers, a plain loop for bounds that are text. A copy that declares C variables gets
 * braces of its own. So nothing that is declared inside is seen outside, however the loop is written.
 *
 * Values are 64-bit integers and texts. Operators, loosest first: ?: || && == != < <= > >= ~ + - * / % ! -
 * where `~` joins two values as text. Arithmetic with a text is C that runs later: the result is the
 * text "(a * b)", simplified for 0 and 1. The functions are min, max, ceil_div, round_up, count(LIST), defined(NAME),
 * expand(TEXT), which replaces each ${} in the value of TEXT, and the functions that the template defines.
 *
 * The caller of a template may also give it lists of records (vars_list), which macros take as arguments but no line
 * can print. RECORD.FIELD is an integer, a text or a list; defined(RECORD.FIELD) says whether it is there.
 *
 * `join NAME [, I] in LIST [by SEPARATOR]: TEXT` is the TEXT of each record, with ", " or the SEPARATOR between them.
 * The TEXT may hold ${} itself and ends at the bracket that closes the join. Records whose TEXT is empty are left out.
 * A list of parameters stands on one line so: void f(${join p in params: ${p.type} ${p.name}}) {
 *
 * `v` is the target: v.width v.registers v.fused v.apart are integers, v.type v.name v.attribute v.guard texts;
 * v.has(NAME) is 1 where its table has that capability, else 0; v.OP(TEXT, TEXT) is an operation of its table. The
 * arguments are text, split at commas outside brackets, and may hold ${} themselves: ${v.fma(acc${r}, a, b${c})}.
 * OP_part with a number of lanes is the row OP_4 for 4 of them and OP for all, where the table has these. `u` is the
 * same, or another table of the same processor (template_expand_with). */
#include "template_parts.h"

static void expand(Arena *arena, Writer *writer, const Template *template, TemplateVars *vars, const Isa *v,
                   const Isa *u, HelperUse *uses) {
    Frame frame = {.file = template->name};
    TemplateVars *globals = vars_new(arena, vars);
    Expansion x = {.arena = arena, .writer = writer, .v = v, .u = u, .uses = uses,
                   .scope = globals, .globals = globals, .frame = &frame};
    template_run(&x, template);
}

void template_expand_with(Arena *arena, Writer *writer, const char *template_name, TemplateVars *vars, const Isa *v,
                          const Isa *u, HelperUse *uses) {
    const Template *template = template_embedded(template_name);
    if (!template) bug("template %s: there is no such file", template_name);
    expand(arena, writer, template, vars, v, u, uses);
}

void template_expand(Arena *arena, Writer *writer, const char *template_name, TemplateVars *vars, const Isa *isa) {
    template_expand_with(arena, writer, template_name, vars, isa, isa, NULL);
}

const char *template_expanded(Arena *arena, const char *template_name, size_t budget, const char *what,
                              TemplateVars *vars) {
    Writer *writer = writer_new(arena, budget, what);
    template_expand(arena, writer, template_name, vars, NULL);
    return writer_text(writer, NULL);
}

void template_expand_text(Arena *arena, Writer *writer, const char *name, const char *text, TemplateVars *vars,
                          const Isa *isa) {
    expand(arena, writer, template_parse(arena, name, 1, text), vars, isa, isa, NULL);
}

void template_expand_helpers(Arena *arena, Writer *writer, TemplateVars *vars, const HelperUse *use) {
    const Isa *isa = use->isa;
    uint32_t wanted = use->helpers;
    for (int i = 0; i < isa->n_helpers && use->needed; i++)
        if (!isa->helpers[i].name) wanted |= UINT32_C(1) << i | isa->helpers[i].helpers;
    for (int i = 0; i < isa->n_helpers; i++) {
        if (!(wanted >> i & 1)) continue;
        const IsaHelper *helper = &isa->helpers[i];
        const Template *template = template_parse(arena, helper->file, helper->line, helper->text);
        expand(arena, writer, template, vars, isa, isa, NULL);
        writer_blank(writer);
    }
}
