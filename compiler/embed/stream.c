/* stream.c: the bytes of a file, decompressed. */
#include "embed.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { BUFFER = 1 << 16, GZIP_WINDOW = 15 + 16 /* the largest window; a header of gzip */ };

typedef enum Form { PLAIN, GZIP, ZSTD } Form;

struct Stream {
    Arena *arena;
    const char *path;
    int fd;
    Form form;
    z_stream gzip;
    Zstd *zstd;
    bool within;       /* a member of gzip or a frame of zstd has begun and not ended */
    bool ended;        /* the file has no more bytes */
    bool damaged;
    int64_t taken;     /* bytes of the file that are read */
    size_t at, filled; /* of the buffer */
    unsigned char buffer[BUFFER];
};

static void fill(Stream *s) {
    s->at = s->filled = 0;
    while (!s->ended) {
        const ssize_t got = read(s->fd, s->buffer, BUFFER);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail_system(errno, "%s: cannot be read", s->path);
        s->ended = got == 0;
        s->filled = (size_t)got;
        s->taken += got;
        return;
    }
}

/* RFC 1952 for gzip. RFC 8878 for zstd, whose files may begin with a frame that is skipped. */
static Form form_of(const Stream *s) {
    static const unsigned char gzip[] = {0x1f, 0x8b}, zstd[] = {0x28, 0xb5, 0x2f, 0xfd}, skipped[] = {0x2a, 0x4d, 0x18};
    const unsigned char *b = s->buffer;
    if (s->filled >= 2 && memcmp(b, gzip, 2) == 0) return GZIP;
    if (s->filled >= 4 && memcmp(b, zstd, 4) == 0) return ZSTD;
    if (s->filled >= 4 && b[0] >= 0x50 && b[0] <= 0x5f && memcmp(b + 1, skipped, 3) == 0) return ZSTD;
    const bool gz = text_ends(s->path, ".gz"), zst = text_ends(s->path, ".zst");
    if ((gz || zst) && !s->filled) fail("%s: is truncated: it is empty", s->path);
    if (gz || zst) fail("%s: is no file of %s", s->path, gz ? "gzip" : "zstd");
    return PLAIN;
}

static void free_decoders(void *with) {
    Stream *s = with;
    if (s->form == GZIP) inflateEnd(&s->gzip);
    if (s->form == ZSTD) zstd_free(s->zstd);
    if (s->fd >= 0) close(s->fd);
    s->form = PLAIN;
    s->fd = -1;
}

void stream_close(Stream *s) { arena_free(s->arena); }

Stream *stream_open(const char *path) {
    Arena *arena = arena_new();
    size_t size;
    Stream *s = arena_alloc(arena, sizeof *s);
    s->arena = arena;
    s->path = path;
    s->fd = file_open(path, &size);
    arena_on_free(arena, free_decoders, s);
    fill(s);
    const Form form = form_of(s);
    if (form == ZSTD && !zstd_is_built())
        fail_status(EXIT_CANNOT, "%s: is compressed by zstd, and this attnc was built without libzstd (libzstd-dev)",
                    path);
    if (form == GZIP && inflateInit2(&s->gzip, GZIP_WINDOW) != Z_OK) out_of_memory();
    if (form == ZSTD && !(s->zstd = zstd_new())) out_of_memory();
    s->form = form;
    return s;
}

static size_t take_plain(Stream *s, void *to, size_t room) {
    const size_t left = s->filled - s->at, size = left < room ? left : room;
    memcpy(to, s->buffer + s->at, size);
    s->at += size;
    return size;
}

static _Noreturn void damaged(Stream *s, const char *how, const char *why) {
    s->damaged = true;
    fail("%s: is %s: %s", s->path, how, why);
}

/* Some programs fill the end of a file of gzip with zeros. */
static bool only_zeros(Stream *s) {
    for (; !s->ended; fill(s))
        for (; s->at < s->filled; s->at++)
            if (s->buffer[s->at]) return false;
    return true;
}

static size_t take_gzip(Stream *s, void *to, size_t room) {
    if (!s->within && s->buffer[s->at] == 0 && only_zeros(s)) return 0;
    s->gzip.next_in = s->buffer + s->at;
    s->gzip.avail_in = (uInt)(s->filled - s->at);
    s->gzip.next_out = to;
    s->gzip.avail_out = (uInt)room;
    s->within = true;
    const int status = inflate(&s->gzip, Z_NO_FLUSH);
    s->at = s->filled - s->gzip.avail_in;
    if (status == Z_MEM_ERROR) out_of_memory();
    if (status == Z_STREAM_END) {
        s->within = false;
        if (inflateReset(&s->gzip) != Z_OK) bug("%s: a stream of zlib cannot be reset", s->path);
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
        damaged(s, "damaged", s->gzip.msg ? s->gzip.msg : "its compressed data are wrong");
    }
    return room - s->gzip.avail_out;
}

static size_t take_zstd(Stream *s, void *to, size_t room) {
    size_t used, made;
    bool ended;
    const char *why = zstd_step(s->zstd, s->buffer + s->at, s->filled - s->at, &used, to, room, &made, &ended);
    s->at += used;
    s->within = !ended;
    if (why) damaged(s, "damaged", why);
    return made;
}

size_t stream_take(Stream *s, void *to, size_t room) {
    for (;;) {
        if (s->at == s->filled) fill(s);
        const bool drained = s->at == s->filled; /* a decoder may still hold bytes that did not fit */
        if (drained && (s->form == PLAIN || !s->within)) return 0;
        const size_t made = s->form == PLAIN  ? take_plain(s, to, room)
                            : s->form == GZIP ? take_gzip(s, to, room)
                                              : take_zstd(s, to, room);
        if (made) return made;
        if (drained && s->within) damaged(s, "truncated", "its compressed data have no end");
    }
}

void stream_skip(Stream *s, int64_t bytes) {
    char skipped[BUFFER / 4];
    if (s->form == PLAIN) {
        if (lseek(s->fd, (off_t)bytes, SEEK_SET) < 0) fail_system(errno, "%s: cannot be read", s->path);
        s->taken = bytes;
        s->at = s->filled = 0;
        s->ended = false;
        return;
    }
    while (bytes > 0) {
        const size_t room = bytes < (int64_t)sizeof skipped ? (size_t)bytes : sizeof skipped;
        const size_t got = stream_take(s, skipped, room);
        if (!got) fail("%s: is shorter than it was", s->path);
        bytes -= (int64_t)got;
    }
}

bool stream_is_damaged(const Stream *s) { return s->damaged; }

int64_t stream_read_bytes(const Stream *s) { return s->taken - (int64_t)(s->filled - s->at); }
