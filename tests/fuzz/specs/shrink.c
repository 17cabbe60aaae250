/* shrink.c: a spec that fails, made smaller for as long as it fails in the same way. */
#include "fuzz.h"

#include <string.h>

/* The edits of a spec are numbered in the order of a walk over its tree, kind by kind. */
typedef enum EditKind { EDIT_BLOCK, EDIT_LAYERS, EDIT_SETTING, EDIT_WORD, EDIT_NUMBER, EDIT_KINDS } EditKind;

typedef struct Edit {
    Arena *arena;
    EditKind kind;
    int left; /* sites before the one that is edited */
    bool done;
} Edit;

static bool here(Edit *e) {
    if (e->done || e->left-- > 0) return false;
    return e->done = true;
}

static bool is_name(const Value *v) { return v->kind == VALUE_EXPR && v->expr->kind == EXPR_NAME; }

static void edit_words(Edit *e, Item *item) {
    if (item->has_block || !item->values || !item->values->next) return;
    for (Value **at = &item->values; *at; at = &(*at)->next) {
        if (!here(e)) continue;
        Value *behind = (*at)->next;
        while (is_name(*at) && behind && !is_name(behind)) behind = behind->next; /* its numbers */
        *at = behind;
        return;
    }
}

static void edit_numbers(Edit *e, Item *item) {
    for (Value *v = item->values; v; v = v->next) {
        if (v->kind != VALUE_EXPR || is_name(v)) continue;
        int64_t n = v->expr->kind == EXPR_INTEGER ? v->expr->integer : 1000, smaller[] = {1, 2, n / 2, n - 1};
        for (int i = 0; i < COUNT(smaller); i++) {
            if (smaller[i] < 1 || smaller[i] >= n || !here(e)) continue;
            Expr *expr = arena_alloc(e->arena, sizeof *expr);
            *expr = (Expr){.kind = EXPR_INTEGER, .location = v->expr->location, .integer = smaller[i],
                           .text = arena_printf(e->arena, "%lld", (long long)smaller[i])};
            v->expr = expr;
            return;
        }
    }
}

static void edit_items(Edit *e, Item **items) {
    for (Item **at = items; *at && !e->done; at = &(*at)->next) {
        Item *item = *at;
        bool setting = !item->has_block && !item->is_let;
        if (e->kind == EDIT_LAYERS && strcmp(item->name, "layers") == 0 && item->values->next && here(e))
            item->values->next = NULL;
        if (e->kind == EDIT_WORD && setting) edit_words(e, item);
        if (e->kind == EDIT_NUMBER && strcmp(item->name, "model") != 0) edit_numbers(e, item);
        if (item->has_block) edit_items(e, &item->items);
        bool removable = e->kind == EDIT_BLOCK ? item->has_block && strcmp(item->name, "model") != 0
                                               : e->kind == EDIT_SETTING && setting;
        if (!e->done && removable && here(e)) {
            *at = item->next;
            return;
        }
    }
}

/* The text after an edit, or NULL: there are not so many of that kind. */
static const char *edited(Arena *arena, const char *text, EditKind kind, int index) {
    Diagnostics diagnostics = diagnostics_quiet(arena);
    Ast *ast = parse(arena, source_from_text(arena, "shrunk.attn", text, strlen(text)), &diagnostics);
    Edit e = {.arena = arena, .kind = kind, .left = index};
    edit_items(&e, &ast->items);
    return e.done ? ast_format(arena, ast) : NULL;
}

static bool fails_alike(const Workshop *shop, const Trial *like, Trial *candidate) {
    Trial *one[] = {candidate};
    candidate->outcome = OUTCOME_FINE;
    candidate->message[0] = 0;
    try_all(shop, one, 1);
    return candidate->outcome == like->outcome;
}

/* True where the candidate takes the trial's place. */
static bool take(const Workshop *shop, Trial *trial, Trial candidate, int *tries) {
    if (--*tries < 0 || !fails_alike(shop, trial, &candidate)) return false;
    *trial = candidate;
    return true;
}

/* One target, one case, weights of unit scale, where it fails with them too. */
static void narrow(Arena *arena, const Workshop *shop, Trial *trial, int *tries) {
    Trial candidate = *trial;
    for (int t = 0; t < trial->n_targets && trial->n_targets > 1; t++) {
        candidate.targets[0] = trial->targets[t];
        candidate.n_targets = 1;
        if (take(shop, trial, candidate, tries)) break;
    }
    candidate = *trial;
    candidate.stress = STRESS_UNIT;
    if (trial->stress != STRESS_UNIT) take(shop, trial, candidate, tries);
    candidate = *trial;
    char target[32], name[64];
    if (trial->outcome != OUTCOME_WRONG || sscanf(trial->message, "%31s %63s", target, name) != 2) return;
    candidate.only = arena_copy(arena, name, strlen(name));
    if (!trial->only) take(shop, trial, candidate, tries);
}

void shrink(Arena *arena, const Workshop *shop, Trial *trial, int tries) {
    narrow(arena, shop, trial, &tries);
    trial->only = NULL; /* lengths change with the spec */
    for (bool smaller = true; smaller && tries > 0;) {
        smaller = false;
        for (int kind = 0; kind < EDIT_KINDS; kind++)
            for (int i = 0; tries > 0;) {
                Trial candidate = *trial;
                candidate.text = edited(arena, trial->text, (EditKind)kind, i);
                if (!candidate.text) break;
                bool taken = !refusal(arena, candidate.text) && take(shop, trial, candidate, &tries);
                if (!taken) i++;
                smaller |= taken;
            }
    }
    tries = 8;
    narrow(arena, shop, trial, &tries);
}
