/* shared.c: functions of a target that the targets based on its table call too, so that a file with several targets has
 * each text once. Two texts are the same function if they differ only in comments, in the target's prefix and in its
 * attributes, and if neither of them calls a kernel that only its own target has, or a helper in place of another
 * target's. */
#include "emit.h"

#include <string.h>

typedef struct Function {
    struct Function *next;
    const Isa *isa;
    const char *name; /* under which the target calls it */
    const char *text; /* with marks for the prefix and the attributes */
    uint64_t hash;
    bool own; /* printed for this target, in place of one that was found */
    struct Function *next_kernel;
} Function;

struct SharedCode {
    Arena *arena;
    const char *model;
    const Isa *const *isas; /* of the file */
    Function *functions;    /* the last one first */
    Function *kernels;      /* those of the last target that are its own, which its functions may call */
};

enum { PREFIX_MARK = 1, ATTRIBUTE_MARK, HALF_MARK }; /* no C holds these bytes */

SharedCode *shared_code_new(Arena *arena, const char *model, const Isa *const *isas) {
    SharedCode *shared = arena_alloc(arena, sizeof *shared);
    *shared = (SharedCode){.arena = arena, .model = model, .isas = isas};
    return shared;
}

static bool begins(const char *text, const char *with, size_t size) { return size && strncmp(text, with, size) == 0; }

/* The same where no longer name begins there. */
static bool begins_word(const char *text, const char *with, size_t size) {
    return begins(text, with, size) && !(c_in_name(with[size - 1]) && c_in_name(text[size]));
}

/* Whether the name at `text` is that function's, or that of a part of it: its name, a line and more. */
static bool is_of(const char *text, const char *function, size_t size) {
    return begins(text, function, size) && (!c_in_name(text[size]) || text[size] == '_');
}

/* Whether the name behind a target's prefix is that of a helper in place of another target's. */
static bool is_replacement(const Isa *isa, const char *at) {
    for (int i = 0; i < isa->n_helpers; i++) {
        const IsaHelper *helper = &isa->helpers[i];
        if (helper->replaces && helper->name && begins_word(at, helper->name, strlen(helper->name))) return true;
    }
    return false;
}

/* Whether the name belongs to another function that only this target has. The longest name that fits is its. */
static bool is_own(const SharedCode *shared, const Isa *isa, const char *name, const char *at, size_t prefix) {
    if (is_replacement(isa, at + prefix)) return true;
    const size_t itself = is_of(at, name, strlen(name)) ? strlen(name) : 0;
    for (const Function *f = shared->kernels; f && f->isa == isa; f = f->next_kernel)
        if (strlen(f->name) > itself && is_of(at, f->name, strlen(f->name))) return true;
    return false;
}

static bool is_space(char c) { return c == ' ' || c == '\n'; }

/* The text with marks in place of the target's prefix and attributes, without comments, and without spaces but those
 * between two words, since lines break elsewhere where the prefix is longer. */
static const char *with_marks(const SharedCode *shared, const Isa *isa, const char *name, const char *text,
                              size_t size) {
    Arena *arena = shared->arena;
    const char *prefix = arena_printf(arena, "%s_%s_", shared->model, isa->name);
    const char *attributes[] = {isa_with_prefix(arena, isa->attribute, shared->model),
                                isa->half ? isa_with_prefix(arena, isa->half->attribute, shared->model) : ""};
    const size_t prefix_size = strlen(prefix);
    const size_t sizes[] = {strlen(attributes[0]), strlen(attributes[1])};
    Text out = text_new(arena);
    text_reserve(&out, size + 1);
    for (const char *at = text, *end = text + size; at < end;) {
        size_t plain = 1;
        char mark = 0;
        if (is_space(*at)) {
            while (at + plain < end && is_space(at[plain])) plain++;
            if (out.size && c_in_name(out.data[out.size - 1]) && c_in_name(at[plain])) text_add(&out, " ", 1);
            at += plain;
            continue;
        }
        if (begins(at, "/*", 2)) {
            const char *behind = strstr(at, "*/");
            if (!behind) bug("a comment of %s has no end", name);
            at = behind + 2;
            continue;
        }
        if (begins_word(at, attributes[0], sizes[0])) {
            mark = ATTRIBUTE_MARK;
            plain = sizes[0];
        } else if (begins_word(at, attributes[1], sizes[1])) {
            mark = HALF_MARK;
            plain = sizes[1];
        } else if (begins(at, prefix, prefix_size) && !is_own(shared, isa, name, at, prefix_size)) {
            mark = PREFIX_MARK;
            plain = prefix_size;
        } else if (c_starts_name(*at)) {
            while (at + plain < end && c_in_name(at[plain])) plain++;
        }
        text_add(&out, mark ? &mark : at, mark ? 1 : plain);
        at += plain;
    }
    return out.data;
}

/* Whether `isa` may call functions of `base`. The helpers of longer vectors are others under the same names. */
static bool may_call(const Isa *isa, const Isa *base) {
    return isa->width == base->width && isa_is_based_on(isa, base);
}

/* Whether the file has a target whose functions this one may call, or one that may call those of this one. */
static bool is_related(const SharedCode *shared, const Isa *isa) {
    for (int i = 0; shared->isas[i]; i++)
        if (may_call(isa, shared->isas[i]) || may_call(shared->isas[i], isa)) return true;
    return false;
}

const char *shared_function(SharedCode *shared, const Isa *isa, bool kernel, const char *name, const char *text,
                            size_t size) {
    if (!is_related(shared, isa)) return name;
    Function *added = arena_alloc(shared->arena, sizeof *added);
    *added = (Function){.next = shared->functions, .isa = isa, .name = name, .own = true};
    added->text = with_marks(shared, isa, name, text, size);
    added->hash = hash_bytes(0, added->text, strlen(added->text));
    for (const Function *f = shared->functions; f && added->own; f = f->next)
        if (f->hash == added->hash && may_call(isa, f->isa) && strcmp(f->text, added->text) == 0) {
            added->name = f->name;
            added->own = false;
        }
    shared->functions = added;
    if (added->own && kernel) {
        added->next_kernel = shared->kernels;
        shared->kernels = added;
    }
    return added->name;
}
