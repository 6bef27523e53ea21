/* SPDX-License-Identifier: MIT */
extern long sum_of(const int *numbers, size_t count);
