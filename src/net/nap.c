/* SPDX-License-Identifier: MIT */
/*
 * nap.c - retry with backoff, for conditions without a readiness event.
 */
#include "net/nap.h"

#include <weft/clock.h>

#include "io/transfer.h"
#include "sched/thread.h"
#include "time/timer.h"

#define NAP_MIN_NS   (2 * WEFT_MS)
#define NAP_BRIEF_NS (50 * WEFT_US)
#define NAP_MAX_NS   (100 * WEFT_MS)

struct nap {
    weft_future future;
    struct wf_sched *sched;
    struct wf_timer timer;
    bool is_brief; /* the first interval is the brief one */
    bool started;
    bool cancelled;
};

_Static_assert(sizeof(struct nap) <= sizeof(weft_op), "a nap takes the place of a wait");

static int64_t next_duration(struct wf_transfer *transfer, bool is_brief)
{
    int64_t last = (int64_t)transfer->room[0];
    int64_t first = is_brief ? NAP_BRIEF_NS : NAP_MIN_NS;
    int64_t next = last == 0 ? first : 2 * last;
    next = next < NAP_MAX_NS ? next : NAP_MAX_NS;
    transfer->room[0] = (uint64_t)next;
    return next;
}

static int nap_poll(weft_future *future)
{
    struct nap *nap = (struct nap *)future;
    if (!nap->started) {
        struct wf_transfer *transfer = wf_container_of(future, struct wf_transfer, wait);
        nap->started = true;
        nap->timer.task = wf_thread_waiter();
        wf_timer_arm(nap->sched, &nap->timer, weft_after(next_duration(transfer, nap->is_brief)));
        return WEFT_PENDING;
    }
    if (nap->cancelled) {
        return WEFT_ECANCELED;
    }
    if (wf_timer_has_fired(&nap->timer)) {
        return 0;
    }
    wf_thread_must_await(nap->timer.task);
    return WEFT_PENDING;
}

static bool nap_cancel(weft_future *future)
{
    struct nap *nap = (struct nap *)future;
    nap->cancelled = nap->started && wf_timer_disarm(&nap->timer);
    return true;
}

static const weft_future_ops nap_ops = { .poll = nap_poll, .cancel = nap_cancel };

static int begin(struct wf_transfer *self, struct wf_sched *sched, bool is_brief)
{
    struct nap *nap = (struct nap *)(void *)&self->wait;
    *nap = (struct nap){ .future.ops = &nap_ops, .sched = sched, .is_brief = is_brief };
    self->waits_for = &nap->future;
    return WEFT_PENDING;
}

int wf_nap(struct wf_transfer *self, struct wf_sched *sched)
{
    return begin(self, sched, false);
}

int wf_nap_briefly(struct wf_transfer *self, struct wf_sched *sched)
{
    return begin(self, sched, true);
}
