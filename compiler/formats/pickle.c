/* pickle.c: a stack machine for the opcodes that build tensors and dictionaries. */
#include "pickle.h"

#include "bytes.h"
#include "tensor_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_VALUES = 1 << 22, MOST_ITEMS = 1 << 24 };

typedef struct Machine {
    Arena *arena;
    const char *path;
    const uint8_t *begin, *at, *end;
    bool (*knows)(const char *global);
    PickleValue **stack, **memo; /* NULL in the stack is a mark */
    int depth, stack_room, memorized, memo_room, made, added;
    const PickleValue **outer;
    int outer_count, outer_room;
} Machine;

static _Noreturn void refuse(const Machine *machine, const char *what) {
    fail("%s: its pickle is refused at byte %td: %s", machine->path, machine->at - machine->begin, what);
}

/* ---------------------------------------------------------------- operands */

static const uint8_t *take(Machine *machine, uint64_t bytes) {
    if (bytes > (uint64_t)(machine->end - machine->at)) refuse(machine, "it ends in the middle; is it truncated?");
    machine->at += bytes;
    return machine->at - bytes;
}

static uint64_t take_number(Machine *machine, int bytes) { return number_at(take(machine, (uint64_t)bytes), bytes); }

/* Text of the bytes, which must hold no NUL, since names end at one. */
static const char *take_text(Machine *machine, uint64_t bytes) {
    const uint8_t *from = take(machine, bytes);
    if (memchr(from, 0, bytes)) refuse(machine, "a string with a NUL character");
    return arena_copy(machine->arena, (const char *)from, (size_t)bytes);
}

static const char *take_line(Machine *machine) {
    const uint8_t *end = memchr(machine->at, '\n', (size_t)(machine->end - machine->at));
    if (!end) refuse(machine, "a line without an end");
    const char *text = take_text(machine, (uint64_t)(end - machine->at));
    machine->at++;
    return text;
}

/* ---------------------------------------------------------------- the stack */

static PickleValue *make(Machine *machine, PickleKind kind) {
    if (machine->made++ == MOST_VALUES) refuse(machine, "it has more than 4 million values");
    PickleValue *value = arena_alloc(machine->arena, sizeof *value);
    *value = (PickleValue){.kind = kind};
    return value;
}

static void push(Machine *machine, PickleValue *value) {
    if (machine->depth == MOST_VALUES) refuse(machine, "its stack has more than 4 million values");
    machine->stack = arena_grow(machine->arena, machine->stack, machine->depth, &machine->stack_room,
                                sizeof *machine->stack);
    machine->stack[machine->depth++] = value;
}

static PickleValue *push_kind(Machine *machine, PickleKind kind) {
    PickleValue *value = make(machine, kind);
    push(machine, value);
    return value;
}

static void push_integer(Machine *machine, int64_t integer) { push_kind(machine, PICKLE_INTEGER)->integer = integer; }
static void push_text(Machine *machine, const char *text) { push_kind(machine, PICKLE_TEXT)->text = text; }

/* The value on top, which stays there. */
static PickleValue *top(const Machine *machine) {
    PickleValue *value = machine->depth ? machine->stack[machine->depth - 1] : NULL;
    if (!value) refuse(machine, "a value is missing on the stack");
    return value;
}

static PickleValue *pop(Machine *machine) {
    PickleValue *value = top(machine);
    machine->depth--;
    return value;
}

static void add(Machine *machine, PickleValue *list, const PickleValue *item) {
    if (machine->added++ == MOST_ITEMS) refuse(machine, "its lists have more than 16 million items");
    list->items = arena_grow(machine->arena, list->items, list->count, &list->room, sizeof *list->items);
    list->items[list->count++] = item;
}

/* Removes what is above the last mark, and the mark; the first of these *count values. */
static PickleValue *const *pop_to_mark(Machine *machine, int *count) {
    int mark = machine->depth - 1;
    while (mark >= 0 && machine->stack[mark]) mark--;
    if (mark < 0) refuse(machine, "a mark is missing on the stack");
    *count = machine->depth - mark - 1;
    machine->depth = mark;
    return machine->stack + mark + 1;
}

static void extend(Machine *machine, PickleValue *list, PickleValue *const *items, int count) {
    if (list->kind != PICKLE_TUPLE && list->kind != PICKLE_DICT) refuse(machine, "items of a value that is no list");
    if (list->kind == PICKLE_DICT && count % 2) refuse(machine, "a key without a value");
    for (int i = 0; i < count; i++) add(machine, list, items[i]);
}

