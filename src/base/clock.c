/* SPDX-License-Identifier: MIT */
/*
 * clock.c - the program's time, and the machine's.
 *
 * The program's time is the machine's plus an offset, or, while it is paused, a
 * number. Both are one word, so whoever looks sees either the one or the other.
 *
 * Time does not go back. Who looks reads the word, the machine's clock, and the word
 * again; who pauses says so in the word before it reads the clock. So whoever has not
 * noticed has read the clock before. Who has noticed waits at the lock for the time
 * that is kept.
 *
 * Edges.
 * [C1] the word is released when it changes to PAUSING and acquired by a look, and
 *      fences keep the reads of the clock in their places.
 *
 * Who sleeps with a deadline while it is paused sleeps without one, and is in a list;
 * when the number is moved past its deadline, it is woken. It may be on its way to
 * sleep, where a wake of its futex does nothing; so it is woken until it has left the
 * list.
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

/* One that sleeps on a futex. */
struct sleeper {
    struct wf_clock_sleeper base;
    _Atomic(uint32_t) *word;
};

/* Under the lock, all read: twice the offset, or twice the time and 1. */
static _Atomic(int64_t) mode;
static struct wf_lock lock = WF_LOCK_INIT(WF_RANK_CLOCK);
static struct wf_list sleepers = { &sleepers, &sleepers }; /* under the lock */

/* What fits. */
#define TIME_MAX (INT64_MAX / 2)

/* A processor may read its clock a little after what follows the read. So the time
 * that is kept is a step later than the one that was read. */
#define PAUSE_STEP_NS 1000

/* Somebody has the lock and is about to pause the time: no time that fits. */
#define PAUSING (INT64_MIN + 1)

static bool is_paused(int64_t value)
{
    return (value & 1) != 0;
}

/* Of a value that is not paused: the offset; else the time. */
static int64_t number_of(int64_t value)
{
    return value >> 1;
}

static int64_t read_mode(void)
{
    /* acquire [C1]: a clock that is read after this is read after the change. */
    return wf_load_acquire(&mode);
}

/* Under the lock. */
static void set_mode(int64_t number, bool paused)
{
    /* release [C1]: what was read of the clock before was before. */
    wf_store_release(&mode, number * 2 + paused);
}

int64_t wf_clock_real(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Somebody is about to pause the time: waits until it is done. */
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

/* The time is paused, or about to be: that is decided at the lock. */
static int64_t begin_while_paused(struct wf_clock_sleeper *self)
{
    wf_lock(&lock);
    int64_t value = read_mode();
    int64_t real = WF_NEVER;
    if (!is_paused(value)) { /* It has been let go meanwhile. */
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
    /* If the time was paused meanwhile, it has perhaps not come yet. */
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
    /* One that was paused has no timeout: it may be late also when it was woken. */
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
        /* release [C1]: from now on nobody trusts a clock that it reads. */
        wf_store_release(&mode, PAUSING);
        /* fence [C1]: and only then it is read. */
        wf_fence_full();
        set_mode(next_millisecond(wf_clock_real() + number_of(value) + PAUSE_STEP_NS), true);
    }
    wf_unlock(&lock);
}

/* Under the lock. Wakes whose deadline is not after that; false if there is none. */
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

/* Under the lock, which is free for a while in between. */
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
    /* They sleep on with a deadline of the machine's; nobody else comes. */
    wake_until_gone(WF_NEVER);
    wf_unlock(&lock);
}
