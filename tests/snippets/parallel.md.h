/* SPDX-License-Identifier: MIT */
struct part {
    int *numbers;
};
extern struct part left;
extern struct part right;
extern void sort_left(void *part);
extern void sort_right(void *part);
extern uint64_t *keys;
extern int *numbers;
extern int *evens;
extern size_t kept;
extern long first;
extern long second;
extern int n;
WEFT_PARALLEL(long, fib, int, number)
{
    return number;
}
