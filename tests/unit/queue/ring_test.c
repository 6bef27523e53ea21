/* SPDX-License-Identifier: MIT */
/*
 * ring_test.c - the ring on one thread, interrupted at the worst time, and with concurrent
 * thieves.
 *
 * Works for any WF_RING_SLOTS of at least 4. A ring may start at any position, so the
 * single-threaded tests run at 0 and again where the 32-bit positions wrap.
 */
#include "queue/ring.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/rng.h"
#include "test.h"

enum {
    SLOTS = WF_RING_SLOTS,
    HALF = WF_RING_SLOTS / 2,
    NODES = 2 * WF_RING_SLOTS + 2
};

_Static_assert(WF_RING_SLOTS >= 4, "with 2, a thief of half copies nothing");

static struct wf_ring ring; /* the owner's */
static struct wf_ring loot; /* the thief's */
static struct wf_qnode nodes[NODES];

/* As in ring.h: [real, tail) can be taken, [steal, real) is being copied by a thief. */
static void set_head(struct wf_ring *of, uint32_t steal, uint32_t real)
{
    wf_store_relaxed(&of->head, (uint64_t)steal << 32 | real);
}

/* Empties the ring and sets its next position. */
static void reset_to_position(struct wf_ring *of, uint32_t position)
{
    wf_ring_init(of);
    set_head(of, position, position);
    wf_store_relaxed(&of->tail, position);
}

static void push_range(struct wf_ring *to, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        CHECK(wf_ring_push(to, &nodes[i]));
    }
}

/* Pops nodes[first] to nodes[end - 1] and checks that the ring is then empty. */
static void check_drains(struct wf_ring *from, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        CHECK_EQ(wf_ring_len(from), end - i);
        CHECK(wf_ring_pop(from) == &nodes[i]);
    }
    CHECK_EQ(wf_ring_len(from), 0);
    CHECK_EQ(wf_ring_room(from), SLOTS);
    CHECK(wf_ring_pop(from) == NULL);
}

static void check_list_is(struct wf_qlist *list, uint32_t first, uint32_t end)
{
    CHECK_EQ(list->count, end - first);
    for (uint32_t i = first; i < end; i++) {
        CHECK(wf_qlist_pop(list) == &nodes[i]);
    }
    CHECK(wf_qlist_pop(list) == NULL);
}

/* Runs a check at position 0 and at positions that wrap during the check. */
static void at_all_positions(void (*check)(uint32_t position))
{
    check(0);
    check(1);
    check(0x7FFFFFFF);
    for (uint32_t before = 0; before <= SLOTS + 1; before += 1 + SLOTS / 32) {
        check(UINT32_MAX - before);
    }
}

/* --- one thread --- */

static void new_ring_is_empty(void)
{
    uint32_t taken = 99;
    memset(&ring, 0xA5, sizeof ring);
    wf_ring_init(&ring);
    wf_ring_init(&loot);
    CHECK_EQ(wf_ring_len(&ring), 0);
    CHECK_EQ(wf_ring_room(&ring), SLOTS);
    CHECK(wf_ring_pop(&ring) == NULL);
    CHECK(wf_ring_steal(&ring, &loot, &taken) == NULL);
    CHECK_EQ(taken, 0);
    CHECK_EQ(wf_ring_room(&ring), SLOTS);
}

static void check_pop_order(uint32_t position)
{
    reset_to_position(&ring, position);
    for (uint32_t count = 0; count <= SLOTS; count++) {
        push_range(&ring, 0, count);
        CHECK_EQ(wf_ring_room(&ring), SLOTS - count);
        check_drains(&ring, 0, count);
    }
}

static void pop_returns_oldest_node(void)
{
    at_all_positions(check_pop_order);
}

static void check_mark(uint32_t position)
{
    reset_to_position(&ring, position);
    CHECK(wf_ring_has_passed(&ring, wf_ring_mark(&ring)));
    push_range(&ring, 0, 3);
    uint32_t mark = wf_ring_mark(&ring);
    push_range(&ring, 3, 5);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK(!wf_ring_has_passed(&ring, mark));
        CHECK(wf_ring_pop(&ring) == &nodes[i]);
    }
    CHECK(wf_ring_has_passed(&ring, mark));
    check_drains(&ring, 3, 5);
    CHECK(wf_ring_has_passed(&ring, mark));
}

