/* SPDX-License-Identifier: MIT */
/*
 * io_test.c - I/O of a runtime: choice of backend, and sources.
 */
#include "io/io.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft.h>

#include "backend.h"
#include "links.h"
#include "rt.h"
#include "sandbox.h"
#include "test.h"

static void runtime_without_io_opens_no_descriptors(void)
{
    unsigned before = link_fds();
    weft_runtime *rt = test_start(2);
    CHECK_EQ(link_fds(), before);
    weft_runtime_destroy(rt);
}

/* Returns the size of the kernel's descriptor table before it must grow. */
static unsigned room_for_fds(void)
{
    char line[256];
    unsigned room = 0;
    FILE *file = fopen("/proc/self/status", "r");
    CHECK(file != NULL);
    while (room == 0 && fgets(line, sizeof line, file) != NULL) {
        (void)sscanf(line, "FDSize: %u", &room);
    }
    (void)fclose(file);
    return room;
}

static void start_expecting(unsigned fds)
{
    unsigned before = link_fds();
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 2;
    config.fds_expected = fds;
    weft_runtime *rt = test_start_with(&config);
    CHECK_EQ(link_fds(), before);
    weft_runtime_destroy(rt);
}

/* Runs in a child process, whose table is as small as at the start of a program. */
static void make_room(void)
{
    struct rlimit limit;
    start_expecting(1);
    CHECK_LT(room_for_fds(), 512);
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    rlim_t before = limit.rlim_cur;
    CHECK(before >= 1024);
    limit.rlim_cur = 512;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    start_expecting(100000);
    CHECK_EQ(room_for_fds(), 512); /* Capped by the limit. */
    limit.rlim_cur = before;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    start_expecting(1000);
    CHECK_EQ(room_for_fds(), 1024);
    start_expecting(0);
    unsigned room = room_for_fds();
    CHECK_GE(room, before < 4096 ? before : 4096);
    start_expecting(100); /* It is large enough. */
    CHECK_EQ(room_for_fds(), room);
}

static void descriptor_table_is_sized_at_start(void)
{
    pid_t child = fork();
    int status = -1;
    if (child == 0) {
        make_room();
        _exit(0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

enum {
    MANY = 1000,
};

static unsigned count_blocks(const struct wf_io *io)
{
    unsigned count = 0;
    for (const struct wf_source *block = io->blocks; block != NULL; block = block->next_block) {
        count++;
    }
    return count;
}

static int open_many(void *arg)
{
    static struct wf_source *sources[MANY];
    struct wf_io *io = wf_io_must("test");
    (void)arg;
    for (unsigned round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < MANY; i++) {
            int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
            CHECK_EQ(wf_source_open(io, fd, &sources[i]), 0);
            if (i % 2 == 0) {
                CHECK_EQ(wf_source_watch(sources[i]), 0);
            }
            (void)wf_source_publish(sources[i]);
        }
        CHECK_EQ(count_blocks(io), (MANY + WF_SOURCE_BLOCK - 1) / WF_SOURCE_BLOCK);
        CHECK_EQ(io->watched, MANY / 2);
        for (uint32_t i = 0; i < MANY; i++) {
            wf_source_close(wf_source_handle(sources[i]));
        }
        CHECK_EQ(io->watched, 0);
    }
    return 0;
}

static void source_blocks_are_allocated_on_demand(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, open_many, NULL), 0);
    weft_runtime_destroy(rt);
}

/* --- Choice of backend ------------------------------------------------------------------ */

static weft_io_info info_with(weft_io_backend backend)
{
    weft_config config = WEFT_CONFIG_INIT;
    weft_io_info info;
    config.workers = 2;
    config.io = backend;
    weft_runtime *rt = test_start_with(&config);
    CHECK_EQ(weft_runtime_io(rt, &info), 0);
    weft_runtime_destroy(rt);
    return info;
}

static void requested_backend_is_used(void)
{
    unsigned before = link_fds();
    const char *forced = getenv("WEFT_IO");
    if (forced != NULL) { /* The environment takes precedence. */
        const char *name = strcmp(forced, "uring") == 0 ? "io_uring" : forced;
        CHECK_EQ(strcmp(info_with(WEFT_IO_AUTO).backend, name), 0);
        CHECK_EQ(strcmp(info_with(WEFT_IO_EPOLL).backend, name), 0);
        CHECK_HAS(info_with(WEFT_IO_AUTO).reason, "asked for");
        CHECK_EQ(unsetenv("WEFT_IO"), 0);
    }
    CHECK_EQ(strcmp(info_with(WEFT_IO_EPOLL).backend, "epoll"), 0);
    CHECK_HAS(info_with(WEFT_IO_EPOLL).reason, "asked for");
    weft_io_info any = info_with(WEFT_IO_AUTO);
    CHECK(strcmp(any.backend, "epoll") == 0 || strcmp(any.backend, "io_uring") == 0);
    CHECK(any.reason[0] != '\0');
    CHECK_EQ(link_fds(), before);
    if (forced != NULL) {
        CHECK_EQ(setenv("WEFT_IO", forced, 1), 0);
    }
}

