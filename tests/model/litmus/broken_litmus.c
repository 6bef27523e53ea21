/* SPDX-License-Identifier: MIT */
/*
 * broken_litmus.c - known mistakes in known algorithms: each must be found, and the
 * right version must pass.
 *
 * The .arg of a test is the mistake to make, or NULL.
 */
#include <stdlib.h>
#include <string.h>

#include "litmus.h"

static bool is_broken(const char *mistake)
{
    return mc_arg() != NULL && strcmp(mc_arg(), mistake) == 0;
}

/* --- Chase-Lev deque ---------------------------------------------------------------------- */

/*
 * As in "Correct and Efficient Work-Stealing for Weak Memory Models" (Le and others,
 * PPoPP 2013), with slots that are enough.
 *
 * no_restore   pop does not set bottom after it has won the last item: the next push
 *              goes below top and is lost.
 * no_pop_fence, no_steal_fence   owner and thief take the same item.
 */
static atomic_int top;
static atomic_int bottom;
static atomic_int slots[8];
static int taken[8]; /* a data race here, too, is an item that two have taken */

static void deque_push(int item)
{
    int b = load(&bottom, RLX);
    store(&slots[b], item, RLX);
    fence(REL);
    store(&bottom, b + 1, RLX);
}

static int deque_pop(void)
{
    int b = load(&bottom, RLX) - 1;
    store(&bottom, b, RLX);
    if (!is_broken("no_pop_fence")) {
        fence(SC);
    }
    int t = load(&top, RLX);
    if (t > b) {
        store(&bottom, b + 1, RLX);
        return -1;
    }
    int item = load(&slots[b], RLX);
    if (t < b) {
        return item;
    }
    bool won = cas(&top, t, t + 1, SC) == t;
    if (!won || !is_broken("no_restore")) {
        store(&bottom, b + 1, RLX);
    }
    return won ? item : -1;
}

static int deque_steal(void)
{
    int t = load(&top, ACQ);
    if (!is_broken("no_steal_fence")) {
        fence(SC);
    }
    int b = load(&bottom, ACQ);
    if (t >= b) {
        return -1;
    }
    int item = load(&slots[t], RLX);
    return cas(&top, t, t + 1, SC) == t ? item : -1;
}

static void take(int item)
{
    if (item >= 0) {
        taken[item]++;
    }
}

static void deque_thief(void *arg)
{
    (void)arg;
    take(deque_steal());
    take(deque_steal());
}

/* The owner pops between pushes, so that the deque is empty and not. */
static void deque(void)
{
    mc_go(deque_thief, NULL);
    deque_push(0);
    deque_push(1);
    take(deque_pop());
    take(deque_pop());
    deque_push(2);
    mc_join();
    for (int item = deque_pop(); item >= 0; item = deque_pop()) {
        take(item);
    }
    for (int i = 0; i < 3; i++) {
        mc_assert(taken[i] == 1);
    }
}

/* --- Flag handshake: to sleep, and to wake who sleeps ------------------------------------- */

/*
 * The sleeper says that it sleeps and looks for work once more; the submitter
 * brings work and looks for a sleeper.
 *
 * no_fence    neither sees the other.
 * no_recheck  the sleeper does not look once more.
 * one_fence   a fence on one side is not enough.
 * sc_load     nor is a seq_cst load of who sleeps, after a store that is only
 *             released (seeds 002 and 004).
 * rmw         right: each side has an RMW of the same word instead.
 */
static atomic_int work;
static _Atomic(uint32_t) asleep;

static void submitter(void *arg)
{
    (void)arg;
    uint32_t seen;
    store(&work, 1, REL);
    if (is_broken("sc_load")) {
        seen = atomic_load_explicit(&asleep, memory_order_seq_cst);
    } else if (is_broken("rmw")) {
        seen = atomic_fetch_add_explicit(&asleep, 0, memory_order_acq_rel);
    } else {
        fence(is_broken("no_fence") ? NO : SC);
        seen = atomic_load_explicit(&asleep, memory_order_relaxed);
    }
    if (seen == 1) {
        atomic_store_explicit(&asleep, 0, memory_order_relaxed);
        (void)mc_futex_wake(&asleep, 1);
    }
}

static void sleeper(void *arg)
{
    (void)arg;
    if (is_broken("sc_load")) {
        (void)atomic_exchange_explicit(&asleep, 1, memory_order_seq_cst);
    } else if (is_broken("rmw")) {
        (void)atomic_exchange_explicit(&asleep, 1, memory_order_acq_rel);
    } else {
        atomic_store_explicit(&asleep, 1, memory_order_relaxed);
        fence(is_broken("no_fence") || is_broken("one_fence") ? NO : SC);
    }
    if (!is_broken("no_recheck") && load(&work, RLX) == 1) {
        return;
    }
    while (atomic_load_explicit(&asleep, memory_order_relaxed) == 1) {
        (void)mc_futex_wait(&asleep, 1, INT64_MAX);
    }
}

