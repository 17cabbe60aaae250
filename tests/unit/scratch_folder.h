/* scratch_folder.h: a folder of a group of tests, which make_folder and drop_folder set up and remove. */
#ifndef SCRATCH_FOLDER_H
#define SCRATCH_FOLDER_H

#include "fixture.h"

#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/attnc-test-XXXXXX";

static inline int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk) {
    (void)info, (void)kind, (void)walk;
    return remove(path);
}

static inline int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static inline int drop_folder(void **state) {
    (void)state;
    return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static inline const char *in_folder(const char *name) { return arena_printf(arena, "%s/%s", folder, name); }

static inline const char *put(const char *name, const void *bytes, size_t size) {
    const char *path = in_folder(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    return path;
}

#endif
