/* pairs.c: which pairs of options were drawn in one sublayer, and which nobody can have. */
#include "fuzz.h"

#include <string.h>

typedef struct Seen {
    bool pair[MOST_WORDS][MOST_WORDS];
} Seen;

static void see_pair(void *with, int one, int other) {
    Seen *seen = with;
    seen->pair[one][other] = seen->pair[one][one] = seen->pair[other][other] = true;
}

void pairs_add(Pairs *pairs, const char *text) {
    Arena *arena = arena_new();
    Diagnostics diagnostics = diagnostics_quiet(arena);
    Seen *seen = arena_alloc(arena, sizeof *seen);
    Ast *ast = parse(arena, source_from_text(arena, "drawn.attn", text, strlen(text)), &diagnostics);
    words_of(ast, see_pair, seen);
    for (int i = 0; i < word_count(); i++)
        for (int j = i; j < word_count(); j++) pairs->counts[i][j] += seen->pair[i][j];
    pairs->specs++;
    arena_free(arena);
}

/* ---------------------------------------------------------------- whether a pair can be had */

static Section *add_attention(Draw *d, Section *outer, const char *head) {
    Section *s = add_section(d, outer, BLOCK_ATTENTION, head);
    state_number(d, s, S_heads, 1);
    return s;
}

static void add_stack(Draw *d, Section *model, bool decoder, bool cross, const char *layers) {
    Section *stack = add_section(d, model, decoder ? BLOCK_DECODER : BLOCK_ENCODER, decoder ? "decoder" : "encoder");
    state_number(d, stack, S_vocab, 9);
    state(d, stack, S_seq, "<= 6");
    Section *s = add_section(d, stack, BLOCK_LAYERS, layers ? layers : "layers 2");
    if (!layers) s = add_section(d, s, BLOCK_LAYER, "layer");
    add_attention(d, s, "attention self");
    if (cross) add_attention(d, s, "attention cross");
    state_number(d, add_section(d, s, BLOCK_FFN, "ffn"), S_d_ff, 8);
}

enum { BASES = 9 };

/* Plain models of every form. */
static Section *base_model(Draw *d, int which) {
    static const char *const kinds[BASES] = {"e", "d", "ed", "s", "c", "e shared", "d pattern", "ed shared",
                                             "ed pattern"};
    const char *kind = kinds[which];
    const char *layers = strstr(kind, "shared") ? "layers 2 shared" : strstr(kind, "pattern") ? NULL : "layers 2";
    Section *model = add_section(d, NULL, BLOCK_MODEL, "model base");
    state_number(d, model, S_d_model, 8);
    if (kind[0] == 's' || kind[0] == 'c') {
        Section *s = add_attention(d, model, kind[0] == 's' ? "attention self" : "attention cross");
        state(d, s, S_queries, "<= 6");
        if (kind[0] == 'c') state(d, s, S_keys, "<= 6");
        return model;
    }
    bool both = kind[1] == 'd';
    if (kind[0] == 'e') add_stack(d, model, false, false, layers);
    if (kind[0] == 'd' || both) add_stack(d, model, true, both, layers);
    return model;
}

typedef struct Search {
    Arena *arena, *own;
    int one, other;
    Refusals reasons;
    const char *found; /* a spec that has both */
} Search;

static void put_option(Draw *d, Section *near, int option, int way, bool outermost) {
    if (option >= option_count) return;
    Statement s = statement_of(d->arena, option, way);
    Section *place = place_of(near, option_rows[option].setting, outermost);
    if (!place) return;
    state(d, place, option_rows[option].setting, s.text);
    Section *also = s.also_text ? place_of(near, s.also, outermost) : NULL;
    if (also) state(d, also, s.also, s.also_text);
}

