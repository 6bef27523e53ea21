/* SPDX-License-Identifier: MIT */
/*
 * address.c - fuzz target for parsing and printing addresses.
 *
 * A parsed address has a valid size and the port of the text. It can be printed, and parsing
 * the printed text gives the same address. Printing into a buffer that is too small truncates
 * the text and terminates it.
 */
#include <weft/net.h>

#include "fuzz.h"

static void check_print(const weft_address *address, const char *whole, size_t length)
{
    for (size_t size = 0; size <= length + 1; size++) {
        char *text = malloc(size > 0 ? size : 1);
        FUZZ_CHECK(text != NULL);
        FUZZ_CHECK(weft_address_print(address, text, size) == length);
        if (size > 0) {
            size_t kept = size - 1 < length ? size - 1 : length;
            FUZZ_CHECK(strlen(text) == kept && memcmp(text, whole, kept) == 0);
        }
        free(text);
    }
}

static bool is_printable(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text < ' ' || *text >= 127) {
            return false;
        }
    }
    return true;
}

/*
 * Checks that the address is of one of the three families, has the right size for it, and has
 * the port of the text.
 */
static void check_address(const weft_address *address, const char *text)
{
    sa_family_t family = address->to.any.sa_family;
    FUZZ_CHECK(family == AF_INET || family == AF_INET6 || family == AF_UNIX);
    FUZZ_CHECK(family != AF_INET || address->size == sizeof address->to.v4);
    FUZZ_CHECK(family != AF_INET6 || address->size == sizeof address->to.v6);
    FUZZ_CHECK(family != AF_UNIX || address->size <= sizeof address->to.local);
    FUZZ_CHECK(address->size > sizeof family);
    if (family != AF_UNIX) {
        FUZZ_CHECK(strtoull(strrchr(text, ':') + 1, NULL, 10) == weft_address_port(address));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    FUZZ_CHECK(text != NULL);
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';

    weft_address address;
    weft_address again;
    char printed[WEFT_ADDRESS_TEXT_MAX];
    int err = weft_address_parse(&address, text);
    if (err != 0) {
        FUZZ_CHECK(err == -EINVAL || err == -ENAMETOOLONG);
        FUZZ_CHECK(address.size == 0);
    } else {
        check_address(&address, text);
        size_t length = weft_address_print(&address, printed, sizeof printed);
        FUZZ_CHECK(length < sizeof printed);
        check_print(&address, printed, length);
        FUZZ_CHECK(weft_address_parse(&again, printed) == 0);
        FUZZ_CHECK(again.size == address.size);
        if (is_printable(text)) { /* Otherwise some bytes were printed as '?'. */
            FUZZ_CHECK(memcmp(&again.to, &address.to, address.size) == 0);
        }
    }
    free(text);
    return 0;
}
