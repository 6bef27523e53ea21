/* SPDX-License-Identifier: MIT */
/*
 * blitz_io.c - the benchmark rows that blitz-io publishes, with the same operation counts.
 *
 * Rows that create an object per step have a _reuse variant if the object is reusable. The
 * variant creates it once.
 */
#include <stdatomic.h>
#include <string.h>

#include "crew.h"
#include "harness.h"

enum {
    LOCKS = 1000000,
    BARRIERS = 100000,
    SENDS = 100000,
    LISTENERS = 4,
    LOCKERS = 4,
    LOCKER_ROUNDS = 2500,
    SPAWNS = 10000,
    BATCH = 100,
};

WEFT_ONESHOT(answer, uint64_t)
WEFT_BROADCAST(news, uint64_t)

/* --- Locks: one fiber, no contention ---------------------------------------------------------- */

static uint64_t try_mutex(void)
{
    weft_mutex lock = { { 0 } };
    uint64_t right = 0;
    for (uint32_t i = 0; i < LOCKS; i++) {
        if (weft_mutex_try_lock(&lock)) {
            right++;
            weft_mutex_unlock(&lock);
        }
    }
    return right;
}

static double mutex(const struct bench_run *run)
{
    return bench_time(run, try_mutex, LOCKS);
}

static uint64_t try_read(void)
{
    weft_rwlock lock = { { 0 } };
    uint64_t right = 0;
    for (uint32_t i = 0; i < LOCKS; i++) {
        if (weft_rwlock_try_read(&lock)) {
            right++;
            weft_rwlock_end_read(&lock);
        }
    }
    return right;
}

static double rwlock_read(const struct bench_run *run)
{
    return bench_time(run, try_read, LOCKS);
}

static uint64_t try_write(void)
{
    weft_rwlock lock = { { 0 } };
    uint64_t right = 0;
    for (uint32_t i = 0; i < LOCKS; i++) {
        if (weft_rwlock_try_write(&lock)) {
            right++;
            weft_rwlock_end_write(&lock);
        }
    }
    return right;
}

static double rwlock_write(const struct bench_run *run)
{
    return bench_time(run, try_write, LOCKS);
}

static uint64_t try_acquire(void)
{
    weft_semaphore permits = WEFT_SEMAPHORE_INIT(10);
    uint64_t right = 0;
    for (uint32_t i = 0; i < LOCKS; i++) {
        if (weft_semaphore_try_acquire(&permits, 1) == 0) {
            right++;
            weft_semaphore_release(&permits, 1);
        }
    }
    return right;
}

static double semaphore(const struct bench_run *run)
{
    return bench_time(run, try_acquire, LOCKS);
}

/* --- Objects that are created per step, or once ----------------------------------------------- */

static uint64_t get_cell(void)
{
    weft_once_cell cell = { { { 0 } }, NULL };
    uint64_t value = 1;
    uint64_t right = 0;
    BENCH_CHECK(weft_once_cell_set(&cell, &value) == 0);
    for (uint32_t i = 0; i < LOCKS; i++) {
        right += weft_once_cell_get(&cell) == &value;
    }
    return right;
}

static double oncecell_get(const struct bench_run *run)
{
    return bench_time(run, get_cell, LOCKS);
}

static uint64_t set_cells(void)
{
    uint64_t right = 0;
    for (uint64_t i = 0; i < LOCKS; i++) {
        weft_once_cell cell = { { { 0 } }, NULL };
        right += weft_once_cell_set(&cell, &i) == 0;
    }
    return right;
}

static double oncecell_set(const struct bench_run *run)
{
    return bench_time(run, set_cells, LOCKS);
}

static bool notify_self(weft_notify *notice)
{
    weft_notify_one(notice);
    return weft_notify_wait(notice, WEFT_NEVER) == 0;
}

static uint64_t make_and_notify(void)
{
    uint64_t right = 0;
    for (uint32_t i = 0; i < LOCKS; i++) {
        weft_notify notice = { { 0 } };
        right += notify_self(&notice);
    }
    return right;
}

static double notify(const struct bench_run *run)
{
    return bench_time(run, make_and_notify, LOCKS);
}

static uint64_t notify_again(void)
{
    weft_notify notice = { { 0 } };
    uint64_t right = 0;
    for (uint32_t i = 0; i < LOCKS; i++) {
        right += notify_self(&notice);
    }
    return right;
}

static double notify_reuse(const struct bench_run *run)
{
    return bench_time(run, notify_again, LOCKS);
}

static uint64_t make_and_meet(void)
{
    uint64_t right = 0;
    for (uint32_t i = 0; i < BARRIERS; i++) {
        weft_barrier meeting = WEFT_BARRIER_INIT(1);
        right += weft_barrier_wait(&meeting, WEFT_NEVER) == 1;
    }
    return right;
}

static double barrier(const struct bench_run *run)
{
    return bench_time(run, make_and_meet, BARRIERS);
}

