/* SPDX-License-Identifier: MIT */
/*
 * uring_test.c - io_uring backend: requirements that every backend must meet, and a kernel that
 * temporarily accepts no entries.
 */
#include "io/io.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef WF_HAS_URING
#include <liburing.h>
#endif

#include "backend.h"
#include "links.h"
#include "rt.h"
#include "test.h"
#include "timing.h"

static void idle_backend_uses_no_cpu(void)
{
    backend_is_idle(WEFT_IO_URING);
}

static void waiter_is_woken_only_by_requested_event(void)
{
    backend_waits_for_what_was_asked(WEFT_IO_URING);
}

#ifdef WF_HAS_URING

/* Ends all polls of this ring, as the kernel itself does when it has to. */
static void end_polls(int fd)
{
    struct io_uring_sync_cancel_reg all = { .flags =
                                                IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL,
                                            .timeout = { -1, -1 } };
    long rc = syscall(SYS_io_uring_register, fd, IORING_REGISTER_SYNC_CANCEL, &all, 1);
    CHECK(rc >= 0 || errno == ENOENT || errno == EINVAL); /* Not available before Linux 6.0. */
}

/* Ends the polls of all rings of this process. */
static void end_all_polls(weft_runtime *rt)
{
    (void)rt;
    DIR *folder = opendir("/proc/self/fd");
    CHECK(folder != NULL);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char target[64] = "";
        ssize_t n = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);
        if (n > 0 && strcmp(target, "anon_inode:[io_uring]") == 0) {
            end_polls(atoi(entry->d_name));
        }
    }
    (void)closedir(folder);
}

#else

static void end_all_polls(weft_runtime *rt)
{
    (void)rt;
}

#endif

/* Also multishot polls of a waiter for space whose peer does not write any more. */
static void ended_poll_is_rearmed(void)
{
    backend_asks_again(WEFT_IO_URING, end_all_polls);
}

static void lost_events_rearm_all_polls(void)
{
    backend_starts_anew(WEFT_IO_URING);
}

static void events_tasks_and_timers_wake_workers(void)
{
    backend_wakes_for_everything(WEFT_IO_URING);
}

static void parked_worker_respects_paused_clock(void)
{
    backend_knows_paused_time(WEFT_IO_URING);
}

static void busy_worker_does_not_freeze_backend(void)
{
    backend_does_not_freeze(WEFT_IO_URING);
}

static void events_and_tasks_alternate(void)
{
    backend_takes_turns(WEFT_IO_URING);
}

static void thread_that_has_waited_leaks_nothing(void)
{
    backend_outlives_threads(WEFT_IO_URING);
}

static void remote_poll_does_not_consume_wakes(void)
{
    backend_keeps_wakes(WEFT_IO_URING);
}

/* --- A kernel out of memory ----------------------------------------------------------------- */

enum {
    HELD = 150, /* streams that wait in the kernel */
    MANY = 500, /* more than a ring has entries, plus HELD */
};

static _Atomic(bool) refuses;
static _Atomic(uint64_t) refusals;
static _Atomic(uint64_t) taken; /* number of entries */

#ifdef WF_HAS_URING
struct io_uring;
int __real_io_uring_submit(struct io_uring *ring);
int __wrap_io_uring_submit(struct io_uring *ring);

/* The library's calls are redirected here: see CMakeLists.txt. */
int __wrap_io_uring_submit(struct io_uring *ring)
{
    if (!atomic_load(&refuses)) {
        int count = __real_io_uring_submit(ring);
        atomic_fetch_add(&taken, count > 0 ? (uint64_t)count : 0);
        return count;
    }
    atomic_fetch_add(&refusals, 1);
    return -EAGAIN;
}
#endif

static struct link links[MANY];
static weft_task *readers[MANY];
static weft_stream *adopted;
static _Atomic(uint64_t) begun; /* number of readers */

