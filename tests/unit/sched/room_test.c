/* SPDX-License-Identifier: MIT */
#include "sched/room.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include <weft.h>

#include "base/clock.h"
#include "base/rng.h"
#include "queue/inject.h"
#include "rt/runtime.h"
#include "sched/sched.h"
#include "test.h"
#include "timing.h"

/* A deadline that has passed. */
#define PAST ((weft_time)1)

/* --- Waiting for space, with a queue of nodes ---------------------------------- */

enum {
    NODES = 64
};

struct rig {
    struct wf_room room;
    struct wf_inject inject;
    struct wf_qnode nodes[NODES];
    size_t used;
    _Atomic(uint64_t) returned; /* number of waits that are over */
};

static void rig_init(struct rig *rig, size_t capacity)
{
    *rig = (struct rig){ 0 };
    wf_room_init(&rig->room);
    wf_inject_init(&rig->inject, capacity);
}

/* Pushes count nodes, beyond the capacity if necessary. */
static void rig_fill(struct rig *rig, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        wf_inject_push(&rig->inject, &rig->nodes[rig->used++]);
    }
}

/* Pops count nodes, as a worker does. */
static void rig_take(struct rig *rig, size_t count)
{
    struct wf_qlist out = { 0 };
    wf_inject_pop(&rig->inject, count, &out);
    CHECK_EQ(out.count, count);
    wf_room_freed(&rig->room, &rig->inject, count);
}

static uint32_t waiting(struct wf_room *room)
{
    return wf_load_relaxed(&room->waiting);
}

static void wait_for_waiters(struct wf_room *room, uint32_t count)
{
    while (waiting(room) != count) {
        (void)sched_yield();
    }
}

struct waiter {
    struct rig *rig;
    weft_time deadline;
    int result;
    pthread_t thread;
};

static void *waiter_main(void *arg)
{
    struct waiter *waiter = arg;
    struct wf_room_future future;
    wf_room_future_init(&future, &waiter->rig->room, &waiter->rig->inject);
    waiter->result = weft_await(&future.future, waiter->deadline);
    (void)atomic_fetch_add(&waiter->rig->returned, 1);
    return NULL;
}

/* Starts the waiters one after the other, so that they queue in this order. */
static void start_waiters(struct rig *rig, struct waiter *waiters, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        waiters[i] = (struct waiter){ .rig = rig, .deadline = WEFT_NEVER, .result = 1234 };
        CHECK_EQ(pthread_create(&waiters[i].thread, NULL, waiter_main, &waiters[i]), 0);
        wait_for_waiters(&rig->room, i + 1);
    }
}

static void join_waiters(struct waiter *waiters, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        CHECK_EQ(pthread_join(waiters[i].thread, NULL), 0);
        CHECK_EQ(waiters[i].result, 0);
    }
}

static void queue_with_space_is_not_waited_for(void)
{
    struct rig rig;
    rig_init(&rig, 4);
    rig_fill(&rig, 3);
    struct wf_room_future future;
    wf_room_future_init(&future, &rig.room, &rig.inject);
    CHECK_EQ(weft_await(&future.future, PAST), 0);
    CHECK_EQ(waiting(&rig.room), 0);
    CHECK(wf_waitq_is_empty(&rig.room.waiters));
}

static void full_queue_is_waited_for_until_deadline(void)
{
    struct rig rig;
    rig_init(&rig, 4);
    rig_fill(&rig, 4);
    for (int i = 0; i < 3; i++) {
        struct wf_room_future future;
        wf_room_future_init(&future, &rig.room, &rig.inject);
        CHECK_EQ(weft_await(&future.future, PAST), WEFT_ETIMEDOUT);
        CHECK_EQ(waiting(&rig.room), 0);
        CHECK(wf_waitq_is_empty(&rig.room.waiters));
    }
    rig_take(&rig, 2); /* No waiter: does nothing. */
}

