/* SPDX-License-Identifier: MIT */
/*
 * callout.c - the personality routine of frames that call the user's functions.
 */
#include "base/callout.h"

#include <unwind.h>

/* Named by WF_CALLOUT_BEGIN() in assembly only. */
_Unwind_Reason_Code wf_callout_personality(int version, _Unwind_Action actions,
                                           _Unwind_Exception_Class class,
                                           struct _Unwind_Exception *exception,
                                           struct _Unwind_Context *context);

/*
 * Refuses to search beyond this frame for a handler. pthread_exit() and pthread_cancel() on a plain
 * thread search none, and pass.
 */
__attribute__((used)) _Unwind_Reason_Code
wf_callout_personality(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                       struct _Unwind_Exception *exception, struct _Unwind_Context *context)
{
    (void)version;
    (void)class;
    (void)exception;
    (void)context;
    return (actions & _UA_FORCE_UNWIND) != 0 ? _URC_CONTINUE_UNWIND : _URC_FATAL_PHASE1_ERROR;
}
