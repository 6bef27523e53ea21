/* SPDX-License-Identifier: MIT */
#include "sched/idle.h"

#include <pthread.h>
#include <sched.h>

#include "base/clock.h"
#include "base/rng.h"
#include "sched/park.h"
#include "step.h"
#include "test.h"
#include "timing.h"

static struct wf_idle idle;

/* What has_work returns in the tests without threads. */
static uint64_t looks;
static uint64_t looks_with_work; /* number of looks that find work */

static bool look(void *arg)
{
    CHECK(arg == &idle);
    looks++;
    return looks <= looks_with_work;
}

static uint32_t notify(void)
{
    return wf_idle_notify(&idle, look, &idle);
}

static void reset(uint32_t workers)
{
    wf_idle_init(&idle, workers);
    looks = 0;
    looks_with_work = 0;
}

static void check_counts(uint32_t searching, uint32_t unparked)
{
    CHECK_EQ(wf_idle_searching(&idle), searching);
    CHECK_EQ(wf_idle_unparked(&idle), unparked);
}

static void initially_no_worker_is_parked_or_searching(void)
{
    static const uint32_t workers[] = { 1, 2, 63, 64, 65, 200, 1024 };
    for (size_t i = 0; i < sizeof workers / sizeof workers[0]; i++) {
        reset(workers[i]);
        check_counts(0, workers[i]);
        for (uint32_t w = 0; w < workers[i]; w++) {
            CHECK(!wf_idle_is_parked(&idle, w));
        }
    }
}

static void notify_without_parked_worker_wakes_none(void)
{
    reset(4);
    CHECK_EQ(notify(), WF_IDLE_NOBODY);
    check_counts(0, 4);
    CHECK_EQ(looks, 0);
}

static void notify_claims_parked_worker_and_counts_it_searching(void)
{
    reset(4);
    wf_idle_park(&idle, 2, false);
    CHECK(wf_idle_is_parked(&idle, 2));
    check_counts(0, 3);
    CHECK_EQ(notify(), 2);
    CHECK(!wf_idle_is_parked(&idle, 2));
    check_counts(1, 4);
    CHECK_EQ(looks, 0);
}

static void notify_while_worker_searches_wakes_none(void)
{
    reset(4);
    wf_idle_park(&idle, 1, false);
    CHECK(wf_idle_try_search(&idle));
    CHECK_EQ(notify(), WF_IDLE_NOBODY);
    CHECK(wf_idle_is_parked(&idle, 1));
    check_counts(1, 3);
}

static void notify_after_claim_waits_for_claimed_worker(void)
{
    reset(4);
    wf_idle_park(&idle, 0, false);
    wf_idle_park(&idle, 1, false);
    uint32_t first = notify();
    CHECK_LT(first, 2);
    CHECK_EQ(notify(), WF_IDLE_NOBODY); /* The first is still waking. */
    CHECK(wf_idle_unpark(&idle, first));
    CHECK_EQ(notify(), WF_IDLE_NOBODY); /* It searches. */
    CHECK(wf_idle_found(&idle));
    CHECK_EQ(notify(), 1 - first);
}

static void unpark_after_claim_returns_true_and_keeps_counts(void)
{
    reset(3);
    wf_idle_park(&idle, 0, false);
    CHECK_EQ(notify(), 0);
    CHECK(wf_idle_unpark(&idle, 0));
    check_counts(1, 3);
    CHECK(wf_idle_found(&idle));
    check_counts(0, 3);
}

static void unpark_without_claim_returns_false(void)
{
    reset(3);
    wf_idle_park(&idle, 0, false);
    CHECK(!wf_idle_unpark(&idle, 0));
    check_counts(0, 3);
    CHECK(!wf_idle_is_parked(&idle, 0));
    CHECK_EQ(notify(), WF_IDLE_NOBODY);
}

static void searcher_that_parks_is_no_longer_searching(void)
{
    reset(2);
    wf_idle_search(&idle);
    check_counts(1, 2);
    wf_idle_park(&idle, 1, true);
    check_counts(0, 1);
    CHECK_EQ(notify(), 1);
    check_counts(1, 2);
}

static void at_most_half_of_workers_search_on_their_own(void)
{
    static const uint32_t workers[] = { 1, 2, 3, 4, 5, 8, 65, 1024 };
    for (size_t i = 0; i < sizeof workers / sizeof workers[0]; i++) {
        reset(workers[i]);
        uint32_t allowed = 0;
        while (wf_idle_try_search(&idle)) {
            allowed++;
        }
        CHECK_EQ(allowed, (workers[i] + 1) / 2);
        check_counts(allowed, workers[i]);
        (void)wf_idle_found(&idle);
        CHECK(wf_idle_try_search(&idle));
        CHECK(!wf_idle_try_search(&idle));
    }
}

