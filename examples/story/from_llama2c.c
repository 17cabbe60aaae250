/* Turns a checkpoint of llama2.c (github.com/karpathy/llama2.c: export.py writes it, run.c reads it) into config.json
 * and model.safetensors as Hugging Face's transformers save a LlamaForCausalLM, for `attnc import`. Versions 0 (without
 * a magic number) and 1. --help says how it is used. Exit status: 0, 1 after an error, 2 usage.
 *
 * llama2.c turns the pairs (2i, 2i + 1) of a head of query and key, transformers the pairs (i, i + head_dim / 2): the
 * rows of both projections change places. Everything else is copied. */
#define _POSIX_C_SOURCE 200809L
#include "../../runtime/attn_runtime.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC UINT32_C(0x616b3432) /* export.py: "ak42" */
enum { HEADER_0 = 28, HEADER_1 = 256, FLAG_AT = 36, FLOAT = 4, MOST_TENSORS = 14 };

/* One tensor, or one of every layer: float32 [rows][columns] in the file, [columns] without rows. */
typedef struct Tensor {
    const char *name; /* with the layer's number in place of *; NULL: left out */
    bool layered;
    uint64_t rows, columns;
    uint64_t heads;  /* whose rows change places; 0: none do */
    uint64_t offset; /* in the checkpoint, of layer 0 */
} Tensor;

typedef struct Checkpoint {
    const char *path;
    attn_file file;
    uint32_t version, dim, hidden, layers, heads, kv_heads, vocab, seq;
    bool shared; /* the classifier is the embedding */
    Tensor tensors[MOST_TENSORS];
    int count;
} Checkpoint;

/* Files are written under other names and renamed when all are complete. */
typedef struct Output {
    char *path, *aside;
    FILE *stream;
} Output;

static int error(const char *where, const char *why) {
    fprintf(stderr, "from_llama2c: %s: %s\n", where, why);
    return 1;
}

static void *must_have(void *memory) {
    if (memory) return memory;
    fputs("from_llama2c: out of memory\n", stderr);
    exit(1);
}

/* ---------------------------------------------------------------- reading */

