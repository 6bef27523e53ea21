/* SPDX-License-Identifier: MIT */
extern int app(void *arg);
