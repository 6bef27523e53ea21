/* SPDX-License-Identifier: MIT */
#include "base/lock.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "asleep.h"
#include "test.h"

static void lock_and_unlock_change_word(void)
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

static void static_and_dynamic_initialization_agree(void)
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

/* Initializes one free lock of each rank. */
static void make_locks(void)
{
    for (int rank = WF_RANK_NONE + 1; rank < WF_RANK_COUNT; rank++) {
        wf_lock_init(&locks[rank], (enum wf_rank)rank);
    }
}

static void locks_of_rising_rank_can_be_held_together(void)
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

static void rank_can_be_locked_again_after_unlock(void)
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

static void lock_two(void)
{
    struct wf_lock first = WF_LOCK_INIT((uint32_t)first_rank);
    struct wf_lock second = WF_LOCK_INIT((uint32_t)second_rank);
    wf_lock(&first);
    wf_lock(&second);
}

static void falling_rank_aborts_naming_both_ranks(void)
{
    first_rank = WF_RANK_HEAP;
    second_rank = WF_RANK_ROOM;
    CHECK_ABORTS(lock_two, "'room' is taken while 'heap' is held");
    first_rank = WF_RANK_ROOM;
    second_rank = WF_RANK_RUNTIME;
    CHECK_ABORTS(lock_two, "'runtime' is taken while 'room' is held");
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
    [WF_RANK_SHARED] = "shared",   [WF_RANK_RUNNERS] = "runners",
};

static void equal_rank_aborts_and_every_rank_has_name(void)
{
    for (int rank = WF_RANK_NONE + 1; rank < WF_RANK_COUNT; rank++) {
        char text[80];
        first_rank = rank;
        second_rank = rank;
        CHECK(names[rank] != NULL);
        (void)snprintf(text, sizeof text, "'%s' is taken while '%s' is held", names[rank],
                       names[rank]);
        CHECK_ABORTS(lock_two, text);
    }
}

static void lock_twice(void)
{
    make_locks();
    wf_lock(&locks[WF_RANK_POOL]);
    wf_lock(&locks[WF_RANK_POOL]);
}

static void recursive_lock_aborts(void)
{
    CHECK_ABORTS(lock_twice, "'pool' is taken while 'pool' is held");
}

static void unlock_free_lock(void)
{
    make_locks();
    wf_unlock(&locks[WF_RANK_JOIN]);
}

static void unlock_other_lock_of_rank(void)
{
    struct wf_lock other = WF_LOCK_INIT(WF_RANK_JOIN);
    make_locks();
    wf_lock(&locks[WF_RANK_JOIN]);
    wf_unlock(&other);
}

static void *unlock_for_main(void *arg)
{
    wf_unlock(&locks[WF_RANK_JOIN]);
    return arg;
}

static void unlock_from_other_thread(void)
{
    make_locks();
    wf_lock(&locks[WF_RANK_JOIN]);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, unlock_for_main, NULL), 0);
    (void)pthread_join(thread, NULL);
}

static void unlock_by_other_than_holder_aborts(void)
{
    static const char text[] = "'join' is released by a thread that does not hold it";
    CHECK_ABORTS(unlock_free_lock, text);
    CHECK_ABORTS(unlock_other_lock_of_rank, text);
    CHECK_ABORTS(unlock_from_other_thread, text);
}

static void lock_zeroed_lock(void)
{
    static struct wf_lock zeroed;
    wf_lock(&zeroed);
}

static void unlock_zeroed_lock(void)
{
    static struct wf_lock zeroed;
    wf_unlock(&zeroed);
}

static void zeroed_lock_aborts(void)
{
    CHECK_ABORTS(lock_zeroed_lock, "does not hold");
    CHECK_ABORTS(unlock_zeroed_lock, "'uninitialised' is released");
}

static void lock_with_invalid_rank(void)
{
    static struct wf_lock wild = WF_LOCK_INIT(WF_RANK_COUNT);
    wf_lock(&wild);
}

static void rank_out_of_range_aborts(void)
{
    CHECK_ABORTS(lock_with_invalid_rank, "does not hold");
}

static void *lock_lower_rank(void *arg)
{
    CHECK(!wf_lock_is_held(&locks[WF_RANK_HEAP]));
    wf_lock(&locks[WF_RANK_ROOM]);
    CHECK(wf_lock_is_held(&locks[WF_RANK_ROOM]));
    wf_unlock(&locks[WF_RANK_ROOM]);
    return arg;
}

/*
 * Goal:   lock order and ownership are tracked per thread.
 * Method: while this thread holds a high rank, another thread locks a low rank.
 */
