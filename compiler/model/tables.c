/* tables.c: the rows of settings.def, and functions that find a row. */
#include "tables.h"

#include <string.h>

const FieldRow model_fields[FIELD_COUNT] = {
#define FIELD(name, type, default_value, reset) [F_##name] = {TYPE_##type, default_value, RESET_##reset},
#include "settings.def"
};

const SettingRow model_settings[SETTING_COUNT] = {
#define SETTING(name, blocks, form, help) [S_##name] = {#name, blocks, FORM_##form},
#include "settings.def"
};

#define RANGE_OR_VALUE_flag(value) value
#define RANGE_OR_VALUE_integer(value) RANGE_##value
#define RANGE_OR_VALUE_real(value) RANGE_##value
#define RANGE_OR_VALUE_integers(value) RANGE_##value
#define RANGE_OR_VALUE_reals(value) RANGE_##value
#define RANGE_OR_VALUE_word(value) RANGE_##value
#define RANGE_OR_VALUE_names(value) RANGE_##value
#define RANGE_OR_VALUE_condition(value) RANGE_##value
#define RANGE_OR_VALUE_expression(value) RANGE_##value
const OptionRow model_options[OPTION_COUNT] = {
#define OPTION(setting, word, takes, field, value, help) \
    {S_##setting, word, TAKES_##takes, F_##field, RANGE_OR_VALUE_##takes(value)},
#include "settings.def"
};

const ChoiceRow model_choices[CHOICE_COUNT] = {
#define CHOICE(field, word, value, help) {F_##field, word, value},
#include "settings.def"
};

const BlockRow model_blocks[BLOCK_COUNT] = {
#define BLOCK(name, parents, help) {#name, parents},
#include "settings.def"
};

const char *block_name(Block block) { return model_blocks[block].name; }

bool block_named(const char *name, Block *block) {
    for (int b = 0; b < BLOCK_COUNT; b++)
        if (strcmp(model_blocks[b].name, name) == 0) {
            *block = (Block)b;
            return true;
        }
    return false;
}

int with_ancestors(int blocks) {
    for (int before = 0; before != blocks;) {
        before = blocks;
        for (int b = 0; b < BLOCK_COUNT; b++)
            if (blocks & (1 << b)) blocks |= model_blocks[b].parents;
    }
    return blocks & ~IN_FILE;
}

const SettingRow *setting_named(const char *name) {
    for (int s = 0; s < SETTING_COUNT; s++)
        if (strcmp(model_settings[s].name, name) == 0) return &model_settings[s];
    return NULL;
}

Field bare_field(SettingId setting) {
    for (int o = 0; o < OPTION_COUNT; o++)
        if (model_options[o].setting == setting && !model_options[o].word[0] && model_options[o].takes <= TAKES_real)
            return model_options[o].field;
    return FIELD_COUNT;
}
