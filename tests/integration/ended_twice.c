/* SPDX-License-Identifier: MIT */
/*
 * ended_twice: every pair of calls that begins and ends an object, with the object ended twice
 * or used after its end. The process aborts with a message that names the call, and touches no
 * freed memory.
 *
 * Not covered, since their memory is freed at the end, and a second end cannot be distinguished
 * from a call with a wild pointer: weft_sequence_drop(), and the last handle of a channel, a
 * watch or a broadcast. Streams, listeners, datagrams and descriptors have tests of their own.
 */
#include <weft.h>

#include "rt.h"
#include "test.h"

/* Each case runs in a child process. */
static weft_runtime *rt;

static int return_0(void *arg)
{
    (void)arg;
    return 0;
}

/* --- Runtimes --------------------------------------------------------------------------------- */

static void destroyed_runtime(void)
{
    rt = test_start(1);
    weft_runtime_destroy(rt);
}

static void runtime_destroy(void)
{
    destroyed_runtime();
    weft_runtime_destroy(rt);
}

/* Later runtimes do not reuse the memory of the handle. */
static void runtime_destroy_later(void)
{
    destroyed_runtime();
    weft_runtime *first = rt;
    for (int i = 0; i < 10; i++) {
        destroyed_runtime();
    }
    weft_runtime_destroy(first);
}

static void runtime_shutdown(void)
{
    destroyed_runtime();
    weft_runtime_shutdown(rt);
}

static void runtime_workers(void)
{
    destroyed_runtime();
    (void)weft_runtime_workers(rt);
}

static void runtime_stats(void)
{
    weft_stats stats;
    destroyed_runtime();
    weft_runtime_stats(rt, &stats);
}

static void runtime_worker_stats(void)
{
    weft_worker_stats stats;
    destroyed_runtime();
    CHECK_EQ(weft_worker_stats_read(rt, 0, &stats), 0);
}

static void runtime_go(void)
{
    weft_fiber_spec spec = { .function = return_0 };
    destroyed_runtime();
    CHECK_EQ(weft_runtime_go(rt, NULL, &spec), 0);
}

static void runtime_spawn(void)
{
    weft_spec spec = { .body = test_return_7 };
    destroyed_runtime();
    CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), 0);
}

static void runtime_spawn_wait(void)
{
    weft_spec spec = { .body = test_return_7 };
    destroyed_runtime();
    CHECK_EQ(weft_runtime_spawn_wait(rt, NULL, &spec, WEFT_NEVER), 0);
}

static void runtime_spawn_blocking(void)
{
    destroyed_runtime();
    CHECK_EQ(weft_runtime_spawn_blocking(rt, NULL, return_0, NULL), 0);
}

static void runtime_par_run(void)
{
    destroyed_runtime();
    CHECK_EQ(weft_par_run(rt, return_0, NULL), 0);
}

static void runtime_par_broadcast(void)
{
    destroyed_runtime();
    CHECK_EQ(weft_par_broadcast(rt, return_0, NULL), 0);
}

static void runtime_io(void)
{
    weft_io_info info;
    destroyed_runtime();
    CHECK_EQ(weft_runtime_io(rt, &info), 0);
}

/* --- Tasks ------------------------------------------------------------------------------------ */

static weft_task *joined_task(void)
{
    rt = test_start(1);
    weft_task *task = test_go(rt, return_0, NULL);
    CHECK_EQ(test_join(task), 0);
    test_wait_until_asleep(rt); /* The worker has dropped its reference to the task. */
    return task;
}

static void join(void)
{
    (void)test_join(joined_task());
}

static int join_two_times(void *arg)
{
    weft_task *task;
    (void)arg;
    CHECK_EQ(weft_go(&task, return_0, NULL), 0);
    CHECK_EQ(weft_join(task, NULL, WEFT_NEVER), 0);
    return weft_join(task, NULL, WEFT_NEVER);
}

static void join_on_fiber(void)
{
    (void)test_run(test_start(1), join_two_times, NULL);
}

/* For a task that has not ended. */
static int wait_long(void *arg)
{
    (void)arg;
    return weft_sleep(3600 * WEFT_S);
}

static weft_task *detached_task(void)
{
    rt = test_start(1);
    weft_task *task = test_go(rt, wait_long, NULL);
    test_wait_until_asleep(rt);
    weft_detach(task);
    return task;
}

static void join_detached(void)
{
    (void)test_join(detached_task());
}

static int join_task(void *task)
{
    return weft_join(task, NULL, WEFT_NEVER);
}

static void join_detached_on_fiber(void)
{
    weft_task *task = detached_task();
    (void)test_run(rt, join_task, task);
}

static void try_join_detached(void)
{
    CHECK_EQ(weft_try_join(detached_task(), NULL), 0);
}

static void detach_detached(void)
{
    weft_detach(detached_task());
}

static void try_join(void)
{
    CHECK_EQ(weft_try_join(joined_task(), NULL), 0);
}

static void detach(void)
{
    weft_detach(joined_task());
}

