/* SPDX-License-Identifier: MIT */
extern int now;
