/* folder.c: finds the folder with config.json and weights. It recognizes other paths where possible, so that the
 * failure says what the path holds and how to turn that into such a folder. */
#include "../formats/tensor_file.h"
#include "import.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define AS_SAVED "a folder as transformers saves it, with config.json and model.safetensors, is needed"

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* ---------------------------------------- a path that is no folder */

/* Whether a text has only letters, digits and the marks of names on a model hub. */
static bool is_plain(const char *text) {
    return !text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/")];
}

/* Whether the path looks like NAME or OWNER/NAME on a model hub. */
static bool is_hub_name(const char *path) {
    const bool nested = strchr(path, '/') != strrchr(path, '/');
    return is_plain(path) && *path && !strchr("./-", *path) && !nested && !text_ends(path, "/") && strlen(path) < 100;
}

static _Noreturn void not_there(const char *path) {
    const char *name = path_name(path);
    if (!*path) fail("the name of the folder to import is empty");
    if (!is_hub_name(path)) fail("%s: there is no such folder; " AS_SAVED, path);
    fail("%s: there is no such folder. If it is the name of a model on the hub, `hf download %s --local-dir %s` "
        "(before, `huggingface-cli download`) makes the folder %s of it; then: attnc import %s -o SPEC", path, path,
        name, name, name);
}

#define WEIGHTS_ALONE "weights as PyTorch saves them; give the folder that holds config.json and them, as " \
    "pytorch_model.bin"

/* The kind of a file is the first row whose magic or whose ending of the name matches. */
static const struct {
    const char *magic, *ending, *what;
} file_kinds[] = {
    {"\x93NUMPY", ".npy", "an array of numpy; " AS_SAVED},
    {NULL, ".npz", "an archive of numpy's arrays without a config; " AS_SAVED},
    {NULL, ".onnx", "an ONNX graph; import reads a config and weights, so give the folder it was exported from"},
    {"\x89HDF", ".h5", "an HDF5 file, as TensorFlow and Keras save weights; " AS_SAVED},
    {NULL, ".msgpack", "weights as Flax saves them; " AS_SAVED},
    {NULL, ".attn", "a spec already; attnc compile takes it"},
    {NULL, ".attnw", "packed weights, which --weights takes; " AS_SAVED},
    {NULL, ".zip", "an archive; unpack it and give the folder"},
    {"\x1f\x8b", ".gz", "an archive; unpack it and give the folder"},
    {NULL, ".tar", "an archive; unpack it and give the folder"},
    {"PK\003\004", ".pt", WEIGHTS_ALONE},
    {"\x80\x02", ".pth", WEIGHTS_ALONE},
    {NULL, ".bin", WEIGHTS_ALONE},
    {NULL, ".ckpt", WEIGHTS_ALONE},
};

static _Noreturn void is_gguf(const char *folder, const char *name) {
    fail("%s/%s: a GGUF file, which is a model by itself: attnc import %s/%s -o SPEC", folder, name, folder, name);
}

static bool begins_as(const MappedFile *file, const char *magic) {
    return magic && file->size >= strlen(magic) && memcmp(file->data, magic, strlen(magic)) == 0;
}

static _Noreturn void is_file(Arena *arena, const char *path, const char *folder) {
    if (text_ends(path, ".safetensors") || text_ends(path, ".safetensors.index.json")
        || text_ends(path, ".bin.index.json"))
        fail("%s: weights alone; give the folder that holds them and config.json: attnc import %s -o SPEC", path,
            folder);
    if (text_ends(path, ".json")) fail("%s: one file of a model; give its folder, or its config.json: attnc import %s "
        "-o SPEC", path, folder);
    MappedFile file = file_map(arena, path);
    if (text_ends(path, ".gguf")) fail("%s: it does not begin with `GGUF`, as a GGUF file does", path);
    for (size_t i = 0; i < sizeof file_kinds / sizeof *file_kinds; i++)
        if (begins_as(&file, file_kinds[i].magic) || text_ends(path, file_kinds[i].ending))
            fail("%s: %s", path, file_kinds[i].what);
    fail("%s: is a file; " AS_SAVED, path);
}

