/* SPDX-License-Identifier: MIT */
#include "base/fork.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static int hooks;

static void count_hook(void)
{
    hooks++;
}

static void check_own_number(void)
{
    wf_fork_check(wf_fork_number, "weft_something");
}

/* Runs in a child of CHECK_ABORTS, whose fork number differs. */
static void check_parents_number(void)
{
    wf_fork_check(wf_fork_number - 1, "weft_something");
}

static void *register_hook_thread(void *arg)
{
    (void)pthread_barrier_wait(arg);
    wf_fork_watch(count_hook);
    return NULL;
}

/* First in the table, because only the first registration installs the handler. ThreadSanitizer
 * reports a race. */
static void concurrent_first_registrations_do_not_race(void)
{
    pthread_barrier_t barrier;
    pthread_t threads[2];
    CHECK_EQ(pthread_barrier_init(&barrier, NULL, 2), 0);
    for (unsigned i = 0; i < 2; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, register_hook_thread, &barrier), 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    CHECK_EQ(pthread_barrier_destroy(&barrier), 0);
}

static void child_gets_next_fork_number_and_runs_hook(void)
{
    unsigned before = wf_fork_number;
    wf_fork_watch(count_hook);
    wf_fork_watch(count_hook); /* Does not count twice. */
    pid_t child = fork();
    if (child == 0) {
        _exit(wf_fork_number == before + 1 && hooks == 1 ? 0 : 1);
    }
    int status = 1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(wf_fork_number, before);
    CHECK_EQ(hooks, 0);
}

static void own_fork_number_passes_check(void)
{
    check_own_number();
}

static void different_fork_number_aborts_with_message(void)
{
    CHECK_ABORTS(check_parents_number, "weft_something: this process is a fork");
}

TEST_MAIN({
    TEST(concurrent_first_registrations_do_not_race),
    TEST(child_gets_next_fork_number_and_runs_hook),
    TEST(own_fork_number_passes_check),
    TEST(different_fork_number_aborts_with_message),
})
