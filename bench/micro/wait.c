/* SPDX-License-Identifier: MIT */
/*
 * wait.c - rows for tasks that wait for each other: locks, channels, select. All tasks are
 * fibers.
 */
#include <stdatomic.h>
#include <string.h>

#include "crew.h"
#include "harness.h"

enum {
    ROUND_TRIPS = 100000,
    MESSAGES = 1000000,
    ONES = 100000,
    CAPACITY = 1024,
    NEWS = 100000,
    NEWS_AT_ONCE = 512,
    LISTENERS = 4,
    PARTIES = 4,
    BARRIER_ROUNDS = 50000,
};

WEFT_ONESHOT(answer, uint64_t)
WEFT_BROADCAST(news, uint64_t)

/* --- Channels --------------------------------------------------------------------------------- */

static bench_numbers_sender *to[2];
static bench_numbers_receiver *from[2];

static void make_channels(unsigned count, size_t capacity)
{
    for (unsigned i = 0; i < count; i++) {
        BENCH_CHECK(bench_numbers_make(&to[i], &from[i], capacity) == 0);
    }
}

static void drop_channels(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        bench_numbers_sender_drop(to[i]);
        bench_numbers_receiver_drop(from[i]);
    }
}

static int ping(void *arg)
{
    struct bench_hand *hand = arg;
    for (uint64_t i = 0; i < ROUND_TRIPS; i++) {
        uint64_t answered = 0;
        BENCH_CHECK(bench_numbers_send(to[0], i, WEFT_NEVER) == 0);
        BENCH_CHECK(bench_numbers_recv(from[1], &answered, WEFT_NEVER) == 0);
        hand->right += answered == i + 1;
    }
    return 0;
}

static int pong(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < ROUND_TRIPS; i++) {
        uint64_t number = 0;
        BENCH_CHECK(bench_numbers_recv(from[0], &number, WEFT_NEVER) == 0);
        BENCH_CHECK(bench_numbers_send(to[1], number + 1, WEFT_NEVER) == 0);
    }
    return 0;
}

static uint64_t play(void)
{
    bench_start(0, 1, ping);
    bench_start(1, 1, pong);
    bench_join(0, 2);
    return bench_right(0, 1);
}

static double pingpong(const struct bench_run *run)
{
    make_channels(2, 1);
    double ns = bench_time(run, play, ROUND_TRIPS);
    drop_channels(2);
    return ns;
}

static double one_to_one(const struct bench_run *run)
{
    return bench_messages(run, (struct bench_flow){ 1, 1, CAPACITY, MESSAGES });
}

static double four_to_one(const struct bench_run *run)
{
    return bench_messages(run, (struct bench_flow){ 4, 1, CAPACITY, MESSAGES });
}

static double four_to_four(const struct bench_run *run)
{
    return bench_messages(run, (struct bench_flow){ 4, 4, CAPACITY, MESSAGES });
}

static uint64_t send_one_by_one(void)
{
    uint64_t right = 0;
    for (uint64_t i = 0; i < ONES; i++) {
        answer place = { { { 0 } }, 0 };
        uint64_t value = 0;
        BENCH_CHECK(answer_send(&place, i) == 0);
        BENCH_CHECK(answer_recv(&place, &value, WEFT_NEVER) == 0);
        right += value == i;
    }
    return right;
}

static double oneshot(const struct bench_run *run)
{
    return bench_time(run, send_one_by_one, ONES);
}

static news_sender *teller;
static news_receiver *listeners[LISTENERS];
static weft_barrier meeting;

/*
 * No receiver misses a message: all fibers meet after every NEWS_AT_ONCE messages, which is
 * less than the channel's capacity.
 */
static void meet_after(uint64_t count)
{
    if (count % NEWS_AT_ONCE == 0 || count == NEWS) {
        BENCH_CHECK(weft_barrier_wait(&meeting, WEFT_NEVER) >= 0);
    }
}

