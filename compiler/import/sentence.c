/* sentence.c: reads modules.json, by which sentence-transformers adds a pool, dense layers and a norm to a model, and
 * the maximal length of its texts. Modules that a `head` cannot express exactly are a failure. */
#include "../formats/json.h"
#include "import.h"

#include <string.h>

typedef struct Sentence {
    const char *list_path; /* modules.json */
    const char *folder;    /* folder of the model itself, without a final slash */
    bool own_head;         /* a cross encoder keeps the head of its class */
    bool generates;        /* it is a decoder of logits, for the module LogitScore */
    const char *pool, *pool_path;
    bool prompt_pooled;    /* false where the pool leaves out the rows of a prompt */
    int64_t width;         /* width of the rows that the pool expects, or 0 */
    Text dense;         /* lines of the spec */
    Text dense_weights; /* what --weights takes of them, with a comma in front of each */
    int64_t denses, dense_width;
    bool l2;
    int64_t rows; /* the most rows, or 0 */
    Prompts prompts;
    bool lowers;          /* texts become lower case before the tokenizer */
    const cJSON *side;    /* `truncation_side` among the arguments of the tokenizer, or NULL */
    const char *side_path;
    const char *activation; /* the Python class of what follows the logits, or NULL */
} Sentence;

enum { LONGEST_PATH = 255 };

/* ---------------------------------------- keys of an object */

static _Noreturn void refuse(const Import *import, const char *path, const cJSON *item, const char *wanted) {
    fail("%s: `%s` is %s; %s", path, item->string, config_value(import->arena, item), wanted);
}

static void only_keys(const Import *import, const char *path, const cJSON *object, const char *known) {
    for (const cJSON *item = object->child; item; item = item->next)
        if (!cJSON_IsNull(item) && !word_find(import->arena, known, item->string))
            fail("%s: the key `%.*s` (%s) is unknown", path, CUT(100, item->string), config_value(import->arena, item));
}

static bool flag(const Import *import, const char *path, const cJSON *object, const char *name, bool otherwise) {
    const cJSON *item = json_member(object, name);
    if (item && !cJSON_IsBool(item)) refuse(import, path, item, "true or false is understood");
    return item ? cJSON_IsTrue(item) : otherwise;
}

static const char *string(const Import *import, const char *path, const cJSON *object, const char *name) {
    const cJSON *item = json_member(object, name);
    if (item && !cJSON_IsString(item)) refuse(import, path, item, "a string is understood");
    return item ? item->valuestring : NULL;
}

static int64_t whole_between(const Import *import, const char *path, const cJSON *item, double least, double most,
                             const char *wanted) {
    const double value = cJSON_IsNumber(item) ? item->valuedouble : least - 1;
    if (!(value >= least && value <= most) || value != (double)(int64_t)value) refuse(import, path, item, wanted);
    return (int64_t)value;
}

static int64_t whole(const Import *import, const char *path, const cJSON *item) {
    return whole_between(import, path, item, 1, 0x1p31, "a whole number from 1 to 2^31 is understood");
}

/* ---------------------------------------- the length of texts, and what stands around the model */

/* Arguments of the model's loader that do not change results. */
static const char harmless[] = "torch_dtype dtype attn_implementation trust_remote_code use_safetensors "
    "low_cpu_mem_usage device_map revision token cache_dir local_files_only add_pooling_layer";

static void check_arguments(const Import *import, const char *path, const cJSON *object, const char *names) {
    size_t size;
    for (const char *name; (name = next_word(&names, &size));) {
        const cJSON *arguments = json_member(object, arena_copy(import->arena, name, size));
        for (const cJSON *item = arguments ? arguments->child : NULL; item; item = item->next)
            if (!item->string || !word_find(import->arena, harmless, item->string))
                fail("%s: `%.*s` has `%.*s`, which may change the model; it cannot be expressed in a spec", path,
                    (int)size, name, CUT(60, item->string ? item->string : "a list"));
    }
}

