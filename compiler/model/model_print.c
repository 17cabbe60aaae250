/* model_print.c: prints every resolved number of a model in one canonical form. --dump=model shows the whole text. The
 * model's hash is over the text without lengths, unroll and exports, with numbers of 17 digits. */
#include "../attnc.h"

#include <math.h>

static const char *norm_kind_name(NormKind kind) {
    static const char *const names[] = {
        "none",
#define NORM(name, has_bias, help) #name,
#include "norms.def"
    };
    return names[kind];
}

const char *activation_name(Activation activation) {
    static const char *const names[MOST_ACTIVATIONS] = {
#define ACTIVATION(name, formula, imported, help) #name,
#include "activations.def"
        "formula1", "formula2",  "formula3",  "formula4",  "formula5",  "formula6",  "formula7",  "formula8",
        "formula9", "formula10", "formula11", "formula12", "formula13", "formula14", "formula15", "formula16",
    };
    return names[activation];
}

static const char *position_kind_name(PositionKind kind) {
    static const char *const names[] = {"none", "sinusoidal", "learned", "rope", "alibi", "relative", "content"};
    return names[kind];
}

const char *pool_name(PoolKind kind) {
    static const char *const names[] = {"none", "mean", "cls", "max", "last", "cls_mean", "cls_distillation", "probe",
                                        "last skip", "last token", "mean_sqrt", "weighted_mean"};
    return names[kind];
}

typedef struct Print {
    Text *out;
    bool whole; /* for --dump; otherwise the text that is hashed, whose form must not change */
    const RowInput *row_inputs; /* of the model */
    Precision outer; /* likewise; a part prints its own precision where that differs */
    int64_t d_model; /* likewise */
} Print;

static const char *real(const Print *to, double value) {
    return to->whole ? number_text(to->out->arena, value) : arena_printf(to->out->arena, "%.17g", value);
}

static void print_norm(const Print *to, const char *name, Norm norm) {
    Text *out = to->out;
    if (norm.kind == NORM_NONE) return;
    text_printf(out, " %s %s eps %s%s%s,", name, norm_kind_name(norm.kind), real(to, norm.eps),
                norm.plus_one ? " plus_one" : "", norm.bias ? "" : " no_bias");
}

static void print_factors(const Print *to, const char *name, const double *factors, int64_t n) {
    Text *out = to->out;
    text_printf(out, " %s", name);
    for (int64_t i = 0; i < n; i++) text_printf(out, " %s", real(to, factors[i]));
}

static void print_weight_type(Text *out, WeightType type, const char *(*name_of)(Dtype)) {
    text_printf(out, " %s", name_of(type.dtype));
    if (type.group) text_printf(out, " %d%s%s", type.group, type.offset ? " offset" : "", type.halves ? " halves" : "");
}

static void print_smoothing(Text *out, const Precision *precision) {
    if (precision->smooth) text_printf(out, " smooth");
    if (precision->outliers) text_printf(out, " outliers %d", precision->outliers);
}

void print_precision(Text *out, const Precision *own, const Precision *outer, const char *(*name_of)(Dtype)) {
    if (!weight_type_equal(own->weights, outer->weights)) {
        text_printf(out, " weights");
        print_weight_type(out, own->weights, name_of);
    }
    if (!precision_rows_equal(own, outer)) {
        text_printf(out, " activations %s", name_of(own->activations));
        print_smoothing(out, own);
    }
    if (own->attention != outer->attention) text_printf(out, " attention %s", name_of(own->attention));
    if (own->cache != outer->cache) text_printf(out, " cache %s", name_of(own->cache));
}

static void print_last_precision(const Print *to, const Sublayer *s) {
    const Precision *last = &s->last, *first = &s->precision;
    if (weight_type_equal(last->weights, first->weights) && precision_rows_equal(last, first)) return;
    text_printf(to->out, " %s weights", s->kind == SUBLAYER_FFN ? "down" : "output");
    print_weight_type(to->out, last->weights, dtype_name);
    text_printf(to->out, " activations %s", dtype_name(last->activations));
    print_smoothing(to->out, last);
}

static void print_grid(Text *out, const Position *p) {
    text_printf(out, " grid %lld x %lld behind %lld", (long long)p->grid_lines, (long long)p->grid_columns,
                (long long)p->grid_before);
}

