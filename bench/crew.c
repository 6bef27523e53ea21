/* SPDX-License-Identifier: MIT */
/*
 * crew.c - groups of fibers that run a benchmark, and the work that several row files share.
 *
 * Parameters are stored in the variables beside each function before the first fiber starts.
 */
#include "crew.h"

#include <string.h>

/* --- Hands ------------------------------------------------------------------------------------ */

struct bench_hand bench_hands[BENCH_HANDS_MAX];

void bench_start(unsigned first, unsigned count, int (*function)(void *hand))
{
    BENCH_CHECK(first + count <= BENCH_HANDS_MAX);
    for (unsigned i = 0; i < count; i++) {
        struct bench_hand *hand = &bench_hands[first + i];
        *hand = (struct bench_hand){ .index = i };
        BENCH_CHECK(weft_go(&hand->task, function, hand) == 0);
    }
}

void bench_join(unsigned first, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        int result = -1;
        BENCH_CHECK(weft_join(bench_hands[first + i].task, &result, WEFT_NEVER) == 0);
        BENCH_CHECK(result == 0);
    }
}

uint64_t bench_right(unsigned first, unsigned count)
{
    uint64_t right = 0;
    for (unsigned i = 0; i < count; i++) {
        right += bench_hands[first + i].right;
    }
    return right;
}

uint64_t bench_sum(unsigned first, unsigned count)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < count; i++) {
        sum += bench_hands[first + i].sum;
    }
    return sum;
}

struct timing {
    uint64_t (*work)(void);
    uint64_t right;
    double ns;
};

static int take_time(void *arg)
{
    struct timing *timing = arg;
    weft_time start = weft_now();
    timing->right = timing->work();
    timing->ns = (double)(weft_now() - start);
    return 0;
}

double bench_time(const struct bench_run *run, uint64_t (*work)(void), uint64_t steps)
{
    struct timing timing = { .work = work };
    bench_run_fiber(run, take_time, &timing);
    BENCH_CHECK(timing.right == steps);
    return timing.ns / (double)steps;
}

/* --- Messages --------------------------------------------------------------------------------- */

static struct bench_flow flow;
static bench_numbers_sender *flow_to[BENCH_HANDS_MAX];
static bench_numbers_receiver *flow_from[BENCH_HANDS_MAX];

int bench_send_share(bench_numbers_sender *sender, uint64_t index, uint64_t share)
{
    for (uint64_t i = index * share; i < (index + 1) * share; i++) {
        BENCH_CHECK(bench_numbers_send(sender, i, WEFT_NEVER) == 0);
    }
    bench_numbers_sender_drop(sender);
    return 0;
}

int bench_receive_all(bench_numbers_receiver *receiver, struct bench_hand *hand)
{
    uint64_t number = 0;
    int err;
    while ((err = bench_numbers_recv(receiver, &number, WEFT_NEVER)) == 0) {
        hand->right++;
        hand->sum += number;
    }
    bench_numbers_receiver_drop(receiver);
    return err == WEFT_ECLOSED ? 0 : err;
}

static int send_share(void *arg)
{
    const struct bench_hand *hand = arg;
    return bench_send_share(flow_to[hand->index], hand->index, flow.messages / flow.senders);
}

static int receive_all(void *arg)
{
    struct bench_hand *hand = arg;
    return bench_receive_all(flow_from[hand->index], hand);
}

/* Each sender and receiver has its own handle and drops it when it finishes. */
static uint64_t send_all(void)
{
    BENCH_CHECK(bench_numbers_make(&flow_to[0], &flow_from[0], flow.capacity) == 0);
    for (unsigned i = 1; i < flow.receivers; i++) {
        flow_from[i] = bench_numbers_receiver_clone(flow_from[0]);
        BENCH_CHECK(flow_from[i] != NULL);
    }
    for (unsigned i = 1; i < flow.senders; i++) {
        flow_to[i] = bench_numbers_sender_clone(flow_to[0]);
        BENCH_CHECK(flow_to[i] != NULL);
    }
    bench_start(0, flow.receivers, receive_all);
    bench_start(flow.receivers, flow.senders, send_share);
    bench_join(flow.receivers, flow.senders);
    bench_join(0, flow.receivers);
    return bench_right(0, flow.receivers);
}

double bench_messages(const struct bench_run *run, struct bench_flow wanted)
{
    flow = wanted;
    double ns = bench_time(run, send_all, flow.messages);
    BENCH_CHECK(bench_sum(0, flow.receivers) == flow.messages * (flow.messages - 1) / 2);
    return ns;
}

/* --- Yields ----------------------------------------------------------------------------------- */

static unsigned fiber_count;
static uint64_t round_count; /* per fiber */