static void check_modality(const Import *import, const char *path, const cJSON *object) {
    const char *output = string(import, path, object, "module_output_name");
    if (output && !word_find(import->arena, "token_embeddings scores causal_logits", output))
        fail("%s: `module_output_name` is \"%.*s\"; token_embeddings is understood", path, CUT(60, output));
    const cJSON *modality = json_member(object, "modality_config"), *text = json_member(modality, "text");
    if (modality && !text) refuse(import, path, modality, "a model of text is understood");
    const char *method = text ? string(import, path, text, "method") : NULL;
    const char *field = text ? string(import, path, text, "method_output_name") : NULL;
    if ((method && strcmp(method, "forward") != 0)
        || (field && !word_find(import->arena, "last_hidden_state logits", field)))
        refuse(import, path, text, "the last hidden rows of `forward` are understood");
}

/* The longest text of the tokenizer, in tokens. It is looked up in the same files and order as sentence-transformers
 * does; a number beyond 2^31 means no limit. */
static int64_t tokenizer_rows(Import *import, const char *folder, const cJSON *config, const char *path) {
    static const char *const arguments[] = {"processor_kwargs", "tokenizer_args", "tokenizer_kwargs"};
    for (size_t i = 0; config && i < sizeof arguments / sizeof *arguments; i++) {
        const cJSON *most = json_member(json_member(config, arguments[i]), "model_max_length");
        if (most) return whole(import, path, most);
    }
    const cJSON *most = json_member(config, "max_seq_length");
    if (most) return whole(import, path, most);
    const char *tokenizer = arena_printf(import->arena, "%s/tokenizer_config.json", folder);
    most = json_member(config_optional(import->arena, tokenizer), "model_max_length");
    if (!most || (cJSON_IsNumber(most) && most->valuedouble > 0x1p31)) return 0;
    return whole(import, tokenizer, most);
}

/* Reads the arguments that the tokenizer is loaded and called with. What is not obeyed is said. */
static void read_arguments(Import *import, Sentence *sentence, const char *path, const cJSON *config) {
    static const char obeyed[] = "model_max_length truncation_side use_fast padding_side clean_up_tokenization_spaces";
    static const char *const names[] = {"processor_kwargs", "tokenizer_args", "tokenizer_kwargs", "processing_kwargs"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const cJSON *object = json_member(config, names[i]);
        for (const cJSON *item = object ? object->child : NULL; item; item = item->next) {
            const char *name = item->string ? item->string : "";
            if (strcmp(name, "truncation_side") == 0 && !sentence->side) sentence->side = item;
            const bool empty = cJSON_IsNull(item) || (cJSON_IsObject(item) && !item->child);
            if (!empty && !word_find(import->arena, obeyed, name) && !word_find(import->arena, harmless, name))
                import_note(import, "`%s` has `%.*s`, which is not obeyed.", names[i], CUT(60, name));
        }
    }
    sentence->side_path = path;
}

/* Reads sentence_bert_config.json, which older versions name after other models. */
static void read_transformer(Import *import, Sentence *sentence) {
    static const char *const names[] = {"bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta"};
    const char *path = NULL;
    const cJSON *config = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !config; i++) {
        path = arena_printf(import->arena, "%s/sentence_%s_config.json", sentence->folder, names[i]);
        config = config_optional(import->arena, path);
    }
    sentence->rows = tokenizer_rows(import, sentence->folder, config, path);
    if (!config) return;
    only_keys(import, path, config,
        "max_seq_length do_lower_case transformer_task modality_config module_output_name processing_kwargs "
        "unpad_inputs model_args model_kwargs tokenizer_args tokenizer_kwargs processor_kwargs config_args "
        "config_kwargs tokenizer_name_or_path");
    check_arguments(import, path, config, "model_args model_kwargs config_args config_kwargs");
    check_modality(import, path, config);
    const char *task = string(import, path, config, "transformer_task");
    sentence->own_head = task && strcmp(task, "sequence-classification") == 0;
    sentence->generates = task && strcmp(task, "text-generation") == 0;
    if (task && !sentence->own_head && !sentence->generates && strcmp(task, "feature-extraction") != 0)
        fail("%s: `transformer_task` is \"%.*s\"; feature-extraction, sequence-classification and text-generation are "
            "understood", path, CUT(60, task));
    sentence->lowers = flag(import, path, config, "do_lower_case", false);
    read_arguments(import, sentence, path, config);
}

/* ---------------------------------------- modules behind it */

static const char *config_of(Import *import, const char *folder) {
    return arena_printf(import->arena, "%s/config.json", folder);
}

