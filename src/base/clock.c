/* SPDX-License-Identifier: MIT */
/*
 * clock.c - program clock, which tests can pause, on top of the monotonic machine clock.
 *
 * Program time is machine time plus an offset or, while the clock is paused, a fixed time. One
 * word encodes either, so a reader always sees one or the other.
 *
 * Program time never goes backwards. A reader loads the word, the machine clock, and the word
 * again. The pausing thread stores PAUSING in the word before it reads the machine clock. So a
 * reader that has not seen PAUSING has read the machine clock earlier. A reader that has seen
 * it waits for the lock, and then finds the paused time.
 *
 * Edges.
 * [C1] a change of the word to PAUSING is released, and readers acquire it. Fences keep the
 *      reads of the machine clock in order.
 *
 * While the clock is paused, a thread that sleeps with a deadline has no timeout and is in a
 * list. When the clock is advanced past its deadline, the thread is woken. It may still be
 * about to sleep, and then waking its futex does nothing. So the wake-up is repeated until the
 * thread has left the list.
 *
 * Checked by tests/model/clock_model.c.
 */
#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <time.h>

#include <weft/clock.h>

#include "base/assert.h"
#include "base/futex.h"
#include "base/list.h"
#include "base/lock.h"

/* A thread that sleeps on a futex. */
struct sleeper {
    struct wf_clock_sleeper base;
    _Atomic(uint32_t) *word;
};

/* Written under the lock, read by any thread: 2 * offset, or 2 * paused time + 1. */
static _Atomic(int64_t) mode;
static struct wf_lock lock = WF_LOCK_INIT(WF_RANK_CLOCK);
static struct wf_list sleepers = { &sleepers, &sleepers }; /* under the lock */

/* Maximum time that can be encoded. */
#define TIME_MAX (INT64_MAX / 2)

/* A CPU may read its clock slightly later than it performs the accesses that follow the read.
 * So the paused time is one step later than the time that was read. */
#define PAUSE_STEP_NS 1000

/* A thread holds the lock and is about to pause the clock. Differs from every encoded time. */
#define PAUSING (INT64_MIN + 1)

static bool is_paused(int64_t value)
{
    return (value & 1) != 0;
}

/* Returns the offset of a running clock, or the time of a paused one. */
static int64_t number_of(int64_t value)
{
    return value >> 1;
}

static int64_t read_mode(void)
{
    /* acquire [C1]: a read of the machine clock after this load comes after the change. */
    return wf_load_acquire(&mode);
}

/* Under the lock. */
static void set_mode(int64_t number, bool paused)
{
    /* release [C1]: reads of the machine clock before this store stay before it. */
    wf_store_release(&mode, number * 2 + paused);
}

