/* SPDX-License-Identifier: MIT */
extern int load_table(void *arg);
