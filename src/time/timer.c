/* SPDX-License-Identifier: MIT */
/*
 * timer.c - timers: wake a task or call a function at a deadline.
 *
 * Each worker has a shard: a wheel (wheel.h), and a heap for timers that need better than
 * millisecond precision (precise.h), under a lock. The worker's next_deadline is the time at
 * which the shard must be polled next. It may be too early, since removing a timer does not
 * raise it, but it is never too late.
 *
 *   IDLE --arm--> ARMED --fire--> FIRED      and the task is woken, the function called
 *    ^               |
 *    +----disarm-----+
 *
 *   Fire, any thread                       Disarm, the waiter
 *   R1  lock; remove what is due           D1  a task's timer, and FIRED [A1]: done
 *   R2  a task: take a reference           D2  lock; ARMED: remove it
 *       a function: link a call            D3  while a call of it is linked: wait, D2
 *   R3  FIRED [A1]; unlock                 D4  unlock
 *   R4  wake the tasks; call the function
 *   R5  lock; unlink the call; unlock
 *   R6  end the waits of D3
 *
 * D3 and R6 follow the protocol of sched/callback.c, which also refuses a wait that would never
 * end because the function waits for the stopper.
 *
 * Only one of R1 and D2 removes a timer, since both hold the lock. In R2 the task exists,
 * because it waits for the timer. After R3 the waiter may have returned from the frame that
 * contains the timer, so the timer is not touched any more: the reference was taken before, and
 * the call has a copy of function and argument. A function may therefore restart or free its
 * own timer. A restarted timer stays in its shard, so that the shard's lock guards all of it
 * while other threads stop it.
 *
 * A worker sleeps until its next_deadline. An earlier timer must wake it:
 *
 *   Arm, any thread                        Park, the worker (search.c, idle.c)
 *   Q1  next_deadline = earlier            P1  set own bit: parked
 *   Q2  full fence                         P3  full fence
 *   Q3  is the worker parked? Wake it      P4  sleep until next_deadline
 *
 * One fence comes first: either Q3 sees the bit, or P4 sees the earlier deadline. The worker
 * itself needs neither; it is not asleep.
 *
 * A plain thread, or a thread of another runtime, may stop a function's timer while the timer's
 * runtime is destroyed:
 *
 *   Stop                                   Destroy, after the workers have ended
 *   U1  live_lock: find the home among     E1  live_lock: unlist the shards,
 *       the listed shards; count a             remove all timers from them
 *       user of them                       E2  sleep until they have no user
 *   U2  D2 to D4                           E3  free the shards
 *   U3  live_lock: uncount the user
 *
 * E1 does not change the home of a timer: only the owner of a timer does. A stop that does not
 * find the shards in U1 comes after E1, which is done with the timer; so the timer may be
 * freed. A stop that finds them keeps them alive until U3. That does not take long: the workers
 * have ended, and so has every function. Threads of the timer's own runtime skip U1 and U3,
 * since a destroy waits for these threads first.
 *
 * Which thread fires: the worker, whenever it reads the clock, and after a sleep. For a worker
 * that is in a long poll, other workers fire (search.c), which the monitor wakes.
 *
 * Order. A worker fires its timers in the order in which they are due, and queues their tasks
 * in that order. When several fire together, none goes to the LIFO slot, from which the last
 * one would run first. The worker stops before the ring is full, since an overflow moves tasks
 * to the inject queue, where later tasks overtake them. The task of a timer that fires alone
 * uses the LIFO slot, and runs next, if the tasks of earlier timers have left the ring.
 *
 * Edges.
 * [A1] firing releases the state, the waiter acquires it: as above.
 * And idle.c's [I1]: the fences of Q2 and P3, as above.
 *
 * Checked by tests/model/timer_model.c.
 */
#include "time/timer.h"

#include <errno.h>

#include <weft/time.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/callout.h"
#include "base/clock.h"
#include "base/futex.h"
#include "sched/callback.h"
#include "sched/driver.h"
#include "sched/idle.h"
#include "sched/sched.h"
#include "sched/thread.h"
#include "sched/worker.h"

