/* SPDX-License-Identifier: MIT */
/*
 * fault_chain_test.c - the stack of signal handlers below ours.
 */
#include "sched/fault_chain.h"

#include "test.h"

static struct sigaction handler_of(int flags)
{
    return (struct sigaction){ .sa_flags = flags };
}

static void empty_chain_has_no_handler(void)
{
    struct wf_fault_chain chain = { .number = SIGSEGV };
    CHECK_EQ(wf_fault_chain_count(&chain), 0);
    CHECK(wf_fault_chain_at(&chain, 0) == NULL);
}

static void last_handler_is_at_level_0(void)
{
    struct wf_fault_chain chain = { .number = SIGSEGV };
    for (uint32_t i = 0; i < WF_FAULT_CHAIN_MAX; i++) {
        struct sigaction handler = handler_of((int)i + 1);
        wf_fault_chain_put(&chain, i, &handler);
    }
    for (uint32_t level = 0; level < WF_FAULT_CHAIN_MAX; level++) {
        CHECK_EQ(wf_fault_chain_at(&chain, level)->sa_flags, WF_FAULT_CHAIN_MAX - (int)level);
    }
    CHECK(wf_fault_chain_at(&chain, WF_FAULT_CHAIN_MAX) == NULL);
    wf_fault_chain_pop(&chain);
    CHECK_EQ(wf_fault_chain_at(&chain, 0)->sa_flags, WF_FAULT_CHAIN_MAX - 1);
}

static void put_removes_handlers_above(void)
{
    struct wf_fault_chain chain = { .number = SIGSEGV };
    for (uint32_t i = 0; i < 3; i++) {
        struct sigaction handler = handler_of((int)i + 1);
        wf_fault_chain_put(&chain, i, &handler);
    }
    struct sigaction handler = handler_of(9);
    wf_fault_chain_put(&chain, 1, &handler);
    CHECK_EQ(wf_fault_chain_count(&chain), 2);
    CHECK_EQ(wf_fault_chain_at(&chain, 0)->sa_flags, 9);
    CHECK_EQ(wf_fault_chain_at(&chain, 1)->sa_flags, 1);
}

TEST_MAIN({
    TEST(empty_chain_has_no_handler),
    TEST(last_handler_is_at_level_0),
    TEST(put_removes_handlers_above),
})
