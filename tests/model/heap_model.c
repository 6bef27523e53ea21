/* SPDX-License-Identifier: MIT */
/*
 * heap_model.c - src/sched/heap.c: slots are used by one task at a time, a walker
 * meets whole tasks only, and the heap goes with the last reference.
 *
 * Also, with task.c: wakers that outlive their task and its runtime. Fakes: the
 * scheduler, which is some memory that must be there while the heap is;
 * wf_worker_slab(), as in worker.c; wf_join_answer(), which nobody calls.
 *
 * And sched_yield(), for the loop in which retire waits for large tasks: it takes a
 * lock in each round, so the checker would run it for ever. There the first yield
 * returns at once, so that a round comes at any time, and later ones wait until
 * another task has gone.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "mc.h"
#include "runq.h"
#include "sched/heap.h"
#include "sched/join.h"
#include "sched/task.h"
#include "sched/worker.h"

enum {
    SMALL = sizeof(struct wf_task),
    MIDDLE = 3 * WF_HEAP_GRAIN,
    LARGE = WF_HEAP_CLASSES * WF_HEAP_GRAIN,
    ID = 40, /* and a number */
    IDS = 4,
};

WF_TLS_DEFINE(struct wf_worker *, wf_tls_worker);

struct wf_sched {
    int notified;
};

static struct wf_heap *heap;
static struct wf_worker owner; /* of slab 0 */
static unsigned scheds_freed;
static _Atomic(int) visits;
static bool waits_for_large;
static unsigned yields;
static _Atomic(uint32_t) one_has_gone;

#undef sched_yield
int sched_yield(void);
int model_yield(void);

int model_yield(void)
{
    if (!waits_for_large) {
        return sched_yield();
    }
    if (yields++ > 0) {
        mc_await_exchange(&one_has_gone, 1, 0);
    }
    return 0;
}

void wf_join_answer(struct wf_task *task)
{
    (void)task;
    mc_assert(!"nobody joins");
}

unsigned wf_worker_slab(const struct wf_heap *of)
{
    const struct wf_worker *worker = wf_worker_current();
    return worker != NULL && worker->heap == of ? worker->index : of->outside;
}

static void destroy(struct wf_task *task)
{
    mc_assert(task->id >= ID);
    mc_assert(task->id < ID + IDS);
    wf_heap_free(task, wf_worker_slab(task->heap));
}

/* Queues the task, and then wakes a worker, as the real one does. */
static void schedule(struct wf_task *task)
{
    struct wf_sched *sched = task->heap->sched;
    runq_push(task);
    mc_assert(sched->notified == 0);
}

static int poll(struct wf_task *task)
{
    (void)task;
    return 0;
}

static const struct wf_task_ops ops = { .poll = poll, .schedule = schedule, .destroy = destroy };

static void begin(void)
{
    heap = wf_heap_create(&wf_alloc_default, calloc(1, sizeof(struct wf_sched)), 1);
    owner.heap = heap;
    mc_name(heap, sizeof *heap + 2 * sizeof(struct wf_slab), "heap");
}

static struct wf_task *spawn(size_t size, unsigned number, uint64_t state)
{
    struct wf_task *task = wf_heap_alloc(heap, wf_worker_slab(heap), size);
    task->ops = &ops;
    task->id = ID + number;
    task->result = 0;
    mc_name(task, sizeof *task, "slot");
    wf_store_release(&task->state, state);
    return task;
}

/* A task that is queued and has no handle. */
static struct wf_task *go(size_t size, unsigned number)
{
    return spawn(size, number, WF_STATE_RUNNING | WF_STATE_REF);
}

/* A task that has ended, and one handle to it. */
static struct wf_task *spawn_ended(size_t size, unsigned number)
{
    return spawn(size, number, WF_STATE_COMPLETE | WF_STATE_REF);
}

static void run_to_end(struct wf_task *task)
{
    (void)wf_task_begin(task);
    wf_task_complete(task, 0);
}

