/* import.h: turns a folder that Hugging Face transformers saved (config.json, model.safetensors), or a GGUF file, into
 * a spec.
 *
 * A family is a table, not code. It lists the keys of its config, a spec with holes, and the names of its tensors.
 *
 * The spec and the tensor list consist of lines. Both may contain
 *     ${name}           the value of a variable; ${#tensor} is the number of rows of a tensor of the file
 *     [cond? text]      the text, if the condition holds; an empty line is omitted
 *     $if cond … $end   the lines between, if the condition holds
 * A condition is one of these tests, or several joined by `&`:
 *     name              the variable is set; `false` counts as unset
 *     !name             the variable is not set
 *     name=word         the variable has this value; the word `$other` stands for the value of the variable `other`
 *     name!=word        the variable has another value
 *     #tensor           the file has the tensor under one of the prefixes
 *     #a<>b             the file has both tensors, and they differ
 *     #a<>sinusoids     the file has the tensor, and it differs from the sinusoids
 * In the spec
 *     $layers N [words] … $end
 * is the body of a layer. It is filled for each of the N layers, with the variable `layer` (from 0) and the variables
 * of keys that hold an entry per layer; repeated bodies become a pattern. Lines of the tensor list have the forms
 *     CANONICAL SOURCE [options of the weights block]
 *     @CANONICAL_STEM SOURCE_STEM     stands before the names of later lines that begin with a dot
 *     prefix P …,  ignore PATTERN …,  buffer PATTERN …   written only where the file has such a tensor
 * A buffer holds no weights: it is ignored, and no note names it. {layer} stands for any number. */
#ifndef IMPORT_H
#define IMPORT_H

#include "../attnc.h"

#include <cjson/cJSON.h>

typedef enum KeyKind {
    KEY_INTEGER,     /* 1 to 2^53 */
    KEY_NATURAL,     /* 0 to 2^53 */
    KEY_BOUND,       /* 1 to 2^53; any number below 1 stands for `otherwise` */
    KEY_REAL,        /* a number that f32 holds, not negative */
    KEY_SHARE,       /* a number, which becomes `none` up to 0, `part` below 1, and `whole` from 1 on */
    KEY_POSITIVE,    /* a number above 0 that f32 holds together with its reciprocal */
    KEY_FLAG,        /* true or false */
    KEY_TEXT,        /* any string */
    KEY_WORD,        /* a word of `values`, "gelu gelu_new=gelu_tanh", which becomes itself or the word behind `=` */
    KEY_WORDS,       /* as KEY_WORD, for the word that a list of words makes when `|` joins them */
    KEY_GATED_WORD,  /* as KEY_WORD; a prefix `gated-` of the word sets the variable `gated` */
    KEY_MUST,        /* a value other than one of `values` is refused. `values` is JSON, with strings unquoted;
                      * null counts as false */
    KEY_QUANTIZED,   /* an object that describes how the file's matrices are quantized, which formats/ has decoded */
    KEY_TOKENS,      /* a token id or a list of token ids */
    KEY_TOKEN,       /* a token id or a list of one id */
    KEY_PAIR,        /* n or [n, m]; sets VARIABLE, and VARIABLE_width if m differs from n */
    KEY_ROPE,        /* the words that follow `position rope`; `values` is the layer type whose object is read */
    KEY_LAYER_TYPES, /* a word of `values` per layer; `otherwise` is a pattern (see layers.c), or "" for no list.
                      * Sets the variable any_WORD where a layer has the word. A variable that begins with `decoder_`
                      * has a word for each of `decoder_layers` in place of `layers` */
    KEY_LAYER_INTEGERS, /* 1 to 2^53, for all layers; or a list with such a number for each layer, or for more layers */
    KEY_LAYER_FLAGS, /* 0 or 1 for each layer, or for more layers; these become the words no and yes */
    KEY_LAYER_MARKS, /* a list of layers, which get the word `values` in the list that the variable already has */
    KEY_LAYER_RUNS,  /* [[[words], times], …]; a list that the variable already has takes precedence */
    KEY_DERIVED,     /* no key: sets the variable to `otherwise` if the condition `values` holds or is NULL */
    KEY_REFUSED,     /* no key: fails with the message `otherwise` if the condition `values` holds */
    KEY_NOTED,       /* no key: adds the note `otherwise` if the condition `values` holds */
} KeyKind;

/* `names` lists the key and its older names; a dot leads into an object, as in "attn_config.alibi". `otherwise` is the
 * value that an absent key stands for, and `null` the value that a null stands for. In both, NULL makes the case an
 * error, "" leaves the variable unset, "=a * b + c" is computed from variables from left to right, "$name" is the value
 * of that variable, and "~a b" the ranges of rows that exchange the halves of each of `a` heads of `b` rows. */
