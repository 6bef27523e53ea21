/* SPDX-License-Identifier: MIT */
#include "base/lock.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "asleep.h"
#include "test.h"

static void lock_and_unlock_change_the_word(void)
{
    struct wf_lock lock;
    wf_lock_init(&lock, WF_RANK_POOL);
    CHECK_EQ(wf_load_relaxed(&lock.word), WF_LOCK_FREE);
    for (int i = 0; i < 3; i++) {
        wf_lock(&lock);
        CHECK_EQ(wf_load_relaxed(&lock.word), WF_LOCK_HELD);
        wf_unlock(&lock);
        CHECK_EQ(wf_load_relaxed(&lock.word), WF_LOCK_FREE);
    }
}

static void both_ways_to_initialise_agree(void)
{
    struct wf_lock constant = WF_LOCK_INIT(WF_RANK_HEAP);
    struct wf_lock called;
    wf_lock_init(&called, WF_RANK_HEAP);
    CHECK_EQ(wf_load_relaxed(&constant.word), wf_load_relaxed(&called.word));
    CHECK_EQ(constant.rank, WF_RANK_HEAP);
    CHECK_EQ(called.rank, WF_RANK_HEAP);
    wf_lock(&constant);
    wf_unlock(&constant);
}

static struct wf_lock locks[WF_RANK_COUNT];

/* One lock of each rank, free and held by nobody. */
static void make_locks(void)
{
    for (int rank = WF_RANK_NONE + 1; rank < WF_RANK_COUNT; rank++) {
        wf_lock_init(&locks[rank], (enum wf_rank)rank);
    }
}

static void rising_ranks_are_held_together(void)
{
    make_locks();
    for (int rank = WF_RANK_NONE + 1; rank < WF_RANK_COUNT; rank++) {
        wf_lock(&locks[rank]);
    }
    for (int rank = WF_RANK_NONE + 1; rank < WF_RANK_COUNT; rank++) {
        CHECK(wf_lock_is_held(&locks[rank]));
        wf_unlock(&locks[rank]);
    }
}

static void rank_is_free_again_after_unlock(void)
{
    make_locks();
    wf_lock(&locks[WF_RANK_ROOM]);
    wf_lock(&locks[WF_RANK_HEAP]);
    wf_unlock(&locks[WF_RANK_HEAP]);
    wf_lock(&locks[WF_RANK_INJECT]);
    wf_unlock(&locks[WF_RANK_ROOM]);
    wf_unlock(&locks[WF_RANK_INJECT]);
    wf_lock(&locks[WF_RANK_ROOM]);
    wf_unlock(&locks[WF_RANK_ROOM]);
}

static int first_rank;
static int second_rank;

static void take_two(void)
{
    struct wf_lock first = WF_LOCK_INIT((uint32_t)first_rank);
    struct wf_lock second = WF_LOCK_INIT((uint32_t)second_rank);
    wf_lock(&first);
    wf_lock(&second);
}

static void falling_rank_aborts_and_names_both(void)
{
    first_rank = WF_RANK_HEAP;
    second_rank = WF_RANK_ROOM;
    CHECK_ABORTS(take_two, "'room' is taken while 'heap' is held");
    first_rank = WF_RANK_ROOM;
    second_rank = WF_RANK_RUNTIME;
    CHECK_ABORTS(take_two, "'runtime' is taken while 'room' is held");
}

static const char *const names[WF_RANK_COUNT] = {
    [WF_RANK_RUNTIME] = "runtime", [WF_RANK_IO] = "io",
    [WF_RANK_TABLE] = "table",     [WF_RANK_ROOM] = "room",
    [WF_RANK_POOL] = "pool",       [WF_RANK_JOIN] = "join",
    [WF_RANK_INJECT] = "inject",   [WF_RANK_AWAY] = "away",
    [WF_RANK_HEAP] = "heap",       [WF_RANK_STACK] = "stack",
    [WF_RANK_TIMER] = "timer",     [WF_RANK_CALLBACK] = "callback",
    [WF_RANK_CLOCK] = "clock",     [WF_RANK_PIPELINE] = "pipeline",
    [WF_RANK_RING] = "ring",       [WF_RANK_DUPLEX] = "duplex",
    [WF_RANK_SHARED] = "shared",
};

