# SPDX-License-Identifier: MIT
"""The HTTP example under the load of wrk: every answer is correct, and none is missing."""

import re

import rig
from rig import Server, check


def a_load_has_no_errors():
    with Server("http", "tcp://127.0.0.1:0") as server:
        url = f"http://{server.place[6:]}/"
        output = rig.run("wrk", "-t", "2", "-c", "32", "-d", "1s", url).decode()
        check("Socket errors" not in output, output)
        check("Non-2xx" not in output, output)
        count = re.search(r"(\d+) requests in", output)
        check(count and int(count[1]) > 100, output)


rig.need("wrk")
rig.main((a_load_has_no_errors,))
