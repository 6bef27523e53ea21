/* SPDX-License-Identifier: MIT */
/*
 * local_test.c - fiber-local and thread-local values. Keys are never freed, so the tests share a
 * few, and the test that uses up the rest comes last.
 */
#include "sched/local.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include <weft.h>

#include "../fiber/child.h"
#include "rt.h"
#include "sched/fiber.h"
#include "test.h"
#include "timing.h"

/* What the destructors have seen. */
static struct {
    _Atomic(uint64_t) calls;
    _Atomic(uint64_t) sum; /* of the numbers that the values point to */
} destroyed;

static weft_local plain_key;    /* without a destructor */
static weft_local counted_key;  /* its destructor counts */
static weft_local stubborn_key; /* its destructor sets the value again each time */
static weft_local patient_key;  /* its destructor waits before it counts */
static weft_local late_key;     /* its destructor sets counted_key */
static weft_local shared_key;   /* inherited unchanged; its destructor counts */
static weft_local next_key;     /* inherited as the next number; odd numbers are not */

static void count(void *value)
{
    atomic_fetch_add(&destroyed.calls, 1);
    atomic_fetch_add(&destroyed.sum, *(uint64_t *)value);
}

static void count_and_set_again(void *value)
{
    CHECK(weft_local_get(stubborn_key) == NULL);
    count(value);
    CHECK_EQ(weft_local_set(stubborn_key, value), 0);
}

static void wait_and_count(void *value)
{
    weft_task *self = weft_task_current();
    CHECK(self != NULL);
    for (int i = 0; i < 10; i++) {
        (void)weft_yield();
    }
    CHECK(weft_task_current() == self);
    count(value);
}

static void set_counted(void *value)
{
    CHECK_EQ(weft_local_set(counted_key, value), 0);
}

static void *share(void *value)
{
    return value;
}

static void *take_next(void *value)
{
    uint64_t *number = value;
    return *number % 2 == 0 ? number + 1 : NULL;
}

static void reset(void)
{
    static bool made;
    if (!made) {
        made = true;
        CHECK_EQ(weft_local_create(&plain_key, NULL), 0);
        CHECK_EQ(weft_local_create(&counted_key, count), 0);
        CHECK_EQ(weft_local_create(&stubborn_key, count_and_set_again), 0);
        CHECK_EQ(weft_local_create(&patient_key, wait_and_count), 0);
        CHECK_EQ(weft_local_create(&late_key, set_counted), 0);
        CHECK_EQ(weft_local_create_inherited(&shared_key, share, count), 0);
        CHECK_EQ(weft_local_create_inherited(&next_key, take_next, NULL), 0);
    }
    atomic_store(&destroyed.calls, 0);
    atomic_store(&destroyed.sum, 0);
}

static void check_destroyed(uint64_t calls, uint64_t sum)
{
    CHECK_EQ(atomic_load(&destroyed.calls), calls);
    CHECK_EQ(atomic_load(&destroyed.sum), sum);
}

static void *in_thread(void *arg)
{
    int (*function)(void *arg);
    memcpy(&function, arg, sizeof function);
    CHECK_EQ(function(NULL), 0);
    return NULL;
}

/* Runs the function on a new thread and joins it. */
static void run_in_thread(int (*function)(void *arg))
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, in_thread, &function), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* Runs the function on a fiber, with 1, 2 and 4 workers. Each time the counts start from zero. */
static void run_on_fibers(int (*function)(void *arg))
{
    for (unsigned workers = 1; workers <= 4; workers *= 2) {
        reset();
        weft_runtime *rt = test_start(workers);
        CHECK_EQ(test_run(rt, function, NULL), 0);
        weft_runtime_destroy(rt);
    }
}

/* --- Values -------------------------------------------------------------------- */