enum {
    /* Maximum number of timers fired in one go, so that tasks run in between. */
    FIRE_MAX = 256,
    /* The same for callbacks, which may take longer and restart their timers at once. */
    CALLS_MAX = 64,
    /* At most what fits in an empty ring; otherwise an idle worker would defer its timers
     * forever. */
    FIRE_BATCH = WF_RING_SLOTS < 64 ? WF_RING_SLOTS / 2 : 32,
    COARSE_STREAK_MAX = 64,
    /* Number of polls for which a worker with a full ring may defer its timers. */
    DEFERRAL_MAX = 64,
};

/* A running function, in the frame of its caller. */
struct call {
    struct wf_list link; /* under the shard's lock */
    struct wf_callback callback;
    const struct wf_timer *timer; /* compared, never dereferenced */
    void (*function)(void *arg);
    void *arg;
};

/* What to do after the lock is released. */
struct batch {
    struct wf_task *tasks[FIRE_BATCH];
    unsigned count;
    struct call call; /* if its function is set, the last timer of the batch */
};

/* The timers of a scheduler. */
struct timers {
    struct wf_list link; /* under live_lock, like users and is_ending */
    unsigned users;      /* stops by threads of no or another runtime that use the shards */
    bool is_ending;      /* the shards are freed when users is 0 */
    unsigned count;
    struct wf_timer_shard shards[];
};

/* The timers of all runtimes: a timer may be stopped after its runtime has ended. */
static struct wf_list live = { &live, &live };
static struct wf_lock live_lock = WF_LOCK_INIT(WF_RANK_RUNTIME);
static _Atomic(uint32_t) departures; /* under live_lock: futex on which destroyers sleep */

static struct wf_timer_shard *shards_of(const struct wf_sched *sched)
{
    return ((struct timers *)sched->timers)->shards;
}

/* Under the lock. Returns when the shard must be polled next. */
static int64_t next_of(const struct wf_timer_shard *shard)
{
    int64_t coarse = wf_wheel_next(&shard->wheel);
    int64_t precise = wf_precise_next(&shard->precise);
    return coarse < precise ? coarse : precise;
}

/* Inserts a timer. Returns when the shard must be polled for it. */
static int64_t insert(struct wf_timer_shard *shard, struct wf_timer *timer, int64_t deadline)
{
    if (timer->is_precise) {
        timer->entry.precise.deadline = deadline;
        wf_precise_insert(&shard->precise, &timer->entry.precise);
        return deadline;
    }
    timer->entry.coarse.deadline = deadline;
    return wf_wheel_insert(&shard->wheel, &timer->entry.coarse);
}

static void remove_entry(struct wf_timer_shard *shard, struct wf_timer *timer)
{
    if (timer->is_precise) {
        wf_precise_remove(&shard->precise, &timer->entry.precise);
    } else {
        wf_wheel_remove(&shard->wheel, &timer->entry.coarse);
    }
}

static struct wf_timer *pop_precise(struct wf_timer_shard *shard, int64_t now)
{
    struct wf_precise_entry *entry = wf_precise_pop(&shard->precise, now);
    return entry != NULL ? wf_container_of(entry, struct wf_timer, entry.precise) : NULL;
}

static struct wf_timer *pop_coarse(struct wf_timer_shard *shard, int64_t now)
{
    struct wf_wheel_entry *entry = wf_wheel_pop(&shard->wheel, now);
    return entry != NULL ? wf_container_of(entry, struct wf_timer, entry.coarse) : NULL;
}

/*
 * Under the lock. Returns whether the timer that is due first is a coarse one. A coarse timer
 * that is restarted over and over with a time in the past is due at the beginning of its
 * millisecond each time, and so before precise timers; after COARSE_STREAK_MAX coarse ones a
 * precise one fires.
 */
static bool is_coarse_first(struct wf_timer_shard *shard, int64_t now)
{
    if (!wf_wheel_advance(&shard->wheel, now)) {
        return false;
    }
    int64_t precise = wf_precise_next(&shard->precise);
    int64_t coarse = (int64_t)shard->wheel.elapsed * WF_WHEEL_TICK_NS;
    return precise > now || (precise >= coarse && shard->coarse_streak < COARSE_STREAK_MAX);
}

/* Under the lock. Removes and returns the timer that is due first, or NULL. */
static struct wf_timer *pop(struct wf_timer_shard *shard, int64_t now)
{
    if (is_coarse_first(shard, now)) {
        shard->coarse_streak++;
        return pop_coarse(shard, now);
    }
    shard->coarse_streak = 0;
    return pop_precise(shard, now);
}