static void print_position(const Print *to, const Position *p) {
    Text *out = to->out;
    static const char *const sinusoids[] = {"interleaved", "halves", "fairseq"};
    static const char *const scalings[] = {"plain", "linear", "llama3", "yarn", "longrope"};
    static const char *const alibis[] = {"", " bf16"};
    if (p->kind == POSITION_NONE) return;
    text_printf(out, " position %s", position_kind_name(p->kind));
    if (p->kind == POSITION_SINUSOIDAL) text_printf(out, " %s", sinusoids[p->sinusoid]);
    if (p->kind == POSITION_SINUSOIDAL || p->kind == POSITION_LEARNED)
        text_printf(out, " offset %lld", (long long)p->offset);
    if (p->grid && p->kind == POSITION_SINUSOIDAL) print_grid(out, p);
    if (p->skips) text_printf(out, " skip %lld", (long long)p->skipped);
    for (int i = 0; i < p->n_at; i++) {
        text_printf(out, "%s%s", i ? " " : " at ", to->row_inputs[(int)p->at[i] - IN_COUNT].kind.name);
        if (p->n_at > 1) text_printf(out, " of %lld pairs", (long long)p->sections[i]);
    }
    if (p->kind == POSITION_ROPE) {
        text_printf(out, " width %lld%s theta %s %s", (long long)p->rope_width,
                    p->rope_interleaved ? " interleaved" : "", real(to, p->theta), scalings[p->scaling]);
        if (p->grid) print_grid(out, p);
        if (p->scaling) text_printf(out, " factor %s", real(to, p->factor));
        if (p->scaling == ROPE_LLAMA3) text_printf(out, " low %s high %s", real(to, p->low), real(to, p->high));
        if (p->scaling == ROPE_YARN)
            text_printf(out, " beta_fast %s beta_slow %s%s", real(to, p->beta_fast), real(to, p->beta_slow),
                        p->untruncated ? " untruncated" : "");
        if (p->scaling >= ROPE_LLAMA3)
            text_printf(out, " original %lld attention_factor %s", (long long)p->original,
                        real(to, p->attention_factor));
        if (p->scaling == ROPE_LONGROPE) {
            print_factors(to, "short", p->short_factors, p->rope_width / 2);
            print_factors(to, "long", p->long_factors, p->rope_width / 2);
        }
    }
    if (p->kind == POSITION_ALIBI)
        text_printf(out, " max %s%s%s", real(to, p->alibi_max), p->alibi_scaled ? " scaled" : "", alibis[p->alibi]);
    if (p->kind == POSITION_RELATIVE)
        text_printf(out, " buckets %lld distance %lld%s%s", (long long)p->buckets, (long long)p->distance,
                    p->per_layer ? " per_layer" : "", p->bidirectional ? " bidirectional" : "");
    if (p->kind == POSITION_CONTENT) {
        text_printf(out, "%s%s rows %lld logarithmic %lld%s%s", p->by_query ? " by_query" : "",
                    p->by_key ? " by_key" : "", (long long)p->rows, (long long)p->logarithmic,
                    p->projected ? " projected" : "", p->own ? " own" : "");
        print_norm(to, " normalized", p->norm);
    }
    text_printf(out, ",");
}

