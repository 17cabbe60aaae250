/* timer.h: the median time of a call, for everything that is timed from C. */
#ifndef TIMER_H
#define TIMER_H

/* Calls call(with) for about `seconds`. A sample is as many calls as take `sample` seconds, at least one; the median of
 * all samples, in seconds a call, goes to *median. A call's status that is not 0 ends it and is given back. */
int timer_median(int (*call)(void *with), void *with, double seconds, double sample, double *median, long *calls);

#endif