/* Returns whether the shard is one of these. The pointer may be stale. */
static bool is_one_of(const struct timers *timers, const struct wf_timer_shard *shard)
{
    uintptr_t offset = (uintptr_t)shard - (uintptr_t)timers->shards;
    return offset < timers->count * sizeof *shard && offset % sizeof *shard == 0;
}

/* Chooses a shard: this worker's or, on other threads, the next one in round-robin order. */
static struct wf_timer_shard *choose_shard(struct wf_sched *sched)
{
    const struct wf_worker *here = wf_worker_current();
    if (here != NULL && here->sched == sched) {
        return &shards_of(sched)[here->index];
    }
    /* relaxed: any round-robin order will do. */
    uint32_t turn = wf_fetch_add_relaxed(&sched->next_pin, 1);
    return &shards_of(sched)[turn % sched->options.workers];
}

/* Under the lock. Inserts a timer. Returns true if the worker may now sleep for too long. */
static bool insert_and_compare(struct wf_timer_shard *shard, struct wf_timer *timer,
                               int64_t deadline)
{
    int64_t next = insert(shard, timer, deadline);
    /* relaxed: written under the lock only; reads without the lock are hints. */
    wf_store_relaxed(&timer->state, (uint32_t)WF_TIMER_ARMED);
    /* relaxed: written under the lock only. */
    if (next >= wf_load_relaxed(&shard->worker->next_deadline)) {
        return false;
    }
    /* relaxed: before the fence, Q1. */
    wf_store_relaxed(&shard->worker->next_deadline, next);
    return true;
}

/* Q2 and Q3, after unlocking. The worker itself is not asleep. If the worker is awake, the
 * monitor must be awake too: the worker's poll may be long. */
static void wake_sleeper(struct wf_worker *worker)
{
    if (worker == wf_worker_current()) {
        wf_worker_be_watched(worker);
        return;
    }
    struct wf_sched *sched = worker->sched;
    /* fence [I1], Q2: the worker sees the deadline, or is seen parked. */
    wf_fence_full();
    if (wf_idle_is_parked(&sched->idle, worker->index)) {
        wf_worker_wake(worker);
    } else if (wf_watch_is_asleep(&sched->watch)) {
        wf_watch_wake(&sched->watch);
    }
}

/*
 * Returns the current time, or slightly before, to advance a wheel to before an insert. A wheel
 * that has not moved for long would ask to be polled only to find out what is near, and wake
 * its worker for that. On the worker itself the clock is not read.
 */
static int64_t time_for_wheel(const struct wf_timer_shard *shard)
{
    const struct wf_worker *here = wf_worker_current();
    return here == shard->worker ? wf_clock_at(here->tick_start) : wf_clock_now();
}

void wf_timer_arm(struct wf_sched *sched, struct wf_timer *timer, int64_t deadline)
{
    struct wf_timer_shard *shard = choose_shard(sched);
    int64_t now = time_for_wheel(shard);
    timer->home = shard;
    wf_lock(&shard->lock);
    (void)wf_wheel_advance(&shard->wheel, now);
    bool earlier = insert_and_compare(shard, timer, deadline);
    wf_unlock(&shard->lock);
    if (earlier) {
        wake_sleeper(shard->worker);
    }
}

/* Under the lock. Prepares to wait for a running function of this timer. Returns false if there
 * is none that the caller may wait for. */
static bool expect_call(const struct wf_timer_shard *shard, const struct wf_timer *timer,
                        struct wf_callback_wait *wait)
{
    for (struct wf_list *link = shard->calls.next; link != &shard->calls; link = link->next) {
        struct call *call = wf_container_of(link, struct call, link);
        if (call->timer == timer && wf_callback_expect(&call->callback, wait, "weft_timer_stop")) {
            return true;
        }
    }
    return false;
}

/* Under the lock. Removes an armed timer. Returns whether it was armed. */
static bool take_out(struct wf_timer_shard *shard, struct wf_timer *timer)
{
    /* relaxed: decided under the lock. */
    if (wf_load_relaxed(&timer->state) != WF_TIMER_ARMED) {
        return false;
    }
    remove_entry(shard, timer);
    /* relaxed: the timer is the waiter's own now. */
    wf_store_relaxed(&timer->state, (uint32_t)WF_TIMER_IDLE);
    return true;
}

