/* engine.c: compiles generated C, loads it and calls it. */
#include "engine.h"

#include "cc.h"
#include "denormals.h"

#include "../../runtime/attn_runtime.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

/* ---------------------------------------------------------------- the library */

static const char *folder_write(Arena *arena, Folder *folder, const char *name, const char *text) {
    const char *path = folder_file(folder, name);
    write_text(arena, path, text);
    return path;
}

static void unload(void *handle) { dlclose(handle); }
static void free_pool(void *pool) { attn_pool_free(pool); }
static void close_file(void *file) { attn_close_file(file); }
static void free_memory(void *memory) { attn_free(memory); }

/* Sets a pointer to the driver's function `name`, or to NULL when the model has no such function. */
static void find(const Engine *engine, const char *name, void *pointer) {
    const char *model = engine->module->model->name;
    *(void **)pointer = dlsym(engine->library, arena_printf(engine->arena, "%s_driver_%s", model, name));
}

static void find_functions(Engine *engine) {
    Loaded *loaded = &engine->loaded;
    find(engine, "init", &loaded->init);
    for (EntryKind e = 0; e < ENTRY_COUNT; e++) find(engine, entry_name(e), &loaded->entries[e]);
    find(engine, "state_init", &loaded->state_init);
    find(engine, "state_copy", &loaded->state_copy);
    find(engine, "state_rewind", &loaded->state_rewind);
    find(engine, "text", &loaded->text);
    if (!loaded->init || !loaded->entries[ENTRY_FORWARD] || !loaded->text)
        bug("the compiled model `%s` lacks a function", engine->module->model->name);
}

size_t engine_workspace(const Engine *engine, EntryKind entry, int threads) {
    const EntrySizes *sizes = &engine->emitted.entries[entry];
    return (size_t)(sizes->workspace_bytes + threads * sizes->scratch_bytes);
}

void *engine_memory(Arena *arena, size_t bytes) {
    void *memory = attn_alloc(bytes);
    if (!memory) out_of_memory();
    arena_on_free(arena, free_memory, memory);
    return memory;
}

/* ---------------------------------------------------------------- from a module to calls */

Engine *engine_write(Arena *arena, const Compilation *spec, const EngineOptions *options) {
    Compilation c = *spec;
    c.arena = arena;
    const char *target = options->target && strcmp(options->target, "native") != 0 ? options->target : NULL;
    const char *const one[] = {target}, *const *targets = options->n_targets ? options->targets : one;
    int n = options->n_targets ? options->n_targets : target != NULL;
    c.options = (EmitOptions){.targets = targets, .n_targets = n, .command = "run", .serves = options->run != NULL};
    compile_until(&c, STAGE_PLAN);
    if (!n) {
        targets = targets_here(arena, graph_row_types(c.module->entries[ENTRY_FORWARD]), &n);
        c.options.targets = targets = targets_of_arithmetic(arena, c.program->arithmetic, targets, &n);
        c.options.n_targets = n;
    }
    for (int t = 0; t < n; t++) target_require(arena, targets[t]);
    if (options->embedded)
        c.options.embedded = packed_bytes(arena, c.program, options->embedded, &c.options.embedded_bytes);
    progress_begin("writing the C of %s", c.model->name);
    compile_until(&c, STAGE_C);
    Engine *engine = arena_alloc(arena, sizeof *engine);
    *engine = (Engine){.arena = arena,
                       .module = c.module,
                       .program = c.program,
                       .plan = c.program->entries[ENTRY_FORWARD],
                       .emitted = c.emitted,
                       .given_c = options->emitted_c != NULL};
    if (engine->given_c) engine->emitted.c = options->emitted_c;
    engine->call.target = target;
    return engine;
}

/* Writes the models of a library as one source, in which all names differ because the models' names do. */
static const char *write_sources(Arena *arena, Folder *folder, Engine *const *engines, int n) {
    Text all = text_new(arena);
    for (int i = 0; i < n; i++) {
        const char *model = engines[i]->module->model->name;
        folder_write(arena, folder, arena_printf(arena, "%s.c", model), engines[i]->emitted.c);
        folder_write(arena, folder, arena_printf(arena, "%s.h", model), engines[i]->emitted.h);
        folder_write(arena, folder, arena_printf(arena, "%s_driver.c", model), engines[i]->emitted.driver);
        text_add(&all, engines[i]->emitted.unit, strlen(engines[i]->emitted.unit));
    }
    return folder_write(arena, folder, "all-models.c", all.data); /* no model has such a name */
}

