/* SPDX-License-Identifier: MIT */
extern int serve(void *peer);
