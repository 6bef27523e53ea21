/* SPDX-License-Identifier: MIT */
/* refused: pass a pointer to them */
/* The words of a fork are aligned to 16 bytes. */
#include <weft.h>

#ifdef REFUSED_CONTROL
typedef double quad __attribute__((vector_size(16)));
#else
typedef double quad __attribute__((vector_size(32)));
#endif

WEFT_PARALLEL(quad, twice, quad, value)
{
    return value + value;
}