static void handshake(void)
{
    mc_go(sleeper, NULL);
    mc_go(submitter, NULL);
    mc_join();
}

/* --- Parked workers in a bitmap: who clears the bit has the duties ------------------------ */

/*
 * A worker that wakes by itself takes its bit back, a notifier claims it. Whoever
 * clears the bit counts the worker as no longer parked.
 *
 * load_then_clear   the worker looks at the bit and clears it in two steps: both
 *                   count (seed 004).
 */
static atomic_int parked_bits;
static atomic_int parked_count;

static void notifier(void *arg)
{
    (void)arg;
    int bits = load(&parked_bits, AR);
    if (bits == 1 && cas(&parked_bits, 1, 0, AR) == 1) {
        (void)fetch_add(&parked_count, -1, AR);
    }
}

static void waking_worker(void *arg)
{
    (void)arg;
    if (is_broken("load_then_clear")) {
        if (load(&parked_bits, ACQ) == 1) {
            (void)exchange(&parked_bits, 0, AR);
            (void)fetch_add(&parked_count, -1, AR);
        }
    } else if (exchange(&parked_bits, 0, AR) == 1) {
        (void)fetch_add(&parked_count, -1, AR);
    }
}

static void bitmap(void)
{
    store(&parked_bits, 1, RLX);
    store(&parked_count, 1, RLX);
    mc_go(notifier, NULL);
    mc_go(waking_worker, NULL);
    mc_join();
    mc_assert(load(&parked_count, RLX) == 0);
}

/* --- A task that is woken while it runs --------------------------------------------------- */

/*
 * The worker's poll was pending. If the task was woken meanwhile it must run again.
 *
 * two_steps   first RUNNING to IDLE, then IDLE to SCHEDULED if it was woken: in
 *             between a waker may schedule it, and it may run to its end (seed 002).
 */
enum {
    IDLE,
    RUNNING,
    RUNNING_WOKEN,
    SCHEDULED,
};

struct task {
    atomic_int state;
};

static struct task *task;

/* It runs once more, ends, and is freed. */
static void run_to_the_end(struct task *which)
{
    store(&which->state, RUNNING, RLX);
    free(which);
}

static void wake(void *arg)
{
    (void)arg;
    int state = load(&task->state, ACQ);
    for (;;) {
        int next = state == IDLE ? SCHEDULED : RUNNING_WOKEN;
        int found = cas(&task->state, state, next, AR);
        if (found == state) {
            break;
        }
        state = found;
    }
    if (state == IDLE) {
        run_to_the_end(task);
    }
}

static void end_poll(void)
{
    if (is_broken("two_steps")) {
        bool woken = exchange(&task->state, IDLE, AR) == RUNNING_WOKEN;
        if (woken || load(&task->state, ACQ) == RUNNING_WOKEN) {
            if (cas(&task->state, IDLE, SCHEDULED, AR) == IDLE) {
                run_to_the_end(task);
            }
        }
        return;
    }
    if (cas(&task->state, RUNNING, IDLE, AR) != RUNNING) {
        store(&task->state, SCHEDULED, RLX);
        run_to_the_end(task);
    }
}

static void poll_and_wake(void)
{
    task = malloc(sizeof *task);
    store(&task->state, RUNNING, RLX);
    mc_go(wake, NULL);
    end_poll();
    mc_join();
}

/* --- Double-checked initialisation -------------------------------------------------------- */

/* relaxed   the first look acquires nothing. */
static atomic_int is_ready;
static atomic_int lock;
static int value;

static int get_value(void)
{
    if (load(&is_ready, is_broken("relaxed") ? RLX : ACQ) == 0) {
        while (cas(&lock, 0, 1, ACQ) != 0) {
        }
        if (load(&is_ready, RLX) == 0) {
            value = 42;
            store(&is_ready, 1, REL);
        }
        store(&lock, 0, REL);
    }
    return value;
}

static void use_value(void *arg)
{
    (void)arg;
    mc_assert(get_value() == 42);
}

static void double_check(void)
{
    mc_go(use_value, NULL);
    mc_go(use_value, NULL);
    mc_join();
}

/* --- ABA ---------------------------------------------------------------------------------- */

/*
 * A stack whose pop reads the next node and then exchanges the head. The head is a
 * node's number and, above it, a count of pushes.
 *
 * aba   without the count: the head is the old one again, the next is not.
 */
static atomic_int head;
static atomic_int nexts[4];
static int owners[4];

static int node_of(int word)
{
    return word & 0xf;
}

