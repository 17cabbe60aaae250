/* settings.c: what may stand behind the name of each setting, with regard to the place where it is said. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

const SettingRow setting_rows[SETTING_COUNT] = {
#define SETTING(name, blocks, form, help) [S_##name] = {#name, blocks},
#include "../../../compiler/model/settings.def"
};

const OptionRow option_rows[] = {
#define OPTION(setting, word, takes, field, value, help) {S_##setting, word, #takes},
#include "../../../compiler/model/settings.def"
};
const int option_count = COUNT(option_rows);
_Static_assert(COUNT(option_rows) + FORM_COUNT <= MOST_WORDS, "MOST_WORDS is too small");

/* Words one behind the other. */
typedef struct Words {
    Draw *d;
    Text text;
} Words;

static Words words_new(Draw *d) { return (Words){d, text_new(d->arena)}; }
static void add(Words *w, const char *word) { text_printf(&w->text, "%s%s", w->text.size ? " " : "", word); }
static void maybe(Words *w, int percent, const char *word) {
    if (dice_chance(&w->d->dice, percent)) add(w, word);
}
static const char *words_done(const Words *w) { return w->text.size ? w->text.data : NULL; }
static bool has_word(const char *text, const char *word) {
    size_t n = strlen(word);
    for (const char *at = text; at && (at = strstr(at, word)); at += n)
        if ((at == text || at[-1] == ' ') && (at[n] == ' ' || !at[n])) return true;
    return false;
}

static const char *integer(Draw *d, int64_t n) { return arena_printf(d->arena, "%lld", (long long)n); }
static const char *any_real(Draw *d) {
    return DICE_WORD(&d->dice, "1", "0.5", "2", "0.125", "0 - 0.75", "1.5", "0", "3/7", "1/sqrt(7)", "1e0");
}
static const char *eps(Draw *d) { return DICE_WORD(&d->dice, "1e-5", "1e-6", "1e-12", "0.1", "1e-3", "1", "1e-8"); }

static const char *token(Draw *d) { return integer(d, dice_below(&d->dice, d->vocab ? d->vocab : 9)); }

/* A real width/whole that is a part of it, so that floor(whole * part) is `width`. */
static const char *part(Draw *d, int64_t width, int64_t whole) {
    return width == whole ? "1" : arena_printf(d->arena, "%lld/%lld", (long long)width, (long long)whole);
}

/* ---------------------------------------------------------------- the model's shape and input */

static const char *of_width(Draw *d) {
    return integer(d, DICE_NUMBER(&d->dice, 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 20, 24, 31, 32, 33, 35, 40, 48));
}

static const char *of_vocab(Draw *d, const Section *s) {
    (void)s;
    return integer(d, DICE_NUMBER(&d->dice, 2, 3, 7, 15, 16, 17, 33, 40, 64, 70, 1));
}

static const char *length(Draw *d, int exact) {
    const char *relation = dice_chance(&d->dice, exact) ? "=" : "<=";
    int64_t n = DICE_NUMBER(&d->dice, 1, 2, 3, 5, 8, 9, 15, 16, 17, 18, 20, 24, 31, 33, 40);
    if (dice_chance(&d->dice, 1)) n = DICE_NUMBER(&d->dice, 63, 65, 130, 300, 513, 530); /* some over a block of keys */
    return arena_printf(d->arena, "%s %lld", relation, (long long)n);
}
static const char *of_seq(Draw *d, const Section *s) { return (void)s, length(d, 25); }
static const char *of_queries(Draw *d, const Section *s) { return (void)s, length(d, 40); }
static const char *of_keys(Draw *d, const Section *s) { return (void)s, length(d, 40); }

static const char *of_input(Draw *d, const Section *s) {
    Words w = words_new(d);
    bool decoder = s->block == BLOCK_DECODER, first = s->block != BLOCK_MODEL;
    int64_t which = dice_below(&d->dice, 10);
    if (which < 4 || !first || (d->has_encoder && decoder && !d->wants_source_tokens)) return "tokens";
    if (which < 8 || decoder) return "features";
    if (which == 8 && dice_chance(&d->dice, 60))
        return arena_printf(d->arena, "mel bins %lld frames %lld", (long long)dice_between(&d->dice, 1, 20),
                            (long long)DICE_NUMBER(&d->dice, 1, 2, 3, 7, 12, 17, 33));
    int64_t patch = dice_between(&d->dice, 1, 4), high = dice_between(&d->dice, 1, 4), wide = high;
    add(&w, arena_printf(d->arena, "patches image %lld", (long long)(patch * high)));
    if (dice_chance(&d->dice, 40)) {
        wide = dice_between(&d->dice, 1, 5);
        add(&w, arena_printf(d->arena, "width %lld", (long long)(patch * wide)));
    }
    add(&w, arena_printf(d->arena, "patch %lld", (long long)patch));
    if (dice_chance(&d->dice, 25))
        add(&w, arena_printf(d->arena, "stride %lld", (long long)dice_between(&d->dice, 1, patch)));
    if (dice_chance(&d->dice, 25)) add(&w, DICE_WORD(&d->dice, "channels 1", "channels 2", "channels 3", "channels 5"));
    if (dice_chance(&d->dice, 50)) {
        add(&w, "class");
        if (dice_chance(&d->dice, 30)) add(&w, DICE_WORD(&d->dice, "registers 1", "registers 3"));
        else maybe(&w, 40, "distillation");
    }
    maybe(&w, 30, "no_bias");
    return words_done(&w);
}

static const char *of_channels(Draw *d, const Section *s) { return (void)s, of_width(d); }

static const char *of_kernel(Draw *d, const Section *s) {
    const char *input = said(s, S_input);
    const bool mel = input && has_word(input, "mel");
    Words w = words_new(d);
    add(&w, DICE_WORD(&d->dice, "1", "3", "3", "5", "9"));
    if (!mel && said_number(s, S_d_model) % 2 == 0) maybe(&w, 40, "groups 2");
    if (mel && dice_chance(&d->dice, 40)) add(&w, DICE_WORD(&d->dice, "stride 2", "stride 1", "stride 3"));
    maybe(&w, 25, "no_bias");
    return words_done(&w);
}