/* The only mode that is set, in the words of `pooling_mode`. */
static const char *pooling_mode(Import *import, const char *path, const cJSON *config) {
    static const char *const keys[][2] = {
        {"pooling_mode_cls_token", "cls"}, {"pooling_mode_max_tokens", "max"}, {"pooling_mode_mean_tokens", "mean"},
        {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"},
        {"pooling_mode_weightedmean_tokens", "weightedmean"}, {"pooling_mode_lasttoken", "lasttoken"}};
    const cJSON *item = json_member(config, "pooling_mode");
    if (cJSON_IsArray(item) && item->child && !item->child->next && cJSON_IsString(item->child))
        return item->child->valuestring;
    if (cJSON_IsArray(item)) refuse(import, path, item, "one mode is understood, since a pool of a spec is one row");
    if (item) return string(import, path, config, "pooling_mode");
    const char *mode = NULL, *key = NULL;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (!flag(import, path, config, keys[i][0], false)) continue;
        if (mode) fail("%s: both `%s` and `%s` are true; one mode is understood, since a pool of a spec is one row",
            path, key, keys[i][0]);
        key = keys[i][0];
        mode = keys[i][1];
    }
    return mode ? mode : "mean";
}

static void read_pooling(Import *import, Sentence *sentence, const char *folder) {
    const char *path = config_of(import, folder);
    const cJSON *config = config_read(import->arena, path);
    only_keys(import, path, config,
        "embedding_dimension word_embedding_dimension pooling_mode include_prompt pooling_mode_cls_token "
        "pooling_mode_max_tokens pooling_mode_mean_tokens pooling_mode_mean_sqrt_len_tokens "
        "pooling_mode_weightedmean_tokens pooling_mode_lasttoken");
    const char *mode = pooling_mode(import, path, config);
    static const char pools[] = "mean mean_sqrt_len_tokens=mean_sqrt weightedmean=weighted_mean cls max lasttoken=last";
    sentence->pool = word_find(import->arena, pools, mode);
    if (!sentence->pool) fail("%s: the pooling mode `%.*s` is unknown; mean, mean_sqrt_len_tokens, weightedmean, cls, "
        "max and lasttoken are understood", path, CUT(60, mode));
    sentence->pool_path = path;
    sentence->prompt_pooled = flag(import, path, config, "include_prompt", true);
    const cJSON *width = json_member(config, "embedding_dimension");
    if (!width) width = json_member(config, "word_embedding_dimension");
    if (width) sentence->width = whole(import, path, width);
}

/* Refuses a module that reads or writes anything but the pooled row. */
static void check_names(const Import *import, const char *path, const cJSON *config) {
    static const char *const names[] = {"module_input_name", "module_output_name"};
    for (int i = 0; i < 2; i++) {
        const char *name = string(import, path, config, names[i]);
        if (name && strcmp(name, "sentence_embedding") != 0)
            fail("%s: `%s` is \"%.*s\"; sentence_embedding, the pooled row, is understood", path, names[i],
                CUT(60, name));
    }
}

static void read_normalize(Import *import, Sentence *sentence, const char *folder) {
    const char *path = config_of(import, folder);
    const cJSON *config = config_optional(import->arena, path);
    if (config) only_keys(import, path, config, "module_input_name module_output_name");
    if (config) check_names(import, path, config);
    if (sentence->l2) fail("%s: two modules normalize; one is understood", sentence->list_path);
    sentence->l2 = true;
}

static const char *dense_weights(Import *import, const char *folder) {
    const char *path = folder_weights(import->arena, folder);
    if (!path) fail("%s: no model.safetensors and no pytorch_model.bin, which hold the dense module's weights", folder);
    return path;
}

/* What stands behind a dense module, by the class of torch; all of them are made without arguments. */
static const char functions[] =
    "Identity=identity Tanh=tanh ReLU=relu GELU=gelu SiLU=silu Sigmoid=sigmoid Mish=mish Softplus=softplus "
    "LeakyReLU=leaky_relu ELU=elu Hardswish=hard_swish Hardsigmoid=hard_sigmoid";