static void pop_wakes_as_many_waiters_in_fifo_order(void)
{
    struct rig rig;
    struct waiter waiters[3];
    rig_init(&rig, 4);
    rig_fill(&rig, 4);
    start_waiters(&rig, waiters, 3);
    rig_take(&rig, 2);
    CHECK_EQ(waiting(&rig.room), 1);
    join_waiters(waiters, 2);
    CHECK_EQ(rig.returned, 2);
    rig_take(&rig, 1);
    CHECK_EQ(waiting(&rig.room), 0);
    join_waiters(waiters + 2, 1);
}

static void no_waiter_wakes_while_queue_is_over_capacity(void)
{
    struct rig rig;
    struct waiter waiters[2];
    rig_init(&rig, 4);
    rig_fill(&rig, 8); /* Overflow may exceed the capacity. */
    start_waiters(&rig, waiters, 2);
    rig_take(&rig, 3);
    CHECK_EQ(waiting(&rig.room), 2);
    rig_take(&rig, 1);
    CHECK_EQ(waiting(&rig.room), 2);
    rig_take(&rig, 1); /* 3 of 4: there is space for one. */
    CHECK_EQ(waiting(&rig.room), 1);
    join_waiters(waiters, 1);
    rig_take(&rig, 3);
    CHECK_EQ(waiting(&rig.room), 0);
    join_waiters(waiters + 1, 1);
}

static void close_wakes_all_waiters_and_ends_later_waits(void)
{
    struct rig rig;
    struct waiter waiters[3];
    rig_init(&rig, 1);
    rig_fill(&rig, 1);
    start_waiters(&rig, waiters, 3);
    wf_room_close(&rig.room);
    CHECK_EQ(waiting(&rig.room), 0);
    join_waiters(waiters, 3);
    struct wf_room_future future;
    wf_room_future_init(&future, &rig.room, &rig.inject);
    CHECK_EQ(weft_await(&future.future, WEFT_NEVER), 0);
    wf_room_close(&rig.room);
}

static void timed_out_waiter_consumes_no_wake(void)
{
    struct rig rig;
    struct waiter waiter;
    rig_init(&rig, 1);
    rig_fill(&rig, 1);
    struct wf_room_future future;
    wf_room_future_init(&future, &rig.room, &rig.inject);
    CHECK_EQ(weft_await(&future.future, PAST), WEFT_ETIMEDOUT);
    start_waiters(&rig, &waiter, 1);
    rig_take(&rig, 1);
    join_waiters(&waiter, 1);
}

struct race {
    struct rig rig;
    _Atomic(uint32_t) stop;
    _Atomic(uint64_t) round;
    _Atomic(uint64_t) freed;
};

static void *free_each_round(void *arg)
{
    struct race *race = arg;
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 1);
    for (uint64_t round = 1;; round++) {
        test_spin_for(&race->round, round);
        if (atomic_load(&race->stop) != 0) {
            return NULL;
        }
        for (uint32_t i = wf_rng_below(&rng, 1u << wf_rng_below(&rng, 10)); i > 0; i--) {
            wf_cpu_relax();
        }
        rig_take(&race->rig, 1);
        atomic_store(&race->freed, round);
    }
}

/* Waits over and over for space that another thread frees meanwhile. */
static void run_race(struct race *race, bool with_deadlines)
{
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 0);
    rig_init(&race->rig, 1);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, free_each_round, race), 0);
    struct test_rounds rounds = test_rounds_begin();
    for (uint64_t round = 1; test_rounds_next(&rounds); round++) {
        race->rig.used = 0;
        rig_fill(&race->rig, 1);
        atomic_store(&race->round, round);
        struct wf_room_future future;
        wf_room_future_init(&future, &race->rig.room, &race->rig.inject);
        weft_time deadline = WEFT_NEVER;
        if (with_deadlines) {
            deadline = weft_now() + wf_rng_below(&rng, 15000);
        }
        int result = weft_await(&future.future, deadline);
        CHECK(result == 0 || (with_deadlines && result == WEFT_ETIMEDOUT));
        if (with_deadlines) {
            test_rounds_count(&rounds, result == 0);
        }
        CHECK_EQ(waiting(&race->rig.room), 0);
        test_spin_for(&race->freed, round);
        CHECK(wf_waitq_is_empty(&race->rig.room.waiters));
    }
    atomic_store(&race->stop, 1);
    atomic_store(&race->round, UINT64_MAX);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

