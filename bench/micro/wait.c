/* SPDX-License-Identifier: MIT */
/*
 * wait.c - rows about tasks that wait for each other: locks, channels, select. The work is
 * done by fibers, which a first one starts and joins.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

enum {
    CREW_MAX = 64,
    ROUND_TRIPS = 100000,
    MESSAGES = 1000000,
    ONES = 100000,
    CAPACITY = 1024,
    NEWS = 100000,
    NEWS_AT_ONCE = 512,
    LISTENERS = 4,
    BARRIER_ROUNDS = 50000,
};

WEFT_CHANNEL(numbers, uint64_t)
WEFT_ONESHOT(answer, uint64_t)
WEFT_WATCH(level, uint64_t)
WEFT_BROADCAST(news, uint64_t)

/* --- A crew ----------------------------------------------------------------------------------- */

/* One who works, with its index. */
struct hand {
    int (*function)(void *arg);
    uint64_t index;
    uint64_t result;
};

static struct hand hands[CREW_MAX];

/* What the first fiber does: so many hands do this or, from a place on, that. */
struct crew {
    unsigned count;
    unsigned others_from;
    int (*function)(void *arg);
    int (*other)(void *arg);
    double ns;
};

static int run_crew(void *arg)
{
    struct crew *crew = arg;
    weft_task *tasks[CREW_MAX];
    weft_time start = weft_now();
    for (unsigned i = 0; i < crew->count; i++) {
        hands[i] = (struct hand){ .index = i };
        bool is_other = crew->other != NULL && i >= crew->others_from;
        BENCH_CHECK(weft_go(&tasks[i], is_other ? crew->other : crew->function, &hands[i]) == 0);
    }
    for (unsigned i = 0; i < crew->count; i++) {
        int result = -1;
        BENCH_CHECK(weft_join(tasks[i], &result, WEFT_NEVER) == 0 && result == 0);
    }
    crew->ns = (double)(weft_now() - start);
    return 0;
}

static double crew_ns(const struct bench_run *run, struct crew crew)
{
    bench_run_fiber(run, run_crew, &crew);
    return crew.ns;
}

static uint64_t sum_of_results(unsigned count)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < count; i++) {
        sum += hands[i].result;
    }
    return sum;
}

/* --- Channels --------------------------------------------------------------------------------- */

static numbers_sender *to[2];
static numbers_receiver *from[2];
static uint64_t each; /* messages of one who sends */

static void make_channels(unsigned count, size_t capacity)
{
    for (unsigned i = 0; i < count; i++) {
        BENCH_CHECK(numbers_make(&to[i], &from[i], capacity) == 0);
    }
}

static void drop_channels(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        numbers_sender_drop(to[i]);
        numbers_receiver_drop(from[i]);
    }
}

static int ping(void *arg)
{
    struct hand *hand = arg;
    for (uint64_t i = 0; i < ROUND_TRIPS; i++) {
        uint64_t answered = 0;
        BENCH_CHECK(numbers_send(to[0], i, WEFT_NEVER) == 0);
        BENCH_CHECK(numbers_recv(from[1], &answered, WEFT_NEVER) == 0);
        hand->result += answered == i + 1;
    }
    return 0;
}

static int pong(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < ROUND_TRIPS; i++) {
        uint64_t number = 0;
        BENCH_CHECK(numbers_recv(from[0], &number, WEFT_NEVER) == 0);
        BENCH_CHECK(numbers_send(to[1], number + 1, WEFT_NEVER) == 0);
    }
    return 0;
}

static double pingpong(const struct bench_run *run)
{
    make_channels(2, 1);
    double ns = crew_ns(run, (struct crew){ 2, 1, ping, pong, 0 });
    BENCH_CHECK(hands[0].result == ROUND_TRIPS);
    drop_channels(2);
    return ns / ROUND_TRIPS;
}

/* The first ones send the numbers from 1, and the others receive until it is closed. */
static int send_each(void *arg)
{
    (void)arg;
    numbers_sender *sender = to[0];
    for (uint64_t i = 1; i <= each; i++) {
        BENCH_CHECK(numbers_send(sender, i, WEFT_NEVER) == 0);
    }
    numbers_sender_drop(sender);
    return 0;
}

static int receive_all(void *arg)
{
    struct hand *hand = arg;
    uint64_t number = 0;
    int err;
    while ((err = numbers_recv(from[0], &number, WEFT_NEVER)) == 0) {
        hand->result += number;
    }
    return err == WEFT_ECLOSED ? 0 : err;
}

