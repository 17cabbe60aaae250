/* profile.h: the times of a plan's steps in the compiled code, beside those that their flops and bytes predict. */
#ifndef PROFILE_H
#define PROFILE_H

#include "../engine/engine.h"

typedef struct ProfileStep {
    double flops, bytes; /* of a call, as explain counts them */
    double median;       /* seconds in a call */
    int64_t chunks;      /* how often it runs in a call */
    double running;      /* seconds in the run that is being timed */
    double *runs;        /* seconds in a call, run by run */
} ProfileStep;

typedef struct Profile {
    const Plan *plan;
    ProfileStep *steps;
    double clock;      /* seconds that a look at the clock takes, which are taken off each step's time */
    double last;       /* when the last step began */
    double unit;       /* operations of all threads a second where products read narrow rows; 0: as for others */
    double peak, read; /* flops of all threads and bytes of one core, a second; 0: unknown */
    double median;     /* seconds of a call that is watched */
    int runs, most_runs;
} Profile;

Profile *profile_new(Arena *arena, const Plan *plan, int most_runs);
/* Adds the flops and bytes of a call with these rows, multiplied by `share`. */
void profile_count(Profile *profile, const CallRows *rows, double share);
void profile_watch(Profile *profile, Engine *engine); /* in the engine's calls from now on */
void profile_begin(Profile *profile);                 /* before a run of one or several calls */
void profile_end(Profile *profile, int64_t calls);    /* behind it */
void profile_finish(Profile *profile);                /* sets the medians */

void profile_print(Arena *arena, const Profile *profile, double unwatched); /* `unwatched`: seconds of a call */
void profile_json(const Profile *profile);                                  /* a member of an object */

#endif
