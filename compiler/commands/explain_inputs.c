/* explain_inputs.c: the integers of rows and the numbers of a sequence for which attnc explain draws a mask. */
#include "explain.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The integers of --draw NAME=LIST, which repeat until the sequence ends. */
typedef struct Integers {
    int64_t *list;
    int count, room;
} Integers;

enum { MOST_LISTED = 1 << 20 };

/* ---------------------------------------------------------------- --draw */

/* Returns the list of --draw for an input, or NULL. */
static const char *drawn_list(const Explain *x, const char *name) {
    for (const ValueNode *node = x->draw; node; node = node->next) {
        const size_t length = strlen(name);
        if (strncmp(node->text, name, length) == 0 && node->text[length] == '=') return node->text + length + 1;
    }
    return NULL;
}

static int64_t read_integer(const Explain *x, const char **at, const char *name, PairRange range) {
    char *end;
    errno = 0;
    const long long value = strtoll(*at, &end, 10);
    if (errno || end == *at)
        usage_error(x->usage, "`--draw %s` wants integers such as 3,0 or 8*1,4*2, found `%s`", name, *at);
    if ((double)value < range.low || (double)value > range.high)
        usage_error(x->usage, "`--draw %s`: %lld is outside %.0f to %.0f", name, value, range.low, range.high);
    *at = end;
    return value;
}

static Integers read_integers(const Explain *x, const char *list, const char *name, PairRange range) {
    Integers integers = {0};
    const char *at = list;
    for (;;) {
        const char *item = at;
        int64_t times = 1;
        if (strchr(item, '*') && strspn(item, "0123456789") == (size_t)(strchr(item, '*') - item)) {
            times = read_integer(x, &at, name, (PairRange){1, MOST_LISTED});
            at++;
        }
        const int64_t value = read_integer(x, &at, name, range);
        if (integers.count + times > MOST_LISTED)
            usage_error(x->usage, "`--draw %s` has more than %d integers", name, MOST_LISTED);
        for (int64_t i = 0; i < times; i++) {
            integers.list = arena_grow(x->arena, integers.list, integers.count, &integers.room, sizeof(int64_t));
            integers.list[integers.count++] = value;
        }
        if (!*at) return integers;
        if (*at++ != ',')
            usage_error(x->usage, "`--draw %s` wants integers such as 3,0 or 8*1,4*2, found `%s`", name, item);
    }
}

static bool rule_names(const PairRule *rule, const char *name) {
    if (!rule) return false;
    const bool of_rows = rule->op == PAIR_of_query || rule->op == PAIR_of_key || pair_is_bit(rule);
    const bool own = rule->op == PAIR_number || rule->op == PAIR_of_pair || of_rows;
    if (rule->op == PAIR_head && strcmp(name, "h") == 0) return true;
    return (own && strcmp(rule->name, name) == 0) || rule_names(rule->a, name) || rule_names(rule->b, name) ||
           rule_names(rule->c, name);
}

void check_drawn(const Explain *x) {
    for (const ValueNode *node = x->draw; node; node = node->next) {
        char *name;
        split_assignment(x->arena, x->usage, "--draw", node->text, &name);
        for (const ValueNode *other = x->draw; other != node; other = other->next)
            if (strncmp(other->text, name, strlen(name)) == 0 && other->text[strlen(name)] == '=')
                usage_error(x->usage, "`--draw %s` stands twice", name);
        bool known = false;
        for (int i = 0; i < x->n_patterns && !known; i++)
            known = rule_names(x->patterns[i].step->attention.visible, name);
        if (!known) usage_error(x->usage, "`--draw %s`: no mask that is drawn reads an input of this name", name);
    }
}

/* ---------------------------------------------------------------- drawing */

/* Runs of an eighth to three eighths of the rows, each of the next integer of the range. */
static void draw_runs(const char *name, PairRange range, int64_t count, int64_t *rows, Text *given) {
    uint64_t stream = hash_bytes(1, name, strlen(name));
    double value = range.low;
    for (int64_t row = 0; row < count;) {
        stream = hash_bytes(stream, &row, sizeof row);
        int64_t length = count / 8 + 1 + (int64_t)((stream >> 17) % (uint64_t)(count / 4 + 1));
        if (length > count - row) length = count - row;
        text_printf(given, "%s%lld*%.0f", row ? "," : "", (long long)length, value);
        for (int64_t end = row + length; row < end; row++) rows[row] = (int64_t)value;
        value = value < range.high ? value + 1 : range.low;
    }
}

/* Without a list, a number that is the same for every pair. A list is of all pairs, also where fewer are drawn. */
static void set_pairs(const Explain *x, const Pattern *p, const PairRule *leaf, MaskView *view, Text *given) {
    const char *list = drawn_list(x, leaf->name);
    if (!list) {
        const double one = fmin(fmax(1, leaf->range.low), leaf->range.high);
        view->at.inputs[leaf->input].number = one;
        text_printf(given, "%.0f for every pair", one);
        return;
    }
    const Integers integers = read_integers(x, list, leaf->name, leaf->range);
    const int64_t width = step_keys(x->plan, p->step, &x->rows);
    int64_t *pairs = arena_array(x->arena, (size_t)p->rows, (size_t)p->keys * sizeof *pairs);
    for (int64_t q = 0; q < p->rows; q++)
        for (int64_t k = 0; k < p->keys; k++)
            pairs[q * p->keys + k] = integers.list[(q * width + k) % integers.count];
    view->of_pairs[leaf->input] = pairs;
    text_printf(given, "%s", list);
}

