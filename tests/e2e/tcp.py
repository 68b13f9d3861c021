# SPDX-License-Identifier: Apache-2.0
"""Raw TCP ends in the nodes of a lab, held by the test itself: what one end wrote, half-closed or reset is seen
at the other. Nothing here knows of proxies."""

import collections
import contextlib
import errno
import fcntl
import hashlib
import queue
import random
import socket
import struct
import termios
import threading
import time

from lab import PATIENCE, SERVER  # seconds a single call may block before the test fails

PIECE = 256 * 1024

Digest = collections.namedtuple("Digest", "size sha256 ending")


def pieces(size, seed):
    """Incompressible bytes that a seed gives again."""
    source = random.Random(seed)
    for start in range(0, size, PIECE):
        yield source.randbytes(min(PIECE, size - start))


def digest(size, seed):
    """The report that the far end must give for these bytes and a regular end."""
    sha = hashlib.sha256()
    for piece in pieces(size, seed):
        sha.update(piece)
    return Digest(size, sha.hexdigest(), "end")


def plain(address):
    """Address and port; an IPv4 peer of an IPv6 socket as the IPv4 peer it is."""
    return address[0].removeprefix("::ffff:"), address[1]


class Connection:
    def __init__(self, sock, remote=None):
        self.socket = sock
        sock.settimeout(PATIENCE)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.local = plain(sock.getsockname())
        # If it was reset meanwhile only accept() still has its address.
        self.remote = plain(remote or sock.getpeername())

    def send(self, data):
        self.socket.sendall(data)

    def send_made(self, size, seed):
        for piece in pieces(size, seed):
            self.socket.sendall(piece)

    def end(self):
        """Half-close: no more from here, but still listening."""
        self.socket.shutdown(socket.SHUT_WR)

    def reset(self):
        """Ends both directions by RST."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def close(self):
        self.socket.close()

    def receive(self, size):
        """Exactly so many bytes; EOFError if the other side ends before."""
        data = bytearray()
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise EOFError(f"end after {len(data)} of {size} bytes")
            data += piece
        return bytes(data)

    def receive_rest(self):
        """All bytes up to the end, and how it ended: 'end' or 'reset'."""
        data = bytearray()
        ending = self._drain(data.extend)
        return bytes(data), ending

    def digest_rest(self):
        """The same for what is too large to keep."""
        sha, size = hashlib.sha256(), 0

        def take(piece):
            nonlocal size
            sha.update(piece)
            size += len(piece)

        ending = self._drain(take)
        return Digest(size, sha.hexdigest(), ending)

    def _drain(self, take):
        buffer = bytearray(PIECE)
        try:
            while size := self.socket.recv_into(buffer):
                take(memoryview(buffer)[:size])
            return "end"
        except ConnectionResetError:
            return "reset"

    def arrived(self):
        """Returns when the nearest TCP end has taken all that was sent."""
        wait_until_taken(self.socket)

    def congestion_control(self):
        return self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()


def wait_until_taken(sock):
    deadline = time.monotonic() + PATIENCE
    while struct.unpack("i", fcntl.ioctl(sock, termios.TIOCOUTQ, b"\0\0\0\0"))[0]:
        if time.monotonic() > deadline:
            raise AssertionError("what was sent is not acknowledged")
        time.sleep(0.001)


class Listener:
    """Accepts in a node, on both families, on a free port unless one is named."""

    def __init__(self, lab, node="server", port=0, backlog=1024):
        with lab.inside(node):
            self.socket = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True,
                                               backlog=backlog)
        self.socket.settimeout(PATIENCE)
        self.port = self.socket.getsockname()[1]

    def accept(self):
        return Connection(self.socket.accept()[0])

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def connect(lab, address, port, node="client", source=None, seconds=PATIENCE):
    with lab.inside(node):
        sock = socket.create_connection((address, port), timeout=seconds, source_address=source)
    return Connection(sock)


def is_reset(lab, address, port, node="client"):
    """Is a new connection reset before a byte comes? The reset may come at any moment, as soon as it is accepted."""
    try:
        return connect(lab, address, port, node).receive_rest() == (b"", "reset")
    except OSError as error:
        return error.errno in (errno.ECONNRESET, errno.ENOTCONN)


def pair(lab, address=SERVER, node="client", to="server", port=0):
    """A connection from node to address, as (here, there); on a free port unless one is named."""
    with Listener(lab, to, port) as listener:
        here = connect(lab, address, listener.port, node)
        return here, listener.accept()


class Server:
    """Answers every connection in a thread of its own: `serve(connection)` is called, then the connection is closed.
    `clients` has the callers' addresses; an exception in `serve` is raised again by `close`."""

    def __init__(self, lab, serve, node="server", port=0):
        self.listener = Listener(lab, node, port)
        self.port = self.listener.port
        self.serve = serve
        self.clients = []
        self.results = queue.SimpleQueue()  # what `serve` returned, in the order they ended
        self.error = None
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.listener.socket.settimeout(None)
        self.thread.start()

    def _accept(self):
        while True:
            try:
                sock, address = self.listener.socket.accept()
            except OSError:
                return
            self.clients.append(address[:2])
            threading.Thread(target=self._answer, args=(sock, address), daemon=True).start()

    def _answer(self, sock, address):
        try:
            with sock:
                self.results.put(self.serve(Connection(sock, address)))
        except Exception as error:  # pylint: disable=broad-except
            self.error = self.error or error

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        with_shutdown(self.listener.socket)
        self.thread.join(PATIENCE)
        if self.error:
            raise self.error


def with_shutdown(listener):
    """Closing alone does not wake a thread that is in accept()."""
    try:
        listener.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    listener.close()


# What a Server may do with a connection.


def sender(size, seed):
    """Sends bytes and ends; for a client that reads them all."""

    def serve(connection):
        connection.send_made(size, seed)
        connection.end()
        connection.receive_rest()  # else the close could overtake what is still on its way

    return serve


def echo(connection):
    """Until the client ends, in whatever way."""
    buffer = bytearray(PIECE)
    with contextlib.suppress(ConnectionError):
        while size := connection.socket.recv_into(buffer):
            connection.send(memoryview(buffer)[:size])


def report_digest(connection):
    """Reads all, answers size and SHA-256 as one line."""
    got = connection.digest_rest()
    connection.send(f"{got.size} {got.sha256}\n".encode())
    return got


def download(lab, address, port, node="client"):
    """Reads all that a sender gives."""
    connection = connect(lab, address, port, node)
    got = connection.digest_rest()
    connection.close()
    return got


def upload(lab, address, port, size, seed, node="client"):
    """Sends bytes to a report_digest server and gives its answer."""
    connection = connect(lab, address, port, node)
    connection.send_made(size, seed)
    connection.end()
    answer, ending = connection.receive_rest()
    connection.close()
    got_size, sha256 = answer.decode().split()
    return Digest(int(got_size), sha256, ending)
