/* SPDX-License-Identifier: MIT */
/*
 * exceptions.cc - C++ exceptions in fibers that move between workers.
 *
 * For each thread, the C++ runtime keeps the caught exceptions and the number of exceptions in
 * flight. Here each fiber must find its own: it waits inside catch blocks and destructors, and
 * resumes on the other worker, where other fibers have left theirs, or on a pool thread, where
 * other blocking jobs have.
 *
 * Exits with 1 and a message on failure.
 */
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>

#include <weft.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)std::fprintf(stderr, "exceptions: line %d: %s is false\n", __LINE__,             \
                               #condition);                                                        \
            std::_Exit(1);                                                                         \
        }                                                                                          \
    } while (0)

namespace
{

constexpr weft_time too_long = 60 * WEFT_S;

/* --- Moving from one worker to the other ------------------------------------------ */

/*
 * Two workers, and one fiber that moves. At each wait a guard takes the worker that the fiber
 * has left, and keeps it until the fiber has arrived on the other one.
 */
struct Hop {
    weft_future future; /* must be first */
    std::atomic<weft_waker *> waker;
    std::atomic<bool> open;
    std::atomic<int> departed;
    std::atomic<int> departed_from;
    std::atomic<int> arrived;
    std::atomic<int> guards;
};

Hop hop;

int hop_poll(weft_future *)
{
    if (hop.open) {
        return 0;
    }
    weft_waker_drop(hop.waker.exchange(weft_waker_current()));
    return WEFT_PENDING;
}

bool hop_cancel(weft_future *)
{
    return false;
}

const weft_future_ops hop_ops = { hop_poll, hop_cancel, nullptr, 0 };

/* Called by the fiber that moves. */
void move()
{
    int from = weft_worker_current();
    hop.open = false;
    hop.departed_from = from;
    hop.departed++;
    CHECK(weft_await(&hop.future, WEFT_NEVER) == 0);
    CHECK(weft_worker_current() == 1 - from);
    hop.arrived++;
}

weft_runtime *start(unsigned workers, unsigned threads)
{
    weft_config config = {};
    config.size = sizeof config;
    config.workers = workers;
    config.blocking_threads = threads;
    weft_runtime *rt = nullptr;
    CHECK(weft_runtime_create(&rt, &config) == 0);
    return rt;
}

weft_task *go(weft_runtime *rt, int (*function)(void *), void *arg, uint32_t pinned = 0)
{
    weft_fiber_spec spec = {};
    spec.function = function;
    spec.arg = arg;
    spec.pinned = pinned;
    weft_task *task = nullptr;
    CHECK(weft_runtime_go(rt, &task, &spec) == 0);
    return task;
}

void join(weft_task *task)
{
    int result = -1;
    CHECK(weft_join(task, &result, weft_after(too_long)) == 0);
    CHECK(result == 0);
}

/* Blocks its thread. */
void wait_for(const std::atomic<int> &count, int number)
{
    weft_time deadline = weft_after(too_long);
    while (count < number) {
        CHECK(weft_now() < deadline);
        (void)sched_yield();
    }
}

/* Also throws and catches, on the worker that the moving fiber has left, and stays in its catch
 * block. */
int stand_guard(void *arg)
{
    int number = *static_cast<int *>(arg);
    CHECK(std::current_exception() == nullptr);
    CHECK(std::uncaught_exceptions() == 0);
    try {
        throw std::logic_error("guard");
    } catch (const std::logic_error &) {
        hop.guards++;
        wait_for(hop.arrived, number);
        CHECK(std::current_exception() != nullptr);
    }
    return 0;
}

/* Leaves a caught exception on the other worker for a while. */
int pass_through(void *)
{
    CHECK(std::current_exception() == nullptr);
    CHECK(std::uncaught_exceptions() == 0);
    try {
        throw 1;
    } catch (int) {
        (void)weft_yield();
    }
    return 0;
}

/* Runs the function on a fiber that changes its worker `moves` times. */
void run_moving(int (*function)(void *), int moves)
{
    weft_runtime *rt = start(2, 1);
    hop.future.ops = &hop_ops;
    hop.departed = 0;
    hop.arrived = 0;
    hop.guards = 0;
    weft_task *task = go(rt, function, nullptr);
    for (int number = 1; number <= moves; number++) {
        wait_for(hop.departed, number);
        int from = hop.departed_from;
        join(go(rt, pass_through, nullptr, WEFT_PINNED_TO(1 - from)));
        weft_task *guard = go(rt, stand_guard, &number, WEFT_PINNED_TO(from));
        wait_for(hop.guards, number);
        hop.open = true;
        weft_waker_fire(hop.waker.exchange(nullptr));
        join(guard);
    }
    join(task);
    weft_runtime_destroy(rt);
}

/* --- State that a fiber keeps ------------------------------------------------------- */

std::string current_text()
{
    try {
        throw;
    } catch (const std::exception &error) {
        return error.what();
    }
}

/* Catches, moves and rethrows. */
void catch_and_rethrow()
{
    try {
        throw std::runtime_error("mine");
    } catch (const std::runtime_error &error) {
        std::exception_ptr before = std::current_exception();
        move();
        CHECK(std::current_exception() == before);
        CHECK(std::uncaught_exceptions() == 0);
        CHECK(std::string(error.what()) == "mine");
        CHECK(current_text() == "mine");
        throw;
    }
}

int rethrow_after_move(void *)
{
    bool caught = false;
    try {
        catch_and_rethrow();
    } catch (const std::exception &error) {
        caught = true;
        CHECK(std::string(error.what()) == "mine");
        move();
        CHECK(std::current_exception() != nullptr);
    }
    CHECK(caught);
    CHECK(std::current_exception() == nullptr);
    CHECK(std::uncaught_exceptions() == 0);
    return 0;
}

/* Nested catch blocks: the end of the inner one restores the outer exception. */
int nested_catches(void *)
{
    try {
        throw std::runtime_error("outer");
    } catch (const std::runtime_error &) {
        move();
        try {
            throw std::runtime_error("inner");
        } catch (const std::runtime_error &) {
            move();
            CHECK(current_text() == "inner");
        }
        CHECK(current_text() == "outer");
        move();
        CHECK(current_text() == "outer");
    }
    CHECK(std::current_exception() == nullptr);
    return 0;
}

/* Its destructor runs while an exception is in flight, and waits. */
struct Waiter {
    ~Waiter()
    {
        CHECK(std::uncaught_exceptions() == 1);
        move();
        CHECK(std::uncaught_exceptions() == 1);
        CHECK(std::current_exception() == nullptr);
        try {
            throw 5;
        } catch (int five) {
            CHECK(five == 5);
            CHECK(std::uncaught_exceptions() == 1);
            move();
        }
        CHECK(std::uncaught_exceptions() == 1);
    }
};

int move_in_destructor(void *)
{
    CHECK(std::uncaught_exceptions() == 0);
    try {
        Waiter waiter;
        throw std::runtime_error("on its way");
    } catch (const std::runtime_error &) {
        CHECK(std::uncaught_exceptions() == 0);
        CHECK(current_text() == "on its way");
    }
    CHECK(std::uncaught_exceptions() == 0);
    return 0;
}

/* --- On a pool thread ----------------------------------------------------------------- */

int throw_on(void *)
{
    CHECK(weft_worker_current() == -1);
    CHECK(current_text() == "mine");
    CHECK(std::uncaught_exceptions() == 0);
    try {
        throw;
    } catch (const std::runtime_error &) {
    }
    return 6;
}

int block_in_catch(void *)
{
    try {
        throw std::runtime_error("mine");
    } catch (const std::runtime_error &) {
        CHECK(weft_block_in_place(throw_on, nullptr, WEFT_NEVER) == 6);
        CHECK(current_text() == "mine");
    }
    CHECK(std::current_exception() == nullptr);
    return 0;
}

/* A blocking job sees nothing of the fiber that ran on its thread before. */
int find_nothing(void *)
{
    CHECK(std::current_exception() == nullptr);
    CHECK(std::uncaught_exceptions() == 0);
    try {
        throw 7;
    } catch (int seven) {
        CHECK(seven == 7);
    }
    return 0;
}

struct Blocker {
    ~Blocker()
    {
        CHECK(weft_block_in_place(find_one_on_its_way, nullptr, WEFT_NEVER) == 8);
        CHECK(std::uncaught_exceptions() == 1);
    }

