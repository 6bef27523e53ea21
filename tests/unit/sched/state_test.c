/* SPDX-License-Identifier: MIT */
#include "sched/state.h"

#include <pthread.h>
#include <sched.h>

#include "base/clock.h"
#include "step.h"
#include "test.h"
#include "timing.h"

enum {
    IDLE,
    RUNNING,
    COMPLETE,
    LIFECYCLES
};

static const uint64_t lifecycles[LIFECYCLES] = { WF_STATE_IDLE, WF_STATE_RUNNING,
                                                 WF_STATE_COMPLETE };

#define FLAGS_ALL                                                                                  \
    (WF_STATE_NOTIFIED | WF_STATE_CANCELLED | WF_STATE_JOIN_INTEREST | WF_STATE_DETACHED)

static uint64_t word_of(int lifecycle, uint64_t flags, uint32_t shield, uint32_t refs)
{
    return lifecycles[lifecycle] | flags | shield * WF_STATE_SHIELD | refs * WF_STATE_REF;
}

/* A transition from one state word: the word it leaves and the step it asks for. */
struct row {
    uint64_t before;
    uint64_t after;
    enum wf_step step;
};

static enum wf_step wake_keep(_Atomic(uint64_t) *state)
{
    return wf_state_wake(state, 0);
}

static enum wf_step wake_give(_Atomic(uint64_t) *state)
{
    return wf_state_wake(state, WF_STATE_REF);
}

static enum wf_step begin(_Atomic(uint64_t) *state)
{
    uint64_t seen = wf_state_begin(state);
    CHECK_EQ(seen, atomic_load(state));
    return WF_STEP_NONE;
}

static void check_rows(enum wf_step (*step)(_Atomic(uint64_t) *state), const struct row *rows,
                       size_t count)
{
    for (size_t i = 0; i < count; i++) {
        _Atomic(uint64_t) state = rows[i].before;
        CHECK_EQ(step(&state), rows[i].step);
        CHECK_EQ(atomic_load(&state), rows[i].after);
    }
}

#define CHECK_ROWS(step, rows) check_rows((step), (rows), sizeof(rows) / sizeof((rows)[0]))

static void state_fields_do_not_overlap(void)
{
    const uint64_t fields[] = { UINT32_MAX,
                                0xff * WF_STATE_SHIELD,
                                WF_STATE_NOTIFIED,
                                WF_STATE_CANCELLED,
                                WF_STATE_JOIN_INTEREST,
                                WF_STATE_DETACHED,
                                WF_STATE_LIFECYCLE_MASK,
                                WF_STATE_ORPHAN };
    uint64_t seen = 0;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        CHECK_EQ(seen & fields[i], 0);
        seen |= fields[i];
    }
}

static void each_state_field_reads_back(void)
{
    for (int lifecycle = 0; lifecycle < LIFECYCLES; lifecycle++) {
        uint64_t word = word_of(lifecycle, FLAGS_ALL, 255, UINT32_MAX) | WF_STATE_ORPHAN;
        CHECK_EQ(wf_state_lifecycle(word), lifecycles[lifecycle]);
        CHECK_EQ(wf_state_shield(word), 255);
        CHECK_EQ(wf_state_refs(word), UINT32_MAX);
        CHECK_EQ(wf_state_is_complete(word), lifecycle == COMPLETE);
    }
}

static void must_cancel_requires_flag_and_no_shield(void)
{
    CHECK(!wf_state_must_cancel(word_of(RUNNING, 0, 0, 1)));
    CHECK(wf_state_must_cancel(word_of(RUNNING, WF_STATE_CANCELLED, 0, 1)));
    CHECK(!wf_state_must_cancel(word_of(RUNNING, WF_STATE_CANCELLED, 1, 1)));
    CHECK(!wf_state_must_cancel(word_of(RUNNING, WF_STATE_CANCELLED, 255, 1)));
}

static void retain_and_release_change_only_reference_count(void)
{
    for (int lifecycle = 0; lifecycle < LIFECYCLES; lifecycle++) {
        _Atomic(uint64_t) state = word_of(lifecycle, FLAGS_ALL, 3, 1);
        wf_state_retain(&state);
        CHECK_EQ(atomic_load(&state), word_of(lifecycle, FLAGS_ALL, 3, 2));
        CHECK_EQ(wf_state_release(&state), word_of(lifecycle, FLAGS_ALL, 3, 2));
        CHECK_EQ(wf_state_refs(wf_state_release(&state)), 1);
        CHECK_EQ(atomic_load(&state), word_of(lifecycle, FLAGS_ALL, 3, 0));
    }
}