static int set_and_get(void *arg)
{
    (void)arg;
    int one;
    int two;
    CHECK(weft_local_get(plain_key) == NULL);
    CHECK(weft_local_get(counted_key) == NULL);
    CHECK_EQ(weft_local_set(plain_key, &one), 0);
    CHECK(weft_local_get(plain_key) == &one);
    CHECK(weft_local_get(counted_key) == NULL);
    CHECK_EQ(weft_local_set(counted_key, &two), 0);
    CHECK_EQ(weft_local_set(plain_key, &two), 0);
    CHECK(weft_local_get(plain_key) == &two);
    CHECK_EQ(weft_local_set(counted_key, NULL), 0);
    CHECK(weft_local_get(counted_key) == NULL);
    CHECK_EQ(weft_local_set(plain_key, NULL), 0);
    CHECK(weft_local_get(plain_key) == NULL);
    return 0;
}

static void get_returns_last_value_set(void)
{
    reset();
    CHECK_EQ(set_and_get(NULL), 0);
    run_in_thread(set_and_get);
    run_on_fibers(set_and_get);
}

enum {
    TRAVELLERS = 8,
    YIELDS = 300
};

static uint64_t travellers[TRAVELLERS]; /* their numbers, from 1 */

static int travel(void *arg)
{
    const uint64_t *number = arg;
    CHECK(weft_local_get(counted_key) == NULL);
    CHECK_EQ(weft_local_set(counted_key, arg), 0);
    for (int i = 0; i < YIELDS; i++) {
        if (*number == 1 && i % 30 == 0) {
            test_move();
        } else {
            CHECK_EQ(weft_yield(), 0);
        }
        CHECK(weft_local_get(counted_key) == arg);
        CHECK(weft_local_get(plain_key) == NULL);
    }
    return 0;
}

/*
 * Goal:   each fiber has its own values, on any worker on which it resumes.
 * Method: fibers yield to each other, and one of them changes workers. Each checks its value
 *         after each yield.
 */
static void values_follow_their_fiber(void)
{
    weft_runtime *rt = test_start(4);
    reset();
    weft_task *tasks[TRAVELLERS];
    for (uint64_t i = 0; i < TRAVELLERS; i++) {
        travellers[i] = i + 1;
        tasks[i] = test_go(rt, travel, &travellers[i]);
    }
    for (uint64_t i = 0; i < TRAVELLERS; i++) {
        CHECK_EQ(test_join_soon(tasks[i]), 0);
    }
    check_destroyed(TRAVELLERS, TRAVELLERS * (TRAVELLERS + 1) / 2);
    weft_runtime_destroy(rt);
}

static int has_none(void *arg)
{
    (void)arg;
    CHECK(weft_local_get(counted_key) == NULL);
    return 0;
}

static int ask_others(void *arg)
{
    (void)arg;
    static uint64_t number = 1;
    CHECK_EQ(weft_local_set(counted_key, &number), 0);
    weft_task *task;
    CHECK_EQ(weft_go(&task, has_none, NULL), 0);
    CHECK_EQ(test_join_soon(task), 0);
    CHECK_EQ(weft_spawn_blocking(&task, has_none, NULL), 0);
    CHECK_EQ(test_join_soon(task), 0);
    run_in_thread(has_none);
    CHECK(weft_local_get(counted_key) == &number);
    return 0;
}

static void values_are_invisible_to_other_fibers_and_threads(void)
{
    static uint64_t number = 2;
    reset();
    CHECK_EQ(weft_local_set(counted_key, &number), 0);
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_run(rt, ask_others, NULL), 0);
    weft_runtime_destroy(rt);
    CHECK(weft_local_get(counted_key) == &number);
    CHECK_EQ(weft_local_set(counted_key, NULL), 0);
    check_destroyed(1, 1);
}

static int change_value(void *arg)
{
    CHECK_EQ(weft_worker_current(), -1);
    CHECK(weft_local_get(counted_key) == arg);
    static uint64_t other = 40;
    CHECK_EQ(weft_local_set(counted_key, &other), 0);
    CHECK_EQ(weft_local_set(plain_key, arg), 0);
    return 0;
}

static int block_with_values(void *arg)
{
    static uint64_t number = 50;
    (void)arg;
    CHECK_EQ(weft_local_set(counted_key, &number), 0);
    CHECK_EQ(weft_block_in_place(change_value, &number, WEFT_NEVER), 0);
    CHECK_EQ(*(uint64_t *)weft_local_get(counted_key), 40);
    CHECK(weft_local_get(plain_key) == &number);
    return 0;
}

