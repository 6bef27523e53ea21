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
#include "io/transfer.h"
#include "sync_rig.h"

static struct wf_io io;
static struct wf_source source_memory[1];
static struct wf_source *source;
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

int wf_io_make_chunk(struct wf_io *of, uint32_t chunk)
{
    wf_store_relaxed(&of->chunks[chunk], source_memory);
    return 0;
}

void wf_io_count_watched(struct wf_io *of)
{
    (void)of;
}

int model_close(int fd);

int model_close(int fd)
{
    mc_assert(fd == 3);
    (void)wf_fetch_add_relaxed(&closed, 1);
    return 0;
}

/* --- Reading ---------------------------------------------------------------------------- */

static int read_enter(struct wf_transfer *self)
{
    return wf_source_enter(self->object, "read");
}

static void read_leave(struct wf_transfer *self)
{
    wf_source_leave(self->object);
}

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
    wf_source_wait_init(&self->wait, source, WF_SOURCE_READABLE, true);
    self->waits_for = &self->wait.future;
    return WEFT_PENDING;
}

static const struct wf_transfer_ops read_ops = { read_enter, read_leave, read_attempt };

static int read_byte(weft_time deadline)
{
    weft_io self;
    (void)wf_transfer_init(&self, &read_ops, source);
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
    wf_source_close(source, "close");
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
    mc_assert(wf_source_enter(source, "test") == 0); /* So that nobody comes too late. */
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
 * Method: who was at it has left, or not; the caller then uses the descriptor itself.
 */
static void given_up_while_used(void)
{
    begin();
    mc_assert(wf_source_enter(source, "test") == 0);
    mc_go(use_and_leave, NULL);
    int fd = wf_source_give_up(source);
    mc_assert(fd == 3 || fd == -EBUSY);
    if (fd == 3) {
        used++;
    } else {
        wf_source_close(source, "close");
    }
    mc_note(fd == 3);
    mc_join();
    mc_assert(wf_load_relaxed(&closed) == (fd != 3));
    mc_assert(used == 1 + (fd == 3));
}

/*
 * Goal:   who gives it up while it is closed gets an error, and it is closed once.
 */
static void given_up_while_closed(void)
{
    begin();
    mc_assert(wf_source_enter(source, "test") == 0);
    mc_go(close_it, NULL);
    int err = wf_source_give_up(source);
    mc_assert(err == -EBUSY || err == WEFT_ECLOSED);
    mc_note(err == -EBUSY ? 1 : 2);
    wf_source_leave(source);
    mc_join();
    mc_assert(wf_load_relaxed(&closed) == 1);
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
    mc_assert(wf_source_give_up(first) == 3);
    mc_assert(wf_source_open(&io, 4, &source) == 0);
    mc_assert(source == first);
    uint32_t word = wf_source_look(source);
    mc_join();
    mc_assert(wf_source_look(source) / WF_SOURCE_NEWS == 0);
    mc_note(wf_latch_is_open(word) ? 1 : 2);
}

static const struct mc_test tests[] = {
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
    { .name = "late_event_of_another",
      .run = late_event_of_another,
      .seen = MC_OUTCOMES(1, 2),
      .seen_only = true },
};

MC_MAIN(tests)
