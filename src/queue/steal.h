/* SPDX-License-Identifier: MIT */
/*
 * steal.h - what came of an attempt to steal.
 */
#ifndef WF_QUEUE_STEAL_H
#define WF_QUEUE_STEAL_H

enum wf_steal {
    WF_STEAL_EMPTY,
    WF_STEAL_RETRY, /* somebody was faster; there may be more */
    WF_STEAL_SUCCESS,
};

#endif