int64_t wf_clock_real(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Waits until the thread that is about to pause the clock has done so. Returns the new mode. */
static int64_t settled_mode(void)
{
    wf_lock(&lock);
    int64_t value = read_mode();
    wf_unlock(&lock);
    return value;
}

int64_t wf_clock_at(int64_t real)
{
    int64_t value = read_mode();
    if (wf_unlikely(value == PAUSING)) {
        value = settled_mode();
    }
    return wf_likely(!is_paused(value)) ? real + number_of(value) : number_of(value);
}

int64_t wf_clock_now(void)
{
    int64_t before;
    int64_t now;
    do {
        before = read_mode();
        now = wf_clock_at(wf_clock_real());
    } while (wf_unlikely(before == PAUSING || read_mode() != before));
    return now;
}

/* The clock is paused or about to be: decides under the lock. */
static int64_t begin_while_paused(struct wf_clock_sleeper *self)
{
    wf_lock(&lock);
    int64_t value = read_mode();
    int64_t real = WF_NEVER;
    if (!is_paused(value)) { /* The clock has been resumed meanwhile. */
        real = weft_time_add(self->deadline, -number_of(value));
    } else if (number_of(value) >= self->deadline) {
        real = INT64_MIN;
    } else {
        wf_list_push_back(&sleepers, &self->link);
        self->is_listed = true;
    }
    wf_unlock(&lock);
    return real;
}

int64_t wf_clock_sleep_begin(struct wf_clock_sleeper *self, int64_t deadline)
{
    self->deadline = deadline;
    self->is_listed = false;
    if (deadline == WF_NEVER) {
        return WF_NEVER;
    }
    int64_t value = read_mode();
    return wf_unlikely(is_paused(value)) ? begin_while_paused(self)
                                         : weft_time_add(deadline, -number_of(value));
}

bool wf_clock_sleep_end(struct wf_clock_sleeper *self)
{
    if (self->deadline == WF_NEVER) {
        return false;
    }
    if (wf_unlikely(self->is_listed)) {
        wf_lock(&lock);
        wf_list_remove(&self->link);
        wf_unlock(&lock);
    }
    /* If the clock was paused meanwhile, the deadline may not have passed yet. */
    return wf_clock_now() >= self->deadline;
}

static void wake_futex(struct wf_clock_sleeper *self)
{
    wf_futex_wake(((struct sleeper *)self)->word, INT_MAX);
}

int wf_clock_futex_wait(_Atomic(uint32_t) *word, uint32_t expected, int64_t deadline)
{
    struct sleeper self = { .base.wake = wake_futex, .word = word };
    int64_t real = wf_clock_sleep_begin(&self.base, deadline);
    if (real == INT64_MIN) {
        return -ETIMEDOUT;
    }
    int rc = wf_futex_wait(word, expected, real);
    /* A sleep that began while paused has no timeout: the deadline may have passed after a
     * wake, too. */
    bool late = rc == -ETIMEDOUT || real == WF_NEVER ? wf_clock_sleep_end(&self.base) : false;
    return late ? -ETIMEDOUT : 0;
}

weft_time weft_now(void)
{
    return wf_clock_now();
}

weft_time weft_time_add(weft_time time, weft_time duration)
{
    weft_time sum;
    if (time == WEFT_NEVER) {
        return WEFT_NEVER;
    }
    if (__builtin_add_overflow(time, duration, &sum)) {
        return duration < 0 ? INT64_MIN : WEFT_NEVER;
    }
    return sum;
}

weft_time weft_after(weft_time duration)
{
    return weft_time_add(wf_clock_now(), duration);
}

/* Timers come at whole milliseconds. From one on, an advance by some milliseconds reaches exactly
 * those that were set for that time. */
static int64_t next_millisecond(int64_t time)
{
    return (time + WEFT_MS - 1) / WEFT_MS * WEFT_MS;
}

void weft_clock_pause(void)
{
    wf_lock(&lock);
    int64_t value = read_mode();
    if (!is_paused(value)) {
        /* release [C1]: from now on, readers discard a machine time that they read. */
        wf_store_release(&mode, PAUSING);
        /* fence [C1]: the machine clock is read only after that. */
        wf_fence_full();
        set_mode(next_millisecond(wf_clock_real() + number_of(value) + PAUSE_STEP_NS), true);
    }
    wf_unlock(&lock);
}

/* Under the lock. Wakes sleepers whose deadlines are not after latest. Returns whether any
 * exist. */
static bool wake_sleepers(int64_t latest)
{
    bool any = false;
    for (struct wf_list *link = sleepers.next; link != &sleepers; link = link->next) {
        struct wf_clock_sleeper *sleeper = wf_container_of(link, struct wf_clock_sleeper, link);
        if (sleeper->deadline <= latest) {
            sleeper->wake(sleeper);
            any = true;
        }
    }
    return any;
}

/* Wakes these sleepers until they have left the list. Called under the lock, which it releases
 * between rounds. */
static void wake_until_gone(int64_t latest)
{
    while (wake_sleepers(latest)) {
        wf_unlock(&lock);
        (void)sched_yield();
        wf_lock(&lock);
    }
}

void weft_clock_advance(weft_time duration)
{
    if (duration < 0) {
        wf_fatal("weft_clock_advance: the duration is negative, but time does not go back; advance "
                 "by 0 or more");
    }
    wf_lock(&lock);
    int64_t value = read_mode();
    if (!is_paused(value)) {
        wf_fatal("weft_clock_advance: the clock is not paused; call weft_clock_pause() first");
    }
    int64_t now = weft_time_add(number_of(value), duration);
    now = now < TIME_MAX ? now : TIME_MAX;
    set_mode(now, true);
    wake_until_gone(now);
    wf_unlock(&lock);
}

void weft_clock_resume(void)
{
    wf_lock(&lock);
    int64_t value = read_mode();
    if (is_paused(value)) {
        set_mode(number_of(value) - wf_clock_real(), false);
    }
    /* The sleepers sleep again with a deadline in machine time. No thread joins the list now. */
    wake_until_gone(WF_NEVER);
    wf_unlock(&lock);
}
