/* SPDX-License-Identifier: MIT */
/*
 * Events by io_uring: what every backend must do, and a kernel that takes nothing for now.
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

static void without_events_nobody_runs(void)
{
    backend_is_idle(WEFT_IO_URING);
}

static void who_waits_for_one_thing_is_not_woken_by_another(void)
{
    backend_waits_for_what_was_asked(WEFT_IO_URING);
}

#ifdef WF_HAS_URING

/* As the kernel itself does when it has to: all polls of this ring end. */
static void end_polls(int fd)
{
    struct io_uring_sync_cancel_reg all = { .flags =
                                                IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL,
                                            .timeout = { -1, -1 } };
    long rc = syscall(SYS_io_uring_register, fd, IORING_REGISTER_SYNC_CANCEL, &all, 1);
    CHECK(rc >= 0 || errno == ENOENT || errno == EINVAL); /* Before Linux 6.0 it cannot. */
}

/* Those of all rings of this process. */
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

/* Also those that last, of who waits for room at a peer that writes no more. */
static void a_poll_that_has_ended_is_made_anew(void)
{
    backend_asks_again(WEFT_IO_URING, end_all_polls);
}

static void after_lost_events_all_is_waited_for_anew(void)
{
    backend_starts_anew(WEFT_IO_URING);
}

static void events_tasks_and_timers_wake(void)
{
    backend_wakes_for_everything(WEFT_IO_URING);
}

static void who_sleeps_in_it_knows_paused_time(void)
{
    backend_knows_paused_time(WEFT_IO_URING);
}

static void a_busy_worker_does_not_freeze_it(void)
{
    backend_does_not_freeze(WEFT_IO_URING);
}

static void events_and_tasks_take_turns(void)
{
    backend_takes_turns(WEFT_IO_URING);
}

static void a_thread_that_has_waited_keeps_nothing(void)
{
    backend_outlives_threads(WEFT_IO_URING);
}

static void who_helps_takes_no_wake_away(void)
{
    backend_keeps_wakes(WEFT_IO_URING);
}

/* --- A kernel without memory ---------------------------------------------------------------- */

enum {
    HELD = 150, /* streams that wait in the kernel */
    MANY = 500, /* more than a ring has entries, and HELD */
};

static _Atomic(bool) refuses;
static _Atomic(uint64_t) refusals;
static _Atomic(uint64_t) taken; /* entries */

#ifdef WF_HAS_URING
struct io_uring;
int __real_io_uring_submit(struct io_uring *ring);
int __wrap_io_uring_submit(struct io_uring *ring);

/* The library's calls come here: see CMakeLists.txt. */
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
static _Atomic(uint64_t) begun; /* readers */

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

static int sleep_a_little(void *arg)
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

/* Meanwhile tasks and timers go on, and nobody asks all the time. */
static void what_the_kernel_does_not_take_is_offered_again(void)
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned i = 0; i < 3; i++) {
        weft_runtime *rt = start(workers[i]);
        atomic_store(&refusals, 0);
        atomic_store(&refuses, true);
        CHECK_EQ(test_run(rt, begin_to_read, NULL), 0);
        weft_time began = weft_now();
        for (unsigned round = 0; round < 20; round++) {
            CHECK_EQ(test_run(rt, sleep_a_little, NULL), 0);
            test_wait_ns(5 * WEFT_MS);
        }
        CHECK_GE(atomic_load(&refusals), 1);
        /* Each ring offers its entries at most once per millisecond. */
        int64_t elapsed_ms = (weft_now() - began) / WEFT_MS;
        CHECK_LE(atomic_load(&refusals), workers[i] * (2 + elapsed_ms));
        CHECK_EQ(weft_try_write(links[0].near, "x", 1), 1);
        atomic_store(&refuses, false);
        CHECK_EQ(test_join_soon(readers[0]), 1);
        CHECK_EQ(test_run(rt, close_first, NULL), 0);
        weft_runtime_destroy(rt);
    }
}

/* Of many readers those that have no place are told; the others wait. They are all on one worker:
 * while this runs, each is where it waits. */
static int read_with_a_full_ring(void *arg)
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

static void a_full_ring_says_that_there_is_no_memory(void)
{
    weft_runtime *rt = start(1);
    CHECK_EQ(test_run(rt, read_with_a_full_ring, NULL), 0);
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

/* Nothing else is watched, so nobody but who naps would hand it over. */
static void a_close_reaches_the_kernel_later(void)
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

static int close_with_a_full_ring(void *arg)
{
    (void)arg;
    atomic_store(&begun, 0);
    atomic_store(&taken, 0);
    for (unsigned i = 0; i < HELD; i++) { /* The kernel has their polls. */
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
    for (unsigned i = 0; i < HELD; i++) { /* The kernel lets go of what was closed. */
        char byte;
        CHECK_EQ(weft_read(links[i].near, &byte, 1, weft_after(60 * WEFT_S)), 0);
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
 * Goal:   a close does not wait for the kernel, and what it has to tell the kernel is not lost.
 * Method: the ring is full of polls that the kernel does not take; streams whose polls the kernel
 *         has are closed.
 */
static void close_with_full_ring_does_not_wait_for_kernel(void)
{
    weft_runtime *rt = start(1);
    CHECK_EQ(test_run(rt, close_with_a_full_ring, NULL), 0);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(without_events_nobody_runs),
    TEST(who_waits_for_one_thing_is_not_woken_by_another),
    TEST(a_poll_that_has_ended_is_made_anew),
    TEST(after_lost_events_all_is_waited_for_anew),
    TEST(events_tasks_and_timers_wake),
    TEST(who_sleeps_in_it_knows_paused_time),
    TEST(a_busy_worker_does_not_freeze_it),
    TEST(events_and_tasks_take_turns),
    TEST(a_thread_that_has_waited_keeps_nothing),
    TEST(who_helps_takes_no_wake_away),
    TEST(what_the_kernel_does_not_take_is_offered_again),
    TEST(a_full_ring_says_that_there_is_no_memory),
    TEST(a_close_reaches_the_kernel_later),
    TEST(close_with_full_ring_does_not_wait_for_kernel),
})
