/* utf8.c: characters of UTF-8, and the removal of control characters from text. */
#include "../attnc.h"

#include <string.h>

size_t utf8_bytes(const unsigned char *at, size_t left) {
    size_t size = *at < 0x80 ? 1 : *at < 0xc2 ? 0 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : *at < 0xf5 ? 4 : 0;
    if (size > left) return 0;
    for (size_t i = 1; i < size; i++)
        if ((at[i] & 0xc0) != 0x80) return 0;
    bool overlong = (*at == 0xe0 && at[1] < 0xa0) || (*at == 0xf0 && at[1] < 0x90);
    bool no_scalar = (*at == 0xed && at[1] > 0x9f) || (*at == 0xf4 && at[1] > 0x8f); /* a surrogate, or too large */
    return size > 2 && (overlong || no_scalar) ? 0 : size;
}

bool utf8_is_valid(const char *text, size_t size) {
    for (size_t bytes; size > 0; text += bytes, size -= bytes)
        if (!(bytes = utf8_bytes((const unsigned char *)text, size))) return false;
    return true;
}

size_t utf8_cut(const char *text, size_t most) {
    const unsigned char *at = (const unsigned char *)text;
    const size_t size = strnlen(text, most + 1);
    if (size <= most) return size;
    for (size_t back = 1; back < 4 && back <= most; back++) { /* bytes of a character before the cut */
        const size_t begin = most - back, left = strnlen(text + begin, 4);
        if ((at[begin] & 0xc0) == 0x80) continue;
        return utf8_bytes(at + begin, left) > back ? begin : most;
    }
    return most;
}

bool text_ends(const char *text, const char *ending) {
    const size_t size = strlen(text), tail = strlen(ending);
    return size >= tail && strcmp(text + size - tail, ending) == 0;
}

size_t utf8_control(const char *text, size_t left) {
    const unsigned char *at = (const unsigned char *)text;
    const size_t bytes = utf8_bytes(at, left);
    if (*at < ' ' || *at == 0x7f || (bytes == 0 && *at >= 0x80 && *at < 0xa0)) return 1;
    return bytes == 2 && *at == 0xc2 && at[1] < 0xa0 ? 2 : 0;
}

bool text_has_control(const char *text) {
    const size_t size = strlen(text);
    for (size_t i = 0; i < size;) {
        if (utf8_control(text + i, size - i)) return true;
        const size_t bytes = utf8_bytes((const unsigned char *)text + i, size - i);
        i += bytes ? bytes : 1;
    }
    return false;
}

static void disarm(char *text, size_t size, const char *kept) {
    for (size_t i = 0; i < size;) {
        const unsigned char *at = (const unsigned char *)text + i;
        const size_t bytes = utf8_bytes(at, size - i);
        const size_t control = *at && strchr(kept, *at) ? 0 : utf8_control(text + i, size - i);
        memset(text + i, '?', control);
        i += bytes ? bytes : 1;
    }
}

void text_disarm(char *text, size_t size) { disarm(text, size, "\n\t"); }
void text_disarm_line(char *text, size_t size) { disarm(text, size, ""); }
