/* SPDX-License-Identifier: MIT */
#include <weft/rwlock.h>

#include <stdatomic.h>
#include <string.h>

#include "crowd.h"
#include "latched.h"
#include "rt.h"
#include "test.h"
#include "timing.h"

static weft_rwlock lock;
static uint64_t written[2]; /* plain; equal while no writer holds the lock */
static _Atomic(uint32_t) readers;

static void reset(void)
{
    memset(&lock, 0, sizeof lock);
    memset(written, 0, sizeof written);
    atomic_store(&readers, 0);
}

/* Every fourth access is a write. Some writers downgrade to readers. */
static int read_and_write(weft_co *co, void *state)
{
    struct crowd_member *self = state;
    WEFT_BEGIN(co);
    for (; self->round < crowd_rounds(); self->round++) {
        if ((self->round + self->index) % 4 != 0) {
            weft_rwlock_read_init(&self->ops[0], &lock);
            WEFT_AWAIT(co, self->err, &self->ops[0].future);
        } else {
            weft_rwlock_write_init(&self->ops[0], &lock);
            WEFT_AWAIT(co, self->err, &self->ops[0].future);
            CHECK_EQ(atomic_load(&readers), 0);
            written[0]++;
            if (self->round % 8 == 0) {
                WEFT_YIELD(co, self->err);
                CHECK_EQ(atomic_load(&readers), 0);
            }
            written[1]++;
            self->sum++;
            if (self->round % 16 != 0) {
                weft_rwlock_end_write(&lock);
                continue;
            }
            weft_rwlock_downgrade(&lock);
        }
        CHECK_EQ(self->err, 0);
        atomic_fetch_add(&readers, 1);
        CHECK_EQ(written[0], written[1]);
        if (self->round % 10 == 3) {
            WEFT_YIELD(co, self->err);
        }
        CHECK_EQ(written[0], written[1]);
        atomic_fetch_sub(&readers, 1);
        weft_rwlock_end_read(&lock);
    }
    WEFT_END(co, 0);
}

static void check_written(uint64_t sum)
{
    CHECK_EQ(written[0], sum);
    CHECK_EQ(written[1], sum);
    CHECK(weft_rwlock_try_write(&lock));
    weft_rwlock_end_write(&lock);
    CHECK_EQ(lock.opaque[0], 0);
}

static void many_readers_or_one_writer_hold_lock(void)
{
    crowd_run_all(12, read_and_write, NULL, reset, check_written);
}

static void try_calls_succeed_only_if_available(void)
{
    reset();
    CHECK(weft_rwlock_try_read(&lock));
    CHECK(weft_rwlock_try_read(&lock));
    CHECK(!weft_rwlock_try_write(&lock));
    weft_rwlock_end_read(&lock);
    CHECK(!weft_rwlock_try_write(&lock));
    weft_rwlock_end_read(&lock);
    CHECK(weft_rwlock_try_write(&lock));
    CHECK(!weft_rwlock_try_write(&lock));
    CHECK(!weft_rwlock_try_read(&lock));
    weft_rwlock_downgrade(&lock);
    CHECK(weft_rwlock_try_read(&lock));
    CHECK(!weft_rwlock_try_write(&lock));
    weft_rwlock_end_read(&lock);
    weft_rwlock_end_read(&lock);
    CHECK_EQ(lock.opaque[0], 0);
}

static bool had_it_at_once;

static void try_read(void)
{
    had_it_at_once = weft_rwlock_try_read(&lock);
}

static void try_write(void)
{
    had_it_at_once = weft_rwlock_try_write(&lock);
}

static void try_calls_wait_for_latch(void)
{
    reset();
    test_call_latched(&lock, try_read);
    CHECK(had_it_at_once);
    test_call_latched(&lock, try_write);
    CHECK(!had_it_at_once);
    weft_rwlock_end_read(&lock);
    test_call_latched(&lock, try_write);
    CHECK(had_it_at_once);
    test_call_latched(&lock, try_read);
    CHECK(!had_it_at_once);
    weft_rwlock_end_write(&lock);
    CHECK_EQ(lock.opaque[0], 0);
}