static void held_locks_are_tracked_per_thread(void)
{
    make_locks();
    CHECK(!wf_lock_is_held(&locks[WF_RANK_HEAP]));
    wf_lock(&locks[WF_RANK_HEAP]);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, lock_lower_rank, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK(wf_lock_is_held(&locks[WF_RANK_HEAP]));
    CHECK(!wf_lock_is_held(&locks[WF_RANK_ROOM]));
    wf_unlock(&locks[WF_RANK_HEAP]);
    CHECK(!wf_lock_is_held(&locks[WF_RANK_HEAP]));
}

static void *check_no_lock_held(void *arg)
{
    CHECK(wf_lock_any_held() == NULL);
    return arg;
}

static const char *held_name(void)
{
    const char *name = wf_lock_any_held();
    return name != NULL ? name : "";
}

static void any_held_returns_name_of_held_lock(void)
{
    make_locks();
    CHECK(wf_lock_any_held() == NULL);
    for (int rank = WF_RANK_NONE + 1; rank < WF_RANK_COUNT; rank++) {
        wf_lock(&locks[rank]);
        CHECK_HAS(held_name(), names[rank]);
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, check_no_lock_held, NULL), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        wf_unlock(&locks[rank]);
        CHECK(wf_lock_any_held() == NULL);
    }
}

static void any_held_names_one_lock_until_all_are_free(void)
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

/* Threads that contend for one lock. */
struct queue {
    struct wf_lock lock;        /* guards counted and inside */
    uint64_t counted;           /* guarded by lock */
    uint64_t inside;            /* guarded by lock */
    uint64_t rounds;            /* constant: how often each thread locks */
    uint64_t together;          /* constant: number of threads that start together */
    _Atomic(uint64_t) tids[2];  /* each thread writes its own element */
    _Atomic(uint64_t) arrivals; /* incremented by the threads */
};

static struct queue queue;

static void *lock_repeatedly(void *arg)
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
 * Goal:   one thread at a time is in the critical section, and it sees the writes of the
 *         previous one.
 * Method: four threads update plain fields. A second thread inside would be seen, or an
 *         increment lost. Sanitizers also report a missing edge [L1].
 */
static void lock_excludes_other_threads(void)
{
    enum {
        THREADS = 4
    };
    pthread_t threads[THREADS];
    queue = (struct queue){ .rounds = test_scale(300000), .together = THREADS };
    wf_lock_init(&queue.lock, WF_RANK_INJECT);
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, lock_repeatedly, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    CHECK_EQ(queue.counted, THREADS * queue.rounds);
    CHECK_EQ(wf_load_relaxed(&queue.lock.word), WF_LOCK_FREE);
}

/* Holds the lock until count threads sleep on it, then unlocks it and checks that all of them
 * get it. */
static void check_unlock_wakes_sleepers(int count)
{
    pthread_t threads[2];
    queue = (struct queue){ .rounds = 1 };
    wf_lock_init(&queue.lock, WF_RANK_INJECT);
    wf_lock(&queue.lock);
    for (int i = 0; i < count; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, lock_repeatedly, NULL), 0);
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
 * Goal:   a contended unlock wakes a sleeper.
 * Method: unlock once the kernel reports the other thread asleep, then join it.
 */
static void contended_unlock_wakes_sleeper(void)
{
    check_unlock_wakes_sleepers(1);
}

/*
 * Goal:   a sleeper that gets the lock wakes the next one, although it does not know of it.
 * Method: two threads sleep before the single unlock of this thread; join both.
 */
static void woken_sleeper_wakes_next_sleeper(void)
{
    check_unlock_wakes_sleepers(2);
}

TEST_MAIN(
    { TEST(lock_and_unlock_change_word), TEST(static_and_dynamic_initialization_agree),
      TEST(locks_of_rising_rank_can_be_held_together), TEST(rank_can_be_locked_again_after_unlock),
      TEST_DEBUG(falling_rank_aborts_naming_both_ranks),
      TEST_DEBUG(equal_rank_aborts_and_every_rank_has_name), TEST_DEBUG(recursive_lock_aborts),
      TEST_DEBUG(unlock_by_other_than_holder_aborts), TEST_DEBUG(zeroed_lock_aborts),
      TEST_DEBUG(rank_out_of_range_aborts), TEST_DEBUG(held_locks_are_tracked_per_thread),
      TEST_DEBUG(any_held_returns_name_of_held_lock),
      TEST_DEBUG(any_held_names_one_lock_until_all_are_free), TEST(lock_excludes_other_threads),
      TEST(contended_unlock_wakes_sleeper), TEST(woken_sleeper_wakes_next_sleeper) })
