/* SPDX-License-Identifier: MIT */
/*
 * config.c - runtime configuration: checks it and fills in defaults.
 *
 * Numbers are rows of a table: field, environment variable, default and range. The environment
 * overrides the struct. In both, a value that is not a number in the range is an error, with a
 * message that names its origin. An environment variable WEFT_... that is in no row is reported,
 * since a typo would otherwise go unnoticed.
 */
#include "rt/config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/callout.h"
#include "base/clock.h"
#include "base/cpu.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define S  UINT64_C(1000000000)

#define SEARCH_DEFAULT_NS (20 * US)

enum {
    THREAD_NAME_MAX = 8
};

/* A number to check. A value of 0 selects the default. */
struct number {
    const char *field;
    const char *variable;
    uint64_t value;
    uint64_t fallback;
    uint64_t min;
    uint64_t max;
    const char *note; /* meaning of 0, or of the ends of the range */
};

static void print_message(void *ctx, const char *text)
{
    (void)ctx;
    (void)fprintf(stderr, "weft: %s\n", text);
}

static void complain(const weft_config *config, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void complain(const weft_config *config, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (config->on_message != NULL) {
        WF_CALLOUT_BEGIN();
        config->on_message(config->message_ctx, text);
        WF_CALLOUT_END();
    } else {
        print_message(NULL, text);
    }
}

static int out_of_range(const weft_config *config, const struct number *number, const char *source,
                        const char *text)
{
    complain(config, "%s = %s: must be %" PRIu64 " to %" PRIu64 "%s%s", source, text, number->min,
             number->max, number->note != NULL ? ", or " : "",
             number->note != NULL ? number->note : "");
    return -EINVAL;
}

/* Parses a decimal number that spans the whole text. */
static bool parse_number(const char *text, uint64_t *value)
{
    if (text[0] < '0' || text[0] > '9') {
        return false;
    }
    char *end;
    int saved = errno;
    errno = 0;
    *value = strtoull(text, &end, 10);
    bool ok = errno == 0 && *end == '\0';
    errno = saved;
    return ok;
}

static bool in_range(const struct number *number, uint64_t value)
{
    return value >= number->min && value <= number->max;
}

static int resolve_number(const weft_config *config, const struct number *number, uint64_t *out)
{
    char text[32];
    const char *variable = getenv(number->variable);
    uint64_t value = number->value;
    if (variable != NULL && variable[0] != '\0') {
        bool zero_is_default = number->note != NULL && strcmp(variable, "0") == 0;
        if (!parse_number(variable, &value) || !(in_range(number, value) || zero_is_default)) {
            return out_of_range(config, number, number->variable, variable);
        }
    }
    if (value == 0) {
        value = number->fallback;
    } else if (!in_range(number, value)) {
        (void)snprintf(text, sizeof text, "%" PRIu64, value);
        return out_of_range(config, number, number->field, text);
    }
    *out = value;
    return 0;
}

static int resolve_switch(const weft_config *config, const char *field, const char *name,
                          weft_switch value, bool *out)
{
    const char *variable = getenv(name);
    if (variable != NULL && variable[0] != '\0') {
        if (strcmp(variable, "on") != 0 && strcmp(variable, "off") != 0) {
            complain(config, "%s = %s: must be on or off", name, variable);
            return -EINVAL;
        }
        value = strcmp(variable, "on") == 0 ? WEFT_ON : WEFT_OFF;
    }
    if (value != WEFT_DEFAULT && value != WEFT_ON && value != WEFT_OFF) {
        complain(config, "%s = %d: must be WEFT_DEFAULT, WEFT_ON or WEFT_OFF", field, (int)value);
        return -EINVAL;
    }
    *out = value != WEFT_OFF;
    return 0;
}

static int resolve_io(const weft_config *config, weft_io_backend *out)
{
    static const char *const names[] = {
        [WEFT_IO_AUTO] = "auto", [WEFT_IO_EPOLL] = "epoll", [WEFT_IO_URING] = "uring"
    };
    const char *variable = getenv("WEFT_IO");
    if (variable == NULL || variable[0] == '\0') {
        *out = config->io;
        if ((unsigned)config->io > WEFT_IO_URING) {
            complain(config, "io = %d: must be WEFT_IO_AUTO, WEFT_IO_EPOLL or WEFT_IO_URING",
                     (int)config->io);
            return -EINVAL;
        }
        return 0;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(variable, names[i]) == 0) {
            *out = (weft_io_backend)i;
            return 0;
        }
    }
    complain(config, "WEFT_IO = %s: must be auto, epoll or uring", variable);
    return -EINVAL;
}

