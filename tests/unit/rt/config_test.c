/* SPDX-License-Identifier: MIT */
#include "rt/config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cpu.h"
#include "test.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define S  UINT64_C(1000000000)

/* One numeric option: its location, its names and its range. */
struct row {
    const char *field;
    const char *variable;
    size_t offset; /* in weft_config */
    size_t width;
    size_t option; /* in struct wf_sched_options */
    size_t option_width;
    uint64_t fallback;
    uint64_t min;
    uint64_t max;
    bool zero_is_a_value; /* 0 in the environment is not an error */
};

#define ROW(name, variable, fallback, min, max, zero)                                              \
    {                                                                                              \
#name, variable, offsetof(weft_config, name), sizeof((weft_config *)0)->name,              \
            offsetof(struct wf_sched_options, name), sizeof((struct wf_sched_options *)0)->name,   \
            fallback, min, max, zero                                                               \
    }

static const struct row rows[] = {
    ROW(workers, "WEFT_WORKERS", 0, 1, WEFT_WORKERS_MAX, true),
    ROW(tick_polls, "WEFT_TICK_POLLS", 128, 1, 65535, false),
    ROW(tick_ns, "WEFT_TICK_NS", 500 * US, US, S, false),
    ROW(inject_target_ns, "WEFT_INJECT_TARGET_NS", MS, US, S, false),
    ROW(inject_interval_min, "WEFT_INJECT_INTERVAL_MIN", 8, 1, 65535, false),
    ROW(inject_interval_max, "WEFT_INJECT_INTERVAL_MAX", 255, 1, 65535, false),
    ROW(inject_capacity, "WEFT_INJECT_CAPACITY", 65536, 1, SIZE_MAX / 2, false),
    ROW(search_ns, "WEFT_SEARCH_NS", 20 * US, 1, S, true),
    ROW(park_timeout_ns, "WEFT_PARK_TIMEOUT_NS", 0, US, 3600 * S, true),
    ROW(blocking_threads, "WEFT_BLOCKING_THREADS", 512, 1, 65535, false),
    ROW(blocking_keep_alive_ns, "WEFT_BLOCKING_KEEP_ALIVE_NS", 10 * S, US, 86400 * S, false),
    ROW(fds_expected, "WEFT_FDS_EXPECTED", 4096, 1, 1 << 30, false),
    ROW(seed, "WEFT_SEED", 0, 0, UINT64_MAX, true),
};

enum {
    ROWS = sizeof rows / sizeof rows[0]
};

static char message[512];
static unsigned messages;

static void keep_message(void *ctx, const char *text)
{
    CHECK(ctx == &messages);
    messages++;
    (void)snprintf(message, sizeof message, "%s", text);
}

static weft_config plain_config(void)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.on_message = keep_message;
    config.message_ctx = &messages;
    return config;
}

static void clear_environment(void)
{
    for (unsigned i = 0; i < ROWS; i++) {
        CHECK_EQ(unsetenv(rows[i].variable), 0);
    }
    CHECK_EQ(unsetenv("WEFT_STEALING"), 0);
    CHECK_EQ(unsetenv("WEFT_LIFO"), 0);
    CHECK_EQ(unsetenv("WEFT_IO"), 0);
    messages = 0;
    message[0] = '\0';
}

static void set_field(weft_config *config, const struct row *row, uint64_t value)
{
    unsigned narrow = (unsigned)value;
    memcpy((char *)config + row->offset, row->width == sizeof narrow ? (void *)&narrow : &value,
           row->width);
}

static uint64_t option_of(const struct wf_sched_options *options, const struct row *row)
{
    unsigned narrow = 0;
    uint64_t wide = 0;
    memcpy(row->option_width == sizeof narrow ? (void *)&narrow : &wide,
           (const char *)options + row->option, row->option_width);
    return row->option_width == sizeof narrow ? narrow : wide;
}

/* Keeps the interval's minimum below its maximum while the test varies one of them. */
static weft_config config_for(const struct row *row)
{
    weft_config config = plain_config();
    if (strcmp(row->field, "inject_interval_min") == 0) {
        config.inject_interval_max = 65535;
    } else if (strcmp(row->field, "inject_interval_max") == 0) {
        config.inject_interval_min = 1;
    }
    return config;
}