static const char *of_embedding(Draw *d, const Section *s) {
    Words w = words_new(d);
    const char *input = said(s, S_input);
    bool tokens = !input || has_word(input, "tokens"), patches = input && (has_word(input, "patches") ||
                                                                             has_word(input, "mel"));
    if (s->block == BLOCK_MODEL) maybe(&w, 35, "tied");
    if (!patches && dice_chance(&d->dice, 45)) {
        add(&w, "scale");
        add(&w, dice_chance(&d->dice, 30) ? "sqrt(d_model)" : any_real(d));
    }
    const bool first = s->block != BLOCK_MODEL && dice_chance(&d->dice, 40); /* before positions that draw.c adds */
    maybe(&w, 45, first ? "normalized before_positions" : "normalized");
    if (tokens && dice_chance(&d->dice, s->block == BLOCK_MODEL ? 10 : 40)) {
        add(&w, arena_printf(d->arena, "factor %s", of_width(d)));
        maybe(&w, 40, "no_bias");
    }
    return words_done(&w);
}

static const char *of_segments(Draw *d, const Section *s) {
    const char *input = said(s, S_input);
    if (input && !has_word(input, "tokens")) return NULL;
    if (s->block == BLOCK_MODEL && d->has_encoder && d->has_decoder) return NULL;
    return integer(d, dice_between(&d->dice, 1, 4));
}

/* ---------------------------------------------------------------- position */

/* Says that the positions are an input of the stack's rows, or not; returns whether they are. */
static bool maybe_at(Words *w, const Section *s, int percent) {
    Section *stack = (Section *)s;
    while (stack && stack->block != BLOCK_ENCODER && stack->block != BLOCK_DECODER) stack = stack->outer;
    if (!stack || !dice_chance(&w->d->dice, percent)) return false;
    stack->places = stack->block == BLOCK_ENCODER ? "place" : "spot";
    add(w, "at");
    add(w, stack->places);
    return true;
}

static void rope_scaling(Draw *d, Words *w, int64_t pairs, bool at) {
    const char *kind = DICE_WORD(&d->dice, "linear", "llama3", "yarn", "longrope");
    if (at && strcmp(kind, "longrope") == 0) kind = "linear";
    maybe(w, 40, "scaling");
    add(w, kind);
    add(w, arena_printf(d->arena, "factor %s", DICE_WORD(&d->dice, "2", "4", "8", "1.5", "0.5")));
    int64_t original = DICE_NUMBER(&d->dice, 2, 3, 5, 8, 16, 17, 32, 64);
    if (strcmp(kind, "linear") != 0) add(w, arena_printf(d->arena, "original %lld", (long long)original));
    if (strcmp(kind, "llama3") == 0) {
        if (dice_chance(&d->dice, 40)) add(w, arena_printf(d->arena, "low %s", DICE_WORD(&d->dice, "0.5", "1", "2")));
        if (dice_chance(&d->dice, 40)) add(w, arena_printf(d->arena, "high %s", DICE_WORD(&d->dice, "3", "4", "16")));
    }
    if (strcmp(kind, "yarn") == 0) {
        if (dice_chance(&d->dice, 40)) add(w, arena_printf(d->arena, "beta_fast %s", DICE_WORD(&d->dice, "32", "8")));
        if (dice_chance(&d->dice, 40)) add(w, arena_printf(d->arena, "beta_slow %s", DICE_WORD(&d->dice, "1", "0.5")));
        maybe(w, 40, "untruncated");
    }
    if (strcmp(kind, "yarn") == 0 || strcmp(kind, "longrope") == 0)
        if (dice_chance(&d->dice, 40))
            add(w, arena_printf(d->arena, "attention_factor %s", DICE_WORD(&d->dice, "0.5", "1.25", "1")));
    for (int list = 0; list < 2 && strcmp(kind, "longrope") == 0; list++) {
        add(w, list ? "long" : "short");
        for (int64_t i = 0; i < pairs; i++) add(w, DICE_WORD(&d->dice, "1", "1.1", "2.5", "7"));
    }
}

static const char *of_rope(Draw *d, const Section *s) {
    Words w = words_new(d);
    int64_t most = d->head_dim / 2 * 2, width = most;
    if (most < 2) return NULL;
    if (dice_chance(&d->dice, 30)) width = 2 * dice_between(&d->dice, 1, most / 2);
    add(&w, "rope");
    maybe(&w, 40, "interleaved");
    if (width != d->head_dim || dice_chance(&d->dice, 20))
        add(&w, arena_printf(d->arena, "partial %s", part(d, width, d->head_dim)));
    if (dice_chance(&d->dice, 40))
        add(&w, arena_printf(d->arena, "theta %s", DICE_WORD(&d->dice, "100", "10000", "500000", "2.5", "1e6")));
    if (d->patches && width % 4 == 0 && dice_chance(&d->dice, 60)) {
        add(&w, "grid");
        return words_done(&w);
    }
    const bool at = maybe_at(&w, s, 25);
    if (at && width >= 4 && dice_chance(&d->dice, 40)) {
        const int64_t first = dice_between(&d->dice, 1, width / 2 - 1);
        add(&w, has_word(w.text.data, "place") ? "place" : "spot");
        add(&w, arena_printf(d->arena, "sections %lld %lld", (long long)first, (long long)(width / 2 - first)));
    }
    if (dice_chance(&d->dice, 45)) rope_scaling(d, &w, width / 2, at);
    return words_done(&w);
}

