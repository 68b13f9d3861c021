# SPDX-License-Identifier: Apache-2.0
"""A TCP relay in a node that keeps what passes, and can hold back what clients say: one on each LAN shows what the pair
did to a connection."""

import contextlib
import socket
import threading
import typing

import tcp


class Passed(typing.NamedTuple):
    """All bytes of a connection."""

    to_server: bytes
    to_client: bytes


class Relay:
    """Accepts at `port` of a node and connects to `address`, seen from there, for each connection."""

    def __init__(self, lab, node, address, port=0):
        self.lab, self.node, self.address = lab, node, address
        self.opened = threading.Event()  # otherwise the clients' bytes wait
        self.opened.set()
        self.waits = threading.Event()  # some do
        self.server = tcp.Server(lab, self._serve, node, port)
        self.port = self.server.port

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.opened.set()
        self.server.close()

    def passed(self):
        """What passed on the connection that ended first among those that were not asked for yet."""
        return self.server.results.get(timeout=tcp.PATIENCE)

    @contextlib.contextmanager
    def held(self):
        """Clients' bytes wait in the block. Waiting for them is the block's part: relay.waits.wait()."""
        self.waits.clear()
        self.opened.clear()
        try:
            yield self
        finally:
            self.opened.set()

    def _serve(self, client):
        server = tcp.connect(self.lab, *self.address, node=self.node)
        both = bytearray(), bytearray()
        back = threading.Thread(target=self._pump, args=(server.socket, client.socket, both[1], False), daemon=True)
        back.start()
        self._pump(client.socket, server.socket, both[0], True)
        back.join(tcp.PATIENCE)
        server.close()
        return Passed(*map(bytes, both))

    def _pump(self, source, target, kept, may_wait):
        try:
            while piece := source.recv(65536):
                if may_wait and not self.opened.is_set():
                    self.waits.set()
                    self.opened.wait(tcp.PATIENCE)
                kept += piece
                target.sendall(piece)
            target.shutdown(socket.SHUT_WR)
        except OSError:  # one side is gone: so is the other
            for each in (source, target):
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
