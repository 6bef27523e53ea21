/* SPDX-License-Identifier: MIT */
/*
 * address_test.c - addresses as text: parsing, printing and round trips.
 */
#include "net/place.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include <weft.h>

#include "base/rng.h"
#include "ports.h"
#include "test.h"

static void check_text(const weft_address *address, const char *wanted)
{
    char text[WEFT_ADDRESS_TEXT_MAX];
    CHECK_EQ(weft_address_print(address, text, sizeof text), strlen(wanted));
    if (strcmp(text, wanted) != 0) {
        test_fail(__FILE__, __LINE__, "'%s' was written, not '%s'", text, wanted);
    }
}

static void check_reads(const char *text, int wanted)
{
    weft_address address;
    memset(&address, 0x55, sizeof address);
    int err = weft_address_parse(&address, text);
    if (err != wanted) {
        test_fail(__FILE__, __LINE__, "'%s' gives %d, wanted %d", text, err, wanted);
    }
    if (err != 0) {
        CHECK_EQ(address.size, 0);
    }
}

/* --- Parsing ------------------------------------------------------------------------- */

static void four_numbers_and_port_are_v4(void)
{
    static const char *const texts[] = { "127.0.0.1:80", "tcp://127.0.0.1:80",
                                         "udp://127.0.0.1:80" };
    for (unsigned i = 0; i < 3; i++) {
        weft_address address = port_address(texts[i]);
        CHECK_EQ(address.to.any.sa_family, AF_INET);
        CHECK_EQ(address.size, sizeof address.to.v4);
        CHECK_EQ(address.to.v4.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
        CHECK_EQ(address.to.v4.sin_port, htons(80));
    }
}

static void port_alone_is_wildcard_address(void)
{
    weft_address address = port_address("tcp://:8080");
    CHECK_EQ(address.to.any.sa_family, AF_INET);
    CHECK_EQ(address.to.v4.sin_addr.s_addr, htonl(INADDR_ANY));
    CHECK_EQ(weft_address_port(&address), 8080);
    check_text(&address, "0.0.0.0:8080");
}

static void brackets_are_v6(void)
{
    weft_address address = port_address("tcp://[1:2::ff]:443");
    static const unsigned char bytes[16] = { 0, 1, 0, 2, [15] = 0xff };
    CHECK_EQ(address.to.any.sa_family, AF_INET6);
    CHECK_EQ(address.size, sizeof address.to.v6);
    CHECK_EQ(memcmp(&address.to.v6.sin6_addr, bytes, 16), 0);
    CHECK_EQ(address.to.v6.sin6_port, htons(443));
    CHECK_EQ(address.to.v6.sin6_scope_id, 0);
}

static void scope_is_number_or_interface(void)
{
    char text[64];
    weft_address address = port_address("[fe80::1%7]:1");
    CHECK_EQ(address.to.v6.sin6_scope_id, 7);
    check_text(&address, "[fe80::1%7]:1");
    unsigned lo = if_nametoindex("lo");
    CHECK(lo != 0);
    address = port_address("[fe80::1%lo]:1");
    CHECK_EQ(address.to.v6.sin6_scope_id, lo);
    (void)snprintf(text, sizeof text, "[fe80::1%%%u]:1", lo);
    check_text(&address, text);
}

/* The system's interface index is an int, but a scope has 32 bits. */
static void every_scope_survives_round_trip(void)
{
    static const uint32_t scopes[] = { 1, 429496728, 429496729, 2147483647, 4294967295 };
    for (unsigned i = 0; i < sizeof scopes / sizeof scopes[0]; i++) {
        char text[WEFT_ADDRESS_TEXT_MAX];
        weft_address address = port_address("[fe80::1]:1");
        address.to.v6.sin6_scope_id = scopes[i];
        (void)weft_address_print(&address, text, sizeof text);
        CHECK_EQ(port_address(text).to.v6.sin6_scope_id, scopes[i]);
    }
    check_reads("[fe80::1%4294967296]:1", -EINVAL);
    check_reads("[fe80::1%42949672960]:1", -EINVAL);
}

static void paths_are_unix_sockets(void)
{
    weft_address address = port_address("unix:/run/app.sock");
    CHECK_EQ(address.to.any.sa_family, AF_UNIX);
    CHECK_EQ(strcmp(address.to.local.sun_path, "/run/app.sock"), 0);
    CHECK_EQ(address.size, offsetof(struct sockaddr_un, sun_path) + 14);
    address = port_address("unixgram:log");
    CHECK_EQ(strcmp(address.to.local.sun_path, "log"), 0);
    /* A path may look like anything. */
    check_text(&(weft_address[]){ port_address("unix:1.2.3.4:80") }[0], "unix:1.2.3.4:80");
    check_text(&(weft_address[]){ port_address("unix:unix:x") }[0], "unix:unix:x");
}

static void at_sign_is_abstract_name(void)
{
    weft_address address = port_address("unix:@name");
    CHECK_EQ(address.to.any.sa_family, AF_UNIX);
    CHECK_EQ(memcmp(address.to.local.sun_path, "\0name", 5), 0);
    CHECK_EQ(address.size, offsetof(struct sockaddr_un, sun_path) + 5);
    check_text(&address, "unix:@name");
}

static void text_of_length(char *text, const char *before, size_t length)
{
    size_t start = strlen(before);
    memcpy(text, before, start);
    memset(text + start, 'x', length);
    text[start + length] = '\0';
}

/* A socket address holds 108 bytes: a path and its terminator, or a zero and a name. */
static void path_has_at_most_107_bytes(void)
{
    char text[300];
    text_of_length(text, "unix:", 107);
    check_reads(text, 0);
    check_text(&(weft_address[]){ port_address(text) }[0], text);
    text_of_length(text, "unix:", 108);
    check_reads(text, -ENAMETOOLONG);
    text_of_length(text, "unixgram:", 250);
    check_reads(text, -ENAMETOOLONG);
}

static void abstract_name_has_at_most_107_bytes(void)
{
    char text[300];
    text_of_length(text, "unix:@", 106);
    check_reads(text, 0);
    check_text(&(weft_address[]){ port_address(text) }[0], text);
    text_of_length(text, "unix:@", 108);
    check_reads(text, -ENAMETOOLONG);
    text_of_length(text, "unix:@", 107);
    check_reads(text, 0);
    check_text(&(weft_address[]){ port_address(text) }[0], text);
}

static void check_refused(const char *const *texts)
{
    for (unsigned i = 0; texts[i] != NULL; i++) {
        check_reads(texts[i], -EINVAL);
    }
}

static const char *const bad_v4[] = {
    "",
    ":",
    "80",
    "127.0.0.1",
    "127.0.0.1:",
    "127.0.0.1:65536",
    "127.0.0.1:-1",
    "127.0.0.1:+1",
    "127.0.0.1: 1",
    "127.0.0.1:1 ",
    "127.0.0.1:1x",
    "127.0.0.1:x",
    "127.0.0.1:1:2",
    "127.0.0.1:99999999999999999999",
    "127.0.0.1:4294967376",
    " 127.0.0.1:1",
    "127.0.0.1 :1",
    "1.2.3.4.5:1",
    "1.2.3:1",
    "1.2.3.256:1",
    "1.2.3.-4:1",
    "1.2.3.4/8:1",
    "0x7f.0.0.1:1",
    "localhost:80",
    "example.org:443",
    "-:1",
    "@:1",
    "@name",
    "127.0.0.1%lo:1",
    NULL,
};

static const char *const bad_v6[] = {
    "[]:1",
    "[",
    "]",
    "[]",
    "[:",
    "]:1",
    "[:1",
    "[::1",
    "[::1]",
    "[::1]:",
    "[::1]1",
    "[::1]x:1",
    "[::1x:80",
    "[::1 :80",
    "x[::1]:1",
    "[[::1]]:1",
    "[::1]]:1",
    "[::1]:65536",
    "[::1]:-1",
    "[::1]:1]",
    "[::1 ]:1",
    "[127.0.0.1]:1",
    "[::1::]:1",
    "[1:2:3:4:5:6:7:8:9]:1",
    "[12345::]:1",
    "[g::]:1",
    "[::1]::1",
    "::1:80",
    "::",
    "::1",
    "fe80::1%lo:1",
    NULL,
};

static const char *const bad_scopes[] = {
    "[::1%]:1", "[::1%0]:1", "[::1%-1]:1",    "[::1%no-such-thing]:1",
    "[%lo]:1",  "[%]:1",     "[::1%lo%lo]:1", "[::1%99999999999999999999]:1",
    NULL,
};

static const char *const bad_beginnings[] = {
    "tcp://",
    "tcp://:",
    "udp://",
    "tcp:127.0.0.1:1",
    "tcp:/127.0.0.1:1",
    "TCP://127.0.0.1:1",
    "http://127.0.0.1:1",
    "tcp://tcp://127.0.0.1:1",
    "tcp://unix:/x",
    "udp://unixgram:@x",
    " tcp://127.0.0.1:1",
    "unix",
    "unix:",
    "unix:@",
    "unixgram:",
    "unixgram:@",
    "unixgram",
    NULL,
};

static void invalid_addresses_are_refused(void)
{
    check_refused(bad_v4);
    check_refused(bad_v6);
    check_refused(bad_scopes);
    check_refused(bad_beginnings);
}

static void overlong_host_is_refused(void)
{
    char text[2000];
    for (size_t length = 1; length < sizeof text - 10; length += 7) {
        text_of_length(text, "", length);
        memcpy(text + length, ":1", 3);
        check_reads(text, -EINVAL);
        text_of_length(text, "[::1%", length);
        memcpy(text + strlen(text), "]:1", 4);
        check_reads(text, -EINVAL);
    }
}

/* --- Printing ------------------------------------------------------------------------ */

static void printed_address_parses_back(void)
{
    static const char *const texts[] = {
        "0.0.0.0:0",
        "1.2.3.4:65535",
        "255.255.255.255:1",
        "[::]:0",
        "[::1]:80",
        "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff0%429496728]:65535",
        "[::ffff:1.2.3.4]:5",
        "[fe80::1%3]:80",
        "unix:/a",
        "unix:a",
        "unix:@a",
        "unix:/run/app.sock",
        "unix:@@",
        "unix:@:",
        "unix:/:@[]%",
        "unix:/run/my app.sock",
        "unix:@two words",
    };
    for (unsigned i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        weft_address address = port_address(texts[i]);
        check_text(&address, texts[i]);
    }
}

static void unprintable_bytes_become_question_marks(void)
{
    weft_address address = { .to.local = { .sun_family = AF_UNIX } };
    static const unsigned char name[] = { 0, 'a', 0, 1, 127, 200, '\n', 'b' };
    memcpy(address.to.local.sun_path, name, sizeof name);
    address.size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof name);
    check_text(&address, "unix:@a?????b");
    memcpy(address.to.local.sun_path, "/x\x1b[1m\xff", 8);
    address.size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 8);
    check_text(&address, "unix:/x?[1m?");
}

