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

/* CHECK_ABORTS runs it in a child, which has another number. */
static void check_the_parents_number(void)
{
    wf_fork_check(wf_fork_number - 1, "weft_something");
}

static void *watch_thread(void *arg)
{
    (void)pthread_barrier_wait(arg);
    wf_fork_watch(count_hook);
    return NULL;
}

/* The first to ask, and so first in the list. ThreadSanitizer looks on. */
static void two_threads_ask_at_once(void)
{
    pthread_barrier_t barrier;
    pthread_t threads[2];
    CHECK_EQ(pthread_barrier_init(&barrier, NULL, 2), 0);
    for (unsigned i = 0; i < 2; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, watch_thread, &barrier), 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    CHECK_EQ(pthread_barrier_destroy(&barrier), 0);
}

static void a_child_has_the_next_number(void)
{
    unsigned before = wf_fork_number;
    wf_fork_watch(count_hook);
    wf_fork_watch(count_hook); /* counts once all the same */
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

static void the_own_number_is_accepted(void)
{
    check_own_number();
}

static void another_number_is_refused_with_a_sentence(void)
{
    CHECK_ABORTS(check_the_parents_number, "weft_something: this process is a fork");
}

TEST_MAIN({
    TEST(two_threads_ask_at_once),
    TEST(a_child_has_the_next_number),
    TEST(the_own_number_is_accepted),
    TEST(another_number_is_refused_with_a_sentence),
})
