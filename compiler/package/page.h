/* page.h: what the files of a page for browsers share. */
#ifndef PAGE_H
#define PAGE_H

#include "package.h"

/* What a page does with a text. */
typedef enum PageTask {
    PAGE_SIMILARITY, /* compares the vectors of texts */
    PAGE_CLASSIFY,   /* shows the probabilities of the classes */
    PAGE_TAG,        /* shows the most probable class of each row */
    PAGE_GENERATE,   /* continues the text */
    PAGE_TRANSLATE   /* reads it with the encoder, and shows what the decoder writes */
} PageTask;

typedef struct Page {
    Arena *arena;
    const Model *model;
    const Graph *forward, *encode; /* `encode` is NULL without an encoder that a decoder reads */
    PageTask task;
    const char *const *labels; /* [model->head.classifier], or NULL */
    const TokenizerFile *tokenizer; /* .path is NULL without one */
    int64_t weights_bytes;
} Page;

/* --- page.c */
/* What a page of the model is for. An interface that no page gives is a failure with EXIT_CANNOT. */
PageTask page_task(const Compilation *c);
bool page_writes(const Page *page); /* whether the module has a search */
/* The texts of the page, ended by a NULL path. */
const PackageFile *page_files(const Page *page);
/* The C that a module has beside the model's. */
const char *page_module(const Compilation *c, const Page *page);

/* --- page_tokenizer.c: refuses with EXIT_CANNOT what the tokenizer of the page does not read. Returns a JSON object
 * that has, for each regular expression of the file, the one that means the same in JavaScript. */
const char *page_patterns(Arena *arena, const TokenizerFile *file);

/* --- page_regex.c: adds to `out` what means the same in JavaScript, with the flag u, as this regular expression of
 * Oniguruma's Ruby syntax. Returns NULL, or what has no translation. */
const char *page_regex(const char *regex, Text *out);

/* --- page_build.c: compiles the model and the module to WebAssembly, in folders that go with the arena. */
typedef struct PageModules {
    const char *simd, *scalar; /* paths of files */
} PageModules;
/* The command of a clang that makes WebAssembly: `named`, or clang; a failure that names the packages without one. */
const char *page_cc(Arena *arena, const char *named);
PageModules page_build(const Compilation *c, const Page *page, const char *cc);

#endif