static void visit(struct wf_task *task)
{
    mc_assert(task->ops == &ops);
    mc_assert(task->id >= ID);
    mc_assert(task->id < ID + IDS);
    (void)wf_fetch_add_relaxed(&visits, 1);
}

/* What lies beside a walker's marker must not look like a free slot by chance. */
__attribute__((noinline)) static void leave_marks_on_the_stack(void)
{
    unsigned char marks[1024];
    memset(marks, 1, sizeof marks);
    mc_assert(marks[mc_choose(1)] == 1);
}

static void walker(void *arg)
{
    (void)arg;
    leave_marks_on_the_stack();
    wf_heap_visit(heap, visit);
}

static void free_sched(struct wf_sched *sched)
{
    mc_assert(sched->notified == 0);
    free(sched);
    scheds_freed++;
}

static void retire(void)
{
    wf_heap_retire(heap, free_sched);
}

static void check_gone(void)
{
    mc_join();
    mc_assert(scheds_freed == 1);
}

/* Everybody is done with the heap, and no task is left. */
static void end(void)
{
    mc_join();
    mc_note(wf_load_relaxed(&visits));
    retire();
    check_gone();
}

/*
 * Goal:   a walker sees slots whose state is set, and tasks that are whole.
 * Method: the owner of a slab spawns two, of different sizes, and one ends; the
 *         walker comes at any time.
 */
static void visit_against_spawn(void)
{
    begin();
    mc_go(walker, NULL);
    wf_tls_worker = &owner;
    struct wf_task *first = go(SMALL, 0);
    struct wf_task *second = go(MIDDLE, 1);
    mc_join();
    run_to_end(first);
    run_to_end(second);
    end();
}

/*
 * Goal:   a walker's reference keeps what it sees alive, and it may be the last; a
 *         slot that becomes another task under its hands is that task.
 * Method: a task ends, and its slot is used again, while a walker looks at it.
 */
static void visit_against_free_and_reuse(void)
{
    begin();
    wf_tls_worker = &owner;
    struct wf_task *first = go(SMALL, 0);
    mc_go(walker, NULL);
    run_to_end(first);
    struct wf_task *second = go(SMALL, 1);
    mc_note(second == first ? 10 : 11);
    run_to_end(second);
    end();
}

/*
 * Goal:   the same for tasks that are too large for a slab.
 * Method: one is there and ends; then another is spawned, and ends.
 */
static void visit_against_large_end(void)
{
    begin();
    struct wf_task *first = go(LARGE, 0);
    mc_go(walker, NULL);
    run_to_end(first);
    end();
}

static void visit_against_large_spawn(void)
{
    begin();
    mc_go(walker, NULL);
    run_to_end(go(LARGE, 0));
    end();
}

/*
 * Goal:   walkers step over each other's markers.
 * Method: two of them walk the large ones.
 */
static void two_walkers(void)
{
    begin();
    struct wf_task *task = go(LARGE, 0);
    mc_go(walker, NULL);
    walker(NULL);
    mc_join();
    mc_assert(wf_load_relaxed(&visits) == 2);
    run_to_end(task);
    end();
}

static void free_handle(void *arg)
{
    struct wf_task *task = arg;
    mc_assert(task->heap->sched->notified == 0);
    wf_task_release(task);
    wf_store_relaxed(&one_has_gone, 1u);
}

/*
 * Goal:   a slot that another thread has freed comes home, and is used again.
 * Method: its owner allocates meanwhile.
 */
static void free_by_others(void)
{
    begin();
    wf_tls_worker = &owner;
    struct wf_task *first = spawn_ended(SMALL, 0);
    mc_go(free_handle, first);
    struct wf_task *second = go(SMALL, 1);
    mc_note(second == first ? 10 : 11);
    run_to_end(second);
    end();
}

static void spawn_outside(void *arg)
{
    (void)arg;
    run_to_end(go(SMALL, 0));
}

/*
 * Goal:   the slab for everybody else has one user at a time.
 * Method: two threads spawn from it, and free.
 */
static void two_outside(void)
{
    begin();
    mc_go(spawn_outside, NULL);
    run_to_end(go(SMALL, 1));
    end();
}

