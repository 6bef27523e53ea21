# SPDX-License-Identifier: MIT
"""The UDP echo example with socat and nc, and with many datagrams at a time."""

import socket

import rig
from rig import Server, Talk, check_equal

WINDOW = 32
MESSAGES = 3200


def a_message_comes_back():
    with Server("udp_echo", "udp://127.0.0.1:0") as server:
        for command in (("nc", "-u", "127.0.0.1", str(server.port)),
                        ("socat", "-", f"UDP:127.0.0.1:{server.port}")):
            peer = Talk(*command)
            peer.say("hello")
            check_equal(peer.hear(), "hello")
            peer.process.kill()
            peer.end()


def many_messages_come_back_as_they_were():
    with Server("udp_echo", "udp://127.0.0.1:0") as server:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
            peer.settimeout(rig.PATIENCE)
            peer.connect(("127.0.0.1", server.port))
            for first in range(0, MESSAGES, WINDOW):
                sent = [rig.noise(number % 1472) for number in range(first, first + WINDOW)]
                for message in sent:
                    peer.send(message)
                check_equal([peer.recv(4096) for _ in sent], sent)


def a_message_of_the_largest_size_comes_back_and_a_larger_one_does_not():
    with Server("udp_echo", "udp://127.0.0.1:0") as server:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
            peer.settimeout(rig.PATIENCE)
            peer.connect(("127.0.0.1", server.port))
            for message in (rig.noise(2049), rig.noise(2048), b"end"):
                peer.send(message)
            check_equal(peer.recv(4096), rig.noise(2048))
            check_equal(peer.recv(4096), b"end")


rig.need("nc", "socat")
rig.main((
    a_message_comes_back,
    many_messages_come_back_as_they_were,
    a_message_of_the_largest_size_comes_back_and_a_larger_one_does_not,
))
