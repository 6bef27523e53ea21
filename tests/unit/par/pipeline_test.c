/* SPDX-License-Identifier: MIT */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <weft.h>

#include "inputs.h"
#include "memory.h"
#include "timing.h"

/* --- A pipeline with checks in each stage -------------------------------------------------- */

enum {
    STAGES_MAX = 4,
    STAGES_MANY = 40,
    NOWHERE = 99,
};

struct item {
    uint64_t number;
    unsigned passed; /* number of stages */
};

struct rig {
    weft_stage stages[STAGES_MAX];
    size_t count;
    uint64_t items;
    uint64_t gone_every; /* stage 1 removes every n-th item; 0: none */
    uint64_t bad_item;   /* fails in stage bad_stage, or sets the cancel flag */
    unsigned bad_stage;
    int error;
    bool keeps; /* a failing stage frees its item */
    weft_stop stop;

    uint64_t made;                   /* by the first stage */
    uint64_t passed[STAGES_MAX];     /* in-order stages: the last item's number + 1 */
    _Atomic(int) inside[STAGES_MAX]; /* calls in progress */
    _Atomic(uint64_t) calls[STAGES_MAX];
    _Atomic(int64_t) alive; /* live items */
    _Atomic(int64_t) alive_max;
    _Atomic(uint64_t) dropped;
    _Atomic(bool) is_over;
};

static struct item *create(struct rig *rig)
{
    struct item *item = malloc(sizeof *item);
    CHECK(item != NULL);
    *item = (struct item){ .number = rig->made++ };
    int64_t alive = atomic_fetch_add(&rig->alive, 1) + 1;
    int64_t max = atomic_load(&rig->alive_max);
    while (max < alive && !atomic_compare_exchange_weak(&rig->alive_max, &max, alive)) {
    }
    return item;
}

static void destroy(struct rig *rig, struct item *item)
{
    free(item);
    atomic_fetch_sub(&rig->alive, 1);
}

static void drop(void *item, void *arg)
{
    struct rig *rig = arg;
    atomic_fetch_add(&rig->dropped, 1);
    destroy(rig, item);
}

static bool is_gone(const struct rig *rig, uint64_t number)
{
    return rig->gone_every != 0 && number % rig->gone_every == 0;
}

/* Returns the number of the next item that an ordered stage must see. */
static uint64_t next_number(const struct rig *rig, unsigned stage)
{
    uint64_t number = rig->passed[stage];
    while (stage > 1 && is_gone(rig, number)) {
        number++;
    }
    return number;
}

static void check_order(struct rig *rig, unsigned stage, const struct item *item)
{
    CHECK(item != NULL);
    CHECK_EQ(item->passed, stage);
    CHECK(stage < 2 || !is_gone(rig, item->number));
    if (rig->stages[stage].kind == WEFT_STAGE_IN_ORDER) {
        CHECK_EQ(item->number, next_number(rig, stage));
        rig->passed[stage] = item->number + 1;
    }
}

static int fail(struct rig *rig, void **item)
{
    if (rig->error == 0) {
        weft_stop_set(&rig->stop);
        return 0;
    }
    if (rig->keeps) {
        destroy(rig, *item);
        *item = NULL;
    }
    return rig->error;
}

static int pass(struct rig *rig, unsigned stage, void **at)
{
    int inside = atomic_fetch_add(&rig->inside[stage], 1);
    CHECK(inside == 0 || rig->stages[stage].kind == WEFT_STAGE_PARALLEL);
    atomic_fetch_add(&rig->calls[stage], 1);
    if (stage == 0) {
        CHECK(*at == NULL);
        CHECK(!rig->is_over);
        rig->is_over = rig->made == rig->items;
        *at = rig->is_over ? NULL : create(rig);
    }
    struct item *item = *at;
    int err = 0;
    if (item != NULL || stage > 0) {
        check_order(rig, stage, item);
        item->passed++;
        bool is_bad = item->number == rig->bad_item && stage == rig->bad_stage;
        if (is_bad) {
            err = fail(rig, at);
        }
        if (err == 0 && stage == rig->count - 1) {
            destroy(rig, item); /* The last stage's item pointer is not read again. */
        } else if (err == 0 && stage == 1 && is_gone(rig, item->number)) {
            destroy(rig, item);
            *at = NULL;
        }
    }
    atomic_fetch_sub(&rig->inside[stage], 1);
    return err;
}

