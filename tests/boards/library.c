/* The reset of programs with newlib, which prints and reads by semihosting. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

extern uint32_t __stack[], __bss_start__[], __bss_end__[];
void initialise_monitor_handles(void);
int main(void);

void _init(void) {}
void _fini(void) {}

_Noreturn void library_reset(void);
_Noreturn void library_reset(void) {
    *(volatile uint32_t *)0xe000ed88u |= 0xfu << 20; /* floats and vectors are permitted */
    __asm__ volatile("dsb\n\tisb" : : : "memory");
    for (uint32_t *word = __bss_start__; word < __bss_end__; word++) *word = 0;
    initialise_monitor_handles();
    /* the emulator's own streams: its console loses bytes */
    exit(freopen("/dev/stdin", "rb", stdin) && freopen("/dev/stdout", "ab", stdout) ? main() : 98);
}

static void fault(void) {
    static const uint32_t block[2] = {0x20026u, 99};
    register uint32_t r0 __asm__("r0") = 0x20;
    register const void *r1 __asm__("r1") = block;
    for (;;) __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

typedef union Vector {
    const void *stack;
    void (*run)(void);
} Vector;

__attribute__((section(".vectors"), used)) static const Vector vectors[16] = {
    {.stack = __stack}, {.run = library_reset}, {.run = fault}, {.run = fault}, {.run = fault}, {.run = fault},
    {.run = fault}};
