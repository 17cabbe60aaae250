/* names.c: the named constants of the emitted C for offsets into weights, workspace and states. Needs a laid-out
 * program and its schedules. A name ends in the tensor's name in the model, as in layer3_attention_output_weight.
 * Buffers of several layers that begin at the same offset share a name without the layer. */
#include "names.h"

#include <stdlib.h>
#include <string.h>

typedef struct Namer {
    Arena *arena;
    const Program *program;
    Names *names;
    bool *reads;          /* whether a call begins at the packed tensor */
    int *parts;           /* number of packed tensors, from this one on, that a product reads as one matrix */
} Namer;

/* ---------------------------------------------------------------- names */

/* "layer3_attention_query" for the part "attention_query"; the stack stands in front where the model has two. */
static char *identifier(const Namer *n, const char *tag, const Site *site, bool with_layer, const char *part) {
    const Model *m = n->program->module->model;
    const char *stack = m->encoder && m->decoder && site->stack ? site->stack : "";
    char layer[32] = "", *name;
    if (with_layer && site->layer >= 0) snprintf(layer, sizeof layer, "layer%d_", site->layer);
    name = arena_printf(n->arena, "%s_%s_%s%s%s%s", m->name, tag, stack, *stack ? "_" : "", layer, part);
    for (char *c = name; *c; c++)
        if (!c_in_name(*c)) *c = '_'; /* a number of a table's name may have a sign */
    return name;
}

static bool is_taken(const OffsetList *list, const char *name, uint64_t hash) {
    for (int i = 0; i < list->n; i++)
        if (list->items[i].hash == hash && strcmp(list->items[i].name, name) == 0) return true;
    return false;
}

/* Adds the offset, and returns its name, which ends in a number if the list already has that name. */
static const char *add_offset(const Namer *n, OffsetList *list, const char *name, int64_t at, const char *comment) {
    const char *fresh = name;
    uint64_t hash = hash_bytes(0, fresh, strlen(fresh));
    for (int same = 2; is_taken(list, fresh, hash); same++) {
        fresh = arena_printf(n->arena, "%s_%d", name, same);
        hash = hash_bytes(0, fresh, strlen(fresh));
    }
    list->items = arena_grow(n->arena, list->items, list->n, &list->room, sizeof *list->items);
    list->items[list->n++] = (NamedOffset){.name = fresh, .comment = comment, .at = at, .hash = hash};
    return fresh;
}

/* ---------------------------------------------------------------- weights */

static void note_parts(const Namer *n, const GemmStep *g) {
    if (g->parts > n->parts[g->weight]) n->parts[g->weight] = g->parts;
    if (g->bias != NO_PACKED && g->parts > n->parts[g->bias]) n->parts[g->bias] = g->parts;
}

static void note_reads(const Namer *n, const PlanSchedule *schedule) {
    for (int i = 0; schedule && i < schedule->plan->n_steps; i++) {
        const ScheduledStep *s = &schedule->steps[i];
        if (s->step->kind == STEP_GEMM) note_parts(n, &s->step->gemm);
        for (int a = 0; a < kernel_rows[s->call->kernel].n_parameters; a++) {
            const Argument *argument = &s->call->arguments[a];
            if (!argument->given || argument->packed == NO_PACKED) continue;
            n->reads[argument->packed] = true;
            n->names->has_next |= kernel_rows[s->call->kernel].parameters[a].kind == PARAMETER_NEXT;
        }
    }
    if (schedule) note_reads(n, schedule->single);
}

/* The lengths of the words that the names of packed tensors share at both ends. */
typedef struct Common {
    size_t front, back;
} Common;

static Common common_ends(const Packed *first, int parts) {
    const char *part = first->site.part;
    size_t size = strlen(part), front = size, back = size;
    for (int i = 1; i < parts; i++) {
        const char *other = first[i].site.part;
        size_t length = strlen(other), same = 0;
        while (same < front && part[same] == other[same]) same++;
        front = same;
        for (same = 0; same < back && same < length - front && part[size - 1 - same] == other[length - 1 - same];)
            same++;
        back = same;
    }
    while (front && part[front - 1] != '_') front--;
    while (back && part[size - back] != '_') back--;
    return (Common){front, back};
}

