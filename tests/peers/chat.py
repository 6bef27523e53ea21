# SPDX-License-Identifier: MIT
"""The chat example with nc, and with a client that reads late."""

import re
import socket

import rig
from rig import Server, Talk, check, check_equal

LINES = 20000


def nc(server):
    return Talk("nc", "-N", "127.0.0.1", str(server.port))


def socat(server):
    return Talk("socat", "-", f"TCP:127.0.0.1:{server.port}")


def all_read_what_one_says():
    with Server("chat", "tcp://127.0.0.1:0") as server:
        one = nc(server)
        check_equal(one.hear(), "* you are 1")
        two = nc(server)
        check_equal(two.hear(), "* you are 2")
        check_equal(one.hear(), "* 2 has come")
        one.say("hello")
        check_equal(two.hear(), "1: hello")
        two.say("and \033[31mred")
        check_equal(one.hear(), "2: and ?[31mred")
        two.end()
        check_equal(one.hear(), "* 2 has left")
        one.end()


def a_line_that_is_too_long_ends_the_talk():
    with Server("chat", "tcp://127.0.0.1:0") as server:
        one = nc(server)
        check_equal(one.hear(), "* you are 1")
        one.say("x" * 512)
        one.say("x" * 600)
        check_equal(one.hear(), "* a line has 512 bytes at most")
        one.end()


def who_reads_late_is_told_what_it_has_missed():
    with Server("chat", "tcp://127.0.0.1:0") as server:
        late = socket.socket()
        late.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        late.settimeout(rig.PATIENCE)
        late.connect(("127.0.0.1", server.port))
        text = late.makefile("r")
        check_equal(text.readline(), "* you are 1\n")
        with server.connect() as speaker:
            check_equal(speaker.makefile("r").readline(), "* you are 2\n")
            check_equal(text.readline(), "* 2 has come\n")
            speaker.sendall(b"%s\n" % (b"x" * 500) * LINES)
            speaker.shutdown(socket.SHUT_WR)
            rig.receive_all(speaker)  # By then the server has read everything.
        heard = missed = 0
        for line in text:
            if line == "* 2 has left\n":
                break
            match = re.fullmatch(r"\* you have missed (\d+) lines\n", line)
            if match:
                missed += int(match[1])
            else:
                check_equal(line, "2: " + "x" * 500 + "\n")
                heard += 1
        check_equal(heard + missed, LINES)
        check(missed > 0 and heard > 0, heard, missed)
        late.close()


def an_end_of_the_server_is_an_end_for_all():
    server = Server("chat", "tcp://127.0.0.1:0")
    clients = [socat(server) for _ in range(10)]
    for client in clients:
        check(client.hear().startswith("* you are"))
    server.stop()
    for client in clients:
        while client.hear() is not None:
            pass
        client.end()


rig.need("nc", "socat")
rig.main((
    all_read_what_one_says,
    a_line_that_is_too_long_ends_the_talk,
    who_reads_late_is_told_what_it_has_missed,
    an_end_of_the_server_is_an_end_for_all,
))