static void transition_to_idle_stays_running_if_notified(void)
{
    const uint64_t others = WF_STATE_CANCELLED | WF_STATE_JOIN_INTEREST | WF_STATE_DETACHED;
    const struct row rows[] = {
        { word_of(RUNNING, 0, 0, 1), word_of(IDLE, 0, 0, 1), WF_STEP_NONE },
        { word_of(RUNNING, others, 4, 5), word_of(IDLE, others, 4, 5), WF_STEP_NONE },
        { word_of(RUNNING, WF_STATE_NOTIFIED, 0, 1), word_of(RUNNING, 0, 0, 1), WF_STEP_SCHEDULE },
        { word_of(RUNNING, WF_STATE_NOTIFIED | others, 255, UINT32_MAX),
          word_of(RUNNING, others, 255, UINT32_MAX), WF_STEP_SCHEDULE },
    };
    CHECK_ROWS(wf_state_pend, rows);
}

static void begin_clears_notified_flag(void)
{
    const uint64_t others = WF_STATE_CANCELLED | WF_STATE_JOIN_INTEREST | WF_STATE_DETACHED;
    const struct row rows[] = {
        { word_of(RUNNING, 0, 0, 1), word_of(RUNNING, 0, 0, 1), WF_STEP_NONE },
        { word_of(RUNNING, WF_STATE_NOTIFIED, 0, 1), word_of(RUNNING, 0, 0, 1), WF_STEP_NONE },
        { word_of(RUNNING, FLAGS_ALL, 9, 3), word_of(RUNNING, others, 9, 3), WF_STEP_NONE },
    };
    CHECK_ROWS(begin, rows);
}

static void complete_drops_self_reference_unless_joiner_waits(void)
{
    static const struct {
        uint64_t flags;
        uint32_t refs_after;
        uint64_t flags_after;
    } rows[] = {
        { 0, 2, 0 },
        { WF_STATE_NOTIFIED, 2, 0 },
        { WF_STATE_DETACHED | WF_STATE_CANCELLED, 2, WF_STATE_DETACHED | WF_STATE_CANCELLED },
        { WF_STATE_JOIN_INTEREST, 3, WF_STATE_JOIN_INTEREST },
        { WF_STATE_JOIN_INTEREST | WF_STATE_NOTIFIED, 3, WF_STATE_JOIN_INTEREST },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t before = word_of(RUNNING, rows[i].flags, 1, 3);
        _Atomic(uint64_t) state = before;
        CHECK_EQ(wf_state_complete(&state), before);
        CHECK_EQ(atomic_load(&state),
                 word_of(COMPLETE, rows[i].flags_after, 1, rows[i].refs_after));
    }
}

static void complete_without_handles_returns_last_reference(void)
{
    _Atomic(uint64_t) state = word_of(RUNNING, WF_STATE_DETACHED, 0, 1);
    CHECK_EQ(wf_state_refs(wf_state_complete(&state)), 1);
    CHECK_EQ(wf_state_refs(atomic_load(&state)), 0);
}

static void wake_from_each_lifecycle_takes_expected_step(void)
{
    const uint64_t n = WF_STATE_NOTIFIED;
    const uint64_t c = WF_STATE_CANCELLED | WF_STATE_DETACHED;
    const struct row keep[] = {
        { word_of(IDLE, 0, 0, 2), word_of(RUNNING, 0, 0, 2), WF_STEP_SCHEDULE },
        { word_of(IDLE, c, 1, 2), word_of(RUNNING, c, 1, 2), WF_STEP_SCHEDULE },
        { word_of(RUNNING, c, 1, 2), word_of(RUNNING, c | n, 1, 2), WF_STEP_NONE },
        { word_of(RUNNING, n, 1, 2), word_of(RUNNING, n, 1, 2), WF_STEP_NONE },
        { word_of(COMPLETE, c, 1, 2), word_of(COMPLETE, c, 1, 2), WF_STEP_NONE },
    };
    CHECK_ROWS(wake_keep, keep);
    const struct row give[] = {
        { word_of(IDLE, 0, 0, 2), word_of(RUNNING, 0, 0, 1), WF_STEP_SCHEDULE },
        { word_of(IDLE, c, 1, 9), word_of(RUNNING, c, 1, 8), WF_STEP_SCHEDULE },
        { word_of(RUNNING, c, 1, 2), word_of(RUNNING, c | n, 1, 1), WF_STEP_NONE },
        { word_of(RUNNING, n, 1, 2), word_of(RUNNING, n, 1, 1), WF_STEP_NONE },
        { word_of(COMPLETE, c, 1, 2), word_of(COMPLETE, c, 1, 1), WF_STEP_NONE },
        { word_of(COMPLETE, c, 1, 1), word_of(COMPLETE, c, 1, 0), WF_STEP_FREE },
    };
    CHECK_ROWS(wake_give, give);
}

static void orphan_flag_survives_all_transitions(void)
{
    _Atomic(uint64_t) state = word_of(COMPLETE, 0, 0, 3) | WF_STATE_ORPHAN;
    CHECK_EQ(wf_state_cancel(&state), WF_STEP_NONE);
    CHECK_EQ(wake_keep(&state), WF_STEP_NONE);
    CHECK_EQ(wake_give(&state), WF_STEP_NONE);
    CHECK(!wf_state_join_register(&state));
    (void)wf_state_release(&state);
    CHECK_EQ(wake_give(&state), WF_STEP_FREE);
    CHECK_EQ(atomic_load(&state), word_of(COMPLETE, 0, 0, 0) | WF_STATE_ORPHAN);
}

