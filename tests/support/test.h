/* SPDX-License-Identifier: MIT */
/*
 * test.h - test framework: checks, a table of tests, a seed.
 *
 * A test file is one program. Its tests are static functions, listed once:
 *
 *     TEST_MAIN({ TEST(push_to_full_returns_false) })
 *
 * A failed check prints both values and ends the program with 1. A test that cannot run here is
 * reported as skipped, with a reason. The program ends with 77 if all its tests are skipped.
 */
#ifndef TEST_H
#define TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct test {
    const char *name;
    void (*run)(void);
    const char *skip_reason; /* NULL: the test runs */
};

#define TEST(function) TEST_UNLESS(function, NULL)

/* A test that is skipped with this reason, unless it is NULL. */
#define TEST_UNLESS(function, reason)                                                              \
    {                                                                                              \
#function, function, reason                                                                \
    }

/* A test that an emulator (tests/emulator.cmake) cannot run, and why. */
#ifdef TEST_EMULATED
#define TEST_IS_EMULATED              1
#define TEST_NATIVE(function, reason) TEST_UNLESS(function, "the emulator " reason)
#else
#define TEST_IS_EMULATED              0
#define TEST_NATIVE(function, reason) TEST(function)
#endif

/* A test that needs the checks and hooks of a library compiled with WF_DEBUG. */
#ifdef WF_DEBUG
#define TEST_DEBUG(function) TEST(function)
#else
#define TEST_DEBUG(function) TEST_UNLESS(function, "the library has no debug checks")
#endif

#define TEST_MAIN(...)                                                                             \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        static const struct test tests[] = __VA_ARGS__;                                            \
        return test_run_all(tests, sizeof tests / sizeof tests[0], argc, argv);                    \
    }

int test_run_all(const struct test *tests, size_t count, int argc, char **argv);

_Noreturn void test_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            test_fail(__FILE__, __LINE__, "%s is false", #condition);                              \
        }                                                                                          \
    } while (0)

#define CHECK_COMPARE(a, b, operator)                                                              \
    do {                                                                                           \
        int64_t check_a = (int64_t)(a);                                                            \
        int64_t check_b = (int64_t)(b);                                                            \
        if (!(check_a operator check_b)) {                                                         \
            test_fail(__FILE__, __LINE__, "%s = %lld, %s = %lld, wanted %s", #a,                   \
                      (long long)check_a, #b, (long long)check_b, #operator);                      \
        }                                                                                          \
    } while (0)

#define CHECK_EQ(a, b) CHECK_COMPARE(a, b, ==)
#define CHECK_NE(a, b) CHECK_COMPARE(a, b, !=)
#define CHECK_LE(a, b) CHECK_COMPARE(a, b, <=)
#define CHECK_LT(a, b) CHECK_COMPARE(a, b, <)
#define CHECK_GE(a, b) CHECK_COMPARE(a, b, >=)

/* Checks that the text contains the part. */
#define CHECK_HAS(text, part) test_check_has(__FILE__, __LINE__, (text), (part))
void test_check_has(const char *file, int line, const char *text, const char *part);

/* Runs the function in a child process and checks that it aborts with a message that contains
 * the part. Only while no other thread runs. */
#define CHECK_ABORTS(function, part) test_check_aborts(__FILE__, __LINE__, (function), (part))
void test_check_aborts(const char *file, int line, void (*function)(void), const char *part);

/* Reports the running test as skipped, wholly or in part; the caller returns or continues. Only
 * for what the machine or the build lacks, never for an outcome of the library. */
void test_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Fails in a test that is listed with TEST() but needs TEST_DEBUG(). */
void test_must_have_debug(void);

/* Returns the seed: from WEFT_TEST_SEED, else from the clock. Printed at the start. */
uint64_t test_seed(void);

/* Returns the number of workers: from WEFT_TEST_WORKERS, else the given number. */
unsigned test_workers(unsigned otherwise);

/* Returns n divided by the cost of the build (1, or 20 under a sanitizer) and multiplied by
 * WEFT_TEST_SCALE (for long runs). At least 1. */
uint64_t test_scale(uint64_t n);

/* True under ThreadSanitizer or AddressSanitizer. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TEST_IS_SANITIZED 1
#endif
#endif
#ifndef TEST_IS_SANITIZED
#define TEST_IS_SANITIZED 0
#endif
bool test_is_sanitized(void);

/* True under ThreadSanitizer, which is far slower than the others: tables that take minutes run
 * a smaller sample there. */
#if defined(__SANITIZE_THREAD__)
#define TEST_IS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TEST_IS_TSAN 1
#endif
#endif
#ifndef TEST_IS_TSAN
#define TEST_IS_TSAN 0
#endif

/* CPU time and resident memory of this process. */
int64_t test_cpu_ns(void);
size_t test_rss_bytes(void);

/* Sets the default stack size of threads that are started from now on. With a size that does not
 * fit into memory, no such thread can be started. */
void test_set_default_stack(size_t bytes);

/* Waits until *word, which other threads increment, is at least n. */
void test_wait_for(_Atomic(uint64_t) *word, uint64_t n);

#endif