    static int find_one_on_its_way(void *)
    {
        CHECK(std::uncaught_exceptions() == 1);
        return 8;
    }
};

int block_in_destructor(void *)
{
    try {
        Blocker blocker;
        throw 9;
    } catch (int) {
    }
    return 0;
}

void check_pool()
{
    weft_runtime *rt = start(1, 1);
    for (int i = 0; i < 20; i++) {
        join(go(rt, block_in_catch, nullptr));
        weft_task *job = nullptr;
        CHECK(weft_runtime_spawn_blocking(rt, &job, find_nothing, nullptr) == 0);
        join(job);
        join(go(rt, block_in_destructor, nullptr));
        CHECK(weft_runtime_spawn_blocking(rt, &job, find_nothing, nullptr) == 0);
        join(job);
    }
    weft_runtime_destroy(rt);
}

/* --- Many fibers ------------------------------------------------------------------------ */

/* Yields at each depth of throw and catch. The exception that comes out is the one that was
 * thrown. */
void throw_deep(int number, int depth)
{
    try {
        if (depth == 0) {
            throw std::runtime_error(std::to_string(number));
        }
        throw_deep(number, depth - 1);
    } catch (const std::runtime_error &error) {
        for (int i = 0; i < 3; i++) {
            (void)weft_yield();
            CHECK(std::current_exception() != nullptr);
            CHECK(error.what() == std::to_string(number));
        }
        if (depth % 2 == 0) {
            throw;
        }
        throw std::runtime_error(current_text());
    }
}

int throw_often(void *arg)
{
    int number = *static_cast<int *>(arg);
    for (int i = 0; i < 20; i++) {
        CHECK(std::current_exception() == nullptr);
        CHECK(std::uncaught_exceptions() == 0);
        try {
            throw_deep(number + i, 5);
            CHECK(false);
        } catch (const std::runtime_error &error) {
            (void)weft_yield();
            CHECK(error.what() == std::to_string(number + i));
        }
        (void)weft_yield();
    }
    return 0;
}

/* A stackless task that runs between the fibers. */
int find_nothing_body(weft_co *, void *)
{
    return find_nothing(nullptr);
}

void check_many(unsigned workers)
{
    constexpr int count = 50;
    weft_runtime *rt = start(workers, 1);
    weft_task *tasks[count];
    int numbers[count];
    for (int i = 0; i < count; i++) {
        numbers[i] = i * 1000;
        tasks[i] = go(rt, throw_often, &numbers[i]);
        weft_spec spec = {};
        spec.body = find_nothing_body;
        CHECK(weft_runtime_spawn(rt, nullptr, &spec) == 0);
    }
    for (weft_task *task : tasks) {
        join(task);
    }
    weft_runtime_destroy(rt);
}

/* --- Exception that leaves its fiber ------------------------------------------------------ */

int throw_out(void *)
{
    throw std::runtime_error("nobody catches this");
}

void end_by_terminate()
{
    std::_Exit(17);
}

/* The child ends by std::terminate(). Runs before any thread exists. */
void check_terminate()
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        (void)std::set_terminate(end_by_terminate);
        weft_runtime *rt = start(1, 1);
        join(go(rt, throw_out, nullptr));
        std::_Exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 17);
}

} // namespace

int main()
{
    check_terminate();
    run_moving(rethrow_after_move, 2);
    run_moving(nested_catches, 3);
    run_moving(move_in_destructor, 2);
    check_many(1);
    check_many(2);
    check_many(8);
    check_pool();
    return 0;
}
