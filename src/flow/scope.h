/* SPDX-License-Identifier: MIT */
/*
 * scope.h - scope internals: children that report their results.
 */
#ifndef WF_FLOW_SCOPE_H
#define WF_FLOW_SCOPE_H

#include <weft/scope.h>

/* Called as report(to, arg, result) when a child ends, before it leaves the count of children.
 * The result of a child that reports is not an error of the scope. */
struct wf_scope_report {
    void (*report)(void *to, void *arg, int result);
    void *to;
};

/* weft_scope_go_with() on behalf of the named call. If report is not NULL, the child reports. */
int wf_scope_go(weft_scope *scope, const weft_fiber_spec *spec,
                const struct wf_scope_report *report, const char *call);

/* weft_scope_end() on behalf of the named call. */
int wf_scope_end(weft_scope *scope, const char *call);

#endif