static void check_accepted(const weft_config *config, const struct row *row, uint64_t expected)
{
    struct wf_sched_options options;
    CHECK_EQ(wf_config_resolve(config, &options), 0);
    CHECK_EQ(messages, 0);
    if (option_of(&options, row) != expected) {
        test_fail(__FILE__, __LINE__, "%s is %" PRIu64 ", wanted %" PRIu64, row->field,
                  option_of(&options, row), expected);
    }
}

/* The message names the source of the value and its range. */
static void check_rejected(const weft_config *config, const struct row *row, const char *source)
{
    struct wf_sched_options options;
    char range[64];
    messages = 0;
    CHECK_EQ(wf_config_resolve(config, &options), -EINVAL);
    CHECK_EQ(messages, 1);
    CHECK(strncmp(message, source, strlen(source)) == 0);
    (void)snprintf(range, sizeof range, "must be %" PRIu64 " to %" PRIu64, row->min, row->max);
    CHECK_HAS(message, range);
    messages = 0;
}

static void defaults_match_header(void)
{
    clear_environment();
    weft_config config = plain_config();
    const weft_config *const configs[] = { NULL, &config };
    for (unsigned i = 0; i < 2; i++) {
        struct wf_sched_options options;
        CHECK_EQ(wf_config_resolve(configs[i], &options), 0);
        CHECK_EQ(options.workers, wf_cpu_count());
        CHECK(options.stealing);
        CHECK(options.lifo);
        CHECK_EQ(options.tick_polls, 128);
        CHECK_EQ(options.tick_ns, 500000);
        CHECK_EQ(options.inject_target_ns, 1000000);
        CHECK_EQ(options.inject_interval_min, 8);
        CHECK_EQ(options.inject_interval_max, 255);
        CHECK_EQ(options.inject_capacity, 65536);
        CHECK_EQ(options.search_ns, options.workers == 1 ? 0 : 20000);
        CHECK_EQ(options.park_timeout_ns, 0);
        CHECK_EQ(options.blocking_threads, 512);
        CHECK_EQ(options.blocking_keep_alive_ns, 10 * S);
        CHECK_EQ(options.fds_expected, 4096);
        CHECK(options.seed != 0); /* From the clock. */
        CHECK(options.allocator.alloc == wf_alloc_default.alloc);
        CHECK(options.allocator.free == wf_alloc_default.free);
        CHECK_EQ(strcmp(options.thread_name, "weft"), 0);
        CHECK(options.on_start == NULL && options.on_stop == NULL);
        CHECK(options.on_park == NULL && options.on_unpark == NULL);
    }
    CHECK_EQ(messages, 0);
}

static void field_accepts_range_ends_and_rejects_values_beyond(void)
{
    clear_environment();
    for (unsigned i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];
        uint64_t widest = row->width == sizeof(unsigned) ? UINT_MAX : UINT64_MAX;
        weft_config config = config_for(row);
        if (row->min > 0) {
            set_field(&config, row, row->min);
            check_accepted(&config, row, row->min);
        }
        if (row->max < widest) {
            set_field(&config, row, row->max);
            check_accepted(&config, row, row->max);
            set_field(&config, row, row->max + 1);
            check_rejected(&config, row, row->field);
        }
        if (row->min > 1) {
            set_field(&config, row, row->min - 1);
            check_rejected(&config, row, row->field);
            set_field(&config, row, 1);
            check_rejected(&config, row, row->field);
        }
        if (row->max < widest - 1 && strcmp(row->field, "search_ns") != 0) {
            set_field(&config, row, widest);
            check_rejected(&config, row, row->field);
        }
    }
}

