/* SPDX-License-Identifier: MIT */
/*
 * timer.c - what happens at a time.
 *
 * Each worker has a shard: a wheel (wheel.h) and a heap for what is wanted more
 * exactly than to the millisecond (precise.h), under a lock. The worker's
 * next_deadline says when the shard wants to be looked at; it may be too early,
 * since taking a timer out does not raise it, but never too late.
 *
 *   IDLE --arm--> ARMED --fire--> FIRED      and the task is woken, the function called
 *    ^               |
 *    +----disarm-----+
 *
 *   Fire, any thread                       Disarm, the waiter
 *   R1  lock; take out what is due         D1  a task's, and FIRED [A1]: done
 *   R2  a task: take a reference           D2  lock; ARMED: take it out
 *       a function: link a call            D3  while a call of it is linked: wait, D2
 *   R3  FIRED [A1]; unlock                 D4  unlock
 *   R4  wake the tasks; call the function
 *   R5  lock; unlink the call; unlock
 *
 * A timer is taken out by one of R1 and D2, since both hold the lock. In R2 the task
 * exists, because it waits for the timer. After R3 the waiter may have returned
 * from the frame that the timer is in, so nothing of it is used any more: the
 * reference was taken before, and the call has a copy of function and argument.
 * A function may therefore start or free its own timer. A timer that is started again
 * stays in its shard, so that its lock guards all of it while others stop it.
 *
 * When a worker sleeps, it sleeps until its next_deadline. An earlier timer must
 * wake it:
 *
 *   Arm, any thread                        Park, the worker (search.c, idle.c)
 *   Q1  next_deadline = earlier            P1  set my bit: parked
 *   Q2  full fence                         P3  full fence
 *   Q3  is the worker parked? Wake it      P4  sleep until next_deadline
 *
 * One fence comes first: Q3 sees the bit, or P4 sees the earlier deadline. The
 * worker itself needs neither; it is not asleep.
 *
 * Who fires: the worker, whenever it looks at the clock, and after a sleep; and
 * for a worker that is long in one poll, others (search.c), whom the watch wakes.
 *
 * Edges.
 * [A1] firing releases the state, the waiter acquires it: as above.
 * And idle.c's [I1]: the fences of Q2 and P3, as above.
 *
 * Checked by tests/model/timer_model.c.
 */
#include "time/timer.h"

#include <errno.h>
#include <pthread.h>

#include <weft/time.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/futex.h"
#include "sched/driver.h"
#include "sched/idle.h"
#include "sched/sched.h"
#include "sched/thread.h"
#include "sched/worker.h"

enum {
    /* Timers that fire in one go, so that tasks get their turn in between. */
    FIRE_MAX = 256,
    FIRE_BATCH = 32,
};

/* A function that runs, in the frame of who runs it. */
struct call {
    struct wf_list link; /* under the shard's lock */
    const struct wf_timer *timer;
    pthread_t thread;
    void (*function)(void *arg);
    void *arg;
};

/* What is to be done once the lock is free. */
struct batch {
    struct wf_task *tasks[FIRE_BATCH];
    unsigned count;
    struct call call; /* with a function, the last one of the batch */
};

/* The timers of a scheduler. */
struct timers {
    struct wf_list link; /* under live_lock */
    unsigned count;
    struct wf_timer_shard shards[];
};

/* All there are: a timer that has called may be stopped after its runtime is gone. */
static struct wf_list live = { &live, &live };
static struct wf_lock live_lock = WF_LOCK_INIT(WF_RANK_RUNTIME);

static struct wf_timer_shard *shards_of(const struct wf_sched *sched)
{
    return ((struct timers *)sched->timers)->shards;
}

/* Under the lock: when does the shard want to be looked at? */
static int64_t next_of(const struct wf_timer_shard *shard)
{
    int64_t coarse = wf_wheel_next(&shard->wheel);
    int64_t precise = wf_precise_next(&shard->precise);
    return coarse < precise ? coarse : precise;
}

/* Returns when the shard must be looked at for this timer. */
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

/* Under the lock. One that is due is taken out, of either kind in turn, or NULL. */
static struct wf_timer *pop(struct wf_timer_shard *shard, int64_t now)
{
    shard->coarse_turn = !shard->coarse_turn;
    struct wf_timer *timer = NULL;
    if (!shard->coarse_turn) {
        timer = pop_precise(shard, now);
    }
    if (timer == NULL) {
        timer = pop_coarse(shard, now);
    }
    return timer != NULL ? timer : pop_precise(shard, now);
}

