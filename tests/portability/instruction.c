/* instruction NAME: one of that set, which ends the program where the processor lacks it. */
#include <string.h>

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "sse3") == 0) __asm__ volatile("haddps %xmm0, %xmm0");
    else if (strcmp(name, "avx") == 0) __asm__ volatile("vaddps %ymm0, %ymm0, %ymm0");
    else if (strcmp(name, "avx2") == 0) __asm__ volatile("vpaddd %ymm0, %ymm0, %ymm0");
    else if (strcmp(name, "fma") == 0) __asm__ volatile("vfmadd231ps %xmm0, %xmm0, %xmm0");
    else if (strcmp(name, "avx512") == 0) __asm__ volatile("vaddps %zmm0, %zmm0, %zmm0");
    else return 2;
    return 0;
}
