/* SPDX-License-Identifier: MIT */
extern int *numbers;
extern size_t evens;