static void mark_is_passed_once_older_nodes_have_left(void)
{
    at_all_positions(check_mark);
}

static void check_push_to_full(uint32_t position)
{
    reset_to_position(&ring, position);
    push_range(&ring, 0, SLOTS);
    CHECK_EQ(wf_ring_room(&ring), 0);
    CHECK(!wf_ring_push(&ring, &nodes[SLOTS]));
    CHECK(!wf_ring_push(&ring, &nodes[SLOTS]));
    CHECK_EQ(wf_ring_len(&ring), SLOTS);

    CHECK(wf_ring_pop(&ring) == &nodes[0]);
    CHECK(wf_ring_push(&ring, &nodes[SLOTS]));
    CHECK(!wf_ring_push(&ring, &nodes[SLOTS + 1]));
    check_drains(&ring, 1, SLOTS + 1);
}

static void push_to_full_returns_false(void)
{
    at_all_positions(check_push_to_full);
}

static void check_push_list(uint32_t position)
{
    struct wf_qlist list = { 0 };
    reset_to_position(&ring, position);
    wf_ring_push_list(&ring, &list);
    CHECK_EQ(wf_ring_len(&ring), 0);

    push_range(&ring, 0, 1);
    for (uint32_t i = 1; i < SLOTS; i++) {
        wf_qlist_push(&list, &nodes[i]);
    }
    wf_ring_push_list(&ring, &list);
    check_list_is(&list, 0, 0);
    CHECK_EQ(wf_ring_room(&ring), 0);
    check_drains(&ring, 0, SLOTS);
}

static void push_list_fills_ring_in_order(void)
{
    at_all_positions(check_push_list);
}

static void push_one_too_many(void)
{
    struct wf_qlist list = { 0 };
    wf_ring_init(&ring);
    push_range(&ring, 0, SLOTS - 1);
    wf_qlist_push(&list, &nodes[SLOTS]);
    wf_qlist_push(&list, &nodes[SLOTS + 1]);
    wf_ring_push_list(&ring, &list);
}

static void push_list_beyond_free_slots_aborts(void)
{
    CHECK_ABORTS(push_one_too_many, "'list->count <= wf_ring_room(ring)' does not hold");
}

static void check_overflow(uint32_t position)
{
    struct wf_qlist out = { 0 };
    reset_to_position(&ring, position);
    push_range(&ring, 0, SLOTS);
    wf_ring_overflow(&ring, &nodes[SLOTS], &out);
    CHECK_EQ(wf_ring_len(&ring), SLOTS - HALF);
    CHECK_EQ(wf_ring_room(&ring), HALF);
    check_list_is(&out, HALF, SLOTS + 1);
    check_drains(&ring, 0, HALF);
}

static void overflow_moves_newer_half_and_node(void)
{
    at_all_positions(check_overflow);
}

static void overflow_appends_to_output_list(void)
{
    struct wf_qlist out = { 0 };
    wf_qlist_push(&out, &nodes[HALF - 1]);
    wf_ring_init(&ring);
    push_range(&ring, 0, SLOTS);
    wf_ring_overflow(&ring, &nodes[SLOTS], &out);
    check_list_is(&out, HALF - 1, SLOTS + 1);
}

static void overflow_of_ring_with_space_moves_only_node(void)
{
    struct wf_qlist out = { 0 };
    for (uint32_t count = 0; count < SLOTS; count++) {
        wf_ring_init(&ring);
        push_range(&ring, 0, count);
        wf_ring_overflow(&ring, &nodes[SLOTS], &out);
        check_list_is(&out, SLOTS, SLOTS + 1);
        check_drains(&ring, 0, count);
    }
}

static void overflow_during_claim_moves_only_node(void)
{
    for (uint32_t claimed = 1; claimed <= HALF; claimed++) {
        struct wf_qlist out = { 0 };
        wf_ring_init(&ring);
        push_range(&ring, 0, SLOTS);
        set_head(&ring, 0, claimed);
        CHECK(!wf_ring_push(&ring, &nodes[SLOTS]));
        wf_ring_overflow(&ring, &nodes[SLOTS], &out);
        check_list_is(&out, SLOTS, SLOTS + 1);
        CHECK_EQ(wf_ring_len(&ring), SLOTS - claimed);
        for (uint32_t i = claimed; i < SLOTS; i++) {
            CHECK(wf_ring_pop(&ring) == &nodes[i]);
        }
    }
}