static int pass_0(void **item, void *arg)
{
    return pass(arg, 0, item);
}

static int pass_1(void **item, void *arg)
{
    return pass(arg, 1, item);
}

static int pass_2(void **item, void *arg)
{
    return pass(arg, 2, item);
}

static int pass_3(void **item, void *arg)
{
    return pass(arg, 3, item);
}

/* The base-3 digits of shape are the kinds of all stages but the first. */
static struct rig make_rig(size_t count, unsigned shape, uint64_t items)
{
    static int (*const functions[])(void **, void *) = { pass_0, pass_1, pass_2, pass_3 };
    struct rig rig = { .count = count, .items = items, .bad_stage = NOWHERE };
    for (size_t i = 0; i < count; i++) {
        rig.stages[i].run = functions[i];
        if (i > 0) {
            rig.stages[i].kind = (weft_stage_kind)(shape % 3);
            shape /= 3;
        }
    }
    return rig;
}

static int run_rig(struct rig *rig, size_t tokens)
{
    weft_par_options options = { .stop = &rig->stop };
    int err = weft_pipeline(rig->stages, rig->count, tokens, drop, rig, &options);
    CHECK_EQ(rig->alive, 0);
    CHECK(tokens == 0 || (uint64_t)rig->alive_max <= tokens);
    return err;
}

static const unsigned shapes[STAGES_MAX + 1] = { 0, 1, 3, 9, 27 };

/* --- Success ------------------------------------------------------------------------------- */

static void check_shape(size_t count, unsigned shape, uint64_t items, size_t tokens)
{
    struct rig rig = make_rig(count, shape, items);
    CHECK_EQ(run_rig(&rig, tokens), 0);
    CHECK_EQ(rig.calls[0], items + 1);
    for (size_t i = 1; i < count; i++) {
        CHECK_EQ(rig.calls[i], items);
    }
    CHECK_EQ(rig.dropped, 0);
}

static int pass_all(void *arg)
{
    (void)arg;
    static const uint64_t items[] = { 0, 1, 2, 5, 200 };
    static const size_t tokens[] = { 0, 1, 2, 7, SIZE_MAX };
    for (size_t count = 1; count <= STAGES_MAX; count++) {
        for (unsigned shape = 0; shape < shapes[count]; shape++) {
            for (size_t i = 0; i < 5; i++) {
                check_shape(count, shape, items[i], tokens[(i + shape) % 5]);
            }
        }
    }
    check_shape(3, 2, test_scale(20000), 0);
    return 0;
}

static void item_passes_each_stage_once_as_stage_kind_requires(void)
{
    test_run_everywhere(pass_all, NULL);
}

static int remove_some_items(void *arg)
{
    (void)arg;
    for (unsigned shape = 0; shape < shapes[4]; shape++) {
        for (uint64_t every = 1; every < 4; every++) {
            struct rig rig = make_rig(4, shape, 100);
            rig.gone_every = every;
            CHECK_EQ(run_rig(&rig, 3), 0);
            uint64_t left = 100 - (100 + every - 1) / every;
            CHECK_EQ(rig.calls[1], 100);
            CHECK_EQ(rig.calls[2], left);
            CHECK_EQ(rig.calls[3], left);
            CHECK_EQ(rig.dropped, 0);
        }
    }
    return 0;
}

static void removed_item_skips_later_stages(void)
{
    test_run_everywhere(remove_some_items, NULL);
}

static int make_first(void **item, void *arg)
{
    char *text = arg;
    *item = text[0] == '\0' ? text : NULL;
    return 0;
}

static int step(void **item, void *arg)
{
    (void)arg;
    char *text = *item;
    *text = '*';
    *item = text + 1;
    return 0;
}

