/* SPDX-License-Identifier: MIT */
/*
 * batch_test.c - readiness events delivered in batches: none is lost, even if its waiter is gone.
 */
#include "io/batch.h"

#include <pthread.h>
#include <sys/mman.h>

#include <weft.h>

#include "links.h"
#include "rt.h"
#include "test.h"
#include "timing.h"

enum {
    MANY = 3 * WF_BATCH_MAX + 4,
};

static struct link links[MANY];

static int send_back(void *arg)
{
    weft_stream *stream = arg;
    char byte;
    while (weft_read(stream, &byte, 1, WEFT_NEVER) == 1) {
        CHECK_EQ(weft_write_all(stream, &byte, 1, WEFT_NEVER), 0);
    }
    weft_stream_close(stream);
    return 0;
}

/* The only worker handles none of the events before all are pending. */
static int ask_all(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < MANY; i++) {
        links[i] = link_open(LINK_LOCAL);
        CHECK_EQ(weft_go(NULL, send_back, links[i].far), 0);
    }
    for (unsigned round = 0; round < 20; round++) {
        char byte;
        for (unsigned i = 0; i < MANY; i++) {
            CHECK_EQ(weft_try_write(links[i].near, "x", 1), 1);
        }
        for (unsigned i = 0; i < MANY; i++) {
            CHECK_EQ(weft_read(links[i].near, &byte, 1, test_deadline()), 1);
        }
    }
    for (unsigned i = 0; i < MANY; i++) {
        weft_stream_close(links[i].near);
    }
    return 0;
}

static void events_beyond_batch_size_are_not_lost(void)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 1;
    config.max_io_completions = MANY;
    weft_runtime *rt = test_start_with(&config);
    CHECK_EQ(test_run(rt, ask_all, NULL), 0);
    weft_runtime_destroy(rt);
}

static void *wait_until_timeout(void *arg)
{
    char byte;
    CHECK_EQ(weft_read(arg, &byte, 1, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    return NULL;
}

/* Waits on a stack that is unmapped afterwards. */
static void wait_on_thread(weft_stream *stream)
{
    size_t size = 2 * (size_t)1024 * 1024; /* a sanitizer uses much of it */
    void *stack =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    CHECK(stack != MAP_FAILED);
    pthread_attr_t attributes;
    pthread_t thread;
    CHECK_EQ(pthread_attr_init(&attributes), 0);
    CHECK_EQ(pthread_attr_setstack(&attributes, stack, size), 0);
    CHECK_EQ(pthread_create(&thread, &attributes, wait_until_timeout, stream), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(pthread_attr_destroy(&attributes), 0);
    CHECK_EQ(munmap(stack, size), 0);
}

/* The last waiter is remembered, and must not be accessed. */
static int write_after_wait_timed_out(void *arg)
{
    struct link *link = arg;
    char byte;
    wait_on_thread(link->far);
    CHECK_EQ(weft_write_all(link->near, "x", 1, WEFT_NEVER), 0);
    CHECK_EQ(weft_sleep(WEFT_MS), 0); /* The event arrives and finds no waiter. */
    CHECK_EQ(weft_read(link->far, &byte, 1, WEFT_NEVER), 1);
    return 0;
}

static void waiter_may_be_gone_when_event_arrives(void)
{
    link_run_all(write_after_wait_timed_out);
}

TEST_MAIN({
    TEST(events_beyond_batch_size_are_not_lost),
    TEST(waiter_may_be_gone_when_event_arrives),
})