static void print_attention(const Print *to, const Attention *a) {
    Text *out = to->out;
    static const char *const scores[] = {
#define SCORE(name, bare, scale, help) #name,
#include "scores.def"
    };
    text_printf(out,
                "attention %s: heads %lld, kv_heads %lld, head_dim %lld, value_dim %lld, widths %lld %lld %lld -> "
                "%lld, score %s",
                a->cross ? "cross" : "self", (long long)a->heads, (long long)a->kv_heads, (long long)a->head_dim,
                (long long)a->value_dim, (long long)a->query_width, (long long)a->key_width, (long long)a->value_width,
                (long long)a->output_width, scores[a->score]);
    if (a->latent)
        text_printf(out, ", latent %lld rope %lld query %lld eps %s", (long long)a->latent, (long long)a->latent_rope,
                    (long long)a->latent_query, real(to, a->latent_eps));
    if (a->score == SCORE_additive) text_printf(out, " d_score %lld", (long long)a->d_score);
    text_printf(out, ", scale %s, softcap %s, project %s, output %s, bias%s%s%s%s%s,", real(to, a->scale),
                real(to, a->softcap),
                a->projected ? "yes" : "none", a->has_output ? "projected" : "none", a->bias_q ? " q" : "",
                a->bias_k ? " k" : "", a->bias_v ? " v" : "", a->bias_o ? " o" : "",
                a->bias_q || a->bias_k || a->bias_v || a->bias_o ? "" : " none");
    print_norm(to, "qk_norm", a->qk_norm);
    if (a->qk_norm.kind)
        text_printf(out, " qk_norm over %s, weight %s%s,", a->qk_norm_all_heads ? "all heads" : "a head",
                    a->qk_norm_weight_per_head ? "a head" : "shared",
                    a->qk_norm_after_rotation ? ", after the rotation" : "");
    print_norm(to, "inner_norm", a->inner_norm);
    if (a->clip > 0) text_printf(out, " clip %s,", real(to, a->clip));
    print_position(to, &a->position);
    text_printf(out, " mask%s%s%s%s", a->mask_causal ? " causal" : "", a->mask_padding ? " padding" : "",
                a->mask_prefix ? " prefix" : "", a->mask_given ? " given" : "");
    if (a->window) text_printf(out, " window %lld", (long long)a->window);
    if (a->sink) text_printf(out, " sink %lld", (long long)a->sink);
    if (a->sink_learned) text_printf(out, " sink learned");
    if (a->differential) {
        text_printf(out, " differential eps %s", real(to, a->differential_eps));
        if (a->differential_init != UNSET) text_printf(out, " init %s", real(to, a->differential_init));
    }
    if (a->weighing) text_printf(out, " softmax %s", a->weighing == WEIGHING_SIGMOID ? "sigmoid" : "none");
    if (a->where) {
        text_printf(out, " where ");
        pair_print(out, a->where);
    }
    if (a->rescore) {
        text_printf(out, ", score ");
        pair_print(out, a->rescore);
        pair_print_tables(out, a->rescore);
    }
    if (to->whole && a->exports_lse) text_printf(out, ", export lse");
    if (to->whole && a->exported) {
        text_printf(out, ", export heads");
        for (int64_t i = 0; i < a->n_exported_heads; i++) text_printf(out, " %lld", (long long)a->exported_heads[i]);
    }
    text_printf(out, "\n");
}

static void print_experts(const Print *to, const Experts *e) {
    text_printf(to->out, ", experts %lld, top %lld, router %s%s%s%s scale %s", (long long)e->count, (long long)e->top,
                e->router == ROUTER_SIGMOID ? "sigmoid" : "softmax", e->renormalized ? " renormalized" : "",
                e->bias ? " bias" : "", e->corrected ? " corrected" : "", real(to, e->scale));
    if (e->top_groups < e->groups)
        text_printf(to->out, " groups %lld top_groups %lld", (long long)e->groups, (long long)e->top_groups);
    if (e->shared)
        text_printf(to->out, ", shared_expert %lld%s", (long long)e->shared, e->shared_gated ? " gated" : "");
}

static void print_sublayer(const Print *to, const Sublayer *s) {
    Text *out = to->out;
    text_printf(out, "      %s:", s->name);
    print_norm(to, "norm_in", s->norm_in);
    print_norm(to, s->norm_out_on_sum ? "norm_out of the sum" : "norm_out", s->norm_out);
    print_precision(out, &s->precision, &to->outer, dtype_name);
    print_last_precision(to, s);
    text_printf(out, " residual %s scale %s%s, ", s->residual ? "yes" : "no", real(to, s->residual_scale),
                s->residual_learned ? " learned" : "");
    if (s->kind == SUBLAYER_ATTENTION) {
        print_attention(to, &s->attention);
        return;
    }
    const Ffn *f = &s->ffn;
    text_printf(out, "ffn:");
    print_norm(to, "inner_norm", f->inner_norm);
    text_printf(out, " d_ff %lld, activation %s%s", (long long)f->d_ff, activation_name(f->activation),
                f->gated ? " gated" : "");
    if (f->limit > 0) text_printf(out, " limit %s", real(to, f->limit));
    text_printf(out, "%s, bias%s%s%s%s", f->plus_one ? " plus_one" : "", f->bias_up ? " up" : "",
                f->bias_gate ? " gate" : "", f->bias_down ? " down" : "",
                f->bias_up || f->bias_gate || f->bias_down ? "" : " none");
    if (f->experts.count) print_experts(to, &f->experts);
    text_printf(out, "\n");
}

static void print_length(const Print *to, const char *name, Length length) {
    Text *out = to->out;
    text_printf(out, "  %s %s %lld\n", name, length.exact ? "=" : "<=", (long long)length.n);
}

