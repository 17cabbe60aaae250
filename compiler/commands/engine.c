/* engine.c: generated C, compiled and loaded into this process. */
#include "engine.h"

#include "../../runtime/attn_runtime.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---------------------------------------------------------------- the compiler */

int run_program(const char *const *argv) {
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) return -1;
    if (child == 0) {
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    int status = 0;
    const struct timespec pause = {.tv_nsec = 5000000};
    for (pid_t ended = 0; ended != child;) {
        ended = waitpid(child, &status, progress_is_wanted() ? WNOHANG : 0);
        if (ended < 0 && errno != EINTR) return -1;
        if (ended == 0) nanosleep(&pause, NULL);
        progress_tick();
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool in_path(Arena *arena, const char *program) {
    if (strchr(program, '/')) return access(program, X_OK) == 0;
    const char *path = getenv("PATH");
    for (const char *at = path ? path : ""; *at;) {
        size_t length = strcspn(at, ":");
        if (access(arena_printf(arena, "%.*s/%s", (int)length, at, program), X_OK) == 0) return true;
        at += length + (at[length] == ':');
    }
    return false;
}

static const char *find_cc(Arena *arena, const EngineOptions *options) {
    const char *wanted = options->cc ? options->cc : getenv("CC");
    const char *instead = options->or_interp ? "; --engine interp needs none" : "";
    if (wanted && *wanted) {
        if (!in_path(arena, wanted)) fail("the C compiler `%s` is not there%s", wanted, instead);
        return wanted;
    }
    static const char *const usual[] = {"clang", "gcc", "cc"};
    for (int i = 0; i < 3; i++)
        if (in_path(arena, usual[i])) return usual[i];
    fail("no C compiler: install clang or gcc, or name one with --cc%s", instead);
}

/* ---------------------------------------------------------------- a folder for the pieces */

typedef struct Folder {
    char *path;
    const char *files[8];
    int n;
    struct Folder *next;
} Folder;

static Folder *folders; /* not removed yet; a failure leaves through exit() */

static void folder_remove(void *with) {
    Folder *folder = with;
    for (Folder **at = &folders; *at; at = &(*at)->next)
        if (*at == folder) {
            *at = folder->next;
            break;
        }
    for (int i = 0; i < folder->n; i++) unlink(folder->files[i]);
    rmdir(folder->path);
}

static void folders_remove(void) {
    while (folders) folder_remove(folders);
}

static Folder *folder_new(Arena *arena) {
    static bool registered;
    if (!registered) atexit(folders_remove);
    registered = true;
    const char *base = getenv("TMPDIR");
    Folder *folder = arena_alloc(arena, sizeof *folder);
    folder->path = arena_printf(arena, "%s/attnc-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(folder->path)) fail("%s: a folder for compiling cannot be made: %s", folder->path, strerror(errno));
    folder->next = folders;
    folders = folder;
    arena_on_free(arena, folder_remove, folder);
    return folder;
}

static const char *folder_file(Arena *arena, Folder *folder, const char *name) {
    return folder->files[folder->n++] = arena_printf(arena, "%s/%s", folder->path, name);
}

static void write_text(Arena *arena, const char *path, const char *text) {
    OutputFile *output = output_open(arena, path);
    output_write(output, text, strlen(text));
    output_commit(output);
}

static void unload(void *handle) { dlclose(handle); }
static void free_pool(void *pool) { attn_pool_free(pool); }
static void close_file(void *file) { attn_close_file(file); }
static void free_memory(void *memory) { attn_free(memory); }

void *engine_symbol(const Engine *engine, const char *name) {
    void *found = dlsym(engine->library, name);
    if (!found) bug("the compiled model has no `%s`", name);
    return found;
}

static void *load_library(Arena *arena, Engine *engine, Folder *folder, const char *cc, bool quick) {
    const char *model = engine->module->model->name;
    const char *c = folder_file(arena, folder, arena_printf(arena, "%s.c", model)),
               *h = folder_file(arena, folder, arena_printf(arena, "%s.h", model));
    const char *driver = folder_file(arena, folder, "driver.c"), *library = folder_file(arena, folder, "model.so");
    write_text(arena, c, engine->emitted.c);
    write_text(arena, h, engine->emitted.h);
    write_text(arena, driver, engine->emitted.driver);
    const char *const argv[] = {cc,   "-std=c11", quick ? "-O1" : "-O2", "-w", "-shared", "-fPIC",
                                "-o", library,    c,                     driver, NULL};
    progress_begin("compiling %s with %s", model, cc);
    double begin = seconds_now();
    int status = run_program(argv);
    engine->compile_seconds = seconds_now() - begin;
    if (status != 0 && engine->given_c) fail("%s does not compile the given C (status %d)", cc, status);
    if (status != 0) bug("%s does not compile the C of `%s` (status %d)", cc, model, status);
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) fail("the compiled model cannot be loaded: %s", dlerror());
    arena_on_free(arena, unload, handle);
    return handle;
}

Engine *engine_new(Arena *arena, const Module *module, const Weights *weights, const EngineOptions *options) {
    Engine *engine = arena_alloc(arena, sizeof *engine);
    engine->module = module;
    Program *program = plan_model(arena, module);
    engine->program = program;
    engine->plan = program->forward;
    const char *target = options->target && strcmp(options->target, "native") != 0 ? options->target : NULL;
    int n_here;
    const char *const *here = targets_here(arena, &n_here), *const one[] = {target};
    EmitOptions emit_options = {.targets = target ? one : here,
                                .n_targets = target ? 1 : n_here,
                                .command = "run",
                                .layout_hash = packed_layout_hash(program)};
    if (target) target_require(arena, target);
    progress_begin("writing the C of %s", module->model->name);
    engine->emitted = emit(arena, program, &emit_options);
    engine->given_c = options->emitted_c != NULL;
    if (engine->given_c) engine->emitted.c = options->emitted_c;
    Folder *folder = folder_new(arena);
    const char *packed = folder_file(arena, folder, "model.attnw");
    engine->library = load_library(arena, engine, folder, find_cc(arena, options), options->quick);
    packed_write(arena, packed, program, weights);
    DriverCall *call = &engine->call;
    attn_file *file = arena_alloc(arena, sizeof *file);
    int error = (options->load ? attn_load_file : attn_map_file)(packed, file);
    if (error) fail("%s: %s", packed, strerror(error));
    arena_on_free(arena, close_file, file);
    call->weights = file->data;
    call->weights_bytes = file->size;
    call->target = target;
    call->threads = options->threads > 0 ? options->threads : 1;
    if (call->threads > 1) {
        call->pool = attn_pool_new(call->threads);
        if (!call->pool) fail("a pool of %d threads cannot be made: %s", call->threads, strerror(errno));
        arena_on_free(arena, free_pool, call->pool);
        call->parallel_for = attn_pool_run;
    }
    engine->workspace_bytes = call->workspace_bytes =
        (size_t)(engine->emitted.forward.workspace_bytes + call->threads * engine->emitted.forward.scratch_bytes);
    call->workspace = attn_alloc(call->workspace_bytes);
    if (!call->workspace) out_of_memory();
    arena_on_free(arena, free_memory, call->workspace);
    *(void **)&engine->init = engine_symbol(engine, "attnc_driver_init");
    *(void **)&engine->forward = engine_symbol(engine, "attnc_driver_forward");
    *(void **)&engine->text = engine_symbol(engine, "attnc_driver_text");
    int status = engine->init(call);
    if (status == 3) fail_status(EXIT_CANNOT, "this machine has no %s", target ? target : "known target");
    if (status && engine->given_c) fail("the given C refuses the weights: %s", engine->text(status));
    if (status) bug("the compiled model refuses its weights: %s", engine->text(status));
    return engine;
}

/* ---------------------------------------------------------------- calls */

#define FIELD(name) {#name, offsetof(DriverCall, name)}
const CallField call_inputs[CALL_INPUTS] = {
    FIELD(tokens), FIELD(segments), FIELD(source), {"target", offsetof(DriverCall, target_ids)},
    {"prefix_length", offsetof(DriverCall, prefix_lengths)}, FIELD(features), FIELD(pixels), FIELD(query), FIELD(key),
    FIELD(value), FIELD(mask)};
const CallField call_outputs[CALL_OUTPUTS] = {
    FIELD(hidden), FIELD(pooled), FIELD(logits), FIELD(attention), FIELD(encoder_hidden), FIELD(context),
    FIELD(encoder_attention), FIELD(cross_attention)};
#undef FIELD

void *call_get(const DriverCall *call, CallField field) {
    void *array;
    memcpy(&array, (const char *)call + field.at, sizeof array);
    return array;
}

void call_set(DriverCall *call, CallField field, const void *array) {
    memcpy((char *)call + field.at, &array, sizeof array);
}

int call_output(const char *name) {
    for (int f = 0; f < CALL_OUTPUTS; f++)
        if (strcmp(call_outputs[f].name, name) == 0) return f;
    bug("the output `%s` has no array", name);
}

/* Rows that are given at the call have a symbol, which the first dimension of an input names. */
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

static const InputArray *input_of(const Sequence *s, const char *name) {
    for (int i = 0; i < s->n_inputs; i++)
        if (strcmp(s->inputs[i].name, name) == 0) return &s->inputs[i];
    return NULL;
}

/* An id that 32 bits cannot hold is outside every table; it stays outside. */
static void narrow(const int64_t *ids, int64_t count, int32_t *out) {
    for (int64_t i = 0; i < count; i++) out[i] = ids[i] < INT32_MIN || ids[i] > INT32_MAX ? -1 : (int32_t)ids[i];
}

/* The arrays of all sequences one behind the other; NULL where the input is absent. */
static const void *join(Arena *arena, const Batch *batch, const GraphInput *input, const Tensor *t, size_t *bytes) {
    size_t item = t->dtype == DTYPE_I64 ? sizeof(int32_t) : dtype_bytes(t->dtype);
    *bytes = 0;
    if (!input_of(&batch->sequences[0], input->name)) return NULL;
    for (int64_t b = 0; b < batch->count; b++) *bytes += (size_t)sequence_items(&batch->sequences[b], t) * item;
    uint8_t *out = arena_alloc(arena, *bytes), *to = out;
    for (int64_t b = 0; b < batch->count; b++) {
        const InputArray *a = input_of(&batch->sequences[b], input->name);
        int64_t count = sequence_items(&batch->sequences[b], t);
        if (t->dtype == DTYPE_I64) narrow(a->data, count, (int32_t *)(void *)to);
        else memcpy(to, a->data, (size_t)count * item);
        to += (size_t)count * item;
    }
    return out;
}

static void bind_inputs(Arena *arena, Engine *engine, const Batch *batch) {
    const Graph *g = engine->plan->graph;
    for (int f = 0; f < CALL_INPUTS; f++) {
        call_set(&engine->call, call_inputs[f], NULL);
        engine->input_bytes[f] = 0;
        for (int i = 0; i < g->n_inputs; i++)
            if (strcmp(g->inputs[i].name, call_inputs[f].name) == 0)
                call_set(&engine->call, call_inputs[f],
                         join(arena, batch, &g->inputs[i], &g->tensors[g->inputs[i].tensor], &engine->input_bytes[f]));
    }
}

/* Floats of a sequence in an output's array: a map holds the exported heads alone. */
static int64_t output_items(const Sequence *s, const Graph *g, const GraphOutput *out) {
    const Tensor *t = &g->tensors[out->tensor];
    if (out->layer < 0) return sequence_items(s, t);
    return out->n_heads * sequence_extent(s, t->dims[1]) * sequence_extent(s, t->dims[2]);
}

void engine_bind(Arena *arena, Engine *engine, const Batch *batch) {
    DriverCall *call = &engine->call;
    const Graph *g = engine->plan->graph;
    int32_t *lengths = arena_array(arena, (size_t)batch->count, sizeof *lengths),
            *source_lengths = arena_array(arena, (size_t)batch->count, sizeof *source_lengths);
    int64_t items[CALL_OUTPUTS] = {0};
    for (int64_t b = 0; b < batch->count; b++) {
        const Sequence *s = &batch->sequences[b];
        lengths[b] = (int32_t)engine_rows(engine, s);
        source_lengths[b] = (int32_t)engine_source_rows(engine, s);
        for (int o = 0; o < g->n_outputs; o++)
            items[call_output(g->outputs[o].name)] += output_items(s, g, &g->outputs[o]);
    }
    call->batch = (int)batch->count;
    call->lengths = lengths;
    call->source_lengths = source_lengths;
    bind_inputs(arena, engine, batch);
    for (int f = 0; f < CALL_OUTPUTS; f++)
        call_set(call, call_outputs[f],
                 items[f] ? arena_array(arena, (size_t)items[f], sizeof(float)) : NULL);
}

void engine_forward(Engine *engine) {
    int status = engine->forward(&engine->call);
    if (status) fail("the compiled model says: %s", engine->text(status));
}

/* A sequence's numbers of one output, in the graph's form: heads that are not exported are zero. */
static OutputArray take_output(Arena *arena, const Sequence *s, const Graph *g, const GraphOutput *out,
                               const float *from) {
    const Tensor *t = &g->tensors[out->tensor];
    OutputArray array = {.name = out->name, .layer = out->layer, .shape = {t->rank, {0}}};
    for (int d = 0; d < t->rank; d++) array.shape.dims[d] = sequence_extent(s, t->dims[d]);
    double *data = arena_array(arena, (size_t)sequence_items(s, t), sizeof *data);
    array.data = data;
    int64_t heads = out->layer < 0 ? 1 : out->n_heads, each = output_items(s, g, out) / heads;
    for (int64_t h = 0; h < heads; h++)
        for (int64_t i = 0; i < each; i++)
            data[(out->layer < 0 ? 0 : out->heads[h]) * each + i] = from[h * each + i];
    return array;
}

void engine_run(Arena *arena, Engine *engine, Batch *batch) {
    engine_bind(arena, engine, batch);
    engine_forward(engine);
    const Graph *g = engine->plan->graph;
    int64_t at[CALL_OUTPUTS] = {0};
    for (int64_t b = 0; b < batch->count; b++) {
        Sequence *s = &batch->sequences[b];
        s->outputs = arena_array(arena, (size_t)g->n_outputs, sizeof *s->outputs);
        for (int o = 0; o < g->n_outputs; o++) {
            int f = call_output(g->outputs[o].name);
            const float *data = call_get(&engine->call, call_outputs[f]);
            s->outputs[o] = take_output(arena, s, g, &g->outputs[o], data + at[f]);
            at[f] += output_items(s, g, &g->outputs[o]);
        }
    }
}
