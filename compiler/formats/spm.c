/* spm.c: reads files of SentencePiece. Of protobuf's wire format (protobuf.dev, "Encoding") it knows varints, numbers
 * of four and eight bytes, and bytes with a length. Unknown fields are skipped, as protobuf does, and of a field that
 * occurs twice the last one holds. */
#include "spm.h"

#include "bytes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 28, MOST_PIECES = 1 << 24, MOST_FIELD = (1 << 29) - 1 };
enum { VARINT = 0, EIGHT_BYTES = 1, COUNTED = 2, FOUR_BYTES = 5 };
enum { UNIGRAM = 1, PAIRS = 2, WORDS = 3, CHARACTERS = 4 };

typedef struct Message {
    const char *path;
    const uint8_t *at, *end;
} Message;

typedef struct Field {
    uint64_t number;
    int type;
    uint64_t value;      /* a varint, the bits of a number, or the count of bytes */
    const uint8_t *data; /* of COUNTED */
} Field;

static _Noreturn void damaged(const Message *m, const char *why) {
    fail("%s: it is no model of SentencePiece, or it is damaged: %s", m->path, why);
}

static uint64_t varint(Message *m) {
    enum { MOST_VARINT = 10 };
    uint64_t value = 0;
    for (int i = 0; i < MOST_VARINT; i++) {
        if (m->at == m->end) damaged(m, "it ends inside a number");
        const uint8_t byte = *m->at++;
        if (i == MOST_VARINT - 1 && byte > 1) break;
        value |= (uint64_t)(byte & 0x7f) << 7 * i;
        if (byte < 0x80) return value;
    }
    damaged(m, "a number has more than 64 bits");
}

static const uint8_t *take(Message *m, uint64_t size) {
    const uint8_t *data = m->at;
    if (size > (uint64_t)(m->end - m->at)) damaged(m, "a part is longer than what holds it");
    m->at += size;
    return data;
}

/* Reads the next field; false at the end. */
static bool next_field(Message *m, Field *field) {
    if (m->at == m->end) return false;
    const uint64_t tag = varint(m);
    *field = (Field){.number = tag >> 3, .type = (int)(tag & 7)};
    if (field->number == 0 || field->number > MOST_FIELD) damaged(m, "a field has a number that there is not");
    switch (field->type) {
    case VARINT: field->value = varint(m); break;
    case EIGHT_BYTES: field->value = number_at(take(m, 8), 8); break;
    case FOUR_BYTES: field->value = number_at(take(m, 4), 4); break;
    case COUNTED:
        field->value = varint(m);
        field->data = take(m, field->value);
        break;
    default: damaged(m, "a field has a type that there is not");
    }
    return true;
}

static Message inside(const Message *m, const Field *field) {
    return (Message){m->path, field->data, field->data + field->value};
}

/* Whether this is the field, whose type must then be right. */
static bool is(const Message *m, const Field *field, uint64_t number, int type) {
    if (field->number != number) return false;
    if (field->type != type) damaged(m, "a field has another type than in models of SentencePiece");
    return true;
}

/* ---------------------------------------------------------------- pieces */

static void check_piece(const Message *m, const Piece *piece, int64_t id) {
    if (!piece->size) damaged(m, "a piece is empty");
    if (memchr(piece->text, 0, piece->size)) fail("%s: piece %lld holds a NUL", m->path, (long long)id);
    if (!utf8_is_valid(piece->text, piece->size))
        fail("%s: piece %lld is not UTF-8", m->path, (long long)id);
    if (!isfinite(piece->score)) fail("%s: piece %lld has a score that is no number", m->path, (long long)id);
    if (piece->type < PIECE_NORMAL || piece->type > PIECE_BYTE)
        fail("%s: piece %lld is of type %d, which is not known here", m->path, (long long)id, (int)piece->type);
}

static Piece read_piece(Message m, int64_t id) {
    Piece piece = {"", 0, 0, PIECE_NORMAL};
    for (Field f; next_field(&m, &f);) {
        if (is(&m, &f, 1, COUNTED)) {
            piece.text = (const char *)f.data;
            piece.size = (size_t)f.value;
        } else if (is(&m, &f, 2, FOUR_BYTES)) {
            const uint32_t bits = (uint32_t)f.value;
            memcpy(&piece.score, &bits, sizeof bits);
        } else if (is(&m, &f, 3, VARINT)) piece.type = (PieceType)(f.value > PIECE_BYTE ? 0 : f.value);
    }
    check_piece(&m, &piece, id);
    return piece;
}

/* ---------------------------------------------------------------- settings */

/* What a model says of its training and of texts that it writes. */
typedef struct Said {
    int64_t type;
    bool suffix, denormalizes;
} Said;

static void read_trainer(Message m, SpmModel *model, Said *said) {
    for (Field f; next_field(&m, &f);) {
        if (is(&m, &f, 3, VARINT)) said->type = f.value > CHARACTERS ? 0 : (int64_t)f.value;
        else if (is(&m, &f, 24, VARINT)) said->suffix = f.value != 0;
        else if (is(&m, &f, 35, VARINT)) model->byte_fallback = f.value != 0;
    }
}

