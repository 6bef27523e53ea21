/* SPDX-License-Identifier: MIT */
struct results {
    size_t numbers;
};
extern struct results results;
extern const char *text;
extern size_t length;