/* Sets the first value on the pool thread: it is the fiber's value as well. */
static int block_without_values(void *arg)
{
    (void)arg;
    CHECK_EQ(weft_block_in_place(change_value, NULL, WEFT_NEVER), 0);
    CHECK_EQ(*(uint64_t *)weft_local_get(counted_key), 40);
    return 0;
}

static void values_survive_blocking_in_place(void)
{
    run_on_fibers(block_with_values);
    check_destroyed(1, 40);
    run_on_fibers(block_without_values);
    check_destroyed(1, 40);
}

/* --- Destructors --------------------------------------------------------------- */

static int set_some(void *arg)
{
    static uint64_t numbers[] = { 1, 20, 300 };
    (void)arg;
    CHECK_EQ(weft_local_set(plain_key, &numbers[0]), 0);
    CHECK_EQ(weft_local_set(counted_key, &numbers[0]), 0);
    CHECK_EQ(weft_local_set(counted_key, &numbers[2]), 0);
    check_destroyed(0, 0);
    return 0;
}

static void destructor_is_called_once_at_end(void)
{
    reset();
    run_in_thread(set_some);
    check_destroyed(1, 300);
    run_on_fibers(set_some);
    check_destroyed(1, 300);
}

static int set_to_nothing(void *arg)
{
    (void)arg;
    static uint64_t number = 1;
    CHECK_EQ(weft_local_set(counted_key, &number), 0);
    CHECK_EQ(weft_local_set(counted_key, NULL), 0);
    CHECK_EQ(weft_local_set(plain_key, &number), 0);
    return 0;
}

static void destructor_is_not_called_without_value(void)
{
    reset();
    run_in_thread(set_to_nothing);
    check_destroyed(0, 0);
    run_on_fibers(set_to_nothing);
    check_destroyed(0, 0);
}

static int set_stubborn(void *arg)
{
    (void)arg;
    static uint64_t number = 7;
    CHECK_EQ(weft_local_set(stubborn_key, &number), 0);
    return 0;
}

static void destructor_that_sets_value_again_is_called_four_times(void)
{
    reset();
    run_in_thread(set_stubborn);
    check_destroyed(4, 28);
    run_on_fibers(set_stubborn);
    check_destroyed(4, 28);
}

static int set_late(void *arg)
{
    (void)arg;
    static uint64_t number = 9;
    CHECK_EQ(weft_local_set(late_key, &number), 0);
    return 0;
}

/* The key that it sets has a lower index, so this round has already passed it. */
static void value_set_by_destructor_is_destroyed(void)
{
    reset();
    CHECK_LT(counted_key.index, late_key.index);
    run_in_thread(set_late);
    check_destroyed(1, 9);
    run_on_fibers(set_late);
    check_destroyed(1, 9);
}

static int set_patient(void *arg)
{
    CHECK_EQ(weft_local_set(patient_key, arg), 0);
    return 0;
}

static void destructor_of_fiber_may_wait(void)
{
    for (unsigned workers = 1; workers <= 4; workers *= 2) {
        reset();
        weft_runtime *rt = test_start(workers);
        weft_task *tasks[TRAVELLERS];
        for (uint64_t i = 0; i < TRAVELLERS; i++) {
            travellers[i] = i + 1;
            tasks[i] = test_go(rt, set_patient, &travellers[i]);
        }
        for (uint64_t i = 0; i < TRAVELLERS; i++) {
            CHECK_EQ(test_join_soon(tasks[i]), 0);
        }
        /* A join returns after the destructors. */
        check_destroyed(TRAVELLERS, TRAVELLERS * (TRAVELLERS + 1) / 2);
        weft_runtime_destroy(rt);
    }
}

static void canceled_fiber_destroys_its_values(void)
{
    reset();
    weft_runtime *rt = test_start(1);
    weft_task *task = test_go(rt, set_patient, &(uint64_t){ 3 });
    weft_cancel(task);
    CHECK_EQ(test_join_soon(task), 0);
    check_destroyed(1, 3);
    weft_runtime_destroy(rt);
}

static pthread_t thread_of_job;

