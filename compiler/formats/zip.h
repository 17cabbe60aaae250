/* zip.h: zip archives whose members are stored without compression, as PyTorch writes them.
 * The format is that of APPNOTE.TXT of PKWARE, sections 4.3 to 4.5. */
#ifndef ZIP_H
#define ZIP_H

#include "../attnc.h"

typedef struct ZipMember {
    const char *name;
    const uint8_t *data; /* [size], within the mapped archive */
    size_t size;
} ZipMember;

typedef struct ZipFile {
    ZipMember *members; /* sorted by name; no name occurs twice */
    size_t count;
} ZipFile;

bool zip_begins(MappedFile file); /* whether the file has the first bytes of an archive */
ZipFile zip_read(Arena *arena, MappedFile mapped);
const ZipMember *zip_find(const ZipFile *file, const char *name); /* or NULL */

#endif
