/* package.h: what stands around the C of a model so that another language can use it, a Python package or a crate for
 * Rust. Each is a list of texts, which the command writes beside the C. Pages for browsers have a header of their own,
 * page.h. */
#ifndef PACKAGE_H
#define PACKAGE_H

#include "../project/project.h"

typedef struct Package {
    Arena *arena;
    const Compilation *c;  /* at STAGE_PLAN or later */
    bool weights;          /* NAME.attnw stands beside the C */
    const char *tokenizer; /* the name of the tokenizer's file beside the C, as of TokenizerFile, or NULL */
} Package;

/* A file of a package; `path` is relative to its folder, with `/`. */
typedef struct PackageFile {
    const char *path, *text;
} PackageFile;

/* A kind of package. */
typedef struct PackageKind {
    /* The folder of the C, the weights, the tokenizer and the runtime within the package; NULL: the model's name. */
    const char *c_folder;
    /* The texts of all other files, ended by a NULL path. What the package cannot do is a failure with EXIT_CANNOT. */
    const PackageFile *(*files)(const Package *package);
} PackageKind;

extern const PackageKind package_python, package_rust;

#endif