static void search_after_seeing_work_ignores_cap(void)
{
    reset(2);
    CHECK(wf_idle_try_search(&idle));
    CHECK(!wf_idle_try_search(&idle));
    wf_idle_search(&idle);
    check_counts(2, 2);
}

static void found_returns_true_for_last_searcher(void)
{
    reset(8);
    for (int i = 0; i < 3; i++) {
        CHECK(wf_idle_try_search(&idle));
    }
    CHECK(!wf_idle_found(&idle));
    CHECK(!wf_idle_found(&idle));
    CHECK(wf_idle_found(&idle));
    check_counts(0, 8);
}

static void every_parked_worker_is_claimed_exactly_once(void)
{
    static const uint32_t workers[] = { 1, 2, 64, 65, 200, 1024 };
    for (size_t i = 0; i < sizeof workers / sizeof workers[0]; i++) {
        uint32_t count = workers[i];
        static bool claimed[WF_IDLE_WORKERS_MAX];
        reset(count);
        for (uint32_t w = 0; w < count; w++) {
            claimed[w] = false;
            wf_idle_park(&idle, w, false);
        }
        check_counts(0, 0);
        for (uint32_t n = 0; n < count; n++) {
            uint32_t worker = notify();
            CHECK_LT(worker, count);
            CHECK(!claimed[worker]);
            claimed[worker] = true;
            CHECK(wf_idle_unpark(&idle, worker));
            CHECK(wf_idle_found(&idle));
        }
        CHECK_EQ(notify(), WF_IDLE_NOBODY);
        check_counts(0, count);
    }
}

static void each_single_parked_worker_is_found(void)
{
    reset(200);
    for (uint32_t worker = 0; worker < 200; worker++) {
        wf_idle_park(&idle, worker, false);
        CHECK_EQ(notify(), worker);
        CHECK(wf_idle_unpark(&idle, worker));
        CHECK(wf_idle_found(&idle));
    }
    CHECK_EQ(looks, 0);
}

/*
 * Sets up the moment in which a parked worker that woke by itself has cleared its bit, while the
 * notifier has reserved its wake: the counts say "parked", but no bit is set.
 */
static void make_sleeper_vanish(uint32_t worker)
{
    wf_idle_park(&idle, worker, false);
    atomic_store(&idle.parked[worker / 64], 0);
}

static void claim_of_worker_that_woke_by_itself_is_undone(void)
{
    reset(2);
    make_sleeper_vanish(1);
    CHECK_EQ(notify(), WF_IDLE_NOBODY);
    CHECK_EQ(looks, 1);
    check_counts(0, 1);
}

static void failed_claim_is_retried_while_work_remains(void)
{
    reset(2);
    make_sleeper_vanish(1);
    looks_with_work = 5;
    CHECK_EQ(notify(), WF_IDLE_NOBODY);
    CHECK_EQ(looks, 6);
    check_counts(0, 1);
}

static bool look_while_another_parks(void *arg)
{
    CHECK_EQ(wf_idle_searching(arg), 0); /* Undone before the look. */
    looks++;
    wf_idle_park(arg, 0, false);
    return true;
}

static void failed_claim_finds_next_parked_worker(void)
{
    reset(2);
    make_sleeper_vanish(1);
    CHECK_EQ(wf_idle_notify(&idle, look_while_another_parks, &idle), 0);
    CHECK_EQ(looks, 1);
    check_counts(1, 1);
}

static void found_without_searching(void)
{
    reset(2);
    (void)wf_idle_found(&idle);
}

static void park_more_workers_than_exist(void)
{
    reset(1);
    wf_idle_park(&idle, 0, false);
    wf_idle_park(&idle, 0, false);
}

static void init_without_workers(void)
{
    wf_idle_init(&idle, 0);
}

static void init_with_too_many_workers(void)
{
    wf_idle_init(&idle, WF_IDLE_WORKERS_MAX + 1);
}

static void count_underflow_aborts(void)
{
    CHECK_ABORTS(found_without_searching, "searching_of(old) > 0");
    CHECK_ABORTS(park_more_workers_than_exist, "unparked_of(old) > 0");
    CHECK_ABORTS(init_without_workers, "workers >= 1");
    CHECK_ABORTS(init_with_too_many_workers, "workers <= ");
}

