/* SPDX-License-Identifier: MIT */
/*
 * error.c - version, error texts and the location of errno.
 */
#define WEFT_NO_ERRNO
#include <weft/base.h>

#include <string.h>

const char *weft_version(void)
{
    return WEFT_VERSION_STRING;
}

const char *weft_strerror(int error)
{
    switch (error) {
    case 0:
        return "success";
    case WEFT_ECANCELED:
        return "the waiting task was cancelled";
    case WEFT_ETIMEDOUT:
        return "the deadline has passed";
    case WEFT_ESHUTDOWN:
        return "the runtime is shutting down";
    case WEFT_EJOINED:
        return "another caller is already joining this task";
    case WEFT_ECLOSED:
        return "it was closed";
    case WEFT_ENONAME:
        return "there is no such host or service";
    case WEFT_EEND:
        return "the stream has ended before all was read";
    default:
        break;
    }
    /* glibc's table is static text, unlike the buffer of strerror(). */
    const char *text = error < 0 && error > -4096 ? strerrordesc_np(-error) : NULL;
    return text != NULL ? text : "unknown error";
}

/* The assembly keeps the compiler, also at link time, from finding out that the result does not
 * depend on anything and may be cached. */
__attribute__((noinline)) int *weft_errno_location(void)
{
    int *location = &errno;
    __asm__ volatile("" : "+r"(location) : : "memory");
    return location;
}