static int set_in_job(void *arg)
{
    CHECK(weft_local_get(counted_key) == NULL);
    CHECK(weft_local_get(patient_key) == NULL);
    CHECK_EQ(weft_local_set(counted_key, arg), 0);
    CHECK_EQ(weft_local_set(patient_key, arg), 0);
    thread_of_job = pthread_self();
    return 0;
}

static int set_in_place(void *arg)
{
    CHECK_EQ(weft_local_set(plain_key, arg), 0);
    CHECK_EQ(weft_block_in_place(set_in_job, arg, WEFT_NEVER), 0);
    CHECK(weft_local_get(counted_key) == arg);
    return 0;
}

/* A pool of one thread: each job, and each function that blocks in place, runs where the one before
 * it ran. */
static void blocking_job_destroys_its_values(void)
{
    reset();
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 1;
    config.blocking_threads = 1;
    weft_runtime *rt;
    CHECK_EQ(weft_runtime_create(&rt, &config), 0);
    uint64_t number = 5;
    for (uint64_t i = 1; i <= 3; i++) {
        weft_task *job;
        pthread_t before = thread_of_job;
        CHECK_EQ(weft_runtime_spawn_blocking(rt, &job, set_in_job, &number), 0);
        CHECK_EQ(test_join_soon(job), 0);
        CHECK(i == 1 || pthread_equal(before, thread_of_job));
        check_destroyed(4 * i - 2, 5 * (4 * i - 2));
        CHECK_EQ(test_run(rt, set_in_place, &number), 0);
        check_destroyed(4 * i, 5 * 4 * i);
    }
    weft_runtime_destroy(rt);
    check_destroyed(12, 60);
}

static int end_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    return 0;
}

/* Leaves non-zero memory behind, in all sizes up to that of a fiber. */
static void soil_memory(void)
{
    char rubbish[sizeof(struct wf_fiber)];
    memset(rubbish, 0xa5, sizeof rubbish);
    for (size_t size = 32; size <= sizeof rubbish; size += 32) {
        weft_task *task;
        weft_spec spec = { .body = end_body, .state = rubbish, .state_size = size };
        CHECK_EQ(weft_spawn(&task, &spec), 0);
        CHECK_EQ(test_join_soon(task), 0);
    }
}

static int begins_with_none(void *arg)
{
    CHECK(weft_local_get(plain_key) == NULL);
    CHECK(weft_local_get(counted_key) == NULL);
    CHECK_EQ(weft_local_set(plain_key, arg), 0);
    CHECK_EQ(weft_local_set(counted_key, arg), 0);
    return 0;
}

/* Runs fibers on the stacks and in the memory of fibers that have ended. */
static int run_consecutively(void *arg)
{
    for (int i = 0; i < 20; i++) {
        weft_task *tasks[5];
        soil_memory();
        for (int k = 0; k < 5; k++) {
            CHECK_EQ(weft_go(&tasks[k], begins_with_none, arg), 0);
        }
        for (int k = 0; k < 5; k++) {
            CHECK_EQ(test_join_soon(tasks[k]), 0);
        }
    }
    return 0;
}

static void fiber_starts_without_values(void)
{
    reset();
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_run(rt, run_consecutively, &(uint64_t){ 1 }), 0);
    weft_runtime_destroy(rt);
    check_destroyed(100, 100);
}

/* --- Misuse -------------------------------------------------------------------- */

/* --- Inheritance ---------------------------------------------------------------- */

static uint64_t family[3] = { 2, 3, 4 };

static int check_heir(void *arg)
{
    unsigned depth = *(unsigned *)arg;
    CHECK(weft_local_get(plain_key) == NULL);
    CHECK(weft_local_get(shared_key) == &family[2]);
    CHECK(weft_local_get(next_key) == (depth == 1 ? &family[1] : NULL));
    if (depth == 1) {
        unsigned next = 2;
        weft_task *task;
        weft_fiber_spec spec = { .function = check_heir, .arg = &next, .inherits = true };
        CHECK_EQ(weft_go_with(&task, &spec), 0);
        CHECK_EQ(weft_join(task, NULL, WEFT_NEVER), 0);
    }
    return 0;
}