static void environment_overrides_each_field(void)
{
    clear_environment();
    for (unsigned i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];
        uint64_t inside = row->max / 2 > row->min ? row->max / 2 : row->max;
        const uint64_t values[] = { row->min > 0 ? row->min : 1, inside, row->max };
        for (unsigned at = 0; at < 3; at++) {
            char text[32];
            weft_config config = config_for(row);
            set_field(&config, row, row->min + 1);
            (void)snprintf(text, sizeof text, "%" PRIu64, values[at]);
            CHECK_EQ(setenv(row->variable, text, 1), 0);
            check_accepted(&config, row, values[at]);
            /* A value that the environment overrides is not checked. */
            set_field(&config, row, row->width == sizeof(unsigned) ? UINT_MAX : UINT64_MAX);
            check_accepted(&config, row, values[at]);
        }
        CHECK_EQ(setenv(row->variable, "", 1), 0);
        weft_config config = config_for(row);
        set_field(&config, row, row->min + 1);
        check_accepted(&config, row, row->min + 1);
        CHECK_EQ(unsetenv(row->variable), 0);
    }
}

static void bad_text_in_variable_is_rejected_by_name(void)
{
    clear_environment();
    static const char *const texts[] = {
        "x",    "-1",  "+1",   " 1", "1 ", "1.5",
        "0x10", "1e3", "auto", "on", "1k", "99999999999999999999"
    };
    for (unsigned i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];
        weft_config config = config_for(row);
        for (size_t at = 0; at < sizeof texts / sizeof texts[0]; at++) {
            CHECK_EQ(setenv(row->variable, texts[at], 1), 0);
            check_rejected(&config, row, row->variable);
            CHECK_HAS(message, texts[at]);
        }
        char text[32];
        if (row->max < UINT64_MAX) {
            (void)snprintf(text, sizeof text, "%" PRIu64, row->max + 1);
            CHECK_EQ(setenv(row->variable, text, 1), 0);
            check_rejected(&config, row, row->variable);
        }
        if (row->min > 1) {
            (void)snprintf(text, sizeof text, "%" PRIu64, row->min - 1);
            CHECK_EQ(setenv(row->variable, text, 1), 0);
            check_rejected(&config, row, row->variable);
        }
        CHECK_EQ(setenv(row->variable, "0", 1), 0);
        if (!row->zero_is_a_value) {
            check_rejected(&config, row, row->variable);
        }
        CHECK_EQ(unsetenv(row->variable), 0);
    }
}

static void zero_in_environment_selects_default_where_allowed(void)
{
    clear_environment();
    struct wf_sched_options options;
    weft_config config = plain_config();
    config.workers = 3;
    config.park_timeout_ns = MS;
    config.search_ns = MS;
    config.seed = 5;
    CHECK_EQ(setenv("WEFT_WORKERS", "0", 1), 0);
    CHECK_EQ(setenv("WEFT_PARK_TIMEOUT_NS", "0", 1), 0);
    CHECK_EQ(setenv("WEFT_SEARCH_NS", "0", 1), 0);
    CHECK_EQ(setenv("WEFT_SEED", "0", 1), 0);
    CHECK_EQ(wf_config_resolve(&config, &options), 0);
    CHECK_EQ(options.workers, wf_cpu_count());
    CHECK_EQ(options.park_timeout_ns, 0);
    CHECK_EQ(options.search_ns, options.workers == 1 ? 0 : 20000);
    CHECK(options.seed != 0);
    CHECK(options.seed != 5);
    clear_environment();
}

static void single_worker_does_not_search_by_default(void)
{
    clear_environment();
    struct wf_sched_options options;
    weft_config config = plain_config();
    config.workers = 1;
    CHECK_EQ(wf_config_resolve(&config, &options), 0);
    CHECK_EQ(options.search_ns, 0);
    config.search_ns = MS;
    CHECK_EQ(wf_config_resolve(&config, &options), 0);
    CHECK_EQ(options.search_ns, MS);
    config.search_ns = 0;
    CHECK_EQ(setenv("WEFT_SEARCH_NS", "77", 1), 0);
    CHECK_EQ(wf_config_resolve(&config, &options), 0);
    CHECK_EQ(options.search_ns, 77);
    CHECK_EQ(setenv("WEFT_SEARCH_NS", "", 1), 0);
    config.workers = 2;
    CHECK_EQ(wf_config_resolve(&config, &options), 0);
    CHECK_EQ(options.search_ns, 20000);
    clear_environment();
}

