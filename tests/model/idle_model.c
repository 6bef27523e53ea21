/* SPDX-License-Identifier: MIT */
/*
 * idle_model.c - src/sched/idle.c with park.c: workers that go to sleep, and those
 * who bring work at that moment.
 *
 * A worker here does what src/sched/search.c does, in the same order, with queues
 * as small as can be: each task is a word that says whether it is there. Tasks do
 * not end before all have begun, so a task that waits beside a sleeping worker is a
 * deadlock, even if some other worker would come round to it later. search.c itself
 * is in other models, with the whole scheduler.
 *
 * What catches what: one worker and one submitter show a missing fence. That the
 * last searcher must look once more takes two of each; that a worker must look
 * which was refused by the cap, two workers and two tasks. Counts go wrong when a
 * worker wakes by itself while it is claimed: by a request of its own, a timeout.
 */
#include "sched/idle.h"

#include "base/clock.h"
#include "mc.h"
#include "sched/park.h"

enum {
    WORKERS_MAX = 3,
    TASKS_MAX = 4,
};

/* Of a task: pushed by a release store like a ring's, taken by a CAS. */
enum {
    NOT_YET,
    QUEUED,
    TAKEN,
};

/* Where a worker is when the test begins: fewer steps than from the top. */
enum start {
    TOP,       /* of its loop, not searching */
    SEARCHING, /* has just begun to */
    REFUSED,   /* the cap has not let it search: it parks next */
    PARKED,
};

struct setup {
    unsigned workers;
    enum start starts[WORKERS_MAX];
    unsigned submitters;
    unsigned tasks; /* of each submitter */
    bool rings;     /* as in a worker's ring, only searchers look there */
    bool brief;     /* tasks end at once */
    bool request;   /* somebody also asks worker 0 for something of its own */
    bool deadline;  /* the first sleep of worker 0 has one */
};

struct worker {
    uint32_t index;
    bool searching;
    bool has_slept;
    bool stopped_asleep;
    int notes; /* plain, by the worker before it sleeps; read by who claims it [I3] */
    struct wf_park park;
    _Atomic(uint32_t) request; /* QUEUED: for this worker alone */
};

static const struct setup *setup;
static struct wf_idle idle;
static struct worker workers[WORKERS_MAX];
static _Atomic(uint32_t) tasks[TASKS_MAX];
static int payloads[TASKS_MAX]; /* plain: written before the push */
static unsigned task_count;
static _Atomic(uint32_t) begun; /* how many tasks and requests */
static _Atomic(uint32_t) stopped;

/* --- The queues ------------------------------------------------------------ */

static bool has_work(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < task_count; i++) {
        /* relaxed: behind a fence of idle.c. */
        if (wf_load_relaxed(&tasks[i]) == QUEUED) {
            return true;
        }
    }
    return false;
}

/* A worker asks only after it has slept. It is woken for this, so that is enough,
 * and it keeps the number of executions small. */
static bool is_stopped(void)
{
    return wf_load_relaxed(&stopped) != 0;
}

static bool take(_Atomic(uint32_t) *task)
{
    uint32_t state = QUEUED;
    return wf_load_relaxed(task) == QUEUED && wf_cas_acquire(task, &state, (uint32_t)TAKEN);
}

static bool take_any(void)
{
    for (unsigned i = 0; i < task_count; i++) {
        if (take(&tasks[i])) {
            mc_assert(payloads[i] == (int)i + 100);
            return true;
        }
    }
    return false;
}

/* --- A worker, as in search.c ----------------------------------------------- */

static void notify(void)
{
    uint32_t index = wf_idle_notify(&idle, has_work, NULL);
    if (index != WF_IDLE_NOBODY) {
        wf_park_wake(&workers[index].park);
    }
}

static bool has_own_duty(struct worker *worker)
{
    return setup->request && wf_load_relaxed(&worker->request) == QUEUED;
}

static void stop_search(struct worker *worker)
{
    worker->searching = false;
    if (wf_idle_found(&idle) && has_work(NULL)) {
        notify();
    }
}

/* Returns false if the test is over; then the worker leaves as it is. */
static bool sleep_once(struct worker *worker)
{
    bool times_out = setup->deadline && worker->index == 0 && !worker->has_slept;
    worker->has_slept = true;
    (void)wf_park_sleep(&worker->park, times_out ? 1000 : WF_NEVER);
    worker->stopped_asleep = is_stopped();
    return !worker->stopped_asleep;
}

