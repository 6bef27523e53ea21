/* SPDX-License-Identifier: MIT */
/*
 * calls_sync.c - awaiting calls of locks, events and other synchronization: weft/mutex.h,
 * rwlock.h, semaphore.h, event.h, barrier.h, cond.h, once.h, park.h.
 */
#include <stdatomic.h>

#include "calls.h"
#include "rt.h"
#include "test.h"

/* --- weft/mutex.h ------------------------------------------------------------------------- */

struct mutex_state {
    weft_mutex mutex;
    weft_op op;
};
CALL_STATE(struct mutex_state);

static void mutex_setup(void *state)
{
    CHECK(weft_mutex_try_lock(&((struct mutex_state *)state)->mutex));
}

static void mutex_ready(void *state)
{
    weft_mutex_unlock(&((struct mutex_state *)state)->mutex);
}

static int64_t mutex_lock(void *state, weft_time deadline)
{
    return weft_mutex_lock(&((struct mutex_state *)state)->mutex, deadline);
}

static int64_t mutex_hold(void *state, weft_time deadline)
{
    (void)deadline;
    weft_mutex_hold(&((struct mutex_state *)state)->mutex);
    return 0;
}

static weft_future *mutex_prep(void *state)
{
    struct mutex_state *self = state;
    weft_mutex_lock_init(&self->op, &self->mutex);
    return &self->op.future;
}

/* --- weft/rwlock.h ------------------------------------------------------------------------ */

struct rwlock_state {
    weft_rwlock lock;
    weft_op op;
};
CALL_STATE(struct rwlock_state);

static void rwlock_setup(void *state)
{
    CHECK(weft_rwlock_try_write(&((struct rwlock_state *)state)->lock));
}

static void rwlock_ready(void *state)
{
    weft_rwlock_end_write(&((struct rwlock_state *)state)->lock);
}

static int64_t rwlock_read(void *state, weft_time deadline)
{
    return weft_rwlock_read(&((struct rwlock_state *)state)->lock, deadline);
}

static weft_future *rwlock_read_prep(void *state)
{
    struct rwlock_state *self = state;
    weft_rwlock_read_init(&self->op, &self->lock);
    return &self->op.future;
}

static void rwlock_read_undo(void *state)
{
    struct rwlock_state *self = state;
    weft_rwlock_end_read(&self->lock);
    CHECK(weft_rwlock_try_write(&self->lock));
}

static int64_t rwlock_write(void *state, weft_time deadline)
{
    return weft_rwlock_write(&((struct rwlock_state *)state)->lock, deadline);
}

static weft_future *rwlock_write_prep(void *state)
{
    struct rwlock_state *self = state;
    weft_rwlock_write_init(&self->op, &self->lock);
    return &self->op.future;
}

/* --- weft/semaphore.h --------------------------------------------------------------------- */

struct semaphore_state {
    weft_semaphore semaphore;
    weft_op op;
};
CALL_STATE(struct semaphore_state);

static void semaphore_setup(void *state)
{
    weft_semaphore_init(&((struct semaphore_state *)state)->semaphore, 1);
}

static void semaphore_ready(void *state)
{
    weft_semaphore_release(&((struct semaphore_state *)state)->semaphore, 2);
}

static int64_t semaphore_acquire(void *state, weft_time deadline)
{
    return weft_semaphore_acquire(&((struct semaphore_state *)state)->semaphore, 3, deadline);
}

static weft_future *semaphore_prep(void *state)
{
    struct semaphore_state *self = state;
    weft_semaphore_acquire_init(&self->op, &self->semaphore, 3);
    return &self->op.future;
}

static void semaphore_undo(void *state)
{
    struct semaphore_state *self = state;
    CHECK_EQ(weft_semaphore_available(&self->semaphore), 0);
    weft_semaphore_release(&self->semaphore, 1);
}

static void semaphore_close(void *state)
{
    weft_semaphore_close(&((struct semaphore_state *)state)->semaphore);
}

/* --- weft/event.h ------------------------------------------------------------------------- */

struct event_state {
    weft_event event;
    weft_notify notify;
    weft_op op;
};
CALL_STATE(struct event_state);

static void event_ready(void *state)
{
    weft_event_set(&((struct event_state *)state)->event);
}

static int64_t event_wait(void *state, weft_time deadline)
{
    return weft_event_wait(&((struct event_state *)state)->event, deadline);
}

static weft_future *event_prep(void *state)
{
    struct event_state *self = state;
    weft_event_wait_init(&self->op, &self->event);
    return &self->op.future;
}