static void add_parts(Text *text, const Packed *first, int parts, Common common, const char *separator) {
    for (int i = 0; i < parts; i++) {
        const char *own = first[i].site.part;
        text_printf(text, "%s%.*s", i ? separator : "", (int)(strlen(own) - common.front - common.back),
                    own + common.front);
    }
}

/* "attention_query_key_value" for attention_query_weight and the two behind it: matrices go without their last word. */
static const char *joined_part(const Namer *n, const Packed *first, int parts) {
    static const char ending[] = "_weight";
    const char *part = first->site.part;
    size_t size = strlen(part), left = sizeof ending - 1;
    Text text = text_new(n->arena);
    if (parts > 1) {
        const Common common = common_ends(first, parts);
        text_add(&text, part, common.front);
        add_parts(&text, first, parts, common, "_");
        text_add(&text, part + size - common.back, common.back);
    } else {
        text_add(&text, part, size);
    }
    if (text.size > left && strcmp(text.data + text.size - left, ending) == 0) text.data[text.size - left] = '\0';
    return text.data;
}

/* " query, key, value": the tensors of a product's parts */
static const char *part_names(const Namer *n, const Packed *first, int parts) {
    if (parts < 2) return "";
    Text text = text_new(n->arena);
    text_add(&text, " ", 1);
    add_parts(&text, first, parts, common_ends(first, parts), ", ");
    return text.data;
}

/* "[72][384][16]" of panels, the dimensions of rows */
static const char *stored_shape(const Namer *n, const Packed *first, int parts) {
    const Layout *layout = &first->slot.layout;
    int64_t panels = 0, elements = 0;
    Text text = text_new(n->arena);
    for (int i = 0; i < parts; i++) {
        const Packed *p = first + i;
        if (layout->panel) panels += ceil_div(packed_rows(p), layout->panel);
        else elements += layout_elements(layout, p->slot.bytes);
    }
    if (layout->panel && first->shape.rank > 2) text_printf(&text, "[%lld]", (long long)first->shape.dims[0]);
    if (layout->panel)
        text_printf(&text, "[%lld][%lld][%d]", (long long)panels, (long long)packed_columns(first), layout->panel);
    else if (parts > 1) text_printf(&text, "[%lld]", (long long)elements);
    for (int d = 0; parts < 2 && !layout->panel && d < first->shape.rank; d++)
        text_printf(&text, "[%lld]", (long long)first->shape.dims[d]);
    return text.data;
}

/* "encoder.layers.3." in front of a layer's first tensor, else NULL */
static const char *heading(const Namer *n, const Packed *p, const Site **last) {
    const Site *site = &p->site, *before = *last;
    if (p->derived >= 0) return NULL; /* of no layer, though it may stand among the tensors of a layer */
    *last = site;
    bool same = before && before->layer == site->layer && before->stack == site->stack;
    if (site->layer < 0 || same) return NULL;
    return arena_printf(n->arena, "%s.layers.%d.", site->stack, site->layer);
}

static void name_weights(const Namer *n) {
    const Site *last = NULL;
    for (int i = 0; i < n->program->n_packed; i++) {
        if (!n->reads[i]) continue;
        const Packed *p = &n->program->packed[i];
        int parts = n->parts[i] ? n->parts[i] : 1;
        Dtype dtype = p->slot.layout.dtype;
        const char *type = dtype == DTYPE_F32 ? "" : arena_printf(n->arena, "%s ", dtype_name(dtype));
        const char *comment = arena_printf(n->arena, "%s%s%s%s", type, stored_shape(n, p, parts),
                                           p->plus_one ? " + 1" : "", part_names(n, p, parts));
        const char *name = identifier(n, "w", &p->site, true, joined_part(n, p, parts));
        n->names->packed[i] = add_offset(n, &n->names->weights, name, slot_element(&p->slot), comment);
        n->names->weights.items[n->names->weights.n - 1].heading = heading(n, p, &last);
    }
}

/* ---------------------------------------------------------------- states */

