/* The calls that every program of this folder makes: C11, C++17 and without any library. */
#ifndef CALLS_H
#define CALLS_H

#include "sentence.h"
#include "speaker.h"
#include "straight.h"
#include "translator.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SENTENCE, SPEAKER, TRANSLATOR, STRAIGHT };

/* No enum: C++20 would not have them multiplied by those of the headers. */
#define MODELS 4
#define SPOKEN 11
#define PROMPT 5
#define SOURCE_ROWS 7
#define TARGET_ROWS 6
#define MOST_FLOATS 4096
#define MOST_THREADS 3

typedef struct Contexts {
    sentence_ctx sentence;
    speaker_ctx speaker;
    translator_ctx translator;
    straight_ctx straight;
} Contexts;

/* Of one thread's calls. */
typedef struct Memory {
    unsigned char workspace[1 << 20];
    unsigned char state[SPEAKER_STATE_BYTES], fork[SPEAKER_STATE_BYTES];
    unsigned char target_state[TRANSLATOR_STATE_BYTES], source[TRANSLATOR_SOURCE_BYTES];
} __attribute__((aligned(64))) Memory;

typedef void (*parallel)(void *pool, int count, void (*task)(void *with, int index), void *with);

typedef void (*watch)(void *watcher, int step);

/* 0, or the status of the first model that refuses. `run` and `on_step` may be NULL. */
int calls_init(Contexts *contexts, const char *target, int threads, parallel run, void *pool, watch on_step,
               void *watcher);
/* What it gives, one array after the other, at most MOST_FLOATS numbers; how many, or 0 minus a status. */
int calls_run(const Contexts *contexts, int model, Memory *memory, float *out);

#ifdef __cplusplus
}
#endif

#endif