/*
 * Goal:   a waiter that starts to wait while the queue is drained is woken or sees the space. No
 *         waiter sleeps while space is free.
 * Method: a queue of one slot is filled, then drained while a thread waits for it. A lost wake
 *         ends in the timeout of the test.
 */
static void space_freed_at_any_moment_ends_wait(void)
{
    static struct race race;
    race = (struct race){ .stop = 0 };
    run_race(&race, false);
}

/*
 * Goal:   space that is freed at the time of the deadline leaves no waiter in the list, in either
 *         order.
 * Method: the same, with deadlines about as far away as the space.
 */
static void space_that_races_with_deadline_leaves_no_waiter(void)
{
    static struct race race;
    race = (struct race){ .stop = 0 };
    run_race(&race, true);
}

/* --- Through the API -------------------------------------------------------------- */

enum {
    CAPACITY = 4
};

/* Occupies its worker until it is released. */
struct plug {
    _Atomic(uint64_t) began;
    _Atomic(uint64_t) may_end;
};

static int plug_body(weft_co *co, void *state)
{
    struct plug *plug = *(struct plug **)state;
    (void)co;
    (void)atomic_fetch_add(&plug->began, 1);
    test_wait_for(&plug->may_end, 1);
    return 0;
}

static int count_body(weft_co *co, void *state)
{
    (void)co;
    (void)atomic_fetch_add(*(_Atomic(uint64_t) **)state, 1);
    return 0;
}

/* A runtime whose only worker is busy and whose queue is full. */
struct jam {
    weft_runtime *rt;
    struct plug plug;
    _Atomic(uint64_t) run; /* number of small tasks that ran */
    struct wf_room *room;
};

static weft_spec spec_of(weft_body_fn body, void *arg_ptr)
{
    return (weft_spec){ .body = body, .state = arg_ptr, .state_size = sizeof(void *) };
}

static int spawn_count(struct jam *jam)
{
    void *arg = (void *)&jam->run;
    weft_spec spec = spec_of(count_body, &arg);
    return weft_runtime_spawn(jam->rt, NULL, &spec);
}

static int spawn_count_wait(struct jam *jam, weft_time deadline)
{
    void *arg = (void *)&jam->run;
    weft_spec spec = spec_of(count_body, &arg);
    return weft_runtime_spawn_wait(jam->rt, NULL, &spec, deadline);
}

static void spawn_plug(struct jam *jam, struct plug *plug)
{
    void *arg = plug;
    weft_spec spec = spec_of(plug_body, &arg);
    CHECK_EQ(weft_runtime_spawn(jam->rt, NULL, &spec), 0);
}

static void jam_init(struct jam *jam, size_t capacity, const weft_allocator *allocator)
{
    *jam = (struct jam){ 0 };
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 1;
    config.inject_capacity = capacity;
    config.allocator = allocator;
    CHECK_EQ(weft_runtime_create(&jam->rt, &config), 0);
    jam->room = &jam->rt->sched->room;
    spawn_plug(jam, &jam->plug);
    test_wait_for(&jam->plug.began, 1);
}

static void jam_fill(struct jam *jam)
{
    for (int i = 0; i < CAPACITY; i++) {
        CHECK_EQ(spawn_count(jam), 0);
    }
    CHECK_EQ(spawn_count(jam), -EAGAIN);
}

static void jam_end(struct jam *jam, uint64_t run)
{
    atomic_store(&jam->plug.may_end, 1);
    test_wait_for(&jam->run, run);
    weft_runtime_destroy(jam->rt);
    CHECK_EQ(jam->run, run);
}

struct spawner {
    struct jam *jam;
    weft_time deadline;
    int result;
    pthread_t thread;
};

static void *spawner_main(void *arg)
{
    struct spawner *spawner = arg;
    spawner->result = spawn_count_wait(spawner->jam, spawner->deadline);
    return NULL;
}

static void start_spawner(struct spawner *spawner, struct jam *jam)
{
    *spawner = (struct spawner){ .jam = jam, .deadline = WEFT_NEVER, .result = 1234 };
    CHECK_EQ(pthread_create(&spawner->thread, NULL, spawner_main, spawner), 0);
}