static weft_runtime *start(unsigned workers)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = workers;
    config.io = WEFT_IO_URING;
    return test_start_with(&config);
}

static int read_byte(void *stream)
{
    char byte;
    atomic_fetch_add(&begun, 1);
    return (int)weft_read(stream, &byte, 1, WEFT_NEVER);
}

static int begin_to_read(void *arg)
{
    links[0] = link_open(LINK_LOCAL);
    CHECK_EQ(weft_go(&readers[0], read_byte, links[0].far), 0);
    (void)arg;
    return 0;
}

static int sleep_briefly(void *arg)
{
    (void)arg;
    return weft_sleep(WEFT_MS);
}

static int close_first(void *arg)
{
    (void)arg;
    link_close(&links[0]);
    return 0;
}

/* Meanwhile tasks and timers run, and no worker retries in a busy loop. */
static void rejected_entries_are_resubmitted(void)
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned i = 0; i < 3; i++) {
        weft_runtime *rt = start(workers[i]);
        atomic_store(&refusals, 0);
        atomic_store(&refuses, true);
        CHECK_EQ(test_run(rt, begin_to_read, NULL), 0);
        weft_time began = weft_now();
        for (unsigned round = 0; round < 20; round++) {
            CHECK_EQ(test_run(rt, sleep_briefly, NULL), 0);
            test_wait_ns(5 * WEFT_MS);
        }
        CHECK_GE(atomic_load(&refusals), 1);
        /* Each ring submits its entries at most once per millisecond. */
        int64_t elapsed_ms = (weft_now() - began) / WEFT_MS;
        CHECK_LE(atomic_load(&refusals), workers[i] * (2 + elapsed_ms));
        CHECK_EQ(weft_try_write(links[0].near, "x", 1), 1);
        atomic_store(&refuses, false);
        CHECK_EQ(test_join_soon(readers[0]), 1);
        CHECK_EQ(test_run(rt, close_first, NULL), 0);
        weft_runtime_destroy(rt);
    }
}

/*
 * Of many readers, those without an entry get an error and the others wait. All of them run on
 * one worker, so each is suspended while this task runs.
 */
static int read_with_full_ring(void *arg)
{
    unsigned refused = 0;
    (void)arg;
    atomic_store(&begun, 0);
    atomic_store(&refuses, true);
    for (unsigned i = 0; i < MANY; i++) {
        links[i] = link_open(LINK_PIPE);
        CHECK_EQ(weft_go(&readers[i], read_byte, links[i].far), 0);
    }
    while (atomic_load(&begun) < MANY) {
        CHECK_EQ(weft_yield(), 0);
    }
    for (unsigned i = 0; i < MANY; i++) {
        refused += weft_task_is_done(readers[i]);
    }
    CHECK(refused > 0 && refused < MANY);
    atomic_store(&refuses, false);
    for (unsigned i = 0; i < MANY; i++) {
        CHECK_EQ(weft_write_all(links[i].near, "x", 1, WEFT_NEVER), 0);
        int result = test_join_soon(readers[i]);
        CHECK(result == 1 || result == -ENOMEM);
        refused -= result == -ENOMEM;
        link_close(&links[i]);
    }
    CHECK_EQ(refused, 0);
    return 0;
}

static void full_ring_returns_enomem(void)
{
    weft_runtime *rt = start(1);
    CHECK_EQ(test_run(rt, read_with_full_ring, NULL), 0);
    weft_runtime_destroy(rt);
}

static int begin_to_read_adopted(void *arg)
{
    CHECK_EQ(weft_stream_adopt(&adopted, *(int *)arg), 0);
    atomic_store(&taken, 0);
    CHECK_EQ(weft_go(&readers[0], read_byte, adopted), 0);
    while (atomic_load(&taken) == 0) { /* Its poll is the first of this runtime. */
        CHECK_EQ(weft_yield(), 0);
    }
    return 0;
}

static int close_adopted(void *arg)
{
    (void)arg;
    atomic_store(&refuses, true);
    weft_stream_close(adopted);
    return 0;
}

