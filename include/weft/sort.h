/* SPDX-License-Identifier: MIT */
/*
 * weft/sort.h - sorting in parallel.
 *
 *     WEFT_KEY(age_of, struct person, person, person->age)
 *
 *     #define YOUNGER(a, b) ((a)->age < (b)->age)
 *     WEFT_SORT_DEFINE(sort_people, struct person, YOUNGER)
 *
 *     err = weft_sort_u64(numbers, count, NULL);
 *     err = weft_sort(people, count, sizeof *people, by_age, NULL, NULL);
 *     err = weft_sort_by_key(people, count, sizeof *people, age_of, NULL, NULL);
 *     err = sort_people(people, count, NULL);  // the comparison is compiled in
 *
 * Every sort may be called anywhere. In a task, and in weft_par_run(), idle workers help
 * with large inputs; elsewhere it runs on the calling thread alone. The result is the same
 * with any number of workers. Small inputs are sorted without forking.
 *
 * A sort that returns an error has not touched the array; but one that was stopped leaves
 * its elements in any order.
 *
 * Numbers are sorted by their digits, which is the fastest. Where a comparison decides, the
 * one of WEFT_SORT_DEFINE() costs the least.
 */
#ifndef WEFT_SORT_H
#define WEFT_SORT_H

#include <string.h>

#include "base.h"
#include "element.h"
#include "fork.h"
#include "loop.h"

WEFT_EXTERN_C_BEGIN

/*
 * Returns how many bytes of scratch weft_sort(), weft_sort_stable() and what
 * WEFT_SORT_DEFINE() defines need for so many elements of this size. It may begin at any
 * address. SIZE_MAX: more than there can be.
 *
 * Context: any thread.
 */
WEFT_API size_t weft_sort_scratch(size_t count, size_t size);

/*
 * The same for the sorts of numbers; size is the number's.
 *
 * Context: any thread.
 */
WEFT_API size_t weft_sort_number_scratch(size_t count, size_t size);

/*
 * The same for weft_sort_by_key().
 *
 * Context: any thread.
 */
WEFT_API size_t weft_sort_by_key_scratch(size_t count, size_t size);

/*
 * Sorts count elements of size bytes each. Equal ones may change places. Elements of 4, 8
 * and 16 bytes that are aligned to 4, 8 and 8 are the fastest.
 *
 * Context:  any thread.
 * Suspends: while another worker is at a part of it, as weft_join2().
 * Errors:   -ENOMEM; -EINVAL if size is 0 or the scratch is too small; WEFT_ECANCELED:
 *           stopped.
 */
WEFT_API WEFT_NODISCARD int weft_sort(void *base, size_t count, size_t size,
                                      weft_compare_fn compare, void *arg,
                                      const weft_par_options *options);

/*
 * Sorts as weft_sort() does; equal elements stay in their order.
 *
 * Context:  any thread.
 * Suspends: as weft_sort().
 * Errors:   as weft_sort().
 */
WEFT_API WEFT_NODISCARD int weft_sort_stable(void *base, size_t count, size_t size,
                                             weft_compare_fn compare, void *arg,
                                             const weft_par_options *options);

/*
 * Sorts by a key of each element, which is computed once, before any element is moved.
 * Equal ones stay in their order.
 *
 * Context:  any thread.
 * Suspends: as weft_sort().
 * Errors:   as weft_sort(), and what the key function returns.
 */
WEFT_API WEFT_NODISCARD int weft_sort_by_key(void *base, size_t count, size_t size, weft_key_fn key,
                                             void *arg, const weft_par_options *options);

/*
 * Sorts numbers, the smallest first.
 *
 * Context:  any thread.
 * Suspends: as weft_sort().
 * Errors:   -ENOMEM; -EINVAL if the scratch is too small; WEFT_ECANCELED: stopped.
 */
WEFT_API WEFT_NODISCARD int weft_sort_u32(uint32_t *base, size_t count,
                                          const weft_par_options *options);

/* As weft_sort_u32(). */
WEFT_API WEFT_NODISCARD int weft_sort_u64(uint64_t *base, size_t count,
                                          const weft_par_options *options);

/* As weft_sort_u32(). */
WEFT_API WEFT_NODISCARD int weft_sort_i32(int32_t *base, size_t count,
                                          const weft_par_options *options);

/* As weft_sort_u32(). */
WEFT_API WEFT_NODISCARD int weft_sort_i64(int64_t *base, size_t count,
                                          const weft_par_options *options);

