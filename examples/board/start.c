/* The begin and the end of a program on a board, and what a compiler may call without being asked. link.ld defines the
 * symbols. */
#include "board.h"

extern uint32_t link_data[], link_data_end[], link_data_load[], link_bss[], link_bss_end[];
extern uint32_t link_stack[], link_stack_end[];
extern unsigned char link_flash[], link_flash_end[];

int main(void);
_Noreturn void board_start(void);

void *memcpy(void *restrict to, const void *restrict from, size_t size) {
    unsigned char *t = to;
    const unsigned char *f = from;
    while (size--) *t++ = *f++;
    return to;
}

void *memmove(void *to, const void *from, size_t size) {
    unsigned char *t = to;
    const unsigned char *f = from;
    if (t > f)
        while (size--) t[size] = f[size];
    else
        while (size--) *t++ = *f++;
    return to;
}

void *memset(void *to, int value, size_t size) {
    unsigned char *t = to;
    while (size--) *t++ = (unsigned char)value;
    return to;
}

int memcmp(const void *a, const void *b, size_t size) {
    const unsigned char *x = a, *y = b;
    for (; size--; x++, y++)
        if (*x != *y) return *x < *y ? -1 : 1;
    return 0;
}

enum { PAINT = 0x5aa5c33c };

/* Paints the free stack, runs main, and tells how much of the stack is no longer painted. */
_Noreturn void board_start(void) {
    for (size_t i = 0; i < (size_t)(link_data_end - link_data); i++) link_data[i] = link_data_load[i];
    for (uint32_t *word = link_bss; word < link_bss_end; word++) *word = 0;
    volatile uint32_t *free = link_stack;
    for (volatile uint32_t here = 0; (uintptr_t)free < (uintptr_t)&here - 64u; free++) *free = PAINT;
    const int status = main();
    for (free = link_stack; *free == PAINT;) free++;
    board_print_number("flash", (uint64_t)(link_flash_end - link_flash));
    board_print_number("arrays", (uint64_t)((uintptr_t)link_bss_end - (uintptr_t)link_data));
    board_print_number("stack", (uint64_t)((uintptr_t)link_stack_end - (uintptr_t)free));
    board_exit(status);
}
