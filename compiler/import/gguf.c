/* gguf.c: a GGUF file as the source of an import. Its keys that begin with the name of the architecture become a
 * config, in which `llama.attention.head_count` is the key `head_count` of the object `attention`; so does what the
 * tables of gguf_families.c read of the tokenizer. */
#include "../formats/gguf.h"
#include "import.h"

#include <string.h>

enum { MOST_KEYS = 1000, MOST_DEPTH = 8, LONGEST_KEY = 200, LONGEST_STRING = 1000, MOST_ITEMS = 4096 };

bool gguf_is(Arena *arena, const char *path) {
    return file_exists(path) && !folder_exists(path) && gguf_begins(file_map(arena, path));
}

/* ---------------------------------------- the config */

static cJSON *made(cJSON *item) {
    if (!item) out_of_memory();
    return item;
}

static void add(cJSON *object, const char *name, cJSON *item) {
    if (!cJSON_AddItemToObject(object, name, item)) out_of_memory();
}

static const char *string_of(const Import *import, const GgufEntry *entry) {
    const uint8_t *at = entry->data;
    size_t size = 0;
    if (entry->type != GGUF_STRING || entry->array) fail("%s: `%s` is no string", import->config_path, entry->key);
    const char *text = gguf_next_string(&at, &size);
    if (size > LONGEST_STRING || memchr(text, 0, size))
        fail("%s: `%s` is a string of %zu bytes; up to %d without a NUL are read", import->config_path, entry->key,
            size, LONGEST_STRING);
    return arena_copy(import->arena, text, size);
}

static cJSON *number_item(const GgufEntry *entry, const uint8_t **at) {
    double value = gguf_next_number(entry, at);
    if (entry->type == GGUF_F32) value = f32_written((float)value);
    return made(entry->type == GGUF_BOOL ? cJSON_CreateBool(value != 0) : cJSON_CreateNumber(value));
}

static cJSON *value_item(const Import *import, const GgufEntry *entry) {
    const uint8_t *at = entry->data;
    if (!entry->array && entry->type == GGUF_STRING) return made(cJSON_CreateString(string_of(import, entry)));
    if (!entry->array) return number_item(entry, &at);
    if (entry->type == GGUF_STRING || entry->count > MOST_ITEMS)
        fail("%s: `%s` is an array of %llu %s; up to %d numbers are read", import->config_path, entry->key,
            (unsigned long long)entry->count, entry->type == GGUF_STRING ? "strings" : "numbers", MOST_ITEMS);
    cJSON *list = made(cJSON_CreateArray());
    for (uint64_t i = 0; i < entry->count; i++)
        if (!cJSON_AddItemToArray(list, number_item(entry, &at))) out_of_memory();
    return list;
}

/* Adds the value at PATH, whose dots lead into objects. */
static void add_at(const Import *import, const char *path, const GgufEntry *entry) {
    cJSON *object = import->config;
    int depth = 0;
    if (strlen(path) > LONGEST_KEY) fail("%s: the key `%.*s…` has more than %d bytes", import->config_path,
        CUT(60, entry->key),
        LONGEST_KEY);
    for (const char *dot; (dot = strchr(path, '.')); path = dot + 1) {
        const char *name = arena_copy(import->arena, path, (size_t)(dot - path));
        cJSON *inner = cJSON_GetObjectItemCaseSensitive(object, name);
        if (++depth > MOST_DEPTH) fail("%s: the key `%s` has more than %d dots", import->config_path, entry->key,
            MOST_DEPTH);
        if (!inner) add(object, name, inner = made(cJSON_CreateObject()));
        if (!cJSON_IsObject(inner)) fail("%s: `%s` is inside of a key with a value", import->config_path, entry->key);
        object = inner;
    }
    if (cJSON_GetObjectItemCaseSensitive(object, path))
        fail("%s: other keys are inside of `%s`, which has a value", import->config_path, entry->key);
    add(object, path, value_item(import, entry));
}

/* Keys of the tokenizer that decide what a spec says of tokens. */
static const char of_tokens[] = "tokenizer.ggml.bos_token_id tokenizer.ggml.eos_token_id "
    "tokenizer.ggml.eot_token_id tokenizer.ggml.eom_token_id tokenizer.ggml.padding_token_id";

