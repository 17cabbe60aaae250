/* template_error.c: errors in the expansion of a template, with the uses of macros that led there. */
#include "template_parts.h"

void expand_error(const Expansion *x, const char *format, ...) {
    char reason[400], stack[500] = "";
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    size_t used = 0;
    for (const Frame *f = x->frame; f->outer && used < sizeof stack; f = f->outer) {
        const char *before = used ? ", " : " (";
        int size = f->kind ? snprintf(stack + used, sizeof stack - used, "%sin %s %s used at %s:%d", before, f->kind,
                                      f->name, f->outer->file, f->outer->line)
                           : snprintf(stack + used, sizeof stack - used, "%sincluded at %s:%d", before, f->outer->file,
                                      f->outer->line);
        used += size > 0 ? (size_t)size : 0;
    }
    bug_at("template", x->frame->file, x->frame->line, "%s%s%s", reason, stack, used ? ")" : "");
}
