/* fill.c: fills the holes of a family's spec and tensor list. */
#include "import.h"

#include <stdlib.h>
#include <string.h>

static void fill_hole(const Import *import, const char *name, size_t size, Text *out) {
    if (*name == '#') {
        const FileTensor *tensor = tensor_of(import, arena_copy(import->arena, name + 1, size - 1));
        if (!tensor || !tensor->shape.rank) fail("%s: no tensor `%.*s`, which %s has", import->weights_path,
            (int)size - 1, name + 1, import->class_name);
        text_printf(out, "%lld", (long long)tensor->shape.dims[0]);
        return;
    }
    const char *text = variable_get(import, name, size);
    if (!text) bug("the family of `%s` fills `%.*s`, which is unset", import->type, (int)size, name);
    text_printf(out, "%s", text);
}

/* The bracket that closes the bracket at `at`; brackets may nest. */
static const char *bracket_end(const char *at, const char *end) {
    for (int depth = 0; at < end; at++) {
        depth += (*at == '[') - (*at == ']');
        if (depth == 0) return at;
    }
    return NULL;
}

static void fill_line(const Import *import, const char *line, size_t size, Text *out) {
    for (const char *at = line, *end = line + size; at < end; at++) {
        const char *close;
        if (at[0] == '$' && at + 1 < end && at[1] == '{' && (close = memchr(at, '}', (size_t)(end - at)))) {
            fill_hole(import, at + 2, (size_t)(close - at) - 2, out);
            at = close;
        } else if (at[0] == '[' && (close = bracket_end(at, end))) {
            const char *mark = memchr(at, '?', (size_t)(close - at));
            if (!mark) bug("the family of `%s` has brackets without `?`", import->type);
            if (condition_holds(import, at + 1, (size_t)(mark - at) - 1)) fill_line(import, mark + 1,
                (size_t)(close - mark) - 1, out);
            at = close;
        } else {
            text_add(out, at, 1);
        }
    }
}

static bool begins(const char *line, const char *word) { return strncmp(line, word, strlen(word)) == 0; }

static const char *line_end(const char *line) { return line + strcspn(line, "\n"); }

/* The `$end` that closes the block whose first line follows. */
static const char *block_end(const Import *import, const char *at) {
    for (int depth = 0; *at; at = line_end(at) + 1) {
        if (begins(at, "$end") && depth-- == 0) return at;
        if (begins(at, "$if") || begins(at, "$layers")) depth++;
    }
    bug("the family of `%s` has no $end", import->type);
}

static void fill_layers(Import *import, const char *head, const char *body, const char *end, Text *out);

static void fill_lines(Import *import, const char *at, const char *end, Text *out) {
    while (at < end) {
        const char *stop = line_end(at);
        if (begins(at, "$if ") || begins(at, "$layers ")) {
            const char *close = block_end(import, stop + 1);
            if (begins(at, "$layers ")) fill_layers(import, at + 8, stop + 1, close, out);
            else if (condition_holds(import, at + 4, (size_t)(stop - at) - 4)) fill_lines(import, stop + 1, close, out);
            stop = line_end(close);
        } else {
            size_t before = out->size;
            fill_line(import, at, (size_t)(stop - at), out);
            if (out->size > before || stop == at) text_printf(out, "\n");
        }
        at = stop + 1;
    }
}

/* ---------------------------------------- layers */

enum { MOST_LAYERS = 4096, LONGEST_PATTERN = 64, BLOCK_COST = 1, BODY_COST = 4 };

typedef struct Run {
    int64_t cost, period, length; /* the cheapest way to write the layers from here on */
} Run;

/* The number of layers, beginning with `from`, that repeat with `period`. */
static int64_t repeats(const int *bodies, int64_t n, int64_t from, int64_t period) {
    int64_t length = period < n - from ? period : n - from;
    while (from + length < n && bodies[from + length] == bodies[from + length - period]) length++;
    return length;
}

static Run *cheapest_runs(Arena *arena, const int *bodies, int64_t n) {
    Run *runs = arena_array(arena, (size_t)n + 1, sizeof *runs);
    for (int64_t from = n - 1; from >= 0; from--) {
        runs[from].cost = INT64_MAX;
        for (int64_t period = 1; period <= n - from && period <= LONGEST_PATTERN; period++) {
            int64_t length = repeats(bodies, n, from, period);
            int64_t cost = BLOCK_COST + BODY_COST * period + runs[from + length].cost;
            if (cost < runs[from].cost) runs[from] = (Run){cost, period, length};
        }
    }
    return runs;
}

