/* text_rules.c: the block `text` of an imported model: prompts of sentence-transformers, texts in lower case, and the
 * end that a text loses where it is too long; and the note on a chat template. */
#include "../formats/json.h"
#include "import.h"

#include <string.h>

enum { MOST_TOKENIZER_BYTES = 1 << 28, MOST_PROMPT_BYTES = 1 << 16 };

/* tokenizer.json, which is larger than a config; NULL where the folder has none. */
static const cJSON *tokenizer_read(Import *import) {
    const char *path = arena_printf(import->arena, "%s/tokenizer.json", import->folder);
    return file_exists(path) ? json_file(import->arena, path, MOST_TOKENIZER_BYTES)->root : NULL;
}

/* Whether texts lose their beginning: by an argument of sentence-transformers, by tokenizer_config.json, whose object
 * and path are `config` and `path`, or else by what tokenizer.json says of truncation. */
static bool truncates_left(Import *import, const cJSON *tokenizer, const cJSON *config, const char *path) {
    const char *direction = cJSON_GetStringValue(json_member(json_member(tokenizer, "truncation"), "direction"));
    const char *from;
    const cJSON *side = sentence_side(import, &from);
    if (!side) {
        side = json_member(config, "truncation_side");
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

static void put_prompts(Import *import, Text *out) {
    const Prompts prompts = sentence_prompts(import);
    const cJSON *prompt;
    cJSON_ArrayForEach(prompt, prompts.all) {
        const char *text = cJSON_IsNull(prompt) ? "" : cJSON_GetStringValue(prompt);
        if (!text || !*prompt->string)
            fail("%s: the prompt `%.*s` is %s; a text with a name is understood", prompts.path,
                 CUT(60, prompt->string), config_value(import->arena, prompt));
        if (!utf8_is_valid(text, strlen(text)) || !utf8_is_valid(prompt->string, strlen(prompt->string)))
            fail("%s: the prompt `%.*s` holds bytes that are not UTF-8", prompts.path, CUT(60, prompt->string));
        if (strlen(text) + strlen(prompt->string) + out->size > MOST_PROMPT_BYTES)
            fail("%s: its prompts are longer than %d bytes", prompts.path, MOST_PROMPT_BYTES);
        text_printf(out, "prompt ");
        put_name(out, prompt->string);
        text_printf(out, " ");
        spec_quote(out, text);
        text_printf(out, "\n");
    }
    if (prompts.chosen && !cJSON_GetObjectItemCaseSensitive(prompts.all, prompts.chosen))
        fail("%s: `default_prompt_name` is \"%.*s\", which is none of its prompts", prompts.path,
             CUT(60, prompts.chosen));
    if (!prompts.chosen) return;
    text_printf(out, "default ");
    put_name(out, prompts.chosen);
    text_printf(out, "\n");
}

void chat_note(Import *import, const char *origin) {
    import_note(import, "The chat template of %s is not applied yet: a text is read as it is given, and has to hold "
                "the tokens that begin and end its turns.", origin);
}

static bool states_template(const cJSON *config) {
    const cJSON *item = json_member(config, "chat_template");
    return cJSON_IsString(item) ? *item->valuestring : (cJSON_IsArray(item) || cJSON_IsObject(item)) && item->child;
}

/* Notes the chat template of the folder, whose tokenizer_config.json is `config`. sentence-transformers has none. */
static void find_template(Import *import, const cJSON *config) {
    if (import->sentence) return;
    const char *const names[] = {"chat_template.jinja", "chat_template.json"};
    if (file_exists(arena_printf(import->arena, "%s/%s", import->folder, names[0]))) chat_note(import, names[0]);
    else if (states_template(config)) chat_note(import, "tokenizer_config.json");
    else if (states_template(config_optional(import->arena, arena_printf(import->arena, "%s/%s", import->folder,
                                                                         names[1]))))
        chat_note(import, names[1]);
}

const char *text_rules(Import *import) {
    if (!import->folder) return "";
    Text out = text_new(import->arena);
    const char *path = arena_printf(import->arena, "%s/tokenizer_config.json", import->folder);
    const cJSON *tokenizer = tokenizer_read(import), *config = config_optional(import->arena, path);
    put_prompts(import, &out);
    /* sentence-transformers adds no second Lowercase */
    if (sentence_lowers(import) && !tokenizer_step(tokenizer, "normalizer", "Lowercase"))
        text_printf(&out, "lower_case\n");
    if (truncates_left(import, tokenizer, config, path)) text_printf(&out, "truncate left\n");
    if (tokenizer && config) tokenizer_config_notes(import, tokenizer, config);
    find_template(import, config);
    return out.size ? arena_printf(import->arena, "text {\n%s}\n", out.data) : "";
}
