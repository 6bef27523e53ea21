/* SPDX-License-Identifier: MIT */
/*
 * sandbox.h - seccomp filters, as containers install them, and children to run them in.
 */
#ifndef TEST_SANDBOX_H
#define TEST_SANDBOX_H

/* From now on this system call fails with the error number, in all threads of this process and
 * in its children. This cannot be undone: call it in a child. */
void sandbox_forbid(long call, int error);

/* Runs the function in a child process and checks that it returns. Only where no other thread
 * runs. */
void sandbox_run(void (*function)(const void *arg), const void *arg);

#endif
