/* SPDX-License-Identifier: MIT */
/*
 * move.c - parallel reverse and rotate.
 *
 * A rotation reverses both parts and then the whole array. So each element moves twice, in
 * place. A second array would be written and read just as often, and its pages would have to be
 * allocated.
 */
#include <string.h>

#include "par/array.h"
#include "par/pause.h"
#include "par/swap.h"

enum {
    WORD = 8,
    QUICK = 8, /* elements that are swapped in one step, unless they are large */
};

struct reversal {
    char *base;
    size_t count;
    size_t size;
};

/* Reverses the elements of 1, 2, 4 or 8 bytes within a word. */
static inline uint64_t reverse_word(uint64_t word, size_t size)
{
    if (size == 1) {
        return __builtin_bswap64(word);
    }
    word = size < 8 ? word << 32 | word >> 32 : word;
    if (size == 2) {
        uint64_t low = UINT64_C(0x0000FFFF0000FFFF);
        word = (word & low) << 16 | (word >> 16 & low);
    }
    return word;
}

/* Swaps the elements from first to before end with their counterparts, a word at a time. */
static inline __attribute__((always_inline)) void swap_words(const struct reversal *reversal,
                                                             size_t first, size_t end, size_t size)
{
    char *front = reversal->base + first * size;
    char *back = reversal->base + (reversal->count - first) * size;
    size_t bytes = (end - first) * size;
    for (; bytes >= WORD; bytes -= WORD, front += WORD) {
        back -= WORD;
        uint64_t one;
        uint64_t two;
        memcpy(&one, front, WORD);
        memcpy(&two, back, WORD);
        two = reverse_word(two, size);
        one = reverse_word(one, size);
        memcpy(front, &two, WORD);
        memcpy(back, &one, WORD);
    }
    for (; bytes > 0; bytes -= size, front += size) {
        back -= size;
        wf_swap_some(front, back, size);
    }
}

static void swap_any(const struct reversal *reversal, size_t first, size_t end)
{
    size_t size = reversal->size;
    for (size_t i = first; i < end; i++) {
        wf_swap(reversal->base + i * size, reversal->base + (reversal->count - 1 - i) * size, size);
    }
}

static void swap_some(const struct reversal *reversal, size_t first, size_t end)
{
    switch (reversal->size) {
    case 1:
        swap_words(reversal, first, end, 1);
        break;
    case 2:
        swap_words(reversal, first, end, 2);
        break;
    case 4:
        swap_words(reversal, first, end, 4);
        break;
    case 8:
        swap_words(reversal, first, end, 8);
        break;
    default:
        swap_any(reversal, first, end);
    }
}

static int swap_piece(size_t first, size_t end, void *arg)
{
    const struct reversal *reversal = arg;
    size_t most = wf_pause_most(WF_PAUSE_ELEMENTS, reversal->size);
    while (first < end) {
        size_t next = wf_pause_next(first, end, most);
        swap_some(reversal, first, next);
        wf_pause_copied((next - first) / QUICK, 2 * QUICK * reversal->size);
        first = next;
    }
    return 0;
}

int weft_reverse(void *base, size_t count, size_t size, const weft_par_options *options)
{
    wf_pause_call();
    struct reversal reversal = { base, count, size };
    int err = wf_array_check(count, size);
    return err != 0 ? err : weft_for(0, count / 2, swap_piece, &reversal, options);
}

int weft_rotate(void *base, size_t count, size_t size, size_t by, const weft_par_options *options)
{
    wf_pause_call();
    int err = wf_array_check(count, size);
    if (err != 0 || count == 0 || by % count == 0) {
        return err;
    }
    by %= count;
    err = weft_reverse(base, by, size, options);
    if (err == 0) {
        err = weft_reverse((char *)base + by * size, count - by, size, options);
    }
    if (err == 0) {
        err = weft_reverse(base, count, size, options);
    }
    return err;
}
