/* map_mask.c: the pairs that the mask of an attention hides in a call, for the page of attnc map. */
#include "commands.h"
#include "map.h"
#include "mask_view.h"

/* The array that the call gives for a tensor of the graph, or NULL. */
static const InputArray *given_array(const Graph *graph, const Sequence *sequence, int tensor) {
    for (int i = 0; i < graph->n_inputs; i++)
        if (graph->inputs[i].tensor == tensor) return sequence_input(sequence, graph->inputs[i].kind->role);
    return NULL;
}

/* Sets input i of the rule; an absent number is 0. False for numbers that no mask reads. */
static bool set_input(MaskView *view, int i, const InputArray *array) {
    const PairRule *reads = pair_reader(view->rule, i);
    if (!reads || (!array && reads->op == PAIR_number)) return true;
    if (!array) return false;
    if (array->dtype == DTYPE_U8) {
        view->bytes[i] = array->data;
        return true;
    }
    if (array->dtype == DTYPE_F32 && reads->op == PAIR_number) {
        view->at.inputs[i].number = (double)*(const float *)array->data;
        return true;
    }
    if (array->dtype != DTYPE_I64) return false;
    if (reads->op == PAIR_of_pair) view->of_pairs[i] = array->data;
    else view->at.inputs[i].rows = array->data;
    if (reads->op == PAIR_number) view->at.inputs[i].number = (double)*(const int64_t *)array->data;
    return true;
}

const uint8_t *map_hidden(Arena *arena, const Graph *graph, const Sequence *sequence, const GraphOutput *output,
                          Shape shape) {
    const Op *op = &graph->ops[graph->tensors[output->tensor].op];
    const int64_t rows = shape.dims[1], keys = shape.dims[2];
    if (op->kind != OP_softmax || !op->a.rule || pair_reads(op->a.rule, PAIR_head)) return NULL; /* one mark for all */
    MaskView view = {.rule = op->a.rule, .keys = keys, .most_work = INT64_MAX};
    for (int i = 0; op_rule_input(op) + i < op->n_inputs; i++)
        if (!set_input(&view, i, given_array(graph, sequence, op->inputs[op_rule_input(op) + i]))) return NULL;
    mask_view_begin(arena, &view);
    uint8_t *pairs = arena_array(arena, (size_t)rows, (size_t)keys);
    const int64_t seen = mask_view_count(&view, (PairBox){0, rows, 0, keys}, pairs);
    if (seen == rows * keys) return NULL;
    for (int64_t i = 0; i < rows * keys; i++) pairs[i] = !pairs[i];
    return pairs;
}