/* Ends the program where the compiler or its options are at fault, and else with a bug: it is our C. */
static _Noreturn void refuse_compiler(Arena *arena, const Folder *folder, const char *cc, const char *const *arguments,
                                      const char *model, int status, bool shared) {
    cc_try(arena, cc, shared);
    const char *const none[] = {NULL}, *const *words = cc_words(arena, cc, none);
    if (words[1] && run_program(folder, cc_words(arena, words[0], arguments)) == 0)
        fail("%s compiles the C of `%s`, but not with the options of `%s` (status %d)", words[0], model, cc, status);
    bug("%s does not compile the C of `%s` (status %d)", cc, model, status);
}

void engines_compile(Arena *arena, Engine *const *engines, int n, const EngineOptions *options) {
    Folder *folder = folder_new(arena);
    const char *cc = cc_find(arena, options->cc, options->or_interp), *model = engines[0]->module->model->name;
    const char *source = write_sources(arena, folder, engines, n), *library = folder_file(folder, "model.so");
    const char *level = options->level ? options->level : "-O2";
    const char *argv[13] = {"-std=c11", level, "-o", library, source, options->strict ? "-Wall" : "-w"};
    int n_words = 6;
    if (options->strict) argv[n_words++] = "-Wextra", argv[n_words++] = "-Werror";
    if (!options->run) argv[n_words++] = "-shared", argv[n_words++] = "-fPIC";
    if (options->emulate) {
        folder_write(arena, folder, "attn_tiles.h", embedded_file("attn_tiles.h"));
        argv[n_words++] = "-DATTN_TILES=\"attn_tiles.h\"";
    }
    progress_begin("compiling %s with %s", model, cc);
    double begin = seconds_now();
    int status = run_program(folder, cc_words(arena, cc, argv));
    double seconds = seconds_now() - begin;
    if (status != 0 && engines[0]->given_c) fail("%s does not compile the given C (status %d)", cc, status);
    if (status != 0 && options->run) fail("%s does not compile the C of `%s` (status %d)", cc, model, status);
    if (status != 0) refuse_compiler(arena, folder, cc, argv, model, status, !options->run);
    if (!file_exists(library)) fail("the C compiler `%s` ends without an error, and writes no file", cc);
    if (options->run) {
        engines[0]->remote = remote_new(arena, options->run, library);
        engines[0]->compile_seconds = seconds;
        return;
    }
    errno = 0;
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    int error = errno;
    if (!handle && error == ENOMEM) fail_system(error, "the compiled model cannot be loaded: %s", dlerror());
    if (!handle) fail("the compiled model cannot be loaded: %s", dlerror());
    arena_on_free(arena, unload, handle);
    for (int i = 0; i < n; i++) {
        engines[i]->library = handle;
        find_functions(engines[i]);
        engines[i]->compile_seconds = seconds / n;
    }
}

static const void *embedded_in(const Engine *engine) {
    const void *(*embedded)(void) = NULL;
    const char *model = engine->module->model->name;
    *(void **)&embedded = dlsym(engine->library, arena_printf(engine->arena, "%s_embedded", model));
    if (!embedded) bug("the compiled model `%s` has no weights", model);
    return embedded();
}

static void load_file(Arena *arena, Engine *engine, const Weights *weights, const EngineOptions *options) {
    const char *packed = folder_file(folder_new(arena), "model.attnw");
    packed_write(arena, packed, engine->program, weights);
    attn_file *file = arena_alloc(arena, sizeof *file);
    int error = (options->load ? attn_load_file : attn_map_file)(packed, file);
    if (error) fail_system(error, "%s: cannot be read", packed);
    arena_on_free(arena, close_file, file);
    engine->call.weights = file->data;
    engine->call.weights_bytes = file->size;
    if (options->embedded) engine->call.weights = embedded_in(engine);
}

