/* SPDX-License-Identifier: MIT */
/*
 * source_model.c - src/io/source.c and transfer.c, with plain threads: who waits for bytes is
 * told of those that are there, also if others come, give up, or close it.
 *
 * The kernel is a counter of bytes, and a thread that adds some and tells of it once, by edge;
 * so one that is not told of what it waits for sleeps for ever.
 */
#include "io/source.h"

#include "base/atomic.h"
#include "io/io.h"
#include "io/owned.h"
#include "io/table.h"
#include "io/transfer.h"
#include "sync_rig.h"

static struct wf_io io;
static struct wf_source source_memory[2];
static unsigned blocks_max = 1;
static struct wf_source *source;
static void *handle;             /* of it, when the test began */
static _Atomic(unsigned) bytes;  /* in the kernel */
static _Atomic(unsigned) taken;  /* by readers */
static _Atomic(unsigned) closed; /* descriptors */

/* --- What is not there ------------------------------------------------------------------ */

static int watch(struct wf_io *of, struct wf_source *what, uint32_t for_what)
{
    (void)of;
    (void)what;
    (void)for_what;
    return 0;
}

static void unwatch(struct wf_io *of, struct wf_source *what)
{
    (void)of;
    (void)what;
}

static const struct wf_io_backend backend = { .name = "model", .watch = watch, .unwatch = unwatch };

int wf_io_open(struct wf_io *of)
{
    (void)of;
    return 0;
}

_Atomic(struct wf_source *) wf_source_chunks[WF_SOURCE_CHUNKS_MAX];

/* As table.c, with up to two blocks of one source each. */
struct wf_source *wf_table_take(struct wf_io *of)
{
    for (unsigned i = 0; i < blocks_max; i++) {
        if (source_memory[i].io == NULL) {
            wf_store_relaxed(&wf_source_chunks[i], &source_memory[i]);
            source_memory[i].io = of;
            source_memory[i].index = i;
            return &source_memory[i];
        }
    }
    return NULL;
}

void wf_io_count_watched(struct wf_io *of)
{
    (void)of;
}

/* No call guards a source here. */
void weft_waker_fire(weft_waker *waker)
{
    mc_assert(waker == NULL);
}

void weft_waker_drop(weft_waker *waker)
{
    mc_assert(waker == NULL);
}

bool wf_owned_claim(int fd)
{
    return fd >= 0;
}

void wf_owned_release(int fd)
{
    (void)fd;
}

int model_close(int fd);

int model_close(int fd)
{
    mc_assert(fd == 3 || fd == 4);
    (void)wf_fetch_add_relaxed(&closed, 1);
    return 0;
}

/* --- Reading ---------------------------------------------------------------------------- */

/* As a system call: takes a byte, if there is one. The kernel has locks of its own. */
static bool take_byte(void)
{
    unsigned count = wf_load_acquire(&bytes);
    while (count > 0) {
        if (wf_cas_acq_rel(&bytes, &count, count - 1)) {
            return true;
        }
    }
    return false;
}

static int read_attempt(struct wf_transfer *self)
{
    uint32_t seen = wf_source_look(source);
    if ((seen & WF_SOURCE_READABLE) != 0) {
        mc_assert(wf_load_relaxed(&closed) == 0);
        if (take_byte()) {
            wf_source_moved(source, seen, WF_SOURCE_READABLE, 1, 1);
            return 1;
        }
        wf_source_exhausted(source, seen, WF_SOURCE_READABLE);
    }
    return wf_transfer_wait(self, WF_SOURCE_READABLE);
}

static const struct wf_transfer_ops read_ops = { wf_transfer_enter, wf_transfer_leave,
                                                 read_attempt };

static int read_byte(weft_time deadline)
{
    weft_io self;
    (void)wf_transfer_init(&self, &read_ops, handle);
    int result = weft_await(&self.future, deadline);
    if (result == 1) {
        (void)wf_fetch_add_relaxed(&taken, 1);
    }
    return result;
}

/* --- Threads ---------------------------------------------------------------------------- */

static void begin(void)
{
    io.backend = &backend;
    wf_lock_init(&io.lock, WF_RANK_IO);
    mc_assert(wf_source_open(&io, 3, &source) == 0);
    handle = wf_source_publish(source);
}

/* So that the source is not closed before the caller leaves. */
static void enter(void)
{
    struct wf_source *entered;
    mc_assert(wf_source_enter(handle, &entered) == 0);
    mc_assert(entered == source);
}

/* The event of a descriptor, which is perhaps another's by now. */
static void late_event(void *tag)
{
    wf_source_fire(&io, *(const uint64_t *)tag, WF_EVENT_READ);
}

