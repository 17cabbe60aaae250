/* foreign.c: recognizes files that are neither safetensors nor .npy by their first bytes, and says what to do. */
#include "../attnc.h"

#include <string.h>

#define AS_SAFETENSORS "save the model that it was made from as safetensors"
#define AS_ARRAY "an input is an array that numpy.save wrote"

typedef struct Kind {
    const char *magic;
    size_t size, at;             /* of the magic, and its offset in the file */
    const char *is;
    const char *weights, *array; /* what to do where weights, or an input, are expected */
} Kind;

static const Kind KINDS[] = {
    {"\x93NUMPY", 6, 0, "an .npy file", "it is an input, for --in; weights are safetensors", NULL},
    {"GGUF", 4, 0, "a GGUF file", NULL, "it is for --weights"},
    {"\x89HDF", 4, 0, "an HDF5 file", AS_SAFETENSORS, AS_ARRAY},
    {"TFL3", 4, 4, "a TensorFlow Lite model", AS_SAFETENSORS, AS_ARRAY},
    {"ATTNW\r\n\x1a", 8, 0, "packed weights", "give them alone, without commas", "they are for --weights"},
    {"version https://git-lfs", 23, 0, "a git-lfs pointer", "fetch the file itself with `git lfs pull`",
     "fetch the file itself with `git lfs pull`"},
    {"\x1f\x8b", 2, 0, "a gzip archive", "unpack it first, with gunzip", "unpack it first, with gunzip"},
    {"ustar", 5, 257, "a tar archive", "unpack it first, with tar -xf", "unpack it first, with tar -xf"},
    {"\x80\x02", 2, 0, "a Python pickle", AS_SAFETENSORS, AS_ARRAY},
    {"\x80\x03", 2, 0, "a Python pickle", AS_SAFETENSORS, AS_ARRAY},
    {"\x80\x04", 2, 0, "a Python pickle", AS_SAFETENSORS, AS_ARRAY},
    {"\x80\x05", 2, 0, "a Python pickle", AS_SAFETENSORS, AS_ARRAY},
    {"(dp0\n", 5, 0, "a Python pickle", AS_SAFETENSORS, AS_ARRAY},
};

static const Kind ONNX = {.is = "an ONNX model", .weights = AS_SAFETENSORS, .array = AS_ARRAY};
static const Kind TORCH = {.is = "a zip archive, as PyTorch's .bin and .pt files are",
                           .weights = "its data.pkl is missing", .array = AS_ARRAY};
static const Kind NPZ = {.is = "an .npz archive of arrays", .weights = "weights are safetensors: "
                         "safetensors.numpy.save_file writes a dictionary of arrays",
                         .array = "unzip it, or write each array with numpy.save"};
static const Kind ZIP = {.is = "a zip archive", .weights = "unzip it first", .array = "unzip it first"};
static const Kind JSON = {.is = "JSON", .weights = "an index of shards must be named *.index.json", .array = AS_ARRAY};
static const Kind PAGE = {.is = "an HTML or XML page", .weights = "the download may have failed",
                          .array = "the download may have failed"};
static const Kind SAFETENSORS = {.is = "a safetensors file", .array = "it is for --weights"};
static const Kind TEXT = {.is = "text", .weights = "the download may have failed", .array = AS_ARRAY};

static bool begins(MappedFile file, size_t at, const void *bytes, size_t size) {
    return file.size >= at && file.size - at >= size && memcmp(file.data + at, bytes, size) == 0;
}

static uint8_t byte_at(MappedFile file, size_t at) { return at < file.size ? file.data[at] : 0; }

/* An ONNX file is a ModelProto, which begins with ir_version, a small number, and then another of its first fields. */
static bool is_onnx(MappedFile file) {
    static const char next[] = {0x12, 0x1a, 0x22, 0x28, 0x32, 0x3a, 0x42}; /* field << 3 | wire type */
    return byte_at(file, 0) == 0x08 && byte_at(file, 1) && byte_at(file, 1) < 64 && file.size > 3 &&
           memchr(next, byte_at(file, 2), sizeof next);
}

static bool holds(MappedFile file, size_t at, size_t size, const char *word) {
    size_t length = strlen(word);
    for (size_t i = 0; i + length <= size; i++)
        if (begins(file, at + i, word, length)) return true;
    return false;
}

/* Decides by the name of the archive's first member, which follows a header of 30 bytes. */
static const Kind *zip_kind(MappedFile file) {
    enum { AT_LENGTH = 26, AT_NAME = 30 };
    size_t length = (size_t)byte_at(file, AT_LENGTH) | (size_t)byte_at(file, AT_LENGTH + 1) << 8;
    if (holds(file, AT_NAME, length, ".npy")) return &NPZ;
    bool torch = holds(file, AT_NAME, length, "data.pkl") || holds(file, AT_NAME, length, "/byteorder") ||
                 holds(file, AT_NAME, length, "/version");
    return torch ? &TORCH : &ZIP;
}

/* The first bytes for a message where they are printable text, else "". */
static const char *text_shown(Arena *arena, MappedFile file) {
    enum { LEAST = 8, MOST = 40 };
    size_t size = 0;
    while (size < file.size && size < MOST && (byte_at(file, size) >= ' ' && byte_at(file, size) < 0x7f)) size++;
    bool line = size == file.size || size == MOST || byte_at(file, size) == '\n' || byte_at(file, size) == '\r';
    return line && size >= LEAST ? arena_copy(arena, (const char *)file.data, size) : "";
}

static const Kind *kind_of(Arena *arena, MappedFile file) {
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (begins(file, KINDS[i].at, KINDS[i].magic, KINDS[i].size)) return &KINDS[i];
    if (begins(file, 0, "PK\003\004", 4)) return zip_kind(file);
    if (is_onnx(file)) return &ONNX;
    if (byte_at(file, 8) == '{' && !byte_at(file, 7) && !byte_at(file, 6)) return &SAFETENSORS;
    size_t at = 0;
    while (at < file.size && file.data[at] && strchr(" \t\r\n", file.data[at])) at++;
    uint8_t first = byte_at(file, at), second = byte_at(file, at + 1);
    if (first == '{' && second && strchr(" \t\r\n\"}", second)) return &JSON;
    if (first == '<' && (second == '!' || second == '?' || (second >= 'A' && second <= 'z'))) return &PAGE;
    return *text_shown(arena, file) ? &TEXT : NULL;
}

const char *foreign_kind(Arena *arena, MappedFile file, bool array) {
    const Kind *kind = kind_of(arena, file);
    const char *advice = !kind ? NULL : array ? kind->array : kind->weights;
    if (!advice) return NULL;
    const char *shown = kind == &TEXT ? arena_printf(arena, " that begins with `%s`", text_shown(arena, file)) : "";
    return arena_printf(arena, "%s%s; %s", kind->is, shown, advice);
}
