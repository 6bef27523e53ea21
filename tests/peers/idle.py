# SPDX-License-Identifier: MIT
"""
Cost of an idle connection in each of the servers: pages of its fiber's stack, and total memory.

Goal:   a server keeps no buffers for idle connections, neither before their first request nor
        after it.
Method: counts resident pages, with few connections and with many more. Fiber stacks are the
        mappings without huge pages.
"""

import contextlib
import os
import resource

import rig
from rig import Server, check

CONNECTIONS = 1000
PAGE = os.sysconf("SC_PAGE_SIZE")

# The request, the end of the answer, and the limits: pages of stack, and pages in total. The
# chat example is left out: it has three fibers per client, and all clients hear of each other.
SERVERS = {
    "drain": (b"0\n", b"done\n", 2, 3),
    "echo": (b"hello", b"hello", 2, 3),  # It has a buffer of one page.
    "echo_stackless": (b"hello", b"hello", 0, 1),
    "http": (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"hello\n", 2, 3),
    "redis": (b"PING\r\n", b"+PONG\r\n", 2, 3),
}


def resident(server):
    """Returns the resident pages of all fiber stacks, and of the whole process."""
    stacks, total, size = 0, 0, 0
    with open(f"/proc/{server.process.pid}/smaps", encoding="ascii") as maps:
        for line in maps:
            name, _, rest = line.partition(":")
            if name == "Rss":
                size = int(rest.split()[0]) * 1024 // PAGE
                total += size
            elif name == "VmFlags" and "nh" in rest.split():
                stacks += size
    return stacks, total


def ask(connection, question, end):
    connection.sendall(question)
    answer = b""
    while not answer.endswith(end):
        part = connection.recv(4096)
        check(part, answer)
        answer += part


def pages_for_each(name, asks):
    """Returns the pages of stack, and in total, per connection among many idle ones."""
    question, end = SERVERS[name][:2]
    arguments = ("1000",) if name == "drain" else ()
    with Server(name, "tcp://127.0.0.1:0", *arguments) as server, contextlib.ExitStack() as stack:
        def connect(count):
            for _ in range(count):
                connection = stack.enter_context(server.connect())
                if asks:
                    ask(connection, question, end)
            # Connections are accepted in order: those before this one have been started.
            ask(stack.enter_context(server.connect()), question, end)
            return resident(server)
        few = connect(10)
        many = connect(CONNECTIONS)
        return [(after - before) / CONNECTIONS for before, after in zip(few, many)]


def an_idle_connection_needs_a_page_or_two():
    for name, (_, _, stack_max, total_max) in SERVERS.items():
        for asks in (False, True):
            stack, total = pages_for_each(name, asks)
            print(f"    {name:15} {'after' if asks else 'before'} a request: "
                  f"{stack:.2f} pages of stack, {total:.2f} in all")
            check(stack <= stack_max + 0.1, name, asks, stack)
            check(total <= total_max + 0.1, name, asks, total)


# This program and the servers need more descriptors than many systems allow by default.
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
rig.main((an_idle_connection_needs_a_page_or_two,))