static void path_ends_at_terminator_or_with_address(void)
{
    weft_address address = port_address("unix:/path");
    memcpy(address.to.local.sun_path, "/pa\0h", 6);
    check_text(&address, "unix:/pa");
    memset(address.to.local.sun_path, 'y', sizeof address.to.local.sun_path);
    address.size = sizeof address.to.local;
    char wanted[200];
    text_of_length(wanted, "unix:", 0);
    memset(wanted + 5, 'y', 108);
    wanted[113] = '\0';
    check_text(&address, wanted);
    address.size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 2);
    check_text(&address, "unix:yy");
}

static void empty_or_unknown_address_prints_nothing(void)
{
    weft_address address = { .size = 0 };
    check_text(&address, "");
    address = port_address("1.2.3.4:5");
    address.size = 0;
    check_text(&address, "");
    address.size = sizeof address.to.v4;
    address.to.any.sa_family = AF_APPLETALK;
    check_text(&address, "");
    address = (weft_address){ .to.any.sa_family = AF_UNIX, .size = sizeof(sa_family_t) };
    check_text(&address, "unix:"); /* A socket without a name. */
}

static void longest_text_fits(void)
{
    weft_address address = { .to.local = { .sun_family = AF_UNIX } };
    memset(address.to.local.sun_path + 1, 'z', sizeof address.to.local.sun_path - 1);
    address.size = sizeof address.to.local;
    CHECK_LT(weft_address_print(&address, NULL, 0), WEFT_ADDRESS_TEXT_MAX);
    address = port_address("[1111:2222:3333:4444:5555:6666:7777:8888%400000000]:65535");
    CHECK_LT(weft_address_print(&address, NULL, 0), WEFT_ADDRESS_TEXT_MAX);
}