static void fill_layers(Import *import, const char *head, const char *body, const char *end, Text *out) {
    Arena *arena = import->arena;
    size_t size = strcspn(head, " \n");
    const char *count = variable_get(import, head, size), *words = head + size, *words_end = line_end(head);
    int64_t n = count ? strtoll(count, NULL, 10) : 0;
    if (n < 1 || n > MOST_LAYERS) fail("%s: %lld layers; 1 to %d are understood", import->config_path, (long long)n,
        MOST_LAYERS);
    int *bodies = arena_array(arena, (size_t)n, sizeof *bodies);
    const char **texts = arena_array(arena, (size_t)n, sizeof *texts);
    int distinct = 0;
    for (int64_t layer = 0; layer < n; layer++) {
        layer_variables_set(import, layer);
        Text text = text_new(arena);
        fill_lines(import, body, end, &text);
        int found = 0;
        while (found < distinct && strcmp(texts[found], text.data) != 0) found++;
        if (found == distinct) texts[distinct++] = text.data;
        bodies[layer] = found;
    }
    const Run *runs = cheapest_runs(arena, bodies, n);
    for (int64_t at = 0; at < n; at += runs[at].length) {
        int64_t length = runs[at].length, period = runs[at].period;
        text_printf(out, "layers %lld%.*s {\n", (long long)length, (int)(words_end - words), words);
        for (int64_t i = 0; i < period; i++)
            text_printf(out, period > 1 ? "layer {\n%s}\n" : "%s", texts[bodies[at + i]]);
        text_printf(out, "}\n");
    }
}

void fill_spec(Import *import, Text *out) {
    const char *spec = import->family->spec;
    fill_lines(import, spec, spec + strlen(spec), out);
}

/* ---------------------------------------- tensors */

/* Whether a pattern of `ignore` or `buffer` matches a tensor of the file under one of the prefixes. */
static bool speaks_of(const Import *import, const char *pattern, const char *tensor) {
    const char *prefixes = import->family->prefixes;
    size_t size;
    if (source_pattern_covers(pattern, tensor)) return true;
    for (const char *prefix; (prefix = next_word(&prefixes, &size));)
        if (strncmp(tensor, prefix, size) == 0 && source_pattern_covers(pattern, tensor + size)) return true;
    return false;
}

static bool occurs(const Import *import, const char *pattern, bool is_prefix) {
    for (size_t t = 0; t < import->file->count; t++) {
        const char *name = import->file->tensors[t].name;
        if (is_prefix ? strncmp(name, pattern, strlen(pattern)) == 0 : speaks_of(import, pattern, name)) return true;
    }
    return false;
}

bool is_buffer(const Import *import, const char *tensor) {
    const char *patterns = import->buffers.data;
    size_t size;
    for (const char *pattern; (pattern = next_word(&patterns, &size));)
        if (speaks_of(import, arena_copy(import->arena, pattern, size), tensor)) return true;
    return false;
}

static void quoted_list(const Import *import, const char *word, const char *words, bool is_prefix, Text *out) {
    bool any = false;
    size_t size;
    for (const char *w; (w = next_word(&words, &size));) {
        const char *text = arena_copy(import->arena, w, size);
        if (!occurs(import, text, is_prefix)) continue;
        text_printf(out, "%s \"%s\"", any ? "" : word, text);
        any = true;
    }
    if (any) text_printf(out, "\n");
}

/* Adds the line that maps a tensor to its name in the file. Checkpoints from before 2019 call the weight of a LayerNorm
 * `gamma` and its bias `beta`. */
static void add_tensor_line(const Import *import, const char *canonical, const char *source, const char *options,
                            Text *out) {
    const size_t size = strlen(source), stem = strlen(canonical) - 1;
    if (text_ends(source, "LayerNorm.*")) {
        const char *gamma = arena_printf(import->arena, "%.*sgamma", (int)size - 1, source);
        if (occurs(import, gamma, false)) {
            text_printf(out, "\"%.*sweight\" from \"%s\"%s\n\"%.*sbias\" from \"%.*sbeta\"%s\n", (int)stem, canonical,
                gamma, options, (int)stem, canonical, (int)size - 1, source, options);
            return;
        }
    }
    text_printf(out, "\"%s\" from \"%s\"%s\n", canonical, source, options);
}

void fill_tensors(Import *import, const WeightTable *table, Text *out) {
    Text lines = text_new(import->arena);
    const char *tensors = import->family->tensors, *canonical_stem = "", *source_stem = "";
    fill_lines(import, tensors, tensors + strlen(tensors), &lines);
    quoted_list(import, "prefix", import->family->prefixes, true, out);
    for (char *line = lines.data; *line; line = line + strlen(line) + 1) {
        line[strcspn(line, "\n")] = '\0';
        const char *at = line;
        size_t first, second;
        const char *canonical = next_word(&at, &first);
        if (!canonical) continue;
        if (first == 6 && (begins(canonical, "ignore") || begins(canonical, "buffer"))) {
            quoted_list(import, "ignore", at, false, out);
            if (begins(canonical, "buffer")) text_printf(&import->buffers, "%s ", at);
            continue;
        }
        const char *source = next_word(&at, &second);
        if (!source) bug("the family of `%s` has the line `%s`", import->type, line);
        if (*canonical == '@') {
            canonical_stem = arena_copy(import->arena, canonical + 1, first - 1);
            source_stem = arena_copy(import->arena, source, second);
            continue;
        }
        const char *stem = *canonical == '.' ? canonical_stem : "";
        canonical = arena_printf(import->arena, "%s%.*s", stem, (int)first, canonical);
        /* the model of this config has no such tensor */
        if (table->count && !source_name_speaks(import->arena, canonical, table)) continue;
        add_tensor_line(import, canonical, arena_printf(import->arena, "%s%.*s", *source == '.' ? source_stem : "",
            (int)second, source), at, out);
    }
}
