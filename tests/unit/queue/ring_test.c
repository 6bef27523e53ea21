/* SPDX-License-Identifier: MIT */
#include "queue/ring.h"

#include "test.h"

static struct wf_ring ring;
static struct wf_qnode nodes[2 * WF_RING_SLOTS + 2];

static void fill(uint32_t count)
{
    wf_ring_init(&ring);
    for (uint32_t i = 0; i < count; i++) {
        CHECK(wf_ring_push(&ring, &nodes[i]));
    }
}

static void pop_returns_the_oldest(void)
{
    fill(3);
    CHECK(wf_ring_pop(&ring) == &nodes[0]);
    CHECK(wf_ring_pop(&ring) == &nodes[1]);
    CHECK(wf_ring_pop(&ring) == &nodes[2]);
    CHECK(wf_ring_pop(&ring) == NULL);
}

TEST_MAIN({ TEST(pop_returns_the_oldest) })