static void push_marked(Machine *machine, PickleKind kind) {
    int count = 0;
    PickleValue *const *items = pop_to_mark(machine, &count);
    PickleValue *list = make(machine, kind);
    extend(machine, list, items, count);
    push(machine, list);
}

/* Removes the values [count] on top, below which there are `others` at least. */
static PickleValue *const *pop_values(Machine *machine, int count, int others) {
    if (machine->depth < count + others) refuse(machine, "a value is missing on the stack");
    machine->depth -= count;
    PickleValue *const *items = machine->stack + machine->depth;
    for (int i = 0; i < count; i++)
        if (!items[i]) refuse(machine, "a mark where a value is expected");
    return items;
}

/* A tuple of the values on top, or what `kind` says besides. */
static void push_of_top(Machine *machine, PickleKind kind, int count) {
    PickleValue *list = make(machine, kind);
    PickleValue *const *items = pop_values(machine, count, 0);
    for (int i = 0; i < count; i++) add(machine, list, items[i]);
    push(machine, list);
}

static void append(Machine *machine, int count) {
    PickleValue *const *items = pop_values(machine, count, 1);
    extend(machine, top(machine), items, count);
}

static void append_marked(Machine *machine) {
    int count = 0;
    PickleValue *const *items = pop_to_mark(machine, &count);
    extend(machine, top(machine), items, count);
}

/* ---------------------------------------------------------------- the memo */

static void memorize(Machine *machine, uint64_t index) {
    PickleValue *value = top(machine);
    if (index >= MOST_VALUES) refuse(machine, "its memo has more than 4 million entries");
    while ((uint64_t)machine->memorized <= index) {
        machine->memo = arena_grow(machine->arena, machine->memo, machine->memorized, &machine->memo_room,
                                   sizeof *machine->memo);
        machine->memo[machine->memorized++] = NULL;
    }
    machine->memo[index] = value;
}

static void recall(Machine *machine, uint64_t index) {
    PickleValue *value = index < (uint64_t)machine->memorized ? machine->memo[index] : NULL;
    if (!value) refuse(machine, "an entry that its memo lacks");
    push(machine, value);
}

/* ---------------------------------------------------------------- functions */

static void push_global(Machine *machine, const char *module, const char *name) {
    const char *whole = arena_printf(machine->arena, "%s.%s", module, name);
    if (!machine->knows(whole))
        refuse(machine, arena_printf(machine->arena, "it calls or names `%s`; tensors and dictionaries alone are read, "
                                     "and nothing is executed", tensor_shown(machine->arena, whole)));
    push_kind(machine, PICKLE_GLOBAL)->text = whole;
}

static void push_stack_global(Machine *machine) {
    const PickleValue *name = pop(machine), *module = pop(machine);
    if (name->kind != PICKLE_TEXT || module->kind != PICKLE_TEXT) refuse(machine, "a global whose name is no string");
    push_global(machine, module->text, name->text);
}

/* An ordered dictionary is a dictionary, to which items are added later; its argument can be a list of pairs. */
static void push_ordered_dict(Machine *machine, const PickleValue *arguments) {
    PickleValue *dict = make(machine, PICKLE_DICT);
    const PickleValue *pairs = arguments->count ? arguments->items[0] : NULL;
    if (arguments->count > 1 || (pairs && pairs->kind != PICKLE_TUPLE)) refuse(machine, "an OrderedDict of no list");
    for (int i = 0; pairs && i < pairs->count; i++) {
        const PickleValue *pair = pairs->items[i];
        if (pair->kind != PICKLE_TUPLE || pair->count != 2) refuse(machine, "an OrderedDict of no pairs");
        add(machine, dict, pair->items[0]);
        add(machine, dict, pair->items[1]);
    }
    push(machine, dict);
}

static void call(Machine *machine) {
    const PickleValue *arguments = pop(machine), *function = pop(machine);
    if (function->kind != PICKLE_GLOBAL || arguments->kind != PICKLE_TUPLE)
        refuse(machine, "a call of a value that is no function");
    if (strcmp(function->text, "collections.OrderedDict") == 0) {
        push_ordered_dict(machine, arguments);
        return;
    }
    *push_kind(machine, PICKLE_CALL) = (PickleValue){
        .kind = PICKLE_CALL, .text = function->text, .items = arguments->items, .count = arguments->count};
}

static void push_outer(Machine *machine) {
    push_of_top(machine, PICKLE_OUTER, 1);
    machine->outer = arena_grow(machine->arena, machine->outer, machine->outer_count, &machine->outer_room,
                                sizeof *machine->outer);
    machine->outer[machine->outer_count++] = top(machine);
}

