/* SPDX-License-Identifier: MIT */
/*
 * Events that are told together: none is lost, whoever has gone meanwhile.
 */
#include "io/batch.h"

#include <pthread.h>
#include <sys/mman.h>

#include <weft.h>

#include "links.h"
#include "rt.h"
#include "test.h"

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

/* The one worker comes to none of the events before there are all. */
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
            CHECK_EQ(weft_read(links[i].near, &byte, 1, weft_after(20 * WEFT_S)), 1);
        }
    }
    for (unsigned i = 0; i < MANY; i++) {
        weft_stream_close(links[i].near);
    }
    return 0;
}

static void of_more_than_a_batch_none_is_lost(void)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 1;
    config.max_io_completions = MANY;
    weft_runtime *rt = test_start_with(&config);
    CHECK_EQ(test_run(rt, ask_all, NULL), 0);
    weft_runtime_destroy(rt);
}

static void *wait_in_vain(void *arg)
{
    char byte;
    CHECK_EQ(weft_read(arg, &byte, 1, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    return NULL;
}

/* On a stack that is gone then. */
static void wait_on_a_thread(weft_stream *stream)
{
    size_t size = 2 * (size_t)1024 * 1024; /* a sanitizer has much of its own there */
    void *stack =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    CHECK(stack != MAP_FAILED);
    pthread_attr_t attributes;
    pthread_t thread;
    CHECK_EQ(pthread_attr_init(&attributes), 0);
    CHECK_EQ(pthread_attr_setstack(&attributes, stack, size), 0);
    CHECK_EQ(pthread_create(&thread, &attributes, wait_in_vain, stream), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(pthread_attr_destroy(&attributes), 0);
    CHECK_EQ(munmap(stack, size), 0);
}

/* Who waited last is remembered, and must not be looked at. */
static int tell_of_what_was_waited_for(void *arg)
{
    struct link *link = arg;
    char byte;
    wait_on_a_thread(link->far);
    CHECK_EQ(weft_write_all(link->near, "x", 1, WEFT_NEVER), 0);
    CHECK_EQ(weft_sleep(WEFT_MS), 0); /* The event comes, and finds nobody. */
    CHECK_EQ(weft_read(link->far, &byte, 1, WEFT_NEVER), 1);
    return 0;
}

static void who_has_waited_may_be_gone(void)
{
    link_run_all(tell_of_what_was_waited_for);
}

TEST_MAIN({
    TEST(of_more_than_a_batch_none_is_lost),
    TEST(who_has_waited_may_be_gone),
})
