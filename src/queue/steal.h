/* SPDX-License-Identifier: MIT */
/*
 * steal.h - outcome of a steal attempt.
 */
#ifndef WF_QUEUE_STEAL_H
#define WF_QUEUE_STEAL_H

enum wf_steal {
    WF_STEAL_EMPTY,
    WF_STEAL_RETRY, /* another thread was faster; there may be more items */
    WF_STEAL_SUCCESS,
};

#endif
