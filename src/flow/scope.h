/* SPDX-License-Identifier: MIT */
/*
 * scope.h - children who report to somebody when they end.
 */
#ifndef WF_FLOW_SCOPE_H
#define WF_FLOW_SCOPE_H

#include <weft/scope.h>

/* What a child does before it is counted down: report(to, arg, result). Then its result is no
 * error of the scope. */
struct wf_scope_report {
    void (*report)(void *to, void *arg, int result);
    void *to;
};

/* weft_scope_go_with() in the call of that name, and the child reports; NULL: it does not. */
int wf_scope_go(weft_scope *scope, const weft_fiber_spec *spec,
                const struct wf_scope_report *report, const char *call);

/* weft_scope_end() in the call of that name. */
int wf_scope_end(weft_scope *scope, const char *call);

#endif
