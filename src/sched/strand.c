/* SPDX-License-Identifier: MIT */
/*
 * strand.c - fork context: the fork stack of a computation that forks, and where thieves find
 * it.
 *
 * A fiber gets its fork context at its first fork. It gives the context back when it suspends
 * or ends without unjoined forks. While it runs, its worker names the fork context to thieves.
 * When it suspends with forks, these must not wait with it: all of them become public, and the
 * fork context is put into the away list of the worker it leaves, where every worker looks.
 * When the fiber resumes, the fork context is taken out again.
 *
 *   attach ---> at a worker ---leave---> away ---arrive---> at a worker ---> given back
 *                    (worker->strand)     (worker->away)
 *
 * A fork context is in the away list only while it has a public fork: the thief that steals the
 * last one unlinks it. So a list that is not empty means work.
 *
 * A fork context belongs to one scheduler and is freed with it, not before. A thief relies on
 * both (jobs.c): it reads a worker's fork context, and by the time it steals, the fork context
 * may be at another worker or belong to another fiber, but it still belongs to the thief's own
 * runtime. So the pool of free fork contexts is per scheduler: if runtimes shared it, a late
 * thief would run the forks of another runtime.
 *
 * Edges.
 * [S1] a worker's fork context is stored with release, thieves acquire it: it is initialized.
 *
 * And idle.c's [I1]: forks are published before wf_sched_notify(), and a worker that is about
 * to park looks at all fork contexts once more.
 */
#include "sched/strand.h"

#include <sys/mman.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/tls.h"
#include "sched/fiber.h"
#include "sched/job.h"
#include "sched/sched.h"
#include "sched/worker.h"

/* Used by callers without a fork context. It is full, so that the first fork calls the library,
 * and its stack floor is above all stacks, so that the first check of the stack does. */
static weft_jobs nothing = { .stack_floor = (char *)UINTPTR_MAX };

__thread weft_jobs *weft_jobs_of_thread WF_TLS_MODEL __attribute__((used)) = &nothing;

static size_t slots_size(void)
{
    return WF_STRAND_SLOTS * sizeof(struct wf_job);
}

