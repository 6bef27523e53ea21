# SPDX-License-Identifier: MIT
"""Bulk data through nc and socat: the echo examples and the proxy."""

import os
import re
import subprocess
import tempfile

import rig
from rig import Server, check, check_equal

SIZE = 8 << 20


def nc(server):
    return ("nc", "-N", "127.0.0.1", str(server.port))


def socat(server):
    return ("socat", "-t", "60", "-", f"TCP:127.0.0.1:{server.port}")


def an_echo_gives_all_bytes_back():
    data = rig.noise(SIZE)
    for name in ("echo", "echo_stackless"):
        with Server(name, "tcp://127.0.0.1:0") as server:
            for command in (nc(server), socat(server)):
                back = rig.run(*command, data=data)
                check_equal((command, rig.digest(back)), (command, rig.digest(data)))
            server.stop()


def a_unix_socket_does_the_same_and_is_removed():
    data = rig.noise(SIZE // 4)
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "socket")
        with Server("echo_stackless", f"unix:{path}") as server:
            for command in (("nc", "-N", "-U", path),
                            ("socat", "-t", "60", "-", f"UNIX-CONNECT:{path}")):
                back = rig.run(*command, data=data)
                check_equal((command, rig.digest(back)), (command, rig.digest(data)))
            server.stop()
        check(not os.path.exists(path), path)


def a_proxy_passes_all_bytes_on_both_ways():
    data = rig.noise(SIZE)
    with Server("echo_stackless", "tcp://127.0.0.1:0") as echo:
        with Server("proxy", "tcp://127.0.0.1:0", echo.place) as proxy:
            for command in (nc(proxy), socat(proxy)):
                back = rig.run(*command, data=data)
                check_equal((command, rig.digest(back)), (command, rig.digest(data)))
            proxy.stop()


def a_proxy_passes_on_that_one_side_has_ended():
    """The target answers after it has read everything, with the checksum of the data."""
    data = rig.noise(SIZE)
    target = subprocess.Popen(
        ["socat", "-d", "-d", "TCP-LISTEN:0,bind=127.0.0.1", "EXEC:sha256sum"],
        stderr=subprocess.PIPE, text=True,
    )
    port = None
    while not port:
        line = target.stderr.readline()
        check(line, "socat does not listen")
        port = re.search(r"listening on .*:(\d+)$", line.rstrip())
    with Server("proxy", "tcp://127.0.0.1:0", f"tcp://127.0.0.1:{port[1]}") as proxy:
        answer = rig.run(*nc(proxy), data=data).decode()
        check_equal(answer.split()[0], rig.digest(data))
        proxy.stop()
    target.communicate(timeout=rig.PATIENCE)
    check_equal(target.returncode, 0)


rig.need("nc", "socat")
rig.main((
    an_echo_gives_all_bytes_back,
    a_unix_socket_does_the_same_and_is_removed,
    a_proxy_passes_all_bytes_on_both_ways,
    a_proxy_passes_on_that_one_side_has_ended,
))