static void make_config(Import *import, const GgufFile *file) {
    import->config = config_new(import->arena);
    const size_t size = strlen(import->type);
    int count = 0;
    for (size_t i = 0; i < file->count; i++) {
        const GgufEntry *entry = &file->entries[i];
        const bool own = strncmp(entry->key, import->type, size) == 0 && entry->key[size] == '.';
        if (!own && !word_find(import->arena, of_tokens, entry->key)) continue;
        if (count++ == MOST_KEYS) fail("%s: it has more than %d keys of the architecture `%s`", import->config_path,
            MOST_KEYS, import->type);
        add_at(import, own ? entry->key + size + 1 : entry->key, entry);
    }
}

/* ---------------------------------------- what the tables cannot compute */

static int64_t whole(const Import *import, const char *name) {
    const cJSON *item = config_find(import, name, strlen(name));
    return cJSON_IsNumber(item) && item->valuedouble >= 1 && item->valuedouble <= 0x1p31 ? (int64_t)item->valuedouble
        : 0;
}

/* The vocabulary is what the table of tokens has; the list of tokens and the key `vocab_size` may not say another. */
static void set_vocabulary(Import *import, const GgufFile *file) {
    const FileTensor *table = tensor_find(import->file, "token_embd.weight");
    const GgufEntry *tokens = gguf_find(file, "tokenizer.ggml.tokens");
    const cJSON *told = config_find(import, "vocab_size", 10);
    if (!table || table->shape.rank != 2) fail("%s: no tensor `token_embd.weight` with two dims, which every model of "
        "tokens has", import->config_path);
    const int64_t rows = table->shape.dims[0];
    if (tokens && (int64_t)tokens->count != rows)
        fail("%s: `tokenizer.ggml.tokens` has %llu tokens, and `token_embd.weight` has %lld rows", import->config_path,
            (unsigned long long)tokens->count, (long long)rows);
    if (told && (!cJSON_IsNumber(told) || told->valuedouble != (double)rows))
        fail("%s: `%s.vocab_size` is %s, and `token_embd.weight` has %lld rows", import->config_path, import->type,
            config_value(import->arena, told), (long long)rows);
    variable_set(import, "vocab", arena_printf(import->arena, "%lld", (long long)rows));
}

/* The share of a head's columns that is rotated, where it is not the whole. */
static void set_partial(Import *import) {
    const int64_t rotated = whole(import, "rope.dimension_count"), heads = whole(import, "attention.head_count");
    int64_t head_dim = whole(import, "attention.key_length");
    if (whole(import, "attention.kv_lora_rank")) return; /* the rotated columns of latent attention are apart */
    if (!head_dim && heads) head_dim = whole(import, "embedding_length") / heads;
    if (!rotated || !head_dim || rotated == head_dim) return;
    if (rotated > head_dim) fail("%s: `%s.rope.dimension_count` is %lld, more than the %lld columns of a head",
        import->config_path, import->type, (long long)rotated, (long long)head_dim);
    variable_set(import, "partial", number_text(import->arena, (double)rotated / (double)head_dim));
}

/* The square of the factor by which DeepSeek stretches the scores of a yarn; unset where the file has none. */
static void set_yarn_scale(Import *import) {
    const cJSON *multiplier = config_find(import, "rope.scaling.yarn_log_multiplier", 32);
    const cJSON *factor = config_find(import, "rope.scaling.factor", 19);
    if (!cJSON_IsNumber(multiplier) || !(multiplier->valuedouble > 0)) return;
    const double log = cJSON_IsNumber(factor) && factor->valuedouble > 1 ? portable_log(factor->valuedouble) : 0;
    const double scale = 1 + multiplier->valuedouble * log;
    variable_set(import, "mscale", number_text(import->arena, scale * scale));
}

static bool holds_name(const Import *import, const char *end) {
    for (size_t i = 0; i < import->file->count; i++)
        if (text_ends(import->file->tensors[i].name, end)) return true;
    return false;
}

/* The divisors of the frequencies in a tensor, as the words of `scaling longrope`; unset where the file has none. */
static void set_divisors(Import *import, const char *variable, const char *tensor_name) {
    enum { MOST_PAIRS = 1024 };
    const FileTensor *tensor = tensor_find(import->file, tensor_name);
    int64_t count = 0;
    if (!tensor) return;
    if (!shape_elements(tensor->shape, &count) || count < 1 || count > MOST_PAIRS)
        fail("%s: tensor `%s` has the shape %s; up to %d numbers are read", import->config_path, tensor_name,
            shape_text(import->arena, tensor->shape), MOST_PAIRS);
    float *divisors = arena_array(import->arena, (size_t)count, sizeof *divisors);
    tensor_to_f32(tensor, 0, count, divisors);
    Text text = text_new(import->arena);
    for (int64_t i = 0; i < count; i++) {
        if (!(divisors[i] > 0 && divisors[i] < 0x1p60f)) fail("%s: number %lld of tensor `%s` is %g; numbers above 0 "
            "are read", import->config_path, (long long)i, tensor_name, (double)divisors[i]);
        text_printf(&text, " %s", number_text(import->arena, f32_written(divisors[i])));
    }
    variable_set(import, variable, text.data);
}

