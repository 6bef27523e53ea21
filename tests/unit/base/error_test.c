/* SPDX-License-Identifier: MIT */
#include <weft/base.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

static const int ours[] = { WEFT_ECANCELED, WEFT_ETIMEDOUT, WEFT_ESHUTDOWN, WEFT_EJOINED,
                            WEFT_ECLOSED,   WEFT_EEND,      WEFT_ENONAME };
enum {
    OURS_COUNT = sizeof ours / sizeof ours[0]
};

static void each_weft_error_has_its_own_text(void)
{
    CHECK_HAS(weft_strerror(WEFT_ECANCELED), "cancelled");
    CHECK_HAS(weft_strerror(WEFT_ETIMEDOUT), "deadline");
    CHECK_HAS(weft_strerror(WEFT_ESHUTDOWN), "shutting down");
    CHECK_HAS(weft_strerror(WEFT_EJOINED), "joining");
    CHECK_HAS(weft_strerror(WEFT_ECLOSED), "closed");
    CHECK_HAS(weft_strerror(WEFT_EEND), "ended");
    CHECK_HAS(weft_strerror(WEFT_ENONAME), "host");
}

static void weft_error_codes_and_texts_are_distinct(void)
{
    for (int i = 0; i < OURS_COUNT; i++) {
        CHECK_LE(ours[i], -4096);
        CHECK_NE(strcmp(weft_strerror(ours[i]), "unknown error"), 0);
        for (int j = 0; j < i; j++) {
            CHECK_NE(ours[i], ours[j]);
            CHECK_NE(strcmp(weft_strerror(ours[i]), weft_strerror(ours[j])), 0);
        }
    }
}

static void zero_is_success(void)
{
    CHECK_EQ(strcmp(weft_strerror(0), "success"), 0);
}

static void negative_errno_has_system_text(void)
{
    CHECK_EQ(strcmp(weft_strerror(-ENOMEM), strerror(ENOMEM)), 0);
    CHECK_EQ(strcmp(weft_strerror(-EINVAL), strerror(EINVAL)), 0);
    CHECK_EQ(strcmp(weft_strerror(-EAGAIN), strerror(EAGAIN)), 0);
    CHECK_EQ(strcmp(weft_strerror(-1), strerror(EPERM)), 0);
}

static void unknown_code_is_unknown_error(void)
{
    static const int codes[] = { 1,     ENOMEM,  INT_MAX,      -4095,
                                 -4103, INT_MIN, WEFT_PENDING, WEFT_YIELDED };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        CHECK_EQ(strcmp(weft_strerror(codes[i]), "unknown error"), 0);
    }
}

static void strerror_text_survives_next_call(void)
{
    const char *unknown = weft_strerror(-4095);
    const char *memory = weft_strerror(-ENOMEM);
    (void)weft_strerror(-EINVAL);
    (void)weft_strerror(-4094);
    CHECK_EQ(strcmp(unknown, "unknown error"), 0);
    CHECK_EQ(strcmp(memory, strerror(ENOMEM)), 0);
}

static void strerror_preserves_errno(void)
{
    errno = EDOM;
    (void)weft_strerror(-4095);
    (void)weft_strerror(-ENOMEM);
    (void)weft_strerror(WEFT_EJOINED);
    CHECK_EQ(errno, EDOM);
}

static void errno_is_libc_errno(void)
{
    errno = 0;
    CHECK_EQ(close(-1), -1);
    CHECK_EQ(errno, EBADF);
    CHECK(weft_errno_location() == &errno);
    CHECK(weft_errno_location() == __errno_location());
}

static void *change_own_errno(void *arg)
{
    CHECK(weft_errno_location() != arg);
    CHECK(weft_errno_location() == __errno_location());
    errno = ERANGE;
    return NULL;
}

static void each_thread_has_its_own_errno(void)
{
    pthread_t thread;
    errno = EDOM;
    CHECK_EQ(pthread_create(&thread, NULL, change_own_errno, weft_errno_location()), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(errno, EDOM);
}

static void library_version_matches_header(void)
{
    CHECK_EQ(strcmp(weft_version(), WEFT_VERSION_STRING), 0);
}

static void version_string_matches_numbers(void)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%d.%d.%d", WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR,
                   WEFT_VERSION_PATCH);
    CHECK_EQ(strcmp(text, WEFT_VERSION_STRING), 0);
    CHECK_EQ(WEFT_VERSION >> 16, WEFT_VERSION_MAJOR);
    CHECK_EQ(WEFT_VERSION >> 8 & 0xFF, WEFT_VERSION_MINOR);
    CHECK_EQ(WEFT_VERSION & 0xFF, WEFT_VERSION_PATCH);
}

TEST_MAIN({ TEST(each_weft_error_has_its_own_text), TEST(weft_error_codes_and_texts_are_distinct),
            TEST(zero_is_success), TEST(negative_errno_has_system_text),
            TEST(unknown_code_is_unknown_error), TEST(strerror_text_survives_next_call),
            TEST(strerror_preserves_errno), TEST(errno_is_libc_errno),
            TEST(each_thread_has_its_own_errno), TEST(library_version_matches_header),
            TEST(version_string_matches_numbers) })
