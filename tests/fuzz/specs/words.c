/* words.c: the options of settings.def: how to say one, and which of them a spec says together. */
#include "fuzz.h"

#include <ctype.h>
#include <string.h>

static const char *const form_names[FORM_COUNT] = {
    [FORM_ENCODER] = "an encoder", [FORM_DECODER] = "a decoder", [FORM_BOTH] = "both stacks",
    [FORM_ALONE] = "attention alone", [FORM_SELF] = "attention self", [FORM_CROSS] = "attention cross",
    [FORM_FFN] = "an ffn", [FORM_EXACT] = "`=` lengths", [FORM_SHARED] = "shared layers",
    [FORM_PATTERN] = "a pattern of layers",
};

int word_count(void) { return option_count + FORM_COUNT; }

const char *word_name(Arena *arena, int word) {
    if (word >= option_count) return form_names[word - option_count];
    const OptionRow *o = &option_rows[word];
    const char *name = setting_rows[o->setting].name;
    return o->word[0] ? arena_printf(arena, "%s %s", name, o->word) : arena_printf(arena, "%s N", name);
}

/* ---------------------------------------------------------------- saying an option */

/* Options that need others; `|` stands between ways. The others are said by their word, and a number 2. */
static const struct {
    SettingId setting;
    const char *word, *ways;
    SettingId also;
    const char *also_text;
} rows[] = {
    {S_seq, "", "<= 6|= 6", 0, NULL},
    {S_queries, "", "<= 6|= 6", 0, NULL},
    {S_keys, "", "<= 6|= 6", 0, NULL},
    {S_d_model, "", "8", 0, NULL},
    {S_input, "patches", "patches image 4 patch 2", 0, NULL},
    {S_input, "image", "patches image 4 patch 2", 0, NULL},
    {S_input, "width", "patches image 4 width 6 patch 2", 0, NULL},
    {S_input, "patch", "patches image 4 patch 2", 0, NULL},
    {S_input, "stride", "patches image 5 patch 3 stride 2", 0, NULL},
    {S_input, "channels", "patches image 4 channels 1 patch 2", 0, NULL},
    {S_input, "class", "patches image 4 patch 2 class", 0, NULL},
    {S_input, "distillation", "patches image 4 patch 2 class distillation", 0, NULL},
    {S_input, "registers", "patches image 4 patch 2 class registers 3", 0, NULL},
    {S_input, "no_bias", "patches image 4 patch 2 no_bias", 0, NULL},
    {S_input, "mel", "mel bins 3 frames 5", 0, NULL},
    {S_input, "bins", "mel bins 4 frames 6", 0, NULL},
    {S_input, "frames", "mel bins 5 frames 3", 0, NULL},
    {S_channels, "", "8", S_input, "mel bins 3 frames 5"},
    {S_kernel, "", "3", S_input, "mel bins 3 frames 5"},
    {S_kernel, "stride", "5 stride 2", S_input, "mel bins 3 frames 5"},
    {S_kernel, "groups", "3 groups 2", S_input, "mel bins 4 frames 5"},
    {S_kernel, "no_bias", "3 no_bias", S_input, "mel bins 3 frames 5"},
    {S_embedding, "factor", "factor 6|factor 8", 0, NULL},
    {S_embedding, "no_bias", "factor 6 no_bias|factor 8 no_bias", 0, NULL},
    {S_embedding, "scale", "scale 0.5", 0, NULL},
    {S_embedding, "before_positions", "normalized before_positions", S_position, "learned"},
    {S_position, "halves", "sinusoidal halves", 0, NULL},
    {S_position, "fairseq", "sinusoidal fairseq", 0, NULL},
    {S_position, "offset", "learned offset 2|sinusoidal offset 2", 0, NULL},
    {S_position, "skip", "learned offset 1 skip 0|sinusoidal skip 0", 0, NULL},
    {S_position, "at", "rope at place|learned at place|sinusoidal at place|alibi at place", S_input, "rows place 0..5"},
    {S_position, "sections", "rope at place place sections 3 1", S_input, "rows place 0..5"},
    {S_position, "interleaved", "rope interleaved", 0, NULL},
    {S_position, "grid", "rope grid|sinusoidal grid", S_input, "patches image 4 patch 2 class"},
    {S_position, "partial", "rope partial 1", 0, NULL},
    {S_position, "theta", "rope theta 100", 0, NULL},
#define LINEAR "rope scaling linear factor 2"
#define LLAMA3 "rope scaling llama3 factor 2 original 4"
#define YARN "rope scaling yarn factor 2 original 4"
#define LONGROPE "rope scaling longrope factor 2 original 4 short 1 1 1.5 2 long 2 3 4 5"
    {S_position, "scaling", LINEAR "|" LLAMA3 "|" YARN "|" LONGROPE, 0, NULL},
    {S_position, "factor", LINEAR "|" LLAMA3 "|" YARN "|" LONGROPE, 0, NULL},
    {S_position, "original", LLAMA3 "|" YARN "|" LONGROPE, 0, NULL},
    {S_position, "linear", LINEAR, 0, NULL},
    {S_position, "llama3", LLAMA3, 0, NULL},
    {S_position, "low", LLAMA3 " low 0.5", 0, NULL},
    {S_position, "high", LLAMA3 " high 3", 0, NULL},
    {S_position, "yarn", YARN, 0, NULL},
    {S_position, "beta_fast", YARN " beta_fast 8", 0, NULL},
    {S_position, "beta_slow", YARN " beta_slow 0.5", 0, NULL},
    {S_position, "untruncated", YARN " untruncated", 0, NULL},
    {S_position, "attention_factor", YARN " attention_factor 0.5|" LONGROPE " attention_factor 0.5", 0, NULL},
    {S_position, "longrope", LONGROPE, 0, NULL},
    {S_position, "short", LONGROPE, 0, NULL},
    {S_position, "long", LONGROPE, 0, NULL},
    {S_position, "max", "alibi max 4", 0, NULL},
    {S_position, "scaled", "alibi scaled", 0, NULL},
    {S_position, "bf16", "alibi bf16", 0, NULL},
    {S_position, "relative", "relative|relative per_layer", 0, NULL},
    {S_position, "buckets", "relative buckets 8|relative buckets 8 per_layer", 0, NULL},
    {S_position, "distance", "relative distance 40|relative distance 40 per_layer", 0, NULL},
    {S_position, "per_layer", "relative per_layer", 0, NULL},
    {S_position, "content", "content by_query rows 9|content by_key rows 8 projected", 0, NULL},
    {S_position, "by_query", "content by_query rows 9|content by_query rows 8 projected", 0, NULL},
    {S_position, "by_key", "content by_key rows 9|content by_key rows 8 projected", 0, NULL},
    {S_position, "rows", "content by_key rows 9|content by_key rows 8 projected", 0, NULL},
    {S_position, "logarithmic", "content by_key rows 8 logarithmic 9", 0, NULL},
    {S_position, "projected", "content by_key rows 8 projected", 0, NULL},
    {S_position, "own", "content by_key rows 8 projected own", 0, NULL},
    {S_position, "normalized", "content by_key rows 8 projected normalized", 0, NULL},
    {S_norm, "eps", "eps 1e-3", 0, NULL},
    {S_norm, "no_bias", "layernorm no_bias", 0, NULL},
    {S_block, "shared_norm", "parallel shared_norm", 0, NULL},
    {S_residual, "scale", "scale 0.5", 0, NULL},
    {S_heads, "", "1|2", 0, NULL},
    {S_kv_heads, "", "1", 0, NULL},
    {S_head_dim, "", "8", 0, NULL},
    {S_value_dim, "", "8|5", 0, NULL},
    {S_latent, "", "6 rope 4|5 rope 2 query 7", S_bias, "none"},
    {S_latent, "rope", "6 rope 4", S_bias, "none"},
    {S_latent, "query", "6 rope 4 query 5", S_bias, "none"},
    {S_latent, "eps", "6 rope 4 eps 1e-3", S_bias, "none"},
    {S_qk_norm, "all_heads", "rmsnorm all_heads|layernorm all_heads", 0, NULL},
    {S_qk_norm, "weight_per_head", "rmsnorm weight_per_head|layernorm weight_per_head", 0, NULL},
    {S_qk_norm, "eps", "rmsnorm eps 1e-3|layernorm eps 1e-3", 0, NULL},
    {S_qk_norm, "plus_one", "rmsnorm plus_one|layernorm plus_one", 0, NULL},
    {S_qk_norm, "no_bias", "layernorm no_bias", 0, NULL},
    {S_qk_norm, "after_rotation", "rmsnorm after_rotation|layernorm all_heads after_rotation", S_position, "rope"},
    {S_inner_norm, "eps", "rmsnorm eps 1e-3|layernorm eps 1e-3", 0, NULL},
    {S_inner_norm, "plus_one", "rmsnorm plus_one|layernorm plus_one", 0, NULL},
    {S_inner_norm, "no_bias", "layernorm no_bias", 0, NULL},
    {S_differential, "yes", "yes", S_head_dim, "4"},
    {S_differential, "init", "yes init 0.5", S_head_dim, "4"},
    {S_differential, "eps", "yes eps 1e-3", S_head_dim, "4"},
    {S_sink, "", "2|0", S_window, "3"},
    {S_score, "additive", "additive", S_d_score, "5"},
    {S_score, "",
     "s*0.5 - 0.1*abs(q - k)|5*tanh(s/5) + (if (q + k) mod 3 == 0 then sin(q) else -exp(-abs(s)))/(h + 1)", 0, NULL},
    {S_d_score, "", "5", S_score, "additive"},
    {S_output, "none", "none", S_residual, "no"},
    {S_d_query, "", "8|6", 0, NULL},
    {S_d_key, "", "8|6", 0, NULL},
    {S_d_value, "", "8|6", 0, NULL},
    {S_head, "tied", "logits tied", 0, NULL},
    {S_head, "bias", "logits bias", 0, NULL},
    {S_head, "softcap", "logits softcap 5", 0, NULL},
    {S_head, "scale", "logits scale 0.5", 0, NULL},
    {S_head, "transform", "logits transform", 0, NULL},
    {S_head, "transform_no_norm", "logits transform relu transform_no_norm", 0, NULL},
    {S_head, "transform_no_bias", "logits transform relu transform_no_bias", 0, NULL},
    {S_head, "mean", "pool mean", 0, NULL},
    {S_head, "cls", "pool cls", 0, NULL},
    {S_head, "max", "pool max", 0, NULL},
    {S_head, "last", "pool last", 0, NULL},
    {S_head, "skip", "pool last skip 0", 0, NULL},
    {S_head, "token", "pool last token 0", 0, NULL},
    {S_head, "cls_distillation", "pool cls_distillation", S_input, "patches image 4 patch 2 class distillation"},
    {S_head, "norm", "pool norm classifier 2", 0, NULL},
    {S_head, "l2", "pool l2", 0, NULL},
    {S_start, "", "1", 0, NULL},
    {S_end, "", "1", 0, NULL},
    {S_pad, "", "0", 0, NULL},
    {S_export, "layers", "attention layers 0", 0, NULL},
    {S_export, "lse", "lse", 0, NULL},
    {S_export, "heads", "attention heads 0", 0, NULL},
    {S_unroll, "full", "full", S_seq, "= 4"},
    {S_precision, "weights",
     "weights f32|weights bf16|weights f16|weights int8|weights int8 64|weights int4|weights int4 128", 0, NULL},
    {S_precision, "offset", "weights int4 offset|weights int4 32 offset activations int8", 0, NULL},
    {S_precision, "halves", "weights int4 halves|weights int8 64 halves activations int8", 0, NULL},
    {S_precision, "activations", "weights int8 activations int8|activations f32|weights bf16 activations bf16", 0,
     NULL},
    {S_precision, "smooth", "weights int8 activations int8 smooth|weights int4 activations int8 smooth", 0, NULL},
    {S_precision, "outliers", "weights int8 activations int8 smooth outliers 2", 0, NULL},
    {S_activation, "=",
     "= x*sigmoid(1.5*x)|gated = max(0, x) + exp(min(0, x)) - 1|= if x < 0 then 0.1*x else x|"
     "gated plus_one = x*tanh(x)^2/(1 + sqrt(abs(x)))", 0, NULL},
    {S_activation, "limit", "silu gated limit 0.5", 0, NULL},
    {S_activation, "plus_one", "quick_gelu gated plus_one", 0, NULL},
    {S_experts, "", "4", S_top, "2"},
    {S_experts, "none", "none", 0, NULL},
    {S_top, "", "1", S_experts, "2"},
    {S_router, "softmax", "softmax", S_experts, "2, top 1"},
    {S_router, "sigmoid", "sigmoid", S_experts, "2, top 1"},
    {S_router, "renormalized", "renormalized", S_experts, "4, top 2"},
    {S_router, "scale", "scale 0.5", S_experts, "2, top 1"},
    {S_router, "bias", "bias", S_experts, "2, top 1"},
    {S_router, "corrected", "corrected", S_experts, "4, top 2"},
    {S_router, "groups", "groups 2", S_experts, "4, top 2"},
    {S_router, "top_groups", "groups 2 top_groups 1", S_experts, "4, top 2"},
    {S_shared_expert, "", "6", S_experts, "2, top 1"},
    {S_shared_expert, "none", "none", S_experts, "2, top 1"},
    {S_shared_expert, "gated", "6 gated", S_experts, "2, top 1"},
    {S_output_precision, "weights", "weights f32|weights bf16|weights f16|weights int8 32|weights int4", 0, NULL},
    {S_output_precision, "offset", "weights int4 offset|weights int4 64 offset activations int8", 0, NULL},
    {S_output_precision, "halves", "weights int8 halves|weights int4 64 offset halves", 0, NULL},
    {S_output_precision, "activations", "weights int8 activations int8|activations f32|weights bf16 activations bf16",
     0, NULL},
    {S_output_precision, "smooth", "weights int8 activations int8 smooth", 0, NULL},
    {S_output_precision, "outliers", "weights int4 activations int8 smooth outliers 4", 0, NULL},
    {S_down_precision, "weights", "weights f32|weights bf16|weights f16|weights int8 32|weights int4", 0, NULL},
    {S_down_precision, "offset", "weights int4 offset|weights int4 64 offset activations int8", 0, NULL},
    {S_down_precision, "halves", "weights int8 halves|weights int4 64 offset halves", 0, NULL},
    {S_down_precision, "activations", "weights int8 activations int8|activations f32|weights bf16 activations bf16", 0,
     NULL},
    {S_down_precision, "smooth", "weights int8 activations int8 smooth", 0, NULL},
    {S_down_precision, "outliers", "weights int8 32 activations int8 smooth outliers 1", 0, NULL},
    {S_precision, "attention", "attention f32|attention bf16|attention int8", 0, NULL},
    {S_precision, "cache", "cache f32|cache bf16|cache f16|cache int8", 0, NULL},
};

