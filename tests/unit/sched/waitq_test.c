/* SPDX-License-Identifier: MIT */
#include "sched/waitq.h"

#include <pthread.h>
#include <sched.h>

#include <weft/base.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/rng.h"
#include "sched/task.h"
#include "sched/worker.h"
#include "step.h"
#include "test.h"
#include "timing.h"

/* A task that only counts the operations on it. */
struct fake {
    struct wf_task task;
    _Atomic(uint64_t) scheduled;
    _Atomic(uint64_t) destroyed;
};

static void fake_schedule(struct wf_task *task)
{
    (void)atomic_fetch_add(&((struct fake *)task)->scheduled, 1);
}

static void fake_destroy(struct wf_task *task)
{
    (void)atomic_fetch_add(&((struct fake *)task)->destroyed, 1);
}

static const struct wf_task_ops fake_ops = { .kind = "fake",
                                             .schedule = fake_schedule,
                                             .destroy = fake_destroy };

static void fake_init(struct fake *fake)
{
    *fake = (struct fake){ .task.ops = &fake_ops };
    fake->task.state = WF_STATE_IDLE | WF_STATE_REF;
}

static uint32_t refs_of(const struct fake *fake)
{
    return wf_state_refs(wf_task_state(&fake->task));
}

static enum wf_wait_state state_of(struct wf_wait *wait)
{
    uint32_t branch = UINT32_MAX;
    return wf_wait_look(wait, &branch);
}

static void zeroed_wait_is_unused(void)
{
    struct wf_wait wait = { 0 };
    CHECK_EQ(state_of(&wait), WF_WAIT_UNUSED);
}

static void wait_holds_no_reference(void)
{
    struct fake fake;
    fake_init(&fake);
    struct wf_wait wait = { 0 };
    wf_wait_start(&wait, &fake.task);
    CHECK_EQ(state_of(&wait), WF_WAIT_WAITING);
    CHECK_EQ(refs_of(&fake), 1);
    CHECK(wf_wait_abandon(&wait, WF_WAIT_CANCELLED));
    CHECK_EQ(refs_of(&fake), 1);
}

static void retracted_wait_can_be_restarted(void)
{
    struct fake fake;
    fake_init(&fake);
    struct wf_wait wait = { 0 };
    wf_wait_start(&wait, &fake.task);
    wf_wait_retract(&wait);
    CHECK_EQ(state_of(&wait), WF_WAIT_UNUSED);
    CHECK_EQ(refs_of(&fake), 1);
    wf_wait_start(&wait, &fake.task); /* It can be started again. */
    CHECK_EQ(state_of(&wait), WF_WAIT_WAITING);
    wf_wait_retract(&wait);
    CHECK_EQ(fake.scheduled, 0);
}

static void wait_poll_returns_result_for_future(void)
{
    struct fake fake;
    fake_init(&fake);
    struct wf_wait wait = { 0 };
    struct wf_wait_node node;
    CHECK(!wf_wait_is_started(&wait));
    wf_wait_start(&wait, &fake.task);
    wf_wait_node_init(&node, &wait, 3);
    CHECK(wf_wait_is_started(&wait));
    CHECK_EQ(wf_wait_poll(&wait), WEFT_PENDING);
    CHECK(wf_wait_claim(&node));
    CHECK_EQ(wf_wait_poll(&wait), WEFT_PENDING);
    wf_task_release(wf_wait_finish(&wait));
    CHECK_EQ(wf_wait_poll(&wait), 0);
    CHECK(wf_wait_is_started(&wait));

    static const enum wf_wait_state verdicts[] = { WF_WAIT_CANCELLED, WF_WAIT_TIMED_OUT };
    for (int i = 0; i < 2; i++) {
        wf_wait_start(&wait, &fake.task);
        CHECK(wf_wait_abandon(&wait, verdicts[i]));
        CHECK_EQ(wf_wait_poll(&wait), WEFT_ECANCELED);
    }
}