static const char *of_relative(Draw *d, bool per_layer) {
    Words w = words_new(d);
    add(&w, "relative");
    int64_t buckets = 32;
    if (dice_chance(&d->dice, 60))
        add(&w, arena_printf(d->arena, "buckets %lld", (long long)(buckets = 2 * dice_between(&d->dice, 2, 12))));
    if (dice_chance(&d->dice, 50))
        add(&w, arena_printf(d->arena, "distance %lld", (long long)(buckets / 2 + dice_between(&d->dice, 1, 30))));
    if (per_layer) add(&w, "per_layer");
    return words_done(&w);
}

static const char *of_content(Draw *d) {
    Words w = words_new(d);
    const int64_t rows = dice_between(&d->dice, 8, 20), which = dice_below(&d->dice, 3);
    add(&w, "content");
    if (which != 0) add(&w, "by_query");
    if (which != 1) add(&w, "by_key");
    add(&w, arena_printf(d->arena, "rows %lld", (long long)rows));
    if (dice_chance(&d->dice, 50))
        add(&w, arena_printf(d->arena, "logarithmic %lld", (long long)(rows / 4 + dice_between(&d->dice, 2, 30))));
    if (d->alone || dice_chance(&d->dice, 50)) return words_done(&w);
    add(&w, "projected");
    maybe(&w, 50, "own");
    maybe(&w, 50, "normalized");
    return words_done(&w);
}

static const char *of_alibi(Draw *d, const Section *s) {
    Words w = words_new(d);
    add(&w, "alibi");
    if (dice_chance(&d->dice, 40)) add(&w, arena_printf(d->arena, "max %s", DICE_WORD(&d->dice, "8", "1", "4.5")));
    maybe(&w, 40, "scaled");
    if (!maybe_at(&w, s, 25)) maybe(&w, 35, "bf16");
    return words_done(&w);
}

/* What is added to the embedding. */
static const char *of_added(Draw *d, const Section *s) {
    Words w = words_new(d);
    const char *embedding = said(s, S_embedding);
    int64_t width = said_number(s, S_d_model);
    bool even = width % 2 == 0 && !(embedding && strstr(embedding, "factor"));
    if (d->patches && width % 4 == 0 && dice_chance(&d->dice, 40))
        return DICE_WORD(&d->dice, "sinusoidal grid", width < 8 ? "sinusoidal halves grid" : "sinusoidal fairseq grid");
    if (even && dice_chance(&d->dice, 50)) {
        add(&w, "sinusoidal");
        if (dice_chance(&d->dice, 50)) add(&w, width >= 4 ? DICE_WORD(&d->dice, "halves", "fairseq") : "halves");
    } else {
        add(&w, "learned");
    }
    if (dice_chance(&d->dice, 40))
        add(&w, arena_printf(d->arena, "offset %s", DICE_WORD(&d->dice, "2", "1", "0", "9")));
    if (d->vocab && dice_chance(&d->dice, 30)) add(&w, arena_printf(d->arena, "skip %s", token(d)));
    else maybe_at(&w, s, 25);
    return words_done(&w);
}

static const char *of_position(Draw *d, const Section *s) {
    bool in_attention = s->block == BLOCK_ATTENTION, stack = s->block == BLOCK_ENCODER || s->block == BLOCK_DECODER;
    int64_t which = dice_below(&d->dice, 14);
    if (in_attention && d->cross && !d->alone && dice_chance(&d->dice, 90)) return NULL;
    if (in_attention && (d->cross || d->bare)) return "none";
    if (stack && which < 7) return of_added(d, s);
    if (which == 11) return "none";
    if (in_attention && which < 6) return of_rope(d, s);
    if (which < 8) return of_relative(d, d->alone || (in_attention && dice_chance(&d->dice, 70)));
    return which < 11 ? of_alibi(d, s) : of_content(d);
}

/* ---------------------------------------------------------------- norms and the block */

static const char *of_norm(Draw *d, const Section *s) {
    Words w = words_new(d);
    const char *kind = NULL;
    if (dice_chance(&d->dice, 60)) add(&w, kind = DICE_WORD(&d->dice, "layernorm", "rmsnorm"));
    if (d->alone) maybe(&w, 50, "none");
    else if (dice_chance(&d->dice, 60) || !kind)
        add(&w, DICE_WORD(&d->dice, "pre", "post", "after", "both", "pre", "none"));
    if (dice_chance(&d->dice, 40)) add(&w, arena_printf(d->arena, "eps %s", eps(d)));
    maybe(&w, 25, "plus_one");
    if (kind && kind[0] == 'l') maybe(&w, 40, "no_bias");
    return (void)s, words_done(&w);
}

static const char *of_final_norm(Draw *d, const Section *s) { return (void)s, DICE_WORD(&d->dice, "yes", "no"); }

/* A parallel block is for layers of one attention and one ffn, which draw.c sees to. */
static const char *of_block(Draw *d, const Section *s) {
    return (void)s, DICE_WORD(&d->dice, "sequential", "parallel", "parallel", "parallel shared_norm");
}

static const char *of_residual(Draw *d, const Section *s) {
    if (d->alone || dice_chance(&d->dice, 25)) return (void)s, "no";
    if (dice_chance(&d->dice, 20)) return "yes";
    if (dice_chance(&d->dice, 30)) return DICE_WORD(&d->dice, "learned", "learned scale 0.5", "yes learned");
    return arena_printf(d->arena, "%sscale %s", dice_chance(&d->dice, 30) ? "yes " : "", any_real(d));
}

static const char *of_bias(Draw *d, const Section *s) {
    static const char *const all[] = {"q", "k", "v", "o", "up", "gate", "down"};
    (void)s;
    if (dice_chance(&d->dice, 20)) return "all";
    if (dice_chance(&d->dice, 25)) return "none";
    Words w = words_new(d);
    for (int i = 0; i < COUNT(all); i++) maybe(&w, 40, all[i]);
    return words_done(&w);
}

/* ---------------------------------------------------------------- attention */

