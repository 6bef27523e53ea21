/* SPDX-License-Identifier: MIT */
/*
 * config.h - runtime configuration: from weft_config to scheduler options.
 */
#ifndef WF_RT_CONFIG_H
#define WF_RT_CONFIG_H

#include <weft/runtime.h>

#include "sched/sched.h"

/*
 * Checks the config (NULL for defaults) and the environment, and fills in the defaults. Returns
 * 0, or -EINVAL after a message that names the field and its range.
 */
int wf_config_resolve(const weft_config *config, struct wf_sched_options *options);

#endif
