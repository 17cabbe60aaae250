/* template_run.c: runs the statements of a template (see template.c). */
#include "template_parts.h"

#include <string.h>

enum { MAX_RUNTIME_UNROLL = 4096 };

/* ---------------------------------------------------------------------------------- printing */

static void print_line(Expansion *x, const char *line, size_t size) {
    if (!x->capture) {
        writer_raw_line(x->writer, line, size);
        return;
    }
    writer_need(x->writer, x->capture->text.size + size + 1);
    text_add(&x->capture->text, line, size);
    text_add(&x->capture->text, "\n", 1);
}

/* Prints text of one line or several, without a final newline. */
static void print_lines(Expansion *x, const char *text) {
    for (;;) {
        const char *newline = strchr(text, '\n');
        print_line(x, text, newline ? (size_t)(newline - text) : strlen(text));
        if (!newline) return;
        text = newline + 1;
    }
}

/* ---------------------------------------------------------------------------------- loops */

/* An open loop of the output, named by its C variable. */
typedef struct OpenLoop {
    const char *variable;
    struct OpenLoop *outer;
} OpenLoop;

static void run_block(Expansion *x, const Statement *s);
static void run_statements(Expansion *x, const Statement *s);

static void run_with(Expansion *x, const Statement *s, TemplateValue value) {
    TemplateVars *outer = x->scope, own = {x->arena, outer, NULL, {0}};
    x->scope = &own;
    vars_set(&own, s->name, value);
    run_statements(x, s->body);
    x->scope = outer;
    x->frame->line = s->line;
}

static int64_t step_of(Expansion *x, const Statement *s) {
    int64_t step = s->step ? template_evaluate_int(x, s->step, "the step") : 1;
    if (step <= 0) expand_error(x, "the step is %lld, it must be above 0", (long long)step);
    return step;
}

/* The number of values first, first + step, ... below last. */
static int64_t trip_count(Expansion *x, int64_t first, int64_t last, int64_t step) {
    int64_t span;
    if (last <= first) return 0;
    if (__builtin_sub_overflow(last, first, &span) || !add_fits(last, step, &(int64_t){0}))
        expand_error(x, "the range %lld..%lld is too long", (long long)first, (long long)last);
    return span / step + (span % step != 0);
}

static void run_for_list(Expansion *x, const Statement *s) {
    const TemplateList *list = template_evaluate_list(x, s->first);
    TemplateVars *outer = x->scope, *record;
    for (int64_t i = 0; (record = template_record(list, i)); i++) {
        TemplateVars own = {x->arena, outer, NULL, {0}};
        x->scope = &own;
        if (s->counter) vars_set(&own, s->counter, template_int(i));
        run_with(x, s, (TemplateValue){.kind = TEMPLATE_RECORD, .record = record});
    }
    x->scope = outer;
}

static void run_for(Expansion *x, const Statement *s) {
    if (!s->last) {
        run_for_list(x, s);
        return;
    }
    int64_t first = template_evaluate_int(x, s->first, "the first bound");
    int64_t last = template_evaluate_int(x, s->last, "the last bound");
    int64_t step = step_of(x, s), trips = trip_count(x, first, last, step);
    for (int64_t i = 0; i < trips; i++) run_with(x, s, template_int(first + i * step));
}

typedef struct Loop {
    const Statement *statement;
    TemplateValue first, last;
    int64_t step, unroll;
    const char *variable; /* in C */
} Loop;

/* One copy of the body, in braces when it declares something. */
static void run_copy(Expansion *x, const Loop *loop, TemplateValue value) {
    Capture capture = {text_new(x->arena), x->capture};
    x->capture = &capture;
    run_with(x, loop->statement, value);
    x->capture = capture.outer;
    if (!capture.text.size) return;
    bool braces = c_declares(capture.text.data, capture.text.size);
    if (braces) print_line(x, "{", 1);
    capture.text.data[capture.text.size - 1] = '\0';
    print_lines(x, capture.text.data);
    if (braces) print_line(x, "}", 1);
}