static void read_normalizer(Message m, SpmModel *model) {
    for (Field f; next_field(&m, &f);) {
        if (is(&m, &f, 2, COUNTED)) {
            model->charsmap = f.data;
            model->charsmap_size = (size_t)f.value;
        } else if (is(&m, &f, 3, VARINT)) model->add_dummy_prefix = f.value != 0;
        else if (is(&m, &f, 4, VARINT)) model->remove_extra_whitespaces = f.value != 0;
        else if (is(&m, &f, 5, VARINT)) model->escape_whitespaces = f.value != 0;
    }
}

static void read_denormalizer(Message m, Said *said) {
    for (Field f; next_field(&m, &f);)
        if (is(&m, &f, 2, COUNTED)) said->denormalizes = f.value > 0;
}

/* ---------------------------------------------------------------- the whole */

static int by_piece(const void *left, const void *right) {
    const Piece *a = *(const Piece *const *)left, *b = *(const Piece *const *)right;
    const size_t common = a->size < b->size ? a->size : b->size;
    const int order = memcmp(a->text, b->text, common);
    return order ? order : (a->size > b->size) - (a->size < b->size);
}

static void check_unique(Arena *arena, const SpmModel *model) {
    const Piece **sorted = arena_array(arena, (size_t)model->count, sizeof *sorted);
    for (int64_t i = 0; i < model->count; i++) sorted[i] = &model->pieces[i];
    qsort(sorted, (size_t)model->count, sizeof *sorted, by_piece);
    for (int64_t i = 1; i < model->count; i++) {
        if (by_piece(&sorted[i - 1], &sorted[i]) != 0) continue;
        const char *text = arena_copy(arena, sorted[i]->text, sorted[i]->size);
        fail("%s: the piece `%.*s` stands there twice", model->path, CUT(60, text));
    }
}

/* Checks that there is one unknown piece and, with byte_fallback, a piece of each byte. */
static void check_types(Arena *arena, SpmModel *model) {
    int64_t bytes = 0;
    model->unknown = -1;
    for (int64_t i = 0; i < model->count; i++) {
        const Piece *piece = &model->pieces[i];
        if (piece->type == PIECE_UNKNOWN && model->unknown >= 0) fail("%s: it has two unknown pieces", model->path);
        if (piece->type == PIECE_UNKNOWN) model->unknown = i;
        if (piece->type == PIECE_UNUSED && model->pairs)
            fail("%s: a piece of its pairs is unused, and would be cut again: not done here", model->path);
        if (piece->type != PIECE_BYTE) continue;
        if (!model->byte_fallback) fail("%s: it has pieces of bytes without `byte_fallback`", model->path);
        const char *name = arena_printf(arena, "<0x%02X>", (unsigned)(bytes & 0xff));
        if (piece->size != strlen(name) || memcmp(piece->text, name, piece->size) != 0)
            fail("%s: its pieces of bytes are not <0x00> to <0xFF> in their order", model->path);
        bytes++;
    }
    if (model->unknown < 0) fail("%s: it has no unknown piece", model->path);
    if (model->byte_fallback && bytes != 256) fail("%s: it has pieces of %lld bytes, not of 256", model->path,
                                                   (long long)bytes);
}

static void check_kind(const SpmModel *model, const Said *said) {
    if (said->type == WORDS || said->type == CHARACTERS)
        fail("%s: the model is of whole %s; models of the types unigram and bpe are read", model->path,
             said->type == WORDS ? "words" : "characters");
    if (said->type != UNIGRAM && said->type != PAIRS)
        fail("%s: the model is of a type that is not known here; models of the types unigram and bpe are read",
             model->path);
    if (said->suffix) fail("%s: `treat_whitespace_as_suffix` is not done here", model->path);
    if (said->denormalizes) fail("%s: its denormalizer, which rewrites what is decoded, is not done here", model->path);
}

/* The number of pieces; the message is checked on the way. */
static int64_t count_pieces(Message m) {
    int64_t count = 0;
    bool trained = false;
    for (Field f; next_field(&m, &f);) {
        count += is(&m, &f, 1, COUNTED);
        trained |= is(&m, &f, 2, COUNTED);
    }
    if (!count) damaged(&m, "it has no pieces");
    if (!trained) damaged(&m, "it does not say how it was trained");
    if (count >= MOST_PIECES) fail("%s: it has more than %d pieces", m.path, MOST_PIECES);
    return count;
}

SpmModel spm_read(Arena *arena, const char *path) {
    size_t size;
    const uint8_t *bytes = (const uint8_t *)file_read(arena, path, MOST_BYTES, &size);
    Message m = {path, bytes, bytes + size};
    SpmModel model = {.path = path, .add_dummy_prefix = true, .remove_extra_whitespaces = true,
                      .escape_whitespaces = true, .count = count_pieces(m)};
    Said said = {.type = UNIGRAM};
    int64_t next = 0;
    model.pieces = arena_array(arena, (size_t)model.count, sizeof *model.pieces);
    for (Field f; next_field(&m, &f);) {
        if (is(&m, &f, 1, COUNTED)) model.pieces[next] = read_piece(inside(&m, &f), next), next++;
        else if (is(&m, &f, 2, COUNTED)) read_trainer(inside(&m, &f), &model, &said);
        else if (is(&m, &f, 3, COUNTED)) read_normalizer(inside(&m, &f), &model);
        else if (is(&m, &f, 5, COUNTED)) read_denormalizer(inside(&m, &f), &said);
    }
    model.pairs = said.type == PAIRS;
    check_kind(&model, &said);
    check_types(arena, &model);
    check_unique(arena, &model);
    return model;
}
