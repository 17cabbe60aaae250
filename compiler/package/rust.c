/* rust.c: a model as a crate for Rust. Its source is written by templates, which the arrays of each entry of the C
 * fill. */
#include "../emit/emit.h"
#include "package.h"

#include <string.h>

enum { MOST_BYTES = 1 << 20 };

/* Words of Rust, of which C and C++ have none, and names of its own crates: a crate has another name. */
static const char *const reserved[] = {
    "Self", "abstract", "alloc", "as", "async", "await", "become", "box", "build", "core", "crate", "deps", "dyn",
    "examples", "final", "fn", "gen", "impl", "in", "incremental", "let", "loop", "macro", "match", "mod", "move",
    "mut", "override", "priv", "proc_macro", "pub", "ref", "self", "std", "super", "test", "trait", "type", "unsafe",
    "unsized", "use", "where", "yield", NULL};

/* The entries of the C: how the names of their structs in Rust begin, and the names of those of the C. */
static const struct {
    const char *of, *input, *output;
} entries[ENTRY_COUNT] = {[ENTRY_FORWARD] = {"", "Input", "Output"}, [ENTRY_ENCODE] = {"Source", "Source", "Encoded"},
                          [ENTRY_DECODE] = {"Step", "Rows", "Decoded"}};

typedef struct Crate {
    Arena *arena;
    const Package *package;
    const Program *program;
    const Model *model;
    TemplateVars *vars, *entries[ENTRY_COUNT]; /* NULL where the C lacks the entry */
} Crate;

static const char *crate_name(Arena *arena, const char *model) {
    for (const char *const *word = reserved; *word; word++)
        if (strcmp(model, *word) == 0) return arena_printf(arena, "%s_model", model);
    return model;
}

/* Whether rustc warns that the name is not in snake case. */
static bool is_odd(const char *name) {
    const size_t size = strlen(name);
    for (size_t i = 0; i < size; i++)
        if (name[i] >= 'A' && name[i] <= 'Z') return true;
    return strstr(name, "__") != NULL;
}

static const Graph *graph_of(const Crate *crate, int entry) {
    const Plan *plan = crate->program->entries[entry];
    return plan ? plan->graph : NULL;
}

/* Whether the decoder continues a text, token by token. Numbers of the sequence belong to its state. */
static bool writes_text(const Crate *crate) {
    const Graph *decode = graph_of(crate, ENTRY_DECODE);
    for (int i = 0; decode && i < decode->n_inputs; i++) {
        const InputKind *kind = decode->inputs[i].kind;
        if (kind->role != IN_tokens && kind->absent != ABSENT_ZEROS && !input_is_own_number(kind)) return false;
    }
    return graph_input(decode, IN_tokens) && crate->model->head.logits && graph_output_of(decode, OUT_logits);
}

static void set_uses(const Crate *crate) {
    bool ids = false, pairs = false, prefix = false;
    for (int e = 0; e < ENTRY_COUNT; e++) {
        const Graph *g = graph_of(crate, e);
        for (int i = 0; g && i < g->n_inputs; i++) {
            ids |= graph_table_rows(g, &g->inputs[i]) > 0;
            pairs |= g->inputs[i].kind->rows == PER_PAIR;
            prefix |= g->inputs[i].kind->role == IN_prefix_length;
        }
        for (int o = 0; g && o < g->n_outputs; o++) pairs |= g->outputs[o].layer >= 0;
    }
    vars_int(crate->vars, "uses_ids", ids);
    vars_int(crate->vars, "uses_pairs", pairs);
    vars_int(crate->vars, "uses_prefix", prefix);
}

static bool has_numbers(const Graph *graph) {
    for (int i = 0; graph && i < graph->n_inputs; i++)
        if (input_is_own_number(graph->inputs[i].kind)) return true;
    return false;
}

/* What a literal of Rust holds for this text. */
static const char *rust_spelled(Arena *arena, const char *text) {
    Text out = text_new(arena);
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') text_printf(&out, "\\%c", c);
        else if (c < ' ' || c == 0x7f) text_printf(&out, "\\u{%x}", (unsigned)c);
        else text_add(&out, text, 1);
    }
    return out.data;
}

static void set_prompts(const Crate *crate) {
    const TextRules *rules = &crate->model->text;
    Text prompts = text_new(crate->arena);
    for (int64_t i = 0; i < rules->n_prompts; i++)
        if (*rules->prompts[i].name)
            text_printf(&prompts, "%s(\"%s\", \"%s\")", prompts.size ? ", " : "",
                        rust_spelled(crate->arena, rules->prompts[i].name),
                        rust_spelled(crate->arena, rules->prompts[i].text));
    vars_text(crate->vars, "prompts", prompts.size ? prompts.data : "");
    vars_text(crate->vars, "prompt", rust_spelled(crate->arena, text_prompt(rules)));
    vars_int(crate->vars, "rules", text_rules_number(rules));
}