static void stage_may_replace_item(void)
{
    weft_stage stages[STAGES_MANY] = { { WEFT_STAGE_IN_ORDER, make_first } };
    for (int i = 1; i < STAGES_MANY; i++) {
        stages[i] = (weft_stage){ (weft_stage_kind)(i % 3), step };
    }
    for (size_t count = 1; count <= STAGES_MANY; count++) {
        char text[STAGES_MANY + 1] = { 0 };
        if (count > 1) {
            CHECK_EQ(weft_pipeline(stages, count, 1, NULL, text, NULL), 0);
        }
        CHECK_EQ(strlen(text), count - 1);
    }
}

static void first_stage_that_is_not_in_order_is_rejected(void)
{
    weft_stage stage = { WEFT_STAGE_PARALLEL, pass_0 };
    CHECK_EQ(weft_pipeline(&stage, 1, 0, NULL, NULL, NULL), -EINVAL);
    stage.kind = WEFT_STAGE_SERIAL;
    CHECK_EQ(weft_pipeline(&stage, 1, 0, NULL, NULL, NULL), -EINVAL);
    CHECK_EQ(weft_pipeline(&stage, 0, 0, NULL, NULL, NULL), -EINVAL);
    stage.kind = WEFT_STAGE_IN_ORDER;
    CHECK_EQ(weft_pipeline(&stage, SIZE_MAX / 2, 0, NULL, NULL, NULL), -ENOMEM);
}

/* --- Errors and cancels -------------------------------------------------------------------- */

static struct rig fail_at(unsigned shape, unsigned stage, uint64_t item, int error, bool keeps)
{
    struct rig rig = make_rig(4, shape, 100);
    rig.bad_stage = stage;
    rig.bad_item = item;
    rig.error = error;
    rig.keeps = keeps;
    CHECK_EQ(run_rig(&rig, 5), error != 0 ? error : WEFT_ECANCELED);
    CHECK_EQ(rig.calls[0], rig.made + rig.is_over);
    CHECK_LE(rig.dropped, 5);
    if (shape == 0) {
        /* All stages are in order, so no later item can finish before the bad one. */
        CHECK_LE(rig.made, item + 5);
    }
    return rig;
}

static int fail_everywhere(void *arg)
{
    (void)arg;
    for (unsigned shape = 0; shape < shapes[4]; shape++) {
        for (unsigned stage = 0; stage < 4; stage++) {
            for (uint64_t item = 0; item < 90; item += 40) {
                (void)fail_at(shape, stage, item, -66, false);
                (void)fail_at(shape, stage, item, -66, true);
                (void)fail_at(shape, stage, item, 0, false);
            }
        }
    }
    return 0;
}

static void errors_and_cancels_end_pipeline_without_leaks(void)
{
    test_run_everywhere(fail_everywhere, NULL);
}

/* Without other workers, calls and drops are deterministic. */
static void no_stage_is_called_after_error(void)
{
    for (unsigned stage = 0; stage < 4; stage++) {
        for (int way = 0; way < 3; way++) {
            struct rig rig = fail_at(5, stage, 10, way == 0 ? 0 : -66, way == 1);
            for (unsigned i = 0; i < 4; i++) {
                CHECK_EQ(rig.calls[i], i <= stage ? 11 : 10);
            }
            bool is_consumed = way == 0 && stage == 3;
            CHECK_EQ(rig.dropped, way != 1 && !is_consumed);
        }
    }
}

static int stop_before(void *arg)
{
    (void)arg;
    struct rig rig = make_rig(3, 2, 10);
    weft_stop_set(&rig.stop);
    CHECK_EQ(run_rig(&rig, 0), WEFT_ECANCELED);
    CHECK_EQ(rig.calls[0], 0);
    return 0;
}

static void set_cancel_flag_prevents_calls(void)
{
    test_run_everywhere(stop_before, NULL);
}

static int fail_last(void **item, void *arg)
{
    (void)item;
    (void)arg;
    return -7;
}

