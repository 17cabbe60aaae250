/* remote.c: calls generated C that another program runs. */
#include "remote.h"

#include "cc.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct Remote {
    Arena *arena;
    const char *command;
    pid_t child;
    FILE *to, *from;
    void (*on_step)(void *watcher, int step); /* of the last remote_init */
    void *watcher;
    const DriverCall *running; /* the call whose steps are watched, and the bytes of its outputs */
    const size_t *output_bytes;
};

/* Returns the child's status in the form of waitpid. */
static int await_end(Remote *remote) {
    int status = 0;
    if (remote->child > 0) child_wait(remote->child, &status, 0);
    remote->child = 0;
    return status;
}

static void remote_end(void *with) {
    Remote *remote = with;
    if (remote->to) fclose(remote->to); /* the program ends at the end of its input */
    if (remote->from) fclose(remote->from);
    await_end(remote);
}

static _Noreturn void ended(Remote *remote) {
    fclose(remote->to);
    remote->to = NULL;
    int status = await_end(remote);
    if (WIFSIGNALED(status)) fail("`%s`: the program was ended by signal %d", remote->command, WTERMSIG(status));
    fail("`%s`: the program ended with status %d instead of an answer", remote->command, WEXITSTATUS(status));
}

/* ---------------------------------------------------------------- the streams */

static void send(Remote *remote, const void *data, size_t bytes) {
    if (fwrite(data, 1, bytes, remote->to) != bytes) ended(remote);
}

static void receive(Remote *remote, void *data, size_t bytes) {
    if (fflush(remote->to) || fread(data, 1, bytes, remote->from) != bytes) ended(remote);
}

static void send_number(Remote *remote, uint64_t number) {
    uint8_t b[8];
    for (int i = 0; i < 8; i++) b[i] = (uint8_t)(number >> 8 * i);
    send(remote, b, sizeof b);
}

static uint64_t receive_number(Remote *remote) {
    uint8_t b[8];
    uint64_t number = 0;
    receive(remote, b, sizeof b);
    for (int i = 7; i >= 0; i--) number = number << 8 | b[i];
    return number;
}

static const char *receive_text(Remote *remote) {
    enum { MOST = 1000 };
    uint64_t length = receive_number(remote);
    if (length > MOST) fail("`%s` gives no answer of this kind", remote->command);
    char *text = arena_alloc(remote->arena, length + 1);
    receive(remote, text, length);
    text[length] = '\0';
    return text;
}

static void send_array(Remote *remote, const void *data, size_t bytes) {
    send_number(remote, data ? bytes : UINT64_MAX);
    if (data) send(remote, data, bytes);
}

/* ---------------------------------------------------------------- the program */