const char *folder_of(Arena *arena, const char *path) {
    struct stat info;
    if (stat(path, &info) != 0) {
        if (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG) not_there(path);
        fail_system(errno, "%s: cannot be reached", path);
    }
    const char *slash = strrchr(path, '/');
    const char *folder = !slash ? "." : slash == path ? "/" : arena_copy(arena, path, (size_t)(slash - path));
    if (!S_ISDIR(info.st_mode) && strcmp(path_name(path), "config.json") == 0) return folder;
    if (!S_ISDIR(info.st_mode)) is_file(arena, path, folder);
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/') size--;
    return arena_copy(arena, path, size);
}

/* ---------------------------------------- a folder that lacks something */

enum { MOST_NAMES = 10000 };

typedef struct Listing {
    Arena *arena;
    const char *path, **names; /* sorted */
    int count;
} Listing;

static Listing list_folder(Arena *arena, const char *path) {
    Listing list = {.arena = arena, .path = path};
    DIR *folder = opendir(path);
    int room = 0;
    if (!folder) fail_system(errno, "%s: cannot be listed", path);
    for (const struct dirent *entry; list.count < MOST_NAMES && (entry = readdir(folder));) {
        if (entry->d_name[0] == '.') continue;
        list.names = arena_grow(arena, list.names, list.count, &room, sizeof *list.names);
        list.names[list.count++] = arena_copy(arena, entry->d_name, strlen(entry->d_name));
    }
    closedir(folder);
    if (list.count) qsort(list.names, (size_t)list.count, sizeof *list.names, by_text);
    return list;
}

/* The first name with this beginning and ending, or NULL. */
static const char *named(const Listing *list, const char *beginning, const char *ending) {
    for (int i = 0; i < list->count; i++)
        if (strncmp(list->names[i], beginning, strlen(beginning)) == 0 && text_ends(list->names[i], ending))
            return list->names[i];
    return NULL;
}

static bool has(const Listing *list, const char *name) {
    const char *found = named(list, name, name);
    return found && strlen(found) == strlen(name);
}

/* A string of the JSON object in a file of the folder; NULL where it holds more than letters, digits and some marks. */
static const char *text_in(const Listing *list, const char *file, const char *key) {
    const cJSON *object = config_read(list->arena, arena_printf(list->arena, "%s/%s", list->path, file));
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (cJSON_IsArray(item)) item = item->child;
    const char *text = cJSON_IsString(item) ? item->valuestring : NULL;
    return text && *text && is_plain(text) && strlen(text) < 200 ? text : NULL;
}

static _Noreturn void is_adapter(const Listing *list) {
    static const char tasks[] = "CAUSAL_LM=ForCausalLM SEQ_CLS=ForSequenceClassification "
        "SEQ_2_SEQ_LM=ForSeq2SeqLM TOKEN_CLS=ForTokenClassification QUESTION_ANS=ForQuestionAnswering "
        "FEATURE_EXTRACTION=ForFeatureExtraction";
    const char *base = text_in(list, "adapter_config.json", "base_model_name_or_path");
    const char *type = text_in(list, "adapter_config.json", "peft_type");
    const char *task = text_in(list, "adapter_config.json", "task_type");
    const char *class = task ? word_find(list->arena, tasks, task) : NULL;
    fail("%s: adapter_config.json makes it an adapter (%s) on top of %s, not a model; python3 -c 'import peft; "
        "peft.AutoPeftModel%s.from_pretrained(\"%s\").merge_and_unload().save_pretrained(\"DIR\")' writes both as one "
        "model: attnc import DIR -o SPEC", list->path, type ? type : "of PEFT", base ? base : "another model",
        class ? class : "", list->path);
}

/* A folder inside this folder, or inside the `snapshots` of a cache, that has a config.json; or NULL. */
static const char *model_inside(const Listing *list, bool is_cache) {
    for (int i = 0; i < list->count; i++) {
        const char *inside = arena_printf(list->arena, "%s/%s", list->path, list->names[i]);
        if (!is_folder(inside)) continue;
        if (file_exists(arena_printf(list->arena, "%s/config.json", inside))) return inside;
        if (is_cache || strcmp(list->names[i], "snapshots") != 0) continue;
        Listing snapshots = list_folder(list->arena, inside);
        const char *snapshot = model_inside(&snapshots, true);
        if (snapshot) return snapshot;
    }
    return NULL;
}

