/* SPDX-License-Identifier: MIT */
/*
 * uncaught - C++ exceptions that leave a function which the library calls.
 *
 * Goal: each ends the process by std::terminate(), although the caller of the library would catch
 * it; none unwinds frames of the library.
 * Method: each kind of function throws in a child process, whose handler of std::terminate() ends
 * it with a status of its own if the exception is the one that was thrown. A catch block around
 * the call, or the end of the call, ends it with another.
 *
 * Ends with 1 and a sentence if one is not as it should be.
 */
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include <weft.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)std::fprintf(stderr, "uncaught: line %d: %s is false\n", __LINE__, #condition);  \
            std::_Exit(1);                                                                         \
        }                                                                                          \
    } while (0)

namespace
{

enum {
    TERMINATED = 17,
    RETURNED = 18,
    CAUGHT = 19,
};

struct Thrown {
};

int throw_int(void *)
{
    throw Thrown();
}

void throw_void(void *)
{
    throw Thrown();
}

bool throw_bool(void *)
{
    throw Thrown();
}

int do_nothing(void *)
{
    return 0;
}

void do_nothing_void(void *)
{
}

/* --- Functions on the stack of their caller ----------------------------------------------------- */

int throw_in_place(void *)
{
    return weft_block_in_place(throw_int, nullptr, WEFT_NEVER);
}

int throw_in_par_run(void *)
{
    return weft_par_run(weft_runtime_current(), throw_int, nullptr);
}

int throw_in_scope(weft_scope *scope, void *)
{
    CHECK(weft_scope_go(scope, do_nothing, nullptr) == 0);
    throw Thrown();
}

int throw_in_scope_run(void *)
{
    return weft_scope_run(throw_in_scope, nullptr, nullptr);
}

int throw_in_once(void *)
{
    static weft_once once;
    return weft_once_run(&once, throw_int, nullptr, WEFT_NEVER);
}

int throw_in_once_cell(void *)
{
    static weft_once_cell cell;
    void *value = nullptr;
    return weft_once_cell_get_or_make(
        &cell, [](void **, void *) -> int { throw Thrown(); }, nullptr, &value, WEFT_NEVER);
}

int throw_in_call_until(void *)
{
    return weft_call_until(throw_int, nullptr, weft_after(WEFT_S));
}

int throw_in_park(void *)
{
    static int place;
    return weft_park(&place, throw_bool, nullptr, WEFT_NEVER);
}

/* --- Forks, loops and algorithms ---------------------------------------------------------------- */

int throw_in_join2_first(void *)
{
    weft_join2(throw_void, nullptr, do_nothing_void, nullptr);
    return 0;
}

int throw_in_join2_second(void *)
{
    weft_join2(do_nothing_void, nullptr, throw_void, nullptr);
    return 0;
}

int throw_in_fork_join(void *)
{
    weft_forked forked;
    weft_fork(&forked, throw_void, nullptr);
    weft_fork_join(&forked);
    return 0;
}

int throw_in_join_n(void *)
{
    weft_call calls[3] = { { do_nothing_void, nullptr },
                           { throw_void, nullptr },
                           { do_nothing_void, nullptr } };
    weft_join_n(calls, 3);
    return 0;
}

WEFT_PARALLEL(int, throwing, int, number)
{
    if (number < 10) {
        throw Thrown();
    }
    int first = 0;
    int second = 0;
    throwing_both(&first, number / 2, &second, number / 2);
    return first + second;
}

int throw_in_parallel(void *)
{
    return throwing(1);
}

int throw_in_parallel_both(void *)
{
    int results[2];
    throwing_both(&results[0], 20, &results[1], 20);
    return results[0];
}

int throw_in_parallel_join(void *)
{
    throwing_forked forked;
    throwing_fork(&forked, 1);
    return throwing_join(&forked);
}

int throw_in_par_scope(void *)
{
    weft_par_scope scope;
    weft_par_scope_begin(&scope, nullptr);
    weft_par_spawn(&scope, throw_int, nullptr);
    return weft_par_scope_end(&scope);
}

int throw_in_for(void *)
{
    return weft_for(
        0, 1000000, [](size_t, size_t, void *) -> int { throw Thrown(); }, nullptr, nullptr);
}

int throw_in_short_for(void *)
{
    return weft_for(
        0, 1, [](size_t, size_t, void *) -> int { throw Thrown(); }, nullptr, nullptr);
}

int throw_in_reduce(void *)
{
    static const long zero = 0;
    weft_reduction how = { sizeof zero, &zero,
                           [](void *, size_t, size_t, void *) -> int { throw Thrown(); },
                           [](void *, const void *, void *) {} };
    long sum = 0;
    return weft_reduce(0, 100000, &how, nullptr, &sum, nullptr);
}

bool throw_in_comparison(const int *, const int *)
{
    throw Thrown();
}

WEFT_SORT_DEFINE(sort_throwing, int, throw_in_comparison)

int throw_in_sort(void *)
{
    int numbers[] = { 3, 1, 2 };
    return sort_throwing(numbers, 3, nullptr);
}

int throw_in_long_sort(void *)
{
    static int numbers[100000];
    return sort_throwing(numbers, 100000, nullptr);
}

/* --- Futures ------------------------------------------------------------------------------------ */

int await_throwing_poll(void *)
{
    static const weft_future_ops ops = { [](weft_future *) -> int { throw Thrown(); },
                                         [](weft_future *) { return true; }, nullptr, 0 };
    weft_future future = { &ops };
    return weft_await(&future, WEFT_NEVER);
}

int await_throwing_cancel(void *)
{
    static const weft_future_ops ops = { [](weft_future *) { return WEFT_PENDING; },
                                         [](weft_future *) -> bool { throw Thrown(); }, nullptr,
                                         0 };
    weft_future future = { &ops };
    return weft_await(&future, weft_after(1));
}

int select_throwing_poll(void *)
{
    static const weft_future_ops ops = { [](weft_future *) -> int { throw Thrown(); },
                                         [](weft_future *) { return true; }, nullptr, 0 };
    weft_future future = { &ops };
    weft_branch branch = {};
    branch.future = &future;
    return weft_select(&branch, 1, 0, WEFT_NEVER);
}

int throw_in_body(weft_co *, void *)
{
    throw Thrown();
}

int await_throwing_body(void *)
{
    weft_co_future future;
    weft_co_init(&future, throw_in_body, nullptr);
    return weft_await(&future.future, WEFT_NEVER);
}

/* --- Callbacks ---------------------------------------------------------------------------------- */

int throw_in_timer(void *)
{
    static weft_timer timer;
    weft_timer_start(&timer, weft_after(1), 0, throw_void, nullptr);
    return weft_sleep(60 * WEFT_S);
}

int throw_in_on_cancel(void *)
{
    static weft_token token;
    static weft_on_cancel on_cancel;
    weft_on_cancel_add(&on_cancel, &token, throw_void, nullptr);
    weft_token_cancel(&token);
    return 0;
}

int throw_in_inherit(void *)
{
    static weft_local key;
    CHECK(weft_local_create_inherited(
              &key, [](void *) -> void * { throw Thrown(); }, nullptr) == 0);
    CHECK(weft_local_set(key, &key) == 0);
    weft_fiber_spec spec = {};
    spec.function = do_nothing;
    spec.inherits = true;
    return weft_go_with(nullptr, &spec);
}

int throw_in_channel_drop(void *)
{
    weft_channel_options options = {};
    options.size = sizeof(int);
    options.capacity = 1;
    options.drop = [](void *, void *) { throw Thrown(); };
    weft_sender *sender = nullptr;
    weft_receiver *receiver = nullptr;
    CHECK(weft_channel_create(&sender, &receiver, &options) == 0);
    int message = 1;
    CHECK(weft_try_send(sender, &message) == 0);
    weft_receiver_drop(receiver);
    return 0;
}

struct Watch {
    weft_watch_sender *sender;
    weft_watch_receiver *receiver;