static const char *dense_activation(Import *import, const char *path, const cJSON *config) {
    static const char own[] = "torch.nn.modules.";
    const char *name = string(import, path, config, "activation_function");
    if (!name) return "tanh";
    const char *dot = strrchr(name, '.');
    const bool known = dot && strncmp(name, own, sizeof own - 1) == 0;
    const char *word = known ? word_find(import->arena, functions, dot + 1) : NULL;
    if (!word) fail("%s: `activation_function` is \"%.*s\"; the functions of %s are understood: %s", path,
                    CUT(100, name), own, functions);
    return word;
}

/* A dense module becomes a block `dense`. */
static void read_dense(Import *import, Sentence *sentence, const char *folder) {
    const char *path = config_of(import, folder);
    const cJSON *config = config_read(import->arena, path);
    only_keys(import, path, config, "in_features out_features bias activation_function module_input_name "
        "module_output_name use_residual");
    check_names(import, path, config);
    if (sentence->l2) fail("%s: a norm precedes it; in a spec, `l2` follows all `dense`", path);
    bool bias = flag(import, path, config, "bias", true);
    if (flag(import, path, config, "use_residual", false))
        fail("%s: `use_residual` is true; a spec adds nothing to a dense layer", path);
    const cJSON *in = json_member(config, "in_features"), *out = json_member(config, "out_features");
    if (!in || !out) fail("%s: `%s` is missing", path, in ? "out_features" : "in_features");
    int64_t from = whole(import, path, in), to = whole(import, path, out);
    if (!sentence->denses && sentence->width && from != sentence->width)
        fail("%s: `in_features` is %lld, but the pool gives %lld", path, (long long)from, (long long)sentence->width);
    if (sentence->denses && from != sentence->dense_width)
        fail("%s: `in_features` is %lld, but the dense module before it gives %lld", path, (long long)from,
            (long long)sentence->dense_width);
    const char *function = dense_activation(import, path, config);
    const bool plain = strcmp(function, "identity") == 0;
    text_printf(&sentence->dense, "dense %lld { bias %s%s%s }\n", (long long)to, bias ? "all" : "none",
        plain ? "" : ", activation ", plain ? "" : function);
    text_printf(&sentence->dense_weights, ",dense.%lld=%s", (long long)sentence->denses,
        dense_weights(import, folder));
    sentence->denses++;
    sentence->dense_width = to;
}

static int64_t token_of(const Import *import, const char *path, const cJSON *item) {
    return whole_between(import, path, item, 0, INT32_MAX, "the number of a token is understood");
}

/* The logits of a decoder become a score by the tokens that the module names. */
static void read_score(Import *import, const char *folder) {
    const char *path = config_of(import, folder);
    const cJSON *config = config_read(import->arena, path);
    only_keys(import, path, config, "true_token_id false_token_id module_input_name");
    const cJSON *right = json_member(config, "true_token_id"), *wrong = json_member(config, "false_token_id");
    const char *input = string(import, path, config, "module_input_name");
    if (!right) fail("%s: `true_token_id` is missing", path);
    if (input && strcmp(input, "causal_logits") != 0)
        fail("%s: `module_input_name` is \"%.*s\"; causal_logits is understood", path, CUT(60, input));
    if (import->score.n) fail("%s: a module LogitScore names the tokens already, and `--score` names others", path);
    import->score = (Score){.n = wrong ? 2 : 1, .tokens = {token_of(import, path, right)}, .origin = path};
    if (wrong) import->score.tokens[1] = token_of(import, path, wrong);
}

/* ---------------------------------------- the list of modules */

static const char kinds[] = "Transformer Pooling Dense Normalize Dropout LogitScore";

/* The last word of the type where the module belongs to sentence-transformers itself. */
static const char *kind_of(const Import *import, const char *place, const char *type) {
    static const char own[] = "sentence_transformers.";
    const char *dot = strrchr(type, '.');
    const char *kind = dot && strncmp(type, own, sizeof own - 1) == 0 ? word_find(import->arena, kinds, dot + 1) : NULL;
    if (!kind) fail("%s: `type` is \"%.*s\", which a spec cannot express; those of sentence_transformers named %s "
        "are understood", place, CUT(150, type), kinds);
    return kind;
}