static double many_to_many(const struct bench_run *run, unsigned senders, unsigned receivers,
                           size_t capacity, uint64_t messages)
{
    make_channels(1, capacity);
    for (unsigned i = 1; i < senders; i++) {
        BENCH_CHECK(numbers_sender_clone(to[0]) == to[0]);
    }
    each = messages / senders;
    double ns =
        crew_ns(run, (struct crew){ senders + receivers, senders, send_each, receive_all, 0 });
    BENCH_CHECK(sum_of_results(senders + receivers) == senders * (each * (each + 1) / 2));
    numbers_receiver_drop(from[0]);
    return ns / (double)messages;
}

static double one_to_one(const struct bench_run *run)
{
    return many_to_many(run, 1, 1, CAPACITY, MESSAGES);
}

static double four_to_one(const struct bench_run *run)
{
    return many_to_many(run, 4, 1, CAPACITY, MESSAGES);
}

static double four_to_four(const struct bench_run *run)
{
    return many_to_many(run, 4, 4, CAPACITY, MESSAGES);
}

static int send_one_by_one(void *arg)
{
    struct hand *hand = arg;
    for (uint64_t i = 0; i < ONES; i++) {
        answer place = { { { 0 } }, 0 };
        uint64_t value = 0;
        BENCH_CHECK(answer_send(&place, i) == 0);
        BENCH_CHECK(answer_recv(&place, &value, WEFT_NEVER) == 0);
        hand->result += value;
    }
    return 0;
}

static double oneshot(const struct bench_run *run)
{
    double ns = crew_ns(run, (struct crew){ 1, 1, send_one_by_one, NULL, 0 });
    BENCH_CHECK(hands[0].result == (uint64_t)ONES * (ONES - 1) / 2);
    return ns / ONES;
}

static int set_and_get(void *arg)
{
    struct hand *hand = arg;
    level_sender *sender;
    level_receiver *receiver;
    BENCH_CHECK(level_make(&sender, &receiver, 0) == 0);
    for (uint64_t i = 0; i < ONES; i++) {
        BENCH_CHECK(level_send(sender, i) == 0);
        hand->result += level_get(receiver);
    }
    level_sender_drop(sender);
    level_receiver_drop(receiver);
    return 0;
}

static double watch(const struct bench_run *run)
{
    double ns = crew_ns(run, (struct crew){ 1, 1, set_and_get, NULL, 0 });
    BENCH_CHECK(hands[0].result == (uint64_t)ONES * (ONES - 1) / 2);
    return ns / ONES;
}

static news_sender *teller;
static news_receiver *listeners[LISTENERS];
static weft_barrier meeting;

static int tell_news(void *arg)
{
    (void)arg;
    for (uint64_t i = 1; i <= NEWS; i++) {
        BENCH_CHECK(news_send(teller, i) == 0);
        if (i % NEWS_AT_ONCE == 0) {
            BENCH_CHECK(weft_barrier_wait(&meeting, WEFT_NEVER) >= 0);
        }
    }
    return 0;
}

static int hear_news(void *arg)
{
    struct hand *hand = arg;
    for (uint64_t i = 1; i <= NEWS; i++) {
        uint64_t item = 0;
        uint64_t missed = 0;
        BENCH_CHECK(news_recv(listeners[hand->index - 1], &item, &missed, WEFT_NEVER) == 0);
        hand->result += missed == 0 ? item : 0;
        if (i % NEWS_AT_ONCE == 0) {
            BENCH_CHECK(weft_barrier_wait(&meeting, WEFT_NEVER) >= 0);
        }
    }
    return 0;
}

static double broadcast(const struct bench_run *run)
{
    weft_barrier_init(&meeting, LISTENERS + 1);
    BENCH_CHECK(news_make(&teller, &listeners[0], CAPACITY) == 0);
    for (unsigned i = 1; i < LISTENERS; i++) {
        BENCH_CHECK(news_subscribe(teller, &listeners[i]) == 0);
    }
    double ns = crew_ns(run, (struct crew){ LISTENERS + 1, 1, tell_news, hear_news, 0 });
    BENCH_CHECK(sum_of_results(LISTENERS + 1) == LISTENERS * ((uint64_t)NEWS * (NEWS + 1) / 2));
    news_sender_drop(teller);
    for (unsigned i = 0; i < LISTENERS; i++) {
        news_receiver_drop(listeners[i]);
    }
    return ns / NEWS;
}

/* --- Locks ------------------------------------------------------------------------------------ */

