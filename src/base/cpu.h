/* SPDX-License-Identifier: MIT */
/*
 * cpu.h - number of CPUs that this process may use.
 */
#ifndef WF_BASE_CPU_H
#define WF_BASE_CPU_H

/*
 * Returns the number of CPUs in the affinity mask, limited to the CPU quota of the process's
 * cgroup (version 1 or 2), rounded up. The result is at least 1.
 */
unsigned wf_cpu_count(void);

/* The text parsers of wf_cpu_count(), for tests. Both return the quota in CPUs, rounded up, or
 * 0 if there is no limit or the text is malformed. */
unsigned wf_cpu_parse_max(const char *cpu_max);
unsigned wf_cpu_parse_quota(const char *quota_us, const char *period_us);

#endif
