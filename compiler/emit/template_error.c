/* template_error.c: errors of templates, with their source locations. */
#include "template_parts.h"

void template_scan_error(const Scan *scan, const char *format, ...) {
    char reason[512];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    bug("template %s:%d: %s", scan->file, scan->line, reason);
}

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
    bug("template %s:%d: %s%s%s", x->frame->file, x->frame->line, reason, stack, used ? ")" : "");
}
