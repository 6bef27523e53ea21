/* SPDX-License-Identifier: MIT */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <weft.h>

#include "base/rng.h"
#include "everywhere.h"
#include "rt.h"
#include "test.h"

/* --- Texts ------------------------------------------------------------------------------- */

enum {
    TEXT_MAX = 120000,
};

/* A text without a terminating zero, and its expected lines. */
struct text {
    char *at;
    size_t length;
    weft_line *lines;
    size_t count;
};

/* Finds the lines byte by byte. */
static void find_lines(struct text *text)
{
    text->lines = malloc((text->length + 1) * sizeof *text->lines);
    CHECK(text->lines != NULL);
    size_t begin = 0;
    for (size_t i = 0; i < text->length; i++) {
        if (text->at[i] == '\n') {
            text->lines[text->count++] = (weft_line){ text->at + begin, i - begin };
            begin = i + 1;
        }
    }
    if (begin < text->length) {
        text->lines[text->count++] = (weft_line){ text->at + begin, text->length - begin };
    }
}

/* Makes a text of random bytes, including zeros and carriage returns. Each byte is a newline
 * with a chance of newlines in 1000. The last byte is a newline if ends is true. The text has
 * its own allocation, so that a read past its end is detected. */
static struct text make_text(size_t length, uint32_t newlines, bool ends, struct wf_rng *rng)
{
    struct text text = { .at = malloc(length + (length == 0)), .length = length };
    CHECK(text.at != NULL);
    for (size_t i = 0; i < length; i++) {
        text.at[i] = "a\r\0\xff "[wf_rng_below(rng, 5)];
        if (wf_rng_below(rng, 1000) < newlines) {
            text.at[i] = '\n';
        }
    }
    if (length > 0) {
        text.at[length - 1] = ends ? '\n' : 'z';
    }
    find_lines(&text);
    return text;
}

static void free_text(struct text *text)
{
    free(text->at);
    free(text->lines);
}

static const size_t lengths[] = { 0,     1,     2,     3,     31,      32,   33,   63,
                                  64,    65,    127,   128,   129,     1000, 4095, 4096,
                                  4097,  8160,  8192,  8193,  8161,    8225, 9999, 12287,
                                  12288, 12289, 65536, 65537, TEXT_MAX };

/* No newlines, few, as many as in ordinary text, many, only newlines. */
static const uint32_t chances[] = { 0, 1, 20, 500, 1000 };

/* Calls the check with texts of every kind. */
static void with_texts(void (*check)(const struct text *text))
{
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 0);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        for (size_t j = 0; j < 2 * (sizeof chances / sizeof chances[0]); j++) {
            if (test_is_sanitized() && lengths[i] > 1000 && j % 5 != i % 5) {
                continue;
            }
            struct text text = make_text(lengths[i], chances[j / 2], j % 2 != 0, &rng);
            check(&text);
            free_text(&text);
        }
    }
}

/* --- Lines ------------------------------------------------------------------------------- */

/* For each byte, the number of times that a line beginning there was seen. */
struct seen {
    const struct text *text;
    _Atomic(unsigned char) *times;
    _Atomic(size_t) bytes;
};

static int see(const char *line, size_t length, void *arg)
{
    struct seen *seen = arg;
    size_t begin = (size_t)(line - seen->text->at);
    CHECK_LT(begin, seen->text->length);
    CHECK_LE(length, seen->text->length - begin);
    atomic_fetch_add(&seen->times[begin], 1);
    atomic_fetch_add(&seen->bytes, length);
    return 0;
}

static void check_each(const struct text *text, const weft_par_options *options)
{
    struct seen seen = { .text = text, .times = calloc(text->length + 1, 1) };
    CHECK(seen.times != NULL);
    CHECK_EQ(weft_for_lines(text->at, text->length, see, &seen, options), 0);
    size_t bytes = 0;
    for (size_t i = 0; i < text->count; i++) {
        size_t begin = (size_t)(text->lines[i].at - text->at);
        CHECK_EQ(seen.times[begin], 1);
        seen.times[begin] = 0;
        bytes += text->lines[i].length;
    }
    for (size_t i = 0; i < text->length; i++) {
        CHECK_EQ(seen.times[i], 0);
    }
    CHECK_EQ(seen.bytes, bytes);
    free(seen.times);
}

