/* SPDX-License-Identifier: MIT */
#include "queue/jobs.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "test.h"

enum {
    SLOTS = 64,
    WANTED = 1,
    OTHER = 2,
};

static struct wf_job slots[SLOTS];
static struct wf_jobs jobs;
static unsigned char ran[SLOTS];

static void run_number(weft_job *job)
{
    ran[job->words[0].bits]++;
}

static void set_up(void)
{
    wf_jobs_init(&jobs, slots, SLOTS);
    for (unsigned i = 0; i < SLOTS; i++) {
        ran[i] = 0;
    }
}

static void fork_number(uintptr_t number)
{
    jobs.head->run = run_number;
    jobs.head->words[0].bits = number;
    weft_jobs_push(wf_jobs_public(&jobs));
}

/* Removes the newest fork from the head, as a join does. */
static struct wf_job *pop_newest(void)
{
    return --jobs.head;
}

static struct wf_job *check_steal(uintptr_t number)
{
    struct wf_job *job;
    CHECK_EQ(wf_jobs_steal(&jobs, &job), WF_STEAL_SUCCESS);
    CHECK_EQ(job->words[0].bits, number);
    return job;
}

static void check_nothing_to_steal(void)
{
    struct wf_job *job;
    CHECK(!wf_jobs_has_public(&jobs));
    CHECK_EQ(wf_jobs_steal(&jobs, &job), WF_STEAL_EMPTY);
}

static void private_forks_cannot_be_stolen(void)
{
    set_up();
    check_nothing_to_steal();
    fork_number(0);
    check_nothing_to_steal();
    CHECK_EQ(wf_jobs_len(&jobs), 1);
    CHECK_EQ(wf_jobs_private(&jobs), 1);
}

static void oldest_public_fork_is_stolen_first(void)
{
    set_up();
    for (uintptr_t i = 0; i < 5; i++) {
        fork_number(i);
    }
    wf_jobs_publish(&jobs, 3);
    CHECK_EQ(wf_jobs_private(&jobs), 2);
    (void)check_steal(0);
    (void)check_steal(1);
    wf_jobs_publish(&jobs, 1);
    (void)check_steal(2);
    (void)check_steal(3);
    check_nothing_to_steal();
}

static void private_fork_is_reclaimed_by_owner(void)
{
    set_up();
    fork_number(0);
    fork_number(1);
    wf_jobs_publish(&jobs, 1);
    CHECK(wf_jobs_reclaim(&jobs, pop_newest()));
    CHECK(wf_jobs_has_public(&jobs));
}

static void public_fork_can_be_reclaimed(void)
{
    set_up();
    fork_number(0);
    wf_jobs_publish(&jobs, 1);
    CHECK(wf_jobs_reclaim(&jobs, pop_newest()));
    check_nothing_to_steal();
    fork_number(1);
    check_nothing_to_steal();
    wf_jobs_publish(&jobs, 1);
    (void)check_steal(1);
}

/* Thieves want the older forks. */
static void reclaim_leaves_older_half_public(void)
{
    set_up();
    for (uintptr_t i = 0; i < 9; i++) {
        fork_number(i);
    }
    wf_jobs_publish(&jobs, 9);
    CHECK(wf_jobs_reclaim(&jobs, pop_newest()));
    CHECK_EQ(jobs.split, 4);
    CHECK_EQ(wf_jobs_private(&jobs), 4);
    (void)check_steal(0);
    while (wf_jobs_private(&jobs) > 0) {
        CHECK(wf_jobs_reclaim(&jobs, pop_newest()));
    }
    CHECK(wf_jobs_reclaim(&jobs, pop_newest()));
    CHECK_EQ(jobs.split, 2);
}

static void joiner_waits_for_stolen_fork(void)
{
    set_up();
    int waiter;
    fork_number(0);
    fork_number(1);
    wf_jobs_publish(&jobs, 2);
    struct wf_job *first = check_steal(0);
    struct wf_job *second = check_steal(1);
    CHECK(!wf_jobs_reclaim(&jobs, pop_newest()));
    CHECK(!wf_job_is_done(second));
    CHECK(wf_job_wait(second, &waiter));
    CHECK(wf_job_finish(second) == &waiter);
    CHECK(wf_job_is_done(second));
    wf_jobs_joined(&jobs, second);
    check_nothing_to_steal();

    CHECK(wf_job_finish(first) == NULL);
    CHECK(!wf_jobs_reclaim(&jobs, pop_newest()));
    CHECK(!wf_job_wait(first, &waiter));
    wf_jobs_joined(&jobs, first);
    CHECK_EQ(wf_jobs_len(&jobs), 0);
    CHECK_EQ(jobs.split, 0);
    check_nothing_to_steal();
}

static bool is_open(void)
{
    struct wf_job *limit = atomic_load(&jobs.fork_limit);
    struct wf_job *floor = atomic_load(&jobs.join_floor);
    CHECK_EQ(limit == NULL, floor == WF_JOBS_ASKED);
    return limit == jobs.end && floor == slots + jobs.split;
}

