/* draw.c: a spec by its number: its blocks, and which settings are said in each. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- blocks and lines */

const char *said(const Section *s, SettingId setting) {
    for (; s; s = s->outer)
        if (s->lines[setting]) return s->lines[setting];
    return NULL;
}

int64_t said_number(const Section *s, SettingId setting) {
    for (; s; s = s->outer)
        if (s->lines[setting]) return s->numbers[setting];
    return 0;
}

/* A spectrogram needs a convolution, unless its block has one. */
static void add_convolution(Draw *d, Section *s) {
    for (const Section *inner = s->first; inner; inner = inner->next)
        if (inner->block == BLOCK_CONVOLUTION) return;
    state(d, add_section(d, s, BLOCK_CONVOLUTION, "convolution"), S_kernel, "3");
}

void state(Draw *d, Section *s, SettingId setting, const char *text) {
    char *end;
    long long number = strtoll(text, &end, 10);
    if (setting == S_input && s->block == BLOCK_ENCODER && strncmp(text, "mel", 3) == 0) add_convolution(d, s);
    s->lines[setting] = text;
    s->numbers[setting] = *end ? 0 : number;
}

void state_number(Draw *d, Section *s, SettingId setting, int64_t number) {
    state(d, s, setting, arena_printf(d->arena, "%lld", (long long)number));
}

Section *add_section(Draw *d, Section *outer, Block block, const char *head) {
    Section *s = arena_alloc(d->arena, sizeof *s);
    *s = (Section){.block = block, .head = head, .outer = outer};
    if (outer && outer->last) outer->last->next = s;
    else if (outer) outer->first = s;
    if (outer) outer->last = s;
    return s;
}

static void add_text(Text *text, const Section *s, int depth) {
    text_printf(text, "%*s%s {\n", 4 * depth, "", s->head);
    if (s->places) text_printf(text, "%*sinput rows %s 0..11\n", 4 * depth + 4, "", s->places);
    for (int i = 0; i < SETTING_COUNT; i++)
        if (s->lines[i]) text_printf(text, "%*s%s %s\n", 4 * depth + 4, "", setting_rows[i].name, s->lines[i]);
    if (s->rows) text_printf(text, "%*sinput rows %s -1..3\n", 4 * depth + 4, "", s->rows);
    if (s->bits) text_printf(text, "%*sinput rows %s\n", 4 * depth + 4, "", s->bits);
    if (s->source_rows) text_printf(text, "%*sinput rows %s -1..3 of source\n", 4 * depth + 4, "", s->source_rows);
    if (s->number) text_printf(text, "%*sinput number %s\n", 4 * depth + 4, "", s->number);
    if (s->tilt) text_printf(text, "%*sinput number %s\n", 4 * depth + 4, "", s->tilt);
    if (s->load) text_printf(text, "%*sinput rows %s\n", 4 * depth + 4, "", s->load);
    if (s->pairs) text_printf(text, "%*sinput pairs far 0..6\n", 4 * depth + 4, "");
    if (s->real)
        text_printf(text, "%*sinput rows weight real, input pairs slant real\n", 4 * depth + 4, "");
    for (const Section *inner = s->first; inner; inner = inner->next) add_text(text, inner, depth + 1);
    text_printf(text, "%*s}\n", 4 * depth, "");
}

char *section_text(Arena *arena, const Section *model) {
    Text text = text_new(arena);
    add_text(&text, model, 0);
    return text.data;
}

/* ---------------------------------------------------------------- settings that need not be said */

typedef struct Habit {
    SettingId setting;
    int percent;
} Habit;

static bool usual(Draw *d, int percent) { return dice_chance(&d->dice, percent * d->density / 100); }

static void by_habit(Draw *d, Section *s, const Habit *habits, int n) {
    for (int i = 0; i < n; i++)
        if (!s->lines[habits[i].setting] && usual(d, habits[i].percent)) say_something(d, s, habits[i].setting);
}

