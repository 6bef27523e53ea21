/* SPDX-License-Identifier: MIT */
/*
 * guest.c - external threads: plain threads that fork.
 *
 * An external thread runs its forks itself, like any fork context, and workers steal some if it
 * runs for long. It gets a fork context at its first fork, and a slot in a short list that
 * workers scan after they have scanned each other.
 *
 * Most calls from outside end before a worker could wake up, so an external thread wakes none
 * for its first forks. It does so after 20 us, if it comes to a fork or join then. Otherwise
 * the monitor does, which scans the external threads every 500 us. The monitor sleeps while the
 * runtime is idle, and an external thread that forks wakes it (watch.c, X1 to X3). It stays
 * awake for a while after that, so that many small calls do not pay for the wake-up.
 *
 * An external thread that waits for a stolen fork meanwhile runs parts of it, if there are any
 * (job.c). Otherwise it sleeps as a thread waits for anything (thread.c).
 *
 * Edges: strand.c's [S1], watch.c's [V1].
 */
#include "sched/guest.h"

#include "base/callout.h"
#include "base/clock.h"
#include "sched/job.h"
#include "sched/sched.h"
#include "sched/strand.h"
#include "sched/thread.h"
#include "sched/worker.h"

/* In the frame of the call. */
struct wf_guest {
    struct wf_sched *sched;
    struct wf_strand *strand; /* NULL: has not forked yet */
    unsigned place;           /* in the list */
    struct wf_guest *outer;   /* the enclosing call, or NULL */
    int64_t attach_again_at;  /* after a failure: tries to get no fork context before that */
};

/* Puts a fork context into the list. Returns false if the list is full. */
static bool find_place(struct wf_guest *guest, struct wf_strand *strand)
{
    struct wf_guests *guests = &guest->sched->guests;
    for (unsigned i = 0; i < WF_GUESTS_MAX; i++) {
        struct wf_strand *nobody = NULL;
        /* release [S1]: the fork context is initialized. */
        if (wf_cas_release(&guests->strands[i], &nobody, strand)) {
            guest->place = i;
            return true;
        }
    }
    return false;
}

/* Attaches a fork context. Returns NULL if memory is exhausted or the list is full. */
static struct wf_strand *attach(struct wf_guest *guest)
{
    struct wf_strand *strand = wf_strand_take(&guest->sched->strands);
    if (strand == NULL) {
        return NULL;
    }
    struct wf_sched *sched = guest->sched;
    strand->jobs.stack_floor = wf_job_stack_floor();
    wf_jobs_rename(&strand->jobs, NULL);
    wf_runners_init(&strand->runners);
    strand->shares = sched->options.stealing;
    strand->eager_forks = wf_strand_eager_forks(sched->options.workers + 1);
    strand->steps = WF_STRAND_STEPS_MIN;
    wf_strand_begin_turn(strand);
    wf_strand_be_silent(strand, wf_clock_real());
    if (!find_place(guest, strand)) {
        wf_strand_give(strand);
        return NULL;
    }
    guest->strand = strand;
    wf_strand_use(strand);
    /* relaxed: before the fence in the next line. */
    (void)wf_fetch_add_relaxed(&sched->guests.count, 1);
    if (wf_watch_is_asleep(&sched->watch)) {
        wf_watch_wake(&sched->watch);
    } else {
        wf_watch_hurry(&sched->watch);
    }
    return strand;
}

struct wf_strand *wf_guest_attach(void)
{
    struct wf_thread *self = wf_thread_known();
    struct wf_guest *guest = self != NULL ? self->guest : NULL;
    if (guest == NULL ||
        (guest->attach_again_at != 0 && wf_clock_real() < guest->attach_again_at)) {
        return NULL;
    }
    struct wf_strand *strand = attach(guest);
    if (strand == NULL) {
        guest->attach_again_at = wf_clock_real() + WF_ATTACH_AGAIN_NS;
    }
    return strand;
}

static void leave(const struct wf_guest *guest)
{
    struct wf_guests *guests = &guest->sched->guests;
    wf_strand_must_be_empty(guest->strand, "weft_par_run: the function", 0);
    /* relaxed: a thief that still has the pointer steals from the fork context wherever it is. */
    wf_store_relaxed(&guests->strands[guest->place], (struct wf_strand *)NULL);
    /* relaxed: only used as a hint. */
    (void)wf_fetch_sub_relaxed(&guests->count, 1);
    wf_strand_give(guest->strand);
}

int wf_guest_run(struct wf_sched *sched, int (*function)(void *arg), void *arg)
{
    struct wf_thread *self = wf_thread_self();
    if (self == NULL) {
        return wf_callout(function, arg); /* No memory: runs without workers. */
    }
    struct wf_guest guest = { .sched = sched, .outer = self->guest };
    self->guest = &guest;
    weft_jobs *before = weft_jobs_here();
    if (before->head != NULL) {
        wf_strand_use(NULL); /* It is the fork context of the enclosing call. */
    }
    int result = wf_callout(function, arg);
    if (guest.strand != NULL) {
        leave(&guest);
    }
    self->guest = guest.outer;
    wf_strand_use_again(before);
    return result;
}

bool wf_guest_is_of(const struct wf_sched *sched)
{
    const struct wf_thread *self = wf_thread_known();
    const struct wf_guest *guest = self != NULL ? self->guest : NULL;
    while (guest != NULL && guest->sched != sched) {
        guest = guest->outer;
    }
    return guest != NULL;
}

bool wf_guests_have_public(const struct wf_guests *guests)
{
    for (unsigned i = 0; wf_guests_are_there(guests) && i < WF_GUESTS_MAX; i++) {
        /* acquire [S1]: the fork context is initialized. */
        const struct wf_strand *strand = wf_load_acquire(&guests->strands[i]);
        if (strand != NULL && wf_strand_has_public(strand)) {
            return true;
        }
    }
    return false;
}
