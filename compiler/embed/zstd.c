/* zstd.c: decompression by libzstd, with which attnc is built where its header is (see the Makefile). */
#include "embed.h"

#ifdef ATTNC_ZSTD
#include <zstd.h>

bool zstd_is_built(void) { return true; }

Zstd *zstd_new(void) { return (Zstd *)ZSTD_createDStream(); }

void zstd_free(Zstd *zstd) { ZSTD_freeDStream((ZSTD_DStream *)zstd); }

const char *zstd_step(Zstd *zstd, const void *from, size_t bytes, size_t *used, void *to, size_t room, size_t *made,
                      bool *ended) {
    ZSTD_inBuffer in = {from, bytes, 0};
    ZSTD_outBuffer out = {to, room, 0};
    const size_t status = ZSTD_decompressStream((ZSTD_DStream *)zstd, &out, &in);
    *used = in.pos;
    *made = out.pos;
    *ended = status == 0;
    return ZSTD_isError(status) ? ZSTD_getErrorName(status) : NULL;
}

#else

bool zstd_is_built(void) { return false; }

Zstd *zstd_new(void) { bug("attnc is built without libzstd"); }

void zstd_free(Zstd *zstd) { (void)zstd; }

const char *zstd_step(Zstd *zstd, const void *from, size_t bytes, size_t *used, void *to, size_t room, size_t *made,
                      bool *ended) {
    (void)zstd, (void)from, (void)bytes, (void)to, (void)room;
    *used = *made = 0;
    *ended = true;
    bug("attnc is built without libzstd");
}

#endif