/* The worker that parks and unparks, and the notifier. */
static bool was_claimed;
static uint32_t claimed_worker;

static void unpark_contested(void)
{
    was_claimed = wf_idle_unpark(&idle, 1);
}

static void notify_contested(void)
{
    claimed_worker = notify();
}

static void check_contested(void)
{
    CHECK_EQ(claimed_worker, was_claimed ? 1 : WF_IDLE_NOBODY);
    check_counts(was_claimed, 2);
    CHECK(!wf_idle_is_parked(&idle, 1));
    reset(2);
}

static void park_contested(void)
{
    wf_idle_park(&idle, 1, false);
}

/*
 * Goal:   when a worker unparks by itself during a notification, or the other way round, it is
 *         claimed or not, and both sides agree.
 * Method: interrupt each side by the other after each of its instructions.
 */
static void unpark_and_notify_may_interrupt_each_other(void)
{
    unsigned outcomes[2][2] = { { 0 } };
    reset(2);
    wf_idle_park(&idle, 1, false);
    for (int n = 0; test_interrupt_after(n, unpark_contested, notify_contested); n++) {
        outcomes[0][was_claimed]++;
        check_contested();
        wf_idle_park(&idle, 1, false);
    }
    reset(2);
    wf_idle_park(&idle, 1, false);
    for (int n = 0; test_interrupt_after(n, notify_contested, unpark_contested); n++) {
        outcomes[1][was_claimed]++;
        check_contested();
        wf_idle_park(&idle, 1, false);
    }
    test_check_both(outcomes[0]);
    test_check_both(outcomes[1]);
}

/*
 * Goal:   a notification during parking finds the worker or none.
 * Method: interrupt parking after each of its instructions.
 */
static void notify_may_interrupt_park(void)
{
    unsigned outcomes[2] = { 0 };
    reset(2);
    for (int n = 0; test_interrupt_after(n, park_contested, notify_contested); n++) {
        outcomes[claimed_worker == 1]++;
        CHECK(claimed_worker == 1 || claimed_worker == WF_IDLE_NOBODY);
        unpark_contested();
        check_contested();
    }
    test_check_both(outcomes);
}

enum {
    MACHINE_WORKERS_MAX = 80
};

/*
 * The protocol with a queue that is a counter. Its workers take from it, search and park like
 * those of the scheduler.
 */
struct machine {
    struct wf_idle idle;
    uint32_t workers;
    struct wf_park parks[MACHINE_WORKERS_MAX];
    _Atomic(uint64_t) queue;
    _Atomic(uint64_t) done;
    _Atomic(uint64_t) submitted;  /* before the push */
    _Atomic(uint64_t) notified;   /* after the notification */
    _Atomic(uint64_t) park_count; /* before each park */
    _Atomic(uint32_t) stop;
    _Atomic(uint64_t) next_index;
    int64_t end; /* when submitting ends */
};

static struct machine machine;

static bool machine_has_work(void *arg)
{
    (void)arg;
    return atomic_load_explicit(&machine.queue, memory_order_relaxed) > 0;
}

static void machine_notify(void)
{
    uint32_t worker = wf_idle_notify(&machine.idle, machine_has_work, NULL);
    if (worker != WF_IDLE_NOBODY) {
        CHECK_LT(worker, machine.workers);
        wf_park_wake(&machine.parks[worker]);
    }
}

