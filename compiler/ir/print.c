/* print.c: prints a graph as text, for --dump=graph and the golden tests. */
#include "../attnc.h"

static void print_dims(Text *out, const Graph *g, const Tensor *t) {
    text_printf(out, "[");
    for (int d = 0; d < t->rank; d++) {
        if (d) text_printf(out, ", ");
        if (t->dims[d].symbol)
            text_printf(out, "%s<=%lld", g->symbols[t->dims[d].symbol - 1].name, (long long)t->dims[d].n);
        else text_printf(out, "%lld", (long long)t->dims[d].n);
    }
    text_printf(out, "]");
}

static void print_attributes(Text *out, const Op *op) {
    const OpAttributes *a = &op->a;
    const struct { const char *name; int64_t value;
    } integers[] = {{"heads", a->heads},       {"kv_heads", a->kv_heads},
                    {"head_dim", a->head_dim}, {"offset", a->offset},
                    {"width", a->width},       {"groups", a->groups > 1 ? a->groups : 0},
                    {"patch", a->patch},       {"kernel", a->kernel},
                    {"stride", a->stride}};
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++)
        if (integers[i].value) text_printf(out, " %s=%lld", integers[i].name, (long long)integers[i].value);
    if (a->past) text_printf(out, " past");
    if (a->scale != 0 && a->scale != 1) text_printf(out, " scale=%s", number_text(out->arena, a->scale));
    if (a->cap != 0) text_printf(out, " cap=%s", number_text(out->arena, a->cap));
    if (op->kind == OP_layernorm || op->kind == OP_rmsnorm)
        text_printf(out, " eps=%s", number_text(out->arena, a->eps));
    if (op->kind == OP_activation || op->kind == OP_gate) text_printf(out, " %s", activation_name(a->activation));
    if (a->formula) {
        text_printf(out, " = ");
        pair_print(out, a->formula);
    }
    if (op->kind == OP_round || a->dtype == DTYPE_BF16) text_printf(out, " %s", dtype_name(a->dtype));
    if (op->kind == OP_pool) text_printf(out, " %s", pool_name(a->pool));
    const bool counts = op->kind == OP_tally || op->kind == OP_keep || op->kind == OP_pick_rows;
    const bool has_token = counts || pool_reads_ids(a->pool);
    if (has_token) text_printf(out, " %lld", (long long)a->token);
    const struct {
        const char *name;
        bool value;
    } flags[] = {{"plus_one", a->plus_one}, {"interleaved", a->interleaved}, {"sink_learned", a->has_sink},
                 {"by_column", a->by_column}, {"sigmoid", a->weighing == WEIGHING_SIGMOID},
                 {"scores", a->weighing == WEIGHING_NONE}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (flags[i].value) text_printf(out, " %s", flags[i].name);
    if (!a->rule) return;
    text_printf(out, " rule: ");
    pair_print(out, a->rule);
}

static void print_graph(Text *out, const Module *module, const Graph *g) {
    text_printf(out, "graph %s of %s\n", g->name, module->model->name);
    for (int i = 0; i < g->n_inputs; i++) {
        const Tensor *t = &g->tensors[g->inputs[i].tensor];
        text_printf(out, "  input %s %s ", g->inputs[i].kind->name, dtype_name(t->dtype));
        print_dims(out, g, t);
        text_printf(out, "%s\n", g->inputs[i].optional ? " optional" : "");
    }
    for (int i = 0; i < g->n_ops; i++) {
        const Op *op = &g->ops[i];
        const Tensor *t = &g->tensors[op->result];
        text_printf(out, "  %%%d %s ", op->result, t->name);
        print_dims(out, g, t);
        text_printf(out, " = %s", op_name(op->kind));
        for (int n = 0; n < op->n_inputs; n++) {
            const Tensor *r = &g->tensors[op->inputs[n]];
            if (r->kind == TENSOR_VALUE) text_printf(out, " %%%d", op->inputs[n]);
            else text_printf(out, " %s", r->name);
            if (r->kind == TENSOR_WEIGHT && r->dtype != DTYPE_F32) text_printf(out, ":%s", dtype_name(r->dtype));
        }
        print_attributes(out, op);
        text_printf(out, "\n");
    }
    for (int i = 0; i < g->n_states; i++) {
        const GraphState *s = &g->states[i];
        text_printf(out, "  state %s%s", s->name, s->out == NO_TENSOR ? " only read" : "");
        if (s->out != NO_TENSOR) text_printf(out, " = %%%d", s->out);
        text_printf(out, "\n");
    }
    for (int i = 0; i < g->n_outputs; i++) {
        text_printf(out, "  output %s", g->outputs[i].name);
        if (g->outputs[i].layer >= 0) text_printf(out, " layer %d", g->outputs[i].layer);
        text_printf(out, " = %%%d\n", g->outputs[i].tensor);
    }
}

void module_print(Text *out, const Module *module) {
    for (int e = 0; e < ENTRY_COUNT; e++)
        if (module->entries[e]) print_graph(out, module, module->entries[e]);
}