static void cancel_from_each_lifecycle_respects_shield(void)
{
    const uint64_t n = WF_STATE_NOTIFIED;
    const uint64_t c = WF_STATE_CANCELLED;
    const struct row rows[] = {
        { word_of(IDLE, 0, 0, 2), word_of(RUNNING, c, 0, 2), WF_STEP_SCHEDULE },
        { word_of(IDLE, 0, 1, 2), word_of(IDLE, c, 1, 2), WF_STEP_TOLD },
        { word_of(IDLE, 0, 255, 2), word_of(IDLE, c, 255, 2), WF_STEP_TOLD },
        { word_of(RUNNING, 0, 0, 2), word_of(RUNNING, c | n, 0, 2), WF_STEP_TOLD },
        { word_of(RUNNING, n, 0, 2), word_of(RUNNING, c | n, 0, 2), WF_STEP_TOLD },
        { word_of(RUNNING, 0, 1, 2), word_of(RUNNING, c, 1, 2), WF_STEP_TOLD },
        { word_of(COMPLETE, 0, 0, 2), word_of(COMPLETE, 0, 0, 2), WF_STEP_NONE },
        { word_of(COMPLETE, 0, 1, 2), word_of(COMPLETE, 0, 1, 2), WF_STEP_NONE },
    };
    CHECK_ROWS(wf_state_cancel, rows);
}

static void cancel_of_canceled_task_changes_nothing(void)
{
    for (int lifecycle = 0; lifecycle < LIFECYCLES; lifecycle++) {
        for (uint32_t shield = 0; shield < 2; shield++) {
            uint64_t before = word_of(lifecycle, WF_STATE_CANCELLED, shield, 2);
            _Atomic(uint64_t) state = before;
            CHECK_EQ(wf_state_cancel(&state), WF_STEP_NONE);
            CHECK_EQ(atomic_load(&state), before);
        }
    }
}

static void shield_nests_255_deep(void)
{
    _Atomic(uint64_t) state = word_of(RUNNING, WF_STATE_DETACHED, 0, 4);
    for (uint32_t depth = 1; depth <= 255; depth++) {
        wf_state_shield_enter(&state);
        CHECK_EQ(atomic_load(&state), word_of(RUNNING, WF_STATE_DETACHED, depth, 4));
    }
    for (uint32_t depth = 255; depth-- > 0;) {
        wf_state_shield_leave(&state);
        CHECK_EQ(atomic_load(&state), word_of(RUNNING, WF_STATE_DETACHED, depth, 4));
    }
}

static void leaving_last_shield_after_cancel_sets_notified(void)
{
    _Atomic(uint64_t) state = word_of(RUNNING, 0, 0, 2);
    wf_state_shield_enter(&state);
    wf_state_shield_enter(&state);
    CHECK_EQ(wf_state_cancel(&state), WF_STEP_TOLD);
    CHECK_EQ(atomic_load(&state), word_of(RUNNING, WF_STATE_CANCELLED, 2, 2));
    wf_state_shield_leave(&state);
    CHECK_EQ(atomic_load(&state), word_of(RUNNING, WF_STATE_CANCELLED, 1, 2));
    wf_state_shield_leave(&state);
    uint64_t told = WF_STATE_CANCELLED | WF_STATE_NOTIFIED;
    CHECK_EQ(atomic_load(&state), word_of(RUNNING, told, 0, 2));
    CHECK_EQ(wf_state_pend(&state), WF_STEP_SCHEDULE);
}

static void leaving_shield_without_cancel_does_not_notify(void)
{
    _Atomic(uint64_t) state = word_of(RUNNING, 0, 1, 2);
    wf_state_shield_leave(&state);
    CHECK_EQ(atomic_load(&state), word_of(RUNNING, 0, 0, 2));
}

static void join_registers_unless_complete(void)
{
    const uint64_t j = WF_STATE_JOIN_INTEREST;
    for (int lifecycle = 0; lifecycle < LIFECYCLES; lifecycle++) {
        _Atomic(uint64_t) state = word_of(lifecycle, WF_STATE_CANCELLED, 1, 3);
        bool alive = lifecycle != COMPLETE;
        CHECK_EQ(wf_state_join_register(&state), alive);
        CHECK_EQ(atomic_load(&state),
                 word_of(lifecycle, WF_STATE_CANCELLED | (alive ? j : 0), 1, 3));
    }
}

/* The step under test runs in a child process, so a static variable selects it. */
static uint64_t doomed_word;
static void (*doomed_step)(_Atomic(uint64_t) *state);

static void run_doomed_step(void)
{
    _Atomic(uint64_t) state = doomed_word;
    doomed_step(&state);
}

