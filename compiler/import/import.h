/* import.h: from a folder as Hugging Face transformers saves it (config.json, model.safetensors) to a spec.
 *
 * A family is a table, not code: what its config's keys feed, a spec with holes, and the names of its tensors.
 *
 * The spec and the tensor list are lines. In both
 *     ${name}           a variable's value; ${#tensor} is the number of rows of a tensor of the file
 *     [cond? text]      the text, if the condition holds; a line that comes out empty is left out
 *     $if cond … $end   lines
 * A condition is atoms joined by `&`: name (it is set; false is not), !name, name=word, name!=word
 * (a word `$other` is a variable's value), #tensor (the file has it, under one of the prefixes), #a<>b (the file has
 * both tensors, and their numbers differ), #a<>sinusoids (the file has it, with other numbers than those). In the spec
 *     $layers N [words] … $end
 * is a layer's body, filled once for each of the N layers, with the variables `layer` (from 0) and those of the keys
 * that hold an entry a layer; bodies that repeat become a pattern. A line of the tensor list is
 *     CANONICAL SOURCE [options of the weights block]
 *     @CANONICAL_STEM SOURCE_STEM     stands before the names of later lines that begin with a dot
 *     prefix P …,  ignore PATTERN …,  buffer PATTERN …   only those that occur in the file are written
 * Buffers are ignored as well, and no note names them: no number of theirs is a weight. {layer} is any number. */
#ifndef IMPORT_H
#define IMPORT_H

#include "../attnc.h"

#include <cjson/cJSON.h>

typedef enum KeyKind {
    KEY_INTEGER,     /* 1 to 2^53 */
    KEY_NATURAL,     /* 0 to 2^53 */
    KEY_REAL,        /* a finite number, not negative */
    KEY_FLAG,        /* true or false */
    KEY_TEXT,        /* any string */
    KEY_WORD,        /* a string of `values`, "gelu gelu_new=gelu_tanh": as it is, or what stands behind `=` */
    KEY_MUST,        /* its value, where it stands, is one of `values`, as JSON writes them, strings without quotes;
                      * null is as good as false */
    KEY_TOKENS,      /* token id or list of ids */
    KEY_TOKEN,       /* token id, or a list of one */
    KEY_PAIR,        /* n or [n, m]: variable, and variable_width where m is another number */
    KEY_ROPE,        /* what stands behind `position rope`; `values`: the layer type whose object is taken */
    KEY_LAYER_TYPES, /* a word a layer; `values`: the words; `otherwise`: a pattern, see layers.c, or "": no list.
                      * The variable any_WORD is set where a layer has it */
    KEY_LAYER_FLAGS, /* 0 or 1 a layer, or for more layers: the words no and yes */
    KEY_LAYER_RUNS,  /* [[[words], times], …]; where the variable has a list already, that counts */
    KEY_DERIVED,     /* no key: the variable becomes `otherwise` where the condition `values` holds (NULL: always) */
    KEY_REFUSED,     /* no key: where the condition `values` holds, the failure `otherwise` */
    KEY_NOTED,       /* no key: where the condition `values` holds, the note `otherwise` */
} KeyKind;

/* `names`: the key, then older names of it; a dot leads into an object: "attn_config.alibi".
 * `otherwise`, `null`: the value where the key is absent, where it is null; NULL: that is an error; "": unset;
 * "=a * b + c": computed from variables, left to right; "$name": what that variable holds. */
typedef struct ConfigKey {
    const char *names, *variable;
    KeyKind kind;
    const char *otherwise, *null, *values;
} ConfigKey;

