/* files.c: reading files, and small functions that every stage uses. */
#define _POSIX_C_SOURCE 200809L
#include "../attnc.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Without O_NONBLOCK, the call would wait until another program opens a pipe of this name. */
int file_open(const char *path, size_t *size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) fail_system(errno, "%s: cannot be opened", path);
    struct stat info;
    int bad = fstat(fd, &info);
    if (bad || !S_ISREG(info.st_mode) || info.st_size < 0) {
        int error = errno;
        close(fd);
        if (bad) fail_system(error, "%s: cannot be read", path);
        fail("%s: cannot be read: %s", path, S_ISDIR(info.st_mode) ? "it is a folder" : "it is not a regular file");
    }
    *size = (size_t)info.st_size;
    return fd;
}

char *file_read(Arena *arena, const char *path, size_t limit, size_t *size) {
    struct stat info;
    if (stat(path, &info)) fail_system(errno, "%s: cannot be opened", path);
    size_t expected, room = info.st_size > 0 && (uint64_t)info.st_size <= limit ? (size_t)info.st_size : 0;
    char *data = arena_alloc(arena, room + 1); /* first, since its failure would leave the file open */
    int fd = file_open(path, &expected);
    if (expected > limit) {
        close(fd);
        fail("%s: is too large: %zu bytes, at most %zu are read", path, expected, limit);
    }
    if (expected > room) expected = room; /* ignores bytes by which the file has grown */
    size_t have = 0;
    while (have < expected) {
        ssize_t got = read(fd, data + have, expected - have);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            int error = errno;
            close(fd);
            fail_system(error, "%s: cannot be read", path);
        }
        if (got == 0) break;
        have += (size_t)got;
    }
    close(fd);
    *size = have;
    return data;
}

bool file_begins(const char *path, const void *bytes, size_t size) {
    enum { MOST = 64 };
    char begin[MOST];
    struct stat info;
    if (size > MOST) bug("%zu bytes are more than are read of a beginning", size);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return false;
    const bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    const ssize_t got = regular ? read(fd, begin, size) : 0;
    close(fd);
    return got == (ssize_t)size && memcmp(begin, bytes, size) == 0;
}

char *stream_read(Arena *arena, int fd, const char *name, size_t limit, size_t *size) {
    Text text = text_new(arena);
    for (;;) {
        char part[4096];
        ssize_t got = read(fd, part, sizeof part);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail_system(errno, "%s: cannot be read", name);
        if (got == 0) break;
        text_add(&text, part, (size_t)got);
        if (text.size > limit) fail("%s: is too large: at most %zu bytes are read", name, limit);
    }
    *size = text.size;
    return text.data;
}

bool file_exists(const char *path) {
    if (access(path, F_OK) == 0) return true;
    if (errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG) fail_system(errno, "%s: cannot be reached", path);
    return false;
}

bool folder_exists(const char *path) {
    struct stat info;
    if (stat(path, &info) == 0) return S_ISDIR(info.st_mode);
    if (errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG) fail_system(errno, "%s: cannot be reached", path);
    return false;
}

const char *path_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

uint64_t hash_bytes(uint64_t seed, const void *bytes, size_t size) {
    const uint8_t *at = bytes;
    uint64_t hash = seed ? seed : UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++) hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The edit distance with swaps of neighbours (optimal string alignment), for words of at most LONGEST_WORD letters. */
enum { LONGEST_WORD = 255, FAR = 999 };

static int distance(const char *a, const char *b) {
    size_t la = strlen(a), lb = strlen(b);
    if (la > LONGEST_WORD || lb > LONGEST_WORD) return FAR;
    int na = (int)la, nb = (int)lb, rows[3][LONGEST_WORD + 1];
    for (int j = 0; j <= nb; j++) rows[0][j] = j;
    for (int i = 1; i <= na; i++) {
        int *row = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (int j = 1; j <= nb; j++) {
            int best = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (above[j] + 1 < best) best = above[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && two_above[j - 2] + 1 < best)
                best = two_above[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[na % 3][nb];
}

static int same_beginning(const char *a, const char *b) {
    int n = 0;
    while (a[n] && a[n] == b[n]) n++;
    return n;
}

const char *nearest_within(const char *word, const char *const *words, int edits) {
    const char *nearest = NULL;
    int least = FAR;
    for (; *words; words++) {
        int d = distance(word, *words);
        /* among equally near words, the one with the longer common prefix is the more likely one */
        if (d < least || (d == least && nearest && same_beginning(word, *words) > same_beginning(word, nearest))) {
            least = d;
            nearest = *words;
        }
    }
    return least <= edits && least < (int)strlen(word) ? nearest : NULL;
}

const char *nearest_word(const char *word, const char *const *words) {
    size_t length = strlen(word);
    return nearest_within(word, words, length < 4 ? 1 : length < 8 ? 2 : 3);
}

const char *embedded_file(const char *name) {
    const char *text = embedded_text(name);
    if (!text) bug("%s is not in this program", name);
    return text;
}

void text_quote_bytes(Text *out, const char *text, size_t size, const char *numbered) {
    const unsigned char *at = (const unsigned char *)text, *end = at + size;
    text_add(out, "\"", 1);
    for (size_t bytes; at < end; at += bytes ? bytes : 1) {
        bytes = utf8_bytes(at, (size_t)(end - at));
        if (bytes == 0) text_printf(out, "\\ufffd");
        else if (*at < ' ' || strchr(numbered, *at)) text_printf(out, "\\u%04x", (unsigned)*at);
        else if (strchr("\"\\", *at)) text_printf(out, "\\%c", *at);
        else text_add(out, (const char *)at, bytes);
    }
    text_add(out, "\"", 1);
}

void text_quote(Text *out, const char *text, const char *numbered) {
    text_quote_bytes(out, text, strlen(text), numbered);
}

void text_base64(Text *out, const void *bytes, size_t size) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *at = bytes;
    text_reserve(out, size / 3 * 4 + 8);
    for (size_t left = size; left > 0; left -= left < 3 ? left : 3) {
        const uint32_t three = (uint32_t)at[0] << 16 | (left > 1 ? (uint32_t)at[1] << 8 : 0) |
                               (left > 2 ? (uint32_t)at[2] : 0);
        const char four[] = {digits[three >> 18], digits[three >> 12 & 63], left > 1 ? digits[three >> 6 & 63] : '=',
                             left > 2 ? digits[three & 63] : '='};
        text_add(out, four, sizeof four);
        at += left < 3 ? left : 3;
    }
}