typedef struct ConfigKey {
    const char *names, *variable;
    KeyKind kind;
    const char *otherwise, *null, *values;
} ConfigKey;

#define INTEGER(names, variable) {names, variable, KEY_INTEGER, NULL, NULL, NULL}
#define INTEGER_OR(names, variable, otherwise, null) {names, variable, KEY_INTEGER, otherwise, null, NULL}
#define REAL_OR(names, variable, otherwise, null) {names, variable, KEY_REAL, otherwise, null, NULL}
#define POSITIVE_OR(names, variable, otherwise, null) {names, variable, KEY_POSITIVE, otherwise, null, NULL}
/* null counts as false, as in Python. */
#define FLAG_OR(names, variable, otherwise) {names, variable, KEY_FLAG, otherwise, "", NULL}
#define WORD_OR(names, variable, otherwise, values) {names, variable, KEY_WORD, otherwise, NULL, values}
#define TOKEN_OR(names, variable, otherwise) {names, variable, KEY_TOKEN, otherwise, "", NULL}
#define TOKENS_OR(names, variable, otherwise) {names, variable, KEY_TOKENS, otherwise, "", NULL}
#define MUST(names, values) {names, NULL, KEY_MUST, "", NULL, values}
#define DERIVED(variable, value, condition) {"", variable, KEY_DERIVED, value, NULL, condition}
#define REFUSED(condition, message) {"", NULL, KEY_REFUSED, message, NULL, condition}
#define NOTED(condition, message) {"", NULL, KEY_NOTED, message, NULL, condition}
/* Older configs have theta outside of the object. */
#define ROPE(names, variable, theta, type) ROPE_OR(names, variable, theta, "", type)
/* `scaling` is what the spec says after the theta where the object is absent or null. */
#define ROPE_OR(names, variable, theta, scaling, type) {names, variable, KEY_ROPE, theta, scaling, type}
#define LAYER_TYPES(otherwise, types) {"layer_types", "layer_type", KEY_LAYER_TYPES, otherwise, otherwise, types}

extern const char activation_words[]; /* of model/activations.def, in the form of KEY_WORD's `values` */
#define ACTIVATIONS activation_words

typedef struct Family {
    const char *types;       /* "roberta=Roberta xlm-roberta=XLMRoberta": model_type and the beginning of its classes */
    const char *part;        /* of a model of several parts, the word of --part that selects this family; or NULL */
    const char *title;       /* the first comment of the spec */
    const char *classes;     /* "Model=hidden ForCausalLM=logits": endings of class names, and the value of the variable
                              * `task`. The first entry applies to a config that names no class. `rest` means that the
                              * class has a head that a spec cannot express */
    const ConfigKey *keys;
    size_t n_keys;
    const char *irrelevant;  /* keys without effect, besides those of every family */
    const char *prefixes;    /* prefixes that tensor names may have */
    const char *spec, *tensors;
    const char *inside;      /* the object of the config that is itself a config, of the family `inner`; or NULL. The
                              * spec and the tensors are then those of `inner`, with this family's prefixes, followed by
                              * this family's tensor lines */
    const char *instead;     /* an object that takes the place of `inside` where the config has it; or NULL */
    const struct Family *inner;
    const char *outside;     /* keys of `inner` that are always read from the outer config */
} Family;

#define KEYS(array) .keys = (array), .n_keys = sizeof(array) / sizeof *(array)

extern const Family *const families[]; /* ended by NULL */
extern const Family *const gguf_families[]; /* likewise; their types are architectures of GGUF files */
/* The family of the list that has this type, or NULL. */
const Family *family_find(Arena *arena, const Family *const *list, const char *type);
/* The reason why this type is not supported, or NULL for an unknown type. */
const char *family_refusal(const char *type);

typedef struct Variable {
    const char *name, *text; /* the text "" means unset */
    struct Variable *next;
} Variable;

/* The tokens whose logits in the last row are the score of a text: one, or one for and one against. */
typedef struct Score {
    int n; /* 0: the model has another head */
    int64_t tokens[2];
    const char *origin; /* what named them, for messages */
} Score;

/* What becomes of quantized numbers that only f32 holds. */
typedef enum Numbers {
    NUMBERS_EXACT,   /* f32 */
    NUMBERS_NEAREST, /* the nearest integers of a smaller precision; a model without quantized numbers is refused */
    NUMBERS_SMALL,   /* the same, and any model is taken */
    NUMBERS_CHOSEN,  /* the caller states the precision of the whole model, and import states none */
} Numbers;

