/* SPDX-License-Identifier: MIT */
extern int word;
extern bool try_to_take(int *word);
extern bool is_taken(void *word);
extern void give_back(int *word);