static void name_caches(const Namer *n) {
    for (int i = 0; i < n->program->n_caches; i++) {
        const Cache *c = &n->program->caches[i];
        long long heads = c->heads, width = c->width, slots = c->slots;
        const char *shape = c->slot.layout.panel
                                ? arena_printf(n->arena, "[%lld][%lld][%lld][%d]", heads, slots / PANEL, width, PANEL)
                            : c->ranges
                                ? arena_printf(n->arena, "[%lld] and ranges [%lld][2]", slots, slots / PANEL)
                                : arena_printf(n->arena, "[%lld][%lld][%lld]", heads, slots, width);
        const Dtype dtype = c->slot.layout.dtype;
        const char *comment = arena_printf(n->arena, "%s%s%s%s", shape, dtype == DTYPE_F32 ? "" : " of ",
                                           dtype == DTYPE_F32 ? "" : dtype_name(dtype), c->ring ? ", a ring" : "");
        bool of_source = c->slot.space == SPACE_SOURCE;
        n->names->caches[i] = add_offset(n, of_source ? &n->names->source : &n->names->state,
                                         identifier(n, "cache", &c->site, true, c->site.part),
                                         slot_element(&c->slot), comment);
    }
}

/* ---------------------------------------------------------------- the workspace */

/* Buffers of several layers with the same name, offset and shape. */
typedef struct Shared {
    const char *name, *shape;
    int64_t at;
    Text lives;                /* the steps between which they live */
    int first, last, distance; /* layers, or -1; the distance between layers, or 0 if it varies */
} Shared;

/* "ffn_down to attention_output of the next layer" */
static const char *life(const Namer *n, const Plan *plan, const Buffer *b) {
    const Site *first = &plan->steps[b->first].site, *last = &plan->steps[b->last].site;
    if (last->layer == first->layer || last->layer < 0)
        return arena_printf(n->arena, "%s to %s", first->part, last->part);
    if (first->layer >= 0 && last->layer == first->layer + 1)
        return arena_printf(n->arena, "%s to %s of the next layer", first->part, last->part);
    return arena_printf(n->arena, "%s to %s of layer %d", first->part, last->part, last->layer);
}

/* Adds the buffer to those that share its name, offset and shape, and returns their index. */
static int share(const Namer *n, const Plan *plan, const Buffer *b, const char *tag, Shared *shared, int *n_shared) {
    const char *name = identifier(n, tag, &b->site, false, b->site.part);
    const char *shape =
        arena_printf(n->arena, "[%lld][%lld]", (long long)buffer_rows(plan, b), (long long)b->stride);
    int64_t at = layout_elements(&LAYOUT_ROWS, b->slot.offset); /* the workspace is an array of floats */
    int s = 0, layer = b->site.layer;
    while (s < *n_shared &&
           (shared[s].at != at || strcmp(shared[s].name, name) != 0 || strcmp(shared[s].shape, shape) != 0))
        s++;
    Shared *of = &shared[s];
    if (s == *n_shared) {
        *of = (Shared){name, shape, at, text_new(n->arena), layer, layer, 0};
        ++*n_shared;
    } else if (layer != of->last) {
        bool second = of->last == of->first;
        of->distance = second || of->distance == layer - of->last ? layer - of->last : 0;
        of->last = layer;
    }
    const char *lives = life(n, plan, b);
    if (!of->lives.size) text_printf(&of->lives, "%s", lives);
    else if (!strstr(of->lives.data, lives)) text_printf(&of->lives, ", %s", lives);
    return s;
}

/* The layers of the buffers, as in ", layers 2, 4 to 24"; empty if no other layer has them at another offset. */
static const char *layers_text(const Namer *n, const Shared *shared, int n_shared, const Shared *of) {
    bool elsewhere = false;
    for (int s = 0; s < n_shared; s++) elsewhere |= &shared[s] != of && strcmp(shared[s].name, of->name) == 0;
    if (!elsewhere || of->first < 0) return "";
    if (of->first == of->last) return arena_printf(n->arena, ", layer %d", of->first);
    if (of->distance == 1) return arena_printf(n->arena, ", layers %d to %d", of->first, of->last);
    if (!of->distance) return arena_printf(n->arena, ", some layers from %d to %d", of->first, of->last);
    return arena_printf(n->arena, ", layers %d, %d to %d", of->first, of->first + of->distance, of->last);
}

