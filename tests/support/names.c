/* SPDX-License-Identifier: MIT */
/*
 * names.c - fake host names.
 *
 * The C library creates each address from its numeric form, so that freeaddrinfo() frees them
 * all.
 */
#include "names.h"

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "test.h"

enum {
    NUMBERS_MAX = 100,
};

typedef int (*lookup_fn)(const char *host, const char *port, const struct addrinfo *hints,
                         struct addrinfo **list);

_Atomic(uint64_t) names_begun;
_Atomic(uint64_t) names_ended;
static _Atomic(uint64_t) is_free = 1;
static const char *known[NUMBERS_MAX + 1];
static int failure;
static int failure_errno;

void names_set(const char *const *numbers)
{
    unsigned count = 0;
    while (numbers[count] != NULL) {
        CHECK_LT(count, NUMBERS_MAX);
        known[count] = numbers[count];
        count++;
    }
    known[count] = NULL;
    failure = 0;
}

void names_fail(int code, int error)
{
    failure = code;
    failure_errno = error;
}

void names_hold(void)
{
    atomic_store(&is_free, 0);
}

void names_release(void)
{
    atomic_store(&is_free, 1);
}

static bool is_made_up(const char *host)
{
    size_t length = host != NULL ? strlen(host) : 0;
    return length >= 5 && strcmp(host + length - 5, ".test") == 0;
}

static int look_up(lookup_fn libc, const char *port, const struct addrinfo *hints,
                   struct addrinfo **list)
{
    *list = NULL;
    for (unsigned i = 0; failure == 0 && known[i] != NULL; i++) {
        int err = libc(known[i], port, hints, list);
        CHECK_EQ(err, 0);
        CHECK((*list)->ai_next == NULL);
        list = &(*list)->ai_next;
    }
    return failure;
}

/* Replaces the C library's function. */
int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                struct addrinfo **list)
{
    lookup_fn libc;
    *(void **)(void *)&libc = dlsym(RTLD_NEXT, "getaddrinfo");
    if (!is_made_up(host)) {
        return libc(host, port, hints, list);
    }
    atomic_fetch_add(&names_begun, 1);
    test_wait_for(&is_free, 1);
    int code = look_up(libc, port, hints, list);
    atomic_fetch_add(&names_ended, 1);
    if (code != 0) {
        errno = failure_errno;
    }
    return code;
}
