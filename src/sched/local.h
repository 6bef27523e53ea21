/* SPDX-License-Identifier: MIT */
/*
 * local.h - values that each fiber, and each plain thread, has for itself.
 */
#ifndef WF_SCHED_LOCAL_H
#define WF_SCHED_LOCAL_H

/* Makes the values of a fiber that whoever runs here starts, and that inherits. 0, or -ENOMEM. */
int wf_local_inherit(void ***locals);

/* The fiber or thread ends: calls the destructors and frees the values. */
void wf_local_end(void ***locals);

#endif