static void load_ranks(Arena *arena, Engine *engine, const Weights *weights) {
    Folder *folder = folder_new(arena);
    const int ranks = engine->module->ranks;
    const char **paths = arena_array(arena, (size_t)ranks, sizeof *paths);
    for (int r = 0; r < ranks; r++) paths[r] = folder_file(folder, arena_printf(arena, "model.%d.attnw", r));
    packed_write_ranks(arena, paths, engine->program, weights);
    engine->team = team_new(arena, ranks, paths);
}

void engine_load(Arena *arena, Engine *engine, const Weights *weights, const EngineOptions *options) {
    DriverCall *call = &engine->call;
    if (engine->module->ranks > 1) load_ranks(arena, engine, weights);
    else load_file(arena, engine, weights, options);
    call->threads = options->threads > 0 ? options->threads : 1;
    call->tiles = options->emulate || attn_allow_tiles();
    if (call->threads > 1) {
        call->pool = attn_pool_new(call->threads);
        if (!call->pool) fail_system(errno, "a pool of %d threads cannot be made", call->threads);
        arena_on_free(arena, free_pool, call->pool);
        call->parallel_for = attn_pool_run;
    }
    call->workspace_bytes = engine_workspace(engine, ENTRY_FORWARD, call->threads);
    call->workspace = engine_memory(arena, call->workspace_bytes);
    int status = engine->remote ? remote_init(engine->remote, call, true) : engine_init(engine);
    if (status == 3)
        fail_status(EXIT_CANNOT, "%s has no %s", options->run ? options->run : "this machine",
                    call->target ? call->target : "known target");
    if (status && engine->given_c) fail("the given C refuses the weights: %s", engine_text(engine, status));
    if (status) bug("the compiled model refuses its weights: %s", engine_text(engine, status));
}

Engine *engine_new(Arena *arena, const Compilation *spec, const Weights *weights, const EngineOptions *options) {
    Engine *engine = engine_write(arena, spec, options);
    engines_compile(arena, &engine, 1, options);
    engine_load(arena, engine, weights, options);
    return engine;
}

/* ---------------------------------------------------------------- its functions */

int engine_init(Engine *engine) {
    if (engine->remote) return remote_init(engine->remote, &engine->call, false);
    if (!engine->loaded.init) bug("the engine is neither loaded nor run elsewhere");
    return engine->team ? team_init(engine->team, engine->loaded.init, &engine->call)
                        : engine->loaded.init(&engine->call);
}

static int call_all(Engine *engine, EntryKind entry, const DriverCall *call, const size_t *bytes) {
    if (!engine->team) return engine->loaded.entries[entry](call);
    const TeamCall all = {.entry = engine->loaded.entries[entry],
                          .call = call,
                          .output_bytes = bytes,
                          .state_bytes = (size_t)engine->emitted.state_bytes,
                          .source_bytes = (size_t)engine->emitted.source_bytes};
    return team_call(engine->team, &all);
}

static int call_watched(Engine *engine, EntryKind entry, const DriverCall *call, const size_t *bytes) {
    if (!engine->watches) return call_all(engine, entry, call, bytes);
    denormals_forget();
    const int status = call_all(engine, entry, call, bytes);
    engine->denormals |= denormals_seen();
    return status;
}

int engine_call(Engine *engine) {
    if (!engine->remote) return call_watched(engine, ENTRY_FORWARD, &engine->call, engine->output_bytes);
    return remote_call(engine->remote, ENTRY_FORWARD, &engine->call, engine->input_bytes, engine->output_bytes,
                       engine->plan->n_steps);
}

/* Counts the bytes of a call's inputs. `lengths` NULL: each sequence has one row. */
static void count_inputs(const Graph *g, const int32_t *lengths, int64_t batch, size_t *bytes) {
    int64_t times[] = {[PER_ROW] = 0, [PER_SEQUENCE] = batch, [PER_PAIR] = 0};
    for (int64_t b = 0; b < batch; b++) {
        int64_t n = lengths ? lengths[b] : 1;
        times[PER_ROW] += n;
        times[PER_PAIR] += n * n;
    }
    for (int i = 0; i < g->n_inputs; i++) {
        const Tensor *t = &g->tensors[g->inputs[i].tensor];
        const InputKind *kind = g->inputs[i].kind;
        static const int first[] = {[PER_ROW] = 1, [PER_SEQUENCE] = 0, [PER_PAIR] = 2}; /* dimension of an item */
        int64_t items = times[kind->rows];
        for (int d = first[kind->rows]; d < t->rank; d++) items *= t->dims[d].n;
        bytes[kind->role] = (size_t)items * input_element_bytes(kind);
    }
}