typedef struct ImportOptions {
    const char *name;           /* the name of the model; NULL takes that of its family */
    const char *part;           /* the word of --part, or NULL */
    int64_t seq;                /* the number of --seq, or 0 without it */
    const char *const *ignored; /* the keys of --ignore-key, with dots into objects, ended by NULL; or NULL */
    Score score;                /* of --score */
    Numbers numbers;
} ImportOptions;

/* A variable with a text for each layer. */
typedef struct LayerList {
    const char *variable, **texts;
    int64_t layers;
    struct LayerList *next;
} LayerList;

typedef struct Import {
    Arena *arena;
    const char *config_path, *weights_path;
    const char *folder;        /* of the model itself; NULL for a GGUF file */
    const char *kind;          /* what a config calls the type of its model, for messages: model_type or architecture */
    const char *origin;        /* what the spec is imported from, for its second comment */
    cJSON *config;
    const Family *family;
    const char *type, *class_name;
    TensorFile *file;
    Variable *variables;
    LayerList *layer_lists;
    const ImportOptions *options;
    struct Sentence *sentence; /* NULL without modules of sentence-transformers */
    Score score;               /* of --score, or of a module of sentence-transformers */
    const char *within;        /* the key of the object that `config` points to, or NULL for the whole config */
    bool *ignored_met;         /* [options->ignored]: whether the config has that key and nothing else reads it */
    Text buffers; /* patterns of `buffer`, separated by spaces */
    Text notes;  /* lines; each becomes a comment of the spec and is shown to the user */
    const char *precision_note; /* likewise, of precision.c; or NULL */
    const char *rounded;        /* the formats whose numbers are rounded and what they become; or NULL */
    int64_t file_bytes;         /* of all files of the weights, where precision.c has read them */
} Import;

/* What an import gives. */
typedef struct Imported {
    const char *spec;       /* formatted, and checked against the file's tensors */
    const char *notes;      /* lines for the user */
    const char *precision_note, *rounded; /* as of Import; the note is one more line */
    int64_t file_bytes;     /* as of Import */
    const char *weights;    /* what --weights takes with this spec */
    const char *folder;     /* of the model itself; NULL for a GGUF file */
    const char *class_name; /* the class that saved the model; NULL for a GGUF file */
    const cJSON *config;
    const char *activation; /* the Python class of what follows the logits, or NULL */
    bool scores;            /* the head is a Score */
} Imported;

/* --- spec.c */
Imported import_spec(Arena *arena, const char *source, const char *spec_path, const ImportOptions *options);

/* --- precision.c */
/* The type of each unit of the model of a spec at STAGE_REWRITE, by the file's matrices. NULL where all are f32, and
 * for a file without quantized matrices, unless those of floats count. A note tells what only f32 holds. */
const WeightType *precision_find(Import *import, const Compilation *spec, bool of_floats);
/* Returns the text of the spec with lines `precision` that give its units these types, and sets the types in its model.
 * The text of the spec states no precision. */
const char *precision_stated(const Import *import, Compilation *spec, const WeightType *types);

/* --- hf.c and gguf.c: set what the import knows of its source, from config_path to file. */
void hf_source(Import *import, const char *directory);
bool gguf_is(Arena *arena, const char *path); /* whether PATH is a file that begins as GGUF files do */
void gguf_source(Import *import, const char *path);

/* --- variables.c */
const char *variable_get(const Import *import, const char *name, size_t size); /* NULL where it is unset */
void variable_set(Import *import, const char *name, const char *text);
/* The meaning of `word` in the list "a b=c d": the text after its `=`, or the word itself; NULL if the list lacks
 * it. */
