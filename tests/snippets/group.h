/* SPDX-License-Identifier: MIT */
enum {
    CITIES = 100
};
struct order {
    unsigned city;
};
extern struct order *orders;
extern size_t *counts;
extern weft_key_count *cities;
extern size_t room;
extern size_t found;