static void equal_rank_aborts_and_every_rank_has_a_name(void)
{
    for (int rank = WF_RANK_NONE + 1; rank < WF_RANK_COUNT; rank++) {
        char text[80];
        first_rank = rank;
        second_rank = rank;
        CHECK(names[rank] != NULL);
        (void)snprintf(text, sizeof text, "'%s' is taken while '%s' is held", names[rank],
                       names[rank]);
        CHECK_ABORTS(take_two, text);
    }
}

static void take_one_twice(void)
{
    make_locks();
    wf_lock(&locks[WF_RANK_POOL]);
    wf_lock(&locks[WF_RANK_POOL]);
}

static void lock_taken_twice_aborts(void)
{
    CHECK_ABORTS(take_one_twice, "'pool' is taken while 'pool' is held");
}

static void release_one_not_held(void)
{
    make_locks();
    wf_unlock(&locks[WF_RANK_JOIN]);
}

static void release_another_of_the_rank(void)
{
    struct wf_lock other = WF_LOCK_INIT(WF_RANK_JOIN);
    make_locks();
    wf_lock(&locks[WF_RANK_JOIN]);
    wf_unlock(&other);
}

static void *release_for_main(void *arg)
{
    wf_unlock(&locks[WF_RANK_JOIN]);
    return arg;
}

static void release_from_another_thread(void)
{
    make_locks();
    wf_lock(&locks[WF_RANK_JOIN]);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, release_for_main, NULL), 0);
    (void)pthread_join(thread, NULL);
}

static void release_by_another_than_the_holder_aborts(void)
{
    static const char text[] = "'join' is released by a thread that does not hold it";
    CHECK_ABORTS(release_one_not_held, text);
    CHECK_ABORTS(release_another_of_the_rank, text);
    CHECK_ABORTS(release_from_another_thread, text);
}

static void take_a_zeroed_lock(void)
{
    static struct wf_lock zeroed;
    wf_lock(&zeroed);
}

static void release_a_zeroed_lock(void)
{
    static struct wf_lock zeroed;
    wf_unlock(&zeroed);
}

static void zeroed_lock_aborts(void)
{
    CHECK_ABORTS(take_a_zeroed_lock, "does not hold");
    CHECK_ABORTS(release_a_zeroed_lock, "'uninitialised' is released");
}

static void take_a_lock_of_no_rank(void)
{
    static struct wf_lock wild = WF_LOCK_INIT(WF_RANK_COUNT);
    wf_lock(&wild);
}

static void rank_out_of_range_aborts(void)
{
    CHECK_ABORTS(take_a_lock_of_no_rank, "does not hold");
}

static void *take_lower_rank(void *arg)
{
    CHECK(!wf_lock_is_held(&locks[WF_RANK_HEAP]));
    wf_lock(&locks[WF_RANK_ROOM]);
    CHECK(wf_lock_is_held(&locks[WF_RANK_ROOM]));
    wf_unlock(&locks[WF_RANK_ROOM]);
    return arg;
}

/*
 * Goal:   order and holder are matters of one thread.
 * Method: while this thread holds a high rank, another one takes a low rank.
 */
static void held_locks_are_those_of_the_thread(void)
{
    make_locks();
    CHECK(!wf_lock_is_held(&locks[WF_RANK_HEAP]));
    wf_lock(&locks[WF_RANK_HEAP]);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, take_lower_rank, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK(wf_lock_is_held(&locks[WF_RANK_HEAP]));
    CHECK(!wf_lock_is_held(&locks[WF_RANK_ROOM]));
    wf_unlock(&locks[WF_RANK_HEAP]);
    CHECK(!wf_lock_is_held(&locks[WF_RANK_HEAP]));
}

static void *hold_nothing(void *arg)
{
    CHECK(wf_lock_any_held() == NULL);
    return arg;
}

static const char *held_name(void)
{
    const char *name = wf_lock_any_held();
    return name != NULL ? name : "";
}

static void a_lock_that_is_held_is_named(void)
{
    make_locks();
    CHECK(wf_lock_any_held() == NULL);
    for (int rank = WF_RANK_NONE + 1; rank < WF_RANK_COUNT; rank++) {
        wf_lock(&locks[rank]);
        CHECK_HAS(held_name(), names[rank]);
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, hold_nothing, NULL), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        wf_unlock(&locks[rank]);
        CHECK(wf_lock_any_held() == NULL);
    }
}

static void of_several_locks_one_is_named_until_the_last_is_free(void)
{
    make_locks();
    wf_lock(&locks[WF_RANK_ROOM]);
    wf_lock(&locks[WF_RANK_HEAP]);
    CHECK(wf_lock_any_held() != NULL);
    wf_unlock(&locks[WF_RANK_ROOM]);
    CHECK_HAS(held_name(), "heap");
    wf_unlock(&locks[WF_RANK_HEAP]);
    CHECK(wf_lock_any_held() == NULL);
}