/*
 * Sorts floating-point numbers in the total order of IEEE 754: negative NaNs, -inf, the
 * negative ones, -0, +0, the positive ones, inf, positive NaNs; NaNs by their payload.
 *
 * Context:  any thread.
 * Suspends: as weft_sort().
 * Errors:   as weft_sort_u32().
 */
WEFT_API WEFT_NODISCARD int weft_sort_f32(float *base, size_t count,
                                          const weft_par_options *options);

/* As weft_sort_f32(). */
WEFT_API WEFT_NODISCARD int weft_sort_f64(double *base, size_t count,
                                          const weft_par_options *options);

/*
 * What follows is how WEFT_SORT_DEFINE() is made, which comes last.
 */

/* Elements that cut the array into buckets: 2^levels - 1 of them. */
typedef struct weft_splitters {
    unsigned levels;
    bool with_equal;    /* elements that equal a splitter have a bucket of their own */
    const void *sorted; /* in their order, from index 0 */
    const void *tree;   /* as a heap, from index 1: the middle one, those of both halves... */
} weft_splitters;

/*
 * The serial part of a sort of one type; WEFT_SORT_MAKE() makes one. order is what
 * weft_sort_run() was given.
 */
typedef struct weft_sort_ops {
    size_t size; /* of an element */

    /* Sorts the elements at from, stably; they end up there, or at other. */
    void (*sort)(void *from, void *other, size_t count, bool into_other, const void *order);

    /* Is it sorted? If it is so backwards, without equal ones, it is turned round. */
    bool (*settle)(void *base, size_t count, const void *order);

    bool (*less)(const void *a, const void *b, const void *order);

    /* Each element's bucket: how many splitters are not greater. with_equal: twice that,
     * less one if the last of those is equal to the element. */
    void (*classify)(const void *from, size_t count, const weft_splitters *splitters,
                     uint16_t *buckets, const void *order);
} weft_sort_ops;

/*
 * Sorts an array with these operations, stably.
 *
 * Context:  any thread.
 * Suspends: as weft_sort().
 * Errors:   as weft_sort().
 */
WEFT_API WEFT_NODISCARD int weft_sort_run(const weft_sort_ops *ops, const void *order, void *base,
                                          size_t count, const weft_par_options *options);

WEFT_EXTERN_C_END

/*
 * What a comparison says, as 0 or 1, and as no bits or all. The compiler must not know
 * where it comes from: it would make branches of it again, half of them mispredicted.
 */
static inline size_t weft_sort_bit(bool says)
{
    size_t bit = says;
    __asm__("" : "+r"(bit));
    return bit;
}

static inline size_t weft_sort_mask(bool says)
{
    size_t mask = 0 - (size_t)says;
    __asm__("" : "+r"(mask));
    return mask;
}

/* The first of two pointers if the mask is no bits, the second if it is all. */
static inline const void *weft_sort_pick(size_t mask, const void *zero, const void *ones)
{
    uintptr_t both = (uintptr_t)zero ^ (uintptr_t)ones;
    return (const void *)((uintptr_t)zero ^ (both & mask));
}

/* Below this many, merges do not look whether there is anything to do. */
#define WEFT_SORT_LOOK_MIN 32
/* Other tasks may run after the sort of more than these, */
#define WEFT_SORT_PAUSE_MIN 64
/* within longer merges after so many steps, of two or four comparisons each, */
#define WEFT_SORT_PAUSE_STEPS 128
/* and after so many bytes were copied. */
#define WEFT_SORT_PAUSE_BYTES 65536

/* How many small elements one of this size is worth. */
static inline size_t weft_sort_weight(size_t size)
{
    return 1 + size / 128;
}

/* Steps between two pauses, for elements of this size. */
static inline size_t weft_sort_stride(size_t size)
{
    size_t steps = WEFT_SORT_PAUSE_STEPS / weft_sort_weight(size);
    return steps > 0 ? steps : 1;
}

/* After step i of a loop. */
static inline void weft_sort_pause_each(size_t i, size_t size)
{
    size_t steps = weft_sort_stride(size);
    if (i % steps == steps - 1) {
        weft_jobs_pause(steps * weft_sort_weight(size));
    }
}

