/* SPDX-License-Identifier: MIT */
/*
 * rwlock_model.c - src/sync/rwlock.c, with plain threads: readers and a writer exclude each
 * other, and nobody waits for a lock that can be had.
 */
#include <weft/rwlock.h>

#include "sync_rig.h"

static weft_rwlock lock;
static int guarded; /* plain */
static int sink;

static void read_it(void *arg)
{
    (void)arg;
    mc_assert(weft_rwlock_read(&lock, WEFT_NEVER) == 0);
    mc_assert(guarded >= 0);
    weft_rwlock_end_read(&lock);
}

static void write_it(void *arg)
{
    (void)arg;
    mc_assert(weft_rwlock_write(&lock, WEFT_NEVER) == 0);
    guarded++;
    weft_rwlock_end_write(&lock);
}

static void write_and_read(void *arg)
{
    (void)arg;
    mc_assert(weft_rwlock_write(&lock, WEFT_NEVER) == 0);
    guarded++;
    weft_rwlock_downgrade(&lock);
    sink = guarded;
    weft_rwlock_end_read(&lock);
}

static void write_in_time(void *arg)
{
    (void)arg;
    int err = weft_rwlock_write(&lock, DEADLINE);
    mc_assert(err == 0 || err == WEFT_ETIMEDOUT);
    mc_note(err == 0 ? 1 : 2);
    if (err == 0) {
        guarded++;
        weft_rwlock_end_write(&lock);
    }
}

static void try_both(void *arg)
{
    (void)arg;
    if (weft_rwlock_try_write(&lock)) {
        guarded++;
        weft_rwlock_end_write(&lock);
    } else if (weft_rwlock_try_read(&lock)) {
        weft_rwlock_end_read(&lock);
    }
}

static void end(int writes)
{
    mc_assert(guarded == writes || writes < 0);
    mc_assert(weft_rwlock_try_write(&lock));
    weft_rwlock_end_write(&lock);
    mc_assert(lock.opaque[0] == 0);
}

/*
 * Goal:   exclusion, and no wake-up is lost.
 * Method: pairs and threes of readers and writers.
 */
static void writer_and_writer(void)
{
    RIG_RUN(write_it, write_it);
    end(2);
}

static void writer_and_reader(void)
{
    RIG_RUN(write_it, read_it);
    end(1);
}

static void writer_and_two_readers(void)
{
    RIG_RUN(write_it, read_it, read_it);
    end(1);
}

static void two_writers_and_a_reader(void)
{
    RIG_RUN(write_it, write_it, read_it);
    end(2);
}

static void writer_that_turns_into_a_reader(void)
{
    RIG_RUN(write_and_read, read_it, write_it);
    end(2);
}

static void one_tries(void)
{
    RIG_RUN(try_both, write_it, read_it);
    end(-1);
}

/*
 * Goal:   a writer that gives up lets the readers in that wait behind it.
 * Method: a reader has it and keeps it until the other one has it, too.
 */
static void read_and_wait(void *arg)
{
    (void)arg;
    mc_assert(weft_rwlock_read(&lock, WEFT_NEVER) == 0);
    mc_go(read_it, NULL);
    mc_join();
    weft_rwlock_end_read(&lock);
}

static void a_writer_gives_up_among_readers(void)
{
    RIG_RUN(write_in_time, read_and_wait);
    end(-1);
}

static void a_writer_gives_up(void)
{
    RIG_RUN(write_in_time, write_it);
    end(-1);
}

/*
 * Goal:   the same for one that was woken, finds that a reader was faster, and gives up.
 * Method: another one has it first, and lets go of it; who reads keeps it until another
 *         reader has it, too.
 */
static void end_write(void *arg)
{
    (void)arg;
    weft_rwlock_end_write(&lock);
}

static _Atomic(uint32_t) has_read;

static void read_and_tell(void *arg)
{
    (void)arg;
    mc_assert(weft_rwlock_read(&lock, WEFT_NEVER) == 0);
    wf_store_release(&has_read, 1u);
    weft_rwlock_end_read(&lock);
}

static void read_until_the_other_does(void *arg)
{
    (void)arg;
    mc_assert(weft_rwlock_read(&lock, WEFT_NEVER) == 0);
    mc_await_exchange(&has_read, 1, 1);
    weft_rwlock_end_read(&lock);
}

static void a_woken_writer_gives_up_among_readers(void)
{
    mc_assert(weft_rwlock_try_write(&lock));
    RIG_RUN(end_write, write_in_time, read_and_tell, read_until_the_other_does);
    end(-1);
}

/*
 * Goal:   who waits for long is handed the lock, by a writer or by the last reader.
 * Method: the clock goes on while somebody may wait.
 */
static void hold_for_long(void *arg)
{
    (void)arg;
    mc_assert(weft_rwlock_write(&lock, WEFT_NEVER) == 0);
    guarded++;
    mc_clock_advance(2000000);
    weft_rwlock_downgrade(&lock);
    mc_clock_advance(2000000);
    weft_rwlock_end_read(&lock);
}

static void handed_over(void)
{
    RIG_RUN(hold_for_long, write_it, read_it);
    end(2);
}

static void handed_over_to_one_that_gives_up(void)
{
    RIG_RUN(hold_for_long, write_in_time, read_it);
    end(-1);
}

static const struct mc_test tests[] = {
    { .name = "writer_and_writer", .run = writer_and_writer },
    { .name = "writer_and_reader", .run = writer_and_reader },
    { .name = "writer_and_two_readers",
      .run = writer_and_two_readers,
      .mode = MC_PCT,
      .runs = 20000 },
    { .name = "two_writers_and_a_reader",
      .run = two_writers_and_a_reader,
      .mode = MC_PCT,
      .runs = 20000 },
    { .name = "writer_that_turns_into_a_reader",
      .run = writer_that_turns_into_a_reader,
      .mode = MC_PCT,
      .runs = 20000 },
    { .name = "one_tries", .run = one_tries, .mode = MC_PCT, .runs = 20000 },
    { .name = "a_writer_gives_up",
      .run = a_writer_gives_up,
      .preemptions = 2,
      .timeouts = 1,
      .seen = MC_OUTCOMES(1, 2) },
    { .name = "a_writer_gives_up_among_readers",
      .run = a_writer_gives_up_among_readers,
      .mode = MC_PCT,
      .runs = 20000,
      .timeouts = 1,
      .seen = MC_OUTCOMES(1, 2) },
    { .name = "a_woken_writer_gives_up_among_readers",
      .run = a_woken_writer_gives_up_among_readers,
      .mode = MC_PCT,
      .runs = 50000,
      .timeouts = 1,
      .seen = MC_OUTCOMES(1, 2) },
    { .name = "handed_over",
      .run = handed_over,
      .mode = MC_PCT,
      .runs = 20000,
      .moving_clock = true },
    { .name = "handed_over_to_one_that_gives_up",
      .run = handed_over_to_one_that_gives_up,
      .mode = MC_PCT,
      .runs = 20000,
      .timeouts = 1,
      .moving_clock = true,
      .seen = MC_OUTCOMES(1, 2) },
};

MC_MAIN(tests)
