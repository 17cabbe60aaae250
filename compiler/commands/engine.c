/* engine.c: generated C, compiled and loaded into this process. */
#include "engine.h"

#include "../../runtime/attn_runtime.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
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
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return -1;
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

const char *find_cc(Arena *arena, const char *wanted) {
    if (!wanted) wanted = getenv("CC");
    if (wanted && *wanted) {
        if (!in_path(arena, wanted)) fail("the C compiler `%s` is not there", wanted);
        return wanted;
    }
    static const char *const usual[] = {"clang", "gcc", "cc"};
    for (int i = 0; i < 3; i++)
        if (in_path(arena, usual[i])) return usual[i];
    fail("no C compiler: install clang or gcc, or name one with --cc");
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
static void free_memory(void *memory) { attn_free(memory); }

void *engine_symbol(const Engine *engine, const char *name) {
    void *found = dlsym(engine->library, name);
    if (!found) bug("the compiled model has no `%s`", name);
    return found;
}

static void *load_library(Arena *arena, Engine *engine, Folder *folder, const char *cc) {
    const char *model = engine->module->model->name;
    const char *c = folder_file(arena, folder, arena_printf(arena, "%s.c", model)),
               *h = folder_file(arena, folder, arena_printf(arena, "%s.h", model));
    const char *driver = folder_file(arena, folder, "driver.c"), *library = folder_file(arena, folder, "model.so");
    write_text(arena, c, engine->emitted.c);
    write_text(arena, h, engine->emitted.h);
    write_text(arena, driver, engine->emitted.driver);
    const char *const argv[] = {cc, "-std=c11", "-O2", "-w", "-shared", "-fPIC", "-o", library, c, driver, NULL};
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
    static const char *const all[] = {"scalar", "avx2", "avx512"};
    const char *const one[] = {target};
    EmitOptions emit_options = {.targets = target ? one : all,
                                .n_targets = target ? 1 : 3,
                                .command = "run",
                                .layout_hash = packed_layout_hash(program)};
    if (target && !target_known(target))
        fail_status(EXIT_CANNOT, "the target `%s` cannot be emitted; scalar, avx2 and avx512 can", target);
    engine->emitted = emit(arena, program, &emit_options);
    engine->given_c = options->emitted_c != NULL;
    if (engine->given_c) engine->emitted.c = options->emitted_c;
    Folder *folder = folder_new(arena);
    const char *packed = folder_file(arena, folder, "model.attnw");
    engine->library = load_library(arena, engine, folder, find_cc(arena, options->cc));
    packed_write(arena, packed, program, weights);
    MappedFile file = file_map(arena, packed);
    DriverCall *call = &engine->call;
    call->weights = file.data;
    call->weights_bytes = file.size;
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

static const InputArray *input_of(const Sequence *s, const char *name) {
    for (int i = 0; i < s->n_inputs; i++)
        if (strcmp(s->inputs[i].name, name) == 0) return &s->inputs[i];
    return NULL;
}

static int64_t sequence_rows(const Engine *engine, const Sequence *s) {
    return engine->plan->seq.exact ? engine->plan->seq.n : s->symbols[0];
}

static const int32_t *join_ids(Arena *arena, const Batch *batch, const char *name, int64_t rows) {
    if (!input_of(&batch->sequences[0], name)) return NULL;
    int32_t *out = arena_array(arena, (size_t)rows, sizeof *out), *to = out;
    for (int64_t b = 0; b < batch->count; b++) {
        const InputArray *a = input_of(&batch->sequences[b], name);
        for (int64_t i = 0; i < a->rows; i++) {
            int64_t id = ((const int64_t *)a->data)[i];
            *to++ = id < INT32_MIN || id > INT32_MAX ? -1 : (int32_t)id;
        }
    }
    return out;
}

static const float *join_rows(Arena *arena, const Batch *batch, const char *name, int64_t items_a_row) {
    if (!input_of(&batch->sequences[0], name)) return NULL;
    int64_t total = 0;
    for (int64_t b = 0; b < batch->count; b++) total += input_of(&batch->sequences[b], name)->rows;
    float *out = arena_array(arena, (size_t)(total * items_a_row), sizeof *out), *to = out;
    for (int64_t b = 0; b < batch->count; b++) {
        const InputArray *a = input_of(&batch->sequences[b], name);
        memcpy(to, a->data, (size_t)(a->rows * items_a_row) * sizeof *to);
        to += a->rows * items_a_row;
    }
    return out;
}

static int64_t map_heads(const Graph *g) {
    int64_t n = 0;
    for (int o = 0; o < g->n_outputs; o++) n += g->outputs[o].layer >= 0 ? g->outputs[o].n_heads : 0;
    return n;
}

static float **output_field(DriverCall *call, const char *name) {
    if (strcmp(name, "hidden") == 0) return &call->hidden;
    if (strcmp(name, "pooled") == 0) return &call->pooled;
    if (strcmp(name, "logits") == 0) return &call->logits;
    return &call->attention;
}

/* Outputs are a row a sequence behind a pool, a row a row elsewhere. */
static bool is_per_sequence(const Engine *engine, int output) {
    for (int b = 0; b < engine->plan->n_buffers; b++) {
        const Buffer *buffer = &engine->plan->buffers[b];
        if (buffer->kind == BUFFER_OUTPUT && buffer->io == output) return buffer->rows == ROWS_SEQUENCES;
    }
    return false;
}

void engine_bind(Arena *arena, Engine *engine, const Batch *batch) {
    DriverCall *call = &engine->call;
    const Graph *g = engine->module->forward;
    int64_t rows = 0, squares = 0;
    int32_t *lengths = arena_array(arena, (size_t)batch->count, sizeof *lengths);
    for (int64_t b = 0; b < batch->count; b++) {
        int64_t n = sequence_rows(engine, &batch->sequences[b]);
        lengths[b] = (int32_t)n;
        rows += n;
        squares += n * n;
    }
    call->batch = (int)batch->count;
    call->lengths = lengths;
    call->tokens = join_ids(arena, batch, "tokens", rows);
    call->segments = join_ids(arena, batch, "segments", rows);
    call->features = join_rows(arena, batch, "features", engine->module->model->d_model);
    const Stack *stack = engine->module->model->encoder;
    call->pixels = stack ? join_rows(arena, batch, "pixels", stack->image_height * stack->image_width) : NULL;
    for (int o = 0; o < g->n_outputs; o++) {
        const GraphOutput *out = &g->outputs[o];
        int64_t items = out->layer >= 0
                            ? map_heads(g) * squares
                            : (is_per_sequence(engine, o) ? batch->count : rows) * g->tensors[out->tensor].dims[1].n;
        *output_field(call, out->name) = arena_array(arena, (size_t)items, sizeof(float));
    }
}

void engine_forward(Engine *engine) {
    int status = engine->forward(&engine->call);
    if (status) fail("the compiled model says: %s", engine->text(status));
}

static const double *widen(Arena *arena, const float *from, int64_t count) {
    double *out = arena_array(arena, (size_t)count, sizeof *out);
    for (int64_t i = 0; i < count; i++) out[i] = from[i];
    return out;
}

/* A map's heads as the graph has them: those that are not exported stay zero. */
static const double *widen_map(Arena *arena, const GraphOutput *out, const float *from, int64_t heads, int64_t n) {
    double *maps = arena_array(arena, (size_t)(heads * n * n), sizeof *maps);
    for (int64_t h = 0; h < out->n_heads; h++)
        for (int64_t i = 0; i < n * n; i++) maps[out->heads[h] * n * n + i] = from[h * n * n + i];
    return maps;
}

void engine_run(Arena *arena, Engine *engine, Batch *batch) {
    engine_bind(arena, engine, batch);
    engine_forward(engine);
    const Graph *g = engine->module->forward;
    int64_t row = 0, squares = 0, all_maps = map_heads(g);
    for (int64_t b = 0; b < batch->count; b++) {
        Sequence *s = &batch->sequences[b];
        int64_t n = sequence_rows(engine, s), map = 0;
        s->outputs = arena_array(arena, (size_t)g->n_outputs, sizeof *s->outputs);
        for (int o = 0; o < g->n_outputs; o++) {
            const GraphOutput *out = &g->outputs[o];
            const float *data = *output_field(&engine->call, out->name);
            OutputArray *array = &s->outputs[o];
            *array = (OutputArray){.name = out->name, .layer = out->layer};
            if (out->layer >= 0) {
                int64_t heads = g->tensors[out->tensor].dims[0].n;
                array->shape = (Shape){3, {heads, n, n}};
                array->data = widen_map(arena, out, data + squares * all_maps + map * n * n, heads, n);
                map += out->n_heads;
                continue;
            }
            bool single = is_per_sequence(engine, o);
            int64_t columns = g->tensors[out->tensor].dims[1].n, rows = single ? 1 : n;
            array->shape = (Shape){2, {rows, columns}};
            array->data = widen(arena, data + (single ? b : row) * columns, rows * columns);
        }
        row += n;
        squares += n * n;
    }
}
