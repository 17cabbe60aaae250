/* text_rules.c: the block `text` of an imported model: prompts of sentence-transformers, texts in lower case, and the
 * end that a text loses where it is too long. */
#include "../formats/json.h"
#include "import.h"

#include <string.h>

enum { MOST_TOKENIZER_BYTES = 1 << 28, MOST_PROMPT_BYTES = 1 << 16 };

static void release(void *with) { cJSON_Delete(with); }

/* tokenizer.json, which is larger than a config; NULL where the folder has none. */
static const cJSON *tokenizer_read(Import *import) {
    const char *path = arena_printf(import->arena, "%s/tokenizer.json", import->folder);
    if (!file_exists(path)) return NULL;
    size_t size;
    const char *text = file_read(import->arena, path, MOST_TOKENIZER_BYTES, &size);
    json_begin();
    cJSON *root = cJSON_ParseWithLength(text, size);
    if (!root && json_starved()) out_of_memory();
    if (!root) fail("%s: it is no JSON", path);
    arena_on_free(import->arena, release, root);
    return root;
}

static const cJSON *member(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNull(item) ? NULL : item;
}

static bool is_type(const cJSON *step, const char *type) {
    const char *own = cJSON_GetStringValue(member(step, "type"));
    return own && strcmp(own, type) == 0;
}

/* Whether sentence-transformers adds no Lowercase of its own: the file has one, alone or as a step of a sequence. */
static bool lowers_itself(const cJSON *tokenizer) {
    const cJSON *normalizer = member(tokenizer, "normalizer"), *step;
    if (is_type(normalizer, "Lowercase")) return true;
    if (!is_type(normalizer, "Sequence")) return false;
    cJSON_ArrayForEach(step, member(normalizer, "normalizers"))
        if (is_type(step, "Lowercase")) return true;
    return false;
}

/* Whether texts lose their beginning: by tokenizer_config.json, or else by what tokenizer.json says of truncation. */
static bool truncates_left(Import *import, const cJSON *tokenizer) {
    const char *path = arena_printf(import->arena, "%s/tokenizer_config.json", import->folder), *from;
    const char *direction = cJSON_GetStringValue(member(member(tokenizer, "truncation"), "direction"));
    const cJSON *side = sentence_side(import, &from);
    if (!side && file_exists(path)) {
        side = member(config_read(import->arena, path), "truncation_side");
        from = path;
    }
    if (!side) return direction && strcmp(direction, "Left") == 0;
    if (!cJSON_IsString(side) || !word_find(import->arena, "left right", side->valuestring))
        fail("%s: `truncation_side` is %s; left and right are understood", from, config_value(import->arena, side));
    return strcmp(side->valuestring, "left") == 0;
}

/* A name of a prompt as a word, or as a string where it is none. */
static void put_name(Text *out, const char *name) {
    static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    enum { MOST_WORD = 63 };
    const size_t size = strlen(name);
    const bool plain = size <= MOST_WORD && strspn(name, word) == size && (*name < '0' || *name > '9');
    if (plain && strcmp(name, "let") != 0 && strcmp(name, "sqrt") != 0) text_printf(out, "%s", name);
    else spec_quote(out, name);
}

static bool is_utf8(const char *text) {
    for (size_t left = strlen(text), size; left; text += size, left -= size)
        if (!(size = utf8_bytes((const unsigned char *)text, left))) return false;
    return true;
}

static void put_prompts(Import *import, Text *out) {
    const Prompts prompts = sentence_prompts(import);
    const cJSON *prompt;
    cJSON_ArrayForEach(prompt, prompts.all) {
        const char *text = cJSON_IsNull(prompt) ? "" : cJSON_GetStringValue(prompt);
        if (!text || !*prompt->string)
            fail("%s: the prompt `%.60s` is %s; a text with a name is understood", prompts.path, prompt->string,
                 config_value(import->arena, prompt));
        if (!is_utf8(text) || !is_utf8(prompt->string))
            fail("%s: the prompt `%.60s` holds bytes that are not UTF-8", prompts.path, prompt->string);
        if (strlen(text) + strlen(prompt->string) + out->size > MOST_PROMPT_BYTES)
            fail("%s: its prompts are longer than %d bytes", prompts.path, MOST_PROMPT_BYTES);
        text_printf(out, "prompt ");
        put_name(out, prompt->string);
        text_printf(out, " ");
        spec_quote(out, text);
        text_printf(out, "\n");
    }
    if (prompts.chosen && !cJSON_GetObjectItemCaseSensitive(prompts.all, prompts.chosen))
        fail("%s: `default_prompt_name` is \"%.60s\", which is none of its prompts", prompts.path, prompts.chosen);
    if (!prompts.chosen) return;
    text_printf(out, "default ");
    put_name(out, prompts.chosen);
    text_printf(out, "\n");
}

const char *text_rules(Import *import) {
    if (!import->folder) return "";
    Text out = text_new(import->arena);
    const cJSON *tokenizer = tokenizer_read(import);
    put_prompts(import, &out);
    if (sentence_lowers(import) && !lowers_itself(tokenizer)) text_printf(&out, "lower_case\n");
    if (truncates_left(import, tokenizer)) text_printf(&out, "truncate left\n");
    return out.size ? arena_printf(import->arena, "text {\n%s}\n", out.data) : "";
}