static _Noreturn void no_config(const Listing *list) {
    const char *path = list->path, *name;
    if (has(list, "model_index.json"))
        fail("%s: model_index.json makes it a pipeline of several models (diffusers), each in a folder of its own; "
            "import takes one of them, for example %s/text_encoder", path, path);
    if ((name = named(list, "consolidated", "")) || named(list, "tokenizer.model.v", "") || has(list, "params.json"))
        fail("%s: no config.json, but %s, as LLaMA's and Mistral's makers save models themselves; take the same model "
            "as transformers saves it (LLaMA's names end in -hf, or convert_llama_weights_to_hf.py of transformers "
            "converts it)", path, name ? name : "params.json");
    if ((name = named(list, "", ".gguf"))) is_gguf(path, name);
    const char *inside = model_inside(list, false);
    if (inside) fail("%s: no config.json; there is one in %s: attnc import %s -o SPEC", path, inside, inside);
    if ((name = named(list, "", ".safetensors")) || (name = named(list, "pytorch_model", ""))
        || (name = named(list, "", ".bin")))
        fail("%s: no config.json beside %s; config.json states the sizes of the model and is saved with it", path,
            name);
    if ((name = named(list, "", ".onnx")) || (name = named(list, "", ".h5")) || (name = named(list, "", ".msgpack"))
        || (name = named(list, "", ".npz")))
        fail("%s: no config.json, only %s; " AS_SAVED, path, name);
    if ((name = named(list, "tokenizer", "")) || (name = named(list, "vocab.", "")))
        fail("%s: a tokenizer alone (%s), without a model's config.json; " AS_SAVED, path, name);
    fail("%s: %s; " AS_SAVED, path, list->count ? "no config.json" : "the folder is empty");
}

/* The Python call that loads the folder's model by its class and saves it again. */
static const char *resaving(const Listing *list, const char *option) {
    const char *class = text_in(list, "config.json", "architectures");
    return arena_printf(list->arena, "python3 -c 'import transformers; transformers.%s.from_pretrained(\"%s\"%s)"
        ".save_pretrained(\"%s\")' writes model.safetensors beside it", class ? class : "AutoModel", list->path, option,
        list->path);
}

static _Noreturn void no_weights(const Listing *list) {
    const char *path = list->path, *name;
    if ((name = named(list, "pytorch_model-", ".bin")))
        fail("%s: %s is a part of the weights, and pytorch_model.bin.index.json, which lists the parts, is missing",
            path, name);
    if (has(list, "tf_model.h5"))
        fail("%s: no model.safetensors, but tf_model.h5 of TensorFlow; with a version of transformers below 5, %s",
            path, resaving(list, ", from_tf=True"));
    if (has(list, "flax_model.msgpack"))
        fail("%s: no model.safetensors, but flax_model.msgpack of Flax; with a version of transformers below 5, %s",
            path, resaving(list, ", from_flax=True"));
    if ((name = named(list, "model-", ".safetensors")))
        fail("%s: %s is a part of the weights, and model.safetensors.index.json, which lists the parts, is missing",
            path, name);
    if ((name = named(list, "", ".safetensors")))
        fail("%s: no model.safetensors; if %s is the whole model, give it that name", path, name);
    if ((name = named(list, "", ".gguf"))) is_gguf(path, name);
    if ((name = named(list, "", ".onnx")) || (name = named(list, "onnx", "")))
        fail("%s: no model.safetensors, but %s; import reads no ONNX graphs: give the folder it was exported from",
            path, name);
    if ((name = named(list, "consolidated", "")) || (name = named(list, "", ".pth"))
        || (name = named(list, "", ".pt")) || (name = named(list, "", ".bin")))
        fail("%s: no model.safetensors, but %s, which is not as transformers saves weights; " AS_SAVED, path, name);
    fail("%s: no model.safetensors, nor any other weights; " AS_SAVED, path);
}

const char *folder_config(Arena *arena, const char *folder) {
    const char *path = arena_printf(arena, "%s/config.json", folder);
    bool adapter = file_exists(arena_printf(arena, "%s/adapter_config.json", folder));
    if (!adapter && file_exists(path)) return path;
    Listing list = list_folder(arena, folder);
    if (adapter) is_adapter(&list);
    no_config(&list);
}

const char *folder_of_weights(Arena *arena, const char *folder) {
    const char *path = folder_weights(arena, folder);
    if (path) return path;
    Listing list = list_folder(arena, folder);
    no_weights(&list);
}
