/* SPDX-License-Identifier: MIT */
/*
 * weft/sort.h - parallel sorting.
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
 * Every sort can be called on any thread. In a task and in weft_par_run(), idle workers help
 * with large inputs. Elsewhere it runs on the calling thread alone. The result does not depend
 * on the number of workers. Small inputs are sorted without forking.
 *
 * A sort that returns an error has not touched the array, except that WEFT_ECANCELED leaves the
 * elements in an unspecified order.
 *
 * Numbers are sorted by radix sort, which is the fastest. Among comparison sorts, the ones
 * defined by WEFT_SORT_DEFINE() are the fastest.
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
 * Returns the number of bytes of scratch that weft_sort(), weft_sort_stable() and the functions
 * defined by WEFT_SORT_DEFINE() need for count elements of the given size. The scratch needs no
 * alignment. Returns SIZE_MAX if the size is not representable.
 *
 * Context: any thread.
 */
WEFT_API size_t weft_sort_scratch(size_t count, size_t size);

/*
 * Same as weft_sort_scratch(), for the sorts of numbers. size is the size of a number.
 *
 * Context: any thread.
 */
WEFT_API size_t weft_sort_number_scratch(size_t count, size_t size);

/*
 * Same as weft_sort_scratch(), for weft_sort_by_key().
 *
 * Context: any thread.
 */
WEFT_API size_t weft_sort_by_key_scratch(size_t count, size_t size);

/*
 * Sorts count elements of size bytes each. Equal elements may be reordered. The fastest are
 * elements of 4, 8 and 16 bytes that are aligned to 4, 8 and 8 bytes.
 *
 * Context:  any thread.
 * Suspends: while another worker runs a part of it, like weft_join2().
 * Errors:   -ENOMEM; -EINVAL if size is 0 or the scratch is too small; WEFT_ECANCELED:
 *           options->stop was set.
 */
WEFT_API WEFT_NODISCARD int weft_sort(void *base, size_t count, size_t size,
                                      weft_compare_fn compare, void *arg,
                                      const weft_par_options *options);

/*
 * Sorts like weft_sort(), but stably: equal elements keep their order.
 *
 * Context:  any thread.
 * Suspends: like weft_sort().
 * Errors:   like weft_sort().
 */
WEFT_API WEFT_NODISCARD int weft_sort_stable(void *base, size_t count, size_t size,
                                             weft_compare_fn compare, void *arg,
                                             const weft_par_options *options);

/*
 * Sorts by a key of each element, stably. Each key is computed once, before any element is
 * moved.
 *
 * Context:  any thread.
 * Suspends: like weft_sort().
 * Errors:   like weft_sort(), and errors of the key function.
 */
WEFT_API WEFT_NODISCARD int weft_sort_by_key(void *base, size_t count, size_t size, weft_key_fn key,
                                             void *arg, const weft_par_options *options);

/*
 * Sorts numbers in ascending order.
 *
 * Context:  any thread.
 * Suspends: like weft_sort().
 * Errors:   -ENOMEM; -EINVAL if the scratch is too small; WEFT_ECANCELED: options->stop was
 *           set.
 */
WEFT_API WEFT_NODISCARD int weft_sort_u32(uint32_t *base, size_t count,
                                          const weft_par_options *options);

/* Same as weft_sort_u32(), for uint64_t. */
WEFT_API WEFT_NODISCARD int weft_sort_u64(uint64_t *base, size_t count,
                                          const weft_par_options *options);

/* Same as weft_sort_u32(), for int32_t. */
WEFT_API WEFT_NODISCARD int weft_sort_i32(int32_t *base, size_t count,
                                          const weft_par_options *options);

/* Same as weft_sort_u32(), for int64_t. */
WEFT_API WEFT_NODISCARD int weft_sort_i64(int64_t *base, size_t count,
                                          const weft_par_options *options);

/*
 * Sorts floating-point numbers in the IEEE 754 total order: negative NaNs, -inf, negative
 * numbers, -0, +0, positive numbers, inf, positive NaNs. NaNs are ordered by their payload.
 *
 * Context:  any thread.
 * Suspends: like weft_sort().
 * Errors:   like weft_sort_u32().
 */
WEFT_API WEFT_NODISCARD int weft_sort_f32(float *base, size_t count,
                                          const weft_par_options *options);

/* Same as weft_sort_f32(), for double. */
WEFT_API WEFT_NODISCARD int weft_sort_f64(double *base, size_t count,
                                          const weft_par_options *options);

/*
 * Implementation of WEFT_SORT_DEFINE(), which is the last macro in this file.
 */

/* The 2^levels - 1 elements that split the array into buckets. */
typedef struct weft_splitters {
    unsigned levels;
    bool with_equal;    /* elements equal to a splitter get a bucket of their own */
    const void *sorted; /* the splitters in order, from index 0 */
    const void *tree;   /* as a heap, from index 1: the median, the medians of both halves, ... */
} weft_splitters;

/*
 * The serial operations of a sort of one type, as defined by WEFT_SORT_MAKE(). order is the
 * argument of weft_sort_run().
 */