    explicit Watch(void (*drop)(void *, void *))
    {
        static const int first = 0;
        weft_watch_options options = {};
        options.size = sizeof first;
        options.first = &first;
        options.drop = drop;
        CHECK(weft_watch_create(&sender, &receiver, &options) == 0);
    }
};

int throw_in_watch_change(void *)
{
    Watch watch(nullptr);
    return weft_watch_change(
        watch.sender, [](void *, void *) -> bool { throw Thrown(); }, nullptr);
}

int throw_in_watch_wanted(void *)
{
    Watch watch(nullptr);
    return weft_watch_wait_for(
        watch.receiver, [](const void *, void *) -> bool { throw Thrown(); }, nullptr, nullptr,
        WEFT_NEVER);
}

int throw_in_watch_drop(void *)
{
    Watch watch([](void *, void *) { throw Thrown(); });
    int value = 1;
    return weft_watch_send(watch.sender, &value);
}

int throw_in_sequence(void *)
{
    static int numbers[2];
    return weft_sequence_for_each(
        weft_sequence_of_array(numbers, 2, sizeof numbers[0]),
        [](void *, void *) -> int { throw Thrown(); }, nullptr);
}

/* --- Functions with a stack or a thread of their own -------------------------------------------- */

int throw_in_blocking_job(void *)
{
    weft_task *task = nullptr;
    CHECK(weft_spawn_blocking(&task, throw_int, nullptr) == 0);
    return weft_join(task, nullptr, WEFT_NEVER);
}

int throw_in_fiber(void *)
{
    weft_task *task = nullptr;
    CHECK(weft_go(&task, throw_int, nullptr) == 0);
    return weft_join(task, nullptr, WEFT_NEVER);
}

int throw_in_stackless_task(void *)
{
    weft_spec spec = {};
    spec.body = throw_in_body;
    weft_task *task = nullptr;
    CHECK(weft_spawn(&task, &spec) == 0);
    return weft_join(task, nullptr, WEFT_NEVER);
}

int throw_in_local_destructor(void *)
{
    static weft_local key;
    CHECK(weft_local_create(&key, throw_void) == 0);
    weft_task *task = nullptr;
    CHECK(weft_go(
              &task, [](void *) { return weft_local_set(key, &key); }, nullptr) == 0);
    return weft_join(task, nullptr, WEFT_NEVER);
}

/* --- Without a runtime -------------------------------------------------------------------------- */

int throw_in_allocator(void *)
{
    weft_config config = {};
    config.size = sizeof config;
    weft_allocator allocator = {};
    allocator.alloc = [](void *, size_t, size_t) -> void * { throw Thrown(); };
    allocator.free = [](void *, void *, size_t, size_t) {};
    config.allocator = &allocator;
    weft_runtime *rt = nullptr;
    return weft_runtime_create(&rt, &config);
}

int throw_in_hook(void *)
{
    weft_config config = {};
    config.size = sizeof config;
    config.on_start = [](void *, unsigned) { throw Thrown(); };
    weft_runtime *rt = nullptr;
    CHECK(weft_runtime_create(&rt, &config) == 0);
    weft_runtime_destroy(rt);
    return 0;
}

int throw_on_guest_thread(void *)
{
    weft_runtime *rt = nullptr;
    CHECK(weft_runtime_create(&rt, nullptr) == 0);
    return weft_par_run(rt, throw_int, nullptr);
}

/* --- The table ---------------------------------------------------------------------------------- */

enum {
    ON_FIBER = 1,
    ON_THREAD = 2,
    ANYWHERE = 3,
};

const struct {
    const char *name;
    int (*call)(void *);
    int where;
} kinds[] = {
    { "block_in_place", throw_in_place, ANYWHERE },
    { "par_run", throw_in_par_run, ON_FIBER },
    { "par_run of a guest", throw_on_guest_thread, ON_THREAD },
    { "scope_run", throw_in_scope_run, ON_FIBER },
    { "once_run", throw_in_once, ANYWHERE },
    { "once_cell_get_or_make", throw_in_once_cell, ANYWHERE },
    { "call_until", throw_in_call_until, ON_FIBER },
    { "park", throw_in_park, ANYWHERE },
    { "join2, first", throw_in_join2_first, ANYWHERE },
    { "join2, second", throw_in_join2_second, ANYWHERE },
    { "fork_join", throw_in_fork_join, ANYWHERE },
    { "join_n", throw_in_join_n, ANYWHERE },
    { "WEFT_PARALLEL", throw_in_parallel, ANYWHERE },
    { "WEFT_PARALLEL, both", throw_in_parallel_both, ANYWHERE },
    { "WEFT_PARALLEL, join", throw_in_parallel_join, ANYWHERE },
    { "par_scope", throw_in_par_scope, ON_FIBER },
    { "for", throw_in_for, ANYWHERE },
    { "for, short", throw_in_short_for, ANYWHERE },
    { "reduce", throw_in_reduce, ANYWHERE },
    { "sort", throw_in_sort, ANYWHERE },
    { "sort, long", throw_in_long_sort, ANYWHERE },
    { "poll", await_throwing_poll, ANYWHERE },
    { "cancel", await_throwing_cancel, ANYWHERE },
    { "poll of a branch", select_throwing_poll, ANYWHERE },
    { "body", await_throwing_body, ANYWHERE },
    { "timer", throw_in_timer, ON_FIBER },
    { "on_cancel", throw_in_on_cancel, ANYWHERE },
    { "inherit", throw_in_inherit, ON_FIBER },
    { "drop of a channel", throw_in_channel_drop, ANYWHERE },
    { "watch_change", throw_in_watch_change, ANYWHERE },
    { "watch_wait_for", throw_in_watch_wanted, ANYWHERE },
    { "drop of a watch", throw_in_watch_drop, ANYWHERE },
    { "sequence_for_each", throw_in_sequence, ON_FIBER },
    { "spawn_blocking", throw_in_blocking_job, ON_FIBER },
    { "go", throw_in_fiber, ON_FIBER },
    { "spawn", throw_in_stackless_task, ON_FIBER },
    { "local, destructor", throw_in_local_destructor, ON_FIBER },
    { "allocator", throw_in_allocator, ON_THREAD },
    { "on_start", throw_in_hook, ON_THREAD },
};

void end_by_terminate()
{
    try {
        std::rethrow_exception(std::current_exception());
    } catch (const Thrown &) {
        std::_Exit(TERMINATED);
    } catch (...) {
        std::_Exit(1);
    }
}

/* The user's outer frame. */
int call_and_catch(void *arg)
{
    try {
        (void)(*static_cast<int (*const *)(void *)>(arg))(nullptr);
        std::_Exit(RETURNED);
    } catch (...) {
        std::_Exit(CAUGHT);
    }
}

void check(const char *name, int (*const *call)(void *), bool is_fiber)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        (void)alarm(60);
        (void)std::set_terminate(end_by_terminate);
        void *arg = const_cast<int (**)(void *)>(call);
        std::_Exit(is_fiber ? weft_run(nullptr, call_and_catch, arg) : call_and_catch(arg));
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != TERMINATED) {
        (void)std::fprintf(stderr, "uncaught: %s on a %s: status %#x, expected std::terminate()\n",
                           name, is_fiber ? "fiber" : "thread", (unsigned)status);
        std::_Exit(1);
    }
}

} // namespace

int main()
{
    for (const auto &kind : kinds) {
        if ((kind.where & ON_FIBER) != 0) {
            check(kind.name, &kind.call, true);
        }
        if ((kind.where & ON_THREAD) != 0) {
            check(kind.name, &kind.call, false);
        }
    }
    return 0;
}
