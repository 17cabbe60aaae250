/* Sound to text with a model of Whisper's shape (Radford et al. 2022, arXiv:2212.04356, sections 2.3 and 4.5): an
 * encoder reads a window of a log-mel spectrogram, and the decoder writes the words of the window and times between
 * them, which say where the next window begins. C11 and C++17; compile attn_transcribe.c, attn_generate.c,
 * attn_rules.c and attn_sample.c, and link libm. */
#ifndef ATTN_TRANSCRIBE_H
#define ATTN_TRANSCRIBE_H

#include "attn_generate.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The statuses that attn_transcribe returns. */
enum {
    ATTN_TRANSCRIBE_OK = 0,
    ATTN_TRANSCRIBE_BAD_ARGUMENT, /* a null pointer, a struct of another size, a count below its minimum */
    ATTN_TRANSCRIBE_BAD_TOKEN,    /* a token of the model or of the options is outside 0..vocab-1 */
    ATTN_TRANSCRIBE_TOO_LONG,     /* the decoder's bound has no room behind the prompt */
    ATTN_TRANSCRIBE_SHORT_MEMORY, /* the memory has fewer bytes than attn_transcribe_bytes */
    ATTN_TRANSCRIBE_MODEL,        /* a callback failed; attn_transcribed.model_status has its status */
    ATTN_TRANSCRIBE_NO_TOKEN,     /* no token of a row can be chosen */
    ATTN_TRANSCRIBE_STOPPED       /* on_segment stopped the work; its segments are valid */
};
const char *attn_transcribe_status_text(int status);

/* The tokens that are no words, as generation_config.json of a model names them. */
typedef struct attn_speech_tokens {
    int32_t start;              /* begins the decoder's text */
    int32_t end;                /* ends it */
    int32_t no_times;           /* behind `start`, it says that no times are wanted; -1: the model has no times. The
                                   tokens behind it in the vocabulary are the times of 0, 1, 2, ... steps */
    int latest_first;           /* the first time of a window is at most that many steps; -1: any */
    const int32_t *languages;   /* [language_count] one of them follows `start`; none for a model of one language */
    int language_count;
    const int32_t *never;       /* [never_count] tokens that are not chosen (suppress_tokens) */
    int never_count;
    const int32_t *never_first; /* [never_first_count] not as the first of a window (begin_suppress_tokens) */
    int never_first_count;
} attn_speech_tokens;

/* A model, with the state of its decoder and one encoded window, which the caller has created. The callbacks return 0
 * or a nonzero status of the model. ATTN_SPEECH_OF defines them for code that attnc generated. */
typedef struct attn_speech {
    size_t size;        /* sizeof(attn_speech) */
    int bins, frames;   /* of a window */
    int step;           /* frames of a step of time, which are those of a row of the encoder: 2 in Whisper */
    attn_model decoder; /* slot 0 alone is used */
    const attn_speech_tokens *tokens;
    void *with;
    int (*open)(void *with, const float *mel); /* encodes a window [bins][frames]; slot 0 becomes its empty state */
    int (*rewind)(void *with);                 /* slot 0 becomes the empty state of the same window again */
} attn_speech;

/* A part of the sound, and its words. */
typedef struct attn_segment {
    double begin, end; /* seconds */
    const int32_t *tokens;
    int count;
} attn_segment;

/* What was measured of a window and of the text that was accepted for it. */
typedef struct attn_heard {
    double begin, end;      /* of the window's sound, in seconds */
    double temperature;     /* of the search that wrote the text */
    double log_probability; /* the mean of the logarithms of the probabilities of the text's tokens, its end included:
                               probabilities among the tokens that the rules leave, at a temperature of 1 */
    double compression;     /* the result of attn_fallback.compression; 0 without it */
    double no_speech;       /* probability of the token before `no_times`, which stands for silence, after `start`
                               alone and without rules; 0 for a model without it */
    int attempts;           /* searches until one was accepted */
    int silent;             /* nonzero: the window counts as silence, and none of its segments is told */
} attn_heard;

/* Which texts are accepted, and which searches follow others (Radford et al. 2022, section 4.5). A window is silence if
 * its no_speech is more than most_no_speech and its log_probability is less than least_log_probability, or that is
 * minus infinity. The text of another window is accepted if its log_probability is not less than least_log_probability
 * and its compression not more than most_compression; otherwise the next temperature follows. The text of the last
 * temperature is accepted in any case. `generate` of Hugging Face transformers 5.24 has the same rules
 * (models/whisper/generation_whisper.py). */
typedef struct attn_fallback {
    const double *temperatures;   /* [temperature_count >= 1] 0 for greedy search, or finite for sampling */
    int temperature_count;
    double least_log_probability; /* -INFINITY accepts any */
    double most_compression;      /* INFINITY accepts any */
    double most_no_speech;        /* from 1 on, no window is silence */
    uint64_t seed;                /* of the samples */
    void *with;
    /* How many times longer a text is than after compression, for a measure of repetitions. The tokens [count] are all
     * that were written: words, times and the end. May be NULL. */
    double (*compression)(void *with, const int32_t *tokens, int count);
    /* Called once for each window, before its segments. May be NULL. */
    void (*on_window)(void *with, const attn_heard *heard);
} attn_fallback;

