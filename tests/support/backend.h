/* SPDX-License-Identifier: MIT */
/*
 * backend.h - what every backend of I/O must do, for the tests of each. They run with the
 * backend that config.io or WEFT_IO names.
 */
#ifndef TEST_BACKEND_H
#define TEST_BACKEND_H

#include <weft.h>

#include "test.h"

/* Tests that need io_uring in the library, or need it to be left out. */
#ifdef WF_HAS_URING
#define TEST_URING(function)    TEST(function)
#define TEST_NO_URING(function) TEST_UNLESS(function, "the library has io_uring")
#else
#define TEST_URING(function)    TEST_UNLESS(function, "the library has no io_uring")
#define TEST_NO_URING(function) TEST(function)
#endif

/* Without I/O for a while, but with connections open, no worker runs. */
void backend_is_idle(weft_io_backend backend);

/* Workers that sleep are woken by events, by tasks from outside and by timers, all mixed. */
void backend_wakes_for_everything(weft_io_backend backend);

/* Who waits for one thing while another one is there, for room at a peer that writes no more, or
 * for data at a descriptor with room, does not run meanwhile. */
void backend_waits_for_what_was_asked(weft_io_backend backend);

/* What the kernel waits for no longer, since somebody has interfered, is asked for again. */
void backend_asks_again(weft_io_backend backend, void (*interfere)(weft_runtime *rt));

/* The same, when the backend has lost events. */
void backend_starts_anew(weft_io_backend backend);

/* With the program's time paused, who sleeps in the backend wakes when it is moved. */
void backend_knows_paused_time(weft_io_backend backend);

/* Events of a worker that computes are handled: by one that is free, or at its forks. */
void backend_does_not_freeze(weft_io_backend backend);

/* A flood of events does not keep other tasks waiting. */
void backend_takes_turns(weft_io_backend backend);

/* What a plain thread has waited for is still waited for by others while that thread computes,
 * and when it has ended. */
void backend_outlives_threads(weft_io_backend backend);

/* Who handles the events of a worker that seems to compute takes no wake away from it. */
void backend_keeps_wakes(weft_io_backend backend);

#endif
