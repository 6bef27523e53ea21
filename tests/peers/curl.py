# SPDX-License-Identifier: MIT
"""The HTTP example with curl, and with clients that send requests that curl would not."""

import rig
from rig import Server, check, check_equal

BODY_MAX = 16384


def curl(server, path, *arguments, data=b""):
    """Returns the status and the body."""
    url = f"http://127.0.0.1:{server.port}{path}"
    output = rig.run("curl", "-s", "-S", "-w", "\n%{http_code}", *arguments, url, data=data)
    body, _, status = output.rpartition(b"\n")
    return int(status), body


def each_request_has_its_status():
    header = "X: " + "a" * 9000
    cases = (
        (200, "/", ()),
        (200, "/", ("--http1.0",)),
        (200, "/", ("-H", "Connection: close")),
        (404, "/nothing", ()),
        (405, "/", ("-X", "POST", "-d", "x")),
        (405, "/echo", ()),
        (501, "/", ("-X", "BREW")),
        (501, "/echo", ("-H", "Transfer-Encoding: chunked", "-d", "x")),
        (414, "/" + "a" * 5000, ()),
        (431, "/", ("-H", header)),
        (417, "/echo", ("-H", "Expect: wonders", "-d", "x")),
    )
    with Server("http", "tcp://127.0.0.1:0") as server:
        for wanted, path, arguments in cases:
            status, body = curl(server, path, *arguments)
            check_equal((path[:20], arguments, status), (path[:20], arguments, wanted))
            if wanted == 200:
                check_equal(body, b"hello\n")


def a_target_may_have_a_host_and_a_query():
    with Server("http", "tcp://127.0.0.1:0") as server:
        proxy = ("--proxy", f"http://{server.place[6:]}")
        for url in ("http://example.org/", "http://example.org", "http://example.org:81/?a=b"):
            output = rig.run("curl", "-s", "-S", *proxy, url)
            check_equal((url, output), (url, b"hello\n"))
        check_equal(curl(server, "/?a=/echo"), (200, b"hello\n"))
        check_equal(curl(server, "/echo?a", "-d", "x"), (200, b"x"))


def a_client_of_http_1_0_is_told_that_its_connection_is_kept():
    with Server("http", "tcp://127.0.0.1:0") as server, server.connect() as connection:
        request = b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"
        connection.sendall(request * 2 + b"GET / HTTP/1.0\r\n\r\n")
        answers = rig.receive_all(connection).split(b"HTTP/1.1 200 OK\r\n")[1:]
        check_equal([b"Connection: keep-alive\r\n" in answer for answer in answers],
                    [True, True, False])
        check_equal([b"Connection: close\r\n" in answer for answer in answers],
                    [False, False, True])


def a_body_comes_back_as_it_was_up_to_its_limit():
    with Server("http", "tcp://127.0.0.1:0") as server:
        for size in (0, 1, 5000, BODY_MAX):
            for more in ((), ("-H", "Expect: 100-continue")):
                data = rig.noise(size)
                status, body = curl(server, "/echo", "--data-binary", "@-", *more, data=data)
                check_equal((size, status), (size, 200))
                check_equal(rig.digest(body), rig.digest(data))
        status, _ = curl(server, "/echo", "--data-binary", "@-", data=rig.noise(BODY_MAX + 1))
        check_equal(status, 413)


def head_has_no_body():
    with Server("http", "tcp://127.0.0.1:0") as server:
        lines = rig.run("curl", "-s", "-I", f"http://{server.place[6:]}/").split(b"\r\n")
        check_equal(lines[0], b"HTTP/1.1 200 OK")
        check(b"Content-Length: 6" in lines, lines)
        check_equal(lines[-1], b"")


def one_connection_serves_many_requests():
    with Server("http", "tcp://127.0.0.1:0") as server:
        urls = [f"http://{server.place[6:]}/"] * 50
        output = rig.run("curl", "-s", "-w", "%{num_connects}\n", *urls).split()
        check_equal(output[::2], [b"hello"] * 50)
        check_equal(sum(map(int, output[1::2])), 1)


def pipelined_requests_are_answered_in_order():
    with Server("http", "tcp://127.0.0.1:0") as server, server.connect() as connection:
        requests = b"".join(
            b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n%03d" % number
            for number in range(300)
        )
        connection.sendall(requests + b"GET / HTTP/1.0\r\n\r\n")
        answers = rig.receive_all(connection).split(b"HTTP/1.1 200 OK\r\n")[1:]
        check_equal(len(answers), 301)
        for number in range(300):
            check_equal(answers[number][-7:], b"\r\n\r\n%03d" % number)


def what_two_readers_could_read_differently_is_refused():
    cases = (
        (400, b"GET / HTTP/1.1\nHost: a\n\n"),
        (400, b"GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\nHost: a\r\nA : b\r\n\r\n"),
        (400, b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"),
        (400, b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
              b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        (505, b"GET / HTTP/2.0\r\nHost: a\r\n\r\n"),
    )
    with Server("http", "tcp://127.0.0.1:0") as server:
        for status, request in cases:
            with server.connect() as connection:
                connection.sendall(request + b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                answer = rig.receive_all(connection)
                check_equal(answer.split()[:2], [b"HTTP/1.1", b"%d" % status])
                check_equal(answer.count(b"HTTP/1.1"), 1)  # The rest was not read.


rig.need("curl")
rig.main((
    each_request_has_its_status,
    a_target_may_have_a_host_and_a_query,
    a_client_of_http_1_0_is_told_that_its_connection_is_kept,
    a_body_comes_back_as_it_was_up_to_its_limit,
    head_has_no_body,
    one_connection_serves_many_requests,
    pipelined_requests_are_answered_in_order,
    what_two_readers_could_read_differently_is_refused,
))