/* memcpy() with pauses; not inlined, since it is seldom needed in loops that must be short. */
static __attribute__((noinline, unused)) void weft_sort_copy(void *to, const void *from,
                                                             size_t bytes)
{
    while (bytes > WEFT_SORT_PAUSE_BYTES) {
        memcpy(to, from, WEFT_SORT_PAUSE_BYTES);
        weft_jobs_pause(WEFT_SORT_PAUSE_BYTES / 128);
        to = (char *)to + WEFT_SORT_PAUSE_BYTES;
        from = (const char *)from + WEFT_SORT_PAUSE_BYTES;
        bytes -= WEFT_SORT_PAUSE_BYTES;
    }
    memcpy(to, from, bytes);
}

/*
 * Defines name_ops for a type, given a function
 * bool name_less(type const *a, type const *b, const void *order).
 *
 * It is a merge sort from one array into another and back: halves, down to four elements
 * and less, and then a merge of each two. Nothing but the less decides which way data
 * goes, and no branch depends on it: what it says becomes an index.
 *
 * A merge works from both ends at once, and two merges are done at once: four computations
 * that do not wait for each other, since each step waits for its last comparison. Halves
 * differ by one at most, so neither end can run out of elements. If the less contradicts
 * itself, the two ends may disagree on where they meet; then some element was taken twice,
 * and the merge does not happen.
 */
