/* SPDX-License-Identifier: MIT */
/*
 * resolve_test.c - name resolution: numeric addresses immediately, names on another thread, which
 * may take too long.
 */
#include "net/resolve.h"

#include <errno.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include <weft.h>

#include "memory.h"
#include "names.h"
#include "ports.h"
#include "rt.h"
#include "test.h"

enum {
    MANY = 100,
};

static int resolve(const char *place)
{
    weft_address addresses[4];
    return weft_resolve(addresses, 4, place, WEFT_NEVER);
}

static void check_address(const weft_address *address, const char *wanted)
{
    char text[WEFT_ADDRESS_TEXT_MAX];
    (void)weft_address_print(address, text, sizeof text);
    if (strcmp(text, wanted) != 0) {
        test_fail(__FILE__, __LINE__, "'%s' was found, not '%s'", text, wanted);
    }
}

/* --- Numeric addresses --------------------------------------------------------------- */

static int resolve_numbers(void *arg)
{
    static const char *const places[] = { "127.0.0.1:80", "tcp://127.0.0.1:80",
                                          "[::1]:80",     "udp://127.0.0.1:0",
                                          "unix:/x",      "unixgram:@x" };
    weft_address address;
    (void)arg;
    for (unsigned i = 0; i < sizeof places / sizeof places[0]; i++) {
        CHECK_EQ(weft_resolve(&address, 1, places[i], 0), 1);
        CHECK(address.size > 0);
    }
    CHECK_EQ(weft_resolve(&address, 1, "127.0.0.1:80", 0), 1);
    check_address(&address, "127.0.0.1:80");
    return 0;
}

/* An available answer wins over a deadline that has passed. */
static void numeric_addresses_resolve_immediately(void)
{
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_run(rt, resolve_numbers, NULL), 0);
    weft_runtime_destroy(rt);
}

static int resolve_into_nothing(void *arg)
{
    (void)arg;
    CHECK_EQ(weft_resolve(NULL, 0, "127.0.0.1:80", WEFT_NEVER), -EINVAL);
    CHECK_EQ(weft_resolve(NULL, 0, "localhost:80", WEFT_NEVER), -EINVAL);
    return 0;
}

static void resolve_into_empty_array_returns_einval(void)
{
    port_run(1, resolve_into_nothing, NULL);
}

/* --- Names --------------------------------------------------------------------------- */

static int resolve_localhost(void *arg)
{
    static const char *const places[] = { "localhost:80", "tcp://localhost:80",
                                          "udp://localhost:80" };
    (void)arg;
    for (unsigned i = 0; i < 3; i++) {
        weft_address addresses[8];
        int count = weft_resolve(addresses, 8, places[i], WEFT_NEVER);
        CHECK_GE(count, 1);
        CHECK_LE(count, 8);
        for (int j = 0; j < count; j++) {
            CHECK_EQ(weft_address_port(&addresses[j]), 80);
            bool is_v4 = addresses[j].to.any.sa_family == AF_INET;
            check_address(&addresses[j], is_v4 ? "127.0.0.1:80" : "[::1]:80");
        }
    }
    return 0;
}

static void localhost_is_this_machine(void)
{
    port_run_all(resolve_localhost, NULL);
}

static int resolve_unknown_name(void *arg)
{
    (void)arg;
    int err = resolve("no-such-host.invalid:80");
    CHECK(err == WEFT_ENONAME || err == -EAGAIN); /* There may be no name server. */
    return 0;
}

static void unknown_name_returns_enoname(void)
{
    port_run_all(resolve_unknown_name, NULL);
}

static const char *const three[] = { "127.0.0.1", "127.0.0.2", "127.0.0.3", NULL };

static int resolve_three(void *arg)
{
    weft_address addresses[5];
    (void)arg;
    CHECK_EQ(weft_resolve(addresses, 5, "tcp://three.test:7", WEFT_NEVER), 3);
    check_address(&addresses[0], "127.0.0.1:7");
    check_address(&addresses[1], "127.0.0.2:7");
    check_address(&addresses[2], "127.0.0.3:7");
    memset(addresses, 0x55, sizeof addresses);
    CHECK_EQ(weft_resolve(addresses, 2, "three.test:7", WEFT_NEVER), 2);
    check_address(&addresses[1], "127.0.0.2:7");
    CHECK_EQ(addresses[2].size, 0x55555555); /* Not written. */
    return 0;
}

static void addresses_of_name_are_returned_in_order(void)
{
    names_set(three);
    port_run_all(resolve_three, NULL);
}