static void park(struct worker *worker)
{
    wf_idle_park(&idle, worker->index, worker->searching);
    worker->searching = false;
    bool work = has_work(NULL);
    if (!work && !has_own_duty(worker) && !sleep_once(worker)) {
        return;
    }
    if (wf_idle_unpark(&idle, worker->index)) {
        worker->searching = true;
    } else if (work) {
        wf_idle_search(&idle);
        worker->searching = true;
    }
}

static bool search(struct worker *worker)
{
    if (!worker->searching && wf_idle_try_search(&idle)) {
        worker->searching = true;
    }
    if (worker->searching) {
        bool found = take_any();
        if (found || has_own_duty(worker)) {
            return found;
        }
    }
    park(worker);
    return false;
}

/* Returns false if the test is over. A task that is not brief keeps its worker
 * until then, so that nobody comes round to the others by chance. */
static bool run_task(void)
{
    (void)wf_fetch_add_relaxed(&begun, 1u);
    if (!setup->brief) {
        mc_await_exchange(&stopped, 1, 1);
    }
    return setup->brief;
}

/* Once round the loop of a worker. Returns false if the test is over. */
static bool go_round(struct worker *worker, bool found)
{
    if (found || search(worker)) {
        if (worker->searching) {
            stop_search(worker);
        }
        return run_task();
    }
    return !worker->stopped_asleep;
}

static bool start(struct worker *worker)
{
    switch (setup->starts[worker->index]) {
    case TOP:
        break;
    case SEARCHING:
        worker->searching = true;
        return go_round(worker, false);
    case REFUSED:
        park(worker);
        break;
    case PARKED:
        if (sleep_once(worker)) {
            worker->searching = wf_idle_unpark(&idle, worker->index);
        }
        break;
    }
    return !worker->stopped_asleep;
}

static void run_worker(void *arg)
{
    struct worker *worker = arg;
    bool goes_on = start(worker);
    while (goes_on) {
        if (setup->request && take(&worker->request)) {
            (void)wf_fetch_add_relaxed(&begun, 1u);
        }
        goes_on = go_round(worker, !setup->rings && take_any());
    }
}

/* --- Those who bring work ---------------------------------------------------- */

static void submit(unsigned first)
{
    for (unsigned i = first; i < first + setup->tasks; i++) {
        payloads[i] = (int)i + 100;
        wf_store_release(&tasks[i], (uint32_t)QUEUED);
        notify();
    }
}

static void run_submitter(void *arg)
{
    submit((unsigned)((_Atomic(uint32_t) *)arg - tasks));
}

/* As wf_sched_deliver(). */
static void ask_worker(void *arg)
{
    struct worker *worker = arg;
    wf_store_release(&worker->request, (uint32_t)QUEUED);
    wf_fence_full();
    if (wf_idle_is_parked(&idle, worker->index)) {
        wf_park_wake(&worker->park);
    }
}

static void begin(void)
{
    setup = mc_arg();
    task_count = setup->submitters * setup->tasks;
    wf_idle_init(&idle, setup->workers);
    mc_name(&idle.counts, sizeof idle.counts, "counts");
    mc_name(&idle.parked, sizeof idle.parked, "parked");
    mc_name(tasks, sizeof tasks, "tasks");
    mc_name(&begun, sizeof begun, "begun");
    mc_name(&stopped, sizeof stopped, "stopped");
    for (unsigned i = 0; i < setup->workers; i++) {
        workers[i].index = i;
        mc_name(&workers[i].park, sizeof workers[i].park, "park");
        if (setup->starts[i] == PARKED) {
            wf_idle_park(&idle, i, false);
        } else if (setup->starts[i] == SEARCHING) {
            wf_idle_search(&idle);
        }
    }
}

static void start_workers(void (*run)(void *worker))
{
    for (unsigned i = 0; i < setup->workers; i++) {
        mc_go(run, &workers[i]);
    }
}

static void end(void)
{
    uint32_t expected = task_count + setup->request;
    mc_await_exchange(&begun, expected, expected);
    wf_store_release(&stopped, 1u);
    for (unsigned i = 0; i < setup->workers; i++) {
        wf_park_wake(&workers[i].park);
    }
    mc_join();
    uint32_t unparked = setup->workers;
    uint32_t searching = 0;
    for (unsigned i = 0; i < setup->workers; i++) {
        bool is_parked = wf_idle_is_parked(&idle, i);
        bool is_claimed = workers[i].stopped_asleep && !is_parked;
        mc_assert(workers[i].stopped_asleep || !is_parked);
        unparked -= is_parked;
        searching += is_claimed || workers[i].searching;
    }
    mc_assert(wf_idle_unparked(&idle) == unparked);
    mc_assert(wf_idle_searching(&idle) == searching);
}

