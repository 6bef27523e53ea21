/* SPDX-License-Identifier: MIT */
/*
 * weft/base.h - version, error codes, errno, and the allocator interface.
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
/* 0xMMmmpp, for comparisons such as #if WEFT_VERSION >= 0x000100 */
#define WEFT_VERSION ((WEFT_VERSION_MAJOR << 16) | (WEFT_VERSION_MINOR << 8) | WEFT_VERSION_PATCH)

/*
 * Error codes. A call that can fail returns a negative number: -errno for an error of the
 * system (-ENOMEM, -EINVAL, -EAGAIN), or one of the codes below, which differ from every errno.
 * No error is reported through errno. Its value after a call is unspecified, also if the call
 * has succeeded, as with functions of the C library.
 */
#define WEFT_ECANCELED (-4096) /* the waiting task was canceled */
#define WEFT_ETIMEDOUT (-4097) /* the deadline of the call has passed */
#define WEFT_ESHUTDOWN (-4098) /* the runtime is shutting down */
#define WEFT_EJOINED   (-4099) /* another caller is already joining this task */
#define WEFT_ECLOSED   (-4100) /* the object was closed */
#define WEFT_EEND      (-4101) /* the stream ended before all bytes were read */
#define WEFT_ENONAME   (-4102) /* no such host or service */

/*
 * A fiber may resume on another thread after each wait, but a compiler may keep the address of
 * the thread's errno for a whole function. So errno is redefined here to look up the address on
 * each use. Each fiber keeps its own value across its waits.
 *
 * Define WEFT_NO_ERRNO before the first weft header to keep the errno of the C library. A fiber
 * must then not read errno after a wait in the same function.
 */
#if !defined(WEFT_NO_ERRNO)
#undef errno
#define errno (*weft_errno_location())
#endif

/*
 * Returned by a poll that has no result yet. The poller has arranged to be woken. Never equal
 * to a result: results are 0, a count, or an error above.
 */
#define WEFT_PENDING INT_MIN

/* Returned by a stackless task to let other tasks run first; WEFT_YIELD() returns it. */
#define WEFT_YIELDED (INT_MIN + 1)

WEFT_EXTERN_C_BEGIN

/*
 * Returns the version of the linked library, for example "0.1.0". It differs from
 * WEFT_VERSION_STRING if the header belongs to another release.
 *
 * Context: any thread.
 */
WEFT_API const char *weft_version(void);

/*
 * Returns the current address of this thread's errno. Used by the errno macro.
 *
 * Context: any thread.
 */
WEFT_API int *weft_errno_location(void);

/*
 * Returns a description of an error code, weft's own or a negative errno. The string is static.
 * An unknown code yields "unknown error".
 *
 * Context: any thread.
 */
WEFT_API const char *weft_strerror(int error);

/*
 * A memory allocator for a runtime. Many threads call both functions concurrently. alloc
 * returns NULL if it is out of memory; align is a power of two. free receives the size and
 * alignment of the allocation. It may be called until the last handle and waker of the
 * runtime's tasks is gone, which may be after weft_runtime_destroy().
 */
typedef struct weft_allocator {
    void *(*alloc)(void *ctx, size_t size, size_t align);
    void (*free)(void *ctx, void *ptr, size_t size, size_t align);
    void *ctx;
} weft_allocator;

WEFT_EXTERN_C_END

#endif
