/* footprint.c: what a microcontroller needs for a model. Weights, states and workspaces are exact; code and stack are
 * estimated from the text of the C, whose operators are counted, those of inline functions once for each call. */
#include "footprint.h"

#include "commands.h"
#include "../emit/emit.h"

#include <stdlib.h>
#include <string.h>

typedef struct InlineFunction {
    const char *name;
    size_t size;       /* of the name */
    int64_t operators;
    struct InlineFunction *next;
} InlineFunction;

typedef struct Count {
    Arena *arena;
    InlineFunction *inlines[64]; /* by the size of their names */
    int64_t operators, functions; /* of those that are not inline */
    int64_t arrays;               /* bytes of the arrays of the function that has the most */
} Count;

/* The text without comments and lines of the preprocessor. */
static char *bare_text(Arena *arena, const char *c) {
    Text out = text_new(arena);
    text_reserve(&out, strlen(c) + 1);
    for (bool begins = true; *c; c++) {
        if (begins && *c == '#') {
            while (c[1] && (*c != '\n' || c[-1] == '\\')) c++;
        } else if (c[0] == '/' && c[1] == '*') {
            const char *end = strstr(c + 2, "*/");
            if (!end) break;
            c = end + 1;
            continue;
        }
        begins = *c == '\n';
        text_add(&out, c, 1);
    }
    return out.data;
}

static InlineFunction *find_inline(const Count *count, const char *name, size_t size) {
    InlineFunction *f = count->inlines[size % 64];
    while (f && (f->size != size || memcmp(f->name, name, size) != 0)) f = f->next;
    return f;
}

static bool is_operator(char c) { return c && strchr("-+*/=<>?&|^[(", c); }

/* Counts the operators from `at` to `end`. Adjacent operator characters count as one operator. */
static int64_t count_operators(const Count *count, const char *at, const char *end) {
    int64_t n = 0;
    while (at < end) {
        if (is_operator(*at)) {
            n++;
            while (at < end && is_operator(*at)) at++;
        } else if (c_starts_name(*at)) {
            const char *name = at;
            while (c_in_name(*at)) at++;
            const InlineFunction *f = *at == '(' ? find_inline(count, name, (size_t)(at - name)) : NULL;
            if (f) n += f->operators;
        } else if (c_in_name(*at)) {
            while (c_in_name(*at) || *at == '.') at++;
        } else {
            at++;
        }
    }
    return n;
}

/* The bytes of arrays of constant length that a body declares, numbers of four bytes. */
static int64_t count_arrays(const char *at, const char *end) {
    int64_t bytes = 0;
    for (; at < end; at++) {
        if (*at != '\n') continue;
        const char *line = at + 1, *stop = strchr(line, '\n'), *open = memchr(line, '[', (size_t)(stop - line));
        if (!open || !c_in_name(open[-1])) continue;
        while (*line == ' ') line++;
        const char *space = memchr(line, ' ', (size_t)(open - line));
        char *behind;
        const int64_t n = strtol(open + 1, &behind, 10);
        const bool declares = space && strcspn(line, "=(*+->.") > (size_t)(open - line) && n > 0 && *behind == ']';
        if (declares && strncmp(line, "static", 6) != 0 && strncmp(line, "return", 6) != 0) bytes += 4 * n;
    }
    return bytes;
}

/* The name in front of a head's parameters, behind its attributes. */
static const char *function_name(const char *head, const char *brace, size_t *size) {
    for (const char *at = head; at < brace; at++) {
        if (!c_starts_name(*at)) continue;
        const char *name = at;
        while (c_in_name(*at)) at++;
        *size = (size_t)(at - name);
        if (*at != '(') continue;
        if (*size != strlen("__attribute__") || memcmp(name, "__attribute__", *size) != 0) return name;
        int open = 0;
        do open += *at == '(' ? 1 : *at == ')' ? -1 : 0;
        while (open && ++at < brace);
    }
    return NULL;
}

static void count_function(Count *count, const char *head, const char *brace, const char *end) {
    size_t size = 0;
    const char *name = function_name(head, brace, &size);
    const bool is_inline = memmem(head, (size_t)(brace - head), "inline", strlen("inline")) != NULL;
    const char *equal = memchr(head, '=', (size_t)(brace - head));
    if (!name || equal || strncmp(head, "typedef", 7) == 0) return;
    const int64_t operators = count_operators(count, brace, end), arrays = count_arrays(brace, end);
    if (arrays > count->arrays) count->arrays = arrays;
    if (!is_inline) {
        count->operators += operators;
        count->functions++;
        return;
    }
    InlineFunction *f = arena_alloc(count->arena, sizeof *f);
    *f = (InlineFunction){name, size, operators, count->inlines[size % 64]};
    count->inlines[size % 64] = f;
}

