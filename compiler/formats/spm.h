/* spm.h: files of SentencePiece, which are messages of protobuf of the type ModelProto (google/sentencepiece,
 * src/sentencepiece_model.proto). */
#ifndef SPM_H
#define SPM_H

#include "../attnc.h"

/* As the file numbers them. */
typedef enum PieceType {
    PIECE_NORMAL = 1, PIECE_UNKNOWN, PIECE_CONTROL, PIECE_USERS, PIECE_UNUSED, PIECE_BYTE
} PieceType;

typedef struct Piece {
    const char *text; /* UTF-8 */
    size_t size;      /* bytes, at least 1 */
    float score;      /* finite */
    PieceType type;
} Piece;

typedef struct SpmModel {
    const char *path;
    Piece *pieces; /* by id; no text occurs twice */
    int64_t count; /* at least 1 */
    int64_t unknown;
    bool pairs; /* joins pairs; otherwise the best segmentation of a unigram model */
    bool byte_fallback; /* there is a piece for each byte */
    bool add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces;
    const uint8_t *charsmap; /* replacements of the normalizer, of charsmap_size bytes, which may be 0 */
    size_t charsmap_size;
} SpmModel;

/* Reads a file. One that is cut, of another kind, or of a kind that is not done here is a failure. */
SpmModel spm_read(Arena *arena, const char *path);

#endif
