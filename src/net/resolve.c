/* SPDX-License-Identifier: MIT */
/*
 * resolve.c - name resolution with getaddrinfo().
 *
 * getaddrinfo() blocks, so it runs on a thread of the blocking pool. A caller whose deadline passes
 * returns without the result. The request belongs to the caller and the blocking job, and the last
 * of them frees it.
 *
 * Edges.
 * [RE1] each owner releases its share, the last one acquires it: all other accesses are done.
 *
 * Checked by tests/model/resolve_model.c.
 */
#include <weft/net.h>

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include <weft/task.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "net/place.h"
#include "net/resolve.h"
#include "sched/await.h"
#include "sched/blocking.h"
#include "sched/sched.h"
#include "sched/task.h"
#include "sched/thread.h"

enum {
    HOST_MAX = 256, /* bytes of a name, with the final zero */
    PORT_MAX = 32,
    ADDRESSES_MAX = 64,
};

struct request {
    _Atomic(uint32_t) shares; /* of the caller and the blocking job */
    char host[HOST_MAX];
    char port[PORT_MAX];
    int type; /* SOCK_STREAM, SOCK_DGRAM or 0 */
    bool is_passive;
    int count; /* number of addresses, or an error */
    weft_address addresses[ADDRESSES_MAX];
};

static void give_up(struct request *request)
{
    /* release [RE1]: the last owner sees all accesses of this one. */
    if (wf_fetch_sub_release(&request->shares, 1) == 1) {
        /* acquire [RE1]: no other owner uses it any more. */
        (void)wf_load_acquire(&request->shares);
        wf_free(&wf_alloc_default, request, sizeof *request, _Alignof(struct request));
    }
}

static void drop_request(void *arg)
{
    give_up(arg);
}

/* The C library also reports that a name does not exist if it could not open the files that it
 * needs. Then errno is the reason, and another attempt may succeed. */
static bool is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

static int error_of(int code, int error)
{
    if (is_shortage(error)) {
        return -error;
    }
    switch (code) {
    case EAI_NONAME:
    case EAI_NODATA:
    case EAI_SERVICE:
    case EAI_ADDRFAMILY:
        return WEFT_ENONAME;
    case EAI_MEMORY:
        return -ENOMEM;
    case EAI_SYSTEM:
        return error != 0 ? -error : -EIO;
    case EAI_AGAIN:
        return -EAGAIN;
    default:
        return WEFT_ENONAME;
    }
}

static int look_up(struct request *request)
{
    struct addrinfo hints = { .ai_family = AF_UNSPEC,
                              .ai_socktype = request->type,
                              .ai_flags = request->is_passive ? AI_PASSIVE : AI_ADDRCONFIG };
    struct addrinfo *list = NULL;
    errno = 0;
    int code =
        getaddrinfo(request->host[0] != '\0' ? request->host : NULL, request->port, &hints, &list);
    if (code != 0) {
        return error_of(code, errno);
    }
    int count = 0;
    for (const struct addrinfo *at = list; at != NULL && count < ADDRESSES_MAX; at = at->ai_next) {
        weft_address *address = &request->addresses[count];
        if (at->ai_addrlen <= sizeof address->to) {
            memset(address, 0, sizeof *address);
            memcpy(&address->to, at->ai_addr, at->ai_addrlen);
            address->size = at->ai_addrlen;
            count++;
        }
    }
    freeaddrinfo(list);
    return count > 0 ? count : WEFT_ENONAME;
}

static int run_request(void *arg)
{
    struct request *request = arg;
    int count = look_up(request);
    request->count = count;
    give_up(request);
    return count < 0 ? count : 0;
}

/* Returns whether the port is invalid. The C library accepts many strings as numbers. A port
 * here is digits, or the name of a service, which begins with a letter or a digit and is not
 * all digits. */
static bool is_bad_port(const char *port)
{
    size_t digits = strspn(port, "0123456789");
    if (port[digits] == '\0') {
        return digits > 5 || strtoul(port, NULL, 10) > UINT16_MAX;
    }
    return digits == 0 && !((port[0] | 0x20) >= 'a' && (port[0] | 0x20) <= 'z');
}

static int fill(struct request *request, const char *place, bool is_passive)
{
    const char *port;
    bool is_v6;
    enum wf_place kind = wf_place_kind(&place);
    int err = wf_place_split(place, request->host, sizeof request->host, &port, &is_v6);
    size_t length = err == 0 ? strlen(port) : 0;
    if (length == 0 || length >= sizeof request->port || is_bad_port(port)) {
        return -EINVAL;
    }
    memcpy(request->port, port, length + 1);
    request->type = kind == WF_PLACE_UDP ? SOCK_DGRAM : SOCK_STREAM;
    request->is_passive = is_passive;
    return 0;
}

/* Runs the request on a pool thread and waits for it. The caller keeps its share. */
static int run_elsewhere(struct request *request, weft_time deadline, const char *call)
{
    struct wf_task *job;
    struct wf_pool_spec spec = { .function = run_request, .dropped = drop_request, .arg = request };
    /* relaxed: no other thread knows it yet. */
    wf_store_relaxed(&request->shares, 2u);
    int err = wf_pool_spawn(wf_thread_must_sched(call), &job, &spec);
    if (err != 0) {
        /* relaxed: nobody else knows it. */
        wf_store_relaxed(&request->shares, 1u);
        return err;
    }
    int result = 0;
    err = weft_join((weft_task *)job, &result, deadline);
    if (err != 0) {
        weft_cancel((weft_task *)job);
        weft_detach((weft_task *)job);
        return err;
    }
    return result;
}

int wf_resolve(weft_address *addresses, size_t most, const char *place, bool is_passive,
               weft_time deadline, const char *call)
{
    if (most == 0) {
        return -EINVAL;
    }
    int err = weft_address_parse(&addresses[0], place);
    if (err == 0) {
        return 1;
    }
    const char *rest = place;
    enum wf_place kind = wf_place_kind(&rest);
    if (kind == WF_PLACE_UNIX || kind == WF_PLACE_UNIXGRAM) {
        return err;
    }
    wf_await_must_suspend(call, "resolve names in a fiber");
    struct request *request =
        wf_alloc_zeroed(&wf_alloc_default, sizeof *request, _Alignof(struct request));
    if (request == NULL) {
        return -ENOMEM;
    }
    /* relaxed: no other thread knows it yet. */
    wf_store_relaxed(&request->shares, 1u);
    err = fill(request, place, is_passive);
    if (err == 0) {
        err = run_elsewhere(request, deadline, call);
    }
    int count = err;
    if (err == 0) {
        count = (size_t)request->count < most ? request->count : (int)most;
        memcpy(addresses, request->addresses, (size_t)count * sizeof *addresses);
    }
    give_up(request);
    return count;
}

int weft_resolve(weft_address *addresses, size_t most, const char *place, weft_time deadline)
{
    int err = wf_await_begin(&deadline, "weft_resolve", "resolve names in a fiber");
    if (err != 0) {
        return err;
    }
    return wf_resolve(addresses, most, place, false, deadline, "weft_resolve");
}