/* Is it one of these? It may be a pointer to what was there before. */
static bool is_one_of(const struct timers *timers, const struct wf_timer_shard *shard)
{
    uintptr_t offset = (uintptr_t)shard - (uintptr_t)timers->shards;
    return offset < timers->count * sizeof *shard && offset % sizeof *shard == 0;
}

/* Some shard: this worker's, or, from outside, the next one's in turn. */
static struct wf_timer_shard *choose_shard(struct wf_sched *sched)
{
    const struct wf_worker *here = wf_worker_current();
    if (here != NULL && here->sched == sched) {
        return &shards_of(sched)[here->index];
    }
    /* relaxed: any order of turns will do. */
    uint32_t turn = wf_fetch_add_relaxed(&sched->next_pin, 1);
    return &shards_of(sched)[turn % sched->options.workers];
}

/* Under the lock. True if the worker may sleep for too long now. */
static bool insert_and_compare(struct wf_timer_shard *shard, struct wf_timer *timer,
                               int64_t deadline)
{
    int64_t next = insert(shard, timer, deadline);
    /* relaxed: read and written under the lock only; other reads are looks. */
    wf_store_relaxed(&timer->state, (uint32_t)WF_TIMER_ARMED);
    /* relaxed: written under the lock only. */
    if (next >= wf_load_relaxed(&shard->worker->next_deadline)) {
        return false;
    }
    /* relaxed: before the fence, Q1. */
    wf_store_relaxed(&shard->worker->next_deadline, next);
    return true;
}

/* After unlocking: Q2 and Q3. The worker itself does not sleep. If it is awake, the
 * watch must be, too: its poll may be long. */
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
 * The time, or a little before, to move a wheel on to before something is inserted: one
 * that has slept for long would want to be looked at only to find out what is near,
 * and wake its worker for that. On the worker itself without a look at the clock.
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

/* Under the lock: does the function of this timer run, and not below us? */
static bool is_called(const struct wf_timer_shard *shard, const struct wf_timer *timer)
{
    for (struct wf_list *link = shard->calls.next; link != &shard->calls; link = link->next) {
        const struct call *call = wf_container_of(link, struct call, link);
        if (call->timer == timer && !pthread_equal(call->thread, pthread_self())) {
            return true;
        }
    }
    return false;
}

/* Under the lock. */
static bool take_out(struct wf_timer_shard *shard, struct wf_timer *timer)
{
    /* relaxed: decided under the lock. */
    if (wf_load_relaxed(&timer->state) != WF_TIMER_ARMED) {
        return false;
    }
    remove_entry(shard, timer);
    /* relaxed: the waiter's own now. */
    wf_store_relaxed(&timer->state, (uint32_t)WF_TIMER_IDLE);
    return true;
}

/* A function's timer that is not armed: may that still run, and so its runtime? */
static bool may_be_called(const struct wf_timer *timer)
{
    bool called = false;
    wf_lock(&live_lock);
    for (struct wf_list *link = live.next; link != &live; link = link->next) {
        struct timers *timers = wf_container_of(link, struct timers, link);
        struct wf_timer_shard *shard = timer->home;
        if (is_one_of(timers, shard)) {
            wf_lock(&shard->lock);
            /* relaxed: decided under the lock. */
            called = is_called(shard, timer) || wf_load_relaxed(&timer->state) == WF_TIMER_ARMED;
            wf_unlock(&shard->lock);
        }
    }
    wf_unlock(&live_lock);
    return called;
}

/* Is there nothing to take out, and nothing to wait for? The home of one that is not
 * armed may be gone with its runtime. */
static bool is_over(const struct wf_timer *timer)
{
    if (timer->task != NULL) {
        return wf_timer_has_fired(timer);
    }
    /* relaxed: an armed one is dealt with under the lock, another one by may_be_called(). */
    return wf_load_relaxed(&timer->state) != WF_TIMER_ARMED && !may_be_called(timer);
}

