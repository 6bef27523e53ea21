/* SPDX-License-Identifier: MIT */
/*
 * sanitizer.h - telling AddressSanitizer and ThreadSanitizer of each switch.
 *
 * Both follow the stack of a thread. AddressSanitizer must know the bounds of the
 * stack that runs, and keeps a second, fake stack for each; ThreadSanitizer sees
 * a context as a thread of its own, with its own clock. In other builds all of
 * this is nothing.
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

/* For functions that switch: ThreadSanitizer follows calls and returns on a stack
 * of its own, which changes in the middle of them. */
#if defined(WF_MODEL)
#define WF_NO_TSAN
#elif defined(__clang__)
#define WF_NO_TSAN __attribute__((no_sanitize("thread"), noinline))
#else
/* noipa: gcc would keep static variables across a switch that it sees no call in. */
#define WF_NO_TSAN __attribute__((no_sanitize("thread"), noipa))
#endif

/* The same for functions that leave a context for good: they may be inlined, where
 * nobody looks. */
#if defined(WF_MODEL)
#define WF_NO_TSAN_INLINE
#else
#define WF_NO_TSAN_INLINE __attribute__((no_sanitize("thread")))
#endif

/* May a context that has ended begin anew as another one? Not where it has a name
 * for somebody else. */
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

/* A context that will begin on this stack. */
static inline void wf_sanitizer_init(struct wf_sanitizer_context *self, char *low, size_t size)
{
    *self = (struct wf_sanitizer_context){ .low = low, .size = size };
}

/* The context of this thread's own stack. */
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

/* Just before the jump. from is NULL if nobody will come back. */
static inline __attribute__((always_inline)) void
wf_sanitizer_leave(struct wf_sanitizer_context *from, const struct wf_sanitizer_context *to)
{
    __sanitizer_start_switch_fiber(from != NULL ? &from->fake_stack : NULL, to->low, to->size);
}

/* Just after it; also the first thing that a new context does. */
static inline void wf_sanitizer_arrive(struct wf_sanitizer_context *self)
{
    __sanitizer_finish_switch_fiber(self->fake_stack, NULL, NULL);
}

/* The first thing that a new context does, if the one before it may be on any stack: notes
 * the bounds of that stack. */
static inline void wf_sanitizer_arrive_from(struct wf_sanitizer_context *self,
                                            struct wf_sanitizer_context *from)
{
    __sanitizer_finish_switch_fiber(self->fake_stack, &from->low, &from->size);
}

/* The context has ended, and this is another one. */
static inline void wf_sanitizer_fini(struct wf_sanitizer_context *self)
{
    /* It ended without returning from its frames, and its stack may be unmapped. */
    __asan_unpoison_memory_region(self->low, self->size);
}

/* On the stack of a thread whose frames were left by a jump from another stack: nothing below
 * here is a frame any more. */
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