static int row_of(int option) {
    for (int r = 0; r < COUNT(rows); r++)
        if (rows[r].setting == option_rows[option].setting && strcmp(rows[r].word, option_rows[option].word) == 0)
            return r;
    return -1;
}

int statement_ways(int option) {
    int r = row_of(option), ways = 1;
    for (const char *at = r < 0 ? "" : rows[r].ways; *at; at++) ways += *at == '|';
    return ways;
}

Statement statement_of(Arena *arena, int option, int which) {
    const OptionRow *o = &option_rows[option];
    int r = row_of(option);
    if (r < 0) {
        bool flag = strcmp(o->takes, "flag") == 0;
        if (strcmp(o->takes, "condition") == 0) return (Statement){"where abs(q - k) < 3", 0, NULL};
        return (Statement){flag ? o->word : arena_printf(arena, "%s%s2", o->word, o->word[0] ? " " : ""), 0, NULL};
    }
    const char *at = rows[r].ways;
    while (which--) at = strchr(at, '|') + 1;
    return (Statement){arena_copy(arena, at, strcspn(at, "|")), rows[r].also, rows[r].also_text};
}

/* The end of the word and the numbers behind it that begin at `at`. */
static const char *group_end(const char *at) {
    do {
        at += strcspn(at, " ");
        while (*at == ' ') at++;
    } while (*at && !isalpha((unsigned char)*at));
    return at;
}