/* So many bytes come, and one event for all of them. */
static void bytes_come(unsigned count)
{
    (void)wf_fetch_add_acq_rel(&bytes, count);
    wf_source_fire(&io, wf_source_tag(source), WF_EVENT_READ);
}

static void one_comes(void *arg)
{
    (void)arg;
    bytes_come(1);
}

static void two_come(void *arg)
{
    (void)arg;
    bytes_come(2);
}

static void read_one(void *arg)
{
    (void)arg;
    mc_assert(read_byte(WEFT_NEVER) == 1);
}

static void read_two(void *arg)
{
    (void)arg;
    mc_assert(read_byte(WEFT_NEVER) == 1);
    mc_assert(read_byte(WEFT_NEVER) == 1);
}

static void read_in_time(void *arg)
{
    (void)arg;
    int result = read_byte(DEADLINE);
    mc_assert(result == 1 || result == WEFT_ETIMEDOUT);
    mc_note(result == 1 ? 1 : 2);
}

static bool is_never_ready(struct wf_source *of, uint32_t what)
{
    (void)of;
    (void)what;
    return false;
}

static bool is_always_ready(struct wf_source *of, uint32_t what)
{
    (void)of;
    (void)what;
    return true;
}

static int used; /* plain: by who is at the descriptor, and then by who closes it */

static void check_used(struct wf_source *of)
{
    (void)of;
    mc_assert(used == 1);
}

static void read_or_be_closed(void *arg)
{
    (void)arg;
    used++;
    int result = read_byte(WEFT_NEVER);
    mc_assert(result == 1 || result == WEFT_ECLOSED);
    mc_note(result == 1 ? 1 : 2);
}

static void close_it(void *arg)
{
    (void)arg;
    wf_source_close(handle);
}

/* --- Tests ------------------------------------------------------------------------------ */

/*
 * Goal:   bytes that come while somebody looks for them are found.
 * Method: one reader, and one byte; or two, with an event each.
 */
static void a_byte_is_found(void)
{
    begin();
    RIG_RUN(one_comes, read_one);
    mc_assert(wf_load_relaxed(&taken) == 1);
}

static void two_bytes_with_an_event_each(void)
{
    begin();
    RIG_RUN(one_comes, one_comes, read_two);
}

/*
 * Goal:   one event for two bytes is enough for two readers.
 */
static void an_event_is_passed_on(void)
{
    begin();
    RIG_RUN(read_one, read_one, two_come);
}

/*
 * Goal:   a reader that gives up takes nothing along: neither the byte nor the event.
 * Method: another one waits for the byte if the first has not taken it.
 */
static void one_of_two_gives_up(void)
{
    begin();
    mc_go(read_in_time, NULL);
    mc_go(two_come, NULL);
    read_one(NULL);
    mc_join();
}

static void give_up_and_leave_it(void *arg)
{
    (void)arg;
    if (read_byte(DEADLINE) != 1) {
        mc_note(2);
        return;
    }
    mc_note(1);
    bytes_come(1); /* For the other one. */
}

static void a_byte_goes_to_who_is_left(void)
{
    begin();
    RIG_RUN(give_up_and_leave_it, one_comes, read_one);
}

/*
 * Goal:   a close ends who waits, and the descriptor is closed once, when nobody uses it.
 */
static void closed_while_read(void)
{
    begin();
    source->release = check_used;
    enter();
    mc_go(close_it, NULL);
    mc_go(one_comes, NULL);
    read_or_be_closed(NULL);
    wf_source_leave(source);
    mc_join();
    mc_assert(wf_load_relaxed(&closed) == 1);
}

static void use_and_leave(void *arg)
{
    (void)arg;
    mc_assert(source->fd == 3);
    used++;
    wf_source_leave(source);
}

/*
 * Goal:   a descriptor is given up when nobody is at it, and not closed.
 * Method: the other user has left, or not; the caller then uses the descriptor itself.
 */
static void given_up_while_used(void)
{
    begin();
    enter();
    enter();
    mc_go(use_and_leave, NULL);
    int fd = wf_source_give_up(source);
    mc_assert(fd == 3 || fd == -EBUSY);
    if (fd == 3) {
        used++;
    } else {
        wf_source_close(handle);
        wf_source_leave(source);
    }
    mc_note(fd == 3);
    mc_join();
    mc_assert(wf_load_relaxed(&closed) == (fd != 3));
    mc_assert(used == 1 + (fd == 3));
}

/*
 * Goal:   a descriptor is given up or closed, not both.
 */
