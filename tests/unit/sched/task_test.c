/* SPDX-License-Identifier: MIT */
#include "sched/task.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <weft.h>

#include "base/clock.h"
#include "rt.h"
#include "sched/heap.h"
#include "sched/worker.h"
#include "test.h"
#include "timing.h"

/* --- Transitions of a fake task that counts --------------------------------- */

struct fake {
    struct wf_task task;
    int scheduled;
    int cancelled;
    int destroyed;
};

static void fake_schedule(struct wf_task *task)
{
    ((struct fake *)task)->scheduled++;
}

static void fake_canceled(struct wf_task *task)
{
    ((struct fake *)task)->cancelled++;
}

static void fake_destroy(struct wf_task *task)
{
    ((struct fake *)task)->destroyed++;
}

static const struct wf_task_ops fake_ops = {
    .kind = "fake", .schedule = fake_schedule, .cancelled = fake_canceled, .destroy = fake_destroy
};

/* The same for a kind of task that learns of its cancellation at its next poll. */
static const struct wf_task_ops patient_ops = { .kind = "patient",
                                                .schedule = fake_schedule,
                                                .destroy = fake_destroy };

static struct fake make_fake(const struct wf_task_ops *ops, uint64_t lifecycle, uint32_t refs)
{
    struct fake fake = { .task.ops = ops };
    fake.task.state = lifecycle | refs * WF_STATE_REF;
    return fake;
}

static void check_fake(const struct fake *fake, int scheduled, int destroyed, uint32_t refs)
{
    CHECK_EQ(fake->scheduled, scheduled);
    CHECK_EQ(fake->destroyed, destroyed);
    CHECK_EQ(wf_state_refs(wf_task_state(&fake->task)), refs);
}

static void task_header_fits_cache_line(void)
{
    CHECK_LE(sizeof(struct wf_task), 64);
}

static void node_leads_back_to_its_task(void)
{
    struct wf_task task = { .id = 7 };
    CHECK(wf_task_of(&task.node) == &task);
}

static void wake_schedules_idle_task_and_drops_reference(void)
{
    struct fake fake = make_fake(&fake_ops, WF_STATE_IDLE, 3);
    wf_task_wake(&fake.task);
    check_fake(&fake, 1, 0, 2);
    wf_task_wake(&fake.task); /* Already scheduled. */
    check_fake(&fake, 1, 0, 1);
}

static uint32_t refs_in_schedule;

static void note_refs_schedule(struct wf_task *task)
{
    refs_in_schedule = wf_state_refs(wf_task_state(task));
}

/*
 * Once the task is queued, only that reference keeps heap and scheduler alive for the thread that
 * is still inside the wake.
 */
static void wake_from_outside_holds_reference_until_task_is_queued(void)
{
    static const struct wf_task_ops ops = { .kind = "noting", .schedule = note_refs_schedule };
    struct fake fake = make_fake(&ops, WF_STATE_IDLE, 2);
    wf_task_wake(&fake.task);
    CHECK_EQ(refs_in_schedule, 2);
    check_fake(&fake, 0, 0, 1);
}

static int wake_on_worker(void *arg)
{
    bool is_own = arg != NULL;
    static struct wf_heap other;
    static const struct wf_task_ops ops = { .kind = "noting", .schedule = note_refs_schedule };
    struct fake fake = make_fake(&ops, WF_STATE_IDLE, 2);
    fake.task.heap = is_own ? wf_worker_current()->heap : &other;
    wf_task_wake(&fake.task);
    CHECK_EQ(refs_in_schedule, is_own ? 1 : 2);
    check_fake(&fake, 0, 0, 1);
    return 0;
}

/*
 * The same holds for a worker of another runtime. A worker of the task's own runtime keeps the
 * scheduler alive itself.
 */
static void wake_on_foreign_worker_holds_reference_until_queued(void)
{
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_run(rt, wake_on_worker, NULL), 0);
    CHECK_EQ(test_run(rt, wake_on_worker, rt), 0);
    weft_runtime_destroy(rt);
}

