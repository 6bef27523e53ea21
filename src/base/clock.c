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

struct sleeper {
    struct wf_list link;
    _Atomic(uint32_t) *word;
    int64_t deadline;
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

static int sleep_while_paused(_Atomic(uint32_t) *word, uint32_t expected, int64_t deadline)
{
    struct sleeper self = { .word = word, .deadline = deadline };
    wf_lock(&lock);
    bool late = wf_clock_now() >= deadline;
    bool sleeps = !late && is_paused(read_mode()); /* It may have been let go meanwhile. */
    if (sleeps) {
        wf_list_push_back(&sleepers, &self.link);
    }
    wf_unlock(&lock);
    if (!sleeps) {
        return late ? -ETIMEDOUT : 0;
    }
    (void)wf_futex_wait(word, expected, WF_NEVER);
    wf_lock(&lock);
    wf_list_remove(&self.link);
    late = wf_clock_now() >= deadline;
    wf_unlock(&lock);
    return late ? -ETIMEDOUT : 0;
}

int wf_clock_futex_wait(_Atomic(uint32_t) *word, uint32_t expected, int64_t deadline)
{
    if (deadline == WF_NEVER) {
        return wf_futex_wait(word, expected, WF_NEVER);
    }
    int64_t value = read_mode();
    if (wf_unlikely(is_paused(value))) { /* Or about to be: that is decided at the lock. */
        return sleep_while_paused(word, expected, deadline);
    }
    int64_t real = weft_time_add(deadline, -number_of(value));
    int rc = wf_futex_wait(word, expected, real);
    /* If the time was paused meanwhile, it has not come yet. */
    return rc == -ETIMEDOUT && wf_clock_now() < deadline ? 0 : rc;
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

void weft_clock_pause(void)
{
    wf_lock(&lock);
    int64_t value = read_mode();
    if (!is_paused(value)) {
        /* release [C1]: from now on nobody trusts a clock that it reads. */
        wf_store_release(&mode, PAUSING);
        /* fence [C1]: and only then it is read. */
        wf_fence_full();
        set_mode(wf_clock_real() + number_of(value) + PAUSE_STEP_NS, true);
    }
    wf_unlock(&lock);
}

/* Under the lock. Wakes whose deadline is not after that; false if there is none. */
static bool wake_sleepers(int64_t latest)
{
    bool any = false;
    for (struct wf_list *link = sleepers.next; link != &sleepers; link = link->next) {
        const struct sleeper *sleeper = wf_container_of(link, struct sleeper, link);
        if (sleeper->deadline <= latest) {
            wf_futex_wake(sleeper->word, INT_MAX);
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
    wf_lock(&lock);
    int64_t value = read_mode();
    if (!is_paused(value) || duration < 0) {
        wf_fatal("weft_clock_advance: the clock is not paused, or is to go back; call "
                 "weft_clock_pause() first");
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