static void check_dooms(void (*step)(_Atomic(uint64_t) *state), uint64_t word, const char *part)
{
    doomed_step = step;
    doomed_word = word;
    CHECK_ABORTS(run_doomed_step, part);
}

static void release_step(_Atomic(uint64_t) *state)
{
    (void)wf_state_release(state);
}

static void counter_overflow_aborts(void)
{
    check_dooms(wf_state_shield_enter, word_of(RUNNING, 0, 255, 2), "255 shields");
    check_dooms(wf_state_shield_leave, word_of(RUNNING, 0, 0, 2), "no shield is entered");
    check_dooms(wf_state_retain, word_of(IDLE, 0, 0, UINT32_MAX), "4294967295 references");
    check_dooms(release_step, word_of(COMPLETE, 0, 0, 0), "joined or detached twice");
}

static void pend_step(_Atomic(uint64_t) *state)
{
    (void)wf_state_pend(state);
}

static void complete_step(_Atomic(uint64_t) *state)
{
    (void)wf_state_complete(state);
}

static void begin_step(_Atomic(uint64_t) *state)
{
    (void)wf_state_begin(state);
}

static void poller_steps_abort_from_wrong_lifecycle(void)
{
    for (int lifecycle = 0; lifecycle < LIFECYCLES; lifecycle++) {
        uint64_t word = word_of(lifecycle, 0, 0, 2);
        if (lifecycle != RUNNING) {
            check_dooms(pend_step, word, "wf_state_lifecycle");
            check_dooms(begin_step, word, "wf_state_lifecycle");
            check_dooms(complete_step, word, "wf_state_lifecycle");
        }
    }
}

/* The state word that two threads contend for. */
static _Atomic(uint64_t) contested;
static enum wf_step poller_step;
static enum wf_step other_step;

static void pend_contested(void)
{
    poller_step = wf_state_pend(&contested);
}

static void wake_contested(void)
{
    other_step = wf_state_wake(&contested, 0);
}

static void cancel_contested(void)
{
    other_step = wf_state_cancel(&contested);
}

/*
 * Goal:   a transition to idle that races with a wake or a cancel queues the task exactly once.
 * Method: interrupt the transition after each of its instructions.
 */
static void transition_to_idle_interrupted_by_wake_schedules_once(void)
{
    static void (*const others[])(void) = { wake_contested, cancel_contested };
    for (int which = 0; which < 2; which++) {
        for (int notified = 0; notified < 2; notified++) {
            uint64_t flags = notified == 1 ? WF_STATE_NOTIFIED : 0;
            unsigned outcomes[2] = { 0 };
            contested = word_of(RUNNING, flags, 0, 2);
            for (int n = 0; test_interrupt_after(n, pend_contested, others[which]); n++) {
                outcomes[poller_step == WF_STEP_SCHEDULE]++;
                CHECK_EQ((poller_step == WF_STEP_SCHEDULE) + (other_step == WF_STEP_SCHEDULE), 1);
                uint64_t cancelled = which == 1 ? WF_STATE_CANCELLED : 0;
                /* A later wake finds the task in its queue and leaves the NOTIFIED flag set. */
                uint64_t after = atomic_load(&contested) & ~WF_STATE_NOTIFIED;
                CHECK_EQ(after, word_of(RUNNING, cancelled, 0, 2));
                contested = word_of(RUNNING, flags, 0, 2);
            }
            if (notified == 0) { /* If it is set, the poller always schedules. */
                test_check_both(outcomes);
            }
        }
    }
}

static uint64_t completer_saw;
static bool joiner_registered;

static void complete_contested(void)
{
    completer_saw = wf_state_complete(&contested);
}

static void register_contested(void)
{
    joiner_registered = wf_state_join_register(&contested);
}

/*
 * Goal:   a joiner that registers during completion is seen by the completer or sees that the
 *         task is complete.
 * Method: interrupt the completion after each of its instructions.
 */
static void complete_interrupted_by_joiner_sees_it_or_is_seen(void)
{
    unsigned outcomes[2] = { 0 };
    contested = word_of(RUNNING, 0, 0, 2);
    for (int n = 0; test_interrupt_after(n, complete_contested, register_contested); n++) {
        outcomes[joiner_registered]++;
        CHECK_EQ((completer_saw & WF_STATE_JOIN_INTEREST) != 0, joiner_registered);
        CHECK_EQ(wf_state_refs(contested), joiner_registered ? 2 : 1);
        contested = word_of(RUNNING, 0, 0, 2);
    }
    test_check_both(outcomes);
}

enum {
    WAKERS = 3,
    POLLERS = 2
};

/* A task that consists only of a state word, and a run queue with one slot. */
struct rig {
    _Atomic(uint64_t) state;
    _Atomic(uint32_t) queued;
    _Atomic(uint32_t) stop;
    _Atomic(uint64_t) noted[WAKERS]; /* what each waker wrote before its wake */
    _Atomic(uint64_t) seen[WAKERS];  /* what the last poll read of it */
    uint64_t polls;                  /* plain: [T1] orders it between the pollers */
    uint64_t payload;                /* plain: the only waker writes it, seen by [T1] */
    int64_t end;                     /* when the race ends */
};