/* --- Order ---------------------------------------------------------------------------------- */

struct want {
    bool writes;
    weft_time deadline;
    _Atomic(bool) has_it;
    weft_event let_go;
};

static int hold_until_released(void *arg)
{
    struct want *want = arg;
    int err = want->writes ? weft_rwlock_write(&lock, want->deadline)
                           : weft_rwlock_read(&lock, want->deadline);
    if (err != 0) {
        return err;
    }
    atomic_store(&want->has_it, true);
    CHECK_EQ(weft_event_wait(&want->let_go, WEFT_NEVER), 0);
    if (want->writes) {
        weft_rwlock_end_write(&lock);
    } else {
        weft_rwlock_end_read(&lock);
    }
    return 0;
}

static weft_task *start_waiter(weft_runtime *rt, struct want *want)
{
    return test_go_first(rt, hold_until_released, want);
}

static void release_and_join(weft_task *task, struct want *want)
{
    CHECK(atomic_load(&want->has_it));
    weft_event_set(&want->let_go);
    CHECK_EQ(test_join_soon(task), 0);
}

/* Readers, a writer, readers, a writer: each group is served in its turn. */
static void readers_and_writers_are_served_in_order(void)
{
    reset();
    weft_runtime *rt = test_start(1);
    struct want wants[6] = { { .writes = false }, { .writes = true }, { .writes = false },
                             { .writes = false }, { .writes = true }, { .writes = false } };
    weft_task *tasks[6];
    for (unsigned i = 0; i < 6; i++) {
        wants[i].deadline = WEFT_NEVER;
        tasks[i] = start_waiter(rt, &wants[i]);
    }
    CHECK(!weft_rwlock_try_read(&lock));
    for (unsigned i = 1; i < 6; i++) {
        CHECK(!atomic_load(&wants[i].has_it));
    }
    release_and_join(tasks[0], &wants[0]);
    test_settle(rt);
    CHECK(!atomic_load(&wants[2].has_it));
    release_and_join(tasks[1], &wants[1]);
    test_settle(rt);
    CHECK(atomic_load(&wants[2].has_it));
    CHECK(atomic_load(&wants[3].has_it));
    CHECK(!atomic_load(&wants[4].has_it));
    release_and_join(tasks[3], &wants[3]);
    CHECK(!atomic_load(&wants[4].has_it));
    release_and_join(tasks[2], &wants[2]);
    test_settle(rt);
    CHECK(!atomic_load(&wants[5].has_it));
    release_and_join(tasks[4], &wants[4]);
    test_settle(rt);
    release_and_join(tasks[5], &wants[5]);
    CHECK_EQ(lock.opaque[0], 0);
    weft_runtime_destroy(rt);
}

static void writer_that_gives_up_admits_readers(void)
{
    for (int way = 0; way < 2; way++) {
        reset();
        weft_runtime *rt = test_start(1);
        struct want wants[3] = { { .writes = false }, { .writes = true }, { .writes = false } };
        weft_task *tasks[3];
        for (unsigned i = 0; i < 3; i++) {
            wants[i].deadline = WEFT_NEVER;
        }
        wants[1].deadline = way == 0 ? weft_after(20 * WEFT_MS) : WEFT_NEVER;
        for (unsigned i = 0; i < 3; i++) {
            tasks[i] = start_waiter(rt, &wants[i]);
        }
        if (way == 1) {
            weft_cancel(tasks[1]);
        }
        CHECK_EQ(test_join_soon(tasks[1]), way == 0 ? WEFT_ETIMEDOUT : WEFT_ECANCELED);
        test_settle(rt);
        release_and_join(tasks[2], &wants[2]);
        release_and_join(tasks[0], &wants[0]);
        CHECK_EQ(lock.opaque[0], 0);
        weft_runtime_destroy(rt);
    }
}