static void wake_ref_schedules_and_keeps_reference(void)
{
    struct fake fake = make_fake(&fake_ops, WF_STATE_IDLE, 2);
    wf_task_wake_ref(&fake.task);
    check_fake(&fake, 1, 0, 2);
    wf_task_wake_ref(&fake.task);
    check_fake(&fake, 1, 0, 2);
}

static void wake_of_running_task_sets_notified(void)
{
    struct fake fake = make_fake(&fake_ops, WF_STATE_RUNNING, 2);
    wf_task_wake(&fake.task);
    check_fake(&fake, 0, 0, 1);
    CHECK_EQ(wf_state_pend(&fake.task.state), WF_STEP_SCHEDULE);
}

static void last_wake_of_complete_task_destroys_it(void)
{
    struct fake fake = make_fake(&fake_ops, WF_STATE_COMPLETE, 2);
    wf_task_wake(&fake.task);
    check_fake(&fake, 0, 0, 1);
    wf_task_wake_ref(&fake.task);
    check_fake(&fake, 0, 0, 1);
    wf_task_wake(&fake.task);
    check_fake(&fake, 0, 1, 0);
}

static void last_release_destroys_task(void)
{
    struct fake fake = make_fake(&fake_ops, WF_STATE_COMPLETE, 1);
    wf_task_retain(&fake.task);
    wf_task_release(&fake.task);
    check_fake(&fake, 0, 0, 1);
    wf_task_release(&fake.task);
    check_fake(&fake, 0, 1, 0);
}

static void cancel_schedules_idle_task_once(void)
{
    struct fake fake = make_fake(&fake_ops, WF_STATE_IDLE, 2);
    wf_task_cancel(&fake.task);
    check_fake(&fake, 1, 0, 2);
    CHECK_EQ(fake.cancelled, 0);
    wf_task_cancel(&fake.task);
    check_fake(&fake, 1, 0, 2);
}

static void cancel_notifies_task_that_it_does_not_schedule(void)
{
    static const uint64_t words[] = { WF_STATE_RUNNING, WF_STATE_IDLE | WF_STATE_SHIELD };
    for (int i = 0; i < 2; i++) {
        struct fake fake = make_fake(&fake_ops, words[i], 2);
        wf_task_cancel(&fake.task);
        wf_task_cancel(&fake.task);
        check_fake(&fake, 0, 0, 2);
        CHECK_EQ(fake.cancelled, 1);

        fake = make_fake(&patient_ops, words[i], 2);
        wf_task_cancel(&fake.task);
        check_fake(&fake, 0, 0, 2);
    }
}

static void cancel_of_complete_task_does_nothing(void)
{
    struct fake fake = make_fake(&fake_ops, WF_STATE_COMPLETE, 2);
    wf_task_cancel(&fake.task);
    check_fake(&fake, 0, 0, 2);
    CHECK_EQ(fake.cancelled, 0);
}

static void complete_keeps_result_for_handle(void)
{
    struct fake fake = make_fake(&fake_ops, WF_STATE_RUNNING, 2);
    wf_task_complete(&fake.task, -5);
    check_fake(&fake, 0, 0, 1);
    CHECK_EQ(fake.task.result, -5);
    CHECK(wf_state_is_complete(wf_task_state(&fake.task)));
}

static void complete_without_handle_destroys_task(void)
{
    struct fake fake = make_fake(&fake_ops, WF_STATE_RUNNING, 1);
    wf_task_complete(&fake.task, 0);
    check_fake(&fake, 0, 1, 0);
}

/* --- Through the API --------------------------------------------------------- */

static int compare_ids(const void *a, const void *b)
{
    uint64_t one = *(const uint64_t *)a;
    uint64_t two = *(const uint64_t *)b;
    return one < two ? -1 : one > two;
}

enum {
    PARENTS = 20,
    CHILDREN = 20
};

static _Atomic(uint64_t) id_count;
static uint64_t ids[PARENTS * (2 * CHILDREN + 1)];