static void stack_push(int node)
{
    int old = load(&head, RLX);
    for (;;) {
        store(&nexts[node], node_of(old), RLX);
        int count = is_broken("aba") ? 0 : (old >> 4) + 1;
        int found = cas(&head, old, count << 4 | node, REL);
        if (found == old) {
            return;
        }
        old = found;
    }
}

static int stack_pop(void)
{
    int old = load(&head, ACQ);
    while (node_of(old) != 0) {
        int next = load(&nexts[node_of(old)], RLX);
        int found = cas(&head, old, (old & ~0xf) | next, AR);
        if (found == old) {
            return node_of(old);
        }
        old = found;
    }
    return 0;
}

static void popper(void *arg)
{
    (void)arg;
    int node = stack_pop();
    if (node != 0) {
        owners[node]++;
    }
}

static void pop_two_and_push_back(void *arg)
{
    (void)arg;
    int first = stack_pop();
    int second = stack_pop();
    if (second != 0) {
        owners[second]++;
    }
    if (first != 0) {
        stack_push(first);
    }
}

static void stack(void)
{
    stack_push(1);
    stack_push(2);
    mc_go(popper, NULL);
    mc_go(pop_two_and_push_back, NULL);
    mc_join();
    for (int node = stack_pop(); node != 0; node = stack_pop()) {
        owners[node]++;
    }
    mc_assert(owners[1] == 1);
    mc_assert(owners[2] == 1);
}

/* --- Positions that wrap ------------------------------------------------------------------ */

/*
 * A ring of two slots. The owner pushes and pops, a thief takes.
 *
 * two_bits   positions of two bits come round while the thief is between its look
 *            and its exchange: it takes what it saw then (seed 002, with 16 bits).
 */
enum {
    ITEMS = 5,
};

static atomic_int ring_head;
static atomic_int ring_tail;
static atomic_int ring_slots[2];
static int takers[ITEMS];

static int next_position(int position)
{
    return is_broken("two_bits") ? (position + 1) & 3 : position + 1;
}

static void ring_push(int item)
{
    int tail = load(&ring_tail, RLX);
    store(&ring_slots[tail & 1], item, RLX);
    store(&ring_tail, next_position(tail), REL);
}

static void ring_take(int head_order)
{
    int position = load(&ring_head, head_order);
    if (position == load(&ring_tail, ACQ)) {
        return;
    }
    int item = load(&ring_slots[position & 1], RLX);
    if (cas(&ring_head, position, next_position(position), AR) == position) {
        takers[item]++;
    }
}

static void ring_thief(void *arg)
{
    (void)arg;
    ring_take(ACQ);
}

static void ring(void)
{
    mc_go(ring_thief, NULL);
    for (int i = 0; i < ITEMS; i++) {
        ring_push(i);
        if (i + 1 < ITEMS) {
            ring_take(RLX);
        }
    }
    mc_join();
    ring_take(RLX);
    for (int i = 0; i < ITEMS; i++) {
        mc_assert(takers[i] == 1);
    }
}

/* --- A stack of allocated nodes ----------------------------------------------------------- */

/*
 * pop_one   reads the next of a node that another has popped and freed (seed 001).
 *           The right one takes all nodes at once.
 */
struct node {
    struct node *next;
};

static _Atomic(struct node *) nodes;

static void push_node(void)
{
    struct node *node = malloc(sizeof *node);
    struct node *old = atomic_load_explicit(&nodes, memory_order_relaxed);
    do {
        node->next = old;
    } while (!atomic_compare_exchange_strong_explicit(&nodes, &old, node, memory_order_release,
                                                      memory_order_relaxed));
}

static void free_nodes(struct node *list)
{
    while (list != NULL) {
        struct node *next = list->next;
        free(list);
        list = next;
    }
}

static void take_nodes(void *arg)
{
    (void)arg;
    if (!is_broken("pop_one")) {
        free_nodes(atomic_exchange_explicit(&nodes, NULL, memory_order_acquire));
        return;
    }
    struct node *old = atomic_load_explicit(&nodes, memory_order_acquire);
    while (old != NULL) {
        if (atomic_compare_exchange_strong_explicit(&nodes, &old, old->next, memory_order_acquire,
                                                    memory_order_acquire)) {
            free(old);
            return;
        }
    }
}

static void heap_stack(void)
{
    push_node();
    push_node();
    mc_go(take_nodes, NULL);
    mc_go(take_nodes, NULL);
    push_node();
    mc_join();
    free_nodes(atomic_exchange_explicit(&nodes, NULL, memory_order_acquire));
}

/* --- References --------------------------------------------------------------------------- */

/*
 * relaxed      the free is not ordered after the last use of the other.
 * no_acquire   nor is it, if the one who frees has released only.
 * two_steps    drops, then looks: it may be gone.
 * forgotten    one does not drop its reference.
 * revived      takes a reference where the last may have been dropped.
 */
