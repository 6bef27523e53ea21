# SPDX-License-Identifier: MIT
"""How the servers end: by a signal with open connections, and by an address that is not
available."""

import os
import shlex
import signal
import subprocess
import sys

import rig
from rig import Server, check, check_equal

# With the arguments after the address.
SERVERS = {
    "chat": (),
    "drain": ("10",),
    "echo": (),
    "echo_stackless": (),
    "http": (),
    "proxy": ("tcp://127.0.0.1:1",),
    "redis": (),
}


def each_signal_ends_a_server_with_connections():
    for name, arguments in SERVERS.items():
        for number in (signal.SIGINT, signal.SIGTERM):
            with Server(name, "tcp://127.0.0.1:0", *arguments) as server:
                with server.connect() as silent, server.connect() as talking:
                    talking.sendall(b"GET")
                    server.process.send_signal(number)
                    server.process.wait(timeout=rig.PATIENCE)
                    check_equal((name, number, server.process.returncode), (name, number, 0))
                    silent.settimeout(rig.PATIENCE)
                    try:
                        rig.receive_all(silent)
                    except ConnectionError:
                        pass


def a_place_that_cannot_be_had_is_an_error_with_a_sentence():
    launcher = shlex.split(os.environ.get("WEFT_TEST_LAUNCHER", ""))
    with Server("echo_stackless", "tcp://127.0.0.1:0") as other:
        for name, arguments in [*SERVERS.items(), ("udp_echo", ())]:
            taken = [other.place] if name != "udp_echo" else []
            for place in ("nonsense", "tcp://127.0.0.1:99999", "unix:/nowhere/at/all", *taken):
                done = subprocess.run(
                    [*launcher, os.path.join(sys.argv[1], name), place, *arguments],
                    capture_output=True, text=True, timeout=rig.PATIENCE, check=False)
                check_equal((name, place, done.returncode), (name, place, 1))
                check(done.stderr.startswith(f"{name}: "), name, place, done.stderr)


rig.main((
    each_signal_ends_a_server_with_connections,
    a_place_that_cannot_be_had_is_an_error_with_a_sentence,
))