static void request_closes_limits_until_answered(void)
{
    set_up();
    CHECK(!is_open());
    wf_jobs_open(&jobs);
    CHECK(is_open());
    wf_jobs_ask(&jobs, WANTED);
    CHECK(!is_open());
    wf_jobs_open(&jobs);
    CHECK(!is_open());
    wf_jobs_ask(&jobs, OTHER);
    CHECK_EQ(wf_jobs_take_reasons(&jobs), WANTED | OTHER);
    CHECK_EQ(wf_jobs_take_reasons(&jobs), 0);
    wf_jobs_open(&jobs);
    CHECK(is_open());
}

static void publishing_closes_limits(void)
{
    set_up();
    wf_jobs_open(&jobs);
    fork_number(0);
    wf_jobs_publish(&jobs, 1);
    CHECK(!is_open());
    wf_jobs_open(&jobs);
    CHECK(is_open());
}

static void fork_into_full_stack_takes_slow_path(void)
{
    set_up();
    wf_jobs_open(&jobs);
    for (uintptr_t i = 0; i < SLOTS; i++) {
        CHECK(!weft_jobs_must_ask(wf_jobs_public(&jobs)));
        fork_number(i);
    }
    CHECK(weft_jobs_must_ask(wf_jobs_public(&jobs)));
}

/* --- Threads ------------------------------------------------------------------------ */

enum {
    THIEVES = 3,
};

/* A minimal version of the library's slow paths: publishes half of the private forks on
 * request, and waits for a stolen fork by polling. */

static void answer(void)
{
    if (wf_jobs_take_reasons(&jobs) != 0) {
        wf_jobs_publish(&jobs, (wf_jobs_private(&jobs) + 1) / 2);
    }
    wf_jobs_open(&jobs);
}

static uint64_t waits;

/* A join on the slow path. Returns whether the owner runs the fork itself. */
static bool join_slow(weft_job *job)
{
    struct wf_job *mine = (struct wf_job *)(void *)job;
    bool reclaimed = wf_jobs_reclaim(&jobs, mine);
    if (!reclaimed) {
        waits++;
        while (!wf_job_is_done(mine)) {
            (void)sched_yield();
        }
        wf_jobs_joined(&jobs, mine);
    }
    answer();
    return reclaimed;
}

static uint64_t fib_sequential(uint64_t n)
{
    return n < 2 ? n : fib_sequential(n - 1) + fib_sequential(n - 2);
}

/* A thief has no fork stack in this test. */
static void run_fib(weft_job *job)
{
    job->words[1].bits = fib_sequential(job->words[0].bits);
}

static uint64_t fib(uint64_t n)
{
    if (n < 2) {
        return n;
    }
    weft_jobs *own = wf_jobs_public(&jobs);
    weft_job *job = own->head;
    bool must_ask = weft_jobs_must_ask(own);
    if (jobs.head == jobs.end) {
        return fib(n - 1) + fib(n - 2);
    }
    job->run = run_fib;
    job->words[0].bits = n - 2;
    weft_jobs_push(own);
    if (must_ask) {
        answer();
    }
    uint64_t first = fib(n - 1);
    bool mine = weft_jobs_pop(own, job) || join_slow(job);
    return first + (mine ? fib(n - 2) : job->words[1].bits);
}

static _Atomic(uint64_t) stop;
static _Atomic(uint64_t) stolen;

static void *thief(void *arg)
{
    (void)arg;
    while (atomic_load(&stop) == 0) {
        struct wf_job *job;
        enum wf_steal answer = wf_jobs_steal(&jobs, &job);
        if (answer == WF_STEAL_SUCCESS) {
            job->run((weft_job *)(void *)job);
            CHECK(wf_job_finish(job) == NULL);
            atomic_fetch_add(&stolen, 1);
        } else if (answer == WF_STEAL_EMPTY) {
            wf_jobs_ask(&jobs, WANTED);
            (void)sched_yield();
        }
    }
    return NULL;
}

/* Goal: every fork runs once, on its owner or on one of several thieves. */
static void owner_and_thieves_run_each_fork_once(void)
{
    set_up();
    wf_jobs_open(&jobs);
    pthread_t threads[THIEVES];
    for (unsigned i = 0; i < THIEVES; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, thief, NULL), 0);
    }
    for (uint64_t i = 0; i < test_scale(100) || waits == 0; i++) {
        CHECK_EQ(fib(20), 6765);
        CHECK_EQ(wf_jobs_len(&jobs), 0);
    }
    atomic_store(&stop, 1);
    for (unsigned i = 0; i < THIEVES; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    CHECK_EQ(atomic_load(&stolen), waits);
}

TEST_MAIN({
    TEST(private_forks_cannot_be_stolen),
    TEST(oldest_public_fork_is_stolen_first),
    TEST(private_fork_is_reclaimed_by_owner),
    TEST(public_fork_can_be_reclaimed),
    TEST(reclaim_leaves_older_half_public),
    TEST(joiner_waits_for_stolen_fork),
    TEST(request_closes_limits_until_answered),
    TEST(publishing_closes_limits),
    TEST(fork_into_full_stack_takes_slow_path),
    TEST(owner_and_thieves_run_each_fork_once),
})