static void set_rows(const Explain *x, const PairRule *leaf, int64_t count, PairAt *at, Text *given) {
    int64_t *rows = arena_array(x->arena, (size_t)count, sizeof *rows);
    const char *list = drawn_list(x, leaf->name);
    if (list) {
        const Integers integers = read_integers(x, list, leaf->name, leaf->range);
        for (int64_t row = 0; row < count; row++) rows[row] = integers.list[row % integers.count];
        text_printf(given, "%s", list);
    } else {
        /* An input without a range has those integers that attnc check draws. */
        const bool open = leaf->range.high - leaf->range.low >= UINT32_MAX;
        draw_runs(leaf->name, open ? (PairRange){-1, 3} : leaf->range, count, rows, given);
    }
    at->inputs[leaf->input].rows = rows;
}

/* Without a list, the rows repeat eight drafts of a binary tree: the bits of a row are its ancestors and the row. */
static void set_bits(const Explain *x, const PairRule *leaf, int64_t count, PairAt *at, Text *given) {
    const char *drawn = drawn_list(x, leaf->name), *list = drawn ? drawn : "1,3,5,11,19,37,69,139";
    const PairRange any = {(double)INT64_MIN, (double)INT64_MAX};
    const Integers integers = read_integers(x, list, leaf->name, any);
    int64_t *rows = arena_array(x->arena, (size_t)count, sizeof *rows);
    for (int64_t row = 0; row < count; row++) rows[row] = integers.list[row % integers.count];
    at->inputs[leaf->input].rows = rows;
    text_printf(given, "%s", list);
}

/* The real number of a list, in f32. */
static double read_real(const Explain *x, const char *list, const PairRule *leaf) {
    char *end;
    const double value = (double)(float)strtod(list, &end);
    if (end == list || *end || !isfinite(value))
        usage_error(x->usage, "`--draw %s` wants one real number, found `%s`", leaf->name, list);
    if (value < leaf->range.low || value > leaf->range.high)
        usage_error(x->usage, "`--draw %s`: %s is outside %s to %s", leaf->name, list,
                    number_text(x->arena, f32_written((float)leaf->range.low)),
                    number_text(x->arena, f32_written((float)leaf->range.high)));
    return value;
}

static void set_real(const Explain *x, const PairRule *leaf, int64_t count, PairAt *at, Text *given) {
    const char *list = drawn_list(x, leaf->name);
    const int64_t quarter = (count + 3) / 4;
    const double number = list ? read_real(x, list, leaf)
                               : fmin(fmax((double)quarter, leaf->range.low), leaf->range.high);
    at->inputs[leaf->input].number = number;
    text_printf(given, "%s", number_text(x->arena, f32_written((float)number)));
}

static void set_number(const Explain *x, const PairRule *leaf, int64_t count, PairAt *at, Text *given) {
    const char *list = drawn_list(x, leaf->name);
    const PairRange range = {leaf->range.low, isfinite(leaf->range.high) ? leaf->range.high : (double)count};
    const int64_t quarter = (count + 3) / 4;
    int64_t number = (int64_t)fmin(fmax((double)quarter, range.low), range.high);
    if (list) {
        const Integers one = read_integers(x, list, leaf->name, range);
        if (!one.list || one.count > 1)
            usage_error(x->usage, "`--draw %s` wants one integer, found `%s`", leaf->name, list);
        number = one.list[0];
    }
    at->inputs[leaf->input].number = (double)number;
    text_printf(given, "%lld", (long long)number);
}

static void set_inputs(const Explain *x, const Pattern *p, const PairRule *rule, MaskView *view, bool *set,
                       Text *given) {
    PairAt *at = &view->at;
    const int64_t count = p->rows > p->keys ? p->rows : p->keys;
    if (rule->a) set_inputs(x, p, rule->a, view, set, given);
    if (rule->b) set_inputs(x, p, rule->b, view, set, given);
    if (rule->c) set_inputs(x, p, rule->c, view, set, given);
    if (!pair_reads_input(rule->op) || set[rule->input]) return;
    set[rule->input] = true;
    text_printf(given, "%s%s=", given->size ? ", " : "", rule->name);
    switch (rule->op) {
    case PAIR_of_query: case PAIR_of_key: set_rows(x, rule, count, at, given); return;
    case PAIR_bit_of_query: case PAIR_bit_of_key: set_bits(x, rule, count, at, given); return;
    case PAIR_number: (rule->is_real ? set_real : set_number)(x, rule, count, at, given); return;
    case PAIR_of_pair: set_pairs(x, p, rule, view, given); return;
    default: /* bytes of pairs */
        at->inputs[rule->input].number = 1;
        text_printf(given, "1 for every pair");
    }
}

/* A mask that differs from head to head is drawn for one of them. */
static void set_head(const Explain *x, const Pattern *p, PairAt *at, Text *given) {
    const char *list = drawn_list(x, "h");
    if (list) {
        const Integers one = read_integers(x, list, "h", (PairRange){0, (double)p->step->attention.heads - 1});
        if (!one.list || one.count > 1) usage_error(x->usage, "`--draw h` wants one head, found `%s`", list);
        at->head = (double)one.list[0];
    }
    text_printf(given, "h=%.0f", at->head);
}

void pattern_inputs(const Explain *x, const Pattern *p, MaskView *view, Text *given) {
    bool set[MOST_PAIR_INPUTS] = {false};
    if (pair_reads(p->step->attention.visible, PAIR_head)) set_head(x, p, &view->at, given);
    set_inputs(x, p, p->step->attention.visible, view, set, given);
}

static bool lists_pairs(const Explain *x, const PairRule *rule) {
    return rule && ((rule->op == PAIR_of_pair && drawn_list(x, rule->name)) || lists_pairs(x, rule->a) ||
                    lists_pairs(x, rule->b) || lists_pairs(x, rule->c));
}

bool draws_pairs(const Explain *x, const Step *s) { return lists_pairs(x, s->attention.visible); }