static void note_id(uint64_t id)
{
    CHECK_NE(id, 0);
    ids[atomic_fetch_add(&id_count, 1)] = id;
}

static int note_id_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    note_id(weft_task_id(weft_task_current()));
    return 0;
}

static int note_id_job(void *arg)
{
    (void)arg;
    note_id(weft_task_id(weft_task_current()));
    return 0;
}

static int note_family_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    note_id(weft_task_id(weft_task_current()));
    for (int i = 0; i < CHILDREN; i++) {
        CHECK_EQ(weft_spawn(NULL, &(weft_spec){ .body = note_id_body }), 0);
        CHECK_EQ(weft_spawn_blocking(NULL, note_id_job, NULL), 0);
    }
    return 0;
}

static void task_ids_are_unique_for_all_spawners(void)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 3;
    config.blocking_threads = 4;
    weft_runtime *rt;
    CHECK_EQ(weft_runtime_create(&rt, &config), 0);
    atomic_store(&id_count, 0);
    for (int i = 0; i < PARENTS; i++) {
        CHECK_EQ(weft_runtime_spawn(rt, NULL, &(weft_spec){ .body = note_family_body }), 0);
    }
    test_wait_for(&id_count, PARENTS * (2 * CHILDREN + 1));
    weft_runtime_destroy(rt);
    qsort(ids, PARENTS * (2 * CHILDREN + 1), sizeof ids[0], compare_ids);
    for (int i = 1; i < PARENTS * (2 * CHILDREN + 1); i++) {
        CHECK_NE(ids[i], ids[i - 1]);
    }
}

static void task_has_name_of_its_spec(void)
{
    weft_runtime *rt = test_start(1);
    weft_task *named;
    weft_task *unnamed;
    CHECK_EQ(weft_runtime_spawn(rt, &named, &(weft_spec){ .body = test_return_7, .name = "seven" }),
             0);
    CHECK_EQ(weft_runtime_spawn(rt, &unnamed, &(weft_spec){ .body = test_return_7 }), 0);
    CHECK(strcmp(weft_task_name(named), "seven") == 0);
    CHECK(weft_task_name(unnamed) == NULL);
    CHECK_EQ(test_join(named), 7);
    CHECK_EQ(test_join(unnamed), 7);
    weft_runtime_destroy(rt);
}

static int return_current_body(weft_co *co, void *state)
{
    (void)co;
    *(weft_task **)test_arg(state) = weft_task_retain(weft_task_current());
    return 0;
}

static void current_task_is_known_only_while_it_runs(void)
{
    CHECK(weft_task_current() == NULL);
    CHECK(!weft_cancelled());
    weft_runtime *rt = test_start(1);
    weft_task *current = NULL;
    weft_task *task = test_spawn(rt, return_current_body, &current);
    weft_task *extra = weft_task_retain(task);
    CHECK_EQ(test_join(task), 0);
    CHECK(current == extra);
    CHECK(weft_task_is_done(extra));
    weft_detach(extra);
    weft_detach(current);
    weft_detach(NULL);
    weft_runtime_destroy(rt);
}

static int check_state_body(weft_co *co, void *state)
{
    (void)co;
    CHECK_EQ((uintptr_t)state % 32, 0);
    const unsigned char *bytes = state;
    int sum = 0;
    for (int i = 0; i < 64; i++) {
        sum += bytes[i];
    }
    return sum;
}

static void state_is_copied_or_zeroed_and_aligned(void)
{
    static const size_t sizes[] = { 64, 65, 100, 500, 900, 1000, 5000 };
    static unsigned char state[5000];
    weft_runtime *rt = test_start(1);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        weft_spec spec = { .body = check_state_body, .state = state, .state_size = sizes[i] };
        weft_task *task;
        memset(state, 1, sizeof state);
        CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
        memset(state, 9, sizeof state);
        CHECK_EQ(test_join(task), 64);
        spec.state = NULL;
        CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
        CHECK_EQ(test_join(task), 0);
    }
    weft_runtime_destroy(rt);
}

struct drops {
    _Atomic(uint64_t) started;
    _Atomic(uint64_t) dropped;
};