static void check_steal(uint32_t position)
{
    for (uint32_t count = 1; count <= SLOTS; count++) {
        uint32_t taken = 0;
        uint32_t half = count - count / 2;
        reset_to_position(&ring, position);
        reset_to_position(&loot, 0 - position);
        push_range(&ring, 0, count);
        CHECK(wf_ring_steal(&ring, &loot, &taken) == &nodes[0]);
        CHECK_EQ(taken, half);
        check_drains(&loot, 1, half);
        check_drains(&ring, half, count);
    }
}

static void steal_takes_older_half_rounded_up(void)
{
    at_all_positions(check_steal);
}

static void steal_appends_to_thiefs_ring(void)
{
    uint32_t taken = 0;
    wf_ring_init(&ring);
    wf_ring_init(&loot);
    push_range(&loot, SLOTS, SLOTS + 1);
    push_range(&ring, 0, SLOTS);
    CHECK(wf_ring_steal(&ring, &loot, &taken) == &nodes[0]);
    CHECK_EQ(taken, HALF);
    CHECK(wf_ring_pop(&loot) == &nodes[SLOTS]);
    check_drains(&loot, 1, HALF);
    check_drains(&ring, HALF, SLOTS);
}

static void steal_is_limited_by_free_slots_of_thief(void)
{
    for (uint32_t room = 0; room <= SLOTS; room++) {
        uint32_t taken = 0;
        uint32_t expected = room + 1 < HALF ? room + 1 : HALF;
        wf_ring_init(&ring);
        wf_ring_init(&loot);
        push_range(&ring, 0, SLOTS);
        push_range(&loot, SLOTS, 2 * SLOTS - room);
        CHECK(wf_ring_steal(&ring, &loot, &taken) == &nodes[0]);
        CHECK_EQ(taken, expected);
        for (uint32_t i = SLOTS; i < 2 * SLOTS - room; i++) {
            CHECK(wf_ring_pop(&loot) == &nodes[i]);
        }
        check_drains(&loot, 1, expected);
        check_drains(&ring, expected, SLOTS);
    }
}

static void successive_steals_take_all_nodes_in_order(void)
{
    wf_ring_init(&ring);
    wf_ring_init(&loot);
    push_range(&ring, 0, SLOTS);
    uint32_t next = 0;
    while (next < SLOTS) {
        uint32_t taken = 0;
        CHECK(wf_ring_steal(&ring, &loot, &taken) == &nodes[next]);
        CHECK_EQ(taken, (SLOTS - next) - (SLOTS - next) / 2);
        check_drains(&loot, next + 1, next + taken);
        next += taken;
        CHECK_EQ(wf_ring_len(&ring), SLOTS - next);
    }
    check_drains(&ring, 0, 0);
}

static void check_claimed(uint32_t position)
{
    uint32_t taken = 99;
    reset_to_position(&ring, position);
    wf_ring_init(&loot);
    push_range(&ring, 0, SLOTS);
    set_head(&ring, position, position + 1);

    CHECK(wf_ring_steal(&ring, &loot, &taken) == NULL);
    CHECK_EQ(taken, 0);
    check_drains(&loot, 0, 0);

    /* The claimed slot can no longer be taken, but it is not free yet. */
    CHECK_EQ(wf_ring_len(&ring), SLOTS - 1);
    CHECK_EQ(wf_ring_room(&ring), 0);
    CHECK(wf_ring_pop(&ring) == &nodes[1]);
    CHECK_EQ(wf_ring_len(&ring), SLOTS - 2);
    CHECK_EQ(wf_ring_room(&ring), 0);
    CHECK(!wf_ring_push(&ring, &nodes[SLOTS]));
    CHECK(wf_load_relaxed(&ring.head) == ((uint64_t)position << 32 | (uint32_t)(position + 2)));
}

static void claim_blocks_other_thieves_and_pushes(void)
{
    at_all_positions(check_claimed);
}

