/* task.c: what the program of a model is for, from the head of its spec and from its config. */
#include "project.h"

#include <stdlib.h>
#include <string.h>

static _Noreturn void refuse(const Project *p, const char *why) {
    fail_status(EXIT_CANNOT, "%s: attnc get has no program for this model: %s; attnc import writes its spec",
                p->source, why);
}

const Stack *project_text_stack(const Model *model) {
    return model->encoder && (model->encoder->vocab || !model->decoder) ? model->encoder : model->decoder;
}

static bool is_classifier(const Imported *imported) {
    static const char *const endings[] = {"ForSequenceClassification", "ForMultipleChoice",
                                          "ForNextSentencePrediction"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings && imported->class_name; i++)
        if (text_ends(imported->class_name, endings[i])) return true;
    return false;
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
            fail("%s: `id2label` has an entry `%.*s` that names none of the %lld classes", p->source,
                 CUT(60, name->string ? name->string : ""), (long long)p->model->head.classifier);
        char *label = arena_copy(p->arena, name->valuestring, strlen(name->valuestring));
        text_disarm_line(label, strlen(label)); /* the program prints a label, a tab and a number on a line */
        p->labels[id] = label;
    }
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
    const bool hears = both && reads_sound(m);
    if (m->alone || !project_text_stack(m)->vocab || (both && !m->encoder->vocab && !hears))
        refuse(p, "its input is neither a text nor a sound with words");
    if (p->imported.scores) refuse(p, "it judges texts in its chat template, which a program does not put around them");
    if (m->head.classifier_rows) refuse(p, "its head classifies each row");
    if (m->head.logits && !m->decoder) refuse(p, "its head gives the token of each row");
    if (both && !m->head.logits) refuse(p, "it has a decoder, and no logits to write with");
    project_settings_read(p);
    p->task = hears ? TASK_TRANSCRIBE : both ? TASK_TRANSLATE : m->head.logits ? TASK_GENERATE : TASK_EMBED;
    if (both && m->start < 0) refuse(p, "no token begins its decoder's text");
    if (p->task == TASK_TRANSCRIBE) project_speech(p);
    if (is_classifier(&p->imported) && m->head.classifier) classify(p);
}
