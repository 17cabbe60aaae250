/* journal.c: how far a run has come. The file is a line, the size and the hash of what follows, the texts of the
 * command, each ended by NUL, and from a multiple of SLOT bytes on two slots with a place and a number that grows.
 *
 * Order of writes: rows, fdatasync of their file, the place into the slot with the smaller number, fdatasync of the
 * journal. A write that is interrupted damages this slot alone, so its checksum is wrong and the other slot holds. The
 * file gets its name when it is whole. */
#include "embed.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SLOT = 512, MOST_BYTES = 1 << 28 };

static const char MAGIC[16] = "attnc embed 1\n";

typedef struct JournalHead {
    char magic[16];
    uint64_t bytes, hash; /* of the texts */
} JournalHead;

typedef struct JournalSlot {
    uint64_t number; /* from 1 on */
    Place place;
    uint64_t hash; /* of what is before it */
} JournalSlot;

struct Journal {
    const char *path;
    int fd;
    uint64_t number; /* of the newest slot */
    int64_t slots_at;
};

static int64_t slots_at(uint64_t bytes) { return (int64_t)((sizeof(JournalHead) + bytes + SLOT - 1) / SLOT * SLOT); }

static uint64_t slot_hash(const JournalSlot *slot) { return hash_bytes(0, slot, offsetof(JournalSlot, hash)); }

static void put(const char *path, int fd, const void *bytes, size_t size, int64_t at) {
    for (const char *from = bytes; size;) {
        const ssize_t got = pwrite(fd, from, size, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail_system(errno, "%s: cannot be written", path);
        from += got;
        at += got;
        size -= (size_t)got;
    }
}

static bool get(const char *path, int fd, void *to, size_t size, int64_t at) {
    for (char *put_at = to; size;) {
        const ssize_t got = pread(fd, put_at, size, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail_system(errno, "%s: cannot be read", path);
        if (got == 0) return false;
        put_at += got;
        at += got;
        size -= (size_t)got;
    }
    return true;
}

static void close_file(void *with) {
    const Journal *journal = with;
    close(journal->fd);
}

void folder_sync(const char *path) {
    const char *name = path_name(path);
    Arena *arena = arena_new();
    const char *folder = name == path ? "." : arena_copy(arena, path, (size_t)(name - path));
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) { /* some file systems cannot sync a folder, and then a rename is as safe as they make it */
        fsync(fd);
        close(fd);
    }
    arena_free(arena);
}

Journal *journal_create(Arena *arena, const char *path, const Command *command, Place place) {
    const char *aside = arena_printf(arena, "%s.new", path);
    Journal *journal = arena_alloc(arena, sizeof *journal);
    Text text = text_new(arena);
    for (int i = 0; i < ITEM_COUNT; i++) text_add(&text, command->items[i], strlen(command->items[i]) + 1);
    JournalHead head = {.bytes = text.size, .hash = hash_bytes(0, text.data, text.size)};
    memcpy(head.magic, MAGIC, sizeof MAGIC);
    *journal = (Journal){.path = path, .slots_at = slots_at(text.size)};
    journal->fd = open(aside, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
    if (journal->fd < 0) fail_system(errno, "%s: cannot be written", path);
    put(path, journal->fd, &head, sizeof head, 0);
    put(path, journal->fd, text.data, text.size, sizeof head);
    put(path, journal->fd, (const char[2 * SLOT]){0}, 2 * SLOT, journal->slots_at);
    arena_on_free(arena, close_file, journal);
    journal_set(journal, place);
    if (rename(aside, path)) fail_system(errno, "%s: cannot be written", path);
    folder_sync(path);
    return journal;
}

static _Noreturn void damaged(const char *path) {
    fail("%s: is damaged, so that the run cannot go on; `--force` starts anew", path);
}

/* The texts of the command, each of which ends within the bytes that were read. */
static void read_command(Arena *arena, Journal *journal, Command *command) {
    JournalHead head;
    if (!get(journal->path, journal->fd, &head, sizeof head, 0) || memcmp(head.magic, MAGIC, sizeof MAGIC) != 0 ||
        head.bytes > MOST_BYTES)
        damaged(journal->path);
    char *text = arena_alloc(arena, head.bytes + 1);
    if (!get(journal->path, journal->fd, text, head.bytes, sizeof head) ||
        hash_bytes(0, text, head.bytes) != head.hash)
        damaged(journal->path);
    const char *at = text, *end = text + head.bytes;
    for (int i = 0; i < ITEM_COUNT; i++) {
        if (at == end) damaged(journal->path);
        command->items[i] = at;
        at += strlen(at) + 1;
    }
    journal->slots_at = slots_at(head.bytes);
}

Journal *journal_open(Arena *arena, const char *path, Command *command, Place *place) {
    const int fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 && errno == ENOENT) return NULL;
    if (fd < 0) fail_system(errno, "%s: cannot be opened", path);
    Journal *journal = arena_alloc(arena, sizeof *journal);
    *journal = (Journal){.path = path, .fd = fd};
    arena_on_free(arena, close_file, journal);
    read_command(arena, journal, command);
    for (int i = 0; i < 2; i++) {
        JournalSlot slot;
        if (!get(path, fd, &slot, sizeof slot, journal->slots_at + i * SLOT)) continue;
        if (slot.hash != slot_hash(&slot) || slot.number <= journal->number) continue;
        journal->number = slot.number;
        *place = slot.place;
    }
    if (!journal->number) damaged(path);
    return journal;
}

void journal_set(Journal *journal, Place place) {
    JournalSlot slot = {.number = ++journal->number, .place = place};
    slot.hash = slot_hash(&slot);
    put(journal->path, journal->fd, &slot, sizeof slot, journal->slots_at + (int64_t)(slot.number % 2) * SLOT);
    if (fdatasync(journal->fd)) fail_system(errno, "%s: cannot be written", journal->path);
}