struct rig_thread {
    struct rig *rig;
    int index;
    pthread_t thread;
};

static void rig_queue(struct rig *rig)
{
    CHECK_EQ(atomic_exchange_explicit(&rig->queued, 1, memory_order_release), 0);
}

static bool rig_take(struct rig *rig)
{
    uint32_t one = 1;
    return atomic_compare_exchange_strong_explicit(&rig->queued, &one, 0, memory_order_acquire,
                                                   memory_order_relaxed);
}

static void rig_poll(struct rig *rig)
{
    rig->polls++;
    for (int i = 0; i < WAKERS; i++) {
        uint64_t noted = atomic_load_explicit(&rig->noted[i], memory_order_relaxed);
        atomic_store_explicit(&rig->seen[i], noted, memory_order_relaxed);
    }
    if (rig->polls % 7 == 0) {
        (void)wf_state_begin(&rig->state);
        rig_poll(rig);
    } else if (wf_state_pend(&rig->state) == WF_STEP_SCHEDULE) {
        rig_queue(rig);
    }
}

static void *poller_main(void *arg)
{
    struct rig *rig = ((struct rig_thread *)arg)->rig;
    while (atomic_load(&rig->stop) == 0) {
        if (rig_take(rig)) {
            (void)wf_state_begin(&rig->state);
            rig_poll(rig);
        } else {
            (void)sched_yield();
        }
    }
    return NULL;
}

static void *waker_main(void *arg)
{
    struct rig_thread *self = arg;
    struct rig *rig = self->rig;
    for (uint64_t n = 1; wf_clock_now() < rig->end; n++) {
        atomic_store_explicit(&rig->noted[self->index], n, memory_order_relaxed);
        if (wf_state_wake(&rig->state, 0) == WF_STEP_SCHEDULE) {
            rig_queue(rig);
        }
        for (;;) {
            /* A poll records what it saw before the transition to idle. An idle task that has not
             * seen the number never will. */
            bool idle = wf_state_lifecycle(atomic_load(&rig->state)) == WF_STATE_IDLE;
            if (atomic_load(&rig->seen[self->index]) >= n) {
                break;
            }
            CHECK(!idle);
            (void)sched_yield();
        }
    }
    return NULL;
}

static void start_threads(struct rig *rig, struct rig_thread *threads, int count,
                          void *(*main_fn)(void *arg))
{
    for (int i = 0; i < count; i++) {
        threads[i] = (struct rig_thread){ .rig = rig, .index = i };
        CHECK_EQ(pthread_create(&threads[i].thread, NULL, main_fn, &threads[i]), 0);
    }
}

static void join_threads(struct rig_thread *threads, int count)
{
    for (int i = 0; i < count; i++) {
        CHECK_EQ(pthread_join(threads[i].thread, NULL), 0);
    }
}

/*
 * Goal:   no wake is lost, and only one thread at a time is asked to queue the task.
 * Method: three threads write a number and wake; two threads poll and sometimes yield. An idle
 *         task has seen the last number of each thread that woke it. The queue has one slot, so a
 *         second thread that schedules the task is detected.
 */
static void each_wake_is_followed_by_poll_that_sees_it(void)
{
    struct rig rig = { .state = word_of(IDLE, 0, 0, 1), .end = test_race_end() };
    struct rig_thread wakers[WAKERS];
    struct rig_thread pollers[POLLERS];
    start_threads(&rig, pollers, POLLERS, poller_main);
    start_threads(&rig, wakers, WAKERS, waker_main);
    join_threads(wakers, WAKERS);
    atomic_store(&rig.stop, 1);
    join_threads(pollers, POLLERS);
    for (int i = 0; i < WAKERS; i++) {
        CHECK_EQ(rig.seen[i], rig.noted[i]);
    }
}

static void *plain_poller_main(void *arg)
{
    struct rig *rig = ((struct rig_thread *)arg)->rig;
    while (atomic_load(&rig->stop) == 0) {
        if (!rig_take(rig)) {
            (void)sched_yield();
            continue;
        }
        (void)wf_state_begin(&rig->state);
        rig->polls++;
        CHECK_EQ(rig->payload, rig->polls);
        atomic_store_explicit(&rig->seen[0], rig->polls, memory_order_release);
        if (wf_state_pend(&rig->state) == WF_STEP_SCHEDULE) {
            rig_queue(rig);
        }
    }
    return NULL;
}

/*
 * Goal:   a poll sees what the previous poll and its waker wrote, and one wake causes one poll.
 * Method: polls alternate between two threads, and both counters are plain. The sanitizer would
 *         report a race.
 */
