/* fuzz_loader.c: a program loads the .attnw file of loaded.attn, changed as target.h says, and runs. The emitted C
 * takes what attnc takes, and nothing else. Flag 8: in the scalar target. */
#include "target.h"
#include "../../../compiler/emit/emit.h"
#include "../../../runtime/attn_runtime.h"
#include "loaded.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SCALAR = 8 };

static bool attnc_reads(Arena *arena, const Program *program, const char *path, bool verify) {
    FailureTrap trap;
    if (failure_trap(&trap) != 0) return false;
    packed_read(arena, program, path, verify);
    failure_release(&trap);
    return true;
}

/* Numbers of any size go through; only where they come from and go to is watched. */
static void run_model(const loaded_ctx *ctx) {
    static _Alignas(LOADED_ALIGNMENT) unsigned char workspace[LOADED_WORKSPACE_BYTES(1)];
    static const int32_t lengths[] = {3, 4}, tokens[] = {0, 4, 2, 1, 1, 3, 0}, segments[] = {0, 1, 1, 0, 0, 0, 1};
    float logits[7 * LOADED_LOGITS_WIDTH];
    const loaded_input input = {.size = sizeof input, .batch = 2, .lengths = lengths, .tokens = tokens,
                                .segments = segments};
    loaded_output output = {.size = sizeof output, .logits = logits};
    if (loaded_forward(ctx, &input, &output, workspace, sizeof workspace)) broken("a good model refuses to run");
}

typedef int Open(const char *path, attn_file *out);

static void check_file(Open *open, const char *path, bool wanted, bool verify, bool scalar) {
    attn_file file;
    loaded_ctx ctx;
    const loaded_options options = {.size = sizeof options, .target = scalar ? "scalar" : NULL, .verify = verify};
    if (open(path, &file)) {
        if (wanted || file.data) broken("the runtime does not open what attnc reads");
        return;
    }
    bool taken = loaded_init(&ctx, file.data, file.size, &options) == LOADED_OK;
    if (taken != wanted) broken(taken ? "init takes what attnc refuses" : "init refuses what attnc takes");
    if (taken) run_model(&ctx);
    attn_close_file(&file);
}

static void read_input(Arena *arena, const uint8_t *data, size_t size) {
    uint8_t flags = size ? data[0] : 0;
    size_t bytes;
    const Program *program = program_of(arena, embedded_text("loaded.attn"));
    const uint8_t *file = changed_weights(arena, program, flags, data + (size > 0), size - (size > 0), &bytes);
    const char *path = memory_file(arena, "loaded.attnw", file, bytes);
    bool wanted = attnc_reads(arena, program, path, flags & VERIFY);
    check_file(attn_map_file, path, wanted, flags & VERIFY, flags & SCALAR);
    check_file(attn_load_file, path, wanted, flags & VERIFY, flags & SCALAR);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return run_target(read_input, data, size); }