/*
 * Goal:   the heap and the scheduler are there for whoever holds a task, and go with
 *         the last one.
 * Method: two handles are dropped while the heap is retired.
 */
static void retire_against_last_handles(void)
{
    begin();
    wf_tls_worker = &owner;
    mc_go(free_handle, spawn_ended(SMALL, 0));
    mc_go(free_handle, spawn_ended(SMALL, 1));
    retire();
    check_gone();
}

/*
 * Goal:   the same for tasks from outside.
 * Method: likewise.
 */
static void retire_against_outside_handles(void)
{
    begin();
    mc_go(free_handle, spawn_ended(SMALL, 0));
    mc_go(free_handle, spawn_ended(MIDDLE, 1));
    retire();
    check_gone();
}

/*
 * Goal:   the same for large ones.
 * Method: of two handles one is dropped meanwhile and one later (DEEP: both are
 *         meanwhile); it is the first or the last on the list.
 */
static void retire_against_large_handles(void)
{
    begin();
    waits_for_large = true;
    struct wf_task *tasks[] = { spawn_ended(LARGE, 0), spawn_ended(LARGE, 1) };
    unsigned later = mc_choose(2);
    mc_go(free_handle, tasks[1 - later]);
    if (mc_is_deep()) {
        mc_go(free_handle, tasks[later]);
    }
    retire();
    if (!mc_is_deep()) {
        free_handle(tasks[later]);
    }
    check_gone();
}

/*
 * Goal:   a task that is marked, and one that gets away, are told apart.
 * Method: two handles of one task are dropped while the mark is set.
 */
static void retire_against_two_handles_of_one(void)
{
    begin();
    wf_tls_worker = &owner;
    struct wf_task *task = spawn_ended(SMALL, 0);
    wf_task_retain(task);
    mc_go(free_handle, task);
    mc_go(free_handle, task);
    retire();
    check_gone();
}

static void fire(void *arg)
{
    wf_task_wake(arg);
}

/*
 * Goal:   a waker may be fired, and another dropped, when the task has completed
 *         and its runtime has ended.
 * Method: both against the end of the heap.
 */
static void waker_after_completion(void)
{
    begin();
    struct wf_task *task = spawn_ended(SMALL, 0);
    wf_task_retain(task);
    mc_go(fire, task);
    mc_go(free_handle, task);
    retire();
    check_gone();
}

/*
 * Goal:   a thread that has woken a task is still in the scheduler while the task
 *         ends, and its runtime with it: both must wait for it.
 * Method: the woken task is run to its end, and the heap retired at once.
 */
static void waker_in_the_scheduler(void)
{
    begin();
    struct wf_task *task = spawn(SMALL, 0, WF_STATE_IDLE | 2 * WF_STATE_REF);
    mc_go(fire, task);
    mc_assert(runq_run(runq_take()));
    retire();
    check_gone();
}

#define TEST(function) .name = #function, .run = function, .leaks = true

static const struct mc_test tests[] = {
    { TEST(visit_against_spawn), .seen = MC_OUTCOMES(0, 1, 2) },
    { TEST(visit_against_free_and_reuse), .spurious_cas = 1, .seen = MC_OUTCOMES(0, 1, 10, 11) },
    { TEST(visit_against_large_end), .seen = MC_OUTCOMES(0, 1) },
    { TEST(visit_against_large_spawn), .seen = MC_OUTCOMES(0, 1) },
    { TEST(free_by_others), .seen = MC_OUTCOMES(0, 10, 11) },
    { TEST(two_outside), .seen = MC_OUTCOMES(0) },
    { TEST(retire_against_last_handles), .spurious_cas = 1 },
    { TEST(retire_against_outside_handles) },
    { TEST(retire_against_large_handles) },
    { TEST(retire_against_two_handles_of_one) },
    { TEST(waker_after_completion) },
    { TEST(waker_in_the_scheduler) },
    { TEST(two_walkers), .seen = MC_OUTCOMES(2) },
};

MC_MAIN(tests)