/* Settings of inner blocks, said further out for all of them. */
static const Habit outer_habits[] = {
    {S_norm, 12},    {S_residual, 4},   {S_bias, 6},    {S_qk_norm, 3}, {S_scale, 3},  {S_softcap, 3},
    {S_clip, 2},     {S_inner_norm, 3},
    {S_score, 2},    {S_activation, 6}, {S_d_ff, 12},   {S_heads, 10},  {S_head_dim, 4}, {S_value_dim, 2},
    {S_position, 5}, {S_mask, 2},       {S_window, 3},  {S_sink, 1},    {S_output, 1}, {S_block, 4},
    {S_kv_heads, 2}, {S_project, 1},
};

/* ---------------------------------------------------------------- sublayers */

/* Heads that cut rows without projections: of self attention alone, whose rows have one width. */
static int64_t bare_heads(Draw *d, const Section *s) {
    const char *score = said(s, S_score);
    if (!d->alone || d->cross || (score && !strstr(score, "dot")) || usual(d, 50)) return 1;
    int64_t heads = dice_between(&d->dice, 1, 8);
    while (d->query_width % heads) heads--;
    return heads;
}

static void draw_heads(Draw *d, Section *s) {
    int64_t width = said_number(s, S_d_model);
    bool inner = s->block == BLOCK_ATTENTION && !d->bare;
    if (d->bare) {
        const int64_t heads = bare_heads(d, s);
        if (heads > 1 || said_number(s, S_heads) > 1 || usual(d, 10)) state_number(d, s, S_heads, heads);
        d->heads = heads;
        d->head_dim = (d->alone ? d->query_width : width) / heads;
        return;
    }
    if (!said(s, S_heads) || usual(d, 40)) say_something(d, s, S_heads);
    d->heads = said_number(s, S_heads);
    int64_t groups = said_number(s, S_kv_heads);
    if (inner && (usual(d, 30) || (groups && d->heads % groups))) say_something(d, s, S_kv_heads);
    bool derived = width && width % d->heads == 0;
    if ((!derived && !said(s, S_head_dim)) || usual(d, 35)) say_something(d, s, S_head_dim);
    d->head_dim = said(s, S_head_dim) ? said_number(s, S_head_dim) : width / d->heads;
    if (usual(d, 15)) say_something(d, s, S_value_dim);
}

/* With what it needs, and without what it excludes. */
static void draw_latent(Draw *d, Section *s) {
    say_something(d, s, S_latent);
    state(d, s, S_position, DICE_WORD(&d->dice, "rope", "rope interleaved", "rope theta 50",
                                      "rope scaling yarn factor 2 original 4"));
    state(d, s, S_bias, DICE_WORD(&d->dice, "none", "o"));
    state(d, s, S_qk_norm, "none");
    state(d, s, S_clip, "0");
}

static void draw_differential(Draw *d, Section *s) {
    if (!said(s, S_head_dim)) say_something(d, s, S_head_dim);
    d->head_dim = said_number(s, S_head_dim);
    say_something(d, s, S_differential);
}

/* Queries and keys that are normalized after their rotation. */
static void draw_late_norm(Draw *d, Section *s) {
    state(d, s, S_position, DICE_WORD(&d->dice, "rope", "rope interleaved", "rope theta 50", "rope linear factor 3"));
    state(d, s, S_qk_norm, DICE_WORD(&d->dice, "rmsnorm after_rotation", "layernorm after_rotation no_bias",
                                     "rmsnorm weight_per_head plus_one after_rotation",
                                     "layernorm all_heads after_rotation eps 1e-3"));
}

