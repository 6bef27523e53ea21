/* SPDX-License-Identifier: MIT */
/*
 * jobs_model.c - src/queue/jobs.c: an owner that forks and joins, and one or two thieves,
 * in every order. Each job runs once, is seen whole by whoever runs it, and what it did
 * is seen by its joiner.
 *
 * What the library does when a fork or a join must ask is here the least that it can be:
 * it publishes if somebody has asked, and waits where a thief has the job.
 */
#include "queue/jobs.h"

#include "mc.h"

enum {
    SLOTS = 4,
    WANTED = 1,
};

static struct wf_jobs jobs;
static struct wf_job slots[SLOTS];
static unsigned publish_max; /* at once */

static struct item {
    int payload; /* written by the owner before the fork, read by who runs it */
    int runs;
} items[8];

/* Who waits for a job's end. */
struct waiter {
    struct item *item; /* for whose end; written before the wait */
    _Atomic(uint32_t) woken;
};

static void run(weft_job *job)
{
    struct item *item = job->words[0].pointer;
    mc_assert(item->payload == (int)(item - items) + 100);
    item->runs++;
}

static void begin(unsigned publish)
{
    publish_max = publish;
    wf_jobs_init(&jobs, slots, SLOTS);
    wf_jobs_open(&jobs);
    mc_name(&jobs.word, sizeof jobs.word, "word");
    mc_name(&jobs.name, sizeof jobs.name, "name");
    mc_name(&jobs.reasons, sizeof jobs.reasons, "reasons");
    mc_name(&jobs.fork_limit, sizeof jobs.fork_limit, "fork_limit");
    mc_name(&jobs.join_floor, sizeof jobs.join_floor, "join_floor");
    mc_name(slots, sizeof slots, "slots");
}

/* Does what was asked for. */
static void answer(void)
{
    if (wf_jobs_take_reasons(&jobs) != 0) {
        uint32_t count = wf_jobs_private(&jobs);
        wf_jobs_publish(&jobs, count < publish_max ? count : publish_max);
    }
    wf_jobs_open(&jobs);
}

static void wait_for(struct wf_job *job, struct item *item)
{
    struct waiter waiter = { .item = item };
    if (!wf_job_is_done(job) && wf_job_wait(job, &waiter)) {
        while (wf_load_acquire(&waiter.woken) == 0) {
            (void)mc_futex_wait(&waiter.woken, 0, INT64_MAX);
        }
    }
    mc_assert(item->runs == 1);
}

/* A join that must ask: is the job the owner's? */
static bool settle(struct wf_job *job)
{
    struct item *item = job->words[0].pointer;
    bool reclaimed = wf_jobs_reclaim(&jobs, job);
    if (!reclaimed) {
        wait_for(job, item);
        wf_jobs_joined(&jobs, job);
    }
    answer();
    return reclaimed;
}

static void fork_item(unsigned i)
{
    weft_jobs *own = wf_jobs_public(&jobs);
    bool must_ask = weft_jobs_must_ask(own);
    mc_assert(jobs.head < jobs.end);
    items[i].payload = (int)i + 100;
    own->head->run = run;
    own->head->words[0].pointer = &items[i];
    weft_jobs_push(own);
    if (must_ask) {
        answer();
    }
}

static void join_item(unsigned i)
{
    weft_jobs *own = wf_jobs_public(&jobs);
    weft_job *job = own->head - 1;
    if (weft_jobs_pop(own, job) || settle((struct wf_job *)job)) {
        mc_assert(job->words[0].pointer == &items[i]);
        job->run(job);
    } else {
        mc_note(1);
    }
    mc_assert(items[i].runs == 1);
}

/* As a thief does. */
static void finish(struct wf_job *job)
{
    job->run((weft_job *)job);
    struct waiter *waiter = wf_job_finish(job);
    if (waiter != NULL) {
        mc_assert(waiter->item->runs == 1);
        mc_note(2);
        wf_store_release(&waiter->woken, 1u);
        (void)mc_futex_wake(&waiter->woken, 1);
    }
}

/* Takes and runs one job, if there is one. */
static void steal_one(void)
{
    struct wf_job *job;
    if (wf_jobs_steal(&jobs, &job) == WF_STEAL_SUCCESS) {
        finish(job);
    }
}

static void thief(void *arg)
{
    (void)arg;
    steal_one();
}

static void eager_thief(void *arg)
{
    (void)arg;
    steal_one();
    steal_one();
}

/* Asks if there is nothing, and comes again. */
static void asking_thief(void *arg)
{
    (void)arg;
    if (!wf_jobs_has_public(&jobs)) {
        wf_jobs_ask(&jobs, WANTED);
    }
    steal_one();
}

/* Everybody is done. A request that nobody has answered is not forgotten: the next fork
 * and the next join must ask. */
static void end(void)
{
    mc_assert(wf_jobs_len(&jobs) == 0);
    mc_assert(jobs.split == 0);
    mc_assert(!wf_jobs_has_public(&jobs));
    if (wf_load_relaxed(&jobs.reasons) != 0) {
        mc_assert(weft_jobs_must_ask(wf_jobs_public(&jobs)));
        mc_assert(wf_load_relaxed(&jobs.join_floor) == WF_JOBS_ASKED);
    }
}

/*
 * Goal:   what is published is seen whole, and taken by one.
 * Method: two jobs; the thieves come while the owner publishes and joins them.
 */