#define WEFT_SORT_MAKE(name, type)                                                                 \
    static inline type const *name##_moved(type const *from, size_t bytes)                         \
    {                                                                                              \
        return (type const *)(const void *)((const char *)from + (ptrdiff_t)bytes);                \
    }                                                                                              \
                                                                                                   \
    static inline type const *name##_pick(size_t mask, type const *zero, type const *ones)         \
    {                                                                                              \
        return (type const *)weft_sort_pick(mask, zero, ones);                                     \
    }                                                                                              \
                                                                                                   \
    static inline void name##_sort_2(type const *from, type *to, const void *order)                \
    {                                                                                              \
        size_t swap = weft_sort_bit(name##_less(from + 1, from, order));                           \
        type low = from[swap];                                                                     \
        type high = from[1 - swap];                                                                \
        to[0] = low;                                                                               \
        to[1] = high;                                                                              \
    }                                                                                              \
                                                                                                   \
    /* A pair, and where the third one goes. */                                                    \
    static inline void name##_sort_3(type const *from, type *to, const void *order)                \
    {                                                                                              \
        size_t swap = weft_sort_bit(name##_less(from + 1, from, order));                           \
        type const *low = from + swap;                                                             \
        type const *high = from + 1 - swap;                                                        \
        type const *last = from + 2;                                                               \
        size_t before_high = weft_sort_mask(name##_less(last, high, order));                       \
        size_t before_low = weft_sort_mask(name##_less(last, low, order)) & before_high;           \
        type const *middle = name##_pick(before_high, high, last);                                 \
        type first = *name##_pick(before_low, low, last);                                          \
        type second = *name##_pick(before_low, middle, low);                                       \
        type third = *name##_pick(before_high, last, high);                                        \
        to[0] = first;                                                                             \
        to[1] = second;                                                                            \
        to[2] = third;                                                                             \
    }                                                                                              \
                                                                                                   \
    /* Two pairs, then the least and the greatest, then those between. */                          \
    static inline void name##_sort_4(type const *from, type *to, const void *order)                \
    {                                                                                              \
        size_t swap = weft_sort_bit(name##_less(from + 1, from, order));                           \
        size_t swap_last = weft_sort_bit(name##_less(from + 3, from + 2, order));                  \
        type const *a = from + swap;                                                               \
        type const *b = from + 1 - swap;                                                           \
        type const *c = from + 2 + swap_last;                                                      \
        type const *d = from + 3 - swap_last;                                                      \
        size_t c_first = weft_sort_mask(name##_less(c, a, order));                                 \
        size_t b_last = weft_sort_mask(name##_less(d, b, order));                                  \
        type const *left = name##_pick(c_first, name##_pick(b_last, b, c), a);                     \
        type const *right = name##_pick(b_last, name##_pick(c_first, c, b), d);                    \
        size_t turn = weft_sort_mask(name##_less(right, left, order));                             \
        type first = *name##_pick(c_first, a, c);                                                  \
        type second = *name##_pick(turn, left, right);                                             \
        type third = *name##_pick(turn, right, left);                                              \
        type fourth = *name##_pick(b_last, d, b);                                                  \
        to[0] = first;                                                                             \
        to[1] = second;                                                                            \
        to[2] = third;                                                                             \
        to[3] = fourth;                                                                            \
    }                                                                                              \
                                                                                                   \
    static inline void name##_sort_few(type const *from, type *to, size_t count,                   \
                                       const void *order)                                          \
    {                                                                                              \
        switch (count) {                                                                           \
        case 4:                                                                                    \
            name##_sort_4(from, to, order);                                                        \
            break;                                                                                 \
        case 3:                                                                                    \
            name##_sort_3(from, to, order);                                                        \
            break;                                                                                 \
        case 2:                                                                                    \
            name##_sort_2(from, to, order);                                                        \
            break;                                                                                 \
        case 1:                                                                                    \
            *to = *from;                                                                           \
            break;                                                                                 \
        default:                                                                                   \
            break;                                                                                 \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    typedef struct name##_merge_state {                                                            \
        type const *from;                                                                          \
        type const *middle;                                                                        \
        type const *end;                                                                           \
        type *to;                                                                                  \
        size_t from_right; /* bytes that were taken from it, to the front */                       \
        size_t from_left;  /* bytes that were taken from it, to the back */                        \
    } name##_merge_state;                                                                          \
                                                                                                   \
    /* One element to the front, and one to the back, of what two runs are merged to. */           \
    static inline void name##_merge_step(name##_merge_state *merge, size_t i, const void *order)   \
    {                                                                                              \
        type const *left = name##_moved(merge->from + i, 0 - merge->from_right);                   \
        type const *right = name##_moved(merge->middle, merge->from_right);                        \
        size_t mask = weft_sort_mask(name##_less(right, left, order));                             \
        merge->to[i] = *name##_pick(mask, left, right);                                            \
        merge->from_right += mask & sizeof(type);                                                  \
        left = name##_moved(merge->middle - 1, 0 - merge->from_left);                              \
        right = name##_moved(merge->end - 1 - i, merge->from_left);                                \
        mask = weft_sort_mask(name##_less(right, left, order));                                    \
        merge->to[merge->end - merge->from - 1 - i] = *name##_pick(mask, right, left);             \
        merge->from_left += mask & sizeof(type);                                                   \
    }                                                                                              \
                                                                                                   \
    static inline void name##_merge_begin(name##_merge_state *merge, type const *from, type *to,   \
                                          size_t count)                                            \
    {                                                                                              \
        merge->from = from;                                                                        \
        merge->middle = from + count / 2;                                                          \
        merge->end = from + count;                                                                 \
        merge->to = to;                                                                            \
        merge->from_right = 0;                                                                     \
        merge->from_left = 0;                                                                      \
    }                                                                                              \
                                                                                                   \
    static inline void name##_merge_end(name##_merge_state *merge)                                 \
    {                                                                                              \
        size_t count = (size_t)(merge->end - merge->from);                                         \
        bool meet = merge->from_right == merge->from_left;                                         \
        if (count % 2 != 0 && !meet) {                                                             \
            meet = merge->from_right == merge->from_left + sizeof(type);                           \
            merge->to[count / 2] = *name##_moved(merge->middle, 0 - merge->from_right);            \
        } else if (count % 2 != 0) {                                                               \
            merge->to[count / 2] = *name##_moved(merge->middle, merge->from_right);                \
        }                                                                                          \
        if (!meet) {                                                                               \
            weft_sort_copy((void *)merge->to, (const void *)merge->from, count * sizeof(type));    \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static inline bool name##_is_merged(const name##_merge_state *merge, const void *order)        \
    {                                                                                              \
        return !name##_less(merge->middle, merge->middle - 1, order);                              \
    }                                                                                              \
                                                                                                   \
    static inline void name##_merge(type const *from, type *to, size_t count, const void *order)   \
    {                                                                                              \
        name##_merge_state merge;                                                                  \
        name##_merge_begin(&merge, from, to, count);                                               \
        if (count >= WEFT_SORT_LOOK_MIN && name##_is_merged(&merge, order)) {                      \
            weft_sort_copy((void *)to, (const void *)from, count * sizeof(type));                  \
            return;                                                                                \
        }                                                                                          \
        size_t i = 0;                                                                              \
        while (count / 2 - i > weft_sort_stride(sizeof(type))) {                                   \
            for (size_t end = i + weft_sort_stride(sizeof(type)); i < end; i++) {                  \
                name##_merge_step(&merge, i, order);                                               \
            }                                                                                      \
            weft_jobs_pause(2 * WEFT_SORT_PAUSE_STEPS);                                            \
        }                                                                                          \
        for (; i < count / 2; i++) {                                                               \
            name##_merge_step(&merge, i, order);                                                   \
        }                                                                                          \
        name##_merge_end(&merge);                                                                  \
    }                                                                                              \
                                                                                                   \
    /* Each half of count elements, as name_merge() does. */                                       \
    static inline void name##_merge_both(type const *from, type *to, size_t count,                 \
                                         const void *order)                                        \
    {                                                                                              \
        size_t half = count / 2;                                                                   \
        name##_merge_state first;                                                                  \
        name##_merge_state second;                                                                 \
        name##_merge_begin(&first, from, to, half);                                                \
        name##_merge_begin(&second, from + half, to + half, count - half);                         \
        if (count >= WEFT_SORT_LOOK_MIN && name##_is_merged(&first, order) &&                      \
            name##_is_merged(&second, order)) {                                                    \
            weft_sort_copy((void *)to, (const void *)from, count * sizeof(type));                  \
            return;                                                                                \
        }                                                                                          \
        size_t i = 0;                                                                              \
        while (half / 2 - i > weft_sort_stride(sizeof(type))) {                                    \
            for (size_t end = i + weft_sort_stride(sizeof(type)); i < end; i++) {                  \
                name##_merge_step(&first, i, order);                                               \
                name##_merge_step(&second, i, order);                                              \
            }                                                                                      \
            weft_jobs_pause(4 * WEFT_SORT_PAUSE_STEPS);                                            \
        }                                                                                          \
        for (; i < half / 2; i++) {                                                                \
            name##_merge_step(&first, i, order);                                                   \
            name##_merge_step(&second, i, order);                                                  \
        }                                                                                          \
        if (i < (count - half) / 2) {                                                              \
            name##_merge_step(&second, i, order);                                                  \
        }                                                                                          \
        name##_merge_end(&first);                                                                  \
        name##_merge_end(&second);                                                                 \
    }                                                                                              \
                                                                                                   \
    static inline void name##_sort_halves(type *from, type *other, size_t count, bool into_other,  \
                                          const void *order)                                       \
    {                                                                                              \
        size_t half = count / 2;                                                                   \
        type *to = into_other ? other : from;                                                      \
        if (count <= 8) {                                                                          \
            name##_sort_few(from, to, half, order);                                                \
            name##_sort_few(from + half, to + half, count - half, order);                          \
            return;                                                                                \
        }                                                                                          \
        if (count > WEFT_SORT_PAUSE_MIN / weft_sort_weight(sizeof(type))) {                        \
            weft_jobs_pause(count *weft_sort_weight(sizeof(type)));                                \
        }                                                                                          \
        name##_sort_halves(from, other, half, !into_other, order);                                 \
        name##_sort_halves(from + half, other + half, count - half, !into_other, order);           \
        name##_merge_both(into_other ? from : other, to, count, order);                            \
    }                                                                                              \
                                                                                                   \
    static inline void name##_sort_all(type *from, type *other, size_t count, bool into_other,     \
                                       const void *order)                                          \
    {                                                                                              \
        if (count <= 4) {                                                                          \
            name##_sort_few(from, into_other ? other : from, count, order);                        \
            return;                                                                                \
        }                                                                                          \
        name##_sort_halves(from, other, count, !into_other, order);                                \
        name##_merge(into_other ? from : other, into_other ? other : from, count, order);          \
    }                                                                                              \
                                                                                                   \
    static inline bool name##_settle(void *array, size_t count, const void *order)                 \
    {                                                                                              \
        type *base = (type *)array;                                                                \
        size_t i = 1;                                                                              \
        while (i < count && !name##_less(base + i, base + i - 1, order)) {                         \
            weft_sort_pause_each(i++, sizeof(type));                                               \
        }                                                                                          \
        if (i >= count || i > 1) {                                                                 \
            return i >= count;                                                                     \
        }                                                                                          \
        while (i < count && name##_less(base + i, base + i - 1, order)) {                          \
            weft_sort_pause_each(i++, sizeof(type));                                               \
        }                                                                                          \
        if (i < count) {                                                                           \
            return false;                                                                          \
        }                                                                                          \
        for (size_t k = 0; k < count / 2; k++) {                                                   \
            type kept = base[k];                                                                   \
            base[k] = base[count - 1 - k];                                                         \
            base[count - 1 - k] = kept;                                                            \
            weft_sort_pause_each(k, sizeof(type));                                                 \
        }                                                                                          \
        return true;                                                                               \
    }                                                                                              \
                                                                                                   \
    static inline void name##_sort(void *from, void *other, size_t count, bool into_other,         \
                                   const void *order)                                              \
    {                                                                                              \
        if (count < WEFT_SORT_LOOK_MIN || !name##_settle(from, count, order)) {                    \
            name##_sort_all((type *)from, (type *)other, count, into_other, order);                \
        } else if (into_other) {                                                                   \
            weft_sort_copy(other, from, count * sizeof(type));                                     \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static inline bool name##_is_less(const void *a, const void *b, const void *order)             \
    {                                                                                              \
        return name##_less((type const *)a, (type const *)b, order);                               \
    }                                                                                              \
                                                                                                   \
    static inline uint16_t name##_bucket(type const *element, size_t leaf,                         \
                                         const weft_splitters *splitters, const void *order)       \
    {                                                                                              \
        size_t bucket = leaf / sizeof(type) - ((size_t)1 << splitters->levels);                    \
        if (splitters->with_equal) {                                                               \
            type const *last = (type const *)splitters->sorted + bucket - (bucket > 0);            \
            bucket = 2 * bucket - (bucket > 0 && !name##_less(last, element, order));              \
        }                                                                                          \
        return (uint16_t)bucket;                                                                   \
    }                                                                                              \
                                                                                                   \
    /* From a node of the tree, given in bytes, to one below. */                                   \
    static inline size_t name##_descend(type const *element, type const *tree, size_t node,        \
                                        const void *order)                                         \
    {                                                                                              \
        bool goes_left = name##_less(element, name##_moved(tree, node), order);                    \
        return 2 * node + sizeof(type) - (sizeof(type) & weft_sort_mask(goes_left));               \
    }                                                                                              \
                                                                                                   \
    /* Four at a time, since each waits for its last comparison. */                                \
    static inline void name##_classify(const void *from, size_t count,                             \
                                       const weft_splitters *splitters, uint16_t *buckets,         \
                                       const void *order)                                          \
    {                                                                                              \
        type const *element = (type const *)from;                                                  \
        type const *tree = (type const *)splitters->tree;                                          \
        type const *end = element + count;                                                         \
        for (; end - element >= 4; element += 4, buckets += 4) {                                   \
            size_t a = sizeof(type);                                                               \
            size_t b = sizeof(type);                                                               \
            size_t c = sizeof(type);                                                               \
            size_t d = sizeof(type);                                                               \
            for (unsigned level = splitters->levels; level > 0; level--) {                         \
                a = name##_descend(element, tree, a, order);                                       \
                b = name##_descend(element + 1, tree, b, order);                                   \
                c = name##_descend(element + 2, tree, c, order);                                   \
                d = name##_descend(element + 3, tree, d, order);                                   \
            }                                                                                      \
            buckets[0] = name##_bucket(element, a, splitters, order);                              \
            buckets[1] = name##_bucket(element + 1, b, splitters, order);                          \
            buckets[2] = name##_bucket(element + 2, c, splitters, order);                          \
            buckets[3] = name##_bucket(element + 3, d, splitters, order);                          \
        }                                                                                          \
        for (; element < end; element++, buckets++) {                                              \
            size_t node = sizeof(type);                                                            \
            for (unsigned level = splitters->levels; level > 0; level--) {                         \
                node = name##_descend(element, tree, node, order);                                 \
            }                                                                                      \
            *buckets = name##_bucket(element, node, splitters, order);                             \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static const weft_sort_ops name##_ops = { sizeof(type), name##_sort, name##_settle,            \
                                              name##_is_less, name##_classify };

/*
 * Defines a sort of one type with its comparison compiled in:
 *
 *   static int name(type *base, size_t count, const weft_par_options *options);
 *
 * less(a, b) is a function or a macro that gets two type const *, and says whether *a comes
 * before *b. It is used as the function of weft_sort() is. Equal elements may change
 * places. Elements are copied by assignment and by memcpy.
 *
 * Context:  any thread.
 * Suspends: as weft_sort().
 * Errors:   as weft_sort().
 */
#define WEFT_SORT_DEFINE(name, type, less)                                                         \
    static inline bool name##_less(type const *a, type const *b, const void *order)                \
    {                                                                                              \
        (void)order;                                                                               \
        return less(a, b);                                                                         \
    }                                                                                              \
    WEFT_SORT_MAKE(name, type)                                                                     \
    static inline __attribute__((unused)) WEFT_NODISCARD int name(type *base, size_t count,        \
                                                                  const weft_par_options *options) \
    {                                                                                              \
        return weft_sort_run(&name##_ops, NULL, base, count, options);                             \
    }

#endif