static void draw_attention(Draw *d, Section *s) {
    static const Habit habits[] = {{S_position, 45}, {S_qk_norm, 20}, {S_scale, 15},    {S_softcap, 15},
                                   {S_clip, 12},     {S_bias, 30},    {S_precision, 4}, {S_output_precision, 4},
                                   {S_inner_norm, 15}};
    d->bare = false;
    d->cross = s->cross;
    const char *outer = said(s, S_project);
    if (outer && strcmp(outer, "none") == 0) d->bare = true;
    if (usual(d, 20)) say_something(d, s, S_score);
    bool widths = said(s, S_head_dim) || said(s, S_value_dim) || said_number(s, S_heads) > 1;
    if (!widths && !said(s, S_qk_norm) && usual(d, 6)) d->bare = true;
    if (d->bare && !said(s, S_project) && !said(s, S_score)) say_something(d, s, S_project);
    else if (usual(d, 4)) say_something(d, s, S_project);
    if (said(s, S_score) && strcmp(said(s, S_score), "additive") == 0) say_something(d, s, S_d_score);
    draw_heads(d, s);
    if (!d->alone && !d->cross && !d->bare && !said(s, S_kv_heads) && usual(d, 10)) draw_latent(d, s);
    else if (!d->bare && usual(d, 12)) draw_differential(d, s);
    const bool rotates = !d->cross && !d->bare && !s->lines[S_latent] && d->head_dim % 2 == 0;
    if (rotates && usual(d, 10)) draw_late_norm(d, s);
    if (!d->alone) {
        if (usual(d, 25)) say_something(d, s, S_norm);
        if (usual(d, 12)) say_something(d, s, S_residual);
    }
    if (usual(d, 12)) say_something(d, s, S_output);
    bool open = d->in_decoder && !d->cross && said(s, S_mask);
    if (usual(d, 45) || open) say_something(d, s, S_mask);
    if (!(d->cross && !d->alone) && usual(d, 12)) say_something(d, s, S_window);
    if (usual(d, 12)) say_something(d, s, S_sink);
    if (usual(d, 12)) say_something(d, s, S_softmax);
    if (d->bare) state(d, s, S_clip, "0");
    by_habit(d, s, habits, COUNT(habits));
}

static void draw_ffn(Draw *d, Section *s) {
    static const Habit habits[] = {{S_activation, 75}, {S_norm, 25}, {S_residual, 12}, {S_bias, 30}, {S_precision, 4},
                                   {S_down_precision, 4}, {S_inner_norm, 20}};
    if (!said(s, S_d_ff) || usual(d, 40)) say_something(d, s, S_d_ff);
    by_habit(d, s, habits, COUNT(habits));
    if (!usual(d, 20)) return;
    if (said(s, S_inner_norm)) state(d, s, S_inner_norm, "none");
    say_something(d, s, S_experts);
    say_something(d, s, S_top);
    if (usual(d, 70)) say_something(d, s, S_router);
    if (usual(d, 40)) say_something(d, s, S_shared_expert);
}

/* The sublayers of a layer: s self attention, c cross attention, f ffn. */
static void draw_layer(Draw *d, Section *layer, bool last) {
    bool crossed = d->in_decoder && d->has_encoder;
    const char *kinds = crossed ? DICE_WORD(&d->dice, "scf", "scf", "cf", "sc", "c", "sfcf", "csf")
                                : DICE_WORD(&d->dice, "sf", "sf", "sf", "s", "f", "ssf", "fs");
    const char *block = said(layer, S_block);
    if (block && strncmp(block, "parallel", 8) == 0) kinds = "sf";
    for (; *kinds; kinds++) {
        bool ffn = *kinds == 'f';
        Section *s = add_section(d, layer, ffn ? BLOCK_FFN : BLOCK_ATTENTION,
                                 ffn ? "ffn" : *kinds == 'c' ? "attention cross" : "attention self");
        s->cross = *kinds == 'c';
        d->last = last && !kinds[1];
        if (ffn) draw_ffn(d, s);
        else draw_attention(d, s);
    }
}

static void draw_layers(Draw *d, Section *stack, bool last) {
    int patterns = usual(d, 25) ? (int)dice_between(&d->dice, 1, 2) : 0;
    int64_t n = dice_between(&d->dice, patterns ? patterns : 1, 2);
    if (usual(d, 8)) n = 3;
    const char *head = arena_printf(d->arena, "layers %lld%s", (long long)n, usual(d, 15) ? " shared" : "");
    Section *layers = add_section(d, stack, BLOCK_LAYERS, head);
    if (usual(d, 25)) by_habit(d, layers, outer_habits, COUNT(outer_habits));
    if (!patterns && usual(d, 12)) say_something(d, layers, S_block);
    if (!patterns) draw_layer(d, layers, last);
    for (int p = 0; p < patterns; p++) {
        Section *layer = add_section(d, layers, BLOCK_LAYER, "layer");
        if (usual(d, 12)) say_something(d, layer, S_block);
        if (usual(d, 25)) by_habit(d, layer, outer_habits, COUNT(outer_habits));
        draw_layer(d, layer, last && p == patterns - 1);
    }
}