#define INTEGER(names, variable) {names, variable, KEY_INTEGER, NULL, NULL, NULL}
#define INTEGER_OR(names, variable, otherwise, null) {names, variable, KEY_INTEGER, otherwise, null, NULL}
#define REAL_OR(names, variable, otherwise, null) {names, variable, KEY_REAL, otherwise, null, NULL}
/* A null of Python is false. */
#define FLAG_OR(names, variable, otherwise) {names, variable, KEY_FLAG, otherwise, "", NULL}
#define WORD_OR(names, variable, otherwise, values) {names, variable, KEY_WORD, otherwise, NULL, values}
#define TOKEN_OR(names, variable, otherwise) {names, variable, KEY_TOKEN, otherwise, "", NULL}
#define TOKENS_OR(names, variable, otherwise) {names, variable, KEY_TOKENS, otherwise, "", NULL}
#define MUST(names, values) {names, NULL, KEY_MUST, "", NULL, values}
#define DERIVED(variable, value, condition) {"", variable, KEY_DERIVED, value, NULL, condition}
#define REFUSED(condition, message) {"", NULL, KEY_REFUSED, message, NULL, condition}
#define NOTED(condition, message) {"", NULL, KEY_NOTED, message, NULL, condition}
/* Older configs have theta beside the object. */
#define ROPE(names, variable, theta, type) {names, variable, KEY_ROPE, theta, theta, type}
#define LAYER_TYPES(otherwise, types) {"layer_types", "layer_type", KEY_LAYER_TYPES, otherwise, otherwise, types}

#define ACTIVATIONS                                                                                               \
    "relu relu2 gelu gelu_python=gelu gelu_new=gelu_tanh gelu_pytorch_tanh=gelu_tanh gelu_python_tanh=gelu_tanh " \
    "gelu_fast=gelu_tanh gelu_accurate=gelu_tanh silu swish=silu quick_gelu"

typedef struct Family {
    const char *types;       /* "roberta=Roberta xlm-roberta=XLMRoberta": model_type, and how its classes begin */
    const char *title;       /* the first comment of the spec */
    const char *classes;     /* "Model=hidden ForCausalLM=logits": how classes end, and the variable `task`; the first
                              * one is taken where the config names none. `rest`: the class's head cannot be said */
    const ConfigKey *keys;
    size_t n_keys;
    const char *irrelevant;  /* keys that change nothing here, besides those of every family */
    const char *prefixes;    /* that tensor names may have */
    const char *spec, *tensors;
    const char *inside;      /* the object of the config that is the config of `inner`, with its spec and tensors; NULL:
                              * none. Then the prefixes are this family's, and its tensor lines come last */
    const struct Family *inner;
    const char *outside;     /* keys of `inner` that are read from the outer config, whether or not it has them */
} Family;

#define KEYS(array) .keys = (array), .n_keys = sizeof(array) / sizeof *(array)

extern const Family *const families[]; /* ended by NULL */
const char *family_refusal(const char *type); /* why this type is no family; NULL: it is not known at all */

typedef struct Variable {
    const char *name, *text; /* text "": unset */
    struct Variable *next;
} Variable;

typedef struct ImportOptions {
    const char *name;           /* of the model; NULL: as its family is called */
    int64_t seq;                /* of --seq; 0: not given */
    const char *const *ignored; /* of --ignore-key, keys with dots before those in objects, ended by NULL; NULL: none */
} ImportOptions;

/* A variable that has a text for each layer. */
typedef struct LayerList {
    const char *variable, **texts;
    struct LayerList *next;
} LayerList;

typedef struct Import {
    Arena *arena;
    const char *config_path, *weights_path;
    cJSON *config;
    const Family *family;
    const char *type, *class_name;
    TensorFile *file;
    Variable *variables;
    LayerList *layer_lists;
    const ImportOptions *options;
    struct Sentence *sentence; /* NULL: no modules of sentence-transformers */
    const char *within;        /* the object of the config that `config` is; NULL: it is the whole config */
    bool *ignored_met;         /* of each of options->ignored: a key that nothing else obeys */
    Text buffers; /* patterns of `buffer`, parted by spaces */
    Text notes;  /* lines, each a comment of the spec and a word to the user */
} Import;

/* --- hf.c: the spec, formatted and checked against the file's tensors; *notes is what the user should know. */
const char *import_spec(Arena *arena, const char *directory, const char *spec_path, const ImportOptions *options,
                        const char **notes);