static const char *of_heads(Draw *d, const Section *s) {
    (void)s;
    if (d->bare) return "1";
    return integer(d, DICE_NUMBER(&d->dice, 1, 2, 3, 4, 1, 2, 4, 5, 6, 8));
}

static const char *of_kv_heads(Draw *d, const Section *s) {
    int64_t heads = said_number(s, S_heads), n = dice_between(&d->dice, 1, 8);
    if (d->bare) return NULL;
    while (heads % n) n--;
    return integer(d, n);
}

static const char *of_head_dim(Draw *d, const Section *s) {
    (void)s;
    if (d->bare) return NULL;
    return integer(d, DICE_NUMBER(&d->dice, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 16, 17, 18, 20, 24, 31, 32, 33, 40));
}

static const char *of_value_dim(Draw *d, const Section *s) { return of_head_dim(d, s); }

static const char *of_latent(Draw *d, const Section *s) {
    Words w = words_new(d);
    (void)s;
    add(&w, integer(d, DICE_NUMBER(&d->dice, 1, 3, 5, 8, 15, 16, 17, 24, 33, 40)));
    add(&w, arena_printf(d->arena, "rope %s", integer(d, DICE_NUMBER(&d->dice, 2, 4, 6, 10, 16, 18))));
    if (dice_chance(&d->dice, 50)) add(&w, arena_printf(d->arena, "query %s", of_head_dim(d, s)));
    if (dice_chance(&d->dice, 30)) add(&w, arena_printf(d->arena, "eps %s", eps(d)));
    return words_done(&w);
}

/* `none` where rows keep their width, or nothing comes behind that would mind. */
static const char *of_output(Draw *d, const Section *s) {
    int64_t value = said_number(s, S_value_dim) ? said_number(s, S_value_dim) : d->head_dim;
    const char *residual = said(s, S_residual);
    bool no_residual = residual && has_word(residual, "no");
    bool fits = d->alone || d->heads * value == said_number(s, S_d_model) || (d->last && no_residual);
    return fits && dice_chance(&d->dice, 60) ? "none" : "projected";
}

static const char *of_project(Draw *d, const Section *s) {
    return (void)s, d->bare ? "none" : "yes";
}

/* A norm inside of a sublayer; `heads`: of queries and keys, which may be rotated. */
static const char *inner_words(Draw *d, bool heads, bool rotated) {
    Words w = words_new(d);
    const char *kind = DICE_WORD(&d->dice, "layernorm", "rmsnorm");
    add(&w, kind);
    if (heads && dice_chance(&d->dice, 60)) add(&w, DICE_WORD(&d->dice, "all_heads", "weight_per_head"));
    if (dice_chance(&d->dice, 40)) add(&w, arena_printf(d->arena, "eps %s", eps(d)));
    maybe(&w, 25, "plus_one");
    if (kind[0] == 'l') maybe(&w, 40, "no_bias");
    maybe(&w, rotated ? 50 : 0, "after_rotation");
    return words_done(&w);
}

static const char *of_qk_norm(Draw *d, const Section *s) {
    const char *position = d->cross ? NULL : said(s, S_position);
    const bool rotated = position && has_word(position, "rope");
    return d->bare || dice_chance(&d->dice, 10) ? "none" : inner_words(d, true, rotated);
}

static const char *of_inner_norm(Draw *d, const Section *s) {
    const char *output = said(s, S_output);
    const bool last = output ? !has_word(output, "none") : s->block != BLOCK_ATTENTION || !d->bare;
    return last && dice_chance(&d->dice, 90) ? inner_words(d, false, false) : "none";
}

static const char *of_scale(Draw *d, const Section *s) { return (void)s, any_real(d); }

static const char *of_softcap(Draw *d, const Section *s) {
    return (void)s, DICE_WORD(&d->dice, "0", "0.5", "5", "30", "50", "1e-3");
}

static const char *of_clip(Draw *d, const Section *s) {
    /* A bound that cuts all values makes sums of equal numbers, which lie between two codes of int8. */
    return (void)s, DICE_WORD(&d->dice, "0", "0.5", "1", "8");
}

static const char *of_sink(Draw *d, const Section *s) {
    const char *mask = said(s, S_mask), *window = said(s, S_window);
    bool has_window = (mask && has_word(mask, "window")) || (window && !has_word(window, "none"));
    if (!has_window || dice_chance(&d->dice, 40)) return dice_chance(&d->dice, 90) ? "learned" : "0 learned";
    return arena_printf(d->arena, "%s%s", DICE_WORD(&d->dice, "1", "2", "4", "17"),
                        dice_chance(&d->dice, 30) ? " learned" : "");
}

/* A number of a learned table at an index of positions. */
static const char *learned_number(Draw *d, const char *name, bool of_head) {
    const char *index = DICE_WORD(&d->dice, "(q + 2*k) mod 7", "clamp(q - k + 3, 0, 6)", "min(6, abs(q - k))",
                                  "k mod 7", "min(6, floor(log(q + 1)*2))", "(floor(q/3) + k) mod 7", "3");
    return arena_printf(d->arena, "%s[%s%s]", name, of_head ? "h, " : "", index);
}

static Section *stack_of(const Section *s) {
    Section *stack = s->outer;
    while (stack && stack->block != BLOCK_ENCODER && stack->block != BLOCK_DECODER) stack = stack->outer;
    return stack;
}

/* The name of a real number of the sequence, which the stack then has. */
static const char *real_number(Draw *d, Section *stack) {
    const char *name = stack->block == BLOCK_ENCODER ? "tilt" : "lean";
    if (!stack->tilt) stack->tilt = arena_printf(d->arena, "%s real%s", name, DICE_WORD(&d->dice, "", " -1..1.5"));
    return name;
}

