/* buffer.c: growing buffers of bytes, growing lists of pieces, strings, and lists of ids. */
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "attn_tokenizer_internal.h"

void attn_put_bytes(Buffer *buffer, const char *bytes, size_t size) {
    if (buffer->failed || size == 0) return;
    if (size > buffer->capacity - buffer->size) {
        size_t capacity = buffer->capacity ? buffer->capacity : 64;
        while (capacity - buffer->size < size && capacity <= SIZE_MAX / 2) capacity *= 2;
        char *data = capacity - buffer->size < size ? NULL : realloc(buffer->data, capacity);
        if (!data) {
            buffer->failed = true;
            return;
        }
        buffer->data = data;
        buffer->capacity = capacity;
    }
    memcpy(buffer->data + buffer->size, bytes, size);
    buffer->size += size;
}

void attn_put_char(Buffer *buffer, int32_t c) {
    char bytes[4];
    attn_put_bytes(buffer, bytes, (size_t)utf8proc_encode_char(c, (utf8proc_uint8_t *)bytes));
}

void attn_buffer_free(Buffer *buffer) {
    free(buffer->data);
    *buffer = (Buffer){0};
}

void attn_put_piece(Pieces *pieces, Piece piece) {
    if (pieces->text.failed) return;
    if (pieces->count == pieces->capacity) {
        size_t capacity = pieces->capacity ? 2 * pieces->capacity : 32;
        Piece *list = realloc(pieces->list, capacity * sizeof *list);
        if (!list) {
            pieces->text.failed = true;
            return;
        }
        pieces->list = list;
        pieces->capacity = capacity;
    }
    pieces->list[pieces->count++] = piece;
}

void attn_pieces_clear(Pieces *pieces) {
    pieces->text.size = 0;
    pieces->count = 0;
}

void attn_pieces_free(Pieces *pieces) {
    attn_buffer_free(&pieces->text);
    free(pieces->list);
    *pieces = (Pieces){0};
}

void attn_pieces_swap(Pieces *a, Pieces *b) {
    Pieces c = *a;
    *a = *b;
    *b = c;
}

bool attn_string_copy(String *to, const char *from, size_t size) {
    char *data = malloc(size + 1);
    if (!data) return false;
    if (size) memcpy(data, from, size);
    data[size] = '\0';
    free(to->data);
    *to = (String){data, size};
    return true;
}

void attn_put_id(Ids *to, int32_t id) {
    if (to->result < 0) return;
    if (id < 0) to->result = ATTN_TOKENIZER_NO_TOKEN;
    else if (to->count < to->limit) to->ids[to->count++] = id;
    else if (to->last && to->limit > 0) {
        to->ids[to->begin++] = id;
        to->begin %= to->limit;
    }
}

bool attn_ids_full(const Ids *ids) { return ids->count == ids->limit && !(ids->last && ids->limit > 0); }

static void reverse(int32_t *ids, int count) {
    for (int i = 0; i < count / 2; i++) {
        const int32_t id = ids[i];
        ids[i] = ids[count - 1 - i];
        ids[count - 1 - i] = id;
    }
}

/* Two parts change places when each is reversed, and then the whole. */
void attn_ids_straighten(Ids *ids) {
    if (!ids->begin) return;
    reverse(ids->ids, ids->begin);
    reverse(ids->ids + ids->begin, ids->count - ids->begin);
    reverse(ids->ids, ids->count);
    ids->begin = 0;
}
