#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* qsort_r */
#endif
#include "wordpiece.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

enum {
    MAX_VOCAB_BYTES = 64 << 20,
    MAX_WORD_CHARS = 100, /* a longer word is [UNK], as in the released BERT */
    MAX_CHAR_BYTES = 4,
    MAX_DECOMPOSED = 16, /* canonical decompositions have at most 4 code points */
    SPECIAL_COUNT = 5,
};

enum { UNK, CLS, SEP, PAD, MASK };
static const char *const SPECIAL_NAMES[SPECIAL_COUNT] = {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"};

/* The text of a token is vocab->text[offset .. offset + size). */
typedef struct {
    uint32_t offset, size;
    int32_t id;
} Token;

/* The sorted tokens [low, high) that share their first `depth` bytes. */
typedef struct {
    size_t low, high;
    uint32_t depth;
} TokenRange;

struct wordpiece {
    char *text;
    Token *sorted; /* by bytes, a prefix before what it begins */
    size_t count;
    TokenRange continuations; /* those that begin with ## */
    int32_t special[SPECIAL_COUNT]; /* -1 where the vocabulary has none */
};

typedef struct {
    uint32_t low, high;
} CharRange;

/* The three tables hold what the Rust crate unicode_categories 0.1 answers, by which `tokenizers` classifies: it stands
 * at Unicode 8, so utf8proc's newer categories would give other ids. Printed by tests/parity/wordpiece_cases.py. */

/* Cc, Cf and Co but for tab, newline and return; U+FFFD. */
static const CharRange REMOVED[] = {
    {0x0, 0x8}, {0xb, 0xc}, {0xe, 0x1f}, {0x7f, 0x9f}, {0xad, 0xad}, {0x600, 0x605}, {0x61c, 0x61c}, {0x6dd, 0x6dd},
    {0x70f, 0x70f}, {0x180e, 0x180e}, {0x200b, 0x200f}, {0x202a, 0x202e}, {0x2060, 0x2064}, {0x2066, 0x206f},
    {0xe000, 0xf8ff}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xfffd, 0xfffd}, {0x110bd, 0x110bd}, {0x1bca0, 0x1bca3},
    {0x1d173, 0x1d17a}, {0xe0001, 0xe0001}, {0xe0020, 0xe007f}, {0xf0000, 0xffffd}, {0x100000, 0x10fffd},
};

