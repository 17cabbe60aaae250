/* explain_page.c: attnc explain --html writes the counts as JSON, which pages/explain.html draws. */
#include "explain.h"

static void add_head(const Explain *x, Text *out) {
    const EntrySizes *sizes = &x->code.entries[ENTRY_FORWARD];
    page_member(out, "{", "model", x->module->model->name);
    page_member(out, ",", "call", x->call);
    text_printf(out, ",\"parameters\":%.0f,\"flops\":%.0f,\"bytes\":%.0f,\n", x->parameters, x->flops, x->bytes);
    text_printf(out, "\"weights\":%lld,\"workspace\":%lld,\"chunk\":%lld,\"scratch\":%lld,\"code\":%zu,\"targets\":[",
                (long long)packed_file_bytes(x->plan->program), (long long)sizes->workspace_bytes,
                (long long)x->plan->rows, (long long)sizes->scratch_bytes, x->code.c_bytes);
    for (int t = 0; t < x->n_targets; t++) {
        if (t) text_printf(out, ",");
        page_string(out, x->targets[t]);
    }
    text_printf(out, "],\n\"roofs\":");
    if (x->peak > 0) {
        page_member(out, "{", "target", x->peak_target);
        text_printf(out, ",\"flops\":%.9e,\"read\":%.9e}", x->peak, x->read);
    } else {
        text_printf(out, "null");
    }
}

static void add_steps(const Explain *x, Text *out) {
    for (int i = 0; i < x->plan->n_steps; i++) {
        const Step *s = &x->plan->steps[i];
        page_member(out, i ? ",\n{" : "\n{", "kind", step_kind_name(s->kind));
        page_member(out, ",", "name", s->name);
        page_member(out, ",", "layer", s->layer);
        page_member(out, ",", "shape", s->shape);
        text_printf(out, ",\"rows\":%lld,\"flops\":%.0f,\"bytes\":%.0f}",
                    (long long)step_rows(x->plan, s, &x->rows), step_flops(x->plan, s, &x->rows),
                    step_bytes(x->plan, s, &x->rows));
    }
}

/* `offset` is in bytes from the start of the workspace; the buffer lives from step `first` to step `last`. */
static void add_buffer(Text *out, const char *name, int64_t offset, int64_t bytes, int first, int last) {
    page_member(out, "\n{", "name", name);
    text_printf(out, ",\"offset\":%lld,\"bytes\":%lld,\"first\":%d,\"last\":%d}", (long long)offset, (long long)bytes,
                first, last);
}

static void add_buffers(const Explain *x, Text *out) {
    int64_t control = x->code.entries[ENTRY_FORWARD].control_bytes;
    add_buffer(out, "arrays of the call", 0, control, 0, x->plan->n_steps - 1);
    for (int i = 0; i < x->plan->n_buffers; i++) {
        const Buffer *b = &x->plan->buffers[i];
        if (b->slot.space != SPACE_WORKSPACE || b->first < 0) continue;
        text_printf(out, ",");
        add_buffer(out, b->slot.name, control + b->slot.offset, b->slot.bytes, b->first, b->last);
    }
}

static void add_parts(const Explain *x, Text *out) {
    for (int i = 0; i < x->code.n_parts; i++) {
        const CodePart *part = &x->code.parts[i];
        page_member(out, i ? ",\n{" : "\n{", "target", part->target);
        page_member(out, ",", "kind", part->kind);
        page_member(out, ",", "name", part->name);
        text_printf(out, ",\"bytes\":%zu}", part->bytes);
    }
}

static void add_patterns(const Explain *x, Text *out) {
    for (int i = 0; i < x->n_patterns; i++) {
        const Pattern *p = &x->patterns[i];
        page_member(out, i ? ",\n{" : "\n{", "place", p->place);
        page_member(out, ",", "rule", p->rule);
        page_member(out, ",", "given", p->given);
        page_member(out, ",", "target", p->target);
        text_printf(out, ",\"rows\":%lld,\"keys\":%lld,\"allRows\":%lld,\"visible\":%lld,\"multiplied\":%lld",
                    (long long)p->rows, (long long)p->keys, (long long)p->all_rows, (long long)p->visible,
                    (long long)p->multiplied);
        text_printf(out, ",\"tile\":%lld,\"panel\":%d,\"cell\":%lld,\"lines\":[", (long long)p->tile, PANEL,
                    (long long)p->cell);
        for (int line = 0; line < p->lines; line++) text_printf(out, "%s\"%s\"", line ? "," : "", p->cells[line]);
        text_printf(out, "]}");
    }
}

void explain_page(const Explain *x, const char *path) {
    Text out = text_new(x->arena);
    add_head(x, &out);
    text_printf(&out, ",\n\"steps\":[");
    add_steps(x, &out);
    text_printf(&out, "],\n\"buffers\":[");
    add_buffers(x, &out);
    text_printf(&out, "],\n\"parts\":[");
    add_parts(x, &out);
    text_printf(&out, "],\n\"patterns\":[");
    add_patterns(x, &out);
    text_printf(&out, "]}");
    page_write(x->arena, path, "explain.html", x->module->model->name, out.data);
}
