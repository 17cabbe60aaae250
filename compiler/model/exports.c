/* exports.c: attention maps as outputs of a model, beyond those that its spec exports. */
#include "../attnc.h"

/* The maps of one output, in one layer or in all of them (layer -1). */
typedef struct Maps {
    OutputRole role;
    int64_t layer;
} Maps;

static void export_heads(Attention *a) {
    enum { MOST_EXPORTED = 1 << 16 };
    static int64_t every[MOST_EXPORTED];
    if (a->exported) return;
    if (a->heads > MOST_EXPORTED) fail("attention of more than %d heads cannot be exported", MOST_EXPORTED);
    for (int64_t h = 0; h < a->heads; h++) every[h] = h;
    a->exported = true;
    a->exported_heads = every;
    a->n_exported_heads = a->heads;
}

typedef struct MapCount {
    int64_t there, exported; /* attentions with these maps, and those of them that are exported already */
} MapCount;

static void visit_attention(Attention *a, bool turn_on, MapCount *count) {
    count->there++;
    count->exported += a->exported;
    if (turn_on) export_heads(a);
}

/* Counts the attentions with these maps; with `turn_on` all of them become exported. */
static MapCount visit_maps(const Model *model, Maps map, bool turn_on) {
    Stack *const stacks[] = {model->encoder, model->decoder};
    MapCount count = {0};
    if (model->alone && map_role(model, NULL, &model->alone->attention) == map.role && map.layer <= 0)
        visit_attention(&model->alone->attention, turn_on, &count);
    for (int k = 0; k < 2; k++)
        for (int64_t l = 0; stacks[k] && l < stacks[k]->n_layers; l++)
            for (int s = 0; s < stacks[k]->layers[l].count; s++) {
                Sublayer *sub = &stacks[k]->layers[l].sublayers[s];
                if (sub->kind != SUBLAYER_ATTENTION || map_role(model, stacks[k], &sub->attention) != map.role)
                    continue;
                if (map.layer < 0 || map.layer == l) visit_attention(&sub->attention, turn_on, &count);
            }
    return count;
}

bool model_has_maps(const Model *model, OutputRole role) {
    return visit_maps(model, (Maps){role, -1}, false).there > 0;
}

void model_export(Model *model, OutputRole role, int64_t layer) {
    Maps map = {role, layer};
    if (role == OUT_lse && model->alone && model->alone->attention.weighing == WEIGHING_SOFTMAX)
        model->alone->attention.exports_lse = true;
    if (layer >= 0 || visit_maps(model, map, false).exported == 0) visit_maps(model, map, true);
}

void model_export_all(Model *model) {
    for (int role = 0; role < OUT_COUNT; role++) visit_maps(model, (Maps){(OutputRole)role, -1}, true);
}
