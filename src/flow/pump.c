/* SPDX-License-Identifier: MIT */
/*
 * pump.c - stages with fibers of their own: generators, buffers and merges.
 *
 * One or two fibers send items to a channel, from which the stage receives them. The fibers are
 * the children of a scope that ends when the stage is dropped. The receiver is dropped before
 * that, so no fiber waits to send an item that is never received. The channel is closed when the
 * last fiber has ended or one has failed. The first error is then the result at the end of the
 * sequence.
 */
#include "base/assert.h"
#include "base/atomic.h"
#include "flow/scope.h"
#include "flow/sequence.h"
#include "sched/await.h"

struct pump;

/* The state of one fiber. */
struct weft_generator {
    struct pump *pump;
    int (*function)(weft_generator *to, void *arg);
    void *arg;
    weft_sender *sender;
};

struct pump {
    weft_sequence sequence;
    weft_scope scope;
    bool is_open; /* the scope has begun */
    weft_receiver *receiver;
    weft_generator generators[2];
    _Atomic(int) error; /* of the first fiber that fails; set before its sender is dropped */
};

int weft_give(weft_generator *to, const void *item)
{
    wf_await_must_suspend("weft_give", "give items on the fiber of the generator");
    return weft_send(to->sender, item, WEFT_NEVER);
}

static int run_generator(void *arg)
{
    weft_generator *self = arg;
    int result = self->function(self, self->arg);
    if (result < 0) {
        int none = 0;
        /* relaxed: published by closing the channel. */
        (void)wf_cas_relaxed(&self->pump->error, &none, result);
        weft_sender_close(self->sender);
    }
    weft_sender_drop(self->sender);
    return 0;
}

static int pump_next(weft_sequence *sequence, void *item, weft_time deadline)
{
    struct pump *self = (struct pump *)sequence;
    int err = weft_recv(self->receiver, item, deadline);
    if (err == WEFT_ECLOSED) {
        /* relaxed: ordered by the close of the channel. */
        return wf_load_relaxed(&self->error);
    }
    return err == 0 ? 1 : err;
}

static void pump_drop(weft_sequence *sequence)
{
    struct pump *self = (struct pump *)sequence;
    weft_receiver_drop(self->receiver);
    if (self->is_open) {
        weft_scope_cancel(&self->scope);
        (void)wf_scope_end(&self->scope, "weft_sequence_drop");
    }
}

static const struct wf_sequence_ops pump_ops = { .bytes = sizeof(struct pump),
                                                 .next = pump_next,
                                                 .drop = pump_drop };

static int start_fiber(struct pump *pump, weft_generator *generator, const char *call)
{
    weft_fiber_spec spec = { .function = run_generator, .arg = generator };
    return wf_scope_go(&pump->scope, &spec, NULL, call);
}

/* Starts the fibers of a stage whose functions and arguments are set. */
static int start(struct pump *pump, unsigned count, size_t capacity, const char *call)
{
    weft_sender *sender;
    int err = weft_channel_make(&sender, &pump->receiver, pump->sequence.size, capacity);
    if (err != 0) {
        return err;
    }
    weft_scope_begin(&pump->scope, NULL);
    pump->is_open = true;
    for (unsigned i = 0; i < count && err == 0; i++) {
        pump->generators[i].pump = pump;
        weft_sender *own = weft_sender_clone(sender);
        pump->generators[i].sender = own;
        err = own != NULL ? start_fiber(pump, &pump->generators[i], call) : -ENOMEM;
        if (err != 0) {
            weft_sender_drop(own);
        }
    }
    weft_sender_drop(sender);
    return err;
}

static weft_sequence *start_or_drop(struct pump *pump, unsigned count, size_t capacity,
                                    const char *call)
{
    if (start(pump, count, capacity, call) != 0) {
        weft_sequence_drop(&pump->sequence);
        return NULL;
    }
    return &pump->sequence;
}

weft_sequence *weft_generate(size_t size, int (*function)(weft_generator *to, void *arg), void *arg)
{
    struct pump *self = (struct pump *)wf_sequence_make(&pump_ops, size, 0, NULL, NULL);
    if (self == NULL) {
        return NULL;
    }
    self->generators[0].function = function;
    self->generators[0].arg = arg;
    return start_or_drop(self, 1, 0, "weft_generate");
}

static int give_item(void *item, void *arg)
{
    return weft_give(arg, item);
}

/* Sends all items of an inner sequence, which the stage still owns. */
static int give_all(weft_generator *to, void *arg)
{
    return wf_sequence_run(arg, give_item, to, "weft_sequence_next");
}

weft_sequence *weft_sequence_buffered(weft_sequence *sequence, size_t count)
{
    size_t size = sequence != NULL ? sequence->size : 0;
    struct pump *self = (struct pump *)wf_sequence_make(&pump_ops, size, 1, sequence, NULL);
    if (self == NULL) {
        return NULL;
    }
    self->generators[0].function = give_all;
    self->generators[0].arg = sequence;
    return start_or_drop(self, 1, count, "weft_sequence_buffered");
}

weft_sequence *weft_sequence_merge(weft_sequence *one, weft_sequence *two)
{
    size_t size = one != NULL ? one->size : 0;
    if (one != NULL && two != NULL && one->size != two->size) {
        wf_fatal("weft_sequence_merge: items of %zu and of %zu bytes", one->size, two->size);
    }
    struct pump *self = (struct pump *)wf_sequence_make(&pump_ops, size, 2, one, two);
    if (self == NULL) {
        return NULL;
    }
    for (unsigned i = 0; i < 2; i++) {
        self->generators[i].function = give_all;
        self->generators[i].arg = self->sequence.inner[i];
    }
    return start_or_drop(self, 2, 0, "weft_sequence_merge");
}