/* ---------------------------------------------------------------- stacks and models */

/* What an attention further out would get: a head of the usual width, and no place of its own. */
static void forget_sublayer(Draw *d, const Section *s) {
    d->heads = said_number(s, S_heads) ? said_number(s, S_heads) : 1;
    d->head_dim = said(s, S_head_dim) ? said_number(s, S_head_dim) : said_number(s, S_d_model) / d->heads;
    d->cross = d->bare = d->last = false;
}

/* Behind the first one; the last one has d_model channels. */
static void draw_convolutions(Draw *d, Section *s) {
    static const Habit habits[] = {{S_activation, 60}};
    Section *first = s->first;
    say_something(d, first, S_kernel);
    by_habit(d, first, habits, COUNT(habits));
    for (int more = (int)dice_below(&d->dice, 3); more > 0; more--) {
        if (usual(d, 60)) say_something(d, s->last, S_channels);
        Section *next = add_section(d, s, BLOCK_CONVOLUTION, "convolution");
        say_something(d, next, S_kernel);
        by_habit(d, next, habits, COUNT(habits));
    }
}

/* The last stack has the width of the model, as what reads its rows has. */
static void draw_width(Draw *d, Section *s, bool decoder) {
    const char *embedding = said(s, S_embedding);
    const bool shared = embedding && strstr(embedding, "tied");
    if (!decoder && d->has_decoder && !shared && usual(d, 35)) say_something(d, s, S_d_model);
}

/* The convolution beside the first layer, whose channels and stride are those of the rows. */
static void draw_beside(Draw *d, Section *s) {
    static const Habit habits[] = {{S_activation, 60}};
    Section *beside = add_section(d, s, BLOCK_CONVOLUTION, "convolution");
    say_something(d, beside, S_kernel);
    by_habit(d, beside, habits, COUNT(habits));
}

static void draw_stack(Draw *d, Section *model, bool decoder) {
    static const Habit habits[] = {{S_embedding, 35}, {S_segments, 15}, {S_position, 55}, {S_norm, 15},
                                   {S_final_norm, 15}};
    Section *s = add_section(d, model, decoder ? BLOCK_DECODER : BLOCK_ENCODER, decoder ? "decoder" : "encoder");
    d->in_decoder = decoder;
    draw_width(d, s, decoder);
    forget_sublayer(d, s);
    if (usual(d, 40)) say_something(d, s, S_input);
    const char *input = said(s, S_input);
    bool tokens = !input || strncmp(input, "tokens", 6) == 0, mel = input && strncmp(input, "mel", 3) == 0;
    bool image = mel || (input && strncmp(input, "patches", 7) == 0);
    d->patches = image && !mel;
    if (mel) draw_convolutions(d, s);
    else if (!decoder && usual(d, 15)) draw_beside(d, s);
    if (!tokens) d->wants_source_tokens = true;
    if (!image && !said(s, S_seq)) say_something(d, s, S_seq);
    if (!said(s, S_vocab) && tokens) say_something(d, s, S_vocab);
    d->vocab = tokens ? said_number(s, S_vocab) : 0;
    by_habit(d, s, habits, COUNT(habits));
    const char *embedding = said(s, S_embedding), *position = said(s, S_position);
    const bool added = position && (strncmp(position, "learned", 7) == 0 || strncmp(position, "sinusoidal", 10) == 0);
    if (embedding && strstr(embedding, "before_positions") && !added) state(d, s, S_position, "learned");
    /* a table of both stacks has one precision */
    bool shared = d->has_encoder && d->has_decoder && embedding && strstr(embedding, "tied");
    if (!shared && usual(d, 4)) say_something(d, s, S_precision);
    forget_sublayer(d, s);
    if (usual(d, 20)) by_habit(d, s, outer_habits, COUNT(outer_habits));
    int blocks = usual(d, 12) ? 2 : 1;
    for (int b = 0; b < blocks; b++) draw_layers(d, s, b == blocks - 1);
    if (usual(d, 12)) say_something(d, s, S_export);
}