static void check_stale_len(uint32_t position)
{
    reset_to_position(&ring, position);
    for (uint32_t ahead = 0; ahead <= 4 * SLOTS; ahead++) {
        wf_store_relaxed(&ring.tail, position + ahead);
        CHECK_EQ(wf_ring_len(&ring), ahead < SLOTS ? ahead : SLOTS);
    }
}

/* A reader may combine an old head with a new tail. */
static void len_never_exceeds_slots(void)
{
    at_all_positions(check_stale_len);
}

/* --- interrupted --- */

/*
 * Runs a function in the middle of another one. A range of memory stays protected until the
 * code under test accesses it. That access first calls the function, which does what another
 * thread could do at this moment. So one thread plays owner and thief, at the worst time,
 * deterministically.
 */
struct trap {
    void *memory;
    size_t size;
    void (*run)(void);
};

static struct trap trap;

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    size_t offset = (size_t)((char *)info->si_addr - (char *)trap.memory);
    if (trap.run == NULL || offset >= trap.size) {
        struct sigaction usual = { .sa_handler = SIG_DFL };
        (void)sigaction(number, &usual, NULL); /* A real fault: it repeats. */
        return;
    }
    void (*run)(void) = trap.run;
    trap.run = NULL;
    CHECK_EQ(mprotect(trap.memory, trap.size, PROT_READ | PROT_WRITE), 0);
    run();
}

/* Returns zeroed memory on its own pages. It is never freed. */
static void *trap_alloc(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

static void trap_arm(void *memory, size_t size, int still_allowed, void (*run)(void))
{
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER };
    CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
    trap = (struct trap){ .memory = memory, .size = size, .run = run };
    CHECK_EQ(mprotect(memory, size, still_allowed), 0);
}

/* Calls run before the next write to the memory, which must be page-aligned. */
static void trap_write(void *memory, size_t size, void (*run)(void))
{
    trap_arm(memory, size, PROT_READ, run);
}

/* Calls run before the next access of any kind. */
static void trap_access(void *memory, size_t size, void (*run)(void))
{
    trap_arm(memory, size, PROT_NONE, run);
}

/* Counts how often each node was taken, while one of the rings is on trapped pages. */
struct scene {
    struct wf_ring *owner;
    struct wf_ring *thief;
    struct wf_qnode *nodes; /* NODES elements */
    uint32_t taken[NODES];
    uint32_t pushed;
};

static struct scene scene;

static void scene_open(struct wf_ring *owner, struct wf_ring *thief, struct wf_qnode *of)
{
    scene = (struct scene){ .owner = owner, .thief = thief, .nodes = of };
    wf_ring_init(owner);
    wf_ring_init(thief);
}

static void scene_push(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        CHECK(wf_ring_push(scene.owner, &scene.nodes[scene.pushed]));
        scene.pushed++;
    }
}

static void scene_take(struct wf_qnode *node)
{
    CHECK(node >= scene.nodes);
    CHECK(node < scene.nodes + scene.pushed);
    scene.taken[node - scene.nodes]++;
}

/* Steals once and takes all stolen nodes. Returns their number. */
static uint32_t scene_steal(void)
{
    uint32_t taken = 0;
    struct wf_qnode *node = wf_ring_steal(scene.owner, scene.thief, &taken);
    for (uint32_t i = 0; i < taken; i++) {
        scene_take(node);
        node = wf_ring_pop(scene.thief);
    }
    CHECK(node == NULL);
    return taken;
}

/* Pushes one more node to a full ring, through wf_ring_overflow(). Returns the number of nodes
 * that were moved out. */
static size_t scene_overflow(void)
{
    struct wf_qlist out = { 0 };
    struct wf_qnode *node = &scene.nodes[scene.pushed];
    CHECK(!wf_ring_push(scene.owner, node));
    scene.pushed++;
    wf_ring_overflow(scene.owner, node, &out);
    size_t count = out.count;
    for (struct wf_qnode *next; (next = wf_qlist_pop(&out)) != NULL;) {
        scene_take(next);
    }
    return count;
}

/* Lets the owner take the rest, then checks that each node was taken once and that the ring
 * still works. */
