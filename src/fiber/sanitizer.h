/* SPDX-License-Identifier: MIT */
/*
 * sanitizer.h - context-switch annotations for AddressSanitizer and ThreadSanitizer.
 *
 * Both track the stack of a thread. AddressSanitizer must know the bounds of the current stack
 * and keeps a fake stack for each context. ThreadSanitizer treats a context as a thread of its
 * own, with its own clock. In other builds these functions are empty.
 */
#ifndef WF_FIBER_SANITIZER_H
#define WF_FIBER_SANITIZER_H

#include <stddef.h>

#include "base/atomic.h"

#if defined(__SANITIZE_ADDRESS__)
#define WF_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WF_ASAN 1
#endif
#endif

/* For functions that switch: ThreadSanitizer tracks calls and returns on a shadow stack, which
 * changes in the middle of such a function. */
#if defined(WF_MODEL)
#define WF_NO_TSAN
#elif defined(__clang__)
#define WF_NO_TSAN __attribute__((no_sanitize("thread"), noinline))
#else
/* noipa: gcc would cache static variables across a switch, since it sees no call in it. */
#define WF_NO_TSAN __attribute__((no_sanitize("thread"), noipa))
#endif

/* Same as WF_NO_TSAN, for functions that leave a context for good: they may be inlined, since no
 * caller observes what follows. */
#if defined(WF_MODEL)
#define WF_NO_TSAN_INLINE
#else
#define WF_NO_TSAN_INLINE __attribute__((no_sanitize("thread")))
#endif

/* Whether an ended context may be reused for another fiber. Not under ThreadSanitizer, which
 * would take both for one thread. */
#if defined(WF_TSAN) && !defined(WF_MODEL)
#define WF_FIBER_REUSES_CONTEXT 0
#else
#define WF_FIBER_REUSES_CONTEXT 1
#endif

#if defined(WF_ASAN)

#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>

struct wf_sanitizer_context {
    void *fake_stack;
    const void *low;
    size_t size;
};

/* Initializes a context that will start on this stack. */
static inline void wf_sanitizer_init(struct wf_sanitizer_context *self, char *low, size_t size)
{
    *self = (struct wf_sanitizer_context){ .low = low, .size = size };
}

/* Initializes the context of this thread's own stack. */
static inline void wf_sanitizer_init_thread(struct wf_sanitizer_context *self)
{
    pthread_attr_t attributes;
    void *low = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        (void)pthread_attr_getstack(&attributes, &low, &size);
        (void)pthread_attr_destroy(&attributes);
    }
    *self = (struct wf_sanitizer_context){ .low = low, .size = size };
}

/* Called just before the jump. from is NULL if its context is never resumed. */
static inline __attribute__((always_inline)) void
wf_sanitizer_leave(struct wf_sanitizer_context *from, const struct wf_sanitizer_context *to)
{
    __sanitizer_start_switch_fiber(from != NULL ? &from->fake_stack : NULL, to->low, to->size);
}

/* Called just after the jump; also first in a new context. */
static inline void wf_sanitizer_arrive(struct wf_sanitizer_context *self)
{
    __sanitizer_finish_switch_fiber(self->fake_stack, NULL, NULL);
}

/* Called first in a new context whose predecessor may run on any stack: records the bounds of
 * that stack. */
static inline void wf_sanitizer_arrive_from(struct wf_sanitizer_context *self,
                                            struct wf_sanitizer_context *from)
{
    __sanitizer_finish_switch_fiber(self->fake_stack, &from->low, &from->size);
}

/* Called in another context after this one has ended. */
static inline void wf_sanitizer_fini(struct wf_sanitizer_context *self)
{
    /* It ended without returning from its frames, and its stack may be unmapped. */
    __asan_unpoison_memory_region(self->low, self->size);
}

/* For the stack of a thread whose frames were left by a jump from another stack: no frame is
 * left below this one. */
static inline __attribute__((always_inline)) void wf_sanitizer_forget_frames(void)
{
    __asan_unpoison_memory_region((char *)__builtin_frame_address(0) - 64 * 1024, 64 * 1024);
}

#elif defined(WF_TSAN) && !defined(WF_MODEL)

#include <sanitizer/tsan_interface.h>

struct wf_sanitizer_context {
    void *fiber;
};

static inline void wf_sanitizer_init(struct wf_sanitizer_context *self, char *low, size_t size)
{
    (void)low;
    (void)size;
    self->fiber = __tsan_create_fiber(0);
}

static inline void wf_sanitizer_init_thread(struct wf_sanitizer_context *self)
{
    self->fiber = __tsan_get_current_fiber();
}

static inline __attribute__((always_inline)) void
wf_sanitizer_leave(struct wf_sanitizer_context *from, const struct wf_sanitizer_context *to)
{
    (void)from;
    __tsan_switch_to_fiber(to->fiber, 0);
}

static inline void wf_sanitizer_arrive(struct wf_sanitizer_context *self)
{
    (void)self;
}

static inline void wf_sanitizer_arrive_from(struct wf_sanitizer_context *self,
                                            struct wf_sanitizer_context *from)
{
    (void)self;
    (void)from;
}

static inline void wf_sanitizer_fini(struct wf_sanitizer_context *self)
{
    __tsan_destroy_fiber(self->fiber);
}

static inline void wf_sanitizer_forget_frames(void)
{
}

#else

struct wf_sanitizer_context {
    char nothing[1];
};

static inline void wf_sanitizer_init(struct wf_sanitizer_context *self, char *low, size_t size)
{
    (void)self;
    (void)low;
    (void)size;
}

static inline void wf_sanitizer_init_thread(struct wf_sanitizer_context *self)
{
    (void)self;
}

static inline __attribute__((always_inline)) void
wf_sanitizer_leave(struct wf_sanitizer_context *from, const struct wf_sanitizer_context *to)
{
    (void)from;
    (void)to;
}

static inline void wf_sanitizer_arrive(struct wf_sanitizer_context *self)
{
    (void)self;
}

static inline void wf_sanitizer_arrive_from(struct wf_sanitizer_context *self,
                                            struct wf_sanitizer_context *from)
{
    (void)self;
    (void)from;
}

static inline void wf_sanitizer_fini(struct wf_sanitizer_context *self)
{
    (void)self;
}

static inline void wf_sanitizer_forget_frames(void)
{
}

#endif

#endif