static void claim_then_finish_returns_task_and_keeps_branch(void)
{
    static const uint32_t branches[] = { 0, 1, 7, 255, 256, 0xffffff };
    for (size_t i = 0; i < sizeof branches / sizeof branches[0]; i++) {
        struct fake fake;
        fake_init(&fake);
        struct wf_wait wait = { 0 };
        struct wf_wait_node node;
        wf_wait_start(&wait, &fake.task);
        wf_wait_node_init(&node, &wait, branches[i]);
        CHECK(wf_wait_claim(&node));
        CHECK_EQ(state_of(&wait), WF_WAIT_CLAIMED);

        struct wf_task *task = wf_wait_finish(&wait);
        CHECK(task == &fake.task);
        uint32_t branch = UINT32_MAX;
        CHECK_EQ(wf_wait_look(&wait, &branch), WF_WAIT_DONE);
        CHECK_EQ(branch, branches[i]);

        CHECK_EQ(refs_of(&fake), 2); /* One belongs to the granter. */
        wf_task_wake(task);
        CHECK_EQ(refs_of(&fake), 1);
        CHECK_EQ(fake.scheduled, 1);
    }
}

static void look_sets_no_branch_before_wait_is_done(void)
{
    struct fake fake;
    fake_init(&fake);
    struct wf_wait wait = { 0 };
    struct wf_wait_node node;
    wf_wait_start(&wait, &fake.task);
    wf_wait_node_init(&node, &wait, 5);
    uint32_t branch = 99;
    (void)wf_wait_look(&wait, &branch);
    CHECK_EQ(branch, 99);
    CHECK(wf_wait_claim(&node));
    (void)wf_wait_look(&wait, &branch);
    CHECK_EQ(branch, 99);
    wf_task_release(wf_wait_finish(&wait));
    (void)wf_wait_look(&wait, &branch);
    CHECK_EQ(branch, 5);
}

static void abandon_before_claim_wins(void)
{
    static const enum wf_wait_state verdicts[] = { WF_WAIT_CANCELLED, WF_WAIT_TIMED_OUT };
    for (int i = 0; i < 2; i++) {
        struct fake fake;
        fake_init(&fake);
        struct wf_wait wait = { 0 };
        struct wf_wait_node node;
        wf_wait_start(&wait, &fake.task);
        wf_wait_node_init(&node, &wait, 1);
        CHECK(wf_wait_abandon(&wait, verdicts[i]));
        CHECK_EQ(state_of(&wait), verdicts[i]);
        CHECK(!wf_wait_claim(&node));
        CHECK_EQ(state_of(&wait), verdicts[i]);
        CHECK_EQ(refs_of(&fake), 1);
        CHECK_EQ(fake.scheduled, 0);
    }
}

static void abandon_after_claim_reports_pending_wake(void)
{
    struct fake fake;
    fake_init(&fake);
    struct wf_wait wait = { 0 };
    struct wf_wait_node node;
    wf_wait_start(&wait, &fake.task);
    wf_wait_node_init(&node, &wait, 3);
    CHECK(wf_wait_claim(&node));
    CHECK(!wf_wait_abandon(&wait, WF_WAIT_CANCELLED));
    CHECK_EQ(state_of(&wait), WF_WAIT_CLAIMED);

    struct wf_task *task = wf_wait_finish(&wait);
    uint32_t branch = 0;
    CHECK_EQ(wf_wait_look(&wait, &branch), WF_WAIT_DONE);
    CHECK_EQ(branch, 3);
    wf_task_wake(task);
    CHECK_EQ(fake.scheduled, 1);
}

static void abandon_after_done_keeps_grant(void)
{
    struct fake fake;
    fake_init(&fake);
    struct wf_wait wait = { 0 };
    struct wf_wait_node node;
    wf_wait_start(&wait, &fake.task);
    wf_wait_node_init(&node, &wait, 2);
    CHECK(wf_wait_claim(&node));
    struct wf_task *task = wf_wait_finish(&wait);
    CHECK(wf_wait_abandon(&wait, WF_WAIT_TIMED_OUT));
    uint32_t branch = 0;
    CHECK_EQ(wf_wait_look(&wait, &branch), WF_WAIT_DONE);
    CHECK_EQ(branch, 2);
    CHECK_EQ(refs_of(&fake), 2); /* Still the granter's. */
    wf_task_wake(task);
    CHECK_EQ(refs_of(&fake), 1);
}

