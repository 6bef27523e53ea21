/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

extern int number;