/* Mn; only those that canonical decomposition leaves. */
static const CharRange STRIPPED_MARKS[] = {
    {0x300, 0x36f}, {0x483, 0x487}, {0x591, 0x5bd}, {0x5bf, 0x5bf}, {0x5c1, 0x5c2}, {0x5c4, 0x5c5}, {0x5c7, 0x5c7},
    {0x610, 0x61a}, {0x64b, 0x65f}, {0x670, 0x670}, {0x6d6, 0x6dc}, {0x6df, 0x6e4}, {0x6e7, 0x6e8}, {0x6ea, 0x6ed},
    {0x711, 0x711}, {0x730, 0x74a}, {0x7a6, 0x7b0}, {0x7eb, 0x7f3}, {0x816, 0x819}, {0x81b, 0x823}, {0x825, 0x827},
    {0x829, 0x82d}, {0x859, 0x85b}, {0x8e3, 0x902}, {0x93a, 0x93a}, {0x93c, 0x93c}, {0x941, 0x948}, {0x94d, 0x94d},
    {0x951, 0x957}, {0x962, 0x963}, {0x981, 0x981}, {0x9bc, 0x9bc}, {0x9c1, 0x9c4}, {0x9cd, 0x9cd}, {0x9e2, 0x9e3},
    {0xa01, 0xa02}, {0xa3c, 0xa3c}, {0xa41, 0xa42}, {0xa47, 0xa48}, {0xa4b, 0xa4d}, {0xa51, 0xa51}, {0xa70, 0xa71},
    {0xa75, 0xa75}, {0xa81, 0xa82}, {0xabc, 0xabc}, {0xac1, 0xac5}, {0xac7, 0xac8}, {0xacd, 0xacd}, {0xae2, 0xae3},
    {0xb01, 0xb01}, {0xb3c, 0xb3c}, {0xb3f, 0xb3f}, {0xb41, 0xb44}, {0xb4d, 0xb4d}, {0xb56, 0xb56}, {0xb62, 0xb63},
    {0xb82, 0xb82}, {0xbc0, 0xbc0}, {0xbcd, 0xbcd}, {0xc00, 0xc00}, {0xc3e, 0xc40}, {0xc46, 0xc47}, {0xc4a, 0xc4d},
    {0xc55, 0xc56}, {0xc62, 0xc63}, {0xc81, 0xc81}, {0xcbc, 0xcbc}, {0xcbf, 0xcbf}, {0xcc6, 0xcc6}, {0xccc, 0xccd},
    {0xce2, 0xce3}, {0xd01, 0xd01}, {0xd41, 0xd44}, {0xd4d, 0xd4d}, {0xd62, 0xd63}, {0xdca, 0xdca}, {0xdd2, 0xdd4},
    {0xdd6, 0xdd6}, {0xe31, 0xe31}, {0xe34, 0xe3a}, {0xe47, 0xe4e}, {0xeb1, 0xeb1}, {0xeb4, 0xeb9}, {0xebb, 0xebc},
    {0xec8, 0xecd}, {0xf18, 0xf19}, {0xf35, 0xf35}, {0xf37, 0xf37}, {0xf39, 0xf39}, {0xf71, 0xf7e}, {0xf80, 0xf84},
    {0xf86, 0xf87}, {0xf8d, 0xf97}, {0xf99, 0xfbc}, {0xfc6, 0xfc6}, {0x102d, 0x1030}, {0x1032, 0x1037},
    {0x1039, 0x103a}, {0x103d, 0x103e}, {0x1058, 0x1059}, {0x105e, 0x1060}, {0x1071, 0x1074}, {0x1082, 0x1082},
    {0x1085, 0x1086}, {0x108d, 0x108d}, {0x109d, 0x109d}, {0x135d, 0x135f}, {0x1712, 0x1714}, {0x1732, 0x1734},
    {0x1752, 0x1753}, {0x1772, 0x1773}, {0x17b4, 0x17b5}, {0x17b7, 0x17bd}, {0x17c6, 0x17c6}, {0x17c9, 0x17d3},
    {0x17dd, 0x17dd}, {0x180b, 0x180d}, {0x18a9, 0x18a9}, {0x1920, 0x1922}, {0x1927, 0x1928}, {0x1932, 0x1932},
    {0x1939, 0x193b}, {0x1a17, 0x1a18}, {0x1a1b, 0x1a1b}, {0x1a56, 0x1a56}, {0x1a58, 0x1a5e}, {0x1a60, 0x1a60},
    {0x1a62, 0x1a62}, {0x1a65, 0x1a6c}, {0x1a73, 0x1a7c}, {0x1a7f, 0x1a7f}, {0x1ab0, 0x1abd}, {0x1b00, 0x1b03},
    {0x1b34, 0x1b34}, {0x1b36, 0x1b3c}, {0x1b42, 0x1b42}, {0x1b6b, 0x1b73}, {0x1b80, 0x1b81}, {0x1ba2, 0x1ba5},
    {0x1ba8, 0x1ba9}, {0x1bab, 0x1bad}, {0x1be6, 0x1be6}, {0x1be8, 0x1be9}, {0x1bed, 0x1bed}, {0x1bef, 0x1bf1},
    {0x1c2c, 0x1c33}, {0x1c36, 0x1c37}, {0x1cd0, 0x1cd2}, {0x1cd4, 0x1ce0}, {0x1ce2, 0x1ce8}, {0x1ced, 0x1ced},
    {0x1cf4, 0x1cf4}, {0x1cf8, 0x1cf9}, {0x1dc0, 0x1df5}, {0x1dfc, 0x1dff}, {0x20d0, 0x20dc}, {0x20e1, 0x20e1},
    {0x20e5, 0x20f0}, {0x2cef, 0x2cf1}, {0x2d7f, 0x2d7f}, {0x2de0, 0x2dff}, {0x302a, 0x302d}, {0x3099, 0x309a},
    {0xa66f, 0xa66f}, {0xa674, 0xa67d}, {0xa69e, 0xa69f}, {0xa6f0, 0xa6f1}, {0xa802, 0xa802}, {0xa806, 0xa806},
    {0xa80b, 0xa80b}, {0xa825, 0xa826}, {0xa8c4, 0xa8c4}, {0xa8e0, 0xa8f1}, {0xa926, 0xa92d}, {0xa947, 0xa951},
    {0xa980, 0xa982}, {0xa9b3, 0xa9b3}, {0xa9b6, 0xa9b9}, {0xa9bc, 0xa9bc}, {0xa9e5, 0xa9e5}, {0xaa29, 0xaa2e},
    {0xaa31, 0xaa32}, {0xaa35, 0xaa36}, {0xaa43, 0xaa43}, {0xaa4c, 0xaa4c}, {0xaa7c, 0xaa7c}, {0xaab0, 0xaab0},
    {0xaab2, 0xaab4}, {0xaab7, 0xaab8}, {0xaabe, 0xaabf}, {0xaac1, 0xaac1}, {0xaaec, 0xaaed}, {0xaaf6, 0xaaf6},
    {0xabe5, 0xabe5}, {0xabe8, 0xabe8}, {0xabed, 0xabed}, {0xfb1e, 0xfb1e}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f},
    {0x101fd, 0x101fd}, {0x102e0, 0x102e0}, {0x10376, 0x1037a}, {0x10a01, 0x10a03}, {0x10a05, 0x10a06},
    {0x10a0c, 0x10a0f}, {0x10a38, 0x10a3a}, {0x10a3f, 0x10a3f}, {0x10ae5, 0x10ae6}, {0x11001, 0x11001},
    {0x11038, 0x11046}, {0x1107f, 0x11081}, {0x110b3, 0x110b6}, {0x110b9, 0x110ba}, {0x11100, 0x11102},
    {0x11127, 0x1112b}, {0x1112d, 0x11134}, {0x11173, 0x11173}, {0x11180, 0x11181}, {0x111b6, 0x111be},
    {0x111ca, 0x111cc}, {0x1122f, 0x11231}, {0x11234, 0x11234}, {0x11236, 0x11237}, {0x112df, 0x112df},
    {0x112e3, 0x112ea}, {0x11300, 0x11301}, {0x1133c, 0x1133c}, {0x11340, 0x11340}, {0x11366, 0x1136c},
    {0x11370, 0x11374}, {0x114b3, 0x114b8}, {0x114ba, 0x114ba}, {0x114bf, 0x114c0}, {0x114c2, 0x114c3},
    {0x115b2, 0x115b5}, {0x115bc, 0x115bd}, {0x115bf, 0x115c0}, {0x115dc, 0x115dd}, {0x11633, 0x1163a},
    {0x1163d, 0x1163d}, {0x1163f, 0x11640}, {0x116ab, 0x116ab}, {0x116ad, 0x116ad}, {0x116b0, 0x116b5},
    {0x116b7, 0x116b7}, {0x1171d, 0x1171f}, {0x11722, 0x11725}, {0x11727, 0x1172b}, {0x16af0, 0x16af4},
    {0x16b30, 0x16b36}, {0x16f8f, 0x16f92}, {0x1bc9d, 0x1bc9e}, {0x1d167, 0x1d169}, {0x1d17b, 0x1d182},
    {0x1d185, 0x1d18b}, {0x1d1aa, 0x1d1ad}, {0x1d242, 0x1d244}, {0x1da00, 0x1da36}, {0x1da3b, 0x1da6c},
    {0x1da75, 0x1da75}, {0x1da84, 0x1da84}, {0x1da9b, 0x1da9f}, {0x1daa1, 0x1daaf}, {0x1e8d0, 0x1e8d6},
    {0xe0100, 0xe01ef},
};

