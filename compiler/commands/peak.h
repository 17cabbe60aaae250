/* peak.h: measures the peak rates of this machine. */
#ifndef PEAK_H
#define PEAK_H

#include "../attnc.h"

/* Flops per second of one core: multiply-adds of the target's vectors, fused or separate according to its table; the
 * best of several numbers of chains, 100 ms each. This machine must run the target. 0 if the rate is unknown. */
double peak_flops(const Isa *isa);

/* Operations per second, two a multiply-add, of the instructions with which the target multiplies rows of that type;
 * 0 where these are the target's vectors of floats, or the rate is unknown. This machine must run the target. */
double peak_unit(const Isa *isa, Dtype rows);

/* Bytes per second that one core reads from a buffer that is far larger than the caches. */
double read_bandwidth(void);

#endif
