/* fuzz_import.c: config.json beside a valid model.safetensors, as attnc import reads them.
 *
 * The input: the config; behind its first NUL the tensors that the file holds, a line each: `NAME [2, 3]`, as in
 * tests/families/NAME.public. Their numbers are zeros. */
#include "target.h"
#include "../../../compiler/import/import.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_BYTES = 1 << 20, MOST_NAME = 120 };

/* A tensor of the line, if it has one: its entry of the header; the bytes of data with it, or -1. */
static int64_t add_tensor(Text *json, const char *line, size_t size, int64_t at) {
    size_t name = 0;
    while (name < size && (strchr("._", line[name]) || (line[name] >= '0' && line[name] <= '9') ||
                           (line[name] >= 'A' && line[name] <= 'Z') || (line[name] >= 'a' && line[name] <= 'z')))
        name++;
    if (!name || name > MOST_NAME || size - name < 3 || memcmp(line + name, " [", 2) != 0) return -1;
    Text shape = text_new(json->arena);
    int64_t elements = 1;
    const char *c = line + name + 2;
    for (int rank = 0; rank < 4 && *c >= '0' && *c <= '9'; rank++) {
        char *end;
        long long dim = strtoll(c, &end, 10);
        if (!mul_fits(elements, dim, &elements) || elements > MOST_BYTES) return -1;
        text_printf(&shape, "%s%lld", rank ? "," : "", dim);
        c = end + strspn(end, ", ");
    }
    int64_t until = at + 4 * elements;
    if (until > MOST_BYTES) return -1;
    text_printf(json, "%s\"%.*s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%lld,%lld]}",
                json->size > 1 ? "," : "", (int)name, line, shape.data, (long long)at, (long long)until);
    return until;
}

static void write_tensors(Arena *arena, const char *lines) {
    Text json = text_new(arena);
    text_add(&json, "{", 1);
    int64_t bytes = 0;
    for (size_t size; *lines; lines += size + (lines[size] == '\n')) {
        size = strcspn(lines, "\n");
        int64_t until = add_tensor(&json, lines, size, bytes);
        if (until >= 0) bytes = until;
    }
    text_add(&json, "}", 1);
    uint8_t *file = arena_alloc(arena, 8 + json.size + (size_t)bytes);
    uint64_t header = json.size;
    memcpy(file, &header, 8);
    memcpy(file + 8, json.data, json.size);
    memory_file(arena, "model.safetensors", file, 8 + json.size + (size_t)bytes);
}

static void read_input(Arena *arena, const uint8_t *data, size_t size) {
    const char *text = arena_copy(arena, (const char *)data, size), *notes = "";
    size_t config = strlen(text);
    write_tensors(arena, config < size ? text + config + 1 : "");
    char *folder = arena_printf(arena, "%s", memory_file(arena, "config.json", text, config));
    *strrchr(folder, '/') = '\0';
    const char *spec = import_spec(arena, folder, "spec", NULL, 0, &notes);
    Diagnostics diagnostics = diagnostics_new(arena, NULL);
    Ast *ast = parse(arena, source_from_text(arena, "spec", spec, strlen(spec)), &diagnostics);
    Model *model = diagnostics.errors ? NULL : resolve(arena, ast, &diagnostics);
    if (!model) broken("import makes a spec with errors");
    build(arena, model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return run_target(read_input, data, size); }
