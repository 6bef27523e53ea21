/* SPDX-License-Identifier: MIT */
/*
 * answers.c - counting and searching arrays of test results.
 *
 * Results are handled eight at a time, as one word.
 */
#include "par/answers.h"

#include <stdint.h>
#include <string.h>

enum {
    WORD = 8,
    WORDS_MAX = 255, /* more could overflow the sums in the bytes */
};

#define ONES (UINT64_C(0x0101010101010101))

/* Loads eight results. Each byte that is not 0 becomes 1. */
static inline uint64_t word_at(const unsigned char *answers)
{
    uint64_t word;
    memcpy(&word, answers, WORD);
    uint64_t low = ONES * 0x7F;
    return (((word & low) + low) | word) >> 7 & ONES;
}

size_t wf_answers_count(const unsigned char *answers, size_t count)
{
    size_t yes = 0;
    size_t i = 0;
    while (count - i >= WORD) {
        size_t words = (count - i) / WORD;
        words = words < WORDS_MAX ? words : WORDS_MAX;
        uint64_t sums = 0;
        for (size_t end = i + words * WORD; i < end; i += WORD) {
            sums += word_at(answers + i);
        }
        /* Adds adjacent bytes to four 16-bit sums. The top of the product is the sum of those. */
        uint64_t even = sums & UINT64_C(0x00FF00FF00FF00FF);
        uint64_t odd = sums >> 8 & UINT64_C(0x00FF00FF00FF00FF);
        yes += (even + odd) * UINT64_C(0x0001000100010001) >> 48;
    }
    for (; i < count; i++) {
        yes += answers[i] != 0;
    }
    return yes;
}

size_t wf_answers_first(const unsigned char *answers, size_t count, bool wanted)
{
    uint64_t others = wanted ? 0 : ONES;
    size_t i = 0;
    while (count - i >= WORD && word_at(answers + i) == others) {
        i += WORD;
    }
    while (i < count && (answers[i] != 0) != wanted) {
        i++;
    }
    return i;
}

size_t wf_answers_last(const unsigned char *answers, size_t count, bool wanted)
{
    uint64_t others = wanted ? 0 : ONES;
    size_t end = count;
    while (end >= WORD && word_at(answers + end - WORD) == others) {
        end -= WORD;
    }
    while (end > 0 && (answers[end - 1] != 0) != wanted) {
        end--;
    }
    return end > 0 ? end - 1 : count;
}
