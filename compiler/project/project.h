/* project.h: what stands around the C of an imported model so that it is a program: what the program is for, its
 * main.c and Makefile, and the file of its tokenizer. */
#ifndef PROJECT_H
#define PROJECT_H

#include "../import/import.h"

/* What a program does with a text. */
typedef enum Task {
    TASK_EMBED,     /* prints its vector */
    TASK_CLASSIFY,  /* prints the most probable class */
    TASK_RERANK,    /* prints a number for it, or for a pair of texts */
    TASK_GENERATE,  /* continues it */
    TASK_TRANSLATE, /* reads it with the encoder, and prints what the decoder writes */
    TASK_TRANSCRIBE /* prints the words of a sound */
} Task;

/* What TASK_TRANSCRIBE knows of the tokens that are no words; a token is -1 where the model has none. */
typedef struct Speech {
    int64_t end, no_times;
    int64_t latest_first;     /* steps, or -1 */
    TokenList never, never_first, languages;
    const char **codes;       /* of the languages */
    int64_t language;         /* -1: the program finds it */
    int64_t transcribe, translate;
    const char *least_log_probability, *most_compression, *most_no_speech; /* thresholds in C, or NULL */
} Speech;

typedef struct TokenizerFile {
    const char *path; /* where it is read */
    const char *text; /* [size], written in its place: the tokenizer.json of a SentencePiece file; or NULL */
    size_t size;
    const char *name; /* tokenizer.json, tokenizer.bin, vocab.txt or tokenizer.gguf: its name in a project */
} TokenizerFile;

typedef struct Project {
    Arena *arena;
    const char *source; /* the folder or the GGUF file */
    Imported imported;
    const cJSON *generation; /* generation_config.json of the folder, or NULL */
    const Model *model;
    Task task;
    const char **labels; /* [model->head.classifier] of TASK_CLASSIFY */
    bool each;           /* of TASK_CLASSIFY: each class has a probability of its own */
    bool squashed;       /* of TASK_RERANK: the number is the logistic function of the logit */
    Speech speech;       /* of TASK_TRANSCRIBE */
    TokenizerFile tokenizer;
    TokenList languages; /* of TASK_TRANSLATE: tokens that stand around a text and before what is written */
    bool languages_lead; /* the token of the language to write stands before the text, and no other does */
    const char **codes;  /* of these languages */
} Project;

/* --- runtime_files.c: the files of the runtime, in parts of which each needs those before it. */
typedef enum RuntimePart {
    RUNTIME_THREADS, /* threads, memory and files */
    RUNTIME_SEARCH,  /* search over logits */
    RUNTIME_SOUND    /* spectrograms, and the words of a sound */
} RuntimePart;
/* The file or the files of the runtime that a model of this name would replace, be it with other capitals; NULL where
 * there are none. */
const char *runtime_namesake(const char *model);
extern const char *const tokenizer_files[]; /* of the tokenizer, ended by NULL */
/* The names of all parts up to `last`, ended by NULL. */
const char *const *runtime_files(Arena *arena, RuntimePart last);
/* Whether the model's input is a spectrogram. */
bool reads_sound(const Model *model);
/* Whether attn_transcribe can run the model, which reads a spectrogram and has tokens that begin and end a text. */
bool transcribes(const Model *model);

/* --- task.c: sets what the program is for. What has no program is a failure with EXIT_CANNOT. */
void project_task(Project *project);
/* Whether the model has no head that gives a vector, so that the spec needs one. */
bool project_needs_pool(const Imported *imported, const Model *model);

/* The stack that reads or writes ids of tokens: the encoder, or the decoder of a model of sound. */
const Stack *project_text_stack(const Model *model);

/* --- program.c */
/* What a C string literal holds for these bytes. */
const char *project_spelled(Arena *arena, const char *text);

/* --- setting.c: keys that say how a model generates text. Sets project->generation. */
void project_settings_read(Project *project);
/* The value of a key of generation_config.json, or else of config.json; NULL where it is in neither, and where it is
 * null. */
const cJSON *project_setting(const Project *project, const char *key);
/* A token of the decoder that `key` has as its value; a failure where it is none. */
int64_t project_token(const Project *project, const char *key, const cJSON *value);

/* --- speech.c: sets project->speech from the config. */
void project_speech(Project *project);
/* Writes a WAVE file of one second of a tone, which stands for a sound that a program needs to show what it does. */
void project_tone_write(Arena *arena, const char *path);
#define EXAMPLE_SOUND "tone.wav"

/* --- mark.c: a checksum in a text, of which PROJECT_MARK stands for the digits that are not known yet. */
#define PROJECT_MARK_WORDS "Checksum "
#define PROJECT_MARK PROJECT_MARK_WORDS "0000000000000000"
/* The text with the checksum in its first mark. */
const char *project_marked(Arena *arena, const char *text);
/* Whether the text has a mark, and it is of this text. */
bool project_mark_holds(Arena *arena, const char *text, size_t size);

/* --- restated.c: the text of an imported spec with another precision in place of all that it states. */
const char *project_precision(Arena *arena, const char *spec, const Precision *precision);
/* The same with this line as its head. */
const char *project_head(Arena *arena, const char *spec, const char *line);

/* --- tokenizer.c */
/* The tokenizer of a folder, of a GGUF file, or the file itself. A failure where a folder has none, and where it has
 * more ids than the model has rows in the table of its texts. */
TokenizerFile tokenizer_find(Arena *arena, const char *path, const Model *model);
/* Writes the tokenizer's file into the folder: of a GGUF file the keys without the tensors, and of a SentencePiece file
 * a tokenizer.json. */
void tokenizer_write(Arena *arena, const TokenizerFile *file, const char *folder);

/* The tree of a tokenizer.json, which is `file`. */
struct JsonTree *tokenizer_tree(Arena *arena, const TokenizerFile *file);

/* --- pieces.c: files of SentencePiece. */
bool pieces_is(const char *path); /* whether it has their ending */
/* The tokenizer.json of such a file, of *size bytes, by the other files of its folder. */
const char *pieces_tokenizer(Arena *arena, const char *path, size_t *size);

/* --- name.c: the name of the program of a folder or a GGUF file: the folder's or the file's own, with `_` in place of
 * what is no letter, digit or `_`, and with the part. NULL where a model cannot have that name. */
const char *project_name(Arena *arena, const char *source, const char *part);
/* Whether text [size] is a code of letters, digits, `_` and `-`, which C may contain anywhere. */
bool project_is_code(const char *text, size_t size);
/* Whether another file of the program has that name: one that its Makefile makes, or that make reads. Capitals count as
 * small letters, because some file systems do not tell them apart. */
bool project_name_taken(const char *name);

/* --- languages.c: sets the languages of a program that translates; none where the tokenizer has no codes. */
void project_languages(Project *project);

/* --- program.c: the text of main.c, of the Makefile, and of a call of the program that shows what it does. */
const char *project_main(const Project *project);
const char *project_makefile(const Project *project, const char *cc);
const char *project_example(const Project *project, const char *folder);
/* The names of the runtime's files that the program is made of, ended by NULL: with `tokenizer` those of the folder
 * `tokenizer`, else those beside main.c. */
const char *const *project_sources(const Project *project, bool tokenizer);

#endif