int engine_entry(Engine *engine, EntryKind entry, const DriverCall *call, const size_t *bytes) {
    if (!engine->remote) return call_watched(engine, entry, call, bytes);
    const int32_t *lengths = entry == ENTRY_DECODE ? call->lengths : call->source_lengths;
    size_t inputs[MOST_INPUTS] = {0};
    count_inputs(engine->module->entries[entry], lengths, call->batch, inputs);
    return remote_call(engine->remote, entry, call, inputs, bytes, engine->program->entries[entry]->n_steps);
}

void engine_see(Engine *engine, void *at, size_t bytes) {
    if (engine->remote && bytes) remote_see(engine->remote, at, bytes);
}

/* The same for a rank, with the memory that stands for that of rank 0. */
static int state_of_rank(Engine *engine, int rank, char how, void *state, const void *from, int rows) {
    const size_t bytes = (size_t)engine->emitted.state_bytes;
    const size_t from_bytes = how == 's' ? (size_t)engine->emitted.source_bytes : bytes;
    void *own = engine->team ? team_memory(engine->team, rank, state, bytes) : state;
    union { const void *given; void *own; } source = {.given = from};
    if (engine->team) source.own = team_memory(engine->team, rank, source.own, from_bytes);
    switch (how) {
    case 's': return engine->loaded.state_init(own, bytes, source.own);
    case 'c': return engine->loaded.state_copy(own, source.own);
    default: return engine->loaded.state_rewind(own, rows);
    }
}

int engine_state(Engine *engine, char how, void *state, const void *from, int rows) {
    if (engine->remote) return remote_state(engine->remote, how, state, how == 'r' ? (uint64_t)rows : (uintptr_t)from);
    int status = 0;
    for (int r = 0; !status && r < (engine->team ? team_ranks(engine->team) : 1); r++)
        status = state_of_rank(engine, r, how, state, from, rows);
    return status;
}

const char *engine_text(const Engine *engine, int status) {
    if (status == TEAM_DIFFERS) return "a rank has other results than rank 0";
    return engine->remote ? remote_text(engine->remote, status) : engine->loaded.text(status);
}

/* ---------------------------------------------------------------- calls */

/* A number of rows that the caller chooses is a symbol: the first dimension of some input. */
static int64_t rows_of(const Engine *engine, const Sequence *s, Length length, bool of_source) {
    const Graph *g = engine->plan->graph;
    if (length.exact || !length.n) return length.n;
    for (int i = 0; i < g->n_inputs; i++) {
        Dim rows = g->tensors[g->inputs[i].tensor].dims[0];
        if (g->inputs[i].of_source == of_source && rows.symbol) return sequence_extent(s, rows);
    }
    bug("no input of `%s` has its rows", engine->module->model->name);
}

int64_t engine_rows(const Engine *engine, const Sequence *s) { return rows_of(engine, s, engine->plan->seq, false); }

int64_t engine_source_rows(const Engine *engine, const Sequence *s) {
    return rows_of(engine, s, engine->plan->source_seq, true);
}

/* Concatenates the arrays of all sequences; NULL when the input is absent. */
static const void *join(Arena *arena, const Batch *batch, const GraphInput *input, const Tensor *t, size_t *bytes) {
    size_t item = input_element_bytes(input->kind);
    *bytes = 0;
    if (!sequence_input(&batch->sequences[0], input->kind->role)) return NULL;
    for (int64_t b = 0; b < batch->count; b++) *bytes += (size_t)sequence_items(&batch->sequences[b], t) * item;
    uint8_t *out = arena_alloc(arena, *bytes), *to = out;
    for (int64_t b = 0; b < batch->count; b++) {
        const InputArray *a = sequence_input(&batch->sequences[b], input->kind->role);
        if (!a) bug("the input %s is not in every sequence", input->kind->name);
        int64_t count = sequence_items(&batch->sequences[b], t);
        const bool integers = t->dtype == DTYPE_I64;
        memcpy(to, integers ? ids_packed(arena, input->kind, a->data, count) : a->data, (size_t)count * item);
        to += (size_t)count * item;
    }
    return out;
}