static void second_abandon_changes_nothing(void)
{
    struct fake fake;
    fake_init(&fake);
    struct wf_wait wait = { 0 };
    wf_wait_start(&wait, &fake.task);
    CHECK(wf_wait_abandon(&wait, WF_WAIT_TIMED_OUT));
    CHECK(wf_wait_abandon(&wait, WF_WAIT_CANCELLED));
    CHECK_EQ(state_of(&wait), WF_WAIT_TIMED_OUT);
    CHECK_EQ(refs_of(&fake), 1);
}

static void only_one_of_two_branches_wins(void)
{
    for (uint32_t winner = 0; winner < 2; winner++) {
        struct fake fake;
        fake_init(&fake);
        struct wf_wait wait = { 0 };
        struct wf_wait_node nodes[2];
        wf_wait_start(&wait, &fake.task);
        wf_wait_node_init(&nodes[0], &wait, 10);
        wf_wait_node_init(&nodes[1], &wait, 11);

        CHECK(wf_wait_claim(&nodes[winner]));
        CHECK(!wf_wait_claim(&nodes[1 - winner]));
        CHECK(!wf_wait_claim(&nodes[winner]));
        struct wf_task *task = wf_wait_finish(&wait);
        CHECK(!wf_wait_claim(&nodes[1 - winner]));

        uint32_t branch = 0;
        CHECK_EQ(wf_wait_look(&wait, &branch), WF_WAIT_DONE);
        CHECK_EQ(branch, 10 + winner);
        wf_task_wake(task);
        CHECK_EQ(refs_of(&fake), 1);
        CHECK_EQ(fake.scheduled, 1);
    }
}

/*
 * Goal:   a grant ends the wait and wakes the task, whether it is suspended or about to suspend,
 *         and whether the granter is a worker of its runtime or another thread.
 * Method: all four cases. The reference count of the fake task stays the same.
 */
static void grant_wakes_task_in_any_state(void)
{
    static struct wf_worker inside;
    static const uint64_t lifecycles[] = { WF_STATE_IDLE, WF_STATE_RUNNING };
    for (unsigned i = 0; i < 4; i++) {
        struct fake fake;
        fake_init(&fake);
        fake.task.state = lifecycles[i % 2] | WF_STATE_REF;
        fake.task.heap = (void *)&fake;
        inside.heap = i < 2 ? fake.task.heap : NULL;
        struct wf_wait wait = { 0 };
        struct wf_wait_node node;
        wf_wait_start(&wait, &fake.task);
        wf_wait_node_init(&node, &wait, 7);
        CHECK(wf_wait_claim(&node));
        WF_TLS_STORE(wf_tls_worker, &inside);
        wf_wait_grant(&wait);
        WF_TLS_STORE(wf_tls_worker, (struct wf_worker *)NULL);
        uint32_t branch = 0;
        CHECK_EQ(wf_wait_look(&wait, &branch), WF_WAIT_DONE);
        CHECK_EQ(branch, 7);
        bool was_idle = lifecycles[i % 2] == WF_STATE_IDLE;
        CHECK_EQ(fake.scheduled, was_idle ? 1 : 0);
        uint64_t noted = was_idle ? 0 : WF_STATE_NOTIFIED;
        CHECK_EQ(wf_task_state(&fake.task), WF_STATE_RUNNING | noted | WF_STATE_REF);
        CHECK_EQ(fake.destroyed, 0);
    }
}

static void finish_unclaimed_wait(void)
{
    struct fake fake;
    fake_init(&fake);
    struct wf_wait wait = { 0 };
    wf_wait_start(&wait, &fake.task);
    (void)wf_wait_finish(&wait);
}

static void finish_without_claim_aborts(void)
{
    CHECK_ABORTS(finish_unclaimed_wait, "WF_WAIT_CLAIMED");
}

static void granter_wake_may_drop_last_reference(void)
{
    struct fake fake;
    fake_init(&fake);
    struct wf_wait wait = { 0 };
    struct wf_wait_node node;
    wf_wait_start(&wait, &fake.task);
    wf_wait_node_init(&node, &wait, 0);
    CHECK(wf_wait_claim(&node));
    struct wf_task *task = wf_wait_finish(&wait);

    /* The waiter sees DONE, continues and ends before the granter's wake. */
    fake.task.state = WF_STATE_RUNNING | 2 * WF_STATE_REF;
    wf_task_complete(&fake.task, 0);
    CHECK_EQ(fake.destroyed, 0);
    wf_task_wake(task);
    CHECK_EQ(fake.destroyed, 1);
    CHECK_EQ(fake.scheduled, 0);
}