static void given_up_while_closed(void)
{
    begin();
    enter();
    mc_go(close_it, NULL);
    int fd = wf_source_give_up(source);
    mc_assert(fd == 3 || fd == -EBUSY || fd == WEFT_ECLOSED);
    mc_note(fd == 3 ? 1 : 2);
    if (fd != 3) {
        wf_source_leave(source);
    }
    mc_join();
    mc_assert(wf_load_relaxed(&closed) == (fd != 3));
}

/* --- Stale handles ---------------------------------------------------------------------- */

static bool is_reused; /* plain: looked at when all threads have ended */

/* Closes the source, and opens another one in its place. */
static void close_and_reuse(void *arg)
{
    (void)arg;
    struct wf_source *next;
    wf_source_close(handle);
    int err = wf_source_open(&io, 4, &next);
    mc_assert(err == 0 || err == -ENOMEM); /* A user is there: the place is not free yet. */
    is_reused = err == 0;
    mc_note(is_reused ? 3 : 4);
}

/*
 * Goal:   a handle reaches its own source or none, while that is closed and its place is reused.
 * Method: the descriptor of a source that was entered is its own, and stays open.
 */
static void entered_while_reused(void)
{
    begin();
    mc_go(close_and_reuse, NULL);
    struct wf_source *entered;
    int err = wf_source_enter(handle, &entered);
    mc_assert(err == 0 || err == WEFT_ECLOSED);
    if (err == 0) {
        mc_assert(entered->fd == 3);
        mc_assert(wf_load_relaxed(&closed) == 0);
        wf_source_leave(entered);
    }
    mc_note(err == 0 ? 1 : 2);
    mc_join();
    mc_assert(wf_load_relaxed(&closed) == 1);
}

/*
 * Goal:   a second close of a handle does not close the source that has taken its place.
 */
static void closed_twice_while_reused(void)
{
    begin();
    mc_go(close_and_reuse, NULL);
    wf_source_close(handle);
    mc_join();
    mc_assert(wf_load_relaxed(&closed) == 1);
    mc_assert(!is_reused || (wf_source_look(source) & WF_SOURCE_CLOSED) == 0);
}

/*
 * Goal:   a wait without a try, prepared before the close, does not wait for the source that has
 *         taken its place.
 * Method: nothing ever comes: a wait that is not ended by the close would wait for ever.
 */
static void wait_is_prepared_before_reuse(void)
{
    weft_op op;
    begin();
    source->is_ready = is_never_ready;
    wf_source_ready_init(&op, handle, WF_SOURCE_READABLE);
    mc_go(close_and_reuse, NULL);
    mc_assert(weft_await(&op.future, WEFT_NEVER) == WEFT_ECLOSED);
    mc_join();
    mc_assert((wf_source_look(source) & WF_SOURCE_READERS) == 0);
}

/*
 * Goal:   a wait that follows a close returns WEFT_ECLOSED, also if that close did nothing because
 *         another one is in progress.
 * Method: nothing ever comes, and the deadline passes; or the descriptor is ready from the start.
 */
static void wait_after_a_second_close(bool (*is_ready)(struct wf_source *of, uint32_t what))
{
    weft_op op;
    begin();
    source->is_ready = is_ready;
    wf_source_ready_init(&op, handle, WF_SOURCE_READABLE);
    mc_go(close_it, NULL);
    wf_source_close(handle);
    /* The other close is between C1 and C2, or this one came first. */
    mc_note((wf_source_look(source) & WF_SOURCE_CLOSED) == 0 ? 1 : 2);
    mc_assert(weft_await(&op.future, DEADLINE) == WEFT_ECLOSED);
    mc_join();
    mc_assert(wf_load_relaxed(&closed) == 1);
}

static void timed_wait_after_second_close_returns_eclosed(void)
{
    wait_after_a_second_close(is_never_ready);
}

static void ready_wait_after_second_close_returns_eclosed(void)
{
    wait_after_a_second_close(is_always_ready);
}

/*
 * Goal:   an event of a descriptor that was given up is not taken for one of the next in its place.
 * Method: it comes before, meanwhile, or after.
 */
static void late_event_of_another(void)
{
    begin();
    struct wf_source *first = source;
    uint64_t tag = wf_source_tag(first);
    mc_go(late_event, &tag);
    enter();
    mc_assert(wf_source_give_up(first) == 3);
    mc_assert(wf_source_open(&io, 4, &source) == 0);
    mc_assert(source == first);
    uint32_t word = wf_source_look(source);
    mc_join();
    mc_assert(wf_source_look(source) / WF_SOURCE_NEWS == 0);
    mc_note(wf_latch_is_open(word) ? 1 : 2);
}

/* --- The end of a runtime --------------------------------------------------------------- */