/* A function's head begins at column 0, and its end is a brace there. */
static void count_text(Count *count, const char *c) {
    const char *at = bare_text(count->arena, c);
    while (*at) {
        while (*at == '\n' || *at == ' ') at++;
        const char *brace = strchr(at, '{'), *semicolon = strchr(at, ';');
        if (!brace) return;
        if (semicolon && semicolon < brace) {
            at = semicolon + 1;
            continue;
        }
        const char *end = strstr(brace, "\n}");
        if (!end) return;
        const char *line = strchr(brace, '\n');
        if (line > end || brace[1] == '\n') count_function(count, at, brace, end + 1);
        at = end + 2;
        if (*at == ';') at++;
    }
}

/* ---------------------------------------------------------------- memory */

static int64_t rows_of(const Plan *plan, bool of_source) { return of_source ? plan->source_seq.n : plan->seq.n; }

/* The inputs of a sequence that a call needs, or of one row of a state, and the last output that is no map. */
static int64_t arrays_of(const Plan *plan, bool inputs, bool output) {
    const Graph *g = plan->graph;
    int64_t bytes = 0;
    for (int i = 0; inputs && i < g->n_inputs; i++) {
        const GraphInput *input = &g->inputs[i];
        const Tensor *t = &g->tensors[input->tensor];
        int64_t elements = plan->cached ? 1 : rows_of(plan, input->of_source);
        if (input->optional) continue;
        for (int d = 1; d < t->rank; d++) elements *= t->dims[d].n ? t->dims[d].n : rows_of(plan, input->of_source);
        bytes += elements * (int64_t)input_element_bytes(input->kind);
    }
    for (int o = g->n_outputs - 1; output && o >= 0; o--) {
        if (g->outputs[o].layer >= 0) continue;
        const bool single = plan->cached || g->outputs[o].of_sequence;
        return bytes + (single ? 1 : plan->seq.n) * g->tensors[g->outputs[o].tensor].dims[1].n * (int64_t)sizeof(float);
    }
    return bytes;
}

static int64_t call_bytes(const EntrySizes *sizes) { return sizes->workspace_bytes + sizes->scratch_bytes; }

/* Whether the C has unrolled products with many sums, which compilers keep on the stack. */
static bool has_tall_frames(const Program *program) {
    bool has = false;
    for (int i = 0; i < program->n_packed; i++) {
        const Packed *p = &program->packed[i];
        has |= p->of == OF_OUTLIERS || ((p->of == OF_SCALES || p->of == OF_OFFSETS) && p->shape.rank > 1);
    }
    return has;
}

Footprint footprint(Arena *arena, const Program *program, const Emitted *emitted, const Isa *isa) {
    enum { FRAMES = 1536, VECTOR_FRAMES = 2560, TALL = 1536, TEXTS = 600, LIBRARY = 3072 };
    Count count = {.arena = arena};
    count_text(&count, emitted->c);
    int64_t steps = 0;
    for (int i = 0; i < ENTRY_COUNT; i++) steps += program->entries[i] ? program->entries[i]->n_steps : 0;
    const Plan *forward = program->entries[ENTRY_FORWARD], *encode = program->entries[ENTRY_ENCODE],
               *decode = program->entries[ENTRY_DECODE];
    const EntrySizes *sizes = emitted->entries;
    Footprint f = {.weights = packed_file_bytes(program),
                   .code = count.operators * isa->operator_bytes / 100 + count.functions * isa->function_bytes +
                           LIBRARY,
                   .constants = TEXTS + 4 * steps,
                   .stack = (isa->width > 1 ? VECTOR_FRAMES : FRAMES) + count.arrays +
                            (has_tall_frames(program) ? TALL : 0)};
    if (!decode) {
        f.workspace = call_bytes(&sizes[ENTRY_FORWARD]);
        f.arrays = arrays_of(forward, true, true);
        return f;
    }
    f.state = emitted->state_bytes;
    f.source = emitted->source_bytes;
    f.workspace = call_bytes(&sizes[ENTRY_DECODE]);
    if (encode && call_bytes(&sizes[ENTRY_ENCODE]) > f.workspace) f.workspace = call_bytes(&sizes[ENTRY_ENCODE]);
    f.arrays = arrays_of(decode, true, true) + (encode ? arrays_of(encode, true, false) : 0);
    return f;
}