/* Known environment variables. Those of numbers are also in the tables below. */
static const char *const variables[] = {
    "WEFT_WORKERS",
    "WEFT_TICK_POLLS",
    "WEFT_TICK_NS",
    "WEFT_INJECT_TARGET_NS",
    "WEFT_INJECT_INTERVAL_MIN",
    "WEFT_INJECT_INTERVAL_MAX",
    "WEFT_INJECT_CAPACITY",
    "WEFT_SEARCH_NS",
    "WEFT_PARK_TIMEOUT_NS",
    "WEFT_BLOCKING_THREADS",
    "WEFT_BLOCKING_KEEP_ALIVE_NS",
    "WEFT_MAX_IO_COMPLETIONS",
    "WEFT_FDS_EXPECTED",
    "WEFT_SEED",
    "WEFT_STEALING",
    "WEFT_LIFO",
    "WEFT_IO",
};

static bool is_known(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        if (strlen(variables[i]) == length && memcmp(variables[i], name, length) == 0) {
            return true;
        }
    }
    return false;
}

/* Reports WEFT_... variables that the library does not know, once per process. WEFT_TEST_... is
 * reserved for tests. */
static void report_unknown(const weft_config *config)
{
    static _Atomic(uint32_t) is_reported;
    static const char prefix[] = "WEFT_";
    static const char of_tests[] = "WEFT_TEST_";
    /* relaxed: only elects the thread that reports; publishes nothing. */
    if (wf_xchg_relaxed(&is_reported, 1u) != 0) {
        return;
    }
    for (char **at = environ; at != NULL && *at != NULL; at++) {
        size_t length = strcspn(*at, "=");
        if (strncmp(*at, prefix, sizeof prefix - 1) == 0 &&
            strncmp(*at, of_tests, sizeof of_tests - 1) != 0 && !is_known(*at, length)) {
            complain(config, "%.*s: weft has no such variable, and ignores it; see weft/runtime.h",
                     (int)length, *at);
        }
    }
}

static int resolve_numbers(const weft_config *config, struct wf_sched_options *options)
{
    uint64_t workers = 0;
    uint64_t tick_polls = 0;
    uint64_t interval_min = 0;
    uint64_t interval_max = 0;
    uint64_t capacity = 0;
    uint64_t threads = 0;
    uint64_t completions = 0;
    uint64_t fds = 0;
    const struct {
        struct number number;
        uint64_t *out;
    } rows[] = {
        { { "workers", "WEFT_WORKERS", config->workers, 0, 1, WEFT_WORKERS_MAX,
            "0 for one per CPU that this process may use" },
          &workers },
        { { "tick_polls", "WEFT_TICK_POLLS", config->tick_polls, 128, 1, 65535, NULL },
          &tick_polls },
        { { "tick_ns", "WEFT_TICK_NS", config->tick_ns, 500 * US, US, S, NULL },
          &options->tick_ns },
        { { "inject_target_ns", "WEFT_INJECT_TARGET_NS", config->inject_target_ns, MS, US, S,
            NULL },
          &options->inject_target_ns },
        { { "inject_interval_min", "WEFT_INJECT_INTERVAL_MIN", config->inject_interval_min, 8, 1,
            65535, NULL },
          &interval_min },
        { { "inject_interval_max", "WEFT_INJECT_INTERVAL_MAX", config->inject_interval_max, 255, 1,
            65535, NULL },
          &interval_max },
        { { "inject_capacity", "WEFT_INJECT_CAPACITY", config->inject_capacity, 65536, 1,
            SIZE_MAX / 2, NULL },
          &capacity },
        { { "park_timeout_ns", "WEFT_PARK_TIMEOUT_NS", config->park_timeout_ns, 0, US, 3600 * S,
            "0 for none" },
          &options->park_timeout_ns },
        { { "blocking_threads", "WEFT_BLOCKING_THREADS", config->blocking_threads, 512, 1, 65535,
            NULL },
          &threads },
        { { "blocking_keep_alive_ns", "WEFT_BLOCKING_KEEP_ALIVE_NS", config->blocking_keep_alive_ns,
            10 * S, US, 86400 * S, NULL },
          &options->blocking_keep_alive_ns },
        { { "max_io_completions", "WEFT_MAX_IO_COMPLETIONS", config->max_io_completions, 32, 1,
            4096, NULL },
          &completions },
        { { "fds_expected", "WEFT_FDS_EXPECTED", config->fds_expected, 4096, 1, 1 << 30, NULL },
          &fds },
        { { "seed", "WEFT_SEED", config->seed, 0, 0, UINT64_MAX, "0 for one from the clock" },
          &options->seed },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int err = resolve_number(config, &rows[i].number, rows[i].out);
        if (err != 0) {
            return err;
        }
    }
    options->workers = (unsigned)workers;
    options->tick_polls = (unsigned)tick_polls;
    options->inject_interval_min = (unsigned)interval_min;
    options->inject_interval_max = (unsigned)interval_max;
    options->inject_capacity = (size_t)capacity;
    options->blocking_threads = (unsigned)threads;
    options->io_events_max = (unsigned)completions;
    options->fds_expected = (unsigned)fds;
    return 0;
}

