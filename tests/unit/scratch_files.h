/* scratch_files.h: files of tensors in a scratch folder, and what reading them says. */
#ifndef SCRATCH_FILES_H
#define SCRATCH_FILES_H

#include "scratch_folder.h"

static inline const char *put_text(const char *name, const char *text) { return put(name, text, strlen(text)); }

/* A safetensors file with this header and these data. */
static inline const char *put_tensors(const char *name, const char *header, const void *data, size_t size) {
    Text text = text_new(arena);
    uint64_t length = strlen(header);
    text_add(&text, (const char *)&length, sizeof length);
    text_add(&text, header, strlen(header));
    text_add(&text, data, size);
    return put(name, text.data, text.size);
}

/* An .npy file of this version with this header and these data. */
static inline const char *put_npy(const char *name, int version, const char *header, const void *data, size_t size) {
    Text text = text_new(arena);
    size_t length = strlen(header);
    char prefix[12] = "\x93NUMPY";
    prefix[6] = (char)version;
    prefix[8] = (char)(length & 255);
    prefix[9] = (char)(length >> 8);
    text_add(&text, prefix, version == 1 ? 10 : 12);
    text_add(&text, header, length);
    text_add(&text, data, size);
    return put(name, text.data, text.size);
}

/* The file, or NULL with `trap` filled. */
static inline const TensorFile *try_open(const char *path) {
    const TensorFile *file;
    return FAILS(file = tensor_file_open(arena, path)) ? NULL : file;
}

static inline const NpyArray *try_npy(const char *path) {
    NpyArray *array = arena_alloc(arena, sizeof *array);
    return FAILS(*array = npy_read(arena, path)) ? NULL : array;
}

static inline void refuse(const char *path, const char *part) {
    assert_null(try_open(path));
    message_holds(EXIT_USER, part);
    message_holds(EXIT_USER, folder);
}

static inline void refuse_header(const char *header, size_t data_size, const char *part) {
    static const uint8_t zeros[64];
    refuse(put_tensors("bad.safetensors", header, zeros, data_size), part);
}

static inline void refuse_npy(const char *path, const char *part) {
    assert_null(try_npy(path));
    message_holds(EXIT_USER, part);
    message_holds(EXIT_USER, path);
}

static inline void refuse_npy_header(const char *header, size_t data_size, const char *part) {
    static const uint8_t zeros[64];
    refuse_npy(put_npy("bad.npy", 1, header, zeros, data_size), part);
}

static inline const TensorFile *opened(const char *path) {
    const TensorFile *file = try_open(path);
    if (!file) fail_msg("%s", trap.message);
    return file;
}

static inline const NpyArray *loaded(const char *path) {
    const NpyArray *array = try_npy(path);
    if (!array) fail_msg("%s", trap.message);
    return array;
}

static inline void same_bits(float a, uint32_t bits) {
    uint32_t have;
    memcpy(&have, &a, sizeof have);
    assert_int_equal(have, bits);
}

#endif
