/* SPDX-License-Identifier: MIT */
/*
 * explore_litmus.c - the ways to explore: what each finds and misses, and that the
 * reduction of MC_ALL loses nothing.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "litmus.h"

/* --- Bounds, and chance --------------------------------------------------------------- */

static atomic_int a;
static atomic_int b;
static atomic_int c;

static void first(void *arg)
{
    (void)arg;
    store(&a, 1, SC);
    if (load(&b, SC) == 1) {
        store(&c, 1, SC);
    }
}

static void second(void *arg)
{
    (void)arg;
    if (load(&a, SC) == 1) {
        store(&b, 1, SC);
        mc_assert(load(&c, SC) == 0);
    }
}

/* Fails only if each thread is interrupted once. */
static void needs_two_preemptions(void)
{
    mc_go(first, NULL);
    mc_go(second, NULL);
    mc_join();
}

static void count_up(void *arg)
{
    (void)arg;
    for (int i = 0; i < 40; i++) {
        (void)fetch_add(&b, 1, RLX);
    }
}

static void wait_for_forty(void *arg)
{
    (void)arg;
    mc_assert(load(&b, RLX) != 40 || load(&a, RLX) == 0);
    store(&a, 1, RLX);
}

/* One thread must run to its end before another begins. */
static void needs_a_long_run(void)
{
    mc_go(wait_for_forty, NULL);
    mc_go(count_up, NULL);
    mc_go(count_up, NULL);
    mc_go(wait_for_forty, NULL);
    mc_join();
}

/* --- Random programs -------------------------------------------------------------------- */

/*
 * Goal:   MC_ALL finds the outcomes that MC_STATES finds, which is simple enough to
 *         be believed; and a deadlock where that finds one.
 * Method: many small programs by chance. The outcome is a hash of all that was read
 *         and of what is left. (F-G's choice of threads, which is right without
 *         sleep sets, fails here for one program in a hundred.)
 */
enum {
    WORDS = 3,
    THREADS_MAX = 4,
    OPS_MAX = 3,
    PROGRAMS = 900,
    DEEP_PROGRAMS = 20000,
};

enum kind {
    LOAD,
    STORE,
    EXCHANGE,
    CAS,
    WEAK_CAS,
    ADD,
    ADD_NOTHING,
    FENCE,
    LOAD_AND_STORE,
    LOCK,
    WAIT,
    WAKE,
    SPIN,
    SPIN_ON_TWO,
    AWAIT,
    CHOOSE,
    CLOCK,
    PUBLISH,
    RECEIVE,
    /* These may wait for ever. */
    SLEEP,
    LOCK_BOTH,
    COND_WAIT,
    COND_SIGNAL,
    KINDS,
};

struct op {
    enum kind kind;
    int word;
    int order;
    int value;
};

struct program {
    unsigned threads;
    unsigned ops;
    struct op op[THREADS_MAX][OPS_MAX];
};

