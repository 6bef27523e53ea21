/* SPDX-License-Identifier: MIT */
/*
 * Programs that are canceled, or time out, at each point where they may be suspended: each ends,
 * with correct counts, and holds nothing at the end.
 */
#include <stdatomic.h>
#include <string.h>

#include <weft.h>

#include "sweep.h"
#include "test.h"

/* --- Channels --------------------------------------------------------------------------------- */

WEFT_CHANNEL(numbers, int)

static atomic_int sent;
static atomic_int passed_on;
static atomic_int received;

/* Handles of one task, dropped at its end. */
struct ends {
    numbers_sender *to;
    numbers_receiver *from;
};

static int send_some(void *arg)
{
    struct ends *ends = arg;
    int err = 0;
    for (int i = 1; i <= 4 && err == 0; i++) {
        err = numbers_send(ends->to, i, WEFT_NEVER);
        atomic_fetch_add(&sent, err == 0 ? i : 0);
    }
    numbers_sender_drop(ends->to);
    return err;
}

static int pass_on(void *arg)
{
    struct ends *ends = arg;
    int number;
    int err;
    while ((err = numbers_recv(ends->from, &number, WEFT_NEVER)) == 0) {
        err = numbers_send(ends->to, number, WEFT_NEVER);
        if (err != 0) {
            break;
        }
        atomic_fetch_add(&passed_on, number);
    }
    numbers_receiver_drop(ends->from);
    numbers_sender_drop(ends->to);
    return err == WEFT_ECLOSED ? 0 : err;
}

static int receive_all(void *arg)
{
    struct ends *ends = arg;
    int number;
    int err;
    while ((err = numbers_recv(ends->from, &number, WEFT_NEVER)) == 0) {
        atomic_fetch_add(&received, number);
    }
    numbers_receiver_drop(ends->from);
    return err == WEFT_ECLOSED ? 0 : err;
}

/* Starts a task that drops its handles. Drops them if the task cannot be started. */
static int start(weft_scope *scope, int (*function)(void *arg), struct ends *ends)
{
    int err = weft_scope_go(scope, function, ends);
    if (err != 0) {
        numbers_sender_drop(ends->to);
        numbers_receiver_drop(ends->from);
    }
    return err;
}

static int pipeline(void *arg)
{
    (void)arg;
    numbers_sender *to[2];
    numbers_receiver *from[2];
    int err = 0;
    CHECK_EQ(numbers_make(&to[0], &from[0], 2), 0);
    CHECK_EQ(numbers_make(&to[1], &from[1], 0), 0);
    struct ends producers[2] = { { to[0], NULL }, { numbers_sender_clone(to[0]), NULL } };
    struct ends filters[2] = { { to[1], from[0] },
                               { numbers_sender_clone(to[1]), numbers_receiver_clone(from[0]) } };
    struct ends consumer = { NULL, from[1] };
    WEFT_SCOPE(scope, NULL, &err)
    {
        int errs[] = { start(scope, send_some, &producers[0]), start(scope, pass_on, &filters[0]),
                       start(scope, receive_all, &consumer), start(scope, pass_on, &filters[1]),
                       start(scope, send_some, &producers[1]) };
        for (unsigned i = 0; i < 5 && err == 0; i++) {
            err = errs[i];
        }
    }
    return err;
}

static void pipeline_begin(void)
{
    atomic_store(&sent, 0);
    atomic_store(&passed_on, 0);
    atomic_store(&received, 0);
}

/* A message sent over the unbuffered channel has arrived. */
static void pipeline_check(bool is_whole)
{
    CHECK_EQ(atomic_load(&passed_on), atomic_load(&received));
    CHECK_LE(atomic_load(&received), atomic_load(&sent));
    CHECK(!is_whole || atomic_load(&received) == 20);
}

static void interrupted_channels_lose_nothing(void)
{
    sweep(&(struct program){ pipeline, pipeline_begin, pipeline_check, false });
}

/* --- Locks ------------------------------------------------------------------------------------ */

static weft_mutex mutex;
static weft_cond cond;
static weft_rwlock rwlock;
static weft_semaphore permits;
static weft_barrier barrier;
static weft_notify notify;
static unsigned turns; /* under the mutex */
static atomic_int inside;