/* WEFT_SEARCH_OFF in the field and "off" in the environment turn the search off. 0 selects the
 * default in both. */
static void search_can_be_turned_off_in_field_and_environment(void)
{
    static const struct {
        uint64_t field;
        const char *variable;
        uint64_t wanted;
    } cases[] = {
        { 0, "", 20000 },  { WEFT_SEARCH_OFF, "", 0 },      { MS, "", MS },
        { 0, "off", 0 },   { WEFT_SEARCH_OFF, "off", 0 },   { MS, "off", 0 },
        { 0, "0", 20000 }, { WEFT_SEARCH_OFF, "0", 20000 }, { MS, "0", 20000 },
        { 0, "77", 77 },   { WEFT_SEARCH_OFF, "77", 77 },   { MS, "77", 77 },
    };
    clear_environment();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wf_sched_options options;
        weft_config config = plain_config();
        config.workers = 2;
        config.search_ns = cases[i].field;
        CHECK_EQ(setenv("WEFT_SEARCH_NS", cases[i].variable, 1), 0);
        CHECK_EQ(wf_config_resolve(&config, &options), 0);
        CHECK_EQ(options.search_ns, cases[i].wanted);
    }
    CHECK_EQ(messages, 0);
    clear_environment();
}

/* In a child, since unknown variables are reported once per process. */
static void resolve_with_typos(void)
{
    struct wf_sched_options options;
    weft_config config = plain_config();
    for (unsigned i = 0; i < ROWS; i++) {
        CHECK_EQ(setenv(rows[i].variable, "", 1), 0);
    }
    CHECK_EQ(setenv("WEFT_MAX_IO_COMPLETIONS", "", 1), 0);
    CHECK_EQ(setenv("WEFT_STEALING", "", 1), 0);
    CHECK_EQ(setenv("WEFT_LIFO", "", 1), 0);
    CHECK_EQ(setenv("WEFT_IO", "", 1), 0);
    CHECK_EQ(setenv("WEFT_TEST_ANYTHING", "1", 1), 0);
    CHECK_EQ(setenv("WEFTY", "1", 1), 0);
    CHECK_EQ(setenv("WEFT_WORKER", "2", 1), 0);
    CHECK_EQ(wf_config_resolve(&config, &options), 0);
    CHECK_EQ(messages, 1);
    CHECK_HAS(message, "WEFT_WORKER: weft has no such variable");
    CHECK_EQ(wf_config_resolve(&config, &options), 0);
    CHECK_EQ(messages, 1);
    (void)fprintf(stderr, "reported once\n");
    abort();
}

static void unknown_variables_are_reported_once(void)
{
    clear_environment();
    CHECK_ABORTS(resolve_with_typos, "reported once");
}

static void switches_are_on_off_or_default(void)
{
    static const struct {
        const char *variable;
        const char *field;
    } switches[] = { { "WEFT_STEALING", "stealing" }, { "WEFT_LIFO", "lifo" } };
    for (unsigned i = 0; i < 2; i++) {
        clear_environment();
        for (int value = -1; value <= 3; value++) {
            weft_config config = plain_config();
            struct wf_sched_options options;
            *(i == 0 ? &config.stealing : &config.lifo) = (weft_switch)value;
            messages = 0;
            int err = wf_config_resolve(&config, &options);
            if (value < 0 || value > 2) {
                CHECK_EQ(err, -EINVAL);
                CHECK_EQ(messages, 1);
                CHECK_HAS(message, switches[i].field);
                CHECK_HAS(message, "must be WEFT_DEFAULT, WEFT_ON or WEFT_OFF");
                continue;
            }
            CHECK_EQ(err, 0);
            CHECK_EQ(i == 0 ? options.stealing : options.lifo, value != WEFT_OFF);
            CHECK(i == 0 ? options.lifo : options.stealing);

            CHECK_EQ(setenv(switches[i].variable, "off", 1), 0);
            CHECK_EQ(wf_config_resolve(&config, &options), 0);
            CHECK(!(i == 0 ? options.stealing : options.lifo));
            CHECK_EQ(setenv(switches[i].variable, "on", 1), 0);
            CHECK_EQ(wf_config_resolve(&config, &options), 0);
            CHECK(i == 0 ? options.stealing : options.lifo);
            CHECK_EQ(setenv(switches[i].variable, "yes", 1), 0);
            CHECK_EQ(wf_config_resolve(&config, &options), -EINVAL);
            CHECK_HAS(message, switches[i].variable);
            CHECK_HAS(message, "yes: must be on or off");
            CHECK_EQ(unsetenv(switches[i].variable), 0);
        }
    }
    clear_environment();
}

