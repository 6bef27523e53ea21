/* SPDX-License-Identifier: MIT */
/*
 * child.h - running code that may kill the process or exhaust its resources, in a child
 * process.
 */
#ifndef CHILD_H
#define CHILD_H

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum {
    CHILD_SKIPPED = 77,
};

struct child {
    int signal;      /* signal that ended it, or 0 */
    int code;        /* exit code otherwise */
    char text[8192]; /* its stderr */
};

static inline void become_child(int stderr_end)
{
    static const int deadly[] = { SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE, SIGABRT };
    const struct sigaction by_default = { .sa_handler = SIG_DFL };
    for (size_t i = 0; i < sizeof deadly / sizeof deadly[0]; i++) {
        CHECK_EQ(sigaction(deadly[i], &by_default, NULL), 0);
    }
    const struct rlimit no_core = { 0, 0 };
    CHECK_EQ(setrlimit(RLIMIT_CORE, &no_core), 0);
    CHECK_EQ(dup2(stderr_end, STDERR_FILENO), STDERR_FILENO);
}

static inline void read_all(int from, char *text, size_t size)
{
    size_t length = 0;
    ssize_t n;
    while (length < size - 1 && (n = read(from, text + length, size - 1 - length)) > 0) {
        length += (size_t)n;
    }
    text[length] = '\0';
}

/* Runs function(arg) in a child process, which exits with 0 if the function returns. No other
 * thread may be running. */
static inline void child_run(struct child *child, void (*function)(void *arg), void *arg)
{
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    (void)fflush(NULL);
    pid_t pid = fork();
    CHECK_GE(pid, 0);
    if (pid == 0) {
        become_child(ends[1]);
        (void)close(ends[0]);
        function(arg);
        _exit(0);
    }
    (void)close(ends[1]);
    read_all(ends[0], child->text, sizeof child->text);
    (void)close(ends[0]);
    int status = 0;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    child->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    child->code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

/* Reports from a child that it cannot run here. */
_Noreturn static inline void child_skip(const char *reason)
{
    (void)fputs(reason, stderr);
    (void)fflush(stderr);
    _exit(CHILD_SKIPPED);
}

/* Same as child_run(), and fails the test unless all checks in the child hold. Skips the test
 * if the child does. */
static inline void child_must_succeed(void (*function)(void *arg), void *arg)
{
    struct child child;
    child_run(&child, function, arg);
    if (child.signal == 0 && child.code == CHILD_SKIPPED) {
        test_skip("%s", child.text);
        return;
    }
    if (child.signal != 0 || child.code != 0) {
        test_fail(__FILE__, __LINE__, "signal %d, code %d: %s", child.signal, child.code,
                  child.text);
    }
}

#endif