static int take_turn(unsigned mine)
{
    int err = weft_mutex_lock(&mutex, WEFT_NEVER);
    if (err != 0) {
        return err;
    }
    while (err == 0 && turns % 3 != mine) {
        err = weft_cond_wait(&cond, &mutex, WEFT_NEVER);
    }
    if (err == 0) {
        CHECK_EQ(atomic_fetch_add(&inside, 1), 0);
        (void)weft_yield();
        atomic_fetch_sub(&inside, 1);
        turns++;
        weft_cond_broadcast(&cond);
    }
    weft_mutex_unlock(&mutex);
    return err;
}

static int read_and_write(void)
{
    int err = weft_rwlock_read(&rwlock, WEFT_NEVER);
    if (err != 0) {
        return err;
    }
    (void)weft_yield();
    weft_rwlock_end_read(&rwlock);
    err = weft_rwlock_write(&rwlock, WEFT_NEVER);
    if (err != 0) {
        return err;
    }
    (void)weft_yield();
    weft_rwlock_downgrade(&rwlock);
    weft_rwlock_end_read(&rwlock);
    return 0;
}

static int acquire_two(void)
{
    int err = weft_semaphore_acquire(&permits, 2, WEFT_NEVER);
    if (err == 0) {
        (void)weft_yield();
        weft_semaphore_release(&permits, 2);
    }
    return err;
}

static int use_locks(void *arg)
{
    unsigned mine = (unsigned)(uintptr_t)arg;
    int err = 0;
    for (unsigned round = 0; round < 2 && err == 0; round++) {
        err = take_turn(mine);
        err = err == 0 ? read_and_write() : err;
        err = err == 0 ? acquire_two() : err;
        err = err == 0 ? weft_barrier_wait(&barrier, WEFT_NEVER) : err;
        if (err == 1) {
            weft_notify_one(&notify);
            err = weft_notify_wait(&notify, WEFT_NEVER);
        }
    }
    return err;
}

static int locks(void *arg)
{
    (void)arg;
    int err = 0;
    WEFT_SCOPE(scope, NULL, &err)
    {
        for (unsigned i = 0; i < 3 && err == 0; i++) {
            err = weft_scope_go(scope, use_locks, (void *)(uintptr_t)i);
        }
    }
    return err;
}

static void locks_begin(void)
{
    memset(&mutex, 0, sizeof mutex);
    memset(&cond, 0, sizeof cond);
    memset(&rwlock, 0, sizeof rwlock);
    memset(&notify, 0, sizeof notify);
    weft_semaphore_init(&permits, 3);
    weft_barrier_init(&barrier, 3);
    turns = 0;
}

static void locks_check(bool is_whole)
{
    CHECK(weft_mutex_try_lock(&mutex));
    CHECK(weft_rwlock_try_write(&rwlock));
    CHECK_EQ(weft_semaphore_available(&permits), 3);
    CHECK(!is_whole || turns == 6);
}

static void interrupted_lock_users_release_their_locks(void)
{
    sweep(&(struct program){ locks, locks_begin, locks_check, false });
}

/* --- Select ----------------------------------------------------------------------------------- */

static int select_some(void *arg)
{
    struct ends *ends = arg;
    int err = 0;
    int theirs = 0;
    bool may_receive = true;
    for (int i = 1; err == 0 && (i <= 4 || may_receive);) {
        weft_op send;
        weft_op recv;
        weft_sleep_future sleep;
        if (ends->to != NULL) {
            numbers_send_init(&send, ends->to, &i);
        }
        numbers_recv_init(&recv, ends->from, &theirs);
        weft_sleep_init(&sleep, weft_after(3600 * WEFT_S), 0);
        weft_branch branches[3] = { { .future = i <= 4 ? &send.future : NULL },
                                    { .future = may_receive ? &recv.future : NULL },
                                    { .future = &sleep.future } };
        int winner = weft_select(branches, 3, 0, WEFT_NEVER);
        err = winner < 0 ? winner : branches[winner].result;
        if (winner == 0 && err == 0) {
            atomic_fetch_add(&sent, i);
            i++;
        } else if (winner == 1 && err == 0) {
            atomic_fetch_add(&received, theirs);
        } else if (winner == 1 && err == WEFT_ECLOSED) {
            may_receive = false;
            err = 0;
        }
        if (i == 5 && ends->to != NULL) {
            numbers_sender_drop(ends->to);
            ends->to = NULL;
            i++;
        }
    }
    numbers_sender_drop(ends->to);
    numbers_receiver_drop(ends->from);
    return err == WEFT_ECLOSED ? 0 : err;
}