/* Whether the group stands in text: its word, or, without one, any number in front. */
static bool has_group(const char *text, const char *group) {
    size_t n = isalpha((unsigned char)*group) ? strcspn(group, " ") : 0;
    for (const char *at = text; *at; at = group_end(at))
        if (n ? strncmp(at, group, n) == 0 && (at[n] == ' ' || !at[n]) : !isalpha((unsigned char)*at)) return true;
    return false;
}

/* An expression stands in an item of its own, next to the item of words. */
static bool is_expression(const char *text) { return strchr(text, '*') != NULL; }

const char *merged(Arena *arena, const char *one, const char *other) {
    if (is_expression(one) && is_expression(other)) return one;
    if (is_expression(one)) return arena_printf(arena, "%s, score %s", other, one);
    if (is_expression(other)) return arena_printf(arena, "%s, score %s", one, other);
    Text text = text_new(arena);
    text_printf(&text, "%s", one);
    for (const char *at = other; *at;) {
        const char *end = group_end(at);
        int n = (int)(end - at);
        while (n && at[n - 1] == ' ') n--;
        if (!has_group(one, at)) text_printf(&text, " %.*s", n, at);
        at = end;
    }
    return text.data;
}

/* ---------------------------------------------------------------- what a spec says */

typedef struct Walk {
    void (*found)(void *with, int one, int other);
    void *with;
} Walk;

