/* setting.c: keys of the files beside the weights that say how a model generates text. */
#include "project.h"

void project_settings_read(Project *p) {
    const char *folder = p->imported.folder; /* none of a GGUF file */
    const char *path = folder ? arena_printf(p->arena, "%s/generation_config.json", folder) : NULL;
    p->generation = path ? config_optional(p->arena, path) : NULL;
}

const cJSON *project_setting(const Project *p, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(p->generation, key);
    if (!item) item = cJSON_GetObjectItemCaseSensitive(p->imported.config, key);
    return item && !cJSON_IsNull(item) ? item : NULL;
}

int64_t project_token(const Project *p, const char *key, const cJSON *value) {
    const double id = cJSON_IsNumber(value) ? value->valuedouble : -1;
    if (!(id >= 0 && id < (double)p->model->decoder->vocab) || id != (double)(int64_t)id)
        fail("%s: `%s` has %s, which is no token of the decoder", p->source, key,
             cJSON_IsNumber(value) ? arena_printf(p->arena, "%g", value->valuedouble) : "a value");
    return (int64_t)id;
}
