/* SPDX-License-Identifier: MIT */
struct item {
    int number;
};
extern struct item item;
extern uint64_t missed;
