/* SPDX-License-Identifier: MIT */
extern int *numbers;
extern int *evens;
extern double *halves;
