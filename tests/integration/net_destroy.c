/* SPDX-License-Identifier: MIT */
/*
 * Goal:   a runtime can be destroyed while plain threads, and tasks of another runtime, are in I/O
 *         calls on its streams. Each call returns WEFT_ECLOSED, and no later runtime closes a
 *         descriptor of the program.
 * Method: all I/O rows of the table of awaiting calls (support/calls.h). After each destroy the
 *         program opens descriptors, which get the numbers that the runtime had, and another
 *         runtime opens and closes streams.
 */
#include <weft.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calls.h"
#include "rt.h"
#include "test.h"

enum {
    FILES = 24,
};

static const struct call_group *const groups[] = { &calls_io, &calls_net };

static _Alignas(64) char state[CALL_STATE_SIZE];

struct caller {
    const struct call *call;
    atomic_uint *begun;
    int64_t result;
};

static int make_call(void *arg)
{
    struct caller *caller = arg;
    atomic_fetch_add(caller->begun, 1);
    caller->result = caller->call->call(state, WEFT_NEVER);
    return 0;
}

static void *make_call_on_thread(void *arg)
{
    (void)make_call(arg);
    return NULL;
}

static int call_function(void *arg)
{
    void (*function)(void *of) = *(void (**)(void *of))arg;
    function(state);
    return 0;
}

static void on_fiber(weft_runtime *rt, void (*function)(void *of))
{
    if (function != NULL) {
        CHECK_EQ(test_run(rt, call_function, (void *)&function), 0);
    }
}

static bool waits_on_threads(const struct call *call)
{
    unsigned excluded = CALL_FIBERS_ONLY | CALL_TASKS_ONLY | CALL_NEVER_WAITS | CALL_PREPARED_ONLY;
    return call->call != NULL && call->close != NULL && (call->flags & excluded) == 0;
}

/* --- Descriptors of the program ---------------------------------------------------------- */

