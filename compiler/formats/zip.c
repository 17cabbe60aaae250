/* zip.c: reads the directory of a zip archive, which stays mapped. */
#include "zip.h"

#include "bytes.h"
#include "tensor_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { END_BYTES = 22, LOCATOR_BYTES = 20, WIDE_END_BYTES = 56, ENTRY_BYTES = 46, LOCAL_BYTES = 30 };
enum { MOST_COMMENT = 65535, WIDE_EXTRA = 1 };

typedef struct Directory {
    uint64_t count, bytes, offset;
} Directory;

static bool signed_as(MappedFile file, uint64_t at, const char *signature, size_t size) {
    return at <= file.size && file.size - at >= size && memcmp(file.data + at, signature, 4) == 0;
}

static _Noreturn void damaged(MappedFile file, const char *what) {
    fail("%s: it is a zip archive whose %s is damaged; is the file truncated?", file.path, what);
}

/* The end record stands before a comment that reaches to the end of the file. */
static uint64_t end_record(MappedFile file) {
    for (uint64_t comment = 0; comment <= MOST_COMMENT && file.size >= END_BYTES + comment; comment++) {
        const uint64_t at = file.size - END_BYTES - comment;
        if (signed_as(file, at, "PK\5\6", END_BYTES) && number_at(file.data + at + 20, 2) == comment) return at;
    }
    damaged(file, "end");
}

/* Large archives have a second end record with numbers of 64 bits, which a locator in front of the first one names. */
static Directory directory_of(MappedFile file) {
    const uint64_t end = end_record(file);
    const uint8_t *at = file.data + end;
    Directory directory = {number_at(at + 10, 2), number_at(at + 12, 4), number_at(at + 16, 4)};
    const uint64_t locator = end >= LOCATOR_BYTES ? end - LOCATOR_BYTES : file.size;
    if (signed_as(file, locator, "PK\6\7", LOCATOR_BYTES)) {
        const uint64_t wide = number_at(file.data + locator + 8, 8);
        if (!signed_as(file, wide, "PK\6\6", WIDE_END_BYTES)) damaged(file, "end");
        at = file.data + wide;
        directory = (Directory){number_at(at + 32, 8), number_at(at + 40, 8), number_at(at + 48, 8)};
    }
    if (directory.offset > file.size || directory.bytes > file.size - directory.offset ||
        directory.count > directory.bytes / ENTRY_BYTES)
        damaged(file, "directory");
    return directory;
}

/* Replaces the numbers that do not fit into 32 bits by those of the extra field, which has them in this order. */
static void widen(const uint8_t *extra, uint64_t bytes, uint64_t *const numbers[3]) {
    while (bytes >= 4) {
        const uint64_t id = number_at(extra, 2), size = number_at(extra + 2, 2);
        if (size > bytes - 4) return;
        for (uint64_t i = 0, used = 0; id == WIDE_EXTRA && i < 3; i++) {
            if (*numbers[i] != UINT32_MAX || used + 8 > size) continue;
            *numbers[i] = number_at(extra + 4 + used, 8);
            used += 8;
        }
        extra += 4 + size, bytes -= 4 + size;
    }
}

/* The member that the entry at `at` of the directory describes; *bytes becomes the size of the entry. */
static ZipMember member_of(Arena *arena, MappedFile file, const uint8_t *at, uint64_t rest, uint64_t *bytes) {
    if (rest < ENTRY_BYTES || memcmp(at, "PK\1\2", 4) != 0) damaged(file, "directory");
    const uint64_t name_size = number_at(at + 28, 2), extra = number_at(at + 30, 2), comment = number_at(at + 32, 2);
    *bytes = ENTRY_BYTES + name_size + extra + comment;
    if (rest < *bytes) damaged(file, "directory");
    const char *name = arena_copy(arena, (const char *)at + ENTRY_BYTES, (size_t)name_size);
    const char *shown = tensor_shown(arena, name);
    if (number_at(at + 8, 2) & 1) fail("%s: its member `%s` is encrypted", file.path, shown);
    if (number_at(at + 10, 2))
        fail("%s: its member `%s` is compressed; members that are stored as they are can be read, as PyTorch writes "
             "them", file.path, shown);
    uint64_t stored = number_at(at + 20, 4), size = number_at(at + 24, 4), local = number_at(at + 42, 4);
    widen(at + ENTRY_BYTES + name_size, extra, (uint64_t *const[]){&size, &stored, &local});
    if (stored != size) fail("%s: its member `%s` has two different sizes", file.path, shown);
    if (!signed_as(file, local, "PK\3\4", LOCAL_BYTES)) damaged(file, arena_printf(arena, "member `%s`", shown));
    const uint8_t *head = file.data + local;
    const uint64_t skipped = LOCAL_BYTES + number_at(head + 26, 2) + number_at(head + 28, 2), room = file.size - local;
    if (skipped > room || size > room - skipped)
        fail("%s: its member `%s` of %" PRIu64 " bytes reaches beyond the end of the file; is it truncated?", file.path,
             shown, size);
    return (ZipMember){name, head + skipped, (size_t)size};
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const ZipMember *)a)->name, ((const ZipMember *)b)->name);
}

bool zip_begins(MappedFile file) { return signed_as(file, 0, "PK\3\4", LOCAL_BYTES); }

ZipFile zip_read(Arena *arena, MappedFile mapped) {
    const Directory directory = directory_of(mapped);
    const uint8_t *at = mapped.data + directory.offset;
    ZipFile file = {arena_array(arena, (size_t)directory.count + 1, sizeof *file.members), 0};
    uint64_t rest = directory.bytes;
    for (uint64_t bytes; file.count < directory.count; at += bytes, rest -= bytes)
        file.members[file.count++] = member_of(arena, mapped, at, rest, &bytes);
    if (file.count) qsort(file.members, file.count, sizeof *file.members, by_name);
    for (size_t i = 1; i < file.count; i++)
        if (strcmp(file.members[i - 1].name, file.members[i].name) == 0)
            fail("%s: its member `%s` is there twice", mapped.path, tensor_shown(arena, file.members[i].name));
    return file;
}

const ZipMember *zip_find(const ZipFile *file, const char *name) {
    const ZipMember wanted = {.name = name};
    return file->count ? bsearch(&wanted, file->members, file->count, sizeof wanted, by_name) : NULL;
}
