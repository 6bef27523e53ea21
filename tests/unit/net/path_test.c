/* SPDX-License-Identifier: MIT */
/*
 * path_test.c - files of Unix sockets. listen_test.c and datagram_place_test.c test them together
 * with sockets.
 */
#include "net/path.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ports.h"
#include "test.h"

static void make_file(const struct place *place)
{
    int fd = open(port_path_of(place), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    CHECK_EQ(close(fd), 0);
}

static void remove_deletes_noted_file(void)
{
    struct place place = port_path("unix:");
    weft_address address = port_address(place.text);
    struct wf_path path;
    make_file(&place);
    wf_path_note(&path, &address);
    wf_path_remove(&path);
    CHECK(!port_exists(&place));
    wf_path_remove(&path); /* The file does not exist any more. */
}

static void remove_keeps_other_file(void)
{
    struct place place = port_path("unix:");
    struct place other = port_path("unix:");
    weft_address address = port_address(place.text);
    struct wf_path path;
    make_file(&place);
    make_file(&other); /* Created before the first one is removed, so that its inode differs. */
    wf_path_note(&path, &address);
    CHECK_EQ(rename(port_path_of(&other), port_path_of(&place)), 0);
    wf_path_remove(&path);
    CHECK(port_exists(&place));
    CHECK_EQ(unlink(port_path_of(&place)), 0);
}

static void address_without_file_is_noted_as_none(void)
{
    static const char *const texts[] = { "unix:@name", "tcp://127.0.0.1:80", "unix:/no/such/file" };
    for (unsigned i = 0; i < 3; i++) {
        weft_address address = port_address(texts[i]);
        struct wf_path path;
        CHECK_EQ(wf_path_is_named(&address), i == 2);
        wf_path_note(&path, &address);
        CHECK_EQ(strlen(path.text), 0);
        wf_path_remove(&path);
    }
}

TEST_MAIN({
    TEST(remove_deletes_noted_file),
    TEST(remove_keeps_other_file),
    TEST(address_without_file_is_noted_as_none),
})
