/* SPDX-License-Identifier: MIT */
/*
 * source_test.c - sources: the known readiness of a descriptor, and its waiters. The tests report
 * the events themselves, instead of the kernel.
 */
#include "io/source.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <weft.h>

#include "io/io.h"
#include "rt.h"
#include "test.h"

static void on_fiber(int (*function)(void *arg))
{
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_run(rt, function, NULL), 0);
    weft_runtime_destroy(rt);
}

static struct wf_source *open_source(void)
{
    struct wf_source *source;
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQ(wf_source_open(wf_io_must("test"), fd, &source), 0);
    (void)wf_source_publish(source);
    return source;
}

static void fire(struct wf_source *source, unsigned events)
{
    wf_source_fire(source->io, wf_source_tag(source), events);
}

static bool is_readable(const struct wf_source *source)
{
    return (wf_source_look(source) & WF_SOURCE_READABLE) != 0;
}

static bool is_writable(const struct wf_source *source)
{
    return (wf_source_look(source) & WF_SOURCE_WRITABLE) != 0;
}

static int exhaust(void *arg)
{
    (void)arg;
    struct wf_source *source = open_source();
    CHECK(is_readable(source));
    CHECK(is_writable(source));
    wf_source_exhausted(source, wf_source_look(source), WF_SOURCE_READABLE);
    CHECK(!is_readable(source));
    CHECK(is_writable(source));
    fire(source, WF_EVENT_READ);
    CHECK(is_readable(source));
    /* An event since the look: the source is not exhausted. */
    uint32_t seen = wf_source_look(source);
    fire(source, WF_EVENT_READ);
    wf_source_exhausted(source, seen, WF_SOURCE_READABLE);
    CHECK(is_readable(source));
    wf_source_exhausted(source, wf_source_look(source), WF_SOURCE_READABLE | WF_SOURCE_WRITABLE);
    fire(source, WF_EVENT_WRITE);
    CHECK(!is_readable(source));
    CHECK(is_writable(source));
    fire(source, WF_EVENT_END);
    CHECK(is_readable(source));
    wf_source_close(wf_source_handle(source));
    return 0;
}

static void event_keeps_source_ready(void)
{
    on_fiber(exhaust);
}

static int move(void *arg)
{
    (void)arg;
    struct wf_source *source = open_source();
    wf_source_moved(source, wf_source_look(source), WF_SOURCE_READABLE, 5, 10);
    CHECK(is_readable(source)); /* It is not known to be everything. */
    source->drains = true;
    wf_source_moved(source, wf_source_look(source), WF_SOURCE_READABLE, 10, 10);
    CHECK(is_readable(source));
    wf_source_moved(source, wf_source_look(source), WF_SOURCE_READABLE, 9, 10);
    CHECK(!is_readable(source));
    /* No event follows an end. */
    fire(source, WF_EVENT_END);
    wf_source_moved(source, wf_source_look(source), WF_SOURCE_READABLE, 9, 10);
    CHECK(is_readable(source));
    wf_source_close(wf_source_handle(source));
    return 0;
}

static void short_transfer_may_exhaust_source(void)
{
    on_fiber(move);
}

static int be_late(void *arg)
{
    (void)arg;
    struct wf_source *first = open_source();
    struct wf_io *io = first->io;
    uint64_t tag = wf_source_tag(first);
    wf_source_close(wf_source_handle(first));
    struct wf_source *second = open_source();
    CHECK(second == first);
    CHECK_NE(wf_source_tag(second), tag);
    wf_source_exhausted(second, wf_source_look(second), WF_SOURCE_READABLE);
    wf_source_fire(io, tag, WF_EVENT_READ);
    CHECK(!is_readable(second));
    wf_source_fire(io, wf_source_tag(second), WF_EVENT_READ);
    CHECK(is_readable(second));
    wf_source_close(wf_source_handle(second));
    return 0;
}

static void event_of_previous_descriptor_is_ignored(void)
{
    on_fiber(be_late);
}

static int close_while_used(void *arg)
{
    (void)arg;
    struct wf_source *source = open_source();
    struct wf_source *entered;
    void *handle = wf_source_handle(source);
    int fd = source->fd;
    CHECK_EQ(wf_source_enter(handle, &entered), 0);
    CHECK(entered == source);
    CHECK_EQ(wf_source_enter(handle, &entered), 0);
    CHECK_EQ(wf_source_give_up(source), -EBUSY);
    wf_source_leave(source);
    wf_source_close(handle);
    CHECK_NE(fcntl(fd, F_GETFD), -1); /* A user is left. */
    CHECK_EQ(wf_source_give_up(source), WEFT_ECLOSED);
    CHECK_EQ(wf_source_enter(handle, &entered), WEFT_ECLOSED);
    CHECK_NE(fcntl(fd, F_GETFD), -1);
    struct wf_source *other = open_source();
    CHECK(other != source);
    wf_source_leave(source);
    CHECK_EQ(fcntl(fd, F_GETFD), -1);
    CHECK(open_source() == source);
    wf_source_close(wf_source_handle(source));
    wf_source_close(wf_source_handle(other));
    return 0;
}