static void spawn_wait_with_space_does_not_wait(void)
{
    struct jam jam;
    jam_init(&jam, CAPACITY, NULL);
    CHECK_EQ(spawn_count_wait(&jam, PAST), 0);
    CHECK_EQ(spawn_count_wait(&jam, WEFT_NEVER), 0);
    jam_end(&jam, 2);
}

static void spawn_wait_continues_when_space_is_freed(void)
{
    struct jam jam;
    struct spawner spawners[3];
    jam_init(&jam, CAPACITY, NULL);
    jam_fill(&jam);
    for (uint32_t i = 0; i < 3; i++) {
        start_spawner(&spawners[i], &jam);
    }
    wait_for_waiters(jam.room, 3);
    atomic_store(&jam.plug.may_end, 1);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(pthread_join(spawners[i].thread, NULL), 0);
        CHECK_EQ(spawners[i].result, 0);
    }
    jam_end(&jam, CAPACITY + 3);
}

static void spawn_wait_ends_at_its_deadline(void)
{
    struct jam jam;
    jam_init(&jam, CAPACITY, NULL);
    jam_fill(&jam);
    CHECK_EQ(spawn_count_wait(&jam, PAST), WEFT_ETIMEDOUT);
    weft_time deadline = weft_now() + 2 * WEFT_MS;
    CHECK_EQ(spawn_count_wait(&jam, deadline), WEFT_ETIMEDOUT);
    CHECK_GE(weft_now(), deadline);
    CHECK_EQ(waiting(jam.room), 0);
    jam_end(&jam, CAPACITY);
}

static void *shutdown_main(void *arg)
{
    weft_runtime_shutdown(arg);
    return NULL;
}

static void spawn_wait_ends_at_shutdown(void)
{
    struct jam jam;
    struct spawner spawners[2];
    jam_init(&jam, CAPACITY, NULL);
    jam_fill(&jam);
    for (uint32_t i = 0; i < 2; i++) {
        start_spawner(&spawners[i], &jam);
    }
    wait_for_waiters(jam.room, 2);
    pthread_t stopper;
    CHECK_EQ(pthread_create(&stopper, NULL, shutdown_main, jam.rt), 0);
    for (int i = 0; i < 2; i++) { /* While the worker is still busy. */
        CHECK_EQ(pthread_join(spawners[i].thread, NULL), 0);
        CHECK_EQ(spawners[i].result, WEFT_ESHUTDOWN);
    }
    CHECK_EQ(spawn_count_wait(&jam, WEFT_NEVER), WEFT_ESHUTDOWN);
    atomic_store(&jam.plug.may_end, 1);
    CHECK_EQ(pthread_join(stopper, NULL), 0);
    jam_end(&jam, CAPACITY);
}

static int spawn_wait_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    weft_spec spec = { .body = spawn_wait_body };
    return weft_runtime_spawn_wait(weft_runtime_current(), NULL, &spec, WEFT_NEVER);
}

static void spawn_wait_on_worker(void)
{
    weft_runtime *rt;
    CHECK_EQ(weft_runtime_create(&rt, NULL), 0);
    weft_spec spec = { .body = spawn_wait_body };
    weft_task *task;
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    CHECK_EQ(weft_join(task, NULL, WEFT_NEVER), 0);
}

static void spawn_wait_on_worker_aborts_with_advice(void)
{
    CHECK_ABORTS(spawn_wait_on_worker, "weft_runtime_spawn_wait: called on a worker");
    CHECK_ABORTS(spawn_wait_on_worker, "use weft_spawn()");
}

static void invalid_spawn_wait_fails_without_waiting(void)
{
    struct jam jam;
    jam_init(&jam, CAPACITY, NULL);
    jam_fill(&jam);
    CHECK_EQ(weft_runtime_spawn_wait(jam.rt, NULL, &(weft_spec){ 0 }, WEFT_NEVER), -EINVAL);
    jam_end(&jam, CAPACITY);
}

/* Refuses large blocks once refuses_large is set. */
static _Atomic(uint32_t) refuses_large;

static void *picky_alloc(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    if (size >= 1 << 20 && atomic_load(&refuses_large) != 0) {
        return NULL;
    }
    size_t grain = align < 64 ? 64 : align;
    return aligned_alloc(grain, (size + grain - 1) / grain * grain);
}

