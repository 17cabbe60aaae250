/* compare_page.c: the measurements of attnc compare as JSON, alone or in pages/compare.html. */
#include "compare.h"

#include "commands.h"

static void add_outputs(Text *out, const Measurement *m) {
    const char *comma = "";
    text_printf(out, ",\"outputs\":{");
    for (int a = 0; a < OUT_COUNT; a++) {
        const RowErrors *e = &m->outputs[a];
        if (!e->rows) continue;
        text_printf(out, "%s\"%s\":{\"rel_mean\":%.9g,\"rel_max\":%.9g,\"cos_mean\":%.9g,\"cos_max\":%.9g}", comma,
                    output_name((OutputRole)a), e->rel_mean, e->rel_max, e->cos_mean, e->cos_max);
        comma = ",";
    }
    text_printf(out, "}");
}

static void add_logits(Text *out, const LogitsErrors *l) {
    text_printf(out, ",\"logits\":");
    if (!l->rows) {
        text_printf(out, "null");
        return;
    }
    if (l->tokens)
        text_printf(out, "{\"perplexity\":%.9g,\"perplexity_f32\":%.9g", l->perplexity, l->perplexity_f32);
    else text_printf(out, "{\"perplexity\":null,\"perplexity_f32\":null");
    text_printf(out, ",\"kl_mean\":%.9g,\"kl_max\":%.9g,\"top1\":%.9g}", l->kl_mean, l->kl_max, l->top1);
}

/* With `layers`, each step also has its layer and its kind, for the page. */
static void add_measurement(Text *out, const Measurement *m, bool layers) {
    page_member(out, "{", "precision", m->precision);
    text_printf(out, ",\"weights_bytes\":%lld,\"workspace_bytes\":%lld,\"median_s\":%.9g", (long long)m->weights_bytes,
                (long long)m->workspace_bytes, m->median_s);
    add_outputs(out, m);
    add_logits(out, &m->logits);
    text_printf(out, ",\"steps\":[");
    for (int i = 0; i < m->n_steps; i++) {
        page_member(out, i ? ",{" : "{", "name", m->steps[i].name);
        text_printf(out, ",\"rel\":%.9g", m->steps[i].rel);
        if (layers) {
            page_member(out, ",", "layer", m->steps[i].layer);
            page_member(out, ",", "kind", m->steps[i].kind);
        }
        text_printf(out, "}");
    }
    text_printf(out, "]}");
}

static void add_list(Text *out, const Compare *x, bool layers) {
    text_printf(out, "[");
    for (int i = 0; i < x->n; i++) {
        text_printf(out, "%s", i ? ",\n" : "");
        add_measurement(out, x->list[i], layers);
    }
    text_printf(out, "]");
}

void compare_json(Text *out, const Compare *x) { add_list(out, x, false); }

void compare_page(const Compare *x, const char *path) {
    Text out = text_new(x->arena);
    page_member(&out, "{", "model", x->module->model->name);
    page_member(&out, ",", "call", x->call);
    text_printf(&out, ",\"f32\":");
    add_measurement(&out, x->f32, true);
    text_printf(&out, ",\n\"precisions\":");
    add_list(&out, x, true);
    text_printf(&out, "}");
    page_write(x->arena, path, "compare.html", x->module->model->name, out.data);
}