static void poll_sees_plain_writes_of_waker_and_previous_poll(void)
{
    struct rig rig = { .state = word_of(IDLE, 0, 0, 1), .end = test_race_end() };
    struct rig_thread pollers[POLLERS];
    start_threads(&rig, pollers, POLLERS, plain_poller_main);
    uint64_t wakes = 0;
    while (wf_clock_now() < rig.end) {
        rig.payload = ++wakes;
        if (wf_state_wake(&rig.state, 0) == WF_STEP_SCHEDULE) {
            rig_queue(&rig);
        }
        while (atomic_load_explicit(&rig.seen[0], memory_order_acquire) < wakes) {
            (void)sched_yield();
        }
    }
    atomic_store(&rig.stop, 1);
    join_threads(pollers, POLLERS);
    CHECK_EQ(rig.polls, wakes);
}

struct volley {
    _Atomic(uint64_t) state;
    _Atomic(uint32_t) queued;
    _Atomic(uint64_t) noted;
    _Atomic(uint64_t) seen;
    _Atomic(uint32_t) stop;
    int64_t end;
};

static void *volley_waker_main(void *arg)
{
    struct volley *volley = arg;
    uint64_t n = 0;
    for (uint64_t round = 1; wf_clock_now() < volley->end; round++) {
        for (uint64_t i = 0; i < 1 + round % 5; i++) {
            atomic_store_explicit(&volley->noted, ++n, memory_order_relaxed);
            if (wf_state_wake(&volley->state, 0) == WF_STEP_SCHEDULE) {
                CHECK_EQ(atomic_exchange(&volley->queued, 1), 0);
            }
        }
        for (;;) {
            bool idle = wf_state_lifecycle(atomic_load(&volley->state)) == WF_STATE_IDLE;
            if (atomic_load(&volley->seen) >= n) {
                break;
            }
            CHECK(!idle);
            wf_cpu_relax();
        }
    }
    atomic_store(&volley->stop, 1);
    return NULL;
}

/*
 * Goal:   as above, for wakes that hit every point of a poll.
 * Method: one thread wakes a few times in a row, then spins until its last number is seen; the
 *         other polls without pause.
 */
static void burst_of_wakes_is_followed_by_poll(void)
{
    static struct volley volley;
    volley = (struct volley){ .state = word_of(IDLE, 0, 0, 1), .end = test_race_end() };
    pthread_t waker;
    CHECK_EQ(pthread_create(&waker, NULL, volley_waker_main, &volley), 0);
    while (atomic_load(&volley.stop) == 0) {
        uint32_t one = 1;
        if (!atomic_compare_exchange_strong(&volley.queued, &one, 0)) {
            wf_cpu_relax();
            continue;
        }
        (void)wf_state_begin(&volley.state);
        uint64_t noted = atomic_load_explicit(&volley.noted, memory_order_relaxed);
        atomic_store_explicit(&volley.seen, noted, memory_order_release);
        if (wf_state_pend(&volley.state) == WF_STEP_SCHEDULE) {
            CHECK_EQ(atomic_exchange(&volley.queued, 1), 0);
        }
    }
    CHECK_EQ(pthread_join(waker, NULL), 0);
}

enum {
    DROPPERS = 2,
    ROUNDS_AT_ONCE = 1000
};

/* Many tasks that complete while their references are dropped. */
struct ending {
    _Atomic(uint64_t) state[ROUNDS_AT_ONCE];
    _Atomic(uint32_t) freed[ROUNDS_AT_ONCE];
    _Atomic(uint32_t) scheduled[ROUNDS_AT_ONCE];
    uint64_t written[ROUNDS_AT_ONCE][DROPPERS + 1]; /* plain; the freeing thread reads it */
    _Atomic(uint64_t) at_gate;
    _Atomic(uint64_t) next_thread;
};

static struct ending ending;

static void wait_at_gate(uint64_t round, unsigned threads)
{
    (void)atomic_fetch_add(&ending.at_gate, 1);
    test_wait_for(&ending.at_gate, (round + 1) * threads);
}

static void free_ending(uint64_t at)
{
    CHECK_EQ(atomic_fetch_add(&ending.freed[at], 1), 0);
    for (int i = 0; i <= DROPPERS; i++) {
        CHECK_EQ(ending.written[at][i], at + 1);
    }
}

static void *dropper_main(void *arg)
{
    (void)arg;
    uint64_t index = atomic_fetch_add(&ending.next_thread, 1);
    wait_at_gate(0, DROPPERS + 1);
    for (uint64_t at = 0; at < ROUNDS_AT_ONCE; at++) {
        ending.written[at][index] = at + 1;
        if (index == 0 && wf_state_cancel(&ending.state[at]) == WF_STEP_SCHEDULE) {
            (void)atomic_fetch_add(&ending.scheduled[at], 1);
        }
        enum wf_step step = wf_state_wake(&ending.state[at], WF_STATE_REF);
        if (step == WF_STEP_FREE) {
            free_ending(at);
        }
        CHECK(step != WF_STEP_SCHEDULE);
    }
    return NULL;
}