static void last_user_closes_descriptor(void)
{
    on_fiber(close_while_used);
}

static int give_up(void *arg)
{
    (void)arg;
    struct wf_source *source = open_source();
    void *handle = wf_source_handle(source);
    int fd = source->fd;
    CHECK_EQ(wf_source_enter(handle, &source), 0);
    CHECK_EQ(wf_source_give_up(source), fd);
    CHECK_NE(fcntl(fd, F_GETFD), -1);
    CHECK_EQ(wf_source_enter(handle, &source), WEFT_ECLOSED);
    CHECK_EQ(close(fd), 0);
    return 0;
}

static void released_descriptor_stays_open(void)
{
    on_fiber(give_up);
}

/* --- Generations ------------------------------------------------------------------------ */

static int reuse(void *arg)
{
    (void)arg;
    struct wf_source *first = open_source();
    struct wf_source *entered;
    void *stale = wf_source_handle(first);
    wf_source_close(stale);
    struct wf_source *second = open_source();
    CHECK(second == first);
    uint64_t users = second->users;
    CHECK_EQ(wf_source_enter(stale, &entered), WEFT_ECLOSED);
    wf_source_close(stale);
    CHECK_EQ(second->users, users); /* It was not even counted. */
    CHECK_EQ(wf_source_enter(wf_source_handle(second), &entered), 0);
    wf_source_leave(second);
    wf_source_close(wf_source_handle(second));
    return 0;
}

static void stale_handle_does_not_touch_next_source(void)
{
    on_fiber(reuse);
}

static int use_up_generations(void *arg)
{
    (void)arg;
    struct wf_source *source = open_source();
    struct wf_source *entered;
    uint64_t low = ~WF_SOURCE_GENERATION;
    source->users = WF_SOURCE_GENERATION | (source->users & low); /* The last one. */
    void *last = wf_source_handle(source);
    CHECK_EQ(wf_source_enter(last, &entered), 0);
    wf_source_leave(source);
    wf_source_close(last);
    CHECK_EQ(wf_source_enter(last, &entered), WEFT_ECLOSED);
    struct wf_source *next = open_source();
    CHECK(next != source);
    CHECK_EQ(wf_source_enter(last, &entered), WEFT_ECLOSED);
    wf_source_close(wf_source_handle(next));
    return 0;
}

static void source_without_generations_left_is_not_reused(void)
{
    on_fiber(use_up_generations);
}

static int count_to_limit(void *arg)
{
    (void)arg;
    struct wf_source *source = open_source();
    struct wf_source *entered;
    void *handle = wf_source_handle(source);
    source->users += WF_SOURCE_USERS_MAX - 2;
    CHECK_EQ(wf_source_enter(handle, &entered), 0);
    CHECK_EQ(wf_source_enter(handle, &entered), -EBUSY);
    wf_source_leave(source);
    source->users -= WF_SOURCE_USERS_MAX - 2;
    wf_source_close(handle);
    return 0;
}

static void enter_beyond_user_limit_fails(void)
{
    on_fiber(count_to_limit);
}

/* --- Waiters ---------------------------------------------------------------------------- */

enum {
    WAITERS = 3,
};

static weft_op ops[WAITERS];

static int poll_op(weft_op *op)
{
    return op->future.ops->poll(&op->future);
}

/* Enqueues all waiters, of a source or of a handle. */
static void enqueue_waiters(struct wf_source *source, uint32_t what, bool is_ours)
{
    for (unsigned i = 0; i < WAITERS; i++) {
        if (is_ours) {
            wf_source_wait_init(&ops[i], source, what);
        } else {
            wf_source_ready_init(&ops[i], wf_source_handle(source), what);
        }
        CHECK_EQ(poll_op(&ops[i]), WEFT_PENDING);
    }
}