/* A score that reads numbers of the sequence, or real numbers of a decoder's rows. */
static const char *given_score(Draw *d, Section *stack, const char *number) {
    const bool encoder = stack->block == BLOCK_ENCODER;
    if (!encoder && dice_chance(&d->dice, 40)) {
        if (!stack->load) stack->load = DICE_WORD(&d->dice, "load real", "load real 0..2");
        return arena_printf(d->arena, DICE_WORD(&d->dice, ", score s*0.5 - sqrt(abs(load[q]))*%s + load[k]",
                                                ", score if load[q] - load[k] < 0.3*(q - k) then s else %s"), number);
    }
    return arena_printf(d->arena, DICE_WORD(&d->dice, ", score s*0.5 - %s*%s",
                                            ", score if %s*3 < 0.5*(q - k) then s else s*0.5 - %s"),
                        real_number(d, stack), number);
}

/* An item `score EXPR` with the items that it reads, to be written after another item; or "". */
static const char *rescore(Draw *d, const Section *s) {
    const bool crossed = d->cross && !d->alone, of_head = said_number(s, S_heads) > 0;
    Section *stack = stack_of(s);
    if (s->block != BLOCK_ATTENTION || crossed || !dice_chance(&d->dice, 40)) return "";
    const char *number = DICE_WORD(&d->dice, "0.1*abs(q - k)", "tanh(s)", "cos(q - k)/(h + 1)",
                                   "(if (q + k) mod 3 == 0 then 0.5 else -exp(-abs(s)))",
                                   "(if 0.3*(q - k) < sqrt(k + 1)/3 then 0.5 else tanh(s))",
                                   "0.1*sign(0.3*q - floor(sqrt(k + 1)))");
    if (stack && stack->block == BLOCK_ENCODER && dice_chance(&d->dice, 20)) {
        stack->real = true;
        return arena_printf(d->arena, ", score s*%s - %s*%s",
                            DICE_WORD(&d->dice, "weight[k]", "0.5", "(if weight[k]^2 < slant[q, k] then 0.5 else 1)"),
                            number, DICE_WORD(&d->dice, "slant[q, k]", "weight[q]", "floor(2*slant[q, k])",
                                              "sign(weight[q] - slant[q, k])"));
    }
    if (stack && dice_chance(&d->dice, 20)) return given_score(d, stack, number);
    if (dice_chance(&d->dice, 40)) return arena_printf(d->arena, ", score s*0.5 - %s", number);
    if (stack && stack->block == BLOCK_ENCODER && dice_chance(&d->dice, 30)) {
        stack->pairs = true;
        return arena_printf(d->arena, ", learned w%s [7], score s*0.75 + w[%sfar[q, k]]*%s", of_head ? " [heads]" : "",
                            of_head ? "h, " : "", number);
    }
    return arena_printf(d->arena, ", learned w%s [7], score s*0.75 + %s*%s", of_head ? " [heads]" : "",
                        learned_number(d, "w", of_head), number);
}

static const char *of_softmax(Draw *d, const Section *s) {
    const char *sink = said(s, S_sink);
    if (sink && has_word(sink, "learned")) return "yes";
    return DICE_WORD(&d->dice, "sigmoid", "none", "yes");
}

static const char *of_differential(Draw *d, const Section *s) {
    return (void)s, DICE_WORD(&d->dice, "yes", "yes init 0.5", "yes init 0 eps 0.1", "yes eps 1e-3", "no");
}

static const char *of_score(Draw *d, const Section *s) {
    bool others = said(s, S_qk_norm) || said(s, S_head_dim) || said(s, S_value_dim) || said_number(s, S_heads) > 1;
    bool cross = s->block == BLOCK_ATTENTION && (d->cross || d->alone);
    if (cross && !others && dice_chance(&d->dice, 60)) {
        d->bare = true;
        return DICE_WORD(&d->dice, "general", "additive");
    }
    const char *product = DICE_WORD(&d->dice, "scaled_dot", "dot");
    return arena_printf(d->arena, "%s%s", product, rescore(d, s));
}

static void maybe_window(Words *w, int percent) {
    const char *rows = DICE_WORD(&w->d->dice, "1", "2", "3", "5", "8", "16", "17", "40");
    if (dice_chance(&w->d->dice, percent)) add(w, arena_printf(w->d->arena, "window %s", rows));
}

/* A condition that shows some keys to most rows. */
static const char *condition(Draw *d) {
    const char *near = DICE_WORD(&d->dice, "abs(q - k) < 5", "q - k < 7 and k - q < 3", "min(q, 9)*2 >= k - 11",
                                 "floor(q / 4) == floor(k / 4)", "(q - k) mod 2 == 0",
                                 "clamp(q, 2, 20) - k <= max(1, k mod 5)", "abs(q - k) <= 2 + 3*h",
                                 "(q + h) mod 4 != k mod 3", "abs(q - k) <= (if k < 4 then 9 else q mod 5)",
                                 "floor(0.3*q) == floor(k/3.3)", "sign(sqrt(q + 1) - 0.7*k) + 1 >= (q + k) mod 2");
    switch (dice_below(&d->dice, 4)) {
    case 0: return arena_printf(d->arena, "%s or k mod %d == 1", near, 2 + (int)dice_below(&d->dice, 4));
    case 1: return arena_printf(d->arena, "not (%s and k == %d)", near, (int)dice_below(&d->dice, 9));
    case 2: return arena_printf(d->arena, "if q < %d then k < 6 else %s", (int)dice_below(&d->dice, 20), near);
    default: return near;
    }
}

/* A condition of cross attention, with the integers of the decoder's rows, of the source's rows, or of both. */
static const char *condition_across(Draw *d, Section *stack) {
    const int kind = (int)dice_below(&d->dice, 3);
    if (kind > 0) stack->rows = "doc";
    if (kind < 2) stack->source_rows = "image";
    if (kind == 0) return arena_printf(d->arena, "image[k] <= 1 and %s", condition(d));
    if (kind == 1) return "image[k] == doc[q] or image[k] < 1 and k <= q";
    return arena_printf(d->arena, "doc[q] > 0 or (%s)", condition(d));
}