static atomic_int words[WORDS];
static _Atomic(uint32_t) gate;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int guarded;
static pthread_mutex_t mutexes[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int guarded_twice;
static _Atomic(uint32_t) token;
static int held;
static int parcel;
static atomic_int parcel_state;
static int results[THREADS_MAX][OPS_MAX];

static int spin_a_little(atomic_int *word, int order)
{
    int value = 0;
    for (int i = 0; i < 10 && value == 0; i++) {
        value = load(word, order);
    }
    return value;
}

static int add_under_lock(void)
{
    pthread_mutex_lock(&mutex);
    int value = ++guarded;
    pthread_mutex_unlock(&mutex);
    return value;
}

static int wait_at_gate(void)
{
    if (mc_futex_wait(&gate, 0, 1) != 0) {
        return 1;
    }
    return 2 + (int)atomic_load_explicit(&gate, memory_order_relaxed);
}

static int sleep_at_gate(void)
{
    return mc_futex_wait(&gate, 0, INT64_MAX);
}

static int lock_both(int first)
{
    pthread_mutex_lock(&mutexes[first]);
    pthread_mutex_lock(&mutexes[1 - first]);
    int value = ++guarded_twice;
    pthread_mutex_unlock(&mutexes[1 - first]);
    pthread_mutex_unlock(&mutexes[first]);
    return value;
}

static int wait_on_cond(void)
{
    pthread_mutex_lock(&mutexes[0]);
    pthread_cond_wait(&cond, &mutexes[0]);
    pthread_mutex_unlock(&mutexes[0]);
    return 1;
}

static int open_gate(void)
{
    atomic_store_explicit(&gate, 1, memory_order_relaxed);
    return mc_futex_wake(&gate, 1);
}

/* A fence or an exchange that fails is part of the round. */
static int spin_on_two(atomic_int *one, atomic_int *two, const struct op *op)
{
    int seen = 0;
    int other = 0;
    for (int i = 0; i < 10 && seen == 0 && other == 0; i++) {
        seen = load(one, op->order);
        if (op->value % 3 == 0) {
            fence(SC);
        } else if (op->value % 3 == 1) {
            (void)cas(&parcel_state, 7, 8, op->order);
        }
        other = load(two, op->order);
    }
    return 100 * seen + other;
}

static int take_and_return_token(void)
{
    mc_await_exchange(&token, 0, 1);
    int value = ++held;
    atomic_store_explicit(&token, 0, memory_order_release);
    return value;
}

/* The first who comes fills the parcel; only then may it be read. */
static int publish(int value)
{
    if (cas(&parcel_state, 0, 1, RLX) != 0) {
        return 0;
    }
    parcel = value;
    store(&parcel_state, 2, REL);
    return 1;
}

static int receive(int order)
{
    int state = load(&parcel_state, order);
    if (order == RLX) {
        fence(ACQ);
    }
    return state == 2 ? parcel : -state;
}

static int advance_clock(int ns)
{
    mc_clock_advance(ns);
    return (int)mc_clock_now();
}

static int weak_cas(atomic_int *word, int desired)
{
    int expected = 0;
    bool done = atomic_compare_exchange_weak_explicit(word, &expected, desired,
                                                      memory_order_acq_rel, memory_order_relaxed);
    return 2 * expected + done;
}

static int run_op(const struct op *op)
{
    atomic_int *word = &words[op->word];
    switch (op->kind) {
    case LOAD:
        return load(word, op->order);
    case STORE:
        store(word, op->value, op->order);
        return 0;
    case EXCHANGE:
        return exchange(word, op->value, op->order);
    case CAS:
        return cas(word, 0, op->value, op->order);
    case WEAK_CAS:
        return weak_cas(word, op->value);
    case ADD:
        return fetch_add(word, 16, op->order);
    case ADD_NOTHING:
        return fetch_add(word, 0, op->order);
    case FENCE:
        fence(op->order);
        return 0;
    case LOAD_AND_STORE:
        if (load(word, op->order) == 0) {
            store(&words[(op->word + 1) % WORDS], op->value, RLX);
        }
        return 0;
    case LOCK:
        return add_under_lock();
    case WAIT:
        return wait_at_gate();
    case WAKE:
        return open_gate();
    case SPIN:
        return spin_a_little(word, op->order);
    case SPIN_ON_TWO:
        return spin_on_two(word, &words[(op->word + 1) % WORDS], op);
    case AWAIT:
        return take_and_return_token();
    case CHOOSE:
        return (int)mc_choose(2);
    case CLOCK:
        return advance_clock(op->value);
    case PUBLISH:
        return publish(op->value);
    case RECEIVE:
        return receive(op->order);
    case SLEEP:
        return sleep_at_gate();
    case LOCK_BOTH:
        return lock_both(op->word % 2);
    case COND_WAIT:
        return wait_on_cond();
    case COND_SIGNAL:
        return pthread_cond_signal(&cond);
    case KINDS:
        break;
    }
    return 0;
}

static void run_thread(void *arg)
{
    unsigned index = (unsigned)(uintptr_t)arg;
    const struct program *program = mc_arg();
    for (unsigned i = 0; i < program->ops; i++) {
        results[index][i] = run_op(&program->op[index][i]);
    }
}

static void run_program(void)
{
    const struct program *program = mc_arg();
    for (unsigned i = 0; i < program->threads; i++) {
        mc_go(run_thread, (void *)(uintptr_t)i);
    }
    mc_join();
    uint64_t hash = (uint64_t)guarded;
    for (unsigned i = 0; i < program->threads; i++) {
        for (unsigned j = 0; j < program->ops; j++) {
            hash = hash * 1000003 + (uint64_t)results[i][j];
        }
    }
    for (unsigned i = 0; i < WORDS; i++) {
        hash = hash * 1000003 + (uint64_t)load(&words[i], RLX);
    }
    mc_note((int)((hash ^ hash >> 31) & 0x3fffffff));
}

static uint64_t random_state;

static unsigned random_below(unsigned count)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % count;
}