static TemplateValue plus(Expansion *x, TemplateValue a, int64_t b) { return template_sum(x, a, template_int(b)); }

static void run_straight(Expansion *x, const Loop *loop, int64_t from, int64_t trips) {
    for (int64_t i = 0; i < trips; i++) run_copy(x, loop, template_int(from + i * loop->step));
}

/* Prints the head and body of a C loop. If `first` is NULL, the loop starts at the variable's present value. */
static void run_c_loop(Expansion *x, const Loop *loop, const char *first, const char *last, int64_t copies) {
    const char *variable = loop->variable;
    Text head = text_new(x->arena);
    text_printf(&head, "for (");
    if (first) text_printf(&head, "size_t %s = %s", variable, first);
    text_printf(&head, "; ");
    if (!first && copies > 1) text_printf(&head, "%s + %lld", variable, (long long)((copies - 1) * loop->step));
    else text_printf(&head, "%s", variable);
    text_printf(&head, " < %s; ", last);
    if (copies * loop->step == 1) text_printf(&head, "%s++) {", variable);
    else text_printf(&head, "%s += %lld) {", variable, (long long)(copies * loop->step));
    print_line(x, head.data, head.size);
    OpenLoop open = {variable, x->loops};
    x->loops = &open;
    if (copies == 1) run_with(x, loop->statement, template_text(variable));
    else
        for (int64_t i = 0; i < copies; i++) run_copy(x, loop, plus(x, template_text(variable), i * loop->step));
    x->loops = open.outer;
    print_line(x, "}", 1);
}

static void run_constant_loop(Expansion *x, Loop *loop, int64_t trips) {
    int64_t first = loop->first.integer;
    int64_t copies = loop->unroll < 1 ? 1 : loop->unroll, rounds = trips / copies;
    if (trips <= loop->unroll || rounds < 2) {
        run_straight(x, loop, first, trips);
        return;
    }
    if (first < 0) expand_error(x, "a loop in C begins at %lld, below 0", (long long)first);
    int64_t rest = first + rounds * copies * loop->step;
    const char *last = template_print(x->arena, copies == 1 ? loop->last : template_int(rest));
    run_c_loop(x, loop, template_print(x->arena, loop->first), last, copies);
    run_straight(x, loop, rest, trips - rounds * copies);
}

/* A bound in a loop's head, without its outer parentheses. */
static const char *bound(Expansion *x, TemplateValue value) {
    const char *text = template_print(x->arena, value);
    return value.wrapped ? arena_copy(x->arena, text + 1, strlen(text) - 2) : text;
}

static void run_runtime_loop(Expansion *x, Loop *loop) {
    const char *first = bound(x, loop->first), *last = bound(x, loop->last);
    if (loop->unroll <= 1) {
        run_c_loop(x, loop, first, last, 1);
        return;
    }
    print_line(x, "{", 1);
    const char *head = arena_printf(x->arena, "size_t %s = %s;", loop->variable, first);
    print_line(x, head, strlen(head));
    run_c_loop(x, loop, NULL, last, loop->unroll);
    run_c_loop(x, loop, NULL, last, 1);
    print_line(x, "}", 1);
}

static void run_loop(Expansion *x, const Statement *s) {
    TemplateValue from = template_evaluate_plain(x, s->first), to = template_evaluate_plain(x, s->last);
    Loop loop = {s, from, to, step_of(x, s), INT64_MAX, s->name};
    if (s->value) {
        TemplateValue unroll = template_evaluate_plain(x, s->value);
        if (unroll.kind == TEMPLATE_TEXT && strcmp(unroll.text, "full") != 0)
            expand_error(x, "unroll is '%s', a number or \"full\" is needed", unroll.text);
        if (unroll.kind == TEMPLATE_INT) loop.unroll = unroll.integer;
    }
    for (const OpenLoop *open = x->loops; open; open = open->outer)
        if (strcmp(open->variable, loop.variable) == 0) {
            loop.variable = writer_fresh(x->writer, s->name);
            break;
        }
    if (loop.first.kind == TEMPLATE_INT && loop.last.kind == TEMPLATE_INT) {
        run_constant_loop(x, &loop, trip_count(x, loop.first.integer, loop.last.integer, loop.step));
        return;
    }
    if (loop.first.kind == TEMPLATE_INT && loop.first.integer < 0) expand_error(x, "a loop in C begins below 0");
    if (loop.unroll > MAX_RUNTIME_UNROLL)
        expand_error(x, "a loop from '%s' to '%s' cannot be unrolled fully", template_print(x->arena, loop.first),
                     template_print(x->arena, loop.last));
    run_runtime_loop(x, &loop);
}

