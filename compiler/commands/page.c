/* page.c: writes pages: a file of pages/ with its title, its data and what pages share filled in. */
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

void page_member(Text *out, const char *before, const char *key, const char *text) {
    text_printf(out, "%s\"%s\":", before, key);
    if (text) page_string(out, text);
    else text_printf(out, "null");
}

void page_write(Arena *arena, const char *path, const char *name, const char *title, const char *data) {
    const struct {
        const char *word, *text;
    } parts[] = {{"@TITLE@", title}, {"@DATA@", data}, {"@HEAD@", embedded_file("head.html")},
                 {"@STYLE@", embedded_file("drawing.css")}, {"@ELEMENTS@", embedded_file("elements.js")},
                 {"@DRAWING@", embedded_file("drawing.js")}};
    enum { PARTS = sizeof parts / sizeof *parts };
    const char *page = embedded_file(name);
    OutputFile *file = output_open(arena, path);
    for (const char *at; (at = strchr(page, '@')) != NULL;) {
        int p = 0;
        while (p < PARTS && strncmp(at, parts[p].word, strlen(parts[p].word)) != 0) p++;
        output_write(file, page, (size_t)(at - page) + (p == PARTS));
        if (p < PARTS) output_write(file, parts[p].text, strlen(parts[p].text));
        page = at + (p < PARTS ? strlen(parts[p].word) : 1);
    }
    output_write(file, page, strlen(page));
    output_commit(file);
}
