/* Cortex-M: the vector table, the reset, and semihosting, by which a debugger or an emulator prints. */
#include "board.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))

extern uint32_t link_stack_end[];
_Noreturn void board_start(void);

static uint32_t semihost(uint32_t operation, const void *with) {
    register uint32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = with;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void board_print(const char *text) { semihost(0x04, text); }

_Noreturn void board_exit(int status) {
    const uint32_t block[2] = {0x20026u, (uint32_t)status};
    for (;;) semihost(0x20, block);
}

/* SysTick counts down from 2^24 - 1 by the clock of the board, BOARD_HZ; an instruction of the emulator takes 1 ns. */
#ifndef BOARD_HZ
#define BOARD_HZ 25000000u
#endif

static volatile uint32_t wraps;

static void tick(void) { wraps++; }

uint64_t board_instructions(void) {
    uint32_t high, low;
    do high = wraps, low = REGISTER(0xe000e018u);
    while (high != wraps);
    return (((uint64_t)high << 24) + (0xffffffu - low)) * (1000000000u / BOARD_HZ);
}

static _Noreturn void reset(void) {
    REGISTER(0xe000ed88u) |= 0xfu << 20; /* floats and vectors are permitted */
    __asm__ volatile("dsb\n\tisb" : : : "memory");
    REGISTER(0xe000e014u) = 0xffffffu;
    REGISTER(0xe000e018u) = 0;
    REGISTER(0xe000e010u) = 7u;
    board_start();
}

static void fault(void) {
    board_print("a fault\n");
    board_exit(99);
}

typedef union Vector {
    const void *stack;
    void (*run)(void);
} Vector;

__attribute__((section(".vectors"), used)) static const Vector vectors[16] = {
    [0] = {.stack = link_stack_end}, [1] = {.run = reset}, [2] = {.run = fault},  [3] = {.run = fault},
    [4] = {.run = fault},            [5] = {.run = fault}, [6] = {.run = fault},  [7] = {.run = fault},
    [11] = {.run = fault},           [12] = {.run = fault}, [14] = {.run = fault}, [15] = {.run = tick}};