static void detach_two_times(void)
{
    rt = test_start(1);
    weft_task *task = test_go(rt, return_0, NULL);
    CHECK_EQ(test_join(weft_task_retain(task)), 0);
    test_wait_until_asleep(rt);
    weft_detach(task);
    weft_detach(task);
}

static void cancel(void)
{
    weft_cancel(joined_task());
}

static void retain(void)
{
    (void)!weft_task_retain(joined_task());
}

/* --- Channels --------------------------------------------------------------------------------- */

static void sender_drop(void)
{
    weft_sender *sender;
    weft_receiver *receiver;
    CHECK_EQ(weft_channel_make(&sender, &receiver, 1, 1), 0);
    weft_sender_drop(sender);
    weft_sender_drop(sender);
}

static void receiver_drop(void)
{
    weft_sender *sender;
    weft_receiver *receiver;
    CHECK_EQ(weft_channel_make(&sender, &receiver, 1, 1), 0);
    weft_receiver_drop(receiver);
    weft_receiver_drop(receiver);
}

static void watch_sender_drop(void)
{
    weft_watch_sender *sender;
    weft_watch_receiver *receiver;
    CHECK_EQ(weft_watch_make(&sender, &receiver, 1, "a"), 0);
    weft_watch_sender_drop(sender);
    weft_watch_sender_drop(sender);
}

static void watch_receiver_drop(void)
{
    weft_watch_sender *sender;
    weft_watch_receiver *receiver;
    CHECK_EQ(weft_watch_make(&sender, &receiver, 1, "a"), 0);
    weft_watch_receiver_drop(receiver);
    weft_watch_receiver_drop(receiver);
}

static void broadcast_sender_drop(void)
{
    weft_broadcast_sender *sender;
    weft_broadcast_receiver *receiver;
    CHECK_EQ(weft_broadcast_make(&sender, &receiver, 1, 1), 0);
    weft_broadcast_sender_drop(sender);
    weft_broadcast_sender_drop(sender);
}

static void broadcast_receiver_drop(void)
{
    weft_broadcast_sender *sender;
    weft_broadcast_receiver *receiver;
    CHECK_EQ(weft_broadcast_make(&sender, &receiver, 1, 1), 0);
    weft_broadcast_receiver_drop(receiver);
    weft_broadcast_receiver_drop(receiver);
}

/* --- Scopes and tokens ------------------------------------------------------------------------ */

static void scope_end(void)
{
    weft_scope scope;
    weft_scope_begin(&scope, NULL);
    CHECK_EQ(weft_scope_end(&scope), 0);
    CHECK_EQ(weft_scope_end(&scope), 0);
}

static void scope_drain(void)
{
    weft_scope scope;
    weft_scope_begin(&scope, NULL);
    CHECK_EQ(weft_scope_end(&scope), 0);
    CHECK_EQ(weft_scope_drain(&scope, WEFT_NEVER), 0);
}

static void scope_end_init(void)
{
    weft_scope scope;
    weft_scope_future future;
    weft_scope_begin(&scope, NULL);
    CHECK_EQ(weft_scope_end(&scope), 0);
    weft_scope_end_init(&future, &scope);
}

static int end_scope_in_body(weft_co *co, void *state)
{
    (void)co;
    return weft_scope_end(test_arg(state));
}

/* The message names the future that a stackless task awaits instead. */
static void scope_end_in_body(void)
{
    weft_scope scope;
    weft_scope_begin(&scope, NULL);
    (void)test_join(test_spawn(test_start(1), end_scope_in_body, &scope));
}

static void join_set_end(void)
{
    weft_join_set set;
    CHECK_EQ(weft_join_set_begin(&set, NULL), 0);
    CHECK_EQ(weft_join_set_end(&set), 0);
    CHECK_EQ(weft_join_set_end(&set), 0);
}

static void token_fini(void)
{
    weft_token root;
    weft_token token;
    weft_token_init(&root, NULL);
    weft_token_init(&token, &root);
    weft_token_fini(&token);
    weft_token_fini(&token);
}

static void root_token_fini(void)
{
    weft_token root;
    weft_token_init(&root, NULL);
    weft_token_fini(&root);
    weft_token_fini(&root);
}

static int end_par_scope_twice(void *arg)
{
    weft_par_scope scope;
    (void)arg;
    weft_par_scope_begin(&scope, NULL);
    CHECK_EQ(weft_par_scope_end(&scope), 0);
    return weft_par_scope_end(&scope);
}

static void par_scope_end(void)
{
    (void)test_run(test_start(1), end_par_scope_twice, NULL);
}

static int leave_par_scope_open(void *arg)
{
    weft_par_scope *scope = arg;
    weft_par_scope_begin(scope, NULL);
    weft_par_spawn(scope, return_0, NULL);
    return 0;
}

static weft_par_scope open_scope;

static void par_scope_of_fiber(void)
{
    (void)test_run(test_start(1), leave_par_scope_open, &open_scope);
}

/* --- Locks and similar objects ---------------------------------------------------------------- */