/* Maps memory that is committed as it is used. Returns NULL if there is none. */
static struct wf_job *map_slots(void)
{
#ifdef WF_MODEL /* Memory that the checker knows. */
    return wf_alloc_zeroed(&wf_alloc_default, slots_size(), _Alignof(struct wf_job));
#else
    void *memory = mmap(NULL, slots_size(), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory != MAP_FAILED ? memory : NULL;
#endif
}

static void unmap_slots(struct wf_job *slots)
{
#ifdef WF_MODEL
    wf_free(&wf_alloc_default, slots, slots_size(), _Alignof(struct wf_job));
#else
    (void)munmap(slots, slots_size());
#endif
}

/* The table of a pool: part n holds the fork contexts with the indices 2^n to 2^(n+1) - 1. */
static unsigned part_of(uint32_t index)
{
    return 31 - (unsigned)__builtin_clz(index);
}

static size_t part_size(unsigned part)
{
    return ((size_t)1 << part) * sizeof(struct wf_strand *);
}

static struct wf_strand **place_of(const struct wf_strands *pool, uint32_t index)
{
    unsigned part = part_of(index);
    return &pool->parts[part][index - (UINT32_C(1) << part)];
}

/* Under the lock: allocates the part of the table for this index. Returns false if there is no
 * memory. */
static bool have_place(struct wf_strands *pool, uint32_t index)
{
    struct wf_strand ***part = &pool->parts[part_of(index)];
    if (*part == NULL) {
        *part = wf_alloc_zeroed(&pool->sched->options.allocator, part_size(part_of(index)),
                                _Alignof(struct wf_strand *));
    }
    return *part != NULL;
}

static void free_strand(const weft_allocator *allocator, struct wf_strand *strand)
{
    if (strand->has_spawned) {
        wf_deque_fini(&strand->spawned);
    }
    unmap_slots(strand->jobs.slots);
    wf_free(allocator, strand, sizeof *strand, _Alignof(struct wf_strand));
}

/* Under the lock. */
static struct wf_strand *make(struct wf_strands *pool)
{
    if (pool->made == WF_STRANDS_MAX || !have_place(pool, pool->made + 1)) {
        return NULL;
    }
    const weft_allocator *allocator = &pool->sched->options.allocator;
    struct wf_strand *strand =
        wf_alloc_zeroed(allocator, sizeof *strand, _Alignof(struct wf_strand));
    struct wf_job *slots = strand != NULL ? map_slots() : NULL;
    if (slots == NULL) {
        wf_free(allocator, strand, sizeof *strand, _Alignof(struct wf_strand));
        return NULL;
    }
    wf_jobs_init(&strand->jobs, slots, WF_STRAND_SLOTS);
    strand->sched = pool->sched;
    strand->index = ++pool->made;
    *place_of(pool, strand->index) = strand;
    return strand;
}

void wf_strands_init(struct wf_strands *pool, struct wf_sched *sched)
{
    pool->sched = sched;
    wf_lock_init(&pool->lock, WF_RANK_STACK);
}

void wf_strands_fini(struct wf_strands *pool)
{
    const weft_allocator *allocator = &pool->sched->options.allocator;
    for (uint32_t index = 1; index <= pool->made; index++) {
        free_strand(allocator, *place_of(pool, index));
    }
    for (unsigned part = 0; part < WF_STRAND_PARTS; part++) {
        wf_free(allocator, pool->parts[part], part_size(part), _Alignof(struct wf_strand *));
    }
}

struct wf_strand *wf_strand_take(struct wf_strands *pool)
{
    wf_lock(&pool->lock);
    struct wf_strand *strand = pool->free;
    if (strand != NULL) {
        pool->free = strand->next;
    } else {
        strand = make(pool);
    }
    wf_unlock(&pool->lock);
    return strand;
}

void wf_strand_give(struct wf_strand *strand)
{
    struct wf_strands *pool = &strand->sched->strands;
    wf_jobs_close(&strand->jobs);
    wf_lock(&pool->lock);
    strand->next = pool->free;
    pool->free = strand;
    wf_unlock(&pool->lock);
}

uint32_t wf_strands_made(struct wf_strands *pool)
{
    wf_lock(&pool->lock);
    uint32_t made = pool->made;
    wf_unlock(&pool->lock);
    return made;
}

/* Takes a fork context out of a cache that is not empty. */
static struct wf_strand *take(struct wf_strand_cache *cache)
{
    struct wf_strand *strand = cache->first;
    cache->first = strand->next;
    cache->count--;
    return strand;
}

static void give(struct wf_strand_cache *cache, struct wf_strand *strand)
{
    if (cache->count == WF_STRANDS_CACHED) {
        wf_strand_give(strand);
        return;
    }
    strand->next = cache->first;
    cache->first = strand;
    cache->count++;
}

void wf_strand_flush(struct wf_strand_cache *cache)
{
    while (cache->first != NULL) {
        wf_strand_give(take(cache));
    }
}

/* --- At a worker -------------------------------------------------------------------- */

static struct wf_strand *strand_of(const struct wf_worker *worker, const struct wf_fiber *fiber)
{
    WF_DEBUG_ASSERT(fiber->own.strand != 0);
    return *place_of(&worker->sched->strands, fiber->own.strand);
}

void wf_strand_use(struct wf_strand *strand)
{
    WF_TLS_STORE(weft_jobs_of_thread, strand != NULL ? wf_jobs_public(&strand->jobs) : &nothing);
}

void wf_strand_use_again(weft_jobs *jobs)
{
    WF_TLS_STORE(weft_jobs_of_thread, jobs);
}

/* Makes this worker's thread fork there from now on, and names the fork context to thieves. */
static void sit_down(struct wf_worker *worker, struct wf_strand *strand)
{
    wf_strand_begin_turn(strand);
    wf_strand_use(strand);
    /* release [S1]: the fork context is initialized. */
    wf_store_release(&worker->strand, strand);
}

static void get_up(struct wf_worker *worker)
{
    wf_strand_use(NULL);
    /* relaxed: a thief that still has the pointer steals from the fork context wherever it is. */
    wf_store_relaxed(&worker->strand, (struct wf_strand *)NULL);
}

struct wf_strand *wf_strand_attach(struct wf_worker *worker, struct wf_fiber *self)
{
    struct wf_strand *strand = worker->strands.first != NULL
                                   ? take(&worker->strands)
                                   : wf_strand_take(&worker->sched->strands);
    if (strand == NULL) {
        return NULL;
    }
    char *low = self->stack->low;
    strand->jobs.stack_floor = low != NULL ? low + WF_STRAND_STACK_RESERVE : NULL;
    wf_jobs_rename(&strand->jobs, self->runs);
    wf_runners_init(&strand->runners);
    strand->eager_forks = worker->eager_forks;
    strand->shares = worker->shares;
    wf_strand_be_silent(strand, 0);
    self->own.strand = strand->index;
    strand->steps = WF_STRAND_STEPS_MIN;
    sit_down(worker, strand);
    /* Computations that fork take long, and only an awake monitor asks them to yield. */
    wf_worker_be_watched(worker);
    wf_watch_hurry(&worker->sched->watch);
    return strand;
}

/* Gives back a fork context without forks, for another fiber to use. */
static void detach(struct wf_worker *worker, struct wf_fiber *self)
{
    struct wf_strand *strand = strand_of(worker, self);
    self->own.strand = 0;
    get_up(worker);
    wf_jobs_close(&strand->jobs);
    give(&worker->strands, strand);
}

/* Puts a fork context with public forks into the list. */
static void put_away(struct wf_away *away, struct wf_strand *strand)
{
    strand->away = away;
    wf_lock(&away->lock);
    wf_list_push_back(&away->list, &strand->link);
    /* relaxed: written under the lock. */
    wf_store_relaxed(&away->count, wf_load_relaxed(&away->count) + 1);
    wf_unlock(&away->lock);
}

/* Under the lock. */
static void take_out(struct wf_away *away, struct wf_strand *strand)
{
    wf_list_remove(&strand->link);
    /* relaxed: written under the lock. */
    wf_store_relaxed(&away->count, wf_load_relaxed(&away->count) - 1);
}

void wf_strand_leave(struct wf_worker *worker, struct wf_fiber *self)
{
    struct wf_strand *strand = strand_of(worker, self);
    if (wf_jobs_len(&strand->jobs) == 0 && wf_deque_looks_empty(&strand->spawned)) {
        detach(worker, self);
        return;
    }
    wf_strand_be_silent(strand, 0);
    uint32_t private = wf_jobs_private(&strand->jobs);
    if (private > 0) {
        wf_jobs_publish(&strand->jobs, private);
    }
    get_up(worker);
    if (wf_strand_has_public(strand)) {
        put_away(&worker->away, strand);
        wf_sched_notify(worker->sched);
    }
}

void wf_strand_arrive(struct wf_worker *worker, struct wf_fiber *self)
{
    struct wf_strand *strand = strand_of(worker, self);
    struct wf_away *away = strand->away;
    if (away != NULL) {
        strand->away = NULL;
        wf_lock(&away->lock);
        if (!wf_list_is_empty(&strand->link)) {
            take_out(away, strand);
        }
        wf_unlock(&away->lock);
    }
    /* A worker that parked meanwhile could not post a request here. */
    wf_jobs_close(&strand->jobs);
    sit_down(worker, strand);
    /* Nor could it see these forks on their way from the list to here. */
    if (wf_strand_has_public(strand)) {
        wf_sched_notify(worker->sched);
    }
}

void wf_strand_must_be_empty(const struct wf_strand *strand, const char *whose, uint64_t id)
{
    uint32_t forks = wf_jobs_len(&strand->jobs);
    if (forks != 0) {
        wf_fatal("%s (#%llu) returned with %u forks that were not joined; join each one in the "
                 "function that has forked it",
                 whose, (unsigned long long)id, forks);
    }
}

void wf_strand_end(struct wf_worker *worker, struct wf_fiber *self)
{
    const char *name = self->task.name != NULL ? self->task.name : "a fiber";
    wf_strand_must_be_empty(strand_of(worker, self), name, self->task.id);
    detach(worker, self);
}

/* Steals a fork that is never joined. */
static struct wf_stolen steal_spawned(struct wf_strand *strand)
{
    void *stolen = NULL;
    while (!wf_deque_looks_empty(&strand->spawned) &&
           wf_deque_steal(&strand->spawned, &stolen) == WF_STEAL_RETRY) {
    }
    struct wf_job *job = stolen;
    struct wf_runners *runners = job != NULL ? job->words[WF_JOB_RUNNERS].pointer : NULL;
    return (struct wf_stolen){ job, runners };
}

struct wf_stolen wf_strand_steal(struct wf_strand *strand)
{
    struct wf_job *job = NULL;
    while (wf_jobs_steal(&strand->jobs, &job) == WF_STEAL_RETRY) {
    }
    return job != NULL ? (struct wf_stolen){ job, &strand->runners } : steal_spawned(strand);
}

/* --- Away ----------------------------------------------------------------------------- */

void wf_away_init(struct wf_away *away)
{
    wf_lock_init(&away->lock, WF_RANK_AWAY);
    wf_list_init(&away->list);
}

/* Under the lock. */
static struct wf_stolen steal_first(struct wf_away *away)
{
    while (!wf_list_is_empty(&away->list)) {
        struct wf_strand *strand = wf_container_of(away->list.next, struct wf_strand, link);
        struct wf_stolen stolen = wf_strand_steal(strand);
        if (!wf_strand_has_public(strand)) {
            take_out(away, strand);
        }
        if (stolen.job != NULL) {
            return stolen;
        }
    }
    return (struct wf_stolen){ 0 };
}

struct wf_stolen wf_away_steal(struct wf_away *away)
{
    if (!wf_away_has_jobs(away)) {
        return (struct wf_stolen){ 0 };
    }
    wf_lock(&away->lock);
    struct wf_stolen stolen = steal_first(away);
    wf_unlock(&away->lock);
    return stolen;
}