static int resolve_too_many(void *arg)
{
    weft_address addresses[MANY];
    (void)arg;
    int count = weft_resolve(addresses, MANY, "many.test:7", WEFT_NEVER);
    CHECK_GE(count, 10);
    CHECK_LE(count, MANY);
    for (int i = 0; i < count; i++) {
        check_address(&addresses[i], "127.0.0.9:7");
    }
    return 0;
}

static void name_may_have_more_addresses_than_fit(void)
{
    const char *numbers[MANY + 1];
    for (unsigned i = 0; i < MANY; i++) {
        numbers[i] = "127.0.0.9";
    }
    numbers[MANY] = NULL;
    names_set(numbers);
    port_run(2, resolve_too_many, NULL);
}

static int resolve_failures(void *arg)
{
    static const struct {
        int code;
        int error;
        int wanted;
    } cases[] = { { EAI_NONAME, 0, WEFT_ENONAME },
                  { EAI_NODATA, 0, WEFT_ENONAME },
                  { EAI_AGAIN, 0, -EAGAIN },
                  { EAI_MEMORY, 0, -ENOMEM },
                  { EAI_FAIL, 0, WEFT_ENONAME },
                  { EAI_ADDRFAMILY, 0, WEFT_ENONAME },
                  { EAI_NONAME, ENOENT, WEFT_ENONAME },
                  { EAI_SYSTEM, ENOENT, -ENOENT },
                  { EAI_NONAME, EMFILE, -EMFILE },
                  { EAI_SERVICE, EMFILE, -EMFILE },
                  { EAI_NONAME, ENFILE, -ENFILE },
                  { EAI_NODATA, ENOMEM, -ENOMEM },
                  { EAI_AGAIN, EMFILE, -EMFILE },
                  { EAI_SYSTEM, ENFILE, -ENFILE } };
    (void)arg;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        names_fail(cases[i].code, cases[i].error);
        CHECK_EQ(resolve("broken.test:80"), cases[i].wanted);
    }
    return 0;
}

static void getaddrinfo_errors_are_translated(void)
{
    port_run(1, resolve_failures, NULL);
}

static int resolve_services(void *arg)
{
    weft_address address;
    (void)arg;
    CHECK_EQ(resolve("localhost:no-such-service"), WEFT_ENONAME);
    if (getservbyname("http", "tcp") == NULL) {
        test_skip("/etc/services does not have http");
        return 0;
    }
    CHECK_EQ(weft_resolve(&address, 1, "tcp://localhost:http", WEFT_NEVER), 1);
    CHECK_EQ(weft_address_port(&address), 80);
    CHECK_EQ(weft_resolve(&address, 1, "127.0.0.1:http", WEFT_NEVER), 1);
    check_address(&address, "127.0.0.1:80");
    return 0;
}

static void service_name_may_replace_port(void)
{
    port_run_all(resolve_services, NULL);
}

static int resolve_for_both_sides(void *arg)
{
    weft_address address;
    (void)arg;
    if (getservbyname("http", "tcp") == NULL) {
        return 0;
    }
    CHECK_EQ(wf_resolve(&address, 1, ":http", true, WEFT_NEVER, "test"), 1);
    CHECK(address.to.any.sa_family == AF_INET6 ||
          address.to.v4.sin_addr.s_addr == htonl(INADDR_ANY));
    CHECK_EQ(weft_address_port(&address), 80);
    return 0;
}

static void missing_host_is_wildcard_when_listening(void)
{
    port_run(1, resolve_for_both_sides, NULL);
}

/* --- Invalid endpoints --------------------------------------------------------------- */

static int resolve_junk(void *arg)
{
    static const char *const places[] = {
        "",     ":",      "localhost", "localhost:", "[localhost:80", "[::1]",
        "[::1", "::1:80", "a:b:c",     "tcp://",     "udp://:"
    };
    (void)arg;
    for (unsigned i = 0; i < sizeof places / sizeof places[0]; i++) {
        CHECK_EQ(resolve(places[i]), -EINVAL);
    }
    CHECK_EQ(resolve("unix:"), -EINVAL);
    CHECK_EQ(resolve("unixgram:@"), -EINVAL);
    char place[400];
    memset(place, 'x', sizeof place);
    memcpy(place, "unix:", 5);
    place[200] = '\0';
    CHECK_EQ(resolve(place), -ENAMETOOLONG);
    memset(place, 'x', 300);
    memcpy(place + 300, ":80", 4);
    CHECK_EQ(resolve(place), -EINVAL);
    CHECK_EQ(resolve("localhost:00000000000000000000000000000000000080"), -EINVAL);
    return 0;
}

static void invalid_endpoints_are_refused(void)
{
    port_run(1, resolve_junk, NULL);
}