static bool machine_take(void)
{
    uint64_t length = atomic_load_explicit(&machine.queue, memory_order_relaxed);
    while (length > 0) {
        if (atomic_compare_exchange_weak_explicit(&machine.queue, &length, length - 1,
                                                  memory_order_relaxed, memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

/* Parks unless there is a reason not to. Returns whether the worker now searches. */
static bool machine_park(uint32_t index, bool searching)
{
    (void)atomic_fetch_add(&machine.park_count, 1);
    wf_idle_park(&machine.idle, index, searching);
    bool has_work = machine_has_work(NULL);
    if (!has_work && atomic_load(&machine.stop) == 0) {
        CHECK(wf_park_sleep(&machine.parks[index], WF_NEVER));
    }
    if (wf_idle_unpark(&machine.idle, index)) {
        return true;
    }
    if (has_work) {
        wf_idle_search(&machine.idle);
    }
    return has_work;
}

static void *machine_worker(void *arg)
{
    (void)arg;
    uint32_t index = (uint32_t)atomic_fetch_add(&machine.next_index, 1);
    bool searching = false;
    while (atomic_load(&machine.stop) == 0) {
        if (machine_take()) {
            if (searching) {
                searching = false;
                if (wf_idle_found(&machine.idle) && machine_has_work(NULL)) {
                    machine_notify();
                }
            }
            (void)atomic_fetch_add(&machine.done, 1);
        } else if (!searching && wf_idle_try_search(&machine.idle)) {
            searching = true;
        } else {
            searching = machine_park(index, searching);
        }
    }
    if (searching) {
        (void)wf_idle_found(&machine.idle);
    }
    return NULL;
}

static bool all_parked(void)
{
    for (uint32_t i = 0; i < machine.workers; i++) {
        if (atomic_load(&machine.parks[i].word) != 1) { /* PARKED, see park.h */
            return false;
        }
    }
    return true;
}

/*
 * Returns whether a wake was lost. If all workers are parked at two consecutive looks and none
 * came back in between, all were parked at the same time. If work was queued then, and no thread
 * was about to submit or notify, it stays queued forever.
 */
static bool is_stuck(void)
{
    uint64_t notified = atomic_load(&machine.notified);
    uint64_t submitted = atomic_load(&machine.submitted);
    uint64_t parks_before = atomic_load(&machine.park_count);
    if (notified != submitted || !all_parked()) {
        return false;
    }
    bool has_work = atomic_load(&machine.queue) > 0;
    return all_parked() && has_work && atomic_load(&machine.park_count) == parks_before &&
           atomic_load(&machine.submitted) == submitted;
}

static void wait_until_done(uint64_t count)
{
    while (atomic_load(&machine.done) < count) {
        CHECK(!is_stuck());
        (void)sched_yield();
    }
}

static void *machine_submitter(void *arg)
{
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), (uint64_t)(uintptr_t)arg);
    while (wf_clock_now() < machine.end) {
        for (uint32_t n = 1 + wf_rng_below(&rng, 3); n > 0; n--) {
            uint64_t submitted = atomic_fetch_add(&machine.submitted, 1) + 1;
            (void)atomic_fetch_add_explicit(&machine.queue, 1, memory_order_relaxed);
            machine_notify();
            (void)atomic_fetch_add(&machine.notified, 1);
            if (wf_rng_below(&rng, 2) == 0) {
                wait_until_done(submitted); /* Lets the workers park. */
            }
        }
    }
    return NULL;
}

static void *machine_nudger(void *arg)
{
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 99);
    (void)arg;
    while (atomic_load(&machine.stop) == 0) {
        wf_park_wake(&machine.parks[wf_rng_below(&rng, machine.workers)]);
        (void)sched_yield();
    }
    return NULL;
}

static void machine_run(uint32_t workers, bool nudges)
{
    enum {
        SUBMITTERS = 2
    };
    machine = (struct machine){ .workers = workers };
    wf_idle_init(&machine.idle, workers);
    machine.end = wf_clock_now() + (test_race_end() - wf_clock_now()) / 2;
    pthread_t threads[MACHINE_WORKERS_MAX];
    pthread_t submitters[SUBMITTERS];
    pthread_t nudger;
    for (uint32_t i = 0; i < workers; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, machine_worker, NULL), 0);
    }
    for (uintptr_t i = 0; i < SUBMITTERS; i++) {
        CHECK_EQ(pthread_create(&submitters[i], NULL, machine_submitter, (void *)i), 0);
    }
    if (nudges) {
        CHECK_EQ(pthread_create(&nudger, NULL, machine_nudger, NULL), 0);
    }
    for (int i = 0; i < SUBMITTERS; i++) {
        CHECK_EQ(pthread_join(submitters[i], NULL), 0);
    }
    wait_until_done(atomic_load(&machine.submitted));

    atomic_store(&machine.stop, 1);
    for (uint32_t i = 0; i < workers; i++) {
        wf_park_wake(&machine.parks[i]);
    }
    for (uint32_t i = 0; i < workers; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    if (nudges) {
        CHECK_EQ(pthread_join(nudger, NULL), 0);
    }
    CHECK_EQ(machine.queue, 0);
    CHECK_EQ(machine.done, machine.submitted);
    CHECK_EQ(wf_idle_searching(&machine.idle), 0);
    CHECK_EQ(wf_idle_unparked(&machine.idle), workers);
}

/*
 * Goal:   no task stays queued while all workers are parked.
 * Method: workers park like the scheduler's. Two threads submit a few tasks at a time and often
 *         wait until all are done, so that the workers keep parking. At the end the counts must
 *         be as at the start.
 */