/* Zero is the default of every field except size, language and task. */
typedef struct attn_transcribe_options {
    size_t size;      /* sizeof(attn_transcribe_options); the size of an older version sets newer fields to 0 */
    int32_t language; /* a token of attn_speech_tokens.languages; -1: the most probable one of the first window */
    int32_t task;     /* the token behind the language, which says whether to translate into English; -1: none */
    int times;        /* nonzero: times are wanted for a sound of one window too; a longer one always has them */
    /* Called with each segment of at least one word, in order. A nonzero result stops the work. */
    int (*on_segment)(void *on_segment_with, const attn_segment *segment);
    void *on_segment_with;
    const attn_fallback *fallback; /* NULL: greedy search alone, whose texts are all accepted */
} attn_transcribe_options;

typedef struct attn_transcribed {
    size_t size;      /* sizeof(attn_transcribed); set by the caller */
    int32_t language; /* the token that followed `start`, or -1 */
    int segments;     /* calls of on_segment */
    int model_status; /* with ATTN_TRANSCRIBE_MODEL, the status that the callback returned; else 0 */
} attn_transcribed;

/* Bytes of memory that attn_transcribe needs; 0 where it would refuse the model, SIZE_MAX beyond the address space. */
size_t attn_transcribe_bytes(const attn_speech *speech);

/* Tells the segments of mel [bins][frames], a spectrogram of any number of frames of 10 ms, as attn_mel makes it. Zeros
 * stand for the frames behind its end; Whisper learned with silence there, so give a sound shorter than a window with
 * silence up to the window's end. `memory` has attn_transcribe_bytes bytes of any alignment.
 *
 * The text of a window is the result of greedy search, or of the searches of options->fallback, which choose none of
 * the tokens `never` and `never_first`.
 * Where times are wanted, a search also follows these rules: a text begins with a time; times stand alone at the
 * beginning and before the end, and in pairs in between, the end of a segment and the beginning of the next one; no
 * time is before an earlier one; and where all times together are more probable than the most probable other token, a
 * time is chosen. The next window begins at the last pair of times, or behind this window if a single time or none ends
 * it. */
int attn_transcribe(const attn_speech *speech, const attn_transcribe_options *options, const float *mel, int frames,
                    attn_transcribed *result, void *memory, size_t bytes);

#ifdef __cplusplus
}
#endif

/* Defines the callbacks for generated code whose encoder reads `input mel`. Behind ATTN_MODEL_OF(NAME), once in a file:
 *
 *     ATTN_SPEECH_OF(NAME);
 *
 * Then, with a source of NAME_SOURCE_BYTES and a state of NAME_STATE_BYTES, which need no init:
 *
 *     NAME_listener listener = {{&ctx, &state, workspace, workspace_bytes, 0}, NAME_STATE_BYTES, &source,
 *                               encode_workspace, encode_bytes};
 *     attn_speech speech = NAME_listener_speech(&listener, &tokens, bins, frames, rows, vocab, bound);
 *
 * The numbers are NAME_MEL_BINS, NAME_MEL_FRAMES, NAME_SOURCE_SEQ, NAME_VOCAB and NAME_SEQ of the header. The listener
 * must outlive the model and serves one attn_transcribe at a time. */
#define ATTN_SPEECH_OF(NAME)                                                                                           \
    typedef struct NAME##_listener {                                                                                   \
        NAME##_generator generator;                                                                                    \
        size_t state_bytes;                                                                                            \
        void *const *sources; /* [1] */                                                                                \
        void *workspace;      /* of NAME_encode */                                                                     \
        size_t bytes;                                                                                                  \
    } NAME##_listener;                                                                                                 \
    static inline int NAME##_listener_open(void *with, const float *mel) {                                             \
        const NAME##_listener *listener = ATTN_CAST(const NAME##_listener *, with);                                    \
        NAME##_source input;                                                                                           \
        NAME##_encoded nothing;                                                                                        \
        memset(&input, 0, sizeof input);                                                                               \
        memset(&nothing, 0, sizeof nothing);                                                                           \
        input.size = sizeof input;                                                                                     \
        input.batch = 1;                                                                                               \
        input.mel = mel;                                                                                               \
        nothing.size = sizeof nothing;                                                                                 \
        int status = NAME##_encode(listener->generator.ctx, &input, &nothing, listener->sources, listener->workspace,  \
                                   listener->bytes);                                                                   \
        if (status != 0) return status;                                                                                \
        return NAME##_state_init(listener->generator.states[0], listener->state_bytes, listener->sources[0]);          \
    }                                                                                                                  \
    static inline int NAME##_listener_rewind(void *with) {                                                             \
        return NAME##_state_rewind(ATTN_CAST(const NAME##_listener *, with)->generator.states[0], 0);                  \
    }                                                                                                                  \
    static inline attn_speech NAME##_listener_speech(NAME##_listener *listener, const attn_speech_tokens *tokens,      \
                                                     int bins, int frames, int rows, int vocab, int bound) {           \
        attn_speech speech;                                                                                            \
        speech.size = sizeof speech;                                                                                   \
        speech.bins = bins;                                                                                            \
        speech.frames = frames;                                                                                        \
        speech.step = frames / rows;                                                                                   \
        speech.decoder = NAME##_generator_model(&listener->generator, vocab, bound);                                   \
        speech.tokens = tokens;                                                                                        \
        speech.with = listener;                                                                                        \
        speech.open = NAME##_listener_open;                                                                            \
        speech.rewind = NAME##_listener_rewind;                                                                        \
        return speech;                                                                                                 \
    }                                                                                                                  \
    struct NAME##_listener /* the semicolon behind ATTN_SPEECH_OF(NAME) ends this declaration */

#endif