/* Returns whether this thread belongs to the timer's runtime, which then outlives the call. */
static bool is_of_this_runtime(const struct wf_timer *timer)
{
    const struct wf_worker *worker = wf_worker_current();
    const struct wf_thread *thread = wf_thread_known();
    const struct wf_sched *sched = worker != NULL ? worker->sched : NULL;
    if (sched == NULL && thread != NULL) {
        sched = thread->sched;
    }
    return sched != NULL && is_one_of(sched->timers, timer->home);
}

/* U1: keeps the shards of a timer from being freed. Returns NULL if the timer has none. */
static struct timers *begin_use(const struct wf_timer *timer)
{
    struct timers *found = NULL;
    wf_lock(&live_lock);
    for (struct wf_list *link = live.next; link != &live && found == NULL; link = link->next) {
        struct timers *timers = wf_container_of(link, struct timers, link);
        if (is_one_of(timers, timer->home)) {
            timers->users++;
            found = timers;
        }
    }
    wf_unlock(&live_lock);
    return found;
}

/* U3. */
static void end_use(struct timers *timers)
{
    wf_lock(&live_lock);
    timers->users--;
    bool is_awaited = timers->is_ending && timers->users == 0;
    if (is_awaited) {
        /* relaxed: written under the lock, which the waiter takes. */
        wf_store_relaxed(&departures, wf_load_relaxed(&departures) + 1);
    }
    wf_unlock(&live_lock);
    if (is_awaited) {
        wf_futex_wake(&departures, INT_MAX);
    }
}

/* D2 to D4, for a function's timer whose shards stay alive. */
static bool stop(struct wf_timer *timer)
{
    struct wf_callback_wait wait;
    struct wf_timer_shard *shard = timer->home;
    wf_lock(&shard->lock);
    bool armed = take_out(shard, timer);
    while (expect_call(shard, timer, &wait)) {
        wf_unlock(&shard->lock);
        wf_callback_await(&wait);
        wf_lock(&shard->lock);
        /* The function may have restarted the timer. */
        armed = take_out(shard, timer) || armed;
    }
    wf_unlock(&shard->lock);
    return armed;
}

static bool disarm_task(struct wf_timer *timer)
{
    struct wf_timer_shard *shard = timer->home;
    if (wf_timer_has_fired(timer)) {
        return false;
    }
    wf_lock(&shard->lock);
    bool armed = take_out(shard, timer);
    wf_unlock(&shard->lock);
    return armed;
}

bool wf_timer_disarm(struct wf_timer *timer)
{
    if (timer->home == NULL) {
        return false;
    }
    if (timer->task != NULL) {
        return disarm_task(timer);
    }
    if (is_of_this_runtime(timer)) {
        return stop(timer);
    }
    struct timers *timers = begin_use(timer);
    if (timers == NULL) {
        return false;
    }
    bool armed = stop(timer);
    end_use(timers);
    return armed;
}

/* Under the lock. Removes timers that are due: up to a batch, or up to the first function. */
static void collect(struct wf_timer_shard *shard, int64_t now, struct batch *batch)
{
    batch->count = 0;
    batch->call.function = NULL;
    while (batch->count < FIRE_BATCH && batch->call.function == NULL) {
        struct wf_timer *timer = pop(shard, now);
        if (timer == NULL) {
            break;
        }
        if (timer->function != NULL) {
            batch->call =
                (struct call){ .timer = timer, .function = timer->function, .arg = timer->arg };
            wf_callback_begin(&batch->call.callback);
            wf_list_push_back(&shard->calls, &batch->call.link);
        } else {
            wf_task_retain(timer->task);
            batch->tasks[batch->count++] = timer->task;
        }
        /* release [A1]: the timer is the waiter's again. */
        wf_store_release(&timer->state, (uint32_t)WF_TIMER_FIRED);
    }
}

static void end_call(struct wf_timer_shard *shard, struct call *call)
{
    wf_lock(&shard->lock);
    wf_list_remove(&call->link);
    wf_unlock(&shard->lock);
    wf_callback_end(&call->callback);
}

static void carry_out(struct wf_timer_shard *shard, struct batch *batch)
{
    for (unsigned i = 0; i < batch->count; i++) {
        wf_task_wake(batch->tasks[i]);
    }
    if (batch->call.function != NULL) {
        WF_CALLOUT_BEGIN();
        batch->call.function(batch->call.arg);
        WF_CALLOUT_END();
        end_call(shard, &batch->call);
    }
}