static int grant_one(void *arg)
{
    (void)arg;
    struct wf_source *source = open_source();
    wf_source_exhausted(source, wf_source_look(source), WF_SOURCE_READABLE);
    enqueue_waiters(source, WF_SOURCE_READABLE, true);
    fire(source, WF_EVENT_READ);
    CHECK_EQ(poll_op(&ops[0]), 0);
    CHECK_EQ(poll_op(&ops[1]), WEFT_PENDING);
    /* It has found something: there may be more. */
    uint32_t seen = wf_source_look(source);
    wf_source_moved(source, seen, WF_SOURCE_READABLE, 8, 8);
    CHECK_EQ(poll_op(&ops[1]), 0);
    CHECK_EQ(poll_op(&ops[2]), WEFT_PENDING);
    /* It has found nothing: the next one keeps waiting. */
    wf_source_exhausted(source, wf_source_look(source), WF_SOURCE_READABLE);
    wf_source_pass_on(source, WF_SOURCE_READABLE);
    CHECK_EQ(poll_op(&ops[2]), WEFT_PENDING);
    fire(source, WF_EVENT_WRITE);
    CHECK_EQ(poll_op(&ops[2]), WEFT_PENDING);
    wf_source_close(wf_source_handle(source));
    CHECK_EQ(poll_op(&ops[2]), WEFT_ECLOSED);
    return 0;
}

static void event_wakes_one_waiter_and_is_passed_on(void)
{
    on_fiber(grant_one);
}

static int grant_to_others(void *arg)
{
    (void)arg;
    struct wf_source *source = open_source();
    wf_source_exhausted(source, wf_source_look(source), WF_SOURCE_READABLE);
    enqueue_waiters(source, WF_SOURCE_READABLE, false);
    fire(source, WF_EVENT_READ);
    CHECK_EQ(poll_op(&ops[1]), WEFT_PENDING);
    for (unsigned i = 0; i < WAITERS; i++) {
        CHECK_EQ(poll_op(&ops[i]), 0);
    }
    wf_source_close(wf_source_handle(source));
    return 0;
}

static void readiness_waiter_passes_event_on_immediately(void)
{
    on_fiber(grant_to_others);
}

static int end_all(void *arg)
{
    (void)arg;
    struct wf_source *source = open_source();
    wf_source_exhausted(source, wf_source_look(source), WF_SOURCE_READABLE);
    enqueue_waiters(source, WF_SOURCE_READABLE, true);
    fire(source, WF_EVENT_END);
    for (unsigned i = 0; i < WAITERS; i++) {
        CHECK_EQ(poll_op(&ops[i]), 0);
    }
    wf_source_close(wf_source_handle(source));
    return 0;
}

static void end_wakes_all_waiters(void)
{
    on_fiber(end_all);
}

static int leave_early(void *arg)
{
    (void)arg;
    struct wf_source *source = open_source();
    wf_source_exhausted(source, wf_source_look(source), WF_SOURCE_READABLE);
    enqueue_waiters(source, WF_SOURCE_READABLE, true);
    CHECK((wf_source_look(source) & WF_SOURCE_READERS) != 0);
    CHECK(ops[0].future.ops->cancel(&ops[0].future));
    CHECK_EQ(poll_op(&ops[0]), WEFT_ECANCELED);
    fire(source, WF_EVENT_READ);
    CHECK_EQ(poll_op(&ops[1]), 0);
    CHECK(ops[2].future.ops->cancel(&ops[2].future));
    CHECK((wf_source_look(source) & WF_SOURCE_READERS) == 0);
    wf_source_close(wf_source_handle(source));
    return 0;
}

static void canceled_waiter_is_not_granted_event(void)
{
    on_fiber(leave_early);
}

/* --- Confirmed readiness ---------------------------------------------------------------- */

static int ask_kernel(void *arg)
{
    (void)arg;
    struct wf_source *source = open_source();
    uint64_t one = 1;
    CHECK(is_readable(source)); /* Possibly. */
    wf_source_ready_init(&ops[0], wf_source_handle(source), WF_SOURCE_READABLE);
    CHECK_EQ(weft_await(&ops[0].future, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(write(source->fd, &one, sizeof one), sizeof one);
    wf_source_ready_init(&ops[0], wf_source_handle(source), WF_SOURCE_READABLE);
    CHECK_EQ(weft_await(&ops[0].future, WEFT_NEVER), 0);
    wf_source_close(wf_source_handle(source));
    return 0;
}

static void readiness_waiter_is_not_woken_too_early(void)
{
    on_fiber(ask_kernel);
}

TEST_MAIN({
    TEST(event_keeps_source_ready),
    TEST(short_transfer_may_exhaust_source),
    TEST(event_of_previous_descriptor_is_ignored),
    TEST(last_user_closes_descriptor),
    TEST(released_descriptor_stays_open),
    TEST(stale_handle_does_not_touch_next_source),
    TEST(source_without_generations_left_is_not_reused),
    TEST(enter_beyond_user_limit_fails),
    TEST(event_wakes_one_waiter_and_is_passed_on),
    TEST(readiness_waiter_passes_event_on_immediately),
    TEST(end_wakes_all_waiters),
    TEST(canceled_waiter_is_not_granted_event),
    TEST(readiness_waiter_is_not_woken_too_early),
})