/* P*, above ASCII. */
static const CharRange PUNCTUATION[] = {
    {0xa1, 0xa1}, {0xa7, 0xa7}, {0xab, 0xab}, {0xb6, 0xb7}, {0xbb, 0xbb}, {0xbf, 0xbf}, {0x37e, 0x37e}, {0x387, 0x387},
    {0x55a, 0x55f}, {0x589, 0x58a}, {0x5be, 0x5be}, {0x5c0, 0x5c0}, {0x5c3, 0x5c3}, {0x5c6, 0x5c6}, {0x5f3, 0x5f4},
    {0x609, 0x60a}, {0x60c, 0x60d}, {0x61b, 0x61b}, {0x61e, 0x61f}, {0x66a, 0x66d}, {0x6d4, 0x6d4}, {0x700, 0x70d},
    {0x7f7, 0x7f9}, {0x830, 0x83e}, {0x85e, 0x85e}, {0x964, 0x965}, {0x970, 0x970}, {0xaf0, 0xaf0}, {0xdf4, 0xdf4},
    {0xe4f, 0xe4f}, {0xe5a, 0xe5b}, {0xf04, 0xf12}, {0xf14, 0xf14}, {0xf3a, 0xf3d}, {0xf85, 0xf85}, {0xfd0, 0xfd4},
    {0xfd9, 0xfda}, {0x104a, 0x104f}, {0x10fb, 0x10fb}, {0x1360, 0x1368}, {0x1400, 0x1400}, {0x166d, 0x166e},
    {0x169b, 0x169c}, {0x16eb, 0x16ed}, {0x1735, 0x1736}, {0x17d4, 0x17d6}, {0x17d8, 0x17da}, {0x1800, 0x180a},
    {0x1944, 0x1945}, {0x1a1e, 0x1a1f}, {0x1aa0, 0x1aa6}, {0x1aa8, 0x1aad}, {0x1b5a, 0x1b60}, {0x1bfc, 0x1bff},
    {0x1c3b, 0x1c3f}, {0x1c7e, 0x1c7f}, {0x1cc0, 0x1cc7}, {0x1cd3, 0x1cd3}, {0x2010, 0x2027}, {0x2030, 0x2043},
    {0x2045, 0x2051}, {0x2053, 0x205e}, {0x207d, 0x207e}, {0x208d, 0x208e}, {0x2308, 0x230b}, {0x2329, 0x232a},
    {0x2768, 0x2775}, {0x27c5, 0x27c6}, {0x27e6, 0x27ef}, {0x2983, 0x2998}, {0x29d8, 0x29db}, {0x29fc, 0x29fd},
    {0x2cf9, 0x2cfc}, {0x2cfe, 0x2cff}, {0x2d70, 0x2d70}, {0x2e00, 0x2e2e}, {0x2e30, 0x2e42}, {0x3001, 0x3003},
    {0x3008, 0x3011}, {0x3014, 0x301f}, {0x3030, 0x3030}, {0x303d, 0x303d}, {0x30a0, 0x30a0}, {0x30fb, 0x30fb},
    {0xa4fe, 0xa4ff}, {0xa60d, 0xa60f}, {0xa673, 0xa673}, {0xa67e, 0xa67e}, {0xa6f2, 0xa6f7}, {0xa874, 0xa877},
    {0xa8ce, 0xa8cf}, {0xa8f8, 0xa8fa}, {0xa8fc, 0xa8fc}, {0xa92e, 0xa92f}, {0xa95f, 0xa95f}, {0xa9c1, 0xa9cd},
    {0xa9de, 0xa9df}, {0xaa5c, 0xaa5f}, {0xaade, 0xaadf}, {0xaaf0, 0xaaf1}, {0xabeb, 0xabeb}, {0xfd3e, 0xfd3f},
    {0xfe10, 0xfe19}, {0xfe30, 0xfe52}, {0xfe54, 0xfe61}, {0xfe63, 0xfe63}, {0xfe68, 0xfe68}, {0xfe6a, 0xfe6b},
    {0xff01, 0xff03}, {0xff05, 0xff0a}, {0xff0c, 0xff0f}, {0xff1a, 0xff1b}, {0xff1f, 0xff20}, {0xff3b, 0xff3d},
    {0xff3f, 0xff3f}, {0xff5b, 0xff5b}, {0xff5d, 0xff5d}, {0xff5f, 0xff65}, {0x10100, 0x10102}, {0x1039f, 0x1039f},
    {0x103d0, 0x103d0}, {0x1056f, 0x1056f}, {0x10857, 0x10857}, {0x1091f, 0x1091f}, {0x1093f, 0x1093f},
    {0x10a50, 0x10a58}, {0x10a7f, 0x10a7f}, {0x10af0, 0x10af6}, {0x10b39, 0x10b3f}, {0x10b99, 0x10b9c},
    {0x11047, 0x1104d}, {0x110bb, 0x110bc}, {0x110be, 0x110c1}, {0x11140, 0x11143}, {0x11174, 0x11175},
    {0x111c5, 0x111c9}, {0x111cd, 0x111cd}, {0x111db, 0x111db}, {0x111dd, 0x111df}, {0x11238, 0x1123d},
    {0x112a9, 0x112a9}, {0x114c6, 0x114c6}, {0x115c1, 0x115d7}, {0x11641, 0x11643}, {0x1173c, 0x1173e},
    {0x12470, 0x12474}, {0x16a6e, 0x16a6f}, {0x16af5, 0x16af5}, {0x16b37, 0x16b3b}, {0x16b44, 0x16b44},
    {0x1bc9f, 0x1bc9f}, {0x1da87, 0x1da8b},
};