static void count_drop(void *state)
{
    (void)atomic_fetch_add(&((struct drops *)test_arg(state))->dropped, 1);
}

/* Waits for a wake that never comes. */
static int wait_forever_body(weft_co *co, void *state)
{
    (void)co;
    (void)atomic_fetch_add(&((struct drops *)test_arg(state))->started, 1);
    return WEFT_PENDING;
}

static int end_at_once_body(weft_co *co, void *state)
{
    (void)co;
    (void)atomic_fetch_add(&((struct drops *)test_arg(state))->started, 1);
    return 0;
}

static void drop_is_called_once_however_task_ends(void)
{
    weft_runtime *rt = test_start(2);
    struct drops drops = { 0 };
    void *arg = &drops;
    weft_spec ends = { end_at_once_body, count_drop, &arg, sizeof arg, NULL, 0 };
    weft_spec waits = { wait_forever_body, count_drop, &arg, sizeof arg, NULL, 0 };
    weft_task *task;

    CHECK_EQ(weft_runtime_spawn(rt, &task, &ends), 0); /* It ends. */
    CHECK_EQ(test_join(task), 0);
    CHECK_EQ(drops.dropped, 1);

    CHECK_EQ(weft_runtime_spawn(rt, &task, &waits), 0); /* It is canceled. */
    weft_cancel(task);
    CHECK_EQ(test_join(task), WEFT_ECANCELED);
    CHECK_EQ(drops.dropped, 2);

    CHECK_EQ(weft_runtime_spawn(rt, NULL, &ends), 0); /* It has no joiner. */
    test_wait_for(&drops.dropped, 3);

    CHECK_EQ(weft_runtime_spawn(rt, NULL, &waits), 0); /* The runtime ends. */
    weft_runtime_destroy(rt);
    CHECK_EQ(drops.dropped, 4);
}

static int count_canceled_body(weft_co *co, void *state)
{
    (void)co;
    (void)atomic_fetch_add((_Atomic(uint64_t) *)test_arg(state), 1);
    return weft_cancelled() ? 3 : 4;
}

/* Occupies its worker until it is released. */
static int plug_body(weft_co *co, void *state)
{
    (void)co;
    _Atomic(uint64_t) *steps = test_arg(state);
    (void)atomic_fetch_add(steps, 1);
    test_wait_for(steps, 2);
    return 0;
}

static void task_canceled_before_first_poll_is_polled_once(void)
{
    weft_runtime *rt = test_start(1);
    _Atomic(uint64_t) steps = 0;
    _Atomic(uint64_t) polls = 0;
    weft_task *plug = test_spawn(rt, plug_body, (void *)&steps);
    test_wait_for(&steps, 1);
    weft_task *task = test_spawn(rt, count_canceled_body, (void *)&polls);
    weft_cancel(task);
    CHECK(!weft_task_is_done(task));
    (void)atomic_fetch_add(&steps, 1);
    CHECK_EQ(test_join(plug), 0);
    CHECK_EQ(test_join(task), 3); /* Its own result is kept. */
    CHECK_EQ(polls, 1);
    weft_runtime_destroy(rt);
}

static void cancel_after_end_changes_nothing(void)
{
    weft_runtime *rt = test_start(1);
    weft_task *task = test_spawn(rt, test_return_7, NULL);
    weft_task *extra = weft_task_retain(task);
    CHECK_EQ(test_join(task), 7);
    weft_cancel(extra);
    int result = 0;
    CHECK_EQ(weft_try_join(extra, &result), 0);
    CHECK_EQ(result, 7);
    weft_runtime_destroy(rt);
}

static int cancel_self_under_shields_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    weft_shield_enter();
    weft_shield_enter();
    weft_cancel(weft_task_current());
    CHECK(!weft_cancelled());
    weft_shield_leave();
    CHECK(!weft_cancelled());
    weft_shield_leave();
    CHECK(weft_cancelled());
    weft_shield_enter();
    CHECK(!weft_cancelled());
    weft_shield_leave();
    return 1;
}

