/* SPDX-License-Identifier: MIT */
/*
 * worker_rig.h - a scheduler that was not started, driven by hand.
 *
 * This thread is its worker 0, and takes and runs one task at a time. Tasks write their tag into
 * a log, so that tests can check the order.
 */
#ifndef WORKER_RIG_H
#define WORKER_RIG_H

#include <string.h>

#include <weft.h>

#include "sched/sched.h"
#include "sched/spawn.h"
#include "sched/worker.h"
#include "scheduler.h"
#include "test.h"

static struct wf_sched *sched;
static struct wf_worker *worker;
static char ran[8192];
static size_t ran_count;

static inline void set_up(struct wf_sched_options options)
{
    sched = test_sched_create(&options);
    worker = &sched->workers[0];
    test_be_worker(worker);
    ran_count = 0;
    ran[0] = '\0';
}

/* Checks that all spawned tasks have ended. */
static inline void tear_down(void)
{
    CHECK_EQ(wf_inject_len(&sched->inject), 0);
    uint64_t ended = 0;
    uint64_t spawned = wf_inject_admitted(&sched->inject);
    for (unsigned i = 0; i < sched->options.workers; i++) {
        ended += wf_counter_read(&sched->workers[i].counters.completed);
        spawned += wf_counter_read(&sched->workers[i].counters.spawned);
        CHECK_EQ(wf_ring_len(&sched->workers[i].ring), 0);
    }
    CHECK_EQ(ended, spawned);
    test_be_worker(NULL);
    wf_sched_fini(sched);
}

/*
 * Seeds the generator so that the next draws use the LIFO slot. Test builds bypass it once in a
 * while.
 */
static inline void calm(unsigned draws)
{
    for (uint64_t seed = 1;; seed++) {
        wf_rng_seed(&worker->rng, seed, 0);
        struct wf_rng trial = worker->rng;
        bool quiet = true;
        for (unsigned i = 0; i < draws && quiet; i++) {
            quiet = wf_rng_below(&trial, 4) != 0;
        }
        if (quiet) {
            return;
        }
    }
}

static inline void note(char tag)
{
    CHECK_LT(ran_count, sizeof ran - 1);
    ran[ran_count++] = tag;
    ran[ran_count] = '\0';
}

static inline int note_body(weft_co *co, void *state)
{
    (void)co;
    note(*(char *)state);
    return 0;
}

static inline void spawn_body(weft_body_fn body, char tag, uint32_t pinned)
{
    weft_spec spec = { .body = body, .state = &tag, .state_size = 1, .pinned = pinned };
    CHECK_EQ(wf_spawn(sched, NULL, &spec), 0);
}

static inline void spawn_here(char tag)
{
    spawn_body(note_body, tag, 0);
}

static inline void spawn_in_ring(char tag)
{
    bool lifo = wf_worker_queue_in_order(worker);
    spawn_here(tag);
    wf_worker_queue_as_before(worker, lifo);
}

static inline void spawn_outside(char tag)
{
    test_be_worker(NULL);
    spawn_here(tag);
    test_be_worker(worker);
}

struct yielder {
    char tag;
    unsigned yields;
};

static inline int yielder_body(weft_co *co, void *state)
{
    struct yielder *self = state;
    int err;
    WEFT_BEGIN(co);
    while (self->yields > 0) {
        note(self->tag);
        self->yields--;
        WEFT_YIELD(co, err);
        CHECK_EQ(err, 0);
    }
    note(self->tag);
    WEFT_END(co, 0);
}

static inline void spawn_yielder(char tag, unsigned yields, uint32_t pinned)
{
    struct yielder state = { .tag = tag, .yields = yields };
    weft_spec spec = {
        .body = yielder_body, .state = &state, .state_size = sizeof state, .pinned = pinned
    };
    bool lifo = wf_worker_queue_in_order(worker);
    CHECK_EQ(wf_spawn(sched, NULL, &spec), 0);
    wf_worker_queue_as_before(worker, lifo);
}

static inline bool run_one(void)
{
    struct wf_task *task = wf_worker_next(worker);
    if (task == NULL) {
        return false;
    }
    wf_worker_run(worker, task);
    return true;
}

static inline void run_all(void)
{
    while (run_one()) {
    }
}

#define CHECK_RAN(expected)                                                                        \
    do {                                                                                           \
        if (strcmp(ran, (expected)) != 0) {                                                        \
            test_fail(__FILE__, __LINE__, "ran '%s', wanted '%s'", ran, (expected));               \
        }                                                                                          \
    } while (0)

static inline uint64_t count_of(const wf_counter *counter)
{
    return wf_counter_read(counter);
}

#endif
