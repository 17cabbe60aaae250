/* RISC-V of 32 bits: the first instructions, and semihosting, by which a debugger or an emulator prints. */
#include "board.h"

__asm__(".section .vectors, \"ax\"\n"
        ".global link_reset\n"
        "link_reset:\n"
        ".option push\n.option norelax\n"
        "la gp, __global_pointer$\n"
        ".option pop\n"
        ".option arch, +zicsr\n"
        "la sp, link_stack_end\n"
        "la t0, board_fault\n"
        "csrw mtvec, t0\n"
        "li t0, 0x2000\n" /* floats are permitted where there are any */
        "csrs mstatus, t0\n"
        "j board_start\n"
        ".text\n");

static uint32_t semihost(uint32_t operation, const void *with) {
    register uint32_t a0 __asm__("a0") = operation;
    register const void *a1 __asm__("a1") = with;
    __asm__ volatile(".option push\n.option norvc\n.balign 16\n"
                     "slli x0, x0, 0x1f\nebreak\nsrai x0, x0, 7\n"
                     ".option pop" : "+r"(a0) : "r"(a1) : "memory");
    return a0;
}

void board_print(const char *text) { semihost(0x04, text); }

_Noreturn void board_exit(int status) {
    const uint32_t block[2] = {0x20026u, (uint32_t)status};
    for (;;) semihost(0x20, block);
}

__attribute__((aligned(4), used)) void board_fault(void);
void board_fault(void) {
    board_print("a fault\n");
    board_exit(99);
}

uint64_t board_instructions(void) {
    uint32_t high, low, again;
    do
        __asm__ volatile(".option push\n.option arch, +zicsr\n"
                         "csrr %0, minstreth\ncsrr %1, minstret\ncsrr %2, minstreth\n"
                         ".option pop" : "=r"(high), "=r"(low), "=r"(again));
    while (high != again);
    return (uint64_t)high << 32 | low;
}