const char *word_find(Arena *arena, const char *words, const char *word);
const char *next_word(const char **at, size_t *size); /* NULL at the end */
_Noreturn void key_refuse(const Import *import, const ConfigKey *key, const cJSON *item, const char *wanted);
/* Adds a line to the notes. Its arguments may hold any bytes. */
void import_note(Import *import, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* --- folder.c: the folder that import reads. For any other path, the failure says what the path is and what to do. */
const char *folder_of(Arena *arena, const char *path); /* PATH, or the folder of PATH if PATH is a config.json */
const char *folder_config(Arena *arena, const char *folder);
const char *folder_of_weights(Arena *arena, const char *folder); /* folder_weights of formats/, never NULL */

/* --- score.c */
int64_t score_token(const char *text);                       /* -1 where it is no number of a token */
void score_task(Import *import);                             /* sets the variables of a head for import->score */
void score_check(const Import *import, const char *body);    /* fails where the family's body has no such head */

/* --- sentence.c: the modules that sentence-transformers adds behind a model. */
/* Reads DIRECTORY/modules.json where it exists; returns the folder of the model itself. */
const char *sentence_read(Import *import, const char *directory);
void sentence_task(Import *import); /* makes the model output its hidden rows, without the head of its class */
/* The most rows of its tokenizer, or 0 without a limit. Without modules, a tokenizer cuts the texts of a classifier. */
int64_t sentence_rows(Import *import);
/* What --weights takes of dense modules behind the model's own file, ",NAME=PATH" for each, or "". */
const char *sentence_weights(Import *import);
/* The prompts of config_sentence_transformers.json, by their names, and the name of the default one; each may be NULL.
 */
typedef struct Prompts {
    const char *path;
    const cJSON *all;
    const char *chosen;
} Prompts;
Prompts sentence_prompts(const Import *import);
bool sentence_lowers(const Import *import); /* whether the modules convert texts to lower case */
/* What they say of `truncation_side`, with the path of the file that says it; or NULL. */
const cJSON *sentence_side(const Import *import, const char **path);
const char *sentence_activation(const Import *import); /* the Python class of what follows the logits, or NULL */
/* The spec with the head of the modules instead of the family's own, without the name and the weights block. */
void spec_body(Import *import, Text *out);
void sentence_tensors(const Import *import, Text *out); /* the first lines of the weights block */

/* --- generation.c: reads generation_config.json, or the same keys of config.json. Sets the variables `start`, `end`
 * and `pad`, and returns the block `generation` of the spec, or "". */
const char *generation_read(Import *import);
/* --- text_rules.c: the block `text` of the spec, or "" where the source says nothing of texts. */
const char *text_rules(Import *import);
void chat_note(Import *import, const char *origin); /* notes that the chat template of a file or key is not applied */

/* --- tokenizer_config.c: notes the places where the object of tokenizer_config.json contradicts tokenizer.json. */
void tokenizer_config_notes(Import *import, const cJSON *tokenizer, const cJSON *config);
/* The step of this type in `normalizer` or `pre_tokenizer`, alone or in a sequence; NULL without it. */
const cJSON *tokenizer_step(const cJSON *tokenizer, const char *part, const char *type);

/* --- bound.c: the bound of a sequence in rows. */
void bound_find(Import *import);
void bound_note(Import *import); /* notes the cost of a longer bound */

/* --- ignored.c: the keys that --ignore-key names. */
void ignored_check(Import *import); /* fails if the config lacks a key of options->ignored */
bool key_ignored(const Import *import, const char *path); /* for keys that nothing else reads */
void ignored_finish(const Import *import); /* to be called after reading: fails if an ignored key was read */

/* --- unknown.c: refuses keys of the config, in any of its objects, that nothing reads. */
void unknown_keys(Import *import);

/* --- config.c */
cJSON *config_read(Arena *arena, const char *path); /* an object */
cJSON *config_optional(Arena *arena, const char *path); /* the same, or NULL where there is no such file */
cJSON *config_list(Arena *arena, const char *path);
cJSON *config_new(Arena *arena); /* an object without members */
const cJSON *config_find(const Import *import, const char *name, size_t size); /* or NULL; name may hold dots */
char *config_value(Arena *arena, const cJSON *item); /* short JSON, for messages */

/* --- keys.c: turns the config's keys into variables. */
void keys_read(Import *import);
/* KEY_LEADS is an object that holds keys of the family. */
typedef enum KeyUse { KEY_UNKNOWN, KEY_OBEYED, KEY_IRRELEVANT, KEY_LEADS } KeyUse;
KeyUse key_use(const Import *import, const cJSON *item, const char *path);
/* --- layers.c: keys with an entry for each layer; `item` is NULL for a key that is absent or null. */
void layer_list_read(Import *import, const ConfigKey *key, const cJSON *item);
void layer_variables_set(Import *import, int64_t layer);

/* --- inner.c: refuses unknown keys and reads all others. The config of an inner family is read in the same way, and
 * the inner family becomes the family of the import. */
void keys_read_all(Import *import);

/* --- rope.c */
const char *rope_text(Import *import, const ConfigKey *key, const cJSON *object);

/* --- conditions.c */
bool condition_holds(const Import *import, const char *text, size_t size);
const FileTensor *tensor_of(const Import *import, const char *name); /* under one of the prefixes; or NULL */

/* --- fill.c */
void fill_spec(Import *import, Text *out);
/* The lines of the weights block, without those of tensors that `table` lacks; all of them for an empty table. */
void fill_tensors(Import *import, const WeightTable *table, Text *out);
bool is_buffer(const Import *import, const char *tensor);

#endif
