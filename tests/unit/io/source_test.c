/* SPDX-License-Identifier: MIT */
/*
 * What is known of a descriptor, and who waits for more. A test says itself what the kernel
 * would say.
 */
#include "io/source.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <weft.h>

#include "io/io.h"
#include "rt.h"
#include "test.h"

static void on_a_fiber(int (*function)(void *arg))
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
    /* News since it was looked at: it is not exhausted. */
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

static void news_keep_it_ready(void)
{
    on_a_fiber(exhaust);
}

static int move(void *arg)
{
    (void)arg;
    struct wf_source *source = open_source();
    wf_source_moved(source, wf_source_look(source), WF_SOURCE_READABLE, 5, 10);
    CHECK(is_readable(source)); /* It is not known to be all. */
    source->drains = true;
    wf_source_moved(source, wf_source_look(source), WF_SOURCE_READABLE, 10, 10);
    CHECK(is_readable(source));
    wf_source_moved(source, wf_source_look(source), WF_SOURCE_READABLE, 9, 10);
    CHECK(!is_readable(source));
    /* Behind an end no event follows. */
    fire(source, WF_EVENT_END);
    wf_source_moved(source, wf_source_look(source), WF_SOURCE_READABLE, 9, 10);
    CHECK(is_readable(source));
    wf_source_close(wf_source_handle(source));
    return 0;
}

static void less_than_was_wanted_may_be_all(void)
{
    on_a_fiber(move);
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

static void an_event_of_the_last_descriptor_is_for_nobody(void)
{
    on_a_fiber(be_late);
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
    CHECK_NE(fcntl(fd, F_GETFD), -1); /* Somebody is at it. */
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

static void the_last_user_closes_the_descriptor(void)
{
    on_a_fiber(close_while_used);
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

static void a_descriptor_that_is_given_up_stays_open(void)
{
    on_a_fiber(give_up);
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
    on_a_fiber(reuse);
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

static void source_without_generations_left_is_not_used_again(void)
{
    on_a_fiber(use_up_generations);
}

static int count_to_the_limit(void *arg)
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

static void enter_beyond_the_limit_of_users_fails(void)
{
    on_a_fiber(count_to_the_limit);
}

/* --- Who waits -------------------------------------------------------------------------- */

enum {
    WAITERS = 3,
};

static weft_op ops[WAITERS];

static int poll_op(weft_op *op)
{
    return op->future.ops->poll(&op->future);
}

/* Prepares so many who wait, of ours or of others; on a body's or fiber's task. */
static void enlist(struct wf_source *source, uint32_t what, bool is_ours)
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
    enlist(source, WF_SOURCE_READABLE, true);
    fire(source, WF_EVENT_READ);
    CHECK_EQ(poll_op(&ops[0]), 0);
    CHECK_EQ(poll_op(&ops[1]), WEFT_PENDING);
    /* It has found something: there may be more. */
    uint32_t seen = wf_source_look(source);
    wf_source_moved(source, seen, WF_SOURCE_READABLE, 8, 8);
    CHECK_EQ(poll_op(&ops[1]), 0);
    CHECK_EQ(poll_op(&ops[2]), WEFT_PENDING);
    /* It has found nothing: the next one waits. */
    wf_source_exhausted(source, wf_source_look(source), WF_SOURCE_READABLE);
    wf_source_pass_on(source, WF_SOURCE_READABLE);
    CHECK_EQ(poll_op(&ops[2]), WEFT_PENDING);
    fire(source, WF_EVENT_WRITE);
    CHECK_EQ(poll_op(&ops[2]), WEFT_PENDING);
    wf_source_close(wf_source_handle(source));
    CHECK_EQ(poll_op(&ops[2]), WEFT_ECLOSED);
    return 0;
}

static void an_event_is_for_one_and_passed_on(void)
{
    on_a_fiber(grant_one);
}

static int grant_to_others(void *arg)
{
    (void)arg;
    struct wf_source *source = open_source();
    wf_source_exhausted(source, wf_source_look(source), WF_SOURCE_READABLE);
    enlist(source, WF_SOURCE_READABLE, false);
    fire(source, WF_EVENT_READ);
    CHECK_EQ(poll_op(&ops[1]), WEFT_PENDING);
    for (unsigned i = 0; i < WAITERS; i++) {
        CHECK_EQ(poll_op(&ops[i]), 0);
    }
    wf_source_close(wf_source_handle(source));
    return 0;
}

static void who_does_not_try_passes_it_on_at_once(void)
{
    on_a_fiber(grant_to_others);
}

static int end_all(void *arg)
{
    (void)arg;
    struct wf_source *source = open_source();
    wf_source_exhausted(source, wf_source_look(source), WF_SOURCE_READABLE);
    enlist(source, WF_SOURCE_READABLE, true);
    fire(source, WF_EVENT_END);
    for (unsigned i = 0; i < WAITERS; i++) {
        CHECK_EQ(poll_op(&ops[i]), 0);
    }
    wf_source_close(wf_source_handle(source));
    return 0;
}

static void an_end_is_for_all(void)
{
    on_a_fiber(end_all);
}

static int leave_early(void *arg)
{
    (void)arg;
    struct wf_source *source = open_source();
    wf_source_exhausted(source, wf_source_look(source), WF_SOURCE_READABLE);
    enlist(source, WF_SOURCE_READABLE, true);
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

static void who_has_left_is_not_granted_anything(void)
{
    on_a_fiber(leave_early);
}

/* --- Really ready? ---------------------------------------------------------------------- */

static int ask_the_kernel(void *arg)
{
    (void)arg;
    struct wf_source *source = open_source();
    uint64_t one = 1;
    CHECK(is_readable(source)); /* Perhaps. */
    wf_source_ready_init(&ops[0], wf_source_handle(source), WF_SOURCE_READABLE);
    CHECK_EQ(weft_await(&ops[0].future, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(write(source->fd, &one, sizeof one), sizeof one);
    wf_source_ready_init(&ops[0], wf_source_handle(source), WF_SOURCE_READABLE);
    CHECK_EQ(weft_await(&ops[0].future, WEFT_NEVER), 0);
    wf_source_close(wf_source_handle(source));
    return 0;
}

static void who_does_not_try_is_not_told_too_early(void)
{
    on_a_fiber(ask_the_kernel);
}

TEST_MAIN({
    TEST(news_keep_it_ready),
    TEST(less_than_was_wanted_may_be_all),
    TEST(an_event_of_the_last_descriptor_is_for_nobody),
    TEST(the_last_user_closes_the_descriptor),
    TEST(a_descriptor_that_is_given_up_stays_open),
    TEST(stale_handle_does_not_touch_next_source),
    TEST(source_without_generations_left_is_not_used_again),
    TEST(enter_beyond_the_limit_of_users_fails),
    TEST(an_event_is_for_one_and_passed_on),
    TEST(who_does_not_try_passes_it_on_at_once),
    TEST(an_end_is_for_all),
    TEST(who_has_left_is_not_granted_anything),
    TEST(who_does_not_try_is_not_told_too_early),
})