static void writer_that_gives_up_leaves_no_trace(void)
{
    reset();
    CHECK(weft_rwlock_try_read(&lock));
    CHECK_EQ(weft_rwlock_write(&lock, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK(weft_rwlock_try_read(&lock));
    weft_rwlock_end_read(&lock);
    weft_rwlock_end_read(&lock);
    CHECK_EQ(lock.opaque[0], 0);
}

static void downgrade_admits_waiting_readers(void)
{
    reset();
    weft_runtime *rt = test_start(1);
    struct want reads = { .deadline = WEFT_NEVER };
    struct want writes = { .writes = true, .deadline = WEFT_NEVER };
    CHECK(weft_rwlock_try_write(&lock));
    weft_task *reader = start_waiter(rt, &reads);
    weft_task *writer = start_waiter(rt, &writes);
    CHECK(!atomic_load(&reads.has_it));
    weft_rwlock_downgrade(&lock);
    test_settle(rt);
    CHECK(atomic_load(&reads.has_it));
    weft_rwlock_end_read(&lock);
    test_settle(rt);
    CHECK(!atomic_load(&writes.has_it));
    release_and_join(reader, &reads);
    test_settle(rt);
    release_and_join(writer, &writes);
    weft_runtime_destroy(rt);
}

/* --- Misuse --------------------------------------------------------------------------------- */

static void end_read_of_free_lock(void)
{
    reset();
    weft_rwlock_end_read(&lock);
}

static void end_write_of_read_lock(void)
{
    reset();
    CHECK(weft_rwlock_try_read(&lock));
    weft_rwlock_end_write(&lock);
}

static void downgrade_read_lock(void)
{
    reset();
    CHECK(weft_rwlock_try_read(&lock));
    weft_rwlock_downgrade(&lock);
}

static void read_lock_too_often(void)
{
    lock = (weft_rwlock){ { UINT32_C(0xfffffff0) } };
    CHECK(weft_rwlock_try_read(&lock));
}

static int lock_task(weft_co *co, void *state)
{
    const bool *writes = test_arg(state);
    (void)co;
    return *writes ? weft_rwlock_write(&lock, WEFT_NEVER) : weft_rwlock_read(&lock, WEFT_NEVER);
}

static void wait_in_stackless_task(bool writes)
{
    reset();
    CHECK(weft_rwlock_try_write(&lock));
    (void)test_join(test_spawn(test_start(1), lock_task, &writes));
}

static void read_in_stackless_task(void)
{
    wait_in_stackless_task(false);
}

static void write_in_stackless_task(void)
{
    wait_in_stackless_task(true);
}

static void misuse_aborts_with_message(void)
{
    CHECK_ABORTS(read_lock_too_often, "weft_rwlock_read: too many readers");
    CHECK_ABORTS(read_in_stackless_task, "weft_rwlock_read: called on a worker");
    CHECK_ABORTS(write_in_stackless_task, "weft_rwlock_write: called on a worker");
    CHECK_ABORTS(end_read_of_free_lock, "weft_rwlock_end_read: it is not locked so");
    CHECK_ABORTS(end_write_of_read_lock, "weft_rwlock_end_write: it is not locked so");
    CHECK_ABORTS(downgrade_read_lock, "weft_rwlock_downgrade: it is not locked for writing");
}

TEST_MAIN({
    TEST(many_readers_or_one_writer_hold_lock),
    TEST(try_calls_succeed_only_if_available),
    TEST(try_calls_wait_for_latch),
    TEST(readers_and_writers_are_served_in_order),
    TEST(writer_that_gives_up_admits_readers),
    TEST(writer_that_gives_up_leaves_no_trace),
    TEST(downgrade_admits_waiting_readers),
    TEST(misuse_aborts_with_message),
})
