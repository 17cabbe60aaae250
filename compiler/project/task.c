/* task.c: what the program of a model is for, from the head of its spec and from its config. */
#include "project.h"

#include <stdlib.h>
#include <string.h>

static _Noreturn void refuse(const Project *p, const char *why) {
    fail_status(EXIT_CANNOT, "%s: attnc get has no program for this model: %s; attnc import writes its spec",
                p->source, why);
}

static const Stack *stack_of(const Model *model) { return model->encoder ? model->encoder : model->decoder; }

static bool is_classifier(const Imported *imported) {
    return imported->class_name && text_ends(imported->class_name, "ForSequenceClassification");
}

bool project_needs_pool(const Imported *imported, const Model *model) {
    const Head *head = &model->head;
    return !head->logits && head->pool == POOL_NONE && !head->pooler && !head->classifier && !is_classifier(imported) &&
           !(model->encoder && model->decoder);
}

/* The names of the classes. A config that has none for a class has LABEL_N for it, as in transformers. */
static void read_labels(Project *p) {
    const cJSON *names = cJSON_GetObjectItemCaseSensitive(p->imported.config, "id2label"), *name;
    p->labels = arena_array(p->arena, (size_t)p->model->head.classifier, sizeof *p->labels);
    for (int64_t i = 0; i < p->model->head.classifier; i++)
        p->labels[i] = arena_printf(p->arena, "LABEL_%lld", (long long)i);
    cJSON_ArrayForEach(name, names) {
        char *end = NULL;
        const long id = name->string ? strtol(name->string, &end, 10) : -1;
        if (!end || *end || end == name->string || id < 0 || id >= p->model->head.classifier || !cJSON_IsString(name))
            fail("%s: `id2label` has an entry `%.60s` that names none of the %lld classes", p->source,
                 name->string ? name->string : "", (long long)p->model->head.classifier);
        p->labels[id] = name->valuestring;
    }
}

/* A number of generation_config.json where the folder has that file and the number is in it, else of the config. */
static const cJSON *number_of(const Project *p, const char *key) {
    const char *path = arena_printf(p->arena, "%s/generation_config.json", p->imported.folder);
    const cJSON *config = file_exists(path) ? config_read(p->arena, path) : p->imported.config;
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(config, key);
    if (!item) item = cJSON_GetObjectItemCaseSensitive(p->imported.config, key);
    return cJSON_IsNumber(item) ? item : NULL;
}

/* Models of several languages have a token behind the start, which names the language. */
static void read_forced(Project *p) {
    const cJSON *forced = number_of(p, "forced_bos_token_id");
    if (!forced) return;
    if (!(forced->valuedouble >= 0 && forced->valuedouble < (double)p->model->decoder->vocab) ||
        forced->valuedouble != (double)(int64_t)forced->valuedouble)
        fail("%s: `forced_bos_token_id` is %g, which is no token of the decoder", p->source, forced->valuedouble);
    p->forced = (int64_t)forced->valuedouble;
}

static void classify(Project *p) {
    const cJSON *kind = cJSON_GetObjectItemCaseSensitive(p->imported.config, "problem_type");
    p->task = p->model->head.classifier == 1 ? TASK_RERANK : TASK_CLASSIFY;
    p->each = cJSON_IsString(kind) && strcmp(kind->valuestring, "multi_label_classification") == 0;
    if (cJSON_IsString(kind) && strcmp(kind->valuestring, "regression") == 0 && p->task == TASK_CLASSIFY)
        refuse(p, "`problem_type` is regression, and its numbers are no classes");
    p->squashed = p->imported.activation && text_ends(p->imported.activation, ".Sigmoid");
    if (p->task == TASK_CLASSIFY) read_labels(p);
}

void project_task(Project *p) {
    const Model *m = p->model;
    const bool both = m->encoder && m->decoder;
    p->forced = -1;
    if (m->alone || !stack_of(m)->vocab) refuse(p, "its input is no text");
    if (m->head.classifier_rows) refuse(p, "its head classifies each row");
    if (m->head.logits && !m->decoder) refuse(p, "its head gives the token of each row");
    if (both && !m->head.logits) refuse(p, "it has a decoder, and no logits to write with");
    p->task = both ? TASK_TRANSLATE : m->head.logits ? TASK_GENERATE : TASK_EMBED;
    if (both && m->start < 0) refuse(p, "no token begins its decoder's text");
    if (both) read_forced(p);
    if (is_classifier(&p->imported) && m->head.classifier) classify(p);
}