static int tell_news(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < NEWS; i++) {
        BENCH_CHECK(news_send(teller, i) == 0);
        meet_after(i + 1);
    }
    return 0;
}

static int hear_news(void *arg)
{
    struct bench_hand *hand = arg;
    for (uint64_t i = 0; i < NEWS; i++) {
        uint64_t item = 0;
        uint64_t missed = 0;
        BENCH_CHECK(news_recv(listeners[hand->index], &item, &missed, WEFT_NEVER) == 0);
        hand->right += item == i && missed == 0;
        meet_after(i + 1);
    }
    return 0;
}

static uint64_t spread_news(void)
{
    bench_start(0, LISTENERS, hear_news);
    bench_start(LISTENERS, 1, tell_news);
    bench_join(0, LISTENERS + 1);
    return bench_right(0, LISTENERS);
}

static double broadcast(const struct bench_run *run)
{
    weft_barrier_init(&meeting, LISTENERS + 1);
    BENCH_CHECK(news_make(&teller, &listeners[0], CAPACITY) == 0);
    for (unsigned i = 1; i < LISTENERS; i++) {
        BENCH_CHECK(news_subscribe(teller, &listeners[i]) == 0);
    }
    double ns = bench_time(run, spread_news, (uint64_t)LISTENERS * NEWS);
    news_sender_drop(teller);
    for (unsigned i = 0; i < LISTENERS; i++) {
        news_receiver_drop(listeners[i]);
    }
    return ns * LISTENERS; /* one message is received four times but counts once */
}

/* --- Locks ------------------------------------------------------------------------------------ */

static double mutex_4(const struct bench_run *run)
{
    return bench_mutex(run, 4, 250000);
}

static double mutex_64(const struct bench_run *run)
{
    return bench_mutex(run, 64, 20000);
}

static double rwlock_4r2w(const struct bench_run *run)
{
    return bench_rwlock(run, 50000);
}

static double semaphore_8_2(const struct bench_run *run)
{
    return bench_semaphore(run, 8, 25000);
}

static weft_notify calls[2];

static int call_and_wait(void *arg)
{
    struct bench_hand *hand = arg;
    for (uint64_t i = 0; i < ROUND_TRIPS; i++) {
        if (hand->index == 0) {
            weft_notify_one(&calls[1]);
        }
        BENCH_CHECK(weft_notify_wait(&calls[hand->index], WEFT_NEVER) == 0);
        hand->right++;
        if (hand->index == 1) {
            weft_notify_one(&calls[0]);
        }
    }
    return 0;
}

static uint64_t call_each_other(void)
{
    bench_start(0, 2, call_and_wait);
    bench_join(0, 2);
    return bench_right(0, 1);
}

static double notify(const struct bench_run *run)
{
    memset(calls, 0, sizeof calls);
    return bench_time(run, call_each_other, ROUND_TRIPS);
}

static weft_barrier barrier;

static int meet(void *arg)
{
    struct bench_hand *hand = arg;
    for (uint64_t i = 0; i < BARRIER_ROUNDS; i++) {
        int leads = weft_barrier_wait(&barrier, WEFT_NEVER);
        BENCH_CHECK(leads >= 0);
        hand->right += (uint64_t)leads;
    }
    return 0;
}

static uint64_t meet_all(void)
{
    bench_start(0, PARTIES, meet);
    bench_join(0, PARTIES);
    return bench_right(0, PARTIES);
}

static double barrier_4(const struct bench_run *run)
{
    weft_barrier_init(&barrier, PARTIES);
    return bench_time(run, meet_all, BARRIER_ROUNDS);
}

/* --- Select ----------------------------------------------------------------------------------- */

static int send_to_own(void *arg)
{
    const struct bench_hand *hand = arg;
    return bench_send_share(to[hand->index], hand->index, MESSAGES / 2);
}

