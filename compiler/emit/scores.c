/* scores.c: the rules of an attention's scores, as attention_pairs.c.tmpl reads them. */
#include "emit.h"

/* Sets the index of a table: keys * (the key's position) + queries * (the query's position) + at. */
static void set_index(TemplateVars *record, const PairRule *index) {
    PairLinear sum = {0};
    if (!pair_linear(index, 1, &sum)) bug("the index of a table is no sum of positions");
    vars_int(record, "keys", (int64_t)sum.key);
    vars_int(record, "queries", (int64_t)sum.query);
    vars_int(record, "at", (int64_t)sum.constant);
}

/* Sets `field` to a record of the rule. `op` is the operation, and `a` and `b` are the records of its arguments. A
 * constant has its `number` in C, a leaf that reads an input has the `name` of the input, a table has its index
 * (set_index), and a function of math.c.tmpl is named by `function`. */
static void rule_record(Arena *arena, TemplateVars *vars, const char *field, const PairRule *rule,
                        const ScoreInput *inputs) {
    TemplateVars *record = vars_record(vars, field);
    vars_text(record, "op", pair_name(rule->op));
    if (rule->op == PAIR_constant) vars_text(record, "number", hex_float(arena, rule->constant));
    if (pair_reads_input(rule->op)) vars_text(record, "name", inputs[rule->input].name);
    if (rule->op == PAIR_table) set_index(record, rule->a);
    vars_text(record, "function", pair_function(rule->op) ? pair_function(rule->op) : "");
    if (rule->a) rule_record(arena, record, "a", rule->a, inputs);
    if (rule->b) rule_record(arena, record, "b", rule->b, inputs);
}

void score_variables(Arena *arena, TemplateVars *vars, const AttentionStep *a) {
    TemplateList *scores = vars_list(vars, "scores"), *inputs = vars_list(vars, "score_inputs");
    for (int i = 0; i < a->n_rescores; i++)
        rule_record(arena, list_record(scores), "rule", a->rescores[i].rule, &a->inputs[a->rescores[i].first]);
    for (int i = 0; i < a->n_inputs; i++) {
        TemplateVars *input = list_record(inputs);
        vars_text(input, "name", a->inputs[i].name);
        vars_int(input, "of_head", a->inputs[i].of_head);
        vars_int(input, "width", a->inputs[i].width);
    }
}