/* A condition with a real number of the sequence, which the stack then has. */
static const char *condition_of_real(Draw *d, Section *stack) {
    const char *name = real_number(d, stack);
    switch (dice_below(&d->dice, 5)) {
    case 0: return arena_printf(d->arena, "abs(q - k)/4 < %s + 2 or k == 0", name);
    case 1: return arena_printf(d->arena, "(q - k)*0.5 < 9*%s*%s", name, name);
    case 2: return arena_printf(d->arena, "k < floor(clamp(9*%s, 0, 12)) or (%s)", name, condition(d));
    case 3: return arena_printf(d->arena, "if %s < 0.3 then q - k < 9 else (%s)", name, condition(d));
    default: return arena_printf(d->arena, "sqrt(abs(%s)) > 2/(q - k) or k <= q and %s", name, condition(d));
    }
}

/* A condition with a number of the sequence, which the stack then has. */
static const char *condition_of_number(Draw *d, Section *stack) {
    if (dice_chance(&d->dice, 40)) return condition_of_real(d, stack);
    const char *name = stack->block == BLOCK_ENCODER ? "reach" : "span";
    if (!stack->number)
        stack->number = arena_printf(d->arena, "%s %s", name, DICE_WORD(&d->dice, "1..9", "0..30", "-3..6"));
    switch (dice_below(&d->dice, 4)) {
    case 0: return arena_printf(d->arena, "abs(q - k) <= %s or k == 0", name);
    case 1: return arena_printf(d->arena, "k < %s or %s", name, condition(d));
    case 2: return arena_printf(d->arena, "(q + 2*k) mod 3 != %s", name);
    default: return arena_printf(d->arena, "if q > %s then q - k < %s + 9 else (%s)", name, name, condition(d));
    }
}

/* A condition with real numbers of rows, which the stack then has. */
static const char *condition_of_reals(Draw *d, Section *stack) {
    const bool encoder = stack->block == BLOCK_ENCODER;
    const char *name = encoder ? "weight" : "load";
    if (encoder) stack->real = true;
    else if (!stack->load) stack->load = DICE_WORD(&d->dice, "load real", "load real 0..2");
    switch (dice_below(&d->dice, 6)) {
    case 0: return arena_printf(d->arena, "%s[k] <= %s[q] or q == k", name, name);
    case 1: return arena_printf(d->arena, "abs(%s[q] - %s[k])*3 < 2.5 or k <= q", name, name);
    case 2: return arena_printf(d->arena, "sqrt(abs(%s[k])) + 0.1*q < 1.5 or (%s)", name, condition(d));
    case 3: return arena_printf(d->arena, "%s[q]*%s[k] - 0.5 >= 0.1*(k - q) or k == 0", name, name);
    case 4: return arena_printf(d->arena, "k - q < (if %s[q] > 0.5 then 3 else sign(%s[k] - 1) + 2)", name, name);
    default: return arena_printf(d->arena, "k < q + floor(min(max(%s[k], -2), 3.5))", name);
    }
}

/* A condition that perhaps reads numbers of the stack's rows, which the stack then has. */
static const char *condition_of_rows(Draw *d, const Section *s) {
    Section *stack = stack_of(s);
    if (!stack || dice_chance(&d->dice, 40)) return condition(d);
    if (dice_chance(&d->dice, 25)) return condition_of_number(d, stack);
    if (d->cross) return condition_across(d, stack);
    if (dice_chance(&d->dice, 20)) return condition_of_reals(d, stack);
    if (stack->block == BLOCK_ENCODER && dice_chance(&d->dice, 30)) {
        stack->pairs = true;
        return DICE_WORD(&d->dice, "far[q, k] <= 3", "far[q, k] != 2 and abs(q - k) < 9", "q - k < far[q, k] + 2");
    }
    if (dice_chance(&d->dice, 25)) {
        const char *bits = stack->bits = stack->block == BLOCK_ENCODER ? "marks" : "drafts";
        const char *at = DICE_WORD(&d->dice, "k", "q - k + 1", "k mod 9 + 58", "floor((q + k)/4) - 2");
        return arena_printf(d->arena, DICE_WORD(&d->dice, "bit(%s[q], %s) or k < 4", "not bit(%s[k], %s)",
                                                "abs(q - k) < 4 or bit(%s[k], %s)"), bits, at);
    }
    const char *name = stack->rows = stack->block == BLOCK_ENCODER ? "part" : "doc";
    switch (dice_below(&d->dice, 5)) {
    case 0: return arena_printf(d->arena, "%s[q] == %s[k]", name, name);
    case 1: return arena_printf(d->arena, "%s[k] <= %s[q] and %s", name, name, condition(d));
    case 2: return arena_printf(d->arena, "%s[k] > 0 or (%s)", name, condition(d));
    case 3: return arena_printf(d->arena, "abs(%s[q] - %s[k]) < 2 or k < 3", name, name);
    default: return arena_printf(d->arena, "if %s[q] > 1 then q - k < 9 else (q + %s[k]) mod 3 != 0", name, name);
    }
}

static const char *of_mask(Draw *d, const Section *s) {
    Words w = words_new(d);
    if (s->block != BLOCK_ATTENTION)
        return d->has_decoder ? "causal" : DICE_WORD(&d->dice, "causal", "padding", "prefix");
    bool crossed = d->cross && !d->alone, needs = d->in_decoder && !d->cross;
    const char *kind = crossed ? "cross" : d->in_decoder ? "decoder" : "encoder";
    bool given = (!d->given || strcmp(d->given, kind) == 0) && dice_chance(&d->dice, d->in_decoder ? 10 : 20);
    if (!needs && dice_chance(&d->dice, 15)) return "none";
    if (given) add(&w, "given"), d->given = kind;
    if (!crossed && dice_chance(&d->dice, 50)) add(&w, "causal");
    if (!crossed && dice_chance(&d->dice, 30)) add(&w, "prefix");
    if (needs && !has_word(w.text.data, "causal") && !has_word(w.text.data, "prefix")) add(&w, "causal");
    if (!w.text.size) add(&w, "padding");
    else maybe(&w, 25, "padding");
    if (!crossed) maybe_window(&w, 30);
    const char *words = words_done(&w);
    if (!dice_chance(&d->dice, 25)) return words;
    if (needs && dice_chance(&d->dice, 30)) words = "padding"; /* such a mask may show later rows */
    return arena_printf(d->arena, "%s where %s", words, condition_of_rows(d, s));
}