typedef struct weft_sort_ops {
    size_t size; /* size of an element */

    /* Sorts the elements at from, stably, in place or into other. */
    void (*sort)(void *from, void *other, size_t count, bool into_other, const void *order);

    /* Returns whether the array is sorted. Reverses a strictly descending array, which then
     * counts as sorted. */
    bool (*settle)(void *base, size_t count, const void *order);

    bool (*less)(const void *a, const void *b, const void *order);

    /* Computes each element's bucket: the number of splitters that are not greater. With
     * with_equal, twice that number, minus one if the last of those splitters equals the
     * element. */
    void (*classify)(const void *from, size_t count, const weft_splitters *splitters,
                     uint16_t *buckets, const void *order);
} weft_sort_ops;

/*
 * Sorts an array stably with these operations.
 *
 * Context:  any thread.
 * Suspends: like weft_sort().
 * Errors:   like weft_sort().
 */
WEFT_API WEFT_NODISCARD int weft_sort_run(const weft_sort_ops *ops, const void *order, void *base,
                                          size_t count, const weft_par_options *options);

WEFT_EXTERN_C_END

/*
 * Converts the result of a comparison to 0 or 1. weft_sort_mask() converts it to a mask of no
 * bits or all bits. The assembly hides where the value comes from. Otherwise the compiler would
 * turn it back into branches, half of them mispredicted.
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

/* Returns the first pointer if the mask has no bits, the second if it has all. */
static inline const void *weft_sort_pick(size_t mask, const void *zero, const void *ones)
{
    uintptr_t both = (uintptr_t)zero ^ (uintptr_t)ones;
    return (const void *)((uintptr_t)zero ^ (both & mask));
}

/* Minimum number of elements for which a sort or merge first checks whether they are in order. */
#define WEFT_SORT_LOOK_MIN 32
/* A sort of more small elements than this calls weft_jobs_pause(); see weft_sort_weight(). */
#define WEFT_SORT_PAUSE_MIN 64
/* Steps between pauses within longer merges of small elements. A step is two or four
 * comparisons. */
#define WEFT_SORT_PAUSE_STEPS 128
/* Bytes copied between pauses. */
#define WEFT_SORT_PAUSE_BYTES 65536

/* Returns the number of small elements that one element of this size counts as. */
static inline size_t weft_sort_weight(size_t size)
{
    return 1 + size / 128;
}

/* Returns the number of steps between two pauses, for elements of this size. */
static inline size_t weft_sort_stride(size_t size)
{
    size_t steps = WEFT_SORT_PAUSE_STEPS / weft_sort_weight(size);
    return steps > 0 ? steps : 1;
}

/* Pauses after every weft_sort_stride(size) steps of a loop. Called after step i. */
static inline void weft_sort_pause_each(size_t i, size_t size)
{
    size_t steps = weft_sort_stride(size);
    if (i % steps == steps - 1) {
        weft_jobs_pause(steps * weft_sort_weight(size));
    }
}

/* Copies like memcpy(), with pauses. Not inlined: it is seldom needed in loops that must be
 * short. */
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
 * Defines name_ops for a type, given a function bool name_less(type const *a, type const *b,
 * const void *order).
 *
 * This is a merge sort that alternates between two arrays. It halves the input down to four
 * elements or fewer and then merges pairs. Only name_less decides where data goes, and no
 * branch depends on it: its result becomes an index.
 *
 * A merge proceeds from both ends at the same time, and two merges are interleaved. This gives
 * four independent dependency chains, since each step waits for its last comparison. The halves
 * differ by at most one element, so neither end can run out of elements. If name_less is
 * inconsistent, the two ends may disagree on where they meet. Then some element was taken
 * twice, and the merge is discarded.
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
    /* Sorts a pair, then inserts the third element. */                                            \
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
    /* Sorts two pairs, then finds the minimum and the maximum, then orders the middle two. */     \
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
        size_t from_right; /* bytes taken from the right run, at the front */                      \
        size_t from_left;  /* bytes taken from the left run, at the back */                        \
    } name##_merge_state;                                                                          \
                                                                                                   \
    /* Writes one element to the front and one to the back of the merged output. */                \
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
    /* Merges each half of count elements, like name_merge(). */                                   \
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
    /* Descends from a node of the tree to a child. Nodes are byte offsets. */                     \
    static inline size_t name##_descend(type const *element, type const *tree, size_t node,        \
                                        const void *order)                                         \
    {                                                                                              \
        bool goes_left = name##_less(element, name##_moved(tree, node), order);                    \
        return 2 * node + sizeof(type) - (sizeof(type) & weft_sort_mask(goes_left));               \
    }                                                                                              \
                                                                                                   \
    /* Handles four elements at a time, since each descent waits for its last comparison. */       \
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
 * less(a, b) is a function or macro that takes two type const * and returns whether *a comes
 * before *b. The rules for the callback of weft_sort() apply to it. Equal elements may be
 * reordered. Elements are copied by assignment and by memcpy.
 *
 * Context:  any thread.
 * Suspends: like weft_sort().
 * Errors:   like weft_sort().
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
