/* heap.c: the pairs of neighbouring symbols that may become one, the best first. */
#include <stdlib.h>

#include "attn_tokenizer_internal.h"

static bool before(const Candidate *a, const Candidate *b) {
    return a->cost < b->cost || (!(a->cost > b->cost) && a->left < b->left);
}

void attn_heap_push(Heap *heap, Candidate candidate) {
    if (heap->count == heap->capacity) {
        const size_t capacity = heap->capacity ? 2 * heap->capacity : 32;
        Candidate *list = realloc(heap->list, capacity * sizeof *list);
        if (!list) {
            heap->failed = true;
            return;
        }
        heap->list = list;
        heap->capacity = capacity;
    }
    Candidate *list = heap->list;
    size_t at = heap->count++;
    for (; at > 0 && before(&candidate, &list[(at - 1) / 2]); at = (at - 1) / 2) list[at] = list[(at - 1) / 2];
    list[at] = candidate;
}

Candidate attn_heap_pop(Heap *heap) {
    Candidate *list = heap->list;
    const Candidate top = list[0], last = list[--heap->count];
    size_t at = 0, child;
    while ((child = 2 * at + 1) < heap->count) {
        if (child + 1 < heap->count && before(&list[child + 1], &list[child])) child++;
        if (!before(&list[child], &last)) break;
        list[at] = list[child];
        at = child;
    }
    list[at] = last;
    return top;
}
