/* SPDX-License-Identifier: MIT */
/*
 * weft/base.h - what every other header needs: version, errors, allocator.
 */
#ifndef WEFT_BASE_H
#define WEFT_BASE_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define WEFT_EXTERN_C_BEGIN extern "C" {
#define WEFT_EXTERN_C_END   }
#else
#define WEFT_EXTERN_C_BEGIN
#define WEFT_EXTERN_C_END
#endif

#if defined(__GNUC__)
#define WEFT_API         __attribute__((visibility("default")))
#define WEFT_NODISCARD   __attribute__((warn_unused_result))
#define WEFT_FALLTHROUGH __attribute__((fallthrough))
#define WEFT_NORETURN    __attribute__((noreturn))
#else
#define WEFT_API
#define WEFT_NODISCARD
#define WEFT_FALLTHROUGH ((void)0)
#define WEFT_NORETURN
#endif

#ifdef __cplusplus
#define WEFT_STATIC_ASSERT(condition, text) static_assert(condition, text)
/* Marks functions in headers that call functions of the user; see weft/fiber.h. */
#define WEFT_NOEXCEPT noexcept
#else
#define WEFT_NOEXCEPT
#define WEFT_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#endif

#define WEFT_VERSION_MAJOR  0
#define WEFT_VERSION_MINOR  1
#define WEFT_VERSION_PATCH  0
#define WEFT_VERSION_STRING "0.1.0"
/* 0xMMmmpp, to compare with: #if WEFT_VERSION >= 0x000100 */
#define WEFT_VERSION ((WEFT_VERSION_MAJOR << 16) | (WEFT_VERSION_MINOR << 8) | WEFT_VERSION_PATCH)

/*
 * Errors. A call that can fail returns a negative number: -errno for what the
 * system reports (-ENOMEM, -EINVAL, -EAGAIN), or one of these, which no errno
 * equals. errno itself is never set.
 */
#define WEFT_ECANCELED (-4096) /* the waiting task was cancelled */
#define WEFT_ETIMEDOUT (-4097) /* the deadline of the call has passed */
#define WEFT_ESHUTDOWN (-4098) /* the runtime is shutting down */
#define WEFT_EJOINED   (-4099) /* somebody else is already joining this task */
#define WEFT_ECLOSED   (-4100) /* the object was closed */
#define WEFT_EEND      (-4101) /* the stream has ended before all was read */
#define WEFT_ENONAME   (-4102) /* there is no such host or service */

/*
 * errno, where a fiber may go on on another thread after each wait. A compiler keeps
 * the address of a thread's errno for the whole of a function; so here it is looked
 * up each time. Each fiber has its own value across its waits.
 *
 * Define WEFT_NO_ERRNO before the first weft header to keep the C library's own: then
 * a fiber must not read errno after a wait in the same function.
 */
#if !defined(WEFT_NO_ERRNO)
#undef errno
#define errno (*weft_errno_location())
#endif

/*
 * What a poll answers besides a result: "not yet". The poller has arranged to
 * be woken. Equal to no result: results are 0, a count, or an error above.
 */
#define WEFT_PENDING INT_MIN

/* What a body answers to let others run first; WEFT_YIELD() returns it. */
#define WEFT_YIELDED (INT_MIN + 1)

WEFT_EXTERN_C_BEGIN

/*
 * Returns the version of the library that is linked, for example "0.1.0". It
 * differs from WEFT_VERSION_STRING if the header is another release's.
 *
 * Context: any thread.
 */
WEFT_API const char *weft_version(void);

/*
 * Returns where this thread's errno is, now; for the macro errno.
 *
 * Context: any thread.
 */
WEFT_API int *weft_errno_location(void);

/*
 * Returns a sentence for an error code, ours or a negative errno. The string is
 * static; an unknown code gives "unknown error".
 *
 * Context: any thread.
 */
WEFT_API const char *weft_strerror(int error);

/*
 * Where a runtime takes its memory from. Both functions are called from many
 * threads at once. alloc returns NULL when there is no memory; align is a power
 * of two. free gets the size and alignment of the allocation back. It is called
 * until the last handle and waker of the runtime's tasks is gone, which may be
 * after weft_runtime_destroy().
 */
typedef struct weft_allocator {
    void *(*alloc)(void *ctx, size_t size, size_t align);
    void (*free)(void *ctx, void *ptr, size_t size, size_t align);
    void *ctx;
} weft_allocator;

WEFT_EXTERN_C_END

#endif