/* Threads that want one lock. */
struct queue {
    struct wf_lock lock;        /* guards counted and inside */
    uint64_t counted;           /* under lock */
    uint64_t inside;            /* under lock */
    uint64_t rounds;            /* constant: how often each thread takes the lock */
    uint64_t together;          /* constant: how many threads begin at once */
    _Atomic(uint64_t) tids[2];  /* each thread writes its own */
    _Atomic(uint64_t) arrivals; /* threads count up */
};

static struct queue queue;

static void *take_often(void *arg)
{
    uint64_t self = wf_fetch_add_relaxed(&queue.arrivals, 1);
    if (self < 2) {
        wf_store_release(&queue.tids[self], own_tid());
    }
    test_wait_for(&queue.arrivals, queue.together);
    for (uint64_t i = 0; i < queue.rounds; i++) {
        wf_lock(&queue.lock);
        queue.inside++;
        CHECK_EQ(queue.inside, 1);
        queue.counted++;
        wf_cpu_relax();
        CHECK_EQ(queue.inside, 1);
        queue.inside--;
        wf_unlock(&queue.lock);
    }
    return arg;
}

/*
 * Goal:   one thread at a time is inside, and sees what the last one wrote.
 * Method: four threads on plain fields: a second one inside would be seen, or
 *         an addition lost. Sanitizers also see a missing edge [L1].
 */
static void threads_exclude_each_other(void)
{
    enum {
        THREADS = 4
    };
    pthread_t threads[THREADS];
    queue = (struct queue){ .rounds = test_scale(300000), .together = THREADS };
    wf_lock_init(&queue.lock, WF_RANK_INJECT);
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, take_often, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    CHECK_EQ(queue.counted, THREADS * queue.rounds);
    CHECK_EQ(wf_load_relaxed(&queue.lock.word), WF_LOCK_FREE);
}

/* Holds the lock until count threads sleep on it, then lets them have it. */
static void let_sleepers_in(int count)
{
    pthread_t threads[2];
    queue = (struct queue){ .rounds = 1 };
    wf_lock_init(&queue.lock, WF_RANK_INJECT);
    wf_lock(&queue.lock);
    for (int i = 0; i < count; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, take_often, NULL), 0);
        test_wait_for(&queue.tids[i], 1);
        while (wf_load_relaxed(&queue.lock.word) != WF_LOCK_CONTENDED) {
            (void)sched_yield();
        }
        wait_until_asleep(wf_load_relaxed(&queue.tids[i]));
    }
    CHECK_EQ(queue.counted, 0);
    wf_unlock(&queue.lock);
    for (int i = 0; i < count; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    CHECK_EQ(queue.counted, count);
    CHECK_EQ(wf_load_relaxed(&queue.lock.word), WF_LOCK_FREE);
}

/*
 * Goal:   a contended unlock wakes who sleeps.
 * Method: unlock when the kernel says that the other thread sleeps; join it.
 */
static void contended_unlock_wakes_the_sleeper(void)
{
    let_sleepers_in(1);
}

/*
 * Goal:   a sleeper that gets the lock wakes the next one, which it does not
 *         know of.
 * Method: two threads sleep before the one unlock of this thread; join both.
 */
static void woken_sleeper_wakes_the_next(void)
{
    let_sleepers_in(2);
}

TEST_MAIN({ TEST(lock_and_unlock_change_the_word), TEST(both_ways_to_initialise_agree),
            TEST(rising_ranks_are_held_together), TEST(rank_is_free_again_after_unlock),
            TEST_DEBUG(falling_rank_aborts_and_names_both),
            TEST_DEBUG(equal_rank_aborts_and_every_rank_has_a_name),
            TEST_DEBUG(lock_taken_twice_aborts),
            TEST_DEBUG(release_by_another_than_the_holder_aborts), TEST_DEBUG(zeroed_lock_aborts),
            TEST_DEBUG(rank_out_of_range_aborts), TEST_DEBUG(held_locks_are_those_of_the_thread),
            TEST_DEBUG(a_lock_that_is_held_is_named),
            TEST_DEBUG(of_several_locks_one_is_named_until_the_last_is_free),
            TEST(threads_exclude_each_other), TEST(contended_unlock_wakes_the_sleeper),
            TEST(woken_sleeper_wakes_the_next) })
