/* SPDX-License-Identifier: MIT */
struct queue {
    int *items;
};
extern struct queue queue;
extern weft_cond changed;
extern bool queue_is_empty(struct queue *queue);
extern weft_mutex mutex;
