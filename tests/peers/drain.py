# SPDX-License-Identifier: MIT
"""The drain example: what happens to requests and to idle connections after the signal."""

import rig
from rig import Server, Talk, check, check_equal


def socat(server):
    return Talk("socat", "-", f"TCP:127.0.0.1:{server.port}")


def what_has_begun_is_finished():
    server = Server("drain", "tcp://127.0.0.1:0", "60000")
    idle = socat(server)
    idle.say("0")
    check_equal([idle.hear(), idle.hear()], ["begun", "done"])
    busy = socat(server)
    busy.say("300")
    check_equal(busy.hear(), "begun")
    busy.say("300")  # possibly too late, but never cut off
    server.signal()
    check_equal(busy.hear(), "done")
    check(busy.hear() in (None, "begun"))
    check_equal(idle.hear(), None)
    rest = server.stop()
    check("all are done" in rest, rest)
    idle.end()
    busy.end()


def what_takes_too_long_is_cancelled():
    server = Server("drain", "tcp://127.0.0.1:0", "100")
    busy = socat(server)
    busy.say("600000")
    check_equal(busy.hear(), "begun")
    server.signal()
    check_equal(busy.hear(), "cancelled")
    check_equal(busy.hear(), None)
    rest = server.stop()
    check("1 requests were under way: some were cancelled" in rest, rest)
    busy.end()


def with_nothing_to_do_it_ends_at_once():
    server = Server("drain", "tcp://127.0.0.1:0", "60000")
    rest = server.stop()
    check("0 requests were under way: all are done" in rest, rest)


rig.need("socat")
rig.main((
    what_has_begun_is_finished,
    what_takes_too_long_is_cancelled,
    with_nothing_to_do_it_ends_at_once,
))
