/* SPDX-License-Identifier: MIT */
#include "crowd.h"

#include <pthread.h>

#include "base/atomic.h"
#include "rt.h"
#include "test.h"

struct crowd {
    weft_body_fn body;
    struct crowd_member members[CROWD_MAX];
};

struct seat {
    struct crowd *crowd;
    struct crowd_member *member;
};

/* Awaits the member's function from start to end, where there is a stack. */
static int await_body(void *arg)
{
    struct seat *seat = arg;
    weft_co_future future;
    weft_co_init(&future, seat->crowd->body, seat->member);
    return weft_await(&future.future, WEFT_NEVER);
}

static void *await_on_thread(void *arg)
{
    CHECK_EQ(await_body(arg), 0);
    return NULL;
}

/* A stackless task whose state is a pointer. */
static int run_body(weft_co *co, void *state)
{
    struct seat *seat = test_arg(state);
    return seat->crowd->body(co, seat->member);
}

static enum crowd_kind kind_of(enum crowd_kind kind, unsigned index)
{
    return kind == CROWD_MIXED ? (enum crowd_kind)(index % CROWD_MIXED) : kind;
}

uint64_t crowd_run(weft_runtime *rt, enum crowd_kind kind, unsigned count, weft_body_fn body,
                   void *shared)
{
    static struct crowd crowd;
    static struct seat seats[CROWD_MAX];
    static weft_task *tasks[CROWD_MAX];
    static pthread_t threads[CROWD_MAX];
    CHECK_LE(count, CROWD_MAX);
    crowd.body = body;
    for (unsigned i = 0; i < count; i++) {
        crowd.members[i] = (struct crowd_member){ .index = i, .shared = shared };
        seats[i] = (struct seat){ &crowd, &crowd.members[i] };
        if (kind_of(kind, i) == CROWD_THREADS) {
            CHECK_EQ(pthread_create(&threads[i], NULL, await_on_thread, &seats[i]), 0);
        } else if (kind_of(kind, i) == CROWD_FIBERS) {
            tasks[i] = test_go(rt, await_body, &seats[i]);
        } else {
            tasks[i] = test_spawn(rt, run_body, &seats[i]);
        }
    }
    uint64_t sum = 0;
    for (unsigned i = 0; i < count; i++) {
        if (kind_of(kind, i) == CROWD_THREADS) {
            CHECK_EQ(pthread_join(threads[i], NULL), 0);
        } else {
            CHECK_EQ(test_join_soon(tasks[i]), 0);
        }
        sum += crowd.members[i].sum;
    }
    return sum;
}

void crowd_run_all(unsigned count, weft_body_fn body, void *shared, void (*reset)(void),
                   void (*check)(uint64_t sum))
{
    for (unsigned workers = 1; workers <= 8; workers += workers == 1 ? 1 : 6) {
        weft_runtime *rt = test_start(workers);
        for (int kind = 0; kind < CROWD_KINDS; kind++) {
            reset();
            check(crowd_run(rt, (enum crowd_kind)kind, count, body, shared));
        }
        weft_runtime_destroy(rt);
    }
}

uint64_t crowd_rounds(void)
{
#ifdef WF_TSAN
    return test_scale(100);
#else
    return test_scale(500);
#endif
}