/* "Off" is WEFT_SEARCH_OFF in the struct and "off" in the environment. It is also the default of
 * a single worker, which gets work only from outside threads. */
static int resolve_search(const weft_config *config, struct wf_sched_options *options)
{
    const struct number number = { "search_ns",
                                   "WEFT_SEARCH_NS",
                                   config->search_ns,
                                   0,
                                   1,
                                   S,
                                   "0 for the default, or off (WEFT_SEARCH_OFF)" };
    const char *variable = getenv(number.variable);
    bool overridden = variable != NULL && variable[0] != '\0';
    bool is_default = overridden ? strcmp(variable, "0") == 0 : config->search_ns == 0;
    options->search_ns = 0;
    if (overridden ? strcmp(variable, "off") == 0 : config->search_ns == WEFT_SEARCH_OFF) {
        return 0;
    }
    if (is_default) {
        options->search_ns = options->workers == 1 ? 0 : SEARCH_DEFAULT_NS;
        return 0;
    }
    return resolve_number(config, &number, &options->search_ns);
}

static int resolve_rest(const weft_config *config, struct wf_sched_options *options)
{
    if (options->inject_interval_min > options->inject_interval_max) {
        complain(config, "inject_interval_min = %u: must not exceed inject_interval_max = %u",
                 options->inject_interval_min, options->inject_interval_max);
        return -EINVAL;
    }
    options->thread_name = config->thread_name != NULL ? config->thread_name : "weft";
    size_t length = strlen(options->thread_name);
    if (length == 0 || length > THREAD_NAME_MAX) {
        complain(config, "thread_name = '%.40s': must have 1 to %d characters",
                 options->thread_name, THREAD_NAME_MAX);
        return -EINVAL;
    }
    options->allocator = config->allocator != NULL ? *config->allocator : wf_alloc_default;
    if (options->allocator.alloc == NULL || options->allocator.free == NULL) {
        complain(config, "allocator: alloc and free must both be set");
        return -EINVAL;
    }
    return 0;
}

int wf_config_resolve(const weft_config *given, struct wf_sched_options *options)
{
    weft_config config = WEFT_CONFIG_INIT;
    if (given != NULL) {
        /* A program built with an older header has a shorter struct; fields that it does not
         * know keep their defaults. */
        if (given->size < offsetof(weft_config, workers) + sizeof config.workers ||
            given->size > sizeof config) {
            complain(&config,
                     "config.size = %zu: start from WEFT_CONFIG_INIT, and do not run with an "
                     "older library than the header's",
                     given->size);
            return -EINVAL;
        }
        memcpy(&config, given, given->size);
    }
    *options = (struct wf_sched_options){
        .on_start = config.on_start,
        .on_stop = config.on_stop,
        .on_park = config.on_park,
        .on_unpark = config.on_unpark,
        .hook_ctx = config.hook_ctx,
        .on_message = config.on_message != NULL ? config.on_message : print_message,
        .message_ctx = config.message_ctx,
    };
    report_unknown(&config);
    int err = resolve_numbers(&config, options);
    if (err == 0 && options->workers == 0) {
        unsigned cpus = wf_cpu_count();
        options->workers = cpus < WEFT_WORKERS_MAX ? cpus : WEFT_WORKERS_MAX;
    }
    if (err == 0) {
        err = resolve_search(&config, options);
    }
    if (err == 0) {
        err = resolve_switch(&config, "stealing", "WEFT_STEALING", config.stealing,
                             &options->stealing);
    }
    if (err == 0) {
        err = resolve_switch(&config, "lifo", "WEFT_LIFO", config.lifo, &options->lifo);
    }
    if (err == 0) {
        err = resolve_io(&config, &options->io_backend);
    }
    if (err == 0) {
        err = resolve_rest(&config, options);
    }
    if (err == 0 && options->seed == 0) {
        options->seed = (uint64_t)wf_clock_now();
    }
    return err;
}
