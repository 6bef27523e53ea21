/* SPDX-License-Identifier: MIT */
/*
 * cpu.h - how many CPUs this process may use.
 */
#ifndef WF_BASE_CPU_H
#define WF_BASE_CPU_H

/*
 * Returns the number of CPUs of the affinity mask, lowered to the CPU quota of
 * the process's cgroup (version 1 or 2) rounded up; at least 1.
 */
unsigned wf_cpu_count(void);

/* The parts of it that read text, for tests. Both return the quota in CPUs,
 * rounded up, or 0 for no limit or for text they do not understand. */
unsigned wf_cpu_parse_max(const char *cpu_max);
unsigned wf_cpu_parse_quota(const char *quota_us, const char *period_us);

#endif
