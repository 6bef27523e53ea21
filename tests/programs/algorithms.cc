// SPDX-License-Identifier: MIT
// algorithms.cc - function-defining macros, and the algorithms that use their functions, in C++.
#include <cstdio>

#include <weft.h>

namespace
{

struct person {
    unsigned age;
    unsigned number;
};

WEFT_PARALLEL(long, fib, int, n)
{
    if (n < 2) {
        return n;
    }
    long first;
    long second;
    fib_both(&first, n - 1, &second, n - 2);
    return first + second;
}

WEFT_TEST(is_grown_up, person, one, one->age >= 18)
WEFT_KEY(age_of, person, one, one->age)
WEFT_MAP(next_age, person, one, unsigned, one->age + 1)
WEFT_MAP2(age_sum, person, one, person, other, unsigned, one->age + other->age)

#define YOUNGER(a, b) ((a)->age < (b)->age)
WEFT_SORT_DEFINE(sort_people, person, YOUNGER)

constexpr size_t COUNT = 30000;
person people[COUNT];
person chosen[COUNT];
unsigned ages[COUNT];

void fill()
{
    for (size_t i = 0; i < COUNT; i++) {
        people[i].age = unsigned(i * 7919 % 90);
        people[i].number = unsigned(i);
    }
}

bool is_sorted()
{
    bool sorted = true;
    for (size_t i = 1; i < COUNT; i++) {
        sorted = sorted && people[i - 1].age <= people[i].age;
    }
    return sorted;
}

int check(bool condition, const char *what)
{
    if (!condition) {
        std::fprintf(stderr, "wrong: %s\n", what);
    }
    return condition ? 0 : 1;
}

int app(void *)
{
    size_t passed = 0;
    int failed = check(fib(20) == 6765, "WEFT_PARALLEL");
    fill();
    int err = weft_filter(people, COUNT, sizeof(person), is_grown_up, nullptr, chosen, &passed,
                          nullptr);
    failed += check(err == 0 && passed == COUNT / 90 * 72 + 29, "WEFT_TEST");
    err = weft_map(people, COUNT, sizeof(person), next_age, nullptr, ages, sizeof ages[0], nullptr);
    failed += check(err == 0 && ages[1] == people[1].age + 1, "WEFT_MAP");
    err = weft_map2(people, sizeof(person), people, sizeof(person), COUNT, age_sum, nullptr, ages,
                    sizeof ages[0], nullptr);
    failed += check(err == 0 && ages[2] == 2 * people[2].age, "WEFT_MAP2");
    err = weft_sort_by_key(people, COUNT, sizeof(person), age_of, nullptr, nullptr);
    failed += check(err == 0 && is_sorted(), "WEFT_KEY");
    fill();
    err = sort_people(people, COUNT, nullptr);
    failed += check(err == 0 && is_sorted(), "WEFT_SORT_DEFINE");
    return failed;
}

} // namespace

int main()
{
    return weft_run(nullptr, app, nullptr) == 0 ? 0 : 1;
}