static void io_backend_is_auto_epoll_or_uring(void)
{
    static const char *const names[] = { "auto", "epoll", "uring" };
    static const char *const bad_names[] = { "io_uring", "Epoll", "epoll ", "2", "on" };
    struct wf_sched_options options;
    weft_config config = plain_config();
    clear_environment();
    for (int value = -2; value <= 5; value++) {
        bool is_good = value >= WEFT_IO_AUTO && value <= WEFT_IO_URING;
        config.io = (weft_io_backend)value;
        messages = 0;
        CHECK_EQ(wf_config_resolve(&config, &options), is_good ? 0 : -EINVAL);
        CHECK_EQ(messages, !is_good);
        if (is_good) {
            CHECK_EQ(options.io_backend, value);
        } else {
            char text[32];
            (void)snprintf(text, sizeof text, "io = %d:", value);
            CHECK_HAS(message, text);
            CHECK_HAS(message, "WEFT_IO_URING");
        }
    }
    config.io = WEFT_IO_EPOLL;
    for (unsigned i = 0; i < 3; i++) { /* The environment overrides the field. */
        CHECK_EQ(setenv("WEFT_IO", names[i], 1), 0);
        CHECK_EQ(wf_config_resolve(&config, &options), 0);
        CHECK_EQ(options.io_backend, i);
    }
    for (unsigned i = 0; i < sizeof bad_names / sizeof bad_names[0]; i++) {
        CHECK_EQ(setenv("WEFT_IO", bad_names[i], 1), 0);
        messages = 0;
        CHECK_EQ(wf_config_resolve(&config, &options), -EINVAL);
        CHECK_EQ(messages, 1);
        CHECK_HAS(message, "WEFT_IO = ");
        CHECK_HAS(message, bad_names[i]);
    }
    CHECK_EQ(setenv("WEFT_IO", "", 1), 0); /* Like an unset variable. */
    CHECK_EQ(wf_config_resolve(&config, &options), 0);
    CHECK_EQ(options.io_backend, WEFT_IO_EPOLL);
    clear_environment();
}

static void inject_interval_min_above_max_is_rejected(void)
{
    clear_environment();
    struct wf_sched_options options;
    weft_config config = plain_config();
    config.inject_interval_min = 100;
    config.inject_interval_max = 100;
    CHECK_EQ(wf_config_resolve(&config, &options), 0);
    config.inject_interval_max = 99;
    CHECK_EQ(wf_config_resolve(&config, &options), -EINVAL);
    CHECK_HAS(message, "inject_interval_min = 100");
    CHECK_HAS(message, "inject_interval_max = 99");
    config.inject_interval_max = 0;
    CHECK_EQ(setenv("WEFT_INJECT_INTERVAL_MIN", "256", 1), 0);
    CHECK_EQ(wf_config_resolve(&config, &options), -EINVAL);
    CHECK_HAS(message, "inject_interval_min = 256");
    clear_environment();
}

static void thread_name_has_one_to_eight_characters(void)
{
    clear_environment();
    struct wf_sched_options options;
    weft_config config = plain_config();
    static const char *const good[] = { "a", "12345678" };
    static const char *const bad[] = { "", "123456789", "a name that is longer than any thread's" };
    for (unsigned i = 0; i < 2; i++) {
        config.thread_name = good[i];
        CHECK_EQ(wf_config_resolve(&config, &options), 0);
        CHECK(options.thread_name == good[i]);
    }
    for (unsigned i = 0; i < 3; i++) {
        config.thread_name = bad[i];
        CHECK_EQ(wf_config_resolve(&config, &options), -EINVAL);
        CHECK_HAS(message, "thread_name");
        CHECK_HAS(message, "1 to 8 characters");
    }
}