static void scene_close(void)
{
    for (struct wf_qnode *node; (node = wf_ring_pop(scene.owner)) != NULL;) {
        scene_take(node);
    }
    for (uint32_t i = 0; i < scene.pushed; i++) {
        CHECK_EQ(scene.taken[i], 1);
    }
    CHECK_EQ(wf_ring_len(scene.owner), 0);
    CHECK_EQ(wf_ring_room(scene.owner), SLOTS);
    scene_push(1);
    CHECK_EQ(scene_steal(), 1);
}

/* The thief's first write to its own ring comes after its claim and before its release. */
static void interrupt_copy(void (*run)(void))
{
    struct wf_ring *thief = trap_alloc(sizeof *thief);
    scene_open(&ring, thief, nodes);
    scene_push(SLOTS);
    trap_write(thief, sizeof *thief, run);
    CHECK_EQ(scene_steal(), HALF);
    scene_close();
    CHECK(trap.run == NULL);
}

static void pop_unclaimed_nodes(void)
{
    for (uint32_t i = HALF; i < SLOTS; i++) {
        scene_take(wf_ring_pop(&ring));
        CHECK_EQ(wf_ring_room(&ring), 0);
    }
    CHECK(wf_ring_pop(&ring) == NULL);
    CHECK(!wf_ring_push(&ring, &nodes[SLOTS]));
}

static void pops_during_copy_leave_claim_intact(void)
{
    interrupt_copy(pop_unclaimed_nodes);
}

static void steal_as_second_thief(void)
{
    uint32_t taken = 99;
    CHECK(wf_ring_steal(&ring, &loot, &taken) == NULL);
    CHECK_EQ(taken, 0);
}

static void second_thief_during_copy_gets_nothing(void)
{
    wf_ring_init(&loot);
    interrupt_copy(steal_as_second_thief);
}

static void overflow_moves_one_node(void)
{
    CHECK_EQ(scene_overflow(), 1);
    CHECK_EQ(wf_ring_len(&ring), SLOTS - HALF);
}

static void overflow_during_copy_leaves_ring_intact(void)
{
    interrupt_copy(overflow_moves_one_node);
}

/* Tries to take the newer half, too, while the overflow moves it. */
static void steal_until_empty(void)
{
    while (scene_steal() > 0) {
    }
}

/*
 * Goal:   steals between the steps of an overflow take only nodes that stay in the ring,
 *         however many steals there are.
 * Method: the overflow's first write is to a node that it moves. At that write, a thief steals
 *         until it gets nothing.
 */
static void steals_during_overflow_take_no_node_twice(void)
{
    size_t size = NODES * sizeof(struct wf_qnode);
    scene_open(&ring, &loot, trap_alloc(size));
    scene_push(SLOTS);
    trap_write(scene.nodes, size, steal_until_empty);
    CHECK_EQ(scene_overflow(), SLOTS - HALF + 1);
    CHECK_LE(wf_ring_len(&ring), HALF);
    scene_close();
    CHECK(trap.run == NULL);
}

/* ThreadSanitizer's atomics hold a lock while they work, so the trapped function cannot use the
 * word at that moment. */
#ifdef WF_TSAN
#define CAN_INTERRUPT_ATOMICS 0
#else
#define CAN_INTERRUPT_ATOMICS 1
#endif

/* The thief's first write to the ring is its claim, after it has read head and tail. */
static void interrupt_claim(void (*run)(void), uint32_t expected)
{
    if (CAN_INTERRUPT_ATOMICS) {
        struct wf_ring *owner = trap_alloc(sizeof *owner);
        scene_open(owner, &loot, nodes);
        scene_push(SLOTS);
        trap_write(owner, sizeof *owner, run);
        CHECK_EQ(scene_steal(), expected);
        scene_close();
        CHECK(trap.run == NULL);
    }
}

static void overflow_and_refill(void)
{
    CHECK_EQ(scene_overflow(), SLOTS - HALF + 1);
    scene_push(HALF - 1);
}

static void claim_after_concurrent_overflow_recounts(void)
{
    interrupt_claim(overflow_and_refill, (SLOTS - 1) - (SLOTS - 1) / 2);
}

static void pop_all_but_one(void)
{
    for (uint32_t i = 1; i < SLOTS; i++) {
        scene_take(wf_ring_pop(scene.owner));
    }
}

static void claim_after_concurrent_pops_recounts(void)
{
    interrupt_claim(pop_all_but_one, 1);
}

