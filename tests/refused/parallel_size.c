/* SPDX-License-Identifier: MIT */
/* refused: pass a pointer to them */
#include <weft.h>

#ifdef REFUSED_CONTROL
#define WORDS 6
#else
#define WORDS 7
#endif

struct large {
    long words[WORDS];
};

WEFT_PARALLEL(long, sum, struct large, value)
{
    return value.words[0] + value.words[WORDS - 1];
}