static void no_task_stays_queued_while_all_workers_are_parked(void)
{
    machine_run(1, false);
    machine_run(2, false);
    machine_run(4, false);
    machine_run(70, false);
}

/*
 * Goal:   a worker that unparks by itself while it is claimed is counted correctly, and a failed
 *         claim loses no wake.
 * Method: the same, while another thread causes spurious wake-ups.
 */
static void spurious_wakes_keep_counts_correct(void)
{
    machine_run(1, true);
    machine_run(2, true);
    machine_run(5, true);
}

enum {
    CLAIMERS_MAX = 2
};

static _Atomic(uint64_t) claim_round;
static _Atomic(uint64_t) claim_done;
static _Atomic(uint64_t) claims_won;
static _Atomic(uint32_t) claim_stop;

static bool no_work(void *arg)
{
    (void)arg;
    return false;
}

static void *claimer_main(void *arg)
{
    (void)arg;
    for (uint64_t round = 1;; round++) {
        test_spin_for(&claim_round, round);
        if (atomic_load(&claim_stop) != 0) {
            return NULL;
        }
        if (wf_idle_notify(&idle, no_work, NULL) != WF_IDLE_NOBODY) {
            (void)atomic_fetch_add(&claims_won, 1);
        }
        (void)atomic_fetch_add(&claim_done, 1);
    }
}

static void run_claims(unsigned claimers)
{
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), claimers);
    reset(3);
    atomic_store(&claim_round, 0);
    atomic_store(&claim_done, 0);
    atomic_store(&claims_won, 0);
    atomic_store(&claim_stop, 0);
    pthread_t threads[CLAIMERS_MAX];
    for (unsigned i = 0; i < claimers; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, claimer_main, NULL), 0);
    }
    struct test_rounds rounds = test_rounds_begin();
    for (uint64_t round = 1; test_rounds_next(&rounds); round++) {
        uint64_t before = atomic_load(&claims_won);
        wf_idle_park(&idle, 1, false);
        atomic_store(&claim_round, round);
        for (uint32_t i = wf_rng_below(&rng, 1u << wf_rng_below(&rng, 8)); i > 0; i--) {
            wf_cpu_relax();
        }
        bool claimed = wf_idle_unpark(&idle, 1);
        test_spin_for(&claim_done, claimers * round);
        CHECK_EQ(atomic_load(&claims_won) - before, claimed);
        test_rounds_count(&rounds, claimed);
        check_counts(claimed, 3);
        CHECK(!wf_idle_is_parked(&idle, 1));
        if (claimed) {
            CHECK(wf_idle_found(&idle));
        }
    }
    atomic_store(&claim_stop, 1);
    atomic_store(&claim_round, UINT64_MAX);
    for (unsigned i = 0; i < claimers; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
}

/*
 * Goal:   a parked worker is claimed by at most one notifier, knows whether it was, and the
 *         counts are correct, also if it unparks by itself meanwhile.
 * Method: one or two threads notify while the worker unparks, over and over.
 */
static void parked_worker_is_claimed_once_or_unparks_by_itself(void)
{
    run_claims(1);
    run_claims(2);
}

TEST_MAIN({
    TEST(initially_no_worker_is_parked_or_searching),
    TEST(notify_without_parked_worker_wakes_none),
    TEST(notify_claims_parked_worker_and_counts_it_searching),
    TEST(notify_while_worker_searches_wakes_none),
    TEST(notify_after_claim_waits_for_claimed_worker),
    TEST(unpark_after_claim_returns_true_and_keeps_counts),
    TEST(unpark_without_claim_returns_false),
    TEST(searcher_that_parks_is_no_longer_searching),
    TEST(at_most_half_of_workers_search_on_their_own),
    TEST(search_after_seeing_work_ignores_cap),
    TEST(found_returns_true_for_last_searcher),
    TEST(every_parked_worker_is_claimed_exactly_once),
    TEST(each_single_parked_worker_is_found),
    TEST(claim_of_worker_that_woke_by_itself_is_undone),
    TEST(failed_claim_is_retried_while_work_remains),
    TEST(failed_claim_finds_next_parked_worker),
    TEST(count_underflow_aborts),
    TEST_STEPS(unpark_and_notify_may_interrupt_each_other),
    TEST_STEPS(notify_may_interrupt_park),
    TEST(no_task_stays_queued_while_all_workers_are_parked),
    TEST(spurious_wakes_keep_counts_correct),
    TEST(parked_worker_is_claimed_once_or_unparks_by_itself),
})