static int compare_places(const void *a, const void *b) {
    const NamedOffset *x = a, *y = b;
    return x->at != y->at ? (x->at > y->at) - (x->at < y->at) : strcmp(x->name, y->name);
}

static void name_buffers(const Namer *n, EntryKind entry) {
    static const char *const tags[] = {"x", "encode_x", "decode_x"};
    const Plan *plan = n->program->entries[entry];
    OffsetList *list = &n->names->workspace[entry];
    size_t room = (size_t)plan->n_buffers;
    Shared *shared = arena_array(n->arena, room, sizeof *shared);
    int *index = arena_array(n->arena, room, sizeof *index), n_shared = 0;
    for (int i = 0; i < plan->n_buffers; i++) {
        const Buffer *b = &plan->buffers[i];
        bool used = b->slot.space == SPACE_WORKSPACE && b->first >= 0;
        index[i] = used ? share(n, plan, b, tags[entry], shared, &n_shared) : -1;
    }
    const char **names = arena_array(n->arena, (size_t)n_shared, sizeof *names);
    for (int s = 0; s < n_shared; s++) {
        const Shared *of = &shared[s];
        const char *comment = arena_printf(n->arena, "%s %s%s", of->shape, of->lives.data,
                                           layers_text(n, shared, n_shared, of));
        names[s] = add_offset(n, list, of->name, of->at, comment);
    }
    for (int i = 0; i < plan->n_buffers; i++) n->names->buffers[entry][i] = index[i] < 0 ? NULL : names[index[i]];
    if (list->n) qsort(list->items, (size_t)list->n, sizeof *list->items, compare_places);
}

/* ---------------------------------------------------------------- all */

Names *names_new(Arena *arena, const Program *program, struct Schedule *const *schedules) {
    Names *names = arena_alloc(arena, sizeof *names);
    *names = (Names){.packed = arena_array(arena, (size_t)program->n_packed, sizeof *names->packed),
                     .caches = arena_array(arena, (size_t)program->n_caches, sizeof *names->caches)};
    const Namer n = {arena, program, names, arena_array(arena, (size_t)program->n_packed, sizeof *n.reads),
                     arena_array(arena, (size_t)program->n_packed, sizeof *n.parts)};
    for (int t = 0; schedules[t]; t++)
        for (int i = 0; i < ENTRY_COUNT; i++) note_reads(&n, schedules[t]->entries[i]);
    name_weights(&n);
    name_caches(&n);
    for (int i = 0; i < ENTRY_COUNT; i++) {
        const Plan *plan = program->entries[i];
        if (!plan) continue;
        names->buffers[i] = arena_array(arena, (size_t)plan->n_buffers, sizeof **names->buffers);
        names->comments[i] = arena_array(arena, (size_t)plan->n_steps, sizeof **names->comments);
        name_buffers(&n, (EntryKind)i);
        for (int s = 0; s < plan->n_steps; s++) names->comments[i][s] = step_comment(arena, plan, &plan->steps[s]);
    }
    return names;
}

static void set_list(Arena *arena, TemplateVars *vars, const char *name, const OffsetList *from) {
    enum { COLUMNS = 120 };
    TemplateList *list = vars_list(vars, name);
    for (int i = 0; i < from->n; i++) {
        const NamedOffset *o = &from->items[i];
        TemplateVars *record = list_record(list);
        const char *at = arena_printf(arena, "%lld", (long long)o->at);
        vars_text(record, "name", o->name);
        vars_text(record, "at", at);
        vars_text(record, "comment", o->comment);
        if (o->heading) vars_text(record, "heading", o->heading);
        vars_int(record, "is_long",
                 strlen("#define ") + strlen(o->name) + strlen(at) + strlen(o->comment) + strlen("  /*  */") > COLUMNS);
    }
}

void set_offsets(Arena *arena, const Names *names, TemplateVars *vars) {
    vars_int(vars, "has_next", names->has_next);
    set_list(arena, vars, "weights", &names->weights);
    set_list(arena, vars, "state", &names->state);
    set_list(arena, vars, "source", &names->source);
}

void set_workspace(Arena *arena, const Names *names, EntryKind entry, TemplateVars *vars) {
    set_list(arena, vars, "buffers", &names->workspace[entry]);
}
