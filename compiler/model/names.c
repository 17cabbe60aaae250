/* names.c: checks the name of a model, which begins every symbol of the emitted C. */
#include "settings.h"

#include <string.h>
#include <strings.h>

/* Keywords of C11, C23, C++17 and C++20, and macros that common compilers define. */
static const char keywords[] =
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class "
    "compl concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype "
    "default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline "
    "int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public "
    "register reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast "
    "struct switch template this thread_local throw true try typedef typeid typename typeof typeof_unqual union "
    "unsigned using virtual void volatile wchar_t while xor xor_eq main linux unix i386";

static bool is_keyword(const char *name) {
    size_t size = strlen(name);
    for (const char *at = keywords; (at = strstr(at, name)) != NULL; at += size)
        if ((at == keywords || at[-1] == ' ') && (at[size] == ' ' || at[size] == '\0')) return true;
    return false;
}

const char *model_name_fault(Arena *arena, const char *name) {
    enum { MOST = 63 }; /* significant characters of an identifier in C */
    if (name[0] == '_')
        return "a model's name begins with a letter: names with a leading underscore are the C library's";
    if (strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != strlen(name) ||
        !*name || (*name >= '0' && *name <= '9'))
        return arena_printf(arena, "`%.*s` is no name of a model: a letter, then letters, digits and `_`",
                            CUT(63, name));
    if (strlen(name) > MOST)
        return arena_printf(arena, "`%.*s…` is too long to name a model: %d characters are the most",
                            CUT(63, name), MOST);
    return is_keyword(name) ? arena_printf(arena, "`%s` is a word of C or C++ and cannot name a model", name) : NULL;
}

const char *header_hidden_by(const char *name) {
    static const char *const headers[] = {
        "assert", "complex", "ctype", "errno", "fenv", "float", "inttypes", "iso646", "limits", "locale", "math",
        "setjmp", "signal", "stdalign", "stdarg", "stdatomic", "stdbool", "stddef", "stdint", "stdio", "stdlib",
        "stdnoreturn", "string", "tgmath", "threads", "time", "uchar", "wchar", "wctype"};
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        if (strcasecmp(headers[i], name) == 0) return headers[i];
    return NULL;
}