/* Two tasks that send to and receive from each other, over unbuffered channels. */
static int exchange(void *arg)
{
    (void)arg;
    numbers_sender *to[2];
    numbers_receiver *from[2];
    int err = 0;
    CHECK_EQ(numbers_make(&to[0], &from[0], 0), 0);
    CHECK_EQ(numbers_make(&to[1], &from[1], 0), 0);
    struct ends ends[2] = { { to[0], from[1] }, { to[1], from[0] } };
    WEFT_SCOPE(scope, NULL, &err)
    {
        int errs[] = { start(scope, select_some, &ends[0]), start(scope, select_some, &ends[1]) };
        err = errs[0] != 0 ? errs[0] : errs[1];
    }
    return err;
}

static void exchange_check(bool is_whole)
{
    CHECK_EQ(atomic_load(&sent), atomic_load(&received));
    CHECK(!is_whole || atomic_load(&received) == 20);
}

static void lost_select_branches_transfer_nothing(void)
{
    sweep(&(struct program){ exchange, pipeline_begin, exchange_check, false });
}

/* --- Scopes ----------------------------------------------------------------------------------- */

static atomic_int running;

static int nap(void *arg)
{
    (void)arg;
    atomic_fetch_add(&running, 1);
    int err = weft_sleep(WEFT_MS / 10);
    atomic_fetch_sub(&running, 1);
    return err;
}

static int nap_each(size_t index, void *arg)
{
    (void)index;
    return nap(arg);
}

static int nap_in_set(void)
{
    weft_join_set set;
    weft_joined joined;
    int err = weft_join_set_begin(&set, NULL);
    if (err != 0) {
        return err;
    }
    for (unsigned i = 0; i < 3 && err == 0; i++) {
        err = weft_join_set_go(&set, nap, NULL);
    }
    while (err == 0 && (err = weft_join_set_next(&set, &joined, WEFT_NEVER)) == 0) {
        err = joined.result;
    }
    if (err != -ENOENT) {
        weft_join_set_cancel(&set);
    }
    int end = weft_join_set_end(&set);
    return err == -ENOENT ? end : err;
}

static int race_naps(void)
{
    weft_task *tasks[3] = { NULL, NULL, NULL };
    int err = 0;
    for (unsigned i = 0; i < 3 && err == 0; i++) {
        err = weft_go(&tasks[i], nap, NULL);
    }
    int winner = err == 0 ? weft_race(tasks, 3, NULL, WEFT_NEVER) : err;
    /* If the race was interrupted, the remaining handles still belong to the caller. */
    weft_shield_enter();
    for (unsigned i = 0; i < 3; i++) {
        if (tasks[i] != NULL) {
            weft_cancel(tasks[i]);
            while (weft_join(tasks[i], NULL, WEFT_NEVER) != 0) {
            }
        }
    }
    weft_shield_leave();
    return winner < 0 ? winner : 0;
}

static int scopes(void *arg)
{
    (void)arg;
    int err = 0;
    weft_scope_options options = { .limit = 2 };
    WEFT_SCOPE(outer, &options, &err)
    {
        for (unsigned i = 0; i < 4 && err == 0; i++) {
            err = weft_scope_go(outer, nap, NULL);
        }
        err = err == 0 ? weft_go_each(5, 2, nap_each, NULL, WEFT_NEVER) : err;
        err = err == 0 ? weft_call_until(nap, NULL, WEFT_NEVER) : err;
        err = err == 0 ? nap_in_set() : err;
        err = err == 0 ? race_naps() : err;
    }
    CHECK_EQ(atomic_load(&running), 0);
    return err;
}

static void scopes_begin(void)
{
    atomic_store(&running, 0);
}

static void scopes_check(bool is_whole)
{
    (void)is_whole;
    CHECK_EQ(atomic_load(&running), 0);
}

static void interrupted_scopes_wait_for_all_children(void)
{
    sweep(&(struct program){ scopes, scopes_begin, scopes_check, false });
}

/* --- Sequences ------------------------------------------------------------------------------ */

static int count_up(weft_generator *to, void *arg)
{
    (void)arg;
    int err = 0;
    for (int i = 1; i <= 5 && err == 0; i++) {
        err = weft_give(to, &i);
    }
    return err;
}

