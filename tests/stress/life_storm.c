/* SPDX-License-Identifier: MIT */
/*
 * life_storm.c - the whole life of a task under stress: spawn, yield, wait, shield, cancel,
 * join, detach, late wakes, blocking jobs, and a shutdown in the middle.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <weft.h>

#include "test.h"

enum {
    HELPERS = 3,
    SLOTS = 64
};

struct storm {
    weft_runtime *rt;
    _Atomic(uint64_t) spawned;
    _Atomic(uint64_t) started;
    _Atomic(uint64_t) dropped;
    _Atomic(bool) over;
    _Atomic(weft_waker *) wakers[SLOTS]; /* stored by tasks, woken by any thread */
};

static uint32_t next_random(uint64_t *state)
{
    *state += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t x = *state;
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return (uint32_t)((x ^ x >> 31) >> 16);
}

/* Stores a waker in a slot and wakes the previous one. */
static void leave_waker(struct storm *storm, uint32_t slot, weft_waker *waker)
{
    weft_waker *old = atomic_exchange(&storm->wakers[slot % SLOTS], waker);
    if (old != NULL) {
        weft_waker_fire(old);
    }
}

/* A future that is ready once its waker was woken and it is polled again. */
struct slot_future {
    weft_future future;
    struct storm *storm;
    uint32_t slot;
    bool waiting;
    bool cancelled;
};

static int slot_poll(weft_future *future)
{
    struct slot_future *self = (struct slot_future *)future;
    if (self->cancelled) {
        return WEFT_ECANCELED;
    }
    if (self->waiting) {
        return 0; /* Any wake-up will do. */
    }
    self->waiting = true;
    leave_waker(self->storm, self->slot, weft_waker_current());
    return WEFT_PENDING;
}

static bool slot_cancel(weft_future *future)
{
    ((struct slot_future *)future)->cancelled = true;
    return true;
}

static const weft_future_ops slot_ops = { .poll = slot_poll, .cancel = slot_cancel };

struct life {
    struct storm *storm;
    uint64_t random;
    uint32_t steps;
    uint32_t i;
    bool started;
    bool shielded;
    struct slot_future slot;
    weft_task *child;
    weft_join_future join;
};

static int life_task(weft_co *co, void *state);

static void life_drop(void *state)
{
    struct life *life = state;
    CHECK(life->started);
    CHECK(!life->shielded);
    if (life->child != NULL) {
        weft_detach(life->child);
    }
    atomic_fetch_add(&life->storm->dropped, 1);
}

static int spawn_life(struct storm *storm, weft_task **task, uint64_t random, uint32_t steps)
{
    struct life life = { .storm = storm, .random = random, .steps = steps };
    weft_spec spec = { .body = life_task,
                       .drop = life_drop,
                       .state = &life,
                       .state_size = sizeof life,
                       .pinned = random % 8 == 0 ? WEFT_PINNED : 0 };
    int err = weft_runtime_spawn(storm->rt, task, &spec);
    if (err == 0) {
        atomic_fetch_add(&storm->spawned, 1);
    } else {
        CHECK(err == WEFT_ESHUTDOWN || err == -EAGAIN);
    }
    return err;
}

static void start_wait(struct life *life)
{
    life->slot = (struct slot_future){ .storm = life->storm, .slot = next_random(&life->random) };
    life->slot.future.ops = &slot_ops;
}

static int life_task(weft_co *co, void *state)
{
    struct life *life = state;
    int err;
    WEFT_BEGIN(co);
    life->started = true;
    atomic_fetch_add(&life->storm->started, 1);
    for (life->i = 0; life->i < life->steps; life->i++) {
        uint32_t choice = next_random(&life->random) % 8;
        if (choice < 3) {
            WEFT_YIELD(co, err);
        } else if (choice < 5) {
            start_wait(life);
            WEFT_AWAIT(co, err, &life->slot.future);
        } else if (choice == 5) {
            weft_shield_enter();
            life->shielded = true;
            start_wait(life);
            WEFT_AWAIT(co, err, &life->slot.future);
            CHECK_EQ(err, 0); /* Not canceled under the shield. */
            life->shielded = false;
            weft_shield_leave();
        } else if (life->child == NULL) {
            if (spawn_life(life->storm, &life->child, next_random(&life->random), 3) != 0) {
                life->child = NULL;
            }
        } else {
            weft_join_init(&life->join, life->child, NULL);
            WEFT_AWAIT(co, err, &life->join.future);
            if (err == 0) {
                life->child = NULL;
            }
        }
        if (weft_cancelled()) {
            return WEFT_ECANCELED;
        }
    }
    WEFT_END(co, 0);
}

static int blocking_job(void *arg)
{
    atomic_fetch_add((_Atomic(uint64_t) *)arg, 1);
    return 0;
}

struct helper {
    struct storm *storm;
    uint64_t random;
    _Atomic(uint64_t) jobs;
};

/* A plain thread that spawns, cancels, joins and detaches tasks, and wakes wakers. */
static void *helper_main(void *arg)
{
    struct helper *self = arg;
    struct storm *storm = self->storm;
    while (!atomic_load(&storm->over)) {
        weft_task *task;
        uint32_t random = next_random(&self->random);
        leave_waker(storm, random >> 8, NULL);
        if (random % 16 == 0) {
            if (weft_runtime_spawn_blocking(storm->rt, &task, blocking_job, &self->jobs) != 0) {
                continue;
            }
        } else if (spawn_life(storm, &task, next_random(&self->random), 10) != 0) {
            continue;
        }
        if (random % 3 == 0) {
            weft_cancel(task);
        }
        if (random % 5 == 0 && weft_join(task, NULL, weft_now() + WEFT_MS) == 0) {
            continue;
        }
        weft_detach(task);
    }
    return NULL;
}

/*
 * Goal:   whatever happens to a task, its function starts, its drop function runs exactly once,
 *         a shield holds, and the shutdown ends.
 * Method: random tasks from a printed seed, random interference from plain threads, and a
 *         shutdown in the middle.
 */
static void random_task_lives_all_end(void)
{
    uint64_t rounds = test_scale(20);
    for (uint64_t round = 0; round < rounds; round++) {
        struct storm storm = { 0 };
        weft_config config = WEFT_CONFIG_INIT;
        config.workers = test_workers(3);
        config.seed = test_seed() + round;
        config.inject_capacity = 256;
        config.blocking_threads = 3;
        CHECK_EQ(weft_runtime_create(&storm.rt, &config), 0);
        pthread_t threads[HELPERS];
        struct helper helpers[HELPERS];
        for (int i = 0; i < HELPERS; i++) {
            helpers[i] = (struct helper){ .storm = &storm,
                                          .random = test_seed() + round * 10 + (uint64_t)i };
            CHECK_EQ(pthread_create(&threads[i], NULL, helper_main, &helpers[i]), 0);
        }
        test_wait_for(&storm.started, test_is_sanitized() ? 500 : 3000);
        weft_runtime_shutdown(storm.rt);
        CHECK_EQ(atomic_load(&storm.started), atomic_load(&storm.dropped));
        atomic_store(&storm.over, true);
        for (int i = 0; i < HELPERS; i++) {
            CHECK_EQ(pthread_join(threads[i], NULL), 0);
        }
        CHECK_EQ(atomic_load(&storm.spawned), atomic_load(&storm.dropped));
        weft_runtime_destroy(storm.rt);
        /* Wakers of tasks whose runtime has been destroyed. */
        for (uint32_t i = 0; i < SLOTS; i++) {
            leave_waker(&storm, i, NULL);
        }
    }
}

TEST_MAIN({ TEST(random_task_lives_all_end) })