static weft_mutex mutex;
static weft_rwlock rwlock;
static weft_semaphore permits;
static weft_notify calls[2];
static weft_barrier barrier;
static uint64_t counter; /* under a lock */
static uint64_t rounds;
static atomic_uint_fast64_t counted;

static int lock_and_add(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < rounds; i++) {
        BENCH_CHECK(weft_mutex_lock(&mutex, WEFT_NEVER) == 0);
        counter++;
        weft_mutex_unlock(&mutex);
    }
    return 0;
}

static double contend(const struct bench_run *run, unsigned count, uint64_t times)
{
    memset(&mutex, 0, sizeof mutex);
    counter = 0;
    rounds = times;
    double ns = crew_ns(run, (struct crew){ count, count, lock_and_add, NULL, 0 });
    BENCH_CHECK(counter == count * times);
    return ns / (double)(count * times);
}

static double mutex_4(const struct bench_run *run)
{
    return contend(run, 4, 250000);
}

static double mutex_64(const struct bench_run *run)
{
    return contend(run, 64, 20000);
}

static int read_it(void *arg)
{
    struct hand *hand = arg;
    for (uint64_t i = 0; i < rounds; i++) {
        BENCH_CHECK(weft_rwlock_read(&rwlock, WEFT_NEVER) == 0);
        hand->result += counter > 0;
        weft_rwlock_end_read(&rwlock);
    }
    return 0;
}

static int write_it(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < rounds; i++) {
        BENCH_CHECK(weft_rwlock_write(&rwlock, WEFT_NEVER) == 0);
        counter++;
        weft_rwlock_end_write(&rwlock);
    }
    return 0;
}

static double rwlock_4r2w(const struct bench_run *run)
{
    memset(&rwlock, 0, sizeof rwlock);
    counter = 0;
    rounds = 50000;
    double ns = crew_ns(run, (struct crew){ 6, 4, read_it, write_it, 0 });
    BENCH_CHECK(counter == 2 * rounds);
    return ns / (double)(6 * rounds);
}

static int acquire_and_add(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < rounds; i++) {
        BENCH_CHECK(weft_semaphore_acquire(&permits, 1, WEFT_NEVER) == 0);
        /* relaxed: only the count matters. */
        atomic_fetch_add_explicit(&counted, 1, memory_order_relaxed);
        weft_semaphore_release(&permits, 1);
    }
    return 0;
}

static double semaphore_8_2(const struct bench_run *run)
{
    weft_semaphore_init(&permits, 2);
    atomic_store(&counted, 0);
    rounds = 25000;
    double ns = crew_ns(run, (struct crew){ 8, 8, acquire_and_add, NULL, 0 });
    BENCH_CHECK(atomic_load(&counted) == 8 * rounds);
    return ns / (double)(8 * rounds);
}

static int call_and_wait(void *arg)
{
    const struct hand *hand = arg;
    for (uint64_t i = 0; i < ROUND_TRIPS; i++) {
        if (hand->index == 0) {
            weft_notify_one(&calls[1]);
        }
        BENCH_CHECK(weft_notify_wait(&calls[hand->index], WEFT_NEVER) == 0);
        if (hand->index == 1) {
            weft_notify_one(&calls[0]);
        }
    }
    return 0;
}

static double notify(const struct bench_run *run)
{
    memset(calls, 0, sizeof calls);
    return crew_ns(run, (struct crew){ 2, 2, call_and_wait, NULL, 0 }) / ROUND_TRIPS;
}

static int meet(void *arg)
{
    struct hand *hand = arg;
    for (uint64_t i = 0; i < BARRIER_ROUNDS; i++) {
        int leads = weft_barrier_wait(&barrier, WEFT_NEVER);
        BENCH_CHECK(leads >= 0);
        hand->result += (uint64_t)leads;
    }
    return 0;
}

static double barrier_4(const struct bench_run *run)
{
    weft_barrier_init(&barrier, 4);
    double ns = crew_ns(run, (struct crew){ 4, 4, meet, NULL, 0 });
    BENCH_CHECK(sum_of_results(4) == BARRIER_ROUNDS);
    return ns / BARRIER_ROUNDS;
}

/* --- Select ----------------------------------------------------------------------------------- */

static int send_to_own(void *arg)
{
    const struct hand *hand = arg;
    numbers_sender *sender = to[hand->index - 1];
    for (uint64_t i = 1; i <= each; i++) {
        BENCH_CHECK(numbers_send(sender, i, WEFT_NEVER) == 0);
    }
    numbers_sender_drop(sender);
    return 0;
}

