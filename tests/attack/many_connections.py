# SPDX-License-Identifier: Apache-2.0
"""One end of thousands of silent connections; a program of its own, because the number of descriptors of a process
is limited. `accept PORT COUNT` or `hold SOURCE ADDRESS PORT COUNT`; reports on stdout, line by line."""

import select
import socket
import sys

AT_ONCE = 200


def say(line):
    print(line, flush=True)


def watch(sockets):
    """Says 'ended N' whenever more of them have ended, in whatever way."""
    poll, ended = select.poll(), 0
    for sock in sockets:
        poll.register(sock, select.POLLRDHUP)
    while True:
        for descriptor, _ in poll.poll():
            poll.unregister(descriptor)
            ended += 1
        say(f"ended {ended}")


def accept(port, count):
    listener = socket.create_server(("0.0.0.0", port), backlog=4096)
    say("listening")
    sockets = [listener.accept()[0] for _ in range(count)]
    say(f"accepted {count}")
    watch(sockets)


def hold(source, address, port, count):
    sockets = []
    while len(sockets) < count:
        fresh = [socket.socket() for _ in range(min(AT_ONCE, count - len(sockets)))]
        for sock in fresh:
            sock.setblocking(False)
            sock.bind((source, 0))
            sock.connect_ex((address, port))
        for sock in fresh:
            poll = select.poll()  # select() knows no descriptor above 1024
            poll.register(sock, select.POLLOUT)
            poll.poll()
            if error := sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                raise OSError(error, "connect")
        sockets += fresh
    say(f"held {count}")
    watch(sockets)


if __name__ == "__main__":
    if sys.argv[1] == "accept":
        accept(*map(int, sys.argv[2:]))
    else:
        hold(*sys.argv[2:4], *map(int, sys.argv[4:]))
