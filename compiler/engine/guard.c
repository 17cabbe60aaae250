/* guard.c: memory between inaccessible pages, and what a crash did to it. */
#include "guard.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#if defined(__x86_64__)
#include <ucontext.h>
#endif
#include <unistd.h>

/* Tells MemorySanitizer that fresh memory is uninitialized, although it holds NaN. */
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#include <sanitizer/msan_interface.h>
#define UNDEFINED(memory, bytes) __msan_poison(memory, bytes)
#endif
#endif
#ifndef UNDEFINED
#define UNDEFINED(memory, bytes) ((void)0)
#endif

enum { CANARY = 512, CANARY_BYTE = 0xc5, NAN_BYTE = 0xff };

struct Guard {
    const char *what;
    uint8_t *base, *first, *data; /* the mapping, the room in it, and the placed bytes */
    size_t mapped, room, bytes;
    bool fixed; /* read-only */
    Guard *next;
};

static Guard *guards; /* the list of all guards, for on_crash */

GuardSide guard_other(GuardSide side) { return side == GUARD_BEHIND ? GUARD_IN_FRONT : GUARD_BEHIND; }

static void guard_free(void *with) {
    Guard *guard = with;
    for (Guard **at = &guards; *at; at = &(*at)->next)
        if (*at == guard) {
            *at = guard->next;
            break;
        }
    munmap(guard->base, guard->mapped);
}

Guard *guard_new(Arena *arena, const char *what, size_t most) {
    /* 128 more bytes leave room for an alignment of 64 and a shift by as much. */
    size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (most + 128 + page - 1) / page * page;
    Guard *guard = arena_alloc(arena, sizeof *guard);
    *guard = (Guard){.what = what, .room = room, .mapped = room + 2 * page};
    void *base = mmap(NULL, guard->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) out_of_memory();
    guard->base = base;
    guard->first = guard->data = guard->base + page;
    if (mprotect(guard->first, room, PROT_READ | PROT_WRITE)) {
        munmap(base, guard->mapped);
        out_of_memory();
    }
    guard->next = guards;
    guards = guard;
    arena_on_free(arena, guard_free, guard);
    guard_place(guard, 0, 1, GUARD_BEHIND);
    return guard;
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }
static size_t in_front(const Guard *guard) { return least((size_t)(guard->data - guard->first), CANARY); }

static size_t behind(const Guard *guard) {
    return least((size_t)(guard->first + guard->room - guard->data) - guard->bytes, CANARY);
}

void *guard_place(Guard *guard, size_t bytes, size_t alignment, GuardSide side) {
    size_t whole = (bytes + alignment - 1) / alignment * alignment, shift = side == GUARD_SHIFTED ? alignment : 0;
    if (whole + shift > guard->room) bug("%zu bytes of %s are more than its room", bytes, guard->what);
    if (guard->fixed && mprotect(guard->first, guard->room, PROT_READ | PROT_WRITE)) out_of_memory();
    guard->fixed = false;
    guard->data = side == GUARD_IN_FRONT ? guard->first : guard->first + guard->room - whole - shift;
    guard->bytes = bytes;
    memset(guard->data - in_front(guard), CANARY_BYTE, in_front(guard));
    memset(guard->data, NAN_BYTE, bytes);
    UNDEFINED(guard->data, bytes);
    memset(guard->data + bytes, CANARY_BYTE, behind(guard));
    return guard->data;
}

void guard_fill(Guard *guard, uint32_t word) {
    for (size_t at = 0; at + sizeof word <= guard->bytes; at += sizeof word)
        memcpy(guard->data + at, &word, sizeof word);
    UNDEFINED(guard->data, guard->bytes);
}

const void *guard_input(Guard *guard, const void *data, size_t bytes, size_t alignment, GuardSide side) {
    if (!data) return NULL;
    memcpy(guard_place(guard, bytes, alignment, side), data, bytes);
    if (mprotect(guard->first, guard->room, PROT_READ)) out_of_memory();
    guard->fixed = true;
    return guard->data;
}

const char *guard_damage(Arena *arena, const Guard *guard) {
    const char *side = NULL;
    for (size_t i = 1; i <= in_front(guard); i++)
        if (*(guard->data - i) != CANARY_BYTE) side = "in front of";
    for (size_t i = 0; i < behind(guard); i++)
        if (guard->data[guard->bytes + i] != CANARY_BYTE) side = "behind";
    return side ? arena_printf(arena, "a write %s %s", side, guard->what) : NULL;
}

/* ---------------------------------------------------------------- crashes */

static sigjmp_buf crash_jump;
static volatile sig_atomic_t crash_pooled;
static char crash_text[160];

static void add_word(const char *word) { /* snprintf may not be called in a signal handler */
    size_t n = strlen(crash_text), more = strlen(word);
    if (n + more < sizeof crash_text) memcpy(crash_text + n, word, more + 1);
}

/* Adds the side of the nearest memory; an address beyond a guard's pages belongs to no guard. */
static void tell_crash(const uint8_t *address, const char *access) {
    for (const Guard *guard = guards; guard; guard = guard->next) {
        if (address < guard->base || address >= guard->base + guard->mapped) continue;
        add_word(access);
        add_word(address < guard->data ? "in front of " : address >= guard->data + guard->bytes ? "behind " : "to ");
        add_word(guard->what);
        return;
    }
    add_word("a read or write outside the memory that the call was given (or a trap)");
}

static void on_crash(int number, siginfo_t *info, void *context) {
    const char *access = "a read or write ";
#if defined(__x86_64__)
    access = ((const ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] & 2 ? "a write " : "a read ";
#else
    (void)context;
#endif
    if (number == SIGBUS) mapping_lost(info->si_addr);
    crash_text[0] = 0;
    if (crash_pooled) add_word("attnc: error: ");
    tell_crash(number == SIGSEGV || number == SIGBUS ? info->si_addr : NULL, access);
    if (!crash_pooled) siglongjmp(crash_jump, number);
    add_word(" in a thread of the pool\n");
    progress_hide();
    folders_remove();
    if (write(STDERR_FILENO, crash_text, strlen(crash_text)) < 0) _exit(EXIT_BUG);
    _exit(EXIT_USER);
}

int guard_call(int (*function)(void *with), void *with, bool pooled) {
    static const int caught[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    enum { CAUGHT = sizeof caught / sizeof *caught };
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO}, old[CAUGHT];
    fflush(stdout);
    crash_pooled = pooled;
    for (int i = 0; i < CAUGHT; i++) sigaction(caught[i], &action, &old[i]);
    int status = GUARD_CRASHED;
    if (!sigsetjmp(crash_jump, 1)) status = function(with);
    for (int i = 0; i < CAUGHT; i++) sigaction(caught[i], &old[i], NULL);
    return status;
}

const char *guard_crash(void) { return crash_text; }
