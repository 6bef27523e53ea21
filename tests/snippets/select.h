/* SPDX-License-Identifier: MIT */
struct order_form {
    int number;
};
extern weft_receiver *orders;
extern struct order_form wanted;
extern weft_event stopping;
extern void serve(const struct order_form *order);