static int resolve_bad_ports(void *arg)
{
    static const char *const places[] = { "localhost:65536", "127.0.0.1:65536",
                                          "[::1]:65536",     "localhost:-1",
                                          "127.0.0.1:-1",    "127.0.0.1:+80",
                                          "127.0.0.1: 80",   "localhost: 80",
                                          "127.0.0.1:65616", "localhost:4294967376" };
    (void)arg;
    for (unsigned i = 0; i < sizeof places / sizeof places[0]; i++) {
        int result = resolve(places[i]);
        if (result >= 0) {
            test_fail(__FILE__, __LINE__, "'%s' was found", places[i]);
        }
    }
    return 0;
}

static void invalid_ports_are_refused(void)
{
    port_run(1, resolve_bad_ports, NULL);
}

/* --- Timeouts and cancellation ------------------------------------------------------- */

static weft_runtime *start_with_pool(unsigned threads)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 1;
    config.blocking_threads = threads;
    names_set(three);
    names_hold();
    atomic_store(&names_begun, 0);
    atomic_store(&names_ended, 0);
    return test_start_with(&config);
}

static int resolve_late(void *arg)
{
    weft_address address;
    return weft_resolve(&address, 1, "late.test:80", *(weft_time *)arg);
}

static void resolve_returns_at_deadline_without_answer(void)
{
    weft_runtime *rt = start_with_pool(4);
    weft_time deadline = 0;
    CHECK_EQ(test_run(rt, resolve_late, &deadline), WEFT_ETIMEDOUT);
    deadline = weft_after(2 * WEFT_MS);
    CHECK_EQ(test_run(rt, resolve_late, &deadline), WEFT_ETIMEDOUT);
    CHECK_GE(weft_now(), deadline);
    names_release();
    weft_runtime_destroy(rt); /* Waits for the threads, which free their results. */
    CHECK_EQ(atomic_load(&names_begun), atomic_load(&names_ended));
}

static void canceled_resolve_returns_without_answer(void)
{
    weft_runtime *rt = start_with_pool(4);
    weft_time deadline = WEFT_NEVER;
    weft_task *task = test_go_first(rt, resolve_late, &deadline);
    test_wait_for(&names_begun, 1);
    weft_cancel(task);
    CHECK_EQ(test_join_soon(task), WEFT_ECANCELED);
    CHECK_EQ(atomic_load(&names_ended), 0);
    names_release();
    weft_runtime_destroy(rt);
    CHECK_EQ(atomic_load(&names_ended), 1);
}

/* All pool threads are busy: a caller that gives up removes its request from the queue. */
static void abandoned_request_is_not_looked_up(void)
{
    weft_runtime *rt = start_with_pool(1);
    weft_time never = WEFT_NEVER;
    weft_time soon = weft_after(2 * WEFT_MS);
    weft_task *first = test_go_first(rt, resolve_late, &never);
    test_wait_for(&names_begun, 1);
    CHECK_EQ(test_run(rt, resolve_late, &soon), WEFT_ETIMEDOUT);
    weft_task *third = test_go_first(rt, resolve_late, &never);
    weft_cancel(third);
    CHECK_EQ(test_join_soon(third), WEFT_ECANCELED);
    names_release();
    CHECK_EQ(test_join_soon(first), 1);
    CHECK_EQ(test_run(rt, resolve_late, &never), 1); /* Behind those, if still queued. */
    CHECK_EQ(atomic_load(&names_begun), 2);
    weft_runtime_destroy(rt);
}

/* The runtime ends during one lookup, and while another waits for a thread. */
static void runtime_may_end_during_lookup(void)
{
    weft_runtime *rt = start_with_pool(1);
    weft_time never = WEFT_NEVER;
    weft_task *one = test_go_first(rt, resolve_late, &never);
    weft_task *two = test_go_first(rt, resolve_late, &never);
    test_wait_for(&names_begun, 1);
    weft_detach(one);
    weft_detach(two);
    names_release();
    weft_runtime_destroy(rt);
    CHECK_EQ(atomic_load(&names_begun), atomic_load(&names_ended));
}

static int resolve_and_race(void *arg)
{
    weft_address address;
    uintptr_t index = (uintptr_t)arg;
    for (uint64_t i = test_scale(200); i > 0; i--) {
        weft_time deadline = weft_after((weft_time)(index * i % 50) * WEFT_US);
        int result = weft_resolve(&address, 1, "race.test:80", deadline);
        CHECK(result == 1 || result == WEFT_ETIMEDOUT || result == WEFT_ECANCELED);
        if (result == 1) {
            check_address(&address, "127.0.0.1:80");
        }
    }
    return 0;
}