static void check_each_in_chunks(const struct text *text)
{
    check_each(text, NULL);
    check_each(text, &(weft_par_options){ .piece = 1 + text->length / 7 });
    check_each(text, &(weft_par_options){ .piece = SIZE_MAX });
    if (text->length < 1000) {
        for (size_t piece = 1; piece < 4; piece++) {
            check_each(text, &(weft_par_options){ .piece = piece });
        }
    }
}

static int each_of_all(void *arg)
{
    (void)arg;
    with_texts(check_each_in_chunks);
    return 0;
}

static void for_lines_visits_each_line_once(void)
{
    test_run_everywhere(each_of_all, NULL);
}

static int expect_line(const char *line, size_t length, void *arg)
{
    const char *expected = arg;
    CHECK_EQ(length, strlen(expected));
    CHECK_EQ(memcmp(line, expected, length), 0);
    return 0;
}

static void carriage_return_stays_in_line(void)
{
    char expected[] = "two words\r";
    CHECK_EQ(weft_for_lines("two words\r\n", 11, expect_line, expected, NULL), 0);
    CHECK_EQ(weft_for_lines("two words\r", 10, expect_line, expected, NULL), 0);
}

/* --- Line tables ------------------------------------------------------------------------- */

static void check_count(const struct text *text)
{
    size_t count = 99;
    CHECK_EQ(weft_count_lines(text->at, text->length, &count, NULL), 0);
    CHECK_EQ(count, text->count);
}

static int count_all(void *arg)
{
    (void)arg;
    with_texts(check_count);
    size_t count = 99;
    CHECK_EQ(weft_count_lines(NULL, 0, &count, NULL), 0);
    CHECK_EQ(count, 0);
    return 0;
}

static void count_lines_counts_every_line(void)
{
    test_run_everywhere(count_all, NULL);
}

/* Checks a table of exactly room lines. Memory behind the table must not change. */
static void check_table_of(const struct text *text, size_t room)
{
    weft_line *lines = malloc((room + 1) * sizeof *lines);
    CHECK(lines != NULL);
    lines[room] = (weft_line){ NULL, 12345 };
    size_t found = 99;
    int err = weft_lines(text->at, text->length, lines, room, &found, NULL);
    CHECK_EQ(err, room < text->count ? -ENOSPC : 0);
    CHECK_EQ(found, text->count);
    for (size_t i = 0; i < room && i < text->count; i++) {
        CHECK(lines[i].at == text->lines[i].at);
        CHECK_EQ(lines[i].length, text->lines[i].length);
    }
    CHECK(lines[room].at == NULL);
    CHECK_EQ(lines[room].length, 12345);
    free(lines);
}

static void check_table(const struct text *text)
{
    check_table_of(text, text->count);
    check_table_of(text, text->count + 10);
    check_table_of(text, text->count / 2);
    check_table_of(text, text->count - (text->count > 0));
    size_t found = 99;
    int err = weft_lines(text->at, text->length, NULL, 0, &found, NULL);
    CHECK_EQ(err, text->count > 0 ? -ENOSPC : 0);
    CHECK_EQ(found, text->count);
}

static int tables_of_all(void *arg)
{
    (void)arg;
    with_texts(check_table);
    size_t found = 99;
    CHECK_EQ(weft_lines(NULL, 0, NULL, 0, &found, NULL), 0);
    CHECK_EQ(found, 0);
    return 0;
}

static void line_table_has_all_lines_in_order(void)
{
    test_run_everywhere(tables_of_all, NULL);
}

/* --- Early ends -------------------------------------------------------------------------- */

static _Atomic(uint64_t) calls;
static weft_stop stop;

static int fail_at_x(const char *line, size_t length, void *arg)
{
    (void)arg;
    atomic_fetch_add(&calls, 1);
    return length > 0 && line[0] == 'x' ? -55 : 0;
}

static int stop_at_x(const char *line, size_t length, void *arg)
{
    if (fail_at_x(line, length, arg) != 0) {
        weft_stop_set(&stop);
    }
    return 0;
}

