/* program.c: what the emitted C of one spec promises, tried in a program around it. config.h, which run.py writes, says
 * which spec that is and what its inputs and outputs are.
 *
 * `program TARGET WEIGHTS bits ROUNDS SEED`: the same bits for any number of threads, whoever runs their shares, in any
 * batch and by any cut into calls; then as `hash`. `program TARGET WEIGHTS hash`: prints a hash of all outputs.
 * `program TARGET WEIGHTS refuse [all]`: damaged weights are refused. Status 77: this machine cannot run the target. */
#define _POSIX_C_SOURCE 200809L
#include "program.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>

const char *target;
void *weights;

void failed(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    putchar('\n');
    va_end(args);
    exit(1);
}

static uint64_t random_state;

uint64_t random_below(uint64_t n) { /* splitmix64 */
    uint64_t z = (random_state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % n;
}

/* Aligned, and as long as asked for, so that a sanitizer or valgrind sees its end; full of NaN. */
void *block(size_t bytes) {
    void *memory = NULL;
    if (posix_memalign(&memory, 64, bytes ? bytes : 1)) failed("out of memory");
    return memset(memory, 0xff, bytes);
}

/* ---------------------------------------------------------------- threads */

/* The shares of a step in a random order, taken by threads that live for this step alone, and by the caller. */
typedef struct Scramble {
    void (*task)(void *with, int index);
    void *with;
    int order[MOST_THREADS], count;
    atomic_int next;
} Scramble;

static void *scrambled_part(void *argument) {
    Scramble *s = argument;
    for (int i; (i = atomic_fetch_add(&s->next, 1)) < s->count;) s->task(s->with, s->order[i]);
    return NULL;
}

static void scrambled(void *pool, int count, void (*task)(void *with, int index), void *with) {
    Scramble s = {.task = task, .with = with, .count = count};
    pthread_t threads[MOST_THREADS];
    int n = (int)random_below(3), *shared_steps = pool;
    if (count > MOST_THREADS) failed("%d shares of a step for at most %d threads", count, MOST_THREADS);
    ++*shared_steps;
    for (int i = 0; i < count; i++) {
        int k = (int)random_below((uint64_t)i + 1);
        s.order[i] = s.order[k];
        s.order[k] = i;
    }
    atomic_init(&s.next, 0);
    for (int i = 0; i < n; i++)
        if (pthread_create(&threads[i], NULL, scrambled_part, &s)) failed("no thread");
    scrambled_part(&s);
    for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
}

static attn_pool *pools[MOST_POOLS];
static int shared_steps;

void make_pools(void) {
    static const int sizes[MOST_POOLS] = {1, 2, 3, 5, 8};
    for (int i = 0; i < MOST_POOLS; i++)
        if (!(pools[i] = attn_pool_new(sizes[i]))) failed("no pool of %d threads", sizes[i]);
}

/* A ctx of so many threads. `way`: a pool by its number, or MOST_POOLS for scrambled(). */
void make_ctx(M(ctx) *ctx, int threads, int way) {
    M(options) options = {0};
    options.size = sizeof options;
    options.target = target;
    options.threads = threads;
    options.least_work = 1; /* each step is shared, however small */
    options.verify = 1;
    options.parallel_for = way == MOST_POOLS ? scrambled : attn_pool_run;
    options.pool = way == MOST_POOLS ? (void *)&shared_steps : (void *)pools[way];
    int status = M(init)(ctx, weights, U(WEIGHTS_BYTES), &options);
    if (status == U(NO_TARGET)) exit(77);
    if (status) failed("init: %s", M(status_text)(status));
}

/* ---------------------------------------------------------------- sequences */

enum { SEQUENCES = 7, MOST_BATCH = 12 };

typedef struct Sequence {
    int rows, source;
    void *inputs[MOST_FIELDS];
    float *outputs[MOST_FIELDS]; /* of a call with this sequence alone, in one thread */
} Sequence;

static Sequence sequences[SEQUENCES];

/* Numbers of one sequence in a field. */
static size_t size_of(const Field *f, int rows, int source) {
    size_t n = (size_t)rows, m = (size_t)source, width = (size_t)f->width;
    switch (f->kind) {
    case ROWS: return n * width;
    case SOURCE: return m * width;
    case MAPS_SELF: return n * n * width;
    case MAPS_SOURCE: return n * m * width;
    default: return width;
    }
}

static void fill(const Field *f, void *data, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (f->ids) ((int32_t *)data)[i] = (int32_t)random_below((uint64_t)f->ids);
        else ((float *)data)[i] = (float)((double)random_below(1 << 20) / (1 << 19) - 1);
    }
}

static int some_rows(int most, int exact) { return exact ? most : 1 + (int)random_below((uint64_t)most); }

static void make_sequences(void) {
    for (int s = 0; s < SEQUENCES; s++) {
        Sequence *q = &sequences[s];
        q->rows = s ? some_rows(MOST_ROWS, EXACT_ROWS) : MOST_ROWS;
        q->source = MOST_SOURCE ? s == 1 ? 1 : some_rows(MOST_SOURCE, EXACT_SOURCE) : 0;
        if (EXACT_SOURCE) q->source = MOST_SOURCE;
        for (int f = 0; f < N_INPUTS; f++) {
            size_t count = size_of(&INPUTS[f], q->rows, q->source);
            q->inputs[f] = block(4 * count);
            fill(&INPUTS[f], q->inputs[f], count);
        }
    }
}