/*
 * Goal:   every task is begun although none ends before, and at the end the counts
 *         are exact.
 * Method: each setup, from one worker and one submitter up.
 */
static void no_task_waits_beside_a_sleeper(void)
{
    begin();
    start_workers(run_worker);
    for (unsigned i = 1; i < setup->submitters; i++) {
        mc_go(run_submitter, &tasks[i * setup->tasks]);
    }
    if (setup->request) {
        mc_go(ask_worker, &workers[0]);
    }
    submit(0);
    end();
}

static bool must_not_be_asked(void *arg)
{
    (void)arg;
    mc_assert(!"a worker that is counted as parked was not found");
    return false;
}

static void park_for_good(void *arg)
{
    struct worker *worker = arg;
    worker->notes++;
    wf_idle_park(&idle, worker->index, false);
}

/*
 * Goal:   with the count of a parked worker comes its bit [I2], and what the worker
 *         did before it went to sleep [I3].
 * Method: nobody wakes by itself, so a claim may not fail.
 */
static void counted_is_found(void)
{
    begin();
    start_workers(park_for_good);
    for (unsigned i = 0; i < setup->workers; i++) {
        uint32_t index = wf_idle_notify(&idle, must_not_be_asked, NULL);
        if (index != WF_IDLE_NOBODY) {
            mc_assert(workers[index].notes == 1);
            mc_assert(wf_idle_found(&idle));
        }
        mc_note(index != WF_IDLE_NOBODY);
    }
    mc_join();
}

#define SETUP(...)                                                                                 \
    &(const struct setup)                                                                          \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

#define WORK(test_name, ...)                                                                       \
    .name = test_name, .run = no_task_waits_beside_a_sleeper, .arg = SETUP(__VA_ARGS__)

/* For setups with too many executions to run them all. */
#define BOUNDED .preemptions = 2, .deep_preemptions = 3, .seconds_max = 600

static const struct mc_test tests[] = {
    { .name = "counted_is_found",
      .run = counted_is_found,
      .arg = SETUP(.workers = 2),
      .seen = MC_OUTCOMES(0, 1) },
    { WORK("one_worker", .workers = 1, .submitters = 1, .tasks = 1) },
    { WORK("one_worker_and_a_ring", .workers = 1, .submitters = 1, .tasks = 1, .rings = true) },
    { WORK("sleepers_and_two_tasks", .workers = 2, .starts = { PARKED, PARKED }, .submitters = 1,
           .tasks = 2) },
    { WORK("sleepers_and_two_submitters", .workers = 2, .starts = { PARKED, PARKED },
           .submitters = 2, .tasks = 1) },
    { WORK("refused_by_the_cap", .workers = 2, .starts = { REFUSED, SEARCHING }, .submitters = 1,
           .tasks = 2),
      BOUNDED },
    { WORK("last_searcher_and_a_sleeper", .workers = 2, .starts = { PARKED, SEARCHING },
           .submitters = 1, .tasks = 2),
      BOUNDED },
    { WORK("last_searcher_and_two_submitters", .workers = 2, .starts = { PARKED, SEARCHING },
           .submitters = 2, .tasks = 1, .rings = true),
      BOUNDED },
    { WORK("own_request_against_claim", .workers = 1, .starts = { PARKED }, .submitters = 1,
           .tasks = 1, .brief = true, .request = true),
      BOUNDED },
    { WORK("own_request_and_a_second_worker", .workers = 2, .starts = { PARKED, PARKED },
           .submitters = 1, .tasks = 1, .brief = true, .request = true),
      BOUNDED },
    { WORK("timeout_against_claim", .workers = 1, .starts = { PARKED }, .submitters = 1, .tasks = 1,
           .deadline = true),
      .timeouts = 1 },
    { WORK("timeout_and_a_second_worker", .workers = 2, .starts = { PARKED, PARKED },
           .submitters = 1, .tasks = 1, .deadline = true),
      BOUNDED, .timeouts = 1 },
    { WORK("timeout_and_two_submitters", .workers = 1, .starts = { PARKED }, .submitters = 2,
           .tasks = 1, .brief = true, .deadline = true),
      BOUNDED, .timeouts = 1 },
    { WORK("three_workers", .workers = 3, .submitters = 3, .tasks = 1), .mode = MC_PCT },
    { WORK("three_workers_and_rings", .workers = 3, .submitters = 1, .tasks = 3, .rings = true),
      .mode = MC_PCT },
    { WORK("two_workers", .workers = 2, .submitters = 1, .tasks = 1), .mode = MC_PCT },
};

MC_MAIN(tests)
