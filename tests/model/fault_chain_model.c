/* SPDX-License-Identifier: MIT */
/*
 * fault_chain_model.c - src/sched/fault_chain.h: a handler that runs while others are installed
 * and removed sees each handler in the chain as it was put there.
 */
#include "sched/fault_chain.h"

#include "mc.h"

static struct wf_fault_chain chain;

static struct sigaction handler_of(int flags)
{
    return (struct sigaction){ .sa_flags = flags };
}

/* A fault: reads the chain from the top. */
static void handle_fault(void *arg)
{
    (void)arg;
    struct sigaction *last = wf_fault_chain_at(&chain, 0);
    if (last == NULL) {
        mc_note(1);
        return;
    }
    mc_assert(last->sa_flags == (last == &chain.below[0] ? 10 : 20));
    mc_note(last == &chain.below[0] ? 2 : 3);
}

static void handler_sees_installed_handlers(void)
{
    struct sigaction first = handler_of(10);
    struct sigaction second = handler_of(20);
    mc_go(handle_fault, NULL);
    wf_fault_chain_put(&chain, 0, &first);
    wf_fault_chain_put(&chain, 1, &second);
    wf_fault_chain_pop(&chain);
    mc_join();
}

static const struct mc_test tests[] = {
    { .name = "handler_sees_installed_handlers",
      .run = handler_sees_installed_handlers,
      .seen = MC_OUTCOMES(1, 2, 3) },
};

MC_MAIN(tests)