/* --- variables.c */
const char *variable_get(const Import *import, const char *name, size_t size); /* NULL: unset */
void variable_set(Import *import, const char *name, const char *text);
/* The word of "a b=c d" that stands for `word`: what is behind its `=`, else itself; NULL: none. */
const char *word_find(Arena *arena, const char *words, const char *word);
const char *next_word(const char **at, size_t *size); /* NULL at the end */
_Noreturn void key_refuse(const Import *import, const ConfigKey *key, const cJSON *item, const char *wanted);
/* A line of the notes, whatever bytes its arguments hold. */
void import_note(Import *import, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* --- folder.c: what import is given. A failure says what it is, where it is something else, and what to do. */
const char *folder_of(Arena *arena, const char *path); /* PATH, or the folder of a PATH that is a config.json */
const char *folder_config(Arena *arena, const char *folder);
const char *folder_weights(Arena *arena, const char *folder); /* model.safetensors or its index */

/* --- sentence.c: the modules that sentence-transformers puts behind a model. */
/* Reads DIRECTORY/modules.json, where there is one; gives the folder of the model itself. */
const char *sentence_read(Import *import, const char *directory);
void sentence_task(Import *import); /* the model gives its hidden rows, whatever head its class has */
int64_t sentence_rows(const Import *import); /* the most that its tokenizer gives; 0: not said */
const char *sentence_weights(Import *import); /* the file of a dense module; NULL: none */
/* The spec with the head of the modules in place of the family's own. */
const char *sentence_body(Import *import, const char *body);
void spec_body(Import *import, Text *out); /* the spec without its name and its weights block, with that head */
void sentence_tensors(const Import *import, Text *out); /* lines of the weights block, in front of the others */

/* --- bound.c: the most rows of a sequence. */
void bound_find(Import *import);
void bound_note(Import *import); /* what the rows that were cut off would cost */

/* --- ignored.c: keys that --ignore-key names. */
void ignored_check(Import *import); /* each of options->ignored stands in the config, or it is a failure */
bool key_ignored(const Import *import, const char *path); /* asked only of keys that nothing obeys */
void ignored_finish(const Import *import); /* after the keys are read: those that were obeyed cannot be ignored */

/* --- unknown.c: keys of the config that nothing knows, whatever their object. */
void unknown_keys(Import *import);

/* --- config.c */
cJSON *config_read(Arena *arena, const char *path); /* an object */
cJSON *config_list(Arena *arena, const char *path);
const cJSON *config_find(const Import *import, const char *name, size_t size); /* or NULL; name may hold dots */
char *config_value(Arena *arena, const cJSON *item); /* for messages: JSON, short */

/* --- keys.c: the config's keys become variables. */
void keys_read(Import *import);
typedef enum KeyUse { KEY_UNKNOWN, KEY_OBEYED, KEY_IRRELEVANT, KEY_LEADS } KeyUse; /* leads: into an object of keys */
KeyUse key_use(const Import *import, const cJSON *item, const char *path);
/* --- layers.c: keys with an entry a layer; `item` NULL: the key is absent or null. */
void layer_list_read(Import *import, const ConfigKey *key, const cJSON *item);
void layer_variables_set(Import *import, int64_t layer);

/* --- inner.c: refuses unknown keys and reads all others. Where the family holds another one, that one's keys are read
 * too, and it becomes the import's family. */
void keys_read_all(Import *import);

/* --- rope.c */
const char *rope_text(Import *import, const ConfigKey *key, const cJSON *object);

/* --- conditions.c */
bool condition_holds(const Import *import, const char *text, size_t size);
const FileTensor *tensor_of(const Import *import, const char *name); /* under one of the prefixes; or NULL */

/* --- fill.c */
void fill_spec(Import *import, Text *out);
/* The lines of the weights block; those of tensors that `table` lacks are left out, none if it is empty. */
void fill_tensors(Import *import, const WeightTable *table, Text *out);
bool is_buffer(const Import *import, const char *tensor);

#endif