/* ---------------------------------------------------------------------------------- statements */

static void run_definition(Expansion *x, Macro **list, const char *kind, const Statement *s) {
    for (const Macro *m = *list; m; m = m->next)
        if (m->statement != s && m->statement->name == s->name)
            expand_error(x, "%s '%s' is there already, at %s:%d", kind, s->name, m->file, m->statement->line);
    Macro *macro = arena_alloc(x->arena, sizeof *macro);
    *macro = (Macro){*list, s, x->frame->file};
    *list = macro;
}

static void run_use(Expansion *x, const Statement *s) {
    Call call;
    run_statements(x, template_open_call(x, &call, &x->macros, "macro", s->name, s->args, s->count)->body);
    template_close_call(x, &call);
}

static void run_include(Expansion *x, const Statement *s) {
    const Template *template = template_embedded(s->name);
    if (!template) {
        expand_error(x, "there is no file \"%s\" to include", s->name);
        return;
    }
    Frame frame;
    template_enter(x, &frame, template->name, NULL, NULL);
    run_statements(x, template->body);
    x->frame = frame.outer;
}

static void run_line(Expansion *x, const Statement *s) {
    static Arena *parts; /* the parts of a line, none of which outlives the line */
    if (!parts) parts = arena_new();
    arena_clear(parts);
    Arena *outer = x->arena;
    x->arena = parts;
    const char *text = template_evaluate_pieces(x, s->pieces);
    x->arena = outer;
    if (text[strspn(text, " \t\n")] != '\0') print_lines(x, text);
}

static void run_statement(Expansion *x, const Statement *s) {
    switch (s->kind) {
    case STATEMENT_LINE: run_line(x, s); break;
    case STATEMENT_BLANK: print_line(x, "", 0); break;
    case STATEMENT_LET:
        if (vars_has_own(x->scope, s->name))
            expand_error(x, "'%s' is let in this block already; $set is meant", s->name);
        vars_set(x->scope, s->name, template_evaluate(x, s->value));
        break;
    case STATEMENT_SET:
        if (!vars_assign(x, s->name, template_evaluate(x, s->value)))
            expand_error(x, "$set: the template let no '%s'", s->name);
        break;
    case STATEMENT_IF:
        run_block(x, template_evaluate_int(x, s->value, "the condition") ? s->body : s->otherwise);
        break;
    case STATEMENT_FOR: run_for(x, s); break;
    case STATEMENT_LOOP: run_loop(x, s); break;
    case STATEMENT_MACRO: run_definition(x, &x->macros, "macro", s); break;
    case STATEMENT_DEFINE: run_definition(x, &x->functions, "function", s); break;
    case STATEMENT_USE: run_use(x, s); break;
    case STATEMENT_INCLUDE: run_include(x, s); break;
    case STATEMENT_VERBATIM: writer_verbatim(x->writer); break;
    case STATEMENT_ERROR: expand_error(x, "%s", template_evaluate_pieces(x, s->pieces));
    }
}

static void run_statements(Expansion *x, const Statement *s) {
    for (; s; s = s->next) {
        x->frame->line = s->line;
        template_count_step(x);
        run_statement(x, s);
    }
}

static void run_block(Expansion *x, const Statement *s) {
    TemplateVars *outer = x->scope, own = {x->arena, outer, NULL, {0}};
    x->scope = &own;
    run_statements(x, s);
    x->scope = outer;
}

void template_run(Expansion *x, const Template *template) { run_statements(x, template->body); }