enum {
    WAITERS = 6
};

/* Several waits in one queue. */
struct line {
    struct wf_waitq queue;
    struct fake fakes[WAITERS];
    struct wf_wait waits[WAITERS];
    struct wf_wait_node nodes[WAITERS];
};

static void line_init(struct line *line)
{
    wf_waitq_init(&line->queue);
    CHECK(wf_waitq_is_empty(&line->queue));
    for (uint32_t i = 0; i < WAITERS; i++) {
        fake_init(&line->fakes[i]);
        wf_wait_start(&line->waits[i], &line->fakes[i].task);
        wf_wait_node_init(&line->nodes[i], &line->waits[i], i);
        wf_waitq_add(&line->queue, &line->nodes[i]);
        CHECK(!wf_waitq_is_empty(&line->queue));
    }
}

static void grant_first(struct line *line, int expected)
{
    struct wf_wait_node *node = wf_waitq_claim_first(&line->queue);
    CHECK(node == &line->nodes[expected]);
    CHECK(wf_list_is_empty(&node->link));
    wf_task_wake(wf_wait_finish(node->wait));
    CHECK_EQ(line->fakes[expected].scheduled, 1);
}

static void claim_first_is_fifo(void)
{
    struct line line;
    line_init(&line);
    for (int i = 0; i < WAITERS; i++) {
        grant_first(&line, i);
    }
    CHECK(wf_waitq_is_empty(&line.queue));
    CHECK(wf_waitq_claim_first(&line.queue) == NULL);
}

static void claim_first_skips_decided_waits_and_unlinks_them(void)
{
    struct line line;
    line_init(&line);
    CHECK(wf_wait_abandon(&line.waits[0], WF_WAIT_CANCELLED));
    CHECK(wf_wait_abandon(&line.waits[1], WF_WAIT_TIMED_OUT));
    CHECK(wf_wait_abandon(&line.waits[3], WF_WAIT_CANCELLED));
    struct wf_wait_node other_branch; /* Another object claims wait 4. */
    wf_wait_node_init(&other_branch, &line.waits[4], 77);
    CHECK(wf_wait_claim(&other_branch));

    grant_first(&line, 2);
    CHECK(wf_list_is_empty(&line.nodes[0].link));
    CHECK(wf_list_is_empty(&line.nodes[1].link));
    CHECK(!wf_list_is_empty(&line.nodes[3].link));
    grant_first(&line, 5);
    CHECK(wf_list_is_empty(&line.nodes[3].link));
    CHECK(wf_list_is_empty(&line.nodes[4].link));
    CHECK(wf_waitq_is_empty(&line.queue));

    CHECK_EQ(state_of(&line.waits[4]), WF_WAIT_CLAIMED);
    wf_task_wake(wf_wait_finish(&line.waits[4]));
    for (int i = 0; i < WAITERS; i++) {
        CHECK_EQ(refs_of(&line.fakes[i]), 1);
        CHECK_EQ(line.fakes[i].scheduled, i == 2 || i == 4 || i == 5);
        wf_waitq_remove(&line.nodes[i]); /* Step W2 of each waiter: harmless. */
    }
}

static void claim_first_of_only_decided_waits_returns_null(void)
{
    struct line line;
    line_init(&line);
    for (int i = 0; i < WAITERS; i++) {
        CHECK(wf_wait_abandon(&line.waits[i], WF_WAIT_CANCELLED));
    }
    CHECK(wf_waitq_claim_first(&line.queue) == NULL);
    CHECK(wf_waitq_is_empty(&line.queue));
}

static void remove_unlinks_node_in_middle(void)
{
    struct line line;
    line_init(&line);
    CHECK(wf_wait_abandon(&line.waits[1], WF_WAIT_CANCELLED));
    wf_waitq_remove(&line.nodes[1]);
    wf_waitq_remove(&line.nodes[1]);
    grant_first(&line, 0);
    grant_first(&line, 2);
}

/* The two sides of one wait. */
static struct fake contested_fake;
static struct wf_wait contested_wait;
static struct wf_wait_node contested_node;
static bool waiter_is_over;
static bool granter_has_won;

