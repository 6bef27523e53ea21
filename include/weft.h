/* SPDX-License-Identifier: MIT */
/*
 * weft.h - everything.
 */
#ifndef WEFT_H
#define WEFT_H

#include "weft/array.h"
#include "weft/barrier.h"
#include "weft/base.h"
#include "weft/broadcast.h"
#include "weft/channel.h"
#include "weft/clock.h"
#include "weft/cond.h"
#include "weft/element.h"
#include "weft/event.h"
#include "weft/fiber.h"
#include "weft/fork.h"
#include "weft/future.h"
#include "weft/gather.h"
#include "weft/group.h"
#include "weft/join_set.h"
#include "weft/loop.h"
#include "weft/mutex.h"
#include "weft/number.h"
#include "weft/obs.h"
#include "weft/once.h"
#include "weft/oneshot.h"
#include "weft/op.h"
#include "weft/order.h"
#include "weft/par.h"
#include "weft/park.h"
#include "weft/pipeline.h"
#include "weft/runtime.h"
#include "weft/rwlock.h"
#include "weft/scope.h"
#include "weft/select.h"
#include "weft/semaphore.h"
#include "weft/shutdown.h"
#include "weft/sort.h"
#include "weft/stop.h"
#include "weft/task.h"
#include "weft/text.h"
#include "weft/time.h"
#include "weft/token.h"
#include "weft/tree.h"
#include "weft/watch.h"

#endif