static int select_all(void *arg)
{
    struct bench_hand *hand = arg;
    uint64_t got[2];
    weft_op ops[2];
    weft_branch branches[2];
    for (unsigned i = 0; i < 2; i++) {
        bench_numbers_recv_init(&ops[i], from[i], &got[i]);
        branches[i] = (weft_branch){ .future = &ops[i].future };
    }
    for (unsigned open = 2; open > 0;) {
        int winner = weft_select(branches, 2, 0, WEFT_NEVER);
        BENCH_CHECK(winner >= 0);
        if (branches[winner].result == 0) {
            hand->right++;
            hand->sum += got[winner];
        } else {
            BENCH_CHECK(branches[winner].result == WEFT_ECLOSED);
            branches[winner].future = NULL;
            open--;
        }
    }
    return 0;
}

static uint64_t send_to_both(void)
{
    bench_start(0, 1, select_all);
    bench_start(1, 2, send_to_own);
    bench_join(1, 2);
    bench_join(0, 1);
    return bench_right(0, 1);
}

static double select_2(const struct bench_run *run)
{
    make_channels(2, 64);
    double ns = bench_time(run, send_to_both, MESSAGES);
    BENCH_CHECK(bench_sum(0, 1) == (uint64_t)MESSAGES * (MESSAGES - 1) / 2);
    bench_numbers_receiver_drop(from[0]);
    bench_numbers_receiver_drop(from[1]);
    return ns;
}

/* --- Floors: read-modify-writes, and the same calls without contention ------------------------ */

static inline uint64_t exchange_twice(_Atomic(uint32_t) *word)
{
    uint32_t expected = 0;
    BENCH_CHECK(atomic_compare_exchange_strong(word, &expected, 1));
    expected = 1;
    return atomic_compare_exchange_strong(word, &expected, 0);
}

static uint64_t exchange_2(void)
{
    static _Atomic(uint32_t) word;
    uint64_t right = 0;
    for (uint32_t i = 0; i < MESSAGES; i++) {
        right += exchange_twice(&word);
    }
    return right;
}

static double floor_rmw_2(const struct bench_run *run)
{
    return bench_time(run, exchange_2, MESSAGES);
}

static uint64_t exchange_4(void)
{
    static _Atomic(uint32_t) word;
    uint64_t right = 0;
    for (uint32_t i = 0; i < MESSAGES; i++) {
        right += exchange_twice(&word) & exchange_twice(&word);
    }
    return right;
}

static double floor_rmw_4(const struct bench_run *run)
{
    return bench_time(run, exchange_4, MESSAGES);
}

static double mutex_alone(const struct bench_run *run)
{
    return bench_mutex(run, 1, MESSAGES);
}

static uint64_t send_and_receive(void)
{
    uint64_t right = 0;
    for (uint64_t i = 0; i < MESSAGES; i++) {
        uint64_t number = 0;
        BENCH_CHECK(bench_numbers_send(to[0], i, WEFT_NEVER) == 0);
        BENCH_CHECK(bench_numbers_recv(from[0], &number, WEFT_NEVER) == 0);
        right += number == i;
    }
    return right;
}

static double channel_alone(const struct bench_run *run)
{
    make_channels(1, CAPACITY);
    double ns = bench_time(run, send_and_receive, MESSAGES);
    drop_channels(1);
    return ns;
}

const struct bench_row bench_wait_rows[] = {
    { .name = "chan.pingpong", .unit = "ns", .run = pingpong, .warmups = 2 },
    { .name = "chan.1_1", .unit = "ns", .run = one_to_one, .warmups = 2 },
    { .name = "chan.4_1", .unit = "ns", .run = four_to_one, .warmups = 2 },
    { .name = "chan.4_4", .unit = "ns", .run = four_to_four, .warmups = 2 },
    { .name = "chan.oneshot", .unit = "ns", .run = oneshot, .warmups = 2 },
    { .name = "chan.watch", .unit = "ns", .run = bench_watch, .warmups = 2 },
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
    { .name = "floor.rmw_4", .unit = "ns", .run = floor_rmw_4, .warmups = 2 },
    { 0 },
};