/* ---------------------------------------- the ends of texts */

/* Tokens with which chat templates of published models end a turn. */
static const char *const turn_ends[] = {
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|end_of_turn|>", "<|eom_id|>", "<|endofturn|>",
    "<end_of_utterance>", "<|END_OF_TURN_TOKEN|>", "<|end_of_text|>", "<|endoftext|>", "<|user_end|>", "<|eot|>",
    "<|return|>", "<EOT>", "<|turn_end|>", "<|role_end|>", "[EOT]", NULL};

static bool holds(const char *text, size_t size, const char *part) {
    const size_t length = strlen(part);
    for (const char *at = text; size >= length && at <= text + size - length; at++)
        if (memcmp(at, part, length) == 0) return true;
    return false;
}

/* Sets the variable `turn_ends` to the control tokens of the vocabulary that end a turn in the file's chat template.
 * Nothing else of the template goes into the spec, and a note says so. */
static void read_template(Import *import, const GgufFile *file) {
    enum { CONTROL = 3 };
    const GgufEntry *template = gguf_find(file, "tokenizer.chat_template");
    const GgufEntry *tokens = gguf_find(file, "tokenizer.ggml.tokens");
    const GgufEntry *types = gguf_find(file, "tokenizer.ggml.token_type");
    if (!template || template->array || template->type != GGUF_STRING) return;
    chat_note(import, "`tokenizer.chat_template`");
    if (!tokens || tokens->type != GGUF_STRING || !types || types->type == GGUF_STRING || types->count != tokens->count)
        return;
    const uint8_t *at = template->data, *next_token = tokens->data, *next_type = types->data;
    size_t size = 0, length = 0;
    const char *text = gguf_next_string(&at, &size);
    Text found = text_new(import->arena);
    for (uint64_t id = 0; id < tokens->count; id++) {
        const char *token = gguf_next_string(&next_token, &length);
        if ((int)gguf_next_number(types, &next_type) != CONTROL) continue;
        for (const char *const *end = turn_ends; *end; end++)
            if (length == strlen(*end) && memcmp(token, *end, length) == 0 && holds(text, size, *end))
                text_printf(&found, " %llu", (unsigned long long)id);
    }
    variable_set(import, "turn_ends", found.data);
}

/* ---------------------------------------- the family */

static void find_family(Import *import, const GgufFile *file) {
    const GgufEntry *entry = gguf_find(file, "general.architecture");
    if (!entry) fail("%s: the key `general.architecture` is missing", import->config_path);
    import->type = string_of(import, entry);
    import->family = family_find(import->arena, gguf_families, import->type);
    if (!import->family) fail("%s: `general.architecture` is \"%.*s\", which import does not read from a GGUF file; "
        "attnc import --list names those that it reads", import->config_path, CUT(60, import->type));
    variable_set(import, "type", import->type);
    variable_set(import, "task", "logits");
}

void gguf_source(Import *import, const char *path) {
    Arena *arena = import->arena;
    import->config_path = import->weights_path = arena_copy(arena, path, strlen(path));
    import->kind = "architecture";
    if (strchr(path, ',')) fail("%s: --weights takes a comma for the end of a file's name; give the file a name "
        "without one", path);
    const GgufFile file = gguf_open(arena, import->config_path);
    find_family(import, &file);
    import->class_name = arena_printf(arena, "a GGUF file of architecture %s", import->type);
    import->origin = import->class_name;
    import->file = arena_alloc(arena, sizeof *import->file);
    *import->file = file.tensors;
    make_config(import, &file);
    ignored_check(import);
    set_vocabulary(import, &file);
    set_partial(import);
    set_yarn_scale(import);
    read_template(import, &file);
    if (holds_name(import, ".exp_probs_b.bias")) variable_set(import, "corrected", "yes");
    if (holds_name(import, ".attn_k_b.weight")) variable_set(import, "split_heads", "yes");
    set_divisors(import, "divisors", "rope_freqs.weight");
    set_divisors(import, "short", "rope_factors_short.weight");
    set_divisors(import, "long", "rope_factors_long.weight");
}