static void mutex_unlock(void)
{
    static weft_mutex mutex;
    CHECK_EQ(weft_mutex_lock(&mutex, WEFT_NEVER), 0);
    weft_mutex_unlock(&mutex);
    weft_mutex_unlock(&mutex);
}

static void rwlock_end_read(void)
{
    static weft_rwlock lock;
    CHECK_EQ(weft_rwlock_read(&lock, WEFT_NEVER), 0);
    weft_rwlock_end_read(&lock);
    weft_rwlock_end_read(&lock);
}

static void rwlock_end_write(void)
{
    static weft_rwlock lock;
    CHECK_EQ(weft_rwlock_write(&lock, WEFT_NEVER), 0);
    weft_rwlock_end_write(&lock);
    weft_rwlock_end_write(&lock);
}

static void wait_group_done(void)
{
    static weft_wait_group group;
    weft_wait_group_add(&group, 1);
    weft_wait_group_done(&group);
    weft_wait_group_done(&group);
}

static void shutdown_leave(void)
{
    static weft_shutdown shutdown;
    CHECK_EQ(weft_shutdown_enter(&shutdown), 0);
    weft_shutdown_leave(&shutdown);
    weft_shutdown_leave(&shutdown);
}

static int leave_shield_twice(void *arg)
{
    (void)arg;
    weft_shield_enter();
    weft_shield_leave();
    weft_shield_leave();
    return 0;
}

static void shield_leave(void)
{
    (void)test_run(test_start(1), leave_shield_twice, NULL);
}

#define DESTROYED " the runtime was destroyed before"
#define DROPPED   " this sender or receiver was dropped before"
#define ENDED     " this handle was joined or detached before"

static void second_end_aborts_with_name_of_call(void)
{
    static const struct {
        void (*run)(void);
        const char *sentence;
    } rows[] = {
        { runtime_destroy, "weft_runtime_destroy:" DESTROYED },
        { runtime_destroy_later, "weft_runtime_destroy:" DESTROYED },
        { runtime_shutdown, "weft_runtime_shutdown:" DESTROYED },
        { runtime_workers, "weft_runtime_workers:" DESTROYED },
        { runtime_stats, "weft_runtime_stats:" DESTROYED },
        { runtime_worker_stats, "weft_worker_stats_read:" DESTROYED },
        { runtime_go, "weft_runtime_go:" DESTROYED },
        { runtime_spawn, "weft_runtime_spawn:" DESTROYED },
        { runtime_spawn_wait, "weft_runtime_spawn_wait:" DESTROYED },
        { runtime_spawn_blocking, "weft_runtime_spawn_blocking:" DESTROYED },
        { runtime_par_run, "weft_par_run:" DESTROYED },
        { runtime_par_broadcast, "weft_par_broadcast:" DESTROYED },
        { runtime_io, "weft_runtime_io:" DESTROYED },
        { join, "weft_join:" ENDED },
        { join_on_fiber, "weft_join:" ENDED },
        { join_detached, "weft_join:" ENDED },
        { join_detached_on_fiber, "weft_join:" ENDED },
        { try_join_detached, "weft_try_join:" ENDED },
        { detach_detached, "weft_detach:" ENDED },
        { try_join, "weft_try_join:" ENDED },
        { detach, "weft_detach:" ENDED },
        { detach_two_times, "weft_detach:" ENDED },
        { cancel, "weft_cancel:" ENDED },
        { retain, "weft_task_retain:" ENDED },
        { sender_drop, "weft_sender_drop:" DROPPED },
        { receiver_drop, "weft_receiver_drop:" DROPPED },
        { watch_sender_drop, "weft_watch_sender_drop: all senders were dropped before" },
        { watch_receiver_drop, "weft_watch_receiver_drop: this receiver was dropped before" },
        { broadcast_sender_drop, "weft_broadcast_sender_drop: all senders were dropped before" },
        { broadcast_receiver_drop,
          "weft_broadcast_receiver_drop: this receiver was dropped before" },
        { scope_end, "weft_scope_end: this scope was ended before" },
        { scope_drain, "weft_scope_drain: this scope was ended before" },
        { scope_end_init, "weft_scope_end_init: this scope was ended before" },
        { scope_end_in_body, "prepare a weft_scope_future" },
        { join_set_end, "weft_join_set_end: this set was ended before" },
        { token_fini, "weft_token_fini: this token was ended before" },
        { root_token_fini, "weft_token_fini: this token was ended before" },
        { par_scope_end, "weft_par_scope_end: this scope was ended before" },
        { par_scope_of_fiber, "returned with a parallel scope that was not ended" },
        { mutex_unlock, "weft_mutex_unlock: the mutex is not locked" },
        { rwlock_end_read, "weft_rwlock_end_read:" },
        { rwlock_end_write, "weft_rwlock_end_write:" },
        { wait_group_done, "weft_wait_group_done: none is under way" },
        { shutdown_leave, "weft_shutdown_leave: nothing is under way" },
        { shield_leave, "weft_shield_leave: no shield is entered" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ABORTS(rows[i].run, rows[i].sentence);
    }
}

TEST_MAIN({
    TEST(second_end_aborts_with_name_of_call),
})