static uint64_t meet_again(void)
{
    weft_barrier meeting = WEFT_BARRIER_INIT(1);
    uint64_t right = 0;
    for (uint32_t i = 0; i < BARRIERS; i++) {
        right += weft_barrier_wait(&meeting, WEFT_NEVER) == 1;
    }
    return right;
}

static double barrier_reuse(const struct bench_run *run)
{
    return bench_time(run, meet_again, BARRIERS);
}

/* --- Channels: one fiber, never waits --------------------------------------------------------- */

static bench_numbers_sender *to;
static bench_numbers_receiver *from;

static uint64_t try_send_all(void)
{
    uint64_t right = 0;
    for (uint64_t i = 0; i < SENDS; i++) {
        right += bench_numbers_try_send(to, i) == 0;
    }
    return right;
}

static uint64_t try_recv_all(void)
{
    uint64_t right = 0;
    for (uint64_t i = 0; i < SENDS; i++) {
        uint64_t number = 0;
        right += bench_numbers_try_recv(from, &number) == 0 && number == i;
    }
    return right;
}

static uint64_t send_and_receive(void)
{
    uint64_t right = 0;
    for (uint64_t i = 0; i < SENDS; i++) {
        uint64_t number = 0;
        bool is_sent = bench_numbers_try_send(to, i) == 0;
        right += is_sent && bench_numbers_try_recv(from, &number) == 0 && number == i;
    }
    return right;
}

/* Creates a channel for the work, outside of the measured time. */
static double with_channel(const struct bench_run *run, size_t capacity, bool is_full,
                           uint64_t (*work)(void))
{
    BENCH_CHECK(bench_numbers_make(&to, &from, capacity) == 0);
    if (is_full) {
        BENCH_CHECK(try_send_all() == SENDS);
    }
    double ns = bench_time(run, work, SENDS);
    bench_numbers_sender_drop(to);
    bench_numbers_receiver_drop(from);
    return ns;
}

static double channel_send(const struct bench_run *run)
{
    return with_channel(run, SENDS, false, try_send_all);
}

static double channel_recv(const struct bench_run *run)
{
    return with_channel(run, SENDS, true, try_recv_all);
}

static double channel_roundtrip(const struct bench_run *run)
{
    return with_channel(run, 1, false, send_and_receive);
}

static uint64_t send_one_by_one(void)
{
    uint64_t right = 0;
    for (uint64_t i = 0; i < SENDS; i++) {
        answer place = { { { 0 } }, 0 };
        uint64_t value = 0;
        bool is_sent = answer_send(&place, i) == 0;
        right += is_sent && answer_try_recv(&place, &value) == 0 && value == i;
    }
    return right;
}

static double oneshot(const struct bench_run *run)
{
    return bench_time(run, send_one_by_one, SENDS);
}

static news_sender *teller;
static news_receiver *listeners[LISTENERS];

static uint64_t tell_and_hear(void)
{
    uint64_t sent = 0;
    uint64_t heard = 0;
    for (uint64_t i = 0; i < SENDS; i++) {
        sent += news_send(teller, i) == 0;
    }
    for (unsigned k = 0; k < LISTENERS; k++) {
        for (uint64_t i = 0; i < SENDS; i++) {
            uint64_t item = 0;
            uint64_t missed = 0;
            bool is_heard = news_try_recv(listeners[k], &item, &missed) == 0;
            heard += is_heard && item == i && missed == 0;
        }
    }
    return heard == LISTENERS * sent ? sent : 0;
}

static double broadcast(const struct bench_run *run)
{
    BENCH_CHECK(news_make(&teller, &listeners[0], SENDS) == 0);
    for (unsigned i = 1; i < LISTENERS; i++) {
        BENCH_CHECK(news_subscribe(teller, &listeners[i]) == 0);
    }
    double ns = bench_time(run, tell_and_hear, SENDS);
    news_sender_drop(teller);
    for (unsigned i = 0; i < LISTENERS; i++) {
        news_receiver_drop(listeners[i]);
    }
    return ns;
}

/* --- Contention ------------------------------------------------------------------------------- */

static double channel_mpmc(const struct bench_run *run)
{
    return bench_messages(run, (struct bench_flow){ 4, 4, 1000, 10000 });
}

static weft_mutex contended;
static struct bench_counter counted;

static int lock_and_count(void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < LOCKER_ROUNDS; i++) {
        BENCH_CHECK(weft_mutex_lock(&contended, WEFT_NEVER) == 0);
        /* relaxed: only the count matters. */
        atomic_fetch_add_explicit(&counted.value, 1, memory_order_relaxed);
        weft_mutex_unlock(&contended);
    }
    return 0;
}

static uint64_t lock_all(void)
{
    bench_start(0, LOCKERS, lock_and_count);
    bench_join(0, LOCKERS);
    return atomic_load(&counted.value);
}