static int select_all(void *arg)
{
    struct hand *hand = arg;
    uint64_t got[2];
    weft_op ops[2];
    weft_branch branches[2];
    for (unsigned i = 0; i < 2; i++) {
        numbers_recv_init(&ops[i], from[i], &got[i]);
        branches[i] = (weft_branch){ .future = &ops[i].future };
    }
    for (unsigned open = 2; open > 0;) {
        int winner = weft_select(branches, 2, 0, WEFT_NEVER);
        BENCH_CHECK(winner >= 0);
        if (branches[winner].result == 0) {
            hand->result += got[winner];
        } else {
            branches[winner].future = NULL;
            open--;
        }
    }
    return 0;
}

static double select_2(const struct bench_run *run)
{
    make_channels(2, 64);
    each = MESSAGES / 2;
    double ns = crew_ns(run, (struct crew){ 3, 1, select_all, send_to_own, 0 });
    BENCH_CHECK(hands[0].result == 2 * (each * (each + 1) / 2));
    numbers_receiver_drop(from[0]);
    numbers_receiver_drop(from[1]);
    return ns / MESSAGES;
}

/* --- Floors: read-modify-writes, and the same calls without anybody else ---------------------- */

static int exchange_twice(void *arg)
{
    static _Atomic(uint32_t) word;
    (void)arg;
    for (uint32_t i = 0; i < MESSAGES; i++) {
        uint32_t expected = 0;
        BENCH_CHECK(atomic_compare_exchange_strong(&word, &expected, 1));
        expected = 1;
        BENCH_CHECK(atomic_compare_exchange_strong(&word, &expected, 0));
    }
    return 0;
}

static double floor_rmw_2(const struct bench_run *run)
{
    return crew_ns(run, (struct crew){ 1, 1, exchange_twice, NULL, 0 }) / MESSAGES;
}

static double mutex_alone(const struct bench_run *run)
{
    return contend(run, 1, MESSAGES);
}

static int send_and_receive(void *arg)
{
    struct hand *hand = arg;
    for (uint64_t i = 0; i < MESSAGES; i++) {
        uint64_t number = 0;
        BENCH_CHECK(numbers_try_send(to[0], i) == 0);
        BENCH_CHECK(numbers_try_recv(from[0], &number) == 0);
        hand->result += number;
    }
    return 0;
}

static double channel_alone(const struct bench_run *run)
{
    make_channels(1, CAPACITY);
    double ns = crew_ns(run, (struct crew){ 1, 1, send_and_receive, NULL, 0 });
    BENCH_CHECK(hands[0].result == (uint64_t)MESSAGES * (MESSAGES - 1) / 2);
    drop_channels(1);
    return ns / MESSAGES;
}

const struct bench_row bench_wait_rows[] = {
    { .name = "chan.pingpong", .unit = "ns", .run = pingpong, .warmups = 2 },
    { .name = "chan.1_1", .unit = "ns", .run = one_to_one, .warmups = 2 },
    { .name = "chan.4_1", .unit = "ns", .run = four_to_one, .warmups = 2 },
    { .name = "chan.4_4", .unit = "ns", .run = four_to_four, .warmups = 2 },
    { .name = "chan.oneshot", .unit = "ns", .run = oneshot, .warmups = 2 },
    { .name = "chan.watch", .unit = "ns", .run = watch, .warmups = 2 },
    { .name = "chan.broadcast", .unit = "ns", .run = broadcast, .warmups = 2 },
    { .name = "chan.alone", .unit = "ns", .run = channel_alone, .warmups = 2 },
    { .name = "sync.mutex", .unit = "ns", .run = mutex_4, .warmups = 2 },
    { .name = "sync.mutex_64", .unit = "ns", .run = mutex_64, .warmups = 2 },
    { .name = "sync.mutex_alone", .unit = "ns", .run = mutex_alone, .warmups = 2 },
    { .name = "sync.rwlock_4r2w", .unit = "ns", .run = rwlock_4r2w, .warmups = 2 },
    { .name = "sync.semaphore_8_2", .unit = "ns", .run = semaphore_8_2, .warmups = 2 },
    { .name = "sync.notify", .unit = "ns", .run = notify, .warmups = 2 },
    { .name = "sync.barrier", .unit = "ns", .run = barrier_4, .warmups = 2 },
    { .name = "select.2", .unit = "ns", .run = select_2, .warmups = 2 },
    { .name = "floor.rmw_2", .unit = "ns", .run = floor_rmw_2, .warmups = 2 },
    { 0 },
};