static void shield_hides_cancellation(void)
{
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_join(test_spawn(rt, cancel_self_under_shields_body, NULL)), 1);
    weft_runtime_destroy(rt);
}

static int leave_too_often_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    weft_shield_enter();
    weft_shield_leave();
    weft_shield_leave();
    return 0;
}

static int enter_too_often_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    for (int i = 0; i < 256; i++) {
        weft_shield_enter();
    }
    return 0;
}

static void leave_too_often(void)
{
    (void)test_join(test_spawn(test_start(1), leave_too_often_body, NULL));
}

static void enter_too_often(void)
{
    (void)test_join(test_spawn(test_start(1), enter_too_often_body, NULL));
}

static void unbalanced_shields_abort(void)
{
    CHECK_ABORTS(leave_too_often, "weft_shield_leave: no shield is entered");
    CHECK_ABORTS(enter_too_often, "weft_shield_enter: over 255 shields");
    CHECK_ABORTS(weft_shield_enter, "weft_shield_enter: no task runs here");
    CHECK_ABORTS(weft_shield_leave, "weft_shield_leave: no task runs here");
}

enum {
    WAKERS = 3
};

/* A task that many threads wake, and that records what it saw. */
struct woken {
    _Atomic(weft_waker *) waker;
    _Atomic(uint64_t) noted[WAKERS];
    _Atomic(uint64_t) seen[WAKERS];
    _Atomic(uint64_t) next_index;
    _Atomic(uint32_t) stop;
    uint64_t polls; /* plain: each poll sees the previous poll's value */
    int64_t end;
};

static int woken_body(weft_co *co, void *state)
{
    struct woken *woken = test_arg(state);
    (void)co;
    if (woken->polls++ == 0) {
        atomic_store(&woken->waker, weft_waker_current());
    }
    for (int i = 0; i < WAKERS; i++) {
        uint64_t noted = atomic_load_explicit(&woken->noted[i], memory_order_relaxed);
        atomic_store_explicit(&woken->seen[i], noted, memory_order_relaxed);
    }
    return atomic_load(&woken->stop) != 0 ? 0 : WEFT_PENDING;
}

static void *waker_main(void *arg)
{
    struct woken *woken = arg;
    uint64_t index = atomic_fetch_add(&woken->next_index, 1);
    weft_waker *waker;
    while ((waker = atomic_load(&woken->waker)) == NULL) {
        (void)sched_yield();
    }
    for (uint64_t round = 1; wf_clock_now() < woken->end; round++) {
        atomic_store_explicit(&woken->noted[index], round, memory_order_relaxed);
        if (round % 2 == 0) {
            weft_waker_wake(waker);
        } else {
            weft_waker_fire(weft_waker_clone(waker));
        }
        test_wait_for(&woken->seen[index], round);
    }
    return NULL;
}

/*
 * Goal:   a task is polled after each wake, by one worker at a time, and its references balance.
 * Method: three threads wake one task of a runtime with two workers, each after the task has seen
 *         its last number. A lost wake ends in the timeout of the test, and the poll count is
 *         plain.
 */
static void task_is_polled_after_each_wake(void)
{
    weft_runtime *rt = test_start(2);
    struct woken woken = { .end = test_race_end() };
    weft_task *task = test_spawn(rt, woken_body, &woken);
    pthread_t threads[WAKERS];
    for (int i = 0; i < WAKERS; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, waker_main, &woken), 0);
    }
    for (int i = 0; i < WAKERS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    atomic_store(&woken.stop, 1);
    weft_waker_fire(woken.waker);
    CHECK_EQ(test_join(task), 0);
    weft_runtime_destroy(rt);
}

enum {
    CANCELLERS = 2,
    VICTIMS = 50
};

struct cancelling {
    weft_task *victims[VICTIMS];
    struct drops drops;
    _Atomic(uint64_t) ready;
};

