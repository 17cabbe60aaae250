/* peak.c: `peak WIDTH` measures the multiply-adds of vectors of so many numbers by compiler/commands/peak.c, and prints
 * flops per second in whole numbers. */
#include "../../compiler/commands/peak.h"

#include "../../runtime/attn_runtime.h"

#include <stdlib.h>
#include <time.h>

double seconds_now(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void progress_begin(const char *format, ...) { (void)format; }
void progress_tick(void) {}
_Noreturn void out_of_memory(void) { abort(); }
void *attn_alloc(size_t bytes) { return malloc(bytes); }
void attn_free(void *memory) { free(memory); }

int main(int argc, char **argv) {
    Isa isa = {.width = argc > 1 ? atoi(argv[1]) : 0, .fused = true};
    printf("%.0f\n", peak_flops(&isa));
    return 0;
}