static void allocator_needs_both_functions(void)
{
    clear_environment();
    struct wf_sched_options options;
    weft_config config = plain_config();
    weft_allocator allocator = wf_alloc_default;
    allocator.ctx = &options;
    config.allocator = &allocator;
    CHECK_EQ(wf_config_resolve(&config, &options), 0);
    CHECK(options.allocator.ctx == &options);
    allocator.free = NULL;
    CHECK_EQ(wf_config_resolve(&config, &options), -EINVAL);
    CHECK_HAS(message, "allocator");
    allocator = wf_alloc_default;
    allocator.alloc = NULL;
    CHECK_EQ(wf_config_resolve(&config, &options), -EINVAL);
    CHECK_HAS(message, "alloc and free must both be set");
}

static void hook(void *ctx, unsigned worker)
{
    (void)ctx;
    (void)worker;
}

static void hooks_are_copied_to_options(void)
{
    clear_environment();
    struct wf_sched_options options;
    weft_config config = plain_config();
    config.on_start = hook;
    config.on_park = hook;
    config.hook_ctx = &options;
    CHECK_EQ(wf_config_resolve(&config, &options), 0);
    CHECK(options.on_start == hook);
    CHECK(options.on_stop == NULL);
    CHECK(options.on_park == hook);
    CHECK(options.on_unpark == NULL);
    CHECK(options.hook_ctx == &options);
}

static void shorter_config_is_accepted_longer_is_rejected(void)
{
    clear_environment();
    struct wf_sched_options options;
    struct {
        weft_config config;
        uint64_t more;
    } larger = { .config = plain_config() };
    weft_config *config = &larger.config;
    config->workers = 3;
    config->tick_polls = 7;
    config->seed = 99;
    config->size = offsetof(weft_config, tick_ns);
    CHECK_EQ(wf_config_resolve(config, &options), 0);
    CHECK_EQ(options.workers, 3);
    CHECK_EQ(options.tick_polls, 7);
    CHECK(options.seed != 99); /* Beyond the end of the struct. */

    /* The shortest struct that ever existed. */
    config->size = offsetof(weft_config, workers) + sizeof config->workers;
    CHECK_EQ(wf_config_resolve(config, &options), 0);
    CHECK_EQ(options.workers, 3);
    CHECK_EQ(options.tick_polls, 128);

    static const size_t bad[] = {
        0, 1, offsetof(weft_config, workers), sizeof(weft_config) + 1, sizeof larger, SIZE_MAX
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        config->size = bad[i];
        CHECK_EQ(wf_config_resolve(config, &options), -EINVAL);
    }
}

static void resolve_wrong_size(void)
{
    clear_environment();
    struct wf_sched_options options;
    weft_config config = { 0 };
    if (wf_config_resolve(&config, &options) == -EINVAL) {
        abort();
    }
}

static void resolve_wrong_value_without_hook(void)
{
    clear_environment();
    struct wf_sched_options options;
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = WEFT_WORKERS_MAX + 1;
    if (wf_config_resolve(&config, &options) == -EINVAL) {
        abort();
    }
}

static void messages_go_to_stderr_without_hook(void)
{
    CHECK_ABORTS(resolve_wrong_size, "weft: config.size = 0: start from WEFT_CONFIG_INIT");
    CHECK_ABORTS(resolve_wrong_value_without_hook,
                 "weft: workers = 1025: must be 1 to 1024, or 0 for one per CPU");
}

static void create_with_bad_config_returns_einval(void)
{
    clear_environment();
    weft_config config = plain_config();
    config.tick_polls = 65536;
    weft_runtime *rt = NULL;
    CHECK_EQ(weft_runtime_create(&rt, &config), -EINVAL);
    CHECK(rt == NULL);
    CHECK_EQ(messages, 1);
    CHECK_HAS(message, "tick_polls = 65536: must be 1 to 65535");
}