bool wf_timer_disarm(struct wf_timer *timer)
{
    struct wf_timer_shard *shard = timer->home;
    if (shard == NULL || is_over(timer)) {
        return false;
    }
    wf_lock(&shard->lock);
    bool armed = take_out(shard, timer);
    while (is_called(shard, timer)) {
        /* relaxed: written under the lock. */
        uint32_t ended = wf_load_relaxed(&shard->ended);
        shard->stoppers++;
        wf_unlock(&shard->lock);
        (void)wf_futex_wait(&shard->ended, ended, WF_NEVER);
        wf_lock(&shard->lock);
        shard->stoppers--;
        /* The function may have started it anew. */
        armed = take_out(shard, timer) || armed;
    }
    wf_unlock(&shard->lock);
    return armed;
}

/* Under the lock: what is due, up to a batch, or up to the first function. */
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
            batch->call = (struct call){ .timer = timer,
                                         .thread = pthread_self(),
                                         .function = timer->function,
                                         .arg = timer->arg };
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
    bool awaited = shard->stoppers > 0;
    if (awaited) {
        /* relaxed: written under the lock; who waits for it takes that. */
        wf_store_relaxed(&shard->ended, wf_load_relaxed(&shard->ended) + 1);
    }
    wf_unlock(&shard->lock);
    if (awaited) {
        wf_futex_wake(&shard->ended, INT_MAX);
    }
}

static void carry_out(struct wf_timer_shard *shard, struct batch *batch)
{
    for (unsigned i = 0; i < batch->count; i++) {
        wf_task_wake(batch->tasks[i]);
    }
    if (batch->call.function != NULL) {
        batch->call.function(batch->call.arg);
        end_call(shard, &batch->call);
    }
}

static void fire(struct wf_sched *sched, unsigned index, int64_t now)
{
    struct wf_timer_shard *shard = &shards_of(sched)[index];
    struct batch batch;
    unsigned fired = 0;
    do {
        wf_lock(&shard->lock);
        shard->fired_at = now;
        collect(shard, now, &batch);
        /* relaxed: written under the lock; whoever relies on a value behind a fence
         * is told by who lowers it. */
        wf_store_relaxed(&shard->worker->next_deadline, next_of(shard));
        wf_unlock(&shard->lock);
        carry_out(shard, &batch);
        fired += batch.count + (batch.call.function != NULL);
    } while ((batch.count == FIRE_BATCH || batch.call.function != NULL) && fired < FIRE_MAX);
}

/* Deadlines of fibers that wait. */

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

/* One that is still armed, due or not. */
static struct wf_timer *take_any(struct wf_timer_shard *shard)
{
    struct wf_wheel_entry *coarse = wf_wheel_take_any(&shard->wheel);
    return coarse != NULL ? wf_container_of(coarse, struct wf_timer, entry.coarse)
                          : pop_precise(shard, INT64_MAX);
}

void wf_timers_destroy(struct wf_sched *sched)
{
    struct timers *timers = sched->timers;
    if (timers == NULL) {
        return;
    }
    wf_lock(&live_lock);
    wf_list_remove(&timers->link);
    wf_unlock(&live_lock);
    for (unsigned i = 0; i < timers->count; i++) {
        struct wf_timer *timer;
        while ((timer = take_any(&timers->shards[i])) != NULL) {
            timer->home = NULL;
            /* relaxed: nobody else uses the runtime any more. */
            wf_store_relaxed(&timer->state, (uint32_t)WF_TIMER_IDLE);
        }
    }
    wf_free(&sched->options.allocator, timers, timers_bytes(sched), _Alignof(struct timers));
    sched->timers = NULL;
}

/* Timers of users. */

_Static_assert(sizeof(struct wf_timer) <= sizeof(weft_timer), "weft_timer is too small");

/* A time that is over is as good as the last moment for which it was: so one that is
 * started with it again and again comes after the others that were due. */
static int64_t behind_others(const struct wf_timer_shard *shard, const struct wf_timer *timer,
                             int64_t deadline)
{
    int64_t latest = shard->fired_at;
    if (!timer->is_precise && latest > 0) {
        latest -= latest % WF_WHEEL_TICK_NS; /* Rounded up it must not come later. */
    }
    return deadline > latest ? deadline : latest;
}

void weft_timer_start(weft_timer *handle, weft_time deadline, unsigned flags,
                      void (*function)(void *arg), void *arg)
{
    struct wf_timer *timer = (struct wf_timer *)handle;
    struct wf_sched *sched = wf_thread_must_sched("weft_timer_start");
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

bool weft_timer_stop(weft_timer *timer)
{
    return wf_timer_disarm((struct wf_timer *)timer);
}