static int end_early(void *arg)
{
    (void)arg;
    static char text[TEXT_MAX];
    memset(text, '\n', sizeof text);
    for (size_t i = 0; i < sizeof text; i += sizeof text / 5) {
        text[i] = 'x';
        CHECK_EQ(weft_for_lines(text, sizeof text, fail_at_x, NULL, NULL), -55);
        text[i] = '\n';
    }
    text[0] = 'x';
    atomic_store(&calls, 0);
    weft_par_options options = { .piece = 1 };
    CHECK_EQ(weft_for_lines(text, sizeof text, fail_at_x, NULL, &options), -55);
    CHECK_LT(atomic_load(&calls), sizeof text - 2);
    stop = (weft_stop){ 0 };
    options.stop = &stop;
    atomic_store(&calls, 0);
    CHECK_EQ(weft_for_lines(text, sizeof text, stop_at_x, NULL, &options), WEFT_ECANCELED);
    CHECK_LT(atomic_load(&calls), sizeof text - 2);
    return 0;
}

static void errors_and_cancels_end_call(void)
{
    test_run_everywhere(end_early, NULL);
}

static int cancel_now(const char *line, size_t length, void *arg)
{
    weft_stop_set(&stop);
    return fail_at_x(line, length, arg);
}

static void chunk_size_is_in_bytes(void)
{
    static const char text[100] = "1234\n1234\n1234\n";
    for (size_t piece = 1; piece <= 15; piece++) {
        stop = (weft_stop){ 0 };
        atomic_store(&calls, 0);
        weft_par_options options = { .stop = &stop, .piece = piece };
        CHECK_EQ(weft_for_lines(text, sizeof text, cancel_now, NULL, &options), WEFT_ECANCELED);
        CHECK_EQ(atomic_load(&calls), (piece + 4) / 5);
    }
}

static int stop_before(void *arg)
{
    static char text[TEXT_MAX];
    static weft_line lines[TEXT_MAX];
    (void)arg;
    weft_par_options options = { .stop = &stop };
    size_t count = 99;
    atomic_store(&calls, 0);
    CHECK_EQ(weft_for_lines(text, sizeof text, fail_at_x, NULL, &options), WEFT_ECANCELED);
    CHECK_EQ(atomic_load(&calls), 0);
    CHECK_EQ(weft_count_lines(text, sizeof text, &count, &options), WEFT_ECANCELED);
    CHECK_EQ(count, 0);
    count = 99;
    CHECK_EQ(weft_lines(text, sizeof text, lines, TEXT_MAX, &count, &options), WEFT_ECANCELED);
    CHECK_EQ(count, 0);
    return 0;
}

static void set_cancel_flag_prevents_calls(void)
{
    weft_stop_set(&stop);
    test_run_everywhere(stop_before, NULL);
}

/* --- Distribution among workers ---------------------------------------------------------- */

static _Atomic(uint64_t) begun;

static int meet(const char *line, size_t length, void *arg)
{
    (void)line;
    (void)length;
    (void)arg;
    atomic_fetch_add(&begun, 1);
    test_wait_for(&begun, 2);
    return 0;
}

static int meet_at_lines(void *arg)
{
    static char text[1000];
    (void)arg;
    memset(text, 'a', sizeof text);
    text[sizeof text / 2] = '\n';
    for (unsigned i = 0; i < 20; i++) {
        atomic_store(&begun, 0);
        CHECK_EQ(weft_for_lines(text, sizeof text, meet, NULL, NULL), 0);
    }
    return 0;
}

/*
 * Goal:   lines are shared even if there are few of them.
 * Method: each of two lines waits for the other one.
 */
static void two_long_lines_run_concurrently(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, meet_at_lines, NULL), 0);
    CHECK_EQ(weft_par_run(rt, meet_at_lines, NULL), 0);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(for_lines_visits_each_line_once),
    TEST(carriage_return_stays_in_line),
    TEST(count_lines_counts_every_line),
    TEST(line_table_has_all_lines_in_order),
    TEST(errors_and_cancels_end_call),
    TEST(chunk_size_is_in_bytes),
    TEST(set_cancel_flag_prevents_calls),
    TEST(two_long_lines_run_concurrently),
})
