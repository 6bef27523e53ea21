/* SPDX-License-Identifier: MIT */
/*
 * event_model.c - src/sync/event.c and notify.c, with plain threads: who waits is let go, and
 * sees what was written before; a notification is for one.
 */
#include <weft/event.h>

#include <stdlib.h>

#include "sched/thread.h"
#include "sync_rig.h"

static weft_event *event;
static weft_notify notify;
static int written; /* plain */

/* --- Events --------------------------------------------------------------------------------- */

static void write_and_set(void *arg)
{
    (void)arg;
    written = 1;
    weft_event_set(event);
}

static void wait_and_read(void *arg)
{
    (void)arg;
    mc_assert(weft_event_wait(event, WEFT_NEVER) == 0);
    mc_assert(written == 1);
}

static void wait_in_time(void *arg)
{
    (void)arg;
    int err = weft_event_wait(event, DEADLINE);
    mc_assert(err == 0 || err == WEFT_ETIMEDOUT);
    mc_note(err == 0 ? 1 : 2);
    mc_assert(err != 0 || written == 1);
}

static void look(void *arg)
{
    (void)arg;
    if (weft_event_is_set(event)) {
        mc_assert(written == 1);
    }
}

static void begin(void)
{
    event = calloc(1, sizeof *event);
}

/*
 * Goal:   all who wait are let go, and see what was written.
 * Method: one sets it; others wait, look, or give up.
 */
static void two_wait(void)
{
    begin();
    RIG_RUN(write_and_set, wait_and_read, wait_and_read);
    free(event);
}

static void one_looks(void)
{
    begin();
    RIG_RUN(write_and_set, look);
    free(event);
}

static void one_gives_up(void)
{
    begin();
    RIG_RUN(write_and_set, wait_in_time);
    free(event);
}

/*
 * Goal:   who sets it does not touch it when another one goes on.
 * Method: who waited frees it.
 */
static void wait_and_free(void *arg)
{
    wait_and_read(arg);
    free(event);
}

static void who_waited_frees_it(void)
{
    begin();
    RIG_RUN(write_and_set, wait_and_free);
}

/* --- Notifications -------------------------------------------------------------------------- */

static void write_and_notify(void *arg)
{
    (void)arg;
    written = 1;
    weft_notify_one(&notify);
}

static void notify_one(void *arg)
{
    (void)arg;
    weft_notify_one(&notify);
}

static void be_notified(void *arg)
{
    (void)arg;
    (void)wf_thread_self(); /* So that it takes what is stored at once. */
    mc_assert(weft_notify_wait(&notify, WEFT_NEVER) == 0);
}

static void be_notified_and_read(void *arg)
{
    be_notified(arg);
    mc_assert(written == 1);
}

static void be_notified_in_time(void *arg)
{
    (void)arg;
    int err = weft_notify_wait(&notify, DEADLINE);
    mc_assert(err == 0 || err == WEFT_ETIMEDOUT);
    mc_note(err == 0 ? 1 : 2);
    if (err == 0) {
        weft_notify_one(&notify); /* to the other one */
    }
}

/*
 * Goal:   a notification reaches one who waits, now or later, and none is lost.
 * Method: one notifies, one waits; two notify, and two wait, one after the other; one that
 *         gives up takes none with it.
 */
static void one_is_notified(void)
{
    RIG_RUN(write_and_notify, be_notified_and_read);
    mc_assert(notify.opaque[0] == 0);
}

/* Who is notified first notifies the other one. */
static void pass_on(void *arg)
{
    be_notified(arg);
    notify_one(arg);
}

static void two_are_notified(void)
{
    RIG_RUN(notify_one, pass_on, pass_on);
    mc_assert(notify.opaque[0] != 0);
}

static void one_gives_up_a_notification(void)
{
    RIG_RUN(notify_one, be_notified_in_time, be_notified);
}

static const struct mc_test tests[] = {
    { .name = "two_wait", .run = two_wait, .mode = MC_PCT, .runs = 20000 },
    { .name = "one_looks", .run = one_looks },
    { .name = "one_gives_up",
      .run = one_gives_up,
      .mode = MC_PCT,
      .runs = 40000,
      .timeouts = 1,
      .seen = MC_OUTCOMES(1, 2) },
    { .name = "who_waited_frees_it", .run = who_waited_frees_it, .leaks = true },
    { .name = "one_is_notified", .run = one_is_notified },
    { .name = "two_are_notified", .run = two_are_notified, .mode = MC_PCT, .runs = 20000 },
    { .name = "one_gives_up_a_notification",
      .run = one_gives_up_a_notification,
      .mode = MC_PCT,
      .runs = 20000,
      .timeouts = 1,
      .seen = MC_OUTCOMES(1, 2) },
};

MC_MAIN(tests)
