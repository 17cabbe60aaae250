/* page.c: writes pages: a file of pages/ with its title and its data filled in. */
#include "commands.h"

#include <string.h>

void page_string(Text *out, const char *text) {
    text_printf(out, "\"");
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        size_t size = utf8_bytes(at, strlen((const char *)at));
        if (size == 0) text_printf(out, "\\ufffd");
        else if (*at < ' ' || strchr("\"\\<>&", *at)) text_printf(out, "\\u%04x", (unsigned)*at);
        else text_add(out, (const char *)at, size);
        at += size ? size : 1;
    }
    text_printf(out, "\"");
}

void page_write(Arena *arena, const char *path, const char *name, const char *title, const char *data) {
    const char *page = embedded_text(name);
    if (!page) bug("%s is not in this program", name);
    OutputFile *file = output_open(arena, path);
    for (const char *at; (at = strchr(page, '@')) != NULL;) {
        bool is_title = strncmp(at, "@TITLE@", 7) == 0, is_data = strncmp(at, "@DATA@", 6) == 0;
        output_write(file, page, (size_t)(at - page) + (is_title || is_data ? 0 : 1));
        if (is_title) output_write(file, title, strlen(title));
        if (is_data) output_write(file, data, strlen(data));
        page = at + (is_title ? 7 : is_data ? 6 : 1);
    }
    output_write(file, page, strlen(page));
    output_commit(file);
}