static int add_up(void *item, void *arg)
{
    (void)arg;
    atomic_fetch_add(&received, *(int *)item);
    return 0;
}

static int sequences(void *arg)
{
    (void)arg;
    weft_sequence *one = weft_generate(sizeof(int), count_up, NULL);
    weft_sequence *two = weft_sequence_buffered(weft_generate(sizeof(int), count_up, NULL), 2);
    return weft_sequence_for_each(weft_sequence_merge(one, two), add_up, NULL);
}

static void sequences_check(bool is_whole)
{
    CHECK_LE(atomic_load(&received), 30);
    CHECK(!is_whole || atomic_load(&received) == 30);
}

static void interrupted_sequences_end(void)
{
    sweep(&(struct program){ sequences, pipeline_begin, sequences_check, false });
}

/* --- Values ----------------------------------------------------------------------------------- */

WEFT_ONESHOT(answer, int)
WEFT_WATCH(level, int)
WEFT_BROADCAST(news, int)

static answer place;
static weft_once once;
static weft_event event;
static atomic_int made;
static level_receiver *levels[2];
static news_receiver *items[2];

static int make_it(void *arg)
{
    (void)arg;
    int err = weft_sleep(WEFT_MS / 10);
    atomic_fetch_add(&made, err == 0);
    return err;
}

static int follow(void *arg)
{
    size_t index = (size_t)(uintptr_t)arg;
    int value = 0;
    int err = weft_once_run(&once, make_it, NULL, WEFT_NEVER);
    err = err == 0 ? weft_event_wait(&event, WEFT_NEVER) : err;
    while (err == 0 && value < 3) {
        err = level_recv(levels[index], &value, WEFT_NEVER);
    }
    for (int i = 1; err == 0 && i <= 3; i++) {
        err = news_recv(items[index], &value, NULL, WEFT_NEVER);
    }
    if (err == 0 && index == 0) {
        err = answer_recv(&place, &value, WEFT_NEVER);
        atomic_fetch_add(&received, err == 0 ? value : 0);
    }
    return err;
}

static int values(void *arg)
{
    (void)arg;
    int err = 0;
    level_sender *set;
    news_sender *to;
    CHECK_EQ(level_make(&set, &levels[0], 0), 0);
    CHECK_EQ(level_subscribe(set, &levels[1]), 0);
    CHECK_EQ(news_make(&to, &items[0], 8), 0);
    CHECK_EQ(news_subscribe(to, &items[1]), 0);
    WEFT_SCOPE(scope, NULL, &err)
    {
        for (unsigned i = 0; i < 2 && err == 0; i++) {
            err = weft_scope_go(scope, follow, (void *)(uintptr_t)i);
        }
        weft_event_set(&event);
        for (int i = 1; i <= 3 && err == 0; i++) {
            CHECK_EQ(level_send(set, i), 0);
            CHECK_EQ(news_send(to, i), 0);
            err = weft_sleep(WEFT_MS / 10);
        }
        CHECK_EQ(answer_send(&place, 7), 0);
    }
    level_sender_drop(set);
    news_sender_drop(to);
    for (unsigned i = 0; i < 2; i++) {
        level_receiver_drop(levels[i]);
        news_receiver_drop(items[i]);
    }
    return err;
}

static void values_begin(void)
{
    pipeline_begin();
    memset(&place, 0, sizeof place);
    memset(&once, 0, sizeof once);
    memset(&event, 0, sizeof event);
    atomic_store(&made, 0);
}

static void values_check(bool is_whole)
{
    CHECK_LE(atomic_load(&made), 1);
    CHECK(!is_whole || (atomic_load(&made) == 1 && atomic_load(&received) == 7));
}

static void interrupted_values_arrive_at_most_once(void)
{
    sweep(&(struct program){ values, values_begin, values_check, false });
}

TEST_MAIN({
    TEST_DEBUG(interrupted_channels_lose_nothing),
    TEST_DEBUG(interrupted_lock_users_release_their_locks),
    TEST_DEBUG(lost_select_branches_transfer_nothing),
    TEST_DEBUG(interrupted_scopes_wait_for_all_children),
    TEST_DEBUG(interrupted_sequences_end),
    TEST_DEBUG(interrupted_values_arrive_at_most_once),
})
