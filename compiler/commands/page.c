/* page.c: writes pages: a file of pages/ with its title, its data and what pages share filled in. */
#include "commands.h"

void page_string(Text *out, const char *text) { text_quote(out, text, "\"\\<>&"); }

void page_member(Text *out, const char *before, const char *key, const char *text) {
    text_printf(out, "%s\"%s\":", before, key);
    if (text) page_string(out, text);
    else text_printf(out, "null");
}

void page_write(Arena *arena, const char *path, const char *name, const char *title, const char *data) {
    const char *const words[] = {
        "@TITLE@", title, "@DATA@", data, "@HEAD@", embedded_file("head.html"), "@STYLE@", embedded_file("drawing.css"),
        "@ELEMENTS@", embedded_file("elements.js"), "@DRAWING@", embedded_file("drawing.js"), NULL};
    write_text(arena, path, text_filled(arena, embedded_file(name), words));
}