static void set_model(const Crate *crate) {
    const Package *package = crate->package;
    const Model *m = crate->model;
    TemplateVars *vars = crate->vars;
    const Graph *forward = graph_of(crate, ENTRY_FORWARD), *decode = graph_of(crate, ENTRY_DECODE);
    const Plan *plan = crate->program->entries[ENTRY_DECODE];
    int64_t state_bytes, source_bytes;
    vars_text(vars, "p", m->name);
    vars_text(vars, "P", upper_case(crate->arena, m->name));
    vars_text(vars, "crate", crate_name(crate->arena, m->name));
    vars_int(vars, "odd_name", is_odd(m->name));
    vars_text(vars, "version", ATTNC_VERSION);
    vars_int(vars, "weights", package->weights);
    vars_text(vars, "tokenizer", package->tokenizer ? package->tokenizer : "");
    vars_int(vars, "weights_bytes", packed_file_bytes(crate->program));
    vars_int(vars, "alone", m->alone != NULL);
    set_states(crate->arena, crate->program, vars, &state_bytes, &source_bytes);
    vars_int(vars, "reads_tokens", graph_input(decode, IN_tokens) != NULL);
    vars_int(vars, "steps_tokens", graph_input(decode, IN_tokens) && !graph_takes_rows(decode));
    vars_int(vars, "numbered", has_numbers(decode));
    vars_int(vars, "decode_seq", plan ? plan->seq.n : 0);
    vars_int(vars, "self_maps", graph_output_of(decode, OUT_attention) != NULL);
    vars_int(vars, "cross_maps", graph_output_of(decode, OUT_cross_attention) != NULL);
    vars_int(vars, "generates", writes_text(crate));
    vars_int(vars, "remembers", writes_text(crate) && graph_crossing(decode, 1, plan->seq.n));
    vars_int(vars, "embeds", graph_needs_tokens_alone(forward) && graph_output_of(forward, OUT_pooled) &&
                                 !crate->program->entries[ENTRY_FORWARD]->seq.exact);
    vars_int(vars, "hears", reads_sound(m));
    vars_int(vars, "transcribes", writes_text(crate) && transcribes(m) && !has_numbers(decode));
    vars_int(vars, "bins", m->encoder ? m->encoder->mel_bins : 0);
    vars_int(vars, "frames", m->encoder ? m->encoder->mel_frames : 0);
    set_prompts(crate);
    set_uses(crate);
}

static void set_own_entry(const Crate *crate, int e, TemplateVars *vars) {
    const Plan *plan = crate->program->entries[e];
    bool optional = false;
    for (int i = 0; i < plan->graph->n_inputs; i++)
        optional |= plan->graph->inputs[i].optional || plan->graph->inputs[i].kind->absent == ABSENT_ZEROS;
    set_entry(crate->arena, plan, 0, vars);
    vars_int(vars, "has_optional", optional);
    vars_text(vars, "Of", entries[e].of);
    vars_text(vars, "Input", entries[e].input);
    vars_text(vars, "Output", entries[e].output);
}

/* Sets the list `entries`, a record of each entry, and the variables of the templates that are about one entry. */
static void set_entries(Crate *crate) {
    TemplateList *list = vars_list(crate->vars, "entries");
    for (int e = 0; e < ENTRY_COUNT; e++) {
        const Plan *plan = crate->program->entries[e];
        if (!plan) continue;
        crate->entries[e] = vars_new(crate->arena, crate->vars);
        set_own_entry(crate, e, crate->entries[e]);
        set_own_entry(crate, e, list_record(list));
    }
}

static const char *expanded(Arena *arena, const char *template, TemplateVars *vars) {
    return template_expanded(arena, template, MOST_BYTES, template, vars);
}

static const PackageFile *files(const Package *package) {
    const Program *program = package->c->program;
    Crate crate = {.arena = package->arena, .package = package, .program = program, .model = package->c->model,
                   .vars = vars_new(package->arena, NULL)};
    set_model(&crate);
    set_entries(&crate);
    const bool generates = writes_text(&crate);
    const bool speaks = generates && transcribes(crate.model) && !has_numbers(graph_of(&crate, ENTRY_DECODE));
    TemplateVars *forward = crate.entries[ENTRY_FORWARD], *decode = crate.entries[ENTRY_DECODE];
    const struct {
        const char *name;
        TemplateVars *vars; /* NULL: the crate has no such module */
    } modules[] = {{"arrays", crate.vars}, {"error", crate.vars}, {"ffi", crate.vars},
                   {"generate", generates ? decode : NULL}, {"memory", crate.vars}, {"model", forward},
                   {"sound", reads_sound(crate.model) ? forward : NULL}, {"source", crate.entries[ENTRY_ENCODE]},
                   {"state", decode}, {"tokenizer", package->tokenizer ? forward : NULL},
                   {"transcribe", speaks ? decode : NULL}};
    const struct {
        const char *path, *template;
        TemplateVars *vars;
    } others[] = {{"Cargo.toml", "rust_cargo.toml.tmpl", crate.vars},
                  {"rustfmt.toml", "rust_fmt.toml.tmpl", crate.vars},
                  {"build.rs", "rust_build.rs.tmpl", crate.vars},
                  {"src/shim.c", "rust_shim.c.tmpl", crate.vars},
                  {"src/lib.rs", "rust_lib.rs.tmpl", forward},
                  {"tests/model.rs", "rust_tests.rs.tmpl", forward}};
    enum { MODULES = sizeof modules / sizeof *modules, OTHERS = sizeof others / sizeof *others };
    PackageFile *list = arena_array(package->arena, MODULES + OTHERS + 1, sizeof *list);
    TemplateList *names = vars_list(crate.vars, "modules");
    int n = 0;
    for (int i = 0; i < MODULES; i++) {
        if (!modules[i].vars) continue;
        const char *path = arena_printf(package->arena, "src/%s.rs", modules[i].name);
        const char *template = arena_printf(package->arena, "rust_%s.rs.tmpl", modules[i].name);
        list[n++] = (PackageFile){path, expanded(package->arena, template, modules[i].vars)};
        vars_text(list_record(names), "name", modules[i].name);
    }
    for (int i = 0; i < OTHERS; i++)
        list[n++] = (PackageFile){others[i].path, expanded(package->arena, others[i].template, others[i].vars)};
    return list;
}

const PackageKind package_rust = {"c", files};
