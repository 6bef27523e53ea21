/* SPDX-License-Identifier: MIT */
/*
 * kernel.h - what the kernel does for I/O, in the model: descriptors that become readable,
 * eventfds, and an epoll instance. For programs that are built with close=model_close and so on,
 * see CMakeLists.txt.
 */
#ifndef MODEL_KERNEL_H
#define MODEL_KERNEL_H

#include <stdbool.h>

enum {
    KERNEL_FIRST_FD = 3, /* so many others are the test's own, from this one on: */
    KERNEL_FDS = 4,
};

/* Any thread: something comes, and the descriptor is readable from now on. An event, by edge. */
void kernel_readable(int fd);

/* With rings, any thread: the descriptor is the program's no more; and nothing waits for it. */
void kernel_close(int fd);
void kernel_await_let_go(int fd);

/* This thread: it sleeps from now on, somewhere, or is often interrupted, so that
 * what is for it is delivered at once; or does so no more. Only rings
 * make a difference of it. */
void kernel_thread_sleeps(bool does);

/* With rings: so many events that come next are dropped, and counted. */
void kernel_drops(unsigned count);

/* How many descriptors that the code under test has opened it has not closed. */
unsigned kernel_open_count(void);

#endif
