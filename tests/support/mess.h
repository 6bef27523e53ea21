/* SPDX-License-Identifier: MIT */
/*
 * mess.h - what a fiber has of its own beside its frames: errno, and how arithmetic
 * rounds.
 */
#ifndef TEST_MESS_H
#define TEST_MESS_H

#include "fiber/context.h"

/* The bits of the control word that say how to round; none of them is set at first. */
#if defined(__x86_64__)
#define TEST_ROUNDING (UINT32_C(3) << 13)
#else
#define TEST_ROUNDING (UINT32_C(3) << 22)
#endif

/* A fiber that must find nothing of others, and leaves both changed. */
int test_leave_a_mess(void *arg);

#endif