static int make_any(void **item, void *arg)
{
    *item = arg;
    return 0;
}

static void error_without_drop_function_abandons_items(void)
{
    int thing;
    weft_stage stages[] = { { WEFT_STAGE_IN_ORDER, make_any }, { WEFT_STAGE_PARALLEL, fail_last } };
    CHECK_EQ(weft_pipeline(stages, 2, 0, NULL, &thing, NULL), -7);
}

/* --- Waiting items -------------------------------------------------------------------------- */

enum {
    CROWD = 10,
};

struct crowd {
    uint64_t made;
    uint64_t eaten;
    _Atomic(uint64_t) begun;
    _Atomic(uint64_t) passed;
};

static int make_number(void **item, void *arg)
{
    struct crowd *crowd = arg;
    *item = crowd->made < CROWD ? (void *)(uintptr_t)++crowd->made : NULL;
    return 0;
}

/* Waits until all items have arrived. */
static int wait_for_all(void **item, void *arg)
{
    struct crowd *crowd = arg;
    (void)item;
    atomic_fetch_add(&crowd->begun, 1);
    while (atomic_load(&crowd->begun) < CROWD) {
        weft_yield();
    }
    return 0;
}

/* Lets all later items pass first. */
static int let_others_pass(void **item, void *arg)
{
    struct crowd *crowd = arg;
    uintptr_t number = (uintptr_t)*item;
    while (atomic_load(&crowd->passed) < CROWD - number) {
        weft_yield();
    }
    atomic_fetch_add(&crowd->passed, 1);
    return 0;
}

static int consume_in_order(void **item, void *arg)
{
    struct crowd *crowd = arg;
    CHECK_EQ((uintptr_t)*item, ++crowd->eaten);
    return 0;
}

static int sleep_and_consume(void **item, void *arg)
{
    CHECK_EQ(weft_sleep(WEFT_US), 0);
    return consume_in_order(item, arg);
}

static int wait_in_stages(void *arg)
{
    (void)arg;
    weft_stage stages[] = { { WEFT_STAGE_IN_ORDER, make_number },
                            { WEFT_STAGE_PARALLEL, let_others_pass },
                            { WEFT_STAGE_IN_ORDER, consume_in_order },
                            { WEFT_STAGE_PARALLEL, wait_for_all } };
    for (unsigned i = 0; i < 20; i++) {
        struct crowd crowd = { 0 };
        stages[2].run = i % 2 == 0 ? consume_in_order : sleep_and_consume;
        CHECK_EQ(weft_pipeline(stages, 4, CROWD + i % 3, NULL, &crowd, NULL), 0);
        CHECK_EQ(crowd.eaten, CROWD);
    }
    return 0;
}

/*
 * Goal:   items that wait block neither other items nor a worker, and order is restored if the
 *         last item arrives first.
 * Method: all items in flight reach an in-order stage in reverse order. Then they wait for each
 *         other, on fewer workers than items.
 */
static void waiting_items_do_not_block_others(void)
{
    for (unsigned workers = 1; workers <= 8; workers *= 2) {
        weft_runtime *rt = test_start(workers);
        CHECK_EQ(test_run(rt, wait_in_stages, NULL), 0);
        weft_runtime_destroy(rt);
    }
}

/* --- Out of memory -------------------------------------------------------------------------- */

static int yield_once(void **item, void *arg)
{
    (void)item;
    (void)arg;
    (void)weft_yield();
    return 0;
}

static int run_out_of_memory(void *arg)
{
    weft_stage stages[] = { { WEFT_STAGE_IN_ORDER, make_number },
                            { WEFT_STAGE_PARALLEL, yield_once },
                            { WEFT_STAGE_SERIAL, yield_once },
                            { WEFT_STAGE_IN_ORDER, consume_in_order } };
    (void)arg;
    for (unsigned left = 0; left < 4; left++) {
        struct crowd crowd = { 0 };
        memory_ends_after(left);
        CHECK_EQ(weft_pipeline(stages, 4, 0, NULL, &crowd, NULL), 0);
        CHECK_EQ(crowd.eaten, CROWD);
    }
    weft_stage many[STAGES_MANY] = { { WEFT_STAGE_IN_ORDER, make_number } };
    struct crowd crowd = { 0 };
    memory_ends_after(0);
    int err = weft_pipeline(many, STAGES_MANY, 0, NULL, &crowd, NULL);
    (void)memory_mend();
    CHECK_EQ(crowd.made, 0);
    return err;
}