/*
 * Goal:   when an answer races with a deadline, the request is freed once.
 * Method: many requests with deadlines of a few microseconds; some callers are canceled.
 */
static void answer_that_races_with_deadline_is_freed_once(void)
{
    static const unsigned workers[] = { 1, 2, 8 };
    names_set(three);
    for (unsigned i = 0; i < 3; i++) {
        weft_runtime *rt = test_start(workers[i]);
        weft_task *tasks[10];
        for (uintptr_t j = 0; j < 10; j++) {
            tasks[j] = test_go(rt, resolve_and_race, (void *)j);
        }
        weft_cancel(tasks[3]);
        weft_cancel(tasks[7]);
        for (unsigned j = 0; j < 10; j++) {
            CHECK_EQ(test_join_soon(tasks[j]), 0);
        }
        weft_runtime_destroy(rt);
    }
}

/* --- Other contexts ------------------------------------------------------------------ */

static int resolve_in_blocking_job(void *arg)
{
    (void)arg;
    return resolve("localhost:80") >= 1 ? 0 : -EIO;
}

static void blocking_job_can_resolve_names(void)
{
    weft_runtime *rt = test_start(1);
    weft_task *job;
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &job, resolve_in_blocking_job, NULL), 0);
    CHECK_EQ(test_join_soon(job), 0);
    weft_runtime_destroy(rt);
}

static int resolve_without_memory(void *arg)
{
    return resolve(arg);
}

static int try_without_memory(void *arg)
{
    char number[] = "127.0.0.1:80";
    char name[] = "localhost:80";
    (void)arg;
    CHECK_EQ(result_without_memory(resolve_without_memory, number), 1);
    CHECK_EQ(result_without_memory(resolve_without_memory, name), -ENOMEM);
    CHECK_GE(resolve("localhost:80"), 1);
    return 0;
}

static void resolve_without_memory_returns_enomem(void)
{
    port_run(1, try_without_memory, NULL);
}

/* The C library reports that the name does not exist. */
static int resolve_without_descriptors(void *arg)
{
    struct rlimit before;
    weft_stream *stream;
    (void)arg;
    CHECK_GE(resolve("localhost:80"), 1);
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit none = { .rlim_cur = 0, .rlim_max = before.rlim_max };
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    int resolved = resolve("localhost:80");
    int service = resolve("localhost:http");
    int connected = weft_connect(&stream, "tcp://localhost:1", NULL, WEFT_NEVER);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    CHECK_EQ(resolved, -EMFILE);
    CHECK_EQ(service, -EMFILE);
    CHECK_EQ(connected, -EMFILE);
    CHECK_GE(resolve("localhost:80"), 1);
    return 0;
}

static void resolve_out_of_descriptors_fails_with_emfile(void)
{
    port_run(1, resolve_without_descriptors, NULL);
}

static int resolve_name_in_stackless_task(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    return resolve("localhost:80");
}

static int misuse_in_stackless_task(void *arg)
{
    weft_task *task;
    (void)arg;
    CHECK_EQ(weft_spawn(&task, &(weft_spec){ .body = resolve_name_in_stackless_task }), 0);
    return weft_join(task, NULL, WEFT_NEVER);
}

static void run_misuse(void)
{
    CHECK_EQ(weft_run(NULL, misuse_in_stackless_task, NULL), 0);
}

static void resolve_in_stackless_task_aborts_with_message(void)
{
    CHECK_ABORTS(run_misuse, "weft_resolve");
    CHECK_ABORTS(run_misuse, "resolve names in a fiber");
}

TEST_MAIN({
    TEST(resolve_in_stackless_task_aborts_with_message),
    TEST(numeric_addresses_resolve_immediately),
    TEST(resolve_into_empty_array_returns_einval),
    TEST(localhost_is_this_machine),
    TEST(unknown_name_returns_enoname),
    TEST(addresses_of_name_are_returned_in_order),
    TEST(name_may_have_more_addresses_than_fit),
    TEST(getaddrinfo_errors_are_translated),
    TEST(service_name_may_replace_port),
    TEST(missing_host_is_wildcard_when_listening),
    TEST(invalid_endpoints_are_refused),
    TEST(resolve_returns_at_deadline_without_answer),
    TEST(canceled_resolve_returns_without_answer),
    TEST(abandoned_request_is_not_looked_up),
    TEST(runtime_may_end_during_lookup),
    TEST(answer_that_races_with_deadline_is_freed_once),
    TEST(blocking_job_can_resolve_names),
    TEST(resolve_out_of_descriptors_fails_with_emfile),
    TEST_DEBUG(resolve_without_memory_returns_enomem),
    TEST(invalid_ports_are_refused),
})