static void contest_begin(void)
{
    fake_init(&contested_fake);
    wf_wait_start(&contested_wait, &contested_fake.task);
    wf_wait_node_init(&contested_node, &contested_wait, 1);
}

static void abandon_contested(void)
{
    waiter_is_over = wf_wait_abandon(&contested_wait, WF_WAIT_CANCELLED);
}

static void grant_contested(void)
{
    granter_has_won = wf_wait_claim(&contested_node);
    if (granter_has_won) {
        wf_task_wake(wf_wait_finish(&contested_wait));
    }
}

static void check_contested(void)
{
    CHECK_EQ(state_of(&contested_wait), granter_has_won ? WF_WAIT_DONE : WF_WAIT_CANCELLED);
    CHECK_EQ(contested_fake.scheduled, granter_has_won);
    CHECK_EQ(refs_of(&contested_fake), 1);
}

/*
 * Goal:   when a grant interrupts an abandon, or an abandon a grant, one of them wins, and the
 *         references balance.
 * Method: interrupt each side by the other after each of its instructions.
 */
static void grant_and_abandon_may_interrupt_each_other(void)
{
    unsigned outcomes[2][2] = { { 0 } };
    contest_begin();
    for (int n = 0; test_interrupt_after(n, abandon_contested, grant_contested); n++) {
        outcomes[0][granter_has_won]++;
        check_contested();
        CHECK(waiter_is_over || granter_has_won);
        contest_begin();
    }
    contest_begin();
    for (int n = 0; test_interrupt_after(n, grant_contested, abandon_contested); n++) {
        outcomes[1][granter_has_won]++;
        check_contested();
        CHECK(waiter_is_over || granter_has_won);
        contest_begin();
    }
    test_check_both(outcomes[0]);
    test_check_both(outcomes[1]);
}

/* State of one race: the queue, and one permit per round. */
struct race {
    struct wf_lock lock; /* guards queue and permits */
    struct wf_waitq queue;
    uint64_t permits;
    struct fake fake;
    _Atomic(uint32_t) stop;
    _Atomic(uint64_t) waiter_round;  /* the waiter is linked */
    _Atomic(uint64_t) granter_round; /* the granter has finished the round */
    uint64_t taken;                  /* by the granter */
};

static void pause_briefly(struct wf_rng *rng, uint32_t bits)
{
    /* Usually short, sometimes long. */
    for (uint32_t i = wf_rng_below(rng, 1u << wf_rng_below(rng, bits)); i > 0; i--) {
        wf_cpu_relax();
    }
}

static void *granter_main(void *arg)
{
    struct race *race = arg;
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 1);
    for (uint64_t round = 1;; round++) {
        test_spin_for(&race->waiter_round, round);
        if (atomic_load(&race->stop) != 0) {
            return NULL;
        }
        pause_briefly(&rng, 10);
        struct wf_task *task = NULL;
        wf_lock(&race->lock);
        struct wf_wait_node *node = wf_waitq_claim_first(&race->queue);
        if (node != NULL) {
            CHECK_EQ(node->branch, round % 1000);
            pause_briefly(&rng, 5);
            race->permits--;
            race->taken++;
            task = wf_wait_finish(node->wait);
        }
        wf_unlock(&race->lock);
        if (task != NULL) {
            wf_task_wake(task);
        }
        atomic_store(&race->granter_round, round);
    }
}

/*
 * Waits once and abandons the wait at about the time of the grant. Returns whether it was
 * granted.
 */
