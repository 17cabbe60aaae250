/* languages.c: the language codes of a tokenizer.json. The templates of M2M-100 (`__en__`), NLLB (`eng_Latn`) and mBART
 * (`en_XX`) put one of them around a text. Texts for a Marian with several languages begin with one (`>>fra<<`), which
 * the user gives. */
#include "../formats/json.h"
#include "project.h"

#include <string.h>

/* Whether `text` [size] has the form, in which `a` stands for a small letter, `A` for a capital, and `*` for more small
 * letters, digits and `_`. */
static bool has_form(const char *text, size_t size, const char *form) {
    size_t at = 0;
    for (; *form; form++) {
        if (*form == '*') {
            while (at < size && strchr("abcdefghijklmnopqrstuvwxyz0123456789_", text[at])) at++;
            continue;
        }
        if (at == size) return false;
        const bool small = text[at] >= 'a' && text[at] <= 'z', capital = text[at] >= 'A' && text[at] <= 'Z';
        if (*form == 'a' ? !small : *form == 'A' ? !capital : text[at] != *form) return false;
        at++;
    }
    return at == size;
}

/* The code that a token stands for, of so many bytes in *size; NULL where it is none. */
static const char *code_in(const char *token, size_t *size) {
    *size = strlen(token);
    if (*size > 5 && strncmp(token, "__", 2) == 0 && strcmp(token + *size - 2, "__") == 0) {
        *size -= 4;
        return has_form(token + 2, *size, "aa*") ? token + 2 : NULL;
    }
    return has_form(token, *size, "aa_AA") || has_form(token, *size, "aaa_Aaaa") ? token : NULL;
}

/* The code in `>>code<<`. */
static const char *leading_code_in(const char *token, size_t *size) {
    *size = strlen(token);
    if (*size < 5 || strncmp(token, ">>", 2) != 0 || strcmp(token + *size - 2, "<<") != 0) return NULL;
    *size -= 4;
    return project_is_code(token + 2, *size) ? token + 2 : NULL;
}

/* Whether a post-processor, or one of a sequence of them, puts a language code around a text. */
static bool puts_code(const cJSON *processor) {
    const cJSON *part;
    size_t size;
    cJSON_ArrayForEach(part, cJSON_GetObjectItemCaseSensitive(processor, "single")) {
        const cJSON *id = cJSON_GetObjectItemCaseSensitive(
            cJSON_GetObjectItemCaseSensitive(part, "SpecialToken"), "id");
        if (cJSON_IsString(id) && code_in(id->valuestring, &size)) return true;
    }
    cJSON_ArrayForEach(part, cJSON_GetObjectItemCaseSensitive(processor, "processors")) {
        if (cJSON_IsObject(part) && !cJSON_GetObjectItemCaseSensitive(part, "processors") && puts_code(part))
            return true;
    }
    return false;
}

typedef struct Found {
    Project *project;
    int64_t room, vocab; /* room for codes; tokens of the vocabularies in which they stand */
} Found;

/* Adds a token that is a code and no duplicate. */
static void add(Found *found, const char *token, double id) {
    Project *p = found->project;
    size_t size;
    const char *code = !token ? NULL : p->languages_lead ? leading_code_in(token, &size) : code_in(token, &size);
    if (!code || p->languages.count == found->room || !(id >= 0 && id < (double)found->vocab)) return;
    for (int64_t i = 0; i < p->languages.count; i++)
        if (strlen(p->codes[i]) == size && memcmp(p->codes[i], code, size) == 0) return;
    p->codes[p->languages.count] = arena_copy(p->arena, code, size);
    p->languages.ids[p->languages.count++] = (int64_t)id;
}

void project_languages(Project *p) {
    enum { ROOM = 4096 };
    if (p->task != TASK_TRANSLATE || strcmp(p->tokenizer.name, "tokenizer.json") != 0) return;
    const int64_t reads = p->model->encoder->vocab, writes = p->model->decoder->vocab;
    JsonTree *tree = tokenizer_tree(p->arena, &p->tokenizer);
    const cJSON *root = tree->root, *item;
    p->languages.ids = arena_array(p->arena, ROOM, sizeof *p->languages.ids);
    p->codes = arena_array(p->arena, ROOM, sizeof *p->codes);
    p->languages_lead = !puts_code(cJSON_GetObjectItemCaseSensitive(root, "post_processor"));
    Found found = {p, ROOM, p->languages_lead || reads < writes ? reads : writes};
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(root, "added_tokens")) {
        const cJSON *id = cJSON_GetObjectItemCaseSensitive(item, "id");
        add(&found, cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "content")),
            cJSON_IsNumber(id) ? id->valuedouble : -1);
    }
    const cJSON *vocab = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(root, "model"), "vocab");
    double index = 0; /* of pieces with scores, in order */
    cJSON_ArrayForEach(item, vocab) {
        if (cJSON_IsArray(item)) add(&found, cJSON_GetStringValue(cJSON_GetArrayItem(item, 0)), index++);
        else add(&found, item->string, cJSON_IsNumber(item) ? item->valuedouble : -1);
    }
    json_release(tree);
}