static void picky_free(void *ctx, void *ptr, size_t size, size_t align)
{
    (void)ctx;
    (void)size;
    (void)align;
    free(ptr);
}

static void *large_spawner_main(void *arg)
{
    struct spawner *spawner = arg;
    weft_spec spec = { .body = count_body, .state_size = 1 << 20 };
    spawner->result = weft_runtime_spawn_wait(spawner->jam->rt, NULL, &spec, WEFT_NEVER);
    return NULL;
}

/*
 * Goal:   space that was granted to a spawner that then fails is passed on.
 * Method: a queue of one slot holds a task that does not end by itself, and two threads wait for
 *         the slot. When the worker pops the task, the first thread is woken, is out of memory,
 *         and the second must get the slot.
 */
static void unused_space_is_passed_on(void)
{
    const weft_allocator picky = { picky_alloc, picky_free, NULL };
    struct jam jam;
    struct plug second_plug = { 0 };
    struct spawner large;
    struct spawner small;
    atomic_store(&refuses_large, 0);
    jam_init(&jam, 1, &picky);
    spawn_plug(&jam, &second_plug);

    large = (struct spawner){ .jam = &jam, .result = 1234 };
    CHECK_EQ(pthread_create(&large.thread, NULL, large_spawner_main, &large), 0);
    wait_for_waiters(jam.room, 1);
    start_spawner(&small, &jam);
    wait_for_waiters(jam.room, 2);
    atomic_store(&refuses_large, 1);

    atomic_store(&jam.plug.may_end, 1);
    CHECK_EQ(pthread_join(large.thread, NULL), 0);
    CHECK_EQ(large.result, -ENOMEM);
    CHECK_EQ(pthread_join(small.thread, NULL), 0); /* While the second plug still runs. */
    CHECK_EQ(small.result, 0);
    CHECK_EQ(jam.run, 0);
    atomic_store(&second_plug.may_end, 1);
    jam_end(&jam, 1);
}

enum {
    FLOODERS = 3
};

struct flood {
    struct jam jam;
    uint64_t each;
};

static void *flood_main(void *arg)
{
    struct flood *flood = arg;
    for (uint64_t i = 0; i < flood->each; i++) {
        CHECK_EQ(spawn_count_wait(&flood->jam, WEFT_NEVER), 0);
    }
    return NULL;
}

/*
 * Goal:   many more tasks than slots get in, and each runs once.
 * Method: three threads spawn into a queue of four slots and wait for space.
 */
static void many_spawners_pass_through_few_slots(void)
{
    struct flood flood = { .each = test_scale(5000) };
    jam_init(&flood.jam, CAPACITY, NULL);
    pthread_t threads[FLOODERS];
    for (int i = 0; i < FLOODERS; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, flood_main, &flood), 0);
    }
    wait_for_waiters(flood.jam.room, FLOODERS);
    atomic_store(&flood.jam.plug.may_end, 1);
    for (int i = 0; i < FLOODERS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    jam_end(&flood.jam, FLOODERS * flood.each);
}

TEST_MAIN({
    TEST(queue_with_space_is_not_waited_for),
    TEST(full_queue_is_waited_for_until_deadline),
    TEST(pop_wakes_as_many_waiters_in_fifo_order),
    TEST(no_waiter_wakes_while_queue_is_over_capacity),
    TEST(close_wakes_all_waiters_and_ends_later_waits),
    TEST(timed_out_waiter_consumes_no_wake),
    TEST(space_freed_at_any_moment_ends_wait),
    TEST(space_that_races_with_deadline_leaves_no_waiter),
    TEST(spawn_wait_with_space_does_not_wait),
    TEST(spawn_wait_continues_when_space_is_freed),
    TEST(spawn_wait_ends_at_its_deadline),
    TEST(spawn_wait_ends_at_shutdown),
    TEST(spawn_wait_on_worker_aborts_with_advice),
    TEST(invalid_spawn_wait_fails_without_waiting),
    TEST(unused_space_is_passed_on),
    TEST(many_spawners_pass_through_few_slots),
})