static int random_order(enum kind kind, unsigned sc_percent)
{
    static const int loads[] = { RLX, ACQ };
    static const int stores[] = { RLX, REL };
    static const int updates[] = { RLX, ACQ, REL, AR };
    static const int fences[] = { ACQ, REL, AR, SC, SC, SC };
    if (kind == FENCE) {
        return fences[random_below(6)];
    }
    if (random_below(100) < sc_percent) {
        return SC;
    }
    if (kind == STORE) {
        return stores[random_below(2)];
    }
    if (kind == EXCHANGE || kind == CAS || kind == ADD || kind == ADD_NOTHING) {
        return updates[random_below(4)];
    }
    return loads[random_below(2)];
}

static void make_program(struct program *program, bool is_early, bool may_hang)
{
    static const enum kind kinds[] = { SPIN_ON_TWO,   LOAD,  LOAD,        LOAD,  LOAD,    LOAD,
                                       STORE,         STORE, STORE,       STORE, CAS,     CAS,
                                       WEAK_CAS,      ADD,   ADD_NOTHING, FENCE, FENCE,   FENCE,
                                       EXCHANGE,      LOCK,  WAIT,        WAIT,  WAKE,    WAKE,
                                       SPIN,          AWAIT, CHOOSE,      CLOCK, PUBLISH, RECEIVE,
                                       LOAD_AND_STORE };
    unsigned sc_percent = is_early ? 0 : 25 * random_below(4);
    unsigned word_count = 1 + random_below(WORDS);
    program->threads = 2 + random_below(THREADS_MAX - 1);
    program->ops = program->threads == 4 ? 2 : 2 + random_below(OPS_MAX - 1);
    int value = 1;
    for (unsigned i = 0; i < program->threads; i++) {
        for (unsigned j = 0; j < program->ops; j++) {
            enum kind kind = kinds[random_below(sizeof kinds / sizeof kinds[0])];
            if (may_hang && random_below(2) == 0) {
                kind = SLEEP + random_below(KINDS - SLEEP);
            }
            int order = random_order(kind, sc_percent);
            program->op[i][j] = (struct op){
                .kind = kind,
                .word = (int)random_below(word_count),
                .order = order,
                .value = value++,
            };
        }
    }
}

/* --- The table: the tests above, and the programs ------------------------------------------ */

static const struct mc_test fixed[] = {
    { .name = "all_needs_no_luck", .run = needs_two_preemptions, .expect = MC_ASSERTION },
    { .name = "one_preemption_is_too_few",
      .run = needs_two_preemptions,
      .preemptions = 1,
      .deep_preemptions = 1 },
    { .name = "two_preemptions_are_enough",
      .run = needs_two_preemptions,
      .preemptions = 2,
      .deep_preemptions = 2,
      .expect = MC_ASSERTION },
    { .name = "random_finds_it",
      .run = needs_two_preemptions,
      .mode = MC_RANDOM,
      .runs = 1000,
      .expect = MC_ASSERTION },
    { .name = "pct_finds_it",
      .run = needs_two_preemptions,
      .mode = MC_PCT,
      .runs = 1000,
      .expect = MC_ASSERTION },
    { .name = "random_misses_a_long_run", .run = needs_a_long_run, .mode = MC_RANDOM, .runs = 100 },
    { .name = "pct_finds_a_long_run",
      .run = needs_a_long_run,
      .mode = MC_PCT,
      .runs = 1000,
      .expect = MC_ASSERTION },
};

enum {
    FIXED = sizeof fixed / sizeof fixed[0],
    NAME_MAX_HERE = 24,
};

int main(int argc, char **argv)
{
    const char *deep = getenv("DEEP");
    size_t count = deep != NULL && deep[0] == '1' ? DEEP_PROGRAMS : PROGRAMS;
    struct mc_test *tests = calloc(FIXED + count, sizeof *tests);
    struct program *programs = calloc(count, sizeof *programs);
    char *names = calloc(count, NAME_MAX_HERE);
    for (size_t i = 0; i < FIXED; i++) {
        tests[i] = fixed[i];
    }
    for (size_t i = 0; i < count; i++) {
        bool is_early = i % 4 == 0;
        bool may_hang = i % 5 == 0;
        random_state = i * 2654435761u;
        make_program(&programs[i], is_early, may_hang);
        char *name = names + i * NAME_MAX_HERE;
        (void)snprintf(name, NAME_MAX_HERE, "program_%zu", i);
        tests[FIXED + i] = (struct mc_test){
            .name = name,
            .run = run_program,
            .arg = &programs[i],
            .early_stores = is_early,
            .timeouts = !may_hang,
            .expect = may_hang ? MC_ANY : MC_NONE,
            .spurious_wakes = i % 3 == 0,
            .spurious_cas = 1,
            .moving_clock = true,
            .cross_check = true,
        };
    }
    int result = mc_run_all(tests, FIXED + count, argc, argv);
    free(names);
    free(programs);
    free(tests);
    return result;
}
