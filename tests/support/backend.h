/* SPDX-License-Identifier: MIT */
/*
 * backend.h - conformance tests for I/O backends. They run with the backend that config.io or
 * WEFT_IO names.
 */
#ifndef TEST_BACKEND_H
#define TEST_BACKEND_H

#include <weft.h>

#include "test.h"

/* Tests that need io_uring in the library, or a library without it. */
#ifdef WF_HAS_URING
#define TEST_URING(function)    TEST(function)
#define TEST_NO_URING(function) TEST_UNLESS(function, "the library has io_uring")
#else
#define TEST_URING(function)    TEST_UNLESS(function, "the library has no io_uring")
#define TEST_NO_URING(function) TEST(function)
#endif

/* While there is no I/O, no worker runs, even with open connections. */
void backend_is_idle(weft_io_backend backend);

/* Sleeping workers are woken by events, by injected tasks and by timers, all mixed. */
void backend_wakes_for_everything(weft_io_backend backend);

/* A task that waits for one direction does not run while only the other is ready: a writer whose
 * peer has half-closed and does not read, or a reader on a writable descriptor. */
void backend_waits_for_what_was_asked(weft_io_backend backend);

/* Events that the kernel no longer waits for, because of interference, are requested again. */
void backend_asks_again(weft_io_backend backend, void (*interfere)(weft_runtime *rt));

/* Same as backend_asks_again(), after the backend has lost events. */
void backend_starts_anew(weft_io_backend backend);

/* With the clock paused, a worker that sleeps in the backend wakes when the clock is advanced. */
void backend_knows_paused_time(weft_io_backend backend);

/* Events of a computing worker are handled: by a free worker, or at its forks. */
void backend_does_not_freeze(weft_io_backend backend);

/* A flood of events does not starve other tasks. */
void backend_takes_turns(weft_io_backend backend);

/* A source on which a plain thread has waited still works for other waiters while that thread
 * computes, and after it has ended. */
void backend_outlives_threads(weft_io_backend backend);

/* A worker that polls on behalf of another, which only seems stalled, loses none of its wakes. */
void backend_keeps_wakes(weft_io_backend backend);

#endif
