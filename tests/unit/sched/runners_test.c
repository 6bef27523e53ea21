/* SPDX-License-Identifier: MIT */
/*
 * runners_test.c - the list of fibers that are canceled with the task that waits for them.
 */
#include "sched/runners.h"

#include <weft.h>

#include "rt.h"
#include "test.h"

static struct wf_runners runners;
static weft_event entered;
static weft_event left;

/* A fiber in the list, which waits. Returns the result of the wait. */
static int wait_in_list(void *arg)
{
    struct wf_runner self;
    wf_runners_add(&runners, &self);
    weft_event_set(&entered);
    int result = weft_event_wait(arg, WEFT_NEVER);
    wf_runners_remove(&runners, &self);
    return result;
}

static weft_task *start_runner(void)
{
    weft_task *task;
    entered = left = (weft_event){ 0 };
    CHECK_EQ(weft_go(&task, wait_in_list, &left), 0);
    weft_shield_enter();
    CHECK_EQ(weft_event_wait(&entered, WEFT_NEVER), 0);
    weft_shield_leave();
    return task;
}

static int join_runner(weft_task *task)
{
    weft_shield_enter();
    int result = test_join(task);
    weft_shield_leave();
    return result;
}

static int follow_as_owner(void *arg)
{
    (void)arg;
    wf_runners_init(&runners);
    weft_task *runner = start_runner();
    wf_runners_follow(&runners); /* Not canceled yet. */
    CHECK(!wf_list_is_empty(&runners.list));
    weft_cancel(weft_task_current());

    weft_shield_enter();
    wf_runners_follow(&runners);
    weft_event_set(&left);
    weft_shield_leave();
    CHECK_EQ(join_runner(runner), 0);

    runner = start_runner();
    wf_runners_follow(&runners);
    CHECK_EQ(join_runner(runner), WEFT_ECANCELED);
    CHECK(wf_list_is_empty(&runners.list));
    return 0;
}

static void owner_cancels_runners_unless_shielded(void)
{
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_run(rt, follow_as_owner, NULL), 0);
    weft_runtime_destroy(rt);
}

static int cancel_many_as_owner(void *arg)
{
    (void)arg;
    weft_task *tasks[3];
    wf_runners_init(&runners);
    for (unsigned i = 0; i < 3; i++) {
        tasks[i] = start_runner();
    }
    weft_cancel(weft_task_current());
    wf_runners_follow(&runners);
    wf_runners_follow(&runners);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(join_runner(tasks[i]), WEFT_ECANCELED);
    }
    return 0;
}

static void owner_cancels_all_runners(void)
{
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_run(rt, cancel_many_as_owner, NULL), 0);
    weft_runtime_destroy(rt);
}

static void plain_thread_cancels_no_runner(void)
{
    weft_runtime *rt = test_start(1);
    wf_runners_init(&runners);
    CHECK(runners.owner == NULL);
    entered = left = (weft_event){ 0 };
    weft_task *task = test_go(rt, wait_in_list, &left);
    CHECK_EQ(weft_event_wait(&entered, WEFT_NEVER), 0);
    wf_runners_follow(&runners);
    weft_event_set(&left);
    CHECK_EQ(test_join(task), 0);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(owner_cancels_runners_unless_shielded),
    TEST(owner_cancels_all_runners),
    TEST(plain_thread_cancels_no_runner),
})