static void pop_all_and_refill(void)
{
    for (uint32_t i = 0; i < SLOTS; i++) {
        scene_take(wf_ring_pop(scene.owner));
    }
    scene_push(SLOTS - 1);
}

/* The slots are the same, but the positions differ. */
static void claim_is_safe_from_aba_after_full_round(void)
{
    interrupt_claim(pop_all_and_refill, (SLOTS - 1) - (SLOTS - 1) / 2);
}

static void steal_half(void)
{
    CHECK_EQ(scene_steal(), HALF);
}

/* The owner's first write in a pop is its CAS, after it has read head and tail. */
static void pop_after_lost_race_takes_next_node(void)
{
    if (CAN_INTERRUPT_ATOMICS) {
        struct wf_ring *owner = trap_alloc(sizeof *owner);
        scene_open(owner, &loot, nodes);
        scene_push(SLOTS);
        trap_write(owner, sizeof *owner, steal_half);
        struct wf_qnode *node = wf_ring_pop(owner);
        CHECK(node == &nodes[HALF]);
        scene_take(node);
        scene_close();
        CHECK(trap.run == NULL);
    }
}

/* Same as pop_after_lost_race_takes_next_node, for an overflow: the ring was full when the
 * owner looked and no longer is. */
static void overflow_after_lost_race_moves_only_node(void)
{
    if (CAN_INTERRUPT_ATOMICS) {
        struct wf_ring *owner = trap_alloc(sizeof *owner);
        scene_open(owner, &loot, nodes);
        scene_push(SLOTS);
        trap_write(owner, sizeof *owner, steal_half);
        CHECK_EQ(scene_overflow(), 1);
        CHECK_EQ(wf_ring_len(owner), SLOTS - HALF);
        scene_close();
        CHECK(trap.run == NULL);
    }
}

/* Returns a ring whose head ends one page and whose tail starts the next. */
static struct wf_ring *ring_on_two_pages(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = trap_alloc(page + sizeof(struct wf_ring));
    return (struct wf_ring *)(void *)(memory + page - offsetof(struct wf_ring, tail));
}

/* Traps everything but the head: the trap fires after head is read and before tail is. */
static void trap_after_head(struct wf_ring *owner, void (*run)(void))
{
    trap_access(&owner->tail, sizeof *owner - offsetof(struct wf_ring, tail), run);
}

/* Takes and refills, so that the tail is more than a full round ahead of the head that was
 * read. */
static void pop_and_refill_full_round(void)
{
    for (uint32_t i = 0; i < SLOTS; i++) {
        scene_take(wf_ring_pop(scene.owner));
        scene_push(1);
    }
}

static void claim_with_stale_head_and_new_tail_recounts(void)
{
    if (CAN_INTERRUPT_ATOMICS) {
        scene_open(ring_on_two_pages(), &loot, nodes);
        scene_push(SLOTS);
        trap_after_head(scene.owner, pop_and_refill_full_round);
        CHECK_EQ(scene_steal(), HALF);
        scene_close();
        CHECK(trap.run == NULL);
    }
}

static void len_with_stale_head_and_new_tail_is_capped_at_slots(void)
{
    if (CAN_INTERRUPT_ATOMICS) {
        scene_open(ring_on_two_pages(), &loot, nodes);
        scene_push(SLOTS);
        trap_after_head(scene.owner, pop_and_refill_full_round);
        CHECK_EQ(wf_ring_len(scene.owner), SLOTS);
        scene_close();
        CHECK(trap.run == NULL);
    }
}

/* --- with thieves --- */

enum {
    WORKERS = 3
};

struct item {
    struct wf_qnode node;    /* first: a node is its item */
    _Atomic(uint32_t) taken; /* incremented by takers */
    uint64_t number;         /* written before the push, cleared by the taker [R1] */
};

struct worker {
    struct wf_ring ring;
    struct wf_rng rng;
    pthread_t thread;
    struct item *items; /* items that this worker pushes, in this order */
    uint64_t last_number;
};

static struct worker workers[WORKERS];
static uint64_t items_each;
static _Atomic(uint64_t) taken_count; /* incremented by takers */
static _Atomic(uint64_t) pushed_all;  /* number of workers that have pushed all their items */

