/* runtime_files.c: which files of the runtime a program needs. */
#include "project.h"

#include <string.h>
#include <strings.h>

static const char *const runtime_stems[] = {"attn_runtime", "attn_generate", "attn_rules", "attn_sample",
                                            "attn_mel",     "attn_transcribe", NULL};

const char *const tokenizer_files[] = {"added.c", "attn_tokenizer.h", "attn_tokenizer_internal.h",
    "attn_tokenizer_json.h", "bpe.c", "buffer.c", "build.c", "decode.c", "encode.c", "files.c", "gguf.c",
    "gguf_words.c", "heap.c", "json.c", "json_model.c", "json_pieces.c", "json_values.c", "models.c", "normalize.c",
    "pair.c", "pattern.c", "pieces.c", "split.c", "unicode.c", "vocabulary.c", NULL};

const char *const *runtime_files(Arena *arena, RuntimePart last) {
    static const int counts[] = {[RUNTIME_THREADS] = 1, [RUNTIME_SEARCH] = 4, [RUNTIME_SOUND] = 6};
    const char **files = arena_array(arena, (size_t)(2 * counts[last]) + 1, sizeof *files);
    for (int i = 0; i < counts[last]; i++) {
        files[2 * i] = arena_printf(arena, "%s.c", runtime_stems[i]);
        files[2 * i + 1] = arena_printf(arena, "%s.h", runtime_stems[i]);
    }
    return files;
}

const char *runtime_namesake(const char *model) {
    for (const char *const *stem = runtime_stems; *stem; stem++)
        if (strcasecmp(*stem, model) == 0) return *stem;
    for (const char *const *file = tokenizer_files; *file; file++) { /* a program finds the model's header instead */
        const size_t size = strlen(*file) - 2;
        if (text_ends(*file, ".h") && strncasecmp(*file, model, size) == 0 && !model[size]) return *file;
    }
    return NULL;
}

bool reads_sound(const Model *model) { return model->encoder && model->encoder->mel_bins; }

bool transcribes(const Model *model) {
    return reads_sound(model) && model->decoder && model->start >= 0 && model->n_end > 0;
}
