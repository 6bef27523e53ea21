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

/* The last job is off the head, as a join takes it. */
static struct wf_job *pop(void)
{
    return --jobs.head;
}

static struct wf_job *must_steal(uintptr_t number)
{
    struct wf_job *job;
    CHECK_EQ(wf_jobs_steal(&jobs, &job), WF_STEAL_SUCCESS);
    CHECK_EQ(job->words[0].bits, number);
    return job;
}

static void must_be_empty(void)
{
    struct wf_job *job;
    CHECK(!wf_jobs_has_public(&jobs));
    CHECK_EQ(wf_jobs_steal(&jobs, &job), WF_STEAL_EMPTY);
}

static void private_jobs_cannot_be_stolen(void)
{
    set_up();
    must_be_empty();
    fork_number(0);
    must_be_empty();
    CHECK_EQ(wf_jobs_len(&jobs), 1);
    CHECK_EQ(wf_jobs_private(&jobs), 1);
}

static void the_oldest_public_job_is_stolen_first(void)
{
    set_up();
    for (uintptr_t i = 0; i < 5; i++) {
        fork_number(i);
    }
    wf_jobs_publish(&jobs, 3);
    CHECK_EQ(wf_jobs_private(&jobs), 2);
    (void)must_steal(0);
    (void)must_steal(1);
    wf_jobs_publish(&jobs, 1);
    (void)must_steal(2);
    (void)must_steal(3);
    must_be_empty();
}

static void a_private_job_is_the_owners(void)
{
    set_up();
    fork_number(0);
    fork_number(1);
    wf_jobs_publish(&jobs, 1);
    CHECK(wf_jobs_reclaim(&jobs, pop()));
    CHECK(wf_jobs_has_public(&jobs));
}

static void a_public_job_can_be_taken_back(void)
{
    set_up();
    fork_number(0);
    wf_jobs_publish(&jobs, 1);
    CHECK(wf_jobs_reclaim(&jobs, pop()));
    must_be_empty();
    fork_number(1);
    must_be_empty();
    wf_jobs_publish(&jobs, 1);
    (void)must_steal(1);
}

/* The older ones are what thieves want. */
static void taking_back_leaves_the_older_half_public(void)
{
    set_up();
    for (uintptr_t i = 0; i < 9; i++) {
        fork_number(i);
    }
    wf_jobs_publish(&jobs, 9);
    CHECK(wf_jobs_reclaim(&jobs, pop()));
    CHECK_EQ(jobs.split, 4);
    CHECK_EQ(wf_jobs_private(&jobs), 4);
    (void)must_steal(0);
    while (wf_jobs_private(&jobs) > 0) {
        CHECK(wf_jobs_reclaim(&jobs, pop()));
    }
    CHECK(wf_jobs_reclaim(&jobs, pop()));
    CHECK_EQ(jobs.split, 2);
}

static void a_stolen_job_is_waited_for(void)
{
    set_up();
    int waiter;
    fork_number(0);
    fork_number(1);
    wf_jobs_publish(&jobs, 2);
    struct wf_job *first = must_steal(0);
    struct wf_job *second = must_steal(1);
    CHECK(!wf_jobs_reclaim(&jobs, pop()));
    CHECK(!wf_job_is_done(second));
    CHECK(wf_job_wait(second, &waiter));
    CHECK(wf_job_finish(second) == &waiter);
    CHECK(wf_job_is_done(second));
    wf_jobs_joined(&jobs, second);
    must_be_empty();

    CHECK(wf_job_finish(first) == NULL);
    CHECK(!wf_jobs_reclaim(&jobs, pop()));
    CHECK(!wf_job_wait(first, &waiter));
    wf_jobs_joined(&jobs, first);
    CHECK_EQ(wf_jobs_len(&jobs), 0);
    CHECK_EQ(jobs.split, 0);
    must_be_empty();
}

static bool is_open(void)
{
    struct wf_job *limit = atomic_load(&jobs.fork_limit);
    struct wf_job *floor = atomic_load(&jobs.join_floor);
    CHECK_EQ(limit == NULL, floor == WF_JOBS_ASKED);
    return limit == jobs.end && floor == slots + jobs.split;
}

static void who_asks_closes_the_limits(void)
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

static void a_publication_closes_the_limits(void)
{
    set_up();
    wf_jobs_open(&jobs);
    fork_number(0);
    wf_jobs_publish(&jobs, 1);
    CHECK(!is_open());
    wf_jobs_open(&jobs);
    CHECK(is_open());
}

static void a_fork_into_a_full_stack_must_ask(void)
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

/* What the library does, at its least: publishes half if asked, and waits by looking. */

static void answer(void)
{
    if (wf_jobs_take_reasons(&jobs) != 0) {
        wf_jobs_publish(&jobs, (wf_jobs_private(&jobs) + 1) / 2);
    }
    wf_jobs_open(&jobs);
}

static uint64_t waits;

/* A join that must ask: is the job the owner's? */
static bool settle(weft_job *job)
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

static uint64_t fib_alone(uint64_t n)
{
    return n < 2 ? n : fib_alone(n - 1) + fib_alone(n - 2);
}

/* A thief has no stack of its own here. */
static void run_fib(weft_job *job)
{
    job->words[1].bits = fib_alone(job->words[0].bits);
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
    bool mine = weft_jobs_pop(own, job) || settle(job);
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

/* Goal: every fork is run once, by its owner or by one of many thieves. */
static void an_owner_and_thieves_compute_together(void)
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
    TEST(private_jobs_cannot_be_stolen),
    TEST(the_oldest_public_job_is_stolen_first),
    TEST(a_private_job_is_the_owners),
    TEST(a_public_job_can_be_taken_back),
    TEST(taking_back_leaves_the_older_half_public),
    TEST(a_stolen_job_is_waited_for),
    TEST(who_asks_closes_the_limits),
    TEST(a_publication_closes_the_limits),
    TEST(a_fork_into_a_full_stack_must_ask),
    TEST(an_owner_and_thieves_compute_together),
})