static bool in_ranges(const CharRange *ranges, size_t count, int32_t c) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges[middle].high < (uint32_t)c) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < count && ranges[low].low <= (uint32_t)c;
}

#define IN_TABLE(table, c) in_ranges(table, sizeof(table) / sizeof(table)[0], c)

/* Unicode's White_Space without U+0085, which as a control is removed before this is asked. */
static bool is_space(int32_t c) {
    static const CharRange SPACES[] = {
        {'\t', '\r'},       {' ', ' '},         {0xa0, 0xa0},     {0x1680, 0x1680}, {0x2000, 0x200a},
        {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000},
    };
    return IN_TABLE(SPACES, c);
}

/* The blocks of the released BERT; `tokenizers` leaves out U+2B820 to U+2B91F, and so do we. */
static bool is_cjk(int32_t c) {
    static const CharRange BLOCKS[] = {
        {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},   {0x20000, 0x2a6df},
        {0x2a700, 0x2b81f}, {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f},
    };
    return IN_TABLE(BLOCKS, c);
}

static bool is_punctuation(int32_t c) {
    if (c < 0x80) {
        return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
    }
    return IN_TABLE(PUNCTUATION, c);
}

/* ---- lookup ---- */

static unsigned char token_byte(const wordpiece *vocab, size_t index, uint32_t at) {
    return (unsigned char)vocab->text[vocab->sorted[index].offset + at];
}

