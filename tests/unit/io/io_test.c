/* SPDX-License-Identifier: MIT */
/*
 * The I/O of a runtime: which backend, and its sources.
 */
#include "io/io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft.h>

#include "links.h"
#include "rt.h"
#include "test.h"

static void places_of_the_table_follow_each_other(void)
{
    uint32_t chunk = 0;
    uint32_t place = 0;
    for (uint32_t i = 0; i < 100000; i++) {
        if (place == (uint32_t)WF_IO_CHUNK << chunk) {
            chunk++;
            place = 0;
        }
        CHECK_EQ(wf_io_chunk_of(i), chunk);
        CHECK_EQ(wf_io_place_of(i), place);
        place++;
    }
}

static void a_runtime_without_io_opens_nothing(void)
{
    unsigned before = link_fds();
    weft_runtime *rt = test_start(2);
    CHECK_EQ(link_fds(), before);
    weft_runtime_destroy(rt);
}

/* How many descriptors the kernel has room for before it must make more. */
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

/* In a child, whose table is as small as when a program starts. */
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
    CHECK_EQ(room_for_fds(), 512); /* As the limit says. */
    limit.rlim_cur = before;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    start_expecting(1000);
    CHECK_EQ(room_for_fds(), 1024);
    start_expecting(0);
    unsigned room = room_for_fds();
    CHECK_GE(room, before < 4096 ? before : 4096);
    start_expecting(100); /* It has enough. */
    CHECK_EQ(room_for_fds(), room);
}

static void there_is_room_for_descriptors_from_the_start(void)
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

static int open_many(void *arg)
{
    static struct wf_source *sources[MANY];
    struct wf_io *io = wf_io_must("test");
    (void)arg;
    for (unsigned round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < MANY; i++) {
            int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
            CHECK_EQ(wf_source_open(io, fd, &sources[i]), 0);
            CHECK(wf_io_source(io, sources[i]->index) == sources[i]);
            if (i % 2 == 0) {
                CHECK_EQ(wf_source_watch(sources[i]), 0);
            }
        }
        CHECK_EQ(io->made, MANY); /* Places are used again. */
        CHECK_EQ(io->watched, MANY / 2);
        for (uint32_t i = 0; i < MANY; i++) {
            wf_source_close(sources[i], "test");
        }
        CHECK_EQ(io->watched, 0);
    }
    return 0;
}

static void places_are_made_as_they_are_needed(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, open_many, NULL), 0);
    weft_runtime_destroy(rt);
}

/* --- Which backend ---------------------------------------------------------------------- */

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

static void the_backend_is_what_was_asked_for(void)
{
    unsigned before = link_fds();
    const char *forced = getenv("WEFT_IO");
    if (forced != NULL) { /* The environment wins. */
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

/* --- Outside ---------------------------------------------------------------------------- */

static struct link link_outside;

static int open_link(void *arg)
{
    (void)arg;
    link_outside = link_open(LINK_LOCAL);
    return 0;
}

/*
 * Goal:   a descriptor that a plain thread waits for is looked after, though all workers
 *         sleep and none has I/O of its own.
 * Method: the first wait of all is that thread's.
 */
static void a_plain_thread_waits_while_all_workers_sleep(void)
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

static int read_what_is_there(void *arg)
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
 * Goal:   the event that comes with the first wait of all is not lost.
 * Method: nothing else is watched; other workers, which the last time was left in the
 *         backend, are faster to fetch the event than who waits to count.
 */
static void the_first_event_of_all_is_handled(void)
{
    weft_runtime *rt = test_start(8);
    CHECK_EQ(test_run(rt, read_what_is_there, NULL), 0);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(the_first_event_of_all_is_handled),
    TEST(places_of_the_table_follow_each_other),
    TEST(a_runtime_without_io_opens_nothing),
    TEST(there_is_room_for_descriptors_from_the_start),
    TEST(places_are_made_as_they_are_needed),
    TEST(the_backend_is_what_was_asked_for),
    TEST(a_plain_thread_waits_while_all_workers_sleep),
})