static void end_all(void)
{
    wait_at_gate(0, DROPPERS + 1);
    for (uint64_t at = 0; at < ROUNDS_AT_ONCE; at++) {
        ending.written[at][DROPPERS] = at + 1;
        if (wf_state_refs(wf_state_complete(&ending.state[at])) == 1) {
            free_ending(at);
        }
    }
}

/*
 * Goal:   of a poller that completes and two threads that drop their reference by a wake, one of
 *         which also cancels, exactly one is told to free the task, and it sees what the others
 *         wrote.
 * Method: all three walk over a thousand tasks at the same time; what they write is plain.
 */
static void last_of_completer_and_wakers_frees_task(void)
{
    struct test_rounds rounds = test_rounds_begin();
    while (test_rounds_next(&rounds)) {
        atomic_store(&ending.at_gate, 0);
        atomic_store(&ending.next_thread, 0);
        for (int at = 0; at < ROUNDS_AT_ONCE; at++) {
            ending.state[at] = word_of(RUNNING, 0, 0, 1 + DROPPERS);
            ending.freed[at] = 0;
            ending.scheduled[at] = 0;
        }
        pthread_t threads[DROPPERS];
        for (int i = 0; i < DROPPERS; i++) {
            CHECK_EQ(pthread_create(&threads[i], NULL, dropper_main, NULL), 0);
        }
        end_all();
        for (int i = 0; i < DROPPERS; i++) {
            CHECK_EQ(pthread_join(threads[i], NULL), 0);
        }
        for (int at = 0; at < ROUNDS_AT_ONCE; at++) {
            CHECK_EQ(ending.freed[at], 1);
            CHECK_EQ(ending.scheduled[at], 0);
            CHECK_EQ(wf_state_refs(ending.state[at]), 0);
        }
    }
}

/* A step on one thread, then a step on another thread that must see what preceded it. */
struct handover {
    uint64_t before;
    void (*first)(_Atomic(uint64_t) *state);
    void (*second)(_Atomic(uint64_t) *state);
};

static void wake_step(_Atomic(uint64_t) *state)
{
    (void)wf_state_wake(state, 0);
}

static void cancel_step(_Atomic(uint64_t) *state)
{
    (void)wf_state_cancel(state);
}

static void pend_and_begin_step(_Atomic(uint64_t) *state)
{
    CHECK_EQ(wf_state_pend(state), WF_STEP_SCHEDULE);
    (void)wf_state_begin(state);
}

static void queue_after_wake_step(_Atomic(uint64_t) *state)
{
    CHECK_EQ(wf_state_wake(state, 0), WF_STEP_SCHEDULE);
}

static void queue_after_cancel_step(_Atomic(uint64_t) *state)
{
    CHECK_EQ(wf_state_cancel(state), WF_STEP_SCHEDULE);
}

static void drop_step(_Atomic(uint64_t) *state)
{
    (void)wf_state_wake(state, WF_STATE_REF);
}

static void free_after_drop_step(_Atomic(uint64_t) *state)
{
    CHECK_EQ(wf_state_wake(state, WF_STATE_REF), WF_STEP_FREE);
}

static void free_after_release_step(_Atomic(uint64_t) *state)
{
    CHECK_EQ(wf_state_refs(wf_state_release(state)), 1);
}

static void free_after_complete_step(_Atomic(uint64_t) *state)
{
    CHECK_EQ(wf_state_refs(wf_state_complete(state)), 1);
}

static void find_complete_step(_Atomic(uint64_t) *state)
{
    CHECK(!wf_state_join_register(state));
}

static const struct handover *handover;

static void *first_half_main(void *arg)
{
    (void)arg;
    for (uint64_t at = 0; at < ROUNDS_AT_ONCE; at++) {
        ending.written[at][0] = at;
        handover->first(&ending.state[at]);
        atomic_store_explicit(&ending.freed[at], 1, memory_order_relaxed);
    }
    return NULL;
}

