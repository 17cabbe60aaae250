/* page_build.c: the modules of WebAssembly of a page: one with SIMD128, and one for engines without. */
#include "../engine/cc.h"
#include "page.h"

#include <string.h>

#define PACKAGES "a page is made by clang and wasm-ld, on Debian of the packages clang and lld"

const char *page_cc(Arena *arena, const char *named) {
    const char *cc = named && *named ? named : "clang";
    if (!cc_exists(arena, cc)) fail("`%s` is not there; " PACKAGES, cc);
    const char *const none[] = {NULL};
    if (!strchr(cc_words(arena, cc, none)[0], '/') && !cc_exists(arena, "wasm-ld"))
        fail("`wasm-ld` is not there; " PACKAGES);
    return cc;
}

/* What the C of a model and the search need of these headers. No library is there to have them. */
static const char math_h[] = "#define INFINITY __builtin_inff()\n#define isnan(x) __builtin_isnan(x)\n"
                             "#define isfinite(x) __builtin_isfinite(x)\n";
static const char string_h[] =
    "#include <stddef.h>\n"
    "void *memcpy(void *restrict to, const void *restrict from, size_t bytes);\n"
    "void *memmove(void *to, const void *from, size_t bytes);\n"
    "void *memset(void *to, int byte, size_t bytes);\n";

static const char *module_of(Compilation c, const Page *page, const char *cc, const char *target, bool simd) {
    Arena *arena = c.arena;
    Folder *folder = folder_new(arena), *headers = folder_new(arena);
    const char *name = c.model->name, *const targets[] = {target};
    const char *header = arena_printf(arena, "%s.h", name), *code = arena_printf(arena, "%s.c", name);
    const char *module = folder_file(folder, "page.wasm");
    c.options = (EmitOptions){.targets = targets, .n_targets = 1, .command = "attnc page", .loops = true};
    compile_until(&c, STAGE_C);
    write_text(arena, folder_file(folder, header), c.emitted.h);
    write_text(arena, folder_file(folder, code), c.emitted.c);
    write_text(arena, folder_file(folder, "page-module.c"), page_module(&c, page));
    write_text(arena, folder_file(headers, "math.h"), math_h);
    write_text(arena, folder_file(headers, "string.h"), string_h);
    const bool search = page_writes(page);
    static const char *const runtime[] = {"attn_generate.c", "attn_rules.c", "attn_sample.c",
                                          "attn_generate.h", "attn_rules.h", "attn_sample.h"};
    for (int i = 0; search && i < 6; i++)
        write_text(arena, folder_file(folder, runtime[i]), embedded_file(runtime[i]));
    const char *const arguments[] = {
        "--target=wasm32", simd ? "-msimd128" : "-mno-simd128", "-mbulk-memory", "-std=c11", "-O2", "-nostdlib",
        "-nostdlibinc", "-Wl,--no-entry", "-Wl,--strip-all", "-Wl,--stack-first", "-Wl,-z,stack-size=262144",
        "-isystem", folder_path(headers), "-o", module,
        folder_file(folder, "page-module.c"), folder_file(folder, code),
        search ? folder_file(folder, "attn_generate.c") : NULL, search ? folder_file(folder, "attn_rules.c") : NULL,
        search ? folder_file(folder, "attn_sample.c") : NULL, NULL};
    progress_begin("compiling %s to WebAssembly with %s", name, simd ? "SIMD128" : "scalar instructions");
    if (run_program(folder, cc_words(arena, cc, arguments)) != 0) fail("`%s` made no WebAssembly; " PACKAGES, cc);
    progress_end();
    return module;
}

PageModules page_build(const Compilation *c, const Page *page, const char *cc) {
    return (PageModules){module_of(*c, page, cc, "wasm", true), module_of(*c, page, cc, "scalar", false)};
}
