/* SPDX-License-Identifier: MIT */
#include "base/callout.h"

#include <pthread.h>
#include <unwind.h>

#include "test.h"

/* What an unwinder says that has found no handler, without and with a frame in between. */
static int raised;

static int raise_exception(void *arg)
{
    static struct _Unwind_Exception exception;
    (void)arg;
    raised = (int)_Unwind_RaiseException(&exception);
    return 5;
}

/* On aarch64 gcc's unwinder loses its result when it returns (PR 114843). That it returns is what
 * matters: the C++ library then calls std::terminate(). */
static void check_raised(int reason)
{
#if defined(__aarch64__)
    (void)reason;
#else
    CHECK_EQ(raised, reason);
#endif
}

static void exception_in_callout_is_refused(void)
{
    CHECK_EQ(wf_callout(raise_exception, NULL), 5);
    check_raised(_URC_FATAL_PHASE1_ERROR);
}

static void exception_without_callout_reaches_the_end_of_the_stack(void)
{
    CHECK_EQ(raise_exception(NULL), 5);
    check_raised(_URC_END_OF_STACK);
}

/* --- The end of a thread ------------------------------------------------------------------ */

static int end_thread(void *arg)
{
    pthread_exit(arg);
}

static void *run_thread(void *arg)
{
    (void)wf_callout(end_thread, arg);
    return NULL;
}

static void pthread_exit_in_callout_ends_the_thread(void)
{
    pthread_t thread;
    void *result = NULL;
    int err = pthread_create(&thread, NULL, run_thread, &raised);
    CHECK_EQ(err, 0);
    err = pthread_join(thread, &result);
    CHECK_EQ(err, 0);
    CHECK(result == &raised);
}

TEST_MAIN({
    TEST(exception_in_callout_is_refused),
    TEST(exception_without_callout_reaches_the_end_of_the_stack),
    TEST(pthread_exit_in_callout_ends_the_thread),
})
