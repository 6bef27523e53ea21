/* SPDX-License-Identifier: MIT */
#include <weft/park.h>

#include <stdatomic.h>
#include <string.h>

#include "crowd.h"
#include "rt.h"
#include "test.h"
#include "timing.h"

enum {
    MEMBERS = 12,
    LOCKS = 3,
};

/* Locks built on park: one word each. */
static _Atomic(uint32_t) words[LOCKS];
static uint64_t guarded[LOCKS]; /* plain */

static void reset(void)
{
    memset((void *)words, 0, sizeof words);
    memset(guarded, 0, sizeof guarded);
}

/* 1: locked. 2: locked, and there may be waiters. */
static bool must_wait(void *arg)
{
    uint32_t seen = 1;
    return atomic_compare_exchange_strong((_Atomic(uint32_t) *)arg, &seen, 2) || seen == 2;
}

static bool try_lock(_Atomic(uint32_t) *word, bool has_waited)
{
    uint32_t seen = 0;
    return atomic_compare_exchange_strong(word, &seen, has_waited ? 2 : 1);
}

static int lock_and_add(weft_co *co, void *state)
{
    struct crowd_member *self = state;
    _Atomic(uint32_t) *word = &words[self->index % LOCKS];
    WEFT_BEGIN(co);
    for (; self->round < crowd_rounds(); self->round++) {
        self->err = -EAGAIN;
        while (!try_lock(word, self->err == 0)) {
            weft_park_init(&self->ops[0], word, must_wait, word);
            WEFT_AWAIT(co, self->err, &self->ops[0].future);
            CHECK(self->err == 0 || self->err == -EAGAIN);
            self->err = 0;
        }
        guarded[self->index % LOCKS]++;
        self->sum++;
        if (self->round % 10 == 0) {
            WEFT_YIELD(co, self->err);
        }
        if (atomic_exchange(word, 0) == 2) {
            CHECK_LE(weft_unpark(word, 1), 1);
        }
    }
    WEFT_END(co, 0);
}

static void check_guarded(uint64_t sum)
{
    CHECK_EQ(guarded[0] + guarded[1] + guarded[2], sum);
    CHECK_EQ(weft_unpark(&words[0], SIZE_MAX), 0);
}

static void lock_built_on_park_excludes(void)
{
    crowd_run_all(MEMBERS, lock_and_add, NULL, reset, check_guarded);
}

static int park_at(void *arg)
{
    return weft_park(arg, NULL, NULL, WEFT_NEVER);
}

static bool return_false(void *arg)
{
    (void)arg;
    return false;
}

static void unpark_wakes_only_waiters_of_its_address(void)
{
    /* More addresses than the parking table has slots, so some share one. */
    static char addresses[300];
    weft_runtime *rt = test_start(1);
    static weft_task *tasks[2][300];
    for (unsigned i = 0; i < 300; i++) {
        tasks[0][i] = test_go_first(rt, park_at, &addresses[i]);
        tasks[1][i] = test_go_first(rt, park_at, &addresses[i]);
    }
    test_settle(rt);
    /* In reverse order: other waiters are queued before it in its slot. */
    for (unsigned i = 300; i-- > 0;) {
        CHECK_EQ(weft_unpark(&addresses[i], 1), 1);
        CHECK_EQ(test_join_soon(tasks[0][i]), 0);
        CHECK_EQ(weft_try_join(tasks[1][i], NULL), -EAGAIN);
        CHECK_EQ(weft_unpark(&addresses[i], 0), 0);
        CHECK_EQ(weft_unpark(&addresses[i], 5), 1);
        CHECK_EQ(test_join_soon(tasks[1][i]), 0);
    }
    weft_runtime_destroy(rt);
}

static void park_waits_only_if_needed_and_until_deadline(void)
{
    char address = 0;
    CHECK_EQ(weft_park(&address, return_false, NULL, WEFT_NEVER), -EAGAIN);
    CHECK_EQ(weft_park(&address, NULL, NULL, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(weft_unpark(&address, 1), 0);
    weft_runtime *rt = test_start(1);
    weft_task *first = test_go_first(rt, park_at, &address);
    weft_task *second = test_go_first(rt, park_at, &address);
    test_settle(rt);
    weft_cancel(first);
    CHECK_EQ(test_join_soon(first), WEFT_ECANCELED);
    CHECK_EQ(weft_unpark(&address, 2), 1);
    CHECK_EQ(test_join_soon(second), 0);
    weft_task *tasks[3];
    for (unsigned i = 0; i < 3; i++) {
        tasks[i] = test_go_first(rt, park_at, &address);
    }
    CHECK_EQ(weft_unpark(&address, 2), 2);
    CHECK_EQ(test_join_soon(tasks[0]), 0);
    CHECK_EQ(test_join_soon(tasks[1]), 0);
    CHECK_EQ(weft_unpark(&address, SIZE_MAX), 1);
    CHECK_EQ(test_join_soon(tasks[2]), 0);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(lock_built_on_park_excludes),
    TEST(unpark_wakes_only_waiters_of_its_address),
    TEST(park_waits_only_if_needed_and_until_deadline),
})
