/* language_tables.c: prints docs/language.md with its tables updated from compiler/model/settings.def.
 *
 *     language_tables PAGE      prints the page
 *
 * A table stands between the lines `<!-- table: NAME -->` and `<!-- end -->`; NAME is the name of a setting, or
 * `blocks`, `kept`, `generation` or `words`, whose rows are the definitions of compiler/model/definitions.attn. A
 * marker without an end, with an unknown name, or that occurs twice is an error, and so is a table of settings.def
 * without a marker: the program prints the line at fault and exits with status 1. */
#include "../compiler/model/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct FieldText {
    const char *initial, *reset; /* as settings.def writes them */
    double value;
} FieldText;

static const FieldText field_texts[FIELD_COUNT] = {
#define FIELD(name, type, default_value, reset) [F_##name] = {#default_value, #reset, default_value},
#include "../compiler/model/settings.def"
};

typedef struct SettingText {
    const char *name, *form, *help;
    int blocks;
} SettingText;

static const SettingText settings[] = {
#define SETTING(name, blocks, form, help) {#name, #form, help, blocks},
#include "../compiler/model/settings.def"
};
enum { SETTINGS = sizeof settings / sizeof settings[0] };

/* `value` is text here: the constant that a flag sets, or the range of a number. */
typedef struct OptionText {
    const char *setting, *word, *takes, *value, *help;
    Field field;
    double sets;
} OptionText;

