/* call.h: one call of the generated code, as its driver takes it. */
#ifndef CALL_H
#define CALL_H

#include "../attnc.h"

/* Arrays stand at their InputRole and OutputRole. */
enum { ATTNC_INPUTS = MOST_INPUTS, ATTNC_OUTPUTS = OUT_COUNT };
#include "../emit/templates/driver_call.h.tmpl"

#endif
