/* SPDX-License-Identifier: MIT */
/*
 * workshop.c - a scope, channels and a select.
 *
 *     workshop [ORDERS]
 *
 * Several fibers receive orders from one channel and send goods to another, until there are no
 * more orders or it takes too long.
 */
#include <stdio.h>
#include <stdlib.h>

#include <weft.h>

enum {
    WORKERS = 3,
};

struct order {
    int number;
    weft_time effort;
};

WEFT_CHANNEL(orders, struct order)
WEFT_CHANNEL(goods, int)

struct worker {
    orders_receiver *from;
    goods_sender *to;
};

/* Ends when there are no more orders, or when no receiver wants the goods. */
static int work(void *arg)
{
    struct worker *self = arg;
    struct order order;
    int err;
    while ((err = orders_recv(self->from, &order, WEFT_NEVER)) == 0) {
        err = weft_sleep(order.effort);
        if (err == 0) {
            err = goods_send(self->to, order.number, WEFT_NEVER);
        }
        if (err != 0) {
            break;
        }
    }
    orders_receiver_drop(self->from);
    goods_sender_drop(self->to);
    return err == WEFT_ECLOSED ? 0 : err;
}

struct office {
    orders_sender *to;
    int count;
};

static int place_orders(void *arg)
{
    struct office *self = arg;
    int err = 0;
    for (int i = 1; i <= self->count && err == 0; i++) {
        struct order order = { i, (i % 4 + 1) * WEFT_MS };
        err = orders_send(self->to, order, WEFT_NEVER);
    }
    orders_sender_drop(self->to);
    return err;
}

/* Receives goods; prints a note when none has arrived for a while. */
static int take_goods(goods_receiver *from)
{
    int made = 0;
    for (;;) {
        int number = 0;
        weft_op recv;
        weft_sleep_future sleep;
        goods_recv_init(&recv, from, &number);
        weft_sleep_init(&sleep, weft_after(50 * WEFT_MS), 0);
        weft_branch branches[] = { { .future = &recv.future }, { .future = &sleep.future } };
        int winner = weft_select(branches, 2, 0, WEFT_NEVER);
        if (winner < 0) {
            return winner;
        }
        if (winner == 1) {
            printf("still waiting\n");
        } else if (branches[0].result == 0) {
            made++;
        } else {
            return made;
        }
    }
}

static int shop(void *arg)
{
    struct office office = { .count = *(int *)arg };
    struct worker workers[WORKERS];
    orders_receiver *orders_from;
    goods_sender *goods_to;
    goods_receiver *goods_from;
    int err = orders_make(&office.to, &orders_from, 4);
    if (err != 0) {
        return err;
    }
    err = goods_make(&goods_to, &goods_from, 4);
    if (err != 0) {
        orders_sender_drop(office.to);
        orders_receiver_drop(orders_from);
        return err;
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        workers[i].from = i == 0 ? orders_from : orders_receiver_clone(orders_from);
        workers[i].to = i == 0 ? goods_to : goods_sender_clone(goods_to);
        if (workers[i].from == NULL || workers[i].to == NULL) {
            err = -ENOMEM;
        }
    }

    weft_scope_options options = { .deadline = weft_after(10 * WEFT_S) };
    WEFT_SCOPE(scope, &options, &err)
    {
        for (unsigned i = 0; i < WORKERS; i++) {
            int gone = err == 0 ? weft_scope_go(scope, work, &workers[i]) : err;
            if (gone != 0) {
                err = gone;
                orders_receiver_drop(workers[i].from);
                goods_sender_drop(workers[i].to);
            }
        }
        int gone = err == 0 ? weft_scope_go(scope, place_orders, &office) : err;
        if (gone != 0) {
            err = gone;
            orders_sender_drop(office.to);
        }
        int made = err == 0 ? take_goods(goods_from) : err;
        if (made >= 0) {
            printf("%d of %d orders made\n", made, office.count);
        } else {
            err = made;
        }
    }
    goods_receiver_drop(goods_from);
    return err;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 20;
    if (count <= 0) {
        fprintf(stderr, "usage: workshop [ORDERS]\n");
        return 2;
    }
    int err = weft_run(NULL, shop, &count);
    if (err != 0) {
        fprintf(stderr, "workshop: %s\n", weft_strerror(err));
    }
    return err != 0;
}