/* The sublayers of a learned row, where the head pools one. What attends to all rows has no mask. */
static void draw_probe(Draw *d, Section *model) {
    const char *head = said(model, S_head);
    if (!head || !strstr(head, "probe")) return;
    Section *probe = add_section(d, model, BLOCK_PROBE, "probe");
    for (const char *kinds = DICE_WORD(&d->dice, "c", "cf", "cf", "ccf", "fc"); *kinds; kinds++) {
        const bool ffn = *kinds == 'f';
        Section *s = add_section(d, probe, ffn ? BLOCK_FFN : BLOCK_ATTENTION, ffn ? "ffn" : "attention cross");
        s->cross = !ffn;
        d->last = d->in_decoder = false;
        if (ffn) draw_ffn(d, s);
        else draw_attention(d, s);
        if (!ffn) state(d, s, S_mask, "none"), state(d, s, S_output, "projected");
    }
}

/* Projections of the row that the head pools. */
static void draw_dense(Draw *d, Section *model) {
    const char *head = said(model, S_head);
    if (!head || !strstr(head, "pool") || !usual(d, 40)) return;
    for (int64_t n = dice_between(&d->dice, 1, 3); n > 0; n--) {
        const char *width = DICE_WORD(&d->dice, "1", "7", "8", "16", "17", "33", "40");
        Section *s = add_section(d, model, BLOCK_DENSE, arena_printf(d->arena, "dense %s", width));
        if (usual(d, 50)) state(d, s, S_bias, DICE_WORD(&d->dice, "all", "none"));
        if (usual(d, 60)) state(d, s, S_activation, DICE_WORD(&d->dice, "tanh", "identity", "gelu", "sigmoid", "mish"));
    }
}

static void draw_alone(Draw *d, Section *model) {
    static const Habit widths[] = {{S_d_query, 30}, {S_d_key, 30}, {S_d_value, 20}};
    d->alone = true;
    bool cross = dice_chance(&d->dice, 65);
    Section *s = add_section(d, model, BLOCK_ATTENTION, cross ? "attention cross" : "attention self");
    s->cross = d->cross = cross;
    if (!said(s, S_queries)) say_something(d, s, S_queries);
    if (cross && !said(s, S_keys)) say_something(d, s, S_keys);
    bool needs = !said(s, S_d_model);
    if (needs) say_something(d, s, S_d_query);
    if (needs && cross) say_something(d, s, S_d_key);
    by_habit(d, s, widths, COUNT(widths));
    d->query_width = said_number(s, said(s, S_d_query) ? S_d_query : S_d_model);
    draw_attention(d, s);
}