static double mutex_contended(const struct bench_run *run)
{
    memset(&contended, 0, sizeof contended);
    atomic_store(&counted.value, 0);
    return bench_time(run, lock_all, LOCKERS * LOCKER_ROUNDS);
}

static double rwlock_contended(const struct bench_run *run)
{
    return bench_rwlock(run, 1666);
}

static double semaphore_contended(const struct bench_run *run)
{
    return bench_semaphore(run, 8, 1250);
}

/* --- Spawns ----------------------------------------------------------------------------------- */

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

static bool joins(weft_task *task)
{
    int result = -1;
    return weft_join(task, &result, WEFT_NEVER) == 0 && result == 0;
}

static uint64_t spawn_and_join(void)
{
    uint64_t right = 0;
    for (uint32_t i = 0; i < SPAWNS; i++) {
        weft_task *task;
        BENCH_CHECK(weft_go(&task, nothing, NULL) == 0);
        right += joins(task);
    }
    return right;
}

static double task_spawn(const struct bench_run *run)
{
    return bench_time(run, spawn_and_join, SPAWNS);
}

static uint64_t spawn_batches(void)
{
    weft_task *tasks[BATCH];
    uint64_t right = 0;
    for (uint32_t n = 0; n < SPAWNS / BATCH; n++) {
        for (uint32_t i = 0; i < BATCH; i++) {
            BENCH_CHECK(weft_go(&tasks[i], nothing, NULL) == 0);
        }
        for (uint32_t i = 0; i < BATCH; i++) {
            right += joins(tasks[i]);
        }
    }
    return right;
}

static double task_spawn_batch(const struct bench_run *run)
{
    return bench_time(run, spawn_batches, SPAWNS);
}

static uint64_t spawn_blocking(void)
{
    uint64_t right = 0;
    for (uint32_t i = 0; i < SPAWNS; i++) {
        weft_task *task;
        BENCH_CHECK(weft_spawn_blocking(&task, nothing, NULL) == 0);
        right += joins(task);
    }
    return right;
}

static double blocking_spawn(const struct bench_run *run)
{
    return bench_time(run, spawn_blocking, SPAWNS);
}

const struct bench_row bench_blitz_io_rows[] = {
    { .name = "blitz-io.mutex", .unit = "ns", .run = mutex, .warmups = 2 },
    { .name = "blitz-io.rwlock_read", .unit = "ns", .run = rwlock_read, .warmups = 2 },
    { .name = "blitz-io.rwlock_write", .unit = "ns", .run = rwlock_write, .warmups = 2 },
    { .name = "blitz-io.semaphore", .unit = "ns", .run = semaphore, .warmups = 2 },
    { .name = "blitz-io.oncecell_get", .unit = "ns", .run = oncecell_get, .warmups = 2 },
    { .name = "blitz-io.oncecell_set", .unit = "ns", .run = oncecell_set, .warmups = 2 },
    { .name = "blitz-io.notify", .unit = "ns", .run = notify, .warmups = 2 },
    { .name = "blitz-io.notify_reuse", .unit = "ns", .run = notify_reuse, .warmups = 2 },
    { .name = "blitz-io.barrier", .unit = "ns", .run = barrier, .warmups = 2 },
    { .name = "blitz-io.barrier_reuse", .unit = "ns", .run = barrier_reuse, .warmups = 2 },
    { .name = "blitz-io.channel_send", .unit = "ns", .run = channel_send, .warmups = 2 },
    { .name = "blitz-io.channel_recv", .unit = "ns", .run = channel_recv, .warmups = 2 },
    { .name = "blitz-io.channel_roundtrip", .unit = "ns", .run = channel_roundtrip, .warmups = 2 },
    { .name = "blitz-io.oneshot", .unit = "ns", .run = oneshot, .warmups = 2 },
    { .name = "blitz-io.broadcast", .unit = "ns", .run = broadcast, .warmups = 2 },
    { .name = "blitz-io.watch", .unit = "ns", .run = bench_watch, .warmups = 2 },
    { .name = "blitz-io.channel_mpmc", .unit = "ns", .run = channel_mpmc, .warmups = 2 },
    { .name = "blitz-io.mutex_contended", .unit = "ns", .run = mutex_contended, .warmups = 2 },
    { .name = "blitz-io.rwlock_contended", .unit = "ns", .run = rwlock_contended, .warmups = 2 },
    { .name = "blitz-io.semaphore_contended",
      .unit = "ns",
      .run = semaphore_contended,
      .warmups = 2 },
    { .name = "blitz-io.task_spawn", .unit = "ns", .run = task_spawn, .warmups = 2 },
    { .name = "blitz-io.task_spawn_batch", .unit = "ns", .run = task_spawn_batch, .warmups = 2 },
    { .name = "blitz-io.blocking_spawn", .unit = "ns", .run = blocking_spawn, .warmups = 2 },
    { 0 },
};