/* One way to have both; `near` is the sublayer's number in the base. */
static void try_pair(Search *s, int base, int near, const int *ways, int outer) {
    Draw d = {.arena = s->own};
    Section *list[64], *model = base_model(&d, base);
    if (near >= sections_of(model, IN_ATTENTION | IN_FFN, list, 0)) return;
    put_option(&d, list[near], s->one, ways[0], outer & 1);
    put_option(&d, list[near], s->other, ways[1], outer >> 1);
    bool same = s->other < option_count && option_rows[s->one].setting == option_rows[s->other].setting;
    if (same && outer != 1 && outer != 2) {
        SettingId setting = option_rows[s->one].setting;
        Section *place = place_of(list[near], setting, outer);
        state(&d, place, setting,
              merged(s->own, statement_of(s->own, s->one, ways[0]).text, statement_of(s->own, s->other, ways[1]).text));
    }
    const char *text = section_text(s->own, model);
    if (!says_pair(s->own, text, s->one, s->other)) return;
    const char *why = refusal(s->own, text);
    if (why) refusals_add(&s->reasons, why, 1);
    else s->found = arena_copy(s->arena, text, strlen(text));
}

const char *pair_spec(Arena *arena, int one, int other, const char **why) {
    enum { MOST_NEAR = 5 };
    Search s = {.arena = arena, .own = arena_new(), .one = one, .other = other};
    s.reasons.arena = s.own;
    int ways[] = {one < option_count ? statement_ways(one) : 1, other < option_count ? statement_ways(other) : 1};
    for (int base = 0; base < BASES && !s.found; base++)
        for (int near = 0; near < MOST_NEAR && !s.found; near++)
            for (int way = 0; way < ways[0] * ways[1] && !s.found; way++)
                for (int outer = 0; outer < 4 && !s.found; outer++)
                    try_pair(&s, base, near, (int[]){way % ways[0], way / ways[0]}, outer);
    int64_t most = 0;
    *why = "they never speak of one sublayer";
    for (int i = 0; i < s.reasons.n && !s.found; i++)
        if (s.reasons.list[i].count > most) {
            most = s.reasons.list[i].count;
            *why = arena_copy(arena, s.reasons.list[i].message, strlen(s.reasons.list[i].message));
        }
    arena_free(s.own);
    return s.found;
}

const char **pairs_probe(Arena *arena, Pairs *pairs, int *n) {
    const char **specs = NULL;
    int room = 0;
    *n = 0;
    for (int i = 0; i < word_count(); i++)
        for (int j = i + 1; j < word_count(); j++) {
            if (pairs->counts[i][j]) continue;
            const char *why, *spec = pair_spec(arena, i, j, &why);
            if (!spec) {
                pairs->excluded[i][j] = why;
                continue;
            }
            specs = arena_grow(arena, specs, *n, &room, sizeof *specs);
            specs[(*n)++] = spec;
        }
    return specs;
}

/* ---------------------------------------------------------------- the table */

void pairs_print(FILE *to, FILE *summary, const Pairs *pairs, bool probed) {
    enum { ENOUGH = 1000 }; /* specs, for each word to be among them */
    Arena *arena = arena_new();
    int64_t drawn = 0, excluded = 0, left = 0, unseen = 0;
    if (to) fprintf(to, "# specs with each option or form\n");
    for (int i = 0; i < word_count(); i++) {
        if (to) fprintf(to, "%7lld  %s\n", (long long)pairs->counts[i][i], word_name(arena, i));
        unseen += !pairs->counts[i][i];
        if (!pairs->counts[i][i] && pairs->specs >= ENOUGH) fprintf(summary, "never drawn: %s\n", word_name(arena, i));
    }
    if (to) fprintf(to, "# specs with both in one sublayer, or why there are none\n");
    for (int i = 0; i < word_count(); i++)
        for (int j = i + 1; j < word_count(); j++) {
            const char *names = arena_printf(arena, "%s, %s", word_name(arena, i), word_name(arena, j)),
                       *why = pairs->excluded[i][j];
            if (pairs->counts[i][j]) drawn++;
            else if (why) excluded++;
            else left++;
            if (to && pairs->counts[i][j]) fprintf(to, "%7lld  %s\n", (long long)pairs->counts[i][j], names);
            else if (to) fprintf(to, "%7s  %s%s%s\n", why ? "-" : "LEFT", names, why ? ": " : "", why ? why : "");
        }
    fprintf(summary, "%lld specs; of %d options and forms %lld were never drawn; pairs: %lld drawn, ",
            (long long)pairs->specs, word_count(), (long long)unseen, (long long)drawn);
    if (probed) fprintf(summary, "%lld that no spec can have, %lld not drawn\n", (long long)excluded, (long long)left);
    else fprintf(summary, "%lld others\n", (long long)left);
    arena_free(arena);
}