static void out_of_memory_reduces_items_in_flight(void)
{
    CHECK_EQ(run_out_of_memory(NULL), -ENOMEM);
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, run_out_of_memory, NULL), -ENOMEM);
    CHECK_EQ(weft_par_run(rt, run_out_of_memory, NULL), -ENOMEM);
    weft_runtime_destroy(rt);
}

/* --- Distribution among workers ------------------------------------------------------------- */

static int meet(void **item, void *arg)
{
    struct crowd *crowd = arg;
    (void)item;
    atomic_fetch_add(&crowd->begun, 1);
    test_wait_for(&crowd->begun, 2);
    return 0;
}

static int meet_in_stage(void *arg)
{
    (void)arg;
    weft_stage stages[] = { { WEFT_STAGE_IN_ORDER, make_number }, { WEFT_STAGE_PARALLEL, meet } };
    for (unsigned i = 0; i < 20; i++) {
        struct crowd crowd = { .made = CROWD - 2 };
        CHECK_EQ(weft_pipeline(stages, 2, 0, NULL, &crowd, NULL), 0);
    }
    return 0;
}

/*
 * Goal:   a parallel stage runs on several workers.
 * Method: each of two items occupies its worker and waits for the other item.
 */
static void two_long_items_run_concurrently(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, meet_in_stage, NULL), 0);
    CHECK_EQ(weft_par_run(rt, meet_in_stage, NULL), 0);
    weft_runtime_destroy(rt);
}

static int run_little(void *arg)
{
    (void)arg;
    weft_stage stages[] = { { WEFT_STAGE_IN_ORDER, make_number },
                            { WEFT_STAGE_IN_ORDER, consume_in_order } };
    struct crowd crowd = { 0 };
    return weft_pipeline(stages, 2, 0, NULL, &crowd, NULL);
}

static void short_pipeline_wakes_no_worker(void)
{
    test_wakes_nobody(run_little, NULL);
}

static int run_inside(void **item, void *arg)
{
    struct rig rig = make_rig(4, (unsigned)(uintptr_t)*item, 20);
    (void)arg;
    CHECK_EQ(run_rig(&rig, 0), 0);
    return 0;
}

static int nest_pipelines(void *arg)
{
    (void)arg;
    weft_stage stages[] = { { WEFT_STAGE_IN_ORDER, make_number },
                            { WEFT_STAGE_PARALLEL, run_inside },
                            { WEFT_STAGE_SERIAL, run_inside },
                            { WEFT_STAGE_IN_ORDER, consume_in_order } };
    struct crowd crowd = { 0 };
    CHECK_EQ(weft_pipeline(stages, 4, 0, NULL, &crowd, NULL), 0);
    return 0;
}

static void pipelines_nest(void)
{
    test_run_everywhere(nest_pipelines, NULL);
}

TEST_MAIN({
    TEST_DEBUG(out_of_memory_reduces_items_in_flight),
    TEST(item_passes_each_stage_once_as_stage_kind_requires),
    TEST(removed_item_skips_later_stages),
    TEST(stage_may_replace_item),
    TEST(first_stage_that_is_not_in_order_is_rejected),
    TEST(errors_and_cancels_end_pipeline_without_leaks),
    TEST(no_stage_is_called_after_error),
    TEST(set_cancel_flag_prevents_calls),
    TEST(error_without_drop_function_abandons_items),
    TEST(waiting_items_do_not_block_others),
    TEST(two_long_items_run_concurrently),
    TEST(short_pipeline_wakes_no_worker),
    TEST(pipelines_nest),
})