static void print_stack(const Print *to, const Stack *s) {
    Text *out = to->out;
    static const char *const inputs[] = {"tokens", "features", "patches", "mel"};
    text_printf(out, "  %s", s->name);
    if (s->d_model != to->d_model) text_printf(out, " d_model %lld", (long long)s->d_model);
    text_printf(out, "\n");
    if (to->whole) print_length(to, "  seq", s->seq);
    text_printf(out, "    input %s", inputs[s->input]);
    if (s->input == INPUT_TOKENS) text_printf(out, " vocab %lld", (long long)s->vocab);
    if (s->input == INPUT_PATCHES) {
        text_printf(out, " image %lld width %lld patch %lld", (long long)s->image_height, (long long)s->image_width,
                    (long long)s->patch);
        if (s->patch_step != s->patch) text_printf(out, " stride %lld", (long long)s->patch_step);
        if (s->image_channels != 3) text_printf(out, " channels %lld", (long long)s->image_channels);
        text_printf(out, "%s%s%s", s->class_token ? " class" : "", s->distillation_token ? " distillation" : "",
                    s->patch_bias ? "" : " no_bias");
    }
    if (s->registers) text_printf(out, " registers %lld", (long long)s->registers);
    if (s->input == INPUT_MEL)
        text_printf(out, " bins %lld frames %lld", (long long)s->mel_bins, (long long)s->mel_frames);
    for (int i = 0; i < s->n_convolutions; i++) {
        const Convolution *c = &s->convolutions[i];
        text_printf(out, "\n    convolution kernel %lld stride %lld%s channels %lld activation %s",
                    (long long)c->kernel, (long long)c->stride, c->bias ? "" : " no_bias", (long long)c->channels,
                    activation_name(c->activation));
        if (c->groups > 1) text_printf(out, " groups %lld", (long long)c->groups);
    }
    if (s->beside) {
        text_printf(out, "\n    convolution beside the first layer kernel %lld%s activation %s,",
                    (long long)s->beside->kernel, s->beside->bias ? "" : " no_bias",
                    activation_name(s->beside->activation));
        if (s->beside->groups > 1) text_printf(out, " groups %lld,", (long long)s->beside->groups);
        print_norm(to, "norm", s->beside_norm);
    }
    if (s->embedding_mask >= 0) text_printf(out, "\n    embedding mask %lld", (long long)s->embedding_mask);
    text_printf(out, "\n    embedding width %lld scale %s segments %lld%s%s,", (long long)s->embedding_width,
                real(to, s->embedding_scale), (long long)s->segments, s->embedding_projected ? " projected" : "",
                s->embedding_projected && !s->embedding_projection_bias ? " no_bias" : "");
    print_norm(to, s->embedding_norm_first ? "norm before_positions" : "norm", s->embedding_norm);
    print_precision(out, &s->precision, &to->outer, dtype_name);
    print_position(to, &s->position);
    if (s->relative.kind) text_printf(out, " shared by %lld heads:", (long long)s->relative_heads);
    print_position(to, &s->relative);
    text_printf(out, "\n");
    for (int64_t l = 0; l < s->n_layers; l++) {
        const Layer *layer = &s->layers[l];
        text_printf(out, "    layer %lld%s%s", (long long)l, layer->parallel ? " parallel" : "",
                    layer->shared_norm ? " shared_norm" : "");
        if (layer->weights_of != l) text_printf(out, " with the weights of layer %lld", (long long)layer->weights_of);
        text_printf(out, "\n");
        for (int i = 0; i < layer->count; i++) print_sublayer(to, &layer->sublayers[i]);
    }
    if (s->final_norm.kind) {
        text_printf(out, "    final");
        print_norm(to, "norm", s->final_norm);
        text_printf(out, "\n");
    }
}

/* The row of a pool goes through pooler, dense, and l2 or classifier, in this order. */
static void print_head(const Print *to, const Head *h) {
    Text *out = to->out;
    text_printf(out, "  head");
    if (h->logits)
        text_printf(out, " logits%s%s softcap %s scale %s", h->tied ? " tied" : "", h->bias ? " bias" : "",
                    real(to, h->softcap), real(to, h->scale));
    if (h->pool) text_printf(out, " pool %s", pool_name(h->pool));
    if (pool_reads_ids(h->pool)) text_printf(out, " %lld", (long long)h->pool_token);
    if (h->l2) text_printf(out, " l2");
    if (h->pooler) text_printf(out, " pooler");
    if (h->pooler && h->activation != ACTIVATION_tanh)
        text_printf(out, " %s", activation_name(h->activation));
    for (int64_t i = 0; i < h->n_dense; i++)
        text_printf(out, " dense %lld%s %s", (long long)h->dense[i].width, h->dense[i].bias ? "" : " no_bias",
                    activation_name(h->dense[i].activation));
    if (h->normed) print_norm(to, "norm", h->norm);
    if (h->transform) {
        text_printf(out, " transform %s%s", activation_name(h->activation), h->transform_bias ? "" : " no_bias");
        if (h->norm.kind) print_norm(to, "norm", h->norm);
        else text_printf(out, " no_norm");
    }
    if (h->classifier) text_printf(out, " classifier %lld%s%s", (long long)h->classifier,
        h->classifier_bias ? "" : " no_bias", h->classifier_rows ? " rows" : "");
}

