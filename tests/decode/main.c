/* main.c: `test TARGET FOLDER`: the tests, as TAP. `test TARGET FOLDER together`: those of several threads alone.
 * `test TARGET FOLDER hashes`: numbers that must not depend on compiler or optimization. FOLDER holds the weights.
 * Status 77: this machine cannot run the target. */
#define _POSIX_C_SOURCE 200809L
#include "tests.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Setup setups[MODELS];
const char *target;
static int n_failed;
static char notes[4096];

void failed(const char *file, int line, const char *format, ...) {
    const char *slash = strrchr(file, '/');
    size_t used = strlen(notes);
    va_list args;
    n_failed++;
    if (used + 400 > sizeof notes) return;
    used += (size_t)snprintf(notes + used, sizeof notes - used, "# %s:%d: ", slash ? slash + 1 : file, line);
    va_start(args, format);
    vsnprintf(notes + used, 300, format, args);
    va_end(args);
    strcat(notes, "\n");
}

int verdict(const char *name) {
    static int all;
    printf("%s %s\n%s", n_failed ? "not ok" : "ok", name, notes);
    fflush(stdout);
    all += n_failed;
    n_failed = 0;
    notes[0] = 0;
    return all;
}

void *block(size_t bytes) {
    void *memory = NULL;
    if (posix_memalign(&memory, 64, bytes) != 0) abort();
    memset(memory, 0xff, bytes);
    return memory;
}

void *block_like(const void *memory, size_t bytes) {
    void *copy = block(bytes);
    memcpy(copy, memory, bytes);
    return copy;
}

void *new_state(const Setup *s) {
    void *state = block(s->model->state_bytes);
    int status = s->model->state_init(state, s->model->state_bytes, s->sources[0]);
    CHECK(status == OK, "%s: state_init: %s", s->model->name, s->model->text(status));
    return state;
}

Call new_call(const Setup *s, void *const *states, int batch, const int32_t *tokens) {
    Call call = {0};
    call.ctx = s->ctx;
    call.states = states;
    call.batch = batch;
    call.tokens = tokens;
    call.workspace = s->workspace;
    call.bytes = s->model->workspace(1);
    return call;
}

int append(const Setup *s, void *state, const int32_t *tokens, int rows, float *hidden, float *logits) {
    const int32_t length = rows;
    Call call = new_call(s, &state, 1, tokens);
    call.lengths = &length;
    call.hidden = hidden;
    call.logits = logits;
    return s->model->decode(&call);
}

/* ---------------------------------------------------------------- setups */

static void *read_file(const char *folder, const char *name, size_t bytes) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.attnw", folder, name);
    FILE *file = fopen(path, "rb");
    unsigned char *memory = block(bytes);
    if (!file || fread(memory, 1, bytes, file) != bytes || fgetc(file) != EOF) {
        fprintf(stderr, "%s: not of the size that the header says\n", path);
        exit(1);
    }
    fclose(file);
    return memory;
}

static void encode_sources(Setup *s) {
    const Model *m = s->model;
    const int32_t lengths[] = {17, m->source_seq};
    void *workspace = block(m->encode_workspace(1));
    for (int i = 0; i < 2; i++) s->sources[i] = block(m->source_bytes);
    Call call = new_call(s, s->sources, 2, s->others);
    call.lengths = lengths;
    call.workspace = workspace;
    call.bytes = m->encode_workspace(1);
    int status = m->encode(&call);
    CHECK(status == OK, "%s: encode: %s", m->name, m->text(status));
    free(workspace);
}

static void set_up(Setup *s, const Model *m, const char *folder) {
    uint32_t random = 12345;
    s->model = m;
    s->weights = read_file(folder, m->name, m->weights_bytes);
    s->ctx = block(m->ctx_bytes);
    int status = m->init(s->ctx, s->weights, m->weights_bytes, target, 1, NULL, NULL, 0, 0, 0);
    if (status == NO_TARGET) exit(77);
    CHECK(status == OK, "%s: init: %s", m->name, m->text(status));
    s->workspace = block(m->workspace(1));
    for (int i = 0; i < 2 * MOST_SEQ; i++) {
        random = random * 1664525u + 1013904223u;
        (i % 2 ? s->tokens : s->others)[i / 2] = (int32_t)((random >> 8) % (uint32_t)m->vocab);
    }
    if (m->encode) encode_sources(s);
}

static void tear_down(Setup *s) {
    void *all[] = {s->weights, s->ctx, s->workspace, s->sources[0], s->sources[1]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

/* ---------------------------------------------------------------- numbers for run.py */

static void hash(uint64_t *sum, const float *numbers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, numbers + i, sizeof bits);
        *sum = (*sum ^ bits) * UINT64_C(1099511628211);
    }
}

/* A prefill and 40 steps, everything that they give. */
static void print_hash(const Setup *s) {
    enum { STEPS = 40 };
    const Model *m = s->model;
    const int32_t length = m->seq - STEPS < 150 ? m->seq - STEPS : 150, prefix = length / 3;
    size_t pairs = (size_t)m->seq * (size_t)(m->seq > m->source_seq ? m->seq : m->source_seq);
    float *hidden = block((size_t)m->seq * (size_t)m->width * sizeof(float)),
          *logits = block((size_t)m->vocab * sizeof(float)),
          *self = block(2 * pairs * sizeof(float)), *cross = block(2 * pairs * sizeof(float));
    void *state = new_state(s);
    uint64_t sum = UINT64_C(14695981039346656037);
    Call call = new_call(s, &state, 1, s->tokens);
    call.lengths = &length;
    call.prefix_lengths = &prefix;
    call.hidden = hidden;
    call.logits = logits;
    call.attention = m->self_maps ? self : NULL;
    call.cross_attention = m->cross_maps ? cross : NULL;
    for (int step = 0; step <= STEPS; step++) {
        size_t rows = step ? 1 : (size_t)length;
        int status = m->decode(&call);
        CHECK(status == OK, "%s: %s", m->name, m->text(status));
        hash(&sum, hidden, rows * (size_t)m->width);
        hash(&sum, logits, (size_t)m->vocab);
        hash(&sum, self, (size_t)m->self_maps * rows * (size_t)m->rows(state));
        hash(&sum, cross, (size_t)m->cross_maps * rows * 17);
        call.lengths = NULL;
        call.tokens = s->tokens + length + step;
    }
    printf("%s %016llx\n", m->name, (unsigned long long)sum);
    free(hidden), free(logits), free(self), free(cross), free(state);
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    target = argv[1];
    for (int i = 0; i < MODELS; i++) set_up(&setups[i], &models[i], argv[2]);
    const char *what = argc > 3 ? argv[3] : "";
    if (strcmp(what, "hashes") == 0) {
        for (int i = 0; i < MODELS; i++) print_hash(&setups[i]);
        if (n_failed) fputs(notes, stderr);
        return n_failed != 0;
    }
    int bad = verdict("models made ready");
    if (!*what) {
        test_statuses();
        test_ways();
    }
    test_together();
    bad = verdict("the end");
    for (int i = 0; i < MODELS; i++) tear_down(&setups[i]);
    return bad != 0;
}