static void event_undo(void *state)
{
    weft_event_reset(&((struct event_state *)state)->event);
}

static void notify_ready(void *state)
{
    weft_notify_one(&((struct event_state *)state)->notify);
}

static int64_t notify_wait(void *state, weft_time deadline)
{
    return weft_notify_wait(&((struct event_state *)state)->notify, deadline);
}

static weft_future *notify_prep(void *state)
{
    struct event_state *self = state;
    weft_notify_wait_init(&self->op, &self->notify);
    return &self->op.future;
}

/* --- weft/barrier.h ----------------------------------------------------------------------- */

struct barrier_state {
    weft_barrier barrier;
    weft_wait_group group;
    weft_op op;
    weft_task *other;
};
CALL_STATE(struct barrier_state);

static void barrier_setup(void *state)
{
    weft_barrier_init(&((struct barrier_state *)state)->barrier, 2);
}

static int arrive(void *state)
{
    return weft_barrier_wait(&((struct barrier_state *)state)->barrier, WEFT_NEVER);
}

/* The other party arrives first or last. */
static void barrier_ready(void *state)
{
    struct barrier_state *self = state;
    self->other = calls_go(arrive, state);
    test_wait_until_asleep(calls_runtime);
}

static int64_t barrier_wait(void *state, weft_time deadline)
{
    return weft_barrier_wait(&((struct barrier_state *)state)->barrier, deadline);
}

static weft_future *barrier_prep(void *state)
{
    struct barrier_state *self = state;
    weft_barrier_wait_init(&self->op, &self->barrier);
    return &self->op.future;
}

static void barrier_undo(void *state)
{
    struct barrier_state *self = state;
    int result = -1;
    CHECK_EQ(weft_join(self->other, &result, WEFT_NEVER), 0);
    CHECK(result == 0 || result == 1);
    self->other = NULL;
}

static void group_setup(void *state)
{
    weft_wait_group_add(&((struct barrier_state *)state)->group, 1);
}

static void group_ready(void *state)
{
    weft_wait_group_done(&((struct barrier_state *)state)->group);
}

static int64_t group_wait(void *state, weft_time deadline)
{
    return weft_wait_group_wait(&((struct barrier_state *)state)->group, deadline);
}

static weft_future *group_prep(void *state)
{
    struct barrier_state *self = state;
    weft_wait_group_wait_init(&self->op, &self->group);
    return &self->op.future;
}

/* --- weft/cond.h -------------------------------------------------------------------------- */

struct cond_state {
    weft_mutex mutex; /* held outside of a wait */
    weft_cond cond;
    weft_cond_future future;
};
CALL_STATE(struct cond_state);

static void cond_setup(void *state)
{
    CHECK(weft_mutex_try_lock(&((struct cond_state *)state)->mutex));
}

/* A waiter releases the mutex once it is in the queue. */
static void cond_ready(void *state)
{
    struct cond_state *self = state;
    while (!weft_mutex_try_lock(&self->mutex)) {
        (void)sched_yield();
    }
    weft_cond_signal(&self->cond);
    weft_mutex_unlock(&self->mutex);
}

static int64_t cond_wait(void *state, weft_time deadline)
{
    struct cond_state *self = state;
    int result = weft_cond_wait(&self->cond, &self->mutex, deadline);
    CHECK(weft_mutex_is_locked(&self->mutex));
    return result;
}

static weft_future *cond_prep(void *state)
{
    struct cond_state *self = state;
    weft_cond_wait_init(&self->future, &self->cond, &self->mutex);
    return &self->future.future;
}

/* --- weft/once.h -------------------------------------------------------------------------- */

struct once_state {
    weft_once once;
    weft_once_cell cell;
    weft_op op;
    int value;
};
CALL_STATE(struct once_state);

static void once_setup(void *state)
{
    CHECK_EQ(weft_once_begin(&((struct once_state *)state)->once, WEFT_NEVER), 1);
}

/* The running initialization fails, and the next one begins. */
static void once_fail(void *state)
{
    weft_once_end(&((struct once_state *)state)->once, false);
}

static void once_done(void *state)
{
    weft_once_end(&((struct once_state *)state)->once, true);
}

static int64_t once_begin(void *state, weft_time deadline)
{
    return weft_once_begin(&((struct once_state *)state)->once, deadline);
}

static weft_future *once_prep(void *state)
{
    struct once_state *self = state;
    weft_once_begin_init(&self->op, &self->once);
    return &self->op.future;
}