static void text_is_truncated_to_buffer_size(void)
{
    static const char *const texts[] = { "127.0.0.1:8080", "[fe80::1%2]:80", "unix:@abstract" };
    for (unsigned i = 0; i < 3; i++) {
        weft_address address = port_address(texts[i]);
        size_t whole = strlen(texts[i]);
        CHECK_EQ(weft_address_print(&address, NULL, 0), whole);
        for (size_t size = 1; size < whole + 3; size++) {
            char text[40];
            memset(text, '#', sizeof text);
            CHECK_EQ(weft_address_print(&address, text, size), whole);
            size_t written = size - 1 < whole ? size - 1 : whole;
            CHECK_EQ(strlen(text), written);
            CHECK_EQ(memcmp(text, texts[i], written), 0);
            CHECK_EQ(text[size], '#');
        }
    }
}

/* --- Ports --------------------------------------------------------------------------- */

static void port_can_be_set_and_read(void)
{
    static const char *const texts[] = { "1.2.3.4:5", "[::1]:5" };
    for (unsigned i = 0; i < 2; i++) {
        weft_address address = port_address(texts[i]);
        CHECK_EQ(weft_address_port(&address), 5);
        CHECK_EQ(weft_address_set_port(&address, 65535), 0);
        CHECK_EQ(weft_address_port(&address), 65535);
        CHECK_EQ(weft_address_set_port(&address, 258), 0);
        CHECK_EQ(i == 0 ? address.to.v4.sin_port : address.to.v6.sin6_port, htons(258));
    }
    check_text(&(weft_address[]){ port_address("1.2.3.4:00080") }[0], "1.2.3.4:80");
}