static uint32_t word_at(const Checkpoint *c, size_t at) {
    const unsigned char *b = (const unsigned char *)c->file.data + at;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static uint64_t floats_of(const Tensor *t) { return (t->rows ? t->rows : 1) * t->columns; }

/* Appends a tensor behind those before it; false when the file is too short for it. Nothing overflows: sizes are below
 * 2^32, and a product is only made when it is at most the number of floats that are left. */
static bool add(Checkpoint *c, uint64_t *at, const char *name, bool layered, uint64_t rows, uint64_t columns,
                uint64_t heads) {
    uint64_t left = (c->file.size - *at) / FLOAT, copies = layered ? c->layers : 1;
    if (rows && columns > left / rows) return false;
    Tensor *t = &c->tensors[c->count++];
    *t = (Tensor){name, layered, rows, columns, heads, *at};
    uint64_t floats = floats_of(t);
    if (floats && copies > left / floats) return false;
    *at += copies * floats * FLOAT;
    return true;
}

#define LAYER "model.layers.*."

static bool add_embedding(Checkpoint *c, uint64_t *at) {
    return add(c, at, "model.embed_tokens.weight", false, c->vocab, c->dim, 0);
}

static bool add_norm(Checkpoint *c, uint64_t *at, const char *name) {
    return add(c, at, name, strncmp(name, LAYER, strlen(LAYER)) == 0, 0, c->dim, 0);
}

static bool add_attention(Checkpoint *c, uint64_t *at) {
    uint64_t d = c->dim, kv = d / c->heads * c->kv_heads;
    return add(c, at, LAYER "self_attn.q_proj.weight", true, d, d, c->heads) &&
           add(c, at, LAYER "self_attn.k_proj.weight", true, kv, d, c->kv_heads) &&
           add(c, at, LAYER "self_attn.v_proj.weight", true, kv, d, 0) &&
           add(c, at, LAYER "self_attn.o_proj.weight", true, d, d, 0);
}

static bool add_ffn(Checkpoint *c, uint64_t *at) {
    return add(c, at, LAYER "mlp.gate_proj.weight", true, c->hidden, c->dim, 0) &&
           add(c, at, LAYER "mlp.down_proj.weight", true, c->dim, c->hidden, 0) &&
           add(c, at, LAYER "mlp.up_proj.weight", true, c->hidden, c->dim, 0);
}

/* All tensors in the order of their version; false when the file is too short. *at is then behind the last. */
static bool add_all(Checkpoint *c, uint64_t *at) {
    static const char first[] = LAYER "input_layernorm.weight", second[] = LAYER "post_attention_layernorm.weight";
    static const char last[] = "model.norm.weight";
    bool fits;
    if (c->version == 0) {
        uint64_t pairs = c->dim / c->heads / 2; /* the cosines and sines of angles, which follow from the sizes */
        fits = add_embedding(c, at) && add_norm(c, at, first) && add_attention(c, at) && add_norm(c, at, second) &&
               add_ffn(c, at) && add_norm(c, at, last) && add(c, at, NULL, false, c->seq, pairs, 0) &&
               add(c, at, NULL, false, c->seq, pairs, 0);
    } else {
        fits = add_norm(c, at, first) && add_norm(c, at, second) && add_norm(c, at, last) && add_embedding(c, at) &&
               add_attention(c, at) && add_ffn(c, at);
    }
    return fits && (c->shared || add(c, at, "lm_head.weight", false, c->vocab, c->dim, 0));
}

static char reason[160];

/* Reads version and sizes; what is wrong with them, or NULL. A negative vocab_size of version 0 says that the
 * classifier has weights of its own. */
static const char *read_sizes(Checkpoint *c) {
    static const char *const names[] = {"dim",     "hidden_dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size",
                                        "seq_len"};
    uint32_t *const sizes[] = {&c->dim, &c->hidden, &c->layers, &c->heads, &c->kv_heads, &c->vocab, &c->seq};
    enum { COUNT = sizeof sizes / sizeof *sizes, VOCAB = 5 };
    if (c->file.size < HEADER_0) return "it is shorter than a header";
    bool magic = word_at(c, 0) == MAGIC;
    c->version = magic ? word_at(c, 4) : 0;
    if (magic && c->version == 2) return "version 2, quantized to int8, is not read: export it as version 1";
    if (magic && c->version != 1) {
        snprintf(reason, sizeof reason, "version %" PRIu32 " is not known: 0 and 1 are", c->version);
        return reason;
    }
    if (magic && c->file.size < HEADER_1) return "it is shorter than a header";
    const char *doubt = magic ? "" : ": it is no checkpoint of llama2.c";
    c->shared = true;
    for (size_t i = 0; i < COUNT; i++) {
        int64_t size = word_at(c, (magic ? 8 : 0) + 4 * i);
        if (size > INT32_MAX) size -= INT64_C(1) << 32;
        if (i == VOCAB && !magic && size < 0) size = -size, c->shared = false;
        *sizes[i] = (uint32_t)size;
        if (size >= 1 && size <= INT32_MAX) continue;
        snprintf(reason, sizeof reason, "its %s is %" PRId64 "%s", names[i], size, doubt);
        return reason;
    }
    unsigned flag = magic ? ((const unsigned char *)c->file.data)[FLAG_AT] : c->shared;
    if (flag > 1) return "its flag of a shared classifier is neither 0 nor 1";
    c->shared = flag;
    if (c->dim % c->heads == 0 && c->heads % c->kv_heads == 0 && c->dim / c->heads % 2 == 0) return NULL;
    snprintf(reason, sizeof reason, "its dim %" PRIu32 ", n_heads %" PRIu32 " and n_kv_heads %" PRIu32 " do not fit%s",
             c->dim, c->heads, c->kv_heads, doubt);
    return reason;
}

/* Reads the sizes and places all tensors; what is wrong with the file, or NULL. */
static const char *read_checkpoint(Checkpoint *c) {
    const char *wrong = read_sizes(c);
    if (wrong) return wrong;
    uint64_t at = c->version ? HEADER_1 : HEADER_0;
    bool fits = add_all(c, &at);
    if (fits && at == c->file.size) return NULL;
    if (fits)
        snprintf(reason, sizeof reason, "its header's sizes make %" PRIu64 " bytes, but it has %zu", at, c->file.size);
    else
        snprintf(reason, sizeof reason, "its %zu bytes are too few for its header's sizes%s", c->file.size,
                 c->version ? "" : ", or it is no checkpoint of llama2.c");
    return reason;
}

/* ---------------------------------------------------------------- writing */

static void write_name(FILE *out, const Tensor *t, uint64_t layer) {
    const char *number = strchr(t->name, '*');
    if (number) fprintf(out, "%.*s%" PRIu64 "%s", (int)(number - t->name), t->name, layer, number + 1);
    else fputs(t->name, out);
}

/* The header of a safetensors file: its length in 8 bytes, then JSON, filled with spaces to whole 8 bytes. */
static void write_header(FILE *out, const Checkpoint *c) {
    char *text;
    size_t length;
    FILE *json = must_have(open_memstream(&text, &length));
    uint64_t at = 0;
    fputs("{\"__metadata__\":{\"format\":\"pt\"}", json);
    for (int i = 0; i < c->count; i++) {
        const Tensor *t = &c->tensors[i];
        for (uint64_t layer = 0; t->name && layer < (t->layered ? c->layers : 1); layer++) {
            uint64_t end = at + floats_of(t) * FLOAT;
            fputs(",\"", json);
            write_name(json, t, layer);
            fputs("\":{\"dtype\":\"F32\",\"shape\":[", json);
            if (t->rows) fprintf(json, "%" PRIu64 ",", t->rows);
            fprintf(json, "%" PRIu64 "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", t->columns, at, end);
            at = end;
        }
    }
    fputc('}', json);
    if (fclose(json)) must_have(NULL);
    uint64_t padded = ((uint64_t)length + 7) / 8 * 8;
    for (int byte = 0; byte < 8; byte++) fputc((int)(padded >> 8 * byte & 255), out);
    fprintf(out, "%s%*s", text, (int)(padded - length), "");
    free(text);
}

static void write_weights(FILE *out, const Checkpoint *c) {
    write_header(out, c);
    for (int i = 0; i < c->count; i++) {
        const Tensor *t = &c->tensors[i];
        if (!t->name) continue;
        const unsigned char *from = (const unsigned char *)c->file.data + t->offset;
        uint64_t bytes = floats_of(t) * FLOAT, row = t->columns * FLOAT, head = t->heads ? t->rows / t->heads : 0;
        for (uint64_t layer = 0; layer < (t->layered ? c->layers : 1); layer++, from += bytes) {
            if (!t->heads) fwrite(from, 1, bytes, out);
            for (uint64_t r = 0; t->heads && r < t->rows; r++) {
                uint64_t within = r % head; /* of its head: first the even rows, then the odd ones */
                fwrite(from + (r - within + within % (head / 2) * 2 + within / (head / 2)) * row, 1, row, out);
            }
        }
    }
}

/* A text of llama2.c begins with token 1, and 1 ends it too in the models trained there; 2 does in Meta's. */
static void write_config(FILE *out, const Checkpoint *c) {
    fprintf(out, "{\n  \"architectures\": [\"LlamaForCausalLM\"],\n  \"model_type\": \"llama\",\n");
    fprintf(out, "  \"attention_bias\": false,\n  \"mlp_bias\": false,\n  \"hidden_act\": \"silu\",\n");
    if (c->vocab > 2) fprintf(out, "  \"bos_token_id\": 1,\n  \"eos_token_id\": [1, 2],\n");
    else fprintf(out, "  \"bos_token_id\": null,\n  \"eos_token_id\": null,\n");
    fprintf(out, "  \"dtype\": \"float32\",\n  \"vocab_size\": %" PRIu32 ",\n", c->vocab);
    fprintf(out, "  \"hidden_size\": %" PRIu32 ",\n  \"intermediate_size\": %" PRIu32 ",\n", c->dim, c->hidden);
    fprintf(out, "  \"num_hidden_layers\": %" PRIu32 ",\n  \"head_dim\": %" PRIu32 ",\n", c->layers, c->dim / c->heads);
    fprintf(out, "  \"num_attention_heads\": %" PRIu32 ",\n  \"num_key_value_heads\": %" PRIu32 ",\n", c->heads,
            c->kv_heads);
    fprintf(out, "  \"max_position_embeddings\": %" PRIu32 ",\n  \"rms_norm_eps\": 1e-05,\n", c->seq);
    fprintf(out, "  \"rope_parameters\": {\"rope_theta\": 10000.0, \"rope_type\": \"default\"},\n");
    fprintf(out, "  \"tie_word_embeddings\": %s\n}\n", c->shared ? "true" : "false");
}

static char *joined(const char *folder, const char *name, const char *ending) {
    size_t size = strlen(folder) + strlen(name) + strlen(ending) + 2;
    char *path = must_have(malloc(size));
    snprintf(path, size, "%s/%s%s", folder, name, ending);
    return path;
}

static int write_aside(Output *o, const Checkpoint *c, const char *folder, const char *name,
                       void (*write)(FILE *out, const Checkpoint *c)) {
    char ending[32];
    snprintf(ending, sizeof ending, ".part-%ld", (long)getpid());
    o->path = joined(folder, name, "");
    o->aside = joined(folder, name, ending);
    o->stream = fopen(o->aside, "wbx");
    if (!o->stream) return error(o->aside, strerror(errno));
    errno = 0;
    write(o->stream, c);
    bool bad = fflush(o->stream) || ferror(o->stream);
    bad = fclose(o->stream) || bad;
    return bad ? error(o->path, errno ? strerror(errno) : "cannot be written") : 0;
}

static int convert(const Checkpoint *c, const char *folder) {
    bool made = mkdir(folder, 0777) == 0;
    if (!made && errno != EEXIST) return error(folder, strerror(errno));
    Output outputs[2] = {{0}};
    int bad = write_aside(&outputs[0], c, folder, "model.safetensors", write_weights);
    bad = bad || write_aside(&outputs[1], c, folder, "config.json", write_config);
    int renamed = 0;
    for (; !bad && renamed < 2; renamed += !bad)
        if (rename(outputs[renamed].aside, outputs[renamed].path))
            bad = error(outputs[renamed].path, strerror(errno));
    for (int i = 0; i < 2; i++) {
        if (bad && outputs[i].stream) unlink(i < renamed ? outputs[i].path : outputs[i].aside);
        free(outputs[i].path);
        free(outputs[i].aside);
    }
    if (bad && made) rmdir(folder);
    return bad;
}

int main(int argc, char **argv) {
    static const char usage[] = "usage: from_llama2c MODEL.bin -o DIR\n\n"
                                "Writes DIR/config.json and DIR/model.safetensors, for `attnc import DIR -o SPEC`.\n";
    if (argc == 2 && strcmp(argv[1], "--help") == 0) return fputs(usage, stdout) < 0;
    if (argc != 4 || strcmp(argv[2], "-o") != 0 || !*argv[3]) {
        fputs(usage, stderr);
        return 2;
    }
    Checkpoint c = {.path = argv[1]};
    int status = attn_map_file(c.path, &c.file);
    if (status) return error(c.path, status == EINVAL ? "it is empty, or no regular file" : strerror(status));
    const char *wrong = read_checkpoint(&c);
    status = wrong ? error(c.path, wrong) : convert(&c, argv[3]);
    attn_close_file(&c.file);
    return status;
}