static void hand_over(const struct handover *which)
{
    handover = which;
    for (int at = 0; at < ROUNDS_AT_ONCE; at++) {
        ending.state[at] = which->before;
        ending.freed[at] = 0;
    }
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, first_half_main, NULL), 0);
    for (uint64_t at = 0; at < ROUNDS_AT_ONCE; at++) {
        while (atomic_load_explicit(&ending.freed[at], memory_order_relaxed) == 0) {
            (void)sched_yield();
        }
        which->second(&ending.state[at]);
        CHECK_EQ(ending.written[at][0], at);
        ending.written[at][0] = UINT64_MAX;
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

/*
 * Goal:   a poll sees what wakers, cancelers and the previous poll wrote. The thread that queues
 *         a task comes after its last poll, the thread that frees it after all others, and a
 *         joiner sees the result.
 * Method: one thread writes a plain word and takes the first step. The other learns of it through
 *         a relaxed flag, takes the second step and writes the same word. The sanitizer would
 *         report a race if the steps alone did not order them.
 */
static void transitions_on_two_threads_are_ordered(void)
{
    const struct handover rows[] = {
        { word_of(RUNNING, 0, 0, 2), wake_step, begin_step },
        { word_of(RUNNING, 0, 0, 2), cancel_step, begin_step },
        { word_of(RUNNING, 0, 0, 2), wake_step, pend_and_begin_step },
        { word_of(RUNNING, 0, 0, 2), cancel_step, pend_and_begin_step },
        { word_of(RUNNING, 0, 0, 2), pend_step, queue_after_wake_step },
        { word_of(RUNNING, 0, 0, 2), pend_step, queue_after_cancel_step },
        { word_of(RUNNING, 0, 0, 2), drop_step, free_after_complete_step },
        { word_of(RUNNING, 0, 0, 2), release_step, free_after_complete_step },
        { word_of(RUNNING, 0, 0, 2), complete_step, free_after_drop_step },
        { word_of(RUNNING, 0, 0, 2), complete_step, free_after_release_step },
        { word_of(RUNNING, 0, 0, 2), complete_step, find_complete_step },
        { word_of(COMPLETE, 0, 0, 2), release_step, free_after_drop_step },
        { word_of(COMPLETE, 0, 0, 2), drop_step, free_after_release_step },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hand_over(&rows[i]);
    }
}

static void *join_side_main(void *arg)
{
    (void)arg;
    wait_at_gate(0, 2);
    for (uint64_t at = 0; at < ROUNDS_AT_ONCE; at++) {
        if (!wf_state_join_register(&ending.state[at])) {
            CHECK_EQ(ending.written[at][DROPPERS], at + 1);
            ending.scheduled[at] = 2;
        } else {
            ending.scheduled[at] = 1;
        }
    }
    return NULL;
}

/*
 * Goal:   either the completer sees the joiner's flag, or the joiner sees that the task is
 *         complete, and its result.
 * Method: both walk over a thousand tasks at the same time.
 */
static void completer_and_joiner_never_miss_each_other(void)
{
    struct test_rounds rounds = test_rounds_begin();
    while (test_rounds_next(&rounds)) {
        atomic_store(&ending.at_gate, 0);
        for (int at = 0; at < ROUNDS_AT_ONCE; at++) {
            ending.state[at] = word_of(RUNNING, 0, 0, 2);
            ending.written[at][DROPPERS] = 0;
        }
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, join_side_main, NULL), 0);
        bool flagged[ROUNDS_AT_ONCE];
        wait_at_gate(0, 2);
        for (uint64_t at = 0; at < ROUNDS_AT_ONCE; at++) {
            ending.written[at][DROPPERS] = at + 1;
            uint64_t before = wf_state_complete(&ending.state[at]);
            flagged[at] = (before & WF_STATE_JOIN_INTEREST) != 0;
        }
        CHECK_EQ(pthread_join(thread, NULL), 0);
        for (int at = 0; at < ROUNDS_AT_ONCE; at++) {
            test_rounds_count(&rounds, flagged[at]);
            CHECK_EQ(flagged[at], ending.scheduled[at] == 1);
            CHECK_EQ(wf_state_refs(ending.state[at]), flagged[at] ? 2 : 1);
        }
    }
}

TEST_MAIN({
    TEST(state_fields_do_not_overlap),
    TEST(each_state_field_reads_back),
    TEST(must_cancel_requires_flag_and_no_shield),
    TEST(retain_and_release_change_only_reference_count),
    TEST(transition_to_idle_stays_running_if_notified),
    TEST(begin_clears_notified_flag),
    TEST(complete_drops_self_reference_unless_joiner_waits),
    TEST(complete_without_handles_returns_last_reference),
    TEST(wake_from_each_lifecycle_takes_expected_step),
    TEST(orphan_flag_survives_all_transitions),
    TEST(cancel_from_each_lifecycle_respects_shield),
    TEST(cancel_of_canceled_task_changes_nothing),
    TEST(shield_nests_255_deep),
    TEST(leaving_last_shield_after_cancel_sets_notified),
    TEST(leaving_shield_without_cancel_does_not_notify),
    TEST(join_registers_unless_complete),
    TEST(counter_overflow_aborts),
    TEST_DEBUG(poller_steps_abort_from_wrong_lifecycle),
    TEST_STEPS(transition_to_idle_interrupted_by_wake_schedules_once),
    TEST_STEPS(complete_interrupted_by_joiner_sees_it_or_is_seen),
    TEST(each_wake_is_followed_by_poll_that_sees_it),
    TEST(poll_sees_plain_writes_of_waker_and_previous_poll),
    TEST(burst_of_wakes_is_followed_by_poll),
    TEST(last_of_completer_and_wakers_frees_task),
    TEST(transitions_on_two_threads_are_ordered),
    TEST(completer_and_joiner_never_miss_each_other),
})
