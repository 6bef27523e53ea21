/* SPDX-License-Identifier: MIT */
struct files {
    FILE *from;
    FILE *to;
};
extern struct files files;
extern void free_block(void *item, void *arg);