static const char *of_window(Draw *d, const Section *s) {
    const char *mask = said(s, S_mask);
    if (d->cross && !d->alone) return "none";
    if (mask && has_word(mask, "window")) return NULL;
    return DICE_WORD(&d->dice, "none", "1", "2", "3", "4", "7", "9", "16", "20");
}

static const char *of_d_query(Draw *d, const Section *s) { return (void)s, of_width(d); }
static const char *of_d_key(Draw *d, const Section *s) {
    return d->cross ? of_width(d) : said(s, S_d_query);
}
static const char *of_d_value(Draw *d, const Section *s) { return of_d_key(d, s); }
static const char *of_d_score(Draw *d, const Section *s) {
    const char *score = said(s, S_score);
    return score && has_word(score, "additive") ? of_width(d) : NULL;
}

/* ---------------------------------------------------------------- ffn, head, tokens, the C */

static const char *of_d_ff(Draw *d, const Section *s) {
    int64_t width = said_number(s, S_d_model);
    if (dice_chance(&d->dice, 20)) return width <= 20 ? "4*d_model" : "d_model + 1";
    return integer(d, DICE_NUMBER(&d->dice, 1, 2, 3, 5, 7, 8, 15, 16, 17, 24, 31, 32, 33, 40, 47, 64, 66, 80));
}

/* An expression of x whose slope is small, so that rounded rows stay near each other. */
static const char *formula(Draw *d, int depth) {
    if (depth == 0) return DICE_WORD(&d->dice, "x", "x", "0.5*x", "0.25");
    const char *a = formula(d, depth - 1), *b = formula(d, (int)dice_below(&d->dice, depth));
    switch (dice_below(&d->dice, 11)) {
    case 0: return arena_printf(d->arena, "(%s + %s)", a, b);
    case 1: return arena_printf(d->arena, "(%s - %s)", b, a);
    case 2: return arena_printf(d->arena, "min(%s, %s)", a, b);
    case 3: return arena_printf(d->arena, "max(%s, %s)", a, b);
    case 4: return arena_printf(d->arena, "abs(%s)", a);
    case 5: return arena_printf(d->arena, "clamp(%s, -1.5, 2)", a);
    case 6: return arena_printf(d->arena, "tanh(%s)", a);
    case 7: return arena_printf(d->arena, "x*sigmoid(%s)", a);
    case 8: return arena_printf(d->arena, "exp(min(%s, 0))", a);
    case 9: return arena_printf(d->arena, "sqrt(abs(%s) + 0.5)", a);
    default: return DICE_WORD(&d->dice, "(if x < 0 then 0.125*x else x)", "(if x <= 1 then x else 1)");
    }
}

static const char *of_activation(Draw *d, const Section *s) {
    static const char *const words[] = {
#define ACTIVATION(name, formula, imported, help) #name,
#include "../../../compiler/model/activations.def"
    };
    Words w = words_new(d);
    const char *formula_of = dice_chance(&d->dice, 15) ? formula(d, (int)dice_between(&d->dice, 1, 3)) : NULL;
    if (!formula_of) add(&w, words[dice_below(&d->dice, COUNT(words))]);
    if (s->block != BLOCK_CONVOLUTION && dice_chance(&d->dice, 40)) {
        add(&w, "gated");
        if (dice_chance(&d->dice, 25)) add(&w, DICE_WORD(&d->dice, "limit 0.5", "limit 7", "limit 1e-3"));
        maybe(&w, 25, "plus_one");
    }
    if (formula_of) add(&w, arena_printf(d->arena, "= %s", formula_of));
    return words_done(&w);
}

/* Divisible by 2 and 4, or by neither. */
static const char *of_experts(Draw *d, const Section *s) {
    (void)s;
    return integer(d, DICE_NUMBER(&d->dice, 2, 3, 4, 8, 8, 12, 16, 20, 33));
}

static int64_t experts_said(const Section *s) { return said(s, S_experts) ? said_number(s, S_experts) : 0; }

static const char *of_top(Draw *d, const Section *s) {
    const int64_t n = experts_said(s);
    return n ? integer(d, dice_between(&d->dice, 1, n < 5 ? n : 5)) : NULL;
}

static const char *of_router(Draw *d, const Section *s) {
    Words w = words_new(d);
    const int64_t n = experts_said(s), top = said(s, S_top) ? said_number(s, S_top) : 0;
    if (!top) return NULL;
    add(&w, DICE_WORD(&d->dice, "softmax", "sigmoid"));
    maybe(&w, 50, "renormalized");
    maybe(&w, 30, "bias");
    maybe(&w, 30, "corrected");
    if (dice_chance(&d->dice, 30)) add(&w, arena_printf(d->arena, "scale %s", any_real(d)));
    if (n % 4 == 0 && n >= 8 && top <= n / 2 && dice_chance(&d->dice, 60)) add(&w, "groups 4 top_groups 2");
    return words_done(&w);
}

static const char *of_shared_expert(Draw *d, const Section *s) {
    if (!experts_said(s)) return NULL;
    return arena_printf(d->arena, "%s%s", of_d_ff(d, s), dice_chance(&d->dice, 40) ? " gated" : "");
}