static Section *draw_model(Draw *d, uint64_t number) {
    static const Habit habits[] = {{S_export, 8}, {S_unroll, 12}, {S_start, 6}, {S_end, 6}, {S_pad, 6}, {S_dtype, 4},
                                   {S_precision, 4}};
    static const Habit outermost[] = {{S_vocab, 30}, {S_seq, 8}, {S_embedding, 12}, {S_input, 3}, {S_segments, 4},
                                      {S_final_norm, 5}, {S_queries, 3}, {S_keys, 3}};
    const char *head = arena_printf(d->arena, "model s%llu", (unsigned long long)number);
    Section *model = add_section(d, NULL, BLOCK_MODEL, head);
    int64_t which = dice_below(&d->dice, 100);
    d->has_encoder = which < 55;
    d->has_decoder = which >= 33 && which < 85;
    d->alone = which >= 85;
    if (!d->alone || dice_chance(&d->dice, 75)) {
        say_something(d, model, S_d_model);
        if (dice_chance(&d->dice, 12)) state_number(d, model, S_d_model, DICE_NUMBER(&d->dice, 49, 63, 64, 65, 70));
    }
    forget_sublayer(d, model);
    for (int i = 0; i < COUNT(outermost); i++) {
        bool of_alone = outermost[i].setting == S_queries || outermost[i].setting == S_keys;
        if (of_alone == d->alone && usual(d, outermost[i].percent)) say_something(d, model, outermost[i].setting);
    }
    if (usual(d, 30)) {
        if (d->alone) state(d, model, S_norm, "none");
        else by_habit(d, model, outer_habits, COUNT(outer_habits));
    } else if (!d->alone && usual(d, 35)) {
        say_something(d, model, S_norm);
    }
    if (d->alone) {
        draw_alone(d, model);
    } else {
        if (d->has_encoder) draw_stack(d, model, false);
        if (d->has_decoder) draw_stack(d, model, true);
        if (usual(d, 80)) say_something(d, model, S_head);
        draw_probe(d, model);
        draw_dense(d, model);
    }
    by_habit(d, model, habits, COUNT(habits));
    return model;
}

/* ---------------------------------------------------------------- pairs that are said together */

int sections_of(Section *s, int blocks, Section **list, int n) {
    if (blocks & 1 << s->block) list[n++] = s;
    for (Section *inner = s->first; inner && n < 60; inner = inner->next) n = sections_of(inner, blocks, list, n);
    return n;
}

Section *place_of(Section *near, SettingId setting, bool outermost) {
    int allowed = with_ancestors(setting_rows[setting].blocks);
    Section *place = NULL;
    for (Section *s = near; s; s = s->outer)
        if (allowed & 1 << s->block && (!place || outermost)) place = s;
    return place;
}

/* What was drawn where an option of a pair now stands, and would have it refused. */
static void make_room(Draw *d, Section *place, Section *near, const char *text) {
    static const SettingId of_heads[] = {S_kv_heads, S_head_dim, S_value_dim, S_qk_norm, S_project, S_output};
    if (strncmp(text, "patches", 7) == 0 || strncmp(text, "mel", 3) == 0)
        place->lines[S_seq] = place->lines[S_embedding] = NULL;
    if (strcmp(text, "general") != 0 && strcmp(text, "additive") != 0) return;
    for (int i = 0; i < COUNT(of_heads); i++) near->lines[of_heads[i]] = NULL;
    state_number(d, near, S_heads, 1);
}

static void say_option(Draw *d, Section *near, int option) {
    Statement statement = statement_of(d->arena, option, (int)dice_below(&d->dice, statement_ways(option)));
    SettingId setting = option_rows[option].setting;
    Section *place = place_of(near, setting, dice_chance(&d->dice, 40));
    if (!place) return;
    const char *before = place->lines[setting];
    bool keep = before && usual(d, 50);
    make_room(d, place, near, statement.text);
    state(d, place, setting, keep ? merged(d->arena, statement.text, before) : statement.text);
    if (!statement.also_text) return;
    Section *also = place_of(near, statement.also, usual(d, 30));
    if (also) state(d, also, statement.also, statement.also_text);
}

/* Both in one sublayer; what was drawn of their settings goes. */
static void say_pair(Draw *d, Section *model, int one, int other) {
    Section *list[64];
    int n = sections_of(model, IN_ATTENTION | IN_FFN, list, 0);
    Section *near = list[dice_below(&d->dice, n)];
    int pair[] = {one, other};
    SettingId setting = one < option_count ? option_rows[one].setting : SETTING_COUNT;
    if (one < option_count && other < option_count && setting == option_rows[other].setting) {
        Section *place = place_of(near, setting, usual(d, 30));
        if (!place) return;
        const char *a = statement_of(d->arena, one, (int)dice_below(&d->dice, statement_ways(one))).text;
        const char *b = statement_of(d->arena, other, (int)dice_below(&d->dice, statement_ways(other))).text;
        say_option(d, near, one);
        state(d, place, setting, merged(d->arena, a, b));
        return;
    }
    for (int i = 0; i < 2; i++)
        if (pair[i] < option_count) say_option(d, near, pair[i]);
}