/* The first token of the range whose byte at range.depth is at least `byte`; 256 gives the end. */
static size_t lower_bound(const wordpiece *vocab, TokenRange range, unsigned byte) {
    size_t low = range.low, high = range.high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (vocab->sorted[middle].size <= range.depth || token_byte(vocab, middle, range.depth) < byte) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static TokenRange narrowed(const wordpiece *vocab, TokenRange range, char next) {
    unsigned byte = (unsigned char)next;
    TokenRange narrow = {lower_bound(vocab, range, byte), 0, range.depth + 1};
    range.low = narrow.low;
    narrow.high = lower_bound(vocab, range, byte + 1);
    return narrow;
}

/* The id of the longest token that is the range's prefix and then a beginning of the text, or -1. Tokens and text are
 * both valid UTF-8, so a match ends between characters. */
static int32_t longest_piece(const wordpiece *vocab, TokenRange range, const char *text, size_t size, size_t *used) {
    int32_t best = -1;
    for (size_t i = 0; i < size; i++) {
        range = narrowed(vocab, range, text[i]);
        if (range.low == range.high) {
            break;
        }
        if (vocab->sorted[range.low].size == range.depth) {
            best = vocab->sorted[range.low].id;
            *used = i + 1;
        }
    }
    return best;
}

static TokenRange whole_range(const wordpiece *vocab) {
    return (TokenRange){0, vocab->count, 0};
}

/* ---- vocabulary ---- */

static void report(char *error, size_t error_size, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void report(char *error, size_t error_size, const char *format, ...) {
    if (error && error_size > 0) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(error, error_size, format, arguments);
        va_end(arguments);
    }
}

/* The whole file, read without asking for its size first, so that a pipe does as well. */
static char *read_file(const char *path, size_t *size, char *error, size_t error_size) {
    FILE *file = fopen(path, "rb");
    if (!file) {
        report(error, error_size, "%s: %s", path, strerror(errno));
        return NULL;
    }
    char *text = NULL;
    size_t used = 0, reserved = 1 << 16;
    bool failed = false;
    for (;;) {
        char *larger = realloc(text, reserved);
        if (!larger) {
            report(error, error_size, "%s: out of memory", path);
            failed = true;
            break;
        }
        text = larger;
        used += fread(text + used, 1, reserved - used, file);
        if (used < reserved) {
            break;
        }
        if (used > MAX_VOCAB_BYTES) {
            report(error, error_size, "%s: larger than %d MB", path, MAX_VOCAB_BYTES >> 20);
            failed = true;
            break;
        }
        /* The last step leaves one byte over the limit, to see that there is more. */
        reserved = reserved * 2 <= MAX_VOCAB_BYTES ? reserved * 2 : MAX_VOCAB_BYTES + 1;
    }
    if (!failed && ferror(file)) {
        report(error, error_size, "%s: %s", path, strerror(errno));
        failed = true;
    }
    fclose(file);
    if (failed) {
        free(text);
        return NULL;
    }
    *size = used;
    return text;
}

static bool is_utf8(const char *text, size_t size) {
    for (size_t at = 0; at < size;) {
        utf8proc_int32_t c;
        utf8proc_ssize_t left = (utf8proc_ssize_t)(size - at);
        utf8proc_ssize_t step = utf8proc_iterate((const utf8proc_uint8_t *)text + at, left, &c);
        if (step <= 0) {
            return false;
        }
        at += (size_t)step;
    }
    return true;
}

/* Cuts vocab->text into tokens, in the order of the file. */
static bool split_lines(wordpiece *vocab, size_t size, const char *path, char *error, size_t error_size) {
    size_t lines = 0;
    for (size_t i = 0; i < size; i++) {
        lines += vocab->text[i] == '\n' || i + 1 == size;
    }
    vocab->sorted = malloc((lines + 1) * sizeof *vocab->sorted);
    if (!vocab->sorted) {
        report(error, error_size, "%s: out of memory", path);
        return false;
    }
    for (size_t start = 0; start < size;) {
        const char *newline = memchr(vocab->text + start, '\n', size - start);
        size_t end = newline ? (size_t)(newline - vocab->text) : size;
        size_t length = end - start;
        if (length > 0 && vocab->text[end - 1] == '\r') {
            length--;
        }
        if (length == 0 || !is_utf8(vocab->text + start, length)) {
            report(error, error_size, "%s:%zu: %s", path, vocab->count + 1, length ? "not UTF-8" : "empty token");
            return false;
        }
        vocab->sorted[vocab->count] = (Token){(uint32_t)start, (uint32_t)length, (int32_t)vocab->count};
        vocab->count++;
        start = end + 1;
    }
    return true;
}

static int compare_tokens(const void *left, const void *right, void *text) {
    const Token *a = left, *b = right;
    int order = memcmp((char *)text + a->offset, (char *)text + b->offset, a->size < b->size ? a->size : b->size);
    return order != 0 ? order : (a->size > b->size) - (a->size < b->size);
}

static bool index_tokens(wordpiece *vocab, const char *path, char *error, size_t error_size) {
    qsort_r(vocab->sorted, vocab->count, sizeof *vocab->sorted, compare_tokens, vocab->text);
    for (size_t i = 1; i < vocab->count; i++) {
        Token *token = &vocab->sorted[i];
        if (compare_tokens(token - 1, token, vocab->text) == 0) {
            int32_t first = token[-1].id < token->id ? token[-1].id : token->id;
            int32_t second = token[-1].id + token->id - first;
            report(error, error_size, "%s:%d: repeats the token of line %d", path, second + 1, first + 1);
            return false;
        }
    }
    vocab->continuations = narrowed(vocab, narrowed(vocab, whole_range(vocab), '#'), '#');
    for (int i = 0; i < SPECIAL_COUNT; i++) {
        size_t used = 0, size = strlen(SPECIAL_NAMES[i]);
        int32_t id = longest_piece(vocab, whole_range(vocab), SPECIAL_NAMES[i], size, &used);
        vocab->special[i] = used == size ? id : -1;
        if (vocab->special[i] < 0 && i <= SEP) {
            report(error, error_size, "%s: no token %s", path, SPECIAL_NAMES[i]);
            return false;
        }
    }
    return true;
}

wordpiece *wordpiece_open(const char *vocab_txt_path, char *error, size_t error_size) {
    if (!vocab_txt_path) {
        report(error, error_size, "no vocabulary named");
        return NULL;
    }
    wordpiece *vocab = calloc(1, sizeof *vocab);
    if (!vocab) {
        report(error, error_size, "%s: out of memory", vocab_txt_path);
        return NULL;
    }
    size_t size = 0;
    vocab->text = read_file(vocab_txt_path, &size, error, error_size);
    if (!vocab->text || !split_lines(vocab, size, vocab_txt_path, error, error_size) ||
        !index_tokens(vocab, vocab_txt_path, error, error_size)) {
        wordpiece_free(vocab);
        return NULL;
    }
    return vocab;
}

void wordpiece_free(wordpiece *vocab) {
    if (vocab) {
        free(vocab->sorted);
        free(vocab->text);
        free(vocab);
    }
}

/* ---- encoding ---- */

/* The word being gathered is decomposed, without stripped marks and not yet lower-cased. Its characters from
 * `unordered` on are marks of a combining class above 0 whose canonical order is still open. */
typedef struct {
    const wordpiece *vocab;
    int32_t *ids;
    int count, limit; /* limit leaves room for [SEP] */
    int32_t word[MAX_WORD_CHARS];
    int classes[MAX_WORD_CHARS];
    int length, unordered;
    bool too_long;
} Encoder;

static void put_id(Encoder *encoder, int32_t id) {
    if (encoder->count < encoder->limit) {
        encoder->ids[encoder->count++] = id;
    }
}

/* WordPiece: the longest piece first; a word that is not all pieces is one [UNK]. */
static void put_pieces(Encoder *encoder, const char *word, size_t size) {
    const wordpiece *vocab = encoder->vocab;
    int32_t pieces[MAX_WORD_CHARS];
    int count = 0;
    for (size_t at = 0, used = 0; at < size; at += used) {
        TokenRange range = at == 0 ? whole_range(vocab) : vocab->continuations;
        int32_t id = longest_piece(vocab, range, word + at, size - at, &used);
        if (id < 0) {
            put_id(encoder, vocab->special[UNK]);
            return;
        }
        pieces[count++] = id;
    }
    for (int i = 0; i < count; i++) {
        put_id(encoder, pieces[i]);
    }
}

static void end_word(Encoder *encoder) {
    if (encoder->too_long) {
        put_id(encoder, encoder->vocab->special[UNK]);
    } else {
        char bytes[MAX_WORD_CHARS * MAX_CHAR_BYTES];
        size_t size = 0;
        for (int i = 0; i < encoder->length; i++) {
            utf8proc_int32_t lower = utf8proc_tolower(encoder->word[i]);
            size += (size_t)utf8proc_encode_char(lower, (utf8proc_uint8_t *)bytes + size);
        }
        put_pieces(encoder, bytes, size);
    }
    encoder->length = 0;
    encoder->unordered = 0;
    encoder->too_long = false;
}

/* Adds one decomposed character. Marks are put in canonical order as they come; a word too long for the buffer is [UNK]
 * in any order, so sorting stays within MAX_WORD_CHARS. */
static void add_to_word(Encoder *encoder, int32_t c) {
    int class = utf8proc_get_property(c)->combining_class;
    if (IN_TABLE(STRIPPED_MARKS, c)) {
        if (class == 0) {
            encoder->unordered = encoder->length;
        }
        return;
    }
    if (encoder->length == MAX_WORD_CHARS) {
        encoder->too_long = true;
        return;
    }
    int at = encoder->length++;
    if (class == 0) {
        encoder->unordered = encoder->length;
    } else {
        for (; at > encoder->unordered && encoder->classes[at - 1] > class; at--) {
            encoder->word[at] = encoder->word[at - 1];
            encoder->classes[at] = encoder->classes[at - 1];
        }
    }
    encoder->word[at] = c;
    encoder->classes[at] = class;
}

static void add_decomposed(Encoder *encoder, int32_t c) {
    if (is_punctuation(c)) {
        end_word(encoder);
        add_to_word(encoder, c);
        end_word(encoder);
    } else {
        add_to_word(encoder, c);
    }
}

/* One character of the text, through the steps of BertNormalizer in their order. */
static void add_char(Encoder *encoder, int32_t c) {
    if (IN_TABLE(REMOVED, c)) {
        return;
    }
    if (is_space(c)) {
        end_word(encoder);
        return;
    }
    bool cjk = is_cjk(c);
    if (cjk) {
        end_word(encoder);
    }
    utf8proc_int32_t parts[MAX_DECOMPOSED];
    int boundary = 0; /* used by utf8proc only for grapheme breaks */
    utf8proc_ssize_t count =
        utf8proc_decompose_char(c, parts, MAX_DECOMPOSED, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE, &boundary);
    if (count < 0 || count > MAX_DECOMPOSED) {
        parts[0] = c;
        count = 1;
    }
    for (utf8proc_ssize_t i = 0; i < count; i++) {
        add_decomposed(encoder, parts[i]);
    }
    if (cjk) {
        end_word(encoder);
    }
}

/* The bytes of the special token that the text begins with, or 0. */
static size_t special_at(const wordpiece *vocab, const char *text, size_t size, int32_t *id) {
    for (int i = 0; i < SPECIAL_COUNT && text[0] == '['; i++) {
        size_t length = strlen(SPECIAL_NAMES[i]);
        if (vocab->special[i] >= 0 && length <= size && memcmp(text, SPECIAL_NAMES[i], length) == 0) {
            *id = vocab->special[i];
            return length;
        }
    }
    return 0;
}

int wordpiece_encode(const wordpiece *vocab, const char *utf8, size_t bytes, int32_t *ids, int capacity) {
    if (!vocab || (!utf8 && bytes > 0) || !ids || capacity < 2) {
        return -1;
    }
    Encoder encoder = {.vocab = vocab, .ids = ids, .limit = capacity - 1};
    put_id(&encoder, vocab->special[CLS]);
    for (size_t at = 0; at < bytes && encoder.count < encoder.limit;) {
        size_t left = bytes - at;
        int32_t id = 0;
        size_t special = special_at(vocab, utf8 + at, left, &id);
        if (special > 0) {
            end_word(&encoder);
            put_id(&encoder, id);
            at += special;
            continue;
        }
        utf8proc_int32_t c;
        utf8proc_ssize_t size = left < MAX_CHAR_BYTES ? (utf8proc_ssize_t)left : MAX_CHAR_BYTES;
        utf8proc_ssize_t step = utf8proc_iterate((const utf8proc_uint8_t *)utf8 + at, size, &c);
        if (step > 0) {
            add_char(&encoder, c);
            at += (size_t)step;
        } else {
            at++; /* stands for U+FFFD, which is removed */
        }
    }
    end_word(&encoder);
    ids[encoder.count++] = vocab->special[SEP];
    return encoder.count;
}