static const char *of_head(Draw *d, const Section *s) {
    Words w = words_new(d);
    (void)s;
    bool both = d->has_encoder && d->has_decoder;
    if (d->alone || dice_chance(&d->dice, 10)) return "none";
    if (d->vocab && dice_chance(&d->dice, both ? 80 : d->has_decoder ? 70 : 35)) {
        add(&w, "logits");
        maybe(&w, 30, "tied");
        maybe(&w, 30, "bias");
        if (dice_chance(&d->dice, 20))
            add(&w, DICE_WORD(&d->dice, "transform", "transform silu", "transform relu transform_no_bias",
                             "transform transform_no_norm"));
        if (dice_chance(&d->dice, 30)) add(&w, arena_printf(d->arena, "softcap %s", DICE_WORD(&d->dice, "30", "0.5")));
        if (dice_chance(&d->dice, 30)) add(&w, arena_printf(d->arena, "scale %s", any_real(d)));
        return words_done(&w);
    }
    bool pool = dice_chance(&d->dice, 75), more = dice_chance(&d->dice, 60);
    if (pool) {
        add(&w, "pool");
        if (dice_chance(&d->dice, 85))
            add(&w, DICE_WORD(&d->dice, "mean", "cls", "max", "last", "probe", "mean_sqrt", "max", "last",
                             "weighted_mean", "probe", "cls_mean", "cls_distillation"));
        if (has_word(w.text.data, "last") && d->vocab)
            maybe(&w, 60, arena_printf(d->arena, "%s %s", DICE_WORD(&d->dice, "skip", "token"), token(d)));
        if (!more) maybe(&w, 60, "l2");
    }
    if (!more) return words_done(&w);
    bool pooler = dice_chance(&d->dice, 60);
    if (pooler) add(&w, "pooler");
    if (pooler && dice_chance(&d->dice, 40)) add(&w, DICE_WORD(&d->dice, "relu", "gelu", "silu", "softplus", "elu"));
    if (!pooler || dice_chance(&d->dice, 50)) {
        const char *classes = DICE_WORD(&d->dice, "1", "2", "5", "16", "17", "33");
        add(&w, arena_printf(d->arena, "classifier %s", classes));
        if (strcmp(classes, "5") == 0 || strcmp(classes, "16") == 0) add(&w, "no_bias");
        if (!pool && !pooler) maybe(&w, 40, "rows");
        if (pool) maybe(&w, 30, "norm");
    }
    return words_done(&w);
}

static const char *of_start(Draw *d, const Section *s) { return (void)s, token(d); }
static const char *of_pad(Draw *d, const Section *s) { return (void)s, token(d); }
static const char *of_end(Draw *d, const Section *s) {
    (void)s;
    return dice_chance(&d->dice, 50) ? token(d) : arena_printf(d->arena, "%s %s", token(d), token(d));
}

static const char *of_export(Draw *d, const Section *s) {
    Words w = words_new(d);
    bool stack = s->block == BLOCK_ENCODER || s->block == BLOCK_DECODER;
    if (d->alone && said(s, S_softmax) == NULL && dice_chance(&d->dice, 40)) {
        if (dice_chance(&d->dice, 50)) return "lse";
        add(&w, "lse");
    }
    add(&w, "attention");
    if (stack && dice_chance(&d->dice, 40)) add(&w, "layers 0");
    if (dice_chance(&d->dice, 40)) add(&w, "heads 0");
    return words_done(&w);
}

static const char *of_unroll(Draw *d, const Section *s) {
    return (void)s, d->has_decoder || dice_chance(&d->dice, 50) ? "auto" : "full";
}

static const char *of_d_model(Draw *d, const Section *s) { return (void)s, of_width(d); }
static const char *of_dtype(Draw *d, const Section *s) { return (void)d, (void)s, "f32"; }
static const char *of_precision(Draw *d, const Section *s) {
    (void)s;
    if (d->has_decoder && dice_chance(&d->dice, 50))
        return DICE_WORD(&d->dice, "cache f32", "cache bf16", "cache f16", "cache int8", "weights int8 cache int8",
                         "weights int8 activations int8 cache bf16", "weights int8 activations int8 smooth",
                         "weights int8 activations int8 smooth outliers 3",
                         "weights int8 attention bf16 cache f16", "attention int8",
                         "weights bf16 activations bf16 attention bf16");
    return DICE_WORD(&d->dice, "weights f32", "weights bf16", "weights f16", "weights int8",
                     "weights int8 activations int8", "weights int8 activations int8 smooth", "weights int8 32",
                     "weights int4 128 activations int8 smooth attention bf16", "weights int4",
                     "weights int8 activations int8 smooth outliers 14",
                     "weights int4 offset activations int8 smooth outliers 2",
                     "weights int4 64 offset", "weights int4 32 offset activations int8",
                     "weights int4 64 offset halves", "weights int8 32 halves activations int8",
                     "weights bf16 activations bf16", "attention bf16", "attention int8",
                     "weights int8 activations int8 attention int8",
                     "weights int8 activations int8 attention bf16");
}

static const char *of_last_precision(Draw *d, const Section *s) {
    return (void)s, DICE_WORD(&d->dice, "weights f32", "weights bf16 activations bf16", "activations f32",
                              "weights int8 activations int8 smooth", "weights int8 32 activations f32",
                              "weights int4 offset activations int8", "weights int4 halves activations int8",
                              "weights int8 64 activations int8 smooth outliers 5");
}

static const char *of_output_precision(Draw *d, const Section *s) { return of_last_precision(d, s); }
static const char *of_down_precision(Draw *d, const Section *s) { return of_last_precision(d, s); }

static const char *(*const sayers[SETTING_COUNT])(Draw *d, const Section *s) = {
#define SETTING(name, blocks, form, help) [S_##name] = of_##name, /* a new setting needs its function here */
#include "../../../compiler/model/settings.def"
};

void say_something(Draw *d, Section *section, SettingId setting) {
    const char *text = sayers[setting](d, section);
    if (!text) return;
    state(d, section, setting, text);
}
