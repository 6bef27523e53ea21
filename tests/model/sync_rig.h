/* SPDX-License-Identifier: MIT */
/*
 * sync_rig.h - plain threads that wait at objects. Fakes: what belongs to workers and tasks,
 * of which there are none.
 */
#ifndef MODEL_SYNC_RIG_H
#define MODEL_SYNC_RIG_H

#include <weft/task.h>

#include "mc.h"
#include "sched/fiber.h"
#include "sched/join.h"
#include "sched/worker.h"

enum {
    DEADLINE = 1000,
};

WF_TLS_DEFINE(struct wf_worker *, wf_tls_worker);

/* Nobody is a fiber. */
const struct wf_task_ops wf_fiber_ops;

void wf_join_answer(struct wf_task *task)
{
    (void)task;
    mc_assert(!"nobody joins");
}

void weft_shield_enter(void)
{
    mc_assert(!"no worker");
}

void weft_shield_leave(void)
{
    mc_assert(!"no worker");
}

/* Some threads, and this one. */
static inline void rig_run(void (*const *functions)(void *arg), unsigned count)
{
    for (unsigned i = 0; i + 1 < count; i++) {
        mc_go(functions[i], NULL);
    }
    functions[count - 1](NULL);
    mc_join();
}

#define RIG_RUN(...)                                                                               \
    rig_run((void (*const[])(void *)){ __VA_ARGS__ },                                              \
            sizeof((void (*const[])(void *)){ __VA_ARGS__ }) / sizeof(void (*)(void *)))

#endif