static int check_stranger(void *arg)
{
    (void)arg;
    CHECK(weft_local_get(shared_key) == NULL);
    CHECK(weft_local_get(next_key) == NULL);
    return 0;
}

static int leave_to_heirs(void *arg)
{
    (void)arg;
    unsigned depth = 1;
    weft_task *task;
    weft_fiber_spec spec = { .function = check_stranger, .inherits = true };
    CHECK_EQ(weft_go_with(&task, &spec), 0);
    CHECK_EQ(weft_join(task, NULL, WEFT_NEVER), 0);

    CHECK_EQ(weft_local_set(plain_key, &family[0]), 0);
    CHECK_EQ(weft_local_set(shared_key, &family[2]), 0);
    CHECK_EQ(weft_local_set(next_key, &family[0]), 0);
    spec = (weft_fiber_spec){ .function = check_heir, .arg = &depth, .inherits = true };
    CHECK_EQ(weft_go_with(&task, &spec), 0);
    CHECK_EQ(weft_join(task, NULL, WEFT_NEVER), 0);
    CHECK_EQ(weft_go(&task, check_stranger, NULL), 0);
    CHECK_EQ(weft_join(task, NULL, WEFT_NEVER), 0);
    check_destroyed(2, 8);
    spec.pinned = WEFT_PINNED_TO(99);
    CHECK_EQ(weft_go_with(&task, &spec), -EINVAL);
    check_destroyed(3, 12);
    return 0;
}

static void values_are_inherited_on_request(void)
{
    run_on_fibers(leave_to_heirs);
}

static int let_thread_leave(void *arg)
{
    weft_runtime *rt = test_start(1);
    unsigned depth = 1;
    weft_task *task;
    (void)arg;
    CHECK_EQ(weft_local_set(shared_key, &family[2]), 0);
    CHECK_EQ(weft_local_set(next_key, &family[0]), 0);
    weft_fiber_spec spec = { .function = check_heir, .arg = &depth, .inherits = true };
    CHECK_EQ(weft_runtime_go(rt, &task, &spec), 0);
    CHECK_EQ(test_join(task), 0);
    weft_runtime_destroy(rt);
    return 0;
}

static void fiber_can_inherit_from_thread(void)
{
    reset();
    run_in_thread(let_thread_leave);
    check_destroyed(3, 12);
}

static void get_with_invalid_key(void)
{
    (void)weft_local_get((weft_local){ .index = WEFT_LOCAL_KEYS_MAX });
}

static void get_with_wild_key(void)
{
    (void)weft_local_get((weft_local){ .index = UINT_MAX });
}

static void set_with_unknown_key(void)
{
    CHECK_EQ(weft_local_set((weft_local){ .index = WEFT_LOCAL_KEYS_MAX - 1 }, NULL), 0);
}

static int body(weft_co *co, void *state)
{
    (void)co;
    if (test_arg(state) == NULL) {
        (void)weft_local_get(plain_key);
    } else {
        CHECK_EQ(weft_local_set(plain_key, state), 0);
    }
    return 0;
}

static void get_in_stackless_task(void)
{
    (void)test_join_soon(test_spawn(test_start(1), body, NULL));
}

static void set_in_stackless_task(void)
{
    (void)test_join_soon(test_spawn(test_start(1), body, &plain_key));
}

static void misuse_aborts_with_message(void)
{
    reset();
    CHECK_ABORTS(get_with_invalid_key, "weft_local_get: no such key; make one");
    CHECK_ABORTS(get_with_wild_key, "weft_local_get: no such key");
    CHECK_ABORTS(set_with_unknown_key, "weft_local_set: no such key");
    CHECK_ABORTS(get_in_stackless_task, "weft_local_get: called on a worker outside of a fiber");
    CHECK_ABORTS(set_in_stackless_task, "weft_local_set: called on a worker outside of a fiber");
}

