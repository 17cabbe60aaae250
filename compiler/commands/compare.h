/* compare.h: the measurements of attnc compare, which its text, its JSON and its page show. */
#ifndef COMPARE_H
#define COMPARE_H

#include "../check/measure.h"

typedef struct Compare {
    Arena *arena;
    const Module *module; /* of f32 */
    const char *call;     /* describes the inputs, the threads and the engine */
    const Measurement *f32;
    const Measurement **list; /* in the order of the command line */
    int n;
} Compare;

/* --- compare_page.c: writes the measurements as a page; after a failure there is no file. */
void compare_page(const Compare *x, const char *path);
/* The value of "precisions" in --json; --html has the same objects. */
void compare_json(Text *out, const Compare *x);

#endif