static void print_text(Text *out, const TextRules *rules) {
    if (!rules->n_prompts && !rules->lower_case && !rules->truncate_left) return;
    text_printf(out, "  text\n");
    for (int64_t i = 0; i < rules->n_prompts; i++) {
        text_printf(out, "    prompt ");
        if (*rules->prompts[i].name) spec_quote(out, rules->prompts[i].name);
        text_printf(out, *rules->prompts[i].name ? " " : "");
        spec_quote(out, rules->prompts[i].text);
        text_printf(out, "%s\n", i == rules->chosen ? " default" : "");
    }
    if (rules->lower_case) text_printf(out, "    lower_case\n");
    if (rules->truncate_left) text_printf(out, "    truncate left\n");
}

void model_print(Text *out, const Model *model, bool with_bounds) {
    const Print to = {out, with_bounds, model->row_inputs, model->precision, model->d_model};
    text_printf(out, "model %s\n  d_model %lld, dtype", model->name, (long long)model->d_model);
    print_weight_type(out, model->precision.weights, dtype_name);
    if (model->embedding_tied) text_printf(out, ", embedding tied");
    const Precision *p = &model->precision;
    if (p->activations != DTYPE_F32) {
        text_printf(out, ", activations %s", dtype_name(p->activations));
        print_smoothing(out, p);
    }
    if (p->attention != DTYPE_F32) text_printf(out, ", attention %s", dtype_name(p->attention));
    if (p->cache != DTYPE_F32) text_printf(out, ", cache %s", dtype_name(p->cache));
    text_printf(out, "\n");
    for (int i = 0; i < model->n_formulas; i++) {
        text_printf(out, "  %s = ", activation_name((Activation)(ACTIVATION_COUNT + i)));
        pair_print(out, model->formulas[i]);
        text_printf(out, "\n");
    }
    for (int i = 0; i < model->n_row_inputs; i++) {
        const RowInput *input = &model->row_inputs[i];
        static const char *const kinds[] = {[PER_ROW] = "rows", [PER_SEQUENCE] = "number", [PER_PAIR] = "pairs"};
        text_printf(out, "  input %s %s ", kinds[input->kind.rows], input->kind.name);
        if (input->kind.dtype == DTYPE_F32) {
            text_printf(out, "real");
            if (isfinite(input->range.low))
                text_printf(out, " %s..%s", number_text(out->arena, input->range.low),
                            number_text(out->arena, input->range.high));
        } else text_printf(out, "%lld..%lld", (long long)input->least, (long long)input->most);
        text_printf(out, "%s\n", input->of_source && (model->decoder || model->alone) ? " of source" : "");
    }
    if (model->encoder) print_stack(&to, model->encoder);
    if (model->decoder) print_stack(&to, model->decoder);
    if (model->head.probe) {
        text_printf(out, "  probe\n");
        for (int i = 0; i < model->head.probe->count; i++) print_sublayer(&to, &model->head.probe->sublayers[i]);
    }
    if (model->alone) {
        if (with_bounds) print_length(&to, "queries", model->queries);
        if (with_bounds) print_length(&to, "keys", model->keys);
        print_sublayer(&to, model->alone);
    }
    print_head(&to, &model->head);
    text_printf(out, "\n  start %lld, pad %lld, end", (long long)model->start, (long long)model->pad);
    for (int64_t i = 0; i < model->n_end; i++) text_printf(out, " %lld", (long long)model->end[i]);
    text_printf(out, "\n");
    if (with_bounds && model->unroll_full) text_printf(out, "  unroll full\n");
    if (with_bounds && model->generation.stated) {
        text_printf(out, "  generation\n");
        generation_print(out, &model->generation, 4);
    }
    if (with_bounds) print_text(out, &model->text);
}

uint64_t model_hash(Arena *arena, const Model *model) {
    Text canonical = text_new(arena);
    model_print(&canonical, model, false);
    return hash_bytes(0, canonical.data, canonical.size);
}
