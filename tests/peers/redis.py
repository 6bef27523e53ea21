# SPDX-License-Identifier: MIT
"""The Redis example with redis-cli and redis-benchmark."""

import subprocess

import rig
from rig import Server, check, check_equal

REQUESTS = 10000
CLIENTS = 20
PIPELINE = 16


def cli(server, *words, data=b""):
    return rig.run("redis-cli", "-h", "127.0.0.1", "-p", str(server.port), *words, data=data)


def commands_do_what_they_say():
    with Server("redis", "tcp://127.0.0.1:0") as server:
        cases = (
            (("ping",), b"PONG\n"),
            (("PING", "hi"), b"hi\n"),
            (("echo", "a b"), b"a b\n"),
            (("get", "k"), b"\n"),
            (("set", "k", "v"), b"OK\n"),
            (("get", "k"), b"v\n"),
            (("incr", "k"), b"ERR value is not an integer or out of range\n\n"),
            (("incr", "n"), b"1\n"),
            (("set", "n", "9223372036854775807"), b"OK\n"),
            (("incr", "n"), b"ERR increment or decrement would overflow\n\n"),
            (("del", "k", "n", "k"), b"2\n"),
            (("get", "k"), b"\n"),
            (("get",), b"ERR wrong number of arguments\n\n"),
            (("nonsense",), b"ERR unknown command\n\n"),
            (("config", "get", "save"), b"save\n\n"),
        )
        for words, answer in cases:
            check_equal((words, cli(server, *words)), (words, answer))


def a_value_may_be_any_bytes_up_to_its_limit():
    with Server("redis", "tcp://127.0.0.1:0") as server:
        data = rig.noise(16384)
        check_equal(cli(server, "-x", "set", "blob", data=data), b"OK\n")
        check_equal(rig.digest(cli(server, "get", "blob")), rig.digest(data + b"\n"))
        with server.connect() as connection:
            connection.sendall(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$16385\r\n" + rig.noise(16385))
            check_equal(rig.receive_all(connection),
                        b"-ERR Protocol error: invalid bulk length\r\n")


def no_increment_is_lost():
    with Server("redis", "tcp://127.0.0.1:0") as server:
        command = ["redis-cli", "-p", str(server.port), "-r", "500", "incr", "n"]
        clients = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(4)]
        for client in clients:
            check_equal(client.wait(timeout=rig.PATIENCE), 0)
        check_equal(cli(server, "get", "n"), b"2000\n")


def a_benchmark_has_no_errors():
    with Server("redis", "tcp://127.0.0.1:0") as server:
        output = rig.run(
            "redis-benchmark", "-p", str(server.port), "-t", "ping,set,get,incr", "-q",
            "-n", str(REQUESTS), "-c", str(CLIENTS), "-P", str(PIPELINE),
        ).decode()
        check_equal(output.count("requests per second"), 5)
        for word in ("rror", "WARNING", "ERR"):
            check(word not in output, output)
        # It stops when it has enough answers; some more requests are in flight then.
        count = int(cli(server, "get", "counter:__rand_int__"))
        check(REQUESTS <= count <= REQUESTS + CLIENTS * PIPELINE, count)


def lines_that_are_typed_are_commands():
    with Server("redis", "tcp://127.0.0.1:0") as server:
        answers = rig.run("nc", "-N", "127.0.0.1", str(server.port),
                          data=b"PING\r\n\r\nset a 1\nincr a\nquit\n")
        check_equal(answers, b"+PONG\r\n+OK\r\n:2\r\n+OK\r\n")


def a_request_of_a_browser_ends_the_connection():
    """Its body would be commands: none of them is run, and none is answered."""
    requests = (
        b"POST / HTTP/1.1\r\nContent-Type: text/plain\r\n\r\nset stolen 1\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nset stolen 1\r\n",
        b"post / HTTP/1.1\r\n\r\nset stolen 1\r\n",
        b"HOST: a\r\nset stolen 1\r\n",
        b"*1\r\n$4\r\nPOST\r\nset stolen 1\r\n",
    )
    with Server("redis", "tcp://127.0.0.1:0") as server:
        for request in requests:
            with server.connect() as connection:
                connection.sendall(request)
                try:
                    answer = rig.receive_all(connection)
                except ConnectionResetError:
                    answer = b""
                check_equal((request, answer), (request, b""))
        check_equal(cli(server, "get", "stolen"), b"\n")


rig.need("redis-cli", "redis-benchmark", "nc")
rig.main((
    commands_do_what_they_say,
    a_value_may_be_any_bytes_up_to_its_limit,
    no_increment_is_lost,
    a_benchmark_has_no_errors,
    lines_that_are_typed_are_commands,
    a_request_of_a_browser_ends_the_connection,
))