static void two_jobs_and_two_thieves(void)
{
    begin(1);
    mc_go(thief, NULL);
    mc_go(thief, NULL);
    fork_item(0);
    fork_item(1);
    wf_jobs_publish(&jobs, 2);
    wf_jobs_open(&jobs);
    join_item(1);
    join_item(0);
    mc_join();
    end();
}

/*
 * Goal:   taking several back at once leaves those alone that thieves have.
 * Method: four jobs are public; joining the last one takes back two or three.
 */
static void taking_back_against_thieves(void)
{
    begin(1);
    for (unsigned i = 0; i < 4; i++) {
        fork_item(i);
    }
    wf_jobs_publish(&jobs, 4);
    wf_jobs_open(&jobs);
    mc_go(eager_thief, NULL);
    mc_go(thief, NULL);
    for (unsigned i = 4; i-- > 0;) {
        join_item(i);
    }
    mc_join();
    end();
}

/*
 * Goal:   a thief that is late takes what is in the slot now, or nothing.
 * Method: each slot is used again, with the same word as before.
 */
static void a_slot_is_used_again(void)
{
    begin(1);
    mc_go(thief, NULL);
    mc_go(thief, NULL);
    for (unsigned i = 0; i < 3; i++) {
        fork_item(i);
        wf_jobs_publish(&jobs, 1);
        wf_jobs_open(&jobs);
        join_item(i);
    }
    mc_join();
    end();
}

/*
 * Goal:   no request is lost, and what is published for it can be taken.
 * Method: two thieves ask while the owner forks, joins, and opens the limits.
 */
static void requests_against_answers(void)
{
    begin(1);
    mc_go(asking_thief, NULL);
    mc_go(asking_thief, NULL);
    fork_item(0);
    fork_item(1);
    join_item(1);
    join_item(0);
    mc_join();
    end();
}

/* The same, deeper, by one thief. */
static void requests_of_one_thief(void)
{
    begin(2);
    mc_go(asking_thief, NULL);
    fork_item(0);
    fork_item(1);
    fork_item(2);
    join_item(2);
    join_item(1);
    fork_item(3);
    join_item(3);
    join_item(0);
    mc_join();
    end();
}

static void second_owner(void *arg)
{
    _Atomic(uint32_t) *left = arg;
    mc_await_exchange(left, 1, 2);
    join_item(1);
    fork_item(2);
    wf_jobs_publish(&jobs, 1);
    wf_jobs_open(&jobs);
    join_item(2);
    join_item(0);
}

/*
 * Goal:   a strand that suspends leaves its jobs to thieves, and finds them as they are
 *         when it goes on on another worker.
 * Method: the owner publishes everything and leaves; the second one, who is told in the
 *         way of the scheduler, joins and forks. The thieves may be late.
 */
static void an_owner_goes_on_elsewhere(void)
{
    begin(1);
    static _Atomic(uint32_t) left;
    wf_store_relaxed(&left, 0u);
    mc_go(thief, NULL);
    mc_go(eager_thief, NULL);
    mc_go(second_owner, &left);
    fork_item(0);
    fork_item(1);
    wf_jobs_publish(&jobs, 2);
    wf_store_release(&left, 1u);
    mc_join();
    end();
}

/* Wants jobs of the second name only. */
static void choosy_thief(void *arg)
{
    struct wf_job *job;
    (void)arg;
    if (wf_jobs_steal_of(&jobs, &items[2], &job) == WF_STEAL_SUCCESS) {
        mc_assert(job->words[0].pointer == &items[2]);
        mc_note(3);
        finish(job);
    }
}

/*
 * Goal:   who wants jobs of one name gets no others, though the word is the same.
 * Method: the stack is renamed before and after the job that is wanted.
 */
static void a_stack_is_renamed(void)
{
    begin(1);
    mc_go(choosy_thief, NULL);
    mc_go(thief, NULL);
    for (unsigned i = 1; i < 4; i++) {
        wf_jobs_rename(&jobs, &items[i]);
        fork_item(i);
        wf_jobs_publish(&jobs, 1);
        wf_jobs_open(&jobs);
        join_item(i);
    }
    mc_join();
    end();
}

static const struct mc_test tests[] = {
    { .name = "two_jobs_and_two_thieves",
      .run = two_jobs_and_two_thieves,
      .seen = MC_OUTCOMES(1, 2) },
    { .name = "taking_back_against_thieves",
      .run = taking_back_against_thieves,
      .seen = MC_OUTCOMES(1, 2),
      .preemptions = 2,
      .deep_preemptions = 3 },
    { .name = "a_slot_is_used_again", .run = a_slot_is_used_again, .seen = MC_OUTCOMES(1, 2) },
    { .name = "a_stack_is_renamed", .run = a_stack_is_renamed, .seen = MC_OUTCOMES(1, 2, 3) },
    { .name = "requests_against_answers",
      .run = requests_against_answers,
      .seen = MC_OUTCOMES(1, 2),
      .preemptions = 3,
      .deep_preemptions = 4 },
    { .name = "requests_of_one_thief",
      .run = requests_of_one_thief,
      .seen = MC_OUTCOMES(1, 2),
      .preemptions = 3,
      .deep_preemptions = 5 },
    { .name = "an_owner_goes_on_elsewhere",
      .run = an_owner_goes_on_elsewhere,
      .seen = MC_OUTCOMES(1, 2),
      .preemptions = 1,
      .deep_preemptions = 2 },
};

MC_MAIN(tests)
