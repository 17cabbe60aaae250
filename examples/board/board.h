/* What a program on a board has besides C: a line to the host, and counts. */
#ifndef BOARD_H
#define BOARD_H

#include <stddef.h>
#include <stdint.h>

/* Each board has these three in its own file. */
void board_print(const char *text);
_Noreturn void board_exit(int status);
/* Instructions so far, as an emulator counts them with `-icount shift=0`; elsewhere 0. */
uint64_t board_instructions(void);

static inline void board_print_hex(uint32_t number) {
    char text[9] = {0};
    for (int i = 0; i < 8; i++) text[i] = "0123456789abcdef"[number >> (28 - 4 * i) & 15u];
    board_print(text);
}

/* "NAME NUMBER" as a line */
static inline void board_print_number(const char *name, uint64_t number) {
    char digits[21] = {0}, *at = digits + 20;
    do *--at = (char)('0' + (unsigned)(number % 10u));
    while (number /= 10u);
    board_print(name);
    board_print(" ");
    board_print(at);
    board_print("\n");
}

#endif
