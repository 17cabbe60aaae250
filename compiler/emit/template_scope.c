/* template_scope.c: names, values, scopes and lists of the template language (see template.c). */
#include "template_parts.h"

#include <stddef.h>
#include <string.h>

/* ---------------------------------------------------------------------------------- names */

/* Names are looked up far more often than they are read: each stands in memory once, and equal names are equal
 * pointers. They stay for the process, as the parsed templates do that hold them. */
typedef struct Name {
    struct Name *next;
    uint64_t hash;
    char text[];
} Name;

enum { NAME_LISTS = 1024 };

const char *name_of(const char *start, size_t size) {
    static Arena *arena;
    static Name *lists[NAME_LISTS];
    uint64_t hash = hash_bytes(0, start, size);
    Name **list = &lists[hash % NAME_LISTS];
    for (const Name *n = *list; n; n = n->next)
        if (n->hash == hash && strncmp(n->text, start, size) == 0 && n->text[size] == '\0') return n->text;
    if (!arena) arena = arena_new();
    Name *fresh = arena_alloc(arena, sizeof *fresh + size + 1);
    fresh->next = *list;
    fresh->hash = hash;
    memcpy(fresh->text, start, size);
    return (*list = fresh)->text;
}

/* ---------------------------------------------------------------------------------- values and scopes */

/* The number of the bit in a scope of a name that name_of gave. */
static unsigned bit_of(const char *name) {
    return (unsigned)(((const Name *)(const void *)(name - offsetof(Name, text)))->hash % 256);
}

const char *template_print(Arena *arena, TemplateValue value) {
    return value.kind == TEMPLATE_TEXT ? value.text : arena_printf(arena, "%lld", (long long)value.integer);
}

const char *template_describe(Arena *arena, TemplateValue value) {
    switch (value.kind) {
    case TEMPLATE_INT: return arena_printf(arena, "the number %lld", (long long)value.integer);
    case TEMPLATE_TEXT: return arena_printf(arena, "the text '%s'", value.text);
    case TEMPLATE_LIST: return "a list";
    case TEMPLATE_RECORD: return "a record";
    }
    return "no value";
}

TemplateVars *vars_new(Arena *arena, TemplateVars *parent) {
    TemplateVars *vars = arena_alloc(arena, sizeof *vars);
    *vars = (TemplateVars){arena, parent, NULL, {0}};
    return vars;
}

/* A variable that is found moves to the front, since a template reads a few of its many constants often. */
static Var *find_own(TemplateVars *vars, const char *name, unsigned bit) {
    if (!(vars->bits[bit / 64] >> bit % 64 & 1)) return NULL;
    for (Var **link = &vars->vars; *link; link = &(*link)->next) {
        Var *v = *link;
        if (v->name != name) continue;
        *link = v->next;
        v->next = vars->vars;
        vars->vars = v;
        return v;
    }
    return NULL;
}

bool vars_has_own(TemplateVars *vars, const char *name) { return find_own(vars, name, bit_of(name)) != NULL; }

const TemplateValue *vars_find(TemplateVars *vars, const char *name) {
    const unsigned bit = bit_of(name);
    for (; vars; vars = vars->parent) {
        const Var *v = find_own(vars, name, bit);
        if (v) return &v->value;
    }
    return NULL;
}

void vars_set(TemplateVars *vars, const char *name, TemplateValue value) {
    const unsigned bit = bit_of(name);
    Var *v = find_own(vars, name, bit);
    if (!v) {
        v = arena_alloc(vars->arena, sizeof *v);
        *v = (Var){vars->vars, name, {0}};
        vars->vars = v;
        vars->bits[bit / 64] |= UINT64_C(1) << bit % 64;
    }
    v->value = value;
}

void vars_int(TemplateVars *vars, const char *name, int64_t value) {
    vars_set(vars, name_of(name, strlen(name)), template_int(value));
}

void vars_text(TemplateVars *vars, const char *name, const char *value) {
    vars_set(vars, name_of(name, strlen(name)), template_text(arena_copy(vars->arena, value, strlen(value))));
}

bool vars_assign(Expansion *x, const char *name, TemplateValue value) {
    const unsigned bit = bit_of(name);
    for (TemplateVars *vars = x->scope;; vars = vars->parent) {
        Var *v = find_own(vars, name, bit);
        if (v) v->value = value;
        if (v || vars == x->globals) return v != NULL;
    }
}

/* ---------------------------------------------------------------------------------- lists */

struct TemplateList {
    Arena *arena;
    TemplateVars **records;
    int count, room;
};

TemplateList *vars_list(TemplateVars *vars, const char *name) {
    TemplateList *list = arena_alloc(vars->arena, sizeof *list);
    *list = (TemplateList){.arena = vars->arena};
    vars_set(vars, name_of(name, strlen(name)), (TemplateValue){.kind = TEMPLATE_LIST, .list = list});
    return list;
}

TemplateVars *vars_record(TemplateVars *vars, const char *name) {
    TemplateVars *record = vars_new(vars->arena, NULL);
    vars_set(vars, name_of(name, strlen(name)), (TemplateValue){.kind = TEMPLATE_RECORD, .record = record});
    return record;
}

TemplateVars *list_record(TemplateList *list) {
    list->records = arena_grow(list->arena, list->records, list->count, &list->room, sizeof(TemplateVars *));
    return list->records[list->count++] = vars_new(list->arena, NULL);
}

TemplateVars *template_record(const TemplateList *list, int64_t i) {
    return i < list->count ? list->records[i] : NULL;
}

int64_t template_count(const TemplateList *list) { return list->count; }

/* ---------------------------------------------------------------------------------- errors */

/* The visible name that is most like `name`, or NULL. */
static const char *nearest_name(Arena *arena, const TemplateVars *vars, const char *name) {
    size_t count = 0;
    for (const TemplateVars *of = vars; of; of = of->parent)
        for (const Var *v = of->vars; v; v = v->next) count++;
    const char **names = arena_array(arena, count + 1, sizeof *names);
    count = 0;
    for (const TemplateVars *of = vars; of; of = of->parent)
        for (const Var *v = of->vars; v; v = v->next) names[count++] = v->name;
    return nearest_word(name, names);
}

void unknown_field(const Expansion *x, const char *of, const TemplateVars *record, const char *name) {
    const char *near = nearest_name(x->arena, record, name);
    if (near) expand_error(x, "the record '%s' has no field '%s'; is '%s' meant?", of, name, near);
    expand_error(x, "the record '%s' has no field '%s'", of, name);
}

void unknown_name(const Expansion *x, const char *name) {
    const char *near = nearest_name(x->arena, x->scope, name);
    if (near) expand_error(x, "there is no name '%s'; is '%s' meant?", name, near);
    expand_error(x, "there is no name '%s'", name);
}
