/* units.c: the parts of a model that have one precision each: the embedding of a stack, the matrices of a sublayer that
 * read its rows, its last matrix, and the head. Parts that share weights are one unit. */
#include "restate.h"

typedef struct UnitList {
    Arena *arena;
    Unit *units;
    int count, room;
} UnitList;

static Unit *unit_add(UnitList *list, const char *name, int places) {
    list->units = arena_grow(list->arena, list->units, list->count, &list->room, sizeof *list->units);
    Unit *unit = &list->units[list->count++];
    *unit = (Unit){.name = name, .places = arena_array(list->arena, (size_t)places, sizeof *unit->places)};
    return unit;
}

static void place_add(Unit *unit, Precision *at) { unit->places[unit->n_places++] = at; }

static const char *sublayer_name(Arena *arena, const Stack *stack, int64_t layer, const Sublayer *s, bool last) {
    const char *matrix = !last ? "" : s->kind == SUBLAYER_FFN ? ".down" : ".output";
    return arena_printf(arena, "%s layer %lld %s%s", stack->name, (long long)layer, s->name, matrix);
}

/* The matrices of a sublayer, or the last one, in all layers that have the weights of that layer. */
static void add_sublayer(UnitList *list, Stack *stack, int64_t owner, int sublayer, bool last) {
    const Sublayer *own = &stack->layers[owner].sublayers[sublayer];
    Unit *unit = unit_add(list, sublayer_name(list->arena, stack, owner, own, last), (int)(stack->n_layers - owner));
    unit->is_last = last;
    unit->attends = !last && own->kind == SUBLAYER_ATTENTION;
    for (int64_t l = owner; l < stack->n_layers; l++) {
        Layer *layer = &stack->layers[l];
        if (layer->weights_of != owner) continue;
        Sublayer *s = &layer->sublayers[sublayer];
        place_add(unit, last ? &s->last : &s->precision);
    }
}

static void add_layers(UnitList *list, Stack *stack) {
    for (int64_t l = 0; l < stack->n_layers; l++) {
        if (stack->layers[l].weights_of != l) continue;
        for (int i = 0; i < stack->layers[l].count; i++) {
            add_sublayer(list, stack, l, i, false);
            add_sublayer(list, stack, l, i, true);
        }
    }
}

/* A tied head multiplies the token table, and two stacks may share one. */
static void add_embedding(UnitList *list, Model *model, Stack *stack, bool of_both, bool of_head) {
    Unit *unit = unit_add(list, arena_printf(list->arena, "%s embedding", stack->name), 3);
    place_add(unit, &stack->precision);
    if (of_both) place_add(unit, &model->decoder->precision);
    if (of_head) place_add(unit, &model->precision);
}

Unit *units_of(Arena *arena, Model *model, int *count) {
    UnitList list = {.arena = arena};
    Stack *encoder = model->encoder, *decoder = model->decoder;
    const bool both = encoder && decoder && model->embedding_tied, tied = model->head.logits && model->head.tied;
    if (encoder) {
        add_embedding(&list, model, encoder, both, tied && (both || !decoder));
        add_layers(&list, encoder);
    }
    if (decoder) {
        if (!both) add_embedding(&list, model, decoder, false, tied);
        add_layers(&list, decoder);
    }
    if (model->alone) {
        Unit *first = unit_add(&list, "attention", 1);
        place_add(first, &model->alone->precision);
        first->attends = true;
        Unit *last = unit_add(&list, "attention.output", 1);
        place_add(last, &model->alone->last);
        last->is_last = true;
    }
    const Layer *probe = model->head.probe; /* has the precision of the head */
    Unit *head = tied ? NULL : unit_add(&list, "head", 1 + 2 * (probe ? probe->count : 0));
    if (head) place_add(head, &model->precision);
    for (int i = 0; head && probe && i < probe->count; i++) {
        place_add(head, &probe->sublayers[i].precision);
        place_add(head, &probe->sublayers[i].last);
    }
    *count = list.count;
    return list.units;
}