static void include(WordSet *set, int word) { set->bits[word / 64] |= UINT64_C(1) << word % 64; }
static void exclude(WordSet *set, int word) { set->bits[word / 64] &= ~(UINT64_C(1) << word % 64); }
static void include_form(WordSet *set, Form form) { include(set, option_count + (int)form); }

static bool option_is_said(const Item *item, const OptionRow *option) {
    bool any_word = false;
    for (const Value *v = item->values; v; v = v->next) {
        bool word = v->kind == VALUE_EXPR && v->expr->kind == EXPR_NAME;
        if (v->kind == VALUE_RULE && strcmp(option->word, v->string) == 0) return true; /* `=` */
        if (v->kind == VALUE_RULE && strcmp(option->takes, *v->string ? "condition" : "expression") == 0) return true;
        if (word && strcmp(v->expr->text, option->word) == 0) return true;
        if (!option->word[0] && !any_word && v->kind == VALUE_EXPR && !word) return true;
        any_word |= word;
    }
    return false;
}

/* Positions that are added to the embedding hold beside those that an attention says. */
static bool stays(const OptionRow *option, bool in_attention) {
    static const char *const added[] = {"sinusoidal", "halves", "fairseq", "learned", "offset"};
    for (int i = 0; i < COUNT(added) && in_attention && option->setting == S_position; i++)
        if (strcmp(option->word, added[i]) == 0) return true;
    return false;
}