static void consume(struct wf_qnode *node)
{
    struct item *item = (struct item *)node;
    CHECK_EQ(wf_fetch_add_relaxed(&item->taken, 1), 0);
    CHECK_NE(item->number, 0);
    item->number = 0;
    (void)wf_fetch_add_relaxed(&taken_count, 1);
}

static void workers_init(uint64_t items)
{
    items_each = items;
    wf_store_relaxed(&taken_count, 0u);
    wf_store_relaxed(&pushed_all, 0u);
    for (int i = 0; i < WORKERS; i++) {
        struct worker *worker = &workers[i];
        wf_rng_seed(&worker->rng, test_seed(), (uint64_t)i);
        worker->items = calloc(items, sizeof *worker->items);
        CHECK(worker->items != NULL);
        worker->last_number = 0;
        reset_to_position(&worker->ring, 0 - wf_rng_below(&worker->rng, (uint32_t)items));
    }
}

/* Checks that each item of the first `pushers` workers was taken once. */
static void workers_check(int pushers)
{
    for (int i = 0; i < WORKERS; i++) {
        for (uint64_t n = 0; n < items_each && i < pushers; n++) {
            CHECK_EQ(wf_load_relaxed(&workers[i].items[n].taken), 1);
        }
        CHECK_EQ(wf_ring_len(&workers[i].ring), 0);
        CHECK_EQ(wf_ring_room(&workers[i].ring), SLOTS);
        free(workers[i].items);
    }
    CHECK_EQ(wf_load_relaxed(&taken_count), (uint64_t)pushers * items_each);
}

/* Takes a node of the first worker. Each taker at the older end of a ring gets nodes in order. */
static void consume_in_order(struct worker *self, struct wf_qnode *node)
{
    const struct item *item = (struct item *)node;
    CHECK_LT(self->last_number, item->number);
    self->last_number = item->number;
    consume(node);
}

/* Pushes the worker's i-th item. If the ring is full, takes the nodes that overflow. */
static void push_or_spill(struct worker *self, uint64_t i)
{
    struct item *item = &self->items[i];
    item->number = i + 1;
    if (wf_ring_push(&self->ring, &item->node)) {
        return;
    }
    struct wf_qlist out = { 0 };
    wf_ring_overflow(&self->ring, &item->node, &out);
    for (struct wf_qnode *node; (node = wf_qlist_pop(&out)) != NULL;) {
        consume(node);
    }
}

/* Steals once and takes the oldest node. The other stolen nodes stay in the thief's ring.
 * Returns false if there was nothing to steal. */
static bool steal_from(struct worker *self, struct worker *victim)
{
    uint32_t taken = 0;
    struct wf_qnode *node = wf_ring_steal(&victim->ring, &self->ring, &taken);
    CHECK_EQ(node == NULL, taken == 0);
    CHECK_LE(taken, HALF);
    CHECK_LE(wf_ring_len(&victim->ring), SLOTS);
    if (node != NULL) {
        consume(node);
    }
    return node != NULL;
}

/* A thief that only steals from the first worker and takes nodes in order. */
static void *steal_from_first(void *arg)
{
    struct worker *self = arg;
    struct worker *owner = &workers[0];
    for (;;) {
        bool is_last_try = wf_load_acquire(&pushed_all) > 0;
        CHECK_LE(wf_ring_len(&owner->ring), SLOTS);
        uint32_t taken = 0;
        struct wf_qnode *node = wf_ring_steal(&owner->ring, &self->ring, &taken);
        if (node == NULL && is_last_try) {
            return NULL;
        }
        for (uint32_t i = 0; i < taken; i++) {
            consume_in_order(self, node);
            node = wf_ring_pop(&self->ring);
        }
        CHECK(node == NULL);
        if (taken == 0) {
            (void)sched_yield();
        }
    }
}

/*
 * Goal:   with an owner and two thieves each node is taken once, and each taker gets nodes in
 *         push order, except those that overflow.
 * Method: the owner pushes far more nodes than there are slots and pops occasionally, so the
 *         ring is sometimes empty, sometimes full, and overflows. Positions wrap on the way.
 *         Nodes count their takers and carry their number.
 */
