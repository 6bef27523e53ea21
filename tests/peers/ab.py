# SPDX-License-Identifier: MIT
"""The HTTP example under ab, an HTTP/1.0 client that keeps connections open if the server
agrees."""

import re
import tempfile

import rig
from rig import Server, check, check_equal

REQUESTS = 500


def ab(server, path, *arguments):
    """Returns ab's counts by name."""
    output = rig.run("ab", "-q", "-n", str(REQUESTS), "-c", "8", *arguments,
                     f"http://{server.place[6:]}{path}").decode()
    return {name: int(value) for name, value in re.findall(r"^([A-Z][^:]*): +(\d+)", output, re.M)}


def each_kind_of_request_is_answered():
    with Server("http", "tcp://127.0.0.1:0") as server, tempfile.NamedTemporaryFile() as body:
        body.write(rig.noise(5000))
        body.flush()
        cases = (
            ((), "/", 0, 6),
            (("-k",), "/", REQUESTS, 6),
            (("-i",), "/", 0, 0),
            (("-k", "-i"), "/", REQUESTS, 0),
            (("-k", "-p", body.name), "/echo", REQUESTS, 5000),
        )
        for arguments, path, kept, length in cases:
            counts = ab(server, path, *arguments)
            seen = (counts["Complete requests"], counts["Failed requests"],
                    counts.get("Keep-Alive requests", 0))
            check_equal((arguments, *seen), (arguments, REQUESTS, 0, kept))
            check("Non-2xx responses" not in counts, counts)
            if length > 0:
                check_equal(counts["Document Length"], length)


rig.need("ab")
rig.main((each_kind_of_request_is_answered,))