struct object {
    atomic_int references;
    int used[2];
};

static struct object *object;

static void drop_reference(struct object *which)
{
    int order = is_broken("relaxed") ? RLX : is_broken("no_acquire") ? REL : AR;
    bool is_last = fetch_add(&which->references, -1, order) == 1;
    if (is_broken("two_steps")) {
        is_last = load(&which->references, ACQ) == 0;
    }
    if (is_last) {
        free(which);
    }
}

static void use_object(void *arg)
{
    int me = (int)(intptr_t)arg;
    struct object *mine = object;
    mine->used[me] = 1;
    if (!is_broken("forgotten") || me == 0) {
        drop_reference(mine);
    }
}

static void borrow_object(void *arg)
{
    (void)arg;
    (void)fetch_add(&object->references, 1, RLX);
    drop_reference(object);
}

static void references(void)
{
    object = malloc(sizeof *object);
    store(&object->references, 2, RLX);
    mc_go(use_object, (void *)0);
    mc_go(use_object, (void *)1);
    if (is_broken("revived")) {
        mc_go(borrow_object, NULL);
    }
    mc_join();
}

/* look_then_set   two that close it find it open, and both free it. */
static atomic_int is_closed;

static void close_object(void *arg)
{
    (void)arg;
    if (is_broken("look_then_set")) {
        if (load(&is_closed, ACQ) == 1) {
            return;
        }
        store(&is_closed, 1, REL);
    } else if (exchange(&is_closed, 1, AR) == 1) {
        return;
    }
    free(object);
}

static void close_once(void)
{
    object = malloc(sizeof *object);
    mc_go(close_object, NULL);
    mc_go(close_object, NULL);
    mc_join();
}

/* --- A value that is handed over once ----------------------------------------------------- */

/* ready_first   says that it is there before it is (seed 004). */
static atomic_int slot_state;
static int slot_value;

static void hand_over(void *arg)
{
    (void)arg;
    if (is_broken("ready_first")) {
        (void)cas(&slot_state, 0, 1, AR);
        slot_value = 42;
    } else {
        slot_value = 42;
        (void)cas(&slot_state, 0, 1, AR);
    }
}

static void receive(void *arg)
{
    (void)arg;
    if (load(&slot_state, ACQ) == 1) {
        mc_assert(slot_value == 42);
        mc_note(1);
    }
}

static void oneshot(void)
{
    mc_go(hand_over, NULL);
    mc_go(receive, NULL);
    mc_join();
}

#define FINE(test)                                                                                 \
    {                                                                                              \
        .name = #test, .run = test, .leaks = true                                                  \
    }
#define WRONG(test, mistake, fault)                                                                \
    {                                                                                              \
        .name = #test "_" mistake, .run = test, .arg = mistake, .expect = fault                    \
    }

static const struct mc_test tests[] = {
    FINE(deque),
    WRONG(deque, "no_restore", MC_ASSERTION),
    WRONG(deque, "no_pop_fence", MC_RACE),
    WRONG(deque, "no_steal_fence", MC_RACE),
    FINE(handshake),
    WRONG(handshake, "no_fence", MC_DEADLOCK),
    WRONG(handshake, "one_fence", MC_DEADLOCK),
    WRONG(handshake, "no_recheck", MC_DEADLOCK),
    WRONG(handshake, "sc_load", MC_DEADLOCK),
    { .name = "handshake_rmw", .run = handshake, .arg = "rmw" },
    FINE(bitmap),
    WRONG(bitmap, "load_then_clear", MC_ASSERTION),
    FINE(poll_and_wake),
    WRONG(poll_and_wake, "two_steps", MC_USE_AFTER_FREE),
    FINE(double_check),
    WRONG(double_check, "relaxed", MC_RACE),
    FINE(stack),
    WRONG(stack, "aba", MC_ASSERTION),
    FINE(ring),
    WRONG(ring, "two_bits", MC_ASSERTION),
    FINE(heap_stack),
    WRONG(heap_stack, "pop_one", MC_USE_AFTER_FREE),
    FINE(references),
    WRONG(references, "relaxed", MC_USE_AFTER_FREE),
    WRONG(references, "no_acquire", MC_USE_AFTER_FREE),
    WRONG(references, "two_steps", MC_USE_AFTER_FREE),
    { .name = "references_forgotten",
      .run = references,
      .arg = "forgotten",
      .leaks = true,
      .expect = MC_LEAK },
    WRONG(references, "revived", MC_USE_AFTER_FREE),
    FINE(close_once),
    WRONG(close_once, "look_then_set", MC_BAD_FREE),
    FINE(oneshot),
    WRONG(oneshot, "ready_first", MC_RACE),
};

MC_MAIN(tests)