static void set_port_without_port_returns_einval(void)
{
    weft_address address = port_address("unix:/x");
    weft_address before = address;
    CHECK_EQ(weft_address_port(&address), 0);
    CHECK_EQ(weft_address_set_port(&address, 80), -EINVAL);
    CHECK_EQ(memcmp(&address, &before, sizeof address), 0);
    address = (weft_address){ .to.v4 = { .sin_family = AF_INET, .sin_port = htons(7) } };
    CHECK_EQ(weft_address_port(&address), 0); /* Its size is 0. */
    CHECK_EQ(weft_address_set_port(&address, 80), -EINVAL);
}

/* --- Endpoints ----------------------------------------------------------------------- */

static void prefix_selects_endpoint_kind(void)
{
    static const struct {
        const char *place;
        enum wf_place kind;
        const char *rest;
    } cases[] = {
        { "tcp://a:1", WF_PLACE_TCP, "a:1" },
        { "udp://a:1", WF_PLACE_UDP, "a:1" },
        { "unix:/a", WF_PLACE_UNIX, "/a" },
        { "unixgram:/a", WF_PLACE_UNIXGRAM, "/a" },
        { "a:1", WF_PLACE_BARE, "a:1" },
        { "", WF_PLACE_BARE, "" },
        { "unixgra:/a", WF_PLACE_BARE, "unixgra:/a" },
        { "tcp:/", WF_PLACE_BARE, "tcp:/" },
    };
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *rest = cases[i].place;
        CHECK_EQ(wf_place_kind(&rest), cases[i].kind);
        CHECK_EQ(strcmp(rest, cases[i].rest), 0);
    }
}