static void bind_inputs(Arena *arena, Engine *engine, const Batch *batch) {
    const Graph *g = engine->plan->graph;
    memset(engine->call.inputs, 0, sizeof engine->call.inputs);
    memset(engine->input_bytes, 0, sizeof engine->input_bytes);
    for (int i = 0; i < g->n_inputs; i++) {
        const GraphInput *input = &g->inputs[i];
        engine->call.inputs[input->kind->role] =
            join(arena, batch, input, &g->tensors[input->tensor], &engine->input_bytes[input->kind->role]);
    }
}

/* The floats that a sequence has in an output's array: a map holds only the exported heads. */
static int64_t array_items(const Sequence *s, const Graph *g, const GraphOutput *out) {
    const Tensor *t = &g->tensors[out->tensor];
    if (out->layer < 0) return sequence_items(s, t);
    return out->n_heads * sequence_extent(s, t->dims[1]) * sequence_extent(s, t->dims[2]);
}

void engine_bind(Arena *arena, Engine *engine, const Batch *batch) {
    DriverCall *call = &engine->call;
    const Graph *g = engine->plan->graph;
    int32_t *lengths = arena_array(arena, (size_t)batch->count, sizeof *lengths),
            *source_lengths = arena_array(arena, (size_t)batch->count, sizeof *source_lengths);
    int64_t items[OUT_COUNT] = {0};
    for (int64_t b = 0; b < batch->count; b++) {
        const Sequence *s = &batch->sequences[b];
        lengths[b] = (int32_t)engine_rows(engine, s);
        source_lengths[b] = (int32_t)engine_source_rows(engine, s);
        for (int o = 0; o < g->n_outputs; o++)
            items[g->outputs[o].role] += array_items(s, g, &g->outputs[o]);
    }
    call->batch = (int)batch->count;
    call->lengths = lengths;
    call->source_lengths = source_lengths;
    bind_inputs(arena, engine, batch);
    for (int f = 0; f < OUT_COUNT; f++) {
        engine->output_bytes[f] = (size_t)items[f] * sizeof(float);
        call->outputs[f] = items[f] ? arena_array(arena, (size_t)items[f], sizeof(float)) : NULL;
    }
}

void engine_forward(Engine *engine) {
    int status = engine_call(engine);
    if (status) fail("the compiled model says: %s", engine_text(engine, status));
}

/* Copies a sequence's output into the shape that it has in the graph, where heads that are not exported are zeros. */
static OutputArray take_output(Arena *arena, const Sequence *s, const Graph *g, const GraphOutput *out,
                               const float *from) {
    const Tensor *t = &g->tensors[out->tensor];
    OutputArray array = {.role = out->role, .layer = out->layer, .shape = {t->rank, {0}}};
    for (int d = 0; d < t->rank; d++) array.shape.dims[d] = sequence_extent(s, t->dims[d]);
    double *data = arena_array(arena, (size_t)sequence_items(s, t), sizeof *data);
    array.data = data;
    int64_t heads = out->layer < 0 ? 1 : out->n_heads, each = array_items(s, g, out) / heads;
    for (int64_t h = 0; h < heads; h++)
        for (int64_t i = 0; i < each; i++)
            data[(out->layer < 0 ? 0 : out->heads[h]) * each + i] = from[h * each + i];
    return array;
}

void engine_run(Arena *arena, Engine *engine, Batch *batch) {
    engine_bind(arena, engine, batch);
    engine_forward(engine);
    const Graph *g = engine->plan->graph;
    int64_t at[OUT_COUNT] = {0};
    for (int64_t b = 0; b < batch->count; b++) {
        Sequence *s = &batch->sequences[b];
        s->outputs = arena_array(arena, (size_t)g->n_outputs, sizeof *s->outputs);
        for (int o = 0; o < g->n_outputs; o++) {
            OutputRole role = g->outputs[o].role;
            s->outputs[o] = take_output(arena, s, g, &g->outputs[o], engine->call.outputs[role] + at[role]);
            at[role] += array_items(s, g, &g->outputs[o]);
        }
    }
}
