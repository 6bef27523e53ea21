/* SPDX-License-Identifier: MIT */
extern int *numbers;