static bool wait_once(struct race *race, uint64_t round, struct wf_rng *rng)
{
    struct {
        struct wf_wait wait;
        struct wf_wait_node node;
    } frame = { 0 };
    wf_wait_start(&frame.wait, &race->fake.task);
    wf_wait_node_init(&frame.node, &frame.wait, (uint32_t)(round % 1000));
    wf_lock(&race->lock);
    wf_waitq_add(&race->queue, &frame.node);
    wf_unlock(&race->lock);
    atomic_store(&race->waiter_round, round);

    pause_briefly(rng, 12);
    bool over = wf_wait_abandon(&frame.wait, WF_WAIT_CANCELLED);
    while (!over && state_of(&frame.wait) == WF_WAIT_CLAIMED) {
        (void)sched_yield();
    }
    uint32_t branch = UINT32_MAX;
    bool granted = wf_wait_look(&frame.wait, &branch) == WF_WAIT_DONE;
    CHECK(granted || over);
    CHECK_EQ(branch, granted ? round % 1000 : UINT32_MAX);

    if (!granted) { /* A granter would have unlinked it. */
        wf_lock(&race->lock);
        wf_waitq_remove(&frame.node);
        wf_unlock(&race->lock);
    }
    /* The granter must not use it any more. */
    frame.wait.task = NULL;
    frame.node.wait = NULL;
    frame.node.branch = UINT32_MAX;
    atomic_store(&frame.wait.word, UINT32_MAX);
    __asm__ volatile("" ::"r"(&frame) : "memory");
    return granted;
}

/*
 * Goal:   of a granter and a waiter that abandons its wait, one wins: the grant is used, or no
 *         permit was taken. References balance, and the waiter owns its frame again once the wait
 *         is over.
 * Method: both act on one wait at about the same time, thousands of times, each after a random
 *         pause. Each grant takes a permit, and the frame is overwritten after each round.
 */
static void grant_is_used_or_not_taken(void)
{
    static struct race race;
    race = (struct race){ .permits = 0 };
    wf_lock_init(&race.lock, WF_RANK_ROOM);
    wf_waitq_init(&race.queue);
    fake_init(&race.fake);
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 0);

    pthread_t granter;
    CHECK_EQ(pthread_create(&granter, NULL, granter_main, &race), 0);
    uint64_t used = 0;
    struct test_rounds rounds = test_rounds_begin();
    for (uint64_t round = 1; test_rounds_next(&rounds); round++) {
        race.permits = 1;
        bool granted = wait_once(&race, round, &rng);
        used += granted;
        test_rounds_count(&rounds, granted);
        test_spin_for(&race.granter_round, round);
        CHECK_EQ(race.taken, used);
        CHECK_EQ(race.permits, !granted);
        CHECK_EQ(race.fake.scheduled, granted);
        CHECK_EQ(refs_of(&race.fake), 1);
        fake_init(&race.fake);
    }
    atomic_store(&race.stop, 1);
    atomic_store(&race.waiter_round, UINT64_MAX);
    CHECK_EQ(pthread_join(granter, NULL), 0);
    CHECK(wf_waitq_is_empty(&race.queue));
}

static void *grant_each_round(void *arg)
{
    struct race *race = arg;
    for (uint64_t round = 1;; round++) {
        test_spin_for(&race->waiter_round, round);
        if (atomic_load(&race->stop) != 0) {
            return NULL;
        }
        wf_lock(&race->lock);
        struct wf_wait_node *node = wf_waitq_claim_first(&race->queue);
        struct wf_task *task = wf_wait_finish(node->wait);
        wf_unlock(&race->lock);
        wf_task_wake(task);
        atomic_store(&race->granter_round, round);
    }
}

/*
 * Goal:   the waiter owns the frame of its wait again as soon as the wait is DONE.
 * Method: the waiter checks until then and overwrites the frame. The sanitizer would report a
 *         granter that touches it late.
 */
static void done_wait_belongs_to_waiter_again(void)
{
    static struct race race;
    race = (struct race){ .stop = 0 };
    wf_lock_init(&race.lock, WF_RANK_ROOM);
    wf_waitq_init(&race.queue);
    pthread_t granter;
    CHECK_EQ(pthread_create(&granter, NULL, grant_each_round, &race), 0);
    for (uint64_t round = 1; round <= 1000; round++) {
        struct wf_wait wait = { 0 };
        struct wf_wait_node node;
        fake_init(&race.fake);
        wf_wait_start(&wait, &race.fake.task);
        wf_wait_node_init(&node, &wait, 0);
        wf_lock(&race.lock);
        wf_waitq_add(&race.queue, &node);
        wf_unlock(&race.lock);
        atomic_store(&race.waiter_round, round);
        while (state_of(&wait) != WF_WAIT_DONE) {
            (void)sched_yield();
        }
        wait.task = NULL;
        node.wait = NULL;
        node.branch = UINT32_MAX;
        __asm__ volatile("" ::"r"(&wait), "r"(&node) : "memory");
        test_spin_for(&race.granter_round, round);
        CHECK_EQ(race.fake.scheduled, 1);
    }
    atomic_store(&race.stop, 1);
    atomic_store(&race.waiter_round, UINT64_MAX);
    CHECK_EQ(pthread_join(granter, NULL), 0);
}