/* Pair number `index` of all, in an order that leaps, so that neighbours have nothing in common. */
static void pair_at(uint64_t index, int *one, int *other) {
    uint64_t words = (uint64_t)word_count(), pairs = words * (words - 1) / 2;
    uint64_t k = index % pairs * UINT64_C(1000003) % pairs; /* a prime, and greater than all of them */
    uint64_t row = 0;
    while (k >= words - 1 - row) k -= words - 1 - row++;
    *one = (int)row;
    *other = (int)(row + 1 + k);
}

/* ---------------------------------------------------------------- what is refused */

/* Numbers become N, and so do words in backticks that hold one. */
static const char *without_numbers(Arena *arena, const char *message) {
    Text text = text_new(arena);
    const char *at = message;
    while (*at) {
        size_t digits = strspn(at, "0123456789.");
        bool word = at > message && (at[-1] == '_' || (at[-1] >= 'a' && at[-1] <= 'z'));
        if (digits && !word && *at != '.') text_add(&text, "N", 1), at += digits;
        else text_add(&text, at++, 1);
    }
    return text.data;
}

void refusals_add(Refusals *r, const char *message, int64_t count) {
    const char *bare = without_numbers(r->arena, message);
    for (int i = 0; i < r->n; i++)
        if (strcmp(r->list[i].message, bare) == 0) {
            r->list[i].count += count;
            return;
        }
    r->list = arena_grow(r->arena, r->list, r->n, &r->room, sizeof *r->list);
    r->list[r->n++] = (struct Refusal){bare, count};
}

static void found_pair(void *with, int one, int other) {
    int *wanted = with;
    if (one == wanted[0] && other == wanted[1]) wanted[2] = 1;
}

bool says_pair(Arena *arena, const char *text, int one, int other) {
    Diagnostics diagnostics = diagnostics_quiet(arena);
    int wanted[] = {one, other, 0};
    Ast *ast = parse(arena, source_from_text(arena, "drawn.attn", text, strlen(text)), &diagnostics);
    words_of(ast, found_pair, wanted);
    return wanted[2];
}

/* The first draws want two pairs, the next ones one of them, in ever barer specs; the last ones none, and so do all of
 * every fourth number. */
const char *draw_spec(Arena *arena, uint64_t seed, uint64_t number, Refusals *refusals) {
    enum { TWO = 4, ONE = 160, ANY = 220 };
    Arena *own = arena_new();
    Draw d = {.arena = own, .dice = dice_new(seed, number, "spec")};
    int one[2], other[2];
    const char *drawn = NULL;
    for (int i = 0; i < 2; i++) pair_at(2 * number + (uint64_t)i + seed * 7919, &one[i], &other[i]);
    for (int attempt = 0; attempt < ANY && !drawn; attempt++) {
        int pairs = number % 4 == 0 || attempt >= ONE ? 0 : attempt < TWO ? 2 : 1, first = attempt & 1;
        int density = pairs == 1 ? 100 - 100 * (attempt - TWO) / (ONE - TWO) : 100;
        d = (Draw){.arena = own, .dice = d.dice, .density = density};
        Section *model = draw_model(&d, number);
        if (pairs) say_pair(&d, model, one[first], other[first]);
        if (pairs > 1) say_pair(&d, model, one[!first], other[!first]);
        const char *text = section_text(own, model), *why = refusal(own, text);
        if (refusals && !pairs) refusals->drawn++;
        if (refusals && why && (!pairs || strncmp(why, "BUG", 3) == 0)) refusals_add(refusals, why, 1);
        if (why || (pairs && !says_pair(own, text, one[first], other[first]))) continue;
        drawn = arena_copy(arena, text, strlen(text));
    }
    if (!drawn) fail("spec %llu of seed %llu is refused however it is drawn", (unsigned long long)number,
                     (unsigned long long)seed);
    arena_free(own);
    return drawn;
}
