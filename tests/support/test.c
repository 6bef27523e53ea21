/* SPDX-License-Identifier: MIT */
/*
 * test.c - test framework: runs tests and reports failures.
 */
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    SKIPPED = 77, /* exit code that ctest reports as skipped */
};

static const char *current = "";
static _Atomic(bool) is_skipped; /* applies to the current test */
static uint64_t seed;

_Noreturn void test_fail(const char *file, int line, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)fprintf(stderr, "%s:%d: %s: %s (WEFT_TEST_SEED=%llu)\n", file, line, current, text,
                  (unsigned long long)seed);
    _exit(1);
}

static void report_skip(const char *reason)
{
    (void)printf("skip %s: %s\n", current, reason);
}

void test_skip(const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!atomic_exchange(&is_skipped, true)) {
        report_skip(text);
    }
}

void test_must_have_debug(void)
{
#ifndef WF_DEBUG
    test_fail(__FILE__, __LINE__, "needs a debug library: list it with TEST_DEBUG()");
#endif
}

uint64_t test_seed(void)
{
    if (seed == 0) {
        const char *text = getenv("WEFT_TEST_SEED");
        struct timespec now;
        (void)clock_gettime(CLOCK_REALTIME, &now);
        seed = text != NULL ? strtoull(text, NULL, 10)
                            : (uint64_t)now.tv_sec * 1000000007u + (uint64_t)now.tv_nsec;
        seed += seed == 0;
    }
    return seed;
}

unsigned test_workers(unsigned otherwise)
{
    const char *text = getenv("WEFT_TEST_WORKERS");
    return text != NULL ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

bool test_is_sanitized(void)
{
    return TEST_IS_SANITIZED;
}

uint64_t test_scale(uint64_t n)
{
    const char *text = getenv("WEFT_TEST_SCALE");
    double scale = text != NULL ? strtod(text, NULL) : 1;
    double scaled = (double)n * scale / (test_is_sanitized() ? 20 : 1);
    return scaled < 1 ? 1 : (uint64_t)scaled;
}

int64_t test_cpu_ns(void)
{
    struct timespec cpu;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    return (int64_t)cpu.tv_sec * 1000000000 + cpu.tv_nsec;
}

size_t test_rss_bytes(void)
{
    unsigned long size = 0;
    unsigned long resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%lu %lu", &size, &resident) != 2) {
        test_fail(__FILE__, __LINE__, "cannot read /proc/self/statm");
    }
    (void)fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

void test_set_default_stack(size_t bytes)
{
    pthread_attr_t attributes;
    CHECK_EQ(pthread_attr_init(&attributes), 0);
    CHECK_EQ(pthread_attr_setstacksize(&attributes, bytes), 0);
    CHECK_EQ(pthread_setattr_default_np(&attributes), 0);
    CHECK_EQ(pthread_attr_destroy(&attributes), 0);
}

void test_wait_for(_Atomic(uint64_t) *word, uint64_t n)
{
    while (atomic_load(word) < n) {
        (void)sched_yield();
    }
}

void test_check_has(const char *file, int line, const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        test_fail(file, line, "'%s' does not contain '%s'", text, part);
    }
}

void test_check_aborts(const char *file, int line, void (*function)(void), const char *part)
{
    int ends[2];
    if (pipe(ends) != 0) {
        test_fail(file, line, "pipe failed");
    }
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = { 0, 0 };
        (void)setrlimit(RLIMIT_CORE, &none);
        (void)signal(SIGABRT, SIG_DFL);
        (void)dup2(ends[1], STDERR_FILENO);
        (void)close(ends[0]);
        function();
        _exit(0);
    }
    (void)close(ends[1]);
    char text[4096];
    size_t length = 0;
    ssize_t n;
    while (length < sizeof text - 1 &&
           (n = read(ends[0], text + length, sizeof text - 1 - length)) > 0) {
        length += (size_t)n;
    }
    text[length] = '\0';
    (void)close(ends[0]);
    int status = 0;
    (void)waitpid(child, &status, 0);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT) {
        test_fail(file, line, "did not abort (status %d): %s", status, text);
    }
    test_check_has(file, line, text, part);
}

int test_run_all(const struct test *tests, size_t count, int argc, char **argv)
{
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    (void)printf("seed %llu\n", (unsigned long long)test_seed());
    size_t run = 0;
    size_t skipped = 0;
    for (size_t i = 0; i < count; i++) {
        if (argc > 1 && strstr(tests[i].name, argv[1]) == NULL) {
            continue;
        }
        current = tests[i].name;
        if (tests[i].skip_reason != NULL) {
            report_skip(tests[i].skip_reason);
            skipped++;
            continue;
        }
        atomic_store(&is_skipped, false);
        tests[i].run();
        if (atomic_load(&is_skipped)) {
            skipped++;
        } else {
            (void)printf("ok %s\n", current);
            run++;
        }
    }
    (void)printf("%zu tests, %zu skipped\n", run, skipped);
    if (run > 0) {
        return 0;
    }
    return skipped > 0 ? SKIPPED : 1;
}