/* The blocks that a setting speaks of, without `dense`, which is no sublayer. */
static int blocks_of(int option) { return setting_rows[option_rows[option].setting].blocks & ~IN_DENSE; }

/* What the items of a block say, over what holds around it. */
static WordSet said_in(WordSet set, const Item *items, bool in_attention) {
    for (const Item *item = items; item; item = item->next) {
        if (item->is_let || item->quoted || item->has_block) continue;
        for (int o = 0; o < option_count; o++) {
            if (strcmp(setting_rows[option_rows[o].setting].name, item->name) != 0) continue;
            if (option_is_said(item, &option_rows[o])) include(&set, o);
            else if (!stays(&option_rows[o], in_attention)) exclude(&set, o);
        }
        if (item->relation == RELATION_EQUAL) include_form(&set, FORM_EXACT);
    }
    return set;
}

static bool block_is(const Item *item, const char *name) {
    return item->has_block && !item->is_let && !item->quoted && strcmp(item->name, name) == 0;
}
static bool second_word_is(const Item *item, const char *word) {
    for (const Value *v = item->values; v; v = v->next)
        if (v->kind == VALUE_EXPR && v->expr->kind == EXPR_NAME && strcmp(v->expr->text, word) == 0) return true;
    return false;
}

static int speaks_of(int word) {
    return word < option_count ? blocks_of(word) : 0;
}