static void endpoint_is_split_if_host_fits(void)
{
    char host[6];
    const char *port;
    bool is_v6;
    CHECK_EQ(wf_place_split("abcde:x:y", host, sizeof host, &port, &is_v6), -EINVAL);
    CHECK_EQ(wf_place_split("abcde:http", host, sizeof host, &port, &is_v6), 0);
    CHECK_EQ(strcmp(host, "abcde"), 0);
    CHECK_EQ(strcmp(port, "http"), 0);
    CHECK(!is_v6);
    CHECK_EQ(wf_place_split("abcdef:http", host, sizeof host, &port, &is_v6), -EINVAL);
    CHECK_EQ(wf_place_split("[a:b:c]:1", host, sizeof host, &port, &is_v6), 0);
    CHECK_EQ(strcmp(host, "a:b:c"), 0);
    CHECK(is_v6);
    CHECK_EQ(wf_place_split("[a:b:cd]:1", host, sizeof host, &port, &is_v6), -EINVAL);
}

/* --- Junk ---------------------------------------------------------------------------- */

/* Concatenates parts of endpoints in random order. */
static void make_junk(struct wf_rng *rng, char *text)
{
    static const char *const pieces[] = { "tcp://", "udp://", "unix:",   "unixgram:", "127.0.0.1",
                                          "::1",    "[",      "]",       ":",         "%",
                                          "lo",     "@",      "80",      "65535",     "1",
                                          ".",      "/",      "fe80::1", "\x80",      " ",
                                          "a",      "\n",     "x.y",     "99999" };
    text[0] = '\0';
    size_t length = 0;
    for (uint32_t count = wf_rng_below(rng, 8); count > 0; count--) {
        const char *piece = pieces[wf_rng_below(rng, sizeof pieces / sizeof pieces[0])];
        memcpy(text + length, piece, strlen(piece) + 1);
        length += strlen(piece);
    }
}

static void junk_is_refused_or_survives_round_trip(void)
{
    struct wf_rng rng;
    char junk[100];
    char text[WEFT_ADDRESS_TEXT_MAX];
    char again[WEFT_ADDRESS_TEXT_MAX];
    unsigned good = 0;
    wf_rng_seed(&rng, test_seed(), 0);
    for (uint64_t i = test_scale(1000 * 1000); i > 0; i--) {
        weft_address address;
        make_junk(&rng, junk);
        int err = weft_address_parse(&address, junk);
        CHECK(err == 0 || err == -EINVAL);
        CHECK((err == 0) == (address.size != 0));
        CHECK_LT(weft_address_print(&address, text, sizeof text), sizeof text);
        if (err == 0 && strchr(text, '?') == NULL) {
            address = port_address(text);
            (void)weft_address_print(&address, again, sizeof again);
            CHECK_EQ(strcmp(text, again), 0);
            good++;
        }
    }
    CHECK(good > 0);
}

TEST_MAIN({
    TEST(four_numbers_and_port_are_v4),
    TEST(port_alone_is_wildcard_address),
    TEST(brackets_are_v6),
    TEST(scope_is_number_or_interface),
    TEST(paths_are_unix_sockets),
    TEST(at_sign_is_abstract_name),
    TEST(path_has_at_most_107_bytes),
    TEST(invalid_addresses_are_refused),
    TEST(overlong_host_is_refused),
    TEST(unprintable_bytes_become_question_marks),
    TEST(path_ends_at_terminator_or_with_address),
    TEST(empty_or_unknown_address_prints_nothing),
    TEST(longest_text_fits),
    TEST(text_is_truncated_to_buffer_size),
    TEST(port_can_be_set_and_read),
    TEST(set_port_without_port_returns_einval),
    TEST(prefix_selects_endpoint_kind),
    TEST(endpoint_is_split_if_host_fits),
    TEST(junk_is_refused_or_survives_round_trip),
    TEST(printed_address_parses_back),
    TEST(every_scope_survives_round_trip),
    TEST(abstract_name_has_at_most_107_bytes),
})