/* --- In a sandbox ----------------------------------------------------------------------- */

/* What a sandbox forbids, and the backend that the program requests. */
struct forbidden {
    long call;
    const char *name;
    int error;
    weft_io_backend wanted;
};

static char said[512]; /* the runtime's messages, concatenated */

static void note_message(void *ctx, const char *text)
{
    (void)ctx;
    size_t length = strlen(said);
    (void)snprintf(said + length, sizeof said - length, "%s\n", text);
}

static weft_runtime *start_noting(weft_io_backend wanted)
{
    weft_config config = WEFT_CONFIG_INIT;
    CHECK_EQ(unsetenv("WEFT_IO"), 0); /* It would override the configuration. */
    config.workers = 2;
    config.io = wanted;
    config.on_message = note_message;
    return test_start_with(&config);
}

static int pass_byte(void *arg)
{
    weft_stream *reader;
    weft_stream *writer;
    char byte;
    (void)arg;
    int err = weft_pipe(&reader, &writer);
    if (err == 0) {
        CHECK_EQ(weft_read(reader, &byte, 1, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
        CHECK_EQ(weft_write(writer, "x", 1, WEFT_NEVER), 1);
        CHECK_EQ(weft_read(reader, &byte, 1, WEFT_NEVER), 1);
        weft_stream_close(reader);
        weft_stream_close(writer);
    }
    return err;
}

static void check_works(weft_runtime *rt, const char *backend)
{
    weft_io_info info;
    CHECK_EQ(weft_runtime_io(rt, &info), 0);
    CHECK_EQ(strcmp(info.backend, backend), 0);
    CHECK(info.reason[0] != '\0');
    CHECK_EQ(test_run(rt, pass_byte, NULL), 0);
    CHECK_EQ(strcmp(said, ""), 0);
}

/*
 * Checks that each call fails with the error of the system call, and that the reason is reported
 * once.
 */
static void check_fails(weft_runtime *rt, const char *call, int err)
{
    weft_io_info info;
    CHECK_EQ(test_run(rt, pass_byte, NULL), err);
    CHECK_HAS(said, call);
    CHECK_HAS(said, weft_strerror(err));
    CHECK_HAS(said, "WEFT_IO=epoll");
    CHECK_EQ(weft_runtime_io(rt, &info), err);
    CHECK_EQ(strcmp(info.backend, "io_uring"), 0);
    CHECK_HAS(info.reason, call);
    CHECK_HAS(info.reason, weft_strerror(err));
    CHECK_EQ(test_run(rt, pass_byte, NULL), err);
    CHECK(strchr(said, '\n') == strrchr(said, '\n'));
}

static void use_io_in_sandbox(const void *arg)
{
    const struct forbidden *forbidden = arg;
    unsigned before = link_fds();
    sandbox_forbid(forbidden->call, forbidden->error);
    weft_runtime *rt = start_noting(forbidden->wanted);
    if (forbidden->wanted == WEFT_IO_AUTO) {
        check_works(rt, "epoll");
    } else if (forbidden->call == SYS_io_uring_register) { /* The backend does not need it. */
        check_works(rt, "io_uring");
    } else {
        check_fails(rt, forbidden->name, -forbidden->error);
    }
    weft_runtime_destroy(rt);
    CHECK_EQ(link_fds(), before);
}

/*
 * Goal:   where a sandbox forbids a system call of io_uring, the default backend works without
 *         it, and a program that insists on io_uring gets an error and a message with the reason.
 * Method: a child process for each call and each error that sandboxes return.
 */
static void sandbox_without_io_uring_falls_back_or_reports_error(void)
{
    static const struct {
        long number;
        const char *name;
    } calls[] = {
        { SYS_io_uring_setup, "io_uring_setup" },
        { SYS_io_uring_enter, "io_uring_enter" },
        { SYS_io_uring_register, "io_uring_register" },
        { SYS_membarrier, "membarrier" },
    };
    static const int errors[] = { EPERM, ENOSYS, EACCES };
    static const weft_io_backend backends[] = { WEFT_IO_AUTO, WEFT_IO_URING };
    for (unsigned i = 0; i < 4 * 3 * 2; i++) {
        struct forbidden forbidden = { calls[i % 4].number, calls[i % 4].name, errors[i / 4 % 3],
                                       backends[i / 12] };
        sandbox_run(use_io_in_sandbox, &forbidden);
    }
}

static void use_epoll_in_sandbox(const void *arg)
{
    const struct forbidden *forbidden = arg;
    unsigned before = link_fds();
    sandbox_forbid(forbidden->call, forbidden->error);
    weft_runtime *rt = start_noting(WEFT_IO_EPOLL);
    CHECK_EQ(test_run(rt, pass_byte, NULL), -forbidden->error);
    CHECK_HAS(said, forbidden->name);
    CHECK_HAS(said, weft_strerror(-forbidden->error));
    weft_runtime_destroy(rt);
    CHECK_EQ(link_fds(), before);
}

static void sandbox_without_epoll_reports_error(void)
{
    static const struct forbidden table[] = {
        { SYS_epoll_create1, "epoll_create1", EPERM, WEFT_IO_EPOLL },
        { SYS_eventfd2, "eventfd", ENOSYS, WEFT_IO_EPOLL },
        { SYS_epoll_ctl, "epoll_ctl", EPERM, WEFT_IO_EPOLL },
#ifdef SYS_epoll_wait
        { SYS_epoll_wait, "epoll_wait", EPERM, WEFT_IO_EPOLL },
        { SYS_epoll_wait, "epoll_wait", ENOSYS, WEFT_IO_EPOLL },
#else
        { SYS_epoll_pwait, "epoll_wait", EPERM, WEFT_IO_EPOLL },
#endif
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        sandbox_run(use_epoll_in_sandbox, &table[i]);
    }
}

/* Without liburing, the message says so. */
static void forced_io_uring_that_is_not_built_in_is_reported(void)
{
    weft_runtime *rt = start_noting(WEFT_IO_URING);
    check_fails(rt, "built without io_uring", -ENOSYS);
    weft_runtime_destroy(rt);
}

static void forbid_io_uring_while_in_use(void)
{
    weft_runtime *rt = start_noting(WEFT_IO_URING);
    check_works(rt, "io_uring");
    sandbox_forbid(SYS_io_uring_enter, EPERM);
    (void)test_run(rt, pass_byte, NULL);
}

/* The backend cannot be changed any more: its polls are pending in the kernel. */
static void io_uring_forbidden_while_in_use_aborts_with_message(void)
{
    CHECK_ABORTS(forbid_io_uring_while_in_use, "io_uring_enter: Operation not permitted");
}

/* --- Outside of workers ----------------------------------------------------------------- */

static struct link link_outside;

static int open_link(void *arg)
{
    (void)arg;
    link_outside = link_open(LINK_LOCAL);
    return 0;
}

/*
 * Goal:   a descriptor that a plain thread waits for is polled, although all workers are parked
 *         and none has I/O of its own.
 * Method: the very first wait is that thread's.
 */
static void plain_thread_waits_while_all_workers_are_parked(void)
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned i = 0; i < 3; i++) {
        weft_runtime *rt = test_start(workers[i]);
        char byte;
        CHECK_EQ(test_run(rt, open_link, NULL), 0);
        for (unsigned round = 0; round < 20; round++) {
            CHECK_EQ(weft_read(link_outside.far, &byte, 1, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
            CHECK_EQ(weft_try_write(link_outside.near, "x", 1), 1);
            CHECK_EQ(weft_read(link_outside.far, &byte, 1, WEFT_NEVER), 1);
        }
        link_close(&link_outside);
        weft_runtime_destroy(rt);
    }
}

static int read_available_byte(void *arg)
{
    char bytes[4];
    (void)arg;
    for (uint64_t round = test_scale(60000) + 100; round > 0; round--) {
        struct link link = link_open(LINK_PIPE);
        CHECK_EQ(weft_write(link.near, "x", 1, WEFT_NEVER), 1);
        CHECK_EQ(weft_read(link.far, bytes, sizeof bytes, WEFT_NEVER), 1);
        CHECK_EQ(weft_write(link.near, "y", 1, WEFT_NEVER), 1);
        CHECK_EQ(weft_read(link.far, bytes, sizeof bytes, WEFT_NEVER), 1);
        link_close(&link);
    }
    return 0;
}

/*
 * Goal:   the event that arrives with the very first wait is not lost.
 * Method: nothing else is registered. Other workers, which the previous round left inside the
 *         backend, fetch the event before the waiter has counted itself.
 */
static void very_first_event_is_handled(void)
{
    weft_runtime *rt = test_start(8);
    CHECK_EQ(test_run(rt, read_available_byte, NULL), 0);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(very_first_event_is_handled),
    TEST(runtime_without_io_opens_no_descriptors),
    TEST(descriptor_table_is_sized_at_start),
    TEST(source_blocks_are_allocated_on_demand),
    TEST(requested_backend_is_used),
    TEST_URING(sandbox_without_io_uring_falls_back_or_reports_error),
    TEST_NATIVE(sandbox_without_epoll_reports_error, "has no seccomp filters"),
    TEST_NO_URING(forced_io_uring_that_is_not_built_in_is_reported),
    TEST_URING(io_uring_forbidden_while_in_use_aborts_with_message),
    TEST(plain_thread_waits_while_all_workers_are_parked),
})