static const char *module_folder(const Import *import, const char *place, const char *directory, const char *path) {
    size_t size = strlen(path);
    while (size && path[size - 1] == '/') size--;
    if (!size) return directory;
    bool good = size <= LONGEST_PATH && *path != '/';
    for (const char *part = path; good && *part; part += strcspn(part, "/"), part += *part == '/')
        good = strncmp(part, "..", 2) != 0;
    for (const char *c = path; good && *c; c++) good = (unsigned char)*c >= 0x20 && *c != 0x7f && *c != ',';
    if (!good) fail("%s: `path` is \"%.*s\"; a folder beside modules.json is understood", place, CUT(100, path));
    return arena_printf(import->arena, "%s/%.*s", directory, (int)size, path);
}

static void read_module(Import *import, Sentence *sentence, const char *directory, const cJSON *module, int index) {
    const char *place = arena_printf(import->arena, "%s: module %d", sentence->list_path, index);
    if (!cJSON_IsObject(module)) fail("%s is not an object", place);
    only_keys(import, place, module, "idx name path type kwargs");
    const cJSON *arguments = json_member(module, "kwargs");
    if (arguments && arguments->child) refuse(import, place, arguments, "a module without arguments is understood");
    const char *type = string(import, place, module, "type"), *path = string(import, place, module, "path");
    if (!type) fail("%s: `type` is missing", place);
    const char *kind = kind_of(import, place, type);
    const char *folder = module_folder(import, place, directory, path ? path : "");
    bool first = strcmp(kind, "Transformer") == 0;
    if (first != (index == 0)) fail("%s: it is a %s; a Transformer is the first module, and none but the first", place,
        kind);
    if (first) {
        sentence->folder = folder;
        read_transformer(import, sentence);
    } else if (strcmp(kind, "Pooling") == 0) {
        if (sentence->pool) fail("%s: it is the second Pooling", place);
        read_pooling(import, sentence, folder);
    } else if (strcmp(kind, "LogitScore") == 0) {
        if (!sentence->generates) fail("%s: it is a LogitScore behind a model without logits of tokens", place);
        read_score(import, folder);
    } else if (strcmp(kind, "Dropout") != 0) { /* Dropout acts only in training */
        if (!sentence->pool) fail("%s: a %s without a Pooling in front of it has no pooled row", place, kind);
        if (strcmp(kind, "Dense") == 0) read_dense(import, sentence, folder);
        else read_normalize(import, sentence, folder);
    }
}

/* Reads config_sentence_transformers.json. */
static void read_whole(Import *import, Sentence *sentence, const char *directory) {
    const char *path = arena_printf(import->arena, "%s/config_sentence_transformers.json", directory);
    const cJSON *config = config_optional(import->arena, path);
    if (!config) return;
    only_keys(import, path, config, "__version__ prompts default_prompt_name similarity_fn_name model_type "
        "activation_fn");
    const char *type = string(import, path, config, "model_type"), *name;
    const char *wanted = sentence->own_head || sentence->generates ? "CrossEncoder" : "SentenceTransformer";
    if (type && strcmp(type, wanted) != 0)
        fail("%s: `model_type` is \"%.*s\"; %s is understood for this `transformer_task`", path, CUT(60, type), wanted);
    const cJSON *prompts = json_member(config, "prompts");
    if (prompts && !cJSON_IsObject(prompts)) refuse(import, path, prompts, "an object is understood");
    for (const cJSON *prompt = prompts ? prompts->child : NULL; prompt; prompt = prompt->next)
        if (!sentence->prompt_pooled && cJSON_IsString(prompt) && *prompt->valuestring)
            fail("%s: `include_prompt` is false, and %s has the prompt `%.*s`; a pool of a spec has all rows in it",
                sentence->pool_path, path, CUT(60, prompt->string));
    sentence->prompts = (Prompts){path, prompts, string(import, path, config, "default_prompt_name")};
    if ((name = sentence->activation = string(import, path, config, "activation_fn")))
        import_note(import, "The activation %.*s after the logits is not in the spec.", CUT(100, name));
}