/* Ends the runtime. A user that is still at a source would wait for the lock forever. */
static void end_runtime(void *arg)
{
    (void)arg;
    wf_source_close_all(&io);
    wf_lock(&io.lock);
    mc_assert(wf_load_relaxed(&io.in_use) == 0);
    mc_assert(wf_load_relaxed(&closed) <= 2);
}

/*
 * Goal:   a runtime ends when the last call of another thread has left its sources.
 * Method: the reader waits, or does not yet; its descriptor stays open until it has left.
 */
static void runtime_ends_while_read(void)
{
    begin();
    source->release = check_used;
    enter();
    mc_go(end_runtime, NULL);
    read_or_be_closed(NULL);
    wf_source_leave(source);
    mc_join();
    mc_assert(wf_load_relaxed(&closed) == 1);
}

static bool is_finished; /* plain: written by the opener before it publishes */

static void check_finished(struct wf_source *opened)
{
    (void)opened;
    mc_assert(is_finished);
}

/*
 * Goal:   a source that a call opens while the runtime ends is refused, or closed when its opener
 *         has finished.
 * Method: the opener is a user of another source, as an accept is.
 */
static void runtime_ends_while_opened(void)
{
    struct wf_source *opened;
    blocks_max = 2;
    begin();
    enter();
    mc_go(end_runtime, NULL);
    int err = wf_source_open(&io, 4, &opened);
    mc_assert(err == 0 || err == WEFT_ESHUTDOWN);
    mc_note(err == 0 ? 1 : 2);
    if (err == 0) {
        opened->release = check_finished;
        is_finished = true;
        (void)wf_source_publish(opened);
    }
    wf_source_leave(source);
    mc_join();
    mc_assert(wf_load_relaxed(&closed) == 1u + (err == 0));
}

static const struct mc_test tests[] = {
    { .name = "runtime_ends_while_read",
      .run = runtime_ends_while_read,
      .mode = MC_PCT,
      .runs = 40000,
      .seen = MC_OUTCOMES(2) },
    { .name = "runtime_ends_while_opened",
      .run = runtime_ends_while_opened,
      .mode = MC_PCT,
      .runs = 40000,
      .seen = MC_OUTCOMES(1, 2) },
    { .name = "a_byte_is_found", .run = a_byte_is_found },
    { .name = "two_bytes_with_an_event_each",
      .run = two_bytes_with_an_event_each,
      .mode = MC_PCT,
      .runs = 20000 },
    { .name = "an_event_is_passed_on",
      .run = an_event_is_passed_on,
      .mode = MC_PCT,
      .runs = 20000 },
    { .name = "one_of_two_gives_up",
      .run = one_of_two_gives_up,
      .mode = MC_PCT,
      .runs = 20000,
      .timeouts = 1,
      .seen = MC_OUTCOMES(1, 2) },
    { .name = "a_byte_goes_to_who_is_left",
      .run = a_byte_goes_to_who_is_left,
      .mode = MC_PCT,
      .runs = 40000,
      .timeouts = 1,
      .seen = MC_OUTCOMES(1, 2) },
    { .name = "closed_while_read",
      .run = closed_while_read,
      .mode = MC_PCT,
      .runs = 40000,
      .seen = MC_OUTCOMES(1, 2) },
    { .name = "given_up_while_used",
      .run = given_up_while_used,
      .seen = MC_OUTCOMES(0, 1),
      .seen_only = true },
    { .name = "given_up_while_closed",
      .run = given_up_while_closed,
      .seen = MC_OUTCOMES(1, 2),
      .seen_only = true },
    { .name = "entered_while_reused",
      .run = entered_while_reused,
      .seen = MC_OUTCOMES(1, 2, 3, 4) },
    { .name = "closed_twice_while_reused",
      .run = closed_twice_while_reused,
      .seen = MC_OUTCOMES(3, 4) },
    { .name = "wait_is_prepared_before_reuse",
      .run = wait_is_prepared_before_reuse,
      .seen = MC_OUTCOMES(3) },
    { .name = "timed_wait_after_second_close_returns_eclosed",
      .run = timed_wait_after_second_close_returns_eclosed,
      .timeouts = 1,
      .seen = MC_OUTCOMES(1, 2) },
    { .name = "ready_wait_after_second_close_returns_eclosed",
      .run = ready_wait_after_second_close_returns_eclosed,
      .timeouts = 1,
      .seen = MC_OUTCOMES(1, 2) },
    { .name = "late_event_of_another",
      .run = late_event_of_another,
      .seen = MC_OUTCOMES(1, 2),
      .seen_only = true },
};

MC_MAIN(tests)