/* Pairs in one set, or across two: then only those of an attention alone and an ffn alone. */
static void pairs_in(const Walk *walk, const WordSet *set, bool across) {
    for (int i = 0; i < word_count(); i++)
        for (int j = i + 1; j < word_count() && word_in(set, i); j++) {
            if (!word_in(set, j)) continue;
            int both = speaks_of(i) | speaks_of(j);
            bool apart = speaks_of(i) != both && speaks_of(j) != both && both == (IN_ATTENTION | IN_FFN);
            if (!across || apart) walk->found(walk->with, i, j);
        }
}

static void walk_layer(const Walk *walk, const WordSet *outer, const Item *items) {
    WordSet all = {{0}};
    for (const Item *item = items; item; item = item->next) {
        bool attention = block_is(item, "attention");
        if (!attention && !block_is(item, "ffn")) continue;
        WordSet set = said_in(*outer, item->items, attention);
        for (int o = 0; o < option_count; o++) /* those that are for the other kind alone */
            if (blocks_of(o) == (attention ? IN_FFN : IN_ATTENTION)) exclude(&set, o);
        include_form(&set, !attention ? FORM_FFN : second_word_is(item, "cross") ? FORM_CROSS : FORM_SELF);
        pairs_in(walk, &set, false);
        for (int i = 0; i < COUNT(all.bits); i++) all.bits[i] |= set.bits[i];
    }
    pairs_in(walk, &all, true);
}

static void walk_stack(const Walk *walk, const WordSet *outer, const Item *items) {
    WordSet set = said_in(*outer, items, false);
    for (const Item *layers = items; layers; layers = layers->next) {
        if (!block_is(layers, "layers")) continue;
        WordSet in_layers = said_in(set, layers->items, false);
        if (second_word_is(layers, "shared")) include_form(&in_layers, FORM_SHARED);
        walk_layer(walk, &in_layers, layers->items);
        for (const Item *layer = layers->items; layer; layer = layer->next) {
            if (!block_is(layer, "layer")) continue;
            WordSet in_layer = said_in(in_layers, layer->items, false);
            include_form(&in_layer, FORM_PATTERN);
            walk_layer(walk, &in_layer, layer->items);
        }
    }
}

void words_of(const Ast *ast, void (*found)(void *with, int one, int other), void *with) {
    const Walk walk = {found, with};
    const Item *model = ast->items;
    while (model && !block_is(model, "model")) model = model->next;
    if (!model) return;
    WordSet set = said_in((WordSet){{0}}, model->items, false);
    bool encoder = false, decoder = false;
    for (const Item *item = model->items; item; item = item->next) {
        encoder |= block_is(item, "encoder");
        decoder |= block_is(item, "decoder");
    }
    if (encoder && decoder) include_form(&set, FORM_BOTH);
    if (!encoder && !decoder) include_form(&set, FORM_ALONE);
    for (const Item *item = model->items; item; item = item->next) {
        WordSet own = set;
        bool is_encoder = block_is(item, "encoder");
        if (!is_encoder && !block_is(item, "decoder")) continue;
        include_form(&own, is_encoder ? FORM_ENCODER : FORM_DECODER);
        walk_stack(&walk, &own, item->items);
    }
    if (!encoder && !decoder) walk_layer(&walk, &set, model->items);
}

/* ---------------------------------------------------------------- whether it can be had */

const char *refusal(Arena *arena, const char *text) {
    Arena *own = arena_new();
    FailureTrap trap;
    const char *why = NULL;
    if (failure_trap(&trap) == 0) {
        Compilation c = compilation_quiet(own, source_from_text(own, "drawn.attn", text, strlen(text)));
        bool fine = compile_until(&c, STAGE_PLAN);
        failure_release(&trap);
        if (!fine) {
            const char *at = strstr(c.diagnostics.log.data, "error: ");
            why = at ? arena_copy(arena, at + 7, strcspn(at + 7, "\n")) : "refused without a word";
        }
    } else {
        why = trap.status == EXIT_CANNOT ? arena_copy(arena, trap.message, strlen(trap.message))
                                         : arena_printf(arena, "BUG: %s", trap.message);
    }
    arena_free(own);
    return why;
}