#define SETS_flag(value) value
#define SETS_integer(value) 0
#define SETS_real(value) 0
#define SETS_integers(value) 0
#define SETS_reals(value) 0
#define SETS_names(value) 0
#define SETS_word(value) 0
#define SETS_condition(value) 0
#define SETS_expression(value) 0
static const OptionText options[] = {
#define OPTION(setting, word, takes, field, value, help) \
    {#setting, word, #takes, #value, help, F_##field, SETS_##takes(value)},
#include "../compiler/model/settings.def"
};
enum { OPTIONS = sizeof options / sizeof options[0] };

static const struct {
    Field field;
    const char *word, *help;
    double value;
} choices[] = {
#define CHOICE(field, word, value, help) {F_##field, word, help, value},
#include "../compiler/model/settings.def"
};
enum { CHOICES = sizeof choices / sizeof choices[0] };

static const struct {
    const char *name, *help;
    int parents;
} blocks[BLOCK_COUNT] = {
#define BLOCK(name, parents, help) {#name, help, parents},
#include "../compiler/model/settings.def"
};

static const struct {
    const char *name, *kind, *least, *most, *help;
} generation[] = {
#define GENERATION(name, kind, least, most, help) {#name, #kind, #least, #most, help},
#include "../compiler/model/generation.def"
};
enum { GENERATION_ITEMS = sizeof generation / sizeof generation[0] };

static bool is(const char *a, const char *b) { return strcmp(a, b) == 0; }

/* Prints a cell of a table. A bar is escaped, since it would end the cell. */
static void put_cell(const char *text) {
    for (; *text; text++) {
        if (*text == '|') putchar('\\');
        putchar(*text);
    }
}

static void put_blocks(int set) {
    const char *before = "";
    for (int b = 0; b < BLOCK_COUNT; b++)
        if (set & 1 << b) {
            printf("%s`%s`", before, blocks[b].name);
            before = ", ";
        }
    if (set & IN_FILE) printf("the file");
}

static bool is_flag(const OptionText *o) { return is(o->takes, "flag"); }

static int choices_of(const OptionText *o) {
    int count = 0;
    for (int c = 0; c < CHOICES; c++) count += is(o->takes, "word") && choices[c].field == o->field;
    return count;
}

static const char *takes_text(const OptionText *o) {
    static const struct {
        const char *takes, *range, *text;
    } texts[] = {
        {"integer", "positive", "integer > 0"}, {"integer", "natural", "integer >= 0"},
        {"real", "any", "number"}, {"real", "positive", "number > 0"}, {"real", "natural", "number >= 0"},
        {"real", "divisor", "number > 0"}, {"real", "natural_divisor", "number >= 0"},
        {"real", "unit", "number > 0, <= 1"}, {"integer", "outliers", "integer, 1 to 14"},
        {"integers", "natural", "integers >= 0"}, {"integers", "positive", "integers > 0"},
        {"reals", "positive", "numbers > 0"}, {"word", "any", "a word"}, {"names", "any", "names of `input rows`"},
        {"condition", "any", "a condition"}, {"expression", "any", "an expression"},
    };
    if (is_flag(o)) return "";
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (is(o->takes, texts[i].takes) && is(o->value, texts[i].range)) return texts[i].text;
    fprintf(stderr, "language_tables: no text for %s %s\n", o->takes, o->value);
    exit(1);
}

static int flags_of(Field field) {
    int count = 0;
    for (int i = 0; i < OPTIONS; i++) count += options[i].field == field && is_flag(&options[i]);
    return count;
}

/* A default outside of the option's range means that there is none. */
static const char *default_text(const OptionText *o) {
    const FieldText *field = &field_texts[o->field];
    if (is(field->initial, "UNSET") || is(field->initial, "DTYPE_COUNT")) return "open";
    if (is(o->takes, "condition") || is(o->takes, "expression")) return "none";
    if (!is_flag(o)) {
        for (int i = 0; i < CHOICES; i++)
            if (choices[i].field == o->field && choices[i].value == field->value) return choices[i].word;
        bool list = is(o->takes, "integers") || is(o->takes, "reals") || is(o->takes, "names");
        bool fits = is(o->value, "any") || field->value > 0 || (is(o->value, "natural") && field->value >= 0);
        return fits && !list ? field->initial : "none";
    }
    if (o->sets == field->value) return "default";
    return flags_of(o->field) > 1 ? "" : "off";
}

static void put_where(const SettingText *s) {
    char first = s->help[0];
    bool word = first >= 'a' && first <= 'z' && s->help[1] != '_';
    if (word) putchar(first - 'a' + 'A');
    printf("%s.\nStated in ", word ? s->help + 1 : s->help);
    put_blocks(s->blocks);
    puts(s->blocks == IN_MODEL ? "." : " or an enclosing block.");
}

/* A setting that takes one value has a sentence in place of a table. */
static void put_setting(const SettingText *s) {
    int count = 0;
    for (int i = 0; i < OPTIONS; i++)
        if (is(options[i].setting, s->name)) count += 1 + choices_of(&options[i]);
    put_where(s);
    if (count > 1) puts("\n| option | takes | meaning | default |\n|---|---|---|---|");
    for (int i = 0; i < OPTIONS; i++) {
        const OptionText *o = &options[i];
        if (!is(o->setting, s->name)) continue;
        if (count == 1 && !o->word[0]) {
            printf("Takes %s (%s): %s.", is(s->form, "length") ? "`= N` or `<= N`" : "a value", takes_text(o), o->help);
            if (!strstr(s->help, "default:")) printf(" Default: %s.", default_text(o));
            puts("");
            continue;
        }
        if (o->word[0]) printf("| `%s` | ", o->word);
        else printf("| the value | ");
        printf("%s | ", takes_text(o));
        put_cell(o->help);
        printf(" | %s |\n", default_text(o));
        for (int c = 0; c < CHOICES && is(o->takes, "word"); c++)
            if (choices[c].field == o->field)
                printf("| `%s %s` |  | %s |  |\n", o->word, choices[c].word, choices[c].help);
    }
}

static void put_block_table(void) {
    puts("| block | stands in | meaning |\n|---|---|---|");
    for (int b = 0; b < BLOCK_COUNT; b++) {
        printf("| `%s` | ", blocks[b].name);
        put_blocks(blocks[b].parents);
        printf(" | ");
        put_cell(blocks[b].help);
        puts(" |");
    }
}

/* Prints the options of a setting whose fields have this rule. */
static void put_kept_of(const SettingText *s, const char *rule, const char *meaning) {
    int count = 0;
    for (int i = 0; i < OPTIONS; i++) {
        const OptionText *o = &options[i];
        const char *reset = field_texts[o->field].reset;
        if (!is(o->setting, s->name) || is(reset, "whole") || is(reset, "kept") != is(rule, "kept")) continue;
        if (!count++) printf("| `%s` | ", s->name);
        else printf(", ");
        if (o->word[0]) printf("`%s`", o->word);
        else printf("the value");
    }
    if (count) printf(" | %s |\n", meaning);
}

static void put_kept(void) {
    puts("| setting | options | when the setting is stated again without them |\n|---|---|---|");
    for (int s = 0; s < SETTINGS; s++) {
        put_kept_of(&settings[s], "kept", "they keep their values");
        put_kept_of(&settings[s], "by field",
                    "they keep their values, unless a kind is named: then they have their defaults");
    }
}

/* The items of the block `generation`. */
static void put_generation(void) {
    puts("| item | takes | meaning |\n|---|---|---|");
    for (int i = 0; i < GENERATION_ITEMS; i++) {
        const char *kind = generation[i].kind, *most = generation[i].most;
        printf("| `%s` | ", generation[i].name);
        if (is(kind, "integer") && is(most, "INT32_MAX")) printf("integer >= %s", generation[i].least);
        else if (is(kind, "integer") || is(kind, "real"))
            printf("%s, %s to %s", is(kind, "real") ? "number" : "integer", generation[i].least, most);
        else if (!is(kind, "flag")) printf("%s", is(kind, "tokens") || is(kind, "word") ? "ids" : "a word");
        printf(" | ");
        put_cell(generation[i].help);
        puts(" |");
    }
}

/* Items as one line of a spec. */
static void put_items(Arena *arena, const Item *items, const Item *end) {
    for (const Item *i = items; i != end; i = i->next) {
        Item alone = *i;
        alone.next = NULL;
        char *line = ast_format(arena, &(Ast){.items = &alone});
        printf("%s`%.*s`", i == items ? "" : ", ", (int)strcspn(line, "\n"), line);
    }
}

static void put_words(void) {
    Arena *arena = arena_new();
    const char *text = embedded_file("definitions.attn");
    Diagnostics diagnostics = diagnostics_quiet(arena);
    const Ast *ast = parse(arena, source_from_text(arena, "definitions.attn", text, strlen(text)), &diagnostics);
    printf("| words | the same as expressions |\n|---|---|\n");
    for (const Item *word = ast->items; word; word = word->next) {
        const Item *expression = word->items;
        while (!expression->is_let && expression->next) expression = expression->next;
        printf("| ");
        put_items(arena, word->items, expression);
        printf(" | ");
        put_items(arena, expression, NULL);
        printf(" |\n");
    }
    arena_free(arena);
}

/* ---------------------------------------------------------------- the page */

/* Tables of no setting, and the number of all tables. */
enum { BLOCKS = SETTINGS, KEPT, GENERATION_TABLE, WORDS, TABLES };
static const char *const other_tables[] = {"blocks", "kept", "generation", "words"};

static const char *path;
static int line_number;

static _Noreturn void stop(const char *why, const char *name) {
    fprintf(stderr, "%s:%d: %s%s%s\n", path, line_number, why, name[0] ? ": " : "", name);
    exit(1);
}

/* NAME of a line `<!-- table: NAME -->`, or NULL; the line is cut behind it. */
static char *marker(char *line) {
    static const char begin[] = "<!-- table: ";
    if (strncmp(line, begin, sizeof begin - 1) != 0) return NULL;
    char *name = line + sizeof begin - 1, *end = strstr(name, " -->");
    if (!end || end[4] != '\n') stop("a marker is `<!-- table: NAME -->`", "");
    *end = '\0';
    return name;
}

static bool put_table(const char *name, bool *seen) {
    int index = -1;
    for (int t = SETTINGS; t < TABLES; t++)
        if (is(other_tables[t - SETTINGS], name)) index = t;
    for (int s = 0; s < SETTINGS; s++)
        if (is(settings[s].name, name)) index = s;
    if (index < 0) return false;
    if (seen[index]) stop("this table stands twice", name);
    seen[index] = true;
    printf("<!-- table: %s -->\n", name);
    if (index < SETTINGS) put_setting(&settings[index]);
    else if (index == BLOCKS) put_block_table();
    else if (index == KEPT) put_kept();
    else if (index == GENERATION_TABLE) put_generation();
    else put_words();
    return true;
}

int main(int count, char **words) {
    static char line[1 << 14];
    bool seen[TABLES] = {0}, inside = false;
    path = count == 2 ? words[1] : "";
    FILE *page = count == 2 ? fopen(path, "r") : NULL;
    if (!page) {
        fprintf(stderr, "usage: language_tables PAGE\n");
        return 2;
    }
    while (fgets(line, sizeof line, page)) {
        line_number++;
        if (!strchr(line, '\n')) stop("a line without end, or too long", "");
        bool end = is(line, "<!-- end -->\n");
        if (end && !inside) stop("an end without a table", "");
        if (inside && strncmp(line, "<!-- table", 10) == 0) stop("a table before the last one has its end", "");
        char *name = inside ? NULL : marker(line);
        if (name && !put_table(name, seen))
            stop("neither a setting nor `blocks`, `kept`, `generation` or `words`", name);
        if (!name && (end || !inside)) fputs(line, stdout);
        inside = name || (inside && !end);
    }
    if (inside || ferror(page)) stop("the page ends inside a table", "");
    for (int s = 0; s < TABLES; s++)
        if (!seen[s]) stop("no table of", s < SETTINGS ? settings[s].name : other_tables[s - SETTINGS]);
    if (fclose(page) || fflush(stdout) || ferror(stdout)) stop("the page cannot be written", "");
    return 0;
}
