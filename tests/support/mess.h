/* SPDX-License-Identifier: MIT */
/*
 * mess.h - thread state saved per fiber: errno and the rounding mode.
 */
#ifndef TEST_MESS_H
#define TEST_MESS_H

#include "fiber/context.h"

/* The rounding bits of the control word; none is set initially. */
#if defined(__x86_64__)
#define TEST_ROUNDING (UINT32_C(3) << 13)
#else
#define TEST_ROUNDING (UINT32_C(3) << 22)
#endif

/* A fiber that must find nothing of other fibers' state, and leaves both changed. */
int test_leave_a_mess(void *arg);

#endif
