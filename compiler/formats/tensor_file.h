/* tensor_file.h: what the readers of files with weights share. */
#ifndef TENSOR_FILE_H
#define TENSOR_FILE_H

#include "../attnc.h"

bool text_is_one_of(const char *text, const char *const *words); /* which NULL ends */
/* A name from a file for a message, shortened and without control characters. */
const char *tensor_shown(Arena *arena, const char *name);
_Noreturn void tensor_fail(const char *path, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void tensor_name_check(const char *path, const char *name); /* fails at a control character */
int by_text(const void *a, const void *b); /* compares two strings, for qsort and bsearch */
const char *name_twice(const char **names, size_t count); /* sorts them; the first that occurs twice, or NULL */
/* Copies `count` numbers of a view with strides from number `first` on, as they are and by rows. */
void tensor_gather(const FileTensor *tensor, int64_t first, int64_t count, void *out);
/* The tensors of all files [count] together, in a file of this path. */
TensorFile tensors_joined(Arena *arena, const char *path, const TensorFile *files, size_t count);
void tensors_sort(TensorFile *file); /* fails at a name that occurs twice */
/* The tensors [count] that have bytes, in the order of these. */
const FileTensor *const *tensors_placed(Arena *arena, const TensorFile *file, size_t *count);

TensorFile safetensors_read(Arena *arena, MappedFile mapped);

/* --- modules.c */
typedef struct ModuleFile {
    const char *name, *path; /* name: what stands before the names of the tensors, with a dot; NULL for the model */
} ModuleFile;
/* The files of the model and of the dense modules that modules.json of the folder lists, in their order. NULL and 0
 * where the folder has no modules.json. */
const ModuleFile *modules_list(Arena *arena, const char *folder, size_t *count);

/* --- shards.c */
typedef struct ShardEntry {
    const char *tensor, *shard; /* the shard is the name of a file beside the index */
} ShardEntry;
/* The entries of an index, sorted by shard and then by name. */
ShardEntry *shards_list(Arena *arena, const char *path, size_t *count);

#endif
