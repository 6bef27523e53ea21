/* SPDX-License-Identifier: MIT */
/*
 * place.c - fuzz target for parsing endpoints such as "tcp://host:port".
 *
 * The parts of an endpoint, joined again, are the endpoint. A host fits its buffer, and has no
 * colon unless it was in brackets. Every text that parses as an IP address splits into host and
 * port.
 */
#include "net/place.h"

#include <weft/net.h>

#include "fuzz.h"

static const char *prefix_of(enum wf_place kind)
{
    switch (kind) {
    case WF_PLACE_TCP:
        return "tcp://";
    case WF_PLACE_UDP:
        return "udp://";
    case WF_PLACE_UNIX:
        return "unix:";
    case WF_PLACE_UNIXGRAM:
        return "unixgram:";
    default:
        return "";
    }
}

/* Splits into a buffer of the given size. Returns whether the text is "host:port". */
static bool check_split(const char *place, size_t room)
{
    char *host = malloc(room);
    const char *port = NULL;
    bool is_v6 = false;
    FUZZ_CHECK(host != NULL);
    int err = wf_place_split(place, host, room, &port, &is_v6);
    FUZZ_CHECK(err == 0 || err == -EINVAL);
    if (err == 0) {
        size_t length = strlen(host);
        size_t brackets = is_v6 ? 1 : 0;
        FUZZ_CHECK(length < room);
        FUZZ_CHECK(is_v6 == (place[0] == '['));
        FUZZ_CHECK(memcmp(place + brackets, host, length) == 0);
        FUZZ_CHECK(!is_v6 || place[length + 1] == ']');
        FUZZ_CHECK(is_v6 || strchr(host, ':') == NULL);
        FUZZ_CHECK(place[length + 2 * brackets] == ':');
        FUZZ_CHECK(port == place + length + 2 * brackets + 1);
        FUZZ_CHECK(strchr(port, ':') == NULL);
    }
    free(host);
    return err == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    char *text = malloc(size);
    FUZZ_CHECK(text != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';

    const char *rest = text;
    enum wf_place kind = wf_place_kind(&rest);
    const char *prefix = prefix_of(kind);
    FUZZ_CHECK(rest == text + strlen(prefix));
    FUZZ_CHECK(memcmp(text, prefix, strlen(prefix)) == 0);

    bool has_ports = kind != WF_PLACE_UNIX && kind != WF_PLACE_UNIXGRAM;
    bool is_split = check_split(rest, 80);
    (void)check_split(rest, data[0] % 64 + 1);
    weft_address address;
    if (weft_address_parse(&address, text) == 0 && has_ports) {
        FUZZ_CHECK(is_split);
    }
    free(text);
    return 0;
}