/* --- Ranges in the header ----------------------------------------------------------------- */

static char header[32 * 1024];

/* Reads the header from this file's source tree, without asterisks and with runs of spaces
 * collapsed to one. */
static bool read_header(void)
{
    char path[1000];
    const char *end = strstr(__FILE__, "tests/unit/rt/");
    CHECK(end != NULL);
    (void)snprintf(path, sizeof path, "%.*sinclude/weft/runtime.h", (int)(end - __FILE__),
                   __FILE__);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return false;
    }
    size_t length = 0;
    int byte;
    while ((byte = fgetc(file)) != EOF) {
        byte = byte == '\n' || byte == '*' ? ' ' : byte;
        if (byte != ' ' || (length > 0 && header[length - 1] != ' ')) {
            CHECK(length < sizeof header - 1);
            header[length++] = (char)byte;
        }
    }
    header[length] = '\0';
    CHECK_EQ(fclose(file), 0);
    return true;
}

/* Returns a bound as the header writes it, or NULL if it is not in the table. */
static const char *bound_text(const struct row *row, uint64_t bound)
{
    static const struct {
        uint64_t bound;
        const char *text;
    } known[] = {
        { 1, "1" },
        { US, "1 us" },
        { S, "1 s" },
        { 3600 * S, "1 h" },
        { 86400 * S, "1 day" },
        { 1 << 30, "2^30" },
        { 65535, "65535" },
        { SIZE_MAX / 2, "2^63 - 1" },
    };
    if (bound == 1 && strcmp(row->field, "search_ns") == 0) {
        return "1 ns";
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].bound == bound) {
            return known[i].text;
        }
    }
    return NULL;
}

/* Returns whether the comment around a name, up to a little after it, has this text. */
static bool comment_has(const char *name, const char *wanted)
{
    char comment[2000];
    const char *begin = name;
    while (begin > header && strncmp(begin, "/ ", 2) != 0) {
        begin--;
    }
    (void)snprintf(comment, sizeof comment, "%.*s", (int)(name - begin + 40), begin);
    return strstr(comment, wanted) != NULL;
}

/* The comment that names a variable states its range. */
static void header_documents_each_range(void)
{
    if (!read_header()) {
        test_skip("the source of the header is not here");
        return;
    }
    for (unsigned i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];
        const char *min = bound_text(row, row->min);
        const char *max = bound_text(row, row->max);
        if (min == NULL || max == NULL) {
            continue; /* Any number, or WEFT_WORKERS_MAX. */
        }
        char wanted[64];
        (void)snprintf(wanted, sizeof wanted, "%s to %s", min, max);
        bool is_documented = false;
        const char *name = header;
        while ((name = strstr(name, row->variable)) != NULL) {
            is_documented = is_documented || comment_has(name, wanted);
            name++;
        }
        if (!is_documented) {
            test_fail(__FILE__, __LINE__, "no comment about %s says '%s'", row->variable, wanted);
        }
    }
}

TEST_MAIN({
    TEST(header_documents_each_range),
    TEST(unknown_variables_are_reported_once), /* Early: no runtime may exist yet. */
    TEST(defaults_match_header),
    TEST(field_accepts_range_ends_and_rejects_values_beyond),
    TEST(environment_overrides_each_field),
    TEST(bad_text_in_variable_is_rejected_by_name),
    TEST(zero_in_environment_selects_default_where_allowed),
    TEST(single_worker_does_not_search_by_default),
    TEST(search_can_be_turned_off_in_field_and_environment),
    TEST(switches_are_on_off_or_default),
    TEST(io_backend_is_auto_epoll_or_uring),
    TEST(inject_interval_min_above_max_is_rejected),
    TEST(thread_name_has_one_to_eight_characters),
    TEST(allocator_needs_both_functions),
    TEST(hooks_are_copied_to_options),
    TEST(shorter_config_is_accepted_longer_is_rejected),
    TEST(messages_go_to_stderr_without_hook),
    TEST(create_with_bad_config_returns_einval),
})
