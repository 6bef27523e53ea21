/* SPDX-License-Identifier: MIT */
/*
 * local.h - fiber-local storage: values that each fiber and each plain thread has for itself.
 */
#ifndef WF_SCHED_LOCAL_H
#define WF_SCHED_LOCAL_H

/* Makes the values of a fiber that the caller starts and that inherits. Returns 0 or -ENOMEM. */
int wf_local_inherit(void ***locals);

/* Calls the destructors and frees the values, when the fiber or thread ends. */
void wf_local_end(void ***locals);

#endif