Remote *remote_new(Arena *arena, const char *command, const char *program) {
    Remote *remote = arena_alloc(arena, sizeof *remote);
    *remote = (Remote){.arena = arena, .command = command};
    const char *const arguments[] = {program, NULL}, *const *words = cc_words(arena, command, arguments);
    int in[2], out[2];
    if (pipe(in) || pipe(out)) fail_system(errno, "`%s` cannot be run", command);
    signal(SIGPIPE, SIG_IGN); /* an early end of the program shows as a missing answer */
    fflush(NULL);
    remote->child = fork();
    if (remote->child < 0) fail_system(errno, "`%s` cannot be run", command);
    if (remote->child == 0) {
        signal(SIGPIPE, SIG_DFL);
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        for (int i = 0; i < 2; i++) close(in[i]), close(out[i]);
        execvp(words[0], (char *const *)(uintptr_t)words);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    remote->to = fdopen(in[1], "wb");
    remote->from = fdopen(out[0], "rb");
    if (!remote->to || !remote->from) out_of_memory();
    arena_on_free(arena, remote_end, remote);
    if (receive_number(remote) != UINT64_C(0x6576726573637474)) fail("`%s` runs no program of this kind", command);
    return remote;
}

/* ---------------------------------------------------------------- calls */

int remote_init(Remote *remote, DriverCall *call, bool with_weights) {
    send(remote, "i", 1);
    size_t length = call->target ? strlen(call->target) : 0;
    send_number(remote, length);
    send(remote, call->target, length);
    send_number(remote, (uint64_t)call->threads);
    send_number(remote, call->on_step != NULL);
    remote->on_step = call->on_step;
    remote->watcher = call->watcher;
    send_number(remote, with_weights ? call->weights_bytes : 0);
    if (with_weights) send(remote, call->weights, call->weights_bytes);
    int status = (int)receive_number(remote);
    call->picked = receive_text(remote);
    return status;
}

static void no_damage(Remote *remote, uint64_t damage) {
    if (!damage) return;
    const char *what = damage <= OUT_COUNT       ? output_name((OutputRole)(damage - 1))
                       : damage == OUT_COUNT + 1 ? "a state or source"
                                                 : "the workspace";
    fail("`%s`: a write beside %s", remote->command, what);
}

/* Before each step, the program sends the number of the step. It then answers requests for memory (remote_see) until it
 * receives 0. */
static void watch_steps(Remote *remote, const DriverCall *call, const size_t *output_bytes, int n_steps) {
    if (!remote->on_step) return;
    remote->running = call;
    remote->output_bytes = output_bytes;
    for (uint64_t step; (step = receive_number(remote)) != UINT64_MAX; send_number(remote, 0)) {
        if (step > (uint64_t)n_steps) fail("`%s` gives no answer of this kind", remote->command);
        remote->on_step(remote->watcher, (int)step);
    }
    remote->running = NULL;
}

/* Numbers of places: the outputs by their roles, from 1 on, and then the workspace. */
void remote_see(Remote *remote, void *at, size_t bytes) {
    const DriverCall *call = remote->running;
    const uint8_t *place = call ? call->workspace : NULL;
    uint64_t number = OUT_COUNT + 1;
    for (int f = 0; call && f < OUT_COUNT; f++) {
        const uint8_t *output = (const uint8_t *)call->outputs[f];
        if (output && (uintptr_t)at - (uintptr_t)output < remote->output_bytes[f])
            place = output, number = (uint64_t)f + 1;
    }
    if (!place) bug("no step of `%s` is watched", remote->command);
    send_number(remote, number);
    send_number(remote, (uintptr_t)at - (uintptr_t)place);
    send_number(remote, bytes);
    receive(remote, at, bytes);
}

int remote_call(Remote *remote, EntryKind entry, const DriverCall *call, const size_t *input_bytes,
                const size_t *output_bytes, int n_steps) {
    size_t batch = (size_t)call->batch;
    send(remote, entry_name(entry), 1); /* the program knows an entry by its first letter */
    send_number(remote, batch);
    send_array(remote, call->lengths, batch * sizeof *call->lengths);
    send_array(remote, call->source_lengths, batch * sizeof *call->source_lengths);
    for (int f = 0; f < MOST_INPUTS; f++) send_array(remote, call->inputs[f], input_bytes[f]);
    for (int f = 0; f < OUT_COUNT; f++) send_number(remote, call->outputs[f] ? output_bytes[f] : UINT64_MAX);
    void *const *blocks = entry == ENTRY_DECODE ? call->states : entry == ENTRY_ENCODE ? call->sources : NULL;
    send_number(remote, blocks ? batch : 0);
    for (size_t b = 0; blocks && b < batch; b++) send_number(remote, (uintptr_t)blocks[b]);
    watch_steps(remote, call, output_bytes, n_steps);
    int status = (int)receive_number(remote);
    no_damage(remote, receive_number(remote));
    for (int f = 0; f < OUT_COUNT; f++)
        if (call->outputs[f]) receive(remote, call->outputs[f], output_bytes[f]);
    return status;
}

int remote_state(Remote *remote, char how, const void *state, uint64_t with) {
    send(remote, &how, 1);
    send_number(remote, (uintptr_t)state);
    send_number(remote, with);
    return (int)receive_number(remote);
}

const char *remote_text(Remote *remote, int status) {
    send(remote, "t", 1);
    send_number(remote, (uint64_t)status);
    return receive_text(remote);
}
