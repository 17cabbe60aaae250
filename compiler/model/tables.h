/* tables.h: settings.def as tables, for the files that read settings and expressions. */
#ifndef TABLES_H
#define TABLES_H

#include "settings.h"

typedef enum SettingId {
#define SETTING(name, blocks, form, help) S_##name,
#include "settings.def"
    SETTING_COUNT
} SettingId;

typedef enum Takes { TAKES_flag, TAKES_integer, TAKES_real, TAKES_integers, TAKES_reals, TAKES_word,
                     TAKES_names, TAKES_condition, TAKES_expression } Takes;
typedef enum Form { FORM_plain, FORM_length } Form;
typedef enum FieldType { TYPE_integer, TYPE_real, TYPE_list } FieldType;

/* A field's `reset` is RESET_whole, RESET_kept, or the field whose statement resets it. */
enum { RESET_whole = -2, RESET_kept = -1 };
#define RESET_norm F_norm
#define RESET_weights_dtype F_weights_dtype
#define RESET_activations_dtype F_activations_dtype
#define RESET_output_weights_dtype F_output_weights_dtype
#define RESET_output_activations_dtype F_output_activations_dtype
#define RESET_down_weights_dtype F_down_weights_dtype
#define RESET_down_activations_dtype F_down_activations_dtype

typedef struct FieldRow {
    FieldType type;
    double initial;
    int reset;
} FieldRow;

typedef struct SettingRow {
    const char *name;
    int blocks;
    Form form;
} SettingRow;

typedef struct OptionRow {
    SettingId setting;
    const char *word;
    Takes takes;
    Field field;
    int value; /* of a flag; otherwise the Range of its number */
} OptionRow;

typedef struct ChoiceRow {
    Field field;
    const char *word;
    int value;
} ChoiceRow;

enum {
    OPTION_COUNT = 0
#define OPTION(setting, word, takes, field, value, help) + 1
#include "settings.def"
};

enum {
    CHOICE_COUNT = 0
#define CHOICE(field, word, value, help) + 1
#include "settings.def"
};

typedef struct BlockRow {
    const char *name;
    int parents; /* bits of blocks */
} BlockRow;

extern const FieldRow model_fields[FIELD_COUNT];
extern const SettingRow model_settings[SETTING_COUNT];
extern const OptionRow model_options[OPTION_COUNT]; /* those of a setting stand together */
extern const ChoiceRow model_choices[CHOICE_COUNT]; /* those of a field stand together */
extern const BlockRow model_blocks[BLOCK_COUNT];

const SettingRow *setting_named(const char *name); /* or NULL */
Field bare_field(SettingId setting);               /* the field of the setting's bare number, or FIELD_COUNT */

#endif
