/* SPDX-License-Identifier: MIT */
/*
 * address.c - parsing and printing of socket addresses.
 */
#include <weft/net.h>

#include <arpa/inet.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "net/place.h"

/* --- Parsing ---------------------------------------------------------------------------- */

static bool skip(const char **text, const char *prefix)
{
    size_t length = strlen(prefix);
    if (strncmp(*text, prefix, length) != 0) {
        return false;
    }
    *text += length;
    return true;
}

/* Parses a whole string as a decimal number up to max. */
static bool parse_number(const char *text, uint32_t max, uint32_t *value)
{
    uint64_t number = 0;
    if (text[0] == '\0') {
        return false;
    }
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9') {
            return false;
        }
        number = number * 10 + (uint64_t)(*text - '0');
        if (number > max) {
            return false;
        }
    }
    *value = (uint32_t)number;
    return true;
}

static int parse_local(weft_address *address, const char *path)
{
    struct sockaddr_un *local = &address->to.local;
    size_t length = strlen(path);
    bool is_abstract = path[0] == '@';
    if (length == 0 || (is_abstract && length == 1)) {
        return -EINVAL;
    }
    /* The zero that ends a path must fit, too. */
    if (length + !is_abstract > sizeof local->sun_path) {
        return -ENAMETOOLONG;
    }
    local->sun_family = AF_UNIX;
    memcpy(local->sun_path, path, length);
    address->size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    if (is_abstract) {
        local->sun_path[0] = '\0';
    } else {
        address->size++;
    }
    return 0;
}

/* Parses the number or the name of an interface. */
static bool parse_scope(const char *text, uint32_t *scope)
{
    if (!parse_number(text, UINT32_MAX, scope)) {
        *scope = if_nametoindex(text);
    }
    return *scope != 0;
}

/* Parses a whole string such as "::1%2". */
static int parse_v6(weft_address *address, char *host)
{
    struct sockaddr_in6 *v6 = &address->to.v6;
    char *scope = strchr(host, '%');
    if (scope != NULL) {
        *scope = '\0';
        if (!parse_scope(scope + 1, &v6->sin6_scope_id)) {
            return -EINVAL;
        }
    }
    v6->sin6_family = AF_INET6;
    address->size = sizeof *v6;
    return inet_pton(AF_INET6, host, &v6->sin6_addr) == 1 ? 0 : -EINVAL;
}

static int parse_v4(weft_address *address, const char *host)
{
    struct sockaddr_in *v4 = &address->to.v4;
    v4->sin_family = AF_INET;
    address->size = sizeof *v4;
    if (host[0] == '\0') {
        v4->sin_addr.s_addr = htonl(INADDR_ANY);
        return 0;
    }
    return inet_pton(AF_INET, host, &v4->sin_addr) == 1 ? 0 : -EINVAL;
}

int wf_place_split(const char *place, char *host, size_t size, const char **port, bool *is_v6)
{
    const char *colon = strrchr(place, ':');
    *is_v6 = place[0] == '[';
    if (colon == NULL || (*is_v6 && (colon == place || colon[-1] != ']'))) {
        return -EINVAL;
    }
    const char *first = *is_v6 ? place + 1 : place;
    size_t length = (size_t)((*is_v6 ? colon - 1 : colon) - first);
    if (length >= size || (!*is_v6 && memchr(first, ':', length) != NULL)) {
        return -EINVAL;
    }
    memcpy(host, first, length);
    host[length] = '\0';
    *port = colon + 1;
    return 0;
}

enum wf_place wf_place_kind(const char **place)
{
    if (skip(place, "tcp://")) {
        return WF_PLACE_TCP;
    }
    if (skip(place, "udp://")) {
        return WF_PLACE_UDP;
    }
    if (skip(place, "unix:")) {
        return WF_PLACE_UNIX;
    }
    return skip(place, "unixgram:") ? WF_PLACE_UNIXGRAM : WF_PLACE_BARE;
}

int weft_address_parse(weft_address *address, const char *text)
{
    char host[80];
    const char *port;
    bool is_v6;
    uint32_t number = 0;
    memset(address, 0, sizeof *address);
    enum wf_place kind = wf_place_kind(&text);
    int err;
    if (kind == WF_PLACE_UNIX || kind == WF_PLACE_UNIXGRAM) {
        err = parse_local(address, text);
    } else {
        err = wf_place_split(text, host, sizeof host, &port, &is_v6);
        if (err == 0 && !parse_number(port, UINT16_MAX, &number)) {
            err = -EINVAL;
        }
        if (err == 0) {
            err = is_v6 ? parse_v6(address, host) : parse_v4(address, host);
        }
        if (err == 0) {
            err = weft_address_set_port(address, (uint16_t)number);
        }
    }
    if (err != 0) {
        address->size = 0;
    }
    return err;
}

/* --- Printing --------------------------------------------------------------------------- */

static size_t print(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static size_t print(char *text, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, size, format, args);
    va_end(args);
    return length < 0 ? 0 : (size_t)length;
}

static size_t print_v6(const struct sockaddr_in6 *v6, char *text, size_t size)
{
    char host[INET6_ADDRSTRLEN];
    char scope[16] = "";
    (void)inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
    if (v6->sin6_scope_id != 0) {
        (void)snprintf(scope, sizeof scope, "%%%u", v6->sin6_scope_id);
    }
    return print(text, size, "[%s%s]:%u", host, scope, ntohs(v6->sin6_port));
}

static size_t print_v4(const struct sockaddr_in *v4, char *text, size_t size)
{
    char host[INET_ADDRSTRLEN];
    (void)inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
    return print(text, size, "%s:%u", host, ntohs(v4->sin_port));
}

static size_t print_local(const weft_address *address, char *text, size_t size)
{
    const struct sockaddr_un *local = &address->to.local;
    size_t before = offsetof(struct sockaddr_un, sun_path);
    size_t length = address->size > before ? address->size - before : 0;
    char name[sizeof local->sun_path + 1] = "";
    bool is_abstract = length > 0 && local->sun_path[0] == '\0';
    if (!is_abstract) {
        length = strnlen(local->sun_path, length);
    }
    for (size_t i = 0; i < length; i++) {
        char c = local->sun_path[i];
        name[i] = c >= ' ' && c < 127 ? c : '?';
    }
    if (is_abstract) {
        name[0] = '@';
    }
    return print(text, size, "unix:%s", name);
}

size_t weft_address_print(const weft_address *address, char *text, size_t size)
{
    if (address->size >= sizeof(sa_family_t)) {
        switch (address->to.any.sa_family) {
        case AF_INET:
            return print_v4(&address->to.v4, text, size);
        case AF_INET6:
            return print_v6(&address->to.v6, text, size);
        case AF_UNIX:
            return print_local(address, text, size);
        default:
            break;
        }
    }
    return print(text, size, "%s", "");
}

/* --- Ports ------------------------------------------------------------------------------ */

uint16_t weft_address_port(const weft_address *address)
{
    switch (address->size > 0 ? address->to.any.sa_family : AF_UNSPEC) {
    case AF_INET:
        return ntohs(address->to.v4.sin_port);
    case AF_INET6:
        return ntohs(address->to.v6.sin6_port);
    default:
        return 0;
    }
}

int weft_address_set_port(weft_address *address, uint16_t port)
{
    switch (address->size > 0 ? address->to.any.sa_family : AF_UNSPEC) {
    case AF_INET:
        address->to.v4.sin_port = htons(port);
        return 0;
    case AF_INET6:
        address->to.v6.sin6_port = htons(port);
        return 0;
    default:
        return -EINVAL;
    }
}