/* Uses the values of a thread the way its end does. */
static void end_leaves_no_values_behind(void)
{
    reset();
    uint64_t number = 4;
    void **locals = NULL;
    CHECK_EQ(weft_local_set(shared_key, &number), 0);
    CHECK_EQ(weft_local_set(next_key, NULL), 0); /* inherit() is not called for NULL. */
    CHECK_EQ(wf_local_inherit(&locals), 0);
    CHECK(locals != NULL);
    CHECK(locals[shared_key.index] == &number);
    CHECK(locals[next_key.index] == NULL);
    wf_local_end(&locals);
    CHECK(locals == NULL);
    wf_local_end(&locals);
    check_destroyed(1, 4);
    CHECK_EQ(weft_local_set(shared_key, NULL), 0);
}

/* --- Exhausting the keys -------------------------------------------------------- */

enum {
    MAKERS = 2 /* runs in parallel on almost any machine */
};

static struct maker {
    pthread_t thread;
    unsigned made;
    bool has[WEFT_LOCAL_KEYS_MAX];
} makers[MAKERS];

static _Atomic(uint64_t) makers_ready;

static void *make_until_refused(void *arg)
{
    struct maker *self = arg;
    weft_local key = { .index = 4711 };
    atomic_fetch_add(&makers_ready, 1);
    test_spin_for(&makers_ready, MAKERS);
    while (weft_local_create(&key, count) == 0) {
        CHECK_LT(key.index, WEFT_LOCAL_KEYS_MAX);
        CHECK(!self->has[key.index]);
        self->has[key.index] = true;
        self->made++;
        key.index = 4711;
    }
    CHECK_EQ(key.index, 4711);
    CHECK_EQ(weft_local_create(&key, NULL), -EAGAIN);
    return NULL;
}

static int set_all(void *arg)
{
    for (unsigned i = 0; i < WEFT_LOCAL_KEYS_MAX; i++) {
        bool made_here = i > next_key.index;
        CHECK_EQ(weft_local_set((weft_local){ .index = i }, made_here ? arg : NULL), 0);
    }
    return 0;
}

/* Two threads concurrently create all remaining keys. */
static void take_all_keys(void *arg)
{
    (void)arg;
    for (int i = 0; i < MAKERS; i++) {
        CHECK_EQ(pthread_create(&makers[i].thread, NULL, make_until_refused, &makers[i]), 0);
    }
    unsigned made = next_key.index + 1;
    for (int i = 0; i < MAKERS; i++) {
        CHECK_EQ(pthread_join(makers[i].thread, NULL), 0);
        made += makers[i].made;
    }
    CHECK_EQ(made, WEFT_LOCAL_KEYS_MAX);
    for (unsigned key = next_key.index + 1; key < WEFT_LOCAL_KEYS_MAX; key++) {
        CHECK_EQ(makers[0].has[key] + makers[1].has[key], 1);
    }
}

/*
 * Goal:   exactly 64 keys can be created, each once, and all of them work.
 * Method: two threads start at the same time and count. They may miss each other, so many child
 *         processes do it first.
 */
static void keys_run_out_at_64(void)
{
    reset();
    for (uint64_t i = 0; i < test_scale(200); i++) {
        child_must_succeed(take_all_keys, NULL);
    }
    take_all_keys(NULL);
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_run(rt, set_all, &(uint64_t){ 1 }), 0);
    weft_runtime_destroy(rt);
    uint64_t last = WEFT_LOCAL_KEYS_MAX - 1 - next_key.index;
    check_destroyed(last, last);
}

TEST_MAIN({
    TEST(misuse_aborts_with_message),
    TEST(get_returns_last_value_set),
    TEST(values_follow_their_fiber),
    TEST(values_are_invisible_to_other_fibers_and_threads),
    TEST(values_survive_blocking_in_place),
    TEST(destructor_is_called_once_at_end),
    TEST(destructor_is_not_called_without_value),
    TEST(destructor_that_sets_value_again_is_called_four_times),
    TEST(value_set_by_destructor_is_destroyed),
    TEST(destructor_of_fiber_may_wait),
    TEST(canceled_fiber_destroys_its_values),
    TEST(blocking_job_destroys_its_values),
    TEST(fiber_starts_without_values),
    TEST(values_are_inherited_on_request),
    TEST(fiber_can_inherit_from_thread),
    TEST(end_leaves_no_values_behind),
    TEST(keys_run_out_at_64),
})