/* Returns whether the task of a timer that fires alone may run next: not before the tasks of
 * earlier timers. */
static bool may_run_next(const struct wf_timer_shard *shard, const struct wf_worker *here)
{
    /* relaxed: only the owner fills the slot. */
    return here == shard->worker && wf_load_relaxed(&here->lifo) == NULL &&
           wf_ring_has_passed(&here->ring, shard->queued);
}

static void carry_out_in_order(struct wf_timer_shard *shard, struct batch *batch, bool is_single)
{
    struct wf_worker *here = wf_worker_current();
    if (here == NULL || (is_single && may_run_next(shard, here))) {
        carry_out(shard, batch);
        return;
    }
    bool before = wf_worker_queue_in_order(here);
    carry_out(shard, batch);
    wf_worker_queue_as_before(here, before);
    if (here == shard->worker) {
        shard->queued = wf_ring_mark(&here->ring);
    }
}

/* Returns whether another batch can be queued. When the ring overflows, tasks lose their order. */
static bool has_room(const struct wf_worker *here)
{
    return here == NULL || wf_ring_room(&here->ring) >= FIRE_BATCH;
}

/* Returns whether the worker should first run some of its tasks, to make space in the ring. If
 * they only yield, no space appears. */
static bool must_defer(struct wf_timer_shard *shard, const struct wf_worker *here)
{
    if (here != shard->worker) {
        return false;
    }
    uint64_t polls = wf_counter_read(&here->counters.polls);
    if (has_room(here) || (shard->deferred_at != 0 && polls - shard->deferred_at > DEFERRAL_MAX)) {
        shard->deferred_at = 0;
        return false;
    }
    if (shard->deferred_at == 0) {
        shard->deferred_at = polls;
    }
    return true;
}

static void fire(struct wf_sched *sched, unsigned index, int64_t now)
{
    struct wf_timer_shard *shard = &shards_of(sched)[index];
    struct wf_worker *here = wf_worker_current();
    struct batch batch;
    unsigned fired = 0;
    unsigned calls = 0;
    bool is_more;
    if (must_defer(shard, here)) {
        return;
    }
    do {
        wf_lock(&shard->lock);
        shard->fired_at = now;
        collect(shard, now, &batch);
        int64_t next = next_of(shard);
        /* relaxed: written under the lock. A worker that relies on a value after its fence is
         * notified by the thread that lowers it. */
        wf_store_relaxed(&shard->worker->next_deadline, next);
        wf_unlock(&shard->lock);
        calls += batch.call.function != NULL;
        fired += batch.count + (batch.call.function != NULL);
        is_more = batch.count == FIRE_BATCH || batch.call.function != NULL;
        carry_out_in_order(shard, &batch, fired == 1 && next > now);
    } while (is_more && fired < FIRE_MAX && calls < CALLS_MAX && has_room(here));
}

/* Deadlines of waiting fibers. */

static void alarm_arm(struct wf_sched *sched, struct wf_alarm *alarm, struct wf_task *task,
                      int64_t deadline)
{
    struct wf_timer *timer = (struct wf_timer *)alarm;
    *timer = (struct wf_timer){ .task = task };
    wf_timer_arm(sched, timer, deadline);
}

static bool alarm_has_fired(const struct wf_alarm *alarm)
{
    return wf_timer_has_fired((const struct wf_timer *)alarm);
}

static void alarm_disarm(struct wf_alarm *alarm)
{
    (void)wf_timer_disarm((struct wf_timer *)alarm);
}

_Static_assert(sizeof(struct wf_timer) <= sizeof(struct wf_alarm), "WF_ALARM_BYTES is too small");

static const struct wf_timer_ops timer_ops = {
    .arm = alarm_arm,
    .has_fired = alarm_has_fired,
    .disarm = alarm_disarm,
    .fire = fire,
};

static size_t timers_bytes(const struct wf_sched *sched)
{
    return sizeof(struct timers) + sched->options.workers * sizeof(struct wf_timer_shard);
}