const char *sentence_read(Import *import, const char *directory) {
    const char *path = arena_printf(import->arena, "%s/modules.json", directory);
    if (!file_exists(path)) return directory;
    Sentence *sentence = arena_alloc(import->arena, sizeof *sentence);
    *sentence = (Sentence){.list_path = path, .prompt_pooled = true, .dense = text_new(import->arena),
        .dense_weights = text_new(import->arena)};
    const cJSON *list = config_list(import->arena, path);
    int index = 0;
    for (const cJSON *module = list->child; module; module = module->next, index++)
        read_module(import, sentence, directory, module, index);
    if (!index) fail("%s: it lists no module", path);
    if ((sentence->own_head || sentence->generates) && sentence->pool)
        fail("%s: `transformer_task` %s gives no rows to the Pooling", path,
            sentence->own_head ? "sequence-classification" : "text-generation");
    if (sentence->generates && !import->score.n)
        fail("%s: `transformer_task` is text-generation, and no module LogitScore reads its logits", path);
    read_whole(import, sentence, directory);
    import->sentence = sentence;
    return sentence->folder;
}

/* ---------------------------------------- from modules to a head */

void sentence_task(Import *import) {
    if (!import->sentence) return;
    const char *own = variable_get(import, "task", 4);
    if (import->sentence->own_head && (!own || strcmp(own, "classify") != 0))
        fail("%s: `transformer_task` is sequence-classification, but %s has no head that attnc knows to classify",
            import->sentence->list_path, import->class_name);
    if (import->sentence->own_head || import->sentence->generates) return;
    const char *classes = import->family->classes;
    const char *stem = word_find(import->arena, import->family->types, import->type);
    bool encoder = strstr(classes, "=encoder") != NULL; /* T5 without its decoder */
    size_t size;
    for (const char *word; (word = next_word(&classes, &size));) {
        const char *task = arena_copy(import->arena, word, size);
        size_t length = strcspn(task, "=");
        if (strcmp(task + length, encoder ? "=encoder" : "=hidden") != 0) continue;
        import->class_name = arena_printf(import->arena, "%s%.*s", stem, (int)length, task);
        variable_set(import, "task", encoder ? "encoder" : "rows"); /* without a pooler of the class */
        return;
    }
    fail("%s: `%s` has no class that gives hidden rows", import->sentence->list_path, import->type);
}

int64_t sentence_rows(Import *import) {
    if (import->sentence) return import->sentence->rows;
    const bool cut = import->folder && text_ends(import->class_name, "ForSequenceClassification");
    return cut ? tokenizer_rows(import, import->folder, NULL, NULL) : 0;
}

const char *sentence_weights(Import *import) {
    return import->sentence ? import->sentence->dense_weights.data : "";
}

Prompts sentence_prompts(const Import *import) { return import->sentence ? import->sentence->prompts : (Prompts){0}; }

bool sentence_lowers(const Import *import) { return import->sentence && import->sentence->lowers; }

const cJSON *sentence_side(const Import *import, const char **path) {
    *path = import->sentence ? import->sentence->side_path : NULL;
    return import->sentence ? import->sentence->side : NULL;
}

const char *sentence_activation(const Import *import) {
    return import->sentence ? import->sentence->activation : NULL;
}

static const char *sentence_body(Import *import, const char *body) {
    const Sentence *sentence = import->sentence;
    if (!sentence || !sentence->pool) return body;
    const char *width = variable_get(import, "d_model", 7);
    if (sentence->width && width && strcmp(width, number_text(import->arena, (double)sentence->width)) != 0)
        fail("%s: it pools rows of width %lld, but those of the model are %s wide", sentence->pool_path,
            (long long)sentence->width, width);
    if (strstr(body, "\nencoder {") && strstr(body, "\ndecoder {"))
        fail("%s: it pools, and `%s` is an encoder and a decoder; a pool is for a model of one stack",
            sentence->pool_path, import->type);
    Text out = text_new(import->arena);
    for (size_t size; *body; body += size) {
        size = strcspn(body, "\n");
        size += body[size] == '\n';
        if (strncmp(body, "head ", 5) != 0) text_add(&out, body, size);
    }
    text_printf(&out, "head pool %s%s\n%s", sentence->pool, sentence->l2 ? " l2" : "", sentence->dense.data);
    return out.data;
}

void sentence_tensors(const Import *import, Text *out) {
    for (int64_t i = 0; import->sentence && i < import->sentence->denses; i++)
        text_printf(out, "\"dense.%lld.*\" from \"dense.%lld.linear.*\"\n", (long long)i, (long long)i);
}

void spec_body(Import *import, Text *out) {
    Text body = text_new(import->arena);
    fill_spec(import, &body);
    text_printf(out, "%s", sentence_body(import, body.data));
}