static int never_called(void *arg)
{
    (void)arg;
    CHECK(!"done already");
    return 0;
}

static int64_t once_run(void *state, weft_time deadline)
{
    return weft_once_run(&((struct once_state *)state)->once, never_called, NULL, deadline);
}

static void cell_setup(void *state)
{
    CHECK_EQ(weft_once_begin(&((struct once_state *)state)->cell.once, WEFT_NEVER), 1);
}

static void cell_ready(void *state)
{
    struct once_state *self = state;
    self->cell.value = &self->value;
    weft_once_end(&self->cell.once, true);
}

static int never_made(void **value, void *arg)
{
    (void)value;
    return never_called(arg);
}

static int64_t cell_get(void *state, weft_time deadline)
{
    struct once_state *self = state;
    void *value = NULL;
    int result = weft_once_cell_get_or_make(&self->cell, never_made, NULL, &value, deadline);
    CHECK(result != 0 || value == &self->value);
    return result;
}

/* --- weft/park.h -------------------------------------------------------------------------- */

struct park_state {
    atomic_bool is_open;
    weft_op op;
};
CALL_STATE(struct park_state);

static bool is_shut(void *state)
{
    return !atomic_load(&((struct park_state *)state)->is_open);
}

static void park_ready(void *state)
{
    atomic_store(&((struct park_state *)state)->is_open, true);
    (void)weft_unpark(state, 1);
}

static int64_t park_wait(void *state, weft_time deadline)
{
    return weft_park(state, is_shut, state, deadline);
}

static weft_future *park_prep(void *state)
{
    struct park_state *self = state;
    weft_park_init(&self->op, state, is_shut, state);
    return &self->op.future;
}

static void park_undo(void *state)
{
    atomic_store(&((struct park_state *)state)->is_open, false);
}

static const struct call table[] = {
    { .name = "weft_mutex_lock",
      .setup = mutex_setup,
      .make_ready = mutex_ready,
      .call = mutex_lock,
      .prep = mutex_prep },
    { .name = "weft_mutex_hold",
      .flags = CALL_NO_DEADLINE | CALL_NEVER_CANCELED,
      .setup = mutex_setup,
      .make_ready = mutex_ready,
      .call = mutex_hold },
    { .name = "weft_rwlock_read",
      .setup = rwlock_setup,
      .make_ready = rwlock_ready,
      .call = rwlock_read,
      .prep = rwlock_read_prep,
      .undo = rwlock_read_undo },
    { .name = "weft_rwlock_write",
      .setup = rwlock_setup,
      .make_ready = rwlock_ready,
      .call = rwlock_write,
      .prep = rwlock_write_prep },
    { .name = "weft_semaphore_acquire",
      .setup = semaphore_setup,
      .make_ready = semaphore_ready,
      .call = semaphore_acquire,
      .prep = semaphore_prep,
      .undo = semaphore_undo,
      .close = semaphore_close,
      .closed = WEFT_ECLOSED },
    { .name = "weft_event_wait",
      .make_ready = event_ready,
      .call = event_wait,
      .prep = event_prep,
      .undo = event_undo },
    { .name = "weft_notify_wait",
      .make_ready = notify_ready,
      .call = notify_wait,
      .prep = notify_prep },
    { .name = "weft_barrier_wait",
      .also = 1,
      .setup = barrier_setup,
      .make_ready = barrier_ready,
      .call = barrier_wait,
      .prep = barrier_prep,
      .undo = barrier_undo },
    { .name = "weft_wait_group_wait",
      .setup = group_setup,
      .make_ready = group_ready,
      .call = group_wait,
      .prep = group_prep,
      .undo = group_setup },
    { .name = "weft_cond_wait",
      .flags = CALL_PREPARED_ANEW | CALL_NEVER_READY,
      .setup = cond_setup,
      .make_ready = cond_ready,
      .call = cond_wait,
      .prep = cond_prep },
    { .name = "weft_once_begin",
      .ready = 1,
      .setup = once_setup,
      .make_ready = once_fail,
      .call = once_begin,
      .prep = once_prep },
    { .name = "weft_once_run", .setup = once_setup, .make_ready = once_done, .call = once_run },
    { .name = "weft_once_cell_get_or_make",
      .setup = cell_setup,
      .make_ready = cell_ready,
      .call = cell_get },
    { .name = "weft_park",
      .also = -EAGAIN,
      .make_ready = park_ready,
      .call = park_wait,
      .prep = park_prep,
      .undo = park_undo },
};

CALL_GROUP(calls_sync, table);
