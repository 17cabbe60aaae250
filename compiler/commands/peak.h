/* peak.h: measures the peak rates of this machine. */
#ifndef PEAK_H
#define PEAK_H

#include "../attnc.h"

/* Flops per second of one core: multiply-adds of the target's vectors, fused or separate according to its table; the
 * best of several numbers of chains, 100 ms each. This machine must run the target. 0 if the rate is unknown. */
double peak_flops(const Isa *isa);

/* Bytes per second that one core reads from a buffer that is far larger than the caches. */
double read_bandwidth(void);

#endif
