/* peak.h: what this machine can do, measured. */
#ifndef PEAK_H
#define PEAK_H

/* Fused (scalar: separate) multiply-adds of one core a second, times 2; the best of several numbers of chains of the
 * target's own instructions, 100 ms each. 0 when this machine lacks the target. */
double peak_flops(const char *target);

/* Bytes that one core reads from memory a second, over a buffer far larger than the caches. */
double read_bandwidth(void);

#endif