int wf_timers_create(struct wf_sched *sched)
{
    struct timers *timers =
        wf_alloc_zeroed(&sched->options.allocator, timers_bytes(sched), _Alignof(struct timers));
    if (timers == NULL) {
        return -ENOMEM;
    }
    timers->count = sched->options.workers;
    int64_t now = wf_clock_now();
    for (unsigned i = 0; i < timers->count; i++) {
        struct wf_timer_shard *shard = &timers->shards[i];
        wf_lock_init(&shard->lock, WF_RANK_TIMER);
        wf_wheel_init(&shard->wheel, now);
        wf_precise_init(&shard->precise);
        wf_list_init(&shard->calls);
        shard->fired_at = INT64_MIN;
        shard->worker = &sched->workers[i];
    }
    wf_lock(&live_lock);
    wf_list_push_back(&live, &timers->link);
    wf_unlock(&live_lock);
    sched->timers = timers;
    sched->timer_ops = &timer_ops;
    return 0;
}

/* Removes and returns some armed timer, due or not; NULL if there is none. */
static struct wf_timer *take_any(struct wf_timer_shard *shard)
{
    struct wf_wheel_entry *coarse = wf_wheel_take_any(&shard->wheel);
    return coarse != NULL ? wf_container_of(coarse, struct wf_timer, entry.coarse)
                          : pop_precise(shard, INT64_MAX);
}

/* E1, under live_lock. A stop that began earlier may hold the shard's lock. */
static void take_all_out(struct wf_timer_shard *shard)
{
    struct wf_timer *timer;
    wf_lock(&shard->lock);
    while ((timer = take_any(shard)) != NULL) {
        /* relaxed: under the lock. */
        wf_store_relaxed(&timer->state, (uint32_t)WF_TIMER_IDLE);
    }
    wf_unlock(&shard->lock);
}

void wf_timers_destroy(struct wf_sched *sched)
{
    struct timers *timers = sched->timers;
    if (timers == NULL) {
        return;
    }
    wf_lock(&live_lock);
    wf_list_remove(&timers->link);
    for (unsigned i = 0; i < timers->count; i++) {
        take_all_out(&timers->shards[i]);
    }
    timers->is_ending = true;
    while (timers->users > 0) {
        /* relaxed: written under the lock. */
        uint32_t seen = wf_load_relaxed(&departures);
        wf_unlock(&live_lock);
        (void)wf_futex_wait(&departures, seen, WF_NEVER);
        wf_lock(&live_lock);
    }
    wf_unlock(&live_lock);
    wf_free(&sched->options.allocator, timers, timers_bytes(sched), _Alignof(struct timers));
    sched->timers = NULL;
}

/* Timers of user code. */

_Static_assert(sizeof(struct wf_timer) <= sizeof(weft_timer), "weft_timer is too small");

/* Moves a deadline in the past up to the latest time for which the shard has fired. So a timer
 * that is restarted with such a deadline over and over comes after the other timers that were
 * due. */
static int64_t behind_others(const struct wf_timer_shard *shard, const struct wf_timer *timer,
                             int64_t deadline)
{
    int64_t latest = shard->fired_at;
    if (!timer->is_precise && latest > 0) {
        latest -= latest % WF_WHEEL_TICK_NS; /* Rounding up must not make it later. */
    }
    return deadline > latest ? deadline : latest;
}

void wf_timer_start(struct wf_sched *sched, weft_timer *handle, weft_time deadline, unsigned flags,
                    void (*function)(void *arg), void *arg)
{
    struct wf_timer *timer = (struct wf_timer *)handle;
    struct wf_timer_shard *shard = timer->home;
    if (!is_one_of(sched->timers, shard)) {
        (void)wf_timer_disarm(timer);
        shard = choose_shard(sched);
        timer->home = shard;
    }
    int64_t now = time_for_wheel(shard);
    wf_lock(&shard->lock);
    (void)take_out(shard, timer);
    (void)wf_wheel_advance(&shard->wheel, now);
    timer->is_precise = (flags & WEFT_PRECISE) != 0;
    deadline = behind_others(shard, timer, deadline);
    timer->function = function;
    timer->arg = arg;
    bool earlier = insert_and_compare(shard, timer, deadline);
    wf_unlock(&shard->lock);
    if (earlier) {
        wake_sleeper(shard->worker);
    }
}

void weft_timer_start(weft_timer *timer, weft_time deadline, unsigned flags,
                      void (*function)(void *arg), void *arg)
{
    struct wf_sched *sched = wf_thread_must_sched("weft_timer_start");
    wf_timer_start(sched, timer, deadline, flags, function, arg);
}

bool weft_timer_stop(weft_timer *timer)
{
    return wf_timer_disarm((struct wf_timer *)timer);
}
