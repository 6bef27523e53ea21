/* SPDX-License-Identifier: MIT */
/*
 * inject.c - inject queue: tasks from threads outside the runtime, and overflow of run queues.
 *
 * The length is stored before the lock is released. A worker that is about to sleep reads it
 * after a full fence, and a submitter looks for sleeping workers after one, so at least one of
 * them sees the other. That argument is idle.c's [I1].
 */
#include "queue/inject.h"

void wf_inject_init(struct wf_inject *queue, size_t capacity)
{
    *queue = (struct wf_inject){ .capacity = capacity };
    wf_lock_init(&queue->lock, WF_RANK_INJECT);
}

static void publish_length(struct wf_inject *queue)
{
    /* relaxed: readers use it as a hint, or are ordered by idle.c's fence. */
    wf_store_relaxed(&queue->length, queue->list.count);
}

enum wf_admit wf_inject_admit(struct wf_inject *queue, struct wf_qnode *node)
{
    enum wf_admit verdict = WF_ADMIT_OK;
    wf_lock(&queue->lock);
    if (queue->closed) {
        verdict = WF_ADMIT_CLOSED;
    } else if (queue->list.count >= queue->capacity) {
        verdict = WF_ADMIT_FULL;
    } else {
        queue->admitted++;
        wf_qlist_push(&queue->list, node);
        publish_length(queue);
    }
    wf_unlock(&queue->lock);
    return verdict;
}

enum wf_admit wf_inject_admit_elsewhere(struct wf_inject *queue)
{
    wf_lock(&queue->lock);
    enum wf_admit verdict = queue->closed ? WF_ADMIT_CLOSED : WF_ADMIT_OK;
    queue->admitted += verdict == WF_ADMIT_OK;
    wf_unlock(&queue->lock);
    return verdict;
}

void wf_inject_push(struct wf_inject *queue, struct wf_qnode *node)
{
    wf_lock(&queue->lock);
    wf_qlist_push(&queue->list, node);
    publish_length(queue);
    wf_unlock(&queue->lock);
}

void wf_inject_push_list(struct wf_inject *queue, struct wf_qlist *list)
{
    wf_lock(&queue->lock);
    wf_qlist_append(&queue->list, list);
    publish_length(queue);
    wf_unlock(&queue->lock);
}

void wf_inject_pop(struct wf_inject *queue, size_t max, struct wf_qlist *out)
{
    wf_lock(&queue->lock);
    for (size_t i = 0; i < max; i++) {
        struct wf_qnode *node = wf_qlist_pop(&queue->list);
        if (node == NULL) {
            break;
        }
        wf_qlist_push(out, node);
    }
    publish_length(queue);
    wf_unlock(&queue->lock);
}

uint64_t wf_inject_close(struct wf_inject *queue)
{
    wf_lock(&queue->lock);
    queue->closed = true;
    uint64_t admitted = queue->admitted;
    wf_unlock(&queue->lock);
    return admitted;
}

uint64_t wf_inject_admitted(struct wf_inject *queue)
{
    wf_lock(&queue->lock);
    uint64_t admitted = queue->admitted;
    wf_unlock(&queue->lock);
    return admitted;
}