static void open_files(int *files)
{
    for (unsigned i = 0; i < FILES; i++) {
        files[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        CHECK_GE(files[i], 0);
    }
}

static void close_files(const int *files)
{
    for (unsigned i = 0; i < FILES; i++) {
        CHECK_EQ(close(files[i]), 0); /* Fails if another thread has closed it. */
    }
}

static int use_streams(void *arg)
{
    weft_stream *one;
    weft_stream *other;
    (void)arg;
    CHECK_EQ(weft_stream_pair(&one, &other), 0);
    CHECK_EQ(weft_write(one, "x", 1, WEFT_NEVER), 1);
    weft_stream_close(one); /* The other end is left to the runtime. */
    return 0;
}

/* Uses a runtime that reuses the sources of the destroyed one. */
static void use_another_runtime(void (*teardown)(void *of))
{
    weft_runtime *rt = test_start(1);
    calls_runtime = rt;
    CHECK_EQ(test_run(rt, use_streams, NULL), 0);
    on_fiber(rt, teardown);
    weft_runtime_destroy(rt);
}

static void check_result(const struct caller *caller)
{
    if (caller->result != caller->call->closed) {
        test_fail(__FILE__, __LINE__, "%s: %lld when its runtime was destroyed", caller->call->name,
                  (long long)caller->result);
    }
}

/* --- Callers ------------------------------------------------------------------------------ */

static void destroy_under_thread(const struct call *call)
{
    atomic_uint begun = 0;
    struct caller caller = { call, &begun, 0 };
    pthread_t thread;
    int files[FILES];
    memset(state, 0, sizeof state);
    weft_runtime *rt = test_start(2);
    calls_runtime = rt;
    on_fiber(rt, call->setup);
    CHECK_EQ(pthread_create(&thread, NULL, make_call_on_thread, &caller), 0);
    calls_wait_until(atomic_load(&begun) == 1);
    test_wait_until_asleep(rt);
    weft_runtime_destroy(rt);
    open_files(files);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    check_result(&caller);
    use_another_runtime(call->teardown);
    close_files(files);
}

static void destroy_under_fiber_of_another(const struct call *call)
{
    atomic_uint begun = 0;
    struct caller caller = { call, &begun, 0 };
    weft_fiber_spec spec = { .function = make_call, .arg = &caller };
    int files[FILES];
    weft_task *task;
    memset(state, 0, sizeof state);
    weft_runtime *other = test_start(1);
    weft_runtime *rt = test_start(1);
    calls_runtime = rt;
    on_fiber(rt, call->setup);
    CHECK_EQ(weft_runtime_go(other, &task, &spec), 0);
    calls_wait_until(atomic_load(&begun) == 1);
    test_wait_until_asleep(other);
    weft_runtime_destroy(rt);
    open_files(files);
    CHECK_EQ(test_join_soon(task), 0);
    check_result(&caller);
    weft_runtime_destroy(other);
    use_another_runtime(call->teardown);
    close_files(files);
}

static void for_calls(void (*function)(const struct call *call))
{
    unsigned count = 0;
    for (unsigned i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        for (size_t j = 0; j < groups[i]->count; j++) {
            if (waits_on_threads(&groups[i]->calls[j])) {
                function(&groups[i]->calls[j]);
                count++;
            }
        }
    }
    CHECK_GE(count, 20);
}

static void destroy_ends_io_calls_of_plain_threads(void)
{
    for_calls(destroy_under_thread);
}

static void destroy_ends_io_calls_of_other_runtimes(void)
{
    for_calls(destroy_under_fiber_of_another);
}

/* --- Calls that never wait ------------------------------------------------------------------ */

static weft_stream *_Atomic shared;
static atomic_bool is_over;

static int open_pair(void *arg)
{
    weft_stream *one;
    weft_stream *other;
    (void)arg;
    CHECK_EQ(weft_stream_pair(&one, &other), 0);
    CHECK_EQ(weft_write_all(other, "ours", 4, WEFT_NEVER), 0);
    atomic_store(&shared, one);
    return weft_yield();
}

static void *try_to_read(void *arg)
{
    (void)arg;
    while (!atomic_load(&is_over)) {
        char byte = 0;
        weft_stream *stream = atomic_load(&shared);
        ssize_t n = stream != NULL ? weft_try_read(stream, &byte, 1) : 0;
        CHECK(n != 1 || strchr("ours", byte) != NULL);
        CHECK(n >= 0 || n == -EAGAIN || n == WEFT_ECLOSED);
    }
    return NULL;
}

/* The program opens pipes immediately after the destroy; no stale read may take their bytes. */
static void stale_try_read_never_reaches_program_descriptors(void)
{
    pthread_t threads[2];
    for (unsigned i = 0; i < 2; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, try_to_read, NULL), 0);
    }
    for (unsigned round = 0; round < test_scale(50); round++) {
        int ends[2][2];
        weft_runtime *rt = test_start(1);
        CHECK_EQ(test_run(rt, open_pair, NULL), 0);
        weft_runtime_destroy(rt);
        for (unsigned i = 0; i < 2; i++) {
            CHECK_EQ(pipe2(ends[i], O_CLOEXEC), 0);
            CHECK_EQ(write(ends[i][1], "-", 1), 1);
        }
        for (unsigned i = 0; i < 2; i++) {
            char byte;
            CHECK_EQ(read(ends[i][0], &byte, 1), 1);
            CHECK_EQ(close(ends[i][0]), 0);
            CHECK_EQ(close(ends[i][1]), 0);
        }
    }
    atomic_store(&is_over, true);
    for (unsigned i = 0; i < 2; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
}

TEST_MAIN({ TEST(destroy_ends_io_calls_of_plain_threads),
            TEST(destroy_ends_io_calls_of_other_runtimes),
            TEST(stale_try_read_never_reaches_program_descriptors) })