/* Nothing else is registered, so only the worker in its backoff can submit it. */
static void close_is_submitted_later(void)
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned i = 0; i < 3; i++) {
        weft_runtime *rt = start(workers[i]);
        int ends[2];
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        CHECK_EQ(test_run(rt, begin_to_read_adopted, &ends[0]), 0);
        CHECK_EQ(test_run(rt, close_adopted, NULL), 0);
        CHECK_EQ(test_join_soon(readers[0]), WEFT_ECLOSED);
        struct pollfd end = { .fd = ends[1], .events = POLLIN };
        CHECK_EQ(poll(&end, 1, 20), 0);
        atomic_store(&refuses, false);
        CHECK_EQ(poll(&end, 1, 60 * 1000), 1);
        CHECK_EQ(close(ends[1]), 0);
        weft_runtime_destroy(rt);
    }
}

static int close_with_full_ring(void *arg)
{
    (void)arg;
    atomic_store(&begun, 0);
    atomic_store(&taken, 0);
    for (unsigned i = 0; i < HELD; i++) { /* The kernel has accepted their polls. */
        links[i] = link_open(LINK_LOCAL);
        CHECK_EQ(weft_go(&readers[i], read_byte, links[i].far), 0);
    }
    while (atomic_load(&taken) < HELD) {
        CHECK_EQ(weft_yield(), 0);
    }
    atomic_store(&refuses, true);
    for (unsigned i = HELD; i < MANY; i++) { /* These fill the ring. */
        links[i] = link_open(LINK_PIPE);
        CHECK_EQ(weft_go(&readers[i], read_byte, links[i].far), 0);
    }
    while (atomic_load(&begun) < MANY) {
        CHECK_EQ(weft_yield(), 0);
    }
    unsigned refused = 0;
    for (unsigned i = HELD; i < MANY; i++) {
        refused += weft_task_is_done(readers[i]);
    }
    CHECK(refused > 0);
    for (unsigned i = 0; i < HELD; i++) {
        weft_stream_close(links[i].far);
        CHECK_EQ(test_join_soon(readers[i]), WEFT_ECLOSED);
    }
    atomic_store(&refuses, false);
    for (unsigned i = 0; i < HELD; i++) { /* The kernel releases the closed descriptors. */
        char byte;
        CHECK_EQ(weft_read(links[i].near, &byte, 1, test_deadline()), 0);
        weft_stream_close(links[i].near);
    }
    for (unsigned i = HELD; i < MANY; i++) {
        weft_cancel(readers[i]);
        int result = test_join_soon(readers[i]);
        CHECK(result == WEFT_ECANCELED || result == -ENOMEM);
        link_close(&links[i]);
    }
    return 0;
}

/*
 * Goal:   a close does not wait for the kernel, and its requests to the kernel are not lost.
 * Method: the ring is full of polls that the kernel does not accept. Close streams whose polls
 *         the kernel has.
 */
static void close_with_full_ring_does_not_wait_for_kernel(void)
{
    weft_runtime *rt = start(1);
    CHECK_EQ(test_run(rt, close_with_full_ring, NULL), 0);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(idle_backend_uses_no_cpu),
    TEST(waiter_is_woken_only_by_requested_event),
    TEST(ended_poll_is_rearmed),
    TEST(lost_events_rearm_all_polls),
    TEST(events_tasks_and_timers_wake_workers),
    TEST(parked_worker_respects_paused_clock),
    TEST(busy_worker_does_not_freeze_backend),
    TEST(events_and_tasks_alternate),
    TEST(thread_that_has_waited_leaks_nothing),
    TEST(remote_poll_does_not_consume_wakes),
    TEST(rejected_entries_are_resubmitted),
    TEST(full_ring_returns_enomem),
    TEST(close_is_submitted_later),
    TEST(close_with_full_ring_does_not_wait_for_kernel),
})