static void owner_and_two_thieves_take_each_node_once(void)
{
    workers_init(test_scale(1000000));
    struct worker *owner = &workers[0];
    for (int i = 1; i < WORKERS; i++) {
        CHECK_EQ(pthread_create(&workers[i].thread, NULL, steal_from_first, &workers[i]), 0);
    }
    for (uint64_t i = 0; i < items_each; i++) {
        push_or_spill(owner, i);
        struct wf_qnode *node = NULL;
        uint32_t pops = wf_rng_below(&owner->rng, SLOTS) == 0 ? SLOTS / 2 : 0;
        while (pops-- > 0 && (node = wf_ring_pop(&owner->ring)) != NULL) {
            consume_in_order(owner, node);
        }
    }
    for (struct wf_qnode *node; (node = wf_ring_pop(&owner->ring)) != NULL;) {
        consume_in_order(owner, node);
    }
    wf_store_release(&pushed_all, 1u);
    for (int i = 1; i < WORKERS; i++) {
        CHECK_EQ(pthread_join(workers[i].thread, NULL), 0);
    }
    workers_check(1);
}

static void *push_pop_and_steal(void *arg)
{
    struct worker *self = arg;
    uint64_t self_index = (uint64_t)(self - workers);
    uint64_t pushed = 0;
    while (wf_load_relaxed(&taken_count) < WORKERS * items_each) {
        uint32_t dice = wf_rng_below(&self->rng, 8);
        struct wf_qnode *node = NULL;
        if (dice < 4 && pushed < items_each) {
            push_or_spill(self, pushed++);
        } else if (dice < 6 && (node = wf_ring_pop(&self->ring)) != NULL) {
            consume(node);
        } else if (!steal_from(self, &workers[(self_index + 1 + dice % 2) % WORKERS])) {
            (void)sched_yield();
        }
    }
    return NULL;
}

/*
 * Goal:   same as owner_and_two_thieves_take_each_node_once, with every worker both owner and
 *         thief: rings are stolen from while their owners put stolen nodes into them.
 * Method: three workers push, pop and steal from each other at random until all nodes are
 *         taken.
 */
static void workers_stealing_from_each_other_take_each_node_once(void)
{
    workers_init(test_scale(300000));
    for (int i = 0; i < WORKERS; i++) {
        CHECK_EQ(pthread_create(&workers[i].thread, NULL, push_pop_and_steal, &workers[i]), 0);
    }
    for (int i = 0; i < WORKERS; i++) {
        CHECK_EQ(pthread_join(workers[i].thread, NULL), 0);
    }
    workers_check(WORKERS);
}

TEST_MAIN({
    TEST(new_ring_is_empty),
    TEST(pop_returns_oldest_node),
    TEST(mark_is_passed_once_older_nodes_have_left),
    TEST(push_to_full_returns_false),
    TEST(push_list_fills_ring_in_order),
    TEST_DEBUG(push_list_beyond_free_slots_aborts),
    TEST(overflow_moves_newer_half_and_node),
    TEST(overflow_appends_to_output_list),
    TEST(overflow_of_ring_with_space_moves_only_node),
    TEST(overflow_during_claim_moves_only_node),
    TEST(steal_takes_older_half_rounded_up),
    TEST(steal_appends_to_thiefs_ring),
    TEST(steal_is_limited_by_free_slots_of_thief),
    TEST(successive_steals_take_all_nodes_in_order),
    TEST(claim_blocks_other_thieves_and_pushes),
    TEST(len_never_exceeds_slots),
    TEST(pops_during_copy_leave_claim_intact),
    TEST(second_thief_during_copy_gets_nothing),
    TEST(overflow_during_copy_leaves_ring_intact),
    TEST(steals_during_overflow_take_no_node_twice),
    TEST(claim_after_concurrent_overflow_recounts),
    TEST(claim_after_concurrent_pops_recounts),
    TEST(claim_is_safe_from_aba_after_full_round),
    TEST(pop_after_lost_race_takes_next_node),
    TEST(overflow_after_lost_race_moves_only_node),
    TEST(claim_with_stale_head_and_new_tail_recounts),
    TEST(len_with_stale_head_and_new_tail_is_capped_at_slots),
    TEST(owner_and_two_thieves_take_each_node_once),
    TEST(workers_stealing_from_each_other_take_each_node_once),
})