/* ---------------------------------------------------------------- texts and bounds */

const char *footprint_flash_text(Arena *a, const Footprint *f) {
    return arena_printf(a, "about %s: weights %s, code about %s, constants about %s",
                        amount_text(a, (double)footprint_flash(f), "B"), amount_text(a, (double)f->weights, "B"),
                        amount_text(a, (double)f->code, "B"), amount_text(a, (double)f->constants, "B"));
}

const char *footprint_ram_text(Arena *a, const Footprint *f) {
    Text parts = text_new(a);
    if (f->state) text_printf(&parts, "state %s, ", amount_text(a, (double)f->state, "B"));
    if (f->source) text_printf(&parts, "source %s, ", amount_text(a, (double)f->source, "B"));
    return arena_printf(a, "about %s: %sworkspace %s, inputs and output %s, stack about %s",
                        amount_text(a, (double)footprint_ram(f), "B"), parts.data ? parts.data : "",
                        amount_text(a, (double)f->workspace, "B"), amount_text(a, (double)f->arrays, "B"),
                        amount_text(a, (double)f->stack, "B"));
}

static int64_t read_size(const char *usage, const char **at) {
    char *end;
    const long long value = strtoll(*at, &end, 10);
    const int64_t unit = *end == 'k' ? 1024 : *end == 'M' ? 1024 * 1024 : 1;
    int64_t bytes;
    if (end == *at || value < 1 || !mul_fits(value, unit, &bytes))
        usage_error(usage, "`--budget`: `%s` is no size, such as 256k or 1M", *at);
    *at = end + (unit > 1);
    return bytes;
}

Budget budget_read(const char *usage, const char *text) {
    Budget budget = {0};
    for (const char *at = text; at && *at;) {
        const bool flash = strncmp(at, "flash=", 6) == 0, ram = strncmp(at, "ram=", 4) == 0;
        int64_t *bound = flash ? &budget.flash : ram ? &budget.ram : NULL;
        if (!bound || *bound) usage_error(usage, "`--budget` is flash=N,ram=N or one of them, not `%s`", text);
        at = strchr(at, '=') + 1;
        *bound = read_size(usage, &at);
        if (*at && *at++ != ',') usage_error(usage, "`--budget` is flash=N,ram=N or one of them, not `%s`", text);
    }
    if (text && !*text) usage_error(usage, "`--budget` is flash=N,ram=N or one of them, not ``");
    return budget;
}

void budget_keep(Arena *arena, const Budget *budget, const Program *program, const Emitted *emitted, const Isa *isa) {
    const Footprint f = footprint(arena, program, emitted, isa);
    const bool flash = budget->flash && footprint_flash(&f) > budget->flash;
    const bool ram = budget->ram && footprint_ram(&f) > budget->ram;
    const char *model = program->module->model->name;
    if (!flash && !ram) return;
    const char *of_flash =
        arena_printf(arena, "flash of %lld bytes, where the budget is %lld (weights %lld, code about %lld, constants "
                            "about %lld)", (long long)footprint_flash(&f), (long long)budget->flash,
                     (long long)f.weights, (long long)f.code, (long long)f.constants);
    const char *of_ram = arena_printf(arena, "RAM of %lld bytes, where the budget is %lld (state %lld, source %lld, "
                                      "workspace %lld, inputs and output %lld, stack about %lld)",
                                      (long long)footprint_ram(&f), (long long)budget->ram, (long long)f.state,
                                      (long long)f.source, (long long)f.workspace, (long long)f.arrays,
                                      (long long)f.stack);
    fail_status(EXIT_CANNOT, "`%s` needs about %s%s%s on %s", model, flash ? of_flash : "", flash && ram ? " and " : "",
                ram ? of_ram : "", isa->name);
}

/* Prints one figure, with its share of the bound; a bound of 0 is none. */
static void tell(Arena *arena, const char *name, const char *text, int64_t bytes, int64_t bound) {
    const double percent = bound ? 100 * (double)bytes / (double)bound : 0;
    const char *share = bound ? arena_printf(arena, "; %.0f %% of the budget", percent) : "";
    say(stdout, "%-16s %s%s\n", name, text, share);
}

void budget_tell(Arena *arena, const Budget *budget, const Program *program, const Emitted *emitted, const Isa *isa) {
    const Footprint f = footprint(arena, program, emitted, isa);
    tell(arena, "flash", footprint_flash_text(arena, &f), footprint_flash(&f), budget->flash);
    tell(arena, "RAM", footprint_ram_text(arena, &f), footprint_ram(&f), budget->ram);
}