static void *canceler_main(void *arg)
{
    struct cancelling *cancelling = arg;
    (void)atomic_fetch_add(&cancelling->ready, 1);
    test_wait_for(&cancelling->ready, CANCELLERS);
    for (int i = 0; i < VICTIMS; i++) {
        weft_cancel(cancelling->victims[i]);
    }
    return NULL;
}

/*
 * Goal:   a task that several threads cancel at the same time ends once.
 * Method: two threads cancel the same tasks, which are waiting or about to be polled for the
 *         first time. Each is dropped once.
 */
static void task_canceled_by_several_threads_ends_once(void)
{
    weft_runtime *rt = test_start(2);
    struct test_rounds rounds = test_rounds_begin();
    while (test_rounds_next(&rounds)) {
        struct cancelling cancelling = { .ready = 0 };
        void *arg = &cancelling.drops;
        weft_spec spec = { wait_forever_body, count_drop, &arg, sizeof arg, NULL, 0 };
        for (int i = 0; i < VICTIMS; i++) {
            CHECK_EQ(weft_runtime_spawn(rt, &cancelling.victims[i], &spec), 0);
        }
        pthread_t threads[CANCELLERS];
        for (int i = 0; i < CANCELLERS; i++) {
            CHECK_EQ(pthread_create(&threads[i], NULL, canceler_main, &cancelling), 0);
        }
        for (int i = 0; i < CANCELLERS; i++) {
            CHECK_EQ(pthread_join(threads[i], NULL), 0);
        }
        for (int i = 0; i < VICTIMS; i++) {
            CHECK_EQ(test_join(cancelling.victims[i]), WEFT_ECANCELED);
        }
        CHECK_EQ(cancelling.drops.dropped, VICTIMS);
    }
    weft_runtime_destroy(rt);
}

static int wake_other_body(weft_co *co, void *state)
{
    (void)co;
    struct woken *woken = test_arg(state);
    atomic_store(&woken->stop, 1);
    weft_waker_fire(weft_waker_clone(woken->waker));
    return 0;
}

static void worker_of_another_runtime_can_wake_task(void)
{
    weft_runtime *here = test_start(1);
    weft_runtime *there = test_start(1);
    struct woken woken = { .stop = 0 };
    weft_task *task = test_spawn(here, woken_body, &woken);
    while (atomic_load(&woken.waker) == NULL) {
        (void)sched_yield();
    }
    CHECK_EQ(test_join(test_spawn(there, wake_other_body, &woken)), 0);
    CHECK_EQ(test_join(task), 0);
    weft_runtime_destroy(here);
    weft_waker_fire(woken.waker);
    weft_runtime_destroy(there);
}

TEST_MAIN({
    TEST(task_header_fits_cache_line),
    TEST(node_leads_back_to_its_task),
    TEST(wake_schedules_idle_task_and_drops_reference),
    TEST(wake_from_outside_holds_reference_until_task_is_queued),
    TEST(wake_on_foreign_worker_holds_reference_until_queued),
    TEST(wake_ref_schedules_and_keeps_reference),
    TEST(wake_of_running_task_sets_notified),
    TEST(last_wake_of_complete_task_destroys_it),
    TEST(last_release_destroys_task),
    TEST(cancel_schedules_idle_task_once),
    TEST(cancel_notifies_task_that_it_does_not_schedule),
    TEST(cancel_of_complete_task_does_nothing),
    TEST(complete_keeps_result_for_handle),
    TEST(complete_without_handle_destroys_task),
    TEST(task_ids_are_unique_for_all_spawners),
    TEST(task_has_name_of_its_spec),
    TEST(current_task_is_known_only_while_it_runs),
    TEST(state_is_copied_or_zeroed_and_aligned),
    TEST(drop_is_called_once_however_task_ends),
    TEST(task_canceled_before_first_poll_is_polled_once),
    TEST(cancel_after_end_changes_nothing),
    TEST(shield_hides_cancellation),
    TEST(unbalanced_shields_abort),
    TEST(task_is_polled_after_each_wake),
    TEST(task_canceled_by_several_threads_ends_once),
    TEST(worker_of_another_runtime_can_wake_task),
})