static void set_rounds(unsigned fibers, uint64_t rounds)
{
    fiber_count = fibers;
    round_count = rounds;
}

static int yield_often(void *arg)
{
    struct bench_hand *hand = arg;
    for (uint64_t i = 0; i < round_count; i++) {
        BENCH_CHECK(weft_yield() == 0);
        hand->right++;
    }
    return 0;
}

static uint64_t yield_all(void)
{
    bench_start(0, fiber_count, yield_often);
    bench_join(0, fiber_count);
    return bench_right(0, fiber_count);
}

double bench_yields(const struct bench_run *run, unsigned fibers, uint64_t yields)
{
    set_rounds(fibers, yields);
    return bench_time(run, yield_all, fibers * yields);
}

/* --- Locks ------------------------------------------------------------------------------------ */

static struct {
    _Alignas(BENCH_LINES) weft_mutex mutex;
    weft_rwlock rwlock;
    uint64_t count; /* guarded by one of the two locks */
} guarded;

static struct {
    _Alignas(BENCH_LINES) weft_semaphore semaphore;
} permits;

static struct bench_counter counted;

static int lock_and_add(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < round_count; i++) {
        BENCH_CHECK(weft_mutex_lock(&guarded.mutex, WEFT_NEVER) == 0);
        guarded.count++;
        weft_mutex_unlock(&guarded.mutex);
    }
    return 0;
}

static uint64_t lock_all(void)
{
    bench_start(0, fiber_count, lock_and_add);
    bench_join(0, fiber_count);
    return guarded.count;
}

double bench_mutex(const struct bench_run *run, unsigned fibers, uint64_t rounds)
{
    memset(&guarded, 0, sizeof guarded);
    set_rounds(fibers, rounds);
    return bench_time(run, lock_all, fibers * rounds);
}

enum {
    READERS = 4,
    WRITERS = 2,
};

static int read_it(void *arg)
{
    struct bench_hand *hand = arg;
    uint64_t latest = 0;
    for (uint64_t i = 0; i < round_count; i++) {
        BENCH_CHECK(weft_rwlock_read(&guarded.rwlock, WEFT_NEVER) == 0);
        uint64_t count = guarded.count;
        weft_rwlock_end_read(&guarded.rwlock);
        hand->right += count >= latest;
        latest = count;
    }
    return 0;
}

static int write_it(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < round_count; i++) {
        BENCH_CHECK(weft_rwlock_write(&guarded.rwlock, WEFT_NEVER) == 0);
        guarded.count++;
        weft_rwlock_end_write(&guarded.rwlock);
    }
    return 0;
}

static uint64_t read_and_write(void)
{
    bench_start(0, READERS, read_it);
    bench_start(READERS, WRITERS, write_it);
    bench_join(0, READERS + WRITERS);
    return bench_right(0, READERS) + guarded.count;
}

double bench_rwlock(const struct bench_run *run, uint64_t rounds)
{
    memset(&guarded, 0, sizeof guarded);
    set_rounds(READERS + WRITERS, rounds);
    return bench_time(run, read_and_write, (READERS + WRITERS) * rounds);
}

static int acquire_and_count(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < round_count; i++) {
        BENCH_CHECK(weft_semaphore_acquire(&permits.semaphore, 1, WEFT_NEVER) == 0);
        /* relaxed: only the count matters. */
        atomic_fetch_add_explicit(&counted.value, 1, memory_order_relaxed);
        weft_semaphore_release(&permits.semaphore, 1);
    }
    return 0;
}

static uint64_t acquire_all(void)
{
    bench_start(0, fiber_count, acquire_and_count);
    bench_join(0, fiber_count);
    return atomic_load(&counted.value);
}

double bench_semaphore(const struct bench_run *run, unsigned fibers, uint64_t rounds)
{
    weft_semaphore_init(&permits.semaphore, 2);
    atomic_store(&counted.value, 0);
    set_rounds(fibers, rounds);
    return bench_time(run, acquire_all, fibers * rounds);
}

/* --- Watch channel ---------------------------------------------------------------------------- */

enum {
    LEVELS = 100000,
};

WEFT_WATCH(level, uint64_t)

static level_sender *setter;
static level_receiver *getter;

static uint64_t set_and_get(void)
{
    uint64_t right = 0;
    for (uint64_t i = 0; i < LEVELS; i++) {
        BENCH_CHECK(level_send(setter, i) == 0);
        right += level_get(getter) == i;
    }
    return right;
}

double bench_watch(const struct bench_run *run)
{
    BENCH_CHECK(level_make(&setter, &getter, UINT64_MAX) == 0);
    double ns = bench_time(run, set_and_get, LEVELS);
    level_sender_drop(setter);
    level_receiver_drop(getter);
    return ns;
}
