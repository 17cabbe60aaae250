/* measure.h: how far a model is from the same model with every precision f32, on given inputs. */
#ifndef MEASURE_H
#define MEASURE_H

#include "check.h"

typedef struct MeasureOptions {
    bool interpreted;        /* both models run in the interpreter, else compiled */
    const char *target, *cc; /* as those of EngineOptions */
    int threads;
} MeasureOptions;

/* Over the rows of an output that are not padding. a is a row of the measured model, b that of f32. */
typedef struct RowErrors {
    int64_t rows;              /* 0: the model has no such output */
    double rel_mean, rel_max;  /* |a - b| / |b|; where |b| is 0, 1 unless |a| is 0 */
    double cos_mean, cos_max;  /* 1 - cosine; 1 where only one of both is 0 */
} RowErrors;

typedef struct LogitsErrors {
    int64_t rows;   /* 0: the model has no logits */
    int64_t tokens; /* given tokens that a row before them predicts; 0: there is no perplexity */
    double perplexity, perplexity_f32;
    double kl_mean, kl_max; /* KL(f32 || measured) of a row, in nats */
    double top1;            /* share of the rows whose largest logit is that of f32 */
} LogitsErrors;

/* The result of a step, against the same tensor of the f32 model. Copies and rows in integers have none. */
typedef struct StepError {
    const char *name, *layer; /* of the Step */
    const char *kind;         /* step_kind_name */
    int64_t rows;
    double rel;    /* mean of |a - b| / |b| over the rows */
    double before; /* the largest rel of the rows that it reads */
} StepError;

typedef struct Measurement {
    const char *precision;
    const char *target;      /* NULL: the interpreter */
    int64_t weights_bytes;   /* of the packed file */
    int64_t workspace_bytes; /* of a call in these threads */
    double median_s;         /* of a call on the whole batch; 0 without `times` */
    RowErrors outputs[OUT_COUNT];
    LogitsErrors logits;
    StepError *steps; /* in the order of the model; empty without `steps` */
    int n_steps;
} Measurement;

/* A model of some precision, which has run on the inputs. */
typedef struct MeasuredModel {
    const char *name;        /* of its precision, for messages */
    const Module *module;
    const Weights *weights;
    Engine *engine;          /* has functions only where it is compiled */
    float *outputs[OUT_COUNT];
    double *seconds;         /* of timed calls */
    int n_seconds, room_seconds;
} MeasuredModel;

typedef struct Reference {
    Arena *arena;
    MeasureOptions options;
    const Batch *batch;
    MeasuredModel model;
} Reference;

/* --- measure.c */
/* Runs the model of a spec that is compiled up to STAGE_REWRITE and has the precision f32 everywhere. Numbers of an
 * output that are not finite are a failure, whose message names the first step with such a number. */
Reference *measure_reference(Arena *arena, const Compilation *spec, const Weights *weights, const Batch *batch,
                             const MeasureOptions *options);
typedef struct MeasureHow {
    bool times, steps;
} MeasureHow;
/* Measures the same spec at STAGE_REWRITE in another precision, whose name messages and the result have. The weights
 * are those of the reference, rounded. Fails, naming that precision, for numbers that are not finite, and for an output
 * with equal rows where those of f32 differ. */
Measurement *measure(Arena *arena, Reference *reference, const Compilation *spec, const char *precision,
                     MeasureHow how);
/* The same sizes of the f32 model, and the median of all its calls so far, as a measurement without errors. */
Measurement *measure_f32(Arena *arena, const Reference *reference);

/* --- measure_rows.c: outputs in the layout of batch_pieces. */
/* Of a row a against the same row b of f32, as RowErrors has them. */
typedef struct RowError {
    double rel, cos;
} RowError;
RowError measure_row(const float *a, const float *b, int64_t n);
double measure_divergence(const float *a, const float *b, int64_t n); /* KL(b || a) of logits */
void measure_outputs(const Reference *reference, const MeasuredModel *model, Measurement *out);
void measure_logits(const Reference *reference, const MeasuredModel *model, LogitsErrors *out);
/* The first output with a number that is not finite, or OUT_COUNT. */
OutputRole measure_not_finite(const MeasuredModel *model, const Batch *batch);
/* Whether an output has at least two rows, and all of its rows are equal. */
bool measure_constant(const MeasuredModel *model, const Batch *batch, OutputRole role);

/* --- measure_steps.c */
/* Runs both models step by step and sets the steps of `out`. *odd is set to the first step of the model with a number
 * that is not finite, or to NULL. */
void measure_steps(Arena *arena, const Reference *reference, const MeasuredModel *model, Measurement *out,
                   const char **odd);

#endif