/* The sequences of `which` in one call: each output in memory of its own. */
static void run(const M(ctx) *ctx, const int *which, int batch, int threads, float **outputs) {
    M(input) input = {0};
    M(output) output = {0};
    int32_t lengths[MOST_BATCH], source_lengths[MOST_BATCH];
    void *arrays[MOST_FIELDS];
    for (int b = 0; b < batch; b++) {
        lengths[b] = sequences[which[b]].rows;
        source_lengths[b] = sequences[which[b]].source;
    }
    input.size = sizeof input;
    input.batch = batch;
    input.lengths = lengths;
#ifdef SOURCE_LENGTHS
    input.SOURCE_LENGTHS = source_lengths;
#endif
    for (int f = 0; f < N_INPUTS + N_OUTPUTS; f++) {
        bool in = f < N_INPUTS;
        const Field *field = in ? &INPUTS[f] : &OUTPUTS[f - N_INPUTS];
        size_t total = 0;
        for (int b = 0; b < batch; b++) total += size_of(field, lengths[b], source_lengths[b]);
        char *array = arrays[f] = block(4 * total);
        for (int b = 0; b < batch && in; b++) {
            size_t bytes = 4 * size_of(field, lengths[b], source_lengths[b]);
            memcpy(array, sequences[which[b]].inputs[f], bytes);
            array += bytes;
        }
        memcpy((char *)(in ? (void *)&input : (void *)&output) + field->offset, &arrays[f], sizeof arrays[f]);
        if (!in) outputs[f - N_INPUTS] = arrays[f];
    }
    output.size = sizeof output;
    size_t bytes = U(WORKSPACE_BYTES)(threads);
    void *workspace = block(bytes);
    int status = M(forward)(ctx, &input, &output, workspace, bytes);
    if (status) failed("forward: %s", M(status_text)(status));
    free(workspace);
    for (int f = 0; f < N_INPUTS; f++) free(arrays[f]);
}

static void run_alone(const M(ctx) *ctx, int s, float **outputs) { run(ctx, &s, 1, 1, outputs); }

/* Any sequences, some twice, in any order, in any number of threads of whatever kind. */
static void try_batch(void) {
    M(ctx) ctx;
    int which[MOST_BATCH], batch = ONE_SEQUENCE ? 1 : 1 + (int)random_below(MOST_BATCH);
    int threads = 1 + (int)random_below(MOST_THREADS), way = (int)random_below(MOST_POOLS + 1);
    float *outputs[MOST_FIELDS];
    make_ctx(&ctx, threads, way);
    for (int b = 0; b < batch; b++) which[b] = (int)random_below(SEQUENCES);
    run(&ctx, which, batch, threads, outputs);
    for (int f = 0; f < N_OUTPUTS; f++) {
        const float *got = outputs[f];
        for (int b = 0; b < batch; b++) {
            const Sequence *q = &sequences[which[b]];
            size_t count = size_of(&OUTPUTS[f], q->rows, q->source);
            if (memcmp(got, q->outputs[f], 4 * count) != 0)
                failed("%s of sequence %d of %d, of %d rows and %d of a source: other bits than alone (%d threads%s)",
                       OUTPUTS[f].name, b, batch, q->rows, q->source, threads, way < MOST_POOLS ? "" : ", scrambled");
            got += count;
        }
        free(outputs[f]);
    }
}

static void hash_outputs(uint64_t *sum, float *const *outputs, int s) {
    for (int f = 0; f < N_OUTPUTS; f++)
        add_hash(sum, outputs[f], size_of(&OUTPUTS[f], sequences[s].rows, sequences[s].source));
}

void add_hash(uint64_t *sum, const float *numbers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, numbers + i, sizeof bits);
        if ((bits & 0x7fffffff) > 0x7f800000) failed("an output is NaN, or was not written");
        *sum = (*sum ^ bits) * UINT64_C(1099511628211);
    }
}

/* ---------------------------------------------------------------- main */

static void read_weights(const char *path) {
    FILE *file = fopen(path, "rb");
    weights = block(U(WEIGHTS_BYTES));
    if (!file || fread(weights, 1, U(WEIGHTS_BYTES), file) != U(WEIGHTS_BYTES) || fgetc(file) != EOF)
        failed("%s: not of the size that the header says", path);
    fclose(file);
}

int main(int argc, char **argv) {
    static M(ctx) plain;
    uint64_t sum = 0, again = 0;
    if (argc < 4) return 2;
    target = argv[1];
    read_weights(argv[2]);
    make_pools();
    make_ctx(&plain, 1, 0);
    if (strcmp(argv[3], "refuse") == 0) return refuse_damaged(argc > 4);
    make_sequences();
    for (int s = 0; s < SEQUENCES; s++) {
        run_alone(&plain, s, sequences[s].outputs);
        hash_outputs(&sum, sequences[s].outputs, s);
    }
    hash_decoded(&plain, &sum);
    if (argc > 5) {
        random_state = strtoull(argv[5], NULL, 10);
        for (int rounds = atoi(argv[4]); rounds > 0; rounds--) {
            try_batch();
            try_decode();
        }
        if (!ONE_SEQUENCE && !shared_steps) failed("no step was shared by threads");
        for (int s = 0; s < SEQUENCES; s++) { /* a second run in this process */
            float *outputs[MOST_FIELDS];
            run_alone(&plain, s, outputs);
            hash_outputs(&again, outputs, s);
            for (int f = 0; f < N_OUTPUTS; f++) free(outputs[f]);
        }
        hash_decoded(&plain, &again);
        if (again != sum) failed("a second run gives other bits");
    }
    printf("%016llx\n", (unsigned long long)sum);
    return 0;
}