/* The attributes of a dictionary, in which a module's state_dict has its version numbers, hold no tensors. */
static void set_attributes(Machine *machine) {
    pop(machine);
    if (top(machine)->kind != PICKLE_DICT) refuse(machine, "attributes of a value that is no dictionary");
}

/* ---------------------------------------------------------------- the opcodes */

/* An integer in two's complement of any length. */
static void push_long(Machine *machine, uint64_t bytes) {
    const uint8_t *from = take(machine, bytes);
    uint64_t bits = number_at(from, bytes > 8 ? 8 : (int)bytes);
    if (bytes > 8) push_kind(machine, PICKLE_PLAIN);
    else if (bytes && bytes < 8 && from[bytes - 1] & 0x80) push_integer(machine, (int64_t)(bits | -1ull << 8 * bytes));
    else push_integer(machine, (int64_t)bits);
}

static void push_bytes(Machine *machine, uint64_t bytes) {
    take(machine, bytes);
    push_kind(machine, PICKLE_PLAIN);
}

static void step(Machine *machine, uint8_t opcode) {
    const char *module;
    switch (opcode) {
    case '(': push(machine, NULL); return;
    case 'N': push_kind(machine, PICKLE_PLAIN); return;
    case 'G': push_bytes(machine, 8); return;
    case 0x88: push_integer(machine, 1); return;
    case 0x89: push_integer(machine, 0); return;
    case 'J': push_integer(machine, (int32_t)take_number(machine, 4)); return;
    case 'K': push_integer(machine, (int64_t)take_number(machine, 1)); return;
    case 'M': push_integer(machine, (int64_t)take_number(machine, 2)); return;
    case 0x8a: push_long(machine, take_number(machine, 1)); return;
    case 0x8b: push_long(machine, take_number(machine, 4)); return;
    case 'X': case 'T': push_text(machine, take_text(machine, take_number(machine, 4))); return;
    case 0x8c: case 'U': push_text(machine, take_text(machine, take_number(machine, 1))); return;
    case 0x8d: push_text(machine, take_text(machine, take_number(machine, 8))); return;
    case 'B': push_bytes(machine, take_number(machine, 4)); return;
    case 'C': push_bytes(machine, take_number(machine, 1)); return;
    case 0x8e: push_bytes(machine, take_number(machine, 8)); return;
    case '}': push_kind(machine, PICKLE_DICT); return;
    case ')': case ']': case 0x8f: push_kind(machine, PICKLE_TUPLE); return;
    case 0x85: push_of_top(machine, PICKLE_TUPLE, 1); return;
    case 0x86: push_of_top(machine, PICKLE_TUPLE, 2); return;
    case 0x87: push_of_top(machine, PICKLE_TUPLE, 3); return;
    case 't': case 'l': push_marked(machine, PICKLE_TUPLE); return;
    case 'd': push_marked(machine, PICKLE_DICT); return;
    case 'a': append(machine, 1); return;
    case 's': append(machine, 2); return;
    case 'e': case 'u': case 0x90: append_marked(machine); return;
    case 'q': memorize(machine, take_number(machine, 1)); return;
    case 'r': memorize(machine, take_number(machine, 4)); return;
    case 0x94: memorize(machine, (uint64_t)machine->memorized); return;
    case 'h': recall(machine, take_number(machine, 1)); return;
    case 'j': recall(machine, take_number(machine, 4)); return;
    case 'c':
        module = take_line(machine);
        push_global(machine, module, take_line(machine));
        return;
    case 0x93: push_stack_global(machine); return;
    case 'R': call(machine); return;
    case 'b': set_attributes(machine); return;
    case 'Q': push_outer(machine); return;
    case 0x80: take(machine, 1); return; /* the protocol */
    case 0x95: take(machine, 8); return; /* the length of a frame */
    default:
        machine->at--;
        refuse(machine, arena_printf(machine->arena, "opcode 0x%02x, which neither tensors nor dictionaries need",
                                     opcode));
    }
}

Pickle pickle_read(Arena *arena, const char *path, const uint8_t *data, size_t size,
                   bool (*knows)(const char *global)) {
    Machine machine = {.arena = arena, .path = path, .begin = data, .at = data, .end = data + size,
                       .knows = knows};
    for (uint8_t opcode; (opcode = *take(&machine, 1)) != '.';) step(&machine, opcode);
    const PickleValue *whole = pop(&machine);
    if (machine.depth) refuse(&machine, "it ends with values on its stack");
    return (Pickle){whole, machine.outer, machine.outer_count, (size_t)(machine.at - machine.begin)};
}
