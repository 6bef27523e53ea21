/* SPDX-License-Identifier: MIT */
extern size_t youngest;
extern double *prices;
extern int *scores;
extern int *best;
extern size_t found;
extern int by_value(const void *one, const void *other, void *arg);
extern int by_rank(const void *one, const void *other, void *arg);
