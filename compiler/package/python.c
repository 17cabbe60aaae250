/* python.c: a model as a package for Python. */
#include "package.h"

static const char *c_folder(const Package *package) { return package->c->model->name; }

static const PackageFile *files(const Package *package) {
    PackageFile *list = arena_array(package->arena, 1, sizeof *list);
    return list;
}

const PackageKind package_python = {c_folder, files, .runtime = RUNTIME_SEARCH, .tokenizing = true};
