/* template.h: the interface of the template engine. template.c describes the language. */
#ifndef ATTNC_TEMPLATE_H
#define ATTNC_TEMPLATE_H

#include "../attnc.h"

typedef struct Writer Writer;
typedef struct Isa Isa;

/* ======================================================================= emit/template_scope.c
 * The names that a template sees. */
typedef struct TemplateVars TemplateVars;

TemplateVars *vars_new(Arena *arena, TemplateVars *parent); /* sees the parent's names; parent may be NULL */
void vars_int(TemplateVars *vars, const char *name, int64_t value); /* sets or replaces */
void vars_text(TemplateVars *vars, const char *name, const char *value);
TemplateVars *vars_record(TemplateVars *vars, const char *name); /* sets or replaces NAME by a record without fields */
/* A list of records, over which `$for` and `join` of a template run. The fields of a record are names of its own: ints,
 * texts and lists. */
typedef struct TemplateList TemplateList;
TemplateList *vars_list(TemplateVars *vars, const char *name); /* sets or replaces NAME by an empty list */
TemplateVars *list_record(TemplateList *list);                 /* appends a record without fields */

/* ======================================================================= emit/template.c */
/* Expands an embedded template into the writer. `isa` may be NULL for a template that uses no `v.`. */
void template_expand(Arena *arena, Writer *writer, const char *template_name, TemplateVars *vars, const Isa *isa);
/* Returns the text of an embedded template that uses no target. Beyond `budget` bytes the program ends, as the writer
 * does, with a message that names `what`. */
const char *template_expanded(Arena *arena, const char *template_name, size_t budget, const char *what,
                              TemplateVars *vars);
/* What expansions have needed of a table's helpers. */
typedef struct HelperUse {
    const Isa *isa;
    uint32_t helpers; /* a bit for each of isa->helpers that operations call */
    bool needed;      /* a helper, or the attribute of the table's functions */
} HelperUse;
/* As template_expand, with another table for `u.`. Notes the helpers that operations call in the entries of their
 * tables in `uses`, a list that ends with an entry without a table. */
void template_expand_with(Arena *arena, Writer *writer, const char *template_name, TemplateVars *vars, const Isa *v,
                          const Isa *u, HelperUse *uses);
void template_expand_text(Arena *arena, Writer *writer, const char *name, const char *text, TemplateVars *vars,
                          const Isa *isa);
/* Prints the helpers of a table that is needed: those without a name, and those whose bit is set. `vars` holds
 * "prefix". */
void template_expand_helpers(Arena *arena, Writer *writer, TemplateVars *vars, const HelperUse *use);

#endif
