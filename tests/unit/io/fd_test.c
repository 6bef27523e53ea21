/* SPDX-License-Identifier: MIT */
/*
 * fd_test.c - readiness of descriptors that belong to libraries with their own reads and writes.
 */
#include <weft/io.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "crowd.h"
#include "io/source.h"
#include "links.h"
#include "rt.h"
#include "test.h"

enum {
    EITHER = WEFT_READABLE | WEFT_WRITABLE,
};

static int ends[2];

static void run_with_pair(int (*function)(void *arg))
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned i = 0; i < 3; i++) {
        weft_runtime *rt = test_start(workers[i]);
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
        CHECK_EQ(test_run(rt, function, NULL), 0);
        (void)close(ends[0]);
        (void)close(ends[1]);
        weft_runtime_destroy(rt);
    }
}

static int write_soon(void *arg)
{
    CHECK_EQ(weft_sleep(WEFT_MS), 0);
    CHECK_EQ(write(ends[1], arg, 3), 3);
    return 0;
}

static int wait_for_bytes(void *arg)
{
    (void)arg;
    weft_fd *handle;
    weft_task *writer;
    char text[] = "abc";
    char buffer[8];
    CHECK_EQ(weft_fd_open(&handle, ends[0]), 0);
    CHECK_EQ(weft_fd_wait(handle, WEFT_READABLE, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    for (unsigned i = 0; i < 10; i++) {
        CHECK_EQ(weft_go(&writer, write_soon, text), 0);
        CHECK_EQ(weft_fd_wait(handle, WEFT_READABLE, WEFT_NEVER), WEFT_READABLE);
        /* Readiness is level-triggered. */
        CHECK_EQ(read(ends[0], buffer, 1), 1);
        CHECK_EQ(weft_fd_wait(handle, WEFT_READABLE, WEFT_NEVER), WEFT_READABLE);
        CHECK_EQ(weft_fd_wait(handle, EITHER, WEFT_NEVER), EITHER);
        CHECK_EQ(read(ends[0], buffer, 8), 2);
        CHECK_EQ(weft_fd_wait(handle, EITHER, WEFT_NEVER), WEFT_WRITABLE);
        CHECK_EQ(weft_fd_wait(handle, WEFT_READABLE, 0), WEFT_ETIMEDOUT);
        CHECK_EQ(weft_join(writer, NULL, WEFT_NEVER), 0);
    }
    CHECK_EQ(weft_fd_wait(handle, 0, WEFT_NEVER), -EINVAL);
    CHECK_EQ(weft_fd_wait(handle, 8, WEFT_NEVER), -EINVAL);
    weft_fd_close(handle);
    CHECK_NE(fcntl(ends[0], F_GETFD), -1);
    return 0;
}

static void readiness_lasts_until_data_is_read(void)
{
    run_with_pair(wait_for_bytes);
}

/* Returns the number of bytes that fit. */
static uint64_t fill_up(void)
{
    static char data[65536];
    uint64_t all = 0;
    ssize_t n;
    while ((n = write(ends[0], data, sizeof data)) > 0) {
        all += (uint64_t)n;
    }
    return all;
}

static int drain_soon(void *arg)
{
    static char data[65536];
    uint64_t left = *(uint64_t *)arg;
    CHECK_EQ(weft_sleep(WEFT_MS), 0);
    while (left > 0) {
        ssize_t n = read(ends[1], data, sizeof data);
        CHECK(n > 0);
        left -= (uint64_t)n;
    }
    return 0;
}

static int wait_for_room(void *arg)
{
    (void)arg;
    weft_fd *handle;
    weft_task *reader;
    CHECK_EQ(weft_fd_open(&handle, ends[0]), 0);
    for (unsigned i = 0; i < 5; i++) {
        uint64_t full = fill_up();
        CHECK_EQ(weft_go(&reader, drain_soon, &full), 0);
        CHECK_EQ(weft_fd_wait(handle, i % 2 == 0 ? WEFT_WRITABLE : EITHER, WEFT_NEVER),
                 WEFT_WRITABLE);
        CHECK_EQ(weft_join(reader, NULL, WEFT_NEVER), 0);
    }
    weft_fd_close(handle);
    return 0;
}

static void waiter_for_space_is_woken(void)
{
    run_with_pair(wait_for_room);
}

/* --- Readiness of one direction and waits for the other ---------------------------------- */

static void empty(int fd)
{
    static char data[65536];
    while (read(fd, data, sizeof data) > 0) {
    }
}

/* Makes ends[0] ready for exactly these events. */
static void make_ready(unsigned events)
{
    empty(ends[0]);
    if ((events & WEFT_READABLE) != 0) {
        CHECK_EQ(write(ends[1], "x", 1), 1);
    }
    if ((events & WEFT_WRITABLE) != 0) {
        empty(ends[1]);
    } else {
        (void)fill_up();
    }
}

/*
 * Goal:   a wait that times out does not hide the readiness that a wait for other events finds.
 * Method: all pairs of waits for a descriptor in each state. A deadline of 0 makes each wait
 *         check and return. Each pair uses a new handle, so that no event of the previous pair
 *         helps.
 */
static int wait_twice(void *arg)
{
    (void)arg;
    for (unsigned ready = 0; ready <= EITHER; ready++) {
        for (unsigned pair = 0; pair < 9; pair++) {
            unsigned first = 1 + pair / 3;
            unsigned second = 1 + pair % 3;
            weft_fd *handle;
            make_ready(ready);
            CHECK_EQ(weft_fd_open(&handle, ends[0]), 0);
            int found = (int)(ready & first);
            CHECK_EQ(weft_fd_wait(handle, first, 0), found != 0 ? found : WEFT_ETIMEDOUT);
            found = (int)(ready & second);
            CHECK_EQ(weft_fd_wait(handle, second, 0), found != 0 ? found : WEFT_ETIMEDOUT);
            weft_fd_close(handle);
        }
    }
    return 0;
}

static void wait_that_timed_out_keeps_readiness_of_other_direction(void)
{
    run_with_pair(wait_twice);
}

struct waiter {
    weft_fd *handle;
    unsigned events;
};

static int wait_for_events(void *arg)
{
    const struct waiter *self = arg;
    return weft_fd_wait(self->handle, self->events, WEFT_NEVER);
}

/*
 * Goal: a task that waits for one direction does not hide that the other one is ready, and is
 * woken by its own event. A TLS library has a reader and a writer like these.
 */
static int wait_in_both_directions(void *arg)
{
    (void)arg;
    for (unsigned waits_for = WEFT_READABLE; waits_for <= WEFT_WRITABLE; waits_for++) {
        struct waiter waiter = { .events = waits_for };
        weft_task *task;
        int result;
        unsigned other = EITHER & ~waits_for;
        make_ready(other);
        CHECK_EQ(weft_fd_open(&waiter.handle, ends[0]), 0);
        CHECK_EQ(weft_go(&task, wait_for_events, &waiter), 0);
        source_wait_for_calls(wf_source_of(waiter.handle), 1);
        for (unsigned i = 0; i < 3; i++) {
            CHECK_EQ(weft_fd_wait(waiter.handle, other, 0), other);
            CHECK_EQ(weft_fd_wait(waiter.handle, EITHER, 0), other);
            CHECK_EQ(weft_fd_wait(waiter.handle, waits_for, 0), WEFT_ETIMEDOUT);
        }
        make_ready(waits_for);
        CHECK_EQ(weft_join(task, &result, WEFT_NEVER), 0);
        CHECK_EQ(result, waits_for);
        CHECK_EQ(weft_fd_wait(waiter.handle, EITHER, 0), waits_for);
        CHECK_EQ(weft_fd_wait(waiter.handle, other, 0), WEFT_ETIMEDOUT);
        weft_fd_close(waiter.handle);
    }
    return 0;
}

static void waiter_of_one_direction_keeps_readiness_of_other(void)
{
    run_with_pair(wait_in_both_directions);
}

static weft_fd *shared;

static int wait_at_shared(void *arg)
{
    (void)arg;
    return weft_fd_wait(shared, WEFT_READABLE, WEFT_NEVER);
}

static int wake_all(void *arg)
{
    (void)arg;
    weft_task *tasks[8];
    int result;
    CHECK_EQ(weft_fd_open(&shared, ends[0]), 0);
    for (unsigned i = 0; i < 8; i++) {
        CHECK_EQ(weft_go(&tasks[i], wait_at_shared, NULL), 0);
    }
    source_wait_for_calls(wf_source_of(shared), 8);
    CHECK_EQ(write(ends[1], "x", 1), 1);
    for (unsigned i = 0; i < 8; i++) {
        CHECK_EQ(weft_join(tasks[i], &result, WEFT_NEVER), 0);
        CHECK_EQ(result, WEFT_READABLE);
    }
    char byte;
    CHECK_EQ(read(ends[0], &byte, 1), 1);
    for (unsigned i = 0; i < 8; i++) {
        CHECK_EQ(weft_go(&tasks[i], wait_at_shared, NULL), 0);
    }
    source_wait_for_calls(wf_source_of(shared), 8);
    weft_fd_close(shared);
    for (unsigned i = 0; i < 8; i++) {
        CHECK_EQ(weft_join(tasks[i], &result, WEFT_NEVER), 0);
        CHECK_EQ(result, WEFT_ECLOSED);
    }
    return 0;
}

static void event_and_close_wake_all_waiters(void)
{
    run_with_pair(wake_all);
}

static int hang_up(void *arg)
{
    (void)arg;
    weft_fd *handle;
    CHECK_EQ(weft_fd_open(&handle, ends[0]), 0);
    CHECK_EQ(shutdown(ends[1], SHUT_RDWR), 0);
    CHECK_EQ(weft_fd_wait(handle, WEFT_READABLE, WEFT_NEVER), WEFT_READABLE);
    CHECK_EQ(weft_fd_wait(handle, EITHER, WEFT_NEVER), EITHER);
    weft_fd_close(handle);
    return 0;
}

static void hangup_of_peer_is_event(void)
{
    run_with_pair(hang_up);
}

static int open_unpollable(void *arg)
{
    (void)arg;
    weft_fd *handle;
    char path[] = "/tmp/weft-fd-XXXXXX";
    int file = mkstemp(path);
    CHECK(file >= 0);
    CHECK_EQ(weft_fd_open(&handle, file), -EPERM);
    static const char *const always_ready[] = { "/dev/null", "/dev/zero", "/tmp", "/dev" };
    CHECK_EQ(weft_fd_open(&handle, ends[0]), 0); /* This also starts the backend. */
    weft_fd_close(handle);
    for (unsigned i = 0; i < 4; i++) {
        int fd = open(always_ready[i], O_RDONLY | O_CLOEXEC);
        CHECK(fd >= 0);
        unsigned before = link_fds();
        CHECK_EQ(weft_fd_open(&handle, fd), -EPERM);
        CHECK_EQ(link_fds(), before);
        CHECK_EQ(close(fd), 0);
    }
    CHECK_EQ(weft_fd_open(&handle, -1), -EBADF);
    CHECK_EQ(weft_fd_open(&handle, 19999), -EBADF);
    (void)close(file);
    (void)unlink(path);
    weft_fd_close(NULL);
    return 0;
}

static weft_fd *handles[3];

static int wait_by_handle(void *arg)
{
    return weft_fd_wait(*(weft_fd **)arg, WEFT_READABLE, WEFT_NEVER);
}

/* Each handle gets the events of the descriptor, and still does when another handle is closed. */
static int open_several_times(void *arg)
{
    weft_task *waiters[3];
    char byte;
    (void)arg;
    CHECK_EQ(weft_fd_open(&handles[0], ends[0]), 0); /* This also starts the backend. */
    weft_fd_close(handles[0]);
    unsigned before = link_fds();
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(weft_fd_open(&handles[i], ends[0]), 0);
    }
    for (unsigned first = 0; first < 3; first++) { /* One is closed after each round. */
        for (unsigned i = first; i < 3; i++) {
            CHECK_EQ(weft_fd_wait(handles[i], WEFT_READABLE, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
            CHECK_EQ(weft_go(&waiters[i], wait_by_handle, &handles[i]), 0);
        }
        CHECK_EQ(write(ends[1], "x", 1), 1);
        for (unsigned i = first; i < 3; i++) {
            CHECK_EQ(test_join_soon(waiters[i]), WEFT_READABLE);
        }
        CHECK_EQ(read(ends[0], &byte, 1), 1);
        weft_fd_close(handles[first]);
    }
    CHECK_EQ(link_fds(), before);
    return 0;
}

static void descriptor_opened_several_times_wakes_all_handles(void)
{
    run_with_pair(open_several_times);
}

static void files_and_invalid_descriptors_are_refused(void)
{
    run_with_pair(open_unpollable);
}

/* --- All kinds of tasks wait for one descriptor ----------------------------------------- */

enum {
    MEMBERS = 8,
};

static weft_io ios[MEMBERS];
static int counter; /* an eventfd that returns 1 at a time */

static int take_turns(weft_co *co, void *state)
{
    struct crowd_member *self = state;
    weft_io *io = &ios[self->index];
    uint64_t one = 1;
    WEFT_BEGIN(co);
    while (self->sum < crowd_rounds() / 10 + 2) {
        weft_fd_wait_init(io, shared, WEFT_READABLE);
        WEFT_AWAIT(co, self->err, &io->future);
        CHECK_EQ(self->err, WEFT_READABLE);
        if (read(counter, &one, sizeof one) == sizeof one) {
            CHECK_EQ(one, 1);
            self->sum++;
            CHECK_EQ(write(counter, &one, sizeof one), sizeof one);
        }
    }
    WEFT_END(co, 0);
}

static int open_shared(void *arg)
{
    (void)arg;
    return weft_fd_open(&shared, counter);
}

static void all_kinds_of_tasks_wait_for_one_descriptor(void)
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned i = 0; i < 3 * CROWD_KINDS; i++) {
        weft_runtime *rt = test_start(workers[i % 3]);
        counter = eventfd(1, EFD_NONBLOCK | EFD_SEMAPHORE | EFD_CLOEXEC);
        CHECK_EQ(test_run(rt, open_shared, NULL), 0);
        CHECK_EQ(crowd_run(rt, (enum crowd_kind)(i / 3), MEMBERS, take_turns, NULL),
                 MEMBERS * (crowd_rounds() / 10 + 2));
        weft_fd_close(shared);
        (void)close(counter);
        weft_runtime_destroy(rt);
    }
}

TEST_MAIN({
    TEST(readiness_lasts_until_data_is_read),
    TEST(waiter_for_space_is_woken),
    TEST(wait_that_timed_out_keeps_readiness_of_other_direction),
    TEST(waiter_of_one_direction_keeps_readiness_of_other),
    TEST(event_and_close_wake_all_waiters),
    TEST(hangup_of_peer_is_event),
    TEST(files_and_invalid_descriptors_are_refused),
    TEST(descriptor_opened_several_times_wakes_all_handles),
    TEST(all_kinds_of_tasks_wait_for_one_descriptor),
})