/* A wait with a branch in each of two objects. */
struct fork_race {
    struct wf_wait wait;
    struct wf_wait_node nodes[2];
    struct fake fake;
    _Atomic(uint32_t) stop;
    _Atomic(uint64_t) round;
    _Atomic(uint64_t) done;
    _Atomic(uint64_t) won[2];
};

struct fork_side {
    struct fork_race *race;
    uint32_t side;
};

static void *fork_side_main(void *arg)
{
    struct fork_side *self = arg;
    struct fork_race *race = self->race;
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), self->side);
    for (uint64_t round = 1;; round++) {
        test_spin_for(&race->round, round);
        if (atomic_load(&race->stop) != 0) {
            return NULL;
        }
        pause_briefly(&rng, 8);
        if (wf_wait_claim(&race->nodes[self->side])) {
            (void)atomic_fetch_add(&race->won[self->side], 1);
            wf_task_wake(wf_wait_finish(&race->wait));
        }
        (void)atomic_fetch_add(&race->done, 1);
    }
}

/*
 * Goal:   of two objects that grant to one wait at the same time, exactly one wins.
 * Method: two threads claim their branch of the same wait, over and over.
 */
static void two_branches_claimed_concurrently_have_one_winner(void)
{
    static struct fork_race race;
    race = (struct fork_race){ .stop = 0 };
    struct fork_side sides[2] = { { &race, 0 }, { &race, 1 } };
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, fork_side_main, &sides[i]), 0);
    }
    struct test_rounds rounds = test_rounds_begin();
    for (uint64_t round = 1; test_rounds_next(&rounds); round++) {
        fake_init(&race.fake);
        wf_wait_start(&race.wait, &race.fake.task);
        wf_wait_node_init(&race.nodes[0], &race.wait, 0);
        wf_wait_node_init(&race.nodes[1], &race.wait, 1);
        uint64_t before[2] = { race.won[0], race.won[1] };
        atomic_store(&race.round, round);
        test_spin_for(&race.done, 2 * round);

        uint32_t branch = UINT32_MAX;
        CHECK_EQ(wf_wait_look(&race.wait, &branch), WF_WAIT_DONE);
        CHECK_LT(branch, 2);
        test_rounds_count(&rounds, branch == 1);
        CHECK_EQ(race.won[branch], before[branch] + 1);
        CHECK_EQ(race.won[1 - branch], before[1 - branch]);
        CHECK_EQ(race.fake.scheduled, 1);
        CHECK_EQ(refs_of(&race.fake), 1);
    }
    atomic_store(&race.stop, 1);
    atomic_store(&race.round, UINT64_MAX);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
}

TEST_MAIN({
    TEST(zeroed_wait_is_unused),
    TEST(wait_holds_no_reference),
    TEST(retracted_wait_can_be_restarted),
    TEST(wait_poll_returns_result_for_future),
    TEST(claim_then_finish_returns_task_and_keeps_branch),
    TEST(look_sets_no_branch_before_wait_is_done),
    TEST(abandon_before_claim_wins),
    TEST(abandon_after_claim_reports_pending_wake),
    TEST(abandon_after_done_keeps_grant),
    TEST(second_abandon_changes_nothing),
    TEST(only_one_of_two_branches_wins),
    TEST(grant_wakes_task_in_any_state),
    TEST(finish_without_claim_aborts),
    TEST(granter_wake_may_drop_last_reference),
    TEST(claim_first_is_fifo),
    TEST(claim_first_skips_decided_waits_and_unlinks_them),
    TEST(claim_first_of_only_decided_waits_returns_null),
    TEST(remove_unlinks_node_in_middle),
    TEST_STEPS(grant_and_abandon_may_interrupt_each_other),
    TEST(done_wait_belongs_to_waiter_again),
    TEST(grant_is_used_or_not_taken),
    TEST(two_branches_claimed_concurrently_have_one_winner),
})
